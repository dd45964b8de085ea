"""Is nothing computed twice, and nothing lost?"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from command import LFN, process

from lfnlab import Results, Scenario, StoreError, _core, compare, dumbbell
from lfnlab.analysis.summary import to_json
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.results.store import FEW, TABLES, Store, run_keys

# The loss never comes; it makes seeds differ.
SHORT = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s", loss=1e-9)


def stored(root: Path) -> dict[Path, int]:
    """Every file of every run, and when it was written."""
    return {file: file.stat().st_mtime_ns for file in (root / "runs").rglob("*") if file.is_file()}


def test_a_run_holds_all_its_files(results: Results) -> None:
    wanted = {"summary.json", "scenario.toml", "provenance.json", *(f"{t}.parquet" for t in TABLES)}
    for run in results.runs:
        assert {file.name for file in run.path.iterdir()} == wanted
        assert run.scenario.with_seed(1).flows[0].law == run.factors["law"]


def test_a_run_that_is_there_is_not_run_again(tmp_path: Path) -> None:
    compare(["reno"], SHORT, seeds=2, out=tmp_path)
    before = stored(tmp_path)
    again = compare(["reno", "cubic"], SHORT, seeds=2, out=tmp_path)
    after = stored(tmp_path)
    assert len(again.runs) == 4
    assert {file: after[file] for file in before} == before
    assert len(after) == 2 * len(before)


def test_the_key_is_of_what_is_run() -> None:
    def keys(scenario: Scenario) -> list[str]:
        return run_keys(_core.Scenario(scenario.to_toml()), [1, 2])

    first, second = keys(SHORT.flow("cubic"))
    assert first != second
    assert keys(SHORT.flow("cubic", count=1)) == [first, second], "a default that is said"
    assert keys(SHORT.flow("cubic").with_seed(2)) == [first, second]
    assert keys(SHORT.flow("reno"))[0] not in (first, second)


@pytest.mark.parametrize("count", [1, FEW + 1])
def test_a_run_appears_when_it_is_on_the_disk(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few runs are synced file by file, many with their file system; then come the renames."""
    done: list[tuple[str, str]] = []

    def sync(descriptor: int) -> None:
        done.append(("sync", os.path.realpath(f"/proc/self/fd/{descriptor}")))

    def rename(self: Path, target: Path) -> Path:
        done.append(("rename", str(self)))
        os.rename(self, target)
        return target

    class LibC:
        def syncfs(self, descriptor: int) -> int:
            done.append(("syncfs", os.path.realpath(f"/proc/self/fd/{descriptor}")))
            return 0

    store = Store(tmp_path)
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: LibC())
    monkeypatch.setattr(type(tmp_path), "rename", rename)
    store.put({f"{n:024x}": {"a": b"1", "b": b"2"} for n in range(count)})
    renames = [place for place, (what, _) in enumerate(done) if what == "rename"]
    before, after = done[: renames[0]], done[renames[-1] + 1 :]
    made = {name for what, name in done if what == "rename"}
    if count <= FEW:
        synced = {name for _, name in before}
        assert synced == {f"{run}{file}" for run in made for file in ("/a", "/b", "")}
    else:
        assert before == [("syncfs", str(tmp_path / "runs"))]
    assert after == [("sync", str(tmp_path / "runs"))]
    assert len(made) == count


def test_jobs_do_not_change_results(tmp_path: Path) -> None:
    one = compare(["reno", "cubic"], SHORT, seeds=2, out=tmp_path / "1", jobs=1)
    four = compare(["reno", "cubic"], SHORT, seeds=2, out=tmp_path / "4", jobs=4)
    for a, b in zip(one.runs, four.runs, strict=True):
        assert a.summary["hash"] == b.summary["hash"]
        for table in TABLES:
            assert a.table(table).equals(b.table(table))


def test_results_are_read_back(results: Results) -> None:
    again = Results.load(results.root)
    assert again.title == results.title
    assert to_json(again) == to_json(results)


def test_progress_goes_up_to_the_end(tmp_path: Path) -> None:
    seen: list[tuple[float, int]] = []
    compare(["reno"], SHORT, seeds=3, out=tmp_path, progress=lambda *at: seen.append(at), jobs=1)
    assert seen[-1] == (3.0, 3)
    assert seen == sorted(seen)


def test_a_failure_keeps_what_was_stored(tmp_path: Path) -> None:
    """The store becomes unwritable between the first run and the second."""
    first = SHORT.flow("reno")
    execute([Case(first)], out=tmp_path)
    before = stored(tmp_path)

    def vanish(done: float, total: int) -> None:
        if done < total and (tmp_path / "runs").exists():
            (tmp_path / "runs").rename(tmp_path / "away")

    with pytest.raises(StoreError, match="cannot write results"):
        execute([Case(first), Case(SHORT.flow("cubic"))], out=tmp_path, progress=vanish)
    (tmp_path / "away").rename(tmp_path / "runs")
    assert stored(tmp_path) == before


@pytest.mark.parametrize("where", ["file", "/proc/lfnlab"])
def test_an_unwritable_directory_is_known_before_anything_runs(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("in the way")
    result = process("compare", "--law", "reno", "--duration", "1000s", "--out", tmp_path / where)
    assert result.returncode == 3
    assert result.stderr.startswith("lfn: cannot write results")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_full_disk_is_one_clear_error(tmp_path: Path) -> None:
    """No file may grow beyond 2 kB, which no table fits into."""
    before_results = compare(["reno"], SHORT, out=tmp_path)
    before = stored(tmp_path)

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    scenario = tmp_path / "s.toml"
    scenario.write_text(SHORT.flow("cubic").to_toml())
    result = subprocess.run(
        [*LFN, "run", scenario, "--out", tmp_path],
        capture_output=True,
        text=True,
        preexec_fn=small_files,
        timeout=60,
        check=False,
    )
    assert result.returncode == 3
    assert "File too large" in result.stderr
    assert "Traceback" not in result.stderr
    assert stored(tmp_path) == before
    assert before_results.runs[0].summary["flows"]
    assert [p.name for p in (tmp_path / "runs").iterdir()] == [before_results.runs[0].path.name]


def test_an_interrupt_keeps_finished_runs(tmp_path: Path) -> None:
    command = [*LFN, "compare", "--law", "reno,cubic", "--rate", "1Gbit/s", "--duration", "1s"]
    command += ["--loss", "1e-9"]
    command += ["--seeds", "2", "--jobs", "1", "--no-report", "--json", "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    # The same four runs are there; of the hundreds that follow, the interrupt stops all but a few.
    command[command.index("--seeds") + 1] = "5000"
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    runs = tmp_path / "runs"
    deadline = time.monotonic() + 60
    while len([p for p in runs.iterdir() if not p.name.startswith(".")]) < 6:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err == "lfn: interrupted; finished runs are kept; repeat the command to continue\n"
    kept = list(runs.iterdir())
    assert len(kept) >= 6
    for run in kept:
        assert json.loads((run / "summary.json").read_text())["flows"]


def test_a_report_of_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"experiment\.json"):
        Results.load(tmp_path)


def test_a_run_too_large_for_memory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "million.toml"
    path = dumbbell(rate="100Gbit/s", rtt="300ms", buffer="1bdp")
    file.write_text(replace(path, sample="10ms").flow("reno", count=1_000_000).to_toml())
    result = process("run", file, "--out", tmp_path / "out")
    assert result.returncode == 2
    assert f"{file}:" in result.stderr
    assert "memory" in result.stderr
    assert not os.path.exists(tmp_path / "out" / "runs")


def test_scenario_files_load(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SHORT.flow("reno").to_toml())
    assert Scenario.load(file) == SHORT.flow("reno")
