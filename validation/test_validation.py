"""The laboratory against the committed reference and the closed forms, and the analysis itself."""

# ruff: noqa: D103
from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from lfnlab.analysis.sawtooth import Trace, figures
from validation import linux, ns2, ns3, ns3_rules, ns3_tried, reference, theory
from validation.analyse import shared_figures
from validation.compare import explanation, open_differences
from validation.explained import EXPLAINED
from validation.report import Comparison

ROOT = Path(__file__).parents[1]
PEERS = {"linux": linux, "ns2": ns2, "ns3": ns3}


def sawtooth(
    periods_s: list[float], peak: float = 100, kept: float = 0.5, recovery_s: float = 0.1
) -> Trace:
    """Windows that climb from ``kept * peak`` to ``peak`` in each period, then recover."""
    step_s = 0.01
    cwnd, reducing, drops = [], [], []
    for number, period_s in enumerate(periods_s):
        climbing = round((period_s - recovery_s) / step_s)
        recovering = round(recovery_s / step_s)
        cwnd += [*np.linspace(kept * peak, peak, climbing), *[kept * peak] * recovering]
        reducing += [False] * climbing + [True] * recovering
        drops += [3.0 * number] * climbing + [3.0 * (number + 1)] * recovering
    size = len(cwnd)
    time_s = step_s * np.arange(1, size + 1, dtype=np.float64)
    return Trace(
        time_s=time_s,
        cwnd_segments=np.array(cwnd),
        ssthresh_segments=np.full(size, kept * peak),
        reducing=np.array(reducing),
        drops=np.array(drops),
        delivered_b=1e6 * time_s,
        rtt_s=np.full(size, 0.05),
    )


def test_figures_of_a_sawtooth_that_alternates() -> None:
    found = figures(sawtooth([3, 1] * 10), settle_s=5)
    assert found.period_s == pytest.approx(2)
    assert found.period_long_s == pytest.approx(3)
    assert found.period_short_s == pytest.approx(1)
    assert found.window_before_segments == pytest.approx(100)
    assert found.kept_fraction == pytest.approx(0.5)
    assert found.drops_per_episode == pytest.approx(3)
    assert found.goodput_bps == pytest.approx(8e6)
    # The mean climbs from 50 to 100, and a twentieth of the time is recovery at 50.
    assert found.mean_window_segments == pytest.approx(0.95 * 75 + 0.05 * 50, rel=2e-3)
    assert found.startup_loss_s == pytest.approx(2.91)


def test_an_episode_that_does_not_end_is_not_counted() -> None:
    whole = sawtooth([2] * 10)
    ends_in_recovery = figures(whole, settle_s=5)
    assert ends_in_recovery.episodes == 7
    assert whole.reducing[-1]


def test_figures_of_flows_that_share() -> None:
    trace = sawtooth([2] * 10)
    starved = Trace(**{**vars(trace), "delivered_b": np.zeros(trace.time_s.size)})
    found = shared_figures([trace, starved], settle_s=5)
    assert found.jain == pytest.approx(0.5)
    assert found.goodput_bps == pytest.approx(8e6)
    assert found.drops_per_s == pytest.approx(1.5, rel=0.1)


@functools.cache
def comparison(peer: str) -> Comparison:
    return Comparison(peer, PEERS[peer])


@pytest.mark.parametrize("peer", PEERS)
def test_differences_without_a_known_cause_are_those_on_record(peer: str) -> None:
    found = {d.name: d.percent for d in comparison(peer).unexplained()}
    assert found == open_differences(peer)


@pytest.mark.parametrize("number", range(len(EXPLAINED)))
def test_every_explanation_is_needed(number: int) -> None:
    why = EXPLAINED[number]
    assert any(
        not d.within and explanation(why.peer, d) == why.rule
        for d in comparison(why.peer).differences()
    )


def test_the_model_of_ns3s_rules_gives_our_periods_with_our_rules() -> None:
    """To 3 %: what ns-3's rules change is taken from the model, so it has to hold for ours."""
    for run in ns3.RUNS:
        if run.path.flows == 1 and (laws := ns3_rules.laws(run.law, run.path, kept=0.5)):
            period_s = comparison("ns3").ours[run.tag]["period_s"]
            assert ns3_rules.sawtooth(laws[1], run.path).period_s == pytest.approx(
                period_s, rel=0.03
            ), run.tag


def test_with_ns3s_rules_for_bic_ours_alternates_as_ns3s() -> None:
    """The same run that the last table of the page has."""
    [run] = [run for run in ns3_tried.RUNS if run.path.flows == 1]
    theirs, (tried, timeouts) = reference.load("ns3")[run.tag], ns3_tried.figures(run)
    [recorded] = [entry["with_rule"] for entry in ns3_tried.load() if entry["run"] == run.tag]
    assert tried["period_long_s"] == pytest.approx(theirs["period_long_s"], rel=0.1)
    assert recorded == {
        "timeouts": timeouts,
        **{name: tried.get(name) for name in ns3_tried.FIGURES},
    }


def test_the_long_epoch_of_ns3s_cubic_is_the_cubics() -> None:
    """2 K, and recovery of two round trips, on every path: no Reno is above it."""
    for run in ns3.RUNS:
        if run.law == "cubic" and run.path.flows == 1:
            theirs = reference.load("ns3")[run.tag]
            k_s = np.cbrt(0.15 * (theirs["window_before_segments"] or 0) / 0.4)
            recovery_s = 2 * run.path.rtt_s * (1 + run.path.buffer_bdp)
            assert theirs["period_long_s"] == pytest.approx(2 * k_s + recovery_s, rel=0.03), run.tag


def test_closed_forms() -> None:
    missed = [check for check in theory.checks() if not check.within]
    assert not missed
