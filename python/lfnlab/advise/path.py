"""The path and the transfer that advice is asked for: from options, or from a file of iperf3."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lfnlab.errors import UsageError
from lfnlab.scenario.builder import Scenario, dumbbell
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, parse

if TYPE_CHECKING:
    from lfnlab.formats.measurement import Measurement

FRAMING_BYTES, HEADERS_BYTES = 14, 52
MOST_STREAMS = 100
DEFAULT_S = 60.0
"""A transfer without a size is as long as the link needs this long for."""
MOST_WINDOW_BYTES = 65535 << 14
"""TCP's largest window: 16 bits, shifted by at most 14 (RFC 7323)."""
NEAR_WINDOW = 0.7
"""A receiver's window is almost full if this part of it is under way on average."""
LEAST_BDP = 0.1
"""Least buffer that is simulated where a test does not show one, in bandwidth-delay products."""
MOST_LOSS = 0.5
MOST_PACKET_BYTES = 9000
OFFSET_RTTS = 50
"""Head start of a neighbour that is on the path before the transfer."""


@dataclass(frozen=True)
class Path:
    """One bottleneck with a drop-tail queue; quantities are as in a scenario."""

    rate: str
    rtt: str
    buffer: str
    loss: float = 0.0
    packet: str = "1500B"

    def scenario(self, duration_s: float, *, sample: str = "off") -> Scenario:
        """The path without flows."""
        duration = f"{max(1, round(duration_s * 1e9))}ns"
        loss = self.loss or None
        return dumbbell(
            rate=self.rate,
            rtt=self.rtt,
            buffer=self.buffer,
            duration=duration,
            loss=loss,
            sample=sample,
        )

    @cached_property
    def _resolved(self) -> dict[str, Any]:
        return self.scenario(1.0).flow("reno", packet=self.packet).check().to_document()

    def check(self) -> None:
        """Refuse a path that cannot be simulated.

        Raises:
            ScenarioError: naming the key.
        """
        _ = self._resolved

    @property
    def rate_bps(self) -> float:
        """The bottleneck's rate."""
        return parse(self._resolved["link"]["rate"], BITS_PER_S)

    @property
    def rtt_s(self) -> float:
        """The round-trip time without queues."""
        return parse(self._resolved["flow"][0]["rtt"], SECONDS)

    @property
    def packet_bytes(self) -> int:
        """A packet of IP."""
        return round(parse(self._resolved["flow"][0]["packet"], BYTES))

    @property
    def payload_bytes(self) -> int:
        """Data in a packet of TCP with timestamps."""
        return self.packet_bytes - HEADERS_BYTES

    @property
    def packets_per_s(self) -> float:
        """The rate in packets."""
        return self.rate_bps / 8 / (self.packet_bytes + FRAMING_BYTES)

    @property
    def bdp_packets(self) -> float:
        """The bandwidth-delay product."""
        return self.packets_per_s * self.rtt_s

    @property
    def buffer_packets(self) -> float:
        """The room of the queue."""
        text: str = self._resolved["link"]["queue"]["size"]
        if text.endswith("bdp"):
            return float(text.removesuffix("bdp")) * self.bdp_packets
        if "packet" in text:
            return float(text.split()[0])
        return parse(text, BYTES) / (self.packet_bytes + FRAMING_BYTES)

    @property
    def window_bytes(self) -> float:
        """The largest window that one stream needs: the path and its queue, full."""
        return (self.bdp_packets + self.buffer_packets) * self.packet_bytes

    @property
    def goodput_bps(self) -> float:
        """Payload that the full link carries."""
        return self.packets_per_s * self.payload_bytes * 8


def bytes_of(text: str | None, path: Path) -> int:
    """The size of the transfer.

    Raises:
        UsageError: naming the option.
    """
    least = path.payload_bytes
    if text is None:
        return max(least, round(DEFAULT_S * path.goodput_bps / 8))
    try:
        size = parse(text, BYTES)
    except UsageError as error:
        raise UsageError(f"--bytes: {error}") from None
    if size < least:
        raise UsageError(
            f'--bytes: "{text}"; allowed: from {least}B, the payload of one packet, to 1000000TB'
        )
    if size > 1e18:
        raise UsageError(f'--bytes: "{text}"; allowed: from {least}B to 1000000TB')
    return round(size)


def check_flows(flows: int) -> None:
    """Refuse a number of streams.

    Raises:
        UsageError: naming the option.
    """
    if not 1 <= flows <= MOST_STREAMS:
        raise UsageError(f"--flows: {flows}; allowed: 1 to {MOST_STREAMS} streams")


@dataclass(frozen=True)
class Bound:
    """The part of a quantity that a measurement shows, None where it does not."""

    name: str
    """As the option has it."""
    key: str
    """With its unit."""
    least: float | None
    most: float | None
    says: str
    decides: str
    """A measurement that would tell the rest, and the option for it."""

    @property
    def note(self) -> str:
        """One line."""
        return f"{self.name}: {self.says}. To decide: {self.decides}"


@dataclass(frozen=True)
class Measured:
    """A path as a measurement of iperf3 bounds it."""

    file: str
    bounds: tuple[Bound, ...]
    streams: int
    law: str
    packet: str
    lost: bool
    """Whether packets were sent again, as when a queue was full."""

    def cases(
        self, rate: str | None, rtt: str | None, buffer: str | None, loss: float | None, packet: str
    ) -> list[Path]:
        """The worst and the best path of its kind in which the bounds and what is given hold.

        The rate is the least and the RTT the most that the file shows; buffer and loss are at both
        ends of what it leaves open. A buffer that it does not bound from above has room for the
        path, if that is more.

        Raises:
            UsageError: naming an option without which there is no path.
        """
        by_name = {bound.name: bound for bound in self.bounds}
        if rate is None:
            rate = f"{by_name['rate'].least:.0f}bit/s"
        if rtt is None:
            if by_name["RTT"].most is None:
                raise UsageError(
                    f"--rtt: not given, and {self.file} does not show it; write for example "
                    "--rtt 180ms"
                )
            rtt = f"{by_name['RTT'].most * 1e3:.6g}ms"
        losses = [loss] * 2 if loss is not None else [by_name["loss"].most or 0.0, 0.0]
        buffers = [buffer, buffer]
        if buffer is None:
            bdp = Path(rate, rtt, "1bdp", 0.0, packet).bdp_packets
            shown = by_name["buffer"].least or 0.0
            small = shown if shown and self.lost else max(shown, LEAST_BDP * bdp, 1.0)
            buffers = [f"{math.floor(size)} packets" for size in (small, max(small, bdp))]
        pairs = zip(buffers, losses, strict=True)
        paths = [Path(rate, rtt, size or "", part, packet) for size, part in pairs]
        return list(dict.fromkeys(paths))


def measured(measurement: Measurement, file: str) -> Measured:
    """The bounds of a path that a TCP test shows.

    Its receiver's rate is the least rate of the link: a window, a send buffer, the application or
    losses may have held it back. Its least RTT is the most that the path has without queues. A
    retransmission stands for a loss at random or for one of the queue.

    Raises:
        UsageError: the file is of UDP, has no count of the receiver, or nothing arrived.
    """
    flows = measurement.summary["flows"]
    if any(flow["law"] == "udp" for flow in flows):
        raise UsageError(f"{file}: start.test_start.protocol: UDP; allowed: TCP")
    # A test both ways has two bottlenecks: the forward one counts.
    way = "forward" if any(flow["direction"] == "forward" for flow in flows) else "reverse"
    flows = [flow for flow in flows if flow["direction"] == way]
    goodputs = [flow["goodput_bps"] for flow in flows]
    if None in goodputs and measurement.summary["notes"]:
        raise UsageError(f"{file}: {measurement.summary['notes'][0]} Take a whole file")
    if None in goodputs:
        raise UsageError(
            f"{file}: a server that sends does not tell what arrived; take the client's file"
        )
    if sum(goodputs) <= 0.0:
        raise UsageError(f"{file}: intervals: no byte was transferred; measure again")
    segments = [flow["segment_bytes"] for flow in flows if flow["segment_bytes"]]
    segment = min(segments, default=None)
    # Without the size of segments the headers are not known: payload alone is less.
    factor = 1.0 if segment is None else (segment + HEADERS_BYTES + FRAMING_BYTES) / segment
    rate_bps = sum(goodputs) * factor
    which = [flow["id"] for flow in flows]
    srtts = measurement.flows["srtt_s"].filter(measurement.flows["flow"].is_in(which))
    rtts_s = [flow["min_rtt_s"] for flow in flows if flow["min_rtt_s"]] + srtts.filter(
        srtts > 0
    ).to_list()  # 0 is below a microsecond
    packet_bytes = 1500 if segment is None else round(segment) + HEADERS_BYTES
    bounds = (
        _rate(rate_bps, measurement, flows, min(rtts_s, default=None)),
        _rtt(rtts_s),
        _buffer(rtts_s, rate_bps, packet_bytes),
        _loss(flows, segment),
    )
    packet = f"{packet_bytes}B" if packet_bytes <= MOST_PACKET_BYTES else "1500B"
    lost = any(flow["retransmits"] for flow in flows)
    return Measured(file, bounds, len(flows), flows[0]["law"], packet, lost)


def _rate(
    rate_bps: float, measurement: Measurement, flows: Sequence[Any], rtt_s: float | None
) -> Bound:
    said = measurement.summary["iperf3"]
    held = []
    if said["target_bps"]:
        held.append(f"the test was to send at most {said['target_bps'] / 1e6:.4g} Mbit/s (-b)")
    if said["socket_buffer_bytes"]:
        held.append(f"its socket buffers were set to {said['socket_buffer_bytes']:,.0f} bytes (-w)")
    for flow in flows:
        offered, goodput_bps = flow["offered_window_bytes"], flow["goodput_bps"]
        if rtt_s and offered and goodput_bps * rtt_s / 8 > NEAR_WINDOW * offered:
            held.append(f"the receiver's window of {offered:,.0f} bytes was almost full")
            break
    if not held:
        held.append(
            "a window, a send buffer, the application, a policer or losses may have held it"
        )
    return Bound(
        "rate",
        "rate_bps",
        rate_bps,
        None,
        f"at least {rate_bps / 1e6:.4g} Mbit/s of goodput; {', '.join(held)}",
        "the nominal rate of the link, or iperf3 -u -b, raised until goodput stops growing; --rate",
    )


def _rtt(rtts_s: Sequence[float]) -> Bound:
    most = min(rtts_s, default=None)
    says = "not shown" if most is None else f"at most {most * 1e3:.4g} ms, queueing included"
    return Bound("RTT", "rtt_s", None, most, says, "ping on the idle path; --rtt")


def _buffer(rtts_s: Sequence[float], rate_bps: float, packet_bytes: int) -> Bound:
    least = None
    says = "not shown"
    if rtts_s:
        spread_s = max(rtts_s) - min(rtts_s)
        packets = math.floor(spread_s * rate_bps / 8 / (packet_bytes + FRAMING_BYTES))
        if packets >= 1:
            least = float(packets)
            unit = "packet" if packets == 1 else "packets"
            says = (
                f"at least {packets:,} {unit}, if a queue made the RTTs of "
                f"{min(rtts_s) * 1e3:.4g} to {max(rtts_s) * 1e3:.4g} ms differ"
            )
    decides = "ping while a test fills the path: the added RTT times the rate; --buffer"
    return Bound("buffer", "buffer_packets", least, None, says, decides)


def _loss(flows: Sequence[Any], segment: float | None) -> Bound:
    """With k retransmissions of n packets at most (k + 2 sqrt(k) + 3) / n, with about 95 %."""
    decides = "iperf3 -u -b at half the rate for a minute: its losses are random; --loss"
    counts = [flow["retransmits"] for flow in flows]
    if None in counts:
        says = "not shown: a receiver's file has no retransmissions"
        return Bound("loss", "loss", 0.0, None, says, decides)
    again = sum(counts)
    sent = max(1.0, again + sum(flow["delivered_bytes"] for flow in flows) / (segment or 1448))
    most = min(MOST_LOSS, (again + 2 * math.sqrt(again) + 3) / sent)
    says = f"0 to {most:.2g}: {again:,} of {sent:,.0f} packets were retransmitted"
    if again:
        says += ", after random losses or drops by a queue or a policer"
    return Bound("loss", "loss", 0.0, most, says, decides)
