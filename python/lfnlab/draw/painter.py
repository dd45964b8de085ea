"""The figures: time series, CDF, bars, heat map, phase plot."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lfnlab import plot, statistics
from lfnlab.draw.choice import MOST_GROUPS
from lfnlab.draw.columns import PlainLog, axis_of
from lfnlab.draw.tables import TRACE
from lfnlab.errors import UsageError
from lfnlab.law import known, laws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from lfnlab.draw.choice import Kind, Log

_MOST_TRACES, _MOST_BARS = 10, 60
_CELLS, _CURVE_POINTS = 80, 400
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))

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
        if len(self.panels) > 2 * MOST_GROUPS:
            raise UsageError(f"--panel {panel}: {len(self.panels)} values are too many panels")

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

    def _figure(self, size: tuple[float, float] = (6.4, 4.0)) -> tuple[Figure, list[Axes]]:
        count = len(self.panels)
        columns = 1 if count == 1 else 2 if count <= 8 else 3
        rows = -(-count // columns)
        if count > 1:
            size = (3.6 * columns, 0.6 + 1.7 * rows)
        figure = Figure(figsize=size)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
        for axes in grid[count:]:
            axes.remove()
        for axes in grid[max(0, count - columns) : count]:
            axes.tick_params(labelbottom=True)
        for axes, value in zip(grid, self.panels, strict=False):
            if value is not None:
                axes.set_title(str(value), pad=2)
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

    def _groups(self, most: int = MOST_GROUPS) -> dict[tuple[Any, str], dict[str, Any]]:
        """Colour, marker, dash and label of each value of ``by`` in each source."""
        values = _values(self.frame, self.by) if self.by else [None]
        if len(values) > most:
            raise UsageError(
                f"--by {self.by}: {len(values):,} values; at most {most} can be told apart. "
                "Choose some with --where"
            )
        columns = [c for c in dict.fromkeys((self.by, "source")) if c in self.frame.columns]
        there = set(self.frame.select(columns).unique().iter_rows()) if columns else {()}
        looks: dict[tuple[Any, str], dict[str, Any]] = {}
        used: Counter[str] = Counter()
        for i, value in enumerate(values):
            color, marker = _look(self.by, value, i)
            for source in self.sources:
                row = {"source": source, self.by: value}
                if tuple(row[column] for column in columns) not in there:
                    continue
                words = [] if value is None else [_in_words(self.by, value)]
                if len(self.sources) > 1 and self.by != "source":
                    words.append(str(source))
                looks[value, source] = {
                    "color": color,
                    "marker": marker,
                    "linestyle": "none" if self.dots else _DASHES[used[color] % len(_DASHES)],
                    "label": ", ".join(words),
                }
                used[color] += 1
        return looks

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
        # A letter takes about a sixteenth of an inch, the handle as much as nine.
        longest = max(len(look["label"]) for look in shown)
        columns = int(16 * figure.get_figwidth() / (longest + 9))
        figure.legend(
            handles=handles,
            loc="outside lower center",
            ncols=max(1, min(4, columns, len(handles))),
            handlelength=3,
        )

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
                if self.panel is not None and not self.dots:
                    look["marker"] = None
                trace = trace.sort(self.x, maintain_order=True)
                t, v = plot.thin(x.of(trace), y.of(trace))
                every = 1 if self.dots else max(1, t.size // 8)
                look |= {"markevery": every, "markersize": 2.5 if self.dots else 3.5, "lw": 1.0}
                axes.plot(t, v, **look)
            self._floor(axes, y.of(self.frame))
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
                end = max(axes.get_xlim()[1], axes.get_ylim()[1])
                axes.plot([0, end], [0, end], color=plot.INK, lw=0.7, ls=(0, (2, 3)))
                axes.set(xlim=(0, end), ylim=(0, end), aspect="equal")
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
        own = part
        for column, value in ((self.by, key[0]), ("source", key[1])):
            if column and column in part.columns:
                own = own.filter(pl.col(column).eq_missing(pl.lit(value)))
        if own.height == 0:
            return []
        return own.partition_by("run", maintain_order=True) if "run" in own.columns else [own]

    def _bar(self) -> tuple[Figure, str]:
        assert self.x is not None
        if self.by == self.x or (self.x == "case" and self.by == "law"):
            self.by = self.x
        elif self.by is not None and not _varies_within(self.frame, self.x, self.by):
            self.by = self.x  # it would only repeat what x says
        names = _values(self.frame, self.x)
        if len(names) > _MOST_BARS:
            raise UsageError(
                f"--x {self.x}: {len(names):,} values are too many bars; choose another column, "
                "or --kind time or heat"
            )
        alone = self.by == self.x
        looks = self._groups(_MOST_BARS if alone else MOST_GROUPS)
        for (_, source), look in looks.items():
            look["hatch"] = "///" if self.sources.index(source) else ""
        # Beside each other on one name: sources, where colours repeat the names; else all looks.
        places = {key: i for i, key in enumerate(looks)}
        if alone:
            sources = [None] if self.x == "source" else self.sources
            places = {key: sources.index(key[1]) if len(sources) > 1 else 0 for key in looks}
        side_by_side = max(places.values()) + 1
        wide = 1.2 + 0.35 * len(names) * (0.7 + 0.6 * side_by_side)
        figure, grid = self._figure((min(max(4.0, wide), 12.0), 3.6))
        axis = axis_of(self.frame, self.y)
        seen, most, width = set(), 0, 0.8 / side_by_side
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
            words = [_in_words(None, name) for name in names]
            axes.set_xticks(range(len(names)), words)
            axes.set_xlim(-0.6, len(names) - 0.4)
            axes.tick_params(
                axis="x",
                length=0,
                labelrotation=30 if max(map(len, words)) * len(words) > 50 else 0,
            )
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

    def _floor(self, axes: Axes, values: NDArray[np.float64]) -> None:
        if "y" not in self.log and float(values.min()) >= 0.0:
            axes.set_ylim(bottom=0.0)

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


def _look(by: str | None, value: Any, index: int) -> tuple[str, str]:
    """Colour and marker: a law's own, or the next of the house's."""
    if by is None:
        return laws()[0].color, laws()[0].marker
    if by in ("law", "case") and isinstance(value, str):
        own = known(value.partition(",")[0])
        if own is not None:  # otherwise such as a law of Linux that is none of ours
            return own.color, own.marker
    other = laws()[(index if by not in ("law", "case") else len(laws()) - 1 - index) % len(laws())]
    return other.color, other.marker


def _in_words(by: str | None, value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{by} {text}" if by is not None and not isinstance(value, str) else text


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
