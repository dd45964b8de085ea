"""Linux's own TCP in virtual time: a yardstick beside the project, never a part of it.

A program that takes ``OUTDIR TAG KEY=VALUE...``, runs one flow or two over a drop-tail queue and
writes ``TAG.csv``, a row a sample of tcp_info and of the queue.
"""

from __future__ import annotations

import csv
import subprocess
from typing import TYPE_CHECKING

import numpy as np

from lfnlab.sawtooth import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: Laws that Linux has as modules of its own, and what it calls them.
MODULES = {
    name: name
    for name in (
        "reno",
        "cubic",
        "bic",
        "htcp",
        "scalable",
        "westwood",
        "vegas",
        "illinois",
        "yeah",
        "hybla",
        "veno",
        "bbr",
        "dctcp",
    )
} | {"hstcp": "highspeed"}
#: tcp_info's congestion-avoidance states in which the window is being reduced: CWR, Recovery, Loss.
_REDUCING = (2, 3, 4)


def run(program: Path, work: Path, tag: str, keys: Mapping[str, object]) -> Path:
    """Run Linux; the file of samples of the first flow.

    Raises:
        RuntimeError: it wrote no samples.
    """
    subprocess.run(
        [str(program), str(work), tag, *(f"{key}={value}" for key, value in keys.items())],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    samples = work / f"{tag}.csv"
    if not samples.exists():
        raise RuntimeError(f"Linux wrote no samples for {tag}: see {work / tag}.log")
    return samples


def path_keys(rate_bps: float, rtt_s: float, limit_packets: int) -> dict[str, object]:
    """Keys of a path; the packet in service counts in the limit."""
    return {
        "rate": f"{rate_bps / 1e6:g}mbit",
        "delay": f"{rtt_s * 1e3 / 2:g}ms",
        "limit": limit_packets,
    }


def read(samples: Path) -> Trace:
    """The samples of one flow."""
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
