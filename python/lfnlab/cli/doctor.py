"""``lfn doctor``: what works on this machine, and what each missing thing costs."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from lfnlab import machine
from lfnlab.cli.options import Json, print_json
from lfnlab.control_laws import stacks
from lfnlab.errors import Unavailable
from lfnlab.kernel import host, libbpf
from lfnlab.printable import say

SYSCTL = Path("/proc/sys")
TUN = Path("/dev/net/tun")
OPEN_TUN = f"chmod a+rw {TUN}, as root"
CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
TOOLS = ("ip", "tc", "unshare", "setpriv")
SLOW_CLOCKS = {"acpi_pm", "hpet", "jiffies", "refined-jiffies", "pit"}
CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000
TUNSETIFF, IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x400454CA, 0x0001, 0x1000, 0x4000
UDP_SEGMENT, UDP_GRO = 103, 104  # linux/udp.h
SIOCETHTOOL = 0x8946
ETHTOOL = {"TSO": 0x1E, "GSO": 0x23, "GRO": 0x2B}  # ETHTOOL_G...
# A window for 1 Gbit/s x 100 ms; Linux's default limits are below it.
WINDOW_BYTES = 1e9 * 0.1 / 8

State = Literal["ok", "limited", "missing"]


class Finding(NamedTuple):
    """Result of one check."""

    subject: str
    state: State  # limited: everything works, slower or less exactly
    found: str
    costs: str = ""  # what does not work without it
    mend: str = ""

    @classmethod
    def of(cls, subject: str, good: str | None, state: State, *lacking: str) -> Finding:
        """``good`` was found, or, if that is None, something is missing or limited."""
        return cls(subject, state, *lacking) if good is None else cls(subject, "ok", good)


def doctor(*, json: Json = False) -> int:
    """List what works on this machine: laws in the kernel, path emulator, fast sockets.

    The simulator needs none of these. Exit code 1 if something is missing, not if it is only
    limited.
    """
    found = findings()
    if json:
        checks = [finding._asdict() for finding in found]
        print_json({"schema": 1, "checks": checks})
    else:
        width = max(len(finding.subject) for finding in found)
        for finding in found:
            say(f"{finding.state:<8}{finding.subject:<{width}}  {finding.found}")
            for line in filter(None, (finding.costs, finding.mend)):
                say(f"{'':<{width + 10}}{line}")
    return int(any(finding.state == "missing" for finding in found))


def findings() -> list[Finding]:
    """All checks; each follows those that it depends on."""
    if machine.SYSTEM != "linux":
        return [Finding("Linux", "missing", machine.SYSTEM, "all but the simulator")]
    return [*_bpf(), *_emulator(), *_virtual(), *_stacks(), *_sockets()]


def _bpf() -> Iterator[Finding]:
    costs = "lfn kernel: no law runs in this Linux"
    release = os.uname().release
    if host.linux() >= (6, 10):
        yield Finding("Linux", "ok", release)
    elif host.linux() >= (6, 1):
        lost = "laws that steer (bbr)" if host.linux() >= (6, 4) else "bbr, lfn kernel load --for"
        yield Finding("Linux", "limited", release, f"{lost} need 6.10 and 6.4", "a newer kernel")
    else:
        yield Finding("Linux", "missing", release, costs, "Linux 6.1 or later")
    good = str(host.VMLINUX_BTF) if host.VMLINUX_BTF.is_file() else None
    mend = "a kernel with CONFIG_DEBUG_INFO_BTF"
    yield Finding.of("BTF", good, "missing", f"no {host.VMLINUX_BTF}", costs, mend)
    good = "congestion controls from BPF" if host.has_struct_ops() else None
    mend = "a kernel with CONFIG_BPF_SYSCALL, CONFIG_BPF_JIT and BTF"
    yield Finding.of("struct_ops", good, "missing", "none for TCP", costs, mend)
    try:
        yield Finding("libbpf", "ok", ".".join(map(str, libbpf.version())))
    except Unavailable as error:
        yield Finding("libbpf", "missing", str(error), costs)
    if lacked := host.lacking_capabilities():
        yield Finding("capabilities", "missing", f"no {', '.join(lacked)}", costs, "run as root")
    elif host.in_user_namespace():
        found = "they count in this user namespace only"
        yield Finding("capabilities", "missing", found, costs, "root of the host")
    else:
        yield Finding("capabilities", "ok", ", ".join(host.NAMES.values()))
    good = str(host.BPFFS) if host.has_bpffs() else None
    costs, mend = "lfn kernel load; load --for works", f"mount -t bpf bpf {host.BPFFS}"
    yield Finding.of("bpffs", good, "missing", f"not mounted at {host.BPFFS}", costs, mend)


def _emulator() -> Iterator[Finding]:
    costs = "the path emulator"
    yield _tun(costs)
    yield from _tun_without_root()
    for subject, flags in (
        ("network namespaces", CLONE_NEWNET),
        ("namespaces without root", CLONE_NEWUSER | CLONE_NEWNET),
    ):
        if (error := _unshare(flags)) is None:
            yield Finding(subject, "ok", "can be made")
        elif flags == CLONE_NEWNET:
            yield Finding(subject, "missing", error, costs + " on the host", "run as root")
        else:
            yield Finding(subject, "limited", error, "the emulator needs root")
    error, mend = _fifo(), "run as root, or ulimit -r 99"
    costs = "an emulated packet may leave late when the machine is busy"
    good = None if error else "real-time scheduling"
    yield Finding.of("SCHED_FIFO", good, "limited", error or "", costs, mend)
    clock = CLOCK.read_text().strip() if CLOCK.is_file() else "unknown"
    good = None if clock in SLOW_CLOCKS or clock == "unknown" else clock
    costs = "reading the time costs a microsecond and more, for each packet"
    mend = "clocksource=tsc, where it is stable"
    yield Finding.of("clock source", good, "limited", clock, costs, mend)
    absent = [tool for tool in TOOLS if not shutil.which(tool)]
    good = None if absent else ", ".join(TOOLS)
    costs, mend = "lfn kernel check", "apt install iproute2 util-linux"
    yield Finding.of("tools", good, "missing", f"no {', '.join(absent)}", costs, mend)
    good = "installed" if shutil.which("iperf3") else None
    costs = "nothing but traffic by iperf3"
    yield Finding.of("iperf3", good, "limited", "not installed", costs)


def _tun(costs: str) -> Finding:
    """A TUN device with vnet headers, which ends with its descriptor."""
    request = struct.pack("16sH22x", b"", IFF_TUN | IFF_NO_PI | IFF_VNET_HDR)
    try:
        device = os.open(TUN, os.O_RDWR)
        try:
            fcntl.ioctl(device, TUNSETIFF, request)
        finally:
            os.close(device)
    except OSError as error:
        mend = "modprobe tun; in a container, --device /dev/net/tun; root"
        if error.errno == errno.EACCES:
            mend = OPEN_TUN + ", or run as root"
        return Finding("TUN", "missing", f"{TUN}: {error.strerror}", costs, mend)
    return Finding("TUN", "ok", f"{TUN}, with vnet headers")


def _tun_without_root() -> Iterator[Finding]:
    """Whether users other than root may open the device: on many machines they may not."""
    with suppress(OSError):
        mode = TUN.stat().st_mode & 0o777
        good = "everybody may open it" if mode & 0o006 == 0o006 else None
        found, costs = (
            f"{TUN} has mode {mode:04o}",
            "the emulator of users other than its owner and group",
        )
        yield Finding.of("TUN without root", good, "limited", found, costs, OPEN_TUN)


def _unshare(flags: int) -> str | None:
    """Error text of unshare(2), tried in a child process; None if namespaces work."""
    read, write = os.pipe()
    if not (child := os.fork()):
        libc = ctypes.CDLL(None, use_errno=True)
        os.write(write, bytes([ctypes.get_errno() if libc.unshare(flags) else 0]))
        os._exit(0)
    os.close(write)
    code = os.read(read, 1)[0]
    os.close(read)
    os.waitpid(child, 0)
    return os.strerror(code) if code else None


def _fifo() -> str | None:
    """Error text of sched_setscheduler(2) with SCHED_FIFO; None if it works."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError as error:
        return error.strerror
    os.sched_setscheduler(0, policy, parameters)
    return None


def _virtual() -> Iterator[Finding]:
    """Linux in virtual time: its build, and the host's part of a run."""
    from lfnlab.testbed import linux_backend

    subject, costs = "Linux in virtual time", "--on linux"
    try:
        build = linux_backend.build()
        yield Finding(subject, "ok", f"Linux {build.release}, {build.program.parents[1]}")
    except Unavailable as error:
        found, _, mend = str(error).partition("; ")
        lacked = [what for what, there in linux_backend.needs().items() if not there]
        mend += f"; missing for that: {', '.join(lacked)}" if lacked else ""
        yield Finding(subject, "limited", found, costs, mend)
        return
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or os.statvfs(memory).f_flag & os.ST_NOEXEC:
        found, mend = f"{memory} takes no programs' memory", f"mount -o remount,exec {memory}"
        yield Finding("memory of its runs", "limited", found, costs, mend)


def _stacks() -> Iterator[Finding]:
    """Controllers of deployed stacks, which ``make stacks`` builds."""
    for stack in stacks.stacks():
        good = f"{stack.package} {stack.version}" if stack.here else None
        tool = shutil.which(stack.tool)
        found = "not built" if tool else f"not built, and {stack.tool} is missing"
        mend = f"make stacks STACK={stack.name}"
        yield Finding.of(
            f"stack {stack.name}", good, "limited", found, f"{stack.name}:... as laws", mend
        )


def _sockets() -> Iterator[Finding]:
    for name, direction in (("tcp_wmem", "send"), ("tcp_rmem", "receive")):
        most = int((SYSCTL / "net/ipv4" / name).read_text().split()[2])
        yield _buffer(f"TCP {direction} buffer", f"net.ipv4.{name}", most, "a TCP connection")
    for name in ("rmem_max", "wmem_max"):
        most = int((SYSCTL / "net/core" / name).read_text())
        yield _buffer(f"socket buffer {name}", f"net.core.{name}", most, "UDT without root")
    for option, name in ((UDP_SEGMENT, "UDP GSO"), (UDP_GRO, "UDP GRO")):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            try:
                udp.setsockopt(socket.SOL_UDP, option, 1)
                yield Finding(name, "ok", "datagrams pass the kernel in trains")
            except OSError as error:
                costs = "UDT spends several times the CPU time"
                yield Finding(name, "limited", str(error.strerror), costs)
    for interface, name in socket.if_nameindex():
        del interface
        if name != "lo" and (off := _offloads_off(name)):
            costs = "TCP there spends more CPU time at high rates"
            mend = f"ethtool -K {name} " + " ".join(f"{one.lower()} on" for one in off)
            yield Finding(f"offloads of {name}", "limited", f"{', '.join(off)} off", costs, mend)
        elif name != "lo":
            yield Finding(f"offloads of {name}", "ok", ", ".join(ETHTOOL))


def _buffer(subject: str, sysctl: str, most_bytes: int, user: str) -> Finding:
    found = f"at most {most_bytes / 1e6:.1f} MB"
    if most_bytes >= 2 * WINDOW_BYTES:
        return Finding(subject, "ok", found)
    # About half of a buffer is payload (tcp_adv_win_scale).
    rate_bps = most_bytes / 2 * 8 / 0.1
    costs = f"{user} over 100 ms gets about {rate_bps / 1e6:.0f} Mbit/s"
    value = int(4 * WINDOW_BYTES)
    mend = f"sysctl {sysctl}=" + (f'"4096 131072 {value}"' if "tcp_" in sysctl else str(value))
    return Finding(subject, "limited", found, costs, mend)


def _offloads_off(interface: str) -> list[str]:
    """Offloads that a device could use and does not; none where it does not say."""
    off = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for name, command in ETHTOOL.items():
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
            with suppress(OSError):
                fcntl.ioctl(any_socket, SIOCETHTOOL, request)
                if not struct.unpack("II", value.raw[:8])[1]:
                    off.append(name)
    return off
