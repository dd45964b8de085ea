# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where CI=true, a test that misses a tool of ci/tools.sh fails; elsewhere it is skipped."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

TESTS = """
import pytest

@pytest.fixture
def fixture():
    pytest.skip("needs valgrind: install it")

def test_in_a_fixture(fixture): pass

@pytest.mark.skipif(True, reason="not installed: iperf3")
def test_by_a_mark(): pass

def test_in_its_body():
    pytest.skip("needs /usr/include/udt/udt.h")

def test_by_a_package():
    pytest.skip("no bpf/libbpf.h: apt install libbpf-dev")

def test_for_another_reason():
    pytest.skip("needs a kernel with cgroup v2; an ip address")

def test_that_runs(): pass

@pytest.mark.xfail(reason="chromium draws it otherwise", strict=True)
def test_that_is_expected_to_fail(): assert False
"""


@pytest.mark.parametrize(("ci", "failed"), [("true", 4), ("false", 0), (None, 0)])
def test_a_missing_tool_of_ci_fails_a_test(tmp_path: Path, ci: str | None, failed: int) -> None:
    (tmp_path / "ci").mkdir()
    shutil.copy(ROOT / "ci" / "tools.sh", tmp_path / "ci")
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_some.py").write_text(TESTS)
    env = {
        key: value
        for key, value in os.environ.items()
        if key != "CI" and not key.startswith("PYTEST")
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", "-rfs", "."]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        env=env | ({"CI": ci} if ci else {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    skipped = 5 - failed
    counts = run.stdout.strip().splitlines()[-1]
    assert f"1 passed, {skipped} skipped, 1 xfailed" in counts, run.stdout
    assert ("2 failed" in counts and "2 errors" in counts) == bool(failed), run.stdout
    assert run.returncode == (1 if failed else 0)
    for tool in ["valgrind", "iperf3", "udt.h", "libbpf-dev"]:
        assert (f"ci/tools.sh installs {tool}" in run.stdout) == bool(failed)
