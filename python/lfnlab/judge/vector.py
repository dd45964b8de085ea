"""A score: values by axis, path and seed, their aggregates, and differences of two scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lfnlab.analysis.table import Table, plain, with_interval
from lfnlab.errors import UsageError
from lfnlab.statistics import Interval, finite, interval, paired

if TYPE_CHECKING:
    import polars as pl

    from lfnlab.judge.probing import Axis

Said = Literal["better", "worse", "equal", "not decided", "no value"]
Values = Mapping[tuple[str, str, int], float]
"""By name of the axis, of the path, and seed."""
_SHOWN = {"s": (1e3, "ms"), "1": (1.0, "")}
"""Factor and unit of a printed value by the axis's unit."""


@dataclass(frozen=True)
class AxisScore:
    """A law on one axis.

    Args:
        axis: what it is.
        median: over the paths, of each seed; mean and 95 % interval over the seeds.
        worst: on the path with the worst mean; mean and 95 % interval over the seeds.
        worst_path: that path.
        bounds: that the objective has for the axis.
    """

    axis: Axis
    median: Interval
    worst: Interval
    worst_path: str
    bounds: tuple[float, float] | None = None

    @property
    def beyond(self) -> bool:
        """Whether the median's interval is outside the objective's bounds."""
        if self.bounds is None or math.isnan(self.median.mean):
            return False
        half = 0.0 if math.isnan(self.median.half) else self.median.half
        low, high = self.bounds
        return self.median.mean + half < low or self.median.mean - half > high

    def to_json(self) -> dict[str, Any]:
        """The object of ``lfn score --json``."""
        return {
            "axis": self.axis.name,
            "what": self.axis.what,
            "unit": self.axis.unit,
            "better": self.axis.better,
            "target": self.axis.target if self.axis.better == "near" else None,
            "median": self.median.to_json(),
            "worst": self.worst.to_json(),
            "worst_path": self.worst_path or None,
            "bounds": None if self.bounds is None else list(self.bounds),
            "beyond": self.beyond,
        }


@dataclass(frozen=True)
class Score:
    """The score of a law: one value an axis, path and seed.

    ``score["goodput-0-0"]`` is an ``AxisScore``; ``frame()`` has every value.
    """

    law: str
    objective: str
    """Version and hash of the objective."""
    axes: tuple[Axis, ...]
    paths: tuple[str, ...]
    seeds: tuple[int, ...]
    values: Values = field(repr=False)
    missing: Mapping[tuple[str, str], str] = field(default_factory=dict, repr=False)
    """By axis and path, why there is no value."""
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    against: tuple[Score, ...] = field(default=(), repr=False)
    """Scores of the other laws, of the same paths and seeds."""

    def __getitem__(self, name: str) -> AxisScore:
        found = {one.axis.name: one for one in self.vector}
        if name not in found:
            raise UsageError(f'score: no axis "{name}"; allowed: {", ".join(found)}')
        return found[name]

    @cached_property
    def vector(self) -> tuple[AxisScore, ...]:
        """The law on each axis, in the objective's order."""
        return tuple(self._axis(axis) for axis in self.axes)

    def value(self, axis: str, path: str, seed: int) -> float:
        """A single value; NaN where there is none."""
        return self.values.get((axis, path, seed), math.nan)

    def on(self, axis: str, path: str) -> Interval:
        """Mean and 95 % interval over the seeds, on one path."""
        return interval(_known(self.value(axis, path, seed) for seed in self.seeds))

    def _axis(self, axis: Axis) -> AxisScore:
        means = {path: self.on(axis.name, path) for path in self.paths}
        known = {path: found for path, found in means.items() if found.n}
        worst = max(known, key=lambda path: axis.badness(known[path].mean), default="")
        return AxisScore(
            axis,
            interval(_medians(self, axis.name, list(known)).values()),
            known.get(worst, interval(())),
            worst,
            self.bounds.get(axis.name),
        )

    def frame(self) -> pl.DataFrame:
        """Columns law, path, axis, seed, value (null where there is none), unit, objective."""
        import polars as pl

        rows = [
            (self.law, path, axis.name, seed, finite(self.value(axis.name, path, seed)), axis.unit)
            for path in self.paths
            for axis in self.axes
            for seed in self.seeds
        ]
        schema = {
            "law": pl.String,
            "path": pl.String,
            "axis": pl.String,
            "seed": pl.UInt64,
            "value": pl.Float64,
            "unit": pl.String,
        }
        found = pl.DataFrame(rows, schema, orient="row")
        return found.with_columns(objective=pl.lit(self.objective))

    def compare(self, other: Score, *, confidence: float = 0.95) -> Comparison:
        """This score beside another one, seed by seed.

        Args:
            other: of the same objective, paths and seeds.
            confidence: of the intervals, such as 1 - 0.05/n of n comparisons (Bonferroni).

        Raises:
            UsageError: scores of other objectives, paths or seeds.
        """
        for what in ("objective", "paths", "seeds"):
            own, its = getattr(self, what), getattr(other, what)
            if own != its:
                raise UsageError(f"compare: {what} {own} and {its}; allowed: the same of both")
        if not 0 < confidence < 1:
            raise UsageError(f"compare: confidence {confidence}; allowed: between 0 and 1")
        return Comparison(self, other, confidence)

    def to_json(self) -> dict[str, Any]:
        """The object of ``lfn score --json``: the same bytes for the same runs."""
        return {
            "law": self.law,
            "objective": self.objective,
            "paths": list(self.paths),
            "seeds": list(self.seeds),
            "axes": [one.to_json() for one in self.vector],
            "missing": [
                {"axis": axis, "path": path, "why": why}
                for (axis, path), why in self.missing.items()
            ],
            "against": [
                {"law": one.law, "axes": self.compare(one).to_json()} for one in self.against
            ],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterable[str]:
        others = [(one, self.compare(one)) for one in self.against]
        headings = ["axis", "unit", "best", "median"]
        for one, _ in others:
            headings += [one.law, "than it"]
        headings += ["worst", "on"]
        rows = []
        for at, own in enumerate(self.vector):
            factor, unit = _SHOWN[own.axis.unit]
            best = f"{own.axis.target:g}" if own.axis.better == "near" else own.axis.better
            cells = [own.axis.name, unit, best, with_interval(own.median, factor)]
            for one, comparison in others:
                cells.append(with_interval(one.vector[at].median, factor))
                cells.append(comparison.rows[at].said)
            rows.append((*cells, with_interval(own.worst, factor), own.worst_path))
        where = f"{len(self.paths)} path{'s' if len(self.paths) > 1 else ''}"
        yield f"{self.law}: objective {self.objective}, {where}, seeds {_few(self.seeds)}"
        yield from plain(Table(tuple(headings), tuple(map(tuple, rows)), 3))
        for own in self.vector:
            if own.beyond and own.bounds is not None:
                low, high = own.bounds
                yield f"{own.axis.name} is beyond the objective's bounds, {low:g} to {high:g}"
        for one in (self, *self.against):
            for why in dict.fromkeys(one.missing.values()):
                names = dict.fromkeys(
                    axis for (axis, _), said in one.missing.items() if said == why
                )
                yield f"{one.law} has no value of {', '.join(names)}: {why}"


@dataclass(frozen=True)
class Row:
    """The difference of two laws on an axis, or on an axis and path."""

    axis: Axis
    path: str
    """Empty for the median over the paths."""
    difference: Interval
    """The first less the second, seed by seed, in the axis's unit."""
    worse: Interval
    """By how much the first is worse, seed by seed: of a target, by the distances from it."""

    @property
    def said(self) -> Said:
        """Whether the interval of ``worse`` leaves 0 out; "equal" where each seed has the same."""
        if self.worse.n == 0:
            return "no value"
        if all(value == 0.0 for value in self.difference.values):
            return "equal"
        if self.worse.low > 0.0:
            return "worse"
        return "better" if self.worse.high < 0.0 else "not decided"

    def to_json(self) -> dict[str, Any]:
        """The object of ``lfn score --json``."""
        return {
            "axis": self.axis.name,
            "difference": self.difference.to_json(),
            "worse": self.worse.to_json(),
            "said": self.said,
        }


@dataclass(frozen=True)
class Comparison:
    """Two scores of one objective, paths and seeds: their differences seed by seed."""

    first: Score
    second: Score
    confidence: float = 0.95

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Of each axis the difference of the medians over the paths on which both have values."""
        return tuple(self._row(axis, [*self.first.paths]) for axis in self.first.axes)

    @cached_property
    def by_path(self) -> tuple[Row, ...]:
        """Of each path and axis the difference there."""
        return tuple(
            self._row(axis, [path], path) for path in self.first.paths for axis in self.first.axes
        )

    def _row(self, axis: Axis, paths: Sequence[str], named: str = "") -> Row:
        both = [
            path
            for path in paths
            if self.first.on(axis.name, path).n and self.second.on(axis.name, path).n
        ]
        own, its = (_medians(one, axis.name, both) for one in (self.first, self.second))
        seeds = [seed for seed in self.first.seeds if seed in own and seed in its]
        a, b = ([of[seed] for seed in seeds] for of in (own, its))
        bad_a, bad_b = ([axis.badness(value) for value in of] for of in (a, b))
        return Row(
            axis,
            named,
            paired(a, b, self.confidence),
            paired(bad_a, bad_b, self.confidence),
        )

    def frame(self) -> pl.DataFrame:
        """A row a path and axis, and one with path null for the median over the paths.

        Columns path, axis, unit, difference, difference_ci, worse, worse_ci, said.
        """
        import polars as pl

        rows = [
            (
                row.path or None,
                row.axis.name,
                row.axis.unit,
                finite(row.difference.mean),
                finite(row.difference.half),
                finite(row.worse.mean),
                finite(row.worse.half),
                row.said,
            )
            for row in (*self.rows, *self.by_path)
        ]
        numbers = ("difference", "difference_ci", "worse", "worse_ci")
        schema = {
            **dict.fromkeys(("path", "axis", "unit"), pl.String),
            **dict.fromkeys(numbers, pl.Float64),
            "said": pl.String,
        }
        return pl.DataFrame(rows, schema, orient="row")

    def to_json(self) -> list[dict[str, Any]]:
        """The rows of ``lfn score --json``."""
        return [row.to_json() for row in self.rows]

    def __str__(self) -> str:
        rows = []
        for row in self.rows:
            factor, unit = _SHOWN[row.axis.unit]
            rows.append((row.axis.name, unit, with_interval(row.difference, factor), row.said))
        headings = ("axis", "unit", f"{self.first.law} less {self.second.law}", "")
        return "\n".join(plain(Table(headings, tuple(rows), 2)))


def _medians(score: Score, axis: str, paths: Sequence[str]) -> dict[int, float]:
    """By seed the median over the paths; a seed counts if all of them have its value."""
    found = {}
    for seed in score.seeds:
        values = [score.value(axis, path, seed) for path in paths]
        if values and all(map(math.isfinite, values)):
            found[seed] = float(np.median(values))
    return found


def _known(values: Iterable[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _few(seeds: Sequence[int]) -> str:
    whole = len(seeds) > 3 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))
