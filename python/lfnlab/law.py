"""The congestion-control laws that this build has, from their registry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from lfnlab import _core


@dataclass(frozen=True)
class Law:
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

    def card(self) -> str:
        """The law's page in Markdown: prose, equations with their source, vectors."""
        return _core.card(self.name)

    def bibtex(self) -> str:
        """The reference of the law, which its card holds, as a BibTeX entry."""
        blocks: list[str] = re.findall(r"(?ms)^```bibtex\n(.*?)^```", self.card())
        return blocks[0]


@cache
def laws() -> tuple[Law, ...]:
    """All laws, in the order of the registry, from which colours and markers follow."""
    return tuple(
        Law(
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
def law(name: str) -> Law:
    """The law NAME, or that of NAME:VARIANT.

    Raises:
        LawError: when no law has this name, or not this variant.
    """
    _core.card(name)  # raises, naming the nearest law or variant
    return next(law for law in laws() if law.name == name.partition(":")[0])
