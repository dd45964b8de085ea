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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from lfnlab import _core
from lfnlab.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lfnlab.sweep import Progress, Results

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Queue:
    """What waits before a link, and what happens when it fills.

    ``size`` is "250 packets", "12.5MB" or "0.5bdp" (rate times the largest base RTT of the flows
    that pass). The other fields belong to one kind or another; see ``docs/scenario.md``.
    """

    kind: Literal["drop-tail", "drop-head", "red", "codel", "fq-codel", "pie"] | None = None
    size: str | None = None
    preset: Literal["classic", "gentle", "adaptive"] | None = None
    min_th: str | None = None
    max_th: str | None = None
    weight: float | Literal["auto"] | None = None
    max_p: float | None = None
    gentle: bool | None = None
    adaptive: bool | None = None
    wait: bool | None = None
    byte_mode: bool | None = None
    mark_p: float | None = None
    ecn: bool | None = None
    target_delay: str | None = None
    target: str | None = None
    interval: str | None = None
    queues: int | None = None
    quantum: str | None = None
    update: str | None = None
    alpha: float | None = None
    beta: float | None = None
    burst: str | None = None


@dataclass(frozen=True, kw_only=True)
class Router:
    """What a link tells the senders of the data that pass it; ``docs/router.md`` has the protocols.

    The fields besides ``kind`` belong to one kind or another.
    """

    kind: Literal["none", "vcp", "xcp", "rcp", "jetmax"]
    alpha: float | None = None
    beta: float | None = None
    gamma: float | None = None
    compat: Literal["paper", "author"] | None = None
    interval: str | None = None


@dataclass(frozen=True, kw_only=True)
class File:
    """A file, and the hash that it must have. A bare path is relative to the working directory."""

    path: str
    hash: str | None = None


@dataclass(frozen=True, kw_only=True)
class GilbertElliott:
    """Loss in bursts: ``p`` from good to bad, ``r`` back, and the loss in each state."""

    p: float
    r: float
    good: float | None = None
    bad: float | None = None
    kind: Literal["gilbert-elliott"] = "gilbert-elliott"


@dataclass(frozen=True, kw_only=True)
class Reorder:
    """A packet is held up by ``delay`` with probability ``p``."""

    p: float
    delay: str


@dataclass(frozen=True, kw_only=True)
class Jitter:
    """An additional delay: uniform from ``low`` to ``high``, or normal."""

    kind: Literal["uniform", "normal"] | None = None
    low: str | None = None
    high: str | None = None
    mean: str | None = None
    deviation: str | None = None
    keep_order: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Reverse:
    """The opposite direction of a link; what is not said is as in the link."""

    rate: str | None = None
    trace: str | File | None = None
    delay: str | None = None
    loss: float | GilbertElliott | None = None
    duplicate: float | None = None
    reorder: Reorder | None = None
    jitter: Jitter | None = None
    queue: Queue | None = None
    router: Router | None = None


@dataclass(frozen=True, kw_only=True)
class Link(Reverse):
    """The bottleneck of a dumbbell: a rate or a trace, and what happens to data packets there."""

    mode: Literal["closed", "event"] | None = None
    reverse: Reverse | None = None


@dataclass(frozen=True, kw_only=True)
class ParkingLot(Link):
    """Equal hops in a row between the routers 1, 2, 3, ..."""

    hops: int


@dataclass(frozen=True, kw_only=True)
class NamedLink(Link):
    """A link between two nodes; its opposite direction is called NAME.reverse."""

    name: str
    from_: str | int
    to: str | int
    duplex: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Flow:
    """``count`` flows of one law, each of ``parallel`` streams that are reported in sum.

    ``rtt`` is the round trip of the empty path, by default the delays of its links. Where there are
    nodes, data go ``from_`` one ``to`` another, past the nodes ``via`` or over the links ``route``.
    """

    law: str
    rtt: str | None = None
    name: str | None = None
    count: int | None = None
    parallel: int | None = None
    start: str | None = None
    stop: str | None = None
    size: str | None = None
    direction: Literal["forward", "reverse"] | None = None
    from_: str | int | None = None
    to: str | int | None = None
    via: tuple[str | int, ...] = ()
    route: tuple[str, ...] = ()
    ack_route: tuple[str, ...] = ()
    packet: str | None = None
    receive_window: str | None = None
    initial_window: str | None = None
    initial_ssthresh: str | None = None
    slow_start: Literal["classic", "limited", "hystart", "hystart++", "none"] | None = None
    delayed_ack: bool | None = None
    sack: bool | None = None
    ecn: bool | None = None
    pacing: bool | None = None


class FlowSettings(TypedDict, total=False):
    """What :meth:`Scenario.flow` takes besides law and RTT: the other fields of :class:`Flow`."""

    name: str
    count: int
    parallel: int
    start: str
    stop: str
    size: str
    direction: Literal["forward", "reverse"]
    from_: str | int
    to: str | int
    via: tuple[str | int, ...]
    route: tuple[str, ...]
    ack_route: tuple[str, ...]
    packet: str
    receive_window: str
    initial_window: str
    initial_ssthresh: str
    slow_start: Literal["classic", "limited", "hystart", "hystart++", "none"]
    delayed_ack: bool
    sack: bool
    ecn: bool
    pacing: bool


@dataclass(frozen=True, kw_only=True)
class Burst:
    """A constant rate from ``start``, by default the end of the one before it, until ``stop``."""

    rate: str
    start: str | None = None
    stop: str | None = None


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Rates one after the other, ``each`` of them this long."""

    each: str
    rates: tuple[str, ...]
    start: str | None = None


@dataclass(frozen=True, kw_only=True)
class OnOff:
    """The sum of on/off sources whose bursts and pauses are Pareto distributed."""

    sources: int
    rate: str | None = None
    burst: str | None = None
    idle: str | None = None
    shape: float | None = None
    tail_ratio: float | None = None


@dataclass(frozen=True, kw_only=True)
class Udp:
    """A UDP source: ``bursts``, ``steps`` or ``on_off``. Rates are bits on the wire per second."""

    name: str | None = None
    direction: Literal["forward", "reverse"] | None = None
    from_: str | int | None = None
    to: str | int | None = None
    via: tuple[str | int, ...] = ()
    route: tuple[str, ...] = ()
    packet: str | None = None
    bursts: tuple[Burst, ...] = ()
    steps: Steps | None = None
    on_off: OnOff | None = None


@dataclass(frozen=True, kw_only=True)
class Background:
    """Short flows of five applications, both ways, and a few long flows capped at 20 packets."""

    level: int | None = None
    long_flows: int | None = None
    from_: str | int | None = None
    to: str | int | None = None
    via: tuple[str | int, ...] = ()
    route: tuple[str, ...] = ()
    ack_route: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShortFlows:
    """Poisson arrivals of flows with Pareto sizes that offer ``load`` of payload per second."""

    load: str
    mean: str | None = None
    shape: float | None = None


@dataclass(frozen=True, kw_only=True)
class Packmime:
    """PackMime-HTTP: ``connections`` new ones per second, with requests or answers alone."""

    connections: float
    requests: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Webtraf:
    """ns-2's web sessions of 250 pages."""

    sessions: int


@dataclass(frozen=True, kw_only=True)
class Surge:
    """SURGE: users who read pages without end."""

    users: int


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """A replay of the connections in ``file``, times of start multiplied by ``scale``."""

    file: str | File
    scale: float | None = None
    shuffle: str | None = None


@dataclass(frozen=True, kw_only=True)
class Suite:
    """The pairs of the common TCP evaluation suite, payload offered per second either way."""

    load: str
    reverse_load: str
    rtts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """TCP traffic as one model makes it; the path is that of the larger part of the bytes."""

    name: str | None = None
    law: str | None = None
    direction: Literal["forward", "reverse"] | None = None
    from_: str | int | None = None
    to: str | int | None = None
    via: tuple[str | int, ...] = ()
    route: tuple[str, ...] = ()
    ack_route: tuple[str, ...] = ()
    rtt: str | None = None
    receive_window: str | None = None
    short_flows: ShortFlows | None = None
    packmime: Packmime | None = None
    webtraf: Webtraf | None = None
    surge: Surge | None = None
    vectors: Vectors | None = None
    suite: Suite | None = None


@dataclass(frozen=True, kw_only=True)
class Change:
    """At a time, a ``link`` changes, or the ``flow`` group of this index or name takes a new route.

    With ``file`` (CSV: ``time,rate``, ``time,delay`` or ``time,loss``) the link does as it says.
    """

    at: str | None = None
    link: str | None = None
    rate: str | None = None
    delay: str | None = None
    loss: float | None = None
    down: bool | None = None
    file: str | File | None = None
    flow: int | str | None = None
    route: tuple[str, ...] = ()
    ack_route: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Capture:
    """Which packets to record: on these links, by default on all, in a span of time."""

    links: tuple[str, ...] = ()
    from_: str | None = None
    to: str | None = None
    max_rows: int | None = None


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Links, the flows under test, other traffic, and what changes on the way.

    The links are one of ``link`` (a dumbbell), ``parking_lot`` and ``links`` (any graph).

    >>> from lfnlab import dumbbell
    >>> s = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="60s").flow("cubic")
    >>> s.flows[0].law
    'cubic'
    """

    duration: str
    link: Link | None = None
    parking_lot: ParkingLot | None = None
    links: tuple[NamedLink, ...] = ()
    flows: tuple[Flow, ...] = ()
    udp: tuple[Udp, ...] = ()
    traffic: Background | None = None
    models: tuple[Traffic, ...] = ()
    schedule: tuple[Change, ...] = ()
    capture: Capture | None = None
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

        ``law`` is NAME or NAME:VARIANT. ``rtt`` defaults to that given to :func:`dumbbell`,
        elsewhere to the delays of the links.
        """
        rtt = rtt or self.default_rtt
        if rtt is None and self.link is not None and self.link.delay is None:
            raise TypeError('flow() needs rtt="100ms": this scenario has no default RTT')
        return replace(self, flows=(*self.flows, Flow(law=law, rtt=rtt, **settings)))

    def background(self, level: int, *, long_flows: int | None = None) -> Scenario:
        """This scenario with background traffic of ``level`` 0 to 3.

        On a bottleneck of 1 Gbit/s the levels offer 0, 100, 250 and 400 Mbit/s forward and half of
        it in reverse; on another rate, in proportion.
        """
        return replace(self, traffic=Background(level=level, long_flows=long_flows))

    def with_udp(self, *sources: Udp) -> Scenario:
        """This scenario with more UDP sources."""
        return replace(self, udp=(*self.udp, *sources))

    def with_traffic(self, *models: Traffic) -> Scenario:
        """This scenario with more models of TCP traffic."""
        return replace(self, models=(*self.models, *models))

    def with_changes(self, *changes: Change) -> Scenario:
        """This scenario with more changes of links and routes, in order of time."""
        return replace(self, schedule=(*self.schedule, *changes))

    def with_capture(self, capture: Capture | None = None) -> Scenario:
        """This scenario with a recording of packets, by default of all links and times."""
        return replace(self, capture=capture or Capture())

    def with_seed(self, seed: int) -> Scenario:
        """This scenario with another seed of every random stream."""
        return replace(self, seed=seed)

    def to_toml(self) -> str:
        """The same scenario as a TOML document; paths of files are absolute."""
        return toml(self.to_document())

    def to_document(self) -> dict[str, Any]:
        """The tables of :meth:`to_toml`."""
        said = _said(self)
        said.pop("default_rtt", None)
        document = {_KEYS.get(field, field): item for field, item in said.items()}
        tables: dict[str, Any] = _anchored(document, Path())
        return {"schema": SCHEMA} | tables

    @classmethod
    def from_toml(cls, text: str, file: str = "scenario") -> Scenario:
        """The scenario that ``text`` spells; ``file`` is how an error calls it.

        Paths in it are relative to the directory of ``file``.

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
        document = _anchored(document, Path(file).parent)
        fields = {key: field for field, key in _KEYS.items()}
        return cls(**{fields.get(key, key): _value(key, item) for key, item in document.items()})

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


def parking_lot(
    *,
    hops: int,
    rate: str,
    delay: str,
    buffer: str,
    duration: str = "60s",
    loss: float | None = None,
    warmup: str | None = None,
    sample: str | None = None,
    compat: Literal["linux", "ns2"] | None = None,
    name: str | None = None,
    seed: int = 1,
) -> Scenario:
    """Drop-tail hops in a row without flows yet.

    A flow goes ``from_`` the first router ``to`` the last unless it says other numbers. Hop k leads
    from router k to router k+1; its directions are the links "hopK" and "hopK.reverse".

    Args:
        hops: number of links.
        rate: of each hop, "100Mbit/s".
        delay: of each hop one way, "10ms".
        buffer: of each hop, as for :func:`dumbbell`.
        duration: simulated time.
        loss: probability that a hop loses a data packet, dimensionless.
        warmup: summary statistics begin here.
        sample: grid of the sampled tables; "off" for none.
        compat: "linux" (today's Linux) or "ns2" (what the papers' simulator did).
        name: free text.
        seed: of every random stream.
    """
    return Scenario(
        duration=duration,
        parking_lot=ParkingLot(
            hops=hops, rate=rate, delay=delay, loss=loss, queue=Queue(size=buffer)
        ),
        name=name,
        seed=seed,
        warmup=warmup,
        sample=sample,
        compat=compat,
    )


def graph(
    *links: NamedLink,
    duration: str = "60s",
    warmup: str | None = None,
    sample: str | None = None,
    compat: Literal["linux", "ns2"] | None = None,
    name: str | None = None,
    seed: int = 1,
) -> Scenario:
    """Any links between any nodes, without flows yet.

    >>> from lfnlab import NamedLink, graph
    >>> s = graph(
    ...     NamedLink(name="up", from_="a", to="b", rate="1Gbit/s", delay="10ms"),
    ...     NamedLink(name="down", from_="b", to="c", rate="1Gbit/s", delay="5ms"),
    ... ).flow("cubic", from_="a", to="c")
    >>> s.check()["flow"][0]["rtt"]
    '30ms'
    """
    return Scenario(
        duration=duration,
        links=links,
        name=name,
        seed=seed,
        warmup=warmup,
        sample=sample,
        compat=compat,
    )


_KEYS = {
    "parking_lot": "parking-lot",
    "flows": "flow",
    "traffic": "background",
    "models": "traffic",
}
"""Keys in TOML of the fields of a scenario that are called otherwise."""

_TABLES: dict[str, Callable[..., Any]] = {
    "link": Link,
    "parking-lot": ParkingLot,
    "links": NamedLink,
    "reverse": Reverse,
    "queue": Queue,
    "router": Router,
    "trace": File,
    "file": File,
    "loss": GilbertElliott,
    "reorder": Reorder,
    "jitter": Jitter,
    "flow": Flow,
    "udp": Udp,
    "bursts": Burst,
    "steps": Steps,
    "on_off": OnOff,
    "background": Background,
    "traffic": Traffic,
    "short_flows": ShortFlows,
    "packmime": Packmime,
    "webtraf": Webtraf,
    "surge": Surge,
    "vectors": Vectors,
    "suite": Suite,
    "schedule": Change,
    "capture": Capture,
}
"""What a table of TOML is, by its key."""


def _value(key: str, item: Any) -> Any:
    """What stands under a key of TOML, as this module's value."""
    if isinstance(item, dict):
        parts = {name: _value(name, part) for name, part in item.items()}
        return _TABLES[key](**{"from_" if name == "from" else name: parts[name] for name in parts})
    return tuple(_value(key, part) for part in item) if isinstance(item, list) else item


def _anchored(item: Any, root: Path, key: str = "") -> Any:
    """The same tables with the paths of files made absolute from ``root``."""
    if isinstance(item, dict):
        return {name: _anchored(part, root, name) for name, part in item.items()}
    if isinstance(item, list):
        return [_anchored(part, root, key) for part in item]
    if isinstance(item, str) and key in {"trace", "file", "path"}:
        return str((root / item).absolute())
    return item


def _said(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that were given, as plain data, in the order of declaration."""

    def plain(item: Any) -> Any:
        if isinstance(item, tuple | list):
            return [plain(part) for part in item]
        return _said(item) if hasattr(item, "__dataclass_fields__") else item

    given = {f.name.rstrip("_"): getattr(value, f.name) for f in fields(value)}
    return {
        name: plain(item)
        for name, item in given.items()
        if item is not None and not (isinstance(item, tuple) and not item)
    }


def toml(document: Mapping[str, Any]) -> str:
    """Tables as a TOML document."""
    lines: list[str] = []

    def scalar(key: str, value: object) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, list):
            return "[" + ", ".join(scalar(key, part) for part in value) + "]"
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
        return isinstance(item[0] if isinstance(item, list) and item else item, dict)

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
