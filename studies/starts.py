"""Old slow starts beside new ones at one bottleneck: how long, how much is lost, who is harmed.

$ python -m studies.starts          run what build/starts has not yet; table, page and figures
$ python -m studies.starts --laws classic,rapid        a few slow starts only
$ python -m studies.starts --page   page and figures from the committed table
$ python -m studies.starts_linux    three cases on Linux in virtual time, beside the simulator

CUBIC with each slow start on twelve paths with three buffers, in three experiments: see
EXPERIMENTS. Five runs of each: RTTs of 0.95 to 1.05 of the path's where one flow is alone, starts
that differ elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import polars as pl

from lfnlab import dumbbell
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from studies.starts_page import page
from studies.study import Study

if TYPE_CHECKING:
    from lfnlab.results.runs import Run
    from lfnlab.scenario.builder import Scenario

LAW = "cubic"
OLD = ("classic", "limited", "hystart")
NEW = ("hystart++", "search", "rapid", "careful-resume")
RATES = {"10Gbit/s": 10e9, "1Gbit/s": 1e9, "100Mbit/s": 100e6}
RTTS_MS = (200, 100, 50, 10)
DEPTHS_BDP = (0.1, 1.0, 4.0)
FRAME_BYTES = 14
JUMBO = ("10Gbit/s",)
"""Rates whose packets have 9000 bytes, else 1500."""
RUNS = 5
SIZE_BDP = 10
"""Payload of a transfer, in BDPs: ten round trips of a full link."""
HEAD_START = 60
"""Round trips for which the old flow has the link alone, at least 5 s."""
WINDOW = 100
"""Round trips over which the harm to the old flow is measured, at least 5 s."""
CROWD, CROWD_BDP, CROWD_OVER = 50, 0.1, 10
"""Short flows, the payload of each in BDPs, and the round trips over which they start."""


@dataclass(frozen=True)
class Path:
    """A path with a buffer."""

    rate: str
    rtt_ms: int
    depth_bdp: float

    @property
    def rtt_s(self) -> float:
        """Round-trip time."""
        return self.rtt_ms / 1000

    @property
    def packet_bytes(self) -> int:
        """Size of an IP packet."""
        return 9000 if self.rate in JUMBO else 1500

    @property
    def bdp_packets(self) -> float:
        """Packets on the path."""
        return RATES[self.rate] * self.rtt_s / 8 / (self.packet_bytes + FRAME_BYTES)

    @property
    def buffer(self) -> str:
        """Size of the queue."""
        return f"{max(1, round(self.depth_bdp * self.bdp_packets))} packets"

    @property
    def factors(self) -> dict[str, Any]:
        """Columns of the table."""
        return {"rate": self.rate, "rtt_ms": self.rtt_ms, "depth_bdp": self.depth_bdp}

    def size(self, bdp: float) -> str:
        """Payload of so many BDPs."""
        return f"{max(3000, round(bdp * RATES[self.rate] * self.rtt_s / 8))}B"

    def ideal_s(self, bdp: float) -> float:
        """Time of a transfer at the rate of the link, and a round trip."""
        return (bdp + 1) * self.rtt_s

    def link(self, duration_s: float, warmup_s: float = 0.0) -> Scenario:
        """The dumbbell."""
        return dumbbell(
            rate=self.rate,
            rtt=f"{self.rtt_ms}ms",
            buffer=self.buffer,
            duration=f"{duration_s:.6f}s",
            warmup=f"{warmup_s:.6f}s",
            sample="off",
        )

    def begins(self, start: str) -> dict[str, Any]:
        """Keys of a flow with this slow start; Careful Resume knows the path."""
        keys: dict[str, Any] = {"slow_start": start, "packet": f"{self.packet_bytes}B"}
        if start == "careful-resume":
            keys["saved_window"] = f"{max(2, round(self.bdp_packets))} packets"
            keys["saved_rtt"] = f"{self.rtt_ms}ms"
        if start == "rapid":
            keys["pacing"] = True
        return keys


PATHS = tuple(
    Path(rate, rtt_ms, depth) for rate, rtt_ms, depth in product(RATES, RTTS_MS, DEPTHS_BDP)
)


def alone(path: Path, start: str) -> Iterator[Case]:
    """One transfer; five paths that differ by a fortieth of the RTT."""
    for i in range(RUNS):
        rtt_ms = path.rtt_ms * (0.95 + 0.025 * i)
        scenario = path.link(max(20.0, 150 * path.rtt_s)).flow(
            LAW, rtt=f"{rtt_ms:g}ms", size=path.size(SIZE_BDP), **path.begins(start)
        )
        yield Case(scenario, {"experiment": "alone", **path.factors, "start": start, "run": i})


def _neighbour(path: Path) -> tuple[Scenario, float]:
    """An old flow, which counts from the time when others come."""
    old_s = max(5.0, HEAD_START * path.rtt_s)
    return path.link(old_s + max(5.0, WINDOW * path.rtt_s), old_s).flow(
        LAW, name="old", packet=f"{path.packet_bytes}B"
    ), old_s


def beside(path: Path, start: str) -> Iterator[Case]:
    """A transfer beside an old flow."""
    scenario, old_s = _neighbour(path)
    for i in range(RUNS):
        at_s = old_s + i * path.rtt_s / 2
        flow = scenario.flow(
            LAW, start=f"{at_s:.6f}s", size=path.size(SIZE_BDP), **path.begins(start)
        )
        yield Case(flow, {"experiment": "beside", **path.factors, "start": start, "run": i})


def crowd(path: Path, start: str) -> Iterator[Case]:
    """Fifty short flows beside an old one, half of the link in ten round trips."""
    scenario, old_s = _neighbour(path)
    last_s = old_s + CROWD_OVER * path.rtt_s
    for i in range(RUNS):
        flows = scenario.flow(
            LAW,
            count=CROWD,
            start=f"uniform({old_s:.6f}s, {last_s:.6f}s)",
            size=path.size(CROWD_BDP),
            **path.begins(start),
        ).with_seed(1 + i)
        yield Case(flows, {"experiment": "crowd", **path.factors, "start": start, "run": i})


def solo(path: Path) -> Case:
    """The old flow without others."""
    scenario, _ = _neighbour(path)
    return Case(scenario, {"experiment": "solo", **path.factors, "start": "", "run": 0})


EXPERIMENTS: dict[str, Callable[[Path, str], Iterator[Case]]] = {
    "alone": alone,
    "beside": beside,
    "crowd": crowd,
}


def _path(run: Run) -> Path:
    """The path of a run."""
    of = run.factors
    return Path(str(of["rate"]), int(of["rtt_ms"]), float(of["depth_bdp"]))


def _row(run: Run, solo_bps: dict[Path, float]) -> dict[str, Any]:
    factors = dict(run.factors)
    path = _path(run)
    flows = run.summary["flows"]
    ideal_s = path.ideal_s(CROWD_BDP if factors["experiment"] == "crowd" else SIZE_BDP)
    ours = flows if factors["experiment"] == "alone" else flows[1:]
    times = sorted(
        flow["completion_s"] / ideal_s if flow["completion_s"] is not None else float("inf")
        for flow in ours
    )
    harm = None
    if factors["experiment"] != "alone":
        harm = round(1 - run.goodputs[0] / solo_bps[path], 4)
    median, late = times[len(times) // 2], times[int(0.95 * (len(times) - 1))]
    return {
        **factors,
        "time": round(median, 3) if median < float("inf") else None,
        "late": round(late, 3) if late < float("inf") else None,
        "lost_bdp": round(run.summary["links"][0]["drops"] / path.bdp_packets, 4),
        "harm": harm,
        "hash": run.summary["hash"],
    }


def run(starts: Sequence[str], out: FilePath) -> pl.DataFrame:
    """A row a run: experiment, path, slow start; times over the ideal, losses in BDPs, harm."""
    solos = execute([solo(path) for path in PATHS], out=out / "solo", jobs=2).runs
    alone_bps = {_path(each): each.goodputs[0] for each in solos}
    cases = [
        case
        for make, path, start in product(EXPERIMENTS.values(), PATHS, starts)
        for case in make(path, start)
    ]
    found = execute(cases, out=out / "runs", jobs=2, title="slow starts")
    return pl.DataFrame([_row(each, alone_bps) for each in found.runs], infer_schema_length=None)


STUDY = Study("starts", __doc__, run, page, OLD + NEW)


if __name__ == "__main__":
    STUDY.main()
