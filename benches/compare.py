"""Wall time of a compare, and how much of it two cores idle.

Eight laws on 10 Gbit/s x 100 ms, one flow each, on two threads. A core is idle while fewer than two
threads want one, which a machine that others use does not change; the wall time needs an idle one.
"""

from __future__ import annotations

import statistics
import tempfile
import time

from lfnlab import compare, dumbbell
from lfnlab.cli.runs import DEMO_LAWS

from .row import Row
from .sweep import runnable


def rows() -> list[Row]:
    """A compare of 300 s with three seeds."""
    base = dumbbell(rate="10Gbit/s", rtt="100ms", buffer="1bdp", duration="300s")
    with tempfile.TemporaryDirectory(prefix="lfn-compare-") as out:
        begun_s = time.monotonic()
        with runnable() as samples:
            start = "uniform(0s, 1s)"  # or all seeds are alike
            compare(DEMO_LAWS, base, seeds=3, out=out, jobs=2, start=start)
        wall_s = time.monotonic() - begun_s
    idle = 1 - statistics.fmean(min(2, count) for count in samples) / 2
    words = "eight laws, three seeds, 300 s at 10 Gbit/s: two cores idle (% of the wall time)"
    return [Row(words, f"{100 * idle:.1f} % of {wall_s:.0f} s", bar=5)]
