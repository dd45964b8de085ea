"""The figures: time series, CDF, bars, heat map, phase plot."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lfnlab import statistics
from lfnlab.control_laws.registry import laws
from lfnlab.errors import UsageError
from lfnlab.figures import plot
from lfnlab.figures.columns import PlainLog, axis_of
from lfnlab.figures.draw.choice import LAW_AND_ROUTE, MOST_PANELS, MOST_TOLD
from lfnlab.figures.draw.tables import TRACE
from lfnlab.figures.layout import from_zero, legend, width_in, wrapped
from lfnlab.figures.looks import looks
from lfnlab.results.runs import short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from lfnlab.figures.draw.choice import Kind, Log

_MOST_TRACES, _MOST_BARS = 10, 60
_CELLS, _CURVE_POINTS = 80, 400

Trace = tuple[Any, "NDArray[np.float64]", "NDArray[np.float64]"]
Pairs = tuple[str, str, list[list[Trace]]]
"""Labels of both axes; of each panel the traces: key of the look, across, up."""


class Painter:
    """Paints one selection of rows."""

    def __init__(
        self,
        frame: pl.DataFrame,
        x: str | None,
        y: str,
        z: str | None,
        by: str | None,
        panel: str | None,
        log: Log | None,
        dots: bool,
    ) -> None:
        self.frame, self.x, self.y, self.z = frame, x, y, z
        self.by, self.panel, self.log, self.dots = by, panel, log or "", dots
        self.sources = _values(frame, "source")
        self.panels = _values(frame, panel) if panel else [None]
        self.hatches: dict[tuple[Any, str], str] = {}
        if len(self.panels) > MOST_PANELS:
            raise UsageError(
                f"--panel {panel}: {len(self.panels)} values; allowed: at most {MOST_PANELS} "
                "panels; choose some with --where"
            )

    def paint(self, kind: Kind) -> tuple[Figure, str]:
        """The figure, and what of the rows it shows."""
        made: Callable[[], tuple[Figure, str]] = {
            "time": self._time,
            "phase": self._phase,
            "cdf": self._cdf,
            "bar": self._bar,
            "heat": self._heat,
        }[kind]
        with plot.house_style():
            return made()

    def _figure(
        self, size: tuple[float, float] = (6.4, 3.8), panel_in: float = 3.6
    ) -> tuple[Figure, list[Axes]]:
        count = len(self.panels)
        columns = 1 if count == 1 or panel_in > 5.0 else 2 if count <= 8 or panel_in > 3.6 else 3
        rows = -(-count // columns)
        titles = [
            wrapped(_in_words(self.panel, value), panel_in - 0.7, 9.0) for value in self.panels
        ]
        if count > 1:
            tall = max(title.count("\n") for title in titles)
            size = (panel_in * columns, 0.6 + (1.7 + 0.15 * tall) * rows)
        figure = Figure(figsize=size)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
        for axes in grid[count:]:
            axes.remove()
        for axes in grid[max(0, count - columns) : count]:
            axes.tick_params(labelbottom=True)
        for axes, value, title in zip(grid, self.panels, titles, strict=False):
            if value is not None:
                axes.set_title(title, pad=2)
            for name, axis, scaled in (
                ("x", axes.xaxis, axes.set_xscale),
                ("y", axes.yaxis, axes.set_yscale),
            ):
                if name in self.log:
                    scaled("log")
                    # Between the powers of ten there are numbers only where the axis is short.
                    axis.set_major_formatter(PlainLog())
                    axis.set_minor_formatter(PlainLog(minor_thresholds=(1.0, 0.5)))
        return figure, list(grid[:count])

    def _parts(self) -> Iterator[pl.DataFrame]:
        for value in self.panels:
            yield (
                self.frame if self.panel is None else self.frame.filter(pl.col(self.panel) == value)
            )

    def _groups(self, most: int = MOST_TOLD) -> dict[tuple[Any, str], dict[str, Any]]:
        """Colour, marker, dash and label of each value of ``by`` in each source."""
        values = _values(self.frame, self.by) if self.by else [None]
        if len(values) > most:
            raise UsageError(
                f"--by {self.by}: {len(values):,} values; at most {most} can be told apart. "
                "Choose some with --where"
            )
        columns = [c for c in dict.fromkeys((self.by, "source")) if c in self.frame.columns]
        there = set(self.frame.select(columns).unique().iter_rows()) if columns else {()}
        whose = {
            (value, source): _law(self.by, value)
            for value in values
            for source in self.sources
            if tuple({"source": source, self.by: value}[column] for column in columns) in there
        }
        found: dict[tuple[Any, str], dict[str, Any]] = {}
        for (value, source), look in looks(whose).items():
            words = [] if value is None else [_in_words(self.by, value)]
            if len(self.sources) > 1 and self.by != "source":
                words.append(str(source))
            found[value, source] = {
                "color": look.color,
                "marker": look.marker,
                "linestyle": "none" if self.dots else look.linestyle,
                "label": ", ".join(words),
            }
            self.hatches[value, source] = look.hatch
        return found

    def _key(self, row: dict[str, Any]) -> tuple[Any, Any]:
        return (row[self.by] if self.by else None, row.get("source"))

    def _traces(self, part: pl.DataFrame) -> tuple[list[pl.DataFrame], int]:
        """The lines of one panel: ten at most, evenly from first to last."""
        keys = [c for c in dict.fromkeys([*TRACE, self.by]) if c and c in part.columns]
        traces = part.partition_by(keys, maintain_order=True) if keys else [part]
        return plot.some(traces, _MOST_TRACES), len(traces)

    def _legend(self, figure: Figure, looks: dict[Any, dict[str, Any]], seen: set[Any]) -> None:
        """Of those that are drawn; none for one alone, nor where the panels say it."""
        shown = [look for key, look in looks.items() if key in seen and look["label"]]
        titled = self.panel is not None and self.by in (
            self.panel,
            "law" if self.panel == "case" else "",
        )
        if len(shown) < 2 or titled:
            return
        handles: list[Artist] = [
            Patch(
                facecolor=look["color"],
                edgecolor="white",
                lw=0,
                hatch=look["hatch"],
                label=look["label"],
            )
            if "hatch" in look
            else Line2D([], [], **look, markersize=4)
            for look in shown
        ]
        legend(figure, handles)

    def _time(self) -> tuple[Figure, str]:
        assert self.x is not None
        figure, grid = self._figure()
        x, y = axis_of(self.frame, self.x), axis_of(self.frame, self.y)
        looks, seen, drawn, there = self._groups(10**6), set(), 0, 0
        for axes, part in zip(grid, self._parts(), strict=True):
            traces, count = self._traces(part)
            drawn, there = drawn + len(traces), there + count
            for trace in traces:
                key = self._key(trace.row(0, named=True))
                seen.add(key)
                look = {**looks[key], "label": None}
                if self.panel is not None and not self.dots and trace.height > 1:
                    look["marker"] = None
                trace = trace.sort(self.x, maintain_order=True)
                t, v = plot.thin(x.of(trace), y.of(trace))
                every = 1 if self.dots else max(1, t.size // 8)
                look |= {"markevery": every, "markersize": 2.5 if self.dots else 3.5, "lw": 1.0}
                axes.plot(t, v, **look)
        if "y" not in self.log:
            from_zero(grid)
        self._label(figure, grid, x.label, y.label)
        self._legend(figure, looks, seen)
        return figure, f"{drawn} of {there} traces" if drawn < there else _count(drawn, "trace")

    def _phase(self) -> tuple[Figure, str]:
        figure, grid = self._figure((4.8, 4.6))
        x_label, y_label, parts = self._two_flows() if self.x is None else self._two_columns()
        looks = {key: {**look, "marker": None} for key, look in self._groups(10**6).items()}
        seen, drawn = set(), 0
        for axes, traces in zip(grid, parts, strict=True):
            for key, u, v in traces:
                seen.add(key)
                drawn += 1
                keep = _thinned(u, v)
                axes.plot(u[keep], v[keep], **{**looks[key], "label": None}, lw=0.8, alpha=0.9)
                axes.plot(u[-1:], v[-1:], color=looks[key]["color"], marker="o", ms=4)
        if self.x is None:
            end = max(max(axes.get_xlim()[1], axes.get_ylim()[1]) for axes in grid)
            for axes in grid:
                axes.plot([0, end], [0, end], color=plot.INK, lw=0.7, ls=(0, (2, 3)))
                axes.set(xlim=(0, end), ylim=(0, end), box_aspect=1)
        self._label(figure, grid, x_label, y_label)
        self._legend(figure, looks, seen)
        return figure, f"{_count(drawn, 'trace')}, each with a dot at its end"

    def _two_columns(self) -> Pairs:
        assert self.x is not None
        x, y = axis_of(self.frame, self.x), axis_of(self.frame, self.y)
        parts = [
            [(self._key(t.row(0, named=True)), x.of(t), y.of(t)) for t in self._traces(part)[0]]
            for part in self._parts()
        ]
        return x.label, y.label, parts

    def _two_flows(self) -> Pairs:
        """One column of one flow against that of another, as Chiu and Jain draw two flows."""
        needs = {"flow", "t_s"}
        flows = _values(self.frame, "flow") if needs <= set(self.frame.columns) else []
        if len(flows) < 2:
            raise UsageError(
                f"--kind phase draws {self.y} of one flow over that of another; flows here: "
                f"{len(flows)}. Say --x for two columns of one"
            )
        axis = axis_of(self.frame, self.y)
        first, second = flows[:2]
        self.by = "law" if self.by == "flow" else self.by
        parts = []
        for part in self._parts():
            traces = []
            for run in part.partition_by(["source", "run"], maintain_order=True):
                a, b = (
                    run.filter(pl.col("flow") == flow).unique("t_s", maintain_order=True)
                    for flow in (first, second)
                )
                both = a.join(b.select("t_s", second=self.y), on="t_s", maintain_order="left")
                if both.height:
                    key = self._key(both.row(0, named=True))
                    traces.append((key, axis.of(both), both["second"].to_numpy() / axis.scale))
            parts.append(traces)
        label = re.compile(r"( \(|$)")
        return (
            label.sub(f" of flow {first}\\1", axis.label, count=1),
            label.sub(f" of flow {second}\\1", axis.label, count=1),
            parts,
        )

    def _cdf(self) -> tuple[Figure, str]:
        figure, grid = self._figure()
        axis = axis_of(self.frame, self.y)
        looks, seen, most = self._groups(), set(), 0
        for axes, part in zip(grid, self._parts(), strict=True):
            for key, look in looks.items():
                runs = self._runs_of(part, key)
                if not runs:
                    continue
                seen.add(key)
                samples = [np.sort(axis.of(run)) for run in runs]
                pooled = np.sort(np.concatenate(samples))
                at = np.unique(pooled[np.linspace(0, pooled.size - 1, _CURVE_POINTS).astype(int)])
                shares = np.array([np.searchsorted(s, at, side="right") / s.size for s in samples])
                look = {**look, "label": None, "markevery": max(1, at.size // 6), "markersize": 3.5}
                # From zero: the smallest value is a step too.
                ends = np.concatenate((at[:1], at))
                axes.plot(
                    ends, np.concatenate(([0.0], shares.mean(0))), drawstyle="steps-post", **look
                )
                most = max(most, len(samples))
                if len(samples) > 1:
                    half = _halves(shares)
                    low, high = (np.clip(shares.mean(0) + sign * half, 0, 1) for sign in (-1, 1))
                    axes.fill_between(
                        at, low, high, step="post", color=look["color"], alpha=0.15, lw=0
                    )
            axes.set_ylim(0, 1.01)
        self._label(figure, grid, axis.label, "share of samples")
        self._legend(figure, looks, seen)
        return figure, f"mean over {most} runs, band: 95 % interval" if most > 1 else "one run each"

    def _runs_of(self, part: pl.DataFrame, key: tuple[Any, Any]) -> list[pl.DataFrame]:
        """The values of each run."""
        own = part.lazy()
        for column, value in ((self.by, key[0]), ("source", key[1])):
            if column and column in part.columns:
                own = own.filter(pl.col(column).eq_missing(pl.lit(value)))
        columns = [column for column in (self.y, "run") if column in part.columns]
        rows = own.select(columns).collect()
        if rows.height == 0:
            return []
        return rows.partition_by("run", maintain_order=True) if "run" in columns else [rows]

    def _bar(self) -> tuple[Figure, str]:
        assert self.x is not None
        if self.by == self.x or (self.x == "case" and self.by == "law"):
            self.by = self.x
        elif self.by is not None and not _varies_within(self.frame, self.x, self.by):
            self.by = self.x  # it would only repeat what x says
        names = _values(self.frame, self.x)
        if len(names) > _MOST_BARS:
            raise UsageError(
                f"--x {self.x}: {len(names):,} values; allowed: at most {_MOST_BARS} bars; "
                "choose another column, or --kind time or heat"
            )
        alone = self.by == self.x
        looks = self._groups(_MOST_BARS if alone else MOST_TOLD)
        for key, look in looks.items():
            look["hatch"] = self.hatches[key]
        # Beside each other on one name: sources, where colours repeat the names; else all looks.
        places = {key: i for i, key in enumerate(looks)}
        if alone:
            sources = [None] if self.x == "source" else self.sources
            places = {key: sources.index(key[1]) if len(sources) > 1 else 0 for key in looks}
        side_by_side = max(places.values()) + 1
        wide = min(max(3.6, 1.2 + 0.22 * len(names) * (0.7 + 0.5 * side_by_side)), 12.0)
        figure, grid = self._figure((max(4.0, wide), 3.6), wide)
        axis = axis_of(self.frame, self.y)
        seen, most, width = set(), 0, 0.8 / side_by_side
        words = [wrapped(_in_words(None, name), 1.6, 8.0, 2) for name in names]
        slot_in = (wide - 0.8) / len(names)
        upright = max(width_in(line, 8.0) for word in words for line in word.split("\n")) > slot_in
        if upright and len(grid) > 1:
            figure.set_figheight(figure.get_figheight() + 0.8)
        for axes, part in zip(grid, self._parts(), strict=True):
            for key, look in looks.items():
                for at, name in enumerate(names):
                    if alone and name != key[0]:
                        continue
                    runs = self._runs_of(part.filter(pl.col(self.x) == name), key)
                    if not runs:
                        continue
                    seen.add(key)
                    value = statistics.interval(float(np.mean(axis.of(run))) for run in runs)
                    most = max(most, value.n)
                    left = at + (places[key] - (side_by_side - 1) / 2) * width
                    axes.bar(
                        left,
                        value.mean,
                        width * 0.92,
                        color=look["color"],
                        hatch=look["hatch"],
                        edgecolor="white",
                        lw=0,
                    )
                    if value.n > 1:
                        axes.errorbar(
                            left,
                            value.mean,
                            yerr=value.half,
                            fmt="none",
                            ecolor=plot.INK,
                            capsize=2.5,
                            lw=1.0,
                        )
            axes.set_xticks(range(len(names)), words)
            axes.set_xlim(-0.6, len(names) - 0.4)
            axes.tick_params(axis="x", length=0, labelrotation=90 if upright else 0)
            axes.grid(axis="x", visible=False)
        text = all(isinstance(name, str) for name in names)
        self._label(figure, grid, "" if text else axis_of(self.frame, self.x).label, axis.label)
        if not (alone and len(self.sources) == 1):
            self._legend(figure, looks, seen)
        return figure, f"mean and 95 % interval over {most} runs" if most > 1 else "one run each"

    def _heat(self) -> tuple[Figure, str]:
        assert self.x is not None
        figure, grid = self._figure((6.4, 4.0))
        sides = [_cells(self.frame, column) for column in (self.x, self.y)]
        z = axis_of(self.frame, self.z) if self.z else None
        meshes, shown = [], []
        for part in self._parts():
            where = [side.place(part) for side in sides]
            shape = [side.count for side in sides]
            flat = np.ravel_multi_index((where[0], where[1]), shape)
            count = np.bincount(flat, minlength=shape[0] * shape[1]).astype(float)
            if z is None:
                cells = 100.0 * count / max(1, part.height)
            else:
                cells = np.bincount(flat, z.of(part), count.size) / np.maximum(count, 1.0)
            cells[count == 0] = np.nan
            shown.append(cells.reshape(shape).T)
        high = max(float(np.nanmax(cells)) for cells in shown)
        low = min(0.0, *(float(np.nanmin(cells)) for cells in shown))
        for axes, cells in zip(grid, shown, strict=True):
            meshes.append(
                axes.pcolormesh(
                    sides[0].edges, sides[1].edges, cells, vmin=low, vmax=high, rasterized=True
                )
            )
            axes.grid(visible=False)
            for side, set_ticks in zip(sides, (axes.set_xticks, axes.set_yticks), strict=True):
                if side.names is not None:
                    set_ticks(range(len(side.names)), side.names)
                elif side.count <= 12:  # each value, though an axis would skip some
                    set_ticks((side.edges[1:] + side.edges[:-1]) / 2)
        label = f"mean {z.label}" if z else "share of samples (%)"
        figure.colorbar(meshes[0], ax=grid, label=label)
        self._label(figure, grid, sides[0].label, sides[1].label)
        return figure, label

    def _label(self, figure: Figure, grid: Sequence[Axes], x: str, y: str) -> None:
        if len(grid) == 1:
            grid[0].set_xlabel(x)
            grid[0].set_ylabel(y)
        else:
            figure.supxlabel(x, fontsize=9)
            figure.supylabel(y, fontsize=9)


@dataclass(frozen=True)
class _Cells:
    """One side of a heat map: bins of a column with many values, or a cell for each value."""

    label: str
    edges: NDArray[np.floating[Any]]
    names: list[str] | None
    place: Callable[[pl.DataFrame], NDArray[np.int64]]

    @property
    def count(self) -> int:
        return self.edges.size - 1


def _cells(frame: pl.DataFrame, column: str) -> _Cells:
    values = _values(frame, column)
    if not frame[column].dtype.is_numeric():
        at = {value: i for i, value in enumerate(values)}
        edges = np.arange(len(values) + 1) - 0.5
        return _Cells(
            column, edges, values, lambda part: part[column].replace_strict(at).to_numpy()
        )
    axis = axis_of(frame, column)
    if len(values) > _CELLS:
        low, high = values[0] / axis.scale, values[-1] / axis.scale
        edges = np.linspace(low, high, _CELLS + 1)
    else:  # a cell for each value, which ends half-way to the next
        each = np.asarray(values, dtype=float) / axis.scale
        middles = (each[1:] + each[:-1]) / 2
        step = float(np.diff(each).min()) if each.size > 1 else 1.0
        edges = np.concatenate(([each[0] - step / 2], middles, [each[-1] + step / 2]))
    return _Cells(
        axis.label,
        edges,
        None,
        lambda part: np.clip(np.searchsorted(edges, axis.of(part), "right") - 1, 0, edges.size - 2),
    )


def _values(frame: pl.DataFrame, column: str | None) -> list[Any]:
    """The values of a column, numbers in order, names as they come; [None] without the column."""
    if column is None or column not in frame.columns:
        return [None]
    values = frame[column].unique(maintain_order=True)
    return (values.sort() if values.dtype.is_numeric() else values).to_list()


def _varies_within(frame: pl.DataFrame, x: str, by: str) -> bool:
    return frame.select(x, by).n_unique() > frame[x].n_unique()


def _law(by: str | None, value: Any) -> str | None:
    """The law whose colour a value takes; None for the next of the house's."""
    if by is None:
        return laws()[0].name
    if by not in ("law", "case", LAW_AND_ROUTE) or not isinstance(value, str):
        return None
    return value.partition(",")[0]


def _in_words(by: str | None, value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    named = by is not None and (not isinstance(value, str) or "." in by)
    return f"{short([by])[by]} {text}" if by is not None and named else text


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _halves(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half-widths of the 95 % intervals of the columns, rows being independent runs."""
    n = samples.shape[0]
    return np.asarray(statistics.student_t(n - 1, 0.95) * samples.std(0, ddof=1) / np.sqrt(n))


def _thinned(u: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.int64]:
    """Indices that keep the extremes of both coordinates in each bucket, in order."""
    if u.size <= 2 * plot.TRACE_POINTS:
        return np.arange(u.size)
    keep = {0, u.size - 1}
    for part in np.array_split(np.arange(u.size), plot.TRACE_POINTS // 2):
        for values in (u[part], v[part]):
            keep |= {int(part[np.argmin(values)]), int(part[np.argmax(values)])}
    return np.array(sorted(keep))
