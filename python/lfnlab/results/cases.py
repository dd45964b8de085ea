"""Cases and replicates: means over seeds, and differences from a baseline, with 95 % intervals.

A case is what has the same values of all keys: factors, law, route. Its replicates are its seeds.
Runs of two cases with one seed meet the same traffic, so they are compared seed by seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lfnlab import statistics
from lfnlab.errors import LabError, UsageError
from lfnlab.printable import lines

if TYPE_CHECKING:
    import polars as pl

    from lfnlab.statistics import Interval

Factor = str | int | float
Row = dict[str, Any]
Group = tuple[Factor, ...]

METRICS = (
    "goodput_bps",
    "jain",
    "cov",
    "utilization",
    "mean_queue_s",
    "retransmits",
    "timeouts",
    "loss_events",
)
"""Columns of a summary that are averaged."""
GROUP_METRICS = ("flow_goodput_bps", "fair_share", "completion_s")
"""More columns of rows that are groups of flows."""
SHOWN = ("goodput_bps", "utilization", "mean_queue_s", "retransmits")
"""Those that a printed table has."""
FEW_SEEDS = 1_000
"""An interval of very many rows holds so many values at most."""
LINK_METRICS = ("utilization", "mean_queue_s", "drops")
"""Those of links."""
COMPARED = "law compared"
"""Key of rows: the law that is compared, where other laws run beside it."""


class Rows(Sequence[Row]):
    """Very many rows, each made of a frame when it is asked for."""

    def __init__(self, columns: pl.DataFrame) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return self.columns.height

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self.columns[at].to_dicts()
        return self.columns.row(at, named=True)

    def __iter__(self) -> Iterator[Row]:
        return self.columns.iter_rows(named=True)


@dataclass(frozen=True)
class Cases:
    """Rows of runs, one a run, law and route, and the columns whose values make a case."""

    rows: Sequence[Row]
    keys: tuple[str, ...]

    def __repr__(self) -> str:
        return shown(f"{len(self.rows):,} rows by {', '.join(self.keys)}", self.brief)

    def brief(self) -> pl.DataFrame:
        """:meth:`table` with the few columns that a terminal has room for."""
        there = [name for name in SHOWN if not self.rows or name in self.rows[0]]
        others = {f"{name}_ci95" for name in there[1:]}
        return self.table(there).drop(others, strict=False)

    def intervals(self, metric: str, by: Sequence[str] | None = None) -> dict[Group, Interval]:
        """Mean and 95 % interval of a column over the seeds of each group.

        Args:
            metric: the column.
            by: the columns whose values make a group; default all keys.

        Raises:
            UsageError: for an unknown column, or when a group has two rows of one seed, which are
                no replicates.
        """
        by = self.keys if by is None else by
        if isinstance(self.rows, Rows):
            return self._of_columns(self.rows.columns, metric, by)
        groups: dict[Group, dict[int, float]] = {}
        for group, row in self._grouped(metric, by):
            groups.setdefault(group, {})[row["seed"]] = row[metric]
        return {group: statistics.interval(seeds.values()) for group, seeds in groups.items()}

    def _of_columns(
        self, rows: pl.DataFrame, metric: str, by: Sequence[str]
    ) -> dict[Group, Interval]:
        """:meth:`intervals` of very many rows; those of many seeds do not hold their values."""
        import polars as pl

        self._check_metric(metric)
        alike = pl.col("seed").is_duplicated().any().alias("alike")
        groups = rows.group_by(by, maintain_order=True).agg(metric, alike)
        if groups["alike"].any():
            raise self._no_replicates(metric, by)
        found: dict[Group, Interval] = {}
        for *group, values, _ in groups.iter_rows():
            whole = statistics.interval(values)
            many = statistics.Interval(whole.mean, whole.half, whole.n)
            found[tuple(group)] = whole if whole.n <= FEW_SEEDS else many
        return found

    def counts(self) -> dict[Group, int]:
        """The number of rows of each case."""
        if isinstance(self.rows, Rows):
            counted = self.rows.columns.group_by(self.keys, maintain_order=True).len()
            return {tuple(group): count for *group, count in counted.iter_rows()}
        return Counter(tuple(row.get(key, "") for key in self.keys) for row in self.rows)

    def is_all(self, name: str, value: Any) -> bool:
        """Whether every row that has a column has this value there."""
        if isinstance(self.rows, Rows):
            return bool((self.rows.columns[name] == value).all())
        return all(row.get(name, value) == value for row in self.rows)

    def table(self, metrics: Sequence[str] = METRICS) -> pl.DataFrame:
        """A row a case: its keys, the number of seeds, and of each metric the mean over them.

        ``METRIC_ci95`` is the half-width of the mean's 95 % interval (Student's t), null where
        there is one seed. A mean is null where it is not defined, as the CoV of a flow of one
        second. Units are those of the metric: bit/s, seconds.

        Raises:
            UsageError: for an unknown metric, naming those that are there.
        """
        rows: dict[Group, Row] = {}
        for metric in metrics:
            for group, value in self.intervals(metric).items():
                told = {**dict(zip(self.keys, group, strict=True)), "seeds": value.n}
                rows.setdefault(group, told)
                rows[group] |= {
                    metric: statistics.finite(value.mean),
                    f"{metric}_ci95": statistics.finite(value.half),
                }
        return frame([*rows.values()])

    def compare(
        self, baseline: str | Mapping[str, Factor], metrics: Sequence[str] = METRICS
    ) -> pl.DataFrame:
        """A row a case beside the baseline: means over seeds of the differences, seed by seed.

        A case is compared with the baseline case that has the same values of all other keys, and
        only over seeds that both have; ``seeds`` is their number, 0 where there is no such case.
        ``METRIC_difference`` is the mean of case minus baseline, ``METRIC_ci95`` the half-width of
        its 95 % interval (Student's t). The two differ at that level if 0 lies outside.

        Args:
            baseline: a law, or values of keys, such as ``{"link.queue.size": "1bdp"}``.
            metrics: columns of :meth:`lfnlab.Results.frame`.

        Raises:
            UsageError: for an unknown key, value or metric, naming those that are there.
        """
        pairs = self._pairs(baseline)
        rows: dict[Group, Row] = {
            group: {**dict(zip(self.keys, group, strict=True)), "seeds": len(both)}
            for group, both in pairs.items()
        }
        for metric in metrics:
            for group, value in self._differences(metric, pairs).items():
                rows[group] |= {f"{metric}_difference": statistics.finite(value.mean)}
                rows[group] |= {f"{metric}_ci95": statistics.finite(value.half)}
        return frame([*rows.values()])

    def differences(
        self, metric: str, baseline: str | Mapping[str, Factor]
    ) -> dict[Group, Interval]:
        """The differences of :meth:`compare` in one metric, by case."""
        return self._differences(metric, self._pairs(baseline))

    def _differences(
        self, metric: str, pairs: Mapping[Group, Sequence[tuple[Row, Row]]]
    ) -> dict[Group, Interval]:
        self._check_metric(metric)
        return {
            group: statistics.paired([row[metric] for row, _ in both], [o[metric] for _, o in both])
            for group, both in pairs.items()
        }

    def _pairs(self, baseline: str | Mapping[str, Factor]) -> dict[Group, list[tuple[Row, Row]]]:
        """Rows of each case beside the baseline, with the row of the baseline of their seed."""
        fixed = self._baseline(baseline)
        # The law of a row follows the factor that is a law: other rows are those of neighbours.
        law = next((key for key in fixed if key != "law" and is_law(key)), None)
        others = [key for key in self.keys if key not in fixed and (key != "law" or law is None)]
        references: dict[Group, list[Row]] = {}
        tested: dict[Group, list[tuple[Group, Row]]] = {}
        for group, row in self._grouped(METRICS[0], self.keys):
            place = (row["seed"], *(row.get(key, "") for key in others))
            if all(row.get(key) == value for key, value in fixed.items()):
                references.setdefault(place, []).append(row)
            else:
                tested.setdefault(group, []).append((place, row))
        peers = {
            group: [(row, _peer(row, references.get(place, []), law)) for place, row in own]
            for group, own in tested.items()
        }
        return {
            group: [(row, peer) for row, peer in own if peer is not None]
            for group, own in peers.items()
        }

    def _baseline(self, baseline: str | Mapping[str, Factor]) -> dict[str, Factor]:
        """The keys and values that the baseline fixes; of a law the key that varies it."""
        if not self.rows:
            raise UsageError("baseline: these runs have no flows under test")
        if not isinstance(baseline, str):
            wanted = dict(baseline)
        else:
            laws = [key for key in self.keys if is_law(key)]
            swept = [key for key in laws if key != "law"] or laws
            if len(swept) > 1:
                raise UsageError(
                    f'baseline "{baseline}": {" and ".join(swept)} hold laws; write for example '
                    f'{{"{swept[0]}": "{baseline}"}}'
                )
            wanted = {swept[0]: baseline}
        for key, value in wanted.items():
            if key not in self.keys:
                raise UsageError(f'baseline: no key "{key}"; allowed: {", ".join(self.keys)}')
            values = list(dict.fromkeys(row.get(key, "") for row in self.rows))
            if value not in values:
                raise UsageError(
                    f"baseline: no case has {key} = {value}; allowed: {', '.join(map(str, values))}"
                )
        return wanted

    def _grouped(self, metric: str, by: Sequence[str]) -> Iterator[tuple[Group, Row]]:
        """Each row with the group it belongs to, once for each seed."""
        self._check_metric(metric)
        seen = set()
        for row in self.rows:
            group = tuple(row.get(key, "") for key in by)
            if (group, row["seed"]) in seen:
                raise self._no_replicates(metric, by)
            seen.add((group, row["seed"]))
            yield group, row

    def _no_replicates(self, metric: str, by: Sequence[str]) -> UsageError:
        left = ", ".join(key for key in self.keys if key not in by)
        return UsageError(
            f"intervals of {metric} by {', '.join(by)}: several values for one seed are no "
            f"replicates; name what differs too: {left or 'the factors'}"
        )

    def _check_metric(self, metric: str) -> None:
        if self.rows and metric not in self._metrics:
            raise UsageError(f'no metric "{metric}"; allowed: {", ".join(self._metrics)}')

    @cached_property
    def _metrics(self) -> tuple[str, ...]:
        """Columns of numbers that are no keys."""
        return tuple(
            name
            for name, value in self.rows[0].items()
            if isinstance(value, int | float) and name not in (*self.keys, "seed")
        )


def shown(head: str, table: Callable[[], pl.DataFrame]) -> str:
    """A heading, and a frame with all of its columns as polars prints it, or why there is none."""
    import polars as pl

    try:
        with pl.Config(tbl_cols=-1, tbl_width_chars=-1, tbl_hide_column_data_types=True):
            return lines(f"{head}\n{table()}")
    except (LabError, LookupError, ValueError) as error:  # as of a measurement without links
        return lines(f"{head}\n{error}")


def is_law(key: str) -> bool:
    """Whether the values of a factor are laws."""
    return key in ("law", COMPARED) or key.endswith(".law")


def _peer(row: Row, references: Sequence[Row], law: str | None) -> Row | None:
    """The row of the baseline that stands for this one: as many flows, of the same part."""
    alike = [other for other in references if other["flows"] == row["flows"]]
    if law is None:
        return alike[0] if len(alike) == 1 else None
    part = [other for other in alike if (other["law"] == other[law]) == (row["law"] == row[law])]
    same = [other for other in alike if other["law"] == row["law"]]
    found = part if row["law"] == row[law] else same
    return found[0] if len(found) == 1 else None


def numbered(rows: Sequence[tuple[tuple[Any, ...], Sequence[Mapping[str, Any]]]]) -> list[Row]:
    """The rows of runs; where runs have the same factors and seed, ``case`` counts them from 1.

    Args:
        rows: of each run what should tell it apart, and its rows.
    """
    seen: Counter[tuple[Any, ...]] = Counter()
    places = []
    for same, _ in rows:
        seen[same] += 1
        places.append(seen[same])
    alike = max(places, default=1) > 1
    return [
        {**({"case": place} if alike else {}), **row}
        for (_, own), place in zip(rows, places, strict=True)
        for row in own
    ]


def frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as a frame; a column of several types is of texts, an empty one has a type too."""
    import polars as pl

    columns = dict.fromkeys(key for row in rows for key in row)
    series = []
    for name in columns:
        values = [row.get(name) for row in rows]
        kinds = {type(value) for value in values} - {type(None)}
        if not kinds:
            kind = pl.String if name in ("law", "name") else pl.Float64
            series.append(pl.Series(name, values, dtype=kind))
            continue
        if kinds == {int, float}:
            values = [None if value is None else float(value) for value in values]
        elif len(kinds) > 1:
            values = [None if value is None else str(value) for value in values]
        series.append(pl.Series(name, values))
    return pl.DataFrame(series)
