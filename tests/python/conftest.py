"""One small experiment that many tests look at, run once by the real simulator."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Lfn
from hypothesis import settings

from lfnlab import Results, Scenario, compare, dumbbell

LAWS = ("reno", "cubic")
SEEDS = 2


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same cases in every run, unless a seed is given, and take the time that it takes."""
    drawn = config.getoption("--hypothesis-seed") is not None
    settings.register_profile("lfnlab", deadline=None, derandomize=not drawn)
    settings.load_profile("lfnlab")


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """A shell's background job ignores the interrupt, and so would the commands under test."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def lfn(capsys: pytest.CaptureFixture[str]) -> Lfn:
    return Lfn(capsys)


@pytest.fixture(scope="session")
def base() -> Scenario:
    return dumbbell(rate="50Mbit/s", rtt="20ms", buffer="1bdp", duration="6s").with_background(1)


@pytest.fixture(scope="session")
def results(base: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two laws, two flows each, two seeds."""
    out: Path = tmp_path_factory.mktemp("results")
    return compare(LAWS, base, seeds=SEEDS, out=out, title="Two laws", count=2)
