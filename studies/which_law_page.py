"""docs/which-law.md and its figure, from the table of :mod:`studies.which_law`."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from lfnlab.analysis.table import markdown
from lfnlab.figures.cells import cells
from lfnlab.figures.plot import house_style
from studies.study import SHADES

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "which-law.md"
FIGURE = ROOT / "docs" / "figures" / "which-law.png"
TABLE = ROOT / "studies" / "reference" / "which_law.csv"
PROPOSALS = ROOT / "studies" / "reference" / "proposals.csv"
DUELS = ROOT / "studies" / "reference" / "duels.csv"
DUEL_PATHS = {
    "1g-40ms": "1 Gbit/s × 40 ms",
    "1g-180ms": "1 Gbit/s × 180 ms",
    "10g-100ms": "10 Gbit/s × 100 ms",
}
SHOWN = "0.25bdp"
"""The buffer in the figure; a figure of all three would have 720 numbers."""
GOOD = 0.9
"""Share of the best law's goodput from which on a law counts as good."""

Row = dict[str, Any]
Path_ = tuple[str, str, str, float]


def by_path(table: pl.DataFrame) -> dict[Path_, dict[str, Row]]:
    """Rows of flows alone by rate, RTT, buffer and loss, then by law."""
    found: dict[Path_, dict[str, Row]] = {}
    for row in table.filter(pl.col("what") == "alone").iter_rows(named=True):
        path = (row["rate"], row["rtt"], row["buffer"], row["loss"])
        found.setdefault(path, {})[row["law"]] = row
    return found


def reaching(laws: dict[str, Row], sure: bool) -> set[str]:
    """Laws that have nine tenths of the best one's goodput; unless sure, as far as one can tell."""
    best = max(laws.values(), key=lambda row: float(row["percent"]))
    doubt = 0.0 if sure else 1.0

    def half(row: Row) -> float:
        return doubt * (row["half"] or 0.0)

    floor = GOOD * (best["percent"] - half(best))
    return {law for law, row in laws.items() if row["percent"] + half(row) >= floor}


def values(table: pl.DataFrame, column: str) -> list[Any]:
    """Those of flows alone, in the order of the study."""
    alone = table.filter(pl.col("what") == "alone")
    return alone[column].unique(maintain_order=True).to_list()


def decisions(table: pl.DataFrame) -> list[str]:
    """A line for each loss and buffer: the laws that are good at every RTT, at either rate."""
    paths = by_path(table)
    rtts = values(table, "rtt")
    rates = values(table, "rate")
    lines = []
    for loss, buffer in product(values(table, "loss"), values(table, "buffer")):
        cells = []
        for rate in rates:
            own = [paths[rate, rtt, buffer, loss] for rtt in rtts]
            worst = {law: min(laws[law]["percent"] for laws in own) for law in own[0]}
            surely = set.intersection(*(reaching(laws, sure=True) for laws in own))
            perhaps = set.intersection(*(reaching(laws, sure=False) for laws in own)) - surely
            names = [
                ", ".join(
                    f"{law} {worst[law]:.0f}"
                    for law in sorted(some, key=lambda law: (-worst[law], law))
                )
                for some in (surely, perhaps)
            ]
            cells.append("; perhaps ".join(filter(None, names)))
        lines.append((probability(loss), spaced(buffer), *cells))
    return [*markdown(("random loss", "buffer", *map(spaced, rates)), lines)]


def costs(table: pl.DataFrame) -> list[str]:
    """A line a law: what it does to others, to a newcomer of its own kind, and to the queue."""
    duels = pl.read_csv(DUELS, comment_prefix="#")
    paths = by_path(table)
    rates = values(table, "rate")
    fills = [(rate, "100ms", "1bdp", 0.0) for rate in rates]
    headings = [
        "law",
        *(f"beside one CUBIC, {title}, %" for title in DUEL_PATHS.values()),
        *(f"newcomer after 40 s, {spaced(rate)}, %" for rate in rates),
        *(f"mean queue, {spaced(rate)}, ms" for rate in rates),
    ]
    lines = []
    newcomers = {
        (row["law"], row["rate"]): row
        for row in table.filter(pl.col("what") == "newcomer").iter_rows(named=True)
    }
    for law in values(table, "law"):
        cells = [f"{beside_cubic(duels, path, law):.0f}" for path in DUEL_PATHS]
        cells += [
            f"{newcomers[law, rate]['percent']:.0f} ± {newcomers[law, rate]['half']:.0f}"
            for rate in rates
        ]
        cells += [f"{paths[path][law]['queue_ms']:.0f}" for path in fills]
        lines.append((law, *cells))
    return [*markdown(headings, lines)]


def beside_cubic(duels: pl.DataFrame, path: str, law: str) -> float:
    """Share of a flow of a law that meets one of CUBIC, percent."""
    for a, b in ((law, "cubic"), ("cubic", law)):
        found = duels.filter((pl.col("path") == path) & (pl.col("a") == a) & (pl.col("b") == b))
        if found.height:
            row = found.row(0, named=True)
            both = row["a_mbps"] + row["b_mbps"]
            if law == "cubic":
                return 50.0
            return float(100 * row["a_mbps" if a == law else "b_mbps"] / both)
    raise LookupError(f"{DUELS}: no duel of {law} and cubic on {path}")


def draw(table: pl.DataFrame) -> Figure:
    """Goodput in percent of the link with one buffer: a row a law, a column a path."""
    paths = by_path(table)
    laws = values(table, "law")
    columns = list(product(values(table, "rate"), values(table, "rtt"), values(table, "loss")))
    losses = len(values(table, "loss"))
    with house_style():
        figure = Figure(figsize=(10.5, 4.2))
        axes = figure.subplots()
        percent = np.array(
            [
                [paths[rate, rtt, SHOWN, loss][law]["percent"] for rate, rtt, loss in columns]
                for law in laws
            ]
        )
        names = [probability(p) for *_, p in columns]
        image = cells(axes, percent, laws, names, shades=SHADES, limits=(0, 100))
        for j in range(0, len(columns), losses):
            if j:
                axes.axvline(j - 0.5, color="w", linewidth=3)
            rate, rtt, _ = columns[j]
            axes.annotate(
                f"{spaced(rate)}\n× {spaced(rtt)}",
                (j + (losses - 1) / 2, 1),
                (0, 5),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
            )
        figure.colorbar(image, label="goodput in the first minute, % of the link")
        axes.set_xlabel(f"probability that a packet is lost at random; buffer {spaced(SHOWN)}")
    return figure


def spaced(quantity: str) -> str:
    """A quantity with a space before its unit."""
    number = quantity.rstrip("abcdefghijklmnopqrstuvwxyzG/")
    return f"{number} {quantity[len(number) :].replace('bdp', 'BDP')}"


def probability(loss: float) -> str:
    """0, or a power of ten."""
    return f"{loss:.0e}".replace("e-0", "e-") if loss else "0"


def proposals() -> str:
    """A row for each path, buffer and loss: the goodput of the papers' proposals, percent."""
    table = pl.read_csv(PROPOSALS, comment_prefix="#")
    laws = table["law"].unique(maintain_order=True).to_list()
    paths: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in sorted(table.iter_rows(named=True), key=place):
        where = (row["paper"], *map(spaced, (row["rate"], row["rtt"])))
        where = (*where, probability(row["loss"]), spaced(row["buffer"]))
        paths.setdefault(where, {})[row["law"]] = row
    rows = []
    for path, own in paths.items():
        cells = [f"{own[law]['percent']:.0f}" for law in laws]
        cells = [
            cell if own[law]["half"] is None else f"{cell} ± {own[law]['half']:.0f}"
            for law, cell in zip(laws, cells, strict=True)
        ]
        rows.append((*path, *cells))
    headings = ("path of", "rate", "RTT", "random loss", "buffer", *laws)
    return "\n".join(markdown(headings, rows))


def place(row: Row) -> tuple[str, float, float]:
    """Where a path stands in the table: by paper, RTT, and loss."""
    return row["paper"], float(row["rtt"].removesuffix("ms")), row["loss"]


def page() -> str:
    """The page, from the committed tables."""
    table = pl.read_csv(TABLE, comment_prefix="#")
    return TEXT.format(
        decisions="\n".join(decisions(table)),
        costs="\n".join(costs(table)),
        proposed=stamp(PROPOSALS),
        stamp=stamp(TABLE),
        duels=stamp(DUELS),
    )


def stamp(file: Path) -> str:
    """The first line of a table, which names the program that made it."""
    return file.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


TEXT = """\
# Which law for which path

This page shows how much of a path one flow of each law gets in the first minute, and how much it
costs other flows. Find your path in the first table, then the law in the second.

## Choose

{decisions}

The table names each law with at least nine tenths of the best law's goodput at 20, 100 and 200 ms.
The number is its goodput at the worst of the three RTTs, in percent of the link. After *perhaps*
are laws that three seeds cannot decide: the 95 % intervals overlap. Headers leave 96 % of the link
at 1 Gbit/s and 99 % at 10 Gbit/s.

- **Random loss, or a buffer far below a BDP: BBR**, v1 or v3. It has at least 77 % of the link on
  every path here. Laws that treat a loss as congestion do not: CUBIC at 10 Gbit/s × 200 ms and a
  quarter of a BDP has 93 % without loss, 52 % if one packet in a million is lost, 15 % at 1e-5, 2 %
  at 1e-4.
- **A clean path, a quarter of a BDP or more: CUBIC** has nine tenths of the best, and most
  neighbours run it.
- **Several flows of your own on a clean path: H-TCP.** A new flow has its half after 40 s; with
  CUBIC it has a fifth to a third. H-TCP takes 62 to 73 % beside CUBIC.
- **No other flows on the path: Scalable or HSTCP** have the highest goodput of the loss-based laws.
  They are unfair to other flows, also to new flows of the same law.
- **A short queue matters: BBR** holds 5 ms of 100, v3 19, CUBIC over 50, Scalable 88.
- **A shared path that is not yours: not BBR.** Beside one CUBIC it has 84 to 98 %.

## What it costs

{costs}

- *beside one CUBIC*: the law's share of the goodput of both, with a buffer of half a BDP; 50 is
  even. From [duels](duels.md), one seed.
- *newcomer*: the share of a second flow of the same law 40 to 60 s after its start, 100 ms, a
  buffer of a quarter of a BDP, three seeds; 50 is even.
- *mean queue*: of one flow alone, 100 ms, no random loss, a buffer of one BDP, which holds 100 ms.

![Goodput of one flow in its first minute, percent of the link, with a buffer of a quarter of a
BDP](figures/which-law.png)

[studies/reference/which_law.csv](../studies/reference/which_law.csv) has buffers of 0.05 and 1 BDP
too.

## The papers' proposals

Goodput of one flow in its first minute in percent of the link, on the paths of the
[five papers](papers.md), with packets of the paper's size:

<!-- made: proposals -->
`make site` shows here a row for each path, buffer and loss, from
[proposals.csv](../studies/reference/proposals.csv).
<!-- end of proposals -->

- One packet in 100,000 lost: `htcp-be:hold` keeps 50 to 93 % of the link on these paths and UDT 59
  to 92 %, where CUBIC has 11 to 78 %. Hold does not reduce its window at rare losses.
- A clean path and a buffer of a BDP: CUBIC, CW-HSTCP and FAST have the most; FAST needs room for
  its 200 packets in the queue.
- EVCP has VCP's routers on the path, which no network has. Its start takes 30 s at 1 Gbit/s, half
  of this minute.

{proposed}

## Before you rely on it

- *The first minute.* With packets of 1500 bytes Reno needs over an hour to recover from one loss at
  10 Gbit/s × 100 ms. If losses are rare, slow laws do better in a longer transfer. `lfn theory
  recovery` computes the time.
- *Loss probability per packet*: packets have 1500 bytes at 1 Gbit/s, 9000 at 10 Gbit/s. With small
  packets at 10 Gbit/s the same probability costs loss-based laws more.
- *Three seeds.* At 1e-6 a minute has five to eight random losses. Their times decide the result, so
  intervals are wide, and an order of two laws there is significant only if the table says so. The
  newcomers of BBR, BBR v3 and Scalable have intervals as wide as their shares. Without random loss
  there is one run, since nothing is random.
- *One bottleneck, drop-tail.* The effect of AQM is not tested here; for other RTTs see
  [RTT fairness](rtt-fairness.md).
- *Westwood+* has a low share, most likely because it grows by one segment per round trip, and a
  minute is too short to recover from its first losses; [duels](duels.md) show the same over longer
  times.
- *Default variants*, as in papers and RFCs; Linux' own differ in detail (`cubic:linux`). HTCP-BE
  and BBR v3 are not in Linux; `lfn kernel load htcp-be` loads one.
- *No host.* No CPU limits a sender here, and no sender sends bursts of 64 kB
  ([what is left out](engine.md)).

## Where the numbers come from

{stamp} Every number is in [studies/reference/which_law.csv](../studies/reference/which_law.csv),
with its interval, the number of its runs and the hash of their results. Duels: {duels}

For a path of your own, with your buffer and loss:

```sh
lfn compare --law cubic,htcp,bbr --rate 100Mbit/s --rtt 100ms --buffer 0.25bdp --loss 1e-5 \\
    --duration 20s --seeds 3 --no-report
```
"""
