"""A fraction of a second in picoseconds is read wrong by tshark, and one of 2^-40 by libpcap too.

A pcapng file may give its times in any unit of 10^-n or 2^-n seconds (`if_tsresol`, n up to 127).
Seen with tshark 4.0.17 and tcpdump 4.99.3 with libpcap 1.10.3 on a packet 0.123456789 s after a
whole second. Both are right down to 10^-11 and 2^-33; libpcap is right with all powers of ten.
Expected of both: the nanoseconds 123456789 in each row.

Cause, by inference from the output: the product of fraction and 10^9 exceeds 64 bits.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from debian import unpacked
from pcapng import interface, packet, section

SECOND = 1_700_000
SEEN = {
    # Unit (the option's byte), ticks a second: nanoseconds of tcpdump, of tshark.
    (11, 10**11): ("123456789", "123456789"),
    (12, 10**12): ("123456789", "012776324"),
    (0x80 | 40, 2**40): ("006016277", "006016277"),
}


def main() -> int:
    """0 if all rows are as seen."""
    with tempfile.TemporaryDirectory() as name:
        packages = ("tshark=4.0.17-0+deb12u3", "tcpdump=4.99.3-1", "libpcap0.8=1.10.3-1")
        environment = unpacked(Path(name), *packages)
        trace = Path(name) / "trace.pcapng"
        changed = 0
        for (unit, ticks), seen in SEEN.items():
            time = SECOND * ticks + ticks * 123_456_789_012 // 10**12
            trace.write_bytes(section() + interface(228, unit) + packet(time))
            found = []
            for command in (
                ["tcpdump", "--nano", "-ttnr", trace],
                ["tshark", "-nr", trace, "-T", "fields", "-e", "frame.time_epoch"],
            ):
                done = subprocess.run(
                    command, env=environment, capture_output=True, text=True, check=True
                )
                found.append(done.stdout.split()[0].split(".")[1])
            same = tuple(found) == seen
            changed += not same
            base = f"2^-{unit & 0x7F}" if unit & 0x80 else f"10^-{unit}"
            print(f"{base:6} tcpdump {found[0]}, tshark {found[1]}{'' if same else ': CHANGED'}")
    return min(changed, 1)


if __name__ == "__main__":
    sys.exit(main())
