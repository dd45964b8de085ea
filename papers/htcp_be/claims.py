"""HTCP with bandwidth estimation (HTCP-BE) for e-VLBI data transport: its claims, tested.

Every claim is a function of a :class:`Study` (the runs with one buffer size) that returns a
``Finding``. Intervals are 95 % over the runs; two laws are compared run by run, because run k has
the same RTT and meets the same background traffic with every law.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from lfnlab.analysis.finding import Finding
from lfnlab.analysis.table import with_interval
from lfnlab.experiment.plan import Case
from lfnlab.figures import shapes
from lfnlab.papers import study
from lfnlab.papers.paper import Execute, Reproduction, judged, signed, studies, verdict
from lfnlab.papers.study import system
from lfnlab.scenario.builder import dumbbell
from lfnlab.statistics import Interval, interval, paired

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lfnlab.results.runs import Results, Run

TITLE = "HTCP with bandwidth estimation for e-VLBI"
FAST_RETRANSMIT, TIMEOUT = 0, 1
HIGH_LEVELS = (2, 3)
# The paper's own claim is the law under test.
OURS = "htcp-be"


@dataclass(frozen=True)
class Study(study.Study):
    """The runs of all laws and levels with one buffer size."""

    @property
    def laws(self) -> Sequence[str]:
        """The laws under test."""
        return list(self.settings["laws"])

    @property
    def levels(self) -> Sequence[int]:
        """The levels of background traffic."""
        return list(self.settings["levels"])

    @cached_property
    def _values(self) -> dict[tuple[str, int, str], list[float]]:
        values: dict[tuple[str, int, str], list[float]] = {}
        for row in self.results.rows():
            for metric in ("goodput_bps", "cov", "utilization"):
                values.setdefault((row["law"], row["level"], metric), []).append(row[metric])
        return values

    def values(self, law: str, level: int, metric: str) -> list[float]:
        """One value a run, in the order of the runs."""
        return self._values[law, level, metric]

    def mean(self, law: str, level: int, metric: str) -> float:
        """Mean over the runs."""
        return interval(self.values(law, level, metric)).mean

    def ranked(self, level: int, metric: str, *, best: str) -> list[str]:
        """The laws from the best; ``best`` is "high" or "low"."""
        means = {law: self.mean(law, level, metric) for law in self.laws}
        return sorted(self.laws, key=means.__getitem__, reverse=best == "high")

    def full_link(self) -> str:
        """Why the protocols can hardly differ, where that is so; else nothing."""
        full = {
            level: sum(self.mean(law, level, "utilization") >= 0.98 for law in self.laws)
            for level in HIGH_LEVELS
        }
        if min(full.values()) <= len(self.laws) // 2:
            return ""
        counted = " and ".join(f"{n} of {len(self.laws)} at level {at}" for at, n in full.items())
        return (
            f"with this buffer, which the paper does not give, most protocols fill the link to 98 "
            f"% or more ({counted}), so they can hardly differ"
        )

    def runs(self, law: str) -> list[Run]:
        """All runs of a law."""
        return self.having(law=law)


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
        figures=figures(study),
        tables={},
        traced=[
            run
            for run in study.results.runs
            if run.factors["level"] == HIGH_LEVELS[0] and run.seed == len(settings["rtts"])
        ],
    )


def study_of(settings: Mapping[str, Any], execute: Execute, name: str) -> Study:
    """The runs of one choice of settings."""
    return Study(settings, execute(cases(settings), f"{TITLE}: {name}"))


def cases(settings: Mapping[str, Any]) -> list[Case]:
    """One flow under test on the bottleneck: laws x levels x runs; run k has the k-th RTT."""
    made = []
    for level in settings["levels"]:
        for law in settings["laws"]:
            for seed, rtt in enumerate(settings["rtts"], start=1):
                base = dumbbell(
                    rate=settings["rate"],
                    rtt=rtt,
                    buffer=settings["buffer"],
                    duration=settings["duration"],
                    warmup=settings["warmup"],
                    sample=settings["sample"],
                    compat="ns2",
                    seed=seed,
                )
                long_flows = settings["long_flows"] if level else None
                scenario = base.with_background(level, long_flows=long_flows).flow(
                    system(settings, law),
                    packet=settings["packet"],
                    delayed_ack=settings.get("delayed_ack", False),
                )
                made.append(Case(scenario, {"law": law, "level": level}))
    return made


def response_cases(settings: Mapping[str, Any]) -> list[Case]:
    """One flow each, alone, with random loss on a path that it cannot fill."""
    return [
        Case(
            dumbbell(
                rate=settings["rate"],
                rtt=settings["rtt"],
                buffer="1bdp",
                duration=settings["duration"],
                warmup=settings["warmup"],
                loss=loss,
                sample="off",
                compat="ns2",
                seed=seed,
            ).flow(law),
            {"law": law, "loss": loss},
        )
        for law in settings["laws"]
        for loss in settings["losses"]
        for seed in range(1, settings["seeds"] + 1)
    ]


def h1(study: Study) -> Finding:
    """Mean throughput of every protocol falls as the level rises."""
    falls = {
        (law, low, high): paired(
            study.values(law, low, "goodput_bps"), study.values(law, high, "goodput_bps")
        )
        for law in study.laws
        for low, high in pairwise(study.levels)
    }
    rises = [f"{law} {low}→{high}" for (law, low, high), fall in falls.items() if fall.mean <= 0]
    (law, low, high), least = min(falls.items(), key=lambda item: item[1].mean)
    return Finding(
        "H1",
        "Fig. 1",
        "mean throughput of every protocol falls as the level rises",
        f"falls at {len(falls) - len(rises)} of {len(falls)} steps; least {law} {low}→{high}, "
        f"{mbps(least)} Mbit/s",
        verdict(not rises),
        f"rises: {', '.join(rises)}" if rises else "",
    )


def h2(study: Study) -> Finding:
    """HTCP-BE is highest at levels 2 and 3, and loses least on the way there."""
    said, highest, least_fall = [], True, True
    for level in HIGH_LEVELS:
        rank = study.ranked(level, "goodput_bps", best="high")
        rival = next(law for law in rank if law != OURS)
        margin = paired(
            study.values(OURS, level, "goodput_bps"), study.values(rival, level, "goodput_bps")
        )
        falls = {
            law: study.mean(law, 0, "goodput_bps") - study.mean(law, level, "goodput_bps")
            for law in study.laws
        }
        place = sorted(falls.values()).index(falls[OURS]) + 1
        highest &= rank[0] == OURS
        least_fall &= place == 1
        said.append(
            f"level {level}: {study.mean(OURS, level, 'goodput_bps') / 1e6:.0f} Mbit/s, "
            f"{ordinal(rank.index(OURS) + 1)} of {len(rank)}, {mbps(margin)} to {rival}; "
            f"fall {falls[OURS] / 1e6:.0f} Mbit/s, {ordinal(place)} smallest"
        )
    return Finding(
        "H2",
        "Fig. 1",
        "HTCP-BE loses least towards levels 2 and 3 and is the highest of the eight there",
        "; ".join(said),
        verdict(highest and least_fall),
        "" if highest and least_fall else study.full_link(),
    )


def h3(study: Study) -> Finding:
    """STCP is the one protocol that is not stable: the largest CoV at every level, by far.

    "Not stable" is given no number; taken as a CoV above twice the median of the eight, at every
    level with traffic, and as true of no other protocol.
    """
    unstable: set[str] = set()
    said, every = [], True
    for level in (level for level in study.levels if level > 0):
        covs = {law: study.mean(law, level, "cov") for law in study.laws}
        median = sorted(covs.values())[len(covs) // 2]
        above = [law for law in study.laws if covs[law] > 2 * median]
        unstable.update(above)
        every &= "scalable" in above
        most = max(covs, key=covs.__getitem__)
        said.append(
            f"level {level}: STCP {covs['scalable']:.2f}, largest {most} {covs[most]:.2f}, "
            f"median {median:.2f}"
        )
    return Finding(
        "H3",
        "Fig. 2",
        "STCP is the one protocol whose coefficient of variation shows no stability",
        "; ".join(said),
        verdict(every and unstable == {"scalable"}),
        ""
        if every and unstable == {"scalable"}
        else f"above twice the median at some level: {', '.join(sorted(unstable)) or 'none'}",
    )


def h4(study: Study) -> Finding:
    """HTCP-BE has the lowest CoV at levels 2 and 3."""
    said, lowest = [], True
    for level in HIGH_LEVELS:
        rank = study.ranked(level, "cov", best="low")
        rival = next(law for law in rank if law != OURS)
        margin = paired(study.values(OURS, level, "cov"), study.values(rival, level, "cov"))
        lowest &= rank[0] == OURS
        said.append(
            f"level {level}: {study.mean(OURS, level, 'cov'):.3f}, "
            f"{ordinal(rank.index(OURS) + 1)} of {len(rank)}, {signed(margin, 1.0, 3)} to {rival}"
        )
    return Finding(
        "H4",
        "Fig. 2",
        "at levels 2 and 3 HTCP-BE has the lowest coefficient of variation",
        "; ".join(said),
        verdict(lowest),
        "" if lowest else study.full_link(),
    )


def h5(study: Study) -> Finding:
    """At a loss Westwood+ sets its window 17 % higher than H-TCP does.

    The windows before a loss differ, so the part of its window that each keeps is compared: mean of
    ssthresh / cwnd before, over all fast retransmits after the warm-up. The paper's number has two
    digits and no interval; within five points of it counts as the same.
    """
    kept = {law: [kept_fraction(run) for run in study.runs(law)] for law in ("westwood", "htcp")}
    pairs = [(a, b) for a, b in zip(kept["westwood"], kept["htcp"], strict=True) if a and b]
    where, says = "2.2.4", "at a loss, Westwood+ sets its window on average 17 % higher than H-TCP"
    if not pairs:
        return Finding("H5", where, says, "no losses", "cannot be tested")
    higher = interval(100.0 * (a / b - 1.0) for a, b in pairs)
    parts = ", ".join(
        f"{name} keeps {interval(pair[i] for pair in pairs).mean:.3f}"
        for i, name in enumerate(("Westwood+", "H-TCP"))
    )
    holds = abs(higher.mean - 17) <= 5
    return Finding(
        "H5",
        where,
        says,
        f"{signed(higher, 1.0, 1)} %; {parts}",
        verdict(holds),
        ""
        if holds
        else "the number follows the buffer, which the paper does not give: Westwood+ keeps about "
        "RTTmin/RTTmax; H-TCP keeps that within 0.5 to 0.8, and 0.5 when its throughput has "
        "changed by more than 20 % since the loss before",
    )


def h6(study: Study) -> Finding:
    """H-TCP's window grows much faster than Westwood+'s.

    Segments gained per second between one fast retransmit and the next. "Much faster" is taken as
    at least twice as fast, with 95 % confidence.
    """
    growth = {law: [growth_per_s(run) for run in study.runs(law)] for law in ("htcp", "westwood")}
    ratios = [a / b for a, b in zip(growth["htcp"], growth["westwood"], strict=True) if a and b]
    where, says = "2.2.4", "H-TCP's increase makes the window grow much faster than Westwood+'s"
    if not ratios:
        return Finding("H6", where, says, "fewer than two losses in a run", "cannot be tested")
    ratio = interval(ratios)
    holds = ratio.low >= 2.0
    return Finding(
        "H6",
        where,
        says,
        f"{with_interval(ratio)} times as fast",
        verdict(holds),
        ""
        if holds
        else "H-TCP is faster only from 1 s after a loss on: before that its increase is Reno's "
        "times 2(1 - beta)",
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
    said, wrong = [], []
    for law, (constant, exponent) in functions.items():
        measured = interval(
            run.summary["flows"][0]["mean_cwnd_segments"] * float(run.factors["loss"]) ** exponent
            for run in results.runs
            if run.factors["law"] == law
        )
        said.append(f"{law} {with_interval(measured)}/p^{exponent:g}")
        if abs(measured.mean / constant - 1.0) > 0.15:
            wrong.append(law)
    return Finding(
        "H7",
        "eqs. 3, 4, 6",
        "mean windows of 1.2/p^0.5 (TCP), 0.12/p^0.835 (HSTCP), 0.038/p (STCP)",
        "; ".join(said),
        verdict(not wrong),
        "0.038/p is RFC 3649's linear variant of HSTCP (section 8), not Kelly's Scalable TCP: "
        "+0.01 per ACK and -1/8 per loss give 0.075/p"
        if "scalable" in wrong
        else "",
    )


CLAIMS = (h1, h2, h3, h4, h5, h6)
VARIED = CLAIMS


def losses(run: Run) -> pl.DataFrame:
    """Fast retransmits and timeouts of the flow under test after the warm-up, in order."""
    events = run.table("events")
    return events.filter(
        pl.col("kind").is_in([FAST_RETRANSMIT, TIMEOUT])
        & (pl.col("t_s") >= run.summary["warmup_s"])
    ).sort("t_s")


def kept_fraction(run: Run) -> float | None:
    """Mean part of the window that is kept at a fast retransmit; None without one."""
    events = losses(run).filter(pl.col("kind") == FAST_RETRANSMIT)
    kept = (events["ssthresh_seg"] / events["cwnd_before_seg"]).mean()
    return kept if isinstance(kept, float) else None


def growth_per_s(run: Run) -> float | None:
    """Segments that the window gains per second between one fast retransmit and the next."""
    events = losses(run)
    gained = spent_s = 0.0
    for one, other in pairwise(events.iter_rows(named=True)):
        if one["kind"] == other["kind"] == FAST_RETRANSMIT:
            gained += other["cwnd_before_seg"] - one["ssthresh_seg"]
            spent_s += other["t_s"] - one["t_s"]
    return gained / spent_s if spent_s > 0 else None


def figures(study: Study) -> dict[str, Any]:
    """Figures 1 and 2 of the paper, on its axes."""
    by = ("law", "level")
    level = "background traffic (level)"
    return {
        "figure1": (
            shapes.lines(
                study.results.intervals("goodput_bps", by),
                level,
                "throughput (Mbit/s)",
                scale=1e6,
                ylim=(300.0, 1000.0),
            ),
            "Figure 1: throughput of the eight protocols over background traffic",
        ),
        "figure2": (
            shapes.lines(
                study.results.intervals("cov", by),
                level,
                "coefficient of variation",
                ylim=(0.0, 0.8),
            ),
            "Figure 2: stability of the eight protocols over background traffic",
        ),
    }


def mbps(value: Interval) -> str:
    """A difference of rates in Mbit/s, with its sign."""
    return signed(value, 1e-6, 0)


def ordinal(n: int) -> str:
    """1st, 2nd, 3rd, 4th ..."""
    return f"{n}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(n, 'th') }"
