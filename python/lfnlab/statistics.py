"""Statistics over runs: means with confidence intervals.

Runs of two laws with one seed meet the same traffic, so laws are compared by the interval of their
differences seed by seed (:func:`paired`), not by two intervals that overlap or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
    """Mean and confidence interval of independent runs: mean +- t s / sqrt(n), Student's t."""
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
    """Two-sided quantile of Student's t: ``P(|T| <= t) = confidence``.

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
