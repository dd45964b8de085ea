"""Are the metrics those of the field, and those of the simulator?"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lfnlab import Results, metrics

SHARES = st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=50)


@given(SHARES)
def test_jain_lies_between_one_nth_and_one(x: list[float]) -> None:
    assert 1 / len(x) - 1e-9 <= metrics.jain(x) <= 1 + 1e-9


def test_jain_of_known_shares() -> None:
    assert metrics.jain([5, 5, 5]) == pytest.approx(1.0)
    assert metrics.jain([1, 0, 0, 0]) == pytest.approx(0.25)
    # Shares of the three CW-HSTCP flows at c = 10 (Pan et al., table 3).
    assert metrics.jain([32.22, 26.61, 19.36]) == pytest.approx(0.961, abs=5e-4)
    assert math.isnan(metrics.jain([0, 0]))


def test_cov_uses_the_population_deviation() -> None:
    assert metrics.cov([2, 4, 4, 4, 5, 5, 7, 9]) == pytest.approx(2 / 5)
    assert metrics.cov([3, 3]) == 0
    assert math.isnan(metrics.cov([]))


@pytest.mark.parametrize(
    ("degrees", "confidence", "t"),
    # The table of Student's t in Abramowitz and Stegun, 26.10.
    [
        (1, 0.95, 12.706),
        (2, 0.95, 4.303),
        (3, 0.95, 3.182),
        (4, 0.99, 4.604),
        (7, 0.90, 1.895),
        (10, 0.95, 2.228),
        (30, 0.99, 2.750),
        (120, 0.95, 1.980),
    ],
)
def test_student_t(degrees: int, confidence: float, t: float) -> None:
    assert metrics.student_t(degrees, confidence) == pytest.approx(t, abs=6e-4)


def test_interval_of_three_runs() -> None:
    value = metrics.interval([9.0, 10.0, 11.0])
    assert (value.mean, value.n) == (10.0, 3)
    assert value.half == pytest.approx(4.302653 / math.sqrt(3))
    assert math.isnan(metrics.interval([4.0]).half)
    assert metrics.interval([4.0]).to_json() == {"mean": 4.0, "ci95": None, "n": 1}


def test_pairing_removes_what_runs_share() -> None:
    a, b = [10.0, 20.0, 30.0], [9.0, 19.0, 29.0]
    assert metrics.paired(a, b).half == pytest.approx(0.0)


def test_convergence_needs_the_share_to_be_held() -> None:
    t = np.arange(1.0, 13.0)
    rate = np.array([0, 1, 0, 0, 0.95, 1, 1, 1, 1, 0.2, 1, 1])
    assert metrics.convergence_s(t, rate, 1.0, start_s=2.0) == 3.0
    assert metrics.convergence_s(t, rate, 1.0, tolerance=0.0) == math.inf


def test_bins_of_a_known_counter() -> None:
    t = np.round(np.arange(0.0, 3.05, 0.1), 10)
    table = pl.DataFrame(
        {"t_s": t, "flow": np.zeros(t.size, np.uint32), "delivered_bytes": t * 1e6}
    )
    assert metrics.goodput_bins(table)["goodput_bps"].to_list() == pytest.approx([8e6] * 3)


def test_python_and_the_simulator_agree(results: Results) -> None:
    for run in results.runs:
        flows = run.summary["flows"]
        goodputs = [flow["goodput_bps"] for flow in flows]
        assert metrics.jain(goodputs) == pytest.approx(run.summary["jain"], rel=1e-9)
        bins = metrics.goodput_bins(run.table("flows"))
        for flow in flows:
            own = bins.filter(pl.col("flow") == flow["id"])["goodput_bps"]
            assert own.mean() == pytest.approx(flow["goodput_bps"], rel=0.01)
            assert metrics.cov(own.to_numpy()) == pytest.approx(flow["cov"], rel=0.02)
