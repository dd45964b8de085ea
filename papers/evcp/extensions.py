"""Future work of the EVCP paper: the best N1, N2 and S, and active queue management.

``python -m studies.evcp`` has more of both: 26 triples in the fluid model, more routers, HSTCP. A
cycle is the time of one flow alone from decrease to decrease.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.analysis.table import Table, with_interval
from lfnlab.experiment.plan import Case
from lfnlab.papers.extension import Extension, select
from lfnlab.scenario.elements import Queue
from lfnlab.statistics import interval

from .runs import HELD, beside, converged, decreases, gbps, newcomer

if TYPE_CHECKING:
    from lfnlab.papers.paper import Execute
    from lfnlab.results.runs import Results, Run
    from lfnlab.scenario.builder import Scenario

VALUES = "The best N1, N2, S"
QUEUES = "Active queue management against simultaneous decreases"
#: Of a flow alone at a rate in Gbit/s, in s: an eighth of a BDP, a segment a round trip of 100 ms.
CYCLE_S = 104.0


def extend(settings: Mapping[str, Any], execute: Execute) -> Extension:
    """Two flows: each choice of N1, N2, S alone, and each queue beside background of level 2."""
    own = settings["extensions"]
    laws = ["vcp", *(named(triple) for triple in own["triples"])]
    made = [
        Case(two(settings, law, seed), {"question": VALUES, "law": law, "queue": ""})
        for law in laws
        for seed in range(1, own["seeds"] + 1)
    ]
    made += [
        Case(managed(settings, law, queue, seed), {"question": QUEUES, "law": law, "queue": queue})
        for law in ("vcp", "evcp")
        for queue in own["queues"]
        for seed in range(1, own["seeds"] + 1)
    ]
    results = execute(made, "EVCP: what the paper left for later")
    return Extension(
        results=results,
        answers={
            VALUES: "until the newcomer has its share "
            + ", ".join(
                f"{law} {cell(of_values(results, law), cycles)} cycles and "
                f"{cell(of_values(results, law), used)} % of the link"
                for law in laws
            ),
            QUEUES: "beside background, part of the decreases of flow 1 that flow 2 makes within "
            "400 ms: "
            + "; ".join(
                f"{law} "
                + ", ".join(
                    f"{queue} {cell(of_queue(results, law, queue), together)}"
                    for queue in own["queues"]
                )
                for law in ("vcp", "evcp")
            ),
        },
        tables={
            VALUES: Table(
                ("law", "cycles until the newcomer has its share", "utilization (%)"),
                tuple(
                    (law, *(cell(of_values(results, law), measure) for measure in (cycles, used)))
                    for law in laws
                ),
                1,
            ),
            QUEUES: Table(
                (
                    "law",
                    "queue",
                    "decreases together",
                    "cycles until the newcomer has its share",
                    "utilization (%)",
                    "mean wait (ms)",
                ),
                tuple(
                    (
                        law,
                        queue,
                        *(
                            cell(of_queue(results, law, queue), measure)
                            for measure in (together, cycles, used, wait_ms)
                        ),
                    )
                    for law in ("vcp", "evcp")
                    for queue in own["queues"]
                ),
                2,
            ),
        },
    )


def named(triple: Sequence[int]) -> str:
    """EVCP with N1, N2 and S as a part of W_max."""
    return "evcp:n1={}:n2={}:s={}".format(*triple)


def two(settings: Mapping[str, Any], law: str, seed: int) -> Scenario:
    """A flow, and after the first has filled the link another one."""
    own = settings["extensions"]
    return newcomer(
        settings,
        law,
        own["rate"],
        flows=2,
        first="uniform(0s, 10s)",
        start_s=own["newcomer_s"],
        watch_s=own["watch_s"],
        seed=seed,
    )


def managed(settings: Mapping[str, Any], law: str, queue: str, seed: int) -> Scenario:
    """The same behind another queue, beside background, without which there is no queue."""
    made = beside(
        {**settings, "level": 2}, two(settings, law, seed), settings["extensions"]["rate"]
    )
    assert made.link is not None
    own = Queue(kind=queue, size=settings["buffer"])  # type: ignore[arg-type]
    return replace(made, link=replace(made.link, queue=own))


def of_values(results: Results, law: str) -> list[Run]:
    """The runs of a choice of N1, N2, S."""
    return select(results, question=VALUES, law=law)


def of_queue(results: Results, law: str, queue: str) -> list[Run]:
    """The runs of a law behind a queue."""
    return select(results, question=QUEUES, law=law, queue=queue)


def cell(runs: Sequence[Run], measure: Any) -> str:
    """A mean with its interval; what it exceeds, where a flow did not converge."""
    values = [measure(run) for run in runs]
    if any(value is None for value in values):
        rate = gbps(f"{runs[0].summary['links'][0]['rate_bps']}bit/s")
        return f"> {watched(runs[0]) / (CYCLE_S * rate):.1f} in {values.count(None)} runs"
    return with_interval(interval(values))


def watched(run: Run) -> float:
    """How long the newcomer runs, in s."""
    return run.summary["sim_s"] - run.summary["flows"][1]["start_s"]


def cycles(run: Run) -> float | None:
    """Cycles until the newcomer has its share; None if it has not while it is watched."""
    time = converged(run, -1, HELD)
    rate = gbps(f"{run.summary['links'][0]['rate_bps']}bit/s")
    return None if time.censored else time.value / (CYCLE_S * rate)


def used(run: Run) -> float:
    """Of the link since the newcomer's start, percent."""
    return 100.0 * run.summary["links"][0]["utilization"]


def wait_ms(run: Run) -> float:
    """Mean time in the queue since the newcomer's start."""
    return 1e3 * run.summary["links"][0]["mean_queue_s"]


def together(run: Run) -> float:
    """Part of the decreases of flow 1 since the newcomer's start that flow 2 makes in 400 ms."""
    found = [each.after[1] < 0.9 * each.before[1] for each in decreases(run)]
    return float(np.mean(found)) if found else 0.0
