"""Prague in the simulator: marks, short queues, RTTs, losses, and the field that it sends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lfnlab import Capture, Link, Queue, Scenario, ScenarioError, execute

if TYPE_CHECKING:
    from pathlib import Path

    from lfnlab import Run

ECT1 = 64


def path(queue: Queue, *, rate: str = "40Mbit/s", duration: str = "60s") -> Scenario:
    """A link with a queue, without flows; the first third is the warm-up."""
    seconds = int(duration.removesuffix("s"))
    return Scenario(
        duration=duration,
        warmup=f"{seconds // 3}s",
        sample="off",
        link=Link(rate=rate, queue=queue),
        default_rtt="20ms",
    )


DUAL = Queue(kind="dualpi2", size="1.25MB")


def run(scenario: Scenario, tmp_path: Path) -> Run:
    """Its one run."""
    (found,) = execute(scenario, out=tmp_path / "runs").runs
    return found


@pytest.mark.parametrize("rate", ["40Mbit/s", "200Mbit/s"])
@pytest.mark.parametrize("law", ["prague", "prague:steady"])
def test_alone_it_fills_the_link_with_a_short_queue(law: str, rate: str, tmp_path: Path) -> None:
    summary = run(path(DUAL, rate=rate).flow(law), tmp_path).summary
    link, marks = summary["links"][0], summary["flows"][0]["marks"]
    # AccECN: what arrives is what the sender is told of, up to the ACKs under way.
    assert 0 <= marks["arrived"] - marks["told"] < 50
    l4s = link["classes"]["l4s"]
    assert link["utilization"] > 0.97
    assert l4s["p99_queue_s"] < 2e-3
    assert l4s["drops"] == 0
    assert l4s["marks"] > 100
    assert link["classes"]["classic"]["packets"] == 0


def test_beside_cubic_both_have_their_own_delay(tmp_path: Path) -> None:
    found = run(path(DUAL).flow("prague").flow("cubic"), tmp_path)
    classes = found.summary["links"][0]["classes"]
    assert classes["l4s"]["p99_queue_s"] < 2e-3
    assert classes["classic"]["mean_queue_s"] == pytest.approx(0.015, rel=0.2)
    prague, cubic = found.goodputs
    assert 0.35 < prague / (prague + cubic) < 0.67


@pytest.mark.parametrize(
    ("law", "low", "high"),
    [("prague:linux", 0.6, 1.5), ("prague:steady", 0.6, 1.5), ("dctcp", 3, 100)],
)
def test_below_25_ms_the_rtt_hardly_counts(
    law: str, low: float, high: float, tmp_path: Path
) -> None:
    # RFC 9331, section 4.3, item 4. DCTCP takes most of what the longer RTT cannot defend.
    scenario = path(DUAL).flow(law, rtt="5ms", l4s=True).flow(law, rtt="20ms", l4s=True)
    near, far = run(scenario, tmp_path).goodputs
    assert low < near / far < high


def test_without_marks_it_is_reno(tmp_path: Path) -> None:
    # RFC 9331, section 4.3, item 2: it coexists with Reno, and gets alone what Reno gets.
    queue = Queue(size="0.5bdp")
    prague, reno = run(
        path(queue, duration="300s").flow("prague").flow("reno", pacing=True), tmp_path
    ).goodputs
    assert 0.4 < prague / (prague + reno) < 0.6
    lossy = Scenario(
        duration="300s",
        warmup="30s",
        sample="off",
        link=Link(rate="1Gbit/s", loss=1e-3),
        default_rtt="20ms",
    )
    alone = [run(lossy.flow(law), tmp_path).goodputs[0] for law in ("prague", "reno")]
    assert alone[0] == pytest.approx(alone[1], rel=0.1)


@pytest.mark.parametrize(
    ("law", "settings", "ect1"),
    [
        ("prague", {}, True),
        ("prague", {"ecn": False}, False),
        ("prague", {"l4s": False}, False),
        ("dctcp", {}, False),
        ("dctcp", {"l4s": True}, True),
        ("cubic", {"ecn": True}, False),
    ],
)
def test_data_are_ect1(law: str, settings: dict[str, bool], ect1: bool, tmp_path: Path) -> None:
    scenario = path(DUAL, duration="3s").flow(law, **settings).with_capture(Capture())
    rows = run(scenario, tmp_path).table("packets")
    data = rows.filter(rows["kind"] == 0)
    assert data.height > 100
    assert ((data["flags"] & ECT1) > 0).to_list() == [ect1] * data.height


def test_without_accecn_marks_come_back_as_echoes(tmp_path: Path) -> None:
    by_echo = run(path(DUAL, duration="9s").flow("prague", accecn="off"), tmp_path).summary
    assert "marks" not in by_echo["flows"][0]
    assert by_echo["links"][0]["classes"]["l4s"]["marks"] > 10


def test_ect1_needs_ecn(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"flow\[0\]\.l4s: ECT\(1\) of a flow without ECN"):
        run(path(DUAL).flow("prague", ecn=False, l4s=True), tmp_path)
