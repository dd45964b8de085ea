"""Scenarios as immutable Python values.

A scenario in TOML and a scenario built here are two spellings of one value:
``Scenario.from_toml(s.to_toml()) == s``. Quantities are strings with units ("10Gbit/s", "100ms",
"250 packets"). Nothing is validated or defaulted here: ``None`` means "not given".
:meth:`Scenario.check` calls the one implementation of the rules, in Rust.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from lfnlab import _core
from lfnlab.control_laws import prototype
from lfnlab.errors import ScenarioError
from lfnlab.scenario.elements import (
    TABLES,
    Background,
    Capture,
    Change,
    Flow,
    FlowSettings,
    Link,
    NamedLink,
    ParkingLot,
    Queue,
    RunSettings,
    Traffic,
    Udp,
)
from lfnlab.scenario.keywords import keywords

if TYPE_CHECKING:
    from lfnlab.control_laws.controller import Controller
    from lfnlab.control_laws.prototype import Law

SCHEMA = 1
NO_BACKGROUND = Background()


@keywords
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
    background: Background = NO_BACKGROUND
    traffic: tuple[Traffic, ...] = ()
    schedule: tuple[Change, ...] = ()
    capture: Capture | None = None
    name: str | None = None
    seed: int = 1
    warmup: str | None = None
    sample: str | None = None
    sample_rows: int | None = None
    compat: Literal["linux", "ns2"] | None = None
    default_rtt: str | None = field(default=None, compare=False, repr=False)

    def flow(
        self,
        law: str | type[Law | Controller],
        *,
        rtt: str | tuple[str, ...] | None = None,
        **settings: Unpack[FlowSettings],
    ) -> Scenario:
        """This scenario with one more group of flows.

        ``rtt``, ``start``, ``stop`` and ``size`` may be "uniform(20ms, 200ms)", "log-uniform(1MB,
        1GB)" or a tuple, whose values the flows of the group take in order.

        ``law`` is NAME, NAME:VARIANT, FILE.py:CLASS, FILE.so or a subclass of
        :class:`lfnlab.Law` or :class:`lfnlab.Controller`. ``rtt`` defaults to that given to
        :func:`dumbbell`, elsewhere to the delays of the links.
        """
        law = prototype.resolved(law, Path())
        rtt = rtt or self.default_rtt
        if rtt is None and self.link is not None and self.link.delay is None:
            raise TypeError('flow() needs rtt="100ms": this scenario has no default RTT')
        return replace(self, flows=(*self.flows, Flow(law=law, rtt=rtt, **settings)))

    def with_background(self, level: int, *, long_flows: int | None = None) -> Scenario:
        """This scenario with background traffic of ``level`` 0 to 3, and long flows on top.

        On a bottleneck of 1 Gbit/s the levels offer 0, 100, 250 and 400 Mbit/s forward and half of
        it in reverse; on another rate, in proportion.
        """
        return replace(self, background=Background(level=level, long_flows=long_flows))

    def with_udp(self, *sources: Udp) -> Scenario:
        """This scenario with more UDP sources."""
        return replace(self, udp=(*self.udp, *sources))

    def with_traffic(self, *models: Traffic) -> Scenario:
        """This scenario with more models of TCP traffic."""
        return replace(self, traffic=(*self.traffic, *models))

    def with_changes(self, *changes: Change) -> Scenario:
        """This scenario with more changes of links and routes, in order of time."""
        return replace(self, schedule=(*self.schedule, *changes))

    def with_capture(self, capture: Capture | None = None) -> Scenario:
        """This scenario with a recording of packets, by default of all links and times."""
        return replace(self, capture=capture or Capture())

    @property
    def laws(self) -> tuple[str | type[Law | Controller], ...]:
        """The laws that it names, as often as it does."""
        named = (*(flow.law for flow in self.flows), *(model.law for model in self.traffic))
        return tuple(law for law in named if law is not None)

    def with_seed(self, seed: int) -> Scenario:
        """This scenario with another seed of every random stream."""
        return replace(self, seed=seed)

    def to_toml(self) -> str:
        """The same scenario as a TOML document; paths of files are absolute.

        A law in Python stands there as NAME@HASH, of its source: the document is no copy of it.
        """
        return toml(self.to_document())

    def to_document(self) -> dict[str, Any]:
        """The tables of :meth:`to_toml`."""
        said = _said(self)
        said.pop("default_rtt", None)
        if self.background == NO_BACKGROUND:
            said.pop("background", None)
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
        said, _ = _core.document(text, file)
        return cls.from_document(json.loads(said), file)

    @classmethod
    def from_document(cls, document: Mapping[str, Any], file: str = "scenario") -> Scenario:
        """The scenario of tables as TOML has them; paths are relative to the directory of ``file``.

        They are not checked.
        """
        document = {key: item for key, item in document.items() if key != "schema"}
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

    def check(self, file: str = "scenario") -> Scenario:
        """The scenario with every default filled in, as the simulator will run it.

        Raises:
            ScenarioError: naming line and key of :meth:`to_toml` of what is wrong.
        """
        resolved = json.loads(_core.Scenario(self.to_toml(), file).resolved)
        return replace(Scenario.from_document(resolved), default_rtt=self.default_rtt)

    @property
    def is_random(self) -> bool:
        """Whether anything in it draws random numbers; if not, every seed gives the same run."""
        return _core.Scenario(self.to_toml()).is_random

    def predict(self) -> dict[str, int]:
        """Predicted packets and events of a run, and an estimate of memory_bytes and its parts."""
        return _core.Scenario(self.to_toml()).needs


def dumbbell(
    *,
    rate: str,
    rtt: str,
    buffer: str,
    duration: str = "60s",
    loss: float | None = None,
    **settings: Unpack[RunSettings],
) -> Scenario:
    """A drop-tail dumbbell without flows yet; add them with :meth:`Scenario.flow`.

    Args:
        rate: bottleneck rate, "10Gbit/s".
        rtt: base RTT of flows that do not say their own, "100ms".
        buffer: "250 packets", "12.5MB" or "1bdp".
        duration: simulated time.
        loss: probability that a data packet is lost, dimensionless.
        settings: the other keys of a scenario: name, seed, warmup, sample, sample_rows, compat.
    """
    return Scenario(
        duration=duration,
        link=Link(rate=rate, loss=loss, queue=Queue(size=buffer)),
        default_rtt=rtt,
        **settings,
    )


def parking_lot(
    *,
    hops: int,
    rate: str,
    delay: str,
    buffer: str,
    duration: str = "60s",
    loss: float | None = None,
    **settings: Unpack[RunSettings],
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
        settings: the other keys of a scenario: name, seed, warmup, sample, sample_rows, compat.
    """
    return Scenario(
        duration=duration,
        parking_lot=ParkingLot(
            hops=hops, rate=rate, delay=delay, loss=loss, queue=Queue(size=buffer)
        ),
        **settings,
    )


def graph(
    *links: NamedLink,
    duration: str = "60s",
    **settings: Unpack[RunSettings],
) -> Scenario:
    """Any links between any nodes, without flows yet.

    >>> from lfnlab import NamedLink, graph
    >>> s = graph(
    ...     NamedLink(name="up", from_="a", to="b", rate="1Gbit/s", delay="10ms"),
    ...     NamedLink(name="down", from_="b", to="c", rate="1Gbit/s", delay="5ms"),
    ... ).flow("cubic", from_="a", to="c")
    >>> s.check().flows[0].rtt
    '30ms'
    """
    return Scenario(
        duration=duration,
        links=links,
        **settings,
    )


_KEYS = {
    "parking_lot": "parking-lot",
    "flows": "flow",
}
"""Keys in TOML of the fields of a scenario that are called otherwise."""


def _value(key: str, item: Any) -> Any:
    """Value of a TOML key as an object of this module."""
    if key == "law":
        return prototype.resolved(item, Path())
    if isinstance(item, dict):
        parts = {name: _value(name, part) for name, part in item.items()}
        return TABLES[key](**{"from_" if name == "from" else name: parts[name] for name in parts})
    return tuple(_value(key, part) for part in item) if isinstance(item, list) else item


_PATHS = {"trace", "file", "path"}
"""Keys of files."""


def anchored(item: Any, root: Path, key: str = "") -> Any:
    """The same tables with the paths of files made absolute from ``root``, laws' files included."""
    if isinstance(item, dict):
        return {name: anchored(part, root, name.rpartition(".")[2]) for name, part in item.items()}
    if isinstance(item, list):
        return [anchored(part, root, key) for part in item]
    if isinstance(item, str) and key in _PATHS:
        return str((root / item).absolute())
    return prototype.located(item, root) if isinstance(item, str) and key == "law" else item


def _anchored(item: Any, root: Path, key: str = "") -> Any:
    """The same, with classes in the place of laws' files."""
    if isinstance(item, dict):
        return {name: _anchored(part, root, name) for name, part in item.items()}
    if isinstance(item, list):
        return [_anchored(part, root, key) for part in item]
    if isinstance(item, str) and key in _PATHS:
        return str((root / item).absolute())
    if key == "law" and isinstance(item, str | type):
        return prototype.spelled(item, root)
    return item


def _said(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that were given, as plain data, in the order of declaration."""

    def plain(item: Any) -> Any:
        if isinstance(item, tuple | list):
            return [plain(part) for part in item]
        return _said(item) if is_dataclass(item) and not isinstance(item, type) else item

    given = {f.name.rstrip("_"): getattr(value, f.name) for f in fields(value)}
    return {
        name: plain(item)
        for name, item in given.items()
        if item is not None and not (isinstance(item, tuple) and not item)
    }


def toml(document: Mapping[str, Any]) -> str:
    """Tables as a TOML document.

    Raises:
        ScenarioError: naming the key whose value TOML does not have.
    """
    import tomli_w

    return tomli_w.dumps(_plain(document))


def _plain(value: Any, key: str = "") -> Any:
    """The same in types of Python: numbers may be numpy's."""
    if isinstance(value, Mapping):
        return {name: _plain(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, key) for part in value]
    if isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise ScenarioError(
        f"{key}: found {value!r} of type {type(value).__name__}; "
        "allowed: a text, a number, True, False"
    )
