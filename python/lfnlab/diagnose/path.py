"""The path below one measured flow: rate, base RTT, buffer, random loss, cross traffic.

A flow shows the rate of its path only while a queue stands: then the link is busy, and what is
acknowledged is what it carries. A flow that its window, its send buffer or its application holds
back shows no more than that the path has its rate. A queue shows as RTT above the smallest. It
shows the size of the buffer where it overflows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.diagnose.estimate import Estimate, toml
from lfnlab.errors import UsageError
from lfnlab.scenario.builder import Scenario, dumbbell
from lfnlab.scenario.elements import Application, Burst, Policer, Udp
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, parse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lfnlab.diagnose.evidence import Evidence, Floats

HEADERS_BYTES, FRAMING_BYTES = 52, 14
"""Of a segment: IP and TCP with timestamps; Ethernet."""
MOST_PACKET_BYTES, MOST_NS = 64_000, 2_592_000 * 10**9
"""Of a scenario."""
QUEUE_PACKETS, QUEUE_PART, QUEUE_S = 3, 0.03, 3e-4
"""A queue stands where the RTT exceeds the smallest by so many packets' time, this part of it, and
this time: less is the jitter of hosts."""
STEP_S, LEAST_ROWS = 0.1, 50
"""Time of a sample, and samples that a short transfer has."""
HELD_PART = 0.1
"""The same part for a flow that something else holds back: its RTT must tell more."""
NEAR = 0.9
"""A window is full from this part on: what is in flight is between two and one segments less."""
FULL = 0.7
"""A queue that lost packets by overflow is at least so full in the samples around a loss: they are
up to a sample's time away."""
MOST_APART = 0.1
"""Rates of a busy link differ by less; others are of recoveries, whose ACKs come in jumps."""
LEAST_S, LEAST_RTTS = 1.0, 10
"""In this time an ACK that ends a recovery, of all that waited for it, is no rate."""
RECOVERY_RTTS = 2
"""After the last segment sent again: until its ACK, and those of what followed."""
BURST = 3
"""An episode that loses so many times what is usual overflows a queue: random losses come alone."""
ENOUGH = 10
"""Samples in which a rate is not by chance."""
START_GROWTH = 1.3
"""Before its first loss a flow that grows faster, from sample to sample, is in slow start."""
NOT_ALONE = 0.25
"""Rates of rows with a queue that spread by more (quartiles): another flow shares the link."""
IDLE = 0.97
"""Below this part of its rate a link was idle at times, and its queue empty."""
OWN_PACKETS = 0.75
"""RTT of a full queue beyond its packets: half of the one in service, and for every
second packet, which waits for the ACK of two, another half."""
ASSUMED_BDP = 1.0
"""The buffer, where a flow does not show one."""
HOLDING = ("receive-window", "send-buffer", "application", "pacing", "slow-start", "ack-path")
"""Causes that say nothing of the link's rate."""
UNSURE = ("pacing", "policer")
"""Causes that a law which avoids queues, or random losses, look like: only if they are certain."""
FULL_LINK = "queue-overflow"
"""The cause under which the link is full."""
AGAIN, SAME, HOST_S = 3, 0.02, 5e-4
"""A base RTT of smoothed samples shows in so many, to this part of it; and a host's own delay."""
QUIET = ("random-loss", "policer", "pacing")
"""Causes under which the link is idle at times, and a sample's packet waits for none."""


@dataclass(frozen=True)
class Fit:
    """A path, and what holds the flow back on it."""

    rate_bps: Estimate
    """Of the bottleneck, with headers."""
    rtt_s: Estimate
    """Without queues and without the time to send the packet."""
    buffer_packets: Estimate
    loss: Estimate
    """Probability that a packet is lost at random, whatever the queue does."""
    cross_bps: Estimate
    """Traffic of others over the bottleneck."""
    packet_bytes: int
    """A packet of IP."""
    duration_s: float
    goodput_bps: float
    """Of the flow."""
    held: Mapping[str, Any] = field(default_factory=dict)
    """Settings of a scenario's flow that hold it back as the measurement was."""
    policer: Policer | None = None

    @property
    def payload_bytes(self) -> int:
        """Data of a full packet."""
        return self.packet_bytes - HEADERS_BYTES

    @property
    def wire_bytes(self) -> int:
        """A packet on the link."""
        return self.packet_bytes + FRAMING_BYTES

    @property
    def bdp_packets(self) -> float:
        """The bandwidth-delay product."""
        return self.rate_bps.value * self.rtt_s.value / 8 / self.wire_bytes

    def simulated(
        self, law: str, duration_s: float, *, is_held: bool = True, sample: str = "off", **more: Any
    ) -> Scenario:
        """The path with one flow, held back as the measured one or not."""
        base = dumbbell(
            rate=f"{min(max(self.rate_bps.value, 1e3), 1e13):.0f}bit/s",
            rtt=f"{min(max(1, round(self.rtt_s.value * 1e9)), 10**12)}ns",
            buffer=f"{max(1, round(self.buffer_packets.value))} packets",
            duration=f"{min(max(1000, round(duration_s * 1e9)), MOST_NS)}ns",
            loss=self.loss.value or None,
            sample=sample,
        )
        if self.policer is not None:
            assert base.link is not None
            base = replace(base, link=replace(base.link, policer=self.policer))
        if self.cross_bps.value:
            constant = Burst(
                rate=f"{self.cross_bps.value:.0f}bit/s", start="0s", stop=base.duration
            )
            base = base.with_udp(Udp(bursts=(constant,)))
        settings = {**(self.held if is_held else {}), **more}
        return base.flow(law, packet=f"{self.packet_bytes}B", **settings)

    def scenario(self, law: str = "cubic:linux") -> str:
        """TOML of the path with a flow as the measured one; comments tell fitted from assumed."""
        notes = {
            "link.rate": self.rate_bps.note("rate"),
            "link.queue.size": self.buffer_packets.note("buffer"),
            "link.loss": self.loss.note("loss"),
            "link.policer.rate": "policer, fitted: above this rate packets are lost, no queue",
            "flow.law": "law: as it was told or ranked first, else assumed",
            "flow.rtt": self.rtt_s.note("RTT"),
            "udp.bursts": self.cross_bps.note("cross traffic"),
            **{f"flow.{key}": "fitted: it held the flow back" for key in self.held},
        }
        document = self.simulated(law, self.duration_s).to_document()
        lines = ["# The path below one measured flow: fitted to it, or assumed."]
        if not self.loss.value:
            lines.append(f"# {notes['link.loss']}")
        if not self.cross_bps.value:
            lines.append(f"# {notes['udp.bursts']}")
        return "\n".join([*lines, *toml(document, "", notes)]) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The estimates by key."""
        keys = ("rate_bps", "rtt_s", "buffer_packets", "loss", "cross_bps")
        return {key: getattr(self, key).to_json() for key in keys} | {
            "packet_bytes": self.packet_bytes,
            "held": dict(self.held),
            "policer": None if self.policer is None else vars(self.policer),
        }


class _Shown:
    """Findings in the rows of a flow; rows as in :class:`Evidence`."""

    def __init__(self, evidence: Evidence, cause: str) -> None:
        self.evidence = evidence
        segment = evidence.segment_bytes
        self.wire_bytes = segment + HEADERS_BYTES + FRAMING_BYTES
        self.lengths_s = evidence.lengths_s
        self.base_s = _least_rtt(evidence)
        again = np.nan_to_num(evidence.retransmits)
        sent_bps = evidence.goodput_bps + again * segment * 8 / self.lengths_s
        self.rates_bps: Floats = sent_bps * self.wire_bytes / segment
        self.lossy: NDArray[np.bool_] = again > 0
        if np.isnan(evidence.retransmits).all():  # Then a smaller window tells of a loss.
            fell = np.diff(evidence.cwnd_bytes, prepend=np.nan)
            self.lossy = fell < -0.1 * evidence.cwnd_bytes
        told = evidence.flow.get("min_rtt_s")
        self.is_sampled = not (told == self.base_s and np.isfinite(evidence.inflight_bytes).any())
        """The smallest RTT is that of the samples, not of all ACKs with the handshake's."""
        self.is_smoothed = bool(np.isfinite(evidence.cwnd_bytes).any())
        """RTTs are a socket's."""
        self.queues_s: Floats = evidence.rtt_s - self.base_s
        known = np.isfinite(self.rates_bps) & (self.lengths_s > 0)
        self.clean: NDArray[np.bool_] = known & ~self._recovering()
        if not known.any() or not (evidence.goodput_bps[known] > 0).any():
            raise UsageError("the flow's rate is not told, or no byte was acknowledged")
        self.is_written = bool(evidence.flow.get("written_bytes") and evidence.flow["goodput_bps"])
        """Rates are of what the application wrote: ahead of what arrived by the send buffer."""
        if self.is_written:
            self.clean[0] = False
        mean_bps = float(np.average(self.rates_bps[known], weights=self.lengths_s[known]))
        self.held = cause if cause in HOLDING else self._held()
        self.usual_bps = self._usual()
        self.top_bps = self._top() or mean_bps
        part = HELD_PART if self.held else QUEUE_PART
        ser_s = self.wire_bytes * 8 / self.top_bps
        base_s = np.nan_to_num(self.base_s)
        self.least_queue_s = max(QUEUE_PACKETS * ser_s, part * base_s, QUEUE_S)
        stands = self.queues_s > self.least_queue_s
        self.busy: NDArray[np.bool_] = self.clean & stands & _before(stands)
        self.busy &= ~(evidence.app_limited > 0) & ~self._starting()

    def _recovering(self) -> NDArray[np.bool_]:
        """Rows with a loss, and those after it whose ACKs come in jumps."""
        ends = np.where(self.lossy, self.evidence.edges_s[1:], -np.inf)
        last_s = np.maximum.accumulate(np.concatenate([[-np.inf], ends[:-1]]))
        rest_s = RECOVERY_RTTS * np.nan_to_num(self.evidence.rtt_s)
        after: NDArray[np.bool_] = self.evidence.edges_s[:-1] <= last_s + rest_s
        return self.lossy | after

    def _usual(self) -> float:
        """The most of single rows but in recoveries, whose ACKs come in jumps; 0 of few rows."""
        if self.clean.sum() < ENOUGH:
            return 0.0
        # Slow start may have filled the link, once.
        start = self.rates_bps[self.clean & (np.cumsum(self.lossy) == 0)]
        usual = float(np.quantile(self.rates_bps[self.clean], 0.9))
        return max(usual, float(start.max(initial=0.0)))

    def _top(self) -> float:
        """The most that was acknowledged: in many RTTs where rows are a socket's in a queue."""
        segment = self.evidence.segment_bytes
        if self.is_written:
            return float(self.evidence.flow["goodput_bps"]) * self.wire_bytes / segment
        if np.isnan(self.evidence.retransmits).all():
            return 0.0  # A receiver's count jumps when a loss is mended; its mean is sure.
        if self.usual_bps and (self.held or not self.is_smoothed):
            return self.usual_bps
        window_s = max(LEAST_S, LEAST_RTTS * _median(self.evidence.rtt_s))
        ends = self.evidence.edges_s[1:]
        moved = np.nan_to_num(self.evidence.goodput_bps) * self.lengths_s
        total = np.concatenate([[0.0], np.cumsum(moved)])
        first = np.searchsorted(ends, ends - window_s + 1e-9).clip(0)
        first = np.minimum(first, np.arange(ends.size))
        spans = ends - self.evidence.edges_s[first]
        rates = (total[1:] - total[first]) / spans
        whole = spans >= 0.9 * min(window_s, self.seconds)
        return float(np.quantile(rates[whole], 0.9)) * self.wire_bytes / segment

    def _starting(self) -> NDArray[np.bool_]:
        """Rows of the first slow start: its bursts queue, and between them the link is idle."""
        evidence = self.evidence
        levels = next(
            (x for x in (evidence.cwnd_bytes, evidence.inflight_bytes) if np.isfinite(x).any()),
            self.rates_bps,
        )
        grows = levels > START_GROWTH * np.concatenate([[0.0], levels[:-1]])
        starting: NDArray[np.bool_] = grows & (np.cumsum(self.lossy) == 0)
        return starting

    def _held(self) -> str:
        """The limit of the flow besides the path, by the tool's own word; "" if nothing."""
        evidence = self.evidence
        with np.errstate(invalid="ignore"):
            flight = np.fmax(evidence.inflight_bytes, evidence.goodput_bps * evidence.rtt_s / 8)
            room = evidence.window_bytes - 2 * evidence.segment_bytes
            full = flight >= NEAR * room
        limited = {
            "receive-window": max(_mean(full[1:]), _part(evidence.rwnd_limited_s, evidence)),
            "send-buffer": _part(evidence.sndbuf_limited_s, evidence),
            "application": _mean(evidence.app_limited > 0),
        }
        cause = max(limited, key=lambda name: limited[name])
        return cause if limited[cause] >= 0.5 else ""

    @property
    def seconds(self) -> float:
        return float(self.lengths_s.sum())


def _least_rtt(evidence: Evidence) -> float:
    """The smallest RTT. One of whole milliseconds may be of time stamps, which cut (Linux)."""
    told = evidence.flow.get("min_rtt_s")
    seen = evidence.rtt_s[evidence.rtt_s > 0]
    if told and seen.size and abs(told * 1e3 - round(told * 1e3)) < 1e-6:
        return float(seen.min())
    return evidence.min_rtt_s


def _before(rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The same of the row before; there is none before the first."""
    return np.concatenate([[False], rows[:-1]])


def _mean(rows: NDArray[np.bool_]) -> float:
    return float(rows.mean()) if rows.size else 0.0


def _median(values: Floats) -> float:
    """Of what is known; 0 if nothing is."""
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else 0.0


def _part(seconds: Floats, evidence: Evidence) -> float:
    """The part of the time in which the sender was so limited."""
    return float(np.nansum(seconds)) / max(float(evidence.lengths_s.sum()), 1e-9)


def step_s(evidence: Evidence) -> float:
    """Time of a sample in which a rate and a window show: shorter ones show single packets."""
    return min(STEP_S, float(evidence.edges_s[-1] - evidence.edges_s[0]) / LEAST_ROWS)


def fit(evidence: Evidence, diagnosis: Any = None, *, is_right: bool = False) -> Fit:
    """The path that a flow shows, with what it does not show assumed.

    Args:
        evidence: the flow.
        diagnosis: what limited it (:func:`lfnlab.diagnose.causes.diagnose`), where known. Without
            it the tool's own counts tell what held the flow back.
        is_right: take its cause as right also where it is not certain.

    Raises:
        UsageError: nothing arrived, or the tool tells no rate.
    """
    cause = getattr(diagnosis, "cause", "") or ""
    if cause in UNSURE and not (is_right or getattr(diagnosis, "certain", True)):
        cause = ""
    evidence = evidence.coarser(step_s(evidence))
    shown = _Shown(evidence, str(cause))
    packet = min(MOST_PACKET_BYTES, round(evidence.segment_bytes) + HEADERS_BYTES)
    goodput_bps = float(np.nansum(evidence.goodput_bps * shown.lengths_s) / shown.seconds)
    policer = _policer(shown) if cause == "policer" else None
    named = str(getattr(diagnosis, "cause", ""))
    rate, cross = _rate(shown, policer, named)
    rtt = _rtt(shown, rate, named)
    return Fit(
        rate_bps=rate,
        rtt_s=rtt,
        buffer_packets=_buffer(shown, rate, rtt, named),
        loss=_loss(shown, policer),
        cross_bps=cross,
        packet_bytes=packet,
        duration_s=shown.seconds,
        goodput_bps=goodput_bps,
        held=_settings(shown, goodput_bps),
        policer=policer,
    )


def given(
    found: Fit, *, rate: str | None, rtt: str | None, buffer: str | None, loss: float | None
) -> Fit:
    """The same with what is known in the place of what was fitted; quantities as in a scenario.

    Raises:
        ScenarioError: naming the key of a quantity that no path has.
    """
    if (rate, rtt, buffer, loss) == (None, None, None, None):
        return found
    checked = dumbbell(
        rate=rate or "1Mbit/s", rtt=rtt or "1ms", buffer=buffer or "1 packets", loss=loss or None
    )
    checked.flow("reno", packet=f"{found.packet_bytes}B").check()
    if loss is not None and not 0 <= loss < 1:
        raise UsageError(f"--loss: {loss} is out of range; allowed: at least 0, below 1")

    def known(value: float) -> Estimate:
        return Estimate(value, value, value, "given")

    if rate is not None:
        found = replace(found, rate_bps=known(parse(rate, BITS_PER_S)))
    if rtt is not None:
        found = replace(found, rtt_s=known(parse(rtt, SECONDS)))
    if buffer is not None:
        if buffer.endswith("bdp"):
            packets = float(buffer.removesuffix("bdp")) * found.bdp_packets
        elif "packet" in buffer:
            packets = float(buffer.split()[0])
        else:
            packets = parse(buffer, BYTES) / found.wire_bytes
        found = replace(found, buffer_packets=known(max(1.0, packets)))
    return found if loss is None else replace(found, loss=known(loss))


def _rate(shown: _Shown, policer: Policer | None, cause: str) -> tuple[Estimate, Estimate]:
    """The rate of the link, and what others have of it."""
    none = Estimate(0.0, 0.0, math.inf, "none; a constant one looks as a slower link", "", False)
    rates = shown.rates_bps[shown.busy]
    middle = float(np.median(rates)) if rates.size else 0.0
    # A burst of a window that does not fill the link queues, too; what was written comes in blocks.
    is_few = cause in HOLDING or rates.size < AGAIN
    is_mean = shown.is_written or (is_few and cause not in ("", FULL_LINK))
    # The RTT of a socket rises with ACKs that wait, too; a queue of theirs loses no data.
    is_mean |= shown.is_smoothed and _full(shown, _losses(shown)[0]).sum() < 2
    if not middle >= NEAR * max(shown.top_bps, shown.usual_bps) or policer is not None or is_mean:
        most = shown.top_bps
        stood = "no queue stood for long" if rates.size else "no queue stood"
        why = f"the {shown.held} held it back" if shown.held else stood
        why = "a policer drops what is above its rate" if policer is not None else why
        how = f"the flow had {most / 1e6:.4g} Mbit/s with headers; {why}, so the link may be faster"
        return Estimate(most, most, math.inf, how, "least"), none
    lengths = shown.lengths_s[shown.busy]
    low, high = (float(x) for x in np.quantile(rates, [0.25, 0.75]))
    spread = (high - low) / middle
    if rates.size >= ENOUGH and spread > NOT_ALONE:
        top = float(np.quantile(rates, 0.95))
        mean = float(np.average(rates, weights=lengths))
        how = (
            f"with a queue the flow had {low / 1e6:.4g} to {high / 1e6:.4g} Mbit/s with headers "
            "(quartiles), so others share the link"
        )
        return (
            Estimate(top, top, math.inf, f"{how}; at least its most", "least"),
            Estimate(top - mean, 0.0, math.inf, how),
        )
    apart = np.abs(rates - middle)
    near = apart <= max(MOST_APART * middle, float(apart.min()))  # Of two the middle is neither.
    value = float(np.average(rates[near], weights=lengths[near]))
    half = max(0.005 * value, 1.57 * (high - low) / math.sqrt(rates.size))
    samples = "1 sample" if rates.size == 1 else f"{rates.size:,} samples"
    how = f"what was acknowledged in {samples} while a queue stood, with headers"
    alone = Estimate(
        0.0, 0.0, high - low, "none seen: with a queue the flow's rate is constant", "", True
    )
    return Estimate(value, value - half, value + half, how), alone if rates.size >= ENOUGH else none


def _rtt(shown: _Shown, rate: Estimate, cause: str) -> Estimate:
    """The smallest RTT, without the time on the link where a full packet gave it."""
    least_s = shown.base_s
    if not np.isfinite(least_s):
        return Estimate(0.1, 0.0, math.inf, "the tool tells no RTT; 100 ms", "", False)
    ser_s = shown.wire_bytes * 8 / rate.value
    low_s = max(0.0, least_s - ser_s)
    if shown.held == "ack-path":
        how = (
            f"the smallest RTT, {least_s * 1e3:.4g} ms; ACKs waited on their way in it, or may have"
        )
        return Estimate(least_s, 0.0, least_s, how, "most")
    if not shown.is_sampled:
        how = f"the smallest RTT, {least_s * 1e3:.4g} ms, which is the handshake's at most"
        return Estimate(least_s, low_s, least_s, how)
    how = f"the smallest of the samples, {least_s * 1e3:.4g} ms"
    rtts = np.sort(shown.evidence.rtt_s[np.isfinite(shown.evidence.rtt_s)])
    is_floor = rtts.size >= AGAIN and rtts[AGAIN - 1] <= (1 + SAME) * least_s
    if shown.is_smoothed and (not is_floor or SAME * least_s < HOST_S):
        how += ", smoothed; a queue or the hosts may be in it"
        return Estimate(least_s, 0.0, least_s, how, "most")
    if rate.bound == "least" and (shown.held or cause in QUIET):
        how += ", with the packet's own time, which is short if the link is faster"
        return Estimate(least_s, min(low_s, 0.97 * least_s), least_s, how)
    value = max(low_s, least_s / 2)
    how += ", less the packet's own time"
    if np.isnan(shown.evidence.rtt_s).all():
        return Estimate(value, 0.0, least_s, how, "most")
    at = int(np.nanargmin(shown.evidence.rtt_s))
    segments = shown.evidence.cwnd_bytes[at] / shown.evidence.segment_bytes
    needed = segments * ser_s if np.isfinite(segments) else shown.rates_bps[at] / rate.value
    if not shown.held and not needed < IDLE * (least_s if np.isfinite(segments) else 1.0):
        how += "; the window filled the link then, so a queue may be in it"
        return Estimate(value, 0.0, least_s, how, "most")
    return Estimate(value, min(value, 0.97 * least_s), least_s, how)


def _losses(shown: _Shown) -> tuple[Floats, Floats]:
    """Of each episode of loss: the longest queue around it, and the segments sent again."""
    rtts_s = np.nan_to_num(shown.evidence.rtt_s)
    is_apart = ~_before(shown.lossy) | (shown.lengths_s > LEAST_RTTS * rtts_s)
    starts = np.flatnonzero(shown.lossy & is_apart)
    ends = [*starts[1:], shown.lossy.size][: starts.size]
    again = np.nan_to_num(shown.evidence.retransmits)
    queues, lost = [], []
    for start, end in zip(starts, ends, strict=True):
        around = shown.queues_s[max(0, start - 1) : start + 1]
        known = around[np.isfinite(around)]
        queues.append(float(known.max()) if known.size else np.nan)
        lost.append(max(1.0, float(again[start:end].sum())))
    return np.array(queues), np.array(lost)


def _full(shown: _Shown, queues: Floats) -> NDArray[np.bool_]:
    """Which episodes came with a full queue: none where most came with less."""
    most_s = float(np.nanmax(shown.queues_s, initial=0.0))
    full: NDArray[np.bool_] = queues >= FULL * most_s
    is_seen = most_s > shown.least_queue_s and full.sum() * 2 >= queues.size
    return full if is_seen else np.zeros(queues.size, bool)


def _buffer(shown: _Shown, rate: Estimate, rtt: Estimate, cause: str) -> Estimate:
    ser_s = shown.wire_bytes * 8 / rate.value
    # RTTs of a recovery hold the wait for segments that were sent again.
    most_s = float(np.nanmax(shown.evidence.rtt_s[~shown.lossy], initial=rtt.value)) - rtt.value
    packets = max(1.0, most_s / ser_s - OWN_PACKETS)
    queues, _ = _losses(shown)
    full = _full(shown, queues)
    stood = f"a queue added {most_s * 1e3:.4g} ms to the RTT"
    assumed = max(1.0, ASSUMED_BDP * rtt.value / ser_s)
    others = {
        "ack-path": "ACKs that waited",
        "path-change": "another way",
        "application": "pauses of the application",
    }
    if (other := others.get(cause) or others.get(shown.held)) is not None:
        how = f"{stood}, which may have been {other}; one bandwidth-delay product"
        return Estimate(assumed, 1.0, math.inf, how, "", False)
    if full.sum() > 1 and not rate.bound and not rtt.bound:
        how = f"{stood}, and it overflowed, in {int(full.sum()):,} episodes of loss"
        return Estimate(packets, 0.95 * packets, 1.05 * packets + 1, how)
    if most_s <= shown.least_queue_s:
        how = "no queue stood; one bandwidth-delay product"
        return Estimate(assumed, 1.0, math.inf, how, "", False)
    if shown.is_smoothed and not full.any():
        how = f"{stood}, or ACKs waited, which a socket does not tell; one bandwidth-delay product"
        return Estimate(assumed, 1.0, math.inf, how, "", False)
    if full.any():
        how = f"{stood}; it overflowed, perhaps between two samples"
        return Estimate(packets, packets, math.inf, how, "least")
    how = f"{stood} and did not overflow"
    if packets >= assumed or (queues >= NEAR * np.nanmax(queues, initial=0.0)).sum() > 1:
        return Estimate(packets, packets, math.inf, how, "least")
    how += "; one bandwidth-delay product, which is more"
    return Estimate(assumed, packets, math.inf, how, "least", False)


def _loss(shown: _Shown, policer: Policer | None) -> Estimate:
    """The segments sent again in episodes without a full queue, of those that were sent."""
    evidence = shown.evidence
    queues, lost = _losses(shown)
    at_random = ~_full(shown, queues)
    sent = max(1.0, float(np.nansum(shown.rates_bps * shown.lengths_s)) / 8 / shown.wire_bytes)
    if policer is not None:
        return Estimate(0.0, 0.0, 1.0, "none; a policer hides it", "", False)
    if np.isnan(evidence.retransmits).all() and not queues.size:
        how = "none; the tool counts no retransmissions"
        return Estimate(0.0, 0.0, 1.0, how, "", False)
    if at_random.size and at_random[0]:
        # Slow start overflows a queue between two samples; by chance no more is lost at once.
        last = int(np.flatnonzero(np.cumsum(np.diff(shown.lossy, prepend=False)) < 2)[-1])
        moved = np.nancumsum(shown.rates_bps * shown.lengths_s)
        later = max(1.0, float(moved[-1] - moved[last]))
        alike = float(lost[1:][at_random[1:]].sum()) * float(moved[last]) / later
        at_random[0] = lost[0] <= alike + 3 * math.sqrt(alike) + 3
    usual = float(np.median(lost[at_random])) if at_random.any() else 0.0
    count = float(np.minimum(lost, BURST * usual)[at_random].sum())
    # 95 % of a Poisson count, from its square root.
    low = max(0.0, math.sqrt(count) - 1) ** 2 / sent
    high = (math.sqrt(count) + 1) ** 2 / sent + 2 / sent
    if not count:
        how = f"none of {sent:,.0f} packets was lost without a full queue"
        return Estimate(0.0, 0.0, min(1.0, high), how)
    how = f"{count:,.0f} of {sent:,.0f} packets were sent again without a full queue"
    return Estimate(min(0.5, count / sent), low, min(1.0, high), how)


def _policer(shown: _Shown) -> Policer | None:
    """A token bucket: its rate in the later half, and the burst that went before."""
    sent = np.nan_to_num(shown.rates_bps * shown.lengths_s)
    later = shown.evidence.edges_s[1:] > shown.evidence.edges_s[0] + shown.seconds / 2
    rate_bps = float(sent[later].sum() / shown.lengths_s[later].sum())
    if not rate_bps > 0:
        return None
    ahead = float((np.cumsum(sent) - rate_bps * np.cumsum(shown.lengths_s)).max()) / 8
    burst = max(2 * shown.wire_bytes, ahead)
    return Policer(rate=f"{max(1000.0, rate_bps):.0f}bit/s", burst=f"{burst:.0f}B")


def _settings(shown: _Shown, goodput_bps: float) -> dict[str, Any]:
    """The limit of the flow, as a scenario's flow has it."""
    evidence = shown.evidence
    flight = evidence.goodput_bps * evidence.rtt_s / 8
    if shown.held == "receive-window" and np.isfinite(evidence.window_bytes).any():
        window = max(evidence.segment_bytes, float(np.nanmedian(evidence.window_bytes)))
        return {"receive_window": f"{math.ceil(window)}B"}
    if shown.held == "send-buffer" and np.isfinite(flight).any():
        return {"send_buffer": f"{max(np.nanmedian(flight), evidence.segment_bytes):.0f}B"}
    if shown.held in ("application", "pacing"):
        return {"application": Application(rate=f"{max(1000.0, goodput_bps):.0f}bit/s")}
    return {}
