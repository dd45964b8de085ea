"""CPU time per packet: the laboratory against ns-2 and ns-3, the same work on one core.

$ python -m benches.compare_ns [--quick] [--ns3] [--rounds N] [--json FILE]
$ python -m benches.compare_ns --whole [--rounds N]

Run from the repository's root. The simulators take turns, since the speed of a shared machine moves
by a factor of two; ratios are of neighbouring runs. Each simulator runs every scenario for a short
and for a long time, and its cost is the difference of the two in CPU time (user and system, of the
whole child process) over the difference in data packets delivered at the bottleneck: start-up of
program and flows, which a long run does not feel, drops out. ns-2 runs at its best setting: Sack1,
headers in use only, the faster of its two fast schedulers.

With --whole the two are what a user starts: `lfn run --no-report`, which samples, stores its tables
and prints a summary, and ns-2 with a script that prints a count. Each simulates five million
packets, on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from validation import ns2, ns3
from validation.ns2 import PAYLOAD_B
from validation.scenarios import RTT_SPREAD, STAGGER_S, Path, Run

from .cases import FILES
from .row import Row

PACKET_B = 1500

#: Runs the scenario that comes on standard input and prints the data packets delivered.
RUN = """
import json, sys
from lfnlab import _core
(run,) = _core.run_many([_core.Scenario(sys.stdin.read())], 1, None)
print(json.loads(run.summary())["data_packets_delivered"])
"""


@dataclass(frozen=True)
class Work:
    """One scenario of the comparison, and for how long each simulator runs it."""

    name: str
    path: Path
    long_s: float
    #: None where the peer is not asked.
    ns2_long_s: float | None
    ns3_long_s: float | None = None
    #: Load of short flows as shares of the rate: forward and reverse.
    background: tuple[float, float] = (0, 0)

    @property
    def short_s(self) -> float:
        """Until every flow has left slow start, and ns-2 has made agents for the short flows."""
        return 1 + self.path.flows * _stagger_s(self.path) + (10 if any(self.background) else 0)


def _path(rate_bps: float, rtt_s: float, flows: int, packet_b: int = PACKET_B) -> Path:
    path = Path(rate_bps, rtt_s, 1, 0, 0, packet_b, flows)
    share = max(2, round(path.bdp_packets / flows))
    return replace(path, ssthresh_segments=share, rtt_spread=RTT_SPREAD if flows > 1 else 0)


WORK = [
    Work("1 flow, 1 Gbit/s x 100 ms", _path(1e9, 0.1, 1), 101, 21, 2.5),
    Work("10 flows, 1 Gbit/s x 100 ms", _path(1e9, 0.1, 10), 101, 21, 3.0),
    Work("100 flows, 1 Gbit/s x 100 ms", _path(1e9, 0.1, 100), 101, 21, 13.0),
    Work("1 flow, 10 Gbit/s x 100 ms", _path(1e10, 0.1, 1), 21, 3),
    Work(
        "1 flow and short flows, 1 Gbit/s x 100 ms",
        _path(1e9, 0.1, 1),
        111,
        31,
        background=(0.1, 0.05),
    ),
    Work("10,000 flows, 10 Gbit/s x 100 ms", _path(1e10, 0.1, 10_000), 22, None),
]
"""Peers run for less time where they are slow: cost per packet does not depend on it."""


@dataclass(frozen=True)
class Cost:
    """CPU time and delivered packets of one child process."""

    cpu_s: float
    packets: int


def _child(command: list[str], given: str = "") -> tuple[float, str]:
    """Runs ``command`` on one core; its CPU seconds, of its children too, and its output."""
    with tempfile.TemporaryFile("w+") as source, tempfile.TemporaryFile("w+") as output:
        source.write(given)
        source.seek(0)
        process = subprocess.Popen(command, stdin=source, stdout=output, preexec_fn=_one_core)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError(f"exit {os.waitstatus_to_exitcode(status)}: {' '.join(command)}")
        output.seek(0)
        return usage.ru_utime + usage.ru_stime, output.read()


def _one_core() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def transfers(work: Work, duration_s: float) -> list[tuple[float, int, int, int]]:
    """Short flows of ``work``: start in seconds, bytes, direction (0 forward), RTT in ms.

    Poisson arrivals; sizes of a Pareto distribution of shape 1.2, 25 packets on average without the
    bound of 84 MB; RTTs of 10 to 200 ms.
    """
    mean_b, shape = 25 * PAYLOAD_B, 1.2
    found = []
    for direction, share in enumerate(work.background):
        draw, at_s = random.Random(direction), 0.0
        per_s = share * work.path.rate_bps / 8 / mean_b
        while share and (at_s := at_s + draw.expovariate(per_s)) < duration_s:
            size_b = min(84e6, mean_b * (1 - 1 / shape) * draw.paretovariate(shape))
            found.append((at_s, round(size_b), direction, 10 * draw.randint(1, 20)))
    return sorted(found)


def scenario(work: Work, duration_s: float) -> str:
    """The laboratory's scenario in TOML: Reno as ns-2 has it, no samples, at most ten RTTs.

    Writes the files of vectors that it names.
    """
    path = work.path
    lines = [
        "schema = 1",
        f'duration = "{duration_s:g}s"',
        'sample = "off"',
        'compat = "ns2"',
        "[link]",
        f'rate = "{path.rate_bps / 1e6:g}Mbit/s"',
        "[link.queue]",
        'kind = "drop-tail"',
        f'size = "{path.buffer_packets} packets"',
    ]
    groups = min(path.flows, 10)
    sources = replace(path, flows=groups)
    for group in range(groups):
        lines += [
            "[[flow]]",
            'law = "reno"',
            f"count = {path.flows // groups}",
            f'rtt = "{sources.flow_rtt_s(group) * 1e3:.6f}ms"',
            f'start = "uniform(0s, {path.flows * _stagger_s(path):g}s)"',
            f'packet = "{path.packet_b}B"',
            f'initial_ssthresh = "{path.ssthresh_segments} packets"',
        ]
    if short := transfers(work, duration_s):
        FILES.mkdir(parents=True, exist_ok=True)
        for direction, verb in enumerate(("send", "receive")):
            file = FILES / f"{verb}.txt"
            file.write_text(
                f"duration {duration_s:g}s\n"
                + "".join(
                    f"connection {at_s:.9f}s rtt {rtt_ms}ms mss {PAYLOAD_B}B\n{verb} {size_b}B\n"
                    for at_s, size_b, way, rtt_ms in short
                    if way == direction
                )
            )
            lines += ["[[traffic]]", f'vectors = {{ file = "{file}" }}']
    return "\n".join(lines) + "\n"


def _stagger_s(path: Path) -> float:
    return STAGGER_S / 10 if path.flows <= 100 else 1 / path.flows


def ours(work: Work, duration_s: float) -> Cost:
    """Runs the scenario without samples, in a Python that does nothing else."""
    cpu_s, output = _child([sys.executable, "-c", RUN], scenario(work, duration_s))
    return Cost(cpu_s, int(output))


def _peer_cost(command: list[str]) -> Cost:
    cpu_s, output = _child(command)
    words = output.split()
    return Cost(cpu_s, int(words[words.index("delivered") + 1]))


def on_ns2(scheduler: str) -> Callable[[Work, float], Cost]:
    """Runs ns-2 with one of its schedulers."""

    def run(work: Work, duration_s: float) -> Cost:
        path = replace(work.path, duration_s=duration_s)
        settings = {"scheduler": scheduler, "stagger_s": _stagger_s(path)}
        if short := transfers(work, duration_s):
            FILES.mkdir(parents=True, exist_ok=True)
            settings["transfers"] = file = FILES / "transfers.txt"
            file.write_text("".join(f"{' '.join(map(str, row))}\n" for row in short))
        return _peer_cost(ns2.command(Run("sack1", path), **settings))

    return run


def on_ns3(program: FilePath) -> Callable[[Work, float], Cost]:
    """Runs the ns-3 program."""

    def run(work: Work, duration_s: float) -> Cost:
        path = replace(work.path, duration_s=duration_s)
        return _peer_cost(ns3.command(program, Run("reno", path), stagger_s=_stagger_s(path)))

    return run


def cost_ns(run: Callable[[Work, float], Cost], work: Work, long_s: float) -> float:
    """CPU nanoseconds per data packet delivered, between ``work.short_s`` and ``long_s``."""
    short, long = run(work, work.short_s), run(work, long_s)
    return 1e9 * (long.cpu_s - short.cpu_s) / (long.packets - short.packets)


def _median(values: list[float]) -> float | None:
    return round(statistics.median(values), 1) if values else None


def compare(work: Work, rounds: int, quick: bool, ns3_program: FilePath | None) -> dict[str, Any]:
    """Runs one scenario on everything, ``rounds`` times in turn."""
    shorter = 0.3 if quick else 1.0
    mine, theirs, ratios, slow = [], [], [], []
    for _ in range(rounds):
        mine.append(cost_ns(ours, work, work.short_s + shorter * (work.long_s - work.short_s)))
        if work.ns2_long_s is not None and ns2.missing() is None:
            until_s = work.short_s + shorter * (work.ns2_long_s - work.short_s)
            theirs.append(
                min(cost_ns(on_ns2(name), work, until_s) for name in ("Calendar", "Splay"))
            )
            ratios.append(theirs[-1] / mine[-1])
    if work.ns3_long_s is not None and ns3_program is not None:
        slow.append(cost_ns(on_ns3(ns3_program), work, work.ns3_long_s))
    return {
        "scenario": work.name,
        "ours_ns": _median(mine),
        "ns2_ns": _median(theirs),
        "ns3_ns": _median(slow),
        "ns2_over_ours": _median(ratios),
        "ns3_over_ours": round(slow[0] / statistics.median(mine)) if slow else None,
    }


def real_time_factor() -> float:
    """Simulated over CPU seconds of one flow at 100 Gbit/s x 100 ms with 9000-byte packets."""
    work = Work("100 Gbit/s", _path(1e11, 0.1, 1, packet_b=9000), 11, None)
    short, long = ours(work, work.short_s), ours(work, work.long_s)
    return (work.long_s - work.short_s) / (long.cpu_s - short.cpu_s)


def compare_whole(flows: int, rounds: int) -> list[str]:
    """Cells with medians: CPU seconds of lfnlab's and of ns-2's process, and their ratio."""
    work = Work("whole", _path(1e9, 0.1, flows), 61, 61)
    path = replace(work.path, duration_s=work.long_s)
    settings = {"stagger_s": _stagger_s(path)}
    mine, theirs = [], []
    with tempfile.TemporaryDirectory() as home:
        file = FilePath(home, "scenario.toml")
        file.write_text(scenario(work, work.long_s).replace('sample = "off"\n', ""))
        for i in range(rounds):
            out = ["--out", f"{home}/{i}"]
            mine.append(_child([f"{sys.prefix}/bin/lfn", "run", str(file), "--no-report", *out])[0])
            theirs.append(
                min(
                    _child(ns2.command(Run("sack1", path), scheduler=scheduler, **settings))[0]
                    for scheduler in ("Calendar", "Splay")
                )
            )
    ratio = statistics.median(peer / own for peer, own in zip(theirs, mine, strict=True))
    return [
        f"{statistics.median(mine):.2f}",
        f"{statistics.median(theirs):.2f}",
        f"{ratio:.1f}",
    ]


def rows(rounds: int) -> list[Row]:
    """Work that ns-2 does too, a packet each: how many times what lfnlab takes."""
    found = [compare(work, rounds, quick=False, ns3_program=None) for work in WORK]
    return [
        Row(
            f"{row['scenario']} (ns-2: {row['ns2_ns']} ns)",
            f"{row['ours_ns']} ns",
            row["ns2_over_ours"],
        )
        for row in found
        if row["ns2_ns"] is not None
    ]


def whole_rows(rounds: int) -> list[Row]:
    """Whole processes, five million packets each."""
    table = []
    for flows, bar in ((1, 12.0), (100, 16.0)):
        mine, theirs, ratio = compare_whole(flows, rounds)
        words = f"{flows} flow{'s'[: flows - 1]}, five million packets (ns-2: {theirs} s)"
        table.append(Row(words, f"{mine} s", float(ratio), bar, at_least=True))
    return table


def _print_row(name: str, cells: list[str]) -> None:
    print(f"{name:34}", *(f"{cell:>10}" for cell in cells), flush=True)


def main() -> None:
    """Measures, prints a table, and with ``--json`` writes the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.compare_ns", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="a third of the simulated time")
    parser.add_argument("--ns3", action="store_true", help="ask ns-3 too: minutes")
    parser.add_argument("--whole", action="store_true", help="whole processes instead")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=FilePath, help="write the figures to this file")
    arguments = parser.parse_args()
    for name, missing in (
        ("ns-2", ns2.missing()),
        ("ns-3", ns3.missing() if arguments.ns3 else None),
    ):
        if missing:
            print(f"SKIPPED {name}: {missing}", file=sys.stderr)
    if arguments.whole:
        _print_row("CPU s, five million packets", ["lfn run", "ns-2", "ratio"])
        for flows in (1, 100) if ns2.missing() is None else ():
            _print_row(f"{flows} flow{'s'[: flows - 1]}", compare_whole(flows, arguments.rounds))
        return
    program = None
    if arguments.ns3 and ns3.missing() is None:
        program = ns3.build(FilePath("build/validation/ns3"))

    _print_row("CPU ns per data packet", ["ours", "ns-2", "ns-3", "ns-2/ours", "ns-3/ours"])
    rows = []
    for work in WORK:
        row = compare(work, arguments.rounds, arguments.quick, program)
        rows.append(row)
        shown = ["-" if value is None else f"{value:g}" for value in list(row.values())[1:]]
        _print_row(work.name, shown)
    factor = round(statistics.median(real_time_factor() for _ in range(arguments.rounds)), 2)
    print(f"100 Gbit/s x 100 ms, 9000-byte packets: {factor:g} times faster than real time")
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"rows": rows, "real_time_factor": factor}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
