"""Conditions on rows, such as ``flow=0,3``, ``law!=reno`` and ``t_s>=10``: those of ``--where``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from lfnlab.errors import UsageError
from lfnlab.results.cases import frame


def condition(text: str) -> tuple[str, str, str]:
    """Column, sign and value of a condition such as ``flow=0,3`` or ``t_s>=10``.

    Raises:
        UsageError: for another text.
    """
    found = re.fullmatch(r"\s*([\w.\[\]*-]+?)\s*(!=|<=|>=|=|<|>)\s*(.+?)\s*", text)
    if found is None:
        raise UsageError(
            f'--where: "{text}" is not a condition; write for example flow=0,3 or "t_s>=10" '
            "(=, !=, <, <=, >, >=)"
        )
    return found[1], found[2], found[3]


def matching(text: str, dtype: pl.DataType) -> pl.Expr:
    """The rows that meet a condition, whose column is of this type.

    Raises:
        UsageError: for a value that the column cannot have.
    """
    column, sign, value = condition(text)
    here = pl.col(column)
    numeric = dtype.is_numeric()
    operands: list[Any] = [part.strip() for part in value.split(",")]
    if numeric:
        try:
            operands = [float(part) for part in operands]
        except ValueError:
            raise UsageError(f"--where {text}: {column} is a number, {value} is not") from None
    if sign in ("=", "!="):
        among = here.cast(pl.Float64 if numeric else pl.String).is_in(operands)
        return among if sign == "=" else ~among
    if not numeric or len(operands) != 1:
        raise UsageError(f"--where {text}: {sign} takes a column of numbers and one number")
    compare: dict[str, Callable[[Any], pl.Expr]] = {
        "<": here.__lt__,
        "<=": here.__le__,
        ">": here.__gt__,
        ">=": here.__ge__,
    }
    return compare[sign](operands[0])


def met(rows: Sequence[Mapping[str, Any]], conditions: Sequence[str]) -> list[bool]:
    """Whether each row meets all conditions.

    Raises:
        UsageError: for a column that no row has, naming those that exist.
    """
    table = frame([dict(row) for row in rows]).with_row_index("row of all")
    kept = set(filtered(table, conditions).get_column("row of all").to_list())
    return [number in kept for number in range(len(rows))]


def filtered(table: pl.DataFrame, conditions: Sequence[str]) -> pl.DataFrame:
    """The rows of a frame that meet all conditions; its first or last column is a number of ours.

    Raises:
        UsageError: for a column that it has not, naming those that exist.
    """
    columns = [name for name in table.columns if name not in ("row of all", "at")]
    left = table
    for text in conditions:
        column = condition(text)[0]
        if column not in columns:
            raise UsageError(f'--where {text}: no column "{column}"; allowed: {", ".join(columns)}')
        left = left.filter(matching(text, table.schema[column]))
    return left
