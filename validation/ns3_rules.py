"""Models of a flow's sawtooth where a law of ns-3 has another rule than ours.

The rules of ns-3 are inferred from its attributes and from the steps of its window. The model has
one flow, one queue and no packets. The effect of a rule is the ratio of two sawtooths of the model,
one with ns-3's rule and one with ours; :func:`corrected` multiplies our figures by it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from .ns3 import PAYLOAD_B

if TYPE_CHECKING:
    from .reference import Measured
    from .scenarios import Path, Run

#: Epochs of the model: the first, about as many as in the time before ours is measured, are thrown
#: away; the others are an even number.
_SETTLING, _COUNTED = 11, 30
_STEPS_PER_RTT = 32


class Law(ABC):
    """A law as the model asks it: its step for one ACK, and what it keeps after a loss."""

    @abstractmethod
    def step(self, window: float, since_loss_s: float) -> float:
        """Segments that one ACK adds."""

    @abstractmethod
    def after(self, window: float) -> float:
        """The window in which recovery ends, of that in which a loss was found."""

    def counts_handshake(self) -> bool:
        """Whether, until the first loss, time is counted from the SYN."""
        return True


@dataclass
class Reno(Law):
    """A segment a round trip, and a half."""

    last_ack_counts: bool

    def step(self, window: float, since_loss_s: float) -> float:
        """1/w segment."""
        return 1 / window

    def after(self, window: float) -> float:
        """In ns-3 the ACK that ends recovery counts for two windows, and brings three segments."""
        return window / 2 + (3 if self.last_ack_counts else 0)


@dataclass
class Westwood(Law):
    """Reno's growth down to the BDP; in whole bytes an ACK, or in fractions of a segment."""

    bdp: float
    whole_bytes: bool

    def step(self, window: float, since_loss_s: float) -> float:
        """1/w segment, in ns-3 rounded down to a byte."""
        bytes_ = PAYLOAD_B / window
        return (math.floor(bytes_) if self.whole_bytes else bytes_) / PAYLOAD_B

    def after(self, window: float) -> float:
        """Window after a loss: the path's BDP, in segments."""
        return self.bdp


@dataclass
class Scalable(Law):
    """A segment every 50 ACKs, and seven eighths of the window."""

    last_ack_counts: bool

    def step(self, window: float, since_loss_s: float) -> float:
        """1/50 segment; below 50 segments Reno's."""
        return 1 / min(50, window)

    def after(self, window: float) -> float:
        """In ns-3 of what is in flight, three less, and the ACK that ends recovery then counts."""
        if not self.last_ack_counts:
            return window * 7 / 8
        kept = (window - 3) * 7 / 8
        return kept + kept // 50


@dataclass
class Bic(Law):
    """Linux's BIC with its constants, or with ns-3's."""

    smooth_part: int
    ns3: bool
    #: Of the last search; 0: none yet.
    last_max: float = 0
    #: Linux's estimate of the segments that an ACK covers, in sixteenths. From 2 it falls to 31/16
    #: where each segment is acknowledged, and by 1/16 with the first duplicate ACK of a loss, to 1.
    delayed_ack: int = 31

    def step(self, window: float, since_loss_s: float) -> float:
        """1/cnt segment; Linux divides cnt by its estimate, see the rule in :mod:`.explained`."""
        # The law knows whole segments, and its window stays until it has gained one.
        whole, coefficient, most = math.floor(window), 4, 16
        distance = math.ceil(self.last_max - window) // coefficient
        over = math.floor(window - self.last_max)
        if window < self.last_max and distance > 1:
            count = whole // min(distance, most)
        elif window < self.last_max or over < coefficient:
            count = whole * self.smooth_part // coefficient
        elif over < most * (coefficient - 1):
            count = whole * (coefficient - 1) // over
        else:
            count = whole // most
        if self.last_max == 0:
            count = min(count, 20)
        return 1 / (count + 1 if self.ns3 else max(1, 16 * count // self.delayed_ack))

    def after(self, window: float) -> float:
        """Four fifths, and the target of the search."""
        self.delayed_ack = max(16, self.delayed_ack - 1)
        converged = (0.8 if self.ns3 else 0.9) * window
        self.last_max = window if window >= self.last_max else converged
        kept = 0.8 * window
        # In ns-3 the ACK that ends recovery counts for all that it acknowledges.
        return kept + min(1, kept * self.step(kept, 0)) if self.ns3 else kept


@dataclass
class Htcp(Law):
    """H-TCP that keeps a ratio or, in some of its losses, another fraction.

    Its alpha is of segments a round trip, or of bytes an ACK.
    """

    ratio: float
    in_bytes: bool
    #: 2 (1 - beta), which multiplies the increase. Until the first loss beta is 0 in ns-3.
    share: float
    #: How many of the losses keep one half instead, two in a row; whether the last did; and what of
    #: the next such pair has come together.
    halved: float = 0
    halves: bool = False
    due: float = 0
    losses: int = 0

    def step(self, window: float, since_loss_s: float) -> float:
        """alpha/w segment; in ns-3 1/w segment and alpha bytes."""
        late_s = max(0.0, since_loss_s - 1)
        alpha = self.share * (1 + 10 * late_s + late_s**2 / 4)
        if self.in_bytes:
            return math.floor(PAYLOAD_B / window + alpha) / PAYLOAD_B
        return alpha / window

    def after(self, window: float) -> float:
        """The fraction kept, which the increase then follows."""
        if self.losses % 2 == 0:
            self.due += self.halved
            self.halves = self.due >= 1
            self.due %= 1
        self.losses += 1
        kept = 0.5 if self.halves else self.ratio
        self.share = 2 * (1 - kept)
        # ns-3 takes what is in flight, three less.
        return kept * (window - 3 if self.in_bytes else window)

    def counts_handshake(self) -> bool:
        """In ns-3 alone; ours begins when the connection is open, as in Linux."""
        return self.in_bytes


@dataclass(frozen=True)
class Sawtooth:
    """Results of the model, over whole epochs."""

    goodput_bps: float
    mean_window_segments: float
    mean_rtt_s: float
    period_s: float
    period_long_s: float
    period_short_s: float
    window_before_segments: float
    window_after_segments: float
    drops_per_episode: float
    startup_loss_s: float
    startup_peak_segments: float


def sawtooth(law: Law, path: Path) -> Sawtooth:
    """One flow with ``law`` on ``path``, whose slow start ends at the BDP.

    The window grows until the buffer is full and one round trip more, in which the loss is not yet
    known: that loses as many packets as it grew. Recovery, in which it stays, takes the round trip
    of the first repair and as much of another as lies between the first loss and the last.
    """
    packets_per_s = path.rate_bps / (8 * path.packet_b)
    full = path.bdp_packets + path.buffer_packets
    # The handshake, the round trips in which ten segments double, and the last of them.
    window = path.bdp_packets
    uncounted_s = 0.0 if law.counts_handshake() else path.rtt_s
    since_loss_s = path.rtt_s * (2 + math.log2(path.bdp_packets / 10)) - uncounted_s
    epochs: list[tuple[float, float, float, float]] = []
    area = delay = delivered = 0.0

    def stay(seconds: float) -> float:
        """Counts time at this window; returns its round-trip time."""
        nonlocal area, delay, delivered
        rtt_s = max(path.rtt_s, min(window, full) / packets_per_s)
        if _SETTLING <= len(epochs) < _SETTLING + _COUNTED:
            area += window * seconds
            delay += rtt_s * seconds
            delivered += min(window, full) / rtt_s * seconds
        return rtt_s

    while len(epochs) < _SETTLING + _COUNTED:
        unknown_s = math.inf
        while unknown_s > 0:
            rtt_s = stay(0)
            step_s = min(rtt_s / _STEPS_PER_RTT, unknown_s)
            stay(step_s)
            acks = min(window, full) * step_s / rtt_s
            window += law.step(window, since_loss_s) * acks
            since_loss_s += step_s
            unknown_s -= step_s
            if unknown_s == math.inf and window >= full + 1:
                unknown_s = rtt_s
        lost, before = max(1.0, window - full), window
        window = law.after(window)
        epochs.append((since_loss_s, before, window, lost))
        since_loss_s = full / packets_per_s + stay(0) * (lost - 1) / lost
        stay(since_loss_s)
    counted = epochs[_SETTLING:]
    periods = [epoch[0] for epoch in counted]
    pairs = list(zip(periods[::2], periods[1::2], strict=True))
    total_s = sum(periods)
    return Sawtooth(
        goodput_bps=delivered / total_s,
        mean_window_segments=area / total_s,
        mean_rtt_s=delay / total_s,
        period_s=total_s / _COUNTED,
        period_long_s=2 * sum(map(max, pairs)) / _COUNTED,
        period_short_s=2 * sum(map(min, pairs)) / _COUNTED,
        window_before_segments=sum(epoch[1] for epoch in counted) / _COUNTED,
        window_after_segments=sum(epoch[2] for epoch in counted) / _COUNTED,
        drops_per_episode=sum(epoch[3] for epoch in counted) / _COUNTED,
        startup_loss_s=epochs[0][0] + uncounted_s,
        startup_peak_segments=epochs[0][1],
    )


def laws(law: str, path: Path, kept: float) -> tuple[Law, Law] | None:
    """The law after ns-3, which kept so much of its window, and after ours; None if alike."""
    if law == "reno":
        return Reno(last_ack_counts=True), Reno(last_ack_counts=False)
    if law == "westwood":
        bdp = path.bdp_packets
        return Westwood(bdp, whole_bytes=True), Westwood(bdp, whole_bytes=False)
    if law == "scalable":
        return Scalable(last_ack_counts=True), Scalable(last_ack_counts=False)
    if law.startswith("bic"):
        smooth_part = 20 if law == "bic-smooth20" else 5
        return Bic(smooth_part, ns3=True), Bic(smooth_part=20, ns3=False)
    if law.startswith("htcp"):
        ratio = min(0.8, max(0.5, 1 / (1 + path.buffer_bdp)))
        ns3 = Htcp(ratio, in_bytes=True, share=2)
        if law == "htcp" and ratio > 0.5:
            ns3.halved = min(1, max(0, (ratio - kept) / (ratio - 0.5)))
        return ns3, Htcp(ratio, in_bytes=False, share=1)
    return None


def corrected(run: Run, theirs: Measured, ours: Measured) -> Measured:
    """Our figures with ns-3's rule in place of our own, according to the model; {} without one.

    H-TCP's beta is ns-3's mean kept fraction where that may exceed one half; then its window after
    a loss is not compared. Several flows are modelled as one flow on its share of the rate.
    """
    path = replace(run.path, rate_bps=run.path.rate_bps / run.path.flows, flows=1)
    pair = laws(run.law, path, theirs.get("kept_fraction") or 0.5)
    if pair is None:
        return {}
    given = run.law == "htcp" and path.buffer_bdp < 1
    after_ns3, after_ours = (asdict(sawtooth(law, path)) for law in pair)
    return {
        figure: value * after_ns3[figure] / after_ours[figure]
        for figure, value in ours.items()
        if value is not None
        and figure in after_ns3
        and not (given and figure == "window_after_segments")
    }
