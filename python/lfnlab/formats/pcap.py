"""Packet traces of a run as pcapng files, for Wireshark, tshark and tcptrace.

The table ``packets`` of a run has one row for each packet at each point of a link::

    t_ps            u64   picoseconds of simulated time
    link            u16 or text
    point           u8    0 arrived at the queue, 1 was dropped, 2 left the link not lost at random,
                          3 reached its host, behind the last link of its route
    flow            u32
    kind            u8    0 data, 1 ACK, 2 UDP, 3 data over UDT, 4 control packet of UDT; of a
                          handshake 5 SYN, 6 SYN-ACK, 7 the ACK that ends it
    direction       u8    0 forward, 1 reverse
    seq             u64   segment's number; of an ACK, the first segment that it waits for; of a
                          control packet, the first two words of its header without the first bit
    bytes           u32   on the wire
    payload_bytes   u32
    flags           u8    1 retransmission, 2 CE, 4 ECE, 8 CWR, 16 last segment (FIN), 32 it leaves
                          its host: it arrives at the first link of its route, 64 ECT(1), 128 AE
    sack1_start ... sack3_end  u64  segments, the end excluded; null without block

A view is that of a host or of a link's queue. A host sees what it sends at the time when it sends
it, and what it receives when that arrives, as a capture on it does; so its times give its RTTs. It
does not see the queues. Of each flow one host is the sender, the other the receiver.

The simulator has no addresses, options of handshakes or timestamps, which the tools need; they are
added. Each flow has its own pair of hosts. A flow without a recorded SYN gets a handshake at its
first packet, with the window scale; of a sender that is seen from the start, a round-trip time
earlier. Packets have timestamps if they have room for them. Windows are 1 GiB, so they never limit.
Packets are cut after their headers, those of UDT after two words. Their original length is that of
the simulated packet, except that SACK blocks lengthen an ACK, as on a real link. AccECN's option is
not recorded: an ACK that has one has NOPs in its place. Time begins at ``BEGIN_S``, since tools
read 0 as no time.

The link type is Ethernet where packets have 14 bytes of framing (today's Linux) and raw IPv4 where
they have none (the papers' ns-2). Each link is an interface.

Formats: pcapng (IETF draft-ietf-opsawg-pcapng: section header, interface description, enhanced
packet), RFC 791, RFC 9293, RFC 7323 (window scale, timestamps), RFC 2018 (SACK), RFC 3168, 9331 and
9768 (ECN).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import polars as pl

from lfnlab import _core
from lfnlab.errors import UsageError
from lfnlab.formats.views import (
    ACK,
    AE,
    BEGIN_S,
    CE,
    CWR,
    DATA,
    ECE,
    ECT1,
    LAST,
    NO_SHAKE,
    RECEIVED,
    RETRANSMISSION,
    SYN,
    SYN_ACK,
    UDP,
    UDT_CONTROL,
    View,
    of_host,
    of_queues,
    with_connections,
    with_echo,
    with_handshakes,
    with_shakes,
)
from lfnlab.results.integrity import provenance_of, tables_of
from lfnlab.results.output import MARK, replacing
from lfnlab.scenario.quantity import BYTES, parse, parsed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lfnlab.results.runs import Run

COLUMNS = (
    "t_ps",
    "link",
    "point",
    "flow",
    "kind",
    "direction",
    "seq",
    "bytes",
    "payload_bytes",
    "flags",
    "sack1_start",
    "sack1_end",
    "sack2_start",
    "sack2_end",
    "sack3_start",
    "sack3_end",
)
_ETHERNET, _IP, _TCP, _TIMESTAMPS = 14, 20, 20, 12
_ACCECN = 8  # AccECN's option with two counters
_LINKTYPE_ETHERNET, _LINKTYPE_RAW = 1, 101
_FIN, _SYN_BIT, _ACK_BIT, _ECE_BIT, _CWR_BIT = 0x01, 0x02, 0x10, 0x40, 0x80
_PORT_FROM, _PORT_TO = 49152, 9  # RFC 863: discard
_PORT_UDT = 9000
#: Second word of a data packet of UDT: within message 1, in order.
_UDT_MESSAGE = 0x20000001
_SCALE = 14  # the largest (RFC 7323, section 2.3)
_MOST_WINDOW_BYTES = 0xFFFF << _SCALE
_COMMENTS = ("", "retransmission", "dropped", "retransmission, dropped")
_CHUNK = 1 << 16

# A packet block with every part that a packet may have; `_blocks` leaves out those that it has not.
_ROW = np.dtype(
    [
        ("type", "<u4"),
        ("length", "<u4"),
        ("interface", "<u4"),
        ("time_high", "<u4"),
        ("time_low", "<u4"),
        ("captured", "<u4"),
        ("original", "<u4"),
        ("ethernet", "u1", 14),
        ("ip", "u1", 20),
        ("udp", ">u2", 4),
        ("udt", ">u4", 2),
        ("ports", ">u2", 2),
        ("seq", ">u4"),
        ("ack", ">u4"),
        ("offset", "u1"),
        ("bits", "u1"),
        ("window", ">u2"),
        ("checksum", ">u2"),
        ("urgent", ">u2"),
        ("syn_options", "u1", 8),
        ("sack_permitted", "u1", 4),
        ("timestamps_head", "u1", 4),
        ("timestamps", ">u4", 2),
        ("accecn", "u1", _ACCECN),
        ("sack_head", "u1", 4),
        ("sack1", ">u4", 2),
        ("sack2", ">u4", 2),
        ("sack3", ">u4", 2),
        ("padding", "u1", 2),
        ("comment_head", "<u2", 2),
        ("comment", "u1", 24),
        ("options_end", "<u4"),
        ("length_again", "<u4"),
    ]
)
_TCP_PARTS = ("ports", "seq", "ack", "offset", "bits", "window", "checksum", "urgent")


def recorded(run: Run) -> pl.DataFrame:
    """The packets that a run recorded, links by name.

    Raises:
        UsageError: when it recorded none.
        StoreError: when they cannot be read.
    """
    if "packets" not in tables_of(run.path):
        raise UsageError(f"{run.path} has no table packets: its scenario did not ask for them")
    packets = run.table("packets")
    names = {i: link["id"] for i, link in enumerate(run.summary["links"])}
    return packets.with_columns(
        pl.col("link")
        .replace_strict(names, default=None, return_dtype=pl.String)
        .fill_null(pl.col("link").cast(pl.String)),
        window_bytes=pl.col("flow").replace_strict(
            _windows(run), default=None, return_dtype=pl.Int64
        ),
    )


def _windows(run: Run) -> dict[int, int]:
    """Payload that the receive window of each connection holds, of those that have a limit."""
    windows: dict[int, int] = {}
    connection = flow = 0
    for group in provenance_of(run.path).get("resolved", {}).get("flow", ()):
        of = run.summary["flows"][flow]
        flow += group["count"]
        connections = range(connection, connection + group["count"] * group["parallel"])
        connection = connections.stop
        if group.get("transport", "tcp") == "tcp" and (text := group.get("receive_window")):
            packets = parsed(text, {"packets": 1.0, "packet": 1.0})
            if packets is None:
                packets = parse(text, BYTES) // of["segment_bytes"]
            window_bytes = max(1, int(packets)) * of["segment_bytes"]
            windows |= dict.fromkeys(connections, min(window_bytes, _MOST_WINDOW_BYTES))
    return windows


def write_pcapng(
    file: Path, packets: pl.DataFrame, *, view: View | None = None, links: Sequence[str] = ()
) -> int:
    """Write the packets as a host of each flow saw them, or as queues did.

    Packets that are sent, or arrive at a queue, and were dropped have a comment; so have
    retransmissions. In a view of queues a packet that crosses several links is in the file once for
    each; tshark takes the second for a retransmission, so choose links that no packet crosses
    twice.

    Args:
        file: to write.
        packets: the table ``packets``, see the module.
        view: of each flow's ``"sender"`` or ``"receiver"``, or of the queues, at ``"arrival"`` or
            ``"departure"``; default the sender's, the arrivals if packets were not recorded at
            hosts or ``links`` are given.
        links: those to write, by name as in the column ``link``; default all.

    Returns:
        Number of packets, handshakes left out.

    Raises:
        UsageError: for a column or link that is not there, sizes that no TCP packet has, no packet.
        StoreError: when the file cannot be written, or exists and is not from lfn.
    """
    _check(packets)
    packets = with_shakes(packets.with_columns(pl.col("link").cast(pl.String)))
    packets = with_connections(packets.sort("t_ps", maintain_order=True))
    flows = _flows(packets)
    if view is None:
        view = "sender" if not links and seen_at_hosts(packets) else "arrival"
    at_host = view in ("sender", "receiver")
    if at_host and not seen_at_hosts(packets):
        raise UsageError(
            "packets were not recorded at hosts; run the scenario again, or write --link or "
            "--after-queue"
        )
    seen = of_host(packets, view) if at_host else of_queues(packets, view)
    if unknown := [link for link in links if link not in set(packets["link"])]:
        known = ", ".join(packets["link"].unique(maintain_order=True))
        raise UsageError(f'--link: packets holds no link "{unknown[0]}"; allowed: {known}')
    if links:
        seen = seen.filter(pl.col("link").is_in(list(links)))
    if seen.height == 0:
        raise UsageError("packets holds no packet to write")
    names = seen["link"].unique(maintain_order=True).to_list()
    framing, headers = _layout(seen)
    if at_host and not framing:
        # libpcap takes several interfaces of raw IPv4 for different types.
        names, seen = [view], seen.with_columns(link=pl.lit(view))
    rows = with_handshakes(seen.join(flows, on="flow", maintain_order="left"), view)
    rows = with_echo(rows).with_columns(said_mss=pl.col("full") + headers - _IP - _TCP)
    with replacing(file) as out:
        _head(out, names, _LINKTYPE_ETHERNET if framing else _LINKTYPE_RAW)
        for chunk in rows.iter_slices(_CHUNK):
            out.write(_blocks(chunk, names, framing, headers))
    return seen.filter(pl.col("shake") == NO_SHAKE).height


def seen_at_hosts(packets: pl.DataFrame) -> bool:
    """Whether the table has packets at hosts: earlier recordings do not."""
    return bool((packets["point"] == RECEIVED).any())


def _check(packets: pl.DataFrame) -> None:
    missing = [column for column in COLUMNS if column not in packets.columns]
    if missing:
        raise UsageError(f"packets has no column {missing[0]}; needed: {', '.join(COLUMNS)}")


def _flows(packets: pl.DataFrame) -> pl.DataFrame:
    """Figures of each flow from all of its packets.

    ``mss`` in bytes (1 where no data packet was recorded: then numbers count segments), ``full``
    bytes of payload in its largest packets (of a flow with one segment, that of all flows), ``end``
    of its last segment in segments and bytes if that is short or has a FIN, ``fin``, and whether it
    uses ECN.
    """
    data = (pl.col("kind") == DATA) & (pl.col("shake") == NO_SHAKE)
    own, number = (pl.col(name).filter(data) for name in ("payload_bytes", "seq"))
    most = packets.select(own.max().fill_null(1)).item()
    window = (
        pl.col("window_bytes").first()
        if "window_bytes" in packets.columns
        else pl.lit(None, pl.Int64)
    )
    figures = packets.group_by("flow").agg(
        mss=own.max().fill_null(1),
        full=pl.when(number.max() > 0).then(own.max()).otherwise(most),
        # A SYN only asks for ECN, and a flow of L4S has no use for what a Classic SYN-ACK grants.
        ecn=(
            ~pl.col("shake").is_in([SYN, SYN_ACK])
            & (pl.col("flags") & (CE | ECE | CWR | ECT1 | AE) > 0)
        ).any(),
        fin=(data & (pl.col("flags") & LAST > 0)).any(),
        end=number.max().cast(pl.Int64) + 1,
        end_payload=own.filter(number == number.max()).max(),
        window=window.fill_null(_MOST_WINDOW_BYTES),
    )
    ends = pl.col("fin") | (pl.col("end_payload") < pl.col("mss"))
    return figures.with_columns(end=pl.when(ends).then("end"))


def _layout(seen: pl.DataFrame) -> tuple[int, int]:
    """Bytes of framing, and of IP and TCP headers, which all packets have alike.

    SACK blocks and AccECN's option are not counted.
    """
    tcp = seen.filter((pl.col("kind") < UDP) & (pl.col("shake") == NO_SHAKE))
    udt = seen.filter(pl.col("kind") > UDP)
    if tcp.height == 0 and udt.height > 0:
        # Headers and bodies of UDT are whole words.
        odd = udt.select(((pl.col("bytes") - pl.col("payload_bytes")) % 4).first()).item()
        return (_ETHERNET if odd else 0), _IP + _TCP
    if tcp.height == 0:
        least = seen.select((pl.col("bytes") - pl.col("payload_bytes")).min()).item()
        return (_ETHERNET if least >= _ETHERNET + 28 else 0), _IP + _TCP
    sizes = (tcp["bytes"].cast(pl.Int64) - tcp["payload_bytes"]).unique().sort().to_list()
    for framing in (0, _ETHERNET):
        for headers in (_IP + _TCP, _IP + _TCP + _TIMESTAMPS):
            if set(sizes) <= {framing + headers, framing + headers + _ACCECN}:
                return framing, headers
    raise UsageError(
        f"packets: bytes - payload_bytes is {', '.join(str(size) for size in sizes)}; allowed: one "
        "of 40 or 52 (IP and TCP, without and with timestamps), or 14 more (Ethernet)"
    )


def _head(out: BinaryIO, links: Sequence[str], linktype: int) -> None:
    """The section header and one interface a link, with timestamps in nanoseconds."""
    program = _option(1, MARK.encode()) + _option(4, f"lfnlab {_core.VERSION}".encode())
    section = np.array([0x1A2B3C4D], "<u4").tobytes() + np.array([1, 0], "<u2").tobytes()
    out.write(_block(0x0A0D0D0A, section + np.array([-1], "<i8").tobytes() + program + bytes(4)))
    for link in links:
        body = np.array([linktype, 0], "<u2").tobytes() + np.array([0], "<u4").tobytes()
        options = _option(2, link.encode()) + _option(9, bytes([9]))
        out.write(_block(1, body + options + bytes(4)))


def _option(code: int, value: bytes) -> bytes:
    return np.array([code, len(value)], "<u2").tobytes() + value + bytes(-len(value) % 4)


def _block(kind: int, body: bytes) -> bytes:
    length = np.array([12 + len(body)], "<u4").tobytes()
    return np.array([kind], "<u4").tobytes() + length + body + length


@dataclass(frozen=True)
class _Packets:
    """Columns of a chunk as arrays, and which packet is what."""

    frame: pl.DataFrame

    def __getattr__(self, name: str) -> NDArray[np.int64]:
        column = self.frame[name].cast(pl.Int64).fill_null(0)
        values: NDArray[np.int64] = column.to_numpy()
        return values


def _blocks(chunk: pl.DataFrame, links: Sequence[str], framing: int, headers: int) -> bytes:
    """Enhanced packet blocks of a chunk of rows."""
    at = {link: i for i, link in enumerate(links)}
    interface = chunk["link"].replace_strict(at, return_dtype=pl.UInt32).to_numpy()
    p = _Packets(chunk.drop("link"))
    rows = np.zeros(chunk.height, _ROW)
    udp, udt = p.kind >= UDP, p.kind > UDP
    tcp, shake = ~udp, p.shake
    syn = (shake == SYN) | (shake == SYN_ACK)
    timestamps = tcp & (headers > _IP + _TCP)
    blocks = [
        tcp & chunk[f"sack{i}_end"].is_not_null().to_numpy() & (shake == NO_SHAKE)
        for i in (1, 2, 3)
    ]
    sacks = sum(block.astype(np.int64) for block in blocks)
    counted = tcp & ~syn & (p.bytes - p.payload_bytes == framing + headers + _ACCECN)
    comment = (p.flags & RETRANSMISSION) + 2 * p.dropped

    # With timestamps, "SACK permitted" stands in the place of their two NOPs, as in Linux.
    apart = syn & ~timestamps
    options = 8 * syn + 4 * apart + 12 * timestamps + (4 + 8 * sacks) * (sacks > 0)
    header = _IP + np.where(udp, 8 + 8 * udt, _TCP + options + _ACCECN * counted)
    total = np.where(udp, p.bytes - framing, header + p.payload_bytes)
    if total.size and int(total.max()) > 0xFFFF:
        raise UsageError(f"packets: {int(total.max())} bytes are more than an IPv4 packet holds")
    captured = framing + header

    rows["type"] = 6
    rows["interface"] = interface
    ns = p.t_ps // 1000 + BEGIN_S * 10**9
    rows["time_high"], rows["time_low"] = ns >> 32, ns & 0xFFFFFFFF
    rows["captured"], rows["original"] = captured, framing + total
    _fill_ip(rows, p, total)
    if framing:
        # Locally administered addresses that hold the IPv4 ones.
        rows["ethernet"][:, 0] = rows["ethernet"][:, 6] = 2
        rows["ethernet"][:, 2:6] = rows["ip"][:, 16:20]
        rows["ethernet"][:, 8:12] = rows["ip"][:, 12:16]
        rows["ethernet"][:, 12] = 8
    _fill_tcp(rows, p, header - _IP, syn, timestamps, blocks, sacks)
    ports = np.where(udp[:, None], rows["ports"], 0)
    rows["udp"][:, :2] = ports
    rows["udp"][:, 2] = np.where(udp, total - _IP, 0)
    control = p.kind == UDT_CONTROL
    rows["udt"][:, 0] = np.where(control, p.seq >> 32 | 1 << 31, p.seq & 0x7FFFFFFF) * udt
    rows["udt"][:, 1] = np.where(control, p.seq & 0xFFFFFFFF, _UDT_MESSAGE) * udt
    rows["accecn"] = counted[:, None]  # NOPs
    # Both checksums count the payload as zeros: it is cut off.
    _fill_checksums(rows, udp, total)

    texts = np.zeros((len(_COMMENTS), 24), np.uint8)
    for i, text in enumerate(_COMMENTS):
        texts[i, : len(text)] = np.frombuffer(text.encode(), np.uint8)
    sizes = np.array([len(text) for text in _COMMENTS])
    rows["comment"] = texts[comment]
    rows["comment_head"][:, 0], rows["comment_head"][:, 1] = 1, sizes[comment]

    keep = np.ones((rows.size, _ROW.itemsize), bool)

    def only(where: NDArray[np.bool_], *names: str) -> None:
        for name in names:
            kind, start = _ROW.fields[name][:2]  # type: ignore[index]
            keep[:, start : start + kind.itemsize] = where[:, None]

    only(np.full(rows.size, framing > 0), "ethernet")
    only(udp, "udp")
    only(udt, "udt")
    only(tcp, *_TCP_PARTS)
    only(syn, "syn_options")
    only(apart, "sack_permitted")
    only(timestamps, "timestamps_head", "timestamps")
    only(counted, "accecn")
    only(sacks > 0, "sack_head")
    for i, block in enumerate(blocks):
        only(block, f"sack{i + 1}")
    only(captured % 4 == 2, "padding")
    only(comment > 0, "comment_head", "options_end")
    start = _ROW.fields["comment"][1]  # type: ignore[index]
    keep[:, start : start + 24] = np.arange(24) < (-(-sizes // 4) * 4)[comment][:, None]
    rows["length"] = rows["length_again"] = keep.sum(1)
    flat: bytes = rows.view(np.uint8).reshape(rows.size, -1)[keep].tobytes()
    return flat


def _fill_ip(rows: NDArray[Any], p: _Packets, total: NDArray[np.int64]) -> None:
    """Version 4, ECN bits, DF, TTL 64; hosts are in 10.0.0.0/9 (left) and 10.128.0.0/9 (right)."""
    ip = rows["ip"]
    marked = (p.flags & CE > 0) & (p.shake == NO_SHAKE)
    capable = (p.ecn > 0) & (p.kind != ACK) & (p.shake == NO_SHAKE)
    ip[:, 0] = 0x45
    field = np.where(p.flags & ECT1 > 0, 1, 2)
    ip[:, 1] = np.where(marked, 3, np.where(capable, field, 0))
    ip[:, 2], ip[:, 3] = total >> 8, total & 0xFF
    ip[:, 6] = 0x40
    ip[:, 8] = 64
    ip[:, 9] = np.where(p.kind >= UDP, 17, 6)
    for start, right in ((12, p.direction), (16, 1 - p.direction)):
        ip[:, start] = 10
        ip[:, start + 1] = (right << 7) | (p.number >> 16 & 0x7F)
        ip[:, start + 2], ip[:, start + 3] = p.number >> 8 & 0xFF, p.number & 0xFF
    ip[:, 10:12] = _checksum(_words(ip))[:, None] >> np.array([8, 0]) & 0xFF


def _fill_tcp(
    rows: NDArray[Any],
    p: _Packets,
    length: NDArray[np.int64],
    syn: NDArray[np.bool_],
    timestamps: NDArray[np.bool_],
    blocks: Sequence[NDArray[np.bool_]],
    sacks: NDArray[np.int64],
) -> None:
    ack, udp, shake = p.kind == ACK, p.kind >= UDP, p.shake
    # The addresses hold 23 bits of the flow's number.
    near = _PORT_FROM + ((p.number >> 23) + p.turn) % (0x10000 - _PORT_FROM)
    rows["ports"][:, 0] = np.where(ack, _PORT_TO, near)
    rows["ports"][:, 1] = np.where(ack, near, _PORT_TO)
    rows["ports"][p.kind > UDP] = _PORT_UDT

    def number(segments: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sequence number of a segment's first byte, the SYN having number 0."""
        ended = (p.end > 0) & (segments >= p.end)
        whole = 1 + segments * p.mss
        # The last segment may be shorter, and the FIN behind it takes a number.
        short = 1 + (p.end - 1) * p.mss + p.end_payload + p.fin
        return np.where(ended, short, whole) & 0xFFFFFFFF

    one = np.ones_like(p.seq)
    sent = np.where(shake == SYN, number(p.seq) - 1, number(p.seq)) & 0xFFFFFFFF
    rows["seq"] = np.where(ack, np.where(shake == SYN_ACK, 0, one), sent)
    acked = np.where(shake == SYN, 0, one)
    rows["ack"] = np.where(ack, number(p.seq), acked)
    # RFC 9768, section 3.1: AE is the bit beside the offset.
    rows["offset"] = np.where(udp, 0, length // 4 << 4 | (p.flags & AE > 0))
    recorded = shake == NO_SHAKE
    bits = np.where(shake == SYN, _SYN_BIT, _ACK_BIT | np.where(shake == SYN_ACK, _SYN_BIT, 0))
    bits |= np.where(recorded & ~ack & (p.flags & LAST > 0), _FIN, 0)
    told = p.flags & (AE | CWR | ECE) > 0
    bits |= np.where(p.flags & ECE > 0, _ECE_BIT, 0)
    bits |= np.where(p.flags & CWR > 0, _CWR_BIT, 0)
    # RFC 3168, section 6.1.1: a SYN with both asks for ECN, a SYN-ACK with ECE agrees. Those of
    # AccECN are recorded.
    bits |= np.where((p.ecn > 0) & ~told & (shake == SYN), _ECE_BIT | _CWR_BIT, 0)
    bits |= np.where((p.ecn > 0) & ~told & (shake == SYN_ACK), _ECE_BIT, 0)
    rows["bits"] = bits
    # The smallest scale that the window needs: what is below a unit of it is lost.
    fits = np.maximum(p.window, 1)[:, None] >> np.arange(_SCALE + 1) <= 0xFFFF
    scale = np.where(ack, fits.argmax(1), _SCALE)
    offered = np.where(syn, np.minimum(p.window, 0xFFFF), p.window >> scale)
    rows["window"] = np.where(ack, offered, 0xFFFF)

    # Largest segment, window scale, SACK permitted; NOPs (1) align them.
    rows["syn_options"] = np.array([2, 4, 0, 0, 1, 3, 3, 0], np.uint8)
    rows["syn_options"][:, 7] = scale
    rows["sack_permitted"] = [1, 1, 4, 2]
    rows["syn_options"][:, 2], rows["syn_options"][:, 3] = p.said_mss >> 8 & 0xFF, p.said_mss & 0xFF
    rows["timestamps_head"] = [1, 1, 8, 10]
    rows["timestamps_head"][syn] = [4, 2, 8, 10]
    rows["timestamps"][:, 0], rows["timestamps"][:, 1] = p.clock, p.echo
    rows["sack_head"][:, :3] = [1, 1, 5]
    rows["sack_head"][:, 3] = 2 + 8 * sacks
    for i, block in enumerate(blocks, 1):
        for side, name in enumerate(("start", "end")):
            edge = number(getattr(p, f"sack{i}_{name}"))
            rows[f"sack{i}"][:, side] = np.where(block, edge, 0)
    # What is not there counts nothing in the checksum.
    rows["syn_options"][~syn] = 0
    rows["sack_permitted"][~syn | timestamps] = 0
    rows["timestamps_head"][~timestamps] = 0
    rows["timestamps"][~timestamps] = 0
    rows["sack_head"][sacks == 0] = 0


def _fill_checksums(rows: NDArray[Any], udp: NDArray[np.bool_], total: NDArray[np.int64]) -> None:
    pseudo = _words(rows["ip"][:, 12:20]) + rows["ip"][:, 9] + total - _IP
    start, end = (_ROW.fields[name][1] for name in ("ports", "padding"))  # type: ignore[index]
    headers = rows.view(np.uint8).reshape(rows.size, -1)[:, start:end]
    rows["checksum"] = _checksum(pseudo + _words(headers))
    udt = rows["udt"].astype(np.int64)
    words = rows["udp"].astype(np.int64).sum(1) + ((udt >> 16) + (udt & 0xFFFF)).sum(1)
    datagram = _checksum(pseudo + words)
    rows["udp"][:, 3] = np.where(datagram == 0, 0xFFFF, datagram)  # RFC 768: 0 would mean none


def _words(octets: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The sum of each row's 16-bit words."""
    high: NDArray[np.int64] = octets[:, ::2].sum(1, dtype=np.int64)
    low: NDArray[np.int64] = octets[:, 1::2].sum(1, dtype=np.int64)
    return 256 * high + low


def _checksum(sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """The Internet checksum (RFC 1071) of sums of 16-bit words."""
    for _ in range(3):
        sums = (sums & 0xFFFF) + (sums >> 16)
    return sums ^ 0xFFFF
