"""Two sets of held-out paths, each drawn from a seed that was fixed before any run on it.

The mixed set was fixed before the search. Of its 200 paths 120 have a drop-tail queue, 40 another
queue, 20 a delay and a rate like those of a low satellite constellation, 20 a rate like that of a
radio link. Rates are log-uniform from 10 to 600 Mbit/s, RTTs from 10 to 300 ms, depths from 0.02
to 2 BDP; none of the search's paths is among them. Random loss comes from the objective's cells.

The long fat set was fixed after 60 paths of the mixed set had been seen. Many of those are thin: a
random loss of 1e-5 or 1e-4 leaves CUBIC what it had, so they tell little of what a law is worth
where CUBIC lacks it. Three of four long fat paths have a drop-tail queue, each fourth another one.
Rates are log-uniform from 0.3 to 10 Gbit/s, RTTs from 20 to 300 ms, depths from 0.02 to 1 BDP.
Paths come in no order, so the first ones are a sample of all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from lfnlab import Change, Queue, Scenario, dumbbell

SEED = 20261129
COUNT = 200
LONG_FAT_SEED = 20261130
LONG_FAT_COUNT = 60
KINDS = ("drop-tail",) * 6 + ("queue",) * 2 + ("satellite", "radio")
Kind = Literal["codel", "fq-codel", "pie", "red", "drop-head"]
QUEUES: tuple[Kind, ...] = ("codel", "fq-codel", "pie", "red", "drop-head")
SECONDS = 90
"""Duration of a path whose link changes."""


def held_out(count: int = COUNT, seed: int = SEED) -> dict[str, Scenario]:
    """The paths by name; the first ones of a larger count are those of a smaller."""
    draws = np.random.default_rng(seed)
    found = {}
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        path = {"satellite": _satellite, "radio": _radio}.get(kind, _wired)(draws)
        if kind == "queue":
            path = _queued(path, QUEUES[number // len(KINDS) % len(QUEUES)])
        found[f"{number:03} {kind}"] = path
    return found


def long_fat(count: int = LONG_FAT_COUNT, seed: int = LONG_FAT_SEED) -> dict[str, Scenario]:
    """The long fat paths by name; the first ones of a larger count are those of a smaller."""
    draws = np.random.default_rng(seed)
    found = {}
    for number in range(count):
        rate_bps, rtt_s = _log(draws, 3e8, 1e10), _log(draws, 0.02, 0.3)
        path, kind = _path(rate_bps, rtt_s, _log(draws, 0.02, 1.0)), "drop-tail"
        if number % 4 == 3:
            path, kind = _queued(path, QUEUES[number // 4 % len(QUEUES)]), "queue"
        found[f"L{number:02} {kind}"] = path
    return found


def _log(draws: np.random.Generator, low: float, high: float) -> float:
    return math.exp(draws.uniform(math.log(low), math.log(high)))


def _path(rate_bps: float, rtt_s: float, bdps: float) -> Scenario:
    packets = max(4, round(bdps * rate_bps * rtt_s / 12_000))
    return dumbbell(
        rate=f"{round(rate_bps)}bit/s", rtt=f"{rtt_s * 1e3:.3f}ms", buffer=f"{packets} packets"
    )


def _wired(draws: np.random.Generator) -> Scenario:
    return _path(_log(draws, 1e7, 6e8), _log(draws, 0.01, 0.3), _log(draws, 0.02, 2.0))


def _queued(path: Scenario, kind: Kind) -> Scenario:
    """The same path with another queue, of at least a quarter of a second."""
    link = path.link
    assert link is not None
    assert link.rate is not None
    deep = round(0.25 * float(link.rate.removesuffix("bit/s")) / 12_000)
    return replace(path, link=replace(link, queue=Queue(kind=kind, size=f"{deep} packets")))


def _satellite(draws: np.random.Generator) -> Scenario:
    """A path whose route changes each 15 s (Starlink; Tanveer and others 2023).

    Each change brings another delay and another rate, or a tenth of a second without service.
    """
    rate, rtt = _log(draws, 5e7, 2e8), 0.04
    changes = []
    for at in range(15, SECONDS, 15):
        rtt_s = draws.uniform(0.025, 0.06)
        changes.append(Change(at=f"{at}s", link="forward", delay=f"{rtt_s / 2 * 1e3:.3f}ms"))
        if at % 30 == 0:
            changes.append(Change(at=f"{at}s", link="forward", down=True))
            changes.append(Change(at=f"{at}.1s", link="forward", down=False))
        else:
            changes.append(
                Change(
                    at=f"{at}s",
                    link="forward",
                    rate=f"{round(rate * draws.uniform(0.5, 1.5))}bit/s",
                )
            )
    return replace(_path(rate, rtt, 1.0), duration=f"{SECONDS}s", schedule=tuple(changes))


def _radio(draws: np.random.Generator) -> Scenario:
    """A log-normal, first-order autoregressive rate.

    Its coefficient of variation is about a half, its correlation time 5 s.
    """
    mean, sigma, keep = _log(draws, 1e7, 1e8), 0.47, math.exp(-1 / 5)
    level, changes = 0.0, []
    for at in range(1, SECONDS):
        level = keep * level + math.sqrt(1 - keep**2) * draws.normal()
        rate = mean * math.exp(sigma * level - sigma**2 / 2)
        changes.append(Change(at=f"{at}s", link="forward", rate=f"{round(rate)}bit/s"))
    path = _path(mean, _log(draws, 0.03, 0.1), 2.0)
    return replace(path, duration=f"{SECONDS}s", schedule=tuple(changes))
