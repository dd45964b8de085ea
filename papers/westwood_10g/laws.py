"""Westwood+ with the increase of HSTCP and of CUBIC: laws in Python."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lfnlab import Law
from lfnlab.theory.closed import hstcp_increase

if TYPE_CHECKING:
    from lfnlab._core import Ack, Loss


class WestwoodDecrease(Law):
    """Westwood+'s reaction to a loss (``laws/cards/westwood.md``, ``plus``), without its growth.

    One sample a round trip, of at least 50 ms: what was delivered over its time, through two
    filters of 7/8 in a row.
    """

    def __init__(self) -> None:
        self.bwe_pps = self.stage_pps = 0.0
        self.opened_s = self.now_s
        self.segments = 0
        self.rtt_min_s = math.inf
        self.renew = False

    def on_sample(self, ack: Ack) -> None:
        """Estimate the rate and the smallest RTT."""
        rtt_s = ack.rtt_s or ack.srtt_s
        if rtt_s and self.now_s - self.opened_s > max(rtt_s, 0.05):
            sample_pps = self.segments / (self.now_s - self.opened_s)
            first = self.bwe_pps == 0.0
            self.stage_pps = sample_pps if first else (7 * self.stage_pps + sample_pps) / 8
            self.bwe_pps = sample_pps if first else (7 * self.bwe_pps + self.stage_pps) / 8
            self.opened_s, self.segments = self.now_s, 0
        self.segments += ack.newly_delivered
        if ack.rtt_s and (ack.rtt_s < self.rtt_min_s or self.renew):
            self.rtt_min_s, self.renew = ack.rtt_s, False

    def on_loss(self, loss: Loss) -> None:
        """Estimated capacity of the path; at most the last value, except after a timeout."""
        window = self.bwe_pps * self.rtt_min_s if self.bwe_pps else self.cwnd / 2
        if loss.kind == "rto":
            self.renew = True
        else:
            window = min(window, self.cwnd)
        self.ssthresh = max(window, 2.0)


class WestwoodHstcp(WestwoodDecrease):
    """HSTCP's a(w) segments a round trip (RFC 3649, section 5)."""

    name = "westwood-hstcp"

    def __init__(self) -> None:
        super().__init__()
        self.at, self.a = 0, 1.0

    def on_ack(self, n: int, ack: Ack) -> None:
        """Grow by a(w) a round trip."""
        if int(self.cwnd) != self.at:
            self.at = int(self.cwnd)
            self.a = hstcp_increase(self.cwnd)
        self.cwnd += n * self.a / self.cwnd


class WestwoodCubic(WestwoodDecrease):
    """CUBIC's W(t) = 0.4 (t - K)^3 + W_max, and Reno's growth where that is more (RFC 9438).

    K follows from what the decrease left; W_max is the window before it. The increase of its
    Reno-friendly region is 1, since what a loss leaves is not 0.7.
    """

    name = "westwood-cubic"

    def __init__(self) -> None:
        super().__init__()
        self.w_max = 0.0
        self.began_s: float | None = None
        self.origin = self.k_s = self.w_est = 0.0

    def on_loss(self, loss: Loss) -> None:
        """An epoch begins with the next ACK."""
        super().on_loss(loss)
        self.w_max, self.began_s = self.cwnd, None

    def on_ack(self, n: int, ack: Ack) -> None:
        """Grow towards W(t + RTT), by half of the window a round trip at most."""
        if self.began_s is None:
            self.began_s, self.w_est = self.now_s, self.cwnd
            self.origin = max(self.w_max, self.cwnd)
            self.k_s = ((self.origin - self.cwnd) / 0.4) ** (1 / 3)
        t_s = self.now_s - self.began_s + (ack.srtt_s or 0.0)
        target = self.origin + 0.4 * (t_s - self.k_s) ** 3
        self.w_est += n / self.cwnd
        target = max(min(target, 1.5 * self.cwnd), self.w_est)
        self.cwnd += max(target - self.cwnd, 0.0) * n / self.cwnd
