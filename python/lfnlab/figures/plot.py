"""Figures in one house style: a law has the same colour and marker everywhere.

Traces are thinned for display (:func:`thin`), never in the data. Every figure says its units, and
an interval is always the 95 % confidence interval over seeds.
"""

from __future__ import annotations

import io
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.backend_bases import get_registered_canvas_class
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from lfnlab.analysis.summary import rate_unit_of
from lfnlab.control_laws.registry import look
from lfnlab.errors import MetricError
from lfnlab.figures.columns import Plain
from lfnlab.figures.factors import named, ordered, panel_name, series_name
from lfnlab.figures.layout import (
    axis_labels,
    cut,
    from_zero,
    legend,
    panels,
    width_in,
    wrapped,
)
from lfnlab.figures.looks import looks
from lfnlab.figures.spread import DOT, Spread, interval_mark, spread
from lfnlab.figures.style import Style, current
from lfnlab.metrics import goodput_bins, jain_over_time
from lfnlab.results.many import Runs
from lfnlab.results.output import MARK
from lfnlab.results.runs import route, short

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from lfnlab.figures.looks import Look
    from lfnlab.results.cases import Factor
    from lfnlab.results.runs import Results, Run
    from lfnlab.statistics import Interval

T = TypeVar("T")

INK = "#30343b"
_STYLE: dict[str, Any] = {
    "figure.constrained_layout.use": True,
    "figure.facecolor": "none",
    "savefig.facecolor": "white",
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelsize": 9,
    "grid.color": "#88888844",
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "text.color": INK,
    "font.size": 9,
    "font.family": "sans-serif",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.2,
    "lines.markersize": 5,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a factor may hold a dollar
    # The same results give the same file.
    "svg.hashsalt": "lfnlab",
    "pdf.fonttype": 42,
}
TRACE_POINTS = 1500
FORMATS = ("png", "pdf", "svg", "pgf")


#: Matplotlib's settings belong to the process: threads that change and restore them in turn
#: would leave the house's behind.
_drawing = threading.RLock()


@contextmanager
def house_style() -> Iterator[None]:
    """How every figure looks; make and save figures within it, one thread at a time."""
    style: Any = _STYLE | current().rc()  # matplotlib's stubs want each key as a literal
    with _drawing, mpl.rc_context(style):
        yield


def thin(
    t: NDArray[np.float64], y: NDArray[np.float64], points: int = TRACE_POINTS
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most ``points`` samples that look the same: the minimum and maximum of each bucket.

    The shape that the eye sees is kept, peaks and drops included; a mean would smooth them away.
    """
    buckets = points // 2
    if t.size <= points:
        return t, y
    keep: list[int] = []
    for part in np.array_split(np.arange(t.size), buckets):
        low, high = part[np.argmin(y[part])], part[np.argmax(y[part])]
        keep.extend(sorted({int(low), int(high)}))
    return t[keep], y[keep]


def bars(
    values: Mapping[tuple[Factor, ...], Interval],
    keys: Sequence[str],
    label: str,
    *,
    scale: float = 1.0,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    hrefs: Mapping[tuple[Factor, ...], str] | None = None,
) -> tuple[Figure, str]:
    """One horizontal bar a law and route, with its interval, in a panel for each other factor.

    A factor that is the law of some flows names bars too. With one law on one route the values of
    the last factor are the bars.

    Args:
        values: by the values of ``keys``, see :meth:`lfnlab.Results.intervals`.
        keys: names of what differs.
        label: of the axis, with its unit.
        scale: the axis shows values divided by it.
        bounds: that no value exceeds, see :func:`spread`.
        hrefs: where a bar of an SVG leads to.

    Returns:
        The figure, and what it leaves out, if anything.
    """
    bars_of, panels_of = _bars_and_panels(values, keys)
    rows: dict[str, str | None] = {}
    parts: dict[str, dict[str, _Bar]] = {}
    for group in ordered(values, keys, panels_of):
        told = dict(zip(keys, group, strict=True))
        row = _bar_name(told, bars_of)
        rows[row] = str(told["law"]) if "law" in told else None
        href = None if hrefs is None else hrefs.get(group)
        value = values[group].over(scale)
        lines = spread(value, (bounds[0] / scale, bounds[1] / scale))
        parts.setdefault(panel_name(told, panels_of), {})[row] = value.mean, lines, href
    most = max(len(part) for part in parts.values())
    shown = some(list(parts), max(1, _MOST_BARS // most))
    left_out = f"{len(shown)} of {len(parts)} panels" if len(shown) < len(parts) else ""
    own = current()
    rows = {row: rows[row] for row in own.sorted(rows)}
    parts = {
        title: {row: parts[title][row] for row in rows if row in parts[title]}
        for title in own.sorted(shown)
    }
    with house_style():
        figure = _bar_panels(parts, rows, label)
    return figure, left_out


_MOST_BARS = 240

_Bar = tuple[float, Spread, "str | None"]
"""A mean, its runs or its interval, and where it leads to."""


def _bars_and_panels(
    values: Mapping[tuple[Factor, ...], Interval], keys: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Keys whose values name the bars, and the other keys, whose values name the panels."""
    bars_of, others = named(values, keys)
    places = [keys.index(key) for key in bars_of]
    if others and len({tuple(group[i] for i in places) for group in values}) == 1:
        return [others[-1]], others[:-1]
    return bars_of, others


def _bar_name(told: Mapping[str, Factor], bars_of: Sequence[str]) -> str:
    return series_name(told, bars_of) if {"law", "link"} & {*bars_of} else str(told[bars_of[0]])


def _bar_panels(
    parts: Mapping[str, Mapping[str, _Bar]],
    rows: Mapping[str, str | None],
    label: str,
) -> Figure:
    """Panels in up to three columns; each names its own bars where they are not all the same."""
    same = len({tuple(panel) for panel in parts.values()}) == 1
    own = current()
    most_in = 1.5 if own.width is None else 0.4 * own.width
    names = {row: wrapped(own.named(row), most_in, 8.0, 2) for row in rows}
    deep = own.pt(0.16 * (1 + max(name.count("\n") for name in names.values())) + 0.11)
    names_in = max(width_in(line, 8.0) for name in names.values() for line in name.split("\n"))
    columns = min(own.columns(3 if same else 2, 2.0 + names_in), len(parts))
    lines_of = -(-len(parts) // columns)
    wide_in = 4.6 if columns == 1 else 2.2 if same else 2.6
    if own.width is not None:
        wide_in = max(0.8, (own.width - names_in * (1 if same else columns)) / columns)
    titles = {title: wrapped(own.named(title), wide_in - 0.3, 9.0) for title in parts}
    tall = (
        own.pt(0.15) * max(title.count("\n") + 1 for title in titles.values())
        if any(parts)
        else 0.0
    )
    most = max(len(panel) for panel in parts.values())
    size = (
        own.width or names_in * (1 if same else columns) + wide_in * columns,
        own.pt(0.7) + lines_of * (own.pt(0.35) + tall + deep * most),
    )
    figure = Figure(figsize=size)
    panes = figure.subplots(lines_of, columns, sharex=True, sharey=same, squeeze=False)
    grid: list[Axes] = list(panes.flatten())
    styles = looks(rows)
    ends = [0.0]
    for place, (axes, (title, values)) in enumerate(zip(grid, parts.items(), strict=False)):
        ends += _bar_panel(axes, values, styles)
        axes.set_title(titles[title], pad=2)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(6 if columns == 1 else 4))
        axes.xaxis.set_major_formatter(Plain())
        if place == 0 or not same:
            ticks = range(len(values) - 1, -1, -1)
            axes.set_yticks(list(ticks), [names[row] for row in values])
            axes.set_ylim(len(values) - 0.4 - most, len(values) - 0.4)  # of unknown values too
    room = 0.04 * (max(ends) - min(ends)) or 1.0
    grid[0].set_xlim(min(ends) - (room if min(ends) < 0.0 else 0.0), max(ends) + room)
    cut(grid, len(parts), columns)
    axis_labels(figure, grid[: len(parts)], label, None, (names_in + 0.3, 0.0))
    return figure


def _bar_panel(
    axes: Axes,
    values: Mapping[str, _Bar],
    styles: Mapping[str, Look],
) -> Iterator[float]:
    """Draw one panel's bars from the top down; the ends of bars and what is on them."""
    for below, (row, (mean, of, href)) in enumerate(values.items(), 1):
        place = len(values) - below
        style = styles[row]
        if np.isfinite(mean):
            ink, hatch = style.color, style.hatch
            axes.barh(place, mean, 0.7, color=ink, hatch=hatch, ec="white", lw=0, url=href)
            yield mean
        if of.dots:
            axes.plot(of.dots, [place] * len(of.dots), **DOT)
        if of.ends is not None:
            reach = [[mean - of.ends[0]], [of.ends[1] - mean]]
            interval_mark(axes, mean, place, xerr=reach)
        yield from of.marks


_MOST_TRACES = 10
"""In one panel; of more this many are drawn, see :func:`some`."""


def traces(
    runs: Sequence[Run], series: Callable[[Run], Iterator[Series]], ylabel: str
) -> tuple[Figure, str]:
    """One panel a run, on common axes: a trace for each of ``series``.

    A panel is named after the run's factors. Flows of one law on one route look the same. A dotted
    line stands where the scenario changes a link or a route.

    Returns:
        The figure, and what it leaves out, if anything.
    """
    several = any(len({route(flow) for flow in run.summary["flows"]}) > 1 for run in runs)
    drawn: list[list[_Named]] = []
    most = 0
    for run in runs:
        every = list(series(run))
        most = max(most, len(every))
        links = _links(run, every) if series is queue_series else {}
        routes = several and series is not queue_series
        ways = {flow["id"]: route(flow) for flow in run.summary["flows"] if routes}
        drawn.append(
            [
                _Named(
                    links.get(number) or ", ".join(filter(None, [law, ways.get(number)])),
                    "" if links else law,
                    t,
                    y,
                )
                for number, law, t, y in some(every, _MOST_TRACES)
            ]
        )
    with house_style():
        figure, grid = panels(
            [panel_title(run) for run in runs],
            (3.6, 1.45) if len(runs) > 1 else (5.2, 2.55),
            2,
            0.7,
            sharex=True,
            sharey=True,
        )
        seen = _draw_traces(grid, drawn, runs)
        from_zero(grid)
        axis_labels(figure, grid, "time (s)", ylabel)
        titled = all(
            len({name for name, *_ in own} | set(run.laws)) <= 1
            for run, own in zip(runs, drawn, strict=True)
        )
        if seen and not titled:
            legend(figure, seen)
        return figure, _left_out(most)


def _left_out(traces: int) -> str:
    """In words, of panels that have at most so many."""
    return f"{_MOST_TRACES} of up to {traces} traces a panel" if traces > _MOST_TRACES else ""


def stacked(run: Run, parts: Mapping[str, Sequence[Series]]) -> tuple[Figure, str]:
    """Samples of one run over time: a panel for each quantity, one above the other.

    Args:
        run: the run; a dotted line stands where its scenario changes a link or a route.
        parts: traces by the label of their axis.

    Returns:
        The figure, and what it leaves out, if anything.
    """
    several = len(run.summary["flows"]) > 1
    drawn: list[list[_Named]] = []
    for every in parts.values():
        links = _links(run, every) if any(not law for _, law, _, _ in every) else {}
        drawn.append(
            [
                _Named(links.get(number, f"{law} #{number}" if law and several else law), law, t, y)
                for number, law, t, y in some(every, _MOST_TRACES)
            ]
        )
    with house_style():
        figure, grid = panels(
            [panel_title(run), *[""] * (len(parts) - 1)], (5.6, 1.5), 1, 0.9, sharex=True
        )
        seen = _draw_traces(grid, drawn, [run] * len(parts))
        for axes, label in zip(grid, parts, strict=True):
            from_zero([axes])
            axes.set_ylabel(wrapped(label, 1.2, 9.0))
        figure.align_ylabels()
        grid[-1].set_xlabel("time (s)")
        if len(seen) > 1:
            legend(figure, seen)
        return figure, _left_out(max(map(len, parts.values())))


class _Named(NamedTuple):
    """A trace with the name that it has in a legend, and the law whose colour it takes."""

    name: str
    law: str
    t_s: NDArray[np.float64]
    y: NDArray[np.float64]


def _links(run: Run, every: Sequence[Series]) -> dict[int, str]:
    """Names of links, by their numbers, where a trace of a queue does not say its link."""
    if len(every) == 1 and run.is_dumbbell:
        return {}
    return {number: str(link["id"]) for number, link in enumerate(run.summary["links"])}


def _draw_traces(
    grid: Sequence[Axes], drawn: Sequence[Sequence[_Named]], runs: Sequence[Run]
) -> list[Artist]:
    """Draw the traces of each panel's run, without a name in ink; a handle for each name."""
    names = {trace.name: trace.law or None for own in drawn for trace in own if trace.name}
    styles = looks(names)
    for axes, own, run in zip(grid, drawn, runs, strict=True):
        for name, _, t_s, y in own:
            style = styles.get(name)
            color, dash = (style.color, style.linestyle) if style else (INK, "-")
            marker = "." if len(t_s) == 1 else ""  # a line of one point shows nothing
            axes.plot(*thin(t_s, y), color=color, ls=dash, lw=current().lw(0.9), marker=marker)
        for at_s in changes_s(run):
            axes.axvline(at_s, color=INK, lw=current().lw(0.6), ls=":")
    return [
        Line2D([], [], color=style.color, ls=style.linestyle, label=name)
        for name, style in styles.items()
    ]


def courses(panels_of: Mapping[str, Sequence[Course]], ylabel: str) -> Figure:
    """One panel a title: named traces, told apart by colour and dashes.

    For traces of one law, or of none. A name looks the same in every panel.
    """
    with house_style():
        several = len(panels_of) > 1
        figure, grid = panels(
            [*panels_of], (3.6, 1.75) if several else (5.2, 2.55), 2, 0.7, sharex=True
        )
        names = list(dict.fromkeys(name for traced in panels_of.values() for name, _, _ in traced))
        inks = looks(dict.fromkeys(names))
        styles = {
            name: {"color": inks[name].color, "ls": _DASHES[i % len(_DASHES)]}
            for i, name in enumerate(names)
        }
        for axes, traced in zip(grid, panels_of.values(), strict=True):
            for name, t, y in traced:
                axes.plot(*thin(t, y), **styles[name], lw=current().lw(1.0))
            from_zero([axes])
        axis_labels(figure, grid, "time (s)", ylabel)
        legend(figure, [Line2D([], [], label=name, **styles[name]) for name in names])
        return figure


Course = tuple[str, "NDArray[np.float64]", "NDArray[np.float64]"]
"""Name, times in seconds, values."""

_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1, 1.5, 1)))


Series = tuple[int, str, "NDArray[np.float64]", "NDArray[np.float64]"]
"""Flow (or link), law, times in seconds, values."""


def some(items: Sequence[T], most: int) -> list[T]:
    """At most ``most`` items, evenly spaced, so that each group of flows has some."""
    if len(items) <= most:
        return list(items)
    return [items[round(i)] for i in np.linspace(0, len(items) - 1, most)]


def cwnd_series(run: Run) -> Iterator[Series]:
    """Congestion windows of the flows, in segments."""
    return _flow_series(run, run.table("flows", ("t_s", "flow", "cwnd_seg")), "cwnd_seg", 1.0)


def goodput_series(run: Run, unit_bps: float = 1e6) -> Iterator[Series]:
    """Goodputs of the flows in bins of 1 s, by default in Mbit/s; of a measurement in its own.

    Data count when they arrive. In a table without arrivals they count in order.
    """
    if run.is_measured:
        return _flow_series(run, run.table("goodput"), "goodput_bps", unit_bps)
    bins = goodput_bins(run.table("flows", ("t_s", "flow", "delivered_bytes", "arrived_bytes")))
    known = bins["arrival_bps"].fill_null(bins["goodput_bps"])
    return _flow_series(run, bins.with_columns(goodput_bps=known), "goodput_bps", unit_bps)


def measured_series(run: Run, column: str, scale: float) -> Iterator[Series]:
    """A column of the samples of a measurement; nothing of other runs, or where it has none."""
    if run.is_measured:
        table = run.table("flows", ("t_s", "flow", column))
        if column in table.columns:
            yield from _flow_series(run, table, column, scale)


def in_unit_of_rate(
    label: str, series: Callable[[Run], Iterator[Series]], runs: Sequence[Run]
) -> tuple[str, Callable[[Run], Iterator[Series]]]:
    """A label with the unit that suits the runs' rates, and goodputs in it; others as they are."""
    if series is not goodput_series:
        return label, series
    unit, unit_bps = rate_unit_of(runs)
    return label.format(unit=unit), partial(goodput_series, unit_bps=unit_bps)


def jain_series(run: Run) -> Iterator[Series]:
    """Jain's index, in bins of 1 s, of the flows that share a link, see :func:`link` of runs.

    None where a link has but one flow, or where the samples do not divide a second.
    """
    flows = run.table("flows", ("t_s", "flow", "delivered_bytes"))
    for number in range(len(run.summary["links"])):
        own = [flow["id"] for flow in run.summary["flows"] if run.link([flow]) == number]
        with suppress(MetricError):
            table = jain_over_time(flows.filter(flows["flow"].is_in(own)), 1.0)
            if table.height:
                yield number, "", table["t_s"].to_numpy(), table["jain"].to_numpy()


def rtt_series(run: Run) -> Iterator[Series]:
    """Smoothed RTTs of the flows, in ms, from their first sample on."""
    table = run.table("flows", ("t_s", "flow", "srtt_s"))
    return _flow_series(run, table.filter(table["srtt_s"] > 0.0), "srtt_s", 1e-3)


def queue_series(run: Run) -> Iterator[Series]:
    """The queues of a dumbbell's links that carry data, else of every link, in packets.

    Links that carry no data have no samples.
    """
    if run.is_measured:
        return
    queues = run.table("queues", ("t_s", "link", "packets"))
    if run.is_dumbbell:
        flows = run.summary["flows"]
        carry = {run.link([flow]) for flow in flows} or {run.link([])}
        queues = queues.filter(queues["link"].is_in(sorted(carry)))
    parts = queues.partition_by("link", maintain_order=True)
    name = run.laws[0] if len(parts) == len(run.laws) == 1 else ""
    for own in parts:
        packets = own["packets"].to_numpy().astype(float)
        yield own["link"][0], name, own["t_s"].to_numpy(), packets


#: More changes than this are a trace, and marks would hide what is drawn.
_MOST_CHANGES = 50


def changes_s(run: Run) -> list[float]:
    """Times in seconds at which the schedule changed a link or a route; none if it often did."""
    times: list[float] = run.summary.get("changes_s", [])
    return times if len(times) <= _MOST_CHANGES else []


def color(name: str) -> str:
    """Colour of a law; ink for what belongs to no law."""
    return look(name)[0] if name else INK


def panel_title(run: Run, law: str = "") -> str:
    """Title of a run's panel: its law and other factors, such as "cubic, level 2".

    If the law is not a factor, the title has ``law``, or all laws of the run.
    """
    laws = [str(run.factors["law"])] if "law" in run.factors else [law] if law else run.laws
    # A factor that only says a law again.
    others = {
        name: value
        for name, value in run.factors.items()
        if name != "law" and not (name.endswith(".law") and value in laws)
    }
    words = short(list(others))
    told = [f"{words[name]} {value}" for name, value in others.items()]
    return ", ".join([*laws, *told]) or "background"


def first_seed(results: Results) -> list[Run]:
    """The first run of each case."""
    if isinstance(results.runs, Runs):
        return results.runs.firsts()
    cases: dict[tuple[Factor, ...], Run] = {}
    for run in results.runs:
        cases.setdefault(tuple(run.factors.values()), run)
    return list(cases.values())


def rendered(
    figure: Figure,
    kinds: Sequence[str] = ("png", "pdf", "svg"),
    *,
    dots_per_inch: float = Style.dpi,
    origin: str = "",
) -> dict[str, bytes]:
    """A figure as "png", "pdf", "svg" or "pgf"; the same figure, the same bytes.

    Args:
        figure: the figure.
        kinds: the formats.
        dots_per_inch: of a PNG.
        origin: a line for the file's metadata, see :func:`lfnlab.results.runs.origin`.
    """
    said = f"{MARK} {origin}".rstrip()
    undated: dict[str, dict[str, str | None]] = {
        "png": {"Comment": said},
        "pdf": {"CreationDate": None, "Subject": said},
        "svg": {"Date": None, "Description": said},
    }
    made = {}
    with house_style(), warnings.catch_warnings():
        # A font may lack a sign of a user's text, such as an emoji; a browser has others.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        # One layout for all formats, each drawn once; Figure.savefig draws it twice for each.
        FigureCanvasSVG(figure)
        figure.draw_without_rendering()
        engine, dpi, ground = figure.get_layout_engine(), figure.dpi, figure.get_facecolor()
        figure.set_layout_engine("none")
        for kind in kinds:
            buffer = io.BytesIO()
            figure.set_facecolor("none" if kind == "svg" else "white")
            if kind == "pgf":
                from lfnlab.figures import pgf  # few figures need it

                made[kind] = pgf.rendered(figure, said)
                continue
            figure.dpi = dots_per_inch if kind == "png" else dpi
            # The back end of PDF takes 0.1 s to import, and a report has no PDF.
            canvas = get_registered_canvas_class(kind)(figure)
            getattr(canvas, f"print_{kind}")(buffer, metadata=undated[kind])
            figure.dpi = dpi
            made[kind] = buffer.getvalue()
        figure.set_facecolor(ground)
        figure.set_layout_engine(engine)
    return made


def _flow_series(run: Run, table: pl.DataFrame, column: str, scale: float) -> Iterator[Series]:
    laws = {flow["id"]: flow["law"] for flow in run.summary["flows"]}
    table = table.drop_nulls(column)
    # The table is in the order of time, so a flow that begins first comes first.
    for (flow,), part in table.sort("flow", maintain_order=True).group_by(
        ["flow"], maintain_order=True
    ):
        y = part[column].to_numpy().astype(float) / scale
        yield flow, laws[flow], part["t_s"].to_numpy(), y
