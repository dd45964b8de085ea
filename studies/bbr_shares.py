"""Share of BBR beside CUBIC, by the size of the buffer.

$ python -m studies.bbr_shares

One flow of each on 100 Mbit/s x 40 ms, drop-tail, for 120 s of which the first 20 do not count; six
starts of CUBIC, 0 to 5 s after BBR's, because two flows lock their phases. Prints a Markdown table
of BBR's share of the goodput, mean and range of the six; laws/cards/bbr.md holds it.
"""

from __future__ import annotations

import json
import os

from lfnlab import _core
from lfnlab.analysis.table import markdown

BUFFERS_BDP = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16)
STARTS_S = range(6)
RATE_BPS, RTT_S, PACKET_B = 100e6, 0.04, 1514


def scenario(law: str, buffer_bdp: float, start_s: int) -> str:
    """One run in TOML."""
    packets = max(1, round(buffer_bdp * RATE_BPS * RTT_S / 8 / PACKET_B))
    return "\n".join(
        [
            "schema = 1",
            'duration = "120s"',
            'warmup = "20s"',
            'sample = "off"',
            "[link]",
            f'rate = "{RATE_BPS / 1e6:g}Mbit/s"',
            "[link.queue]",
            f'size = "{packets} packets"',
            f'[[flow]]\nlaw = "{law}"\nrtt = "{RTT_S * 1e3:g}ms"',
            f'[[flow]]\nlaw = "cubic:linux"\nrtt = "{RTT_S * 1e3:g}ms"\nstart = "{start_s}s"',
        ]
    )


def shares(law: str, buffer_bdp: float) -> list[float]:
    """The law's share of the goodput for each start of CUBIC."""
    items = [_core.Scenario(scenario(law, buffer_bdp, start)) for start in STARTS_S]
    runs = _core.run_many(items, len(os.sched_getaffinity(0)), None)
    found = []
    for run in runs:
        assert run is not None  # None stands for a cancelled run
        bbr, cubic = (flow["goodput_bps"] for flow in json.loads(run.summary())["flows"])
        found.append(bbr / (bbr + cubic))
    return found


def main() -> None:
    """Prints the table."""
    rows = []
    for buffer_bdp in BUFFERS_BDP:
        cells = []
        for law in ("bbr", "bbr3"):
            found = shares(law, buffer_bdp)
            mean = sum(found) / len(found)
            cells.append(f"{mean:.2f} ({min(found):.2f} to {max(found):.2f})")
        rows.append((f"{buffer_bdp:g}", *cells))
    print(*markdown(("buffer, BDP", "bbr", "bbr3"), rows), sep="\n")


if __name__ == "__main__":
    main()
