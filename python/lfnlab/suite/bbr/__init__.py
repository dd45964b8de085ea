"""The example test cases of BBR's draft, as scenarios with a verdict on our ``bbr3``.

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
from lfnlab.errors import UsageError
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.suite.bbr.examples import EXAMPLES, Example
from lfnlab.suite.bbr.paths import LAW
from lfnlab.suite.bbr.seen import Check, Seen, checked

if TYPE_CHECKING:
    from lfnlab.experiment.run import Progress
    from lfnlab.scenario.builder import Scenario

__all__ = ["EXAMPLES", "Check", "Example", "Verdict", "chosen", "run", "table", "to_json"]

SCHEMA = 1
DRAFT = "draft"
"""The variant that follows the draft."""


@dataclass(frozen=True)
class Verdict:
    """A case and its checks."""

    example: Example
    checks: tuple[Check, ...]

    @property
    def word(self) -> str:
        """`pass` or `fail`."""
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

    def run_all(paths: Sequence[tuple[int, Scenario]], name: str) -> dict[int, Seen]:
        if not paths:
            return {}
        cases = [Case(path, {"case": number}) for number, path in paths]
        title = "Test cases of BBR's draft"
        done = execute(cases, out=out / name, jobs=jobs, progress=progress, title=title)
        return {int(str(each.factors["case"])): Seen(each) for each in done.runs}

    ready = [(e, of(e.path)) for e in examples]
    scouts = run_all([(e.number, path) for e, path in ready if e.change], "first")
    final = [
        (e.number, e.change(scouts[e.number], path) if e.change else path) for e, path in ready
    ]
    seen = run_all(final, "cases")
    return [Verdict(e, tuple(checked(e.checks, seen[e.number]))) for e in examples]


def table(verdicts: Sequence[Verdict]) -> Table:
    """A row for each check, under the verdict of its case."""
    rows: list[tuple[str, ...]] = []
    for verdict in verdicts:
        example = verdict.example
        head = (str(example.number), example.title, verdict.word)
        for i, check in enumerate(verdict.checks):
            holds = "yes" if check.holds else "NO"
            rows.append((*(head if i == 0 else ("", "", "")), check.says, holds, check.found))
    return Table(
        ("case", "of the draft", "verdict", "what must hold", "holds", "found"), tuple(rows), 4
    )


def to_json(verdicts: Sequence[Verdict], variant: str = DRAFT) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    return {
        "schema": SCHEMA,
        "suite": "bbr",
        "law": LAW,
        "variant": variant,
        "cases": [
            {
                "case": verdict.example.number,
                "title": verdict.example.title,
                "sentence": verdict.example.sentence,
                "verdict": verdict.word,
                "checks": [
                    {"says": check.says, "holds": check.holds, "found": check.found}
                    for check in verdict.checks
                ],
            }
            for verdict in verdicts
        ],
    }
