"""Scores of diagnoses against drawn transfers, by the bars of their quality.

Half of the transfers are brought as iperf3's JSON, the others as captures or a log of ``ss``.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from lfnlab.diagnose import causes as diagnosing
from lfnlab.diagnose import path as fitting
from lfnlab.diagnose import sources
from lfnlab.errors import LabError

from .transfers import Transfer, draw

if TYPE_CHECKING:
    from lfnlab.diagnose.evidence import Evidence

    from .settings import Where

#: Of a hundred transfers: how many are of each place, and which files of it are brought.
BROUGHT: tuple[tuple[Where, int, tuple[str, ...]], ...] = (
    ("emulator", 50, ("iperf3",)),
    ("emulator", 10, ("ss",)),
    ("linux", 20, ("sender", "receiver")),
    ("simulator", 20, ("sender", "receiver")),
)
UNDECIDED = "undecided"
#: iperf3 pauses only by a rate that it was given, and its file tells the rate alone.
ALSO = {("iperf3", "application"): "pacing"}
#: Fitted values lie so near the truth.
RATE, RTT, BUFFER = 0.03, 0.03, 0.15
#: Causes under which the link's rate changes, or is not what limits in the mean.
NO_RATE = ("path-change", "policer")


#: A file that is refused, and what a fault of ours would raise: the transfer is not diagnosed.
FAULTS = (LabError, ArithmeticError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class Brought:
    """A transfer, and the one file of it that is shown."""

    transfer: Transfer
    kind: str

    @property
    def name(self) -> str:
        """Short, for tables."""
        one = self.transfer
        return f"{one.where} {one.seed}-{one.number} {self.kind}"


def brought(seed: int, count: int, cache: FilePath) -> Iterator[Brought]:
    """So many transfers of a seed, from all places in their shares."""
    first: Counter[str] = Counter()
    for where, share, kinds in BROUGHT:
        begin = first[where]
        first[where] += round(count * share / 100)
        for transfer in draw(seed, first[where], where, cache, begin):
            yield Brought(transfer, random.Random(transfer.number).choice(kinds))


def shown(file: FilePath) -> Evidence:
    """The flow with the most data in a file.

    Raises:
        LabError: it cannot be read.
    """
    return sources.transfers([sources.read(file)])[0].shown


def cause(one: Brought) -> dict[str, Any]:
    """The diagnosis of a transfer beside the truth."""
    transfer = one.transfer
    row = {
        "name": one.name,
        "kind": one.kind,
        "cause": transfer.cause,
        "second": transfer.second,
        "law": transfer.law,
    }
    try:
        seen = shown(transfer.files[one.kind])
        told = diagnosing.diagnose(seen)
    except FAULTS as error:
        return row | {"failed": repr(error), "said": UNDECIDED, "certain": False, "next": None}
    shares = {name: round(share, 3) for name, share in told.shares.items()}
    said = {"said": told.cause, "certain": told.certain, "next": told.next, "shares": shares}
    try:
        fit = fitting.fit(seen, told)
    except FAULTS as error:
        return row | said | {"failed": repr(error)}
    return row | said | {"path": path(transfer, fit)}


def path(transfer: Transfer, fit: fitting.Fit) -> dict[str, Any]:
    """Relative errors of what was fitted, and whether bounds hold; null: it was assumed."""
    truths = {"rate_bps": transfer.path.rate_bps, "rtt_s": transfer.path.rtt_s}
    truths["buffer_packets"] = transfer.path.buffer_packets
    found: dict[str, Any] = {}
    for name, truth in truths.items():
        estimate = getattr(fit, name)
        off = estimate.value / truth - 1
        if not estimate.is_fitted:
            found[name] = None
        elif estimate.bound:
            holds = off <= RATE if estimate.bound == "least" else off >= -RATE
            found[name] = {"bound": estimate.bound, "holds": holds, "off": round(off, 4)}
        else:
            found[name] = {"off": round(off, 4)}
    return found


def verdict(row: dict[str, Any]) -> str:
    """Right, wrong, wrong and certain, or undecided with or without what to measure next."""
    if row["said"] in (row["cause"], ALSO.get((row["kind"], row["cause"]))):
        return "right"
    if row["said"] == UNDECIDED:
        return "undecided" if row["next"] else "undecided without next"
    return "wrong and certain" if row["certain"] else "wrong"


def causes(seed: int, count: int, cache: FilePath) -> dict[str, Any]:
    """Every row, and the counts."""
    rows = []
    for one in brought(seed, count, cache):
        row = cause(one)
        rows.append(row | {"verdict": verdict(row)})
        print(line(rows[-1]), flush=True)
    counts = dict(Counter(row["verdict"] for row in rows))
    return {"counts": counts, "fitted": fitted(rows), "rows": rows}


def line(row: dict[str, Any]) -> str:
    """A row as text: the answer beside the truth."""
    truth = row["cause"] + (f" ({row['second']})" if row["second"] else "")
    said = row["said"] + (" certain" if row["certain"] else "")
    shares = " ".join(f"{name} {share:.2f}" for name, share in row.get("shares", {}).items())
    why = row.get("failed") or shares
    return f"{row['verdict']:17} {row['name']:28} {truth:32} {row['law']:9} {said:24} {why}"


def fitted(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """How many of the fitted values are within their bars, and how many bounds hold."""
    bars = {"rate_bps": RATE, "rtt_s": RTT, "buffer_packets": BUFFER}
    found: dict[str, dict[str, Any]] = {}
    for name, bar in bars.items():
        changes = NO_RATE if name == "rate_bps" else ("path-change",)
        mine = [
            row["path"][name]
            for row in rows
            if "path" in row and row["cause"] not in changes and row["second"] not in changes
        ]
        told = [value for value in mine if value is not None and "bound" not in value]
        bounds = [value for value in mine if value is not None and "bound" in value]
        found[name] = {
            "fitted": len(told),
            "within": sum(abs(value["off"]) <= bar for value in told),
            "bounds": len(bounds),
            "hold": sum(value["holds"] for value in bounds),
            "assumed": len(mine) - len(told) - len(bounds),
        }
    return found


def confused(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """By cause, the answers and how often they were given."""
    for name in dict.fromkeys(row["cause"] for row in rows):
        said = Counter(row["said"] for row in rows if row["cause"] == name)
        yield f"{name:16} " + ", ".join(f"{word} {n}" for word, n in said.most_common())


def report(result: dict[str, Any]) -> str:
    """The bars and what was reached."""
    rows = result["rows"]
    lines = [f"{word}: {number} of {len(rows)}" for word, number in result["counts"].items()]
    lines += confused(rows)
    for kind in dict.fromkeys(row["kind"] for row in rows):
        mine = Counter(row["verdict"] for row in rows if row["kind"] == kind)
        lines.append(f"{kind}: " + ", ".join(f"{word} {n}" for word, n in mine.most_common()))
    for name, said in result["fitted"].items():
        lines.append(f"{name}: " + json.dumps(said))
    return "\n".join(lines)
