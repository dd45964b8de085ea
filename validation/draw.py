"""Draws scenarios at random, of what both the laboratory and Linux in virtual time can run.

A scenario is a :class:`Drawn`: plain values that are easy to make smaller, and its text in TOML.
The same seed gives the same scenarios for ever: only :class:`random.Random` draws, one stream a
scenario.
"""

from __future__ import annotations

import hashlib
import math
import random
from dataclasses import dataclass, field, replace

from lfnlab import kernel
from lfnlab.testbed.linux_laws import MODULES

#: Linux's modules; and our laws that run in its kernel.
LAWS = tuple(sorted(MODULES))
OURS = tuple(sorted(law.name for law in kernel.laws()))
#: What a scenario may cost: packets at the bottleneck, 10 µs of CPU each in Linux.
MOST_PACKETS = 120_000
FRAMING_B = 14
JUMBO_B, USUAL_B = 9000, 1500
#: Between the seeds of a scenario's phases; numbers of scenarios, which are seeds too, are below.
SEEDS_APART = 1_000_000
#: So many phases lose, delay and double the same packets.
SAME_LOSSES = 8
#: Jitter of phases, in transmission times of a packet.
TIES = 0.02
AQMS = ("red", "codel", "fq-codel", "pie")
#: Hybla's windows exceed what a path holds by so much that they would meet TCP's largest window.
#: This send buffer holds less, on both sides.
HYBLA_BUFFER_MB = 70
#: How often each trait is drawn.
SHARES = {
    "aqm": 0.35,
    "ecn": 0.6,  # of those with AQM
    "loss": 0.15,
    "reorder": 0.1,
    "duplicate": 0.07,
    "outage": 0.12,
    "rate_step": 0.08,
    "delay_step": 0.08,
    "no_sack": 0.08,
    "every_ack": 0.08,
    "jumbo": 0.08,
    "mixed_laws": 0.4,
}
#: How often ACKs are lost. Older hunts did not draw it, so it has a stream of its own.
ACK_LOSS_SHARE = 0.1
#: Packets of a long hunt's scenario, with one flow and with several; round trips that it lasts.
LONG_PACKETS, LONG_PACKETS_OF_SEVERAL = 3_000_000, 300_000
LONG_ROUNDS = 15
#: Share of the RTT by which its later phases differ.
LONG_SPREAD = 0.01
#: How often a long hunt draws what the others draw otherwise, or not.
LONG_SHARES = SHARES | {"jumbo": 0.4, "paced": 0.25, "ack_loss": 0.15}


@dataclass(frozen=True)
class DrawnFlow:
    """One flow."""

    law: str
    rtt_ms: float
    start_s: float = 0.0
    sack: bool = True
    delayed_ack: bool = True
    ecn: bool = False
    paced: bool = False


@dataclass(frozen=True)
class Step:
    """A change of the bottleneck, or an outage of it that ends after ``down_s``."""

    at_s: float
    rate_mbps: float | None = None
    delay_ms: float | None = None
    down_s: float | None = None


@dataclass(frozen=True)
class Drawn:
    """A scenario, its quantities in the units of their names."""

    duration_s: float
    rate_mbps: float
    queue_packets: int
    flows: tuple[DrawnFlow, ...]
    queue: str = "drop-tail"
    ecn: bool = False
    packet_b: int = USUAL_B
    loss: float = 0.0
    reorder: float = 0.0
    reorder_ms: float = 0.0
    duplicate: float = 0.0
    ack_loss: float = 0.0
    delay_ms: float = 0.0
    jitter_us: float = 0.0
    steps: tuple[Step, ...] = field(default=())
    seed: int = 1
    #: Share of the RTT by which phases from :data:`SAME_LOSSES` on differ.
    spread: float = 0.0
    #: Our laws on both sides: one header, in the simulator and in Linux.
    ours: bool = False
    #: More keys of the queue, in TOML.
    keys: str = ""

    @property
    def packet_s(self) -> float:
        """How long the bottleneck serves a full packet."""
        return (self.packet_b + FRAMING_B) * 8 / (self.rate_mbps * 1e6)

    @property
    def packets(self) -> float:
        """About how many packets the bottleneck can send."""
        most_mbps = max([self.rate_mbps, *(s.rate_mbps for s in self.steps if s.rate_mbps)])
        return self.duration_s * most_mbps / self.rate_mbps / self.packet_s

    @property
    def hits_packets(self) -> bool:
        """Whether packets or ACKs are lost, held or doubled at random."""
        return max(self.loss, self.reorder, self.duplicate, self.ack_loss) > 0

    @property
    def draws_in_queue(self) -> bool:
        """Whether the queue drops or marks at random."""
        return self.queue in ("red", "pie")

    @property
    def kernel_seed(self) -> int | None:
        """Seed of Linux's queue; None: the random numbers of every run without a seed."""
        return self.seed if self.draws_in_queue and self.jitter_us > 0 else None

    @property
    def limits_buffer(self) -> bool:
        """Whether the send buffer is smaller than a tuned host's."""
        return any(flow.law == "hybla" for flow in self.flows)

    @property
    def repeats_losses(self) -> bool:
        """Whether the first :data:`SAME_LOSSES` phases draw the same random numbers."""
        return self.hits_packets and not self.draws_in_queue

    @property
    def traits(self) -> tuple[str, ...]:
        """Features beyond one flow over drop-tail; hunts count agreement by feature."""
        found = {
            "flows": len(self.flows) > 1,
            "late": any(flow.start_s > 0 for flow in self.flows),
            "mixed-laws": len({flow.law for flow in self.flows}) > 1,
            self.queue: self.queue != "drop-tail",
            "ecn": self.ecn,
            "loss": self.loss > 0,
            "reorder": self.reorder > 0,
            "duplicate": self.duplicate > 0,
            "ack-loss": self.ack_loss > 0,
            "outage": any(step.down_s for step in self.steps),
            "rate-step": any(step.rate_mbps for step in self.steps),
            "delay-step": any(step.delay_ms is not None for step in self.steps),
            "no-sack": any(not flow.sack for flow in self.flows),
            "every-ack": any(not flow.delayed_ack for flow in self.flows),
            "paced": any(flow.paced for flow in self.flows),
            "jumbo": self.packet_b > USUAL_B,
            "tiny-buffer": self.queue_packets < 10,
            "any-ect": "any_ect" in self.keys,
            "ce-threshold": "ce_threshold" in self.keys,
        }
        return tuple(name for name, has in found.items() if has) or ("plain",)

    @property
    def tag(self) -> str:
        """A name by content: the same scenario has the same."""
        return hashlib.sha256(self.toml().encode()).hexdigest()[:12]

    def toml(self) -> str:
        """The scenario for the laboratory. ACKs cost nothing on their way, as in Linux here."""
        lines = [
            "schema = 1",
            f'duration = "{self.duration_s:g}s"',
            f"seed = {self.seed}",
            "",
            "[link]",
            f'rate = "{self.rate_mbps:g}Mbit/s"',
            f"queue = {self._queue()}",
        ]
        if self.delay_ms:
            lines.append(f'delay = "{self.delay_ms:g}ms"')
        if self.jitter_us:
            lines.append(f'jitter = {{ high = "{self.jitter_us:.3f}us", keep_order = false }}')
        if self.loss:
            lines.append(f"loss = {_share(self.loss)}")
        if self.reorder:
            lines.append(f'reorder = {{ p = {self.reorder:.6f}, delay = "{self.reorder_ms:g}ms" }}')
        if self.duplicate:
            lines.append(f"duplicate = {self.duplicate:.6f}")
        lines += ["", "[link.reverse]", 'rate = "1Tbit/s"', 'delay = "0s"', _UNBOUNDED]
        if self.ack_loss:
            lines.append(f"acks = {{ loss = {_share(self.ack_loss)} }}")
        for flow in self.flows:
            lines += ["", *self._flow(flow)]
        for step in self.steps:
            lines += ["", *_step(step)]
        return "\n".join(lines) + "\n"

    def _queue(self) -> str:
        size = f'size = "{self.queue_packets} packets"'
        ecn = f", ecn = {str(self.ecn).lower()}" if self.queue in AQMS else ""
        if self.queue == "red":
            # Linux has no larger max_th at this weight.
            most = (2**22 - 1) // (3 * (self.packet_b + FRAMING_B))
            low = max(3, min(self.queue_packets // 8, most))
            return (
                f'{{ kind = "red", preset = "classic", {size}, min_th = "{low} packets", '
                f'max_th = "{3 * low} packets", weight = 0.001953125, max_p = 0.1, mark_p = 1.0, '
                f'gentle = false, wait = false, rules = "linux"{ecn} }}'
            )
        keys = f", {self.keys}" if self.keys else ""
        return f'{{ kind = "{self.queue}", {size}{ecn}{keys} }}'

    def _flow(self, flow: DrawnFlow) -> list[str]:
        variant = "" if self.ours or flow.law == "bbr" else ":linux"
        lines = [
            "[[flow]]",
            f'law = "{flow.law}{variant}"',
            f'rtt = "{flow.rtt_ms:.9g}ms"',
            f'packet = "{self.packet_b}B"',
            # DCTCP has ECN in Linux whatever the host says.
            f"ecn = {str(flow.ecn or flow.law == 'dctcp').lower()}",
        ]
        if flow.start_s:
            lines.append(f'start = "{flow.start_s:g}s"')
        if not flow.sack:
            lines.append("sack = false")
        if not flow.delayed_ack:
            lines.append("delayed_ack = false")
        if flow.paced:
            lines.append("pacing = true")
        if self.limits_buffer:
            # Of its size from the start: while it grows, segments have PSH, which the receiver
            # acknowledges at once.
            lines.append(f'send_buffer = "linux {HYBLA_BUFFER_MB}MB {HYBLA_BUFFER_MB}MB"')
        return lines

    def phase(self, number: int) -> Drawn:
        """This scenario, RTTs shifted by fractions of a packet's transmission time; 0: no change.

        Shifted start times would not do: with drop-tail, ACK clocking removes their phase. The
        first 2^m numbers spread the fractions evenly. All random numbers are new for each number;
        where losses are repeated, from :data:`SAME_LOSSES` on.

        On a long fat path what happens in a fraction of a packet's time may still always fall on
        the same side: with CoDel, or where a short burst of one flow meets the full queue of
        others. There ``spread`` moves RTTs by more from :data:`SAME_LOSSES` on.

        Jitter of up to :data:`TIES` of a packet's transmission time breaks ties. Once a queue was
        empty, ACK clocking lets packets arrive exactly when others depart, at any RTT. If the
        queue is full, their order decides about a drop; in a real host it is a matter of chance.
        """
        if not number:
            return self
        turn = sum(1 / 2 ** (bit + 1) for bit in range(number.bit_length()) if number >> bit & 1)
        packet_ms = self.packet_s * 1e3
        spread = self.spread if number >= SAME_LOSSES else 0.0
        flows = tuple(
            replace(
                flow,
                rtt_ms=flow.rtt_ms + (packet_ms + spread * flow.rtt_ms) * (turn * (2 * j + 1) % 1),
            )
            for j, flow in enumerate(self.flows)
        )
        draws_anew = number >= SAME_LOSSES or not self.repeats_losses
        own = self.seed + SEEDS_APART * number if draws_anew else self.seed
        return replace(self, flows=flows, seed=own, jitter_us=TIES * packet_ms * 1e3)

    def phases(self, count: int) -> list[Drawn]:
        """So many phases.

        Among many is one of those that repeat its losses or are not spread: the others are not
        independent of it.
        """
        numbers = list(range(count))
        if (self.repeats_losses or self.spread) and count > SAME_LOSSES:
            numbers = [0, *range(SAME_LOSSES, SAME_LOSSES + count - 1)]
        return [self.phase(number) for number in numbers]


def _share(value: float) -> str:
    """A fraction in decimals: six, or as many as one in ten million takes."""
    return f"{value:.6f}" if value >= 1e-4 else f"{value:.9f}"


_UNBOUNDED = 'queue = { kind = "drop-tail", size = "1000000 packets" }\nloss = 0'


def _step(step: Step) -> list[str]:
    lines = ["[[schedule]]", f'at = "{step.at_s:g}s"', 'link = "forward"']
    if step.down_s:
        back_s = step.at_s + step.down_s
        down = ["[[schedule]]", f'at = "{back_s:g}s"', 'link = "forward"', "down = false"]
        return [*lines, "down = true", "", *down]
    if step.rate_mbps is not None:
        lines.append(f'rate = "{step.rate_mbps:g}Mbit/s"')
    if step.delay_ms is not None:
        lines.append(f'delay = "{step.delay_ms:g}ms"')
    return lines


def _log_uniform(draws: random.Random, low: float, high: float) -> float:
    return math.exp(draws.uniform(math.log(low), math.log(high)))


def _rounded(value: float, digits: int = 3) -> float:
    return float(f"{value:.{digits}g}")


def _steps(
    draws: random.Random, has: dict[str, bool], duration_s: float, rate: float, rtt_ms: float
) -> tuple[float, tuple[Step, ...]]:
    """The link's own delay, and what changes on the way."""
    steps = []
    delay_ms = 0.0
    at_s = _rounded(draws.uniform(0.2, 0.5) * duration_s)
    down_s = _rounded(min(_log_uniform(draws, 0.1, 10), 0.3 * duration_s))
    if has["outage"]:
        steps.append(Step(at_s, down_s=down_s))
    else:
        down_s = 0.0
    later_s = _rounded((at_s + down_s) + draws.uniform(0.1, 0.4) * (duration_s - at_s - down_s))
    to = _rounded(rate * draws.choice((0.25, 0.5, 2)))
    if has["rate_step"]:
        steps.append(Step(later_s, rate_mbps=to))
    share = draws.uniform(0.1, 0.45)
    to_share = draws.uniform(0.0, 0.9)
    if has["delay_step"]:
        delay_ms = _rounded(rtt_ms * share)
        last_s = _rounded(later_s + 0.3 * (duration_s - later_s))
        steps.append(Step(last_s, delay_ms=_rounded(rtt_ms * to_share)))
    return delay_ms, tuple(steps)


def draw(seed: int, number: int, *, ours: bool = False) -> Drawn:
    """Scenario ``number`` of a seed, of Linux's own laws or of ours."""
    draws, laws = random.Random(f"lfnlab hunt {seed} {number}"), OURS if ours else LAWS
    has = {trait: draws.random() < share for trait, share in SHARES.items()}
    rate = _rounded(_log_uniform(draws, 2, 300))
    rtt_ms = _rounded(_log_uniform(draws, 5, 300))
    packet_b = JUMBO_B if has["jumbo"] else USUAL_B
    packet_s = (packet_b + FRAMING_B) * 8 / (rate * 1e6)
    bdp_packets = rtt_ms / 1e3 / packet_s
    queue_packets = round(_log_uniform(draws, 3, max(6.0, 5 * bdp_packets)))
    queue = draws.choice(AQMS) if has["aqm"] else "drop-tail"
    if queue == "red":  # its thresholds, an eighth and three, leave it room for bursts
        queue_packets = max(queue_packets, 24)
    ecn = has["aqm"] and has["ecn"]
    count = draws.choice((1, 1, 1, 1, 2, 2, 3, 4, 5))
    duration_s = _rounded(min(draws.choice((10, 20, 40)), 0.49 * MOST_PACKETS * packet_s))
    first, sack, delayed = draws.choice(laws), not has["no_sack"], not has["every_ack"]
    flows = []
    for number_of in range(count):
        law = draws.choice(laws)
        factor = _log_uniform(draws, 0.5, 2)
        start_s = _rounded(draws.uniform(0, 0.4) * duration_s)
        late = draws.random() < (0.7 if number_of else 0.1)
        flows.append(
            DrawnFlow(
                law=law if has["mixed_laws"] else first,
                rtt_ms=_rounded(rtt_ms * factor) if number_of else rtt_ms,
                start_s=start_s if late else 0.0,
                sack=sack,
                delayed_ack=delayed,
                ecn=ecn,
            )
        )
    shortest_ms = min(flow.rtt_ms for flow in flows)
    delay_ms, steps = _steps(draws, has, duration_s, rate, shortest_ms)
    loss, reorder, duplicate = (
        _rounded(_log_uniform(draws, low, high), 2)
        for low, high in ((1e-4, 0.02), (1e-3, 0.1), (1e-4, 0.02))
    )
    held_ms = _rounded(rtt_ms * draws.uniform(0.1, 0.5))
    acks = random.Random(f"lfnlab hunt acks {seed} {number}")
    loses_acks = acks.random() < ACK_LOSS_SHARE
    return Drawn(
        duration_s=duration_s,
        rate_mbps=rate,
        queue_packets=queue_packets,
        flows=tuple(flows),
        queue=queue,
        ecn=ecn,
        packet_b=packet_b,
        loss=loss if has["loss"] else 0.0,
        reorder=reorder if has["reorder"] else 0.0,
        reorder_ms=held_ms if has["reorder"] else 0.0,
        duplicate=duplicate if has["duplicate"] else 0.0,
        ack_loss=_rounded(_log_uniform(acks, 1e-3, 0.3), 2) if loses_acks else 0.0,
        delay_ms=delay_ms,
        steps=steps,
        seed=number + 1,
        ours=ours,
    )


def draw_long(seed: int, number: int, *, ours: bool = False) -> Drawn:
    """Scenario ``number`` of a long hunt: 0.3 to 10 Gbit/s, 20 to 300 ms, 0.02 to 2 BDP."""
    draws, laws = random.Random(f"lfnlab long hunt {seed} {number}"), OURS if ours else LAWS
    has = {trait: draws.random() < share for trait, share in LONG_SHARES.items()}
    count = draws.choice((1, 1, 1, 1, 2, 3, 5, 10))
    most_packets = LONG_PACKETS if count == 1 else LONG_PACKETS_OF_SEVERAL
    packet_b = JUMBO_B if has["jumbo"] else USUAL_B
    duration_s = rtt_ms = 0.0
    while duration_s < LONG_ROUNDS * rtt_ms / 1e3 or not duration_s:
        rate = _rounded(_log_uniform(draws, 300, 10_000))
        rtt_ms = _rounded(_log_uniform(draws, 20, 300))
        packet_s = (packet_b + FRAMING_B) * 8 / (rate * 1e6)
        longest_s = draws.choice((10, 20, 40))
        duration_s = _rounded(min(longest_s, 0.49 * most_packets * packet_s))
    queue_packets = round(rtt_ms / 1e3 / packet_s * _log_uniform(draws, 0.02, 2))
    queue = draws.choice(AQMS) if has["aqm"] else "drop-tail"
    queue_packets = max(queue_packets, 24 if queue == "red" else 3)
    ecn = has["aqm"] and has["ecn"]
    first = draws.choice(laws)
    flows = []
    for flow in range(count):
        law, factor = draws.choice(laws), _log_uniform(draws, 0.5, 2)
        start_s, late = draws.uniform(0, 0.4) * duration_s, draws.random() < (0.5 if flow else 0.1)
        flows.append(
            DrawnFlow(
                law=law if has["mixed_laws"] else first,
                rtt_ms=min(max(_rounded(rtt_ms * factor), 20.0), 300.0) if flow else rtt_ms,
                start_s=_rounded(start_s) if late else 0.0,
                sack=not has["no_sack"],
                delayed_ack=not has["every_ack"],
                ecn=ecn,
                paced=has["paced"],
            )
        )
    shortest_ms = min(flow.rtt_ms for flow in flows)
    delay_ms, steps = _steps(draws, has, duration_s, rate, shortest_ms)
    loss, ack_loss, reorder, duplicate = (
        float(f"{_log_uniform(draws, low, high):.2g}")
        for low, high in ((1e-7, 1e-3), (1e-7, 1e-3), (1e-5, 1e-2), (1e-6, 1e-3))
    )
    held_ms = _rounded(rtt_ms * draws.uniform(0.1, 0.5))
    return Drawn(
        duration_s=duration_s,
        rate_mbps=rate,
        queue_packets=queue_packets,
        flows=tuple(flows),
        queue=queue,
        ecn=ecn,
        packet_b=packet_b,
        loss=loss if has["loss"] else 0.0,
        reorder=reorder if has["reorder"] else 0.0,
        reorder_ms=held_ms if has["reorder"] else 0.0,
        duplicate=duplicate if has["duplicate"] else 0.0,
        ack_loss=ack_loss if has["ack_loss"] else 0.0,
        delay_ms=delay_ms,
        steps=steps,
        seed=number + 1,
        spread=LONG_SPREAD,
        ours=ours,
    )


def draw_l4s(seed: int, number: int, *, ours: bool = False) -> Drawn:
    """Scenario ``number`` of a hunt of L4S: that of :func:`draw` with other queues and flows.

    Half of the queues are DualPI2 with drawn parameters, the others the AQMs of Linux, CoDel and
    FQ-CoDel also with a shallow threshold. The first flow is DCTCP, and each other one with a
    chance of a third; half of the others have ECN.
    """
    base = draw(seed, number, ours=ours)
    draws = random.Random(f"lfnlab hunt of l4s {seed} {number}")
    queue = draws.choice(("dualpi2",) * len(AQMS) + AQMS)
    shallow_ms, shallow = _rounded(_log_uniform(draws, 0.5, 4)), draws.random() < 0.5
    drawn = {
        "target": f'"{_rounded(_log_uniform(draws, 5, 40))}ms"',
        "step_thresh": f'"{shallow_ms}ms"',
        "coupling_factor": draws.choice((1, 2, 3)),
        "c_protection": draws.choice((5, 10, 30)),
        "floor": draws.choice((0, 1, 2)),
        "ramp": '"500us"',
        "overload": '"overflow"',
    }
    keys = [f"{key} = {value}" for key, value in drawn.items() if draws.random() < 0.3]
    if queue == "dualpi2":
        keys += ["any_ect = true"] if draws.random() < 0.6 else []
    else:
        keys = [f'ce_threshold = "{shallow_ms}ms"'] if shallow and "codel" in queue else []
    flows = tuple(
        replace(
            flow,
            law="dctcp" if place == 0 or draws.random() < 1 / 3 else flow.law,
            ecn=draws.random() < 0.5,
        )
        for place, flow in enumerate(base.flows)
    )
    least = 24 if queue == "red" else 3
    return replace(
        base,
        queue=queue,
        queue_packets=max(base.queue_packets, least),
        ecn=True,
        flows=flows,
        keys=", ".join(keys),
    )
