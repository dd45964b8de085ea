"""Titles and units of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import LogFormatter

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
_SUFFIXES = {
    "_s": "s",
    "_ps": "ps",
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


def unit(column: str) -> str:
    """The unit of a column of a table or key of a summary; empty for names and counts."""
    for table in declared().values():
        if column in table:
            return table[column].unit
    if column in _UNITS:
        return _UNITS[column]
    return next((u for suffix, u in _SUFFIXES.items() if column.endswith(suffix)), "")


@dataclass(frozen=True)
class Axis:
    """How a column is shown: divided by ``scale``, under ``label``."""

    column: str
    scale: float
    label: str

    def of(self, frame: pl.DataFrame) -> NDArray[np.float64]:
        """The values as shown."""
        return frame[self.column].to_numpy().astype(float) / self.scale


def axis_of(frame: pl.DataFrame, column: str) -> Axis:
    """In the unit that suits the largest value."""
    words = _WORDS.get(column)
    shown, scale = unit(column), 1.0
    if words is None:
        suffix = next((s for s in _SUFFIXES if column.endswith(s)), "")
        words = column.removesuffix(suffix).replace("_", " ") if shown else column.replace("_", " ")
    if shown in SCALES:
        largest = float(np.max(np.abs(frame[column].to_numpy().astype(float)), initial=0.0))
        steps = SCALES[shown]
        scale, shown = next((step for step in steps if largest >= step[0]), steps[0])
    return Axis(column, scale, words if shown in ("", "1") else f"{words} ({shown})")


class PlainLog(LogFormatter):
    """Numbers as they are: the house's style parses no formulas."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label at x; none where the base class has none."""
        return f"{x:g}" if super().__call__(x, pos) else ""
