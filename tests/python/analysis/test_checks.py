"""Is a check decided by its interval alone, and does it keep what decides it?"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import pytest

from lfnlab.analysis.checks import (
    Agreement,
    Bound,
    Check,
    above,
    agreed,
    below,
    every,
    family,
    named,
    negated,
    within,
)
from lfnlab.statistics import Interval, interval


@pytest.mark.parametrize(
    ("half", "is_above", "is_below"),
    [(0.5, True, False), (1.0, None, False), (2.0, None, None), (math.nan, None, None)],
)
def test_a_bound_inside_the_interval_is_not_decided(
    half: float, is_above: bool | None, is_below: bool | None
) -> None:
    mean = Interval(3.0, half, 5)
    assert above(mean, 2.0).so is is_above
    assert below(mean, 2.0).so is is_below


def test_all_of_what_may_not_be_known() -> None:
    open_ = Check(None)
    assert every([]).so is True
    assert every([True, True]).so is True
    assert every([True, open_]).so is None
    assert every([open_, False]).so is False
    inside, across, outside = (Interval(x, 0.1, 5) for x in (1.0, 1.45, 2.0))
    assert within(inside, 0.5, 1.5).so is True
    assert within(across, 0.5, 1.5).so is None
    assert within(outside, 0.5, 1.5).so is False


def test_the_closest_call_is_kept() -> None:
    near, far = Interval(3.0, 0.9, 5), Interval(9.0, 1.0, 5)
    passed = every((above(far, 2.0), above(near, 2.0)))
    assert passed.seen == Bound(3.0, 0.9, 5, above=2.0)
    failed = every((below(near, 2.0), below(far, 2.0), above(near, 2.5)))
    assert failed == Check(False, Bound(9.0, 1.0, 5, below=2.0), 3)
    one = every((above(far, 2.0), above(Interval(3.0, math.nan, 1), 2.0)))
    assert one == Check(None, Bound(3.0, None, 1, above=2.0), 2)


def test_values_that_never_vary_are_decided_except_on_the_bound() -> None:
    fixed = Interval(2.0, 0.0, 5)
    assert above(fixed, 1.9).so is True
    assert above(fixed, 2.0).so is False
    assert below(fixed, 2.0).so is False
    assert every((above(fixed, 1.9), above(fixed, 2.0))).seen == Bound(2.0, 0.0, 5, above=2.0)


def test_not_is_the_other_side_of_the_same_bound() -> None:
    denied = negated(above(Interval(3.0, 0.5, 5), 2.0))
    assert denied == Check(False, Bound(3.0, 0.5, 5, below=2.0), 1)
    assert negated(Check(None)).so is None


def test_runs_that_differ_do_not_agree() -> None:
    assert agreed([True, True]) == Check(True, Agreement(2, 2))
    assert agreed([False]) == Check(False, Agreement(0, 1))
    assert agreed([True, False]) == Check(None, Agreement(1, 2))
    assert every((agreed([True]), agreed([True, False]))).seen == Agreement(1, 2)


def test_one_check_of_several_names_those_that_decide() -> None:
    yes, open_, no = Check(True), Check(None), Check(False)
    assert named("as high", {"a": yes, "b": open_, "c": no}) == {"as high: c": no}
    assert named("as high", {"a": yes, "b": open_}) == {"as high: b": open_}
    assert [one.so for one in named("as high", {"a": yes}).values()] == [True]


def test_what_is_kept_says_the_same_as_the_check() -> None:
    """Of 500 random checks of several comparisons, the one that is kept gives the verdict."""
    random_ = random.Random(20)
    for _ in range(500):
        parts = []
        for _ in range(random_.randint(1, 6)):
            runs = [random_.gauss(0.0, 1.0) for _ in range(random_.randint(1, 6))]
            side, bound = random_.choice((above, below)), random_.gauss(0.0, 1.5)
            parts.append(side(interval(runs), bound))
        whole = every(parts)
        assert isinstance(whole.seen, Bound)
        margin = whole.seen.margin
        assert whole.so is (True if margin > 1 else False if margin <= -1 else None)


def test_a_record_has_no_empty_fields() -> None:
    assert above(Interval(3.0, 0.5, 5), 2.0).to_json() == {
        "so": True,
        "mean": 3.0,
        "half": 0.5,
        "n": 5,
        "above": 2.0,
        "of": 1,
    }
    assert agreed([True, False]).to_json() == {"so": None, "agree": 1, "runs": 2}
    assert Check(True).to_json() == {"so": True}


def test_one_of_many_means_denies_a_claim_only_by_a_wider_interval() -> None:
    # Student's t of 4 degrees: 2.776 at 95 %, 3.495 at 97.5 %, 4.604 at 99 %.
    near, far = Interval(1.0, 0.70, 5), Interval(1.0, 0.55, 5)
    passed = above(Interval(9.0, 1.0, 5), 2.0)
    assert family({"a": above(near, 2.0)})["a"].so is False
    assert family({"a": above(near, 2.0), "b": passed})["a"].so is False
    of_five = {"b": every([passed] * 4)}
    assert family({"a": above(near, 2.0)} | of_five)["a"].so is None, "1.658 times 0.70 is more"
    assert family({"a": above(far, 2.0)} | of_five)["a"].so is False
    assert family({"a": above(near, 2.0)} | of_five)["b"].so is True, "what passes needs no more"
    whole = every([above(near, 2.0), *[passed] * 4])
    assert family({"all": whole})["all"].so is None


def test_facts_and_runs_that_agree_are_no_means() -> None:
    checks = {"fact": Check(False), "runs": agreed([False]), "open": Check(None)}
    assert family(checks) == checks
    assert family({"a": above(Interval(1.0, 0.0, 5), 2.0)} | checks)["a"].so is False
    assert family({"a": above(Interval(1.0, math.nan, 1), 2.0)})["a"].so is None


def test_a_claim_is_denied_by_chance_in_one_of_forty() -> None:
    """2000 claims of 13 means that all lie on their bounds: any denial is by chance."""
    random_ = random.Random(7)

    def by_chance(level: Callable[[Mapping[str, Check]], Mapping[str, Check]]) -> int:
        denied = 0
        for _ in range(2000):
            means = [interval([random_.gauss(0.0, 1.0) for _ in range(10)]) for _ in range(13)]
            checks = {str(k): above(mean, 0.0) for k, mean in enumerate(means)}
            denied += any(one.so is False for one in level(checks).values())
        return denied

    assert by_chance(dict) > 400, "test by test it is one of four"
    assert 25 < by_chance(family) < 75
