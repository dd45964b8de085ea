"""Experiments are repeated from their folders: ``lfn store export``, then the command it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import process

import lfnlab
from lfnlab import Draws, Range, SeedsWarning, dumbbell, parking_lot, sweep

SCENARIO = """\
# kept where nothing was changed
schema = 1
duration = "1s"
[link]
rate = "10Mbit/s"
[[flow]]
law = "reno"
rtt = "20ms"
"""
SWEEP = """\
[sweep]
seeds = 2
[sweep.grid]
"link.loss" = [0.0, 0.02]
"flow[0].law" = ["reno", "cubic"]
"""
BASE = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s")


def lfn(*words: object, cwd: Path) -> str:
    done = process(*words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def keys(store: Path) -> list[str]:
    return [run["key"] for run in json.loads((store / "experiment.json").read_text())["runs"]]


def repeated(store: Path, elsewhere: Path) -> list[str]:
    """The keys of the runs that the exported file makes in another folder."""
    elsewhere.mkdir()
    said = lfn("store", "export", store, "again.toml", cwd=elsewhere)
    assert said == "again.toml: lfn sweep again.toml\n"
    lfn("sweep", "again.toml", "--out", "again", "--no-report", cwd=elsewhere)
    return keys(elsewhere / "again")


def test_a_sweep_with_settings_is_repeated(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SCENARIO + SWEEP)
    words = ["sweep", "sweep.toml", "--no-report", "--out"]
    settings = ["--set", "duration=2s", "--set", "flow[0].count=2", "--set", "seed=7"]
    lfn(*words, "set", *settings, cwd=tmp_path)
    lfn(*words, "plain", cwd=tmp_path)
    assert repeated(tmp_path / "set", tmp_path / "a") == keys(tmp_path / "set")
    assert repeated(tmp_path / "plain", tmp_path / "b") == keys(tmp_path / "plain")
    assert not set(keys(tmp_path / "plain")) & set(keys(tmp_path / "set"))
    assert lfn("store", "export", "plain", cwd=tmp_path) == SCENARIO + SWEEP


def test_files_are_named_from_any_folder(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("1\n2\n3\n")
    text = SCENARIO.replace('rate = "10Mbit/s"', 'trace = "trace"\nqueue.size = "20 packets"')
    (tmp_path / "sweep.toml").write_text(text + SWEEP)
    lfn("sweep", "sweep.toml", "--no-report", "--out", "out", cwd=tmp_path)
    assert repeated(tmp_path / "out", tmp_path / "a") == keys(tmp_path / "out")


def test_other_experiments_are_told_from_their_runs(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(SCENARIO)
    path = ["--rate", "10Mbit/s", "--rtt", "20ms", "--duration", "1s"]
    laws = "reno,cubic:linux,bbr,hstcp:loglog"
    for name, words in {
        "run": ["run", "run.toml", "--set", "link.loss=0.01", "--seeds", "3", "--seed", "5"],
        "alone": ["run", "run.toml"],
        "compare": ["compare", "--law", laws, *path, "--seeds", "2"],
        "loaded": ["compare", "--law", "reno,cubic", *path, "--background", "1", "--seeds", "2"],
    }.items():
        lfn(*words, "--no-report", "--out", name, cwd=tmp_path)
        assert repeated(tmp_path / name, tmp_path / f"again-{name}") == keys(tmp_path / name)


def test_sweeps_in_python_are_repeated(tmp_path: Path) -> None:
    base = BASE.flow("reno", count=2)
    draws = Draws(3, {"link.queue.size": Range("20 packets", "90 packets")})
    sweep(
        base,
        grid={"background.level": [0, 1], "link.queue": [{"kind": "codel"}, {"kind": "red"}]},
        zip={"flow[0].rtt": ["10ms", "20ms"], "flow[0].count": [1, 3]},
        seeds=[4, 9],
        out=tmp_path / "grid",
    )
    with pytest.warns(SeedsWarning):
        sweep(base, latin_hypercube=draws, seeds=2, out=tmp_path / "draws")
    for name in ("grid", "draws"):
        assert repeated(tmp_path / name, tmp_path / f"again-{name}") == keys(tmp_path / name)


def test_cases_of_other_shapes_are_repeated_or_refused(tmp_path: Path) -> None:
    one, two = BASE.flow("reno"), BASE.flow("reno").flow("cubic")
    cases = [lfnlab.Case(scenario, {"case": name}) for name, scenario in (("1", one), ("2", two))]
    lfnlab.execute(cases, out=tmp_path / "flows")
    assert repeated(tmp_path / "flows", tmp_path / "again") == keys(tmp_path / "flows")
    lot = parking_lot(hops=2, rate="10Mbit/s", delay="5ms", buffer="20 packets", duration="1s")
    lot = lot.flow("reno", rtt="20ms")
    cases = [lfnlab.Case(scenario, {"case": name}) for name, scenario in (("1", one), ("2", lot))]
    lfnlab.execute(cases, out=tmp_path / "links")
    done = process("store", "export", "links", cwd=tmp_path)
    assert done.returncode == 2, done
    assert done.stderr.startswith("lfn: cannot export: the cases of this experiment differ in more")


def test_laws_in_python_are_named_from_any_folder(tmp_path: Path) -> None:
    lfn("new", "law", "mine.py", cwd=tmp_path)
    (tmp_path / "sweep.toml").write_text(SCENARIO.replace("reno", "mine.py:Mine") + SWEEP)
    words = ["--set", "link.rate=20Mbit/s", "--set", "flow[0].law=./mine.py:Mine"]
    lfn("sweep", "sweep.toml", *words, "--no-report", "--out", "out", cwd=tmp_path)
    assert repeated(tmp_path / "out", tmp_path / "a") == keys(tmp_path / "out")


@pytest.mark.parametrize("there", [True, False])
def test_an_export_overwrites_nothing(there: bool, tmp_path: Path) -> None:
    lfnlab.execute(BASE.flow("reno"), out=tmp_path / "out")
    if there:
        (tmp_path / "file").write_text("mine")
    done = process("store", "export", "out", "file", cwd=tmp_path)
    assert done.returncode == (3 if there else 0)
    assert ((tmp_path / "file").read_text() == "mine") == there
