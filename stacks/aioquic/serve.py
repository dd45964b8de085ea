"""One controller of aioquic, called as its recovery calls it: calls come in, windows go out.

$ python serve.py NAME < calls > windows

A record is that of pipe.c. A window, eight bytes, answers each call that may change it.
"""

from __future__ import annotations

import struct
import sys

import aioquic.quic.congestion.cubic
import aioquic.quic.congestion.reno  # noqa: F401, as the line above it registers itself
from aioquic.quic.congestion.base import QuicCongestionControl, create_congestion_control
from aioquic.quic.packet import QuicPacketType
from aioquic.quic.packet_builder import QuicSentPacket
from aioquic.tls import Epoch

RECORD = struct.Struct("=II6Q")
CREATE, SENT, ACKED, LOST, ACK, TIMEOUT, TIMEOUT_AGAIN = range(7)


def packet(number: int, sent_ns: int, size_bytes: int) -> QuicSentPacket:
    """A full packet of data."""
    return QuicSentPacket(
        epoch=Epoch.ONE_RTT,
        in_flight=True,
        is_ack_eliciting=True,
        is_crypto_packet=False,
        packet_number=number,
        packet_type=QuicPacketType.ONE_RTT,
        sent_time=sent_ns / 1e9,
        sent_bytes=size_bytes,
    )


class Connection:
    """A controller, and what its recovery keeps for it."""

    def __init__(self, control: QuicCongestionControl) -> None:
        self.control = control
        self.sent: dict[int, QuicSentPacket] = {}
        self.lost: list[QuicSentPacket] = []

    def flush(self, now_s: float, *, persistent: bool) -> None:
        """Tell the losses that one ACK or timeout found."""
        if self.lost:
            self.control.on_packets_lost(now=now_s, packets=self.lost)
            self.lost = []
            if persistent:
                self.control.on_persistent_congestion()

    def call(
        self, kind: int, now_ns: int, number: int, sent_ns: int, size: int, rtt_ns: int
    ) -> bool:
        """One call; whether a window answers it."""
        now_s = now_ns / 1e9
        if kind == SENT:
            self.flush(now_s, persistent=False)
            self.sent[number] = packet(number, sent_ns, size)
            self.control.on_packet_sent(packet=self.sent[number])
        elif kind == ACKED:
            # A packet that was taken for lost is none that QUIC would count.
            if told := self.sent.pop(number, None):
                self.control.on_packet_acked(now=now_s, packet=told)
        elif kind == LOST:
            if told := self.sent.pop(number, None):
                self.lost.append(told)
        elif kind == ACK:
            if rtt_ns > 0:
                self.control.on_rtt_measurement(now=now_s, rtt=rtt_ns / 1e9)
            self.flush(now_s, persistent=False)
        else:
            self.flush(now_s, persistent=kind == TIMEOUT_AGAIN)
        return kind not in (SENT, ACKED, LOST)


def main() -> None:
    """Answer calls until there are none."""
    calls, windows = sys.stdin.buffer, sys.stdout.buffer
    connection = None
    while len(record := calls.read(RECORD.size)) == RECORD.size:
        kind, size, now_ns, number, sent_ns, rtt_ns, *_ = RECORD.unpack(record)
        if connection is None:
            control = create_congestion_control(sys.argv[1], max_datagram_size=size)
            connection = Connection(control)
            answers = True
        else:
            answers = connection.call(kind, now_ns, number, sent_ns, size, rtt_ns)
        if answers:
            windows.write(struct.pack("=Q", connection.control.congestion_window))
            windows.flush()


if __name__ == "__main__":
    main()
