"""Files of drawn transfers, in a cache: what a person would bring, and beside it the truth."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

import polars as pl

from lfnlab import _core
from lfnlab.formats import capture, pcap

from .emulated import emulated
from .settings import FEW, Setting, Where, candidates, described, least_gain
from .virtual import virtual

#: Names of files that a person would bring; beside them lie the truth and the emulator's report.
KINDS = ("sender", "receiver", "ss", "iperf3")
TRUTH = "truth.json"
#: Causes under which the queue overflows, too.
QUEUEING = ("queue-overflow", "ack-path", "path-change", "application")
CACHE = FilePath(tempfile.gettempdir()) / "lfnlab-diagnose"


@dataclass(frozen=True)
class Path:
    """The path of a transfer, before any change of it."""

    rate_bps: float
    rtt_s: float
    buffer_packets: int
    loss: float
    """Of data at random, from the start."""
    packet_bytes: int


@dataclass(frozen=True)
class Transfer:
    """A transfer whose causes are known because they were set."""

    seed: int
    number: int
    where: Where
    cause: str
    second: str | None
    """A cause that acts for less of the time."""
    law: str
    path: Path
    duration_s: float
    said: dict[str, Any]
    """All that was set."""
    files: dict[str, FilePath]
    """``sender`` and ``receiver`` are captures, ``ss`` a log, ``iperf3`` its JSON."""


def of_setting(
    setting: Setting, causes: tuple[str, ...], seed: int, number: int, where: Where
) -> Transfer:
    """Without files."""
    losses = [change.loss for change in setting.changes if change.loss]
    return Transfer(
        seed=seed,
        number=number,
        where=where,
        cause=causes[0],
        second=causes[1] if len(causes) == 2 else None,
        law=setting.law,
        path=Path(
            rate_bps=setting.rate_bps,
            rtt_s=setting.rtt_s,
            buffer_packets=setting.buffer_packets,
            loss=max([setting.loss, *losses]),
            packet_bytes=setting.packet_b,
        ),
        duration_s=setting.duration_s,
        said=described(setting),
        files={},
    )


def draw(
    seed: int, count: int, where: Where = "simulator", cache: FilePath = CACHE, first: int = 0
) -> Iterator[Transfer]:
    """Transfers ``first`` to ``count`` of a seed, with their files.

    Args:
        seed: of all draws.
        count: of transfers; each is the same whatever the count.
        where: "simulator", "linux" (in virtual time) or "emulator" (this Linux, in real time).
        cache: folder of the files; those that are there are not made again.
        first: number of the first one.

    Raises:
        Unavailable: this machine lacks what ``where`` needs.
        RuntimeError: a transfer could not be made.
    """
    for number in range(first, count):
        for setting, causes, without_bps in candidates(seed, number, where):
            key = f"{setting!r} {causes!r}"
            name = f"{seed}-{number}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
            folder = cache / where / name
            if not (folder / TRUTH).exists():
                _make(folder, setting, causes, where, without_bps)
            if json.loads((folder / TRUTH).read_text())["refused"] is None:
                break
        files = {file.stem: file for file in sorted(folder.iterdir()) if file.stem in KINDS}
        yield replace(of_setting(setting, causes, seed, number, where), files=files)


def _make(
    folder: FilePath, setting: Setting, causes: tuple[str, ...], where: Where, without_bps: float
) -> None:
    """By one rename: a folder that is there is whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = FilePath(tempfile.mkdtemp(prefix=f".{os.getpid()}-", dir=folder.parent))
    try:
        MAKERS[where](setting, part)
        refused = _refused(part, causes, without_bps)
        truth = {"causes": causes, "setting": described(setting), "refused": refused}
        (part / TRUTH).write_text(json.dumps(truth, indent=1) + "\n")
        part.chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _refused(folder: FilePath, causes: tuple[str, ...], without_bps: float) -> str | None:
    """Why a transfer does not have the causes that were set, though the simulated one had."""
    (sender,) = folder.glob("sender.pcap*")
    most = max(flow["goodput_bps"] or 0.0 for flow in capture.read(sender).summary["flows"])
    # The goodput, from the first packet on, of a transfer with a handshake before it.
    if most * least_gain(causes) > without_bps:
        return f"{most:.4g} bit/s, and {without_bps:.4g} bit/s without the cause"
    report = folder / "report.json"
    if report.exists() and not {*QUEUEING} & {*causes}:
        drops = json.loads(report.read_text())["links"][0]["drops_full"]
        if drops > FEW:
            return f"{drops} packets did not fit the queue"
    return None


def simulated(setting: Setting, folder: FilePath) -> None:
    """Captures at both hosts of a simulated transfer."""
    scenario = _core.Scenario(setting.toml(capture=True), "drawn.toml")
    run = _core.run_many([scenario], 1, None)[0]
    assert run is not None
    packets = pl.read_parquet(io.BytesIO(run.parquet("packets", [])))
    write_captures(packets, setting, folder)


def write_captures(packets: pl.DataFrame, setting: Setting, folder: FilePath) -> None:
    """The packets as each host saw them."""
    window = pl.lit(setting.receive_window_b, pl.Int64)
    packets = packets.with_columns(window_bytes=window)
    for host in ("sender", "receiver"):
        file = folder / f"{host}.pcapng"
        pcap.write_pcapng(file, packets, view=host)


MAKERS: dict[Where, Callable[[Setting, FilePath], None]] = {
    "simulator": simulated,
    "linux": virtual,
    "emulator": emulated,
}
