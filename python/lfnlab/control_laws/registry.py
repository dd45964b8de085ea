"""The congestion-control laws that this build has, from their registry."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from functools import cache

from lfnlab import _core
from lfnlab.errors import LawError

_OTHER_COLORS = ("#DC143C", "#00A6A6", "#B8860B", "#8A2BE2")
"""Of laws that the registry does not have; none of the registry's."""


@dataclass(frozen=True)
class LawInfo:
    """One line of the registry, and how plots show the law."""

    name: str
    title: str
    variants: tuple[str, ...]
    family: str
    signals: tuple[str, ...]
    slow_start: str
    targets: tuple[str, ...]
    source: str
    probes: tuple[str, ...]
    color: str
    marker: str

    def card(self, *, vectors: bool = True) -> str:
        """The law's page in Markdown: prose, equations with their source, reference, vectors."""
        text = _core.card(self.name)
        left_out = f"(Test vectors: lfn laws {self.name} --vectors)\n\n"
        return text if vectors else re.sub(r"(?ms)(^```law\n.*?^```\n\n?)+", left_out, text)

    def bibtex(self) -> str:
        """The reference of the law, which its card holds, as a BibTeX entry."""
        blocks: list[str] = re.findall(r"(?ms)^```bibtex\n(.*?)^```", self.card())
        return blocks[0]


@cache
def laws() -> tuple[LawInfo, ...]:
    """All laws, in the order of the registry."""
    return tuple(
        LawInfo(
            name=entry["name"],
            title=entry["title"],
            variants=tuple(entry["variants"]),
            family=entry["family"],
            signals=tuple(entry["signals"]),
            slow_start=entry["slow_start"],
            targets=tuple(entry["targets"]),
            source=entry["source"],
            probes=tuple(entry["probes"]),
            color=entry["color"],
            marker=entry["marker"],
        )
        for entry in _core.laws()
    )


@cache
def law(name: str) -> LawInfo:
    """The law NAME, or that of NAME:VARIANT; of udt/NAME the law that drives UDT.

    Raises:
        LawError: when no law has this name, or not this variant.
    """
    name = name.removeprefix("udt/")
    _core.card(name)  # raises, naming the nearest law or variant
    return next(law for law in laws() if law.name == name.partition(":")[0])


def known(name: str) -> LawInfo | None:
    """The law NAME or NAME:VARIANT; None for a prototype, or what another tool measured."""
    try:
        return law(name)
    except LawError:
        return None


def look(name: str) -> tuple[str, str]:
    """Colour and marker of a law in plots: the registry's, or one of those kept for other laws."""
    if (info := known(name)) is not None:
        return info.color, info.marker
    return _OTHER_COLORS[zlib.crc32(name.encode()) % len(_OTHER_COLORS)], "*"
