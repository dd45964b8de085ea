"""Runs the matrix on a real Linux TCP stack in virtual time, and reads what it sampled."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from lfnlab import oracle

from .scenarios import LINUX_RUNS, Run

if TYPE_CHECKING:
    from lfnlab.sawtooth import Trace

TITLE = "Linux 6.12"
RUNS = LINUX_RUNS

#: Where the virtual-time Linux lies, beside the repository.
ORACLE = FilePath(__file__).resolve().parents[2] / "shared" / "oracle" / "run"


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
    keys = {
        "cc": oracle.MODULES[run.law],
        "dur": f"{path.duration_s:g}",
        **oracle.path_keys(path.rate_bps, path.flow_rtt_s(0), path.buffer_packets),
        "iv": round(run.sample_s * 1e6),
    }
    if path.flows == 2:
        keys["delay2"] = f"{path.flow_rtt_s(1) * 1e3 / 2:g}ms"
        keys["start2"] = f"{path.stagger_s:g}"
    written = oracle.run(ORACLE, raw / "running", run.tag, keys)
    # The first flow's file last: it says that both are there.
    for file in reversed(_files(samples, path.flows)):
        (written.parent / file.name).rename(file)
    return samples


def _files(samples: FilePath, flows: int) -> list[FilePath]:
    return [samples, samples.with_suffix(".f2.csv")][:flows]


def read(samples: FilePath) -> list[Trace]:
    """Reads the samples, a trace for each flow."""
    return [oracle.read(file) for file in _files(samples, 2) if file.exists()]
