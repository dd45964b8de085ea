"""Questions to a law: a path, the flows on it, one number of each run, and a bound.

RFC 9743 gives no bounds. Each bound here is this laboratory's: beyond it a figure is worth a
sentence, if the comparators do better on the same seeds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from lfnlab.evaluate import measures, scenarios
from lfnlab.evaluate.scenarios import Place
from lfnlab.scenario.elements import Breaker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lfnlab.evaluate.measures import Measure
    from lfnlab.evaluate.scenarios import Build


@dataclass(frozen=True)
class Question:
    """A figure to measure.

    Args:
        name: short, unique.
        what: the figure in words.
        flows: the flows in words.
        build: the scenarios.
        measure: the number.
        places: where; a quick evaluation takes the first ``quick``.
        bad: whether more or less is worse.
        bound: beyond it a figure can be a finding.
        unit, scale: of the printed figure.
        beside: whether the flow is beside one of each comparator.
        quick: how many places a quick evaluation has.
    """

    name: str
    what: str
    flows: str
    build: Build
    measure: Measure
    places: Sequence[Place]
    bad: Literal["more", "less"]
    bound: float
    unit: str = "%"
    scale: float = 100.0
    beside: bool = False
    quick: int = 1


def bound_of(question: Question) -> str:
    """The bound in words."""
    unit = f" {question.unit}" if question.unit else ""
    word = "at most" if question.bad == "more" else "at least"
    return f"{word} {question.bound * question.scale:.3g}{unit}"


MIXED = (
    Place("200Mbit/s", "40ms", "0.1bdp", "60s", "20s"),
    Place("50Mbit/s", "40ms", "2bdp", "60s", "20s"),
    Place("20Mbit/s", "20ms", "1bdp", "60s", "20s"),
    Place("100Mbit/s", "100ms", "0.5bdp", "90s", "30s"),
)
ONE = Place("50Mbit/s", "40ms", "1bdp")
FOUR_BUFFERS = tuple(Place("50Mbit/s", "40ms", f"{size}bdp") for size in (0.1, 0.25, 0.5, 1))
TWO_SECONDS_S, OUTAGE_END_S = 14.0, 40.0
"""A sender may find the outage out in two seconds."""

QUESTIONS = {
    question.name: question
    for question in (
        Question(
            "outage",
            "segments sent in each round trip from 2 s after the path failed",
            "one flow; the link fails after 12 s",
            scenarios.changed(scenarios.outage("forward")),
            measures.sent_in_outage(TWO_SECONDS_S, OUTAGE_END_S),
            (ONE, replace(ONE, rtt="200ms")),
            "more",
            1.0,
            "",
            1.0,
        ),
        Question(
            "no-feedback",
            "segments sent in each round trip from 2 s after the last ACK",
            "one flow; the link of the ACKs fails after 12 s",
            scenarios.changed(scenarios.outage("reverse")),
            measures.sent_in_outage(TWO_SECONDS_S, OUTAGE_END_S),
            (ONE, replace(ONE, rtt="200ms")),
            "more",
            1.0,
            "",
            1.0,
        ),
        Question(
            "crowd",
            "packets dropped where a flow's share is less than a packet in a round trip",
            "60 flows",
            scenarios.alone(60),
            measures.drop_rate,
            (Place("2Mbit/s", "100ms", "1bdp"), Place("5Mbit/s", "100ms", "1bdp")),
            "more",
            0.25,
        ),
        Question(
            "bufferbloat",
            "mean waiting time at the bottleneck, in base RTTs",
            "two flows",
            scenarios.alone(2),
            measures.queue_in_rtts,
            tuple(replace(ONE, buffer=f"{size}bdp") for size in (4, 1)),
            "more",
            1.0,
            "RTT",
            1.0,
        ),
        Question(
            "loss",
            "packets dropped",
            "four flows",
            scenarios.alone(4),
            measures.drop_rate,
            (*FOUR_BUFFERS, Place("200Mbit/s", "40ms", "0.1bdp")),
            "more",
            0.02,
            quick=2,
        ),
        Question(
            "policed",
            "packets dropped by a policer",
            "one flow; a policer of 20 Mbit/s with a burst of 100 kB",
            scenarios.changed(scenarios.policed),
            measures.drop_rate,
            (Place("100Mbit/s", "40ms", "1bdp"), Place("100Mbit/s", "10ms", "1bdp")),
            "more",
            0.05,
        ),
        Question(
            "pauses",
            "packets dropped",
            "one flow whose application is active for two of five seconds",
            scenarios.pauses,
            measures.drop_rate,
            (replace(ONE, buffer="0.25bdp"), ONE),
            "more",
            0.02,
        ),
        Question(
            "ended",
            "flows that a circuit breaker ended",
            "four flows; a breaker for each: more than 10 % lost in each of three seconds",
            scenarios.alone(4, breakers=(Breaker(loss=0.1),)),
            measures.tripped,
            (*FOUR_BUFFERS, Place("200Mbit/s", "40ms", "0.1bdp")),
            "more",
            0.1,
            quick=2,
        ),
        Question(
            "breaker",
            "largest share of packets dropped in each of three seconds in a row",
            "four flows",
            scenarios.alone(4),
            measures.dropped_in_a_row(3),
            (*FOUR_BUFFERS, Place("200Mbit/s", "40ms", "0.1bdp")),
            "more",
            0.1,
            quick=2,
        ),
        Question(
            "jain",
            "Jain's index of four flows",
            "four flows that start together",
            scenarios.alone(4),
            measures.jain,
            (*FOUR_BUFFERS[1:3], FOUR_BUFFERS[3]),
            "less",
            0.8,
            "",
            1.0,
        ),
        Question(
            "newcomer",
            "part of its fair share that a second flow has in its first 30 s",
            "a flow, and a second one 14 s later",
            scenarios.newcomer,
            measures.share_of_last,
            (
                Place("200Mbit/s", "40ms", "1bdp", "45s", "20s"),
                Place("100Mbit/s", "100ms", "1bdp", "45s", "20s"),
                Place("50Mbit/s", "40ms", "0.25bdp", "45s", "20s"),
            ),
            "less",
            0.25,
        ),
        Question(
            "rtt",
            "part of its fair share that a flow with four times the RTT has",
            "two flows of unequal RTT",
            scenarios.two_rtts,
            measures.share_of_last,
            (replace(ONE, rtt="20ms", duration="60s", warmup="20s"),),
            "less",
            0.1,
        ),
        Question(
            "short",
            "median completion time of flows below 100 kB, in base RTTs",
            "a long flow beside short ones with a fifth of the rate",
            scenarios.short_beside_long,
            measures.short_flow_rtts,
            (ONE, replace(ONE, buffer="0.25bdp"), replace(ONE, buffer="4bdp")),
            "more",
            10.0,
            "RTT",
            1.0,
        ),
        Question(
            "long-beside-short",
            "part of the link's rate that a long flow has beside short ones",
            "a long flow beside short ones with a fifth of the rate",
            scenarios.short_beside_long,
            measures.first_of_rate,
            (ONE, replace(ONE, buffer="0.25bdp")),
            "less",
            0.5,
        ),
        Question(
            "share",
            "part of the goodput that it has beside the other flow",
            "one flow beside one of the other law",
            scenarios.pair,
            measures.share_of_first,
            MIXED,
            "more",
            2 / 3,
            beside=True,
            quick=2,
        ),
        Question(
            "harm-rate",
            "harm to the other flow's goodput",
            "one flow beside one of the other law; the other law alone",
            scenarios.pair_and_alone,
            measures.harm_to_rate,
            MIXED,
            "more",
            0.75,
            "",
            1.0,
            beside=True,
            quick=2,
        ),
        Question(
            "harm-delay",
            "harm to the other flow's queueing delay",
            "one flow beside one of the other law; the other law alone",
            scenarios.pair_and_alone,
            measures.harm_to_delay,
            MIXED,
            "more",
            0.75,
            "",
            1.0,
            beside=True,
            quick=2,
        ),
        Question(
            "harm-loss",
            "harm to the other flow's loss",
            "one flow beside one of the other law; the other law alone",
            scenarios.pair_and_alone,
            measures.harm_to_loss,
            MIXED,
            "more",
            0.95,
            "",
            1.0,
            beside=True,
            quick=2,
        ),
        Question(
            "starves-other",
            "time in which the other flow has less than a tenth of its fair share",
            "one flow beside one of the other law",
            scenarios.pair,
            measures.starved(1),
            MIXED,
            "more",
            0.1,
            beside=True,
            quick=2,
        ),
        Question(
            "starves",
            "time in which it has itself less than a tenth of its fair share",
            "one flow beside one of the other law",
            scenarios.pair,
            measures.starved(0),
            MIXED,
            "more",
            0.1,
            beside=True,
            quick=2,
        ),
        Question(
            "media-delay",
            "99th percentile of the waiting time that media share",
            "one flow beside UDP of 1 Mbit/s",
            scenarios.media,
            measures.queue_p99_s,
            (Place("20Mbit/s", "40ms", "1bdp"), Place("20Mbit/s", "40ms", "4bdp")),
            "more",
            0.1,
            "ms",
            1e3,
        ),
        Question(
            "media-loss",
            "packets of media lost",
            "one flow beside UDP of 1 Mbit/s",
            scenarios.media,
            measures.media_loss,
            (Place("20Mbit/s", "40ms", "0.25bdp"), Place("20Mbit/s", "40ms", "1bdp")),
            "more",
            0.01,
        ),
        Question(
            "talk-delay",
            "99th percentile of the one-way delay of media that talk and pause",
            "one flow beside ten UDP sources of 200 kbit/s that are on and off",
            scenarios.talk,
            measures.media_delay_p99_s,
            (Place("20Mbit/s", "40ms", "1bdp"), Place("20Mbit/s", "40ms", "4bdp")),
            "more",
            0.1,
            "ms",
            1e3,
        ),
        Question(
            "short-others",
            "median completion time of the other law's flows below 100 kB, in base RTTs",
            "a long flow beside short ones of the other law with a fifth of the rate",
            scenarios.short_others,
            measures.short_flow_rtts,
            (ONE, replace(ONE, buffer="4bdp")),
            "more",
            10.0,
            "RTT",
            1.0,
            beside=True,
        ),
        Question(
            "long-others",
            "part of the link's rate that the other law's long flow has",
            "short flows with a fifth of the rate beside a long one of the other law",
            scenarios.long_other,
            measures.first_of_rate,
            (ONE, replace(ONE, buffer="0.25bdp")),
            "less",
            0.5,
            beside=True,
        ),
        Question(
            "tail-drop",
            "goodput, of what the link can carry",
            "one flow",
            scenarios.alone(),
            measures.efficiency,
            (
                Place("100Mbit/s", "40ms", "0.1bdp"),
                Place("10Mbit/s", "20ms", "1bdp"),
                Place("100Mbit/s", "100ms", "0.25bdp", "60s"),
                Place("1Gbit/s", "20ms", "0.5bdp", "30s"),
            ),
            "less",
            0.6,
        ),
        Question(
            "wired",
            "goodput, of what the link can carry",
            "one flow, no loss except of the queue",
            scenarios.alone(),
            measures.efficiency,
            (Place("100Mbit/s", "20ms", "1bdp"), Place("500Mbit/s", "10ms", "1bdp", "30s")),
            "less",
            0.8,
        ),
        Question(
            "wireless",
            "goodput, of what the link can carry",
            "one flow",
            scenarios.changed(scenarios.wireless),
            measures.efficiency,
            (
                replace(ONE, special="random loss of 1 in 1000"),
                replace(ONE, special="loss in bursts of 10, 1 in 500 packets"),
                replace(ONE, special="jitter of up to 10 ms"),
                replace(ONE, special="ACKs that go on together each 10 ms"),
                replace(ONE, special="1 in 10 ACKs lost"),
                replace(ONE, special="a rate that changes between 0.3 and 1", duration="45s"),
            ),
            "less",
            0.25,
            quick=5,
        ),
        Question(
            "aqm",
            "goodput, of what the link can carry",
            "one flow",
            scenarios.queue,
            measures.efficiency,
            tuple(
                replace(ONE, special=kind, buffer="4bdp")
                for kind in ("fq-codel", "pie", "codel", "red")
            ),
            "less",
            0.6,
            quick=2,
        ),
        Question(
            "aqm-delay",
            "99th percentile of the waiting time",
            "four flows",
            scenarios.queue,
            measures.queue_p99_s,
            tuple(replace(ONE, special=kind, buffer="4bdp") for kind in ("pie", "codel", "red")),
            "more",
            0.1,
            "ms",
            1e3,
        ),
        Question(
            "marks",
            "mean waiting time at a queue that marks, in base RTTs",
            "one flow with ECN (ECT(0))",
            scenarios.marking,
            measures.queue_in_rtts,
            tuple(
                replace(ONE, special=f"{kind} that marks", buffer="4bdp")
                for kind in ("codel", "pie", "fq-codel")
            ),
            "more",
            1.0,
            "RTT",
            1.0,
        ),
        Question(
            "tunnel",
            "mean waiting time at a queue whose marks a tunnel erases, in base RTTs",
            "one flow with ECN (ECT(0))",
            scenarios.tunnel,
            measures.queue_in_rtts,
            tuple(
                replace(ONE, special=f"{kind} that marks", buffer="4bdp")
                for kind in ("codel", "pie")
            ),
            "more",
            1.0,
            "RTT",
            1.0,
        ),
        Question(
            "cheated",
            "part of its fair share that an honest flow has beside one whose receiver cheats",
            "two flows",
            scenarios.cheated,
            measures.share_of_last,
            tuple(replace(ONE, special=f"a receiver that {how}") for how in scenarios.CHEATS),
            "less",
            0.25,
            quick=3,
        ),
        Question(
            "longer-path",
            "goodput, of what the link can carry",
            "one flow; 60 ms longer from 15 to 25 s",
            scenarios.changed(scenarios.longer_path),
            measures.efficiency,
            (ONE, replace(ONE, buffer="0.25bdp")),
            "less",
            0.5,
        ),
        Question(
            "thin",
            "packets dropped",
            "two flows",
            scenarios.alone(2),
            measures.drop_rate,
            (
                Place("128kbit/s", "400ms", "8 packets", "120s", "20s"),
                Place("32kbit/s", "100ms", "4 packets", "300s", "60s"),
            ),
            "more",
            0.25,
        ),
        Question(
            "high-delay",
            "goodput, of what the link can carry",
            "one flow",
            scenarios.alone(),
            measures.efficiency,
            (
                Place("20Mbit/s", "600ms", "1bdp", "120s", "40s"),
                Place("20Mbit/s", "600ms", "0.25bdp", "120s", "40s"),
            ),
            "less",
            0.4,
        ),
        Question(
            "late-packets",
            "goodput, of what the link can carry",
            "one flow; 1 in 20 packets is 15 ms late",
            scenarios.changed(scenarios.late),
            measures.efficiency,
            (ONE,),
            "less",
            0.5,
        ),
        Question(
            "burst",
            "goodput, of the link's rate, in the 10 s after the burst",
            "one flow; from 15 to 18 s UDP with 90 % of the rate",
            scenarios.changed(scenarios.burst),
            measures.goodput_share(18.0, 28.0),
            (ONE, replace(ONE, buffer="0.25bdp")),
            "less",
            0.4,
        ),
        Question(
            "rate-step",
            "goodput, of the new rate, from 1 to 11 s after the step",
            "one flow; the rate changes at 15 s",
            scenarios.changed(scenarios.rate_step),
            measures.goodput_share(16.0, 26.0),
            (
                replace(ONE, special="a fifth of the rate"),
                replace(ONE, special="four times the rate"),
            ),
            "less",
            0.4,
            quick=2,
        ),
        Question(
            "incast",
            "time until all flows are complete, over that of a full link",
            f"{scenarios.INCAST} flows of 64 kB that start within 1 ms",
            scenarios.incast,
            measures.last_completion(scenarios.INCAST * 64e3 * 8 / 1e9),
            (
                Place("1Gbit/s", "1ms", "64 packets", "5s", "0s"),
                Place("1Gbit/s", "1ms", "256 packets", "5s", "0s"),
            ),
            "more",
            50.0,
            "",
            1.0,
        ),
        Question(
            "incast-timeouts",
            "flows that had a retransmission timeout",
            f"{scenarios.INCAST} flows of 64 kB that start within 1 ms",
            scenarios.incast,
            measures.with_timeouts,
            (
                Place("1Gbit/s", "1ms", "64 packets", "5s", "0s"),
                Place("1Gbit/s", "1ms", "256 packets", "5s", "0s"),
            ),
            "more",
            0.9,
        ),
    )
}
