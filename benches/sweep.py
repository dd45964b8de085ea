"""Cost of a sweep, and its behaviour under kill -9: the figures of docs/sweep.md.

$ python -m benches.sweep kill [--runs 100000] [--kills 20]
$ python -m benches.sweep overhead
$ python -m benches.sweep speedup
$ python -m benches.sweep open [--runs 100000]

``kill`` ends with an error unless a sweep that was killed with -9 at random moments has the bytes
of one that was left alone. The others print what they measured.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl

from lfnlab import Sweep, dumbbell
from lfnlab import open as open_store
from lfnlab.experiment.design import Design
from lfnlab.results import maintenance, shards
from lfnlab.results.store import in_folders, stored

from .row import Row

#: Losses are drawn: where nothing is, all seeds are one run.
SHORT = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s", loss=0.001).flow(
    "cubic"
)
#: A run of about a third of a second, to be put on one core and on two.
LONG = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="60s", loss=1e-6).flow("cubic")


FILES = ("scenario.toml", "summary.json", shards.REDUCTIONS)


def kill(runs: int, kills: int) -> None:
    """A sweep killed at random against one that was not."""
    with tempfile.TemporaryDirectory(prefix="lfn-kill-") as name:
        home = Path(name)
        file = home / "sweep.toml"
        laws = '["reno", "cubic"]'
        table = f'[sweep]\nseeds = {runs // 2}\n[sweep.grid]\n"flow[0].law" = {laws}\n'
        file.write_text(SHORT.to_toml() + table)
        command = [sys.executable, "-m", "lfnlab.cli", "sweep", str(file), "--out"]
        subprocess.run([*command, home / "whole"], check=True, stdout=subprocess.DEVNULL)
        there = 0
        first = int(os.environ.get("LFN_SEED", "0"))
        for killed in range(1, kills + 1):
            process = subprocess.Popen([*command, home / "killed"], stdout=subprocess.DEVNULL)
            there = kill_midway(
                process, home / "killed", there, random.Random(first + killed), runs // kills
            )
            print(f"killed {killed:2} times, {there:6,} of {runs:,} runs are there", flush=True)
        subprocess.run([*command, home / "killed"], check=True, stdout=subprocess.DEVNULL)
        digests = {part: _digest(home / part) for part in ("whole", "killed")}
        print(*(f"{part:7} {digest}" for part, digest in digests.items()), sep="\n")
        damaged = [found for _, found in maintenance.verify(home / "killed") if found]
        rows = open_store(home / "killed").summary().collect()["key"].n_unique()
        print(f"{len(damaged)} damaged; {rows:,} rows in the summary")
        if len(set(digests.values())) > 1 or damaged or rows != runs:
            sys.exit("the sweep that was killed has other bytes")


def kill_midway(
    process: subprocess.Popen[bytes], store: Path, there: int, moments: random.Random, most: int
) -> int:
    """Kill -9 at a random moment after a random number of further runs, up to ``most``.

    Of none, the moment is one of the start. Returns the number of stored runs.
    """
    wanted = there + moments.randrange(most)
    while process.poll() is None and _count(store) < wanted:
        time.sleep(0.005)
    time.sleep(moments.uniform(0.0, 0.05))
    process.send_signal(signal.SIGKILL)  # of a sweep that ended first, nobody
    process.wait()
    return _count(store)


def _count(store: Path) -> int:
    return len(stored(store)) if (store / "runs").is_dir() else 0


def _digest(root: Path) -> str:
    """Of every file of every run but provenance.json, with names, in order of the keys."""
    digests: dict[str, bytes] = {}
    held = shards.of(root / "runs")
    for rows in held.whole(held.keys()):
        for key, *texts in rows.drop_nulls("summary.json").select("key", *FILES).iter_rows():
            digests[key] = hashlib.sha256("\0".join(texts).encode()).digest()
    for key in in_folders(root) - digests.keys():
        files = sorted((root / "runs" / key).iterdir())
        texts = [file.read_bytes() for file in files if file.name != "provenance.json"]
        digests[key] = hashlib.sha256(b"\0".join(texts)).digest()
    whole = hashlib.sha256()
    for key in sorted(digests):
        whole.update(key.encode() + digests[key])
    return whole.hexdigest()


def rows() -> list[Row]:
    """Cost of short runs of a sweep, with their simulation and beside it, and of very many."""
    cpu_ms, _, kilobytes, _ = overhead(4_000)
    mine_ms, theirs_ms = pair(1_000)
    table, report = many(100_000)
    return [
        Row("a run of 1 s in a sweep, beside its simulation: CPU (ms)", f"{cpu_ms:.2f} ms", bar=2),
        Row("the same: its size in the store (kB)", f"{kilobytes:.2f} kB", bar=6),
        Row(
            "a run of 10 s of 10 Mbit/s x 40 ms in a sweep, packets included: CPU (ms)",
            f"{mine_ms:.2f} ms",
            ratio=mine_ms / theirs_ms,
            bar=0.25,
        ),
        Row("100,000 runs of 2 s: `lfn table`", f"{table[0]:.1f} s of CPU", mb=table[1], bar=30),
        Row("100,000 runs of 2 s: `lfn report`", f"{report[0]:.1f} s of CPU", mb=report[1], bar=30),
    ]


def pair(runs: int) -> tuple[float, float]:
    """CPU time in ms of a run that keeps its summary alone, and of one with its tables."""
    base = dumbbell(rate="10Mbit/s", rtt="40ms", buffer="1bdp", duration="10s", loss=1e-4)
    took: dict[str | None, list[float]] = {None: [], "10ms": []}
    for _ in range(5):
        for sample, spent in took.items():
            asked = Sweep(
                replace(base, sample=sample).flow("cubic"), Design(grid={"link.loss": [1e-4]}), runs
            )
            with tempfile.TemporaryDirectory(prefix="lfn-pair-") as name:
                asked.run(out=Path(name) / "first", jobs=1, shard=(1, runs))
                begun = time.process_time()
                asked.run(out=Path(name) / "all", jobs=1)
                spent.append(1e3 * (time.process_time() - begun) / runs)
    return statistics.median(took[None]), statistics.median(took["10ms"])


def many(runs: int) -> list[tuple[float, float]]:
    """CPU time in s and memory in MB of the table and the report of very many runs."""
    base = replace(SHORT, duration="2s")
    laws = ["reno", "cubic", "htcp", "bic"]
    found = []
    with tempfile.TemporaryDirectory(prefix="lfn-many-") as name:
        out = Path(name) / "store"
        Sweep(base, Design(grid={"flow[0].law": laws}), runs // len(laws)).run(out=out)
        for command in (["table", str(out)], ["report", str(out), "--out", f"{name}/page"]):
            process = subprocess.Popen(
                [sys.executable, "-m", "lfnlab.cli", *command], stdout=subprocess.DEVNULL
            )
            _, status, used = os.wait4(process.pid, 0)
            assert status == 0, command
            found.append((used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3))
    return found


def overhead(runs: int) -> tuple[float, float, float, float]:
    """CPU and wall time of a run beside its simulation in ms, its size in kB, and its files."""
    asked = Sweep(SHORT, Design(grid={"flow[0].law": ["cubic"]}), runs)
    with tempfile.TemporaryDirectory(prefix="lfn-overhead-") as name:
        asked.run(out=Path(name) / "first", jobs=1, shard=(1, runs))
        begun, begun_cpu = time.monotonic(), time.process_time()
        results = asked.run(out=Path(name) / "all", jobs=1)
        wall_s, cpu_s = time.monotonic() - begun, time.process_time() - begun_cpu
        simulated_s = sum(run.summary["cpu_s"] for run in results.runs)
        files = [file for file in (Path(name) / "all").rglob("*") if file.is_file()]
        kilobytes = sum(file.stat().st_size for file in files) / 1e3 / runs
    cpu_ms, wall_ms = (1e3 * (seconds - simulated_s) / runs for seconds in (cpu_s, wall_s))
    return cpu_ms, wall_ms, kilobytes, len(files) / runs


def speedup(runs: int) -> None:
    """Throughput of two threads over that of one.

    The wall times say it where two cores are free. On a machine that others use: the work of one
    thread over that of two, in CPU time, times the mean number of threads that want a core while
    two run, up to two. That is what two free cores would give over one.
    """
    took, spent, wanted = {}, {}, {}
    for jobs in (1, 2):
        with tempfile.TemporaryDirectory(prefix="lfn-speedup-") as name:
            asked = Sweep(LONG, Design(grid={"flow[0].law": ["cubic"]}), runs)
            begun, begun_cpu = time.monotonic(), time.process_time()
            with runnable() as samples:
                asked.run(out=name, jobs=jobs)
            took[jobs] = time.monotonic() - begun
            spent[jobs] = time.process_time() - begun_cpu
            wanted[jobs] = statistics.fmean(min(2, count) for count in samples)
            print(
                f"{jobs} at a time: {took[jobs]:.2f} s wall, {spent[jobs]:.2f} s CPU, "
                f"{wanted[jobs]:.3f} threads want a core",
                flush=True,
            )
    print(f"two give {took[1] / took[2]:.2f} times the throughput of one by wall time")
    free = wanted[2] * spent[1] / spent[2]
    print(f"and {free:.2f} times by CPU time and threads that want a core")


@contextmanager
def runnable() -> Iterator[list[int]]:
    """How many threads of this process run or wait for a core, sampled by another process."""
    watch = (
        "import glob, sys, time\n"
        "while True:\n"
        "    count = 0\n"
        "    for file in glob.glob(f'/proc/{sys.argv[1]}/task/*/stat'):\n"
        "        try: count += open(file).read().rpartition(')')[2].split()[0] == 'R'\n"
        "        except OSError: pass\n"
        "    print(count, flush=True)\n"
        "    time.sleep(0.005)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", watch, str(os.getpid())], stdout=subprocess.PIPE, text=True
    )
    samples: list[int] = []
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield samples
    finally:
        process.kill()
        samples += [int(line) for line in process.stdout.read().split()]


def open_(runs: int) -> None:
    """Opening a store and grouping its rows."""
    with tempfile.TemporaryDirectory(prefix="lfn-open-") as name:
        asked = Sweep(SHORT, Design(grid={"link.rate": ["10Mbit/s", "20Mbit/s"]}), runs // 2)
        asked.run(out=name)
        code = "import lfnlab, sys; lfnlab.open(sys.argv[1]).summary().collect_schema()"
        begun = time.monotonic()
        subprocess.run([sys.executable, "-c", code, name], check=True)
        opened = time.monotonic()
        groups = (
            open_store(name)
            .summary()
            .group_by("law", "link.rate_bps")
            .agg(pl.len(), pl.col("goodput_bps", "mean_queue_s").mean())
        )
        found = groups.collect()
        grouped = time.monotonic()
    assert found["len"].sum() == runs
    print(f"{runs:,} runs: {opened - begun:.2f} s to open, {grouped - opened:.2f} s to group")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["kill", "overhead", "speedup", "open"])
    parser.add_argument("--runs", type=int)
    parser.add_argument("--kills", type=int, default=20)
    asked = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    match asked.what:
        case "kill":
            kill(asked.runs or 100_000, asked.kills)
        case "overhead":
            runs = asked.runs or 2_000
            cpu_ms, wall_ms, kilobytes, files = overhead(runs)
            print(
                f"{runs:,} runs on one thread: {cpu_ms:.2f} ms CPU a run, {wall_ms:.2f} ms wall; "
                f"{kilobytes:.1f} kB a run in {files:.1f} files"
            )
        case "speedup":
            speedup(asked.runs or 40)
        case "open":
            open_(asked.runs or 100_000)


if __name__ == "__main__":
    main()
