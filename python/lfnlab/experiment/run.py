"""Run scenarios over seeds, in parallel, into a store."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from lfnlab.control_laws import prototype
from lfnlab.errors import (
    DamageWarning,
    LabError,
    LawError,
    ScenarioError,
    SeedsWarning,
    UsageError,
)
from lfnlab.experiment import executor as executors
from lfnlab.experiment.executor import SIMULATOR, Backend, Files, Work
from lfnlab.experiment.plan import Case, Plan, Planned, mixed
from lfnlab.machine import cores
from lfnlab.results import provenance, remote
from lfnlab.results.batch import Batch
from lfnlab.results.index import Catalog, Recorder
from lfnlab.results.integrity import fault
from lfnlab.results.maintenance import remove
from lfnlab.results.runs import SCHEMA, Failure, Results, listing, runs_of
from lfnlab.results.store import Store, in_folders
from lfnlab.scenario.builder import Scenario

if TYPE_CHECKING:
    import polars as pl

    from lfnlab.control_laws.controller import Controller
    from lfnlab.control_laws.prototype import Law
    from lfnlab.scenario.elements import FlowSettings

MOST_JOBS = 10_000
"""Each is a thread, a process, or a job of a batch system."""
Progress = Callable[[float, int], None]
"""Called from any thread with the runs done, counting fractions, and the number of runs."""
Failed = Callable[[str], None]
"""Called from any thread with the reason of a failed run."""


class Options(TypedDict, total=False):
    """Arguments of :func:`execute` besides its cases, seeds and those that a sweep gives."""

    out: str | Path
    jobs: int | None
    progress: Progress | None
    failed: Failed | None
    title: str
    executor: str
    shard: tuple[int, int] | None
    backend: Backend


def execute(
    cases: Scenario | Sequence[Case],
    *,
    seeds: int | Sequence[int] = 1,
    out: str | Path = "lfn-results",
    jobs: int | None = None,
    progress: Progress | None = None,
    failed: Failed | None = None,
    title: str = "",
    executor: str = "local",
    shard: tuple[int, int] | None = None,
    keep_going: bool = False,
    source: str | None = None,
    backend: Backend = SIMULATOR,
    summaries: bool = False,
) -> Results:
    """Run a scenario, or every case, with every seed; a run that the store has is not run again.

    A case in which nothing is random runs with the first seed alone (``SeedsWarning``). A case
    with a law in Python always runs again, since its class may depend on other code that has
    changed. Each run is stored when it ends; repeat the call to continue after an interruption.

    Args:
        cases: the scenario, or the cases, at least one.
        seeds: the seeds, or how many, counted from each scenario's own; at least one.
        out: the results directory.
        jobs: runs at a time; default one for each core, fewer where memory would not do. With
            ``executor`` "dask" the number of processes, with a batch system that of its jobs.
        progress: told how far it is.
        failed: told why a run failed, when it does, with ``keep_going``.
        title: of the experiment, for its report; default the name of the scenario.
        executor: "local", or a Dask cluster: ``lfnlab.experiment.executor`` has its names.
        shard: (i, n) for the i-th of n parts of the runs, from 1. A part is no experiment: run all,
            which takes no time when the parts are there, or merge their stores first.
        keep_going: a run that fails is listed in the results and does not end the others.
        source: the text that the cases were made from, to be kept with the experiment.
        backend: where the runs run; another than the simulator has ``executor`` "local" alone.
        summaries: keep the summaries alone of cases that do not ask for tables by ``sample``,
            ``sample_rows`` or ``capture``. A table that is read is simulated again.

    Raises:
        ScenarioError: before anything is run.
        LawError: before anything is run, when a law is not there.
        PrototypeError: when a law in Python fails, unless ``keep_going``.
        StoreError: when a result cannot be written.
        LabError: when a run fails, unless ``keep_going``.
        KeyboardInterrupt: runs in progress are given up, finished ones stay.
    """
    if isinstance(cases, Scenario):
        title = title or cases.name or ""
        cases = [Case(cases)]
    jobs = cores() if jobs is None else jobs
    _check(cases, jobs, executor, backend)
    plan = _planned(cases, seeds, backend, summaries).shard(*shard or (1, 1))
    if remote.of(out) is not None and not all(run.brief for run in plan.runs):
        raise UsageError(
            f"--out {out}: a store at an address keeps summaries alone, of sweeps; leave out "
            "sample, sample_rows, recordings and laws in Python, or write to a folder"
        )
    store = Store(out)
    _forget_prototypes(store, plan)
    entries = listing(
        [run.key for run in plan.runs],
        [run.seed for run in plan.runs],
        [run.case for run in plan.runs],
        [case.factors for case in cases],
    )
    experiment: dict[str, Any] = {"schema": SCHEMA, "title": title, "runs": entries}
    experiment |= {} if source is None else {"source": source}
    experiment |= {} if backend is SIMULATOR else {"on": backend.name}
    whole = experiment if shard is None else None
    state = _State(store, plan, progress, failed, keep_going, whole)
    command = provenance.command()
    try:
        if not state.pending:
            state.tell_all()
        elif executor == "local":
            threads = min(jobs, len(state.pending))
            executors.on_threads(
                state.work(), threads, command, state.took, state.took_rows, state.tell, backend
            )
        else:
            workers = plan.fitting(jobs) if executor == "dask" else jobs
            with executors.dask_client(executor, workers) as client:
                executors.on_dask(state.work(), client, command, state.took, state.took_rows)
    finally:
        try:
            state.batch.write()
            store.tidy()
        finally:
            state.recorder.write()
    return _results(store, title, plan, state.failures)


def _planned(
    cases: Sequence[Case], seeds: int | Sequence[int], backend: Backend, summaries: bool
) -> Plan:
    """The plan; warns about cases that run once in spite of several seeds."""
    plan = Plan(cases, seeds, backend, summaries=summaries)
    if plan.alone:
        count = len(seeds) if isinstance(seeds, Sequence) else seeds
        part = f" in {plan.alone:,} of {len(cases):,} cases" if plan.alone < len(cases) else ""
        why = "nothing is random there, so every seed would give the same run"
        said = f"one run instead of {count:,} seeds{part}: {why}"
        _warn(said, SeedsWarning)
    return plan


def _warn(said: str, category: type[Warning]) -> None:
    """Warn at the line that called this package: Python shows a warning once for each line."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals["__name__"].split(".")[0] == "lfnlab":
        frame, level = frame.f_back, level + 1
    warnings.warn(said, category, stacklevel=level)


def _check(cases: Sequence[Case], jobs: int, executor: str, backend: Backend) -> None:
    executors.check_executor(executor)
    if executor != "local" and backend is not SIMULATOR:
        raise UsageError(f"--executor {executor}: {backend.name} runs in this machine's threads")
    if not 1 <= jobs <= MOST_JOBS:
        raise ScenarioError(repr(jobs), f"allowed: from 1 to {MOST_JOBS}", "jobs")
    laws = [law for case in cases for law in case.scenario.laws]
    prototype.check_names(laws)
    here = [law for law in laws if prototype.is_prototype(law) and not prototype.is_controller(law)]
    if executor != "local" and here:
        raise LawError(f"--executor {executor}: a law in Python runs in this process alone")


def _results(store: Store, title: str, plan: Plan, errors: Mapping[str, str]) -> Results:
    factors = [case.factors for case in plan.cases]
    done = [run for run in plan.runs if run.key not in errors]
    failures = [
        Failure(run.seed, dict(factors[run.case]), errors[run.key])
        for run in plan.runs
        if run.key in errors
    ]
    runs = runs_of(
        store.root,
        [run.key for run in done],
        [run.seed for run in done],
        [run.case for run in done],
        [dict(of) for of in factors],
    )
    return Results(store.root, title, runs, tuple(failures))


def _forget_prototypes(store: Store, plan: Plan) -> None:
    """Remove runs of laws in Python: their class may depend on other code that has changed."""
    own = [not all(map(prototype.is_repeatable, case.scenario.laws)) for case in plan.cases]
    there = store.keys()
    if stale := {run.key for run in plan.runs if own[run.case] and run.key in there}:
        remove([store.path(key) for key in sorted(stale)])
        Catalog(store.root)  # drops their rows


def _whole(store: Store, plan: Plan) -> set[str]:
    """The complete stored runs of a plan; warns about damaged ones.

    A run in a shard is complete if it is to keep its summary alone.
    """
    folders, held = in_folders(store.root), store.shards.keys()
    keys = {run.key for run in plan.runs}
    faults = {key: fault(store.path(key)) for key in sorted(keys & folders)}
    short = {run.key for run in plan.runs if run.brief and run.key in held}
    lost = [f"the runs of {name}: {why}" for name, why in sorted(store.shards.wrong.items())]
    wrong = [f"{key}: {why}" for key, why in faults.items() if why is not None]
    if keys - short - faults.keys():  # some of them may have been in a damaged shard
        wrong += lost
    if wrong:
        several = f"{len(wrong):,} damaged runs are" if len(wrong) > 1 else "a damaged run is"
        more = f", and {len(wrong) - 1:,} more" if len(wrong) > 1 else ""
        _warn(f"{several} run again: {wrong[0]}{more}", DamageWarning)
    return short - folders | {key for key, why in faults.items() if why is None}


def _is_there(store: Store, run: Planned) -> bool:
    """Whether another process has stored the run in the meantime."""
    if run.brief:
        return store.shards.has(run.key)
    path = store.path(run.key)
    return path.exists() and fault(path) is None


class _State:
    """Progress of a plan. Threads of an executor call it."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        progress: Progress | None,
        failed: Failed | None,
        keep_going: bool,
        experiment: dict[str, Any] | None,
    ) -> None:
        self.failures: dict[str, str] = {}
        self.recorder = Recorder(store.root)
        self.batch = Batch(store, self._stored)
        self._store, self._plan, self._progress = store, plan, progress
        self._failed, self._keep_going, self._experiment = failed, keep_going, experiment
        there = _whole(store, plan)
        if there:
            self._remember()
        # By key: a run that two cases share is run once.
        self.pending = {run.key: run for run in plan.runs if run.key not in there}
        self._total = len({run.key for run in plan.runs})
        self._ended = self._total - len(self.pending)
        self._running: dict[str, float] = {}
        self._lock = threading.Lock()

    def work(self) -> Iterator[Work]:
        """The missing runs; another process may have stored some in the meantime.

        See :func:`mixed` for their order.
        """
        self.tell_all()
        for run in mixed(list(self.pending.values())):
            if _is_there(self._store, run):
                self._end(run.key)
            else:
                scenario = self._plan.scenario(run)
                yield Work(run.key, scenario, run.memory_bytes, run.events, run.brief)

    def took(self, work: Work, files: Files | LabError) -> None:
        """A run has its files, or has failed."""
        if isinstance(files, LabError):
            if not self._keep_going:
                raise files
            self.failures[work.key] = str(files)
            if self._failed is not None:
                self._failed(str(files))
        else:
            self.batch.add(work.key, files)
        self._end(work.key)

    def took_rows(self, work: Sequence[Work], rows: pl.DataFrame) -> None:
        """Brief runs have their rows; those that were cancelled have none."""
        self.batch.add_rows(rows)
        there = set(rows["key"])
        for item in work:
            if item.key in there:
                self._end(item.key)

    def _stored(self, runs: Mapping[str, Mapping[str, bytes]]) -> None:
        self._remember()
        for key, files in runs.items():
            self.recorder.add(key, files)

    def _remember(self) -> None:
        """The experiment is that of the directory from its first run on."""
        experiment, self._experiment = self._experiment, None
        if experiment is not None:
            self._store.write_experiment(experiment)

    def tell(self, work: Work, done: float) -> None:
        """A run in progress is so far."""
        with self._lock:
            self._running[work.key] = done
        self.tell_all()

    def tell_all(self) -> None:
        """How far it is."""
        if self._progress is not None:
            with self._lock:
                done = self._ended + sum(self._running.values())
            self._progress(done, self._total)

    def _end(self, key: str) -> None:
        with self._lock:
            self._running.pop(key, None)
            self._ended += 1
        self.tell_all()


def compare(
    laws: Sequence[str | type[Law | Controller]],
    base: Scenario,
    *,
    seeds: int | Sequence[int] = 1,
    out: str | Path = "lfn-results",
    jobs: int | None = None,
    progress: Progress | None = None,
    title: str = "",
    backend: Backend = SIMULATOR,
    **settings: Unpack[FlowSettings],
) -> Results:
    """Run each law in turn on the same path: ``base`` with flows of that law.

    ``laws`` are names, NAME:VARIANT, FILE.py:CLASS or subclasses of :class:`lfnlab.Law`.
    ``settings`` are those of :meth:`Scenario.flow`, such as ``count``; the rest as :func:`execute`.

    >>> from lfnlab import compare, dumbbell
    >>> base = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="60s")
    >>> compare(["reno", "cubic"], base, seeds=3).frame()  # doctest: +SKIP
    """
    if isinstance(laws, str | type):
        raise ScenarioError(
            repr(laws), "write a list of names or classes, for example ['cubic']", "laws"
        )
    cases = [Case(base.flow(law, **settings), {"law": prototype.label(law)}) for law in laws]
    specs = [case.scenario.check().flows[-1].law for case in cases]
    if twice := [spec for i, spec in enumerate(specs) if spec in specs[:i]]:
        raise ScenarioError(f"law {twice[0]} is named twice", "write each law once")
    return execute(
        cases, seeds=seeds, out=out, jobs=jobs, progress=progress, title=title, backend=backend
    )
