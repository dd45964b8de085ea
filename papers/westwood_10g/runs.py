"""The runs of the study of Westwood+ on 10 Gbit/s, and what is measured of them.

Windows are in bytes of packets, as in the paper's figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from lfnlab import metrics
from lfnlab.experiment.plan import Case
from lfnlab.papers import study
from lfnlab.papers.study import system
from lfnlab.scenario.builder import dumbbell, graph
from lfnlab.scenario.elements import Burst, Change, Jitter, NamedLink, Queue, Udp
from lfnlab.scenario.quantity import BYTES, SECONDS, parse
from lfnlab.statistics import Interval, interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lfnlab.control_laws.prototype import Law
    from lfnlab.results.runs import Run

LAWS = ("reno", "westwood")
#: Those that meet the burst (W4, W5).
BURST = ("westwood", "westwood-s")
#: The hosts' limit of the window, bytes (Fig. 2).
PEAK = 2.5e8


@dataclass(frozen=True)
class Study(study.Study):
    """The runs of one choice of settings."""

    def runs(self, experiment: str, law: str) -> list[Run]:
        """The runs of an experiment with a law, by seed."""
        return self.having(experiment=experiment, law=law)

    def each(self, experiment: str, law: str, of: Callable[[Run], float]) -> Interval:
        """A number of each run, over the seeds."""
        return interval(self.values(experiment, law, of))

    def values(self, experiment: str, law: str, of: Callable[[Run], float]) -> list[float]:
        """A number of each run, by seed."""
        return [of(run) for run in self.runs(experiment, law)]

    @property
    def part(self) -> float:
        """The rates of this study as parts of the paper's: 1, and less in a quick one."""
        return parse(self.settings["single"]["window"], BYTES) / PEAK

    @property
    def packet_bytes(self) -> float:
        """Bytes of a packet."""
        return parse(self.settings["packet"], BYTES)

    def window(self, run: Run, start_s: float, end_s: float) -> NDArray[np.float64]:
        """Samples of the first flow's window in a span of time, at most the hosts' limit, bytes."""
        own = run.table("flows").filter(
            (pl.col("flow") == 0) & pl.col("t_s").is_between(start_s, end_s)
        )
        window = own["cwnd_seg"].to_numpy() * self.packet_bytes
        limited: NDArray[np.float64] = np.minimum(window, PEAK * self.part)
        return limited

    def goodput_bps(self, run: Run, start_s: float, end_s: float | None = None) -> float:
        """Goodput of the first flow in a span of time."""
        return metrics.goodput(run.table("flows"), start_s=start_s, end_s=end_s)[0]

    @property
    def spell_s(self) -> tuple[float, float]:
        """When the path of Figs. 2 to 5 loses packets."""
        single = self.settings["single"]
        start_s = float(single["losses_at_s"])
        return start_s, start_s + single["round_trips"] * parse(single["rtt"], SECONDS)

    def low_after(self, run: Run, end_s: float) -> float:
        """Smallest window from one to ten seconds after ``end_s``, bytes.

        A recovery takes two round trips, half a second. During it Linux's Westwood+ halves the
        window, which it sets by its estimate at the end.
        """
        return float(self.window(run, end_s + 1.0, end_s + 10.0).min())


def cases(settings: Mapping[str, Any]) -> list[Case]:
    """Every experiment with every seed."""
    seeds = settings["seeds"]
    todo = (
        ("losses", single, ("reno",), settings["single"]["seeds"]),
        ("losses", single, ("westwood",), seeds),
        ("three", three, LAWS, settings["three"]["seeds"]),
        ("burst", burst, BURST, settings["burst"]["seeds"]),
    )
    return [
        Case(
            make(settings, system(settings, law)).with_seed(seed),
            {"experiment": experiment, "law": law},
        )
        for experiment, make, laws, count in todo
        for law in laws
        for seed in range(1, count + 1)
    ]


def beside_cases(settings: Mapping[str, Any]) -> list[Case]:
    """The burst with other laws, which no claim is about."""
    own = settings["beside"]
    return [
        Case(burst(settings, law).with_seed(seed), {"experiment": "burst", "law": law})
        for law in own["laws"]
        for seed in range(1, own["seeds"] + 1)
    ]


def path(settings: Mapping[str, Any], jitter: Jitter | None = None, **top: Any) -> Any:
    """The sender's own link, which loses nothing, then the path, where the burst comes in."""
    rate, rtt_s = settings["single"]["rate"], parse(settings["single"]["rtt"], SECONDS)
    return graph(
        NamedLink(
            name="host",
            from_="sender",
            to="router",
            rate=rate,
            queue=Queue(size="1bdp"),
            jitter=jitter,
        ),
        NamedLink(
            name="path",
            from_="router",
            to="receiver",
            rate=rate,
            delay=f"{rtt_s / 2}s",
            queue=Queue(size=settings["buffer"]),
        ),
        **top,
    )


def flow_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings of every flow of the single-stream tests; starts differ from seed to seed.

    Slow start ends at the hosts' limit. Without ``from_limit`` it goes on as in today's Linux,
    where the window, though not what is under way, grows to twice that.
    """
    packets = int(parse(settings["single"]["window"], BYTES) / parse(settings["packet"], BYTES))
    made = {
        "packet": settings["packet"],
        "receive_window": f"{packets} packets",
        "start": "uniform(0s, 1s)",
    }
    if settings["single"].get("from_limit", True):
        made["initial_ssthresh"] = f"{packets} packets"
    return made


def single(settings: Mapping[str, Any], law: str | type[Law]) -> Any:
    """Figs. 2 to 5: one flow; the path loses packets for some round trips."""
    own = settings["single"]
    start_s = own["losses_at_s"]
    end_s = start_s + own["round_trips"] * parse(own["rtt"], SECONDS)
    return (
        path(settings, duration=own["duration"], sample=own["sample"])
        .flow(law, from_="sender", to="receiver", **flow_settings(settings))
        .with_changes(
            Change(at=f"{start_s}s", link="path", loss=own["loss"]),
            Change(at=f"{end_s}s", link="path", loss=0.0),
        )
    )


def burst(settings: Mapping[str, Any], law: str | type[Law]) -> Any:
    """Figs. 6 to 9: one flow, and UDP from another sender for some seconds.

    The sender's packets come with a host's jitter. Exactly as far apart as the router serves them
    they would always find room, and all losses would be the UDP's.
    """
    own = settings["burst"]
    stop_s = own["start_s"] + own["seconds"]
    jitter = Jitter(low="0s", high=own["jitter"])
    return (
        path(settings, jitter, duration=own["duration"], sample=own["sample"])
        .flow(law, from_="sender", to="receiver", **flow_settings(settings))
        .with_udp(
            Udp(
                name="burst",
                from_="router",
                to="receiver",
                packet=settings["packet"],
                bursts=(Burst(start=f"{own['start_s']}s", stop=f"{stop_s}s", rate=own["rate"]),),
            )
        )
    )


def three(settings: Mapping[str, Any], law: str | type[Law]) -> Any:
    """Figs. 11 to 16: three flows on a slower link."""
    own = settings["three"]
    return dumbbell(
        rate=own["rate"],
        rtt=own["rtt"],
        buffer=settings["buffer"],
        duration=own["duration"],
        warmup=own["warmup"],
        sample=own["sample"],
    ).flow(law, count=3, packet=settings["packet"], start="uniform(0s, 10s)")


def after_burst_s(study: Study) -> float:
    """Ten seconds after the end of the burst: what it did is done."""
    own = study.settings["burst"]
    return float(own["start_s"] + own["seconds"] + 10)


def left_ssthresh(study: Study, law: str) -> Interval:
    """The ssthresh that the burst leaves, bytes."""

    def of(run: Run) -> float:
        flow = run.table("flows").filter(
            (pl.col("flow") == 0) & (pl.col("t_s") >= after_burst_s(study))
        )
        return float(flow["ssthresh_seg"][0]) * study.packet_bytes

    return study.each("burst", law, of)


def goodput_after(study: Study, law: str) -> Interval:
    """Goodput after the burst, bit/s."""
    return interval(goodputs_after(study, law))


def goodputs_after(study: Study, law: str) -> list[float]:
    """Goodput after the burst of each run, bit/s."""
    return study.values("burst", law, lambda run: study.goodput_bps(run, after_burst_s(study)))


def per_flow(study: Study, law: str) -> Interval:
    """Mean goodput of one of the three flows, bit/s."""
    return study.each("three", law, mean_goodput_bps)


def mean_goodput_bps(run: Run) -> float:
    """Mean goodput of the flows of a run."""
    return float(np.mean(run.goodputs))


def swing(study: Study, law: str) -> Interval:
    """Coefficient of variation of a flow's window over time, mean of the three."""
    return interval(swings(study, law))


def swings(study: Study, law: str) -> list[float]:
    """The same of each run."""
    return study.values("three", law, window_cov)


def window_cov(run: Run) -> float:
    """Coefficient of variation of a flow's window after the warm-up, mean of the flows."""
    flows = run.table("flows").filter(pl.col("t_s") >= run.summary["warmup_s"])
    windows = [part["cwnd_seg"].to_numpy() for part in flows.partition_by("flow")]
    return float(np.mean([window.std() / window.mean() for window in windows]))


def window_mean(study: Study, law: str) -> Interval:
    """Mean window of the three flows, bytes."""
    return study.each(
        "three",
        law,
        lambda run: (
            study.packet_bytes
            * float(np.mean([flow["mean_cwnd_segments"] for flow in run.summary["flows"]]))
        ),
    )


def jain_after(run: Run, bin_s: float) -> NDArray[np.float64]:
    """Jain's index of the three flows in each bin after the warm-up."""
    start_s = run.summary["warmup_s"]
    over: NDArray[np.float64]
    over = metrics.jain_over_time(run.table("flows"), bin_s, start_s=start_s)["jain"].to_numpy()
    return over
