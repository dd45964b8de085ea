"""Does docs/sweep.md show the example, and does its batch script work?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from lfnlab.results.store import Store

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "sweep.md").read_text(encoding="utf-8")
LFN = [sys.executable, "-m", "lfnlab.cli"]


def test_the_pages_example_is_the_file() -> None:
    table = PAGE.split("```toml\n", 1)[1].split("```", 1)[0]
    assert table in (ROOT / "examples" / "sweep-buffers.toml").read_text(encoding="utf-8")


def test_the_batch_script_as_an_array_of_jobs(tmp_path: Path) -> None:
    """There is no Slurm here: each job gets the variables that Slurm would set."""
    script = (ROOT / "examples" / "sweep.sbatch").read_text(encoding="utf-8")
    (tmp_path / "lfn").write_text(f'#!/bin/sh\nexec {" ".join(LFN)} "$@"\n')
    (tmp_path / "lfn").chmod(0o755)
    scenario = ROOT / "examples" / "sweep-buffers.toml"
    # A tenth of its points.
    (tmp_path / "scenario.toml").write_text(
        scenario.read_text(encoding="utf-8").replace("points = 10", "points = 1")
    )
    count = 3

    def job(task: int) -> list[str]:
        variables = {"ARRAY_TASK_ID": task, "ARRAY_TASK_COUNT": count, "CPUS_PER_TASK": 1}
        env = os.environ | {f"SLURM_{name}": str(value) for name, value in variables.items()}
        env["PATH"] = f"{tmp_path}:{env['PATH']}"
        command = ["sh", ROOT / "examples" / "sweep.sbatch", "scenario.toml", "results"]
        subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True)
        return sorted(Store(tmp_path / f"results.{task}-of-{count}").keys())

    parts = [job(task) for task in range(1, count + 1)]
    assert sorted(map(len, parts)) == [2, 3, 3]
    # A job that is submitted again runs what is missing.
    lost = parts[0][0]
    Store(tmp_path / "results.1-of-3").drop([lost])
    assert job(1) == parts[0]
    # What the script says to give when all are done.
    for line in re.findall(r"^#   (lfn .*?)(?:  .*)?$", script, re.MULTILINE):
        command = line.replace("lfn", " ".join(LFN), 1).replace("-of-16", f"-of-{count}")
        subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True)
    assert Store(tmp_path / "results").keys() == {key for part in parts for key in part}
    assert (tmp_path / "results" / "experiment.json").is_file()
