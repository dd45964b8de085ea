# SPDX-License-Identifier: MIT OR Apache-2.0
"""One TCP transfer over the loopback of this process's own network namespace.

Usage: unshare --net python3 transfer.py LAW BYTES DROP_INTERVAL

Run it in a fresh namespace: it changes sysctls, which end with the namespace, that is, with this
process. Segments are 1448 bytes and leave one by one. The receiver's socket filter drops each
segment with probability 1/DROP_INTERVAL (0: none), as a lossy path would.

Prints one JSON object: the law in use, whether the payload arrived intact, the namespace, the
duration, and TCP_INFO after each block that the sender wrote.
"""

import ctypes
import json
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

BLOCK_BYTES = 4 * 1448
UNSENT_BYTES = 256 * 1024  # what the sender keeps ready, so that the window is the limit
TIMEOUT_S = 60

SO_ATTACH_FILTER = 26
# Classic BPF (linux/filter.h): the ancillary load SKF_AD_RANDOM, a 32-bit random word.
LOAD_ABSOLUTE, JUMP_GREATER, RETURN = 0x20, 0x25, 0x06
RANDOM_WORD = (-0x1000 + 56) & 0xFFFFFFFF

TCP_INFO_FORMAT = "8B24I4Q2I2Q"  # struct tcp_info (linux/tcp.h) up to tcpi_segs_in


def prepare_namespace() -> None:
    for name, value in {
        "tcp_no_metrics_save": "1",
        "tcp_rmem": "4096 8388608 8388608",
        "tcp_wmem": "4096 8388608 8388608",
    }.items():
        Path("/proc/sys/net/ipv4", name).write_text(value)
    link = "link set dev lo up mtu 1500 gso_max_segs 1"
    subprocess.run(["ip", *link.split()], check=True)


def drop_at_random(sock: socket.socket, interval: int) -> None:
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


def sample(sock: socket.socket) -> dict[str, int]:
    """The fields of TCP_INFO that the tests use; windows in segments."""
    size = struct.calcsize(TCP_INFO_FORMAT)
    info = struct.unpack(TCP_INFO_FORMAT, sock.getsockopt(socket.SOL_TCP, socket.TCP_INFO, size))
    return {
        "ca_state": info[1],
        "srtt_us": info[8 + 15],
        "ssthresh": info[8 + 17],
        "cwnd": info[8 + 18],
        "retransmits": info[8 + 23],
        "acked_bytes": info[8 + 24 + 2],
        "time_us": time.monotonic_ns() // 1000,
    }


def transfer(law: str, size_bytes: int, drop_interval: int) -> dict[str, object]:
    payload = random.Random(1).randbytes(size_bytes)
    received = bytearray(size_bytes)
    samples = []

    listener = socket.create_server(("127.0.0.1", 0))
    sender = socket.socket()
    for sock in (listener, sender):
        sock.settimeout(TIMEOUT_S)
    sender.setsockopt(socket.SOL_TCP, socket.TCP_CONGESTION, law.encode())
    sender.setsockopt(socket.SOL_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
    sender.connect(listener.getsockname())
    receiver, _ = listener.accept()
    receiver.settimeout(TIMEOUT_S)
    if drop_interval:
        drop_at_random(receiver, drop_interval)

    def receive() -> None:
        view, count = memoryview(received), 0
        while got := receiver.recv_into(view[count:]):
            count += got

    thread = threading.Thread(target=receive)
    start_s = time.monotonic()
    thread.start()
    for offset in range(0, size_bytes, BLOCK_BYTES):
        sender.sendall(payload[offset : offset + BLOCK_BYTES])
        samples.append(sample(sender))
    sender.shutdown(socket.SHUT_WR)
    thread.join(TIMEOUT_S)
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
    prepare_namespace()
    json.dump(transfer(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), sys.stdout)
