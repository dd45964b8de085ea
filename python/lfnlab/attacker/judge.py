"""Verdicts: a law's figures on a path against those of other laws in its place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lfnlab.attacker import harm, space
from lfnlab.attacker.runs import Ask, Runs
from lfnlab.attacker.scenarios import LONG_S, SHORT_S

if TYPE_CHECKING:
    from lfnlab.attacker.harm import Figures, Kind
    from lfnlab.attacker.space import Path

SEARCH_SEED = 1
SEEDS = (2, 3)
"""A weakness is confirmed with other seeds, and in longer runs."""
SAFE = 1.25
"""The margin that a weakness keeps in both of them."""
_FAR = 1.0
"""Less in the score of a path where the law is not near to a harm, so no law stood in its place."""


@dataclass(frozen=True)
class Law:
    """A law: its name as the user wrote it, and as a scenario's text names it."""

    name: str
    spelled: str


@dataclass(frozen=True)
class Verdict:
    """A path's harm to a law, beside the law that fares best in its place.

    ``margin`` says by how many times both conditions of the harm are met.
    """

    kind: Kind
    margin: float
    score: float
    other: str = ""


@dataclass(frozen=True)
class Confirmed:
    """A weakness as the runs that confirm show it, by seed; both with the same other law."""

    kind: Kind
    other: str
    margin: float
    law_figures: tuple[Figures, ...]
    other_figures: tuple[Figures, ...]


class Judge:
    """Judges paths by runs of the law and of the others in its place."""

    def __init__(self, law: Law, others: Sequence[Law], runs: Runs) -> None:
        self.law, self.others, self._runs = law, others, runs

    @property
    def most(self) -> int:
        """Runs of a path at most."""
        return 2 + len(self.others)

    def __call__(self, paths: Sequence[Path]) -> list[list[Verdict]]:
        """A verdict for each harm that a path can show; none where the law's run failed.

        Another law stands in its place only where the law is near to a harm, and the second one
        only where the first did not do three times as well. A law is stuck only if it does better
        on the path without the trouble.
        """
        figures = self._runs([self._ask(path, self.law) for path in paths])
        found: list[dict[Kind, Verdict]] = [{} for _ in paths]
        near: list[list[Kind]] = [[] for _ in paths]
        for place, (path, law) in enumerate(zip(paths, figures, strict=True)):
            if law is None:
                continue
            for kind in harm.kinds(path):
                share = harm.own(kind, path, law)
                if share >= harm.NEAR:
                    near[place].append(kind)
                found[place][kind] = Verdict(kind, 0.0, _log(share) - _FAR)
        stuck = [place for place, kinds in enumerate(near) if "stuck" in kinds]
        calm = [space.calm(paths[place]) for place in stuck]
        answers = self._runs([self._ask(path, self.law) for path in calm])
        held = {}
        for place, path, answer in zip(stuck, calm, answers, strict=True):
            law = figures[place]
            assert law is not None, "it is near"
            held[place] = 0.0 if answer is None else harm.held_up(paths[place], law, path, answer)
            if held[place] < harm.NEAR:
                near[place].remove("stuck")
        for other in self.others:
            asked = [place for place, kinds in enumerate(near) if kinds]
            answers = self._runs([self._ask(paths[place], other) for place in asked])
            for place, answer in zip(asked, answers, strict=True):
                law = figures[place]
                if answer is None or law is None:
                    continue
                for kind in near[place]:
                    margin = harm.margin(kind, paths[place], law, answer)
                    margin = min(margin, held[place]) if kind == "stuck" else margin
                    if found[place][kind].other == "" or margin > found[place][kind].margin:
                        found[place][kind] = Verdict(kind, margin, _log(margin), other.name)
                near[place] = [
                    kind for kind in near[place] if harm.times(kind, law, answer) < harm.TIMES
                ]
        return [list(verdicts.values()) for verdicts in found]

    def confirm(self, path: Path, kind: Kind, other: str | None = None) -> Confirmed | None:
        """The weakness in longer runs with other seeds, or None; beside one law if it is named.

        Raises:
            OverBudget: the runs that are allowed are used up.
        """
        if kind not in harm.kinds(path):
            return None
        law = self._both(path, self.law)
        if law is None or min(harm.own(kind, path, one) for one in law) < SAFE:
            return None
        held = self._held_up(path, law) if kind == "stuck" else harm.MOST
        for candidate in self.others if held >= SAFE else ():
            if other not in (None, candidate.name):
                continue
            answers = self._both(path, candidate)
            if answers is None:
                continue
            margin = min(
                harm.margin(kind, path, one, answer)
                for one, answer in zip(law, answers, strict=True)
            )
            margin = min(margin, held)
            if margin >= SAFE:
                return Confirmed(kind, candidate.name, margin, law, answers)
        return None

    def _held_up(self, path: Path, law: Sequence[Figures]) -> float:
        """By how many times the law does better without the trouble, at the worse seed."""
        calm = space.calm(path)
        without = self._both(calm, self.law)
        if without is None:
            return 0.0
        pairs = zip(law, without, strict=True)
        return min(harm.held_up(path, one, calm, other) for one, other in pairs)

    def _both(self, path: Path, law: Law) -> tuple[Figures, ...] | None:
        made = self._runs([Ask(path, law.spelled, seed, LONG_S) for seed in SEEDS])
        return tuple(one for one in made if one is not None) if None not in made else None

    def _ask(self, path: Path, law: Law) -> Ask:
        return Ask(path, law.spelled, SEARCH_SEED, SHORT_S)


def _log(margin: float) -> float:
    return math.log(max(margin, 1e-3))
