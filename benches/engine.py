"""CPU time and instructions a packet of scenarios that users run, beside one flow on a plain path.

In each round every case runs in a child process of its own, on one
core, for a short and for a long time; its cost is the difference of the two in CPU time over that
in data packets. A ratio is to the first case in the same round, and the table has medians.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

from .cases import CASES, ROW_1, Case, write_files
from .row import Row

#: Runs the scenarios on standard input, each a string of JSON on a line. Prints the CPU seconds and
#: data packets of each, and the largest resident set so far in kB: that of `getrusage` would count
#: the benchmark's own process, from before it became this one.
RUN = r"""
import json, re, sys, time
from pathlib import Path
from lfnlab import _core
for line in sys.stdin:
    before = time.process_time()
    (run,) = _core.run_many([_core.Scenario(json.loads(line))], 1, None)
    cpu_s = time.process_time() - before
    packets = json.loads(run.summary())["data_packets_delivered"]
    peak_kb = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
    print(json.dumps([cpu_s, packets, peak_kb]))
"""


def measure(case: Case) -> tuple[float, float]:
    """CPU nanoseconds a data packet after ``case.short_s``, and the process's peak memory in MB."""
    # The first run warms up.
    scenarios = [case.scenario(seconds) for seconds in (case.short_s, case.short_s, case.long_s)]
    ended = subprocess.run(
        [sys.executable, "-c", RUN],
        input="".join(f"{json.dumps(text)}\n" for text in scenarios),
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {max(os.sched_getaffinity(0))}),
    )
    _, short, long = (json.loads(line) for line in ended.stdout.splitlines())
    return 1e9 * (long[0] - short[0]) / (long[1] - short[1]), long[2] / 1e3


def rows(rounds: int, words: str = "") -> list[Row]:
    """Medians of the rounds, a case each whose name has these words."""
    cases = [case for case in CASES if words.lower() in case.name.lower()]
    costs: dict[str, list[float]] = {case.name: [] for case in [ROW_1, *cases]}
    ratios: dict[str, list[float]] = {case.name: [] for case in cases}
    peaks: dict[str, float] = {}
    write_files()
    for _ in range(rounds):
        base = measure(ROW_1)
        for case in cases:
            cost_ns, peaks[case.name] = base if case is ROW_1 else measure(case)
            costs[case.name].append(cost_ns)
            ratios[case.name].append(cost_ns / base[0])
    return [
        Row(
            case.name,
            f"{statistics.median(costs[case.name]):.0f} ns",
            ratio=statistics.median(ratios[case.name]),
            bar=case.bar,
            mb=peaks[case.name],
        )
        for case in cases
    ]
