"""Heat maps of columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.figures.columns import Plain, axis_of
from lfnlab.figures.draw.canvas import in_words, values_of
from lfnlab.figures.layout import axis_labels

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from lfnlab.figures.draw.canvas import Canvas

_CELLS = 80
"""Bins of a side with more values."""
_TICKS = 12
"""Values of a side that all have a tick."""


def heat(canvas: Canvas) -> tuple[Figure, str]:
    """The mean of z in cells of x and y, or the share of rows."""
    assert canvas.x is not None
    columns = {"x": canvas.x, "y": canvas.y}
    canvas.above_zero(*(columns[name] for name in canvas.log))
    figure, grid = canvas.figure((6.4, 4.0))
    sides = [_side(canvas.frame, columns[name], name in canvas.log) for name in columns]
    z = axis_of(canvas.frame, canvas.z) if canvas.z else None
    shown = []
    for part in canvas.parts():
        where = [side.place(part) for side in sides]
        shape = [side.edges.size - 1 for side in sides]
        flat = np.ravel_multi_index((where[0], where[1]), shape)
        count = np.bincount(flat, minlength=shape[0] * shape[1]).astype(float)
        if z is None:
            cells = 100.0 * count / max(1, part.height)
        else:
            cells = np.bincount(flat, z.of(part), count.size) / np.maximum(count, 1.0)
        cells[count == 0] = np.nan
        shown.append(cells.reshape(shape).T)
    high = max(float(np.nanmax(cells)) for cells in shown)
    low = min(0.0, *(float(np.nanmin(cells)) for cells in shown))
    for axes, cells in zip(grid, shown, strict=True):
        mesh = axes.pcolormesh(
            sides[0].edges, sides[1].edges, cells, vmin=low, vmax=high, rasterized=True
        )
        axes.grid(visible=False)
        for side, set_ticks in zip(sides, (axes.set_xticks, axes.set_yticks), strict=True):
            if side.ticks is not None:
                set_ticks(*side.ticks)
                set_ticks([], minor=True)
    label = f"mean {z.label}" if z else "share of samples (%)"
    figure.colorbar(mesh, ax=grid, label=label, format=Plain())
    axis_labels(figure, grid, sides[0].label, sides[1].label)
    return figure, label


@dataclass(frozen=True)
class _Side:
    """One side of a heat map: bins of a column with many values, or a cell for each value."""

    label: str
    edges: NDArray[np.floating[Any]]
    ticks: tuple[list[float], list[str]] | None
    """Places and names; None for those of a plain axis."""
    place: Callable[[pl.DataFrame], NDArray[np.int64]]


def _side(frame: pl.DataFrame, column: str, logarithmic: bool) -> _Side:
    if not frame[column].dtype.is_numeric():
        at = {value: i for i, value in enumerate(values_of(frame, column))}
        names = [*in_words(frame, column).values()]

        def of_names(part: pl.DataFrame) -> NDArray[np.int64]:
            return np.array([at[value] for value in part[column].to_list()])

        places = [float(place) for place in range(len(at))]
        return _Side(column, np.arange(len(at) + 1) - 0.5, (places, names), of_names)
    axis = axis_of(frame, column)
    values = values_of(frame, column)
    each = np.asarray(values, dtype=float) / axis.scale
    # On a logarithmic axis cells are as wide as they look.
    along, back = (np.log, np.exp) if logarithmic else (np.asarray, np.asarray)
    if len(values) > _CELLS:
        edges = back(np.linspace(along(each[0]), along(each[-1]), _CELLS + 1))
        ticks = None
    else:  # a cell for each value, which ends half-way to the next
        at_ = along(each)
        middles = (at_[1:] + at_[:-1]) / 2
        step = float(np.diff(at_).min()) if each.size > 1 else 1.0
        edges = back(np.concatenate(([at_[0] - step / 2], middles, [at_[-1] + step / 2])))
        # Each value, though an axis would skip some.
        ticks = (each.tolist(), axis.texts(values)) if len(values) <= _TICKS else None
    return _Side(
        axis.label,
        edges,
        ticks,
        lambda part: np.clip(np.searchsorted(edges, axis.of(part), "right") - 1, 0, edges.size - 2),
    )
