"""Measurements of iperf3 (``-J``, ``--json-stream``) as tables of lfnlab, to draw both together.

Values that iperf3 does not report are null; a zero that it reports is 0. Goodput is in iperf3's own
intervals, which are no whole seconds.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lfnlab import metrics
from lfnlab.errors import UsageError
from lfnlab.formats.measurement import Measurement, content
from lfnlab.statistics import finite

# What a segment's payload is short of the path's MTU: IPv4 or IPv6 and TCP, with timestamps or not.
_HEADERS_BYTES = (52, 40, 72, 60)
_MOST_PARTS = 2_000_000
"""Objects and lists in it: more take gigabytes of memory."""
_MOST_NUMBER = 1e18
"""Of what is counted: the tables have 64 bits."""
_LEAST_S = 5e-7
"""iperf3 tells times in microseconds."""
_INTERVAL_S = 1.0
"""iperf3's own choice."""


def read(file: Path) -> Measurement:
    """Read what ``iperf3 -J`` or ``iperf3 --json-stream`` wrote, at the client or at the server.

    TCP or UDP, any number of streams, either way or both. Intervals that were omitted (``-O``) are
    left out. The summary's goodput is of what the receiver says has arrived, null where the file
    does not tell, as at a server that sends. Bytes of the tables count from the first interval that
    was not omitted; a sender's are those that the application wrote, so they run ahead of what was
    acknowledged by the send buffer. Of a file that is cut, and of a test that ended with an error,
    the whole intervals are read; ``notes`` of the summary says so, and there are no totals.

    Raises:
        UsageError: naming file and key of what is not as iperf3 writes it; the file is too large.
        StoreError: when the file cannot be read.
    """
    raw = content(file)
    root, notes = _parsed(file, raw)
    error = json.dumps(root.object().get("error")).strip('"')[:200]
    if "error" in root.object():
        if not root.object().get("intervals"):
            raise UsageError(f"{file}: iperf3 ended with an error: {error}")
        notes.append("iperf3 ended with an error: its intervals are read, and it has no totals.")
    start, end = root["start"], _Node({"streams": []}, root.path) if notes else root["end"]
    test = start["test_start"]
    protocol = test["protocol"].word()
    if protocol not in ("TCP", "UDP"):
        raise UsageError(f"{test['protocol'].path}: {protocol}; allowed: TCP, UDP")
    at_client = "accepted_connection" not in start.object()
    # What versions before 3.7 leave out.
    sends = at_client != bool(test.object().get("reverse"))
    law = _law(protocol, end)
    results = _results(end)
    streams = []
    for number, (socket, ticks) in enumerate(_ticks(root, results, sends).items()):
        begin_s = 0.0 if test.get("omit") else ticks[0].get("start") or 0.0
        is_sent = bool(ticks[0].object().get("sender", sends))
        stream = _Stream(number, ticks, is_sent, at_client, begin_s)
        streams.append((stream, results.get(socket, {})))
    flows, goodput, summaries = [], [], []
    for stream, result in streams:
        mss_bytes = _mss_bytes(stream, start)
        flows += stream.rows(mss_bytes)
        goodput += stream.goodput()
        summary = stream.summary(result, mss_bytes)
        if "udp" in result:
            summary |= _datagrams(stream, result["udp"], end, test, [r for _, r in streams])
        direction = "forward" if stream.sends == at_client else "reverse"
        summaries.append({"id": stream.id, "law": law, "direction": direction, **summary})
    said = {
        "version": _text(start.object().get("version")),
        "system": _text(start.object().get("system_info")),
        "time": _text(start["timestamp"].object().get("time"))
        if "timestamp" in start.object()
        else None,
        "error": error if "error" in root.object() else None,
        "omitted_s": test.get("omit") or 0.0,
        "target_bps": start.get("target_bitrate") or test.get("target_bitrate") or None,
        "socket_buffer_bytes": start.get("sock_bufsize") or None,
        "send_buffer_bytes": start.get("sndbuf_actual") or None,
    }
    return Measurement.of(file, raw, flows, goodput, summaries, notes=notes, iperf3=said)


@dataclass(frozen=True)
class _Node:
    """A value in the file, and where it is: "x.json: intervals[0].streams[1].bytes"."""

    value: Any
    path: str

    def __getitem__(self, key: str) -> _Node:
        path = f"{self.path}{key}" if self.path.endswith(": ") else f"{self.path}.{key}"
        if key not in self.object():
            raise UsageError(f"{path}: missing; allowed: the output of one test of iperf3 -J")
        return _Node(self.value[key], path)

    def object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self._wrong("an object")
        return self.value

    def items(self) -> Iterator[_Node]:
        if not isinstance(self.value, list):
            raise self._wrong("a list")
        return (_Node(item, f"{self.path}[{i}]") for i, item in enumerate(self.value))

    def number(self, least: float = 0.0) -> float:
        good = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not good or not least <= self.value <= _MOST_NUMBER:
            bound = "a number" if least < 0 else "a number of at least 0"
            raise self._wrong(f"{bound}, at most {_MOST_NUMBER:g}")
        return float(self.value)

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self._wrong("text")
        return self.value

    def word(self) -> str:
        """A name that can be printed as it is."""
        if not re.fullmatch(r"[\w.:+-]{1,32}", self.text(), re.ASCII):
            raise self._wrong("a name of up to 32 letters, digits, _ . : + -")
        return self.text()

    def get(self, key: str, least: float = 0.0) -> float | None:
        """A number that not every version or side of iperf3 writes."""
        return self[key].number(least) if key in self.object() else None

    def told(self, key: str) -> float | None:
        """A number that iperf3 writes as -1 where the system does not tell it."""
        value = self.get(key, -1.0)
        return None if value is None or value < 0 else value

    def _wrong(self, allowed: str) -> UsageError:
        return UsageError(f"{self.path}: {json.dumps(self.value)[:60]}; allowed: {allowed}")


def _text(value: object) -> str | None:
    """A word of iperf3 about itself, if it is text."""
    return value[:200] if isinstance(value, str) else None


def _parsed(file: Path, raw: bytes) -> tuple[_Node, list[str]]:
    """The object that iperf3 wrote, and sentences on what is missing from a file that is cut."""
    hint = "write it with iperf3 -J"
    if raw.count(b"{") + raw.count(b"[") > _MOST_PARTS:
        raise UsageError(f"{file}: more than {_MOST_PARTS:,} objects and lists; {hint}")
    notes: list[str] = []
    try:
        text = raw.decode(json.detect_encoding(raw), "surrogatepass").removeprefix("\ufeff")
        first = text.lstrip().partition("\n")[0]
        if re.match(r'\s*\{\s*"event"\s*:', first):
            value, notes = _events(file, text)
        else:
            value = json.loads(text)
    except json.JSONDecodeError as error:
        found = _before_cut(text, error.pos)
        if found is None:
            why = "one object is allowed" if error.msg == "Extra data" else error.msg
            where = f"{file}:{error.lineno}"
            raise UsageError(f"{where}: not JSON, or incomplete: {why}; {hint}") from None
        value, notes = found, [_cut(error.lineno)]
    except UnicodeDecodeError:
        raise UsageError(f"{file}: not JSON: no UTF-8 text; {hint}") from None
    except RecursionError:
        raise UsageError(f"{file}: lists within lists, too deep to read; {hint}") from None
    except UsageError:
        raise
    except ValueError:  # Python reads up to 4300 digits
        raise UsageError(f"{file}: a number with thousands of digits; {hint}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{file}: not an object; {hint}")
    return _Node(value, f"{file}: "), notes


def _cut(line: int) -> str:
    return f"The file is cut in line {line}: the whole intervals before are read; no totals."


def _events(file: Path, text: str) -> tuple[dict[str, Any], list[str]]:
    """The lines of ``--json-stream`` as the object of ``-J``, and notes.

    Raises:
        UsageError: a line is no event, or begins another test.
    """
    root: dict[str, Any] = {}
    intervals: list[Any] = []
    lines = text.rstrip().split("\n")
    for number, line in enumerate(lines, 1):
        try:
            said = json.loads(line) if line.strip() else {"event": ""}
            event, data = said["event"], said.get("data")
        except (json.JSONDecodeError, AttributeError, KeyError, TypeError):
            if number == len(lines) and intervals:
                return root | {"intervals": intervals}, [_cut(number)]
            raise UsageError(
                f"{file}:{number}: no event of iperf3 --json-stream: {json.dumps(line[:60])}"
            ) from None
        if event == "start" and root:
            raise UsageError(
                f"{file}:{number}: another test begins; allowed: the output of one test of iperf3"
            )
        if event == "interval":
            intervals.append(data)
        elif event in ("start", "end", "error"):
            root[event] = data
    notes = []
    if "end" not in root and "error" not in root and intervals:
        notes = [f"The file is cut after line {len(lines)}: the intervals are read; no totals."]
    return root | {"intervals": intervals}, notes


def _before_cut(text: str, at: int) -> dict[str, Any] | None:
    """Start and whole intervals of a file that ends too early; None if there is no interval.

    Args:
        text: the file.
        at: where the fault is: within a word at the end of a file that is cut.
    """
    rest = text[at:].strip()
    if not re.fullmatch(r'"[^"\n]*|[\w.+-]*', rest):
        return None
    decode = json.JSONDecoder().raw_decode

    def after(place: int) -> int:
        while text[place] in " \t\r\n,:":
            place += 1
        return place

    def value(place: int) -> tuple[Any, int]:
        found, end = decode(text, place)
        return found, after(end)

    root: dict[str, Any] = {}
    intervals: list[Any] = []
    try:
        place = after(text.index("{") + 1)
        while True:
            key, place = value(place)
            if key != "intervals" or text[place] != "[":
                root[key], place = value(place)
                continue
            place = after(place + 1)
            while text[place] != "]":
                interval, place = value(place)
                intervals.append(interval)
            place = after(place + 1)
    except (ValueError, IndexError, TypeError, RecursionError):
        return root | {"intervals": intervals} if intervals and "start" in root else None


def _ticks(
    root: _Node, results: dict[float, dict[str, _Node]], sends: bool
) -> dict[float, list[_Node]]:
    """The intervals of each stream, omitted ones left out, streams as they come.

    iperf3 leaves out an interval that is less than a tenth of what was asked and in which nothing
    came. Where no other was measured, the totals stand for it.
    """
    by_socket: dict[float, list[_Node]] = {}
    for interval in root["intervals"].items():
        for tick in interval["streams"].items():
            if not tick["omitted"].value:
                by_socket.setdefault(tick["socket"].number(), []).append(tick)
    if not by_socket:
        for socket, sides in results.items():
            if (total := _as_tick(sides, sends)) is not None:
                by_socket[socket] = [total]
    if not by_socket:
        raise UsageError(f"{root['intervals'].path}: no interval was measured")
    return by_socket


def _as_tick(sides: dict[str, _Node], sends: bool) -> _Node | None:
    """A stream's totals as one interval, if the test was below one."""
    side = sides.get("udp") or sides.get("sender" if sends else "receiver")
    if side is None:
        return None
    bytes_, end_s = side["bytes"].number(), side["end"].number()
    if "udp" in sides and (side.get("packets") or 0.0) > 0:
        return None
    if bytes_ > 0 and end_s >= _INTERVAL_S:
        return None
    return _Node({**side.object(), "omitted": False}, side.path)


def _results(end: _Node) -> dict[float, dict[str, _Node]]:
    """Totals of each stream by start time and side: sender, receiver or UDP."""
    found: dict[float, dict[str, _Node]] = {}
    for stream in end["streams"].items():
        for side in ("sender", "receiver", "udp"):
            if side in stream.object():
                found.setdefault(stream[side]["socket"].number(), {})[side] = stream[side]
    return found


@dataclass(frozen=True)
class _Stream:
    """One stream: its number, its intervals in order, whether the side that wrote them sends."""

    id: int
    ticks: Sequence[_Node]
    sends: bool
    at_client: bool
    told_begin_s: float
    """Of the first interval: more than 0 in a part of a file."""

    @property
    def is_told(self) -> bool:
        """Whether the file has what the receiver counted: a server that sends does not learn it."""
        return self.at_client or not self.sends

    @property
    def begin_s(self) -> float:
        """Begin of the first interval in seconds."""
        return self.told_begin_s if self.told_begin_s < self.ticks[0]["end"].number() else 0.0

    @cached_property
    def spans(self) -> list[tuple[float, float, float, _Node]]:
        """Begin and end of each interval in seconds, its bytes, and what else iperf3 says of it.

        An interval begins where the one before ended: after omitted ones iperf3 3.12 gives a wrong
        ``start``, ``seconds`` and rate. One without length, as the last may be, belongs to the one
        before.
        """
        spans: list[tuple[float, float, float, _Node]] = []
        last_s, total = self.begin_s, 0.0
        for tick in self.ticks:
            end, size = tick["end"], tick["bytes"].number()
            total += size
            if end.number() < last_s:
                raise UsageError(
                    f"{end.path}: {end.value}; allowed: more than {last_s:g}, the last"
                )
            if total > _MOST_NUMBER:
                raise tick["bytes"]._wrong(f"at most {_MOST_NUMBER:g} in all")
            if spans and end.number() - last_s < _LEAST_S:
                spans[-1] = (*spans[-1][:2], spans[-1][2] + size, spans[-1][3])
            else:
                spans.append((last_s, end.number(), size, tick))
                last_s = end.number()
        return spans

    @property
    def counted(self) -> float:
        """Bytes of all intervals: those that arrived at a receiver, those written at a sender."""
        return math.fsum(size for _, _, size, _ in self.spans)

    def goodput(self) -> list[dict[str, Any]]:
        return [
            {"t_s": end_s, "flow": self.id, "goodput_bps": _rate_bps(size, end_s - begin_s)}
            for begin_s, end_s, size, _ in self.spans
        ]

    def rows(self, mss_bytes: float | None) -> list[dict[str, Any]]:
        rows, total = [], Counter[str]()
        for _, end_s, size, tick in self.spans:
            total["bytes"] += int(size)
            retransmits = tick.get("retransmits")
            total["retransmits"] += int(retransmits or 0)
            cwnd_bytes, rtt_us = tick.get("snd_cwnd"), tick.get("rtt")
            offered_bytes = tick.told("snd_wnd")
            row = {
                "t_s": end_s,
                "flow": self.id,
                "cwnd_seg": None if cwnd_bytes is None or not mss_bytes else cwnd_bytes / mss_bytes,
                "srtt_s": None if rtt_us is None else rtt_us * 1e-6,
                "delivered_bytes": total["bytes"],
                "retransmits": None if retransmits is None else total["retransmits"],
                "offered_window_bytes": None if offered_bytes is None else int(offered_bytes),
            }
            rows.append(row)
        return rows

    def summary(self, result: dict[str, _Node], mss_bytes: float | None) -> dict[str, Any]:
        """Keys of ``flows[]`` that follow from the intervals and from iperf3's own results."""
        rows = self.rows(mss_bytes)
        goodputs = [row["goodput_bps"] for row in self.goodput()]
        last = rows[-1]
        size_bytes, seconds = self._arrived(result)
        summary = {
            "start_s": self.begin_s,
            "goodput_bps": None if size_bytes is None else _rate_bps(size_bytes, seconds),
            "delivered_bytes": None if size_bytes is None else int(size_bytes),
            "written_bytes": int(self.counted) if self.sends else None,
            "retransmits": last["retransmits"],
            "cov": finite(metrics.cov(goodputs)) if self._in_seconds() else None,
        }
        # A receiver writes zeros for what only the sender knows.
        sender = result.get("sender") if self.sends else None
        min_rtt_us = None if sender is None else sender.get("min_rtt")
        windows = [row["cwnd_seg"] for row in rows if row["cwnd_seg"] is not None]
        offered = [tick.told("snd_wnd") for _, _, _, tick in self.spans]
        return summary | {
            "srtt_s": last["srtt_s"],
            "min_rtt_s": None if min_rtt_us is None else min_rtt_us * 1e-6,
            "mean_cwnd_segments": math.fsum(windows) / len(windows) if windows else None,
            "min_cwnd_segments": min(windows, default=None),
            "max_cwnd_segments": max(windows, default=None),
            "segment_bytes": mss_bytes,
            "offered_window_bytes": max(
                (size for size in offered if size is not None), default=None
            ),
        }

    def _arrived(self, result: dict[str, _Node]) -> tuple[float | None, float]:
        """Bytes that arrived by the receiver's own count, None if it is not told, and its time."""
        if not self.is_told:
            return None, 0.0
        received = result.get("receiver")
        if received is not None:
            return received["bytes"].number(), received["end"].number()
        if self.sends and "udp" not in result:
            return None, 0.0
        return self.counted, self.spans[-1][1] - self.begin_s

    def _in_seconds(self) -> bool:
        """Whether the intervals are bins of 1 s, those of the coefficient of variation."""
        spans = [end_s - begin_s for begin_s, end_s, _, _ in self.spans]
        return len(spans) > 1 and all(abs(span - 1.0) < 0.05 for span in spans)


def _rate_bps(size_bytes: float, seconds: float) -> float | None:
    """A rate; none in no time, but 0 where there is nothing."""
    if seconds >= _LEAST_S:
        return size_bytes * 8 / seconds
    return None if size_bytes else 0.0


def _datagrams(
    stream: _Stream, udp: _Node, end: _Node, test: _Node, results: Sequence[dict[str, _Node]]
) -> dict[str, Any]:
    """Keys of ``flows[]`` for UDP; goodput counts each datagram once.

    iperf3 counts the bytes of every datagram that comes, also of one that comes twice. Numbers of
    datagrams count once. One that comes late or twice lowers the count of lost ones, in some
    versions below zero; so losses beside duplicates are known as a range. A client that omitted
    seconds has their losses in its count.
    """
    packets, lost = udp["packets"].number(), udp["lost_packets"].number(-_MOST_NUMBER)
    if not stream.is_told:
        return {"lost_packets": None, "packets": int(packets), "jitter_s": None}
    said = {
        "lost_packets": int(lost),
        "packets": int(packets),
        "jitter_s": udp["jitter_ms"].number() * 1e-3,
        "out_of_order_packets": None,
        "least_goodput_bps": None,
    }
    if stream.sends:
        size_bytes = stream.counted / packets if packets else 0.0
        part, seconds = 1.0, stream.spans[-1][1]
        total = end["sum_received"] if "sum_received" in end.object() else None
        if total is not None and (numbered := total.get("packets")) is not None:
            # The receiver counts up to the last that came; of several streams it tells the sum.
            sides = [other["udp"] for other in results if "udp" in other]
            sent = math.fsum(
                side["packets"].number() for side in sides if side.object().get("sender", True)
            )
            if test.get("omit"):
                numbered = min(numbered, total["bytes"].number() / size_bytes) if size_bytes else 0
                lost, said["lost_packets"] = 0.0, None
            part, seconds = min(1.0, numbered / sent) if sent else 0.0, total["end"].number()
        arrived = max(0.0, packets * part - max(0.0, lost))
    else:
        seconds = stream.spans[-1][1]
        counts = [(size, tick.get("packets") or 0.0) for _, _, size, tick in stream.spans]
        sizes = [size / count for size, count in counts if count]
        size_bytes = test.get("blksize") or min(sizes, default=0.0)
        came = stream.counted / size_bytes if size_bytes else 0.0
        numbered = math.fsum(count for _, count in counts) or packets
        arrived = min(came, max(0.0, numbered - max(0.0, lost)))
        twice = udp.get("out_of_order") or 0.0
        least = min(arrived, max(0.0, came - twice)) * size_bytes
        said |= {"out_of_order_packets": int(twice), "least_goodput_bps": _rate_bps(least, seconds)}
    bytes_ = arrived * size_bytes
    return said | {"goodput_bps": _rate_bps(bytes_, seconds), "delivered_bytes": round(bytes_)}


def _mss_bytes(stream: _Stream, start: _Node) -> float | None:
    """The kernel's segment size, or None: the windows that iperf3 writes are multiples of it.

    It is the MTU of the path less the headers; ``tcp_mss_default``, which iperf3 also writes, is
    that of the control connection when it began.
    """
    windows = [cwnd for tick in stream.ticks if (cwnd := tick.get("snd_cwnd"))]
    mtu_bytes = stream.ticks[-1].told("pmtu")
    guesses = [] if not mtu_bytes else [mtu_bytes - headers for headers in _HEADERS_BYTES]
    guesses += [size for key in ("tcp_mss", "tcp_mss_default") if (size := start.get(key))]
    return next((g for g in guesses if g > 0 and all(cwnd % g == 0 for cwnd in windows)), None)


def _law(protocol: str, end: _Node) -> str:
    """The sender's law as Linux names it; "udp" for UDP, "tcp" where iperf3 does not tell.

    A server's file names only its own socket's law, and that of a test both ways one of two.
    """
    if protocol == "UDP":
        return "udp"
    return end["sender_tcp_congestion"].word() if "sender_tcp_congestion" in end.object() else "tcp"
