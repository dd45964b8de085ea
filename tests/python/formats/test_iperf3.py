"""Does a measurement of iperf3 become what iperf3 says? The samples are real, iperf3 3.12.

tcp.json went through a router of 100 Mbit/s with a queue of 40 packets. Files whose names end in
_client and _server are of both ends of a test over `lfn shell --rate 50Mbit/s --rtt 20ms`, of
`twice` with 5 % duplicates, `twice_lost` with 3 % losses too. negative-lost, receiver-zero and
zero-interval are written by hand. The others went over loopback held at 100 Mbit/s.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from lfnlab import Results as Loaded
from lfnlab import Scenario, advise, law
from lfnlab.cli import app as cli
from lfnlab.diagnose.path import fit
from lfnlab.errors import LabError, StoreError, UsageError
from lfnlab.figures import draw
from lfnlab.formats import iperf3
from lfnlab.formats.measurement import store
from lfnlab.results import integrity

if TYPE_CHECKING:
    from command import Lfn

    from lfnlab import Results

DATA = Path(__file__).parents[1] / "data" / "iperf3"
MSS = 1448


def said(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


def test_flows_are_the_streams_in_the_units_of_lfnlab() -> None:
    measured = iperf3.read(DATA / "tcp.json")
    intervals, end = said("tcp")["intervals"], said("tcp")["end"]
    for flow in (0, 1):
        table = measured.flows.filter(pl.col("flow") == flow)
        ticks = [interval["streams"][flow] for interval in intervals]
        assert table["t_s"].to_list() == [tick["end"] for tick in ticks]
        assert np.allclose(table["cwnd_seg"] * MSS, [tick["snd_cwnd"] for tick in ticks])
        assert np.allclose(table["srtt_s"], [tick["rtt"] / 1e6 for tick in ticks])
        sender = end["streams"][flow]["sender"]
        assert table["delivered_bytes"][-1] == sender["bytes"]
        assert table["retransmits"][-1] == sender["retransmits"] > 0
        goodput = measured.goodput.filter(pl.col("flow") == flow)["goodput_bps"]
        assert np.allclose(goodput, [tick["bits_per_second"] for tick in ticks], rtol=1e-4)
        receiver = end["streams"][flow]["receiver"]
        summary = measured.summary["flows"][flow]
        assert summary["goodput_bps"] == pytest.approx(receiver["bits_per_second"])
        assert summary["min_rtt_s"] == pytest.approx(sender["min_rtt"] / 1e6)
        assert summary["law"] == "cubic"
    assert 0.5 < measured.summary["jain"] <= 1.0


@pytest.mark.parametrize(
    ("name", "ways", "laws"),
    [
        ("tcp", ["forward", "forward"], {"cubic"}),
        ("reverse", ["reverse"], {"reno"}),
        ("bidir", ["forward", "reverse"], {"cubic"}),
        ("server", ["forward"], {"tcp"}),
        ("udp", ["forward"], {"udp"}),
        ("udp_reverse", ["reverse"], {"udp"}),
    ],
)
def test_who_sends_and_by_which_law(name: str, ways: list[str], laws: set[str]) -> None:
    flows = iperf3.read(DATA / f"{name}.json").summary["flows"]
    assert [flow["direction"] for flow in flows] == ways
    assert {flow["law"] for flow in flows} == laws


@pytest.mark.parametrize(
    ("name", "goodput_bps", "delivered_bytes"),
    [
        # One datagram of 172 came twice or late.
        ("negative-lost", 2 * 124528 * 8 / 2, 249056),
        # The receiver's own report, in the client's file: nothing came.
        ("receiver-zero", 0.0, 0),
        # The last interval has no length and no bytes.
        ("zero-interval", 250000 * 8 / 2.0001, 250000),
        # 124,528 bytes were written in 21.6 ms, 15,928 came in 51.7 ms.
        ("short_client", 15928 * 8 / 0.051683, 15928),
        # 1819 datagrams came, 93 of them for the second time.
        ("twice_server", 1726 * 1448 * 8 / 2.020269, 1726 * 1448),
        # The test was below one interval, in which nothing came.
        ("udp_nothing_server", 0.0, 0),
    ],
)
def test_goodput_is_what_the_receiver_counted(
    tmp_path: Path, name: str, goodput_bps: float, delivered_bytes: int
) -> None:
    out = tmp_path / "measured"
    file = str(DATA / f"{name}.json")
    assert cli.call(["import", "iperf3", file, "--out", str(out)]) == cli.OK
    (flow,) = json.loads((out / "summary.json").read_text())["flows"]
    assert flow["goodput_bps"] == pytest.approx(goodput_bps, rel=1e-4)
    assert flow["delivered_bytes"] == delivered_bytes


def test_duplicates_beside_losses_give_a_range(tmp_path: Path, lfn: Lfn) -> None:
    """Of 1725 datagrams 3 % were lost; 1756 came, 89 of them late or twice; iperf3 says 0 lost."""
    file = DATA / "twice_lost_server.json"
    (flow,) = iperf3.read(file).summary["flows"]
    least, most = flow["least_goodput_bps"], flow["goodput_bps"]
    assert flow["lost_packets"] == 0
    assert least < 0.97 * 1725 * 1448 * 8 / 2.023804 < most
    assert "9.874 Mbit/s, or from 9.542: datagrams came late or twice" in lfn(
        "import", "iperf3", file, "--out", tmp_path / "out"
    )


def test_a_stream_that_is_stuck_counts_in_jains_index(tmp_path: Path) -> None:
    sample = said("tcp")
    sample["end"]["streams"][1]["receiver"]["bytes"] = 0
    (tmp_path / "x.json").write_text(json.dumps(sample))
    assert iperf3.read(tmp_path / "x.json").summary["jain"] == pytest.approx(0.5)


PAIRS = sorted(file.stem.removesuffix("_client") for file in DATA.glob("*_client.json"))


@pytest.mark.parametrize(
    "name", [name for name in PAIRS if (DATA / f"{name}_server.json").exists()]
)
def test_both_ends_of_a_test_say_the_same(name: str) -> None:
    """A server does not learn what its client received, so it does not say it."""
    at_client, at_server = (
        iperf3.read(DATA / f"{name}_{end}.json").summary["flows"] for end in ("client", "server")
    )
    assert len(at_client) == len(at_server) > 0
    for mine, theirs in zip(at_client, at_server, strict=True):
        assert mine["direction"] == theirs["direction"]
        if theirs["direction"] == "reverse":
            assert theirs["goodput_bps"] is theirs["delivered_bytes"] is None
            assert theirs["written_bytes"] >= mine["delivered_bytes"] > 0
        else:
            # Of several streams of UDP the client knows the sum of what came.
            error = 1e-3 if name == "udp_two" else 1e-4
            assert mine["goodput_bps"] == pytest.approx(theirs["goodput_bps"], rel=error)
            assert mine["delivered_bytes"] == pytest.approx(theirs["delivered_bytes"], rel=error)
            assert mine["written_bytes"] >= mine["delivered_bytes"]


def test_goodput_that_is_not_told_is_not_drawn(tmp_path: Path) -> None:
    server = tmp_path / "server"
    arguments = ["import", "iperf3", str(DATA / "both_ways_server.json"), "--out", str(server)]
    assert cli.call(arguments) == cli.OK
    figure = draw.draw((server,), draw.Request(kind="bar", y="goodput_bps")).figure
    (bar,) = (patch for patch in figure.axes[0].patches if np.isfinite(patch.get_height()))
    told = [
        flow["goodput_bps"] for flow in json.loads((server / "summary.json").read_text())["flows"]
    ]
    assert told[2:] == [None, None]
    assert bar.get_height() * 1e6 == pytest.approx(told[0] + told[1])


def test_systems_without_a_number_write_minus_one(tmp_path: Path) -> None:
    """FreeBSD has no path MTU in its TCP_INFO, and older systems no window of the receiver."""
    sample = said("tcp")
    for interval in sample["intervals"]:
        for stream in interval["streams"]:
            stream |= {"pmtu": -1, "snd_wnd": -1}
    (tmp_path / "x.json").write_text(json.dumps(sample))
    measured = iperf3.read(tmp_path / "x.json")
    assert measured.summary["flows"][0]["offered_window_bytes"] is None
    assert measured.summary["flows"][0]["goodput_bps"] > 0


def test_bytes_of_an_interval_without_length_belong_to_the_one_before(tmp_path: Path) -> None:
    sample = said("zero-interval")
    sample["intervals"][2]["streams"][0]["bytes"] = 1000
    (tmp_path / "x.json").write_text(json.dumps(sample))
    measured = iperf3.read(tmp_path / "x.json")
    assert measured.flows["delivered_bytes"].to_list() == [125000, 251000]
    assert measured.goodput["goodput_bps"][1] == pytest.approx(126000 * 8 / 1.0001)


def test_a_receiver_knows_no_window() -> None:
    flows = iperf3.read(DATA / "reverse.json").flows
    assert flows["cwnd_seg"].null_count() == flows.height == 4
    assert flows["retransmits"].null_count() == 4


def test_udp_counts_what_arrived() -> None:
    measured = iperf3.read(DATA / "udp.json").summary["flows"][0]
    end = said("udp")["end"]
    assert measured["lost_packets"] == end["sum"]["lost_packets"] > 0
    arrived = end["sum"]["packets"] - end["sum"]["lost_packets"]
    assert measured["delivered_bytes"] == pytest.approx(arrived * 1400, rel=1e-3)
    assert measured["jitter_s"] == pytest.approx(end["sum"]["jitter_ms"] / 1e3)


def test_omitted_seconds_are_left_out() -> None:
    """iperf3 3.12 gives the first interval after them a rate of a half."""
    measured = iperf3.read(DATA / "omit.json")
    assert measured.flows["t_s"][0] == pytest.approx(0.5, abs=0.001)
    assert measured.goodput["goodput_bps"].min() > 90e6  # type: ignore[operator]
    end = said("omit")["end"]["streams"][0]
    assert measured.flows["delivered_bytes"][-1] == end["sender"]["bytes"]
    assert measured.summary["iperf3"]["omitted_s"] == 1


def test_a_part_of_a_file_begins_where_its_first_interval_does(tmp_path: Path) -> None:
    sample = said("tcp")
    sample["intervals"] = sample["intervals"][2:]
    file = tmp_path / "later.json"
    file.write_text(json.dumps(sample))
    part, whole = iperf3.read(file), iperf3.read(DATA / "tcp.json")
    begin_s = sample["intervals"][0]["streams"][0]["start"]
    assert part.summary["flows"][0]["start_s"] == begin_s > 0.5
    assert part.goodput.equals(whole.goodput.filter(pl.col("t_s") > begin_s + 0.01))


def test_the_segment_size_divides_every_window(tmp_path: Path) -> None:
    def with_mtu(mtu: int, windows: list[int]) -> list[float | None]:
        sample = said("tcp")
        for interval, window in zip(sample["intervals"], windows, strict=False):
            interval["streams"] = [interval["streams"][0] | {"snd_cwnd": window, "pmtu": mtu}]
        sample["intervals"] = sample["intervals"][: len(windows)]
        (tmp_path / "x.json").write_text(json.dumps(sample))
        return iperf3.read(tmp_path / "x.json").flows["cwnd_seg"].to_list()

    assert with_mtu(65535, [14 * 65483, 12 * 65483]) == [14.0, 12.0]  # loopback
    assert with_mtu(9000, [3 * 8960]) == [3.0]  # without timestamps
    assert with_mtu(1500, [5 * 1428]) == [5.0]  # IPv6
    assert with_mtu(1500, [1448, 1000]) == [None, None]


def test_versions_before_3_7_do_not_say_who_sends(tmp_path: Path) -> None:
    for name, way in (("tcp", "forward"), ("reverse", "reverse")):
        sample = said(name)
        for interval in sample["intervals"]:
            for stream in interval["streams"]:
                del stream["sender"]
        (tmp_path / "old.json").write_text(json.dumps(sample))
        flows = iperf3.read(tmp_path / "old.json").summary["flows"]
        assert {flow["direction"] for flow in flows} == {way}


def test_a_measured_flow_is_drawn_beside_a_simulated_one(
    results: Results, tmp_path: Path, lfn: Lfn
) -> None:
    measured = tmp_path / "measured"
    arguments = ["import", "iperf3", str(DATA / "tcp.json"), "--out", str(measured)]
    assert lfn(*arguments).splitlines() == [
        "flow 0  cubic  forward  49.86 Mbit/s",
        "flow 1  cubic  forward  43.96 Mbit/s",
        str(measured),
    ]
    request = draw.Request(y="goodput_bps", where=("law=cubic", "seed=0,1"))
    figure = draw.draw((results.root, measured), request).figure
    (axes,) = figure.axes
    assert [len(line.get_xdata()) for line in axes.lines] == [6, 6, 8, 8]
    assert {line.get_color() for line in axes.lines} == {law("cubic").color}
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [f"cubic, {results.root.name}", "cubic, measured"]
    # The same analysis reads both: the columns of a simulated run come first.
    simulated = results.runs[0].table("flows").schema
    stored = pl.read_parquet(measured / "flows.parquet").schema
    assert list(stored.items())[: len(simulated)] == list(simulated.items())
    assert cli.call(["plot", str(results.root), str(measured), "--kind", "bar"]) == cli.OK


def test_a_measurement_that_changed_is_not_read(tmp_path: Path) -> None:
    """It says by what it was stored and what its files hold."""
    measured = tmp_path / "measured"
    arguments = ["import", "iperf3", str(DATA / "tcp.json"), "--out", str(measured)]
    assert cli.call(arguments) == cli.OK
    said = json.loads((measured / "provenance.json").read_text())
    assert set(said["files"]) == {"flows.parquet", "goodput.parquet", "summary.json"}
    whole = hashlib.sha256((DATA / "tcp.json").read_bytes()).hexdigest()
    assert said["hash"] == whole[:16]
    assert (
        said["files"]["flows.parquet"]
        == hashlib.sha256((measured / "flows.parquet").read_bytes()).hexdigest()
    )

    def content(file: Path) -> object:
        if file.name != "provenance.json":
            return file.read_bytes()
        # It says when it was written, and has the hash of what it says.
        changes = ("finished", integrity.SEAL)
        return {
            key: value for key, value in json.loads(file.read_text()).items() if key not in changes
        }

    for name in (*said["files"], "provenance.json"):
        file = measured / name
        wanted = content(file)
        before = file.read_bytes()
        at = len(before) // 2
        file.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
        with pytest.raises((StoreError, UsageError)):
            draw.draw((measured,), draw.Request(y="goodput_bps"))
        # The same command makes it good again.
        assert cli.call(arguments) == cli.OK
        assert content(file) == wanted
        draw.draw((measured,), draw.Request(y="goodput_bps"))


def without(*path: Any) -> Callable[[str], str]:
    return replaced(*path)


def replaced(*path: Any, by: Any = ...) -> Callable[[str], str]:
    def change(text: str) -> str:
        root = json.loads(text)
        at = root
        for key in path[:-1]:
            at = at[key]
        if by is ...:
            del at[path[-1]]
        else:
            at[path[-1]] = by
        return json.dumps(root)

    return change


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda _: "", ":1: not JSON, or incomplete: Expecting value"),
        (lambda _: "[ ID] Interval  Transfer\n", ":1: not JSON"),
        (lambda _: "[]", ": not an object"),
        (lambda text: text + text, "one object is allowed"),
        (lambda text: text[: len(text) // 8], ": not JSON, or incomplete: "),
        (lambda text: text[: len(text) // 2] + "}]\n" * 3, ": not JSON, or incomplete: "),
        (without("start"), ": start: missing"),
        (without("start", "test_start", "protocol"), ": start.test_start.protocol: missing"),
        (
            replaced("start", "test_start", "protocol", by="SCTP"),
            "protocol: SCTP; allowed: TCP, UDP",
        ),
        (without("intervals"), ": intervals: missing"),
        (replaced("intervals", by=[]), ": intervals: no interval was measured"),
        (replaced("intervals", by={}), ": intervals: {}; allowed: a list"),
        (without("intervals", 3, "streams"), ": intervals[3].streams: missing"),
        (
            without("intervals", 3, "streams", 1, "bytes"),
            ": intervals[3].streams[1].bytes: missing",
        ),
        (
            replaced("intervals", 3, "streams", 1, "bytes", by="many"),
            ': intervals[3].streams[1].bytes: "many"; allowed: a number of at least 0',
        ),
        (replaced("intervals", 0, "streams", 0, "rtt", by=-1), "rtt: -1; allowed: a number"),
        (
            replaced("intervals", 0, "streams", 0, by=7),
            "intervals[0].streams[0]: 7; allowed: an obj",
        ),
        (
            replaced("intervals", 3, "streams", 1, "end", by=0.1),
            "intervals[3].streams[1].end: 0.1; allowed: more than 0.75",
        ),
        (without("end"), ": end: missing"),
        (
            without("end", "streams", 0, "sender", "socket"),
            ": end.streams[0].sender.socket: missing",
        ),
        (replaced("end", "streams", 0, by=[]), ": end.streams[0]: []; allowed: an object"),
    ],
)
def test_bad_files_are_named_with_the_key(
    tmp_path: Path, lfn: Lfn, change: Callable[[str], str], where: str
) -> None:
    file = tmp_path / "bad.json"
    file.write_text(change((DATA / "tcp.json").read_text()))
    err = lfn.refuses("import", "iperf3", file, "--out", tmp_path / "out")
    assert err.startswith(f"lfn: {file}:")
    assert where in err
    assert not (tmp_path / "out").exists()


def test_a_file_of_any_encoding_of_json_is_read(tmp_path: Path) -> None:
    text = (DATA / "tcp.json").read_text()
    wanted = iperf3.read(DATA / "tcp.json").flows
    for encoding in ("utf-8-sig", "utf-16"):  # as PowerShell writes them
        (tmp_path / "x.json").write_text(text, encoding=encoding)
        assert iperf3.read(tmp_path / "x.json").flows.equals(wanted)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda _: "[" * 1_000_000, "too deep to read"),
        (lambda _: '{"a":' * 100_000, "too deep to read"),
        (lambda _: "[" + "{}," * 3_000_000 + "{}]", "more than 2,000,000 objects and lists"),
        (lambda text: text.replace('"rtt":', '"rtt": NaN, "x":'), "rtt: NaN; allowed: a number"),
        (
            lambda text: text.replace('"rtt":', '"rtt": Infinity, "x":'),
            "rtt: Infinity; allowed: a number",
        ),
        (
            lambda text: text.replace('"rtt":', f'"rtt": {10**400}, "x":'),
            "rtt: 1000000000000000000000",
        ),
        (
            lambda text: text.replace('"rtt":', f'"rtt": 1{"0" * 5000}, "x":'),
            "a number with thousands of digits",
        ),
        (
            lambda text: text.replace('"bytes":', '"bytes": 1e18, "x":'),
            "bytes: 1e+18; allowed: at most 1e+18 in all",
        ),
        (
            lambda text: replaced("intervals", by=[])(
                replaced("error", by="\x1b[2Jno\nroute")(text)
            ),
            "error: \\u001b[2Jno\\nroute",
        ),
        (
            replaced("end", "sender_tcp_congestion", by="\x1b[31m\ud800"),
            'congestion: "\\u001b[31m\\ud800"; allowed: a name of up to 32 letters',
        ),
        (replaced("start", "timestamp", by=[1]), "start.timestamp: [1]; allowed: an object"),
        (
            lambda _: '{"event":"start","data":{}}\n{"event":"end","data":{}}\n',
            ": start.test_start: missing; allowed: the output of one test of iperf3 -J",
        ),
        (lambda _: '{"event":"start","data":{}}\n' * 2, ":2: another test begins; allowed: the"),
        (
            lambda _: '{"event":"start","data":{}}\n{"event":\n{"event":"end"}\n',
            ':2: no event of iperf3 --json-stream: "{\\"event\\":"',
        ),
        (lambda _: '{"event":7}\n[]\n', ":2: no event of iperf3 --json-stream"),
        (
            lambda _: '{"event":"start","data":{}}\n{"event":"error","data":"no\\nroute"}\n',
            ": iperf3 ended with an error: no\\nroute",
        ),
        (replaced("intervals", by=[]), ": intervals: no interval was measured"),
    ],
)
def test_hostile_files_are_refused_on_one_line(
    tmp_path: Path, lfn: Lfn, change: Callable[[str], str], where: str
) -> None:
    file = tmp_path / "bad.json"
    file.write_text(change((DATA / "tcp.json").read_text()))
    err = lfn.refuses("import", "iperf3", file, "--out", tmp_path / "out")
    assert where in err
    assert "\x1b" not in err
    assert not (tmp_path / "out").exists()


ODD: list[Any] = [None, True, -1, 0, 1, 0.5, 1e-9, 1e300, -1e300, math.nan, math.inf, 10**30]
ODD += ["x", "", [], {}, [1], {"a": 1}, "\x1b[1m", "\ud800"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Each value in a file, but the file."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


@pytest.mark.parametrize("seed", range(4))
def test_any_change_of_a_file_is_read_or_refused_on_one_line(tmp_path: Path, seed: int) -> None:
    draw, read = random.Random(seed), 0
    refused: list[str] = []
    files = sorted(set(DATA.rglob("*.json")) - {DATA / "error.json"})
    for _ in range(150):
        sample = json.loads(draw.choice(files).read_text())
        for _ in range(draw.choice((1, 1, 2, 4))):
            *path, last = draw.choice(list(places(sample)))
            at = sample
            for key in path:
                at = at[key]
            if draw.random() < 0.25:
                del at[last]
            else:
                at[last] = draw.choice(ODD)
        file = tmp_path / "x.json"
        file.write_text(json.dumps(sample))
        try:
            measurement = iperf3.read(file)
            store(measurement, tmp_path / "out")
            read += 1
            path = fit(advise.measured(measurement, "x"))
            Scenario.from_toml(path.scenario()).check()
        except LabError as error:
            refused.append(str(error))
    assert read > 50
    assert len(refused) > 30
    assert all(said.isprintable() for said in refused)


def test_what_never_ends_is_not_read_whole(tmp_path: Path, lfn: Lfn) -> None:
    large = tmp_path / "large.json"
    with large.open("wb") as opened:
        opened.truncate(1 << 31)
    for file, wrong in (
        (Path("/dev/zero"), "more than 64 MiB"),
        (large, "2,048 MiB; allowed: up to 64 MiB"),
    ):
        for command in (["import", "iperf3", str(file)], ["advise", "--iperf3", str(file)]):
            assert wrong in lfn.refuses(*command, "--out", tmp_path / "out")


def as_stream(name: str) -> list[str]:
    """A file of ``-J`` as the lines that --json-stream (from 3.17 on) writes of the same test."""
    root = said(name)
    events = [
        ("start", root["start"]),
        *(("interval", interval) for interval in root["intervals"]),
        ("end", root["end"]),
    ]
    return [json.dumps({"event": event, "data": data}) + "\n" for event, data in events]


NAMES = sorted(path.stem for path in DATA.glob("*.json") if path.stem != "error")


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_of_events_is_the_same_test(tmp_path: Path, name: str) -> None:
    file = tmp_path / f"{name}.json"
    file.write_text("".join(as_stream(name)))
    streamed, whole = iperf3.read(file), iperf3.read(DATA / f"{name}.json")
    assert streamed.flows.equals(whole.flows)
    assert streamed.goodput.equals(whole.goodput)
    assert {**streamed.summary, "hash": ""} == {**whole.summary, "hash": ""}


@pytest.mark.parametrize("name", ["tcp", "udp", "both_ways_server", "reverse_client"])
def test_the_whole_intervals_before_a_cut_are_read(tmp_path: Path, lfn: Lfn, name: str) -> None:
    """Wherever a file ends, its intervals are those of the whole file, and it has no totals."""
    text, stream = (DATA / f"{name}.json").read_text(), "".join(as_stream(name))
    whole = iperf3.read(DATA / f"{name}.json").flows
    file, read, refused = tmp_path / "cut.json", set(), []
    for source in (text, stream):
        for part in range(1, 60):
            file.write_text(source[: len(source) * part // 60])
            try:
                found = iperf3.read(file)
            except UsageError as error:
                refused.append(str(error))
                continue
            read.add(found.flows.height)
            times = found.flows["t_s"].unique()
            assert found.flows.equals(whole.filter(pl.col("t_s").is_in(times.implode())))
            (note,) = found.summary["notes"]
            assert "The file is cut" in note
    assert read
    assert all(error.startswith(f"{file}:") for error in refused)
    assert "The file is cut in line" in lfn("import", "iperf3", file, "--out", tmp_path / "out")
    if name == "tcp":
        err = lfn.refuses("advise", "--iperf3", file)
        assert "The file is cut in line" in err
        assert err.rstrip().endswith("no totals. Take a whole file")


def test_a_test_that_ended_with_an_error_has_its_intervals(tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "ended.json"
    secret = "unable to receive from 192.0.2.7"
    file.write_text(replaced("error", by=secret)((DATA / "tcp.json").read_text()))
    assert iperf3.read(file).summary["iperf3"]["error"] == secret
    printed = lfn("import", "iperf3", file, "--out", tmp_path / "out", "--anonymous")
    assert "iperf3 ended with an error: its intervals are read, and it has no totals." in printed
    assert b"192.0.2" not in b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())


def test_a_zero_that_is_reported_is_no_missing_value(tmp_path: Path) -> None:
    """snd_wnd of 0 is a closed window, rtt of 0 is below a microsecond; -1 and absence are null."""
    root = said("tcp")
    ticks = [interval["streams"][0] for interval in root["intervals"]]
    ticks[0] |= {"snd_wnd": 0, "rtt": 0, "retransmits": 0}
    ticks[1] |= {"snd_wnd": -1}
    for key in ("snd_wnd", "rtt", "retransmits", "snd_cwnd"):
        del ticks[2][key]
    file = tmp_path / "zeros.json"
    file.write_text(json.dumps(root))
    table = iperf3.read(file).flows.filter(pl.col("flow") == 0)
    assert table["offered_window_bytes"].to_list()[:3] == [0, None, None]
    assert table["srtt_s"].to_list()[::2][:2] == [0.0, None]
    assert table["retransmits"].to_list()[::2][:2] == [0, None]
    assert table["cwnd_seg"][2] is None
    assert table["offered_window_bytes"][3] == ticks[3]["snd_wnd"]


def test_an_anonymous_result_names_no_machine(tmp_path: Path, lfn: Lfn) -> None:
    """Not in its files, nor in its page."""
    file = tmp_path / "from-10.0.1.2.json"
    file.write_text((DATA / "tcp.json").read_text())
    lfn("import", "iperf3", file, "--anonymous", "--out", tmp_path / "out")
    lfn("report", tmp_path / "out")
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())
    for secret in ("10.0.1.2", "10.0.2.2", "42982", "from-10", "fc-v669", platform.node()):
        assert secret.encode() not in written


def test_a_measurement_is_a_row_beside_simulated_ones(
    results: Results, tmp_path: Path, lfn: Lfn
) -> None:
    """Of a table, of the report, and in Python."""
    for name in ("before", "after"):
        lfn("import", "iperf3", DATA / "tcp.json", "--out", tmp_path / name)
    before, after = tmp_path / "before", tmp_path / "after"
    assert "measured" in (lfn("report", before) and (before / "report.html").read_text())
    (row,) = Loaded.load(before).rows()
    assert (row["law"], row["flows"], math.isnan(row["utilization"])) == ("cubic", 2, True)
    rows = lfn("table", before, results.root, "--csv").splitlines()
    assert rows[0].startswith("result,")
    assert rows[1].startswith("before,cubic,")
    assert len(rows) == 2 + len(results.cases.counts())
    differ = json.loads(lfn("table", before, after, "--baseline", "result=before", "--json"))
    assert [(row["result"], row["goodput_bps_difference"]) for row in differ] == [("after", 0.0)]


def test_iperf3_reports_its_own_error() -> None:
    with pytest.raises(UsageError, match="unable to connect to server: Connection refused"):
        iperf3.read(DATA / "error.json")


def test_files_and_directories_that_will_not_do(results: Results, tmp_path: Path, lfn: Lfn) -> None:
    good = str(DATA / "tcp.json")
    (tmp_path / "file").touch()
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    for arguments, code in (
        ([str(tmp_path / "none.json")], cli.STORE),
        ([str(tmp_path / "binary.json")], cli.USAGE),
        ([good, "--out", str(tmp_path / "file")], cli.STORE),
        ([good, "--out", str(results.root)], cli.USAGE),
    ):
        assert lfn.refuses("import", "iperf3", *arguments, code=code)
