"""The basic scenarios, and the further figures of the access link."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING

from lfnlab.experiment.plan import Case
from lfnlab.scenario.elements import Queue
from lfnlab.suite.tcpeval.experiment import (
    DROPS,
    QUEUE,
    STANDARD,
    THROUGHPUT,
    UTILISATION,
    Column,
    Experiment,
    Plan,
    Row,
    link_figures,
    link_of,
    packets,
    seconds,
)
from lfnlab.suite.tcpeval.topology import BASIC, Basic, drop_tail, pair_rtts_us, pairs, topology

if TYPE_CHECKING:
    import polars as pl

    from lfnlab.results.runs import Results
    from lfnlab.scenario.builder import Scenario


# Basic scenarios


def _basic_cases(asked: Plan) -> list[Case]:
    return [
        Case(
            _loaded(asked, basic, load).with_traffic(*pairs(basic, asked.law, load / 100)),
            {"scenario": name, "load": f"{load}%"},
        )
        for name, load in product(asked.scenarios, asked.loads)
        for basic in (_as_tmrg(BASIC[name]) if asked.tmrg else BASIC[name],)
    ]


def _as_tmrg(basic: Basic) -> Basic:
    """Buffers of 100 ms, a tenth of the load in the light direction."""
    return replace(basic, light_share=0.1, buffers_s=(0.100, 0.100))


def _loaded(
    asked: Plan, basic: Basic, load: int, queues: Sequence[Queue] | None = None
) -> Scenario:
    """The topology for the suite's warm-up and test at this load; half of both as TMRG."""
    warmup_s, test_s = basic.times_s[load]
    end_s = warmup_s + test_s
    return topology(
        basic,
        duration=asked.seconds(end_s),
        warmup=asked.seconds(end_s / 2 if asked.tmrg else warmup_s),
        queues=queues,
    )


def _basic_rows(results: Results) -> Iterable[Row]:
    for run in results.runs:
        names = [link["id"] for link in run.summary["links"]]
        places = {"both": "cell"} if "cell" in names else CENTRAL
        for direction, link in places.items():
            yield Row({**run.factors, "direction": direction}, link_figures(link_of(run, link)))


CENTRAL = {"heavy": "central", "light": "central.reverse"}
BASIC_SCENARIOS = Experiment(
    "basic scenarios", 20, _basic_cases, _basic_rows, (UTILISATION, DROPS, QUEUE), has_tmrg=True
)

# Delay and throughput

BUFFERS_PERCENT = (10, 20, 50, 100, 200)
TARGETS_PERCENT = (2.5, 5, 10, 20, 50)
BDP_S = 0.100


def _delay_throughput_cases(asked: Plan) -> list[Case]:
    access = BASIC["access"]
    if asked.tmrg:
        access = _as_tmrg(access)
        queues = {("target", f"{percent}%"): _red(percent) for percent in TARGETS_PERCENT}
    else:
        queues = {("buffer", f"{percent}%"): _buffer(percent) for percent in BUFFERS_PERCENT}
    return [
        Case(
            _loaded(asked, access, 85, (queue, queue)).with_traffic(*pairs(access, law, 0.85)),
            {"law": law, name: percent},
        )
        for law in dict.fromkeys((asked.law, STANDARD))
        for (name, percent), queue in queues.items()
    ]


def _buffer(percent: float) -> Queue:
    return drop_tail(BASIC["access"].rates_bps[0], BDP_S * percent / 100)


def _red(percent: float) -> Queue:
    """Adaptive RED with a target queue in percent of the BDP."""
    size = packets(BASIC["access"].rates_bps[0], BDP_S)
    target = seconds(BDP_S * percent / 100)
    return Queue(kind="red", preset="adaptive", target_delay=target, size=size)


def _delay_throughput_rows(results: Results) -> Iterable[Row]:
    for run in results.runs:
        yield Row(run.factors, link_figures(link_of(run, "central")))


DELAY_THROUGHPUT = Experiment(
    "access at 85 %, queues in percent of 100 ms",
    20,
    _delay_throughput_cases,
    _delay_throughput_rows,
    (THROUGHPUT, DROPS, QUEUE),
    has_tmrg=True,
)

# Impact on standard TCP

IMPACT_LOADS = (50, 100)
IMPACT_TIMES_S = (84.0, 479.0)


def _impact_cases(asked: Plan) -> list[Case]:
    access = BASIC["access"]
    warmup_s, test_s = IMPACT_TIMES_S
    base = topology(
        access, duration=asked.seconds(warmup_s + test_s), warmup=asked.seconds(warmup_s)
    )
    return [
        Case(
            base.with_traffic(
                *pairs(access, STANDARD, load / 200, "-a"), *pairs(access, law, load / 200, "-b")
            ),
            {"load": f"{load}%", "b": law},
        )
        for load, law in product(IMPACT_LOADS, (STANDARD, asked.law))
    ]


def _impact_rows(results: Results) -> Iterable[Row]:
    """Each run with the law in camp B beside the one of its load and seed with the standard TCP."""
    runs = list(results.runs)
    seeds = len({run.seed for run in runs})
    for load in range(0, len(runs), 2 * seeds):
        bases, mixes = runs[load : load + seeds], runs[load + seeds : load + 2 * seeds]
        for base, mix in zip(bases, mixes, strict=True):
            before, after = base.table("transfers"), mix.table("transfers")
            quartiles = [before["bytes"].quantile(part / 4) for part in (1, 2, 3)]
            bounds = [0.0, *(float(bound or 0.0) for bound in quartiles), math.inf]
            sizes = {"all": (0.0, math.inf)} | {
                f"quartile {i}": part for i, part in enumerate(pairwise(bounds), start=1)
            }
            for name, size in sizes.items():
                yield Row(
                    {"load": base.factors["load"], "sizes": name},
                    {
                        "gain": _ratio(_rate(after, "b", size), _rate(before, "b", size)),
                        "loss": _ratio(_rate(after, "a", size), _rate(before, "a", size)),
                    },
                )


def _rate(transfers: pl.DataFrame, camp: str, size_bytes: tuple[float, float]) -> float | None:
    """Bytes over durations, in bit/s, of the transfers of a camp in a range of sizes."""
    count = len(pair_rtts_us(BASIC["access"]))
    low, high = size_bytes
    found = transfers.filter(
        (transfers["traffic"] // count == "ab".index(camp))
        & (transfers["bytes"] > low)
        & (transfers["bytes"] <= high)
    )
    return _ratio(8.0 * float(found["bytes"].sum()), float(found["duration_s"].sum()))


def _ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


IMPACT = Experiment(
    "access; rate of transfers, camp B and camp A (standard), over those with both standard",
    20,
    _impact_cases,
    _impact_rows,
    (Column("gain", "G, of B"), Column("loss", "L, of A")),
)
