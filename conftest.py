# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where CI=true, a test that misses a tool which ci/tools.sh installs fails: it is not skipped."""

import os
import re
from collections.abc import Generator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "ci" / "tools.sh"
TOOLS = {
    word
    for line in SCRIPT.read_text().splitlines()
    if line.startswith("need ")
    for word in (line.split()[1], Path(line.split()[-1]).name)
} - {"ip"}
"""Packages and programs, as a reason may name them; "ip" is a word of other reasons too."""


def missed(reason: str) -> set[str]:
    """The tools of ci/tools.sh that a reason to skip names."""
    return set(re.findall(r"[\w.-]+", reason.lower())) & TOOLS


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have the report of such a test say that it failed."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if tools := missed(reason):
            report.outcome = "failed"
            named = ", ".join(sorted(tools))
            report.longrepr = f"CI=true, and ci/tools.sh installs {named}: {reason}"
    return report
