"""Tables as text: aligned for a terminal, in Markdown for a page, in LaTeX for a paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lfnlab import printable

if TYPE_CHECKING:
    import polars as pl

    from lfnlab.statistics import Interval


@dataclass(frozen=True)
class Table:
    """Headings and cells as text; the first ``keys`` columns name the row."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    keys: int


def plain(table: Table) -> Sequence[str]:
    """The table as aligned lines of text."""
    lines = [[*map(printable.line, cells)] for cells in (table.headings, *table.rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.headings))]
    return [
        "  ".join(
            cell.ljust(width) if i < table.keys else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table in Markdown."""
    yield markdown_row(headings)
    yield "|---" * len(headings) + "|"
    yield from map(markdown_row, rows)


def markdown_row(cells: Sequence[str]) -> str:
    """A line of such a table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def markdown_of(table: Table) -> Iterator[str]:
    """The lines of a table in Markdown whose cells are not: they are shown as they are."""
    yield f"| {' | '.join(map(printable.markdown, table.headings))} |"
    yield "|---" * len(table.headings) + "|"
    for row in table.rows:
        yield f"| {' | '.join(map(printable.markdown, row))} |"


def csv(frame: pl.DataFrame) -> str:
    """A frame as comma-separated values, in which no cell is a formula."""
    import polars as pl

    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    for name in texts:
        cells = [None if cell is None else printable.csv(cell) for cell in frame[name]]
        frame = frame.with_columns(pl.Series(name, cells, pl.String))
    return frame.rename({name: printable.csv(name) for name in frame.columns}).write_csv()


def latex(table: Table) -> Iterator[str]:
    """The lines of a ``tabular`` with the rules of the package booktabs."""
    columns = "l" * table.keys + "r" * (len(table.headings) - table.keys)
    yield f"\\begin{{tabular}}{{{columns}}}"
    yield r"\toprule"
    yield _latex_row(table.headings)
    yield r"\midrule"
    yield from map(_latex_row, table.rows)
    yield r"\bottomrule"
    yield r"\end{tabular}"


_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "–": "--",
    "×": r"$\times$",
    # A bracket after the end of a row would be its argument.
    "[": "{[}",
    "]": "{]}",
}


def _latex_row(cells: Sequence[str]) -> str:
    written = ("".join(_LATEX.get(sign, sign) for sign in " ".join(cell.split())) for cell in cells)
    return f"{' & '.join(written)} \\\\"


def with_interval(value: Interval, scale: float = 1.0) -> str:
    """Three digits, and the half-width to the same place: "9.41 ± 0.02"; below 0.001 "3e-06"."""
    mean, half = value.mean * scale, value.half * scale
    if not math.isfinite(mean):
        return "–"
    if mean == 0.0 and not half > 0.0:
        return "0"
    if max(abs(mean), half if half > 0 else 0.0) < 1e-3:
        return f"{mean:.0e}"
    digits = max(0, 2 - math.floor(math.log10(max(abs(mean), abs(half) if half > 0 else 0.0))))
    text = f"{mean:.{digits}f}"
    return text if math.isnan(half) else f"{text} ± {half:.{digits}f}"
