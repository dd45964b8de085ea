"""Executors of runs: threads of this process, or workers of a Dask cluster.

Each run calls :func:`simulate`; the calling process stores its files. A
result that arrives late or twice finds its run stored, and changes nothing.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lfnlab import _core
from lfnlab.errors import LabError, OverMemory, StoreError, Unavailable, UsageError
from lfnlab.results.provenance import code_version
from lfnlab.results.store import run_files, run_keys

if TYPE_CHECKING:
    from distributed import Client

Files = dict[str, bytes]
"""The files of a run by name."""

JOBQUEUES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "htcondor": "HTCondorCluster"}
"""Batch systems, and their classes in dask-jobqueue."""


@dataclass(frozen=True)
class Work:
    """A run to compute: key, scenario with its seed, and estimated memory in bytes."""

    key: str
    scenario: _core.Scenario
    memory_bytes: int


Took = Callable[[Work, "Files | LabError"], None]
"""Called from any thread with the files of a run, or the reason of its failure."""
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
    """The files of one run for the store; None if ``tell`` cancelled it."""
    (run,) = _core.run_many([scenario], 1, None if tell is None else lambda _, done: tell(done))
    return None if run is None else run_files(run, scenario, command)


def on_threads(
    work: Iterator[Work],
    jobs: int,
    command: str,
    took: Took,
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

    def begin() -> Work | None:
        with ended:
            item = next(work, None)
            if item is None:
                return None
            while running and (
                sum(running) + item.memory_bytes > limit_bytes
                or item.memory_bytes > memory_limit_bytes()
            ):
                ended.wait(1.0)
            running.append(item.memory_bytes)
            return item

    def worker() -> None:
        while not stop.is_set() and (item := begin()) is not None:

            def going(done: float, item: Work = item) -> bool:
                tell(item, done)
                return not stop.is_set()

            try:
                files = backend.simulate(item.scenario, command, going)
                if files is not None:
                    took(item, files)
            except StoreError:
                raise
            except LabError as error:
                if isinstance(error, OverMemory) and len(running) > 1:
                    again.append(item)
                else:
                    took(item, error)
            finally:
                with ended:
                    running.remove(item.memory_bytes)
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
        on_threads(iter(again), 1, command, took, tell, backend)


def _failed(thread: Future[None]) -> bool:
    return thread.done() and thread.exception() is not None


def on_dask(work: Iterator[Work], client: Client, command: str, took: Took) -> None:
    """Compute the runs on a Dask cluster, with about two tasks for each of its threads at any time.

    If a worker dies, another one gets its run, at most three times; then the run has failed. Tasks
    are named by the run's key, so two sweeps on one cluster share equal runs.

    Raises:
        LabError: when the scheduler is lost.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    futures: dict[Any, Work] = {}

    def room() -> int:
        threads = sum(client.nthreads().values())
        return int(max(16, 2 * threads)) - len(futures)

    def submit(count: int) -> Iterator[Any]:
        for _, item in zip(range(count), work, strict=False):
            text, key = item.scenario.text, f"lfn-{item.key}"
            future = client.submit(_remote, text, command, code_version(), key=key)
            futures[future] = item
            yield future

    queue = as_completed(list(submit(room())))
    try:
        for future in queue:
            item = futures.pop(future)
            try:
                took(item, future.result())
            except KilledWorker as error:
                took(item, LabError(f"its workers died: {error}"))
            except (StoreError, Unavailable):
                raise
            except LabError as error:
                took(item, error)
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


def _remote(text: str, command: str, code: str) -> Files:
    """:func:`simulate` on a worker, which must have the same code."""
    if code_version() != code:
        raise Unavailable(
            f"a Dask worker has lfnlab {code_version()}, this process {code}; versions do not mix: "
            "install the same build on all machines"
        )
    files = simulate(_core.Scenario(text), command)
    assert files is not None, "nobody gave it up"
    return files


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
