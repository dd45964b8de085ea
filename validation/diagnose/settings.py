"""Transfers that are drawn at random, and what limits each: what was set decides, no diagnosis.

A setting is one flow on one path, with one or two limits. A limit binds if the same transfer
without it is clearly faster in the simulator; a draw whose limit does not bind is drawn again.

How the causes are told apart here:

======================  ============================================================================
receive-window          the receiver offers less than the path holds
send-buffer             the sender's socket holds less than the path
random-loss             packets are lost at random, with hardly any queue
queue-overflow          the bottleneck's queue overflows; a faster bottleneck carries more
policer                 a token bucket ahead of the queue drops what exceeds its rate
pacing                  the application or the socket sends evenly at a rate that was set
application             the application writes a block, pauses, and has nothing to send meanwhile
slow-start              the transfer ends before its window has grown to what the path holds
ack-path                the way back is too slow for the ACKs, or loses most of them
path-change             outages, or a rate or delay that goes down and up again and again
======================  ============================================================================

With two causes in turn the one that acts for longer is the main one.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lfnlab import _core
from lfnlab.diagnose.names import CAUSES
from lfnlab.testbed.linux_laws import MODULES

if TYPE_CHECKING:
    from numpy.typing import NDArray

Where = Literal["simulator", "linux", "emulator"]

#: Pairs in turn: what always acts where nothing stronger does, and what comes or goes.
STAYING = ("receive-window", "send-buffer", "pacing", "queue-overflow")
COMING = ("random-loss", "path-change")
#: Share of the time in which the main cause of two acts.
MAIN_ACTS = (0.6, 0.75)
#: Linux has no policer in virtual time.
LACKS: dict[Where, tuple[str, ...]] = {"simulator": (), "linux": ("policer",), "emulator": ()}
LAWS = tuple(sorted(MODULES))
#: Those that this Linux has; others would have to be loaded into it.
EMULATED_LAWS = ("reno", "cubic", "bbr")
#: Where a host sends bursts of 64 kB, a smaller queue overflows whatever limits.
EMULATED_PACKETS = 50
#: Of what the path holds: windows and buffers of this Linux are what was set, within a factor of
#: two.
EMULATED_PART = 0.45
EMULATED_LEAST_B = 30_000
#: Of a transfer that ends in slow start: iperf3 tells no interval below 0.1 s.
EMULATED_LEAST_S = 0.4
SHARE_OF_TWO = 0.2
FRAMING_B, HEADERS_B, ACK_B = 14, 52, 80
#: Packets that leave the sender at most; so captures stay below some 30 MB.
MOST_PACKETS = 150_000
#: Round trips of a transfer at least, so that slow start is a small part of it.
ROUNDS = 40
#: A limit binds if the goodput without it is so many times as large; of two, each.
BINDS, BINDS_OF_TWO = 1.25, 1.1
#: Of two causes the main one acts for this part of the time at least. One that stays acts where
#: the transfer is as fast as without the other, to this part.
MAIN_LEAST, ALIKE, STEP_S = 0.55, 0.15, 0.1
#: Losses that a transfer needs before they are its cause.
FEW = 5
TRIES = 100


@dataclass(frozen=True)
class Change:
    """The forward link from a time on."""

    at_s: float
    rate_bps: float | None = None
    delay_s: float | None = None
    loss: float | None = None
    down: bool | None = None

    def toml(self) -> str:
        """The entry of the schedule."""
        lines = ["[[schedule]]", f'at = "{self.at_s:.6f}s"', 'link = "forward"']
        if self.rate_bps is not None:
            lines.append(f'rate = "{self.rate_bps:.0f}bit/s"')
        if self.delay_s is not None:
            lines.append(f'delay = "{self.delay_s * 1e3:.6f}ms"')
        if self.loss is not None:
            lines.append(f"loss = {self.loss:.9f}")
        if self.down is not None:
            lines.append(f"down = {str(self.down).lower()}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Setting:
    """One flow on one path, and its limits. None: no such limit."""

    law: str
    rate_bps: float
    rtt_s: float
    buffer_packets: int
    duration_s: float
    seed: int
    packet_b: int = 1500
    delay_s: float = 0.0
    """The forward link's part of the RTT, which a change replaces."""
    receive_window_b: int | None = None
    send_buffer_b: int | None = None
    loss: float = 0.0
    burst_loss: bool = False
    policer_bps: float | None = None
    policer_b: int = 0
    pace_bps: float | None = None
    block_b: int | None = None
    """The application writes so much at once, every ``period_s``."""
    period_s: float = 0.0
    size_b: int | None = None
    reverse_bps: float | None = None
    reverse_packets: int = 0
    ack_loss: float = 0.0
    changes: tuple[Change, ...] = ()

    @property
    def payload_b(self) -> int:
        """Of a full segment."""
        return self.packet_b - HEADERS_B

    @property
    def bdp_packets(self) -> float:
        """Packets that the path holds without a queue."""
        return self.rate_bps * self.rtt_s / 8 / (self.packet_b + FRAMING_B)

    @property
    def share(self) -> float:
        """Payload of what the link sends."""
        return self.payload_b / (self.packet_b + FRAMING_B)

    @property
    def application(self) -> str | None:
        """The table of the flow."""
        if self.pace_bps is not None:
            return f'{{ rate = "{self.pace_bps:.0f}bit/s" }}'
        if self.block_b is None:
            return None
        # A block is written at four times the link's rate, so the path decides how it leaves.
        rate = 4 * self.rate_bps
        on_s = self.block_b * 8 / rate
        off = f'off = "{(self.period_s - on_s) * 1e6:.3f}us"'
        return f'{{ rate = "{rate:.0f}bit/s", on = "{on_s * 1e6:.3f}us", {off} }}'

    def without(self, cause: str) -> Setting:
        """The same transfer without this limit."""
        if cause == "receive-window":
            return replace(self, receive_window_b=None)
        if cause == "send-buffer":
            return replace(self, send_buffer_b=None)
        if cause == "random-loss":
            kept = tuple(change for change in self.changes if change.loss is None)
            return replace(self, loss=0.0, changes=kept)
        if cause == "queue-overflow":
            return replace(self, rate_bps=4 * self.rate_bps)
        if cause == "policer":
            return replace(self, policer_bps=None)
        if cause == "pacing":
            return replace(self, pace_bps=None)
        if cause == "application":
            return replace(self, block_b=None)
        if cause == "slow-start":
            return replace(self, size_b=None)
        if cause == "ack-path":
            return replace(self, reverse_bps=None, ack_loss=0.0)
        assert cause == "path-change"
        return replace(self, changes=tuple(c for c in self.changes if c.loss is not None))

    def toml(self, *, capture: bool = False, samples: bool = False) -> str:
        """The scenario; ``lfn shell`` takes its path."""
        variant = "" if self.law == "bbr" else ":linux"
        lines = [
            "schema = 1",
            f'duration = "{self.duration_s:.6f}s"',
            f"seed = {self.seed}",
            "" if samples else 'sample = "off"',
            "[link]",
            f'rate = "{self.rate_bps:.0f}bit/s"',
            f'queue = {{ kind = "drop-tail", size = "{self.buffer_packets} packets" }}',
        ]
        if self.delay_s:
            lines.append(f'delay = "{self.delay_s * 1e3:.6f}ms"')
        if self.loss and self.burst_loss:
            # Bursts of two packets on average.
            enter = self.loss / (2 * (1 - self.loss))
            lines.append(f'loss = {{ kind = "gilbert-elliott", p = {enter:.9f}, r = 0.5 }}')
        elif self.loss:
            lines.append(f"loss = {self.loss:.9f}")
        if self.policer_bps is not None:
            bucket = f'rate = "{self.policer_bps:.0f}bit/s", burst = "{self.policer_b}B"'
            lines.append(f"policer = {{ {bucket} }}")
        back = self.reverse_bps or 1e12
        room = self.reverse_packets if self.reverse_bps else 1_000_000
        lines += ["[link.reverse]", f'rate = "{back:.0f}bit/s"', 'delay = "0s"', "loss = 0"]
        lines.append(f'queue = {{ kind = "drop-tail", size = "{room} packets" }}')
        if self.ack_loss:
            lines.append(f"acks = {{ loss = {self.ack_loss:.6f} }}")
        lines += ["[[flow]]", f'law = "{self.law}{variant}"', f'rtt = "{self.rtt_s * 1e3:.6f}ms"']
        lines.append(f'packet = "{self.packet_b}B"')
        if self.receive_window_b is not None:
            lines.append(f'receive_window = "{self.receive_window_b}B"')
        if self.send_buffer_b is not None:
            lines.append(f'send_buffer = "{self.send_buffer_b}B"')
        if self.size_b is not None:
            lines.append(f'size = "{self.size_b}B"')
        if self.application:
            lines.append(f"application = {self.application}")
        lines += [change.toml() for change in self.changes]
        if capture:
            lines += ["[capture]", "max_rows = 20000000"]
        return "\n".join(line for line in lines if line) + "\n"


@dataclass(frozen=True, eq=False)
class Seen:
    """Counts of a simulated transfer."""

    goodput_bps: float
    queue_drops: int
    late_drops: int
    """Those after the first third."""
    policed: int
    lost: int
    ended_s: float | None
    in_slow_start: bool
    """At the end, never having left it."""
    rates_bps: NDArray[np.float64]
    """In steps of :data:`STEP_S`, or of two round trips."""


def simulate(setting: Setting) -> Seen:
    """Run it without capture."""
    scenario = _core.Scenario(setting.toml(samples=True), "drawn.toml")
    run = _core.run_many([scenario], 1, None)[0]
    assert run is not None
    said = json.loads(run.summary())
    (flow,), link = said["flows"], said["links"][0]
    queues, flows = run.table("queues"), run.table("flows")
    drops = queues["drops"][queues["link"] == 0]
    early = drops[drops.size // 3] if drops.size else 0
    seconds = flow["completion_s"] or setting.duration_s
    step_s = max(STEP_S, 2 * setting.rtt_s)
    grid = np.arange(0, setting.duration_s, step_s)
    delivered = np.interp(grid, flows["t_s"], flows["delivered_bytes"])
    return Seen(
        goodput_bps=8 * flow["delivered_bytes"] / seconds,
        queue_drops=link["drops"] - link["early_drops"],
        late_drops=int(link["drops"] - early) if not link["early_drops"] else 0,
        policed=link["early_drops"],
        lost=link["random_losses"],
        ended_s=flow["ended_s"],
        in_slow_start=bool(np.isinf(flows["ssthresh_seg"]).all()),
        rates_bps=np.diff(delivered) * 8 / step_s,
    )


def binds(setting: Setting, causes: tuple[str, ...]) -> float | None:
    """The goodput without one of the causes, if each limits it and nothing else does; else None."""
    here = simulate(setting)
    if here.goodput_bps <= 0:
        return None
    main = causes[0]
    quiet = not {"queue-overflow", "ack-path", "path-change"} & set(causes)
    if quiet and here.queue_drops > (0.1 * here.lost if "random-loss" in causes else 0):
        return None
    if "random-loss" in causes and here.lost < FEW:
        return None
    if "queue-overflow" in causes and not here.queue_drops:
        return None
    if main == "queue-overflow" and not here.late_drops:
        return None
    if main == "policer" and here.policed < FEW:
        return None
    if main == "slow-start" and not (here.in_slow_start and here.ended_s):
        return None
    if main == "application" and setting.block_b is not None:
        # All that is written gets through, so the path had nothing to send for a part of the time.
        written = setting.block_b * 8 / setting.period_s
        if here.goodput_bps < 0.8 * written:
            return None
    without = [simulate(setting.without(cause)) for cause in causes]
    if any(one.goodput_bps < least_gain(causes) * here.goodput_bps for one in without):
        return None
    if len(causes) == 2:
        # As fast as without the one that comes or goes: the other one acts.
        alone = without[0 if causes[0] in COMING else 1]
        acts = _alike(here.rates_bps, alone.rates_bps)
        if (1 - acts if causes[0] in COMING else acts) < MAIN_LEAST:
            return None
    return min(one.goodput_bps for one in without)


def least_gain(causes: tuple[str, ...]) -> float:
    """So many times as fast is a transfer without one of its causes, at least."""
    return BINDS if len(causes) == 1 else BINDS_OF_TWO


def _alike(rates: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Part of the time in which two transfers are as fast."""
    return float(np.mean(np.abs(rates - others) <= ALIKE * others))


def log_uniform(draws: random.Random, low: float, high: float) -> float:
    """Each factor as likely."""
    return math.exp(draws.uniform(math.log(low), math.log(high)))


def drawn(draws: random.Random, where: Where, causes: tuple[str, ...]) -> Setting | None:
    """A setting with these limits, or None where the draw does not suit them."""
    setting = _path(draws, where)
    if setting.bdp_packets < 10:
        return None
    busy = 1.0
    for cause in causes:
        limited = _LIMITS[cause](draws, setting)
        if limited is None:
            return None
        setting, part = limited
        busy = min(busy, part)
    if where == "linux":  # It has no losses in bursts.
        setting = replace(setting, burst_loss=False)
    if where == "emulator" and not _suits_emulator(setting, causes):
        return None
    ahead = max(setting.rtt_s, *(2 * (c.delay_s or 0) for c in setting.changes), 0)
    longest_s = MOST_PACKETS * (setting.packet_b + FRAMING_B) * 8 / (setting.rate_bps * busy)
    usual_s = (6.0, 10.0) if where == "emulator" else (6.0, 40.0)
    duration_s = min(log_uniform(draws, *usual_s), longest_s)
    if duration_s < max(2.0 if where != "emulator" else 6.0, ROUNDS * ahead):
        return None
    setting = replace(setting, duration_s=round(duration_s, 3))
    span = (0.0, setting.duration_s)
    if len(causes) == 2:
        # One that comes or goes, at the begin or at the end; the main cause has more of the time.
        share = draws.uniform(*MAIN_ACTS)
        acts_s = setting.duration_s * (share if causes[0] in COMING else 1 - share)
        span = (0.0, acts_s) if draws.random() < 0.5 else (setting.duration_s - acts_s, span[1])
    return _timed(draws, setting, causes, span)


def _suits_emulator(setting: Setting, causes: tuple[str, ...]) -> bool:
    set_b = [size for size in (setting.receive_window_b, setting.send_buffer_b) if size is not None]
    held_b = EMULATED_PART * setting.bdp_packets * setting.payload_b
    if any(not EMULATED_LEAST_B <= size <= held_b for size in set_b):
        return False
    if setting.size_b is not None:
        rounds = math.log2(setting.size_b / setting.payload_b / 10)
        if setting.rtt_s * rounds < EMULATED_LEAST_S:
            return False
    quiet = not {"queue-overflow", "ack-path", "path-change"} & set(causes)
    return not quiet or setting.buffer_packets >= EMULATED_PACKETS


def _path(draws: random.Random, where: Where) -> Setting:
    rate = log_uniform(draws, 1e6, 200e6 if where == "emulator" else 10e9)
    rate = float(f"{rate:.4g}")
    rtt_s = float(f"{log_uniform(draws, 0.005, 0.3):.4g}")
    packet_b = 9000 if rate > 5e8 and draws.random() < 0.6 else 1500
    law = draws.choice(EMULATED_LAWS if where == "emulator" else LAWS)
    setting = Setting(law, rate, rtt_s, 0, 0.0, draws.randrange(1, 2**31), packet_b)
    packets = round(setting.bdp_packets * log_uniform(draws, 0.05, 2))
    return replace(setting, buffer_packets=max(packets, 4))


# Each gives the setting with a limit, and which part of the link's rate is then used at most; None
# where the path does not suit.


def _receive_window(draws: random.Random, of: Setting) -> tuple[Setting, float] | None:
    part = log_uniform(draws, 0.05, 0.7)
    segments = round(part * of.bdp_packets)
    if segments < 4:
        return None
    return replace(of, receive_window_b=segments * of.payload_b), part


def _send_buffer(draws: random.Random, of: Setting) -> tuple[Setting, float] | None:
    part = log_uniform(draws, 0.05, 0.7)
    segments = round(part * of.bdp_packets)
    if segments < 4:
        return None
    return replace(of, send_buffer_b=segments * of.payload_b), part


def _random_loss(draws: random.Random, of: Setting) -> tuple[Setting, float] | None:
    # Reno's window at this loss would be a part of the BDP (Mathis and others, 1997).
    part = log_uniform(draws, 0.05, 0.5)
    loss = 1.5 / (part * of.bdp_packets) ** 2
    if loss > 0.05:
        return None
    return replace(of, loss=loss, burst_loss=draws.random() < 0.3), 1.0


def _queue_overflow(draws: random.Random, of: Setting) -> tuple[Setting, float] | None:
    del draws
    return of, 1.0


def _policer(draws: random.Random, of: Setting) -> tuple[Setting, float] | None:
    part = log_uniform(draws, 0.1, 0.6)
    bps = part * of.rate_bps
    burst = max(round(bps / 8 * log_uniform(draws, 0.01, 0.25)), 4 * (of.packet_b + FRAMING_B))
    return replace(of, policer_bps=bps, policer_b=burst), min(1.0, 1.2 * part)


def _pacing(draws: random.Random, of: Setting) -> tuple[Setting, float] | None:
    part = log_uniform(draws, 0.05, 0.7)
    return replace(of, pace_bps=float(f"{part * of.rate_bps * of.share:.4g}")), part


def _application(draws: random.Random, of: Setting) -> tuple[Setting, float] | None:
    part = log_uniform(draws, 0.05, 0.25)
    period_s = max(log_uniform(draws, 0.2, 3.0), 4 * of.rtt_s)
    block = round(part * of.rate_bps * of.share * period_s / 8 / of.payload_b) * of.payload_b
    if block < 4 * of.payload_b:
        return None
    return replace(of, block_b=block, period_s=round(period_s, 4)), part


def _slow_start(draws: random.Random, of: Setting) -> tuple[Setting, float] | None:
    # The last window, 10 * 2^(k-1), is below what the path holds.
    most = math.log2(0.7 * of.bdp_packets / 10) if of.bdp_packets > 60 else 0
    if most < 2:
        return None
    rounds = draws.randint(3, max(3, min(10, int(most) + 1)))
    segments = round(10 * (2**rounds - 1) * draws.uniform(0.8, 1.0))
    return replace(of, size_b=segments * of.payload_b), 0.1


def _ack_path(draws: random.Random, of: Setting) -> tuple[Setting, float] | None:
    if draws.random() < 0.35:
        return replace(of, ack_loss=round(draws.uniform(0.6, 0.97), 4)), 1.0
    # One ACK for two segments.
    needed = of.rate_bps * ACK_B / (2 * (of.packet_b + FRAMING_B))
    bps = max(1e4, log_uniform(draws, 0.03, 0.6) * needed)
    room = round(log_uniform(draws, 5, 500))
    return replace(of, reverse_bps=round(bps), reverse_packets=room), 1.0


def _path_change(draws: random.Random, of: Setting) -> tuple[Setting, float] | None:
    # How the path changes, and when, `_timed` says.
    del draws
    return replace(of, delay_s=round(of.rtt_s / 4, 6)), 1.0


_LIMITS = {
    "receive-window": _receive_window,
    "send-buffer": _send_buffer,
    "random-loss": _random_loss,
    "queue-overflow": _queue_overflow,
    "policer": _policer,
    "pacing": _pacing,
    "application": _application,
    "slow-start": _slow_start,
    "ack-path": _ack_path,
    "path-change": _path_change,
}


def _timed(
    draws: random.Random, of: Setting, causes: tuple[str, ...], span: tuple[float, float]
) -> Setting:
    """The setting with its changes; a cause that comes or goes acts during the span."""
    changes: list[Change] = []
    begin_s, end_s = span
    if "random-loss" in causes and len(causes) == 2:
        # A schedule knows no bursts.
        if begin_s:
            changes.append(Change(begin_s, loss=of.loss))
        else:
            changes.append(Change(end_s, loss=0.0))
        of = replace(of, loss=0.0 if begin_s else of.loss, burst_loss=False)
    if "path-change" in causes:
        changes += _of_path(draws, of, span)
    return replace(of, changes=tuple(changes))


def _of_path(draws: random.Random, of: Setting, span: tuple[float, float]) -> list[Change]:
    """The path goes down and up again, for about half of the time."""
    begin_s, end_s = span
    least_s = max(0.3, 8 * of.rtt_s)
    room_s = end_s - begin_s
    each_s = min(log_uniform(draws, least_s, max(least_s, room_s / 4)), room_s / 3)
    kind = draws.choice(("down", "rate", "delay"))
    low, high = draws.uniform(0.1, 0.4), draws.uniform(2.0, 6.0)
    at_s, changes, is_worse = begin_s + each_s * draws.uniform(0.3, 0.7), [], True
    while at_s < end_s:
        lasts_s = each_s * draws.uniform(0.7, 1.3)
        if kind == "down":
            changes.append(Change(at_s, down=is_worse))
        elif kind == "rate":
            factor = low * draws.uniform(0.8, 1.2) if is_worse else 1.0
            changes.append(Change(at_s, rate_bps=round(of.rate_bps * factor)))
        else:
            delay_s = of.delay_s + (high * of.rtt_s if is_worse else 0.0)
            changes.append(Change(at_s, delay_s=delay_s))
        at_s, is_worse = at_s + lasts_s, not is_worse
    if changes and not is_worse and end_s < of.duration_s:
        back = {
            "down": Change(end_s, down=False),
            "rate": Change(end_s, rate_bps=of.rate_bps),
            "delay": Change(end_s, delay_s=of.delay_s),
        }
        changes.append(back[kind])
    return changes


def causes_of(draws: random.Random, where: Where) -> tuple[str, ...]:
    """The main cause, and in a fifth of the draws a second one."""
    if draws.random() >= SHARE_OF_TWO:
        return (draws.choice([cause for cause in CAUSES if cause not in LACKS[where]]),)
    pair = (draws.choice(STAYING), draws.choice(COMING))
    return pair if draws.random() < 0.5 else pair[::-1]


def candidates(
    seed: int, number: int, where: Where
) -> Iterator[tuple[Setting, tuple[str, ...], float]]:
    """Settings whose limits bind, their causes, the main one first, and the goodput without one."""
    draws = random.Random(f"lfnlab diagnose {seed} {number} {where}")
    while True:
        causes = causes_of(draws, where)
        # Some pairs of causes and paths need many tries.
        for _ in range(TRIES):
            setting = drawn(draws, where, causes)
            if setting is not None and (without_bps := binds(setting, causes)) is not None:
                yield setting, causes, without_bps


def described(setting: Setting) -> dict[str, Any]:
    """Of a setting what is set, for JSON."""
    return {
        name: value
        for name, value in vars(setting).items()
        if value not in (None, 0, 0.0, False, ()) and name != "changes"
    } | {"changes": [vars(change) for change in setting.changes]}
