"""The example of a paper's figure: what the page shows is what the folder has, and it is short."""

from __future__ import annotations

import tomllib
from pathlib import Path

from lfnlab.experiment.sweep import Sweep
from lfnlab.figures import style

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples/paper-figure"
FILES = ("rtts.toml", "column.toml")


def test_the_page_has_the_files_of_the_example() -> None:
    page = (ROOT / "docs/tutorial/paper-figure.md").read_text("utf-8")
    for name in FILES:
        assert f"file={name}\n{(EXAMPLE / name).read_text('utf-8')}```" in page


def test_the_task_takes_25_lines() -> None:
    lines = [line for name in FILES for line in (EXAMPLE / name).read_text("utf-8").splitlines()]
    assert len(lines) <= 25
    assert all(len(line) <= 100 for line in lines)


def test_it_is_the_task() -> None:
    sweep = Sweep.load(EXAMPLE / "rtts.toml")
    resolved = sweep.base.check()
    (flows,) = resolved.flows
    assert resolved.link is not None
    assert (resolved.link.rate, flows.count) == ("10Gbit/s", 10)
    assert flows.rtt is not None
    assert len(set(flows.rtt)) == 5
    assert "120ms" in flows.rtt
    assert resolved.link.loss
    assert resolved.background.level
    assert len(sweep.cases) == 4
    assert isinstance(sweep.seeds, int)
    assert sweep.seeds >= 5  # fewer have no error bars
    assert style.read(EXAMPLE / "column.toml").width == 3.5
    assert tomllib.loads((EXAMPLE / "column.toml").read_text("utf-8"))["base"] == "paper"
