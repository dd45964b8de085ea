"""Recorded paths as scenarios: rates, delays and losses that change with time.

Three kinds of files: opportunities to send, one time in ms a line (mahimahi and the rates of
LeoReplayer); delays, one number of ms a line and a line for each 10 ms (LeoReplayer); tables with a
header (CSV), as of a satellite's terminal. LeoReplayer is Lai and others, SIGCOMM 2025; its formats
are in the README of its traces.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lfnlab.errors import StoreError, UsageError
from lfnlab.formats.measurement import content
from lfnlab.results.store import refuse_foreign

Floats = NDArray[np.float64]

STEP_S = 0.010
"""Of LeoReplayer's delays."""
OPPORTUNITY_BITS = 1500 * 8
LEAST_BPS = 1e3
"""A link is down below it: the scenario's least rate."""
MOST_LOSS = 0.9999
"""A link loses this part where the file says that all was lost: a probability is below 1."""
EPOCH_S = 1e8
"""A time of a table above it is a date: seconds, or milliseconds, since 1970."""

_TIMES = ("time", "timestamp", "datetimestamp", "datetime", "date", "t", "seconds", "elapsed")
_RATES = ("rate", "throughput", "bandwidth", "capacity", "downlink_throughput", "goodput")
_RTTS = ("rtt", "latency", "ping", "pop_ping_latency", "round_trip_time")
_DELAYS = ("delay", "one_way_delay", "owd")
_LOSSES = ("loss", "loss_rate", "packet_loss", "drop_rate", "pop_ping_drop_rate")
NAMES = {"time": _TIMES, "rate": _RATES, "rtt": _RTTS, "delay": _DELAYS, "loss": _LOSSES}
"""Names of columns without their units, by what they hold."""
UNITS: Mapping[str, Mapping[str, float]] = {
    "time": {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "utc": 1.0},
    "rate": {"bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9}
    | {"bit/s": 1.0, "kbit/s": 1e3, "mbit/s": 1e6, "gbit/s": 1e9},
    "rtt": {"s": 1.0, "ms": 1e-3, "us": 1e-6},
    "delay": {"s": 1.0, "ms": 1e-3, "us": 1e-6},
    "loss": {"": 1.0, "pct": 0.01, "percent": 0.01, "%": 0.01},
}
"""Units of a column's name, behind the last underscore or in brackets."""


@dataclass(frozen=True)
class Trace:
    """A path that changes: each quantity is that of its row until the next row's time.

    ``None`` stands for a quantity that the files do not have, NaN for a row without it.
    """

    times_s: Floats
    """Of the rows, from 0."""
    rate_bps: Floats | None
    delay_s: Floats | None
    """One way."""
    loss: Floats | None
    opportunities: bytes | None
    """The text of mahimahi in place of a rate."""
    seconds: float
    """How long the files last."""
    says: tuple[str, ...]
    """Sentences on the files."""


def read(
    file: Path,
    *,
    delay: Path | None = None,
    columns: Mapping[str, str] | None = None,
    every_s: float | None = None,
) -> Trace:
    """Read a recorded path.

    Args:
        file: opportunities to send, or a table.
        delay: LeoReplayer's delays, one way.
        columns: columns of a table by what they hold (a key of :data:`NAMES`), as "NAME" or
            "NAME:UNIT"; others are recognised by their names.
        every_s: time between two rows of a table without times.

    Raises:
        UsageError: naming file and line of what is in neither form.
        StoreError: when a file cannot be read.
    """
    raw = content(file)
    if _is_numbers(raw):
        if columns or every_s is not None:
            raise UsageError(
                f"{file}: opportunities to send, a number a line; columns are a table's"
            )
        traced = _opportunities(file, raw)
    else:
        traced = _table(file, raw, columns or {}, every_s)
    if delay is None:
        return traced
    if traced.delay_s is not None:
        raise UsageError(f"{delay}: {file} has delays of its own")
    return _delayed(traced, delay)


def _is_numbers(raw: bytes) -> bool:
    first = next((line for line in raw[:65536].splitlines() if line.strip()), b"")
    return re.fullmatch(rb"\s*\d+\s*", first) is not None


def _lines(file: Path, raw: bytes, most: float, unit: str) -> Floats:
    """The numbers of a file with one on each line."""
    numbers = []
    for place, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            number = float(line)
        except ValueError:
            number = math.nan
        if not 0.0 <= number <= most:
            said = line[:40].decode("utf-8", "replace").strip()
            raise UsageError(f'{file}: line {place}: "{said}"; allowed: {unit} of 0 to {most:g}')
        numbers.append(number)
    if not numbers:
        raise UsageError(f"{file}: it is empty; allowed: a number on each line")
    return np.array(numbers)


def _opportunities(file: Path, raw: bytes) -> Trace:
    times_ms = _lines(file, raw, 1e12, "a time in ms")
    back = np.flatnonzero(np.diff(times_ms) < 0)
    if back.size:
        before, after = times_ms[back[0] : back[0] + 2]
        raise UsageError(f"{file}: time goes back from {before:g} to {after:g} ms")
    if times_ms[-1] == 0:
        raise UsageError(f"{file}: the last time is 0 ms, but the file repeats after it")
    seconds = float(times_ms[-1]) / 1e3
    mean_bps = times_ms.size * OPPORTUNITY_BITS / seconds
    rate = f"{mean_bps / 1e6:.4g} Mbit/s on average"
    says = f"{file.name}: {times_ms.size:,} packets of 1500 bytes in {seconds:g} s, {rate}."
    return Trace(np.zeros(1), None, None, None, raw, seconds, (says,))


def _delayed(traced: Trace, file: Path) -> Trace:
    delays_s = _lines(file, content(file), 1e6, "a delay in ms") / 1e3
    times = np.arange(delays_s.size) * STEP_S
    low, high = float(delays_s.min()) * 1e3, float(delays_s.max()) * 1e3
    says = (
        f"{file.name}: {delays_s.size:,} delays of one way, each for 10 ms, {low:g} to {high:g} ms."
    )
    lasts = delays_s.size * STEP_S
    seconds = min(traced.seconds, lasts)
    if abs(traced.seconds - lasts) > 0.02 * max(traced.seconds, lasts):
        says += f" The rates last {traced.seconds:g} s, the delays {lasts:g} s: the shorter counts."
    merged = np.unique(np.concatenate([traced.times_s, times]))

    def held(values: Floats | None) -> Floats | None:
        at = np.searchsorted(traced.times_s, merged, "right") - 1
        return None if values is None else values[at]

    at = np.searchsorted(times, merged, "right") - 1
    return Trace(
        merged,
        held(traced.rate_bps),
        delays_s[at],
        held(traced.loss),
        traced.opportunities,
        seconds,
        (*traced.says, says),
    )


def _table(file: Path, raw: bytes, columns: Mapping[str, str], every_s: float | None) -> Trace:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: byte {error.start:,} is no text in UTF-8") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    dialect = ";" if lines and lines[0].count(";") > lines[0].count(",") else ","
    if lines and lines[0].count("\t") > lines[0].count(dialect):
        dialect = "\t"
    try:
        rows = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=dialect))
    except csv.Error as error:
        raise UsageError(f"{file}: no table: {error}") from None
    if len(rows) < 2:
        raise UsageError(
            f"{file}: {len(rows)} lines; allowed: times in ms, or a table with a header and a row"
        )
    header, body = [name.strip() for name in rows[0]], rows[1:]
    chosen = _chosen(file, header, columns)
    if "rate" not in chosen and "rtt" not in chosen and "delay" not in chosen:
        raise UsageError(
            f"{file}: no column of a rate or a delay among {_listed(header)}; name them, for "
            "example --columns rate=NAME:Mbit/s,rtt=NAME:ms"
        )
    places = range(2, len(rows) + 1)
    values = {
        what: _numbers(file, header[at], [row[at] if at < len(row) else "" for row in body], places)
        * factor
        for what, (at, factor) in chosen.items()
        if what != "time"
    }
    if "time" in chosen:
        at, factor = chosen["time"]
        texts = [row[at] if at < len(row) else "" for row in body]
        times = _times(file, header[at], texts, factor, places)
    elif every_s is None:
        raise UsageError(
            f"{file}: no column of times among {_listed(header)}; name it (--columns time=NAME:s), "
            "or tell the time between two rows (--every 1s)"
        )
    else:
        times = np.arange(len(body), dtype=np.float64) * every_s
    if "rtt" in values and "delay" in values:
        raise UsageError(f"{file}: it has round-trip times and delays; choose one with --columns")
    delay = values.get("delay", values["rtt"] / 2 if "rtt" in values else None)
    _refuse(file, values)
    last_s = float(times[-1] - times[-2]) if times.size > 1 else (every_s or 1.0)
    seconds = float(times[-1]) + last_s
    held = ", ".join(f"{what} from {header[at]}" for what, (at, _) in chosen.items())
    says = [f"{file.name}: {times.size:,} rows in {seconds:g} s; {held}."]
    missing = sum(int(np.isnan(column).sum()) for column in values.values())
    if missing:
        says.append(f"{missing:,} empty cells have the value before them.")
    if "rate" in chosen:
        says.append(
            "A measured throughput is a rate of the link only where something filled the link."
        )
    return Trace(times, values.get("rate"), delay, values.get("loss"), None, seconds, tuple(says))


def _chosen(
    file: Path, header: Sequence[str], columns: Mapping[str, str]
) -> dict[str, tuple[int, float]]:
    """For what a column holds: its place, and the factor of its unit."""
    chosen = {}
    for what, wanted in columns.items():
        if what not in NAMES:
            raise UsageError(f'--columns: "{what}"; allowed: {", ".join(NAMES)}')
        name, _, unit = wanted.partition(":")
        if name not in header:
            raise UsageError(f'--columns: {file} has no column "{name}"; it has {_listed(header)}')
        own = _split(name, what) if not unit else (name, unit.lower())
        known = UNITS[what]
        if own is None or own[1] not in known:
            raise UsageError(
                f"--columns: {what}={name}: its unit is not known; write {what}={name}:UNIT with "
                f"one of {', '.join(filter(None, known))}"
            )
        chosen[what] = header.index(name), known[own[1]]
    taken = {at for at, _ in chosen.values()}
    for what, names in NAMES.items():
        if what in chosen:
            continue
        found = [
            (at, UNITS[what][split[1]])
            for at, name in enumerate(header)
            if at not in taken and (split := _split(name, what)) is not None and split[0] in names
        ]
        if len(found) > 1:
            several = _listed([header[at] for at, _ in found])
            raise UsageError(
                f"{file}: {several} are each a {what}; choose with --columns {what}=NAME"
            )
        if found:
            chosen[what] = found[0]
    return chosen


def _split(name: str, what: str) -> tuple[str, str] | None:
    """A column's name without its unit, and the unit; None where its unit is unknown."""
    plain = re.sub(r"[\s\-]+", "_", name.strip().lower())
    bracketed = re.fullmatch(r"(.+?)_?[(\[](.+)[)\]]", plain)
    if bracketed:
        return (bracketed[1], bracketed[2]) if bracketed[2] in UNITS[what] else None
    stem, _, unit = plain.rpartition("_")
    if stem and unit in UNITS[what]:
        return stem, unit
    return (plain, "") if "" in UNITS[what] else None


def _numbers(file: Path, name: str, texts: Iterable[str], places: Iterable[int]) -> Floats:
    """A column; NaN where a cell is empty."""
    numbers = []
    for place, text in zip(places, texts, strict=True):
        bare = text.strip()
        try:
            number = (
                math.nan if not bare or bare.lower() in ("nan", "null", "none") else float(bare)
            )
        except ValueError:
            number = math.inf
        if math.isinf(number) or number < 0:
            raise UsageError(f'{file}: line {place}, {name}: "{bare[:40]}"; allowed: 0 or more')
        numbers.append(number)
    return np.array(numbers)


def _times(
    file: Path, name: str, texts: Sequence[str], factor: float, places: Iterable[int]
) -> Floats:
    """The times of rows from the first one."""
    times: list[float] = []
    for place, text in zip(places, texts, strict=True):
        bare = text.strip()
        try:
            # A date in milliseconds has three digits more than one in seconds.
            number = float(bare) * factor
            number /= 1e3 if number > 1e3 * EPOCH_S else 1.0
        except ValueError:
            try:
                moment = datetime.fromisoformat(bare)
            except ValueError:
                moment = None
            if moment is None:
                raise UsageError(
                    f'{file}: line {place}, {name}: "{bare[:40]}"; allowed: a number or a date'
                    " of ISO 8601"
                ) from None
            number = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
        if not math.isfinite(number):
            raise UsageError(f'{file}: line {place}, {name}: "{bare[:40]}"; allowed: a finite time')
        if times and number <= times[-1]:
            raise UsageError(f"{file}: line {place}, {name}: the time does not grow")
        times.append(number)
    return np.array(times) - times[0]


def _refuse(file: Path, values: Mapping[str, Floats]) -> None:
    for what, column in values.items():
        if np.isnan(column).all():
            raise UsageError(f"{file}: its column of {what} is empty")
    if "loss" in values and np.nanmax(values["loss"]) > 1:
        raise UsageError(
            f"{file}: a loss of {np.nanmax(values['loss']):g}; allowed: 0 to 1; for percent name "
            "the unit: --columns loss=NAME:pct"
        )
    for what, most in (("rtt", 2000.0), ("delay", 1000.0), ("rate", 1e13)):
        if what in values and np.nanmax(values[what]) > most:
            raise UsageError(
                f"{file}: a {what} of {np.nanmax(values[what]):g}; allowed: up to {most:g} "
                f"{'bit/s' if what == 'rate' else 's'}; another unit: --columns {what}=NAME:UNIT"
            )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{name[:40]}"' for name in names[:20])
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def scenario(
    trace: Trace,
    *,
    back: Trace | None = None,
    rate: str | None = None,
    rtt: str | None = None,
    buffer: str = "1bdp",
    law: str = "cubic",
) -> dict[str, str | bytes]:
    """The files of a scenario with one flow over the path, by their names.

    Args:
        trace: of the way of the data.
        back: opportunities or rates of the way back; default that of the data.
        rate: of the link, where the trace has none.
        rtt: without queues, where the trace has no delays.
        buffer: the queue before each link.
        law: of the flow.

    Raises:
        UsageError: naming the option of a quantity that no file has, or that one has already.
    """
    has_rate = trace.rate_bps is not None or trace.opportunities is not None
    if has_rate == (rate is not None):
        which = "no file has a rate; write for example --rate 100Mbit/s"
        raise UsageError(f"--rate: {'the file has one' if has_rate else which}")
    if (trace.delay_s is not None) == (rtt is not None):
        which = "no file has delays; write for example --rtt 40ms"
        raise UsageError(
            f"--rtt: {'a file has the delays' if trace.delay_s is not None else which}"
        )
    if back is not None and back.rate_bps is None and back.opportunities is None:
        raise UsageError("--reverse: the file has no rates")
    files: dict[str, str | bytes] = {}
    says = [*trace.says, *(back.says if back else ())]
    text = [f"# {line}" for line in says]
    text += ["schema = 1", f'duration = "{trace.seconds:.9g}s"', ""]
    outages: list[tuple[float, str, str]] = []
    for way, of in (("forward", trace), ("reverse", back or trace)):
        text.append("[link]" if way == "forward" else "[link.reverse]")
        if of.opportunities is not None:
            name = f"{way}.trace"
            files[name] = of.opportunities
            text.append(f'trace = "{name}"')
        elif of.rate_bps is not None:
            text += _steps(way, "rate", of.times_s, of.rate_bps, files, outages)
        else:
            text.append(f'rate = "{rate}"')
        if trace.delay_s is not None:
            text += _steps(way, "delay", trace.times_s, trace.delay_s, files, outages)
            # Packets stay in their order when the delay falls.
            still = '{ low = "0s", high = "0s" }'
            text.append(f"jitter = {still}")
            text.append(f"acks = {{ jitter = {still} }}")
        if way == "forward" and trace.loss is not None:
            text += _steps(way, "loss", trace.times_s, trace.loss, files, outages)
        text += [f'queue = {{ size = "{buffer}" }}', ""]
    text += ["[[flow]]", f'law = "{law}"']
    text += [f'rtt = "{rtt}"'] if rtt is not None else []
    for time_s, way, down in sorted(outages):
        text += ["", "[[schedule]]", f'at = "{_ms(time_s)}"', f'link = "{way}"', f"down = {down}"]
    for name in (name for name in files if name.endswith(".csv")):
        text += ["", "[[schedule]]", f'link = "{name.partition("-")[0]}"', f'file = "{name}"']
    return {"path.toml": "\n".join(text) + "\n", **files}


def _ms(time_s: float) -> str:
    return f"{time_s * 1e3:.12g}ms"


def _steps(
    way: str,
    what: str,
    times_s: Floats,
    values: Floats,
    files: dict[str, str | bytes],
    outages: list[tuple[float, str, str]],
) -> list[str]:
    """The key of a link that has the first value; the later ones go to a file of the schedule."""
    known = ~np.isnan(values)
    times_s, values = times_s[known], values[known]
    if what == "loss":
        values = np.minimum(values, MOST_LOSS)
    down = values < LEAST_BPS if what == "rate" else np.zeros(values.size, bool)
    up = values[~down]
    if not up.size:
        raise UsageError("the rate is 0 in every row; allowed: a link that sends at times")

    def said(value: float) -> str:
        if what == "loss":
            return f"{value:.9g}"
        return _ms(value) if what == "delay" else f"{value / 1e6:.12g}Mbit/s"

    first = before = said(float(up[0]))
    rows, was_down = [], False
    for time_s, value, is_down in zip(times_s, values, down, strict=True):
        if is_down != was_down:
            outages.append((float(time_s), way, "true" if is_down else "false"))
            was_down = is_down
        if not is_down and said(float(value)) != before:
            before = said(float(value))
            rows.append(f"{_ms(time_s)},{before}")
    if rows:
        files[f"{way}-{what}.csv"] = "\n".join([f"time,{what}", *rows]) + "\n"
    return [f"{what} = {first}" if what == "loss" else f'{what} = "{first}"']


def store(files: Mapping[str, str | bytes], directory: Path) -> None:
    """Write the files of a scenario; they replace those of an older one.

    Raises:
        StoreError: the directory holds other files, or cannot be written.
    """
    ways = [f"{way}{end}" for way in ("forward", "reverse")
            for end in (".trace", "-rate.csv", "-delay.csv", "-loss.csv")]  # fmt: skip
    refuse_foreign(directory, {"path.toml", *ways})
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in ways:
            (directory / name).unlink(missing_ok=True)
        for name, data in files.items():
            (directory / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    except OSError as error:
        raise StoreError(f"cannot write {directory}: {error.strerror}") from None
