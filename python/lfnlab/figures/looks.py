"""Colour, dashes, marker and hatching of the series of a figure.

A law keeps its colour in every figure. Series with similar colours (two laws, or variants of one
law) have different dashes, markers and hatching.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from lfnlab.control_laws.registry import known, laws, look
from lfnlab.figures.style import GREYS, current

K = TypeVar("K", bound="Hashable")

ALIKE = 24.0
"""Colours nearer than this in CIELAB (CIE 1976) are taken for one where lines are thin."""
_DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (5.0, 1.8),
    (1.3, 1.3),
    (6.0, 1.5, 1.3, 1.5),
    (2.6, 1.4),
    (9.0, 2.5),
    (6.0, 1.4, 1.3, 1.4, 1.3, 1.4),
    (2.6, 1.2, 1.3, 3.0),
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "----", "oo")


@dataclass(frozen=True)
class Look:
    """How a series is drawn."""

    color: str
    dashes: tuple[float, ...]
    """Lengths of line and gap in line widths; none for a full line."""
    marker: str
    hatch: str

    @property
    def linestyle(self) -> Any:
        """The dashes as matplotlib takes them."""
        return (0, self.dashes) if self.dashes else "-"


_beside: ContextVar[frozenset[str]] = ContextVar("beside", default=frozenset())


@contextmanager
def beside(laws: Iterable[str]) -> Iterator[None]:
    """Figures made within have the colours that they have beside these laws, drawn or not."""
    token = _beside.set(frozenset(map(_base, laws)))
    try:
        yield
    finally:
        _beside.reset(token)


def looks(series: Mapping[K, str | None]) -> dict[K, Look]:
    """A look for each series of one figure, no two alike.

    Up to the product of colours and dashes (about sixty) they differ; beyond it looks return. The
    registry has eleven colours for all laws. Of laws of one colour the first of the registry has
    it, and the others take lighter or darker shades, in whatever order the series are.

    Args:
        series: the law whose colour each series takes, None for the next of the house's.
    """
    found: dict[K, Look] = {}
    greys = itertools.cycle(GREYS) if current().palette == "grey" else None
    palette = list(GREYS if greys else dict.fromkeys(info.color for info in laws()))
    others = itertools.cycle((info.color, info.marker) for info in laws())
    inks = _inks(_beside.get() | {_base(law) for law in series.values() if law is not None})
    for key, law in series.items():
        color, marker = next(others) if law is None else (inks[_base(law)], look(law)[1])
        color = color if greys is None else next(greys)
        near = _any if greys else alike
        found[key] = _free(color, marker, palette, list(found.values()), near)
    return found


def _base(law: str) -> str:
    """The name whose colour a law has: the registry's, without variant and transport."""
    info = known(law)
    return law if info is None else info.name


def _inks(names: Set[str]) -> dict[str, str]:
    """Colours of laws, no two alike."""
    places = {info.name: place for place, info in enumerate(laws())}
    found: dict[str, str] = {}
    taken = sorted({look(name)[0] for name in names})
    owned = set()
    for name in sorted(names, key=lambda name: (places.get(name, len(places)), name)):
        color, _ = look(name)
        if color in owned:
            color = _shade(color, taken)
            taken.append(color)
        owned.add(color)
        found[name] = color
    return found


def _shade(color: str, taken: Sequence[str]) -> str:
    """A lighter or darker shade of a colour: the one farthest from those that are taken."""
    parts = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    mixed = [
        [round(part + (end - part) * share) for part in parts]
        for end, share in ((0, 0.35), (255, 0.4), (0, 0.5), (255, 0.55))
    ]
    shades = ["#{:02X}{:02X}{:02X}".format(*shade) for shade in mixed]
    return max(shades, key=lambda shade: min(_distance(shade, other) for other in taken))


def _any(_one: str, _other: str) -> bool:
    """Greys are never told apart by themselves."""
    return True


def _free(
    color: str,
    marker: str,
    palette: list[str],
    taken: list[Look],
    alike: Callable[[str, str], bool],
) -> Look:
    """The first look that none has: in this colour if its dashes suffice, else in another."""
    for ink in dict.fromkeys((color, *palette)):
        near = [other for other in taken if alike(ink, other.color)]
        places = [_DASHES.index(other.dashes) for other in near]
        free = [place for place in range(len(_DASHES)) if place not in places]
        if free:
            markers = dict.fromkeys((marker, *_MARKERS))
            worn = [other.marker for other in near]
            own = next((one for one in markers if one not in worn), marker)
            return Look(ink, _DASHES[free[0]], own, _HATCHES[free[0]])
    place = len(taken) % len(_DASHES)
    return Look(color, _DASHES[place], marker, _HATCHES[place])


@cache
def alike(one: str, other: str) -> bool:
    """Whether two colours, ``#rrggbb``, may be taken for one another."""
    return _distance(one, other) < ALIKE


def _distance(one: str, other: str) -> float:
    """Of two colours in CIELAB."""
    return math.dist(_lab(one), _lab(other))


def _lab(color: str) -> tuple[float, float, float]:
    """CIELAB of a colour in sRGB (IEC 61966-2-1), white point D65."""
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    )
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
        for t in (
            (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
            0.2126 * red + 0.7152 * green + 0.0722 * blue,
            (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
        )
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)
