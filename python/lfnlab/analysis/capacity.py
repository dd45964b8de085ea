"""Capacity of the bottleneck of a run, of its flows' payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lfnlab import metrics
from lfnlab.analysis.run_length import FRAMING_BYTES

if TYPE_CHECKING:
    from lfnlab.results.runs import Run
    from lfnlab.results.summary import FlowSummary, LinkSummary

IP_BYTES = 1500
"""Of the packets in which the rate of a trace is told."""
DEVICE_BYTES = 4
"""Of mahimahi's device, in place of framing on a link that follows a trace."""
OPPORTUNITY_BYTES = IP_BYTES + DEVICE_BYTES
"""That an opportunity of a trace carries at most."""


def wire_bytes(run: Run, link: LinkSummary, flow: FlowSummary) -> int:
    """Size of a flow's full packet on a link, in bytes."""
    if "opportunities" not in link:
        return flow["wire_bytes"]
    compat = run.scenario.check().to_document()["compat"]
    return flow["wire_bytes"] - FRAMING_BYTES[compat] + DEVICE_BYTES


def payload_bps(run: Run, start_s: float | None = None) -> float:
    """Payload of the first flow's packets that the first link can carry, in bit/s.

    Args:
        run: with one size of packets.
        start_s: from when on; default the end of the warm-up. On a link that follows a trace the
            opportunities since the warm-up count, or from a ``start_s`` on the trace's mean rate.
    """
    summary = run.summary
    link, flow = summary["links"][0], summary["flows"][0]
    end_s, begin_s = summary["sim_s"], summary["warmup_s"] if start_s is None else start_s
    rates = [(rate["from_s"], float(rate["rate_bps"])) for rate in link["rates"]]
    rate_bps = metrics.mean_rate(rates, begin_s, end_s)
    if "opportunities" in link:
        rate_bps *= OPPORTUNITY_BYTES / IP_BYTES
        if start_s is None and (count := link["opportunities"]) is not None:
            rate_bps = count * OPPORTUNITY_BYTES * 8 / (end_s - begin_s)
    return rate_bps * flow["segment_bytes"] / wire_bytes(run, link, flow)
