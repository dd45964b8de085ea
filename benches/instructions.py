"""Instructions per data packet, counted by valgrind: a figure that a shared machine does not move.

$ python -m benches.instructions [--write]

Compares with the counts in benches/instructions.json and fails where one grew by more than 3 %;
``--write`` records the counts instead. ``pytest benches`` makes the same comparison. The counts
depend on the compilers, so a new compiler may need new ones.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path as FilePath

from .compare_ns import RUN, WORK, Work, scenario

RECORD = FilePath(__file__).with_suffix(".json")
GROWTH = 0.03
#: Counts only inside the engine's loop: Python's start is a hundred times as much and not steady.
VALGRIND = [
    "valgrind",
    "--tool=callgrind",
    "--callgrind-out-file=/dev/null",
    "--toggle-collect=lfn_sim::engine::sim::Sim::run_until*",
]
#: Simulated time, start-up included. Valgrind is 50 times slower than the machine.
DURATION_S = 3.0

COUNTED = [work for work in WORK if work.path.rate_bps <= 1e9]


def instructions_per_packet(work: Work) -> float:
    """Instructions of one run of ``work`` for each data packet delivered at the bottleneck."""
    result = subprocess.run(
        [*VALGRIND, sys.executable, "-c", RUN],
        input=scenario(work.path, DURATION_S),
        capture_output=True,
        text=True,
        check=True,
    )
    collected = re.search(r"Collected : (\d+)", result.stderr)
    # A core without symbols counts 0.
    if collected is None or int(collected.group(1)) == 0:
        raise RuntimeError(f"callgrind counted nothing: {result.stderr[-500:]}")
    return int(collected.group(1)) / int(result.stdout)


def recorded() -> dict[str, float]:
    """The counts on record, by the name of the work."""
    counts: dict[str, float] = json.loads(RECORD.read_text())
    return counts


def main() -> None:
    """Counts, prints, and compares with the record or replaces it."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.instructions", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--write", action="store_true", help="record the counts")
    arguments = parser.parse_args()
    counts = {work.name: round(instructions_per_packet(work), 1) for work in COUNTED}
    if arguments.write:
        RECORD.write_text(json.dumps(counts, indent=1) + "\n")
    before = recorded()
    for name, count in counts.items():
        print(f"{name:34} {count:8.1f} instructions a packet, {before[name]:.1f} recorded")
    grown = [name for name, count in counts.items() if count > (1 + GROWTH) * before[name]]
    if grown:
        sys.exit(f"more instructions a packet than recorded: {', '.join(grown)}")


if __name__ == "__main__":
    main()
