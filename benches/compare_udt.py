"""Goodput and CPU time per byte over loopback: our UDT, libudt 4.11 and kernel TCP, in turns.

It needs libudt-dev, g++ and cargo. All move the same file from memory
to memory (/dev/shm) with packets of 1500 bytes. libudt runs its sendfile and recvfile with default
options; ours runs `serve` and `fetch`, the same protocol, and `send` and `recv`, which also check
BLAKE3, also under a key. Kernel TCP has segments of 1448 bytes, no hash, and Reno, which every
kernel has and which does not pace. Writing a file takes
more than receiving it, so both UDTs also fetch one to /dev/null. CPU time is user and system of the
whole process; its ratio to kernel TCP's holds on a busy machine too.
"""

from __future__ import annotations

import base64
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .row import Row

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "crates/transfer/tests/interop/peer.cpp"
#: Sends or receives a file over kernel TCP, 256 kB a call: what Python adds is a thousandth.
TCP = """
import socket, sys
role, port, name = sys.argv[1:]
block = memoryview(bytearray(1 << 18))
here = ("127.0.0.1", int(port))
if role == "send":
    with socket.socket() as peer, open(name, "rb", buffering=0) as file:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1448)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        peer.connect(here)
        while count := file.readinto(block):
            peer.sendall(block[:count])
else:
    with socket.create_server(here) as server, open(name, "wb", buffering=0) as file:
        peer, _ = server.accept()
        while count := peer.recv_into(block):
            file.write(block[:count])
"""
#: Programs, and whether what arrives is thrown away.
KINDS = [
    ("libudt", False),
    ("serve, fetch", False),
    ("send, recv", False),
    ("send, recv, --key", False),
    ("kernel TCP", False),
    ("libudt", True),
    ("serve, fetch", True),
]
#: Of a transfer.
KEYS = ("goodput_mbps", "send_us_per_kB", "receive_us_per_kB")
#: By kind, a dictionary of KEYS a round.
Measured = dict[str, list[dict[str, float]]]


def _built(folder: Path) -> tuple[str, str]:
    """Programs of libudt and ours."""
    peer = folder / "peer"
    command = ["g++", "-O2", "-o", str(peer), str(SOURCE), "-ludt", "-lpthread"]
    subprocess.run(command, check=True)
    build = ["cargo", "build", "--release", "--locked", "-p", "lfn-transfer"]
    subprocess.run([*build, "--message-format=json"], cwd=ROOT, check=True, capture_output=True)
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    return str(peer), str(Path(target) / "release/lfn-udt")


def free_port() -> int:
    """A free UDP port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _cpu_s(process: subprocess.Popen[bytes]) -> float:
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{process.args!r} failed")
    return used.ru_utime + used.ru_stime


def _measure(
    server: list[str], client: list[str], size_bytes: int, *, serves: bool
) -> dict[str, float]:
    """Goodput in Mbit/s, CPU in µs per kB; ``serves``: the server is the one that sends."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    listener = subprocess.Popen(server, **quiet)  # type: ignore[call-overload]
    time.sleep(0.5)
    begun = time.monotonic()
    asker = subprocess.Popen(client, **quiet)  # type: ignore[call-overload]
    client_s = _cpu_s(asker)
    elapsed_s = time.monotonic() - begun
    server_s = _cpu_s(listener)
    send_s, receive_s = (server_s, client_s) if serves else (client_s, server_s)
    return {
        "goodput_mbps": size_bytes * 8e-6 / elapsed_s,
        "send_us_per_kB": send_s * 1e9 / size_bytes,
        "receive_us_per_kB": receive_s * 1e9 / size_bytes,
    }


def missing() -> str | None:
    """The tool that this machine lacks."""
    lacks = [name for name in ("g++", "cargo") if shutil.which(name) is None]
    if not lacks and not Path("/usr/include/udt/udt.h").exists():
        lacks = ["libudt-dev"]
    return f"no {lacks[0]}" if lacks else None


def measure(megabytes: int, rounds: int) -> Measured:
    """Goodput in Mbit/s and CPU in µs per kB at both ends, of each kind, a dictionary a round."""
    size_bytes = megabytes * 1_000_000
    measured: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        peer, ours = _built(folder)
        (folder / "from").mkdir()
        file = folder / "from/file"
        file.write_bytes(os.urandom(1_000_000) * megabytes)
        key = folder / "key"
        key.touch(mode=0o600)
        key.write_bytes(base64.b64encode(os.urandom(32)))
        for _ in range(rounds):
            for kind, discards in KINDS:
                into = folder / "into"
                into.mkdir()
                port, arrived = free_port(), Path("/dev/null") if discards else into / "file"
                here = f"127.0.0.1:{port}"
                common = ["--rate", "20Gbit/s", "--rtt", "10ms", "--quiet"]
                serve = [ours, "serve", str(folder / "from"), "--listen", here, "--once", *common]
                recv = [ours, "recv", str(into), "--listen", here, "--once", *common]
                send = [ours, "send", str(file), "--to", here, *common]
                tcp = [sys.executable, "-I", "-S", "-c", TCP]
                server, client = {
                    "libudt": (
                        [peer, "serve", str(port)],
                        [peer, "fetch", str(port), str(file), str(arrived)],
                    ),
                    "serve, fetch": (serve, [ours, "fetch", here, "file", str(arrived), *common]),
                    "send, recv": (recv, send),
                    "send, recv, --key": ([*recv, "--key", str(key)], [*send, "--key", str(key)]),
                    "kernel TCP": (
                        [*tcp, "receive", str(port), str(arrived)],
                        [*tcp, "send", str(port), str(file)],
                    ),
                }[kind]
                serves = kind in {"libudt", "serve, fetch"}
                row = _measure(server, client, size_bytes, serves=serves)
                if not discards and arrived.stat().st_size != size_bytes:
                    raise SystemExit(f"{kind}: a file of {arrived.stat().st_size} bytes")
                measured.setdefault(f"{kind}, to /dev/null" if discards else kind, []).append(row)
                shutil.rmtree(into)
    return measured


def medians(measured: Measured, kind: str) -> tuple[float, float, float, float, float]:
    """Goodput, CPU of sender and receiver, and both as ratios to kernel TCP's in the same round."""
    goodput, *used = (statistics.median(row[key] for row in measured[kind]) for key in KEYS)
    beside = measured["kernel TCP"]
    ratios = [
        statistics.median(
            row[end] / tcp[end] for row, tcp in zip(measured[kind], beside, strict=True)
        )
        for end in KEYS[1:]
    ]
    return goodput, used[0], used[1], ratios[0], ratios[1]


def rows(rounds: int) -> list[Row]:
    """A gigabyte, each kind at each end."""
    measured = measure(1000, rounds)
    table = []
    for kind in measured:
        goodput, *used, send_ratio, receive_ratio = medians(measured, kind)
        bar = 2.0 if kind == "serve, fetch" else 0.0
        for end, cost, ratio in zip(
            ("sender", "receiver"), used, (send_ratio, receive_ratio), strict=True
        ):
            words = f"{kind}: {end}, {goodput / 1e3:.1f} Gbit/s"
            table.append(Row(words, f"{cost:.2f} µs a kB", ratio, bar))
    return table
