"""Do the claims on JGN II compute what they say?"""

from __future__ import annotations

import math
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import polars as pl
import pytest

from lfnlab.analysis.checks import Check
from lfnlab.analysis.finding import Verdict
from lfnlab.experiment.run import execute
from lfnlab.papers import paper
from lfnlab.results.runs import Run
from marks import faults

if TYPE_CHECKING:
    from lfnlab.papers.paper import Reproduction

ROOT = Path(__file__).parents[3] / "papers" / "jgn2"
CLAIMS = [f"J{i}" for i in range(1, 9)]


def tiny_settings() -> dict[str, Any]:
    """The whole path at 10 Mbit/s: numbers that mean nothing, every step taken."""
    settings = tomllib.loads((ROOT / "quick.toml").read_text())
    settings["rate"] = "10Mbit/s"
    settings["international"] |= {"duration_s": 40, "loss": 1e-3}
    settings["ratios"] |= {"duration_s": 10, "warmup_s": 2}
    settings["switch"] |= {"rate": "2Mbit/s", "window": "100kB"}
    settings["matrix"] |= {"duration_s": 6, "warmup_s": 2}
    return settings


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    original = paper.settings_of
    try:
        paper.settings_of = lambda name, quick: tiny_settings()
        return paper.reproduce("jgn2", quick=True, out=tmp_path_factory.mktemp("paper"))
    finally:
        paper.settings_of = original


@pytest.fixture
def claims(tiny: Reproduction) -> Any:
    """The paper's module."""
    return sys.modules["papers_jgn2"]


def test_every_claim_has_a_finding(tiny: Reproduction) -> None:
    assert [finding.claim for finding in tiny.findings] == CLAIMS
    for finding in tiny.findings:
        assert finding.verdict in get_args(Verdict)
        assert any(digit.isdigit() for digit in finding.ours)
        assert bool(finding.cause) == (finding.verdict != "holds")


def test_figures_hold_what_they_draw(tiny: Reproduction) -> None:
    assert tiny.figures
    for name, (figure, _) in tiny.figures.items():
        assert list(faults(figure)) == [], name


def test_full_and_quick_take_the_same_path() -> None:
    full, quick = (tomllib.loads((ROOT / f"{n}.toml").read_text()) for n in ("full", "quick"))
    assert set(full) - {"linux", "draws", "shorter"} == set(quick)
    assert full["laws"] == quick["laws"]
    assert full["ratios"]["ratios"] == quick["ratios"]["ratios"] == [1, 2, 4]
    assert (full["rate"], full["domestic"], full["international"]["rtt"]) == (
        "1Gbit/s",
        "38ms",
        "180ms",
    )


def test_accepted_findings_name_every_claim() -> None:
    expected = paper.expected("jgn2")
    for size in ("full", "quick"):
        varied = tomllib.loads((ROOT / f"{size}.toml").read_text())["variants"]
        names = [f"{claim} @ {name}" for name in varied for claim in CLAIMS if claim != "J7"]
        assert sorted(expected[size]["findings"]) == sorted([*CLAIMS, *names])


def test_udt_is_in_every_claim_about_it(claims: Any, tmp_path: Path) -> None:
    settings = tiny_settings()
    assert "udt" in settings["laws"]
    study = claims.Study(settings, execute(claims.cases(settings), out=tmp_path))
    found = [claim(study) for claim in (claims.j2, claims.j3, claims.j4, claims.j5)]
    assert all(finding.verdict != "cannot be tested" for finding in found)
    assert "UDT's mean is" in found[0].ours
    for finding in found[1:]:
        assert "udt" in finding.ours


def test_without_udt_a_claim_may_fail_but_not_hold(claims: Any) -> None:
    def verdict(*laws: str, **tests: bool | None) -> tuple[str, str]:
        study = claims.Study({"laws": laws}, None)
        known = {said: Check(so) for said, so in tests.items()}
        found = claims.finding(study, "J1", "", "", "", known)
        return found.verdict, found.cause

    assert verdict("bic", "udt", one=True, two=True) == ("holds", "")
    assert verdict("bic", "udt", one=True, two=None)[0] == "undecided"
    assert verdict("bic", one=True, two=True)[0] == "cannot be tested"
    assert verdict("bic", one=False, two=None) == ("does not hold", "one")


def test_marked_mixes_are_those_of_the_paper(claims: Any) -> None:
    """Its text gives HSTCP with Scalable as one."""
    marked = claims.below_both(claims.PAPER, claims.PAPER_MBPS)
    assert ("hstcp", "scalable") in marked
    assert ("scalable", "bic") not in marked, "495 is above Scalable's own 492"
    assert ("htcp", "udt") not in marked, "580 is above H-TCP's own 489"
    assert len(marked) == 6
    near = {("a", "a"): 950.0, ("b", "b"): 945.0, ("a", "b"): 940.0}
    assert claims.below_both(near, 1000.0) == set(), "less than 1 % of the rate"
    assert claims.rank_correlation(near, near) == pytest.approx(1.0)
    assert claims.rank_correlation(near, {k: -x for k, x in near.items()}) == pytest.approx(-1.0)


def test_first_time(claims: Any) -> None:
    t_s = np.array([1.0, 2.0, 3.0])
    assert claims.first(t_s, t_s > 1.5) == 2.0
    assert math.isinf(claims.first(t_s, t_s > 9))


def test_most_runs_are_more_than_half_of_them(claims: Any) -> None:
    assert claims.mostly([True] * 3).so is True
    assert claims.mostly([True] * 27 + [False] * 3).so is True
    assert claims.mostly([True, True, False]).so is None
    assert claims.mostly([True] * 15 + [False] * 15).so is None
    assert claims.mostly([False] * 28 + [True] * 2).so is False
    assert claims.mostly([True]).so is None, "one run says nothing about most"


def test_throughput_at_the_bottleneck_has_no_hole_where_a_segment_is_lost(
    claims: Any, tmp_path: Path
) -> None:
    """A megabit each tenth of a second; in the second second none of it is acknowledged."""
    t_s = np.arange(1, 31) / 10
    pl.DataFrame(
        {"t_s": [*t_s, *t_s], "link": [0] * 30 + [1] * 30, "sent_bytes": [*t_s * 1.25e6, *t_s]}
    ).write_parquet(tmp_path / "queues.parquet")
    t_s = np.append(0.0, t_s)
    delivered = np.where((t_s > 1) & (t_s <= 2), 1.0, t_s) * 1.25e6
    pl.DataFrame({"t_s": t_s, "flow": [0] * 31, "delivered_bytes": delivered}).write_parquet(
        tmp_path / "flows.parquet"
    )
    runs = sys.modules["papers_jgn2.runs"]
    ends_s, mbps = runs.throughput(Run(tmp_path, 1, {}))
    assert list(ends_s) == [1.0, 2.0, 3.0]
    assert mbps == pytest.approx([10.0] * 3)
    assert runs.course(Run(tmp_path, 1, {}))[1] == pytest.approx([10.0, 0.0, 20.0])


def test_a_switch_loses_for_as_long_as_it_is_told(claims: Any) -> None:
    runs: Any = sys.modules["papers_jgn2.runs"]
    settings = tiny_settings()
    settings["switch"] |= {"outage_s": 1.5}
    made = runs.switched(settings, "bic", "delay")
    seen = [(change.at, change.link, change.route) for change in made.schedule]
    assert seen == [
        ("30s", None, ("emulator",)),
        ("30s", "emulator", ()),
        ("31.5s", "emulator", ()),
        ("60s", None, ("domestic",)),
        ("60s", "domestic", ()),
        ("61.5s", "domestic", ()),
    ]
    made.check()
    settings["switch"]["outage_s"] = 0
    assert len(runs.switched(settings, "bic", "delay").schedule) == 2


def test_losses_of_the_international_path_begin_when_they_are_told(claims: Any) -> None:
    runs: Any = sys.modules["papers_jgn2.runs"]
    settings = tiny_settings()
    assert runs.international(settings, 1).schedule == ()
    assert runs.international(settings, 1).link.loss == 1e-3
    settings["international"]["loss_from_s"] = 20
    late = runs.international(settings, 1)
    (change,) = late.schedule
    assert (late.link.loss, change.at, change.link, change.loss) == (0.0, "20s", "forward", 1e-3)
    late.flow("bic").check()
