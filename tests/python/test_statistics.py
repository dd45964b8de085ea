"""Are the intervals over runs Student's?"""

from __future__ import annotations

import math
from random import Random
from statistics import stdev

import pytest
from scipy.special import stdtrit

from lfnlab import statistics


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
    assert statistics.student_t(degrees, confidence) == pytest.approx(t, abs=6e-4)


@pytest.mark.parametrize("confidence", [0.01, 0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.999999])
def test_student_t_is_that_of_scipy(confidence: float) -> None:
    degrees = [*range(1, 200), 333, 500, 777, 998, 999, *range(1000, 1005), 10**4, 10**5, 10**6]
    found = [statistics.student_t(n, confidence) for n in degrees]
    # SciPy and this one lose digits of 1 - confidence alike.
    near = 1e-12 + 1e-16 / (1 - confidence)
    assert found == pytest.approx(stdtrit(degrees, 0.5 + confidence / 2), rel=near)
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize(("degrees", "confidence"), [(0, 0.95), (3, 1.0), (3, 0.0), (3, math.nan)])
def test_an_absent_quantile_is_refused(degrees: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="allowed: degrees of at least 1"):
        statistics.student_t(degrees, confidence)


def test_interval_of_three_runs() -> None:
    value = statistics.interval([9.0, 10.0, 11.0])
    assert (value.mean, value.n) == (10.0, 3)
    assert value.half == pytest.approx(4.302653 / math.sqrt(3))
    assert math.isnan(statistics.interval([4.0]).half)
    assert statistics.interval([4.0]).to_json() == {"mean": 4.0, "ci95": None, "n": 1}


def test_pairing_removes_what_runs_share() -> None:
    a, b = [10.0, 20.0, 30.0], [9.0, 19.0, 29.0]
    assert statistics.paired(a, b).half == pytest.approx(0.0)
    assert statistics.paired(a, b).mean == pytest.approx(1.0)


def test_so_many_runs_tell_a_difference_four_times_in_five() -> None:
    draw = Random(7)
    for mean, spread in ((1.0, 1.2), (1.0, 2.0), (-3.0, 9.0)):
        seen = statistics.interval([draw.gauss(mean, spread) for _ in range(12)])
        runs = statistics.runs_to_differ(seen)
        assert runs is not None
        deviation = stdev(seen.values)
        tries = [
            statistics.interval([draw.gauss(seen.mean, deviation) for _ in range(runs)])
            for _ in range(3000)
        ]
        told = sum(abs(one.mean) > one.half for one in tries) / len(tries)
        assert 0.78 < told < 0.86


@pytest.mark.parametrize(
    ("mean", "half", "n"),
    [(1.0, math.nan, 1), (math.nan, math.nan, 0), (0.0, 1.0, 5), (1e-9, 1, 5)],
)
def test_where_runs_do_not_tell_there_is_no_number(mean: float, half: float, n: int) -> None:
    assert statistics.runs_to_differ(statistics.Interval(mean, half, n)) is None


def test_a_difference_without_spread_needs_two_runs() -> None:
    assert statistics.runs_to_differ(statistics.Interval(1.0, 0.0, 5)) == 2
