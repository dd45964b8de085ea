"""How long packets wait, and transfers take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lfnlab.errors import MetricError
from lfnlab.metrics.tables import (
    Spread,
    alike,
    link_counter,
    positive,
    rates_of,
    rows_by_flow,
    sampled,
    spread,
)

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike

    from lfnlab.metrics.tables import Rate

__all__ = [
    "completion",
    "frames_in_time",
    "queue_empty",
    "queueing_delay",
    "rtt_excess",
    "unfinished",
]


def queueing_delay(
    queues: pl.DataFrame,
    link: int,
    rate_bps: Rate | None = None,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> Spread:
    """Time that the queue of a link needs to drain, over the samples.

    An average over time; the summary's ``mean_queue_s`` and ``p99_queue_s`` are over packets, which
    meet a full queue more often. Samples while the link is down are left out. ``rate_bps`` is for
    tables without the column drain_s.

    Formula: 8 b / C, b the bytes that wait, C the rate then; on a link that follows a trace until
        the opportunity that sends the last of them, behind a shaper with the tokens that are there;
        mean, 50th, 95th, 99th percentile, largest
    Unit: s
    Source: [METR], delay
    """
    if sampled(queues, "drain_s"):
        _, drain_s = link_counter(queues, "drain_s", link, start_s, end_s, cumulative=False)
        return spread(drain_s[np.isfinite(drain_s)])
    if rate_bps is None:
        raise MetricError("the table has no drain_s; give the link's rate", "rate_bps")
    t, waiting = link_counter(queues, "bytes", link, start_s, end_s, cumulative=False)
    rates = rates_of(rate_bps)
    at = np.searchsorted([since for since, _ in rates], t, side="right") - 1
    rate = np.array([rate for _, rate in rates], dtype=float)[at]
    up = rate > 0
    return spread(8.0 * waiting[up] / rate[up])


def queue_empty(
    queues: pl.DataFrame, link: int, *, start_s: float = 0.0, end_s: float | None = None
) -> float:
    """Share of the time in which no packet waits at a link.

    Formula: samples with an empty queue / samples
    Unit: 1
    Source: Appenzeller, Keslassy, McKeown, SIGCOMM 2004
    """
    _, waiting = link_counter(queues, "packets", link, start_s, end_s, cumulative=False)
    return float(np.mean(waiting == 0))


def rtt_excess(
    flows: pl.DataFrame,
    flow: int,
    base_rtt_s: float,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> Spread:
    """Queueing delay of a flow: RTT beyond the base RTT, over all queues of both directions.

    Formula: RTT samples less the base RTT; mean, 50th, 95th, 99th percentile, largest
    Unit: s
    Source: [METR], delay; [TCPEVAL], queueing delay
    """
    positive("base_rtt_s", base_rtt_s)
    rows = rows_by_flow(flows, ("rtt_s",), start_s, end_s)
    if flow not in rows:
        raise MetricError(f"{flow}; allowed: {', '.join(map(str, rows))}", "flow")
    rtt = rows[flow][1]
    return spread(np.maximum(0.0, rtt[rtt > 0] - base_rtt_s))


def completion(size_bytes: ArrayLike, seconds: ArrayLike) -> dict[int, Spread]:
    """Flow completion times by decade of size: key n holds sizes from 10^n to 10^(n+1) bytes.

    Formula: last byte acknowledged less start; mean, 50th, 95th, 99th percentile, largest
    Unit: s
    Source: Dukkipati, McKeown, CCR 36(1), 2006; [TCPEVAL], completion times by size
    """
    size, time = np.asarray(size_bytes, dtype=float), np.asarray(seconds, dtype=float)
    alike("size_bytes, seconds", size, time)
    if not (np.all(size >= 1) and np.all(time >= 0)):
        raise MetricError("allowed: at least 1 byte, and no negative time", "size_bytes, seconds")
    # From text, because log10 of 1000 is below 3 on some machines.
    decade = np.array([len(str(int(s))) - 1 for s in size], dtype=int)
    return {int(n): spread(time[decade == n]) for n in np.unique(decade)}


def frames_in_time(due: int, in_time: int) -> float:
    """Share of the frames of a stream that are at the receiver by their deadline.

    Formula: frames in time / frames whose deadline lies from the warm-up to the end of the run; a
        frame is a packet of UDP, or a segment of an application, which TCP delivers in order
    Unit: 1
    Source: HTCP-BE study, whose e-VLBI correlates what has come; RFC 3550, for media over RTP
    """
    return in_time / due if due else math.nan


def unfinished(seconds: Sequence[float | None]) -> float:
    """Share of the flows with a size that had not finished; their completion times are not known.

    Formula: flows without a completion time / flows
    Unit: 1
    Source: this laboratory's: without it, completion times are those of the lucky
    """
    return sum(time is None for time in seconds) / len(seconds) if seconds else math.nan
