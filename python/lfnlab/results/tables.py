"""The tables of a run, as the engine declares them in crates/sim/src/tables.rs.

Of each column: its type, its unit, its meaning, and the words for its codes. The test bed and the
importers write rows by the names of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from lfnlab import _core

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Column:
    """A column: its name, its type (f64, u64, u32, u16, u8), its unit, and its meaning.

    ``codes`` are the words for the codes 0, 1, ... of an enumeration; empty for numbers.
    """

    name: str
    kind: str
    unit: str
    meaning: str
    codes: tuple[str, ...]


@cache
def declared() -> dict[str, dict[str, Column]]:
    """Every table of a run with its columns, in order."""
    return {
        table: {
            name: Column(name, kind, unit, meaning, tuple(codes))
            for name, kind, unit, meaning, codes in columns
        }
        for table, _, columns in _core.tables()
    }


def code(table: str, column: str, words: str) -> int:
    """The code of ``words`` in a column.

    Raises:
        ValueError: when no code means this.
    """
    return declared()[table][column].codes.index(words)


def schema(table: str) -> dict[str, type[pl.DataType]]:
    """The columns of a table with their polars types."""
    import polars as pl

    types: dict[str, type[pl.DataType]] = {
        "f64": pl.Float64,
        "u64": pl.UInt64,
        "u32": pl.UInt32,
        "u16": pl.UInt16,
        "u8": pl.UInt8,
    }
    return {name: types[column.kind] for name, column in declared()[table].items()}


def frame(table: str, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """A table of these rows. A row need not have every column: what it lacks is null.

    Raises:
        KeyError: when a row has a column that the table has not.
    """
    import polars as pl

    known = schema(table)
    for row in rows:
        if unknown := row.keys() - known.keys():
            raise KeyError(f"{table} has no column {min(unknown)}; columns: {', '.join(known)}")
    return pl.DataFrame(rows, known)
