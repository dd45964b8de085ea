"""Does ``lfn score`` print what was measured, and name what cannot be?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from command import Lfn


def test_a_score_is_printed_and_stored(lfn: Lfn, tmp_path: Path) -> None:
    path = ("--path", "10Mbit/s 20ms 1bdp", "--axis", "goodput-0-0,cov", "--seeds", 2)
    said = lfn("score", "reno", "--against", "cubic", *path, "--out", tmp_path / "made")
    assert said.startswith("reno: objective v1 (")
    stored = json.loads((tmp_path / "made" / "score.json").read_text())
    assert [axis["axis"] for axis in stored["axes"]] == ["goodput-0-0", "cov"]
    assert stored["against"][0]["law"] == "cubic"
    assert 0.9 < stored["axes"][0]["median"]["mean"] <= 1.0


def test_a_path_needs_three_values(lfn: Lfn) -> None:
    assert "--path" in lfn.refuses("score", "reno", "--path", "10Mbit/s 20ms")
