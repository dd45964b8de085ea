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
import tempfile
from pathlib import Path as FilePath

from .cases import CASES, write_files
from .compare_ns import WORK, scenario

RECORD = FilePath(__file__).with_suffix(".json")
GROWTH = 0.03
#: Counts only inside the engine's loop, and writes a file after each run.
VALGRIND = [
    "valgrind",
    "--tool=callgrind",
    "--toggle-collect=lfn_sim::engine::sim::Sim::run_until*",
    "--dump-after=*outcome*Sim*finish*",
]
#: Runs the scenarios of a list in JSON and prints the data packets of each. All run in one process:
#: under valgrind Python takes longer to start than one of them to run.
RUN = """
import json, sys
from lfnlab import _core
for text in json.load(sys.stdin):
    (run,) = _core.run_many([_core.Scenario(text)], 1, None)
    print(json.loads(run.summary())["data_packets_delivered"])
"""
#: Simulated time of the scenarios that are compared with ns-2, start-up included.
DURATION_S = 2.0


def scenarios() -> dict[str, str]:
    """The scenarios that are counted, by their names in the record."""
    as_ns2 = {
        f"as ns-2: {work.name}": scenario(work, DURATION_S)
        for work in WORK
        if work.path.rate_bps <= 1e9
    }
    return as_ns2 | {case.name: case.scenario(case.counted_s) for case in CASES}


def count() -> dict[str, float]:
    """Instructions for each data packet delivered at the bottleneck, by name."""
    write_files()
    given = scenarios()
    with tempfile.TemporaryDirectory(prefix="lfn-instructions-") as name:
        out = FilePath(name) / "count"
        result = subprocess.run(
            [*VALGRIND, f"--callgrind-out-file={out}", sys.executable, "-c", RUN],
            input=json.dumps(list(given.values())),
            capture_output=True,
            text=True,
            check=True,
        )
        texts = [(out.with_suffix(f".{i}")).read_text() for i in range(1, len(given) + 1)]
    totals = [int(found[1]) for text in texts if (found := re.search(r"totals: (\d+)", text))]
    packets = [int(line) for line in result.stdout.split()]
    # A core without symbols counts 0.
    if not (len(totals) == len(packets) == len(given) and all(totals)):
        raise RuntimeError(f"callgrind counted {totals}: {result.stderr[-500:]}")
    return {name: total / n for name, total, n in zip(given, totals, packets, strict=True)}


def recorded() -> dict[str, float]:
    """The counts on record, by name."""
    counts: dict[str, float] = json.loads(RECORD.read_text())
    return counts


def main() -> None:
    """Counts, prints, and compares with the record or replaces it."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.instructions", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--write", action="store_true", help="record the counts")
    arguments = parser.parse_args()
    before = recorded()
    counts = {name: round(value, 1) for name, value in count().items()}
    if arguments.write:
        RECORD.write_text(json.dumps(counts, indent=1) + "\n")
    for name, value in counts.items():
        there = before.get(name)
        beside = "not recorded" if there is None else f"{there:.1f} recorded"
        print(f"{name:44} {value:8.1f} instructions a packet, {beside}")
    grown = [name for name, value in counts.items() if value > (1 + GROWTH) * before.get(name, 0)]
    if grown and not arguments.write:
        sys.exit(f"more instructions a packet than recorded: {', '.join(grown)}")


if __name__ == "__main__":
    main()
