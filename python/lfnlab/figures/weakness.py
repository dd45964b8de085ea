"""The figure of a weakness: the law over time, and the other one in its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lfnlab import _core
from lfnlab.attacker import in_words
from lfnlab.control_laws import prototype
from lfnlab.figures.columns import Plain
from lfnlab.figures.layout import legend, wrapped
from lfnlab.figures.looks import looks
from lfnlab.figures.plot import house_style
from lfnlab.figures.small import for_page
from lfnlab.results import output
from lfnlab.scenario.builder import toml

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from lfnlab.attacker import Weakness

BIN_S = 0.5
"""Each point is the mean of so long."""
_WIDE_IN, _TALL_IN = 6.0, 2.6

_LABELS = {
    "neighbour": "neighbour (Mbit/s)",
    "queue": "queue (ms)",
    "waste": "retransmissions",
}


def save(weakness: Weakness, file: Path) -> None:
    """Draw a weakness into a PNG.

    Raises:
        StoreError: it cannot be written, or lfn did not write the file that is there.
    """
    with house_style():
        output.write(file, for_page(draw(weakness)) + output.MARK.encode())


def draw(weakness: Weakness) -> Figure:
    """A line for the law and one for the other law in its place, from a run of each."""
    beside = "beside " * (weakness.kind == "neighbour")
    laws = {
        f"{beside}{weakness.law.name}": weakness.law.spelled,
        f"{beside}{weakness.other} in its place": weakness.other,
    }
    with house_style():
        figure = Figure(figsize=(_WIDE_IN, _TALL_IN))
        axes = figure.subplots()
        shown = looks({name: prototype.label(law) for name, law in laws.items()})
        handles = []
        for name, law in laws.items():
            style: Any = {"color": shown[name].color, "ls": shown[name].linestyle}
            axes.plot(*_series(weakness, law), **style)
            handles.append(Line2D([], [], label=name, **style))
        axes.set_xlim(0.0)
        axes.set_ylim(0.0)
        axes.yaxis.set_major_formatter(Plain())
        axes.set_xlabel("time (s)")
        axes.set_ylabel(_LABELS.get(weakness.kind, "goodput (Mbit/s)"))
        axes.set_title(wrapped(in_words(weakness.path), _WIDE_IN - 1.0, 9.0), pad=3)
        legend(figure, handles)
        return figure


def _series(weakness: Weakness, law: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times in s, and the quantity of the harm: Mbit/s, ms or packets."""
    scenario = _core.Scenario(toml(weakness.document(law)), weakness.name)
    (run,) = _core.run_many([scenario], 1, None)
    assert run is not None, "nobody gave it up"
    summary = json.loads(run.summary())
    edges = np.arange(0.0, summary["sim_s"] + BIN_S / 2, BIN_S)
    middles = (edges[1:] + edges[:-1]) / 2
    if weakness.kind == "queue":
        queues = run.table("queues")
        own = queues["link"] == 0
        waits = np.interp(middles, queues["t_s"][own], queues["drain_s"][own])
        return middles, 1e3 * waits
    others = int("neighbour" in weakness.path)
    count = len(summary["flows"]) - others
    wanted = [count] if weakness.kind == "neighbour" else range(count)
    column = "retransmits" if weakness.kind == "waste" else "arrived_bytes"
    flows = run.table("flows")
    total = np.zeros(len(edges))
    for flow in wanted:
        own = flows["flow"] == flow
        total += np.interp(edges, flows["t_s"][own], flows[column][own].astype(float), left=0.0)
    if weakness.kind == "waste":
        return edges, total
    return middles, np.diff(total) * 8.0 / BIN_S / 1e6
