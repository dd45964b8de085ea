"""Answers of the runs: a figure with its interval, beside the comparators, and against a bound.

No word here says that a law meets a criterion. RFC 9743 has no bounds, and a figure within one of
ours is a figure within one of ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from lfnlab.analysis.table import with_interval
from lfnlab.evaluate.questions import bound_of
from lfnlab.statistics import interval, paired

if TYPE_CHECKING:
    from lfnlab.evaluate.criteria import Criterion
    from lfnlab.evaluate.questions import Question
    from lfnlab.evaluate.scenarios import Place
    from lfnlab.statistics import Interval

Said = Literal["finding", "beyond", "within", "not decided", "no figure"]
MOST = 1000.0
"""Of the size of a finding, where a figure is 0."""
_ALSO = 3
"""Further places that a finding names."""


@dataclass(frozen=True)
class Answer:
    """A question at one place: values by law and seed.

    Args:
        question: what was asked.
        place: where.
        law: the label of the law that is evaluated.
        values: by label of the law and of the comparators, and seed.
        beside: label of the other law, where there is one.
        why_not: by label why there is no figure.
    """

    question: Question
    place: Place
    law: str
    values: Mapping[str, Mapping[int, float]]
    beside: str = ""
    why_not: Mapping[str, str] = field(default_factory=dict)

    @property
    def comparators(self) -> list[str]:
        """Labels of the other laws that stood in the law's place."""
        return [label for label in self.values if label != self.law]

    def figure(self, label: str) -> Interval:
        """Mean and 95 % interval of a law over the seeds."""
        return interval(self.values[label].values())

    def difference(self, label: str) -> Interval:
        """The law less a comparator, seed by seed."""
        own, others = self.values[self.law], self.values[label]
        seeds = sorted(own.keys() & others.keys())
        return paired([own[seed] for seed in seeds], [others[seed] for seed in seeds])

    @cached_property
    def alike(self) -> list[str]:
        """Comparators that the law is not shown to be worse than."""
        return [label for label in self.comparators if not self._worse(label)]

    def _worse(self, label: str) -> bool:
        gap = self.difference(label)
        return gap.low > 0 if self.question.bad == "more" else gap.high < 0

    @cached_property
    def said(self) -> Said:
        """Where the figure lies; "finding": beyond the bound, and worse than each comparator."""
        own = self.figure(self.law)
        if own.n == 0:
            return "no figure"
        if math.isnan(own.half):
            return "not decided"
        bound = self.question.bound
        less = self.question.bad == "less"
        if own.high < bound if less else own.low > bound:
            return "beyond" if self.alike else "finding"
        return "within" if (own.low > bound if less else own.high < bound) else "not decided"

    @property
    def words(self) -> str:
        """The same in words."""
        if self.said == "no figure":
            return f"no figure: {self.why_not.get(self.law, 'the runs do not have it')}"
        if self.said == "beyond":
            return f"beyond the bound; not shown to be worse than {' and '.join(self.alike)}"
        return {
            "finding": "beyond the bound, and worse than each comparator",
            "within": "within the bound",
            "not decided": "not decided by these runs",
        }[self.said]

    @property
    def size(self) -> float:
        """How many times the bound the figure is, at the end of its interval nearest to it."""
        own, bound = self.figure(self.law), self.question.bound
        if self.question.bad == "more":
            return min(MOST, own.low / bound)
        return min(MOST, bound / own.high) if own.high > 0 else MOST

    def text(self, label: str) -> str:
        """The figure of a law with its interval and unit."""
        unit = f" {self.question.unit}" if self.question.unit else ""
        shown = with_interval(self.figure(label), self.question.scale)
        return shown if shown == "–" else f"{shown}{unit}"

    @property
    def bound(self) -> str:
        """The bound in words."""
        return bound_of(self.question)

    @property
    def where(self) -> str:
        """The place in words, and the other law."""
        return f"{self.place}{f', beside {self.beside}' if self.beside else ''}"

    def to_json(self) -> dict[str, Any]:
        """The object of a report, in the figure's own unit."""
        return {
            "question": self.question.name,
            "what": self.question.what,
            "flows": self.question.flows,
            "place": str(self.place),
            "beside": self.beside or None,
            "unit": self.question.unit if self.question.scale == 1.0 else "",
            "bad": self.question.bad,
            "bound": self.question.bound,
            "figures": {label: self.figure(label).to_json() for label in self.values},
            "less": {label: self.difference(label).to_json() for label in self.comparators},
            "said": self.said,
            "words": self.words,
            "why_not": dict(self.why_not),
        }


@dataclass(frozen=True)
class Finding:
    """The places at which one question has a finding, the largest first."""

    answers: Sequence[Answer]
    sections: Sequence[str]

    def __str__(self) -> str:
        worst, *rest = self.answers
        others = "; ".join(f"{label} {worst.text(label)}" for label in worst.comparators)
        also = "; ".join(f"{one.text(one.law)} ({one.where})" for one in rest[:_ALSO])
        more = len(rest) - _ALSO
        what = worst.question.what[0].upper() + worst.question.what[1:]
        return (
            f"{what}: {worst.text(worst.law)} ({worst.question.flows}; {worst.where}); {others}."
            f"{f' Also {also}' if also else ''}"
            f"{f'; and at {more} more' if more > 0 else ''}{'.' if also else ''}"
        )

    def to_json(self) -> dict[str, Any]:
        """The object of a report."""
        return {
            "sections": list(self.sections),
            "question": self.answers[0].question.name,
            "size": self.answers[0].size,
            "says": str(self),
        }


def findings(criteria: Sequence[Criterion], answers: Sequence[Answer]) -> list[Finding]:
    """The findings of all questions, the largest first."""
    found: dict[str, list[Answer]] = {}
    for answer in answers:
        if answer.said == "finding":
            found.setdefault(answer.question.name, []).append(answer)
    made = [
        Finding(
            sorted(own, key=lambda answer: -answer.size),
            [criterion.section for criterion in criteria if name in criterion.questions],
        )
        for name, own in found.items()
    ]
    return sorted(made, key=lambda finding: -finding.answers[0].size)
