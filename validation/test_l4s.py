"""DualPI2 in the simulator beside the one of Linux in virtual time: the record, and the page."""

# ruff: noqa: D103
from __future__ import annotations

import pytest

from validation import l4s


def test_the_page_is_that_of_the_record() -> None:
    assert l4s.PAGE.read_text(encoding="utf-8") == l4s.page(l4s.recorded())


def test_the_simulator_is_that_of_the_record() -> None:
    """Of a path whose runs are short; the record of Linux needs its build."""
    [path] = [path for path in l4s.PATHS if path.tag == "4m-30ms-beside cubic"]
    found = l4s.mean(
        [l4s.simulated(path.scenario(phase)) for phase in range(l4s.RUNS[path.rate_mbit])]
    )
    assert found == pytest.approx(l4s.recorded()[l4s.SIMULATOR]["paths"][path.tag])
