"""Turns sampled congestion windows into the figures that are compared with the peers'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from lfnlab.analysis.sawtooth import Figures, Trace, figures


@dataclass(frozen=True)
class SharedFigures:
    """Figures of several flows that share a bottleneck, over the steady state.

    ``goodput_bps`` and ``drops_per_s`` are sums over the flows, the other figures are means over
    flows. ``jain`` is Jain's index of the goodputs. ``shortest_share`` is the first flow's part of
    the sum of goodputs, from 0 to 1; the first flow has the shortest RTT.
    """

    goodput_bps: float
    mean_window_segments: float
    mean_rtt_s: float
    drops_per_s: float
    jain: float
    shortest_share: float


def plain(figures: Figures) -> dict[str, float | None]:
    """Plain values for JSON, rounded to six digits; NaN becomes None."""
    return _plain(asdict(figures))


def _plain(values: Mapping[str, float]) -> dict[str, float | None]:
    return {
        name: None if np.isnan(value) else float(f"{value:.6g}") for name, value in values.items()
    }


def shared_figures(traces: Sequence[Trace], settle_s: float) -> SharedFigures:
    """Measures flows that share a bottleneck, from ``settle_s`` to the end of the run."""
    goodputs_bps, windows, rtts_s = [], [], []
    for trace in traces:
        inside = trace.time_s >= settle_s
        time_s, delivered_b = trace.time_s[inside], trace.delivered_b[inside]
        goodputs_bps.append(8 * (delivered_b[-1] - delivered_b[0]) / (time_s[-1] - time_s[0]))
        windows.append(np.mean(trace.cwnd_segments[inside]))
        rtts_s.append(np.mean(trace.rtt_s[inside]))
    # Every flow's trace carries the drops of the whole bottleneck.
    time_s, drops = traces[0].time_s, traces[0].drops
    inside = time_s >= settle_s
    total = float(np.sum(goodputs_bps))
    return SharedFigures(
        goodput_bps=total,
        mean_window_segments=float(np.mean(windows)),
        mean_rtt_s=float(np.mean(rtts_s)),
        drops_per_s=float(
            (drops[inside][-1] - drops[inside][0]) / (time_s[inside][-1] - time_s[inside][0])
        ),
        jain=total**2 / (len(traces) * float(np.sum(np.square(goodputs_bps)))),
        shortest_share=float(goodputs_bps[0] / total),
    )


def measure(replicas: Sequence[Sequence[Trace]], settle_s: float) -> dict[str, float | None]:
    """The figures of one run in plain values.

    One flow: its figures. Several: means over the replicas, and the standard error of each as
    ``FIGURE_se``.
    """
    if len(replicas) == 1:
        return plain(figures(replicas[0][0], settle_s))
    every = [asdict(shared_figures(traces, settle_s)) for traces in replicas]
    columns = {name: np.array([figures[name] for figures in every]) for name in every[0]}
    errors = {
        f"{name}_se": np.std(values, ddof=1) / np.sqrt(len(every))
        for name, values in columns.items()
    }
    return _plain({**{name: np.mean(values) for name, values in columns.items()}, **errors})


def thinned(trace: Trace, most: int = 1500) -> Trace:
    """At most ``most`` samples a trace, evenly chosen, for figures and the committed reference."""
    step = max(1, -(-trace.time_s.size // most))
    return Trace(
        **{name: getattr(trace, name)[::step] for name in trace.__dataclass_fields__},
    )
