"""Requirements of laws in BPF, and whether this host meets them."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from lfnlab import machine
from lfnlab.errors import Unavailable

VMLINUX_BTF = Path("/sys/kernel/btf/vmlinux")
BPFFS = Path("/sys/fs/bpf")

# linux/capability.h. CAP_SYS_ADMIN stands for all three (bpf_capable, perfmon_capable).
NET_ADMIN, SYS_ADMIN, PERFMON, BPF = 12, 21, 38, 39
NAMES = {NET_ADMIN: "CAP_NET_ADMIN", PERFMON: "CAP_PERFMON", BPF: "CAP_BPF"}


@cache
def linux() -> tuple[int, int]:
    """The version of the running kernel."""
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def capabilities() -> set[int]:
    """The capabilities in effect, by number."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", Path("/proc/self/status").read_text(), re.M)
    bits = int(found[1], 16) if found else 0
    return {number for number in range(64) if bits >> number & 1}


def lacking_capabilities() -> list[str]:
    """Those that loading a law needs and this process has not."""
    held = capabilities()
    return [] if SYS_ADMIN in held else [NAMES[one] for one in NAMES if one not in held]


def in_user_namespace() -> bool:
    """Whether capabilities count only for what this user owns."""
    return Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]


@cache
def _btf_names(name: bytes) -> bool:
    return VMLINUX_BTF.is_file() and b"\0" + name + b"\0" in VMLINUX_BTF.read_bytes()


def has_struct_ops() -> bool:
    """Whether the kernel takes congestion controls from BPF."""
    return _btf_names(b"bpf_struct_ops_tcp_congestion_ops")


def has_bpffs() -> bool:
    """Whether pins can be made."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return any(line.split()[1:3] == [str(BPFFS), "bpf"] for line in mounts)


def missing() -> list[str]:
    """Missing requirements for loading any law, each with its remedy."""
    if machine.SYSTEM != "linux":
        return [f"Linux 6.1 or later (this is {machine.SYSTEM})"]
    found = []
    if linux() < (6, 1):
        found.append(f"Linux 6.1 or later (this is {os.uname().release})")
    if not VMLINUX_BTF.is_file():
        found.append(f"BTF: no {VMLINUX_BTF}; the kernel needs CONFIG_DEBUG_INFO_BTF")
    elif not has_struct_ops():
        found.append("struct_ops for TCP: the kernel needs CONFIG_BPF_SYSCALL and CONFIG_BPF_JIT")
    if lacked := lacking_capabilities():
        found.append(f"{', '.join(lacked)}: run it as root")
    elif in_user_namespace():
        found.append("the host's own CAP_BPF: this is a user namespace")
    return found


def missing_for(law: str, *, steers: bool) -> str | None:
    """Missing requirement of one law, or None; `steers`: the law has cong_control."""
    if steers and linux() < (6, 10):
        return f"{law} needs Linux 6.10, where cong_control has the arguments that it takes"
    return None


def demand() -> None:
    """Refuse where no law can be loaded.

    Raises:
        Unavailable: The text names what is missing.
    """
    machine.needs_linux("lfn kernel")
    if lacking := missing():
        raise Unavailable(f"no law can be loaded here; missing: {'; '.join(lacking)}")
