"""The samples of a flow, gathered into cells of a few round-trip times.

A cause shows over some RTTs, not in one sample: a law grows and reduces its window once an RTT, and
iperf3 writes blocks of 128 KiB.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lfnlab.diagnose.evidence import Evidence, Floats

RTTS = 2.0
"""Least length of a cell in smallest RTTs."""
LEAST_S = 0.1
BLOCKS = 10
"""Blocks of iperf3 over which its rate is taken, where it is what was written."""
BLOCK_BYTES = 131_072
"""Of iperf3, where it is not told another."""
QUEUE_SEGMENTS = 3.0
"""Packets that wait in a queue; fewer may be a burst of one ACK."""
COARSE_RTTS = 6.0
"""In a longer cell a queue, or a slow start, comes and goes."""
AT_ONCE = 50
"""Segments that are lost together, as by a bucket that is empty."""
TICK_S = 1e-3
"""Of Linux's clock of timestamps."""
LEAST_QUEUE_S, LEAST_SMOOTHED_S = 5e-4, 1e-3
"""Shorter is the noise of hosts, as packets show it and as a socket does."""
GROWN = 1.25
"""A window that grows by this keeps pace with the transfer."""
MOST = 2000
"""Cells of a flow."""


@dataclass(frozen=True, eq=False)
class Cells:
    """One value a cell; NaN where nothing is told."""

    shown: Evidence
    base_s: float
    """Smallest RTT of the flow."""
    starts: np.ndarray[tuple[int], np.dtype[np.intp]]
    """First row of each cell."""
    edges_s: Floats
    rate_bps: Floats
    rtt_s: Floats
    """Median."""
    rtt_low_s: Floats
    """The lowest tenth."""
    rtt_high_s: Floats
    flight_bytes: Floats
    """Median of the samples, else goodput times RTT (Little)."""
    flight_high_bytes: Floats
    flight_low_bytes: Floats
    cwnd_bytes: Floats
    window_bytes: Floats
    """Median of the offered window."""
    unsent_bytes: Floats
    pacing_bps: Floats
    retransmits: Floats
    app_limited: Floats
    """Part of the samples."""
    idle: Floats
    """Part of the time in which nothing was under way, or nothing moved."""
    busy: Floats
    """Parts of the time."""
    rwnd_limited: Floats
    sndbuf_limited: Floats
    full: Floats
    """Part of the samples in which the offered window was full."""
    ack_delay_s: Floats
    """Wait of ACKs on their way: the most; at a receiver what data did not wait of the RTT, the
    least, since a sender may wait, too."""
    data_delay_s: Floats
    """Least wait of data on their way, at a receiver."""
    is_slow_start: Floats
    """Whether the window is below the slow-start threshold."""

    def __len__(self) -> int:
        return self.starts.size

    @property
    def lengths_s(self) -> Floats:
        """Time of each."""
        return np.diff(self.edges_s)

    @property
    def total_s(self) -> float:
        """Time of all."""
        return float(self.edges_s[-1] - self.edges_s[0])

    @cached_property
    def queue_segments(self) -> Floats:
        """Low RTT of the cell above the smallest of all, in segments at the rate of all streams.

        Bursts of the sender wait behind themselves: a higher RTT need not be a standing queue.
        """
        delay = self.rtt_low_s - self.base_s
        delay = np.fmin(delay, self.data_delay_s + TICK_S)
        found: Floats = delay * self._busy_bps / 8 / self.shown.segment_bytes
        return np.where(delay >= self.noise_s, found, np.minimum(found, 0.0))

    @cached_property
    def delay_segments(self) -> Floats:
        """Usual RTT of the cell above the smallest of all, in segments at that rate."""
        delay = self.rtt_s - self.base_s
        found: Floats = delay * self._busy_bps / 8 / self.shown.segment_bytes
        return np.where(delay >= self.noise_s, found, np.minimum(found, 0.0))

    @property
    def _busy_bps(self) -> Floats:
        """Rate of the flow and of its parallel streams, which wait in one queue."""
        return self.rate_bps / float(self.shown.flow.get("part") or 1.0)

    @property
    def noise_s(self) -> float:
        """Wait below which a queue does not show."""
        return LEAST_SMOOTHED_S if self.is_smoothed else LEAST_QUEUE_S

    @property
    def is_smoothed(self) -> bool:
        """Whether the RTT is a socket's, with the wakeups of its host."""
        return bool(np.isfinite(self.cwnd_bytes).any())

    @property
    def has_queue(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether packets wait on the path. A handshake's packet is small, and waits less."""
        return self.queue_segments >= QUEUE_SEGMENTS

    @cached_property
    def window_grows(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether the receiver's window grows in the cell or to the next one: autotuning."""
        rows = self.shown.window_bytes
        low, high = (_each(of, rows, self.starts) for of in (np.nanmin, np.nanmax))
        after = np.append(high[1:], np.nan)
        grown: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.fmax(high, after) >= GROWN * low
        return grown

    @property
    def at_receiver(self) -> bool:
        """Whether the times are a receiver's capture's, or one's on the way."""
        return self.shown.flow.get("captured_at") not in (None, "sender")

    @property
    def is_coarse(self) -> bool:
        """Whether a cell has so many RTTs that its RTT is of any time in it."""
        return bool(np.median(self.lengths_s) >= COARSE_RTTS * self.base_s)

    @property
    def has_flight(self) -> bool:
        """Whether the tool tells the bytes in flight."""
        return bool(np.isfinite(self.shown.inflight_bytes).any())


FULL, ROUGHLY = 0.9, 0.75
"""A window is full if this part of it is in flight, or if goodput times RTT is this part of it: the
blocks of iperf3, and the RTT of one moment, make that inexact."""


def of(shown: Evidence) -> Cells:
    """The cells of a flow, from the first data on to the last."""
    shown = _trimmed(shown)
    base_s = shown.min_rtt_s
    starts = _starts(shown, base_s)
    edges = np.append(shown.edges_s[starts], shown.edges_s[-1])
    lengths = np.diff(edges)
    rows = shown.lengths_s
    rate = _sums(_smooth(shown) * rows, starts) / lengths
    rtt = _each(np.nanmedian, shown.rtt_s, starts)
    little = rate * rtt / 8
    flight = shown.inflight_bytes
    sampled = _each(np.nanmedian, flight, starts)
    cwnd = _each(np.nanmax, shown.cwnd_bytes, starts)
    window = _each(np.nanmedian, shown.window_bytes, starts)
    room = shown.window_bytes - 2 * shown.segment_bytes
    filled = np.where(
        np.isfinite(flight) & np.isfinite(shown.window_bytes),
        (flight >= np.minimum(FULL * shown.window_bytes, room)) & (shown.window_bytes > 0),
        np.nan,
    )
    full = _each(np.nanmean, filled, starts)
    by_little = np.where(np.isfinite(little * window), little >= ROUGHLY * window, np.nan)
    full = np.where(np.isnan(full), by_little, full)
    stopped = np.where(np.isfinite(flight), flight <= 0, shown.goodput_bps <= 0).astype(float)
    below = np.where(
        np.isfinite(shown.cwnd_bytes) & np.isfinite(shown.ssthresh_bytes),
        shown.cwnd_bytes < shown.ssthresh_bytes,
        np.nan,
    )
    return Cells(
        shown,
        base_s,
        starts,
        edges,
        rate,
        rtt,
        _each(_low, shown.rtt_s, starts),
        _each(np.nanmax, shown.rtt_s, starts),
        np.where(np.isnan(sampled), little, sampled),
        _either(_each(np.nanmax, flight, starts), little),
        _either(_each(np.nanmin, flight, starts), little),
        cwnd,
        window,
        _each(np.nanmedian, shown.unsent_bytes, starts),
        _each(np.nanmedian, shown.pacing_bps, starts),
        _sums(shown.retransmits, starts),
        _each(np.nanmean, shown.app_limited, starts),
        _sums(stopped * rows, starts) / lengths,
        _sums(shown.busy_s, starts) / lengths,
        _sums(shown.rwnd_limited_s, starts) / lengths,
        _sums(shown.sndbuf_limited_s, starts) / lengths,
        full,
        _either(
            _each(np.nanmax, shown.ack_delay_s, starts),
            _each(_low, shown.rtt_s - base_s - shown.data_delay_s, starts),
        ),
        _each(_low, shown.data_delay_s, starts),
        _each(np.nanmean, below, starts),
    )


def _trimmed(shown: Evidence) -> Evidence:
    """Without the rows at both ends in which nothing moved, as a log of ss has them."""
    moved = np.flatnonzero((shown.goodput_bps > 0) | (shown.inflight_bytes > 0))
    if np.isnan(shown.inflight_bytes).all():
        return shown  # A window may be under way in them.
    if not moved.size or moved.size == shown.goodput_bps.size:
        return shown
    first, last = int(moved[0]), int(moved[-1]) + 1
    columns = {
        name: value[first : last + (name == "edges_s")]
        for name, value in vars(shown).items()
        if name != "flow"
    }
    return replace(shown, **columns)


def _starts(shown: Evidence, base_s: float) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    rows = shown.lengths_s
    total_s = float(shown.edges_s[-1] - shown.edges_s[0])
    least_s = max(LEAST_S, RTTS * base_s if base_s > 0 else 0.0, total_s / MOST)
    starts, begin_s = [0], float(shown.edges_s[0])
    for row in range(1, rows.size):
        # Two thirds: a row that ends a little early is whole.
        if shown.edges_s[row] - begin_s >= least_s - rows[row] / 3:
            starts.append(row)
            begin_s = float(shown.edges_s[row])
    if len(starts) > 1 and shown.edges_s[-1] - begin_s < least_s / 2:
        starts.pop()
    return np.array(starts)


def _smooth(shown: Evidence) -> Floats:
    """The goodput; where it is what iperf3 wrote, its mean over some blocks."""
    rates = shown.goodput_bps
    if not shown.flow.get("written_bytes"):
        return rates
    edges = shown.edges_s
    sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(rates) * np.diff(edges) / 8)])
    total_s = float(edges[-1] - edges[0])
    if sums[-1] <= 0:
        return rates
    half_s = min(BLOCKS * BLOCK_BYTES / (sums[-1] / total_s), total_s / 4) / 2
    middles = (edges[1:] + edges[:-1]) / 2
    lows = np.minimum(np.maximum(middles - half_s, edges[0]), edges[:-1])
    highs = np.maximum(np.minimum(middles + half_s, edges[-1]), edges[1:])
    found: Floats = (
        (np.interp(highs, edges, sums) - np.interp(lows, edges, sums)) * 8 / (highs - lows)
    )
    return found


def _sums(values: Floats, starts: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Floats:
    """Sums of each cell; NaN where every value is."""
    sums = np.add.reduceat(np.nan_to_num(values), starts)
    known = np.add.reduceat(np.isfinite(values).astype(int), starts)
    found: Floats = np.where(known > 0, sums, np.nan)
    return found


def _each(
    of_some: Callable[[Floats], float],
    values: Floats,
    starts: np.ndarray[tuple[int], np.dtype[np.intp]],
) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # Of cells without a value.
        return np.array([float(of_some(part)) for part in np.split(values, starts[1:])])


def _low(values: Floats) -> float:
    return float(np.nanquantile(values, 0.1))


def _either(first: Floats, other: Floats) -> Floats:
    found: Floats = np.where(np.isnan(first), other, first)
    return found
