"""Do the figures of any experiment hold every mark and text, and say what the numbers say?

The experiments are drawn at random and their numbers made up: nothing is simulated. A fixed handful
runs by default, as many as ``LFN_FIGURES`` says otherwise.
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from lfnlab import dumbbell
from lfnlab.control_laws.registry import laws
from lfnlab.figures import plot
from lfnlab.figures.looks import alike, looks
from lfnlab.results.runs import Results, Run
from lfnlab.statistics import Interval
from marks import faults, same_bars

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPERIMENTS = int(os.environ.get("LFN_FIGURES", "5"))
#: 97.5 % quantiles of Student's t for 1 to 9 degrees of freedom, as tables print them.
T = (12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216)
NAMES = [f"{law.name}:{variant}" if i else law.name for law in laws() for i, variant in
         enumerate(law.variants)]  # fmt: skip
SCENARIO = dumbbell(rate="100Mbit/s", rtt="40ms", buffer="1bdp").flow("reno")
FACTORS = {
    "link.queue.size": ["0.1bdp", "0.5bdp", "1bdp", "250 packets"],
    "link.rate": ["100Mbit/s", "1Gbit/s", "10Gbit/s"],
    "flow[*].rtt": ["10ms", "40ms", "160ms"],
    "level": [0, 1, 2, 3],
}


class Made(Run):
    """A run that was not run."""

    summary: dict[str, Any]  # type: ignore[assignment]

    @classmethod
    def of(cls, rng: Random, place: int, seed: int, factors: Mapping[str, Any],
           flows: list[tuple[str, list[str]]], links: list[str]) -> Made:  # fmt: skip
        run = cls(Path(f"run-{place}-{seed}"), seed, dict(factors))
        size = 10.0 ** rng.uniform(-1, 1)
        made = []
        for number, (law, way) in enumerate(flows):
            goodput = rng.choice([0.0, rng.uniform(1e5, 1e8) * size, rng.gauss(5e7, 1e6)])
            made.append(
                {
                    "id": number,
                    "law": law,
                    "direction": way[0] if way[0] in ("forward", "reverse") else "forward",
                    "routes": [{"from_s": 0.0, "links": way}],
                    "start_s": 0.0,
                    "rtt_s": 0.04,
                    "goodput_bps": goodput,
                    "delivered_bytes": goodput * 10.0 / 8.0,
                    "cov": rng.choice([None, rng.uniform(0, 2)]),
                    **dict.fromkeys(("retransmits", "timeouts", "loss_events"), rng.randint(0, 99)),
                }
            )
        run.__dict__["summary"] = {
            "seed": seed,
            "hash": "0" * 16,
            "warmup_s": 2.0,
            "sim_s": 12.0,
            "flows": made,
            "links": [
                {
                    "id": name,
                    "rate_bps": 1e8,
                    "utilization": rng.random(),
                    "mean_queue_s": 0.01,
                    "drops": 3,
                }
                for name in links
            ],
            "changes_s": rng.choice([[], [3.0, 7.0]]),
        }
        run.__dict__["scenario"] = SCENARIO
        run.__dict__["height"] = size
        return run

    def table(self, name: str) -> pl.DataFrame:
        """A few samples of each flow or link, of a height that differs from run to run."""
        t_s = np.linspace(0.0, 12.0, 13)
        rng = np.random.default_rng(self.seed)
        key, count = ("flow", len(self.summary["flows"])) if name == "flows" else (
            "link", len(self.summary["links"]))  # fmt: skip
        parts = []
        for number in range(count):
            values = self.__dict__["height"] * rng.random(t_s.size) * 100
            columns: dict[str, Any] = {"t_s": t_s, key: np.full(t_s.size, number)}
            if name == "flows":
                total = np.cumsum(values * 1e4).astype(int)
                columns |= {"cwnd_seg": values, "delivered_bytes": total}
            else:
                columns |= {"packets": values.astype(int)}
            parts.append(pl.DataFrame(columns))
        return pl.concat(parts).sort("t_s")


def experiment(number: int) -> Results:
    """One to three factors, one to twenty laws, one to ten seeds, ways forth, back or crossed."""
    rng = Random(f"figures {number}")
    links = rng.choice([["forward", "reverse"], ["forward", "reverse"], ["a", "b", "the far link"]])
    chosen = rng.sample(NAMES, rng.choice([1, 2, 3, 8, 20]))
    names = rng.sample(list(FACTORS), rng.randint(0, 2))
    key = rng.choice(["law", "flow[*].law"])
    values = [rng.sample(FACTORS[name], rng.randint(1, 3)) for name in names]
    seeds = range(1, rng.randint(1, 10) + 1)
    ways = [[links[0]], [links[1]]] if rng.random() < 0.5 else [[links[0]]]
    if links[0] == "a":
        ways.append(["a", "b"])
    each, rival = rng.randint(1, 3), rng.random() < 0.3
    runs = []
    for place, (law, *rest) in enumerate(itertools.product(chosen, *values)):
        flows = [(law, way) for way in ways for _ in range(each)]
        if rival and key == "law":
            flows.append(("reno", ways[0]))
        factors = {key: law, **dict(zip(names, rest, strict=True))}
        runs += [Made.of(rng, place, seed, factors, flows, links) for seed in seeds]
    return Results(Path("none"), "made up", tuple(runs))


@pytest.mark.parametrize("number", range(EXPERIMENTS))
def test_figures_hold_what_they_draw(number: int) -> None:
    results = experiment(number)
    traced = plot.some(plot.first_seed(results), 12)
    for name, (figure, _) in plot.figures(results, traced).items():
        assert [*faults(figure), *same_bars(figure)] == [], f"experiment {number}, {name}"


@pytest.mark.parametrize("number", range(EXPERIMENTS))
def test_bars_and_intervals_are_those_of_an_independent_computation(number: int) -> None:
    results = experiment(number)
    if not results.rows():
        return
    figure, left_out = plot.bars(results.intervals("goodput_bps"), results.keys, "bit/s")
    drawn = sorted(round(bar.get_width(), 3) for axes in figure.axes for bar in axes.patches)
    halves = sorted(
        round(float(np.ptp(segment[:, 0])) / 2, 3)
        for axes in figure.axes
        for bars in axes.collections
        for segment in bars.get_segments()
    )
    # By case, law and way, straight from the flows.
    groups: dict[Any, dict[int, float]] = {}
    for run in results.runs:
        for flow in run.summary["flows"]:
            case = (*run.factors.items(), flow["law"], str(flow["routes"]))
            of_seed = groups.setdefault(case, {})
            of_seed[run.seed] = of_seed.get(run.seed, 0.0) + flow["goodput_bps"]
    means = [statistics.fmean(group.values()) for group in groups.values()]
    wide = [
        T[len(g) - 2] * statistics.stdev(g.values()) / math.sqrt(len(g))
        for g in groups.values()
        if len(g) > 1
    ]
    if not left_out:
        assert drawn == pytest.approx(sorted(means), rel=1e-6, abs=1e-2)
        assert halves == pytest.approx(sorted(wide), rel=1e-5, abs=1e-2)


def test_a_swept_law_names_bars_and_other_factors_name_panels() -> None:
    values = {
        (swept, size, law, route): Interval(mean, 0.1, 3)
        for mean, (swept, size, (law, route)) in enumerate(
            (swept, size, flow)
            for swept in ("cubic", "htcp", "bbr")
            for size in ("0.1bdp", "1bdp")
            for flow in ((swept, "forward"), ("cubic", "reverse"))
        )
    }
    keys = ("flow[0].law", "link.queue.size", "law", "route")
    figure, left_out = plot.bars(values, keys, "goodput (Mbit/s)")
    assert left_out == ""
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["queue.size 0.1bdp", "queue.size 1bdp"]
    assert [len(axes.patches) for axes in figure.axes] == [6, 6]
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == [
        "cubic, forward",
        "cubic, reverse",
        "htcp, forward",
        "cubic, reverse, beside htcp",
        "bbr, forward",
        "cubic, reverse, beside bbr",
    ]


def test_panels_with_other_bars_name_their_own() -> None:
    pairs = itertools.product(("cubic", "htcp", "reno"), repeat=2)
    values = {
        (one, two, law): Interval(1.0 + place, 0.1, 3)
        for one, two in pairs
        for place, law in enumerate(dict.fromkeys((one, two)))
    }
    figure, _ = plot.bars(values, ("flow[0].law", "flow[1].law", "law"), "goodput (Mbit/s)")
    for axes in figure.axes:
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert set(names) == set(axes.get_title(loc="left").replace(",", "").split()) & set(NAMES)
        assert len(axes.patches) == len(names)
    assert [*faults(figure), *same_bars(figure)] == []


def test_every_law_and_variant_looks_its_own() -> None:
    for count in (1, 2, 8, 20, 60):
        for first in range(len(NAMES)):
            names = [NAMES[(first + i) % len(NAMES)] for i in range(count)]
            found = list(looks({name: name for name in names}).values())
            for one, other in itertools.combinations(found, 2):
                if alike(one.color, other.color):
                    assert one.dashes != other.dashes
                    assert one.hatch != other.hatch
                    if count <= 20:
                        assert one.marker != other.marker
