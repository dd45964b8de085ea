"""The trial: the law and its rivals beside CUBIC on held-out paths.

The table has a row a law and path: the axes on which the law is worse than CUBIC, by its interval
and by the margins of the search, its gains with random loss, and its shares beside Reno and CUBIC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from lfnlab.judge import Score, scores
from studies.law.paths import held_out
from studies.law.search import LOSSY, OBJECTIVE, worth

if TYPE_CHECKING:
    from lfnlab.scenario.builder import Scenario

REFERENCE = "cubic"
FIXED = ("ebb", "abba")
CHUNK = 20
"""Paths that are run together, with all laws."""


def judge(
    laws: Sequence[str], store: Path, seeds: int, first: int, count: int, jobs: int | None
) -> pl.DataFrame:
    """The rows of laws by path, for ``count`` held-out paths from the number ``first`` on."""
    paths = held_out(first + count)
    names = sorted(paths)[first:]
    rows = []
    for at in range(0, len(names), CHUNK):
        chosen = {name: paths[name] for name in names[at : at + CHUNK]}
        found = scores(
            [REFERENCE, *laws], paths=chosen, objective=OBJECTIVE, seeds=seeds, out=store, jobs=jobs
        )
        for score in found[1:]:
            rows += _rows(score, found[0], chosen, len(laws))
    return pl.DataFrame(rows)


def _rows(
    law: Score, cubic: Score, paths: Mapping[str, Scenario], laws: int
) -> list[dict[str, Any]]:
    """A row a path; intervals are at 95 %, corrected for the number of laws (Bonferroni)."""
    said: dict[str, list[str]] = {name: [] for name in paths}
    for row in law.compare(cubic, confidence=1.0 - 0.05 / laws).by_path:
        if row.said == "worse":
            said[row.path].append(row.axis.name)
    beyond: dict[str, list[str]] = {name: [] for name in paths}
    for text in worth(law, cubic).worse:
        path, axis = text.rsplit(": ", 1)
        beyond[path].append(axis)
    return [_row(law, cubic, name, said[name], beyond[name]) for name in sorted(paths)]


def _row(
    law: Score, cubic: Score, path: str, worse: Sequence[str], beyond: Sequence[str]
) -> dict[str, Any]:
    gains = [_ratio(law.on(axis, path).mean, cubic.on(axis, path).mean) for axis in LOSSY]
    by = {name: law.on(name, path).mean for name in ("share-reno", "share-cubic")}
    return {
        "law": law.law,
        "path": path,
        "worse": " ".join(worse),
        "beyond": " ".join(beyond),
        **{f"gain {axis.split('-', 1)[1]}": gain for axis, gain in zip(LOSSY, gains, strict=True)},
        **{name: _known(value) for name, value in by.items()},
        **{f"{name} of cubic": _known(cubic.on(name, path).mean) for name in by},
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)


def _ratio(own: float, its: float) -> float | None:
    if math.isnan(own) or math.isnan(its):
        return None
    return round(max(own, 1e-6) / max(its, 1e-6), 4)


def summary(table: pl.DataFrame) -> pl.DataFrame:
    """A row a law: parts of the paths and the median gain."""
    gains = [name for name in table.columns if name.startswith("gain ")]
    rows = []
    for law in dict.fromkeys(table["law"]):
        own = table.filter(pl.col("law") == law)
        values = own.select(gains).to_numpy().ravel().astype(float)
        rows.append(
            {
                "law": law,
                "paths": len(own),
                "no axis worse by its interval": _none(own["worse"]),
                "no axis worse by its margin": _none(own["beyond"]),
                "median gain": float(np.nanmedian(values)),
                "fair beside reno": _inside(own["share-reno"]),
                "fair beside cubic": _inside(own["share-cubic"]),
                "cubic beside reno": _inside(own["share-reno of cubic"]),
                "cubic beside cubic": _inside(own["share-cubic of cubic"]),
            }
        )
    return pl.DataFrame(rows)


def _none(names: pl.Series) -> float:
    """Part of the paths without a name."""
    return sum(not name for name in names.to_list()) / len(names)


def _inside(shares: pl.Series) -> float:
    """Part of the paths on which a share is 40 to 60 %."""
    known = shares.drop_nulls().to_list()
    return float(sum(0.4 <= share <= 0.6 for share in known) / len(known))
