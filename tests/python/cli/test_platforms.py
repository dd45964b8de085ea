"""On another system the simulator works, and commands that need Linux say so: as if on macOS."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lfnlab import _core, machine
from lfnlab.cli import app as cli

SCENARIO = """\
schema = 1
duration = "1s"
[link]
rate = "10Mbit/s"
[[flow]]
law = "cubic"
rtt = "10ms"
"""


@pytest.fixture(autouse=True)
def _another_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Parts that crates/python leaves out of the module, and Python lacks, elsewhere."""
    monkeypatch.setattr(machine, "SYSTEM", "darwin")
    for name in ("UdtPlan", "TestbedEnd", "udt_send", "udt_receive", "run_shell", "plan_testbed"):
        monkeypatch.delattr(_core, name)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.chdir(tmp_path)
    Path("a.toml").write_text(SCENARIO)


@pytest.mark.parametrize(
    "command",
    [
        "send a.toml --to 127.0.0.1:1",
        "recv .",
        "shell -- true",
        "testbed a.toml",
        "agree a.toml",
        "run a.toml --on linux",
        "kernel load reno",
        "kernel check",
        "kernel status",
        "kernel unload reno",
    ],
)
def test_a_part_that_needs_linux_says_so(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(command.split()) != cli.OK
    said = capsys.readouterr().err
    assert "needs Linux; this system is darwin" in said
    assert len(said.splitlines()) == 1


def test_the_simulator_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(["run", "a.toml", "--out", "out"]) == cli.OK
    assert cli.call(["new", "sweep"]) == cli.OK
    assert cli.call(["sweep", "sweep.toml", "--dry-run"]) == cli.OK
    assert cli.call(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "cubic" in said
    assert "all but the simulator" in said
    assert cli.call(["kernel", "list"]) == cli.OK
    assert "this is darwin" in capsys.readouterr().out


def test_cores_are_counted_where_affinity_is_not_known() -> None:
    assert machine.cores() == os.cpu_count()
