# SPDX-License-Identifier: MIT OR Apache-2.0
"""`lfn testbed`: a scenario on this kernel's TCP gives a run that adds up or is called invalid."""

import contextlib
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lfnlab import _core
from lfnlab.errors import ScenarioError, Unavailable
from lfnlab.results.runs import Results
from lfnlab.results.store import read_table
from lfnlab.testbed import run as bed

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


def processes(mark: str) -> dict[int, str]:
    """Command lines of the processes with this word in their environment."""
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it is gone
            if f"LFN_TEST_MARK={mark}".encode() in (directory / "environ").read_bytes():
                line = (directory / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(directory.name)] = line.decode()
    return found


@contextlib.contextmanager
def measuring(home: Path, duration: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A test bed at work, with a directory for temporary files of its own."""
    mark = str(uuid.uuid4())
    scenario = home / "scenario.toml"
    scenario.write_text(SCENARIO.replace("6s", duration, 1))
    (home / "tmp").mkdir()
    environment = {**os.environ, "LFN_TEST_MARK": mark, "TMPDIR": str(home / "tmp")}
    command = [*LFN, "testbed", scenario, "--out", home / "out"]
    victim = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield victim, mark
    finally:
        for pid in processes(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        victim.communicate()


def await_far_end(victim: subprocess.Popen[str], mark: str) -> int:
    """The far end, once it is more than started."""
    deadline_s = time.monotonic() + 60
    while True:
        assert time.monotonic() < deadline_s
        assert victim.poll() is None
        names = processes(mark)
        far = [pid for pid, line in names.items() if "testbed.ends end reverse" in line]
        if far and any("testbed.ends near" in line for line in names.values()):
            return far[0]
        time.sleep(0.02)


@pytest.mark.parametrize("after_s", [3.0, 7.0], ids=["before the flows", "under way"])
def test_a_far_end_that_dies_is_no_result(after_s: float, tmp_path: Path) -> None:
    with measuring(tmp_path, "60s") as (victim, mark):
        far = await_far_end(victim, mark)
        time.sleep(after_s)
        os.kill(far, signal.SIGKILL)
        # The near end notices it, where the flows would go on for a minute.
        _, err = victim.communicate(timeout=40)
    assert victim.returncode == 1
    assert (
        err == "lfn: the test bed failed: the far end ended without a result; repeat the command\n"
    )
    assert not list((tmp_path / "out" / "runs").iterdir())
    assert not (tmp_path / "out" / "experiment.json").exists()


@pytest.mark.parametrize("after_s", [1.0, 4.0], ids=["start", "under way"])
def test_an_interrupt_from_the_keyboard_ends_with_one_line(after_s: float, tmp_path: Path) -> None:
    """A terminal interrupts every process of the group, the ends of the path too."""
    with measuring(tmp_path, "60s") as (victim, mark):
        await_far_end(victim, mark)
        time.sleep(after_s)
        os.killpg(victim.pid, signal.SIGINT)
        _, err = victim.communicate(timeout=40)
        assert err == "lfn: interrupted; finished runs are kept; repeat the command to continue\n"
        assert victim.returncode == 130
        assert processes(mark) == {}
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("number", range(int(os.environ.get("LFN_TESTBED_KILLS", "4"))))
def test_a_killed_test_bed_leaves_nothing(number: int, tmp_path: Path) -> None:
    """At a random moment of start, run or end: no process and no temporary file."""
    draw = random.Random(int(os.environ.get("LFN_SEED", "1")) * 1000 + number)
    with measuring(tmp_path, "3s") as (victim, mark):
        time.sleep(draw.uniform(0.0, 12.0))
        group = draw.random() < 0.5
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(victim.pid, signal.SIGKILL)
        deadline_s = time.monotonic() + 60
        while left := processes(mark):
            assert time.monotonic() < deadline_s, f"left behind: {left}"
            time.sleep(0.02)
        assert list((tmp_path / "tmp").iterdir()) == []


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
    # Counters restart with the warm-up's end; a packet that the link holds then counts.
    counted = queues.filter(link=0)
    assert counted.filter(counted["t_s"] < 2)["arrivals"][-1] > 100
    warm = counted.filter(counted["t_s"] >= 2)
    assert warm["arrivals"][0] <= 21
    assert warm["arrivals"][-1] > 1000
    # What was acknowledged since has left the link since, or was on its way then.
    assert delivered_bytes < warm["sent_bytes"][-1] + 20e6 / 8 * 0.04
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
        ('[[flow]]\nlaw = "reno"\nrtt = "30ms"\n', "flow: routes, RTTs or packets differ; allowed"),
        ('[[flow]]\nlaw = "udt"\nrtt = "30ms"\n', "flow: routes, RTTs or packets differ; allowed"),
        (
            '[[flow]]\nlaw = "reno"\nrtt = "20ms"\nparallel = 2\n',
            "flow.parallel: more than 1; write count in its place",
        ),
        (
            '[[flow]]\nlaw = "reno"\nrtt = "20ms"\ndirection = "reverse"\n',
            'flow.direction: "reverse"; allowed on a test bed: "forward"',
        ),
        (
            '[[traffic]]\nshort_flows = { load = "1Mbit/s" }\n',
            'traffic: "[^"]+", a model of TCP traffic; allowed',
        ),
    ],
)
def test_what_it_cannot_do_is_refused(more: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=rf"^scenario.toml: ({words})") as raised:
        _core.plan_testbed(_core.Scenario(SCENARIO + more, "scenario.toml"))
    assert raised.value.key == words.split(":")[0]


def test_a_background_of_too_many_connections_is_refused() -> None:
    fast = SCENARIO.replace("20Mbit/s", "10Gbit/s") + "[background]\nlevel = 1\n"
    with pytest.raises(
        ScenarioError, match=r"level: \d+ new connections a second; allowed.*: at most 2000"
    ):
        _core.plan_testbed(_core.Scenario(fast, "scenario.toml"))


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


def test_bytes_of_each_second_are_counted_as_in_the_simulator() -> None:
    """A second counts if the flow is there from its begin on and outlives it."""

    def seen(begin_s: float, end_s: float) -> dict[str, Any]:
        """100 bytes each 0.1 s, a look a little after each."""
        looks = range(round(10 * begin_s) + 1, round(10 * end_s))
        rows = [{"t_s": i / 10 + 1e-4, "delivered_bytes": 100 * i} for i in looks]
        return {"rows": rows, "warm_bytes": rows[0]["delivered_bytes"] - 100 if rows else 0}

    def bins(begin_s: float, end_s: float, warmup_s: float = 0.0) -> list[float]:
        return bed.delivered_in_seconds(seen(begin_s, end_s), warmup_s, begin_s, end_s)

    assert bins(0.0, 4.0) == [900, 1000, 1000, 1000]
    assert bins(2.0, 5.0, warmup_s=2.0) == [900, 1000, 1000]
    assert bins(1.5, 4.0) == [1000, 1000]  # it began within the second that ends at 2 s
    assert bins(0.0, 2.7) == [900, 1000]
    assert bins(0.0, 0.9) == []
    assert bed.delivered_in_seconds({"rows": [], "warm_bytes": 0}, 0.0, 0.0, 2.0) == [0, 0]


MARKED = """
schema = 1
duration = "6s"
warmup = "2s"
[link]
rate = "12Mbit/s"
queue = { kind = "dualpi2", size = "375kB", any_ect = true }
[[flow]]
law = "dctcp"
rtt = "30ms"
ecn = true
"""


def test_a_law_that_needs_ecn_is_told_of_marks(tmp_path: Path) -> None:
    # Only where the far end's law needs ECN, too; else ECT data fill the queue unanswered.
    if os.geteuid() != 0:
        pytest.skip("lfn kernel load needs root")
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(MARKED)
    bed = [*LFN, "testbed", scenario, "--out", tmp_path / "out"]
    load = [*LFN, "kernel", "load", "dctcp", "--for", *bed]
    done = subprocess.run(load, capture_output=True, text=True, timeout=LIMIT_S)
    link = Results.load(tmp_path / "out").runs[0].summary["links"][0]
    assert link["marks"] > 10, done.stderr
    assert link["marks"] < 0.5 * link["arrivals"]
    assert link["drops"] == 0
    assert link["p99_queue_s"] < 0.05


def test_each_mark_is_echoed_once(tmp_path: Path) -> None:
    # RFC 8257. Linux alone repeats a mark until the sender has answered: several times as many.
    if os.geteuid() != 0:
        pytest.skip("lfn kernel load needs root")
    scenario, report = tmp_path / "scenario.toml", tmp_path / "report.json"
    scenario.write_text(MARKED)
    far = f"{sys.executable} {Path(__file__).with_name('far.py')}"
    law = "echo lfn_dctcp >/proc/sys/net/ipv4/tcp_congestion_control"
    shell = [*LFN, "shell", "--no-live", "--scenario", scenario, "--report", report]
    shell += ["--serve", f"{law}; exec {far} serve", "--", *far.split(), "marked", "3000000"]
    load = [*LFN, "kernel", "load", "dctcp", "--for", "sh", "-c", shlex.join(map(str, shell))]
    done = subprocess.run(load, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    delivered, marked = json.loads(done.stdout)
    link = json.loads(report.read_text())["links"][0]
    assert delivered > 2000
    assert link["marks"] > 50
    assert 0.97 * link["marks"] <= marked <= link["marks"]
