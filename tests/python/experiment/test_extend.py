"""A stored experiment takes a further law or value, and runs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lfnlab import Results, compare, dumbbell, execute
from lfnlab.errors import UsageError
from lfnlab.experiment.extend import Experiment
from lfnlab.results.store import stored

if TYPE_CHECKING:
    from command import Lfn

SWEEP = """schema = 1
duration = "1s"
[link]
rate = "10Mbit/s"
loss = 1e-3
queue.size = "1bdp"
[[flow]]
law = "reno"
rtt = "20ms"
[sweep]
seeds = 2
grid = { "flow[0].law" = ["reno", "cubic"], "link.rate" = ["5Mbit/s", "10Mbit/s"] }
"""


def costs(root: Path) -> dict[str, float]:
    """The time that each run took: another where it ran again."""
    return {run.path.name: run.summary["cpu_s"] for run in Results.load(root).runs}


def test_a_law_adds_its_runs_to_a_sweep_and_touches_no_other(tmp_path: Path, lfn: Lfn) -> None:
    file, root = tmp_path / "sweep.toml", tmp_path / "results"
    file.write_text(SWEEP)
    lfn("sweep", file, "--out", root, "--no-report")
    before, old = costs(root), Results.load(root)
    assert "12 runs: 8 stored, 4 to run" in lfn(
        "sweep", "--extend", root, "--law", "htcp", "--dry-run"
    )
    assert costs(root) == before
    lfn("sweep", "--extend", root, "--law", "htcp", "--no-report")
    new = Results.load(root)
    assert len(new.runs) == 12
    assert before.items() <= costs(root).items()
    # The figures of the others are as they were.
    kept = new.where("law!=htcp")
    assert kept.frame().sort("hash").equals(old.frame().sort("hash"))
    assert {row["law"] for row in new.rows()} == {"reno", "cubic", "htcp"}
    # The same again runs nothing, and the extended experiment is a file.
    assert "12 stored, 0 to run" in lfn("sweep", "--extend", root, "--law", "htcp", "--dry-run")
    again = tmp_path / "again.toml"
    lfn("store", "export", root, again)
    assert "12 stored, 0 to run" in lfn("sweep", again, "--out", root, "--dry-run")


def test_the_extended_experiment_is_the_one_that_had_the_law_at_first(
    tmp_path: Path, lfn: Lfn
) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(SWEEP)
    lfn("sweep", file, "--out", tmp_path / "one", "--no-report")
    lfn("sweep", "--extend", tmp_path / "one", "--law", "htcp", "--no-report")
    file.write_text(SWEEP.replace('"cubic"]', '"cubic", "htcp"]'))
    lfn("sweep", file, "--out", tmp_path / "two", "--no-report")
    assert stored(tmp_path / "one") == stored(tmp_path / "two")


def test_a_comparison_takes_a_law_and_a_key_that_did_not_vary(tmp_path: Path, lfn: Lfn) -> None:
    base = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", loss=1e-3, duration="1s")
    compare(["reno", "cubic"], base, seeds=2, out=tmp_path)
    lfn("sweep", "--extend", tmp_path, "--law", "htcp", "--no-report")
    assert Results.load(tmp_path).keys == ("law",)
    lfn("sweep", "--extend", tmp_path, "--add", "link.queue.size=2bdp", "--no-report")
    results = Results.load(tmp_path)
    assert results.keys == ("link.queue.size", "law")
    table = results.table(["goodput_bps"])
    assert table["link.queue.size"].to_list() == ["1bdp"] * 3 + ["2bdp"] * 3
    assert table["seeds"].to_list() == [2] * 6


def test_errors_name_what_is_wrong_and_allowed(tmp_path: Path, lfn: Lfn) -> None:
    base = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s")
    compare(["reno"], base.flow("cubic"), out=tmp_path)
    for words, told in (
        (("--extend", tmp_path), "--law NAME or --add KEY=VALUE"),
        (("--extend", tmp_path, "--add", "link.rate"), "write for example --add"),
        ((), "lfn sweep FILE, or lfn sweep --extend DIR"),
        (
            ("--extend", tmp_path, "--law", "cubic", "--shard", "1/2"),
            "leave out FILE, --set, --shard",
        ),
    ):
        assert told in lfn.refuses("sweep", *words)


def test_which_flows_a_law_is_for_must_be_clear(tmp_path: Path) -> None:
    base = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s")
    execute(base.flow("reno").flow("cubic"), out=tmp_path)
    with pytest.raises(UsageError, match="flows of several laws"):
        Experiment.load(tmp_path).with_law("htcp")
