"""The cause that limited a transfer, of each interval and of the whole, with the evidence.

The tests are physical, and few. First come the hosts: a full window of the receiver (as by
tcptrace, and T-RAT: Zhang and others, SIGCOMM 2002), a full send buffer, an application that does
not write. Else the network limits, and its losses tell how: with a full queue, at any queue, or at
one rate. Linux's own account (TCP_INFO: busy, rwnd_limited, sndbuf_limited) is used, and compared
with windows and bytes in flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from lfnlab.diagnose import cells as gathered
from lfnlab.diagnose import losses, steady
from lfnlab.diagnose.cells import FULL, Cells
from lfnlab.diagnose.names import UNDECIDED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lfnlab.diagnose.evidence import Evidence, Floats

    Flags = NDArray[np.bool_]

HELD = 0.5
"""TCP_INFO's counter grew in this part of a cell: the cell was held by it."""
RESTS = 1.25
"""The RTT, in smallest ones, up to which a full window waits in no queue."""
ON_AVERAGE = 0.85
"""Part of the window that rate times RTT fills on average, where it is certain."""
LEAST_SHARE = 0.7
"""Part of the time of a cause that is certain."""
CHANGES = 0.42
"""Part of the time from which on a path that changes again and again is the cause: it is good for
about half of the time."""
MOST_CHANGED = 0.02
"""Part of the time of outages and changes, beside another cause that is certain."""
MOST_OTHER = 0.15
"""Part of the time of another cause beside it."""
LEAST_CELLS, LEAST_RTTS = 3, 10
"""Of a transfer whose cause can be certain."""


@dataclass(frozen=True)
class Interval:
    """A time with one cause."""

    start_s: float
    end_s: float
    cause: str
    share: float
    """Of the whole time."""
    evidence: str


@dataclass(frozen=True)
class Diagnosis:
    """The cause that limited a flow."""

    cause: str
    """One of :data:`lfnlab.diagnose.names.CAUSES`, or "undecided"."""
    certain: bool
    """Whether the evidence excludes the other causes."""
    intervals: tuple[Interval, ...]
    shares: dict[str, float]
    """Part of the time of each cause, the largest first."""
    why: str
    """The evidence for the cause, in numbers."""
    doubts: tuple[str, ...] = ()
    """Evidence against it."""
    next: str | None = None
    """The next measurement, a command and its reason; None if the cause is certain."""
    of_cells: tuple[str, ...] = ()
    """The cause of each cell, where the cells are."""
    cells: Cells | None = None


@dataclass
class _Found:
    """Causes of cells as they are found."""

    cells: Cells
    cause: list[str] = field(default_factory=list)
    is_strong: list[bool] = field(default_factory=list)

    def free(self) -> Flags:
        return np.array([cause == "" for cause in self.cause])

    def set(self, which: Flags, cause: str, *, strong: bool | Flags = False) -> None:
        """Name the cause of cells that have none."""
        sure = np.broadcast_to(strong, which.shape)
        for i in np.flatnonzero(which & self.free()):
            self.cause[i], self.is_strong[i] = cause, bool(sure[i])

    def where(self, cause: str) -> Flags:
        return np.array([found == cause for found in self.cause])


def diagnose(shown: Evidence) -> Diagnosis:
    """The causes that limited a flow."""
    cells = gathered.of(shown)
    found = _Found(cells, [""] * len(cells), [False] * len(cells))
    told = not np.isnan(cells.rate_bps).all()
    doubts: list[str] = []
    if told:
        steady.pauses(cells, found.set)
        if not steady.keeps_limit(cells):
            _acks(found)
            _changes(found)
        _ends(found, doubts)
        _start(found)
        steady.mark(cells, found.free(), found.set)
        _network(found, doubts)
    found.set(np.ones(len(cells), bool), UNDECIDED)
    return _judged(found, doubts)


def _ends(found: _Found, doubts: list[str]) -> None:
    """The hosts: windows, buffers, and an application that sets the rate."""
    cells = found.cells
    inferred = cells.full >= HELD
    account = cells.rwnd_limited
    has_account = np.isfinite(account)
    # A window that fills with a queue, or while packets are lost, need not be the limit.
    rests = ~(cells.rtt_s > RESTS * cells.base_s)
    window = np.where(has_account, account >= HELD, inferred) | (inferred & (account > 0.1))
    agree = inferred & (~has_account | (account >= HELD))
    by_little = not cells.has_flight
    cwnd_open = np.isnan(cells.cwnd_bytes) | (cells.cwnd_bytes > cells.window_bytes)
    if by_little:
        window &= cwnd_open & ~cells.window_grows
        part = cells.flight_bytes[window] / cells.window_bytes[window]
        agree &= bool(part.size and np.mean(part) >= ON_AVERAGE)
    is_told = cells.shown.flow.get("has_window_scale") is not False
    calm = (cells.retransmits <= 0) & rests & is_told
    found.set(window, "receive-window", strong=agree & cwnd_open & calm)
    if np.sum(window & has_account & ~inferred & np.isfinite(cells.full)) > len(cells) / 4:
        doubts.append(
            "TCP_INFO's rwnd_limited says the receiver's window, but the bytes in flight do not "
            "fill it"
        )
    if np.sum(inferred & has_account & (account < 0.1)) > len(cells) / 4:
        doubts.append(
            "the bytes in flight fill the receiver's window, but TCP_INFO's rwnd_limited says that "
            "it did not hold back"
        )
    below = ~(cells.flight_bytes >= FULL * cells.cwnd_bytes)
    buffer = cells.sndbuf_limited >= HELD
    found.set(buffer, "send-buffer", strong=below & ~inferred)
    found.set(~inferred & steady.fills_buffer(cells), "send-buffer", strong=False)


def _changes(found: _Found) -> None:
    """Outages, and shifts of the RTT or the rate of the path."""
    cells = found.cells
    for which, strong in losses.changes(cells):
        found.set(which, "path-change", strong=strong)


def _acks(found: _Found) -> None:
    """The way back: ACKs that wait on it, or that are lost."""
    cells = found.cells
    which, strong = losses.slow_acks(cells)
    found.set(which, "ack-path", strong=strong)
    found.set(np.full(len(cells), losses.lost_acks(cells)), "ack-path", strong=False)
    found.set(losses.waits_behind(cells), "ack-path", strong=False)
    segments, apart_s = losses.stretch(cells)
    if segments >= losses.STRETCH and apart_s >= losses.TOGETHER_S:
        found.set(~(cells.full >= HELD), "ack-path", strong=False)


def _start(found: _Found) -> None:
    """Slow start, up to the first loss or the plateau."""
    cells = found.cells
    which, strong = steady.start(cells)
    found.set(which, "slow-start", strong=strong)


def _network(found: _Found, doubts: list[str]) -> None:
    """The rest: by what happens when packets are lost."""
    free = found.free()
    if not free.any():
        return
    has_changed = bool(found.where("path-change").any())
    for which, cause, strong in losses.causes(found.cells, free, doubts, has_changed=has_changed):
        found.set(which, cause, strong=strong)


def _judged(found: _Found, doubts: Sequence[str]) -> Diagnosis:
    cells = found.cells
    lengths = cells.lengths_s
    total_s = cells.total_s
    shares: dict[str, float] = {}
    for cause, length in zip(found.cause, lengths.tolist(), strict=True):
        shares[cause] = shares.get(cause, 0.0) + length / total_s
    shares = dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))
    cause = next(iter(shares))
    if shares.get("path-change", 0.0) >= CHANGES:
        cause = "path-change"
    own = found.where(cause)
    sure_s = float(lengths[own & np.array(found.is_strong)].sum())
    own_s = float(lengths[own].sum())
    certain = (
        cause != UNDECIDED
        and not doubts
        and shares[cause] >= LEAST_SHARE
        and (cause == "path-change" or shares.get("path-change", 0.0) <= MOST_CHANGED)
        and max((s for c, s in shares.items() if c not in (cause, "slow-start")), default=0.0)
        <= MOST_OTHER
        and sure_s >= 0.8 * own_s
        and len(cells) >= LEAST_CELLS
        and (np.isnan(cells.base_s) or total_s >= LEAST_RTTS * cells.base_s)
    )
    return Diagnosis(
        cause,
        certain,
        tuple(_intervals(found)),
        shares,
        told(cells, own, cause),
        tuple(doubts),
        None if certain else following(cells, cause),
        tuple(found.cause),
        cells,
    )


def _intervals(found: _Found) -> list[Interval]:
    cells = found.cells
    intervals, begin = [], 0
    for cause, group in groupby(found.cause):
        end = begin + len(list(group))
        which = np.zeros(len(cells), bool)
        which[begin:end] = True
        start_s, end_s = float(cells.edges_s[begin]), float(cells.edges_s[end])
        share = (end_s - start_s) / cells.total_s
        intervals.append(Interval(start_s, end_s, cause, share, told(cells, which, cause)))
        begin = end
    return intervals


def told(cells: Cells, which: Flags, cause: str) -> str:
    """The evidence of some cells in numbers."""

    def middle(values: Floats) -> float:
        some = values[which]
        some = some[np.isfinite(some)]
        return float(np.median(some)) if some.size else np.nan

    rate, rtt, flight = middle(cells.rate_bps), middle(cells.rtt_s), middle(cells.flight_bytes)
    window, cwnd = middle(cells.window_bytes), middle(cells.cwnd_bytes)
    lost = float(np.nansum(cells.retransmits[which]))
    parts = [f"{rate / 1e6:.3g} Mbit/s"]
    if np.isfinite(rtt):
        parts.append(f"RTT {rtt * 1e3:.3g} ms, least {cells.base_s * 1e3:.3g} ms")
    if np.isfinite(flight):
        kind = "" if cells.has_flight else " by rate times RTT"
        parts.append(f"{_bytes(flight)} in flight{kind}")
    if np.isfinite(window):
        parts.append(f"receiver's window {_bytes(window)}")
    if np.isfinite(cwnd):
        parts.append(f"cwnd {_bytes(cwnd)}")
    if np.isfinite(cells.retransmits).any():
        parts.append(f"{lost:.0f} retransmits")
    for name, values in (
        ("rwnd_limited", cells.rwnd_limited),
        ("sndbuf_limited", cells.sndbuf_limited),
    ):
        part = middle(values)
        if part >= 0.05:
            parts.append(f"{name} {part:.0%} of the time")
    if cause == "application":
        parts.append(f"nothing under way for {middle(cells.idle):.0%} of the time")
    if cause == "ack-path" and np.isfinite(middle(cells.ack_delay_s)):
        parts.append(f"ACKs {middle(cells.ack_delay_s) * 1e3:.3g} ms late")
    target = cells.shown.flow.get("target_bps") or cells.shown.flow.get("most_pacing_bps")
    if cause == "pacing" and target:
        parts.append(f"asked for: {target / 1e6:.4g} Mbit/s")
    return ", ".join(parts)


def _bytes(value: float) -> str:
    return f"{value / 1e6:.4g} MB" if value >= 1e7 else f"{value / 1e3:,.0f} kB"


_NEXT = {
    "receive-window": (
        "ss -tin dst HOST",
        "at the sender, again and again while it runs: rwnd_limited tells the time in which the "
        "receiver's window was full",
    ),
    "send-buffer": (
        "ss -tin dst HOST",
        "at the sender, again and again while it runs: sndbuf_limited tells the time in which the "
        "send buffer was full",
    ),
    "random-loss": (
        "iperf3 -c HOST -u -b RATE -t 20",
        "at half of the goodput, and again with less: losses at each rate are random, losses above "
        "one rate alone are a policer's or a queue's",
    ),
    "policer": (
        "iperf3 -c HOST -u -b RATE -t 20",
        "at just below the goodput, and again a third higher: a policer loses nothing below its "
        "rate and all that exceeds above, and no packet waits",
    ),
    "queue-overflow": (
        "tcpdump -i any -s 128 -w sender.pcap tcp",
        "at both ends while it runs: timestamps tell on which way the RTT grows, and where packets "
        "are lost",
    ),
    "pacing": (
        "ss -tin dst HOST",
        "at the sender, again and again while it runs: pacing_rate, app_limited and sndbuf_limited "
        "tell who sets the rate",
    ),
    "application": (
        "ss -tin dst HOST",
        "at the sender, again and again while it runs: app_limited and notsent tell whether there "
        "was data to send",
    ),
    "slow-start": (
        "iperf3 -c HOST -J -i 0.1 -t 30",
        "a longer test shows what limits after the start",
    ),
    "ack-path": (
        "tcpdump -i any -s 128 -w receiver.pcap tcp",
        "at the receiver, and at the sender: ACKs that leave and do not come, or come late",
    ),
    "path-change": (
        "ping -i 0.2 HOST",
        "while nothing is sent: its RTT and losses tell whether the path itself changes",
    ),
    UNDECIDED: (
        "ss -tin dst HOST",
        "at the sender, again and again while it runs (a loop is in docs/import.md): it tells "
        "windows, bytes in flight and Linux's own account of what held back",
    ),
}


def following(cells: Cells | None, cause: str) -> str:
    """The next measurement that would tell more."""
    if cause == UNDECIDED and cells is not None and np.isfinite(cells.sndbuf_limited).any():
        command = "tcpdump -i any -s 128 -w sender.pcap tcp"
        why = "at the sender, for longer: single packets tell more than samples of a socket"
    else:
        command, why = _NEXT[cause]
    if cells is not None and np.nansum(cells.rate_bps) > 0:
        usual = float(np.nanmedian(cells.rate_bps[cells.rate_bps > 0]))
        part = 0.5 if cause == "random-loss" else 0.9
        command = command.replace("RATE", f"{max(part * usual / 1e3, 1):.0f}K")
    return f"{command}  ({why})"
