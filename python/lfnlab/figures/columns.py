"""Titles, units, bounds and texts of columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
from matplotlib.ticker import Formatter, LogFormatter

from lfnlab.results import summary
from lfnlab.results.cases import GROUP_METRICS, METRICS
from lfnlab.results.tables import declared

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

# Units of keys of the summary whose names do not say them.
_UNITS = {
    "early_drops": "packets",
    "random_losses": "packets",
    "max_queue_packets": "packets",
    "sent": "segments",
    "utilization": "1",
    "jain": "1",
    "cov": "1",
}
_SHARES = ("utilization", "jain")
"""Columns of at most 1."""
_SIGNED = ("value",)
"""Columns of lfn's tables that may be negative: a law's own variable may be anything."""
_SUFFIXES = {
    "_s": "s",
    "_ms": "ms",
    "_us": "µs",
    "_ns": "ns",
    "_ps": "ps",
    "_percent": "%",
    "_bps": "bit/s",
    "_seg": "segments",
    "_segments": "segments",
    "_bytes": "B",
    "_packets": "packets",
}
_WORDS = {
    "t_s": "time",
    "cwnd_seg": "congestion window",
    "ssthresh_seg": "slow-start threshold",
    "inflight_seg": "in flight",
    "srtt_s": "smoothed RTT",
    "rtt_s": "RTT",
    "pacing_bps": "pacing rate",
    "min_rtt_s": "smallest RTT",
    "inflight_bytes": "in flight",
    "offered_window_bytes": "receiver's window",
    "delivery_bps": "delivery rate",
    "seq": "sequence number",
    "packets": "queue",
    "bytes": "queue",
    "jain": "Jain's fairness index",
    "cov": "coefficient of variation of goodput",
    "utilization": "utilization",
    "mean_queue_s": "mean queueing delay",
    "p99_queue_s": "99th percentile of queueing delay",
}
#: From large to small; an axis takes the largest unit that its largest value reaches.
SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


_SMALL = {"ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}
"""Units of columns in seconds."""


def unit(column: str) -> str:
    """The unit of a column of a table or key of a summary; empty for names and counts."""
    for table in declared().values():
        if column in table:
            return table[column].unit
    if column in _UNITS:
        return _UNITS[column]
    return next((u for suffix, u in _SUFFIXES.items() if column.endswith(suffix)), "")


def bounds(column: str) -> tuple[float, float]:
    """Least and greatest value that a column can have; infinite where nothing is known."""
    if column in _SHARES:
        return 0.0, 1.0
    return (0.0 if column in _not_negative() else -math.inf), math.inf


@cache
def _not_negative() -> frozenset[str]:
    """Columns of runs that hold sizes, times and counts."""
    of_summary = [kind for kind in vars(summary).values() if hasattr(kind, "__total__")]
    known = {*METRICS, *GROUP_METRICS, *(name for table in declared().values() for name in table)}
    known |= {name for kind in of_summary for name in get_type_hints(kind)}
    return frozenset(known - {*_SIGNED})


@dataclass(frozen=True)
class Axis:
    """How a column is shown: divided by ``scale``, in words and unit."""

    column: str
    scale: float
    words: str
    unit: str

    @property
    def label(self) -> str:
        """Words with the unit, for an axis."""
        return f"{self.words} ({self.unit})" if self.unit else self.words

    def of(self, frame: pl.DataFrame) -> NDArray[np.float64]:
        """The values as shown."""
        return frame[self.column].to_numpy().astype(float) / self.scale

    def texts(self, values: Iterable[float]) -> list[str]:
        """The numbers of values of the column, as they stand at the axis."""
        values = list(values)
        if self.scale == 1.0 and any(isinstance(v, int) and abs(v) >= 2**53 for v in values):
            return [f"{v:,}" for v in values]  # a float cannot tell them apart
        return texts([float(value) / self.scale for value in values])

    def told(self, values: Iterable[float]) -> list[str]:
        """Values in words, number and unit, for a legend or a title: "RTT 20 ms"."""
        return [
            " ".join(filter(None, (self.words, text, self.unit))) for text in self.texts(values)
        ]


def axis_of(frame: pl.DataFrame, column: str) -> Axis:
    """In the unit that suits the largest value of a frame."""
    return axis_for(column, frame[column].drop_nulls().to_numpy())


def axis_for(column: str, values: Any) -> Axis:
    """In the unit that suits the largest of some values, which are in the unit of the column."""
    shown = unit(column)
    words = _WORDS.get(column)
    if words is None:
        suffix = next((s for s in _SUFFIXES if column.endswith(s)), "")
        words = column.removesuffix(suffix).replace("_", " ") if shown else column.replace("_", " ")
    scale, named = scaled(shown, values)
    return Axis(column, scale, words, named)


def scaled(unit: str, values: Any) -> tuple[float, str]:
    """Divisor and name of the unit that suits the largest of some values in ``unit``."""
    known = np.abs(np.asarray(values, dtype=float))
    largest = float(np.max(known, where=np.isfinite(known), initial=0.0))
    size = _SMALL.get(unit, 1.0)
    steps = SCALES.get("s" if unit in _SMALL else unit)
    if steps is None:
        return 1.0, "" if unit == "1" else unit
    # A value that is 1 of its unit up to rounding is 1 of it: 0.9999999999 ms is 1 ms.
    found = next((step for step in steps if largest * size >= step[0] * (1 - 1e-9)), steps[0])
    return found[0] / size, found[1]


def texts(values: Sequence[float]) -> list[str]:
    """Numbers as every axis, legend and title has them: "0.05", "1,500", "1e-06".

    Six digits, or as many as tell the values apart. Whole numbers below 10^9 have all theirs.
    """
    known = sorted({value for value in values if math.isfinite(value)})
    apart = min((b - a for a, b in pairwise(known)), default=math.inf)
    digits = 6
    while digits < _ALL and any(_error(value, digits) > apart / 1000 for value in known):
        digits += 1
    return [_text(value, digits) for value in values]


_ALL = 17
"""Digits of a number that are all that it has."""


def _error(value: float, digits: int) -> float:
    return 0.0 if _whole(value) else abs(float(f"{value:.{digits}g}") - value)


def _whole(value: float) -> bool:
    return abs(value) < 1e9 and value == math.floor(value)


def _text(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    if _whole(value):
        return f"{int(value):,}"
    text = repr(value) if digits == _ALL else f"{value:.{digits}g}"
    return f"{Decimal(text):,f}" if 1e-4 <= abs(value) < 1e9 else text


class Plain(Formatter):
    """Numbers of a linear axis, all with the digits that tell them apart."""

    def set_locs(self, locs: Any) -> None:
        """Take the places of the ticks."""
        super().set_locs(locs)
        places = [float(place) for place in locs]
        self._told = dict(zip(places, texts(places), strict=True))

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The text at a tick."""
        return getattr(self, "_told", {}).get(float(x)) or texts([float(x)])[0]


class PlainLog(LogFormatter):
    """Numbers of a logarithmic axis as they are: the house's style parses no formulas."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The text at x; none where the base class has none."""
        return texts([float(x)])[0] if super().__call__(x, pos) else ""
