"""Every numbered criterion of RFC 9743 (BCP 133), sections 5 to 7, and what answers it here.

A criterion has questions, which runs answer; or a reason why no run can; or what is missing. The
requirement is in our words. Numbers and titles are those of the RFC as published (March 2025).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lfnlab.analysis.table import markdown
from lfnlab.evaluate.questions import QUESTIONS, bound_of

if TYPE_CHECKING:
    from lfnlab.evaluate.questions import Question


@dataclass(frozen=True)
class Criterion:
    """A numbered section.

    Args:
        section: its number.
        title: its title.
        asks: what it asks for, in few words.
        questions: names of the questions that answer it.
        not_applicable: why no run of one law answers it.
        missing: what of it is not covered.
    """

    section: str
    title: str
    asks: str
    questions: tuple[str, ...] = ()
    not_applicable: str = ""
    missing: str = ""


_MIXED = ("share", "harm-rate")
CRITERIA = (
    Criterion(
        "5.1.1",
        "Protection Against Congestion Collapse",
        "full backoff, or a stop, in persistent congestion",
        ("outage", "crowd"),
    ),
    Criterion(
        "5.1.2",
        "Protection Against Bufferbloat",
        "no excessive queues",
        ("bufferbloat",),
    ),
    Criterion(
        "5.1.3",
        "Protection Against High Packet Loss",
        "no excessive rates of loss",
        ("loss", "policed", "pauses"),
    ),
    Criterion(
        "5.1.4",
        "Fairness Within the Proposed Congestion Control Algorithm",
        "how several flows of it share the capacity",
        ("jain", "newcomer", "rtt"),
    ),
    Criterion(
        "5.1.5",
        "Short Flows",
        "effect of short flows on long ones, and of long ones on short ones",
        ("short", "long-beside-short"),
    ),
    Criterion(
        "5.2",
        "Mixed Algorithm Behavior",
        "harm to other flows in rate, delay and loss; starvation; backoff without feedback",
        ("harm-delay", "harm-loss", "starves-other", "starves", "no-feedback"),
    ),
    Criterion(
        "5.2.1",
        "Existing General-Purpose Congestion Control",
        "competition with standard congestion control, and with others that are widely deployed",
        _MIXED,
        missing="the congestion control of QUIC (RFC 9002), which is Reno's, over QUIC",
    ),
    Criterion(
        "5.2.2",
        "Real-Time Congestion Control",
        "coexistence with real-time traffic",
        ("media-delay", "media-loss", "talk-delay"),
        missing="media that adapt their rate: the simulator has none; here media have one rate",
    ),
    Criterion(
        "5.2.3",
        "Short and Long Flows",
        "effect on short and on long flows of other algorithms",
        ("short-others", "long-others"),
    ),
    Criterion(
        "5.3.1",
        "Differences with Congestion Control Principles",
        "an explanation of deviations from RFC 2914 and RFC 7141",
        not_applicable="an explanation by the authors; no run gives it",
    ),
    Criterion(
        "5.3.2",
        "Incremental Deployment",
        "a discussion of deployment, and of middleboxes",
        not_applicable="a discussion by the authors; no run gives it",
    ),
    Criterion(
        "6.1",
        "Paths with Tail-Drop Queues",
        "the criteria of section 5 at drop-tail queues, over ranges of rate, delay and depth",
        ("tail-drop",),
    ),
    Criterion(
        "6.2",
        "Tunnel Behavior",
        "for explicit signals: traffic in a tunnel, where routers do not know the flow",
        ("tunnel",),
        missing="a tunnel that hides a router's header",
    ),
    Criterion("6.3", "Wired Paths", "the baseline: stable capacity, hardly any loss", ("wired",)),
    Criterion(
        "6.4",
        "Wireless Paths",
        "loss by the radio, changing capacity, jitter",
        ("wireless",),
        missing="retransmission by the link, and contention",
    ),
    Criterion(
        "7.1",
        "Active Queue Management (AQM)",
        "several queue disciplines; the reaction to ECN marks",
        ("aqm", "aqm-delay", "marks"),
    ),
    Criterion(
        "7.2",
        "Operation with the Envelope Set by Network Circuit Breakers",
        "a reaction before a circuit breaker ends the flow",
        ("ended", "breaker"),
        missing="a breaker for all flows in sum, and one that lowers the rate",
    ),
    Criterion(
        "7.3",
        "Paths with Varying Delay",
        "robust when the smallest delay changes",
        ("longer-path",),
    ),
    Criterion(
        "7.4",
        "Internet of Things and Constrained Nodes",
        "very low rates; cost on small hosts; volume of control packets",
        ("thin",),
        missing="cost on a small host: a simulated host has no CPU. Control packets are TCP's ACKs",
    ),
    Criterion("7.5", "Paths with High Delay", "paths such as a satellite's", ("high-delay",)),
    Criterion(
        "7.6",
        "Misbehaving Nodes",
        "senders, receivers and routers that do not comply; attackers",
        ("cheated",),
        missing="senders and routers that do not comply, and attackers",
    ),
    Criterion(
        "7.7", "Extreme Packet Reordering", "packets that arrive out of order", ("late-packets",)
    ),
    Criterion(
        "7.8",
        "Transient Events",
        "a sudden onset of congestion, a change of route, mobility",
        ("burst", "longer-path"),
        missing="mobility, beyond a path that becomes longer and shorter",
    ),
    Criterion(
        "7.9",
        "Sudden Changes in the Path",
        "robust when the path changes",
        ("rate-step", "longer-path"),
    ),
    Criterion(
        "7.10",
        "Multipath Transport",
        "harm by flows over several paths, and at a change of path",
        not_applicable="a law here controls one path; no transport over several paths exists here",
    ),
    Criterion(
        "7.11",
        "Data Centers",
        "low latency, many flows that end at the same time",
        ("incast", "incast-timeouts"),
    ),
)


def documentation() -> list[str]:
    """The table of docs/evaluate.md."""
    headings = ("section", "asks for", "figures and where", "bound", "missing")
    return [*markdown(headings, map(_row, CRITERIA))]


def _row(criterion: Criterion) -> tuple[str, ...]:
    questions = [QUESTIONS[name] for name in criterion.questions]
    without = criterion.not_applicable and f"Not applicable: {criterion.not_applicable}."
    missing = criterion.missing and f"Not covered: {criterion.missing}."
    return (
        f"{criterion.section} {criterion.title}",
        criterion.asks,
        "<br>".join(f"**{one.what}**: {_where(one)}" for one in questions) or "–",
        "<br>".join(bound_of(one) for one in questions) or "–",
        without or missing,
    )


def _where(question: Question) -> str:
    places = "; ".join(map(str, question.places))
    return f"{question.flows}{', beside each comparator' if question.beside else ''}. {places}"
