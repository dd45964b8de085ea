"""The named figures of an experiment, each one entry of :data:`FIGURES`.

``lfn plot --figure``, the report and :meth:`lfnlab.Results.plot` draw from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lfnlab.analysis.summary import averaged
from lfnlab.errors import UsageError
from lfnlab.figures import plot
from lfnlab.figures.columns import SCALES
from lfnlab.figures.drawing import Drawing
from lfnlab.figures.shapes import means
from lfnlab.results.runs import origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from matplotlib.figure import Figure

    from lfnlab.figures.plot import Series
    from lfnlab.results.runs import Results, Run

_MOST_TRACES = 12


@dataclass(frozen=True)
class Means:
    """A column of the summary: means over seeds with 95 % intervals, by :class:`Shape`.

    ``unit`` is that of the column; of ``bit/s`` and ``s`` the axis takes the unit that suits.
    """

    caption: str
    label: str
    metric: str
    unit: str = ""
    report: bool = True
    """Whether it is in the report."""
    of_several: bool = False
    """Whether it needs several flows."""

    def draw(self, results: Results, _: Sequence[Run]) -> tuple[Figure, str] | None:
        """The figure with what it leaves out; None where these runs have no values for it."""
        rows = results.cases.rows
        if not rows or (self.of_several and all(row["flows"] == 1 for row in rows)):
            return None
        values = results.intervals(self.metric)
        scale, unit = 1.0, self.unit
        if steps := SCALES.get(unit):
            most = max((abs(v.mean) for v in values.values() if v.mean == v.mean), default=0.0)
            scale, unit = next((step for step in steps if most >= step[0]), steps[0])
        several = self.metric == "goodput_bps" and any(row["flows"] > 1 for row in rows)
        label = f"{self.label}{', sum of flows' if several else ''}{f' ({unit})' if unit else ''}"
        return means(values, results.keys, label, averaged(results), scale)


@dataclass(frozen=True)
class Traces:
    """Samples over time, a panel a run; the first seed of each case."""

    caption: str
    label: str
    series: Callable[[Run], Iterator[Series]]
    table: str
    """The table that has the samples."""
    report: bool = True

    def draw(self, results: Results, traced: Sequence[Run]) -> tuple[Figure, str] | None:
        """The figure with what it leaves out; None without samples."""
        sampled = [run for run in traced if run.table(self.table).height]
        if not sampled:
            return None
        cases = len(plot.first_seed(results))
        left_out = f"{len(sampled)} of {cases} cases" if len(sampled) < cases else ""
        return plot.traces(sampled, self.series, self.label), left_out


FIGURES: dict[str, Means | Traces] = {
    "goodput": Means("Goodput of the flows of a law", "goodput", "goodput_bps", "bit/s"),
    "cov": Means(
        "Coefficient of variation of goodput: lower is steadier",
        "coefficient of variation of goodput, 1-s bins",
        "cov",
    ),
    "jain": Means(
        "Fairness between the flows of a law", "Jain's fairness index", "jain", of_several=True
    ),
    "delay": Means(
        "Mean queueing delay of the link that carries the flows",
        "mean queueing delay",
        "mean_queue_s",
        "s",
    ),
    "utilization": Means(
        "Utilisation of the link that carries the flows",
        "utilisation, share of the rate",
        "utilization",
        report=False,
    ),
    "losses": Means(
        "Loss events of the flows", "loss events in the run", "loss_events", report=False
    ),
    "retransmits": Means(
        "Retransmissions of the flows", "retransmitted segments", "retransmits", report=False
    ),
    "queue": Traces("Queues", "queue (packets)", plot.queue_series, "queues"),
    "cwnd": Traces("Congestion windows", "congestion window (segments)", plot.cwnd_series, "flows"),
    "rate": Traces(
        "Goodput over time. What is released in order when a loss is repaired counts in the bin of "
        "its release, which can exceed the link's rate",
        "goodput in 1-s bins (Mbit/s)",
        plot.goodput_series,
        "flows",
    ),
    "rtt": Traces(
        "Smoothed RTT of the flows", "smoothed RTT (ms)", plot.rtt_series, "flows", report=False
    ),
}


def draw(results: Results, name: str, traced: Sequence[Run] | None = None) -> Drawing:
    """Draw a named figure.

    Raises:
        UsageError: for an unknown name, or a figure for which these runs have no values.
    """
    if name not in FIGURES:
        raise UsageError(f'no figure "{name}"; allowed: {", ".join(FIGURES)}')
    traced = plot.some(plot.first_seed(results), _MOST_TRACES) if traced is None else traced
    made = FIGURES[name].draw(results, traced)
    if made is None:
        why = "no samples" if isinstance(FIGURES[name], Traces) else "no flows, or too few,"
        raise UsageError(f"figure {name}: these runs have {why} to draw it from")
    figure, left_out = made
    caption = "; ".join(filter(None, [FIGURES[name].caption, left_out]))
    return Drawing(figure, caption, name, origin(results.runs))


def of_report(
    results: Results, traced: Sequence[Run], *, with_traces: bool = True
) -> dict[str, tuple[Figure, str]]:
    """The figures of the report with their captions, by name."""
    found = {}
    for name, entry in FIGURES.items():
        if not entry.report or (isinstance(entry, Traces) and not with_traces):
            continue
        if (made := entry.draw(results, traced)) is not None:
            figure, left_out = made
            found[name] = figure, "; ".join(filter(None, [entry.caption, left_out]))
    return found


def listing() -> str:
    """Every named figure with its caption."""
    wide = max(map(len, FIGURES))
    return "\n".join(
        [
            "figures, drawn by --figure NAME:",
            *(f"    {name:{wide}}  {entry.caption}" for name, entry in FIGURES.items()),
        ]
    )
