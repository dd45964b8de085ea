"""CPU of a capture of 1 GB, beside tshark's two-pass statistics of the same file."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path as FilePath
from typing import Any

from .settings import Setting
from .virtual import recorded, write

#: 1 Gbit/s for so long gives 1 GB of whole packets.
SETTING = Setting("cubic", 1e9, 0.02, 1600, 8.3, 1)


def whole(cache: FilePath) -> FilePath:
    """The capture of whole packets at the sender, from the cache or made."""
    file = cache / "whole.pcap"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        packets = recorded(SETTING)
        part = file.with_suffix(f".{os.getpid()}")
        write(part, packets[packets["receiver"] == 0], is_whole=True)
        part.rename(file)
    return file


def cpu_s(command: list[str]) -> float:
    """CPU of a command and of its children.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(cache: FilePath) -> dict[str, Any]:
    """Seconds of CPU of both, and their ratio; none where tshark is missing."""
    file = whole(cache)
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "lfnlab.cli", "import", "capture", str(file)]
        ours_s = cpu_s([*command, "--out", f"{out}/imported"])
    found = {"bytes": file.stat().st_size, "lfn_s": round(ours_s, 2)}
    if shutil.which("tshark") is None:
        return found | {"tshark_s": None}
    theirs_s = cpu_s(["tshark", "-2", "-r", str(file), "-q", "-z", "conv,tcp"])
    return found | {"tshark_s": round(theirs_s, 2), "ratio": round(theirs_s / ours_s, 1)}
