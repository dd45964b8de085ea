"""Samples of tcp_info of any TCP socket by sock_diag(7), every few milliseconds.

Ports identify a flow. Rows are on the scenario's grid of times; events and means use every sample.
"""

from __future__ import annotations

import ipaddress
import math
import os
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lfnlab.results.tables import code

LOOK_EVERY_S = 0.005
#: struct tcp_info (linux/tcp.h) up to tcpi_min_rtt.
TCP_INFO = struct.Struct("=8B24I4Q4I")
INFINITE_SSTHRESH = 0x7FFFFFFF
OPEN, CWR, RECOVERY, LOSS = (
    code("flows", "state", words) for words in ("open", "CWR", "recovery", "loss")
)
#: Kinds of the table ``events``: a state that is entered is a reduction of the window.
REDUCTIONS = {
    state: code("events", "kind", words)
    for state, words in ((RECOVERY, "fast retransmit"), (LOSS, "timeout"), (CWR, "ECN"))
}
END_OF_RECOVERY = code("events", "kind", "end of recovery")

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST = 1
INET_DIAG_INFO = 2
NO_COOKIE = 0xFFFFFFFF
ALL_STATES = 0xFFFFFFFF
#: struct nlmsghdr; struct inet_diag_req_v2 and inet_diag_msg (linux/inet_diag.h); struct nlattr.
HEADER = struct.Struct("=IHHII")
REQUEST = struct.Struct("=4BI4s16s16sI2I")
MESSAGE_BYTES = 72
ATTRIBUTE = struct.Struct("=HH")

Info = dict[str, int]


class SockDiag:
    """Requests one socket at a time: a dump would visit all sockets of the machine."""

    def __init__(self) -> None:
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)

    def info(self, near: tuple[str, int], far: tuple[str, int]) -> Info | None:
        """The fields of tcp_info that a test bed uses; None without such a connection."""
        request = REQUEST.pack(
            socket.AF_INET,
            socket.IPPROTO_TCP,
            1 << (INET_DIAG_INFO - 1),
            0,
            ALL_STATES,
            struct.pack(">HH", near[1], far[1]),
            ipaddress.IPv4Address(near[0]).packed.ljust(16, b"\0"),
            ipaddress.IPv4Address(far[0]).packed.ljust(16, b"\0"),
            0,
            NO_COOKIE,
            NO_COOKIE,
        )
        length = HEADER.size + len(request)
        self._netlink.send(HEADER.pack(length, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0) + request)
        answer = self._netlink.recv(8192)
        if HEADER.unpack_from(answer)[1] != SOCK_DIAG_BY_FAMILY:
            return None  # an error: there is none
        at = HEADER.size + MESSAGE_BYTES
        while at < len(answer):
            size, kind = ATTRIBUTE.unpack_from(answer, at)
            if kind == INET_DIAG_INFO:
                return fields(answer[at + ATTRIBUTE.size : at + size])
            at += (size + 3) & ~3
        return None  # in TIME_WAIT


def fields(tcp_info: bytes) -> Info:
    """Fields of struct tcp_info that lfn uses."""
    found = TCP_INFO.unpack_from(tcp_info)
    words, longs, last = found[8:32], found[32:36], found[36:40]
    return {
        "state": found[1],
        "unacked": words[4],
        "sacked_bytes": words[5] * words[2],
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


def ssthresh_seg(seen: Info) -> float:
    """Infinite before the first reduction; JSON of Python knows the word."""
    return math.inf if seen["ssthresh"] >= INFINITE_SSTHRESH else float(seen["ssthresh"])


@dataclass
class Flow:
    """A flow and its samples."""

    number: int
    plan: dict[str, Any]
    last: Info | None = None
    last_s: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    cwnd_seg_s: float = 0.0
    seen_s: float = 0.0
    cwnds: list[int] = field(default_factory=list)
    completed_s: float | None = None
    warm_bytes: int = 0

    def note(self, now_s: float, seen: Info, *, on_grid: bool, warm: bool) -> None:
        """Take down a look; ``warm`` once averages have begun."""
        before = self.last or seen
        self._note_state(now_s, before, seen)
        if warm:
            if self.last is not None:
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
                {
                    "t_s": now_s,
                    "flow": self.number,
                    "cwnd_seg": float(seen["cwnd"]),
                    "ssthresh_seg": ssthresh_seg(seen),
                    # tcp_info has the smoothed RTT alone.
                    "srtt_s": seen["srtt_us"] * 1e-6,
                    "inflight_seg": seen["unacked"],
                    "delivered_bytes": seen["acked_bytes"],
                    "arrived_bytes": seen["acked_bytes"] + seen["sacked_bytes"],
                    "retransmits": seen["retransmits"],
                    "state": seen["state"],
                    # All ones: not paced.
                    "pacing_bps": 0.0
                    if seen["pacing_bytes_s"] >= 1 << 63
                    else seen["pacing_bytes_s"] * 8.0,
                }
            )
        self.last, self.last_s = seen, now_s

    def _note_state(self, now_s: float, before: Info, seen: Info) -> None:
        if before["state"] == seen["state"]:
            return
        kind = REDUCTIONS.get(seen["state"])
        if kind is None and before["state"] in REDUCTIONS and seen["state"] == OPEN:
            kind = END_OF_RECOVERY
        if kind is not None:
            self.events.append(
                {
                    "t_s": now_s,
                    "flow": self.number,
                    "kind": kind,
                    "cwnd_before_seg": float(before["cwnd"]),
                    "cwnd_after_seg": float(seen["cwnd"]),
                    "ssthresh_seg": ssthresh_seg(seen),
                    "lost": seen["lost"],
                }
            )

    def found(self) -> dict[str, Any]:
        """Rows, events and means, for JSON."""
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
        }


def watch(
    plan: dict[str, Any], zero_s: float, check: Callable[[], None]
) -> dict[str, dict[str, Any]]:
    """Sample the TCP flows until the end of the run; returns the samples by number of flow.

    ``check`` is called at each sample; an error ends the sampling.
    """
    diag = SockDiag()
    near, far = os.environ["LFN_NEAR"], os.environ["LFN_FAR"]
    flows = [Flow(number, flow) for number, flow in enumerate(plan["flows"]) if flow["kernel_law"]]
    row, every_s = 0, min(LOOK_EVERY_S, plan["sample_s"])
    while (now_s := time.monotonic() - zero_s) < plan["duration_s"]:
        check()
        on_grid = now_s >= row * plan["sample_s"]
        row += on_grid
        for flow in flows:
            if now_s >= flow.plan["start_s"]:
                ports = flow.plan["near_port"], flow.plan["far_port"]
                seen = diag.info((near, ports[0]), (far, ports[1]))
                if seen is not None:
                    warm = now_s >= plan["warmup_s"]
                    flow.note(now_s, seen, on_grid=on_grid, warm=warm)
        now_s = time.monotonic() - zero_s
        time.sleep(every_s - now_s % every_s)
    return {str(flow.number): flow.found() for flow in flows}
