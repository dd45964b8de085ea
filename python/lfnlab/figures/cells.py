"""Heat maps with a number in each cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps

from lfnlab.figures.style import current

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from numpy.typing import NDArray


def cells(
    axes: Axes,
    values: NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    colours: str = "viridis",
    shades: int = 256,
    limits: tuple[float, float],
    form: str | None = ".0f",
    halves: NDArray[np.float64] | None = None,
) -> AxesImage:
    """Colour and number of each value; a value that is not a number has an empty cell.

    Args:
        axes: where they are drawn.
        values: a row for each of ``rows``, a column for each of ``columns``.
        rows, columns: names at the axes; those of the columns stand upright.
        colours: a colour map of matplotlib.
        shades: number of its colours that are used.
        limits: values of its first and last colour.
        form: of the numbers; None for none.
        halves: half-widths of the values' intervals, which stand below the numbers; NaN for none.
    """
    shown = colormaps[colours].resampled(shades)
    image = axes.imshow(values, cmap=shown, vmin=limits[0], vmax=limits[1], aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=90)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    if form is None:
        return image
    inks = np.asarray(image.cmap(np.asarray(image.norm(values))))
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            style: dict[str, Any] = {"ha": "center", "color": ink(inks[i, j])}
            half = math.nan if halves is None else halves[i, j]
            middle = "center" if math.isnan(half) else "bottom"
            size = current().pt(8.0)
            axes.text(j, i, f"{value:{form}}", va=middle, fontsize=size, **style)
            if not math.isnan(half):
                size = current().pt(6.5)
                axes.text(j, i, f"± {half:{form}}", va="top", fontsize=size, **style)
    return image


def ink(ground: NDArray[np.float64]) -> str:
    """Black or white, whichever has the larger contrast to a colour in sRGB (WCAG 2.1)."""
    return "white" if luminance(ground) < 0.1791 else "black"  # there both have 4.58


def luminance(colour: NDArray[np.float64]) -> float:
    """Relative luminance of a colour in sRGB, 0 to 1 (WCAG 2.1)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))
