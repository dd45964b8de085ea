"""Does tshark open packet traces without complaint, and count what we count?"""

from __future__ import annotations

import heapq
import random
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from packets import BUSY, CE, CWR, ECE, ECT1, LAST, MSS, RETRANSMISSION, Trace, captured, traced

from lfnlab import Case, dumbbell, execute
from lfnlab.cli import app as cli
from lfnlab.errors import UsageError
from lfnlab.formats import pcap, views

if TYPE_CHECKING:
    from command import Lfn

    from lfnlab import Results

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed; ci/tools.sh installs it"
)
needs_tcptrace = pytest.mark.skipif(
    shutil.which("tcptrace") is None, reason="tcptrace is not installed; ci/tools.sh installs it"
)


def shark(file: Path, *fields: str, where: str = "") -> list[list[str]]:
    """A row a packet. Relative sequence numbers are off, checksums on."""
    command = ["tshark", "-r", str(file), "-o", "tcp.relative_sequence_numbers:FALSE"]
    command += ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]
    command += ["-Y", where] if where else []
    command += ["-T", "fields", *(part for field in fields for part in ("-e", field))]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "appears to have been cut short" not in run.stderr
    return [line.split("\t") for line in run.stdout.splitlines()]


def written(trace: Trace, tmp_path: Path, **options: Any) -> Path:
    file = tmp_path / "trace.pcapng"
    pcap.write_pcapng(file, trace.frame(), **options)
    # Wireshark marks what it cannot dissect, and what it finds wrong.
    assert shark(file, "frame.number", where="_ws.malformed") == []
    assert shark(file, "ip.checksum.status", where="ip.checksum.status != 1") == []
    assert shark(file, "frame.number", where="tcp.analysis.zero_window") == []
    assert shark(file, "frame.number", where="tcp.analysis.ack_lost_segment") == []
    assert shark(file, "frame.number", where="tcp.analysis.window_full") == []
    return file


def flagged(file: Path, name: str) -> int:
    return len(shark(file, "frame.number", where=f"tcp.analysis.{name}"))


@pytest.mark.parametrize("headers", [40, 52, 54, 66])
def test_a_lossless_trace_is_flawless(tmp_path: Path, headers: int) -> None:
    trace = Trace(headers)
    trace.bulk(200)
    trace.bulk(100, flow=70_000, start_ms=5, reverse=True)
    file = written(trace, tmp_path)
    assert flagged(file, "flags") == 0
    data = shark(file, "frame.len", "frame.cap_len", "tcp.len", "tcp.seq", where="tcp.len > 0")
    assert len(data) == 300
    assert {(int(length), int(payload)) for length, _, payload, _ in data} == {(MSS + headers, MSS)}
    assert {int(captured) for _, captured, _, _ in data} == {headers}
    assert data[1][3] == str(1 + MSS)
    # Two conversations, and the bytes of each way: data with a SYN and an ACK; ACKs with a SYN-ACK.
    ways: dict[tuple[str, str], list[int]] = {}
    for source, to, length in shark(file, "ip.src", "ip.dst", "frame.len"):
        ways.setdefault((source, to), []).append(int(length))
    left, right = ("10.0.0.0", "10.1.17.112"), ("10.128.0.0", "10.129.17.112")
    syn = headers + (8 if headers in (52, 66) else 12)
    assert {way: (len(each), sum(each)) for way, each in ways.items()} == {
        (left[0], right[0]): (202, syn + headers + 200 * (MSS + headers)),
        (right[0], left[0]): (201, syn + 200 * headers),
        (right[1], left[1]): (102, syn + headers + 100 * (MSS + headers)),
        (left[1], right[1]): (101, syn + 100 * headers),
    }
    assert {stream for (stream,) in shark(file, "tcp.stream")} == {"0", "1"}


def test_the_handshake_tells_scale_sack_and_segment_size(tmp_path: Path) -> None:
    trace = Trace()
    trace.bulk(3)
    file = written(trace, tmp_path)
    options = ("tcp.options.mss_val", "tcp.options.wscale.shift", "tcp.options.sack_perm")
    shakes = shark(file, "tcp.flags.str", "frame.interface_name", *options)[:4]
    names = [flags.strip("·") for flags, *_ in shakes]
    assert names == ["S", "A··S", "A", "A"]
    assert [line[1] for line in shakes] == ["0", "1", "0", "0"]
    # As Linux says it: timestamps take 12 bytes of it.
    assert shakes[0][2:4] == shakes[1][2:4] == [str(MSS + 12), "14"]
    assert all(line[4] for line in shakes[:2]), "SACK permitted"
    windows = shark(file, "tcp.window_size", where="tcp.len > 0")
    assert {int(size) for (size,) in windows} == {65535 << 14}


def fast_retransmit(trace: Trace) -> None:
    """Segment 20 is dropped; SACK tells; it is sent again once, among new data."""
    for i in range(60):
        trace.packet(i, i, dropped=i == 20)
        if i < 20:
            trace.packet(i + 10, i + 1, ack=True)
        elif 20 < i < 40:
            trace.packet(i + 10, 20, ack=True, sack=[(21, i + 1)])
    trace.packet(34.5, 20, flags=RETRANSMISSION)
    for i in range(40, 60):
        trace.packet(i + 10.5, i + 1, ack=True)


def test_retransmissions_are_ours(tmp_path: Path) -> None:
    trace = Trace()
    fast_retransmit(trace)
    file = written(trace, tmp_path)
    assert flagged(file, "retransmission") == 1
    assert flagged(file, "fast_retransmission") == 1
    assert flagged(file, "duplicate_ack") == 19
    commented = shark(file, "tcp.seq", "frame.comment", where="frame.comment")
    seq = str(1 + 20 * MSS)
    assert commented == [[seq, "dropped"], [seq, "retransmission"]]
    edges = shark(
        file, "tcp.options.sack_le", "tcp.options.sack_re", where="tcp.options.sack.count"
    )
    assert edges[-1] == [str(1 + 21 * MSS), str(1 + 40 * MSS)]


def transfer(trace: Trace, seed: int, segments: int = 600, loss: float = 0.03) -> None:
    """A SACK sender with a window of 60 over 40 ms, whose queue drops at random.

    The data's queue is at the sender, that of the ACKs at the receiver, as in the simulator.
    """
    draw = random.Random(seed)
    received: set[int] = set()
    una = top = 0
    sacked: set[int] = set()
    again: dict[int, float] = {}
    under_way: list[tuple[float, int, list[tuple[int, int]]]] = []

    def blocks(newest: int) -> list[tuple[int, int]]:
        """Of what the receiver holds above its gap, those of the newest segments first."""
        found = []
        held = {seq for seq in received if seq > min_missing}
        for seq in (newest, *sorted(held, reverse=True)):
            if seq not in held:
                continue
            start, end = seq, seq + 1
            while start - 1 in held:
                start -= 1
            while end in held:
                end += 1
            held -= set(range(start, end))
            found.append((start, end))
        return found[:3]

    def send(t: float, seq: int, flags: int = 0) -> None:
        dropped = draw.random() < loss
        trace.packet(t, seq, flags=flags, dropped=dropped)
        if not dropped:
            heapq.heappush(arrivals, (t + 20, seq))

    arrivals: list[tuple[float, int]] = []
    min_missing, t = 0, 0.0
    while una < segments:
        # The sender, each half millisecond: what is lost, or what is new.
        lost = [
            seq
            for seq in range(una, max(sacked, default=una) - 2)
            if seq not in sacked and t - again.get(seq, -1e9) > 60
        ]
        if lost:
            send(t, lost[0], RETRANSMISSION)
            again[lost[0]] = t
        elif top < min(una + 60, segments):
            send(t, top)
            top += 1
        elif not arrivals and not under_way and t - again.get(una, -1e9) > 300:
            t += 300  # the timeout
            send(t, una, RETRANSMISSION)
            again[una] = t
        t += 0.5
        while arrivals and arrivals[0][0] <= t:
            at, seq = heapq.heappop(arrivals)
            received.add(seq)
            while min_missing in received:
                min_missing += 1
            sack = blocks(seq)
            trace.packet(at, min_missing, ack=True, sack=sack)
            under_way.append((at + 20, min_missing, sack))
        while under_way and under_way[0][0] <= t:
            _, una, sack = under_way.pop(0)
            sacked.update(seq for start, end in sack for seq in range(start, end))


@pytest.mark.parametrize("seed", range(3))
def test_tshark_finds_the_retransmissions_of_a_lossy_transfer(tmp_path: Path, seed: int) -> None:
    trace = Trace()
    transfer(trace, seed)
    file = written(trace, tmp_path)
    ours = shark(file, "frame.number", where='frame.comment contains "retransmission"')
    assert ours == shark(file, "frame.number", where="tcp.analysis.retransmission")
    assert len(ours) >= 10
    assert flagged(file, "out_of_order") == 0
    dropped = shark(file, "frame.number", where='frame.comment contains "dropped"')
    assert len(dropped) == sum(row["point"] == 1 for row in trace.rows)


def test_timeouts_and_three_blocks(tmp_path: Path) -> None:
    trace = Trace()
    lost = (10, 12, 14)
    for i in range(17):
        trace.packet(i * 0.1, i, dropped=i in lost)
    trace.packet(12, 10, ack=True, sack=[(15, 17), (13, 14), (11, 12)])
    # All three again after the timeout, which doubles; the last is lost once more.
    for n, i in enumerate(lost):
        trace.packet(300 + n, i, flags=RETRANSMISSION, dropped=i == 14)
    trace.packet(311, 14, ack=True, sack=[(15, 17)])
    trace.packet(700, 14, flags=RETRANSMISSION)
    trace.packet(711, 17, ack=True)
    file = written(trace, tmp_path)
    assert flagged(file, "retransmission") == 4
    lines = shark(file, "tcp.options.sack_le", "tcp.hdr_len", where="tcp.options.sack.count")
    assert lines[0] == [",".join(str(1 + i * MSS) for i in (15, 13, 11)), "60"]
    comments = shark(file, "frame.comment", where="frame.comment")
    assert [text for (text,) in comments].count("retransmission, dropped") == 1


def test_reordering_is_no_retransmission(tmp_path: Path) -> None:
    """A path that shortens lets segment 11 overtake 10 by a millisecond."""
    trace = Trace()
    for i in range(30):
        trace.packet(i + (1.5 if i == 10 else 0), i)
    file = written(trace, tmp_path)
    assert flagged(file, "out_of_order") == 1
    assert flagged(file, "retransmission") == 0


def test_behind_the_queue_the_dropped_are_missing(tmp_path: Path) -> None:
    trace = Trace()
    fast_retransmit(trace)
    file = written(trace, tmp_path, view="departure")
    assert len(shark(file, "frame.number", where="tcp.len > 0")) == 60
    assert shark(file, "frame.comment", where="frame.comment") == [["retransmission"]]
    assert flagged(file, "lost_segment") == 1
    times = shark(file, "frame.time_epoch", where="tcp.len > 0")
    assert float(times[0][0]) == pytest.approx(pcap.BEGIN_S + 10e-6)


def test_sequence_numbers_wrap_and_the_end_is_short(tmp_path: Path) -> None:
    trace = Trace()
    first = 2**32 // MSS - 20
    trace.bulk(50, first=first)
    trace.packet(50, first + 50, payload_bytes=100, flags=LAST)
    trace.packet(60, first + 51, ack=True)
    file = written(trace, tmp_path)
    assert flagged(file, "flags") == 0
    end = (1 + (first + 50) * MSS + 100) % 2**32
    assert end < 2**31, "it has wrapped"
    (fin,) = shark(file, "tcp.seq", "tcp.len", "tcp.nxtseq", where="tcp.flags.fin == 1")
    assert fin == [str(end - 100), "100", str(end + 1)]
    assert shark(file, "tcp.ack")[-1] == [str(end + 1)]


def test_ecn_is_shown(tmp_path: Path) -> None:
    trace = Trace()
    trace.packet(0, 0)
    trace.packet(1, 1, flags=CE)
    trace.packet(10, 1, ack=True)
    trace.packet(11, 2, ack=True, flags=ECE)
    trace.packet(12, 2, flags=CWR)
    file = written(trace, tmp_path)
    lines = shark(file, "ip.dsfield.ecn", "tcp.flags.ece", "tcp.flags.cwr")
    assert lines[:3] == [["0", "1", "1"], ["0", "1", "0"], ["0", "0", "0"]]
    assert lines[3:] == [
        ["2", "0", "0"],
        ["3", "0", "0"],
        ["0", "0", "0"],
        ["0", "1", "0"],
        ["2", "0", "1"],
    ]


def test_ect1_is_shown_and_a_mark_replaces_it(tmp_path: Path) -> None:
    trace = Trace()
    trace.packet(0, 0, flags=ECT1)
    trace.packet(1, 1, flags=ECT1 | CE)
    trace.packet(2, 2, flags=ECT1)
    lines = shark(written(trace, tmp_path), "ip.dsfield.ecn", where="tcp.len > 0")
    assert lines == [["1"], ["3"], ["1"]]


def test_accecn_is_shown(tmp_path: Path) -> None:
    """RFC 9768: the handshake, counters from 5 on, and ACKs as long as they were simulated."""
    run = captured(
        tmp_path / "run",
        traced(law="prague").replace("queue = {", 'queue = { kind = "dualpi2",'),
    )
    file = tmp_path / "trace.pcapng"
    pcap.write_pcapng(file, pcap.recorded(run).filter(pl.col("flow") == 1), view="sender")
    assert shark(file, "frame.number", where="_ws.malformed || ip.checksum.status != 1") == []
    asked = ("tcp.flags.ae", "tcp.flags.cwr", "tcp.flags.ece", "frame.len")
    # The option of the SYN-ACK is not written.
    assert shark(file, *asked, where="tcp.flags.syn == 1") == [
        ["1", "1", "1", "74"],
        ["0", "1", "0", "74"],
    ]
    counts = shark(file, "tcp.flags.ace", "frame.len", "tcp.srcport", where="tcp.flags.syn == 0")
    assert counts[0][:1] == ["2"]
    acks = [(ace, length) for ace, length, port in counts if port == "9"]
    assert acks[0] == ("5", "74")
    assert {ace for ace, _ in acks} == set("01234567")


@pytest.mark.parametrize(
    ("able", "flags", "fields"), [("classic", "001", "23"), ("off", "000", "0")]
)
def test_a_receiver_that_has_no_accecn_is_shown(
    able: str, flags: str, fields: str, tmp_path: Path
) -> None:
    """RFC 3168 where the SYN-ACK grants it, data without ECN where not."""
    keys = f'law = "reno"\necn = true\naccecn = "counter"\nreceiver_ecn = "{able}"'
    run = captured(
        tmp_path / "run",
        traced()
        .replace('law = "reno"', keys)
        .replace("queue = {", 'queue = { kind = "codel", ecn = true,'),
    )
    file = tmp_path / "trace.pcapng"
    pcap.write_pcapng(file, pcap.recorded(run).filter(pl.col("flow") == 1), view="receiver")
    asked = ("tcp.flags.ae", "tcp.flags.cwr", "tcp.flags.ece")
    assert shark(file, *asked, where="tcp.flags.syn == 1") == [["1", "1", "1"], list(flags)]
    found = {field for (field,) in shark(file, "ip.dsfield.ecn", where="tcp.len > 0")}
    assert found == set(fields)


def test_udp_datagrams(tmp_path: Path) -> None:
    trace = Trace(headers=42, payload=1000)
    for i in range(20):
        trace.packet(i, i, kind=2, flow=7, dropped=i == 3)
    file = written(trace, tmp_path)
    lines = shark(file, "udp.length", "frame.len", "ip.dst")
    assert lines == [["1008", "1042", "10.128.0.7"]] * 20
    assert shark(file, "frame.comment", where="frame.comment") == [["dropped"]]


def test_headers_sum_to_zero(tmp_path: Path) -> None:
    """tshark checks what it holds whole: an ACK, a handshake."""
    trace = Trace()
    fast_retransmit(trace)
    file = written(trace, tmp_path)
    whole = shark(file, "tcp.checksum.status", where="tcp.len == 0")
    assert {status for (status,) in whole} == {"1"}


def test_one_link_alone(tmp_path: Path) -> None:
    trace = Trace()
    trace.bulk(20)
    file = written(trace, tmp_path, links=["1"])
    names = shark(file, "frame.interface_name", "tcp.ack", where="tcp.flags.syn == 0")
    assert {name for name, _ in names} == {"1"}
    assert [int(ack) for _, ack in names] == [1 + MSS * i for i in range(1, 21)]
    with pytest.raises(UsageError, match='no link "forth"; allowed: 0, 1'):
        pcap.write_pcapng(file, trace.frame(), links=["forth"])


def test_the_command_writes_a_stored_run(results: Results, tmp_path: Path, lfn: Lfn) -> None:
    run = tmp_path / "run"
    shutil.copytree(results.runs[0].path, run)
    trace = Trace()
    fast_retransmit(trace)
    trace.frame().write_parquet(run / "packets.parquet")
    file = tmp_path / "out.pcapng"
    assert lfn("pcap", run, "-o", file, "--link", "forward") == f"61 packets\n{file}\n"
    assert {tuple(line) for line in shark(file, "frame.interface_name")} == {("forward",)}


def test_tshark_counts_what_a_run_counted(tmp_path: Path) -> None:
    """Packets, bytes, drops and retransmissions of a whole lossy run, from scenario to tshark."""
    base = dumbbell(rate="20Mbit/s", rtt="40ms", buffer="20packets", duration="20s")
    assert base.link is not None
    lossy = replace(base, warmup="0s", link=replace(base.link, loss=0.003))
    scenario = lossy.flow("cubic", size="6MB", count=2).with_capture()
    run = execute([Case(scenario)], out=tmp_path).runs[0]
    flows, forward = run.summary["flows"], run.summary["links"][0]
    assert all(flow["completion_s"] is not None for flow in flows), (
        "nothing is under way at the end"
    )
    file = tmp_path / "run.pcapng"
    assert cli.call(["pcap", str(tmp_path), "-o", str(file)]) == cli.OK

    assert shark(file, "frame.number", where="_ws.malformed") == []
    data = shark(file, "tcp.stream", "frame.len", "frame.comment", where="tcp.len > 0")
    here = 'frame.interface_name == "forward"'
    shaken = shark(file, "frame.len", where=f"{here} && tcp.len == 0")
    assert len(shaken) == 2 * len(flows), "SYN and the ACK that ends the handshake"
    assert len(data) + len(shaken) == forward["arrivals"]
    for flow in flows:
        own = [comment for stream, _, comment in data if stream == str(flow["id"])]
        assert len(own) == flow["sent"]
        assert sum("retransmission" in comment for comment in own) == flow["retransmits"] > 0
    dropped = [int(length) for _, length, comment in data if "dropped" in comment]
    assert len(dropped) == forward["drops"] > 0
    queues = run.table("queues")
    sent_bytes = queues.filter(queues["link"] == 0)["sent_bytes"].max()
    sent = sum(int(length) for _, length, _ in data) + sum(int(length) for (length,) in shaken)
    assert sent - sum(dropped) == sent_bytes
    # No queue counts ACKs on a link that nothing else passes: their count is that of the table.
    packets = run.table("packets")
    acks = 'frame.interface_name == "reverse"'
    recorded = packets.filter((pl.col("link") == 1) & (pl.col("point") == 0))
    assert len(shark(file, "frame.number", where=acks)) == recorded.height > 0

    # What comes again is one or the other to tshark, by the time since the last duplicate ACK.
    again = shark(file, "frame.number", where='frame.comment contains "retransmission"')
    judged = "tcp.analysis.retransmission || tcp.analysis.out_of_order"
    assert shark(file, "frame.number", where=judged) == again
    assert flagged(file, "retransmission") > 0
    assert flagged(file, "ack_lost_segment") == flagged(file, "lost_segment") == 0

    # Behind the queue, what the link then loses at random is missing too.
    assert cli.call(["pcap", str(tmp_path), "-o", str(file), "--after-queue"]) == cli.OK
    passed = forward["arrivals"] - forward["drops"] - forward["random_losses"]
    assert len(shark(file, "frame.number", where=here)) == passed
    assert forward["random_losses"] > 0

    blocks = packets.filter(pl.col("sack1_end").is_not_null())
    assert 0 < blocks.height < packets.height
    assert blocks["kind"].unique().to_list() == [1]
    assert (blocks["sack1_start"] < blocks["sack1_end"]).all()


def host_file(run: Any, tmp_path: Path, view: views.View = "sender") -> Path:
    file = tmp_path / f"{view}.pcapng"
    pcap.write_pcapng(file, pcap.recorded(run), view=view)
    assert shark(file, "frame.number", where="_ws.malformed") == []
    return file


def tcptrace(file: Path) -> tuple[list[int], dict[str, list[float]]]:
    """The flow of each connection, and figures of its first host's packets."""
    command = ["tcptrace", "-nlr", str(file)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, list[float]] = {}
    for line in text.splitlines():
        if said := re.fullmatch(r"\s*(.+?):\s+([\d.]+)\s*\w*\s+\1:\s+[\d.]+.*", line):
            found.setdefault(said[1], []).append(float(said[2]))
    hosts = re.findall(r"host \w+:\s+[\d.]+\.(\d+):", text)
    return [int(number) for number in hosts[::2]], found


@needs_tcptrace
@pytest.mark.parametrize(
    ("rate", "loss", "packet", "law", "way", "compat"),
    [
        ("20Mbit/s", 0.002, "1500B", "reno", "forward", ""),
        ("5Mbit/s", 0.0, "1500B", "bbr", "forward", ""),
        ("50Mbit/s", 0.0005, "9000B", "cubic", "reverse", ""),
        ("10Mbit/s", 0.01, "576B", "htcp", "reverse", ""),
        ("20Mbit/s", 0.002, "1500B", "reno", "forward", 'compat = "ns2"'),
    ],
)
def test_three_tools_agree_at_the_sender(
    tmp_path: Path, rate: str, loss: float, packet: str, law: str, way: str, compat: str
) -> None:
    """tshark, tcptrace and our own table: base RTT, MSS and retransmissions of each flow."""
    run = captured(tmp_path / "run", traced(rate, loss, packet, law, way, compat))
    file = host_file(run, tmp_path)
    flows = run.summary["flows"]
    began = dict(shark(file, "tcp.stream", "ip.src", where="tcp.flags.syn == 1 && tcp.ack == 0"))
    number = {stream: int(address.rsplit(".", 1)[1]) for stream, address in began.items()}
    assert sorted(number.values()) == [flow["id"] for flow in flows]

    rate_bps = float(rate.removesuffix("Mbit/s")) * 1e6
    handshake_s = 2 * 74 * 8 / rate_bps
    if compat:  # no SYN is recorded: the first segment has the place of one
        handshake_s = (int(packet.removesuffix("B")) + 40) * 8 / rate_bps
    rtts = dict(shark(file, "tcp.stream", "tcp.analysis.initial_rtt", where="tcp.len > 0"))
    judged = Counter(
        stream
        for (stream,) in shark(
            file,
            "tcp.stream",
            where="tcp.analysis.retransmission || tcp.analysis.out_of_order",
        )
    )
    for stream, at in number.items():
        base_s = flows[at]["rtt_s"] + handshake_s
        assert float(rtts[stream]) == pytest.approx(base_s, rel=1e-3)
        assert judged[stream] == flows[at]["retransmits"]
    assert sum(judged.values()) > 0

    connections, said = tcptrace(file)
    assert sorted(connections) == sorted(number.values())
    for place, at in enumerate(connections):
        base_ms = 1e3 * (flows[at]["rtt_s"] + handshake_s)
        # It prints tenths of a millisecond.
        for name in ("RTT from 3WHS", "RTT min"):
            assert said[name][place] == pytest.approx(base_ms, rel=1e-3, abs=0.051)
        assert said["rexmt data pkts"][place] == flows[at]["retransmits"]
        assert said["outoforder pkts"][place] == 0
        assert said["mss requested"][place] == int(packet.removesuffix("B")) - 40


@needs_tcptrace
def test_short_flows_that_share_a_number_are_connections_of_their_own(tmp_path: Path) -> None:
    """Of the background, with duplicates, jitter, loss and data both ways."""
    run = captured(tmp_path / "run", BUSY)
    file = host_file(run, tmp_path)
    again = shark(file, "frame.number", where='tcp && frame.comment contains "retransmission"')
    judged = "tcp.analysis.retransmission || tcp.analysis.out_of_order"
    assert shark(file, "frame.number", where=judged) == again
    for name in ("ack_lost_segment", "lost_segment", "zero_window"):
        assert flagged(file, name) == 0
    connections, said = tcptrace(file)
    assert sum(said["rexmt data pkts"]) == len(again) > 100
    assert len(connections) > 2 * len(set(connections)), "numbers are used again"


def test_the_command_writes_either_host(tmp_path: Path, lfn: Lfn) -> None:
    captured(tmp_path / "run", traced())
    file = tmp_path / "it.pcapng"
    rtts = {}
    for options in ([], ["--host", "sender"], ["--host", "receiver"], ["--link", "forward"]):
        arguments = ["pcap", str(tmp_path / "run"), "-o", str(file), *options]
        assert cli.call(arguments) == cli.OK
        acked = shark(file, "tcp.analysis.ack_rtt", where="tcp.analysis.ack_rtt && tcp.len == 0")
        rtts[" ".join(options)] = min((float(rtt) for (rtt,) in acked), default=None)
    assert "The trace ends" not in lfn.said().out
    assert rtts[""] == rtts["--host sender"] == pytest.approx(0.04, rel=0.03)
    assert rtts["--host receiver"] < 1e-3, "it acknowledges at once"
    assert rtts["--link forward"] is None
    for more in (["--link", "forward"], ["--after-queue"]):
        arguments = ["pcap", str(tmp_path / "run"), "-o", str(file), "--host", "sender", *more]
        assert "--host: a host sees no queues" in lfn.err(*arguments)
