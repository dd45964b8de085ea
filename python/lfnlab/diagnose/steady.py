"""Senders that the network does not hold back: a set rate, pauses, a buffer; and slow start."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from lfnlab.diagnose.cells import AT_ONCE, FULL, Cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lfnlab.diagnose.evidence import Floats

    Flags = NDArray[np.bool_]

EVEN = 0.1
"""Coefficient of variation of a rate that was set: it does not follow a window."""
SET = 0.03
"""The same from two RTTs to two RTTs: a window's bursts make it uneven."""
EVEN_S = 1.0
"""Time over which evenness is judged."""
REACHED = 0.85
"""Part of a rate that was asked for, on average, that the transfer reached."""
FINE_S = 0.2
"""Samples that show single blocks."""
NEAR = 0.07
"""A rate is that asked for if it differs by this part: headers, and blocks of iperf3."""
BEHIND = 3.0
"""A buffer holds what is under way and, once that fills it, nothing more: so many times as much
written and not arrived at the end was held back by the socket's rate."""
LEAST_OF_BUFFER, ALL_OF_BUFFER = 0.4, 1.2
"""Part of a send buffer's memory that is payload; and with the error of rate times RTT."""
SHORT = 0.25
"""Part of the smallest RTT that a sender's own bursts may wait."""
LEAST_RUN = 4
"""Cells of a steady time."""
LEVEL = 0.1
"""Logarithmic width of a level of bytes in flight."""
AFTER_RTTS, FEW_SEGMENTS = 0.7, 3
"""After an outage no more than so many segments come within this part of an RTT."""
LEAST_ROWS, GRAIN, SMOOTH = 8, 1.5, 0.35
"""Samples that show bursts; segments in one that are too few for it; the squared coefficient of
variation of even data. Of drawn transfers those with a set rate had up to 0.3, buffers 0.48 on."""
IDLE = 0.1
"""Part of the time without data under way, at an application that pauses."""
PAUSE_RTTS = 1.5
"""A pause is longer than this: nothing is under way, and no ACK is waited for."""
GROWS = 1.25
"""Growth in three cells, six RTTs, that slow start has; its full speed is 64."""


class Setter(Protocol):
    """Names the cause of cells that have none."""

    def __call__(self, which: Flags, cause: str, *, strong: bool | Flags = False) -> None:
        """Name it; ``strong`` where the evidence excludes the others."""


def mark(cells: Cells, free: Flags, name: Setter) -> None:
    """Names rates that were set, and full send buffers."""
    quiet = free & (np.nan_to_num(cells.retransmits) <= 0) & (cells.rate_bps > 0)
    limit = _limit(cells)
    below = ~(cells.flight_bytes >= FULL * cells.cwnd_bytes) & ~(
        cells.flight_bytes >= FULL * cells.window_bytes
    )
    if limit is not None:
        near = np.abs(cells.rate_bps / limit - 1) <= NEAR
        is_reached = reaches_limit(cells)
        if near.mean() >= 0.3 or is_reached:
            name(quiet & near & below, "pacing", strong=_is_kept(cells))
        if is_reached:
            name(quiet & below, "pacing", strong=False)
        if keeps_limit(cells):
            name(free, "pacing", strong=False)
    # BBR paces, and its window is twice what it has in flight.
    paces = is_bbr(cells)
    at_once = free & (np.nan_to_num(cells.retransmits) >= AT_ONCE) & ~cells.has_queue
    if (paces or not cells.is_smoothed) and at_once.any():
        return  # A bucket was emptied, and it keeps to the bucket's rate from then on.
    if np.isfinite(cells.cwnd_bytes).any() and (not paces or not cells.has_flight):
        some = quiet & below & np.isfinite(cells.cwnd_bytes)
        _by_socket(cells, some & ~cells.has_queue if paces else some, name)
    elif cells.has_flight:
        # A buffer's bursts wait behind themselves; a queue that never overflows stays short.
        lost = np.flatnonzero(np.nan_to_num(cells.retransmits) > 0)
        is_lossless = not lost.size or lost[-1] < len(cells) / 4
        short = cells.rtt_s < (1 + SHORT) * cells.base_s
        _by_flight(cells, quiet & below & (~cells.has_queue | (short & is_lossless)), name)


def _by_socket(cells: Cells, calm: Flags, name: Setter) -> None:
    """Below the congestion window and the receiver's, without a queue: the host holds back."""
    for begin, end in runs(calm):
        part = np.zeros(len(cells), bool)
        part[begin:end] = True
        if end - begin < (2 if cells.is_coarse else LEAST_RUN):
            continue
        is_even = _is_even(cells, part)
        writes_less = cells.app_limited[part] >= 0.5
        if np.isfinite(cells.busy[part]).any() and writes_less.mean() >= 0.5:
            name(part, "pacing" if is_even else "application", strong=False)
        elif (cells.unsent_bytes[part] > 0).mean() >= 0.5 and is_even:
            name(part, "pacing", strong=False)
        else:
            name(part, "pacing" if _waits_in_socket(cells, part) else "send-buffer", strong=False)


def _waits_in_socket(cells: Cells, part: Flags) -> bool:
    """Whether at the end more was written than the path and a full buffer hold."""
    flow = cells.shown.flow
    written, arrived = flow.get("written_bytes"), flow.get("delivered_bytes")
    if not written or arrived is None:
        return False
    flight = float(np.nanmedian(cells.flight_bytes[part]))
    return bool(written - arrived > BEHIND * flight)


def _by_flight(cells: Cells, calm: Flags, name: Setter) -> None:
    """The bytes in flight stay at one level, far below the window, in a capture."""
    flights = cells.flight_bytes
    known = calm & (flights > 0)
    if known.sum() < LEAST_RUN:
        return
    places = np.round(np.log(flights[known]) / LEVEL).astype(int)
    values, counts = np.unique(places, return_counts=True)
    level = float(np.median(flights[known][places == values[counts.argmax()]]))
    near = known & (np.abs(flights / level - 1) <= 2 * LEVEL)
    joined = near.copy()
    joined[1:-1] |= near[:-2] & near[2:] & calm[1:-1]
    for begin, end in runs(joined):
        part = slice(begin, end)
        if (
            end - begin < LEAST_RUN
            or cells.edges_s[end] - cells.edges_s[begin] < 0.1 * cells.total_s
        ):
            continue
        times = cells.edges_s[part]
        slope = float(np.polyfit(times, flights[part], 1)[0])
        if abs(slope) * float(np.ptp(times)) > LEVEL * level:
            continue  # A window that grows.
        which = np.zeros(len(cells), bool)
        which[part] = True
        is_set = _is_smooth(cells, begin, end)
        if is_set and cells.has_queue[part].mean() >= 0.5:
            continue  # A queue stands though data leave evenly: the link is full.
        name(which, "pacing" if is_set else "send-buffer", strong=False)


def fills_buffer(cells: Cells) -> Flags:
    """Cells in which what is under way fills the send buffer, whose size the file tells.

    The size counts headers and parts of pages, too. Linux lets a buffer grow to two windows: one
    that is smaller than a window cannot, and one that holds more at the end has grown.
    """
    flow = cells.shown.flow
    size = float(flow.get("send_buffer_bytes") or np.nan)
    written, arrived = flow.get("written_bytes"), flow.get("delivered_bytes")
    if written and arrived is not None and written - arrived > ALL_OF_BUFFER * size:
        size = np.nan
    part = cells.flight_bytes / size
    found: Flags = (part >= LEAST_OF_BUFFER) & (part <= ALL_OF_BUFFER)
    found &= (cells.cwnd_bytes > size) & (not reaches_limit(cells))
    return found


def is_bbr(cells: Cells) -> bool:
    """Whether the file names a BBR."""
    return str(cells.shown.flow.get("law") or "").startswith("bbr")


def _is_kept(cells: Cells) -> bool:
    """Whether single samples keep a rate that was asked for: coarse ones hide pauses."""
    shown = cells.shown
    is_fine = float(np.median(shown.lengths_s)) <= FINE_S
    return is_fine and float(np.mean(shown.goodput_bps <= 0)) < IDLE


def reaches_limit(cells: Cells) -> bool:
    """Whether the transfer is as fast as it was asked to be."""
    limit = _limit(cells)
    return limit is not None and REACHED <= _mean(cells) / limit <= 1 / REACHED


def keeps_limit(cells: Cells) -> bool:
    """Whether it is just as fast as it was asked to be, so nothing else held it back."""
    limit = _limit(cells)
    return limit is not None and abs(_mean(cells) / limit - 1) <= NEAR


def _mean(cells: Cells) -> float:
    """The receiver's own rate where it is told."""
    told = cells.shown.flow.get("goodput_bps")
    return float(told or float(np.nansum(cells.rate_bps * cells.lengths_s)) / cells.total_s)


def _limit(cells: Cells) -> float | None:
    """A rate that was asked for, as the file tells, in bit/s."""
    flow = cells.shown.flow
    told = [flow.get("target_bps"), flow.get("most_pacing_bps")]
    found = [float(value) for value in told if value]
    return min(found) if found else None


def pauses(cells: Cells, name: Setter) -> None:
    """Cells of a flow that pauses again and again with nothing under way."""
    shown = cells.shown
    rows = shown.lengths_s
    flight = shown.inflight_bytes
    if np.isfinite(flight).any():
        # Samples of a socket are moments: its own account must agree.
        still = ((flight <= 0) | resumed(cells)) & ~(shown.busy_s >= 0.5 * rows)
    elif np.isfinite(shown.busy_s).any():
        still = shown.busy_s < 0.5 * rows
    else:
        return
    least_s = max(PAUSE_RTTS * cells.base_s, 0.05) if cells.base_s > 0 else 0.05
    found = [
        (begin, end)
        for begin, end in runs(still)
        if shown.edges_s[end] - shown.edges_s[begin] >= least_s
    ]
    paused_s = sum(float(shown.edges_s[end] - shown.edges_s[begin]) for begin, end in found)
    if len(found) < 2 or paused_s < IDLE * cells.total_s:
        return
    # Bursts between pauses are the application's, too.
    first, last = shown.edges_s[found[0][0]], shown.edges_s[found[-1][1]]
    gaps = [
        float(shown.edges_s[after[0]] - shown.edges_s[before[1]])
        for before, after in pairwise(found)
    ]
    usual = float(np.median(gaps))
    which = (cells.edges_s[1:] > first - usual) & (cells.edges_s[:-1] < last + usual)
    name(which, "application", strong=shown.flow.get("captured_at") in (None, "sender"))


def resumed(cells: Cells) -> Flags:
    """Rows of a silence after which more than a retransmission comes, at a receiver.

    It does not see what is under way. After an outage the sender begins with one segment.
    """
    shown = cells.shown
    silent = ~(shown.goodput_bps > 0)
    found = np.zeros(silent.size, bool)
    if shown.flow.get("captured_at") in (None, "sender") or not cells.base_s > 0:
        return found
    moved = np.concatenate([[0.0], np.cumsum(np.nan_to_num(shown.goodput_bps * shown.lengths_s))])
    for begin, end in runs(silent):
        after_s = shown.edges_s[end] + AFTER_RTTS * cells.base_s
        came = np.interp(after_s, shown.edges_s, moved) - moved[end]
        rows = slice(end, max(end + 1, int(np.searchsorted(shown.edges_s, after_s))))
        # Data that were held up carry an old timestamp; a loss before the silence is sent again.
        late_s = float(np.nan_to_num(shown.data_delay_s[rows]).max(initial=0.0))
        is_held = late_s >= (shown.edges_s[end] - shown.edges_s[begin]) / 2
        is_again = np.nansum(shown.retransmits[rows]) > 0
        many = came / 8 > FEW_SEGMENTS * shown.segment_bytes
        found[begin:end] = many and not is_held and not is_again
    return found


def start(cells: Cells) -> tuple[Flags, Flags]:
    """Cells of slow start, and whether that is sure."""
    which = np.zeros(len(cells), bool)
    if cells.is_coarse and len(cells) > 1:
        return which, which
    rates = np.nan_to_num(cells.rate_bps)
    if not rates.any():
        return which, which
    lost = np.flatnonzero(np.nan_to_num(cells.retransmits) > 0)
    first_loss = int(lost[0]) if lost.size else len(cells)
    end = 0
    while end < first_loss:
        # It has ended if the rate has not grown for three cells.
        before = rates[:end].max(initial=0.0)
        ahead = rates[end : min(end + 3, first_loss)]
        if before > 0 and ahead.max(initial=0.0) < GROWS * before:
            break
        end += 1
    grows_to_end = end == len(cells)
    which[:end] = True
    known = np.isfinite(cells.is_slow_start)
    if known.any():
        which &= ~known | (cells.is_slow_start >= 0.5)
    calm = ~(cells.rtt_s > 1.5 * cells.base_s)
    return which, which & calm & grows_to_end


def _is_even(cells: Cells, part: Flags) -> bool:
    """Whether the rate is the same from second to second: iperf3 writes a block now and then."""
    moved = np.cumsum(np.nan_to_num(cells.rate_bps * cells.lengths_s)[part])
    edges = np.concatenate([cells.edges_s[:-1][part][:1], cells.edges_s[1:][part]])
    span_s = float(edges[-1] - edges[0])
    count = int(span_s / EVEN_S)
    if count < 3:
        return _cv(cells.rate_bps[part]) <= EVEN
    times = np.linspace(edges[0], edges[-1], count + 1)
    each = np.diff(np.interp(times, edges, np.concatenate([[0.0], moved])))
    return _cv(each[1:-1] if count > 4 else each) <= EVEN


def _is_smooth(cells: Cells, begin: int, end: int) -> bool:
    """Whether data leave evenly, as by a clock; a window or a buffer sends in bursts, once an RTT.

    With less than one or two segments in a sample, what is in flight tells: by a clock it differs
    by a segment or two, while an ACK that frees a buffer lets out as much as it acknowledges.
    """
    shown = cells.shown
    first = int(cells.starts[begin])
    last = int(cells.starts[end]) if end < len(cells) else shown.goodput_bps.size
    rows = slice(first, last)
    moved = (shown.goodput_bps[rows] * shown.lengths_s[rows] / 8) / shown.segment_bytes
    moved = moved[np.isfinite(moved)]
    if moved.size < LEAST_ROWS:
        return False
    mean = float(np.mean(moved))
    if float(np.var(moved)) <= SMOOTH * mean**2:
        return True
    flights = shown.inflight_bytes[rows] / shown.segment_bytes
    low, high = (float(value) for value in np.nanquantile(flights, [0.1, 0.9]))
    is_set = _cv(cells.rate_bps[begin:end]) <= SET
    return mean < GRAIN and 0 < high - low <= 2 * GRAIN and is_set


def _cv(values: Floats) -> float:
    known = values[np.isfinite(values)]
    mean = float(np.mean(known)) if known.size else 0.0
    return float(np.std(known)) / mean if mean > 0 else np.inf


def runs(flags: Flags) -> list[tuple[int, int]]:
    """Begin and end of each run of true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
