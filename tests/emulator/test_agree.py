# SPDX-License-Identifier: MIT OR Apache-2.0
"""Level 2: compares the simulator with the test bed, and tests the message when they differ."""

import json
import math
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lfnlab import dumbbell
from lfnlab.analysis import sawtooth
from lfnlab.analysis.sawtooth import Trace
from lfnlab.experiment.run import execute
from lfnlab.results.runs import Results
from lfnlab.testbed import agree
from lfnlab.testbed.sock_diag import SockDiag

LFN = [sys.executable, "-m", "lfnlab.cli"]
LIMIT_S = 90


def trace(period_s: float, goodput_bps: float = 8e6) -> Trace:
    """A window that climbs from 50 to 100 and falls, for 20 s; 3 drops each time."""
    time_s = np.arange(0.0, 20.0, 0.01)
    phase = time_s % period_s
    return Trace(
        time_s=time_s,
        cwnd_segments=50.0 + 50.0 * phase / period_s,
        ssthresh_segments=np.full_like(time_s, 50.0),
        reducing=(phase < 0.05) & (time_s > 0.05),
        drops=3.0 * (time_s // period_s),
        delivered_b=time_s * goodput_bps / 8,
        rtt_s=np.full_like(time_s, 0.04),
    )


@pytest.mark.parametrize(
    ("period_s", "goodput_bps", "missed"),
    [(2.08, 8.2e6, set()), (2.12, 8e6, {"period_s"}), (2.0, 7.7e6, {"goodput_bps"})],
)
def test_a_bar_that_is_not_met_is_named(
    period_s: float, goodput_bps: float, missed: set[str]
) -> None:
    both = {agree.SIMULATOR: trace(2.0), agree.TEST_BED: trace(period_s, goodput_bps)}
    rows = agree.compared("reno", both)
    assert {row.quantity for row in rows if row.within is False} == missed
    assert {row.quantity for row in rows if row.within} == {
        name for name, quantity in agree.QUANTITIES.items() if quantity.bar
    } - missed


def test_a_sawtooth_that_one_alone_has_is_a_difference() -> None:
    flat = trace(100.0)
    both = {agree.SIMULATOR: trace(2.0), agree.TEST_BED: flat}
    (period,) = (row for row in agree.compared("reno", both) if row.quantity == "period_s")
    assert period.within is False
    assert math.isnan(period.difference)
    assert period.to_json()["measured"] is None
    neither = {agree.SIMULATOR: flat, agree.TEST_BED: flat}
    (period,) = (row for row in agree.compared("reno", neither) if row.quantity == "period_s")
    assert period.within is None


def test_drops_of_a_stored_run_count_from_the_warm_up(tmp_path: Path) -> None:
    base = dumbbell(rate="20Mbit/s", rtt="20ms", buffer="0.5bdp", duration="20s", warmup="5s")
    (run,) = execute(base.flow("reno"), out=tmp_path).runs
    seen = sawtooth.of_run(run, 0)
    assert seen.time_s[0] >= 5.0
    assert seen.drops[0] == 0.0
    events = run.table("events")
    found = sawtooth.episodes(seen)
    assert len(found) == events.filter((events["kind"] == 0) & (events["t_s"] >= 5.0)).height
    assert sum(episode.drops for episode in found) == run.summary["links"][0]["drops"]


def test_the_sockets_of_another_program_are_seen() -> None:
    connect = (
        "import socket; s = socket.create_connection(('127.0.0.1', {})); s.sendall(b'x' * 1000); "
        "print(s.getsockname()[1], flush=True); s.recv(1)"
    )
    diag = SockDiag()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        far = listener.getsockname()
        command = [sys.executable, "-c", connect.format(far[1])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            connection, near = listener.accept()
            assert other.stdout is not None
            other.stdout.readline()
            seen = diag.info(near, far)
            nobody = diag.info(near, (far[0], 1))
            connection.close()
    assert seen is not None
    assert seen["acked_bytes"] == 1000
    assert seen["cwnd"] >= 10
    assert nobody is None


def test_a_kill_during_the_third_column_leaves_nothing_elsewhere(tmp_path: Path) -> None:
    """The program of ``--linux`` works in the results directory, not in one with a random name."""
    program, out, elsewhere = tmp_path / "linux", tmp_path / "out", tmp_path / "tmp"
    elsewhere.mkdir()
    program.write_text('#!/bin/sh\necho "$1 $2" > "$1/begun"\nkill -9 $PPID\nexec sleep 30\n')
    program.chmod(0o755)
    code = (
        "import sys; from pathlib import Path; from lfnlab import dumbbell;"
        "from lfnlab.testbed import agree;"
        'path = dumbbell(rate="10Mbit/s", rtt="40ms", buffer="20packets", duration="1s");'
        'scenario = path.flow("reno");'
        'agree._linux(scenario, Path(sys.argv[1]), Path(sys.argv[2]), "case0", {})'
    )
    environment = {**os.environ, "TMPDIR": str(elsewhere)}
    command = [sys.executable, "-c", code, program, out]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (out / "begun").read_text() == f"{out} case0\n"
    assert list(elsewhere.iterdir()) == []


def test_a_scenario_in_both_worlds(tmp_path: Path) -> None:
    scenario = tmp_path / "short.toml"
    scenario.write_text(
        'schema = 1\nduration = "4s"\nwarmup = "1s"\n[link]\nrate = "20Mbit/s"\n'
        'queue = { size = "0.5bdp" }\n[[flow]]\nlaw = "reno"\nrtt = "20ms"\n'
    )
    out = tmp_path / "out"
    command = [*LFN, "agree", scenario, "--out", out, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    said = json.loads(done.stdout)
    # Late on a busy machine, and then it says so.
    assert done.returncode == (6 if said["invalid"] else 0 if said["within"] else 1), done.stderr
    assert ("INVALID" in done.stderr) == bool(said["invalid"])
    rows = {row["quantity"]: row for row in said["compared"]}
    assert list(rows) == list(agree.QUANTITIES)
    most_bps = 20e6 * 1448 / 1514
    assert most_bps / 4 < rows["goodput_bps"]["measured"] < most_bps * 1.05
    assert rows["window_before_segments"]["simulated"] == pytest.approx(50, abs=2)
    assert said["notes"] == ["no virtual-time Linux (--linux): no third column"]
    results = Results.load(out)
    assert [run.factors["on"] for run in results.runs] == [agree.SIMULATOR, agree.TEST_BED]
    assert results.frame()["on"].to_list() == [agree.SIMULATOR, agree.TEST_BED]
    page = (out / "report.html").read_text()
    assert "Simulator and test bed" in page
    assert "mean window" in page
    assert (out / "figures" / "windows.png").stat().st_size > 10_000
    for command in ("report", "table", "metrics", "plot"):
        subprocess.run([*LFN, command, out], check=True, capture_output=True, timeout=LIMIT_S)
