"""Measurements of any tool: what an importer need not say, and what none may."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from lfnlab.errors import UsageError
from lfnlab.formats import measurement
from lfnlab.formats.measurement import Measurement


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


@pytest.mark.parametrize(
    ("t_s", "goodput_bps"), [(math.nan, 1.0), (math.inf, 1.0), (1.0, -math.inf)]
)
def test_a_number_that_is_not_finite_is_refused(
    tmp_path: Path, t_s: float, goodput_bps: float
) -> None:
    with pytest.raises(UsageError, match=r"x\.csv: a time, a rate or a count is no finite number"):
        of(tmp_path, t_s, goodput_bps)
