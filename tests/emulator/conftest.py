# SPDX-License-Identifier: MIT OR Apache-2.0
"""Requirements of every test here: TUN, and the right to make network namespaces."""

import os
import subprocess
from pathlib import Path

import pytest

TUN = Path("/dev/net/tun")


def incapable() -> str | None:
    try:
        os.close(os.open(TUN, os.O_RDWR))
    except PermissionError:
        return f"only root may open {TUN} here; chmod a+rw {TUN}, as root (lfn doctor says so, too)"
    except OSError as error:
        return f"{TUN}: {error.strerror}"
    for option in ["--net"], ["--net", "--map-root-user"]:
        if subprocess.run(["unshare", *option, "true"], capture_output=True).returncode == 0:
            return None
    return "no right to make a network namespace"


@pytest.fixture(scope="session", autouse=True)
def capable() -> None:
    if reason := incapable():
        message = f"EMULATOR NOT TESTED: {reason}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
