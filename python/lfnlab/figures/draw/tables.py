"""The tables of results, each row with what tells its run apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import polars as pl

from lfnlab import metrics
from lfnlab.errors import StoreError, UsageError
from lfnlab.figures import plot
from lfnlab.results import shards
from lfnlab.results.index import names_of
from lfnlab.results.integrity import TABLES, checked, tables_of
from lfnlab.results.runs import Results, Run, route
from lfnlab.results.store import check_size
from lfnlab.results.tables import declared, frame

# One line of a plot is the rows that agree in all of these.
TRACE = ("source", "run", "flow", "link", "probe")
SAMPLE = ("source", "run", "t_s")
#: Between the names of two tables that are joined by their times.
AND = "+"
GOODPUT, SUMMARY, FLOWS, LINKS = "goodput", "summary", "summary.flows", "summary.links"
_LISTED = 12
"""Runs that an error lists."""
#: Codes that are drawn over time as numbers.
_NUMBERS = ("state",)
_CLASSES = ("direction", "rtt", "start", "size", "group")
"""Properties of flows as the scenario writes them."""


class Tables:
    """The tables of all sources, stored and derived, each as one lazy frame."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files: dict[str, list[tuple[Path, Run | None, str]]] = {}
        self._runs: list[tuple[Run, str]] = []
        self._sources = names_of(paths)
        for path, name in zip(paths, self._sources, strict=True):
            if path.suffix == ".parquet":
                if not path.is_file():
                    raise StoreError(f"cannot read results: {path} does not exist")
                home = path.parent
                run = _single(home) if (home / "summary.json").is_file() else None
                self._files.setdefault(path.stem, []).append((path, run, name))
                continue
            for run in _runs(path):
                self._runs.append((run, name))
                for table in tables_of(run.path):
                    file = run.path / f"{table}.parquet"
                    self._files.setdefault(table, []).append((file, run, name))
        self.several = len(paths) > 1

    @property
    def runs(self) -> list[Run]:
        """The runs of all sources."""
        return [run for run, _ in self._runs]

    @cached_property
    def names(self) -> list[str]:
        """Stored tables first, then those made from them and from the summaries."""
        stored = sorted(self._files, key=lambda n: (TABLES.index(n) if n in TABLES else 9, n))
        derived = [GOODPUT, SUMMARY, FLOWS, LINKS] if self._runs else []
        return list(dict.fromkeys([*stored, *(name for name in derived if self._has(name))]))

    @cached_property
    def factors(self) -> list[str]:
        """Names of what differs between the cases of the experiments, the law aside."""
        names = dict.fromkeys(name for run, _ in self._runs for name in run.factors)
        return [name for name in names if name != "law"]

    def _has(self, name: str) -> bool:
        if name == GOODPUT:
            return "flows" in self._files
        summaries = [run.summary for run, _ in self._runs]
        return any(one["links"] if name == LINKS else one["flows"] for one in summaries)

    @cache  # noqa: B019  (a Tables lives as long as its drawing)
    def frame(self, name: str) -> pl.LazyFrame:
        """Rows of all runs, with the columns that tell them apart; of "a+b" those of one time."""
        if AND in name:
            left, right = (self.frame(part) for part in name.split(AND))
            both = set(left.collect_schema()) & set(right.collect_schema())
            return left.join(right.drop(both - set(SAMPLE)), on=SAMPLE, maintain_order="left")
        frames = (frame for _, frame in self.parts(name))
        return pl.concat(frames, how="diagonal_relaxed")

    @cache  # noqa: B019
    def parts(self, name: str) -> list[tuple[Run | None, pl.LazyFrame]]:
        """The rows of a table by run, or by file without a run, in the order of the sources."""
        parts = [(entry[2], entry[1], self._stored(*entry)) for entry in self._files.get(name, [])]
        have = {run.path for _, run, _ in self._files.get(name, []) if run is not None}
        for run, source in self._runs:
            if run.path not in have and (made := _derived(run, name)) is not None:
                parts.append((source, run, _told_apart(made, run, source)))
        # What one source has stored may be made of another's: back to the order of the sources.
        parts.sort(key=lambda part: self._sources.index(part[0]))
        return [(run, frame) for _, run, frame in parts]

    def columns(self, name: str) -> pl.Schema:
        """Columns of a table with their types."""
        return self.frame(name).collect_schema()

    def _stored(self, file: Path, run: Run | None, source: str) -> pl.LazyFrame:
        if run is not None and shards.holds(run.path):
            made = run.table(file.stem).lazy()
            return _told_apart(_named(made, file.stem, run), run, source)
        frame = pl.scan_parquet(checked(file))
        check_size(file)
        try:
            frame.collect_schema()
        except (pl.exceptions.PolarsError, OSError):
            raise StoreError(f"cannot read results: {file} is not a table") from None
        if run is None:
            return frame.with_columns(source=pl.lit(source))
        return _told_apart(_named(frame, file.stem, run), run, source)


def _runs(path: Path) -> Sequence[Run]:
    if (path / "summary.json").is_file() and not (path / "experiment.json").is_file():
        return [_single(path)]
    return Results.load(path).runs


def one_run(path: Path, which: str | None) -> Run:
    """The run of a results directory that has this seed or key; without either, the only one.

    Raises:
        UsageError: when there is none or more than one.
        StoreError: when there are no results.
    """
    return one_of(_runs(path), which)


def one_of(runs: Sequence[Run], which: str | None) -> Run:
    """The one of these runs, as :func:`one_run`."""
    found = [run for run in runs if which in (None, str(run.seed), run.path.name)]
    if len(found) != 1:
        first = runs[:_LISTED]
        known = ", ".join(f"{r.path.name} ({plot.panel_title(r)}, seed {r.seed})" for r in first)
        more = f" and {len(runs) - _LISTED:,} more" if len(runs) > _LISTED else ""
        said = "several runs" if found else "no such run"
        raise UsageError(f"--run: {said}; allowed, by key or by seed: {known}{more}")
    return found[0]


def _single(path: Path) -> Run:
    run = Run(path, 0, {})
    return Run(path, run.summary.get("seed") or 0, {})


def _derived(run: Run, name: str) -> pl.LazyFrame | None:
    """A table that is made from a run's others, or None if this run has no rows for it."""
    rows: Sequence[Mapping[str, Any]]
    if name == GOODPUT:
        schema = metrics.goodput_bins(frame("flows", [])).schema
        # Made when its rows are asked for, not its columns.
        made = pl.LazyFrame(schema=schema).map_batches(
            lambda _: metrics.goodput_bins(run.table("flows")), schema=schema
        )
        return _named(made, name, run)
    if name == SUMMARY:
        rows = run.by_law()
    elif name == FLOWS:
        classes = {key: run.properties[key] for key in _CLASSES if key in run.properties}
        rows = [
            {"flow": flow["id"], **flow, **{key: own[place] for key, own in classes.items()}}
            for place, flow in enumerate(run.summary["flows"])
        ]
    elif name == LINKS:
        rows = [{"link": link["id"], **link} for link in run.summary["links"]]
    else:
        return None
    scalars = [
        {key: v for key, v in row.items() if not isinstance(v, list | dict) and key != "id"}
        for row in rows
    ]
    if not scalars:
        return None
    made = pl.LazyFrame(scalars, infer_schema_length=None)
    # What no flow tells is a number that is not there.
    return made.with_columns(pl.col(pl.Null).cast(pl.Float64))


def _named(frame: pl.LazyFrame, table: str, run: Run) -> pl.LazyFrame:
    """Names in place of indices, and the law of each row's flow."""
    columns = frame.collect_schema()
    summary = run.summary
    if "flow" in columns:
        numbers = [flow["id"] for flow in summary["flows"]]
        frame = frame.with_columns(
            law=_renamed("flow", {flow["id"]: flow["law"] for flow in summary["flows"]}, "other"),
            route=_renamed("flow", {flow["id"]: route(flow) for flow in summary["flows"]}, "other"),
        )
        frame = frame.with_columns(
            _renamed("flow", dict(zip(numbers, run.properties[key], strict=True)), "other").alias(
                key
            )
            for key in _CLASSES
            if key in run.properties and key not in columns
        )
    if "link" in columns and columns["link"].is_integer():
        ids = {i: link["id"] for i, link in enumerate(summary["links"])}
        frame = frame.with_columns(link=_renamed("link", ids))
    for column in declared().get(table, {}).values():
        if column.codes and column.name in columns and column.name not in _NUMBERS:
            words = dict(enumerate(column.codes))
            frame = frame.with_columns(_renamed(column.name, words))
    if "t_ps" in columns:
        frame = frame.with_columns(t_s=pl.col("t_ps") / 1e12)
    if "probe" in columns and "flow" in columns:
        names = pl.col("probe").cast(pl.String)
        for each in run.laws:
            own = _renamed("probe", dict(enumerate(run.probes(each))))
            names = pl.when(pl.col("law") == each).then(own).otherwise(names)
        frame = frame.with_columns(probe=names)
    return frame


def _renamed(column: str, names: dict[int, str], default: str | None = None) -> pl.Expr:
    """Names for indices; what has none is ``default``, or its own digits."""
    other = pl.col(column).cast(pl.String) if default is None else pl.lit(default)
    if not names:
        return other
    return pl.col(column).replace_strict(
        list(names), list(names.values()), default=other, return_dtype=pl.String
    )


def _told_apart(frame: pl.LazyFrame, run: Run, source: str) -> pl.LazyFrame:
    columns = frame.collect_schema().names()
    tags: dict[str, Any] = {
        "law": ", ".join(run.laws),
        **run.factors,
        "case": plot.panel_title(run),
        "seed": run.seed,
        "run": run.path.name,
        "source": source,
    }
    # The law of a row's own flow says more than that of the run.
    return frame.with_columns(
        pl.lit(value).alias(name) for name, value in tags.items() if name not in columns
    )
