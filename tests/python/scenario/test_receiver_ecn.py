"""Ends that differ in ECN: what they agree on (RFC 9768, table 2), and runs that must be alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from lfnlab import Capture, Change, Link, Queue, Scenario, execute

if TYPE_CHECKING:
    from pathlib import Path

    from lfnlab import Run

DATA, ACK, SYN, SYN_ACK, THIRD = 0, 1, 5, 6, 7
CE, ECE, CWR, AE = 2, 4, 8, 128
ACCECN, CLASSIC = AE | CWR | ECE, CWR | ECE
QUEUES = {
    "dualpi2": Queue(kind="dualpi2", size="300kB"),
    "red": Queue(kind="red", size="300kB", ecn=True),
    "codel": Queue(kind="codel", size="300kB", ecn=True, ce_threshold="1ms"),
    "fq-codel": Queue(kind="fq-codel", size="300kB", ecn=True),
}


def path(queue: str, **keys: Any) -> Scenario:
    """A link that marks, without flows; packets are recorded."""
    link = Link(rate="20Mbit/s", queue=QUEUES[queue], **keys)
    return Scenario(duration="4s", link=link, default_rtt="20ms", capture=Capture())


def run(scenario: Scenario, tmp_path: Path) -> Run:
    """Its one run."""
    (found,) = execute(scenario, out=tmp_path / "runs").runs
    return found


def packets(found: Run, *kinds: int) -> pl.DataFrame:
    """Packets of these kinds as they arrive at a queue."""
    table = found.table("packets")
    return table.filter((pl.col("point") == 0) & pl.col("kind").is_in(kinds))


def figures(found: Run) -> tuple[Any, ...]:
    """Everything but the flags of the handshake, and what the summary says of it."""
    summary = dict(found.summary)
    flows = [{key: flow[key] for key in flow if key != "ecn"} for flow in summary["flows"]]
    without = pl.when(pl.col("kind") >= SYN).then(0).otherwise(pl.col("flags"))
    recorded = found.table("packets").with_columns(flags=without)
    return flows, summary["links"], summary["hash"], recorded.rows(), found.table("flows").rows()


@pytest.mark.parametrize(
    ("asks", "able", "flags", "agreed"),
    [
        ("counter", "accecn", (ACCECN, CWR, CWR), "accecn"),
        ("option", "classic", (ACCECN, ECE, 0), "classic"),
        ("counter", "off", (ACCECN, 0, 0), "off"),
        ("off", "accecn", (CLASSIC, ECE, 0), "classic"),
        ("off", "classic", (CLASSIC, ECE, 0), "classic"),
        ("off", "off", (CLASSIC, 0, 0), "off"),
    ],
)
def test_each_row_of_the_table(
    asks: str, able: str, flags: tuple[int, ...], agreed: str, tmp_path: Path
) -> None:
    scenario = path("red").flow("cubic", ecn=True, accecn=asks, receiver_ecn=able, size="2MB")
    found = run(scenario, tmp_path)
    shake = packets(found, SYN, SYN_ACK, THIRD)
    assert shake["flags"].to_list() == [flag | 32 for flag in flags]
    (flow,) = found.summary["flows"]
    assert flow["ecn"] == agreed
    assert ("marks" in flow) == (agreed == "accecn")
    assert (found.summary["links"][0]["marks"] > 0) == (agreed != "off")


@pytest.mark.parametrize("queue", QUEUES)
def test_an_older_receiver_makes_the_run_an_older_one(queue: str, tmp_path: Path) -> None:
    def of(**keys: Any) -> tuple[Any, ...]:
        scenario = path(queue, acks={"loss": 0.2}) if queue == "red" else path(queue)
        return figures(run(scenario.flow("cubic", **keys), tmp_path))

    classic, none = of(ecn=True), of()
    assert classic != none
    for asks in ("off", "counter", "option"):
        assert of(ecn=True, accecn=asks, receiver_ecn="classic") == classic, asks
        assert of(ecn=True, accecn=asks, receiver_ecn="off") == none, asks
    assert of(ecn=True, receiver_ecn="accecn") == classic
    counted = of(ecn=True, accecn="counter")
    assert of(ecn=True, accecn="counter", receiver_ecn="accecn") == counted != classic


def test_a_classic_receiver_repeats_a_mark_until_the_window_is_reduced(tmp_path: Path) -> None:
    scenario = path("red").flow("cubic", ecn=True, accecn="counter", receiver_ecn="classic")
    found = run(scenario, tmp_path)
    assert found.table("packets").filter(pl.col("kind") == DATA)["flags"].max() < AE
    (flow,) = found.summary["flows"]
    echoes = packets(found, ACK)["flags"].to_numpy() & ECE > 0
    begun = int((echoes[1:] & ~echoes[:-1]).sum())
    told = packets(found, DATA).filter(pl.col("flags") & CWR > 0).height
    # A mark, an echo of a round trip, a reduction, a segment that tells so (RFC 3168, section 6.1).
    assert flow["retransmits"] == 0
    assert begun == told == flow["loss_events"] > 2
    assert echoes.sum() > 10 * begun


@pytest.mark.parametrize("keys", [{}, {"accecn": "counter"}, {"accecn": "off"}])
@pytest.mark.parametrize("able", ["classic", "off"])
def test_prague_is_a_reno_without_ecn(able: str, keys: dict[str, str], tmp_path: Path) -> None:
    """Its draft, section 2.3.1: Reno-friendly and no ECT(1) where the peer has no AccECN."""
    scenario = path("dualpi2").flow("prague", receiver_ecn=able, **keys)
    alone = path("dualpi2").flow("prague", ecn=False)
    found = run(scenario, tmp_path)
    assert figures(found) == figures(run(alone, tmp_path))
    assert found.summary["links"][0]["classes"]["l4s"]["packets"] == 0
    assert found.summary["flows"][0]["ecn"] == "off"


def test_dctcp_takes_the_echo_of_a_round_trip_for_marks(tmp_path: Path) -> None:
    """Its alpha is too high before a receiver that does not speak RFC 8257, so cuts are deeper."""

    def of(**keys: Any) -> Run:
        return run(path("red").flow("dctcp", **keys), tmp_path)

    both, one = of(), of(receiver_ecn="classic")
    assert (both.summary["flows"][0]["ecn"], one.summary["flows"][0]["ecn"]) == ("dctcp", "classic")
    assert figures(of(accecn="counter", receiver_ecn="classic")) == figures(one)
    # Alpha begins at 1.
    later = (pl.col("probe") == 0) & (pl.col("t_s") > 1)
    alpha, too_high = (found.table("probes").filter(later)["value"] for found in (both, one))
    assert too_high.mean() > 3 * alpha.mean()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("asks", "lost", "agreed"),
    [("counter", 1, "classic"), ("counter", 2, "off"), ("off", 0, "classic"), ("off", 1, "off")],
)
def test_lost_syns(asks: str, lost: int, agreed: str, tmp_path: Path) -> None:
    """A SYN that the path may drop for its flags is repeated without: the third, or the second."""
    scenario = path("red", loss=0.999999, reverse={"loss": 0.0}).flow(
        "cubic", ecn=True, accecn=asks, receiver_ecn="classic", size="200kB"
    )
    scenario = scenario.with_changes(Change(at=f"{max(lost - 0.5, 0)}s", link="forward", loss=0.0))
    found = run(scenario, tmp_path)
    assert packets(found, SYN).height == lost + 1
    assert found.summary["flows"][0]["ecn"] == agreed


def test_a_path_that_erases_marks_hides_them_from_a_classic_receiver(tmp_path: Path) -> None:
    """Without the option nothing shows it: no echo comes, and the sender goes on with ECT."""
    scenario = path("red", bleach=True).flow(
        "cubic", ecn=True, accecn="option", receiver_ecn="classic"
    )
    found = run(scenario, tmp_path)
    assert found.summary["links"][0]["marks"] > 0
    assert not (packets(found, ACK)["flags"] & ECE > 0).any()
    assert found.summary["flows"][0]["ecn"] == "classic"
