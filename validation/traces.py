"""Compares the window of one flow with Linux's at each sample, on small paths drawn at random.

$ python -m validation traces [--seed 1] [--paths 4] [--kind plain|ecn|no-sack|every-ack] [LAW...]

A law that follows Linux exactly has Linux's window at each sample, from the first to the last. A
tie ends that: if two packets meet at a full queue at the same time, Linux may drop the other one.
So the table shows of each path the fraction of samples with another window, and from when on most
differ. A law for which all paths differ differs by a rule. ``python -m validation hunt`` compares
what the runs achieve in the end, and passes over rules that cost a few percent.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from dataclasses import dataclass, replace

import numpy as np

from lfnlab import Scenario, execute
from lfnlab.analysis.table import markdown, markdown_row
from lfnlab.experiment.executor import SIMULATOR
from lfnlab.testbed.linux_backend import Linux

from . import outcome
from .draw import FRAMING_B, LAWS, USUAL_B, Drawn, DrawnFlow

KINDS = ("plain", "ecn", "no-sack", "every-ack")
SAMPLE = "2ms"
#: Runs end when the path has carried so many packets, or after LONGEST_S.
PACKETS, LONGEST_S = 8000, 20.0
#: The windows part when so many samples in a row have another window, but for this fraction.
ROW, BUT = 50, 0.2


def path(seed: int, law: str, number: int, kind: str = "plain") -> Drawn:
    """Path ``number`` of a law: 2 to 20 Mbit/s, 5 to 158 ms, a quarter to four times a BDP."""
    draws = random.Random(f"{kind} {seed} {law} {number}")
    rate_mbps = round(2 * 10 ** draws.random(), 2)
    rtt_ms = round(5 * 10 ** (1.5 * draws.random()), 2)
    packet_s = (USUAL_B + FRAMING_B) * 8 / (rate_mbps * 1e6)
    bdp_packets = rtt_ms / 1e3 / packet_s
    queue_packets = max(3, round(bdp_packets * 10 ** (1.2 * draws.random() - 0.6)))
    flow = DrawnFlow(law, rtt_ms, sack=kind != "no-sack", delayed_ack=kind != "every-ack")
    duration_s = min(LONGEST_S, round(PACKETS * packet_s, 1))
    drawn = Drawn(duration_s, rate_mbps, queue_packets, (flow,), seed=number + 1)
    if kind != "ecn":
        return drawn
    roomy = 4 * queue_packets + 20
    marked = (replace(flow, ecn=True),)
    return replace(drawn, queue="codel", ecn=True, queue_packets=roomy, flows=marked)


@dataclass(frozen=True)
class Compared:
    """Windows beside Linux's: fraction of samples that differ, and from when on most do."""

    differ: float
    part_s: float | None

    def __str__(self) -> str:
        return f"{self.differ:.0%}" + ("" if self.part_s is None else f" from {self.part_s:.2f} s")


def compared(times_s: np.ndarray, theirs: np.ndarray, mine: np.ndarray) -> Compared:
    """Of windows in segments, at the same times."""
    other = theirs.astype(np.int64) != mine.astype(np.int64)
    if len(other) < ROW:
        return Compared(float(other.mean()) if len(other) else 0.0, None)
    share = np.convolve(other, np.ones(ROW) / ROW, "valid")
    parted = np.flatnonzero(share > 1 - BUT)
    return Compared(float(other.mean()), float(times_s[parted[0]]) if len(parted) else None)


def run(drawn: Drawn) -> Compared:
    """One path on both sides."""
    text = drawn.toml().replace("duration", f'sample = "{SAMPLE}"\nduration', 1)
    scenario = Scenario.from_toml(text)
    windows = []
    for backend in (SIMULATOR, Linux()):
        with tempfile.TemporaryDirectory(prefix="lfn-traces-") as out:
            table = execute(scenario, out=out, backend=backend).runs[0].table("flows")
            times_ms = np.rint(table["t_s"].to_numpy() * 1e3).astype(int)
            windows.append(dict(zip(times_ms, table["cwnd_seg"].to_numpy(), strict=True)))
    mine, theirs = windows
    both_ms = sorted(mine.keys() & theirs.keys())
    return compared(
        np.array(both_ms) / 1e3,
        np.array([theirs[at] for at in both_ms]),
        np.array([mine[at] for at in both_ms]),
    )


def main(arguments: list[str]) -> None:
    """Parses the command line, runs, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m validation traces", description=__doc__)
    parser.add_argument("laws", nargs="*", metavar="LAW", help="default: all of Linux's modules")
    parser.add_argument("--seed", type=int, default=1, help="what is drawn")
    parser.add_argument("--paths", type=int, default=4, help="how many of each law")
    parser.add_argument("--kind", choices=KINDS, default="plain")
    asked = parser.parse_args(arguments)
    if unknown := sorted(set(asked.laws) - set(LAWS)):
        parser.error(f"Linux has no module {', '.join(unknown)}; allowed: {', '.join(LAWS)}")
    if asked.paths < 1:
        parser.error(f"--paths is {asked.paths}; allowed: at least 1")
    if missing := outcome.missing():
        raise SystemExit(f"validation: SKIPPED traces: {missing}")
    print(*markdown(("law", *(f"path {n}" for n in range(asked.paths))), []), sep="\n")
    for law in asked.laws or LAWS:
        found = [run(path(asked.seed, law, n, asked.kind)) for n in range(asked.paths)]
        print(markdown_row((law, *map(str, found))), flush=True)
