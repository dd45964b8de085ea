"""Shrinking: the fewest keys, and the roundest values, with which a weakness still shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lfnlab.attacker import space

if TYPE_CHECKING:
    from lfnlab.attacker.harm import Kind
    from lfnlab.attacker.judge import Confirmed, Judge
    from lfnlab.attacker.space import Value

MOST_KEYS = 5
"""A weakness that needs more keys is not kept."""


@dataclass(frozen=True)
class Shrunk:
    """A path that was shrunk, and what the runs that confirm showed on it."""

    path: dict[str, Value]
    confirmed: Confirmed


def shrink(path: dict[str, Value], kind: Kind, judge: Judge) -> Shrunk | None:
    """The weakness with the fewest keys, or None: it is not confirmed, or needs too many.

    Keys go one after the other while the weakness shows without them, whole groups first; then
    values become round. Each step is confirmed as the weakness is: with other seeds, in longer
    runs, beside the same other law.

    Raises:
        OverBudget: the runs that are allowed are used up.
    """
    confirmed = judge.confirm(path, kind)
    if confirmed is None:
        return None
    found = Shrunk(path, confirmed)

    def better(steps: Iterator[dict[str, Value]]) -> bool:
        nonlocal found
        for tried in steps:
            showed = judge.confirm(tried, kind, confirmed.other)
            if showed is not None:
                found = Shrunk(tried, showed)
                return True
        return False

    while better(_without_groups(found.path)) or better(_without_keys(found.path)):
        pass
    if len(found.path) > MOST_KEYS:
        return None
    for name in list(found.path):
        if name in found.path and not space.KEYS[name].words:
            better(space.rounder(found.path, name))
    return found


def _without_groups(path: dict[str, Value]) -> Iterator[dict[str, Value]]:
    for group in reversed(space.groups(path)):
        less = {name: value for name, value in path.items() if space.KEYS[name].group != group}
        if len(less) < len(path) - 1:
            yield space.valid(less)


def _without_keys(path: dict[str, Value]) -> Iterator[dict[str, Value]]:
    for gone in reversed(path):
        less = space.valid({name: value for name, value in path.items() if name != gone})
        if len(less) < len(path):
            yield less
