"""The programs at both ends of a test bed.

``python -m lfnlab.testbed.ends end forward|reverse FILES`` receives from the other end, sends the
plan's flows of this direction, and reports them. ``near FILES`` starts this for the forward
direction in a process of its own, and samples the sockets of TCP flows. FILES are descriptors of
unnamed files in memory (memfd_create(2)), which end with their processes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import multiprocessing
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lfnlab import _core
from lfnlab.errors import LabError
from lfnlab.testbed import sock_diag

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


def prefer() -> None:
    """Let this process and its children run before ordinary ones, where the kernel allows it.

    An ordinary one that holds the lock of its socket may lose its processor to others for
    milliseconds. ACKs then wait for the lock, and what they allow leaves in one burst.
    """
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


class Files(NamedTuple):
    """Descriptors of what the programs tell one another: each a JSON object on a line."""

    plan: int
    seen: int
    forward: int
    reverse: int

    @classmethod
    @contextlib.contextmanager
    def made(cls) -> Iterator[Files]:
        """New ones, which the programs inherit."""
        with contextlib.ExitStack() as stack:
            made = []
            for name in cls._fields:
                made.append(os.memfd_create(f"lfn-{name}", 0))
                stack.callback(os.close, made[-1])
            yield cls(*made)

    def __str__(self) -> str:
        return ",".join(map(str, self))


def tell(file: int, said: Plan) -> None:
    """Write an object."""
    rest = json.dumps(said).encode() + b"\n"
    at = os.fstat(file).st_size
    while rest:
        written = os.pwrite(file, rest, at)
        at, rest = at + written, rest[written:]


def told(file: int) -> Plan | None:
    """The last object that was written completely, or None."""
    lines = os.pread(file, os.fstat(file).st_size, 0).splitlines(keepends=True)
    whole = [line for line in lines if line.endswith(b"\n")]
    said: Plan | None = json.loads(whole[-1]) if whole else None
    return said


class End:
    """Handle of an end's process, which locks its file while it runs."""

    def __init__(self, name: str, file: int) -> None:
        self._name, self._file, self._lived = name, file, False

    def check(self) -> None:
        """Look whether it lives, and has not failed.

        Raises:
            LabError: otherwise.
        """
        if os.fstat(self._file).st_size and "failed" in (said := told(self._file) or {}):
            raise LabError(f"{self._name}: {said['failed']}")
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lived = True
            return
        fcntl.lockf(self._file, fcntl.LOCK_UN)
        if self._lived:
            raise LabError(f"{self._name} ended without a result; repeat the command")


def plan_of(files: Files) -> Plan:
    """The plan, and as ``zero_s`` when the scenario begins, by CLOCK_MONOTONIC."""
    plan = told(files.plan)
    assert plan is not None, "it was written before this program began"
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
    # A path that is down for long ends a connection, too; a peer that refuses or resets does not.
    with contextlib.suppress(TimeoutError):
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
    done = subprocess.run(["iperf3", *to, *law, *until], stdout=subprocess.DEVNULL, check=False)
    if done.returncode and time.monotonic() < plan["zero_s"] + end_s - PATIENCE_S:
        raise ChildProcessError(done.returncode, f"iperf3 ended with {done.returncode}")


def serve_iperf3(port: int) -> None:
    """Take flows of iperf3, to the end of the run."""
    command = ["iperf3", "--server", "--port", str(port)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    raise ChildProcessError(done.returncode, f"iperf3 --server ended with {done.returncode}")


def send_udt(plan: Plan, this: _core.TestbedEnd, number: int) -> str:
    """The same over UDT; what was seen of it."""
    flow = plan["flows"][number]
    sleep_until(plan, flow["start_s"])
    end_s = min(flow["stop_s"] or plan["duration_s"], plan["duration_s"])
    return this.send_udt(number, UDT_PORT, end_s - flow["start_s"])


def apart(file: int, work: Callable[[], object]) -> None:
    """Do this in a thread. When it fails, this end says why in its file, and the run is over."""

    def attempt() -> None:
        try:
            work()
        except (OSError, LabError) as error:
            tell(file, {"failed": str(error)})

    threading.Thread(target=attempt, daemon=True).start()


_LISTENERS = Path("/proc/sys/net/ipv4/tcp_congestion_control")
"""The law of this namespace's listeners."""


def take(plan: Plan, this: _core.TestbedEnd, file: int, *, is_far: bool) -> list[socket.socket]:
    """Accept flows; returns the sockets, which must stay open."""
    takers: list[Callable[[], None]] = []
    if is_far and plan["answering_law"]:
        _LISTENERS.write_text(plan["answering_law"], encoding="ascii")
    if (background := plan["background"]) is not None:
        for port, size in ((SHORT_PORT, "short"), (LONG_PORT, "long")):
            takers.append(partial(this.take_tcp, port, background[f"{size}_window_bytes"]))
    if is_far:
        if any(flow["udt"] for flow in plan["flows"]):
            takers.append(partial(this.take_udt, UDT_PORT))
        if plan["program"] == "iperf3":
            takers += [partial(serve_iperf3, flow["far_port"]) for flow in plan["flows"]]
        # The last: with it the command at the near end may begin.
        takers.append(partial(this.take_tcp, TCP_PORT))
    # The kernel throws away what nobody reads.
    sinks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in plan["udp"]]
    for number, sink in enumerate(sinks):
        sink.bind(("", UDP_PORT + number))
    for taker in takers:
        apart(file, taker)
    return sinks


def end(files: Files, direction: str) -> None:
    """One end: takes, sends, says what it sent, and stays until it is killed."""
    prefer()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    file: int = getattr(files, direction)
    fcntl.lockf(file, fcntl.LOCK_EX)
    plan = plan_of(files)
    is_far = direction == "reverse"
    other = os.environ["LFN_NEAR" if is_far else "LFN_FAR"]
    zero_ns = round(plan["zero_s"] * 1e9)
    scenario = _core.Scenario(plan["scenario"], prototypes=False)
    this = _core.TestbedEnd(scenario, other, zero_ns)
    sinks = take(plan, this, file, is_far=is_far)
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
            apart(file, partial(send, plan, flow))
    late_s = time.monotonic() - plan["zero_s"]
    said: Plan = {"late_s": late_s}
    with ThreadPoolExecutor(max(len(senders), 1)) as pool:
        futures = [(what, pool.submit(sender)) for what, sender in senders]
    try:
        said["sent"] = [what | json.loads(future.result()) for what, future in futures]
    except LabError as error:
        said["failed"] = str(error)
    tell(file, said)
    threading.Event().wait()
    del sinks


def near(files: Files) -> None:
    """Have the flows sent, look at them, and wait until both ends have said what they sent."""
    prefer()
    plan = plan_of(files)
    # Forked, since to import all this again takes a second and more of a busy machine.
    multiprocessing.get_context("fork").Process(target=end, args=(files, "forward")).start()
    ends = [End("the near end", files.forward), End("the far end", files.reverse)]

    def check() -> None:
        for each in ends:
            each.check()

    try:
        tell(files.seen, sock_diag.watch(plan, plan["zero_s"], check))
        deadline_s = time.monotonic() + PATIENCE_S
        while None in (told(files.forward), told(files.reverse)):
            check()
            if time.monotonic() > deadline_s:
                break
            time.sleep(0.01)
    except LabError as error:
        tell(files.seen, {"failed": str(error)})
        os._exit(1)
    # Without a word to the peers: the namespace ends with us.
    os._exit(0)


def _files(text: str) -> Files:
    return Files(*map(int, text.split(",")))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["near", descriptors]:
            # A terminal interrupts every end: this one ends at once, and with it the path.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            near(_files(descriptors))
        case ["end", direction, descriptors]:
            end(_files(descriptors), direction)
