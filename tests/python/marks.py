"""Parts of a drawn figure that a reader would miss, or confuse with others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text

from lfnlab.figures.looks import alike
from lfnlab.figures.plot import house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def faults(figure: Figure) -> Iterator[str]:
    """Marks that axes cut, texts that meet or leave the figure, series that look alike."""
    with house_style():
        FigureCanvasAgg(figure).draw()
    for axes in figure.axes:
        yield from outside(axes)
        yield from halved(axes)
    yield from texts(figure)
    for legend in figure.legends:
        told = [
            (to_hex(line.get_color()), str(line._dash_pattern), str(line.get_marker()))
            for line in legend.get_lines()
        ]
        for one, other in itertools.combinations(told, 2):
            if alike(one[0], other[0]) and one[1:] == other[1:]:
                yield f"two series look alike: {one}"


def same_bars(figure: Figure) -> Iterator[str]:
    """Two bars of one panel with equal looks that belong to different series."""
    for axes in figure.axes:
        seen = [(to_hex(bar.get_facecolor()), bar.get_hatch() or "") for bar in axes.patches]
        for one, other in itertools.combinations(seen, 2):
            if alike(one[0], other[0]) and one[1] == other[1]:
                yield f"two bars of {axes.get_title(loc='left')} look alike: {one}"


def outside(axes: Axes) -> Iterator[str]:
    """Marks that the axes cut."""
    (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    marks = [np.column_stack(line.get_data()) for line in axes.lines
             if line.get_transform() == axes.transData]  # fmt: skip
    for bar in axes.patches:
        marks.append(bar.get_bbox().get_points())
    for image in axes.images:
        left_x, right_x, low_y, high_y = image.get_extent()
        marks.append(np.array([[left_x, low_y], [right_x, high_y]]))
    for collection in axes.collections:
        if isinstance(collection, LineCollection):
            marks += collection.get_segments()
    for mark in marks:
        x, y = np.asarray(mark, dtype=float).reshape(-1, 2).T
        room_x, room_y = 1e-9 * (right - left), 1e-9 * (high - low)
        if (
            np.nanmin(x, initial=left) < left - room_x
            or np.nanmax(x, initial=right) > right + room_x
        ):
            yield f"cut: {np.nanmin(x)} to {np.nanmax(x)} in x from {left} to {right}"
        if np.nanmin(y, initial=low) < low - room_y or np.nanmax(y, initial=high) > high + room_y:
            yield f"cut: {np.nanmin(y)} to {np.nanmax(y)} in y from {low} to {high}"


def halved(axes: Axes) -> Iterator[str]:
    """Markers that the top of the axes cuts; those of zero lie on the axis."""
    pixels = axes.figure.dpi / 72
    for line in axes.lines:
        if line.get_marker() in ("", "None", "none", None) or not len(line.get_ydata()):
            continue
        data = np.column_stack(line.get_data()).astype(float)
        tops = line.get_transform().transform(data)[:, 1]
        over = np.nanmax(tops, initial=-np.inf) + line.get_markersize() / 2 * pixels - axes.bbox.y1
        if over > 1:
            yield f"cut: a marker of {line.get_label()} by {over:.1f} pixels"


def texts(figure: Figure) -> Iterator[str]:
    """Texts that leave the figure or meet each other."""
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    drawn: list[Text] = [text for text in figure.texts if text is not None]
    for axes in figure.axes:
        drawn += [child for child in axes.get_children() if isinstance(child, Text)]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            inside = [tick for tick in ticks if low <= tick.get_loc() <= high]
            drawn += [axis.label, *(label for t in inside for label in (t.label1, t.label2))]
    for legend in figure.legends:
        drawn += legend.get_texts()
    found = [
        (text, text.get_window_extent(renderer))
        for text in drawn
        if text.get_visible() and text.get_text().strip()
    ]
    box = figure.bbox
    for text, area in found:
        said = text.get_text()
        if area.x0 < box.x0 - 1 or area.x1 > box.x1 + 1 or area.y0 < -1 or area.y1 > box.y1 + 1:
            yield f"{said!r} leaves the figure: {area} in {box}"
    for (one, a), (other, b) in itertools.combinations(found, 2):
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1:
            if one.get_rotation() == other.get_rotation() and lines_apart(one, other):
                continue
            yield f"{one.get_text()!r} and {other.get_text()!r} overlap: {a}, {b}"


def lines_apart(one: Text, other: Text) -> bool:
    """Whether two texts of one angle stand on lines that are further apart than a text is high."""
    angle = np.deg2rad(one.get_rotation())
    places = [text.get_transform().transform(text.get_position()) for text in (one, other)]
    across = np.array([-np.sin(angle), np.cos(angle)])
    high = max(text.get_fontsize() for text in (one, other)) / 72 * one.figure.dpi
    return bool(angle % (np.pi / 2) and abs((places[1] - places[0]) @ across) > high)
