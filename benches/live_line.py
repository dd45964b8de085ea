"""Cost of the live line of `lfn shell`: `python -m benches.live_line [ROUNDS] [SECONDS]`.

A round has a run with the line and two without, in an order that changes: the two tell how much
runs differ by themselves. iperf3 sends over 1 Gbit/s × 40 ms, and a pseudo-terminal takes the line.
Printed are medians over rounds of lateness and of the emulator's share of a core.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from pathlib import Path

PATH = ("--rate", "1Gbit/s", "--rtt", "40ms", "--buffer", "1bdp")
SIZE = struct.pack("HHHH", 30, 100, 0, 0)
RUNS = ("with the line", "without", "without, again")
NAMES = ("p50", "p99", "p99.9", "max (us)", "share of a core (%)")


def terminal() -> int:
    """A terminal whose output is read and thrown away."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, SIZE)

    def read() -> None:
        while os.read(master, 65536):
            pass

    threading.Thread(target=read, daemon=True).start()
    return slave


def measure(option: str, seconds: int, stderr: int) -> list[float]:
    """Lateness and share of one run."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "report.json")
        lfn = [sys.executable, "-m", "lfnlab.cli", "shell", option, *PATH, "--report", str(report)]
        client = ["--", "sh", "-c", f"iperf3 -c $LFN_FAR -t {seconds} > /dev/null"]
        serve = ["--serve", "iperf3 -s > /dev/null"]
        environment = {**os.environ, "TERM": "xterm"}
        subprocess.run([*lfn, *serve, *client], stderr=stderr, env=environment, check=True)
        seen = json.loads(report.read_text())
    late = seen["lateness"]
    quantiles = [late[key] for key in ("p50_us", "p99_us", "p999_us", "max_us")]
    return [*quantiles, 100 * seen["cpu_s"] / seen["wall_s"]]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    print(f"load of this machine: {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores")
    stderr = terminal()
    found: dict[str, list[list[float]]] = {name: [] for name in RUNS}
    for number in range(rounds):
        first = number % len(RUNS)
        for name in RUNS[first:] + RUNS[:first]:
            option = "--live" if name == RUNS[0] else "--no-live"
            found[name].append(measure(option, seconds, stderr))
    print("| late by | " + " | ".join(NAMES) + " |")
    for name, rows in found.items():
        medians = [statistics.median(column) for column in zip(*rows, strict=True)]
        print(f"| {name} | " + " | ".join(f"{value:.0f}" for value in medians) + " |")


if __name__ == "__main__":
    main()
