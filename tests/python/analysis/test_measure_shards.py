"""Metrics of runs that stand in shards, without folders of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from command import process

from lfnlab import dumbbell, execute

if TYPE_CHECKING:
    from pathlib import Path


def test_metrics_of_a_store_without_folders(tmp_path: Path) -> None:
    path = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="3s")
    execute(path.flow("cubic"), seeds=2, out=tmp_path / "runs", summaries=True)
    done = process("metrics", tmp_path / "runs", "--metric", "efficiency")
    assert (done.returncode, done.stderr) == (0, "")
    assert "efficiency  forward" in done.stdout
