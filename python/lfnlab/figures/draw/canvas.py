"""The parts that all kinds of figures share: rows, panels, looks, legends, rows left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lfnlab.control_laws.registry import laws
from lfnlab.errors import UsageError
from lfnlab.figures.columns import Plain, PlainLog, axis_of
from lfnlab.figures.draw.choice import LAW_AND_ROUTE, MOST_PANELS, MOST_TOLD
from lfnlab.figures.layout import cut, legend, wrapped
from lfnlab.figures.looks import looks
from lfnlab.figures.style import current
from lfnlab.results.cases import COMPARED
from lfnlab.results.runs import short

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from lfnlab.figures.draw.choice import Log


_LARGEST = 1e300
"""Beyond it the length of an axis is no number."""


class Canvas:
    """One selection of rows, and how its groups look."""

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
        self.sources = values_of(frame, "source")
        self.hatches: dict[tuple[Any, str], str] = {}
        self.left_out: list[str] = []
        """Rows that the figure does not show, and why."""
        for column in dict.fromkeys(filter(None, (x, y, z))):
            values = frame[column]
            if values.dtype.is_float() and float(values.abs().max() or 0.0) > _LARGEST:  # type: ignore[arg-type]
                raise UsageError(f"{column} has values beyond {_LARGEST:g}, which no axis holds")
        if panel is not None and len(values_of(frame, panel)) > MOST_PANELS:
            raise UsageError(
                f"--panel {panel}: {len(values_of(frame, panel))} values; allowed: at most "
                f"{MOST_PANELS} panels; choose some with --where"
            )

    def above_zero(self, *columns: str) -> None:
        """Leave out the rows that a logarithmic axis of these columns has no place for."""
        for column in columns:
            if not self.frame[column].dtype.is_numeric():
                raise UsageError(f"--log: {column} holds names, which have no logarithm")
            kept = self.frame.filter(pl.col(column) > 0)
            lost = self.frame.height - kept.height
            if lost:
                self.left_out.append(
                    f"without {counted(lost, 'row')} in which {column} is not above 0, for a "
                    "logarithmic axis"
                )
            if not kept.height:
                raise UsageError(f"--log: no value of {column} is above 0")
            self.frame = kept

    def figure(
        self, size: tuple[float, float] = (6.4, 3.8), panel_in: float = 3.6
    ) -> tuple[Figure, list[Axes]]:
        """A figure with a panel for each value of the column for panels."""
        told = [""] if self.panel is None else list(in_words(self.frame, self.panel).values())
        count = len(told)
        own = current()
        columns = 1 if count == 1 or panel_in > 5.0 else 2 if count <= 8 or panel_in > 3.6 else 3
        columns = own.columns(columns, panel_in)
        rows = -(-count // columns)
        if own.width is not None:
            panel_in = own.width / columns
        titles = [wrapped(own.named(title), panel_in - own.pt(0.7), 9.0) for title in told]
        if count > 1:
            tall = max(title.count("\n") for title in titles)
            high = 1.7 if own.width is None else max(0.5 * panel_in, own.pt(1.1))
            size = (panel_in * columns, own.pt(0.6) + (high + own.pt(0.15) * tall) * rows)
        else:
            size = own.size(size)
        figure = Figure(figsize=size)
        panes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        grid: list[Axes] = list(panes.flatten())
        cut(grid, count, columns)
        for axes, title in zip(grid, titles, strict=False):
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
                else:
                    axis.set_major_formatter(Plain())
        return figure, grid[:count]

    def parts(self) -> Iterator[pl.DataFrame]:
        """The rows of each panel."""
        for value in values_of(self.frame, self.panel):
            if self.panel is None:
                yield self.frame
            else:
                yield self.frame.filter(pl.col(self.panel).eq_missing(pl.lit(value)))

    def groups(self, most: int = MOST_TOLD) -> dict[tuple[Any, str], dict[str, Any]]:
        """Colour, marker, dash and label of each value of ``by`` in each source."""
        words = in_words(self.frame, self.by)
        if len(words) > most:
            raise UsageError(
                f"--by {self.by}: {len(words):,} values; at most {most} can be told apart. "
                "Choose some with --where"
            )
        columns = [c for c in dict.fromkeys((self.by, "source")) if c in self.frame.columns]
        there = set(self.frame.select(columns).unique().iter_rows()) if columns else {()}
        ranked = current().sorted(words, words.__getitem__)
        whose = {
            (value, source): _law(self.by, value)
            for value in ranked
            for source in self.sources
            if tuple({"source": source, self.by: value}[column] for column in columns) in there
        }
        found: dict[tuple[Any, str], dict[str, Any]] = {}
        for (value, source), look in looks(whose).items():
            told = [current().named(words[value])] if self.by is not None else []
            if len(self.sources) > 1 and self.by != "source":
                told.append(str(source))
            found[value, source] = {
                "color": look.color,
                "marker": look.marker,
                "linestyle": "none" if self.dots else look.linestyle,
                "label": ", ".join(told),
            }
            self.hatches[value, source] = look.hatch
        return found

    def key(self, row: dict[str, Any]) -> tuple[Any, Any]:
        """Of the look of a row."""
        return (row[self.by] if self.by else None, row.get("source"))

    def own(self, part: pl.DataFrame, key: tuple[Any, Any]) -> pl.DataFrame:
        """The rows of a part that have one look."""
        for column, value in ((self.by, key[0]), ("source", key[1])):
            if column and column in part.columns and not _is_all(part[column], value):
                part = part.filter(pl.col(column).eq_missing(pl.lit(value)))
        return part

    def legend(self, figure: Figure, looks: dict[Any, dict[str, Any]], seen: set[Any]) -> None:
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


def values_of(frame: pl.DataFrame, column: str | None) -> list[Any]:
    """The values of a column, numbers in order, names as they come; [None] without the column."""
    if column is None or column not in frame.columns:
        return [None]
    values = frame[column].unique(maintain_order=True)
    return (values.sort() if values.dtype.is_numeric() else values).to_list()


def in_words(frame: pl.DataFrame, column: str | None) -> dict[Any, str]:
    """The values of a column, as a legend or a title says them: "cubic", "RTT 20 ms"."""
    values = values_of(frame, column)
    if column is None:
        return dict.fromkeys(values, "")
    word = short([column])[column]
    numeric = column in frame.columns and frame[column].dtype.is_numeric()
    known = [value for value in values if value is not None]
    if numeric:
        axis = axis_of(frame, column)
        texts = [f"{text} {axis.unit}".rstrip() for text in axis.texts(known)]
        word = word if "." in column else axis.words
    else:
        texts = [str(value) for value in known]
    plain = not numeric and "." not in column
    told = {
        value: text if plain else f"{word} {text}" for value, text in zip(known, texts, strict=True)
    }
    return {value: told.get(value, f"no {word}") for value in values}


def _is_all(values: pl.Series, value: Any) -> bool:
    """Whether a column has this value alone; no copy of its rows is then needed."""
    return values.n_unique() == 1 and bool(values[0] == value)


def _law(by: str | None, value: Any) -> str | None:
    """The law whose colour a value takes; None for the next of the house's."""
    if by is None:
        return laws()[0].name
    holds = by in ("law", "case", LAW_AND_ROUTE, COMPARED) or by.endswith(".law")
    return value.partition(",")[0] if holds and isinstance(value, str) else None


def counted(number: int, what: str) -> str:
    """A number with its noun."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
