"""Wall time, CPU time and memory of each command of `lfn` that computes, on small and large inputs.

$ python -m benches.commands [--rounds N]

Run from the repository's root. A store of one short run, one of 20 runs with 105 flows each (5.8
million rows), and what needs no store. The table has medians over the rounds; a ratio is CPU time
to that of a bare interpreter, `python -c pass`, in the same round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .row import Row
from .table import print_rows

SHORT = """
schema = 1
duration = "1s"
[link]
rate = "100Mbit/s"
[[flow]]
law = "cubic"
rtt = "40ms"
"""
CROWD = """
schema = 1
duration = "30s"
[link]
rate = "100Mbit/s"
[[flow]]
law = "cubic"
count = 100
rtt = "60ms"
start = "uniform(0s, 5s)"
[[flow]]
law = "hybla"
count = 5
rtt = "80ms"
"""

#: Words of the table, and the command; runs come first, since others read their stores.
COMMANDS = {
    "1 s of one flow, table": "run short.toml --no-report --out short",
    "1 s of one flow, report": "run short.toml --out reported",
    "20 runs of 105 flows, table": "run crowd.toml --seeds 20 --no-report --out crowd",
    "report of 20 runs": "report crowd",
    "metrics of one run": "metrics short",
    "metrics of 20 runs": "metrics crowd",
    "plot of one run": "plot short --out short.png",
    "plot of 20 runs": "plot crowd --out crowd.png",
    "CDF of 20 runs": "plot crowd --kind cdf --x rtt_s --out cdf.png",
    "store verify, 20 runs": "store verify crowd",
    "theory response": "theory response",
    "theory sawtooth": "theory sawtooth --rate 10Gbit/s --rtt 100ms --buffer 0.2bdp",
    "theory fairness": "theory fairness --rtt 60ms,120ms",
    "theory recovery": "theory recovery --rate 10Gbit/s --rtt 100ms",
    "laws": "laws",
    "card of a law": "laws cubic",
    "help": "--help",
    "version": "--version",
}
#: Most CPU, as a ratio to a bare interpreter.
BARS = {"laws": 10.0, "help": 10.0, "version": 10.0}


def cost(command: list[str], home: str) -> tuple[float, float, float]:
    """Seconds of wall time, seconds of CPU, and the peak of the memory in MB."""
    begin_s = time.monotonic()
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=home, stdout=nowhere, stderr=nowhere)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - begin_s
    if status:
        raise SystemExit(f"exit {os.waitstatus_to_exitcode(status)}: {' '.join(command)}")
    return wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def rows(rounds: int) -> list[Row]:
    """Medians of the rounds, a command each."""
    found: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="lfn-commands-") as home:
            Path(home, "short.toml").write_text(SHORT)
            Path(home, "crowd.toml").write_text(CROWD)
            _, bare_s, _ = cost([sys.executable, "-c", "pass"], home)
            for name, words in COMMANDS.items():
                wall_s, cpu_s, mb = cost([f"{sys.prefix}/bin/lfn", *words.split()], home)
                found[name].append((wall_s, cpu_s, cpu_s / bare_s, mb))
    table = []
    for name, measured in found.items():
        wall_s, cpu_s, ratio, mb = map(statistics.median, zip(*measured, strict=True))
        words = f"{name}: `lfn {COMMANDS[name]}`"
        bar = BARS.get(name, 0.0)
        table.append(Row(words, f"{wall_s:.2f} s, {cpu_s:.2f} s of CPU", ratio, bar, mb=mb))
    return table


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.commands", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=3)
    print_rows(rows(parser.parse_args().rounds))


if __name__ == "__main__":
    main()
