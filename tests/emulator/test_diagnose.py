# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measured transfers of `python -m validation.diagnose`: every kind of file is there and read."""

import subprocess
from pathlib import Path

import pytest
from validation.diagnose import emulated
from validation.diagnose.settings import Setting

from lfnlab.formats import capture, iperf3, ss

SIZE_B = 400_000


@pytest.mark.skipif(emulated.missing() is not None, reason=f"needs {emulated.missing()}")
def test_a_transfer_over_the_emulator_is_measured_by_four_tools(tmp_path: Path) -> None:
    setting = Setting("cubic", 2e7, 0.05, 200, 6.0, 1, receive_window_b=30_000, size_b=SIZE_B)
    emulated.emulated(setting, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *("iperf3.json", "receiver.pcap", "report.json", "sender.pcap", "ss.log")
    ]
    for host in ("sender", "receiver"):
        flows = capture.read(tmp_path / f"{host}.pcap").summary["flows"]
        # Beside the data there is iperf3's connection of control.
        most = max(flows, key=lambda flow: flow["delivered_bytes"])
        assert most["captured_at"] == host
        # iperf3 ends when all is written, and leaves what the socket still holds.
        assert SIZE_B / 2 <= most["delivered_bytes"] <= 1.1 * SIZE_B
        assert most["min_rtt_s"] == pytest.approx(setting.rtt_s, rel=0.1)
        # A buffer of twice the window holds between one and two of it.
        assert 30_000 <= most["offered_window_bytes"] <= 65_000
    assert ss.read(tmp_path / "ss.log").flows.height > 3
    (flow,) = iperf3.read(tmp_path / "iperf3.json").summary["flows"]
    assert flow["law"] == "cubic"
    # Nothing is left of it.
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in running.stdout
