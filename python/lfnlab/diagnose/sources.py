"""Files of one transfer: their kind from their content, and one evidence from all of them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lfnlab.diagnose import evidence as shown
from lfnlab.errors import StoreError, UsageError
from lfnlab.formats import measurement

if TYPE_CHECKING:
    from lfnlab.diagnose.evidence import Evidence, Floats
    from lfnlab.formats.measurement import Measurement

Kind = Literal["iperf3", "ss", "capture", "qlog", "flent"]
KINDS: tuple[Kind, ...] = ("iperf3", "ss", "capture", "qlog", "flent")
HEAD_BYTES = 1 << 16
"""The beginning of a file, which tells its kind."""
STEPS_IN_RTT, LEAST_STEP_S, STEP_S = 8, 5e-4, 1e-2
"""Samples of a capture: so many in an RTT, at least this and at most that apart."""
MOST_READ_TWICE = 256 << 20
"""Bytes of a capture that is read again with a step for its RTT."""
ALIKE = 0.1
"""Part by which the bytes of one transfer in two files may differ."""
_CAPTURES = (
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
    b"\x0a\x0d\x0d\x0a",
)
_LEVELS = (
    "rtt_s",
    "cwnd_bytes",
    "ssthresh_bytes",
    "inflight_bytes",
    "window_bytes",
    "unsent_bytes",
    "pacing_bps",
    "app_limited",
    "ack_delay_s",
    "data_delay_s",
)
QUANTITIES = {
    "goodput_bps": "goodput",
    "rtt_s": "RTT",
    "cwnd_bytes": "congestion window",
    "inflight_bytes": "bytes in flight",
    "window_bytes": "receiver's window",
    "retransmits": "retransmits",
    "unsent_bytes": "unsent data",
    "pacing_bps": "pacing rate",
    "app_limited": "app_limited",
    "rwnd_limited_s": "rwnd_limited, sndbuf_limited",
    "ack_delay_s": "delay of ACKs",
    "data_delay_s": "delay of data",
}
"""Columns of the evidence in words."""


@dataclass(frozen=True, eq=False)
class Source:
    """A file that was read."""

    file: Path
    kind: Kind
    measured: Measurement


@dataclass(frozen=True, eq=False)
class Transfer:
    """A flow with all that the files tell of it."""

    shown: Evidence
    told_by: Mapping[str, str]
    """Of each quantity, in words, the kinds of the files that tell it, with commas."""
    sources: tuple[Source, ...]


def kind_of(file: Path) -> Kind:
    """The tool that wrote a file, by its first bytes.

    Raises:
        UsageError: nothing that is known.
        StoreError: it cannot be read.
    """
    try:
        if not file.is_file():
            why = "no such file" if not file.exists() else "it is no regular file"
            raise StoreError(f"cannot read {file}: {why}")
        with file.open("rb") as opened:
            head = opened.read(HEAD_BYTES)
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from None
    if _unpacked(head).startswith(_CAPTURES):
        return "capture"
    if head.startswith((b"\x1f\x8b", b"BZh")):
        return "flent"
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if text.startswith("\x1e") or re.search(r'"qlog_(?:version|format)"', text):
        return "qlog"
    if text.startswith("{"):
        if re.search(r'"(?:x_values|SERIES_META|raw_values)"\s*:', text):
            return "flent"
        if re.match(r'\{\s*"(?:event|start|intervals|error|title)"\s*:', text):
            return "iperf3"
    elif re.search(r"\b(?:cwnd|rto|mss):\d|Recv-Q\s+Send-Q", text):
        return "ss"
    raise UsageError(
        f"{file}: neither of iperf3 -J, ss -tin, tcpdump, qlog nor flent; --kind tells which: "
        f"{', '.join(KINDS)}"
    )


def _unpacked(head: bytes) -> bytes:
    """A file's first bytes, those that gzip packed if they are so."""
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        return zlib.decompressobj(31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""


def read(
    file: Path, kind: Kind | None = None, *, at: str | None = None, every_s: float | None = None
) -> Source:
    """Read a file of any kind.

    Args:
        file: what a tool wrote.
        kind: the tool; default as its content tells.
        at: where a capture was made.
        every_s: time between two calls of ss in a log without times.

    Raises:
        UsageError: naming file and place of what is wrong.
        StoreError: it cannot be read.
    """
    kind = kind or kind_of(file)
    options: dict[str, Any] = {}
    if kind == "capture":
        options = {"at": at, "step_s": STEP_S}
    elif kind == "ss":
        options = {"every_s": every_s}
    measured = measurement.read(kind, file, **options)
    if kind == "capture":
        flows = measured.summary["flows"]
        main = max(flows, key=lambda flow: flow["delivered_bytes"] or 0)
        step_s = max((main["min_rtt_s"] or np.inf) / STEPS_IN_RTT, LEAST_STEP_S)
        if step_s < STEP_S and file.stat().st_size <= MOST_READ_TWICE:
            measured = measurement.read(kind, file, at=at, step_s=step_s)
    if any(flow["law"] == "udp" for flow in measured.summary["flows"]):
        raise UsageError(f"{file}: UDP, which sends at the rate it was told; allowed: TCP, QUIC")
    return Source(file, kind, measured)


def transfers(sources: Sequence[Source]) -> list[Transfer]:
    """The flows of one measurement, with the most data first, from all of its files.

    Raises:
        UsageError: the files are of different transfers, or no flow has two samples.
    """
    found = [_flows(source) for source in sources]
    order = sorted(range(len(sources)), key=lambda place: -_fineness(found[place]))
    first, *others = order
    merged = []
    left = {place: list(found[place]) for place in others}
    for one in found[first]:
        told = _told(one, sources[first].kind)
        used = [sources[first]]
        for place in others:
            like = _like(one, left[place])
            if like is not None:
                left[place] = [other for other in left[place] if other is not like]
                one, told = _joined(one, like, told, sources[place].kind)
                used.append(sources[place])
        merged.append(Transfer(one, told, tuple(used)))
    for place in others:
        if not any(sources[place] in transfer.sources for transfer in merged):
            raise UsageError(
                f"{sources[place].file}: its transfer is another than that of "
                f"{sources[first].file}: {_size(found[place])} and {_size(found[first])} were "
                "sent; diagnose each by itself"
            )
    return merged


def _flows(source: Source) -> list[Evidence]:
    summary = source.measured.summary
    found = []
    wrong = None
    for flow in summary["flows"]:
        try:
            one = shown.of(source.measured, flow["id"])
        except UsageError as error:
            wrong = error
            continue
        told = summary.get("iperf3", {})
        names = ("target_bps", "socket_buffer_bytes", "send_buffer_bytes")
        more = {name: told[name] for name in names if name in told}
        more["tool"] = source.kind
        found.append(replace(one, flow={**flow, **more}))
    if not found:
        assert wrong is not None
        raise UsageError(f"{source.file}: {wrong}")
    return sorted(found, key=_bytes, reverse=True)


def _bytes(one: Evidence) -> float:
    # What iperf3 wrote runs ahead of what arrived by the send buffer.
    told = one.flow.get("delivered_bytes")
    return float(told) if told else float(np.nansum(one.goodput_bps * one.lengths_s)) / 8


def _size(flows: Sequence[Evidence]) -> str:
    return f"{_bytes(flows[0]) / 1e6:.4g} MB"


def _fineness(flows: Sequence[Evidence]) -> float:
    """Samples a second of the largest flow; those with bytes in flight before others."""
    one = flows[0]
    seconds = float(one.edges_s[-1] - one.edges_s[0])
    bonus = 1e6 if np.isfinite(one.inflight_bytes).any() else 0.0
    return bonus + one.lengths_s.size / seconds


def _told(one: Evidence, kind: str) -> dict[str, str]:
    return {
        words: kind for name, words in QUANTITIES.items() if np.isfinite(getattr(one, name)).any()
    }


def _like(one: Evidence, others: Sequence[Evidence]) -> Evidence | None:
    """The flow of another file that has as many bytes, and the same direction."""
    size = _bytes(one)
    near = [other for other in others if abs(_bytes(other) - size) <= ALIKE * max(size, 1.0)]
    return min(near, key=lambda other: abs(_bytes(other) - size), default=None)


def _joined(
    one: Evidence, other: Evidence, told: Mapping[str, str], kind: str
) -> tuple[Evidence, dict[str, str]]:
    """One with what only the other tells, at its own times."""
    there = other.at(one.edges_s - _offset(one, other))
    told = dict(told)
    columns: dict[str, Floats] = {}
    for name in (*_LEVELS, *shown.SUMS):
        own, more = getattr(one, name), getattr(there, name)
        if np.isfinite(own).any() or not np.isfinite(more).any():
            continue
        columns[name] = more
        if name in QUANTITIES:
            told[QUANTITIES[name]] = kind
    kept = {name: value for name, value in other.flow.items() if value is not None}
    law = {"law": kept["law"]} if one.flow.get("law") in (None, "tcp") else {}
    least = [v for v in (one.flow.get("min_rtt_s"), other.flow.get("min_rtt_s")) if v]
    flow = {**kept, **{k: v for k, v in one.flow.items() if v is not None}, **law}
    flow["min_rtt_s"] = min(least, default=None)
    flow.pop("written_bytes", None) if not one.flow.get("written_bytes") else None
    return replace(one, flow=flow, **columns), told


def _offset(one: Evidence, other: Evidence) -> float:
    """By how much later the first one's times are: where what was sent runs alike."""

    def curve(flow: Evidence) -> tuple[Floats, Floats]:
        sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(flow.goodput_bps) * flow.lengths_s)])
        return flow.edges_s, sums / max(float(sums[-1]), 1.0)

    times, sums = curve(one)
    others, other_sums = curve(other)
    marks = np.linspace(0.02, 0.98, 49)
    # The time at which each part of the bytes was through.
    gaps = np.interp(marks, sums, times) - np.interp(marks, other_sums, others)
    return float(np.median(gaps))
