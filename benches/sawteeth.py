"""A screening of laws and paths by the fluid: its time, and how far it is from the fine course.

$ python -m benches.sawteeth [--points N]

Points are drawn: every law, 10 Mbit/s to 10 Gbit/s, 5 to 300 ms, buffers of 0.03 to 3 BDP.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from lfnlab import laws
from lfnlab.errors import LabError
from lfnlab.theory import fluid
from lfnlab.theory.sawteeth import sawteeth

PACKET_BITS = 12e3
#: Points of which the fine course is computed as well, on paths of at most so many packets.
COMPARED, COMPARED_PACKETS = 300, 2000


def main() -> None:
    """Draws, measures and prints."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.sawteeth", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--points", type=int, default=100_000)
    n = parser.parse_args().points
    draw = np.random.default_rng(1)
    names = draw.choice([law.name for law in laws()], n)
    rates_pps = 10 ** draw.uniform(7, 10, n) / PACKET_BITS
    rtts_s = 0.005 * 60 ** draw.uniform(0, 1, n)
    bdps = rates_pps * rtts_s
    buffers = bdps * 10 ** draw.uniform(-1.5, 0.5, n)

    begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
    found = sawteeth(names, rates_pps, rtts_s, buffers)
    wall_s, cpu_s = time.perf_counter() - begun_s, time.process_time() - begun_cpu_s
    without = sum(wrong is not None for wrong in found.wrong)
    print(f"{n} points: {wall_s:.1f} s, {cpu_s:.1f} s of CPU; {without} without a sawtooth")

    apart: dict[str, list[float]] = {"mean_window": [], "period_s": [], "utilization": []}
    for at in np.flatnonzero(bdps + buffers < COMPARED_PACKETS)[:COMPARED]:
        try:
            point = str(names[at]), rates_pps[at], rtts_s[at], buffers[at]
            fine = fluid.sawtooth(*point, code=True)
        except LabError:
            continue
        for column, values in apart.items():
            ours, theirs = getattr(found, column)[at], getattr(fine, column)
            if np.isfinite(ours) and np.isfinite(theirs):
                values.append(abs(ours / theirs - 1))
    for column, values in apart.items():
        half, most = np.percentile(values, [50, 95])
        print(
            f"{column}: {half:.2%} apart in the median, at most {most:.1%} in 95 % of {len(values)}"
        )


if __name__ == "__main__":
    main()
