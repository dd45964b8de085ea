"""Processes of runs of Linux in virtual time, for tests that none is left."""

import contextlib
import os
from pathlib import Path


def below(folder: Path) -> list[str]:
    """Numbers of the processes whose working directory is below a folder, which may be gone."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(process / "cwd").startswith(f"{folder}/"):
                found.append(process.name)
    return found
