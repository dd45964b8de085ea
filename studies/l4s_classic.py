"""Prague beside CUBIC in Classic queues that mark, with and without its fallback.

$ python -m studies.l4s_classic     run what build/l4s-classic has not yet; table and page

Shares in CoDel, PIE, RED and PI2, both flows with ECN; and for how long the fallback takes a
DualPI2 queue, or FQ-CoDel with a threshold for L4S, for a Classic one. One seed.
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
from lfnlab.scenario.elements import Jitter, Link, Queue
from studies.l4s import BUFFER_S, FAIR, RATES_MBIT, RTTS_MS, grid
from studies.study import Study

if TYPE_CHECKING:
    from lfnlab.results.runs import Run

PLAIN, FALLBACK = "prague", "prague:fallback"
CLASSIC = {"CoDel": "codel", "PIE": "pie", "RED": "red", "PI2": "pi2"}
CLASSIC_RATES_MBIT = (12, 40, 120, 1000)
CLASSIC_RTTS_MS = (10, 40, 100)
DUAL, FQ = "DualPI2", "FQ-CoDel"
L4S = {DUAL: {"kind": "dualpi2"}, FQ: {"kind": "fq-codel", "ce_threshold": "1ms"}}
ONLY_ECT1 = {"ce_threshold_selector": 1, "ce_threshold_mask": 3}
FLOWS = {"alone": "", "beside CUBIC": "cubic", "beside its own law": FALLBACK}
JITTERS_MS = (1, 3, 10)
JITTERED = (120, 20)
"""The cell that is run with jitter: Mbit/s and ms."""
CLASSIC_PROBE = 4
"""The place of ``classic`` among the probes of the law."""


def scenario(
    law: str, queue: dict[str, Any], rate_mbit: int, rtt_ms: int, rival: str, jitter_ms: int = 0
) -> Scenario:
    """A flow of ``law`` with ECT(1) and perhaps one rival; of 100 s the last 70 count."""
    jitter = Jitter(high=f"{jitter_ms}ms") if jitter_ms else None
    size = f"{rate_mbit * 1_000_000 * BUFFER_S / 8:.0f}B"
    path = Scenario(
        duration="100s",
        warmup="30s",
        sample="100ms",
        link=Link(rate=f"{rate_mbit}Mbit/s", queue=Queue(size=size, **queue), jitter=jitter),
        default_rtt=f"{rtt_ms}ms",
    ).flow(law, start="uniform(0s, 1s)")
    if not rival:
        return path
    marked = rival != "cubic" or queue["kind"] not in ("dualpi2", "fq-codel")
    return path.flow(rival, start="uniform(0s, 1s)", ecn=marked)


def run(names: Sequence[str], out: FilePath) -> pl.DataFrame:
    """A row a law, queue and cell: share, utilization, time as Classic, hash."""
    cases = [
        case(law, name, {"kind": kind, "ecn": True}, rate, rtt, "beside CUBIC")
        for law in names
        for name, kind in CLASSIC.items()
        for rate in CLASSIC_RATES_MBIT
        for rtt in CLASSIC_RTTS_MS
    ]
    cases += [
        case(FALLBACK, name, queue | (ONLY_ECT1 if name == FQ else {}), rate, rtt, flows)
        for name, queue in L4S.items()
        for flows in FLOWS
        for rate in RATES_MBIT
        for rtt in RTTS_MS
    ]
    cases += [
        case(FALLBACK, DUAL, L4S[DUAL], *JITTERED, "beside CUBIC", jitter_ms)
        for jitter_ms in JITTERS_MS
    ]
    found = execute(cases, seeds=1, out=out, jobs=1, title="Prague in Classic queues")
    return pl.DataFrame([row(run) for run in found.runs])


def case(
    law: str,
    name: str,
    queue: dict[str, Any],
    rate: int,
    rtt: int,
    flows: str,
    jitter_ms: int = 0,
) -> Case:
    """A run, and its names in the table."""
    factors: dict[str, str | int | float] = {
        "law": law,
        "queue": name,
        "rate_mbit": rate,
        "rtt_ms": rtt,
        "flows": flows,
        "jitter_ms": jitter_ms,
    }
    return Case(scenario(law, queue, rate, rtt, FLOWS[flows], jitter_ms), factors)


def row(run: Run) -> dict[str, str | int | float]:
    """Prague's share of the goodputs, and the part of the samples in which it answered as CUBIC."""
    own, *others = run.goodputs
    probes = run.table("probes").filter(flow=0, probe=CLASSIC_PROBE)
    return {
        **run.factors,
        "share": round(own / (own + sum(others)), 4),
        "utilization": round(run.summary["links"][0]["utilization"], 4),
        "classic": round(float(probes["value"].mean()), 4),  # type: ignore[arg-type]
        "hash": run.summary["hash"],
    }


def shares(table: pl.DataFrame, name: str, law: str) -> str:
    """The grid of a Classic queue."""
    rows = table.filter(pl.col("queue") == name, pl.col("law") == law)
    return grid(rows, "share", 0, 100, CLASSIC_RATES_MBIT, CLASSIC_RTTS_MS)


def taken(table: pl.DataFrame) -> str:
    """A line a queue for L4S and its flows: how often it was taken for a Classic one."""
    lines = []
    for name in L4S:
        for flows in FLOWS:
            rows = table.filter(
                pl.col("queue") == name, pl.col("flows") == flows, pl.col("jitter_ms") == 0
            )
            parts: list[float] = rows["classic"].to_list()
            wrong = sum(part > 0 for part in parts)
            lines.append((name, flows, f"{wrong} of {len(parts)}", f"{max(parts):.1%}"))
    return chr(10).join(markdown(("queue", "flow", "cells", "longest part of the run"), lines))


def jittered(table: pl.DataFrame) -> str:
    """A line a jitter: how long the queue for L4S was taken for a Classic one, and the share."""
    rate, rtt = JITTERED
    cell = table.filter(
        pl.col("queue") == DUAL,
        pl.col("flows") == "beside CUBIC",
        pl.col("rate_mbit") == rate,
        pl.col("rtt_ms") == rtt,
    ).sort("jitter_ms")
    lines = [
        (f"0 to {row['jitter_ms']} ms", f"{100 * row['classic']:.0f}", f"{100 * row['share']:.0f}")
        for row in cell.to_dicts()
    ]
    heads = ("jitter, uniform", "part of the run as Classic, %", "share of Prague, %")
    return chr(10).join(markdown(heads, lines))


def page(table: pl.DataFrame, stamp: str) -> str:
    """docs/l4s-classic.md."""
    classic = table.filter(pl.col("queue").is_in([*CLASSIC]))
    of = {law: classic.filter(pl.col("law") == law) for law in (PLAIN, FALLBACK)}
    fair = {law: rows.filter(pl.col("share").is_between(*FAIR)).height for law, rows in of.items()}
    low, high = (100 * of[FALLBACK]["share"].quantile(q) for q in (0.0, 1.0))  # type: ignore[operator]
    parts = "\n\n".join(
        f"### {name}\n\nWithout:\n\n{shares(table, name, PLAIN)}\n\n"
        f"With `{FALLBACK}`:\n\n{shares(table, name, FALLBACK)}"
        for name in CLASSIC
    )
    return f"""\
# Prague in a Classic queue

A queue that marks as RFC 3168 says means "halve" by a mark. A flow of
[Prague](../laws/cards/prague.md) takes a small part off for each, and so it takes the link from
flows that halve. RFC 9331 (section 4.3, item 3) demands that a sender on the Internet finds such a
queue and answers as a Classic flow. `{FALLBACK}` does: it is Prague's draft with the parameter
`fallback`, which the variants have, too (`prague:steady:fallback=1`). The card tells
[the rules](../laws/cards/prague.md#fallback-on-a-classic-queue).

{stamp} Every run is in [studies/reference/l4s_classic.csv](../studies/reference/l4s_classic.csv).

## Shares in Classic queues

A flow of Prague and one of CUBIC with ECN, started in the first second, share one queue that marks,
with its defaults and room for {BUFFER_S * 1e3:.0f} ms; of 100 s the last 70 count. Without the
fallback {fair[PLAIN]} of {classic.height // 2} cells lie between 40 and 60 %, with it
{fair[FALLBACK]}, all between {low:.0f} and {high:.0f} %. Share of Prague in percent:

{parts}

The cells beyond 60 % are the time before it knows: on a long and fast path a window that grows by
one segment a round takes long to the first marks, and six rounds with marks follow. FQ-CoDel is no
problem with or without: each flow has a queue of its own.

## Queues for L4S

The other error is to take a queue for L4S for a Classic one, and to lose by it. In
{len(RATES_MBIT) * len(RTTS_MS)} cells each ({RATES_MBIT[0]} to {RATES_MBIT[-1]} Mbit/s,
{RTTS_MS[0]} to {RTTS_MS[-1]} ms), CUBIC without ECN; FQ-CoDel marks ECT(1) from 1 ms on
(`ce_threshold`). Cells in which that happened at all, each time right after slow start, and the
longest part of a run that it took:

{taken(table)}

## Where it errs

- Jitter. The depth of a queue is the RTT less the smallest RTT, and a jitter that is uniform
  between 0 and 3 ms is 1.5 ms of it. A flow that answers as CUBIC in a queue that marks from 1 ms
  on loses to the one in the Classic queue. Beside CUBIC in DualPI2 at {JITTERED[0]} Mbit/s ×
  {JITTERED[1]} ms:

{jittered(table)}

- A path whose RTT grows by more than 2 ms looks as a standing queue until the flow ends.
- Below some 10 Mbit/s a queue of CoDel holds few packets, and so does one for L4S. There the flow
  changes its mind several times a minute; the shares are fair even so.
"""


STUDY = Study("l4s_classic", __doc__, run, page, (PLAIN, FALLBACK))


if __name__ == "__main__":
    STUDY.main()
