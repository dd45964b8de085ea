"""Designs of experiments: the values of a scenario's keys, point by point.

A key is written as errors write it: ``link.rate``, ``link.queue.size``, ``flow[0].rtt``,
``flow[*].law`` for all groups, ``flow[*].law:n1`` for a parameter of their laws. The points are
every combination of those of a grid, of lists side by side (``zip``), of independent random draws,
and of a Latin hypercube (McKay, Beckman and Conover, Technometrics 21(2), 1979): of n points each
n-th part of every range has exactly one.

Random values depend only on the design's seed and the key, so a further key does not change those
of the others.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any, Literal

from lfnlab.errors import ScenarioError
from lfnlab.scenario.keywords import keywords
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS

Value = Any
"""A value of TOML: text, number, boolean, table or list."""
Point = dict[str, Value]

MOST_RUNS = 1_000_000
"""Of an experiment: each takes memory while it is planned."""
_WHOLE = ("packets", "segments")
"""Units with whole numbers only."""
_METHODS = ("grid", "zip", "random", "latin-hypercube")


@keywords
@dataclass(frozen=True)
class Range:
    """Values from ``low`` to ``high``, texts with units or numbers, on a linear or log scale.

    Two whole numbers give whole numbers, both ends included; so does the unit "packets".

    >>> Range("10ms", "1s", "log").at(0.5)
    '100ms'
    """

    low: Value
    high: Value
    scale: Literal["linear", "log"] = "linear"

    def __post_init__(self) -> None:
        low, high, _ = self.ends()
        if self.scale not in ("linear", "log"):
            raise ScenarioError(f'"{self.scale}"', "allowed: linear, log", "scale")
        if not low < high or not math.isfinite(high - low):
            raise ScenarioError(f"from {self.low} to {self.high}", "allowed: a larger end")
        if self.scale == "log" and low <= 0:
            raise ScenarioError(f"from {self.low}: a log scale begins above 0")

    def ends(self) -> tuple[float, float, str]:
        """Both ends in the unit of the lower one, and that unit; "" for numbers."""
        if all(isinstance(end, int | float) and not isinstance(end, bool) for end in self._pair):
            return float(self.low), float(self.high), ""
        (low, unit), (high, other) = (_quantity(end) for end in self._pair)
        if unit != other:
            for units in (SECONDS, BYTES, BITS_PER_S):
                if unit in units and other in units:
                    return low, high * units[other] / units[unit], unit
            raise ScenarioError(f'from "{self.low}" to "{self.high}": the units do not agree')
        return low, high, unit

    @property
    def _pair(self) -> tuple[Value, Value]:
        return self.low, self.high

    @property
    def whole(self) -> bool:
        """Whether it has whole numbers only."""
        return all(isinstance(end, int) for end in self._pair) or self.ends()[2].strip() in _WHOLE

    def at(self, u: float) -> Value:
        """The value at ``u`` in [0, 1]: that part of the range lies below it."""
        low, high, unit = self.ends()
        if self.whole:
            high += 1.0  # each whole number has the same part of a linear range
        x = low * (high / low) ** u if self.scale == "log" else low + (high - low) * u
        if self.whole:
            whole = min(math.floor(x), math.floor(high) - 1)
            return f"{whole}{unit}" if unit else whole
        # Six digits: more than any path is known to, and a text that people can read.
        return f"{Decimal(f'{x:.6g}'):f}{unit}" if unit else float(f"{x:.6g}")

    def span(self, values: Sequence[Value]) -> str:
        """From the smallest to the largest of some of its values."""
        unit = self.ends()[2]
        ends = sorted(float(str(value).removesuffix(unit)) for value in values)
        return f"{ends[0]:g}{unit} to {ends[-1]:g}{unit}"


@keywords
@dataclass(frozen=True)
class Choice:
    """One of several values, with equal probability."""

    of: Sequence[Value]

    def __post_init__(self) -> None:
        _listed(self.of, "of")

    def at(self, u: float) -> Value:
        """The value at ``u`` in [0, 1)."""
        return self.of[math.floor(u * len(self.of))]

    def span(self, values: Sequence[Value]) -> str:
        """Which of its values these are."""
        return ", ".join(str(value) for value in self.of if value in values)


@keywords
@dataclass(frozen=True)
class Draws:
    """``points`` draws of each key."""

    points: int
    ranges: Mapping[str, Range | Choice]
    seed: int = 1

    def __post_init__(self) -> None:
        whole = isinstance(self.points, int) and not isinstance(self.points, bool)
        if not whole or not 1 <= self.points <= MOST_RUNS:
            allowed = f"allowed: a whole number of at least 1, at most {MOST_RUNS}"
            raise ScenarioError(repr(self.points), allowed, "points")
        if not self.ranges:
            raise ScenarioError(
                "no key to draw",
                'write for example "flow[0].rtt" = { from = "10ms", to = "300ms" }',
            )

    def random(self) -> list[Point]:
        """Independent draws."""
        columns = {
            key: [at.at(stream.random()) for _ in range(self.points)]
            for key, at, stream in self._streams()
        }
        return _rows(columns, self.points)

    def latin_hypercube(self) -> list[Point]:
        """One draw in each n-th part of every range, the parts of the keys in random order."""
        columns = {}
        for key, at, stream in self._streams():
            order = sorted(
                range(self.points), key=[stream.random() for _ in range(self.points)].__getitem__
            )
            columns[key] = [at.at((part + stream.random()) / self.points) for part in order]
        return _rows(columns, self.points)

    def _streams(self) -> Iterator[tuple[str, Range | Choice, Random]]:
        for key, at in self.ranges.items():
            yield key, at, Random(f"{self.seed}:{key}")


@keywords
@dataclass(frozen=True)
class Design:
    """The points of a sweep: every combination of its parts.

    >>> design = Design(grid={"flow[0].law": ["reno", "cubic"], "link.rate": ["1Gbit/s"]})
    >>> len(design), list(design)[1]
    (2, {'flow[0].law': 'cubic', 'link.rate': '1Gbit/s'})
    """

    grid: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    zip: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    random: Draws | None = None
    latin_hypercube: Draws | None = None

    def __post_init__(self) -> None:
        for method, lists in (("grid", self.grid), ("zip", self.zip)):
            for key, values in lists.items():
                _listed(values, f"{method}.{quoted(key)}")
        if len({len(values) for values in self.zip.values()}) > 1:
            found = ", ".join(f"{key} {len(values)}" for key, values in self.zip.items())
            raise ScenarioError(
                f"lists of different lengths: {found}", "allowed: equal ones", "zip"
            )
        keys = self.keys()
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise ScenarioError(f"{twice[0]} is swept twice", "name each key once")
        if (points := self._count()) > MOST_RUNS:
            raise ScenarioError(f"{points} points", f"allowed: up to {MOST_RUNS}")

    @classmethod
    def from_toml(cls, table: Mapping[str, Value]) -> Design:
        """The design of a ``[sweep]`` table; errors name the key in it."""
        for method, part in table.items():
            if method not in _METHODS:
                allowed = f"allowed: seeds, {', '.join(_METHODS)}"
                raise ScenarioError("unknown key", allowed, quoted(method))
            if not isinstance(part, Mapping) or not part:
                raise ScenarioError(repr(part), "allowed: a table of keys of the scenario", method)
        return cls(
            grid=table.get("grid", {}),
            zip=table.get("zip", {}),
            random=_draws("random", table),
            latin_hypercube=_draws("latin-hypercube", table),
        )

    def keys(self) -> list[str]:
        """The keys that vary, in order."""
        draws = (self.random, self.latin_hypercube)
        return [*self.grid, *self.zip, *(key for part in draws if part for key in part.ranges)]

    def __len__(self) -> int:
        return self._count()

    def _count(self) -> int:
        """Points, without a list of them."""
        sizes = [len(values) for values in self.grid.values()]
        sizes += [len(values) for values in list(self.zip.values())[:1]]
        draws = (self.random, self.latin_hypercube)
        return math.prod(sizes) * math.prod(part.points for part in draws if part)

    def __iter__(self) -> Iterator[Point]:
        for parts in itertools.product(*self._parts()):
            yield {key: value for part in parts for key, value in part.items()}

    def _parts(self) -> list[list[Point]]:
        parts = [[{key: value} for value in values] for key, values in self.grid.items()]
        if self.zip:
            parts.append(_rows(self.zip, len(next(iter(self.zip.values())))))
        if self.random:
            parts.append(self.random.random())
        if self.latin_hypercube:
            parts.append(self.latin_hypercube.latin_hypercube())
        return parts


def quoted(key: str) -> str:
    """A key in the form that errors use."""
    return key if re.fullmatch(r"[\w-]+", key, re.ASCII) else f'"{key}"'


def factor(value: Value) -> str | int | float:
    """A value as the results name it: a table or a list as JSON."""
    return value if isinstance(value, str | int | float) else json.dumps(value)


def with_values(document: Mapping[str, Value], point: Point) -> dict[str, Value]:
    """The tables of a scenario with the values of a point set.

    Raises:
        ScenarioError: naming the key that does not exist.
    """
    changed: dict[str, Value] = copy.deepcopy(dict(document))
    for key, value in point.items():
        _set(changed, key, value)
    return changed


def _set(document: dict[str, Value], key: str, value: Value) -> None:
    path, _, parameter = key.partition(":")
    if not re.fullmatch(_PATH, path) or not re.fullmatch(r"[\w-]*", parameter):
        raise ScenarioError(
            "not a key", 'write for example link.rate, "flow[0].law", "flow[*].law:n1"', key
        )
    *parents, (last, place) = re.findall(_STEP, path)
    homes = [document]
    for name, index in parents:
        homes = [home for parent in homes for home in _below(parent, name, index, key)]
    for home in homes:
        if parameter:
            home[last] = _with_parameter(home.get(last), parameter, value, key)
        elif not place:
            home[last] = copy.deepcopy(value)
        else:
            entries = home.get(last)
            if not isinstance(entries, list):
                raise ScenarioError(f"the scenario has no list {last}", key=key)
            for at in _places(entries, place, key):
                entries[at] = copy.deepcopy(value)


def _with_parameter(spec: Value, parameter: str, value: Value, key: str) -> str:
    """The name of a law with a parameter set, as in evcp:n1=3."""
    if not isinstance(spec, str):
        raise ScenarioError(f"only the name of a law has parameters; found {spec!r}", key=key)
    parts = [part for part in spec.split(":") if part.partition("=")[0] != parameter]
    return ":".join((*parts, f"{parameter}={value}"))


_STEP = r"([A-Za-z_][\w-]*)(?:\[(\d+|\*)\])?"
_PATH = rf"{_STEP}(?:\.{_STEP})*"


def _below(home: dict[str, Value], name: str, place: str, key: str) -> list[dict[str, Value]]:
    """The tables under a name; a missing table is created."""
    found = home.setdefault(name, {}) if not place else home.get(name, [])
    tables = [found[at] for at in _places(found, place, key)] if place else [found]
    if not all(isinstance(table, dict) for table in tables):
        raise ScenarioError(f"{name} is not a table in the scenario; found {found!r}", key=key)
    return tables


def _places(entries: list[Value], place: str, key: str) -> Sequence[int]:
    if place == "*" and entries:
        return range(len(entries))
    if place == "*" or int(place) >= len(entries):
        raise ScenarioError(
            f"no entry [{place}]", f"the scenario has {len(entries)}, counted from 0", key
        )
    return [int(place)]


def ranges(said: Mapping[str, Value]) -> dict[str, Range | Choice]:
    """Ranges and choices as TOML says them, by their keys, which errors have."""
    return {key: _range(key, part) for key, part in said.items()}


def _draws(method: str, table: Mapping[str, Value]) -> Draws | None:
    if method not in table:
        return None
    said = dict(table[method])
    points, seed = said.pop("points", None), said.pop("seed", 1)
    if points is None:
        raise ScenarioError("no points", "say how many, for example points = 100", method)
    try:
        return Draws(points, ranges(said), seed)
    except ScenarioError as error:
        raise error.at(f"{method}.{error.key}" if error.key else method) from None


def _range(key: str, said: Value) -> Range | Choice:
    try:
        if isinstance(said, list):
            return Choice(said)
        if isinstance(said, Mapping) and {"from", "to"} <= set(said) <= {"from", "to", "scale"}:
            return Range(said["from"], said["to"], said.get("scale", "linear"))
    except ScenarioError as error:
        raise error.at(quoted(key)) from None
    raise ScenarioError(
        repr(said),
        'allowed: a list of values, or { from = "10ms", to = "300ms", scale = "log" }',
        quoted(key),
    )


def _listed(values: Value, key: str) -> None:
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise ScenarioError(repr(values), "allowed: a list of at least one value", key)


def _quantity(end: Value) -> tuple[float, str]:
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)(\s*[A-Za-z/]+)\s*", str(end))
    if found is None or not isinstance(end, str):
        raise ScenarioError(repr(end), 'allowed: two numbers, or two texts such as "10ms"')
    return float(found[1]), found[2]


def _rows(columns: Mapping[str, Sequence[Value]], count: int) -> list[Point]:
    return [{key: values[i] for key, values in columns.items()} for i in range(count)]
