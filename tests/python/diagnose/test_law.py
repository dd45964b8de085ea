"""Is the law that drove a flow ranked first, and is an unknown one called none of these?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from measured_flow import evidence_of

from lfnlab import Scenario, dumbbell
from lfnlab.diagnose.law import LAWS, rank
from lfnlab.diagnose.path import fit


def flow(law: str, loss: float = 0.0, **settings: str) -> Scenario:
    path = dumbbell(
        rate="20Mbit/s",
        rtt="60ms",
        buffer="0.8bdp",
        duration="30s",
        loss=loss or None,
        sample="100ms",
    )
    name = law if law in ("bbr", "fast") else f"{law}:linux"
    return path.flow(name, **settings)  # type: ignore[arg-type]


def test_laws_that_fill_the_queue_are_first() -> None:
    """At least 13 of 14, as 160 of 168."""
    right = 0
    for law in LAWS:
        shown = evidence_of(flow(law))
        found = rank(shown, fit(shown))
        right += law in found.first
        assert len(found.first) <= 3
        assert not found.is_none
        assert list(found.scores) == sorted(found.scores, key=lambda name: found.scores[name])
    assert right >= 13


@pytest.mark.parametrize("law", ["reno", "cubic", "htcp", "illinois", "hstcp", "veno", "bbr"])
def test_a_law_that_loses_at_random_is_first(law: str) -> None:
    shown = evidence_of(flow(law, 5e-4))
    found = rank(shown, fit(shown))
    assert law in found.first


def test_laws_whose_windows_are_equal_tie() -> None:
    """DCTCP without marks is Reno; a receiver's window makes all laws equal."""
    shown = evidence_of(flow("reno"))
    assert {"reno", "dctcp"} <= set(rank(shown, fit(shown)).first)
    held = evidence_of(flow("cubic", receive_window="60kB"))
    held = replace(held, window_bytes=np.full(held.rtt_s.size, 60_000.0))
    found = rank(held, fit(held))
    assert len(found.first) > 5
    assert "cubic" in found.first


@pytest.mark.parametrize("law", ["fast", "sawtooth", "steps"])
def test_a_window_of_no_known_law_is_none_of_these(law: str) -> None:
    shown = evidence_of(flow("cubic"))
    at = np.arange(shown.rtt_s.size)
    if law == "fast":
        shown = evidence_of(flow(law))
    elif law == "sawtooth":
        shown = replace(shown, cwnd_bytes=shown.segment_bytes * (20.0 + 30 * (at % 7)))
    else:
        shown = replace(shown, cwnd_bytes=shown.segment_bytes * (400.0 - at))
    found = rank(shown, fit(shown))
    assert found.is_none
    assert found.first == ()


CASES = {
    "no window and no flight": {"cwnd_bytes": np.nan, "inflight_bytes": np.nan},
    "no RTT": {"rtt_s": np.nan},
    "a window of 0": {"cwnd_bytes": 0.0},
    "a huge window": {"cwnd_bytes": 1e12},
    "no retransmissions told": {"retransmits": np.nan},
    "losses in every row": {"retransmits": 3.0},
    "nothing acknowledged after the first row": {"goodput_bps": "once"},
}


@pytest.mark.parametrize("changed", CASES.values(), ids=CASES)
def test_a_hostile_or_poor_flow_is_ranked_or_left_undecided(
    changed: dict[str, float | str],
) -> None:
    shown = evidence_of(replace(flow("cubic"), duration="6s"))
    arrays = {
        name: np.where(np.arange(shown.rtt_s.size) < 9, 1e6, 0.0)
        if value == "once"
        else np.full(shown.rtt_s.size, value)
        for name, value in changed.items()
    }
    shown = replace(shown, **arrays)
    found = rank(shown, fit(shown))
    assert set(found.first) <= set(LAWS)
    assert found.how


def test_few_samples_decide_nothing() -> None:
    shown = evidence_of(replace(flow("cubic"), duration="1s"))
    found = rank(shown, fit(shown))
    assert (found.first, found.is_none) == ((), False)
    assert "measure longer" in found.how
