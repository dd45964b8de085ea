"""Measurements of any tool: what an importer need not say, and what none may."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lfnlab.errors import UsageError
from lfnlab.figures.columns import unit
from lfnlab.formats import measurement
from lfnlab.formats.measurement import Measurement
from lfnlab.results.tables import MEASURED, declared, frame

if TYPE_CHECKING:
    from command import Lfn


def of(path: Path, t_s: float, goodput_bps: float) -> Measurement:
    rows = [{"t_s": t_s, "flow": 0, "delivered_bytes": 10}]
    rates = [{"t_s": t_s, "flow": 0, "goodput_bps": goodput_bps}]
    flow = {"id": 0, "law": "tcp", "direction": "forward", "goodput_bps": None}
    return Measurement.of(path / "x.csv", b"x", rows, rates, [flow], tool={"version": "1"})


def test_what_a_tool_does_not_tell_is_null(tmp_path: Path) -> None:
    found = of(tmp_path, 1.0, 80.0)
    measurement.store(found, tmp_path / "out")
    said = json.loads((tmp_path / "out/summary.json").read_text())
    assert (said["name"], said["tool"], said["jain"]) == ("x", {"version": "1"}, None)
    (flow,) = said["flows"]
    assert (flow["start_s"], flow["cov"], flow["retransmits"]) == (0.0, None, None)


def test_metrics_of_the_field_need_links(tmp_path: Path, lfn: Lfn) -> None:
    measurement.store(of(tmp_path, 1.0, 80.0), tmp_path / "out")
    why = "another tool measured it; lfn table shows what it told"
    assert why in lfn.refuses("metrics", tmp_path / "out")


def test_columns_of_measurements_follow_those_of_runs() -> None:
    rows = frame("flows", [{"t_s": 1.0, "flow": 0, "app_limited": 0}], measured=True)
    assert list(rows.columns) == [*declared()["flows"], *(column.name for column in MEASURED)]
    assert rows["app_limited"].to_list() == [0]
    assert rows["offered_window_bytes"].to_list() == [None]
    for column in MEASURED:
        assert unit(column.name) == column.unit, column
    with pytest.raises(KeyError, match="flows has no column app_limited"):
        frame("flows", [{"app_limited": 0}])


@pytest.mark.parametrize(
    ("t_s", "goodput_bps"), [(math.nan, 1.0), (math.inf, 1.0), (1.0, -math.inf)]
)
def test_a_number_that_is_not_finite_is_refused(
    tmp_path: Path, t_s: float, goodput_bps: float
) -> None:
    with pytest.raises(UsageError, match=r"x\.csv: a time, a rate or a count is no finite number"):
        of(tmp_path, t_s, goodput_bps)
