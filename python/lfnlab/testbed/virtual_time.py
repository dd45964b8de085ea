"""A scenario on Linux's own TCP in virtual time, a reference for the simulator.

``make linux`` builds that kernel, and ``linux/run FOLDER TAG`` runs what ``TAG.scenario`` in the
folder says. Here a scenario of ours is translated into such a file, and its results are read;
:mod:`lfnlab.testbed.linux_backend` makes stored runs of them.
"""

from __future__ import annotations

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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

#: Largest send buffer of a host as Linux is installed, not tuned for long fat networks.
UNTUNED_SEND_BUFFER = "4MiB"
FIRST_SEND_BUFFER_BYTES = 16_384
#: Largest send buffer of a tuned host; memory of the kernel for those of all flows; memory of a
#: full segment by its payload, with a margin.
LARGEST_BUFFER_BYTES, BUFFERS_BYTES, BUFFER_PER_PAYLOAD = 1 << 28, 3 << 28, 2.0
#: Memory of a segment in a send buffer beside its payload (measured: 2,280 bytes for 1,448).
SEGMENT_OVERHEAD_BYTES = 832
#: IP and TCP headers, timestamps included.
HEADERS_BYTES = 52
#: The kernel draws jitter in 32 bits of nanoseconds.
_LONGEST_JITTER_S = 4
#: The receiving host's buffer, as ours: its window holds no sender.
TUNED_RECEIVE_BUFFER = "sysctl net.ipv4.tcp_rmem=4096 134217728 134217728"
#: Linux sorts a local socket's packets by a hash that the socket renews after a timeout or a
#: duplicate. On a path, headers decide, so a flow stays in its queue.
ONE_HASH = "sysctl net.core.txrehash=0"
#: tcp_info's congestion-avoidance states in which the window is being reduced: CWR, Recovery, Loss.
_REDUCING = (2, 3, 4)
#: At this rate an ACK takes no time, as in the way back of Linux without a link there.
_NO_TIME_BPS = 1e12
_TOP_LEVEL = {"schema", "name", "seed", "duration", "warmup", "sample", "compat", "link", "flow"}
_NO_SETTING = ("receive_window", "initial_ssthresh", "burst", "misbehaves", "breakers")
#: Connections and changes of a run, the shortest interval of samples and the smallest packet, as
#: linux/scenario.h and linux/scenario.c have them.
MOST_CONNECTIONS, MOST_CHANGES, SHORTEST_SAMPLE_US, LEAST_PACKET_BYTES = 200, 1000, 100, 100
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
    #: Counters of the bottleneck's queue, as ``tc -s`` shows them.
    queue: dict[str, Any]
    #: The same of the reverse link; None if it takes no time.
    reverse: dict[str, Any] | None
    #: The samples of both links' queues, in one table.
    links: dict[str, np.ndarray]


def _nanoseconds(text: str) -> int:
    return round(parse(text, SECONDS) * 1e9)


def _refused(key: str, why: str) -> ScenarioError:
    return ScenarioError(f"Linux in virtual time cannot run it: {why}", key=key)


def _of_link(way: str, key: str) -> str:
    """The key of a link's setting."""
    return f"link.{key}" if way == "forward" else f"link.reverse.{key}"


def connections(resolved: Mapping[str, Any]) -> list[Connection]:
    """The connections of a scenario, in the order of its flows, with the simulator's starts."""
    found: list[Connection] = []
    number = 0
    for group, flow in enumerate(resolved["flow"]):
        streams = flow["parallel"]
        size_bytes = round(parse(flow["size"], BYTES)) if flow.get("size") else None
        for _ in range(flow["count"]):
            start_s = _start_s(flow["start"], resolved["seed"], number)
            for stream in range(streams):
                share = None
                if size_bytes is not None:
                    share = size_bytes // streams + (stream < size_bytes % streams)
                found.append(Connection(number, f"flow[{group}]", flow, start_s, share))
            number += 1
        if len(found) > MOST_CONNECTIONS:
            raise _refused(f"flow[{group}]", f"it has at most {MOST_CONNECTIONS} connections")
    return found


def _start_s(text: str, seed: int, number: int) -> float:
    """When a flow begins; drawn as ``crates/scenario/src/config.rs`` draws it."""
    if not text.startswith("uniform("):
        return parse(text, SECONDS)
    bounds = text.removeprefix("uniform(").removesuffix(")").split(",")
    low_s, high_s = (parse(bound.strip(), SECONDS) for bound in bounds)
    return low_s + (high_s - low_s) * next(random_streams.uniform(seed, f"flow[{number}].start"))


def _queue(
    way: str, queue: Mapping[str, Any], rate_bps: float, rtt_s: float, wire_bytes: int
) -> str:
    """A queue in the words of tc; it holds its packets besides the one in service."""
    packets = max(
        1, math.floor(run_length.queue_packets(queue["size"], rate_bps, rtt_s, wire_bytes))
    )
    kind = queue["kind"]
    ecn = " ecn" if queue.get("ecn") else ""

    def us(key: str) -> str:
        return f"{parse(queue[key], SECONDS) * 1e6:.0f}us"

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
        return _red(way, queue, packets, wire_bytes, rate_bps) + ecn
    raise _refused(_of_link(way, "queue.kind"), f"it has no {kind}")


def _red(way: str, queue: Mapping[str, Any], packets: int, wire_bytes: int, rate_bps: float) -> str:
    """RED of Linux: neither gentle nor spaced, weights that are powers of 2."""

    def refused(key: str, why: str) -> ScenarioError:
        return _refused(_of_link(way, f"queue.{key}"), why)

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


def _chosen(
    link: Mapping[str, Any], way: str, seed: int, packets: int, flows: int
) -> Iterator[str]:
    """The packets that the simulator's streams choose, so that both lose the same ones."""
    if not isinstance(link["loss"], int | float):
        raise _refused(_of_link(way, "loss"), "it has losses of one probability alone")
    reorder = link.get("reorder") or {"p": 0, "delay": "0s"}
    for name, kind, p in (
        ("lost", "loss", link["loss"]),
        ("held", "reorder", reorder["p"]),
        ("duplicated", "duplicate", link["duplicate"]),
    ):
        numbers = random_streams.gaps(p, seed, f"link.{way}.{kind}", packets)
        if numbers:
            yield f"{name} {way} " + " ".join(map(str, numbers))
    # A connection needs two packets that pass.
    numbers = random_streams.gaps(link["loss"], seed, f"link.{way}.loss.handshake", packets)
    numbers = [gap for at, gap in enumerate(numbers) if sum(numbers[: at + 1]) < 2 * flows]
    if numbers:
        yield f"unopened {way} " + " ".join(map(str, numbers))


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


def _jitter(link: Mapping[str, Any], way: str, seed: int) -> str:
    """Its jitter. The random numbers are Linux's own."""
    if not (jitter := link.get("jitter")):
        return ""
    if jitter["kind"] != "uniform" or parse(jitter["low"], SECONDS) or jitter["keep_order"]:
        key = _of_link(way, "jitter")
        raise _refused(key, "it is uniform from 0 and does not keep the order")
    if parse(jitter["high"], SECONDS) >= _LONGEST_JITTER_S:
        raise _refused(_of_link(way, "jitter.high"), f"it is less than {_LONGEST_JITTER_S} s")
    return f" jitter_ns={_nanoseconds(jitter['high'])} jitter_seed={seed}"


def _flow(connection: Connection, own_s: float, *, ours: bool) -> str:
    flow = connection.flow

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
        f"delay_ns={round(own_s / 2 * 1e9)}",
        f"start_us={round(connection.start_s * 1e9) // 1000}",
        f"packet_bytes={parse(flow['packet'], BYTES):.0f}",
        f"ecn={flow['ecn']:d}",
        f"sack={flow['sack']:d}",
        f"delayed_ack={flow['delayed_ack']:d}",
    ]
    if flow["direction"] == "reverse":
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
    return " ".join([*words, *_application(flow.get("application"))])


def _application(application: Mapping[str, str] | None) -> Iterator[str]:
    """Writes of a slow application."""
    if application:
        yield f"write_bps={parse(application['rate'], BITS_PER_S):.0f}"
        for key in (key for key in ("on", "off") if key in application):
            yield f"{key}_us={_nanoseconds(application[key]) // 1000}"


def _send_buffers(flows: list[dict[str, Any]], payload_bytes: float) -> list[str]:
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
    room = min(BUFFERS_BYTES / len(flows), LARGEST_BUFFER_BYTES, payload_bytes * BUFFER_PER_PAYLOAD)
    least, usual = LARGEST_BUFFER_BYTES // 32, 4096
    if room <= least:
        return []
    return [f"sysctl net.ipv4.tcp_wmem={usual} {int(room)} {LARGEST_BUFFER_BYTES}"]


def _schedule(entries: list[dict[str, Any]], rates: dict[str, float]) -> Iterator[str]:
    if len(entries) > MOST_CHANGES:
        raise _refused("schedule", f"it has at most {MOST_CHANGES} changes")
    for place, entry in enumerate(entries):
        way = entry.get("link")
        other = set(entry) - {"at", "link", "rate", "delay", "down"}
        if way not in rates or other:
            key = f"schedule[{place}]" + (f".{min(other)}" if other else "")
            raise _refused(key, "it changes rate, delay or down of forward or reverse alone")
        words = [f"at {_nanoseconds(entry['at']) // 1000} {way}"]
        if "rate" in entry:
            rates[way] = parse(entry["rate"], BITS_PER_S)
        if "rate" in entry or "down" in entry:
            words.append(f"rate_bps={0 if entry.get('down') else round(rates[way])}")
        if "delay" in entry:
            words.append(f"delay_ns={_nanoseconds(entry['delay'])}")
        yield " ".join(words)


def _check_parts(resolved: Mapping[str, Any]) -> None:
    """Refuse the parts of a scenario that are not of a dumbbell with flows."""
    for key in resolved:
        if key == "background" and not resolved[key]["level"] and not resolved[key]["long_flows"]:
            continue
        if key not in _TOP_LEVEL | {"schedule"} and resolved[key]:
            raise _refused(key, "it has links of a dumbbell and flows alone")
    if "link" not in resolved or "trace" in resolved["link"]:
        raise _refused("link", "a dumbbell with a rate is needed")
    if not resolved["flow"]:
        raise _refused("flow", "it needs one")
    if resolved["compat"] != "linux":
        raise _refused("compat", 'it is "linux" there')
    if resolved["sample"] == "off":
        raise _refused("sample", "a time is needed")
    if parse(resolved["sample"], SECONDS) * 1e6 < SHORTEST_SAMPLE_US:
        raise _refused("sample", f"it is at least {SHORTEST_SAMPLE_US} us")
    for way, link in (("forward", resolved["link"]), ("reverse", resolved["link"]["reverse"])):
        if link.get("router", {"kind": "none"}) != {"kind": "none"}:
            raise _refused(_of_link(way, "router"), "it has no router")
        for key in ("policer", "shaper", "bleach"):
            if link.get(key):
                raise _refused(_of_link(way, key), "it has no such link")
        # Forward data alone are lost, held up or duplicated, in reverse ACKs.
        for key in ("loss", "reorder", "duplicate", "acks"):
            if link.get(key) and any(flow["direction"] == "reverse" for flow in resolved["flow"]):
                raise _refused(_of_link(way, key), "it has that where all data go forward")


def look_us(resolved: Mapping[str, Any]) -> int:
    """How often a stored run looks at its flows: a part of the interval of samples."""
    sample_us = round(parse(resolved["sample"], SECONDS) * 1e6)
    parts = range(math.ceil(sample_us / _LOOK_EVERY_US), sample_us // SHORTEST_SAMPLE_US + 1)
    return sample_us // next((part for part in parts if sample_us % part == 0), 1)


def _links(
    resolved: Mapping[str, Any], rates: dict[str, float], changed: set[str | None]
) -> Iterator[str]:
    """The links with their queues; a reverse link on which an ACK takes no time is none."""
    flows = resolved["flow"]
    wire_bytes = round(max(parse(flow["packet"], BYTES) for flow in flows)) + 14
    longest_s = max(parse(flow["rtt"], SECONDS) for flow in flows)
    for way, link in (("forward", resolved["link"]), ("reverse", resolved["link"]["reverse"])):
        rates[way] = rate_bps = parse(link["rate"], BITS_PER_S)
        delays = way in changed or parse(link["delay"], SECONDS) > 0
        acks = link.get("acks") or {}
        if way == "reverse" and rate_bps >= _NO_TIME_BPS and not delays and not acks:
            continue
        held = link if way == "forward" else acks
        hold = held.get("reorder", {}).get("delay", "0s")
        yield (
            f"link {way} rate_bps={round(rate_bps)} delay_ns={_nanoseconds(link['delay'])} "
            f"hold_ns={_nanoseconds(hold)}{_jitter(link, way, resolved['seed'])}"
        )
        yield f"queue {way} {_queue(way, link['queue'], rate_bps, longest_s, wire_bytes)}"


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
    forward, reverse = resolved["link"], resolved["link"]["reverse"]
    flows = connections(resolved)
    duration_s = parse(resolved["duration"], SECONDS)
    schedule = list(resolved.get("schedule", []))
    sample_us = round(parse(resolved["sample"], SECONDS) * 1e6)
    run = f"run duration_us={round(duration_s * 1e6)} "
    run += f"sample_us={look_us(resolved) if ours else sample_us}"
    seed = resolved["seed"] if ours else seed
    lines = [run if seed is None else f"{run} seed={seed}"]
    rates: dict[str, float] = {}
    lines += _links(resolved, rates, {entry.get("link") for entry in schedule})
    top_bps = max(
        [rates["forward"], *(parse(e["rate"], BITS_PER_S) for e in schedule if "rate" in e)]
    )
    packets = math.ceil(duration_s * top_bps / 8 / 576)
    lines += _chosen(forward, "forward", resolved["seed"], packets, len(flows))
    if reverse.get("acks"):
        lines += _chosen_acks(reverse["acks"], resolved["seed"], packets)
    of_links_s = parse(forward["delay"], SECONDS) + parse(reverse["delay"], SECONDS)
    lines += [_flow(one, parse(one.flow["rtt"], SECONDS) - of_links_s, ours=ours) for one in flows]
    lines += _schedule(schedule, rates)
    if "fq-codel" in (forward["queue"]["kind"], reverse["queue"]["kind"]):
        lines.append(ONE_HASH)
    buffers = _send_buffers([dict(one.flow) for one in flows], duration_s * top_bps / 8)
    return "\n".join([*lines, TUNED_RECEIVE_BUFFER, *buffers, *more]) + "\n"


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
    while (file := work / f"{tag}.flow{len(flows)}.csv").exists():
        flows.append(_columns(file))
    queue, reverse = (
        next((one for one in json.loads(text) if one.get("handle") == "10:"), None)
        for text in ((work / f"{tag}.{name}.json").read_text() for name in ("queues", "reverse"))
    )
    assert queue is not None, "the bottleneck has one"
    return Ran(tuple(flows), counters, queue, reverse, _columns(work / f"{tag}.links.csv"))


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
