"""The trial: the law and its rivals beside CUBIC on held-out paths.

The table has a row a set, path and law: the mean over the seeds of each axis, and the axes on which
the law is worse than CUBIC by the interval of its differences seed by seed. :func:`beyond` and
:func:`gains` read the rest from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from lfnlab.judge import Axis, Score, read, scores
from lfnlab.judge.probing import probes
from studies.law.paths import held_out, long_fat
from studies.law.search import LOSSY, OBJECTIVE, best, is_worse, margin

if TYPE_CHECKING:
    from lfnlab.scenario.builder import Scenario

REFERENCE = "cubic"
AGAIN = "cubic, other seeds"
"""CUBIC in the place of a law: what the verdicts say of no difference at all."""
TUNED = ("cubic", "htcp", "htcp-be", "htcp-be:hold")
"""Families of the search whose best point of ten trials is a rival."""
FIXED = ("abba", "bbr3")
"""Rivals without parameters."""
COMPARED = 1 + len(TUNED) + len(FIXED)
"""Laws that the trial compares with CUBIC, for Bonferroni's correction; AGAIN is none."""
SETS: Mapping[str, Callable[[int], dict[str, Scenario]]] = {"mixed": held_out, "fat": long_fat}
AXES: Mapping[str, Axis] = {
    axis.name: axis for probe in probes(read(OBJECTIVE)) for axis in probe.axes
}
CHUNK = 5
"""Paths that are run together, with all laws; the table is written after each."""


def judge(
    laws: Sequence[str],
    chosen: str,
    numbers: Sequence[int],
    seeds: int,
    store: Path,
    table: Path,
    jobs: int | None,
    most_bps: float = math.inf,
) -> pl.DataFrame:
    """Adds the rows of laws on the paths with these numbers of a set to the table.

    Paths above ``most_bps`` are left out: their runs cost most.
    """
    paths = SETS[chosen](max(numbers) + 1)
    names = [sorted(paths)[number] for number in numbers]
    names = [name for name in names if _rate_bps(paths[name]) <= most_bps]
    rows = pl.read_csv(table) if table.exists() else pl.DataFrame()
    for at in range(0, len(names), CHUNK):
        part = {name: paths[name] for name in names[at : at + CHUNK]}
        found = _scores([REFERENCE, *laws], part, seeds, store, jobs)
        made = [_row(score, found[0], chosen, name) for score in found for name in part]
        rows = _merged(rows, pl.DataFrame(made, infer_schema_length=None))
        rows.write_csv(table)
    return rows


def _rate_bps(path: Scenario) -> float:
    assert path.link is not None
    assert path.link.rate is not None
    return float(path.link.rate.removesuffix("bit/s"))


def _scores(
    laws: Sequence[str], paths: Mapping[str, Scenario], seeds: int, store: Path, jobs: int | None
) -> list[Score]:
    """Scores of laws by name; AGAIN is CUBIC with as many seeds more, counted as the first."""

    def made(names: Sequence[str], chosen: Sequence[int]) -> list[Score]:
        return scores(names, paths=paths, objective=OBJECTIVE, seeds=chosen, out=store, jobs=jobs)

    named = [law for law in laws if law != AGAIN]
    found = made(named, range(1, seeds + 1))
    if AGAIN in laws:
        (other,) = made([REFERENCE], range(seeds + 1, 2 * seeds + 1))
        values = {
            (axis, path, seed - seeds): value for (axis, path, seed), value in other.values.items()
        }
        found.append(replace(other, law=AGAIN, seeds=found[0].seeds, values=values))
    return found


def _row(law: Score, cubic: Score, chosen: str, path: str) -> dict[str, Any]:
    """Means by axis, and what is worse by an interval at 95 %, corrected for COMPARED laws."""
    compared = [
        row
        for row in law.compare(cubic, confidence=1 - 0.05 / COMPARED).by_path
        if row.path == path
    ]
    decided = [
        row
        for row in compared
        if row.said == "equal"
        or row.worse.half < margin(row.axis.name, cubic.on(row.axis.name, path).mean)
    ]
    return {
        "set": chosen,
        "path": path,
        "law": law.law,
        "seeds": len(law.seeds),
        "worse": " ".join(row.axis.name for row in compared if row.said == "worse"),
        "pairs": sum(row.said != "no value" for row in compared),
        "decided": len(decided),
        **{name: _rounded(law.on(name, path).mean) for name in AXES},
    }


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.5g}")


def _merged(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Rows of both; those of the new table stand for others of their set, path and law."""
    keys = ["set", "path", "law"]
    both = pl.concat([old, new], how="vertical_relaxed") if old.height else new
    return both.unique(keys, keep="last").sort(keys)


def beyond(own: Mapping[str, Any], its: Mapping[str, Any]) -> list[str]:
    """Axes on which a row is worse than CUBIC's row by more than the margin of the search."""
    return [
        name
        for name, axis in AXES.items()
        if own[name] is not None and its[name] is not None and is_worse(axis, own[name], its[name])
    ]


def gains(own: Mapping[str, Any], its: Mapping[str, Any]) -> list[float]:
    """Goodput over CUBIC's at the random losses of LOSSY."""
    return [
        max(own[axis], 1e-6) / max(its[axis], 1e-6)
        for axis in LOSSY
        if own[axis] is not None and its[axis] is not None
    ]


def pairs(
    table: pl.DataFrame, law: str, chosen: str
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The rows of a law on a set, each with CUBIC's row of the path."""
    rows = {
        (row["path"], row["law"]): row
        for row in table.iter_rows(named=True)
        if row["set"] == chosen
    }
    return [(row, rows[path, REFERENCE]) for (path, name), row in rows.items() if name == law]


def named(text: str, points: Path) -> list[str]:
    """Laws of a text with commas; ``rivals`` stands for the tuned points and the fixed laws."""
    if text != "rivals":
        return text.split(",")
    lines = points.read_text(encoding="utf-8").splitlines()
    found = best([json.loads(line) for line in lines])
    return [*(str(found[family]["law"]) for family in TUNED), *FIXED, AGAIN]
