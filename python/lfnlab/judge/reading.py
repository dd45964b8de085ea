"""Read the objective of a score from its file."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from lfnlab import _core
from lfnlab.errors import LawError, ScenarioError, UsageError
from lfnlab.evaluate.subjects import subject
from lfnlab.judge.objective import Objective
from lfnlab.judge.paths import JudgePath
from lfnlab.judge.probing import probes

DEFAULT = "v1"
QUEUES = ("codel", "fq-codel", "pie", "pi2", "dualpi2", "red")
"""Queues that mark."""


def read(name: str | Path = DEFAULT) -> Objective:
    """The objective of a version, or of a file.

    Raises:
        ScenarioError: naming file and key of what is wrong.
        UsageError: no such version.
    """
    folder = files("lfnlab.judge") / "objectives"
    if str(name).endswith(".toml"):
        text, file = _core.read(str(name)), str(name)
    else:
        there = sorted(one.name.removesuffix(".toml") for one in folder.iterdir())
        if name not in there:
            raise UsageError(f'objective: "{name}"; allowed: {", ".join(there)}, or a file .toml')
        file = f"{name}.toml"
        text = (folder / file).read_text(encoding="utf-8")
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"no TOML: {error}", "", "", file) from None
    canonical = json.dumps(said, sort_keys=True).encode()
    try:
        return _objective(_Table(said), hashlib.sha256(canonical).hexdigest()[:12])
    except ScenarioError as error:
        raise error.at(error.key, file) from None


class _Table:
    """Keys of a table, each taken once; what is left is unknown."""

    def __init__(self, said: object, at: str = "") -> None:
        if not isinstance(said, dict):
            raise ScenarioError(f"found {said!r}", "allowed: a table", at)
        self._said, self._at, self._taken = dict(said), at, list[str]()

    def key(self, name: str) -> str:
        return f"{self._at}.{name}" if self._at else name

    def take(self, name: str) -> Any:
        if name not in self._said:
            raise ScenarioError("missing", "objectives have all keys of v1.toml", self.key(name))
        self._taken.append(name)
        return self._said.pop(name)

    def number(self, name: str, least: float, most: float) -> float:
        return _number(self.take(name), self.key(name), least, most)

    def whole(self, name: str, least: int, most: int) -> int:
        return _whole(self.take(name), self.key(name), least, most)

    def text(self, name: str) -> str:
        value = self.take(name)
        if not isinstance(value, str) or not value:
            raise ScenarioError(f"found {value!r}", "allowed: a text", self.key(name))
        return value

    def sequence(self, name: str) -> Sequence[Any]:
        value = self.take(name)
        if not isinstance(value, list) or not value:
            raise ScenarioError(
                f"found {value!r}", "allowed: a list that is not empty", self.key(name)
            )
        return value

    def names(self, name: str) -> tuple[str, ...]:
        value = self.sequence(name)
        if not all(isinstance(one, str) and one for one in value) or len(set(value)) < len(value):
            raise ScenarioError(f"found {value!r}", "allowed: names, each once", self.key(name))
        return tuple(value)

    def table(self, name: str) -> _Table:
        return _Table(self.take(name), self.key(name))

    def tables(self, name: str) -> list[_Table]:
        return [
            _Table(one, f"{self.key(name)}[{at}]") for at, one in enumerate(self.sequence(name))
        ]

    def end(self) -> None:
        for name in self._said:
            allowed = f"allowed: {', '.join(self._taken)}"
            raise ScenarioError("unknown key", allowed, self.key(name))


def _number(value: object, key: str, least: float, most: float) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not (good and least <= value <= most):  # type: ignore[operator]
        raise ScenarioError(f"found {value!r}", f"allowed: from {least:g} to {most:g}", key)
    return float(value)  # type: ignore[arg-type]


def _whole(value: object, key: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        allowed = f"allowed: a whole number from {least} to {most}"
        raise ScenarioError(f"found {value!r}", allowed, key)
    return value


def _objective(said: _Table, content: str) -> Objective:
    time, goodput, refill = said.table("time"), said.table("goodput"), said.table("refill")
    rtt, share, newcomer = said.table("rtt"), said.table("share"), said.table("newcomer")
    short, marks = said.table("short"), said.table("marks")
    paths, cells = said.tables("path"), goodput.tables("cells")
    seeds = [_whole(one, "seeds", 0, 2**63 - 1) for one in said.sequence("seeds")]
    if len(set(seeds)) < len(seeds):
        raise ScenarioError(f"found {seeds}", "allowed: each once", "seeds")
    queues = marks.names("queues")
    if strange := [name for name in queues if name not in QUEUES]:
        raise ScenarioError(f'"{strange[0]}"', f"allowed: {', '.join(QUEUES)}", "marks.queues")
    found = Objective(
        version=said.text("version"),
        hash=content,
        seeds=tuple(seeds),
        least_s=time.number("least_s", 1.0, 1e5),
        least_rtts=time.number("least_rtts", 0.0, 1e5),
        warmup=time.number("warmup", 0.0, 0.5),
        paths=tuple(
            JudgePath(*(one.text(key) for key in ("rate", "rtt", "buffer"))) for one in paths
        ),
        cells=tuple((one.number("loss", 0.0, 0.5), one.whole("background", 0, 3)) for one in cells),
        refill_share=refill.number("share", 0.01, 0.99),
        lost_packets=refill.whole("lost_packets", 1, 10_000),
        outage_s=refill.number("outage_s", 0.01, 100.0),
        rtt_ratio=rtt.number("ratio", 1.01, 100.0),
        beside=share.names("beside"),
        newcomer_share=newcomer.number("share", 0.01, 0.99),
        short_law=short.text("law"),
        short_load=short.number("load", 0.001, 0.9),
        queues=queues,
        marks_buffer=marks.text("buffer"),
        bounds=_bounds(said.take("bounds")),
    )
    for table in (time, goodput, refill, rtt, share, newcomer, short, marks, *paths, *cells, said):
        table.end()
    if (0.0, 0) not in found.cells or len(set(found.cells)) < len(found.cells):
        allowed = "allowed: cells, each once, one of them without loss and background"
        raise ScenarioError(f"found {len(found.cells)} cells", allowed, "goodput.cells")
    for key, law in (
        *(("share.beside", law) for law in found.beside),
        ("short.law", found.short_law),
    ):
        try:
            subject(law)
        except LawError as error:
            raise ScenarioError(f'"{law}"', str(error), key) from None
    marked = JudgePath("100Mbit/s", "20ms", found.marks_buffer).scenario().flow("reno")
    try:
        marked.check()
    except ScenarioError as error:
        raise error.at("marks.buffer") from None
    axes = [axis.name for probe in probes(found) for axis in probe.axes]
    if strange := [name for name in found.bounds if name not in axes]:
        allowed = f"allowed: {', '.join(axes)}"
        raise ScenarioError(f'no axis "{strange[0]}"', allowed, f"bounds.{strange[0]}")
    return found


def _bounds(said: object) -> dict[str, tuple[float, float]]:
    """Of axes: the least and the largest value that a law should have."""
    if not isinstance(said, dict):
        raise ScenarioError(f"found {said!r}", "allowed: a table", "bounds")
    found = {}
    for name, pair in said.items():
        key = f"bounds.{name}"
        if not isinstance(pair, list) or len(pair) != 2:
            raise ScenarioError(f"found {pair!r}", "allowed: [LEAST, MOST]", key)
        low, high = (_number(one, key, -1e12, 1e12) for one in pair)
        if low > high:
            raise ScenarioError(f"found {pair!r}", "allowed: the least first", key)
        found[name] = (low, high)
    return found
