"""A strictly typed program that uses every public name. test_typing.py checks and runs it."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import assert_type

import polars as pl

import lfnlab
from lfnlab import (
    Ack,
    AckImpair,
    Application,
    Background,
    Breaker,
    Burst,
    Capture,
    Case,
    Change,
    Choice,
    Controller,
    ControllerAck,
    ControllerConfig,
    ControllerPacket,
    DamageWarning,
    Design,
    Draws,
    File,
    Flow,
    GilbertElliott,
    Jitter,
    JudgePath,
    LabError,
    Law,
    LawError,
    LawInfo,
    Link,
    Loss,
    NamedLink,
    OnOff,
    Packmime,
    ParkingLot,
    Policer,
    PrototypeError,
    Queue,
    Range,
    Reorder,
    Requests,
    Results,
    Reverse,
    Router,
    Run,
    Scenario,
    ScenarioError,
    Score,
    SeedsWarning,
    Shaper,
    ShortFlows,
    Sizes,
    Steps,
    StoreError,
    Suite,
    Surge,
    Sweep,
    Traffic,
    Udp,
    Unavailable,
    Vectors,
    Webtraf,
    attack,
    compare,
    dumbbell,
    execute,
    graph,
    law,
    laws,
    parking_lot,
    score,
    sweep,
)
from lfnlab.attacker import Weakness


class Half(Law):
    """A law in Python."""

    def on_ack(self, n: int, ack: Ack) -> None:
        assert_type(ack.rtt_s, float | None)
        self.cwnd += n / self.cwnd

    def on_loss(self, loss: Loss) -> None:
        assert_type(loss.inflight, int)
        self.ssthresh = max(self.cwnd / 2, 2)


class Kept(Controller):
    """A controller in Python."""

    def __init__(self, config: ControllerConfig) -> None:
        assert_type(config.srtt_ns, int | None)
        self.window_bytes = 100 * config.packet_bytes

    def lost(self, packet: ControllerPacket) -> None:
        assert_type(packet.number, int)

    def ack(self, ack: ControllerAck) -> None:
        assert_type(ack.rtt_ns, int | None)


def scenarios() -> list[Scenario]:
    """Every kind of part; what none of these can run, is built."""
    others: list[object] = [
        *(Shaper(rate="1Mbit/s", burst="9kB"), Router(kind="xcp"), File(path="a.csv")),
        *(Steps(each="1s", rates=("1Mbit/s",)), OnOff(sources=1), Vectors(file="a.csv")),
        *(Packmime(connections=1.0), Webtraf(sessions=1), Surge(users=1)),
        Suite(load="1Mbit/s", reverse_load="1Mbit/s", rtts=("10ms",)),
    ]
    assert len(others) == 10
    link = Link(
        rate="10Mbit/s",
        delay="1ms",
        loss=GilbertElliott(p=0.001, r=0.5),
        reorder=Reorder(p=0.01, delay="1ms"),
        policer=Policer(rate="20Mbit/s", burst="90kB"),
        queue=Queue(size="50 packets"),
        reverse=Reverse(delay="1ms", acks=AckImpair(jitter=Jitter(low="0ms", high="1ms"))),
    )
    flow = Flow(law="reno", rtt="20ms", breakers=(Breaker(loss=0.9),))
    sizes = Requests(load="100kbit/s", response=Sizes(mean="9kB", shape=1.5))
    rich = Scenario(
        duration="1s",
        link=link,
        flows=(flow, Flow(law=Half, rtt="20ms", application=Application(rate="1Mbit/s"))),
        udp=(Udp(bursts=(Burst(rate="100kbit/s", stop="0.5s"),)),),
        background=Background(level=1),
        traffic=(Traffic(requests=sizes), Traffic(short_flows=ShortFlows(load="100kbit/s"))),
        schedule=(Change(at="0.5s", link="forward", rate="5Mbit/s"),),
        capture=Capture(max_rows=9),
    )
    lot = parking_lot(hops=2, rate="10Mbit/s", delay="1ms", buffer="9 packets", duration="1s")
    assert_type(lot.parking_lot, ParkingLot | None)
    named = NamedLink(name="ab", from_="a", to="b", rate="10Mbit/s", delay="1ms")
    return [rich, lot.flow("cubic"), graph(named, duration="1s").flow("reno", from_="a", to="b")]


def of_results(results: Results) -> None:
    """Results, runs and frames."""
    assert_type(results.frame(), pl.DataFrame)
    assert_type(results.table(), pl.DataFrame)
    run = results.runs[0]
    assert_type(run, Run)
    flow = run.summary["flows"][0]
    assert_type(flow["goodput_bps"], float | None)
    assert_type(run.table("flows"), pl.DataFrame)
    assert_type(run.by_law()[0]["retransmits"], int)
    assert_type(results.rows()[0]["goodput_bps"], float)
    assert run.probes(flow["law"]) == ()


def main(out: Path) -> None:
    """Everything once."""
    info = law("cubic")
    assert_type(info, LawInfo)
    assert info in laws()
    for scenario in scenarios():
        assert_type(scenario.check().flows[0].rtt, str | tuple[str, ...] | None)
        assert_type(scenario.predict()["events"], int)
    base = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeedsWarning)
        warnings.simplefilter("error", DamageWarning)
        of_results(compare(["reno", Half], base, seeds=2, out=out, count=2))
    assert_type(execute([Case(base.flow("reno"), {"n": 1})], out=out), Results)
    design = Design(random=Draws(2, {"flow[0].rtt": Range("10ms", "20ms")}))
    assert_type(Sweep(base.flow("reno"), design).run(out=out), Results)
    of_law = Draws(1, {"flow[0].law": Choice(["reno"])})
    assert sweep(base.flow("cubic"), random=of_law, out=out, jobs=1).completeness is None
    on = [JudgePath("10Mbit/s", "20ms", "1bdp")]
    assert_type(score("reno", paths=on, seeds=1, axes=["goodput-0-0"]), Score)
    assert_type(lfnlab.open(out).summary(), pl.LazyFrame)
    assert_type(attack("reno", runs=100).weaknesses, tuple[Weakness, ...])
    for error in (LawError, PrototypeError, ScenarioError, StoreError, Unavailable):
        assert issubclass(error, LabError)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
