"""Means over seeds with their intervals, drawn by the shape of the experiment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter

from lfnlab.analysis.summary import INTERVALS
from lfnlab.figures.cells import cells
from lfnlab.figures.columns import Plain, PlainLog, texts
from lfnlab.figures.factors import Numbers, Shape, ordered, panel_name, series_name
from lfnlab.figures.layout import axis_labels, from_zero, legend, panels, width_in, wrapped
from lfnlab.figures.looks import looks
from lfnlab.figures.plot import bars, house_style, some
from lfnlab.figures.spread import DOT, DOTS, spread
from lfnlab.figures.style import current
from lfnlab.statistics import FEW

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from lfnlab.figures.looks import Look
    from lfnlab.results.cases import Group
    from lfnlab.statistics import Interval

_MOST_PANELS = 24
_NUMBERED = 14
"""A heat map of more rows or columns has a scale of colours and no numbers."""


class Point(NamedTuple):
    """A mean at its place on the axis, and where it leads to."""

    x: float
    value: Interval
    href: str | None


Points = dict[str, list[Point]]
"""Of each series, in order."""


def means(
    values: Mapping[Group, Interval],
    keys: Sequence[str],
    label: str,
    said: str,
    scale: float = 1.0,
    hrefs: Mapping[Group, str] | None = None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[Figure, str]:
    """Means with 95 % intervals of the cases of any experiment.

    Args:
        values: by the values of ``keys``, see :meth:`lfnlab.Results.intervals`.
        keys: names of what differs.
        label: of the values, with their unit.
        said: a sentence below, on the averages.
        scale: the figure shows values divided by it.
        hrefs: where the mark of a case leads to in an SVG.
        bounds: that no value exceeds, see :func:`spread`.

    Returns:
        The figure, and what it leaves out, if anything.
    """
    shape = Shape.of([*values], keys)
    if shape.mark == "cells":
        shown = {group: value.over(scale) for group, value in values.items()}
        with house_style():
            return _cells(shown, keys, shape, label, said, hrefs or {})
    if any(value.is_of_few for value in values.values()):
        few = all(value.n < FEW for value in values.values())
        said = (said.replace(INTERVALS, "") if few else said) + DOTS
    note = ""
    if current().notes == "caption":
        said, note = "", said
    figure, left_out = _drawn(values, keys, shape, label, said, scale, hrefs, bounds)
    return figure, "; ".join(filter(None, (note, left_out)))


def _drawn(
    values: Mapping[Group, Interval],
    keys: Sequence[str],
    shape: Shape,
    label: str,
    said: str,
    scale: float,
    hrefs: Mapping[Group, str] | None,
    bounds: tuple[float, float],
) -> tuple[Figure, str]:
    if shape.mark == "bars":
        below = f"{label}\n{said}".rstrip()
        return bars(values, keys, below, scale=scale, bounds=bounds, hrefs=hrefs)
    shown = {group: value.over(scale) for group, value in values.items()}
    within = (bounds[0] / scale, bounds[1] / scale)
    with house_style():
        return _curves(shown, keys, shape, label, said, hrefs or {}, within)


def lines(
    values: Mapping[Group, Interval],
    xlabel: str,
    ylabel: str,
    *,
    scale: float = 1.0,
    ylim: tuple[float, float | None] = (0.0, None),
    names: Sequence[str] = (),
    bounds: tuple[float, float] = (0.0, math.inf),
) -> Figure:
    """One line a law over numbers, on axes of one's own, with intervals: keys are (law, x).

    Args:
        values: the means.
        xlabel, ylabel: of the axes, with their units.
        scale: the figure shows values divided by it.
        ylim: the axis has at least these, and more where marks lie beyond.
        names: x is 0, 1, 2, ... and stands for one of them: points, which nothing joins, beside
            each other.
        bounds: that no value exceeds, see :func:`spread`.
    """
    points: Points = {}
    for (law, x), value in sorted(values.items(), key=lambda pair: pair[0][1]):
        points.setdefault(str(law), []).append(Point(float(x), value.over(scale), None))
    places = sorted({float(x) for _, x in values})
    told = [names[int(place)] for place in places] if names else texts(places)
    within = (bounds[0] / scale, bounds[1] / scale)
    styles = looks({str(law): str(law) for law, _ in values})
    with house_style():
        figure, (axes,) = panels([""], (5.2, 3.15))
        _draw_points(axes, points, styles, within, joined=not names, beside=0.7 if names else 0.0)
        axes.set_xticks(places, told)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        low, high = axes.dataLim.intervaly
        room = 0.03 * (high - low)
        axes.set_ylim(
            ylim[0] if low >= ylim[0] else low - room,
            None if ylim[1] is None else ylim[1] if high <= ylim[1] else high + room,
        )
        legend(
            figure,
            [
                Line2D([], [], label=law, **_style(look, joined=not names))
                for law, look in styles.items()
            ],
        )
        return figure


def _parts(
    values: Mapping[Group, Interval], keys: Sequence[str], by: Sequence[str]
) -> tuple[dict[str, list[Group]], str]:
    """Cases by the title of their panel, and how many panels are left out."""
    parts: dict[str, list[Group]] = {}
    for group in ordered(values, keys, by):
        parts.setdefault(panel_name(dict(zip(keys, group, strict=True)), by), []).append(group)
    kept = some([*parts], _MOST_PANELS)
    left_out = f"{len(kept)} of {len(parts)} panels" if len(kept) < len(parts) else ""
    return {name: parts[name] for name in kept}, left_out


def _curves(
    values: Mapping[Group, Interval],
    keys: Sequence[str],
    shape: Shape,
    label: str,
    said: str,
    hrefs: Mapping[Group, str],
    bounds: tuple[float, float],
) -> tuple[Figure, str]:
    """A line a series over one factor; of points a panel for each factor."""
    parts, left_out = _parts(values, keys, shape.panels)
    parts = {name: parts[name] for name in current().sorted(parts)}
    joined = shape.mark == "lines"
    drawn: list[tuple[str, Numbers, Points]] = []
    laws: dict[str, str | None] = {}
    for name, groups in parts.items():
        for key, axis in shape.axes.items():
            points: Points = {}
            for group in groups:
                told = dict(zip(keys, group, strict=True))
                series = series_name(told, shape.series)
                laws.setdefault(series, str(told["law"]) if "law" in told else None)
                point = Point(axis.places[told[key]], values[group], hrefs.get(group))
                points.setdefault(series, []).append(point)
            drawn.append((name, axis, {s: sorted(own, key=_place) for s, own in points.items()}))
    wide = 5.2 if len(drawn) == 1 else 2.9
    figure, grid = panels(
        [name for name, _, _ in drawn],
        (wide, 3.0 if len(drawn) == 1 else 2.2),
        3 if joined or len(shape.axes) > 2 else len(shape.axes),
        sharey=True,
        sharex=joined,
    )
    styles = looks({name: laws[name] for name in current().sorted(laws)})
    for axes, (_, axis, points) in zip(grid, drawn, strict=True):
        _draw_points(axes, points, styles, bounds, joined=joined)
        _number_axis(axes, axis)
        if not joined:
            axes.set_xlabel(axis.label)
    from_zero(grid)
    _room(grid)
    below = [next(iter(shape.axes.values())).label] if joined else []
    axis_labels(figure, grid, "\n".join(filter(None, (*below, said))) or None, label)
    if len(styles) > 1:
        handles = [
            Line2D([], [], label=name, **_style(look, joined=joined))
            for name, look in styles.items()
        ]
        legend(figure, handles)
    return figure, left_out


def _place(point: Point) -> float:
    return point.x


def _style(look: Look, *, joined: bool) -> dict[str, Any]:
    return {
        "color": look.color,
        "marker": look.marker,
        "ls": look.linestyle if joined else "",
        "markersize": 4,
    }


def _draw_points(
    axes: Axes,
    points: Points,
    styles: Mapping[str, Look],
    bounds: tuple[float, float],
    *,
    joined: bool,
    beside: float = 0.0,
) -> None:
    """Means with their runs or intervals.

    On an axis of names points of one place stand side by side, in the part ``beside`` of the
    distance to the next. On an axis of numbers each is at its number.
    """
    for i, (name, look) in enumerate(styles.items()):
        known = [point for point in points.get(name, []) if np.isfinite(point.value.mean)]
        shift = beside * (i - (len(styles) - 1) / 2) / len(styles)
        x = [point.x + shift for point in known]
        means = [point.value.mean for point in known]
        of = [spread(point.value, bounds) for point in known]
        ends = [one.ends or (mean, mean) for one, mean in zip(of, means, strict=True)]
        reach = np.array([[m - low, high - m] for m, (low, high) in zip(means, ends, strict=True)])
        axes.errorbar(
            x,
            means,
            yerr=reach.reshape(-1, 2).T,
            capsize=2.0,
            elinewidth=0.8,
            **_style(look, joined=joined),
        )
        runs = [(place, dot) for place, one in zip(x, of, strict=True) for dot in one.dots]
        if runs:
            axes.plot(*zip(*runs, strict=True), **{**DOT, "color": look.color, "ms": 2.6})
        if any(point.href for point in known):  # around each marker a disc that leads there
            axes.scatter(x, means, 100, color="none", zorder=5, urls=[p.href for p in known])


def _number_axis(axes: Axes, axis: Numbers) -> None:
    """The numbers of the factor: each, if they are few."""
    if axis.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(PlainLog())
        axes.xaxis.set_minor_formatter(NullFormatter())
    if (ticks := axis.ticks()) is not None:
        axes.set_xticks([place for place, _ in ticks], [name for _, name in ticks])
        axes.tick_params(axis="x", which="minor", length=0)
    elif not axis.logarithmic:
        axes.xaxis.set_major_locator(MaxNLocator(4))


_MARGIN = 0.04
"""Room above the highest marker, as a part of the axis."""


def _room(grid: Sequence[Axes]) -> None:
    """Markers and the ends of intervals lie within the axes."""
    high = max((axes.dataLim.y1 for axes in grid), default=1.0)
    low, top = grid[0].get_ylim()
    if np.isfinite(high) and high > low:
        grid[0].set_ylim(low, max(top, high + _MARGIN * (high - low)))


def _cells(
    values: Mapping[Group, Interval],
    keys: Sequence[str],
    shape: Shape,
    label: str,
    said: str,
    hrefs: Mapping[Group, str],
) -> tuple[Figure, str]:
    """A heat map for each series and other factor."""
    (across, x), (upward, y) = shape.axes.items()
    # What a law ran in and beside comes before its own name: forward data before reverse data.
    order = sorted(shape.series, key="law".__eq__)
    parts, left_out = _parts(values, keys, [*shape.panels, *order])
    rows, columns = [*y.places][::-1], [*x.places]
    maps: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
    leading: dict[str, dict[tuple[int, int], str]] = {}
    for group_list in parts.values():
        told = [dict(zip(keys, group, strict=True)) for group in group_list]
        name = ", ".join(
            filter(None, [series_name(told[0], shape.series), panel_name(told[0], shape.panels)])
        )
        found = np.full((len(rows), len(columns)), np.nan)
        wide = np.full_like(found, np.nan)
        leading[name] = {}
        for one, group in zip(told, group_list, strict=True):
            place = rows.index(one[upward]), columns.index(one[across])
            found[place] = values[group].mean
            wide[place] = half_of(values[group])
            if group in hrefs:
                leading[name][place] = hrefs[group]
        maps[name] = found, wide
    maps = {name: maps[name] for name in current().sorted(maps)}
    finite = np.concatenate([found[np.isfinite(found)] for found, _ in maps.values()])
    limits = (min(0.0, float(finite.min(initial=0.0))), float(finite.max(initial=0.0)) or 1.0)
    digits = max(0, 2 - int(np.floor(np.log10(max(abs(limits[0]), abs(limits[1]))))))
    form = f".{digits}f"
    names = [[axis.names[v] for v in own] for axis, own in ((y, rows), (x, columns))]
    own = current()
    room_in = own.pt(0.5) + max(width_in(name, 8.0) for name in names[0])
    size = (
        room_in + max(1.6, own.pt(0.42) * len(columns)),
        own.pt(0.75) + max(1.0, own.pt(0.3) * len(rows)),
    )
    up = -(-len(maps) // max(1, int((own.width or 9.0) / size[0])))
    beside = -(-len(maps) // up)
    bar_in = own.pt(0.8)
    figure, grid = panels([*maps], (size[0] + bar_in / beside, size[1]), beside)
    across_in = (figure.get_figwidth() - bar_in) / beside - room_in
    cell_in = across_in / len(columns)

    def fit(texts: Iterable[str], points: float) -> bool:
        return all(width_in(text, points) <= cell_in for text in texts)

    halves = np.concatenate([wide[np.isfinite(wide)] for _, wide in maps.values()])
    numbered = max(len(rows), len(columns)) <= _NUMBERED
    numbered = numbered and fit((f"{mean:{form}}" for mean in finite), 8.0)
    has_halves = numbered and halves.size > 0 and fit((f"± {half:{form}}" for half in halves), 6.5)
    for axes, (name, (found, wide)) in zip(grid, maps.items(), strict=True):
        image = cells(
            axes,
            found,
            *names,
            limits=limits,
            form=form if numbered else None,
            halves=wide if has_halves else None,
        )
        _lead(axes, leading[name])
    up_in = figure.get_figheight() - own.pt(1.0)
    beside_bar = wrapped(label, up_in, 9.0)
    figure.colorbar(image, ax=grid, label=beside_bar, format=Plain(), aspect=10 * max(2.0, up_in))
    said = said if has_halves else said.replace(INTERVALS, "")
    in_caption = own.notes == "caption"
    below = filter(None, [x.label, "" if in_caption else said])
    axis_labels(figure, grid, "\n".join(below), y.label, (room_in, 0.8))
    return figure, "; ".join(filter(None, [said if in_caption else "", left_out]))


def half_of(value: Interval) -> float:
    """Half-width of an interval as figures show it; NaN of so few runs that none is shown."""
    return math.nan if value.n < FEW else value.half


def _lead(axes: Axes, hrefs: Mapping[tuple[int, int], str]) -> None:
    """Squares over the cells at these places, which lead there."""
    corners = ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
    squares = [[(j + x, i + y) for x, y in corners] for i, j in hrefs]
    found = PolyCollection(squares, color="none", urls=[*hrefs.values()])
    axes.add_collection(found, autolim=False)
