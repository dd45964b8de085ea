"""The evidence of a measured flow has the numbers of its file, whatever the tool."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lfnlab.diagnose import evidence
from lfnlab.errors import UsageError
from lfnlab.formats import measurement

DATA = Path(__file__).parents[1] / "data"


def test_an_interval_of_iperf3_is_a_row() -> None:
    read = measurement.read("iperf3", DATA / "iperf3" / "known" / "window-1.json")
    shown = evidence.of(read, 0)
    assert shown.lengths_s == pytest.approx([2, 2, 2], abs=0.005)
    assert shown.goodput_bps == pytest.approx(read.goodput["goodput_bps"].to_numpy(), rel=1e-3)
    assert (shown.window_bytes == 162_432).all()
    assert shown.min_rtt_s == pytest.approx(0.0405, abs=0.0005)
    assert np.isnan(shown.app_limited).all()  # iperf3 does not tell it.


def test_retransmissions_are_of_their_row() -> None:
    read = measurement.read("iperf3", DATA / "iperf3" / "known" / "loss-1.json")
    shown = evidence.of(read, 0)
    assert shown.retransmits.tolist() == [9, 3, 1]


def test_a_capture_and_a_log_of_sockets_have_rows_of_their_samples(tmp_path: Path) -> None:
    packed = DATA / "captures" / "sender.pcap.gz"
    (tmp_path / "sender.pcap").write_bytes(gzip.decompress(packed.read_bytes()))
    capture = measurement.read("capture", tmp_path / "sender.pcap")
    log = measurement.read("ss", DATA / "ss" / "stamped.log")
    for read in (capture, log):
        entry = max(read.summary["flows"], key=lambda flow: flow["delivered_bytes"] or 0)
        shown = evidence.of(read, entry["id"])
        moved = float(np.nansum(shown.goodput_bps * shown.lengths_s) / 8)
        assert moved == pytest.approx(entry["delivered_bytes"], rel=0.02)
        assert np.nanmin(shown.inflight_bytes) >= 0


def test_a_flow_that_is_not_there_is_refused() -> None:
    read = measurement.read("iperf3", DATA / "iperf3" / "known" / "window-1.json")
    with pytest.raises(UsageError, match="flow 7; allowed: 0"):
        evidence.of(read, 7)


def test_streams_with_samples_of_different_times_are_one_flow() -> None:
    read = measurement.read("iperf3", DATA / "iperf3" / "known" / "window-1.json")
    first = evidence.of(read, 0)
    later = first.at(first.edges_s[:-1] + 0.7)  # two rows, 0.7 s later
    both = evidence.together([first, later])
    moved = [one.moved_bytes(-np.inf, np.inf) for one in (first, later, both)]
    assert moved[2] == pytest.approx(moved[0] + moved[1])
    assert both.window_bytes.tolist() == [324_864, 324_864, 162_432]
    assert both.rtt_s == pytest.approx(first.rtt_s, rel=0.02)
    other = replace(first, edges_s=first.edges_s + 5)
    with pytest.raises(UsageError, match="the streams ran at different times"):
        evidence.together([first, other])
