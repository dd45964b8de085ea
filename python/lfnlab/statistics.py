"""Statistics over runs: means with confidence intervals.

Runs of two laws with one seed meet the same traffic, so laws are compared by the interval of their
differences seed by seed (:func:`paired`), not by two intervals that overlap or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

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


MOST_RUNS = 1_000_000
"""A difference that needs more runs is not told by runs."""


def runs_to_differ(value: Interval, *, power: float = 0.8, confidence: float = 0.95) -> int | None:
    """How many runs it takes until an interval of a difference does not cover 0.

    With this many runs that happens with the probability ``power``, if mean and standard deviation
    are those of ``value``: n >= ((t(confidence) + t(power)) s / mean)^2, Student's t of n - 1
    degrees, of power one-sided. A plan from a few runs is rough, as s is.

    Returns:
        The runs, at least 2; None where fewer than two runs, no difference, or more than
        :data:`MOST_RUNS` runs would be needed.
    """
    if value.n < 2 or not math.isfinite(value.half) or value.mean == 0.0:
        return None
    s = value.half * math.sqrt(value.n) / student_t(value.n - 1, confidence)

    def tells(runs: int) -> bool:
        t = student_t(runs - 1, confidence) + student_t(runs - 1, 2 * power - 1)
        return abs(value.mean) * math.sqrt(runs) >= t * s

    most = 2
    while not tells(most):
        if most > MOST_RUNS:
            return None
        most *= 2
    least = max(2, most // 2)
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if tells(middle) else (middle + 1, most)
    return most


@cache
def student_t(degrees: int, confidence: float = 0.95) -> float:
    """Two-sided quantile of Student's t: ``P(|T| <= t) = confidence``.

    Raises:
        ValueError: degrees below 1, or a confidence that is not between 0 and 1.
    """
    if degrees < 1 or not 0 < confidence < 1:
        said = f"degrees {degrees}, confidence {confidence}"
        raise ValueError(f"{said}; allowed: degrees of at least 1, a confidence between 0 and 1")
    from statistics import NormalDist  # more modules than the rest of this one

    x = NormalDist().inv_cdf(0.5 + confidence / 2)
    if degrees > 1000:  # Abramowitz and Stegun 26.7.5
        terms = (
            (x**3 + x) / 4,
            (5 * x**5 + 16 * x**3 + 3 * x) / 96,
            (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
            (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
        )
        return x + sum(term / float(degrees) ** power for power, term in enumerate(terms, 1))
    # Newton's method from the quantile of the normal distribution: P is concave, so t grows to it.
    t, step = x, x
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    while step > 1e-15 * t:
        density = math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))
        step = (confidence - _within(t, degrees)) / (2 * density / math.sqrt(math.pi * degrees))
        t += step
    return t


def _within(t: float, degrees: int) -> float:
    """``P(|T| <= t)``, Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(degrees))
    square = 1 / (1 + t * t / degrees)
    odd = degrees % 2
    term = math.sqrt(square) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= square * (k - 1) / k
        total += term
    within = math.sin(angle) * total
    return 2 / math.pi * (angle + within) if odd else within
