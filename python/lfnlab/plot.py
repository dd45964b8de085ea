"""Figures in one house style: a law has the same colour and marker everywhere.

Traces are thinned for display (:func:`thin`), never in the data. Every figure says its units, and
an interval is always the 95 % confidence interval over seeds.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from lfnlab.law import look
from lfnlab.metrics import goodput_bins
from lfnlab.summary import rate_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import polars as pl
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from lfnlab.statistics import Interval
    from lfnlab.sweep import Factor, Results, Run

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


def house_style() -> AbstractContextManager[None]:
    """How every figure looks; make and save figures within it."""
    style: Any = _STYLE  # matplotlib's stubs want each key as a literal
    return mpl.rc_context(style)


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
    values: Mapping[str, Interval],
    label: str,
    *,
    scale: float = 1.0,
    limit: float | None = None,
) -> Figure:
    """One horizontal bar a law, with its interval.

    Args:
        values: by law, in the order of the bars.
        label: of the axis, with its unit.
        scale: the axis shows values divided by it.
        limit: upper end of the axis, in the axis's unit.
    """
    with house_style():
        figure = Figure(figsize=(4.6, 0.7 + 0.27 * len(values)))
        axes = figure.subplots()
        y = np.arange(len(values))[::-1]
        means = np.array([value.mean for value in values.values()]) / scale
        halves = np.array([value.half for value in values.values()]) / scale
        axes.barh(y, means, color=[look(name)[0] for name in values], height=0.7)
        known = np.isfinite(halves)
        axes.errorbar(
            means[known], y[known], xerr=halves[known], fmt="none", ecolor=INK, capsize=2.5, lw=1.0
        )
        axes.set_yticks(y, list(values))
        axes.set_ylim(-0.6, len(values) - 0.4)  # of unknown values too
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.set_xlim(0.0, limit)
        axes.set_xlabel(label)
        return figure


def lines(
    values: Mapping[tuple[Factor, ...], Interval],
    xlabel: str,
    ylabel: str,
    *,
    scale: float = 1.0,
    ylim: tuple[float, float | None] = (0.0, None),
    names: Sequence[str] = (),
) -> Figure:
    """One line a law over a numeric factor, with intervals: keys are (law, x).

    A variant of a law, and a law over UDT, has the law's colour, open markers and dashes. With
    ``names`` x is 0, 1, 2, ... and stands for one of them: points, which nothing joins.
    """
    with house_style():
        figure = Figure(figsize=(5.2, 4.0))
        axes = figure.subplots()
        laws = list(dict.fromkeys(str(key[0]) for key in values))
        ticks = sorted({float(key[1]) for key in values})
        # Side by side, so that intervals on one value can be told apart.
        width = 0.7 if names else 0.03 * (ticks[-1] - ticks[0])
        for i, name in enumerate(laws):
            points = sorted((float(key[1]), v) for key, v in values.items() if key[0] == name)
            shift = width * (i - (len(laws) - 1) / 2) / len(laws)
            plain = ":" not in name and "/" not in name
            axes.errorbar(
                [x + shift for x, _ in points],
                [value.mean / scale for _, value in points],
                yerr=np.nan_to_num([value.half / scale for _, value in points]),
                color=look(name)[0],
                marker=look(name)[1],
                ls="" if names else "-" if plain else "--",
                mfc=look(name)[0] if plain else "white",
                capsize=2.0,
                elinewidth=0.8,
                label=name,
            )
        axes.set_xticks(ticks, names or None)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.set_ylim(*ylim)
        figure.legend(loc="outside lower center", ncols=4)
        return figure


def traces(runs: Sequence[Run], series: Callable[[Run], Iterator[Series]], ylabel: str) -> Figure:
    """One panel a run, on common axes: a trace for each of ``series``.

    A panel is named after the run's factors; of more than ten traces ten are
    drawn, see :func:`some`. A dotted line stands where the scenario changes a link or a route.
    """
    with house_style():
        columns = 2 if len(runs) > 1 else 1
        rows = -(-len(runs) // columns)
        size = (3.6 * columns, 0.5 + 1.45 * rows) if len(runs) > 1 else (5.2, 3.0)
        figure = Figure(figsize=size)
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
        for axes, run in zip(panels, runs, strict=False):
            several = len(run.laws) > 1
            of_links = series is queue_series and not run.is_dumbbell
            for i, (number, name, t, y) in enumerate(some(list(series(run)), 10)):
                drawn = {"label": run.summary["links"][number]["id"]} if of_links else {}
                ink = f"C{i}" if of_links else color(name)
                axes.plot(*thin(t, y), color=ink, lw=0.9, **drawn)
            if of_links:
                axes.legend(loc="upper right")
            for at_s in changes_s(run):
                axes.axvline(at_s, color=INK, lw=0.6, ls=":")
            axes.set_title(panel_title(run), pad=2)
            if several and not of_links:
                _law_legend(axes, run.laws)
            axes.set_ylim(bottom=0.0)
            axes.yaxis.set_major_formatter("{x:,g}")
        for axes in panels[len(runs) :]:
            axes.remove()
        for axes in panels[max(0, len(runs) - columns) : len(runs)]:
            axes.tick_params(labelbottom=True)
        figure.supxlabel("time (s)", fontsize=9)
        figure.supylabel(ylabel, fontsize=9)
        return figure


def courses(panels: Mapping[str, Sequence[Course]], ylabel: str) -> Figure:
    """One panel a title, on common axes: named traces, told apart by shade and dashes.

    For traces of one law, or where colours would not survive print; a name that comes again, in the
    same panel or another, looks the same.
    """
    with house_style():
        columns = 2 if len(panels) > 1 else 1
        rows = -(-len(panels) // columns)
        size = (3.6 * columns, 0.9 + 1.9 * rows) if len(panels) > 1 else (5.2, 3.2)
        figure = Figure(figsize=size)
        grid = figure.subplots(rows, columns, sharex=True, squeeze=False).flatten()
        names = list(dict.fromkeys(name for traced in panels.values() for name, _, _ in traced))
        inks = mpl.colormaps["viridis"](np.linspace(0.0, 0.85, len(names)))
        for axes, (title, traced) in zip(grid, panels.items(), strict=False):
            for name, t, y in traced:
                i = names.index(name)
                style = {"color": inks[i], "ls": _DASHES[i % len(_DASHES)], "lw": 1.0}
                axes.plot(*thin(t, y), **style)
            axes.set_title(title, pad=2)
            axes.set_ylim(bottom=0.0)
            axes.yaxis.set_major_formatter("{x:,g}")
        for axes in grid[len(panels) :]:
            axes.remove()
        for i, name in enumerate(names):
            grid[0].plot([], [], color=inks[i], ls=_DASHES[i % len(_DASHES)], label=name)
        figure.legend(loc="outside upper center", ncols=min(6, len(names)))
        figure.supxlabel("time (s)", fontsize=9)
        figure.supylabel(ylabel, fontsize=9)
        return figure


Course = tuple[str, "NDArray[np.float64]", "NDArray[np.float64]"]
"""Name, times in seconds, values."""

_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1, 1.5, 1)))


Series = tuple[int, str, "NDArray[np.float64]", "NDArray[np.float64]"]
"""Flow (or link), law, times in seconds, values."""


def some(items: Sequence[T], most: int) -> list[T]:
    """At most so many, evenly from first to last: of flows in groups, some of each group."""
    if len(items) <= most:
        return list(items)
    return [items[round(i)] for i in np.linspace(0, len(items) - 1, most)]


def cwnd_series(run: Run) -> Iterator[Series]:
    """Congestion windows of the flows, in segments."""
    return _flow_series(run, run.table("flows"), "cwnd_seg", 1.0)


def goodput_series(run: Run) -> Iterator[Series]:
    """Goodputs of the flows in bins of 1 s, in Mbit/s."""
    return _flow_series(run, goodput_bins(run.table("flows")), "goodput_bps", 1e6)


def queue_series(run: Run) -> Iterator[Series]:
    """The queue of a dumbbell's link (:meth:`lfnlab.Run.link`), else of every link, in packets.

    Links that carry no data have no samples.
    """
    queues = run.table("queues")
    if run.is_dumbbell:
        queues = queues.filter(queues["link"] == run.link(run.summary["flows"]))
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
    """What sets a run apart: its law and other factors, as "cubic, level 2".

    Where the law is no factor it is ``law``, or all laws of the run.
    """
    laws = [str(run.factors["law"])] if "law" in run.factors else [law] if law else run.laws
    others = [f"{name} {value}" for name, value in run.factors.items() if name != "law"]
    return ", ".join([*laws, *others]) or "background"


def figures(results: Results, traced: Sequence[Run]) -> dict[str, Figure]:
    """The house's figures of an experiment, by file name, and traces of the runs ``traced``."""
    rate_bps = max((_rate_bps(run) for run in results.runs), default=0.0)
    unit, scale = rate_unit(rate_bps)

    def by_law(metric: str) -> dict[str, Interval]:
        return {str(group[0]): value for group, value in results.intervals(metric).items()}

    made = {}
    if results.rows():
        goodput = by_law("goodput_bps")
        # Flows that begin one after another can have more in sum than the link at any time.
        limit = max(rate_bps, *(value.mean for value in goodput.values())) / scale
        made["goodput"] = bars(goodput, f"goodput ({unit})", scale=scale, limit=limit)
        made["cov"] = bars(by_law("cov"), "coefficient of variation of goodput, 1-s bins")
    if any(row["flows"] > 1 for row in results.rows()):
        made["jain"] = bars(by_law("jain"), "Jain's fairness index", limit=1.0)
    if sampled := [run for run in traced if run.table("queues").height]:
        made["queue"] = traces(sampled, queue_series, "queue (packets)")
    if sampled := [run for run in traced if run.table("flows").height]:
        made["cwnd"] = traces(sampled, cwnd_series, "congestion window (segments)")
        made["rate"] = traces(sampled, goodput_series, "goodput in 1-s bins (Mbit/s)")
    return made


def first_seed(results: Results) -> list[Run]:
    """The first run of each case."""
    cases: dict[tuple[Factor, ...], Run] = {}
    for run in results.runs:
        cases.setdefault(tuple(run.factors.values()), run)
    return list(cases.values())


def rendered(figure: Figure, kinds: Sequence[str] = ("png", "pdf", "svg")) -> dict[str, bytes]:
    """A figure as "png" (200 dots an inch), "pdf" and "svg"; the same figure, the same bytes."""
    undated: dict[str, dict[str, Any]] = {
        "png": {},
        "pdf": {"metadata": {"CreationDate": None}},
        "svg": {"metadata": {"Date": None}, "facecolor": "none"},
    }
    made = {}
    with house_style():
        for kind in kinds:
            buffer = io.BytesIO()
            dpi = 200 if kind == "png" else "figure"
            figure.savefig(buffer, format=kind, dpi=dpi, **undated[kind])
            made[kind] = buffer.getvalue()
    return made


def _rate_bps(run: Run) -> float:
    """Rate of the fastest link of the flows under test, one by one (:meth:`lfnlab.Run.link`)."""
    links, flows = run.summary["links"], run.summary["flows"]
    used = {run.link([flow]) for flow in flows} or {run.link([])}
    return max(float(links[link]["rate_bps"]) for link in used)


def _flow_series(run: Run, table: pl.DataFrame, column: str, scale: float) -> Iterator[Series]:
    laws = {flow["id"]: flow["law"] for flow in run.summary["flows"]}
    # The table is in the order of time, so a flow that begins first comes first.
    for (flow,), part in table.sort("flow", maintain_order=True).group_by(
        ["flow"], maintain_order=True
    ):
        y = part[column].to_numpy().astype(float) / scale
        yield flow, laws[flow], part["t_s"].to_numpy(), y


def _law_legend(axes: Axes, laws: Sequence[str]) -> None:
    for name in laws:
        axes.plot([], [], color=look(name)[0], label=name)
    axes.legend(loc="upper right")
