"""Statistics over runs: means with confidence intervals.

Runs of two laws with one seed meet the same traffic, so laws are compared by the interval of their
differences seed by seed (:func:`paired`), not by two intervals that overlap or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


FEW = 5
"""Of fewer runs an interval says little. Of three its t is 4.3, and it needs normal runs."""


@dataclass(frozen=True)
class Interval:
    """A mean over ``n`` runs and the half-width of its confidence interval (NaN for one run)."""

    mean: float
    half: float
    n: int
    values: tuple[float, ...] = field(default=(), repr=False, compare=False)
    """Of the runs, where they are known."""

    @property
    def low(self) -> float:
        """Lower end; NaN for one run."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """Upper end; NaN for one run."""
        return self.mean + self.half

    @property
    def is_of_few(self) -> bool:
        """Whether the runs, which are known, are two to four."""
        return 1 < len(self.values) < FEW

    def over(self, unit: float) -> Interval:
        """In another unit, of which one is ``unit`` of this one's."""
        values = tuple(value / unit for value in self.values)
        return Interval(self.mean / unit, self.half / abs(unit), self.n, values)

    def to_json(self) -> dict[str, float | int | None]:
        """``{"mean", "ci95", "n"}``; what is not a number is null."""
        return {"mean": finite(self.mean), "ci95": finite(self.half), "n": self.n}


def finite(x: float) -> float | None:
    """``x``, or None when it is NaN or infinite, which JSON cannot say."""
    return x if math.isfinite(x) else None


def interval(values: Iterable[float], confidence: float = 0.95) -> Interval:
    """Mean and confidence interval of independent runs: mean +- t s / sqrt(n), Student's t."""
    x = tuple(values)
    n = len(x)
    if n == 0:
        return Interval(math.nan, math.nan, 0)
    mean = math.fsum(x) / n
    if n == 1:
        return Interval(mean, math.nan, 1, x)
    s = math.sqrt(math.fsum((v - mean) ** 2 for v in x) / (n - 1))
    return Interval(mean, student_t(n - 1, confidence) * s / math.sqrt(n), n, x)


def paired(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Interval:
    """Interval of a - b, run by run (common random numbers)."""
    return interval((x - y for x, y in zip(a, b, strict=True)), confidence)


@cache
def student_t(degrees: int, confidence: float = 0.95) -> float:
    """Two-sided quantile of Student's t: ``P(|T| <= t) = confidence``."""
    from scipy.special import stdtrit  # half a second, which few commands need

    return float(stdtrit(degrees, 0.5 + confidence / 2))
