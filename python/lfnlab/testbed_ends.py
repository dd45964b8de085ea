"""The programs at both ends of a test bed; they use nothing but Python's own library.

``testbed_ends.py receive`` takes connections and throws away what comes on them.
``testbed_ends.py send PLAN OUT`` sends the flows of a plan, a JSON file, and writes what TCP_INFO
said of each: rows on the scenario's grid, and events and means from looks every few milliseconds.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import struct
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PORT = 5001
CHUNK_BYTES = 1 << 18
LOOK_EVERY_S = 0.005
#: struct tcp_info (linux/tcp.h) up to tcpi_min_rtt.
TCP_INFO = struct.Struct("=8B24I4Q4I")
INFINITE_SSTHRESH = 0x7FFFFFFF
OPEN, CWR, RECOVERY, LOSS = 0, 2, 3, 4
#: Kinds of the table ``events`` (docs/results.md).
KINDS = {RECOVERY: 0, LOSS: 1, CWR: 2}
END_OF_RECOVERY = 4


def receive() -> None:
    """Take connections until killed."""

    def drain(connection: socket.socket) -> None:
        buffer = bytearray(CHUNK_BYTES)
        # With MSG_TRUNC the kernel throws away what it would copy (tcp(7)).
        with contextlib.suppress(OSError):
            while connection.recv_into(buffer, CHUNK_BYTES, socket.MSG_TRUNC):
                pass

    with socket.create_server(("", PORT), backlog=1024) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=drain, args=(connection,), daemon=True).start()


def info(sock: socket.socket) -> dict[str, int]:
    """The fields of TCP_INFO that a test bed looks at."""
    found = TCP_INFO.unpack(sock.getsockopt(socket.SOL_TCP, socket.TCP_INFO, TCP_INFO.size))
    words, longs, last = found[8:32], found[32:36], found[36:40]
    return {
        "state": found[1],
        "unacked": words[4],
        "lost": words[6],
        "srtt_us": words[15],
        "ssthresh": words[17],
        "cwnd": words[18],
        "retransmits": words[23],
        "pacing_bytes_s": longs[0],
        # Linux counts the SYN.
        "acked_bytes": max(longs[2] - 1, 0),
        "min_rtt_us": last[3],
    }


def ssthresh_seg(seen: dict[str, int]) -> float:
    """Infinite before the first reduction; JSON of Python knows the word."""
    return math.inf if seen["ssthresh"] >= INFINITE_SSTHRESH else float(seen["ssthresh"])


@dataclass
class Flow:
    """A flow, its socket, and what was seen of it."""

    number: int
    plan: dict[str, Any]
    sock: socket.socket
    sending: bool = False
    last: dict[str, int] | None = None
    last_s: float = 0.0
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    cwnd_seg_s: float = 0.0
    seen_s: float = 0.0
    cwnds: list[int] = field(default_factory=list)
    completed_s: float | None = None
    warm_bytes: int = 0

    def send(self, zero_s: float, far: str) -> None:
        """From its start to its end; what ends it early is the end of the run."""
        time.sleep(max(zero_s + self.plan["start_s"] - time.monotonic(), 0))
        with contextlib.suppress(OSError):
            self.sock.connect((far, PORT))
            self.sending = True
            chunk = memoryview(bytes(CHUNK_BYTES))
            left = self.plan["size_bytes"]
            stop_s = self.plan["stop_s"]
            while left is None or left > 0:
                if stop_s is not None and time.monotonic() >= zero_s + stop_s:
                    break
                sent = self.sock.send(chunk if left is None else chunk[:left])
                left = None if left is None else left - sent

    def look(self, now_s: float, *, on_grid: bool, warm: bool) -> None:
        """Ask the kernel; ``warm`` once averages have begun."""
        if not self.sending:
            return
        try:
            seen = info(self.sock)
        except OSError:
            return
        before = self.last or seen
        self._note_state(now_s, before, seen)
        if warm:
            self.cwnd_seg_s += before["cwnd"] * (now_s - self.last_s)
            self.seen_s += now_s - self.last_s
            self.cwnds.append(seen["cwnd"])
        else:
            self.warm_bytes = seen["acked_bytes"]
        size = self.plan["size_bytes"]
        if size is not None and self.completed_s is None and seen["acked_bytes"] >= size:
            self.completed_s = now_s - self.plan["start_s"]
        if on_grid:
            self.rows.append(
                (
                    now_s,
                    self.number,
                    float(seen["cwnd"]),
                    ssthresh_seg(seen),
                    seen["srtt_us"] * 1e-6,
                    seen["unacked"],
                    seen["acked_bytes"],
                    seen["retransmits"],
                    seen["state"],
                    # All ones: not paced.
                    0.0 if seen["pacing_bytes_s"] >= 1 << 63 else seen["pacing_bytes_s"] * 8.0,
                )
            )
        self.last, self.last_s = seen, now_s

    def _note_state(self, now_s: float, before: dict[str, int], seen: dict[str, int]) -> None:
        if before["state"] == seen["state"]:
            return
        kind = KINDS.get(seen["state"])
        if kind is None and before["state"] in KINDS and seen["state"] == OPEN:
            kind = END_OF_RECOVERY
        if kind is not None:
            windows = (float(before["cwnd"]), float(seen["cwnd"]), ssthresh_seg(seen))
            self.events.append((now_s, self.number, kind, *windows, seen["lost"]))

    def found(self) -> dict[str, Any]:
        """What was seen, for JSON."""
        last = self.last or dict.fromkeys(
            ("acked_bytes", "retransmits", "srtt_us", "min_rtt_us"), 0
        )
        return {
            "rows": self.rows,
            "events": self.events,
            "mean_cwnd": self.cwnd_seg_s / self.seen_s if self.seen_s else 0.0,
            "min_cwnd": min(self.cwnds, default=0),
            "max_cwnd": max(self.cwnds, default=0),
            "acked_bytes": last["acked_bytes"],
            "warm_bytes": self.warm_bytes,
            "retransmits": last["retransmits"],
            "srtt_s": last["srtt_us"] * 1e-6,
            "min_rtt_s": last["min_rtt_us"] * 1e-6,
            "completion_s": self.completed_s,
            "looks": len(self.cwnds),
        }


def send(plan: dict[str, Any]) -> dict[str, Any]:
    """Send all flows of a plan; what was seen of each, and when the first look could be."""
    zero_s = int(os.environ["LFN_BEGAN_NS"]) * 1e-9 + plan["lead_s"]
    flows = []
    for number, flow in enumerate(plan["flows"]):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_TCP, socket.TCP_CONGESTION, flow["kernel_law"].encode())
        flows.append(Flow(number, flow, sock))
    for flow in flows:
        threading.Thread(
            target=flow.send, args=(zero_s, os.environ["LFN_FAR"]), daemon=True
        ).start()
    late_s = time.monotonic() - zero_s
    look, row = 0, 0
    while (now_s := time.monotonic() - zero_s) < plan["duration_s"]:
        on_grid = now_s >= row * plan["sample_s"]
        row += on_grid
        for flow in flows:
            flow.look(now_s, on_grid=on_grid, warm=now_s >= plan["warmup_s"])
        look += 1
        now_s = time.monotonic() - zero_s
        time.sleep(LOOK_EVERY_S - now_s % LOOK_EVERY_S)
    return {"late_s": late_s, "looks": look, "flows": [flow.found() for flow in flows]}


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive()
    else:
        plan, out = map(Path, sys.argv[2:])
        out.write_text(json.dumps(send(json.loads(plan.read_text()))))
        # Without a word to the peers: the namespace ends with us.
        os._exit(0)
