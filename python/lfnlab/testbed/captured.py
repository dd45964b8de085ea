"""Packets at the hosts of a run of Linux in virtual time, as the table ``packets`` has them.

The kernel's taps have the first bytes of what a host sends and receives (``linux/capture.h``). Here
bytes of TCP become numbers of segments, as the simulator counts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from lfnlab.results.tables import code, schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ETHERNET, IP, TCP = 14, 20, 20
FIN, SYN, ECE, CWR = 0x01, 0x02, 0x40, 0x80
#: Flags of the table.
RETRANSMITTED, CE_SEEN, ECE_SEEN, CWR_SEEN, LAST, LEAVES = 1, 2, 4, 8, 16, 32
SACK_OPTION, BLOCKS = 5, 3
#: Bytes of an ACK as the table counts them: without SACK blocks.
ACK_BYTES = 66


class Tapped(NamedTuple):
    """A connection whose packets are read."""

    segment_bytes: int
    is_reverse: bool
    """In the table, its data go in the direction reverse."""
    first_link: int
    """Of its data; then their last, and the same of its ACKs."""
    last_link: int
    first_ack_link: int
    last_ack_link: int


def table(
    packets: NDArray[Any], flows: Sequence[Tapped], links: Sequence[int], from_s: float
) -> pl.DataFrame:
    """The table of what the taps saw.

    Args:
        packets: as the kernel wrote them.
        flows: the connections, in the kernel's order.
        links: those to record, by number in the table.
        from_s: when recording begins; the SYNs before are known, but not in the table.
    """
    parts = [
        _of_flow(packets[packets["flow"] == number], number, flow)
        for number, flow in enumerate(flows)
    ]
    rows = pl.concat(parts) if parts else pl.DataFrame(schema=schema("packets"))
    wanted = pl.col("link").is_in(list(links)) & (pl.col("t_ps") >= round(from_s * 1e12))
    return rows.filter(wanted).sort("t_ps", maintain_order=True)


def _be(head: NDArray[np.uint8], at: int, size: int) -> NDArray[np.int64]:
    """A number in network order that stands at the same place in all packets."""
    value = np.zeros(len(head), np.int64)
    for place in range(size):
        value = value << 8 | head[:, at + place]
    return value


def _of_flow(packets: NDArray[Any], number: int, flow: Tapped) -> pl.DataFrame:
    packets = packets[np.argsort(packets["at_ns"], kind="stable")]
    head = packets["head"]
    tcp = ETHERNET + IP
    bits, offset = head[:, tcp + 13].astype(int), (head[:, tcp + 12] >> 4).astype(int) * 4
    payload = _be(head, ETHERNET + 2, 2) - IP - offset
    # A forward flow's sender is the host a; of a reverse flow a receives.
    at_sender = (packets["receiver"] == 1) == flow.is_reverse
    leaves = packets["leaves"] == 1
    forth = at_sender == leaves
    syn = (bits & SYN) > 0
    if not (syn & forth).any():
        return pl.DataFrame(schema=schema("packets"))
    isn = _be(head, tcp + 4, 4)[syn & forth][0]
    sent, asked = (
        _unwrapped(_be(head, tcp + at, 4) - isn - 1, way)
        for at, way in ((4, forth & ~syn), (8, ~forth))
    )
    data = forth & ~syn & (payload > 0)
    ack = ~forth & ~syn
    third = forth & ~syn & (payload == 0)
    third &= np.cumsum(third & leaves) <= 1
    mss = flow.segment_bytes
    segments = int(np.ceil((sent + payload)[data].max(initial=0) / mss))
    seq = np.where(data, sent // mss, 0)
    seq = np.where(ack, np.minimum(-(-asked // mss), segments), seq)
    kinds = ("data", "ACK", "SYN", "SYN-ACK", "handshake ACK")
    codes = [code("packets", "kind", words) for words in kinds]
    kind = np.select([data, ack, syn & forth, syn, third], codes, default=255)
    flags = np.where(leaves, LEAVES, 0)
    flags |= np.where(data & _again(seq, data & leaves), RETRANSMITTED, 0)
    flags |= np.where(data & (head[:, ETHERNET + 1] & 3 == 3), CE_SEEN, 0)
    for bit, seen in ((ECE, ECE_SEEN), (CWR, CWR_SEEN), (FIN, LAST)):
        flags |= np.where((bits & bit > 0) & (data | (ack & (bit == ECE))), seen, 0)
    point = [code("packets", "point", words) for words in ("arrived", "received")]
    rows = {
        "t_ps": packets["at_ns"] * 1000,
        "link": np.select(
            [forth & leaves, forth, leaves],
            [flow.first_link, flow.last_link, flow.first_ack_link],
            default=flow.last_ack_link,
        ),
        "point": np.where(leaves, *point),
        "flow": np.full(len(packets), number),
        "kind": kind,
        "direction": np.where(forth, flow.is_reverse, not flow.is_reverse),
        "seq": seq,
        "bytes": np.where(ack | third, ACK_BYTES, packets["bytes"]),
        "payload_bytes": payload,
        "flags": flags,
    }
    frame = pl.DataFrame(rows).with_columns(*_blocks(head, ack, offset, isn, asked, mss))
    return frame.filter(pl.col("kind") != 255).cast(schema("packets")).select(*schema("packets"))  # type: ignore[arg-type]


def _unwrapped(numbers: NDArray[np.int64], of: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Numbers of 32 bits, without their wraps; those of other packets mean nothing."""
    found = np.zeros(len(numbers), np.int64)
    mine = numbers[of]
    if len(mine):
        steps = np.diff(mine, prepend=0)
        found[of] = np.cumsum((steps + 2**31) % 2**32 - 2**31)
    return found


def _again(seq: NDArray[np.int64], sent: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of the packets that a host sends, those below one that it has sent."""
    highest = np.maximum.accumulate(np.where(sent, seq, -1))
    before = np.concatenate(([-1], highest[:-1]))
    return sent & (seq <= before)


def _blocks(
    head: NDArray[np.uint8],
    ack: NDArray[np.bool_],
    offset: NDArray[np.int64],
    isn: int,
    asked: NDArray[np.int64],
    mss: int,
) -> list[pl.Series]:
    """Columns of the SACK blocks of ACKs, in segments, the end excluded."""
    found = np.zeros((len(head), 2 * BLOCKS), np.int64)
    counts = np.zeros(len(head), int)
    for row in np.flatnonzero(ack & (offset > TCP + 12)):
        options = head[row, ETHERNET + IP + TCP : ETHERNET + IP + offset[row]]
        at = 0
        while at < len(options) and options[at]:
            if options[at] == 1:
                at += 1
                continue
            if options[at] == SACK_OPTION:
                edges = options[at + 2 : at + options[at + 1]].reshape(-1, 4).astype(np.int64)
                numbers = edges @ np.array([1 << 24, 1 << 16, 1 << 8, 1]) - isn - 1
                ahead = (numbers - asked[row] + 2**31) % 2**32 - 2**31 + asked[row]
                counts[row] = min(len(ahead) // 2, BLOCKS)
                starts, ends = ahead[::2][:BLOCKS], ahead[1::2][:BLOCKS]
                found[row, : 2 * counts[row] : 2] = starts // mss
                found[row, 1 : 2 * counts[row] : 2] = -(-ends // mss)
            at += max(int(options[at + 1]), 2)
    return [
        pl.Series(
            f"sack{place // 2 + 1}_{('start', 'end')[place % 2]}",
            [
                int(value) if count > place // 2 else None
                for value, count in zip(found[:, place], counts, strict=True)
            ],
            pl.UInt64,
        )
        for place in range(2 * BLOCKS)
    ]
