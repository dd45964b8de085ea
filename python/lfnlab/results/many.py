"""Experiments of very many runs: their list and their rows as columns, not as objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, overload

from lfnlab.results import shards
from lfnlab.results.cases import COMPARED, Factor, Rows, frame

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")
MANY = 20_000
"""More runs than this are kept as columns."""
LOOKED_AT = 2_000
"""So many of them, evenly chosen, are read for what is not in their rows."""
_COLUMNS = (
    *("law", "route", "flows", "goodput_bps", "jain", "cov", "retransmits", "timeouts"),
    *("loss_events", "utilization", "mean_queue_s", "drops", "hash"),
)
"""Of a row, in its order, beside factors and seed."""


class Runs(Sequence[T]):
    """A long list of runs, each made when it is asked for."""

    def __init__(
        self,
        keys: Sequence[str],
        seeds: Sequence[int],
        cases: Sequence[int],
        factors: Sequence[Mapping[str, Factor]],
        make: Callable[[str, int, Mapping[str, Factor]], T],
    ) -> None:
        self.keys, self.seeds, self.cases, self.factors = keys, seeds, cases, factors
        self._make = make

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        return self._make(self.keys[at], self.seeds[at], self.factors[self.cases[at]])

    def __iter__(self) -> Iterator[T]:
        for key, seed, case in zip(self.keys, self.seeds, self.cases, strict=True):
            yield self._make(key, seed, self.factors[case])

    def among(self, keys: set[str]) -> Runs[T]:
        """Those with these keys."""
        kept = [i for i, key in enumerate(self.keys) if key in keys]
        if len(kept) == len(self):
            return self
        return Runs(
            [self.keys[i] for i in kept],
            [self.seeds[i] for i in kept],
            [self.cases[i] for i in kept],
            self.factors,
            self._make,
        )

    def firsts(self) -> list[T]:
        """The first run of each case."""
        first: dict[int, int] = {}
        for at, case in enumerate(self.cases):
            first.setdefault(case, at)
        return [self[at] for at in first.values()]

    def seeds_of_cases(self) -> list[tuple[T, int]]:
        """Of each case its last run, and the number of its runs."""
        last = dict(zip(self.cases, range(len(self)), strict=True))
        counts = Counter(self.cases)
        return [(self[at], counts[case]) for case, at in last.items()]

    def rows(self, home: Path) -> pl.DataFrame | None:
        """The rows of all runs in order, as shards have them, with their factors first.

        ``at`` is the number of the run. None where rows are to be made one by one: runs have
        folders or no flows, or their factors need a word to tell them apart.
        """
        import polars as pl

        names = [
            name for name in dict.fromkeys(n for f in self.factors for n in f) if name != "seed"
        ]
        values = [tuple(factors.get(name) for name in names) for factors in self.factors]
        alike = len(set(values)) < len(values) or any(None in value for value in values)
        mixed = any(len({type(value[i]) for value in values}) > 1 for i in range(len(names)))
        if alike or mixed or {"law", "case", COMPARED, *_COLUMNS}.intersection(names):
            return None
        parts = [part.select("key", *_COLUMNS) for part in shards.of(home).frames()]
        mine = pl.DataFrame(
            {"key": self.keys, "seed": self.seeds, "of case": self.cases}
        ).with_row_index("at")
        if not parts or mine.select("of case", "seed").is_duplicated().any():
            return None
        whole = mine.lazy().join(pl.concat(parts), on="key", how="left", maintain_order="left")
        found = whole.drop("key").collect()
        if found["flows"].null_count() or found["law"].null_count():
            return None
        told = frame([dict(zip(names, value, strict=True)) for value in values])
        columns = [told[name].gather(found["of case"]) for name in told.columns]
        order = ("law", "route", "seed", *_COLUMNS[2:], "at")
        return pl.DataFrame([*columns, *(found[name] for name in order)])


def looked_at(runs: Sequence[T]) -> Sequence[T]:
    """The runs, of very many some that are evenly chosen."""
    if not isinstance(runs, Runs):
        return runs
    return runs[:: max(1, len(runs) // LOOKED_AT)]


def cases_of(rows: pl.DataFrame) -> tuple[Rows, tuple[str, ...]]:
    """The rows of :meth:`Runs.rows`, and the columns that tell cases apart."""
    names = rows.columns[: rows.columns.index("law")]
    told = [name for name in names if not _repeats(rows[name], rows["law"])]
    several = ["route"] if rows["route"].n_unique() > 1 else []
    return Rows(rows.drop("at")), (*told, "law", *several)


def _repeats(values: pl.Series, law: pl.Series) -> bool:
    return values.dtype == law.dtype and bool((values == law).all())
