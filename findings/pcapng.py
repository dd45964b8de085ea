"""Blocks of a pcapng file, for the scripts of this folder."""

from __future__ import annotations

import struct

IP = bytes.fromhex("4500001c00010000401100000a0000010a0000020001000200080000")
"""A packet of IPv4 with an empty UDP datagram."""


def block(kind: int, body: bytes) -> bytes:
    """A block of a pcapng file."""
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def section() -> bytes:
    """The beginning of a file."""
    return block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(link_type: int, unit: int = 6) -> bytes:
    """An interface; `unit` is the byte of `if_tsresol`, 6 for microseconds."""
    resolution = struct.pack("<HHB3xI", 9, 1, unit, 0)
    return block(1, struct.pack("<HHI", link_type, 0, 0) + resolution)


def packet(ticks: int, interface: int = 0) -> bytes:
    """The packet, at a time in units of its interface."""
    head = (interface, ticks >> 32, ticks & 0xFFFFFFFF, len(IP), len(IP))
    return block(6, struct.pack("<5I", *head) + IP)
