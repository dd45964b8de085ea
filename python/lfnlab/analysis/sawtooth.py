"""Sawtooth of a congestion window: congestion episodes, and figures over epochs.

Used for every source: simulator, test bed, Linux, ns-2 and ns-3. A congestion episode is a maximal
run of samples in which the sender reduces its window. An epoch is the time from the start of one
episode to the start of the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lfnlab.results.runs import Run

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """Samples of one flow over one bottleneck, all arrays of equal length.

    ``reducing`` is true while the sender is in CWR, recovery or loss. ``drops`` counts the packets
    lost at the bottleneck so far, NaN if the source does not count them. ``delivered_b`` counts the
    payload bytes acknowledged so far.
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
    """Figures to compare. All except start-up figures are over whole epochs of the steady state.

    ``period_long_s`` and ``period_short_s`` are the means of the longer and the shorter epoch of
    each two neighbours; they differ if a law alternates. NaN if the steady state has too few
    episodes.
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


def since(trace: Trace, begin_s: float) -> Trace:
    """The samples of a trace from ``begin_s`` on; drops are counted from there."""
    rest = trace.time_s >= begin_s
    fields = {name: getattr(trace, name)[rest] for name in trace.__dataclass_fields__}
    return Trace(**fields | {"drops": fields["drops"] - fields["drops"][:1]})


def of_run(run: Run, flow: int) -> Trace:
    """A flow of a stored run, simulated or measured, from the end of the warm-up on.

    Drops are those at its :meth:`lfnlab.Run.link`, of other flows too.
    """
    rows = run.table("flows")
    rows = rows.filter(rows["flow"] == flow)
    queues = run.table("queues")
    queues = queues.filter(queues["link"] == run.link([run.summary["flows"][flow]]))
    time_s = rows["t_s"].to_numpy()
    # The last sample of the queue that is no later: on a test bed the two are taken apart.
    last = np.searchsorted(queues["t_s"].to_numpy(), time_s, side="right") - 1
    whole = Trace(
        time_s=time_s,
        cwnd_segments=rows["cwnd_seg"].to_numpy(),
        ssthresh_segments=rows["ssthresh_seg"].to_numpy(),
        reducing=rows["state"].to_numpy() >= 2,
        drops=queues["drops"].to_numpy().astype(float)[np.maximum(last, 0)],
        delivered_b=rows["delivered_bytes"].to_numpy().astype(float),
        rtt_s=rows["srtt_s"].to_numpy(),
    )
    return since(whole, run.summary["warmup_s"])
