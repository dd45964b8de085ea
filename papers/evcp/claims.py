"""EVCP, a VCP with better convergence time (Lu, Wang, Zhu): its claims, tested.

Every claim is a function of a :class:`Study`, the runs of one choice of what the paper does not
say, that returns a ``Finding``. At high load windows grow by a segment a round trip at any rate, so
all times of VCP and EVCP go with the rate: claims for 1 Gbit/s are tested at 100 Mbit/s in a tenth
of the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.analysis.checks import Known, above, agreed, below, every
from lfnlab.analysis.table import Table, with_interval
from lfnlab.figures import plot, shapes
from lfnlab.metrics import FirstPassage
from lfnlab.papers.paper import (
    Execute,
    Reproduction,
    decided,
    judged,
)
from lfnlab.scenario.quantity import SECONDS, parse
from lfnlab.statistics import interval, paired
from lfnlab.theory.vcp import Controller

from .runs import (
    BETA,
    BETA_C,
    FAIR,
    LAWS,
    OTHER_FAIR,
    Study,
    bursts_s,
    cases,
    converged,
    decreases,
    gap,
    gbps,
    health,
    jain,
    less,
    newcomer_cases,
    pairs,
    penalties,
    said,
    seconds,
    shorter,
    together,
)

if TYPE_CHECKING:
    from lfnlab.analysis.finding import Finding
    from lfnlab.results.runs import Run

#: Of Figures 1 and 5, and when flow 2 has its bursts of growth there.
PAPER_RATE, PAPER_BURSTS_S = "1Gbit/s", (300.0, 540.0)

TITLE = "EVCP: a convergence time improved congestion control protocol"


def reproduce(settings: Mapping[str, Any], execute: Execute) -> Reproduction:
    """Run the study and its variants, test the claims."""
    variants = {
        name: study_of({**settings, **settings["smaller"], **said}, execute, name)
        for name, said in settings["variants"].items()
    }
    study = Study(settings, execute(cases(settings), TITLE))
    fairs = {name: replace(study, fair=fair) for name, fair in OTHER_FAIR.items()}
    smaller = next(iter(variants.values()))
    return judged(
        {"chosen": study, **variants, **fairs},
        CLAIMS,
        by="what the paper does not say",
        varied=VARIED,
        figures=figures(study),
        tables={"Convergence time of flow N (Figures 6 and 7)": times_table([study, smaller])},
    )


def study_of(settings: Mapping[str, Any], execute: Execute, name: str) -> Study:
    """The runs of one choice of settings behind the claims of ``VARIED``."""
    return Study(settings, execute(newcomer_cases(settings), f"{TITLE}: {name}"))


def drawn_study_of(settings: Mapping[str, Any], execute: Execute, name: str) -> Study:
    """The runs of one draw: those of every figure, at the lengths of ``draws.at``."""
    return Study(settings, execute(cases(settings), f"{TITLE}: {name}"))


def e1(study: Study) -> Finding:
    """The second of two VCP flows needs very long for its share.

    "Very long" has no number. Taken as: longer than 440 s, when the paper's EVCP gives its newcomer
    a second burst.
    """
    (run,) = study.runs("1, 5", "vcp")
    (time,) = study.times("1, 5", "vcp")
    rate = str(run.factors["rate"])
    bound_s = 440 * gbps(rate)
    return decided(
        "E1",
        "Fig. 1",
        "the second of two VCP flows takes very long to reach its fair share",
        f"{seconds(time)} s at {rate}; it holds above {bound_s:g} s",
        {"an epoch of two flows is 52 s at 1 Gbit/s": time.value > bound_s},
    )


def e2(study: Study) -> Finding:
    """The first EVCP flow yields with its third decrease; the second has bursts at 300 and 540 s.

    Which decrease falls when is left to the phase of the first flow's cycle, so a burst may come an
    epoch of two flows sooner or later: 52 s at 1 Gbit/s.
    """
    (run,) = study.runs("1, 5", "evcp")
    times = {law: together(study.times("1, 5", law)) for law in LAWS}
    start_s, scale = run.summary["flows"][1]["start_s"], gbps(str(run.factors["rate"]))
    first = penalties(run)[:1]
    epochs = sum(each.t_s <= first[0].t_s for each in decreases(run)) if first else 0
    bursts = bursts_s(run)[:2]
    wanted = [start_s + 200 * scale, start_s + 440 * scale]
    punctual = len(bursts) == 2 and all(
        abs(burst - at) <= 52 * scale for burst, at in zip(bursts, wanted, strict=True)
    )
    return decided(
        "E2",
        "Fig. 5",
        "EVCP's flow 1 yields after about three decreases, flow 2 has bursts of growth at about "
        f"{wanted[0]:g} and {wanted[1]:g} s; much faster than VCP",
        f"yields with decrease {epochs}; bursts at {', '.join(f'{t:.0f}' for t in bursts)} s; "
        f"converges in {seconds(times['evcp'])} s, VCP in {seconds(times['vcp'])} s",
        {
            f"flow 1 yields with decrease {epochs}": epochs == 3,
            "bursts come sooner with our RTT and RTT scaling, which the paper does not give; the "
            "variant of 120 ms without scaling shows their effect": punctual,
            "EVCP is not faster": shorter(times["evcp"], times["vcp"]) is True,
        },
    )


def e3(study: Study) -> Finding:
    """EVCP converges sooner for every N; VCP's time grows as N falls, EVCP's varies little.

    "Little" has no number: the longest mean is at most twice the shortest.
    """
    counts = sorted(study.settings["newcomer"]["flows"])
    vcp, evcp = ({flows: study.times("6", law, flows=flows) for flows in counts} for law in LAWS)
    means = {flows: together(times).value for flows, times in evcp.items()}
    longest, shortest = (choose(counts, key=means.__getitem__) for choose in (max, min))
    tests = {f"EVCP is not faster at N = {n}": less(evcp[n], vcp[n]) for n in counts}
    tests |= {
        f"VCP's time does not grow from N = {many} to {few}": less(vcp[many], vcp[few])
        for few, many in pairwise(counts)
    }
    tests[
        f"EVCP's time varies {means[longest] / means[shortest]:.1f}-fold. Both converge in epochs, "
        "and an epoch of N flows is an N-th of one flow's cycle"
    ] = less(evcp[longest], [FirstPassage(2 * t.value, t.censored) for t in evcp[shortest]])
    return comparison(
        decided(
            "E3",
            "Fig. 6",
            "EVCP converges sooner than VCP for every N from 2 to 10; VCP's time grows as N falls, "
            "EVCP's varies little",
            "; ".join(f"N = {n}: EVCP {said(evcp[n])}, VCP {said(vcp[n])}" for n in counts),
            tests,
        ),
        [*vcp.values(), *evcp.values()],
    )


def e4(study: Study) -> Finding:
    """EVCP converges sooner at every bandwidth.

    At the rate of Figure 6 its runs with two flows are the same as those of Figure 7, and more.
    """
    part = study.settings["newcomer"]
    figure = {part["rate"]: "6"}
    times = {
        rate: [study.times(figure.get(rate, "7"), law, flows=2, rate=rate) for law in LAWS]
        for rate in part["rates"]
    }
    return comparison(
        decided(
            "E4",
            "Fig. 7",
            "two flows, 100 Mbit/s to 1 Gbit/s: EVCP converges sooner at every bandwidth",
            "; ".join(
                f"{rate}: EVCP {said(evcp)}, VCP {said(vcp)}" for rate, (vcp, evcp) in times.items()
            ),
            {
                f"EVCP is not faster at {rate}": less(evcp, vcp)
                for rate, (vcp, evcp) in times.items()
            },
        ),
        [of for both in times.values() for of in both],
    )


def e5(study: Study) -> Finding:
    """Flows of unequal RTTs, one after another: EVCP shares sooner, and two meet in time.

    "Faster" is a higher Jain index, on average from the second flow's start on.
    """
    rates, each_s = study.settings["staircase"]["rates"], study.settings["staircase"]["each_s"]
    indices, tests = fairer(study, "8", rates)
    rate = rates[-1]
    met = [converged(run, 1, FAIR, 2 * each_s) for run in study.runs("8", "evcp", rate=rate)]
    tests[f"at {rate} flow 2 has not converged when flow 3 comes"] = agreed(
        not time.censored for time in met
    )
    return decided(
        "E5",
        "Fig. 8",
        f"{' and '.join(rates)}, RTTs of 40 to 80 ms, one more flow each {each_s} s: EVCP "
        f"reallocates faster; at {rate} two EVCP flows meet before the third starts",
        f"{indices}; at {rate} flow 2 of EVCP converges in {said(met)}",
        tests,
    )


def e6(study: Study) -> Finding:
    """The same at 250 Mbit/s with background traffic."""
    rate = study.settings["staircase"]["beside_background"]
    return decided(
        "E6",
        "Fig. 9",
        f"{rate}, five flows with background: EVCP reallocates faster",
        *fairer(study, "9", [rate]),
    )


def e7(study: Study) -> Finding:
    """Ten flows at 1.4 and 3 Gbit/s: the controller speeds their convergence up, and they converge.

    "Converge" is a Jain index of 0.95 or more in the last quarter of the last stage; "speeds up" a
    higher index than VCP's, on average from the second stage on. The printed rates decide; runs at
    a tenth of them stand beside.
    """
    words = []
    printed = study.settings["pairs"]["printed"]["rates"]
    tests: dict[str, Known] = {}
    for rate, part in pairs(study.settings):
        each_s, end_s = part["each_s"], part["groups"] * part["each_s"]
        runs = {law: study.runs("10", law, rate=rate) for law in LAWS}
        vcp, evcp = ([jain(run, each_s, end_s) for run in of] for of in runs.values())
        last = {
            law: interval(jain(run, end_s - each_s / 4, end_s) for run in of)
            for law, of in runs.items()
        }
        if rate in printed:
            tests[f"at {rate} flows of VCP share as soon"] = above(paired(evcp, vcp), 0.0)
            tests[
                f"at {rate} the last stage ends with unequal shares: epochs grow with the rate, "
                f"and {each_s} s have few of them"
            ] = above(last["evcp"], 0.95)
        words.append(
            f"{rate}, two more each {each_s} s: mean Jain index EVCP "
            f"{with_interval(interval(evcp))}, VCP {with_interval(interval(vcp))}; at the end EVCP "
            f"{with_interval(last['evcp'])}, VCP {with_interval(last['vcp'])}"
        )
    return decided(
        "E7",
        "Fig. 10",
        "1.4 and 3 Gbit/s, ten flows, two more each 200 s, with background: the controller speeds "
        "their convergence up",
        "; ".join(words),
        tests,
    )


def e8(study: Study) -> Finding:
    """EVCP keeps VCP's use of the link, short queue and rare loss.

    No numbers are given. Taken as, since the last flow's start, on average over the runs of each
    point of Figures 6 and 7: at most 2 % of the link less used than by VCP, a queue of at most 5 %
    of a BDP, and at most one packet in 10,000 dropped.
    """
    points = [
        (figure, flows, rate)
        for figure, flows, rate in dict.fromkeys(
            (run.factors["figure"], run.factors["flows"], run.factors["rate"])
            for run in study.results.runs
        )
        if figure in ("6", "7")
    ]
    runs = {
        law: [
            [health(run) for run in study.runs(str(figure), law, flows=flows, rate=rate)]
            for figure, flows, rate in points
        ]
        for law in LAWS
    }
    seen = {
        law: [[interval(column) for column in zip(*found, strict=True)] for found in runs[law]]
        for law in LAWS
    }
    differences = [
        interval(vcp[0] - evcp[0] for vcp, evcp in zip(*found, strict=True))
        for found in zip(*runs.values(), strict=True)
    ]
    most = max(differences, key=lambda difference: difference.mean)
    words = "; ".join(
        f"{law.upper()} uses {min(point[0].mean for point in found):.1%} to "
        f"{max(point[0].mean for point in found):.1%} of the link, waits for up to "
        f"{max(point[1].mean for point in found):.2%} of an RTT, drops up to "
        f"{max(point[2].mean for point in found):.1g}"
        for law, found in reversed(seen.items())
    )
    return decided(
        "E8",
        "text",
        "EVCP keeps VCP's high utilization, low persistent queue, negligible loss",
        f"{words}; at most {with_interval(most, 100)} % of the link less than VCP",
        {
            "EVCP leaves more of the link unused: a penalty takes the load below 80 %": every(
                below(difference, 0.02) for difference in differences
            ),
            "the queue stands": every(below(point[1], 0.05) for point in seen["evcp"]),
            "packets are dropped": every(below(point[2], 1e-4) for point in seen["evcp"]),
        },
    )


def e9(study: Study) -> Finding:
    """Equations 8 to 11, of the controller, and of packets' windows to 1 % of the first one."""
    vcp, evcp = (study.runs("1, 5", law)[0] for law in LAWS)
    controller = Controller()
    left = [controller.keeps(w) for w in (8000.0, 7600.0, 7400.0)]
    steps = decreases(vcp)
    off = {
        "growth": [
            (gap(two.before) - gap(one.after)) / two.before[0] for one, two in pairwise(steps)
        ],
        "decreases": [(gap(x.after) - BETA * gap(x.before)) / x.before[0] for x in steps],
        "penalties": [
            (gap(x.after) - BETA * gap(x.before) + (BETA - BETA_C) * x.before[0]) / x.before[0]
            for x in penalties(evcp)
        ],
    }
    found = decided(
        "E9",
        "eqs. 8 to 11",
        "between decreases all flows gain the same window; each decrease shrinks the difference by "
        "0.875; a penalty subtracts 0.175 w more",
        f"the controller keeps {', '.join(f'{part:g}' for part in left)} of a falling window; "
        "packets differ from the equations by at most "
        + ", ".join(
            f"{max(map(abs, part)):.2%} of the window ({len(part)} {name})"
            for name, part in off.items()
            if part
        ),
        {
            "the controller has other factors": left == [BETA, BETA, BETA_C]
            and math.isclose(BETA - BETA_C, 0.175),
            "windows that packets made differ": all(
                abs(x) <= 0.01 for part in off.values() for x in part
            ),
        },
    )
    return found if all(off.values()) else replace(found, verdict="cannot be tested")


def e10(study: Study) -> Finding:
    """VCP converges in O(P log dP) round trips: the factor does not grow with P.

    P is the bandwidth-delay product of a flow's share in packets, and as large is the largest
    difference dP of windows when the newcomer comes. "Does not grow" is by at most a quarter from a
    rate to the next.
    """
    rates, rtt_s = study.settings["newcomer"]["rates"], parse(study.settings["rtt"], SECONDS)
    factors, censored = {}, []
    for rate in rates:
        times = study.times("7", "vcp", rate=rate)
        packets = gbps(rate) * 1e9 * rtt_s / (8 * 1500) / 2
        factors[rate] = [time.value / rtt_s / (packets * math.log(packets)) for time in times]
        censored.append(times)
    return comparison(
        decided(
            "E10",
            "Analysis",
            "VCP takes O(P log dP) round trips to converge onto fairness",
            "round trips over P ln P: "
            + ", ".join(f"{rate} {with_interval(interval(of))}" for rate, of in factors.items()),
            {
                f"it grows faster from {low} to {high}": below(
                    paired(factors[high], [1.25 * factor for factor in factors[low]]), 0.0
                )
                for low, high in pairwise(rates)
            },
        ),
        censored,
    )


def e11(study: Study) -> Finding:
    """VCP converges significantly slower than XCP: in at least twice the time at each rate."""
    rates = study.settings["newcomer"]["rates"]
    times = {rate: [study.times("7", law, rate=rate) for law in ("xcp", "vcp")] for rate in rates}
    return comparison(
        decided(
            "E11",
            "Overview of VCP",
            "VCP converges significantly slower onto a fair share than XCP",
            "; ".join(
                f"{rate}: XCP {said(xcp)}, VCP {said(vcp)}" for rate, (xcp, vcp) in times.items()
            ),
            {
                f"at {rate} it does not take twice as long": less(
                    [FirstPassage(2 * time.value, time.censored) for time in xcp], vcp
                )
                for rate, (xcp, vcp) in times.items()
            },
        ),
        [of for both in times.values() for of in both],
    )


CLAIMS = (e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11)
VARIED = (e1, e2, e3, e4, e8, e10)
DRAWN = (e1, e2, e3, e4, e5, e6, e7, e8, e10, e11)


def comparison(finding: Finding, times: Sequence[Sequence[FirstPassage]]) -> Finding:
    """The finding; what is open because flows did not converge in time cannot be tested."""
    if finding.verdict == "undecided" and any(time.censored for of in times for time in of):
        cause = "flows did not converge before the end of their runs"
        return replace(finding, verdict="cannot be tested", cause=cause)
    return finding


def fairer(study: Study, figure: str, rates: Sequence[str]) -> tuple[str, dict[str, Known]]:
    """Jain's index from the second flow's start on, in words, and where EVCP's is higher."""
    part = study.settings["staircase"]
    start_s, end_s = part["each_s"], (len(part["rtts"]) + 1) * part["each_s"]
    words = []
    tests: dict[str, Known] = {}
    for rate in rates:
        vcp, evcp = (
            [jain(run, start_s, end_s) for run in study.runs(figure, law, rate=rate)]
            for law in LAWS
        )
        words.append(
            f"{rate}: mean Jain index EVCP {with_interval(interval(evcp))}, VCP "
            f"{with_interval(interval(vcp))}"
        )
        tests[f"at {rate} EVCP's shares are no more equal"] = above(paired(evcp, vcp), 0.0)
    return "; ".join(words), tests


def times_table(studies: Sequence[Study]) -> Table:
    """Convergence times of both laws: what the paper says in words, our means and ranges."""
    rows = []
    for study in studies:
        part = study.settings["newcomer"]
        points = [("6", flows, part["rate"]) for flows in sorted(part["flows"])]
        points += [("7", 2, rate) for rate in part["rates"]]
        for figure, flows, rate in points:
            cells = []
            for law in reversed(LAWS):
                times = study.times(figure, law, flows=flows, rate=rate)
                values = sorted(round(time.value) for time in times)
                several = f" ({values[0]} to {values[-1]})" if len(values) > 1 else ""
                cells.append(seconds(together(times)) + several)
            rows.append((f"Fig. {figure}", str(flows), rate, "EVCP shorter", *cells))
    return Table(("figure", "N", "rate", "paper", "EVCP (s)", "VCP (s)"), tuple(rows), 3)


def figures(study: Study) -> dict[str, Any]:
    """Figures 1 and 5 to 10; what is on the axes of 8 to 10 the paper's text does not say."""
    made: dict[str, Any] = {}
    for number, law in (("1", "vcp"), ("5", "evcp")):
        (run,) = study.runs("1, 5", law)
        traces = numbered(run, plot.cwnd_series)
        caption = f"Figure {number}: congestion windows of two {law.upper()} flows"
        if law == "evcp" and run.factors["rate"] == PAPER_RATE:
            top = max(float(window.max()) for _, _, window in traces)
            t_s = np.repeat(PAPER_BURSTS_S, 3)
            bars = np.tile([0.0, top, np.nan], len(PAPER_BURSTS_S))
            traces.append(("bursts in the paper", t_s, bars))
            caption += "; the times of bursts are the paper's"
        made[f"figure{number}"] = (
            plot.courses({law.upper(): traces}, "window (segments)"),
            caption,
        )
    for number, x, label, scale in (
        ("6", "flows", "flows", 1.0),
        ("7", "rate", "bandwidth (Mbit/s)", 1e3),
    ):
        points: dict[tuple[Any, ...], Any] = {}
        for law in LAWS:
            for value in dict.fromkeys(run.factors[x] for run in study.runs(number, law)):
                times = study.times(number, law, **{x: value})
                at = scale * gbps(str(value)) if x == "rate" else float(value)
                points[law, at] = interval(time.value for time in times)
        made[f"figure{number}"] = (
            shapes.lines(points, label, "convergence time (s)"),
            f"Figure {number}: convergence time of flow N, with background traffic",
        )
    for number, name in (("8", "without"), ("9", "with")):
        panels = {
            f"{str(run.factors['law']).upper()}, {run.factors['rate']}": numbered(
                run, plot.goodput_series
            )
            for run in study.results.runs
            if run.factors["figure"] == number and run.seed == 1
        }
        made[f"figure{number}"] = (
            plot.courses(panels, "goodput (Mbit/s)"),
            f"Figure {number}: five flows that start one after another, {name} background traffic",
        )
    # The highest two rates: the paper's own, where they are run.
    rates = sorted((rate for rate, _ in pairs(study.settings)), key=gbps)[-2:]
    panels = {
        f"{str(law).upper()}, {rate}": numbered(run, plot.goodput_series, each=2)
        for rate in rates
        for law in reversed(LAWS)
        for run in study.runs("10", law, rate=rate)[:1]
    }
    made["figure10"] = (
        plot.courses(panels, "goodput (Mbit/s)"),
        "Figure 10: ten flows, two more at a time, with background traffic",
    )
    return made


def numbered(
    run: Run, series: Callable[[Run], Iterator[plot.Series]], each: int = 1
) -> list[plot.Course]:
    """Traces of the flows under test, with their numbers from 1; each so many share a name."""
    flows = [flow for flow in run.summary["flows"] if flow["direction"] == "forward"]
    starts_s = {flow["id"]: flow["start_s"] for flow in flows}
    return [
        (
            name_of(list(starts_s).index(flow), each),
            t_s[t_s > starts_s[flow]],
            y[t_s > starts_s[flow]],
        )
        for flow, _, t_s, y in series(run)
        if flow in starts_s
    ]


def name_of(index: int, each: int) -> str:
    """The number of a flow in words, or of those that share its name: "flows 3, 4"."""
    first = index // each * each + 1
    return f"flow {first}" if each == 1 else f"flows {first}, {first + each - 1}"
