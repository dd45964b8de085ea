"""Differences in an experiment: each value of a factor beside the first one, seed by seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lfnlab.analysis.table import Table, with_interval
from lfnlab.results.cases import is_law
from lfnlab.statistics import FEW, Interval, student_t

if TYPE_CHECKING:
    import polars as pl

    from lfnlab.results.runs import Results

SAID = (
    f"Mean differences of runs with one seed, over at least {FEW} seeds. A case counts as higher "
    "or lower where the 95 % interval (Student's t) does not hold 0; among cases without a "
    "difference one of twenty does so by chance."
)
MOST_VALUES = 12
"""A factor of more values, such as one drawn at random, has no rows here."""
_METRICS = {
    "goodput_bps": ("goodput (Mbit/s)", 1e-6),
    "utilization": ("utilization (%)", 100.0),
    "mean_queue_s": ("mean queue (ms)", 1e3),
    "retransmits": ("retransmits", 1.0),
}


def table(results: Results) -> Table | None:
    """How many cases have a higher or a lower value than with the first value of a factor.

    Of one case its difference with the interval stands there.

    Returns:
        A row for each further value of a factor; None where no case has enough seeds for it.
    """
    rows = results.frame() if results.cases.rows else None
    if rows is None or rows["seed"].n_unique() < FEW:
        return None
    keys = [key for key in results.keys if key in rows.columns]
    if rows.select(*keys, "seed").is_duplicated().any():
        return None
    # Flows of one run are not alike: a law beside its neighbour is no law in place of another.
    mixed = {*results.groups} | {
        key
        for key in ("law", "route")
        if any(len({row[key] for row in run.by_law()}) > 1 for run in results.looked_at)
    }
    found = []
    for key in sorted(keys, key=is_law, reverse=True):
        values = rows[key].unique(maintain_order=True).to_list()
        if key in mixed or (is_law(key) and "law" in mixed) or len(values) > MOST_VALUES:
            continue
        others = [other for other in keys if other != key]
        for value in values[1:]:
            cells = _beside(rows, key, (values[0], value), others)
            if cells is not None:
                found.append((key, f"{value} beside {values[0]}", *cells))
    headings = ("factor", "value", *(heading for heading, _ in _METRICS.values()))
    return Table(headings, tuple(found), 2) if found else None


def _beside(
    rows: pl.DataFrame, key: str, values: tuple[object, object], others: list[str]
) -> list[str] | None:
    """The cells of one value beside the first one; None where no case has both often enough."""
    import polars as pl

    first, second = (
        rows.filter(pl.col(key) == value).select(
            *others, "seed", *(pl.col(metric).cast(pl.Float64) for metric in _METRICS)
        )
        for value in values
    )
    pairs = second.join(first, on=[*others, "seed"], suffix="_first", nulls_equal=True)
    differences = pairs.select(
        *others, *(pl.col(metric) - pl.col(f"{metric}_first") for metric in _METRICS)
    )
    cells = []
    for metric, (_, scale) in _METRICS.items():
        of = pl.col(metric).drop_nans()
        told = [of.count().alias("n"), of.mean().alias("mean"), of.std().alias("s")]
        cases = differences.group_by(others).agg(told) if others else differences.select(told)
        intervals = [
            Interval(mean, student_t(n - 1) * s / n**0.5, n)
            for n, mean, s in cases.select("n", "mean", "s").iter_rows()
            if n >= FEW
        ]
        if len(intervals) == 1 == cases.height:
            cells.append(with_interval(intervals[0], scale))
        else:
            cells.append(_counted(intervals) if intervals else "–")
    return None if {*cells} == {"–"} else cells


def _counted(intervals: list[Interval]) -> str:
    """Such as "18 higher, 2 lower of 25"."""
    higher = sum(one.low > 0.0 for one in intervals)
    lower = sum(one.high < 0.0 for one in intervals)
    words = [f"{count} {word}" for count, word in ((higher, "higher"), (lower, "lower")) if count]
    return f"{', '.join(words) or 'none'} of {len(intervals)}"
