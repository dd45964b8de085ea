"""Logs of ``ss -ti`` (iproute2 5 to 6), repeated while a transfer runs, as tables of lfnlab.

``ss`` leaves out what is zero, and a slow-start threshold of 65,535 or more. These values are null
here. So a missing threshold does not mean that nothing was lost.
"""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lfnlab import metrics
from lfnlab.errors import StoreError, UsageError
from lfnlab.formats.measurement import Measurement
from lfnlab.statistics import finite

if TYPE_CHECKING:
    import polars as pl

MOST_SAMPLES = 1_000_000
"""Of all sockets: more take hundreds of megabytes of memory."""
_DAY_S = 86400.0
_MOST_LINE = 1 << 16
"""Characters of a line."""
_STATES = (
    "ESTAB|SYN-SENT|SYN-RECV|FIN-WAIT-1|FIN-WAIT-2|TIME-WAIT|CLOSE-WAIT|LAST-ACK|CLOSING|UNCONN"
    "|LISTEN|CLOSED"
)
_WITHOUT_DATA = ("LISTEN", "SYN-SENT", "TIME-WAIT", "UNCONN", "SYN-RECV", "CLOSED")
_SOCKET = re.compile(
    rf"\s*(?:(?:tcp|mptcp)\s+)?(?:(?P<state>{_STATES})\s+)?\d+\s+\d+\s+"
    r"(?P<near>\S*:\S+)\s+(?P<far>\S*:\S+)(?P<rest>(?:\s.*)?)"
)
_HEADER = re.compile(r"Recv-Q\s+Send-Q")
_INFO = re.compile(r"\b(?:rto|cwnd|mss):\d")
_USERS = re.compile(r"users:\(\(.*?\)\)")
_RATES = ("send", "pacing_rate", "delivery_rate")
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,9})?")
_RATE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([KMGTP]?)bps")
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}

_SENDING = (
    "cwnd_seg",
    "ssthresh_seg",
    "inflight_seg",
    "retransmits",
    "pacing_bps",
    "unsent_bytes",
    "delivery_bps",
    "app_limited",
    "busy_s",
    "rwnd_limited_s",
    "sndbuf_limited_s",
)
"""Columns about the data that the socket sends."""
_EITHER = ("srtt_s", "min_rtt_s")
_OWN = ("t_s", "acked", "received", "offered", "offers")
"""The rest of a sample: bytes acknowledged and received, windows of the peer and its own."""


def read(file: Path, *, every_s: float | None = None) -> Measurement:
    """Read a log of ``ss -ti`` that was called again and again.

    Each socket is a flow: forward if more of its data were acknowledged than it received, else
    reverse, with what it received as ``delivered_bytes``. A time is a line of its own before the
    sockets, or stands in front of each line.

    Args:
        file: the log, with or without headers (``-H``), a line a socket (``-O``) or two.
        every_s: time between two calls, where the log has no times.

    Raises:
        UsageError: naming file and line of what ``ss`` does not write; the log has no times.
        StoreError: when the file cannot be read.
    """
    log = _Log(file, every_s)
    log.read()
    return log.measurement()


class _Seen(NamedTuple):
    """A socket of one call, and what ``ss`` says of it."""

    near: str
    far: str
    info: str


@dataclass
class _Socket:
    """A connection, and its samples as columns; NaN where nothing is told."""

    near: str
    far: str
    law: str = "tcp"
    mss_bytes: float | None = None
    most_pacing_bps: float | None = None
    columns: dict[str, array[float]] = field(
        default_factory=lambda: {name: array("d") for name in (*_OWN, *_SENDING, *_EITHER)}
    )

    def add(self, t_s: float, found: dict[str, float]) -> None:
        """Add a sample."""
        for name, values in self.columns.items():
            values.append(t_s if name == "t_s" else found.get(name, math.nan))

    def is_over(self, found: dict[str, float]) -> bool:
        """Whether a counter went back: another connection has its addresses."""
        return any(
            found.get(name, math.inf) < (values[-1] if values else -math.inf)
            for name in ("acked", "received")
            for values in (self.columns[name],)
        )


class _Log:
    """A log as it is read."""

    def __init__(self, file: Path, every_s: float | None) -> None:
        self._file, self._every_s = file, every_s
        self._digest = hashlib.sha256()
        self._flows: list[_Socket] = []
        self._by_ends: dict[tuple[str, str], _Socket] = {}
        self._now: float | None = None
        self._began: float | None = None
        self._call, self._days = 0, 0
        self._in_call, self._is_headed = set[tuple[str, str]](), False
        self._number = self._samples = self._equal = 0
        self._notes: list[str] = []

    def _wrong(self, why: str) -> UsageError:
        return UsageError(f"{self._file}:{self._number}: {why}")

    def _lines(self) -> Iterator[str]:
        try:
            with self._file.open("rb") as opened:
                while line := opened.readline(_MOST_LINE + 1):
                    self._number += 1
                    self._digest.update(line)
                    if b"\0" in line:
                        raise self._wrong("no text; allowed: what ss -tin printed")
                    if len(line) > _MOST_LINE:
                        raise self._wrong(f"a line of more than {_MOST_LINE:,} bytes")
                    if not line.endswith(b"\n"):
                        self._notes.append(
                            f"Line {self._number} has no end: it is cut, and not read."
                        )
                        return
                    yield line.decode("utf-8", "replace").rstrip()
        except OSError as error:
            raise StoreError(f"cannot read {self._file}: {error.strerror}") from None

    def read(self) -> None:
        socket: _Seen | None = None
        first = ""
        for line in self._lines():
            first = first or line
            rest = self._timed(line)
            if not rest.strip():
                continue
            if _HEADER.search(rest):
                # It counts as a call also if no socket follows.
                self._call += self._began is None
                self._in_call, self._is_headed = set(), self._began is None
                socket = None
            elif (found := _SOCKET.fullmatch(rest)) is not None:
                state, near, far, info = found.group("state", "near", "far", "rest")
                socket = None if state in _WITHOUT_DATA else _Seen(near, far, info)
                if socket is not None and _INFO.search(info):
                    self._note(socket)
                    socket = None
            elif socket is not None and _INFO.search(rest):
                self._note(socket._replace(info=rest))
                socket = None
        if not self._flows:
            shown = re.sub(r"[^\x20-\x7e]", "?", first[:60])
            self._number = 1
            raise self._wrong(f'no socket with its numbers: "{shown}"; write it with ss -tin')
        if self._call > 1 and self._began is None and self._every_s is None:
            raise UsageError(
                f"{self._file}: ss was called {self._call:,} times and the log has no times; write "
                "them in front (date +%s.%N; ss -tin), or give --every, such as --every 100ms"
            )

    def _timed(self, line: str) -> str:
        """A line without the time at its front, which is that of what follows."""
        if (found := time_of(line)) is None:
            return line
        at, rest = found
        if self._began is None:
            if self._flows:
                raise self._wrong("the first time, after samples without one")
            self._began = at
        if at < _DAY_S:  # a clock of the day begins again at midnight
            at += self._days * _DAY_S
            if self._now is not None and self._now - at > _DAY_S / 2:
                self._days, at = self._days + 1, at + _DAY_S
        if self._now is not None and at < self._now:
            back_s = self._now - at
            raise self._wrong(f"the time goes back by {back_s:.6g} s; allowed: one log in order")
        if not rest.strip() and at != self._now:
            self._in_call = set()
        self._now = at
        return rest

    def _note(self, seen: _Seen) -> None:
        """Take down a sample of a socket."""
        ends = (seen.near, seen.far)
        if ends in self._in_call or not self._in_call:
            self._in_call = set()
            self._call += not self._is_headed
            self._is_headed = False
        self._in_call.add(ends)
        self._samples += 1
        if self._samples > MOST_SAMPLES:
            raise self._wrong(f"more than {MOST_SAMPLES:,} samples; filter with ss dst ADDRESS")
        law, found = self._numbers(seen.info)
        flow = self._by_ends.get(ends)
        if flow is None or flow.is_over(found):
            flow = self._by_ends[ends] = _Socket(*ends)
            self._flows.append(flow)
        flow.law = law or flow.law
        flow.mss_bytes = found.get("mss", flow.mss_bytes)
        flow.most_pacing_bps = found.get("most_pacing_bps") or flow.most_pacing_bps
        if self._began is not None and self._now is not None:
            t_s = self._now - self._began
        else:
            t_s = (self._call - 1) * (self._every_s or 0.0)
        times = flow.columns["t_s"]
        if times and times[-1] >= t_s and (self._began is not None or self._every_s is not None):
            self._equal += 1
            for values in flow.columns.values():
                values.pop()
        flow.add(t_s, found)

    def _numbers(self, info: str) -> tuple[str | None, dict[str, float]]:
        """Law and numbers of a socket."""
        law, bare, told = None, None, dict[str, str]()
        words = iter(_USERS.sub("", info).split())
        for word in words:
            key, colon, value = word.partition(":")
            if word in _RATES:
                told[word] = next(words, "")
            elif colon:
                told.setdefault(key, value)
                # The law stands right before these, behind words such as ts and sack.
                law = law or (bare if key in ("wscale", "rto") else None)
            elif word == "app_limited":
                told[word] = ""
            elif re.fullmatch(r"[a-z][\w-]{0,31}", word):
                bare = word
        found: dict[str, float] = {}
        for key, name, take in _TAKEN:
            if key in told:
                try:
                    found[name] = take(told[key])
                except ValueError:
                    raise self._wrong(f'{key}: "{told[key][:40]}" is no number of ss') from None
        if "unacked" in found:
            # What it leaves out of these is zero.
            away = found.get("sacked", 0.0) + found.get("lost", 0.0)
            found["inflight_seg"] = max(
                0.0, found["unacked"] - away + found.get("retransmitted", 0.0)
            )
        if "acked" in found:
            found["acked"] = max(0.0, found["acked"] - 1.0)  # Linux counts the SYN
        if "delivery_bps" in found:
            found["app_limited"] = float("app_limited" in told)
        return law, found

    def measurement(self) -> Measurement:
        """The measurement of all that was read."""
        import polars as pl

        parts, goodputs, flows = [], [], []
        lacking = every = 0
        for number, socket in enumerate(self._flows):
            table, goodput, flow = _flow(number, socket)
            parts.append(table)
            goodputs.append(goodput)
            flows.append(flow)
            if flow["direction"] == "forward":
                every += table.height
                lacking += table["ssthresh_seg"].null_count()
        if self._equal:
            self._notes.append(
                f"{self._equal:,} samples have the time of the next one and are left out; "
                "date +%s.%N writes fractions."
            )
        if lacking:
            self._notes.append(
                f"No slow-start threshold in {lacking:,} of {every:,} samples: ss leaves out one "
                "of 65,535 or more, so this does not mean that nothing was lost."
            )
        return Measurement.of(
            self._file,
            self._digest.digest(),
            pl.concat(parts),
            pl.concat(goodputs),
            flows,
            notes=self._notes,
            ss={"calls": self._call, "has_times": self._began is not None},
        )


def _flow(number: int, socket: _Socket) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]:
    """Samples, goodputs and summary of a socket."""
    import polars as pl

    raw = pl.DataFrame(
        {name: pl.Series(values, dtype=pl.Float64) for name, values in socket.columns.items()}
    ).fill_nan(None)
    gained = {name: _gained(raw[name]) for name in ("acked", "received")}
    forth = (gained["acked"] or 0.0) >= (gained["received"] or 0.0)
    counted = "acked" if forth else "received"
    if not forth:
        raw = raw.with_columns(pl.lit(None, pl.Float64).alias(name) for name in _SENDING)
    table = raw.select(
        "t_s",
        *_SENDING,
        *_EITHER,
        flow=pl.lit(number, pl.UInt32),
        delivered_bytes=counted,
        offered_window_bytes="offered" if forth else "offers",
    )
    known = table.select("t_s", "flow", "delivered_bytes").drop_nulls()
    goodput = known.select(
        "t_s",
        "flow",
        goodput_bps=pl.col("delivered_bytes").diff() * 8 / pl.col("t_s").diff(),
    ).drop_nulls()
    delivered = gained[counted]
    seconds = known["t_s"][-1] - known["t_s"][0] if known.height else 0.0
    windows = table["cwnd_seg"].drop_nulls()
    steps = raw["t_s"].diff().drop_nulls()
    in_seconds = goodput.height > 1 and bool(((steps - 1.0).abs() < 0.05).all())
    least_s = table["min_rtt_s"].min()
    return (
        table,
        goodput,
        {
            "id": number,
            "law": socket.law if forth else "tcp",
            "direction": "forward" if forth else "reverse",
            "sender": socket.near if forth else socket.far,
            "receiver": socket.far if forth else socket.near,
            "start_s": raw["t_s"][0],
            "goodput_bps": delivered * 8 / seconds if delivered is not None and seconds else None,
            "delivered_bytes": None if delivered is None else int(delivered),
            "retransmits": _last(table["retransmits"], int),
            "cov": finite(metrics.cov(goodput["goodput_bps"].to_list())) if in_seconds else None,
            "srtt_s": _last(table["srtt_s"], float),
            "min_rtt_s": least_s,
            "mean_cwnd_segments": windows.mean(),
            "min_cwnd_segments": windows.min(),
            "max_cwnd_segments": windows.max(),
            "segment_bytes": None if socket.mss_bytes is None else int(socket.mss_bytes),
            "most_pacing_bps": socket.most_pacing_bps if forth else None,
            "offered_window_bytes": _most(table["offered_window_bytes"]),
        },
    )


def _gained(counter: pl.Series) -> float | None:
    told = counter.drop_nulls()
    return float(told[-1] - told[0]) if told.len() else None


def _last(values: pl.Series, kind: Callable[[Any], Any]) -> Any:
    told = values.drop_nulls()
    return kind(told[-1]) if told.len() else None


def _most(values: pl.Series) -> int | None:
    told = values.drop_nulls().to_list()
    return int(max(told)) if told else None


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return float(text)


def _rate(text: str) -> float:
    if (found := _RATE.fullmatch(text)) is None:
        raise ValueError
    return float(found[1]) * _PREFIX[found[2]]


def _ms(text: str) -> float:
    """Of "12ms", "12ms(3.4%)" or "12": seconds."""
    return _number(text.partition("(")[0].removesuffix("ms")) * 1e-3


_TAKEN: tuple[tuple[str, str, Callable[[str], float]], ...] = (
    ("cwnd", "cwnd_seg", _number),
    ("ssthresh", "ssthresh_seg", _number),
    ("rtt", "srtt_s", lambda text: _ms(text.partition("/")[0])),
    ("minrtt", "min_rtt_s", _ms),
    ("bytes_acked", "acked", _number),
    ("bytes_received", "received", _number),
    ("retrans", "retransmits", lambda text: _number(text.partition("/")[2])),
    ("retrans", "retransmitted", lambda text: _number(text.partition("/")[0])),
    ("unacked", "unacked", _number),
    ("sacked", "sacked", _number),
    ("lost", "lost", _number),
    ("notsent", "unsent_bytes", _number),
    ("snd_wnd", "offered", _number),
    ("rcv_wnd", "offers", _number),
    ("mss", "mss", _number),
    # With the socket's limit behind it, if there is one.
    ("pacing_rate", "pacing_bps", lambda text: _rate(text.partition("/")[0])),
    ("pacing_rate", "most_pacing_bps", lambda text: _rate(text.partition("/")[2] or "0bps")),
    ("delivery_rate", "delivery_bps", _rate),
    ("busy", "busy_s", _ms),
    ("rwnd_limited", "rwnd_limited_s", _ms),
    ("sndbuf_limited", "sndbuf_limited_s", _ms),
)
"""Words of ``ss``, the columns that they become, and how."""

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH, _DAY = "|".join(_MONTHS), r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?(?: (?P<half>[AP]M))?"
_ZONE = r"(?: [A-Z]{3,5})?"
_TIMES = tuple(
    re.compile(rf"[\s#=*\[-]*{pattern}[\]:]?(?=$|[\s=*-])[\s=*-]*")
    for pattern in (
        r"(?P<epoch>\d{9,19}(?:\.\d{1,9})?|\d{1,8}\.\d{1,9})",
        rf"(?P<y>\d{{4}})-(?P<o>\d\d)-(?P<d>\d\d)[T ]{_CLOCK}(?:Z| UTC|(?P<z>[+-]\d\d:?\d\d))?",
        rf"{_DAY} (?P<b>{_MONTH}) +(?P<d>\d{{1,2}}) {_CLOCK}{_ZONE} (?P<y>\d{{4}})",
        rf"{_DAY} +(?P<d>\d{{1,2}}) (?P<b>{_MONTH}) (?P<y>\d{{4}}) {_CLOCK}{_ZONE}",
        rf"(?P<b>{_MONTH}) +(?P<d>\d{{1,2}}) {_CLOCK}",
        _CLOCK,
    )
)


def time_of(line: str) -> tuple[float, str] | None:
    """The time at the front of a line in seconds, and the rest of the line; None without a time.

    Seconds of the epoch (or of any clock, with a point), its milli-, micro- or nanoseconds, ISO
    8601, what ``date`` prints, and a time of the day.
    """
    for pattern in _TIMES:
        if (found := pattern.match(line)) is not None:
            told = found.groupdict()
            if told.get("epoch"):
                whole = len(told["epoch"].partition(".")[0])
                scale = next((10.0**n for n in (9, 6, 3) if whole > 7 + n), 1.0)
                return float(told["epoch"]) / scale, line[found.end() :]
            if (at_s := _calendar(told)) is not None:
                return at_s, line[found.end() :]
    return None


def _calendar(told: dict[str, Any]) -> float | None:
    """Seconds of a date and a time of the day; None if there is no such time."""
    hour = int(told["h"])
    if told.get("half"):
        hour = hour % 12 + (12 if told["half"] == "PM" else 0)
    part_s = int(told["f"]) / 10 ** len(told["f"]) if told.get("f") else 0.0
    if not told.get("d"):
        return hour * 3600.0 + int(told["m"]) * 60 + int(told["s"]) + part_s if hour < 24 else None
    month = int(told["o"]) if told.get("o") else _MONTHS.index(told["b"]) + 1
    try:
        at = datetime(
            int(told.get("y") or 2000),
            month,
            int(told["d"]),
            hour,
            int(told["m"]),
            min(int(told["s"]), 59),
            tzinfo=UTC,
        )
    except ValueError:
        return None
    if told.get("z"):
        sign, digits = told["z"][0], told["z"][1:].replace(":", "")
        shift = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        at = at - shift if sign == "+" else at + shift
    return at.timestamp() + part_s
