"""L4S on long fat paths: high rates, other rivals, and paths that do not know L4S.

$ python -m studies.l4s_paths           run what build/l4s-paths has not yet; table and page

One flow of Prague beside one other, both started in the first second; and short flows beside a long
one. One seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import polars as pl

from lfnlab.analysis.table import markdown
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.scenario.builder import Scenario
from lfnlab.scenario.elements import Link, Policer, Queue
from studies.l4s import BUFFER_S, grid, milliseconds
from studies.study import Study

if TYPE_CHECKING:
    from lfnlab.results.runs import Run

FAST_MBIT = (400, 1000)
FAST_RTTS_MS = (10, 50, 200)
RIVALS = ("cubic", "reno", "htcp-be", "bbr3", "prague")
LAWS = ("prague", "prague:steady")
SHORT_CELLS = ((4, 20), (40, 5), (40, 40), (400, 40), (400, 200), (2500, 20), (10000, 10))
SHORTS, SHORT_SIZE = 60, "100kB"
SHORT_QUEUES = {
    "drop-tail": {"kind": "drop-tail"},
    "FQ-CoDel": {"kind": "fq-codel"},
    "DualPI2": {"kind": "dualpi2"},
}
SHORT_LAWS = {"cubic": "cubic", "prague": "prague:fallback"}
"""Of all flows of a run, the long one and the short ones."""


@dataclass(frozen=True)
class Place:
    """A path, and the flow beside Prague."""

    kind: str
    """The table that has it: rates, rivals or foreign."""
    name: str
    """A name within the kind."""
    rate_mbit: int = 100
    rtt_ms: int = 40
    rival: str = "cubic"
    queue: str = "dualpi2"
    link: dict[str, Any] = field(default_factory=dict)
    """More keys of the link."""
    own: dict[str, Any] = field(default_factory=dict)
    """More keys of Prague's flow."""
    fallback: bool = False
    """Whether Prague looks for a Classic queue."""
    marked: bool = False
    """Whether the rival has ECN."""

    def scenario(self, law: str) -> Scenario:
        """A flow of this law beside the rival; of 200 s the last 120 count."""
        size = f"{self.rate_mbit * 1_000_000 * BUFFER_S / 8:.0f}B"
        ecn = True if self.queue == "codel" else None
        path = Scenario(
            duration="200s",
            warmup="80s",
            sample="off",
            link=Link(
                rate=f"{self.rate_mbit}Mbit/s",
                queue=Queue(kind=self.queue, size=size, ecn=ecn),  # type: ignore[arg-type]
                **self.link,
            ),
            default_rtt=f"{self.rtt_ms}ms",
        )
        if self.fallback:
            law = f"{law}:fallback=1" if ":" in law else f"{law}:fallback"
        started = path.flow(law, start="uniform(0s, 1s)", **self.own)
        ecn = self.marked or self.rival == "prague"
        return started.flow(self.rival, start="uniform(0s, 1s)", ecn=ecn)


CELLS = ((10, 20), (100, 40), (1000, 20))
"""Of paths without L4S: Mbit/s and ms."""


def foreign(rate: int, rtt: int) -> Iterator[Place]:
    """Paths that do not know L4S, at one rate and RTT."""

    def place(name: str, **keys: Any) -> Place:
        return Place("foreign", f"{rate} Mbit/s × {rtt} ms: {name}", rate, rtt, **keys)

    half = Policer(rate=f"{rate / 2}Mbit/s", burst=f"{max(rate * 2500, 30000)}B")
    yield place("one queue, CoDel that marks", queue="codel", marked=True)
    yield place("the same, with the fallback", queue="codel", marked=True, fallback=True)
    yield place("a tunnel erases the marks", link={"bleach": True})
    yield place(
        "the same, without the option of AccECN", link={"bleach": True}, own={"accecn": "counter"}
    )
    yield place("the receiver has no AccECN", own={"receiver_ecn": "classic"})
    yield place("a policer lets half pass", link={"policer": half})


FOREIGN = tuple(place for cell in CELLS for place in foreign(*cell))
PLACES = (
    *(
        Place("rates", f"{rate}x{rtt}", rate_mbit=rate, rtt_ms=rtt)
        for rate in FAST_MBIT
        for rtt in FAST_RTTS_MS
    ),
    *(Place("rivals", rival, rival=rival) for rival in RIVALS),
    *FOREIGN,
)


def run(names: Sequence[str], out: FilePath) -> pl.DataFrame:
    """A row a law and place: share, delays, utilization, drops, hash."""
    cases = [
        Case(
            place.scenario(law),
            {
                "law": law,
                "kind": place.kind,
                "place": place.name,
                "rate_mbit": place.rate_mbit,
                "rtt_ms": place.rtt_ms,
            },
        )
        for law in names
        for place in PLACES
    ]
    cases += [
        Case(
            crowded(law, queue, *cell),
            {
                "law": law,
                "kind": "short",
                "place": name,
                "rate_mbit": cell[0],
                "rtt_ms": cell[1],
            },
        )
        for law in SHORT_LAWS
        for name, queue in SHORT_QUEUES.items()
        for cell in SHORT_CELLS
    ]
    found = execute(cases, seeds=1, out=out, jobs=1, title="L4S paths")
    rows = [crowd(run) if run.factors["kind"] == "short" else row(run) for run in found.runs]
    return pl.DataFrame(rows, infer_schema_length=None)


def crowded(law: str, queue: dict[str, Any], rate_mbit: int, rtt_ms: int) -> Scenario:
    """A long flow, and short ones of its law that begin between 10 and 50 s."""
    size = f"{max(rate_mbit * 125 * rtt_ms, 15140)}B"  # one BDP
    path = Scenario(
        duration="60s",
        warmup="10s",
        sample="off",
        link=Link(rate=f"{rate_mbit}Mbit/s", queue=Queue(size=size, **queue)),
        default_rtt=f"{rtt_ms}ms",
    )
    name = SHORT_LAWS[law]
    long = path.flow(name, start="uniform(0s, 1s)")
    return long.flow(name, size=SHORT_SIZE, start="uniform(10s, 50s)", count=SHORTS)


def crowd(run: Run) -> dict[str, str | int | float | None]:
    """Completion times of the short flows, goodput of the long one."""
    shorts = run.summary["flows"][1:]
    times_s = sorted(s if (s := flow["completion_s"]) is not None else math.inf for flow in shorts)
    link = run.summary["links"][0]
    return {
        **run.factors,
        "share": round(run.goodputs[0] / link["rate_bps"], 4),
        "utilization": round(link["utilization"], 4),
        "p99_ms": milliseconds(link["p99_queue_s"]),
        "drops": link["drops"],
        "marks": link["marks"],
        "short_p50_ms": milliseconds(times_s[len(times_s) // 2]),
        "short_p90_ms": milliseconds(times_s[len(times_s) * 9 // 10]),
        "hash": run.summary["hash"],
    }


def shorts(table: pl.DataFrame) -> str:
    """A line a path: median and 90th percentile of completion times, by law and queue."""
    rows = table.filter(pl.col("kind") == "short")
    lines = []
    for rate, rtt in SHORT_CELLS:
        cells = [f"{rate} Mbit/s × {rtt} ms"]
        for law in SHORT_LAWS:
            for name in SHORT_QUEUES:
                [of] = rows.filter(rate_mbit=rate, rtt_ms=rtt, law=law, place=name).to_dicts()
                cells.append(f"{of['short_p50_ms']:.0f} / {of['short_p90_ms']:.0f}")
        lines.append(tuple(cells))
    heads = ("path", *(f"{law}, {name}" for law in SHORT_LAWS for name in SHORT_QUEUES))
    return chr(10).join(markdown(heads, lines))


def row(run: Run) -> dict[str, str | int | float | None]:
    """Prague's share of both, and figures of the forward link."""
    own, other = run.goodputs
    link = run.summary["links"][0]
    classes = link.get("classes")
    queues = {"l4s": None, "classic": None} if classes is None else classes
    return {
        **run.factors,
        "share": round(own / (own + other), 4),
        "utilization": round(link["utilization"], 4),
        "p99_ms": milliseconds(link["p99_queue_s"]),
        **{f"{name}_p99_ms": delay(queues[name]) for name in ("l4s", "classic")},
        "drops": link["drops"],
        "marks": link["marks"],
        "hash": run.summary["hash"],
    }


def delay(counts: Any) -> float | None:
    """99th percentile of the waiting time in ms, of a class that had packets."""
    if counts is None or counts["p99_queue_s"] is None:
        return None
    return milliseconds(counts["p99_queue_s"])


def text(value: float | None, digits: int, scale: float = 1) -> str:
    """A cell; a dash where there is none."""
    return "–" if value is None else f"{value * scale:.{digits}f}"


def listed(table: pl.DataFrame, kind: str, head: str) -> str:
    """A line a place: for both designs share and delays."""
    lines = []
    for name in table.filter(pl.col("kind") == kind)["place"].unique(maintain_order=True):
        cells = [name]
        for law in LAWS:
            (of,) = table.filter(pl.col("place") == name, pl.col("law") == law).to_dicts()
            cells += [
                text(of["share"], 0, 100),
                text(of["l4s_p99_ms"] if of["l4s_p99_ms"] is not None else of["p99_ms"], 2),
                text(of["utilization"], 1, 100),
            ]
        lines.append(tuple(cells))
    titles = (
        head,
        *(f"{law}: {what}" for law in LAWS for what in ("share", "p99 ms", "utilization")),
    )
    return chr(10).join(markdown(titles, lines))


def rates(table: pl.DataFrame, law: str, column: str, digits: int, scale: float = 1) -> str:
    """The grid of the fast paths."""
    rows = table.filter(pl.col("kind") == "rates", pl.col("law") == law)
    return grid(rows, column, digits, scale, FAST_MBIT, FAST_RTTS_MS)


def page(table: pl.DataFrame, stamp: str) -> str:
    """docs/l4s-paths.md."""
    low = max(table.filter(pl.col("kind") == "rates")["l4s_p99_ms"].to_list())
    return f"""\
# L4S on long fat paths

Beside [Prague and CUBIC up to 200 Mbit/s](l4s.md): higher rates, other rivals, and paths that do
not know L4S. A flow of [Prague](../laws/cards/prague.md) and one other share a link with the queue
[`dualpi2`](scenario.md#queues), if no other is named, and room for {BUFFER_S * 1e3:.0f} ms. Both
start in the first second and have the same base RTT; of 200 s the last 120 count. One seed.

{stamp} Every run is in [studies/reference/l4s_paths.csv](../studies/reference/l4s_paths.csv).

## Higher rates

Share of Prague beside CUBIC in percent, with its draft:

{rates(table, "prague", "share", 1, 100)}

With `prague:steady`:

{rates(table, "prague:steady", "share", 1, 100)}

The delay of the L4S queue, 99th percentile in ms, is at most {low:.2f}. Utilization in percent with
the draft:

{rates(table, "prague", "utilization", 1, 100)}

With `prague:steady`:

{rates(table, "prague:steady", "utilization", 1, 100)}

At 200 ms these runs are too short for a balance. Prague leaves slow start at its first mark and
grows by one segment a round from then on: half of 400 Mbit/s are 3300 segments, which take 11
minutes, and half of 10 Gbit/s would take 4.6 hours, since the time is rate times RTT squared. Part
of the link stays empty so long, and the shares tell more of the start than of a balance. Up to
10 Gbit/s there is [a page of its own](l4s-fast.md).

## Other rivals

100 Mbit/s × 40 ms. Share of Prague in percent, 99th percentile of the waiting time of the L4S queue
in ms, utilization in percent:

{listed(table, "rivals", "beside")}

The last line is beside the draft: a flow of `prague:steady` gets the smaller part beside one that
forgets more marks. BBRv3 answers drops later than CUBIC does: its packets wait up to 40 to 50 ms
(99th percentile) in the Classic queue.

## Paths that do not know L4S

Beside CUBIC; where there is no L4S queue the waiting time is that of the queue.

{listed(table, "foreign", "path")}

In one marking queue for all, Prague takes what CUBIC, which halves at a mark, gives up: RFC 9331
section 4.3.1 tells of 25 to 1, and demands a detection of such queues.
[`fallback`](l4s-classic.md) is one. Behind a tunnel that erases marks the option of AccECN shows
the sender that no field arrives as it was sent. From then on it is a Classic flow in the Classic
queue. By the counter alone it does not learn that: the queue of L4S fills until overload drops.
Before a receiver that has Classic ECN alone it is a Reno without ECN in the Classic queue, as its
draft demands (section 2.3.1): both laws give the same run. A policer has no marks, and its drops
make Prague a Reno.

## Short flows beside a long one

{SHORTS} flows of {SHORT_SIZE} that begin between 10 and 50 s beside a long flow of their law, with
room for one bandwidth-delay product. CUBIC is without ECN; Prague is `prague:fallback`. Completion
times of the short flows in ms, median / 90th percentile:

{shorts(table)}

CUBIC's short flows take 1.4 to 1.8 times as long behind drop-tail as in FQ-CoDel; in DualPI2 they
lie in between, for they share the Classic queue and its target of 15 ms. Prague's take in DualPI2
what they take in FQ-CoDel from 400 Mbit/s on. At 4 and 40 Mbit/s their median is longer there
than CUBIC's: a flow of Prague leaves slow start at its first mark, and in the queue of a long flow
of Prague that comes soon.
"""


STUDY = Study("l4s_paths", __doc__, run, page, LAWS)


if __name__ == "__main__":
    STUDY.main()
