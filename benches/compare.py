"""Wall time of a compare, and how much of it two cores idle.

$ python -m benches.compare [--duration 300s] [--seeds 3]

Eight laws on 10 Gbit/s x 100 ms, one flow each, on two threads. A core is idle while fewer than two
threads want one, which a machine that others use does not change; the wall time needs an idle one.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time

from lfnlab import compare, dumbbell
from lfnlab.cli.app import DEMO_LAWS

from .row import Row
from .sweep import runnable


def measure(duration: str, seeds: int) -> tuple[int, float, float, float]:
    """Runs, seconds of wall time and of CPU, and the share of the wall time that cores idle."""
    base = dumbbell(rate="10Gbit/s", rtt="100ms", buffer="1bdp", duration=duration)
    with tempfile.TemporaryDirectory(prefix="lfn-compare-") as out:
        begun, begun_cpu = time.monotonic(), time.process_time()
        with runnable() as samples:
            start = "uniform(0s, 1s)"  # or all seeds are alike
            results = compare(DEMO_LAWS, base, seeds=seeds, out=out, jobs=2, start=start)
        wall_s, cpu_s = time.monotonic() - begun, time.process_time() - begun_cpu
    idle = 1 - statistics.fmean(min(2, count) for count in samples) / 2
    return len(results.runs), wall_s, cpu_s, idle


def rows() -> list[Row]:
    """A compare of 300 s with three seeds."""
    _, wall_s, _, idle = measure("300s", 3)
    words = "eight laws, three seeds, 300 s at 10 Gbit/s: two cores idle (% of the wall time)"
    return [Row(words, f"{100 * idle:.1f} % of {wall_s:.0f} s", bar=5)]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.compare", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--duration", default="300s")
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    runs, wall_s, cpu_s, idle = measure(asked.duration, asked.seeds)
    print(
        f"{runs} runs of {asked.duration}: {wall_s:.1f} s wall, {cpu_s:.1f} s CPU; "
        f"two cores idle {idle:.1%} of it"
    )


if __name__ == "__main__":
    main()
