"""What a sweep costs, and whether it survives anything: the figures of docs/sweep.md.

$ python -m benches.sweep kill [--runs 10000] [--kills 20]
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
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from lfnlab import Sweep, dumbbell, upkeep
from lfnlab import open as open_store
from lfnlab.catalog import PART_ROWS, Recorder
from lfnlab.design import Design
from lfnlab.store import Store

SHORT = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s").flow("cubic")
#: A run of about a third of a second, to be put on one core and on two.
LONG = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="60s").flow("cubic")


def kill(runs: int, kills: int) -> None:
    """A sweep killed at random against one that was not."""
    with tempfile.TemporaryDirectory(prefix="lfn-kill-") as name:
        home = Path(name)
        file = home / "sweep.toml"
        laws = '["reno", "cubic"]'
        table = f'[sweep]\nseeds = {runs // 2}\n[sweep.grid]\n"flow[0].law" = {laws}\n'
        file.write_text(SHORT.to_toml() + table)
        command = [sys.executable, "-m", "lfnlab.cli", "sweep", str(file), "--out"]
        begun = time.monotonic()
        subprocess.run([*command, home / "whole"], check=True, stdout=subprocess.DEVNULL)
        whole_s = time.monotonic() - begun
        moments = random.Random(1)
        killed = 0
        while killed < kills:
            process = subprocess.Popen([*command, home / "killed"], stdout=subprocess.DEVNULL)
            # Each life is a twentieth of the work, and the start of the interpreter.
            time.sleep(moments.uniform(0.2, 2.0 * whole_s / kills))
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
            there = len(Store(home / "killed").keys())
            print(f"killed {killed:2} times, {there:6,} of {runs:,} runs are there", flush=True)
        subprocess.run([*command, home / "killed"], check=True, stdout=subprocess.DEVNULL)
        digests = {part: _digest(home / part) for part in ("whole", "killed")}
        print(*(f"{part:7} {digest}" for part, digest in digests.items()), sep="\n")
        damaged = [found for _, found in upkeep.verify(home / "killed") if found]
        rows = open_store(home / "killed").summary().collect()["key"].n_unique()
        print(f"killed {killed} times; {len(damaged)} damaged; {rows:,} rows in the summary")
        if len(set(digests.values())) > 1 or damaged or rows != runs:
            sys.exit("the sweep that was killed has other bytes")


def _digest(root: Path) -> str:
    """Of every file of every run but provenance.json, with names, in order."""
    digest = hashlib.sha256()
    for file in sorted((root / "runs").glob("*/*")):
        if file.name != "provenance.json":
            digest.update(f"{file.relative_to(root)}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def overhead(runs: int) -> None:
    """CPU and wall time of a run beside its simulation."""
    asked = Sweep(SHORT, Design(grid={"flow[0].law": ["cubic"]}), runs)
    with tempfile.TemporaryDirectory(prefix="lfn-overhead-") as name:
        asked.run(out=Path(name) / "first", jobs=1, shard=(1, runs))
        begun, begun_cpu = time.monotonic(), time.process_time()
        results = asked.run(out=Path(name) / "all", jobs=1)
        wall_s, cpu_s = time.monotonic() - begun, time.process_time() - begun_cpu
        simulated_s = sum(run.summary["cpu_s"] for run in results.runs)
    each = [1e3 * (seconds - simulated_s) / runs for seconds in (cpu_s, wall_s)]
    print(f"{runs:,} runs on one thread: {each[0]:.2f} ms CPU a run, {each[1]:.2f} ms wall")


def speedup(runs: int) -> None:
    """Throughput of two threads over that of one. It needs two cores that are free."""
    took = {}
    for jobs in (1, 2):
        with tempfile.TemporaryDirectory(prefix="lfn-speedup-") as name:
            asked = Sweep(LONG, Design(grid={"flow[0].law": ["cubic"]}), runs)
            begun, begun_cpu = time.monotonic(), time.process_time()
            asked.run(out=name, jobs=jobs)
            took[jobs] = time.monotonic() - begun
            cpu_s = time.process_time() - begun_cpu
            print(f"{jobs} at a time: {took[jobs]:.2f} s wall, {cpu_s:.2f} s CPU", flush=True)
    print(f"two give {took[1] / took[2]:.2f} times the throughput of one")


def open_(runs: int) -> None:
    """Opening a store and grouping its rows. Its runs are empty directories: nobody looks."""
    with tempfile.TemporaryDirectory(prefix="lfn-open-") as name:
        home = Path(name)
        asked = Sweep(SHORT, Design(grid={"link.rate": ["10Mbit/s", "20Mbit/s"]}), 500)
        asked.run(out=home / "real")
        for part in (home / "real" / "summary").glob("*.parquet"):
            part.unlink()
        begun = time.monotonic()
        rows = open_store(home / "real").summary().collect().to_dicts()
        print(f"without its summary: {1e3 * (time.monotonic() - begun) / len(rows):.2f} ms a run")
        store = Store(home / "large")
        recorder = Recorder(store.root)
        for first in range(0, runs, PART_ROWS):
            keys = [f"{i:024x}" for i in range(first, min(first + PART_ROWS, runs))]
            for key in keys:
                store.path(key).mkdir()
            recorder.rows = [rows[i % len(rows)] | {"key": key} for i, key in enumerate(keys)]
            recorder.write()
        begun = time.monotonic()
        frame = open_store(home / "large").summary()
        opened = time.monotonic()
        groups = frame.group_by("law", "link.rate_bps").agg(
            pl.len(), pl.col("goodput_bps", "mean_queue_s").mean()
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
            kill(asked.runs or 10_000, asked.kills)
        case "overhead":
            overhead(asked.runs or 2_000)
        case "speedup":
            speedup(asked.runs or 40)
        case "open":
            open_(asked.runs or 100_000)


if __name__ == "__main__":
    main()
