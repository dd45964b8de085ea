"""The tables of a run, as the engine declares them in crates/sim/src/tables.rs.

Of each column: its type, its unit, its meaning, and the words for its codes. The test bed and the
importers write rows by the names of columns. The table ``flows`` of a measurement has those of
:data:`MEASURED` besides.
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


MEASURED = (
    Column("min_rtt_s", "f64", "s", "Smallest RTT so far.", ()),
    Column("inflight_bytes", "u64", "B", "Payload in the network, as the packets show it.", ()),
    Column("offered_window_bytes", "u64", "B", "Window that the receiver offers.", ()),
    Column("unsent_bytes", "u64", "B", "Payload written to the socket and not sent yet.", ()),
    Column("delivery_bps", "f64", "bit/s", "Latest rate at which payload arrived.", ()),
    Column("reordered", "u64", "", "Segments that came out of order, not sent again.", ()),
    Column("acks", "u64", "", "Packets that acknowledge the data.", ()),
    Column("ack_delay_s", "f64", "s", "Delay of the latest ACK's way back above the least.", ()),
    Column("data_delay_s", "f64", "s", "Delay of the latest data's way above the least.", ()),
    Column("app_limited", "u8", "", "1 if the application sets the delivery rate, 0 if not.", ()),
    Column("busy_s", "f64", "s", "Time with data to send or to be acknowledged.", ()),
    Column("rwnd_limited_s", "f64", "s", "Part of busy_s held by the receiver's window.", ()),
    Column("sndbuf_limited_s", "f64", "s", "Part of busy_s held by the send buffer.", ()),
)
"""Columns that the samples of a measurement have besides those of ``flows``."""


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


def schema(table: str, *, measured: bool = False) -> dict[str, type[pl.DataType]]:
    """The columns of a table with their polars types; ``measured``: those of a measurement."""
    import polars as pl

    types: dict[str, type[pl.DataType]] = {
        "f64": pl.Float64,
        "u64": pl.UInt64,
        "u32": pl.UInt32,
        "u16": pl.UInt16,
        "u8": pl.UInt8,
    }
    more = MEASURED if measured else ()
    return {column.name: types[column.kind] for column in (*declared()[table].values(), *more)}


def frame(table: str, rows: Sequence[Mapping[str, Any]], *, measured: bool = False) -> pl.DataFrame:
    """A table of these rows. A row need not have every column: what it lacks is null.

    Raises:
        KeyError: when a row has a column that the table has not.
    """
    import polars as pl

    known = schema(table, measured=measured)
    for row in rows:
        if unknown := row.keys() - known.keys():
            raise KeyError(f"{table} has no column {min(unknown)}; columns: {', '.join(known)}")
    return pl.DataFrame(rows, known)
