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


def on_kernel(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(text)
    command = [*LFN, "testbed", scenario, "--out", tmp_path / "out", "--json"]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)


def test_two_flows_share_a_path(tmp_path: Path) -> None:
    done = on_kernel(tmp_path, SCENARIO)
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
    ]
    forward, reverse = summary["links"]
    # Between a quarter of what the link carries in the 4 s and all of it, and what it held before.
    most_bytes = 4 * 20e6 / 8 * 1448 / 1514
    delivered_bytes = sum(flow["delivered_bytes"] for flow in summary["flows"])
    assert most_bytes / 4 < delivered_bytes < most_bytes * 1.05
    assert forward["utilization"] <= 1.01
    assert forward["drops"] > 0
    assert forward["max_queue_packets"] == 20
    assert reverse["drops"] == 0
    flows, queues = (read_table(run.path, name) for name in ("flows", "queues"))
    reno = flows.filter(flow=0)
    assert reno["t_s"].is_sorted()
    assert reno["delivered_bytes"].is_sorted()
    assert len(reno) > 6 / 0.05 * 0.5
    assert reno["srtt_s"].max() >= 0.020
    assert flows.filter(flow=1)["t_s"].min() >= 1.0
    assert queues["packets"].max() <= 21
    # What was acknowledged has left the link.
    acked = sum(flows.filter(flow=number)["delivered_bytes"][-1] for number in (0, 1))
    assert acked < queues.filter(link=0)["sent_bytes"][-1]
    assert "on a test bed" in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('[[flow]]\nlaw = "reno"\nrtt = "30ms"\n', "flow 2 has another path"),
        ('[[flow]]\nlaw = "udt"\nrtt = "20ms"\n', "over UDT"),
        ("[background]\nlevel = 1\n", "other traffic"),
    ],
)
def test_what_it_cannot_do_is_refused(more: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        _core.plan_testbed(SCENARIO + more, "scenario.toml", 1)


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
