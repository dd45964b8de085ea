"""The law and CUBIC on Linux and in the simulator: six paths, each with and without loss.

CUBIC is Linux's own module there and ``cubic:linux`` here, as subject and as neighbour. The law is
the same header in both.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from lfnlab import Case, dumbbell, execute
from lfnlab.testbed.linux_backend import Linux

if TYPE_CHECKING:
    from pathlib import Path

    from lfnlab.results.runs import Results

PATHS = (
    ("20Mbit/s", "20ms", "1bdp"),
    ("50Mbit/s", "40ms", "0.5bdp"),
    ("50Mbit/s", "200ms", "0.5bdp"),
    ("100Mbit/s", "40ms", "0.1bdp"),
    ("100Mbit/s", "100ms", "1bdp"),
    ("200Mbit/s", "60ms", "0.25bdp"),
)
LOSSES = (0.0, 3e-4)
LAWS = ("ebb", "cubic:linux")
NEIGHBOUR = "cubic:linux"
START = "uniform(0s, 1s)"
SEEDS = 2


def _cases() -> list[Case]:
    """Each law alone and beside CUBIC, on each path with each loss."""
    found = []
    for rate, rtt, buffer in PATHS:
        for loss in LOSSES:
            path = dumbbell(
                rate=rate,
                rtt=rtt,
                buffer=buffer,
                loss=loss or None,
                duration="40s",
                warmup="10s",
                sample="100ms",
            )
            for law in LAWS:
                alone = path.flow(law, start=START)
                both = alone.flow(NEIGHBOUR, start=START)
                about: dict[str, str | float] = {
                    "rate": rate,
                    "rtt": rtt,
                    "buffer": buffer,
                    "loss": loss,
                    "law": law,
                }
                found += [
                    Case(alone, {**about, "beside": "nothing"}),
                    Case(both, {**about, "beside": "CUBIC"}),
                ]
    return found


def compared(store: Path, jobs: int) -> pl.DataFrame:
    """A row a path, loss and law: means over the seeds, on Linux and in the simulator."""
    cases = _cases()
    here = _figures(execute(cases, seeds=SEEDS, out=store / "simulator", jobs=jobs))
    there = _figures(execute(cases, seeds=SEEDS, out=store / "linux", jobs=jobs, backend=Linux()))
    rows = [
        dict(zip(("rate", "rtt", "buffer", "loss", "law"), key, strict=True))
        | {f"{name} on linux": value for name, value in there[key].items()}
        | {f"{name} in simulator": value for name, value in here[key].items()}
        for key in here
    ]
    return pl.DataFrame(rows)


def _figures(results: Results) -> dict[tuple[Any, ...], dict[str, float]]:
    """By path, loss and law: goodput alone in bit/s, share beside CUBIC, and CUBIC's there."""
    found: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for run in results.runs:
        key = tuple(run.factors[name] for name in ("rate", "rtt", "buffer", "loss", "law"))
        values = found.setdefault(key, {})
        if run.factors["beside"] == "nothing":
            values.setdefault("goodput_bps", []).append(run.goodputs[0])
            continue
        own, its = run.goodputs
        values.setdefault("share", []).append(own / (own + its))
        values.setdefault("neighbour_bps", []).append(its)
    return {
        key: {name: float(f"{fmean(each):.4g}") for name, each in sorted(values.items())}
        for key, values in found.items()
    }
