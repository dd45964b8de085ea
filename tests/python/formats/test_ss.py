"""Does a log of ss become what ss says? The logs are real, of iproute2 6.1.

They are of iperf3 over `lfn shell --rate 20Mbit/s --rtt 40ms`, with a call of ss every 0.1 s.
stamped.log: two streams, a line of date before each call. bare.log: `-w 60K`, ss -tinHO, no times.
reverse.log: `iperf3 -R`, ISO times, ss state established. prefixed.log: ss -tinemoOH, each line
with the time of the day. Lines of other versions in this file are written by hand.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from lfnlab.errors import LabError, UsageError
from lfnlab.formats import ss

if TYPE_CHECKING:
    from collections.abc import Callable

    from command import Lfn

DATA = Path(__file__).parents[1] / "data" / "ss"
HEAD = "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n"
ENDS = "10.0.0.1:5201 10.0.0.2:4321"
# Old versions wrote no snd_wnd, and rates with a unit where ss had no -n.
OLD = "cubic wscale:7,7 rto:204 rtt:3.5/1.75 mss:1448 cwnd:20 send 66.2Mbps delivery_rate 1.5Gbps"


def log(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "log"
    file.write_text(text)
    return file


def token(text: str, key: str) -> list[float]:
    """The numbers that follow a word of ss in a log, in its order."""
    found = [word.partition(":")[2] for word in text.split() if word.startswith(f"{key}:")]
    return [float(value.partition("/")[0]) for value in found]


@pytest.mark.parametrize(
    ("name", "every_s", "law"),
    [("stamped", None, "bbr"), ("bare", 0.1, "bbr"), ("prefixed", None, "bbr")],
)
def test_samples_are_the_numbers_of_ss(name: str, every_s: float | None, law: str) -> None:
    file = DATA / f"{name}.log"
    # A SYN-SENT socket has no numbers of a transfer.
    text = "\n".join(line for line in file.read_text().splitlines() if "rtt:" in line)
    measured = ss.read(file, every_s=every_s)
    table = measured.flows
    assert table.height == len(token(text, "rtt"))
    for column, key, scale in (
        ("srtt_s", "rtt", 1e3),
        ("min_rtt_s", "minrtt", 1e3),
        ("unsent_bytes", "notsent", 1.0),
    ):
        values = (table[column] * scale).drop_nulls().to_list()
        assert sorted(values) == pytest.approx(sorted(token(text, key))), column
    sender = max(measured.summary["flows"], key=lambda flow: flow["goodput_bps"])
    assert (sender["law"], sender["direction"]) == (law, "forward")
    own = table.filter(pl.col("flow") == sender["id"])
    assert set(own["cwnd_seg"].drop_nulls()) <= set(token(text, "cwnd"))
    assert own["delivered_bytes"].is_sorted()
    assert own["retransmits"].drop_nulls().is_sorted()
    assert sender["goodput_bps"] == pytest.approx(20e6, rel=0.6)


def test_a_threshold_that_ss_leaves_out_is_null_and_the_result_says_so() -> None:
    measured = ss.read(DATA / "stamped.log")
    thresholds = measured.flows["ssthresh_seg"]
    assert 0 < thresholds.null_count() < thresholds.len()
    (note,) = measured.summary["notes"]
    assert "ss leaves out one of 65,535 or more, so this does not mean that nothing" in note
    # Other zeros that it leaves out are not made up, either.
    early = measured.flows.filter(pl.col("retransmits").is_null())
    assert early.height > 0
    assert 0 not in measured.flows["retransmits"].to_list()


def test_the_receivers_window_is_in_every_sample(tmp_path: Path, lfn: Lfn) -> None:
    """`-w 60K`: the window of 65,535 bytes limits the transfer."""
    out = tmp_path / "out"
    printed = lfn("import", "ss", DATA / "bare.log", "--every", "100ms", "--out", out)
    assert "198.18.0.2:41410 to 198.18.0.1:5201" in printed
    table = pl.read_parquet(out / "flows.parquet").filter(pl.col("flow") == 1)
    assert set(table["offered_window_bytes"][1:]) == {65535}
    assert table["rwnd_limited_s"].drop_nulls()[-1] > 0.3 * table["busy_s"][-1]
    assert table["app_limited"].to_list()[:3] == [1, 1, 0]
    assert table["state"].null_count() == table.height


def test_of_a_receiving_socket_the_received_bytes_count() -> None:
    flow = max(ss.read(DATA / "reverse.log").summary["flows"], key=lambda one: one["goodput_bps"])
    assert flow["direction"] == "reverse"
    assert (flow["sender"], flow["receiver"]) == ("198.18.0.1:5201", "198.18.0.2:41430")
    assert flow["goodput_bps"] == pytest.approx(20e6, rel=0.2)
    assert (flow["mean_cwnd_segments"], flow["retransmits"]) == (None, None)


@pytest.mark.parametrize(
    ("time", "later", "seconds"),
    [
        ("1700000000.5", "1700000001.25", 0.75),
        ("1700000000500", "1700000001250", 0.75),
        ("1700000000500000000", "1700000001250000000", 0.75),
        ("0.100000", "0.850000", 0.75),
        ("2026-11-29T01:02:03,5+00:00", "2026-11-29T02:02:04,25+01:00", 0.75),
        ("2026-11-29 23:59:59.5", "2026-11-30 00:00:00.25", 0.75),
        ("23:59:59.5", "00:00:00.25", 0.75),
        ("Sun Nov 29 01:59:59 UTC 2026", "Sun Nov 29 02:00:00 UTC 2026", 1.0),
        ("Sun 29 Nov 2026 12:59:59 PM UTC", "Sun 29 Nov 2026 01:00:00 PM UTC", 1.0),
        ("Nov 29 01:02:03", "Nov 29 01:02:05", 2.0),
        ("=== 1700000000.5 ===", "=== 1700000001.5 ===", 1.0),
    ],
)
@pytest.mark.parametrize("in_front", [False, True])
def test_times_of_many_kinds(
    tmp_path: Path, time: str, later: str, seconds: float, *, in_front: bool
) -> None:
    between = " " if in_front else "\n"
    calls = [f"{at}{between}ESTAB 0 0 {ENDS} {OLD}\n" for at in (time, later)]
    measured = ss.read(log(tmp_path, "".join(calls)))
    assert measured.flows["t_s"].to_list() == pytest.approx([0.0, seconds])


@pytest.mark.parametrize("headers", [False, True])
@pytest.mark.parametrize("one_line", [False, True])
@pytest.mark.parametrize("state", ["ESTAB ", ""])
def test_layouts_of_ss(tmp_path: Path, state: str, *, headers: bool, one_line: bool) -> None:
    """-H, -O, a filter by one state; two sockets, of which one is away in the second call."""
    other = "[2001:db8::1]:80 [2001:db8::2]:5555"
    join = " " if one_line else "\n\t "
    line = f'{state}0      120   {{}}  users:(("a b",pid=7,fd=3)){join}{OLD} bytes_acked:{{}}\n'
    calls = [line.format(ENDS, 1001) + line.format(other, 11), line.format(ENDS, 3001)]
    calls.append(line.format(ENDS, 5001) + line.format(other, 2011))
    text = "".join((HEAD if headers else "") + call for call in calls)
    measured = ss.read(log(tmp_path, text), every_s=0.5)
    first, second = (measured.flows.filter(pl.col("flow") == flow) for flow in (0, 1))
    assert first["t_s"].to_list() == [0.0, 0.5, 1.0]
    assert first["delivered_bytes"].to_list() == [1000, 3000, 5000]
    assert second["t_s"].to_list() == [0.0, 1.0]
    assert first["delivery_bps"].to_list() == [1.5e9] * 3
    assert first["offered_window_bytes"].null_count() == 3
    assert [flow["goodput_bps"] for flow in measured.summary["flows"]] == [32000.0, 16000.0]


@pytest.mark.parametrize(
    ("words", "law"),
    [
        ("ts sack cubic wscale:7,7 rto:204", "cubic"),
        ("ts usec_ts sack ecn ecnseen fastopen_a new lfn_htcp_be rto:204", "lfn_htcp_be"),
        ("dctcp wscale:7,7 rto:204 dctcp:(ce_state:0,alpha:1024) send 1bps tcp-ulp-mptcp", "dctcp"),
        ("wscale:7,7 rto:204", "tcp"),
    ],
)
def test_the_law_stands_before_the_numbers(tmp_path: Path, words: str, law: str) -> None:
    measured = ss.read(log(tmp_path, f"ESTAB 0 0 {ENDS} {words} rtt:1/1 cwnd:10\n"))
    assert measured.summary["flows"][0]["law"] == law


def test_a_connection_that_begins_again_is_another_flow(tmp_path: Path) -> None:
    call = "ESTAB 0 0 " + ENDS + " " + OLD + " bytes_acked:{}\n"
    text = "".join(f"{t}.0\n" + call.format(acked) for t, acked in ((1, 11), (2, 21), (3, 6)))
    measured = ss.read(log(tmp_path, text))
    assert [flow["delivered_bytes"] for flow in measured.summary["flows"]] == [10, 0]


def test_bytes_in_flight_are_those_that_linux_counts(tmp_path: Path) -> None:
    """Sent and not acknowledged, less those of SACK and lost ones, with those sent again."""
    info = f"{OLD} unacked:40 sacked:10 lost:5 retrans:3/17 fackets:9 reordering:8"
    measured = ss.read(log(tmp_path, f"ESTAB 0 0 {ENDS} {info}\n"))
    assert measured.flows["inflight_seg"].to_list() == [28]
    assert measured.flows["retransmits"].to_list() == [17]
    assert math.isclose(measured.flows["srtt_s"][0], 0.0035)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", ":1: no socket with its numbers"),
        ("hello\n", ':1: no socket with its numbers: "hello"'),
        (HEAD, ":1: no socket with its numbers"),
        ("\x1b[2J\n", ':1: no socket with its numbers: "?[2J"'),
        ("x\0y\n", ":1: no text"),
        ("a" * 70_000 + "\n", ":1: a line of more than 65,536 bytes"),
        (f"ESTAB 0 0 {ENDS} {OLD}\n" * 2, "ss was called 2 times and the log has no times; write"),
        (f"ESTAB 0 0 {ENDS} cwnd:10 rtt:nan/2\n", ':1: rtt: "nan/2" is no number of ss'),
        (f"ESTAB 0 0 {ENDS} cwnd:{'9' * 30}\n", ":1: cwnd:"),
        (f"ESTAB 0 0 {ENDS} cwnd:9 pacing_rate fast\n", ':1: pacing_rate: "fast" is no number'),
        (f"2.0\nESTAB 0 0 {ENDS} {OLD}\n1.0\n", ":3: the time goes back by 1 s"),
        (f"ESTAB 0 0 {ENDS} {OLD}\n1.5\n", ":2: the first time, after samples without one"),
    ],
)
def test_bad_logs_are_refused_on_one_line(tmp_path: Path, lfn: Lfn, text: str, where: str) -> None:
    err = lfn.refuses("import", "ss", log(tmp_path, text), "--out", tmp_path / "out")
    assert where in err
    assert not (tmp_path / "out").exists()


def test_a_line_that_is_cut_is_not_read(tmp_path: Path) -> None:
    """Of a log that ends anywhere, the whole samples are those of the whole log."""
    text = (DATA / "stamped.log").read_text()
    whole = ss.read(DATA / "stamped.log").flows
    for end in range(600, 8000, 171):
        found = ss.read(log(tmp_path, text[:end]))
        same = whole.join(found.flows.select("t_s", "flow"), on=["t_s", "flow"], how="semi")
        assert found.flows.select("t_s", "flow", "cwnd_seg", "srtt_s").equals(
            same.select("t_s", "flow", "cwnd_seg", "srtt_s")
        )
        assert any("it is cut" in note for note in found.summary["notes"]) == (
            text[end - 1] != "\n"
        )


def test_times_without_fractions_leave_samples_out(tmp_path: Path) -> None:
    call = f"\nESTAB 0 0 {ENDS} {OLD}\n"
    measured = ss.read(log(tmp_path, "".join(f"170000000{t}{call}" for t in (0, 0, 0, 1, 1))))
    assert measured.flows["t_s"].to_list() == [0.0, 1.0]
    assert any("3 samples have the time of the next one" in n for n in measured.summary["notes"])


def test_an_anonymous_log_names_no_end(tmp_path: Path, lfn: Lfn) -> None:
    out = tmp_path / "out"
    printed = lfn("import", "ss", DATA / "stamped.log", "--anonymous", "--out", out)
    lfn("report", out)
    written = b"".join(path.read_bytes() for path in out.iterdir()) + printed.encode()
    assert not [end for end in (b"198.18", b"5201", b"41386", b"stamped") if end in written]
    assert json.loads((out / "summary.json").read_text())["name"] == "ss"


@pytest.mark.parametrize("seed", range(3))
def test_any_change_of_a_log_is_read_or_refused_on_one_line(tmp_path: Path, seed: int) -> None:
    draw, read = random.Random(seed), 0
    refused: list[str] = []
    changes: list[Callable[[str], str]] = [
        lambda line: line[: draw.randrange(len(line) + 1)],
        lambda line: line + line,
        lambda line: "".join(draw.sample(line, len(line))),
        lambda line: line.replace(":", draw.choice([" ", "::", ":-", ":nan", ":1e9"]), 3),
        lambda _: draw.choice(["", "\x1b[1m", HEAD, "7" * 40, "99:99:99", "2026-13-45T99:99:99"]),
    ]
    for _ in range(80):
        name = draw.choice(["stamped", "bare", "reverse", "prefixed"])
        lines = (DATA / f"{name}.log").read_text().splitlines()
        for _ in range(draw.choice((1, 2, 5))):
            place = draw.randrange(len(lines))
            lines[place] = draw.choice(changes)(lines[place])
        try:
            measured = ss.read(log(tmp_path, "\n".join(lines) + "\n"), every_s=0.1)
            read += measured.flows.height > 0
        except LabError as error:
            refused.append(str(error))
    assert read
    assert refused
    assert all(error.isprintable() for error in refused)


def test_very_many_samples_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ss, "MOST_SAMPLES", 3)
    text = "".join(f"{t}.5\nESTAB 0 0 {ENDS} {OLD}\n" for t in range(5))
    with pytest.raises(UsageError, match="log:8: more than 3 samples; filter with ss dst ADDRESS"):
        ss.read(log(tmp_path, text))


def test_the_limit_of_a_paced_socket_is_told(tmp_path: Path) -> None:
    paced = "cubic rtt:40/1 mss:1448 cwnd:20 bytes_acked:9001 pacing_rate 5774728bps/20000000bps"
    measured = ss.read(log(tmp_path, f"1.5\nESTAB 0 0 {ENDS} {paced}\n"))
    assert measured.flows["pacing_bps"].to_list() == [5_774_728]
    assert measured.summary["flows"][0]["most_pacing_bps"] == 20_000_000
