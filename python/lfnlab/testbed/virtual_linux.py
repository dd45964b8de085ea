"""A scenario on Linux's own TCP in virtual time, a reference for the simulator.

``make linux`` builds that kernel, and ``linux/run FOLDER TAG`` runs what ``TAG.scenario`` in the
folder says. Here a scenario of ours is translated into such a file, and its results are read.
"""

from __future__ import annotations

import csv
import json
import math
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.analysis import run_length
from lfnlab.analysis.sawtooth import Trace
from lfnlab.errors import LabError, ScenarioError
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, parse
from lfnlab.testbed import random_streams

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from lfnlab.scenario.builder import Scenario

#: Laws that Linux has as modules of its own, and what it calls them.
MODULES = {
    name: name
    for name in (
        "reno",
        "cubic",
        "bic",
        "htcp",
        "scalable",
        "westwood",
        "vegas",
        "illinois",
        "yeah",
        "hybla",
        "veno",
        "bbr",
        "dctcp",
    )
} | {"hstcp": "highspeed"}
#: Of a sending host as Linux is installed, not tuned for long fat networks.
UNTUNED_SEND_BUFFER = "sysctl net.ipv4.tcp_wmem=4096 16384 4194304"
#: Largest send buffer of a tuned host; memory of the kernel for those of all flows; memory of a
#: full segment by its payload, with a margin.
LARGEST_BUFFER_BYTES, BUFFERS_BYTES, BUFFER_PER_PAYLOAD = 1 << 28, 3 << 28, 2.0
#: Memory of a segment in a send buffer beside its payload (measured: 2,344 bytes for 1,448).
SEGMENT_OVERHEAD_BYTES = 896
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
_ACCEPTED = {
    "parallel": 1,
    "direction": "forward",
    "pacing": False,
    "transport": "tcp",
}


@dataclass(frozen=True)
class Ran:
    """Tables of a run of Linux."""

    #: The samples of each flow: columns by their names in the file.
    flows: tuple[dict[str, np.ndarray], ...]
    #: Counters of TCP by host: "a" sends, "b0", "b1" ... receive.
    counters: dict[str, dict[str, int]]
    #: Counters of the bottleneck's queue, as ``tc -s`` shows them.
    queue: dict[str, Any]


def _nanoseconds(text: str) -> int:
    return round(parse(text, SECONDS) * 1e9)


def _refused(key: str, why: str) -> ScenarioError:
    return ScenarioError(f"Linux in virtual time cannot run it: {why}", key=key)


def _queue(queue: Mapping[str, Any], rate_bps: float, rtt_s: float, wire_bytes: int) -> str:
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
        return (
            f"pie limit {packets} target {us('target')} tupdate {us('update')} "
            f"alpha {alpha} beta {beta}{ecn}"
        )
    if kind == "red":
        return _red(queue, packets, wire_bytes, rate_bps) + ecn
    raise _refused("link.queue.kind", f"it has no {kind}")


def _red(queue: Mapping[str, Any], packets: int, wire_bytes: int, rate_bps: float) -> str:
    """RED of Linux: neither gentle nor spaced, weights that are powers of 2."""
    for key, wanted in (
        ("gentle", False),
        ("wait", False),
        ("adaptive", False),
        ("rules", "linux"),
        ("byte_mode", False),
    ):
        if queue[key] != wanted:
            raise _refused(f"link.queue.{key}", f"its RED has {key} = {str(wanted).lower()}")
    if queue["ecn"] and queue["mark_p"] < queue["max_p"]:
        raise _refused("link.queue.mark_p", "its RED marks at any probability: write 1")
    if not all(key in queue for key in ("min_th", "max_th")) or queue["weight"] == "auto":
        raise _refused("link.queue", "its RED needs min_th, max_th and weight as numbers")
    low, high = (
        run_length.queue_packets(queue[key], 0, 0, wire_bytes) for key in ("min_th", "max_th")
    )
    exponent = round(-math.log2(queue["weight"]))
    if not math.isclose(queue["weight"], 2.0**-exponent):
        raise _refused("link.queue.weight", "it has powers of 2 alone")
    return (
        f"red limit {packets * wire_bytes} min {round(low * wire_bytes)} "
        f"max {round(high * wire_bytes)} avpkt {wire_bytes} burst {_burst(low, exponent)} "
        f"probability {queue['max_p']} bandwidth {rate_bps:.0f}bit"
    )


def _burst(min_packets: float, exponent: int) -> int:
    """The burst for which tc chooses a weight of 2^-exponent (Floyd's rule for W, in packets)."""
    weight = 2.0**-exponent

    def enough(burst: int, w: float) -> bool:
        return burst + 1 - min_packets <= (1 - (1 - w) ** burst) / w

    for burst in range(math.ceil(min_packets), 100000):
        if enough(burst, weight) and (exponent == 1 or not enough(burst, 2 * weight)):
            return burst
    raise _refused("link.queue.weight", f"tc finds no burst for 2^-{exponent}")


def _chosen(
    link: Mapping[str, Any], way: str, seed: int, packets: int, flows: int
) -> Iterator[str]:
    """The packets that the simulator's streams choose, so that both lose the same ones."""
    if not isinstance(link["loss"], int | float):
        raise _refused(f"link.{way}.loss", "it has losses of one probability alone")
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


def _jitter(link: Mapping[str, Any], way: str, seed: int) -> str:
    """Its jitter. The random numbers are Linux's own."""
    if not (jitter := link.get("jitter")):
        return ""
    if jitter["kind"] != "uniform" or parse(jitter["low"], SECONDS) or jitter["keep_order"]:
        raise _refused(f"link.{way}.jitter", "it is uniform from 0 and does not keep the order")
    if parse(jitter["high"], SECONDS) >= _LONGEST_JITTER_S:
        raise _refused(f"link.{way}.jitter", f"it is less than {_LONGEST_JITTER_S} s")
    return f" jitter_ns={_nanoseconds(jitter['high'])} jitter_seed={seed}"


def _flow(flow: Mapping[str, Any], own_s: float) -> str:
    law = str(flow["law"]).partition(":")[0]
    if law not in MODULES:
        raise _refused("flow.law", f"it has no {law}; it has {', '.join(MODULES)}")
    for key, wanted in _ACCEPTED.items():
        if flow.get(key, wanted) != wanted:
            raise _refused(f"flow.{key}", f"only {wanted} there")
    slow_start = {"cubic": "hystart", "bbr": "none"}.get(law, "classic")
    if flow.get("slow_start", slow_start) != slow_start:
        raise _refused("flow.slow_start", f"{law} has {slow_start} there")
    for key in ("receive_window", "initial_ssthresh", "stop"):
        if flow.get(key) is not None:
            raise _refused(f"flow.{key}", "it has no such setting")
    if "(" in flow["start"]:
        raise _refused("flow.start", "a time is needed, not a distribution")
    words = [
        f"flow law={MODULES[law]}",
        f"delay_ns={round(own_s / 2 * 1e9)}",
        f"start_us={_nanoseconds(flow['start']) // 1000}",
        f"packet_bytes={parse(flow['packet'], BYTES):.0f}",
        f"ecn={flow['ecn']:d}",
        f"sack={flow['sack']:d}",
        f"delayed_ack={flow['delayed_ack']:d}",
    ]
    if flow.get("size"):
        words.append(f"size_bytes={parse(flow['size'], BYTES):.0f}")
    window = flow["initial_window"].partition(" ")[0]
    if window != "10":
        words.append(f"initial_window={window}")
    return " ".join(words)


def _send_buffers(flows: list[dict[str, Any]], payload_bytes: float) -> list[str]:
    """Flows share their sending host, which is tuned or as Linux is installed.

    A tuned one holds all that a run can send: a writer that waits for a full buffer leaves segments
    with PSH, which the receiver acknowledges at once.
    """
    said: set[str | None] = {flow.get("send_buffer") for flow in flows}
    if said == {"linux"}:
        return [UNTUNED_SEND_BUFFER]
    buffer = next(iter(said)) if len(said) == 1 else None
    if buffer is not None and "packets" not in buffer:
        mss = min(parse(flow["packet"], BYTES) for flow in flows) - HEADERS_BYTES
        room = parse(buffer, BYTES) * (1 + SEGMENT_OVERHEAD_BYTES / mss)
        if room <= LARGEST_BUFFER_BYTES:
            return [f"sysctl net.ipv4.tcp_wmem=4096 {room:.0f} {room:.0f}"]
    if said != {None}:
        raise _refused(
            "flow.send_buffer",
            'all flows say "linux" there, or the same bytes, at most '
            f"{LARGEST_BUFFER_BYTES >> 20} MiB with headers, or none says anything",
        )
    room = min(BUFFERS_BYTES / len(flows), LARGEST_BUFFER_BYTES, payload_bytes * BUFFER_PER_PAYLOAD)
    least, usual = LARGEST_BUFFER_BYTES // 32, 4096
    if room <= least:
        return []
    return [f"sysctl net.ipv4.tcp_wmem={usual} {int(room)} {LARGEST_BUFFER_BYTES}"]


def _schedule(entries: list[dict[str, Any]], rates: dict[str, float]) -> Iterator[str]:
    for entry in entries:
        way = entry.get("link")
        if way not in rates or set(entry) - {"at", "link", "rate", "delay", "down"}:
            raise _refused("schedule", "it changes rate, delay or down of forward or reverse alone")
        words = [f"at {_nanoseconds(entry['at']) // 1000} {way}"]
        if "rate" in entry:
            rates[way] = parse(entry["rate"], BITS_PER_S)
        if "rate" in entry or "down" in entry:
            words.append(f"rate_bps={0 if entry.get('down') else round(rates[way])}")
        if "delay" in entry:
            words.append(f"delay_ns={_nanoseconds(entry['delay'])}")
        yield " ".join(words)


def translated(resolved: Mapping[str, Any], *more: str) -> str:
    """The file that says to Linux what a scenario is, from :meth:`Scenario.check`.

    Args:
        resolved: the scenario with every default filled in.
        more: lines of that file to add, such as ``sysctl net.ipv4.tcp_wmem=4096 16384 4194304``.

    Raises:
        ScenarioError: naming the part that this Linux cannot run.
    """
    for key in resolved:
        if key == "background" and not resolved[key]["level"] and not resolved[key]["long_flows"]:
            continue
        if key not in _TOP_LEVEL | {"schedule"} and resolved[key]:
            raise _refused(key, "it has links of a dumbbell and flows alone")
    if "link" not in resolved or "trace" in resolved["link"]:
        raise _refused("link", "a dumbbell with a rate is needed")
    if resolved["compat"] != "linux" or resolved["sample"] == "off":
        raise _refused("compat, sample", '"linux" and a time are needed')
    forward, reverse = resolved["link"], resolved["link"]["reverse"]
    for way, link in (("forward", forward), ("reverse", reverse)):
        if link.get("router", {"kind": "none"}) != {"kind": "none"}:
            raise _refused(f"link.{way}.router", "it has no router")
    flows = [flow for flow in resolved["flow"] for _ in range(flow["count"])]
    duration_s = parse(resolved["duration"], SECONDS)
    wire_bytes = round(max(parse(flow["packet"], BYTES) for flow in flows)) + 14
    longest_s = max(parse(flow["rtt"], SECONDS) for flow in flows)
    schedule = list(resolved.get("schedule", []))
    lines = [
        f"run duration_us={round(duration_s * 1e6)} "
        f"sample_us={round(parse(resolved['sample'], SECONDS) * 1e6)}"
    ]
    rates = {}
    for way, link in (("forward", forward), ("reverse", reverse)):
        rates[way] = rate_bps = parse(link["rate"], BITS_PER_S)
        changes = any(entry.get("link") == way for entry in schedule)
        delays = changes or parse(link["delay"], SECONDS) > 0
        if way == "reverse" and rate_bps >= _NO_TIME_BPS and not delays:
            continue
        hold = link.get("reorder", {}).get("delay", "0s")
        lines.append(
            f"link {way} rate_bps={round(rate_bps)} delay_ns={_nanoseconds(link['delay'])} "
            f"hold_ns={_nanoseconds(hold)}{_jitter(link, way, resolved['seed'])}"
        )
        lines.append(f"queue {way} {_queue(link['queue'], rate_bps, longest_s, wire_bytes)}")
    top_bps = max(
        [rates["forward"], *(parse(e["rate"], BITS_PER_S) for e in schedule if "rate" in e)]
    )
    packets = math.ceil(duration_s * top_bps / 8 / 576)
    lines += _chosen(forward, "forward", resolved["seed"], packets, len(flows))
    of_links_s = parse(forward["delay"], SECONDS) + parse(reverse["delay"], SECONDS)
    lines += [_flow(flow, parse(flow["rtt"], SECONDS) - of_links_s) for flow in flows]
    lines += _schedule(schedule, rates)
    if "fq-codel" in (forward["queue"]["kind"], reverse["queue"]["kind"]):
        lines.append(ONE_HASH)
    lines += [TUNED_RECEIVE_BUFFER, *_send_buffers(flows, duration_s * top_bps / 8)]
    return "\n".join([*lines, *more]) + "\n"


def run(program: Path, work: Path, tag: str, scenario: str) -> Ran:
    """Run what :func:`translated` gave; its files are ``work/TAG.*``.

    Raises:
        LabError: it failed; the text has the kernel's last lines.
    """
    work.mkdir(parents=True, exist_ok=True)
    (work / f"{tag}.scenario").write_text(scenario, encoding="ascii")
    # Whoever kills this process ends the kernel too.
    command = ["setpriv", "--pdeathsig", "TERM", str(program), str(work), tag]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{program} {work} {tag}: {done.stderr.strip()}")
    return ran(work, tag)


def ran(work: Path, tag: str) -> Ran:
    """The results of a run that is done."""
    counters = json.loads((work / f"{tag}.json").read_text())
    queues = json.loads((work / f"{tag}.queues.json").read_text())
    flows: list[dict[str, np.ndarray]] = []
    while (file := work / f"{tag}.flow{len(flows)}.csv").exists():
        flows.append(_columns(file))
    [queue] = [queue for queue in queues if queue["handle"] == "10:"]
    return Ran(tuple(flows), counters, queue)


def _columns(samples: Path) -> dict[str, np.ndarray]:
    with samples.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        name: np.array([float(row[name]) for row in rows]) for name in (rows[0] if rows else ())
    }


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


def simulated(program: Path, work: Path, scenario: Scenario) -> Ran:
    """A scenario on Linux.

    Raises:
        ScenarioError, LabError: as :func:`translated` and :func:`run`.
    """
    return run(program, work, "run", translated(scenario.check()))
