"""The search: paths that hurt, one of each kind of harm and each set of means.

It is an evolutionary search that keeps variety (MAP-Elites, Mouret and Clune 2015): a cell is a
kind of harm and the groups of keys that a path has, and keeps the best path that was found. New
paths are drawn, or made of paths that are kept. The search asks for runs generation by generation,
and all its random numbers come from the seed, so threads change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from lfnlab.attacker import space
from lfnlab.attacker.harm import KINDS, Kind

if TYPE_CHECKING:
    from lfnlab.attacker.judge import Judge
    from lfnlab.attacker.runs import Runs
    from lfnlab.attacker.space import Value

GENERATION = 64
"""Paths that are judged at once."""
FIRST = 4
"""Generations of drawn paths alone."""
NEW = 0.15
"""Part of the later ones that is drawn."""
MOST_GROUPS = 3
"""Paths with more groups of keys have no cell."""
KEY_COST = 0.05
"""Of a score, for each key: of two paths that hurt as much the simpler one is kept."""
ENOUGH = math.log(30.0)
"""A score does not grow above this, so that a search does not go on with one path that starves."""

Cell = tuple[Kind, tuple[str, ...]]


@dataclass(frozen=True)
class Elite:
    """The best path of a cell."""

    kind: Kind
    path: dict[str, Value]
    score: float
    margin: float


@dataclass
class Archive:
    """The elites by cell."""

    cells: dict[Cell, Elite] = field(default_factory=dict)

    def take(self, elite: Elite) -> None:
        """Keep a path if its cell has none that is as good."""
        means = space.groups(elite.path)
        if len(means) > MOST_GROUPS:
            return
        cell = (elite.kind, means)
        if cell not in self.cells or elite.score > self.cells[cell].score:
            self.cells[cell] = elite

    def any(self, random: Random) -> Elite:
        """An elite: of a kind of harm at random, the best of one to three of its elites."""
        there = [kind for kind in KINDS if any(cell[0] == kind for cell in self.cells)]
        kind = there[int(random.random() * len(there))]
        elites = [elite for cell, elite in self.cells.items() if cell[0] == kind]
        picked = [
            elites[int(random.random() * len(elites))] for _ in range(1 + int(random.random() * 3))
        ]
        return max(picked, key=lambda elite: elite.score)

    def weaknesses(self) -> Iterator[Elite]:
        """The elites beyond both conditions of a harm: of each kind in turn the next.

        The simple means come first, and of those that are as simple the best.
        """
        rows = [
            sorted(
                (one for one in self.cells.values() if one.kind == kind and one.margin >= 1.0),
                key=lambda one: (len(space.groups(one.path)), -one.score, str(one.path)),
            )
            for kind in KINDS
        ]
        for place in range(max(map(len, rows))):
            yield from (row[place] for row in rows if place < len(row))


def search(judge: Judge, runs: Runs, seed: int, going: Callable[[Archive], bool]) -> Archive:
    """Search until the runs that are allowed are used up.

    Args:
        judge: judges the paths.
        runs: the runs of the judge.
        seed: of all random numbers of the search.
        going: called after each generation; False ends the search.
    """
    random, archive = Random(seed), Archive()
    generation = 0
    while (left := runs.left()) is None or left >= judge.most:
        count = GENERATION if left is None else min(GENERATION, left // judge.most)
        paths = []
        for _ in range(count):
            if generation < FIRST or not archive.cells or random.random() < NEW:
                paths.append(space.drawn(random))
            else:
                one, other = archive.any(random), archive.any(random)
                paths.append(space.changed(one.path, other.path, random))
        for path, verdicts in zip(paths, judge(paths), strict=True):
            for verdict in verdicts:
                score = min(verdict.score, ENOUGH) - KEY_COST * len(path)
                archive.take(Elite(verdict.kind, path, score, verdict.margin))
        generation += 1
        if not going(archive):
            break
    return archive
