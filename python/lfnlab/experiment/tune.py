"""Search for values of a scenario's keys that minimise an objective.

A tree-structured Parzen estimator (Bergstra et al., NIPS 2011, as Optuna has it) proposes points;
each is run with the same seeds, so points have the same traffic and are compared seed by seed. All
runs are stored, so repeating a search resumes it.

The best of many means is biased. So the best point is run with new seeds, and its interval is
computed from those alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab import _core
from lfnlab.errors import ScenarioError, Unavailable, UsageError
from lfnlab.experiment.design import MOST_RUNS, Choice, Design, Point, Range, quoted, ranges
from lfnlab.experiment.objective import Objective
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.experiment.sweep import Sweep, lasting, located, split
from lfnlab.statistics import Interval, interval, paired

if TYPE_CHECKING:
    from lfnlab.experiment.run import Progress
    from lfnlab.results.runs import Results
    from lfnlab.scenario.builder import Scenario

BATCH = 8
"""Points that are proposed and run together, on any machine: proposals depend on it."""
_SEED = 2**32 - 1
"""The largest seed of proposals, as NumPy's generator takes it."""
_KEYS = ("minimise", "trials", "seeds", "seed", "over")


@dataclass(frozen=True)
class Trial:
    """A point, and the objective by seed; None where it has none.

    If nothing is random, one run counts for all seeds.
    """

    point: Point
    values: tuple[float, ...] | None
    alone: bool = False
    """One run counts for all seeds."""

    @property
    def objective(self) -> Interval:
        """Mean over seeds with its 95 % interval."""
        return interval((self.values or ())[: 1 if self.alone else None])


@dataclass(frozen=True)
class Tuned:
    """Result of a search."""

    trials: tuple[Trial, ...]
    """From the best mean to the worst; those without an objective last."""
    confirmed: Interval
    """The objective of the best point over seeds that the search did not see."""

    @property
    def best(self) -> Trial:
        """The point of the smallest mean."""
        return self.trials[0]

    def equals(self) -> list[Trial]:
        """Points without a significant difference from the best, at 95 %, seed by seed."""
        best = self.best.values
        assert best is not None
        return [
            trial
            for trial in self.trials
            if trial.values is not None
            and (trial.values == best or not paired(trial.values, best).low > 0.0)
        ]


@dataclass(frozen=True)
class Search:
    """Objective, keys and number of trials of a search."""

    base: Scenario
    minimise: Objective
    over: Mapping[str, Range | Choice]
    trials: int = 50
    seeds: int = 5
    seed: int = 1
    name: str = "scenario"
    source: str | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, least, most in (
            ("trials", 1, MOST_RUNS),
            ("seeds", 2, MOST_RUNS),
            ("seed", 0, _SEED),
        ):
            value = getattr(self, key)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not whole or not least <= value <= most:
                allowed = f"allowed: a whole number from {least} to {most}"
                raise ScenarioError(repr(value), allowed, key)
        if not self.over:
            raise ScenarioError(
                "no key",
                'write for example "link.queue.size" = '
                '{ from = "10 packets", to = "1000 packets" }',
                "over",
            )

    @classmethod
    def load(cls, path: str | Path) -> Search:
        """The search that the table ``[tune]`` of a scenario file says.

        Raises:
            ScenarioError: naming file, line and key of what is wrong.
        """
        text = _core.read(str(path))
        base, said, lines = split(text, str(path), "tune")
        source, _ = lasting(text, str(path), "tune")
        try:
            if unknown := [key for key in said if key not in _KEYS]:
                raise ScenarioError("unknown key", f"allowed: {', '.join(_KEYS)}", unknown[0])
            if not isinstance(said.get("minimise"), str) or not isinstance(said.get("over"), dict):
                raise ScenarioError("minimise, over: both are needed", "see docs/sweep.md")
            try:
                over = ranges(said.pop("over"))
            except ScenarioError as error:
                raise error.at(f"over.{error.key}") from None
            minimise = Objective(said.pop("minimise"))
            places = {key: lines.get(f"tune.over.{quoted(key)}", lines["tune"]) for key in over}
            return cls(base, minimise, over, **said, name=str(path), source=source, lines=places)
        except ScenarioError as error:
            raise located(error, lines, str(path), "tune") from None

    def run(
        self,
        *,
        out: str | Path = "lfn-results",
        jobs: int | None = None,
        executor: str = "local",
        progress: Progress | None = None,
    ) -> Tuned:
        """Search; the settings are those of :func:`lfnlab.execute`.

        Raises:
            ScenarioError: when a proposed point is invalid.
            UsageError: when no run has the objective.
            Unavailable: when Optuna is not installed.
        """
        try:
            import optuna
        except ImportError:
            raise Unavailable("lfn tune needs optuna; install lfnlab[search]") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=self.seed, constant_liar=True)
        study = optuna.create_study(direction="minimize", sampler=sampler)
        first = self.base.seed
        told, fresh = (
            range(first, first + self.seeds),
            range(first + self.seeds, first + 3 * self.seeds),
        )

        def tried(points: Sequence[Point], seeds: Sequence[int]) -> list[Trial]:
            results = execute(
                self._cases(points),
                seeds=seeds,
                out=out,
                jobs=jobs,
                executor=executor,
                progress=progress,
                title=f"minimise {self.minimise.text}",
                keep_going=True,
                source=self.source,
                summaries=True,
            )
            return [
                self._trial(results, place, point, len(seeds)) for place, point in enumerate(points)
            ]

        found: list[Trial] = []
        while len(found) < self.trials:
            asked = [study.ask() for _ in range(min(BATCH, self.trials - len(found)))]
            points = [self._point(trial) for trial in asked]
            for trial, got in zip(asked, tried(points, told), strict=True):
                found.append(got)
                if got.values is None:
                    study.tell(trial, state=optuna.trial.TrialState.FAIL)
                else:
                    study.tell(trial, got.objective.mean)
        # The experiment of the store is all of the search, and the confirmation stands beside it.
        (confirmed,) = tried([_best(found).point], fresh)
        tried([trial.point for trial in found], told)
        # A point that was proposed twice is one point.
        distinct = {repr(trial.point): trial for trial in sorted(found, key=_mean)}
        return Tuned(tuple(distinct.values()), confirmed.objective)

    def _point(self, trial: Any) -> Point:
        """The trial's values; the optimiser sees each range as [0, 1]."""
        return {
            key: at.of[trial.suggest_categorical(key, list(range(len(at.of))))]
            if isinstance(at, Choice)
            else at.at(trial.suggest_float(key, 0.0, 1.0))
            for key, at in self.over.items()
        }

    def _cases(self, points: Sequence[Point]) -> list[Case]:
        sweep = Sweep(self.base, Design(), name=self.name, source=self.source, lines=self.lines)
        cases = [sweep.case(point) for point in points]
        return [
            Case(case.scenario, {"trial": place, **case.factors})
            for place, case in enumerate(cases)
        ]

    def _trial(self, results: Results, place: int, point: Point, seeds: int) -> Trial:
        """The objective by seed; None when a run failed or one has no value."""
        runs = [run for run in results.runs if run.factors["trial"] == place]
        found = [value for run in runs if (value := self.minimise.of(run.summary)) is not None]
        if len(runs) == len(found) == 1 < seeds and not runs[0].scenario.is_random:
            return Trial(point, tuple(found * seeds), alone=True)
        return Trial(point, tuple(found) if len(found) == seeds else None)


def _mean(trial: Trial) -> float:
    return math.inf if trial.values is None else trial.objective.mean


def _best(trials: Sequence[Trial]) -> Trial:
    best = min(trials, key=_mean)
    if best.values is None:
        raise UsageError("minimise: no trial has a value; lfn store show has results to look at")
    return best
