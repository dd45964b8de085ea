"""Two interfaces of raw IP in a pcapng file are of one link type, and libpcap calls them different.

A pcapng file names the link type of each interface. libpcap reads only files whose interfaces have
one link type. Seen with tcpdump 4.99.3 and libpcap 1.10.3: two interfaces of LINKTYPE_RAW (101) are
refused with "an interface has a type 101 different from the type of the first interface"; two of
LINKTYPE_IPV4 (228) are read. Expected: both files are read.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from debian import unpacked
from pcapng import interface, packet, section

REFUSED = "an interface has a type 101 different from the type of the first interface"


def main() -> int:
    """0 if libpcap refuses 101 and reads 228, as seen."""
    with tempfile.TemporaryDirectory() as name:
        environment = unpacked(Path(name), "tcpdump=4.99.3-1", "libpcap0.8=1.10.3-1")
        trace = Path(name) / "trace.pcapng"
        said = {}
        for kind in (101, 228):
            trace.write_bytes(section() + 2 * interface(kind) + packet(0) + packet(1, 1))
            done = subprocess.run(
                ["tcpdump", "-nr", trace],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            said[kind] = (len(done.stdout.splitlines()), done.stderr.splitlines()[-1])
            print(f"two interfaces of {kind}: {said[kind][0]} packets; {said[kind][1]}")
    return 0 if REFUSED in said[101][1] and said[101][0] == 0 and said[228][0] == 2 else 1


if __name__ == "__main__":
    sys.exit(main())
