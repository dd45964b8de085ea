"""The runs of the CW-HSTCP study, and what is measured of them.

A *share* is the part of the bottleneck's rate that a flow's packets take, retransmissions left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from lfnlab import metrics
from lfnlab.experiment.plan import Case
from lfnlab.papers import study
from lfnlab.scenario.builder import dumbbell
from lfnlab.scenario.elements import Background, Capture, NamedLink, Queue
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, parse

if TYPE_CHECKING:
    from lfnlab.results.runs import Run
    from lfnlab.scenario.builder import Scenario
    from lfnlab.scenario.elements import FlowSettings

FIVE_MS = (60, 80, 140, 200, 240)
THREE_MS = (80, 140, 200)
SCALABLE_MS = (120, 160, 240)
NINE_MS = (60, 80, 140, 160, 200)
C_OF = {"cw-hstcp:c5": 5, "cw-hstcp": 10, "cw-hstcp:c20": 20}
RIVALS = ("hstcp:ns2", "scalable", "reno")
SCALES_S = (1, 2, 5, 10, 25, 50)
BOTTLENECK = "bottleneck"
#: CW-HSTCP with blocks, and without.
BLOCKS = ("cw-hstcp", "cw-hstcp:unpaced")


@dataclass(frozen=True)
class Setup:
    """One experiment: the law under test, its flows' RTTs, the queue, the rate of its hosts."""

    law: str
    rtts_ms: tuple[int, ...]
    queue: str = "drop-tail"
    access: str = ""
    """Rate of the links between hosts and bottleneck; empty for none."""

    def factors(self) -> dict[str, str]:
        """As factors of a run."""
        rtts = "-".join(map(str, self.rtts_ms))
        access = self.access or "none"
        return {"law": self.law, "rtts_ms": rtts, "queue": self.queue, "access": access}


def setups(settings: Mapping[str, Any]) -> dict[Setup, int]:
    """The experiments behind claims, with the number of seeds of each."""
    seeds, more = settings["seeds"], settings["more_seeds"]
    return {
        **{Setup("hstcp:ns2", FIVE_MS, queue): seeds for queue in ("drop-tail", "red")},
        Setup("scalable", SCALABLE_MS): more["scalable"],
        **{Setup(law, THREE_MS): more.get(law, seeds) for law in (*C_OF, *RIVALS)},
        Setup("cw-hstcp", NINE_MS): more["five"],
        Setup("cw-hstcp:unpaced", THREE_MS): seeds,
        Setup("cw-hstcp", FIVE_MS): seeds,
        **{hosted(settings, law): settings["access"]["seeds"] for law in BLOCKS},
    }


def hosted(settings: Mapping[str, Any], law: str) -> Setup:
    """The three flows, with hosts whose links are as fast as the bottleneck."""
    return Setup(law, THREE_MS, access=settings["rate"])


@dataclass(frozen=True)
class Study(study.Study):
    """The runs of every experiment with one choice of settings."""

    def runs(self, setup: Setup) -> list[Run]:
        """The runs of an experiment, by seed."""
        return self.having(**setup.factors())

    def shares(
        self, setup: Setup, start_s: float | None = None, end_s: float | None = None
    ) -> list[list[float]]:
        """For each flow under test its share in each run, percent; from the warm-up to the end."""
        by_run = [shares(run, len(setup.rtts_ms), start_s, end_s) for run in self.runs(setup)]
        return [list(of_flow) for of_flow in zip(*by_run, strict=True)]

    def jain(self, setup: Setup) -> list[float]:
        """Jain's index of the flows under test in each run."""
        return [metrics.jain(run) for run in zip(*self.shares(setup), strict=True)]


def shares(
    run: Run, count: int, start_s: float | None = None, end_s: float | None = None
) -> list[float]:
    """Shares of the first ``count`` flows, percent."""
    summary = run.summary
    rate_bps = summary["links"][0]["rate_bps"]
    start_s = summary["warmup_s"] if start_s is None else start_s
    goodputs = metrics.goodput(run.table("flows"), start_s=start_s, end_s=end_s)
    return [
        100.0 * goodputs[flow["id"]] * flow["wire_bytes"] / flow["segment_bytes"] / rate_bps
        for flow in summary["flows"][:count]
    ]


def cases(settings: Mapping[str, Any]) -> list[Case]:
    """Every experiment behind a claim with every seed."""
    return setup_cases(settings, setups(settings))


def setup_cases(settings: Mapping[str, Any], wanted: Mapping[Setup, int]) -> list[Case]:
    """Experiments, each with so many seeds."""
    return [
        Case(scenario(settings, setup).with_seed(seed), setup.factors())
        for setup, seeds in wanted.items()
        for seed in range(1, seeds + 1)
    ]


def scenario(settings: Mapping[str, Any], setup: Setup) -> Scenario:
    """The paper's dumbbell: the flows under test first, then standard TCP and short flows."""
    rate, background = settings["rate"], settings["background"]
    made = dumbbell(
        rate=rate,
        rtt=background["rtt"],
        buffer="",
        duration=settings["duration"],
        warmup=settings["warmup"],
        sample=settings["sample"],
        compat=settings.get("compat", "ns2"),
    )
    # Rate times the delay of the bottleneck link, as the paper has it.
    held_bits = parse(rate, BITS_PER_S) * parse(settings["delay"], SECONDS)
    packets = round(held_bits / (8 * parse(settings["packet"], BYTES)))
    kind, _, marks = setup.queue.partition(" with ")
    queue = Queue(
        kind=kind,  # type: ignore[arg-type]
        size=f"{packets} packets",
        preset="gentle" if kind == "red" else None,
        ecn=True if marks else None,
    )
    common: FlowSettings = {"start": "uniform(0s, 20s)", "packet": settings["packet"]}
    if marks:
        common["ecn"] = True
    if setup.access:
        made = access_links(made, setup, queue, settings)
    else:
        assert made.link is not None
        made = replace(made, link=replace(made.link, delay=settings["delay"], queue=queue))
    own: FlowSettings = {**common, "receive_window": settings["receive_window"]}
    if setup.access:
        common |= {"from_": "near", "to": "far"}
    for number, rtt_ms in enumerate(setup.rtts_ms, 1):
        if setup.access:
            own |= {"from_": f"host{number}", "to": "far"}
        made = made.flow(study.system(settings, setup.law), rtt=f"{rtt_ms}ms", **own)
    made = made.flow("reno", rtt=background["rtt"], **{**common, "count": background["flows"]})
    if setup.rtts_ms == THREE_MS and setup.law.startswith("cw-hstcp"):
        end_s = parse(settings["duration"], SECONDS)
        of = BOTTLENECK if setup.access else "forward"
        made = made.with_capture(
            Capture(links=(of,), from_=f"{end_s - settings['recording']['seconds']}s")
        )
    if not background["level"]:
        return made
    if setup.access:
        crowd = Background(level=background["level"], long_flows=0, from_="near", to="far")
        return replace(made, background=crowd)
    return made.with_background(background["level"], long_flows=0)


def access_links(
    made: Scenario, setup: Setup, queue: Queue, settings: Mapping[str, Any]
) -> Scenario:
    """The path as a graph: each flow under test comes over a link of its own host.

    A host's queue has room for the largest window, so no segment is lost there. Standard TCP and
    short flows stand for many hosts, and begin at the bottleneck.
    """
    link = NamedLink(
        name=BOTTLENECK,
        from_="near",
        to="far",
        rate=settings["rate"],
        delay=settings["delay"],
        queue=queue,
    )
    hosts = tuple(
        NamedLink(
            name=f"access{number}",
            from_=f"host{number}",
            to="near",
            rate=setup.access,
            queue=Queue(size=settings["receive_window"]),
        )
        for number in range(1, len(setup.rtts_ms) + 1)
    )
    return replace(made, link=None, links=(link, *hosts))


def exponents(study: Study, setup: Setup) -> list[float]:
    """E of throughput ratio = (RTT ratio)^E of each run, between the shortest and longest RTT."""
    flows = study.shares(setup)
    rtt_ratio = setup.rtts_ms[-1] / setup.rtts_ms[0]
    return [
        math.log(short / long) / math.log(rtt_ratio)
        for short, long in zip(flows[0], flows[-1], strict=True)
    ]


def windows(run: Run, count: int) -> list[float]:
    """Mean windows of the first flows, segments."""
    return [flow["mean_cwnd_segments"] or math.nan for flow in run.summary["flows"][:count]]


def background_share(run: Run, count: int) -> float:
    """Share of the bottleneck used by other traffic than the flows under test, percent."""
    return float(100.0 * run.summary["links"][0]["utilization"] - sum(shares(run, count)))


def dropped(run: Run) -> float:
    """Part of the packets of all flows that the bottleneck dropped, from the warm-up on.

    The loss of the first slow starts is no part of the steady state.
    """
    link = run.summary["links"][0]
    return link["drops"] / link["arrivals"]


def background_again(run: Run, count: int) -> float:
    """Part of the segments of standard TCP that was sent again, from the warm-up on.

    Each that is dropped is sent again, and some that are not: so its loss rate is at most that.
    """
    flow = run.summary["flows"][count]
    counters = (
        run.table("flows")
        .filter((pl.col("flow") >= count) & (pl.col("t_s") >= run.summary["warmup_s"]))
        .group_by("flow")
        .agg(
            (pl.col(name).max() - pl.col(name).min()) for name in ("retransmits", "delivered_bytes")
        )
    )
    again, delivered_bytes = (
        int(counters[name].sum()) for name in ("retransmits", "delivered_bytes")
    )
    return again / (again + delivered_bytes / flow["segment_bytes"])


@dataclass(frozen=True)
class Row:
    """A row of Table 3, run by run: percentages, Jain's index, losses from the warm-up on."""

    flows: list[list[float]]
    background: list[float]
    jain: list[float]
    dropped: list[float]
    again: list[float]

    @property
    def totals(self) -> list[float]:
        """Of the flows under test together."""
        return [sum(run) for run in zip(*self.flows, strict=True)]


def rows(study: Study) -> dict[int, Row]:
    """Table 3, by c."""
    made = {}
    for law, c in C_OF.items():
        setup = Setup(law, THREE_MS)
        runs = study.runs(setup)
        made[c] = Row(
            study.shares(setup),
            [background_share(run, 3) for run in runs],
            study.jain(setup),
            [dropped(run) for run in runs],
            [background_again(run, 3) for run in runs],
        )
    return made


def scales(study: Study) -> tuple[int, ...]:
    """Time scales of Fig. 7 that the runs are long enough for."""
    end_s, start_s = (parse(study.settings[key], SECONDS) for key in ("duration", "warmup"))
    return tuple(scale for scale in SCALES_S if 3 * scale <= end_s - start_s)


def drops(run: Run) -> int:
    """Packets of all flows that the bottleneck dropped, from the warm-up on."""
    return run.summary["links"][0]["drops"]


def jain_at(study: Study, law: str, scale_s: float) -> list[float]:
    """Mean over time of Jain's index in windows of ``scale_s``, of each run."""
    values = []
    for run in study.runs(Setup(law, THREE_MS)):
        flows = run.table("flows").filter(pl.col("flow") < len(THREE_MS))
        over = metrics.jain_over_time(flows, scale_s, start_s=run.summary["warmup_s"])
        values.append(float(over["jain"].mean() or math.nan))  # type: ignore[arg-type]
    return values


def burst(run: Run, count: int, within_ms: int) -> float:
    """Most segments of one flow under test that come to the bottleneck within a time."""
    recorded = run.table("packets")
    assert recorded.height == run.summary["captured_rows"], "the recording ends too early"
    packets = recorded.filter(
        (pl.col("point") == 0) & (pl.col("kind") == 0) & (pl.col("flow") < count)
    )
    bins = packets.group_by("flow", pl.col("t_ps") // (within_ms * 10**9)).len()
    return float(bins["len"].max() or 0)  # type: ignore[arg-type]
