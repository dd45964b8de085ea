# SPDX-License-Identifier: MIT OR Apache-2.0
"""`lfn testbed`: a scenario on this kernel's TCP gives a run that adds up or is called invalid."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lfnlab import _core
from lfnlab import testbed as bed
from lfnlab.errors import ScenarioError, Unavailable
from lfnlab.results import Results
from lfnlab.store import read_table

LFN = [sys.executable, "-m", "lfnlab.cli"]
LIMIT_S = 90
SCENARIO = """
schema = 1
duration = "6s"
warmup = "2s"
sample = "50ms"
[link]
rate = "20Mbit/s"
queue = { size = "20 packets" }
[[flow]]
law = "reno"
rtt = "20ms"
[[flow]]
law = "cubic"
rtt = "20ms"
start = "1s"
stop = "5s"
"""
OTHERS = """
[[flow]]
law = "udt"
rtt = "20ms"
start = "1s"
[[flow]]
law = "reno"
rtt = "20ms"
size = "100kB"
[background]
level = 1
[[udp]]
name = "burst"
bursts = [{ start = "2s", stop = "4s", rate = "2Mbit/s" }]
[[udp]]
name = "back"
direction = "reverse"
bursts = [{ start = "1s", stop = "2s", rate = "1Mbit/s" }]
"""


def on_kernel(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(text)
    command = [*LFN, "testbed", scenario, "--out", tmp_path / "out", "--json"]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)


def test_flows_over_tcp_and_udt_and_other_traffic_share_a_path(tmp_path: Path) -> None:
    done = on_kernel(tmp_path, SCENARIO + OTHERS)
    # Late on a busy machine, and then it says so; the rest holds all the same.
    assert done.returncode in (0, 6), done.stderr
    assert ("INVALID" in done.stderr) == (done.returncode == 6)
    (run,) = Results.load(tmp_path / "out").runs
    summary: dict[str, Any] = run.summary
    assert (summary["invalid"] is not None) == (done.returncode == 6)
    assert json.loads(done.stdout)["runs"][0]["flows"][0]["law"] == "reno"
    assert [flow["kernel_law"] for flow in summary["flows"]] == [
        bed.kernel_law("reno"),
        bed.kernel_law("cubic"),
        None,
        bed.kernel_law("reno"),
    ]
    forward, reverse = summary["links"]
    # Between a tenth of what the link carries in the 4 s, for others share it, and all of it and
    # what it held before.
    most_bytes = 4 * 20e6 / 8 * 1448 / 1514
    delivered_bytes = sum(flow["delivered_bytes"] for flow in summary["flows"])
    assert most_bytes / 10 < delivered_bytes < most_bytes * 1.05
    assert forward["utilization"] <= 1.01
    assert forward["drops"] > 0
    assert forward["max_queue_packets"] == 20
    assert reverse["arrivals"] > 0
    flows, queues = (read_table(run.path, name) for name in ("flows", "queues"))
    reno = flows.filter(flow=0)
    assert reno["t_s"].is_sorted()
    assert reno["delivered_bytes"].is_sorted()
    assert len(reno) > 6 / 0.05 * 0.5
    assert reno["srtt_s"].max() >= 0.020
    assert flows.filter(flow=1)["t_s"].min() >= 1.0
    assert queues["packets"].max() <= 21
    # What was acknowledged has left the link.
    acked = sum(flows.filter(flow=number)["delivered_bytes"][-1] for number in range(4))
    assert acked < queues.filter(link=0)["sent_bytes"][-1]
    # After its end a flow sends nothing.
    assert flows.filter(flow=1)["t_s"].max() < 5.5
    udt = flows.filter(flow=2)
    assert summary["flows"][2]["transport"] == "udt"
    assert udt["t_s"].min() >= 1.0
    assert udt["delivered_bytes"].is_sorted()
    assert udt["delivered_bytes"][-1] > 100_000
    assert udt["srtt_s"].max() >= 0.020
    assert 0.1 < summary["flows"][3]["completion_s"] < 5
    sent = summary["testbed"]["sent"]
    counts = {(what.get("udp", "background"), what["direction"]): what for what in sent}
    # As the simulator's sources have it: the rate over its time, in whole packets.
    for name, bits in ((("burst", "forward"), 4e6), (("back", "reverse"), 1e6)):
        assert counts[name]["sent"] == pytest.approx(bits / 8 / 1514, abs=1.5)
        assert counts[name]["refused"] == 0
    for direction in ("forward", "reverse"):
        background = counts["background", direction]
        assert background["flows_started"] > 10
        assert background["flows_completed"] <= background["flows_started"]
    assert "on a test bed" in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('[[flow]]\nlaw = "reno"\nrtt = "30ms"\n', "flow: routes, RTTs or packets differ"),
        ('[[flow]]\nlaw = "udt"\nrtt = "30ms"\n', "flow: routes, RTTs or packets differ"),
        ('[[flow]]\nlaw = "reno"\nrtt = "20ms"\nparallel = 2\n', "flow.parallel: more than 1"),
        (
            '[[flow]]\nlaw = "reno"\nrtt = "20ms"\ndirection = "reverse"\n',
            "flow.direction: reverse",
        ),
        ('[[traffic]]\nshort_flows = { load = "1Mbit/s" }\n', "traffic: a model of TCP traffic"),
    ],
)
def test_what_it_cannot_do_is_refused(more: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=rf"^scenario.toml: ({words})"):
        _core.plan_testbed(SCENARIO + more, "scenario.toml", 1)


def test_a_background_of_too_many_connections_is_refused() -> None:
    fast = SCENARIO.replace("20Mbit/s", "10Gbit/s") + "[background]\nlevel = 1\n"
    with pytest.raises(ScenarioError, match=r"background.level: \d+ new connections a second"):
        _core.plan_testbed(fast, "scenario.toml", 1)


def test_a_law_that_the_kernel_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bed, "available", lambda: ["reno", "cubic", "lfn_htcp_be", "lfn_reno"])
    assert [bed.kernel_law(law) for law in ("reno", "cubic:linux", "htcp-be")] == [
        "lfn_reno",
        "cubic",
        "lfn_htcp_be",
    ]
    with pytest.raises(Unavailable, match="neither lfn_veno nor veno; try lfn kernel load veno"):
        bed.kernel_law("veno")
    with pytest.raises(Unavailable, match="neither lfn_xcp nor xcp; it is for the simulator"):
        bed.kernel_law("xcp")
