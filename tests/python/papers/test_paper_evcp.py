"""Do the claims on EVCP compute what they say?"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import polars as pl
import pytest

from lfnlab.analysis.finding import Verdict
from lfnlab.metrics import FirstPassage
from lfnlab.papers import paper
from lfnlab.results.runs import Run
from marks import faults

if TYPE_CHECKING:
    from lfnlab.papers.paper import Reproduction

ROOT = Path(__file__).parents[3] / "papers" / "evcp"
CLAIMS = [f"E{i}" for i in range(1, 12)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """The whole path at 10 Mbit/s: numbers that mean nothing, every step taken."""
    settings = tomllib.loads((ROOT / "quick.toml").read_text())
    slow = {"rate": "10Mbit/s", "newcomer_s": 15}
    for part in (settings, settings["smaller"]):
        part["pair"] = {**slow, "watch_s": 10}
        part["newcomer"] |= {**slow, "flows": [2, 3], "rates": ["5Mbit/s", "10Mbit/s"]}
    settings["newcomer"]["tenth"]["rate"] = "5Mbit/s"
    settings["staircase"] |= {
        "each_s": 10,
        "rates": ["5Mbit/s", "10Mbit/s"],
        "beside_background": "8Mbit/s",
    }
    settings["pairs"] |= {"rates": ["8Mbit/s"], "each_s": 10}
    settings["newcomer"]["xcp_watch_s"] = 5
    original = paper.settings_of
    try:
        paper.settings_of = lambda name, quick: settings
        return paper.reproduce("evcp", quick=True, out=tmp_path_factory.mktemp("paper"))
    finally:
        paper.settings_of = original


@pytest.fixture
def runs(tiny: Reproduction) -> Any:
    """The module that makes and measures runs."""
    return sys.modules["papers_evcp.runs"]


def test_every_claim_has_a_finding(tiny: Reproduction) -> None:
    assert [finding.claim for finding in tiny.findings] == CLAIMS
    for finding in tiny.findings:
        assert finding.verdict in get_args(Verdict)
        assert any(digit.isdigit() for digit in finding.ours)
        assert bool(finding.cause) == (finding.verdict != "holds") or finding.claim == "E9"


def test_figures_hold_what_they_draw(tiny: Reproduction) -> None:
    assert tiny.figures
    for name, (figure, _) in tiny.figures.items():
        assert list(faults(figure)) == [], name


def test_full_and_quick_take_the_same_path() -> None:
    full, quick = (tomllib.loads((ROOT / f"{n}.toml").read_text()) for n in ("full", "quick"))
    assert set(full) - {"linux", "draws"} == set(quick)
    assert set(quick["variants"]) <= set(full["variants"])
    for part in ("pair", "newcomer", "staircase", "pairs", "smaller"):
        assert set(full[part]) == set(quick[part])
    assert full["pair"]["rate"] == full["newcomer"]["rates"][-1] == "1Gbit/s"
    assert full["staircase"]["rates"] == ["45Mbit/s", "120Mbit/s"]


def test_accepted_verdicts_name_every_claim(tiny: Reproduction) -> None:
    claims: Any = sys.modules["papers_evcp"]
    expected = paper.expected("evcp")
    for size in ("full", "quick"):
        varied = tomllib.loads((ROOT / f"{size}.toml").read_text())["variants"]
        fairs = [fair.name for fair in claims.OTHER_FAIR]
        names = [f"E{i} @ {x}" for x in (*varied, *fairs) for i in (1, 2, 3, 4, 8, 10)]
        assert sorted(expected[size]["findings"]) == sorted([*CLAIMS, *names])


def run_of(tmp_path: Path, first: list[float], second: list[float]) -> Run:
    """Two flows with these windows, a sample each 100 ms from 10 s on, the second from 11 s on."""
    tables = []
    for flow, windows in enumerate((first, second)):
        t_s = 10.0 + 0.1 * np.arange(len(windows)) + flow
        flows = np.full(len(windows), flow, dtype=np.uint32)
        tables.append(pl.DataFrame({"t_s": t_s.round(1), "flow": flows, "cwnd_seg": windows}))
    pl.concat(tables).write_parquet(tmp_path / "flows.parquet")
    return Run(tmp_path, 1, {})


def test_decreases_and_penalties_of_known_windows(runs: Any, tmp_path: Path) -> None:
    # A decrease before the second flow came, one that it hears of a sample later, a penalty.
    first = [1000.0] * 5 + [875.0] * 15 + [1000.0] * 10 + [875.0] * 20 + [900.0] * 5 + [630.0] * 10
    second = [100.0] * 21 + [87.5] * 19 + [100.0] * 5 + [87.5] * 10
    found = runs.decreases(run_of(tmp_path, first, second))
    assert [round(each.t_s, 1) for each in found] == [13.0, 15.5]
    assert found[0].before == (1000.0, 100.0)
    assert found[0].after == (875.0, 87.5)
    (penalty,) = runs.penalties(run_of(tmp_path, first, second))
    assert penalty == found[1]
    assert penalty.after == (630.0, 87.5)


def test_a_burst_is_growth_beyond_a_segment_a_round_trip(runs: Any, tmp_path: Path) -> None:
    slow = [100.0 + k for k in range(40)]
    burst = [slow[-1] * 1.03**k for k in range(1, 21)]
    after = [burst[-1] + k for k in range(40)]
    second = [*slow, *burst, *after]
    found = runs.bursts_s(run_of(tmp_path, [1000.0] * (len(second) + 10), second))
    assert found == pytest.approx([15.0], abs=0.7)


@pytest.mark.parametrize(
    ("one", "other", "shorter"),
    [
        (FirstPassage(5), FirstPassage(6), True),
        (FirstPassage(6), FirstPassage(5), False),
        (FirstPassage(5), FirstPassage(6, censored=True), True),
        (FirstPassage(6, censored=True), FirstPassage(5), False),
        (FirstPassage(5, censored=True), FirstPassage(6), None),
        (FirstPassage(6), FirstPassage(5, censored=True), None),
    ],
)
def test_what_was_not_seen_is_not_known(
    runs: Any, one: FirstPassage, other: FirstPassage, shorter: bool | None
) -> None:
    assert runs.shorter(one, other).so is shorter


def test_times_are_compared_run_by_run(runs: Any) -> None:
    def times(*values: float, censored: bool = False) -> list[FirstPassage]:
        return [FirstPassage(value, censored) for value in values]

    assert runs.less(times(5, 6, 5), times(9, 10, 8)).so is True
    assert runs.less(times(9, 10, 8), times(5, 6, 5)).so is False
    assert runs.less(times(5, 9, 5), times(6, 7, 8)).so is None, "the interval covers zero"
    assert runs.less(times(5), times(9)).so is None, "one run has no interval"
    late = times(50, 50, 50, censored=True)
    assert runs.less(times(5, 6, 5), late).so is True, "it takes longer still"
    assert runs.less(late, times(5, 6, 5)).so is False
    assert runs.less(late, times(90, 91, 90)).so is None
    assert runs.less(times(90, 91, 90), late).so is None
    assert runs.less(times(5, 6), times(9, 10, 1)).so is True, "of the seeds that both have"


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ((5, 6, 5), (9, 10, 8), "holds"),
        ((9, 10, 8), (5, 6, 5), "does not hold"),
        ((5, 9, 5), (6, 7, 8), "undecided"),
    ],
)
@pytest.mark.parametrize("censored", [(), ("one",), ("other",), ("one", "other")])
def test_no_verdict_rests_on_times_that_were_not_seen(
    tiny: Reproduction,
    runs: Any,
    one: tuple[float, ...],
    other: tuple[float, ...],
    verdict: str,
    censored: tuple[str, ...],
) -> None:
    """A longer time in the place of one that was not seen could change what is decided."""
    claims: Any = sys.modules["papers_evcp"]
    of_one, of_other = (
        [FirstPassage(value, name in censored) for value in values]
        for name, values in (("one", one), ("other", other))
    )
    known = {"x": runs.less(of_one, of_other)}
    found = claims.comparison(paper.decided("E0", "", "", "", known), [of_one, of_other])
    sure = {"holds": "one" not in censored, "does not hold": "other" not in censored}
    if sure.get(verdict, not censored):
        assert found.verdict == verdict
    else:
        assert found.verdict == "cannot be tested"


def test_a_law_that_never_converges_has_no_round_trips_to_count(
    tiny: Reproduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E10 with times that all end with their runs: what they are is how long the runs were."""
    claims: Any = sys.modules["papers_evcp"]

    class Unseen(claims.Study):  # type: ignore[misc]
        def times(self, *_: object, rate: str = "", **__: object) -> list[FirstPassage]:
            return [FirstPassage(claims.gbps(rate) * 1e3, censored=True)] * 3

    rates = ["50Mbit/s", "100Mbit/s"]
    settings = {"rtt": "100ms", "newcomer": {"rates": rates}}
    found = claims.e10(Unseen(settings, tiny.results))
    assert found.verdict == "cannot be tested"
    assert found.tests


def test_fair_shares(runs: Any, tmp_path: Path) -> None:
    # Goodputs of 8 and 1 kB/s until 20 s, then of 4.2 and 3.8, for 10 s.
    t_s = np.arange(10.0, 30.1, 0.5)
    rows = []
    for flow, (before, after) in enumerate(((8e3, 4.2e3), (1e3, 3.8e3))):
        delivered = np.cumsum(np.where(t_s <= 20.0, before, after) * 0.5).astype(np.uint64)
        ids = np.full(t_s.size, flow, dtype=np.uint32)
        rows.append(pl.DataFrame({"t_s": t_s, "flow": ids, "delivered_bytes": delivered}))
    pl.concat(rows).write_parquet(tmp_path / "flows.parquet")
    flows = [{"id": flow, "direction": "forward", "start_s": 10.0} for flow in range(2)]
    summary = {"flows": flows, "links": [{"rate_bps": 60_000}]}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    run = Run(tmp_path, 1, {})
    assert runs.converged(run, -1, runs.HELD) == FirstPassage(11.0)
    assert runs.converged(run, -1, runs.EXCEEDED).censored, "3.8 never exceeds the mean of 4"
    assert runs.converged(run, -1, runs.Fair("", of_capacity=True)) == FirstPassage(11.0)
    assert runs.converged(run, -1, runs.HELD, until_s=20.0) == FirstPassage(10.0, censored=True)
