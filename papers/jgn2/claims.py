"""Transport protocols for fast long-distance networks on JGN II (Kumazoe et al.): claims, tested.

Every claim is a function of a :class:`Study`, the runs of one choice of what the paper does not
say, that returns a ``Finding``. Parts of a claim that are about UDT are unknown where the settings
do not list it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lfnlab import metrics
from lfnlab.analysis.checks import Check, Known, above, below, every, named, negated, within
from lfnlab.analysis.table import Table, with_interval
from lfnlab.figures import plot
from lfnlab.figures.cells import cells
from lfnlab.papers.paper import (
    Execute,
    Reproduction,
    decided,
    judged,
    studies,
)
from lfnlab.papers.study import system
from lfnlab.scenario.quantity import BITS_PER_S, parse
from lfnlab.statistics import Interval, interval, paired

from .runs import (
    PAPER,
    PAPER_MBPS,
    TABLE_2_LAWS,
    UDT,
    Pair,
    Study,
    Totals,
    cases,
    full_mbps,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lfnlab.analysis.finding import Finding
    from lfnlab.metrics.tables import Floats
    from lfnlab.results.cases import Group

TITLE = "Transport protocols for fast long-distance networks on JGN II"


def reproduce(settings: Mapping[str, Any], execute: Execute) -> Reproduction:
    """Run the study and its variants, test the claims."""
    made = studies(settings, execute, study_of)
    study = made["chosen"]
    return judged(
        made,
        CLAIMS,
        by="what the paper does not say",
        constant=[j7()],
        figures=figures(study),
        tables={
            "Table 2: total throughput of two flows in Mbit/s, paper | ours": totals_table(study)
        },
    )


def study_of(settings: Mapping[str, Any], execute: Execute, name: str) -> Study:
    """The runs of one choice of settings."""
    return Study(settings, execute(cases(settings), f"{TITLE}: {name}"))


def j1(study: Study) -> Finding:
    """One flow at 180 ms: who comes back after losses.

    "The maximum" is 90 % of the rate, "alike" the same second, "very low" a fifth of the rate over
    the last third. A flow that never falls below 80 % keeps the maximum, and so regains it. The
    paper shows one run, so all but the last is to be so in most runs.
    """
    laws = ("reno", "hstcp", "scalable")
    top, end_s = full_mbps(study), study.settings["international"]["duration_s"]
    risen: dict[str, list[float]] = {law: [] for law in laws}
    back: dict[str, list[float]] = {law: [] for law in laws}
    late: dict[str, list[float]] = {law: [] for law in laws}
    for law in laws:
        for t_s, mbps in study.courses("figure 2", law):
            rose_s = first(t_s, mbps >= 0.9 * top)
            fallen_s = first(t_s, (t_s > rose_s) & (mbps < 0.8 * top))
            if math.isinf(fallen_s):
                fallen_s = rose_s
            risen[law].append(rose_s)
            back[law].append(first(t_s, (t_s > fallen_s) & (mbps >= 0.9 * top)))
            late[law].append(float(mbps[t_s > 2 * end_s / 3].mean()))
    return finding(
        study,
        "J1",
        "Fig. 2(a), 180 ms",
        "Standard TCP, HSTCP and Scalable are alike in slow start and reach the maximum; after "
        "losses Standard TCP stays very low, HSTCP and Scalable regain the maximum after a while",
        f"they reach 90 % {', '.join(map(latest, risen.values()))}; "
        + "; ".join(f"{law} regains it {latest(back[law])}" for law in laws[1:])
        + "; last third: "
        + ", ".join(f"{law} {with_interval(interval(late[law]))}" for law in laws)
        + " Mbit/s",
        {
            "not all reach the maximum in slow start, or not at one time": mostly(
                max(times) <= min(times) + 1 for times in zip(*risen.values(), strict=True)
            ),
            "Standard TCP keeps more than a fifth of the rate": below(
                interval(late["reno"]), 0.2 * top
            ),
            "HSTCP does not regain the maximum": mostly(map(math.isfinite, back["hstcp"])),
            "Scalable does not regain the maximum": mostly(map(math.isfinite, back["scalable"])),
        },
    )


def j2(study: Study) -> Finding:
    """One flow at 180 ms: FAST, BIC, UDT, after 30 s.

    FAST's drop is a second below half the rate, recovered within 10 s; BIC is gentle where no five
    seconds differ from the five before by more than a quarter of the rate (in one second a hole of
    a round trip shows, and what waited behind it); UDT is high and steady with a mean of 80 % of
    the rate and a coefficient of variation of at most 0.1.
    """
    top = full_mbps(study)
    drops, agains = [], []
    for t_s, mbps in study.courses("figure 2", "fast"):
        rose = first(t_s, mbps >= 0.9 * top)
        drops.append(first(t_s, (t_s > rose) & (mbps < 0.5 * top)))
        agains.append(first(t_s, (t_s > drops[-1]) & (mbps >= 0.9 * top)))
    steps = interval(
        largest_step(mbps[t_s > 30]) / top for t_s, mbps in study.courses("figure 2", "bic")
    )
    fallen = [
        again - drop for drop, again in zip(drops, agains, strict=True) if math.isfinite(drop)
    ]
    said = [
        f"FAST falls below half in {len(fallen)} of {len(drops)} runs"
        + (f", first {when(min(drops))}, and is back within {said_of(fallen)}" if fallen else ""),
        f"BIC's means over 5 s step by up to {with_interval(steps, 100)} % of the rate",
    ]
    tests = {
        "FAST does not drop: it keeps alpha packets in the queue, and the buffer has room for "
        "more": mostly(map(math.isfinite, drops)),
        "FAST recovers slowly: far from its goal it gains a quarter of alpha, 50 segments, a round "
        "trip; with eq. (3), which gains alpha, it needs less time": mostly(
            seconds <= 10 for seconds in fallen or [0.0]
        ),
        "BIC jumps": below(steps, 0.25),
    }
    if UDT in study.laws:
        late = [mbps[t_s > 30] for t_s, mbps in study.courses("figure 2", UDT)]
        mean, cov = interval(part.mean() / top for part in late), interval(map(metrics.cov, late))
        said.append(
            f"UDT's mean is {with_interval(mean, 100)} % of the rate, its CoV {with_interval(cov)}"
        )
        version = system(study.settings, UDT)
        doubt = " (no trace of it exists to hold it against)" * (version == "udt:2")
        tests[f"{version} is not high{doubt}"] = above(mean, 0.8)
        tests[f"{version} is not steady{doubt}"] = below(cov, 0.1)
    return finding(
        study,
        "J2",
        "Fig. 2(b)",
        "FAST drops drastically and recovers at once; BIC rises and falls gently; UDT holds a "
        "high, steady rate",
        "; ".join(said),
        tests,
    )


def mostly(of_runs: Iterable[bool]) -> Check:
    """Whether something is so in more than half of the runs."""
    return above(interval(map(float, of_runs)), 0.5)


def largest_step(mbps: Floats) -> float:
    """Largest difference between the means over five seconds and over the five before."""
    fives = mbps[: mbps.size // 5 * 5].reshape(-1, 5).mean(axis=1)
    return float(np.abs(np.diff(fives)).max())


def said_of(seconds: Sequence[float]) -> str:
    """Times of runs in words: the least and the most."""
    low, high = (
        f"{x:.0f} s" if math.isfinite(x) else "never" for x in (min(seconds), max(seconds))
    )
    return low if low == high else f"{low} to {high}"


def j3(study: Study) -> Finding:
    """Two flows of RTTs 1 : 1, 1 : 2, 1 : 4.

    Flows are equal within a factor of 1.25; who differs most is ranked by the ratio of the
    goodputs, run by run; "does not vary" is a ratio at 1 : 4 within a factor of 1.5 of that at
    1 : 1.
    """
    ratios = study.settings["ratios"]["ratios"]
    logs = {ratio: {law: unfairness(study, law, ratio) for law in study.laws} for ratio in ratios}

    def equal(law: str) -> Check:
        return within(interval(logs[1][law]), -math.log(1.25), math.log(1.25))

    def constant(law: str) -> Check:
        changes = paired(logs[4][law], logs[1][law])
        return within(changes, -math.log(1.5), math.log(1.5))

    def differ_most(ratio: int, laws: set[str]) -> Check:
        far = {law: [abs(log) for log in logs[ratio][law]] for law in study.laws}
        others = set(study.laws) - laws
        return every(above(paired(far[law], far[o]), 0.0) for law in laws for o in others)

    def shown(ratio: int, log: Interval) -> str:
        mean, low, high = (math.exp(log.mean + side * log.half) for side in (0, -1, 1))
        known = ratio == ratios[-1] and not math.isnan(low)
        return f"{mean:.2f}" + f" ({low:.2f} to {high:.2f})" * known

    unequal = [law for law in study.laws if equal(law).so is not True]
    tests = {
        f"at 1:1 flows of {', '.join(unequal)} differ": every(map(equal, study.laws)),
        "at 1:2 FAST and BIC do not differ most": differ_most(2, {"fast", "bic"}),
        "at 1:4 HSTCP, FAST and BIC do not differ most": differ_most(4, {"hstcp", "fast", "bic"}),
        "HTCP's ratio varies. A guess: both flows lose at once at a full queue, and less so where "
        "packets are lost on the way": constant("htcp"),
    }
    if UDT in study.laws:
        tests["UDT's ratio varies"] = constant(UDT)
    return finding(
        study,
        "J3",
        "Fig. 3",
        "two flows, 38 ms and 38, 76, 152 ms: equal at 1:1 for all; at 1:2 FAST and BIC, at 1:4 "
        "HSTCP, FAST and BIC differ most; HTCP and UDT do not vary with the ratio",
        "flow 1 over flow 2, "
        + "; ".join(
            f"1:{ratio}: "
            + ", ".join(f"{law} {shown(ratio, interval(x))}" for law, x in values.items())
            for ratio, values in logs.items()
        ),
        tests,
    )


def j4(study: Study) -> Finding:
    """The path becomes longer, and short again, under windows of a BDP of the long path.

    "Lose" is 5 % less than before in the ten seconds from the switch; "recover" is 90 % of before
    in some later second before the switch back; "near zero" is a second below a fifth of the rate,
    "quickly" back to 90 % within 10 s.
    """
    part, name, top = study.settings["switch"], "figure 4, delay", full_mbps(study)
    at_s, back_s = part["at_s"], part["back_s"]
    by_law: list[dict[str, list[float]]] = [{law: [] for law in study.laws} for _ in range(5)]
    lost, mean, again, dip, home = by_law
    for law in study.laws:
        before = study.means(name, law, at_s - 10, at_s)
        soon = study.means(name, law, at_s, at_s + 10)
        lost[law] = [1 - late / early for late, early in zip(soon, before, strict=True)]
        mean[law] = study.means(name, law, at_s, back_s)
        for (t_s, mbps), early in zip(study.courses(name, law), before, strict=True):
            fallen = first(t_s, (t_s > at_s) & (mbps < 0.9 * early))
            risen = first(t_s, (t_s > fallen) & (t_s <= back_s) & (mbps >= 0.9 * early))
            again[law].append(risen if math.isfinite(fallen) else at_s)
            dip[law].append(float(mbps[(t_s > back_s) & (t_s <= back_s + 5)].min()) / top)
            home[law].append(first(t_s, (t_s > back_s + 1) & (mbps >= 0.9 * early)) - back_s)
    others = [law for law in study.laws if law != "fast"]
    return finding(
        study,
        "J4",
        "Fig. 4(a)",
        "38 to 80 ms at 30 s, back at 90 s: TCPs lose throughput, FAST most until the switch "
        "back; BIC and HSTCP recover, BIC faster; UDT is unaffected; at the switch back all but "
        "FAST fall near zero and quickly recover",
        "; ".join(
            f"{law}: {with_interval(negative(lost[law]), 100)} % in 10 s, mean "
            f"{with_interval(interval(mean[law]))} Mbit/s until the switch back, back at 90 % "
            f"{latest(again[law])}, then at least "
            f"{with_interval(interval(dip[law]), 100)} % of the rate"
            for law in study.laws
        ),
        {
            **named(
                "lose less than 5 %",
                {law: above(interval(lost[law]), 0.05) for law in study.tcps},
            ),
            **named(
                "FAST's mean on the long path is not below that of",
                {law: below(paired(mean["fast"], mean[law]), 0.0) for law in others},
            ),
            "BIC does not recover before HSTCP": mostly(
                bic < hstcp for bic, hstcp in zip(again["bic"], again["hstcp"], strict=True)
            ),
            "HSTCP does not recover": mostly(map(math.isfinite, again["hstcp"])),
            **named(
                "at the switch back above a fifth of the rate, although packets overtake earlier "
                "ones",
                {law: below(interval(dip[law]), 0.2) for law in others},
            ),
            **named(
                "more than 10 s to recover",
                {law: mostly(seconds <= 10 for seconds in home[law]) for law in others},
            ),
        }
        | ({"UDT is affected": below(interval(lost[UDT]), 0.05)} if UDT in study.laws else {}),
    )


def negative(values: Sequence[float]) -> Interval:
    """The interval of these values with the other sign."""
    return interval(-value for value in values)


def j5(study: Study) -> Finding:
    """The path becomes narrow, and wide again.

    "Adapt" is 80 % of the rate over the last 30 s of the narrow path and the last 10 s of all; who
    is "fastest" has the highest mean over the ten seconds from either switch.
    """
    part, name, top = study.settings["switch"], "figure 4, rate", full_mbps(study)
    narrow = parse(part["rate"], BITS_PER_S) / 1e6
    at_s, back_s, end_s = part["at_s"], part["back_s"], part["duration_s"]
    low = {law: study.means(name, law, (at_s + back_s) / 2, back_s) for law in study.laws}
    high = {law: study.means(name, law, end_s - 10, end_s) for law in study.laws}
    quick = {
        law: [
            [mbps / rate for mbps in study.means(name, law, t, t + 10)]
            for t, rate in ((at_s, narrow), (back_s, top))
        ]
        for law in study.laws
    }
    mean = {law: study.means(name, law, at_s, end_s) for law in study.laws}
    adapted = {
        law: every((above(interval(low[law]), 0.8 * narrow), above(interval(high[law]), 0.8 * top)))
        for law in study.laws
    }
    lowest = {
        law: below(paired(mean["fast"], mean[law]), 0.0) for law in study.laws if law != "fast"
    }
    tests = named("below 80 % of the rate", adapted) | named("FAST is not below", lowest)
    if UDT in study.laws:
        for i, when_ in enumerate(("to the narrow path", "back")):
            tests |= named(
                f"at the switch {when_} UDT is no faster than",
                {law: above(paired(quick[UDT][i], quick[law][i]), 0.0) for law in study.tcps},
            )
    return finding(
        study,
        "J5",
        "Fig. 4(b)",
        "1 to 0.25 Gbit/s at 30 s, back at 90 s: all adapt; UDT fastest; FAST lowest",
        "; ".join(
            f"{law}: {' and '.join(with_interval(interval(part), 100) for part in quick[law])} % "
            "of the rate in the 10 s from the switches, mean from 30 s on "
            f"{with_interval(interval(mean[law]))} Mbit/s"
            for law in study.laws
        ),
        tests,
    )


def j6(study: Study) -> Finding:
    """Which mixes have less than two flows of either protocol alone, by 1 % of the rate or more.

    Holds if these are the paper's, run by run.
    """
    by_run, totals = study.totals_by_run(), {p: t.mean for p, t in study.totals().items()}
    paper = {pair: PAPER[pair] for pair in totals}
    theirs, ours = below_both(paper, PAPER_MBPS), below_both(totals, full_mbps(study))
    low, high = min(totals.values()), max(totals.values())

    def less(one: str, other: str) -> Check:
        least = list(map(min, by_run[one, one], by_run[other, other]))
        return above(paired(least, by_run[one, other]), 0.01 * full_mbps(study))

    as_theirs = [
        known if pair in theirs else negated(known)
        for pair in by_run
        if pair[0] != pair[1]
        for known in [less(*pair)]
    ]
    return finding(
        study,
        "J6",
        "Table 2",
        f"total of two flows from {min(paper.values()):.0f} to {max(paper.values()):.0f} Mbit/s; "
        f"{len(theirs)} mixes have less than two flows of either protocol: {listed(theirs)}",
        f"totals from {low:.0f} to {high:.0f} Mbit/s, rank correlation with the paper's "
        f"{rank_correlation(paper, totals):+.2f}; less than either: {listed(ours) or 'none'}; "
        f"{len(theirs & ours)} of the paper's",
        {
            "other mixes have less. A guess: here each two flows have much more than the paper's, "
            "which are 29 to 83 % of the rate, on hosts of 2005": every(as_theirs)
        },
    )


def j7() -> Finding:
    """10 Gbit/s take an hour and forty minutes without a loss: the time from one to the next.

    A mean window of 1.2/p^0.5 segments, at 100 ms and 1500 bytes. RFC 3649, which the paper cites,
    has these 100 minutes as the time between losses; the other reading is the time to grow.
    """
    window = 10e9 * 0.1 / (8 * 1500)
    minutes = (window / 1.2) ** 2 * 8 * 1500 / 10e9 / 60
    growth = window * 0.1 / 60
    return decided(
        "J7",
        "Introduction",
        "to fill 10 Gbit/s at 100 ms with 1500-byte packets Standard TCP needs an hour and forty "
        "minutes without a single loss",
        f"{minutes:.0f} minutes from one loss to the next, as RFC 3649 has it. By the other "
        f"reading, that of C12, a window of {window:.0f} segments takes {growth:.0f} minutes from "
        f"one segment on, {growth / 2:.0f} from half of it, which are not the paper's",
        {"the arithmetic gives another time": 95 <= minutes < 105},
    )


def j8(study: Study) -> Finding:
    """Whether mis-ordering costs every protocol a twentieth of its goodput or more.

    The paper asks how mis-ordering affects them, and claims nothing: the answer is ours.
    """
    own = study.settings["misordering"]
    goodputs = {
        law: [
            [run.goodputs[0] / 1e6 for run in study.runs(part, law)]
            for part in ("in order", "mis-ordered")
        ]
        for law in study.laws
    }
    slower = {
        law: above(paired([0.95 * mbps for mbps in orderly], disorderly), 0.0)
        for law, (orderly, disorderly) in goodputs.items()
    }
    return finding(
        study,
        "J8",
        "Section 2, a question",
        "no claim: the paper asks how packet mis-ordering affects the high-speed protocols",
        f"one packet in {1 / own['part']:g} comes {own['delay']} late: "
        + ", ".join(
            f"{law} {with_interval(interval(disorderly))} of {interval(orderly).mean:.0f}"
            for law, (orderly, disorderly) in goodputs.items()
        )
        + " Mbit/s",
        named("not affected", slower),
    )


CLAIMS = (j1, j2, j3, j4, j5, j6, j8)
VARIED = CLAIMS


def finding(
    study: Study, claim: str, where: str, says: str, ours: str, tests: Mapping[str, Known]
) -> Finding:
    """As :func:`decided`; without UDT among the protocols a claim can fail, but not hold."""
    found = decided(claim, where, says, ours, tests)
    if UDT in study.laws or found.verdict == "does not hold":
        return found
    cause = "UDT is not among the protocols that were run"
    return replace(found, verdict="cannot be tested", cause=cause)


def first(t_s: Floats, so: Any) -> float:
    """The first of the times at which something is so; infinite if it never is."""
    at = np.flatnonzero(so)
    return float(t_s[at[0]]) if at.size else math.inf


def when(t_s: float) -> str:
    """A time in words."""
    return f"at {t_s:.0f} s" if math.isfinite(t_s) else "never"


def latest(times_s: Sequence[float]) -> str:
    """The times of runs in words, by the last of them."""
    if all(map(math.isinf, times_s)):
        return "in no run"
    return f"by {max(times_s):.0f} s" if math.isfinite(max(times_s)) else "in some runs"


def unfairness(study: Study, law: str, ratio: float) -> list[float]:
    """Logarithm of the goodput of flow 1 over that of flow 2, of each run.

    A flow that is shut out counts as one that delivers a millionth of the rate.
    """
    least_bps = full_mbps(study)
    return [
        math.log(max(one, least_bps) / max(other, least_bps))
        for run in study.runs("figure 3", law, ratio=ratio)
        for one, other in [run.goodputs]
    ]


def below_both(totals: Totals, rate_mbps: float) -> set[Pair]:
    """The mixes whose total is below those of both protocols alone, by 1 % of the rate or more."""
    return {
        (one, other)
        for one, other in totals
        if one != other
        and totals[one, other] <= min(totals[one, one], totals[other, other]) - 0.01 * rate_mbps
    }


def listed(mixes: set[Pair]) -> str:
    """Mixes in words."""
    return ", ".join("+".join(mix) for mix in sorted(mixes))


def rank_correlation(one: Totals, other: Totals) -> float:
    """Spearman's, without ties."""
    ranks = [np.argsort(np.argsort([totals[pair] for pair in one])) for totals in (one, other)]
    return float(np.asarray(np.corrcoef(ranks))[0, 1])


def totals_table(study: Study) -> Table:
    """The matrix, the paper's number before ours; a dash for what was not run."""
    totals = study.totals()
    rows = []
    for one in TABLE_2_LAWS:
        cells = [one]
        for other in TABLE_2_LAWS:
            pair = next(p for p in ((one, other), (other, one)) if p in PAPER)
            ours = with_interval(totals[pair]) if pair in totals else "–"
            cells.append(f"{PAPER[pair]:.0f} | {ours}")
        rows.append(tuple(cells))
    return Table(("", *TABLE_2_LAWS), tuple(rows), 1)


def figures(study: Study) -> dict[str, Any]:
    """Figures 2 to 4, and Table 2 as a picture."""
    return {
        **figures_2_to_4(study),
        "table2": (
            heat_maps(study),
            "Table 2 of the paper, and ours: total throughput of two flows in Mbit/s; a frame "
            "where a mix has less than two flows of either protocol",
        ),
    }


def figures_2_to_4(study: Study) -> dict[str, Any]:
    """Figures 2 to 4."""
    panels = {
        f"({panel})": [
            (law, *study.course("figure 2", law)) for law in laws if law in ("reno", *study.laws)
        ]
        for panel, laws in (("a", ("reno", "hstcp", "scalable")), ("b", ("fast", "bic", UDT)))
    }
    switches = {
        f"({panel}) {kind}": [(law, *study.course(f"figure 4, {kind}", law)) for law in study.laws]
        for panel, kind in (("a", "delay"), ("b", "rate"))
    }
    unit = "throughput (Mbit/s)"
    return {
        "figure2": (plot.courses(panels, unit), "Figure 2: one flow, 180 ms"),
        "figure3": (ratio_bars(study), "Figure 3: two flows of different RTTs, 38 ms and more"),
        "figure4": (plot.courses(switches, unit), "Figure 4: another path from 30 to 90 s"),
    }


def ratio_bars(study: Study) -> Figure:
    """A panel a ratio, two bars a protocol."""
    values: dict[Group, Interval] = {
        (ratio, law, f"flow {i + 1}"): interval(
            run.goodputs[i] / 1e6 for run in study.runs("figure 3", law, ratio=ratio)
        )
        for ratio in study.settings["ratios"]["ratios"]
        for law in study.laws
        for i in (0, 1)
    }
    figure, _ = plot.bars(values, ("RTTs 1 :", "law", "route"), "throughput (Mbit/s)")
    return figure


def heat_maps(study: Study) -> Figure:
    """Table 2 beside ours, shaded by the part of the link's rate."""
    totals = {pair: total.mean for pair, total in study.totals().items()}
    with plot.house_style():
        figure = Figure(figsize=(7.4, 3.6))
        left, right = figure.subplots(1, 2)
        heat_map(left, "paper", PAPER, PAPER_MBPS)
        heat_map(right, "ours", totals, full_mbps(study))
        return figure


def heat_map(axes: Axes, title: str, totals: Totals, rate_mbps: float) -> None:
    """A symmetric matrix with its numbers; empty where nothing was run."""
    laws = list(dict.fromkeys(one for one, _ in totals))
    values = np.full((len(laws), len(laws)), np.nan)
    marked = below_both(totals, rate_mbps)
    for (one, other), total in totals.items():
        i, j = laws.index(one), laws.index(other)
        values[i, j] = values[j, i] = total
        for row, column in {(i, j), (j, i)} if (one, other) in marked else ():
            corner = (column - 0.42, row - 0.42)
            axes.add_patch(Rectangle(corner, 0.84, 0.84, fill=False, ec=plot.INK, lw=1.5))
    limits = (0.2 * rate_mbps, 1.2 * rate_mbps)
    cells(axes, values, laws, laws, colours="Blues", limits=limits)
    axes.set_title(title)
