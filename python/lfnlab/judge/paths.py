"""Paths that laws are judged on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lfnlab.errors import ScenarioError
from lfnlab.scenario.builder import Scenario, dumbbell
from lfnlab.scenario.quantity import SECONDS, parse


@dataclass(frozen=True)
class JudgePath:
    """A dumbbell with a drop-tail queue.

    Args:
        rate: of the bottleneck, "100Mbit/s".
        rtt: base RTT, "40ms".
        buffer: "1bdp", "250 packets" or "1MB".
        name: of the path in tables; default its values.
    """

    rate: str
    rtt: str
    buffer: str
    name: str = ""

    def __str__(self) -> str:
        return self.name or f"{self.rate} {self.rtt} {self.buffer}"

    def scenario(self) -> Scenario:
        """The path without flows."""
        return dumbbell(rate=self.rate, rtt=self.rtt, buffer=self.buffer)


Path = JudgePath | Scenario
"""A path, or a scenario of :func:`lfnlab.dumbbell` without flows, whose link may have any queue,
loss, trace or jitter."""


@dataclass(frozen=True)
class Place:
    """A path with its name and the length of its runs."""

    name: str
    empty: Scenario
    rtt: str
    rtt_s: float
    duration_s: float
    warmup_s: float

    def scenario(self, *, sampled: bool) -> Scenario:
        """The path without flows; with tables, each 100 ms, where they are needed."""
        return replace(
            self.empty,
            duration=f"{self.duration_s:g}s",
            warmup=f"{self.warmup_s:g}s",
            sample="100ms" if sampled else None,
        )


def places(
    paths: Sequence[Path] | Mapping[str, Path], least_s: float, least_rtts: float, warmup: float
) -> list[Place]:
    """The paths, in the order of their names.

    A path with a schedule runs at least as long as its own duration says.

    Raises:
        ScenarioError: no path, two of one name, or a path that is no empty dumbbell.
    """
    named = paths.items() if isinstance(paths, Mapping) else [(_name(path), path) for path in paths]
    found = {}
    for name, path in named:
        if not isinstance(name, str) or not name:
            raise ScenarioError(f"the name {name!r}", "allowed: a text", "paths")
        if name in found:
            raise ScenarioError(f'two paths are called "{name}"', "name each once", "paths")
        found[name] = _place(name, path, least_s, least_rtts, warmup)
    if not found:
        raise ScenarioError("none", "allowed: at least one", "paths")
    return [found[name] for name in sorted(found)]


def _name(path: Path) -> str:
    if isinstance(path, JudgePath):
        return str(path)
    if not isinstance(path, Scenario):
        raise ScenarioError(f"found {path!r}", "allowed: a JudgePath or a Scenario", "paths")
    if path.name:
        return path.name
    link = path.link
    size = (
        "" if link is None or link.queue is None else f" {link.queue.kind or ''} {link.queue.size}"
    )
    rate = "" if link is None else link.rate or "trace"
    return " ".join(f"{rate} {path.default_rtt}{size}".split())


def _place(name: str, path: Path, least_s: float, least_rtts: float, warmup: float) -> Place:
    empty = path.scenario() if isinstance(path, JudgePath) else path
    if not isinstance(empty, Scenario):
        raise ScenarioError(f"found {path!r}", "allowed: a JudgePath or a Scenario", "paths")
    if empty.link is None or empty.default_rtt is None:
        raise ScenarioError(name, "allowed: a path that lfnlab.dumbbell() made", "paths")
    if empty.flows or empty.traffic or empty.udp or empty.background.level:
        raise ScenarioError(name, "allowed: a path without flows; the judge adds them", "paths")
    try:
        empty.flow("reno").check()
    except ScenarioError as error:
        raise ScenarioError(f'{error.found} (path "{name}")', error.hint, error.key) from None
    rtt_s = parse(empty.default_rtt, SECONDS)
    own_s = parse(empty.duration, SECONDS) if empty.schedule else 0.0
    # In tenths of a second, as the samples.
    duration_s = round(max(least_s, least_rtts * rtt_s, own_s), 1)
    return Place(name, empty, empty.default_rtt, rtt_s, duration_s, round(warmup * duration_s, 1))
