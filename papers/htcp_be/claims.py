"""HTCP with bandwidth estimation (HTCP-BE) for e-VLBI data transport: its claims, tested.

Every claim is a function of a :class:`Study` (the runs of one choice of what the paper does not
say) that returns a ``Finding``. Intervals are 95 % over blocks of three runs; two laws are compared
block by block, because they meet the same background traffic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lfnlab.analysis.checks import Check, Known, above, below, named, negated, within
from lfnlab.analysis.finding import Finding
from lfnlab.analysis.table import with_interval
from lfnlab.figures import shapes
from lfnlab.papers.paper import (
    Execute,
    Reproduction,
    decided,
    judged,
    signed,
    studies,
    tried,
)
from lfnlab.scenario.quantity import BITS_PER_S, parse
from lfnlab.statistics import Interval, interval, paired

from .runs import (
    CONVERGING,
    PARALLEL,
    Study,
    cases,
    fairness,
    growth_per_s,
    kept_fraction,
    of_first,
    response_cases,
    set_window,
    settled,
    total_bps,
)

if TYPE_CHECKING:
    from lfnlab.metrics import FirstPassage
    from lfnlab.results.cases import Group
    from lfnlab.results.runs import Results

TITLE = "HTCP with bandwidth estimation for e-VLBI"
HIGH_LEVELS = (2, 3)
# The paper's own claim is the law under test.
OURS = "htcp-be"


def reproduce(settings: Mapping[str, Any], execute: Execute) -> Reproduction:
    """Run the study, its variants and the response functions, test the claims."""
    response = execute(response_cases(settings["response"]), "HTCP-BE: response functions")
    made = studies(settings, execute, study_of)
    study = made["chosen"]
    return judged(
        made,
        CLAIMS,
        by="what the paper does not say",
        constant=[h7(response)],
        causes=tried(settings, execute, study_of, CLAIMS),
        figures=figures(study),
        tables={},
        traced=[
            run
            for run in study.having(part="one flow", level=HIGH_LEVELS[0], rtt=settings["rtts"][-1])
            if run.seed == 1
        ],
    )


def study_of(settings: Mapping[str, Any], execute: Execute, name: str) -> Study:
    """The runs of one choice of settings."""
    return Study(settings, execute(cases(settings), f"{TITLE}: {name}"))


def h1(study: Study) -> Finding:
    """Mean throughput of every protocol falls as the level rises."""
    falls = {
        (law, low, high): paired(
            study.values(law, low, "goodput_bps"), study.values(law, high, "goodput_bps")
        )
        for law in study.laws
        for low, high in pairwise(study.levels)
    }
    known = {step: above(fall, 0.0) for step, fall in falls.items()}
    (law, low, high), least = min(falls.items(), key=lambda item: item[1].mean)
    return decided(
        "H1",
        "Fig. 1",
        "mean throughput of every protocol falls as the level rises",
        f"falls at {sum(one.so is True for one in known.values())} of {len(falls)} steps; least "
        f"{law} {low}→{high}, {mbps(least)} Mbit/s",
        named("no fall", {f"{law} {low}→{high}": so for (law, low, high), so in known.items()}),
    )


def rivals(study: Study) -> list[str]:
    """The other protocols."""
    return [law for law in study.laws if law != OURS]


def h2(study: Study) -> Finding:
    """HTCP-BE is highest at levels 2 and 3, and loses least from the level before each.

    The paper's words are "reduces least within higher regimes". The verdict is on the other seven;
    the difference to H-TCP is told beside it.
    """
    said = []
    tests: dict[str, Known] = {}
    for level in HIGH_LEVELS:
        values = {law: study.values(law, level, "goodput_bps") for law in study.laws}
        falls = {
            law: [
                a - b
                for a, b in zip(
                    study.values(law, level - 1, "goodput_bps"), values[law], strict=True
                )
            ]
            for law in study.laws
        }
        tests |= named(
            f"at level {level} as high",
            {law: above(paired(values[OURS], values[law]), 0.0) for law in rivals(study)},
        )
        tests |= named(
            f"from level {level - 1} to {level} lose no more",
            {law: below(paired(falls[OURS], falls[law]), 0.0) for law in rivals(study)},
        )
        rival = max(rivals(study), key=lambda law: interval(values[law]).mean)
        said.append(
            f"level {level}: {with_interval(interval(values[OURS]), 1e-6)} Mbit/s, "
            f"{place(values, highest=True)} of {len(values)}, "
            f"{mbps(paired(values[OURS], values[rival]))} to {rival}, "
            f"{mbps(paired(values[OURS], values['htcp']))} to htcp; from level {level - 1} a fall "
            f"of {interval(falls[OURS]).mean / 1e6:.0f} Mbit/s, {place(falls)} smallest"
        )
    return decided(
        "H2",
        "Fig. 1",
        "HTCP-BE loses least within the higher levels, and is the highest of the eight there",
        "; ".join(said),
        tests,
    )


def h3(study: Study) -> Finding:
    """STCP is the one protocol that is not stable.

    "Not stable" is given no number; taken as a CoV above twice the median of the eight, at every
    level with traffic, and as true of no other protocol.
    """
    said = []
    tests: dict[str, Known] = {}
    for level in (level for level in study.levels if level > 0):
        covs = {law: study.values(law, level, "cov") for law in study.laws}
        medians = [sorted(block)[len(block) // 2] for block in zip(*covs.values(), strict=True)]
        unstable = {
            law: above(paired(of, [2 * median for median in medians]), 0.0)
            for law, of in covs.items()
        }
        tests[f"at level {level} STCP is stable"] = unstable.pop("scalable")
        tests |= named(
            f"at level {level} no stability", {law: negated(so) for law, so in unstable.items()}
        )
        most = max(covs, key=lambda law: interval(covs[law]).mean)
        said.append(
            f"level {level}: STCP {with_interval(interval(covs['scalable']))}, largest {most} "
            f"{with_interval(interval(covs[most]))}, median {interval(medians).mean:.2f}"
        )
    return decided(
        "H3",
        "Fig. 2",
        "STCP is the one protocol whose coefficient of variation shows no stability",
        "; ".join(said),
        tests,
    )


def h4(study: Study) -> Finding:
    """HTCP-BE has the lowest CoV at levels 2 and 3."""
    said = []
    tests: dict[str, Known] = {}
    for level in HIGH_LEVELS:
        covs = {law: study.values(law, level, "cov") for law in study.laws}
        tests |= named(
            f"at level {level} as low",
            {law: below(paired(covs[OURS], covs[law]), 0.0) for law in rivals(study)},
        )
        rival = min(rivals(study), key=lambda law: interval(covs[law]).mean)
        said.append(
            f"level {level}: {with_interval(interval(covs[OURS]))}, {place(covs)} of {len(covs)}, "
            f"{signed(paired(covs[OURS], covs[rival]), 1.0, 3)} to {rival}"
        )
    return decided(
        "H4",
        "Fig. 2",
        "at levels 2 and 3 HTCP-BE has the lowest coefficient of variation",
        "; ".join(said),
        tests,
    )


def h5(study: Study) -> Finding:
    """At a loss Westwood+ sets its window to a value 17 % above H-TCP's.

    Means of ssthresh over the fast retransmits after the warm-up, run by run. The paper's number
    has two digits and no interval; within five points of it counts as the same. The part of its
    window that each keeps is told, not tested: windows before a loss differ.
    """
    where, says = "2.2.4", "at a loss, Westwood+ sets its window on average 17 % higher than H-TCP"
    ratios = study.ratios(set_window, "westwood", "htcp")
    if not ratios:
        return Finding("H5", where, says, "no losses", "cannot be tested")
    higher, kept = (
        interval(100.0 * (ratio - 1.0) for ratio in of)
        for of in (ratios, study.ratios(kept_fraction, "westwood", "htcp"))
    )
    parts = ", ".join(
        f"{name} keeps {interval(study.by_block(kept_fraction, part='one flow', law=law)).mean:.3f}"
        for law, name in (("westwood", "Westwood+"), ("htcp", "H-TCP"))
    )
    return decided(
        "H5",
        where,
        says,
        f"its window is {signed(higher, 1.0, 1)} %, the part that it keeps of its own window "
        f"{signed(kept, 1.0, 1)} %; {parts}",
        {
            "the number is another one. It follows the windows before a loss, and so the growth of "
            "each and the buffer": within(higher, 12.0, 22.0)
        },
    )


def h6(study: Study) -> Finding:
    """H-TCP's window grows much faster than Westwood+'s.

    Segments gained per second between one fast retransmit and the next. "Much faster" is taken as
    at least twice as fast.
    """
    where, says = "2.2.4", "H-TCP's increase makes the window grow much faster than Westwood+'s"
    ratios = study.ratios(growth_per_s, "htcp", "westwood")
    if not ratios:
        return Finding("H6", where, says, "fewer than two losses in a run", "cannot be tested")
    ratio = interval(ratios)
    return decided(
        "H6",
        where,
        says,
        f"{with_interval(ratio)} times as fast",
        {
            "H-TCP is faster only from 1 s after a loss on: before that its increase is Reno's "
            "times 2(1 - beta)": above(ratio, 2.0)
        },
    )


def h7(results: Results) -> Finding:
    """The response functions, as windows measured under random loss.

    Each is held against the mean window of a flow whose packets are lost independently. Bernoulli
    loss gives AIMD 1.31/p^0.5 where evenly spaced loss gives 1.22/p^0.5 (Ott, Kemperman, Mathis
    1996), so a constant within 15 % of the paper's counts as the same.
    """
    functions = {
        "reno": (1.2, 0.5),
        "hstcp": (0.12, 0.835),
        "scalable": (0.038, 1.0),
    }
    said, tests = [], {}
    for law, (constant, exponent) in functions.items():
        measured = interval(
            run.summary["flows"][0]["mean_cwnd_segments"] * float(run.factors["loss"]) ** exponent
            for run in results.runs
            if run.factors["law"] == law
        )
        said.append(f"{law} {with_interval(measured)}/p^{exponent:g}")
        tests[f"{law} has another constant"] = within(measured, 0.85 * constant, 1.15 * constant)
    return decided(
        "H7",
        "eqs. 3, 4, 6",
        "mean windows of 1.2/p^0.5 (TCP), 0.12/p^0.835 (HSTCP), 0.038/p (STCP)",
        "; ".join(said),
        tests,
        "0.038/p is RFC 3649's linear variant of HSTCP (section 8), not Kelly's Scalable TCP: "
        "+0.01 per ACK and -1/8 per loss give 0.075/p",
    )


def h8(study: Study) -> Finding:
    """Flows of a short RTT: HTCP-BE has more than H-TCP, and is no less steady, at each level."""
    rtt = study.settings["rtts"][0]
    said = []
    tests: dict[str, Known] = {}
    for level in (level for level in study.levels if level > 0):
        goodputs, covs = (
            [
                [of_first(run, metric) for run in study.having(**alone, law=law)]
                for law in (OURS, "htcp")
            ]
            for alone in [{"part": "one flow", "level": level, "rtt": rtt}]
            for metric in ("goodput_bps", "cov")
        )
        more = paired(goodputs[0], goodputs[1])
        tests[f"at level {level} it has no more"] = above(more, 0.0)
        tests[f"at level {level} it is less steady"] = below(
            paired(covs[0], [1.1 * cov for cov in covs[1]]), 0.0
        )
        said.append(
            f"level {level}: {mbps(more)} Mbit/s, CoV {interval(covs[0]).mean:.3f} and "
            f"{interval(covs[1]).mean:.3f}"
        )
    return decided(
        "H8",
        "2.2.4",
        "HTCP-BE solves H-TCP's weakness with flows of a short RTT",
        f"at {rtt}, HTCP-BE to H-TCP: " + "; ".join(said),
        tests,
    )


def h9(study: Study) -> Finding:
    """Parallel flows: HTCP-BE's have more together than H-TCP's, and share as evenly."""
    part = study.settings["parallel"]
    totals, indices = (
        [study.by_block(of, part="parallel", law=law) for law in reversed(PARALLEL)]
        for of in (total_bps, fairness)
    )
    more = paired(totals[0], totals[1])
    return decided(
        "H9",
        "2.2.4",
        "HTCP-BE solves H-TCP's weakness with parallel flows",
        f"{part['flows']} flows, level {part['level']}: HTCP-BE's have {mbps(more)} Mbit/s to "
        f"H-TCP's {interval(totals[1]).mean / 1e6:.0f}; Jain's index "
        + " and ".join(with_interval(interval(of)) for of in indices),
        {
            "HTCP-BE's have no more": above(more, 0.0),
            "HTCP-BE's share less evenly": above(paired(indices[0], indices[1]), -0.02),
        },
    )


def h10(study: Study) -> Finding:
    """Higher link utilization than Westwood+'s and H-TCP's, at each level."""
    said = []
    tests: dict[str, Known] = {}
    for level in study.levels:
        values = {
            law: study.values(law, level, "utilization") for law in (OURS, "htcp", "westwood")
        }
        for rival in ("htcp", "westwood"):
            more = paired(values[OURS], values[rival])
            tests[f"at level {level} {rival}'s is as high"] = above(more, 0.0)
        said.append(
            f"level {level}: "
            + ", ".join(with_interval(interval(of), 100) for of in values.values())
            + " %"
        )
    return decided(
        "H10",
        "2.2.4",
        "HTCP-BE uses more of the link than is possible with Westwood+ or H-TCP",
        "HTCP-BE, H-TCP, Westwood+: " + "; ".join(said),
        tests,
    )


def h11(study: Study) -> Finding:
    """HSTCP takes longer to converge than standard TCP, STCP longer than HSTCP.

    A second flow comes after a while; its time to converge ends with the first five seconds in
    which it has 90 % of the flows' mean. The paper names no run: a claim is on most of them.
    """
    part = study.settings["newcomer"]
    times = {law: list(map(settled, study.having(part="newcomer", law=law))) for law in CONVERGING}
    return decided(
        "H11",
        "2.1.2, 2.1.3",
        "HSTCP takes longer to converge than standard TCP, and STCP longer than HSTCP",
        f"a flow that comes after {part['after_s']} s has its share after "
        + ", ".join(f"{law} {told(of)}" for law, of in times.items()),
        {
            f"a newcomer of {slower} takes no longer than one of {quicker}": sooner(
                times[quicker], times[slower]
            )
            for quicker, slower in pairwise(CONVERGING)
        },
    )


def sooner(one: Sequence[FirstPassage], other: Sequence[FirstPassage]) -> Check:
    """Whether a time is the shorter one in more than half of the runs.

    Of two that are beyond the end of the run neither is; where they could decide, it is open.
    """
    known = [
        float(a.value < b.value)
        for a, b in zip(one, other, strict=True)
        if not (a.censored and b.censored)
    ]
    unknown = len(one) - len(known)
    least, most = (above(interval([*known, *[side] * unknown]), 0.5) for side in (0.0, 1.0))
    return least if least.so is most.so else Check(None, least.seen)


def told(times: Sequence[FirstPassage]) -> str:
    """The mean of times in words; where some are beyond the end of the run, how many are not."""
    seen = [time.value for time in times if not time.censored]
    if len(seen) == len(times):
        return f"{with_interval(interval(seen))} s"
    most_s, later = max(time.value for time in times), len(times) - len(seen)
    return f"more than {most_s:.0f} s in {later} of {len(times)} runs"


CLAIMS = (h1, h2, h3, h4, h5, h6, h8, h9, h10, h11)
VARIED = CLAIMS


def figures(study: Study) -> dict[str, Any]:
    """Figures 1 and 2 of the paper, on its axes; throughputs in proportion to the link's rate."""
    part = parse(study.settings["rate"], BITS_PER_S) / 1e9
    level = "background traffic (level)"
    made = {}
    for number, metric, label, scale, limits, what in (
        (
            "1",
            "goodput_bps",
            "throughput (Mbit/s)",
            1e6,
            (300.0 * part, 1000.0 * part),
            "throughput",
        ),
        ("2", "cov", "coefficient of variation", 1.0, (0.0, 0.8), "stability"),
    ):
        points: dict[Group, Interval] = {
            (law, at): interval(study.values(law, at, metric))
            for law in study.laws
            for at in study.levels
        }
        made[f"figure{number}"] = (
            shapes.lines(points, level, label, scale=scale, ylim=limits),
            f"Figure {number}: {what} of the eight protocols over background traffic",
        )
    return made


def mbps(value: Interval) -> str:
    """A difference of rates in Mbit/s, with its sign."""
    return signed(value, 1e-6, 0)


def place(values: Mapping[str, Sequence[float]], *, highest: bool = False) -> str:
    """The place of HTCP-BE's mean among the protocols', from the lowest or from the highest."""
    means = sorted((interval(of).mean, law) for law, of in values.items())
    laws = [law for _, law in (reversed(means) if highest else means)]
    n = laws.index(OURS) + 1
    return f"{n}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(n, 'th') }"
