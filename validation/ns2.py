"""Runs the matrix on ns-2 (Debian package ``ns2``) and reads what it sampled."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path as FilePath

import numpy as np

from lfnlab.analysis.sawtooth import Trace

from .scenarios import NS2_RUNS, NS_PACKET_B, Run

TITLE = "ns-2.35"
RUNS = NS2_RUNS

SCRIPT = FilePath(__file__).with_name("peers") / "dumbbell.tcl"
#: Bytes of payload in a packet: headers take 40, and timestamps are set to take none.
PAYLOAD_B = NS_PACKET_B - 40

_MODULES = {"hstcp": "highspeed"}


def missing() -> str | None:
    """Name of the missing program and how to install it; None if ns-2 can run."""
    return None if shutil.which("ns") else "no program `ns`: apt-get install ns2"


def command(run: Run, **settings: object) -> list[str]:
    """The command line that simulates ``run``; ``settings`` override the script's keys."""
    path = run.path
    keys = {
        "law": _MODULES.get(run.law, run.law),
        "flows": path.flows,
        "rate_bps": path.rate_bps,
        "rtt_s": path.rtt_s,
        "spread": path.rtt_spread,
        "buffer": path.buffer_packets,
        "duration_s": path.duration_s,
        "packet_b": path.packet_b,
        "ssthresh": path.ssthresh_segments or 0,
        "stagger_s": path.stagger_s,
        **settings,
    }
    return ["ns", str(SCRIPT), *(str(part) for pair in keys.items() for part in pair)]


def simulate(run: Run, raw: FilePath) -> FilePath:
    """Runs ns-2 and returns the file of samples in ``raw``; one that is there is taken as it is."""
    samples = raw / f"{run.tag}.csv"
    if not samples.exists():
        raw.mkdir(parents=True, exist_ok=True)
        growing = raw / "running.csv"
        subprocess.run(
            command(run, samples=growing, sample_s=run.sample_s),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        growing.rename(samples)
    return samples


def read(samples: FilePath) -> list[Trace]:
    """Reads the samples, a trace for each flow."""
    with samples.open(newline="") as file:
        header = next(csv.reader(file))
        table = np.loadtxt(file, delimiter=",")
    column = {name: table[:, i] for i, name in enumerate(header)}
    traces = []
    for flow in range(int(column["flow"].max()) + 1):
        mine = column["flow"] == flow
        of = {name: values[mine] for name, values in column.items()}
        traces.append(
            Trace(
                time_s=of["time_s"],
                cwnd_segments=of["cwnd"],
                ssthresh_segments=of["ssthresh"],
                reducing=_reducing(of["cuts"], of["maxseq"], of["acked"]),
                drops=of["drops"],
                delivered_b=of["acked"] * PAYLOAD_B,
                rtt_s=of["rtt_s"],
            )
        )
    return traces


def _reducing(cuts: np.ndarray, maxseq: np.ndarray, acked: np.ndarray) -> np.ndarray:
    """From each cut of the window until everything then sent is acknowledged: TCP's recovery."""
    reducing = np.zeros(cuts.size, dtype=bool)
    recovery_point = -1.0
    for i in range(1, cuts.size):
        if cuts[i] != cuts[i - 1]:
            recovery_point = maxseq[i]
        reducing[i] = acked[i] < recovery_point
    return reducing
