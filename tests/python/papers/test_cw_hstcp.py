"""CW-HSTCP's claim C6 in packets: the same window whatever the RTT; and its study's set-ups.

That C6 holds exactly where losses come together is tested on the law itself, in
``crates/law/tests/model/cw_hstcp.rs``.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lfnlab import Scenario
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.papers import paper

ROOT = Path(__file__).parents[3] / "papers" / "cw_hstcp"


def dumbbell_of(law: str) -> str:
    """The paper's dumbbell with its background, at a fifth of the rate."""
    text = """
schema = 1
compat = "ns2"
duration = "320s"
warmup = "20s"
[link]
rate = "200Mbit/s"
delay = "20ms"
queue.size = "500 packets"
[background]
level = 1
long_flows = 0
"""
    flows = [(law, 80), (law, 140), (law, 200), *[("reno", 100)] * 4]
    for name, rtt_ms in flows:
        text += f'[[flow]]\nlaw = "{name}"\nrtt = "{rtt_ms}ms"\n'
        text += 'start = "uniform(0s, 20s)"\npacket = "1000B"\n'
    return text


def windows(law: str, out: Path) -> list[float]:
    """Mean window of each of the three flows, segments."""
    (run,) = execute([Case(Scenario.from_toml(dumbbell_of(law), "c6.toml"))], out=out, jobs=1).runs
    return [flow["mean_cwnd_segments"] for flow in run.summary["flows"][:3]]


def test_windows_are_as_near_as_the_papers(tmp_path: Path) -> None:
    # Its shares of 32.22, 26.61, 19.36 % (table 3) are windows of 1 : 1.44 : 1.50.
    found = windows("cw-hstcp", tmp_path)
    assert max(found) < 1.5 * min(found), found
    short, _, long = windows("hstcp:ns2", tmp_path)
    assert short > 4 * long


@pytest.fixture
def runs() -> Any:
    """The module that makes and measures runs."""
    paper.claims_of("cw-hstcp")
    return sys.modules["papers_cw_hstcp.runs"]


def test_full_and_quick_take_the_same_path() -> None:
    full, quick = (tomllib.loads((ROOT / f"{n}.toml").read_text()) for n in ("full", "quick"))
    assert set(full) - {"linux", "draws", "shorter"} == set(quick)
    for part in ("more_seeds", "access", "extensions", "background"):
        assert set(full[part]) == set(quick[part])
    assert full["extensions"]["queues"] == quick["extensions"]["queues"]


def test_a_host_sends_no_faster_than_its_link(runs: Any, tmp_path: Path) -> None:
    """C10: a block that waited comes at the rate of the host, and else all at once."""
    settings = paper.settings_of("cw-hstcp", quick=True)
    settings |= {"rate": "20Mbit/s", "duration": "40s", "recording": {"seconds": 20}}
    law = "cw-hstcp"
    made = [runs.hosted(settings, law), runs.Setup(law, runs.THREE_MS)]
    cases = [Case(runs.scenario(settings, setup), setup.factors()) for setup in made]
    hosts, at_once = execute(cases, out=tmp_path, jobs=1).runs
    in_10_ms = 20e6 * 0.01 / (8 * 1000)
    assert runs.burst(hosts, 3, 10) <= in_10_ms + 1
    assert runs.burst(at_once, 3, 10) > in_10_ms + 1
    assert hosts.summary["links"][0]["id"] == "bottleneck"
    assert [flow["rtt_s"] for flow in hosts.summary["flows"]] == [
        flow["rtt_s"] for flow in at_once.summary["flows"]
    ]
    study = runs.Study(settings, execute(cases, out=tmp_path, jobs=1))
    assert [len(study.runs(setup)) for setup in made] == [1, 1], "neither is the other"


def test_what_is_dropped_is_counted_at_the_bottleneck(runs: Any, tmp_path: Path) -> None:
    settings = paper.settings_of("cw-hstcp", quick=True) | {"rate": "20Mbit/s", "duration": "40s"}
    setup = runs.Setup("cw-hstcp:c20", runs.THREE_MS)
    (run,) = execute([Case(runs.scenario(settings, setup))], out=tmp_path, jobs=1).runs
    link = run.summary["links"][0]
    assert runs.drops(run) == link["drops"] > 0
    assert runs.dropped(run) == link["drops"] / link["arrivals"]
    assert 0 < runs.background_again(run, 3) < 1


def test_queues_with_marks_mark(runs: Any, tmp_path: Path) -> None:
    settings = paper.settings_of("cw-hstcp", quick=True) | {"rate": "20Mbit/s", "duration": "40s"}
    marking = set()
    for queue in settings["extensions"]["queues"]:
        setup = runs.Setup("hstcp:ns2", runs.THREE_MS, queue)
        (run,) = execute([Case(runs.scenario(settings, setup))], out=tmp_path, jobs=1).runs
        if run.summary["links"][0]["marks"]:
            marking.add(queue)
    # PIE's target of 15 ms is near the buffer, which holds 20 ms.
    assert {"red with marks", "codel with marks"} <= marking
    assert all(queue.endswith("with marks") for queue in marking)
