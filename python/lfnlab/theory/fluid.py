"""The sawtooth, computed: one flow or several, each a fluid, over one drop-tail bottleneck.

The windows grow by their laws until they fill path and buffer; then every flow loses at once and
cuts its window, as Chiu and Jain (1989) assume of synchronised losses. The round trip of a flow is
its base RTT and the queue's delay. A loss is known at once: the round trip that news takes, and the
drops of that time, are left out, as are slow start and recovery.

A law is its equations (``senders.py``), or its own code, driven by ``crates/law/src/fluid.rs``:
there ACKs show the RTT of a round trip before, a queue takes its time, and a law with delivery
rates is in recovery for a round trip after a loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lfnlab import _core
from lfnlab.control_laws.registry import law as law_info
from lfnlab.errors import LawError, UsageError
from lfnlab.metrics import jain
from lfnlab.theory.senders import LEAST_WINDOW, SENDERS, sender

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lfnlab.theory.senders import Sender

#: A sawtooth has settled when its peaks, every other one because fast convergence can make two
#: epochs alternate, repeat to this; if they never do, the last half of so many epochs is averaged.
_REPEATS, _MOST_EPOCHS = 1e-7, 120
#: Epochs of a law's own code on a path, which begin at its peak and repeat but for a sixteenth of
#: a round trip; half are averaged.
_CODE_EPOCHS = 40


@dataclass(frozen=True)
class Bottleneck:
    """A drop-tail link and the flows' base RTTs in s; the buffer is in packets."""

    rate_pps: float
    base_rtts_s: tuple[float, ...]
    buffer_packets: float

    def rtts_s(self, windows: Sequence[float]) -> list[float]:
        """Round trips with the queue that is left over: sum of w / RTT is the rate at most."""
        if len(windows) == 1:
            return [max(self.base_rtts_s[0], windows[0] / self.rate_pps)]
        delay_s = 0.0
        for _ in range(50):  # Newton from below: the load falls with the delay, and is convex
            rtts_s = [base_s + delay_s for base_s in self.base_rtts_s]
            excess = self._load(windows, rtts_s) - self.rate_pps
            if excess <= 1e-12 * self.rate_pps:
                break
            slope = sum(w / rtt_s**2 for w, rtt_s in zip(windows, rtts_s, strict=True))
            delay_s += excess / slope
        return rtts_s

    def excess_pps(self, windows: Sequence[float]) -> float:
        """Above 0 if the windows exceed what path and buffer hold."""
        return self._load(windows, self.full_rtts_s()) - self.rate_pps

    def is_full(self, windows: Sequence[float]) -> bool:
        """Whether the windows exceed what path and buffer hold."""
        return self.excess_pps(windows) > 0

    def full_rtts_s(self) -> list[float]:
        """Round trips with a full buffer."""
        return [base_s + self.buffer_packets / self.rate_pps for base_s in self.base_rtts_s]

    @staticmethod
    def _load(windows: Sequence[float], rtts_s: Sequence[float]) -> float:
        return sum(w / rtt_s for w, rtt_s in zip(windows, rtts_s, strict=True))


@dataclass(frozen=True)
class Epoch:
    """From one loss of all flows to the next; arrays have an entry for each flow.

    ``before`` and ``after`` are the windows before and after the loss that ends it, ``packets``
    were sent in it, ``window_s`` are the windows' integrals over time, in segment seconds;
    ``growth`` is that at its end, in segments a round trip.
    """

    start_s: float
    end_s: float
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    packets: NDArray[np.float64]
    window_s: NDArray[np.float64]
    growth: NDArray[np.float64]
    lost: bool = True
    """False where flows had stopped losing: what is steady without losses is cut into epochs."""


@dataclass(frozen=True)
class Course:
    """Windows of all flows over time: rows of ``windows`` are the moments ``t_s``."""

    t_s: NDArray[np.float64]
    windows: NDArray[np.float64]
    epochs: list[Epoch]

    def losses(self) -> list[Epoch]:
        """The epochs that a loss ended."""
        return [epoch for epoch in self.epochs if epoch.lost]

    def steady(self) -> int:
        """Epochs at the end that show what stays: half of them, or those without a loss."""
        quiet = 0
        while quiet < len(self.epochs) and not self.epochs[-1 - quiet].lost:
            quiet += 1
        # The first of those without a loss is all the time until that was known.
        return quiet - 1 if quiet else len(self.epochs) // 2

    def packets(self, last: int) -> NDArray[np.float64]:
        """Packets that each flow sent in the last ``last`` epochs."""
        sent: NDArray[np.float64] = np.sum([epoch.packets for epoch in self.epochs[-last:]], axis=0)
        return sent

    def seconds(self, last: int) -> float:
        """How long these epochs took."""
        return self.epochs[-1].end_s - self.epochs[-last].start_s


def _course(
    flows: Sequence[Sender],
    done: Callable[[list[Epoch]], bool],
    rtts_s: Callable[[Sequence[float]], list[float]],
    excess: Callable[[Sequence[float], float], float],
    lost: Callable[[Sequence[Sender]], list[Sender]],
) -> Course:
    """Steps until ``done``.

    Flows lose when ``excess`` is above 0: it gets the windows, and the packets since the last loss.
    """
    now, t_s, start_s = list(flows), 0.0, 0.0
    times, rows = [t_s], [[flow.window for flow in now]]
    epochs: list[Epoch] = []
    packets, window_s = [0.0] * len(now), [0.0] * len(now)

    def stepped(step_s: float) -> tuple[list[Sender], list[float], list[float], float]:
        ends = [flow.after(step_s, s) for flow, s in zip(now, begin_s, strict=True)]
        end_s = rtts_s([flow.window for flow in ends])
        middle_s = begin_s
        if end_s != begin_s:
            middle_s = [(a + b) / 2 for a, b in zip(begin_s, end_s, strict=True)]
            ends = [flow.after(step_s, s) for flow, s in zip(now, middle_s, strict=True)]
        after = [flow.window for flow in ends]
        held = [(a + b) / 2 * step_s for a, b in zip(windows, after, strict=True)]
        sent = [h / s for h, s in zip(held, middle_s, strict=True)]
        return ends, sent, held, excess(after, sum(packets) + sum(sent))

    ending = True
    while not (ending and done(epochs)):
        windows = [flow.window for flow in now]
        begin_s = rtts_s(windows)
        step_s = min(flow.step_s(s) for flow, s in zip(now, begin_s, strict=True))
        step = stepped(step_s)
        ending = step[3] > 0
        if ending:
            step_s = _root(lambda s: stepped(s)[3], step_s, excess(windows, sum(packets)), step[3])
            step = stepped(step_s)
        now, sent, held, _ = step
        t_s += step_s
        packets = [a + b for a, b in zip(packets, sent, strict=True)]
        window_s = [a + b for a, b in zip(window_s, held, strict=True)]
        times.append(t_s)
        rows.append([flow.window for flow in now])
        if ending:
            growth = np.array([_growth(*pair) for pair in zip(now, begin_s, strict=True)])
            now = lost(now)
            times.append(t_s)
            rows.append([flow.window for flow in now])
            before, after = np.array(rows[-2]), np.array(rows[-1])
            totals = np.array(packets), np.array(window_s)
            epochs.append(Epoch(start_s, t_s, before, after, *totals, growth))
            packets, window_s, start_s = [0.0] * len(now), [0.0] * len(now), t_s
    return Course(np.array(times), np.array(rows), epochs)


def _root(f: Callable[[float], float], high: float, f_low: float, f_high: float) -> float:
    """Where ``f`` becomes positive between 0 and ``high``, from above, by the Illinois method.

    A bracket below 2^-25 of the first ends it, as 25 bisections would; mostly four calls do. A call
    bisects where two did not: if ``f`` is flat, as on CUBIC's plateau, the method hardly moves.
    """
    low, least, side, slow, half = 0.0, high * 2**-26, 0, 0, high / 2
    while high - low > 2 * least:
        slow, half = (slow + 1, half) if high - low > half else (0, (high - low) / 2)
        middle = (low * f_high - high * f_low) / (f_high - f_low)
        if slow > 2:
            middle = (low + high) / 2
        middle = min(max(middle, low + least), high - least)
        value = f(middle)
        if value > 0:
            high, f_high, f_low = middle, value, f_low / 2 if side > 0 else f_low
            side = 1
        else:
            low, f_low, f_high = middle, value, f_high / 2 if side < 0 else f_high
            side = -1
    return high


def _growth(flow: Sender, rtt_s: float) -> float:
    """Segments a round trip, from a thousandth of one; the first may begin with a decision."""
    begun = flow.after(rtt_s / 1000, rtt_s)
    return 1000 * (begun.after(rtt_s / 1000, rtt_s).window - begun.window)


def has_equations(*laws: str) -> bool:
    """Whether each of ``laws`` has a sender of its equations; else its own code is run."""
    return all(law in SENDERS for law in laws)


def _of_code(
    laws: Sequence[str],
    base_rtts_s: Sequence[float],
    windows: Sequence[float],
    losses: int,
    *,
    rate_pps: float = math.inf,
    buffer_packets: float = 0.0,
    least_rtt: float = 1.0,
    packets_to_loss: float = math.inf,
    window_at_loss: float = math.inf,
) -> Course:
    """The course of the laws' own code: :func:`lfnlab._core.fluid` has the arguments."""
    found = _core.fluid(
        list(laws),
        list(base_rtts_s),
        list(windows),
        losses,
        rate_pps=rate_pps,
        buffer_packets=buffer_packets,
        least_rtt=least_rtt,
        packets_to_loss=packets_to_loss,
        window_at_loss=window_at_loss,
    )
    columns = ("start_s", "end_s", "before", "after", "packets", "window_s", "growth", "lost")
    rows = zip(*(found[name] for name in columns), strict=True)
    return Course(found["t_s"], found["windows"], [Epoch(*row) for row in rows])


def synchronised(
    laws: Sequence[str],
    bottleneck: Bottleneck,
    windows: Sequence[float],
    losses: int,
    *,
    code: bool = False,
) -> Course:
    """The course of flows that all lose whenever the bottleneck is full.

    Args:
        laws: of each flow.
        bottleneck: with a base RTT for each flow.
        windows: to begin with, in segments.
        losses: to go through. Where the laws' own code stops losing before, the course ends in
            epochs without a loss.
        code: by the laws' own code even if all have equations.

    Raises:
        LawError: no such law.
        UsageError: the windows to begin with, or by the equations those that a loss leaves, are
            more than path and buffer hold; or the code takes too long.
    """
    if bottleneck.is_full(windows):
        raise UsageError(
            f"start windows: {', '.join(f'{w:g}' for w in windows)} segments are more than "
            "path and buffer hold; allowed: a sum of window / RTT below the rate"
        )
    if code or not has_equations(*laws):
        return _of_code(
            laws,
            bottleneck.base_rtts_s,
            windows,
            losses,
            rate_pps=bottleneck.rate_pps,
            buffer_packets=bottleneck.buffer_packets,
        )
    return _synchronised(laws, bottleneck, windows, lambda epochs: len(epochs) >= losses)


def _synchronised(
    laws: Sequence[str],
    bottleneck: Bottleneck,
    windows: Sequence[float],
    done: Callable[[list[Epoch]], bool],
) -> Course:
    """By the equations, until ``done``."""
    flows = [sender(law, window) for law, window in zip(laws, windows, strict=True)]

    def lost(now: Sequence[Sender]) -> list[Sender]:
        full_s, base_s = bottleneck.full_rtts_s(), bottleneck.base_rtts_s
        after = [flow.lost(r, b) for flow, r, b in zip(now, full_s, base_s, strict=True)]
        if bottleneck.is_full([1.001 * flow.window for flow in after]):
            raise UsageError(
                f"buffer: with {bottleneck.buffer_packets:g} packets a loss leaves the path full: "
                f"{', '.join(dict.fromkeys(laws))} at {LEAST_WINDOW:g} segments or more; allowed: "
                "a longer buffer (Westwood+ falls to what the path holds without its queue)"
            )
        return after

    return _course(flows, done, bottleneck.rtts_s, lambda w, _: bottleneck.excess_pps(w), lost)


@dataclass(frozen=True)
class Sawtooth:
    """The periodic course of one flow; windows in segments, rates as shares or per packet."""

    law: str
    period_s: float
    """From loss to loss; the mean of two where they alternate; infinite without losses."""
    window_before: float
    window_after: float
    mean_window: float
    """Over time."""
    mean_rtt_s: float
    utilization: float
    """Share of the link; NaN where the loss was given and no link."""
    loss_events_per_packet: float
    growth: float
    """Segments a round trip at the loss: about so many packets are lost, for growth goes on until
    the news arrives a round trip later."""
    cycle_s: NDArray[np.float64]
    """Times of ``cycle``."""
    cycle: NDArray[np.float64]
    """Windows over one cycle, which repeats: two epochs where it has settled."""


def sawtooth(
    law: str, rate_pps: float, rtt_s: float, buffer_packets: float, *, code: bool = False
) -> Sawtooth:
    """The sawtooth of one flow that loses when path and buffer are full.

    Raises:
        LawError, UsageError: as :func:`synchronised`.
    """
    path = Bottleneck(rate_pps, (rtt_s,), buffer_packets)
    window = 0.999 * (rate_pps * rtt_s + buffer_packets)
    if code or not has_equations(law):
        if law_info(law).family in ("delay", "rate"):
            window = 0.999 * rate_pps * rtt_s  # what is there at first is no queue to such a law
        course = synchronised([law], path, [window], _CODE_EPOCHS, code=True)
    else:
        course = _synchronised([law], path, [window], _is_settled)
    return _sawtooth(law, course, rate_pps)


def sawtooth_at_loss(
    law: str, loss: float, rtt_s: float, kept: float, *, code: bool = False
) -> Sawtooth:
    """The sawtooth of one flow that loses one packet in each ``1 / loss``, at one RTT.

    Args:
        law: of the flow.
        loss: loss events a packet, above 0 and below 1.
        rtt_s: round trip, constant.
        kept: RTT_min / RTT_max as H-TCP, Westwood+ and HTCP-BE see it at a loss, below 1; other
            laws see no queue.
        code: by the law's own code even if it has equations.

    Raises:
        LawError: no such law, or no sawtooth: no loss ends its growth.

    CUBIC's peaks come up to those of its closed form ever more slowly, each below its W_max by
    less than the last: after 120 losses the mean is up to 7 % short.
    """
    window = max(LEAST_WINDOW, math.sqrt(1.5 / loss))
    if code or not has_equations(law):
        least = _least_rtt(law, kept)
        course = _of_code(
            [law], [rtt_s], [window], _MOST_EPOCHS, least_rtt=least, packets_to_loss=1 / loss
        )
        if not _falls(course):
            raise LawError(
                f'"{law}" has no response function: losses of the fluid do not reduce its window'
            )
        return _sawtooth(law, course, math.nan)

    def lost(now: Sequence[Sender]) -> list[Sender]:
        return [flow.lost(rtt_s, kept * rtt_s) for flow in now]

    course = _course(
        [sender(law, window)],
        _is_settled,
        lambda _: [rtt_s],
        lambda _, packets: packets - 1 / loss,
        lost,
    )
    return _sawtooth(law, course, math.nan)


def _least_rtt(name: str, kept: float) -> float:
    """The RTT before there was a queue, over the RTT, for laws that fall to RTT_min / RTT."""
    info = law_info(name)
    return kept if info.family == "loss" and "rate" in info.signals else 1.0


def from_loss_to_loss(law: str, window: float, rtt_s: float, kept: float) -> float:
    """Time to grow back after one loss at ``window`` segments, by the law's own code.

    At one RTT; a law with delivery rates (BBR, UDT) on a link without a buffer that holds
    ``window``. 0 for a law that does not fall at a loss.

    Raises:
        LawError, UsageError: as :func:`synchronised`.
    """
    if law_info(law).slow_start == "none":
        course = _of_code([law], [rtt_s], [window], _CODE_EPOCHS, rate_pps=window / rtt_s)
    else:
        least = _least_rtt(law, kept)
        course = _of_code([law], [rtt_s], [window], 4, least_rtt=least, window_at_loss=window)
    return course.seconds(1) if _falls(course) else 0.0


def _falls(course: Course) -> bool:
    return bool(course.epochs[-1].after[0] < course.epochs[-1].before[0])


def _is_repeating(epochs: list[Epoch]) -> bool:
    pairs = zip(epochs[-5:], epochs[-3:], strict=False)
    return len(epochs) > 5 and all(
        math.isclose(this.before[0], other.before[0], rel_tol=_REPEATS)
        and math.isclose(this.end_s - this.start_s, other.end_s - other.start_s, rel_tol=_REPEATS)
        for this, other in pairs
    )


def _is_settled(epochs: list[Epoch]) -> bool:
    return len(epochs) >= _MOST_EPOCHS or _is_repeating(epochs)


def _sawtooth(law: str, course: Course, rate_pps: float) -> Sawtooth:
    last = 2 if _is_repeating(course.epochs) else course.steady()
    found = course.epochs[-last:]
    losses = sum(epoch.lost for epoch in found)
    seconds = course.seconds(last)
    packets = float(course.packets(last)[0])
    window_s = float(np.sum([epoch.window_s for epoch in found]))
    # A loss has two rows, before and after; the cycle begins with the one after.
    begin = np.searchsorted(course.t_s, found[0].start_s, side="right") - 1
    return Sawtooth(
        law=law,
        period_s=seconds / losses if losses else math.inf,
        window_before=float(np.mean([epoch.before for epoch in found])),
        window_after=float(np.mean([epoch.after for epoch in found])),
        mean_window=window_s / seconds,
        mean_rtt_s=window_s / packets,
        utilization=packets / seconds / rate_pps,
        loss_events_per_packet=losses / packets,
        growth=float(np.mean([epoch.growth for epoch in found])),
        cycle_s=course.t_s[begin:] - found[0].start_s,
        cycle=course.windows[begin:, 0],
    )


@dataclass(frozen=True)
class Shares:
    """How flows with synchronised losses end up, over the later half of the epochs."""

    shares: tuple[float, ...]
    utilization: float
    jain: float
    exponent: float
    """E of throughput_1 / throughput_2 = (RTT_2 / RTT_1)^E of the first two flows; NaN when their
    RTTs are equal."""
    settled: bool
    """Whether the shares of the last two quarters differ by less than 0.1 %."""


def shares(course: Course, bottleneck: Bottleneck) -> Shares:
    """Throughputs over the later half of ``course``, and what they say of fairness."""
    half = course.steady()
    quarter = half // 2
    sent = course.packets(half)
    last = course.packets(quarter)
    third = sent - last
    rtts_s = bottleneck.base_rtts_s
    exponent = math.nan
    if len(rtts_s) > 1 and rtts_s[0] != rtts_s[1]:
        exponent = math.log(sent[0] / sent[1]) / math.log(rtts_s[1] / rtts_s[0])
    return Shares(
        shares=tuple(float(share) for share in sent / np.sum(sent)),
        utilization=float(np.sum(sent)) / course.seconds(half) / bottleneck.rate_pps,
        jain=jain(sent),
        exponent=exponent,
        settled=bool(np.all(np.abs(third / np.sum(third) - last / np.sum(last)) < 1e-3)),
    )
