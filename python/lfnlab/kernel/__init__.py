"""Laws of this package as congestion controls of the running Linux.

`load` pins laws, so that they stay until `unload`; `attached` holds them for a while. Any program
may then choose one by its name, as it would choose cubic: `lfn_htcp_be` in
``setsockopt(TCP_CONGESTION)``, ``iperf3 -C lfn_htcp_be``. Neither changes a sysctl: the host's
default stays what it was, and a law that is gone is gone from
``net.ipv4.tcp_allowed_congestion_control`` too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from lfnlab import _core
from lfnlab.control_laws import header
from lfnlab.errors import LawError, Unavailable, UsageError
from lfnlab.kernel import host
from lfnlab.kernel.libbpf import Attached, unregister
from lfnlab.machine import needs_linux

PINS = host.BPFFS / "lfnlab"
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_NAME_MAX = 15  # TCP_CA_NAME_MAX without the zero


class KernelLaw(NamedTuple):
    """A law that has a BPF object."""

    name: str  # in the registry; of a header elsewhere its path
    kernel_name: str  # in Linux
    steers: bool  # it has cong_control, which needs Linux 6.10
    header: Path | None = None  # a header outside of the registry

    @property
    def pin(self) -> Path:
        """Where it is pinned while it is loaded."""
        return PINS / self.kernel_name

    def image(self) -> bytes:
        """The BPF object; of a header outside of the registry it is compiled."""
        if self.header is not None:
            return _compiled(self.header)
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


def _others() -> list[KernelLaw]:
    """Laws that are loaded and not of the registry: of headers elsewhere."""
    ours = {law.kernel_name for law in laws()}
    pins = sorted(path.name for path in PINS.iterdir()) if os.access(PINS, os.R_OK) else []
    return [KernelLaw(name, name, False) for name in pins if name not in ours]


def loaded() -> list[KernelLaw]:
    """The laws that `load` put into the kernel."""
    return [law for law in [*laws(), *_others()] if law.pin.exists()]


def of_header(path: Path) -> KernelLaw:
    """The law of a header anywhere; in Linux its name is that of its ``LAW_OPS(NAME)``.

    Raises:
        LawError: when the file is not there, has no law, or a name that Linux does not take.
    """
    name, steers, _ = header.named(path)
    kernel_name = f"lfn_{name}"
    if len(kernel_name) > _NAME_MAX:
        most = _NAME_MAX - len("lfn_")
        raise LawError(f"{path}: LAW_OPS({name}): Linux takes at most {most} characters here")
    return KernelLaw(str(path), kernel_name, steers, path)


def _compiled(path: Path) -> bytes:
    """The BPF object of a header, with classic slow start.

    Raises:
        LawError: when the compiler refuses it, with the compiler's line.
        Unavailable: when the compiler or the clone is missing.
    """
    program = header.LAWS.parent / "kernel" / "build"
    if not program.is_file():
        raise Unavailable(f"{path}: a header for Linux needs kernel/build, a part of a clone")
    for tool in ("clang-14", "llvm-objcopy-14"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{path}: no {tool}; a header for Linux needs clang-14 and llvm-14")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "law.bpf.o")
        try:
            done = subprocess.run(
                [program, "--header", path.resolve(), built],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
        except subprocess.TimeoutExpired:
            raise LawError(f"{path}: the compiler did not end within 60 s") from None
        if done.returncode != 0:
            raise LawError(f"{path} does not compile for Linux: {header.first_error(done.stderr)}")
        return built.read_bytes()


def find(name: str) -> KernelLaw:
    """The law of a name, as the registry or as Linux has it, or of a header, FILE.h.

    Raises:
        LawError: There is none, or it has no kernel target.
    """
    if name.endswith(".h"):
        return of_header(Path(name))
    for law in [*laws(), *_others()]:
        if name in (law.name, law.kernel_name):
            return law
    known = ", ".join(law.name for law in laws())
    raise LawError(f'no law "{name}" for the kernel; allowed: {known}; or FILE.h')


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
        for law in [*laws(), *_others()]
    ]
