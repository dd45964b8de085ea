"""CW-HSTCP: fair TCP in high-speed networks: its claims, tested.

Every claim on packets is a function of a :class:`Study`, the runs of one choice of what the paper
does not say. Intervals are 95 % over the seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab import metrics
from lfnlab.analysis.checks import above, below, every, named, within
from lfnlab.analysis.table import Table, with_interval
from lfnlab.figures import plot, shapes
from lfnlab.figures.theory import vectors
from lfnlab.papers.paper import (
    Execute,
    Reproduction,
    decided,
    judged,
    signed,
    studies,
)
from lfnlab.scenario.quantity import SECONDS, parse
from lfnlab.statistics import Interval, interval, paired
from lfnlab.theory.closed import hstcp_increase, hstcp_removed
from lfnlab.theory.fluid import Bottleneck, Course, synchronised

from .runs import (
    BLOCKS,
    FIVE_MS,
    NINE_MS,
    RIVALS,
    SCALABLE_MS,
    THREE_MS,
    Setup,
    Study,
    burst,
    cases,
    drops,
    exponents,
    hosted,
    jain_at,
    rows,
    scales,
    windows,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lfnlab.analysis.finding import Finding


TITLE = "CW-HSTCP: fair TCP in high-speed networks"
#: Table 1: w, a(w), b(w).
TABLE_1 = ((38, 1, 0.50), (118, 2, 0.44), (221, 3, 0.41), (347, 4, 0.38), (84035, 71, 0.10))
#: Table 2: shares of the five flows in percent, an interval a row.
TABLE_2 = (
    (38.98, 20.96, 18.24, 2.38, 1.06),
    (48.10, 21.35, 14.10, 1.77, 0.84),
    (52.97, 21.39, 11.56, 1.52, 0.80),
)
#: Table 3: shares of the three flows and of the background in percent, by c.
TABLE_3 = {
    5: (29.79, 16.80, 14.38, 26.96),
    10: (32.22, 26.61, 19.36, 16.35),
    20: (44.85, 24.69, 19.92, 5.55),
}


def reproduce(settings: Mapping[str, Any], execute: Execute) -> Reproduction:
    """Run the study and its variants, test the claims."""
    made = studies(settings, execute, study_of)
    study = made["chosen"]
    return judged(
        made,
        CLAIMS,
        by="what the paper does not say",
        constant=[c1(), c5(), c12()],
        figures=figures(study),
        tables={
            "Table 2: shares of five HSTCP flows, percent, paper / ours": table_2(study),
            "Table 3: the parameter c, percent, paper / ours": table_3(study),
        },
        traced=[
            study.runs(setup)[0]
            for setup in (Setup("hstcp:ns2", FIVE_MS), Setup("cw-hstcp", THREE_MS))
        ],
    )


def study_of(settings: Mapping[str, Any], execute: Execute, name: str) -> Study:
    """The runs of one choice of settings."""
    return Study(settings, execute(cases(settings), f"{TITLE}: {name}"))


def c1() -> Finding:
    """Table 1 is HSTCP's a(w) and b(w), with the p(w) that made the table of RFC 3649."""
    found = [(hstcp_increase(w, "rfc"), hstcp_removed(w)) for w, _, _ in TABLE_1]
    wrong = [
        str(w)
        for (w, a, b), (ours_a, ours_b) in zip(TABLE_1, found, strict=True)
        if round(ours_a) != a or abs(ours_b - b) > 0.005
    ]
    return decided(
        "C1",
        "Table 1",
        "a(w)/b(w) at w = 38, 118, 221, 347, 84035: 1/0.50, 2/0.44, 3/0.41, 4/0.38, 71/0.10",
        ", ".join(f"{a:.2f}/{b:.3f}" for a, b in found)
        + f"; with RFC 3649's two points joined exactly the last a is {hstcp_increase(84035):.1f}",
        {f"differs at w = {', '.join(wrong)}": not wrong},
    )


def c2(study: Study) -> Finding:
    """Five HSTCP flows: unfair by RTT, and ever more so."""
    setup = Setup("hstcp:ns2", FIVE_MS)
    by_interval = [
        study.shares(setup, start, end) for start, end in pairwise(study.settings["intervals_s"])
    ]
    means = [[float(np.mean(flow)) for flow in flows] for flows in by_interval]
    spans = [" to ".join(map(str, span)) for span in pairwise(study.settings["intervals_s"])]
    ratios = [row[0] / row[-1] for row in means]
    return decided(
        "C2",
        "Fig. 2, Table 2",
        "five HSTCP flows, 60 to 240 ms: 39, 21, 18, 2.4, 1.1 % of the link in the first interval, "
        "53, 21, 12, 1.5, 0.8 % in the last: unfairness grows; on the whole flows 1 and 2 have "
        "most of the bandwidth, and flows 4 and 5 have less and less",
        "; ".join(", ".join(f"{share:.3g}" for share in row) + " %" for row in means)
        + f"; shortest to longest {', '.join(f'{ratio:.0f}' for ratio in ratios)}",
        {
            "shares do not fall with the RTT in every interval": every(
                above(compared(flow, longer), 0.0)
                for flows in by_interval
                for flow, longer in pairwise(flows)
            ),
            "the share of the shortest RTT does not grow from interval to interval: with our path "
            "and background the shares have settled before the first": every(
                above(compared(later[0], flows[0]), 0.0) for flows, later in pairwise(by_interval)
            ),
            "the shortest RTT has less than ten times the longest's": every(
                above(exceeds(flows[0], flows[-1], 10.0), 0.0) for flows in by_interval
            ),
            **named(
                "the two flows of the shortest RTTs have no more than half of the link in the "
                "interval, in s,",
                {
                    span: above(interval(map(sum, zip(*flows[:2], strict=True))), 50.0)
                    for span, flows in zip(spans, by_interval, strict=True)
                },
            ),
            "the shares of the two longest RTTs do not fall from interval to interval": every(
                above(compared(flows[n], later[n]), 0.0)
                for flows, later in pairwise(by_interval)
                for n in (-2, -1)
            ),
        },
    )


def exceeds(one: Sequence[float], other: Sequence[float], times: float) -> Interval:
    """By how much values exceed so many times others, run by run."""
    return compared(one, [times * value for value in other])


def c3(study: Study) -> Finding:
    """Three Scalable flows: the shortest RTT has nearly all, more unfairly than under HSTCP.

    RTTs differ by another ratio there, so the exponents of the RTT are compared, as in C4.
    """
    setup = Setup("scalable", SCALABLE_MS)
    flows, own = study.shares(setup), exponents(study, setup)
    hstcp = exponents(study, Setup("hstcp:ns2", FIVE_MS))
    return decided(
        "C3",
        "text",
        "three STCP flows, 120, 160, 240 ms: 91, 2.73, 0.77 %: more severe than under HSTCP",
        ", ".join(with_interval(interval(flow)) for flow in flows)
        + " %; throughput is proportional to RTT^-E with E = "
        + f"{with_interval(interval(own))}, under HSTCP {with_interval(interval(hstcp))}",
        {
            "the shortest RTT has less than ten times the next one's share": every(
                above(exceeds(flows[0], other, 10.0), 0.0) for other in flows[1:]
            ),
            "it is no more unfair than HSTCP": above(compared(own, hstcp), 0.0),
        },
    )


def compared(one: Sequence[float], other: Sequence[float]) -> Interval:
    """The interval of differences run by run, of the seeds that both have."""
    count = min(len(one), len(other))
    return paired(one[:count], other[:count])


def c4(study: Study) -> Finding:
    """Under RED, HSTCP's RTT unfairness is not severe: milder than standard TCP's square."""
    tail, red = (
        exponents(study, Setup("hstcp:ns2", FIVE_MS, queue)) for queue in ("drop-tail", "red")
    )
    return decided(
        "C4",
        "text",
        "under RED the RTT unfairness is not severe",
        f"throughput is proportional to RTT^-E with E = {with_interval(interval(red))}, under "
        f"drop-tail {with_interval(interval(tail))}",
        {
            "under RED the exponent is not below the 2 of standard TCP": below(interval(red), 2.0),
            "under RED the exponent is not below drop-tail's": above(compared(tail, red), 0.0),
        },
    )


PAIR = Bottleneck(rate_pps=125e3, base_rtts_s=(0.2, 0.1), buffer_packets=0.0)


def courses(law: str) -> list[Course]:
    """Two flows of 200 and 100 ms that lose together, from both sides of the fair line."""
    return [synchronised((law, law), PAIR, start, 60) for start in ((12e3, 3e3), (3e3, 9e3))]


def c5() -> Finding:
    """Fig. 3: standard TCP converges to w1/w2 = RTT2/RTT1, HSTCP diverges from it on both sides."""
    fair = 0.5
    ratios = {
        law: [
            tuple(float(w[0] / w[1]) for w in (course.windows[0], course.epochs[-1].before))
            for course in courses(law)
        ]
        for law in ("reno", "hstcp")
    }
    converges = all(abs(end / fair - 1.0) < 0.05 for _, end in ratios["reno"])
    diverges = all(end > start > fair or end < start < fair for start, end in ratios["hstcp"])
    return decided(
        "C5",
        "Fig. 3",
        "synchronised loss, RTT1 = 2 RTT2: w1/w2 of standard TCP converges to RTT2/RTT1, that of "
        "HSTCP diverges from it: the larger window grows ever larger",
        "w1/w2 at the start and after 60 losses: "
        + "; ".join(
            f"{law} {' and '.join(f'{start:.3g} to {end:.3g}' for start, end in found)}"
            for law, found in ratios.items()
        ),
        {
            "standard TCP does not converge": converges,
            "HSTCP, started with the larger window at the longer RTT, does not diverge from the "
            "fair line but crosses it: then the flow with the shorter RTT has the larger "
            "window": diverges,
        },
    )


def c6(study: Study) -> Finding:
    """Three CW-HSTCP flows have the same window: each within 10 % of the mean of the three."""
    setup = Setup("cw-hstcp", THREE_MS)
    runs = np.array([windows(run, 3) for run in study.runs(setup)])
    parts = runs / runs.mean(axis=1, keepdims=True)
    means = [interval(column) for column in parts.T]
    rival = np.array([windows(run, 3) for run in study.runs(Setup("hstcp:ns2", THREE_MS))])
    of_rival = (rival / rival.mean(axis=1, keepdims=True)).mean(axis=0)
    return decided(
        "C6",
        "Fig. 6",
        "three CW-HSTCP flows, 80, 140, 200 ms, c = 10: the same window for all",
        "of their mean: "
        + ", ".join(with_interval(part) for part in means)
        + "; HSTCP "
        + ", ".join(f"{part:.2f}" for part in of_rival),
        {
            "a flow's window is more than 10 % from their mean. A guess: windows are equal only if "
            "losses are synchronised; at equal loss rates they are proportional to RTT^0.83. The "
            "paper's own Table 3 gives windows of 0.76, 1.10, 1.14": every(
                within(part, 0.9, 1.1) for part in means
            )
        },
    )


#: C7: so much more is fairer. Of the paper's own Table 3 the index falls by 0.06 and 0.08.
MATTERS = 0.05


def c7(study: Study) -> Finding:
    """Effect of c: the flows' total grows with it, the background's falls, 10 is the fairest.

    Indices that differ by little are not told apart by any number of runs. So c = 10 is the fairest
    only if its index is higher by ``MATTERS``. A loss is a packet that the bottleneck drops.
    """
    by_c = rows(study)
    five, ten, twenty = by_c.values()
    better = {c: compared(ten.jain, row.jain) for c, row in by_c.items() if c != 10}
    return decided(
        "C7",
        "Table 3",
        "with c = 5, 10, 20 the three flows have 61, 78, 89 % and the background 27, 16, 5.6 %; "
        "Jain's index of their shares 0.900, 0.961, 0.884; with c = 5 each flow has less than with "
        "10, with c = 20 the shortest RTT has more; background loses less than 1e-3",
        f"{', '.join(f'{interval(row.totals).mean:.1f}' for row in by_c.values())} % and "
        f"{', '.join(f'{interval(row.background).mean:.1f}' for row in by_c.values())} %; Jain "
        f"{', '.join(with_interval(interval(row.jain)) for row in by_c.values())}, with c = 10 "
        f"{' and '.join(f'{signed(more, 1.0, 3)} beside {c}' for c, more in better.items())}; "
        f"packets dropped from {study.settings['warmup']} on "
        f"{', '.join(f'{interval(row.dropped).mean:.1e}' for row in by_c.values())}, segments of "
        "standard TCP sent again "
        f"{', '.join(f'{interval(row.again).mean:.1e}' for row in by_c.values())}",
        {
            "the total does not grow with c": every(
                above(compared(more.totals, less.totals), 0.0)
                for less, more in pairwise(by_c.values())
            ),
            "the background does not fall with c": every(
                above(compared(less.background, more.background), 0.0)
                for less, more in pairwise(by_c.values())
            ),
            **named(
                "with c = 5 a flow has no less than with 10, that of",
                {
                    f"{rtt} ms": above(compared(more, less), 0.0)
                    for rtt, less, more in zip(THREE_MS, five.flows, ten.flows, strict=True)
                },
            ),
            "with c = 20 the shortest RTT has no more than with 10": above(
                compared(twenty.flows[0], ten.flows[0]), 0.0
            ),
            **named(
                f"c = 10 is not fairer by {MATTERS} than",
                {f"c = {c}": above(more, MATTERS) for c, more in better.items()},
            ),
            "more than 1e-3 of the packets is dropped": every(
                below(interval(row.dropped), 1e-3) for row in by_c.values()
            ),
            "standard TCP sends more than 1e-3 again": every(
                below(interval(row.again), 1e-3) for row in by_c.values()
            ),
        },
    )


def c8(study: Study) -> Finding:
    """CW-HSTCP is the fairest of the four at every time scale."""
    indices = {
        law: {scale: jain_at(study, law, scale) for scale in scales(study)}
        for law in ("cw-hstcp", *RIVALS)
    }
    own = indices["cw-hstcp"]
    ends = scales(study)[0], scales(study)[-1]
    return decided(
        "C8",
        "Fig. 7",
        "Jain's index at every time scale: CW-HSTCP is fairer than HSTCP, STCP and standard TCP",
        f"at {ends[0]} and {ends[1]} s: "
        + "; ".join(
            f"{law} {' and '.join(with_interval(interval(of[scale])) for scale in ends)}"
            for law, of in indices.items()
        )
        + "; more than "
        + ", ".join(
            f"{rival} {signed(compared(own[ends[1]], indices[rival][ends[1]]), 1.0, 2)}"
            for rival in RIVALS
        )
        + f" at {ends[1]} s",
        {
            f"{rival} is as fair at some scale": every(
                above(compared(own[scale], indices[rival][scale]), 0.0) for scale in scales(study)
            )
            for rival in RIVALS
        },
    )


def c9(study: Study) -> Finding:
    """Five CW-HSTCP flows have a Jain index of 0.95: within 0.05 of it, or above."""
    jain = interval(study.jain(Setup("cw-hstcp", NINE_MS)))
    queue_ms = 1e3 * parse(study.settings["delay"], SECONDS)
    empty, full = (metrics.jain([1 / (rtt + wait) for rtt in NINE_MS]) for wait in (0, queue_ms))
    return decided(
        "C9",
        "text",
        "five CW-HSTCP flows, 60, 80, 140, 160, 200 ms: fairness index 0.95",
        with_interval(jain),
        {
            f"it is lower: equal windows, throughputs as 1/RTT, have {empty:.2f} with an empty "
            f"queue, {full:.2f} with a full one": above(jain, 0.90)
        },
    )


#: C10: a burst is what comes in so long. In a millisecond a host sends no more than its link takes.
BURST_MS = 10


def c10(study: Study) -> Finding:
    """Block pacing removes bursts and the losses that they cause, run by run.

    Hosts have links as fast as the bottleneck: without them all segments of a block arrive at once.
    """
    hosts = [study.runs(hosted(study.settings, law)) for law in BLOCKS]
    bursts = [[burst(run, 3, BURST_MS) for run in runs] for runs in hosts]
    losses = [[drops(run) for run in runs] for runs in hosts]
    at_once = [[burst(run, 3, 1) for run in study.runs(Setup(law, THREE_MS))] for law in BLOCKS]
    fewer, saved = (compared(without, blocks) for blocks, without in (bursts, losses))
    jain = [interval(study.jain(Setup(law, THREE_MS))) for law in BLOCKS]

    def both(values: Sequence[Sequence[float]]) -> str:
        blocks, without = (with_interval(interval(of)) for of in values)
        return f"{blocks}, without blocks {without}"

    return decided(
        "C10",
        "text",
        "block pacing removes the bursts that the fair factor causes, and the losses that they may "
        "cause",
        f"hosts with links of {study.settings['rate']}: most segments of a flow in {BURST_MS} ms "
        f"{both(bursts)} ({signed(fewer, 1.0, 1)}); packets dropped from "
        f"{study.settings['warmup']} on {both(losses)} ({signed(saved, 1.0, 1)}). Hosts whose "
        f"links have no rate: most segments in a millisecond {both(at_once)}; Jain's index "
        f"{with_interval(jain[0])}, without blocks {with_interval(jain[1])}",
        {
            "bursts are no smaller with blocks. A guess: the bottleneck spaces the ACKs, so flows "
            "without blocks have almost none, and a block that waited is sent at once": above(
                fewer, 0.0
            ),
            "no fewer packets are dropped with blocks": above(saved, 0.0),
        },
    )


def c11(study: Study) -> Finding:
    """The headline: throughputs are no more unequal than the inverse ratio of the RTTs."""
    ratios = {
        setup.rtts_ms: [
            short / long
            for flows in [study.shares(setup)]
            for short, long in zip(flows[0], flows[-1], strict=True)
        ]
        for setup in (Setup("cw-hstcp", rtts) for rtts in (THREE_MS, NINE_MS, FIVE_MS))
    }
    return decided(
        "C11",
        "Algorithm",
        "CW-HSTCP keeps the RTT unfairness inversely proportional to the RTT ratio: at most that",
        "; ".join(
            f"{rtts[0]} and {rtts[-1]} ms: {with_interval(interval(of))} for {rtts[-1] / rtts[0]:g}"
            for rtts, of in ratios.items()
        ),
        {
            f"it is more from {rtts[0]} to {rtts[-1]} ms": below(interval(of), rtts[-1] / rtts[0])
            for rtts, of in ratios.items()
        },
    )


def c12() -> Finding:
    """The introduction's arithmetic: one segment a round trip, 1500 bytes, 100 ms, 10 Gbit/s.

    The paper has 83,333 round trips, which are from one segment on, and about 1.5 hours. The hours
    may be those round trips, or from half the window to the window, or from one loss to the next,
    as claim J7 of JGN II has them: a mean window of 1.2/p^0.5.
    """
    window = 10e9 * 0.1 / (8 * 1500)
    apart = (window / 1.2) ** 2
    hours = {
        f"{window:.0f} RTTs from one segment on": window * 0.1 / 3600,
        f"{window / 2:.0f} from half the window, with an ACK a segment": window / 2 * 0.1 / 3600,
        "from one loss to the next": apart * 8 * 1500 / 10e9 / 3600,
    }
    return decided(
        "C12",
        "Introduction",
        "standard TCP needs over 83333 RTTs for 10 Gbit/s, about 1.5 h at 100 ms, and at most one "
        "loss in 5e9 packets",
        "; ".join(f"{reading}: {taken:.1f} h" for reading, taken in hours.items())
        + f"; one loss in {apart:.1e} packets",
        {
            "the RTTs are others": round(window) == 83333,
            "no reading gives 1.5 h: the paper's round trips of 100 ms do not, and from one loss "
            "to the next it is 7 % more": any(abs(taken - 1.5) < 0.05 for taken in hours.values()),
            "the loss rate is another": abs(apart / 5e9 - 1.0) < 0.05,
        },
    )


CLAIMS = (c2, c3, c4, c6, c7, c8, c9, c10, c11)
VARIED = CLAIMS


def percents(theirs: Sequence[float], ours: Sequence[Interval]) -> list[str]:
    """Cells "paper / ours" of percentages."""
    return [f"{a:.2f} / {with_interval(b)}" for a, b in zip(theirs, ours, strict=True)]


def table_2(study: Study) -> Table:
    """Table 2 beside ours."""
    setup = Setup("hstcp:ns2", FIVE_MS)
    ours = [
        (f"{start} to {end} s", [interval(flow) for flow in study.shares(setup, start, end)])
        for start, end in pairwise(study.settings["intervals_s"])
    ]
    return Table(
        ("interval", *(f"{rtt} ms" for rtt in FIVE_MS)),
        tuple(
            (name, *percents(theirs, means))
            for theirs, (name, means) in zip(TABLE_2, ours, strict=True)
        ),
        1,
    )


def table_3(study: Study) -> Table:
    """Table 3 beside ours; the fairness index is recomputed from the paper's shares."""
    return Table(
        (
            "c",
            *(f"{rtt} ms" for rtt in THREE_MS),
            "background",
            "Jain's index",
            "dropped",
            "standard TCP sends again",
        ),
        tuple(
            (
                str(c),
                *percents(TABLE_3[c], [interval(of) for of in (*row.flows, row.background)]),
                f"{metrics.jain(TABLE_3[c][:3]):.3f} / {with_interval(interval(row.jain))}",
                *(f"{min(of):.0e} to {max(of):.0e}" for of in (row.dropped, row.again)),
            )
            for c, row in rows(study).items()
        ),
        1,
    )


def figures(study: Study) -> dict[str, Any]:
    """Figures 2, 3, 6 and 7 of the paper, on its axes."""
    return {
        "figure2": (
            window_traces(study, Setup("hstcp:ns2", FIVE_MS)),
            "Figure 2: windows of five HSTCP flows under drop-tail",
        ),
        "figure3": (
            vectors({law: courses(law) for law in ("reno", "hstcp")}, PAIR, "window"),
            "Figure 3: two flows that lose together, RTTs 200 and 100 ms",
        ),
        "figure6": (
            window_traces(study, Setup("cw-hstcp", THREE_MS)),
            "Figure 6: windows of three CW-HSTCP flows",
        ),
        "figure7": (
            shapes.lines(
                {
                    (law, scale): interval(jain_at(study, law, scale))
                    for law in ("cw-hstcp", *RIVALS)
                    for scale in scales(study)
                },
                "time scale (s)",
                "fairness index",
                ylim=(0.3, 1.0),
                bounds=(0.0, 1.0),
            ),
            "Figure 7: fairness index over time scales, flows of 80, 140 and 200 ms",
        ),
    }


def window_traces(study: Study, setup: Setup) -> Figure:
    """Windows of the flows under test over time, first seed."""
    flows = study.runs(setup)[0].table("flows").partition_by("flow", as_dict=True)
    traces = [
        (f"{rtt_ms} ms", flows[number,]["t_s"].to_numpy(), flows[number,]["cwnd_seg"].to_numpy())
        for number, rtt_ms in enumerate(setup.rtts_ms)
    ]
    return plot.courses({"": traces}, "congestion window (segments)")
