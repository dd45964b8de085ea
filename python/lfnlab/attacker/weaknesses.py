"""An attack on a law: the search, the weaknesses that hold, and their scenarios."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from lfnlab.attacker import harm, space
from lfnlab.attacker.harm import Figures
from lfnlab.attacker.judge import SEEDS, Confirmed, Judge, Law
from lfnlab.attacker.runs import OverBudget, Runs, spelled
from lfnlab.attacker.scenarios import LONG_S, document
from lfnlab.attacker.search import Archive, search
from lfnlab.attacker.shrink import Shrunk, shrink
from lfnlab.control_laws import prototype
from lfnlab.control_laws.registry import law as law_of
from lfnlab.errors import LawError, StoreError, UsageError
from lfnlab.machine import cores

if TYPE_CHECKING:
    from lfnlab.attacker.harm import Kind
    from lfnlab.attacker.space import Value

OTHERS = ("cubic", "bbr3", "reno")
"""The first two of these that are not the law itself stand in its place."""
LEAST_RUNS = 100
SEARCH = 0.9
"""Part of the runs, and of the minutes, for the search; the rest confirms and shrinks."""
MOST_OF_A_KIND = 5
"""Weaknesses of one kind of harm that are kept."""
MOST_TIMES = 100.0
"""A sentence says no larger ratio: one to nearly nothing is no figure."""
MOST_JOBS = 10_000
RUNS_FILE = "runs.jsonl"

Progress = Callable[[float, int], None]
"""Called with the runs that are done, and the number of runs."""


@dataclass(frozen=True)
class Weakness:
    """A path that hurts a law, shrunk and confirmed.

    Args:
        name: of its scenario's file.
        law: the law, as the user wrote it.
        path: the keys that differ from the plain dumbbell, at most five.
        confirmed: the harm, the other law, and the figures of both by seed.
    """

    name: str
    law: Law
    path: Mapping[str, Value]
    confirmed: Confirmed

    @property
    def kind(self) -> Kind:
        """The kind of harm."""
        return self.confirmed.kind

    @property
    def other(self) -> str:
        """The law that fares better on the same path."""
        return self.confirmed.other

    @property
    def times(self) -> float:
        """How many times as well the other law fares, at the seed where it is least."""
        pairs = zip(self.confirmed.law_figures, self.confirmed.other_figures, strict=True)
        return min(harm.times(self.kind, law, other) for law, other in pairs)

    @property
    def says(self) -> str:
        """A sentence: the path, the harm, both figures."""
        return sentence(
            self.law.name,
            self.path,
            self.kind,
            self.other,
            self.confirmed.law_figures,
            self.confirmed.other_figures,
        )

    def document(self, law: str = "", seed: int = SEEDS[0]) -> dict[str, Any]:
        """The tables of its scenario, with the law or another one in its place."""
        return document(self.path, law or self.law.spelled, seed, LONG_S)

    def to_json(self) -> dict[str, Any]:
        """The object of ``attack.json``; the figures have a list by seed."""
        made = self.confirmed
        return {
            "name": self.name,
            "kind": self.kind,
            "says": self.says,
            "keys": dict(self.path),
            "other": self.other,
            "times": self.times,
            "margin": made.margin,
            "seeds": list(SEEDS),
            "duration_s": LONG_S,
            "from_s": harm.from_s(self.path),
            "law_figures": [one.to_json() for one in made.law_figures],
            "other_figures": [one.to_json() for one in made.other_figures],
        }

    @classmethod
    def from_json(cls, law: str, said: Mapping[str, Any]) -> Weakness:
        """The weakness of a law that :meth:`to_json` gave.

        Raises:
            LawError: there is no such law here.
        """
        figures = [
            tuple(Figures(**one) for one in said[name]) for name in ("law_figures", "other_figures")
        ]
        confirmed = Confirmed(said["kind"], said["other"], said["margin"], figures[0], figures[1])
        return cls(said["name"], law_named(law), said["keys"], confirmed)


@dataclass(frozen=True)
class Attack:
    """The weaknesses that an attack found, and its cost.

    Args:
        law: the law.
        others: the laws that stood in its place.
        seed: of the search.
        runs: simulated, each once; those that confirm and shrink are among them.
        failed: runs that failed.
        first_failure: why the first of them failed.
        cells: kinds of harm and sets of means in which the search found a path beyond a harm.
        whole: whether neither the minutes nor the runs that confirm ended it early.
        weaknesses: those that were confirmed, each with at most five keys.
    """

    law: Law
    others: tuple[Law, ...]
    seed: int
    runs: int
    failed: int
    first_failure: str
    cells: int
    whole: bool
    weaknesses: tuple[Weakness, ...]

    def to_json(self) -> dict[str, Any]:
        """The object of ``attack.json``."""
        return {
            "schema": 1,
            "law": self.law.name,
            "others": [other.name for other in self.others],
            "seed": self.seed,
            "runs": self.runs,
            "failed": self.failed,
            "cells": self.cells,
            "whole": self.whole,
            "weaknesses": [weakness.to_json() for weakness in self.weaknesses],
        }


def attack(
    law: str,
    *,
    beside: Sequence[str] = (),
    runs: int = 20_000,
    seed: int = 1,
    minutes: float | None = None,
    out: str | FilePath | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Attack:
    """Search for paths, losses and cross traffic that hurt a law more than others.

    A path is a weakness if the law's figure is beyond the bound of a harm, and another law in its
    place has three times the goodput, leaves a CUBIC neighbour three times as much, or has a third
    of the queue or of the retransmissions with 90 % of the goodput. Random loss is at most 1 %. The
    same arguments give the same result, whatever the number of jobs.

    Args:
        law: NAME, NAME:VARIANT, FILE.h or FILE.py:CLASS.
        beside: the laws that stand in its place; default CUBIC and BBRv3, for one of them Reno.
        runs: simulations at most, at least 100; a tenth confirms and shrinks.
        seed: of the search.
        minutes: at most; an attack that they end finds less.
        out: folder for its runs, so that an interrupted attack goes on when it is called again.
        jobs: runs at a time; default one for each core.
        progress: told how far it is.

    Raises:
        LawError: when there is no such law.
        UsageError: a law of a router protocol, of UDT or of a stack; too few runs, no time; a
            folder of another attack.
        StoreError: the folder is not one of an attack, or cannot be used.
        KeyboardInterrupt: finished runs are kept in ``out``.
    """
    subject, others = law_named(law), _others(law, beside)
    jobs = _checked(runs, seed, minutes, jobs)
    about = {
        "law": subject.spelled,
        "others": [other.spelled for other in others],
        "seed": seed,
    }
    file = None if out is None else _folder(FilePath(out)) / RUNS_FILE
    made = Runs(file, about, jobs, max(1, int(runs * SEARCH)))
    ends_s = None if minutes is None else time.monotonic() + 60.0 * minutes * SEARCH
    last_s = None if minutes is None else time.monotonic() + 60.0 * minutes

    def going(_: object = None) -> bool:
        if progress is not None:
            progress(made.used, runs)
        return ends_s is None or time.monotonic() < ends_s

    judge = Judge(subject, others, made)
    archive = search(judge, made, seed, going)
    in_time = going()
    made.allow(runs)
    found, all_tried = _weaknesses(archive, judge, going, last_s)
    weaknesses = tuple(
        Weakness(name, subject, one.path, one.confirmed) for name, one in _named(found)
    )
    beyond = sum(elite.margin >= 1.0 for elite in archive.cells.values())
    return Attack(
        subject,
        others,
        seed,
        made.used,
        made.failed,
        made.first_failure,
        beyond,
        in_time and all_tried,
        weaknesses,
    )


def _weaknesses(
    archive: Archive, judge: Judge, going: Callable[[], bool], last_s: float | None
) -> tuple[list[Shrunk], bool]:
    """The elites that are confirmed, shrunk; and whether all were tried.

    An elite whose keys hold all those of a weakness of its kind is not tried: it would shrink to
    that weakness.
    """
    found: list[Shrunk] = []
    for elite in archive.weaknesses():
        same = [one for one in found if one.confirmed.kind == elite.kind]
        if len(same) >= MOST_OF_A_KIND or any(set(one.path) <= set(elite.path) for one in same):
            continue
        if last_s is not None and time.monotonic() >= last_s:
            return found, False
        try:
            made = shrink(elite.path, elite.kind, judge)
        except OverBudget:
            return found, False
        going()
        if made is not None and all(set(one.path) != set(made.path) for one in same):
            found.append(made)
    return found, True


def _named(found: Sequence[Shrunk]) -> list[tuple[str, Shrunk]]:
    """The weaknesses by kind, the largest margin first, with names of their keys."""
    order = {kind: place for place, kind in enumerate(harm.KINDS)}
    ordered = sorted(found, key=lambda one: (order[one.confirmed.kind], -one.confirmed.margin))
    named: dict[str, Shrunk] = {}
    for one in ordered:
        keys = [name for name in one.path if not space.KEYS[name].needs]
        words = "-".join(name.rpartition("_")[0] or name for name in keys) or "plain"
        name = f"{one.confirmed.kind}-{words.replace('_', '-')}"
        number = 2
        while (own := name if number == 2 and name not in named else f"{name}-{number}") in named:
            number += 1
        named[own] = one
    return list(named.items())


def sentence(
    law: str,
    path: Mapping[str, Value],
    kind: Kind,
    other: str,
    law_figures: Sequence[Figures],
    other_figures: Sequence[Figures],
) -> str:
    """A weakness in one sentence, with the figures of both laws, the mean over the seeds."""
    own = sum(harm.percent(kind, path, one) for one in law_figures) / len(law_figures)
    better = sum(harm.percent(kind, path, one) for one in other_figures) / len(other_figures)
    pairs = zip(law_figures, other_figures, strict=True)
    times = min(harm.times(kind, one, two) for one, two in pairs)
    much = f"{times:.1f}" if times < MOST_TIMES else f"over {MOST_TIMES:g}"
    where = space.in_words(path)
    if kind == "queue":
        says = f"{law} keeps a queue of {own:.0f} ms, {other} {better:.0f} ms with as much goodput"
    elif kind == "waste":
        says = (
            f"{law} retransmits {own:.1f} % of what it sends, {other} {better:.1f} % with as much "
            "goodput"
        )
    elif kind == "neighbour":
        says = (
            f"{law} leaves CUBIC {own:.1f} % of the link; {other} in its place leaves it "
            f"{better:.1f} %, {much} times as much"
        )
    else:
        after = f" from {harm.from_s(path):g} s on" if kind == "stuck" else ""
        says = (
            f"{law} has {own:.1f} % of the link{after}; {other} has {better:.1f} % on the same "
            f"path, {much} times as much"
        )
    return f"{where}: {says}."


def law_named(name: str) -> Law:
    """The law that a name stands for, if an attack can run it.

    Raises:
        LawError: there is none.
        UsageError: it needs what the paths of an attack do not have.
    """
    if not isinstance(name, str):
        raise LawError(f"{name!r}: an attack takes NAME, NAME:VARIANT, FILE.h or FILE.py:CLASS")
    made = spelled(name)
    if prototype.is_controller(made):
        raise UsageError(f"{name} is a controller; an attack takes laws: NAME, FILE.h or FILE.py")
    if not prototype.is_prototype(made):
        info = law_of(name)
        if info.family == "router":
            raise UsageError(
                f"{name} is a law of a router protocol, and the paths of an attack have no "
                "routers of it; lfn laws lists the other families"
            )
        if name.startswith("udt/") or info.name == "udt":
            raise UsageError(f"{name} runs over UDT, and an attack over TCP; leave udt out")
    return Law(name, made)


def _others(law: str, beside: Sequence[str]) -> tuple[Law, ...]:
    base = law.partition(":")[0]
    if law in beside:
        raise UsageError(f"--beside {law} is the law itself; write another one")
    names = beside if beside else [name for name in OTHERS if name != base][:2]
    return tuple(law_named(name) for name in dict.fromkeys(names))


def _checked(runs: int, seed: int, minutes: float | None, jobs: int | None) -> int:
    """The number of jobs, if all numbers are allowed."""
    if runs < LEAST_RUNS:
        raise UsageError(f"--runs {runs}; allowed: at least {LEAST_RUNS}")
    if seed < 0:
        raise UsageError(f"--seed {seed}; allowed: at least 0")
    if minutes is not None and not 0.0 < minutes < 1e6:
        raise UsageError(f"--minutes {minutes:g}; allowed: above 0")
    return checked_jobs(jobs)


def checked_jobs(jobs: int | None) -> int:
    """Runs at a time; default one for each core.

    Raises:
        UsageError: less than one, or too many.
    """
    jobs = cores() if jobs is None else jobs
    if not 1 <= jobs <= MOST_JOBS:
        raise UsageError(f"--jobs {jobs}; allowed: 1 to {MOST_JOBS:,}")
    return jobs


def _folder(out: FilePath) -> FilePath:
    """The folder, made if it is missing.

    Raises:
        StoreError: it holds other files than an attack's, or cannot be made.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        there = any(out.iterdir())
    except OSError as error:
        raise StoreError(f"{out}: {error.strerror}") from None
    if there and not (out / RUNS_FILE).is_file():
        raise StoreError(
            f"{out} holds other files, and no attack; give --out a new folder, or one of an attack"
        )
    return out
