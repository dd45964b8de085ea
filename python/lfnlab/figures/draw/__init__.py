"""Draw any table of a result: time series, CDF, bars, boxes, dots, heat map, phase plot.

A source is a results directory, the directory of one run (or of a measured flow), or one Parquet
file. Every row also carries what tells its run apart: ``law``, ``seed``, the factors of the
experiment, ``case`` (law and factors in words), ``run`` and ``source``. Columns say their units by
their names (``docs/results.md``), and so do the axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from lfnlab.errors import UsageError
from lfnlab.figures.columns import unit
from lfnlab.figures.draw.bar_chart import bars
from lfnlab.figures.draw.box_plot import boxes
from lfnlab.figures.draw.canvas import Canvas
from lfnlab.figures.draw.choice import (
    LAW_AND_ROUTE,
    Kind,
    Request,
    by_route,
    chosen,
    default_by,
    is_traced,
    selected,
    settled,
)
from lfnlab.figures.draw.heat_map import heat
from lfnlab.figures.draw.lines import cdf, over_time, phase, points
from lfnlab.figures.draw.tables import Tables, one_of, one_run
from lfnlab.figures.drawing import Drawing
from lfnlab.figures.plot import house_style
from lfnlab.figures.style import PRESETS, Style, applied, finish
from lfnlab.results.runs import origin

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["Drawing", "Request", "Tables", "draw", "listing", "one_of", "one_run", "unit"]

# Tables of things that happened: dots, where samples are joined by lines.
_EVENTS = ("events", "packets")


def draw(paths: Sequence[Path], request: Request, style: Style = PRESETS["report"]) -> Drawing:
    """Draw the requested figure of these sources, in a style.

    Raises:
        UsageError: for a table, column or condition that is not there, or a selection without rows.
        StoreError: when a source cannot be read.
    """
    tables = Tables(paths)
    kind, name, x, y = chosen(tables, request)
    columns = tables.columns(name)
    # Rows without a time are no samples of a trace: each is a point.
    timeless = "t_s" not in columns or (kind == "phase" and name in _EVENTS)
    of_points = kind == "scatter" or (kind in ("time", "phase") and x is not None and timeless)
    numeric = (y, request.z, *((x,) if kind in ("time", "phase", "scatter") else ()))
    for column in dict.fromkeys(c for c in numeric if c):
        if columns[column] == pl.Null:
            raise UsageError(f"{column} of {name} has no value in any row")
        if not columns[column].is_numeric():
            what = "text" if columns[column] == pl.String else f"{columns[column]}".lower()
            raise UsageError(
                f"{column} of {name} holds {what}, which has no axis of numbers; use it as "
                f"--by {column} or --panel {column}"
            )
    traced = is_traced(kind, request) and not of_points
    numbers = [c for c in (x, y, request.z) if c]
    frame, chosen_runs, missing = selected(tables, name, request, numbers, traced=traced)
    by = request.by or default_by(frame, tables.several)
    panel = request.panel
    if panel is None and kind in ("time", "heat") and request.by is None and not tables.several:
        panel = "case" if "case" in frame.columns and frame["case"].n_unique() > 1 else None
    if kind in ("time", "phase") and request.by is None:
        routed = by_route(frame, by, panel)
        if routed is not None:
            frame, by = routed, LAW_AND_ROUTE
    if kind in ("bar", "box", "cdf"):
        by, panel = settled(frame, tables.factors, x, by, panel, asked=request.by is not None)
    if kind == "cdf":  # of very many rows: columns that chose colours are free to go
        needed = dict.fromkeys((y, by, panel, "source", "run"))
        frame = frame.select(column for column in needed if column in frame.columns)
    canvas = Canvas(frame, x, y, request.z, by, panel, request.log, name in _EVENTS)
    painters: dict[Kind, Callable[[Canvas], tuple[Figure, str]]] = {
        "time": over_time,
        "phase": phase,
        "cdf": cdf,
        "bar": partial(bars, asked=request.by is not None),
        "box": partial(boxes, asked=request.by is not None),
        "scatter": points,
        "heat": heat,
    }
    with applied(style), house_style():
        figure, more = painters["scatter" if of_points else kind](canvas)
        finish(figure, style)
    said = [n for n in (chosen_runs, more, missing, *canvas.left_out) if n]
    says = f"{kind} of table {name}: {', '.join(said)}"
    return Drawing(figure, says, f"{y}-{kind}", origin(tables.runs), style)


def listing(paths: Sequence[Path]) -> str:
    """Every table with its rows, and its columns with type and unit."""
    tables = Tables(paths)
    lines = []
    for name in tables.names:
        frame = tables.frame(name)
        lines.append(f"{name}: {frame.select(pl.len()).collect().item():,} rows")
        for column, dtype in frame.collect_schema().items():
            lines.append(f"    {column:20} {str(dtype).lower():8} {unit(column)}".rstrip())
    return "\n".join(lines)
