"""Limits of the network: losses with a queue and without, changes of the path, late ACKs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lfnlab.diagnose.cells import AT_ONCE, BLOCK_BYTES, QUEUE_SEGMENTS
from lfnlab.diagnose.names import UNDECIDED
from lfnlab.diagnose.steady import is_bbr, resumed, runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lfnlab.diagnose.cells import Cells
    from lfnlab.diagnose.evidence import Floats

    Flags = NDArray[np.bool_]

TOP = 0.5
"""A queue that overflows was at least this part of its usual length at losses."""
STALL_S, STALL_RTTS = 0.15, 4.0
"""Nothing arrives for so long, though a window is under way."""
ONE = 1.5
"""Segments of a window after a timeout; twice so many blocks of iperf3 are no chance."""
WHOLE, SEGMENTS = 0.3, 5
"""Part of the usual bytes in flight, and segments, that are lost at once in an outage; after a lost
retransmission SACK has told of most of a window."""
MOST_CHANGED = 0.7
"""Part of the time of outages, of a path that is known to work between."""
SHIFT = 1.6
"""The RTT is so many times what the bytes in flight and the usual rate give."""
FEW, SURE = 3, 5
"""Losses apart in time that tell a cause, and that can make it certain."""
ONE_RATE, MANY_RATES = 0.29, 0.35
"""Coefficient of variation of the rate behind a policer, and of one that is none for sure. Of drawn
transfers policers had up to 0.27, random losses from 0.31 on, except one."""
USUAL, STRETCH, TOGETHER_S = 2.2, 3.5, 1e-3
"""Segments that an ACK acknowledges usually, and where most are missing; the time between two."""
SURE_S, SURE_PART = 2e-3, 0.05
"""Wait in a queue that overflows for sure, and its part of the smallest RTT."""
BEGIN, MANY = 3, 8
"""Cells of the start, and those that show whether RTT and window rise together."""
ALIKE, SHORT, LONG = 0.4, 0.9, 20.0
"""Rank correlation of RTT and window, and packets in a queue that is short, or long for sure."""


@dataclass(frozen=True)
class Epochs:
    """Cells in which packets were sent again, runs of them together."""

    begins: NDArray[np.intp]
    ends: NDArray[np.intp]
    lost: Floats
    queue_segments: Floats
    """Longest queue right before and at the loss."""
    waits_s: Floats
    """The same as a time."""
    delay_segments: Floats
    """The same by the usual RTT of the cell."""
    flight_bytes: Floats
    rate_bps: Floats


def epochs(cells: Cells, free: Flags) -> Epochs:
    """Losses of the cells that are free."""
    lost = np.nan_to_num(cells.retransmits)
    found = [(begin, end) for begin, end in runs(lost > 0) if free[begin:end].any()]
    begins = np.array([begin for begin, _ in found], dtype=np.intp)
    ends = np.array([end for _, end in found], dtype=np.intp)
    queue, waits, delay, flight, rate, counts = [], [], [], [], [], []
    usual = (cells.rtt_s - cells.base_s) * cells.rate_bps / 8 / cells.shown.segment_bytes
    rates = _rates(cells)
    for begin, end in found:
        before = slice(max(0, begin - 1), begin + 1)
        queue.append(_most(cells.queue_segments[before]))
        delay.append(_most(usual[before]))
        waits.append(_most((cells.rtt_low_s - cells.base_s)[before]))
        flight.append(_most(cells.flight_bytes[before]))
        rate.append(_most(rates[before]))
        counts.append(float(lost[begin:end].sum()))
    return Epochs(
        begins,
        ends,
        np.array(counts),
        np.array(queue),
        np.array(waits),
        np.array(delay),
        np.array(flight),
        np.array(rate),
    )


def _rates(cells: Cells) -> Floats:
    """Rates; by the window where they are of what iperf3 wrote, which comes in blocks."""
    by_window = np.fmin(cells.cwnd_bytes, cells.window_bytes) * 8 / cells.rtt_s
    is_written = bool(cells.shown.flow.get("written_bytes")) and not cells.is_coarse
    has_window = np.isfinite(cells.cwnd_bytes) & np.isfinite(by_window) & is_written
    found: Floats = np.where(has_window, by_window, cells.rate_bps)
    return found


def causes(cells: Cells, free: Flags, doubts: list[str]) -> Iterator[tuple[Flags, str, Flags]]:
    """Cells by cause, and whether that is sure."""
    none = np.zeros(len(cells), bool)
    found = epochs(cells, free)
    if not found.begins.size:
        if (free & cells.has_queue).sum() >= 0.5 * free.sum():
            yield free, "queue-overflow", none
        return
    usual = float(np.nanquantile(np.nan_to_num(found.queue_segments), 0.75))
    queued = found.queue_segments >= max(QUEUE_SEGMENTS, TOP * usual)
    if cells.is_coarse:
        queued[:] = cells.has_queue[free].mean() >= TOP
    # Each cell is of the loss that ends its growth, else of the last one.
    owner = np.searchsorted(found.ends, np.arange(len(cells)), "right")
    owner = np.minimum(owner, found.begins.size - 1)
    by_queue = free & queued[owner]
    without = free & ~queued[owner]
    waits_s = float(np.nanmedian(found.waits_s))
    long = usual >= 2 * QUEUE_SEGMENTS and waits_s >= max(SURE_S, SURE_PART * cells.base_s)
    # At the receiver a queue of ACKs looks alike; samples of many RTTs hide a rate that changes.
    is_shown = cells.shown.flow.get("captured_at") in (None, "sender") and not cells.is_coarse
    sure = is_shown and queued.mean() >= 0.8 and found.begins.size >= FEW and long
    yield by_queue, "queue-overflow", by_queue & sure
    if _follows_window(cells, found, free):
        yield without, "queue-overflow", none
    kind, sure = _without_queue(cells, found, ~queued)
    yield without, kind, without & sure


def _follows_window(cells: Cells, found: Epochs, free: Flags) -> bool:
    """Whether the RTT rises with what is in flight: a queue of few packets, or one that stands."""
    sent = np.where(np.isfinite(cells.cwnd_bytes), cells.cwnd_bytes, cells.flight_bytes)
    known = free & np.isfinite(cells.rtt_s) & np.isfinite(sent)
    known[:BEGIN] = False
    if known.sum() < MANY or found.begins.size < FEW:
        return False
    low, high = np.quantile(cells.rtt_s[known], [0.1, 0.9])
    spread = float(high - low) * float(np.nanmedian(cells.rate_bps[known])) / 8
    packets = spread / cells.shown.segment_bytes
    if packets >= LONG:
        return True
    ranks = [np.argsort(np.argsort(values[known])) for values in (cells.rtt_s, sent)]
    like = float(np.corrcoef(ranks[0], ranks[1])[0, 1])
    return like >= ALIKE and packets >= SHORT and float(np.nanmedian(found.delay_segments)) >= SHORT


def _without_queue(cells: Cells, found: Epochs, which: Flags) -> tuple[str, bool]:
    """Random losses or a policer: losses at any rate, or at one.

    The first is left out: slow start overshoots.
    """
    begin = int(found.begins[which][0]) + 1 if which.any() else 0
    rates = found.rate_bps[which]
    rates = rates[1:] if rates.size > FEW else rates
    rates = rates[np.isfinite(rates)]
    if rates.size < FEW:
        if not rates.size:
            return UNDECIDED, False
        # BBR fills a bucket once, and then keeps to its rate.
        at_once = is_bbr(cells) and float(np.sum(found.lost[which])) >= AT_ONCE
        return "policer" if at_once else "random-loss", False
    spread = float(np.std(rates) / np.mean(rates)) if np.mean(rates) > 0 else 0.0
    later = _rates(cells)[begin:]
    whole = float(np.nanstd(later) / np.nanmean(later)) if np.nanmean(later) > 0 else 0.0
    if whole <= ONE_RATE:
        return "policer", False
    empty = np.nanquantile(np.nan_to_num(found.queue_segments[which]), 0.9) < 1.0
    return "random-loss", bool(
        empty
        and rates.size >= SURE
        and min(spread, whole) >= MANY_RATES
        and not stretch(cells)[0] > USUAL
    )


def changes(cells: Cells) -> Iterator[tuple[Flags, Flags]]:
    """Cells of a path that changed: nothing arrives, or the load does not explain the RTT."""
    shown = cells.shown
    which = np.zeros(len(cells), bool)
    strong = which.copy()
    flight = shown.inflight_bytes
    at_sender = shown.flow.get("captured_at") in (None, "sender")
    if np.isfinite(flight).any():
        least_s = max(STALL_S, STALL_RTTS * cells.base_s) if cells.base_s > 0 else STALL_S
        usual = float(np.nanmedian(flight))
        silent = (shown.goodput_bps <= 0) & (flight > WHOLE * usual) & ~resumed(cells)
        for begin, end in runs(silent):
            start_s, end_s = shown.edges_s[begin], shown.edges_s[end]
            if end_s - start_s < least_s or flight[begin] < SEGMENTS * shown.segment_bytes:
                continue
            over = (cells.edges_s[1:] > start_s) & (cells.edges_s[:-1] < end_s)
            which |= over
            if end_s - start_s >= 2 * least_s and at_sender:
                strong |= over
    elif np.isfinite(shown.cwnd_bytes).any() and not shown.flow.get("target_bps"):
        # A window of one segment follows a timeout; iperf3 has always data to write.
        timeouts = shown.cwnd_bytes <= ONE * shown.segment_bytes
        written = np.nansum(shown.goodput_bps * shown.lengths_s) / cells.total_s
        often = written * shown.lengths_s / 8 >= ONE * 2 * BLOCK_BYTES
        silent = (timeouts | (often & (shown.goodput_bps <= 0))) & (shown.lengths_s >= STALL_S)
        for begin, end in runs(silent):
            over = (cells.edges_s[1:] > shown.edges_s[begin]) & (
                cells.edges_s[:-1] < shown.edges_s[end]
            )
            which |= over
    top = float(np.nanquantile(cells.rate_bps, 0.9))
    if top > 0 and cells.base_s > 0:
        loaded_s = np.maximum(cells.base_s, cells.flight_bytes * 8 / top)
        far = (cells.rtt_low_s >= SHIFT * loaded_s) & (cells.rate_bps <= top / SHIFT)
        far &= cells.flight_bytes > 3 * shown.segment_bytes
        far &= np.nan_to_num(cells.ack_delay_s) < 0.5 * (cells.rtt_low_s - loaded_s)
        for begin, end in runs(far):
            if end - begin >= (1 if cells.is_coarse else 2):
                which[begin:end] = True
    spells = runs(which)
    if (
        sum(cells.edges_s[end] - cells.edges_s[begin] for begin, end in spells)
        < 0.05 * cells.total_s
    ):
        return
    if cells.lengths_s[which].sum() > MOST_CHANGED * cells.total_s:
        strong[:] = False  # Nothing comes: it may be the ACKs alone that are lost.
    # A path that changes again and again has good times between.
    longest = max(cells.edges_s[end] - cells.edges_s[begin] for begin, end in spells)
    for (_, end), (begin, _) in pairwise(spells):
        if cells.edges_s[begin] - cells.edges_s[end] <= 2 * longest:
            which[end:begin] = True
    yield which, strong & which


def slow_acks(cells: Cells) -> tuple[Flags, Flags]:
    """Cells in which the way back has most of the queueing delay."""
    delay = cells.rtt_high_s - cells.base_s
    late = cells.ack_delay_s
    which = (late >= max(0.1 * cells.base_s, 2e-3)) & (late >= 0.5 * delay)
    which = np.nan_to_num(which).astype(bool)
    if which.mean() < 0.3:
        which[:] = False
    return which, which & (late >= 0.25 * cells.base_s)


def stretch(cells: Cells) -> tuple[float, float]:
    """Segments that an ACK acknowledges, and the time between two; NaN where ACKs are not told.

    A receiver acknowledges every second segment; one that gathers segments does so within about a
    millisecond.
    """
    shown = cells.shown
    acks = float(np.nansum(shown.acks))
    if not np.isfinite(shown.acks).any() or acks < MANY:
        return np.nan, np.nan
    segments = float(np.nansum(shown.goodput_bps * shown.lengths_s)) / 8 / shown.segment_bytes
    moving_s = float(shown.lengths_s[shown.goodput_bps > 0].sum())
    return segments / acks, moving_s / acks


def _most(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else np.nan
