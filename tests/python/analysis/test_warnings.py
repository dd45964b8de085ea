"""Warnings about results: queues that drop, flows that were ended, runs that are too short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lfnlab import Breaker, Burst, Results, Scenario, Udp, dumbbell
from lfnlab.analysis import run_length, warnings
from lfnlab.analysis.summary import to_json
from lfnlab.experiment.run import execute

CARD = (Path(__file__).parents[3] / "laws" / "cards" / "dctcp.md").read_text()


def run(out: Path, **changes: str) -> Results:
    """The recipe of the card for 3 s, with keys changed."""
    (text,) = re.findall(r"(?ms)^```toml file=dctcp.toml\n(.*?)^```", CARD)
    for key, value in {"duration": '"3s"', "warmup": '"1s"', **changes}.items():
        text = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
    return execute(Scenario.from_toml(text, "card"), out=out)


def test_the_recipe_keeps_the_queue_at_the_threshold(tmp_path: Path) -> None:
    results = run(tmp_path)
    link = results.runs[0].summary["links"][0]
    assert link["drops"] == 0
    assert link["marks"] > 10_000
    assert link["utilization"] > 0.999
    # K is 65 packets of 1514 bytes, 0.79 ms.
    assert link["mean_queue_s"] == pytest.approx(60 * 1514 * 8 / 1e9, rel=0.05)
    assert link["max_queue_packets"] < 80
    assert warnings.unmarked(results) == []


def test_drops_in_place_of_marks_are_warned_of(tmp_path: Path) -> None:
    results = run(tmp_path, mark_p="0.1")
    (warning,) = warnings.unmarked(results)
    assert "queue of forward has ecn = true" in warning
    assert "marked 0" in warning
    assert warning in to_json(results)["warnings"]
    # Who wants no marks is told nothing.
    assert warnings.unmarked(run(tmp_path, mark_p="0.1", ecn="false")) == []


def test_a_flow_that_a_breaker_ended_is_told_of(tmp_path: Path) -> None:
    path = dumbbell(rate="20Mbit/s", rtt="40ms", buffer="1bdp", duration="6s", loss=0.3)
    breakers = (Breaker(loss=0.1),)
    media = Udp(name="media", bursts=(Burst(rate="1Mbit/s"),), breakers=breakers)
    ended = path.flow("bbr", breakers=breakers).flow("reno").with_udp(media)
    results = execute(ended, seeds=2, out=tmp_path)
    assert [flow.get("tripped_s") for flow in results.runs[0].summary["flows"]] == [3.0, None]
    said = warnings.ended(results)
    assert said[0].startswith("A circuit breaker ended flow 0 (bbr) at 3 ")
    assert said[1].startswith("A circuit breaker ended source media (UDP) at 3 s, in 2 runs")
    assert set(said) <= set(to_json(results)["warnings"])
    many = execute(path.flow("bbr", count=20, breakers=breakers), out=tmp_path / "many")
    [one] = warnings.ended(many)
    assert re.match(r"A circuit breaker ended \d+ flows or sources \(bbr\) at ", one)


def test_theory_is_computed_once_for_each_law(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    known = run_length._period_s

    def count(*path: float) -> float:
        asked.append(path)
        return known(*path)

    monkeypatch.setattr(run_length, "_period_s", count)
    flows = [("reno", 10 + i) for i in range(50)] + [("cubic", 10 + i) for i in range(50)]
    scenario = dumbbell(rate="1Gbit/s", rtt="100ms", buffer="1bdp", duration="30s")
    for law, rtt_ms in flows:
        scenario = scenario.flow(law, rtt=f"{rtt_ms}ms")
    found = run_length.epoch_s(scenario)
    assert sorted(path[0] for path in asked) == ["cubic", "reno"]
    for law, rate_pps, _, buffer in asked:
        each = [known(law, rate_pps, (10 + i) / 1e3, buffer) for i in (0, 7, 30, 49)]
        assert found[law] == pytest.approx(max(each), rel=1e-9)


def test_vcp_beyond_its_round_trip_times_is_warned_of(tmp_path: Path) -> None:
    link = {"rate": "2Mbit/s", "queue": {"size": "100 packets"}, "router": {"kind": "vcp"}}
    for rtt, warned in (("500ms", False), ("700ms", True)):
        flows = [{"law": "vcp", "rtt": rtt}]
        document = {"duration": "2s", "link": link, "flow": flows}
        results = execute(Scenario.from_document(document), out=tmp_path / rtt)
        said = warnings.beyond_rtt(results)
        assert bool(said) is warned
        assert set(said) <= set(to_json(results)["warnings"])
    assert said[0].startswith("vcp has an RTT of 0.7 s: ")
    assert "above 0.5 s" in said[0]
