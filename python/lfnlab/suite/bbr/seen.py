"""The variables of BBR in a run, and checks of any phase."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lfnlab.results.runs import Run

RTT_S, SAMPLE_S = 0.04, 0.001
STATES = ("Startup", "Drain", "DOWN", "CRUISE", "REFILL", "UP", "ProbeRTT")
STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT = range(7)
PROBE_BW = (DOWN, CRUISE, REFILL, UP)
MIN_CWND = 4
FAST, TIMEOUT, UNDO = 0, 1, 3


@dataclass(frozen=True)
class Check:
    """A condition, whether it holds, and what was found."""

    says: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Phase:
    """A stay in a state, by indices of samples: from the first to before ``end``."""

    state: int
    start: int
    end: int


class Flow:
    """Window, pacing and data of the first flow of a run, sampled each millisecond."""

    def __init__(self, run: Run) -> None:
        """Of its table ``flows``."""
        flows = run.table("flows")
        flows = flows.filter(flows["flow"] == 0)
        self.t_s = flows["t_s"].to_numpy()
        self.cwnd = flows["cwnd_seg"].to_numpy()
        self.inflight = flows["inflight_seg"].to_numpy().astype(float)
        self.retransmits = flows["retransmits"].to_numpy().astype(int)
        self.delivered = flows["delivered_bytes"].to_numpy().astype(float)
        self.pacing_bps = flows["pacing_bps"].to_numpy()
        flow = run.summary["flows"][0]
        self.wire_bits, self.segment_bits = 8 * flow["wire_bytes"], 8 * flow["segment_bytes"]
        events = run.table("events")
        events = events.filter(events["flow"] == 0)
        self.events = list(zip(events["t_s"], events["kind"], strict=True))
        self.changes_s: list[float] = list(run.summary.get("changes_s") or [])

    def at(self, t_s: float) -> int:
        """The first sample at or after a time."""
        return min(int(np.searchsorted(self.t_s, t_s)), len(self.t_s) - 1)

    def rate_bps(self, from_s: float, to_s: float) -> float:
        """Goodput between two times, in bit/s on the wire."""
        a, b = self.at(from_s), self.at(to_s)
        bits = (self.delivered[b] - self.delivered[a]) * 8 * self.wire_bits / self.segment_bits
        return float(bits / (self.t_s[b] - self.t_s[a]))


class Seen(Flow):
    """The variables of BBR beside them."""

    def __init__(self, run: Run) -> None:
        """Of the first flow of a run."""
        super().__init__(run)
        probes = run.table("probes")
        values = [probes.filter((probes["flow"] == 0) & (probes["probe"] == i)) for i in range(8)]
        rows = min(len(self.t_s), values[0].height)
        of = [value["value"].to_numpy()[:rows] for value in values]
        self.t_s = values[0]["t_s"].to_numpy()[:rows]
        self.state = of[0].astype(int)
        self.pacing_gain, self.bw, self.min_rtt_s = of[1], of[2], of[3] / 1e6
        self.long, self.short, self.bw_short = of[4], of[5], of[6]
        self.round = of[7].astype(int)
        for name in ("cwnd", "inflight", "retransmits", "delivered", "pacing_bps"):
            setattr(self, name, getattr(self, name)[:rows])
        self.gain_one = 256.0 if self.pacing_gain.max() > 10 else 1.0
        edges = np.flatnonzero(np.diff(self.state)) + 1
        bounds = [0, *edges.tolist(), rows]
        self.phases = [Phase(int(self.state[a]), a, b) for a, b in pairwise(bounds)]

    def bw_bps(self, i: int) -> float:
        """The estimate of bandwidth at a sample, in bit/s on the wire."""
        return float(self.bw[i]) * 1e6 * self.wire_bits

    def bdp(self, i: int) -> float:
        """BBR.bw BBR.min_rtt at a sample, in segments."""
        return float(self.bw[i] * self.min_rtt_s[i] * 1e6)

    def quantum(self, i: int) -> float:
        """Three send quanta, the least that Inflight(1.0) is, in segments."""
        most_bytes = min(float(self.pacing_bps[i]) / 8 / 1000, 65536)
        return float(max(3 * (most_bytes // (self.segment_bits / 8)), MIN_CWND))

    def first(self, state: int, after_s: float = 0.0) -> Phase | None:
        """The first stay in a state that begins after a time."""
        for phase in self.phases:
            if phase.state == state and self.t_s[phase.start] > after_s:
                return phase
        return None

    def stay(self, state: int, after_s: float = 0.0) -> Phase:
        """As :meth:`first`; raises Absent if there is none."""
        if (phase := self.first(state, after_s)) is None:
            raise Absent(state)
        return phase

    def following(self, phase: Phase) -> Phase | None:
        """The stay after this one."""
        return next((other for other in self.phases if other.start == phase.end), None)


def name(phase: Phase | None) -> str:
    """The name of a state."""
    return "the end of the run" if phase is None else STATES[phase.state]


def follows(seen: Seen, phase: Phase | None, state: int, wanted: int) -> Check:
    """That ``phase``, a stay in ``state``, is followed by one in ``wanted``.

    Drain and DOWN end with the ACK that begins them if little is in flight then.
    """
    says = f"{STATES[state]} is followed by {STATES[wanted]}"
    if wanted in (DRAIN, DOWN):
        says += ", which ends at once if less than Inflight(1.0) is in flight"
    if phase is None:
        return Check(says, False, f"no {STATES[state]}")
    then = seen.following(phase)
    if then is None:
        return Check(says, False, name(then))
    flight = float(seen.inflight[then.start])
    allowed = max(seen.bdp(then.start), seen.quantum(then.start))
    passed = wanted in (DRAIN, DOWN) and then.state in PROBE_BW and flight <= allowed
    found = f"{name(then)} at {seen.t_s[then.start]:.3f} s"
    if passed and then.state != wanted:
        found += f", {flight:.0f} in flight, {allowed:.0f} allowed"
    return Check(says, then.state == wanted or passed, found)


def checked(checks: Callable[[Seen], list[Check]], seen: Seen) -> list[Check]:
    """The checks of a case; one that fails if the flow does not come to its state."""
    try:
        return checks(seen)
    except Absent as absent:
        return [absent.check]


class Absent(Exception):
    """The flow of a case does not come to the state that the case is about."""

    def __init__(self, state: int) -> None:
        self.check = Check(f"the flow comes to {STATES[state]}", False, "it does not")
