"""Closed forms of the laws: response functions, recovery times, utilization, Padhye's formula.

Windows are in segments, times in seconds, ``loss`` is the number of loss events a packet sent.
A response function is the mean window over round trips of a sender that loses one packet in each
``1 / loss``, its windows fast enough for the law to be itself: below that range a law of fast paths
behaves as Reno, and so does its response here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

#: RFC 3649, section 5: Low_Window, Low_P, High_Window, High_P, High_Decrease.
_HSTCP_LOW, _HSTCP_LOW_P = 38.0, 1e-3
_HSTCP_HIGH, _HSTCP_HIGH_P = 83_000.0, 1e-7
_HSTCP_HIGH_REMOVED = 0.1
#: The RFC's line for b(w) ends at 83000 segments and would reach 0 at 567,416; the law stops here.
_HSTCP_LEAST_REMOVED = 0.05
#: p(w) as c / w^e, by variant: the line through both points of the RFC's section 5; the rounding
#: behind the RFC's table; ns-2's line, whose low point is Reno's own response, 1.5 / 38^2.
_HSTCP_P: dict[str, tuple[float, float]] = {
    name: (low_p * _HSTCP_LOW**exponent, exponent)
    for name, low_p, exponent in (
        (name, low_p, math.log(low_p / _HSTCP_HIGH_P) / math.log(_HSTCP_HIGH / _HSTCP_LOW))
        for name, low_p in (("loglog", _HSTCP_LOW_P), ("ns2", 1.5 / _HSTCP_LOW**2))
    )
} | {"rfc": (1 / 12.8, 1.2)}

#: Scalable (Kelly 2003): segments added for each one acknowledged, fraction removed, legacy window.
SCALABLE_A, SCALABLE_B, SCALABLE_LEGACY = 0.01, 0.125, 16.0
#: BIC (Xu, Harfoush, Rhee 2004): steps in segments a round trip, fraction removed, low window.
BIC_S_MAX, BIC_S_MIN, BIC_B, BIC_LOW = 32.0, 0.01, 0.125, 14.0
#: CUBIC: segments/s^3 (RFC 9438, section 4.1).
CUBIC_C = 0.4
#: Fraction that CUBIC keeps: RFC 9438, section 4.6; the paper of 2008 and its draft of 2005.
CUBIC_KEPT = {"rfc": 0.7, "2005": 0.8}
#: CW-HSTCP (Pan et al. 2006, section IV): c, 1/s.
CW_HSTCP_C = 10.0
#: Constant-rate increase (Floyd 1991; ns-2's windowConstant_): segments/s^2.
CONST_RATE_C = 4.0
#: Hybla (Caini, Firrincieli 2004): the round trip, in seconds, as which it grows.
HYBLA_RTT0_S = 0.025
#: Illinois (Liu, Basar, Srikant 2006) without queueing delay: segments a round trip, and the
#: fraction removed.
ILLINOIS_A, ILLINOIS_B = 10.0, 0.125
#: Veno (Fu, Liew 2003) with fewer than three packets queued: fraction removed.
VENO_B = 0.2
#: Compound (Tan et al. 2006) and LTCP (Bhandarkar, Jain, Reddy 2005): scale and exponent of the
#: mean window, for a sawtooth of w^0.75/8 and a half, of (6 w/50)^(1/3) and 0.15.
COMPOUND, LTCP = (0.255, 0.8), (1.98, 0.6)
#: LTCP: window of the second layer, fraction removed.
LTCP_WT, LTCP_B = 50.0, 0.15
#: FAST (Jin, Wei, Low 2004) without a queue: alpha / 2 in every other round trip.
FAST_A = 50.0
#: UDT 4 (libudt 4.11): seconds between updates of the rate, fraction of the rate removed, least
#: increase in packets, and bytes of its packets.
UDT_SYN_S, UDT_B, UDT_LEAST, UDT_PACKET_B = 0.01, 1 / 9, 0.01, 1500
#: H-TCP (Leith, Shorten 2004): after so long, in seconds, the increase grows.
HTCP_DELTA_L_S = 1.0
#: Fractions between which H-TCP keeps RTT_min / RTT_max.
HTCP_KEPT = (0.5, 0.8)


def aimd_response(loss: float, added: float = 1.0, removed: float = 0.5) -> float:
    """sqrt(a (2 - b) / (2 b p)): +a segments a round trip, -b of the window at a loss.

    The sawtooth between (1 - b) W and W lasts b W / a round trips and carries
    b (2 - b) W^2 / (2 a) packets, which are 1 / p. For Reno, 1.2247 / sqrt(p) (Mathis et al. 1997).
    """
    return math.sqrt(added * (2 - removed) / (2 * removed * loss))


def random_loss_response(loss: float) -> float:
    """Reno's time-average window, 1.3098 / sqrt(p), when each packet is lost on its own.

    Losses are independent with probability ``loss`` (Dumas, Guillemin, Robert 2002, for halving):
    sqrt(2 / (pi p)) times a product that has converged by its tenth factor.
    """
    product = math.prod((1 - 4.0**-n) / (1 - 2 * 4.0**-n) for n in range(1, 20))
    return math.sqrt(2 / (math.pi * loss)) * product


def hstcp_loss(window: float, variant: str = "loglog") -> float:
    """p(w) of HSTCP above 38 segments: the loss rate at which its mean window is to be ``window``.

    RFC 3649, section 5. Variants: "loglog" 0.078047 / w^1.197858, "rfc" 0.078125 / w^1.2 (which
    made the table in its appendix B), "ns2" (through Reno's own loss rate at 38 segments).
    """
    scale, exponent = _HSTCP_P[variant]
    return float(scale / window**exponent)


def hstcp_removed(window: float) -> float:
    """b(w) of HSTCP: fraction given up at a loss, linear in log w (RFC 3649, section 5)."""
    if window <= _HSTCP_LOW:
        return 0.5
    fall = math.log(window / _HSTCP_LOW) / math.log(_HSTCP_HIGH / _HSTCP_LOW)
    return max(_HSTCP_LEAST_REMOVED, 0.5 - (0.5 - _HSTCP_HIGH_REMOVED) * fall)


def hstcp_increase(window: float, variant: str = "loglog") -> float:
    """a(w) of HSTCP: segments a round trip, w^2 p(w) 2 b(w) / (2 - b(w)) (RFC 3649, section 5)."""
    if window <= _HSTCP_LOW:
        return 1.0
    removed = hstcp_removed(window)
    return max(1.0, window**2 * hstcp_loss(window, variant) * 2 * removed / (2 - removed))


def hstcp_response(loss: float) -> float:
    """0.1189 / p^0.8348 for p < 1e-3, else Reno's (RFC 3649, sections 5 and 7).

    It takes a(w) and b(w) at the mean window. A sender takes them at the window that it has, and
    gets 2 to 5 % more: ``fluid.sawtooth_at_loss``.
    """
    scale, exponent = _HSTCP_P["loglog"]
    return max(float((scale / loss) ** (1 / exponent)), aimd_response(loss))


def scalable_response(loss: float) -> float:
    """0.0749 / p above 16 segments, below it Reno's (Kelly 2003).

    From 7/8 W to W a sender sends b W / a = 12.5 W packets, so W = 0.08 / p; the mean over that
    exponential rise is b / ln(1 / (1 - b)) = 0.936 of it.
    """
    peak = SCALABLE_A / (SCALABLE_B * loss)
    mean = peak * SCALABLE_B / math.log(1 / (1 - SCALABLE_B))
    return mean if mean > SCALABLE_LEGACY else min(aimd_response(loss), SCALABLE_LEGACY)


def bic_rounds(window: float) -> tuple[float, float, float]:
    """Round trips of BIC in steps of S_max and in search, and the gap that it searches."""
    gap = BIC_B * window
    searched = min(gap, 2 * BIC_S_MAX)  # halved each round trip, down to steps of S_min
    return (gap - searched) / BIC_S_MAX, math.log2(searched / 2 / BIC_S_MIN) + 2, searched


def bic_response(loss: float) -> float:
    """BIC: a loss at each return to the last maximum; 15.5 / sqrt(p) for p well below 1e-7.

    From 7/8 W the window grows by 32 a round trip and then halves a gap of 64 segments (all of W/8,
    if that is less) in log2(32 / 0.01) + 2 round trips (Xu, Harfoush, Rhee 2004, section IV). Their
    packets are 1 / p. The linear part alone is AIMD(32, 1/8), 15.5 / sqrt(p); the search alone
    gives about 1 / p over its round trips. Below 14 segments Reno's.
    """

    def packets(window: float) -> float:
        linear, search, searched = bic_rounds(window)
        low = (1 - BIC_B) * window
        # The gaps of the search, each half of the one before, sum to 2 * searched.
        return linear * (low + window - searched) / 2 + search * window - 2 * searched

    peak = _root(packets, 1 / loss, 1e9, BIC_LOW)
    if peak <= BIC_LOW * 1.001:
        return min(aimd_response(loss), BIC_LOW)
    linear, search, _ = bic_rounds(peak)
    return 1 / loss / (linear + search)


def cubic_response(loss: float, rtt_s: float, variant: str = "rfc") -> float:
    """1.0538 (RTT / p)^0.75 with 0.7 kept, 1.1741 with 0.8; never below Reno's.

    (C (3 + k) / (4 (1 - k)))^(1/4) (RTT / p)^(3/4), k the fraction kept: RFC 9438, section 5.1,
    equation 5, for one cubic from the loss to W_max, over K seconds.
    """
    kept = CUBIC_KEPT[variant]
    shape = (CUBIC_C * (3 + kept) / (4 * (1 - kept))) ** 0.25
    return float(max(shape * (rtt_s / loss) ** 0.75, aimd_response(loss)))


def htcp_kept(rtt_ratio: float) -> float:
    """H-TCP's beta, the fraction of cwnd kept at a loss: RTT_min / RTT_max, within 0.5 and 0.8."""
    return min(max(rtt_ratio, HTCP_KEPT[0]), HTCP_KEPT[1])


def htcp_increase(seconds: float) -> float:
    """Segments a round trip that H-TCP adds, before 2 (1 - beta), ``seconds`` after the loss.

    1 for a second, then 1 + 10 x + x^2 / 4, x = T - 1 s (draft-leith-tcp-htcp-06).
    """
    late = max(0.0, seconds - HTCP_DELTA_L_S)
    return 1 + 10 * late + late**2 / 4


def htcp_gain(seconds: float) -> float:
    """F(T): the integral of :func:`htcp_increase` over ``seconds`` since the loss, in s.

    The window gained is 2 (1 - beta) F(T) / RTT.
    """
    late = max(0.0, seconds - HTCP_DELTA_L_S)
    return seconds + 5 * late**2 + late**3 / 12


def htcp_time_s(gain: float) -> float:
    """T with F(T) = ``gain``."""
    return _root(htcp_gain, gain, max(gain, 1.0))


def htcp_epoch(seconds: float, rtt_s: float, kept: float) -> tuple[float, float, float]:
    """Peak window, mean window and loss-event rate of H-TCP's epochs of ``seconds``.

    It grows by 2 (1 - beta) F(T) / RTT and gives up (1 - beta) W, so W = 2 F(T) / RTT whatever
    beta = ``kept``; the packets are the window integrated over T / RTT round trips.
    """
    late = max(0.0, seconds - HTCP_DELTA_L_S)
    peak = 2 * htcp_gain(seconds) / rtt_s
    twice = seconds**2 / 2 + 5 * late**3 / 3 + late**4 / 48  # the integral of F
    packets = (kept * peak * seconds + 2 * (1 - kept) * twice / rtt_s) / rtt_s
    return peak, packets * rtt_s / seconds, 1 / packets


def htcp_response(loss: float, rtt_s: float, kept: float) -> float:
    """Mean window of H-TCP, parametric in the time between losses: :func:`htcp_epoch`.

    Args:
        loss: loss events a packet.
        rtt_s: the round trip, constant.
        kept: beta, 0.5 to 0.8.
    """
    seconds = _root(lambda time_s: 1 / htcp_epoch(time_s, rtt_s, kept)[2], 1 / loss, 1e6)
    return htcp_epoch(seconds, rtt_s, kept)[1]


def htcp_be_response(loss: float, rtt_s: float, kept: float) -> float:
    """Mean window of HTCP-BE: H-TCP's increase without 2 (1 - beta), and ``kept`` of the window.

    W = F(T) / ((1 - r) RTT), r = RTT_min / RTT_max = ``kept``; packets as for H-TCP. Equations
    (12), (17) and (18) of the paper. It is H-TCP on a path 2 (1 - r) times as short that keeps r.
    """
    share = 2 * (1 - kept)

    def epoch(seconds: float) -> tuple[float, float]:
        _, mean, event_rate = htcp_epoch(seconds, rtt_s, kept)
        return mean / share, event_rate * share

    seconds = _root(lambda time_s: 1 / epoch(time_s)[1], 1 / loss, 1e6)
    return epoch(seconds)[0]


def westwood_response(loss: float, kept: float) -> float:
    """sqrt((1 + r) / (2 (1 - r) p)): AIMD(1, 1 - r), r = RTT_min / RTT_max = ``kept``.

    Westwood+ falls to bwe RTT_min, which over a full link is r of its window (Grieco, Mascolo
    2004). Without a queue r is 1, it never falls, and the window has no bound.
    """
    return aimd_response(loss, 1.0, 1 - kept)


def cw_hstcp_response(loss: float, rtt_s: float) -> float:
    """HSTCP's for a loss rate c RTT times smaller, with ns-2's p(w) (Pan et al. 2006, section IV).

    An increase c RTT times as large as HSTCP's has its mean window at c RTT times its loss rate.
    """
    scale, exponent = _HSTCP_P["ns2"]
    faster = CW_HSTCP_C * rtt_s
    return max(float((faster * scale / loss) ** (1 / exponent)), aimd_response(loss, faster))


def ltcp_layer(window: float) -> int:
    """K of LTCP: the largest with 50 K (K + 1) (K - 1) / 6 at ``window`` at most."""
    layer = 1
    while LTCP_WT * (layer + 2) * (layer + 1) * layer / 6 <= window:
        layer += 1
    return layer


def hybla_increase(rtt_s: float) -> float:
    """rho^2 of Hybla, segments a round trip: rho = max(1, RTT / 25 ms)."""
    return max(1.0, rtt_s / HYBLA_RTT0_S) ** 2


def cw_hstcp_increase(window: float, rtt_s: float) -> float:
    """HSTCP's a(w) (ns-2's p(w)) times c RTT, and no faster than slow start (Pan et al. 2006)."""
    return min(window, CW_HSTCP_C * rtt_s * hstcp_increase(window, "ns2"))


def udt_increase(spare_pps: float) -> float:
    """Packets in 10 ms that UDT adds in 10 ms, by the decade of the spare capacity.

    10^ceil(log10(bit/s)) * 1.5e-6 / 1500, 0.01 at least (Gu, Grossman 2007; libudt 4.11).
    """
    bits = 8 * UDT_PACKET_B * spare_pps
    decade = 10.0 ** math.ceil(math.log10(bits)) if bits >= 1 else 0.0
    return max(UDT_LEAST, decade * 1.5e-6 / UDT_PACKET_B)


def udt_growth_s(
    low_pps: float, capacity_pps: float, high_pps: float, *, cut: bool = False
) -> float:
    """Time of UDT from ``low_pps`` to ``high_pps``, at most the capacity; no RTT is in it.

    A decade of spare capacity takes 7.5 s, and more where the capacity is no power of ten.

    Args:
        low_pps: rate to begin with, packets/s.
        capacity_pps: of the link.
        high_pps: rate to end with.
        cut: after a decrease, when it reckons with a ninth of the capacity at most.
    """
    rate, seconds = low_pps, 0.0
    while rate < high_pps * (1 - 1e-12):
        spare = capacity_pps - rate
        counted = min(spare, capacity_pps / 9) if cut else spare
        added = udt_increase(counted)
        # The increase holds until the spare capacity is in the next decade below.
        edge = added * UDT_PACKET_B / 1.5e-6 / 10 / (8 * UDT_PACKET_B)
        end = high_pps if added == UDT_LEAST else min(high_pps, capacity_pps - edge)
        end = max(end, rate * (1 + 1e-12))
        seconds += (end - rate) * UDT_SYN_S**2 / added
        rate = end
    return seconds


def power_response(loss: float, scale: float, exponent: float) -> float:
    """A power of the loss rate, ``scale`` / p^``exponent``, never below Reno's."""
    return max(float(scale / loss**exponent), aimd_response(loss))


def padhye_pps(
    loss: float,
    rtt_s: float,
    rto_s: float,
    *,
    segments_per_ack: float = 1.0,
    max_window: float = math.inf,
) -> float:
    """Reno with timeouts, packets/s: Padhye, Firoiu, Towsley, Kurose 1998, equation (30).

    min(W_m / R, 1 / (R sqrt(2 b p / 3) + T0 min(1, 3 sqrt(3 b p / 8)) p (1 + 32 p^2))).

    Args:
        loss: loss events a packet, above 0 and below 1.
        rtt_s: round trip R.
        rto_s: first timeout T0.
        segments_per_ack: b, 2 with delayed ACKs.
        max_window: W_m, in segments.
    """
    per_packet_s = rtt_s * math.sqrt(2 * segments_per_ack * loss / 3)
    timeouts = min(1.0, 3 * math.sqrt(3 * segments_per_ack * loss / 8))
    per_packet_s += rto_s * timeouts * loss * (1 + 32 * loss**2)
    return min(max_window / rtt_s, 1 / per_packet_s)


def mathis_pps(loss: float, rtt_s: float, *, segments_per_ack: float = 1.0) -> float:
    """Reno without timeouts, packets/s: sqrt(3 / (2 b p)) / RTT (Mathis et al. 1997)."""
    return aimd_response(loss, 1 / segments_per_ack) / rtt_s


def growth_time_s(
    increase: Callable[[float], float], low: float, high: float, rtt_s: Callable[[float], float]
) -> float:
    """Time to grow from ``low`` to ``high`` segments by ``increase(w)`` each ``rtt_s(w)``."""
    windows = np.linspace(low, high, 2001)
    return float(np.trapezoid([rtt_s(w) / increase(w) for w in windows], windows))


def cubic_growth_time_s(start: float, w_max: float, end: float) -> float:
    """Time of CUBIC from ``start``, just after a loss, over W_max to ``end`` (RFC 9438, eq. 1, 2).

    K = cbrt((W_max - start) / C), and as much beyond it as the cubic needs.
    """
    return math.cbrt((w_max - start) / CUBIC_C) + math.cbrt((end - w_max) / CUBIC_C)


def additive_utilization(buffer_bdp: float, kept: float = 0.5) -> float:
    """Share of the link that one additive flow fills: 0.75 for Reno without a buffer, 1 with a BDP.

    The window climbs evenly from k (1 + q) to 1 + q BDPs, q = ``buffer_bdp``, k = ``kept``. Up to
    one BDP a round trip takes one RTT; above it the link is full.
    """
    low, high = kept * (1 + buffer_bdp), 1 + buffer_bdp
    slack = max(0.0, 1 - low)
    full = (high**2 - max(1.0, low) ** 2) / 2
    return (slack * (low + 1) / 2 + full) / (slack + full)


def full_link_buffer_bdp(kept: float) -> float:
    """The least buffer, in BDPs, with which one flow that keeps ``kept`` fills the link.

    kept (1 + Q) = 1: 1 for Reno, 3/7 for CUBIC, 1/7 for Scalable.
    """
    return 1 / kept - 1


def _root(rising: Callable[[float], float], value: float, high: float, low: float = 0.0) -> float:
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < value else (low, middle)
    return low
