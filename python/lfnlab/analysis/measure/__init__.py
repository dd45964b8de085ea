"""Metrics of stored runs by name: applies :mod:`lfnlab.metrics` to their tables.

Metrics cover a window of time, by default from the warm-up to the end of the run. Only a run's
tables, summary and scenario are read; nothing is simulated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lfnlab.analysis.measure.rows import METRICS, Metric, Row
from lfnlab.analysis.measure.view import View
from lfnlab.analysis.summary import averaged, rate_unit_of
from lfnlab.analysis.table import Table, markdown, with_interval
from lfnlab.errors import MetricError
from lfnlab.metrics import CoarseSamplesError, FirstPassage
from lfnlab.results.groups import grouped
from lfnlab.statistics import Interval, finite, interval

if TYPE_CHECKING:
    from lfnlab.results.cases import Factor
    from lfnlab.results.runs import Results, Run

__all__ = [
    "METRICS",
    "Measured",
    "Measurement",
    "Metric",
    "Row",
    "View",
    "documentation",
    "measure",
    "table",
]


def documentation() -> list[str]:
    """The table of docs/metrics.md, from the docstrings."""
    rows = [
        (f"`{name}`", said["meaning"], said["Formula"], said["Unit"], said["Source"])
        for name, metric in METRICS.items()
        for said in [metric.documentation]
    ]
    return [*markdown(("name", "what", "formula", "unit", "source"), rows)]


@dataclass(frozen=True)
class Measured:
    """One metric of one case, over its runs: a value for each seed in which it is defined."""

    factors: Mapping[str, Factor]
    metric: Metric
    of: str
    detail: str
    values: Mapping[int, float | FirstPassage]

    @property
    def censored(self) -> list[float]:
        """Observed times of the runs that did not reach it."""
        passages = [value for value in self.values.values() if isinstance(value, FirstPassage)]
        return [passage.value for passage in passages if passage.censored]

    @property
    def interval(self) -> Interval:
        """Mean and 95 % interval; without a mean where a run is censored."""
        if self.censored:
            return Interval(math.nan, math.nan, len(self.values))
        return interval(_number(value) for value in self.values.values())

    def __str__(self) -> str:
        _, scale = self.metric.shown
        if not self.censored:
            return with_interval(self.interval, scale)
        least = f"> {min(self.censored) * scale:.4g}"
        n = len(self.values)
        return least if n == 1 else f"{least} in {len(self.censored)} of {n} runs"

    def to_json(self) -> dict[str, object]:
        """Values by seed, mean and interval, in the metric's own unit; censored ones as bounds."""
        return {
            "factors": dict(self.factors),
            "metric": self.metric.name,
            "of": self.of,
            "detail": self.detail,
            "unit": self.metric.documentation["Unit"],
            **self.interval.to_json(),
            "values": {
                str(seed): {"longer_than": value.value}
                if isinstance(value, FirstPassage) and value.censored
                else finite(_number(value))
                for seed, value in self.values.items()
            },
        }


def _number(value: float | FirstPassage) -> float:
    return value.value if isinstance(value, FirstPassage) else float(value)


@dataclass(frozen=True)
class Measurement:
    """Metrics of stored runs over the seeds of each case, and how they were taken."""

    values: Sequence[Measured]
    window: str
    """In words: from where to where, and of how many seeds."""
    refused: Mapping[str, str]
    """Metrics that these runs do not allow, with the reason."""

    def to_json(self) -> dict[str, object]:
        """The object that ``lfn metrics --json`` prints."""
        values = [value.to_json() for value in self.values]
        return {"schema": 1, "window": self.window, "metrics": values, "refused": self.refused}


def measure(
    results: Results,
    names: Sequence[str] = (),
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    window_s: float | None = None,
    base: Results | None = None,
    by: Sequence[str] = ("law",),
) -> Measurement:
    """Metrics of stored runs, over the seeds of each case.

    Args:
        results: the experiment.
        names: of ``METRICS``; default all that the runs have.
        start_s, end_s: the window; default from each run's warm-up to its end.
        window_s: time scale of Jain's index, CoV and convergence; default those of the field.
        base: the same flows with one law for all, for ``camps``, or some of them alone, for
            ``harm``; runs are paired by seed.
        by: properties of flows whose values make a group, see :meth:`lfnlab.Results.by`.

    Raises:
        MetricError: an unknown name, a window that the runs do not have, a metric asked for by name
            that they cannot have.
    """
    for name in names:
        if name not in METRICS:
            raise MetricError(f'no metric "{name}"; allowed: {", ".join(METRICS)}')
    asked = any(value is not None for value in (start_s, end_s, window_s, base))
    found: dict[tuple[Any, ...], dict[int, float | FirstPassage]] = {}
    refused: dict[str, MetricError] = {}
    for run in results.runs:
        if run.is_measured:
            raise MetricError(f"{run.path}: another tool measured it; lfn table shows what it told")
        if "changes_s" not in run.summary:
            raise MetricError(
                f"{run.path}: an earlier version stored it without routes; repeat the command that "
                f"made it (`lfn store show {run.path.parents[1]} {run.path.name[:8]}` prints it)"
            )
        first_s = float(run.summary["warmup_s"]) if start_s is None else start_s
        partner = None if base is None else _partner(run, base)
        grouped(run.properties, by)
        view = View(run, first_s, end_s, window_s, partner, tuple(by))
        for metric in (METRICS[name] for name in names or METRICS):
            try:
                rows = list(metric.rows(view))
            except MetricError as error:
                if names or (asked and not isinstance(error, CoarseSamplesError)):
                    raise
                refused[metric.name] = error
                continue
            for of, detail, value in rows:
                if not math.isnan(_number(value)):
                    key = (tuple(run.factors.items()), metric.name, of, detail)
                    found.setdefault(key, {})[run.seed] = value
    for name in names:
        if not any(key[1] == name for key in found):
            raise MetricError(f"not in these runs; it needs {METRICS[name].needs}", name)
    if not found:
        raise next(iter(refused.values()))
    unit, unit_bps = rate_unit_of(results.runs)
    shown = {
        name: replace(metric, shown=(unit, 1 / unit_bps))
        if metric.documentation["Unit"] == "bit/s"
        else metric
        for name, metric in METRICS.items()
    }
    values = [
        Measured(dict(factors), shown[name], of, detail, by_seed)
        for (factors, name, of, detail), by_seed in found.items()
    ]
    return Measurement(
        values,
        averaged(results, start_s, end_s),
        {name: str(error) for name, error in refused.items()},
    )


def _partner(run: Run, base: Results) -> Run:
    for other in base.runs:
        if other.seed == run.seed:
            return other
    raise MetricError(f"no run with seed {run.seed}; allowed: the seeds of the results", "base")


def table(measured: Sequence[Measured]) -> Table:
    """One line a value: the case, metric, whose, which one, mean and interval, unit."""
    factors = list(measured[0].factors)
    return Table(
        (*factors, "metric", "of", "", "value", "unit"),
        tuple(
            (
                *(str(one.factors[name]) for name in factors),
                one.metric.name,
                one.of,
                one.detail,
                str(one),
                one.metric.shown[0],
            )
            for one in measured
        ),
        len(factors) + 3,
    )
