"""Quotations of the record of the benchmarks, benches/table.json, in pages.

docs/site/reference.py puts it into the pages, so each figure of speed stands in one place.
"""

from __future__ import annotations

import re

from lfnlab.analysis.table import markdown

from .row import Row
from .table import recorded_parts

SIMULATED = {
    "1 flow, 1 Gbit/s x 100 ms": "1 flow",
    "100 flows": "100 flows",
    "1 flow, 100 Gbit/s x 100 ms, 9000 bytes": "1 flow, packets of 9000 bytes",
    "background 2 at 1 Gbit/s": "background traffic of level 2",
    "background 2 at 10 Gbit/s": "background traffic of level 2",
    "FQ-CoDel": "FQ-CoDel",
    "10,000 flows at 10 Gbit/s": "10,000 flows",
    "100,000 flows at 10 Gbit/s": "100,000 flows",
}
COMMANDS = (
    "1 s of one flow, report",
    "20 runs of 105 flows, table",
    "metrics of 20 runs",
    "plot of 20 runs",
)
BETWEEN = ("10 flows, 1 Gbit/s x 100 ms", "1 flow, 10 Gbit/s x 100 ms")
"""Rows beside ns-2 whose ratios lie between those of others."""
PROGRAMS = {
    "libudt": "libudt 4.11",
    "serve, fetch": "`lfn-udt serve`, `fetch`: the same protocol",
    "send, recv": "`lfn-udt send`, `recv`: with BLAKE3",
    "send, recv, --key": "`send`, `recv`, with `--key`",
    "kernel TCP": "kernel TCP, Reno",
    "libudt, to /dev/null": "libudt 4.11, to /dev/null",
    "serve, fetch, to /dev/null": "`serve`, `fetch`, to /dev/null",
}


def rows(part: str) -> dict[str, Row]:
    """The rows of a part by name."""
    return {row["case"]: Row(**row) for row in recorded_parts()[part]["rows"]}


def _machine(*parts: str) -> str:
    record = recorded_parts()
    dates: dict[str, set[str]] = {}
    for part in parts:
        dates.setdefault(record[part]["machine"].split(",")[0], set()).add(record[part]["date"])
    places = [f"{name}, {' and '.join(sorted(days))}" for name, days in sorted(dates.items())]
    return "; ".join(places)


def simulated() -> str:
    """Cost of a packet, time of a simulated minute of a full link, peak memory."""
    part = "a packet of the simulator"
    lines = []
    for case, words in SIMULATED.items():
        row = rows(part)[case]
        found = re.search(r"(\d+) Gbit/s", case)
        gbps, bytes_ = int(found[1]) if found else 1, 9014 if "9000" in case else 1514
        minute_s = 60 * gbps / (8 * bytes_) * float(row.cost.split()[0])
        lines.append((f"{gbps} Gbit/s, {words}", row.cost, f"{minute_s:,.1f} s", f"{row.mb:,.0f}"))
    head = ("path", "CPU a packet", "one core takes for a minute", "MB")
    return "\n".join(markdown(head, lines))


def beside_ns2() -> str:
    """Packets and whole processes beside ns-2, and the machine of all figures of the page."""
    parts = ("a packet beside ns-2", "whole processes beside ns-2")
    lines = []
    for part in parts:
        for case, row in rows(part).items():
            name, theirs = case.removesuffix(")").split(" (ns-2: ")
            if name in BETWEEN:
                continue
            what = name if part == parts[1] else f"a packet: {name.replace(' x ', ' × ')}"
            lines.append((what, row.cost, theirs, f"{row.ratio:.0f}"))
    head = ("CPU time of", "lfnlab", "ns-2", "ratio")
    where = f"Measured on {_machine(*recorded_parts())}."
    return "\n".join([*markdown(head, lines), "", where])


def commands() -> str:
    """Time and memory of some commands."""
    lines = [
        (f"`{case.split('`')[1]}`", what, row.cost.replace(" of CPU", " CPU"), f"{row.mb:,.0f}")
        for case, row in rows("commands").items()
        if (what := case.split(": `")[0]) in COMMANDS
    ]
    head = ("command", "what it does", "time", "MB")
    return "\n".join(markdown(head, lines))


def speed() -> str:
    """The paragraph of the README."""
    packet, ns2 = rows("a packet of the simulator"), list(rows("a packet beside ns-2").values())
    ratios = sorted(float(row.ratio or 0) for row in ns2[:-1])
    _, wall = list(rows("compares").values())[-1].cost.split(" of ")
    return (
        f"A packet takes {packet['1 flow, 1 Gbit/s x 100 ms'].cost} of CPU time with one flow and "
        f"{packet['10,000 flows at 10 Gbit/s'].cost} with 10,000. lfnlab uses {ratios[0]:.0f} to "
        f"{ratios[-1]:.0f} times less CPU time per packet than ns-2 with 1 to 100 TCP flows "
        f"({ns2[-1].ratio:.0f} times with short flows). A compare of eight laws with three seeds "
        f"over 300 s at 10 Gbit/s takes {wall} on two cores ({_machine('compares')})."
    )


def transfers() -> str:
    """Goodput and CPU time of real transfers."""
    part = "transfers"
    cells: dict[str, list[str]] = {}
    ratios: dict[str, list[str]] = {}
    for case, row in rows(part).items():
        name, gbps = re.fullmatch(r"(.*): (?:sender|receiver), ([\d.]+) Gbit/s", case).groups()  # type: ignore[union-attr]
        cells.setdefault(name, [gbps]).append(row.cost.split()[0])
        ratios.setdefault(name, []).append(f"{row.ratio:.1f}")
    lines = [(PROGRAMS[name], *cells[name], ", ".join(ratios[name])) for name in cells]
    head = ("", "Gbit/s", "sender, µs of CPU a kB", "receiver", "over kernel TCP's")
    return "\n".join([*markdown(head, lines), "", f"Measured on {_machine(part)}."])


def lateness() -> str:
    """How late the emulator delivers, beside a program that reads the clock."""
    part = "path emulator"
    lines: dict[str, list[str]] = {}
    for case, row in rows(part).items():
        path = re.sub(r"(\d)([GMm]|B)", r"\1 \2", case.split(":")[0].replace(" x ", " × "))
        if "late" in case:
            lines[path].append(f"{row.cost} ({row.ratio:.2f})")
        else:
            valid = re.search(r"\((\d of \d) runs valid\)", case)
            lines[path] = [row.cost, valid[1] if valid else ""]
    head = ("path", "CPU a packet", "valid runs", "late, p50", "p99", "p99.9")
    table = markdown(head, [(path, *cells) for path, cells in lines.items()])
    return "\n".join([*table, "", f"Measured on {_machine(part)}."])


def sweep() -> str:
    """The cost of a run beside its simulation, and of very many."""
    cpu, size, whole, table, report = rows("sweeps").values()
    return (
        f"A run costs {cpu.cost} of CPU time beside its simulation, with fsync, and {size.cost} in "
        f"the store (1 s of one flow; aims: {cpu.bar:g} ms and {size.bar:g} kB). A run of 10 s of "
        f"10 Mbit/s takes {whole.cost} with its simulation, {whole.ratio:.2f} of one that keeps "
        f"its tables. Of 100,000 runs `lfn table` takes {table.cost} time and {table.mb:.0f} MB, "
        f"`lfn report` {report.cost} time and {report.mb:.0f} MB ({_machine('sweeps')})."
    )
