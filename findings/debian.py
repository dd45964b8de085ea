"""Packages of Debian 12 in a temporary folder: nothing is installed on the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def unpacked(folder: Path, *packages: str) -> dict[str, str]:
    """The environment in which the programs of ``NAME=VERSION`` run; exits with 2 without them."""
    (folder / "archives" / "partial").mkdir(parents=True)
    (folder / "status").touch()
    options = (f"State::status={folder}/status", f"Cache::archives={folder}/archives")
    command = ["apt-get", "install", "--download-only", "--no-install-recommends", "--yes", "-qq"]
    for option in options:
        command += ["-o", f"Dir::{option}"]
    try:
        subprocess.run([*command, "-o", "Debug::NoLocking=1", *packages], check=True, stdout=2)
    except (OSError, subprocess.CalledProcessError):
        print(f"cannot get {', '.join(packages)} from Debian 12", file=sys.stderr)
        sys.exit(2)
    root = folder / "root"
    for archive in sorted((folder / "archives").glob("*.deb")):
        if not archive.name.startswith(("libc6_", "libc-bin_")):  # the loader is the machine's
            subprocess.run(["dpkg-deb", "--extract", archive, root], check=True)
    libraries = [*root.glob("usr/lib/*-linux-gnu"), *root.glob("lib/*-linux-gnu")]
    return os.environ | {
        "PATH": f"{root}/usr/bin:{root}/usr/sbin:{root}/bin:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        "LC_ALL": "C",
    }
