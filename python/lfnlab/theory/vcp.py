"""VCP and EVCP as a fluid: windows that grow without packets, and decrease when routers say so.

A router measures the load over 200 ms; senders with the same RTT get the signal a round trip later.
Growth after a decrease and EVCP's convergence controller follow the laws (``laws/cards/vcp.md``,
``laws/cards/evcp.md``), with one state machine a flow. The queue is not modelled; it is almost
always empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

#: The router's interval in s, the step of the computation, and the laws' constants.
T_RHO_S, STEP_S = 0.2, 0.01
XI, BETA, GAMMA = 0.0625, 0.875, 0.98


@dataclass
class Controller:
    """EVCP's convergence controller, with its parameters."""

    n1: int = 2
    n2: int = 10
    s: float = 32.0
    w_low: float = 38.0
    beta_c: float = 0.7
    w_prev: float = 0.0
    w_max: float = 0.0
    num_dec: int = 0
    locked: bool = False

    def keeps(self, w: float) -> float:
        """Fraction of window ``w`` that a decrease keeps."""
        self.locked = False
        if w < self.w_low:
            self.w_prev, self.w_max, self.num_dec = 0.0, 0.0, 0
            return BETA
        if self.w_prev <= w:
            self.w_prev, self.w_max, self.num_dec = w, w, 0
            return BETA
        self.num_dec += 1
        if self.num_dec >= self.n1 and self.w_max - w >= self.w_max / self.s:
            self.w_prev, self.w_max, self.num_dec, self.locked = 0.0, 0.0, 0, True
            return self.beta_c
        self.w_prev = w
        if self.num_dec >= self.n2:
            self.w_max, self.num_dec = w, 0
        return BETA


@dataclass
class Flow:
    """A flow: its window in packets, and what it has done when (times in s)."""

    start_s: float
    controller: Controller | None = None
    window: float = 2.0
    freeze_until_s: float = -1.0
    increase_until_s: float = -1.0
    windows: list[float] = field(default_factory=list)
    decreases_s: list[float] = field(default_factory=list)
    penalties_s: list[float] = field(default_factory=list)

    def step(self, now_s: float, load: float, rtt_s: float) -> None:
        """One step of time, in which the router is known to have measured ``load``."""
        if now_s < self.start_s:
            return
        if load >= 1.0 and now_s >= self.increase_until_s:
            keeps = self.controller.keeps(self.window) if self.controller else BETA
            self.decreases_s.append(now_s)
            if self.controller and self.controller.locked:
                self.penalties_s.append(now_s)
            self.window = max(1.0, keeps * self.window)
            self.freeze_until_s = now_s + T_RHO_S
            self.increase_until_s = self.freeze_until_s + rtt_s
        elif load >= 1.0 and now_s < self.freeze_until_s:
            return
        elif load < 0.8 and not (self.controller and self.controller.locked):
            self.window *= (1 + XI) ** (STEP_S / T_RHO_S)
        else:
            self.window += alpha(rtt_s) * STEP_S / rtt_s


@dataclass(frozen=True)
class Course:
    """Times in s, one a step, and the flows with their windows at these times."""

    t_s: tuple[float, ...]
    flows: tuple[Flow, ...]


def alpha(rtt_s: float) -> float:
    """Packets that a window grows by in a round trip at high load (RTT from 20 to 500 ms)."""
    return (rtt_s / 0.1) ** 2


def course(
    flows: Sequence[Flow],
    capacity_pps: float,
    rtt_s: float,
    duration_s: float,
    gamma: float = GAMMA,
) -> Course:
    """The windows of ``flows``, all of one RTT, of at least a step, over a link."""
    times = tuple(step * STEP_S for step in range(round(duration_s / STEP_S)))
    per_interval, delay = round(T_RHO_S / STEP_S), round(rtt_s / STEP_S)
    told, load, sent = [0.0] * delay, 0.0, 0.0
    for step, now_s in enumerate(times):
        if step % per_interval == 0:
            load, sent = sent / (gamma * capacity_pps * T_RHO_S), 0.0
        told.append(load)
        for flow in flows:
            flow.step(now_s, told[step], rtt_s)
            flow.windows.append(flow.window if now_s >= flow.start_s else 0.0)
            sent += flow.windows[-1] / rtt_s * STEP_S
    return Course(times, tuple(flows))
