"""The page of ``python -m studies.starts``: figures, tables, advice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from lfnlab.analysis.table import markdown, with_interval
from lfnlab.figures.cells import cells
from lfnlab.figures.looks import looks
from lfnlab.figures.plot import house_style
from lfnlab.figures.small import for_page
from lfnlab.statistics import Interval, interval
from studies.study import FIGURES, ROOT, SHADES

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONG_FAT_MS = 100
"""Paths from this RTT and 1 Gbit/s on."""
UNFINISHED = "–"
LINUX = ROOT / "studies" / "reference" / "starts_linux.md"
"""Three cases on Linux and here, written by ``python -m studies.starts_linux``."""


def starts_of(table: pl.DataFrame) -> list[str]:
    """The slow starts, in the order of the table."""
    return list(dict.fromkeys(table["start"]))


def paths_of(table: pl.DataFrame) -> list[tuple[str, int]]:
    """Rates and RTTs, long fat paths first."""
    return list(dict.fromkeys(zip(table["rate"], table["rtt_ms"], strict=True)))


def depths_of(table: pl.DataFrame) -> list[float]:
    """Buffers in BDPs."""
    return sorted(set(table["depth_bdp"]))


def spread(cases: pl.DataFrame, column: str) -> Interval | None:
    """Of the runs of one cell; None unless all have a value."""
    values = cases[column].to_list()
    return interval(values) if values and None not in values else None


def _cell(table: pl.DataFrame, path: tuple[str, int], depth: float, start: str) -> pl.DataFrame:
    return table.filter(
        (pl.col("rate") == path[0])
        & (pl.col("rtt_ms") == path[1])
        & (pl.col("depth_bdp") == depth)
        & (pl.col("start") == start)
    )


def _of(table: pl.DataFrame, experiment: str) -> pl.DataFrame:
    return table.filter(pl.col("experiment") == experiment)


def name_of(path: tuple[str, int]) -> str:
    """A path in words."""
    return f"{path[0].replace('bit/s', '')} × {path[1]} ms"


def matrix(cases: pl.DataFrame, column: str, depth: float) -> NDArray[np.float64]:
    """Means: a row for each path, a column for each slow start; not a number where unfinished."""
    starts, paths = starts_of(cases), paths_of(cases)
    values = np.full((len(paths), len(starts)), np.nan)
    for i, path in enumerate(paths):
        for j, start in enumerate(starts):
            found = spread(_cell(cases, path, depth, start), column)
            if found is not None:
                values[i, j] = found.mean
    return values


def draw_cells(
    cases: pl.DataFrame,
    column: str,
    what: str,
    *,
    limits: tuple[float, float],
    form: str,
    scale: float = 1.0,
    colours: str = "viridis_r",
) -> Figure:
    """A panel for each buffer."""
    starts, paths, depths = starts_of(cases), paths_of(cases), depths_of(cases)
    with house_style():
        wide = max(0.62 * len(starts), 2.0)
        figure = Figure(figsize=(2.2 + wide * len(depths), 1.8 + 0.32 * len(paths)))
        panels = figure.subplots(1, len(depths), sharey=True, squeeze=False)[0]
        for axes, depth in zip(panels, depths, strict=True):
            values = scale * matrix(cases, column, depth)
            names = [name_of(path) for path in paths]
            cells(
                axes,
                values,
                names,
                starts,
                limits=limits,
                form=form,
                colours=colours,
                shades=SHADES,
            )
            axes.set_title(f"buffer of {depth:g} BDP")
        figure.suptitle(what)
    return figure


def draw_trade(table: pl.DataFrame) -> Figure:
    """On long fat paths: time of the newcomer against harm to the old flow, by buffer."""
    beside = _long_fat(_of(table, "beside"))
    starts, depths = starts_of(beside), depths_of(beside)
    shown = looks(dict.fromkeys(starts))
    with house_style():
        figure = Figure(figsize=(9.5, 3.6))
        panels = figure.subplots(1, len(depths), sharey=True, squeeze=False)[0]
        for axes, depth in zip(panels, depths, strict=True):
            for start in starts:
                cases = beside.filter((pl.col("start") == start) & (pl.col("depth_bdp") == depth))
                done = cases.filter(pl.col("time").is_not_null())
                if done.height < cases.height:
                    continue  # said below the figure
                x, y = interval(done["time"].to_list()), interval(done["harm"].to_list())
                look = shown[start]
                axes.errorbar(
                    x.mean,
                    100 * y.mean,
                    xerr=x.half,
                    yerr=100 * y.half,
                    color=look.color,
                    marker=look.marker,
                    ls="",
                    label=start,
                )
            axes.set_title(f"buffer of {depth:g} BDP")
            axes.set_xlabel("time of the newcomer / ideal")
        panels[0].set_ylabel("harm to the old flow, %")
        handles: dict[str, Any] = {}
        for axes in panels:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        below: Any = {"loc": "outside lower center", "ncols": len(starts)}
        figure.legend(list(handles.values()), list(handles), **below)
    return figure


def _long_fat(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter((pl.col("rate") != "100Mbit/s") & (pl.col("rtt_ms") >= LONG_FAT_MS))


def rows_of(
    cases: pl.DataFrame, columns: Sequence[tuple[str, float]]
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Headings and rows of a table: intervals of the columns, with their scales, in each cell."""
    starts = starts_of(cases)
    rows = []
    for path in paths_of(cases):
        for depth in depths_of(cases):
            texts = []
            for start in starts:
                cell = _cell(cases, path, depth, start)
                parts = [
                    with_interval(found, scale) if found is not None else UNFINISHED
                    for found, scale in ((spread(cell, column), scale) for column, scale in columns)
                ]
                texts.append("; ".join(parts))
            rows.append((name_of(path), f"{depth:g}", *texts))
    return ["path", "buffer, BDP", *starts], rows


def summary(table: pl.DataFrame) -> list[str]:
    """Long fat paths: means over paths and buffers, or how many cells did not finish."""
    rows = []
    for start in starts_of(table):
        texts = [start]
        for experiment, column, scale in (
            ("alone", "time", 1.0),
            ("alone", "lost_bdp", 1.0),
            ("beside", "time", 1.0),
            ("beside", "harm", 100.0),
            ("crowd", "time", 1.0),
            ("crowd", "late", 1.0),
            ("crowd", "harm", 100.0),
        ):
            cases = _long_fat(_of(table, experiment)).filter(pl.col("start") == start)
            values = cases[column].drop_nulls().to_list()
            missing = cases.height - len(values)
            text = with_interval(interval(values), scale) if values else UNFINISHED
            texts.append(f"{text} ({missing} unfinished)" if missing else text)
        rows.append(tuple(texts))
    heads = (
        "slow start",
        "alone: time",
        "lost, BDP",
        "beside: time",
        "harm, %",
        "crowd: median time",
        "95 of 100",
        "harm, %",
    )
    return [*markdown(heads, rows)]


def page(table: pl.DataFrame, stamp: str) -> str:
    """docs/starts.md and its figures."""
    alone, beside = (_of(table, name) for name in ("alone", "beside"))
    figures = {
        "starts-alone": draw_cells(
            alone, "time", "one transfer: time / ideal", limits=(1, 5), form=".2f"
        ),
        "starts-lost": draw_cells(
            alone, "lost_bdp", "one transfer: lost, in BDPs", limits=(0, 4), form=".2f"
        ),
        "starts-harm": draw_cells(
            beside,
            "harm",
            "a newcomer: harm to the old flow, %",
            limits=(0, 60),
            form="z.0f",
            scale=100,
        ),
        "starts-trade": draw_trade(table),
    }
    for name, figure in figures.items():
        (FIGURES / f"{name}.png").write_bytes(for_page(figure))
    linux = ON_LINUX + LINUX.read_text(encoding="utf-8") + "\n" if LINUX.is_file() else ""
    return PAGE.format(stamp=stamp, summary="\n".join(summary(table)), linux=linux)


def every_case(table: pl.DataFrame) -> str:
    """The tables of the page, which the site fills in."""
    alone, beside, crowd = (_of(table, name) for name in ("alone", "beside", "crowd"))
    tables = {
        "One transfer: time / ideal": rows_of(alone, (("time", 1.0),)),
        "A newcomer: time / ideal; harm to the old flow, %": rows_of(
            beside, (("time", 1.0), ("harm", 100.0))
        ),
        "A crowd: time / ideal of 95 of 100 flows; harm to the old flow, %": rows_of(
            crowd, (("late", 1.0), ("harm", 100.0))
        ),
    }
    return "\n\n".join(
        f"### {title}\n\n" + "\n".join(markdown(tuple(heads), rows))
        for title, (heads, rows) in tables.items()
    )


ON_LINUX = """\
## On Linux in virtual time

`python -m studies.starts_linux` repeats three cases with HyStart on Linux 6.12
([virtual-linux.md](virtual-linux.md)), with its own CUBIC; here it is `cubic:linux`.

"""

PAGE = """\
# Old slow starts beside new ones

CUBIC with seven [slow starts](slow-start.md) on twelve paths with drop-tail buffers of 0.1, 1 and 4
BDP, in three experiments. Packets have 9000 bytes at 10 Gbit/s, else 1500. *Old*: `classic`,
`limited`, `hystart`. *New*: `hystart++`, `search`, `rapid` (paced), `careful-resume`, which knows
the path from before.

- **One transfer** of 10 BDP alone.
- **A newcomer**: the same transfer beside an old flow of CUBIC, which has had the link for 60 round
  trips, at least 5 s.
- **A crowd**: 50 transfers of a tenth of a BDP, which start within ten round trips, beside the same
  old flow.

Times are divided by the ideal time: at the link's rate, and one round trip. *Harm*: the part of its
goodput that the old flow loses in 100 round trips (at least 5 s), against the same flow alone. A
newcomer's own transfer is up to 10 % of it. The 95 % intervals are over five runs, which differ in
the RTT (±5 %) with one flow, and in the start times otherwise. "–": not finished in every run.

{stamp} Every run is in [studies/reference/starts.csv](../studies/reference/starts.csv).

## What to use where

On a long fat path that an earlier connection measured, `careful-resume` is the fastest: 10 BDP
take 1.38 times the ideal, with HyStart 2.45. It is for transfers that have the bottleneck to
themselves: beside an old flow it takes more than a third of that flow's goodput where the buffer
holds 1 BDP or less, and a crowd of such flows takes as much. Without an earlier connection
`rapid` is the next, 1.80; beside an old flow it needs 2.5 times the ideal, at 18 % of harm. Where
others share the link, `hystart++` is the best compromise: the same harm as HyStart, 12 %,
of which 10 % are the transfer itself, and half of its time beside an old flow, 3.2 in place of
5.8. `hystart` and `limited` are for traffic that must not disturb. `classic` loses a BDP on each
start. `search` (3.0) loses as much here: it ends slow start when several BDPs are in flight, more
than path and buffer of these cases hold. In a buffer of 0.1 BDP neither HyStart nor HyStart++ nor
SEARCH sees anything, and all lose as `classic` does.

On paths of at least 1 Gbit/s and 100 ms, all buffers; intervals are over paths, buffers and runs:

{summary}

![A newcomer on long fat paths: time against harm](figures/starts-trade.png)

Slow starts with unfinished transfers on these paths are not in the figure. `classic` lies under
`search`; with 0.1 BDP under `hystart` and `hystart++`, too.

## One transfer

![Time of one transfer](figures/starts-alone.png)

![Packets lost by one transfer](figures/starts-lost.png)

## A newcomer beside an old flow

![Harm to the old flow](figures/starts-harm.png)

{linux}## Every case

<!-- made: starts -->
`make site` shows here a table an experiment, with a row a path and buffer.
<!-- end of starts -->
"""
