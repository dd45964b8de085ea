"""Measurements of iperf3 (``iperf3 -J``) as tables of lfnlab, so that both are drawn together.

A measurement is stored as one run is: ``flows.parquet`` and ``summary.json`` with the columns, keys
and units of ``docs/results.md``, null where iperf3 does not tell. The other tables are missing, but
``goodput.parquet`` holds the goodput in iperf3's own intervals, which are no whole seconds.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from lfnlab import metrics
from lfnlab.errors import StoreError, UsageError
from lfnlab.results import provenance
from lfnlab.results.store import LAYOUT_FILE, recorded, refuse_foreign
from lfnlab.results.tables import frame
from lfnlab.statistics import finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

# What a segment's payload is short of the path's MTU: IPv4 or IPv6 and TCP, with timestamps or not.
_HEADERS_BYTES = (52, 40, 72, 60)
_GOODPUT = {"t_s": pl.Float64, "flow": pl.UInt32, "goodput_bps": pl.Float64}


@dataclass(frozen=True)
class Measurement:
    """The tables ``flows`` and ``goodput``, and the object of ``summary.json``."""

    flows: pl.DataFrame
    goodput: pl.DataFrame
    summary: dict[str, Any]


def read(file: Path) -> Measurement:
    """Read what ``iperf3 -J`` wrote, at the client or at the server.

    TCP or UDP, any number of streams, either way or both. Intervals that were omitted (``-O``) are
    left out. Bytes count from the first interval that was not; a sender's are those that the
    application wrote, so they run ahead of what was acknowledged by the send buffer.

    Raises:
        UsageError: naming file and key of what is not as iperf3 writes it.
        StoreError: when the file cannot be read.
    """
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from None
    root = _parsed(file, raw)
    if "error" in root.value:
        raise UsageError(f"{file}: iperf3 ended with an error: {root.value['error']}")
    start, end = root["start"], root["end"]
    test = start["test_start"]
    protocol = test["protocol"].text()
    if protocol not in ("TCP", "UDP"):
        raise UsageError(f"{test['protocol'].path}: {protocol}; allowed: TCP, UDP")
    at_client = "accepted_connection" not in start.value
    # What versions before 3.7 leave out.
    sends = at_client != bool(test.value.get("reverse"))
    results = _results(end)
    flows, goodput, summaries = [], [], []
    for number, ticks in enumerate(_ticks(root)):
        stream = _Stream(number, ticks, bool(ticks[0].value.get("sender", sends)))
        result = results.get(stream.socket, {})
        mss_bytes = _mss_bytes(stream, start)
        flows += stream.rows(mss_bytes)
        goodput += stream.goodput()
        summaries.append(
            {
                "id": stream.id,
                "law": _law(protocol, end),
                "direction": "forward" if stream.sends == at_client else "reverse",
                **stream.summary(result, mss_bytes),
            }
        )
    goodputs = [flow["goodput_bps"] for flow in summaries]
    covs = [flow["cov"] for flow in summaries if flow["cov"] is not None]
    summary = {
        "name": file.stem,
        "hash": hashlib.sha256(raw).hexdigest()[:16],
        "seed": None,
        "sim_s": max(row["t_s"] for row in flows),
        "warmup_s": 0.0,
        "jain": metrics.jain(goodputs) if len(goodputs) > 1 and any(goodputs) else None,
        "cov": math.fsum(covs) / len(covs) if covs else None,
        "flows": summaries,
        "links": [],
        "background": None,
        "iperf3": {
            "version": start.value.get("version"),
            "system": start.value.get("system_info"),
            "time": start.value.get("timestamp", {}).get("time"),
            "omitted_s": test.value.get("omit", 0),
        },
    }
    return Measurement(
        frame("flows", flows).sort("t_s", "flow"),
        pl.DataFrame(goodput, _GOODPUT).sort("t_s", "flow"),
        summary,
    )


def store(measurement: Measurement, directory: Path) -> None:
    """Write the measurement into a directory; it replaces an older measurement.

    Raises:
        UsageError: when the directory holds an experiment.
        StoreError: when it holds other files, or cannot be written.
    """
    if (directory / "experiment.json").exists() or (directory / LAYOUT_FILE).exists():
        raise UsageError(f"--out: {directory} holds an experiment; choose another directory")
    ours = {"flows.parquet", "goodput.parquet", "summary.json", "provenance.json", "figures"}
    refuse_foreign(directory, ours)
    # Measurements alone have a table of goodput, also damaged ones.
    if (directory / "summary.json").exists() and not (directory / "goodput.parquet").exists():
        raise UsageError(f"--out: {directory} holds another result; choose another directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        files = {
            "flows.parquet": _parquet(measurement.flows),
            "goodput.parquet": _parquet(measurement.goodput),
            "summary.json": json.dumps(measurement.summary, indent=1, allow_nan=False).encode(),
        }
        said = {
            **provenance.machine(),
            "finished": provenance.now(),
            "hash": measurement.summary["hash"],
            "command": provenance.command(),
        }
        # Last: what is cut before is found damaged.
        files["provenance.json"] = recorded(said, files)
        for name, data in files.items():
            fresh = directory / f".{name}.{os.getpid()}"
            fresh.write_bytes(data)
            fresh.replace(directory / name)
    except OSError as error:
        raise StoreError(f"cannot write results to {directory}: {error.strerror}") from None


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


@dataclass(frozen=True)
class _Node:
    """A value in the file, and where it is: "x.json: intervals[0].streams[1].bytes"."""

    value: Any
    path: str

    def __getitem__(self, key: str) -> _Node:
        path = f"{self.path}{key}" if self.path.endswith(": ") else f"{self.path}.{key}"
        if key not in self.object():
            raise UsageError(f"{path}: missing; allowed: the output of iperf3 -J")
        return _Node(self.value[key], path)

    def object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self._wrong("an object")
        return self.value

    def items(self) -> Iterator[_Node]:
        if not isinstance(self.value, list):
            raise self._wrong("a list")
        return (_Node(item, f"{self.path}[{i}]") for i, item in enumerate(self.value))

    def number(self) -> float:
        good = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not good or not math.isfinite(self.value) or self.value < 0:
            raise self._wrong("a number of at least 0")
        return float(self.value)

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self._wrong("text")
        return self.value

    def get(self, key: str) -> float | None:
        """A number that not every version or side of iperf3 writes."""
        return self[key].number() if key in self.value else None

    def _wrong(self, allowed: str) -> UsageError:
        return UsageError(f"{self.path}: {json.dumps(self.value)[:60]}; allowed: {allowed}")


def _parsed(file: Path, raw: bytes) -> _Node:
    try:
        value = json.loads(raw.decode())
    except json.JSONDecodeError as error:
        why = "one object is allowed" if error.msg == "Extra data" else error.msg
        raise UsageError(
            f"{file}:{error.lineno}: not JSON, or incomplete: {why}; write it with iperf3 -J"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: not JSON: no UTF-8 text; write it with iperf3 -J") from None
    root = _Node(value, f"{file}: ")
    if not isinstance(value, dict):
        raise UsageError(f"{file}: not an object; write it with iperf3 -J")
    return root


def _ticks(root: _Node) -> list[list[_Node]]:
    """The intervals of each stream, omitted ones left out, streams as they come."""
    by_socket: dict[float, list[_Node]] = {}
    for interval in root["intervals"].items():
        for tick in interval["streams"].items():
            if not tick["omitted"].value:
                by_socket.setdefault(tick["socket"].number(), []).append(tick)
    if not by_socket:
        raise UsageError(f"{root['intervals'].path}: no interval was measured")
    return list(by_socket.values())


def _results(end: _Node) -> dict[float, dict[str, _Node]]:
    """Totals of each stream by start time and side: sender, receiver or UDP."""
    found: dict[float, dict[str, _Node]] = {}
    for stream in end["streams"].items():
        for side in stream.object():
            found.setdefault(stream[side]["socket"].number(), {})[side] = stream[side]
    return found


@dataclass(frozen=True)
class _Stream:
    """One stream: its number, its intervals in order, whether the side that wrote them sends."""

    id: int
    ticks: Sequence[_Node]
    sends: bool

    @property
    def socket(self) -> float:
        return self.ticks[0]["socket"].number()

    def _spans(self) -> Iterator[tuple[float, float, _Node]]:
        """Begin and end of each interval in seconds.

        An interval begins where the one before ended: after omitted ones iperf3 3.12 gives a wrong
        ``start``, ``seconds`` and rate.
        """
        last_s = 0.0
        for tick in self.ticks:
            end = tick["end"]
            if end.number() <= last_s:
                raise UsageError(
                    f"{end.path}: {end.value}; allowed: more than {last_s:g}, the last"
                )
            yield last_s, end.number(), tick
            last_s = end.number()

    def goodput(self) -> list[dict[str, Any]]:
        return [
            {
                "t_s": end_s,
                "flow": self.id,
                "goodput_bps": tick["bytes"].number() * 8 / (end_s - begin_s),
            }
            for begin_s, end_s, tick in self._spans()
        ]

    def rows(self, mss_bytes: float | None) -> list[dict[str, Any]]:
        rows, total = [], Counter[str]()
        for _, end_s, tick in self._spans():
            total["bytes"] += int(tick["bytes"].number())
            retransmits = tick.get("retransmits")
            total["retransmits"] += int(retransmits or 0)
            cwnd_bytes, rtt_us = tick.get("snd_cwnd"), tick.get("rtt")
            row = {
                "t_s": end_s,
                "flow": self.id,
                "cwnd_seg": cwnd_bytes / mss_bytes if cwnd_bytes and mss_bytes else None,
                "srtt_s": rtt_us * 1e-6 if rtt_us else None,
                "delivered_bytes": total["bytes"],
                "retransmits": None if retransmits is None else total["retransmits"],
            }
            rows.append(row)
        return rows

    def summary(self, result: dict[str, _Node], mss_bytes: float | None) -> dict[str, Any]:
        """Keys of ``flows[]`` that follow from the intervals and from iperf3's own results."""
        rows = self.rows(mss_bytes)
        goodputs = [row["goodput_bps"] for row in self.goodput()]
        last = rows[-1]
        # What the receiver says has arrived; a server does not learn what the client does.
        received = result.get("receiver")
        if received is not None and received["bytes"].number() > 0:
            size_bytes, seconds = received["bytes"].number(), received["end"].number()
        else:
            size_bytes, seconds = float(last["delivered_bytes"]), last["t_s"]
        summary = {
            "start_s": 0.0,
            "goodput_bps": size_bytes * 8 / seconds if seconds else 0.0,
            "delivered_bytes": int(size_bytes),
            "retransmits": last["retransmits"],
            "cov": finite(metrics.cov(goodputs)) if self._in_seconds() else None,
            "completion_s": None,
        }
        sender = result.get("sender")
        min_rtt_us = None if sender is None else sender.get("min_rtt")
        windows = [row["cwnd_seg"] for row in rows if row["cwnd_seg"] is not None]
        summary |= {
            "rtt_s": None,
            "srtt_s": last["srtt_s"],
            "min_rtt_s": min_rtt_us * 1e-6 if min_rtt_us else None,
            "mean_cwnd_segments": math.fsum(windows) / len(windows) if windows else None,
            "min_cwnd_segments": min(windows, default=None),
            "max_cwnd_segments": max(windows, default=None),
        }
        if (udp := result.get("udp")) is not None:
            lost, packets = udp["lost_packets"].number(), udp["packets"].number()
            arrived = 1.0 - lost / packets if packets else 0.0
            summary |= {
                "lost_packets": int(lost),
                "packets": int(packets),
                "jitter_s": udp["jitter_ms"].number() * 1e-3,
            }
            if self.sends:  # a sender counts what it sent
                summary["goodput_bps"] *= arrived
                summary["delivered_bytes"] = round(summary["delivered_bytes"] * arrived)
        return summary

    def _in_seconds(self) -> bool:
        """Whether the intervals are bins of 1 s, those of the coefficient of variation."""
        spans = [end_s - begin_s for begin_s, end_s, _ in self._spans()]
        return len(spans) > 1 and all(abs(span - 1.0) < 0.05 for span in spans)


def _mss_bytes(stream: _Stream, start: _Node) -> float | None:
    """The kernel's segment size, or None: the windows that iperf3 writes are multiples of it.

    It is the MTU of the path less the headers; ``tcp_mss_default``, which iperf3 also writes, is
    that of the control connection when it began.
    """
    windows = [cwnd for tick in stream.ticks if (cwnd := tick.get("snd_cwnd"))]
    mtu_bytes = stream.ticks[-1].get("pmtu")
    guesses = [] if not mtu_bytes else [mtu_bytes - headers for headers in _HEADERS_BYTES]
    guesses += [size for key in ("tcp_mss", "tcp_mss_default") if (size := start.get(key))]
    return next((g for g in guesses if g > 0 and all(cwnd % g == 0 for cwnd in windows)), None)


def _law(protocol: str, end: _Node) -> str:
    """The sender's law as Linux names it; "udp" for UDP, "tcp" where iperf3 does not tell.

    A server's file names only its own socket's law, and that of a test both ways one of two.
    """
    if protocol == "UDP":
        return "udp"
    return end["sender_tcp_congestion"].text() if "sender_tcp_congestion" in end.value else "tcp"
