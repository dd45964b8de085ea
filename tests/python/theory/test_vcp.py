"""VCP and EVCP as a fluid, and do packets follow it?"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lfnlab import Scenario
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.theory import vcp as fluid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lfnlab.results.runs import Run

GIGABIT_PPS = 1e9 / 12_000
approx = pytest.approx


def two_flows(*, evcp: bool) -> fluid.Course:
    """1 Gbit/s, 100 ms, the second flow at 100 s: figures 1 and 5 of the EVCP paper."""
    flows = [fluid.Flow(s, fluid.Controller() if evcp else None) for s in (0.0, 100.0)]
    return fluid.course(flows, GIGABIT_PPS, 0.1, 800.0)


def test_the_fluids_penalties() -> None:
    first, second = two_flows(evcp=True).flows
    assert first.penalties_s == approx([225, 409, 693], rel=0.15)
    assert second.penalties_s == []
    # The newcomer has its share 590 s after it came.
    pairs = zip(second.windows, first.windows, strict=True)
    crossed = next(k for k, (w, v) in enumerate(pairs) if w >= v > 2)
    assert crossed * fluid.STEP_S - 100 == approx(590, rel=0.15)


def test_the_fluids_gap_shrinks_by_an_eighth_an_epoch() -> None:
    first, second = two_flows(evcp=False).flows
    at = [round(t / fluid.STEP_S) for t in first.decreases_s if t > 200]
    gaps = [first.windows[step] - second.windows[step] for step in at]
    assert len(gaps) > 8
    for gap, following in pairwise(gaps):
        assert following / gap == approx(0.875, abs=0.005)
    # So it never closes.
    pairs = zip(second.windows[10_001:], first.windows[10_001:], strict=True)
    assert all(w < v for w, v in pairs)


def test_a_cycle_and_the_start_up() -> None:
    (flow,) = fluid.course([fluid.Flow(0.0)], GIGABIT_PPS, 0.1, 300.0).flows
    full = next(k for k, w in enumerate(flow.windows) if w > 0.8 * 0.98 * 8333) * fluid.STEP_S
    # From 2 packets; from one it would be 28.98 s.
    assert full == approx(0.2 * math.log(6533 / 2) / math.log(1.0625), rel=0.03)
    cycle = flow.decreases_s[1] - flow.decreases_s[0]
    assert cycle == approx(104 * 0.98, abs=1.0)


def packets(law: str, out: Path) -> tuple[Run, tuple[fluid.Flow, ...]]:
    """Two flows at a tenth of the rate, and so of the times, and the same as a fluid.

    `python -m studies.evcp fluid` has the whole.
    """
    text = f"""
schema = 1
compat = "ns2"
duration = "110s"
sample = "100ms"
[link]
rate = "100Mbit/s"
router = {{ kind = "vcp" }}
[[flow]]
law = "{law}"
rtt = "100ms"
[[flow]]
law = "{law}"
rtt = "100ms"
start = "40s"
"""
    (run,) = execute([Case(Scenario.from_toml(text))], out=out, jobs=1).runs
    flows = [fluid.Flow(s, fluid.Controller() if law == "evcp" else None) for s in (0.0, 40.0)]
    return run, fluid.course(flows, 100e6 / 12_000, 0.1, 110.0).flows


def windows(run: Run, flow: int) -> NDArray[np.float64]:
    """Windows each 100 ms from 55 s on."""
    rows = run.table("flows")
    part = rows.filter((rows["flow"] == flow) & (rows["t_s"] >= 55) & (rows["t_s"] < 109.95))
    return part["cwnd_seg"].to_numpy()


def test_packets_follow_the_fluid(tmp_path: Path) -> None:
    run, flows = packets("vcp", tmp_path)
    for number, flow in enumerate(flows):
        ours = windows(run, number)
        model = np.array(flow.windows)[5500 : 5500 + 10 * len(ours) : 10]
        # Means of five seconds, about an epoch.
        for begin in range(0, len(ours) - 50, 50):
            epoch = slice(begin, begin + 50)
            assert ours[epoch].mean() == approx(model[epoch].mean(), rel=0.15)
    link = run.summary["links"][0]
    assert link["drops"] == 0
    # 5 % of a BDP.
    assert link["mean_queue_s"] < 0.005


def test_penalties_fall_where_the_fluids_do(tmp_path: Path) -> None:
    run, (first, second) = packets("evcp", tmp_path)
    theirs = [t for t in first.penalties_s if t > 55]
    ours = windows(run, 0)
    (fell,) = np.nonzero(ours[1:] < 0.8 * ours[:-1])
    assert 55 + (fell + 1) / 10 == approx(theirs, abs=5.2)
    assert theirs
    assert second.penalties_s == []
    assert run.summary["links"][0]["drops"] == 0
