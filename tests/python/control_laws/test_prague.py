"""Prague in the simulator: marks, short queues, RTTs, losses, and the field that it sends."""

from __future__ import annotations

from dataclasses import replace
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


def classic_part(found: Run, from_s: float = 0.0, to_s: float = 1e9) -> float:
    """The part of the samples in which the first flow answers as CUBIC."""
    probes = found.table("probes").filter(flow=0, probe=4)
    values = probes.filter(probes["t_s"].is_between(from_s, to_s))["value"].to_list()
    return sum(values) / len(values)


@pytest.mark.parametrize("law", ["prague:fallback", "prague:steady:fallback=1"])
@pytest.mark.parametrize("kind", ["codel", "pie"])
def test_in_a_classic_queue_the_fallback_shares(kind: str, law: str, tmp_path: Path) -> None:
    def share(name: str) -> tuple[Run, float]:
        queue = Queue(kind=kind, size="1.25MB", ecn=True)  # type: ignore[arg-type]
        scenario = replace(path(queue), sample="100ms").flow(name).flow("cubic", ecn=True)
        found = run(scenario, tmp_path)
        own, other = found.goodputs
        return found, own / (own + other)

    found, shared = share(law)
    assert 0.4 < shared < 0.6
    assert classic_part(found, 20) == 1
    assert share("prague")[1] > 0.85


@pytest.mark.parametrize("rate", ["4Mbit/s", "40Mbit/s", "200Mbit/s"])
@pytest.mark.parametrize("rival", ["", "cubic"])
def test_in_a_queue_for_l4s_the_fallback_changes_nothing(
    rival: str, rate: str, tmp_path: Path
) -> None:
    hashes = set()
    for law in ("prague", "prague:fallback"):
        scenario = replace(path(DUAL, rate=rate, duration="30s"), sample="100ms").flow(law)
        found = run(scenario.flow(rival) if rival else scenario, tmp_path)
        hashes.add(tuple(found.goodputs))
        if law != "prague":
            assert classic_part(found) == 0
    assert len(hashes) == 1


def test_it_is_prague_again_when_the_bottleneck_is_one_for_l4s(tmp_path: Path) -> None:
    # At 20 s the Classic queue stops to be the bottleneck; then marks are seconds apart.
    scenario = Scenario.from_toml("""
        schema = 1
        duration = "60s"
        sample = "100ms"
        [[links]]
        name = "old"
        from = "a"
        to = "b"
        rate = "40Mbit/s"
        delay = "5ms"
        queue = { kind = "codel", ecn = true, size = "1MB" }
        [[links]]
        name = "new"
        from = "b"
        to = "c"
        rate = "60Mbit/s"
        delay = "5ms"
        queue = { kind = "dualpi2", size = "1MB" }
        [[flow]]
        law = "prague:fallback"
        from = "a"
        to = "c"
        [[schedule]]
        at = "20s"
        link = "old"
        rate = "1Gbit/s"
        """)
    found = run(scenario, tmp_path)
    assert classic_part(found, 10, 20) == 1
    assert classic_part(found, 45, 60) == 0


def test_ect1_needs_ecn(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"flow\[0\]\.l4s: ECT\(1\) of a flow without ECN"):
        run(path(DUAL).flow("prague", ecn=False, l4s=True), tmp_path)
