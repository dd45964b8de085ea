"""Runs the matrix on ns-2 (Debian package ``ns2``) and reads what it sampled."""

from __future__ import annotations

import shutil
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import numpy as np

from . import ns
from .scenarios import NS2_RUNS, NS_PACKET_B, Run

if TYPE_CHECKING:
    from lfnlab.analysis.sawtooth import Trace

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
    every = {"law": _MODULES.get(run.law, run.law), **ns.keys(run), **settings}
    return ["ns", str(SCRIPT), *(str(part) for pair in every.items() for part in pair)]


def simulate(run: Run, raw: FilePath) -> FilePath:
    """Runs ns-2 and returns the file of samples."""
    return ns.sampled(run, raw, lambda to: command(run, samples=to, sample_s=run.sample_s))


def read(samples: FilePath) -> list[Trace]:
    """Reads the samples, a trace for each flow."""
    return ns.traces(
        samples,
        lambda of: _reducing(of["cuts"], of["maxseq"], of["acked"]),
        lambda of: of["acked"] * PAYLOAD_B,
    )


def _reducing(cuts: np.ndarray, maxseq: np.ndarray, acked: np.ndarray) -> np.ndarray:
    """From each cut of the window until everything then sent is acknowledged: TCP's recovery."""
    reducing = np.zeros(cuts.size, dtype=bool)
    recovery_point = -1.0
    for i in range(1, cuts.size):
        if cuts[i] != cuts[i - 1]:
            recovery_point = maxseq[i]
        reducing[i] = acked[i] < recovery_point
    return reducing
