"""Recorded paths become scenarios whose links have their rates, delays and losses."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import lfnlab
from lfnlab.cli import app
from lfnlab.errors import UsageError
from lfnlab.formats import trace


def simulated(folder: Path, *arguments: str, window: str | None = None) -> lfnlab.Run:
    """One flow over the path that ``lfn import trace`` makes."""
    assert app.call(["import", "trace", *arguments, "--out", str(folder / "made")]) == 0
    path = folder / "made" / "path.toml"
    text = path.read_text(encoding="utf-8")
    if window is not None:
        text = text.replace("[[flow]]", f'[[flow]]\nreceive_window = "{window}"')
    path.write_text(text, encoding="utf-8")
    assert app.call(["run", str(path), "--no-report", "--out", str(folder / "results")]) == 0
    return lfnlab.Results.load(folder / "results").runs[0]


def opportunities(file: Path, packets_in_ms: list[int]) -> None:
    lines = [f"{ms}\n" * count for ms, count in enumerate(packets_in_ms, 1)]
    file.write_text("".join(lines), encoding="utf-8")


def test_the_rtt_follows_the_delays_of_leoreplayer(tmp_path: Path) -> None:
    opportunities(tmp_path / "bw.txt", [8] * 4000)
    delays = [20] * 100 + [35] * 100 + [10] * 200
    (tmp_path / "delay.txt").write_text("\n".join(map(str, delays)), encoding="utf-8")
    files = [str(tmp_path / "bw.txt"), "--delay", str(tmp_path / "delay.txt")]
    run = simulated(tmp_path, *files, window="4 packets")
    flows = run.table("flows")
    for from_s, to_s, rtt_s in ((0.2, 1.0, 0.040), (1.2, 2.0, 0.070), (2.2, 4.0, 0.020)):
        within = flows.filter(pl.col("t_s").is_between(from_s, to_s))["rtt_s"].drop_nulls()
        assert within.len() > 5
        # A packet may wait for the next millisecond of either trace.
        assert (within - rtt_s).min() == pytest.approx(0.001, abs=0.0011)
        assert (within - rtt_s).max() < 0.003
    assert flows["retransmits"].max() == 0  # A shorter delay lets no packet overtake.


def test_a_table_and_opportunities_of_one_rate_have_one_goodput(
    tmp_path: Path,
) -> None:
    opportunities(tmp_path / "bw.txt", [8] * 2000 + [4] * 2000 + [8] * 2000)
    table = "t_s,rate_mbps,rtt_ms\n0,96,40\n2,48,40\n4,96,40\n5,96,40\n"
    (tmp_path / "path.csv").write_text(table, encoding="utf-8")
    goodputs = []
    for arguments in ([str(tmp_path / "bw.txt"), "--rtt", "40ms"], [str(tmp_path / "path.csv")]):
        run = simulated(tmp_path / str(len(goodputs)), *arguments)
        goodputs.append(run.summary["flows"][0]["goodput_bps"])
    assert goodputs[0] == pytest.approx(goodputs[1], rel=0.02)


def test_a_terminals_table_has_losses_and_outages(tmp_path: Path) -> None:
    (tmp_path / "dish.csv").write_text(
        "datetimestamp_utc,pop_ping_drop_rate,pop_ping_latency_ms,downlink_throughput_bps\n"
        "2026-11-29T01:00:00+00:00,0,42,120000000\n"
        "2026-11-29T01:00:01+00:00,0.02,,100000000\n"
        "2026-11-29T01:00:02+00:00,1,38,0\n"
        "2026-11-29T01:00:03+00:00,0,55,90000000\n",
        encoding="utf-8",
    )
    read = trace.read(tmp_path / "dish.csv")
    assert read.seconds == 4
    assert read.delay_s is not None
    assert np.isnan(read.delay_s[1])
    files = trace.scenario(read)
    assert files["forward-loss.csv"] == "time,loss\n1000ms,0.02\n2000ms,0.9999\n3000ms,0\n"
    assert files["forward-delay.csv"] == "time,delay\n2000ms,19ms\n3000ms,27.5ms\n"
    assert files["forward-rate.csv"] == "time,rate\n1000ms,100Mbit/s\n3000ms,90Mbit/s\n"
    text = files["path.toml"]
    assert isinstance(text, str)
    assert text.count("down = true") == text.count("down = false") == 2
    run = simulated(tmp_path, str(tmp_path / "dish.csv"))
    flows = run.table("flows").filter(pl.col("t_s").is_between(2.2, 3.0))
    assert flows["delivered_bytes"].n_unique() == 1


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        ("1\n2\nx\n", {}, 'line 3: "x"'),
        ("5\n2\n", {}, "goes back from 5 to 2 ms"),
        ("0\n0\n", {}, "the last time is 0 ms"),
        ("", {}, "0 lines"),
        ("t,rate_mbps\n1,2\n1,3\n", {}, "line 3, t: the time does not grow"),
        ("t,rate_mbps\n1,2\n2,-3\n", {}, 'line 3, rate_mbps: "-3"'),
        ("t,rate_mbps,loss\n1,2,5\n2,3,0\n", {}, "a loss of 5; allowed: 0 to 1"),
        ("t,rate\n1,2\n", {}, "no column of a rate or a delay"),
        ("rate_mbps\n1\n2\n", {}, "no column of times"),
        ("t,rate_mbps,speed\n1,2,3\n", {"columns": {"rate": "speed"}}, "its unit is not known"),
        ("t,rate_mbps\n1,2\n", {"columns": {"rtt": "ping:ms"}}, 'no column "ping"'),
        ("t,rate_mbps,throughput_kbps\n1,2,3\n", {}, "are each a rate"),
        ("t,rate_gbps\n1,200000\n", {}, "allowed: up to 1e+13 bit/s"),
        ("1\n2\n", {"every_s": 1.0}, "columns are a table's"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, more: dict, says: str) -> None:
    (tmp_path / "file").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=says.replace("+", r"\+")):
        trace.read(tmp_path / "file", **more)


def test_a_missing_quantity_names_its_option(tmp_path: Path) -> None:
    (tmp_path / "rates").write_text("1\n2\n", encoding="utf-8")
    with pytest.raises(UsageError, match="--rtt: no file has delays"):
        trace.scenario(trace.read(tmp_path / "rates"))
    (tmp_path / "delays.csv").write_text("t,rtt_ms\n0,20\n1,30\n", encoding="utf-8")
    with pytest.raises(UsageError, match="--rate: no file has a rate"):
        trace.scenario(trace.read(tmp_path / "delays.csv"))
    with pytest.raises(UsageError, match="--rtt: a file has the delays"):
        trace.scenario(trace.read(tmp_path / "delays.csv"), rate="1Mbit/s", rtt="20ms")
