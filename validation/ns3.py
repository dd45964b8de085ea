"""Runs the matrix on ns-3.37 (Debian package ``libns3-dev``) and reads what it sampled."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import numpy as np

from . import ns
from .scenarios import NS3_RUNS, NS_PACKET_B, Run

if TYPE_CHECKING:
    from lfnlab.analysis.sawtooth import Trace

TITLE = "ns-3.37"
RUNS = NS3_RUNS

SOURCE = FilePath(__file__).with_name("peers") / "dumbbell.cc"
#: Bytes of payload in a packet: framing takes 2, headers 52.
PAYLOAD_B = NS_PACKET_B - 54
#: What is left of the same packet with the laboratory's Ethernet framing of 14 bytes, in which the
#: delivered segments are counted so that goodputs compare.
SAME_PAYLOAD_B = NS_PACKET_B - 66
HEADERS = FilePath("/usr/include/ns3")

_CLASSES = {
    "reno": "TcpLinuxReno",
    "hstcp": "TcpHighSpeed",
    "scalable": "TcpScalable",
    "bic": "TcpBic",
    "cubic": "TcpCubic",
    "htcp": "TcpHtcp",
    "westwood": "TcpWestwood",
}
#: A law with an attribute of ns-3 that is not at its default.
_ATTRIBUTES: dict[str, dict[str, object]] = {
    "bic-smooth20": {"ns3::TcpBic::SmoothPart": 20},
    "htcp-backoff0.67": {"ns3::TcpHtcp::DefaultBackoff": 0.67},
}
_MODULES = ("applications", "traffic-control", "point-to-point", "internet", "network", "core")
#: TcpSocketState: CA_CWR, CA_RECOVERY, CA_LOSS.
LOSS = 4
_REDUCING = (2, 3, LOSS)


def missing() -> str | None:
    """Name of the missing headers or compiler and how to install them; None if ns-3 can run."""
    if not HEADERS.is_dir():
        return f"no headers at {HEADERS}: apt-get install libns3-dev"
    return None if shutil.which("g++") else "no compiler `g++`"


def build(into: FilePath) -> FilePath:
    """Compiles the scenario without logs and asserts; returns the program."""
    program = into / "dumbbell"
    if not program.exists() or program.stat().st_mtime < SOURCE.stat().st_mtime:
        into.mkdir(parents=True, exist_ok=True)
        libraries = [f"-lns3-{module}" for module in _MODULES]
        subprocess.run(
            ["g++", "-std=c++17", "-O3", "-DNDEBUG", str(SOURCE), "-o", str(program), *libraries],
            check=True,
        )
    return program


def command(program: FilePath, run: Run, **settings: object) -> list[str]:
    """The command line that simulates ``run``; ``settings`` override the program's keys."""
    law = f"ns3::{_CLASSES[run.law.split('-')[0]]}"
    every = {"law": law, **ns.keys(run), **_ATTRIBUTES.get(run.law, {}), **settings}
    return [str(program), *(f"--{key}={value}" for key, value in every.items())]


def simulate(run: Run, raw: FilePath) -> FilePath:
    """Runs ns-3 and returns the file of samples."""
    return ns.sampled(
        run, raw, lambda to: command(build(raw), run, samples=to, sample_s=run.sample_s)
    )


def read(samples: FilePath) -> list[Trace]:
    """Reads the samples, a trace for each flow."""
    return ns.traces(
        samples,
        lambda of: np.isin(of["state"], _REDUCING),
        lambda of: of["delivered_b"] / PAYLOAD_B * SAME_PAYLOAD_B,
    )
