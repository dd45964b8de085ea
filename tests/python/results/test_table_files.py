"""The Parquet files of a run have the rows, types and metadata that the run has in memory."""

from __future__ import annotations

import io

import numpy as np
import polars as pl
import pytest

from lfnlab import _core
from lfnlab.results import tables

BLOCKS = [f"sack{i}_{end}" for i in (1, 2, 3) for end in ("start", "end")]
SCENARIO = """
schema = 1
duration = "4s"
sample = "{sample}"
{compat}
[link]
rate = "50Mbit/s"
queue = {{ kind = "drop-tail", size = "20 packets" }}
loss = 0.01
[[flow]]
law = "cubic"
rtt = "20ms"
count = {count}
[[traffic]]
rtt = "30ms"
requests = {{ load = "5Mbit/s" }}
[capture]
links = ["forward", "reverse"]
"""


def run(*, sample: str = "10ms", count: int = 2, compat: str = "") -> _core.Run:
    text = SCENARIO.format(sample=sample, count=count, compat=compat)
    (found,) = _core.run_many([_core.Scenario(text)], 1, None)
    assert found is not None
    return found


def read(found: _core.Run, name: str) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(found.parquet(name, [])))


def assert_same(found: _core.Run, name: str) -> pl.DataFrame:
    """The file has the columns in memory, bit for bit."""
    frame, columns = read(found, name), found.table(name)
    assert frame.schema == tables.schema(name)
    assert frame.columns == list(columns)
    assert len(frame) == found.rows(name)
    for column, values in columns.items():
        if name == "packets" and column in BLOCKS:
            continue
        assert frame[column].null_count() == 0
        assert frame[column].to_numpy().tobytes() == values.tobytes(), column
    return frame


@pytest.mark.parametrize("compat", ["", 'compat = "ns2"'])
def test_every_table_is_read_as_it_was(compat: str) -> None:
    found = run(compat=compat)
    for name in tables.declared():
        assert assert_same(found, name).height > 0, name


def test_a_table_of_several_row_groups_is_read_as_it_was() -> None:
    found = run(sample="100us", count=8)
    assert found.rows("flows") > 1 << 18
    assert assert_same(found, "flows")["flow"].n_unique() == 8


def test_a_table_without_rows_has_its_columns() -> None:
    found = run(sample="off")
    assert found.rows("flows") == 0
    assert_same(found, "flows")


def test_a_block_that_is_not_there_is_null() -> None:
    found = run()
    frame, columns = read(found, "packets"), found.table("packets")
    for i in (1, 2, 3):
        there = columns[f"sack{i}_end"] > 0
        assert 0 < np.count_nonzero(there) < len(there)
        for end in ("start", "end"):
            column = frame[f"sack{i}_{end}"]
            assert np.array_equal(column.is_not_null().to_numpy(), there)
            assert column.drop_nulls().to_list() == columns[column.name][there].tolist()


def test_metadata_and_bytes_follow_from_what_is_written() -> None:
    about = [("lfnlab.seed", "1"), ("lfnlab.scenario", 'law = "ü"\n')]
    data = run().parquet("flows", about)
    said = pl.read_parquet_metadata(io.BytesIO(data))
    assert dict(about).items() <= said.items()
    assert run().parquet("flows", about) == data
    assert run().parquet("flows", []) != data


def test_another_table_is_refused() -> None:
    found = run()
    for ask in (found.table, found.rows, lambda name: found.parquet(name, [])):
        with pytest.raises(KeyError, match='no table "losses"; tables: flows, queues'):
            ask("losses")
