"""On another system the simulator works, and commands that need Linux say so: as if on macOS."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lfnlab import _core, machine
from lfnlab.cli import app as cli

if TYPE_CHECKING:
    from command import Lfn

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
def test_a_part_that_needs_linux_says_so(command: str, lfn: Lfn) -> None:
    assert cli.call(command.split()) != cli.OK
    said = lfn.said().err
    assert "needs Linux; this system is darwin" in said
    assert len(said.splitlines()) == 1


def test_the_simulator_works(lfn: Lfn) -> None:
    assert cli.call(["run", "a.toml", "--out", "out"]) == cli.OK
    assert cli.call(["new", "sweep"]) == cli.OK
    assert cli.call(["sweep", "sweep.toml", "--dry-run"]) == cli.OK
    said = lfn("doctor", code=1)
    assert "cubic" in said
    assert "all but the simulator" in said
    assert "this is darwin" in lfn("kernel", "list")


def test_cores_are_counted_where_affinity_is_not_known() -> None:
    assert machine.cores() == os.cpu_count()
