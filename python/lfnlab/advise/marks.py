"""Advice for a queue that marks: who may have ECN there, and which kind (RFC 3168, RFC 9331)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lfnlab.advise.path import FRAMING_BYTES
from lfnlab.advise.search import MOST_HARM, TOGETHER
from lfnlab.advise.text import rate, size, span
from lfnlab.analysis.table import Table, plain
from lfnlab.errors import UsageError
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.scenario.elements import Queue

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from lfnlab.advise.path import Path
    from lfnlab.experiment.run import Progress
    from lfnlab.results.runs import Run

L4S = "dualpi2"
CLASSIC = ("codel", "fq-codel", "pie", "pi2", "red")
"""Queues that mark as RFC 3168 says."""
ROOM_S = 0.25
"""Room of a queue without a size (RFC 9332, appendix A.1)."""
LEAST_BYTES = 100_000
"""At least, on a slow link."""
SEEDS = 3
PACKETS = 200e6
"""Of all runs together, at most about."""
MOST_S, LEAST_RTTS = 100.0, 50
LEAST_PART = 0.5
"""A flow with less of a fair part than this loses too much."""
SAME_S, SAME = 1e-3, 0.1
"""Waits that differ by less, or by less than this part, are equal: the simpler one is advised."""


@dataclass(frozen=True)
class Sender:
    """A law with its use of ECN. The order of :data:`SENDERS` is the simplest first."""

    name: str
    law: str
    carries: str
    """The ECN field of its packets."""
    to_type: tuple[str, ...]
    keys: dict[str, Any] = field(default_factory=dict)
    """Of its flow in a scenario."""


def _law(name: str, where: str) -> str:
    return f"sysctl -w net.ipv4.tcp_congestion_control={name}    # {where}"


_ACCECN = "sysctl -w net.ipv4.tcp_ecn=3    # both hosts: AccECN"
_L4S_TEAM = "# no released Linux has prague; those of github.com/L4STeam/linux do"
SENDERS = (
    Sender("cubic", "cubic", "Not-ECT", (_law("cubic", "sender"),)),
    Sender(
        "cubic, ECN",
        "cubic",
        "ECT(0)",
        (_law("cubic", "sender"), "sysctl -w net.ipv4.tcp_ecn=1    # both hosts"),
        {"ecn": True},
    ),
    Sender(
        "prague, fallback",
        "prague:fallback",
        "ECT(1)",
        (
            _L4S_TEAM,
            _ACCECN,
            _law("prague", "sender"),
            "echo 1 > /sys/module/tcp_prague/parameters/prague_ecn_fallback    # sender",
        ),
    ),
    Sender("prague", "prague", "ECT(1)", (_L4S_TEAM, _ACCECN, _law("prague", "sender"))),
    Sender("dctcp", "dctcp", "ECT(0)", (_law("dctcp", "both hosts"),), {"ecn": True}),
)
NOTES = (
    "ECT(1) needs AccECN at both ends; a sender without it must answer as a Classic one, without "
    "ECT(1) (RFC 9331, section 4.2).",
    "On the Internet ECT(1) needs a sender that finds Classic queues (section 4.3): the path of "
    "tomorrow may have another queue.",
    "dctcp is for networks in which every queue is for it (RFC 8257): its ECT(0) goes to the "
    "Classic queue of an L4S router.",
)


@dataclass(frozen=True)
class Shown:
    """A sender beside one flow of CUBIC, means over seeds."""

    sender: Sender
    own_bps: float
    other_bps: float
    wait_s: float
    """The time that 99 % of its packets do not exceed in the queue."""
    kept: float
    """CUBIC's goodput over that beside a flow of its own kind."""
    part: float
    """The sender's goodput over the same."""

    @property
    def verdict(self) -> str:
        """One word or two."""
        if self.kept < 1 - MOST_HARM:
            return "unsafe"
        return "loses" if self.part < LEAST_PART else "fair"


@dataclass(frozen=True)
class Marking:
    """The answer and its evidence."""

    path: Path
    kind: str
    shown: tuple[Shown, ...]
    seconds: float

    @property
    def best(self) -> Shown:
        """Of the fair ones the shortest wait; of equal ones the simplest."""
        fair = [shown for shown in self.shown if shown.verdict == "fair"] or [*self.shown[:1]]
        least_s = min(shown.wait_s for shown in fair)
        return next(
            shown for shown in fair if shown.wait_s <= max(least_s + SAME_S, least_s * (1 + SAME))
        )


def check_kind(kind: str) -> None:
    """Refuse a queue that never marks.

    Raises:
        UsageError: naming the option.
    """
    if kind not in (L4S, *CLASSIC):
        raise UsageError(f'--queue: "{kind}"; allowed: {", ".join((L4S, *CLASSIC))}')


def marking(
    path: Path,
    kind: str,
    *,
    out: str | FilePath,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Marking:
    """Run each of :data:`SENDERS` beside a flow of CUBIC over this queue, and compare.

    CUBIC has ECN where the queue marks as RFC 3168 says: there a sender that answers marks by less
    does most harm.

    Args:
        path: the bottleneck; its buffer is the room of the queue.
        kind: of the queue.
        out: the results directory.
        jobs: runs at a time.
        progress: told how far it is.

    Raises:
        ScenarioError: naming a key of the path.
        UsageError: for another queue, or a path with too many packets.
    """
    check_kind(kind)
    path.check()
    longest_s = PACKETS / (len(SENDERS) * SEEDS) / path.packets_per_s
    least_s = LEAST_RTTS * path.rtt_s
    if least_s > 10 * longest_s:
        raise UsageError(
            f"--rate: {path.rate} with --rtt {path.rtt} is too much to simulate; allowed with "
            f"--queue: at most {rate(path.rate_bps * 10 * longest_s / least_s)} at this RTT"
        )
    seconds = max(min(MOST_S, longest_s), least_s)
    plain_path = replace(path.scenario(seconds), warmup=f"{seconds / 3 * 1e9:.0f}ns")
    assert plain_path.link is not None
    queue = Queue(kind=kind, size=path.buffer, ecn=None if kind == L4S else True)  # type: ignore[arg-type]
    over = replace(plain_path, link=replace(plain_path.link, queue=queue))
    packet: dict[str, Any] = {"packet": path.packet, "start": TOGETHER}
    cases = [
        Case(
            over.flow(sender.law, **sender.keys, **packet).flow("cubic", ecn=kind != L4S, **packet),
            {"sender": sender.name},
        )
        for sender in SENDERS
    ]
    found = execute(
        cases, seeds=SEEDS, out=out, jobs=jobs, progress=progress, title="queue that marks"
    )
    of: dict[str, list[Run]] = {}
    for run in found.runs:
        of.setdefault(str(run.factors["sender"]), []).append(run)
    both = of["cubic" if kind == L4S else "cubic, ECN"]
    fair_bps = max(_mean([sum(run.goodputs) / 2 for run in both]), 1.0)
    return Marking(
        path, kind, tuple(_shown(one, of[one.name], fair_bps) for one in SENDERS), seconds
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _shown(sender: Sender, runs: Sequence[Run], fair_bps: float) -> Shown:
    own_bps, other_bps = (_mean([run.goodputs[place] for run in runs]) for place in (0, 1))
    wait_s = _mean([_wait_s(sender, run) for run in runs])
    return Shown(sender, own_bps, other_bps, wait_s, other_bps / fair_bps, own_bps / fair_bps)


def _wait_s(sender: Sender, run: Run) -> float:
    link = run.summary["links"][0]
    classes = link.get("classes")
    if classes is None:
        return link["p99_queue_s"]
    own = classes["l4s" if sender.carries == "ECT(1)" else "classic"]["p99_queue_s"]
    return link["p99_queue_s"] if own is None else own


def _room(path: Path) -> str:
    return size(path.buffer_packets * (path.packet_bytes + FRAMING_BYTES))


def marking_lines(marking: Marking) -> Iterator[str]:
    """The answer, the lines to type, the evidence."""
    path, best = marking.path, marking.best
    yield f"ECN over {path.rate} × {path.rtt}, queue {marking.kind} with room for {_room(path)}"
    yield ""
    yield (
        f"Use {best.sender.name}: 99 % of its packets wait at most {span(best.wait_s)}, and a "
        f"flow of cubic keeps {100 * best.kept:.0f} % of a fair part."
    )
    for shown in marking.shown:
        if shown.verdict == "unsafe":
            yield (
                f"Unsafe here: {shown.sender.name}. It leaves cubic {100 * shown.kept:.0f} % of a "
                "fair part."
            )
        elif shown.verdict == "loses":
            yield (
                f"No use here: {shown.sender.name}. It gets {100 * shown.part:.0f} % of a fair "
                "part beside cubic."
            )
    yield ""
    yield "Type, as root (lfn changes nothing):"
    yield from (f"  {line}" for line in best.sender.to_type)
    yield ""
    rows = tuple(
        (
            shown.sender.name,
            shown.sender.carries,
            span(shown.wait_s),
            rate(shown.own_bps),
            rate(shown.other_bps),
            shown.verdict,
        )
        for shown in marking.shown
    )
    yield from plain(Table(("sender", "field", "wait, 99 %", "goodput", "cubic", "it is"), rows, 2))
    yield ""
    yield (
        f"Simulated: each beside a flow of cubic{'' if marking.kind == L4S else ' with ECN'}, "
        f"{span(marking.seconds)}, of which the last two thirds count, {SEEDS} seeds."
    )
    if marking.seconds < MOST_S:
        yield "The runs are short for this path: shares tell of the start more than of a balance."
    yield from NOTES


def marking_json(marking: Marking) -> dict[str, Any]:
    """One object."""
    path = marking.path
    return {
        "schema": 1,
        "path": {
            "rate_bps": path.rate_bps,
            "rtt_s": path.rtt_s,
            "buffer_packets": path.buffer_packets,
            "loss": path.loss,
            "packet_bytes": path.packet_bytes,
        },
        "queue": marking.kind,
        "advice": marking.best.sender.name,
        "type": [*marking.best.sender.to_type],
        "senders": [
            {
                "sender": shown.sender.name,
                "law": shown.sender.law,
                "field": shown.sender.carries,
                "p99_queue_s": shown.wait_s,
                "goodput_bps": shown.own_bps,
                "cubic_bps": shown.other_bps,
                "cubic_keeps": shown.kept,
                "verdict": shown.verdict,
            }
            for shown in marking.shown
        ],
        "simulated_s": marking.seconds,
        "notes": [*NOTES],
    }
