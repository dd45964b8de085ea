"""Time series, phase plots, dots and CDFs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from lfnlab import statistics
from lfnlab.errors import UsageError
from lfnlab.figures import plot
from lfnlab.figures.columns import axis_of
from lfnlab.figures.draw.canvas import counted, values_of
from lfnlab.figures.draw.tables import TRACE
from lfnlab.figures.layout import axis_labels, from_zero
from lfnlab.figures.style import current

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from lfnlab.figures.columns import Axis
    from lfnlab.figures.draw.canvas import Canvas

_MOST_TRACES, _MOST_DOTS, _CURVE_POINTS = 10, 20_000, 400

Trace = tuple[Any, "NDArray[np.float64]", "NDArray[np.float64]"]
"""Key of the look, across, up."""


def over_time(canvas: Canvas) -> tuple[Figure, str]:
    """A line for each run, flow, link and probe; events are dots."""
    assert canvas.x is not None
    canvas.above_zero(*({"x": canvas.x, "y": canvas.y}[name] for name in canvas.log))
    figure, grid = canvas.figure()
    x, y = axis_of(canvas.frame, canvas.x), axis_of(canvas.frame, canvas.y)
    looks, seen, drawn, there = canvas.groups(10**6), set(), 0, 0
    rows, kept, own = 0, 0, current()
    for axes, part in zip(grid, canvas.parts(), strict=True):
        traces, number = _traces(canvas, part)
        drawn, there = drawn + len(traces), there + number
        for trace in traces:
            key = canvas.key(trace.row(0, named=True))
            seen.add(key)
            look = {**looks[key], "label": None}
            if canvas.panel is not None and not canvas.dots and trace.height > 1:
                look["marker"] = None
            trace = trace.sort(canvas.x, maintain_order=True)
            t, v = plot.thin(x.of(trace), y.of(trace))
            rows, kept = rows + trace.height, kept + t.size
            every = 1 if canvas.dots else max(1, t.size // 8)
            look |= {"markevery": every, "markersize": own.pt(2.5 if canvas.dots else 3.5)}
            look["lw"] = own.lw(1.0)
            axes.plot(t, v, **look)
    if "y" not in canvas.log:
        from_zero(grid)
    axis_labels(figure, grid, x.label, y.label)
    canvas.legend(figure, looks, seen)
    return figure, _traced(drawn, there, kept, rows)


def _traces(canvas: Canvas, part: pl.DataFrame) -> tuple[list[pl.DataFrame], int]:
    """The lines of one panel: ten at most, evenly from first to last."""
    keys = [c for c in dict.fromkeys([*TRACE, canvas.by]) if c and c in part.columns]
    if not keys:
        return [part], 1
    told = part.select(keys).unique(maintain_order=True)
    shown = told[plot.some(range(told.height), _MOST_TRACES)]
    if shown.height < told.height:
        part = part.join(shown, on=keys, how="semi", maintain_order="left", nulls_equal=True)
    return part.partition_by(keys, maintain_order=True), told.height


def _traced(drawn: int, there: int, kept: int, rows: int) -> str:
    """How many of the traces and of their samples a figure shows."""
    said = f"{drawn:,} of {there:,} traces" if drawn < there else counted(drawn, "trace")
    if kept < rows:
        said += f", thinned to {kept:,} of {rows:,} samples, peaks kept"
    return said


def phase(canvas: Canvas) -> tuple[Figure, str]:
    """Draw y over x along time, or the first flow against the second."""
    named = (canvas.x or canvas.y, canvas.y)
    canvas.above_zero(*dict.fromkeys(named["xy".index(name)] for name in canvas.log))
    figure, grid = canvas.figure((4.8, 4.6))
    x_label, y_label, parts, there = (
        _two_flows(canvas) if canvas.x is None else _two_columns(canvas)
    )
    looks = {key: {**look, "marker": None} for key, look in canvas.groups(10**6).items()}
    seen, drawn, rows, kept = set(), 0, 0, 0
    for axes, traces in zip(grid, parts, strict=True):
        for key, u, v in traces:
            seen.add(key)
            drawn += 1
            keep = _thinned(u, v)
            rows, kept = rows + u.size, kept + keep.size
            axes.plot(
                u[keep], v[keep], **{**looks[key], "label": None}, lw=current().lw(0.8), alpha=0.9
            )
            axes.plot(u[-1:], v[-1:], color=looks[key]["color"], marker="o", ms=4)
    if canvas.x is None:
        both = _square(canvas, parts)
        for axes in grid:
            axes.plot(both, both, color=plot.INK, lw=0.7, ls=(0, (2, 3)))
            axes.set(xlim=both, ylim=both, box_aspect=1)
    axis_labels(figure, grid, x_label, y_label)
    canvas.legend(figure, looks, seen)
    return figure, f"{_traced(drawn, there, kept, rows)}, each with a dot at its end"


def points(canvas: Canvas) -> tuple[Figure, str]:
    """A dot for each row, y over x: of a table whose rows are no samples over time."""
    assert canvas.x is not None
    canvas.above_zero(*({"x": canvas.x, "y": canvas.y}[name] for name in canvas.log))
    figure, grid = canvas.figure((5.2, 3.8))
    x, y = axis_of(canvas.frame, canvas.x), axis_of(canvas.frame, canvas.y)
    looks, seen = canvas.groups(), set()
    rows, drawn = canvas.frame.height, 0
    for axes, part in zip(grid, canvas.parts(), strict=True):
        for key, look in looks.items():
            own = canvas.own(part, key)
            if own.height:
                seen.add(key)
                kept = own[_evenly(own.height, _MOST_DOTS)]
                drawn += kept.height
                look = {**look, "label": None, "linestyle": "none", "markersize": 4, "alpha": 0.8}
                axes.plot(x.of(kept), y.of(kept), **look)
    if "y" not in canvas.log:
        from_zero(grid)
    axis_labels(figure, grid, x.label, y.label)
    canvas.legend(figure, {k: {**v, "linestyle": "none"} for k, v in looks.items()}, seen)
    said = counted(rows, "row")
    return figure, f"{drawn:,} of {said}, evenly chosen" if drawn < rows else said


def _evenly(count: int, most: int) -> NDArray[np.int64]:
    return np.linspace(0, count - 1, min(count, most)).round().astype(np.int64)


def _two_columns(canvas: Canvas) -> tuple[str, str, list[list[Trace]], int]:
    assert canvas.x is not None
    x, y = axis_of(canvas.frame, canvas.x), axis_of(canvas.frame, canvas.y)
    parts, there = [], 0
    for part in canvas.parts():
        traces, count = _traces(canvas, part)
        there += count
        parts.append([(canvas.key(t.row(0, named=True)), x.of(t), y.of(t)) for t in traces])
    return x.label, y.label, parts, there


def _two_flows(canvas: Canvas) -> tuple[str, str, list[list[Trace]], int]:
    """One column of one flow against that of another, as Chiu and Jain draw two flows."""
    needs = {"flow", "t_s"}
    flows = values_of(canvas.frame, "flow") if needs <= set(canvas.frame.columns) else []
    if len(flows) < 2:
        raise UsageError(
            f"--kind phase draws {canvas.y} of one flow over that of another; flows here: "
            f"{len(flows)}. Say --x for two columns of one"
        )
    axis = axis_of(canvas.frame, canvas.y)
    first, second = flows[:2]
    if len(flows) > 2:
        canvas.left_out.append(
            f"flows {first} and {second} of {len(flows)}; --where flow={second},{flows[2]} chooses "
            "others"
        )
    canvas.by = "law" if canvas.by == "flow" else canvas.by
    parts, alone = [], 0
    for part in canvas.parts():
        traces: list[Trace] = []
        for run in part.partition_by(["source", "run"], maintain_order=True):
            a, b = (
                run.filter(pl.col("flow") == flow).unique("t_s", maintain_order=True)
                for flow in (first, second)
            )
            both = a.join(b.select("t_s", second=canvas.y), on="t_s", maintain_order="left")
            alone += a.height + b.height - 2 * both.height
            if both.height:
                key = canvas.key(both.row(0, named=True))
                traces.append((key, axis.of(both), both["second"].to_numpy() / axis.scale))
        parts.append(traces)
    if alone:
        said = counted(alone, "sample")
        canvas.left_out.append(f"without {said} of one flow at times at which the other has none")
    label = re.compile(r"( \(|$)")
    return (
        label.sub(f" of flow {first}\\1", axis.label, count=1),
        label.sub(f" of flow {second}\\1", axis.label, count=1),
        parts,
        sum(map(len, parts)),
    )


def _square(canvas: Canvas, parts: list[list[Trace]]) -> tuple[float, float]:
    """Ends of both axes; from zero where nothing lies below."""
    values = np.concatenate([v for traces in parts for _, u, w in traces for v in (u, w)])
    low, high = float(values.min()), float(values.max())
    if canvas.log:
        return low / 1.1, high * 1.1
    room = 0.04 * (high - min(low, 0.0)) or 1.0
    return (low - room if low < 0.0 else 0.0), high + room


def cdf(canvas: Canvas) -> tuple[Figure, str]:
    """The share of samples up to each value: mean over runs, band of 95 %; few runs one by one."""
    figure, grid = canvas.figure()
    axis = axis_of(canvas.frame, canvas.y)
    looks, seen, sizes, least = canvas.groups(), set(), set(), 1.0
    if "x" in canvas.log and (below := canvas.frame.filter(pl.col(canvas.y) <= 0).height):
        if below == canvas.frame.height:
            raise UsageError(f"--log: no value of {canvas.y} is above 0")
        canvas.left_out.append(
            f"{counted(below, 'sample')} of 0 or less count, left of a logarithmic axis"
        )
    for axes, part in zip(grid, canvas.parts(), strict=True):
        for key, look in looks.items():
            own = canvas.own(part, key)
            if not own.height:
                continue
            seen.add(key)
            samples = _by_run(own, axis)
            del own
            pooled = np.concatenate(samples)
            pooled.sort()
            at = np.unique(pooled[np.linspace(0, pooled.size - 1, _CURVE_POINTS).astype(int)])
            shares = np.array([np.searchsorted(s, at, side="right") / s.size for s in samples])
            look = {**look, "label": None, "markevery": max(1, at.size // 6), "markersize": 3.5}
            # From zero: the smallest value is a step too.
            ends = np.concatenate((at[:1], at))
            axes.plot(ends, np.concatenate(([0.0], shares.mean(0))), drawstyle="steps-post", **look)
            sizes.add(len(samples))
            least = min(least, 1 / pooled.size)
            if 1 < len(samples) < statistics.FEW:
                for share in shares:
                    axes.plot(
                        at, share, drawstyle="steps-post", color=look["color"], lw=0.6, alpha=0.6
                    )
            elif len(samples) > 1:
                half = _halves(shares)
                low, high = (np.clip(shares.mean(0) + sign * half, 0, 1) for sign in (-1, 1))
                axes.fill_between(at, low, high, step="post", color=look["color"], alpha=0.15, lw=0)
        axes.set_ylim((least / 2 if "y" in canvas.log else 0.0), 1.01)
    axis_labels(figure, grid, axis.label, "share of samples")
    canvas.legend(figure, looks, seen)
    return figure, _of_runs(sizes)


def _by_run(rows: pl.DataFrame, axis: Axis) -> list[NDArray[np.float64]]:
    """The values of each run on an axis, by size."""
    if "run" not in rows.columns:
        return [np.sort(axis.of(rows))]
    spells = rows["run"].rle().struct.unnest()  # the rows of a run stand together
    parts = np.split(axis.of(rows), np.cumsum(spells["len"].to_numpy())[:-1])
    runs: dict[str, list[NDArray[np.float64]]] = {}
    for name, part in zip(spells["value"], parts, strict=True):
        runs.setdefault(name, []).append(part)
    return [np.sort(np.concatenate(own) if len(own) > 1 else own[0]) for own in runs.values()]


def _of_runs(sizes: set[int]) -> str:
    """How many runs the curves are of, and how their runs are shown."""
    if max(sizes) == 1:
        return "one run each"
    said = f"mean over {' to '.join(str(n) for n in sorted({min(sizes), max(sizes)}))} runs"
    if max(sizes) >= statistics.FEW:
        said += ", band: 95 % interval"
    few = any(1 < n < statistics.FEW for n in sizes)
    return said + (f"; fewer than {statistics.FEW} runs are thin lines" if few else "")


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
