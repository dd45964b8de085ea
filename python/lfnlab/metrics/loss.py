"""Losses: rates and patterns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lfnlab.errors import MetricError
from lfnlab.metrics.tables import (
    SLACK,
    alike,
    counters,
    link_counter,
    need_columns,
    ordered,
    positive,
)

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike

__all__ = [
    "loss_bursts",
    "loss_event_rate",
    "loss_events",
    "loss_rate",
    "phase_locked",
    "retransmission_ratio",
    "segments_sent",
]

_FAST_RETRANSMIT, _TIMEOUT, _ECN = 0, 1, 2
_REDUCTIONS = (_FAST_RETRANSMIT, _TIMEOUT, _ECN)


def loss_rate(
    queues: pl.DataFrame, link: int, *, start_s: float = 0.0, end_s: float | None = None
) -> float:
    """Share of the packets offered to a link that its queue dropped.

    Formula: drops / (arrivals + n), n the packets at the link at the start of the window
    Unit: 1
    Source: [METR], loss; CW-HSTCP study: friendly where background loss is below 1e-3
    """
    _, drops = link_counter(queues, "drops", link, start_s, end_s)
    _, arrivals = link_counter(queues, "arrivals", link, start_s, end_s)
    _, waiting = link_counter(queues, "packets", link, start_s, end_s, cumulative=False)
    offered = float(arrivals[-1] - arrivals[0] + waiting[0])
    return float(drops[-1] - drops[0]) / offered if offered > 0 else math.nan


def segments_sent(
    flows: pl.DataFrame,
    segment_bytes: float,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> dict[int, tuple[float, float]]:
    """New segments and retransmissions that each flow sent in the window.

    New segments are counted when they are acknowledged; the error is at most a window.
    """
    positive("segment_bytes", segment_bytes)
    new = counters(flows, "delivered_bytes", start_s, end_s)
    again = counters(flows, "retransmits", start_s, end_s)
    counts = {}
    for flow, (_, delivered) in new.items():
        retransmits = float(again[flow][1][-1] - again[flow][1][0])
        fresh = float(delivered[-1] - delivered[0]) / segment_bytes
        counts[flow] = (fresh + retransmits, retransmits)
    return counts


def retransmission_ratio(sent: float, retransmits: float) -> float:
    """Fraction of segments sent that are retransmissions: 1 - goodput/throughput.

    Formula: retransmissions / segments sent
    Unit: 1
    Source: [METR], goodput and throughput
    """
    return retransmits / sent if sent > 0 else math.nan


def loss_events(
    events: pl.DataFrame,
    flow: int,
    rtt_s: float,
    *,
    start_s: float = 0.0,
    end_s: float = math.inf,
) -> int:
    """Loss events of a flow: losses within one RTT are one.

    Formula: reductions (fast retransmit, timeout, ECN), those within an RTT of an event's first
        counted once
    Unit: events
    Source: RFC 5348, 5.2; [METR], loss
    """
    positive("rtt_s", rtt_s)
    return episodes(reductions(events, start_s, end_s).get(flow, []), rtt_s)


def reductions(events: pl.DataFrame, start_s: float, end_s: float) -> dict[int, list[float]]:
    """When each flow reduced its window after a loss, in order of time; flows that did."""
    need_columns("events", events, "t_s", "flow", "kind")
    ordered(start_s, end_s)
    t, flows, kinds = (events[name].to_numpy() for name in ("t_s", "flow", "kind"))
    inside = np.isin(kinds, _REDUCTIONS) & (t >= start_s) & (t <= end_s)
    found: dict[int, list[float]] = {}
    t, flows = t[inside], flows[inside]
    order = np.argsort(t, kind="stable")
    for flow, at_s in zip(flows[order].tolist(), t[order].tolist(), strict=True):
        found.setdefault(flow, []).append(at_s)
    return found


def episodes(times_s: Sequence[float], rtt_s: float) -> int:
    """How many of these times, in order, are not within an RTT of the first of an episode."""
    count, first_s = 0, -math.inf
    for t in times_s:
        if t > first_s + rtt_s:
            count, first_s = count + 1, t
    return count


def loss_event_rate(events: int, sent: float) -> float:
    """Loss events a segment sent, the p of response functions.

    Formula: loss events / segments sent
    Unit: 1
    Source: RFC 5348, 5; [METR], loss
    """
    return events / sent if sent > 0 else math.nan


def loss_bursts(
    queues: pl.DataFrame,
    link: int,
    gap_s: float,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> pl.DataFrame:
    """Episodes of drops at a link: runs of samples with drops, with pauses up to a given gap.

    Formula: drops and arrivals in each maximal run of samples with drops, at most the gap (the
        longest RTT) apart; times are to the sample
    Unit: packets an episode, s
    Source: [METR], loss, names bursts; what joins an episode is this laboratory's

    Returns:
        Columns start_s, end_s, drops, arrivals.
    """
    import polars as pl

    if not (math.isfinite(gap_s) and gap_s >= 0):
        raise MetricError(f"{gap_s:g}; allowed: at least 0", "gap_s")
    t, drops = link_counter(queues, "drops", link, start_s, end_s)
    _, arrivals = link_counter(queues, "arrivals", link, start_s, end_s)
    # Interval i lies between samples i and i + 1.
    hit = np.flatnonzero(np.diff(drops) > 0)
    apart = t[hit[1:]] - t[hit[:-1] + 1] > gap_s + SLACK
    first = hit[np.concatenate(([True], apart))] if hit.size else hit
    last = hit[np.concatenate((apart, [True]))] + 1 if hit.size else hit
    return pl.DataFrame(
        {
            "start_s": t[first],
            "end_s": t[last],
            "drops": (drops[last] - drops[first]).astype(np.int64),
            "arrivals": (arrivals[last] - arrivals[first]).astype(np.int64),
        }
    )


def phase_locked(
    drops: ArrayLike, arrivals: ArrayLike, *, factor: float = 5.0, at_least: float = 100.0
) -> list[int]:
    """Flows with phase effects: their loss rate is far from the mean of all flows.

    Deterministic sources with RTTs in ratio to the packet time can lock so that one flow always,
    or never, meets the full buffer. The stored tables do not count drops by flow. Retransmissions
    replace drops, and segments sent replace arrivals.

    Formula: drops/arrivals above 5 times, or below 1/5 of, all flows' drops / all flows' arrivals,
        where the flow lost, or by that mean would have lost, more than 100
    Unit: indices of flows
    Source: Floyd, Jacobson, Internetworking 3(3), 1992 (the effect); the detector is this
        laboratory's
    """
    lost, offered = np.asarray(drops, dtype=float), np.asarray(arrivals, dtype=float)
    alike("drops, arrivals", lost, offered)
    if not offered.sum() > 0:
        return []
    expected = lost.sum() / offered.sum() * offered
    unlike = (lost > factor * expected) | (lost * factor < expected)
    return [int(i) for i in np.flatnonzero(unlike & (np.maximum(lost, expected) > at_least))]
