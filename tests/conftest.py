# SPDX-License-Identifier: MIT OR Apache-2.0
"""Set-up of all tests."""

import signal

import pytest


@pytest.fixture(scope="session", autouse=True)
def nothing_is_ignored() -> None:
    """nohup and shells in the background ignore signals, and every program below them does."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
