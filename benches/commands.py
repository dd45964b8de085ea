"""Wall time, CPU time and memory of each command of `lfn` that computes, on small and large inputs.

A store of one short run, one of 20 runs with 105 flows each (5.8
million rows), and what needs no store. The table has medians over the rounds; a ratio is CPU time
to that of a bare interpreter, `python -c pass`, in the same round.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from .row import Row

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
SWEEP = """
schema = 1
duration = "60s"
warmup = "10s"
[link]
rate = "100Mbit/s"
[[flow]]
law = "cubic"
rtt = "50ms"
[background]
level = 1
long_flows = 0
[sweep]
seeds = 4
[sweep.grid]
"flow[0].law" = ["reno", "cubic", "htcp-be"]
"link.queue.size" = ["0.1bdp", "0.5bdp", "1bdp"]
"""
MEASURED = Path(__file__).parents[1] / "tests/python/data/iperf3/tcp.json"
ADVISE = "--law cubic,htcp,bbr --bytes 25MB"

#: Words of the table, and the command; runs come first, since others read their stores.
COMMANDS = {
    "1 s of one flow, table": "run short.toml --no-report --out short",
    "1 s of one flow, report": "run short.toml --out reported",
    "20 runs of 105 flows, table": "run crowd.toml --seeds 20 --no-report --out crowd",
    "report of 20 runs": "report crowd",
    "sweep of 36 runs": "sweep sweep.toml --out swept",
    "report of a sweep of 36 runs": "report swept",
    "metrics of one run": "metrics short",
    "metrics of 20 runs": "metrics crowd",
    "plot of one run": "plot short --out short.png",
    "plot of 20 runs": "plot crowd --out crowd.png",
    "CDF of 20 runs": "plot crowd --kind cdf --x rtt_s --out cdf.png",
    "store verify, 20 runs": "store verify crowd",
    "advice for a path": f"advise --rate 100Mbit/s --rtt 40ms --buffer 0.5bdp {ADVISE} --out path",
    "advice from a file": "advise --iperf3 measured.json --buffer 0.5bdp --law cubic,htcp,bbr",
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
BARS = {"laws": 8.0, "help": 8.0, "version": 8.0}


#: Starts a command and prints what it took; a process of its own, since the peak of a process
#: counts that of the one that forked it.
START = """
import os, sys, time
begin_s = time.monotonic()
quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(child, 0)
wall_s = time.monotonic() - begin_s
print(os.waitstatus_to_exitcode(status), wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""


def cost(command: list[str], home: str) -> tuple[float, float, float]:
    """Seconds of wall time, seconds of CPU, and the peak of the memory in MB."""
    start = [sys.executable, "-S", "-c", START, *command]
    told = subprocess.run(start, cwd=home, stdout=subprocess.PIPE, text=True, check=True).stdout
    code, wall_s, cpu_s, peak_kb = map(float, told.split())
    if code:
        raise SystemExit(f"exit {code:.0f}: {' '.join(command)}")
    return wall_s, cpu_s, peak_kb / 1e3


def rows(rounds: int) -> list[Row]:
    """Medians of the rounds, a command each."""
    found: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="lfn-commands-") as home:
            Path(home, "short.toml").write_text(SHORT)
            Path(home, "crowd.toml").write_text(CROWD)
            Path(home, "sweep.toml").write_text(SWEEP)
            shutil.copy(MEASURED, Path(home, "measured.json"))
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
