"""Do the figures of the papers without tests of their own hold what they draw?"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lfnlab.papers import paper
from marks import faults

ROOT = Path(__file__).parents[3] / "papers"


def tiny_cw_hstcp(settings: dict[str, Any]) -> None:
    settings |= {"duration": "40s", "warmup": "20s", "seeds": 1}
    settings["rate"] = "20Mbit/s"
    settings["variants"] = {"10Mbit/s": {"rate": "10Mbit/s"}}
    settings["intervals_s"] = [10, 20, 30, 40]


def tiny_westwood_10g(settings: dict[str, Any]) -> None:
    settings["seeds"] = 1
    settings["single"] |= {"rate": "0.1Gbit/s", "rtt": "100ms", "window": "1MB", "duration": "60s"}
    settings["burst"] |= {"rate": "0.05Gbit/s", "start_s": 8, "seconds": 2, "duration": "24s"}
    settings["three"] |= {"rate": "0.02Gbit/s", "duration": "20s", "warmup": "12s"}


@pytest.mark.parametrize(
    ("name", "shrink"),
    [("cw_hstcp", tiny_cw_hstcp), ("westwood_10g", tiny_westwood_10g)],
)
def test_figures_hold_what_they_draw(
    name: str,
    shrink: Callable[[dict[str, Any]], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole path at a few Mbit/s: numbers that mean nothing, every figure drawn."""
    settings = tomllib.loads((ROOT / name / "quick.toml").read_text())
    shrink(settings)
    monkeypatch.setattr(paper, "settings_of", lambda _name, _quick: settings)
    figures = paper.reproduce(name.replace("_", "-"), quick=True, out=tmp_path).figures
    assert figures
    for title, (figure, _) in figures.items():
        assert list(faults(figure)) == [], title
