"""Open questions of the EVCP paper, and a comparison of its packets with its equations."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lfnlab import Scenario
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.metrics import convergence, goodput_bins
from lfnlab.statistics import interval
from lfnlab.theory import vcp as fluid

if TYPE_CHECKING:
    from lfnlab.results.runs import Run

PACKET_BITS = 12_000
#: A cycle of one flow: an eighth of the capacity, which grows by a packet each 100 ms per 100 ms.
CYCLE_S_PER_BPS = 104e-9


def two_flows(
    law: str,
    rate_bps: float,
    rtt_ms: int,
    *,
    newcomer: str,
    duration_s: float,
    queue: str = 'kind = "drop-tail"',
    router: str | None = 'kind = "vcp"',
) -> Scenario:
    """A first flow, and a second one that comes at ``newcomer``; a buffer of one BDP."""
    text = f"""
schema = 1
compat = "ns2"
duration = "{duration_s:g}s"
sample = "100ms"
[link]
rate = "{rate_bps:.0f}bit/s"
delay = "{rtt_ms // 2}ms"
queue = {{ {queue}, size = "1bdp" }}
{f"router = {{ {router} }}" if router else ""}
[[flow]]
law = "{law}"
start = "uniform(0s, 1s)"
[[flow]]
law = "{law}"
start = "{newcomer}"
"""
    return Scenario.from_toml(text, "study")


def windows(run: Run, flow: int) -> dict[int, float]:
    """Windows in packets by tenths of a second."""
    rows = run.table("flows")
    part = rows.filter(rows["flow"] == flow)
    return {round(10 * t): w for t, w in zip(part["t_s"], part["cwnd_seg"], strict=True)}


def decreases(run: Run, flow: int) -> list[tuple[float, float]]:
    """Times in s at which a window fell by a tenth or more, and what was left of it."""
    steps = pairwise(sorted(windows(run, flow).items()))
    return [
        (tenths / 10, after / before)
        for (_, before), (tenths, after) in steps
        if after < 0.9 * before
    ]


# The fluid model.


def judge_fluid(out: str) -> bool:
    """Prints packets beside the fluid; whether windows agree to 15 %, penalties to an epoch."""
    rate_bps, duration_s, epoch_s = 1e9, 800.0, 52.0
    good = True
    for law in ("vcp", "evcp"):
        scenario = two_flows(law, rate_bps, 100, newcomer="100s", duration_s=duration_s)
        (run,) = execute([Case(scenario)], out=out, jobs=1).runs
        pair = [
            fluid.Flow(start, fluid.Controller() if law == "evcp" else None) for start in (0.5, 100)
        ]
        course = fluid.course(pair, rate_bps / PACKET_BITS, 0.1, duration_s)
        worst = 0.0
        for flow, wet in enumerate(course.flows):
            dry = windows(run, flow)
            for begin in range(150, round(duration_s) - 52, 52):
                packets = statistics.fmean(
                    dry[tenths] for tenths in range(10 * begin, 10 * begin + 520)
                )
                model = statistics.fmean(wet.windows[100 * begin : 100 * begin + 5200])
                # Where a penalty falls is a matter of phase: judged below.
                if law == "vcp":
                    worst = max(worst, abs(packets / model - 1))
        link = run.summary["links"][0]
        used = utilization(run, Setting(rate_bps, 100))
        print(
            f"{law}: utilization {used:.3f}, drops {link['drops']}, "
            f"mean queue {link['mean_queue_s'] * 1e3:.3f} ms"
        )
        # 5 % of a BDP are 5 ms.
        good &= used > 0.9 and link["drops"] == 0 and link["mean_queue_s"] < 0.005
        if law == "vcp":
            print(f"  mean windows of epochs: at most {worst:.1%} from the fluid's")
            good &= worst < 0.15
            continue
        ours = [t for t, left in decreases(run, 0) if left < 0.8]
        theirs = course.flows[0].penalties_s
        print("  penalties of the first flow:", [round(t) for t in ours], "s")
        print("  of the fluid:               ", [round(t) for t in theirs], "s")
        good &= len(ours) == len(theirs)
        good &= all(abs(a - b) < epoch_s for a, b in zip(ours, theirs, strict=False))
    return good


# The search.


@dataclass(frozen=True)
class Setting:
    """A path."""

    rate_bps: float
    rtt_ms: int

    @property
    def cycle_s(self) -> float:
        """A cycle of one flow alone, from one decrease to the next; the same at any RTT."""
        return CYCLE_S_PER_BPS * self.rate_bps

    def __str__(self) -> str:
        return f"{self.rate_bps / 1e6:g} Mbit/s x {self.rtt_ms} ms"


SETTINGS = [Setting(50e6, 100), Setting(100e6, 40), Setting(100e6, 100), Setting(100e6, 200)]
#: N1, N2, s of S = W_max/s.
Candidate = tuple[int, int, int]
PAPER: Candidate = (2, 10, 32)
CANDIDATES = [
    *((n1, 10, s) for n1 in (1, 2, 3, 5) for s in (8, 16, 32, 64, 128)),
    *((2, n2, s) for n2 in (3, 5, 20) for s in (32, 64)),
]
#: When the first flow has filled the link, at any of the rates.
START_UP_S = 30
#: Phases of the first flow's cycle at which the newcomer comes: which decrease is the third.
PHASES = 16
#: Packets try so many of the best candidates that use no less of the link, with so many seeds.
BEST, SLACK, SEEDS = 2, 0.001, 4
#: Cycles after the newcomer's start; who has not converged by then counts with all of them.
CYCLES = 16


def converged_cycles(run: Run, setting: Setting) -> float:
    """Cycles from the second flow's start until it holds 90 % of the mean of both flows."""
    rows = run.table("flows")
    bins = goodput_bins(rows, bin_s=1.0)
    both = bins.pivot("flow", index="t_s", values="goodput_bps").sort("t_s").drop_nulls()
    start_s = rows.filter(rows["flow"] == 1)["t_s"][0]
    fair = (both["0"] + both["1"]) / 2
    found = convergence(both["t_s"], both["1"], fair, start_s=start_s, tolerance=0.1)
    return found.value / setting.cycle_s


def utilization(run: Run, setting: Setting) -> float:
    """Of the bottleneck, after the first flow's start-up."""
    rows = run.table("queues")
    sent = rows.filter((rows["link"] == 0) & (rows["t_s"] >= START_UP_S))
    seconds = sent["t_s"][-1] - sent["t_s"][0]
    bits = 8.0 * (sent["sent_bytes"][-1] - sent["sent_bytes"][0])
    return float(bits / (seconds * setting.rate_bps))


def of_fluid(candidate: Candidate | None, setting: Setting, phase: int) -> tuple[float, float]:
    """Cycles until the newcomer has 90 % of the mean, and utilization; no candidate is VCP."""
    start_s = START_UP_S + setting.cycle_s * phase / PHASES
    rtt_s, capacity_pps = setting.rtt_ms / 1e3, setting.rate_bps / PACKET_BITS
    controllers = [fluid.Controller(*candidate) if candidate else None for _ in range(2)]
    flows = [fluid.Flow(at, each) for at, each in zip((0.0, start_s), controllers, strict=True)]
    course = fluid.course(flows, capacity_pps, rtt_s, start_s + CYCLES * setting.cycle_s)
    first, second = (np.array(flow.windows)[:: round(1 / fluid.STEP_S)] for flow in course.flows)
    t_s = np.arange(len(first))
    found = convergence(t_s, second, (first + second) / 2, start_s=start_s, tolerance=0.1)
    used = (first + second)[t_s >= START_UP_S].mean() / rtt_s / capacity_pps
    return found.value / setting.cycle_s, float(used)


def label(candidate: Candidate | None) -> str:
    """How a candidate is called in the table."""
    if candidate is None:
        return "VCP"
    n1, n2, s = candidate
    return f"N1={n1} N2={n2} S=Wmax/{s}"


def show(
    title: str,
    found: dict[Candidate | None, list[list[tuple[float, float]]]],
) -> list[Candidate | None]:
    """Prints means with 95 % intervals, a column a setting, best first; the order."""
    print(title)
    print(" " * 24, *(f"{setting!s:26}" for setting in SETTINGS))
    mean = {
        candidate: statistics.fmean(cycles for cell in cells for cycles, _ in cell)
        for candidate, cells in found.items()
    }
    order = sorted(found, key=mean.__getitem__)
    for candidate in order:
        row = []
        for cell in found[candidate]:
            cycles, used = interval([x for x, _ in cell]), interval([u for _, u in cell])
            row.append(f"{cycles.mean:5.2f} +-{cycles.half:4.2f} {used.mean:.3f} +-{used.half:.3f}")
        print(f"{label(candidate):24}", *(f"{text:26}" for text in row), f"{mean[candidate]:.2f}")
    return order


def search(out: str) -> None:
    """Prints convergence and utilization of all candidates in the fluid, of some in packets."""
    wet = {
        candidate: [
            [of_fluid(candidate, setting, phase) for phase in range(PHASES)] for setting in SETTINGS
        ]
        for candidate in [None, *CANDIDATES]
    }
    order = show("fluid: cycles until the newcomer has 90 % of the mean, utilization", wet)
    used = {
        candidate: statistics.fmean(u for cell in cells for _, u in cell)
        for candidate, cells in wet.items()
    }
    harmless = [candidate for candidate in order if used[candidate] > used[PAPER] - SLACK]
    others = [candidate for candidate in harmless if candidate not in (None, PAPER)]
    tried = [None, PAPER, *others[:BEST]]
    dry: dict[Candidate | None, list[list[tuple[float, float]]]] = {}
    for candidate in tried:
        law = "evcp:n1={}:n2={}:s={}".format(*candidate) if candidate else "vcp"
        dry[candidate] = []
        for setting in SETTINGS:
            scenario = two_flows(
                law,
                setting.rate_bps,
                setting.rtt_ms,
                newcomer=f"uniform({START_UP_S}s, {START_UP_S + setting.cycle_s:g}s)",
                duration_s=START_UP_S + (CYCLES + 1) * setting.cycle_s,
            )
            runs = execute([Case(scenario)], seeds=SEEDS, out=out).runs
            measured = [(converged_cycles(run, setting), utilization(run, setting)) for run in runs]
            dry[candidate].append(measured)
    show("packets: the same", dry)


# Active queue management.

QUEUES = {
    "drop-tail": 'kind = "drop-tail"',
    "RED": 'kind = "red"',
    "CoDel": 'kind = "codel"',
    "PIE": 'kind = "pie"',
    "FQ-CoDel": 'kind = "fq-codel"',
}


def together(run: Run) -> float:
    """Share of the first flow's decreases that the second makes within 400 ms, after 60 s."""
    first, second = ([t for t, _ in decreases(run, flow) if t > 60] for flow in (0, 1))
    if not first:
        return math.nan
    return statistics.fmean(any(abs(t - other) <= 0.4 for other in second) for t in first)


def aqm(out: str) -> None:
    """Prints how often two flows decrease together under each queue, and what else becomes of them.

    VCP and EVCP alone and beside background of level 2, without which there is no queue; HSTCP.
    """
    path = Setting(100e6, 100)
    for law, router, level in (
        ("vcp", 'kind = "vcp"', 0),
        ("vcp", 'kind = "vcp", gamma = 1', 0),
        ("evcp", 'kind = "vcp"', 0),
        ("vcp", 'kind = "vcp"', 2),
        ("evcp", 'kind = "vcp"', 2),
        ("hstcp:ns2", None, 0),
    ):
        for name, queue in QUEUES.items():
            scenario = two_flows(
                law,
                path.rate_bps,
                path.rtt_ms,
                newcomer="30s",
                duration_s=300,
                queue=queue,
                router=router,
            )
            if level:
                scenario = scenario.with_background(level, long_flows=10)
            runs = execute([Case(scenario)], seeds=SEEDS, out=out).runs
            shared = interval([together(run) for run in runs])
            links = [run.summary["links"][0] for run in runs]
            dropped = statistics.fmean(link["drops"] for link in links)
            waits_ms = 1e3 * statistics.fmean(link["mean_queue_s"] for link in links)
            used = statistics.fmean(utilization(run, path) for run in runs)
            cycles = interval([converged_cycles(run, path) for run in runs])
            print(
                f"{law:10} {router or 'no router':26} level {level} {name:10} decreases together "
                f"{shared.mean:.2f} +-{shared.half:.2f}, drops {dropped:8.1f}, "
                f"mean queue {waits_ms:7.3f} ms, utilization {used:.3f}, "
                f"converged after {cycles.mean:.1f} +-{cycles.half:.1f} cycles"
            )
