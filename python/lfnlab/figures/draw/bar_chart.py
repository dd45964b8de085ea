"""Bars: means of the runs' means, with their runs or intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from lfnlab import statistics
from lfnlab.errors import UsageError
from lfnlab.figures.columns import axis_for, axis_of, bounds
from lfnlab.figures.draw.canvas import counted, values_of
from lfnlab.figures.draw.choice import LAW_AND_ROUTE, MOST_TOLD
from lfnlab.figures.factors import numbers
from lfnlab.figures.layout import axis_labels, width_in, wrapped
from lfnlab.figures.spread import DOT, DOTS, Spread, interval_mark, spread
from lfnlab.figures.style import current
from lfnlab.results.runs import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lfnlab.figures.draw.canvas import Canvas
    from lfnlab.statistics import Interval

MOST_BARS = 60
_MEAN = "mean of the run"

Cell = tuple[Any, Any, Any, Any]
"""Values of the panel, of x, of the colour, and the source."""


def bars(canvas: Canvas, *, asked: bool) -> tuple[Figure, str]:
    """A bar for each value of x, and side by side for each colour in it.

    ``asked`` tells whether the column for colours was named.
    """
    names, looks, places = arranged(canvas, "bars", "--kind time or heat", asked=asked)
    side_by_side = max(places.values()) + 1
    values = _means(canvas)
    drawn = {cell: (value, spread(value, bounds(canvas.y))) for cell, value in values.items()}
    if "y" in canvas.log:
        drawn = _above_zero(canvas, drawn)
    ends = [end for value, of in drawn.values() for end in (value.mean, *of.marks)]
    axis = axis_for(canvas.y, ends)
    words, x_label = names_of(canvas, names)
    wide = min(max(3.6, 1.2 + 0.22 * len(names) * (0.7 + 0.5 * side_by_side)), 12.0)
    figure, grid = canvas.figure((max(4.0, wide), 3.6), wide)
    width = 0.8 / side_by_side
    if current().width is not None:
        wide = figure.get_figwidth() / len({axes.get_position().x0 for axes in grid})
    slot_in = (wide - current().pt(0.8)) / len(names)
    upright = max(width_in(line, 8.0) for word in words for line in word.split("\n")) > slot_in
    if upright and (len(grid) > 1 or current().width is not None):
        figure.set_figheight(figure.get_figheight() + current().pt(0.8))
    panels = dict(zip(values_of(canvas.frame, canvas.panel), grid, strict=True))
    at = {name: i for i, name in enumerate(names)}
    for (panel, name, *look_of), (value, of) in drawn.items():
        key = (look_of[0], look_of[1])
        left = at[name] + (places[key] - (side_by_side - 1) / 2) * width
        _bar(panels[panel], left, width * 0.92, value, of, looks[key], axis.scale)
    for axes in grid:
        if "y" in canvas.log:
            axes.set_ylim(_floor(drawn) / axis.scale, 1.3 * max(ends) / axis.scale)
        axes.set_xticks(range(len(names)), words)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.tick_params(axis="x", length=0, labelrotation=90 if upright else 0)
        axes.grid(axis="x", visible=False)
    axis_labels(figure, grid, x_label, axis.label)
    if not (canvas.by == canvas.x and len(canvas.sources) == 1):
        canvas.legend(figure, looks, {(cell[2], cell[3]) for cell in drawn})
    return figure, _says(drawn)


def arranged(
    canvas: Canvas, what: str, other: str, *, asked: bool
) -> tuple[list[Any], dict[tuple[Any, str], dict[str, Any]], dict[tuple[Any, str], int]]:
    """The names on the axis, the looks, and each look's place beside the others on one name.

    Args:
        canvas: the rows.
        what: "bars" or "boxes", for errors.
        other: kinds of figures for more names.
        asked: whether the column for colours was named.
    """
    assert canvas.x is not None
    if "x" in canvas.log:
        raise UsageError(f"--log: {what} stand on names, which have no logarithm; allowed: y")
    names = current().sorted(values_of(canvas.frame, canvas.x))
    if len(names) > MOST_BARS:
        raise UsageError(
            f"--x {canvas.x}: {len(names):,} values; allowed: at most {MOST_BARS} {what}; "
            f"choose another column, or {other}"
        )
    alone = colours(canvas, asked=asked)
    looks = canvas.groups(MOST_BARS if alone else MOST_TOLD)
    for key, look in looks.items():
        look["hatch"] = canvas.hatches[key]
    # Beside each other on one name: sources, where a name has one colour; else all looks.
    sources = canvas.sources if canvas.x != "source" else [None]
    places = {
        key: (sources.index(key[1]) if len(sources) > 1 else 0) if alone else i
        for i, key in enumerate(looks)
    }
    return names, looks, places


def colours(canvas: Canvas, *, asked: bool) -> bool:
    """Choose the column for colours if it was not named; whether each x then has one of them."""
    frame, x = canvas.frame, canvas.x
    assert x is not None
    if not asked and (canvas.by is None or not _varies_within(frame, x, canvas.by)):
        # It only repeats what x says: then the colour is that of the law.
        if x in ("law", "case", LAW_AND_ROUTE) or "law" not in frame.columns:
            canvas.by = x
        else:
            canvas.by = x if _varies_within(frame, x, "law") else "law"
    return canvas.by is None or not _varies_within(frame, x, canvas.by)


def _varies_within(frame: pl.DataFrame, x: str, by: str) -> bool:
    return frame.select({x, by}).n_unique() > frame[x].n_unique()


def _means(canvas: Canvas) -> dict[Cell, Interval]:
    """Over the runs of each cell, of which each is the mean of its rows."""
    columns = {"panel": canvas.panel, "x": canvas.x, "by": canvas.by}
    columns |= {name: name for name in ("source", "run")}
    known = {
        name: pl.col(column) if column in canvas.frame.columns else pl.lit(None)
        for name, column in columns.items()
    }
    rows = canvas.frame.select(**known, y=pl.col(canvas.y).cast(pl.Float64))
    runs = rows.group_by([*known], maintain_order=True).agg(pl.col("y").mean())
    found: dict[Cell, list[float]] = {}
    for panel, x, by, source, _, mean in runs.iter_rows():
        found.setdefault((panel, x, by, source), []).append(mean)
    return {cell: statistics.interval(means) for cell, means in found.items()}


def names_of(canvas: Canvas, names: Sequence[Any]) -> tuple[list[str], str]:
    """The names of bars, and the label of their axis."""
    assert canvas.x is not None
    if canvas.frame[canvas.x].dtype.is_numeric():
        axis = axis_of(canvas.frame, canvas.x)
        return axis.texts(names), axis.label
    word = short([canvas.x])[canvas.x]
    told = [f"no {word}" if name is None else current().named(str(name)) for name in names]
    known = [name for name in names if name is not None]
    says_itself = "." not in canvas.x and numbers(canvas.x, known) is None  # as a law does
    return [wrapped(text, 1.6, 8.0, 2) for text in told], "" if says_itself else word


def _above_zero(
    canvas: Canvas, drawn: Mapping[Cell, tuple[Interval, Spread]]
) -> dict[Cell, tuple[Interval, Spread]]:
    """Cells that a logarithmic axis has a place for; intervals end in the decade of the least."""
    kept = {cell: pair for cell, pair in drawn.items() if pair[0].mean > 0.0}
    if not kept:
        raise UsageError(f"--log: no mean of {canvas.y} is above 0")
    dots = [dot for _, of in kept.values() for dot in of.dots]
    floor = _floor(kept)
    for lost, what in (
        (len(drawn) - len(kept), "bar"),
        (sum(dot <= 0.0 for dot in dots), "dot"),
    ):
        if lost:
            said = f"without {counted(lost, what)} of 0 or less, for a logarithmic axis"
            canvas.left_out.append(said)
    return {
        cell: (
            value,
            Spread(
                tuple(dot for dot in of.dots if dot > 0.0),
                None if of.ends is None else (max(of.ends[0], floor), of.ends[1]),
            ),
        )
        for cell, (value, of) in kept.items()
    }


def _floor(drawn: Mapping[Cell, tuple[Interval, Spread]]) -> float:
    """Where bars stand on a logarithmic axis: the power of ten below half of the least mark."""
    marks = [mark for value, of in drawn.values() for mark in (value.mean, *of.dots) if mark > 0.0]
    return float(10.0 ** math.floor(math.log10(min(marks) / 2)))


def _bar(
    axes: Axes,
    left: float,
    width: float,
    value: Interval,
    of: Spread,
    look: Mapping[str, Any],
    scale: float,
) -> None:
    mean = value.mean / scale
    ink, hatch = look["color"], look["hatch"]
    axes.bar(left, mean, width, color=ink, hatch=hatch, edgecolor="white", lw=0)
    if of.dots:
        axes.plot([left] * len(of.dots), [dot / scale for dot in of.dots], **DOT)
    if of.ends is not None:
        low, high = (end / scale for end in of.ends)
        reach = [[mean - low], [high - mean]]
        interval_mark(axes, left, mean, yerr=reach)


def _says(drawn: Mapping[Cell, tuple[Interval, Spread]]) -> str:
    """How many runs the means are of, and how they are shown."""
    sizes = sorted({value.n for value, _ in drawn.values()})
    if sizes[-1] == 1:
        return "one run each"
    runs = " to ".join(str(n) for n in sorted({sizes[0], sizes[-1]}))
    if any(of.ends for _, of in drawn.values()):
        said = f"mean and 95 % interval over {runs} runs"
        return said + DOTS if any(of.dots for _, of in drawn.values()) else said
    return f"mean over {runs} runs{DOTS}"
