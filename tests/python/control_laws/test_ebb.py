"""EBB is CUBIC where only full queues lose packets, and keeps its window where they do not."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

import pytest

from lfnlab import Policer, Queue, Scenario, compare, dumbbell, execute

if TYPE_CHECKING:
    from pathlib import Path

GRAMMAR = "grammar:gate=4:heavy=0.015625"
"""The point of the grammar that ebb began as."""


def path(rate: str, rtt: str, buffer: str, loss: float | None = None) -> Scenario:
    return dumbbell(rate=rate, rtt=rtt, buffer=buffer, loss=loss, duration="20s")


@pytest.mark.parametrize(
    "quiet",
    [
        path("100Mbit/s", "40ms", "1bdp"),
        path("400Mbit/s", "20ms", "0.1bdp"),
        path("50Mbit/s", "200ms", "0.2bdp"),
        path("20Mbit/s", "10ms", "4 packets"),
        path("200Mbit/s", "80ms", "64 packets"),
        path("40Mbit/s", "300ms", "0.5bdp"),
    ],
    ids=lambda one: f"{one.link.rate} {one.link.queue.size}",
)
def test_on_a_path_without_random_loss_it_is_cubic_bit_for_bit(
    quiet: Scenario, tmp_path: Path
) -> None:
    cubic, ebb = compare(["cubic", "ebb"], quiet, seeds=1, out=tmp_path).runs
    assert cubic.summary["flows"][0]["loss_events"] > 0
    assert cubic.summary["hash"] == ebb.summary["hash"]


def test_at_random_loss_it_is_a_point_of_the_grammar(tmp_path: Path) -> None:
    """The grammar rounds 0.7 otherwise, and times to nanoseconds."""
    lossy = path("200Mbit/s", "60ms", "0.5bdp", loss=1e-4)
    ebb, point, cubic = compare(["ebb", GRAMMAR, "cubic"], lossy, seeds=1, out=tmp_path).runs
    assert ebb.goodputs[0] == pytest.approx(point.goodputs[0], rel=0.01)
    assert ebb.goodputs[0] > 3 * cubic.goodputs[0]


def test_a_neighbour_at_random_loss_keeps_what_it_had(tmp_path: Path) -> None:
    """Two flows that random loss holds down leave most of the link free."""
    lossy = path("100Mbit/s", "40ms", "1bdp", loss=1e-3)
    beside = {
        law: execute(lossy.flow(law).flow("cubic"), seeds=1, out=tmp_path).runs[0].goodputs
        for law in ("cubic", "ebb")
    }
    assert beside["ebb"][1] > 0.8 * beside["cubic"][1]
    assert beside["ebb"][0] > 3 * beside["cubic"][0]


def test_a_buffer_of_less_than_the_gate_is_shared_as_by_cubic(tmp_path: Path) -> None:
    """An ACK that the receiver delayed by 40 ms is no queue of 40 ms."""
    shallow = path("200Mbit/s", "80ms", "64 packets")
    pairs = [
        shallow.flow(law, start="uniform(0s, 1s)").flow("cubic", start="uniform(0s, 1s)")
        for law in ("cubic", "ebb")
    ]
    cubic, ebb = (execute(pair, seeds=1, out=tmp_path).runs[0] for pair in pairs)
    assert cubic.summary["hash"] == ebb.summary["hash"]


@pytest.mark.parametrize(
    "short",
    [
        path("42Mbit/s", "19ms", "5 packets"),
        path("20Mbit/s", "40ms", "9 packets"),
        path("400Mbit/s", "20ms", "33 packets"),
    ],
    ids=lambda one: one.link.queue.size,
)
def test_in_a_buffer_of_a_few_packets_a_neighbour_keeps_what_it_had(
    short: Scenario, tmp_path: Path
) -> None:
    """The queue that dropped one packet is empty again when the next ones arrive."""
    kept = {}
    for law in ("cubic", "ebb"):
        pair = short.flow(law, start="uniform(0s, 0.1s)").flow("cubic", start="uniform(0s, 0.1s)")
        runs = execute(pair, seeds=10, out=tmp_path).runs
        kept[law] = fmean(run.goodputs[1] for run in runs)
    assert kept["ebb"] > 0.85 * kept["cubic"]


def test_where_red_drops_before_there_is_a_queue_a_neighbour_keeps_what_it_had(
    tmp_path: Path,
) -> None:
    """At a short RTT a queue of less than the gate may be a full one."""
    deep = path("93Mbit/s", "10ms", "1bdp")
    assert deep.link is not None
    early = replace(deep, link=replace(deep.link, queue=Queue(kind="red", size="1bdp")))
    kept = {
        law: fmean(
            run.goodputs[1]
            for run in execute(early.flow(law).flow("cubic"), seeds=5, out=tmp_path).runs
        )
        for law in ("cubic", "ebb")
    }
    assert kept["ebb"] > 0.9 * kept["cubic"]


def test_in_a_policer_it_leaves_a_cubic_its_half(tmp_path: Path) -> None:
    """A policer drops without a queue, and many at once."""
    open_path = path("100Mbit/s", "40ms", "1bdp")
    assert open_path.link is not None
    policed = replace(
        open_path, link=replace(open_path.link, policer=Policer(rate="50Mbit/s", burst="250kB"))
    )
    pair = policed.flow("ebb", start="uniform(0s, 1s)").flow("cubic", start="uniform(0s, 1s)")
    for run in execute(pair, seeds=3, out=tmp_path).runs:
        own, other = run.goodputs
        assert 0.3 < own / (own + other) < 0.6
