"""Every law against every other on three paths: who gets how much, and what is left of the link.

$ python -m studies.duels          run what build/duels has not yet; table, page and figures
$ python -m studies.duels --laws reno,cubic        a few laws only
$ python -m studies.duels --page   page and figures from the committed table

Two flows of default variants, one of each law, and two of each law, start within the first 5 s.
The seed is 1. Laws that need routers of their own are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from lfnlab import dumbbell, laws
from lfnlab.analysis.table import markdown
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.figures.cells import cells
from lfnlab.figures.plot import house_style
from lfnlab.figures.small import for_page
from studies.study import FIGURES, SHADES, Study

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lfnlab.scenario.builder import Scenario


BUFFER = "0.5bdp"
PACKET = "9000B"


@dataclass(frozen=True)
class Path:
    """A path, and how long a duel there takes."""

    name: str
    rate: str
    rtt: str
    duration: str
    warmup: str

    @property
    def title(self) -> str:
        """In words."""
        return f"{self.rate.replace('Gbit', ' Gbit')} × {self.rtt.replace('ms', ' ms')}"

    def duel(self, a: str, b: str) -> Scenario:
        """A flow of ``a`` and one of ``b``."""
        base = dumbbell(
            rate=self.rate,
            rtt=self.rtt,
            buffer=BUFFER,
            duration=self.duration,
            warmup=self.warmup,
            sample="off",
        )
        start = "uniform(0s, 5s)"
        return base.flow(a, packet=PACKET, start=start).flow(b, packet=PACKET, start=start)


PATHS = (
    Path("1g-40ms", "1Gbit/s", "40ms", "100s", "20s"),
    Path("1g-180ms", "1Gbit/s", "180ms", "200s", "50s"),
    Path("10g-100ms", "10Gbit/s", "100ms", "60s", "20s"),
)


def contestants() -> list[str]:
    """All laws of ends, in the order of the registry."""
    return [law.name for law in laws() if law.family != "router" and law.name != "udt"]


def run(names: Sequence[str], out: FilePath) -> pl.DataFrame:
    """A row a duel: path, a, b, goodputs, utilization of the link by payload."""
    pairs = list(combinations_with_replacement(names, 2))
    cases = [
        Case(path.duel(a, b), {"path": path.name, "a": a, "b": b})
        for path in PATHS
        for a, b in pairs
    ]
    rows = []
    for found in execute(cases, out=out, jobs=1, title="duels").runs:
        first, second = found.goodputs
        rate_bps = found.summary["links"][0]["rate_bps"]
        rows.append(
            {
                **found.factors,
                "a_mbps": round(first / 1e6, 1),
                "b_mbps": round(second / 1e6, 1),
                "total": round((first + second) / rate_bps, 4),
            }
        )
    return pl.DataFrame(rows)


def matrices(
    table: pl.DataFrame, path: str
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Laws; share of the law of the row against that of the column; total. Both in percent."""
    duels = table.filter(pl.col("path") == path)
    names = list(dict.fromkeys(duels["a"]))
    share = np.full((len(names), len(names)), np.nan)
    total = share.copy()
    for row in duels.iter_rows(named=True):
        i, j = names.index(row["a"]), names.index(row["b"])
        both = row["a_mbps"] + row["b_mbps"]
        share[i, j] = 100 * row["a_mbps"] / both
        share[j, i] = 100 - share[i, j]
        total[i, j] = total[j, i] = 100 * row["total"]
    np.fill_diagonal(share, 50.0)
    return names, share, total


def draw(table: pl.DataFrame, path: Path) -> Figure:
    """Shares above, totals below."""
    names, share, total = matrices(table, path.name)
    size = 2.2 + 0.36 * len(names)
    with house_style():
        figure = Figure(figsize=(size, 2 * size))
        above, below = figure.subplots(2)
        cells(above, share, names, names, colours="PuOr", shades=SHADES, limits=(0, 100))
        above.set(xlabel="against", ylabel="law")
        above.set_title(f"{path.title}, buffer of half a BDP: share of the law on the left, %")
        cells(below, total, names, names, shades=SHADES, limits=(50, 100))
        below.set(xlabel="law", ylabel="law")
        below.set_title(f"{path.title}, buffer of half a BDP: goodput of both, % of the link")
    return figure


def means(table: pl.DataFrame) -> list[str]:
    """The table of the page: means of shares and totals of each law on each path."""
    rows = []
    found = [matrices(table, path.name) for path in PATHS]
    for i, name in enumerate(found[0][0]):
        others = [j for j in range(len(found[0][0])) if j != i]
        values = [
            value
            for _, share, total in found
            for value in (share[i, others].mean(), total[i, others].mean(), total[i, i])
        ]
        rows.append((name, *(f"{value:.0f}" for value in values)))
    columns = ("share, %", "total, %", "twice, %")
    heads = [
        f"{path.title}: {column}" if column == columns[0] else column
        for path in PATHS
        for column in columns
    ]
    return [*markdown(("law", *heads), rows)]


def page(table: pl.DataFrame, stamp: str) -> str:
    """docs/duels.md and its figures."""
    for path in PATHS:
        (FIGURES / f"duels-{path.name}.png").write_bytes(for_page(draw(table, path)))
    setting = "".join(
        f"\n- {path.title}: {path.duration}, of which {path.warmup} do not count" for path in PATHS
    )
    return f"""\
# Duels

Two flows of equal RTT share a drop-tail dumbbell with a buffer of half a BDP, 9000-byte packets and
today's Linux TCP: one flow of each of two laws, in their default variants, or two flows of one law.
They start within the first 5 s.
{setting}

The results are for the first minutes: Reno alone needs longer to recover from one loss at 10
Gbit/s. There is one seed; where two laws lock in phase, another seed may give a different result.

{stamp} Every duel is in
[studies/reference/duels.csv](../studies/reference/duels.csv).

*share*: mean share of the law against all others. *total*: mean goodput of both, in percent of the
link's rate; a full link carries 99 % of payload. *twice*: total of two flows of the law.

{chr(10).join(means(table))}

{chr(10).join(f"![{path.title}: shares, totals](figures/duels-{path.name}.png)" for path in PATHS)}
"""


STUDY = Study("duels", __doc__, run, page, tuple(contestants()))


if __name__ == "__main__":
    STUDY.main()
