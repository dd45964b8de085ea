"""The same paths, eight CUBICs and four BBRs of deployed stacks; and their Renos beside ours.

$ python -m studies.stack_paths          run what build/stack-paths has not yet; table and page
$ python -m studies.stack_paths --page   write docs/stack-paths.md alone

Needs ``make stacks``. Each controller runs alone on twelve long paths, then on each beside one flow
of Linux's CUBIC that starts in the same second (two seeds), then beside a second flow of its own
with twice the RTT. The Renos run alone on twelve shorter paths, where a minute has many losses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from lfnlab.analysis.table import markdown
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.figures.cells import cells
from lfnlab.figures.plot import house_style
from lfnlab.figures.small import for_page
from lfnlab.scenario.builder import Scenario
from lfnlab.scenario.elements import Link, Queue
from lfnlab.statistics import interval
from studies.study import FIGURES, SHADES, Study

if TYPE_CHECKING:
    from lfnlab.results.runs import Run

CUBICS = (
    *("cubic", "cubic:linux", "quinn:cubic", "s2n:cubic"),
    *("quic-go:cubic", "tquic:cubic", "smoltcp:cubic", "quiche:cubic"),
)
BBRS = ("quinn:bbr", "s2n:bbr", "tquic:bbr", "tquic:bbr3")
RENO = "reno"
RENOS = ("quinn:new_reno", "smoltcp:reno", "quiche:reno", "quic-go:reno")
PATHS = tuple(product((100, 400), (50, 100, 200), (0.2, 1.0)))
"""Mbit/s, ms, BDP."""
RENO_PATHS = tuple(product((20, 40, 80), (20, 40), (0.5, 1.0)))
"""A run of 20 minutes has 70 reductions and more on these."""
SEEDS = 2
Figures = dict[str, str | int | float]
ABOUT = """\
Each [controller of a stack](stacks.md) ran alone for 40 s on twelve paths: 100 and 400 Mbit/s, 50,
100 and 200 ms, a drop-tail buffer of 0.2 or 1 BDP. Then beside one flow of Linux's CUBIC, which
starts up to a second later (two seeds): its share of both goodputs. Then beside a second flow of
its own with twice the RTT: the share of the shorter one. The first 5 s do not count. Means over the
paths with 95 % confidence intervals. The sender is the simulator's TCP; window and pacing are the
controller's.
"""
MEANS = """\
The row of `cubic:linux` is the measure: beside itself it has 44 % and 70 %, since the first flow
starts earlier and 40 s are short for CUBIC at these windows.

Seven of the eight CUBICs are alike when alone: with 1 BDP they fill the link and drop 0.01 to
0.02 %. Ours have a tenth less at 0.2 BDP, since their bursts are not paced: on 400 Mbit/s × 100
ms `cubic:linux` has 322 Mbit/s, with `pacing = true` 376. Beside Linux's CUBIC they are not
alike: quic-go's, to which no option of quic-go leads, has 81 to 85 %. quiche's undoes single
losses, so its window stays at the end of the buffer: it drops 3 %, a hundred times as much as
others, and leaves Linux's CUBIC 3 to 10 %.

The BBRs differ more from each other than from CUBIC. Those of s2n-quic and tquic keep the queue
below a tenth of an RTT. quinn's fills each buffer, drops 18 to 49 % and leaves nothing to a flow
of CUBIC. tquic's BBR3 uses 62 % of an empty link. So a table that says "CUBIC" or "BBR" says
little without stack and version.

Two of these need a second look before anything rests on them. quinn's BBR, whose pacer uses 1.25
windows in an RTT and not BBR's rate, and tquic's BBR3 ran here as controllers of our sender, not
in their whole stacks.
"""
RTTS = """\
Two flows of one controller, the second with twice the RTT. 50 % is an equal share, 67 % the share
by the inverse of the RTT. Each CUBIC but quiche's gives the shorter RTT 64 to 88 % at 0.2 BDP and
78 to 89 % at 1 BDP, in the mean of six paths; quiche's gives it 93 and 99 %. At 0.2 BDP those of
stacks give it more than ours do (80 % and more, ours 64 %). The BBRs have no common side: at 1 BDP
quinn's, tquic's and tquic's BBR3 give the shorter RTT 31 to 44 %, s2n-quic's about a half, and at
0.2 BDP s2n-quic's gives it 93 %. One run of 40 s each: a cell says less than a row.
"""
RENO_ABOUT = """\
Alone for 20 minutes on twelve other paths: 20, 40 and 80 Mbit/s, 20 and 40 ms, 0.5 and 1 BDP, an
ACK for each packet. Differences to `reno`: their mean, the largest, and on how many paths it is
at most 2 %.
"""
RENO_MEANS = """\
Goodput, mean window and reductions of quinn and quiche are ours within 2 %, except on the
smallest path, whose mean window is 39 packets, and in quinn's reductions on one more, where its
pacing differs: to `reno` with `pacing = true` they differ by 1.6 % at most. One run each of 120 s
on that path shows the rules that differ (20 Mbit/s × 20 ms, 0.5 BDP); the window is 52 packets at
each loss, and 26 after it. `reno` comes down over a round trip (PRR, RFC 6937), which adds 0.5
packets to its mean window, and grows by a part of a packet at each ACK. quinn comes down at once,
and grows by a whole packet after a window of ACKs: 38.8 packets in place of 39.9 (`reno:linux`, of
whole packets, has 39.0). quiche takes half a window for acknowledged at each loss, so that its
first packet comes half a round trip sooner: a cycle of 0.653 s in place of 0.673, and 3 % more
reductions. smoltcp adds whole
bytes at each ACK and rounds down: at 412 packets 3 bytes in place of 3.5, which is 0.85 packets
in a round trip, and has 16 % fewer reductions there; RFC 5681 (3) is not rounded. quic-go keeps
0.7 of the window instead of half.
"""


def path(rate_mbit: int, rtt_ms: int, buffer_bdp: float, *, long: bool) -> Scenario:
    """A dumbbell with drop-tail, without flows."""
    return Scenario(
        duration="1200s" if long else "40s",
        warmup="60s" if long else "5s",
        sample="off",
        link=Link(rate=f"{rate_mbit}Mbit/s", queue=Queue(size=f"{buffer_bdp}bdp")),
        default_rtt=f"{rtt_ms}ms",
    )


def _cases(kind: str, laws: Iterable[str], paths: Iterable[tuple[int, int, float]]) -> list[Case]:
    cases = []
    for law, (rate, rtt, buffer) in product(laws, paths):
        long = kind == "reno"
        scenario = path(rate, rtt, buffer, long=long).flow(law, delayed_ack=not long)
        if kind == "beside":
            scenario = scenario.flow("cubic:linux", start="uniform(0s, 1s)")
        elif kind == "rtts":
            scenario = scenario.flow(law, rtt=f"{2 * rtt}ms")
        factors: Figures = {
            "kind": kind,
            "law": law,
            "rate_mbit": rate,
            "rtt_ms": rtt,
            "bdp": buffer,
        }
        cases.append(Case(scenario, factors))
    return cases


def run(names: Sequence[str], out: FilePath) -> pl.DataFrame:
    """A row for each kind, law, path and seed."""
    renos = [law for law in names if law in RENOS]
    others = [law for law in names if law not in RENOS]
    once = [*_cases("alone", others, PATHS), *_cases("rtts", others, PATHS)]
    once += _cases("reno", [RENO, *renos] if renos else [], RENO_PATHS)
    rows = [row(one) for one in execute(once, out=out / "once", jobs=1, title="stacks").runs]
    if others:
        beside = _cases("beside", others, PATHS)
        found = execute(beside, seeds=SEEDS, out=out / "beside", jobs=1, title="stacks").runs
        rows += map(row, found)
    return pl.DataFrame(rows)


def row(run: Run) -> Figures:
    """Of the first flow, and of the bottleneck."""
    first, link = run.summary["flows"][0], run.summary["links"][0]
    goodputs, window = run.goodputs, first["mean_cwnd_segments"]
    assert window is not None, "a flow of TCP"
    return {
        **run.factors,
        "seed": run.seed,
        "goodput_mbit": round(goodputs[0] / 1e6, 3),
        "share": round(goodputs[0] / sum(goodputs), 4),
        "window": round(window, 3),
        "reductions": first["loss_events"],
        "retransmits": first["retransmits"],
        "dropped": round(link["drops"] / link["arrivals"], 6),
        "queue_ms": round(link["mean_queue_s"] * 1e3, 3),
        "hash": run.summary["hash"],
    }


def _mean(values: Sequence[float], digits: int, scale: float = 1) -> str:
    """Mean over paths and its 95 % confidence interval."""
    found = interval([value * scale for value in values])
    return f"{found.mean:.{digits}f} ± {found.half:.{digits}f}"


def _of(table: pl.DataFrame, kind: str, law: str, column: str, buffer: float | None) -> list[float]:
    """A value for each path, the mean of its seeds."""
    rows = table.filter((pl.col("kind") == kind) & (pl.col("law") == law))
    if buffer is not None:
        rows = rows.filter(pl.col("bdp") == buffer)
    keys = ("rate_mbit", "rtt_ms", "bdp")
    return rows.group_by(*keys, maintain_order=True).agg(pl.col(column).mean())[column].to_list()


def paths(table: pl.DataFrame) -> str:
    """A row for each controller: alone, beside Linux's CUBIC, and of two RTTs."""
    table = table.with_columns(
        used=pl.col("goodput_mbit") / pl.col("rate_mbit"),
        late=pl.col("queue_ms") / pl.col("rtt_ms"),
    )
    headings = (
        *("controller", "goodput, 0.2 BDP (%)", "goodput, 1 BDP (%)"),
        *("dropped, 0.2 BDP (%)", "dropped, 1 BDP (%)", "queue, 1 BDP (RTT)"),
        *("share, 0.2 BDP (%)", "share, 1 BDP (%)"),
        *("share of the short RTT, 0.2 BDP (%)", "1 BDP (%)"),
    )
    rows = []
    for law in (*CUBICS, *BBRS):
        alone = partial(_of, table, "alone", law)
        rows.append(
            (
                f"`{law}`",
                *(_mean(alone("used", buffer), 1, 100) for buffer in (0.2, 1.0)),
                *(_mean(alone("dropped", buffer), 2, 100) for buffer in (0.2, 1.0)),
                _mean(alone("late", 1.0), 2),
                *(_mean(_of(table, "beside", law, "share", b), 0, 100) for b in (0.2, 1.0)),
                *(_mean(_of(table, "rtts", law, "share", b), 0, 100) for b in (0.2, 1.0)),
            )
        )
    return "\n".join(markdown(headings, rows))


def draw_rtts(table: pl.DataFrame) -> Figure:
    """The share of the shorter RTT, a panel for each buffer: controllers by paths."""
    laws = [*CUBICS, *BBRS]
    sides = list(dict.fromkeys((rate, rtt) for rate, rtt, _ in PATHS))
    with house_style():
        figure = Figure(figsize=(11, 5.2))
        panels = figure.subplots(1, 2, sharey=True)
        for axes, buffer in zip(panels, (0.2, 1.0), strict=True):
            shares = np.array([_of(table, "rtts", law, "share", buffer) for law in laws])
            names = [f"{rate}, {rtt}" for rate, rtt in sides]
            cells(axes, 100 * shares, laws, names, colours="PuOr", shades=SHADES, limits=(0, 100))
            axes.set_title(f"buffer of {buffer:g} BDP")
            axes.set_xlabel("Mbit/s, ms")
        figure.suptitle("share of the flow with half the RTT, %")
    return figure


def renos(table: pl.DataFrame) -> str:
    """Differences to our Reno, path by path: the mean over the paths, and the largest."""
    rows = []
    for law in RENOS:
        cells = [f"`{law}`"]
        for column in ("goodput_mbit", "window", "reductions"):
            own, beside = (_of(table, "reno", one, column, None) for one in (law, RENO))
            off = [100 * (a / b - 1) for a, b in zip(own, beside, strict=True)]
            within = sum(abs(value) <= 2 for value in off)
            most = max(off, key=abs)
            cells.append(f"{sum(off) / len(off):+.2f} %, at most {most:+.1f} % ({within} of 12)")
        rows.append(cells)
    return "\n".join(markdown(("controller", "goodput", "mean window", "reductions"), rows))


def page(table: pl.DataFrame, stamp: str) -> str:
    """docs/stack-paths.md and its figure."""
    (FIGURES / "stack-rtts.png").write_bytes(for_page(draw_rtts(table)))
    return f"""\
# The same paths, eight CUBICs and four BBRs

{ABOUT}
{stamp} Every run is in [studies/reference/stack_paths.csv](../studies/reference/stack_paths.csv).

{paths(table)}

{MEANS}
## Two RTTs

![Share of the flow with half the RTT, by controller and path](figures/stack-rtts.png)

{RTTS}
## Renos beside ours

{RENO_ABOUT}
{renos(table)}

{RENO_MEANS}"""


STUDY = Study("stack_paths", __doc__, run, page, (*CUBICS, *BBRS, *RENOS))


if __name__ == "__main__":
    STUDY.main()
