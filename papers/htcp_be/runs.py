"""The runs of the HTCP-BE study, and what is measured of them.

A run of each round-trip time and one seed make a *block*: the paper's three runs. A claim is about
the mean over the three, and its interval over the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from lfnlab import metrics
from lfnlab.experiment.plan import Case
from lfnlab.papers import study
from lfnlab.papers.study import system
from lfnlab.scenario.builder import dumbbell
from lfnlab.scenario.elements import OnOff, ShortFlows, Traffic, Udp
from lfnlab.scenario.quantity import BITS_PER_S, parse
from lfnlab.statistics import interval

if TYPE_CHECKING:
    from lfnlab.metrics import FirstPassage
    from lfnlab.results.runs import Run
    from lfnlab.scenario.builder import Scenario

FAST_RETRANSMIT, TIMEOUT = 0, 1
#: Laws whose parallel flows and newcomers claims are about.
PARALLEL = ("htcp", "htcp-be")
CONVERGING = ("reno", "hstcp", "scalable")
METRICS = ("goodput_bps", "cov", "utilization")
#: Load of the background by level, as a part of the rate.
LEVELS = (0.0, 0.1, 0.25, 0.4)
#: Directions of the background, and what of its load each has.
WAYS: tuple[tuple[Literal["forward", "reverse"], float], ...] = (("forward", 1.0), ("reverse", 0.5))


@dataclass(frozen=True)
class Study(study.Study):
    """The runs of one choice of what the paper does not say."""

    @property
    def laws(self) -> Sequence[str]:
        """The laws under test."""
        return list(self.settings["laws"])

    @property
    def levels(self) -> Sequence[int]:
        """The levels of background traffic."""
        return list(self.settings["levels"])

    def by_block(self, of: Callable[[Run], float | None], **factors: Any) -> list[float]:
        """Mean over the round-trip times of a number of each run, by block; what is None left out.

        A block without any is left out.
        """
        runs = sorted(self.having(**factors), key=lambda run: run.seed)
        blocks = [
            [value for run in block if (value := of(run)) is not None]
            for _, block in groupby(runs, key=lambda run: run.seed)
        ]
        return [sum(block) / len(block) for block in blocks if block]

    def ratios(self, of: Callable[[Run], float | None], one: str, other: str) -> list[float]:
        """A number of a run of one law over that of the other in the same run, by block.

        The mean over those runs of the block that have both.
        """
        blocks: dict[int, list[float]] = {}
        runs = (self.having(part="one flow", law=law) for law in (one, other))
        for a, b in zip(*runs, strict=True):
            if (x := of(a)) and (y := of(b)):
                blocks.setdefault(a.seed, []).append(x / y)
        return [sum(block) / len(block) for block in blocks.values()]

    @cached_property
    def _values(self) -> dict[tuple[str, int, str], list[float]]:
        return {
            (law, level, metric): self.by_block(
                lambda run, metric=metric: of_first(run, metric),  # type: ignore[misc]
                part="one flow",
                law=law,
                level=level,
            )
            for law in self.laws
            for level in self.levels
            for metric in METRICS
        }

    def values(self, law: str, level: int, metric: str) -> list[float]:
        """One value a block."""
        return self._values[law, level, metric]

    def mean(self, law: str, level: int, metric: str) -> float:
        """Mean over the blocks."""
        return interval(self.values(law, level, metric)).mean


def of_first(run: Run, metric: str) -> float:
    """A metric of the flow under test, or of the link."""
    if metric == "utilization":
        return float(run.summary["links"][0]["utilization"])
    flow: Mapping[str, Any] = run.summary["flows"][0]
    return float(flow[metric])


def cases(settings: Mapping[str, Any]) -> list[Case]:
    """One flow by laws x levels x blocks; parallel flows; newcomers."""
    made = [
        Case(
            loaded(base(settings, rtt, seed), settings, level).flow(
                system(settings, law), **flow_settings(settings)
            ),
            {"part": "one flow", "law": law, "level": level, "rtt": rtt},
        )
        for level in settings["levels"]
        for law in settings["laws"]
        for seed in seeds(settings)
        for rtt in settings["rtts"]
    ]
    part = settings["parallel"]
    made += [
        Case(
            loaded(base({**settings, **part}, rtt, seed), settings, part["level"]).flow(
                system(settings, law),
                count=part["flows"],
                start="uniform(0s, 1s)",
                **flow_settings(settings),
            ),
            {"part": "parallel", "law": law, "level": part["level"], "rtt": rtt},
        )
        for law in PARALLEL
        for seed in seeds(settings)
        for rtt in settings["rtts"]
    ]
    return made + newcomers(settings)


def loaded(path: Scenario, settings: Mapping[str, Any], level: int) -> Scenario:
    """The path with background traffic of a level, and half of it in reverse.

    ``background`` of the settings is "mix", short flows of five applications beside long ones;
    "UDP bursts", four sources that send and pause for 5 s on average; or "large flows", files of
    25 MB on average.
    """
    if settings["background"] == "mix":
        return path.with_background(level, long_flows=settings["long_flows"] if level else None)
    if not level:
        return path
    load_bps = LEVELS[level] * parse(settings["rate"], BITS_PER_S)
    if settings["background"] == "UDP bursts":
        # Each is silent half of the time.
        return path.with_udp(
            *(
                Udp(
                    direction=way,
                    on_off=OnOff(
                        sources=4, rate=f"{part * load_bps / 2:.0f}bit/s", burst="5s", idle="5s"
                    ),
                )
                for way, part in WAYS
            )
        )
    return path.with_traffic(
        *(
            Traffic(
                direction=way,
                receive_window="16MB",
                short_flows=ShortFlows(load=f"{part * load_bps:.0f}bit/s", mean="25MB"),
            )
            for way, part in WAYS
        )
    )


def newcomers(settings: Mapping[str, Any]) -> list[Case]:
    """Two flows of a law, the second after a while, on the longest path."""
    part, rtt, made = settings["newcomer"], settings["rtts"][-1], []
    for law in CONVERGING:
        for seed in seeds({**settings, **part}):
            first = base({**settings, **part}, rtt, seed).flow(
                system(settings, law), start="uniform(0s, 1s)", **flow_settings(settings)
            )
            both = first.flow(
                system(settings, law),
                **flow_settings(settings),
                start=f"uniform({part['after_s']}s, {part['after_s'] + 1}s)",
            )
            made.append(Case(both, {"part": "newcomer", "law": law, "level": 0, "rtt": rtt}))
    return made


def flow_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of every flow under test."""
    keys = ("packet", "delayed_ack")
    return {key: settings[key] for key in keys if key in settings}


def seeds(settings: Mapping[str, Any]) -> range:
    """One seed a block."""
    return range(1, settings["blocks"] + 1)


def base(settings: Mapping[str, Any], rtt: str, seed: int) -> Scenario:
    """The dumbbell without flows."""
    return dumbbell(
        rate=settings["rate"],
        rtt=rtt,
        buffer=settings["buffer"],
        duration=settings["duration"],
        warmup=settings["warmup"],
        sample=settings["sample"],
        compat=settings.get("compat", "ns2"),
        seed=seed,
    )


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


# What is measured.


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


def set_window(run: Run) -> float | None:
    """Mean window in segments that a fast retransmit sets; None without one."""
    windows = losses(run).filter(pl.col("kind") == FAST_RETRANSMIT)["ssthresh_seg"].mean()
    return windows if isinstance(windows, float) else None


def growth_per_s(run: Run) -> float | None:
    """Segments that the window gains per second between one fast retransmit and the next."""
    events = losses(run)
    gained = spent_s = 0.0
    for one, other in pairwise(events.iter_rows(named=True)):
        if one["kind"] == other["kind"] == FAST_RETRANSMIT:
            gained += other["cwnd_before_seg"] - one["ssthresh_seg"]
            spent_s += other["t_s"] - one["t_s"]
    return gained / spent_s if spent_s > 0 else None


def total_bps(run: Run) -> float:
    """Goodput of all flows under test."""
    return sum(run.goodputs)


def fairness(run: Run) -> float:
    """Jain's index of the flows under test."""
    return metrics.jain(run.goodputs)


def settled(run: Run) -> FirstPassage:
    """Time from the second flow's start until it has 90 % of the flows' mean for five seconds."""
    t_s, _, goodputs_bps = metrics.goodput_matrix(run.table("flows"), 1.0)
    both = ~np.isnan(goodputs_bps).any(axis=0)
    return metrics.convergence(
        t_s[both],
        goodputs_bps[1, both],
        goodputs_bps[:, both].mean(axis=0),
        start_s=run.summary["flows"][1]["start_s"],
    )
