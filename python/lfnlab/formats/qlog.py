"""Logs of QUIC connections in qlog (drafts 0.3 and 0.4) as tables of lfnlab, and runs as qlog.

Contained (JSON) and sequential (JSON-SEQ, NDJSON) files. The names are those of
draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab.errors import StoreError, UsageError
from lfnlab.formats.measurement import Measurement, content
from lfnlab.results.output import MARK, replacing
from lfnlab.results.tables import code

if TYPE_CHECKING:
    import polars as pl

    from lfnlab.results.runs import Run

MOST_SAMPLES = 1_000_000
"""Of all connections of a file."""
_MOST_SENT = 200_000
"""Packets in flight that are remembered."""
_MOST_LINE = 4 << 20
_MOST_NUMBER = 1e15
_METRICS = ("metrics_updated", "recovery_metrics_updated")
_PARAMETERS = ("parameters_set", "recovery_parameters_set")
_COLUMNS: dict[str, tuple[str, float]] = {
    "smoothed_rtt": ("srtt_s", 1e-3),
    "latest_rtt": ("rtt_s", 1e-3),
    "min_rtt": ("min_rtt_s", 1e-3),
    "bytes_in_flight": ("inflight_bytes", 1.0),
    "packets_in_flight": ("inflight_seg", 1.0),
    "pacing_rate": ("pacing_bps", 1.0),
    "congestion_window": ("cwnd_bytes", 1.0),
    "cwnd": ("cwnd_bytes", 1.0),
    "ssthresh": ("ssthresh_bytes", 1.0),
}
"""Metrics, the columns that they become, and the factor to their units. aioquic writes cwnd."""
_ROWS = (
    "t_s",
    *dict.fromkeys(name for name, _ in _COLUMNS.values()),
    *("delivered_bytes", "received_bytes", "retransmits", "state", "app_limited"),
)
_WRITTEN: dict[str, tuple[str, float]] = {
    "srtt_s": ("smoothed_rtt", 1e3),
    "rtt_s": ("latest_rtt", 1e3),
    "pacing_bps": ("pacing_rate", 1.0),
}
_WINDOWS = {
    "cwnd_seg": "congestion_window",
    "ssthresh_seg": "ssthresh",
    "inflight_seg": "bytes_in_flight",
}
"""Columns of a run and the metrics that they become; windows in segments become bytes."""
_STATES = {"recovery": "recovery", "slow_start": "open", "congestion_avoidance": "open"}
_SENDING = ("cwnd_bytes", "ssthresh_bytes", "inflight_bytes", "inflight_seg", "pacing_bps")


def read(file: Path) -> Measurement:
    """Read the traces of a qlog file; each is a connection and a flow.

    A sample is an event of recovery metrics; a metric that it does not repeat keeps its value.
    ``delivered_bytes`` counts the stream data of acknowledged packets, ``retransmits`` packets that
    were declared lost. Of an end that received more stream data than was acknowledged to it, the
    flow is reverse and counts what it received. Windows are in segments of 1 packet of the largest
    size that was sent, or told as ``max_datagram_size``.

    Raises:
        UsageError: naming file and place of what is no qlog; it has no recovery metrics.
        StoreError: when the file cannot be read.
    """
    digest = hashlib.sha256()
    notes: list[str] = []
    connections: list[_Connection] = []
    for place, head, event in _events(file, digest, notes):
        if head is not None:
            connections.append(_Connection(head))
        elif connections:
            try:
                connections[-1].take(event)
            except (AttributeError, KeyError, TypeError, ValueError):
                shown = json.dumps(event)[:60]
                raise UsageError(f"{file}{place}: no event of qlog: {shown}") from None
            if sum(len(one.columns["t_s"]) for one in connections) > MOST_SAMPLES:
                raise UsageError(f"{file}{place}: more than {MOST_SAMPLES:,} samples")
    connections = [one for one in connections if one.columns["t_s"]]
    for one in connections:
        one.take_last()
    if not connections:
        raise UsageError(f"{file}: no event with metrics of recovery; allowed: qlog 0.3 or 0.4")
    return _measurement(file, digest.digest(), connections, notes)


def _measurement(
    file: Path, digest: bytes, connections: list[_Connection], notes: list[str]
) -> Measurement:
    import polars as pl

    parts = [one.flow(number) for number, one in enumerate(connections)]
    return Measurement.of(
        file,
        digest,
        pl.concat([table for table, _, _ in parts]),
        pl.concat([goodput for _, goodput, _ in parts]),
        [flow for _, _, flow in parts],
        notes=notes,
        qlog={"versions": sorted({one.version for one in connections})},
    )


_Event = tuple[str, "dict[str, Any] | None", Any]
"""Where it stands, and the head of a trace or an event."""


def _events(file: Path, digest: Any, notes: list[str]) -> Iterator[_Event]:
    try:
        with file.open("rb") as opened:
            first = opened.readline(_MOST_LINE)
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from None
    if first.startswith(b"\x1e") or _is_head(first):
        yield from _sequence(file, digest, notes)
        return
    raw = content(file)
    digest.update(raw)
    try:
        root = json.loads(raw)
    except (ValueError, RecursionError) as error:
        root = _before_cut(raw)
        if root is None:
            said = "no JSON" if not isinstance(error, json.JSONDecodeError) else error.msg
            raise UsageError(f"{file}: {said}; allowed: qlog 0.3 or 0.4") from None
        notes.append("The file is cut: the events before are read.")
    traces = root.get("traces") if isinstance(root, dict) else None
    if not isinstance(traces, list) or not isinstance(root, dict):
        raise UsageError(f"{file}: no qlog: it has no traces; allowed: qlog 0.3 or 0.4")
    for number, trace in enumerate(traces):
        place = f": traces[{number}]"
        events = trace.get("events") if isinstance(trace, dict) else None
        if not isinstance(events, list):
            raise UsageError(f"{file}{place}.events: missing; allowed: a list of events")
        yield place, {**trace, "qlog_version": root.get("qlog_version")}, None
        for at, event in enumerate(events):
            yield f"{place}.events[{at}]", None, event


def _is_head(line: bytes) -> bool:
    try:
        said = json.loads(line.strip(b"\x1e\r\n"))
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and "trace" in said


def _sequence(file: Path, digest: Any, notes: list[str]) -> Iterator[_Event]:
    with file.open("rb") as opened:
        number = 0
        while line := opened.readline(_MOST_LINE + 1):
            number += 1
            digest.update(line)
            if len(line) > _MOST_LINE:
                raise UsageError(f"{file}:{number}: a line of more than {_MOST_LINE:,} bytes")
            if not (text := line.strip(b"\x1e\r\n ")):
                continue
            try:
                said = json.loads(text)
            except (ValueError, RecursionError):
                if not line.endswith(b"\n"):
                    notes.append(f"The file is cut in line {number}: the events before are read.")
                    return
                raise UsageError(f"{file}:{number}: no JSON; allowed: an event of qlog") from None
            if isinstance(said, dict) and isinstance(said.get("trace"), dict):
                yield (
                    f":{number}",
                    {**said["trace"], "qlog_version": said.get("qlog_version")},
                    None,
                )
            else:
                yield f":{number}", None, said


def _before_cut(raw: bytes) -> dict[str, Any] | None:
    """The first trace of a file that ends too early; None if no event of it is whole."""
    text = raw.decode("utf-8", "replace")
    if (begin := re.search(r'"events"\s*:\s*\[', text)) is None:
        return None
    decode = json.JSONDecoder().raw_decode
    events: list[Any] = []
    place = begin.end()
    try:
        while True:
            while text[place] in " \t\r\n,":
                place += 1
            event, place = decode(text, place)
            events.append(event)
    except (ValueError, IndexError, RecursionError):
        # A fault in the middle is no cut.
        if not events or len(text) - place > _MOST_LINE or '"events"' in text[place:]:
            return None
    said = re.search(r'"time_format"\s*:\s*"(\w+)"', text[: begin.start()])
    version = re.search(r'"qlog_version"\s*:\s*"([\w.-]{1,20})"', text[: begin.start()])
    common = {"time_format": said[1]} if said else {}
    trace = {"common_fields": common, "events": events}
    return {"qlog_version": version[1] if version else None, "traces": [trace]}


def _number(value: Any) -> float:
    """A number of an event.

    Raises:
        ValueError: it is none, or impossible.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    if not 0 <= value <= _MOST_NUMBER:
        raise ValueError
    return float(value)


class _Connection:
    """A trace as it is read."""

    def __init__(self, head: Mapping[str, Any]) -> None:
        common = head.get("common_fields")
        kind = common.get("time_format") if isinstance(common, dict) else None
        self._is_delta = kind in ("delta", "relative_to_previous_event")
        self.version = str(head.get("qlog_version") or "unknown")[:20]
        self._now_ms = 0.0
        self._first_ms: float | None = None
        self._known: dict[str, float] = {}
        self._sent: dict[int, int] = {}
        self._acked = self._received = self._lost = 0
        self._largest = 0
        self._has_packets = False
        self.columns: dict[str, array[float]] = {name: array("d") for name in _ROWS}

    def take(self, event: dict[str, Any]) -> None:
        time_ms = _number(event["time"])
        self._now_ms = max(self._now_ms, self._now_ms + time_ms if self._is_delta else time_ms)
        if self._first_ms is None:
            self._first_ms = self._now_ms
        name = event["name"].rpartition(":")[2]
        data = event.get("data") or {}
        if name in _METRICS:
            self._metrics(data)
        elif name in _PARAMETERS:
            self._largest = max(self._largest, int(_number(data.get("max_datagram_size") or 0)))
        elif name == "packet_sent":
            self._packet_sent(data)
        elif name == "packet_received":
            self._packet_received(data)
        elif name == "packet_lost":
            self._lost += 1
            self._sent.pop(int(_number(data.get("header", {}).get("packet_number", 0))), None)
        elif name == "congestion_state_updated":
            self._state(str(data["new"]).lower())

    def _state(self, state: str) -> None:
        self._known["app_limited"] = float(state == "application_limited")
        self._known.pop("state", None)
        if state in _STATES:
            self._known["state"] = float(code("flows", "state", _STATES[state]))

    def _metrics(self, data: dict[str, Any]) -> None:
        for key, (name, factor) in _COLUMNS.items():
            if data.get(key) is not None:
                self._known[name] = _number(data[key]) * factor
        row = {
            "t_s": (self._now_ms - (self._first_ms or 0.0)) * 1e-3,
            **self._known,
            "retransmits": float(self._lost),
        }
        if self._has_packets:
            row |= {"delivered_bytes": float(self._acked), "received_bytes": float(self._received)}
        times = self.columns["t_s"]
        if times and times[-1] >= row["t_s"]:
            for values in self.columns.values():
                values.pop()
        for name, values in self.columns.items():
            values.append(row.get(name, math.nan))

    def take_last(self) -> None:
        """Add a sample of the end: packets may have come since the last metrics."""
        self._metrics({})

    def _packet_sent(self, data: dict[str, Any]) -> None:
        header = data["header"]
        length = data.get("raw", {}).get("length") or header.get("packet_size") or 0
        self._largest = max(self._largest, int(_number(length)))
        if header.get("packet_type") not in ("1RTT", "onertt", None):
            return
        self._has_packets = True
        self._sent[int(_number(header["packet_number"]))] = _stream_bytes(data)
        if len(self._sent) > _MOST_SENT:
            del self._sent[next(iter(self._sent))]

    def _packet_received(self, data: dict[str, Any]) -> None:
        if data["header"].get("packet_type") not in ("1RTT", "onertt", None):
            return
        self._has_packets = True
        self._received += _stream_bytes(data)
        for frame in data.get("frames") or ():
            if frame.get("frame_type") == "ack":
                for numbers in frame.get("acked_ranges") or ():
                    low, high = int(_number(numbers[0])), int(_number(numbers[-1]))
                    self._acknowledge(low, high)

    def _acknowledge(self, low: int, high: int) -> None:
        if high - low > len(self._sent):
            numbers = [number for number in self._sent if low <= number <= high]
        else:
            numbers = [number for number in range(low, high + 1) if number in self._sent]
        for number in numbers:
            self._acked += self._sent.pop(number)

    def flow(self, number: int) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]:
        """Samples, goodputs and summary."""
        import polars as pl

        raw = pl.DataFrame(
            {name: pl.Series(values, dtype=pl.Float64) for name, values in self.columns.items()}
        ).fill_nan(None)
        forth = self._acked >= self._received
        counted = "delivered_bytes" if forth else "received_bytes"
        if not forth:
            raw = raw.with_columns(
                pl.lit(None, pl.Float64).alias(name)
                for name in (*_SENDING, "retransmits", "state", "app_limited")
            )
        segment = self._largest or None
        per_segment = 1.0 / segment if segment else math.nan
        table = raw.select(
            *("t_s", "srtt_s", "rtt_s", "min_rtt_s", "inflight_bytes", "inflight_seg"),
            *("pacing_bps", "retransmits", "state", "app_limited"),
            flow=pl.lit(number, pl.UInt32),
            delivered_bytes=counted,
            cwnd_seg=(pl.col("cwnd_bytes") * per_segment).fill_nan(None),
            ssthresh_seg=(pl.col("ssthresh_bytes") * per_segment).fill_nan(None),
        )
        known = table.select("t_s", "flow", "delivered_bytes").drop_nulls()
        rate = pl.col("delivered_bytes").diff() * 8 / pl.col("t_s").diff()
        goodput = known.select("t_s", "flow", goodput_bps=rate).drop_nulls()
        seconds = known["t_s"][-1] if known.height else 0.0
        delivered = int(known["delivered_bytes"][-1]) if known.height else None
        windows = table["cwnd_seg"].drop_nulls()
        return (
            table,
            goodput,
            {
                "id": number,
                "law": "quic",
                "direction": "forward" if forth else "reverse",
                "goodput_bps": delivered * 8 / seconds
                if delivered is not None and seconds
                else None,
                "delivered_bytes": delivered,
                "retransmits": self._lost if forth else None,
                "srtt_s": _last(table["srtt_s"]),
                "min_rtt_s": _last(table["min_rtt_s"]),
                "mean_cwnd_segments": windows.mean(),
                "min_cwnd_segments": windows.min(),
                "max_cwnd_segments": windows.max(),
                "segment_bytes": segment,
            },
        )


def _last(values: pl.Series) -> float | None:
    told = values.drop_nulls()
    return float(told[-1]) if told.len() else None


def _stream_bytes(data: dict[str, Any]) -> int:
    """Stream data of a packet."""
    frames = data.get("frames") or ()
    return sum(
        int(_number(frame.get("length") or frame.get("raw", {}).get("payload_length") or 0))
        for frame in frames
        if frame.get("frame_type") == "stream"
    )


def write(file: Path, run: Run) -> int:
    """Write the samples of a run's flows as qlog 0.3: a trace a flow, with events of recovery.

    Windows are in bytes of data. No event is of a packet, so tools that count packets show none.

    Returns:
        The number of samples.

    Raises:
        StoreError: the file is another program's, or cannot be written.
        UsageError: the run kept no samples.
    """
    table = run.table("flows")
    if not table.height:
        raise UsageError(f"{run.path}: no samples of its flows; set sample in the scenario")
    traces = []
    for flow in run.summary["flows"]:
        own = table.filter(table["flow"] == flow["id"])
        title = f"flow {flow['id']}: {flow['law']}"
        events = [*_written(own.iter_rows(named=True), flow["segment_bytes"])]
        common = {"time_format": "relative", "reference_time": 0}
        point = {"name": title, "type": "server"}
        traces.append(
            {"title": title, "vantage_point": point, "common_fields": common, "events": events}
        )
    head = {"qlog_version": "0.3", "qlog_format": "JSON", "description": MARK}
    with replacing(file) as opened:
        opened.write(json.dumps(head | {"traces": traces}, separators=(",", ":")).encode())
    return table.height


def _state(row: Mapping[str, Any], recovery: int) -> str | None:
    """The congestion state of a sample by its name in qlog; None where its window is not known."""
    if (row["state"] or 0) >= recovery:
        return "recovery"
    if row["cwnd_seg"] is None:
        return None
    is_slow = row["cwnd_seg"] < (row["ssthresh_seg"] or math.inf)
    return "slow_start" if is_slow else "congestion_avoidance"


def _written(
    rows: Iterable[Mapping[str, Any]], segment_bytes: float | None
) -> Iterator[dict[str, Any]]:
    """The events of a flow's samples.

    Metrics that are not known, or have no end, are left out, as are windows in segments of unknown
    size.
    """
    metrics = dict(_WRITTEN)
    if segment_bytes:
        metrics |= {name: (to, segment_bytes) for name, to in _WINDOWS.items()}
    recovery = code("flows", "state", "recovery")
    state: str | None = None

    def event(t_s: float, name: str, data: dict[str, Any]) -> dict[str, Any]:
        return {"time": round(t_s * 1e3, 6), "name": f"recovery:{name}", "data": data}

    told = {"max_datagram_size": int(segment_bytes)} if segment_bytes else {}
    yield event(0.0, "parameters_set", told)
    for row in rows:
        found = _state(row, recovery)
        if found not in (None, state):
            state = found
            yield event(row["t_s"], "congestion_state_updated", {"new": state})
        known = {to: (row[name], factor) for name, (to, factor) in metrics.items()}
        yield event(
            row["t_s"],
            "metrics_updated",
            {
                name: round(value * factor, 3)
                for name, (value, factor) in known.items()
                if value is not None and (0.0 < value < math.inf or name == "bytes_in_flight")
            },
        )
