"""Quantities of each flow, and flows in groups by what the scenario writes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lfnlab import Flow, Results, dumbbell, execute
from lfnlab.errors import ScenarioError, UsageError
from lfnlab.scenario.quantity import SECONDS, bounds
from lfnlab.testbed.virtual_hosts import connections

if TYPE_CHECKING:
    from command import Lfn


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    path = dumbbell(rate="20Mbit/s", rtt="40ms", buffer="0.5bdp", loss=1e-4, duration="8s")
    path = path.flow("cubic", count=4, rtt=("10ms", "80ms"), start="uniform(0s, 1s)")
    path = path.flow(
        "reno", count=3, rtt="uniform(10ms, 80ms)", size="log-uniform(50kB, 500kB)", start="2s"
    )
    out = tmp_path_factory.mktemp("groups")
    return execute(path, seeds=3, out=out)


def test_a_scenario_with_lists_is_the_same_in_toml_and_python(results: Results) -> None:
    scenario = results.runs[0].scenario
    assert scenario.flows[0].rtt == ("10ms", "80ms")
    assert type(scenario).from_toml(scenario.to_toml()) == scenario
    assert scenario.check().flows[1].size == "log-uniform(50kB, 500kB)"


def test_drawn_values_are_in_the_summary_and_linux_would_draw_them_too(results: Results) -> None:
    for one_run in results.runs:
        flows = one_run.summary["flows"]
        assert [flow["rtt_s"] for flow in flows[:4]] == [0.01, 0.08, 0.01, 0.08]
        drawn = [flow["rtt_s"] for flow in flows[4:]]
        assert len(set(drawn)) == 3
        assert all(0.01 <= rtt_s < 0.08 for rtt_s in drawn)
        resolved = one_run.scenario.check().to_document()
        for flow, one in zip(flows, connections(resolved), strict=True):
            assert float(one.flow["rtt"].rstrip("ms")) == pytest.approx(
                flow["rtt_s"] * (1e3 if one.flow["rtt"].endswith("ms") else 1), rel=1e-9
            )
            assert one.start_s == pytest.approx(flow["start_s"], abs=1e-11)
            if one.size_bytes is not None:
                assert 0 <= flow["size_bytes"] - one.size_bytes < flow["segment_bytes"]


def test_bounds_of_what_is_written() -> None:
    assert bounds("20ms", SECONDS) == (0.02, 0.02)
    assert bounds("uniform(20ms, 0.2s)", SECONDS) == (0.02, 0.2)
    assert bounds(["3s", "1s"], SECONDS) == (1.0, 3.0)


def test_a_wrong_list_names_key_value_and_allowed() -> None:
    path = dumbbell(rate="20Mbit/s", rtt="40ms", buffer="1bdp", duration="8s")
    with pytest.raises(ScenarioError, match=r"rtt\[1\]: .* has no unit; write for example"):
        path.flow("cubic", count=2, rtt=("10ms", "80")).check()
    with pytest.raises(ScenarioError, match=r"size: found .*normal.*allowed: uniform\(LOW, HIGH\)"):
        path.flow("cubic", size="normal(1MB, 1kB)").check()


def test_groups_add_up_to_their_run(results: Results) -> None:
    for keys in (("rtt",), ("law",), ("law", "rtt"), ("direction",), ("flow",), ("group",)):
        for one_run in results.runs:
            rows = one_run.by(*keys)
            assert sum(row["flows"] for row in rows) == 7
            own = [
                f["goodput_bps"] for f in one_run.summary["flows"] if f["goodput_bps"] is not None
            ]
            weighted = sum(row["flow_goodput_bps"] * row["flows"] for row in rows)
            assert weighted == pytest.approx(sum(own))
            shares = sum(row["fair_share"] * row["flows"] for row in rows)
            assert shares == pytest.approx(7.0)
    # By law and route they are the rows without groups.
    mine, usual = results.by("law", "route").rows(), results.rows()
    for row, same in zip(mine, usual, strict=True):
        assert {key: repr(row[key]) for key in same} == {k: repr(v) for k, v in same.items()}


def test_an_rtt_is_a_class_as_it_is_written(results: Results) -> None:
    by_rtt = results.by("rtt")
    assert by_rtt.keys == ("rtt",)
    table = by_rtt.table(["flow_goodput_bps", "completion_s"])
    assert table["rtt"].to_list() == ["10ms", "80ms", "uniform(10ms, 80ms)"]
    assert table["completion_s"].null_count() == 2
    short, long = table["flow_goodput_bps"].to_list()[:2]
    assert short > long
    assert by_rtt.where("rtt=10ms").table()["rtt"].to_list() == ["10ms"]
    assert by_rtt.compare({"rtt": "10ms"}, ["flow_goodput_bps"]).height == 2


def test_an_unknown_property_names_those_that_there_are(results: Results) -> None:
    with pytest.raises(UsageError, match=r'flows have no "color"; allowed: .*direction, .*rtt'):
        results.by("color")


def test_commands_by_groups(results: Results, tmp_path: Path, lfn: Lfn) -> None:
    root = results.root
    told = lfn("table", root, "--by", "rtt")
    assert "uniform(10ms, 80ms)" in told
    assert "fair share: goodput of a mean flow" in told
    assert "80ms" in lfn("table", root, "--by", "rtt", "--baseline", "rtt=10ms", "--power")
    told = lfn("metrics", root, "--by", "rtt", "--metric", "jain,time-to-share")
    assert "10ms" in told
    assert "slowest flow, to 80 % of the mean flow, 1 s" in told
    out = tmp_path / "figure.svg"
    share = ("--figure", "share", "--by", "rtt")
    cdf = ("--kind", "cdf", "--x", "completion_s", "--by", "rtt")
    scatter = ("--kind", "scatter", "--x", "rtt_s", "--y", "goodput_bps", "--by", "group")
    pooled = ("--figure", "flow", "--by", "rtt", "--where", "law=cubic")
    for options in (share, ("--figure", "completion"), cdf, pooled):
        lfn("plot", root, *options, "--out", out)
    assert "21 rows" in lfn("plot", root, *scatter, "--out", out)
    assert "--kind scatter: name with --x" in lfn.refuses("plot", root, "--kind", "scatter")


def test_flows_of_one_group_have_their_own_share(results: Results) -> None:
    rows = results.runs[0].by("flow")
    assert [row["flow"] for row in rows] == [str(number) for number in range(7)]
    assert all(math.isnan(row["jain"]) for row in rows)


def test_flow_takes_tuples() -> None:
    assert Flow(law="cubic", rtt=("1ms", "2ms")).rtt == ("1ms", "2ms")
