"""An iperf3 server's JSON of a UDP test counts every packet and 0 bytes.

`iperf3 -s --json` with a client `iperf3 -u` over loopback: the server's `end.sum` says
`"sender": false`, the number of datagrams that arrived, and 0 bytes. The bytes that arrived are in
`end.sum_received` alone. Seen with iperf3 3.12. Expected: the bytes of the datagrams that `end.sum`
counts.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from debian import unpacked


def main() -> int:
    """0 if the server's bytes are 0 as seen."""
    with tempfile.TemporaryDirectory() as name:
        environment = unpacked(Path(name), "iperf3=3.12-1+deb12u2")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        command = ["iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", port, "--json"]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True
        ) as server:
            time.sleep(1)
            client = ["iperf3", "-u", "-c", "127.0.0.1", "-p", port, "-b", "5M", "-l", "1000"]
            subprocess.run(
                [*client, "-t", "1"], env=environment, check=True, stdout=subprocess.DEVNULL
            )
            end = json.loads(server.communicate(timeout=10)[0])["end"]
    total, received = end["sum"], end["sum_received"]
    print(f"end.sum: {total['packets']} packets, {total['bytes']} bytes")
    print(f"end.sum_received: {received['packets']} packets, {received['bytes']} bytes")
    seen = total["packets"] > 0 and not total["sender"] and total["bytes"] == 0
    return 0 if seen and received["bytes"] == 1000 * received["packets"] else 1


if __name__ == "__main__":
    sys.exit(main())
