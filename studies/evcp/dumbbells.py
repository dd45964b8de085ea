"""The scenarios of the EVCP paper under VCP, EVCP and XCP: a table of the aims.

Names what misses the aims: utilization over 90 %, no drops, a mean queue under 5 % of a BDP.
``docs/router.md`` has the results, and the cause of each miss.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab import Scenario
from lfnlab.analysis.table import markdown, markdown_row
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.metrics import FirstPassage, convergence, goodput_bins
from studies.evcp.questions import decreases

if TYPE_CHECKING:
    from lfnlab.results.runs import Run

ROUTER_OF = {"vcp": 'kind = "vcp"', "evcp": 'kind = "vcp"', "xcp": 'kind = "xcp"'}
#: Start-up: the first flows come within 10 s and VCP takes 29 s at 1 Gbit/s.
WARMUP_S = 40
HEADINGS = (
    "scenario",
    "law",
    "utilization",
    "drops",
    "queue",
    "decreases at",
    "last flow",
    "misses",
)
SAMPLE_S = 0.1


@dataclass(frozen=True)
class Dumbbell:
    """A dumbbell of the paper's section 5; packets of 1500 bytes, a buffer of one BDP.

    The paper gives neither the amount of background nor how long it simulated: level 1 is 10 % of
    the link in short flows, half of that in reverse, besides ten flows capped at 20 packets.
    """

    rate_mbps: float
    #: When flows start: those at 0 come within 10 s.
    starts_s: tuple[int, ...]
    duration_s: int
    #: RTTs of the flows in turn.
    rtts_ms: tuple[int, ...] = (100,)
    #: As many flows on the way back, from the first second on.
    reverse: bool = False
    level: int = 1
    long_flows: int = 10
    #: VCP's router with gamma at 0.98, not as its first author's code for ns-2 has it.
    fixed_gamma: bool = False

    def __str__(self) -> str:
        rtts = ", ".join(str(rtt) for rtt in self.rtts_ms)
        beside = "" if self.level or self.long_flows else ", no background"
        return f"{self.rate_mbps:g} Mbit/s, {rtts} ms, {len(self.starts_s)} flows{beside}"

    @property
    def mean_rtt_s(self) -> float:
        """The round trip that BDPs count with."""
        return statistics.fmean(self.rtts_ms) / 1e3

    def scenario(self, law: str) -> Scenario:
        """All flows under ``law``, and the routers that it needs."""
        author = law != "xcp" and not self.fixed_gamma
        router = ROUTER_OF[law] + (', compat = "author"' if author else "")
        text = f"""
schema = 1
compat = "ns2"
duration = "{self.duration_s}s"
warmup = "{WARMUP_S}s"
sample = "{SAMPLE_S}s"
[link]
rate = "{self.rate_mbps:g}Mbit/s"
delay = "{min(self.rtts_ms) // 2}ms"
queue = {{ size = "{round(self.rate_mbps * 1e6 * self.mean_rtt_s / 12_000)} packets" }}
router = {{ {router} }}
[background]
level = {self.level}
long_flows = {self.long_flows}
"""
        for number, start_s in enumerate(self.starts_s):
            start = f"{start_s}s" if start_s else "uniform(0s, 10s)"
            rtt_ms = self.rtts_ms[number % len(self.rtts_ms)]
            text += f'[[flow]]\nlaw = "{law}"\nrtt = "{rtt_ms}ms"\nstart = "{start}"\n'
            if self.reverse:
                text += (
                    f'[[flow]]\nlaw = "{law}"\nrtt = "{rtt_ms}ms"\ndirection = "reverse"\n'
                    'start = "uniform(0s, 1s)"\n'
                )
        return Scenario.from_toml(text, str(self))


def _one_by_one(flows: int, together: int, each_s: int) -> tuple[int, ...]:
    return tuple(each_s * (number // together) for number in range(flows))


def _staircase(rate_mbps: float, level: int, long_flows: int) -> Dumbbell:
    """Figures 8 and 9: flows of unequal RTTs one after the other."""
    rtts_ms, starts_s = (40, 50, 60, 70, 80), _one_by_one(5, 1, 100)
    return Dumbbell(rate_mbps, starts_s, 600, rtts_ms, True, level, long_flows)


DUMBBELLS = [
    *(Dumbbell(1000, (0,) * (flows - 1) + (100,), 400) for flows in (2, 5, 10)),
    *(Dumbbell(rate_mbps, (0, 100), 400) for rate_mbps in (100, 250, 500)),
    # Figure 8 is "the same as" one of the VCP paper, and names no background, as Figure 9 does.
    *(_staircase(rate_mbps, 0, 0) for rate_mbps in (45, 120)),
    _staircase(250, 1, 10),
    *(Dumbbell(rate_mbps, _one_by_one(10, 2, 200), 1000) for rate_mbps in (1400, 3000)),
]


@dataclass(frozen=True)
class Outcome:
    """The bottleneck after the start-up, for which the paper has aims."""

    utilization: float
    drops: int
    #: Mean wait over the round trip: a share of a BDP.
    queue: float

    @property
    def misses(self) -> list[str]:
        """The aims that are missed."""
        met = {
            "utilization": self.utilization > 0.9,
            "drops": self.drops == 0,
            "queue": self.queue < 0.05,
        }
        return [name for name, well in met.items() if not well]


def outcome(run: Run, dumbbell: Dumbbell) -> Outcome:
    """Measures a run."""
    link = run.summary["links"][0]
    wait = link["mean_queue_s"] / dumbbell.mean_rtt_s
    return Outcome(link["utilization"], link["drops"], wait)


def load_before_decreases(run: Run) -> float:
    """Mean share of the link that was in use in the second before the first flow's decreases."""
    table = run.table("queues")
    sent = table.filter((table["link"] == 0) & (table["t_s"] >= WARMUP_S))
    t_s, sent_bits = sent["t_s"].to_numpy(), 8.0 * sent["sent_bytes"].to_numpy()
    # A decrease is seen in the sample after it.
    ends_s = np.array([t - SAMPLE_S for t, _ in decreases(run, 0) if t > WARMUP_S + 2])
    before = np.interp(ends_s, t_s, sent_bits) - np.interp(ends_s - 1, t_s, sent_bits)
    return float(np.mean(before) / run.summary["links"][0]["rate_bps"])


def newcomer_s(run: Run) -> FirstPassage:
    """Seconds from the last flow's start until it holds 90 % of the mean of all."""
    flows = {f["id"]: f["start_s"] for f in run.summary["flows"] if f["direction"] == "forward"}
    last, start_s = max(flows.items(), key=lambda flow: flow[1])
    rows = run.table("flows")
    bins = goodput_bins(rows.filter(rows["flow"].is_in(list(flows))), bin_s=2.0, start_s=start_s)
    wide = bins.pivot("flow", index="t_s", values="goodput_bps").sort("t_s")
    fair = wide.drop("t_s").mean_horizontal()
    return convergence(wide["t_s"], wide[str(last)], fair, start_s=start_s, tolerance=0.1)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which scenarios, with what background."""
    parser.add_argument("--only", default="", help="scenarios whose title contains this")
    parser.add_argument("--level", type=int, help="background of this level in all scenarios")
    parser.add_argument("--long-flows", type=int, help="so many capped flows in all scenarios")
    parser.add_argument("--fixed-gamma", action="store_true", help="VCP's default router")
    parser.add_argument("--seeds", type=int, default=1, help="so many runs of each, a row each")


def show(asked: argparse.Namespace) -> None:
    """Runs the scenarios and prints a row each."""
    given = {"level": asked.level, "long_flows": asked.long_flows}
    said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    print(*markdown(HEADINGS, ()), sep="\n")
    for dumbbell in (
        replace(dumbbell, fixed_gamma=asked.fixed_gamma, **said) for dumbbell in DUMBBELLS
    ):
        if asked.only not in str(dumbbell):
            continue
        for law in ROUTER_OF:
            case = Case(dumbbell.scenario(law))
            for run in execute([case], seeds=asked.seeds, out=asked.out, jobs=1).runs:
                found = outcome(run, dumbbell)
                filled = "" if law == "xcp" else f"{load_before_decreases(run):.3f}"
                cells = (
                    str(dumbbell),
                    law,
                    f"{found.utilization:.3f}",
                    str(found.drops),
                    f"{found.queue:.1%} of a BDP",
                    filled,
                    f"{newcomer_s(run)} s",
                    ", ".join(found.misses) or "none",
                )
                print(markdown_row(cells), flush=True)
