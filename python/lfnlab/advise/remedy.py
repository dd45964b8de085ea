"""Remedies for a measured transfer, each simulated on the path that was fitted to it.

The remedy that the measurement implies comes first: a larger window where a window held the flow
back, and so on; then other laws, pacing and more streams. The path is not known exactly, so each is
simulated on several paths within the fit's intervals, beside the transfer as it was. Nothing is
applied.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab import _core
from lfnlab.advise import host, text
from lfnlab.advise.choices import of_host
from lfnlab.advise.path import MOST_WINDOW_BYTES
from lfnlab.diagnose import evidence
from lfnlab.diagnose.result import HEADINGS, path_lines
from lfnlab.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lfnlab.advise.choices import Offer
    from lfnlab.diagnose.evidence import Evidence
    from lfnlab.diagnose.path import Fit
    from lfnlab.diagnose.result import Examination
    from lfnlab.formats.measurement import Measurement

CASES = 5
"""Paths within the intervals of a fit, each with a seed of its own: those most alike."""
FASTER, DEEPER = (1.0, 1.5, 3.0, 10.0), (1.0, 2.0, 4.0)
"""Of a rate and of a buffer that are lower bounds."""
ALIKE, UNLIKE = 1.25, 2.0
"""A path is alike if the transfer as it was has its measured goodput within this factor. If none
has it within the second, the fit does not explain the transfer."""
MOST_PACKETS = 4e5
"""Of one simulation: some 20 ms."""
LEAST_RTTS = 60
"""Of a simulation, however short the transfer was: laws differ after slow start."""
STREAMS = (2, 4, 8)
SAME = 1.02
"""A gain below it is none."""
BELOW = 0.97
"""Of a policer's rate, for pacing: so nothing exceeds it."""
HELD = {
    "receive_window": "receive-window",
    "send_buffer": "send-buffer",
    "application": "application",
}


@dataclass(frozen=True)
class Change:
    """A remedy: what to type, and how a scenario has it."""

    name: str
    type_: tuple[str, ...]
    """Lines, with the host in a comment."""
    law: str | None = None
    """As a scenario has it; default as it was."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    frees: bool = False
    """The limit of the flow is gone."""
    streams: int = 1
    implied: bool = False
    """By what limited the transfer."""


@dataclass(frozen=True)
class Remedy:
    """A change, and what it gives on the paths that were simulated."""

    change: Change
    goodputs_bps: tuple[float, ...]
    gains: tuple[float, ...]
    """Path by path, how many times the goodput of the transfer as it was."""

    @property
    def gain(self) -> float:
        """In the middle."""
        return float(np.median(self.gains))

    @property
    def may_gain(self) -> bool:
        """On some path it gives more."""
        return max(self.gains) >= SAME

    def to_json(self) -> dict[str, Any]:
        """Numbers and lines."""
        return {
            "name": self.change.name,
            "implied": self.change.implied,
            "type": list(self.change.type_),
            "gain": self.gain,
            "gain_low": min(self.gains),
            "gain_high": max(self.gains),
            "goodput_bps": float(np.median(self.goodputs_bps)),
        }


@dataclass(frozen=True)
class Remedies:
    """Changes and their gains, the largest first."""

    cause: str
    certain: bool
    fit: Fit
    law: str
    """Of the transfer, as a scenario has it."""
    streams: int
    now_bps: tuple[float, ...]
    """Of the transfer as it was, simulated path by path."""
    ranked: tuple[Remedy, ...]
    next: str | None
    """The next measurement, where the cause is not certain."""
    is_alike: bool
    """The transfer as it was has about its measured goodput when it is simulated."""

    def to_json(self) -> dict[str, Any]:
        """One object."""
        return {
            "cause": self.cause,
            "certain": self.certain,
            "next": self.next,
            "path": self.fit.to_json(),
            "law": self.law,
            "streams": self.streams,
            "measured_bps": self.fit.goodput_bps,
            "explained": self.is_alike,
            "simulated_bps": float(np.median(self.now_bps)),
            "remedies": [remedy.to_json() for remedy in self.ranked],
        }


def after(found: Examination, offers: Sequence[Offer]) -> tuple[Remedies | None, list[str]]:
    """Remedies for a diagnosed transfer, and notes; None where no path was fitted to it.

    Args:
        found: the examination of its files.
        offers: laws that the sender can have.
    """
    if found.likely is None:
        return None, []
    first = found.law.first if found.law is not None else ()
    law = of_sender(first[0]) if len(first) == 1 else None
    notes = [] if law else ["Its law is not known, or not here; cubic was simulated."]
    made = remedies(
        found.likely,
        found.main.diagnosis,
        law=law or "cubic:linux",
        offers=offers,
        streams=len(found.flows),
    )
    return made, notes


def of_sender(name: str) -> str | None:
    """A law by its name in Linux or in the registry, as a scenario has it; None if not here."""
    known = [offer for offer in of_host([name])[0] if not offer.ours]
    return known[0].law if known else None


def measured(measurement: Measurement, file: str) -> Evidence:
    """The flow of a TCP test, parallel streams together; of a test both ways the forward ones.

    Raises:
        UsageError: the file is of UDP, is cut, has no count of the receiver, or too few samples.
    """
    flows = measurement.summary["flows"]
    if any(flow["law"] == "udp" for flow in flows):
        raise UsageError(f"{file}: start.test_start.protocol: UDP; allowed: TCP")
    # A test both ways has two bottlenecks: the forward one counts.
    ways = [flow["direction"] for flow in flows]
    way = "forward" if "forward" in ways else "reverse"
    streams = [flow for flow in flows if flow["direction"] == way]
    goodputs = [flow["goodput_bps"] for flow in streams]
    if None in goodputs and measurement.summary["notes"]:
        raise UsageError(f"{file}: {measurement.summary['notes'][0]} Take a whole file")
    if None in goodputs:
        raise UsageError(
            f"{file}: a server that sends does not tell what arrived; take the client's file"
        )
    if sum(goodputs) <= 0.0:
        raise UsageError(f"{file}: intervals: no byte was transferred; measure again")
    try:
        return evidence.together([evidence.of(measurement, flow["id"]) for flow in streams])
    except UsageError as error:
        raise UsageError(f"{file}: {error}; measure longer, or more often (-i 0.1)") from None


def remedies(
    fit: Fit,
    diagnosis: Any = None,
    *,
    law: str = "cubic:linux",
    offers: Sequence[Offer] = (),
    streams: int = 1,
    most_streams: int = max(STREAMS),
) -> Remedies:
    """The changes that the measurement implies and the usual ones, simulated and ranked.

    Args:
        fit: the path, and what held the flow back.
        diagnosis: what limited it (:func:`lfnlab.diagnose.causes.diagnose`); without it the fit
            tells.
        law: of the transfer.
        offers: laws that the sender can have.
        streams: parallel ones of the transfer.
        most_streams: more are not tried.
    """
    cause = str(getattr(diagnosis, "cause", "") or _cause(fit))
    certain = bool(getattr(diagnosis, "certain", False))
    now = Change("as it was", (), streams=streams)
    tried = _possible(fit)
    before = _goodputs([(path, now) for path in tried], law)
    apart = np.abs(np.log(before / max(fit.goodput_bps, 1.0)))
    order = np.argsort(apart, kind="stable")
    nearest = [int(at) for at in order if apart[at] <= max(math.log(ALIKE), float(apart.min()))]
    # A path of each rate first: where the rate is a bound, the transfer does not tell them apart.
    each = list({tried[at].rate_bps.value: at for at in reversed(nearest)}.values())
    kept = sorted([*each, *(at for at in nearest if at not in each)][:CASES])
    paths, before = [tried[at] for at in kept], before[kept]
    is_alike = float(apart.min()) <= math.log(UNLIKE)
    changes = [*_implied(fit, paths, cause)]
    if is_alike:
        changes += _usual(offers, law, streams, most_streams)
    goodputs = _goodputs([(path, change) for change in changes for path in paths], law)
    found = [
        Remedy(change, tuple(map(float, row)), tuple(map(float, row / before)))
        for change, row in zip(changes, goodputs.reshape(-1, len(paths)), strict=True)
    ]
    found.sort(key=lambda remedy: -round(remedy.gain, 2))
    found.sort(key=lambda remedy: not (remedy.change.implied and remedy.may_gain))
    now_bps = tuple(map(float, before))
    following = getattr(diagnosis, "next", None)
    return Remedies(
        cause, certain, fit, law, streams, now_bps, tuple(found), following, is_alike
    )  # fmt: skip


def _cause(fit: Fit) -> str:
    """As the fit tells, where there is no diagnosis."""
    for key in fit.held:
        return HELD[key]
    if fit.policer is not None:
        return "policer"
    if fit.loss.value:
        return "random-loss"
    if fit.buffer_packets.is_fitted and not fit.buffer_packets.bound:
        return "queue-overflow"
    return "undecided"


def _possible(fit: Fit) -> list[Fit]:
    """Paths within the fit's intervals; the flow as it was tells later which are alike."""
    rates, losses, buffers = [fit.rate_bps.value], [fit.loss.value], [fit.buffer_packets.value]
    if fit.rate_bps.bound:
        rates = [fit.rate_bps.value * factor for factor in FASTER]
    if fit.loss.is_fitted and fit.loss.value:
        losses = list(np.linspace(fit.loss.low, fit.loss.high, len(FASTER)))
    elif fit.buffer_packets.bound:
        buffers = [fit.buffer_packets.value * factor for factor in DEEPER]
    paths = []
    for rate_bps, loss, packets in itertools.product(rates, losses, buffers):
        faster = rate_bps / fit.rate_bps.value if not fit.buffer_packets.is_fitted else 1.0
        paths.append(
            replace(
                fit,
                rate_bps=replace(fit.rate_bps, value=rate_bps),
                buffer_packets=replace(fit.buffer_packets, value=packets * faster),
                loss=replace(fit.loss, value=float(loss)),
            )
        )
    return paths


def _goodputs(cases: Sequence[tuple[Fit, Change]], law: str) -> NDArray[np.float64]:
    """Simulated, case by case; at least 1 bit/s."""
    texts = [_scenario(path, change, law, n) for n, (path, change) in enumerate(cases)]
    runs = _core.run_many([_core.Scenario(x) for x in texts], 1, None, sampled=False)
    return np.array([max(1.0, _goodput(run)) for run in runs])


def _scenario(path: Fit, change: Change, law: str, number: int) -> str:
    per_s = path.rate_bps.value / 8 / path.wire_bytes
    duration_s = max(path.duration_s, LEAST_RTTS * path.rtt_s.value)
    duration_s = min(duration_s, max(MOST_PACKETS / per_s, 20 * path.rtt_s.value))
    settings = dict(change.settings)
    if change.streams > 1:
        settings["parallel"] = change.streams
        if not change.frees:
            settings |= {key: _part(value, change.streams) for key, value in path.held.items()}
    one = path.simulated(change.law or law, duration_s, is_held=not change.frees, **settings)
    return one.with_seed(number + 1).to_toml()


def _part(value: Any, streams: int) -> Any:
    """A stream has its own window; an application shares what it writes."""
    if isinstance(value, str):
        return value
    rate = float(value.rate.removesuffix("bit/s"))
    return replace(value, rate=f"{max(1e3, rate / streams):.0f}bit/s")


def _goodput(run: _core.Run | None) -> float:
    assert run is not None
    return float(json.loads(run.summary())["flows"][0]["goodput_bps"])


def _needed_bytes(paths: Sequence[Fit]) -> int:
    """A socket buffer for the longest of the paths."""
    window = max((one.bdp_packets + one.buffer_packets.value) * one.packet_bytes for one in paths)
    needed = text.OVERHEAD * min(window, MOST_WINDOW_BYTES)
    return min(text.MOST_SYSCTL, math.ceil(needed / (1 << 20)) << 20)


def _implied(fit: Fit, paths: Sequence[Fit], cause: str) -> Iterator[Change]:
    """By what limited the transfer."""
    needed = _needed_bytes(paths)
    type_: tuple[str, ...]
    if cause in ("receive-window", "send-buffer"):
        name = "rmem" if cause == "receive-window" else "wmem"
        place = "receiver" if cause == "receive-window" else "sender"
        least, first, _ = host.UNTUNED[name]
        line = f'sysctl -w net.ipv4.tcp_{name}="{least} {first} {needed}"'
        other = f"iperf3 -w {needed // text.OVERHEAD}"
        type_ = (f"{line}    # {place}", f"{other}    # or of this program alone")
        what = "larger receive window" if name == "rmem" else "larger send buffer"
        yield Change(what, type_, frees=True, implied=True)
    elif cause in ("application", "pacing"):
        type_ = ("iperf3 without -b, or without the limit of your program    # sender",)
        yield Change("no limit of the application", type_, frees=True, implied=True)
    elif cause == "policer" and fit.policer is not None:
        rate_bps = BELOW * float(fit.policer.rate.removesuffix("bit/s"))
        type_ = (f"tc qdisc replace dev DEV root fq maxrate {rate_bps:.0f}bit    # sender",)
        payload = rate_bps * fit.payload_bytes / fit.wire_bytes
        from lfnlab.scenario.elements import Application

        paced = {"application": Application(rate=f"{payload:.0f}bit/s"), "pacing": True}
        yield Change("pace below the policer", type_, settings=paced, implied=True)
    elif cause == "slow-start":
        type_ = ("ip route change ROUTE initcwnd 40    # sender",)
        yield Change(
            "larger initial window", type_, settings={"initial_window": "40 packets"},
            implied=True,
        )  # fmt: skip
    elif cause == "queue-overflow":
        yield Change(
            "pacing (fq)", (f"{text.FQ}    # sender",), settings={"pacing": True}, implied=True
        )


def _usual(offers: Sequence[Offer], law: str, streams: int, most_streams: int) -> Iterator[Change]:
    """Other laws and more streams, which any sender can have."""
    for offer in offers:
        if offer.law != law:
            line = f"sysctl -w net.ipv4.tcp_congestion_control={offer.name}    # sender"
            type_ = (f"lfn kernel load {offer.law}    # sender", line) if offer.ours else (line,)
            yield Change(f"law {offer.name}", type_, law=offer.law, streams=streams)
    for count in STREAMS:
        if streams < count <= most_streams:
            line = f"iperf3 -P {count}    # or as many connections of your program"
            yield Change(f"{count} streams", (line,), streams=count)


def lines(found: Remedies, file: str, notes: Sequence[str] = ()) -> Iterator[str]:
    """The limit of the transfer, its path, and the remedies, as text."""
    fit = found.fit
    streams = "1 stream" if found.streams == 1 else f"{found.streams} streams"
    yield f"{file}: {streams} of {found.law.removesuffix(':linux')}, {text.rate(fit.goodput_bps)}"
    yield ""
    certainty = "certain" if found.certain else "not certain"
    yield f"{HEADINGS[found.cause]}."
    yield f"cause: {found.cause}, {certainty}"
    yield from path_lines(fit)
    yield ""
    yield from ranked(found)
    if found.next is not None:
        yield f"next: {found.next}"
    yield from notes


def ranked(found: Remedies) -> Iterator[str]:
    """The remedies as text, without cause and path."""
    number = len(found.now_bps)
    paths = "1 path" if number == 1 else f"{number} paths"
    said = "" if found.certain or found.cause == "undecided" else f", if the cause is {found.cause}"
    now = _range(found.now_bps, text.rate)
    yield f"Simulated on {paths} within these bounds{said}; as it was: {now}."
    if not found.is_alike:
        yield (
            "That is not the measured goodput: the fit does not explain the transfer, so other "
            "laws and more streams were not tried."
        )
    useful = [
        one for one in found.ranked if one.gain >= SAME or (one.change.implied and one.may_gain)
    ]
    if not useful:
        yield "No remedy that was tried gives more."
    for number, remedy in enumerate(useful, 1):
        yield (
            f"{number}. {remedy.change.name}: {_range(remedy.gains, _times)} the goodput, "
            f"{_range(remedy.goodputs_bps, text.rate)}"
        )
        yield from (f"     {line}" for line in remedy.change.type_)
    rest = [one.change.name for one in found.ranked if one not in useful]
    if rest and useful:
        yield f"No gain: {', '.join(rest)}."
    yield "lfn changes nothing: type the lines, as root."


def _times(gain: float) -> str:
    return f"{gain:.2f}" if gain < 10 else f"{gain:.0f}"


def _range(values: Sequence[float], shown: Any) -> str:
    middle, low, high = (shown(f(values)) for f in (np.median, np.min, np.max))
    times = " times" if shown is _times else ""
    return f"{middle}{times}" if low == high else f"{middle}{times} ({low} to {high})"
