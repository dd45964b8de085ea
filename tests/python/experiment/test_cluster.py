"""Does a cluster give the same bytes, whatever becomes of its workers?"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command import LFN
from stores import contents

from lfnlab import File, Link, Unavailable, _core, dumbbell, sweep
from lfnlab.cli import app as cli
from lfnlab.errors import LabError, UsageError
from lfnlab.experiment import executor
from lfnlab.experiment.executor import Work, on_dask
from lfnlab.experiment.plan import Case, Plan
from lfnlab.results.index import Catalog
from lfnlab.results.store import Store

if TYPE_CHECKING:
    import polars as pl
    from command import Lfn

distributed = pytest.importorskip("distributed", reason="needs Dask: install lfnlab[cluster]")

# The loss never comes; it makes seeds differ.
PATH = {"rate": "20Mbit/s", "rtt": "10ms", "buffer": "1bdp", "duration": "2s"}
BASE = dumbbell(**PATH, loss=1e-9).flow("cubic")
LAWS = {"flow[0].law": ["reno", "cubic", "htcp"]}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes; one that dies is replaced."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as made:
        yield made


def address(cluster: Any) -> str:
    return str(cluster.scheduler_address).replace("tcp://", "dask://")


def test_a_worker_killed_midway_changes_no_byte(cluster: Any, tmp_path: Path) -> None:
    killed: list[int] = []

    def progress(done: float, total: int) -> None:
        if done >= total / 4 and not killed:
            worker = next(iter(cluster.workers.values()))
            killed.append(worker.process.pid)
            os.kill(worker.process.pid, signal.SIGKILL)

    sweep(BASE, grid=LAWS, seeds=20, out=tmp_path / "local")
    results = sweep(
        BASE,
        grid=LAWS,
        seeds=20,
        out=tmp_path / "dask",
        executor=address(cluster),
        progress=progress,
    )
    assert killed
    assert not results.failures
    assert len(results.runs) == 60
    assert contents(tmp_path / "dask") == contents(tmp_path / "local")
    assert Catalog(tmp_path / "dask").summary().collect().height == 60
    assert not [run for run in (tmp_path / "dask" / "runs").iterdir() if run.name[0] == "."]


def test_a_result_that_comes_twice_or_late_is_kept_once(cluster: Any, tmp_path: Path) -> None:
    sweep(replace(BASE, sample="10ms"), grid=LAWS, out=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*")}
    store = Store(tmp_path)
    for run in list((tmp_path / "runs").iterdir()):
        store.put({run.name: {file.name: file.read_bytes() for file in run.iterdir()}})
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*")}


def test_a_run_that_fails_on_its_worker_is_a_failure(cluster: Any, tmp_path: Path) -> None:
    """A worker does not have the file of a link's trace; the others come."""
    took: dict[str, Any] = {}
    trace = tmp_path / "trace"
    trace.write_text("1\n2\n")
    replayed = replace(BASE, link=Link(trace=File(path=str(trace))))
    good, bad = (_core.Scenario(scenario.to_toml()) for scenario in (BASE, replayed))
    trace.unlink()
    work = [Work("good", good, 0), Work("bad", bad, 0)]
    with distributed.Client(cluster) as client:
        keep = lambda item, files: took.update({item.key: files})  # noqa: E731
        on_dask(iter(work), client, "", keep, lambda *_: None)
    assert "summary.json" in took["good"]
    assert str(took["bad"]).startswith("scenario:9: link.trace.path: ")


def test_workers_of_another_version_are_refused(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "code_version", lambda: "9.9.9+other")
    with pytest.raises(Unavailable, match="versions do not mix"):
        sweep(BASE, grid=LAWS, out=tmp_path, executor=address(cluster))
    assert not Store(tmp_path).keys()


def test_a_scheduler_that_is_lost_ends_the_sweep_and_keeps_its_runs(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    lasting = replace(BASE, duration="10s")
    for_all = ["--no-dashboard", "--scheduler-file", str(file)]
    module = "distributed.cli.dask_"
    scheduler, worker = (
        subprocess.Popen([sys.executable, "-m", module + name, *for_all, *more], **quiet)  # type: ignore[call-overload]
        for name, more in (
            ("scheduler", ["--host", "127.0.0.1", "--port", "0"]),
            ("worker", ["--no-nanny", "--nthreads", "1", "--death-timeout", "60"]),
        )
    )
    try:
        for _ in range(1200):
            if file.exists() and file.read_text().endswith("}"):
                break
            time.sleep(0.05)
        place = json.loads(file.read_text())["address"].replace("tcp://", "dask://")

        def progress(done: float, total: int) -> None:
            if done:
                scheduler.kill()

        with pytest.raises(LabError, match="lost the Dask scheduler"):
            sweep(
                lasting,
                grid=LAWS,
                seeds=2000,
                out=tmp_path / "s",
                executor=place,
                progress=progress,
            )
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert 0 < len(Store(tmp_path / "s").keys()) < 6000


def test_a_task_of_short_runs_is_long_enough(cluster: Any, tmp_path: Path) -> None:
    """Runs of a millisecond are tasks of many."""
    took: list[float] = []
    real = executor._remote_brief

    with distributed.Client(cluster) as client:
        plan = Plan([Case(BASE)], 3000, summaries=True)
        work = (
            Work(run.key, plan.scenario(run), run.memory_bytes, run.events, run.brief)
            for run in plan.runs
        )
        rows: list[pl.DataFrame] = []
        submit, tasks = client.submit, []

        def counted(called: Any, texts: Any, *rest: Any, **more: Any) -> Any:
            assert called is real
            tasks.append(len(texts))
            return submit(called, texts, *rest, **more)

        client.submit = counted
        on_dask(work, client, "", lambda *_: took.append(1.0), lambda _, one: rows.append(one))
    assert not took
    assert sum(tasks) == sum(one["key"].n_unique() for one in rows) == 3000
    assert max(tasks) > 10, "not a task a run"


def test_a_cluster_of_this_machine(tmp_path: Path) -> None:
    results = sweep(BASE, grid=LAWS, out=tmp_path, executor="dask", jobs=1)
    assert len(results.runs) == 3


def test_no_scheduler_there(tmp_path: Path, lfn: Lfn) -> None:
    with pytest.raises(UsageError, match="allowed: local, dask, dask-jobqueue:slurm"):
        sweep(BASE, grid=LAWS, out=tmp_path, executor="spark")
    file = tmp_path / "s.toml"
    file.write_text(f"{BASE.to_toml()}\n[sweep.grid]\nseed = [1]\n")
    command = ["sweep", str(file), "--out", str(tmp_path / "out"), "--executor"]
    assert "no Dask scheduler answers" in lfn.err(
        *command, "dask://127.0.0.1:9", code=cli.UNAVAILABLE
    )


def test_a_batch_system(tmp_path: Path) -> None:
    """A stand-in for Slurm starts each job on this machine."""
    if find_spec("dask_jobqueue") is None:
        pytest.skip("needs dask-jobqueue: install lfnlab[cluster]")
    for name, does in (
        ("sbatch", 'cp "$1" job; sh job >log 2>&1 & echo job 7'),
        ("scancel", "true"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    (tmp_path / "s.toml").write_text(f"{BASE.to_toml()}\n[sweep.grid]\nseed = [1, 2, 3]\n")
    settings = {"CORES": "1", "MEMORY": "1GB", "PYTHON": sys.executable, "INTERFACE": "lo"}
    subprocess.run(
        [
            *LFN,
            "sweep",
            "s.toml",
            "--out",
            "out",
            "--jobs",
            "1",
            "--executor",
            "dask-jobqueue:slurm",
        ],
        cwd=tmp_path,
        env=os.environ
        | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        | {f"DASK_JOBQUEUE__SLURM__{key}": value for key, value in settings.items()},
        check=True,
        timeout=120,
    )
    assert len(Store(tmp_path / "out").keys()) == 3
    assert (tmp_path / "job").read_text().startswith("#!")
