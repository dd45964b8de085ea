"""One number of a run, or of a run and the same path with the other flow alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lfnlab import metrics
from lfnlab.analysis.capacity import payload_bps

if TYPE_CHECKING:
    from lfnlab.results.runs import Run
    from lfnlab.results.summary import FlowSummary

    Measure = Callable[[Sequence[Run]], float]


def drop_rate(runs: Sequence[Run]) -> float:
    """Packets that the bottleneck dropped, over those offered to it, since the warm-up."""
    link = runs[0].summary["links"][0]
    return link["drops"] / link["arrivals"] if link["arrivals"] else math.nan


def queue_in_rtts(runs: Sequence[Run]) -> float:
    """Mean waiting time at the bottleneck over the base RTT of the first flow."""
    summary = runs[0].summary
    return summary["links"][0]["mean_queue_s"] / summary["flows"][0]["rtt_s"]


def queue_p99_s(runs: Sequence[Run]) -> float:
    """99th percentile of the waiting time at the bottleneck, which all packets there share."""
    return runs[0].summary["links"][0]["p99_queue_s"]


def efficiency(runs: Sequence[Run]) -> float:
    """Goodput of all flows over what the bottleneck can carry of payload since the warm-up."""
    summary, full_bps = runs[0].summary, payload_bps(runs[0])
    bits = sum(own["delivered_bytes"] * 8.0 for own in summary["flows"])
    seconds = summary["sim_s"] - summary["warmup_s"]
    return bits / seconds / full_bps if full_bps > 0 else math.nan


def jain(runs: Sequence[Run]) -> float:
    """Jain's index of the goodputs since the warm-up."""
    return metrics.jain(runs[0].goodputs)


def share_of_last(runs: Sequence[Run]) -> float:
    """Goodput of the last flow over its fair share, a share of what all have."""
    rates = runs[0].goodputs
    return rates[-1] * len(rates) / sum(rates) if sum(rates) > 0 else math.nan


def share_of_first(runs: Sequence[Run]) -> float:
    """Goodput of the first of two flows over that of both."""
    first, other = runs[0].goodputs
    return first / (first + other) if first + other > 0 else math.nan


def sent_in_outage(start_s: float, end_s: float) -> Measure:
    """Segments that the first flow sends again in this time, for each of its base RTTs."""

    def measure(runs: Sequence[Run]) -> float:
        own = _first(runs[0])
        sent = metrics.segments_sent(
            runs[0].table("flows"), own["segment_bytes"], start_s=start_s, end_s=end_s
        )
        return sent[own["id"]][0] * own["rtt_s"] / (end_s - start_s)

    return measure


def goodput_share(start_s: float, end_s: float) -> Measure:
    """Goodput of all flows in this time over the bottleneck's rate at the end of it."""

    def measure(runs: Sequence[Run]) -> float:
        summary = runs[0].summary
        rates = [(r["from_s"], float(r["rate_bps"])) for r in summary["links"][0]["rates"]]
        goodputs = metrics.goodput(runs[0].table("flows"), start_s=start_s, end_s=end_s)
        return sum(goodputs.values()) / metrics.mean_rate(rates, start_s, end_s)

    return measure


def first_of_rate(runs: Sequence[Run]) -> float:
    """Goodput of the first flow over the bottleneck's rate."""
    return runs[0].goodputs[0] / runs[0].summary["links"][0]["rate_bps"]


def short_flow_rtts(runs: Sequence[Run]) -> float:
    """Median completion time of transfers of less than 100 kB, in base RTTs of the long flow."""
    table = runs[0].table("transfers")
    short = table.filter((table["bytes"] < 100_000) & (table["t_s"] >= runs[0].summary["warmup_s"]))
    if short.height == 0:
        return math.nan
    return float(np.median(short["duration_s"].to_numpy())) / _first(runs[0])["rtt_s"]


def media_loss(runs: Sequence[Run]) -> float:
    """Packets of the UDP source that were dropped or lost, over those it sent."""
    (media,) = runs[0].summary["udp"]
    return (media["dropped"] + media["lost"]) / media["sent"] if media["sent"] else math.nan


def media_delay_p99_s(runs: Sequence[Run]) -> float:
    """99th percentile of the one-way delay of the UDP source since the warm-up."""
    (media,) = runs[0].summary["udp"]
    p99_s = media["p99_delay_s"]
    return math.nan if p99_s is None else p99_s


def dropped_in_a_row(periods: int) -> Measure:
    """The largest share of packets that the bottleneck dropped in each of so many seconds in a row.

    A circuit breaker (RFC 8084) with this threshold would have ended the flows.
    """

    def measure(runs: Sequence[Run]) -> float:
        run = runs[0]
        table = run.table("queues")
        table = table.filter(table["link"] == 0)
        start_s, end_s = run.summary["warmup_s"], run.summary["sim_s"]
        edges_s = np.arange(start_s, end_s, 1.0)
        t_s = table["t_s"].to_numpy()
        places = np.minimum(np.searchsorted(t_s, edges_s), len(t_s) - 1)
        arrivals, drops = (
            np.diff(table[name].to_numpy()[places].astype(float)) for name in ("arrivals", "drops")
        )
        shares = np.divide(drops, arrivals, out=np.zeros_like(drops), where=arrivals > 0)
        if len(shares) < periods:
            return math.nan
        rows = np.lib.stride_tricks.sliding_window_view(shares, periods)
        return float(rows.min(axis=1).max())

    return measure


def tripped(runs: Sequence[Run]) -> float:
    """Share of the flows that a circuit breaker ended."""
    flows = runs[0].summary["flows"]
    return sum("tripped_s" in flow for flow in flows) / len(flows)


def with_timeouts(runs: Sequence[Run]) -> float:
    """Share of the flows that had a retransmission timeout."""
    flows = runs[0].summary["flows"]
    return sum(flow["timeouts"] > 0 for flow in flows) / len(flows)


def last_completion(ideal_s: float) -> Measure:
    """Time until all flows are complete, over that of a full link; infinite if some are not."""

    def measure(runs: Sequence[Run]) -> float:
        flows = runs[0].summary["flows"]
        ends = [
            math.inf if flow["completion_s"] is None else flow["start_s"] + flow["completion_s"]
            for flow in flows
        ]
        last_s = min(max(ends), runs[0].summary["sim_s"])
        return (last_s - min(flow["start_s"] for flow in flows)) / ideal_s

    return measure


# Two runs: the other flow beside the law, and alone


def harm_to_rate(runs: Sequence[Run]) -> float:
    """Harm to the goodput of the other flow."""
    beside, alone = runs
    return metrics.harm(alone.goodputs[-1], beside.goodputs[-1])


def harm_to_delay(runs: Sequence[Run]) -> float:
    """Harm to the mean queueing delay of the other flow."""
    beside, alone = (_excess_s(run) for run in runs)
    return metrics.harm(alone, beside, "less")


def harm_to_loss(runs: Sequence[Run]) -> float:
    """Harm to the share of the other flow's segments that are sent again."""
    beside, alone = (_last(run)["retransmits"] / max(1, _last(run)["sent"]) for run in runs)
    return metrics.harm(alone, beside, "less")


def starved(place: int) -> Measure:
    """Share of the time in which a flow has less than a tenth of half of the link's rate."""

    def measure(runs: Sequence[Run]) -> float:
        run = runs[0]
        flow = run.summary["flows"][place]
        table = run.table("flows")
        _, _, x = metrics.goodput_matrix(
            table.filter(table["flow"] == flow["id"]), 1.0, start_s=run.summary["warmup_s"]
        )
        return metrics.starvation(x[0], run.summary["links"][0]["rate_bps"] / 2)

    return measure


def _first(run: Run) -> FlowSummary:
    return run.summary["flows"][0]


def _last(run: Run) -> FlowSummary:
    return run.summary["flows"][-1]


def _excess_s(run: Run) -> float:
    own = _last(run)
    found = metrics.rtt_excess(
        run.table("flows"), own["id"], own["rtt_s"], start_s=run.summary["warmup_s"]
    )
    return found.mean
