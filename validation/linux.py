"""Runs the matrix on Linux's own TCP in virtual time, and reads what it sampled."""

from __future__ import annotations

import hashlib
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from lfnlab import Scenario
from lfnlab.testbed import virtual_run, virtual_time

from . import ours, outcome
from .scenarios import LINUX_RUNS, Run

if TYPE_CHECKING:
    from lfnlab.analysis.sawtooth import Trace

TITLE = "Linux 6.12"
RUNS = LINUX_RUNS

#: What runs a scenario, and what this machine lacks to do so, or None.
PROGRAM = outcome.PROGRAM
missing = outcome.missing


def simulate(run: Run, raw: FilePath) -> FilePath:
    """Runs the flows of a scenario as the laboratory runs them; returns the file that says so.

    Samples of this build that are already there are taken as they are. Raises LabError if Linux did
    not end well.
    """
    raw = raw / hashlib.sha256(outcome.BUILT.read_bytes()).hexdigest()[:16]
    done = raw / f"{run.tag}.json"
    if not done.exists():
        resolved = Scenario.from_toml(ours.scenario("linux", run)).check().to_document()
        virtual_run.run(PROGRAM, raw, run.tag, virtual_time.translated(resolved))
    return done


def read(done: FilePath) -> list[Trace]:
    """Reads the samples, a trace for each flow."""
    return [virtual_run.trace(flow) for flow in virtual_run.ran(done.parent, done.stem).flows]
