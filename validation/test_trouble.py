"""Outages, reordering and steps: what Linux did is committed, and ours is compared with it."""

# ruff: noqa: D103
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from validation import trouble
from validation.draw import Drawn, Step
from validation.trouble import COUNT, Passed

SCENARIOS = [trouble.draw(number) for number in range(COUNT)]


@pytest.mark.parametrize("drawn", SCENARIOS, ids=[trouble.described(d)[:24] for d in SCENARIOS])
def test_ours_passes_as_linux_does(drawn: Drawn) -> None:
    found = trouble.differs(drawn, trouble.kept()[drawn.tag], trouble.ours(drawn))
    if drawn.tag in trouble.OPEN:
        assert found, "it agrees now: take it off the list"
        pytest.xfail("; ".join(found))
    assert not found


def test_what_is_drawn_covers_the_ranges() -> None:
    outages = [step.down_s for d in SCENARIOS for step in d.steps if step.down_s]
    assert len(outages) == 20
    assert (min(outages), max(outages)) == (1, 40)
    late = [d for d in SCENARIOS if d.reorder]
    assert min(d.reorder for d in late) < 0.002
    assert 0.05 < max(d.reorder for d in late) <= 0.1
    assert all(0.09 < d.reorder_ms / d.flows[0].rtt_ms < 0.51 for d in late)


def test_the_bars() -> None:
    drawn = next(d for d in SCENARIOS if d.steps and d.steps[0].down_s)
    linux = Passed(4, near=False, full_s=1.0)
    assert not trouble.differs(drawn, linux, linux)
    assert trouble.differs(drawn, linux, replace(linux, timeouts=5))
    assert not trouble.differs(drawn, linux, replace(linux, timeouts=5, near=True))
    assert trouble.differs(drawn, linux, replace(linux, timeouts=6, near=True))
    assert trouble.differs(drawn, linux, replace(linux, full_s=1.4))
    assert trouble.differs(drawn, linux, replace(linux, full_s=None))


def test_the_rate_is_full_when_100_ms_passed_at_nine_tenths_of_it() -> None:
    """Nothing is acknowledged from 5 s to 7 s, half the rate until 8 s, then all of it."""
    drawn = replace(SCENARIOS[0], rate_mbps=8.0, steps=(Step(5, down_s=1.5),))
    time_s = np.arange(0, 12, 0.01)
    full = 1e6 * trouble.PAYLOAD
    rate = np.select([time_s < 5, time_s < 7, time_s < 8], [full, 0, full / 2], full)
    timeouts_s = np.array([5.3, 6.47])
    passed = trouble._passed(drawn, time_s, np.cumsum(rate * 0.01), timeouts_s)
    assert (passed.timeouts, passed.near) == (2, True)
    # Four fifths of half a second at the whole rate and one at half of it.
    assert passed.full_s == pytest.approx(1.4, abs=0.02)
