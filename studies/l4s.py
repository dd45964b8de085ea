"""Prague beside CUBIC in a DualPI2 queue: shares, delays and utilization by rate and RTT.

$ python -m studies.l4s                 run what build/l4s has not yet; table and page
$ python -m studies.l4s --laws dctcp    print the cells of another scalable law only

One flow of each law, both started in the first second, for 300 s of which the last 200 count.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

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

EXPLAINED = """\
Prague has more than its half in most other cells, for two reasons, which the runs measure.

A reduction ends a round. The next one needs another mark, which comes half of the distance between
two marks later in the mean. So the product x of window and p/(1 - p), p the fraction of packets
marked, is not 2, as the draft's formula says: x = 2 (1 + 1/(2x)) gives 1 + √2 = 2.41 for marks at
equal distances. x is larger where p changes much during a run:
"""
COUPLED = """\
The other reason is the sawtooth of a single CUBIC flow, with which p' swings. Drops follow the mean
of p'^2, marks the mean of 2 p', which is the smaller the more p' swings. The fraction marked over
twice the root of the fraction dropped is 1 where p' stands still, as with a load that takes no
notice (`crates/path/tests/dualpi2.rs`):
"""
ENDS = """\
At 12 Mbit/s × 5 ms Prague has less than 40 %: its virtual RTT of 25 ms is longer than CUBIC's of
5 ms and 15 ms in the queue. At 4 Mbit/s × 5 ms its smallest window, two packets, is more than half
of the link.
"""
BUFFER_S = 0.25
"""RFC 9332, appendix A.1: the limit of both queues together."""


def scenario(law: str, rate_mbit: int, rtt_ms: int) -> Scenario:
    """A flow of ``law`` with ECT(1) and one of CUBIC without ECN behind a DualPI2 queue."""
    size = f"{rate_mbit * 1_000_000 * BUFFER_S / 8:.0f}B"
    path = Scenario(
        duration="300s",
        warmup="100s",
        sample="off",
        link=Link(rate=f"{rate_mbit}Mbit/s", queue=Queue(kind="dualpi2", size=size)),
        default_rtt=f"{rtt_ms}ms",
    )
    started = path.flow(law, start="uniform(0s, 1s)", ecn=True, l4s=True)
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


def grid(table: pl.DataFrame, column: str, digits: int, scale: float = 1) -> list[str]:
    """Means over the seeds: a row a rate, a column an RTT."""
    mean = table.group_by("rate_mbit", "rtt_ms").agg(pl.col(column).mean())
    cells = {(rate, rtt): value for rate, rtt, value in mean.iter_rows()}
    rows = [
        (f"{rate} Mbit/s", *(f"{cells[rate, rtt] * scale:.{digits}f}" for rtt in RTTS_MS))
        for rate in RATES_MBIT
    ]
    return [*markdown(("", *(f"{rtt} ms" for rtt in RTTS_MS)), rows)]


def shares(table: pl.DataFrame, law: str) -> str:
    """How many cells are fair, and the grid of shares."""
    rows = table.filter(pl.col("law") == law)
    grid_lines = chr(10).join(grid(rows, "share", 1, 100))
    cells = len(RATES_MBIT) * len(RTTS_MS)
    return (
        f"{fair_cells(rows)} of {cells} cells lie between 40 and 60 %. In percent:\n\n{grid_lines}"
    )


def product() -> pl.Expr:
    """Window in a virtual RTT times p/(1 - p), p the fraction of L4S packets marked."""
    rtt_s = pl.max_horizontal((pl.col("rtt_ms") + pl.col("l4s_p50_ms")) / 1e3, VIRTUAL_RTT_S)
    rate_bps = pl.col("share") * pl.col("utilization") * pl.col("rate_mbit") * 1e6
    marked = pl.col("l4s_marked")
    return rate_bps / PACKET_BITS * rtt_s * marked / (1 - marked)


def coupled() -> pl.Expr:
    """L4S packets marked over 2 sqrt(Classic packets dropped), as fractions: 1 at a steady p'."""
    return pl.col("l4s_marked") / (2 * pl.col("classic_dropped").sqrt())


def fair_cells(table: pl.DataFrame) -> int:
    """Cells whose mean share lies in the band of :data:`FAIR`."""
    mean = table.group_by("rate_mbit", "rtt_ms").agg(pl.col("share").mean())
    return mean.filter(pl.col("share").is_between(*FAIR)).height


def page(table: pl.DataFrame, stamp: str) -> str:
    """docs/l4s.md."""
    low = max(table.filter(pl.col("rate_mbit") >= 40)["l4s_p99_ms"].to_list())
    prague = table.filter(pl.col("law") == "prague")
    return f"""\
# L4S: Prague beside CUBIC

A flow of Prague, whose packets are ECT(1), and a flow of CUBIC without ECN share a link with the
queue [`dualpi2`](scenario.md#queues) (RFC 9332) with its default parameters
and room for {BUFFER_S * 1e3:.0f} ms. Both start in the first second and have the same base RTT; of
300 s the last 200 count. The queue knows no flows: by its marks and drops alone each should get
half of the link. Means over {SEEDS} seeds, which differ by the starts only.

{stamp} Every run is in [studies/reference/l4s.csv](../studies/reference/l4s.csv).

## Share of Prague

{shares(table, "prague")}

{EXPLAINED}
{chr(10).join(grid(prague.with_columns(product=product()), "product", 2))}

{COUPLED}
{chr(10).join(grid(prague.with_columns(coupled=coupled()), "coupled", 2))}

{ENDS}
## Delay of the L4S queue

99th percentile of the waiting time in ms; from 40 Mbit/s on it is at most {low:.2f} ms in every
run. A packet takes 3 ms at 4 Mbit/s and 1 ms at 12 Mbit/s, and the step is two packets there.

{chr(10).join(grid(prague, "l4s_p99_ms", 2))}

## Delay of the Classic queue

Median of the waiting time in ms; the target is 15.

{chr(10).join(grid(prague, "classic_p50_ms", 1))}

## Utilization

In percent:

{chr(10).join(grid(prague, "utilization", 1, 100))}
"""


STUDY = Study("l4s", __doc__, run, page, ("prague",))


if __name__ == "__main__":
    STUDY.main()
