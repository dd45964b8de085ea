"""Executors of runs: threads of this process, or workers of a Dask cluster.

Each run calls :func:`simulate`; the calling process stores its files. A
result that arrives late or twice finds its run stored, and changes nothing.
"""

from __future__ import annotations

import hashlib
import io
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lfnlab import _core
from lfnlab.control_laws import foreign
from lfnlab.errors import LabError, OverMemory, StoreError, Unavailable, UsageError
from lfnlab.experiment import alone
from lfnlab.results.index import shard
from lfnlab.results.provenance import code_version, now
from lfnlab.results.store import brief_files, run_files, run_keys

if TYPE_CHECKING:
    import polars as pl
    from distributed import Client

Files = dict[str, bytes]
"""The files of a run by name."""

GROUP_EVENTS = 500_000
"""Brief runs of so many predicted events are computed one after the other, some 30 ms: to begin one
takes a thread."""
JOBQUEUES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "htcondor": "HTCondorCluster"}
"""Batch systems, and their classes in dask-jobqueue."""


@dataclass(frozen=True)
class Work:
    """A run to compute: key, scenario with its seed, and estimated memory in bytes."""

    key: str
    scenario: _core.Scenario
    memory_bytes: int
    events: int = 0
    """Predicted."""
    brief: bool = False
    """Whether it keeps its summary alone."""


Took = Callable[[Work, "Files | LabError"], None]
"""Called from any thread with the files of a run, or the reason of its failure."""
TookRows = Callable[[Sequence[Work], "pl.DataFrame"], None]
"""Called from any thread with brief runs and their rows for a shard."""
Tell = Callable[[Work, float], None]
"""Called from any thread with a run and the fraction done."""


class Backend(Protocol):
    """Where runs run: the simulator, or a TCP whose runs have the same files.

    The bodies are the simulator's.
    """

    name: str

    def check(self, scenario: _core.Scenario, limit_bytes: int | None = None) -> None:
        """Raise ScenarioError if it cannot run there, or within the limit."""
        if limit_bytes is not None:
            scenario.check_memory(limit_bytes)

    def is_random(self, scenario: _core.Scenario) -> bool:
        """Whether runs with other seeds are other runs."""
        return scenario.is_random

    def memory_bytes(self, estimated_bytes: int) -> int:
        """Memory of a run for which the simulator is estimated to need so much."""
        return estimated_bytes

    def keys(self, scenario: _core.Scenario, seeds: Iterable[int]) -> list[str]:
        """The addresses of the runs with these seeds."""
        return run_keys(scenario, seeds)

    def simulate(
        self, scenario: _core.Scenario, command: str, tell: Callable[[float], bool] | None = None
    ) -> Files | None:
        """The files of one run for the store; None if ``tell`` cancelled it."""
        return simulate(scenario, command, tell)


class Simulator(Backend):
    """The simulator of this package."""

    name = "simulator"


SIMULATOR = Simulator()


def memory_limit_bytes() -> int:
    """Memory limit of all runs in bytes: the user's, else a part of the available memory."""
    return _core.memory_limit_bytes()


def simulate(
    scenario: _core.Scenario, command: str, tell: Callable[[float], bool] | None = None
) -> Files | None:
    """The files of one run for the store; None if ``tell`` cancelled it.

    A run with a controller from a shared object has a process of its own.
    """
    if libraries := foreign.of(scenario):
        return alone.simulate(scenario, command, libraries, tell)
    (run,) = _core.run_many([scenario], 1, None if tell is None else lambda _, done: tell(done))
    return None if run is None else run_files(run, scenario, command)


def simulate_brief(
    group: Sequence[tuple[str, _core.Scenario]],
    command: str,
    tell: Callable[[int, float], bool] | None = None,
) -> tuple[pl.DataFrame | None, dict[str, LabError]]:
    """The rows for a shard of runs, one after the other, and the failed ones by their keys.

    Runs that ``tell`` cancelled are in neither.
    """
    failed: dict[str, LabError] = {}
    scenarios = [scenario for _, scenario in group]
    try:
        runs = _core.run_many(scenarios, 1, tell, sampled=False)
    except LabError as error:
        if len(group) == 1:
            return None, {group[0][0]: error}
        runs = [None] * len(group)
        for place, (key, scenario) in enumerate(group):
            try:
                (runs[place],) = _core.run_many([scenario], 1, None, sampled=False)
            except LabError as wrong:
                failed[key] = wrong
    finished = now()
    files = {
        key: brief_files(run, scenario, command, finished)
        for (key, scenario), run in zip(group, runs, strict=True)
        if run is not None
    }
    return (shard(files) if files else None), failed


def _groups(work: Iterator[Work], most: Callable[[], float]) -> Iterator[list[Work]]:
    """Brief runs together, up to so many predicted events; each other run alone."""
    group: list[Work] = []
    for item in work:
        if item.brief:
            group.append(item)
            if sum(one.events for one in group) >= most():
                yield group
                group = []
        else:
            yield [item]
    if group:
        yield group


def on_threads(
    work: Iterator[Work],
    jobs: int,
    command: str,
    took: Took,
    took_rows: TookRows,
    tell: Tell,
    backend: Backend = SIMULATOR,
) -> None:
    """Compute the runs on ``jobs`` threads, as many at a time as memory allows.

    A run waits while the estimated memory of it and of the runs in progress exceeds the memory
    available at the start, or while its own exceeds the memory available now. A single run never
    waits. One that exceeds its memory beside others runs again in the end, alone.
    """
    limit_bytes = memory_limit_bytes()
    stop = threading.Event()
    ended = threading.Condition()
    running: list[int] = []
    again: list[Work] = []
    groups = _groups(work, lambda: GROUP_EVENTS)

    def begin() -> list[Work] | None:
        with ended:
            group = next(groups, None)
            if group is None:
                return None
            need = max(item.memory_bytes for item in group)
            while running and (sum(running) + need > limit_bytes or need > memory_limit_bytes()):
                ended.wait(1.0)
            running.append(need)
            return group

    def fail(item: Work, error: LabError) -> None:
        if isinstance(error, OverMemory) and len(running) > 1:
            again.append(item)
        else:
            took(item, error)

    def compute(group: list[Work]) -> None:
        def going(place: int, done: float) -> bool:
            tell(group[place], done)
            return not stop.is_set()

        if group[0].brief:
            pairs = [(item.key, item.scenario) for item in group]
            rows, failed = simulate_brief(pairs, command, going)
            if rows is not None:
                took_rows([item for item in group if item.key not in failed], rows)
            for item in group:
                if item.key in failed:
                    fail(item, failed[item.key])
            return
        (item,) = group
        try:
            files = backend.simulate(item.scenario, command, lambda done: going(0, done))
        except StoreError:
            raise
        except LabError as error:
            fail(item, error)
        else:
            if files is not None:
                took(item, files)

    def worker() -> None:
        while not stop.is_set() and (group := begin()) is not None:
            try:
                compute(group)
            finally:
                with ended:
                    running.remove(max(item.memory_bytes for item in group))
                    ended.notify_all()

    with ThreadPoolExecutor(jobs) as pool:
        threads = [pool.submit(worker) for _ in range(jobs)]
        try:
            # By turns: an interrupt that another thread of the process catches wakes nobody.
            while wait(threads, 0.2, FIRST_EXCEPTION).not_done and not any(map(_failed, threads)):
                pass
        finally:
            stop.set()
        for thread in threads:
            thread.result()
    if again:
        on_threads(iter(again), 1, command, took, took_rows, tell, backend)


def _failed(thread: Future[None]) -> bool:
    return thread.done() and thread.exception() is not None


def on_dask(
    work: Iterator[Work], client: Client, command: str, took: Took, took_rows: TookRows
) -> None:
    """Compute the runs on a Dask cluster, with about two tasks for each of its threads at any time.

    A task is a run, or as many brief ones as take :data:`TASK_S`. If a worker dies, another one
    gets its task, at most three times; then its runs are tasks of their own, and one that fails so
    again has failed. Tasks are named by the runs' keys, so two sweeps on one cluster share equal
    ones.

    Raises:
        LabError: when the scheduler is lost.
    """
    import polars as pl
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    futures: dict[Any, list[Work]] = {}
    again: list[Work] = []
    events_a_s = FIRST_EVENTS_A_S

    def room() -> int:
        threads = sum(client.nthreads().values())
        return int(max(16, 2 * threads)) - len(futures)

    threads = sum(client.nthreads().values())
    groups = _groups(work, lambda: max(TASK_S, threads / MOST_TASKS_A_S) * events_a_s)

    def submit(count: int) -> Iterator[Any]:
        for _ in range(count):
            group = [again.pop()] if again else next(groups, None)
            if group is None:
                return
            keys = hashlib.sha256("".join(item.key for item in group).encode()).hexdigest()[:24]
            texts = [(item.key, item.scenario.text) for item in group]
            if group[0].brief:
                called: tuple[Any, ...] = (_remote_brief, texts)
            else:
                called = (_remote, texts, foreign.of(group[0].scenario))
            future = client.submit(*called, command, code_version(), key=f"lfn-{keys}")
            futures[future] = group
            yield future

    queue = as_completed(list(submit(room())))
    try:
        for future in queue:
            group = futures.pop(future)
            try:
                found = future.result()
            except KilledWorker as error:
                if len(group) > 1:
                    again += group
                else:
                    took(group[0], LabError(f"its workers died: {error}"))
            except (StoreError, Unavailable):
                raise
            except LabError as error:
                took(group[0], error)
            else:
                if group[0].brief:
                    rows, failed, took_s = found
                    if rows is not None:
                        there = [item for item in group if item.key not in failed]
                        took_rows(there, pl.read_parquet(io.BytesIO(rows)))
                    for item in group:
                        if item.key in failed:
                            took(item, failed[item.key])
                    events_a_s = sum(item.events for item in group) / max(took_s, 1e-3)
                else:
                    took(group[0], found)
            future.release()
            for fresh in submit(room()):
                queue.add(fresh)
    except (OSError, TimeoutError, CancelledError) as error:
        raise LabError(
            f"lost the Dask scheduler: {error}; finished runs are kept; repeat the command to "
            "continue"
        ) from None
    finally:
        client.cancel(list(futures))


TASK_S = 1.0
"""Aim of the time of a task of brief runs, so that it takes at least half of that."""
MOST_TASKS_A_S = 100
"""Tasks a second that a scheduler is given at most, by longer ones where there are many workers."""
FIRST_EVENTS_A_S = 2e6
"""Predicted events of brief runs a second, until a task tells."""


def _remote(
    texts: Sequence[tuple[str, str]], libraries: list[foreign.Library], command: str, code: str
) -> Files:
    """:func:`simulate` on a worker, which must have the same code, and files of controllers."""
    _check_code(code)
    for library in libraries:
        foreign.check(library)
        foreign.known(library)
    ((_, text),) = texts
    files = simulate(_core.Scenario(text), command)
    assert files is not None, "nobody gave it up"
    return files


def _remote_brief(
    texts: Sequence[tuple[str, str]], command: str, code: str
) -> tuple[bytes | None, dict[str, LabError], float]:
    """:func:`simulate_brief` on a worker: the rows as Parquet, and what they took in seconds."""
    _check_code(code)
    begun = time.monotonic()
    group = [(key, _core.Scenario(text)) for key, text in texts]
    rows, failed = simulate_brief(group, command)
    buffer = io.BytesIO()
    if rows is not None:
        rows.write_parquet(buffer, compression="zstd")
    return buffer.getvalue() or None, failed, time.monotonic() - begun


def _check_code(code: str) -> None:
    if code_version() != code:
        raise Unavailable(
            f"a Dask worker has lfnlab {code_version()}, this process {code}; versions do not mix: "
            "install the same build on all machines"
        )


@contextmanager
def dask_client(executor: str, workers: int) -> Iterator[Client]:
    """A client of the cluster that ``executor`` names; processes started for it end with it.

    Args:
        executor: "dask" for processes of this machine, "dask://HOST:PORT" for a scheduler that
            runs, "dask-jobqueue:slurm", ":pbs" or ":htcondor" for jobs of a batch system as
            dask-jobqueue's own configuration describes them.
        workers: processes or jobs to start; none for a scheduler that runs.

    Raises:
        Unavailable: when Dask is not installed or the scheduler does not answer.
    """
    kind, _, place = executor.partition(":")
    try:
        import distributed

        if kind == "dask-jobqueue":
            # Its import makes an interrupt end the process without a word.
            before = signal.getsignal(signal.SIGINT)
            import dask_jobqueue

            signal.signal(signal.SIGINT, before)
    except ImportError as error:
        raise Unavailable(
            f"--executor {executor} needs {error.name}; install lfnlab[cluster]"
        ) from None
    if place.startswith("//"):
        try:
            client = distributed.Client(f"tcp:{place}", timeout=5)
        except (OSError, ValueError) as error:
            raise Unavailable(f"no Dask scheduler answers at {executor}: {error}") from None
        with client:
            yield client
        return
    if kind == "dask":
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        )
    else:
        try:
            cluster = getattr(dask_jobqueue, JOBQUEUES[place])()
        except (ValueError, TypeError) as error:
            raise Unavailable(f"dask-jobqueue is not configured for {place}: {error}") from None
        cluster.scale(jobs=workers)
    with cluster, distributed.Client(cluster) as client:
        yield client


def check_executor(executor: str) -> None:
    """Refuse an unknown name of an executor.

    Raises:
        UsageError: naming those that are.
    """
    kind, _, place = executor.partition(":")
    fixed = ("local", "dask", *(f"dask-jobqueue:{name}" for name in JOBQUEUES))
    if executor not in fixed and not (kind == "dask" and re.fullmatch(r"//\S+:\d+", place)):
        raise UsageError(f'--executor: "{executor}"; allowed: {", ".join(fixed)}, dask://HOST:PORT')
