"""The common part of ns-2 and ns-3: keys of a run, its simulation, the samples as traces."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import numpy as np

from lfnlab.analysis.sawtooth import Trace

if TYPE_CHECKING:
    from lfnlab.analysis.sawtooth import Floats

    from .scenarios import Run


def keys(run: Run) -> dict[str, object]:
    """The keys of a run that both scripts have."""
    path = run.path
    return {
        "flows": path.flows,
        "rate_bps": path.rate_bps,
        "rtt_s": path.rtt_s,
        "spread": path.rtt_spread,
        "buffer": path.buffer_packets,
        "duration_s": path.duration_s,
        "packet_b": path.packet_b,
        "ssthresh": path.ssthresh_segments or 0,
        "stagger_s": path.stagger_s,
    }


def sampled(run: Run, raw: FilePath, command: Callable[[FilePath], Sequence[str]]) -> FilePath:
    """Simulates, and returns the file of samples in ``raw``; one that is there is taken as it is.

    ``command`` has the command line that writes to a file.
    """
    samples = raw / f"{run.tag}.csv"
    if not samples.exists():
        raw.mkdir(parents=True, exist_ok=True)
        growing = raw / "running.csv"
        subprocess.run(command(growing), check=True, stdout=subprocess.DEVNULL)
        growing.rename(samples)
    return samples


def columns(samples: FilePath) -> dict[str, Floats]:
    """The columns of the samples of all flows, by name."""
    with samples.open(newline="") as file:
        header = next(csv.reader(file))
        table = np.loadtxt(file, delimiter=",")
    return {name: table[:, i] for i, name in enumerate(header)}


def traces(
    samples: FilePath,
    reducing: Callable[[Mapping[str, Floats]], np.ndarray],
    delivered_b: Callable[[Mapping[str, Floats]], Floats],
) -> list[Trace]:
    """Reads the samples, a trace for each flow."""
    column = columns(samples)
    found = []
    for flow in range(int(column["flow"].max()) + 1):
        mine = column["flow"] == flow
        of = {name: values[mine] for name, values in column.items()}
        found.append(
            Trace(
                time_s=of["time_s"],
                cwnd_segments=of["cwnd"],
                ssthresh_segments=of["ssthresh"],
                reducing=reducing(of),
                drops=of["drops"],
                delivered_b=delivered_b(of),
                rtt_s=of["rtt_s"],
            )
        )
    return found
