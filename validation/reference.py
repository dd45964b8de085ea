"""Results of the peers, kept in the repository: figures in JSON, thinned windows for plots."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import numpy as np

from .analyse import thinned

if TYPE_CHECKING:
    from lfnlab.analysis.sawtooth import Floats, Trace

    from .scenarios import Run

FOLDER = FilePath(__file__).with_name("reference")
COMPARED = FOLDER / "compared.json"
"""Tables of docs/validation.md, which the site shows."""

Measured = dict[str, float | None]


def save(peer: str, title: str, date: str, measured: Iterable[tuple[Run, Measured]]) -> FilePath:
    """Writes the figures of every run of ``peer``, sampled on ``date``; returns the file."""
    file = FOLDER / f"{peer}.json"
    runs = [
        {"law": run.law, "path": run.path.name, **asdict(run.path), "figures": figures}
        for run, figures in measured
    ]
    # One run a line, so that a change of one run is a change of one line.
    lines = ",\n".join(json.dumps(run) for run in runs)
    head = f'"peer": {json.dumps(title)}, "date": {json.dumps(date)}'
    file.write_text(f'{{{head}, "runs": [\n{lines}\n]}}\n')
    return file


def load(peer: str) -> dict[str, Measured]:
    """The figures of ``peer`` by the run's tag."""
    runs = json.loads((FOLDER / f"{peer}.json").read_text())["runs"]
    return {f"{run['law']}-{run['path']}": run["figures"] for run in runs}


def date(peer: str) -> str:
    """The day on which the last of the samples of ``peer`` were taken."""
    return str(json.loads((FOLDER / f"{peer}.json").read_text())["date"])


def _trace_file(peer: str, run: Run) -> FilePath:
    return FOLDER / "cwnd" / peer / f"{run.tag}.csv.gz"


def save_window(peer: str, run: Run, trace: Trace) -> None:
    """Writes the thinned window of one flow: time in s, cwnd in segments."""
    few = thinned(trace)
    text = io.StringIO()
    np.savetxt(
        text, np.column_stack([few.time_s, few.cwnd_segments]), fmt=("%.3f", "%.6g"), delimiter=","
    )
    file = _trace_file(peer, run)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def load_window(peer: str, run: Run) -> tuple[Floats, Floats]:
    """Time in s and cwnd in segments, as :func:`save_window` left them."""
    table = np.loadtxt(_trace_file(peer, run), delimiter=",")
    return table[:, 0], table[:, 1]


def save_tables(tables: dict[str, list[str]]) -> None:
    """Writes the lines of each peer's tables, one a line."""
    COMPARED.write_text(json.dumps(tables, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def tables(peer: str) -> str:
    """The tables of a peer, in Markdown."""
    return "\n".join(json.loads(COMPARED.read_text(encoding="utf-8"))[peer])
