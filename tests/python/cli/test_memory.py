"""Limits of the memory of runs."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import pytest

from lfnlab import _core
from lfnlab.cli.app import call
from lfnlab.errors import LabError, UsageError

if TYPE_CHECKING:
    from command import Lfn

TEXT = """\
schema = 1
duration = "60s"
[link]
rate = "100Mbit/s"
[[flow]]
law = "cubic"
rtt = "40ms"
"""


@pytest.fixture(autouse=True)
def _no_limit() -> Iterator[None]:
    yield
    _core.limit_memory(None)


def test_a_limit_is_what_was_said_and_else_what_is_free() -> None:
    free = _core.memory_limit_bytes()
    assert 10e6 < free < 1e14
    _core.limit_memory("1.5GB")
    assert _core.memory_limit_bytes() == 1_500_000_000
    _core.limit_memory(None)
    assert _core.memory_limit_bytes() > 10e6
    for wrong in ("0B", "x", "-1GB", "5", ""):
        with pytest.raises(UsageError, match="--memory"):
            _core.limit_memory(wrong)


def test_a_run_that_holds_more_than_it_may_ends_with_an_error() -> None:
    """Also where the limit falls below what it holds on the way."""

    def told(_: int, done: float) -> bool:
        if done > 0:
            _core.limit_memory("10kB")
        return True

    text = 'seed = 7\nsample = "off"\n' + TEXT.replace("60s", "100000s")
    with pytest.raises(LabError, match=r"seed 7: ended at \S+ of 100000s: it holds .* MB; allowed"):
        _core.run_many([_core.Scenario(text)], 1, told)
    # What it held is given back.
    _core.limit_memory("100MB")
    assert _core.run_many([_core.Scenario(TEXT.replace("60s", "1s"))], 1, None)[0] is not None


LIMIT_MB = 60
"""Of a sweep of drawn runs, one of which does not fit."""
SLACK_MB = 15
"""Memory of Python itself to plan a sweep and to store its runs."""


def drawn_sweep(out: str, count: int, seed: int) -> dict[str, Any]:
    """In a process of its own: a sweep of drawn runs beside a large one, and its peak."""
    from resource import RUSAGE_SELF, getrusage

    from lfnlab import dumbbell
    from lfnlab.experiment.plan import Case
    from lfnlab.experiment.run import execute

    draw = random.Random(seed)
    cases = []
    for number in range(count):
        rtt_ms = 2 * 50 ** draw.random()
        held = 10 * 1000 ** draw.random()
        path = dumbbell(
            rate=f"{held * 12_000 / rtt_ms:.0f}kbit/s",
            rtt=f"{rtt_ms:.0f}ms",
            buffer=f"{0.1 * 30 ** draw.random():.2f}bdp",
            duration=f"{max(0.1, min(10, rtt_ms * 300 / held)):.2f}s",
        )
        law = draw.choice(["reno", "cubic", "bbr", "bbr3", "scalable", "hybla", "copa"])
        flows = draw.choice([1, 3, 30])
        cases.append(Case(path.flow(law, count=flows), {"run": number}))
    large = dumbbell(rate="40Gbit/s", rtt="300ms", buffer="1bdp", duration="20s").flow("reno")
    cases.insert(1, Case(large, {"run": "large"}))
    _core.limit_memory(f"{LIMIT_MB}MB")
    small = dumbbell(rate="1Mbit/s", rtt="40ms", buffer="1bdp", duration="100ms").flow(
        "reno", count=30
    )
    execute(
        [Case(small.with_seed(number), {"run": number}) for number in range(count)],
        out=f"{out}/small",
    )
    before = getrusage(RUSAGE_SELF).ru_maxrss
    results = execute(cases, out=f"{out}/all", jobs=2, keep_going=True)
    took_mb = (getrusage(RUSAGE_SELF).ru_maxrss - before) * 1024 / 1e6
    lost = [(found.factors["run"], found.error) for found in results.failures]
    return {"took_mb": took_mb, "runs": len(results.runs), "lost": lost}


def test_no_run_passes_the_limit_and_only_one_that_does_not_fit_is_lost(tmp_path: Path) -> None:
    count, seed = int(os.environ.get("LFN_MEMORY_RUNS", "30")), os.environ.get("LFN_SEED", "1")
    text = (
        f"import json, test_memory as t; print(json.dumps(t.drawn_sweep('out', {count}, {seed})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=os.environ | {"PYTHONPATH": str(FilePath(__file__).parent)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["runs"] == count, found
    ((name, error),) = found["lost"]
    assert name == "large"
    for said in ("it holds", f"allowed: {LIMIT_MB}.0 MB", "link: lower rate", "--memory"):
        assert said in error, error
    assert found["took_mb"] < LIMIT_MB + SLACK_MB, found


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_the_command_refuses_what_will_not_fit(command: str, tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "a.toml"
    file.write_text(TEXT + ("[sweep.grid]\nseed = [1]\n" if command == "sweep" else ""))
    out = str(tmp_path / "out")
    # A sweep goes on without the run.
    assert call([command, str(file), "--out", out, "--memory", "10kB"]) == (
        2 if command == "run" else 1
    )
    assert "of memory" in lfn.said().err
    assert "--memory" in lfn.err(command, file, "--out", out, "--memory", "much")
