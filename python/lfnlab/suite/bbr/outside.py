"""Test cases that rate, window and data in flight decide, for any law or controller.

Ten cases ask for a state or a variable of BBR, which another's controller does not show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lfnlab.scenario.elements import Application, Change
from lfnlab.suite.bbr import paths
from lfnlab.suite.bbr.seen import FAST, MIN_CWND, RTT_S, TIMEOUT, UNDO, Check, Flow

if TYPE_CHECKING:
    from lfnlab.scenario.builder import Scenario

LINK_BPS, TOKENS_BPS, ON_BPS = 100e6, 100e6, 90e6


@dataclass(frozen=True)
class Outside:
    """A case that is judged from outside."""

    path: Scenario
    checks: Callable[[Flow], list[Check]]


def _bdp(flow: Flow, rate_bps: float = LINK_BPS) -> float:
    """Of the path, in segments."""
    return rate_bps * RTT_S / flow.wire_bits


def _filled(flow: Flow, from_s: float, to_s: float, least: float = 0.95 * LINK_BPS) -> Check:
    rate_bps = flow.rate_bps(from_s, to_s)
    says = f"at least {least / 1e6:.4g} Mbit/s from {from_s:g} to {to_s:g} s"
    return Check(says, rate_bps >= least, f"{rate_bps / 1e6:.4g} Mbit/s")


def _plateau(flow: Flow) -> list[Check]:
    lost = int(flow.retransmits[flow.at(2.0)])
    return [
        _filled(flow, 1.0, 2.0),
        Check("growth ends without a loss, in a buffer of 4 BDP", lost == 0, f"{lost} lost"),
    ]


def _drain(flow: Flow) -> list[Check]:
    bdp, end = _bdp(flow), flow.at(2.0)
    over = np.flatnonzero(flow.inflight[:end] > 1.2 * bdp)
    if not len(over):
        return [Check("more than 1.2 BDP is in flight as it starts", False, "never")]
    peak = int(np.argmax(flow.inflight[:end]))
    least = float(flow.inflight[peak : flow.at(flow.t_s[peak] + 10 * RTT_S)].min())
    says = "data in flight fall to 1.05 BDP within ten round trips of their peak"
    return [Check(says, least <= 1.05 * bdp, f"{least / bdp:.2f} BDP")]


def _probe_rtt(flow: Flow) -> list[Check]:
    low = flow.inflight <= max(0.5 * _bdp(flow), MIN_CWND) + 1
    low[: flow.at(2.0)] = False
    edges = np.flatnonzero(np.diff(np.concatenate(([0], low.astype(int), [0]))))
    stays = [(flow.t_s[a], flow.t_s[b - 1] - flow.t_s[a]) for a, b in edges.reshape(-1, 2)]
    long = [stay for stay in stays if stay[1] >= 0.18]
    says = "at most half a BDP is in flight for 0.2 s, once in 13 s"
    if not long:
        longest = max((stay[1] for stay in stays), default=0.0)
        return [Check(says, False, f"for {longest:.3f} s at most")]
    end_s = float(sum(long[0]))
    return [
        Check(says, True, f"at {long[0][0]:.2f} s, for {long[0][1]:.3f} s"),
        _filled(flow, round(end_s + 0.2, 2), round(end_s + 1.2, 2), 0.8 * LINK_BPS),
    ]


def _idle(flow: Flow) -> list[Check]:
    again, end = flow.at(9.3), flow.at(11.8)
    usual = float(np.median(flow.inflight[again:end]))
    least = float(flow.inflight[again:end].min())
    return [
        _filled(flow, 9.3, 11.8, 0.95 * ON_BPS),
        Check(
            "data in flight do not fall below 0.6 of their median after the pause",
            least >= 0.6 * usual,
            f"{least:.0f} of {usual:.0f} segments",
        ),
    ]


def _aggregated_start(flow: Flow) -> list[Check]:
    bdp = _bdp(flow)
    most = float(flow.cwnd[flow.at(1.0) : flow.at(1.9)].max())
    return [
        Check("cwnd is above 2 BDP", most > 2 * bdp, f"{most / bdp:.2f} BDP"),
        _filled(flow, 1.0, 1.9),
    ]


def _small(flow: Flow) -> list[Check]:
    least = float(flow.cwnd[flow.at(10.0) :].min())
    return [
        Check("cwnd is never below 4", least >= MIN_CWND, f"{least:.4g} segments"),
        _filled(flow, 10.0, 59.0, 0.95 * 64e3),
    ]


def _ten_times(flow: Flow) -> list[Check]:
    starts = np.arange(5.0, 24.0, 0.1)
    full = [t for t in starts if flow.rate_bps(t, t + 1.0) >= 0.95 * LINK_BPS]
    says = "95 % of the new rate for a second, within 20 s"
    return [Check(says, bool(full), f"after {full[0] - 5.0:.1f} s" if full else "never")]


def _a_tenth(flow: Flow) -> list[Check]:
    bdp, a, b = _bdp(flow, 0.1 * LINK_BPS), flow.at(20.0), flow.at(29.9)
    usual = float(np.median(flow.inflight[a:b]))
    pace = float(np.median(flow.pacing_bps[a:b])) * flow.wire_bits / flow.segment_bits
    checks = [
        _filled(flow, 20.0, 29.9, 0.095 * LINK_BPS),
        Check(
            "the median of data in flight is at most 2.2 BDP of the new rate",
            usual <= 2.2 * bdp,
            f"{usual / bdp:.2f} BDP",
        ),
    ]
    if pace:
        says = "the median pacing rate is within 5 % of the new rate"
        found = f"{pace / 1e6:.2f} Mbit/s"
        checks.append(Check(says, abs(pace / (0.1 * LINK_BPS) - 1) < 0.05, found))
    return checks


def _policed(flow: Flow) -> list[Check]:
    a, last = flow.at(20.0), len(flow.t_s) - 1
    arrived = (flow.delivered[last] - flow.delivered[a]) * 8 / flow.segment_bits
    again = float(flow.retransmits[last] - flow.retransmits[a])
    lost = float(again / max(arrived + again, 1.0))
    return [
        _filled(flow, 20.0, 39.9, 0.8 * TOKENS_BPS),
        Check("at most 2 % are lost", lost <= 0.02, f"{100 * lost:.2f} %"),
    ]


def _spurious(kind: int, what: str, end_s: float) -> Callable[[Flow], list[Check]]:
    def checks(flow: Flow) -> list[Check]:
        kinds = {event for t, event in flow.events if 3.0 < t < end_s + 1.0}
        before = float(flow.cwnd[flow.at(2.99)])
        after = float(flow.cwnd[flow.at(end_s)])
        return [
            Check(
                f"a spurious {what} is found so", {kind, UNDO} <= kinds, f"events {sorted(kinds)}"
            ),
            Check(
                "the window is back, to 80 %",  # that of BBR differs so much between phases
                after >= 0.8 * before,
                f"{before:.0f} before, {after:.0f} after",
            ),
            _filled(flow, end_s, end_s + 1.0),
        ]

    return checks


def _changed(*changes: Change) -> Scenario:
    return paths.path().with_changes(*changes)


def _on_and_off() -> Scenario:
    made = paths.path(duration="12s")
    application = Application(rate=f"{ON_BPS:.0f}bit/s", on="3s", off="6s")
    return replace(made, flows=tuple(replace(f, application=application) for f in made.flows))


OUTSIDE: dict[int, Outside] = {
    1: Outside(paths.path(duration="13s"), _plateau),
    3: Outside(paths.path(duration="13s"), _drain),
    10: Outside(paths.path(duration="13s"), _probe_rtt),
    11: Outside(_on_and_off(), _idle),
    12: Outside(paths.path(duration="2s").with_changes(*paths.gated(0.0, 1.9)), _aggregated_start),
    13: Outside(_changed(*paths.gated(3.0, 4.5)), lambda flow: [_filled(flow, 3.2, 4.4)]),
    14: Outside(
        paths.path(rate="64kbit/s", buffer="20 packets", rtt="10ms", duration="60s"), _small
    ),
    15: Outside(
        paths.path(rate="10Mbit/s", buffer="16 packets", duration="25s").with_changes(
            Change(at="5s", link="forward", rate="100Mbit/s")
        ),
        _ten_times,
    ),
    16: Outside(
        paths.path(buffer="0.5bdp", duration="30s").with_changes(
            Change(at="5s", link="forward", rate="10Mbit/s")
        ),
        _a_tenth,
    ),
    17: Outside(paths.policed(), _policed),
    18: Outside(
        _changed(
            Change(at="3s", link="forward", delay="15ms"),
            Change(at="3.003s", link="forward", delay="0ms"),
        ),
        _spurious(FAST, "fast recovery", 3.5),
    ),
    19: Outside(
        _changed(
            Change(at="3s", link="forward", down=True),
            Change(at="3.6s", link="forward", down=False),
        ),
        _spurious(TIMEOUT, "timeout", 3.9),
    ),
}
"""By number of the case."""

WHY_NOT: dict[int, str] = {
    2: "an application-limited flow shows no end of Startup in its rate",
    4: "Drain's begin and rounds are not seen",
    5: "UP's begin and rounds are not seen",
    6: "inflight_longterm is not seen",
    7: "an application-limited flow shows no end of UP in its rate",
    8: "DOWN and inflight_longterm are not seen",
    9: "DOWN and REFILL are not seen",
    20: "Startup after the probe is not seen",
    21: "UP and inflight_longterm are not seen",
    22: "REFILL and max_bw are not seen",
}
"""The other cases."""
