"""The table of all benchmarks: its rows, and the record of them.

$ python -m benches.table    prints the record

Each part of the benchmarks gives rows. The record, benches/table.json, keeps them with the date and
the state of the machine, so that a part can be measured alone.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lfnlab.analysis.table import markdown

from .instructions import recorded
from .row import Row

RECORD = Path(__file__).with_suffix(".json")
HEADER = ("case", "cost", "ratio", "bar", "instructions", "MB")


def print_rows(rows: list[Row]) -> None:
    """Print rows as a table."""
    counts = recorded()
    print(*markdown(HEADER, [row.cells(counts) for row in rows]), sep="\n")


def _stolen_s() -> float:
    """Seconds that a hypervisor took from all processors since the machine started."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(words[8]) / os.sysconf("SC_CLK_TCK")


def record(part: str, beside: str, measure: Callable[[int], list[Row]], rounds: int) -> None:
    """Measure a part, with ratios to `beside`, and keep it."""
    begun_s, stolen_s = time.monotonic(), _stolen_s()
    load = os.getloadavg()[0]
    rows = measure(rounds)
    cores = os.cpu_count() or 1
    stolen = (_stolen_s() - stolen_s) / (time.monotonic() - begun_s) / cores
    parts = recorded_parts()
    parts[part] = {
        "beside": beside,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{cores} virtual cores of {_processor()}, load {load:.1f} at the start, "
        f"{stolen:.1%} taken by the hypervisor",
        "rows": [asdict(row) for row in rows],
    }
    RECORD.write_text(json.dumps(parts, indent=1, ensure_ascii=False) + "\n")


def _processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else "an unknown processor"


def recorded_parts() -> dict[str, Any]:
    """The parts on record, by name."""
    parts: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return parts


def lines() -> list[str]:
    """The record as lines of Markdown: the table, and where each part was measured."""
    counts, machines = recorded(), []
    rows: list[tuple[str, ...]] = []
    for part, kept in recorded_parts().items():
        title = f"**{part}**" + (f", ratio to {kept['beside']}" if kept["beside"] else "")
        rows.append((title, "", "", "", "", ""))
        rows.extend(Row(**row).cells(counts) for row in kept["rows"])
        machines.append(f"- {part}: {kept['date']}, {kept['machine']}")
    return [*markdown(HEADER, rows), "", *machines]


if __name__ == "__main__":
    print(*lines(), sep="\n")
