"""The law on attacked paths, drawn at random from the space of ``lfn attack``."""

from __future__ import annotations

import polars as pl

from lfnlab.attacker import draws, on_draws
from studies.law.paths import SEED

COUNT = 10_000
LEAST, MOST = 0.5, 0.6
"""Of CUBIC's goodput that the law should have, and of what it and a CUBIC have together."""


def attacked(law: str, count: int, jobs: int | None) -> pl.DataFrame:
    """The paths on which the law has too little alone or too much beside CUBIC.

    ``cubic_beside`` is CUBIC's own part beside another CUBIC there: above 0.6, too, the path is
    unfair to its second flow.
    """
    paths = draws(SEED, count)
    own, cubic = (on_draws(name, paths, jobs=jobs) for name in (law, "cubic"))
    found = own.with_columns(cubic_beside=cubic["beside"])
    little = pl.col("goodput_bps") < LEAST * pl.col("cubic_bps")
    much = pl.col("beside") > MOST
    return found.with_row_index("number").filter(little | much)
