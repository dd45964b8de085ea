"""Figures of the theory, in the house's style: a law has its colour and marker here too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter

from lfnlab.control_laws.registry import look
from lfnlab.figures.columns import Plain
from lfnlab.figures.layout import cut, legend, wrapped
from lfnlab.figures.looks import looks
from lfnlab.figures.plot import INK, house_style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from lfnlab.theory.fluid import Bottleneck, Course, Sawtooth

Curve = tuple["Sequence[float]", "Sequence[float]"]
"""Abscissas and ordinates."""


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _power(value: float, _position: float) -> str:
    if 0.01 <= value < 1e6:
        return f"{value:,g}" if value < 1e5 else f"{value:,.0f}"
    return "10" + str(round(np.log10(value))).translate(_SUPERSCRIPTS)


def label_powers(axes: Axes) -> None:
    """Powers of ten at logarithmic axes."""
    # The house parses no formulas in texts, which matplotlib's own labels of powers are.
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(_power)
        axis.set_minor_formatter(NullFormatter())


def curves(
    lines: Mapping[str, Curve],
    points: Mapping[str, Curve],
    xlabel: str,
    ylabel: str,
    *,
    falling: bool = False,
) -> Figure:
    """A line a law, and points, on logarithmic axes.

    Args:
        lines: by law.
        points: by law, drawn with its marker.
        xlabel: with its unit.
        ylabel: with its unit.
        falling: the axis goes down to the right, as loss rates do towards fast paths.
    """
    with house_style():
        figure = Figure(figsize=(5.6, 4.0))
        axes = figure.subplots()
        handles: list[Artist] = []
        # Laws that coincide stay visible: the later ones are thinner.
        for i, (law, style) in enumerate(looks({law: law for law in lines}).items()):
            x_points, y_points = points.get(law, ((), ()))
            drawn: dict[str, Any] = {"color": style.color, "ls": style.linestyle}
            drawn["lw"] = 2.0 - 1.2 * i / len(lines)
            marker = style.marker if law in points else ""
            axes.loglog(*lines[law], **drawn)
            axes.loglog(x_points, y_points, color=style.color, marker=style.marker, ls="none")
            handles.append(Line2D([], [], label=law, marker=marker, **drawn))
        label_powers(axes)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        if falling:
            axes.invert_xaxis()
        legend(figure, handles)
        return figure


def sawtooths(teeth: Sequence[Sawtooth], span_s: float, bdp: float, buffer: float) -> Figure:
    """Window over time, a panel for each law, on common axes from a loss on.

    Args:
        teeth: one of each law, all on one path.
        span_s: time to show.
        bdp: of the path, in segments.
        buffer: in segments.
    """
    with house_style():
        columns = min(2, len(teeth))
        rows = -(-len(teeth) // columns)
        size = (3.6 * columns, 0.6 + 1.6 * rows) if rows > 1 else (4.2 * columns, 3.4)
        figure = Figure(figsize=size)
        panes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        panels: list[Axes] = list(panes.flatten())
        for axes, tooth in zip(panels, teeth, strict=False):
            repeats = int(span_s / tooth.cycle_s[-1]) + 1
            t_s = np.concatenate([tooth.cycle_s + i * tooth.cycle_s[-1] for i in range(repeats)])
            within = np.append(t_s[t_s < span_s], span_s)
            window = np.interp(within, t_s, np.tile(tooth.cycle, repeats))
            axes.plot(within, window, color=look(tooth.law)[0])
            for level in dict.fromkeys((bdp, bdp + buffer)):
                axes.axhline(level, color=INK, lw=0.8, ls=":")
            each = f"{tooth.period_s:,.0f}" if tooth.period_s >= 100 else f"{tooth.period_s:.3g}"
            losses = f"loss each {each} s" if np.isfinite(tooth.period_s) else "no loss"
            share = 100 * tooth.utilization
            title = f"{tooth.law}: {losses}, link {share:.1f} %"
            axes.set_title(wrapped(title, 2.9, 9.0), pad=3)
            axes.yaxis.set_major_formatter(Plain())
        panels[0].set_xlim(0, span_s)
        top = max(bdp + buffer, *(float(tooth.cycle.max()) for tooth in teeth))
        panels[0].set_ylim(0, 1.05 * top)
        cut(panels, len(teeth), columns)
        figure.supxlabel("time since a loss (s)", fontsize=9)
        figure.supylabel("window (segments); dotted: BDP, BDP and buffer", fontsize=9)
        return figure


def vectors(
    courses: Mapping[str, Sequence[Course]],
    bottleneck: Bottleneck,
    shown: Literal["window", "rate"],
) -> Figure:
    """Chiu and Jain's vector diagram: windows, or throughputs, of two flows, one over the other.

    A panel for each law, a course from each start. Rates are w / RTT in % of the link.
    """
    with house_style():
        columns = min(3, len(courses))
        lines = -(-len(courses) // columns)
        figure = Figure(figsize=(3.3 * columns + 0.3, 0.9 + 3.5 * lines))
        panes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        panels: list[Axes] = list(panes.flatten())
        rtts_s, rate = np.array(bottleneck.base_rtts_s), bottleneck.rate_pps
        scale = np.ones(2) if shown == "window" else 100 / (rate * rtts_s)
        # Without a queue the sum of w / RTT is the rate: from one flow alone to the other.
        ends = rate * rtts_s * scale
        what, unit = ("window", "segments") if shown == "window" else ("throughput", "% of link")
        names = [
            f"{what} of flow {i + 1}, RTT {1e3 * rtt_s:g} ms ({unit})"
            for i, rtt_s in enumerate(rtts_s)
        ]
        for axes, (law, several) in zip(panels, courses.items(), strict=False):
            axes.plot([ends[0], 0], [0, ends[1]], color=INK, lw=1.0, label="efficiency")
            _ray(axes, rtts_s * scale, ends, "--", "equal throughput")
            if rtts_s[0] != rtts_s[1]:
                _ray(axes, scale / rtts_s, ends, ":", "window ∝ 1/RTT (Reno)")
            _vector(axes, law, several, scale)
            axes.set_title(law)
            axes.set_box_aspect(1)
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.xaxis.set_major_formatter(Plain())
            axes.yaxis.set_major_formatter(Plain())
        tops = np.max(
            [course.windows.max(axis=0) for each in courses.values() for course in each], 0
        )
        top, right = 1.02 * np.maximum(tops * scale, ends)[::-1]
        panels[0].set_xlim(0, right)
        panels[0].set_ylim(0, top)
        cut(panels, len(courses), columns)
        for axes in panels[max(0, len(courses) - columns) : len(courses)]:
            axes.set_xlabel(names[0])
        for axes in panels[: len(courses) : columns]:
            axes.set_ylabel(names[1])
        legend: dict[str, Artist] = {}
        for axes in panels[: len(courses)]:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                legend.setdefault(label, handle)
        beside = min(3, len(courses) + 1)
        figure.legend(legend.values(), legend, loc="outside lower center", ncols=beside)
        return figure


def padhye(
    losses: Sequence[float], full: Sequence[float], plain: Sequence[float], bits: float
) -> Figure:
    """Reno's throughput over the loss rate, with timeouts and without.

    Args:
        losses: loss events a packet.
        full: Padhye's formula, packets/s.
        plain: the one of 1/sqrt(p), packets/s.
        bits: of a packet, in millions.
    """
    with house_style():
        figure = Figure(figsize=(4.8, 3.6))
        axes = figure.subplots()
        axes.loglog(losses, np.multiply(plain, bits), color=INK, ls="--", label="1/sqrt(p)")
        axes.loglog(losses, np.multiply(full, bits), color=look("reno")[0], label="with timeouts")
        label_powers(axes)
        axes.set_xlabel("loss events a packet")
        axes.set_ylabel("throughput of Reno (Mbit/s)")
        axes.legend()
        return figure


#: Epochs that a vector diagram draws in full; of the others it shows where they begin.
_DRAWN = 8


def _vector(axes: Axes, law: str, several: Sequence[Course], scale: NDArray[np.float64]) -> None:
    color, marker = look(law)
    for course in several:
        last = "after the last loss" if course.epochs[-1].lost else "end, losses have ceased"
        x, y = (course.windows * scale).T
        whole = course.t_s <= course.epochs[min(_DRAWN, len(course.epochs)) - 1].end_s
        axes.plot(x[whole], y[whole], color=color, lw=0.8)
        after = np.array([epoch.after for epoch in course.losses()]).reshape(-1, 2) * scale
        axes.plot(*after.T, color=color, marker=".", ms=2.5, ls="none", label="after each loss")
        axes.plot(x[0], y[0], "o", color=INK, mfc="white", zorder=4, label="start")
        axes.plot(
            *(course.epochs[-1].after * scale),
            color=color,
            marker=marker,
            mec=INK,
            ms=8,
            ls="none",
            zorder=5,
            clip_on=False,
            label=last,
        )


def _ray(
    axes: Axes, direction: NDArray[np.float64], ends: NDArray[np.float64], style: str, label: str
) -> None:
    """From the origin to the efficiency line."""
    end = direction / np.sum(direction / ends)
    axes.plot([0, end[0]], [0, end[1]], color=INK, lw=0.9, ls=style, label=label)
