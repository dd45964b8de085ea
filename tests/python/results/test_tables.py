"""Every writer of a run's tables (simulator, test bed, importers) writes the columns that the
engine declares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lfnlab import Scenario, _core, execute
from lfnlab.figures.columns import unit
from lfnlab.results.tables import code, declared, frame, schema

ROOT = Path(__file__).resolve().parents[3]
SCENARIO = """
schema = 1
duration = "2s"
sample = "100ms"
[link]
rate = "10Mbit/s"
queue = { size = "10 packets" }
[[flow]]
law = "reno"
rtt = "40ms"
[[traffic]]
rtt = "40ms"
requests = { load = "1Mbit/s", response = "8kB" }
[[udp]]
name = "cbr"
bursts = [{ start = "0s", stop = "2s", rate = "500kbit/s" }]
[capture]
links = ["forward", "reverse"]
[background]
level = 1
long_flows = 1
"""


def test_stored_tables_have_the_declared_columns_and_types(tmp_path: Path) -> None:
    file = tmp_path / "all.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    (one,) = execute(Scenario.load(file), out=tmp_path / "out").runs
    for table in declared():
        assert dict(one.table(table).schema) == schema(table), table
        assert len(one.table(table)) > 0 or table == "probes", table
    events = one.table("events")["kind"].unique()
    assert set(events) <= set(range(len(declared()["events"]["kind"].codes)))
    assert code("events", "kind", "fast retransmit") in events
    kinds = one.table("packets")["kind"].unique().sort().to_list()
    words = [declared()["packets"]["kind"].codes[kind] for kind in kinds]
    assert {"data", "ACK", "UDP", "SYN", "SYN-ACK", "handshake ACK"} == set(words)


def test_the_summary_of_a_run_has_the_keys_of_its_schema(tmp_path: Path) -> None:
    file = tmp_path / "all.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    (one,) = execute(Scenario.load(file), out=tmp_path / "out").runs
    stored = json.loads((one.path / "summary.json").read_text(encoding="utf-8"))
    whole = json.loads((ROOT / "docs/reference/summary.schema.json").read_text(encoding="utf-8"))
    faults: list[str] = []

    def check(value: Any, part: dict[str, Any], where: str) -> None:
        part = part["anyOf"][0] if "anyOf" in part and value is not None else part
        if "$ref" in part:
            part = whole["$defs"][part["$ref"].rpartition("/")[2]]
        if isinstance(value, dict):
            faults.extend(
                f"{where}.{key} is missing" for key in part["required"] if key not in value
            )
            for key, inner in value.items():
                if key in part["properties"]:
                    check(inner, part["properties"][key], f"{where}.{key}")
                else:
                    faults.append(f"{where}.{key} is not described")
        elif isinstance(value, list):
            for inner in value:
                check(inner, part["items"], f"{where}[]")

    check(stored, whole, "summary")
    # The store adds the name of the scenario.
    assert faults == ["summary.name is not described"]


def test_rows_are_written_by_the_names_of_columns() -> None:
    rows = frame("flows", [{"t_s": 1.0, "flow": 3, "cwnd_seg": 10.0}])
    assert dict(rows.schema) == schema("flows")
    assert rows["srtt_s"].to_list() == [None]
    assert frame("events", []).schema == pl.Schema(schema("events"))
    with pytest.raises(KeyError, match="flows has no column cwnd; columns: t_s, flow,"):
        frame("flows", [{"t_s": 1.0, "cwnd": 10.0}])
    with pytest.raises(ValueError, match="tuple"):
        code("events", "kind", "an accident")


def test_units_follow_from_the_declaration() -> None:
    for columns in declared().values():
        for column in columns.values():
            assert unit(column.name) == column.unit, column
            suffix = {"_s": "s", "_ps": "ps", "_bps": "bit/s", "_seg": "segments", "_bytes": "B"}
            for end, wanted in suffix.items():
                if column.name.endswith(end):
                    assert column.unit == wanted, column
            assert column.meaning.endswith("."), column
    assert [name for name, *_ in _core.tables()] == list(declared())
