"""Queueing delay of L4S and Classic packets by percentile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from lfnlab.figures.columns import PlainLog
from lfnlab.figures.layout import axis_labels, legend, panels
from lfnlab.figures.looks import looks
from lfnlab.figures.plot import house_style, panel_title
from lfnlab.figures.spread import DOT, interval_mark, spread
from lfnlab.statistics import interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lfnlab.figures.looks import Look
    from lfnlab.results.runs import Results, Run
    from lfnlab.statistics import Interval

PERCENTILES = {
    "50 %": "p50_queue_s",
    "90 %": "p90_queue_s",
    "99 %": "p99_queue_s",
    "99.9 %": "p999_queue_s",
}
"""Keys of a class in the summary, by the part of its packets that wait no longer."""
QUEUES = {"L4S queue": "l4s", "Classic queue": "classic"}
LEAST_S = 1e-6
"""The step of the delays in a summary; a logarithmic axis has no 0."""


class _Panel(NamedTuple):
    title: str
    delays: dict[str, list[Interval]]
    """Of each queue that had packets, by percentile, in ms."""


@dataclass(frozen=True)
class Percentiles:
    """A panel a case: percentiles of the delay in both queues of a DualPI2 link."""

    caption: str
    report: bool = True

    def draw(self, results: Results, traced: Sequence[Run]) -> tuple[Figure, str] | None:
        """The figure with what it leaves out; None without such a link.

        Args:
            results: the experiment; the values are means over the seeds of a case.
            traced: a run of each case that is shown.
        """
        seeds: dict[tuple[object, ...], list[Run]] = {}
        for run in results.runs:
            seeds.setdefault(tuple(run.factors.values()), []).append(run)
        shown = [panel for run in traced for panel in _panels(seeds[tuple(run.factors.values())])]
        if not shown:
            return None
        left_out = f"{len(traced)} of {len(seeds)} cases" if len(traced) < len(seeds) else ""
        return _figure(shown), left_out


def _panels(runs: Sequence[Run]) -> list[_Panel]:
    """The links of a case that tell both classes apart; of a dumbbell that of the data."""
    first = runs[0]
    links = first.summary["links"]
    numbers = [first.link(first.summary["flows"])] if first.is_dumbbell else range(len(links))
    found = []
    for number in numbers:
        delays = {name: known for name, key in QUEUES.items() if (known := _of(runs, number, key))}
        if delays:
            link = "" if first.is_dumbbell else f", {links[number]['id']}"
            found.append(_Panel(panel_title(first) + link, delays))
    return found


def _of(runs: Sequence[Run], number: int, queue: str) -> list[Interval]:
    """Means over the runs, by percentile; nothing if a run has no packets in this queue."""
    means = []
    for key in PERCENTILES.values():
        values_ms = []
        for run in runs:
            classes = run.summary["links"][number].get("classes")
            value_s = classes[queue].get(key) if classes else None  # type: ignore[literal-required]
            if value_s is None:
                return []
            values_ms.append(1e3 * max(float(value_s), LEAST_S))
        means.append(interval(values_ms))
    return means


def _figure(shown: Sequence[_Panel]) -> Figure:
    with house_style():
        alone = len(shown) == 1
        figure, grid = panels(
            [panel.title for panel in shown],
            (4.6, 2.6) if alone else (2.7, 1.8),
            3,
            0.7,
            sharex=True,
            sharey=True,
        )
        styles = looks({name: None for name in QUEUES if any(name in p.delays for p in shown)})
        # Runs or intervals stand where the marks of single runs would.
        single = all(means[0].n == 1 for panel in shown for means in panel.delays.values())
        for axes, panel in zip(grid, shown, strict=True):
            _draw(axes, panel.delays, styles, marked=single)
        axis_labels(figure, grid, "part of the packets that wait no longer", "queueing delay (ms)")
        legend(
            figure,
            [
                Line2D([], [], color=look.color, ls=look.linestyle, marker=marker, label=name)
                for name, look in styles.items()
                for marker in (look.marker if single else "",)
            ],
        )
        return figure


def _draw(
    axes: Axes,
    delays: Mapping[str, Sequence[Interval]],
    styles: Mapping[str, Look],
    *,
    marked: bool,
) -> None:
    """Lines of means, with the runs as dots where they are few, else with intervals."""
    places = range(len(PERCENTILES))
    for name, means in delays.items():
        look = styles[name]
        ys = [value.mean for value in means]
        marker = look.marker if marked else ""
        axes.plot(places, ys, color=look.color, ls=look.linestyle, marker=marker)
        for place, value in zip(places, means, strict=True):
            shown = spread(value, (LEAST_S * 1e3, float("inf")))
            if shown.dots:
                axes.plot([place] * len(shown.dots), shown.dots, **DOT)
            if shown.ends is not None:
                low, high = shown.ends
                reach = [[value.mean - low], [high - value.mean]]
                interval_mark(axes, place, value.mean, yerr=reach)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(PlainLog())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks([*places], [*PERCENTILES])
    axes.set_xlim(-0.25, len(PERCENTILES) - 0.75)
