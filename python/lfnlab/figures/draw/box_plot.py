"""Boxes: the spread of rows, such as the goodputs of all flows of a law."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from lfnlab.figures import plot
from lfnlab.figures.columns import axis_of
from lfnlab.figures.draw.bar_chart import arranged, names_of
from lfnlab.figures.draw.canvas import counted
from lfnlab.figures.layout import axis_labels, from_zero, width_in
from lfnlab.figures.style import current

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from lfnlab.figures.draw.canvas import Canvas

    Floats = NDArray[np.float64]

ENDS = (5.0, 95.0)
"""Percentiles at which whiskers end; rows beyond are dots."""
MOST_BEYOND = 100
"""Dots of one box."""


def boxes(canvas: Canvas, *, asked: bool) -> tuple[Figure, str]:
    """A box for each value of x, and side by side for each colour in it.

    ``asked`` tells whether the column for colours was named.
    """
    assert canvas.x is not None
    names, looks, places = arranged(canvas, "boxes", "--kind cdf", asked=asked)
    canvas.above_zero(*([canvas.y] if "y" in canvas.log else []))
    side_by_side = max(places.values()) + 1
    axis = axis_of(canvas.frame, canvas.y)
    words, x_label = names_of(canvas, names)
    wide = min(max(3.6, 1.2 + 0.22 * len(names) * (0.7 + 0.5 * side_by_side)), 12.0)
    figure, grid = canvas.figure((max(4.0, wide), 3.6), wide)
    width, seen, rows = 0.8 / side_by_side, set(), 0
    for axes, part in zip(grid, canvas.parts(), strict=True):
        for at, name in enumerate(names):
            own = part.filter(pl.col(canvas.x).eq_missing(pl.lit(name)))
            for key, look in looks.items():
                values = axis.of(canvas.own(own, key))
                if values.size:
                    seen.add(key)
                    rows += values.size
                    left = at + (places[key] - (side_by_side - 1) / 2) * width
                    _box(axes, left, width * 0.8, values, look)
        axes.set_xticks(range(len(names)), words)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.grid(axis="x", visible=False)
    slot_in = (figure.get_figwidth() / len({axes.get_position().x0 for axes in grid})) / len(names)
    upright = max(width_in(line, 8.0) for word in words for line in word.split("\n")) > slot_in
    for axes in grid:
        axes.tick_params(axis="x", length=0, labelrotation=90 if upright else 0)
    if "y" not in canvas.log:
        from_zero(grid)
    axis_labels(figure, grid, x_label, axis.label)
    if not (canvas.by == canvas.x and len(canvas.sources) == 1):
        canvas.legend(figure, looks, seen)
    said = f"{counted(rows, 'row')}: median and quartiles, whiskers from 5 to 95 %"
    return figure, said


def _box(axes: Axes, left: float, width: float, values: Floats, look: Mapping[str, Any]) -> None:
    own = current()
    low, first, middle, third, high = np.percentile(values, (ENDS[0], 25.0, 50.0, 75.0, ENDS[1]))
    beyond = np.sort(values[(values < low) | (values > high)])
    if beyond.size > MOST_BEYOND:
        beyond = beyond[np.linspace(0, beyond.size - 1, MOST_BEYOND).astype(int)]
    stats = [
        {"med": middle, "q1": first, "q3": third, "whislo": low, "whishi": high, "fliers": beyond}
    ]
    line = {"color": plot.INK, "linewidth": own.lw(1.0)}
    axes.bxp(
        stats,
        positions=[left],
        widths=width,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": look["color"], "edgecolor": plot.INK, "lw": own.lw(0.6)}
        | {"hatch": look["hatch"]},
        medianprops={**line, "color": "white", "linewidth": own.lw(2.0)},
        whiskerprops=line,
        capprops=line,
        flierprops={"marker": ".", "markersize": own.pt(2.5), "markeredgecolor": look["color"]},
    )
