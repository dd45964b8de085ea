"""The programs at both ends of a test bed; PLAN is a JSON file.

``python -m lfnlab.testbed_ends far PLAN`` takes what comes.
``python -m lfnlab.testbed_ends near PLAN OUT`` has the flows sent by a process of their own, looks
at their sockets from outside it, and writes what it saw.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from lfnlab import testbed_watch

PORT = 5001
#: Of the flow with the number 0; below those that the kernel gives to others.
NEAR_PORT, IPERF3_PORT = 20_000, 10_000
CHUNK_BYTES = 1 << 18

Plan = dict[str, Any]


def ports(number: int, program: str) -> tuple[int, int]:
    """Of a flow over TCP, near and far: by these its socket is found."""
    return NEAR_PORT + number, IPERF3_PORT + number if program == "iperf3" else PORT


def zero_s(plan: Plan) -> float:
    """When the scenario begins, by CLOCK_MONOTONIC."""
    return int(os.environ["LFN_BEGAN_NS"]) * 1e-9 + float(plan["lead_s"])


def far(plan: Plan) -> None:
    """Take connections until killed."""

    def drain(connection: socket.socket) -> None:
        buffer = bytearray(CHUNK_BYTES)
        # With MSG_TRUNC the kernel throws away what it would copy (tcp(7)).
        with contextlib.suppress(OSError):
            while connection.recv_into(buffer, CHUNK_BYTES, socket.MSG_TRUNC):
                pass

    if plan["program"] == "iperf3":
        for flow in plan["flows"]:
            command = ["iperf3", "--server", "--port", str(flow["far_port"])]
            subprocess.Popen(command, stdout=subprocess.DEVNULL)
    with socket.create_server(("", PORT), backlog=1024) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=drain, args=(connection,), daemon=True).start()


def send_tcp(flow: Plan, zero_s: float) -> None:
    """Send a flow from its start to its end; what ends it early is the end of the run."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_TCP, socket.TCP_CONGESTION, flow["kernel_law"].encode())
    sock.bind(("", flow["near_port"]))
    time.sleep(max(zero_s + flow["start_s"] - time.monotonic(), 0))
    with contextlib.suppress(OSError):
        sock.connect((os.environ["LFN_FAR"], flow["far_port"]))
        chunk = memoryview(bytes(CHUNK_BYTES))
        left, stop_s = flow["size_bytes"], flow["stop_s"]
        while left is None or left > 0:
            if stop_s is not None and time.monotonic() >= zero_s + stop_s:
                # What it has not sent yet it will not send.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.close()
                return
            sent = sock.send(chunk if left is None else chunk[:left])
            left = None if left is None else left - sent
        # All is written, and what is seen of the socket tells when it has arrived.
        threading.Event().wait()


def send_iperf3(flow: Plan, zero_s: float, *, end_s: float) -> None:
    """The same by iperf3, whose first words cost it a few round trips."""
    size_bytes = flow["size_bytes"]
    seconds = min(flow["stop_s"] or end_s, end_s) - flow["start_s"]
    until = ["--time", f"{seconds:.0f}"] if size_bytes is None else ["--bytes", str(size_bytes)]
    to = ["--client", os.environ["LFN_FAR"], "--port", str(flow["far_port"])]
    law = ["--congestion", flow["kernel_law"], "--cport", str(flow["near_port"])]
    time.sleep(max(zero_s + flow["start_s"] - time.monotonic(), 0))
    subprocess.run(["iperf3", *to, *law, *until], stdout=subprocess.DEVNULL, check=False)


def send(plan: Plan) -> None:
    """Send all flows of a plan until killed."""
    began_s = zero_s(plan)
    by_iperf3 = plan["program"] == "iperf3"
    for flow in plan["flows"]:
        what = partial(send_iperf3, end_s=plan["duration_s"]) if by_iperf3 else send_tcp
        threading.Thread(target=what, args=(flow, began_s), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


def near(plan_file: Path) -> dict[str, Any]:
    """What was seen of the flows, and how late all was ready."""
    plan = json.loads(plan_file.read_text())
    began_s = zero_s(plan)
    command = [sys.executable, "-m", __spec__.name, "send", str(plan_file)]
    sender = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert sender.stdout is not None
    sender.stdout.readline()
    late_s = time.monotonic() - began_s
    seen = testbed_watch.watch(plan, began_s)
    return {"late_s": late_s, "flows": [seen[number] for number in sorted(seen)]}


def main() -> None:
    """Run one of the programs."""
    match sys.argv[1:]:
        case ["far", plan]:
            far(json.loads(Path(plan).read_text()))
        case ["send", plan]:
            send(json.loads(Path(plan).read_text()))
        case ["near", plan, out]:
            Path(out).write_text(json.dumps(near(Path(plan))))
            # Without a word to the peers: the namespace ends with us.
            os._exit(0)


if __name__ == "__main__":
    main()
