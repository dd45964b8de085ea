"""Limits of this host that advice may raise; it never lowers one."""

from __future__ import annotations

from pathlib import Path

SYSCTL = Path("/proc/sys/net")
#: The largest buffers that an untuned Linux lets TCP have: net.ipv4.tcp_rmem, tcp_wmem.
UNTUNED = {"rmem": (4096, 131072, 6 << 20), "wmem": (4096, 16384, 4 << 20)}
UNTUNED_UDP_BYTES = 212992


def tcp_buffer(name: str) -> tuple[int, int, int]:
    """Least, first and largest socket buffer of TCP in bytes; ``name`` is rmem or wmem."""
    least, first, most = _numbers(f"ipv4/tcp_{name}", UNTUNED[name])
    return least, first, most


def udp_buffer_bytes() -> int:
    """The largest socket buffer for receiving that a program can ask for."""
    [most] = _numbers("core/rmem_max", (UNTUNED_UDP_BYTES,))
    return most


def _numbers(name: str, otherwise: tuple[int, ...]) -> tuple[int, ...]:
    """Of a sysctl; those of an untuned Linux where there is none."""
    try:
        found = tuple(int(word) for word in (SYSCTL / name).read_text().split())
    except (OSError, ValueError):
        return otherwise
    return found if len(found) == len(otherwise) else otherwise
