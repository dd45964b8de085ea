"""Paths and flows of an evaluation: a law at a place, beside another one where there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lfnlab.errors import ScenarioError
from lfnlab.evaluate.subjects import Subject
from lfnlab.scenario.builder import Scenario, dumbbell
from lfnlab.scenario.elements import (
    AckImpair,
    Application,
    Burst,
    Change,
    GilbertElliott,
    Jitter,
    OnOff,
    Policer,
    Queue,
    Reorder,
    ShortFlows,
    Traffic,
    Udp,
)

START = "uniform(0s, 1s)"
"""Of the long flows: runs of different seeds differ, so that intervals exist."""
MEDIA = "1Mbit/s"


@dataclass(frozen=True)
class Place:
    """A path: rate, base RTT, buffer, length of a run, and what is special there."""

    rate: str
    rtt: str
    buffer: str
    duration: str = "40s"
    warmup: str = "10s"
    special: str = ""

    def __str__(self) -> str:
        rate = self.rate.replace("bit", " bit").replace("M bit", " Mbit").replace("k bit", " kbit")
        rate = rate.replace("G bit", " Gbit")
        buffer = self.buffer.replace("bdp", " BDP")
        path = f"{rate} × {self.rtt.replace('ms', ' ms')}, buffer {buffer}"
        return f"{path}, {self.special}" if self.special else path

    def empty(self) -> Scenario:
        """The path without flows."""
        return dumbbell(
            rate=self.rate,
            rtt=self.rtt,
            buffer=self.buffer,
            duration=self.duration,
            warmup=self.warmup,
            sample="100ms",
        )


Build = Callable[[Subject, Place, Subject], Sequence[Scenario]]
"""The scenarios of one figure: of a law at a place, beside another one where there is one."""


def alone(count: int = 1, **settings: Any) -> Build:
    """So many flows of the law, and nothing else."""

    def build(who: Subject, place: Place, _: Subject) -> Sequence[Scenario]:
        return [who.flow(place.empty(), count=count, start=START, **settings)]

    return build


def changed(change: Callable[[Scenario, Place], Scenario]) -> Build:
    """One flow of the law on a path that is changed."""

    def build(who: Subject, place: Place, _: Subject) -> Sequence[Scenario]:
        return [who.flow(change(place.empty(), place), start=START)]

    return build


def link(scenario: Scenario, **settings: Any) -> Scenario:
    """The scenario with other settings of its bottleneck."""
    assert scenario.link is not None
    return replace(scenario, link=replace(scenario.link, **settings))


def pair(who: Subject, place: Place, other: Subject) -> Sequence[Scenario]:
    """The law's flow and the other one."""
    return [other.flow(who.flow(place.empty(), start=START), start=START)]


def pair_and_alone(who: Subject, place: Place, other: Subject) -> Sequence[Scenario]:
    """The law's flow and the other one; the other one alone."""
    return [*pair(who, place, other), other.flow(place.empty(), start=START)]


def newcomer(who: Subject, place: Place, _: Subject) -> Sequence[Scenario]:
    """A flow, and a second one 14 s later."""
    first = who.flow(place.empty(), start=START)
    return [who.flow(first, start="uniform(14s, 15s)")]


def two_rtts(who: Subject, place: Place, _: Subject) -> Sequence[Scenario]:
    """Two flows, the second with four times the RTT."""
    rtt_ms = int(place.rtt.removesuffix("ms"))
    short = who.flow(place.empty(), start=START)
    return [who.flow(short, rtt=f"{4 * rtt_ms}ms", start=START)]


def short(who: Subject, scenario: Scenario, place: Place) -> Scenario:
    """The scenario with short flows of a law, which have a fifth of the link's rate."""
    if who.udt:
        raise ScenarioError(
            who.label, "short flows of a model of traffic are TCP's", "traffic[0].law"
        )
    load = f"{float(place.rate.removesuffix('Mbit/s')) / 5:g}Mbit/s"
    return who.on(scenario).with_traffic(Traffic(law=who.law, short_flows=ShortFlows(load=load)))


def short_beside_long(who: Subject, place: Place, _: Subject) -> Sequence[Scenario]:
    """A long flow and short ones of the law."""
    return [short(who, who.flow(place.empty(), start=START), place)]


def short_others(who: Subject, place: Place, other: Subject) -> Sequence[Scenario]:
    """A long flow of the law, short ones of the other."""
    return [short(other, who.flow(place.empty(), start=START), place)]


def long_other(who: Subject, place: Place, other: Subject) -> Sequence[Scenario]:
    """A long flow of the other, short ones of the law."""
    return [short(who, other.flow(place.empty(), start=START), place)]


def media(who: Subject, place: Place, _: Subject) -> Sequence[Scenario]:
    """A flow beside UDP of a constant rate."""
    talk = Udp(name="media", packet="500B", bursts=(Burst(rate=MEDIA),))
    return [who.flow(place.empty(), start=START).with_udp(talk)]


def talk(who: Subject, place: Place, _: Subject) -> Sequence[Scenario]:
    """A flow beside UDP sources that talk and pause."""
    sources = OnOff(sources=10, rate="200kbit/s")
    media = Udp(name="media", packet="500B", on_off=sources)
    return [who.flow(place.empty(), start=START).with_udp(media)]


def queue(who: Subject, place: Place, _: Subject, *, ecn: bool = False) -> Sequence[Scenario]:
    """A flow at a queue of the kind that the place names."""
    kind: Any = place.special.partition(" ")[0]
    # DualPI2 marks without being told to.
    queue = Queue(kind=kind, size=place.buffer, ecn=(ecn and kind != "dualpi2") or None)
    return [who.flow(link(place.empty(), queue=queue), start=START, ecn=ecn or None)]


def marking(who: Subject, place: Place, other: Subject) -> Sequence[Scenario]:
    """A flow with ECN at a queue that marks."""
    return queue(who, place, other, ecn=True)


def tunnel(who: Subject, place: Place, other: Subject) -> Sequence[Scenario]:
    """A flow with ECN at a queue that marks, behind which a tunnel loses the marks."""
    return [link(scenario, bleach=True) for scenario in marking(who, place, other)]


def policed(scenario: Scenario, _: Place) -> Scenario:
    """A fifth of the link's 100 Mbit/s passes."""
    return link(scenario, policer=Policer(rate="20Mbit/s", burst="100kB"))


def pauses(who: Subject, place: Place, _: Subject) -> Sequence[Scenario]:
    """A flow whose application is active for two of five seconds."""
    application = Application(rate=place.rate, on="2s", off="3s")
    return [who.flow(place.empty(), start=START, application=application)]


CHEATS = {
    "splits ACKs": "splits-acks",
    "acknowledges too early": "optimistic",
    "hides marks": "hides-marks",
}
"""Words for a cheat of a receiver, and its name in a scenario."""


def cheated(who: Subject, place: Place, _: Subject) -> Sequence[Scenario]:
    """Two flows, the first with a receiver that cheats."""
    how = CHEATS[place.special.removeprefix("a receiver that ")]
    ecn = how == "hides-marks" or None
    path = place.empty()
    if ecn:
        path = link(path, queue=Queue(kind="codel", size=place.buffer, ecn=True))
    cheat = who.flow(path, start=START, ecn=ecn, misbehaves=how, receive_window="2000 packets")
    return [who.flow(cheat, start=START, ecn=ecn)]


def outage(link: str) -> Callable[[Scenario, Place], Scenario]:
    """A link that fails after 12 s."""

    def change(scenario: Scenario, _: Place) -> Scenario:
        return scenario.with_changes(Change(at="12s", link=link, down=True))

    return change


def wireless(scenario: Scenario, place: Place) -> Scenario:
    """A radio link: loss, jitter, ACKs or changes of the rate, as the place names them."""
    if place.special.startswith("ACKs"):
        return link(scenario, acks=AckImpair(aggregate="10ms"))
    if place.special.endswith("ACKs lost"):
        return link(scenario, acks=AckImpair(loss=0.1))
    if place.special.startswith("random"):
        return link(scenario, loss=1e-3)
    if place.special.startswith("loss in"):
        return link(scenario, loss=GilbertElliott(p=2e-4, r=0.1))
    if place.special.startswith("jitter"):
        return link(scenario, jitter=Jitter(low="0ms", high="10ms"))
    rates = [("10s", 0.3), ("15s", 1.0), ("20s", 0.5), ("25s", 0.8), ("30s", 0.3), ("35s", 1.0)]
    mbps = float(place.rate.removesuffix("Mbit/s"))
    return scenario.with_changes(
        *(Change(at=at, link="forward", rate=f"{mbps * part:g}Mbit/s") for at, part in rates)
    )


def longer_path(scenario: Scenario, _: Place) -> Scenario:
    """60 ms more from 15 to 25 s."""
    return scenario.with_changes(
        Change(at="15s", link="forward", delay="60ms"), Change(at="25s", link="forward", delay="0s")
    )


def rate_step(scenario: Scenario, place: Place) -> Scenario:
    """Another rate from 15 s on."""
    mbps = float(place.rate.removesuffix("Mbit/s"))
    factor = 0.2 if place.special.startswith("a fifth") else 4.0
    changed = f"{mbps * factor:g}Mbit/s"
    return scenario.with_changes(Change(at="15s", link="forward", rate=changed))


def burst(scenario: Scenario, place: Place) -> Scenario:
    """UDP with 90 % of the rate from 15 to 18 s."""
    mbps = float(place.rate.removesuffix("Mbit/s"))
    burst = Burst(start="15s", stop="18s", rate=f"{0.9 * mbps:g}Mbit/s")
    return scenario.with_udp(Udp(name="burst", bursts=(burst,)))


def late(scenario: Scenario, _: Place) -> Scenario:
    """1 in 20 packets is 15 ms late."""
    return link(scenario, reorder=Reorder(p=0.05, delay="15ms"))


INCAST = 32


def incast(who: Subject, place: Place, _: Subject) -> Sequence[Scenario]:
    """Many flows of 64 kB that start together."""
    return [who.flow(place.empty(), count=INCAST, size="64kB", start="uniform(0s, 1ms)")]
