"""Scenarios as immutable Python values.

A scenario in TOML and a scenario built here are two spellings of one value:
``Scenario.from_toml(s.to_toml()) == s``. Quantities are strings with units ("10Gbit/s", "100ms",
"250 packets"). Nothing is validated or defaulted here: ``None`` means "not said", and the one
implementation of the rules, in Rust, is asked by :meth:`Scenario.check`.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from lfnlab import _core
from lfnlab.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from lfnlab.sweep import Progress, Results

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Queue:
    """What waits before the bottleneck, and what happens when it fills.

    ``size`` is "250 packets", "12.5MB" or "0.5bdp" (rate times the largest base RTT of the flows).
    All fields but ``kind`` and ``size`` belong to RED; see ``docs/reference``.
    """

    kind: Literal["drop-tail", "red"] | None = None
    size: str | None = None
    preset: Literal["classic", "gentle", "adaptive"] | None = None
    min_th: str | None = None
    max_th: str | None = None
    weight: float | Literal["auto"] | None = None
    max_p: float | None = None
    wait: bool | None = None
    ecn: bool | None = None
    target_delay: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reverse:
    """The bottleneck in the direction of the ACKs; what is not said is as in :class:`Link`."""

    rate: str | None = None
    loss: float | None = None
    queue: Queue | None = None


@dataclass(frozen=True, kw_only=True)
class Link:
    """The bottleneck: its rate, its queue, and the probability that a data packet is lost."""

    rate: str
    mode: Literal["closed", "event"] | None = None
    loss: float | None = None
    queue: Queue | None = None
    reverse: Reverse | None = None


@dataclass(frozen=True, kw_only=True)
class Flow:
    """``count`` flows of one law. ``rtt`` is the round trip of the empty path."""

    law: str
    rtt: str
    count: int | None = None
    start: str | None = None
    stop: str | None = None
    size: str | None = None
    direction: Literal["forward", "reverse"] | None = None
    packet: str | None = None
    receive_window: str | None = None
    initial_window: str | None = None
    initial_ssthresh: str | None = None
    slow_start: Literal["classic", "limited", "hystart", "hystart++"] | None = None
    delayed_ack: bool | None = None
    sack: bool | None = None
    ecn: bool | None = None
    pacing: bool | None = None


class FlowSettings(TypedDict, total=False):
    """What :meth:`Scenario.flow` takes besides law and RTT: the other fields of :class:`Flow`."""

    count: int
    start: str
    stop: str
    size: str
    direction: Literal["forward", "reverse"]
    packet: str
    receive_window: str
    initial_window: str
    initial_ssthresh: str
    slow_start: Literal["classic", "limited", "hystart", "hystart++"]
    delayed_ack: bool
    sack: bool
    ecn: bool
    pacing: bool


@dataclass(frozen=True, kw_only=True)
class Background:
    """Short flows of five applications, both ways, and a few long flows capped at 20 packets."""

    level: int | None = None
    long_flows: int | None = None


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One dumbbell: a bottleneck, the flows under test, and background traffic.

    >>> from lfnlab import dumbbell
    >>> s = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="60s").flow("cubic")
    >>> s.flows[0].law
    'cubic'
    """

    duration: str
    link: Link
    flows: tuple[Flow, ...] = ()
    traffic: Background | None = None
    name: str | None = None
    seed: int = 1
    warmup: str | None = None
    sample: str | None = None
    compat: Literal["linux", "ns2"] | None = None
    default_rtt: str | None = field(default=None, compare=False, repr=False)

    def flow(
        self, law: str, *, rtt: str | None = None, **settings: Unpack[FlowSettings]
    ) -> Scenario:
        """This scenario with one more group of flows.

        ``law`` is NAME or NAME:VARIANT. ``rtt`` defaults to that given to :func:`dumbbell`.
        """
        rtt = rtt or self.default_rtt
        if rtt is None:
            raise TypeError('flow() needs rtt="100ms": this scenario has no default RTT')
        return replace(self, flows=(*self.flows, Flow(law=law, rtt=rtt, **settings)))

    def background(self, level: int, *, long_flows: int | None = None) -> Scenario:
        """This scenario with background traffic of ``level`` 0 to 3.

        On a bottleneck of 1 Gbit/s the levels offer 0, 100, 250 and 400 Mbit/s forward and half of
        it in reverse; on another rate, in proportion.
        """
        return replace(self, traffic=Background(level=level, long_flows=long_flows))

    def with_seed(self, seed: int) -> Scenario:
        """This scenario with another seed of every random stream."""
        return replace(self, seed=seed)

    def to_toml(self) -> str:
        """The same scenario as a TOML document."""
        tables = _said(self)
        tables.pop("default_rtt", None)
        document: dict[str, Any] = {"schema": SCHEMA}
        link, flows = tables.pop("link"), tables.pop("flows")
        traffic = tables.pop("traffic", None)
        document |= tables
        document["link"] = link
        if flows:
            document["flow"] = flows
        if traffic is not None:
            document["background"] = traffic
        return _toml(document)

    @classmethod
    def from_toml(cls, text: str, file: str = "scenario") -> Scenario:
        """The scenario that ``text`` spells; ``file`` is how an error calls it.

        Raises:
            ScenarioError: naming file, line and key of what is wrong.
        """
        _core.check(text, file)
        try:
            # The simulator also reads TOML 1.1 and a byte order mark; Python's parser does not.
            document = tomllib.loads(text.removeprefix("\ufeff"))
        except tomllib.TOMLDecodeError as error:
            raise ScenarioError(f"{file}: not TOML 1.0: {error}; see toml.io/en/v1.0.0") from None
        del document["schema"]
        link = document.pop("link")
        reverse = link.pop("reverse", None)
        flows = tuple(Flow(**flow) for flow in document.pop("flow", ()))
        traffic = document.pop("background", None)
        return cls(
            link=Link(
                **_with_queue(link),
                reverse=None if reverse is None else Reverse(**_with_queue(reverse)),
            ),
            flows=flows,
            traffic=None if traffic is None else Background(**traffic),
            **document,
        )

    @classmethod
    def load(cls, path: str | Path) -> Scenario:
        """The scenario in a file.

        Raises:
            ScenarioError: naming file, line and key of what is wrong.
        """
        return cls.from_toml(_core.read(str(path)), str(path))

    def check(self, file: str = "scenario") -> dict[str, Any]:
        """The scenario with every default filled in, as the simulator will run it.

        Raises:
            ScenarioError: naming line and key of :meth:`to_toml` of what is wrong.
        """
        resolved: dict[str, Any] = json.loads(_core.check(self.to_toml(), file))
        return resolved

    def predict(self) -> dict[str, int]:
        """What a run needs at most: memory_bytes and its parts, packets, events."""
        return _core.predict(self.to_toml(), "scenario")

    def run(
        self,
        *,
        seeds: int | Sequence[int] = 1,
        out: str | Path = "lfn-results",
        jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Results:
        """Run this scenario once for each seed; see :func:`lfnlab.sweep.execute`."""
        from lfnlab.sweep import Case, execute

        return execute(
            [Case(self)], seeds=seeds, out=out, jobs=jobs, progress=progress, title=self.name or ""
        )


def dumbbell(
    *,
    rate: str,
    rtt: str,
    buffer: str,
    duration: str = "60s",
    loss: float | None = None,
    warmup: str | None = None,
    sample: str | None = None,
    compat: Literal["linux", "ns2"] | None = None,
    name: str | None = None,
    seed: int = 1,
) -> Scenario:
    """A drop-tail dumbbell without flows yet; add them with :meth:`Scenario.flow`.

    Args:
        rate: bottleneck rate, "10Gbit/s".
        rtt: base RTT of flows that do not say their own, "100ms".
        buffer: "250 packets", "12.5MB" or "1bdp".
        duration: simulated time.
        loss: probability that a data packet is lost, dimensionless.
        warmup: summary statistics begin here.
        sample: grid of the sampled tables; "off" for none.
        compat: "linux" (today's Linux) or "ns2" (what the papers' simulator did).
        name: free text.
        seed: of every random stream.
    """
    return Scenario(
        duration=duration,
        link=Link(rate=rate, loss=loss, queue=Queue(size=buffer)),
        name=name,
        seed=seed,
        warmup=warmup,
        sample=sample,
        compat=compat,
        default_rtt=rtt,
    )


def _said(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that were given, as plain data, in the order of declaration."""

    def plain(item: Any) -> Any:
        if isinstance(item, tuple | list):
            return [plain(part) for part in item]
        return _said(item) if hasattr(item, "__dataclass_fields__") else item

    given = ((f.name, getattr(value, f.name)) for f in fields(value))
    return {name: plain(item) for name, item in given if item is not None}


def _with_queue(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: Queue(**item) if key == "queue" else item for key, item in table.items()}


def _toml(document: Mapping[str, Any]) -> str:
    lines: list[str] = []

    def scalar(key: str, value: object) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            # JSON strings are TOML basic strings, but for DEL, which TOML wants escaped.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        if isinstance(value, Integral):  # numpy's too
            return str(int(value))
        if isinstance(value, Real):
            return repr(float(value))
        raise ScenarioError(
            f"{key}: found {value!r} of type {type(value).__name__}; "
            "allowed: a text, a number, True, False"
        )

    def is_nested(item: object) -> bool:
        parts = item if isinstance(item, list) else [item]
        return all(isinstance(part, dict) for part in parts)

    def table(path: str, items: Mapping[str, Any], header: Callable[[str], str]) -> None:
        if path:
            lines.append(f"\n{header(path)}")
        nested = {key: item for key, item in items.items() if is_nested(item)}
        lines.extend(
            f"{key} = {scalar(key, item)}" for key, item in items.items() if key not in nested
        )
        for key, item in nested.items():
            below = f"{path}.{key}" if path else key
            for part in item if isinstance(item, list) else [item]:
                table(below, part, "[[{}]]".format if isinstance(item, list) else "[{}]".format)

    table("", document, str)
    return "\n".join(lines) + "\n"
