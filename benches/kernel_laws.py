"""Cost per ACK of a law in Linux and of Linux's own cubic, by the clock for BPF programs.

$ python -m benches.kernel_laws [--rounds N] [LAW...]

As root, with clang-14, libbpf-dev and bpftool. Linux's cubic is behind BPF programs that only
call its functions, so both are timed in the same way: all programs of a law, entry and exit
included, over a transfer through losses on the loopback of a namespace. Laws take turns; a figure
is the median of the rounds, which other work on the machine disturbs least.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from lfnlab import kernel
from lfnlab.analysis.table import markdown
from lfnlab.kernel import loopback
from lfnlab.kernel.libbpf import Attached, library

ROOT = Path(__file__).parent.parent
SIZE_BYTES = 16_000_000
DROP_INTERVAL = 1000
BUILT_IN = "builtin_cubic"


def built_in() -> bytes:
    """The object of Linux's own cubic."""
    with tempfile.NamedTemporaryFile(suffix=".o") as out:
        command = ["clang-14", "-O2", "-g", "-target", "bpf", "-mcpu=v3", f"-I{ROOT / 'kernel'}"]
        source = Path(__file__).parent / "builtin_cubic.bpf.c"
        subprocess.run([*command, "-c", source, "-o", out.name], check=True)
        return Path(out.name).read_bytes()


def programs() -> dict[int, dict[str, int | str]]:
    """The struct_ops programs of this kernel, by number."""
    run = subprocess.run(["bpftool", "--json", "prog", "list"], check=True, capture_output=True)
    return {listed["id"]: listed for listed in json.loads(run.stdout)}


def cost_ns(name: str, image: bytes) -> float:
    """Time of all programs of one law over one transfer, for each ACK."""
    before = set(programs())
    with Attached(name, image):
        loopback.transfer(name, SIZE_BYTES, DROP_INTERVAL)
        ours = [listed for number, listed in programs().items() if number not in before]
    spent_ns = sum(int(listed.get("run_time_ns", 0)) for listed in ours)
    acks = sum(
        int(listed.get("run_cnt", 0))
        for listed in ours
        if listed["name"] in ("pkts_acked", "cong_control")
    )
    return spent_ns / acks


def main() -> None:
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benches.kernel_laws")
    parser.add_argument("law", nargs="*", help="default: all")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    chosen = [kernel.find(name) for name in arguments.law] or kernel.laws()
    images = {BUILT_IN: built_in()} | {law.kernel_name: law.image() for law in chosen}
    costs: dict[str, list[float]] = {name: [] for name in images}
    timing = library().bpf_enable_stats(0)  # BPF_STATS_RUN_TIME, until the descriptor closes
    try:
        for _ in range(arguments.rounds):
            for name, image in images.items():
                costs[name].append(cost_ns(name, image))
    finally:
        os.close(timing)
    base = statistics.median(costs[BUILT_IN])
    rows = []
    for name, values in costs.items():
        median = statistics.median(values)
        extremes = f"{min(values):.0f} to {max(values):.0f}"
        rows.append((name, f"{median:.0f}", extremes, f"{median / base:.1f}"))
    headings = ("law", "ns an ACK", "least to most", "beside built-in cubic")
    print(*markdown(headings, rows), sep="\n")


if __name__ == "__main__":
    main()
