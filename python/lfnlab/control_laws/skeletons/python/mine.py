"""Reno (RFC 5681), counted in whole packets, as a controller. Change ``Mine`` into yours.

    lfn compare --law ./mine.py,reno:linux --rate 100Mbit/s --rtt 40ms

docs/controllers.md explains every call.
"""

import lfnlab


class Mine(lfnlab.Controller):
    """It decides by ``window_bytes``, ``pacing_bytes_per_s`` and ``next_tick_ns``, in any call."""

    name = "mine"  # in results
    probes = ("counted",)  # attributes that the table of probes records, and figures draw

    def __init__(self, config: lfnlab.ControllerConfig) -> None:
        """A connection begins; ``window_bytes`` is its initial window."""
        self.packet_bytes = config.packet_bytes
        self.window = config.initial_window_bytes // config.packet_bytes  # packets
        self.ssthresh = 1 << 62  # packets
        self.counted = 0  # packets delivered since the window last grew
        self.before = (0, 0)  # window and ssthresh before the last reduction

    def ack(self, ack: lfnlab.ControllerAck) -> None:
        """An ACK, after its packets and events."""
        if ack.recovery or ack.duplicate or not ack.window_limited:
            return
        delivered = ack.acked_bytes // self.packet_bytes
        if self.window < self.ssthresh:  # slow start
            grown = min(delivered, self.ssthresh - self.window)
            self.window += grown
            delivered -= grown
        if delivered > 0:  # congestion avoidance: a packet for each window of them
            if self.counted >= self.window:
                self.counted = 0
                self.window += 1
            self.counted += delivered
            grown, self.counted = divmod(self.counted, self.window)
            self.window += grown
        self.window_bytes = self.window * self.packet_bytes

    def event(self, event: str, in_flight_bytes: int) -> None:
        """A loss, a mark, a timeout, or the end of an episode."""
        if event in ("loss", "ce", "timeout"):
            self.before = (self.window, self.ssthresh)
            self.ssthresh = max(self.window // 2, 2)
            self.window = 1 if event == "timeout" else self.ssthresh
            self.counted = 0
        elif event == "timeout_again":
            self.window = 1
        elif event == "spurious" and self.before[0] > self.window:
            self.window, self.ssthresh = self.before
        self.window_bytes = self.window * self.packet_bytes

    # Optional: sent(packet, in_flight_bytes), acked(packet) and lost(packet) for each packet, and
    # tick() at next_tick_ns.
