"""Checks of what was measured against a bound, which keep the interval that decides them.

A check is so, or not, or open: its interval covers the bound, or the runs differ. A check of many
comparisons keeps the one that is furthest on the wrong side, in half-widths of its interval: it
decides a check that fails, and is the closest call of one that passes.

The checks of one claim are a family (:func:`family`): a claim that compares many means fails by
chance more often than each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from lfnlab.statistics import finite, student_t

if TYPE_CHECKING:
    from lfnlab.statistics import Interval


LEVEL = 0.05
"""One less the confidence of an interval."""


@dataclass(frozen=True)
class Bound:
    """A mean over ``n`` runs, the half-width of its 95 % interval, and the side it has to be on.

    One run has no half-width.
    """

    mean: float
    half: float | None
    n: int
    above: float | None = None
    below: float | None = None

    @property
    def margin(self) -> float:
        """How far the mean is on the right side, in half-widths; 0 for one run."""
        far = self.mean - self.above if self.above is not None else (self.below or 0.0) - self.mean
        if self.half is None:
            return 0.0
        return far / self.half if self.half else math.copysign(math.inf, far or -1.0)

    def fails_among(self, count: int) -> bool:
        """Whether the mean is on the wrong side by its interval of 1 - 0.05 / ``count``."""
        if self.half is None:
            return False
        wider = student_t(self.n - 1, 1 - LEVEL / count) / student_t(self.n - 1, 1 - LEVEL)
        return self.margin <= -wider


@dataclass(frozen=True)
class Agreement:
    """In how many of the runs something is so."""

    agree: int
    runs: int

    @property
    def margin(self) -> float:
        """Infinite where all runs agree."""
        return math.inf if self.agree == self.runs else -math.inf if not self.agree else 0.0


@dataclass(frozen=True)
class Check:
    """Whether something is so, None where that is open; and what decides it."""

    so: bool | None
    seen: Bound | Agreement | None = None
    of: int = 0
    """How many means it compares with bounds."""

    def to_json(self) -> dict[str, bool | float | int | None]:
        """``{"so"}``, with what decides it in the same object, and of how many means it is one."""
        seen = {} if self.seen is None else asdict(self.seen)
        seen |= {"of": self.of or None}
        return {"so": self.so, **{key: value for key, value in seen.items() if value is not None}}


Known = Check | bool
"""A check, or a fact of arithmetic."""


def above(value: Interval, bound: float) -> Check:
    """Whether a mean exceeds ``bound``; open if its interval covers it, or is of one run."""
    seen = Bound(value.mean, finite(value.half), value.n, above=bound)
    return Check(True if value.low > bound else False if value.high <= bound else None, seen, 1)


def below(value: Interval, bound: float) -> Check:
    """Whether a mean is less than ``bound``; open if its interval covers it."""
    seen = Bound(value.mean, finite(value.half), value.n, below=bound)
    return Check(True if value.high < bound else False if value.low >= bound else None, seen, 1)


def within(value: Interval, low: float, high: float) -> Check:
    """Whether a mean lies between two bounds; open if its interval covers one of them."""
    return every((above(value, low), below(value, high)))


def agreed(of_runs: Iterable[bool]) -> Check:
    """Whether something is so in every run; open where runs differ."""
    runs = list(of_runs)
    so = sum(runs)
    return Check(None if 0 < so < len(runs) else bool(so), Agreement(so, len(runs)))


def every(known: Iterable[Known]) -> Check:
    """Whether all are so; open if none is known to be otherwise, but not all are known."""
    checks = [check(one) for one in known]
    values = [one.so for one in checks]
    so = False if False in values else None if None in values else True
    seen = [one.seen for one in checks if one.so is so and one.seen is not None]
    closest = min(seen, key=lambda one: one.margin, default=None)
    return Check(so, closest, sum(one.of for one in checks))


def negated(known: Check) -> Check:
    """Not so, of a check against one bound."""
    seen = known.seen
    if isinstance(seen, Bound):
        seen = replace(seen, above=seen.below, below=seen.above)
    return Check(None if known.so is None else not known.so, seen, known.of)


def family(checks: Mapping[str, Check]) -> dict[str, Check]:
    """The checks of one claim, none of which fails by chance with more than 1/40 for all of them.

    One check that fails is enough to deny a claim. So it fails only if its mean is on the wrong
    side by an interval of 1 - 0.05 / m (Bonferroni), where the claim compares m means with bounds;
    else it is open. A claim holds only if all checks are so. That happens by chance no more often
    than the least probable of them, so each passes by its interval of 95 % (an intersection-union
    test: Berger 1982). Either verdict is then wrong with a probability of at most 1/40.
    """
    count = sum(one.of for one in checks.values())

    def held(one: Check) -> Check:
        if one.so is not False or not isinstance(one.seen, Bound):
            return one
        return one if one.seen.fails_among(count) else replace(one, so=None)

    return {said: held(one) for said, one in checks.items()}


def named(said: str, known: Mapping[str, Check]) -> dict[str, Check]:
    """One check of several, by what is so for which of them where it fails or is open."""
    all_ = every(known.values())
    return {f"{said}: {', '.join(one for one, of in known.items() if of.so is all_.so)}": all_}


def check(known: Known) -> Check:
    """As a check."""
    return known if isinstance(known, Check) else Check(known)
