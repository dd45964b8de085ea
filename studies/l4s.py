"""Prague beside CUBIC in a DualPI2 queue: shares, delays and utilization by rate and RTT.

$ python -m studies.l4s                 run what build/l4s has not yet; table and page
$ python -m studies.l4s --laws dctcp    print the cells of another scalable law only

One flow of each law, both started in the first second, for 300 s of which the last 200 count.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import polars as pl

from lfnlab.analysis.table import markdown
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.scenario.builder import Scenario
from lfnlab.scenario.elements import Link, Queue
from studies.study import Study

if TYPE_CHECKING:
    from lfnlab.results.runs import Run

SEEDS = 5
RATES_MBIT = (4, 12, 40, 120, 200)
RTTS_MS = (5, 10, 20, 50, 100)
FAIR = (0.4, 0.6)
"""The band of shares that counts as fair."""
PACKET_BITS = 1514 * 8
VIRTUAL_RTT_S = 0.025
"""The RTT that shorter ones pretend to have (laws/cards/prague.md)."""
ADDED_RTT_S = 0.01
"""The time by which `steady` takes each RTT for longer."""

FORGOTTEN = """\
The draft has more than its half in most cells, for it forgets marks. In a round without a mark its
alpha falls and its window does not: marks that come unevenly count for less. So the product x of
the window in a virtual RTT and p/(1 - p), p the fraction of packets marked, is not 2, as the
draft's formula says. Evenly spaced marks make it 2.41 already, since the next reduction waits for
half of the distance between two marks: x = 2 (1 + 1/(2x)).
"""
STEADY = """\
`steady` forgets less: a mark during a round with a reduction asks for another at its end, and alpha
is a mean over 8 rounds, not 16. It also takes each RTT for 10 ms longer, where the draft takes one
below 25 ms for 25 ms. Its x:
"""
COUPLED = """\
Both face the other reason, which lies in the single CUBIC flow: with its sawtooth p' swings. Drops
follow the mean of p'^2, marks the mean of 2 p', which is the smaller the more p' swings. The
fraction marked over twice the root of the fraction dropped is 1 where p' stands still, as with a
load that takes no notice (`crates/path/tests/dualpi2.rs`: within 3 % over 100,000 packets, p' from
2.5 to 45 %). Beside the draft's flow:
"""
ECHO = """\
The marks reach the sender by AccECN. By DCTCP's echo (`accecn = "off"`) each change between marked
and unmarked costs an ACK of its own. At 4 Mbit/s × 5 ms both flows live on their smallest windows,
and the more frequent ACKs make Prague's round trips shorter; with `delayed_ack = false` its share
is 64 % by either feedback. At 12 Mbit/s × 5 ms the echo costs 4 points for a reason that we do not
know.

A flow without ECN pays little for both bits and AccECN: 585.7 instructions a packet on the plain
dumbbell in place of 583.7, and 853.0 in place of 851.2 with ten flows (callgrind, builds of the
commits before and after, one compiler, 2026-11-29).
"""
RTTS = """\
Where both have short RTTs, the draft's virtual RTT of 25 ms is longer than CUBIC's of 5 ms and
15 ms in the queue, and RFC 9332's equations give it 36 % at 5 ms; `steady` pretends to 15 ms.
"""
PICTURED = """\
These commands draw one path:

```toml file=l4s.toml
schema = 1
duration = "60s"
warmup = "20s"
[link]
rate = "40Mbit/s"
queue = { kind = "dualpi2", size = "1.25MB" }
[[flow]]
law = "prague"
rtt = "20ms"
[[flow]]
law = "cubic"
rtt = "20ms"
start = "0.5s"
```

```sh
lfn run l4s.toml --out l4s
lfn plot l4s --figure l4s-delay --out l4s-delay.png
```

![Percentiles of the delay of both queues](figures/l4s-delay.png)
"""
ECHOED = "prague echo"
SUBJECTS: dict[str, tuple[str, dict[str, Any]]] = {ECHOED: ("prague", {"accecn": "off"})}
"""Law and settings of what is no law alone."""
BUFFER_S = 0.25
"""RFC 9332, appendix A.1: the limit of both queues together."""


def scenario(law: str, rate_mbit: int, rtt_ms: int) -> Scenario:
    """A flow of ``law`` with ECT(1) and one of CUBIC without ECN behind a DualPI2 queue."""
    law, settings = SUBJECTS.get(law, (law, {}))
    size = f"{rate_mbit * 1_000_000 * BUFFER_S / 8:.0f}B"
    path = Scenario(
        duration="300s",
        warmup="100s",
        sample="off",
        link=Link(rate=f"{rate_mbit}Mbit/s", queue=Queue(kind="dualpi2", size=size)),
        default_rtt=f"{rtt_ms}ms",
    )
    started = path.flow(law, start="uniform(0s, 1s)", ecn=True, l4s=True, **settings)
    return started.flow("cubic", start="uniform(0s, 1s)")


def run(names: Sequence[str], out: FilePath) -> pl.DataFrame:
    """A row a law, cell and seed: share, delays, marks, utilization, hash."""
    cases = [
        Case(scenario(law, rate, rtt), {"law": law, "rate_mbit": rate, "rtt_ms": rtt})
        for law in names
        for rate in RATES_MBIT
        for rtt in RTTS_MS
    ]
    found = execute(cases, seeds=SEEDS, out=out, jobs=1, title="L4S")
    return pl.DataFrame([row(run) for run in found.runs])


def row(run: Run) -> dict[str, str | int | float]:
    """The first flow's share of both, and figures of the forward queue."""
    scalable, classic = run.goodputs
    link = run.summary["links"][0]
    classes = link.get("classes")
    assert classes is not None, "the queue is dualpi2"
    l4s, other = classes["l4s"], classes["classic"]
    return {
        **run.factors,
        "seed": run.seed,
        "share": round(scalable / (scalable + classic), 4),
        "utilization": round(link["utilization"], 4),
        "l4s_p50_ms": milliseconds(l4s["p50_queue_s"]),
        "l4s_p99_ms": milliseconds(l4s["p99_queue_s"]),
        "classic_p50_ms": milliseconds(other["p50_queue_s"]),
        "classic_p99_ms": milliseconds(other["p99_queue_s"]),
        "l4s_marked": round(l4s["marks"] / l4s["packets"], 5),
        "classic_dropped": round(other["drops"] / (other["packets"] + other["drops"]), 5),
        "hash": run.summary["hash"],
    }


def milliseconds(delay_s: float | None) -> float:
    """A delay of packets that there were, to 1 us."""
    assert delay_s is not None
    return round(delay_s * 1e3, 3)


def grid(
    table: pl.DataFrame,
    column: str,
    digits: int,
    scale: float = 1,
    rates: Sequence[int] = RATES_MBIT,
    rtts: Sequence[int] = RTTS_MS,
) -> str:
    """Means over the seeds as lines: a row a rate, a column an RTT."""
    mean = table.group_by("rate_mbit", "rtt_ms").agg(pl.col(column).mean())
    cells = {(rate, rtt): value for rate, rtt, value in mean.iter_rows()}
    rows = [
        (f"{rate} Mbit/s", *(f"{cells[rate, rtt] * scale:.{digits}f}" for rtt in rtts))
        for rate in rates
    ]
    return chr(10).join(markdown(("", *(f"{rtt} ms" for rtt in rtts)), rows))


def product(longer_s: pl.Expr) -> pl.Expr:
    """Window in a virtual RTT times p/(1 - p), p the fraction of L4S packets marked.

    ``longer_s`` is that RTT in seconds, by the column ``rtt_s`` of the real one.
    """
    rate_bps = pl.col("share") * pl.col("utilization") * pl.col("rate_mbit") * 1e6
    marked = pl.col("l4s_marked")
    return rate_bps / PACKET_BITS * longer_s * marked / (1 - marked)


def with_causes(table: pl.DataFrame) -> pl.DataFrame:
    """The table with ``product`` of both designs, and ``coupled``.

    ``coupled`` is L4S packets marked over 2 sqrt(Classic packets dropped), as fractions: 1 at a
    steady p'.
    """
    rtt_s = pl.col("rtt_s")
    drafted = product(pl.max_horizontal(rtt_s, pl.lit(VIRTUAL_RTT_S)))
    return table.with_columns(rtt_s=(pl.col("rtt_ms") + pl.col("l4s_p50_ms")) / 1e3).with_columns(
        product=pl.when(pl.col("law") == "prague:steady")
        .then(product(rtt_s + ADDED_RTT_S))
        .otherwise(drafted),
        coupled=pl.col("l4s_marked") / (2 * pl.col("classic_dropped").sqrt()),
    )


def fair_cells(table: pl.DataFrame) -> int:
    """Cells whose mean share lies in the band of :data:`FAIR`."""
    mean = table.group_by("rate_mbit", "rtt_ms").agg(pl.col("share").mean())
    return mean.filter(pl.col("share").is_between(*FAIR)).height


def page(table: pl.DataFrame, stamp: str) -> str:
    """docs/l4s.md."""
    rows = with_causes(table)
    of = {law: rows.filter(pl.col("law") == law) for law in rows["law"].unique()}
    draft, steady, echo = of["prague"], of["prague:steady"], of[ECHOED]
    both = pl.concat([draft, steady])
    low = max(both.filter(pl.col("rate_mbit") >= 40)["l4s_p99_ms"].to_list())
    least = min(both["utilization"].to_list())
    cells = len(RATES_MBIT) * len(RTTS_MS)
    return f"""\
# L4S: Prague beside CUBIC

A flow of Prague, whose packets are ECT(1), and a flow of CUBIC without ECN share a link with the
queue [`dualpi2`](scenario.md#queues) (RFC 9332) with its default parameters
and room for {BUFFER_S * 1e3:.0f} ms. Both start in the first second and have the same base RTT; of
300 s the last 200 count. The queue knows no flows: by its marks and drops alone each should get
half of the link. Means over {SEEDS} seeds, which differ by the starts only. Two designs of
[Prague](../laws/cards/prague.md): its draft, the default, and the variant `prague:steady`.

{stamp} Every run is in [studies/reference/l4s.csv](../studies/reference/l4s.csv).

## Share of Prague

With the draft {fair_cells(draft)} of {cells} cells lie between 40 and 60 %. In percent:

{grid(draft, "share", 1, 100)}

With `prague:steady` {fair_cells(steady)} of {cells}:

{grid(steady, "share", 1, 100)}

## Causes

{FORGOTTEN}
{grid(draft, "product", 2)}

{STEADY}
{grid(steady, "product", 2)}

{COUPLED}
{grid(draft, "coupled", 2)}

{RTTS}
{ECHO}
With the draft by the echo {fair_cells(echo)} of {cells} cells lie between 40 and 60 %:

{grid(echo, "share", 1, 100)}

## Delay of the L4S queue

99th percentile of the waiting time in ms beside the draft's flow; from 40 Mbit/s on it is at most
{low:.2f} ms in every run of either design. A packet takes 3 ms at 4 Mbit/s and 1 ms at 12 Mbit/s,
and the step is two packets there.

{grid(draft, "l4s_p99_ms", 2)}

With `prague:steady`:

{grid(steady, "l4s_p99_ms", 2)}

## Delay of the Classic queue

Median of the waiting time in ms beside the draft's flow; the target is 15.

{grid(draft, "classic_p50_ms", 1)}

{PICTURED}
## Utilization

In percent, with the draft; at least {least * 100:.1f} in every run of either design:

{grid(draft, "utilization", 1, 100)}

With `prague:steady`:

{grid(steady, "utilization", 1, 100)}
"""


STUDY = Study("l4s", __doc__, run, page, ("prague", "prague:steady", ECHOED))


if __name__ == "__main__":
    STUDY.main()
