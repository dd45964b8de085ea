"""Whether the runs of two sides differ by more than chance: a permutation test with a stated error.

Of a chaotic scenario the medians of n runs have errors of their own: of Linux beside itself, too.
If both sides were the same, it would not matter which of the two runs of a phase is whose. So the
sides of each phase are exchanged at random, and it is counted how often some figure then lies as
many standard errors beyond what is allowed as the worst figure does. That holds whatever the
distribution is. Beside each flow's figures stand the sums over flows, which spread less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .outcome import FIGURES, allowed, figures

if TYPE_CHECKING:
    from .outcome import Outcome

#: Significance level, and number of random exchanges of the permutation test.
ERROR, EXCHANGES = 0.01, 2000
#: Ratio of the standard errors of median and mean, for normal samples.
OF_MEDIAN = 1.2533


@dataclass(frozen=True)
class Chance:
    """Permutation test of the figure that differs most."""

    #: The p-value: fraction of exchanges that differ at least as much.
    p: float
    #: Relative difference of a flow's goodput that the test detects with power 0.5; the median over
    #: flows.
    finds: float

    @property
    def explains(self) -> bool:
        """Whether chance alone may have made the difference."""
        return self.p > ERROR


def _with_sums(runs: Sequence[Outcome]) -> np.ndarray:
    """Figures of runs, with a last row of their sums over flows; timeouts have a bar a flow."""
    found = figures(runs)
    sums = found.sum(axis=1, keepdims=True)
    sums[..., FIGURES.index("timeouts")] = 0
    return np.concatenate([found, sums], axis=1)


def _apart(sides: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each figure: how far apart its medians are, what is allowed, the standard error."""
    a, b = np.median(sides, axis=1)
    error = OF_MEDIAN * np.sqrt(sides.var(axis=1, ddof=1).sum(axis=0) / sides.shape[1])
    return np.abs(a - b), allowed(a, b), error


def _worst(sides: np.ndarray) -> float:
    apart, may, error = _apart(sides)
    return float(((apart - may) / np.maximum(error, 1e-9 + 1e-6 * may)).max())


def exchanged(theirs: Sequence[Outcome], mine: Sequence[Outcome]) -> Chance:
    """The test, of runs of the same phases in the same order."""
    sides = np.stack([_with_sums(theirs), _with_sums(mine)])
    draws = np.random.default_rng(1)
    phases = np.arange(len(theirs))
    seen = _worst(sides)
    found = []
    for _ in range(EXCHANGES):
        first = draws.integers(0, 2, len(theirs))
        found.append(_worst(np.stack([sides[first, phases], sides[1 - first, phases]])))
    # What is seen is one of the exchanges.
    p = (1 + sum(one >= seen for one in found)) / (1 + EXCHANGES)
    _, may, error = _apart(sides)
    beyond = max(0.0, float(np.quantile(found, 1 - ERROR)))
    goodput = np.median(sides[0], axis=0)[:-1, 0]
    found_from = (may + beyond * error)[:-1, 0] / np.maximum(goodput, 1)
    return Chance(p, float(np.median(found_from)))
