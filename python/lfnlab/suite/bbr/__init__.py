"""The example test cases of BBR's draft, as scenarios with a verdict.

The verdict is on our ``bbr3``, or on any law from outside (:mod:`lfnlab.suite.bbr.outside`).

draft-ietf-ccwg-bbr (text of 2026-08-03) lists 22 cases in its appendix. A case here has the
sentence that it tests, a path, and checks of the tables of a run. Where something has to happen in
a phase (a loss in ProbeBW_UP, say), a first run of the same path tells when the phase begins: both
runs are equal until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab.analysis.table import Table
from lfnlab.control_laws import prototype
from lfnlab.errors import UsageError
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.suite.bbr.examples import EXAMPLES, Example
from lfnlab.suite.bbr.outside import OUTSIDE, WHY_NOT
from lfnlab.suite.bbr.paths import LAW
from lfnlab.suite.bbr.seen import Check, Flow, Seen, checked

if TYPE_CHECKING:
    from lfnlab.experiment.run import Progress
    from lfnlab.results.runs import Run
    from lfnlab.scenario.builder import Scenario

__all__ = [
    "EXAMPLES",
    "Check",
    "Example",
    "Verdict",
    "chosen",
    "run",
    "run_outside",
    "table",
    "to_json",
]

SCHEMA = 1
DRAFT = "draft"
"""The variant that follows the draft."""


@dataclass(frozen=True)
class Verdict:
    """A case and its checks."""

    example: Example
    checks: tuple[Check, ...]
    why_not: str = ""
    """Why it cannot be judged, if it cannot."""

    @property
    def word(self) -> str:
        """`pass`, `fail` or `not judged`."""
        if self.why_not:
            return "not judged"
        return "pass" if all(check.holds for check in self.checks) else "fail"


def chosen(text: str | None) -> list[Example]:
    """The cases of these numbers, with commas between; all without a text.

    Raises:
        UsageError: if one is not a number of a case.
    """
    if text is None:
        return list(EXAMPLES)
    known = {str(example.number): example for example in EXAMPLES}
    names = [part.strip() for part in text.split(",")]
    for i, name in enumerate(names):
        if name not in known or name in names[:i]:
            raise UsageError(f'--case: "{name}"; allowed, each once: 1 to {len(EXAMPLES)}')
    return [known[name] for name in names]


def run(
    examples: Sequence[Example],
    out: Path,
    *,
    variant: str = DRAFT,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Verdict]:
    """The verdict on each case, of a variant of bbr3.

    Runs are stored in ``out``: in `first` those that tell when something is to happen.
    """

    def of(path: Scenario) -> Scenario:
        law = LAW if variant == DRAFT else f"{LAW}:{variant}"
        return replace(path, flows=tuple(replace(flow, law=law) for flow in path.flows))

    def run_all(cases: Sequence[tuple[int, Scenario]], name: str) -> dict[int, Seen]:
        done = _executed(cases, out / name, jobs, progress)
        return {number: Seen(each) for number, each in done.items()}

    ready = [(e, of(e.path)) for e in examples]
    scouts = run_all([(e.number, path) for e, path in ready if e.change], "first")
    final = [
        (e.number, e.change(scouts[e.number], path) if e.change else path) for e, path in ready
    ]
    seen = run_all(final, "cases")
    return [Verdict(e, tuple(checked(e.checks, seen[e.number]))) for e in examples]


def run_outside(
    examples: Sequence[Example],
    out: Path,
    law: str,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Verdict]:
    """The verdict on each case that can be judged from outside, of any law.

    Raises:
        LawError: when there is no such law.
    """
    named = prototype.resolved(law, Path())
    cases = []
    for example in examples:
        if (case := OUTSIDE.get(example.number)) is not None:
            flows = tuple(replace(flow, law=named) for flow in case.path.flows)
            cases.append((example.number, replace(case.path, flows=flows)))
    done = _executed(cases, out, jobs, progress)
    return [
        Verdict(e, tuple(OUTSIDE[e.number].checks(Flow(done[e.number]))))
        if e.number in done
        else Verdict(e, (), WHY_NOT[e.number])
        for e in examples
    ]


def _executed(
    cases: Sequence[tuple[int, Scenario]], out: Path, jobs: int | None, progress: Progress | None
) -> dict[int, Run]:
    """The run of each case, by its number."""
    if not cases:
        return {}
    made = [Case(path, {"case": number}) for number, path in cases]
    title = "Test cases of BBR's draft"
    done = execute(made, out=out, jobs=jobs, progress=progress, title=title)
    return {int(str(each.factors["case"])): each for each in done.runs}


def table(verdicts: Sequence[Verdict]) -> Table:
    """A row for each check, under the verdict of its case."""
    rows: list[tuple[str, ...]] = []
    for verdict in verdicts:
        example = verdict.example
        head = (str(example.number), example.title, verdict.word)
        if verdict.why_not:
            rows.append((*head, verdict.why_not, "", ""))
        for i, check in enumerate(verdict.checks):
            holds = "yes" if check.holds else "NO"
            rows.append((*(head if i == 0 else ("", "", "")), check.says, holds, check.found))
    return Table(
        ("case", "of the draft", "verdict", "what must hold", "holds", "found"), tuple(rows), 4
    )


def to_json(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    return {
        "schema": SCHEMA,
        "suite": "bbr",
        "law": LAW,
        "cases": [
            {
                "case": verdict.example.number,
                "title": verdict.example.title,
                "sentence": verdict.example.sentence,
                "verdict": verdict.word,
                "why_not": verdict.why_not or None,
                "checks": [
                    {"says": check.says, "holds": check.holds, "found": check.found}
                    for check in verdict.checks
                ],
            }
            for verdict in verdicts
        ],
    }
