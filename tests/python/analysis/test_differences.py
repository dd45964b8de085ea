"""The table of what differs agrees with the paired comparisons that it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import lfnlab
from lfnlab.analysis import differences
from lfnlab.analysis.table import with_interval
from lfnlab.figures.report import write_report
from lfnlab.statistics import Interval

if TYPE_CHECKING:
    from pathlib import Path


def path(buffer: str = "1bdp") -> lfnlab.Scenario:
    return lfnlab.dumbbell(rate="20Mbit/s", rtt="20ms", buffer=buffer, duration="2s", loss=2e-3)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> lfnlab.Results:
    cases = [
        lfnlab.Case(path(size).flow(law), {"law": law, "link.queue.size": size})
        for law in ("reno", "cubic", "scalable")
        for size in ("0.5bdp", "1bdp")
    ]
    return lfnlab.execute(cases, seeds=5, out=tmp_path_factory.mktemp("swept"))


def test_it_counts_the_paired_comparisons(swept: lfnlab.Results) -> None:
    found = differences.table(swept)
    assert found is not None
    assert [row[:2] for row in found.rows] == [
        ("law", "cubic beside reno"),
        ("law", "scalable beside reno"),
        ("link.queue.size", "1bdp beside 0.5bdp"),
    ]
    compared = swept.compare("reno", ["goodput_bps"])
    for row, law in zip(found.rows, ("cubic", "scalable"), strict=False):
        own = compared.filter(compared["law"] == law)
        low = own["goodput_bps_difference"] - own["goodput_bps_ci95"]
        high = own["goodput_bps_difference"] + own["goodput_bps_ci95"]
        counts = {"higher": (low > 0).sum(), "lower": (high < 0).sum()}
        told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        assert row[2] == f"{told or 'none'} of 2"


def test_of_one_case_it_says_the_difference(tmp_path: Path) -> None:
    results = lfnlab.compare(["reno", "cubic"], path(), seeds=5, out=tmp_path / "out")
    found = differences.table(results)
    assert found is not None
    (own,) = results.compare("reno", ["goodput_bps"]).to_dicts()
    expected = Interval(own["goodput_bps_difference"], own["goodput_bps_ci95"], 5)
    assert found.rows == (("law", "cubic beside reno", *found.rows[0][2:]),)
    assert found.rows[0][2] == with_interval(expected, 1e-6)
    assert "<h2>What differs</h2>" in write_report(results).read_text(encoding="utf-8")


def test_few_seeds_and_neighbours_are_not_compared(tmp_path: Path) -> None:
    few = lfnlab.compare(["reno", "cubic"], path(), seeds=4, out=tmp_path / "few")
    assert differences.table(few) is None
    beside = path().flow("reno").flow("cubic")
    both = lfnlab.execute([lfnlab.Case(beside)], seeds=5, out=tmp_path / "beside")
    assert differences.table(both) is None
