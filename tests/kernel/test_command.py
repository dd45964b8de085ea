# SPDX-License-Identifier: MIT OR Apache-2.0
"""`lfn kernel` and `lfn doctor` in this Linux: what they say, what stays, what does not.

Pins lie in a bpffs that only a mount namespace of the test sees; it ends with the process that
holds it, and with it whatever a failed test left.
"""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_kernel_laws import assert_nothing_left, kernel_state

from lfnlab import kernel
from lfnlab.kernel import libbpf

LFN = [sys.executable, "-m", "lfnlab.cli"]
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")
# As root without one of them; CAP_SYS_ADMIN would stand for all.
WITHOUT = ["setpriv", "--inh-caps=-all", "--bounding-set=-sys_admin,-"]
# A user without rights chooses a law for a socket.
CHOOSE = "import os, socket; os.setuid(65534); socket.socket().setsockopt(6, 13, b'lfn_reno')"


@pytest.fixture
def room() -> Iterator[list[str]]:
    """The prefix of a command that runs it where a bpffs is mounted."""
    script = "mount -t bpf bpf /sys/fs/bpf && echo ready && read end"
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "sh", "-c", script]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "ready\n"
        yield ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt"]
        holder.kill()


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True)


def lfn(room: list[str], *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    outcome = run(*room, *LFN, *arguments)
    assert outcome.returncode == code, outcome
    return outcome


def test_loaded_laws_stay_until_they_are_unloaded(room: list[str]) -> None:
    before, sysctls = kernel_state(), (DEFAULT.read_text(), ALLOWED.read_text())
    assert json.loads(lfn(room, "kernel", "status", "--json").stdout)["laws"] == []

    lfn(room, "kernel", "load", "reno", "htcp-be")
    state = json.loads(lfn(room, "kernel", "status", "--json").stdout)
    assert state["default"] == DEFAULT.read_text().strip() == sysctls[0].strip()
    assert [law["kernel_name"] for law in state["laws"]] == ["lfn_reno", "lfn_htcp_be"]
    assert all(law["available"] and law["pinned"] for law in state["laws"])
    # Nobody's own sysctl, but any user may choose them.
    assert run(sys.executable, "-c", CHOOSE).returncode == 0
    assert "already" in lfn(room, "kernel", "load", "cubic", "reno", code=2).stderr
    assert "lfn_cubic" not in kernel.available()  # all or none

    lfn(room, "kernel", "unload", "reno")
    assert "not loaded" in lfn(room, "kernel", "unload", "reno", code=2).stderr
    lfn(room, "kernel", "unload", "--all")
    assert run(*room, "test", "-e", kernel.PINS).returncode == 1
    assert_nothing_left(before)
    assert (DEFAULT.read_text(), ALLOWED.read_text()) == sysctls
    assert run(sys.executable, "-c", CHOOSE).returncode != 0


def test_before_links_a_pinned_map_holds_a_law(room: list[str]) -> None:
    """As on Linux 6.1 to 6.3, which this kernel can still do."""
    before = kernel_state()
    older = "from lfnlab import kernel; from lfnlab.kernel import libbpf\n"
    older += "libbpf.linux = lambda: (6, 1)\n"
    laws = "[kernel.find('reno'), kernel.find('cubic')]"
    assert run(*room, sys.executable, "-c", f"{older}kernel.load({laws})").returncode == 0
    assert {"lfn_reno", "lfn_cubic"} <= set(kernel.available())
    again = f"{older}kernel.load([kernel.find('htcp'), kernel.find('reno')])"
    assert "already" in run(*room, sys.executable, "-c", again).stderr
    assert "lfn_htcp" not in kernel.available()
    lfn(room, "kernel", "unload", "--all")
    assert_nothing_left(before)


def test_the_default_of_the_host_is_not_pulled_out(room: list[str]) -> None:
    before = kernel_state()
    lfn(room, "kernel", "load", "reno")
    script = f"echo lfn_reno > {DEFAULT} && exec {' '.join(LFN)} kernel unload reno"
    outcome = run("unshare", "--net", *room, "sh", "-c", script)
    assert outcome.returncode == 2
    assert "default" in outcome.stderr
    lfn(room, "kernel", "unload", "reno")
    assert_nothing_left(before)


def test_laws_for_a_command_end_with_it() -> None:
    before = kernel_state()
    script = "cat /proc/sys/net/ipv4/tcp_available_congestion_control; exit 7"
    outcome = lfn([], "kernel", "load", "reno", "bbr", "--for", "sh", "-c", script, code=7)
    assert {"lfn_reno", "lfn_bbr"} <= set(outcome.stdout.split())
    assert_nothing_left(before)
    words = ["--", "--help", "-c", "a b", ""]
    outcome = lfn([], "kernel", "load", "reno", "--for", "printf", "%s|", *words)
    assert outcome.stdout == "--|--help|-c|a b||"
    assert "nowhere" in lfn([], "kernel", "load", "reno", "--for", "nowhere", code=2).stderr
    assert_nothing_left(before)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_killed_at_any_moment_nothing_stays(how: signal.Signals) -> None:
    """Also the command, which would keep its programs."""
    before, marker = kernel_state(), f"{3600 + how}"
    draws = random.Random(how)
    for _ in range(4):
        command = [*LFN, "kernel", "load", "reno", "cubic", "htcp", "bbr", "--for", "sleep", marker]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as victim:
            # From before the first law is there to after the last.
            time.sleep(draws.uniform(0.4, 2.0))
            victim.send_signal(how)
            try:
                victim.wait(timeout=60)
            finally:
                victim.kill()
        assert_nothing_left(before)
        end_s = time.monotonic() + 60
        while asleep := [p for p in Path("/proc").glob("[0-9]*/cmdline") if is_asleep(p, marker)]:
            assert time.monotonic() < end_s, asleep
            time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_libbpf_speaks_is_not_lost(number: signal.Signals) -> None:
    """Python drops what a signal's handler raises in a callback from C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    spoke = []

    @libbpf.Print
    def speak(*_: object) -> int:
        signal.raise_signal(number)
        spoke.append(True)
        return 0

    try:
        with pytest.raises(KeyboardInterrupt), libbpf.signals_wait():
            speak(0, b"", None)
        assert spoke
    finally:
        signal.signal(signal.SIGTERM, before)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def is_asleep(cmdline: Path, marker: str) -> bool:
    try:
        return cmdline.read_bytes() == f"sleep\0{marker}\0".encode()
    except OSError:
        return False


def test_killed_load_leaves_what_unload_takes_out(room: list[str]) -> None:
    before = kernel_state()
    draws = random.Random(1)
    for _ in range(4):
        victim = subprocess.Popen([*room, *LFN, "kernel", "load", "reno", "cubic", "htcp", "bbr"])
        time.sleep(draws.uniform(0.4, 1.6))
        victim.kill()
        victim.wait()
        lfn(room, "kernel", "unload", "--all")
        assert run(*room, "test", "-e", kernel.PINS).returncode == 1
        assert_nothing_left(before)


@pytest.mark.parametrize("lacked", ["bpf", "net_admin", "perfmon"])
def test_a_missing_capability_is_named(lacked: str) -> None:
    command = [*WITHOUT[:-1], WITHOUT[-1] + lacked, *LFN, "kernel", "load", "reno", "--for", "true"]
    outcome = run(*command)
    assert outcome.returncode == 4
    assert f"CAP_{lacked.upper()}" in outcome.stderr


def test_a_missing_bpffs_is_named_and_only_pins_need_it() -> None:
    hide = "umount -l /sys/fs/bpf 2>/dev/null; exec "
    outcome = run(
        "unshare", "--mount", "sh", "-c", hide + " ".join([*LFN, "kernel", "load", "reno"])
    )
    assert outcome.returncode == 4
    assert "mount -t bpf bpf /sys/fs/bpf" in outcome.stderr
    assert "lfn_reno" not in kernel.available()


def test_check_carries_traffic() -> None:
    before = kernel_state()
    outcome = lfn([], "kernel", "check", "htcp", "dctcp", "--json")
    results = json.loads(outcome.stdout)["laws"]
    assert [(law["law"], law["verdict"]) for law in results] == [("htcp", "ok"), ("dctcp", "ok")]
    assert all(law["rate_bps"] > 50e6 and law["retransmits"] > 0 for law in results)
    assert_nothing_left(before)


def test_doctor_says_what_is_missing(room: list[str]) -> None:
    def states(*prefix: str) -> tuple[int, dict[str, str]]:
        outcome = run(*prefix, *LFN, "doctor", "--json")
        checks = json.loads(outcome.stdout)["checks"]
        assert all(check["costs"] for check in checks if check["state"] != "ok"), checks
        return outcome.returncode, {check["subject"]: check["state"] for check in checks}

    code, all_there = states(*room)
    assert {all_there[one] for one in ("BTF", "struct_ops", "capabilities", "bpffs")} == {"ok"}
    assert code == int("missing" in all_there.values())
    code, without = states(*WITHOUT[:-1], WITHOUT[-1] + "bpf,-net_admin,-sys_nice")
    assert code == 1
    assert (without["capabilities"], without["TUN"]) == ("missing", "missing")
    assert without["SCHED_FIFO"] == "limited"


def test_a_header_outside_of_the_registry_is_loaded(room: list[str], tmp_path: Path) -> None:
    header = tmp_path / "tol.h"
    text = (Path(__file__).parents[2] / "laws/reno.h").read_text()
    header.write_text(text.replace("reno", "tol").replace("RENO", "TOL"))
    before = kernel_state()
    assert "ok" in lfn(room, "kernel", "check", str(header)).stdout
    script = "import socket; socket.socket().setsockopt(6, 13, b'lfn_tol')"
    command = [sys.executable, "-c", script]
    lfn(room, "kernel", "load", str(header), "--for", *command)
    for unload in ([str(header)], ["lfn_tol"], ["--all"]):
        lfn(room, "kernel", "load", str(header))
        state = json.loads(lfn(room, "kernel", "status", "--json").stdout)
        assert [law["kernel_name"] for law in state["laws"]] == ["lfn_tol"]
        lfn(room, "kernel", "unload", *unload)
    assert_nothing_left(before)
