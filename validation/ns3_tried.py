"""ns-3's rules in the laboratory's own engine, where no model of one flow tells what they do.

$ python -m validation tried     run both; rewrite validation/reference/ns3_tried.json

Laws in Python replace ours: what ns-3 does was found from outside, see :mod:`.ns3_rules`. With
several flows two things come besides, which no law decides. ns-3 has no RACK, so that the loss of a
retransmission waits for a timeout; with ``compat = "ns2"`` ours does the same. And what the ACK
after a timeout acknowledges counts whole in ns-3's slow start, so that the window jumps; that is
counted here, and has no counterpart.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from dataclasses import dataclass, fields, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np

import lfnlab
from lfnlab.analysis import sawtooth
from lfnlab.experiment.run import execute
from lfnlab.scenario.builder import Scenario
from lfnlab.scenario.elements import Link, Queue

from . import ns, ns3, ours
from .analyse import measure
from .ns3 import PAYLOAD_B

if TYPE_CHECKING:
    from lfnlab import Ack, Loss

    from .reference import Measured
    from .scenarios import Run

FILE = FilePath(__file__).with_name("reference") / "ns3_tried.json"
#: The figures that the rules are to explain.
FIGURES = ("mean_window_segments", "mean_rtt_s", "drops_per_s", "jain", "period_long_s")
#: A jump: from a timeout to so many times ssthresh between two samples. Its drops come so soon.
_JUMP, _SOON_S = 1.3, 0.6
_LEAST_SEGMENTS = 2.0


class Reno(lfnlab.Law):
    """A segment a round trip, and a half; the ACK that ends recovery counts whole."""

    def on_ack(self, n: int, ack: Ack) -> None:
        """Grow."""
        self.cwnd += n / self.cwnd

    def on_open(self, ack: Ack) -> None:
        """Count the ACK that ends recovery."""
        self.on_ack(ack.acked, ack)

    def on_loss(self, loss: Loss) -> None:
        """Cut."""
        self.ssthresh = max(self.cwnd / 2, _LEAST_SEGMENTS)


class Scalable(Reno):
    """A segment every 50 ACKs; seven eighths of what is in flight, three less."""

    def __init__(self) -> None:
        self.acks = 0

    def on_ack(self, n: int, ack: Ack) -> None:
        """Grow."""
        each = min(50, math.floor(self.cwnd))
        self.acks += n
        self.cwnd += self.acks // each
        self.acks %= each

    def on_loss(self, loss: Loss) -> None:
        """Cut."""
        self.acks = 0
        self.ssthresh = max((self.cwnd - 3) * 7 / 8, _LEAST_SEGMENTS)


class Bic(Reno):
    """Linux's BIC with ns-3's constants, and without its allowance for delayed ACKs."""

    def __init__(self) -> None:
        self.acks = 0
        self.last_max = 0.0

    def _each(self) -> int:
        """ACKs that bring a segment."""
        whole, coefficient, most, smooth_part = math.floor(self.cwnd), 4, 16, 5
        distance = math.ceil(self.last_max - whole) // coefficient
        over = math.floor(whole - self.last_max)
        if whole < self.last_max and distance > 1:
            each = whole // min(distance, most)
        elif whole < self.last_max or over < coefficient:
            each = whole * smooth_part // coefficient
        elif over < most * (coefficient - 1):
            each = whole * (coefficient - 1) // over
        else:
            each = whole // most
        return 1 + (each if self.last_max else min(each, 20))

    def on_ack(self, n: int, ack: Ack) -> None:
        """Grow by one segment at most."""
        self.acks += n
        if self.acks >= self._each():
            self.acks = 0
            self.cwnd += 1

    def on_loss(self, loss: Loss) -> None:
        """Cut, and set the target of the search."""
        self.last_max = self.cwnd if self.cwnd >= self.last_max else 0.8 * self.cwnd
        self.ssthresh = max(0.8 * self.cwnd, _LEAST_SEGMENTS)


class Cubic(Reno):
    """CUBIC without the window of Reno beside it."""

    def __init__(self) -> None:
        self.acks = 0.0
        self.last_max = 0.0
        self.since_s: float | None = None
        self.origin = self.k_s = 0.0

    def on_ack(self, n: int, ack: Ack) -> None:
        """Grow on the cubic, by half a segment an ACK at most."""
        if self.since_s is None:
            self.since_s, self.acks = self.now_s, 0.0
            self.origin = max(self.cwnd, self.last_max)
            self.k_s = math.cbrt((self.origin - self.cwnd) / 0.4)
        t_s = self.now_s + (ack.min_rtt_s or 0.0) - self.since_s
        missing = self.origin + 0.4 * (t_s - self.k_s) ** 3 - self.cwnd
        each = self.cwnd / missing if missing > 0 else 100 * self.cwnd
        each = max(2.0, each if self.last_max else min(each, 20.0))
        self.acks += n
        self.cwnd += self.acks // each
        self.acks %= each

    def on_loss(self, loss: Loss) -> None:
        """Cut; the next epoch begins with the next ACK."""
        self.last_max = self.cwnd * (1 if self.cwnd >= self.last_max else 0.85)
        self.since_s = None
        self.ssthresh = max(0.7 * self.cwnd, _LEAST_SEGMENTS)


class Htcp(lfnlab.Law):
    """H-TCP whose alpha is of bytes an ACK, besides Reno's; it keeps a half."""

    def __init__(self) -> None:
        self.since_s = 0.0
        self.share = 2.0

    def on_ack(self, n: int, ack: Ack) -> None:
        """Grow."""
        late_s = max(0.0, self.now_s - self.since_s - 1)
        alpha = self.share * (1 + 10 * late_s + late_s**2 / 4)
        for _ in range(n):
            self.cwnd += math.floor(PAYLOAD_B / self.cwnd + alpha) / PAYLOAD_B

    def on_loss(self, loss: Loss) -> None:
        """Cut."""
        self.since_s, self.share = self.now_s, 1.0
        self.ssthresh = max((self.cwnd - 3) / 2, _LEAST_SEGMENTS)


class Westwood(Reno):
    """Reno's growth in whole bytes an ACK, down to the bandwidth of a round trip, filtered."""

    def __init__(self) -> None:
        self.rate_pps = 0.0
        self.begin: tuple[float, int] | None = None

    def on_sample(self, ack: Ack) -> None:
        """A sample of the bandwidth each round trip."""
        if self.begin is None:
            self.begin = (self.now_s, ack.delivered)
        elif self.now_s - self.begin[0] >= (ack.rtt_s or math.inf):
            sample_pps = (ack.delivered - self.begin[1]) / (self.now_s - self.begin[0])
            self.rate_pps = 0.9 * self.rate_pps + 0.1 * sample_pps if self.rate_pps else sample_pps
            self.begin = (self.now_s, ack.delivered)

    def on_ack(self, n: int, ack: Ack) -> None:
        """Grow."""
        for _ in range(n):
            self.cwnd += math.floor(PAYLOAD_B / self.cwnd) / PAYLOAD_B

    def on_loss(self, loss: Loss) -> None:
        """Cut."""
        self.ssthresh = max(self.rate_pps * (loss.min_rtt_s or 0.0), _LEAST_SEGMENTS)


LAWS: dict[str, type[lfnlab.Law]] = {
    "reno": Reno,
    "scalable": Scalable,
    "bic": Bic,
    "cubic": Cubic,
    "htcp": Htcp,
    "westwood": Westwood,
}
RUNS = [
    run
    for run in ns3.RUNS
    if run.law in LAWS and (run.path.flows > 1 or run.tag == "bic-20m-40ms-1bdp")
]


@dataclass(frozen=True)
class Timeouts:
    """Counts of timeouts and their effects after start-up."""

    timeouts: int
    jumps: int
    drops: int
    drops_after_jumps: int


def timeouts(samples: FilePath, settle_s: float) -> Timeouts:
    """Those of ns-3, from its samples."""
    columns = ns.columns(samples)
    times_s = np.unique(columns["time_s"])
    entered, jumps, soon = 0, 0, np.zeros(times_s.size, dtype=bool)
    drops = np.zeros(times_s.size)
    for flow in np.unique(columns["flow"]):
        of = {name: values[columns["flow"] == flow] for name, values in columns.items()}
        lost, settled = of["state"] == ns3.LOSS, of["time_s"][1:] >= settle_s
        entered += int(np.sum(lost[1:] & ~lost[:-1] & settled))
        jump = lost[:-1] & (of["cwnd"][1:] > _JUMP * of["ssthresh"][1:]) & settled
        jump &= of["cwnd"][1:] > _JUMP * of["cwnd"][:-1]
        jumps += int(np.sum(jump))
        for at_s in of["time_s"][1:][jump]:
            soon |= (times_s >= at_s) & (times_s < at_s + _SOON_S)
        drops[np.searchsorted(times_s, of["time_s"])] = of["drops"]
    new = np.diff(drops, prepend=0.0)[times_s >= settle_s]
    return Timeouts(entered, jumps, int(new.sum()), int(new[soon[times_s >= settle_s]].sum()))


def _with_rule(run: Run) -> Scenario:
    """The scenario of ``run`` with ns-3's law; several flows also wait for timeouts."""
    scenario = Scenario.from_toml(ours.scenario("ns3", run))
    law = LAWS[run.law]
    if run.path.flows == 1:
        return replace(scenario, flows=tuple(replace(flow, law=law) for flow in scenario.flows))
    # This mode has no framing, counts the packet in service, and begins with two segments.
    packet = f"{run.path.packet_b}B"
    return replace(
        scenario,
        compat="ns2",
        link=Link(
            rate=f"{run.path.rate_bps / 1e6:g}Mbit/s",
            queue=Queue(kind="drop-tail", size=f"{run.path.buffer_packets} packets"),
        ),
        flows=tuple(
            replace(flow, law=law, packet=packet, initial_window="10 packets")
            for flow in scenario.flows
        ),
    )


def figures(run: Run) -> tuple[Measured, int]:
    """Figures of ``run`` with ns-3's rules, and the timeouts of all replicas."""
    replicas, timed_out = [], 0
    with tempfile.TemporaryDirectory() as store:
        for replica in run.replicas:
            [result] = execute(_with_rule(replica), out=store, jobs=1).runs
            replicas.append([sawtooth.of_run(result, flow) for flow in range(replica.path.flows)])
            timed_out += sum(flow["timeouts"] for flow in result.summary["flows"])
    return measure(replicas, run.path.settle_s), timed_out


def write(raw: FilePath) -> FilePath:
    """Runs both, and writes what they gave; ns-3's samples go to ``raw``."""
    lines = []
    for run in RUNS:
        print(run.tag, file=sys.stderr)
        measured, timed_out = figures(run)
        every = [timeouts(ns3.simulate(it, raw), run.path.settle_s) for it in run.replicas]
        theirs = {
            field.name: sum(getattr(it, field.name) for it in every) for field in fields(Timeouts)
        }
        entry = {
            "run": run.tag,
            "ns3": theirs,
            "with_rule": {"timeouts": timed_out, **{f: measured.get(f) for f in FIGURES}},
        }
        lines.append(json.dumps(entry))
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    return FILE


def load() -> list[dict[str, Any]]:
    """Rows that :func:`write` wrote."""
    found: list[dict[str, Any]] = json.loads(FILE.read_text())
    return found
