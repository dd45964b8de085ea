"""The runs of the JGN II study, and the paper's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from lfnlab import metrics
from lfnlab.experiment.plan import Case
from lfnlab.papers import study
from lfnlab.papers.study import system
from lfnlab.scenario.builder import dumbbell, graph
from lfnlab.scenario.elements import Change, NamedLink, Queue, Reorder
from lfnlab.scenario.quantity import BITS_PER_S, SECONDS, parse
from lfnlab.statistics import Interval, interval

if TYPE_CHECKING:
    from lfnlab.metrics.tables import Floats
    from lfnlab.results.runs import Run
    from lfnlab.scenario.builder import Scenario

UDT = "udt"
#: Table 2: total throughput of two flows in Mbit/s.
TABLE_2_LAWS = ("hstcp", "scalable", "fast", "bic", "htcp", UDT)
TABLE_2 = (
    (720, 381, 319, 535, 600, 814),
    (381, 492, 383, 495, 625, 825),
    (319, 383, 402, 301, 745, 790),
    (535, 495, 301, 711, 287, 744),
    (600, 625, 745, 287, 489, 580),
    (814, 825, 790, 744, 580, 749),
)
#: Of the paper's link.
PAPER_MBPS = 1000.0
#: A probability of loss; a link has one below 1.
EVERYTHING = 0.999999
Pair = tuple[str, str]
Totals = dict[Pair, float]
PAPER: Totals = {
    (one, other): float(TABLE_2[i][j])
    for i, one in enumerate(TABLE_2_LAWS)
    for j, other in enumerate(TABLE_2_LAWS)
    if i <= j
}


@dataclass(frozen=True)
class Study(study.Study):
    """The runs of one choice of settings."""

    @property
    def laws(self) -> list[str]:
        """The protocols under test."""
        return list(self.settings["laws"])

    @property
    def tcps(self) -> list[str]:
        """Those over TCP."""
        return [law for law in self.laws if law != UDT]

    def runs(self, part: str, law: str, other: str = "", ratio: float = 1) -> list[Run]:
        """The runs behind a figure or table of the paper, by seed."""
        return self.having(**factors(part, law, other, ratio))

    def courses(self, part: str, law: str) -> list[tuple[Floats, Floats]]:
        """Ends of seconds, and the rate of the one flow in Mbit/s, of each run.

        Of Figure 2 the throughput at the bottleneck, of Figure 4 the goodput.
        """
        of = throughput if part == "figure 2" else course
        return [of(run) for run in self.runs(part, law)]

    def course(self, part: str, law: str) -> tuple[Floats, Floats]:
        """The same of the first run."""
        return self.courses(part, law)[0]

    def means(self, part: str, law: str, start_s: float, end_s: float) -> list[float]:
        """Mean goodput of the one flow in Mbit/s between two times, of each run."""
        return [
            float(mbps[(t_s > start_s) & (t_s <= end_s)].mean())
            for t_s, mbps in self.courses(part, law)
        ]

    def totals(self, part: str = "table 2") -> dict[Pair, Interval]:
        """Total goodput of each two flows in Mbit/s."""
        return {pair: interval(values) for pair, values in self.totals_by_run(part).items()}

    def totals_by_run(self, part: str = "table 2") -> dict[Pair, list[float]]:
        """The same of each run, by seed."""
        return {
            pair: [sum(run.goodputs) / 1e6 for run in self.runs(part, *pair)]
            for pair in pairs(self.laws)
        }


def course(run: Run) -> tuple[Floats, Floats]:
    """Ends of seconds, and the goodput of the one flow of a run in Mbit/s."""
    t_s, _, goodputs_bps = metrics.goodput_matrix(run.table("flows"), 1.0)
    return t_s, np.nan_to_num(goodputs_bps[0]) / 1e6


def throughput(run: Run) -> tuple[Floats, Floats]:
    """Ends of seconds, and what the bottleneck sent in Mbit/s, with headers.

    Goodput in order has a hole where a segment is lost, and a peak where it is repaired.
    """
    sent = run.table("queues").filter(pl.col("link") == 0).sort("t_s")
    t_s, sent_bytes = (sent[name].to_numpy().astype(float) for name in ("t_s", "sent_bytes"))
    edges = np.arange(0.0, round(t_s[-1]) + 1.0)
    at_edges = np.interp(edges, np.append(0.0, t_s), np.append(0.0, sent_bytes))
    return edges[1:], np.diff(at_edges) * 8.0 / 1e6


def factors(part: str, law: str, other: str = "", ratio: float = 1) -> dict[str, str | float]:
    """The factors that distinguish runs."""
    return {"part": part, "law": law, "other": other, "ratio": ratio}


def cases(settings: Mapping[str, Any]) -> list[Case]:
    """Figures 2, 3, 4(a), 4(b), Table 2, and packets that are held up."""
    seeds, laws = range(1, settings["seeds"] + 1), settings["laws"]
    ratios = settings["ratios"]
    made = [
        Case(
            international(settings, seed).flow(system(settings, law)),
            factors("figure 2", law),
        )
        for law in ["reno", *laws]
        for seed in range(1, settings["international"]["seeds"] + 1)
    ]
    for kind in ("delay", "rate"):
        made += [
            Case(switched(settings, law, kind).with_seed(seed), factors(f"figure 4, {kind}", law))
            for law in laws
            for seed in seeds
        ]
    rtt_s = parse(settings["domestic"], SECONDS)
    for seed in seeds:
        for ratio in ratios["ratios"]:
            base = path(
                settings, settings["domestic"], ratios["duration_s"], ratios["warmup_s"], seed
            )
            for law in laws:
                run = system(settings, law)
                scenario = base.flow(run, start="uniform(0s, 1s)").flow(
                    run, rtt=f"{1e3 * ratio * rtt_s:g}ms", start="uniform(0s, 1s)"
                )
                made.append(Case(scenario, factors("figure 3", law, ratio=ratio)))
        made += matrix_cases(settings, seed)
    return made + misordered_cases(settings)


def misordered_cases(settings: Mapping[str, Any]) -> list[Case]:
    """One flow on the domestic path, which delivers in order, or holds some packets up."""
    own, made = settings["misordering"], []
    for law in settings["laws"]:
        for seed in range(1, settings["seeds"] + 1):
            base = path(settings, settings["domestic"], own["duration_s"], own["warmup_s"], seed)
            assert base.link is not None
            late = Reorder(p=own["part"], delay=own["delay"])
            for part, link in (
                ("in order", base.link),
                ("mis-ordered", replace(base.link, reorder=late)),
            ):
                scenario = replace(base, link=link).flow(
                    system(settings, law), start="uniform(0s, 1s)"
                )
                made.append(Case(scenario, factors(part, law)))
    return made


def matrix_cases(settings: Mapping[str, Any], seed: int, part: str = "table 2") -> list[Case]:
    """Each two protocols on the domestic path."""
    matrix, made = settings["matrix"], []
    base = path(
        {**settings, **matrix}, matrix["rtt"], matrix["duration_s"], matrix["warmup_s"], seed
    )
    for one, other in pairs(settings["laws"]):
        scenario = base.flow(system(settings, one), start="uniform(0s, 1s)").flow(
            system(settings, other), start="uniform(0s, 1s)"
        )
        made.append(Case(scenario, factors(part, one, other)))
    return made


def international(settings: Mapping[str, Any], seed: int) -> Scenario:
    """The path of Figure 2, which loses packets from a time on."""
    far = settings["international"]
    from_s, loss = far["loss_from_s"], far["loss"]
    own = {**settings, **far, "loss": 0.0 if from_s else loss}
    base = path(own, far["rtt"], far["duration_s"], 0, seed)
    return base.with_changes(Change(at=f"{from_s}s", link="forward", loss=loss)) if from_s else base


def path(
    settings: Mapping[str, Any], rtt: str, duration_s: float, warmup_s: float, seed: int
) -> Scenario:
    """A dumbbell without flows."""
    return dumbbell(
        rate=settings["rate"],
        rtt=rtt,
        buffer=buffer(settings, rtt),
        duration=f"{duration_s:g}s",
        warmup=f"{warmup_s:g}s",
        loss=settings["loss"],
        sample=settings["sample"],
        compat=settings["compat"],
        seed=seed,
    )


def buffer(settings: Mapping[str, Any], rtt: str) -> str:
    """Size of the settings' number of BDPs on a path of this RTT."""
    bits = settings["buffer_bdp"] * parse(settings["rate"], BITS_PER_S) * parse(rtt, SECONDS)
    return f"{bits / 8:.0f}B"


def switched(settings: Mapping[str, Any], law: str, kind: str) -> Scenario:
    """A flow that leaves the domestic path for one of another delay or rate, and comes back.

    From each switch on the new path may lose everything for a while.
    """
    part, rtt, rate = settings["switch"], settings["domestic"], settings["rate"]
    other = (part["rtt"], rate) if kind == "delay" else (rtt, part["rate"])
    links = [
        NamedLink(
            name=name,
            from_="sender",
            to="receiver",
            rate=rate_,
            delay=f"{500 * parse(rtt_, SECONDS):g}ms",
            loss=settings["loss"],
            queue=Queue(size=buffer(settings, rtt)),
        )
        for name, rtt_, rate_ in (("domestic", rtt, rate), ("emulator", *other))
    ]
    changes = []
    for at_s, name in ((part["at_s"], "emulator"), (part["back_s"], "domestic")):
        changes.append(Change(at=f"{at_s}s", flow="test", route=(name,)))
        if part["outage_s"]:
            until_s = at_s + part["outage_s"]
            changes.append(Change(at=f"{at_s}s", link=name, loss=EVERYTHING))
            changes.append(Change(at=f"{until_s}s", link=name, loss=settings["loss"]))
    return (
        graph(
            *links,
            duration=f"{part['duration_s']:g}s",
            sample=settings["sample"],
            compat=settings["compat"],
        )
        .flow(
            system(settings, law),
            name="test",
            route=("domestic",),
            receive_window=part["window"],
            start="uniform(0s, 1s)",
        )
        .with_changes(*changes)
    )


def pairs(laws: Sequence[str]) -> list[Pair]:
    """Each two protocols once, and each with itself."""
    return [(one, other) for i, one in enumerate(laws) for other in laws[i:]]


def full_mbps(study: Study) -> float:
    """The rate of the link in Mbit/s."""
    return parse(study.settings["rate"], BITS_PER_S) / 1e6
