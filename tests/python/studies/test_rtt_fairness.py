"""Exponents of RTT unfairness: experiments against closed forms, the page against its table."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies.rtt_fairness import EXPERIMENTS, STUDY, contestants, page, row

from lfnlab import execute


@pytest.mark.parametrize(
    ("experiment", "law", "exponent"),
    [("together", "reno", 2.0), ("together", "hybla", 0.0), ("apart", "htcp", 0.55)],
)
def test_laws_meet_their_closed_forms(
    experiment: str, law: str, exponent: float, tmp_path: Path
) -> None:
    chosen = next(each for each in EXPERIMENTS if each.name == experiment)
    (found,) = execute(chosen.scenario(law), out=tmp_path).runs
    assert row(found)["exponent"] == pytest.approx(exponent, abs=0.15)


def test_the_page_is_of_the_committed_table() -> None:
    table, stamp = STUDY.committed()
    assert list(dict.fromkeys(table["law"])) == contestants()
    assert STUDY.answer.read_text(encoding="utf-8") == page(table, stamp)
