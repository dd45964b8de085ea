"""The 22 cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lfnlab.suite.bbr import checks, paths
from lfnlab.suite.bbr.seen import FAST, TIMEOUT

if TYPE_CHECKING:
    from lfnlab.scenario.builder import Scenario
    from lfnlab.suite.bbr.seen import Check, Seen


@dataclass(frozen=True)
class Example:
    """A case of the draft."""

    number: int
    title: str
    sentence: str
    """The sentence of the draft that it tests."""
    path: Scenario
    checks: Callable[[Seen], list[Check]]
    change: Callable[[Seen, Scenario], Scenario] | None = None
    """Adds the change on the way, given a run without it."""


EXAMPLES: tuple[Example, ...] = (
    Example(
        1,
        "Exiting STARTUP on bandwidth plateau",
        "Verify that after 3 consecutive rounds where the delivery rate grows by less than 25% "
        "[...] full_bw_now and full_bw_reached are set to true.",
        paths.path(),
        checks.plateau,
    ),
    Example(
        2,
        "Exiting STARTUP on loss when application-limited",
        "Verify the connection [...] exits STARTUP, and transitions to DRAIN, demonstrating "
        "that loss triggers the end of STARTUP even when bandwidth samples are "
        "application-limited.",
        paths.limited(duration="3s").with_changes(*paths.lossy(1.0, 1.5, 0.05)),
        checks.startup_loss,
    ),
    Example(
        3,
        "Exiting DRAIN based on inflight",
        "Verify that when C.inflight drops below or equal to BBRInflight(1.0), the connection "
        "exits DRAIN and transitions to PROBE_BW.",
        paths.path(),
        checks.drain_by_inflight,
    ),
    Example(
        4,
        "Exiting DRAIN based on time",
        "Verify that after 3 round trips in DRAIN, the connection exits DRAIN and transitions "
        "to PROBE_BW even though C.inflight has not reached the target BDP.",
        paths.path(),
        checks.drain_by_time,
        paths.slower_drain,
    ),
    Example(
        5,
        "Exiting PROBE_UP on bandwidth plateau",
        "Verify that BBRIsTimeToGoDown() triggers when BBR.full_bw_now is set to true after 3 "
        "consecutive rounds where the delivery rate grows by less than 25%.",
        paths.path(),
        checks.up_by_plateau,
    ),
    Example(
        6,
        "Exiting PROBE_UP on loss when application-limited",
        "Verify the connection transitions to PROBE_DOWN and BBR.inflight_longterm is updated "
        "appropriately, regardless of the application-limited state.",
        paths.losses_to_probe_bw(paths.limited(duration="10s")),
        checks.limited_up_by_loss,
        paths.loss_in_limited_up,
    ),
    Example(
        7,
        "Never exiting PROBE_UP (or STARTUP) when application-limited with no loss",
        "Verify that as long as there is no loss and the rounds are application-limited, the "
        "connection stays in PROBE_UP (or STARTUP) indefinitely.",
        paths.losses_to_probe_bw(paths.limited(duration="12s")),
        checks.stays,
    ),
    Example(
        8,
        "Exiting PROBE_DOWN on inflight",
        "Wait for the queue to drain and C.inflight to fall below or equal to both "
        "BBRInflightWithHeadroom() and BBRInflight(1.0). Verify the connection transitions to "
        "PROBE_CRUISE.",
        paths.path(buffer="0.5bdp", duration="15s"),
        checks.down_by_inflight,
    ),
    Example(
        9,
        "Exiting PROBE_DOWN after max time",
        "Verify the connection transitions directly to PROBE_REFILL, bypassing PROBE_CRUISE.",
        paths.later_minimum(),
        checks.down_by_time,
        paths.slower_down,
    ),
    Example(
        10,
        "Entering and exiting PROBE_RTT",
        "Verify the connection correctly exits PROBE_RTT, transitions back to PROBE_BW (since "
        "BBR.full_bw_reached is true), and resumes sending.",
        paths.path(),
        checks.probe_rtt,
    ),
    Example(
        11,
        "Skipping PROBE_RTT due to application-limited sending",
        "Verify the connection skips entering PROBE_RTT because BBR.idle_restart is true and "
        "idleness is deemed a sufficient attempt to drain the queue.",
        paths.busy("14s"),
        checks.skipped_probe_rtt,
        paths.idle,
    ),
    Example(
        12,
        "Achieving expected STARTUP bandwidth on a link with aggregation",
        "Verify that BBR.extra_acked is calculated correctly from the bursty ACK arrivals and "
        "that C.cwnd > 2 * BDP.",
        paths.path(duration="2s").with_changes(*paths.gated(0.0, 1.9)),
        checks.aggregated_startup,
    ),
    Example(
        13,
        "Achieving expected cruise bandwidth on a link with aggregation",
        "Verify that C.cwnd is augmented by BBR.extra_acked, preventing the connection from "
        "stalling during inter-ACK silences and maintaining full utilization.",
        paths.path(),
        checks.aggregated_cruise,
        paths.gate_in_cruise,
    ),
    Example(
        14,
        "Correctly managing sub-packet BDPs",
        "Verify that BBR.MinPipeCwnd (4 packets) acts as a floor for C.cwnd.",
        paths.path(rate="64kbit/s", buffer="20 packets", rtt="10ms", duration="60s"),
        checks.small,
    ),
    Example(
        15,
        "Increasing bandwidth 10x and ensuring full bandwidth is reached",
        "Verify that during PROBE_UP, the step size added to BBR.inflight_longterm doubles each"
        " round trip (resulting in exponential growth).",
        paths.path(rate="10Mbit/s", buffer="16 packets", duration="25s"),
        checks.ten_times,
        paths.faster,
    ),
    Example(
        16,
        "Decreasing bandwidth 10x and ensuring max bandwidth adapts down",
        "Verify that after the BBR.max_bw window expires (2 PROBE_BW cycles, or "
        "BBR.MaxBwFilterLen), BBR.max_bw drops to the new 10 Mbit/s limit, matching the path's "
        "delivery rate.",
        paths.path(buffer="0.5bdp", duration="30s"),
        checks.a_tenth,
        paths.slower,
    ),
    Example(
        17,
        "Handling token bucket policers",
        "Ensure BBR eventually reaches a stable operating point that conforms to the token rate"
        " without excessive continuous packet loss.",
        paths.policed(),
        checks.policed_flow,
    ),
    Example(
        18,
        "Handling spurious fast recovery",
        "Ensure the connection seamlessly returns to its previous state (e.g., PROBE_UP).",
        paths.path(),
        checks.spurious(FAST, "fast recovery"),
        paths.overtaken,
    ),
    Example(
        19,
        "Handling spurious RTO recovery",
        "Ensure the connection seamlessly returns to its previous state (e.g., PROBE_UP).",
        paths.path(),
        checks.spurious(TIMEOUT, "RTO recovery"),
        paths.held,
    ),
    Example(
        20,
        "Entering and exiting PROBE_RTT during STARTUP",
        "Verify that upon exiting PROBE_RTT, the connection correctly transitions back to "
        "STARTUP rather than PROBE_BW, allowing it to continue searching for the max bandwidth.",
        paths.limited(),
        checks.probe_rtt_in_startup,
    ),
    Example(
        21,
        "Handling loss during PROBE_UP after inflight_longterm is set",
        "Verify that the loss causes BBRHandleInflightTooHigh() to execute, scaling down "
        "BBR.inflight_longterm based on BBR.Beta.",
        paths.path(buffer="0.5bdp", duration="15s"),
        checks.up_by_loss,
        paths.loss_in_up,
    ),
    Example(
        22,
        "Handling application-limited sending during PROBE_REFILL",
        "Verify that [...] BBR does not update its max bandwidth estimate with these "
        "artificially low values.",
        paths.busy("8s"),
        checks.limited_refill,
        paths.pause_in_refill,
    ),
)
