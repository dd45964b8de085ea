"""The shape of an experiment: which of its factors are numbers, and which mark shows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from lfnlab.errors import UsageError
from lfnlab.figures.columns import SCALES, scaled, texts, unit
from lfnlab.figures.style import current
from lfnlab.results.cases import COMPARED
from lfnlab.results.runs import short
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, parsed

if TYPE_CHECKING:
    from lfnlab.results.cases import Factor, Group

Mark = Literal["bars", "lines", "cells", "points"]

_DIMENSIONS: tuple[tuple[str, Mapping[str, float]], ...] = (
    ("s", SECONDS),
    ("bit/s", BITS_PER_S),
    ("B", BYTES),
    ("BDP", {"bdp": 1.0}),
    ("packets", {"packets": 1.0, "packet": 1.0}),
)
_ON_AN_AXIS = 3
"""A factor of fewer numbers has no axis."""
_ON_TWO_AXES = 4
"""Two factors of at least so many numbers make a heat map."""
_TICKS, _APART, _LETTER = 6, 0.16, 0.025
"""An axis names each value if there are at most so many, so far apart in lengths of the axis.
Each letter of two neighbours needs so much of it."""
_DECADES = 1.5
"""Powers of ten from the least to the largest number, from which on an axis is logarithmic."""


@dataclass(frozen=True)
class Numbers:
    """A factor whose values are numbers, or quantities of one kind."""

    label: str
    places: Mapping[Factor, float]
    """Of each value on the axis, in order."""
    names: Mapping[Factor, str]
    """The numbers as they stand at the axis."""
    logarithmic: bool
    stepped: bool
    """Whether places only count the values."""

    def ticks(self) -> list[tuple[float, str]] | None:
        """Places and names of all values; None where they are too many, or too near."""
        named = [*zip(self.places.values(), self.names.values(), strict=True)]
        if self.stepped:
            return named[:: -(-len(named) // _TICKS)]
        along = [math.log(x) if self.logarithmic else x for x in self.places.values()]
        gaps = [(b - a) / (along[-1] - along[0]) for a, b in pairwise(along)]
        letters = [len(a) + len(b) for a, b in pairwise(self.names.values())]
        near = [g < max(_APART, _LETTER * n) for g, n in zip(gaps, letters, strict=True)]
        return None if len(along) > _TICKS or any(near) else named


def numbers(key: str, values: Iterable[Factor]) -> Numbers | None:
    """The numbers that a factor takes, in the unit that suits the largest; None for names."""
    known = list(dict.fromkeys(values))
    word = short([key])[key]
    for kind, units in _DIMENSIONS:
        found = {v: parsed(v, units) for v in known if isinstance(v, str)}
        sizes: dict[Factor, float] = {
            value: size for value, size in found.items() if size is not None
        }
        if known and len(sizes) == len(known):
            return _scaled(word, kind, sizes)
    plain: dict[Factor, float] = {
        value: float(value) for value in known if not isinstance(value, str)
    }
    if len(plain) < len(known) or not all(map(math.isfinite, plain.values())):
        return None
    kind = unit(key)
    word = word.removesuffix("_s").removesuffix("_bps") if kind in SCALES else word
    return _scaled(word, kind, plain)


def _scaled(word: str, kind: str, sizes: Mapping[Factor, float]) -> Numbers:
    scale, shown = scaled(kind, list(sizes.values()))
    places = {value: size / scale for value, size in sorted(sizes.items(), key=lambda p: p[1])}
    names = dict(zip(places, texts([*places.values()]), strict=True))
    positive = [place for place in places.values() if place > 0.0]
    wide = math.log10(max(positive, default=1.0) / min(positive, default=1.0)) > _DECADES
    stepped = wide and len(positive) < len(places)  # zero has no logarithm
    if stepped:
        places = {value: float(i) for i, value in enumerate(places)}
    label = f"{word} ({shown})" if shown else word
    return Numbers(label, places, names, wide and not stepped, stepped)


def named(groups: Iterable[Group], keys: Sequence[str]) -> tuple[list[str], list[str]]:
    """Keys whose values name a series, which are laws and routes or links, and the other keys.

    Of several factors that are laws none names a series, and each has its panels.
    """
    of_series = [key for key in keys if key in ("law", "route", "link")]
    others = [key for key in keys if key not in of_series]
    swept = [key for key in others if key == COMPARED or key.endswith(".law")]
    if len(swept) == 1:
        return [*of_series, *swept], [key for key in others if key not in swept]
    return of_series, others


@dataclass(frozen=True)
class Shape:
    """How an experiment is drawn: a mark, and what each of its keys is for."""

    mark: Mark
    axes: dict[str, Numbers]
    """Factors with an axis; of points each has a panel of its own."""
    series: list[str]
    panels: list[str]

    @classmethod
    def of(cls, groups: Sequence[Group], keys: Sequence[str]) -> Shape:
        """The shape of an experiment with these cases.

        Bars where no factor is a number; lines over one; heat maps of two; points where the values
        of several factors were drawn and not combined. The style may keep a factor for panels.
        """
        series, others = named(groups, keys)
        chosen = _panels(others)
        free = [key for key in others if key != chosen]
        values = {key: [group[keys.index(key)] for group in groups] for key in free}
        counted = {key: numbers(key, own) for key, own in values.items()}
        axes = {key: found for key, found in counted.items() if found is not None}
        long = {key: axis for key, axis in axes.items() if len(axis.places) >= _ON_AN_AXIS}
        points = len({tuple(values[key][i] for key in axes) for i in range(len(groups))})
        every = math.prod(len(axis.places) for axis in axes.values())
        if len(long) >= 2 and points <= every / 2:
            return cls("points", long, series, [key for key in others if key not in axes])
        by_length = sorted(long, key=lambda key: -len(long[key].places))
        if len([key for key in long if len(long[key].places) >= _ON_TWO_AXES]) >= 2:
            both = {key: long[key] for key in by_length[:2]}
            return cls("cells", both, series, [key for key in others if key not in both])
        if by_length:
            first = by_length[0]
            return cls(
                "lines", {first: long[first]}, series, [key for key in others if key != first]
            )
        return cls("bars", {}, series, others)


def _panels(keys: Sequence[str]) -> str | None:
    """The factor among these that the style wants for panels.

    Raises:
        UsageError: if it is none of them.
    """
    if (chosen := current().panels) is None:
        return None
    words = short(list(keys))
    for key in keys:
        if chosen in (key, words[key]):
            return key
    allowed = f"allowed: {', '.join(keys)}" if keys else "this figure has no factor but its series"
    raise UsageError(f'panels: "{chosen}"; {allowed}')


def in_order(key: str, values: Iterable[Factor]) -> list[Factor]:
    """The values of a factor: numbers by size, names as they come."""
    known = list(dict.fromkeys(values))
    found = numbers(key, known)
    return known if found is None else [*found.places]


def ordered(groups: Iterable[Group], keys: Sequence[str], by: Sequence[str]) -> list[Group]:
    """Groups in the order of these factors, else as they come."""
    known = list(groups)
    for key in reversed(by):
        place = keys.index(key)
        ranks = {v: i for i, v in enumerate(in_order(key, [group[place] for group in known]))}
        known.sort(key=lambda group: ranks[group[place]])
    return known


def series_name(told: Mapping[str, Factor], keys: Sequence[str]) -> str:
    """The values that name a series: "cubic, reverse, beside htcp" where another law was swept."""
    if "link" in keys:
        return ", ".join(str(told[key]) for key in keys)
    if "law" not in told:
        return ", ".join(str(told[key]) for key in keys)
    others = [str(told[key]) for key in keys if key == "route" or told[key] != told["law"]]
    if others and keys[-1] not in ("law", "route") and told[keys[-1]] != told["law"]:
        others[-1] = f"beside {others[-1]}"
    return ", ".join([str(told["law"]), *others])


def panel_name(told: Mapping[str, Factor], keys: Sequence[str]) -> str:
    """The values that name a panel: "queue.size 0.1bdp, loss 1e-05"."""
    words = short(list(told))
    return ", ".join(f"{words[key]} {told[key]}" for key in keys)
