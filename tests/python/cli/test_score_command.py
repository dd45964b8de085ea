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


def test_a_buffer_in_packets_is_one_value(lfn: Lfn, tmp_path: Path) -> None:
    path = ("--path", "10Mbit/s 20ms 64 packets", "--axis", "cov", "--seeds", 1)
    assert "64 packets" in lfn("score", "reno", *path, "--out", tmp_path / "made")


def test_a_number_of_seeds_is_whole(lfn: Lfn) -> None:
    said = lfn.refuses("score", "reno", "--seeds", "1.5")
    assert "--seeds: 1.5; allowed: a whole number" in said


def test_a_law_that_raises_fails_the_score(lfn: Lfn, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from lfnlab import Law\n\n\nclass Mine(Law):\n"
        "    def on_ack(self, n, ack):\n        pass\n\n"
        "    def on_loss(self, loss):\n        raise ArithmeticError('as it should')\n"
    )
    path = ("--path", "10Mbit/s 20ms 1bdp", "--axis", "cov", "--seeds", 1)
    assert "as it should" in lfn.err(
        "score", f"{file}:Mine", *path, "--out", tmp_path / "made", code=1
    )
