"""Which law for which path: one flow's first minute, a newcomer's share, the queue, as a page.

$ python -m studies.which_law             run what build/which-law has not yet; table, page, figure
$ python -m studies.which_law --page      page and figure from the committed table

Shares beside CUBIC are those of ``python -m studies.duels``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from lfnlab import dumbbell
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.figures.small import for_page
from lfnlab.statistics import interval
from studies import which_law_page
from studies.study import Study, digest

if TYPE_CHECKING:
    from lfnlab.results.cases import Factor
    from lfnlab.results.runs import Run

TABLE = Path(__file__).parent / "reference" / "which_law.csv"

LAWS = (
    "reno",
    "cubic",
    "htcp",
    "htcp-be",
    "hstcp",
    "scalable",
    "illinois",
    "westwood",
    "bbr",
    "bbr3",
)
"""Those that Linux has, as modules or built in, and the two that its users ask for beside them."""
PACKETS = {"1Gbit/s": "1500B", "10Gbit/s": "9000B"}
RTTS = ("20ms", "100ms", "200ms")
BUFFERS = ("0.05bdp", "0.25bdp", "1bdp")
LOSSES = (0.0, 1e-6, 1e-5, 1e-4)
DURATION_S = 60
SEEDS = 3
NEWCOMER_RTT, NEWCOMER_BUFFER = "100ms", "0.25bdp"


def alone(laws: Sequence[str]) -> Iterator[Case]:
    """Each law alone on each path, from its first packet on."""
    for law, rate, rtt, buffer, loss in product(laws, PACKETS, RTTS, BUFFERS, LOSSES):
        path = dumbbell(
            rate=rate,
            rtt=rtt,
            buffer=buffer,
            loss=loss or None,
            duration=f"{DURATION_S}s",
            sample="off",
        )
        factors: dict[str, Factor] = {"law": law, "rate": rate, "rtt": rtt, "buffer": buffer}
        alone = path.flow(law, packet=PACKETS[rate])
        yield Case(alone, {"what": "alone", **factors, "loss": loss})


def newcomers(laws: Sequence[str]) -> Iterator[Case]:
    """Two flows of a law; the second comes after 20 s, and 40 s later its share is taken."""
    for law, rate in product(laws, PACKETS):
        path = dumbbell(
            rate=rate,
            rtt=NEWCOMER_RTT,
            buffer=NEWCOMER_BUFFER,
            duration="80s",
            warmup="60s",
            sample="off",
        )
        first = path.flow(law, packet=PACKETS[rate])
        both = first.flow(law, packet=PACKETS[rate], start="uniform(20s, 21s)")
        factors = {"law": law, "rate": rate, "rtt": NEWCOMER_RTT, "buffer": NEWCOMER_BUFFER}
        yield Case(both, {"what": "newcomer", **factors, "loss": 0.0})


def measured(run: Run) -> float:
    """Alone the goodput over the link's rate; else the newcomer's share of both. In percent."""
    flows = run.goodputs
    if run.factors["what"] == "alone":
        return float(100 * flows[0] / run.summary["links"][0]["rate_bps"])
    return float(100 * flows[1] / sum(flows))


def row(case: Case, runs: list[Run]) -> dict[str, Any]:
    """A path and a law: mean over its runs, and the hash of what they gave."""
    value = interval([measured(run) for run in runs])
    queues = [run.summary["links"][0]["mean_queue_s"] * 1e3 for run in runs]
    return {
        **case.factors,
        "runs": len(runs),
        "percent": round(value.mean, 2),
        "half": None if len(runs) == 1 else round(value.half, 2),
        "queue_ms": round(sum(queues) / len(queues), 3),
        "hash": digest([run.summary["hash"] for run in runs])[:12],
    }


def run(laws: Sequence[str], out: Path) -> pl.DataFrame:
    """Nothing is random where one flow meets no loss: one run. Else there are three."""
    cases = [*alone(laws), *newcomers(laws)]
    certain = [
        case for case in cases if case.factors["what"] == "alone" and not case.factors["loss"]
    ]
    others = [case for case in cases if case not in certain]
    runs: dict[tuple[Factor, ...], list[Run]] = {}
    for some, seeds in ((certain, 1), (others, SEEDS)):
        for found in execute(some, seeds=seeds, out=out, title="which law").runs:
            runs.setdefault(tuple(found.factors.values()), []).append(found)
    return pl.DataFrame(
        [row(case, runs[tuple(case.factors.values())]) for case in cases], infer_schema_length=None
    )


def answer(table: pl.DataFrame, _: str) -> str:
    """The page; its figure is drawn too."""
    which_law_page.FIGURE.write_bytes(for_page(which_law_page.draw(table)))
    return which_law_page.page()


STUDY = Study("which_law", __doc__, run, answer, LAWS)


if __name__ == "__main__":
    STUDY.main()
