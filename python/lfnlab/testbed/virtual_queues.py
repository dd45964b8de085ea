"""A queue of a scenario in the words of Linux in virtual time: those of tc, and DualPI2."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.analysis import run_length
from lfnlab.scenario.quantity import BYTES, SECONDS, parse
from lfnlab.testbed.virtual_network import refused as _refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lfnlab.errors import ScenarioError

#: The averages of Linux's RED: a threshold in bytes and the weight's exponent have so many bits
#: together (tried with nine pairs on Linux 6.12; tc says "Invalid argument").
RED_BITS = 31
#: Of packets and bytes: no limit. A gain beyond the second would not fit into 64 bits.
UNBOUNDED, LARGEST_GAIN_HZ = 2**62, 100_000


def words(
    key: str,
    queue: Mapping[str, Any],
    rate_bps: float,
    rtt_s: float,
    wire_bytes: int,
    warmup_s: float,
) -> str:
    """A queue in the words behind ``queue LINK``; it holds its packets besides the one in service.

    Args:
        key: of the link.
        queue: its table, resolved.
        rate_bps: of the link.
        rtt_s: the longest base RTT of the flows that pass, of which a size in BDP is.
        wire_bytes: the largest packet at the queue.
        warmup_s: DualPI2 counts packets from then on.

    Raises:
        ScenarioError: naming the key that this Linux lacks.
    """
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
    shallow = f" ce_threshold {us('ce_threshold')}" if queue.get("ce_threshold") else ""
    if kind == "codel":
        if queue["ce_threshold_mask"]:
            raise _refused(f"{key}.queue.ce_threshold_mask", "its CoDel has no selector")
        delays = f"target {us('target')} interval {us('interval')}"
        return f"codel limit {packets} {delays}{shallow}{ecn}"
    if kind == "fq-codel":
        if shallow and queue["ce_threshold_mask"]:
            selector, mask = queue["ce_threshold_selector"], queue["ce_threshold_mask"]
            shallow += f" ce_threshold_selector {selector:#x}/{mask:#x}"
        return (
            f"fq_codel limit {packets} flows {queue['queues']} target {us('target')} "
            f"interval {us('interval')} quantum {wire_bytes} memory_limit 1000000000"
            f"{shallow}{ecn or ' noecn'}"
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
    if kind == "dualpi2":
        return "dualpi2 " + " ".join(_dualpi2(key, queue, packets, wire_bytes, warmup_s))
    raise _refused(f"{key}.queue.kind", f"it has no {kind}")


def _dualpi2(
    at: str, queue: Mapping[str, Any], packets: int, wire_bytes: int, warmup_s: float
) -> Iterator[str]:
    """The values of linux/net/lfndual.h, all integers."""
    of_packets = "packets" in queue["size"] or "bdp" in queue["size"]
    yield f"packets={packets if of_packets else UNBOUNDED}"
    yield f"bytes={UNBOUNDED if of_packets else round(parse(queue['size'], BYTES))}"
    for name in ("target", "tupdate", "step", "ramp"):
        key = "step_thresh" if name == "step" else name
        yield f"{name}_ns={round(parse(queue[key], SECONDS) * 1e9)}"
    for gain in ("alpha", "beta"):
        if queue[gain] > LARGEST_GAIN_HZ:
            raise _refused(f"{at}.queue.{gain}", f"it is at most {LARGEST_GAIN_HZ} Hz")
        yield f"{gain}={round(queue[gain] * 2**30)}"
    yield f"coupling={queue['coupling_factor']}"
    yield f"floor={queue['floor']}"
    yield f"overflow={queue['overload'] == 'overflow':d}"
    yield f"protection={queue['c_protection']}"
    yield f"any_ect={queue['any_ect']:d}"
    yield f"mtu={wire_bytes}"
    yield f"from_us={round(warmup_s * 1e6)}"


def counted(text: str) -> dict[int, dict[str, Any]]:
    """The classes of each DualPI2 queue by its link's number, from ``/proc/lfn_queues``.

    ``linux/net/sch_lfndual.c`` has its form; the keys are those of a link's ``classes`` in a
    summary.
    """
    found: dict[int, dict[str, Any]] = {}
    bins: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for line in text.splitlines():
        device, what, *numbers = line.split()
        # The ways of wire w: from r(w + 1) and from s(w).
        wire = int(device[1:])
        link = 2 * (wire - 1) if device[0] == "r" else 2 * wire + 1
        classes = found.setdefault(link, {})
        if what == "p":
            classes["probability"] = int(numbers[0]) / 2**30
        elif numbers[0] == "waited":
            bins.setdefault((link, what), []).append((int(numbers[1]), int(numbers[2])))
        else:
            names = ("packets", "bytes", "marks", "drops")
            classes[what] = dict(zip(names, map(int, numbers), strict=True)) | _delays([])
    for (link, name), waited in bins.items():
        found[link][name] |= _delays(waited)
    return found


QUANTILES = {"p50_queue_s": 0.5, "p90_queue_s": 0.9, "p99_queue_s": 0.99, "p999_queue_s": 0.999}


def _delays(waited: Sequence[tuple[int, int]]) -> dict[str, float | None]:
    """Mean and quantiles in s of bins, each its end in us and its packets."""
    if not waited:
        return dict.fromkeys(("mean_queue_s", *QUANTILES))
    ends_us, packets = (np.array(column, dtype=np.int64) for column in zip(*waited, strict=True))
    up_to = np.cumsum(packets)

    def quantile(q: float) -> float:
        place = np.searchsorted(up_to, max(math.ceil(up_to[-1] * q), 1))
        return float(ends_us[place]) * 1e-6

    # A bin is 1 us or a 64th of its delay wide.
    middles_us = ends_us - np.maximum(ends_us / 128, 0.5)
    mean_s = float(middles_us @ packets / up_to[-1]) * 1e-6
    return {"mean_queue_s": mean_s, **{name: quantile(q) for name, q in QUANTILES.items()}}


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
    if round(high * wire_bytes).bit_length() + exponent > RED_BITS:
        most = (1 << RED_BITS - exponent) // wire_bytes
        why = f"at a weight of 2^-{exponent} its RED takes {most} packets of {wire_bytes} B at most"
        raise refused("max_th", why)
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
