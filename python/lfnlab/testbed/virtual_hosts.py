"""Connections of a scenario in Linux in virtual time, and their hosts: windows, buffers, memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from lfnlab.analysis import run_length
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, bounds, parse
from lfnlab.testbed import random_streams
from lfnlab.testbed.virtual_network import Network, refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Connections of a run, as linux/scenario.h has them.
MOST_CONNECTIONS = 200
#: Largest send buffer of a host as Linux is installed, not tuned for long fat networks.
UNTUNED_SEND_BUFFER = "4MiB"
FIRST_SEND_BUFFER_BYTES = 16_384
#: Linux's largest buffer of a socket.
LARGEST_BUFFER_BYTES = 2**31 - 1
#: A tuned host's send buffers at first: the largest of a flow and that of all flows, unless more
#: may be in flight; memory of a full segment by its payload, with a margin.
FIRST_BUFFER_BYTES, BUFFERS_BYTES, BUFFER_PER_PAYLOAD = 1 << 28, 3 << 28, 2.0
#: A tuned receiver's buffer (docs/compat.md), and the window that it begins with.
USUAL_BUFFER_BYTES, USUAL_WINDOW_BYTES = 128 << 20, 64 << 20
#: TCP's largest window: 16 bits, scaled by 14.
LARGEST_WINDOW_BYTES = 65535 << 14
#: The kernel's memory if a run needs no more, what it takes beside buffers, and the most, in MiB.
USUAL_MIB, OWN_MIB, MOST_MIB = 1500, 400, 7000
#: Memory of a segment in a send buffer beside its payload (measured: 2,280 bytes for 1,448).
SEGMENT_OVERHEAD_BYTES = 832
#: IP and TCP headers, timestamps included.
HEADERS_BYTES = 52
FRAMING_BYTES = 14


class Connection(NamedTuple):
    """One connection of a flow. A flow with parallel streams has several."""

    number: int
    """Of the flow, from 0."""
    key: str
    """Of the flow's table in the scenario."""
    flow: Mapping[str, Any]
    """That table with the flow's own RTT, start, stop and size."""
    start_s: float
    size_bytes: int | None


def connections(resolved: Mapping[str, Any]) -> list[Connection]:
    """The connections of a scenario, in the order of its flows, with the simulator's starts."""
    found: list[Connection] = []
    number = 0
    for group, flow in enumerate(resolved["flow"]):
        streams = flow["parallel"]
        for place in range(flow["count"]):
            own = own_values(flow, place, resolved["seed"], number)
            start_s = parse(own["start"], SECONDS)
            size_bytes = round(parse(own["size"], BYTES)) if own.get("size") else None
            for stream in range(streams):
                share = None
                if size_bytes is not None:
                    share = size_bytes // streams + (stream < size_bytes % streams)
                found.append(Connection(number, f"flow[{group}]", own, start_s, share))
            number += 1
        if len(found) > MOST_CONNECTIONS:
            raise refused(f"flow[{group}]", f"it has at most {MOST_CONNECTIONS} connections")
    return found


def own_values(flow: Mapping[str, Any], place: int, seed: int, number: int) -> dict[str, Any]:
    """The table of flow ``number``, at ``place`` of its group, with its own RTT, start, stop, size.

    Drawn as ``crates/scenario/src/config.rs`` draws them.
    """
    own = dict(flow)
    for key, units in (("rtt", SECONDS), ("start", SECONDS), ("stop", SECONDS), ("size", BYTES)):
        said = flow.get(key)
        if isinstance(said, list):
            own[key] = said[place % len(said)]
        elif said and "(" in said:
            low, high = bounds(said, units)
            share = next(random_streams.uniform(seed, f"flow[{number}].{key}"))
            logarithmic = said.startswith("log-")
            drawn = low * (high / low) ** share if logarithmic else low + (high - low) * share
            own[key] = f"{int(drawn)}B" if key == "size" else f"{drawn!r}s"
    return own


def receive_buffer_bytes(need: Need) -> int:
    """A receiver's buffer: the simulator's, or Linux's largest where more may be unacknowledged.

    A long recovery has several windows unacknowledged: four times path and buffers, as the send
    buffer has.

    An ACK announces the room that is left. With the larger one the room is more than TCP can
    announce, so the window never changes and header prediction takes every ACK, which Westwood
    sees.
    """
    usual = 2 * need.largest_flight_bytes <= USUAL_WINDOW_BYTES
    return USUAL_BUFFER_BYTES if usual else LARGEST_BUFFER_BYTES


def receive_window_bytes(flow: Mapping[str, Any], need: Need) -> int | None:
    """The window of a connection's route; None if its receiver's buffer alone decides.

    In Linux's largest buffer a window that is no limit grows for as many segments as in the usual
    one: meanwhile each segment is acknowledged at once.
    """
    if (said := window_bytes(flow)) is not None:
        return said
    if receive_buffer_bytes(need) == USUAL_BUFFER_BYTES:
        return None
    mss = mss_bytes(flow)
    share = 256 * mss // (mss + SEGMENT_OVERHEAD_BYTES)
    if share <= 128:
        return LARGEST_BUFFER_BYTES // 2
    return LARGEST_WINDOW_BYTES + (share - 128) * (USUAL_BUFFER_BYTES >> 8)


def mss_bytes(flow: Mapping[str, Any]) -> int:
    """Payload of a full segment of a flow, as the resolved scenario has the flow."""
    return round(parse(flow["packet"], BYTES)) - HEADERS_BYTES


def window_bytes(flow: Mapping[str, Any]) -> int | None:
    """The whole segments of its receive window; None if TCP's own is the smaller."""
    if (said := flow.get("receive_window")) is None:
        return None
    mss = mss_bytes(flow)
    if "packets" in said:
        segments = int(float(said.partition(" ")[0]))
    else:
        segments = int(parse(said, BYTES)) // mss
    window = max(segments, 1) * mss
    return window if window < LARGEST_WINDOW_BYTES else None


class Need(NamedTuple):
    """Most data that the hosts of a run hold."""

    flows: int
    largest_flight_bytes: float
    """Payload and headers that a flow may have unacknowledged."""
    flight_bytes: float
    """Memory of the segments that may be unacknowledged in all flows together."""
    payload_bytes: float
    """That a run can send."""


def need_of(resolved: Mapping[str, Any], network: Network, flows: Sequence[Connection]) -> Need:
    """Twice path and buffers at the largest rates and delays, as slow start overshoots."""
    schedule = resolved.get("schedule", [])

    def most(name: str, key: str, unit: Any) -> float:
        said = [network.links[name].table[key]]
        said += [entry[key] for entry in schedule if entry.get("link") == name and key in entry]
        return max(parse(one, unit) for one in said)

    rates = {name: most(name, "rate", BITS_PER_S) for name in network.links}
    delays = {name: most(name, "delay", SECONDS) for name in network.links}
    groups: dict[tuple[str, ...], tuple[float, float]] = {}
    largest_flight = 0.0
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
        window = window_bytes(flow) or LARGEST_WINDOW_BYTES
        before, largest = groups.get(tuple(data), (0.0, 0.0))
        flight = min(window, 2 * pipe, one.size_bytes or math.inf)
        largest_flight = max(largest_flight, flight)
        groups[tuple(data)] = before + flight, max(largest, pipe)
    flight_bytes = sum(min(total, 2 * pipe) for total, pipe in groups.values())
    fastest_bps = max(rates[name] for name in taken)
    payload_bytes = parse(resolved["duration"], SECONDS) * fastest_bps / 8
    flight_bytes = overhead * min(flight_bytes, payload_bytes)
    return Need(len(flows), largest_flight, flight_bytes, payload_bytes)


def _first_buffer_bytes(need: Need) -> float:
    """A flow's send buffer at first: as the simulator's, four times path and buffers.

    A long recovery has several windows unacknowledged.
    """
    usual = min(BUFFERS_BYTES / need.flows, FIRST_BUFFER_BYTES)
    room = max(usual, min(2 * need.flight_bytes / need.flows, LARGEST_BUFFER_BYTES))
    return min(room, need.payload_bytes * BUFFER_PER_PAYLOAD)


def memory_mib(resolved: Mapping[str, Any]) -> int:
    """Memory of the kernel for a run, in MiB.

    Raises:
        ScenarioError: it needs more than :data:`MOST_MIB`.
    """
    network, flows = Network(resolved), connections(resolved)
    need = need_of(resolved, network, flows)
    # A send buffer grows to twice what is in flight; what waits on the path is in it, too.
    sizes = [line.split() for line in send_buffers([one.flow for one in flows], need)]
    first, most = map(int, sizes[0][2:] if sizes else (0, LARGEST_BUFFER_BYTES))
    held = min(need.flows * most, max(need.flows * first, 2 * need.flight_bytes))
    needed_mib = (
        OWN_MIB + math.ceil(1.1 * held / (1 << 20)) + 4 * (len(flows) + 1) * ("capture" in resolved)
    )
    if needed_mib > MOST_MIB:
        raise refused(
            "flow[0]",
            f"what its flows may have in flight needs {needed_mib / 1000:.1f} GB of memory there, "
            f"and it has at most {MOST_MIB / 1000:g} GB: fewer flows, a smaller receive_window, "
            "queue, rate or rtt",
        )
    return max(needed_mib, USUAL_MIB)


def send_buffers(flows: Sequence[Mapping[str, Any]], need: Need) -> list[str]:
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
        raise refused(
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
