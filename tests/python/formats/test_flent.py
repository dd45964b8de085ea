"""Does a data file of flent become its TCP streams? The files are made here, after flent's
documentation of its format.
"""

from __future__ import annotations

import copy
import gzip
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from lfnlab.errors import LabError
from lfnlab.formats import flent

if TYPE_CHECKING:
    from command import Lfn

SAMPLE: dict[str, Any] = {
    "version": 4,
    "x_values": [0.0, 1.0, 2.0, 3.0, 4.0],
    "results": {
        "Ping (ms) ICMP": [20.0, 20.1, 30.0, 31.0, 20.0],
        "TCP upload::2": [None, 4.0, 4.0, 4.0, None],
        "TCP upload::10": [None, 8.0, 8.0, 10.0, 6.0],
        "TCP upload::10::tcp_cwnd": [None, 10, 20.5, None, 12],
        "TCP upload::10::tcp_rtt": [None, 20.5, 41, None, 22],
        "TCP upload::10::tcp_rtt_var": [None, 1, 1, None, 1],
        "TCP download": [1.0, 1.0, 1.0, 1.0, 1.0],
        "TCP upload sum": [None, 12.0, 12.0, 14.0, 6.0],
        "TCP upload avg": [None, 6.0, 6.0, 7.0, 6.0],
        "TCP totals": [1.0, 13.0, 13.0, 15.0, 7.0],
    },
    "metadata": {
        "NAME": "tcp_nup",
        "STEP_SIZE": 1.0,
        "LOCAL_HOST": "alice",
        "HOSTS": ["192.0.2.7"],
        "SERIES_META": {
            "TCP upload::10": {
                "CONG_CONTROL": "cubic",
                "BYTES_RECVD": 3_900_000,
                "TCP_RETRANSMIT": 17,
                "TCP_MSS": 1448,
                "COMMAND": "netperf -H 192.0.2.7",
            }
        },
    },
    "raw_values": {},
}


def write(tmp_path: Path, root: Any, *, packed: bool = True) -> Path:
    file = tmp_path / ("x.flent.gz" if packed else "x.flent")
    text = json.dumps(root).encode()
    file.write_bytes(gzip.compress(text) if packed else text)
    return file


@pytest.mark.parametrize("packed", [True, False])
def test_streams_are_flows(tmp_path: Path, *, packed: bool) -> None:
    measured = flent.read(write(tmp_path, SAMPLE, packed=packed))
    down, second, tenth = measured.summary["flows"]
    assert [one["direction"] for one in (down, second, tenth)] == ["reverse", "forward", "forward"]
    assert [one["goodput_bps"] for one in (down, second, tenth)] == [1e6, 4e6, 8e6]
    assert (tenth["law"], tenth["retransmits"], tenth["segment_bytes"]) == ("cubic", 17, 1448)
    assert tenth["delivered_bytes"] == 3_900_000
    assert (second["law"], second["delivered_bytes"]) == ("tcp", 1_000_000)
    table = measured.flows.filter(pl.col("flow") == 2)
    assert table["cwnd_seg"].to_list() == [10.0, 20.5, None, 12.0]
    assert table["srtt_s"].to_list() == pytest.approx([0.0205, 0.041, None, 0.022])
    assert table["delivered_bytes"].null_count() == table.height
    rates = measured.goodput.filter(pl.col("flow") == 1)
    assert rates["t_s"].to_list() == [1.0, 2.0, 3.0]
    (note,) = measured.summary["notes"]
    assert note == "5 series that are not of a TCP stream were left out."


def test_no_name_of_a_machine_is_stored(tmp_path: Path, lfn: Lfn) -> None:
    out = tmp_path / "out"
    lfn("import", "flent", write(tmp_path, SAMPLE), "--anonymous", "--out", out)
    lfn("report", out)
    written = b"".join(path.read_bytes() for path in out.iterdir())
    assert not [word for word in (b"alice", b"192.0.2", b"x.flent") if word in written]
    assert "cubic" in lfn("table", out)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda raw: raw[: len(raw) // 2], ": cut: the packed data have no end"),
        (lambda raw: raw[:30] + b"\xff" * 30 + raw[60:], ": damaged: it does not unpack"),
        (lambda _: gzip.compress(b"{"), ": no JSON, or cut"),
        (lambda _: gzip.compress(bytes(70 << 20)), ": more than 64 MiB unpacked"),
        (lambda _: b"[" * 100_000, ": no JSON, or cut"),
        (lambda _: b"[]", ": not an object"),
        (lambda _: b"{}", ": no x_values or results"),
        (lambda _: b'{"x_values": [1, 1], "results": {}}', ": x_values: allowed: times that rise"),
        (lambda _: b'{"x_values": [1], "results": {"Ping": [2]}}', ": results: no series of a TCP"),
        (
            lambda _: b'{"x_values": [1], "results": {"TCP upload": [2, 3]}}',
            ': "TCP upload": allowed: 1 numbers or nulls',
        ),
        (
            lambda _: b'{"x_values": [1], "results": {"TCP upload": [NaN]}}',
            ': "TCP upload": allowed: 1 numbers or nulls',
        ),
    ],
)
def test_bad_files_are_refused_on_one_line(
    tmp_path: Path, lfn: Lfn, change: Any, where: str
) -> None:
    file = write(tmp_path, SAMPLE)
    file.write_bytes(change(file.read_bytes()))
    err = lfn.refuses("import", "flent", file, "--out", tmp_path / "out")
    assert err.startswith(f"lfn: {file}")
    assert where in err
    assert not (tmp_path / "out").exists()


def test_any_change_of_a_file_is_read_or_refused_on_one_line(tmp_path: Path) -> None:
    draw, read = random.Random(1), 0
    refused: list[str] = []
    odd: list[Any] = [None, True, -1, 0, 1e300, "x", [], {}, [[1]], 2**70, float("inf")]
    for _ in range(300):
        root = copy.deepcopy(SAMPLE)
        at: Any = root
        while isinstance(at, dict | list) and at:
            key = draw.choice(list(at) if isinstance(at, dict) else list(range(len(at))))
            if draw.random() < 0.2 or not isinstance(at[key], dict | list):
                at[key] = draw.choice(odd)
                break
            at = at[key]
        try:
            read += flent.read(write(tmp_path, root)).flows.height > 0
        except LabError as error:
            refused.append(str(error))
    assert read > 50
    assert refused
    assert all(error.isprintable() for error in refused)
