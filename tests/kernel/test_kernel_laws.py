# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every law with the target `kernel` runs in this Linux and leaves nothing behind.

Each law is loaded (so the verifier has passed it), chosen by name for a transfer over a lossy
loopback in a network namespace of its own, and its windows are read from TCP_INFO. Loading alone
proves little: with a bitfield read wrongly the verifier is content and the window never grows.

Nothing is pinned and the namespace has no name, so both end with the process that holds them.
"""

import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lfnlab import kernel
from lfnlab.kernel import host
from lfnlab.kernel.loopback import MSS_BYTES, transfer

SIZE_BYTES = 64_000_000
DROP_INTERVAL = 1000
# The bottleneck has 400 Mbit/s, a loaded machine may halve it; a broken law showed 0.6.
FLOOR_BPS = 50e6
INFINITE_SSTHRESH = 0x7FFFFFFF

# Fraction of the window that a law keeps, where it is constant over the windows of this path,
# with the smallest window for which it is (RFC 5681 eq. 4; Kelly 2003; RFC 9438 section 4.6).
KEEPS = {"reno": (0.5, 4), "scalable": (0.875, 17), "cubic": (0.7, 4)}


def bpftool(*arguments: str) -> list[dict[str, Any]]:
    run = subprocess.run(["bpftool", "--json", *arguments], check=True, capture_output=True)
    listed: list[dict[str, Any]] = json.loads(run.stdout or "[]")
    return listed


def kernel_state() -> set[str]:
    """State that a run might change or leave behind: a line for each sysctl and each BPF object."""
    settings = [
        *Path("/proc/sys/net/ipv4").glob("tcp_*"),
        *Path("/proc/sys/net/core").glob("?mem_*"),
    ]
    state = {f"{path} = {path.read_text()}" for path in settings}
    for kind in ("prog", "map", "link"):
        state |= {
            f"{kind} {listed['id']} {listed.get('name')}"
            for listed in bpftool(kind, "list")
            if listed.get("type") in ("struct_ops", "sk_storage")
        }
    return state


def namespace_of(pid: int | str) -> str | None:
    """The network namespace of a process; None if the process is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None


def assert_nothing_left(before: set[str], namespace: str | None = None) -> None:
    def left() -> set[str]:
        pids = [path.name for path in Path("/proc").glob("[0-9]*")] if namespace else []
        alive = {str(namespace)} if namespace in map(namespace_of, pids) else set()
        return (kernel_state() - before) | alive

    deadline_s = time.monotonic() + 60  # programs wait for an RCU grace period
    while difference := left():
        assert time.monotonic() < deadline_s, f"left behind or changed: {difference}"
        time.sleep(0.05)


def in_avoidance(samples: list[dict[str, int]]) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Neighbouring samples of which the first is in congestion avoidance, outside recovery."""
    for a, b in pairwise(samples):
        if a["ca_state"] == 0 and a["cwnd"] > a["ssthresh"]:
            yield a, b


def decrease_errors(samples: list[dict[str, int]], keep: float, least: int) -> list[float]:
    """How far each ssthresh is from keep * cwnd, in segments.

    Only reductions seen less than a window later, by when the window had grown by about one, and
    after one retransmission: a second loss would have reduced the window again.
    """
    return [
        abs(b["ssthresh"] - keep * a["cwnd"])
        for a, b in in_avoidance(samples)
        if b["ssthresh"] != a["ssthresh"]
        and b["acked_bytes"] - a["acked_bytes"] < a["cwnd"] * MSS_BYTES
        and b["retransmits"] - a["retransmits"] <= 1
        and a["cwnd"] >= least
    ]


def reno_growth(samples: list[dict[str, int]]) -> tuple[int, float]:
    """Growth of the window, and what RFC 5681 section 3.1 says for the segments acknowledged.

    Only between samples that show the window full to five segments: Linux grows no window that the
    sender does not fill. Of all samples, Linux's own reno shows 0.72 to 0.99 of that growth, ours
    0.49 to 0.98; of these, Linux's own 0.97 to 1.00, ours 0.96 to 0.99.
    """
    growth, full = 0, 0.0
    for a, b in in_avoidance(samples):
        same = all(b[key] == a[key] for key in ("ca_state", "ssthresh", "retransmits"))
        if same and all(sample["unacked"] + 5 >= sample["cwnd"] for sample in (a, b)):
            cwnd = a["cwnd"] + 0.5
            for _ in range((b["acked_bytes"] - a["acked_bytes"]) // MSS_BYTES):
                cwnd += 1 / cwnd
            growth += b["cwnd"] - a["cwnd"]
            full += cwnd - (a["cwnd"] + 0.5)
    return growth, full


def carry(name: str) -> dict[str, Any]:
    """A transfer during which the kernel ran the law at each of its calls.

    Some virtual machines have a Linux that skips foreign BPF programs while PID 1 is the current
    task: __bpf_prog_enter returns 0. An ACK is handled on top of any task, so on a busy machine
    one run in twenty loses a call of ssthresh() or undo_cwnd(), which then returns half of a
    kernel address: more than any window. Such a run says nothing about the law.
    """
    for _ in range(6):
        result = transfer(name, SIZE_BYTES, DROP_INTERVAL)
        if all(max(s["ssthresh"], s["cwnd"]) <= INFINITE_SSTHRESH for s in result["samples"]):
            return result
    pytest.fail(f"{name}: in each of six transfers this kernel skipped a call of the law")


@pytest.mark.parametrize("law", kernel.laws(), ids=lambda law: law.name)
def test_law_runs_in_kernel(law: kernel.KernelLaw) -> None:
    if why := host.missing_for(law.name, steers=law.steers):
        pytest.skip(f"{law.name} NOT TESTED: {why}")
    before = kernel_state()
    name = law.kernel_name

    with kernel.attached([law]):
        assert name in kernel.available()
        programs = bpftool("prog", "list")
        result = carry(name)
        growths = [reno_growth(result["samples"])] if law.name == "reno" else []
        # On a busy machine few samples see a full window: five more transfers.
        while growths and sum(full for _, full in growths) < 100 and len(growths) < 6:
            again = carry(name)
            growths.append(reno_growth(again["samples"]))
        keep = KEEPS.get(law.name)
        errors = decrease_errors(result["samples"], *keep) if keep else []
        # On a busy machine few samples come soon enough after a reduction: five more transfers.
        for _ in range(5):
            if keep and len(errors) < 10:
                errors += decrease_errors(carry(name)["samples"], *keep)

    assert result["law"] == name
    assert result["intact"]
    rate_bps = SIZE_BYTES * 8 / result["duration_s"]
    ours = [p for p in programs if p["type"] == "struct_ops"]
    instructions = sum(p["bytes_xlated"] for p in ours) // 8
    machine_bytes = sum(p["bytes_jited"] for p in ours)
    print(f"{name}: {rate_bps / 1e6:.0f} Mbit/s, {instructions} instructions, {machine_bytes} B")
    assert rate_bps > FLOOR_BPS

    samples = result["samples"]
    assert samples[-1]["retransmits"] > 0
    if law.steers:
        # No ssthresh, no slow start: a window that left the initial one, of a law that paces.
        assert all(s["ssthresh"] == INFINITE_SSTHRESH for s in samples)
        assert max(s["cwnd"] for s in samples) > 20
        assert len({s["pacing_Bps"] for s in samples}) > 10
    else:
        # Slow start ends at ssthresh, which only on_loss sets: above it, on_ack has grown.
        assert any(s["ca_state"] == 0 and s["cwnd"] > s["ssthresh"] for s in samples)
    if keep:
        # To within the segment that neither number shows.
        assert len(errors) >= 3
        assert statistics.median(errors) <= 1
    if growths:
        growth, full = map(sum, zip(*growths, strict=True))
        assert full >= 100, growths
        assert 0.9 < growth / full < 1.1, growths

    assert_nothing_left(before, result["namespace"])


def transfer_of(parent: int) -> str | None:
    """The namespace in which a child of a process has an established connection, if any."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process is gone
            child = f"PPid:\t{parent}\n" in (path / "status").read_text()
            namespace = namespace_of(path.name)
            if child and namespace != namespace_of("self"):
                table = (path / "net/tcp").read_text()
                if re.search(r"^ *\d+: \S+ \S+ 01 ", table, re.MULTILINE):
                    return namespace
    return None


def test_killed_run_leaves_nothing() -> None:
    before = kernel_state()
    # Every second segment is lost: the transfer lasts longer than this test.
    run = "from lfnlab import kernel; from lfnlab.kernel import loopback\n"
    run += "with kernel.attached([kernel.find('reno')]): "
    run += f"loopback.transfer('lfn_reno', {SIZE_BYTES}, 2)"
    victim = subprocess.Popen([sys.executable, "-c", run])
    try:
        deadline_s = time.monotonic() + 60
        while not (namespace := transfer_of(victim.pid)):
            assert victim.poll() is None
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        assert "lfn_reno" in kernel.available()
    finally:
        victim.kill()
        victim.wait()
    assert_nothing_left(before, namespace)
