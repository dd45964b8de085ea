"""Future work of the Westwood+ paper: its decrease with the probing of other laws.

Reno's is Westwood+ itself, Scalable's the paper's own ``westwood-s``, H-TCP's is ``htcp-be``, whose
filter is another; those of HSTCP and CUBIC are laws in Python (``laws.py``). Beside them are
Scalable TCP and HSTCP themselves, with which the paper wants to compare. Each meets the burst
of UDP of Figures 6 to 9, and shares a link with two of its kind as in Figures 11 to 16.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from lfnlab import metrics
from lfnlab.analysis.table import Table, with_interval
from lfnlab.control_laws.prototype import label
from lfnlab.experiment.plan import Case
from lfnlab.figures import plot
from lfnlab.papers.extension import Extension, OnKernel
from lfnlab.papers.paper import nested
from lfnlab.statistics import Interval, interval

from .laws import WestwoodCubic, WestwoodHstcp
from .runs import (
    LAWS,
    PEAK,
    Study,
    after_burst_s,
    burst,
    goodput_after,
    jain_after,
    mean_goodput_bps,
    per_flow,
    swing,
    three,
    window_cov,
)

if TYPE_CHECKING:
    from lfnlab import Law
    from lfnlab.papers.paper import Execute
    from lfnlab.results.runs import Run

QUESTION = "Westwood+ with the probing of other laws"


PROBINGS: dict[str, str | type[Law]] = {
    "Reno's": "westwood",
    "Scalable's": "westwood-s",
    "H-TCP's": "htcp-be",
    "HSTCP's": WestwoodHstcp,
    "CUBIC's": WestwoodCubic,
    "Scalable TCP itself": "scalable",
    "HSTCP itself": "hstcp",
}


def extend(settings: Mapping[str, Any], execute: Execute) -> Extension:
    """Run each probing after the burst and among three flows."""
    own = nested(settings, settings["extensions"])
    made = []
    for seed in range(1, own["seeds"] + 1):
        for law in PROBINGS.values():
            for name, scenario in (("burst", burst), ("three", three)):
                factors = {"experiment": name, "law": label(law)}
                made.append(Case(scenario(own, law).with_seed(seed), factors))
    study = Study(own, execute(made, QUESTION))
    named = {probing: label(law) for probing, law in PROBINGS.items()}
    after = {name: goodput_after(study, law) for name, law in named.items()}
    each = {name: per_flow(study, law) for name, law in named.items()}
    shared = {name: jain_mean(study, law) for name, law in named.items()}
    return Extension(
        results=study.results,
        answers={
            QUESTION: "after the burst "
            + ", ".join(f"{name} {with_interval(of, 1e-9)}" for name, of in after.items())
            + " Gbit/s; three flows have "
            + ", ".join(f"{name} {with_interval(of, 1e-6)}" for name, of in each.items())
            + " Mbit/s each, with a Jain index of "
            + ", ".join(with_interval(of) for of in shared.values())
        },
        tables=tables(study, own),
        figures={
            "probing": (
                plot.courses(
                    {
                        "one flow, a burst of UDP": [
                            window_mb(study, study.runs("burst", law)[0], name)
                            for name, law in named.items()
                        ]
                    },
                    "congestion window (MB)",
                ),
                f"{QUESTION}: window of one flow, a burst of UDP from "
                f"{own['burst']['start_s']} s on, first seed",
            )
        },
    )


def least_ssthresh(study: Study, law: str) -> Interval:
    """Smallest ssthresh that the burst leaves, bytes."""

    def of(run: Run) -> float:
        events = run.table("events").filter(
            (pl.col("flow") == 0)
            & pl.col("t_s").is_between(study.settings["burst"]["start_s"], after_burst_s(study))
        )
        least = events["ssthresh_seg"].min()
        return float(least) * study.packet_bytes if isinstance(least, float) else float("nan")

    return study.each("burst", law, of)


def tables(study: Study, own: Mapping[str, Any]) -> dict[str, Table]:
    """Both experiments, a row for each probing."""
    named = {probing: label(law) for probing, law in PROBINGS.items()}
    return {
        f"{QUESTION}, after the burst": Table(
            (
                "probing",
                "law",
                "least ssthresh (MB)",
                "back at 90 % after (s)",
                "goodput after (Gbit/s)",
                "segments sent again",
            ),
            tuple(
                (
                    name,
                    law,
                    with_interval(least_ssthresh(study, law), 1e-6),
                    back_after(study, law),
                    with_interval(goodput_after(study, law), 1e-9),
                    with_interval(study.each("burst", law, sent_again)),
                )
                for name, law in named.items()
            ),
            2,
        ),
        f"{QUESTION}, three flows on {own['three']['rate']}": Table(
            (
                "probing",
                "law",
                "goodput each (Mbit/s)",
                "CoV of windows",
                "Jain's index",
                "segments sent again",
            ),
            tuple(
                (
                    name,
                    law,
                    with_interval(per_flow(study, law), 1e-6),
                    with_interval(swing(study, law)),
                    with_interval(jain_mean(study, law)),
                    with_interval(study.each("three", law, sent_again)),
                )
                for name, law in named.items()
            ),
            2,
        ),
    }


def sent_again(run: Run) -> float:
    """Retransmissions of all flows after the warm-up."""
    return float(sum(flow["retransmits"] for flow in run.summary["flows"]))


def jain_mean(study: Study, law: str) -> Any:
    """Jain's index of three flows, mean over time."""
    bin_s = study.settings["three"]["bin_s"]
    return study.each("three", law, lambda run: float(jain_after(run, bin_s).mean()))


def back_after(study: Study, law: str) -> str:
    """Seconds from the end of the burst to 90 % of the window that the hosts allow.

    From where the burst's losses have brought it down; a bound where a run did not see it.
    """
    own = study.settings["burst"]
    end_s, goal = own["start_s"] + own["seconds"], 0.9 * PEAK * study.part
    times = []
    for run in study.runs("burst", law):
        flow = run.table("flows").filter((pl.col("flow") == 0) & (pl.col("t_s") >= end_s))
        t_s, window = flow["t_s"].to_numpy(), flow["cwnd_seg"].to_numpy() * study.packet_bytes
        low = int(np.argmin(window[t_s <= after_burst_s(study)]))
        reached = np.flatnonzero(window[low:] >= goal)
        if not reached.size:
            return f"> {t_s[-1] - end_s:.0f}"
        times.append(float(t_s[low + reached[0]] - end_s))
    return with_interval(interval(times))


def window_mb(study: Study, run: Run, name: str) -> plot.Course:
    """The window of the first flow over time."""
    flow = run.table("flows").filter(pl.col("flow") == 0)
    return name, flow["t_s"].to_numpy(), flow["cwnd_seg"].to_numpy() * study.packet_bytes / 1e6


def on_kernel(settings: Mapping[str, Any]) -> OnKernel:
    """Figures 11 to 16 on this kernel's TCP: three flows of New Reno, and of Westwood+."""
    own = nested(settings, settings["kernel"])
    return OnKernel(
        "three flows in Linux",
        [
            Case(three(own, law).with_seed(seed), {"law": law})
            for law in LAWS
            for seed in range(1, own["seeds"] + 1)
        ],
        {
            "goodput each (Mbit/s)": lambda run: mean_goodput_bps(run) / 1e6,
            "CoV of windows": window_cov,
            "Jain's index": lambda run: metrics.jain(run.goodputs),
        },
    )
