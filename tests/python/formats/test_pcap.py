"""Files of packet traces: hosts, cuts, and what cannot be written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from packets import BUSY, Trace, captured, traced

from lfnlab.cli import app as cli
from lfnlab.errors import UsageError
from lfnlab.formats import pcap, views

if TYPE_CHECKING:
    from command import Lfn

    from lfnlab import Results


def test_a_host_sees_its_own_times(tmp_path: Path) -> None:
    """Half a round trip from the sender's file to the receiver's, as the table has it."""
    run = captured(tmp_path / "run", BUSY.replace("[background]\nlevel = 1\n", ""))
    packets = pcap.recorded(run).sort("t_ps", maintain_order=True)
    hosts = {
        view: views.of_host(views.with_connections(views.with_shakes(packets)), view).filter(
            pl.col("kind") <= 4
        )
        for view in ("sender", "receiver")
    }
    sent, came = packets.filter(pl.col("flags") >= 32), packets.filter(pl.col("point") == 3)
    assert sum(host.height for host in hosts.values()) == sent.height + came.height
    for view, rows in hosts.items():
        data = rows.filter(pl.col("kind") == 0, pl.col("shake") == 0)
        assert set(data["point"]) == ({0} if view == "sender" else {3})
        assert set(rows.filter(pl.col("kind") == 1)["point"]) == ({3} if view == "sender" else {0})
        assert rows["t_ps"].is_sorted()
        # Timestamps are those of the host that sent: none is from the future.
        assert (rows["clock"] * 10**9 <= rows["t_ps"] + 10**9).all()
        assert (rows["echo"] <= rows["clock"]).all()
    first = {
        view: rows.filter(pl.col("shake") == 1).select("number", "t_ps").sort("number")
        for view, rows in hosts.items()
    }
    one_way_s = (first["receiver"]["t_ps"] - first["sender"]["t_ps"]) / 1e12
    for number, seconds in zip(first["sender"]["number"], one_way_s, strict=True):
        assert seconds == pytest.approx(run.summary["flows"][number]["rtt_s"] / 2, abs=0.5e-3)


def test_a_table_without_hosts_is_as_at_the_queues(
    results: Results, tmp_path: Path, lfn: Lfn
) -> None:
    """Stored runs of an earlier version have none; the command says so."""
    run = tmp_path / "run"
    shutil.copytree(results.runs[0].path, run)
    trace = Trace()
    trace.bulk(20)
    trace.frame().write_parquet(run / "packets.parquet")
    file = tmp_path / "out.pcapng"
    assert "as at the queues. Run it again." in lfn("pcap", run, "-o", file)
    assert "packets were not recorded at hosts" in lfn.err(
        "pcap", run, "-o", file, "--host", "sender"
    )


def test_a_trace_that_was_cut_says_so(tmp_path: Path, lfn: Lfn) -> None:
    run = captured(tmp_path / "run", traced() + "max_rows = 1000\n")
    file = str(tmp_path / "it.pcapng")
    assert cli.call(["pcap", str(tmp_path / "run"), "-o", file]) == cli.OK
    rows = run.summary["captured_rows"]
    assert f"s: 1,000 of {rows:,} rows were recorded" in lfn.said().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--run: several runs; allowed, by key or by seed: "),
        (["--run", "9"], "--run: no such run"),
        (["--run", "KEY"], "has no table packets"),
    ],
)
def test_what_cannot_be_written(
    results: Results, tmp_path: Path, lfn: Lfn, options: list[str], said: str
) -> None:
    options = [results.runs[0].path.name if text == "KEY" else text for text in options]
    arguments = ["pcap", str(results.root), *options, "-o", str(tmp_path / "no.pcapng")]
    assert said in lfn.err(*arguments)
    assert not (tmp_path / "no.pcapng").exists()


def test_columns_and_sizes_are_checked(tmp_path: Path) -> None:
    trace = Trace(headers=47)
    trace.bulk(1)
    with pytest.raises(UsageError, match="bytes - payload_bytes is 47; allowed: one of 40 or 52"):
        pcap.write_pcapng(tmp_path / "no.pcapng", trace.frame())
    with pytest.raises(UsageError, match="packets has no column seq; needed: t_ps, link"):
        pcap.write_pcapng(tmp_path / "no.pcapng", trace.frame().drop("seq"))
    with pytest.raises(UsageError, match="no packet to write"):
        pcap.write_pcapng(tmp_path / "no.pcapng", trace.frame().clear())
