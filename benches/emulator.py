"""Goodput, lateness and CPU time of the path emulator: `python -m benches.emulator [SECONDS]`.

iperf3 sends with CUBIC over two paths of `lfn shell`. After a start-up of a third of the time,
which is left out: goodput beside the most that the path carries, how late segments were, and what
the emulator took of a core. On a busy machine runs are not valid, and marked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lfnlab.testbed.validity import invalid

# Rate, RTT, IP packet in bytes.
PATHS = [("1Gbit/s", "180ms", 1500), ("10Gbit/s", "40ms", 9000)]
RATES_BPS = {"1Gbit/s": 1e9, "10Gbit/s": 1e10}
# IPv4 and TCP with timestamps; Ethernet.
HEADERS_BYTES, FRAMING_BYTES = 52, 14


def measure(rate: str, rtt: str, packet_bytes: int, seconds: int) -> str:
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "report.json")
        path = ["--rate", rate, "--rtt", rtt, "--packet", f"{packet_bytes}B", "--buffer", "1bdp"]
        client = f"iperf3 -c $LFN_FAR -C cubic -J -O {seconds // 3} -t {seconds}"
        lfn = [sys.executable, "-m", "lfnlab.cli", "shell", *path]
        command = [
            *lfn,
            "--serve",
            "iperf3 -s > /dev/null",
            "--report",
            str(report),
            "--",
            "sh",
            "-c",
            client,
        ]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        end = json.loads(run.stdout)["end"]
        seen = json.loads(report.read_text())
    goodput_bps = end["sum_received"]["bits_per_second"]
    share = (packet_bytes - HEADERS_BYTES) / (packet_bytes + FRAMING_BYTES)
    late = seen["lateness"]
    return (
        f"{rate} x {rtt}, {packet_bytes} B: {goodput_bps / 1e6:.0f} of "
        f"{RATES_BPS[rate] * share / 1e6:.0f} Mbit/s; late by p50 {late['p50_us']:.0f}, p99 "
        f"{late['p99_us']:.0f}, p99.9 {late['p999_us']:.0f}, max {late['max_us']:.0f} us; "
        f"{seen['cpu_s'] / seen['wall_s']:.0%} of a core; {invalid(seen) or 'valid'}"
    )


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"load of this machine: {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores")
    for path in PATHS:
        print(measure(*path, seconds), flush=True)


if __name__ == "__main__":
    main()
