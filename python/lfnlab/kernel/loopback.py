# SPDX-License-Identifier: MIT OR Apache-2.0
"""One TCP transfer under a law, over the loopback of a network namespace of its own.

`transfer` runs this file in a fresh namespace, where it changes sysctls; they end with the
namespace, that is, with the process. Segments are 1448 bytes and leave one by one through a
bottleneck of 400 Mbit/s, whose queue never overflows: slow enough to see every window, and (much
slower, TCP small queues would be the limit) fast enough for the window to be what limits. The
receiver's socket filter drops each segment with probability 1/drop_interval.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from lfnlab.errors import LabError, Unavailable

TOOLS = ("unshare", "setpriv", "ip", "tc")
LIMIT_S = 60
RATE = "400mbit"
SAMPLE_EVERY_S = 100e-6  # a fraction of the time that a window of this path takes
TIMEOUT_S = 60
MSS_BYTES = 1448

SO_ATTACH_FILTER = 26
# Classic BPF (linux/filter.h): the ancillary load SKF_AD_RANDOM, a 32-bit random word.
LOAD_ABSOLUTE, JUMP_GREATER, RETURN = 0x20, 0x25, 0x06
RANDOM_WORD = (-0x1000 + 56) & 0xFFFFFFFF

TCP_INFO_FORMAT = "8B24I4Q2I2Q"  # struct tcp_info (linux/tcp.h) up to tcpi_segs_in


def missing() -> str | None:
    """Missing requirement of such a transfer, or None."""
    if absent := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"not installed: {' '.join(absent)} (util-linux, iproute2)"
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        return "no right to make a network namespace"
    return None


def transfer(law: str, size_bytes: int, drop_interval: int) -> dict[str, Any]:
    """Carry a payload under a law of this kernel; it ends with this process, whatever ends that.

    Args:
        law: The kernel's name of it.
        size_bytes: The payload.
        drop_interval: One segment in this many is lost.

    Returns:
        The law in use, whether the payload arrived intact, the namespace, the duration in seconds,
        and TCP_INFO sampled all the while.

    Raises:
        Unavailable: A tool or a right is missing.
        LabError: The transfer failed, or took longer than a minute.
    """
    if why := missing():
        raise Unavailable(f"a transfer over loopback: {why}")
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", sys.executable, "-m", __name__]
    command += [law, str(size_bytes), str(drop_interval)]
    try:
        run = subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = (error.stderr or b"").decode(errors="replace")
        raise LabError(f"{law}: the transfer over loopback failed: {said or error}") from None
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def _prepare_namespace() -> None:
    for name, value in {
        "tcp_no_metrics_save": "1",
        "tcp_rmem": "4096 8388608 8388608",
        "tcp_wmem": "4096 8388608 8388608",
    }.items():
        Path("/proc/sys/net/ipv4", name).write_text(value)
    for command in (
        "ip link set dev lo up mtu 1500 gso_max_segs 1",
        f"tc qdisc add dev lo root tbf rate {RATE} burst 64kb latency 1s",
    ):
        subprocess.run(command.split(), check=True)


def _drop_at_random(sock: socket.socket, interval: int) -> None:
    """Drops each arriving segment with probability 1/interval, before TCP sees it."""
    program = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            (LOAD_ABSOLUTE, 0, 0, RANDOM_WORD),
            (JUMP_GREATER, 0, 1, 0xFFFFFFFF // interval),
            (RETURN, 0, 0, 0xFFFFFFFF),
            (RETURN, 0, 0, 0),
        )
    )
    code = ctypes.create_string_buffer(program)
    sock.setsockopt(
        socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", 4, ctypes.addressof(code))
    )


def _sample(sock: socket.socket) -> dict[str, int]:
    """The fields of TCP_INFO that the tests use; windows in segments."""
    size = struct.calcsize(TCP_INFO_FORMAT)
    info = struct.unpack(TCP_INFO_FORMAT, sock.getsockopt(socket.SOL_TCP, socket.TCP_INFO, size))
    return {
        "ca_state": info[1],
        "unacked": info[8 + 4],
        "srtt_us": info[8 + 15],
        "ssthresh": info[8 + 17],
        "cwnd": info[8 + 18],
        "retransmits": info[8 + 23],
        "pacing_Bps": info[8 + 24],
        "acked_bytes": info[8 + 24 + 2],
        "time_us": time.monotonic_ns() // 1000,
    }


def _carry(law: str, size_bytes: int, drop_interval: int) -> dict[str, object]:
    payload = random.Random(1).randbytes(size_bytes)
    received = bytearray(size_bytes)
    samples = []

    listener = socket.create_server(("127.0.0.1", 0))
    sender = socket.socket()
    for sock in (listener, sender):
        sock.settimeout(TIMEOUT_S)
    sender.setsockopt(socket.SOL_TCP, socket.TCP_CONGESTION, law.encode())
    sender.connect(listener.getsockname())
    receiver, _ = listener.accept()
    receiver.settimeout(TIMEOUT_S)
    _drop_at_random(receiver, drop_interval)

    def send() -> None:
        sender.sendall(payload)
        sender.shutdown(socket.SHUT_WR)

    def receive() -> None:
        view, count = memoryview(received), 0
        while got := receiver.recv_into(view[count:]):
            count += got

    threads = [threading.Thread(target=send), threading.Thread(target=receive)]
    start_s = time.monotonic()
    for thread in threads:
        thread.start()
    while threads[0].is_alive():
        samples.append(_sample(sender))
        time.sleep(SAMPLE_EVERY_S)
    threads[1].join(TIMEOUT_S)
    duration_s = time.monotonic() - start_s
    used = sender.getsockopt(socket.SOL_TCP, socket.TCP_CONGESTION, 16)
    return {
        "law": used.rstrip(b"\0").decode(),
        "intact": received == payload,
        "namespace": os.readlink("/proc/self/ns/net"),
        "duration_s": duration_s,
        "samples": samples,
    }


if __name__ == "__main__":
    _prepare_namespace()
    json.dump(_carry(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), sys.stdout)
