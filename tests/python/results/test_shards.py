"""Runs that keep their summaries alone, many in a file."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from command import LFN
from stores import contents

import lfnlab
from lfnlab import (
    Link,
    Queue,
    Results,
    Scenario,
    ShortFlows,
    StoreError,
    Traffic,
    _core,
    dumbbell,
    sweep,
)
from lfnlab.analysis import run_length, summary
from lfnlab.analysis import warnings as warning
from lfnlab.cli import app as cli
from lfnlab.errors import DamageWarning, UsageError
from lfnlab.experiment.run import execute
from lfnlab.results import integrity, maintenance, many, remade, shards
from lfnlab.results.cases import Rows
from lfnlab.results.index import Catalog, shard
from lfnlab.results.store import Store

if TYPE_CHECKING:
    from command import Lfn

# The loss never comes; it makes seeds differ.
SHORT = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s", loss=1e-9).flow("cubic")
USERS = Traffic(short_flows=ShortFlows(load="1Mbit/s"))
LAWS = {"flow[0].law": ["reno", "cubic"]}


def again(root: Path, base: Scenario = SHORT, seeds: int = 3) -> Results:
    return sweep(base, grid=LAWS, seeds=seeds, out=root)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("swept") / "store"
    again(out)
    return out


def files(root: Path) -> list[Path]:
    return sorted(path for path in (root / "runs").iterdir() if shards.NAME.fullmatch(path.name))


@pytest.mark.parametrize(
    "base",
    [
        SHORT,
        replace(SHORT.with_background(1), duration="3s"),
        SHORT.flow("udt", start="100ms").flow("reno", count=3, start="uniform(0s, 500ms)"),
        replace(SHORT.flow("bbr").with_traffic(USERS), warmup="300ms"),
        dumbbell(rate="5Mbit/s", rtt="30ms", buffer="20 packets", duration="2s").flow("vegas"),
    ],
    ids=["one", "background", "udt", "traffic", "no loss"],
)
def test_a_run_without_tables_is_the_run_with_them(base: Scenario, tmp_path: Path) -> None:
    """Its summary has the same bytes; a table that is asked for has the same rows."""
    whole = execute(base, out=tmp_path / "whole").runs[0]
    brief = execute(base, out=tmp_path / "brief", summaries=True).runs[0]
    assert whole.path.is_dir()
    assert not brief.path.exists()
    assert whole.path.name == brief.path.name
    assert contents(tmp_path / "whole").items() >= contents(tmp_path / "brief").items()
    assert integrity.tables_of(whole.path) == integrity.tables_of(brief.path)
    for table in integrity.tables_of(whole.path):
        assert brief.table(table).equals(whole.table(table), null_equal=True), table
    assert brief.scenario == whole.scenario
    assert run_length._counted(brief) == run_length._counted(whole)
    assert brief.by_law() == whole.by_law()
    rows = [Catalog(tmp_path / name).summary().collect() for name in ("whole", "brief")]
    one, other = (frame.drop("wall_s", "cpu_s") for frame in rows)
    assert one.select(sorted(one.columns)).equals(other.select(sorted(other.columns)))


@pytest.mark.parametrize("sampled", [replace(SHORT, sample="20ms"), replace(SHORT, sample_rows=99)])
def test_the_keys_of_samples_ask_for_tables(sampled: Scenario, tmp_path: Path) -> None:
    assert all(run.path.is_dir() for run in again(tmp_path / "kept", sampled).runs)
    off = again(tmp_path / "off", replace(SHORT, sample="off"))
    assert not any(run.path.exists() for run in off.runs)
    assert off.runs[0].table("flows").height == 0


def test_who_asks_for_tables_later_gets_them(swept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(swept, tmp_path / "store")
    before = contents(root)
    kept = again(root, replace(SHORT, sample="10ms"))
    assert all(run.path.is_dir() for run in kept.runs)
    assert before.items() <= contents(root).items(), "the default, written: the same runs"
    assert Catalog(root).summary().collect().height == 6


def test_the_result_says_what_is_kept(tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "s.toml"
    for said, expected in (("", True), ('sample = "10ms"\n', False)):
        file.write_text(f"{said}{SHORT.to_toml()}\n[sweep]\ngrid = {{ seed = [1, 2] }}\n")
        told = lfn("sweep", file, "--out", tmp_path / f"out{len(said)}", "--no-report")
        assert ("summaries alone" in told and "`sample`" in told) == expected


def test_older_stores_are_read_continued_and_merged(swept: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    again(old, replace(SHORT, sample="10ms"), seeds=2)
    (old / "store.json").write_text('{"layout": 1}')
    assert len(Results.load(old).runs) == 4
    assert Store(tmp_path / "new").shards.keys() == set()
    merged = [maintenance.merge(old, Store(tmp_path / "new"))]
    merged.append(maintenance.merge(swept, Store(tmp_path / "new")))
    assert [(one.taken, one.there) for one in merged] == [(4, 0), (2, 4)]
    assert not any(one.damaged or one.unequal for one in merged)
    again(old)
    assert json.loads((old / "store.json").read_text()) == {"layout": 2}
    for root in (old, tmp_path / "new"):
        found, wanted = contents(root), contents(swept)
        assert all(found[name] == wanted[name] for name in wanted if name.endswith(".json"))
        assert Catalog(root).summary().collect().height == 6


def test_a_run_in_two_shards_counts_once(swept: Path, tmp_path: Path) -> None:
    one, both = tmp_path / "one", shutil.copytree(swept, tmp_path / "both")
    again(one, seeds=2)
    for file in files(one):
        shutil.copy(file, both / "runs")
    assert len(files(both)) == 2
    store = Store(both)
    for _ in range(2):
        assert len(store.keys()) == 6
        assert sorted(Catalog(both).summary().collect()["key"]) == sorted(store.keys())
        assert contents(both) == contents(swept)
        store.shards.merge([file.name for file in files(both)], store)
        assert len(files(both)) == 1


def test_small_shards_are_merged_while_others_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writers to one store, each with its own view, and a reader: no run is ever away."""
    monkeypatch.setattr(shards, "MOST_SMALL", 5)
    scenarios = [_core.Scenario(SHORT.with_seed(seed).to_toml()) for seed in range(60)]
    runs = _core.run_many(scenarios, 1, None, sampled=False)
    from lfnlab.results.store import brief_files

    root = tmp_path / "store"
    Store(root)
    wrong: list[object] = []
    stored: list[str] = []

    def write(part: int) -> None:
        store = Store(root)
        store.shards = shards.Shards(root / "runs")
        for number in range(part, 60, 2):
            run = runs[number]
            assert run is not None
            key = f"{number:024x}"
            store.put_shard([shard({key: brief_files(run, scenarios[number], "", "now")})])
            stored.append(key)

    writers = [threading.Thread(target=write, args=(part,)) for part in (0, 1)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        wanted, there = list(stored), shards.Shards(root / "runs")
        for key in wanted:
            found = there.files(key)
            if found is None or b'"hash"' not in found["summary.json"]:
                wrong.append(key)
    for writer in writers:
        writer.join()
    assert not wrong
    assert len(stored) == 60
    assert len(files(root)) <= 12
    assert Catalog(root).summary().collect()["key"].n_unique() == 60


def harm(path: Path, how: str, draw: random.Random) -> None:
    data = bytearray(path.read_bytes())
    path.unlink()
    if how == "flip":
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        path.write_bytes(data)
    elif how == "cut":
        path.write_bytes(data[: draw.randrange(len(data))])
    elif how == "link":
        path.symlink_to("/etc/passwd")
    elif how == "directory":
        path.mkdir()
    else:
        path.with_name(f"0000001-{'0' * 32}.parquet").write_bytes(data)


@pytest.mark.parametrize("how", ["flip", "cut", "link", "directory", "rename"])
@pytest.mark.parametrize("number", range(4))
def test_damage_of_a_shard_is_said_and_made_good(
    how: str, number: int, swept: Path, tmp_path: Path, lfn: Lfn
) -> None:
    root = shutil.copytree(swept, tmp_path / "store")
    harm(files(root)[0], how, random.Random(number))
    (bad,) = files(root)
    with pytest.raises(StoreError, match=bad.name) as error:
        Results.load(root)
    assert "lfn store gc" in str(error.value)
    with pytest.raises(StoreError, match=bad.name):
        lfnlab.open(root).summary()
    assert bad.name in lfn("store", "verify", root, code=cli.FAILED)
    with pytest.warns(DamageWarning, match=bad.name):
        again(root)
    assert contents(root) == contents(swept)
    lfn("store", "gc", root, "--damaged", "--yes")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again(root)
    assert len(files(root)) == 1
    assert Catalog(root).summary().collect().height == 6


def test_gc_of_a_version_removes_its_runs_from_shards(swept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(swept, tmp_path / "store")
    store = Store(root)
    (rows,) = store.shards.whole(store.keys())
    first, second, *_ = sorted(store.keys())
    text = pl.col("provenance.json").str.replace(
        integrity.provenance_of(store.path(first))["code"], "old", literal=True
    )
    is_old = pl.col("key").is_in([first, second])
    store.drop([first, second])
    store.put_shard([rows.filter(is_old).with_columns(text, code=pl.lit("old"))])
    assert len(store.keys()) == 6
    assert cli.call(["store", "gc", str(root), "--code", "old", "--yes"]) == cli.OK
    assert store.keys() == set(rows["key"]) - {first, second}
    again(root)
    assert contents(root) == contents(swept)


def test_a_run_of_another_version_is_not_taken_for_ours(
    swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[[Path], dict[str, bytes] | None] = shards.files

    def changed(run: Path) -> dict[str, bytes] | None:
        found = real(run)
        return found and {**found, "summary.json": found["summary.json"] + b" "}

    root = shutil.copytree(swept, tmp_path / "store")
    (run, *_) = Results.load(root).runs
    monkeypatch.setattr(shards, "files", changed)
    with pytest.raises(StoreError, match="gives another run; repeat the command"):
        remade.table(run.path, "flows")


def test_very_many_runs_are_read_as_columns_with_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lfn: Lfn
) -> None:
    """The limit is lowered: the experiment's list, rows, means, tables and figures are the same."""
    lossy = replace(SHORT, link=Link(rate="10Mbit/s", loss=0.01, queue=Queue(size="1bdp")))
    design = {"flow[0].law": ["reno", "cubic"], "link.queue.size": ["0.5bdp", "2bdp"]}
    few = sweep(lossy, grid=design, seeds=6, out=tmp_path / "few")
    wanted = Results.load(tmp_path / "few")
    monkeypatch.setattr(many, "MANY", 5)
    monkeypatch.setattr(many, "LOOKED_AT", 24)
    swept = sweep(lossy, grid=design, seeds=6, out=tmp_path / "many")
    loaded = Results.load(tmp_path / "many")
    assert isinstance(loaded.runs, many.Runs)
    assert isinstance(loaded.cases.rows, Rows)
    for found in (swept, loaded):
        assert [run.path.name for run in found.runs] == [run.path.name for run in few.runs]
        assert [run.factors for run in found.runs] == [run.factors for run in few.runs]
        assert repr(found.rows()) == repr(wanted.rows())
        assert found.frame().equals(wanted.frame(), null_equal=True)
        assert found.keys == wanted.keys
        assert found.table().equals(wanted.table(), null_equal=True)
        assert found.compare("reno").equals(wanted.compare("reno"), null_equal=True)
        assert [*found.first_runs] == [*wanted.first_runs]
        assert summary.averages(found) == summary.averages(wanted)
        assert found.distinct() == wanted.distinct() == 24
        assert warning.seen(found) == warning.seen(wanted)
        kept = [one.where("law=reno", "seed=2,3") for one in (found, wanted)]
        assert kept[0].table().equals(kept[1].table(), null_equal=True)
        with pytest.raises(UsageError, match="no row has law=bic"):
            found.where("law=bic")
        with pytest.raises(UsageError, match="no replicates"):
            found.intervals("goodput_bps", ["law"])
    assert lfn("table", tmp_path / "many", "--csv") == lfn("table", tmp_path / "few", "--csv")
    assert cli.call(["report", str(tmp_path / "many")]) == 0
    store = Store(tmp_path / "many")
    store.drop([loaded.runs[3].path.name])
    assert Results.load(tmp_path / "many").missing == 1
    assert len(Results.load(tmp_path / "many").rows()) == 23


def test_runs_of_many_flows_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """The texts of a group of rows stay in memory, so long ones are few in a group."""
    base = replace(SHORT, duration="200ms").flow("reno", count=400)
    results = sweep(base, grid={"seed": [*range(1, 41)]}, out=tmp_path)
    (file,) = files(tmp_path)
    rows = [group["num_rows"] for group in _groups(file)]
    assert len(rows) > 1
    assert sum(rows) == 80
    assert [run.summary["seed"] for run in results.runs] == [*range(1, 41)]
    assert [run.summary["seed"] for run in reversed(results.runs)] == [*range(40, 0, -1)]
    assert all(len(run.summary["flows"]) == 401 for run in results.runs)


def _groups(file: Path) -> list[dict[str, int]]:
    pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: install lfnlab[pandas]")
    whole = pq.ParquetFile(file).metadata
    return [{"num_rows": whole.row_group(i).num_rows} for i in range(whole.num_row_groups)]


def test_stores_of_unlike_scenarios_are_one_store(tmp_path: Path) -> None:
    """Their rows have other columns, and other types of one."""
    again(tmp_path)
    queues = [{"kind": "codel"}, {"kind": "red", "size": "50 packets", "ecn": True}]
    sweep(SHORT, grid={"link.queue": queues}, seeds=2, out=tmp_path)
    chain = lfnlab.parking_lot(hops=2, rate="5Mbit/s", delay="5ms", buffer="9 packets")
    chain = replace(chain, duration="1s").flow("reno", from_=1, to=3)
    sweep(chain, grid={"flow[0].law": ["reno", "vegas"]}, out=tmp_path)
    assert len(files(tmp_path)) == 1
    rows = Catalog(tmp_path).summary().collect()
    assert rows.height == 12
    assert len(Results.load(tmp_path).runs) == 2
    assert len(Catalog(tmp_path).results().runs) == 12
    assert cli.call(["report", str(tmp_path)]) == 0


def test_an_interrupt_loses_no_finished_run(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    table = "\n[sweep]\nseeds = 20000\n[sweep.grid]\n'flow[0].law' = ['reno', 'cubic']\n"
    file.write_text(SHORT.to_toml() + table)
    command = [*LFN, "sweep", str(file), "--no-report", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while process.poll() is None and not (tmp_path / "out" / "experiment.json").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"repeat the command to continue" in err
    found = Results.load(tmp_path / "out")
    assert 0 < len(found.runs) < 40_000
    assert found.missing == 40_000 - len(found.runs)
    assert len(files(tmp_path / "out")) == 1, "merged"


@pytest.mark.parametrize(
    "change",
    [
        {"case": [0, 0, 0, -1, 0, 0]},
        {"case": [0, 0, 0, 2, 0, 0]},
        {"key": ["a"]},
        {"key": ["../../../../etc/passwd1234"] * 6},
        {"seed": ["1"] * 6},
        {"factors": [3, 4]},
    ],
)
def test_a_damaged_list_of_very_many_runs(
    change: dict[str, object], swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "MANY", 5)
    root = shutil.copytree(swept, tmp_path / "store")
    again(root)
    said = integrity.unsealed(root / "experiment.json")
    assert len(Results.load(root).runs) == 6
    said["runs"] |= change
    (root / "experiment.json").write_bytes(integrity.sealed(said))
    with pytest.raises(StoreError, match="does not list the runs of an experiment"):
        Results.load(root)
