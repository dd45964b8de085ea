"""Paths drawn from an attack's space, without a search: how often a law fares badly there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING

from lfnlab.attacker import space
from lfnlab.attacker.judge import SEARCH_SEED
from lfnlab.attacker.runs import Ask, Runs
from lfnlab.attacker.scenarios import NEIGHBOUR, SHORT_S, link_bps
from lfnlab.attacker.weaknesses import checked_jobs, law_named

if TYPE_CHECKING:
    from typing import Any

    import polars as pl

    from lfnlab.attacker.space import Path, Value

BATCH = 256
"""Paths whose runs are asked for at once."""


def draws(seed: int, count: int) -> list[dict[str, Value]]:
    """Attacked paths at random, all different from the plain dumbbell, none with a neighbour.

    Args:
        seed: the same seed gives the same paths, and fewer of them are the first ones.
        count: of paths.

    Returns:
        Each path by its keys, which differ from the plain dumbbell.
    """
    random = Random(seed)
    found: list[dict[str, Value]] = []
    while len(found) < count:
        path = space.drawn(random)
        path = space.valid({name: path[name] for name in path if "neighbour" not in name})
        if path:
            found.append(path)
    return found


def on_draws(
    law: str,
    paths: Sequence[Path],
    *,
    jobs: int | None = None,
    progress: Callable[[float, int], None] | None = None,
) -> pl.DataFrame:
    """A law on attacked paths: alone, with CUBIC in its place, and beside one CUBIC flow.

    A path takes three runs of 20 s, some 20 ms of CPU. A path with several flows has one here.

    Args:
        law: NAME, NAME:VARIANT, FILE.h or FILE.py:CLASS.
        paths: such as those of :func:`draws`.
        jobs: runs at a time; default one for each core.
        progress: told the paths that are done, and their number.

    Returns:
        polars.DataFrame: a row a path, in order. ``path`` is in words; ``link_bps``;
        ``goodput_bps`` of the law alone; ``cubic_bps`` of CUBIC alone there; ``beside`` the law's
        part of what it and a CUBIC flow have together, 0 to 1, and ``neighbour_bps`` what CUBIC
        has of it. A figure of a run that failed is null.

    Raises:
        LawError: there is no such law.
        UsageError: an attack cannot run it; a path's key or value that is outside the space.
    """
    import polars as pl

    subject = law_named(law)
    runs = Runs(None, {}, checked_jobs(jobs))
    for at, path in enumerate(paths):
        space.check(path, f"paths[{at}]")
    rows: list[dict[str, Any]] = []
    for place in range(0, len(paths), BATCH):
        rows += _rows(subject.spelled, paths[place : place + BATCH], runs)
        if progress is not None:
            progress(len(rows), len(paths))
    columns = ("link_bps", "goodput_bps", "cubic_bps", "beside", "neighbour_bps")
    return pl.DataFrame(rows, {"path": pl.String} | dict.fromkeys(columns, pl.Float64))


def _rows(law: str, paths: Sequence[Path], runs: Runs) -> Iterator[dict[str, Any]]:
    alone = [space.valid({**path, "flows": 1.0, "neighbour": "none"}) for path in paths]
    beside = [space.valid({**path, "neighbour": "cubic"}) for path in alone]
    asks = [
        Ask(path, who, SEARCH_SEED, SHORT_S)
        for who, places in ((law, alone), (NEIGHBOUR, alone), (law, beside))
        for path in places
    ]
    made = runs(asks)
    own, cubic, both = (made[index * len(paths) : (index + 1) * len(paths)] for index in range(3))
    for path, one, two, three in zip(alone, own, cubic, both, strict=True):
        sum_bps = 0.0 if three is None else three.goodput_bps + three.neighbour_bps
        yield {
            "path": space.in_words(path),
            "link_bps": link_bps(path),
            "goodput_bps": None if one is None else one.goodput_bps,
            "cubic_bps": None if two is None else two.goodput_bps,
            "beside": None if three is None or sum_bps <= 0 else three.goodput_bps / sum_bps,
            "neighbour_bps": None if three is None else three.neighbour_bps,
        }
