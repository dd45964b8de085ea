"""Do the claims on Westwood+ compute what they say?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from lfnlab.papers import draws, paper
from lfnlab.results.runs import Run


@pytest.fixture(scope="module")
def claims() -> Any:
    """The paper's module."""
    return paper.claims_of("westwood-10g")


def test_one_loss_in_five_million_is_not_the_papers_own_loss_rate(claims: Any) -> None:
    found = claims.w1()
    assert found.verdict == "does not hold"
    (wrong,) = [said for said, test in found.tests.items() if test.so is False]
    assert wrong.startswith("one loss in 5,000,000")
    assert "4.8e+09" in found.ours


def test_no_time_has_the_mean_that_the_paper_gives(claims: Any) -> None:
    """Of its own windows: 7.5 Gbit/s for 180 s, then a segment more each round trip."""
    least_bps = claims.least_mean_bps()
    rtt_s = 0.265
    for end_s in (500.0, 1500.0, 6000.0):
        late_s = end_s - 180.0
        grown = 2.7e7 + 9000 * late_s / rtt_s
        assert grown < claims.PEAK
        mean_bps = (180.0 * claims.PEAK + late_s * (2.7e7 + grown) / 2) / end_s * 8 / rtt_s
        assert least_bps < 1.001 * mean_bps
    assert least_bps == pytest.approx(2.2e9, rel=0.02)
    assert least_bps > 10e9 / 5, "so its mean of less than a fifth is of another course"


def test_the_index_is_of_the_bins_that_are_given(claims: Any, tmp_path: Path) -> None:
    """Two flows that take turns every 0.1 s share evenly in each second."""
    t_s = np.arange(1, 41) / 10
    turns = [np.cumsum((np.arange(40) + first) % 2) * 1000 for first in (0, 1)]
    pl.DataFrame(
        {
            "t_s": np.concatenate((t_s, t_s)),
            "flow": [0] * 40 + [1] * 40,
            "delivered_bytes": np.concatenate(turns),
        }
    ).write_parquet(tmp_path / "flows.parquet")
    (tmp_path / "summary.json").write_text('{"warmup_s": 1.0}')
    run = Run(tmp_path, 1, {})
    assert claims.jain_after(run, 1.0) == pytest.approx(np.ones(3))
    assert claims.jain_after(run, 0.1) == pytest.approx(np.full(30, 0.5))


def test_bins_and_variants_of_the_law_are_drawn() -> None:
    settings = paper.settings_of("westwood-10g", quick=False)
    chosen = [settings for _, settings in draws.drawn("westwood-10g", settings)]
    assert {own["three"]["bin_s"] for own in chosen} == {0.1, 0.3, 1.0}
    assert {own["systems"]["westwood"] for own in chosen} == {
        "westwood:linux",
        "westwood",
        "westwood:paper",
    }
    named = settings["variants"]["its paper's Westwood+"]["systems"]["westwood"]
    assert named == "westwood:paper"
