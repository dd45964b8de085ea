"""Choices that a host has: a law, a number of streams, fq or not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lfnlab import _core, kernel
from lfnlab.control_laws import foreign, prototype
from lfnlab.errors import LawError

#: Linux's names of laws that differ from ours.
LINUX_NAMES = {"highspeed": "hstcp"}
OUR_NAMES = {ours: linux for linux, ours in LINUX_NAMES.items()}
#: Laws of Linux: ours that it has under the same or another name.
OF_LINUX = (
    *("reno", "cubic", "bbr", "bic", "htcp", "hstcp", "scalable", "westwood", "vegas", "veno"),
    *("illinois", "yeah", "hybla"),
)
#: dctcp needs routers that mark.
LEFT_OUT = {"dctcp": "it needs a network that marks (ECN), not a drop-tail queue"}
MODULES = Path("/lib/modules")
#: Laws of files come after those of the registry.
OF_FILE = 1000


@dataclass(frozen=True, order=True)
class Choice:
    """A law with streams, paced by fq or not. The order is the simplest first."""

    ours: bool
    """One of lfnlab's laws, which `lfn kernel load` loads."""
    streams: int
    fq: bool
    rank: int
    """Of the law: Linux's default first."""
    law: str
    """As a scenario has it."""
    name: str
    """As Linux has it."""

    def __str__(self) -> str:
        streams = "1 stream" if self.streams == 1 else f"{self.streams} streams"
        return f"{self.name}, {streams}{', fq' if self.fq else ''}"


@dataclass(frozen=True)
class Offer:
    """A law that the sender can have: its name in a scenario and in Linux."""

    law: str
    name: str
    ours: bool
    rank: int


def here() -> list[str]:
    """Linux's laws on this host, ready or as modules, by Linux's names."""
    found = [name for name in kernel.available() if not name.startswith("lfn_")]
    folder = MODULES / os.uname().release / "kernel/net/ipv4"
    if folder.is_dir():
        names = (file.name.split(".")[0].removeprefix("tcp_") for file in folder.glob("tcp_*.ko*"))
        known = {OUR_NAMES.get(law, law) for law in OF_LINUX} | {"dctcp", "lp", "nv", "cdg"}
        found += sorted(name for name in names if name in known and name not in found)
    return found


def of_host(names: Sequence[str]) -> tuple[list[Offer], list[str]]:
    """Offers of a host with these laws of Linux, ours for the rest; and the laws left out."""
    offers, left = [], []
    for name in names:
        law = LINUX_NAMES.get(name, name)
        if law in OF_LINUX:
            offers.append(_linux(law))
        else:
            left.append(f"{name}: {LEFT_OUT.get(name, 'the simulator does not have it')}")
    there = {LINUX_NAMES.get(name, name) for name in names}
    for loaded in kernel.laws():
        if loaded.name not in there and loaded.name not in LEFT_OUT:
            offers.append(_ours(loaded))
    return offers, left


def named(text: str) -> list[Offer]:
    """The offers that ``--law`` names: Linux's names, ours of laws that Linux does not have, files.

    Raises:
        LawError: a name that no sender can use.
    """
    loadable = {law.name: law for law in kernel.laws() if law.name not in LEFT_OUT}
    allowed = [OUR_NAMES.get(law, law) for law in OF_LINUX]
    allowed += [name for name in loadable if name not in OF_LINUX]
    offers: list[Offer] = []
    for name in (part.strip() for part in text.split(",")):
        law = LINUX_NAMES.get(name, name)
        if name.endswith(".h"):
            offer = Offer(name, kernel.find(name).kernel_name, True, OF_FILE + len(offers))
        elif isinstance(found := prototype.find(name, Path()), foreign.Library):
            offer = Offer(found.spelled, found.name, False, OF_FILE + len(offers))
        elif name in allowed or law in OF_LINUX:
            offer = _linux(law) if law in OF_LINUX else _ours(loadable[law])
        else:
            allow = f"{', '.join(allowed)}, or FILE.h, or a controller in FILE.so or FILE.py"
            raise LawError(f'--law: "{name}"; {_why(name)}; allowed: {allow}')
        if offer in offers:
            raise LawError(f'--law: "{name}" is named twice; write each law once')
        offers.append(offer)
    return offers


def _why(name: str) -> str:
    known = {str(law["name"]): law for law in _core.laws()}
    if name in LEFT_OUT:
        return LEFT_OUT[name]
    base = name.partition(":")[0]
    if base in known and base != name:
        return "a sender has the default variant"
    if name == "udt":
        return "lfn send has it, and is always compared"
    if name in known:
        return "it runs in the simulator only"
    return "no such law for a sender"


def _linux(law: str) -> Offer:
    simulated = law if law == "bbr" else f"{law}:linux"
    order = ("cubic", "reno", "bbr")
    rank = order.index(law) if law in order else 3 + OF_LINUX.index(law)
    return Offer(simulated, OUR_NAMES.get(law, law), False, rank)


def _ours(law: kernel.KernelLaw) -> Offer:
    names = [loaded.name for loaded in kernel.laws()]
    return Offer(law.name, law.kernel_name, True, 100 + names.index(law.name))


def choices(offers: Sequence[Offer], flows: int) -> list[Choice]:
    """Every offer with 1, 2, 4 ... and ``flows`` streams, with fq and without.

    BBR paces itself, with fq or without it; so may a controller.
    """
    counts = sorted({flows, *(2**k for k in range(10) if 2**k < flows)})
    return [
        Choice(offer.ours, streams, fq, offer.rank, offer.law, offer.name)
        for offer in offers
        for streams in counts
        for fq in (False, True)
        if not (fq and (offer.law == "bbr" or prototype.is_controller(offer.law)))
    ]
