"""DualPI2 on the emulator under loads that nothing answers: drops and marks coupled by RFC 9332.

$ python -m validation.coupling

UDP of two constant rates, Classic and ECT(1), overloads a link. Classic packets that the link has
no room for are dropped, so their share follows from the rates. It is the square of the base
probability p', and the share of L4S packets that are marked is 2 p' (section 4.1, k = 2).
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

from lfnlab import _core
from lfnlab.analysis.table import markdown
from lfnlab.testbed.ends import prefer

RATE_MBIT = 12
#: Rates in Mbit/s: L4S, Classic.
LOADS = ((1.0, 12.0), (3.0, 10.0), (6.0, 7.0), (8.0, 5.0))
SECONDS = 30.0
COLUMNS = (
    *("L4S, Mbit/s", "Classic", "dropped, %", "by the rates"),
    *("marked, %", "by the rates", "Classic p50, ms"),
)
WARMUP_S, LEAD_S = 5, 1.0
PACKET_BYTES, HEADERS_BYTES = 1500, 28
FRAMED_BITS = 8 * (PACKET_BYTES + 14)
PORT = 9
ECT1 = 1
SCENARIO = """\
schema = 1
duration = "{duration_s}s"
warmup = "{warmup_s}s"
[link]
rate = "{rate_mbit}Mbit/s"
queue = {{ kind = "dualpi2", size = "375kB" }}
[[flow]]
law = "reno"
rtt = "10ms"
"""


def send(seconds: float, rates_mbit: list[float]) -> None:
    """Sends both loads at their times, from the near end."""
    prefer()
    gaps_s = [FRAMED_BITS / (rate * 1e6) for rate in rates_mbit]
    socks = []
    for ecn in (ECT1, 0):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ecn)
        sock.connect((os.environ["LFN_FAR"], PORT))
        socks.append(sock)
    payload = bytes(PACKET_BYTES - HEADERS_BYTES)
    began_s = time.monotonic()
    due_s = [began_s, began_s]
    while (at_s := min(due_s)) < began_s + seconds:
        time.sleep(max(at_s - time.monotonic(), 0))
        first = due_s.index(at_s)
        socks[first].send(payload)
        due_s[first] += gaps_s[first]


def measured(seconds: float, rates_mbit: tuple[float, float]) -> tuple[str, ...]:
    """A row: the loads, shares dropped and marked, and what the RFC says of them."""
    text = SCENARIO.format(duration_s=seconds + WARMUP_S, warmup_s=WARMUP_S, rate_mbit=RATE_MBIT)
    command = [sys.executable, "-m", __spec__.name, "send", str(seconds + WARMUP_S)]
    serve = (
        f"exec {sys.executable} -c 'import socket as s; u = s.socket(2, 2); "
        f't = s.create_server(("", {PORT})); '
        f'u.bind(("", {PORT}))\nwhile True: u.recv(65536)\''
    )
    code, said = _core.run_shell(
        _core.Scenario(text, "coupling.toml"),
        [*command, *map(str, rates_mbit)],
        serve,
        False,
        "0s",
        LEAD_S,
    )
    if code:
        sys.exit(f"coupling: the sender ended with {code}")
    classes = json.loads(said)["links"][0]["classes"]
    l4s, classic = classes["l4s"], classes["classic"]
    offered = classic["packets"] + classic["drops"]
    dropped = classic["drops"] / offered
    room = 1 - (RATE_MBIT - rates_mbit[0]) / rates_mbit[1]
    return (
        *(f"{rate:g}" for rate in rates_mbit),
        f"{dropped * 100:.2f}",
        f"{room * 100:.2f}",
        f"{l4s['marks'] / l4s['packets'] * 100:.2f}",
        f"{2 * room**0.5 * 100:.2f}",
        f"{classic['p50_queue_s'] * 1e3:.1f}",
    )


def rows() -> list[tuple[str, ...]]:
    """A row for each of :data:`LOADS`, as :data:`COLUMNS` has it; takes three minutes."""
    return [measured(SECONDS, load) for load in LOADS]


def main() -> None:
    """Prints the table, or is the sender."""
    if sys.argv[1:2] == ["send"]:
        send(float(sys.argv[2]), [float(rate) for rate in sys.argv[3:]])
        return
    print(*markdown(COLUMNS, rows()), sep="\n")


if __name__ == "__main__":
    main()
