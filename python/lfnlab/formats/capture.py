"""Packet captures (pcap, pcapng) as tables of lfnlab: what the TCP flows in them show.

``crates/capture`` reads the file. A capture sees a part of the round trip towards the receiver and
a part towards the sender, so what stands in the tables depends on where it was made.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lfnlab import _core, metrics
from lfnlab.errors import UsageError
from lfnlab.formats.measurement import Measurement
from lfnlab.metrics.tables import bin_ends, goodputs_of
from lfnlab.statistics import finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

At = Literal["sender", "receiver", "between"]
STEP_S = 0.1
_LEAST_STEP_S = 1e-6
_UNKNOWN = "unknown"
_LEAST_STAMPS, _LEAST_STAMPED_S = 10, 1.0
"""Samples and time that tell how fast a clock of timestamps ticks."""
_LEAST_LIKE = 0.4
"""Logarithm of the ratio to a usual clock: more is none."""
_EMPTY = 0.02
"""RTTs above the smallest by less than this part have no queue."""
_MOST_DRIFT = 2e-4
"""Of the clocks of two hosts."""
_MOST_SCALE = 14
"""Of a window (RFC 7323, section 2.3)."""
_FILLED, _MOST_FILLED = 0.9, 0.98
"""Part of a window in flight that fills it; part of the samples that may not exceed it: one may be
of a moment between two packets."""


def read(file: Path, *, at: At | None = None, step_s: float | None = STEP_S) -> Measurement:
    """Read the TCP flows of a capture.

    The data of an end of a connection are a flow; those of the other end too, if they are at least
    a tenth as much. Times count from the first packet of the file. ``delivered_bytes`` counts from
    the first ACK in it. The law is not seen: it is "tcp".

    At the sender, RTT and bytes in flight are the sender's. At the receiver and between, bytes in
    flight follow from the echo of timestamps (RFC 7323), and so does the part of the RTT to the
    sender; they are null without timestamps.

    Args:
        file: pcap or pcapng, also packed by gzip, of any snap length with TCP's header.
        at: where it was made; default as the parts of the round-trip time show.
        step_s: time between two samples, in seconds; more where there would be very many.

    Raises:
        UsageError: it is no capture, or has no TCP data.
        StoreError: when the file cannot be read.
    """
    if step_s is None or not step_s >= _LEAST_STEP_S:
        raise UsageError("--step: allowed: at least 1us")
    said, tables = _core.read_capture(file, step_s)
    told = json.loads(said)
    digest = hashlib.sha256()
    columns: dict[str, list[Floats]] = {}
    goodputs: list[tuple[Floats, Floats]] = []
    flows = []
    for number, (flow, table) in enumerate(zip(told["flows"], tables, strict=True)):
        samples = _samples(flow, at or flow["at"], table)
        if not flow["has_scale"]:
            samples["offered_window_bytes"] = _likely_window(samples)
        for name, values in samples.items():
            columns.setdefault(name, []).append(values)
            digest.update(values.tobytes())
        columns.setdefault("flow", []).append(np.full(table["t_s"].size, float(number)))
        times, delivered = table["t_s"], table["delivered_bytes"]
        known = np.flatnonzero(~np.isnan(delivered))
        rates = np.diff(delivered[known]) * 8 / np.diff(times[known])
        goodputs.append((times[known][1:], rates))
        flows.append(_summary(number, flow, at, samples))
    return _measurement(file, digest.digest(), columns, goodputs, flows, _notes(told, flows), told)


def _measurement(
    file: Path,
    digest: bytes,
    columns: Mapping[str, Sequence[Floats]],
    goodputs: Sequence[tuple[Floats, Floats]],
    flows: list[dict[str, Any]],
    notes: list[str],
    told: dict[str, Any],
) -> Measurement:
    import polars as pl

    table = pl.DataFrame({name: np.concatenate(parts) for name, parts in columns.items()})
    number = [np.full(times.size, place) for place, (times, _) in enumerate(goodputs)]
    goodput = pl.DataFrame(
        {
            "t_s": np.concatenate([times for times, _ in goodputs]),
            "flow": np.concatenate(number).astype(np.uint32),
            "goodput_bps": np.concatenate([rates for _, rates in goodputs]),
        }
    )
    kept = ("packets", "others", "short", "dropped", "step_s")
    about = {key: told[key] for key in kept}
    return Measurement.of(
        file, digest, table.fill_nan(None), goodput, flows, notes=notes, capture=about
    )


def _samples(flow: dict[str, Any], at: str | None, table: dict[str, Floats]) -> dict[str, Floats]:
    """The columns of a flow, by where it was captured."""
    if at == "receiver":
        parts: tuple[str, ...] = ("behind",)
    else:
        parts = ("ahead", "behind") if at == "between" else ("ahead",)
    flight = "inflight_bytes" if at in ("sender", None) else "echo_inflight_bytes"
    inflight = table[flight]
    segment = flow["segment_bytes"]
    steps = np.diff(table["t_s"], prepend=np.nan)
    return {
        "t_s": table["t_s"],
        "delivered_bytes": table["delivered_bytes"],
        "rtt_s": sum((table[f"{part}_s"] for part in parts), np.zeros(steps.size)),
        "srtt_s": sum((table[f"{part}_smoothed_s"] for part in parts), np.zeros(steps.size)),
        "min_rtt_s": sum((table[f"{part}_least_s"] for part in parts), np.zeros(steps.size)),
        "inflight_bytes": inflight,
        "inflight_seg": np.ceil(inflight / segment) if segment else np.full(steps.size, np.nan),
        "offered_window_bytes": table["offered_window_bytes"],
        "retransmits": table["retransmits"],
        "reordered": table["reordered"],
        "acks": table["acks"],
        "ack_delay_s": _delay(table, at, "sender", "ack", "ahead"),
        "data_delay_s": _delay(table, at, "receiver", "data", "behind"),
        "delivery_bps": np.diff(table["arrived_bytes"], prepend=np.nan) * 8 / steps,
    }


def _likely_window(samples: dict[str, Floats]) -> Floats:
    """The receiver's window where no handshake tells its scale: NaN unless it is full.

    What is in flight is at most the window, so the scale is at least so large; with the least of
    those an unscaled window is full by chance in about one in seven flows of steady flight.
    """
    flight, window = samples["inflight_bytes"], samples["offered_window_bytes"]
    known = (flight > 0) & (window > 0)
    unknown = np.full(window.size, np.nan)
    if not known.any():
        return unknown
    scale = max(0.0, np.ceil(np.log2(np.quantile(flight[known] / window[known], _MOST_FILLED))))
    scaled: Floats = window * 2.0**scale
    is_full = np.mean(flight[known] >= _FILLED * scaled[known]) >= 0.5 and scale <= _MOST_SCALE
    return scaled if is_full else unknown


def _delay(table: dict[str, Floats], at: str | None, end: str, what: str, part: str) -> Floats:
    """Delay of the latest ACK, or data, on its way above the least, by the clocks of timestamps.

    At the end that gets them alone: there a part of the RTT is all of it.
    """
    if at == end:
        return _late(table[f"{what}_came_s"], table[f"{what}_stamp"], table[f"{part}_s"])
    return np.full(table["t_s"].size, np.nan)


def _late(came_s: Floats, stamps: Floats, rtt_s: Floats) -> Floats:
    """How much later packets came than at the smallest RTTs; NaN if unknown.

    A clock of timestamps ticks 10 to a million times a second (RFC 7323: 1 to 1000). The clocks of
    two hosts drift apart by up to 200 ppm.
    """
    unknown = np.full(came_s.size, np.nan)
    known = np.isfinite(came_s) & np.isfinite(stamps) & np.isfinite(rtt_s)
    times = came_s[known]
    if times.size < _LEAST_STAMPS or times[-1] - times[0] < _LEAST_STAMPED_S:
        return unknown
    values = np.unwrap(stamps[known], period=2.0**32)
    per_s = (values[-1] - values[0]) / (times[-1] - times[0])
    ticks = np.array([10.0, 100.0, 250.0, 1000.0, 1e6])
    near = np.abs(np.log(np.maximum(per_s, 1e-9) / ticks))
    if near.min() > _LEAST_LIKE:
        return unknown
    late = times - values / ticks[near.argmin()]
    part = max(1, times.size // 3)
    first, last = late[:part].argmin(), times.size - part + late[-part:].argmin()
    apart_s = times[last] - times[first]
    if apart_s > 0 and abs(drift := (late[last] - late[first]) / apart_s) < _MOST_DRIFT:
        late -= drift * times
    rtts = rtt_s[known]
    empty = rtts <= rtts.min() * (1 + _EMPTY) + 1 / ticks[near.argmin()]
    unknown[known] = np.maximum(late - np.median(late[empty]), 0.0)
    return unknown


def _summary(
    number: int, flow: dict[str, Any], at: str | None, samples: dict[str, Floats]
) -> dict[str, Any]:
    last = {name: _last(values) for name, values in samples.items()}
    delivered = last["delivered_bytes"]
    seconds = flow["last_s"] - flow["first_s"]
    known = ~np.isnan(samples["delivered_bytes"])
    times, counts = samples["t_s"][known], samples["delivered_bytes"][known]
    bins = np.empty(0)
    if times.size and seconds >= 2.0:
        ends = bin_ends(1.0, flow["first_s"], flow["last_s"])
        bins = goodputs_of(times, counts, ends, 1.0, flow["first_s"])
    offered = samples["offered_window_bytes"]
    window = int(np.nanmax(offered)) if not np.isnan(offered).all() else None
    return {
        "id": number,
        "law": "tcp",
        "direction": "forward" if flow["is_forward"] else "reverse",
        "sender": flow["sender"],
        "receiver": flow["receiver"],
        "captured_at": at or flow["at"] or _UNKNOWN,
        "has_handshake": flow["has_handshake"],
        "has_window_scale": flow["has_scale"],
        "start_s": flow["first_s"],
        "goodput_bps": None if delivered is None or seconds <= 0 else delivered * 8 / seconds,
        "delivered_bytes": None if delivered is None else int(delivered),
        "unseen_bytes": flow["unseen_bytes"],
        "copies": flow["copies"],
        "retransmits": int(last["retransmits"] or 0),
        "reordered": int(last["reordered"] or 0),
        "cov": finite(metrics.cov(bins)) if bins.size > 1 else None,
        "srtt_s": last["srtt_s"],
        "min_rtt_s": last["min_rtt_s"],
        "segment_bytes": flow["segment_bytes"],
        "offered_window_bytes": window,
    }


def _last(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known[-1]) if known.size else None


def _notes(told: dict[str, Any], flows: list[dict[str, Any]]) -> list[str]:
    return list(_sentences(told, flows))


def _sentences(told: dict[str, Any], flows: list[dict[str, Any]]) -> Iterator[str]:
    """Where it was captured, and what is missing or was left out."""
    if told["stopped"]:
        yield f"Read up to byte {told['bytes']:,}: {told['stopped']}."
    places = Counter(flow["captured_at"] for flow in flows)
    for place, count in places.items():
        which = "" if len(places) == 1 else f" ({count:,} of {len(flows):,} flows)"
        if place == _UNKNOWN:
            yield (
                f"Where it was captured is not seen{which}: RTTs and bytes in flight count from "
                "the capture on. --at tells where it was."
            )
        else:
            where = {"between": "between the hosts"}.get(place, f"at the {place}")
            yield f"Captured {where}{which}; --at tells another place."
    unscaled = [flow for flow in flows if not flow["has_window_scale"]]
    if unscaled:
        yield (
            f"No handshake of {len(unscaled):,} of {len(flows):,} flows is in the file: the scale "
            "of the receiver's window is not known, and the window null."
        )
    if filled := sum(flow["offered_window_bytes"] is not None for flow in unscaled):
        yield (
            f"But of {filled:,} of them what is in flight fills the window for most of the time "
            "at the least scale that can be; that window is told."
        )
    if told["dropped"]:
        yield f"The capture dropped {told['dropped']:,} packets."
    if unseen := sum(flow["unseen_bytes"] for flow in flows):
        yield f"{unseen:,} bytes were acknowledged and are not in the file."
    if copies := sum(flow["copies"] for flow in flows):
        yield f"{copies:,} packets are in the file twice; each counts once."
    for key, what in (
        ("others", "packets are not TCP over IP, or are fragments, and were left out"),
        ("short", "packets have less than a TCP header captured, and were left out"),
        ("untimed", "packets have no time, and were left out"),
        ("backwards", "packets have an earlier time than the one before, and count as at its time"),
        ("given_up", "connections were not followed, since there are so many"),
    ):
        if told[key]:
            yield f"{told[key]:,} {what}."
