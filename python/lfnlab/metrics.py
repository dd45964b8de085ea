"""Metrics of the field, each with its formula and source.

Goodput counts new bytes delivered in order to the application. An undefined metric (all flows
silent, a mean of zero) is NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl
    from numpy.typing import ArrayLike


def jain(goodputs: ArrayLike) -> float:
    """Jain's fairness index (sum x)^2 / (n sum x^2), from 1/n to 1 (Jain, Chiu, Hawe 1984)."""
    x = np.asarray(goodputs, dtype=float)
    squares = float(np.sum(x * x))
    return float(np.sum(x)) ** 2 / (x.size * squares) if squares > 0 else math.nan


def cov(goodputs: ArrayLike) -> float:
    """Coefficient of variation: population standard deviation over mean.

    Over the 1-s bins of one flow it is the stability metric of Floyd, Handley, Padhye and Widmer
    (2000) and of the e-VLBI study; the lower, the steadier.
    """
    x = np.asarray(goodputs, dtype=float)
    mean = float(np.mean(x)) if x.size else 0.0
    return float(np.std(x)) / mean if mean > 0 else math.nan


def utilisation(goodputs_bps: ArrayLike, rate_bps: float) -> float:
    """Sum of goodputs over the rate of the link; below 1 by headers even on a full link."""
    return float(np.sum(np.asarray(goodputs_bps, dtype=float))) / rate_bps


def goodput_bins(
    flows: pl.DataFrame, *, bin_s: float = 1.0, start_s: float = 0.0, end_s: float | None = None
) -> pl.DataFrame:
    """Goodput of each flow in bins of ``bin_s`` seconds, from its counter of delivered bytes.

    Args:
        flows: the table ``flows`` of a run (columns t_s, flow, delivered_bytes).
        bin_s: width of a bin; a multiple of the sampling grid.
        start_s: start of the first bin.
        end_s: no bin reaches beyond it; default the last sample.

    Returns:
        Columns flow, t_s (end of the bin), goodput_bps.
    """
    import polars as pl

    frames = []
    for (flow,), table in flows.sort("flow", "t_s").group_by(["flow"], maintain_order=True):
        t = table["t_s"].to_numpy()
        delivered = np.concatenate(([0.0], table["delivered_bytes"].to_numpy().astype(float)))
        last = t[-1] if end_s is None else end_s
        # Grid times are multiples of the sample in binary floating point: allow for the last bits.
        bins = max(0, math.floor((last - start_s) / bin_s + 1e-9))
        edges = start_s + bin_s * np.arange(bins + 1)
        at_edge = delivered[np.searchsorted(t, edges + 1e-9 * bin_s, side="right")]
        frames.append(
            pl.DataFrame(
                {
                    "flow": np.full(bins, flow, dtype=np.uint32),
                    "t_s": edges[1:],
                    "goodput_bps": np.diff(at_edge) * 8.0 / bin_s,
                }
            )
        )
    schema = {"flow": pl.UInt32, "t_s": pl.Float64, "goodput_bps": pl.Float64}
    return pl.concat(frames) if frames else pl.DataFrame(schema=schema)


def convergence_s(
    t_s: ArrayLike,
    goodput_bps: ArrayLike,
    fair_bps: float,
    *,
    start_s: float = 0.0,
    tolerance: float = 0.1,
    hold: int = 5,
) -> float:
    """Seconds from ``start_s`` until a flow holds its fair share; infinite if it never does.

    The first bin end after which ``hold`` bins in a row reach (1 - tolerance) of ``fair_bps``. Lu,
    Wang and Zhu (EVCP) take the first crossing; holding it keeps one lucky bin from counting.

    Args:
        t_s, goodput_bps: ends and goodputs of one flow's bins, see :func:`goodput_bins`.
        fair_bps: the share that counts as fair.
    """
    t = np.asarray(t_s, dtype=float)
    reached = (np.asarray(goodput_bps, dtype=float) >= (1.0 - tolerance) * fair_bps) & (t > start_s)
    in_a_row = 0
    for i, ok in enumerate(reached):
        in_a_row = in_a_row + 1 if ok else 0
        if in_a_row == hold:
            return float(t[i - hold + 1]) - start_s
    return math.inf


@dataclass(frozen=True)
class Interval:
    """A mean over ``n`` runs and the half-width of its confidence interval (NaN for one run)."""

    mean: float
    half: float
    n: int

    @property
    def low(self) -> float:
        """Lower end; NaN for one run."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """Upper end; NaN for one run."""
        return self.mean + self.half

    def to_json(self) -> dict[str, float | int | None]:
        """``{"mean", "ci95", "n"}``; what is not a number is null."""
        return {"mean": finite(self.mean), "ci95": finite(self.half), "n": self.n}


def finite(x: float) -> float | None:
    """``x``, or None when it is NaN or infinite, which JSON cannot say."""
    return x if math.isfinite(x) else None


def interval(values: Iterable[float], confidence: float = 0.95) -> Interval:
    """Mean and confidence interval of independent runs: mean +- t s / sqrt(n), Student's t.

    Runs of two laws with one seed meet the same traffic, so compare laws by the interval of their
    differences seed by seed (:func:`paired`), not by two intervals that overlap or not.
    """
    x: Sequence[float] = list(values)
    n = len(x)
    if n == 0:
        return Interval(math.nan, math.nan, 0)
    mean = math.fsum(x) / n
    if n == 1:
        return Interval(mean, math.nan, 1)
    s = math.sqrt(math.fsum((v - mean) ** 2 for v in x) / (n - 1))
    return Interval(mean, student_t(n - 1, confidence) * s / math.sqrt(n), n)


def paired(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Interval:
    """Interval of a - b, run by run (common random numbers)."""
    return interval((x - y for x, y in zip(a, b, strict=True)), confidence)


@cache
def student_t(degrees: int, confidence: float = 0.95) -> float:
    """Two-sided quantile of Student's t: P(|T| <= t) = ``confidence``.

    Bisection on the closed form for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and
    26.7.4); good to 1e-12.
    """
    low, high = 0.0, 1.0
    while _t_probability(high, degrees) < confidence:
        high *= 2.0
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if _t_probability(middle, degrees) < confidence else (low, middle)
        )
    return high


def _t_probability(t: float, degrees: int) -> float:
    """P(|T| <= t) for Student's t."""
    theta = math.atan2(t, math.sqrt(degrees))
    cos2 = math.cos(theta) ** 2
    odd = degrees % 2
    # 1 + 2/3 cos^2 + 2*4/(3*5) cos^4 + ... for odd degrees, 1 + 1/2 cos^2 + ... for even ones.
    term, series = 1.0, 1.0 if degrees > 1 else 0.0
    for k in range(1, (degrees - odd) // 2):
        term *= cos2 * (2 * k - 1 + odd) / (2 * k + odd)
        series += term
    if odd:
        return 2.0 / math.pi * (theta + math.sin(theta) * math.cos(theta) * series)
    return math.sin(theta) * series
