"""Runs Linux in virtual time with a file of :mod:`lfnlab.testbed.virtual_time`, and reads it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from lfnlab.analysis.sawtooth import Trace
from lfnlab.errors import LabError
from lfnlab.testbed.virtual_queues import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

#: tcp_info's congestion-avoidance states in which the window is being reduced: CWR, Recovery, Loss.
_REDUCING = (2, 3, 4)
#: Seconds between two looks whether a run is to be given up.
_TURN_S = 0.2


class GivenUp(Exception):
    """A run was ended because its caller gave it up."""


@dataclass(frozen=True)
class Ran:
    """Tables of a run of Linux."""

    #: The samples of each flow: columns by their names in the file.
    flows: tuple[dict[str, np.ndarray], ...]
    #: Counters of TCP by host: "a" sends, "b0", "b1" ... receive.
    counters: dict[str, dict[str, int]]
    #: Counters of each link's queue, as ``tc -s`` shows them, by the link's number in the kernel;
    #: none of a link that takes no time. Of DualPI2 ``classes`` too, which count after the warm-up.
    queues: dict[int, dict[str, Any]]
    #: The samples of all links' queues, in one table.
    links: dict[str, np.ndarray]
    #: Packets at the hosts, as ``linux/capture.h`` has them.
    packets: np.ndarray | None = None

    @property
    def queue(self) -> dict[str, Any]:
        """Of the bottleneck of a dumbbell."""
        return self.queues[0]


#: A recorded packet, ``struct captured`` of linux/capture.h.
_CAPTURED = np.dtype(
    [
        ("at_ns", "<i8"),
        ("bytes", "<u4"),
        ("flow", "<u2"),
        ("receiver", "u1"),
        ("leaves", "u1"),
        ("head", "u1", 112),
    ]
)


def run(
    program: Path,
    work: Path,
    tag: str,
    scenario: str,
    going: Callable[[float], bool] | None = None,
) -> Ran:
    """Run what :func:`translated` gave; its files are ``work/TAG.*``.

    Args:
        program: ``linux/run``.
        work: folder of the files.
        tag: begins their names.
        scenario: the text.
        going: told at intervals how far the run is, in seconds of the scenario; returns whether it
            is still wanted.

    Raises:
        LabError: it failed; the text has the kernel's last lines.
        GivenUp: it was not wanted any more.
    """
    work.mkdir(parents=True, exist_ok=True)
    (work / f"{tag}.scenario").write_text(scenario, encoding="ascii")
    # Whoever kills this process ends the kernel too.
    command = ["setpriv", "--pdeathsig", "TERM", str(program), str(work), tag]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        while process.poll() is None:
            try:
                process.wait(None if going is None else _TURN_S)
            except subprocess.TimeoutExpired:
                if going is not None and not going(_reached_s(work / f".{tag}.run/run.links.csv")):
                    process.terminate()
                    process.wait()
                    raise GivenUp from None
        assert process.stderr is not None
        said = process.stderr.read()
    if process.returncode:
        raise LabError(said.strip())
    return ran(work, tag)


def _reached_s(samples: Path) -> float:
    """The time of the last whole row that is in the file."""
    try:
        with samples.open("rb") as file:
            file.seek(max(samples.stat().st_size - 200, 0))
            rows = file.read().splitlines()[1:-1]
    except OSError:
        return 0.0
    return int(rows[-1].split(b",")[0]) / 1e6 if rows else 0.0


def ran(work: Path, tag: str) -> Ran:
    """The results of a run that is done."""
    counters = json.loads((work / f"{tag}.json").read_text())
    flows: list[dict[str, np.ndarray]] = []
    shown: list[Any] = []
    while (file := work / f"{tag}.flow{len(flows)}.csv").exists():
        flows.append(_columns(file))
    queues: dict[int, dict[str, Any]] = {}
    while (file := work / f"{tag}.link{len(shown)}.json").exists():
        shown.append(json.loads(file.read_text()))
    for number, all_of in enumerate(shown):
        for queue in all_of:
            if queue.get("handle") == "10:":
                queues[number] = queue
    if (dual := work / f"{tag}.queues").exists():
        for number, classes in counted(dual.read_text()).items():
            queues[number]["classes"] = classes
            queues[number]["marked"] = sum(classes[name]["marks"] for name in ("l4s", "classic"))
            queues[number]["drop_overlimit"] = queues[number]["overlimits"]
    packets = work / f"{tag}.packets"
    return Ran(
        tuple(flows),
        counters,
        queues,
        _columns(work / f"{tag}.links.csv"),
        np.fromfile(packets, _CAPTURED) if packets.exists() else None,
    )


def _columns(samples: Path) -> dict[str, np.ndarray]:
    table = pl.read_csv(samples, infer_schema=False).cast(pl.Float64)
    return {column.name: column.to_numpy() for column in table if len(column)}


def trace(flow: Mapping[str, np.ndarray]) -> Trace:
    """The samples of one flow."""
    ssthresh = flow["ssthresh"]
    return Trace(
        time_s=flow["t_us"] / 1e6,
        cwnd_segments=flow["cwnd"],
        ssthresh_segments=np.where(ssthresh >= 2**31 - 1, np.inf, ssthresh),
        reducing=np.isin(flow["ca"], _REDUCING),
        drops=flow["qdrops"],
        delivered_b=flow["bytes_acked"],
        rtt_s=flow["rtt_us"] / 1e6,
    )
