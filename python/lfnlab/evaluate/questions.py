"""Questions to a law: a path, the flows on it, one number of each run, and a bound.

RFC 9743 gives no bounds. Each bound here is this laboratory's: beyond it a figure is worth a
sentence, if the comparators do better on the same seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from lfnlab.evaluate import measures, scenarios
from lfnlab.evaluate.scenarios import Place
from lfnlab.scenario.elements import Breaker

if TYPE_CHECKING:
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
        unit: of the printed figure.
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
    unit: Literal["%", "ms", "RTT", ""] = "%"
    beside: bool = False
    quick: int = 1

    @property
    def scale(self) -> float:
        """Factor of the printed figure."""
        return {"%": 100.0, "ms": 1e3}.get(self.unit, 1.0)


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

INCASTS: tuple[tuple[str, str, Measure, float, Literal["", "%"]], ...] = (
    (
        "incast",
        "time until all flows are complete, over that of a full link",
        measures.last_completion(scenarios.INCAST * 64e3 * 8 / 1e9),
        50.0,
        "",
    ),
    (
        "incast-timeouts",
        "flows that had a retransmission timeout",
        measures.with_timeouts,
        0.9,
        "%",
    ),
)


def _goodput(
    name: str, flows: str, build: Build, places: Sequence[Place], bound: float, quick: int = 1
) -> Question:
    what, measure = "goodput, of what the link can carry", measures.efficiency
    return Question(name, what, flows, build, measure, places, "less", bound, quick=quick)


def _dropped(
    name: str, flows: str, build: Build, places: Sequence[Place], bound: float, quick: int = 1
) -> Question:
    what, measure = "packets dropped", measures.drop_rate
    return Question(name, what, flows, build, measure, places, "more", bound, quick=quick)


QUESTIONS = {
    question.name: question
    for question in (
        *(
            Question(
                name,
                f"segments sent in each round trip from 2 s after {event}",
                f"one flow; {what} after 12 s",
                scenarios.changed(scenarios.outage(direction)),
                measures.sent_in_outage(TWO_SECONDS_S, OUTAGE_END_S),
                (ONE, replace(ONE, rtt="200ms")),
                "more",
                1.0,
                "",
            )
            for name, event, what, direction in (
                ("outage", "the path failed", "the link fails", "forward"),
                ("no-feedback", "the last ACK", "the link of the ACKs fails", "reverse"),
            )
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
        ),
        _dropped(
            "loss",
            "four flows",
            scenarios.alone(4),
            (*FOUR_BUFFERS, Place("200Mbit/s", "40ms", "0.1bdp")),
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
        _dropped(
            "pauses",
            "one flow whose application is active for two of five seconds",
            scenarios.pauses,
            (replace(ONE, buffer="0.25bdp"), ONE),
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
        *(
            Question(
                f"harm-{name}",
                f"harm to the other flow's {what}",
                "one flow beside one of the other law; the other law alone",
                scenarios.pair_and_alone,
                measure,
                MIXED,
                "more",
                bound,
                "",
                beside=True,
                quick=2,
            )
            for name, what, measure, bound in (
                ("rate", "goodput", measures.harm_to_rate, 0.75),
                ("delay", "queueing delay", measures.harm_to_delay, 0.75),
                ("loss", "loss", measures.harm_to_loss, 0.95),
            )
        ),
        *(
            Question(
                name,
                f"time in which {who} less than a tenth of its fair share",
                "one flow beside one of the other law",
                scenarios.pair,
                measures.starved(place),
                MIXED,
                "more",
                0.1,
                beside=True,
                quick=2,
            )
            for name, who, place in (
                ("starves-other", "the other flow has", 1),
                ("starves", "it has itself", 0),
            )
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
        _goodput(
            "tail-drop",
            "one flow",
            scenarios.alone(),
            (
                Place("100Mbit/s", "40ms", "0.1bdp"),
                Place("10Mbit/s", "20ms", "1bdp"),
                Place("100Mbit/s", "100ms", "0.25bdp", "60s"),
                Place("1Gbit/s", "20ms", "0.5bdp", "30s"),
            ),
            0.6,
        ),
        _goodput(
            "wired",
            "one flow, no loss except of the queue",
            scenarios.alone(),
            (Place("100Mbit/s", "20ms", "1bdp"), Place("500Mbit/s", "10ms", "1bdp", "30s")),
            0.8,
        ),
        _goodput(
            "wireless",
            "one flow",
            scenarios.changed(scenarios.wireless),
            (
                replace(ONE, special="random loss of 1 in 1000"),
                replace(ONE, special="loss in bursts of 10, 1 in 500 packets"),
                replace(ONE, special="jitter of up to 10 ms"),
                replace(ONE, special="ACKs that go on together each 10 ms"),
                replace(ONE, special="1 in 10 ACKs lost"),
                replace(ONE, special="a rate that changes between 0.3 and 1", duration="45s"),
            ),
            0.25,
            quick=5,
        ),
        _goodput(
            "aqm",
            "one flow",
            scenarios.queue,
            tuple(
                replace(ONE, special=kind, buffer="4bdp")
                for kind in ("fq-codel", "pie", "codel", "red", "dualpi2")
            ),
            0.6,
            quick=2,
        ),
        Question(
            "aqm-delay",
            "99th percentile of the waiting time",
            "four flows",
            scenarios.queue,
            measures.queue_p99_s,
            tuple(
                replace(ONE, special=kind, buffer="4bdp")
                for kind in ("pie", "codel", "red", "dualpi2")
            ),
            "more",
            0.1,
            "ms",
        ),
        Question(
            "marks",
            "mean waiting time at a queue that marks, in base RTTs",
            "one flow with ECN, ECT(1) if the law is for L4S",
            scenarios.marking,
            measures.queue_in_rtts,
            tuple(
                replace(ONE, special=f"{kind} that marks", buffer="4bdp")
                for kind in ("codel", "pie", "fq-codel", "dualpi2")
            ),
            "more",
            1.0,
            "RTT",
        ),
        Question(
            "tunnel",
            "mean waiting time at a queue whose marks a tunnel erases, in base RTTs",
            "one flow with ECN, ECT(1) if the law is for L4S",
            scenarios.tunnel,
            measures.queue_in_rtts,
            tuple(
                replace(ONE, special=f"{kind} that marks", buffer="4bdp")
                for kind in ("codel", "pie", "dualpi2")
            ),
            "more",
            1.0,
            "RTT",
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
        _goodput(
            "longer-path",
            "one flow; 60 ms longer from 15 to 25 s",
            scenarios.changed(scenarios.longer_path),
            (ONE, replace(ONE, buffer="0.25bdp")),
            0.5,
        ),
        _dropped(
            "thin",
            "two flows",
            scenarios.alone(2),
            (
                Place("128kbit/s", "400ms", "8 packets", "120s", "20s"),
                Place("32kbit/s", "100ms", "4 packets", "300s", "60s"),
            ),
            0.25,
        ),
        _goodput(
            "high-delay",
            "one flow",
            scenarios.alone(),
            (
                Place("20Mbit/s", "600ms", "1bdp", "120s", "40s"),
                Place("20Mbit/s", "600ms", "0.25bdp", "120s", "40s"),
            ),
            0.4,
        ),
        _goodput(
            "late-packets",
            "one flow; 1 in 20 packets is 15 ms late",
            scenarios.changed(scenarios.late),
            (ONE,),
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
        *(
            Question(
                name,
                what,
                f"{scenarios.INCAST} flows of 64 kB that start within 1 ms",
                scenarios.incast,
                measure,
                tuple(Place("1Gbit/s", "1ms", f"{n} packets", "5s", "0s") for n in (64, 256)),
                "more",
                bound,
                unit,
            )
            for name, what, measure, bound, unit in INCASTS
        ),
    )
}
