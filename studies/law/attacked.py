"""The law on attacked paths, drawn at random from the space of ``lfn attack``."""

from __future__ import annotations

from typing import Any

import polars as pl

from lfnlab.attacker import draws, on_draws
from studies.law.paths import SEED

COUNT = 3_000
LEAST, MOST = 0.5, 0.6
"""Of CUBIC's goodput that the law should have, and of what it and a CUBIC have together."""
KEPT = 0.8
"""Of what a CUBIC has beside another CUBIC, that it should have beside the law."""


def attacked(law: str, count: int, jobs: int | None) -> dict[str, Any]:
    """Counts of the paths on which the law has too little alone, or too much beside CUBIC.

    Beside CUBIC a law may have more without harm: of a link that random loss leaves empty. So
    ``harm`` counts where the share is too large and CUBIC has less than beside another CUBIC.
    ``paths_of_note`` has those of ``little`` and ``harm``.
    """
    paths = draws(SEED, count)
    own, cubic = (on_draws(name, paths, jobs=jobs) for name in (law, "cubic"))
    table = own.with_row_index("number").with_columns(
        cubic_beside=cubic["beside"], cubic_neighbour_bps=cubic["neighbour_bps"]
    )
    little = pl.col("goodput_bps") < LEAST * pl.col("cubic_bps")
    much = pl.col("beside") > MOST
    harm = much & (pl.col("neighbour_bps") < KEPT * pl.col("cubic_neighbour_bps"))
    return {
        "law": law,
        "paths": count,
        "little": table.filter(little).height,
        "much": table.filter(much).height,
        "much_of_cubic": table.filter(pl.col("cubic_beside") > MOST).height,
        "harm": table.filter(harm).height,
        "paths_of_note": table.filter(little | harm).to_dicts(),
    }
