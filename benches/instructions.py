"""Instructions per data packet, counted by valgrind: a figure that a shared machine does not move.

$ python -m benches.instructions [--write]

Compares with the counts in benches/instructions.json and fails where one grew by more than 5 %;
``--write`` records the counts instead. Each count is the difference of a long and a short run, so
the start of the flows drops out.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path as FilePath

from .compare_ns import RUN, WORK, Work, scenario

RECORD = FilePath(__file__).with_suffix(".json")
GROWTH = 0.05
#: Counts only inside the engine's loop: Python's start is a hundred times as much and not steady.
VALGRIND = [
    "valgrind",
    "--tool=callgrind",
    "--callgrind-out-file=/dev/null",
    "--toggle-collect=lfn_sim::engine::Sim::run_until*",
]
#: Seconds of simulated time of the two runs. Valgrind is 50 times slower than the machine.
SHORT_S, LONG_S = 2.5, 4.5


def _count(work: Work, duration_s: float) -> tuple[int, int]:
    """Instructions of one run under callgrind, and the data packets that it delivered."""
    result = subprocess.run(
        [*VALGRIND, sys.executable, "-c", RUN],
        input=scenario(work.path, duration_s),
        capture_output=True,
        text=True,
        check=True,
    )
    collected = re.search(r"Collected : (\d+)", result.stderr)
    if collected is None:
        raise RuntimeError(f"callgrind printed no count: {result.stderr[-500:]}")
    return int(collected.group(1)), int(result.stdout)


def instructions_per_packet(work: Work) -> float:
    """Instructions for one more data packet delivered at the bottleneck."""
    short, long = _count(work, SHORT_S), _count(work, LONG_S)
    return (long[0] - short[0]) / (long[1] - short[1])


def main() -> None:
    """Counts, prints, and compares with the record or replaces it."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.instructions", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--write", action="store_true", help="record the counts")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("benches: SKIPPED instruction counts: no program `valgrind`", file=sys.stderr)
        return
    counts = {
        work.name: round(instructions_per_packet(work), 1)
        for work in WORK
        if work.path.rate_bps <= 1e9
    }
    if arguments.write:
        RECORD.write_text(json.dumps(counts, indent=1) + "\n")
    recorded = json.loads(RECORD.read_text())
    grown = [name for name, count in counts.items() if count > (1 + GROWTH) * recorded[name]]
    for name, count in counts.items():
        print(f"{name:34} {count:8.1f} instructions a packet, {recorded[name]:.1f} recorded")
    if grown:
        sys.exit(f"more instructions a packet than recorded: {', '.join(grown)}")


if __name__ == "__main__":
    main()
