"""What a scenario is made of: links, queues, flows, other traffic, changes, as immutable values.

Each is a table of TOML; ``docs/scenario.md`` says what its fields mean. ``None`` means "not said".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable

    from lfnlab.control_laws.prototype import Law


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
    rules: Literal["ns2", "linux"] | None = None
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
class Route:
    """Where packets go: ``from_`` one node ``to`` another, past nodes ``via`` or over ``route``."""

    from_: str | int | None = None
    to: str | int | None = None
    via: tuple[str | int, ...] = ()
    route: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TwoWay(Route):
    """A route, and the links of what comes back, by default the same in the opposite direction."""

    ack_route: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Flow(TwoWay):
    """``count`` flows of one law, each of ``parallel`` streams that are reported in sum.

    The law is NAME, NAME:VARIANT, FILE.py:CLASS or a subclass of :class:`lfnlab.Law`.
    ``transport`` is "udt" by default under the law "udt"; with it, no fields from
    ``send_buffer`` on.

    ``rtt`` is the round trip of the empty path, by default the delays of its links. Where there are
    nodes, data go ``from_`` one ``to`` another, past the nodes ``via`` or over the links ``route``.
    """

    law: str | type[Law]
    transport: Literal["tcp", "udt"] | None = None
    rtt: str | None = None
    name: str | None = None
    count: int | None = None
    parallel: int | None = None
    start: str | None = None
    stop: str | None = None
    size: str | None = None
    direction: Literal["forward", "reverse"] | None = None
    packet: str | None = None
    receive_window: str | None = None
    send_buffer: str | None = None
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
    transport: Literal["tcp", "udt"]
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
    send_buffer: str
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
class Udp(Route):
    """A UDP source: ``bursts``, ``steps`` or ``on_off``. Rates are bits on the wire per second."""

    name: str | None = None
    direction: Literal["forward", "reverse"] | None = None
    packet: str | None = None
    bursts: tuple[Burst, ...] = ()
    steps: Steps | None = None
    on_off: OnOff | None = None


@dataclass(frozen=True, kw_only=True)
class Background(TwoWay):
    """Short flows of five applications, both ways, and a few long flows capped at 20 packets."""

    level: int | None = None
    long_flows: int | None = None


@dataclass(frozen=True, kw_only=True)
class ShortFlows:
    """Poisson arrivals of flows with Pareto sizes that offer ``load`` of payload per second."""

    load: str
    mean: str | None = None
    shape: float | None = None


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes that are drawn: Pareto by ``mean`` and ``shape``, or lognormal by the other two."""

    mean: str | None = None
    shape: float | None = None
    median: str | None = None
    sigma: float | None = None


@dataclass(frozen=True, kw_only=True)
class Requests:
    """Clients that come at random times, ask, wait for the answer, think, and ask again.

    ``load`` is the payload of answers offered per second, ``exchanges`` how often a client asks on
    average; ``think`` is a mean, ``server_delay`` a constant.
    """

    load: str
    request: str | Sizes | None = None
    response: str | Sizes | None = None
    exchanges: float | None = None
    server_delay: str | None = None
    think: str | None = None
    persistent: bool | None = None


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
class Traffic(TwoWay):
    """TCP traffic as one model makes it; the path is that of the larger part of the bytes."""

    name: str | None = None
    law: str | type[Law] | None = None
    direction: Literal["forward", "reverse"] | None = None
    rtt: str | None = None
    receive_window: str | None = None
    short_flows: ShortFlows | None = None
    requests: Requests | None = None
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


TABLES: dict[str, Callable[..., Any]] = {
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
    "requests": Requests,
    "request": Sizes,
    "response": Sizes,
    "packmime": Packmime,
    "webtraf": Webtraf,
    "surge": Surge,
    "vectors": Vectors,
    "suite": Suite,
    "schedule": Change,
    "capture": Capture,
}
"""What a table of TOML is, by its key."""
