"""The search: points of the law `grammar`, by family, each with the same number of trials.

The worth of a point was fixed before the search (``MARGINS``, :func:`worth`): the median gain of
goodput over CUBIC on the cells with random loss, in doublings, less ``PRICE`` times the part of
all pairs of path and axis on which the point is worse than CUBIC by more than a margin.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from lfnlab.judge import Axis, Score, scores

OBJECTIVE = Path(__file__).with_name("objective.toml")
SEED = 20261129
TRIALS = 10
"""Of each family."""
PRICE = 20.0

Space = Mapping[str, float | tuple[float, float, str]]
"""Of each parameter its value, or its ends and "log" or "linear"."""
_SPEED, _KEEP = (0.3, 6.0, "log"), (0.5, 0.9, "linear")
_GATE, _PROBE, _HEAVY = (0.5, 20.0, "log"), (0.01, 0.25, "log"), (0.0005, 0.05, "log")
FAMILIES: dict[str, Space] = {
    "cubic": {"speed": _SPEED, "keep": _KEEP},
    "htcp": {"growth": 1, "speed": _SPEED, "keep": _KEEP},
    "htcp-be": {"growth": 1, "memory": 1, "speed": _SPEED, "keep": (0.3, 0.8, "linear")},
    "htcp-be:hold": {"growth": 1, "memory": 1, "speed": _SPEED, "gate": 1000, "heavy": _HEAVY},
    "a: faster at ebb": {"gate": _GATE, "probe": _PROBE, "hold": 0.7},
    "b: H-TCP, held at ebb": {
        "growth": 1,
        "memory": 1,
        "speed": _SPEED,
        "gate": _GATE,
        "heavy": _HEAVY,
    },
    "c: CUBIC, held at ebb": {"gate": _GATE, "heavy": _HEAVY},
    "d: all": {
        "speed": (0.5, 2.0, "log"),
        "keep": (0.6, 0.8, "linear"),
        "gate": _GATE,
        "hold": (0.7, 1.0, "linear"),
        "probe": _PROBE,
        "heavy": _HEAVY,
    },
}
MARGINS = {
    "goodput": (0.03, 0.0),
    "cov": (0.05, 0.0),
    "queue": (0.001, 0.1),
    "refill": (0.5, 0.2),
    "rtt-exponent": (0.2, 0.0),
    "share": (0.03, 0.0),
    "newcomer": (1.0, 0.2),
    "short-flows": (0.1, 0.0),
}
"""By the beginning of an axis's name: what is worse, in its unit and as a part of CUBIC's value."""
LOSSY = ("goodput-1e-5-0", "goodput-1e-4-0", "goodput-1e-3-0")
"""Axes with random loss and no background."""
INSIDE = 0.1
"""A share at most so far from a half is not worse."""


def margin(axis: str, reference: float) -> float:
    """The difference from CUBIC's value from which an axis counts as worse."""
    unit, part = next(both for name, both in MARGINS.items() if axis.startswith(name))
    return unit + part * abs(reference)


def is_worse(axis: Axis, own: float, its: float) -> bool:
    """Whether a value is worse than CUBIC's by more than the margin; a share near a half is not."""
    fair = axis.name.startswith("share") and axis.badness(own) <= INSIDE
    return not fair and axis.badness(own) - axis.badness(its) > margin(axis.name, its)


@dataclass(frozen=True)
class Worth:
    """A law beside CUBIC."""

    gain: float
    """Median over paths and ``LOSSY`` of log2 of goodput over CUBIC's."""
    worse: tuple[str, ...]
    """``path: axis`` of what is worse by more than its margin."""
    pairs: int
    """Of path and axis with values of both."""

    @property
    def objective(self) -> float:
        """The larger, the better."""
        return self.gain - PRICE * len(self.worse) / self.pairs


def worth(law: Score, cubic: Score) -> Worth:
    """The worth of a law, by the means over the seeds."""
    gains, worse, pairs = [], [], 0
    assert {axis.name for axis in law.axes} >= {*LOSSY}
    for axis in law.axes:
        for path in law.paths:
            own, its = law.on(axis.name, path).mean, cubic.on(axis.name, path).mean
            if math.isnan(own) or math.isnan(its):
                continue
            pairs += 1
            if is_worse(axis, own, its):
                worse.append(f"{path}: {axis.name}")
            if axis.name in LOSSY:
                gains.append(math.log2(max(own, 1e-6) / max(its, 1e-6)))
    return Worth(float(np.median(gains)), tuple(worse), pairs)


def best(points: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """By family the point with the highest objective, which it gets as a key."""
    found: dict[str, Mapping[str, Any]] = {}
    for point in points:
        value = Worth(point["gain"], tuple(point["worse"]), point["pairs"]).objective
        made = {**point, "objective": value}
        if point["family"] not in found or value > found[point["family"]]["objective"]:
            found[point["family"]] = made
    return found


def named(values: Mapping[str, float]) -> str:
    """The law of a point."""
    return ":".join(["grammar", *(f"{name}={value:g}" for name, value in sorted(values.items()))])


def search(store: Path, table: Path, jobs: int | None, trials: int = TRIALS) -> None:
    """Runs every family and writes a JSON line for each trial, as they come."""
    (cubic,) = scores(["cubic"], objective=OBJECTIVE, seeds=1, out=store, jobs=jobs)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with table.open("w", encoding="utf-8") as lines:
        for family, space in FAMILIES.items():
            sampler = optuna.samplers.TPESampler(seed=SEED, n_startup_trials=trials // 2)
            study = optuna.create_study(direction="maximize", sampler=sampler)
            for number in range(trials):
                trial = study.ask()
                point = {name: _drawn(trial, name, asked) for name, asked in space.items()}
                law = named(point)
                (found,) = scores([law], objective=OBJECTIVE, seeds=1, out=store, jobs=jobs)
                value = worth(found, cubic)
                study.tell(trial, value.objective)
                line = {"family": family, "trial": number, "law": law, **asdict(value)}
                print(json.dumps(line), file=lines, flush=True)


def _drawn(trial: optuna.Trial, name: str, asked: float | tuple[float, float, str]) -> float:
    if not isinstance(asked, tuple):
        return asked
    low, high, scale = asked
    return float(f"{trial.suggest_float(name, low, high, log=scale == 'log'):.3g}")
