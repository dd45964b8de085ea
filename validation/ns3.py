"""Runs the matrix on ns-3.37 (Debian package ``libns3-dev``) and reads what it sampled."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import numpy as np

from lfnlab.analysis.sawtooth import Trace

from .scenarios import NS3_RUNS, NS_PACKET_B, Run

if TYPE_CHECKING:
    from lfnlab.analysis.sawtooth import Floats

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
    path = run.path
    keys = {
        "law": f"ns3::{_CLASSES[run.law.split('-')[0]]}",
        "flows": path.flows,
        "rate_bps": path.rate_bps,
        "rtt_s": path.rtt_s,
        "spread": path.rtt_spread,
        "buffer": path.buffer_packets,
        "duration_s": path.duration_s,
        "packet_b": path.packet_b,
        "ssthresh": path.ssthresh_segments or 0,
        "stagger_s": path.stagger_s,
        **_ATTRIBUTES.get(run.law, {}),
        **settings,
    }
    return [str(program), *(f"--{key}={value}" for key, value in keys.items())]


def simulate(run: Run, raw: FilePath) -> FilePath:
    """Runs ns-3 and returns the file of samples in ``raw``; one that is there is taken as it is."""
    samples = raw / f"{run.tag}.csv"
    if not samples.exists():
        program = build(raw)
        growing = raw / "running.csv"
        subprocess.run(
            command(program, run, samples=growing, sample_s=run.sample_s),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        growing.rename(samples)
    return samples


def columns(samples: FilePath) -> dict[str, Floats]:
    """The columns of the samples of all flows, by name."""
    with samples.open(newline="") as file:
        header = next(csv.reader(file))
        table = np.loadtxt(file, delimiter=",")
    return {name: table[:, i] for i, name in enumerate(header)}


def read(samples: FilePath) -> list[Trace]:
    """Reads the samples, a trace for each flow."""
    column = columns(samples)
    traces = []
    for flow in range(int(column["flow"].max()) + 1):
        mine = column["flow"] == flow
        of = {name: values[mine] for name, values in column.items()}
        traces.append(
            Trace(
                time_s=of["time_s"],
                cwnd_segments=of["cwnd"],
                ssthresh_segments=of["ssthresh"],
                reducing=np.isin(of["state"], _REDUCING),
                drops=of["drops"],
                delivered_b=of["delivered_b"] / PAYLOAD_B * SAME_PAYLOAD_B,
                rtt_s=of["rtt_s"],
            )
        )
    return traces
