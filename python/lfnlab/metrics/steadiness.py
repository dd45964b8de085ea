"""How steady flows are, and how soon they have their share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lfnlab.metrics.tables import (
    SLACK,
    CoarseSamplesError,
    FirstPassage,
    alike,
    binned,
    fraction,
    held,
    need_columns,
    positive,
    rows_by_flow,
)

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike

    from lfnlab.metrics.tables import Floats, Samples

__all__ = [
    "HOLD_BINS",
    "convergence",
    "cov",
    "cov_over_time",
    "delta_fair",
    "epsilon_fair",
    "ramp_up",
    "smoothness",
    "time_to_share",
]


HOLD_BINS = 5
"""A share is held when so many bins in a row have it."""


def cov(goodputs: ArrayLike) -> float:
    """Coefficient of variation: population standard deviation over mean; the lower, the steadier.

    Formula: sigma / mean
    Unit: 1
    Source: Floyd, Handley, Padhye, Widmer, SIGCOMM 2000; the e-VLBI study's "stability" in 1-s bins
    """
    x = np.asarray(goodputs, dtype=float)
    mean = float(np.mean(x)) if x.size else 0.0
    return float(np.std(x)) / mean if mean > 0 else math.nan


def cov_over_time(
    flows: pl.DataFrame | Samples, bin_s: float, *, start_s: float = 0.0, end_s: float | None = None
) -> tuple[dict[int, float], float]:
    """Coefficient of variation of goodput in bins, of each flow while active and of the sum.

    Formula: sigma / mean of the goodputs in bins of this time scale; NaN below two bins
    Unit: 1
    Source: [METR], time scales; Floyd, Handley, Padhye, Widmer, SIGCOMM 2000
    """
    _, numbers, x = binned(flows, "bin_s", bin_s, start_s, end_s)

    def of(bins: Floats) -> float:
        return cov(bins) if bins.size > 1 else math.nan

    together = np.nansum(x[:, ~np.all(np.isnan(x), axis=0)], axis=0)
    return {n: of(own[~np.isnan(own)]) for n, own in zip(numbers, x, strict=True)}, of(together)


def smoothness(
    flows: pl.DataFrame, *, start_s: float = 0.0, end_s: float | None = None
) -> dict[int, float]:
    """Largest reduction of each flow's sending rate within one RTT, as a fraction of the rate.

    Formula: max over t of 1 - r(t + RTT) / r(t), r = cwnd / RTT, RTT the smoothed one at t
    Unit: 1
    Source: [METR], smoothness; Floyd, Handley, Padhye, SIGCOMM 2000

    Raises:
        CoarseSamplesError: where samples are wider than an RTT.
    """
    need_columns("flows", flows, "srtt_s", "cwnd_seg")
    rows = rows_by_flow(flows, ("cwnd_seg", "srtt_s"), start_s, end_s)
    found = {}
    for flow, (t, window, rtt) in rows.items():
        known = rtt > 0
        t, window, rtt = t[known], window[known], rtt[known]
        if t.size < 2:
            found[flow] = math.nan
            continue
        grid_s = float(np.min(np.diff(t)))
        if grid_s > np.median(rtt) * (1 + SLACK):
            raise CoarseSamplesError(
                f"flow {flow}: samples are {grid_s:g} s apart and its RTT is {np.median(rtt):g} s; "
                "a rate within an RTT needs samples at least as fine"
            )
        later = np.searchsorted(t, t + rtt - SLACK)
        inside = later < t.size
        rate = window / rtt
        fall = 1.0 - rate[later[inside]] / rate[inside]
        found[flow] = max(0.0, float(np.max(fall))) if fall.size else math.nan
    return found


# Convergence


def convergence(
    t_s: ArrayLike,
    goodput_bps: ArrayLike,
    fair_bps: ArrayLike,
    *,
    start_s: float = 0.0,
    tolerance: float = 0.1,
    hold: int = HOLD_BINS,
) -> FirstPassage:
    """Seconds from a flow's start until it holds its fair share.

    Lu, Wang and Zhu take the first crossing; holding it keeps one lucky bin from counting. With a
    tolerance of 0 a share that is approached geometrically is never reached, so report 0 and 0.1.

    Formula: end of the first of 5 bins in a row with x >= (1 - tolerance) fair, less start;
        fair is C / N, or in each bin the mean of all flows
    Unit: s
    Source: EVCP (Lu, Wang, Zhu); hold and tolerance are this laboratory's

    Args:
        t_s, goodput_bps: ends and goodputs of one flow's bins, see :func:`goodput_bins`.
        fair_bps: the share that counts as fair, one number or one a bin.
    """
    t, x = np.asarray(t_s, dtype=float), np.asarray(goodput_bps, dtype=float)
    fair = np.asarray(fair_bps, dtype=float)
    if fair.ndim:
        alike("goodput_bps, fair_bps", x, fair)
    fraction("tolerance", tolerance)
    return held(t, x >= (1.0 - tolerance) * fair, start_s, hold)


def time_to_share(
    t_s: ArrayLike,
    goodput_bps: ArrayLike,
    mean_bps: ArrayLike,
    *,
    start_s: float = 0.0,
    share: float = 0.8,
    hold: int = HOLD_BINS,
) -> FirstPassage:
    """Seconds from a flow's start until it holds most of what a mean flow has.

    Of any flow, where :func:`convergence` looks at the one that began last.

    Formula: end of the first of 5 bins in a row with x >= 0.8 m, less start; m the mean of all
        flows of the run in the bin; of a group its slowest flow
    Unit: s
    Source: EVCP (Lu, Wang, Zhu), convergence; hold and the four fifths are this laboratory's

    Args:
        t_s, goodput_bps: ends and goodputs of one flow's bins, see :func:`goodput_bins`.
        mean_bps: of all flows, one a bin.
    """
    fraction("share", share)
    return convergence(
        t_s, goodput_bps, mean_bps, start_s=start_s, tolerance=1.0 - share, hold=hold
    )


def delta_fair(
    t_s: ArrayLike,
    newcomer: ArrayLike,
    other: ArrayLike,
    *,
    delta: float = 0.1,
    start_s: float = 0.0,
    hold: int = 1,
) -> FirstPassage:
    """Seconds until two flows of one RTT are delta-fair, from shares of 1/101 and 100/101.

    Formula: first bin end with max(x, y) / (x + y) <= (1 + delta) / 2, less start
    Unit: s
    Source: [METR], delta-fair convergence time
    """
    x, y = np.asarray(newcomer, dtype=float), np.asarray(other, dtype=float)
    alike("newcomer, other", x, y)
    fraction("delta", delta)
    both = x + y
    fair = (both > 0) & (np.maximum(x, y) <= (1.0 + delta) / 2.0 * both * (1 + SLACK))
    return held(np.asarray(t_s, dtype=float), fair, start_s, hold)


def epsilon_fair(
    t_s: ArrayLike,
    goodputs: ArrayLike,
    rtt_s: float,
    *,
    epsilon: float = 0.1,
    start_s: float = 0.0,
    hold: int = 1,
) -> FirstPassage:
    """Round trips until the goodputs of all flows are nearly equal.

    Formula: (first bin end with min x / max x >= 1 - epsilon, less start) / RTT
    Unit: RTT
    Source: [METR], epsilon-fairness

    Args:
        goodputs: one row a flow, one column a bin.
    """
    positive("rtt_s", rtt_s)
    fraction("epsilon", epsilon)
    x = np.atleast_2d(np.asarray(goodputs, dtype=float))
    largest = np.max(x, axis=0)
    fair = (largest > 0) & (np.min(x, axis=0) >= (1.0 - epsilon) * largest * (1 - SLACK))
    passage = held(np.asarray(t_s, dtype=float), fair, start_s, hold)
    return FirstPassage(passage.value / rtt_s, passage.censored)


def ramp_up(flows: pl.DataFrame, flow: int, start_s: float) -> dict[int, float]:
    """Times at which a new flow has delivered 1500 x 10^n bytes, to a sampling interval.

    Formula: first t with D(t) >= 1500 x 10^n, less start, by n = 1, 2, ... that it reached
    Unit: s
    Source: [TCPEVAL], ramp-up
    """
    rows = rows_by_flow(flows, ("delivered_bytes",), start_s, None)
    t, delivered = rows.get(flow, (np.empty(0), np.empty(0)))
    times: dict[int, float] = {}
    while delivered.size and delivered[-1] >= 1500 * 10 ** (n := len(times) + 1):
        times[n] = float(t[np.searchsorted(delivered, 1500 * 10**n)]) - start_s
    return times
