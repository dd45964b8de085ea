"""Response functions and recovery times of any law: in closed form, else by its own code."""

from __future__ import annotations

import math
from collections.abc import Callable

from lfnlab.theory import closed
from lfnlab.theory.fluid import from_loss_to_loss, sawtooth_at_loss


def response(law: str, loss: float, rtt_s: float, kept: float, *, code: bool = False) -> float:
    """The response function of ``law``: mean window in segments.

    In closed form where there is one. Laws that read the delay (Vegas, FAST, Illinois, Veno, YeAH,
    Compound, Copa) are meant on a path without a queue, laws of routers without those.

    Args:
        law: any.
        loss: loss events a packet, above 0 and below 1.
        rtt_s: the round trip, constant; CUBIC, H-TCP, HTCP-BE, CW-HSTCP, Hybla and constant-rate
            increase depend on it.
        kept: RTT_min / RTT_max at a loss, below 1; H-TCP, Westwood+ and HTCP-BE depend on it.
        code: by the law's own code even if there is a closed form.

    Raises:
        LawError: no such law, or no response function: no loss ends its growth.
    """
    if law in RESPONDING and not code:
        return _RESPONSES[law](loss, rtt_s, kept)
    return sawtooth_at_loss(law, loss, rtt_s, kept, code=True).mean_window


def independent_exponent(
    law: str, loss: float, rtts_s: tuple[float, float], kept: float, *, code: bool = False
) -> float:
    """E of throughput_1 / throughput_2 = (RTT_2 / RTT_1)^E for flows of ``law`` that lose apart.

    Both lose one packet in ``1 / loss``; a throughput is :func:`response` over RTT, so E is 1 where
    the response has no RTT in it, 1/4 for CUBIC.

    Raises:
        LawError: as :func:`response`.
    """
    first, second = (response(law, loss, rtt_s, kept, code=code) / rtt_s for rtt_s in rtts_s)
    return math.log(first / second) / math.log(rtts_s[1] / rtts_s[0])


def recovery_s(law: str, window: float, rtt_s: float, kept: float, *, code: bool = False) -> float:
    """Time to grow back after one loss at ``window`` segments, without a queue.

    - reno, vegas, dctcp, xcp, rcp, jetmax: W/2 RTT
    - hstcp, cw-hstcp: RTT times the integral of dw / a(w) from (1 - b(W)) W to W (RFC 3649)
    - scalable, yeah: ln(8/7) / ln(1.01) = 13.42 RTT
    - bic: W/8/32 + log2(32/0.01) RTT (paper, section IV); shorter when W/8 < 64
    - cubic: K = cbrt(0.3 W / 0.4) (RFC 9438, eq. 2)
    - htcp: F(T) = W RTT / 2, whatever beta
    - westwood: (1 - r) W RTT, r = ``kept``
    - htcp-be: F(T) = (1 - r) W RTT
    - veno, illinois, hybla, fast, const-rate: b W / a RTT: a segments a round trip, 1 - b kept
    - ltcp: RTT times the integral of dw / K(w) from 0.85 W to W
    - compound: 32 (W^(1/4) - (W/2)^(1/4)) RTT
    - udt: from 8/9 of W / RTT packets/s back (``lfnlab.theory.closed.udt_growth_s``)
    - others: by their code; 0 for a law that does not fall at a loss

    Args:
        law: any, with a window above the one where it is Reno.
        window: at the loss, in segments.
        rtt_s: the round trip, constant.
        kept: of Westwood+ and HTCP-BE, whose decrease the queue decides.
        code: by the law's own code even if there is a closed form.

    Raises:
        LawError: no such law.
        UsageError: the code takes too long.
    """
    if law in RECOVERING and not code:
        return _RECOVERIES[law](window, rtt_s, kept)
    return from_loss_to_loss(law, window, rtt_s, kept)


#: Of loss rate, RTT and RTT_min / RTT_max.
_RESPONSES: dict[str, Callable[[float, float, float], float]] = {
    "reno": lambda p, rtt_s, r: closed.aimd_response(p),
    "hstcp": lambda p, rtt_s, r: closed.hstcp_response(p),
    "scalable": lambda p, rtt_s, r: closed.scalable_response(p),
    "bic": lambda p, rtt_s, r: closed.bic_response(p),
    "cubic": lambda p, rtt_s, r: closed.cubic_response(p, rtt_s),
    "htcp": lambda p, rtt_s, r: closed.htcp_response(p, rtt_s, closed.htcp_kept(r)),
    "westwood": lambda p, rtt_s, r: closed.westwood_response(p, r),
    "htcp-be": lambda p, rtt_s, r: closed.htcp_be_response(p, rtt_s, r),
    "cw-hstcp": lambda p, rtt_s, r: closed.cw_hstcp_response(p, rtt_s),
    "vegas": lambda p, rtt_s, r: closed.aimd_response(p),
    "veno": lambda p, rtt_s, r: closed.aimd_response(p, 1.0, closed.VENO_B),
    "illinois": lambda p, rtt_s, r: closed.aimd_response(p, closed.ILLINOIS_A, closed.ILLINOIS_B),
    "yeah": lambda p, rtt_s, r: closed.scalable_response(p),
    "hybla": lambda p, rtt_s, r: closed.aimd_response(p, closed.hybla_increase(rtt_s)),
    "ltcp": lambda p, rtt_s, r: closed.power_response(p, *closed.LTCP),
    "fast": lambda p, rtt_s, r: closed.aimd_response(p, closed.FAST_A),
    "compound": lambda p, rtt_s, r: closed.power_response(p, *closed.COMPOUND),
    "const-rate": lambda p, rtt_s, r: closed.aimd_response(p, closed.CONST_RATE_C * rtt_s**2),
    "dctcp": lambda p, rtt_s, r: closed.aimd_response(p),
    "xcp": lambda p, rtt_s, r: closed.aimd_response(p),
    "rcp": lambda p, rtt_s, r: closed.aimd_response(p),
    "jetmax": lambda p, rtt_s, r: closed.aimd_response(p),
}
#: Laws with a response function in closed form.
RESPONDING = frozenset(_RESPONSES)


def _bic_recovery_s(window: float, rtt_s: float) -> float:
    linear, search, _ = closed.bic_rounds(window)
    return (linear + search) * rtt_s


def _udt_recovery_s(rate_pps: float) -> float:
    return closed.udt_growth_s((1 - closed.UDT_B) * rate_pps, rate_pps, rate_pps, cut=True)


def _growing_s(
    window: float, removed: float, rtt_s: float, increase: Callable[[float], float]
) -> float:
    return closed.growth_time_s(increase, (1 - removed) * window, window, lambda _: rtt_s)


_SCALABLE_ROUNDS = math.log(1 / (1 - closed.SCALABLE_B)) / math.log(1 + closed.SCALABLE_A)
#: Of window, RTT and RTT_min / RTT_max.
_RECOVERIES: dict[str, Callable[[float, float, float], float]] = {
    "reno": lambda w, rtt_s, r: w / 2 * rtt_s,
    "hstcp": lambda w, rtt_s, r: _growing_s(
        w, closed.hstcp_removed(w), rtt_s, closed.hstcp_increase
    ),
    "scalable": lambda w, rtt_s, r: _SCALABLE_ROUNDS * rtt_s,
    "bic": lambda w, rtt_s, r: _bic_recovery_s(w, rtt_s),
    "cubic": lambda w, rtt_s, r: closed.cubic_growth_time_s(closed.CUBIC_KEPT["rfc"] * w, w, w),
    "htcp": lambda w, rtt_s, r: closed.htcp_time_s(w * rtt_s / 2),
    "westwood": lambda w, rtt_s, r: (1 - r) * w * rtt_s,
    "htcp-be": lambda w, rtt_s, r: closed.htcp_time_s((1 - r) * w * rtt_s),
    "cw-hstcp": lambda w, rtt_s, r: _growing_s(
        w, closed.hstcp_removed(w), rtt_s, lambda now: closed.cw_hstcp_increase(now, rtt_s)
    ),
    "vegas": lambda w, rtt_s, r: w / 2 * rtt_s,
    "veno": lambda w, rtt_s, r: closed.VENO_B * w * rtt_s,
    "illinois": lambda w, rtt_s, r: closed.ILLINOIS_B * w / closed.ILLINOIS_A * rtt_s,
    "yeah": lambda w, rtt_s, r: _SCALABLE_ROUNDS * rtt_s,
    "hybla": lambda w, rtt_s, r: w / 2 / closed.hybla_increase(rtt_s) * rtt_s,
    "ltcp": lambda w, rtt_s, r: _growing_s(w, closed.LTCP_B, rtt_s, closed.ltcp_layer),
    "fast": lambda w, rtt_s, r: w / 2 / closed.FAST_A * rtt_s,
    "compound": lambda w, rtt_s, r: 32 * (w**0.25 - (w / 2) ** 0.25) * rtt_s,
    "const-rate": lambda w, rtt_s, r: w / 2 / (closed.CONST_RATE_C * rtt_s**2) * rtt_s,
    "dctcp": lambda w, rtt_s, r: w / 2 * rtt_s,
    "xcp": lambda w, rtt_s, r: w / 2 * rtt_s,
    "rcp": lambda w, rtt_s, r: w / 2 * rtt_s,
    "jetmax": lambda w, rtt_s, r: w / 2 * rtt_s,
    "udt": lambda w, rtt_s, r: _udt_recovery_s(w / rtt_s),
}
#: Laws with a recovery time in closed form.
RECOVERING = frozenset(_RECOVERIES)
