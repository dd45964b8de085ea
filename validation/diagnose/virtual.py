"""Transfers of Linux's TCP in virtual time: the headers that its hosts sent and received."""

from __future__ import annotations

import re
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lfnlab import Scenario
from lfnlab.formats.views import BEGIN_S
from lfnlab.testbed import linux_backend, virtual_run, virtual_time

if TYPE_CHECKING:
    from .settings import Setting

#: pcap with nanoseconds; version 2.4, UTC, no limit of a packet, Ethernet.
_HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)
_RECORD = np.dtype(
    [("s", "<u4"), ("ns", "<u4"), ("kept", "<u4"), ("bytes", "<u4"), ("head", "u1", 112)]
)
_ETHERNET_B, _IP_B = 14, 20


def virtual(setting: Setting, folder: Path, module: str | None = None) -> None:
    """Captures at both hosts; the module of Linux is that of the law, or another one.

    Raises:
        Unavailable: Linux in virtual time is not built.
        LabError: it failed.
    """
    build = linux_backend.build()
    scenario = Scenario.from_toml(setting.toml(capture=True, samples=True)).check()
    told = virtual_time.translated(scenario.to_document(), ours=True)
    if module is not None:
        told = re.sub(r"(?m)^flow law=\w+", f"flow law={module}", told)
    with tempfile.TemporaryDirectory(prefix="lfn-diagnose-", ignore_cleanup_errors=True) as work:
        ran = virtual_run.run(build.program, Path(work), "run", told)
    assert ran.packets is not None
    for number, host in enumerate(("sender", "receiver")):
        packets = ran.packets[ran.packets["receiver"] == number]
        _write(folder / f"{host}.pcap", packets[np.argsort(packets["at_ns"], kind="stable")])


def _write(file: Path, packets: np.ndarray) -> None:
    """Their headers alone."""
    rows = np.zeros(packets.size, _RECORD)
    seconds, rest = np.divmod(packets["at_ns"], 1_000_000_000)
    rows["s"], rows["ns"], rows["bytes"] = seconds + BEGIN_S, rest, packets["bytes"]
    rows["head"] = packets["head"]
    tcp = _ETHERNET_B + _IP_B
    rows["kept"] = tcp + (packets["head"][:, tcp + 12] >> 4) * 4
    kept = np.arange(_RECORD.itemsize) < 16 + rows["kept"][:, None]
    file.write_bytes(_HEAD + rows.view(np.uint8).reshape(rows.size, -1)[kept].tobytes())
