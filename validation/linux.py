"""Runs the matrix on a real Linux TCP stack in virtual time, and reads what it sampled."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path as FilePath

import numpy as np

from .analyse import Trace
from .scenarios import LINUX_RUNS, Run

TITLE = "Linux 6.12"
RUNS = LINUX_RUNS

#: Where the virtual-time Linux lies, beside the repository.
ORACLE = FilePath(__file__).resolve().parents[2] / "shared" / "oracle" / "run"

_MODULES = {"hstcp": "highspeed"}
#: tcp_info's congestion-avoidance states in which the window is being reduced: CWR, Recovery, Loss.
_REDUCING = (2, 3, 4)


def missing() -> str | None:
    """What this machine lacks to run the matrix, or None."""
    return None if ORACLE.exists() else f"no virtual-time Linux at {ORACLE}"


def simulate(run: Run, raw: FilePath) -> FilePath:
    """Runs one flow or two for ``run.path.duration_s``; returns the first one's file of samples.

    A file that is already there is taken as it is. Raises RuntimeError if Linux wrote no samples.
    """
    samples = raw / f"{run.tag}.csv"
    if samples.exists():
        return samples
    path = run.path
    raw.mkdir(parents=True, exist_ok=True)
    work = raw / "running"
    keys = {
        "cc": _MODULES.get(run.law, run.law),
        "dur": f"{path.duration_s:g}",
        "rate": f"{path.rate_bps / 1e6:g}mbit",
        "delay": f"{path.flow_rtt_s(0) * 1e3 / 2:g}ms",
        "limit": path.buffer_packets,
        "iv": round(run.sample_s * 1e6),
    }
    if path.flows == 2:
        keys["delay2"] = f"{path.flow_rtt_s(1) * 1e3 / 2:g}ms"
        keys["start2"] = f"{path.stagger_s:g}"
    subprocess.run(
        [str(ORACLE), str(work), run.tag, *(f"{key}={value}" for key, value in keys.items())],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    # The first flow's file last: it says that both are there.
    for file in reversed(_files(samples, path.flows)):
        written = work / file.name
        if not written.exists():
            raise RuntimeError(f"Linux wrote no samples for {run.tag}: see {work / run.tag}.log")
        written.rename(file)
    return samples


def _files(samples: FilePath, flows: int) -> list[FilePath]:
    return [samples, samples.with_suffix(".f2.csv")][:flows]


def read(samples: FilePath) -> list[Trace]:
    """Reads the samples, a trace for each flow."""
    second = _files(samples, 2)[1]
    return [_trace(file) for file in (samples, second) if file.exists()]


def _trace(samples: FilePath) -> Trace:
    with samples.open(newline="") as file:
        rows = list(csv.DictReader(file))

    def column(name: str) -> np.ndarray:
        return np.array([float(row[name]) for row in rows])

    ssthresh = column("ssthresh")
    return Trace(
        time_s=column("t_us") / 1e6,
        cwnd_segments=column("cwnd"),
        ssthresh_segments=np.where(ssthresh >= 2**31 - 1, np.inf, ssthresh),
        reducing=np.isin(column("ca"), _REDUCING),
        drops=column("qdrops"),
        delivered_b=column("bytes_acked"),
        rtt_s=column("rtt_us") / 1e6,
    )
