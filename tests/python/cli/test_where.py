"""Rows of a result by condition, metrics by name, JSON: ``lfn table`` and ``Results.where``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import lfnlab
from lfnlab.cli.app import call
from lfnlab.errors import UsageError
from lfnlab.statistics import runs_to_differ

if TYPE_CHECKING:
    from pathlib import Path

    from command import Lfn


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> lfnlab.Results:
    base = lfnlab.dumbbell(rate="20Mbit/s", rtt="20ms", buffer="1bdp", duration="3s", loss=1e-3)
    out = tmp_path_factory.mktemp("where")
    return lfnlab.compare(["reno", "cubic", "bic"], base, seeds=3, out=out)


def test_conditions_choose_rows(results: lfnlab.Results) -> None:
    whole = {(row["law"], row["seed"]): row["goodput_bps"] for row in results.rows()}
    middle = sorted(whole.values())[4]
    for conditions, meets in (
        (["law=cubic"], lambda law, seed, bps: law == "cubic"),
        (["law!=cubic", "seed=1,3"], lambda law, seed, bps: law != "cubic" and seed != 2),
        ([f"goodput_bps>={middle!r}"], lambda law, seed, bps: bps >= middle),
    ):
        found = results.where(*conditions)
        rows = {(row["law"], row["seed"]): row["goodput_bps"] for row in found.rows()}
        assert rows == {key: bps for key, bps in whole.items() if meets(*key, bps)}
        assert {run.seed for run in found.runs} == {seed for _, seed in rows}
    assert (
        results.where("law=cubic").where("seed=2").rows()
        == results.where("law=cubic", "seed=2").rows()
    )
    # The mean over seeds is that of the rows that are left.
    [row] = results.where("law=bic", "seed=1,2").table(["goodput_bps"]).to_dicts()
    assert row["seeds"] == 2
    assert row["goodput_bps"] == pytest.approx((whole["bic", 1] + whole["bic", 2]) / 2)


def test_a_condition_names_a_factor_of_one_flow(tmp_path: Path) -> None:
    base = lfnlab.dumbbell(rate="5Mbit/s", rtt="10ms", buffer="1bdp", duration="1s")
    cases = [
        lfnlab.Case(base.flow("reno", rtt=rtt), {"flow[0].rtt": rtt}) for rtt in ("10ms", "20ms")
    ]
    found = lfnlab.execute(cases, out=tmp_path / "out").where("flow[0].rtt=20ms")
    assert [run.factors["flow[0].rtt"] for run in found.runs] == ["20ms"]


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("flow=1", 'no column "flow"; allowed: '),
        ("law", "is not a condition"),
        ("seed=one", "seed is a number"),
        ("law>reno", "takes a column of numbers"),
        ("seed=99", "no row has seed=99"),
    ],
)
def test_a_condition_that_no_row_can_meet_is_named(
    results: lfnlab.Results, condition: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        results.where(condition)


def test_the_command_prints_the_same_rows(results: lfnlab.Results, lfn: Lfn) -> None:
    asked = ["table", str(results.root), "--where", "law=reno,bic", "--metric", "goodput_bps,cov"]
    assert call([*asked, "--json"]) == 0
    expected = results.where("law!=cubic").table(["goodput_bps", "cov"]).to_dicts()
    assert json.loads(lfn.said().out) == expected
    heading, *lines = lfn(*asked).splitlines()
    assert heading.split() == ["law", "goodput", "(Mbit/s)", "CoV", "(1", "s)"]
    assert [line.split()[0] for line in lines[:2]] == ["reno", "bic"]
    assert [row["law"] for row in json.loads(lfn(*asked, "--baseline", "reno", "--json"))] == [
        "bic"
    ]
    assert 'metric "speed"; allowed: goodput_bps, ' in lfn.err(*asked[:2], "--metric", "speed")
    assert call([*asked, "--json", "--csv"]) == 2


def test_the_command_tells_how_many_seeds_tell_a_difference(
    results: lfnlab.Results, lfn: Lfn
) -> None:
    asked = ["table", results.root, "--baseline", "reno", "--metric", "goodput_bps"]
    head, *rows = lfn(*asked, "--power").splitlines()[:3]
    assert head.split() == ["law", "goodput"]
    found = results.cases.differences("goodput_bps", "reno")
    for row, value in zip(rows, found.values(), strict=True):
        needed = runs_to_differ(value)
        told = abs(value.mean) > value.half
        assert needed is not None
        expected = f"({needed:,})" if told else f"{max(needed, 4):,}"
        assert row.split()[-1] == expected
    for wrong in (asked[:2], [*asked, "--csv"]):
        assert "--power: goes with --baseline" in lfn.refuses(*wrong, "--power")
