"""Limits of the network: losses with a queue and without, changes of the path, late ACKs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lfnlab.diagnose.cells import AT_ONCE, QUEUE_SEGMENTS
from lfnlab.diagnose.names import UNDECIDED
from lfnlab.diagnose.steady import is_bbr, reaches_limit, resumed, runs

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
BETWEEN = 6.0
"""Good times of a path that changes again and again, in its longest bad ones."""
SHIFT, SHIFT_S, ALIKE_LOAD = 1.4, 0.005, 0.9
"""A longer way: so many times the RTT with as much under way, and a host's delay; that part of it
is as much."""
FEW, SURE = 3, 5
"""Losses apart in time that tell a cause, and that can make it certain."""
ONE_RATE, MANY_RATES = 0.29, 0.35
"""Coefficient of variation of the rate behind a policer, and of one that is none for sure. Of drawn
transfers policers had up to 0.27, random losses from 0.31 on, except one. A window that halves, and
grows evenly again, has 0.19."""
FASTER, SOMETIMES = 1.5, 0.1
"""A full link takes so many times its rate in this part of the time: its rate changes. Of drawn
transfers over one that does not, none did."""
STEADY = 0.2
"""Coefficient of variation of the rate of a full link, where that is certain."""
LINK_RATE = 0.1
"""The same at a link that is always busy; random losses leave more."""
CLUMPED = 2.0
"""The window is so many times what losses one by one would leave: they come many at once. Of drawn
tests of iperf3 random losses had up to 1.7, policers from 2.2 on."""
PROBED, RESISTS = 1 / 32, 0.2
"""Of eight RTTs BBR sends 1.25 times its rate in one, so a full link drops a quarter of an eighth;
and the lost part up to which it keeps its rate."""
ALONE = 0.9
"""Part of all data that went its way, of a flow that has no others beside it."""
STANDS, STANDS_LONG = 0.2, 0.3
"""Part of the samples of many RTTs that find a queue, if it overflows now and then; one that loses
many at once stands for longer."""
USUAL, STRETCH, TOGETHER_S = 2.2, 3.5, 1e-3
"""Segments that an ACK acknowledges usually, and where most are missing; the time between two."""
SURE_S, SURE_PART = 2e-3, 0.05
"""Wait in a queue that overflows for sure, and its part of the smallest RTT."""
MANY, IN_STEP = 5, 0.9
"""Cells that show whether the rate rises with the window, and the rank correlation then."""


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
    rates = _rates(cells)
    for begin, end in found:
        before = slice(max(0, begin - 1), begin + 1)
        queue.append(_most(cells.queue_segments[before]))
        delay.append(_most(cells.delay_segments[before]))
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
    rtts_s = np.where(cells.rtt_s > 0, cells.rtt_s, np.nan)
    by_window = np.fmin(cells.cwnd_bytes, cells.window_bytes) * 8 / rtts_s
    is_written = bool(cells.shown.flow.get("written_bytes")) and not cells.is_coarse
    has_window = np.isfinite(cells.cwnd_bytes) & np.isfinite(by_window) & is_written
    found: Floats = np.where(has_window, by_window, cells.rate_bps)
    return found


def causes(
    cells: Cells, free: Flags, doubts: list[str], *, has_changed: bool = False
) -> Iterator[tuple[Flags, str, Flags]]:
    """Cells by cause, and whether that is sure; ``has_changed``: the path did in other cells."""
    none = np.zeros(len(cells), bool)
    if len(cells) < FEW:
        return  # As of iperf3, which ACKs that were lost held up.
    found = epochs(cells, free)
    if not found.begins.size:
        if (free & cells.has_queue).sum() >= 0.5 * free.sum():
            yield free, "queue-overflow", none
        return
    usual = float(np.nanquantile(np.nan_to_num(found.queue_segments), 0.75))
    queued = found.queue_segments >= max(QUEUE_SEGMENTS, TOP * usual)
    if is_bbr(cells):
        queued[:] = _of_bbr(cells) == "queue-overflow"
    elif cells.is_coarse:
        later = free.copy()
        later[: min(found.ends[0], len(cells) // 2)] = False
        times, _ = clumps(cells, later)
        least = STANDS_LONG if times >= CLUMPED else STANDS
        queued[:] = later.any() and cells.has_queue[later].mean() >= least
    # Each cell is of the loss that ends its growth, else of the last one.
    owner = np.searchsorted(found.ends, np.arange(len(cells)), "right")
    owner = np.minimum(owner, found.begins.size - 1)
    by_queue = free & queued[owner]
    without = free & ~queued[owner]
    waits_s = float(np.nanmedian(found.waits_s))
    long = usual >= 2 * QUEUE_SEGMENTS and waits_s >= max(SURE_S, SURE_PART * cells.base_s)
    # At the receiver a queue of ACKs looks alike; samples of many RTTs hide a rate that changes.
    is_shown = cells.shown.flow.get("captured_at") in (None, "sender") and not cells.is_coarse
    full = cells.rate_bps[free & cells.has_queue]
    sure = is_shown and queued.mean() >= 0.8 and found.begins.size >= FEW and long
    sure = sure and _spread(full) <= STEADY
    yield by_queue, "queue-overflow", by_queue & sure
    kind, sure = _without_queue(cells, found, ~queued, without)
    if kind in ("policer", UNDECIDED) and has_changed:
        kind = "path-change"
    elif kind == "policer" and cells.has_queue[without].mean() >= TOP:
        kind = "queue-overflow"  # Behind a policer no packet waits.
    yield without, kind, without & sure


def _alike(some: Floats, others: Floats) -> float:
    """Rank correlation."""
    ranks = [np.argsort(np.argsort(values)) for values in (some, others)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _spread(values: Floats) -> float:
    """Coefficient of variation."""
    known = values[np.isfinite(values)]
    mean = float(np.mean(known)) if known.size else 0.0
    return float(np.std(known)) / mean if mean > 0 else 0.0


def clumps(cells: Cells, which: Flags) -> tuple[float, float]:
    """The window in those that losses one by one would leave, and the part that is lost.

    Mathis and others (1997) for Reno's window, and CUBIC's where it is larger (RFC 9438, section
    5.1). Laws that take more leave a larger window, too; none leaves a much smaller one. NaN
    without losses.
    """
    segment = cells.shown.segment_bytes
    sent = float(np.nansum((cells.rate_bps * cells.lengths_s)[which])) / 8 / segment
    lost = float(np.nansum(cells.retransmits[which]))
    if not sent > 0 or not lost > 0:
        return np.nan, 0.0
    part = min(lost / sent, 1.0)
    windows = np.where(np.isfinite(cells.cwnd_bytes), cells.cwnd_bytes, cells.flight_bytes)[which]
    usual = 1.22 / np.sqrt(part)
    if cells.shown.flow.get("law") == "cubic" and cells.base_s > 0:
        usual = max(usual, 1.054 * (cells.base_s / part) ** 0.75)
    return float(np.nanmedian(windows)) / segment / usual, part


def _without_queue(cells: Cells, found: Epochs, which: Flags, without: Flags) -> tuple[str, bool]:
    """Losses without a queue: one by one, or many at once; at any rate, or at one.

    The first is left out: slow start overshoots.
    """
    begin = int(found.begins[which][0]) + 1 if which.any() else 0
    rates = found.rate_bps[which]
    rates = rates[1:] if rates.size > FEW else rates
    rates = rates[np.isfinite(rates)]
    if not rates.size:
        return UNDECIDED, False
    later = without.copy()
    later[: min(begin, len(cells) // 2)] = False
    whole = _spread(_rates(cells)[begin:])
    if not np.nansum(cells.retransmits[later]) > 0:
        later = without
    times, _ = clumps(cells, later)
    if is_bbr(cells):
        return _of_bbr(cells), False
    if times >= CLUMPED:
        if whole <= ONE_RATE:
            return "policer", False
        if cells.shown.flow.get("law") in ("reno", "cubic"):
            return UNDECIDED, False
    elif min(whole, _spread(cells.rate_bps[begin:])) <= LINK_RATE:
        return "queue-overflow", False
    if rates.size < FEW:
        return "random-loss", False
    empty = np.nanquantile(np.nan_to_num(found.queue_segments[which]), 0.9) < 1.0
    return "random-loss", bool(
        empty
        and rates.size >= SURE
        and min(_spread(rates), whole) >= MANY_RATES
        and not stretch(cells)[0] > USUAL
    )


def _of_bbr(cells: Cells) -> str:
    """Cause of BBR's losses, which its rate does not follow."""
    lost = np.nan_to_num(cells.retransmits)
    if np.nansum(lost * cells.delay_segments) >= QUEUE_SEGMENTS * lost.sum():
        return "queue-overflow"
    if lost.sum() < AT_ONCE:
        return "random-loss"
    half = slice(len(cells) // 2, None)
    sent = np.nansum((cells.rate_bps * cells.lengths_s)[half]) / 8 / cells.shown.segment_bytes
    part = float(np.nansum(cells.retransmits[half])) / max(sent, 1.0)
    if part >= RESISTS:
        return "random-loss"
    if part > PROBED and (cells.shown.flow.get("part") or 1.0) < ALONE:
        return UNDECIDED  # Each of several takes the others' probes for more rate.
    # Without losses it has found a policer itself, and keeps to its rate.
    return "queue-overflow" if 0 < part <= PROBED else "policer"


def changes(cells: Cells) -> Iterator[tuple[Flags, Flags]]:
    """Cells of a path that changed: nothing arrives, or the load does not explain the RTT."""
    shown = cells.shown
    which = np.zeros(len(cells), bool)
    if len(cells) < FEW:
        return
    strong = which.copy()
    flight = shown.inflight_bytes
    at_sender = shown.flow.get("captured_at") in (None, "sender")
    if np.isfinite(flight).any():
        least_s = max(STALL_S, STALL_RTTS * cells.base_s) if cells.base_s > 0 else STALL_S
        usual = float(np.nanmedian(flight))
        silent = (shown.goodput_bps <= 0) & (flight > WHOLE * usual) & ~resumed(cells)
        for begin, end in runs(silent):
            start_s, end_s = shown.edges_s[begin], shown.edges_s[end]
            # With few segments under way a single loss is a timeout, which takes so long.
            is_long = end_s - start_s >= 2 * least_s
            if end_s - start_s < least_s or not (
                is_long or flight[begin] >= SEGMENTS * shown.segment_bytes
            ):
                continue
            over = (cells.edges_s[1:] > start_s) & (cells.edges_s[:-1] < end_s)
            which |= over
            if end_s - start_s >= 2 * least_s and at_sender:
                strong |= over
    elif np.isfinite(shown.cwnd_bytes).any():
        # That iperf3 writes nothing for a while tells little: Linux wakes it when a third of a
        # buffer of two windows is free.
        silent = _without_acks(cells) | _timeouts(cells)
        least_s = max(STALL_S, STALL_RTTS * cells.base_s) if cells.base_s > 0 else STALL_S
        for begin, end in runs(silent & (not reaches_limit(cells))):
            if shown.edges_s[end] - shown.edges_s[begin] >= least_s:
                which |= (cells.edges_s[1:] > shown.edges_s[begin]) & (
                    cells.edges_s[:-1] < shown.edges_s[end]
                )
    far = _far(cells)
    which |= far | _slower(cells)
    spells = runs(which)
    if (
        sum(cells.edges_s[end] - cells.edges_s[begin] for begin, end in spells)
        < 0.05 * cells.total_s
    ):
        return
    if cells.lengths_s[which].sum() > MOST_CHANGED * cells.total_s:
        strong[:] = False  # Nothing comes: it may be the ACKs alone that are lost.
    # A path that changes again and again has good times between. Samples of many RTTs meet few of
    # the bad ones.
    longest = max(cells.edges_s[end] - cells.edges_s[begin] for begin, end in spells)
    for (_, end), (begin, _) in pairwise(spells):
        few = cells.is_coarse and far.any()
        if few or cells.edges_s[begin] - cells.edges_s[end] <= BETWEEN * longest:
            which[end:begin] = True
    yield which, strong & which


def _far(cells: Cells) -> Flags:
    """Cells of a longer way: as much was under way at a far smaller RTT.

    On one path the RTT rises with what is under way: it is the smallest one, then the wait behind
    it in the queue.
    """
    load = most = cells.cwnd_bytes
    if cells.has_flight:
        load, most = cells.flight_low_bytes, cells.flight_high_bytes
        most = np.fmax(most, np.roll(most, 1))
    # An RTT is of what was under way when its packet left.
    load = np.fmin(load, np.roll(load, 1))
    known = np.isfinite(load) & (cells.rtt_low_s > 0)
    found = np.zeros(len(cells), bool)
    order = np.flatnonzero(known)[np.argsort(load[known])]
    # The least RTT of all cells with as much under way.
    rtts = cells.rtt_low_s[order]
    least = np.minimum.accumulate(rtts[::-1])[::-1]
    first = np.searchsorted(load[order], ALIKE_LOAD * most[order])
    least = np.append(least, np.inf)[first]
    found[order] = rtts >= SHIFT * least + SHIFT_S
    found &= np.nan_to_num(cells.ack_delay_s) < 0.5 * (cells.rtt_low_s - cells.base_s)
    return found


def _slower(cells: Cells) -> Flags:
    """Cells of a link that is full at a rate, though it takes more without a queue at times."""
    full = cells.has_queue
    if cells.shown.flow.get("written_bytes") or full.sum() < FEW:
        return np.zeros(len(cells), bool)
    usual = FASTER * float(np.nanmedian(cells.rate_bps[full]))
    is_open = ~full & (cells.rate_bps > usual)
    found: Flags = full & (cells.rate_bps <= usual) & bool(is_open.mean() >= SOMETIMES)
    return found


def slow_acks(cells: Cells) -> tuple[Flags, Flags]:
    """Cells in which the way back has most of the queueing delay."""
    delay = (cells.rtt_low_s if cells.at_receiver else cells.rtt_high_s) - cells.base_s
    late = cells.ack_delay_s
    which = (late >= max(0.1 * cells.base_s, 2e-3)) & (late >= 0.5 * delay)
    which = np.nan_to_num(which).astype(bool)
    if which.mean() < 0.3:
        which[:] = False
    return which, which & (late >= 0.25 * cells.base_s) & (not cells.at_receiver)


def waits_behind(cells: Cells) -> Flags:
    """Cells in which packets wait, though the rate rises with the window: not at a full link.

    A full link keeps its rate, and the RTT rises instead. Of samples of a socket.
    """
    none = np.zeros(len(cells), bool)
    known = cells.has_queue & np.isfinite(cells.cwnd_bytes)
    if known.sum() < MANY - 1 or np.nansum(cells.retransmits) > 0:
        return none
    rates, windows = cells.rate_bps[known], cells.cwnd_bytes[known]
    rises = np.nanmax(rates) >= SHIFT * np.nanmin(rates) and _alike(rates, windows) >= IN_STEP
    return known if rises else none


def _without_acks(cells: Cells) -> Flags:
    """Rows in which no ACK came: a socket's smoothed RTT and window stay as they were."""
    shown = cells.shown
    found: Flags = (np.diff(shown.rtt_s, prepend=np.nan) == 0) & (shown.rtt_s > 0)
    found &= (np.diff(shown.cwnd_bytes, prepend=np.nan) == 0) | _timeouts(cells)
    return found


def _timeouts(cells: Cells) -> Flags:
    """Rows whose window is one segment, as after a timeout."""
    found: Flags = cells.shown.cwnd_bytes <= ONE * cells.shown.segment_bytes
    return found


def lost_acks(cells: Cells) -> bool:
    """Whether hardly any ACK came, for most of the time, though data were sent again.

    A path that is down for a while works between.
    """
    shown = cells.shown
    if cells.has_flight or not np.nansum(shown.retransmits) > 0 or reaches_limit(cells):
        return False
    silent_s = float(shown.lengths_s[_without_acks(cells)].sum())
    return silent_s >= MOST_CHANGED * cells.total_s


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
