"""Plans of experiments: seeds, bounds, and signals while they are made."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import time
import warnings
from pathlib import Path

import pytest
from command import LFN
from command import process as lfn

import lfnlab
from lfnlab import Design, Draws, Range, Scenario, ScenarioError, SeedsWarning, dumbbell, sweep
from lfnlab.analysis.summary import averages
from lfnlab.experiment.plan import Case, Plan, mixed
from lfnlab.experiment.sweep import Sweep

QUIET = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s").flow("reno")
LOSSY = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s", loss=0.01).flow("reno")
FLOW = '[[flow]]\nlaw = "reno"\nrtt = "10ms"\n'


@pytest.mark.parametrize("count", [0, -1, 1_000_001, 99999999999999999999])
@pytest.mark.parametrize("scenario", [QUIET, LOSSY])
def test_seeds_have_a_bound(scenario: Scenario, count: int) -> None:
    with pytest.raises(ScenarioError, match=f"seeds: {count}; allowed: from 1 to 1000000"):
        Plan([Case(scenario)], count)


def test_all_runs_of_a_plan_have_a_bound() -> None:
    with pytest.raises(
        ScenarioError, match="1,200,000 runs in 2 of 3 cases; allowed: up to 1000000"
    ):
        Plan([Case(LOSSY)] * 3, 600_000)


@pytest.mark.parametrize("seeds", [[-1], [2**63], [1.5], ["1"], "12", [1, 1], []])
def test_listed_seeds_are_whole_numbers_each_once(seeds: list[int]) -> None:
    with pytest.raises(ScenarioError, match=r"seeds: .*; allowed: "):
        Plan([Case(LOSSY)], seeds)


def test_the_last_seed_is_one_that_a_scenario_can_have() -> None:
    last = LOSSY.with_seed(2**63 - 1)
    (run,) = Plan([Case(last)], 1).runs
    assert run.seed == 2**63 - 1
    with pytest.raises(ScenarioError, match="seeds: 2 from 9223372036854775807 on; allowed"):
        Plan([Case(last)], 2)


def test_points_have_a_bound_and_no_list_is_made_of_them() -> None:
    rtt = {"flow[0].rtt": Range("10ms", "20ms")}
    with pytest.raises(ScenarioError, match=r"points: 1000000000000; allowed: .*1000000"):
        Draws(10**12, rtt)
    with pytest.raises(
        ScenarioError, match=r"100000000000000000000 points; allowed: up to 1000000"
    ):
        Design(grid={f"flow[{i}].rtt": ["10ms"] * 10 for i in range(20)})
    design = Design(
        grid={"link.rate": ["10Mbit/s", "20Mbit/s"]},
        zip={"flow[0].law": ["reno", "cubic", "bic"], "flow[0].rtt": ["1ms", "2ms", "3ms"]},
        random=Draws(5, {"link.loss": Range(0.1, 0.2)}),
    )
    assert len(design) == len(list(design)) == 2 * 3 * 5


@pytest.mark.parametrize("command", ["run", "sweep", "compare"])
def test_no_command_makes_so_many_runs(command: str, tmp_path: Path) -> None:
    text = f'schema = 1\nduration = "1s"\n[link]\nrate = "10Mbit/s"\nloss = 0.01\n{FLOW}'
    many = "99999999999999999999"
    (tmp_path / "run.toml").write_text(text)
    design = '[sweep]\nseeds = 9223372036854775807\n[sweep.grid]\n"link.rate" = ["10Mbit/s"]\n'
    (tmp_path / "sweep.toml").write_text(text + design)
    words = {
        "run": ["run", "run.toml", "--seeds", many],
        "compare": [
            "compare",
            "--law",
            "reno",
            "--rate",
            "10Mbit/s",
            "--rtt",
            "9ms",
            "--seeds",
            many,
        ],
        "sweep": ["sweep", "sweep.toml"],
    }[command]
    done = lfn(*words, cwd=tmp_path)
    assert done.returncode == 2, done
    assert "allowed: from 1 to 1000000" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "lfn-results").exists()


@pytest.mark.parametrize("jobs", [0, 10_001, 10**20])
def test_jobs_have_a_bound(jobs: int, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=f"jobs: {jobs}; allowed: from 1 to 10000"):
        lfnlab.execute(QUIET, jobs=jobs, out=tmp_path / "out")


def test_python_says_that_seeds_would_be_the_same_run(tmp_path: Path) -> None:
    with pytest.warns(SeedsWarning, match="^one run instead of 5 seeds: nothing is random there"):
        results = lfnlab.execute(QUIET, seeds=5, out=tmp_path / "one")
    assert len(results.runs) == 1
    with pytest.warns(SeedsWarning, match="one run instead of 2 seeds in 1 of 2 cases: nothing is"):
        sweep(QUIET, grid={"link.loss": [0.0, 0.1]}, seeds=[3, 4], out=tmp_path / "two")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lfnlab.execute(QUIET, out=tmp_path / "three")
        assert len(lfnlab.execute(LOSSY, seeds=2, out=tmp_path / "four").runs) == 2


def test_each_line_that_asks_for_needless_seeds_is_named(tmp_path: Path) -> None:
    empty = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            lfnlab.compare(["reno"], empty, seeds=5, out=tmp_path)
        lfnlab.compare(["reno"], empty, seeds=5, out=tmp_path)
        sweep(empty.flow("reno"), grid={"flow[0].rtt": ["9ms"]}, seeds=5, out=tmp_path)
    assert [told.category for told in caught] == [SeedsWarning] * 3
    assert {told.filename for told in caught} == {__file__}


def test_a_command_says_it_once(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(QUIET.to_toml())
    done = lfn("run", "run.toml", "--seeds", "5", "--no-report", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.count("nothing in the scenario is random") == 1
    assert "Warning" not in done.stderr


KMSG = Path("/proc/kmsg")
"""A regular file for ``stat`` whose reader waits for ever."""


def _blocks() -> bool:
    try:
        descriptor = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        while os.read(descriptor, 8192):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


@pytest.mark.skipif(
    not _blocks(), reason="needs /proc/kmsg that can be read and has nothing to say"
)
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "text",
    [
        f'[link]\ntrace = "{KMSG}"\n{FLOW}',
        f'[link]\nrate = "10Mbit/s"\n{FLOW}[[schedule]]\nlink = "forward"\nfile = "{KMSG}"\n',
        f'[link]\nrate = "1Mbit/s"\n[[traffic]]\nvectors = {{ file = "{KMSG}", scale = 1.0 }}\n',
    ],
)
def test_a_signal_ends_the_wait_for_a_file_of_a_scenario(
    text: str, sent: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "run.toml").write_text(f'schema = 1\nduration = "1s"\n{text}')
    command = [*LFN, "run", "run.toml"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        try:
            _wait_until_open(process.pid)
            process.send_signal(sent)
            _, stderr = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130, stderr
    assert stderr.startswith("lfn: interrupted;")


def _wait_until_open(pid: int) -> None:
    """Until the process has the file open."""
    for _ in range(600):
        opened = Path(f"/proc/{pid}/fd")
        if any(os.path.realpath(place) == str(KMSG) for place in opened.iterdir()):
            return
        time.sleep(0.05)
    raise AssertionError("the file was never opened")


def test_a_mean_says_over_how_many_seeds_it_is(tmp_path: Path) -> None:
    cases = [Case(LOSSY, {"case": "a"}), Case(LOSSY.flow("cubic"), {"case": "b"})]
    results = lfnlab.execute(cases, seeds=2, out=tmp_path / "out")
    assert averages(results).count("means over 2 seeds ±") == 1
    survivor = dataclasses.replace(results, runs=results.runs[:3], missing=1)
    assert "means over 1 to 2 seeds ±" in averages(survivor)
    assert "same run" not in averages(results)


def test_seeds_that_changed_nothing_are_told(tmp_path: Path) -> None:
    # One flow alone shares no queue, whatever the hash.
    queue = QUIET.to_toml().replace('size = "1bdp"', 'size = "50 packets"\nkind = "fq-codel"')
    results = lfnlab.execute(Scenario.from_toml(queue), seeds=3, out=tmp_path / "out")
    assert averages(results).endswith("; all seeds gave the same run")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_is_no_part_of_a_file(mark: str, tmp_path: Path) -> None:
    trace, series = "1\n2\n3\n", "time,rate\n0.2s,5Mbit/s\n"
    small = 'queue.size = "9 packets"'
    text = f'schema = 1\nduration = "1s"\n[link]\ntrace = "trace"\n{small}\n'
    text += f'[link.reverse]\nrate = "1Mbit/s"\n{small}\n{FLOW}'
    change = '[[schedule]]\nlink = "reverse"\nfile = "series.csv"\n'
    (tmp_path / "run.toml").write_text(mark + text + change, encoding="utf-8")
    (tmp_path / "trace").write_text(mark + trace, encoding="utf-8")
    (tmp_path / "series.csv").write_text(mark + series, encoding="utf-8")
    resolved = Scenario.load(tmp_path / "run.toml").check().to_document()
    assert resolved["schedule"][0]["link"] == "reverse"


@pytest.mark.parametrize("count", [100, 250, 1000])
def test_a_tenth_of_the_runs_predicts_the_time_of_all(count: int) -> None:
    base = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp").flow("reno")
    design = Design(grid={"duration": [f"{1.0 + 99.0 * (i / count) ** 3}s" for i in range(count)]})
    runs = Plan(Sweep(base, design).cases).runs
    order = mixed(runs)
    assert sorted(order) == sorted(runs)
    tenth = sum(run.events for run in order[: count // 10])
    assert 9.0 * tenth == pytest.approx(sum(run.events for run in order) - tenth, rel=0.3)
    last = [run.events for run in order[-count // 5 :]]
    assert last == sorted(last, reverse=True)
