# SPDX-License-Identifier: MIT OR Apache-2.0
"""Requirements of the tests of this folder.

Root, Linux 6.4 with BTF, and the tools of `TOOLS`; without them the tests are skipped, or fail
where the environment says CI=true.
"""

import os
import shutil

import pytest

from lfnlab.errors import Unavailable
from lfnlab.kernel import host, libbpf, loopback

TOOLS = ["clang-14", "llvm-objcopy-14", "bpftool", "mount", "nsenter"]


def incapable() -> str | None:
    """The reason why this machine cannot run the tests, if any."""
    if absent := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"not installed: {' '.join(absent)}"
    if lacking := host.missing():
        return "; ".join(lacking)
    if host.linux() < (6, 4):
        return "laws that end with a process need Linux 6.4"
    try:
        libbpf.version()
    except Unavailable as error:
        return str(error)
    return loopback.missing()


@pytest.fixture(scope="session", autouse=True)
def capable() -> None:
    if reason := incapable():
        message = f"KERNEL LAWS NOT TESTED: {reason}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
