"""By what, where and from what a run was made: what ``provenance.json`` says beside a result."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import shlex
import sys
from functools import cache
from pathlib import Path
from typing import Any

from lfnlab import _core


@cache
def code_version() -> str:
    """The version of the package and the hash of the compiled simulator."""
    digest = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
    return f"{_core.VERSION}+{digest[:12]}"


@cache
def command() -> str:
    """The command line of this process, to be given to a shell again."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


@cache
def machine() -> dict[str, Any]:
    """Code, versions and machine of this process, the same for all of its runs."""
    return {
        "code": code_version(),
        "git": _git(),
        "python": platform.python_version(),
        "packages": {name: _installed(name) for name in ("numpy", "polars")},
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "host": platform.node(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
    }


def now() -> str:
    """The time, UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _installed(name: str) -> str | None:
    """The version of a package by the name of its folder; importlib.metadata takes 10 ms more."""
    # Packaging guide, "Recording installed projects": NAME-VERSION.dist-info.
    folders = (found for home in sys.path for found in Path(home).glob(f"{name}-*.dist-info"))
    found = next(folders, None)
    return found.name.removeprefix(f"{name}-").removesuffix(".dist-info") if found else None


def _git() -> str | None:
    """The commit of the package's sources, "-dirty" where files had changed; None elsewhere."""
    import subprocess

    here = Path(__file__).parents[3]
    if not (here / ".git").exists():
        return None
    describe = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        # A package that is installed somewhere below another repository is not of it.
        tracked = ["git", "-C", str(here), "ls-files", "--error-unmatch", __file__]
        subprocess.run(tracked, capture_output=True, check=True, timeout=10)
        done = subprocess.run(describe, capture_output=True, check=True, timeout=10, text=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _cpu() -> str | None:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or None
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), None)
