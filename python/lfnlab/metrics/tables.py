"""Windows of time over the tables of a run: counters, bins, spreads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.errors import MetricError

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    #: A link's rate in bit/s, or its rates in order of time, each after the second of its begin.
    Rate = float | Sequence[tuple[float, float]]

__all__ = [
    "CoarseSamplesError",
    "FirstPassage",
    "Spread",
    "by_flow",
    "mean_rate",
    "sampling_s",
    "spread",
]

#: Grid times are multiples of the sample in binary floating point: allow for the last bits.
SLACK = 1e-9


class CoarseSamplesError(MetricError):
    """A metric of what happens between the samples that a run has."""


@dataclass(frozen=True)
class FirstPassage:
    """When something was first reached, or that it was not: then only that it is later.

    ``value`` is the time that it took, or, ``censored``, the observed time without the event. A
    mean over runs of which one is censored does not exist.
    """

    value: float
    censored: bool = False

    def __str__(self) -> str:
        return f"> {self.value:g}" if self.censored else f"{self.value:g}"


@dataclass(frozen=True)
class Spread:
    """Of ``n`` values: mean, nearest-rank percentiles, largest.

    The p-th percentile is the smallest value that p % of all do not exceed.
    """

    mean: float
    p50: float
    p95: float
    p99: float
    max: float
    n: int


def spread(values: ArrayLike) -> Spread:
    """Mean, percentiles and largest of values; NaN of none."""
    x = np.asarray(values, dtype=float)
    if x.size == 0:
        return Spread(math.nan, math.nan, math.nan, math.nan, math.nan, 0)
    p50, p95, p99 = np.percentile(x, [50, 95, 99], method="inverted_cdf")
    return Spread(float(np.mean(x)), float(p50), float(p95), float(p99), float(np.max(x)), x.size)


def mean_rate(rate_bps: Rate, start_s: float, end_s: float) -> float:
    """Mean rate of a link from one time to another, in bit/s."""
    rates = rates_of(rate_bps)
    since = np.clip([*(t for t, _ in rates), math.inf], start_s, end_s)
    return float(np.diff(since) @ [rate for _, rate in rates]) / (end_s - start_s)


def sampled(queues: pl.DataFrame, column: str) -> bool:
    """Whether a table of queues has this column: Linux's TCP and lfnlab 0.1.0 do not sample all."""
    return column in queues.columns and not queues[column].is_null().all()


def capacity_bits(
    queues: pl.DataFrame, link: int, rate_bps: Rate | None, start_s: float, end_s: float | None
) -> float:
    """Bits that a link could have sent from the first to the last sample of a window."""
    if sampled(queues, "capacity_bytes"):
        _, capacity = link_counter(queues, "capacity_bytes", link, start_s, end_s)
        return 8.0 * float(capacity[-1] - capacity[0])
    if rate_bps is None:
        raise MetricError("the table has no capacity_bytes; give the link's rate", "rate_bps")
    t, _ = link_counter(queues, "sent_bytes", link, start_s, end_s)
    return mean_rate(rate_bps, t[0], t[-1]) * float(t[-1] - t[0])


def rates_of(rate_bps: Rate) -> Sequence[tuple[float, float]]:
    """A link's rates in order of time, each after the second from which it holds."""
    if isinstance(rate_bps, int | float):
        return [(0.0, positive("rate_bps", rate_bps))]
    return rate_bps


def sampling_s(table: pl.DataFrame) -> float:
    """Time between the samples of a table, in seconds."""
    need_columns("flows", table, "t_s")
    times = table["t_s"].to_numpy()
    steps = np.diff(times)
    if "flow" in table.columns:
        flows = table["flow"].to_numpy()
        if not np.any(flows[1:] < flows[:-1]):  # flow after flow: no step from one to the next
            steps = steps[flows[1:] == flows[:-1]]
    if steps.size == 0 or np.any(steps < 0):
        steps = np.diff(np.unique(times))
    if not np.all(steps > 0):
        steps = steps[steps > 0]
    if steps.size == 0:
        raise MetricError("fewer than two samples: the scenario says sample = off, or too little")
    return float(np.median(steps, overwrite_input=True))


def need_columns(name: str, table: pl.DataFrame, *columns: str) -> None:
    """Refuse a table without these columns."""
    for column in columns:
        if column not in table.columns:
            raise MetricError(
                f"table {name} has no column {column}; it has {', '.join(table.columns)}"
            )


def positive(name: str, value: float) -> float:
    """The value, refused unless it is above 0 and finite."""
    if not (math.isfinite(value) and value > 0):
        raise MetricError(f"{value:g}; allowed: above 0", name)
    return value


def alike(names: str, a: NDArray[Any], b: NDArray[Any]) -> None:
    """Refuse arrays of unlike shapes."""
    if a.shape != b.shape:
        raise MetricError(f"{a.size} and {b.size} values; allowed: as many", names)


def fraction(name: str, value: float) -> None:
    """Refuse what is not from 0 to below 1."""
    if not 0 <= value < 1:
        raise MetricError(f"{value:g}; allowed: from 0 to below 1", name)


def ordered(start_s: float, end_s: float) -> None:
    """Refuse a window that ends before it begins."""
    if not 0 <= start_s < end_s:
        raise MetricError(
            f"{start_s:g}, {end_s:g}; allowed: 0 or later, and the end after the start",
            "start_s, end_s",
        )


def window_end(name: str, t: Floats, start_s: float, end_s: float | None) -> float:
    """The window's end, after a check that the table holds the window."""
    if t.size == 0:
        raise MetricError(f"table {name} has no samples: the scenario says sample = off")
    last = float(np.max(t))
    end = last if end_s is None else end_s
    ordered(start_s, end)
    if end > last * (1 + SLACK):
        raise MetricError(f"{end:g}; allowed: up to {last:g}, where the samples end", "end_s")
    return end


def rows_by_flow(
    flows: pl.DataFrame, columns: tuple[str, ...], start_s: float, end_s: float | None
) -> dict[int, tuple[Floats, ...]]:
    """Times and columns of each flow within the window, flows in order of their number."""
    need_columns("flows", flows, "t_s", "flow", *columns)
    t = flows["t_s"].to_numpy()
    end = window_end("flows", t, start_s, end_s)
    inside = (t >= start_s - SLACK) & (t <= end + SLACK * max(1.0, end))
    numbers, values = flows["flow"].to_numpy(), [flows[column].to_numpy() for column in columns]
    if not inside.all():
        t, numbers, *values = (column[inside] for column in (t, numbers, *values))
    return {
        flow: (t[rows], *(column[rows].astype(float, copy=False) for column in values))
        for flow, rows in _rows_of(numbers, t).items()
    }


def by_flow(table: pl.DataFrame) -> dict[int, pl.DataFrame]:
    """The rows of each flow in order of time, flows in order of their number."""
    rows = _rows_of(table["flow"].to_numpy(), table["t_s"].to_numpy())
    return {
        flow: table.slice(own.start, own.stop - own.start) if isinstance(own, slice) else table[own]
        for flow, own in rows.items()
    }


def _rows_of(numbers: NDArray[Any], t: Floats) -> dict[int, slice | NDArray[np.intp]]:
    """Where the rows of each flow are, in order of time: a slice in a table flow after flow."""
    order = None
    if np.any(numbers[1:] < numbers[:-1]):
        order = np.argsort(numbers, kind="stable")
        numbers, t = numbers[order], t[order]
    changes = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    found: dict[int, slice | NDArray[np.intp]] = {}
    for begin, end in pairwise(dict.fromkeys([0, *changes.tolist(), numbers.size])):
        own = t[begin:end]
        # A run's own table is in order, and sorting it would take longer than all the rest.
        if np.any(own[1:] < own[:-1]):
            places = begin + np.argsort(own, kind="stable")
            found[int(numbers[begin])] = places if order is None else order[places]
        else:
            found[int(numbers[begin])] = slice(begin, end) if order is None else order[begin:end]
    return found


def counters(
    flows: pl.DataFrame, column: str, start_s: float, end_s: float | None
) -> dict[int, tuple[Floats, Floats]]:
    """Times and values of a cumulative column, by flow, within the window."""
    return {
        flow: (t, values)
        for flow, (t, values) in rows_by_flow(flows, (column,), start_s, end_s).items()
    }


def link_counter(
    queues: pl.DataFrame,
    column: str,
    link: int,
    start_s: float,
    end_s: float | None,
    *,
    cumulative: bool = True,
) -> tuple[Floats, Floats]:
    """Times and values of a column of a link within the window."""
    need_columns("queues", queues, "t_s", "link", column)
    own = queues.filter(queues["link"] == link).sort("t_s")
    if own.height == 0 < queues.height:
        known = ", ".join(str(n) for n in queues["link"].unique().sort())
        raise MetricError(f"{link}; allowed: {known}", "link")
    t = own["t_s"].to_numpy()
    end = window_end("queues", t, start_s, end_s)
    inside = (t >= start_s - SLACK) & (t <= end * (1 + SLACK))
    t, values = t[inside], own[column].to_numpy().astype(float)[inside]
    if t.size < 2:
        raise MetricError(f"{start_s:g}, {end:g}; fewer than two samples between", "start_s, end_s")
    if cumulative and np.any(np.diff(values) < 0):
        anew = t[np.flatnonzero(np.diff(values) < 0)[-1] + 1]
        raise MetricError(
            f"{start_s:g}; allowed: from {anew:g}, the end of the warm-up, where a link's "
            "counters restart",
            "start_s",
        )
    return t, values


class Samples:
    """Bytes that flows delivered by time: what metrics in bins of several widths derive once."""

    def __init__(self, flows: pl.DataFrame) -> None:
        need_columns("flows", flows, "t_s", "flow", "delivered_bytes")
        self._flows = flows
        self.t = flows["t_s"].to_numpy()

    @cached_property
    def grid_s(self) -> float:
        """Time between samples, in seconds."""
        return sampling_s(self._flows)

    @cached_property
    def parts(self) -> dict[int, tuple[Floats, NDArray[Any]]]:
        """Times and delivered bytes of each flow, in order of time."""
        delivered = self._flows["delivered_bytes"].to_numpy()
        rows = _rows_of(self._flows["flow"].to_numpy(), self.t)
        return {flow: (self.t[own], delivered[own]) for flow, own in rows.items()}


def binned(
    flows: pl.DataFrame | Samples, name: str, bin_s: float, start_s: float, end_s: float | None
) -> tuple[Floats, list[int], Floats]:
    """Ends of the bins, flows, goodputs (flow, bin): NaN where a flow lives in part of a bin."""
    samples = flows if isinstance(flows, Samples) else Samples(flows)
    end = window_end("flows", samples.t, start_s, end_s)
    positive(name, bin_s)
    if bin_s > (end - start_s) * (1 + SLACK):
        raise MetricError(
            f"{bin_s:g}; allowed: up to {end - start_s:g}, the time from {start_s:g} s to "
            f"{end:g} s",
            name,
        )
    grid_s = samples.grid_s
    if round(bin_s / grid_s) < 1 or abs(bin_s / grid_s - round(bin_s / grid_s)) > 1e-3:
        raise MetricError(
            f"{bin_s:g}; allowed: a multiple of {grid_s:.6g}, the distance of the samples", name
        )
    ends = bin_ends(bin_s, start_s, end)
    rows = []
    for t, delivered in samples.parts.values():
        alive = (ends - bin_s >= t[0] - SLACK) & (ends <= t[-1] * (1 + SLACK))
        rows.append(np.where(alive, goodputs_of(t, delivered, ends, bin_s, start_s), np.nan))
    return ends, list(samples.parts), np.array(rows)


def bin_ends(bin_s: float, start_s: float, end_s: float) -> Floats:
    """Ends of the whole bins of a window."""
    count = max(0, math.floor((end_s - start_s) / bin_s + SLACK))
    return start_s + bin_s * np.arange(1, count + 1, dtype=np.float64)


def goodputs_of(
    t_s: Floats, delivered_bytes: NDArray[Any], ends: Floats, bin_s: float, start_s: float
) -> Floats:
    """One flow's goodput in the bins that end there; nothing was delivered before its samples."""
    delivered = np.concatenate(([0.0], delivered_bytes.astype(float)))
    edges = np.concatenate(([start_s], ends)) + SLACK * bin_s
    before = np.searchsorted(t_s, edges, side="right")
    return np.asarray(np.diff(delivered[before]) * 8.0 / bin_s)


def held(t: Floats, reached: NDArray[np.bool_], start_s: float, hold: int) -> FirstPassage:
    """End of the first of ``hold`` bins in a row that are ``reached``, after ``start_s``."""
    alike("t_s, goodputs", t, reached)
    if hold < 1:
        raise MetricError(f"{hold}; allowed: at least 1", "hold")
    if not (t.size and t[-1] > start_s):
        raise MetricError(f"{start_s:g}; allowed: before the end of the last bin", "start_s")
    in_a_row = 0
    for i, ok in enumerate(reached & (t > start_s)):
        in_a_row = in_a_row + 1 if ok else 0
        if in_a_row == hold:
            return FirstPassage(float(t[i - hold + 1]) - start_s)
    return FirstPassage(float(t[-1]) - start_s, censored=True)
