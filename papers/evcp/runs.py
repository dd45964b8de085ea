"""The runs of the EVCP study, and what is measured of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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
    from lfnlab.statistics import Interval

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

    name: str
    tolerance: float = 0.0
    hold: int = 1
    of_capacity: bool = False


#: The measure of the reference point.
HELD = Fair("five seconds at 90 % of the mean", 0.1, 5)
#: The paper's words are "exceeded the fair one", of "the measured throughput". It says neither over
#: what interval that is, nor what share is fair.
EXCEEDED = Fair("first second above the mean")
OTHER_FAIR = (EXCEEDED, Fair("first second above C/N", of_capacity=True))


@dataclass(frozen=True)
class Study(study.Study):
    """The runs of one choice of settings."""

    fair: Fair = HELD

    def runs(self, figure: str, law: str, **factors: Factor) -> list[Run]:
        """The runs behind a figure of the paper."""
        return self.having(figure=figure, law=law, **factors)

    def times(
        self, figure: str, law: str, fair: Fair | None = None, **factors: Factor
    ) -> list[FirstPassage]:
        """Convergence times of the last flow, one a run; by the study's measure or another."""
        by = fair or self.fair
        return [converged(run, -1, by) for run in self.runs(figure, law, **factors)]

    @property
    def measures(self) -> tuple[Fair, ...]:
        """Those that a claim reports: at the reference point also the one in the paper's words."""
        return (HELD, EXCEEDED) if self.fair is HELD else (self.fair,)

    def rate_of(self, fair: Fair) -> str:
        """Of Figure 6: as printed, and for the first crossing a tenth, where it comes in time."""
        part = self.settings["newcomer"]
        rate: str = part["rate"] if fair is HELD else (part.get("tenth") or part)["rate"]
        return rate


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


def beside(settings: Mapping[str, Any], scenario: Scenario, rate: str) -> Scenario:
    """The scenario with the study's background traffic.

    Flows that are capped at 20 packets: ten, or as many a Gbit/s as ``capped_per_gbps`` says.
    """
    level = settings["level"]
    per_gbps = settings.get("capped_per_gbps")
    capped = 10 if per_gbps is None else max(1, round(per_gbps * gbps(rate)))
    return scenario.with_background(level, long_flows=capped) if level else scenario


def points(settings: Mapping[str, Any]) -> list[tuple[str, str, int, str, int, int]]:
    """Of Figures 6 and 7: figure, law, flows, rate, seeds, and for how many seconds flow N runs."""
    part, made = settings["newcomer"], []
    ends = min(part["flows"]), max(part["flows"])
    for own in (part, part.get("tenth")):
        for flows in part["flows"] if own else ():
            for law in LAWS:
                key = "ends" if law == "evcp" and flows in ends and "ends" in own else "seeds"
                watch_s = watched_s(own["rate"], own["patience_s"][law], flows)
                made.append(("6", law, flows, own["rate"], own[key], watch_s))
    for rate in part["rates"]:
        watch_s = watched_s(rate, part["exceeds_s"], 2)
        seeds = part.get("few", {}).get(rate, settings["seeds"])
        made += [("7", law, 2, rate, seeds, watch_s) for law in LAWS]
    return made


def watched_s(rate: str, patience_s: float, flows: int) -> int:
    """How long flow N runs, in s: times of convergence go with the rate, and fall with N."""
    return round(20 + gbps(rate) * (80 + patience_s / flows))


def newcomer_cases(settings: Mapping[str, Any]) -> list[Case]:
    """Figures 1 and 5, 6, 7: a flow that comes last wants its share."""
    made = []
    pair, part = settings["pair"], settings["newcomer"]
    for figure, law, flows, rate, seeds, watch_s in points(settings):
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
            made.append(case(beside(settings, scenario, rate), figure, law, flows, rate))
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
                    made.append(case(beside(settings, scenario, rate), "9", law, count, rate))
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
                made.append(case(beside(settings, scenario, rate), "10", law, 2 * groups, rate))
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
            made.append(case(beside(settings, scenario, rate), "7", "xcp", 2, rate))
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


def newcomers(run: Run, each_s: float) -> list[FirstPassage]:
    """Of Figures 8 and 9: the time of each flow after the first, if it is before the next starts.

    The last one has two stages.
    """
    count = sum(flow["direction"] == "forward" for flow in run.summary["flows"])
    return [converged(run, k, HELD, (k + 1 + (k == count - 1)) * each_s) for k in range(1, count)]


def together(of: Sequence[FirstPassage]) -> FirstPassage:
    """The mean; where a flow did not converge while it was watched, what the mean exceeds."""
    mean = interval(time.value for time in of).mean
    return FirstPassage(mean, any(time.censored for time in of))


def said(of: Sequence[FirstPassage]) -> str:
    """Their mean with its 95 % interval, where all flows converged, else what it exceeds; in s."""
    if any(time.censored for time in of):
        return f"{seconds(together(of))} s"
    return f"{plain(of)} s"


def plain(of: Sequence[FirstPassage]) -> str:
    """Their mean with its interval, or what it exceeds, without a unit."""
    if any(time.censored for time in of):
        return f"> {together(of).value:.3g}"
    return with_interval(interval(time.value for time in of))


def times(factor: float, of: Sequence[FirstPassage]) -> list[FirstPassage]:
    """So many times as long."""
    return [FirstPassage(factor * time.value, time.censored) for time in of]


def less(one: Sequence[FirstPassage], other: Sequence[FirstPassage]) -> Check:
    """Whether times are shorter than others, run by run; open where the interval does not tell.

    Runs are in the order of their seeds, and compared as far as both have them.

    A flow that did not converge while it was watched takes longer than that, so the difference is
    then bounded on one side.
    """
    common = min(len(one), len(other))
    one, other = one[:common], other[:common]
    difference = below(paired([t.value for t in one], [t.value for t in other]), 0.0)
    if any(time.censored for time in one) and difference.so is not False:
        return replace(difference, so=None)
    if any(time.censored for time in other) and difference.so is not True:
        return replace(difference, so=None)
    return difference


def shorter(one: FirstPassage, other: FirstPassage) -> Check:
    """Whether a time is shorter than another; open where that is not known."""
    less = one.value < other.value
    unknown = one.censored if less else other.censored
    return Check(None if unknown else less)


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


T = TypeVar("T")


@dataclass(frozen=True)
class Health(Generic[T]):
    """Since the last flow's start: part of the link used, mean wait in RTTs, part dropped.

    And Jain's index in the last quarter of that time.
    """

    used: T
    wait: T
    dropped: T
    jain: T


def health(run: Run) -> Health[float]:
    """Of the bottleneck in a run of Figure 6 or 7."""
    link, rtt_s = run.summary["links"][0], run.summary["flows"][0]["rtt_s"]
    start_s, end_s = run.summary["warmup_s"], run.summary["sim_s"]
    return Health(
        link["utilization"],
        link["mean_queue_s"] / rtt_s,
        link["drops"] / link["arrivals"],
        jain(run, end_s - (end_s - start_s) / 4, end_s),
    )


def interval_of(found: Sequence[Health[float]]) -> Health[Interval]:
    """The means of a point, with their intervals."""
    columns = zip(*(astuple(one) for one in found), strict=True)
    return Health(*(interval(column) for column in columns))


def gap(pair: tuple[float, float]) -> float:
    """The first window less the second."""
    return pair[0] - pair[1]


def seconds(time: FirstPassage) -> str:
    """A time without decimals."""
    return str(replace(time, value=round(time.value)))
