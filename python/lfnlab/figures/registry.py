"""The named figures of an experiment, each one entry of :data:`FIGURES`.

``lfn plot --figure``, the report and :meth:`lfnlab.Results.plot` draw from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lfnlab.analysis.summary import averaged, over, rate_unit_of
from lfnlab.errors import UsageError
from lfnlab.figures import plot
from lfnlab.figures.columns import bounds, scaled
from lfnlab.figures.drawing import Drawing
from lfnlab.figures.looks import beside
from lfnlab.figures.percentiles import Percentiles
from lfnlab.figures.shapes import means
from lfnlab.figures.style import PRESETS, Style, applied, finish
from lfnlab.results.cases import Rows
from lfnlab.results.runs import origin

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from lfnlab.figures.plot import Series
    from lfnlab.results.cases import Cases, Group
    from lfnlab.results.runs import Results, Run

MOST_TRACED = 12
"""Runs whose traces are drawn in one figure."""


def _laws(results: Results) -> set[str]:
    """The laws of an experiment, whose colours are told apart in all of its figures."""
    rows = results.cases.rows
    return set(rows.columns["law"]) if isinstance(rows, Rows) else {row["law"] for row in rows}


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
    of_links: bool = False
    """Whether its cases are links; the report has it where no flows are under test."""
    of_groups: bool = False
    """Whether it is of groups of flows; without ``--by`` of laws and RTTs."""
    counted: bool = False
    """Whether it counts over the whole run, the warm-up included."""

    def draw(
        self, results: Results, _: Sequence[Run], hrefs: Mapping[Group, str] | None = None
    ) -> tuple[Figure, str] | None:
        """The figure with what it leaves out; None where these runs have no values for it.

        Args:
            results: the experiment.
            hrefs: where the mark of a case leads to in an SVG.
        """
        with beside(_laws(results)):
            return self._drawn(results, hrefs)

    def _drawn(
        self, results: Results, hrefs: Mapping[Group, str] | None
    ) -> tuple[Figure, str] | None:
        results = self.grouped(results)
        laws = {row["law"] for row in results.cases.rows} if results.groups else set()
        if len(laws) == 1 and "law" not in results.keys:
            results = results.by("law", *results.groups)  # for its colour
        cases = self.cases(results)
        several = not cases.is_all("flows", 1)
        if not cases.rows or (self.of_several and not several):
            return None
        values = cases.intervals(self.metric)
        if all(math.isnan(value.mean) for value in values.values()):
            return None
        unknown = 0
        if results.groups:
            every = len(values)
            values = {group: value for group, value in values.items() if value.mean == value.mean}
            unknown = every - len(values)
        scale, unit = scaled(self.unit, [value.mean for value in values.values()])
        if self.unit == "bit/s":  # as in the table
            unit, scale = rate_unit_of(results.looked_at)
        summed = ", sum of flows" if self.metric == "goodput_bps" and several else ""
        label = f"{self.label}{summed}{f' ({unit})' if unit else ''}"
        said = f"whole run; {over(results)}" if self.counted else averaged(results)
        figure, left_out = means(values, cases.keys, label, said, scale, hrefs, bounds(self.metric))
        links = len({row["link"] for row in results.links.rows}) if self.of_links else 0
        shown = len({row["link"] for row in cases.rows}) if self.of_links else 0
        some = f"{shown} of {links} links, those that dropped packets" if shown < links else ""
        lost = f"without {unknown} groups that have no {self.label}" if unknown else ""
        return figure, "; ".join(filter(None, [some, lost, left_out]))

    def data(self, results: Results) -> pl.DataFrame:
        """The numbers that it shows, in the unit of the column."""
        results = self.grouped(results)
        return self.cases(results).table([self.metric])

    def grouped(self, results: Results) -> Results:
        """By laws and RTTs, if the figure is of groups and none were chosen."""
        if self.of_groups and not results.groups and results.cases.rows:
            classes = ["rtt"] if "rtt" in results.runs[0].properties else []
            return results.by("law", *classes)
        return results

    def cases(self, results: Results) -> Cases:
        """Its rows: of links those that dropped packets in some run, or all if none did."""
        if not self.of_links:
            return results.cases
        rows = results.links.rows
        full = {row["link"] for row in rows if row["drops"]} or {row["link"] for row in rows}
        return replace(results.links, rows=[row for row in rows if row["link"] in full])


@dataclass(frozen=True)
class Traces:
    """Samples over time, a panel a run; the first seed of each case."""

    caption: str
    label: str
    """With ``{unit}`` for that of a rate."""
    series: Callable[[Run], Iterator[Series]]
    table: str
    """The table that has the samples."""
    report: bool = True

    def draw(self, results: Results, traced: Sequence[Run]) -> tuple[Figure, str] | None:
        """The figure with what it leaves out; None without samples."""
        sampled = [run for run in traced if self._is_sampled(run)]
        if not sampled:
            return None
        cases = len(plot.first_seed(results))
        left_out = f"{len(sampled)} of {cases} cases" if len(sampled) < cases else ""
        label, series = plot.in_unit_of_rate(self.label, self.series, sampled)
        with beside(_laws(results)):
            figure, untold = plot.traces(sampled, series, label)
        return figure, "; ".join(filter(None, [left_out, untold]))

    def _is_sampled(self, run: Run) -> bool:
        if run.is_measured:  # it lacks tables, and columns have no value
            return any(True for _ in self.series(run))
        return run.table(self.table).height > 0


@dataclass(frozen=True)
class OneRun:
    """Several samples of one run over time, a panel each above the other."""

    caption: str
    parts: Mapping[str, Callable[[Run], Iterator[Series]]]
    """By the label of the axis."""
    report: bool = False

    def draw(self, results: Results, traced: Sequence[Run]) -> tuple[Figure, str] | None:
        """The figure with the name of the run; None without samples."""
        run = traced[0]
        parts = (plot.in_unit_of_rate(label, of, [run]) for label, of in self.parts.items())
        found = {label: drawn for label, of in parts if (drawn := [*of(run)])}
        if not found:
            return None
        with beside(_laws(results)):
            figure, untold = plot.stacked(run, found)
        says = f"{plot.panel_title(run)}, seed {run.seed}"
        return figure, "; ".join(filter(None, [says, untold]))


FIGURES: dict[str, Means | Traces | OneRun | Percentiles] = {
    "goodput": Means("Goodput of the flows of a law", "goodput", "goodput_bps", "bit/s"),
    "cov": Means(
        "Coefficient of variation of goodput: lower is steadier",
        "coefficient of variation of goodput, 1-s bins",
        "cov",
    ),
    "jain": Means(
        "Fairness between the flows of a law", "Jain's fairness index", "jain", of_several=True
    ),
    "flow": Means(
        "Goodput of a mean flow of each group",
        "goodput of a mean flow",
        "flow_goodput_bps",
        "bit/s",
        report=False,
        of_groups=True,
    ),
    "share": Means(
        "Goodput of a mean flow of each group over that of all flows of the run: 1 is fair",
        "goodput over the mean of all flows",
        "fair_share",
        report=False,
        of_groups=True,
    ),
    "completion": Means(
        "Mean completion time of the flows with a size",
        "completion time",
        "completion_s",
        "s",
        report=False,
        of_groups=True,
    ),
    "delay": Means(
        "Mean queueing delay of the link that carries the flows",
        "mean queueing delay",
        "mean_queue_s",
        "s",
    ),
    "utilization": Means(
        "Utilization of the link that carries the flows",
        "utilization, share of the rate",
        "utilization",
        report=False,
    ),
    "losses": Means(
        "Loss events of the flows", "loss events", "loss_events", report=False, counted=True
    ),
    "retransmits": Means(
        "Retransmissions of the flows",
        "retransmitted segments",
        "retransmits",
        report=False,
        counted=True,
    ),
    "link-utilization": Means(
        "Utilization of each link",
        "utilization, share of the rate",
        "utilization",
        of_links=True,
    ),
    "link-delay": Means(
        "Mean queueing delay of each link",
        "mean queueing delay",
        "mean_queue_s",
        "s",
        of_links=True,
    ),
    "l4s-delay": Percentiles("Delay of the L4S and of the Classic queue by percentile"),
    "queue": Traces("Queues", "queue (packets)", plot.queue_series, "queues"),
    "cwnd": Traces("Congestion windows", "congestion window (segments)", plot.cwnd_series, "flows"),
    "rate": Traces(
        "Goodput over time. Data count when they arrive, in order or not",
        "goodput in 1-s bins ({unit})",
        plot.goodput_series,
        "flows",
    ),
    "rtt": Traces(
        "Smoothed RTT of the flows", "smoothed RTT (ms)", plot.rtt_series, "flows", report=False
    ),
    "run": OneRun(
        "One run over time: windows, goodput, fairness of several flows, queue",
        {
            "window (segments)": plot.cwnd_series,
            "goodput ({unit})": plot.goodput_series,
            "Jain's index": plot.jain_series,
            "queue (packets)": plot.queue_series,
        },
    ),
}


def draw(
    results: Results, name: str, run: Run | None = None, style: Style = PRESETS["report"]
) -> Drawing:
    """Draw a named figure.

    Args:
        results: the experiment.
        name: of :data:`FIGURES`.
        run: the one that a figure over time shows; default the first seed of some cases.
        style: size, text, order and palette.

    Raises:
        UsageError: for an unknown name, or a figure for which these runs have no values.
    """
    if name not in FIGURES:
        raise UsageError(f'no figure "{name}"; allowed: {", ".join(FIGURES)}')
    entry = FIGURES[name]
    if run is not None and isinstance(entry, Means):
        over_time = [other for other in FIGURES if not isinstance(FIGURES[other], Means)]
        raise UsageError(
            f"figure {name} shows means over runs, not one run; allowed: {', '.join(over_time)}"
        )
    if results.groups and not isinstance(entry, Means):
        means_of = [other for other in FIGURES if isinstance(FIGURES[other], Means)]
        raise UsageError(
            f"--by: figure {name} shows no groups of flows; allowed: {', '.join(means_of)}"
        )
    some = plot.some(plot.first_seed(results), MOST_TRACED) if run is None else [run]
    if run is not None and isinstance(entry, Percentiles):
        results = replace(results, runs=some)
    with applied(style):
        made = entry.draw(results, some)
    if made is None:
        why = "no samples"
        if isinstance(entry, Means):
            why = "no flows, too few flows, or no values"
        elif isinstance(entry, Percentiles):
            why = "no queue of the kind dualpi2"
        raise UsageError(f"figure {name}: these runs have {why} to draw it from")
    figure, more = made
    with applied(style), plot.house_style():
        finish(figure, style)
    says = "; ".join(filter(None, [entry.caption, more]))
    return Drawing(figure, says, name, origin(results.runs), style)


def of_report(
    results: Results,
    traced: Sequence[Run],
    *,
    with_traces: bool = True,
    hrefs: Mapping[Group, str] | None = None,
) -> dict[str, tuple[Figure, str]]:
    """The figures of the report with their captions, by name."""
    found = {}
    for name, entry in FIGURES.items():
        if not entry.report or isinstance(entry, OneRun):
            continue
        if isinstance(entry, Means):
            if entry.of_links and results.cases.rows:
                continue
            made = entry.draw(results, traced, hrefs)
        else:
            made = entry.draw(results, traced) if with_traces else None
        if made is not None:
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
