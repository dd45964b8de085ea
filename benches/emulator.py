"""Goodput, lateness and CPU time of the path emulator: `python -m benches.emulator [SECONDS]`.

iperf3 sends with CUBIC over two paths of `lfn shell`. After a start-up of a third of the time,
which is left out: goodput beside the most that the path carries, how late segments were, and the
CPU time of the emulator, a packet and as a share of a core. In the same run a program of real-time
priority sleeps until each millisecond and reads the clock, so its lateness is the machine's own;
ratios are to that. On a busy machine runs are not valid, and marked.
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
#: Prints how late it woke in ns at its p50, p99 and p99.9 when its standard input ends.
CLOCK = """
import ctypes, os, select, sys, time
ctypes.CDLL(None).prctl(29, 1)  # PR_SET_TIMERSLACK, in ns
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except PermissionError:
    print("SKIPPED real-time priority of the clock: no permission", file=sys.stderr)
late = []
due = time.monotonic_ns()
while not select.select([sys.stdin], [], [], 0)[0]:
    due = max(due, time.monotonic_ns()) + 1_000_000
    # A stolen processor can make this line later than `due`.
    time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
    late.append(time.monotonic_ns() - due)
late.sort()
print(*(late[int(q * len(late))] for q in (0.5, 0.99, 0.999)))
"""


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
        with subprocess.Popen(
            [sys.executable, "-c", CLOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as clock:
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            woke_us = [int(ns) / 1e3 for ns in clock.communicate()[0].split()]
        end = json.loads(run.stdout)["end"]
        seen = json.loads(report.read_text())
    goodput_bps = end["sum_received"]["bits_per_second"]
    share = (packet_bytes - HEADERS_BYTES) / (packet_bytes + FRAMING_BYTES)
    late = seen["lateness"]
    quantiles = zip(("p50", "p99", "p999"), woke_us, strict=True)
    ratios = [f"{late[f'{name}_us'] / woke:.1f}" for name, woke in quantiles]
    packets = sum(link["sent_packets"] for link in seen["links"])
    return (
        f"{rate} x {rtt}, {packet_bytes} B: {goodput_bps / 1e6:.0f} of "
        f"{RATES_BPS[rate] * share / 1e6:.0f} Mbit/s; late by p50 {late['p50_us']:.0f}, p99 "
        f"{late['p99_us']:.0f}, p99.9 {late['p999_us']:.0f}, max {late['max_us']:.0f} us, "
        f"{', '.join(ratios)} times as late as a program that reads the clock; "
        f"{1e6 * seen['cpu_s'] / packets:.2f} us of CPU a packet, "
        f"{seen['cpu_s'] / seen['wall_s']:.0%} of a core; {invalid(seen) or 'valid'}"
    )


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"load of this machine: {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores")
    for path in PATHS:
        print(measure(*path, seconds), flush=True)


if __name__ == "__main__":
    main()
