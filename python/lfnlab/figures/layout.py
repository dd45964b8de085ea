"""Layout of figures: keeps marks within axes, and text within the figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from lfnlab.figures.columns import Plain
from lfnlab.figures.style import current

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_POINTS = 72.0
"""Of an inch."""
_HANDLE_IN = 0.62
"""Width of a legend's entry without its text, in inches, at 8 points."""
_LINE_IN = 0.165
"""Height of a legend's line, in inches."""


def width_in(text: str, points: float) -> float:
    """Width of a text in inches, in the font of figures; ``points`` is the house's size."""
    own = current()
    return _width_in(text, own.font) * own.pt(points)


@lru_cache(maxsize=4096)
def _width_in(text: str, font: str) -> float:
    """Width of a text of one point."""
    # The outermost control points lie on the outline: the extents of its curves are the same, and
    # take eight times as long.
    outline, _ = text_to_path.get_text_path(FontProperties(family=[font]), text.strip())
    across = np.asarray(outline).reshape(-1, 2)[:, 0]
    return float(across.max(initial=0.0)) / text_to_path.FONT_SCALE / _POINTS


def wrapped(text: str, most_in: float, points: float, lines: int = 3) -> str:
    """A text in lines of at most this width; what more lines would hold ends in dots."""
    if width_in(text, points) <= most_in:
        return text

    def broken(each: int) -> list[str]:
        return textwrap.wrap(text, each, max_lines=lines, placeholder="…")

    def fits(parts: Sequence[str]) -> bool:
        return all(width_in(part, points) <= most_in for part in parts)

    each = max(4, int(len(text) * most_in / width_in(text, points)))
    while each > 4 and not fits(broken(each)):
        each -= 1
    found = broken(each)
    # As long as the number of lines allows: lines of about equal length.
    while each > 4 and "…" not in found[-1]:
        shorter = broken(each - 1)
        whole = " ".join(shorter) == " ".join(found)
        if len(shorter) > len(found) or "…" in shorter[-1] or not fits(shorter) or not whole:
            break
        found, each = shorter, each - 1
    return "\n".join(found)


def from_zero(grid: Sequence[Axes], axis: str = "y") -> None:
    """Let shared axes begin at zero where no mark lies below. Call it when all marks are drawn."""
    lows = [axes.dataLim.y0 if axis == "y" else axes.dataLim.x0 for axes in grid]
    finite = [low for low in lows if math.isfinite(low)]
    if finite and min(finite) >= 0.0:
        for axes in grid:
            axes.set_ylim(bottom=0.0) if axis == "y" else axes.set_xlim(left=0.0)


def cut(grid: Sequence[Axes], count: int, columns: int) -> None:
    """Remove panels without data; the last panel of each column shows the numbers of the axis."""
    for axes in grid[count:]:
        axes.remove()
    for axes in grid[max(0, count - columns) : count]:
        axes.tick_params(labelbottom=True)


def panels(
    titles: Sequence[str],
    panel_in: tuple[float, float],
    most_columns: int = 3,
    beside_in: float = 0.4,
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title, and its axes; call it within the house's style.

    Args:
        titles: of the panels, in order; one panel may have an empty one.
        panel_in: width and height of a panel in inches.
        most_columns: of panels.
        beside_in: width of what stands beside the axes, which a title does not cover.
        shared: arguments of ``Figure.subplots``.
    """
    own = current()
    rows = -(-len(titles) // own.columns(most_columns, panel_in[0]))
    columns = -(-len(titles) // rows)  # four panels are two rows of two, not three and one
    if own.width is not None:
        wide_in = own.width / columns
        panel_in = wide_in, max(panel_in[1] * wide_in / panel_in[0], own.pt(1.1))
    titles = [own.named(title) for title in titles]
    told = [wrapped(title, panel_in[0] - beside_in, 9.0) for title in titles]
    tall_in = own.pt(0.15) * max(title.count("\n") + 1 for title in told) if any(told) else 0.0
    size = (panel_in[0] * columns, own.pt(0.45) + rows * (panel_in[1] + tall_in))
    figure = Figure(figsize=size)
    grid: list[Axes] = list(figure.subplots(rows, columns, squeeze=False, **shared).flatten())
    for axes, title in zip(grid, told, strict=False):
        axes.set_title(title, pad=2)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(Plain())
    cut(grid, len(told), columns)
    return figure, grid[: len(told)]


def axis_labels(
    figure: Figure,
    grid: Sequence[Axes],
    x: str | None,
    y: str | None,
    beside_in: tuple[float, float] = (0.7, 0.8),
) -> None:
    """Labels of one panel, or of all together, in lines as long as there is room.

    Args:
        figure: before it has a legend.
        grid: its panels.
        x, y: the labels; None for an axis that has its own.
        beside_in: what is left of the panel, and below and above it, in inches.
    """
    alone = len(grid) == 1
    own = current()
    across_in = figure.get_figwidth() - (own.pt(beside_in[0]) if alone else 0.3)
    up_in = figure.get_figheight() - (own.pt(beside_in[1]) if alone else 0.3)
    if x is not None:
        x = "\n".join(wrapped(line, across_in, 9.0) for line in x.split("\n"))
    if y is not None:
        y = wrapped(y, up_in, 9.0)
    if alone:
        grid[0].set(**{f"{axis}label": text for axis, text in (("x", x), ("y", y)) if text})
        return
    if x is not None:
        figure.supxlabel(x, fontsize=own.pt(9.0))
    if y is not None:
        figure.supylabel(y, fontsize=own.pt(9.0))


def legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """A legend beside the axes, in as many columns as the figure is wide; it adds its own height.

    It stands above them; a style may say another place.
    """
    own = current()
    if own.legend == "none":
        return
    room_in = figure.get_figwidth() - 0.2
    for handle in handles:
        handle.set_label(own.named(str(handle.get_label())))
    if own.legend in ("inside", "right"):
        if own.legend == "inside":
            figure.axes[0].legend(handles=list(handles), loc="best", handlelength=2.6)
        else:
            figure.legend(handles=list(handles), loc="outside right upper", handlelength=2.6)
        return
    for handle in handles:
        handle.set_label(wrapped(str(handle.get_label()), room_in - own.pt(_HANDLE_IN), 8.0))
    labels = [str(handle.get_label()) for handle in handles]
    widest = max(width_in(line, 8.0) for label in labels for line in label.split("\n"))
    columns = max(1, min(6, len(handles), int(room_in / (widest + own.pt(_HANDLE_IN)))))
    tallest = max(label.count("\n") + 1 for label in labels)
    rows = -(-len(handles) // columns)
    columns = -(-len(handles) // rows)  # rows of one length
    figure.set_figheight(figure.get_figheight() + own.pt(_LINE_IN) * rows * tallest)
    figure.legend(
        handles=list(handles),
        loc="outside lower center" if own.legend == "below" else "outside upper center",
        ncols=columns,
        handlelength=3.2,
        columnspacing=1.2,
    )
