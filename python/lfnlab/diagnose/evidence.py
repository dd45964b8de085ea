"""A measured flow as arrays of its samples, whatever the tool.

Row i of every array covers the time from ``edges_s[i]`` to ``edges_s[i + 1]``. NaN stands for what
the tool does not tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lfnlab.errors import UsageError

if TYPE_CHECKING:
    from lfnlab.formats.measurement import Measurement

Floats: TypeAlias = NDArray[np.float64]

STANDARD_BYTES = 1448
"""Payload of a segment where the tool does not tell it."""
SUMS = ("retransmits", "busy_s", "rwnd_limited_s", "sndbuf_limited_s", "acks")
"""Arrays whose values are sums over the row's time."""
_LEFT_OUT = (
    "inflight_seg",
    "retransmits",
    "unsent_bytes",
    "busy_s",
    "rwnd_limited_s",
    "sndbuf_limited_s",
)
"""Columns that are 0 where ``ss`` prints nothing."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The samples of one flow: n rows, n + 1 edges."""

    flow: Mapping[str, Any]
    """Its entry in the measurement's summary."""
    edges_s: Floats
    goodput_bps: Floats
    """Payload that was acknowledged, by SACK too in a capture, or written at an iperf3 sender."""
    rtt_s: Floats
    """Latest sample where the tool has one, else the smoothed RTT."""
    cwnd_bytes: Floats
    ssthresh_bytes: Floats
    inflight_bytes: Floats
    window_bytes: Floats
    """Offered by the receiver."""
    unsent_bytes: Floats
    pacing_bps: Floats
    retransmits: Floats
    """Segments sent again in the row's time."""
    app_limited: Floats
    """1 or 0."""
    busy_s: Floats
    """Time in the row with data to send or to be acknowledged; so for the next two."""
    rwnd_limited_s: Floats
    sndbuf_limited_s: Floats
    acks: Floats = field(default_factory=lambda: np.empty(0))
    """ACKs in the row's time; of a capture, else NaN."""
    ack_delay_s: Floats = field(default_factory=lambda: np.empty(0))
    """Of the way back, above the least; of a capture at the sender, else NaN."""
    data_delay_s: Floats = field(default_factory=lambda: np.empty(0))
    """Of the way of the data; of a capture at the receiver, else NaN."""

    def __post_init__(self) -> None:
        for name in ("acks", "ack_delay_s", "data_delay_s"):
            if not getattr(self, name).size:
                object.__setattr__(self, name, np.full(self.lengths_s.size, np.nan))

    @property
    def segment_bytes(self) -> float:
        """Payload of a full segment."""
        return float(self.flow.get("segment_bytes") or STANDARD_BYTES)

    @property
    def lengths_s(self) -> Floats:
        """Time that each row covers."""
        return np.diff(self.edges_s)

    def coarser(self, step_s: float) -> Evidence:
        """The same in rows of at least this time: sums, mean rates, and the last known levels."""
        count = self.lengths_s.size
        group = np.floor((self.edges_s[1:] - self.edges_s[0]) / step_s - 1e-6)
        ends = np.flatnonzero(np.diff(group, append=np.inf))
        if ends.size == count:
            return self
        starts = np.concatenate([[0], ends[:-1] + 1])
        place = np.repeat(np.arange(ends.size), ends - starts + 1)

        def total(values: Floats) -> Floats:
            told = np.isfinite(values)
            known = np.bincount(place, told, minlength=ends.size) > 0
            sums = np.bincount(place, np.where(told, values, 0.0), minlength=ends.size)
            return np.where(known, sums, np.nan)

        def level(values: Floats) -> Floats:
            last = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(count), -1))
            at = last[ends]
            return np.where(at >= starts, values[at], np.nan)

        changed: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            if name not in ("flow", "edges_s", "goodput_bps"):
                changed[name] = (total if name in SUMS else level)(getattr(self, name))
        edges = np.concatenate([self.edges_s[:1], self.edges_s[1:][ends]])
        moved = total(self.goodput_bps * self.lengths_s)
        return replace(self, edges_s=edges, goodput_bps=moved / np.diff(edges), **changed)

    @property
    def middles_s(self) -> Floats:
        """Middle of each row's time."""
        found: Floats = (self.edges_s[1:] + self.edges_s[:-1]) / 2
        return found

    def moved_bytes(self, start_s: float, end_s: float) -> float:
        """Payload that moved between two times."""
        sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(self.goodput_bps) * self.lengths_s)])
        return float(np.diff(np.interp([start_s, end_s], self.edges_s, sums))[0]) / 8

    def at(self, edges_s: Floats) -> Evidence:
        """The same in other rows: levels of their middles, parts of the sums; NaN outside."""
        middles = (edges_s[1:] + edges_s[:-1]) / 2
        row = np.searchsorted(self.edges_s, middles) - 1
        is_there = (row >= 0) & (row < self.lengths_s.size)
        row = row.clip(0, self.lengths_s.size - 1)
        overlaps = (edges_s[1:] > self.edges_s[0]) & (edges_s[:-1] < self.edges_s[-1])

        def level(values: Floats) -> Floats:
            return np.where(is_there, values[row], np.nan)

        def part(values: Floats) -> Floats:
            sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(values))])
            parts = np.diff(np.interp(edges_s, self.edges_s, sums))
            return np.where(overlaps & np.isfinite(values[row]), parts, np.nan)

        changed: dict[str, Any] = {
            name: (part if name in SUMS else level)(getattr(self, name))
            for name in self.__dataclass_fields__
            if name not in ("flow", "edges_s", "goodput_bps")
        }
        moved = part(self.goodput_bps * self.lengths_s)
        return replace(self, edges_s=edges_s, goodput_bps=moved / np.diff(edges_s), **changed)

    @property
    def min_rtt_s(self) -> float:
        """Smallest RTT that the measurement shows; NaN if none."""
        told = self.flow.get("min_rtt_s")
        seen = self.rtt_s[self.rtt_s > 0]
        least = float(seen.min()) if seen.size else np.nan
        return least if not told else float(np.fmin(told, least))


def of(measurement: Measurement, flow: int) -> Evidence:
    """The evidence of the flow with this ``id``.

    Raises:
        UsageError: the measurement has no such flow, or too few samples of it.
    """
    import polars as pl

    known = {entry["id"]: entry for entry in measurement.summary["flows"]}
    if flow not in known:
        raise UsageError(f"flow {flow}; allowed: {', '.join(map(str, known))}")
    entry = known[flow]
    samples = measurement.flows.filter(pl.col("flow") == flow).sort("t_s")
    samples = samples.unique("t_s", keep="last", maintain_order=True)
    rates = measurement.goodput.filter(pl.col("flow") == flow).sort("t_s")
    times = samples["t_s"].to_numpy().astype(np.float64)
    start_s = float(entry.get("start_s") or 0.0)
    if times.size < (1 if times.size and start_s < times[0] else 2):
        raise UsageError(f"flow {flow}: {times.size} samples; allowed: two or more")
    segment = float(entry.get("segment_bytes") or STANDARD_BYTES)

    # ss leaves out what is zero, and prints busy, or delivery_rate, of all that have sent.
    zeros = _LEFT_OUT if "ss" in measurement.summary and entry["direction"] == "forward" else ()

    def column(name: str) -> Floats:
        least = 0.0 if name in zeros else np.nan
        found: Floats = samples[name].cast(pl.Float64).fill_null(least).to_numpy()
        return found

    first_s = start_s if start_s < times[0] else 2 * times[0] - times[1]
    edges = np.concatenate([[max(0.0, first_s)], times])
    if edges[0] >= edges[1]:  # A first sample at the start: it covers no time.
        edges, skip = times, 1
    else:
        skip = 0

    def level(name: str, factor: float = 1.0) -> Floats:
        return column(name)[skip:] * factor

    def gained(name: str) -> Floats:
        counter = column(name)
        before = counter[0] if skip else 0.0
        return np.maximum(np.diff(counter[skip:], prepend=before), 0.0)

    def first(*choices: Floats) -> Floats:
        result = choices[0].copy()
        for choice in choices[1:]:
            result = np.where(np.isnan(result), choice, result)
        return result

    inflight = first(level("inflight_bytes"), level("inflight_seg", segment))
    rtt = first(level("rtt_s"), level("srtt_s"))
    goodput = _goodput(
        edges,
        rates["t_s"].to_numpy(),
        rates["goodput_bps"].to_numpy(),
        gained("delivered_bytes"),
    )
    acks = gained("acks")
    if "capture" in measurement.summary:
        goodput = first(level("delivery_bps"), goodput)
        rtt = np.where(acks > 0, rtt, np.nan)  # Else it is an old one.
    return Evidence(
        flow=entry,
        edges_s=edges,
        goodput_bps=goodput,
        rtt_s=rtt,
        cwnd_bytes=level("cwnd_seg", segment),
        ssthresh_bytes=level("ssthresh_seg", segment),
        inflight_bytes=inflight,
        window_bytes=level("offered_window_bytes"),
        unsent_bytes=level("unsent_bytes"),
        pacing_bps=level("pacing_bps"),
        retransmits=gained("retransmits"),
        app_limited=level("app_limited"),
        busy_s=gained("busy_s"),
        rwnd_limited_s=gained("rwnd_limited_s"),
        sndbuf_limited_s=gained("sndbuf_limited_s"),
        acks=acks,
        ack_delay_s=level("ack_delay_s"),
        data_delay_s=level("data_delay_s"),
    )


def _goodput(edges: Floats, ends: Floats, rates: Floats, gained: Floats) -> Floats:
    """By the count of bytes where there is one, else the tool's rates in its own intervals."""
    counted = gained * 8 / np.diff(edges)
    if not np.isnan(counted).all() or not ends.size:
        return counted
    at = np.searchsorted(ends, edges[1:] - 1e-9).clip(0, ends.size - 1)
    told: Floats = rates[at].astype(np.float64)
    return told


def together(shown: Sequence[Evidence]) -> Evidence:
    """Parallel streams as one flow, at the times of the first: sums, and the mean RTT.

    Raises:
        UsageError: a stream ran for most of its time while the first did not.
    """
    first = shown[0]
    if len(shown) == 1:
        return first
    edges = first.edges_s
    for one in shown:
        moved = one.moved_bytes(float(edges[0]), float(edges[-1]))
        if moved < one.moved_bytes(-np.inf, np.inf) / 2:
            raise UsageError("the streams ran at different times; give one of them")
    every = [first, *(one.at(edges) for one in shown[1:])]
    ran = [
        (first.middles_s > one.edges_s[0]) & (first.middles_s < one.edges_s[-1]) for one in shown
    ]

    def total(name: str) -> Any:
        parts = [
            np.where(is_there | np.isfinite(values := getattr(one, name)), values, 0.0)
            for one, is_there in zip(every, ran, strict=True)
        ]
        return np.sum(parts, axis=0)

    summed: tuple[str, ...] = (
        "goodput_bps",
        "cwnd_bytes",
        "ssthresh_bytes",
        "inflight_bytes",
        "window_bytes",
        "unsent_bytes",
        "pacing_bps",
        "retransmits",
        "acks",
    )
    rtts = np.array([one.rtt_s for one in every])
    known = np.isfinite(rtts).sum(axis=0)
    rtt = np.where(known > 0, np.nansum(rtts, axis=0) / np.maximum(known, 1), np.nan)
    flows = [one.flow for one in shown]
    flow: dict[str, Any] = {**first.flow}
    for key in ("goodput_bps", "delivered_bytes", "written_bytes"):
        told = [one.get(key) for one in flows]
        flow[key] = None if None in told else sum(told)
    least = [one["min_rtt_s"] for one in flows if one.get("min_rtt_s")]
    flow |= {"min_rtt_s": min(least, default=None), "streams": len(shown)}
    return replace(first, flow=flow, rtt_s=rtt, **{name: total(name) for name in summed})
