# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where CI=true, a test that misses a tool of ci/tools.sh fails; elsewhere it is skipped."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: Reasons to skip, with the tool that each names.
TOOLS = {
    "needs valgrind: install it": "valgrind",
    "no program `valgrind`": "valgrind",
    "not installed: iperf3": "iperf3",
    "needs /usr/include/udt/udt.h": "udt.h",
    "no bpf/libbpf.h: apt install libbpf-dev": "libbpf-dev",
    "tshark is not installed; ci/tools.sh installs it": "tshark",
    "tcptrace is not installed; ci/tools.sh installs it": "tcptrace",
    "no Chromium on this machine": "chromium",
}
OTHERS = ("needs a kernel with cgroup v2; an ip address", "may not mount")
TESTS = """
import pytest

@pytest.fixture
def fixture():
    pytest.skip("needs valgrind: install it")

def test_in_a_fixture(fixture): pass

def test_that_runs(): pass

@pytest.mark.xfail(reason="chromium draws it otherwise", strict=True)
def test_that_is_expected_to_fail(): assert False
"""


@pytest.mark.parametrize("ci", ["true", "false", None])
def test_a_missing_tool_of_ci_fails_a_test(tmp_path: Path, ci: str | None) -> None:
    (tmp_path / "ci").mkdir()
    shutil.copy(ROOT / "ci" / "tools.sh", tmp_path / "ci")
    shutil.copy(ROOT / "conftest.py", tmp_path)
    each = "".join(
        f"@pytest.mark.skipif(True, reason={reason!r})\ndef test_mark_{number}(): pass\n"
        f"def test_body_{number}(): pytest.skip({reason!r})\n"
        for number, reason in enumerate([*TOOLS, *OTHERS])
    )
    (tmp_path / "test_some.py").write_text(TESTS + each)
    kept = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", "-rfs", "."]
    env = kept | ({"CI": ci} if ci else {})
    run = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    named, others = len(TOOLS), 2 * len(OTHERS)
    wanted = f"1 passed, {2 * named + 1 + others} skipped, 1 xfailed"
    if ci == "true":
        wanted = f"{named} failed, 1 passed, {others} skipped, 1 xfailed, {named + 1} errors"
    assert wanted in run.stdout.strip().splitlines()[-1], run.stdout
    assert run.returncode == (ci == "true")
    for tool in TOOLS.values():
        assert (f"ci/tools.sh installs {tool}" in run.stdout) == (ci == "true"), tool
