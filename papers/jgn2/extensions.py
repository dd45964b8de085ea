"""Future work of the JGN II paper: 10 Gbit/s, laws of today, and Linux."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from lfnlab import metrics
from lfnlab.analysis.table import Table, with_interval
from lfnlab.experiment.plan import Case
from lfnlab.figures import plot
from lfnlab.papers.extension import Extension, OnKernel
from lfnlab.papers.paper import nested
from lfnlab.scenario.builder import graph
from lfnlab.scenario.elements import Change, NamedLink, Queue
from lfnlab.scenario.quantity import SECONDS, parse
from lfnlab.statistics import interval

from .claims import below_both, figures_2_to_4, heat_map, j1, j2, j3, j4, j5, listed
from .runs import PAPER, PAPER_MBPS, Pair, Study, buffer, cases, full_mbps, matrix_cases

if TYPE_CHECKING:
    from lfnlab.papers.paper import Execute
    from lfnlab.results.runs import Run
    from lfnlab.scenario.builder import Scenario

QUESTION = "Table 2 at other rates, with laws of today"
FASTER = "Figures 2 to 4 at ten times the rate"


def extend(settings: Mapping[str, Any], execute: Execute) -> Extension:
    """Run the matrix at each rate, and the figures at ten times the paper's."""
    rates = settings["extensions"]["rates"]
    chosen = {rate: nested(settings, {**settings["extensions"], "rate": rate}) for rate in rates}
    made = [
        case
        for rate, own in chosen.items()
        for seed in range(1, own["seeds"] + 1)
        for case in matrix_cases(own, seed, rate)
    ]
    faster = nested(settings, settings["extensions"]["faster"])
    made += [case for case in cases(faster) if str(case.factors["part"]).startswith("figure")]
    results = execute(made, f"JGN II: {QUESTION}")
    studies = {rate: Study(own, results) for rate, own in chosen.items()}
    drawn = figures_2_to_4(there := Study(faster, results))
    found = [claim(there) for claim in (j1, j2, j3, j4, j5)]
    return Extension(
        results=results,
        answers={
            QUESTION: "; ".join(said(study, rate) for rate, study in studies.items()),
            FASTER: f"{faster['rate']}, the buffers and the caps of windows ten times as large: "
            + "; ".join(f"{one.claim} {one.verdict} ({one.cause or one.ours})" for one in found),
        },
        tables={
            f"{FASTER}: the claims": Table(
                ("claim", f"verdict at {faster['rate']}", "ours there"),
                tuple((one.claim, one.verdict, one.ours) for one in found),
                2,
            ),
            **{
                heading.format(rate=rate): table
                for rate, study in studies.items()
                for heading, table in (
                    ("Total goodput of two flows at {rate}, Mbit/s", totals_table(study, rate)),
                    (
                        "Share of the row's flow beside the column's at {rate}, %",
                        shares_table(study, rate),
                    ),
                )
            },
        },
        figures={
            "matrix": (
                heat_maps(studies),
                "Table 2 of the paper, and total goodput of two flows in Mbit/s at "
                f"{' and '.join(rates)}; a frame where a mix has less than two flows of either "
                "protocol",
            ),
            **{
                f"faster-{name}": (figure, f"{caption}, at {faster['rate']}")
                for name, (figure, caption) in drawn.items()
            },
        },
    )


def said(study: Study, rate: str) -> str:
    """Range of the totals, mixes below both, and what today's laws take."""
    totals = {pair: total.mean for pair, total in study.totals(rate).items()}
    low, high = min(totals, key=totals.__getitem__), max(totals, key=totals.__getitem__)
    below = listed(below_both(totals, full_mbps(study))) or "none"
    today = study.laws[-1]
    taken = ", ".join(
        f"{share(study, rate, today, other):.0f} % beside {other}" for other in study.laws[:-1]
    )
    return (
        f"{rate}: totals from {totals[low]:.0f} ({'+'.join(low)}) to {totals[high]:.0f} Mbit/s "
        f"({'+'.join(high)}), less than either alone: {below}; of the total {today} has {taken}"
    )


def pair_of(study: Study, one: str, other: str) -> Pair:
    """The two as the matrix has them."""
    first, second = sorted((one, other), key=study.laws.index)
    return first, second


def share(study: Study, rate: str, one: str, other: str) -> float:
    """Share of the first of two flows in their total goodput, percent."""
    pair = pair_of(study, one, other)
    parts = []
    for run in study.runs(rate, *pair):
        goodputs = run.goodputs
        parts.append(100.0 * goodputs[pair.index(one)] / sum(goodputs))
    return interval(parts).mean


def shares_table(study: Study, rate: str) -> Table:
    """A row a law; of two flows of one law, that of the first."""
    return Table(
        ("", *study.laws),
        tuple(
            (one, *(f"{share(study, rate, one, other):.0f}" for other in study.laws))
            for one in study.laws
        ),
        1,
    )


def totals_table(study: Study, rate: str) -> Table:
    """The matrix with its intervals."""
    totals = study.totals(rate)
    return Table(
        ("", *study.laws),
        tuple(
            (
                one,
                *(with_interval(totals[pair_of(study, one, other)]) for other in study.laws),
            )
            for one in study.laws
        ),
        1,
    )


def heat_maps(studies: Mapping[str, Study]) -> Figure:
    """The paper's matrix, then one a rate, shaded by the part of the link's rate."""
    with plot.house_style():
        figure = Figure(figsize=(4.6 * (1 + len(studies)), 4.4))
        first, *others = figure.subplots(1, 1 + len(studies))
        heat_map(first, "paper, 1Gbit/s", PAPER, PAPER_MBPS)
        for axes, (rate, study) in zip(others, studies.items(), strict=True):
            totals = {pair: total.mean for pair, total in study.totals(rate).items()}
            heat_map(axes, f"ours, {rate}", totals, full_mbps(study))
        return figure


def on_kernel(settings: Mapping[str, Any]) -> OnKernel:
    """Figure 4 on this kernel's TCP: one link, whose delay or rate changes and changes back.

    The window has no cap but the queue's, since a test bed sets none.
    """
    own = nested(settings, settings["kernel"])
    part = own["switch"]
    at_s, back_s = part["at_s"], part["back_s"]
    return OnKernel(
        "switches in Linux",
        [
            Case(switched(own, law, kind), {"switch": kind, "law": law})
            for kind in ("delay", "rate")
            for law in own["laws"]
        ],
        {
            "Mbit/s before": goodput_mbps(at_s - 5, at_s),
            "for 5 s from the switch": goodput_mbps(at_s, at_s + 5),
            "then": goodput_mbps(at_s + 5, back_s),
            "for 5 s from the switch back": goodput_mbps(back_s, back_s + 5),
            "then again": goodput_mbps(back_s + 5, part["duration_s"] - 1),
        },
    )


def goodput_mbps(start_s: float, end_s: float) -> Callable[[Run], float]:
    """The measure of a span of time."""

    def measure(run: Run) -> float:
        return metrics.goodput(run.table("flows"), start_s=start_s, end_s=end_s)[0] / 1e6

    return measure


def switched(own: Mapping[str, Any], law: str, kind: str) -> Scenario:
    """One flow over one link that changes for a while."""
    part = own["switch"]
    delay, other_delay = (
        f"{500 * parse(rtt, SECONDS):g}ms" for rtt in (own["domestic"], part["rtt"])
    )
    before, during = (
        ({"delay": delay}, {"delay": other_delay})
        if kind == "delay"
        else ({"rate": own["rate"]}, {"rate": part["rate"]})
    )
    link = NamedLink(
        name="path",
        from_="sender",
        to="receiver",
        rate=own["rate"],
        delay=delay,
        queue=Queue(size=buffer(own, own["domestic"])),
    )
    base = graph(link, duration=f"{part['duration_s']}s", sample=own["sample"])
    return base.flow(law, from_="sender", to="receiver").with_changes(
        *(
            Change(at=f"{at_s}s", link=name, **said)
            for at_s, said in ((part["at_s"], during), (part["back_s"], before))
            for name in ("path", "path.reverse")
        )
    )
