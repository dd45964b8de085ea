"""The runs behind a mean, as a figure shows them: few as dots, more as an interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.patheffects import withStroke

from lfnlab.figures.style import current
from lfnlab.statistics import FEW

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lfnlab.statistics import Interval

DOTS = f"; runs are dots where they are fewer than {FEW}, too few for an interval"
"""Said of a figure that has some."""
GROUND = "#fefefe"
"""The ground around a dot, which on a page is the page's."""
DOT: dict[str, Any] = {
    "color": "#30343b",
    "marker": "o",
    "ls": "",
    "ms": 3.6,
    "mec": GROUND,
    "mew": 0.6,
}
"""How a single run looks."""


class Spread(NamedTuple):
    """Runs one by one, or the ends of their mean's 95 % interval; of one run neither."""

    dots: tuple[float, ...] = ()
    ends: tuple[float, float] | None = None

    @property
    def marks(self) -> tuple[float, ...]:
        """All values that are drawn."""
        return (*self.dots, *(self.ends or ()))


def interval_mark(axes: Axes, x: float, y: float, **reach: Any) -> None:
    """The ends of an interval over a bar, with a rim that tells them from a dark one.

    Args:
        axes: where it is drawn.
        x, y: place of the mean.
        reach: ``xerr`` or ``yerr`` of matplotlib.
    """
    own = current()
    ink = {"ecolor": DOT["color"], "capsize": own.pt(2.5), "lw": own.lw(1.0)}
    _, caps, bars = axes.errorbar(x, y, fmt="none", **ink, **reach)
    rim = [withStroke(linewidth=own.lw(2.4), foreground=GROUND)]
    # A cap's rim lies below the line that ends there.
    for parts, above in ((caps, 0.0), (bars, 0.1)):
        for part in parts:
            part.set_path_effects(rim)
            part.set_zorder(part.get_zorder() + above)


def spread(value: Interval, bounds: tuple[float, float] = (-math.inf, math.inf)) -> Spread:
    """Runs as dots where they are few, else the part of the interval in which a mean can lie.

    To cut an interval at a bound of the quantity does not change how often it holds the true mean,
    which lies within the bounds. A bound that a run breaks is none.
    """
    if not math.isfinite(value.half):
        return Spread()
    if value.is_of_few:
        return Spread(dots=value.values)
    runs = value.values or (value.mean,)
    low = bounds[0] if min(runs) >= bounds[0] else -math.inf
    high = bounds[1] if max(runs) <= bounds[1] else math.inf
    return Spread(ends=(max(value.low, low), min(value.high, high)))
