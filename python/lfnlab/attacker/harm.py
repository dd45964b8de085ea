"""Harms: what counts as one, and by how much a law on a path is beyond it.

A harm has two conditions. The law's figure is beyond a bound, and another law in its place has at
most a third of the harm. A margin is the smaller of both in times the bound: 1 and more is a
weakness.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from lfnlab.attacker.scenarios import begins_s, link_bps
from lfnlab.attacker.space import Path, number

Kind = Literal["starved", "neighbour", "stuck", "queue", "waste"]
TIMES = 3.0
"""The other law has so many times the goodput, or leaves the neighbour so many times as much; for
queue and waste a part of one in so many."""
SHARE = 0.1
"""Of the link: a flow with less is starved."""
QUEUE_S = 1.0
"""A mean queue of a second is a harm, and one of four RTTs that is at least 0.2 s."""
QUEUE_RTTS = 4.0
LEAST_QUEUE_S = 0.2
WASTE = 0.05
"""Of the packets sent: so many retransmissions are a waste."""
AS_GOOD = 0.9
"""For queue and waste the other law has at least so much of the goodput."""
NEAR = 1 / 3
"""A law whose own figure is so near to the bound is compared with others."""
MOST = 1e6
"""A margin above all others."""
_LEAST_BPS = 1e3
_LEAST_QUEUE_S = 1e-3
_LEAST_WASTE = 1e-3

SAYS: Mapping[Kind, str] = {
    "starved": "has under 10 % of the link",
    "neighbour": "leaves a CUBIC neighbour under 10 % of the link",
    "stuck": "has under 10 % of the link after the trouble has ended",
    "queue": "keeps a queue of a second, or of four RTTs",
    "waste": "retransmits over 5 % of what it sends",
}
"""Each kind of harm, in words."""
KINDS: Sequence[Kind] = tuple(SAYS)


@dataclass(frozen=True)
class Figures:
    """The figures of one run, from the end of its warm-up on.

    Args:
        goodput_bps: of the law's flows together, bit/s.
        neighbour_bps: of the neighbour, bit/s; 0 without one.
        queue_s: mean waiting time at the bottleneck, s.
        waste: retransmissions of the law's flows, of the packets that they sent in the whole run.
    """

    goodput_bps: float
    neighbour_bps: float
    queue_s: float
    waste: float

    @classmethod
    def of(cls, summary: str | Mapping[str, Any], path: Path) -> Figures:
        """The figures of a summary (docs/results.md)."""
        said = json.loads(summary) if isinstance(summary, str) else summary
        count = int(number(path, "flows"))
        own, others = said["flows"][:count], said["flows"][count:]
        return cls(
            sum((flow["goodput_bps"] or 0.0 for flow in own), 0.0),
            sum((flow["goodput_bps"] or 0.0 for flow in others), 0.0),
            said["links"][0]["mean_queue_s"] or 0.0,
            # Linux in virtual time does not count what was sent.
            sum(flow["retransmits"] or 0 for flow in own) / max(1, sum(map(_sent, own))),
        )

    def to_json(self) -> dict[str, float]:
        """The figures by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _sent(flow: Mapping[str, Any]) -> int:
    packets: int | None = flow.get("sent")
    if packets is not None:
        return packets
    arrived = float(flow["delivered_bytes"])
    return round(arrived / float(flow["segment_bytes"])) + int(flow["retransmits"] or 0)


def kinds(path: Path) -> list[Kind]:
    """The harms that a path can show."""
    made: list[Kind] = ["stuck" if "ends_s" in path else "starved"]
    if "neighbour" in path:
        made.append("neighbour")
    return [*made, "queue", "waste"]


def own(kind: Kind, path: Path, law: Figures) -> float:
    """How many times the bound the law's own figure is; 1 and more is beyond."""
    if kind == "queue":
        rtts_s = QUEUE_RTTS * number(path, "rtt_ms") / 1e3
        return law.queue_s / min(QUEUE_S, max(LEAST_QUEUE_S, rtts_s))
    if kind == "waste":
        return law.waste / WASTE
    return SHARE * link_bps(path) / max(_LEAST_BPS, _rate(kind, law))


def _rate(kind: Kind, figures: Figures) -> float:
    return figures.neighbour_bps if kind == "neighbour" else figures.goodput_bps


def times(kind: Kind, law: Figures, other: Figures) -> float:
    """How many times as well the other law does; for queue and waste 0 where it has less goodput.

    For a starved or stuck law, of the goodput; for a neighbour, of the neighbour's.
    """
    if kind in ("queue", "waste"):
        if other.goodput_bps < AS_GOOD * law.goodput_bps:
            return 0.0
        if kind == "queue":
            return law.queue_s / max(_LEAST_QUEUE_S, other.queue_s)
        return law.waste / max(_LEAST_WASTE, other.waste)
    return _rate(kind, other) / max(_LEAST_BPS, _rate(kind, law))


def margin(kind: Kind, path: Path, law: Figures, other: Figures) -> float:
    """By how many times both conditions are met; 1 and more is a weakness."""
    return min(own(kind, path, law), times(kind, law, other) / TIMES)


def held_up(path: Path, law: Figures, calm_path: Path, calm: Figures) -> float:
    """By how many times a stuck law has three times the part of the link where no trouble was."""
    without = calm.goodput_bps / link_bps(calm_path)
    after = max(_LEAST_BPS, law.goodput_bps) / link_bps(path)
    return without / after / TIMES


def percent(kind: Kind, path: Path, figures: Figures) -> float:
    """The figure of a kind in percent: of the link, or of the packets sent; of a queue in ms."""
    if kind == "queue":
        return figures.queue_s * 1e3
    if kind == "waste":
        return figures.waste * 100.0
    return _rate(kind, figures) / link_bps(path) * 100.0


def from_s(path: Path) -> float:
    """From when on the figures are, in seconds."""
    return begins_s(path)
