"""The path and the transfer that advice is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lfnlab.errors import UsageError
from lfnlab.scenario.builder import Scenario, dumbbell
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, parse

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
