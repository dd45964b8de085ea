"""How much of each choice is simulated: chosen from predicted packets, never from a clock."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lfnlab.control_laws.prototype import is_prototype

if TYPE_CHECKING:
    from lfnlab.advise.choices import Choice
    from lfnlab.advise.path import Path

#: Packets of a window-based law that one advice simulates at most, about 50 ns each.
ROUND_1, ROUND_2, NEIGHBOUR, UDT = 160e6, 200e6, 60e6, 40e6
#: Costs of a packet of other laws, in packets of a window-based law.
WEIGHTS, UDT_WEIGHT, HEADER_WEIGHT = {"bbr": 2.5}, 3.5, 40.0
#: Cost of storing a run.
RUN_PACKETS = 300e3
FEWEST, FINALISTS, FINALISTS_IN_PART = 6, 6, 4
LEAST_PART = 0.05
"""Of the link: slower choices are simulated as if they had it."""
SEEDS_1, SEEDS_2, LEAST_SEEDS = 3, 40, 3
FIRST_RTTS, LEAST_RTTS = 60, 30
RECOVERIES, SETTLING_RTTS = 50, 1200
"""A whole transfer may take this many times its time at the link's rate, and these RTTs."""
SHARED_RECOVERIES, SHARED_RTTS = 4, 300
"""Beside a neighbour, who costs packets after the end of the transfer too."""


@dataclass(frozen=True)
class Span:
    """How long a run is, and whether the packets suffice for the whole transfer."""

    duration_s: float
    whole: bool


@dataclass(frozen=True)
class Amount:
    """A round: the seeds, and the span of each choice."""

    seeds: int
    spans: tuple[Span, ...]


def weight(choice: Choice) -> float:
    """Cost of its packet."""
    return HEADER_WEIGHT if is_prototype(choice.law) else WEIGHTS.get(choice.law, 1.0)


def round_1(path: Path, size: int, queue: Sequence[Choice], shared: bool, random: bool) -> Amount:
    """The first round, of as many of the choices in this order as there are packets for."""
    seeds = SEEDS_1 if random else 1
    least = min(_most_packets(path, size, shared), _packets(path, FIRST_RTTS * path.rtt_s))
    count = _fitting(queue, ROUND_1, (least + RUN_PACKETS) * seeds)
    if count < min(FEWEST, len(queue)):
        seeds = 1
        count = max(FEWEST, _fitting(queue, ROUND_1, least + RUN_PACKETS))
    chosen = queue[:count]
    span = _span(path, size, _share(chosen, seeds, ROUND_1), shared)
    return Amount(seeds, (span,) * len(chosen))


def round_2(
    path: Path,
    size: int,
    finalists: Mapping[Choice, float],
    shared: bool,
    random: bool,
) -> Amount:
    """The second round, of the finalists with the most of the link that they can have.

    As many seeds as there are packets for; if there are too few for whole transfers, a slow choice
    is simulated for a longer time than a fast one.
    """
    chosen = list(finalists)
    least = _most_packets(path, size, shared)
    seeds = int(ROUND_2 / sum(map(weight, chosen)) / (least + RUN_PACKETS))
    fewest = LEAST_SEEDS if path.loss > 0.0 or shared else 1
    seeds = max(fewest, min(SEEDS_2, seeds)) if random else 1
    share = _share(chosen, seeds, ROUND_2)
    spans = []
    for most in finalists.values():
        span = _span(path, size, share, shared)
        if not span.whole and not shared:
            longer_s = span.duration_s / min(1.0, max(LEAST_PART, most))
            span = Span(min(needs_s(path, size, shared), longer_s), whole=False)
        spans.append(span)
    return Amount(seeds, tuple(spans))


def udt(path: Path, size: int, seeds: int) -> Amount:
    """The runs of ``lfn send``."""
    most = _most_packets(path, size, shared=False)
    seeds = max(1, min(seeds, int(UDT / UDT_WEIGHT / (most + RUN_PACKETS))))
    return Amount(seeds, (_span(path, size, UDT / UDT_WEIGHT / seeds, shared=False),))


def neighbour_s(path: Path, runs: int) -> float:
    """How long flows beside a neighbour are simulated."""
    share_s = NEIGHBOUR / (1.5 * runs) / path.packets_per_s
    return max(LEAST_RTTS * path.rtt_s, min(60.0 + SHARED_RTTS * path.rtt_s, share_s))


def needs_s(path: Path, size: int, shared: bool) -> float:
    """Enough time for the whole transfer, unless the law is far too slow for the path."""
    best_s = size * 8 / path.goodput_bps
    if shared:
        return best_s * SHARED_RECOVERIES + SHARED_RTTS * path.rtt_s
    return best_s * RECOVERIES + SETTLING_RTTS * path.rtt_s


def _share(chosen: Sequence[Choice], seeds: int, budget: float) -> float:
    return budget / (sum(map(weight, chosen)) * seeds) - RUN_PACKETS


def _most_packets(path: Path, size: int, shared: bool) -> float:
    """Packets of a run of the whole transfer."""
    if shared:
        return _packets(path, needs_s(path, size, shared))
    return 1.05 * size / path.payload_bytes


def _span(path: Path, size: int, packets: float, shared: bool) -> Span:
    """The longest run with these packets, at most the whole transfer."""
    whole_s = needs_s(path, size, shared)
    if _most_packets(path, size, shared) <= packets:
        return Span(whole_s, whole=True)
    part_s = max(LEAST_RTTS * path.rtt_s, _lasting_s(path, packets))
    return Span(min(whole_s, part_s), whole=False)


def _rounds(path: Path) -> float:
    """Round trips in which a stream doubles until it fills the path."""
    return max(0.0, math.log2(max(1.0, path.bdp_packets / 10)) - 1)


def _packets(path: Path, duration_s: float) -> float:
    """Packets that a path carries in a time at most, with a start."""
    rounds = _rounds(path)
    doubled = 10 * 2 ** min(rounds, duration_s / path.rtt_s)
    return doubled + max(0.0, duration_s - rounds * path.rtt_s) * path.packets_per_s


def _lasting_s(path: Path, packets: float) -> float:
    """The time in which a path carries these packets at most, with a start."""
    rounds = _rounds(path)
    return rounds * path.rtt_s + max(0.0, packets - 10 * 2**rounds) / path.packets_per_s


def _fitting(queue: Sequence[Choice], budget: float, cost: float) -> int:
    count, left = 0, budget
    for choice in queue:
        left -= weight(choice) * cost
        if left < 0:
            break
        count += 1
    return count
