"""Senders as a fluid: a window that grows with time, and falls at a loss.

Between two losses a law follows its equation, not its code. Integer arithmetic, whole segments,
slow start and the round trip until a loss is detected are not modelled. ``laws/cards`` has the
sources.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from lfnlab.errors import LawError
from lfnlab.theory import closed

#: RFC 5681: a loss leaves two segments.
LEAST_WINDOW = 2.0
#: Steps are short enough to change a window, or a clock, by so much of itself.
_FINE = 0.02


@dataclass(frozen=True)
class Sender(ABC):
    """One flow between two losses: ``window`` in segments, and what its law remembers."""

    window: float

    @abstractmethod
    def step_s(self, rtt_s: float) -> float:
        """The longest step over which :meth:`after` is accurate."""

    @abstractmethod
    def after(self, step_s: float, rtt_s: float) -> Self:
        """The sender ``step_s`` later, its round trip ``rtt_s`` meanwhile."""

    @abstractmethod
    def lost(self, rtt_s: float, base_rtt_s: float) -> Self:
        """The sender after a loss, which it saw at ``rtt_s``; the least RTT is ``base_rtt_s``."""


@dataclass(frozen=True)
class ByWindow(Sender):
    """Increase and decrease follow from the window (and the RTT): Reno, HSTCP, Scalable, ..."""

    #: Segments a round trip, of window and RTT in s.
    increase: Callable[[float, float], float]
    #: Fraction kept, of window and RTT_min / RTT.
    kept: Callable[[float, float], float]

    def step_s(self, rtt_s: float) -> float:
        """In which the window grows by 2 %."""
        return _FINE * rtt_s * self.window / self.increase(self.window, rtt_s)

    def after(self, step_s: float, rtt_s: float) -> Self:
        """By the mean of the increases before and after (Heun)."""
        rounds = step_s / rtt_s
        first = self.increase(self.window, rtt_s)
        second = self.increase(self.window + first * rounds, rtt_s)
        return replace(self, window=self.window + (first + second) / 2 * rounds)

    def lost(self, rtt_s: float, base_rtt_s: float) -> Self:
        """Cut to what the law keeps."""
        kept = self.kept(self.window, base_rtt_s / rtt_s)
        return replace(self, window=max(LEAST_WINDOW, kept * self.window))


@dataclass(frozen=True)
class ByClock(Sender):
    """Increase follows from the time since the loss: H-TCP and HTCP-BE.

    H-TCP keeps RTT_min / RTT within [0.5, 0.8], or one half after an epoch that ended with a
    throughput more than a fifth off the one before; HTCP-BE keeps RTT_min / RTT.
    """

    #: H-TCP's rules, not HTCP-BE's.
    adaptive: bool
    #: Factor on the increase: 2 (1 - beta) for H-TCP.
    share: float = 1.0
    since_s: float = 0.0
    #: Segments/s before the last loss; 0 before the first.
    rate_pps: float = 0.0

    def step_s(self, rtt_s: float) -> float:
        """Two per cent of the time since the loss, or 20 ms; 2 % more window at most."""
        clock_s = _FINE * max(self.since_s, closed.HTCP_DELTA_L_S)
        increase = self.share * closed.htcp_increase(self.since_s)
        return min(clock_s, _FINE * rtt_s * self.window / increase)

    def after(self, step_s: float, rtt_s: float) -> Self:
        """By F, H-TCP's increase integrated."""
        since_s = self.since_s + step_s
        gained = self.share * (closed.htcp_gain(since_s) - closed.htcp_gain(self.since_s)) / rtt_s
        return replace(self, window=self.window + gained, since_s=since_s)

    def lost(self, rtt_s: float, base_rtt_s: float) -> Self:
        """Cut to RTT_min / RTT; the clock starts again."""
        kept, rate_pps = base_rtt_s / rtt_s, self.window / rtt_s
        if self.adaptive:
            steady = not self.rate_pps or abs(rate_pps / self.rate_pps - 1) <= 0.2
            kept = closed.htcp_kept(kept if steady else 0.0)
        return replace(
            self,
            window=max(LEAST_WINDOW, kept * self.window),
            share=2 * (1 - kept) if self.adaptive else self.share,
            since_s=0.0,
            rate_pps=rate_pps,
        )


@dataclass(frozen=True)
class Cubic(Sender):
    """CUBIC (RFC 9438): a cubic of time through the window of the last loss.

    It is never below the AIMD flow beside it, whose window is ``w_est``.
    """

    w_max: float
    w_est: float
    #: Window before the last loss: from there the AIMD flow grows as Reno does.
    w_prior: float = math.inf
    k_s: float = 0.0
    since_s: float = 0.0

    def step_s(self, rtt_s: float) -> float:
        """One per cent of K or of the time since the loss; 2 % more window of the AIMD flow."""
        # An epoch with K = 0 begins in steps of a tenth of a round trip.
        clock_s = max(_FINE / 2 * max(self.since_s, self.k_s), rtt_s / 10)
        return min(clock_s, _FINE * rtt_s * self.window)

    def after(self, step_s: float, rtt_s: float) -> Self:
        """On the cubic, or with the AIMD flow."""
        since_s = self.since_s + step_s
        kept = closed.CUBIC_KEPT["rfc"]
        added = 1.0 if self.w_est >= self.w_prior else 3 * (1 - kept) / (1 + kept)
        w_est = self.w_est + added * step_s / rtt_s
        curve = self.w_max + closed.CUBIC_C * (since_s - self.k_s) ** 3
        return replace(self, window=max(self.window, curve, w_est), w_est=w_est, since_s=since_s)

    def lost(self, rtt_s: float, base_rtt_s: float) -> Self:
        """Cut to 0.7; K follows."""
        kept = closed.CUBIC_KEPT["rfc"]
        # Fast convergence: below the last maximum, leave room for others.
        w_max = self.window * ((1 + kept) / 2 if _is_below(self.window, self.w_max) else 1.0)
        window = max(LEAST_WINDOW, kept * self.window)
        return replace(
            self,
            window=window,
            w_max=max(w_max, window),
            w_est=window,
            w_prior=self.window,
            k_s=math.cbrt(max(0.0, w_max - window) / closed.CUBIC_C),
            since_s=0.0,
        )


@dataclass(frozen=True)
class Bic(Sender):
    """BIC, deciding its step once a round trip: towards the last maximum, then away from it."""

    max_window: float = math.inf
    #: Segments to add in each round trip.
    gain: float = 0.0
    #: Round trips until that is decided anew.
    rounds: float = 0.0

    def step_s(self, rtt_s: float) -> float:
        """Until the next decision."""
        return (self.rounds or 1.0) * rtt_s

    def after(self, step_s: float, rtt_s: float) -> Self:
        """By the gain that was decided."""
        now = self if self.rounds > 1e-9 else self._decided()
        passed = step_s / rtt_s
        window, rounds = now.window + now.gain * passed, max(0.0, now.rounds - passed)
        return replace(now, window=window, rounds=rounds)

    def _decided(self) -> Self:
        if self.window < closed.BIC_LOW:
            return replace(self, gain=1.0, rounds=1.0)
        # Where the steps stay S_max, one decision for many round trips is the same.
        many = max(1.0, _FINE * self.window / closed.BIC_S_MAX)
        if math.isinf(self.max_window):
            gain = min(2 * self.gain, closed.BIC_S_MAX) if self.gain else closed.BIC_S_MAX
            return replace(self, gain=gain, rounds=many if gain == closed.BIC_S_MAX else 1.0)
        step = (self.max_window - self.window) / 2
        if step < closed.BIC_S_MIN:
            window = max(self.window, self.max_window)
            return replace(self, window=window, max_window=math.inf, gain=1.0, rounds=1.0)
        linear = max(1.0, min(many, math.floor(2 * step / closed.BIC_S_MAX - 2)))
        return replace(self, gain=min(step, closed.BIC_S_MAX), rounds=linear)

    def lost(self, rtt_s: float, base_rtt_s: float) -> Self:
        """Cut to 0.875, and to search for what it was."""
        low = self.window < closed.BIC_LOW
        # Fast convergence: below the last maximum, leave room for others.
        shrinking = self.max_window < math.inf and _is_below(self.window, self.max_window)
        share = 1 - closed.BIC_B / 2 if shrinking else 1.0
        return replace(
            self,
            window=max(LEAST_WINDOW, self.window * (0.5 if low else 1 - closed.BIC_B)),
            max_window=self.max_window if low else share * self.window,
            gain=0.0,
            rounds=0.0,
        )


def _is_below(window: float, maximum: float) -> bool:
    # Peaks on one path are equal; that a loss is located to rounding does not make them shrink.
    return window < (1 - 1e-9) * maximum


def _scalable_increase(window: float, _rtt_s: float) -> float:
    """1 % a round trip, compounding once a round trip: 13.42 of them from 7/8 W to W."""
    above = window > closed.SCALABLE_LEGACY
    return window * math.log(1 + closed.SCALABLE_A) if above else 1.0


def _hstcp_kept(window: float, _rtt_ratio: float) -> float:
    return 1 - closed.hstcp_removed(window)


def _half(_window: float, _rtt_ratio: float) -> float:
    return 0.5


def _ltcp_increase(window: float, _rtt_s: float) -> float:
    return float(closed.ltcp_layer(window))


def _ltcp_kept(window: float, _rtt_ratio: float) -> float:
    return 0.5 if closed.ltcp_layer(window) == 1 else 1 - closed.LTCP_B


_RENO = partial(ByWindow, increase=lambda w, rtt_s: 1.0, kept=_half)
#: A sender of each law with its first window in segments, as after a loss long ago.
SENDERS: dict[str, Callable[[float], Sender]] = {
    "reno": _RENO,
    "hstcp": partial(
        ByWindow, increase=lambda w, rtt_s: closed.hstcp_increase(w), kept=_hstcp_kept
    ),
    "scalable": partial(
        ByWindow,
        increase=_scalable_increase,
        kept=lambda w, ratio: 1 - closed.SCALABLE_B if w > closed.SCALABLE_LEGACY else 0.5,
    ),
    "bic": Bic,
    "cubic": lambda window: Cubic(window, w_max=window, w_est=window),
    "htcp": partial(ByClock, adaptive=True),
    "westwood": partial(ByWindow, increase=lambda w, rtt_s: 1.0, kept=lambda w, ratio: ratio),
    "htcp-be": partial(ByClock, adaptive=False),
    "cw-hstcp": partial(ByWindow, increase=closed.cw_hstcp_increase, kept=_hstcp_kept),
    "ltcp": partial(ByWindow, increase=_ltcp_increase, kept=_ltcp_kept),
    "const-rate": partial(
        ByWindow, increase=lambda w, rtt_s: min(w, closed.CONST_RATE_C * rtt_s**2), kept=_half
    ),
    "dctcp": _RENO,
    # No router of theirs answers here.
    "xcp": _RENO,
    "rcp": _RENO,
    "jetmax": _RENO,
}


def sender(law: str, window: float) -> Sender:
    """A sender of ``law`` with ``window`` segments.

    Raises:
        LawError: when there is no such model.
    """
    if law not in SENDERS:
        raise LawError(f'"{law}" has no model; allowed: {", ".join(SENDERS)}')
    return SENDERS[law](window)
