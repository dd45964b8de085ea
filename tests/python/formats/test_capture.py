"""Does a capture become what its packets show? Compared with the simulator, iperf3, and by hand.

sender.pcap and receiver.pcap are real: `tcpdump -i any -s 96` at both ends of iperf3 3.12 over
`lfn shell --rate 8Mbit/s --rtt 40ms --buffer 0.5bdp`; measured.json is what iperf3 said.
"""

from __future__ import annotations

import gzip
import json
import math
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import lfnlab
from lfnlab.errors import UsageError
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.formats import capture, pcap, views

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from command import Lfn

    from lfnlab.formats.measurement import Measurement

DATA = Path(__file__).parents[1] / "data" / "captures"
MSS = 1448
SYN, ACK, FIN = 2, 16, 1


# Against the simulator


def simulated(
    tmp_path: Path, link: str, law: str, view: Any, window: str = "1GB"
) -> tuple[lfnlab.Run, Measurement]:
    """A run with its packets recorded, and the capture that a host of it makes."""
    scenario = lfnlab.Scenario.from_toml(
        f"""
        schema = 1
        duration = "6s"
        sample = "10ms"
        [link]
        rate = "10Mbit/s"
        {link}
        [[flow]]
        law = "{law}"
        rtt = "40ms"
        receive_window = "{window}"
        [capture]
        links = ["forward", "reverse"]
        """,
        "traced.toml",
    )
    (run,) = execute([Case(scenario)], out=tmp_path / "run", title="traced").runs
    file = tmp_path / f"{view}.pcapng"
    pcap.write_pcapng(file, pcap.recorded(run), view=view)
    return run, capture.read(file)


PATHS = {
    "small queue": 'queue = { size = "0.5bdp" }',
    "random loss": 'loss = 0.01\nqueue = { size = "2bdp" }',
    "reordering": 'reorder = { p = 0.01, delay = "4ms" }\nqueue = { size = "0.5bdp" }',
}


@pytest.mark.parametrize("law", ["reno", "cubic", "bbr"])
@pytest.mark.parametrize("link", PATHS)
def test_a_capture_at_the_sender_shows_the_senders_own_numbers(
    tmp_path: Path, link: str, law: str
) -> None:
    run, measured = simulated(tmp_path, PATHS[link], law, "sender")
    (own,), (seen,) = run.summary["flows"], measured.summary["flows"]
    assert seen["captured_at"] == "sender"
    assert (seen["retransmits"], seen["reordered"]) == (own["retransmits"], 0)
    assert seen["retransmits"] > 0
    assert seen["delivered_bytes"] == own["delivered_bytes"]
    assert seen["min_rtt_s"] == pytest.approx(own["min_rtt_s"], rel=1e-6)
    assert seen["unseen_bytes"] == seen["copies"] == 0
    # The file begins with the SYN, which leaves its host at the beginning of the run.
    begin_s = pcap.recorded(run)["t_ps"].min() / 1e12
    truth = run.table("flows").with_columns(pl.col("t_s") - begin_s)
    # The last row is at the last packet, between two samples of the simulator.
    both = measured.flows.sort("t_s")[:-1].join_asof(truth, on="t_s", suffix="_true")
    away = (both["inflight_seg"].cast(float) - both["inflight_seg_true"]).abs()
    assert away.median() == 0
    assert away.mean() < 0.02 * both["inflight_seg_true"].mean()
    latest = (both["rtt_s"] - both["rtt_s_true"]).abs().drop_nulls()
    assert latest.median() < 1e-6
    assert both["delivered_bytes"].equals(both["delivered_bytes_true"])


@pytest.mark.parametrize("view", ["sender", "receiver"])
@pytest.mark.parametrize("window", ["30000B", "20 packets", "80kB"])
def test_the_window_that_limits_a_flow_is_in_the_capture(
    tmp_path: Path, window: str, view: str
) -> None:
    link = 'queue = { size = "10bdp" }'
    _, measured = simulated(tmp_path, link, "cubic", view, window)
    segments = {"30000B": 20, "20 packets": 20, "80kB": 55}[window]
    offered = measured.flows["offered_window_bytes"].drop_nulls()
    # The unit of a scaled window is at most a part in 32,768 of it.
    assert segments * 1448 * (1 - 2**-15) <= offered.max() <= segments * 1448
    assert measured.flows["inflight_bytes"].max() == segments * 1448


def test_duplicate_acks_have_their_own_timestamps(tmp_path: Path) -> None:
    run, _ = simulated(tmp_path, PATHS["random loss"], "cubic", "sender")
    packets = views.with_connections(views.with_shakes(pcap.recorded(run).sort("t_ps")))
    acks = views.of_host(packets, "sender").filter(
        pl.col("kind") == views.ACK, pl.col("shake") == views.NO_SHAKE
    )
    assert acks["seq"].is_duplicated().sum() > 100
    # The way back has no queue: each ACK came half of the RTT ago, to a millisecond.
    age_ms = acks["t_ps"] / 1e9 + 1 - acks["clock"]
    assert age_ms.min() > 19.9
    assert age_ms.max() < 21.1


def test_at_the_receiver_what_is_sent_again_is_told_from_what_came_late(tmp_path: Path) -> None:
    run, measured = simulated(tmp_path, PATHS["reordering"], "cubic", "receiver")
    (own,), (seen,) = run.summary["flows"], measured.summary["flows"]
    assert seen["captured_at"] == "receiver"
    packets = run.table("packets").filter(pl.col("point") == pcap_received(), pl.col("kind") == 0)
    assert seen["retransmits"] == (packets["flags"] & 1).sum() == own["retransmits"]
    late = packets.filter(pl.col("flags") & 1 == 0)["seq"].cast(int)
    assert seen["reordered"] == (late < late.cum_max()).sum() > 20


def pcap_received() -> int:
    from lfnlab.results.tables import code

    return code("packets", "point", "received")


def test_at_the_receiver_rtt_and_flight_follow_from_the_echo_of_timestamps(tmp_path: Path) -> None:
    run, measured = simulated(tmp_path, 'queue = { size = "2bdp" }', "vegas", "receiver")
    (own,), (seen,) = run.summary["flows"], measured.summary["flows"]
    assert seen["min_rtt_s"] == pytest.approx(own["min_rtt_s"], rel=0.01)
    truth = run.table("flows").filter(pl.col("t_s") > 1.0)
    later = measured.flows.filter(pl.col("t_s") > 1.0)
    assert later["rtt_s"].median() == pytest.approx(truth["rtt_s"].median(), rel=0.05)
    assert later["inflight_seg"].median() == pytest.approx(truth["inflight_seg"].median(), rel=0.05)


def test_no_echo_comes_before_the_ack_that_it_answers(tmp_path: Path) -> None:
    """Duplicate ACKs, of which many are under way, have the times at which they were sent."""
    run, measured = simulated(tmp_path, "loss = 0.01", "cubic", "receiver")
    (own,), (seen,) = run.summary["flows"], measured.summary["flows"]
    assert seen["retransmits"] > 20
    assert seen["min_rtt_s"] > 0.95 * own["min_rtt_s"]


@pytest.mark.parametrize(
    ("link", "part"),
    [
        ('queue = { size = "1bdp" }', 0.0),
        ('[link.reverse]\nrate = "100kbit/s"\nqueue = { size = "20 packets" }', 1.0),
    ],
    ids=["forth", "back"],
)
def test_the_way_on_which_a_queue_stands_is_seen(tmp_path: Path, link: str, part: float) -> None:
    _, measured = simulated(tmp_path, link, "cubic", "sender")
    rows = measured.flows.filter(pl.col("t_s") > 1.0)
    queued = rows["rtt_s"] - measured.summary["flows"][0]["min_rtt_s"]
    is_full = queued > queued.quantile(0.5)
    full, waited = rows.filter(is_full), queued.filter(is_full).mean()
    assert waited > 0.01
    # The clock of timestamps ticks every millisecond.
    assert full["ack_delay_s"].mean() == pytest.approx(part * waited, abs=0.2 * waited + 0.002)
    assert 0 < rows["acks"].diff().sum() < rows["delivered_bytes"].max() / MSS


# Against iperf3


def test_a_receiver_sees_how_long_data_waited(tmp_path: Path) -> None:
    back = '[link.reverse]\nrate = "100kbit/s"\nqueue = { size = "20 packets" }'
    for link, waits in (('queue = { size = "1bdp" }', True), (back, False)):
        _, measured = simulated(tmp_path, link, "cubic", "receiver")
        rows = measured.flows.filter(pl.col("t_s") > 1.0)
        queued = rows["rtt_s"] - measured.summary["flows"][0]["min_rtt_s"]
        is_full = queued > queued.quantile(0.5)
        full, waited = rows.filter(is_full), queued.filter(is_full).mean()
        assert waited > 0.01
        expected = waited if waits else 0.0
        assert full["data_delay_s"].mean() == pytest.approx(expected, abs=0.2 * waited + 0.002)
        assert rows["ack_delay_s"].is_null().all()


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_both_ends_of_a_real_transfer_show_what_iperf3_says(tmp_path: Path, end: str) -> None:
    file = tmp_path / f"{end}.pcap"
    file.write_bytes(gzip.decompress((DATA / f"{end}.pcap.gz").read_bytes()))
    measured = capture.read(file)
    said = json.loads((DATA / "measured.json").read_text())
    sender = said["end"]["streams"][0]["sender"]
    flow = max(measured.summary["flows"], key=lambda one: one["delivered_bytes"])
    assert flow["captured_at"] == end
    assert flow["retransmits"] == sender["retransmits"] == 28
    assert flow["offered_window_bytes"] == sender["max_snd_wnd"]
    assert flow["segment_bytes"] == MSS
    assert 0.040 < flow["min_rtt_s"] <= sender["min_rtt"] / 1e6
    assert flow["delivered_bytes"] == pytest.approx(sender["bytes"], rel=0.1)
    table = measured.flows.filter(pl.col("flow") == flow["id"])
    rtts = [interval["streams"][0]["rtt"] / 1e6 for interval in said["intervals"]]
    assert table["srtt_s"].median() == pytest.approx(float(np.median(rtts)), rel=0.1)
    windows = [interval["streams"][0]["snd_cwnd"] for interval in said["intervals"]]
    flight = table["inflight_bytes"].median()
    assert flight == pytest.approx(float(np.median(windows)), rel=0.2)


# By hand


@dataclass(frozen=True)
class Packet:
    t_s: float
    forth: bool
    seq: int = 1
    ack: int = 1
    payload: int = 0
    flags: int = ACK
    window: int = 1000
    stamps: tuple[int, int] | None = None
    options: bytes = b""
    id: int = 0

    def tcp(self) -> bytes:
        options = self.options
        if self.stamps is not None:
            options += b"\1\1\x08\x0a" + struct.pack(">II", *(s & 0xFFFFFFFF for s in self.stamps))
        ports = (40000, 443) if self.forth else (443, 40000)
        numbers = (self.seq & 0xFFFFFFFF, self.ack & 0xFFFFFFFF)
        offset = (20 + len(options)) // 4 << 4
        rest = (offset, self.flags, self.window, 0, 0)
        return struct.pack(">HHIIBBHHH", *ports, *numbers, *rest) + options

    def ip(self, *, six: bool = False) -> bytes:
        tcp = self.tcp()
        ends = [bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])][:: 1 if self.forth else -1]
        if six:
            length = 0 if len(tcp) + self.payload > 0xFFFF else len(tcp) + self.payload
            ends = [b"\x20\x01\x0d\xb8" + bytes(8) + end for end in ends]
            return struct.pack(">IHBB", 6 << 28, length, 6, 64) + ends[0] + ends[1] + tcp
        length = 20 + len(tcp) + self.payload
        length = 0 if length > 0xFFFF else length
        head = struct.pack(">BBHHHBBH", 0x45, 0, length, self.id, 0x4000, 64, 6, 0)
        return head + ends[0] + ends[1] + tcp


MACS = bytes(12)
LINKS = {
    "ethernet": (1, MACS + b"\x08\0", False),
    "ethernet, IPv6": (1, MACS + b"\x86\xdd", True),
    "VLAN": (1, MACS + b"\x81\0\0\7\x08\0", False),
    "QinQ": (1, MACS + b"\x88\xa8\0\7\x81\0\0\7\x86\xdd", True),
    "raw": (101, b"", False),
    "raw, IPv6": (101, b"", True),
    "IPv4": (228, b"", False),
    "IPv6": (229, b"", True),
    "cooked": (113, b"\0\0\0\1\0\6" + bytes(8) + b"\x08\0", False),
    "cooked 2": (276, b"\x86\xdd" + bytes(18), True),
    "loopback": (0, struct.pack("<I", 2), False),
}


def frames(
    packets: Iterable[Packet], link: bytes, *, six: bool, snap: int
) -> Iterable[tuple[Packet, bytes, int]]:
    for packet in packets:
        head = link + packet.ip(six=six)
        whole = (head + bytes(min(packet.payload, snap)))[:snap]
        yield packet, whole, len(head) + packet.payload


def in_pcap(
    packets: Sequence[Packet],
    link: str = "ethernet",
    *,
    snap: int = 262144,
    big: bool = False,
    nanoseconds: bool = False,
) -> bytes:
    number, head, six = LINKS[link]
    order, magic = "><"[not big], 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    file = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snap, number)]
    per_s = 10**9 if nanoseconds else 10**6
    for packet, data, length in frames(packets, head, six=six, snap=snap):
        ticks = round(packet.t_s * per_s)
        file.append(struct.pack(f"{order}IIII", *divmod(ticks, per_s), len(data), length) + data)
    return b"".join(file)


def block(kind: int, body: bytes, order: str) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + size + body + size


def in_pcapng(
    packets: Sequence[Packet],
    link: str = "ethernet",
    *,
    snap: int = 262144,
    big: bool = False,
    resolution: int = 6,
    drops: int | None = None,
    sections: int = 1,
) -> bytes:
    number, head, six = LINKS[link]
    order = "><"[not big]
    per_s = 2 ** (resolution & 127) if resolution & 128 else 10**resolution
    file = b""
    each = -(-len(packets) // sections)
    for part in range(sections):
        own = packets[part * each : (part + 1) * each]
        section = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
        option = struct.pack(f"{order}HHBxxxHH", 9, 1, resolution, 0, 0)
        file += block(0x0A0D0D0A, section, order)
        file += block(1, struct.pack(f"{order}HHI", number, 0, snap) + option, order)
        for packet, data, length in frames(own, head, six=six, snap=snap):
            ticks = round(packet.t_s * per_s)
            told = (0, ticks >> 32, ticks & 0xFFFFFFFF, len(data), length)
            file += block(6, struct.pack(f"{order}5I", *told) + data, order)
        if drops is not None:
            told_drops = struct.pack(f"{order}HHQHH", 5, 8, drops, 0, 0)
            file += block(5, struct.pack(f"{order}III", 0, 0, 0) + told_drops, order)
    return file


def transfer(
    count: int = 100,
    *,
    ahead_s: float = 0.04,
    behind_s: float = 0.0,
    shake: bool = True,
    stamped: bool = True,
    size: int = MSS,
    begin: int = 1000,
    scale: int = 7,
) -> list[Packet]:
    """A window of ten segments that a capture sees, with the round trip in two parts."""
    rtt_s = ahead_s + behind_s
    found = []

    def stamps(t_s: float, delay_s: float) -> tuple[int, int] | None:
        return (round(t_s * 1000) + 7, round((t_s - delay_s) * 1000) + 7) if stamped else None

    if shake:
        options = struct.pack(">BBHBBBB", 2, 4, 1460, 3, 3, scale, 1)
        both = {"options": options}
        found += [
            Packet(0.0, True, begin - 1, 0, flags=SYN, window=64000, stamps=stamps(0, 0), **both),
            Packet(ahead_s, False, 0, begin, 0, SYN | ACK, 64000, stamps(ahead_s, ahead_s), **both),
            Packet(rtt_s, True, begin, 1, stamps=stamps(rtt_s, behind_s)),
        ]
    for number in range(count):
        t_s = rtt_s * (2 + number // 10) + number % 10 * 1e-4
        seq = begin + number * size
        found.append(Packet(t_s, True, seq, 1, size, stamps=stamps(t_s, behind_s), id=number + 1))
        back_s = t_s + ahead_s
        found.append(Packet(back_s, False, 1, seq + size, stamps=stamps(back_s, ahead_s)))
    return sorted(found, key=lambda packet: packet.t_s)


def read(tmp_path: Path, file: bytes, **options: Any) -> Measurement:
    path = tmp_path / "x.pcap"
    path.write_bytes(file)
    return capture.read(path, **{"step_s": 0.0137, **options})


def told(measured: Measurement) -> dict[str, Any]:
    (flow,) = measured.summary["flows"]
    return dict(flow)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(
    "form",
    [
        {},
        {"big": True, "nanoseconds": True},
        {"ng": True, "drops": 3},
        {"ng": True, "big": True, "resolution": 9, "drops": 4},
        {"ng": True, "resolution": 128 + 30, "sections": 3},
    ],
    ids=str,
)
def test_every_kind_of_file_and_link_shows_the_same(
    tmp_path: Path, link: str, form: dict[str, Any]
) -> None:
    write = in_pcapng if (form := dict(form)).pop("ng", False) else in_pcap
    packets = transfer()
    wanted = read(tmp_path, in_pcap(packets))
    measured = read(tmp_path, write(packets, link, **form))
    assert measured.flows.shape == wanted.flows.shape
    numbers = [table.to_numpy() for table in (measured.flows, wanted.flows)]
    assert np.allclose(*numbers, rtol=1e-6, atol=1e-6, equal_nan=True)
    flow = told(measured)
    assert (flow["captured_at"], flow["delivered_bytes"]) == ("sender", 100 * MSS)
    assert flow["min_rtt_s"] == pytest.approx(0.04, abs=1e-5)
    assert flow["offered_window_bytes"] == max(64000, 1000 << 7)
    assert measured.summary["capture"]["dropped"] == form.get("drops")
    assert any("dropped" in note for note in measured.summary["notes"]) == ("drops" in form)


@pytest.mark.parametrize("snap", [54, 60, 66, 68, 96])
def test_headers_suffice(tmp_path: Path, snap: int) -> None:
    """Options that were not captured are missing, and nothing else."""
    flow = told(read(tmp_path, in_pcap(transfer(), snap=snap)))
    assert flow["delivered_bytes"] == 100 * MSS
    assert flow["min_rtt_s"] == pytest.approx(0.04, abs=1e-5)
    short = read(tmp_path, in_pcap([*transfer(1, shake=False), *transfer(9)], snap=262144))
    assert short.summary["capture"]["short"] == 0
    with pytest.raises(UsageError, match="203 packets, and no TCP data among them"):
        read(tmp_path, in_pcap(transfer(), snap=53))


@pytest.mark.parametrize(
    ("ahead_s", "behind_s", "at"),
    [(0.04, 0.0, "sender"), (0.0, 0.04, "receiver"), (0.01, 0.03, "between")],
)
@pytest.mark.parametrize("shake", [True, False])
def test_where_it_was_captured_is_seen(
    tmp_path: Path, ahead_s: float, behind_s: float, at: str, *, shake: bool
) -> None:
    packets = transfer(ahead_s=ahead_s, behind_s=behind_s, shake=shake)
    measured = read(tmp_path, in_pcap(packets))
    flow = told(measured)
    assert flow["captured_at"] == at
    assert flow["min_rtt_s"] == pytest.approx(0.04, abs=2e-3)
    assert any(at.replace("between", "between the hosts") in n for n in measured.summary["notes"])
    assert measured.flows["inflight_bytes"].max() == pytest.approx(10 * MSS, abs=MSS)
    # Whoever knows it better says so.
    other = read(tmp_path, in_pcap(packets), at="sender")
    assert told(other)["min_rtt_s"] == pytest.approx(ahead_s, abs=1e-5)


def test_without_handshake_and_timestamps_the_place_and_the_window_are_not_known(
    tmp_path: Path,
) -> None:
    # 10 segments are 65 % of 700 times 32, and more than 700 times 16.
    packets = [replace(p, window=700) for p in transfer(shake=False, stamped=False)]
    measured = read(tmp_path, in_pcap(packets))
    flow = told(measured)
    assert (flow["captured_at"], flow["offered_window_bytes"]) == ("unknown", None)
    assert measured.flows["offered_window_bytes"].null_count() == measured.flows.height
    text = " ".join(measured.summary["notes"])
    assert "Where it was captured is not seen" in text
    assert "the scale of the receiver's window is not known" in text
    assert read(tmp_path, in_pcap(transfer(shake=False)), at="receiver").flows.height


def test_a_window_that_is_full_is_told_without_its_scale(tmp_path: Path) -> None:
    """Bytes in flight fill 910 times 16 bytes, and no other scale fits."""
    packets = [replace(packet, window=910) for packet in transfer(shake=False)]
    measured = read(tmp_path, in_pcap(packets))
    assert (told(measured)["offered_window_bytes"], told(measured)["has_window_scale"]) == (
        910 * 16,
        False,
    )
    assert any("fills the window for most" in note for note in measured.summary["notes"])


def test_a_pause_of_the_sender_is_no_part_of_the_round_trip(tmp_path: Path) -> None:
    """Bursts half a second apart; the handshake is not in the file."""
    packets, heard = [], 7
    for number in range(200):
        t_s = 0.5 * (number // 10) + number % 10 * 1e-3
        seq, sent = 1000 + number * MSS, round(t_s * 1000) + 7
        packets.append(Packet(t_s, True, seq, 1, MSS, stamps=(sent, heard), id=number + 1))
        back = Packet(t_s + 0.04, False, 1, seq + MSS, stamps=(sent + 40, sent))
        packets.append(back)
        heard = sent + 40 if number % 10 == 9 else heard
    flow = told(read(tmp_path, in_pcap(sorted(packets, key=lambda packet: packet.t_s))))
    assert flow["captured_at"] == "unknown"  # --at tells it; values are those at the sender
    assert flow["min_rtt_s"] == pytest.approx(0.04, abs=2e-3)


@pytest.mark.parametrize("scale", [0, 14])
def test_windows_are_scaled(tmp_path: Path, scale: int) -> None:
    measured = read(tmp_path, in_pcap(transfer(scale=scale)))
    assert measured.flows["offered_window_bytes"][-1] == 1000 << scale


@pytest.mark.parametrize("begin", [2**32 - 1 - 50 * MSS, 2**32 - 1, 2**31 - 7, 0])
def test_sequence_numbers_wrap(tmp_path: Path, begin: int) -> None:
    flow = told(read(tmp_path, in_pcap(transfer(begin=begin))))
    assert (flow["delivered_bytes"], flow["retransmits"]) == (100 * MSS, 0)


@pytest.mark.parametrize("size", [44 * MSS, 100 * MSS])
def test_packets_before_segmentation_are_many_segments(tmp_path: Path, size: int) -> None:
    """Of 64 kB and, as BIG TCP sends them, beyond: their header tells a length of 0."""
    packets = transfer(20, size=size)
    again = replace(packets[9], t_s=packets[-1].t_s - 1e-4, id=99, stamps=(900, 860))
    for link in ("raw", "raw, IPv6"):
        file = in_pcap(sorted([*packets, again], key=lambda packet: packet.t_s), link, snap=96)
        flow = told(read(tmp_path, file))
        assert (flow["delivered_bytes"], flow["retransmits"]) == (20 * size, size // MSS)


def lost(packets: list[Packet], number: int, *, before: bool) -> list[Packet]:
    """Segment ``number`` is lost behind or before the capture, and sent again an RTT later."""
    data = [packet for packet in packets if packet.payload]
    gone = data[number]
    rest = [packet for packet in packets if not before or packet is not gone]
    stop = gone.seq + MSS
    made = []
    for packet in rest:
        is_late = not packet.forth and packet.ack >= stop and packet.t_s < gone.t_s + 0.085
        if is_late:
            sack = struct.pack(">BBBBII", 1, 1, 5, 10, stop, packet.ack)
            made.append(replace(packet, ack=gone.seq, options=sack if packet.ack > stop else b""))
        else:
            made.append(packet)
    t_s = gone.t_s + 0.0445
    echo = (round(t_s * 1000) + 7, round(t_s * 1000) - 33)
    made.append(replace(gone, t_s=t_s, stamps=echo if gone.stamps else None, id=5000))
    return sorted(made, key=lambda packet: packet.t_s)


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_a_segment_that_is_sent_again_gives_no_round_trip(
    tmp_path: Path, *, before: bool, stamped: bool
) -> None:
    packets = lost(transfer(stamped=stamped), 43, before=before)
    measured = read(tmp_path, in_pcap(packets))
    flow = told(measured)
    assert (flow["retransmits"], flow["reordered"]) == (1, 0)
    assert flow["delivered_bytes"] == 100 * MSS
    assert measured.flows["rtt_s"].max() == pytest.approx(0.04, abs=1e-3)


@pytest.mark.parametrize("stamped", [True, False])
def test_a_segment_that_comes_late_is_not_sent_again(tmp_path: Path, *, stamped: bool) -> None:
    packets = transfer(ahead_s=0.001, behind_s=0.039, stamped=stamped)
    data = [packet for packet in packets if packet.payload]
    late = [
        replace(packet, t_s=packet.t_s + 5e-4) if packet is data[44] else packet
        for packet in packets
    ]
    flow = told(read(tmp_path, in_pcap(sorted(late, key=lambda packet: packet.t_s))))
    assert (flow["retransmits"], flow["reordered"]) == (0, 1)


def test_packets_that_the_capture_missed_are_told(tmp_path: Path) -> None:
    packets = transfer()
    data = [packet for packet in packets if packet.payload]
    kept = [packet for packet in packets if packet not in data[30:34]]
    measured = read(tmp_path, in_pcap(kept))
    flow = told(measured)
    assert (flow["unseen_bytes"], flow["retransmits"]) == (4 * MSS, 0)
    assert flow["delivered_bytes"] == 100 * MSS
    assert any(
        f"{4 * MSS:,} bytes were acknowledged and are not" in n for n in measured.summary["notes"]
    )


@pytest.mark.parametrize("link", ["ethernet", "ethernet, IPv6"])
def test_packets_that_are_in_the_file_twice_count_once(tmp_path: Path, link: str) -> None:
    """As `tcpdump -i any` writes them on a router."""
    packets = transfer()
    both = [replace(packet, t_s=packet.t_s + 2e-5) for packet in packets]
    twice = sorted([*packets, *both], key=lambda packet: packet.t_s)
    measured = read(tmp_path, in_pcap(twice, link))
    flow = told(measured)
    assert (flow["copies"], flow["retransmits"]) == (100, 0)
    assert flow["delivered_bytes"] == 100 * MSS


def test_a_probe_that_keeps_a_connection_alive_is_not_sent_again(tmp_path: Path) -> None:
    packets = transfer()
    end = 1000 + 100 * MSS
    later = packets[-1].t_s + 1.0
    probe = Packet(later, True, end - 1, 1, 1)
    answer = Packet(later + 0.04, False, 1, end)
    flow = told(read(tmp_path, in_pcap([*packets, probe, answer])))
    assert flow["retransmits"] == 0


def test_a_fin_is_no_payload(tmp_path: Path) -> None:
    packets = transfer()
    end = 1000 + 100 * MSS
    later = packets[-1].t_s + 0.001
    closing = [
        Packet(later, True, end, 1, 0, ACK | FIN),
        Packet(later + 0.04, False, 1, end + 1, 0, ACK | FIN),
    ]
    assert told(read(tmp_path, in_pcap([*packets, *closing])))["delivered_bytes"] == 100 * MSS


def test_a_capture_that_begins_within_a_transfer(tmp_path: Path) -> None:
    """Data that were in flight before are neither missed nor sent again."""
    packets = [packet for packet in transfer() if packet.t_s > 0.1003]
    measured = read(tmp_path, in_pcap(packets))
    flow = told(measured)
    assert (flow["unseen_bytes"], flow["retransmits"], flow["copies"]) == (0, 0, 0)
    assert measured.flows["inflight_seg"].max() <= 10


def test_data_of_both_ends_are_two_flows(tmp_path: Path) -> None:
    packets, end = transfer(), 1000 + 100 * MSS
    answer = [
        replace(
            packet,
            t_s=packet.t_s + 5,
            forth=not packet.forth,
            seq=packet.seq - 999 if packet.payload else end,
            ack=end if packet.payload else packet.ack - 999,
            stamps=None,
        )
        for packet in packets[3:]
    ]
    flows = read(tmp_path, in_pcap([*packets, *answer])).summary["flows"]
    assert [flow["direction"] for flow in flows] == ["forward", "reverse"]
    assert [flow["delivered_bytes"] for flow in flows] == [100 * MSS, 100 * MSS]
    assert flows[0]["sender"] == flows[1]["receiver"] == "10.0.0.1:40000"


def test_a_connection_of_the_same_ports_is_another_flow(tmp_path: Path) -> None:
    later = [replace(packet, t_s=packet.t_s + 3) for packet in transfer(50, begin=777_000)]
    flows = read(tmp_path, in_pcap([*transfer(), *later])).summary["flows"]
    assert [flow["delivered_bytes"] for flow in flows] == [100 * MSS, 50 * MSS]


def test_other_packets_are_counted(tmp_path: Path) -> None:
    udp = struct.pack(">BBHHHBBH", 0x45, 0, 28, 0, 0, 64, 17, 0) + bytes(16)
    fragment = struct.pack(">BBHHHBBH", 0x45, 0, 60, 0, 0x2005, 64, 6, 0) + bytes(48)
    file = in_pcap(transfer(), "raw")
    for data in (udp, fragment, b"", b"\xff" * 40):
        file += struct.pack("<IIII", 9, 0, len(data), len(data)) + data
    measured = read(tmp_path, file)
    assert measured.summary["capture"]["others"] == 4
    assert any(
        "4 packets are not TCP over IP, or are fragments" in n for n in measured.summary["notes"]
    )


def test_a_file_is_read_up_to_its_cut(tmp_path: Path, lfn: Lfn) -> None:
    whole = read(tmp_path, in_pcap(transfer()))
    for write in (in_pcap, in_pcapng):
        file = write(transfer())
        for part in (0.3, 0.5, 0.9):
            measured = read(tmp_path, file[: int(len(file) * part)])
            (note,) = [note for note in measured.summary["notes"] if "Read up to byte" in note]
            assert note.endswith("the file ends within a packet.")
            assert 0 < measured.flows.height < whole.flows.height
    printed = lfn("import", "capture", tmp_path / "x.pcap", "--out", tmp_path / "out")
    assert "the file ends within a packet" in printed


def test_a_file_that_gzip_packed_is_read_as_it_is_unpacked(tmp_path: Path) -> None:
    for write in (in_pcap, in_pcapng):
        file = write(transfer())
        whole, packed = read(tmp_path, file), gzip.compress(file, mtime=0)
        for more in (
            packed,
            gzip.compress(file[:999], mtime=0) + gzip.compress(file[999:], mtime=0),
        ):
            measured = read(tmp_path, more)
            assert measured.flows.equals(whole.flows)
            assert measured.summary == whole.summary
        for damaged in (packed[: len(packed) // 2], packed[:-8] + bytes(8)):
            measured = read(tmp_path, damaged)
            (note,) = [note for note in measured.summary["notes"] if "Read up to byte" in note]
            assert note.endswith("what gzip packed ends or is damaged there.")
            assert 0 < measured.flows.height <= whole.flows.height


@pytest.mark.parametrize(
    ("file", "where"),
    [
        (b"", "it is empty"),
        (b"\xd4\xc3\xb2", "no pcap or pcapng file"),
        (gzip.compress(b"x" * 999, mtime=0), "no pcap or pcapng file"),
        (gzip.compress(b"", mtime=0), "it is empty"),
        (b"\x1f\x8b", "it is empty"),
        (b"{}" * 999, "no pcap or pcapng file"),
        (in_pcap([]), "0 packets, and no TCP data among them"),
        (in_pcap(transfer(0)), "3 packets, and no TCP data among them"),
        (
            in_pcap(transfer())[:20] + struct.pack("<I", 127) + in_pcap(transfer())[24:],
            "link type 127;",
        ),
    ],
)
def test_foreign_files_are_refused_on_one_line(
    tmp_path: Path, lfn: Lfn, file: bytes, where: str
) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(file)
    err = lfn.refuses("import", "capture", path, "--out", tmp_path / "out")
    assert err.startswith(f"lfn: {path}: ")
    assert where in err
    assert not (tmp_path / "out").exists()


def test_what_is_no_file_is_not_read(tmp_path: Path, lfn: Lfn) -> None:
    for path in (tmp_path, tmp_path / "none", Path("/dev/zero")):
        assert "cannot read" in lfn.refuses("import", "capture", path, code=3)
    path = tmp_path / "x.pcap"
    path.write_bytes(in_pcap(transfer()))
    for step in ("0s", "1ns", "fast"):
        assert "--step" in lfn.refuses("import", "capture", path, "--step", step)


def test_no_payload_and_no_address_get_into_an_anonymous_result(tmp_path: Path, lfn: Lfn) -> None:
    path = tmp_path / "from-alice.pcap"
    path.write_bytes(in_pcap(transfer()).replace(bytes(64), b"secret-payload-" + bytes(49)))
    out = tmp_path / "out"
    printed = lfn("import", "capture", path, "--anonymous", "--out", out)
    assert "Captured at the sender; --at tells another place." in lfn("report", out)
    written = b"".join(file.read_bytes() for file in out.iterdir()) + printed.encode()
    for secret in (b"secret", b"10.0.0", b"40000", b"alice"):
        assert secret not in written
    named = lfn("import", "capture", path, "--out", tmp_path / "named")
    assert "10.0.0.1:40000 to 10.0.0.2:443" in named


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Rows are of steps, and packets in flight of the window: a longer file has more of neither."""
    short = read(tmp_path, in_pcap(transfer(1000), snap=66), step_s=1.0)
    long = read(tmp_path, in_pcap(transfer(10_000), snap=66), step_s=10.0)
    assert abs(short.flows.height - long.flows.height) <= 1
    assert told(long)["delivered_bytes"] == 10_000 * MSS
    assert math.isclose(told(long)["goodput_bps"], told(short)["goodput_bps"], rel_tol=0.02)
