"""Does every accepted verdict follow from the intervals that were stored with it?

A reader of ``expected.json`` alone has to come to the same verdict, so nothing of
``lfnlab.analysis.checks`` is used here.

Findings without ``of`` were stored when each test had a level of its own, not the claim.
"""

from __future__ import annotations

from typing import Any

import pytest

from lfnlab.papers import paper
from lfnlab.statistics import student_t

ACCEPTED = [(name, size) for name in paper.papers() for size in ("full", "quick")]

#: Arithmetic, equations, and runs in which nothing is random: no interval decides them.
EXACT = {"C1", "C5", "C12", "E1", "E2", "E9", "J7", "W1", "W6", "W10"}


def so(test: dict[str, Any], means: int) -> bool | None:
    """Whether a test of a claim of ``means`` is so, by its interval or by the runs that agree.

    It passes by an interval of 95 % and fails by one of 1 - 0.05 / means.
    """
    if "runs" in test:
        return None if 0 < test["agree"] < test["runs"] else test["agree"] > 0
    if "half" not in test:
        return None
    free = test["n"] - 1
    wide = test["half"] * student_t(free, 1 - 0.05 / max(1, means)) / student_t(free)
    if "above" in test:
        passes = test["mean"] - test["half"] > test["above"]
        return True if passes else False if test["mean"] + wide <= test["above"] else None
    passes = test["mean"] + test["half"] < test["below"]
    return True if passes else False if test["mean"] - wide >= test["below"] else None


def contradictions(claim: str, finding: dict[str, Any]) -> list[str]:
    """Parts of an accepted finding that its tests contradict."""
    said, tests = finding["verdict"], finding["tests"]
    if said == "cannot be tested":
        return []
    wrong = [] if tests else [f"{claim}: no test"]
    means = sum(test.get("of", 0) for test in tests.values())
    for name, test in tests.items():
        if {"mean", "runs"} & set(test):
            # A time beyond the end of a run leaves a test open that its interval would decide.
            if so(test, means) is not test["so"] and test["so"] is not None:
                wrong.append(f"{claim}, {name}: {test}")
        elif claim.split()[0] not in EXACT:
            wrong.append(f"{claim}, {name}: no interval")
    values = [test["so"] for test in tests.values()]
    verdict = "does not hold" if False in values else "undecided" if None in values else "holds"
    return wrong if said == verdict else [*wrong, f"{claim}: {said}, by its tests {verdict}"]


@pytest.mark.parametrize(("name", "size"), ACCEPTED)
def test_no_verdict_is_decided_inside_an_interval(name: str, size: str) -> None:
    findings = paper.expected(name)[size]["findings"]
    assert findings
    assert [bad for of in findings.items() for bad in contradictions(*of)] == []


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "holds"},
        {"verdict": "undecided"},
        {"tests": {}},
        {"tests": {"x": {"so": False}}},
        {"tests": {"x": {"so": False, "mean": 2.0, "half": 0.5, "n": 5, "above": 1.8}}},
        {"tests": {"x": {"so": False, "mean": 2.0, "half": 0.5, "n": 5, "above": 1.2}}},
        {"tests": {"x": {"so": False, "mean": 2.0, "n": 1, "above": 3.0}}},
        {"tests": {"x": {"so": False, "agree": 3, "runs": 5}}},
        # By the interval of one mean of six, which is 1.7 times as wide, it is open.
        {"tests": {"x": {"so": False, "mean": 2.0, "half": 0.5, "n": 5, "above": 2.6, "of": 6}}},
    ],
)
def test_a_verdict_inside_an_interval_is_found(change: dict[str, Any]) -> None:
    test = {"so": False, "mean": 2.0, "half": 0.5, "n": 5, "above": 3.0}
    sound = {"verdict": "does not hold", "tests": {"x": test}}
    assert contradictions("H2", sound) == []
    assert contradictions("H2", sound | change) != []


@pytest.mark.parametrize(("name", "size"), ACCEPTED)
def test_what_is_exact_is_no_claim_of_random_runs(name: str, size: str) -> None:
    for claim, finding in paper.expected(name)[size]["findings"].items():
        if claim.split()[0] in EXACT:
            assert "±" not in finding["ours"], claim


@pytest.mark.parametrize("name", paper.papers())
def test_each_claim_is_for_linux_or_says_why_not(name: str) -> None:
    own = paper.settings_of(name, quick=False)["linux"]
    decided = {claim for part in own.get("parts", {}).values() for claim in part["claims"]}
    others = [claim for claims in own["cannot"].values() for claim in claims]
    claims = {claim for claim in paper.expected(name)["full"]["findings"] if " " not in claim}
    assert sorted([*decided, *others]) == sorted(claims)


@pytest.mark.parametrize("name", paper.papers())
def test_no_verdict_on_linux_is_decided_inside_an_interval(name: str) -> None:
    parts = paper.expected(name).get("linux", {}).get("parts", {})
    findings = {
        f"{claim} {part} {where}": one
        for part, kept in parts.items()
        for claim, both in kept["claims"].items()
        for where, one in both.items()
    }
    assert [bad for of in findings.items() for bad in contradictions(*of)] == []


@pytest.mark.parametrize("name", paper.papers())
def test_a_cause_that_was_tried_changes_the_verdict_or_is_called_a_guess(name: str) -> None:
    findings = paper.expected(name)["full"]["findings"]
    causes = paper.settings_of(name, quick=False).get("causes", {})
    for key, found in findings.items():
        claim, _, cause = key.partition(" with ")
        if cause and not causes[cause].get("suspected", True):
            continue
        if cause and found["verdict"] == findings[claim]["verdict"]:
            assert "A guess" in findings[claim]["cause"], key
