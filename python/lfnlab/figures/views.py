"""Traces of runs as data for the page: some cases beside each other, and each case alone."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.figures import plot
from lfnlab.figures.looks import looks
from lfnlab.results import shards
from lfnlab.results.runs import route

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lfnlab.results.cases import Group
    from lfnlab.results.runs import Results, Run

BUCKETS = 1000
"""A longer trace becomes the smallest and the largest value of so many intervals."""
_BUCKETS_ALONE = 500
_MOST_TRACES = 12
"""Traces of a chart."""
BUDGET_BYTES = 2_000_000
"""Of the traces of single cases on one page; the page says by which command others are drawn."""

BUDGET_S = 10.0
"""CPU time in which runs that keep no tables are simulated again for them."""

KINDS = (
    ("cwnd", "Congestion window (segments)", plot.cwnd_series),
    ("rate", "Goodput in 1-s bins ({unit})", plot.goodput_series),
    ("queue", "Queue (packets)", plot.queue_series),
    # Of measurements, which have no queue.
    (
        "inflight",
        "Payload in flight (MB)",
        partial(plot.measured_series, column="inflight_bytes", scale=1e6),
    ),
    (
        "window",
        "Receiver's window (MB)",
        partial(plot.measured_series, column="offered_window_bytes", scale=1e6),
    ),
    ("rtt", "Smoothed RTT (ms)", partial(plot.measured_series, column="srtt_s", scale=1e-3)),
)
_OWN_BINS = "Goodput in the intervals of the file ({unit})"


@dataclass(frozen=True)
class Views:
    """Contents of the part of the page with the traces."""

    runs: Sequence[Run]
    """The first run of each case; that at place N has the address ``#case-N``."""
    shown: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Charts by address, with their name and the directory of the run; "all" comes first."""

    def hrefs(self, results: Results) -> dict[Group, str]:
        """The address of each case of the results; none where nothing is shown."""
        places = {run.path: f"#case-{i}" for i, run in enumerate(self.runs)}
        shown = results.first_runs.items() if self.shown else ()
        return {group: places[run.path] for group, run in shown}

    def data(self, root: Path, where: str) -> str:
        """Everything as JSON for ``report.js``; ``where`` leads from the page to the runs."""
        command = f"lfn plot {shlex.quote(str(root))} --figure run --run"
        cases = [[named(run), run.path.name] for run in self.runs]
        tables = ["flows", "goodput" if any(run.is_measured for run in self.runs) else "queues"]
        return _json(
            {
                "views": self.shown,
                "cases": cases,
                "command": command,
                "where": where,
                "tables": tables,
            }
        )


def named(run: Run) -> str:
    """A run in words."""
    return f"{plot.panel_title(run)}, seed {run.seed}"


def first_of_cases(results: Results) -> list[Run]:
    """The first run of each case, each once."""
    found: dict[Path, Run] = {}
    for run in results.first_runs.values():  # factors that change nothing have one run
        found.setdefault(run.path, run)
    return [*found.values()] or plot.first_seed(results)


def views(
    runs: Sequence[Run],
    traced: Sequence[Run],
    step: Callable[[], object] = bool,
) -> Views:
    """The traces of some cases beside each other, and of as many single cases as fit.

    Args:
        runs: the first run of each case.
        traced: the runs beside each other.
        step: called once for each of the cases.
    """
    shown: dict[str, dict[str, Any]] = {}
    if sum(map(_again_s, traced)) > BUDGET_S:
        traced = ()
    left_s = BUDGET_S
    if len(traced) > 1 and (beside := charts(traced, BUCKETS)):
        some = f"{len(traced)} of {len(runs)} cases" if len(traced) < len(runs) else "all cases"
        shown["all"] = {"name": f"{some}, the first seed of each", "charts": beside}
    left = BUDGET_BYTES
    for i in _spread(len(runs)):
        step()
        left_s -= _again_s(runs[i])
        if left <= 0 or left_s < 0:
            continue
        if own := charts([runs[i]], BUCKETS if len(runs) == 1 else _BUCKETS_ALONE):
            shown[f"case-{i}"] = {"name": named(runs[i]), "charts": own}
            left -= len(_json(own))
    order = sorted(shown, key=lambda name: -1 if name == "all" else int(name.partition("-")[2]))
    return Views(runs, {name: shown[name] for name in order})


def _again_s(run: Run) -> float:
    """CPU time to simulate a run again, if it keeps no tables, in seconds."""
    return run.summary["cpu_s"] if shards.holds(run.path) else 0.0


def _spread(count: int) -> list[int]:
    """The numbers below ``count`` in an order in which the first few are evenly spaced."""
    order: dict[int, None] = {}
    step = count
    while len(order) < count:
        order |= dict.fromkeys(range(0, count, max(1, step)))
        step //= 2
    return [*order]


def charts(runs: Sequence[Run], buckets: int) -> list[dict[str, Any]]:
    """Traces of the runs, all on one time axis for each quantity."""
    each = max(1, _MOST_TRACES // max(1, len(runs)))
    changes = sorted({at_s for run in runs for at_s in plot.changes_s(run)})
    found: list[dict[str, Any]] = []
    for name, told, of in KINDS:
        if name == "rate" and all(run.is_measured for run in runs):
            told = _OWN_BINS
        title, samples = plot.in_unit_of_rate(told, of, runs)
        every = [(run, list(samples(run))) for run in runs]
        labelled = [
            pair
            for run, traces in every
            for pair in _labelled(run, traces, each, of_links=name == "queue")
        ]
        if labelled:
            most = max(len(traces) for _, traces in every)
            what = "links" if name == "queue" else "flows"
            shown = f", {each} of {most} {what} of a run" if most > each else ""
            about: dict[str, Any] = {
                "id": f"chart-{name}",
                "title": title + shown,
                "changes": changes,
            }
            # Flows that a tool measured have no common times.
            if any(run.is_measured for run in runs):
                about["spans"] = True
            found.append({**about, **_aligned(labelled, buckets)})
    first_s = min((chart["t"][0] for chart in found), default=0.0)
    last_s = max((chart["t"][-1] for chart in found), default=0.0)
    for chart in found:  # the same ends, so that a time is at one place in all
        before, after = [first_s] * (chart["t"][0] > first_s), [last_s] * (chart["t"][-1] < last_s)
        chart["t"] = [*before, *chart["t"], *after]
        for one in chart["series"]:
            one["y"] = [*[None] * len(before), *one["y"], *[None] * len(after)]
    return found


def _labelled(
    run: Run, traces: Sequence[plot.Series], most: int, *, of_links: bool
) -> Iterator[tuple[str, plot.Series]]:
    flows = run.summary["flows"]
    ways = {flow["id"]: route(flow) for flow in flows} if len(flows) > 1 else {}
    for trace in plot.some(traces, most):
        number, law = trace[:2]
        title = plot.panel_title(run, law)
        if of_links and (len(traces) > 1 or not run.is_dumbbell):
            title += f", {run.summary['links'][number]['id']}"
        elif not of_links and ways:
            title += f" #{number}{f', {ways[number]}' if len(set(ways.values())) > 1 else ''}"
        yield title, trace


def _aligned(labelled: Sequence[tuple[str, plot.Series]], buckets: int) -> dict[str, Any]:
    """Traces on common times: each bucket gives its smallest and largest value, in their order."""
    every = np.unique(np.concatenate([t for _, (_, _, t, _) in labelled]).round(9))
    if every.size <= 2 * buckets:
        t = every
        values = [_on_grid(every, *trace[2:]) for _, trace in labelled]
    else:
        edges = np.linspace(every[0], every[-1], buckets + 1)
        t = np.repeat(edges[:-1], 2) + np.tile([0.25, 0.75], buckets) * (edges[1] - edges[0])
        values = [_extremes(edges, *trace[2:]) for _, trace in labelled]
    # Names may be equal, as those of flows of prototypes: a look for each place.
    styles = looks({i: name or None for i, (_, (_, name, _, _)) in enumerate(labelled)})
    series = []
    for i, ((label, (_, name, _, _)), y) in enumerate(zip(labelled, values, strict=True)):
        alone = not name and len(labelled) == 1
        series.append(
            {
                "label": label,
                "color": None if alone else styles[i].color,
                "dash": [round(1.5 * length, 1) for length in styles[i].dashes],
                "y": _short(y, 5),
            }
        )
    return {"t": _short(t, 6), "series": series}


def _short(values: NDArray[np.float64], digits: int) -> list[float | int | None]:
    """Numbers of a few digits, null for those that are not known."""
    texts = [f"{value:.{digits}g}" for value in values.tolist()]
    short = [None if text == "nan" else float(text) for text in texts]
    return [int(v) if v is not None and v.is_integer() else v for v in short]


def _on_grid(
    grid: NDArray[np.float64], t: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    values = np.full(grid.size, np.nan)
    values[np.searchsorted(grid, t.round(9))] = y
    return values


def _extremes(
    edges: NDArray[np.float64], t: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The smallest and the largest value of each interval, in their order in time."""
    place = np.clip(np.searchsorted(edges, t, "right") - 1, 0, edges.size - 2)
    by_size = np.lexsort((y, place))  # within an interval from small to large
    starts = np.flatnonzero(np.diff(place[by_size], prepend=-1))
    ends = np.append(starts[1:], t.size) - 1
    both = np.sort(np.stack((by_size[starts], by_size[ends])), axis=0)
    values = np.full((edges.size - 1, 2), np.nan)
    values[place[both[0]]] = y[both].T
    return values.reshape(-1)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
