"""Laws of this package as congestion controls of the running Linux.

`load` pins laws, so that they stay until `unload`; `attached` holds them for a while. Any program
may then choose one by its name, as it would choose cubic: `lfn_htcp_be` in
``setsockopt(TCP_CONGESTION)``, ``iperf3 -C lfn_htcp_be``. Neither changes a sysctl: the host's
default stays what it was, and a law that is gone is gone from
``net.ipv4.tcp_allowed_congestion_control`` too.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lfnlab import _core
from lfnlab.errors import LawError, Unavailable, UsageError
from lfnlab.kernel import host
from lfnlab.kernel.libbpf import Attached, unregister
from lfnlab.machine import needs_linux

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PINS = host.BPFFS / "lfnlab"
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")


class KernelLaw(NamedTuple):
    """A law that has a BPF object."""

    name: str  # in the registry
    kernel_name: str  # in Linux
    steers: bool  # it has cong_control, which needs Linux 6.10

    @property
    def pin(self) -> Path:
        """Where it is pinned while it is loaded."""
        return PINS / self.kernel_name

    def image(self) -> bytes:
        """The BPF object."""
        return resources.files(__name__).joinpath("objects", f"{self.name}.bpf.o").read_bytes()


class State(NamedTuple):
    """Whether a law is in the kernel, and what holds it there."""

    law: str
    kernel_name: str
    available: bool  # a socket can choose it
    pinned: bool  # `load` put it there; else a process holds it
    missing: str | None  # what keeps this host from loading it


def laws() -> list[KernelLaw]:
    """The laws of the registry with the target `kernel`, in its order."""
    return [
        KernelLaw(
            str(law["name"]),
            "lfn_" + str(law["name"]).replace("-", "_"),
            law["slow_start"] == "none",
        )
        for law in _core.laws()
        if "kernel" in law["targets"]
    ]


def find(name: str) -> KernelLaw:
    """The law of a name, as the registry or as Linux has it.

    Raises:
        LawError: There is none, or it has no kernel target.
    """
    for law in laws():
        if name in (law.name, law.kernel_name):
            return law
    known = ", ".join(law.name for law in laws())
    raise LawError(f'no law "{name}" for the kernel; allowed: {known}')


def available() -> list[str]:
    """The congestion controls that this kernel has now."""
    return AVAILABLE.read_text().split() if AVAILABLE.is_file() else []


def attach(law: KernelLaw, image: bytes | None = None) -> Attached:
    """Make a law a congestion control for as long as what this returns is kept open.

    Args:
        law: The law.
        image: Another BPF object of it than the package's.

    Raises:
        Unavailable: Something is missing, or the kernel refuses; the text says what.
    """
    host.demand()
    if why := host.missing_for(law.name, steers=law.steers):
        raise Unavailable(why)
    if law.kernel_name in available():
        raise UsageError(f"{law.kernel_name} is already loaded; lfn kernel status shows by what")
    return Attached(law.kernel_name, law.image() if image is None else image)


@contextmanager
def attached(chosen: Sequence[KernelLaw]) -> Iterator[None]:
    """Hold laws in the kernel for a while; however this process ends, they go with it.

    Raises:
        Unavailable: As `attach`; also before Linux 6.4, where a law outlives its process.
    """
    if host.linux() < (6, 4):
        raise Unavailable("a law that ends with its process needs Linux 6.4 (links of struct_ops)")
    with ExitStack() as held:
        for law in chosen:
            held.enter_context(attach(law))
        yield


def load(chosen: Sequence[KernelLaw]) -> None:
    """Put laws into the kernel, all or none, to stay until `unload` or a reboot.

    Raises:
        UsageError: One is loaded already.
        Unavailable: As `attach`; also where no bpffs is mounted.
    """
    host.demand()
    if not host.has_bpffs():
        raise Unavailable(
            f"no bpffs at {host.BPFFS}, which keeps a law when this command ends; "
            f"mount -t bpf bpf {host.BPFFS}, or use --for"
        )
    with ExitStack() as held:
        # All are there before the first is made to stay.
        attachments = [held.enter_context(attach(law)) for law in chosen]
        PINS.mkdir(mode=0o700, exist_ok=True)
        try:
            for law, attachment in zip(chosen, attachments, strict=True):
                attachment.pin(law.pin)
        except BaseException:
            for law in chosen:
                law.pin.unlink(missing_ok=True)
            _tidy()
            raise


def _tidy() -> None:
    """Leave no empty folder."""
    if PINS.is_dir() and not any(PINS.iterdir()):
        PINS.rmdir()


def unload(chosen: Sequence[KernelLaw]) -> None:
    """Take laws out of the kernel. Connections that use one keep it until they close.

    Raises:
        UsageError: One is not pinned, or is the default of this network namespace.
    """
    needs_linux("lfn kernel unload")
    default = DEFAULT.read_text().strip()
    for law in chosen:
        if not law.pin.exists():
            held = "a process holds it" if law.kernel_name in available() else "it is not loaded"
            raise UsageError(f"{law.kernel_name} cannot be unloaded: {held}")
        if law.kernel_name == default:
            raise UsageError(
                f"{law.kernel_name} is the default of new connections; choose another first: "
                "sysctl net.ipv4.tcp_congestion_control=cubic"
            )
    for law in chosen:
        unregister(law.pin)
        law.pin.unlink()
    _tidy()


def status() -> list[State]:
    """Every law that has a kernel target, and whether it is loaded."""
    there, lacking = set(available()), host.missing()
    return [
        State(
            law.name,
            law.kernel_name,
            law.kernel_name in there,
            os.access(law.pin, os.F_OK),
            "; ".join(lacking) or host.missing_for(law.name, steers=law.steers),
        )
        for law in laws()
    ]
