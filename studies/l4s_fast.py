"""Prague beside CUBIC in a DualPI2 queue from 0.4 to 10 Gbit/s, and why a cell is not fair.

$ python -m studies.l4s_fast        run what build/l4s-fast has not yet; table and page

As ``studies.l4s``: both started in the first second, 300 s of which the last 200 count. One seed.
Each cause is a run of a cell that varies one thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import polars as pl

from lfnlab.analysis.table import markdown
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from studies.l4s import fair_cells, grid, row, scenario
from studies.study import Study

if TYPE_CHECKING:
    from lfnlab.scenario.builder import Scenario

RATES_MBIT = (400, 1000, 2500, 5000, 10000)
RTTS_MS = (10, 20, 50, 100, 200)
LAWS = ("prague:steady", "prague")
PLAIN, RENO, LATE, LONG = "", "Reno in CUBIC's place", "CUBIC 20 s later", "a longer run"
#: Which cells of `prague:steady` are run with one thing varied.
VARIED = (
    (RENO, 2500, 20),
    (RENO, 5000, 10),
    (LATE, 2500, 200),
    (LATE, 5000, 100),
    (LATE, 5000, 200),
    (LONG, 400, 200),
)
#: Of a longer run the last 200 s count, too.
LONG_S = {400: 1500}


WHY = """\
At RTTs of 10 and 20 ms the rival's law is the reason: the square of p' is made for windows that go
by 1/sqrt(p), as Reno's does (RFC 9332). Windows of thousands of packets lie beyond the range in
which CUBIC is Reno's equal, and it takes more; beside Reno the same flow has 55 %.

At 200 ms, and at 100 ms from 2.5 Gbit/s on, the start is: both are in slow start together, Prague
leaves it at its first mark and then grows by one segment a round, which takes hours to half of 10
Gbit/s. Where CUBIC comes 20 s later, Prague has its window before, and the shares are above a
half. Neither is a balance: these runs are too short for one. A longer run of 400 Mbit/s × 200 ms
comes to 70 %, probably for the reason that [lower rates](l4s.md#causes) show at 100 ms: with the
sawtooth of one CUBIC p' swings, and marks count its mean, drops the mean of its square. 10 Gbit/s
was not run again with one thing varied.
"""


def varied(what: str, rate_mbit: int, rtt_ms: int) -> Scenario:
    """The cell of ``prague:steady`` with one thing varied."""
    cell = scenario("prague:steady", rate_mbit, rtt_ms)
    own, rival = cell.flows
    if what == RENO:
        return replace(cell, flows=(own, replace(rival, law="reno")))
    if what == LATE:
        return replace(cell, flows=(own, replace(rival, start="20s")))
    end_s = LONG_S[rate_mbit]
    return replace(cell, duration=f"{end_s}s", warmup=f"{end_s - 200}s")


def run(names: Sequence[str], out: FilePath) -> pl.DataFrame:
    """A row a law and cell, then the varied ones: share, delays, marks, utilization, hash."""
    cases = [
        Case(
            scenario(law, rate, rtt),
            {"law": law, "rate_mbit": rate, "rtt_ms": rtt, "varied": PLAIN},
        )
        for law in names
        for rate in RATES_MBIT
        for rtt in RTTS_MS
    ]
    cases += [
        Case(
            varied(what, rate, rtt),
            {"law": "prague:steady", "rate_mbit": rate, "rtt_ms": rtt, "varied": what},
        )
        for what, rate, rtt in VARIED
    ]
    found = execute(cases, seeds=1, out=out, jobs=1, title="L4S from 0.4 to 10 Gbit/s")
    return pl.DataFrame([row(run) for run in found.runs])


def causes(table: pl.DataFrame) -> str:
    """A line a varied run: the cell's share, then with the one thing varied."""
    cells = of(table, "prague:steady")
    lines = []
    for what, rate, rtt in VARIED:
        here = pl.col("rate_mbit").eq(rate) & pl.col("rtt_ms").eq(rtt)
        [plain] = cells.filter(here).to_dicts()
        [other] = table.filter(here, pl.col("varied") == what).to_dicts()
        named = f"{what}, {LONG_S[rate]} s" if what == LONG else what
        shares = (f"{one['share'] * 100:.1f}" for one in (plain, other))
        used = (f"{one['utilization'] * 100:.1f}" for one in (plain, other))
        lines.append((f"{rate} Mbit/s × {rtt} ms", named, *shares, *used))
    heads = ("cell", "varied", "share", "then", "utilization", "then")
    return chr(10).join(markdown(heads, lines))


def of(table: pl.DataFrame, law: str) -> pl.DataFrame:
    """The cells of a law, without varied ones."""
    return table.filter(pl.col("law") == law, pl.col("varied").fill_null(PLAIN) == PLAIN)


def square(cells: pl.DataFrame, column: str, digits: int, scale: float = 1) -> str:
    """A table of the 25 cells."""
    return grid(cells, column, digits, scale, RATES_MBIT, RTTS_MS)


def page(table: pl.DataFrame, stamp: str) -> str:
    """docs/l4s-fast.md."""
    steady, draft = (of(table, law) for law in LAWS)
    both = pl.concat([steady, draft])
    low_ms = max(both["l4s_p99_ms"].to_list())
    cells = len(RATES_MBIT) * len(RTTS_MS)
    return f"""\
# L4S from 0.4 to 10 Gbit/s

[Prague beside CUBIC](l4s.md) at higher rates: a flow of [Prague](../laws/cards/prague.md) with
ECT(1) and one of CUBIC without ECN behind [`dualpi2`](scenario.md#queues) with its defaults. Both
start in the first second; of 300 s the last 200 count. One seed.

{stamp} Every run is in [studies/reference/l4s_fast.csv](../studies/reference/l4s_fast.csv).

## Share of Prague

With `prague:steady` {fair_cells(steady)} of {cells} cells lie between 40 and 60 %. In percent:

{square(steady, "share", 1, 100)}

With the draft {fair_cells(draft)} of {cells}:

{square(draft, "share", 1, 100)}

## Causes

Runs of a cell of `prague:steady` that vary one thing; shares and utilizations in percent:

{causes(table)}

{WHY}
## Delay and utilization

The delay of the L4S queue, 99th percentile, is at most {low_ms:.2f} ms in every run. Median of the
Classic queue's in ms beside `prague:steady`; the target is 15:

{square(steady, "classic_p50_ms", 1)}

Utilization in percent with `prague:steady`:

{square(steady, "utilization", 1, 100)}

With the draft:

{square(draft, "utilization", 1, 100)}
"""


STUDY = Study("l4s_fast", __doc__, run, page, LAWS)


if __name__ == "__main__":
    STUDY.main()
