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
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lfnlab.testbed.validity import invalid

from .row import Row

# Rate, RTT, IP packet in bytes.
PATHS = [("1Gbit/s", "180ms", 1500), ("10Gbit/s", "40ms", 9000)]
RATES_BPS = {"1Gbit/s": 1e9, "10Gbit/s": 1e10}
# IPv4 and TCP with timestamps; Ethernet.
HEADERS_BYTES, FRAMING_BYTES = 52, 14
QUANTILES = ("p50", "p99", "p999")
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


@dataclass(frozen=True)
class Seen:
    """A run of iperf3 over the emulator."""

    goodput_mbps: float
    most_mbps: float
    #: At QUANTILES, and as ratios to the clock's.
    late_us: list[float]
    ratios: list[float]
    us_a_packet: float
    of_a_core: float
    #: Why the run is no result.
    invalid: str | None


def measure(rate: str, rtt: str, packet_bytes: int, seconds: int) -> Seen:
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
    late_us = [seen["lateness"][f"{name}_us"] for name in QUANTILES]
    share = (packet_bytes - HEADERS_BYTES) / (packet_bytes + FRAMING_BYTES)
    return Seen(
        goodput_mbps=end["sum_received"]["bits_per_second"] / 1e6,
        most_mbps=RATES_BPS[rate] * share / 1e6,
        late_us=late_us,
        ratios=[late / woke for late, woke in zip(late_us, woke_us, strict=True)],
        us_a_packet=1e6 * seen["cpu_s"] / sum(link["sent_packets"] for link in seen["links"]),
        of_a_core=seen["cpu_s"] / seen["wall_s"],
        invalid=invalid(seen),
    )


def missing() -> str | None:
    """The tool that this machine lacks."""
    return None if shutil.which("iperf3") else "no iperf3"


def rows(rounds: int) -> list[Row]:
    """CPU and lateness on each path."""
    table = []
    for path in PATHS:
        seen = [measure(*path, 20) for _ in range(rounds)]
        rate, rtt, packet_bytes = path
        words = f"{rate} x {rtt}, {packet_bytes} B"
        valid = sum(one.invalid is None for one in seen)
        cpu_us = statistics.median(one.us_a_packet for one in seen)
        table.append(
            Row(f"{words}: CPU a packet ({valid} of {rounds} runs valid)", f"{cpu_us:.2f} µs")
        )
        for i, name in enumerate(QUANTILES):
            late_us = statistics.median(one.late_us[i] for one in seen)
            ratio = statistics.median(one.ratios[i] for one in seen)
            table.append(Row(f"{words}: late, {name}", f"{late_us:.0f} µs", ratio))
    return table


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"load of this machine: {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores")
    for path in PATHS:
        seen = measure(*path, seconds)
        late = ", ".join(
            f"{name} {us:.0f}" for name, us in zip(QUANTILES, seen.late_us, strict=True)
        )
        ratios = ", ".join(f"{ratio:.1f}" for ratio in seen.ratios)
        print(
            f"{path[0]} x {path[1]}, {path[2]} B: {seen.goodput_mbps:.0f} of "
            f"{seen.most_mbps:.0f} Mbit/s; late by {late} us, {ratios} times as late as a program "
            f"that reads the clock; {seen.us_a_packet:.2f} us of CPU a packet, "
            f"{seen.of_a_core:.0%} of a core; {seen.invalid or 'valid'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
