"""Does the table of the EVCP paper's scenarios say what it should?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from studies.evcp.dumbbells import (
    DUMBBELLS,
    Dumbbell,
    Outcome,
    load_before_decreases,
    newcomer_s,
    outcome,
)

from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute

if TYPE_CHECKING:
    from lfnlab.results.runs import Run

#: Figure 8 made small: two flows, at a third of the rate.
SMALL = Dumbbell(15, (0, 45), 75, (40, 60), reverse=True, level=0, long_flows=0)


def run(dumbbell: Dumbbell, law: str, out: Path) -> Run:
    """One run."""
    (only,) = execute([Case(dumbbell.scenario(law))], out=out).runs
    return only


def test_figure_8_has_no_background_and_flows_back_of_the_same_rtts() -> None:
    made = {dumbbell.rate_mbps: dumbbell.scenario("evcp") for dumbbell in DUMBBELLS}
    flows = made[45].to_toml()
    assert flows.count('direction = "reverse"') == 5
    assert all(flows.count(f'rtt = "{rtt}ms"') == 2 for rtt in (40, 50, 60, 70, 80))
    assert {rate for rate in made if "level = 0" in made[rate].to_toml()} == {45, 120}


def test_the_author_has_a_router_for_vcp_alone() -> None:
    assert "author" in SMALL.scenario("vcp").to_toml()
    assert "author" not in SMALL.scenario("xcp").to_toml()
    assert "author" not in replace(SMALL, fixed_gamma=True).scenario("vcp").to_toml()


def test_what_misses_the_aims_is_named() -> None:
    assert Outcome(0.901, 0, 0.049).misses == []
    assert Outcome(0.9, 1, 0.05).misses == ["utilization", "drops", "queue"]


@pytest.mark.parametrize("law", ["vcp", "evcp", "xcp"])
def test_a_small_scenario_meets_the_aims(law: str, tmp_path: Path) -> None:
    made = run(SMALL, law, tmp_path)
    assert outcome(made, SMALL).misses == []
    assert not newcomer_s(made).censored
    if law != "xcp":
        # The load that counts is 98 % of the rate; flows grow for a second until they hear of it.
        assert 0.9 < load_before_decreases(made) < 1.0
