"""The programs at both ends of a test bed.

``python -m lfnlab.testbed_ends end forward|reverse DIR`` takes what comes from the other end, sends
what the plan in DIR has in this direction, and says in DIR what it sent. ``near DIR`` runs that for
the forward direction in a process of its own, and looks at the sockets of flows over TCP.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab import _core, testbed_watch
from lfnlab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Callable

#: Where flows over TCP, UDT and iperf3 (by number), UDP (by number), the background are taken.
TCP_PORT, UDT_PORT, SHORT_PORT, LONG_PORT = 5001, 5002, 5003, 5004
UDP_PORT, IPERF3_PORT = 6000, 10_000
#: Of the flow with the number 0, at the near end; below those that the kernel gives to others.
NEAR_PORT = 20_000
CHUNK_BYTES = 1 << 18
#: What sends until the end of a scenario says so soon after.
PATIENCE_S = 5.0

Plan = dict[str, Any]


def ports(number: int, program: str) -> tuple[int, int]:
    """Of a flow over TCP, near and far: by these its socket is found."""
    return NEAR_PORT + number, IPERF3_PORT + number if program == "iperf3" else TCP_PORT


def plan_of(directory: Path) -> Plan:
    """The plan, and as ``zero_s`` when the scenario begins, by CLOCK_MONOTONIC."""
    plan: Plan = json.loads((directory / "plan.json").read_text(encoding="utf-8"))
    return plan | {"zero_s": int(os.environ["LFN_BEGAN_NS"]) * 1e-9 + plan["lead_s"]}


def sleep_until(plan: Plan, at_s: float) -> None:
    """Sleep until a time of the scenario."""
    time.sleep(max(plan["zero_s"] + at_s - time.monotonic(), 0))


def send_tcp(plan: Plan, flow: Plan) -> None:
    """Send a flow from its start to its end; what ends it early is the end of the run."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_TCP, socket.TCP_CONGESTION, flow["kernel_law"].encode())
    sock.bind(("", flow["near_port"]))
    sleep_until(plan, flow["start_s"])
    with contextlib.suppress(OSError):
        sock.connect((os.environ["LFN_FAR"], flow["far_port"]))
        chunk = memoryview(bytes(CHUNK_BYTES))
        left, stop_s = flow["size_bytes"], flow["stop_s"]
        while left is None or left > 0:
            if stop_s is not None:
                rest_s = plan["zero_s"] + stop_s - time.monotonic()
                if rest_s <= 0:
                    # What it has not sent yet it will not send.
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    sock.close()
                    return
                sock.settimeout(rest_s)
            with contextlib.suppress(TimeoutError):
                sent = sock.send(chunk if left is None else chunk[:left])
                left = None if left is None else left - sent
        # All is written, and what is seen of the socket tells when it has arrived.
        threading.Event().wait()


def send_iperf3(plan: Plan, flow: Plan) -> None:
    """The same by iperf3, whose first words cost it a few round trips."""
    size_bytes, end_s = flow["size_bytes"], plan["duration_s"]
    seconds = min(flow["stop_s"] or end_s, end_s) - flow["start_s"]
    until = ["--time", f"{seconds:.0f}"] if size_bytes is None else ["--bytes", str(size_bytes)]
    to = ["--client", os.environ["LFN_FAR"], "--port", str(flow["far_port"])]
    law = ["--congestion", flow["kernel_law"], "--cport", str(flow["near_port"])]
    sleep_until(plan, flow["start_s"])
    subprocess.run(["iperf3", *to, *law, *until], stdout=subprocess.DEVNULL, check=False)


def send_udt(plan: Plan, this: _core.TestbedEnd, number: int) -> str:
    """The same over UDT; what was seen of it."""
    flow = plan["flows"][number]
    sleep_until(plan, flow["start_s"])
    end_s = min(flow["stop_s"] or plan["duration_s"], plan["duration_s"])
    return this.send_udt(number, UDT_PORT, end_s - flow["start_s"])


def take(plan: Plan, this: _core.TestbedEnd, *, is_far: bool) -> list[socket.socket]:
    """Take what comes; what must stay open."""
    takers: list[Callable[[], None]] = []
    if (background := plan["background"]) is not None:
        for port, size in ((SHORT_PORT, "short"), (LONG_PORT, "long")):
            takers.append(partial(this.take_tcp, port, background[f"{size}_window_bytes"]))
    if is_far:
        if any(flow["udt"] for flow in plan["flows"]):
            takers.append(partial(this.take_udt, UDT_PORT))
        if plan["program"] == "iperf3":
            for flow in plan["flows"]:
                command = ["iperf3", "--server", "--port", str(flow["far_port"])]
                subprocess.Popen(command, stdout=subprocess.DEVNULL)
        # The last: with it the command at the near end may begin.
        takers.append(partial(this.take_tcp, TCP_PORT))
    # The kernel throws away what nobody reads.
    sinks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in plan["udp"]]
    for number, sink in enumerate(sinks):
        sink.bind(("", UDP_PORT + number))
    for taker in takers:
        threading.Thread(target=taker, daemon=True).start()
    return sinks


def end(directory: Path, direction: str) -> None:
    """One end: takes, sends, says what it sent, and stays until it is killed."""
    plan = plan_of(directory)
    is_far = direction == "reverse"
    other = os.environ["LFN_NEAR" if is_far else "LFN_FAR"]
    zero_ns = round(plan["zero_s"] * 1e9)
    this = _core.TestbedEnd(plan["scenario"], plan["seed"], other, zero_ns)
    sinks = take(plan, this, is_far=is_far)
    senders: list[tuple[Plan, Callable[[], str]]] = [
        ({"udp": source["name"]}, partial(this.send_udp, number, UDP_PORT + number))
        for number, source in enumerate(plan["udp"])
        if source["direction"] == direction
    ]
    if (background := plan["background"]) is not None:
        law = background["kernel_law"]
        send_background = partial(this.send_background, is_far, SHORT_PORT, LONG_PORT, law)
        senders.append(({"background": background["law"]}, send_background))
    for number, flow in enumerate([] if is_far else plan["flows"]):
        if flow["udt"]:
            senders.append(({"flow": number}, partial(send_udt, plan, this, number)))
        else:
            send = send_iperf3 if plan["program"] == "iperf3" else send_tcp
            threading.Thread(target=send, args=(plan, flow), daemon=True).start()
    late_s = time.monotonic() - plan["zero_s"]
    said: Plan = {"late_s": late_s}
    with ThreadPoolExecutor(max(len(senders), 1)) as pool:
        futures = [(what, pool.submit(sender)) for what, sender in senders]
    try:
        said["sent"] = [what | json.loads(future.result()) for what, future in futures]
    except LabError as error:
        said["failed"] = str(error)
    part = directory / f"{direction}.part"
    part.write_text(json.dumps(said), encoding="utf-8")
    part.rename(directory / f"{direction}.json")
    threading.Event().wait()
    del sinks


def near(directory: Path) -> None:
    """Have the flows sent, look at them, and wait until both ends have said what they sent."""
    plan = plan_of(directory)
    # Forked, since to import all this again takes a second and more of a busy machine.
    multiprocessing.get_context("fork").Process(target=end, args=(directory, "forward")).start()
    seen = testbed_watch.watch(plan, plan["zero_s"])
    (directory / "seen.json").write_text(json.dumps(seen), encoding="utf-8")
    said = [directory / f"{direction}.json" for direction in ("forward", "reverse")]
    deadline_s = time.monotonic() + PATIENCE_S
    while not all(file.exists() for file in said) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    # Without a word to the peers: the namespace ends with us.
    os._exit(0)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["near", directory]:
            near(Path(directory))
        case ["end", direction, directory]:
            end(Path(directory), direction)
