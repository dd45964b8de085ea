"""Claims on Linux in virtual time: those of a table of full.toml, and the reasons of the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lfnlab.errors import Unavailable
from lfnlab.experiment.executor import SIMULATOR
from lfnlab.papers import extension, on_linux, paper

if TYPE_CHECKING:
    from command import Lfn


def test_a_paper_for_routers_says_why_linux_has_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="has no claim for Linux: it has no router that writes"):
        on_linux.decide("evcp", out=tmp_path, linux=SIMULATOR)
    with pytest.raises(Unavailable, match='no part "nix" on Linux; allowed: three, our variant'):
        on_linux.decide("westwood-10g", out=tmp_path, linux=SIMULATOR, part="nix")


@pytest.mark.parametrize("other", ["--quick", "--kernel"])
def test_it_has_one_size_and_no_other_part(other: str, tmp_path: Path, lfn: Lfn) -> None:
    words = ["paper", "jgn2", "--on", "linux", other, "--out", str(tmp_path)]
    assert "--on linux: has one size" in lfn.refuses(*words)


def test_both_sides_have_the_same_runs_and_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small, and the simulator in Linux's place: it gives what it gives.
    quick: dict[str, Any] = paper.settings_of("westwood-10g", quick=True)
    at = {"three": {"seeds": 2, "duration": "40s", "warmup": "15s"}}
    parts = {"three": {"claims": ["W7", "W8"], "runs": [{"experiment": "three"}]}}
    settings = quick | {"linux": {"at": at, "parts": parts}}
    monkeypatch.setattr(paper, "settings_of", lambda _name, quick: settings)
    found = on_linux.decide("westwood-10g", out=tmp_path, linux=SIMULATOR)
    [pairs] = found.parts.values()
    assert [ours.claim for ours, _ in pairs] == ["W7", "W8"]
    for ours, theirs in pairs:
        assert ours == theirs
    # Two laws with two seeds.
    assert len(found.results["three"].runs) == 4
    home = tmp_path / "papers" / "x"
    home.mkdir(parents=True)
    monkeypatch.setattr(paper, "directory_of", lambda _name: home)
    on_linux.accept("x", found, "6.12.1")
    kept = paper.expected("x")["linux"]["parts"]["three"]
    assert (kept["release"], kept["runs"]) == ("6.12.1", 4)
    assert kept["claims"]["W7"]["linux"]["verdict"] == pairs[0][1].verdict


def test_a_papers_future_on_linux_has_each_law_on_each_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Short, and the simulator in Linux's place.
    full: dict[str, Any] = paper.settings_of("htcp-be", quick=False)
    own = {"rates": ["50Mbit/s"], "laws": ["htcp:linux", "htcp-be"], "duration": "6s"}
    own |= {"warmup": "1s", "seeds": 2}
    settings = full | {"extensions": full["extensions"] | {"linux": own}}
    monkeypatch.setattr(paper, "settings_of", lambda _name, quick: settings)
    found = extension.on_linux("htcp-be", linux=SIMULATOR, out=tmp_path)
    [table] = found.tables.values()
    assert [row[0] for row in table.rows] == ["htcp:linux", "htcp-be"]
    assert table.headings[1:] == tuple(f"50Mbit/s × {rtt}" for rtt in ("10ms", "20ms", "40ms"))
    for row in table.rows:
        for cell in row[1:]:
            here, there = str(cell).split(" | ")
            assert here == there
            assert 30 < float(here) < 50
    with pytest.raises(Unavailable, match='"evcp" left nothing for Linux; allowed: htcp-be'):
        extension.on_linux("evcp", linux=SIMULATOR, out=tmp_path)
