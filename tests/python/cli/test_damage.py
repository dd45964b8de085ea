"""Nothing that is not ours is touched, and no damage of a store is silent.

LFN_DAMAGES says how many random damages are tried, LFN_SEED where they begin.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command import process

import lfnlab
from lfnlab import DamageWarning, Results, StoreError, dumbbell, sweep
from lfnlab.analysis.summary import to_json
from lfnlab.cli import app as cli
from lfnlab.results import integrity, maintenance
from lfnlab.results.index import Catalog
from lfnlab.results.store import LAYOUT_FILE, recorded, refuse_foreign

if TYPE_CHECKING:
    from command import Lfn

# The loss never comes; it makes seeds differ.
PATH = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s", loss=1e-9, sample="10ms")
SHORT = PATH.flow("cubic")
LAWS = {"flow[0].law": ["reno", "cubic"]}
DAMAGES = int(os.environ.get("LFN_DAMAGES", "100"))
SEED = int(os.environ.get("LFN_SEED", "1"))


def again(root: Path) -> Results:
    return sweep(SHORT, grid=LAWS, seeds=2, out=root, jobs=1)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("swept") / "store"
    again(out)
    lfnlab.open(out)  # it writes the rows of these few runs
    return out


def tree(root: Path) -> dict[str, bytes | str]:
    """Every name below a directory, with bytes of files and targets of links."""
    found: dict[str, bytes | str] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_bytes()
        else:
            found[name] = "directory"
    return found


def runs(root: Path) -> list[Path]:
    return sorted(path for path in (root / "runs").iterdir() if integrity.KEY.fullmatch(path.name))


# What is not ours


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Another tool's directory, with runs that look like leftovers and like ours."""
    home = tmp_path / "theirs"
    for name in (".git", ".aaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbb", "exp-1", "0123456789abcdef01234567"):
        (home / "runs" / name).mkdir(parents=True)
        (home / "runs" / name / "precious").write_text("weeks of work")
        os.utime(home / "runs" / name, (0, 0))
    (home / "summary").mkdir()
    (home / "summary" / "thesis.tex").write_text("years of work")
    (home / "summary" / "01-000001-000001.parquet").write_text("not ours")
    (home / "report.html").write_text("their page")
    return home


@pytest.mark.parametrize(
    "arguments",
    [
        ["store", "gc", "DIR"],
        ["store", "gc", "DIR", "--yes"],
        ["store", "gc", "DIR", "--damaged", "--yes"],
        ["store", "gc", "DIR", "--code", "x", "--yes"],
        ["store", "ls", "DIR"],
        ["store", "verify", "DIR"],
        ["report", "DIR"],
        ["plot", "DIR"],
        ["metrics", "DIR"],
        ["compare", "--law", "reno", "--duration", "1s", "--rate", "10Mbit/s", "--out", "DIR"],
        ["run", "FILE", "--out", "DIR"],
        ["sweep", "SWEEP", "--out", "DIR"],
        ["demo", "--out", "DIR"],
        ["testbed", "FILE", "--out", "DIR"],
        ["agree", "FILE", "--out", "DIR"],
        ["paper", "htcp-be", "--quick", "--out", "DIR"],
        ["suite", "tcpeval", "--law", "reno", "--quick", "--out", "DIR"],
        ["report", "STORE", "--out", "DIR"],
        ["store", "merge", "DIR", "STORE"],
        ["import", "iperf3", "IPERF3", "--out", "DIR"],
    ],
    ids=" ".join,
)
def test_a_directory_that_is_not_ours_stays_as_it_is(
    arguments: list[str], foreign: Path, swept: Path, tmp_path: Path
) -> None:
    file, table = tmp_path / "s.toml", tmp_path / "sweep.toml"
    file.write_text(SHORT.to_toml())
    table.write_text(SHORT.to_toml() + "\n[sweep]\nseeds = 2\n[sweep.grid]\nseed = [1]\n")
    measured = Path(__file__).parents[1] / "data" / "iperf3"
    places = {
        "DIR": foreign,
        "FILE": file,
        "SWEEP": table,
        "STORE": swept,
        "IPERF3": next(measured.glob("*.json"), measured),
    }
    before = tree(foreign)
    command = [str(places.get(word, word)) for word in arguments]
    assert cli.call(command) in (cli.FAILED, cli.USAGE, cli.STORE, cli.UNAVAILABLE)
    assert tree(foreign) == before


def test_an_empty_directory_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / ".store.json.4711").write_text("{")  # a kill at the start left it
    again(tmp_path)
    assert json.loads((tmp_path / LAYOUT_FILE).read_text()) == {"layout": 2}


def test_gc_of_a_store_takes_names_that_a_store_makes(swept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(swept, tmp_path / "s")
    key = runs(root)[0].name
    theirs = [root / "runs" / name for name in (".git", "notes", ".cache", f"{key}.bak")]
    ours = [root / "runs" / f".{key}.abcdefgh", root / "runs" / f".{key}.gone"]
    for path in (*theirs, *ours):
        path.mkdir()
        (path / "x").write_text("x")
        os.utime(path, (0, 0))
    (root / "summary" / "notes.txt").write_text("mine")
    half = root / ".experiment.json.99"
    half.write_text("{")
    os.utime(half, (0, 0))
    assert cli.call(["store", "gc", str(root), "--damaged", "--yes"]) == cli.OK
    assert all((path / "x").exists() for path in theirs)
    assert not any(path.exists() for path in (*ours, half))
    assert (root / "summary" / "notes.txt").exists()
    assert len(runs(root)) == 4


def test_what_gc_removes_does_not_lead_elsewhere(swept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(swept, tmp_path / "s")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "x").write_text("x")
    run, other, *_ = runs(root)
    shutil.rmtree(run)
    run.symlink_to(tmp_path / "precious")
    (other / "flows.parquet").unlink()
    (other / "flows.parquet").symlink_to(tmp_path / "precious" / "x")
    assert cli.call(["store", "gc", str(root), "--damaged", "--yes"]) == cli.OK
    assert len(runs(root)) == 2
    assert (tmp_path / "precious" / "x").read_text() == "x"


def test_merge_follows_no_links(swept: Path, tmp_path: Path, lfn: Lfn) -> None:
    root = shutil.copytree(swept, tmp_path / "s")
    first, second, third, fourth = runs(root)
    shutil.move(first, tmp_path / "elsewhere")
    first.symlink_to(tmp_path / "elsewhere")
    (second / "flows.parquet").rename(tmp_path / "flows")
    (second / "flows.parquet").symlink_to(tmp_path / "flows")
    said = integrity.provenance_of(third)
    said["files"]["../escaped"] = said["files"]["summary.json"]
    (third / "provenance.json").write_bytes(integrity.sealed(said))
    (root / "runs" / "escaped").write_bytes((third / "summary.json").read_bytes())
    assert cli.call(["store", "merge", str(tmp_path / "into"), str(root)]) == cli.FAILED
    assert [run.name for run in runs(tmp_path / "into")] == [fourth.name]
    assert sorted(path.name for path in (tmp_path / "into").iterdir()) == [
        "runs",
        "store.json",
        "summary",
    ]
    out = lfn.said().out
    assert f"{first.name}: it is a link" in out
    assert f"{second.name}: flows.parquet is not a regular file" in out
    assert f"{third.name}: provenance.json names '../escaped'" in out
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "runs").symlink_to(swept / "runs")
    assert cli.call(["store", "merge", str(tmp_path / "b"), str(tmp_path / "linked")]) == cli.STORE


# Stores of earlier versions


def test_a_store_of_an_earlier_version_says_what_can_be_done(
    swept: Path, tmp_path: Path, lfn: Lfn
) -> None:
    """Without store.json, seals and lengths, as lfnlab 0.1.0 left it."""
    root = shutil.copytree(swept, tmp_path / "s")
    (root / LAYOUT_FILE).unlink()
    shutil.rmtree(root / "summary")
    for file in (root / "experiment.json", *(run / "provenance.json" for run in runs(root))):
        said = integrity.unsealed(file)
        file.write_text(json.dumps({k: v for k, v in said.items() if k not in ("bytes", "files")}))
    wanted = lfnlab.open(swept).summary().sort("key").collect()
    assert lfnlab.open(root).summary().sort("key").collect().equals(wanted, null_equal=True)
    assert to_json(Results.load(root)) == to_json(Results.load(swept))
    assert not (root / "summary").exists()
    with pytest.raises(StoreError, match=r"lfnlab 0\.1\.0 left it.*echo '.*' > .*store\.json"):
        again(root)
    mend = lfn.err("store", "gc", root, "--yes", code=cli.STORE).rpartition("lfnlab's: ")[2]
    subprocess.run(mend, shell=True, check=True)
    assert again(root).rows() == Results.load(swept).rows()
    assert cli.call(["store", "verify", str(root)]) == cli.OK
    assert cli.call(["store", "gc", str(root), "--damaged", "--yes"]) == cli.OK
    assert len(runs(root)) == 4, "what cannot be checked is not damaged"


# Damage


@pytest.mark.parametrize("has_rows", [True, False])
def test_runs_without_files_do_not_count(swept: Path, tmp_path: Path, has_rows: bool) -> None:
    root = shutil.copytree(swept, tmp_path / "s")
    if not has_rows:
        shutil.rmtree(root / "summary")
    for run in runs(root):
        for file in run.iterdir():
            file.unlink()
    done = process("store", "ls", root)
    assert done.returncode == 1
    assert done.stderr.startswith("0 runs")
    assert "4 damaged runs are left out" in done.stderr
    with pytest.raises(StoreError, match=r"4 damaged runs, the first: .* is missing; `lfn store"):
        lfnlab.open(root).summary()
    with pytest.raises(StoreError, match="is missing; `lfn store gc"):
        Results.load(root)
    with pytest.warns(DamageWarning, match="4 damaged runs are run again: .*, and 3 more"):
        again(root)
    assert tree(root / "runs").keys() == tree(swept / "runs").keys()


def test_a_damaged_run_is_run_again_and_said(swept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(swept, tmp_path / "s")
    file = runs(root)[1] / "summary.json"
    text = file.read_text()
    file.write_text(text.replace('"goodput_bps":', '"goodput_bps":1', 1))
    table = tmp_path / "s.toml"
    table.write_text(
        SHORT.to_toml() + '\n[sweep]\nseeds = 2\n[sweep.grid]\n"flow[0].law" = ["reno", "cubic"]\n'
    )
    done = process("sweep", table, "--out", root)
    assert done.returncode == 0
    assert done.stderr.startswith(f"lfn: a damaged run is run again: {file.parent.name}: summary")
    assert done.stderr.count("\n") == 1
    assert file.read_text() == text


def observed(root: Path) -> dict[str, Any]:
    """The result of every kind of reader of a store: a value, or the error."""
    readers: dict[str, Callable[[], Any]] = {
        "open": lambda: lfnlab.open(root).summary().sort("key", "law").collect().to_dicts(),
        "load": lambda: to_json(Results.load(root)),
        "factors": lambda: [(run.seed, run.factors) for run in Results.load(root).runs],
        "tables": lambda: [
            {name: run.table(name).to_dicts() for name in integrity.tables_of(run.path)}
            for run in Results.load(root).runs
        ],
        "scenario": lambda: [run.scenario for run in Results.load(root).runs],
    }
    found: dict[str, Any] = {}
    for name, read in readers.items():
        try:
            found[name] = read()
        except (StoreError, lfnlab.ScenarioError) as error:
            found[name] = error
    return found


@cache
def undamaged(root: Path) -> dict[str, Any]:
    return observed(root)


def truncate(path: Path, draw: random.Random) -> None:
    os.truncate(path, draw.randrange(path.stat().st_size))


def flip(path: Path, draw: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def digit(path: Path, draw: random.Random) -> None:
    """Another digit, which leaves JSON and TOML what they are."""
    data = bytearray(path.read_bytes())
    at = draw.choice([i for i, byte in enumerate(data) if 0x31 <= byte <= 0x39])
    data[at] = draw.choice([byte for byte in range(0x31, 0x3A) if byte != data[at]])
    path.write_bytes(data)


def delete(path: Path, draw: random.Random) -> None:
    path.unlink()


def empty(path: Path, draw: random.Random) -> None:
    path.write_bytes(b"")


def directory(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.mkdir()


def fifo(path: Path, draw: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def nowhere(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.symlink_to("/nowhere/at/all")


def other(path: Path, draw: random.Random) -> None:
    """The file of this name of another run, or any other file of the store."""
    home = path.parent if path.name in ("experiment.json", LAYOUT_FILE) else path.parents[2]
    files = [file for file in sorted(home.rglob("*")) if file.is_file() and file != path]
    alike = [file for file in files if file.name == path.name]
    path.unlink()
    path.symlink_to(draw.choice(alike or files))


def zeros(path: Path, draw: random.Random) -> None:
    path.write_bytes(bytes(path.stat().st_size))


HARMS = (truncate, flip, digit, delete, empty, directory, fifo, nowhere, other, zeros)


def kind(path: Path) -> str:
    return "part" if path.parent.name == "summary" else path.name


@pytest.mark.parametrize("copied", ["experiment.json", "provenance.json"])
def test_one_sealed_file_is_not_another(copied: str, swept: Path, tmp_path: Path) -> None:
    """Both have a valid seal: each in the other's place is found."""
    root = shutil.copytree(swept, tmp_path / "store")
    run = min(path for path in (root / "runs").iterdir() if path.name[0] != ".")
    pair = {"experiment.json": root, "provenance.json": run}
    (source,), (target,) = (
        [k for k in pair if (k == copied) is is_source] for is_source in (True, False)
    )
    shutil.copy(pair[source] / source, pair[target] / target)
    assert [found for _, found in maintenance.verify(root) if found]


@pytest.mark.parametrize("number", range(DAMAGES))
def test_no_damage_is_silent(number: int, swept: Path, tmp_path: Path) -> None:
    """Each kind of file in turn, each kind of harm; which run and where in it are drawn."""
    draw = random.Random(SEED * 1_000_003 + number)
    root = shutil.copytree(swept, tmp_path / "store")
    files = [file for file in sorted(root.rglob("*")) if file.is_file() and file.name != ".lock"]
    kinds = sorted({kind(file) for file in files})
    file = draw.choice([f for f in files if kind(f) == kinds[number % len(kinds)]])
    harm = HARMS[number // len(kinds) % len(HARMS)] if number < 100 else draw.choice(HARMS)
    harm(file, draw)
    what = f"LFN_SEED={SEED}, {number}: {harm.__name__} of {file.relative_to(root)}"
    gone = harm is delete and kind(file) in ("experiment.json", "part")
    try:
        wrong = [found for _, found in maintenance.verify(root) if found]
    except StoreError as error:
        wrong = [maintenance.Damage("", str(error))]
    assert wrong or gone, what
    wanted, found = undamaged(swept), observed(root)
    for reader, value in found.items():
        if isinstance(value, Exception):
            assert file.name in str(value) or file.parent.name in str(value), (what, value)
            assert ";" in str(value), ("the remedy is not named", what, value)
        else:
            assert repr(value) == repr(wanted[reader]), (what, reader)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        in_the_way = kind(file) == "experiment.json" and harm is directory
        if in_the_way or kind(file) == LAYOUT_FILE:
            with pytest.raises(StoreError, match=kind(file)):
                again(root)
            return
        again(root)
    assert bool(said) == (file.parent.parent.name == "runs"), what
    found = observed(root)
    for reader, value in wanted.items():
        ours = found[reader]
        if reader == "open":
            took = {"wall_s": 0, "cpu_s": 0}
            assert repr([row | took for row in ours]) == repr([row | took for row in value]), what
        elif reader != "load":
            assert repr(ours) == repr(value), (what, reader)
    assert not isinstance(found["load"], Exception), what
    assert {run["hash"] for run in found["load"]["runs"]} == {
        run["hash"] for run in wanted["load"]["runs"]
    }


def run_of(root: Path, law: str, seed: int) -> Path:
    (run,) = (
        run.path
        for run in Results.load(root).runs
        if run.scenario.flows[0].law == law and run.seed == seed
    )
    return run


def replace(run: Path, by: Path) -> None:
    shutil.rmtree(run)
    shutil.copytree(by, run)


def swap(one: Path, other: Path) -> None:
    one.rename(one.parent / "between")
    other.rename(one)
    (one.parent / "between").rename(other)


@pytest.mark.parametrize(
    ("harm", "other", "wrong"),
    [
        (replace, ("cubic", 2), 1),
        (replace, ("reno", 1), 1),
        (swap, ("cubic", 2), 2),
        (swap, ("reno", 2), 2),
    ],
)
def test_a_whole_run_in_the_place_of_another_is_damage(
    harm: Callable[[Path, Path], None],
    other: tuple[str, int],
    wrong: int,
    swept: Path,
    tmp_path: Path,
    lfn: Lfn,
) -> None:
    root = shutil.copytree(swept, tmp_path / "s")
    shutil.rmtree(root / "summary")
    run, by = run_of(root, "cubic", 1), run_of(root, *other)
    harm(run, by)
    said = lfn("store", "verify", root, code=cli.FAILED)
    assert f"{run.name}: has the run {by.name} in the place of its own" in said
    assert f"4 runs, {wrong} damaged" in said
    for reader, value in observed(root).items():
        if reader == "factors":  # of experiment.json alone
            continue
        assert isinstance(value, StoreError), reader
        assert " has the run " in str(value), (reader, value)
    for command in ("report", "plot", "metrics"):
        assert "has the run " in lfn.err(command, root, code=cli.STORE), command
    into = tmp_path / "into"
    assert cli.call(["store", "merge", str(into), str(root)]) == cli.FAILED
    assert len(runs(into)) == 4 - wrong
    with pytest.warns(DamageWarning, match=": has the run "):
        again(root)
    assert tree(root / "runs").keys() == tree(swept / "runs").keys()
    assert cli.call(["store", "verify", str(root)]) == cli.OK
    assert repr(observed(root)["tables"]) == repr(undamaged(swept)["tables"])


def test_a_damaged_run_is_not_merged_over_a_whole_one(swept: Path, tmp_path: Path) -> None:
    """A run in the wrong place, in either store."""
    root, into = shutil.copytree(swept, tmp_path / "s"), shutil.copytree(swept, tmp_path / "into")
    replace(run_of(root, "cubic", 1), run_of(root, "cubic", 2))
    assert cli.call(["store", "merge", str(into), str(root)]) == cli.FAILED
    assert tree(into / "runs") == tree(swept / "runs")
    replace(run_of(into, "reno", 1), run_of(into, "reno", 2))
    assert cli.call(["store", "merge", str(into), str(root)]) == cli.FAILED
    assert tree(into / "runs") == tree(swept / "runs"), "the whole one takes its place"


def test_files_of_one_run_in_another_are_damage(swept: Path, tmp_path: Path) -> None:
    for name in sorted(integrity.NAMES):
        root = shutil.copytree(swept, tmp_path / name)
        run = run_of(root, "cubic", 1)
        shutil.copy(run_of(root, "reno", 2) / name, run / name)
        (found,) = [found for _, found in maintenance.verify(root) if found]
        assert found.key == run.name
        wrong = [value for value in observed(root).values() if isinstance(value, StoreError)]
        assert wrong, name
        assert all(f"{run.name}/{name}: " in str(value) for value in wrong), name


def test_a_run_of_another_name_is_not_there(swept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(swept, tmp_path / "s")
    run = run_of(root, "cubic", 1)
    run.rename(run.parent / run.name.upper())
    assert cli.call(["store", "verify", str(root)]) == cli.OK
    assert len(Results.load(root).runs) == 3
    again(root)
    assert len(runs(root)) == 4
    renamed = run.parent / ("0" * 24)
    (run.parent / run.name.upper()).rename(renamed)
    assert [found.key for _, found in maintenance.verify(root) if found] == [renamed.name]


def measured_run(run: Path, key: str | None, seed: int) -> None:
    """Make a run one of a test bed, whose name does not follow from its scenario."""
    said = integrity.unsealed(run / "provenance.json")
    summary = json.loads((run / "summary.json").read_text()) | {"testbed": {}, "seed": seed}
    names = said.pop("files").keys()
    files = {name: (run / name).read_bytes() for name in names}
    files["summary.json"] = json.dumps(summary).encode()
    said = {k: v for k, v in said.items() if k != "bytes"} | ({} if key is None else {"key": key})
    for name, data in (files | {"provenance.json": recorded(said, files)}).items():
        (run / name).write_bytes(data)


def test_measured_runs_say_their_names(swept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(swept, tmp_path / "s")
    made = [root / "runs" / (digit * 24) for digit in "abc"]
    for number, run in enumerate(made):
        shutil.copytree(run_of(root, "reno", 1), run)
        # The last one is as lfnlab stored it before it wrote the key.
        measured_run(run, run.name if run is not made[2] else None, number)
    assert not [found for _, found in maintenance.verify(root) if found]
    swap(made[0], made[1])
    found = {found.key: found.why for _, found in maintenance.verify(root) if found}
    assert found.keys() == {made[0].name, made[1].name}
    assert f"has the run {made[1].name}" in found[made[0].name]
    swap(made[0], made[1])
    replace(run_of(root, "cubic", 1), made[0])
    assert len([found for _, found in maintenance.verify(root) if found]) == 1


@pytest.mark.parametrize("name", sorted(integrity.NAMES))
def test_a_file_of_gigabytes_is_not_read(name: str, swept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(swept, tmp_path / "s")
    file = run_of(root, "cubic", 1) / name
    os.truncate(file, 6_000_000_000)  # it takes no room
    read = Path("/proc/self/io").read_text
    before = int(read().split()[1])
    wrong = [value for value in observed(root).values() if isinstance(value, StoreError)]
    assert wrong
    assert all(f"{file}: has 6,000,000,000 bytes; " in str(value) for value in wrong)
    if name in ("summary.json", "flows.parquet", "provenance.json"):  # what a report reads
        assert cli.call(["report", str(root)]) == cli.STORE
    assert cli.call(["store", "verify", str(root)]) == cli.FAILED
    assert int(read().split()[1]) - before < 1_000_000_000


def test_a_damaged_catalogue_is_rebuilt(swept: Path, tmp_path: Path) -> None:
    for harm in HARMS:
        root = shutil.copytree(swept, tmp_path / harm.__name__)
        wanted = Catalog(root).summary().sort("key").collect()
        (part,) = (root / "summary").glob("*.parquet")
        harm(part, random.Random(7))
        assert Catalog(root).summary().sort("key").collect().equals(wanted, null_equal=True)
        assert cli.call(["store", "verify", str(root)]) == (cli.FAILED if part.is_dir() else cli.OK)
    root = shutil.copytree(swept, tmp_path / "file")
    shutil.rmtree(root / "summary")
    (root / "summary").write_text("a file")
    assert lfnlab.open(root).summary().collect().height == 4
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "01-000001-000001.parquet").write_text("mine")
    root = shutil.copytree(swept, tmp_path / "link")
    shutil.rmtree(root / "summary")
    (root / "summary").symlink_to(elsewhere)
    assert lfnlab.open(root).summary().collect().height == 4
    assert (elsewhere / "01-000001-000001.parquet").read_text() == "mine"


# Interrupts, and stores that may only be read


def test_after_an_interrupt_finished_runs_are_results(
    swept: Path, tmp_path: Path, lfn: Lfn
) -> None:
    def interrupt(done: float, total: int) -> None:
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(SHORT, grid=LAWS, seeds=8, out=tmp_path / "s", jobs=1, progress=interrupt)
    there = len(runs(tmp_path / "s"))
    assert 1 <= there < 16
    assert not [path for path in (tmp_path / "s" / "runs").iterdir() if path.name[0] == "."]
    words = f"{there} of 16 runs are stored; repeat the command to run the others"
    results = Results.load(tmp_path / "s")
    assert (len(results.runs), results.missing) == (there, 16 - there)
    assert to_json(results)["averaged"].endswith(words)
    for command in ("report", "plot", "metrics"):
        assert words in lfn(command, tmp_path / "s"), command
    assert words in (tmp_path / "s" / "report.html").read_text()
    assert sweep(SHORT, grid=LAWS, seeds=8, out=tmp_path / "s").missing == 0
    assert Results.load(tmp_path / "s").completeness is None


def test_an_experiment_that_never_began_leaves_the_one_before(swept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(swept, tmp_path / "s")

    def at_once(done: float, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(SHORT, grid={"link.rate": ["3Mbit/s"]}, out=root, progress=at_once)
    assert len(Results.load(root).runs) == 4


def test_none_of_the_runs_says_so(swept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(swept, tmp_path / "s")
    for run in runs(root):
        shutil.rmtree(run)
    with pytest.raises(StoreError, match=r"none of the 4 runs .* exists; repeat the"):
        Results.load(root)


def test_a_report_of_a_read_only_store_goes_elsewhere(
    swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lfn: Lfn
) -> None:
    root = shutil.copytree(swept, tmp_path / "s")
    before = tree(root)
    real = tempfile.TemporaryFile

    def opened(*, dir: Path) -> Any:  # noqa: A002 - as tempfile has it
        if dir == root:
            raise OSError(30, "Read-only file system", str(dir))
        return real(dir=dir)

    monkeypatch.setattr(tempfile, "TemporaryFile", opened)
    assert f"Read-only file system; lfn report {root} --out DIR" in lfn.err(
        "report", root, code=cli.STORE
    )
    assert cli.call(["report", str(root), "--figures", "--out", str(tmp_path / "page")]) == cli.OK
    refuse_foreign(
        tmp_path / "page", {"report.html", "laboratory.html", "figures"}
    )  # so again it may
    written = sorted(path.name for path in (tmp_path / "page").iterdir())
    assert written == ["figures", "laboratory.html", "report.html"]
    assert tree(root) == before


def test_a_fifo_in_a_store_is_not_waited_for(swept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(swept, tmp_path / "s")
    for name in ("experiment.json", LAYOUT_FILE):
        fifo(root / name, random.Random(0))
        assert stat.S_ISFIFO((root / name).stat().st_mode)
        done = process("report", root)
        assert done.returncode == 3
        assert "is not a regular file" in done.stderr
