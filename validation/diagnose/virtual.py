"""Transfers of Linux's TCP in virtual time: the headers that its hosts sent and received."""

from __future__ import annotations

import re
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab import Scenario
from lfnlab.formats.views import BEGIN_S
from lfnlab.testbed import linux_backend, virtual_run, virtual_time

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .settings import Setting

#: pcap with nanoseconds; version 2.4, UTC, no limit of a packet, Ethernet.
_HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)
_RECORD = [("s", "<u4"), ("ns", "<u4"), ("kept", "<u4"), ("bytes", "<u4")]
_ETHERNET_B, _IP_B, _HEAD_B = 14, 20, 112
_CHUNK = 1 << 15


def recorded(setting: Setting, module: str | None = None) -> NDArray[Any]:
    """Packets at both hosts; the module of Linux is that of the law, or another one.

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
        packets = virtual_run.run(build.program, Path(work), "run", told).packets
    assert packets is not None
    return packets[np.argsort(packets["at_ns"], kind="stable")]


def virtual(setting: Setting, folder: Path, module: str | None = None) -> None:
    """Captures at both hosts; errors are those of :func:`recorded`."""
    packets = recorded(setting, module)
    for number, host in enumerate(("sender", "receiver")):
        write(folder / f"{host}.pcap", packets[packets["receiver"] == number])


def write(file: Path, packets: NDArray[Any], *, is_whole: bool = False) -> None:
    """Their headers alone, or whole packets with a payload of zeros."""
    most = int(packets["bytes"].max()) if is_whole else _HEAD_B
    record = np.dtype([*_RECORD, ("head", "u1", max(most, _HEAD_B))])
    with file.open("wb") as out:
        out.write(_HEAD)
        for begin in range(0, packets.size, _CHUNK):
            some = packets[begin : begin + _CHUNK]
            rows = np.zeros(some.size, record)
            seconds, rest = np.divmod(some["at_ns"], 1_000_000_000)
            rows["s"], rows["ns"], rows["bytes"] = seconds + BEGIN_S, rest, some["bytes"]
            rows["head"][:, :_HEAD_B] = some["head"]
            tcp = _ETHERNET_B + _IP_B
            headers = tcp + (some["head"][:, tcp + 12] >> 4) * 4
            rows["kept"] = some["bytes"] if is_whole else headers
            kept = np.arange(record.itemsize) < 16 + rows["kept"][:, None]
            out.write(rows.view(np.uint8).reshape(rows.size, -1)[kept].tobytes())
