"""Does a qlog become what it says? client.qlog and server.qlog are real, both ends of 100 kB from
client to server over loopback by aioquic 1.7.2 (qlog 0.3). The other files are written by hand
after the drafts.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from lfnlab import Results, dumbbell, execute
from lfnlab.errors import LabError
from lfnlab.formats import qlog
from lfnlab.results.tables import declared

if TYPE_CHECKING:
    from command import Lfn

DATA = Path(__file__).parents[1] / "data" / "qlog"
METRICS = "recovery:metrics_updated"


def events(name: str) -> list[dict[str, Any]]:
    (trace,) = json.loads((DATA / f"{name}.qlog").read_text())["traces"]
    return list(trace["events"])


def test_samples_are_the_metrics_of_the_stack() -> None:
    measured = qlog.read(DATA / "client.qlog")
    (flow,) = measured.summary["flows"]
    told = [event["data"] for event in events("client") if event["name"] == METRICS]
    assert measured.flows["inflight_bytes"].max() == max(one["bytes_in_flight"] for one in told)
    assert measured.flows["cwnd_seg"].max() == max(one["cwnd"] for one in told) / 1200
    rtts = {one["smoothed_rtt"] for one in told if "smoothed_rtt" in one}
    assert {round(rtt * 1e3, 9) for rtt in measured.flows["srtt_s"].drop_nulls()} <= {
        round(rtt, 9) for rtt in rtts
    }
    assert (flow["law"], flow["direction"], flow["retransmits"]) == ("quic", "forward", 0)
    # The connection was closed before the ACK of the last fifteen packets came.
    sent = [event["data"] for event in events("client") if event["name"] == "transport:packet_sent"]
    acked = sum(
        frame["length"]
        for packet in sent
        for frame in packet["frames"]
        if frame["frame_type"] == "stream" and packet["header"]["packet_number"] <= 76
    )
    assert 80_000 < flow["delivered_bytes"] == acked < 100_000
    assert measured.flows["ssthresh_seg"].null_count() == measured.flows.height


def test_at_the_server_the_received_data_count() -> None:
    (flow,) = qlog.read(DATA / "server.qlog").summary["flows"]
    assert (flow["direction"], flow["delivered_bytes"]) == ("reverse", 100_000)
    assert (flow["mean_cwnd_segments"], flow["retransmits"]) == (None, None)


def contained(version: str, common: dict[str, Any], told: list[Any]) -> str:
    trace = {"vantage_point": {"type": "client"}, "common_fields": common, "events": told}
    return json.dumps({"qlog_version": version, "qlog_format": "JSON", "traces": [trace]})


def sequential(told: list[Any], *, separator: str) -> str:
    """As of 0.4: names have other categories, and a head says application/qlog+json-seq."""
    head = {
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "trace": {"vantage_point": {"type": "client"}, "common_fields": {}},
    }
    names = {METRICS: "quic:recovery_metrics_updated"}
    renamed = [
        {**event, "name": names.get(event["name"], event["name"].replace("transport", "quic"))}
        for event in told
    ]
    return "".join(f"{separator}{json.dumps(record)}\n" for record in (head, *renamed))


@pytest.mark.parametrize("form", ["0.4", "JSON-SEQ", "NDJSON", "delta", "relative"])
def test_every_form_of_the_format_is_the_same(tmp_path: Path, form: str) -> None:
    told, file = events("client"), tmp_path / "x.qlog"
    first = told[0]["time"]
    if form in ("JSON-SEQ", "NDJSON"):
        text = sequential(told, separator="\x1e" if form == "JSON-SEQ" else "")
    elif form == "delta":
        before = [first, *(event["time"] for event in told)]
        steps = [
            {**event, "time": event["time"] - last}
            for event, last in zip(told, before, strict=False)
        ]
        text = contained("0.3", {"time_format": "delta"}, steps)
    else:
        relative = [{**event, "time": event["time"] - first} for event in told]
        text = contained(form, {"time_format": "relative"}, relative)
    file.write_text(text)
    wanted, found = qlog.read(DATA / "client.qlog"), qlog.read(file)
    assert found.flows.drop("t_s").equals(wanted.flows.drop("t_s"))
    assert (found.flows["t_s"] - wanted.flows["t_s"]).abs().max() < 1e-5


def test_states_losses_and_missing_packets(tmp_path: Path) -> None:
    told = [
        {"time": 0, "name": "recovery:congestion_state_updated", "data": {"new": "slow_start"}},
        {"time": 1, "name": METRICS, "data": {"congestion_window": 12000, "ssthresh": 6000}},
        {"time": 2, "name": "recovery:packet_lost", "data": {"header": {"packet_number": 7}}},
        {
            "time": 2,
            "name": "recovery:congestion_state_updated",
            "data": {"new": "application_limited"},
        },
        {"time": 3, "name": METRICS, "data": {"smoothed_rtt": 40, "pacing_rate": 1e6}},
    ]
    file = tmp_path / "x.qlog"
    file.write_text(contained("0.3", {}, told))
    table = qlog.read(file).flows
    assert table["app_limited"].to_list() == [0, 1]
    assert table["state"].to_list() == [0, None]
    assert table["retransmits"].to_list() == [0, 1]
    assert table["pacing_bps"].to_list() == [None, 1e6]
    # Without packets neither their size is known nor what arrived.
    assert table["delivered_bytes"].null_count() == table["cwnd_seg"].null_count() == 2


@pytest.mark.parametrize("form", ["contained", "sequential"])
def test_a_file_that_is_cut_has_the_events_before(tmp_path: Path, form: str, lfn: Lfn) -> None:
    told, file = events("client"), tmp_path / "x.qlog"
    text = contained("0.3", {}, told) if form == "contained" else sequential(told, separator="")
    whole = qlog.read(DATA / "client.qlog").flows
    for part in (0.4, 0.7, 0.95):
        file.write_text(text[: int(len(text) * part)])
        measured = qlog.read(file)
        assert 0 < measured.flows.height < whole.height
        (note,) = measured.summary["notes"]
        assert "cut" in note
    assert "the events before are read" in lfn("import", "qlog", file, "--out", tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", ": Expecting value; allowed: qlog 0.3 or 0.4"),
        ("{}", ": no qlog: it has no traces"),
        ("[1]", ": no qlog: it has no traces"),
        ('{"traces": [{}]}', ": traces[0].events: missing"),
        ('{"traces": [{"events": []}]}', ": no event with metrics of recovery"),
        ('{"traces": [{"events": [7]}]}', ": traces[0].events[0]: no event of qlog: 7"),
        (
            contained("0.3", {}, [{"time": 1, "name": METRICS, "data": {"smoothed_rtt": "x"}}]),
            ": traces[0].events[0]: no event of qlog",
        ),
        (
            contained("0.3", {}, [{"time": float("nan"), "name": METRICS, "data": {}}]),
            ": traces[0].events[0]: no event of qlog",
        ),
        ('{"trace": {}}\n{"time":\n{}\n', ":2: no JSON; allowed: an event of qlog"),
        ("[" * 100_000, "allowed: qlog 0.3 or 0.4"),
    ],
)
def test_foreign_files_are_refused_on_one_line(
    tmp_path: Path, lfn: Lfn, text: str, where: str
) -> None:
    file = tmp_path / "x.qlog"
    file.write_text(text)
    assert where in lfn.refuses("import", "qlog", file, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_any_change_of_a_file_is_read_or_refused_on_one_line(tmp_path: Path) -> None:
    draw, read, file = random.Random(1), 0, tmp_path / "x.qlog"
    refused: list[str] = []
    odd: list[Any] = [None, True, -1, 0, 1e300, "x", [], {}, [[1]], {"a": 1}, 2**70]
    for _ in range(150):
        told = json.loads(json.dumps(draw.sample(events("client"), 40)))
        for _ in range(draw.choice((1, 3))):
            at: Any = draw.choice(told)
            while isinstance(at, dict | list) and at:
                keys = list(at) if isinstance(at, dict) else list(range(len(at)))
                key = draw.choice(keys)
                if draw.random() < 0.4 or not isinstance(at[key], dict | list):
                    at[key] = draw.choice(odd)
                    break
                at = at[key]
        file.write_text(contained("0.3", {}, told))
        try:
            read += qlog.read(file).flows.height > 0
        except LabError as error:
            refused.append(str(error))
    assert read > 20
    assert refused
    assert all(error.isprintable() for error in refused)


def test_an_anonymous_log_names_no_connection(tmp_path: Path, lfn: Lfn) -> None:
    out = tmp_path / "out"
    lfn("import", "qlog", DATA / "client.qlog", "--anonymous", "--out", out)
    lfn("report", out)
    assert pl.read_parquet(out / "flows.parquet").height
    written = b"".join(path.read_bytes() for path in out.iterdir())
    assert not [word for word in (b"5e4458d2", b"127.0.0.1", b"client.qlog") if word in written]


def test_a_run_comes_back_from_its_log(tmp_path: Path, lfn: Lfn) -> None:
    path = dumbbell(
        rate="20Mbit/s", rtt="40ms", buffer="0.5bdp", duration="4s", sample="50ms", loss=0.001
    )
    run = execute(path.flow("cubic").flow("bbr3", start="1s"), out=tmp_path / "run").runs[0]
    assert lfn("qlog", tmp_path / "run", "-o", tmp_path / "run.qlog").startswith("142 samples")
    lfn("import", "qlog", tmp_path / "run.qlog", "--out", tmp_path / "back")
    back = Results.load(tmp_path / "back").runs[0].table("flows").sort("flow", "t_s")
    own = run.table("flows").sort("flow", "t_s")
    assert back["t_s"].to_list() == pytest.approx(own["t_s"].to_list(), abs=1e-9)
    for name, absent in (
        ("cwnd_seg", None), ("ssthresh_seg", math.inf), ("srtt_s", 0.0), ("rtt_s", 0.0),
        ("pacing_bps", 0.0), ("inflight_bytes", None),
    ):  # fmt: skip
        was = own["inflight_seg"] * 1448 if name == "inflight_bytes" else own[name]
        known = (was != absent) if absent is not None else was.is_not_null()
        assert back[name].is_not_null().to_list() == known.to_list(), name
        assert back[name].drop_nulls().to_list() == pytest.approx(
            was.filter(known).to_list(), rel=1e-5, abs=1e-6
        )
    recovery = declared()["flows"]["state"].codes.index("recovery")
    assert (back["state"] == recovery).to_list() == (own["state"] >= recovery).to_list()


def test_what_a_measurement_does_not_know_is_not_in_its_log(tmp_path: Path, lfn: Lfn) -> None:
    """The other way of iperf3's --bidir has no windows at the client."""
    lfn("import", "iperf3", DATA.parent / "iperf3" / "bidir.json", "--out", tmp_path / "in")
    lfn("qlog", tmp_path / "in", "-o", tmp_path / "out.qlog")
    traces = json.loads((tmp_path / "out.qlog").read_text())["traces"]
    sent, received = (trace["events"] for trace in traces)
    states = "recovery:congestion_state_updated"
    assert states in {event["name"] for event in sent}
    assert any("congestion_window" in event["data"] for event in sent)
    assert {event["name"] for event in received} == {"recovery:parameters_set", METRICS}
    assert not any("congestion_window" in event["data"] for event in received)
