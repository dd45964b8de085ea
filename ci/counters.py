"""Counters of an interface as one flow: a CSV of ``t_s,bytes``, as a script polls them."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from lfnlab.errors import UsageError
from lfnlab.formats.measurement import Measurement, content

_COLUMNS = {"t_s": pl.Float64, "bytes": pl.Int64}


def read(file: Path) -> Measurement:
    """Read the counters; the flow begins at the first.

    Raises:
        UsageError: the file is no such table, or time or count go back.
        StoreError: when the file cannot be read.
    """
    raw = content(file)
    try:
        rows = pl.read_csv(io.BytesIO(raw), schema=_COLUMNS)
    except pl.exceptions.PolarsError:
        raise UsageError(f"{file}: no CSV of the columns t_s,bytes") from None
    seconds = rows["t_s"].diff().drop_nulls()
    gained = rows["bytes"].diff().drop_nulls()
    if rows.height < 2 or not (seconds > 0).all() or not (gained >= 0).all():
        raise UsageError(f"{file}: allowed: at least two rows, with t_s and bytes that rise")
    t_s, delivered = seconds.cum_sum(), gained.cum_sum()
    table = pl.DataFrame({"t_s": t_s, "delivered_bytes": delivered}).with_columns(flow=0)
    rates = pl.DataFrame({"t_s": t_s, "goodput_bps": gained * 8 / seconds}).with_columns(flow=0)
    mean_bps = delivered[-1] * 8 / t_s[-1]
    flow = {"id": 0, "law": "tcp", "direction": "forward", "goodput_bps": mean_bps}
    return Measurement.of(file, raw, table.to_dicts(), rates.to_dicts(), [flow])
