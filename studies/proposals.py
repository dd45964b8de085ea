"""The five papers' own proposals on the papers' paths: a part of docs/which-law.md.

$ python -m studies.proposals             run what build/proposals has not yet; table and page
$ python -m studies.proposals --page      page from the committed table
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from lfnlab import dumbbell
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.scenario.elements import Router
from studies import which_law_page
from studies.study import Study
from studies.which_law import row

if TYPE_CHECKING:
    from lfnlab.results.cases import Factor
    from lfnlab.results.runs import Run

LAWS = (
    "cubic",
    "htcp-be",
    "htcp-be:hold",
    "westwood-s",
    "fast",
    "cw-hstcp",
    "evcp",
    "udt",
)
"""Those of the papers, and CUBIC beside them."""
PATHS = {
    "htcp-be": (("1Gbit/s", "10ms"), ("1Gbit/s", "40ms")),
    "westwood-10g": (("10Gbit/s", "265ms"), ("1Gbit/s", "120ms")),
    "jgn2": (("1Gbit/s", "38ms"), ("1Gbit/s", "180ms")),
    "evcp": (("1Gbit/s", "100ms"),),
    "cw-hstcp": (("1Gbit/s", "80ms"), ("1Gbit/s", "200ms")),
}
PACKETS = {"westwood-10g": "9000B", "cw-hstcp": "1000B"}
BUFFERS = ("0.1bdp", "1bdp")
LOSSES = (0.0, 1e-6, 1e-5)
SEEDS = 3


def cases(laws: Sequence[str]) -> Iterator[Case]:
    """Each law alone on each path, for its first minute; EVCP with its routers."""
    for law, paper, buffer, loss in product(laws, PATHS, BUFFERS, LOSSES):
        for rate, rtt in PATHS[paper]:
            path = dumbbell(
                rate=rate,
                rtt=rtt,
                buffer=buffer,
                loss=loss or None,
                duration="60s",
                sample="off",
            )
            if law == "evcp":
                assert path.link is not None
                path = replace(path, link=replace(path.link, router=Router(kind="vcp")))
            factors: dict[str, Factor] = {"law": law, "rate": rate, "rtt": rtt, "buffer": buffer}
            alone = path.flow(law, packet=PACKETS.get(paper, "1500B"))
            yield Case(alone, {"what": "alone", "paper": paper, **factors, "loss": loss})


def run(laws: Sequence[str], out: Path) -> pl.DataFrame:
    """Nothing is random without loss: one run. Else there are three."""
    made = list(cases(laws))
    certain = [case for case in made if not case.factors["loss"]]
    lossy = [case for case in made if case.factors["loss"]]
    runs: dict[tuple[Factor, ...], list[Run]] = {}
    for some, seeds in ((certain, 1), (lossy, SEEDS)):
        for found in execute(some, seeds=seeds, out=out, title="the papers' proposals").runs:
            runs.setdefault(tuple(found.factors.values()), []).append(found)
    rows: list[dict[str, Any]] = [row(case, runs[tuple(case.factors.values())]) for case in made]
    return pl.DataFrame(rows, infer_schema_length=None)


def answer(_table: pl.DataFrame, _stamp: str) -> str:
    """The page that has this table among others."""
    return which_law_page.page()


STUDY = Study("proposals", __doc__, run, answer, LAWS, part_of="which_law")


if __name__ == "__main__":
    STUDY.main()
