"""A scenario on Linux's own TCP in virtual time, a reference for the simulator.

``make linux`` builds that kernel, and ``linux/run FOLDER TAG`` runs what ``TAG.scenario`` in the
folder says. Here a scenario of ours is translated into such a file;
:mod:`lfnlab.testbed.virtual_run` runs it and reads its results, and
:mod:`lfnlab.testbed.linux_backend` makes stored runs of them.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from lfnlab.control_laws import prototype
from lfnlab.control_laws.registry import known
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, bounds, parse
from lfnlab.testbed import random_streams
from lfnlab.testbed.linux_laws import MODULES, kernel_law, why_not_built_in
from lfnlab.testbed.virtual_hosts import (
    FRAMING_BYTES,
    USUAL_MIB,
    connections,
    is_of,
    memory_mib,
    need_of,
    receive_buffer_bytes,
    receive_window_bytes,
    send_buffers,
)
from lfnlab.testbed.virtual_network import Link, Network
from lfnlab.testbed.virtual_network import refused as _refused
from lfnlab.testbed.virtual_queues import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lfnlab.errors import ScenarioError
    from lfnlab.testbed.virtual_hosts import Connection, Need

#: The kernel draws jitter in 32 bits of nanoseconds.
_LONGEST_JITTER_S = 4
#: Linux sorts a local socket's packets by a hash that the socket renews after a timeout or a
#: duplicate. On a path, headers decide, so a flow stays in its queue.
ONE_HASH = "sysctl net.core.txrehash=0"
#: At this rate an ACK takes no time, as in the way back of Linux without a link there.
_NO_TIME_BPS = 1e12
_TOP_LEVEL = {
    *("schema", "name", "seed", "duration", "warmup", "sample", "compat", "link", "links", "flow"),
    *("udp", "capture", "schedule"),
}
_NO_SETTING = ("initial_ssthresh", "burst", "misbehaves", "breakers", "l4s")
#: Sources of UDP and changes of a run, the shortest interval of samples and the
#: smallest packet, as linux/scenario.h and linux/scenario.c have them.
MOST_SOURCES, MOST_CHANGES = 20, 1000
SHORTEST_SAMPLE_US, LEAST_PACKET_BYTES = 100, 100
#: A stored run looks at its flows so often, or at each sample.
_LOOK_EVERY_US = 5000


def _nanoseconds(text: str) -> int:
    return round(parse(text, SECONDS) * 1e9)


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
    if jitter["kind"] != "uniform" or parse(jitter["low"], SECONDS):
        raise _refused(f"{link.key}.jitter", "it is uniform from 0")
    if parse(jitter["high"], SECONDS) >= _LONGEST_JITTER_S:
        raise _refused(f"{link.key}.jitter.high", f"it is less than {_LONGEST_JITTER_S} s")
    ordered = " jitter_in_order=1" * jitter["keep_order"]
    return f" jitter_ns={_nanoseconds(jitter['high'])} jitter_seed={seed}{ordered}"


def _flow(connection: Connection, network: Network, need: Need, *, ours: bool) -> str:
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
    if flow.get("accecn", "off") != "off":
        raise refused("accecn", 'it has "off" alone')
    if flow.get("receiver_ecn"):
        raise refused("receiver_ecn", "both hosts are set up alike")
    if "deadline" in (flow.get("application") or {}):
        raise refused("application.deadline", "it has no such setting")
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
    if (receive_window := receive_window_bytes(flow, need)) is not None:
        words.append(f"receive_window={receive_window}")
    return " ".join([*words, *_application(flow.get("application"))])


def _application(application: Mapping[str, str] | None) -> Iterator[str]:
    """Writes of a slow application."""
    if application:
        yield f"write_bps={parse(application['rate'], BITS_PER_S):.0f}"
        for key in (key for key in ("on", "off") if key in application):
            yield f"{key}_us={_nanoseconds(application[key]) // 1000}"


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
        for key in ("breakers", "deadline"):
            if source.get(key):
                raise _refused(f"udp[{place}].{key}", "it has no such setting")
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
    warmup_s = parse(resolved["warmup"], SECONDS)
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
        longest_s = max(bounds(flow["rtt"], SECONDS)[1] for flow in passing)
        held = acks if link.key == "link.reverse" else table
        hold = held.get("reorder", {}).get("delay", "0s")
        ends = "" if network.is_dumbbell else f" from={link.ends[0]} to={link.ends[1]}"
        word = _word(network, link)
        yield (
            f"link {word} rate_bps={round(rate_bps)} delay_ns={_nanoseconds(table['delay'])} "
            f"hold_ns={_nanoseconds(hold)}{_jitter(link, resolved['seed'])}{ends}"
        )
        queue = words(link.key, table["queue"], rate_bps, longest_s, wire_bytes, warmup_s)
        yield f"queue {word} {queue}"


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
    need = need_of(resolved, network, flows)
    lines += [_flow(one, network, need, ours=ours) for one in flows]
    lines += _udp(resolved, network)
    lines += _schedule(resolved, network, flows, rates)
    if capture := resolved.get("capture"):
        from_us, to_us = (_nanoseconds(capture[key]) // 1000 for key in ("from", "to"))
        # Those of links that are not recorded are counted there, too.
        most = min(4 * capture["max_rows"], 10**9)
        lines.append(f"capture from_us={from_us} to_us={to_us} packets={most}")
    if any(link.table["queue"]["kind"] == "fq-codel" for link in network.links.values()):
        lines.append(ONE_HASH)
    buffer = receive_buffer_bytes(need)
    lines += [f"sysctl net.ipv4.tcp_rmem=4096 {buffer} {buffer}"]
    buffers = send_buffers([one.flow for one in flows], need)
    return "\n".join([*lines, *buffers, *more]) + "\n"
