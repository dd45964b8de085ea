"""Is a sweep what its design says, whole whatever stops it, and the same wherever it runs?"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from benches.sweep import kill_midway
from command import LFN
from stores import contents

import lfnlab
from lfnlab import (
    Choice,
    Design,
    Draws,
    LabError,
    Range,
    Scenario,
    ScenarioError,
    StoreError,
    Sweep,
    _core,
    dumbbell,
    sweep,
)
from lfnlab.cli import app as cli
from lfnlab.experiment.design import with_values
from lfnlab.experiment.executor import Simulator
from lfnlab.experiment.plan import Case, Plan
from lfnlab.experiment.run import execute
from lfnlab.results import integrity, maintenance
from lfnlab.results.index import Catalog
from lfnlab.results.provenance import code_version
from lfnlab.results.store import Store, recorded

if TYPE_CHECKING:
    from command import Lfn

# The loss never comes; it makes seeds differ.
SHORT = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s", loss=1e-9).flow("cubic")
SEEDED = [_core.Scenario(SHORT.with_seed(seed).to_toml()) for seed in range(3)]
# Its tables are kept, so its runs have folders.
KEPT = replace(SHORT, sample="10ms")
LAWS = {"flow[0].law": ["reno", "cubic"]}
FILE = """\
schema = 1
duration = "1s"
[link]
rate = "10Mbit/s"
[[flow]]
law = "cubic"
rtt = "10ms"
"""
DRAWN = 'start = "uniform(0s, 1us)"\n'
"""So that seeds differ."""


# What varies


def test_a_design_is_every_combination_of_its_parts() -> None:
    design = Design(
        grid={"a": [1, 2], "b": ["x"]},
        zip={"c": [1, 2, 3], "d": [4, 5, 6]},
        random=Draws(2, {"e": Choice(["p", "q"])}),
    )
    points = list(design)
    assert len(design) == len(points) == 2 * 3 * 2
    assert {(point["c"], point["d"]) for point in points} == {(1, 4), (2, 5), (3, 6)}
    assert [point["a"] for point in points] == [1] * 6 + [2] * 6


def test_a_latin_hypercube_has_one_point_in_each_part_of_every_range() -> None:
    draws = Draws(50, {"x": Range(0.0, 1.0), "y": Range("1ms", "1s", "log")}, seed=3)
    points = draws.latin_hypercube()
    assert sorted(int(point["x"] * 50) for point in points) == list(range(50))
    ms = [float(point["y"].removesuffix("ms")) for point in points]
    assert sum(1 <= value < 10 for value in ms) in (16, 17), "a third of a log range of 3 decades"
    assert [point["x"] for point in points] != sorted(point["x"] for point in points)


def test_draws_of_a_key_depend_on_seed_and_key_alone() -> None:
    alone = Draws(5, {"x": Range(0.0, 1.0)}).random()
    both = Draws(5, {"w": Range(0.0, 1.0), "x": Range(0.0, 1.0)}).random()
    assert [point["x"] for point in alone] == [point["x"] for point in both]
    assert alone != Draws(5, {"x": Range(0.0, 1.0)}, seed=2).random()


def test_whole_numbers_and_packets_stay_whole() -> None:
    points = Draws(300, {"n": Range(1, 3), "q": Range("10 packets", "12 packets")}).random()
    assert {point["n"] for point in points} == {1, 2, 3}
    assert {point["q"] for point in points} == {"10 packets", "11 packets", "12 packets"}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Range("10ms", "1Gbit/s"), "units do not agree"),
        (lambda: Range("10ms", "5ms"), "larger end"),
        (lambda: Range(0.0, 1.0, "log"), "begins above 0"),
        (lambda: Choice([]), "at least one value"),
        (lambda: Draws(0, {"x": Range(0.0, 1.0)}), "at least 1"),
        (lambda: Draws(3, {}), "no key"),
        (lambda: Design(grid={"link.rate": []}), "at least one value"),
        (lambda: Design(grid={"link.rate": "1Gbit/s"}), "at least one value"),
        (lambda: Design(zip={"a": [1], "b": [1, 2]}), "different lengths"),
        (lambda: Design(grid={"a": [1]}, zip={"a": [1]}), "swept twice"),
    ],
)
def test_a_design_that_is_none_says_why(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        make()


def test_a_key_may_be_a_table_a_list_or_all_groups() -> None:
    base = SHORT.flow("reno", rtt="20ms")
    queues = [{"kind": "codel"}, {"kind": "red", "size": "50 packets"}]
    found = Sweep(base, Design(grid={"link.queue": queues, "flow[*].law": ["htcp"]})).cases
    kinds = [case.scenario.check().to_document()["link"]["queue"]["kind"] for case in found]
    assert kinds == ["codel", "red"]
    assert all(flow.law == "htcp" for case in found for flow in case.scenario.flows)
    assert found[0].factors["link.queue"] == '{"kind": "codel"}'


def test_a_key_may_be_a_parameter_of_a_law() -> None:
    base = SHORT.flow("evcp:n1=1:s=16", rtt="10ms")
    document = with_values(base.to_document(), {"flow[1].law:n1": 3, "flow[1].law:n2": 7})
    assert [flow["law"] for flow in document["flow"]] == ["cubic", "evcp:s=16:n1=3:n2=7"]
    with pytest.raises(ScenarioError, match="link:n1: only the name of a law"):
        with_values(base.to_document(), {"link:n1": 3})


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("", r"no table \[sweep\]"),
        ("[sweep]", r"no table \[sweep\]"),
        ("[sweep.grid]\n'link.rat' = ['1Gbit/s']", r":9: with link.rat = 1Gbit/s: .*mean \"rate\""),
        ("[sweep.grid]\n'flow[1].law' = ['reno']", r":9: .*no entry \[1\]; .* has 1"),
        ("[sweep.grid]\n'link.rate' = ['fast']", r":9: with link.rate = fast: link.rate"),
        ("[sweep.grid]\n'link.rate' = []", r':9: sweep.grid."link.rate": .*at least one'),
        ("[sweep.grid]\n'link rate' = [1]", r":9: .*not a key"),
        ("[sweep]\ngird = { a = [1] }", r":9: sweep.gird: unknown key; allowed: .*grid"),
        ("[sweep]\nseeds = 0\ngrid = { seed = [1] }", r":9: sweep.seeds: 0; allowed"),
        ("[sweep.random]\n'link.rate' = ['1Gbit/s']", r"sweep.random: no points"),
        ("[sweep.random]\npoints = 2\n'link.rate' = 3", r':10: sweep.random."link.rate": 3'),
        ("sweep = 3", "no table|unknown key"),
    ],
)
def test_a_fault_names_file_line_and_key(table: str, says: str, tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f"{FILE}{table}\n")
    err = lfn.refuses("sweep", file, "--out", tmp_path / "out")
    assert re.search(says, err), err
    assert err.startswith(f"lfn: {file}")
    assert not (tmp_path / "out").exists()


# Running


def test_a_sweep_runs_once_and_its_summary_is_a_frame(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        FILE + DRAWN + "[sweep]\nseeds = 2\n[sweep.grid]\n'flow[0].law' = ['reno', 'cubic']\n"
        "'link.rate' = ['10Mbit/s', '20Mbit/s']\n"
    )
    out = tmp_path / "out"
    results = sweep(file, out=out)
    assert len(results.runs) == 8
    assert results.runs[0].factors == {"flow[0].law": "reno", "link.rate": "10Mbit/s"}
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*")}
    sweep(file, out=out)
    assert before == {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*")}
    frame = lfnlab.open(out).summary()
    assert isinstance(frame, pl.LazyFrame)
    counts = frame.group_by("law", "link.rate_bps").len().collect()
    assert sorted(counts.rows()) == [
        ("cubic", 1e7, 2),
        ("cubic", 2e7, 2),
        ("reno", 1e7, 2),
        ("reno", 2e7, 2),
    ]
    said = results.frame().sort("hash")
    assert said["goodput_bps"].equals(frame.sort("hash").collect()["goodput_bps"])
    assert json.loads((out / "experiment.json").read_text())["source"] == file.read_text()


def test_a_dry_run_predicts_and_runs_nothing(tmp_path: Path, lfn: Lfn) -> None:
    file, out = tmp_path / "s.toml", tmp_path / "out"
    file.write_text(f"{FILE}[sweep.grid]\nseed = [1, 2, 3, 4]\n")
    command = ["sweep", str(file), "--out", str(out), "--dry-run", "--json"]
    said = json.loads(lfn(*command))
    assert (said["runs"], said["there"], said["points"]) == (4, 0, 4)
    assert said["cpu_s"] > 0
    assert not out.exists()
    assert cli.call(command[:4]) == cli.OK
    kept = sum(
        -(-path.stat().st_size // 4096) * 4096 if path.is_file() else 4096
        for path in (out / "runs").rglob("*")
    )
    assert kept == pytest.approx(said["disk_bytes"], rel=0.2)
    lfn.said()
    assert json.loads(lfn(*command))["there"] == 4


def test_shards_merge_into_the_same_store(tmp_path: Path) -> None:
    whole = sweep(SHORT, grid=LAWS, seeds=3, out=tmp_path / "whole")
    for part in (1, 2):
        sweep(SHORT, grid=LAWS, seeds=3, out=tmp_path / f"{part}", shard=(part, 2))
        assert len(Store(tmp_path / f"{part}").keys()) == 3
        assert not (tmp_path / f"{part}" / "experiment.json").exists()
    command = ["store", "merge", *(str(tmp_path / name) for name in ("all", "1", "2"))]
    assert cli.call(command) == cli.OK
    assert contents(tmp_path / "all") == contents(tmp_path / "whole")
    again = sweep(SHORT, grid=LAWS, seeds=3, out=tmp_path / "all")
    assert [run.path.name for run in again.runs] == [run.path.name for run in whole.runs]


@pytest.mark.parametrize("base", [SHORT, KEPT], ids=["summaries", "tables"])
def test_a_failed_run_is_listed_and_tried_again(
    base: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _core.run_many

    def unlucky(scenarios: Any, *rest: Any, **more: Any) -> Any:
        if any(scenario.seed == 2 for scenario in scenarios):
            raise LabError("packets do not add up")
        return real(scenarios, *rest, **more)

    monkeypatch.setattr(_core, "run_many", unlucky)
    results = sweep(base, grid=LAWS, seeds=3, out=tmp_path)
    assert [(run.seed, run.factors["flow[0].law"]) for run in results.failures] == [
        (2, "reno"),
        (2, "cubic"),
    ]
    assert len(results.runs) == len(lfnlab.Results.load(tmp_path).runs) == 4
    monkeypatch.setattr(_core, "run_many", real)
    assert not sweep(base, grid=LAWS, seeds=3, out=tmp_path).failures


@pytest.mark.parametrize(
    ("said", "runs"), [('sample = "10ms"\n', 150), ("", 2000)], ids=["tables", "summaries"]
)
def test_killed_at_random_a_sweep_ends_with_the_same_bytes(
    said: str, runs: int, tmp_path: Path
) -> None:
    """The short form of ``python -m benches.sweep kill``."""
    file = tmp_path / "s.toml"
    text = FILE if said else FILE.replace("1s", "10s", 1)
    table = f"[sweep]\nseeds = {runs}\n[sweep.grid]\n'flow[0].law' = ['reno']\n"
    file.write_text(f"{said}{text}{DRAWN}{table}")
    command = [*LFN, "sweep", str(file), "--no-report", "--out"]
    subprocess.run([*command, tmp_path / "whole"], check=True, capture_output=True, timeout=120)
    there = 0
    for killed in range(3):
        process = subprocess.Popen([*command, tmp_path / "killed"], stdout=subprocess.DEVNULL)
        there = kill_midway(process, tmp_path / "killed", there, random.Random(killed), runs // 4)
    subprocess.run([*command, tmp_path / "killed"], check=True, capture_output=True, timeout=120)
    assert contents(tmp_path / "killed").keys() == contents(tmp_path / "whole").keys()
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    assert Catalog(tmp_path / "killed").summary().collect().height == runs
    assert all(found is None for _, found in maintenance.verify(tmp_path / "killed"))


def test_two_sweeps_share_a_store(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f"{FILE}{DRAWN}[sweep]\nseeds = 60\n[sweep.grid]\n'flow[0].law' = ['reno']\n")
    command = [*LFN, "sweep", str(file), "--out", str(tmp_path / "out")]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(120) for process in both] == [0, 0]
    assert len(Store(tmp_path / "out").keys()) == 60
    assert Catalog(tmp_path / "out").summary().collect()["key"].n_unique() == 60
    assert not [path for path in (tmp_path / "out" / "runs").iterdir() if path.name[0] == "."]


# The store


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("swept")
    sweep(KEPT, grid=LAWS, seeds=2, out=out)
    return out


def copy(source: Path, to: Path) -> Path:
    subprocess.run(["cp", "-r", source, to], check=True)
    return to


def test_provenance_says_by_what_where_and_from_what(swept: Path) -> None:
    for run in (swept / "runs").iterdir():
        said = json.loads((run / "provenance.json").read_text())
        assert set(said) == {
            *("code", "git", "python", "packages", "system", "host", "cpu", "cores", "finished"),
            *("wall_s", "cpu_s", "hash", "command", "resolved", "bytes", "files", "sha256"),
        }
        assert said["resolved"] == Scenario.load(run / "scenario.toml").check().to_document()
        assert set(said["files"]) == {f.name for f in run.iterdir()} - {"provenance.json"}


def test_verify_finds_one_changed_bit_and_gc_removes_the_run(
    swept: Path, tmp_path: Path, lfn: Lfn
) -> None:
    root = copy(swept, tmp_path / "s")
    assert cli.call(["store", "verify", str(root)]) == cli.OK
    run = sorted((root / "runs").iterdir())[1]
    data = bytearray((run / "flows.parquet").read_bytes())
    data[100] ^= 1
    (run / "flows.parquet").write_bytes(data)
    said = lfn("store", "verify", root, code=cli.FAILED)
    assert f"{run.name}: flows.parquet is not what was stored" in said
    assert f"lfn store gc {root} --damaged --yes" in said
    assert str(run) in lfn("store", "gc", root, "--damaged")
    assert run.exists(), "it lists first"
    assert cli.call(["store", "gc", str(root), "--damaged", "--yes"]) == cli.OK
    assert not run.exists()
    assert Catalog(root).summary().collect().height == 3
    sweep(KEPT, grid=LAWS, seeds=2, out=root)
    assert contents(root) == contents(swept)


def test_gc_leaves_what_may_be_written_now(swept: Path, tmp_path: Path) -> None:
    root = copy(swept, tmp_path / "s")
    key = next((root / "runs").iterdir()).name
    old, new = (root / "runs" / f".{key}.{word}" for word in ("aaaaaaaa", "bbbbbbbb"))
    for left, age_s in ((old, 2 * maintenance.DEAD_AFTER_S), (new, 1.0)):
        left.mkdir()
        os.utime(left, (time.time() - age_s,) * 2)
    assert cli.call(["store", "gc", str(root)]) == cli.OK
    assert old.exists()
    assert cli.call(["store", "gc", str(root), "--yes"]) == cli.OK
    assert not old.exists()
    assert new.exists()
    assert len(Store(root).keys()) == 4


def test_gc_of_a_version_removes_its_runs_alone(swept: Path, tmp_path: Path) -> None:
    root = copy(swept, tmp_path / "s")
    run = sorted((root / "runs").iterdir())[0]
    said = integrity.provenance_of(run)
    (run / "provenance.json").write_bytes(integrity.sealed(said | {"code": "0.0.1+old"}))
    run.rename(run.with_name(integrity.address("0.0.1+old", said["resolved"])))
    assert cli.call(["store", "gc", str(root), "--code", "0.0.1+old", "--yes"]) == cli.OK
    assert len(Store(root).keys()) == 3
    assert not run.exists()


def test_merge_leaves_damaged_runs_and_tells_of_unequal_ones(
    swept: Path, tmp_path: Path, lfn: Lfn
) -> None:
    root = copy(swept, tmp_path / "s")
    bad, other, *_ = sorted((root / "runs").iterdir())
    (bad / "summary.json").write_text("{}")
    files = {file.name: file.read_bytes() for file in other.iterdir()} | {"summary.json": b"{} "}
    said = integrity.provenance_of(other)
    del files["provenance.json"]
    (other / "summary.json").write_bytes(b"{} ")
    (other / "provenance.json").write_bytes(recorded(said, files))
    into = copy(swept, tmp_path / "into")
    out = lfn("store", "merge", into, root, code=cli.FAILED)
    assert f"{bad.name}: summary.json has 2 bytes" in out
    assert f"{other.name}: other bytes" in out
    assert contents(into) == contents(swept)


def test_show_and_ls(swept: Path, lfn: Lfn) -> None:
    runs = json.loads(lfn("store", "ls", swept, "--json"))
    assert {tuple(run["laws"]) for run in runs} == {("reno",), ("cubic",)}
    assert '"command"' in lfn("store", "show", swept, runs[0]["key"][:10])
    assert cli.call(["store", "show", str(swept), "nothing"]) == cli.USAGE
    assert cli.call(["store", "ls", str(swept)]) == cli.OK
    assert cli.call(["store", "ls", str(swept / "runs")]) == cli.STORE


def test_a_store_of_a_later_version_is_refused(swept: Path, tmp_path: Path, lfn: Lfn) -> None:
    root = copy(swept, tmp_path / "s")
    (root / "store.json").write_text('{"layout": 3}')
    with pytest.raises(StoreError, match=r"layout 3.*up to 2"):
        sweep(KEPT, grid=LAWS, out=root)
    with pytest.raises(StoreError, match="layout 3"):
        lfnlab.open(root)
    assert "Install a later one" in lfn.err("store", "verify", root, code=cli.STORE)


def test_the_summary_follows_the_runs(swept: Path, tmp_path: Path) -> None:
    """Parts lost, a run removed by hand, a process killed while it wrote them: all is made good."""
    root = copy(swept, tmp_path / "s")
    wanted = Catalog(root).summary().sort("key").collect()
    for part in (root / "summary").glob("*.parquet"):
        part.unlink()
    assert Catalog(root).summary().sort("key").collect().equals(wanted, null_equal=True)
    run = sorted((root / "runs").iterdir())[0]
    copy(run, tmp_path / "run")
    subprocess.run(["rm", "-r", run], check=True)
    (root / "summary" / ".02-000009-000001-0123456789abcdef.parquet").write_bytes(b"half")
    assert Catalog(root).summary().collect().height == 3
    copy(tmp_path / "run", run)
    assert Catalog(root).summary().sort("key").collect().equals(wanted, null_equal=True)
    names = sorted(path.name for path in (root / "summary").iterdir())
    assert [name[:16] for name in names] == [".lock", "02-000002-000001", "02-000002-000002"]


def test_runs_without_flows_have_a_row(tmp_path: Path) -> None:
    base = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="9 packets", duration="1s").with_background(
        1
    )
    sweep(base, grid={"background.level": [1, 2]}, out=tmp_path)
    frame = lfnlab.open(tmp_path).summary().sort("background.level").collect()
    assert frame["background.level"].to_list() == [1, 2]
    assert frame["law"].to_list() == [None, None]


def test_a_run_waits_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from lfnlab.experiment import executor

    running, lock = [0, 0], threading.Lock()

    def simulate(*_: object) -> dict[str, bytes]:
        with lock:
            running[0] += 1
            running[1] = max(running)
        together.wait(60)
        with lock:
            running[0] -= 1
        return {}

    monkeypatch.setattr(executor, "simulate", simulate)
    monkeypatch.setattr(executor, "memory_limit_bytes", lambda: 100)
    for need_bytes, wanted in ((40, 2), (60, 1), (1000, 1), (1, 4)):
        work = [executor.Work(str(i), SEEDED[0], need_bytes) for i in range(8)]
        together, running[1] = threading.Barrier(wanted), 0
        found: dict[str, object] = {}
        executor.on_threads(iter(work), 4, "", partial(_keep, found), _no_rows, lambda *_: None)
        assert [*found.values()] == [{}] * 8, need_bytes
        assert running == [0, wanted], need_bytes


def test_a_run_over_its_memory_beside_others_runs_again_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lfnlab.errors import OverMemory
    from lfnlab.experiment import executor

    both, third = threading.Barrier(2), threading.Event()
    seen: list[int] = []

    def simulate(scenario: _core.Scenario, *_: object) -> dict[str, bytes]:
        seen.append(scenario.seed)
        if len(seen) > 2:
            third.set()
        else:
            both.wait(60)
        if scenario.seed == 0 and (lost or not third.is_set()):
            raise OverMemory("it holds too much")
        third.wait(60)
        return {}

    monkeypatch.setattr(executor, "simulate", simulate)
    for lost in (False, True):
        seen.clear()
        third.clear()
        found: dict[str, object] = {}
        work = [executor.Work(str(i), SEEDED[i], 1) for i in range(3)]
        took = partial(_keep, found)
        executor.on_threads(iter(work), 2, "", took, _no_rows, lambda *_: None)
        assert sorted(seen) == [0, 0, 1, 2]
        assert seen[-1] == 0
        assert isinstance(found.pop("0"), OverMemory) == lost
        assert found == {"1": {}, "2": {}}


def _no_rows(*_: object) -> None:
    raise AssertionError("none of these is brief")


def _keep(found: dict[str, object], work: Any, files: object) -> None:
    assert work.key not in found, "taken once"
    found[work.key] = files


def test_a_run_has_its_scenario_with_its_seed_and_is_named_by_it() -> None:
    text = FILE.replace("[link]", 'name = "a\\nseed = 3\\n"\nseed = 7\n[link]\nloss = 1e-9')
    plan = Plan([Case(SHORT), Case(Scenario.from_toml(text))], [4, 2**40])
    for run in plan.runs:
        wanted = plan.cases[run.case].scenario.with_seed(run.seed)
        assert plan.scenario(run).text == wanted.to_toml()
        assert run.key == integrity.address(code_version(), wanted.check().to_document())


def test_the_estimate_is_near_what_runs_take(tmp_path: Path) -> None:
    base = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="2s").flow("cubic")
    asked = Sweep(base, Design(grid={"link.rate": ["100Mbit/s", "300Mbit/s", "1Gbit/s"]}), 4)
    estimate = Plan(asked.cases, asked.seeds).estimate(set(), 1)
    results = asked.run(out=tmp_path, jobs=1)
    took_s = sum(run.summary["cpu_s"] for run in results.runs)
    assert took_s / 3 < estimate.cpu_s < 3 * took_s + 0.2


def test_a_sweep_is_drawn_while_it_runs(tmp_path: Path) -> None:
    """Its runs so far are results; the command names the number of missing runs."""
    seen: list[tuple[int, str | None]] = []
    store = tmp_path / "store"
    base = dumbbell(rate="5Mbit/s", rtt="10ms", buffer="1bdp", duration="60s")

    def look(done: float, total: int) -> None:
        if (store / "experiment.json").exists() and done < total and not seen:
            assert cli.call(["plot", str(store), "--figure", "goodput"]) == 0
            assert cli.call(["table", str(store), "--csv"]) == 0
            found = lfnlab.Results.load(store)
            seen.append((len(found.runs), found.completeness))

    rates = [f"{rate}Mbit/s" for rate in range(5, 65)]
    whole = sweep(base.flow("reno"), grid={"link.rate": rates}, out=store, jobs=1, progress=look)
    assert len(whole.runs) == 60
    (count, said), *_ = seen
    assert 0 < count < 60
    assert said == f"{count} of 60 runs are stored; repeat the command to run the others"


def test_failed_runs_are_told_when_they_fail(tmp_path: Path) -> None:
    class Broken(lfnlab.Law):
        """Fails at its first ACK."""

        def on_ack(self, n: int, ack: lfnlab.Ack) -> None:
            raise ValueError("broken")

        def on_loss(self, loss: lfnlab.Loss) -> None:
            raise ValueError("broken")

    path = dumbbell(rate="5Mbit/s", rtt="10ms", buffer="1bdp", duration="2s")
    told: list[str] = []
    found = execute(
        [Case(path.flow(Broken), {"law": "Broken"}), Case(path.flow("reno"), {"law": "reno"})],
        out=tmp_path / "store", keep_going=True, failed=told.append,
    )  # fmt: skip
    assert len(found.runs) == len(found.failures) == 1
    assert told == [found.failures[0].error]


class _Recording(Simulator):
    """The simulator, which remembers in what order runs began."""

    def __init__(self) -> None:
        self.began: list[str] = []

    def simulate(self, scenario: _core.Scenario, *arguments: Any) -> Any:
        self.began.append(json.loads(scenario.resolved)["duration"])
        return super().simulate(scenario, *arguments)


def test_the_longest_of_few_runs_begin_first_and_results_keep_their_order(tmp_path: Path) -> None:
    base = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp").flow("reno")
    durations = ["1s", "3s", "2s"]
    backend = _Recording()
    swept = Sweep(base, Design(grid={"duration": durations})).run(
        out=tmp_path, jobs=1, backend=backend
    )
    assert backend.began == ["3s", "2s", "1s"]
    assert [str(run.scenario.duration) for run in swept.runs] == durations
