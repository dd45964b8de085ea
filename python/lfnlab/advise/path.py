"""The path and the transfer that advice is asked for: from options, or from a file of iperf3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lfnlab.errors import UsageError
from lfnlab.scenario.builder import Scenario, dumbbell
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, parse

if TYPE_CHECKING:
    from lfnlab.formats.iperf3 import Measurement

FRAMING_BYTES, HEADERS_BYTES = 14, 52
MOST_STREAMS = 100
DEFAULT_S = 60.0
"""A transfer without a size is as long as the link needs this long for."""
MOST_WINDOW_BYTES = 65535 << 14
"""TCP's largest window: 16 bits, shifted by at most 14 (RFC 7323)."""
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
        return self.scenario(1.0).flow("reno", packet=self.packet).check()

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
class Measured:
    """The parts of a path that a measurement of iperf3 shows, None where it does not."""

    rate: str | None
    rtt: str | None
    buffer: str | None
    streams: int
    law: str
    notes: tuple[str, ...]


def measured(measurement: Measurement, file: str) -> Measured:
    """A path from a TCP test: its best interval is the rate, its RTTs are RTT and buffer.

    Raises:
        UsageError: the file is of UDP, or nothing arrived.
    """
    import polars as pl

    flows = measurement.summary["flows"]
    if any(flow["law"] == "udp" for flow in flows):
        raise UsageError(f"{file}: start.test_start.protocol: UDP; allowed: TCP")
    # A test both ways has two bottlenecks: the forward one counts.
    way = "forward" if any(flow["direction"] == "forward" for flow in flows) else "reverse"
    flows = [flow for flow in flows if flow["direction"] == way]
    which = [flow["id"] for flow in flows]
    mine = measurement.goodput.filter(pl.col("flow").is_in(which)).sort("flow", "t_s")
    # Streams end an interval a little after each other, so intervals are counted.
    numbered = mine.with_columns(pl.int_range(pl.len()).over("flow").alias("interval"))
    best_bps = float(numbered.group_by("interval").sum()["goodput_bps"].max() or 0.0)  # type: ignore[arg-type]
    if best_bps <= 0.0:
        raise UsageError(f"{file}: intervals: no byte was transferred; measure again")
    rate_bps = best_bps * 1514 / 1448
    rtts_s = [
        *(flow["min_rtt_s"] for flow in flows if flow["min_rtt_s"]),
        *measurement.flows.filter(pl.col("flow").is_in(which))["srtt_s"].drop_nulls().to_list(),
    ]
    notes = [
        f"rate: the best interval of the test, {rate_bps / 1e6:.4g} Mbit/s with headers; the link "
        "may be faster"
    ]
    rtt = buffer = None
    if rtts_s:
        least_s, most_s = min(rtts_s), max(rtts_s)
        rtt = f"{least_s * 1e3:.6g}ms"
        packets = math.floor((most_s - least_s) * rate_bps / 8 / 1514)
        notes.append(f"RTT: the least of the test, {least_s * 1e3:.4g} ms, its queue included")
        lost = sum(flow["retransmits"] or 0 for flow in flows)
        if lost == 0 or packets < 1:
            notes.append("buffer: not shown, since the test did not fill the queue")
        else:
            buffer = f"{packets} packets"
            notes.append(
                f"buffer: {packets:,} packets, the room that its RTTs of {least_s * 1e3:.4g} to "
                f"{most_s * 1e3:.4g} ms need; it may be larger"
            )
    return Measured(f"{rate_bps:.0f}bit/s", rtt, buffer, len(flows), flows[0]["law"], tuple(notes))
