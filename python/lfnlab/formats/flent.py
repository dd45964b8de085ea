"""Data files of flent (``.flent.gz``, ``.flent``) as tables of lfnlab.

Read are the series of TCP streams: rate, and where flent sampled sockets window and RTT. The names
are those of flent's documentation of its data file format.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from lfnlab import metrics
from lfnlab.errors import UsageError
from lfnlab.formats.measurement import MOST_BYTES, Measurement, content
from lfnlab.statistics import finite

_STREAM = re.compile(r"TCP (upload|download)(?!.*::tcp_).*")
_NO_STREAM = re.compile(r".*(avg|sum|totals)")
_SOCKET = ("::tcp_cwnd", "::tcp_rtt")
_MOST_NUMBER = 1e12
_LAW = re.compile(r"[\w.:+-]{1,32}", re.ASCII)


def read(file: Path) -> Measurement:
    """Read the TCP streams of a data file; each is a flow, an upload forward.

    flent interpolates rates to the times of the file, so the bytes that arrived are known in sum at
    most: ``delivered_bytes`` of the samples is null, and in the summary it is what netperf counted,
    or else the sum of the rates.

    Raises:
        UsageError: naming file and key of what is not as flent writes it; it has no TCP stream.
        StoreError: when the file cannot be read.
    """
    raw = content(file)
    root = _parsed(file, raw)
    times = root.get("x_values")
    results = root.get("results")
    if not isinstance(times, list) or not isinstance(results, dict):
        raise UsageError(f"{file}: no x_values or results; allowed: a data file of flent")
    x = [value for value in _series(file, "x_values", times, len(times)) if value is not None]
    if len(x) < len(times) or any(after <= before for before, after in pairwise(x)):
        raise UsageError(f"{file}: x_values: allowed: times that rise")
    about = root.get("metadata")
    meta = about.get("SERIES_META") if isinstance(about, dict) else None
    meta = meta if isinstance(meta, dict) else {}
    names = [name for name in results if _STREAM.fullmatch(name) and not _NO_STREAM.fullmatch(name)]
    names.sort(key=lambda name: [int(part) if part.isdigit() else part for part in _parts(name)])
    rows: list[dict[str, Any]] = []
    goodputs: list[dict[str, Any]] = []
    flows = []
    for number, name in enumerate(names):
        told = meta.get(name) if isinstance(meta.get(name), dict) else {}
        series = {
            key: _series(file, f"{name}{end}", results.get(f"{name}{end}"), len(x))
            for key, end in zip(("rate", "cwnd", "rtt"), ("", *_SOCKET), strict=True)
        }
        own = [
            {"t_s": t_s, "flow": number, "goodput_bps": rate * 1e6}
            for t_s, rate in zip(x, series["rate"], strict=True)
            if rate is not None
        ]
        if not own:
            continue
        goodputs += own
        rows += [
            {
                "t_s": t_s,
                "flow": number,
                "cwnd_seg": cwnd,
                "srtt_s": None if rtt is None else rtt * 1e-3,
            }
            for t_s, *values in zip(x, *series.values(), strict=True)
            if any(value is not None for value in values)
            for cwnd, rtt in (values[1:],)
        ]
        flows.append(_summary(number, name, told or {}, own, series))
    if not flows:
        raise UsageError(f"{file}: results: no series of a TCP upload or download")
    read_too = [f"{name}{end}" for name in names for end in _SOCKET]
    left = len(results) - len(names) - len(set(read_too) & results.keys())
    notes = [f"{left:,} series that are not of a TCP stream were left out."] if left else []
    return Measurement.of(file, raw, rows, goodputs, flows, notes=notes, flent=_about(root))


def _parts(name: str) -> list[Any]:
    return list(re.split(r"(\d+)", name))


def _parsed(file: Path, raw: bytes) -> dict[str, Any]:
    if raw.startswith(b"\x1f\x8b"):
        unpacked = zlib.decompressobj(31)
        try:
            raw = unpacked.decompress(raw, MOST_BYTES + 1)
        except zlib.error:
            raise UsageError(f"{file}: damaged: it does not unpack") from None
        if len(raw) > MOST_BYTES:
            raise UsageError(f"{file}: more than {MOST_BYTES >> 20} MiB unpacked")
        if not unpacked.eof:
            raise UsageError(f"{file}: cut: the packed data have no end")
    try:
        root = json.loads(raw)
    except (ValueError, RecursionError):
        raise UsageError(f"{file}: no JSON, or cut; allowed: a data file of flent") from None
    if not isinstance(root, dict):
        raise UsageError(f"{file}: not an object; allowed: a data file of flent")
    return root


def _series(file: Path, name: str, values: Any, length: int) -> list[float | None]:
    """The numbers of a series, None where one is missing; of an absent series all are."""
    if values is None:
        return [None] * length
    good = isinstance(values, list) and len(values) == length
    if not good or not all(_is_number(value) for value in values):
        raise UsageError(f"{file}: {json.dumps(name)}: allowed: {length:,} numbers or nulls")
    return [None if value is None else float(value) for value in values]


def _is_number(value: Any) -> bool:
    if value is None:
        return True
    good = isinstance(value, int | float) and not isinstance(value, bool)
    return good and 0 <= value <= _MOST_NUMBER


def _told(about: Mapping[str, Any], key: str) -> int | None:
    value = about.get(key)
    return int(value) if value is not None and _is_number(value) else None


def _summary(
    number: int,
    name: str,
    told: Mapping[str, Any],
    own: Sequence[Mapping[str, Any]],
    series: Mapping[str, Sequence[float | None]],
) -> dict[str, Any]:
    rates = [row["goodput_bps"] for row in own]
    begin_s, end_s = own[0]["t_s"], own[-1]["t_s"]
    mean_bps = math.fsum(rates) / len(rates)
    counted = _told(told, "BYTES_RECVD")
    law = told.get("CONG_CONTROL")
    windows = [value for value in series["cwnd"] if value is not None]
    rtts = [value for value in series["rtt"] if value is not None]
    steps = {round(b["t_s"] - a["t_s"], 3) for a, b in pairwise(own)}
    return {
        "id": number,
        "law": law if isinstance(law, str) and _LAW.fullmatch(law) else "tcp",
        "direction": "forward" if name.startswith("TCP upload") else "reverse",
        "start_s": begin_s,
        "goodput_bps": mean_bps,
        "delivered_bytes": round(mean_bps * (end_s - begin_s) / 8) if counted is None else counted,
        "retransmits": _told(told, "TCP_RETRANSMIT"),
        "cov": finite(metrics.cov(rates)) if steps == {1.0} and len(rates) > 1 else None,
        "srtt_s": rtts[-1] * 1e-3 if rtts else None,
        "mean_cwnd_segments": math.fsum(windows) / len(windows) if windows else None,
        "min_cwnd_segments": min(windows, default=None),
        "max_cwnd_segments": max(windows, default=None),
        "segment_bytes": _told(told, "TCP_MSS"),
    }


def _about(root: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of the test that name no machine."""
    about = root.get("metadata")
    about = about if isinstance(about, dict) else {}
    name = about.get("NAME")
    return {
        "version": _told(root, "version"),
        "test": name if isinstance(name, str) and _LAW.fullmatch(name) else None,
        "step_s": about.get("STEP_SIZE") if _is_number(about.get("STEP_SIZE")) else None,
    }
