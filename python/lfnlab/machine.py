"""The machine that this process runs on: its cores, and whether it is Linux."""

from __future__ import annotations

import os
import sys

from lfnlab.errors import Unavailable

SYSTEM = sys.platform
"""Name of the operating system, as ``sys.platform``."""


def cores() -> int:
    """Number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # of Linux
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def needs_linux(what: str) -> None:
    """Refuse a part of the package that only Linux has.

    Raises:
        Unavailable: on another system, which the text names.
    """
    if SYSTEM != "linux":
        raise Unavailable(f"{what} needs Linux; this system is {SYSTEM}")
