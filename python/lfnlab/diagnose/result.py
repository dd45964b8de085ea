"""The cause, the path and the law that files of one measurement show, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.diagnose import causes, law, path, sources
from lfnlab.diagnose.causes import Diagnosis
from lfnlab.diagnose.evidence import together
from lfnlab.diagnose.names import CAUSES, UNDECIDED
from lfnlab.errors import UsageError

if TYPE_CHECKING:
    from lfnlab.diagnose.sources import Kind, Source, Transfer

HEADINGS = {
    "receive-window": "The receiver's window limits it",
    "send-buffer": "The send buffer limits it",
    "random-loss": "Random losses limit it: packets are lost without a queue",
    "queue-overflow": "The path is full: its queue fills, and overflows",
    "policer": "A policer limits it: what exceeds a rate is dropped, without delay",
    "pacing": "It is sent at a rate that was set",
    "application": "The application limits it: it does not write all the time",
    "slow-start": "It ends, or spends its time, before the window has grown",
    "ack-path": "The way of the ACKs limits it",
    "path-change": "The path changes: it stops, or its rate or RTT moves",
    UNDECIDED: "Undecided: what was measured does not tell",
}
"""Causes in words."""
OF_HOSTS = ("receive-window", "send-buffer", "pacing", "application", "slow-start")
"""Causes below which the path's rate does not show."""
UNNAMED = ("tcp", "quic")
"""Names of flows whose law the tool does not tell."""
PART = 0.1
"""Flows with less of the largest flow's bytes are left out."""
MOST_FLOWS = 100
"""Flows that are diagnosed."""
MOST_INTERVALS = 40
"""Intervals that are printed."""


@dataclass(frozen=True, eq=False)
class Found:
    """A flow, and what limited it."""

    transfer: Transfer
    diagnosis: Diagnosis

    @property
    def bytes(self) -> float:
        """Payload that it moved."""
        shown = self.transfer.shown
        return float(np.nansum(shown.goodput_bps * shown.lengths_s)) / 8


@dataclass(frozen=True, eq=False)
class Examination:
    """All that the files tell."""

    sources: tuple[Source, ...]
    flows: tuple[Found, ...]
    """The largest first."""
    cause: str
    certain: bool
    main: Found
    """The largest flow with this cause."""
    fit: path.Fit | None
    likely: path.Fit | None
    """The path if the cause is right, where it is not certain."""
    law: law.Ranking | None
    """None without a path, and with several flows whose law no file names."""
    notes: tuple[str, ...]
    is_anonymous: bool = False
    left_out: int = 0
    labels: tuple[str, ...] = field(default=())

    @property
    def next(self) -> str | None:
        """The next measurement; None if the cause is certain."""
        own = self.main.diagnosis
        return None if self.certain else own.next or causes.following(own.cells, own.cause)


def examine(
    files: Sequence[Path],
    kind: Kind | None = None,
    *,
    at: str | None = None,
    every_s: float | None = None,
    anonymous: bool = False,
) -> Examination:
    """Read the files of one measurement, and find what limited it.

    Raises:
        UsageError: naming file and place of what is wrong; the files are of different transfers.
        StoreError: a file cannot be read.
    """
    read = [sources.read(file, kind, at=at, every_s=every_s) for file in files]
    every = _shares(sources.transfers(read))
    largest = max(Found(one, _NONE).bytes for one in every)
    some = [one for one in every if Found(one, _NONE).bytes >= PART * largest]
    flows = [Found(one, causes.diagnose(one.shown)) for one in some[:MOST_FLOWS]]
    # Flows without a byte count alike.
    sizes = [one.bytes if largest else 1.0 for one in flows]
    parts = dict.fromkeys((*CAUSES, UNDECIDED), 0.0)
    for one, size in zip(flows, sizes, strict=True):
        parts[one.diagnosis.cause] += size / sum(sizes)
    cause = max(parts, key=lambda name: parts[name])
    own = [one for one in flows if one.diagnosis.cause == cause]
    certain = parts[cause] > 1 - PART and all(one.diagnosis.certain for one in own)
    fit, likely, ranking, notes = _fitted(flows)
    for source in read:
        notes += source.measured.summary["notes"]
    return Examination(
        tuple(read),
        tuple(flows),
        cause,
        certain,
        own[0],
        fit,
        likely,
        ranking,
        tuple(dict.fromkeys(notes)),
        anonymous,
        len(every) - len(flows),
        tuple(
            f"file {number}" if anonymous else str(source.file)
            for number, source in enumerate(read, 1)
        ),
    )


def _shares(every: Sequence[Transfer]) -> list[Transfer]:
    """The flows, each with its part of what went the same way in its time."""
    found = []
    for one in every:
        start_s, end_s = (float(one.shown.edges_s[place]) for place in (0, -1))
        moved = [
            other.shown.moved_bytes(start_s, end_s)
            for other in every
            if other.shown.flow["direction"] == one.shown.flow["direction"]
        ]
        own = one.shown.moved_bytes(start_s, end_s)
        part = own / sum(moved) if own else 1.0
        found.append(replace(one, shown=replace(one.shown, flow={**one.shown.flow, "part": part})))
    return found


def _fitted(
    flows: Sequence[Found],
) -> tuple[path.Fit | None, path.Fit | None, law.Ranking | None, list[str]]:
    """The path below the flows, and their law; parallel streams are taken together."""
    first = flows[0].transfer.shown
    ways = {one.transfer.shown.flow["direction"] for one in flows}
    if len(ways) > 1:
        return (
            None,
            None,
            None,
            ["The flows go both ways: the path is not fitted to them together."],
        )
    try:
        shown = together([one.transfer.shown for one in flows])
        diagnosis = flows[0].diagnosis if len(flows) == 1 else causes.diagnose(shown)
        fit = path.fit(shown, diagnosis)
        likely = path.fit(shown, diagnosis, is_right=True)
    except UsageError as error:
        return None, None, None, [f"The path is not fitted: {error}."]
    named = first.flow.get("law")
    if len(flows) > 1 and named in (None, *UNNAMED):
        return fit, likely, None, []
    if named in (None, *UNNAMED):
        return fit, likely, law.rank(shown, fit), []
    return fit, likely, law.Ranking((str(named),), False, {}, "the file names it"), []


def to_json(found: Examination) -> dict[str, Any]:
    """One object, with the keys of docs/diagnose.md."""
    own = found.main.diagnosis
    return {
        "cause": found.cause,
        "certain": found.certain,
        "why": own.why,
        "doubts": list(own.doubts),
        "next": found.next,
        "shares": own.shares,
        "law": None if found.law is None else found.law.to_json(),
        "path": None if found.fit is None else found.fit.to_json(),
        "intervals": [vars(interval) for interval in own.intervals],
        "flows": [
            {
                "id": one.transfer.shown.flow["id"],
                "direction": one.transfer.shown.flow["direction"],
                "cause": one.diagnosis.cause,
                "certain": one.diagnosis.certain,
                "bytes": round(one.bytes),
                "shares": one.diagnosis.shares,
            }
            for one in found.flows
        ],
        "evidence": dict(found.main.transfer.told_by),
        "files": [
            {"file": label, "kind": source.kind}
            for label, source in zip(found.labels, found.sources, strict=True)
        ],
        "notes": list(found.notes),
    }


def lines(found: Examination) -> Iterator[str]:
    """It as text."""
    own = found.main.diagnosis
    yield f"{heading(found)}."
    yield f"cause: {found.cause}, {'certain' if found.certain else 'not certain'}"
    yield f"evidence: {own.why}"
    for doubt in own.doubts:
        yield f"but: {doubt}"
    if len(own.shares) > 1:
        yield "share of the time: " + ", ".join(
            f"{cause} {share:.0%}" for cause, share in own.shares.items()
        )
    if found.next:
        yield f"measure next: {found.next}"
    yield ""
    intervals = own.intervals[:MOST_INTERVALS]
    for interval in intervals:
        times = f"{interval.start_s:.2f} to {interval.end_s:.2f} s"
        yield f"{times:>20}  {interval.cause:<14}  {interval.evidence}"
    if len(intervals) < len(own.intervals):
        yield f"and {len(own.intervals) - len(intervals):,} more intervals (--json has all)"
    yield ""
    if found.cause in OF_HOSTS:
        yield "The path's rate does not show: it is at least the goodput."
    if found.fit is not None:
        yield from path_lines(found.fit)
    if found.law is not None:
        yield f"law: {law_line(found.law)}"
    if len(found.flows) > 1:
        for one in found.flows:
            shown = one.transfer.shown
            sure = "certain" if one.diagnosis.certain else "not certain"
            yield (
                f"flow {shown.flow['id']}, {shown.flow['direction']}: {one.diagnosis.cause}, "
                f"{sure}, {one.bytes / 1e6:.4g} MB"
            )
    if found.left_out:
        yield f"Left out: {found.left_out:,} flows with little data."
    told: dict[str, list[str]] = {}
    for words, kind in found.main.transfer.told_by.items():
        told.setdefault(kind, []).append(words)
    for label, source in zip(found.labels, found.sources, strict=True):
        yield f"From {label} ({source.kind}): {', '.join(told.get(source.kind, ['nothing more']))}."
    yield from found.notes


def heading(found: Examination) -> str:
    """The cause in words."""
    said = HEADINGS[found.cause]
    return said if found.certain or found.cause == UNDECIDED else f"Probably: {said}"


def law_line(found: law.Ranking) -> str:
    """The law, and how it was found."""
    if found.is_none:
        return f"none of these that are known; {found.how}"
    return f"{' or '.join(found.first) or 'not decided'}; {found.how}"


def path_lines(fit: path.Fit) -> Iterator[str]:
    """The path, with intervals and how each was found."""
    for name, one, scale, unit in (
        ("rate", fit.rate_bps, 1e6, "Mbit/s"),
        ("RTT", fit.rtt_s, 1e-3, "ms"),
        ("buffer", fit.buffer_packets, 1.0, "packets"),
        ("loss", fit.loss, 1.0, ""),
        ("cross traffic", fit.cross_bps, 1e6, "Mbit/s"),
    ):
        bound = {"": "", "least": "at least ", "most": "at most "}[one.bound]
        value = f"{bound}{one.value / scale:.4g} {unit}".strip()
        high = f"{one.high / scale:.4g}" if np.isfinite(one.high) else "unknown"
        range_ = "" if one.bound else f" ({one.low / scale:.4g} to {high})"
        yield f"path, {name}: {value}{range_}: {one.how}"


_NONE = Diagnosis(UNDECIDED, False, (), {}, "")
