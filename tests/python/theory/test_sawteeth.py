"""Sawteeth at many points in one call."""

from __future__ import annotations

import numpy as np
import pytest

from lfnlab import laws
from lfnlab.errors import LawError, UsageError
from lfnlab.theory import fluid
from lfnlab.theory.sawteeth import sawteeth

COLUMNS = ("period_s", "mean_window", "mean_rtt_s", "utilization", "loss_events_per_packet")


def test_points_are_those_of_single_calls() -> None:
    """Random points of most laws, against the course that docs and figures show."""
    draw = np.random.default_rng(20261125)
    names = sorted({law.name for law in laws()} - {"const-rate"})
    rates = 10 ** draw.uniform(2.9, 4.5, len(names))
    rtts = 10 ** draw.uniform(-2, -0.8, len(names))
    buffers = rates * rtts * 10 ** draw.uniform(-1, 0.5, len(names))
    found = sawteeth(names, rates, rtts, buffers)
    assert all(wrong is None for wrong in found.wrong)
    apart = []
    for at, name in enumerate(names):
        one = fluid.sawtooth(name, rates[at], rtts[at], buffers[at], code=True)
        assert found.utilization[at] == pytest.approx(one.utilization, abs=0.05), name
        apart.append(abs(found.mean_window[at] / one.mean_window - 1))
    # Rates that BBR and UDT measure wander; for other laws ends of epochs are a little apart.
    assert np.median(apart) < 0.001
    assert np.mean(np.array(apart) < 0.02) >= 0.9


def test_arguments_are_broadcast() -> None:
    found = sawteeth([["reno"], ["cubic"], ["udt"]], [1e3, 1e4], 0.05, 100)
    for name in COLUMNS:
        assert getattr(found, name).shape == (3, 2)
    alone = sawteeth("cubic", 1e4, 0.05, 100)
    assert alone.period_s.shape == ()
    assert alone.period_s == found.period_s[1, 1]
    assert sawteeth([], 1e4, 0.05, 100).wrong.shape == (0,)


def test_threads_change_nothing() -> None:
    points = (["reno", "cubic", "bbr", "vegas"] * 20, np.geomspace(1e3, 1e5, 80), 0.1, 50)
    one, many = sawteeth(*points, threads=1), sawteeth(*points, threads=7)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name))


def test_a_point_without_a_sawtooth_says_why() -> None:
    found = sawteeth(["reno", "cubic"], [1e7, 1e3], 0.1, 0)
    assert np.isnan(found.utilization[0])
    assert "ACKs; allowed: a smaller rate, RTT or buffer" in found.wrong[0]
    assert found.wrong[1] is None
    assert found.utilization[1] > 0.7


@pytest.mark.parametrize(
    ("points", "error", "text"),
    [
        (("nolaw", 1e3, 0.1, 0), LawError, "nolaw"),
        (("reno", 0, 0.1, 0), UsageError, "rates_pps: found 0; allowed: finite, above 0"),
        (("reno", 1e3, -0.1, 0), UsageError, "rtts_s: found -0.1; allowed: finite, above 0"),
        (
            ("reno", 1e3, 0.1, -1),
            UsageError,
            "buffers_packets: found -1; allowed: finite, at least",
        ),
        (("reno", np.nan, 0.1, 0), UsageError, "rates_pps: found NaN"),
        (("reno", np.inf, 0.1, 0), UsageError, "rates_pps: found inf"),
        ((["reno", "cubic"], [1e3, 1e3, 1e3], 0.1, 0), UsageError, "broadcast against each other"),
    ],
)
def test_wrong_points(points: tuple[object, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        sawteeth(*points)  # type: ignore[arg-type]
