"""The runs of the EVCP study, and what is measured of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab import metrics
from lfnlab.analysis.checks import Check, below
from lfnlab.analysis.table import with_interval
from lfnlab.experiment.plan import Case
from lfnlab.metrics import FirstPassage
from lfnlab.papers import study
from lfnlab.scenario.builder import dumbbell
from lfnlab.scenario.elements import Router
from lfnlab.scenario.quantity import BITS_PER_S, parse
from lfnlab.statistics import interval, paired

if TYPE_CHECKING:
    from lfnlab.metrics.tables import Floats
    from lfnlab.results.cases import Factor
    from lfnlab.results.runs import Run
    from lfnlab.scenario.builder import Scenario
    from lfnlab.scenario.elements import FlowSettings

LAWS = ("vcp", "evcp")
# Start-up: multiplicative increase fills 1 Gbit/s in 29 s (laws/cards/vcp.md).
START_UP_S = 40
# What a decrease leaves of a window, and what a penalty leaves.
BETA, BETA_C = 0.875, 0.7


@dataclass(frozen=True)
class Fair:
    """When a flow has its fair share: above (1 - tolerance) of it in so many seconds in a row.

    The share is the mean of the flows in that second, or of the link's capacity.
    """

    tolerance: float = 0.1
    hold: int = 5
    of_capacity: bool = False


FAIR = Fair()
# The paper has "exceeded the fair one", and gives neither the share nor over what it measured.
OTHER_FAIR = {
    "first second above the mean": Fair(0.0, 1),
    "first second above C/N": Fair(0.0, 1, of_capacity=True),
}


@dataclass(frozen=True)
class Study(study.Study):
    """The runs of one choice of settings."""

    fair: Fair = FAIR

    def runs(self, figure: str, law: str, **factors: Factor) -> list[Run]:
        """The runs behind a figure of the paper."""
        return self.having(figure=figure, law=law, **factors)

    def times(self, figure: str, law: str, **factors: Factor) -> list[FirstPassage]:
        """Convergence times of the last flow, one a run."""
        return [converged(run, -1, self.fair) for run in self.runs(figure, law, **factors)]


def link(
    settings: Mapping[str, Any],
    rate: str,
    length_s: float,
    *,
    warmup_s: float,
    seed: int,
    router: Router | None = None,
) -> Scenario:
    """The dumbbell without flows, by default with VCP's router; averages begin after warmup_s."""
    base = dumbbell(
        rate=rate,
        rtt=settings["rtt"],
        buffer=settings["buffer"],
        duration=f"{length_s:g}s",
        warmup=f"{warmup_s:g}s",
        sample=settings["sample"],
        compat="ns2",
        seed=seed,
    )
    assert base.link is not None
    router = router or Router(kind="vcp", compat=settings.get("router"))
    return replace(base, link=replace(base.link, router=router))


def newcomer(
    settings: Mapping[str, Any],
    law: str,
    rate: str,
    *,
    flows: int,
    first: str,
    start_s: float,
    watch_s: float,
    seed: int,
) -> Scenario:
    """``flows`` flows of a law, of which the last comes after ``start_s``."""
    scenario = link(settings, rate, start_s + watch_s, warmup_s=start_s, seed=seed)
    law += settings.get("parameters", "")
    first_ones: FlowSettings = {"count": flows - 1, "start": first}
    last: FlowSettings = {"start": f"{start_s}s"}
    if "pacing" in settings:
        first_ones["pacing"] = last["pacing"] = settings["pacing"]
    return scenario.flow(law, **first_ones).flow(law, **last)


def beside(settings: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The scenario with the study's background traffic."""
    level = settings["level"]
    return scenario.with_background(level, long_flows=10) if level else scenario


def newcomer_cases(settings: Mapping[str, Any]) -> list[Case]:
    """Figures 1 and 5, 6, 7: a flow that comes last wants its share."""
    made = []
    pair, part = settings["pair"], settings["newcomer"]
    points = [("6", flows, part["rate"], part["seeds"]) for flows in part["flows"]]
    points += [("7", 2, rate, settings["seeds"]) for rate in part["rates"]]
    for figure, flows, rate, seeds in points:
        watch_s = round(20 + part["patience_s"] * gbps(rate) / flows)
        for law in LAWS:
            for seed in range(1, seeds + 1):
                scenario = newcomer(
                    settings,
                    law,
                    rate,
                    flows=flows,
                    first="uniform(0s, 10s)",
                    start_s=part["newcomer_s"],
                    watch_s=watch_s,
                    seed=seed,
                )
                made.append(case(beside(settings, scenario), figure, law, flows, rate))
    for law in LAWS:
        scenario = newcomer(
            settings,
            law,
            pair["rate"],
            flows=2,
            first="0s",
            start_s=pair["newcomer_s"],
            watch_s=pair["watch_s"],
            seed=1,
        )
        made.append(case(scenario, "1, 5", law, 2, pair["rate"]))
    return made


def staircase_cases(settings: Mapping[str, Any]) -> list[Case]:
    """Figures 8 and 9: flows of unequal RTTs one after the other, as many on the way back."""
    part, made = settings["staircase"], []
    count, each_s = len(part["rtts"]), part["each_s"]
    for rate in (*part["rates"], part["beside_background"]):
        alone = rate != part["beside_background"]
        for law in LAWS:
            for seed in range(1, settings["seeds"] + 1):
                scenario = link(settings, rate, (count + 1) * each_s, warmup_s=each_s, seed=seed)
                for i, rtt in enumerate(part["rtts"]):
                    scenario = scenario.flow(law, rtt=rtt, start=f"{i * each_s}s")
                for rtt in part["rtts"]:
                    scenario = scenario.flow(
                        law, rtt=rtt, start="uniform(0s, 1s)", direction="reverse"
                    )
                if alone:
                    made.append(case(scenario, "8", law, count, rate))
                else:
                    made.append(case(beside(settings, scenario), "9", law, count, rate))
    return made


def pairs_cases(settings: Mapping[str, Any]) -> list[Case]:
    """Figure 10: ten flows, two more at a time, the longest runs first."""
    made = []
    for rate, part in sorted(pairs(settings), key=lambda pair: gbps(pair[0]), reverse=True):
        each_s, groups = part["each_s"], part["groups"]
        for law in LAWS:
            for seed in range(1, part["seeds"] + 1):
                scenario = link(settings, rate, groups * each_s, warmup_s=START_UP_S, seed=seed)
                for i in range(groups):
                    start_s = i * each_s
                    start = f"uniform({start_s}s, {start_s + 1}s)"
                    scenario = scenario.flow(law, count=2, start=start)
                made.append(case(beside(settings, scenario), "10", law, 2 * groups, rate))
    return made


def pairs(settings: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The rates of Figure 10, each with the times and the number of seeds of its runs."""
    scaled = settings["pairs"]
    printed = {**scaled, **scaled["printed"]}
    return [(rate, part) for part in (scaled, printed) for rate in part["rates"]]


def cases(settings: Mapping[str, Any]) -> list[Case]:
    """Every experiment of the reference point."""
    return [
        *pairs_cases(settings),
        *newcomer_cases(settings),
        *staircase_cases(settings),
        *xcp_cases(settings),
    ]


def xcp_cases(settings: Mapping[str, Any]) -> list[Case]:
    """Figure 7 with XCP, which the paper has no figure of: two flows, as those of VCP."""
    part, made = settings["newcomer"], []
    for rate in part["rates"]:
        for seed in range(1, settings["seeds"] + 1):
            start_s = part["newcomer_s"]
            scenario = link(
                settings,
                rate,
                start_s + part["xcp_watch_s"],
                warmup_s=start_s,
                seed=seed,
                router=Router(kind="xcp"),
            )
            scenario = scenario.flow("xcp", start="uniform(0s, 10s)").flow(
                "xcp", start=f"{start_s}s"
            )
            made.append(case(beside(settings, scenario), "7", "xcp", 2, rate))
    return made


def case(scenario: Scenario, figure: str, law: str, flows: int, rate: str) -> Case:
    """A case with the factors that all cases have."""
    return Case(scenario, {"figure": figure, "law": law, "flows": flows, "rate": rate})


def gbps(rate: str) -> float:
    """A rate in Gbit/s."""
    return parse(rate, BITS_PER_S) / 1e9


# What is measured.


def forward(run: Run) -> tuple[Floats, Floats]:
    """Ends of seconds, and goodputs in bit/s, a row a flow under test; NaN before it lives."""
    flows = run.table("flows")
    ids = [flow["id"] for flow in run.summary["flows"] if flow["direction"] == "forward"]
    t_s, _, goodputs_bps = metrics.goodput_matrix(flows.filter(flows["flow"].is_in(ids)), 1.0)
    return t_s, goodputs_bps


def converged(run: Run, flow: int, fair: Fair, until_s: float = math.inf) -> FirstPassage:
    """Time from the flow's start until it has its fair share, if it has it by ``until_s``."""
    t_s, goodputs_bps = forward(run)
    seen = ~np.isnan(goodputs_bps[flow]) & (t_s <= until_s)
    t_s, goodputs_bps = t_s[seen], goodputs_bps[:, seen]
    share_bps = np.nanmean(goodputs_bps, axis=0)
    if fair.of_capacity:
        share_bps[:] = run.summary["links"][0]["rate_bps"] / len(goodputs_bps)
    return metrics.convergence(
        t_s,
        goodputs_bps[flow],
        share_bps,
        start_s=run.summary["flows"][flow if flow >= 0 else len(goodputs_bps) + flow]["start_s"],
        tolerance=fair.tolerance,
        hold=fair.hold,
    )


def together(times: Sequence[FirstPassage]) -> FirstPassage:
    """The mean; where a flow did not converge while it was watched, what the mean exceeds."""
    mean = interval(time.value for time in times).mean
    return FirstPassage(mean, any(time.censored for time in times))


def said(times: Sequence[FirstPassage]) -> str:
    """Their mean with its 95 % interval, where all flows converged, else what it exceeds; in s."""
    if any(time.censored for time in times):
        return f"{seconds(together(times))} s"
    return f"{with_interval(interval(time.value for time in times))} s"


def less(one: Sequence[FirstPassage], other: Sequence[FirstPassage]) -> Check:
    """Whether times are shorter than others, run by run; open where the interval does not tell.

    A flow that did not converge while it was watched takes longer than that, so the difference is
    then bounded on one side.
    """
    difference = below(paired([t.value for t in one], [t.value for t in other]), 0.0)
    if any(time.censored for time in one) and difference.so is not False:
        return Check(None, difference.seen)
    if any(time.censored for time in other) and difference.so is not True:
        return Check(None, difference.seen)
    return difference


def shorter(one: FirstPassage, other: FirstPassage) -> bool | None:
    """Whether a time is shorter than another; None where that is not known."""
    less = one.value < other.value
    if (one.censored and less) or (other.censored and not less):
        return None
    return less


def jain(run: Run, start_s: float, end_s: float) -> float:
    """Mean over seconds of Jain's index of the flows under test."""
    t_s, goodputs_bps = forward(run)
    seconds = goodputs_bps[:, (t_s > start_s) & (t_s <= end_s)].T
    return float(np.mean([metrics.jain(each[~np.isnan(each)]) for each in seconds]))


@dataclass(frozen=True)
class Decrease:
    """Two flows get the signal "overload": their windows in segments before and after."""

    t_s: float
    before: tuple[float, float]
    after: tuple[float, float]


def windows(run: Run) -> tuple[Floats, Floats]:
    """Times in s at which both flows live, and their windows in segments, a row a flow."""
    flows = run.table("flows")
    wide = flows.pivot("flow", index="t_s", values="cwnd_seg").sort("t_s").drop_nulls()
    return wide["t_s"].to_numpy(), wide.select("0", "1").to_numpy().T


def decreases(run: Run) -> list[Decrease]:
    """Decreases of the first of two flows since the second came; both see a code within an RTT."""
    t_s, w = windows(run)
    found = []
    for k in np.flatnonzero(w[0, 1:] < 0.9 * w[0, :-1]):
        near = w[:, max(0, k - 1) : k + 3]
        (a, b), (c, d) = near[:, :3].max(axis=1), near[:, 1:].min(axis=1)
        found.append(Decrease(float(t_s[k + 1]), (float(a), float(b)), (float(c), float(d))))
    return found


def penalties(run: Run) -> list[Decrease]:
    """Those decreases that leave the first flow 0.7 of its window."""
    return [each for each in decreases(run) if each.after[0] < 0.8 * each.before[0]]


def bursts_s(run: Run) -> list[float]:
    """Times at which the second of two flows begins to grow multiplicatively, in s.

    By three times as much in a second as additive increase gives it, which is a segment a round
    trip, or what stands for it at 100 ms.
    """
    t_s, w = windows(run)
    second = round(1.0 / (t_s[1] - t_s[0]))
    fast = w[1, second:] - w[1, :-second] > 3.0 / 0.1
    starts = np.flatnonzero(fast[1:] & ~fast[:-1])
    return [float(t_s[k + second]) for k in starts]


def health(run: Run) -> tuple[float, float, float]:
    """Since the last flow's start: part of the link used, mean wait in RTTs, part dropped."""
    link, rtt_s = run.summary["links"][0], run.summary["flows"][0]["rtt_s"]
    return link["utilization"], link["mean_queue_s"] / rtt_s, link["drops"] / link["arrivals"]


def gap(pair: tuple[float, float]) -> float:
    """The first window less the second."""
    return pair[0] - pair[1]


def seconds(time: FirstPassage) -> str:
    """A time without decimals."""
    return str(replace(time, value=round(time.value)))
