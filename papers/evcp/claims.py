"""EVCP, a VCP with better convergence time (Lu, Wang, Zhu): its claims, tested.

Every claim is a function of a :class:`Study`, the runs of one choice of what the paper does not
say, that returns a ``Finding``. At high load windows grow by a segment a round trip at any rate, so
all times of VCP and EVCP go with the rate: the variants are at a tenth of it, in a tenth of the
time. A verdict that rests on flows that did not converge while they were watched is none
(:func:`comparison`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
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
    LAWS,
    OTHER_FAIR,
    Fair,
    Study,
    bursts_s,
    cases,
    decreases,
    gap,
    gbps,
    health,
    interval_of,
    jain,
    less,
    newcomer_cases,
    newcomers,
    pairs,
    penalties,
    plain,
    points,
    said,
    seconds,
    shorter,
    times,
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
    fairs = {fair.name: replace(study, fair=fair) for fair in OTHER_FAIR}
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
    rate = str(run.factors["rate"])
    bound = FirstPassage(440 * gbps(rate))
    (time,) = study.times("1, 5", "vcp")
    return comparison(
        decided(
            "E1",
            "Fig. 1",
            "the second of two VCP flows takes very long to reach its fair share",
            f"{alone(study, 'vcp')} at {rate}; it holds above {bound.value:g} s",
            {"an epoch of two flows is 52 s at 1 Gbit/s": shorter(bound, time)},
        ),
        [[time]],
    )


def alone(study: Study, law: str) -> str:
    """The convergence time of Figure 1 or 5, by each measure."""
    return ", ".join(
        f"{seconds(time)} s ({fair.name})"
        for fair in study.measures
        for time in study.times("1, 5", law, fair)
    )


def e2(study: Study) -> Finding:
    """The first EVCP flow yields with its third decrease; the second has bursts at 300 and 540 s.

    Which decrease falls when is left to the phase of the first flow's cycle, so a burst may come an
    epoch of two flows sooner or later: 52 s at 1 Gbit/s. "Much faster" has no number: at most half
    of VCP's time.
    """
    (run,) = study.runs("1, 5", "evcp")
    times_of = {law: study.times("1, 5", law) for law in LAWS}
    start_s, scale = run.summary["flows"][1]["start_s"], gbps(str(run.factors["rate"]))
    first = penalties(run)[:1]
    epochs = sum(each.t_s <= first[0].t_s for each in decreases(run)) if first else 0
    bursts = bursts_s(run)[:2]
    wanted = [start_s + 200 * scale, start_s + 440 * scale]
    punctual = len(bursts) == 2 and all(
        abs(burst - at) <= 52 * scale for burst, at in zip(bursts, wanted, strict=True)
    )
    (evcp,), (vcp,) = times(2, times_of["evcp"]), times_of["vcp"]
    return comparison(
        decided(
            "E2",
            "Fig. 5",
            "EVCP's flow 1 yields after about three decreases, flow 2 has bursts of growth at "
            f"about {wanted[0]:g} and {wanted[1]:g} s; much faster than VCP",
            f"yields with decrease {epochs}; bursts at {', '.join(f'{t:.0f}' for t in bursts)} s; "
            f"EVCP {alone(study, 'evcp')}; VCP {alone(study, 'vcp')}",
            {
                f"flow 1 yields with decrease {epochs}": epochs == 3,
                "bursts come sooner with our RTT and RTT scaling, which the paper does not give; "
                "the variant of 120 ms without scaling shows their effect": punctual,
                "EVCP takes more than half of VCP's time": shorter(evcp, vcp),
            },
        ),
        times_of.values(),
    )


def e3(study: Study) -> Finding:
    """EVCP converges sooner for every N; VCP's time grows as N falls, EVCP's varies little.

    "Little" has no number: the longest mean is at most twice the shortest. The printed rate
    decides; the first crossing, which comes late, is judged at a tenth of it.
    """
    part = study.settings["newcomer"]
    counts, rate = sorted(part["flows"]), study.rate_of(study.fair)

    def of(law: str, fair: Fair, rate: str) -> dict[int, list[FirstPassage]]:
        return {flows: study.times("6", law, fair, flows=flows, rate=rate) for flows in counts}

    vcp, evcp = (of(law, study.fair, rate) for law in LAWS)
    means = {flows: together(found).value for flows, found in evcp.items()}
    longest, shortest = (choose(counts, key=means.__getitem__) for choose in (max, min))
    tests = {f"EVCP is not faster at N = {n}": less(evcp[n], vcp[n]) for n in counts}
    tests |= {
        f"VCP's time does not grow from N = {many} to {few}": less(vcp[many], vcp[few])
        for few, many in pairwise(counts)
    }
    tests[
        f"EVCP's time varies {means[longest] / means[shortest]:.1f}-fold. Both converge in epochs, "
        "and an epoch of N flows is an N-th of one flow's cycle"
    ] = less(evcp[longest], times(2, evcp[shortest]))
    words = []
    for fair in study.measures:
        at = study.rate_of(fair)
        rows = [(n, *(of(law, fair, at)[n] for law in reversed(LAWS))) for n in counts]
        said_of = (f"N = {n}: EVCP {said(own)}, VCP {said(other)}" for n, own, other in rows)
        words.append(f"{at}, {fair.name}: {'; '.join(said_of)}")
    return comparison(
        decided(
            "E3",
            "Fig. 6",
            "EVCP converges sooner than VCP for every N from 2 to 10; VCP's time grows as N falls, "
            "EVCP's varies little",
            ". ".join(words),
            tests,
        ),
        [*vcp.values(), *evcp.values()],
    )


def e4(study: Study) -> Finding:
    """EVCP converges sooner at every bandwidth.

    Where Figure 6 has the rate, its runs with two flows are the same as those of Figure 7, and
    more.
    """
    part = study.settings["newcomer"]
    figure = {(part.get("tenth") or part)["rate"]: "6"}

    def of(rate: str, fair: Fair) -> list[list[FirstPassage]]:
        at = figure.get(rate, "7")
        return [study.times(at, law, fair, flows=2, rate=rate) for law in LAWS]

    found = {rate: of(rate, study.fair) for rate in part["rates"]}
    words = []
    for fair in study.measures:
        rows = [(rate, *of(rate, fair)) for rate in part["rates"]]
        said_of = (f"{rate}: EVCP {said(evcp)}, VCP {said(vcp)}" for rate, vcp, evcp in rows)
        words.append(f"{fair.name}: {'; '.join(said_of)}")
    return comparison(
        decided(
            "E4",
            "Fig. 7",
            "two flows, 100 Mbit/s to 1 Gbit/s: EVCP converges sooner at every bandwidth",
            ". ".join(words),
            {
                f"EVCP is not faster at {rate}": less(evcp, vcp)
                for rate, (vcp, evcp) in found.items()
            },
        ),
        [one for both in found.values() for one in both],
    )


def e5(study: Study) -> Finding:
    """Flows of unequal RTTs, one after another: each converges sooner, and two meet in time."""
    part = study.settings["staircase"]
    rates, each_s = part["rates"], part["each_s"]
    words, tests, found = sooner(study, "8", rates)
    rate = rates[-1]
    met = [newcomers(run, each_s)[0] for run in study.runs("8", "evcp", rate=rate)]
    tests[f"at {rate} flow 2 has not converged when flow 3 comes"] = agreed(
        not time.censored for time in met
    )
    return comparison(
        decided(
            "E5",
            "Fig. 8",
            f"{' and '.join(rates)}, RTTs of 40 to 80 ms, one more flow each {each_s} s: EVCP has "
            f"shorter convergence time; at {rate} two EVCP flows meet before the third starts",
            words,
            tests,
        ),
        found,
    )


def e6(study: Study) -> Finding:
    """The same at 250 Mbit/s with background traffic."""
    rate = study.settings["staircase"]["beside_background"]
    words, tests, found = sooner(study, "9", [rate])
    says = f"{rate}, five flows with background: EVCP improves their convergence onto fairness"
    return comparison(decided("E6", "Fig. 9", says, words, tests), found)


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
    """EVCP keeps VCP's use of the link, its fairness, short queue and rare loss.

    No numbers are given. Taken as, since the last flow's start, on average over the runs of each
    point of Figures 6 and 7 where both laws are watched for as long: at most 2 % of the link less
    used than by VCP, a queue of at most 5 % of a BDP, and at most one packet in 10,000 dropped;
    and in the last quarter of that time a Jain index at most 0.02 below VCP's.
    """
    part = study.settings["newcomer"]
    tenth = (part.get("tenth") or part)["rate"]
    at = [("6", flows, tenth) for flows in part["flows"]]
    at += [("7", 2, rate) for rate in part["rates"] if rate != tenth]
    points = {
        f"N = {flows}, {rate}": [
            [health(run) for run in study.runs(figure, law, flows=flows, rate=rate)] for law in LAWS
        ]
        for figure, flows, rate in at
    }
    seen = {law: [interval_of(found[i]) for found in points.values()] for i, law in enumerate(LAWS)}
    less_used = {
        where: interval(vcp.used - evcp.used for vcp, evcp in zip(*found, strict=True))
        for where, found in points.items()
    }
    less_fair = {
        where: interval(vcp.jain - evcp.jain for vcp, evcp in zip(*found, strict=True))
        for where, found in points.items()
    }
    words = "; ".join(
        f"{law.upper()} uses {min(point.used.mean for point in found):.1%} to "
        f"{max(point.used.mean for point in found):.1%} of the link, waits for up to "
        f"{max(point.wait.mean for point in found):.2%} of an RTT, drops up to "
        f"{max(point.dropped.mean for point in found):.1g}, ends with a Jain index of at least "
        f"{min(point.jain.mean for point in found):.3f}"
        for law, found in reversed(seen.items())
    )
    effect = "; ".join(f"{where} {with_interval(of, 100)} %" for where, of in less_used.items())
    return decided(
        "E8",
        "text",
        "EVCP keeps VCP's high utilization, reasonable fairness, low persistent queue, negligible "
        "loss",
        f"{words}; EVCP uses less of the link than VCP by {effect}",
        {
            "EVCP leaves more of the link unused: a penalty takes the load below 80 %": every(
                below(of, 0.02) for of in less_used.values()
            ),
            "EVCP is less fair at the end": every(below(of, 0.02) for of in less_fair.values()),
            "the queue stands": every(below(point.wait, 0.05) for point in seen["evcp"]),
            "packets are dropped": every(below(point.dropped, 1e-4) for point in seen["evcp"]),
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
    factors = {}
    for rate in rates:
        packets = gbps(rate) * 1e9 * rtt_s / (8 * 1500) / 2
        per_s = 1.0 / rtt_s / (packets * math.log(packets))
        factors[rate] = times(per_s, study.times("7", "vcp", rate=rate))
    return comparison(
        decided(
            "E10",
            "Analysis",
            "VCP takes O(P log dP) round trips to converge onto fairness",
            f"round trips over P ln P ({study.fair.name}): "
            + ", ".join(f"{rate} {plain(of)}" for rate, of in factors.items()),
            {
                f"it grows faster from {low} to {high}": less(
                    factors[high], times(1.25, factors[low])
                )
                for low, high in pairwise(rates)
            },
        ),
        factors.values(),
    )


def e11(study: Study) -> Finding:
    """VCP converges significantly slower than XCP: in at least twice the time at each rate."""
    rates = study.settings["newcomer"]["rates"]
    found = {rate: [study.times("7", law, rate=rate) for law in ("xcp", "vcp")] for rate in rates}
    return comparison(
        decided(
            "E11",
            "Overview of VCP",
            "VCP converges significantly slower onto a fair share than XCP",
            "; ".join(
                f"{rate}: XCP {said(xcp)}, VCP {said(vcp)}" for rate, (xcp, vcp) in found.items()
            ),
            {
                f"at {rate} it does not take twice as long": less(times(2, xcp), vcp)
                for rate, (xcp, vcp) in found.items()
            },
        ),
        [of for both in found.values() for of in both],
    )


CLAIMS = (e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11)
VARIED = (e1, e2, e3, e4, e8, e10)
DRAWN = (e1, e2, e3, e4, e5, e6, e7, e8, e10, e11)


def comparison(finding: Finding, found: Iterable[Sequence[FirstPassage]]) -> Finding:
    """The finding; what is open because flows did not converge in time cannot be tested.

    A time beyond the end of a run decides a test only by how long the run is at least: a test is
    open (:func:`less`, :func:`shorter`) where a longer time could change it.
    """
    if finding.verdict == "undecided" and any(time.censored for of in found for time in of):
        cause = "flows did not converge before the end of their runs"
        return replace(finding, verdict="cannot be tested", cause=cause)
    return finding


def sooner(
    study: Study, figure: str, rates: Sequence[str]
) -> tuple[str, dict[str, Known], list[Sequence[FirstPassage]]]:
    """Each newcomer's convergence time and Jain's index, in words; where EVCP is sooner; times.

    The index is a mean from the second flow's start on.
    """
    part = study.settings["staircase"]
    start_s, end_s = part["each_s"], (len(part["rtts"]) + 1) * part["each_s"]
    words = []
    tests: dict[str, Known] = {}
    found: list[Sequence[FirstPassage]] = []
    for rate in rates:
        runs = {law: study.runs(figure, law, rate=rate) for law in LAWS}
        vcp, evcp = (
            list(zip(*(newcomers(run, start_s) for run in of), strict=True)) for of in runs.values()
        )
        index = [interval(jain(run, start_s, end_s) for run in of) for of in runs.values()]
        each = (
            f"flow {n}: EVCP {said(own)}, VCP {said(other)}"
            for n, (own, other) in enumerate(zip(evcp, vcp, strict=True), 2)
        )
        words.append(
            f"{rate}: {'; '.join(each)}; mean Jain index EVCP {with_interval(index[1])}, VCP "
            f"{with_interval(index[0])}"
        )
        tests |= {
            f"at {rate} flow {n} of EVCP is not faster": less(own, other)
            for n, (own, other) in enumerate(zip(evcp, vcp, strict=True), 2)
        }
        found += [*vcp, *evcp]
    return ". ".join(words), tests, found


def times_table(studies: Sequence[Study]) -> Table:
    """Convergence times of both laws by each measure: what the paper says, our means and ranges."""
    rows = []
    for study in studies:
        at = dict.fromkeys((figure, n, rate) for figure, _, n, rate, _, _ in points(study.settings))
        for (figure, flows, rate), fair in product(at, study.measures):
            cells = []
            for law in reversed(LAWS):
                found = study.times(figure, law, fair, flows=flows, rate=rate)
                values = sorted(round(time.value) for time in found)
                several = f" ({values[0]} to {values[-1]})" if len(values) > 1 else ""
                cells.append(seconds(together(found)) + several)
            rows.append((f"Fig. {figure}", str(flows), rate, fair.name, "EVCP shorter", *cells))
    return Table(("figure", "N", "rate", "until", "paper", "EVCP (s)", "VCP (s)"), tuple(rows), 4)


def figures(study: Study) -> dict[str, Any]:
    """Figures 1 and 5 to 10; what is on the axes of 8 to 10 the paper's text does not say."""
    made: dict[str, Any] = {}
    for number, law in (("1", "vcp"), ("5", "evcp")):
        (run,) = study.runs("1, 5", law)
        # As long as the paper's times of bursts have room: the runs are longer.
        end_s = run.summary["flows"][1]["start_s"] + 700 * gbps(str(run.factors["rate"]))
        traces = [
            (name, t_s[t_s <= end_s], y[t_s <= end_s])
            for name, t_s, y in numbered(run, plot.cwnd_series)
        ]
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
        drawn: dict[tuple[Any, ...], Any] = {}
        of = {"rate": study.settings["newcomer"]["rate"]} if number == "6" else {}
        for law in LAWS:
            for value in dict.fromkeys(run.factors[x] for run in study.runs(number, law, **of)):
                found = study.times(number, law, **{**of, x: value})
                at = scale * gbps(str(value)) if x == "rate" else float(value)
                drawn[law, at] = interval(time.value for time in found)
        made[f"figure{number}"] = (
            shapes.lines(drawn, label, "convergence time (s)"),
            f"Figure {number}: convergence time of flow N, with background traffic, "
            f"{study.fair.name}",
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
        f"{str(law).upper()}, {1e3 * gbps(rate):g} Mbit/s": numbered(
            run, plot.goodput_series, each=2
        )
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
