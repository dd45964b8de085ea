"""Is the pack the suite's table, and do its figures mean what they say?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lfnlab import execute
from lfnlab.scenario import quantity
from lfnlab.suite import tcpeval

if TYPE_CHECKING:
    from command import Lfn

PAIRS_MS = (4, 74, 150, 28, 98, 174, 54, 124, 200)
"""Base RTTs of the suite's nine pairs without the central link."""


def plan(law: str, shrink: int, *, tmrg: bool = False) -> tcpeval.Plan:
    return tcpeval.Plan(law, list(tcpeval.BASIC), tcpeval.LOADS, shrink, tmrg)


@pytest.mark.parametrize(
    ("name", "central_ms"),
    [("access", 2), ("trans-oceanic", 65), ("geo-satellite", 300), ("wlan", 2), ("dial-up", 5)],
)
def test_round_trip_times_are_those_of_the_suite(name: str, central_ms: int) -> None:
    found = sorted(tcpeval.pair_rtts_us(tcpeval.BASIC[name]).values())
    assert found == sorted((pair + 2 * central_ms) * 1000 for pair in PAIRS_MS)


def test_a_data_centre_has_round_trips_of_tens_and_hundreds_of_microseconds() -> None:
    found = tcpeval.pair_rtts_us(tcpeval.BASIC["data-centre"])
    assert found[4, 1] == found[4, 2] == 40
    assert found[4, 3] == found[5, 1] == 220
    assert found[6, 3] == 400


@pytest.mark.parametrize("name", tcpeval.EXPERIMENTS)
def test_the_simulator_takes_every_scenario(name: str) -> None:
    experiment = tcpeval.EXPERIMENTS[name]
    for tmrg in {False, experiment.has_tmrg}:
        for case in experiment.cases(plan("cubic", 1, tmrg=tmrg)):
            case.scenario.check()


def test_the_pairs_offer_the_load_together_and_the_buffer_is_the_suites() -> None:
    for case in tcpeval.EXPERIMENTS["basic"].cases(plan("cubic", 1)):
        basic = tcpeval.BASIC[str(case.factors["scenario"])]
        resolved = case.scenario.check().to_document()
        offered = sum(
            float(model.suite.load.removesuffix("bit/s"))
            for model in case.scenario.traffic
            if model.suite is not None
        )
        load = float(str(case.factors["load"]).removesuffix("%")) / 100
        assert offered == pytest.approx(load * basic.loaded_bps, rel=1e-3)
        central = resolved["links"][0]
        heavy, light = (
            float(queue["size"].removesuffix(" packets"))
            for queue in (central["queue"], central["reverse"]["queue"])
        )
        assert heavy == pytest.approx(basic.rates_bps[0] * basic.buffers_s[0] / 12_000, abs=0.5)
        assert light == pytest.approx(basic.rates_bps[1] * basic.buffers_s[1] / 12_000, abs=0.5)


def test_tmrgs_suite_measures_the_second_half_and_sets_red_for_a_queue() -> None:
    asked = plan("cubic", 1, tmrg=True)
    for case in tcpeval.EXPERIMENTS["basic"].cases(asked):
        resolved = case.scenario.check().to_document()
        assert quantity.seconds("", resolved["duration"]) == pytest.approx(
            2 * quantity.seconds("", resolved["warmup"])
        )
        for model in resolved["traffic"]:
            loads = [
                quantity.parse(model["suite"][key], quantity.BITS_PER_S)
                for key in ("load", "reverse_load")
            ]
            assert loads[1] == pytest.approx(0.1 * loads[0], rel=1e-3)
    targets = [
        case.scenario.check().to_document()["links"][0]["queue"]["target_delay"]
        for case in tcpeval.EXPERIMENTS["delay-throughput"].cases(asked)
    ]
    assert targets == ["2.5ms", "5ms", "10ms", "20ms", "50ms"] * 2
    ramps = [case.factors for case in tcpeval.EXPERIMENTS["ramp-up"].cases(asked)]
    assert {"central": "0.056Mbit/s", "old": "124ms", "new": "28ms"} in ramps


def test_both_directions_share_the_cell(tmp_path: Path) -> None:
    basic = tcpeval.EXPERIMENTS["basic"]
    asked = tcpeval.Plan("cubic", ["wlan"], [60], 20)
    run = execute(basic.cases(asked), out=tmp_path).runs[0]
    links = {link["id"]: link for link in run.summary["links"]}
    (row,) = tcpeval.measured(basic, execute(basic.cases(asked), out=tmp_path))
    assert (row["direction"], row["utilization"].mean) == ("both", links["cell"]["utilization"])
    sent = sum(links[name]["utilization"] * 100e6 for name in ("to-cell", "from-cell"))
    # What is dropped in the cell has come to it, but not gone through: packets of 40 to 1500 bytes.
    dropped = 8 * links["cell"]["drops"] / (run.summary["sim_s"] - run.summary["warmup_s"])
    lost = sent - links["cell"]["utilization"] * 6e6
    assert 40 * dropped < lost < 1500 * dropped
    assert lost < 0.1 * sent
    assert 0.65 < row["utilization"].mean < 0.85


def called(lfn: Lfn, *arguments: str) -> Any:
    return json.loads(lfn("suite", "tcpeval", *arguments, "--json"))


def test_a_link_carries_what_is_offered_until_it_is_full(tmp_path: Path, lfn: Lfn) -> None:
    arguments = ["--law", "cubic", "--scenario", "access", "--quick", "--out", str(tmp_path)]
    found = called(lfn, *arguments, "--load", "60", "--seeds", "2")
    assert found["times_divided_by"] == 20
    assert any("tmix" in note for note in found["notes"])
    mild, light = found["rows"]
    assert (mild["direction"], light["direction"]) == ("heavy", "light")
    assert mild["utilization"]["n"] == 2
    assert mild["utilization"]["ci95"] > 0
    assert light["utilization"]["mean"] < mild["utilization"]["mean"]
    full = called(lfn, *arguments, "--load", "110")["rows"][0]
    # Headers, ACKs and retransmissions come on top of 60 % payload.
    assert 0.55 < mild["utilization"]["mean"] < 0.80
    assert full["utilization"]["mean"] > 0.95
    assert full["drop_rate"]["mean"] > mild["drop_rate"]["mean"]
    assert 0 < mild["mean_queue_s"]["mean"] < full["mean_queue_s"]["mean"] < 0.11


def test_the_table_says_that_quick_is_a_trial(tmp_path: Path, lfn: Lfn) -> None:
    arguments = ["--law", "reno", "--scenario", "dial-up", "--load", "60", "--quick"]
    table = lfn("suite", "tcpeval", *arguments, "--out", tmp_path)
    assert "1/20 of the suite's" in table
    assert "drop rate (%)" in table


def test_the_standard_tcp_has_no_impact_on_itself(tmp_path: Path) -> None:
    experiment = tcpeval.EXPERIMENTS["impact"]
    cases = experiment.cases(plan(tcpeval.STANDARD, 200))
    rows = tcpeval.measured(experiment, execute(cases, seeds=2, out=tmp_path))
    assert {row["load"] for row in rows} == {"50%", "100%"}
    assert len(rows) == 10
    for row in rows:
        assert row["gain"].mean == row["loss"].mean == 1.0


def test_fairness_keeps_apart_the_first_flow_and_the_later(tmp_path: Path) -> None:
    experiment = tcpeval.EXPERIMENTS["fairness"]
    slow = [
        case
        for case in experiment.cases(plan("reno", 20))
        if case.factors["central"] == "10Mbit/s" and case.factors["buffer"] == "25%"
    ]
    rows = tcpeval.measured(experiment, execute(slow, out=tmp_path))
    short = next(row for row in rows if (row["first"], row["later"]) == ("160ms", "10ms"))
    # Reno's share falls with the RTT; the buffer of 25 ms leaves the RTTs 5 to 1 apart.
    assert short["later_bps"].mean > 2 * short["first_bps"].mean
    assert short["ratio"].mean == short["first_bps"].mean / short["later_bps"].mean


def test_transients_open_a_window_and_drop_cross_traffic(tmp_path: Path, lfn: Lfn) -> None:
    arguments = ["--law", "cubic", "--experiment", "transients", "--quick"]
    found = called(lfn, *arguments, "--out", str(tmp_path))
    assert found["notes"] == ["--quick: all times are 1/5 of the suite's; a trial, not its result"]
    down, up, stairs = found["rows"]
    to = [down[f"window_{percent}_s"]["mean"] for percent in tcpeval.WINDOW_PERCENT]
    assert 0 < to[0] < to[1] < to[2] < 20
    assert down["cross_drops"]["n"] == 0
    assert up["cross_drops"]["mean"] > stairs["cross_drops"]["mean"] > 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--law", "cubicle"], "cubicle"),
        (["--law", "cubic", "--scenario", "wifi"], "--scenario"),
        (["--law", "cubic", "--experiment", "impact", "--tmrg"], "--tmrg"),
        (["--law", "cubic", "--scenario", "access,access"], "--scenario"),
        (["--law", "cubic", "--load", "70"], "--load"),
        (["--law", "cubic", "--load", ""], "--load"),
        (["--law", "cubic", "--experiment", "fairness", "--load", "60"], "--load"),
        (["--law", "cubic", "--experiment", "wlan"], "experiment"),
        (["--law", "cubic", "--seeds", "0"], "seeds"),
        ([], "law"),
    ],
)
def test_bad_input_ends_with_2_and_names_the_option(
    arguments: list[str], named: str, tmp_path: Path, lfn: Lfn
) -> None:
    assert named in lfn.err("suite", "tcpeval", *arguments, "--out", tmp_path)
