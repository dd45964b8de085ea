"""L4S on long fat paths: high rates, other rivals, and paths that do not know L4S.

$ python -m studies.l4s_paths           run what build/l4s-paths has not yet; table and page

One flow of Prague beside one other, both started in the first second. One seed.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        started = path.flow(law, start="uniform(0s, 1s)", **self.own)
        return started.flow(self.rival, start="uniform(0s, 1s)", ecn=self.marked)


FOREIGN = (
    Place("foreign", "one queue, CoDel that marks", queue="codel", marked=True),
    Place("foreign", "a tunnel erases the marks", link={"bleach": True}),
    Place(
        "foreign",
        "the same, without the option of AccECN",
        link={"bleach": True},
        own={"accecn": "counter"},
    ),
    Place(
        "foreign",
        "a policer lets 50 Mbit/s pass",
        link={"policer": Policer(rate="50Mbit/s", burst="250kB")},
    ),
)
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
    found = execute(cases, seeds=1, out=out, jobs=1, title="L4S paths")
    return pl.DataFrame([row(run) for run in found.runs])


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

100 Mbit/s × 40 ms, beside CUBIC; where there is no L4S queue the waiting time is that of the queue.

{listed(table, "foreign", "path")}

In one marking queue for all, Prague takes what CUBIC, which halves at a mark, gives up: RFC 9331
section 4.3.1 tells of 25 to 1, and demands a detection of such queues, which Prague here does not
have. Behind a tunnel that erases marks the option of AccECN shows the sender that no field arrives
as it was sent. From then on it is a Classic flow in the Classic queue. By the counter alone it does
not learn that: the queue of L4S fills until overload drops. A policer has no marks, and its drops
make Prague a Reno.
"""


STUDY = Study("l4s_paths", __doc__, run, page, LAWS)


if __name__ == "__main__":
    STUDY.main()
