"""Turns a sampled congestion window into the figures that are compared.

The one analysis for every source: real Linux, ns-2, ns-3 and the laboratory. A congestion episode
is a maximal run of samples in which the sender is reducing its window; an epoch is the time from
the start of one episode to the start of the next.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """Samples of one flow over one bottleneck, all arrays of equal length.

    ``reducing`` is true while the sender is in CWR, recovery or loss. ``drops`` counts the packets
    lost at the bottleneck so far, NaN if nobody counts them; ``delivered_b`` the payload bytes
    acknowledged so far.
    """

    time_s: Floats
    cwnd_segments: Floats
    ssthresh_segments: Floats
    reducing: NDArray[np.bool_]
    drops: Floats
    delivered_b: Floats
    rtt_s: Floats


@dataclass(frozen=True)
class Episode:
    """One congestion episode: its time, the window around it, the packets that it lost."""

    start_s: float
    end_s: float
    window_before_segments: float
    window_after_segments: float
    drops: float


@dataclass(frozen=True)
class Figures:
    """What is compared. Everything but the start-up is over whole epochs of the steady state.

    ``period_long_s`` and ``period_short_s`` are the means of the longer and the shorter of each two
    neighbouring epochs: a law that alternates shows there. NaN where the steady state has too few
    episodes to tell.
    """

    goodput_bps: float
    mean_window_segments: float
    mean_rtt_s: float
    episodes: int
    period_s: float
    period_long_s: float
    period_short_s: float
    window_before_segments: float
    window_after_segments: float
    kept_fraction: float
    drops_per_episode: float
    startup_loss_s: float
    startup_peak_segments: float
    startup_drops: float


@dataclass(frozen=True)
class SharedFigures:
    """What is compared when several flows share the bottleneck, all over the steady state.

    ``goodput_bps`` and ``drops_per_s`` are those of all flows together, the others means over
    flows; ``jain`` is Jain's index of the flows' goodputs, and ``shortest_share`` what the first
    flow, which has the shortest RTT, has of them.
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


def episodes(trace: Trace) -> list[Episode]:
    """Finds every congestion episode that begins within the trace and ends within it."""
    edges = np.diff(trace.reducing.astype(np.int8))
    starts = np.flatnonzero(edges == 1) + 1
    found = []
    dropped_before = 0.0
    for start in starts:
        later = np.flatnonzero(~trace.reducing[start:])
        if later.size == 0:
            break
        end = start + later[0]
        dropped = trace.drops[end]
        found.append(
            Episode(
                start_s=float(trace.time_s[start]),
                end_s=float(trace.time_s[end]),
                window_before_segments=float(trace.cwnd_segments[start - 1]),
                window_after_segments=float(trace.cwnd_segments[end]),
                drops=float(dropped - dropped_before),
            )
        )
        dropped_before = dropped
    return found


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def figures(trace: Trace, settle_s: float) -> Figures:
    """Measures ``trace``; the steady state begins at ``settle_s``."""
    found = episodes(trace)
    steady = [episode for episode in found if episode.start_s >= settle_s]
    periods = [late.start_s - early.start_s for early, late in pairwise(steady)]
    # An even number of epochs, so that a law that alternates is averaged over whole cycles.
    if len(periods) > 2 and len(periods) % 2 == 1:
        steady, periods = steady[1:], periods[1:]
    pairs = list(zip(periods[::2], periods[1::2], strict=False))
    if periods:
        inside = (trace.time_s >= steady[0].start_s) & (trace.time_s < steady[-1].start_s)
    else:
        inside = trace.time_s >= settle_s
    time_s, delivered_b = trace.time_s[inside], trace.delivered_b[inside]
    first = found[0] if found else None
    before_loss = trace.time_s <= (first.start_s if first else trace.time_s[-1])
    return Figures(
        goodput_bps=float(8 * (delivered_b[-1] - delivered_b[0]) / (time_s[-1] - time_s[0])),
        mean_window_segments=float(np.mean(trace.cwnd_segments[inside])),
        mean_rtt_s=float(np.mean(trace.rtt_s[inside])),
        episodes=len(steady),
        period_s=_mean(periods),
        period_long_s=_mean([max(pair) for pair in pairs]),
        period_short_s=_mean([min(pair) for pair in pairs]),
        window_before_segments=_mean([episode.window_before_segments for episode in steady]),
        window_after_segments=_mean([episode.window_after_segments for episode in steady]),
        kept_fraction=_mean(
            [episode.window_after_segments / episode.window_before_segments for episode in steady]
        ),
        drops_per_episode=_mean([episode.drops for episode in steady]),
        startup_loss_s=first.start_s if first else float("nan"),
        startup_peak_segments=float(np.max(trace.cwnd_segments[before_loss])),
        startup_drops=first.drops if first else 0,
    )


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
