"""Future work of the CW-HSTCP paper: active queue management; and the law without its blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lfnlab.analysis.table import Table, with_interval
from lfnlab.papers.extension import Extension
from lfnlab.statistics import interval

from .runs import BLOCKS, FIVE_MS, NINE_MS, THREE_MS, Setup, Study, drops, exponents, setup_cases

if TYPE_CHECKING:
    from lfnlab.papers.paper import Execute

QUEUES = "Active queue management"
FAIRNESS = "CW-HSTCP without blocks"
LAWS = ("hstcp:ns2", "cw-hstcp")
RTTS_MS = (THREE_MS, NINE_MS, FIVE_MS)


def extend(settings: Mapping[str, Any], execute: Execute) -> Extension:
    """Five flows of each law under each queue; CW-HSTCP with and without blocks."""
    own = settings["extensions"]
    wanted = {Setup(law, FIVE_MS, queue): own["seeds"] for law in LAWS for queue in own["queues"]}
    wanted |= {Setup(law, rtts): own["seeds"] for law in BLOCKS for rtts in RTTS_MS}
    study = Study(settings, execute(setup_cases(settings, wanted), "CW-HSTCP: left for later"))
    return Extension(
        results=study.results,
        answers={
            QUEUES: "Jain's index of five flows, 60 to 240 ms: "
            + "; ".join(
                f"{law} "
                + ", ".join(
                    f"{queue} {jain(study, law, FIVE_MS, queue)}" for queue in own["queues"]
                )
                for law in LAWS
            ),
            FAIRNESS: "Jain's index with blocks and without: "
            + "; ".join(
                f"{len(rtts)} flows, {rtts[0]} to {rtts[-1]} ms, "
                + " and ".join(jain(study, law, rtts) for law in BLOCKS)
                for rtts in RTTS_MS
            ),
        },
        tables={
            QUEUES: Table(
                ("law", "queue", *MEASURED),
                tuple(
                    (law, queue, *cells(study, Setup(law, FIVE_MS, queue)))
                    for law in LAWS
                    for queue in own["queues"]
                ),
                2,
            ),
            FAIRNESS: Table(
                ("RTTs (ms)", "law", *MEASURED),
                tuple(
                    (", ".join(map(str, rtts)), law, *cells(study, Setup(law, rtts)))
                    for rtts in RTTS_MS
                    for law in BLOCKS
                ),
                2,
            ),
        },
    )


def jain(study: Study, law: str, rtts_ms: tuple[int, ...], queue: str = "drop-tail") -> str:
    """Jain's index of the flows with its interval."""
    return with_interval(interval(study.jain(Setup(law, rtts_ms, queue))))


MEASURED = ("Jain's index", "RTT exponent", "utilization (%)", "mean queue (ms)", "dropped (%)")


def cells(study: Study, setup: Setup) -> Iterator[str]:
    """The measures of a setup, each with its interval."""
    runs = study.runs(setup)
    links = [run.summary["links"][0] for run in runs]
    yield with_interval(interval(study.jain(setup)))
    yield with_interval(interval(exponents(study, setup)))
    yield with_interval(interval(100.0 * link["utilization"] for link in links))
    yield with_interval(interval(1e3 * link["mean_queue_s"] for link in links))
    arrived = [link["arrivals"] for link in links]
    yield with_interval(
        interval(100.0 * drops(run) / of for run, of in zip(runs, arrived, strict=True))
    )
