"""A scenario on Linux's own TCP in virtual time, a reference for the simulator.

``make linux`` builds that kernel, and ``linux/run FOLDER TAG`` runs what ``TAG.scenario`` in the
folder says. Here a scenario of ours is translated into such a file, and its results are read;
:mod:`lfnlab.testbed.linux_backend` makes stored runs of them.
"""

from __future__ import annotations

import itertools
import json
import math
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from lfnlab.analysis import run_length
from lfnlab.analysis.sawtooth import Trace
from lfnlab.control_laws import prototype
from lfnlab.control_laws.registry import known
from lfnlab.errors import LabError, ScenarioError
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, parse
from lfnlab.testbed import random_streams
from lfnlab.testbed.linux_laws import MODULES, kernel_law, why_not_built_in
from lfnlab.testbed.virtual_network import Link, Network
from lfnlab.testbed.virtual_network import refused as _refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

#: Largest send buffer of a host as Linux is installed, not tuned for long fat networks.
UNTUNED_SEND_BUFFER = "4MiB"
FIRST_SEND_BUFFER_BYTES = 16_384
#: Linux's largest buffer of a socket.
LARGEST_BUFFER_BYTES = 2**31 - 1
#: A tuned host's send buffers at first: the largest of a flow and that of all flows, unless more
#: may be in flight; memory of a full segment by its payload, with a margin.
FIRST_BUFFER_BYTES, BUFFERS_BYTES, BUFFER_PER_PAYLOAD = 1 << 28, 3 << 28, 2.0
#: While a window grows, each segment is acknowledged at once: as long as with this receive buffer.
USUAL_BUFFER_BYTES = 128 << 20
#: TCP's largest window: 16 bits, scaled by 14.
LARGEST_WINDOW_BYTES = 65535 << 14
#: The kernel's memory if a run needs no more, what it takes beside buffers, and the most, in MiB.
USUAL_MIB, OWN_MIB, MOST_MIB = 1500, 400, 7000
#: Memory of a segment in a send buffer beside its payload (measured: 2,280 bytes for 1,448).
SEGMENT_OVERHEAD_BYTES = 832
#: IP and TCP headers, timestamps included.
HEADERS_BYTES = 52
#: The kernel draws jitter in 32 bits of nanoseconds.
_LONGEST_JITTER_S = 4
#: The receiving host's buffer, the largest that Linux has: only TCP's own largest window holds a
#: sender.
TUNED_RECEIVE_BUFFER = (
    f"sysctl net.ipv4.tcp_rmem=4096 {LARGEST_BUFFER_BYTES} {LARGEST_BUFFER_BYTES}"
)
#: Linux sorts a local socket's packets by a hash that the socket renews after a timeout or a
#: duplicate. On a path, headers decide, so a flow stays in its queue.
ONE_HASH = "sysctl net.core.txrehash=0"
#: tcp_info's congestion-avoidance states in which the window is being reduced: CWR, Recovery, Loss.
_REDUCING = (2, 3, 4)
#: At this rate an ACK takes no time, as in the way back of Linux without a link there.
_NO_TIME_BPS = 1e12
_TOP_LEVEL = {
    *("schema", "name", "seed", "duration", "warmup", "sample", "compat", "link", "links", "flow"),
    *("udp", "capture", "schedule"),
}
_NO_SETTING = ("initial_ssthresh", "burst", "misbehaves", "breakers")
#: Connections, sources of UDP and changes of a run, the shortest interval of samples and the
#: smallest packet, as linux/scenario.h and linux/scenario.c have them.
MOST_CONNECTIONS, MOST_SOURCES, MOST_CHANGES = 200, 20, 1000
SHORTEST_SAMPLE_US, LEAST_PACKET_BYTES = 100, 100
FRAMING_BYTES = 14
#: A stored run looks at its flows so often, or at each sample.
_LOOK_EVERY_US = 5000
#: Seconds between two looks whether a run is to be given up.
_TURN_S = 0.2


class Connection(NamedTuple):
    """One connection of a flow. A flow with parallel streams has several."""

    number: int
    """Of the flow, from 0."""
    key: str
    """Of the flow's table in the scenario."""
    flow: Mapping[str, Any]
    start_s: float
    size_bytes: int | None


class GivenUp(Exception):
    """A run was ended because its caller gave it up."""


@dataclass(frozen=True)
class Ran:
    """Tables of a run of Linux."""

    #: The samples of each flow: columns by their names in the file.
    flows: tuple[dict[str, np.ndarray], ...]
    #: Counters of TCP by host: "a" sends, "b0", "b1" ... receive.
    counters: dict[str, dict[str, int]]
    #: Counters of each link's queue, as ``tc -s`` shows them, by the link's number in the kernel;
    #: none of a link that takes no time.
    queues: dict[int, dict[str, Any]]
    #: The samples of all links' queues, in one table.
    links: dict[str, np.ndarray]
    #: Packets at the hosts, as ``linux/capture.h`` has them.
    packets: np.ndarray | None = None

    @property
    def queue(self) -> dict[str, Any]:
        """Of the bottleneck of a dumbbell."""
        return self.queues[0]


def _nanoseconds(text: str) -> int:
    return round(parse(text, SECONDS) * 1e9)


def connections(resolved: Mapping[str, Any]) -> list[Connection]:
    """The connections of a scenario, in the order of its flows, with the simulator's starts."""
    found: list[Connection] = []
    number = 0
    for group, flow in enumerate(resolved["flow"]):
        streams = flow["parallel"]
        size_bytes = round(parse(flow["size"], BYTES)) if flow.get("size") else None
        for _ in range(flow["count"]):
            start_s = drawn_start_s(flow["start"], resolved["seed"], number)
            for stream in range(streams):
                share = None
                if size_bytes is not None:
                    share = size_bytes // streams + (stream < size_bytes % streams)
                found.append(Connection(number, f"flow[{group}]", flow, start_s, share))
            number += 1
        if len(found) > MOST_CONNECTIONS:
            raise _refused(f"flow[{group}]", f"it has at most {MOST_CONNECTIONS} connections")
    return found


def drawn_start_s(text: str, seed: int, number: int) -> float:
    """When a flow begins; drawn as ``crates/scenario/src/config.rs`` draws it."""
    if not text.startswith("uniform("):
        return parse(text, SECONDS)
    bounds = text.removeprefix("uniform(").removesuffix(")").split(",")
    low_s, high_s = (parse(bound.strip(), SECONDS) for bound in bounds)
    return low_s + (high_s - low_s) * next(random_streams.uniform(seed, f"flow[{number}].start"))


def _queue(
    key: str, queue: Mapping[str, Any], rate_bps: float, rtt_s: float, wire_bytes: int
) -> str:
    """A queue in the words of tc; it holds its packets besides the one in service."""
    packets = max(
        1, math.floor(run_length.queue_packets(queue["size"], rate_bps, rtt_s, wire_bytes))
    )
    kind = queue["kind"]
    ecn = " ecn" if queue.get("ecn") else ""

    def us(time: str) -> str:
        return f"{parse(queue[time], SECONDS) * 1e6:.0f}us"

    if kind == "drop-tail":
        if "packets" in queue["size"] or "bdp" in queue["size"]:
            return f"pfifo limit {packets}"
        return f"bfifo limit {parse(queue['size'], BYTES):.0f}"
    if kind == "drop-head":
        return f"pfifo_head_drop limit {packets}"
    if kind == "codel":
        return f"codel limit {packets} target {us('target')} interval {us('interval')}{ecn}"
    if kind == "fq-codel":
        return (
            f"fq_codel limit {packets} flows {queue['queues']} target {us('target')} "
            f"interval {us('interval')} quantum {wire_bytes} memory_limit 1000000000"
            f"{ecn or ' noecn'}"
        )
    if kind == "pie":
        alpha, beta = round(queue["alpha"] * 16), round(queue["beta"] * 16)
        # A timer of Linux ends a tick, 1 ms, after its time.
        update_us = max(0.0, parse(queue["update"], SECONDS) * 1e6 - 1000)
        return (
            f"pie limit {packets} target {us('target')} tupdate {update_us:.0f}us "
            f"alpha {alpha} beta {beta}{ecn}"
        )
    if kind == "red":
        return _red(key, queue, packets, wire_bytes, rate_bps) + ecn
    raise _refused(f"{key}.queue.kind", f"it has no {kind}")


def _red(at: str, queue: Mapping[str, Any], packets: int, wire_bytes: int, rate_bps: float) -> str:
    """RED of Linux: neither gentle nor spaced, weights that are powers of 2."""

    def refused(key: str, why: str) -> ScenarioError:
        return _refused(f"{at}.queue.{key}", why)

    for key, wanted in (
        ("gentle", False),
        ("wait", False),
        ("adaptive", False),
        ("rules", "linux"),
        ("byte_mode", False),
    ):
        if queue[key] != wanted:
            raise refused(key, f"its RED has {key} = {str(wanted).lower()}")
    if queue["ecn"] and queue["mark_p"] < queue["max_p"]:
        raise refused("mark_p", "its RED marks at any probability: write 1")
    if not all(key in queue for key in ("min_th", "max_th")) or queue["weight"] == "auto":
        raise refused("min_th", "its RED needs min_th, max_th and weight as numbers")
    low, high = (
        run_length.queue_packets(queue[key], 0, 0, wire_bytes) for key in ("min_th", "max_th")
    )
    exponent = round(-math.log2(queue["weight"]))
    if not math.isclose(queue["weight"], 2.0**-exponent):
        raise refused("weight", "it has powers of 2 alone")
    if (burst := _burst(low, exponent)) is None:
        raise refused("weight", f"tc finds no burst for 2^-{exponent}")
    return (
        f"red limit {packets * wire_bytes} min {round(low * wire_bytes)} "
        f"max {round(high * wire_bytes)} avpkt {wire_bytes} burst {burst} "
        f"probability {queue['max_p']} bandwidth {rate_bps:.0f}bit"
    )


def _burst(min_packets: float, exponent: int) -> int | None:
    """The burst for which tc chooses a weight of 2^-exponent (Floyd's rule for W, in packets)."""
    weight = 2.0**-exponent

    def enough(burst: int, w: float) -> bool:
        return burst + 1 - min_packets <= (1 - (1 - w) ** burst) / w

    for burst in range(math.ceil(min_packets), 100000):
        if enough(burst, weight) and (exponent == 1 or not enough(burst, 2 * weight)):
            return burst
    return None


def _chosen(link: Link, word: str, seed: int, packets: int, flows: int) -> Iterator[str]:
    """The packets that the simulator's streams choose, so that both lose the same ones."""
    table = link.table
    if not isinstance(table["loss"], int | float):
        raise _refused(f"{link.key}.loss", "it has losses of one probability alone")
    reorder = table.get("reorder") or {"p": 0, "delay": "0s"}
    for name, kind, p in (
        ("lost", "loss", table["loss"]),
        ("held", "reorder", reorder["p"]),
        ("duplicated", "duplicate", table["duplicate"]),
    ):
        numbers = random_streams.gaps(p, seed, f"link.{link.name}.{kind}", packets)
        if numbers:
            yield f"{name} {word} " + " ".join(map(str, numbers))
    # A connection needs two packets that pass.
    numbers = random_streams.gaps(table["loss"], seed, f"link.{link.name}.loss.handshake", packets)
    numbers = [gap for at, gap in enumerate(numbers) if sum(numbers[: at + 1]) < 2 * flows]
    if numbers:
        yield f"unopened {word} " + " ".join(map(str, numbers))


def _chosen_acks(acks: Mapping[str, Any], seed: int, packets: int) -> Iterator[str]:
    """The same of packets without payload; all ACKs and SYN-ACKs return over the reverse link."""
    for key in ("jitter", "aggregate"):
        if acks.get(key):
            raise _refused(f"link.reverse.acks.{key}", "it loses and holds up ACKs alone")
    if not isinstance(acks["loss"], int | float):
        raise _refused("link.reverse.acks.loss", "it has losses of one probability alone")
    for name, kind, p in (
        ("lost", "loss", acks["loss"]),
        ("held", "reorder", acks.get("reorder", {"p": 0})["p"]),
    ):
        numbers = random_streams.gaps(p, seed, f"link.reverse.acks.{kind}", packets)
        if numbers:
            yield f"{name} reverse " + " ".join(map(str, numbers))


def _jitter(link: Link, seed: int) -> str:
    """Its jitter. The random numbers are Linux's own."""
    if not (jitter := link.table.get("jitter")):
        return ""
    if jitter["kind"] != "uniform" or parse(jitter["low"], SECONDS) or jitter["keep_order"]:
        raise _refused(f"{link.key}.jitter", "it is uniform from 0 and does not keep the order")
    if parse(jitter["high"], SECONDS) >= _LONGEST_JITTER_S:
        raise _refused(f"{link.key}.jitter.high", f"it is less than {_LONGEST_JITTER_S} s")
    return f" jitter_ns={_nanoseconds(jitter['high'])} jitter_seed={seed}"


def _grown_bytes(mss: int) -> int:
    """A window that is no limit: TCP's largest, at which it begins, and the growth in 128 MiB."""
    share = 256 * mss // (mss + SEGMENT_OVERHEAD_BYTES)
    if share <= 128:
        return LARGEST_BUFFER_BYTES // 2
    return LARGEST_WINDOW_BYTES + (share - 128) * (USUAL_BUFFER_BYTES >> 8)


def _window_bytes(flow: Mapping[str, Any]) -> int | None:
    """The whole segments of its receive window; None if TCP's own is the smaller."""
    if (said := flow.get("receive_window")) is None:
        return None
    mss = round(parse(flow["packet"], BYTES)) - HEADERS_BYTES
    if "packets" in said:
        segments = int(float(said.partition(" ")[0]))
    else:
        segments = int(parse(said, BYTES)) // mss
    window = max(segments, 1) * mss
    return window if window < LARGEST_WINDOW_BYTES else None


def _flow(connection: Connection, network: Network, *, ours: bool) -> str:
    flow = connection.flow
    data, acks = network.routes(flow)
    own_s = parse(flow["rtt"], SECONDS) - network.delay_s(data) - network.delay_s(acks)

    def refused(key: str, why: str) -> ScenarioError:
        return _refused(f"{connection.key}.{key}", why)

    if flow.get("transport", "tcp") != "tcp":
        raise refused("transport", "it has TCP alone")
    law = str(flow["law"])
    if (kernel_name := kernel_law(law, ours=ours)) is None:
        if ours and prototype.is_prototype(law):
            raise refused("law", why_not_built_in(law))
        there = "our laws with the target kernel, in their first variant, and as NAME:linux its own"
        there = there if ours else "its own"
        raise refused("law", f"it has no {law}; it has {there}: {', '.join(MODULES)}")
    slow_start = {"cubic": "hystart", "bbr": "none"}.get(kernel_name, "classic")
    if kernel_name not in MODULES.values() and (info := known(law.partition(":")[0])) is not None:
        slow_start = info.slow_start
    if flow.get("slow_start", slow_start) != slow_start:
        raise refused("slow_start", f"{law} has {slow_start} there")
    if parse(flow["packet"], BYTES) < LEAST_PACKET_BYTES:
        raise refused("packet", f"it is at least {LEAST_PACKET_BYTES} bytes")
    for key in _NO_SETTING:
        if flow.get(key):
            raise refused(key, "it has no such setting")
    words = [
        f"flow law={kernel_name}",
        f"delay_ns={max(round(own_s / 2 * 1e9), 0)}",
        f"start_us={round(connection.start_s * 1e9) // 1000}",
        f"packet_bytes={parse(flow['packet'], BYTES):.0f}",
        f"ecn={flow['ecn']:d}",
        f"sack={flow['sack']:d}",
        f"delayed_ack={flow['delayed_ack']:d}",
    ]
    if not network.is_dumbbell:
        words += [f"route={network.numbers(data)}", f"ack_route={network.numbers(acks)}"]
    elif flow["direction"] == "reverse":
        words.append("reverse=1")
    if flow["pacing"]:
        words.append("pacing=1")
    if flow.get("stop"):
        words.append(f"stop_us={_nanoseconds(flow['stop']) // 1000}")
    if connection.size_bytes is not None:
        words.append(f"size_bytes={connection.size_bytes}")
    window = flow["initial_window"].partition(" ")[0]
    if window != "10":
        words.append(f"initial_window={window}")
    mss = round(parse(flow["packet"], BYTES)) - HEADERS_BYTES
    words.append(f"receive_window={_window_bytes(flow) or _grown_bytes(mss)}")
    return " ".join([*words, *_application(flow.get("application"))])


def _application(application: Mapping[str, str] | None) -> Iterator[str]:
    """Writes of a slow application."""
    if application:
        yield f"write_bps={parse(application['rate'], BITS_PER_S):.0f}"
        for key in (key for key in ("on", "off") if key in application):
            yield f"{key}_us={_nanoseconds(application[key]) // 1000}"


class _Need(NamedTuple):
    """Most data that the hosts of a run hold."""

    flows: int
    flight_bytes: float
    """Memory of the segments that may be unacknowledged in all flows together."""
    payload_bytes: float
    """That a run can send."""


def _need(resolved: Mapping[str, Any], network: Network, flows: Sequence[Connection]) -> _Need:
    """Twice path and buffers at the largest rates and delays, as slow start overshoots."""
    schedule = resolved.get("schedule", [])

    def most(name: str, key: str, unit: Any) -> float:
        said = [network.links[name].table[key]]
        said += [entry[key] for entry in schedule if entry.get("link") == name and key in entry]
        return max(parse(one, unit) for one in said)

    rates = {name: most(name, "rate", BITS_PER_S) for name in network.links}
    delays = {name: most(name, "delay", SECONDS) for name in network.links}
    groups: dict[tuple[str, ...], tuple[float, float]] = {}
    taken: set[str] = set()
    overhead = 1.0
    for one in flows:
        flow = one.flow
        data, acks = network.routes(flow)
        own_s = parse(flow["rtt"], SECONDS) - network.delay_s(data) - network.delay_s(acks)
        ways = [(data, acks)]
        ways += [
            network.routes({**flow, **entry})
            for entry in schedule
            if "flow" in entry and is_of(entry, one)
        ]
        wire_bytes = parse(flow["packet"], BYTES) + FRAMING_BYTES
        overhead = max(overhead, 1 + SEGMENT_OVERHEAD_BYTES / (wire_bytes - 66))
        pipe = 0.0
        for there, back in ways:
            taken |= set(there)
            rate_bps = min(rates[name] for name in there)
            rtt_s = max(own_s, 0) + sum(delays[name] for name in (*there, *back))
            waiting = 0.0
            for name in there:
                size = network.links[name].table["queue"]["size"]
                packets = run_length.queue_packets(size, rates[name], rtt_s, wire_bytes)
                waiting += packets * wire_bytes
            pipe = max(pipe, rate_bps / 8 * rtt_s + waiting)
        window = _window_bytes(flow) or LARGEST_WINDOW_BYTES
        before, largest = groups.get(tuple(data), (0.0, 0.0))
        flight = min(window, 2 * pipe, one.size_bytes or math.inf)
        groups[tuple(data)] = before + flight, max(largest, pipe)
    flight_bytes = sum(min(total, 2 * pipe) for total, pipe in groups.values())
    fastest_bps = max(rates[name] for name in taken)
    payload_bytes = parse(resolved["duration"], SECONDS) * fastest_bps / 8
    return _Need(len(flows), overhead * min(flight_bytes, payload_bytes), payload_bytes)


def _first_buffer_bytes(need: _Need) -> float:
    """A flow's send buffer at first: what it may have in flight, so that its writer never waits."""
    usual = min(BUFFERS_BYTES / need.flows, FIRST_BUFFER_BYTES)
    room = max(usual, min(need.flight_bytes / need.flows, LARGEST_BUFFER_BYTES))
    return min(room, need.payload_bytes * BUFFER_PER_PAYLOAD)


def memory_mib(resolved: Mapping[str, Any]) -> int:
    """Memory of the kernel for a run, in MiB.

    Raises:
        ScenarioError: it needs more than :data:`MOST_MIB`.
    """
    network, flows = Network(resolved), connections(resolved)
    need = _need(resolved, network, flows)
    # A send buffer grows to twice what is in flight; what waits on the path is in it, too.
    sizes = [line.split() for line in _send_buffers([one.flow for one in flows], need)]
    first, most = map(int, sizes[0][2:] if sizes else (0, LARGEST_BUFFER_BYTES))
    held = min(need.flows * most, max(need.flows * first, 2 * need.flight_bytes))
    needed_mib = (
        OWN_MIB + math.ceil(1.1 * held / (1 << 20)) + 4 * (len(flows) + 1) * ("capture" in resolved)
    )
    if needed_mib > MOST_MIB:
        raise _refused(
            "flow[0]",
            f"what its flows may have in flight needs {needed_mib / 1000:.1f} GB of memory there, "
            f"and it has at most {MOST_MIB / 1000:g} GB: fewer flows, a smaller receive_window, "
            "queue, rate or rtt",
        )
    return max(needed_mib, USUAL_MIB)


def _send_buffers(flows: Sequence[Mapping[str, Any]], need: _Need) -> list[str]:
    """Flows share their sending host, which is tuned or as Linux is installed.

    A tuned one holds all that a run can send: a writer that waits for a full buffer leaves segments
    with PSH, which the receiver acknowledges at once.
    """
    said: set[str | None] = {flow.get("send_buffer") for flow in flows}
    buffer = next(iter(said)) if len(said) == 1 else None
    if buffer is not None and buffer.startswith("linux"):
        sizes = buffer.removeprefix("linux").split() or [UNTUNED_SEND_BUFFER]
        most = parse(sizes[-1], BYTES)
        first = parse(sizes[0], BYTES) if len(sizes) > 1 else FIRST_SEND_BUFFER_BYTES
        if max(first, most) <= LARGEST_BUFFER_BYTES:
            return [f"sysctl net.ipv4.tcp_wmem=4096 {first:.0f} {most:.0f}"]
    elif buffer is not None and "packets" not in buffer:
        mss = min(parse(flow["packet"], BYTES) for flow in flows) - HEADERS_BYTES
        room = parse(buffer, BYTES) * (1 + SEGMENT_OVERHEAD_BYTES / mss)
        if room <= LARGEST_BUFFER_BYTES:
            return [f"sysctl net.ipv4.tcp_wmem=4096 {room:.0f} {room:.0f}"]
    if said != {None}:
        raise _refused(
            "flow[0].send_buffer",
            'all flows say "linux" there, or the same bytes, with "linux" or without, at most '
            f"{LARGEST_BUFFER_BYTES >> 20} MiB with headers, or none says anything",
        )
    room, least, usual = _first_buffer_bytes(need), FIRST_BUFFER_BYTES // 32, 4096
    if room <= least:
        return []
    return [f"sysctl net.ipv4.tcp_wmem={usual} {int(room)} {LARGEST_BUFFER_BYTES}"]


def is_of(entry: Mapping[str, Any], connection: Connection) -> bool:
    """Whether an entry of the schedule is of a connection's group of flows."""
    group = int(connection.key.removeprefix("flow[").removesuffix("]"))
    return entry["flow"] in (connection.flow.get("name", group), group)


def _schedule(
    resolved: Mapping[str, Any],
    network: Network,
    flows: Sequence[Connection],
    rates: dict[str, float],
) -> Iterator[str]:
    losses = _Losses(resolved, len(flows))
    for place, entry in enumerate(resolved.get("schedule", [])):
        other = set(entry) - {
            "at",
            "link",
            "flow",
            "rate",
            "delay",
            "down",
            "loss",
            "route",
            "ack_route",
        }
        if ("flow" not in entry and entry.get("link") not in rates) or other:
            key = f"schedule[{place}]" + (f".{min(other)}" if other else "")
            raise _refused(key, "it changes rate, delay, loss or down of a link, or a flow's route")
        at = f"at {_nanoseconds(entry['at']) // 1000}"
        if "flow" in entry:
            for number, one in enumerate(flows):
                if is_of(entry, one):
                    data, acks = network.routes({**one.flow, "ack_route": None, **entry})
                    yield (
                        f"{at} flow {number} route={network.numbers(data)} "
                        f"ack_route={network.numbers(acks)}"
                    )
            continue
        link = network.links[entry["link"]]
        words = [f"{at} {_word(network, link)}"]
        if "rate" in entry:
            rates[link.name] = parse(entry["rate"], BITS_PER_S)
        if "rate" in entry or "down" in entry:
            words.append(f"rate_bps={0 if entry.get('down') else round(rates[link.name])}")
        if "delay" in entry:
            words.append(f"delay_ns={_nanoseconds(entry['delay'])}")
        yield " ".join(words)
        if "loss" in entry:
            yield from losses.change(link, entry, place)


class _Losses:
    """Losses that the schedule changes, as the simulator draws them: each link's draws go on."""

    def __init__(self, resolved: Mapping[str, Any], flows: int) -> None:
        self.resolved, self.flows = resolved, flows
        self.p: dict[str, float] = {}
        self.drawn: dict[str, int] = {}

    def change(self, link: Link, entry: Mapping[str, Any], place: int) -> Iterator[str]:
        """Lines behind that of the change: the packets that are lost from then on."""
        p, before = entry["loss"], self.p.setdefault(link.name, link.table["loss"])
        if p == before:
            return
        schedule = self.resolved["schedule"]
        ends = [
            parse(later["at"], SECONDS)
            for later in schedule[place + 1 :]
            if later.get("link") == link.name and "loss" in later
        ]
        at_s, duration_s = (
            parse(text, SECONDS) for text in (entry["at"], self.resolved["duration"])
        )
        if link.name not in self.drawn:
            self.drawn[link.name] = self._most(link, before, at_s)
        self.p[link.name] = p
        if p == 0:
            yield "losing"
            return
        until_s = min(ends, default=duration_s)
        self.drawn[link.name] += self._most(link, p, max(until_s - at_s, 0))
        seed, name = self.resolved["seed"], f"link.{link.name}.loss"
        numbers = random_streams.first_gaps(p, seed, name, self.drawn[link.name])
        yield "losing " + " ".join(map(str, numbers))
        numbers = random_streams.first_gaps(p, seed, f"{name}.handshake", 2 * self.flows)
        yield "unopening " + " ".join(map(str, numbers))

    def _most(self, link: Link, p: float, time_s: float) -> int:
        """Draws in this time, at most: ten deviations above the mean, and one at the beginning."""
        packets = time_s * _top_bps(self.resolved, link) / 8 / _least_packet_bytes(self.resolved)
        return math.ceil(min(p * packets + 10 * math.sqrt(p * packets), packets)) + 2 if p else 0


def _top_bps(resolved: Mapping[str, Any], link: Link) -> float:
    """The highest rate that a link has."""
    rates = [link.table["rate"]]
    rates += [
        entry["rate"]
        for entry in resolved.get("schedule", [])
        if entry.get("link") == link.name and "rate" in entry
    ]
    return max(parse(rate, BITS_PER_S) for rate in rates)


def _least_packet_bytes(resolved: Mapping[str, Any]) -> float:
    """The smallest packet with payload that many are of."""
    return min(parse(one["packet"], BYTES) for one in (*resolved["flow"], *resolved.get("udp", [])))


def _udp(resolved: Mapping[str, Any], network: Network) -> Iterator[str]:
    """Sources of UDP, by their bursts."""
    sources = resolved.get("udp", [])
    if len(sources) > MOST_SOURCES:
        raise _refused("udp", f"it has at most {MOST_SOURCES} sources")
    duration = resolved["duration"]
    for place, source in enumerate(sources):
        if source.get("on_off"):
            raise _refused(f"udp[{place}].on_off", "it has bursts and steps alone")
        if source.get("breakers"):
            raise _refused(f"udp[{place}].breakers", "it has no such setting")
        bursts, end = [], "0s"
        for burst in source.get("bursts") or _bursts(source["steps"]):
            start = burst.get("start", end)
            end = burst.get("stop", duration)
            bursts.append(
                f"{parse(burst['rate'], BITS_PER_S):.0f}:{_picoseconds(start)}:{_picoseconds(end)}"
            )
        yield (
            f"udp packet_bytes={parse(source['packet'], BYTES):.0f} "
            f"route={network.numbers(network.route(source))} bursts={','.join(bursts)}"
        )


def _bursts(steps: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    start, each = _picoseconds(steps["start"]), _picoseconds(steps["each"])
    for number, rate in enumerate(steps["rates"]):
        at = start + number * each
        yield {"start": f"{at}ps", "stop": f"{at + each}ps", "rate": rate}


def _picoseconds(text: str) -> int:
    return round(parse(text, SECONDS) * 1e12)


def _check_parts(resolved: Mapping[str, Any]) -> None:
    """Refuse the parts of a scenario that are not links, flows and sources of UDP."""
    for key in resolved:
        if key == "background" and not resolved[key]["level"] and not resolved[key]["long_flows"]:
            continue
        if key not in _TOP_LEVEL and resolved[key]:
            raise _refused(key, "it has links, flows and sources of UDP alone")
    if not resolved["flow"]:
        raise _refused("flow", "it needs one")
    if resolved["compat"] != "linux":
        raise _refused("compat", 'it is "linux" there')
    if resolved["sample"] == "off":
        raise _refused("sample", "a time is needed")
    if round(parse(resolved["sample"], SECONDS) * 1e6) < SHORTEST_SAMPLE_US:
        raise _refused("sample", f"it is at least {SHORTEST_SAMPLE_US} us")
    if len(resolved.get("schedule", [])) > MOST_CHANGES:
        raise _refused("schedule", f"it has at most {MOST_CHANGES} changes")


def _check_links(resolved: Mapping[str, Any], network: Network) -> None:
    """Refuse links that the kernel lacks, and losses where both data and ACKs travel."""
    carries_acks = {name for flow in resolved["flow"] for name in network.routes(flow)[1]}
    carries_data = {name for flow in resolved["flow"] for name in network.routes(flow)[0]}
    for place, entry in enumerate(resolved.get("schedule", [])):
        if "flow" in entry:
            group = next(
                flow
                for number, flow in enumerate(resolved["flow"])
                if entry["flow"] in (flow.get("name", number), number)
            )
            data, acks = network.routes({**group, "ack_route": None, **entry})
            carries_acks |= set(acks)
            carries_data |= set(data)
        elif entry.get("loss") and entry.get("link") in carries_acks:
            raise _refused(f"schedule[{place}].loss", "it has that where no ACKs take the link")
    for link in network.links.values():
        if "trace" in link.table:
            raise _refused(f"{link.key}.trace", "a link with a rate is needed")
        if link.table.get("router", {"kind": "none"}) != {"kind": "none"}:
            raise _refused(f"{link.key}.router", "it has no router")
        for key in ("policer", "shaper", "bleach"):
            if link.table.get(key):
                raise _refused(f"{link.key}.{key}", "it has no such link")
        if not network.is_dumbbell and link.table.get("acks"):
            raise _refused(f"{link.key}.acks", "it has that in a dumbbell")
        # Forward data alone are lost, held up or duplicated, in reverse ACKs.
        for key in ("loss", "reorder", "duplicate", "acks"):
            if not link.table.get(key):
                continue
            if network.is_dumbbell:
                sent = list(resolved["flow"])
                if link.name == "reverse" and key != "acks":
                    sent += resolved.get("udp", [])
                bad = any(one["direction"] == "reverse" for one in sent)
            else:
                bad = link.name in carries_acks and link.name in carries_data
            if bad:
                where = "all data go forward" if network.is_dumbbell else "no ACKs take the link"
                raise _refused(f"{link.key}.{key}", f"it has that where {where}")


def look_us(resolved: Mapping[str, Any]) -> int:
    """How often a stored run looks at its flows: a part of the interval of samples."""
    sample_us = round(parse(resolved["sample"], SECONDS) * 1e6)
    parts = range(math.ceil(sample_us / _LOOK_EVERY_US), sample_us // SHORTEST_SAMPLE_US + 1)
    return sample_us // next((part for part in parts if sample_us % part == 0), 1)


def _word(network: Network, link: Link) -> str:
    """The name of a link in the kernel."""
    return link.name if network.is_dumbbell else str(link.number)


def _links(resolved: Mapping[str, Any], network: Network, rates: dict[str, float]) -> Iterator[str]:
    """The links with their queues; a reverse link on which an ACK takes no time is none."""
    flows = resolved["flow"]
    changed = {entry.get("link") for entry in resolved.get("schedule", [])}
    carried = [*flows, *resolved.get("udp", [])]
    wire_bytes = round(max(parse(one["packet"], BYTES) for one in carried)) + FRAMING_BYTES
    for link in network.links.values():
        table = link.table
        rates[link.name] = rate_bps = parse(table["rate"], BITS_PER_S)
        delays = link.name in changed or parse(table["delay"], SECONDS) > 0
        acks = (table.get("acks") or {}) if network.is_dumbbell else {}
        if link.key == "link.reverse" and rate_bps >= _NO_TIME_BPS and not delays and not acks:
            continue
        passing = [
            flow for flow in flows if link.name in itertools.chain(*network.routes(flow))
        ] or flows
        longest_s = max(parse(flow["rtt"], SECONDS) for flow in passing)
        held = acks if link.key == "link.reverse" else table
        hold = held.get("reorder", {}).get("delay", "0s")
        ends = "" if network.is_dumbbell else f" from={link.ends[0]} to={link.ends[1]}"
        word = _word(network, link)
        yield (
            f"link {word} rate_bps={round(rate_bps)} delay_ns={_nanoseconds(table['delay'])} "
            f"hold_ns={_nanoseconds(hold)}{_jitter(link, resolved['seed'])}{ends}"
        )
        yield f"queue {word} {_queue(link.key, table['queue'], rate_bps, longest_s, wire_bytes)}"


def translated(
    resolved: Mapping[str, Any], *more: str, ours: bool = False, seed: int | None = None
) -> str:
    """The file that says to Linux what a scenario is, from :meth:`Scenario.check`.

    Args:
        resolved: the scenario with every default filled in.
        more: lines of that file to add, such as ``sysctl net.ipv4.tcp_wmem=4096 16384 4194304``.
        ours: for a stored run: our laws, looks as :func:`look_us` has them, and the kernel draws
            by the scenario's seed.
        seed: the kernel draws by it, as for RED and PIE. Without one, and without ``ours``, all
            runs draw the same random numbers.

    Raises:
        ScenarioError: naming the key that this Linux cannot run.
    """
    _check_parts(resolved)
    if "link" not in resolved and "links" not in resolved:
        raise _refused("parking-lot", "it has link and links alone")
    network = Network(resolved)
    flows = connections(resolved)
    _check_links(resolved, network)
    duration_s = parse(resolved["duration"], SECONDS)
    sample_us = round(parse(resolved["sample"], SECONDS) * 1e6)
    run = f"run duration_us={round(duration_s * 1e6)} "
    run += f"sample_us={look_us(resolved) if ours else sample_us}"
    if (needed_mib := memory_mib(resolved)) > USUAL_MIB:
        run += f" memory_mib={needed_mib}"
    seed = resolved["seed"] if ours else seed
    lines = [run if seed is None else f"{run} seed={seed}"]
    rates: dict[str, float] = {}
    lines += _links(resolved, network, rates)
    for link in network.links.values():
        packets = math.ceil(duration_s * _top_bps(resolved, link) / 8 / 576)
        if link.key != "link.reverse":
            word = _word(network, link)
            lines += _chosen(link, word, resolved["seed"], packets, len(flows))
        elif link.table.get("acks"):
            packets = math.ceil(duration_s * _top_bps(resolved, network.links["forward"]) / 8 / 576)
            lines += _chosen_acks(link.table["acks"], resolved["seed"], packets)
    lines += [_flow(one, network, ours=ours) for one in flows]
    lines += _udp(resolved, network)
    lines += _schedule(resolved, network, flows, rates)
    if capture := resolved.get("capture"):
        from_us, to_us = (_nanoseconds(capture[key]) // 1000 for key in ("from", "to"))
        # Those of links that are not recorded are counted there, too.
        most = min(4 * capture["max_rows"], 10**9)
        lines.append(f"capture from_us={from_us} to_us={to_us} packets={most}")
    if any(link.table["queue"]["kind"] == "fq-codel" for link in network.links.values()):
        lines.append(ONE_HASH)
    buffers = _send_buffers([one.flow for one in flows], _need(resolved, network, flows))
    return "\n".join([*lines, TUNED_RECEIVE_BUFFER, *buffers, *more]) + "\n"


#: A recorded packet, ``struct captured`` of linux/capture.h.
_CAPTURED = np.dtype(
    [
        ("at_ns", "<i8"),
        ("bytes", "<u4"),
        ("flow", "<u2"),
        ("receiver", "u1"),
        ("leaves", "u1"),
        ("head", "u1", 112),
    ]
)


def run(
    program: Path,
    work: Path,
    tag: str,
    scenario: str,
    going: Callable[[float], bool] | None = None,
) -> Ran:
    """Run what :func:`translated` gave; its files are ``work/TAG.*``.

    Args:
        program: ``linux/run``.
        work: folder of the files.
        tag: begins their names.
        scenario: the text.
        going: told at intervals how far the run is, in seconds of the scenario; returns whether it
            is still wanted.

    Raises:
        LabError: it failed; the text has the kernel's last lines.
        GivenUp: it was not wanted any more.
    """
    work.mkdir(parents=True, exist_ok=True)
    (work / f"{tag}.scenario").write_text(scenario, encoding="ascii")
    # Whoever kills this process ends the kernel too.
    command = ["setpriv", "--pdeathsig", "TERM", str(program), str(work), tag]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        while process.poll() is None:
            try:
                process.wait(None if going is None else _TURN_S)
            except subprocess.TimeoutExpired:
                if going is not None and not going(_reached_s(work / f".{tag}.run/run.links.csv")):
                    process.terminate()
                    process.wait()
                    raise GivenUp from None
        assert process.stderr is not None
        said = process.stderr.read()
    if process.returncode:
        raise LabError(said.strip())
    return ran(work, tag)


def _reached_s(samples: Path) -> float:
    """The time of the last whole row that is in the file."""
    try:
        with samples.open("rb") as file:
            file.seek(max(samples.stat().st_size - 200, 0))
            rows = file.read().splitlines()[1:-1]
    except OSError:
        return 0.0
    return int(rows[-1].split(b",")[0]) / 1e6 if rows else 0.0


def ran(work: Path, tag: str) -> Ran:
    """The results of a run that is done."""
    counters = json.loads((work / f"{tag}.json").read_text())
    flows: list[dict[str, np.ndarray]] = []
    shown: list[Any] = []
    while (file := work / f"{tag}.flow{len(flows)}.csv").exists():
        flows.append(_columns(file))
    queues: dict[int, dict[str, Any]] = {}
    while (file := work / f"{tag}.link{len(shown)}.json").exists():
        shown.append(json.loads(file.read_text()))
    for number, all_of in enumerate(shown):
        for queue in all_of:
            if queue.get("handle") == "10:":
                queues[number] = queue
    packets = work / f"{tag}.packets"
    return Ran(
        tuple(flows),
        counters,
        queues,
        _columns(work / f"{tag}.links.csv"),
        np.fromfile(packets, _CAPTURED) if packets.exists() else None,
    )


def _columns(samples: Path) -> dict[str, np.ndarray]:
    table = pl.read_csv(samples, infer_schema=False).cast(pl.Float64)
    return {column.name: column.to_numpy() for column in table if len(column)}


def trace(flow: Mapping[str, np.ndarray]) -> Trace:
    """The samples of one flow."""
    ssthresh = flow["ssthresh"]
    return Trace(
        time_s=flow["t_us"] / 1e6,
        cwnd_segments=flow["cwnd"],
        ssthresh_segments=np.where(ssthresh >= 2**31 - 1, np.inf, ssthresh),
        reducing=np.isin(flow["ca"], _REDUCING),
        drops=flow["qdrops"],
        delivered_b=flow["bytes_acked"],
        rtt_s=flow["rtt_us"] / 1e6,
    )
