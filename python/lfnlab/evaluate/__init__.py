"""The evidence that RFC 9743 (BCP 133) asks for, for one law.

:data:`CRITERIA` is the table: each numbered section, and the questions that answer it, or why no
run does. :func:`evaluate` runs the questions for a law and for its comparators on the same seeds.
It shows evidence; whether a law is fit for the Internet is not its word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab.control_laws import prototype
from lfnlab.errors import LabError, LawError, ScenarioError, UsageError
from lfnlab.evaluate.criteria import CRITERIA, Criterion
from lfnlab.evaluate.judge import Answer, Finding, findings
from lfnlab.evaluate.questions import QUESTIONS, Question
from lfnlab.evaluate.subjects import Subject, subject
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute

if TYPE_CHECKING:
    from lfnlab.evaluate.scenarios import Place
    from lfnlab.experiment.run import Failed, Progress
    from lfnlab.results.runs import Results, Run

__all__ = [
    "COMPARATORS",
    "CRITERIA",
    "QUESTIONS",
    "SEEDS",
    "Answer",
    "Criterion",
    "Evaluation",
    "Finding",
    "Question",
    "evaluate",
    "subject",
]

SCHEMA = 1
COMPARATORS = ("reno", "cubic")
"""The standard congestion controls of RFC 5681 and RFC 9438."""
SEEDS = {True: 3, False: 5}
"""Of each figure, in a quick evaluation and in a full one."""


@dataclass(frozen=True)
class Evaluation:
    """The answers of an evaluation, and its runs."""

    law: Subject
    comparators: Sequence[Subject]
    quick: bool
    criteria: Sequence[Criterion]
    answers: Sequence[Answer]
    results: Results

    @property
    def findings(self) -> list[Finding]:
        """The largest first."""
        return findings(self.criteria, self.answers)

    def of(self, criterion: Criterion) -> list[Answer]:
        """The answers to a criterion's questions, in its order."""
        return [
            answer
            for name in criterion.questions
            for answer in self.answers
            if answer.question.name == name
        ]

    def notes(self) -> Iterator[str]:
        """How it was made, as far as a reader must know it."""
        yield (
            f"{len(self.results.runs):,} runs, {SEEDS[self.quick]} seeds of each figure; ± is a "
            "95 % interval (Student's t). A finding is a figure whose interval is beyond a bound "
            "of this laboratory, and that is worse than each comparator seed by seed. RFC 9743 has "
            "no bounds, and nothing here says that a law meets a criterion."
        )
        if self.quick:
            yield "Quick: few places and few seeds."
        if self.law.router:
            yield (
                f"{self.law.label} needs routers of {self.law.router.upper()}: the bottleneck has "
                "them wherever it has flows of the law, and nowhere else."
            )
        if self.law.udt:
            yield f"{self.law.label} runs over UDT, the comparators over TCP."
        if not prototype.is_repeatable(self.law.law):
            yield "A law in a file: its runs are made again each time."

    def to_json(self) -> dict[str, Any]:
        """The object of ``evaluation.json`` and of ``lfn evaluate --json``."""
        return {
            "schema": SCHEMA,
            "source": "RFC 9743 (BCP 133), sections 5 to 7",
            "law": self.law.label,
            "comparators": [one.label for one in self.comparators],
            "quick": self.quick,
            "seeds": SEEDS[self.quick],
            "notes": list(self.notes()),
            "findings": [finding.to_json() for finding in self.findings],
            "criteria": [
                {
                    "section": criterion.section,
                    "title": criterion.title,
                    "asks": criterion.asks,
                    "not_applicable": criterion.not_applicable or None,
                    "not_covered": criterion.missing or None,
                    "answers": [answer.to_json() for answer in self.of(criterion)],
                }
                for criterion in self.criteria
            ],
        }


def evaluate(
    law: str,
    *,
    beside: Sequence[str] = (),
    sections: Sequence[str] = (),
    quick: bool = False,
    out: str | Path = "lfn-evaluate",
    jobs: int | None = None,
    progress: Progress | None = None,
    failed: Failed | None = None,
) -> Evaluation:
    """Evaluate a law.

    Args:
        law: NAME, NAME:VARIANT, udt/NAME, FILE.h or FILE.py:CLASS.
        beside: further comparators.
        sections: of RFC 9743, such as "5.1.3", or "5.2" with those below; default all.
        quick: the first places of each question alone, and fewer seeds.
        out: the results directory.
        jobs, progress, failed: as of :func:`lfnlab.experiment.run.execute`.

    Raises:
        LawError: for an unknown law, before anything is run.
        UsageError: for an unknown section.
    """
    criteria = _chosen(sections)
    own = subject(law)
    others = [subject(name) for name in (*COMPARATORS, *beside)]
    for at, other in enumerate(others):
        if other.label in [before.label for before in others[:at]]:
            raise LawError(f"{other.label} is a comparator already; name each once")
    comparators = [other for other in others if other.label != own.label]
    asked = _Asked(own, comparators, others, quick, criteria)
    if not asked.cases:
        raise UsageError(
            f"nothing to run: {', '.join(sections)} has no figures; {_why(criteria[0])}"
        )
    results = execute(
        asked.cases,
        seeds=SEEDS[quick],
        out=out,
        jobs=jobs,
        progress=progress,
        failed=failed,
        keep_going=True,
        title=f"RFC 9743: {own.label}",
    )
    return Evaluation(own, comparators, quick, criteria, asked.answers(results), results)


def _chosen(sections: Sequence[str]) -> Sequence[Criterion]:
    """The criteria of these sections and of those below them, in order."""
    chosen: set[str] = set()
    for section in sections:
        below = {one.section for one in CRITERIA if f"{one.section}.".startswith(f"{section}.")}
        if not below:
            known = ", ".join(one.section for one in CRITERIA)
            raise UsageError(f'--section: "{section}"; allowed: {known}')
        chosen |= below
    return [one for one in CRITERIA if not sections or one.section in chosen]


def _why(criterion: Criterion) -> str:
    if criterion.not_applicable:
        return f"not applicable: {criterion.not_applicable}"
    return f"not covered: {criterion.missing}" if criterion.missing else "no run of it is allowed"


class _Asked:
    """The cases of an evaluation, and why some have none."""

    def __init__(
        self,
        own: Subject,
        comparators: Sequence[Subject],
        others: Sequence[Subject],
        quick: bool,
        criteria: Sequence[Criterion],
    ) -> None:
        self._own, self._laws, self._others = own, [own, *comparators], others
        self._quick = quick
        self._names = {name for criterion in criteria for name in criterion.questions}
        self.cases: list[Case] = []
        self._refused: dict[tuple[str, ...], str] = {}
        for question, place, other in self._figures():
            for who in self._laws:
                self._add(question, place, other, who)

    def _figures(self) -> Iterator[tuple[Question, Place, Subject | None]]:
        for question in (QUESTIONS[name] for name in QUESTIONS if name in self._names):
            for place in question.places[: question.quick if self._quick else None]:
                if question.beside:
                    yield from ((question, place, other) for other in self._others)
                else:
                    yield question, place, None

    def _add(self, question: Question, place: Place, other: Subject | None, who: Subject) -> None:
        key = _key(question, place, other, who)
        try:
            scenarios = question.build(who, place, other or who)
            for scenario in scenarios:
                scenario.check()
        except LabError as error:
            self._refused[key] = error.with_key if isinstance(error, ScenarioError) else str(error)
            return
        names = ("question", "place", "beside", "law")
        factors = dict(zip(names, key, strict=True))
        self.cases += [
            Case(scenario, {**factors, "part": part}) for part, scenario in enumerate(scenarios)
        ]

    def answers(self, results: Results) -> list[Answer]:
        """The figures of the stored runs."""
        runs: dict[tuple[str, ...], dict[int, list[Run]]] = {}
        for run in results.runs:
            runs.setdefault(_key_of(run.factors), {}).setdefault(run.seed, []).append(run)
        broken = {_key_of(failure.factors): failure.error for failure in results.failures}
        return [
            self._answer(question, place, other, runs, self._refused | broken)
            for question, place, other in self._figures()
        ]

    def _answer(
        self,
        question: Question,
        place: Place,
        other: Subject | None,
        runs: dict[tuple[str, ...], dict[int, list[Run]]],
        without: dict[tuple[str, ...], str],
    ) -> Answer:
        values: dict[str, dict[int, float]] = {}
        why_not = {}
        for who in self._laws:
            key = _key(question, place, other, who)
            values[who.label] = {}
            if key in without:
                why_not[who.label] = without[key]
                continue
            for seed, parts in runs[key].items():
                try:
                    value = question.measure(parts)
                except LabError as error:
                    why_not[who.label] = str(error)
                    continue
                if value == value:
                    values[who.label][seed] = value
        label = "" if other is None else other.label
        return Answer(question, place, self._own.label, values, label, why_not)


def _key(question: Question, place: Place, other: Subject | None, who: Subject) -> tuple[str, ...]:
    return question.name, str(place), "" if other is None else other.label, who.label


def _key_of(factors: Any) -> tuple[str, ...]:
    return tuple(str(factors[name]) for name in ("question", "place", "beside", "law"))
