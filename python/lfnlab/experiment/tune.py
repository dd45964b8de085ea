"""Search for values of scenarios' keys that minimise objectives.

A sampler of Optuna proposes points; each is run in every scenario with the same seeds, so points
have the same traffic and are compared seed by seed. The fluid may screen points before, and
successive halving (Jamieson, Talwalkar, AISTATS 2016) ends the worse ones after short runs. All
runs are stored, so repeating a search resumes it.

The best of many means is biased. So the best points are run with new seeds, and their intervals are
computed from those alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab import _core
from lfnlab.errors import ScenarioError, Unavailable, UsageError
from lfnlab.experiment import screen
from lfnlab.experiment.design import MOST_RUNS, Choice, Design, Point, Range, quoted, ranges
from lfnlab.experiment.objective import Objective
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.experiment.sweep import Sweep, lasting, located, split
from lfnlab.scenario.builder import Scenario
from lfnlab.scenario.quantity import SECONDS, parse
from lfnlab.statistics import Interval, interval, paired

if TYPE_CHECKING:
    from lfnlab.experiment.run import Progress
    from lfnlab.results.runs import Results, Run

BATCH = 8
"""Points that are proposed and run together, on any machine: proposals depend on it."""
_SEED = 2**32 - 1
"""The largest seed of proposals, as NumPy's generator takes it."""
_KEYS = (
    *("minimise", "constraints", "scenarios", "over", "trials", "seeds", "seed"),
    *("sampler", "screen", "halving"),
)
SAMPLERS = {
    "tpe": "TPESampler",
    "random": "RandomSampler",
    "nsga2": "NSGAIISampler",
    "nsga3": "NSGAIIISampler",
}
"""Samplers that need nothing beside Optuna, and their classes there."""
LEAST_S = 0.1
"""No halved run is shorter."""


@dataclass(frozen=True)
class Trial:
    """A point, and each objective by seed; None where it has none.

    A value is the mean over the scenarios. If nothing is random, one run counts for all seeds.
    """

    point: Point
    vector: tuple[tuple[float, ...], ...] | None
    alone: bool = False
    """One run counts for all seeds."""
    constraints: tuple[float, ...] = ()
    """Means over scenarios and seeds."""

    @property
    def values(self) -> tuple[float, ...] | None:
        """The first objective by seed."""
        return None if self.vector is None else self.vector[0]

    @property
    def objectives(self) -> tuple[Interval, ...]:
        """Means over seeds with their 95 % intervals."""
        return tuple(interval(of[: 1 if self.alone else None]) for of in self.vector or ((),))

    @property
    def objective(self) -> Interval:
        """The first of them."""
        return self.objectives[0]

    @property
    def feasible(self) -> bool:
        """Whether it has values, and keeps every constraint."""
        return self.vector is not None and all(value <= 0.0 for value in self.constraints)

    def dominates(self, other: Trial) -> bool:
        """Whether no objective's mean is worse than the other's, and one is better."""
        own, its = ([of.mean for of in trial.objectives] for trial in (self, other))
        return all(a <= b for a, b in zip(own, its, strict=True)) and own != its


@dataclass(frozen=True)
class Tuned:
    """Result of a search."""

    trials: tuple[Trial, ...]
    """Feasible ones first, from the best mean of the first objective to the worst; those without
    values last. Points that were ended early are not there."""
    confirmed_front: tuple[tuple[Interval, ...], ...]
    """Of each point of the front, the objectives over seeds that the search did not see."""
    confirmed_feasible: tuple[bool, ...]
    """Of each point of the front, whether it keeps every constraint over those seeds."""

    @property
    def best(self) -> Trial:
        """The feasible point with the smallest mean of the first objective."""
        return self.trials[0]

    @property
    def front(self) -> tuple[Trial, ...]:
        """The feasible points that no other dominates; of one objective the best."""
        return _front(self.trials)

    @property
    def confirmed(self) -> Interval:
        """The first objective of the best point over new seeds."""
        return self.confirmed_front[0][0]

    def equals(self) -> list[Trial]:
        """Feasible points without a significant difference from the best in the first objective.

        At 95 %, seed by seed.
        """
        best = self.best.values
        assert best is not None
        return [
            trial
            for trial in self.trials
            if trial.feasible
            and trial.values is not None
            and (trial.values == best or not paired(trial.values, best).low > 0.0)
        ]


@dataclass(frozen=True)
class Halving:
    """Rungs of successive halving: shorter runs first, of which a part goes on.

    With ``rungs`` 2 and ``factor`` 2 all points run for a quarter of the duration, the better half
    for half of it, and the better half of those in full.
    """

    rungs: int = 2
    factor: int = 2

    def __post_init__(self) -> None:
        for key in ("rungs", "factor"):
            _check_whole(f"halving.{key}", getattr(self, key), 1 if key == "rungs" else 2, 8)


@dataclass(frozen=True)
class Search:
    """Objectives, keys and number of trials of a search.

    Args:
        base: the scenario.
        minimise: a formula, or several, whose front is searched for.
        over: the keys.
        trials: points to try.
        seeds: of each point.
        seed: of the proposals.
        others: further scenarios, in which the keys are set, too.
        constraints: formulas whose mean is to be 0 at most.
        sampler: a name of :data:`SAMPLERS`; default "tpe", of several objectives "nsga2".
        screen: how many points the fluid sees for one that is run.
        halving: whether the worse points end after short runs.
    """

    base: Scenario
    minimise: Objective | Sequence[Objective]
    over: Mapping[str, Range | Choice]
    trials: int = 50
    seeds: int = 5
    seed: int = 1
    name: str = "scenario"
    source: str | None = None
    lines: Mapping[str, int] = field(default_factory=dict)
    others: Sequence[Scenario] = ()
    constraints: Sequence[Objective] = ()
    sampler: str | None = None
    screen: int = 1
    halving: Halving | None = None

    def __post_init__(self) -> None:
        _check_whole("trials", self.trials, 1, MOST_RUNS)
        _check_whole("seeds", self.seeds, 2, MOST_RUNS)
        _check_whole("seed", self.seed, 0, _SEED)
        _check_whole("screen", self.screen, 1, 1000)
        if not self.over:
            raise ScenarioError(
                "no key",
                'write for example "link.queue.size" = '
                '{ from = "10 packets", to = "1000 packets" }',
                "over",
            )
        if not self.objectives:
            raise ScenarioError("no objective", "allowed: at least one formula", "minimise")
        if self.sampler is not None and self.sampler not in SAMPLERS:
            raise ScenarioError(repr(self.sampler), f"allowed: {', '.join(SAMPLERS)}", "sampler")
        if "seed" in self.over:
            raise ScenarioError("the search's own", "all points have the same seeds", "over.seed")
        if self.screen > 1:
            for scenario in self.scenarios:
                screen.check(self.objectives, scenario)
        if self.halving is not None:
            self._check_halved()

    def _check_halved(self) -> None:
        """Refuse scenarios that cannot be as short as the first rung's."""
        if own := [key for key in ("duration", "warmup") if key in self.over]:
            raise ScenarioError("halving sets it", "leave out one of both", f"over.{own[0]}")
        for scenario in self.scenarios:
            short = _shorter(scenario, self._parts()[0])
            try:
                short.check()
            except ScenarioError as error:
                if _is_refused(scenario):
                    continue  # without halving, too
                said = f"its shortest runs take {short.duration}, and {error.with_key}"
                raise ScenarioError(said, "allowed: fewer rungs", "halving") from None

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Those of ``minimise``."""
        one = isinstance(self.minimise, Objective)
        return (self.minimise,) if one else tuple(self.minimise)  # type: ignore[arg-type, return-value]

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """All of them, the base first."""
        return (self.base, *self.others)

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
            formulas = said.pop("minimise", None)
            if not isinstance(formulas, str | list) or not isinstance(said.get("over"), dict):
                raise ScenarioError("minimise, over: both are needed", "see docs/sweep.md")
            try:
                over = ranges(said.pop("over"))
            except ScenarioError as error:
                raise error.at(f"over.{error.key}") from None
            formula_places = {
                key: f"{path}:{lines.get(f'tune.{key}', lines['tune'])}"
                for key in ("minimise", "constraints")
            }
            minimise = _formulas("minimise", formulas, formula_places)
            said["constraints"] = _formulas(
                "constraints", said.get("constraints", []), formula_places
            )
            files = said.pop("scenarios", [])
            if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
                raise ScenarioError(repr(files), "allowed: a list of files", "scenarios")
            said["others"] = [Scenario.load(Path(path).parent / file) for file in files]
            said["halving"] = _halving(said.get("halving"))
            places = {key: lines.get(f"tune.over.{quoted(key)}", lines["tune"]) for key in over}
            return cls(base, minimise, over, **said, name=str(path), source=source, lines=places)
        except ScenarioError as error:
            if error.file:
                raise
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
            UsageError: when no run has the objectives, or none keeps the constraints.
            Unavailable: when Optuna is not installed.
        """
        study = self._study()
        first = self.base.seed
        told, fresh = (
            range(first, first + self.seeds),
            range(first + self.seeds, first + 3 * self.seeds),
        )

        def tried(points: Sequence[Point], seeds: Sequence[int], part: float = 1.0) -> list[Trial]:
            results = execute(
                self._cases(points, part),
                seeds=seeds,
                out=out,
                jobs=jobs,
                executor=executor,
                progress=progress,
                title=f"minimise {', '.join(one.text for one in self.objectives)}",
                keep_going=True,
                source=self.source,
                summaries=True,
            )
            return self._trials(results, points, len(seeds))

        found: list[Trial] = []
        asked_for = 0
        while asked_for < self.trials:
            count = min(BATCH, self.trials - asked_for)
            asked_for += count
            asked = self._screened(study, count)
            going = list(range(count))
            for part in self._parts():
                some = tried([asked[at][1] for at in going], told, part)
                if part < 1.0:
                    going = self._better(study, asked, going, some)
            for at, trial in zip(going, some, strict=True):
                found.append(trial)
                _tell(study, asked[at][0], trial)
        # The experiment of the store is all of the search, and the confirmation stands beside it.
        ordered = sorted(found, key=_rank)
        _best(ordered)
        # A point that was proposed twice is one point.
        distinct = tuple({repr(trial.point): trial for trial in ordered}.values())
        front = _front(distinct)
        confirmed = tried([trial.point for trial in front], fresh)
        tried([trial.point for trial in found], told)
        return Tuned(
            distinct,
            tuple(trial.objectives for trial in confirmed),
            tuple(trial.feasible for trial in confirmed),
        )

    def _study(self) -> Any:
        try:
            import optuna
        except ImportError:
            raise Unavailable("lfn tune needs optuna; install lfnlab[search]") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        several = len(self.objectives) > 1
        name = self.sampler or ("nsga2" if several else "tpe")
        settings: dict[str, Any] = {"seed": self.seed}
        if name == "tpe":
            settings["constant_liar"] = True
        elif name.startswith("nsga"):
            # Of a batch, so that a search of few trials has several generations.
            settings["population_size"] = BATCH
        sampler = getattr(optuna.samplers, SAMPLERS[name])(**settings)
        return optuna.create_study(directions=["minimize"] * len(self.objectives), sampler=sampler)

    def _screened(self, study: Any, count: int) -> list[tuple[Any, Point]]:
        """Proposals; of :attr:`screen` times as many those that the fluid finds best."""
        asked = [study.ask() for _ in range(count * self.screen)]
        pairs = [(trial, self._point(trial)) for trial in asked]
        if self.screen == 1:
            return pairs
        worth = self._worth([point for _, point in pairs])
        first: dict[str, int] = {}
        for at, (_, point) in enumerate(pairs):
            first.setdefault(repr(point), at)
        # Copies of a point come last.
        order = sorted(
            range(len(pairs)), key=lambda at: (first[repr(pairs[at][1])] < at, worth[at], at)
        )
        import optuna

        for at in order[count:]:
            study.tell(pairs[at][0], state=optuna.trial.TrialState.FAIL)
        return [pairs[at] for at in sorted(order[:count])]

    def _worth(self, points: Sequence[Point]) -> list[float]:
        """The fluid's sum of ranks over objectives; a point without a fluid is as the median."""
        ranks = [0.0] * len(points)
        for base in self.scenarios:
            sweep = self._sweep(base)
            seen = screen.fluid([sweep.case(point).scenario for point in points])
            for objective in self.objectives:
                values = [None if one is None else objective.of_metrics(one) for one in seen]
                known = sorted(value for value in values if value is not None)
                for at, value in enumerate(values):
                    middle = len(known) / 2
                    ranks[at] += middle if value is None else known.index(value)
        return ranks

    def _parts(self) -> list[float]:
        """Parts of the duration, from the shortest."""
        if self.halving is None:
            return [1.0]
        rungs, factor = self.halving.rungs, self.halving.factor
        return [1.0 / factor ** (rungs - rung) for rung in range(rungs + 1)]

    def _better(
        self, study: Any, asked: Sequence[tuple[Any, Point]], going: list[int], some: list[Trial]
    ) -> list[int]:
        """Those that go on: whom the fewest dominate; the others end."""
        import optuna

        assert self.halving is not None
        ranks = [sum(other.dominates(one) for other in some if other.feasible) for one in some]
        order = sorted(
            range(len(going)),
            key=lambda at: (
                some[at].vector is None,
                not some[at].feasible,
                ranks[at],
                _rank(some[at]),
            ),
        )
        kept = math.ceil(len(going) / self.halving.factor)
        for at in order[kept:]:
            study.tell(asked[going[at]][0], state=optuna.trial.TrialState.FAIL)
        return sorted(going[at] for at in order[:kept])

    def _point(self, trial: Any) -> Point:
        """The trial's values; the optimiser sees each range as [0, 1]."""
        return {
            key: at.of[trial.suggest_categorical(key, list(range(len(at.of))))]
            if isinstance(at, Choice)
            else at.at(trial.suggest_float(key, 0.0, 1.0))
            for key, at in self.over.items()
        }

    def _sweep(self, base: Scenario) -> Sweep:
        return Sweep(base, Design(), name=self.name, source=self.source, lines=self.lines)

    def _cases(self, points: Sequence[Point], part: float = 1.0) -> list[Case]:
        """Of each point a case in each scenario, which ends after this part of its duration."""
        cases = []
        for number, base in enumerate(self.scenarios):
            sweep = self._sweep(base if part == 1.0 else _shorter(base, part))
            where = {"scenario": number} if self.others else {}
            made = [sweep.case(point) for point in points]
            cases += [
                Case(case.scenario, {"trial": place, **where, **case.factors})
                for place, case in enumerate(made)
            ]
        return cases

    def _trials(self, results: Results, points: Sequence[Point], seeds: int) -> list[Trial]:
        runs: list[list[Run]] = [[] for _ in points]
        for run in results.runs:
            runs[int(run.factors["trial"])].append(run)
        return [self._trial(own, point, seeds) for own, point in zip(runs, points, strict=True)]

    def _trial(self, runs: Sequence[Run], point: Point, seeds: int) -> Trial:
        """The objectives by seed; None when a run failed or one has no value."""
        by_case: dict[Any, list[Run]] = {}
        for run in runs:
            by_case.setdefault(run.factors.get("scenario"), []).append(run)
        if len(by_case) < len(self.scenarios):
            return Trial(point, None)
        alone = []
        formulas = (*self.objectives, *self.constraints)
        sums = [[0.0] * seeds for _ in formulas]
        for own in by_case.values():
            once = len(own) == 1 < seeds and not own[0].scenario.is_random
            alone.append(once)
            whole = own * seeds if once else own
            for formula, total in zip(formulas, sums, strict=True):
                values = [value for run in own if (value := formula.of(run.summary)) is not None]
                if len(values) < len(own) or len(whole) < seeds:
                    return Trial(point, None)
                for at, value in enumerate(values * seeds if once else values):
                    total[at] += value / len(self.scenarios)
        vector = tuple(map(tuple, sums[: len(self.objectives)]))
        kept = tuple(math.fsum(of) / seeds for of in sums[len(self.objectives) :])
        return Trial(point, vector, all(alone), kept)


def _check_whole(key: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        allowed = f"allowed: a whole number from {least} to {most}"
        raise ScenarioError(repr(value), allowed, key)


def _formulas(key: str, said: object, places: Mapping[str, str]) -> list[Objective]:
    listed = [said] if isinstance(said, str) else said
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise ScenarioError(repr(said), "allowed: a formula, or a list of formulas", key)
    return [Objective(text, key, places[key]) for text in listed]


def _halving(said: object) -> Halving | None:
    if said is None:
        return None
    if not isinstance(said, dict) or not set(said) <= {"rungs", "factor"}:
        raise ScenarioError(repr(said), "allowed: { rungs = 2, factor = 2 }", "halving")
    return Halving(**said)


def _is_refused(scenario: Scenario) -> bool:
    try:
        scenario.check()
    except ScenarioError:
        return True
    return False


def _shorter(base: Scenario, part: float) -> Scenario:
    """The scenario with a part of its duration and of its warm-up."""
    duration_s = parse(base.duration, SECONDS)
    warmup = base.warmup and f"{parse(base.warmup, SECONDS) * part:.9g}s"
    return replace(base, duration=f"{max(LEAST_S, duration_s * part):.9g}s", warmup=warmup)


def _tell(study: Any, asked: Any, trial: Trial) -> None:
    import optuna

    if trial.vector is None:
        study.tell(asked, state=optuna.trial.TrialState.FAIL)
        return
    for number, value in enumerate(trial.constraints):
        asked.set_constraint(str(number), value)
    study.tell(asked, [of.mean for of in trial.objectives])


def _rank(trial: Trial) -> tuple[bool, bool, float]:
    """Feasible points first, by the mean of the first objective; those without values last."""
    mean = math.inf if trial.vector is None else trial.objective.mean
    return trial.vector is None, not trial.feasible, mean


def _best(ordered: Sequence[Trial]) -> Trial:
    best = ordered[0]
    if best.vector is None:
        raise UsageError("minimise: no trial has a value; lfn store show has results to look at")
    if not best.feasible:
        broken = ", ".join(f"{value:.3g}" for value in best.constraints)
        raise UsageError(
            f"constraints: no trial keeps them; the best has {broken}, and 0 is allowed at most"
        )
    return best


def _front(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    feasible = [trial for trial in trials if trial.feasible]
    several = bool(feasible) and len(feasible[0].objectives) > 1
    if not several:
        return tuple(feasible[:1])
    return tuple(one for one in feasible if not any(other.dominates(one) for other in feasible))
