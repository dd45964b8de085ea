"""The congestion-control laws that this build has, from their registry."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from lfnlab import _core
from lfnlab.errors import ScenarioError

# Paul Tol's "bright" scheme, grey first and orange added: told apart with colour-blind eyes, and
# readable on a white and on a dark page.
_COLOURS = (
    "#888888",
    "#4477aa",
    "#228833",
    "#ccbb44",
    "#55bbdd",
    "#aa3377",
    "#ee8833",
    "#ee6677",
)
# Their number has no factor in common with that of the colours: 88 different pairs.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h")


@dataclass(frozen=True)
class Law:
    """One line of the registry, and how plots show the law."""

    name: str
    variants: tuple[str, ...]
    family: str
    slow_start: str
    targets: tuple[str, ...]
    source: str
    colour: str
    marker: str

    def card(self) -> str:
        """The law's page in Markdown: prose, equations with their source, vectors."""
        text: str = _core.card(self.name)
        return text


@cache
def laws() -> tuple[Law, ...]:
    """All laws, in the order of the registry, from which colours and markers follow."""
    return tuple(
        Law(
            name=entry["name"],
            variants=tuple(entry["variants"]),
            family=entry["family"],
            slow_start=entry["slow_start"],
            targets=tuple(entry["targets"]),
            source=entry["source"],
            colour=_COLOURS[i % len(_COLOURS)],
            marker=_MARKERS[i % len(_MARKERS)],
        )
        for i, entry in enumerate(_core.laws())
    )


def law(name: str) -> Law:
    """The law NAME, or that of NAME:VARIANT.

    Raises:
        ScenarioError: when no law has this name.
    """
    base = name.partition(":")[0]
    for candidate in laws():
        if candidate.name == base:
            return candidate
    known = ", ".join(candidate.name for candidate in laws())
    raise ScenarioError(f'no law is called "{base}"; there are {known}')
