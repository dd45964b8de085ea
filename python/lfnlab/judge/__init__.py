"""The judge: a law's score on a fixed objective, a value an axis, path and seed.

>>> from lfnlab import score
>>> found = score("htcp-be", against=["cubic"], out="scores")  # doctest: +SKIP
>>> print(found)  # doctest: +SKIP
>>> found.compare(found.against[0]).frame()  # doctest: +SKIP

``docs/score.md`` defines the axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from lfnlab.errors import LabError, LawError, ScenarioError, UsageError
from lfnlab.evaluate.subjects import Subject, subject
from lfnlab.experiment.plan import Case, seeds_of
from lfnlab.experiment.run import execute
from lfnlab.judge.objective import Objective
from lfnlab.judge.paths import JudgePath, Path, Place, places
from lfnlab.judge.probing import Axis, Probe, probes
from lfnlab.judge.reading import DEFAULT, read
from lfnlab.judge.vector import AxisScore, Comparison, Row, Score

if TYPE_CHECKING:
    from lfnlab.control_laws.prototype import Law
    from lfnlab.experiment.run import Failed, Progress
    from lfnlab.results.runs import Results, Run

__all__ = [
    "Axis",
    "AxisScore",
    "Comparison",
    "JudgePath",
    "Objective",
    "Row",
    "Score",
    "read",
    "score",
    "scores",
]


def score(
    law: str | type[Law],
    *,
    paths: Sequence[Path] | Mapping[str, Path] | None = None,
    against: Sequence[str | type[Law]] = (),
    seeds: int | Sequence[int] | None = None,
    out: str | FilePath | None = None,
    objective: str | FilePath = DEFAULT,
    axes: Sequence[str] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    failed: Failed | None = None,
) -> Score:
    """The score of a law.

    Args:
        law: NAME, NAME:VARIANT, udt/NAME, FILE.h, FILE.py:CLASS, or a class.
        paths: where, or a mapping from names; default the objective's. A path is a
            :class:`JudgePath`, or a :class:`~lfnlab.Scenario` of :func:`lfnlab.dumbbell` without
            flows.
        against: other laws, whose scores stand in :attr:`Score.against`.
        seeds: the seeds, or how many from 1 on; default the objective's.
        out: the results directory; a repeated score runs what is missing. Default: a temporary one.
        objective: the version of an objective, or a file.
        axes: names of those to measure; default all.
        jobs, progress, failed: as of :func:`lfnlab.execute`.

    Raises:
        LawError: an unknown law, or one named twice, before anything is run.
        ScenarioError: an objective, a path or seeds that cannot be, before anything is run.
        UsageError: an unknown axis or version, before anything is run.
    """
    own, *others = scores(
        [law, *against],
        paths=paths,
        seeds=seeds,
        out=out,
        objective=objective,
        axes=axes,
        jobs=jobs,
        progress=progress,
        failed=failed,
    )
    return replace(own, against=tuple(others))


def scores(
    laws: Sequence[str | type[Law]],
    *,
    paths: Sequence[Path] | Mapping[str, Path] | None = None,
    seeds: int | Sequence[int] | None = None,
    out: str | FilePath | None = None,
    objective: str | FilePath = DEFAULT,
    axes: Sequence[str] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    failed: Failed | None = None,
) -> list[Score]:
    """The scores of laws in their order; the arguments are those of :func:`lfnlab.score`."""
    subjects = [subject(name) for name in laws]
    labels = [who.label for who in subjects]
    if twice := [label for at, label in enumerate(labels) if label in labels[:at]]:
        raise LawError(f"{twice[0]} is named twice; name each law once")
    said = read(objective)
    where = places(
        said.paths if paths is None else paths, said.least_s, said.least_rtts, said.warmup
    )
    asked = _Asked(said, subjects, where, _chosen(probes(said), axes))
    if not asked.cases:
        raise ScenarioError(f"nothing to run: {next(iter(asked.refused.values()))}")
    with nullcontext(out) if out is not None else TemporaryDirectory(prefix="lfn-score-") as folder:
        results = execute(
            asked.cases,
            seeds=said.seeds if seeds is None else seeds_of(seeds, 1),
            out=folder,
            jobs=jobs,
            progress=progress,
            failed=failed,
            keep_going=True,
            title=f"score of {', '.join(labels)}",
            summaries=True,
        )
        return asked.scores(results)


def _chosen(all_: Sequence[Probe], axes: Sequence[str] | None) -> list[Probe]:
    """The probes with the axes that were asked for."""
    if axes is None:
        return [*all_]
    known = [axis.name for probe in all_ for axis in probe.axes]
    if not axes:
        raise UsageError(f"axes: none; allowed: {', '.join(known)}")
    for name in axes:
        if name not in known:
            raise UsageError(f'axes: "{name}"; allowed: {", ".join(known)}')
    kept = [
        replace(probe, axes=tuple(axis for axis in probe.axes if axis.name in axes))
        for probe in all_
    ]
    return [probe for probe in kept if probe.axes]


class _Asked:
    """The runs of a score, and why some have none."""

    def __init__(
        self,
        objective: Objective,
        laws: Sequence[Subject],
        where: Sequence[Place],
        probes: Sequence[Probe],
    ) -> None:
        self._objective, self._laws, self._where, self._probes = objective, laws, where, probes
        self.cases: list[Case] = []
        self.refused: dict[tuple[str, str, str], str] = {}
        for who in laws:
            for place in where:
                for probe in probes:
                    self._add(who, place, probe)

    def _add(self, who: Subject, place: Place, probe: Probe) -> None:
        key = (who.label, place.name, probe.name)
        try:
            scenarios = probe.build(who, place)
            for scenario in scenarios:
                scenario.check()
        except LabError as error:
            self.refused[key] = error.with_key if isinstance(error, ScenarioError) else str(error)
            return
        names = ("law", "path", "probe")
        self.cases += [
            Case(scenario, {**dict(zip(names, key, strict=True)), "part": part})
            for part, scenario in enumerate(scenarios)
        ]

    def scores(self, results: Results) -> list[Score]:
        """The scores from the stored runs."""
        runs: dict[tuple[str, str, str], dict[int, list[Run]]] = {}
        for run in results.runs:
            runs.setdefault(_key(run.factors), {}).setdefault(run.seed, []).append(run)
        seeds = tuple(
            sorted({run.seed for run in results.runs} | {lost.seed for lost in results.failures})
        )
        failed = {_key(failure.factors): failure.error for failure in results.failures}
        return [self._score(who.label, runs, self.refused | failed, seeds) for who in self._laws]

    def _score(
        self,
        law: str,
        runs: Mapping[tuple[str, str, str], Mapping[int, Sequence[Run]]],
        without: Mapping[tuple[str, str, str], str],
        seeds: tuple[int, ...],
    ) -> Score:
        values: dict[tuple[str, str, int], float] = {}
        missing: dict[tuple[str, str], str] = {}
        for place in self._where:
            for probe in self._probes:
                key = (law, place.name, probe.name)
                for axis in probe.axes:
                    if key in without:
                        missing[axis.name, place.name] = without[key]
                        continue
                    for seed, parts in runs[key].items():
                        try:
                            values[axis.name, place.name, seed] = axis.measure(parts)
                        except LabError as error:
                            missing[axis.name, place.name] = str(error)
        axes = tuple(axis for probe in self._probes for axis in probe.axes)
        names = {axis.name for axis in axes}
        return Score(
            law=law,
            objective=str(self._objective),
            axes=axes,
            paths=tuple(place.name for place in self._where),
            seeds=seeds,
            values=values,
            missing=missing,
            bounds={n: pair for n, pair in self._objective.bounds.items() if n in names},
        )


def _key(factors: Mapping[str, object]) -> tuple[str, str, str]:
    law, path, probe = (str(factors[name]) for name in ("law", "path", "probe"))
    return law, path, probe
