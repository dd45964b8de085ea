"""Do the claims compute what they say?"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest

from lfnlab.analysis.checks import Check
from lfnlab.analysis.finding import Finding, Verdict
from lfnlab.metrics import FirstPassage
from lfnlab.papers import paper, verdicts
from lfnlab.papers.paper import Reproduction
from lfnlab.results.runs import Results, Run
from marks import faults

ROOT = Path(__file__).parents[3] / "papers" / "htcp_be"
CLAIMS = [f"H{i}" for i in range(1, 12)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """The whole path at a hundredth of the rate: numbers that mean nothing, every step taken."""
    text = (ROOT / "quick.toml").read_text()
    settings = tomllib.loads(text)
    settings |= {"rate": "20Mbit/s", "duration": "8s", "warmup": "2s", "rtts": ["10ms", "40ms"]}
    settings["parallel"] |= {"duration": "6s", "warmup": "2s"}
    settings["response"] |= {
        "rate": "100Mbit/s",
        "duration": "8s",
        "losses": [1e-3],
        "warmup": "1s",
    }
    directory = tmp_path_factory.mktemp("paper")
    original = paper.settings_of
    try:
        paper.settings_of = lambda name, quick: settings
        return paper.reproduce("htcp-be", quick=True, out=directory)
    finally:
        paper.settings_of = original


def test_every_claim_has_a_finding(tiny: Reproduction) -> None:
    assert [finding.claim for finding in tiny.findings] == CLAIMS
    for finding in tiny.findings:
        assert finding.verdict in get_args(Verdict)
        assert (
            any(digit.isdigit() for digit in finding.ours) or finding.verdict == "cannot be tested"
        )


def test_figures_hold_what_they_draw(tiny: Reproduction) -> None:
    assert tiny.figures
    for name, (figure, _) in tiny.figures.items():
        assert list(faults(figure)) == [], name


def test_full_and_quick_take_the_same_path() -> None:
    full, quick = (tomllib.loads((ROOT / f"{n}.toml").read_text()) for n in ("full", "quick"))
    assert set(full) - {"causes", "draws", "linux"} == set(quick)
    assert set(quick["variants"]) <= set(full["variants"])
    assert full["laws"] == quick["laws"]
    assert full["levels"] == quick["levels"] == [0, 1, 2, 3]
    assert len(full["laws"]) * len(full["levels"]) * len(full["rtts"]) == 96
    assert full["blocks"] >= 5


def test_accepted_findings_name_every_claim() -> None:
    expected = paper.expected("htcp-be")
    for size in ("full", "quick"):
        settings = tomllib.loads((ROOT / f"{size}.toml").read_text())
        names = [
            f"{claim} @ {name}"
            for name in settings["variants"]
            for claim in CLAIMS
            if claim != "H7"
        ]
        again = [
            f"{claim} with {cause}"
            for cause, own in settings.get("causes", {}).items()
            for claim in own["claims"]
        ]
        assert sorted(expected[size]["findings"]) == sorted([*CLAIMS, *names, *again])


def test_the_page_is_that_of_the_accepted_findings() -> None:
    docs = ROOT.parents[1] / "docs"
    command = "python -m lfnlab.papers.verdicts writes it"
    assert (docs / "papers.md").read_text() == verdicts.page(), command
    for name in paper.papers():
        assert (docs / "papers" / f"{name}.md").read_text() == verdicts.paper_page(name), command
        for figure in paper.expected(name)["full"].get("figures", {}):
            assert (docs / "figures" / figure).is_file()


def test_numbers_of_the_first_answers_are_those_of_the_findings() -> None:
    """A number with a unit in the answer stands in an accepted finding of the paper too."""
    number = r"\d+(?:\.\d+)?"
    for name in paper.papers():
        found = paper.expected(name)["full"]["findings"].values()
        known = {n for finding in found for n in re.findall(number, finding["ours"])}
        answer = verdicts.summary(name)["answer"]
        assert set(answer) == {"question", "answer", "where", "difference"}
        assert set(re.findall(number, answer["difference"])) <= known | set(
            re.findall(number, answer["where"])
        )


def test_the_front_page_counts_the_verdicts_and_has_the_accepted_indices() -> None:
    page = " ".join((ROOT.parents[1] / "docs" / "index.md").read_text().split())
    total: Counter[str] = Counter()
    for name in paper.papers():
        found = verdicts.by_claim(paper.expected(name))
        total.update(verdict for verdict, _, _ in found.values())
    assert (
        f"have {total.total()} claims: {total['holds']} hold, {total['does not hold']} do not, "
        f"{total['undecided']} are undecided, and {total['depends']} depend"
    ) in page
    untested = total["cannot be tested"]
    assert (f"leaves open; {untested} cannot be tested." in page) == (untested > 0)
    [sentence] = re.findall(
        r"Jain's index of their throughputs over 50 s is [^:]*Scalable TCP\.", page
    )
    known = paper.expected("cw-hstcp")["full"]["findings"]["C8"]["ours"]
    assert set(re.findall(r"0\.\d+", sentence)) <= set(re.findall(r"0\.\d+", known))


def test_every_claim_has_a_few_words() -> None:
    for name in paper.papers():
        findings = verdicts.by_claim(paper.expected(name))
        words = verdicts.summary(name)["claims"]
        assert set(words) >= set(findings)
        assert all(0 < len(of) <= 70 for of in words.values())


def test_kept_fraction_and_growth_of_known_losses(tiny: Reproduction, tmp_path: Path) -> None:
    runs: Any = sys.modules["papers_htcp_be.runs"]
    (tmp_path / "summary.json").write_text('{"warmup_s": 10.0}')
    pl.DataFrame(
        {
            "t_s": [5.0, 20.0, 30.0, 40.0, 41.0],
            "kind": [0, 0, 0, 1, 0],
            "cwnd_before_seg": [9.0, 100.0, 200.0, 300.0, 50.0],
            "ssthresh_seg": [1.0, 50.0, 160.0, 150.0, 25.0],
        }
    ).write_parquet(tmp_path / "events.parquet")
    run = Run(tmp_path, 1, {})
    # The loss in the warm-up does not count; the timeout keeps no window.
    assert runs.kept_fraction(run) == pytest.approx((0.5 + 0.8 + 0.5) / 3)
    assert runs.set_window(run) == pytest.approx((50.0 + 160.0 + 25.0) / 3)
    # 50 to 200 in 10 s; what follows the timeout or leads to it does not count.
    assert runs.growth_per_s(run) == pytest.approx(15.0)


def test_a_newcomer_has_settled_when_it_holds_its_share(tiny: Reproduction, tmp_path: Path) -> None:
    """It begins at 2 s, and has as much as the first from 4 s on."""
    runs: Any = sys.modules["papers_htcp_be.runs"]
    t_s = [float(t) for t in range(13)]
    first = [1e6 * t for t in t_s]
    second = [1e5 * max(0.0, min(t, 4.0) - 2.0) + 1e6 * max(0.0, t - 4.0) for t in t_s]
    pl.DataFrame(
        {
            "t_s": [*t_s, *t_s[2:]],
            "flow": [0] * 13 + [1] * 11,
            "delivered_bytes": [*first, *second[2:]],
        }
    ).write_parquet(tmp_path / "flows.parquet")
    (tmp_path / "summary.json").write_text('{"flows": [{"start_s": 0.0}, {"start_s": 2.0}]}')
    found = runs.settled(Run(tmp_path, 1, {}))
    assert (found.value, found.censored) == (3.0, False), "the first of five such seconds"


def test_the_end_of_a_run_decides_no_order(tiny: Reproduction) -> None:
    claims = sys.modules["papers_htcp_be"]
    soon, late, never = FirstPassage(5.0), FirstPassage(9.0), FirstPassage(20.0, censored=True)
    assert claims.sooner([soon] * 3, [late] * 3).so is True
    assert claims.sooner([late] * 3, [soon] * 3).so is False
    assert claims.sooner([late] * 3, [never] * 3).so is True
    assert claims.sooner([never] * 3, [late] * 3).so is False
    assert claims.sooner([never] * 3, [never] * 3).so is None
    assert claims.sooner([soon] * 9 + [never], [never] * 10).so is True


@pytest.mark.parametrize("kind", ["mix", "UDP bursts", "large flows"])
def test_every_kind_of_background_is_a_scenario(tiny: Reproduction, kind: str) -> None:
    runs: Any = sys.modules["papers_htcp_be.runs"]
    settings = tomllib.loads((ROOT / "full.toml").read_text()) | {"background": kind}
    bare = runs.base(settings, "10ms", 1)
    loaded = [runs.loaded(bare, settings, level).flow("reno") for level in settings["levels"]]
    assert loaded[0] == bare.with_background(0).flow("reno") or loaded[0] == bare.flow("reno")
    for scenario in loaded:
        scenario.check()
    assert len({scenario.to_toml() for scenario in loaded}) == 4


def test_a_changed_verdict_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "claims.py").touch()
    monkeypatch.setattr(paper, "papers", lambda: {"x": tmp_path})
    run = Run(tmp_path / "run", 1, {})
    run.path.mkdir()
    (run.path / "summary.json").write_text('{"hash": "abc"}')
    seen = Reproduction(
        results=Results(tmp_path, "", (run,)),
        findings=[Finding("H1", "Fig. 1", "it falls", "1 ± 0", "holds")],
        sensitivity={"0.1bdp": [Finding("H1", "", "", "", "does not hold")]},
    )
    assert len(paper.changed("x", True, seen)) == 3
    paper.accept("x", True, seen)
    assert paper.changed("x", True, seen) == []
    assert paper.changed("x", False, seen) != [], "full and quick are accepted one by one"
    accepted = paper.expected("x")["quick"]
    assert accepted["command"] == "lfn paper x --quick"
    assert accepted["findings"]["H1"]["ours"] == "1 ± 0"
    (run.path / "summary.json").write_text('{"hash": "abd"}')
    other_runs = replace(seen, results=Results(tmp_path, "", (Run(tmp_path / "run", 1, {}),)))
    (stale,) = paper.changed("x", True, other_runs)
    assert stale.startswith("hash: "), "an accepted hash is that of the engine of the tree"
    (run.path / "summary.json").write_text('{"hash": "abc"}')
    fallen = replace(seen, findings=[replace(seen.findings[0], verdict="does not hold")])
    assert paper.changed("x", True, fallen) == ["H1: holds -> does not hold"]
    other = replace(fallen, findings=[], sensitivity=seen.sensitivity)
    assert paper.changed("x", True, other) == ["H1: holds -> gone"]


def test_a_claim_holds_if_every_test_does() -> None:
    def seen(**tests: bool | None) -> Finding:
        known = {said: Check(so) for said, so in tests.items()}
        return paper.decided("X1", "Fig. 1", "it falls", "1 ± 0", known)

    assert seen(falls=True, far=True).verdict == "holds"
    assert (seen(falls=True, far=None).verdict, seen(falls=True, far=None).cause) == (
        "undecided",
        "the interval covers the bound: far",
    )
    failed = seen(falls=False, far=None)
    assert (failed.verdict, failed.cause) == ("does not hold", "falls")
    named = paper.decided("X1", "", "", "", {"falls": False}, cause="a run shows it")
    assert named.cause == "a run shows it"


def test_blocks_are_means_over_round_trip_times(tiny: Reproduction) -> None:
    runs: Any = sys.modules["papers_htcp_be.runs"]
    study = runs.Study(tomllib.loads((ROOT / "quick.toml").read_text()), tiny.results)
    factors = {"part": "one flow", "law": "reno", "level": 1}
    values = study.by_block(
        lambda run: run.seed + {"10ms": 0, "40ms": 4}[run.factors["rtt"]], **factors
    )
    assert values == [3.0, 4.0]
    some = study.by_block(lambda run: None if run.seed == 1 else 1.0, **factors)
    assert some == [1.0], "a block without any is left out"
    assert study.ratios(lambda run: 0.0, "htcp", "reno") == []
    assert study.ratios(lambda run: 2.0 * run.seed, "htcp", "reno") == [1.0, 1.0]


def test_a_claim_depends_if_decided_verdicts_differ() -> None:
    assert paper.overall("holds", []) == "holds"
    assert paper.overall("holds", ["undecided", "cannot be tested"]) == "holds"
    assert paper.overall("holds", ["does not hold"]) == "depends"
    assert paper.overall("undecided", ["holds", "does not hold"]) == "depends"
    assert paper.overall("undecided", ["holds"]) == "undecided"


def test_a_claim_depends_if_three_draws_differ() -> None:
    draws: list[Verdict] = ["undecided"] * 15 + ["holds"] * 3
    assert paper.overall("holds", [], [*draws, "does not hold", "does not hold"]) == "holds"
    assert paper.overall("holds", [], ["does not hold"] * 3 + draws) == "depends"
    assert paper.overall("undecided", [], draws) == "undecided"
    assert paper.overall("does not hold", [], draws) == "depends"
