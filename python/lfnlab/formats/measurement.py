"""Measurements of other tools, stored as one run is, so that both are drawn together.

``flows.parquet`` holds the samples: the columns of a run, and those of
:data:`lfnlab.results.tables.MEASURED`, null where a tool does not tell. ``summary.json`` has the
keys and units of ``docs/results.md``. The other tables are missing, but ``goodput.parquet`` holds
the goodput in the tool's own intervals.

An importer is a module of this folder with a function ``read(file: Path) -> Measurement``, and an
entry of ``IMPORTERS`` in ``lfnlab.cli.importing``. ``lfn import NAME FILE`` follows from these.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab.errors import StoreError, UsageError
from lfnlab.results import provenance
from lfnlab.results.output import unique
from lfnlab.results.store import LAYOUT_FILE, recorded, refuse_foreign

if TYPE_CHECKING:
    import polars as pl

MOST_BYTES = 64 << 20
"""Of a file: a day of one stream, second by second, has less."""
_UNTOLD: dict[str, Any] = {
    "start_s": 0.0,
    **dict.fromkeys(("delivered_bytes", "retransmits", "cov", "completion_s", "rtt_s", "srtt_s")),
}
"""Keys of a flow that a tool may not tell."""
_PERSONAL = ("sender", "receiver", "system", "error")
"""Keys of a summary, of its flows and of what a tool says about itself that name a machine."""


@dataclass(frozen=True)
class Measurement:
    """The tables ``flows`` and ``goodput``, and the object of ``summary.json``."""

    flows: pl.DataFrame
    goodput: pl.DataFrame
    summary: dict[str, Any]

    @classmethod
    def of(
        cls,
        file: Path,
        raw: bytes,
        rows: Sequence[Mapping[str, Any]] | pl.DataFrame,
        goodput: Sequence[Mapping[str, Any]] | pl.DataFrame,
        flows: Sequence[Mapping[str, Any]],
        *,
        notes: Sequence[str] = (),
        **more: Any,
    ) -> Measurement:
        """A measurement in a file.

        Args:
            file: its name is the measurement's.
            raw: what it holds, or a digest of that.
            rows: of the table ``flows``; as a frame with any of its columns.
            goodput: of the table ``goodput``: t_s, flow, goodput_bps.
            flows: those of the summary: at least id, law, direction, and goodput_bps or None.
            notes: sentences on what the file lacks, or what was not read.
            more: keys of the summary.

        Raises:
            UsageError: when a number of the tables is not finite.
        """
        import polars as pl
        from polars import selectors as cs

        from lfnlab import metrics
        from lfnlab.results.tables import frame, schema

        known = schema("flows", measured=True)
        if isinstance(rows, pl.DataFrame):
            absent = [pl.lit(None).alias(name) for name in known if name not in rows.columns]
            samples = rows.with_columns(absent).select(*known).cast(known)  # type: ignore[arg-type]
        else:
            samples = frame("flows", rows, measured=True)
        goodputs = [flow["goodput_bps"] for flow in flows]
        covs = [flow["cov"] for flow in flows if flow.get("cov") is not None]
        summary = {
            "name": file.stem,
            "hash": hashlib.sha256(raw).hexdigest()[:16],
            "seed": None,
            "sim_s": samples["t_s"].max(),
            "warmup_s": 0.0,
            "jain": metrics.jain(goodputs)
            if len(goodputs) > 1 and None not in goodputs and any(goodputs)
            else None,
            "cov": math.fsum(covs) / len(covs) if covs else None,
            "flows": [{**_UNTOLD, **flow} for flow in flows],
            "links": [],
            "background": None,
            "notes": list(notes),
            **more,
        }
        kinds = {"t_s": pl.Float64, "flow": pl.UInt32, "goodput_bps": pl.Float64}
        tables = samples, pl.DataFrame(goodput, kinds)
        numbers = pl.all_horizontal(cs.float().fill_null(0.0).is_finite().all())
        if not all(table.select(numbers).item() for table in tables):
            raise UsageError(f"{file}: a time, a rate or a count is no finite number")
        ticks, rates = (table.sort("t_s", "flow") for table in tables)
        return cls(ticks, rates, summary)

    def anonymous(self, tool: str) -> Measurement:
        """It without addresses, ports, names of machines, and the name of its file.

        Args:
            tool: the measurement's name instead.
        """
        kept = {
            key: {k: v for k, v in value.items() if k not in _PERSONAL}
            if isinstance(value, dict)
            else value
            for key, value in self.summary.items()
        }
        flows = [
            {key: value for key, value in flow.items() if key not in _PERSONAL}
            for flow in self.summary["flows"]
        ]
        return replace(self, summary={**kept, "name": tool, "flows": flows, "anonymous": True})


def read(tool: str, file: Path, **options: Any) -> Measurement:
    """Read a file of another tool by its importer.

    Args:
        tool: name of the importer.
        file: what the tool wrote.
        options: arguments of the importer.

    Raises:
        UsageError: naming file and place of what the tool does not write.
        StoreError: when the file cannot be read.
    """
    found: Measurement = import_module(f"lfnlab.formats.{tool}").read(file, **options)
    return found


def content(file: Path) -> bytes:
    """The whole file, of bounded size: a device or a pipe may never end.

    Raises:
        UsageError: it is larger than :data:`MOST_BYTES`.
        StoreError: it cannot be read.
    """
    try:
        size_bytes = file.stat().st_size
        with file.open("rb") as opened:
            raw = b"" if size_bytes > MOST_BYTES else opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from None
    if size_bytes <= MOST_BYTES < len(raw):
        raise UsageError(
            f"{file}: more than {MOST_BYTES >> 20} MiB; allowed: the output of one test"
        )
    if size_bytes > MOST_BYTES:
        raise UsageError(
            f"{file}: it has {size_bytes >> 20:,} MiB; allowed: up to {MOST_BYTES >> 20} MiB"
        )
    return raw


def store(measurement: Measurement, directory: Path) -> None:
    """Write the measurement into a directory; it replaces an older measurement.

    Raises:
        UsageError: when the directory holds an experiment.
        StoreError: when it holds other files, or cannot be written.
    """
    if (directory / "experiment.json").exists() or (directory / LAYOUT_FILE).exists():
        raise UsageError(f"--out: {directory} holds an experiment; choose another directory")
    ours = {"flows.parquet", "goodput.parquet", "summary.json", "provenance.json"}
    ours |= {"figures", "report.html"}
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
        if measurement.summary.get("anonymous"):
            said |= {
                "host": None,
                "system": platform.system(),
                "command": f"lfn import {measurement.summary['name']}",
            }
        # Last: what is cut before is found damaged.
        files["provenance.json"] = recorded(said, files)
        for name, data in files.items():
            fresh = directory / f".{name}.{unique()}"
            fresh.write_bytes(data)
            fresh.replace(directory / name)
    except OSError as error:
        raise StoreError(f"cannot write results to {directory}: {error.strerror}") from None


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()
