"""Standard metrics, computed from the stored tables of a run.

Each takes numbers or the frames of ``docs/results.md`` (flows, queues, events), and its docstring
gives formula, unit and source; docs/metrics.md is made from them, and
:mod:`lfnlab.analysis.measure` applies them to stored runs. Goodput counts new bytes delivered
in order to the application. An undefined value (all flows silent, a mean of zero) is NaN. An
impossible argument, such as a window longer than the run, raises
:class:`~lfnlab.errors.MetricError`, which names it.

[METR] is draft-irtf-tmrg-metrics-11, which became RFC 5166; [TCPEVAL] draft-irtf-iccrg-tcpeval-01.
"""

from __future__ import annotations

from lfnlab.metrics.delay import completion, queue_empty, queueing_delay, rtt_excess, unfinished
from lfnlab.metrics.loss import (
    loss_bursts,
    loss_event_rate,
    loss_events,
    loss_rate,
    phase_locked,
    retransmission_ratio,
    segments_sent,
)
from lfnlab.metrics.shares import (
    Impact,
    camps,
    efficiency,
    friendliness,
    goodput,
    goodput_bins,
    goodput_matrix,
    jain,
    jain_over_time,
    link_utilisation,
    min_over_max,
    reno_ratio,
    rtt_exponent,
    rtt_fairness,
    utilisation,
)
from lfnlab.metrics.steadiness import (
    convergence,
    cov,
    cov_over_time,
    delta_fair,
    epsilon_fair,
    ramp_up,
    smoothness,
)
from lfnlab.metrics.tables import (
    CoarseSamplesError,
    FirstPassage,
    Spread,
    by_flow,
    mean_rate,
    sampling_s,
    spread,
)

__all__ = [
    "CoarseSamplesError",
    "FirstPassage",
    "Impact",
    "Spread",
    "by_flow",
    "camps",
    "completion",
    "convergence",
    "cov",
    "cov_over_time",
    "delta_fair",
    "efficiency",
    "epsilon_fair",
    "friendliness",
    "goodput",
    "goodput_bins",
    "goodput_matrix",
    "jain",
    "jain_over_time",
    "link_utilisation",
    "loss_bursts",
    "loss_event_rate",
    "loss_events",
    "loss_rate",
    "mean_rate",
    "min_over_max",
    "phase_locked",
    "queue_empty",
    "queueing_delay",
    "ramp_up",
    "reno_ratio",
    "retransmission_ratio",
    "rtt_excess",
    "rtt_exponent",
    "rtt_fairness",
    "sampling_s",
    "segments_sent",
    "smoothness",
    "spread",
    "unfinished",
    "utilisation",
]
