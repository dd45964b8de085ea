"""Each test case: what must be seen of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from lfnlab.suite.bbr.seen import (
    CRUISE,
    DOWN,
    DRAIN,
    MIN_CWND,
    PROBE_BW,
    PROBE_RTT,
    REFILL,
    RTT_S,
    SAMPLE_S,
    STARTUP,
    STATES,
    UNDO,
    UP,
    Absent,
    Check,
    Phase,
    Seen,
    follows,
    name,
)

# 1, 2: the end of Startup


def plateau(seen: Seen) -> list[Check]:
    """Case 1."""
    startup = seen.phases[0]
    error = seen.bw_bps(startup.end - 1) / 100e6 - 1
    rounds, baseline, count = seen.round[: startup.end + 1], 0.0, 0
    for i in np.flatnonzero(np.diff(rounds)) + 1:
        value = float(seen.bw[i])
        if value >= 1.25 * baseline:
            baseline, count = value, 0
        else:
            count += 1
    return [
        Check("max_bw is within 2 % of the link", abs(error) < 0.02, f"{100 * error:+.2f} %"),
        Check("three rounds grow by less than a quarter", count == 3, f"{count} rounds"),
        follows(seen, startup, STARTUP, DRAIN),
    ]


def startup_loss(seen: Seen) -> list[Check]:
    """Case 2."""
    startup, loss_s = seen.phases[0], seen.changes_s[0]
    left_s = float(seen.t_s[startup.end - 1])
    return [
        Check("it is in Startup until the losses", left_s >= loss_s, f"left at {left_s:.3f} s"),
        Check(
            "it leaves within ten round trips of the losses",
            loss_s <= left_s <= loss_s + 10 * RTT_S,
            f"{(left_s - loss_s) / RTT_S:.1f} round trips",
        ),
        follows(seen, startup, STARTUP, DRAIN),
    ]


# 3, 4: the end of Drain


def gain(seen: Seen, phase: Phase, wanted: float) -> Check:
    """That the pacing gain is this one."""
    gains = seen.pacing_gain[phase.start + 1 : phase.end] / seen.gain_one
    ok = bool(len(gains)) and bool(np.all(np.abs(gains - wanted) < 0.005))
    shown = f"{gains.min():.2f} to {gains.max():.2f}" if len(gains) else "no sample"
    return Check(f"pacing_gain is {wanted:g}", ok, shown)


def inflight_reaches(seen: Seen, phase: Phase, limit: float, what: str) -> Check:
    """That data in flight reach a limit as a phase ends, to a millisecond of sending."""
    end = min(phase.end, len(seen.t_s) - 1)
    near = seen.inflight[max(end - 2, 0) : end + 2]
    sent = seen.pacing_bps[end] / seen.wire_bits * SAMPLE_S
    return Check(
        f"data in flight are at most {what} as it ends",
        bool(near.min() <= limit + sent),
        f"{near.min():.0f} and {limit:.0f} segments",
    )


def drain_by_inflight(seen: Seen) -> list[Check]:
    """Case 3."""
    drain = seen.stay(DRAIN)
    bdp = max(seen.bdp(drain.end - 1), seen.quantum(drain.end - 1))
    rounds = int(seen.round[drain.end] - seen.round[drain.start])
    then = seen.following(drain)
    return [
        gain(seen, drain, 0.5),
        inflight_reaches(seen, drain, bdp, "Inflight(1.0)"),
        Check("before three rounds are over", rounds <= 3, f"{rounds} rounds"),
        Check("it goes to ProbeBW", then is not None and then.state in PROBE_BW, name(then)),
    ]


def drain_by_time(seen: Seen) -> list[Check]:
    """Case 4."""
    drain = seen.stay(DRAIN)
    bdp = max(seen.bdp(drain.end - 1), seen.quantum(drain.end - 1))
    least = float(seen.inflight[drain.start : drain.end].min())
    rounds = int(seen.round[min(drain.end, len(seen.t_s) - 1)] - seen.round[drain.start])
    then = seen.following(drain)
    return [
        Check("data in flight stay above Inflight(1.0)", least > bdp, f"{least:.0f}, {bdp:.0f}"),
        Check("it ends after three rounds", rounds == 4, f"in round {rounds}"),
        Check("it goes to ProbeBW", then is not None and then.state in PROBE_BW, name(then)),
    ]


# 5, 6, 7: the end of ProbeBW_UP


def up_by_plateau(seen: Seen) -> list[Check]:
    """Case 5."""
    up = seen.stay(UP)
    end = min(up.end, len(seen.t_s) - 1)
    rounds = int(seen.round[end] - seen.round[up.start])
    lost = int(seen.retransmits[end] - seen.retransmits[up.start])
    return [
        Check("nothing is lost", lost == 0, f"{lost} segments"),
        Check("it ends in the third round without growth", rounds == 3, f"in round {rounds}"),
        follows(seen, up, UP, DOWN),
    ]


def limited_up_by_loss(seen: Seen) -> list[Check]:
    """Case 6."""
    up = seen.stay(UP, 2.0)
    loss_s = seen.changes_s[-2]
    end = min(up.end, len(seen.t_s) - 1)
    left_s = float(seen.t_s[end])
    before, after = seen.long[seen.at(loss_s) - 1], seen.long[end]
    return [
        Check(
            "it leaves within three round trips of the losses",
            loss_s <= left_s <= loss_s + 3 * RTT_S,
            f"{(left_s - loss_s) / RTT_S:.1f} round trips",
        ),
        follows(seen, up, UP, DOWN),
        Check(
            "inflight_longterm is lowered",
            bool(after < before),
            f"{before:.0f} before, {after:.0f} after",
        ),
    ]


def stays(seen: Seen) -> list[Check]:
    """Case 7."""
    startup = seen.phases[0]
    loss_s = seen.changes_s[0]
    left_s = float(seen.t_s[startup.end - 1])
    up = seen.stay(UP, 2.0)
    then = seen.following(up)
    return [
        Check("it stays in Startup without losses", left_s >= loss_s, f"until {left_s:.3f} s"),
        Check(
            "it stays in UP without losses, but for a probe of the RTT",
            then is None or then.state == PROBE_RTT,
            f"{(seen.t_s[up.end - 1] - seen.t_s[up.start]) / RTT_S:.0f} round trips, "
            f"then {name(then)}",
        ),
    ]


# 8, 9: the end of ProbeBW_DOWN


def down_by_inflight(seen: Seen) -> list[Check]:
    """Case 8."""
    down = next(
        (
            p
            for p in seen.phases
            if p.state == DOWN and seen.long[p.start] > 0 and p.end - p.start > 3
        ),
        None,
    )
    if down is None:
        raise Absent(DOWN)
    long = float(seen.long[down.end - 1])
    headroom = max(long - max(0.15 * long, 1), MIN_CWND)
    limit = min(headroom, max(seen.bdp(down.end - 1), seen.quantum(down.end - 1)))
    return [
        gain(seen, down, 0.9),
        inflight_reaches(seen, down, limit, "0.85 inflight_longterm and Inflight(1.0)"),
        follows(seen, down, DOWN, CRUISE),
    ]


def down_by_time(seen: Seen) -> list[Check]:
    """Case 9."""
    up = seen.first(UP)
    down = up and seen.following(up)
    if down is None or down.state != DOWN:
        raise Absent(DOWN)
    stay_s = float(seen.t_s[min(down.end, len(seen.t_s) - 1)] - seen.t_s[down.start])
    return [
        Check("it lasts 2 to 3 s", 2.0 <= stay_s <= 3.0 + RTT_S, f"{stay_s:.3f} s"),
        follows(seen, down, DOWN, REFILL),
    ]


# 10, 11, 20: ProbeRTT


def probe_rtt(seen: Seen) -> list[Check]:
    """Case 10."""
    found = seen.stay(PROBE_RTT)
    start_s = float(seen.t_s[found.start])
    stay_s = float(seen.t_s[found.end]) - start_s
    half = max(0.5 * seen.bdp(found.end - 1), MIN_CWND)
    most = float(seen.cwnd[found.start + 1 : found.end].max())
    then = seen.following(found)
    after_bps = seen.rate_bps(float(seen.t_s[found.end]) + 0.2, float(seen.t_s[found.end]) + 1.2)
    return [
        Check(
            "it begins after 5 s without a smaller RTT", bool(start_s >= 5.0), f"{start_s:.3f} s"
        ),
        Check(
            "cwnd is at most half a BDP", most <= half + 1, f"{most:.0f} and {half:.0f} segments"
        ),
        Check("it lasts 200 ms and a round", 0.2 <= stay_s <= 0.2 + 3 * RTT_S, f"{stay_s:.3f} s"),
        Check("it goes to ProbeBW", then is not None and then.state in PROBE_BW, name(then)),
        Check(
            "the flow goes on", after_bps > 80e6, f"{after_bps / 1e6:.1f} Mbit/s in the next second"
        ),
    ]


def probe_rtt_in_startup(seen: Seen) -> list[Check]:
    """Case 20."""
    found = seen.stay(PROBE_RTT)
    before = {int(state) for state in seen.state[: found.start]}
    return [
        Check("it comes before the pipe is full", before == {STARTUP}, "from Startup"),
        follows(seen, found, PROBE_RTT, STARTUP),
    ]


# 11, 22: an application that pauses


def skipped_probe_rtt(seen: Seen) -> list[Check]:
    """Case 11."""
    sending = np.flatnonzero((seen.t_s > 4.0) & (seen.inflight > 0))
    if not len(sending):
        return [Check("it sends again", False, "it does not")]
    again_s = float(seen.t_s[sending[0]])
    before = seen.at(again_s) - 1
    states = {int(state) for state in seen.state[before : seen.at(again_s + 4.5)]}
    pace = float(seen.pacing_bps[seen.at(again_s)]) * seen.wire_bits / seen.segment_bits
    return [
        Check(
            "it is idle in ProbeBW for more than 5 s",
            int(seen.state[before]) in PROBE_BW and again_s >= 8.5,
            f"{STATES[seen.state[before]]}, sends again at {again_s:.2f} s",
        ),
        Check(
            "it restarts at bw, less 1 %",
            bool(abs(pace / seen.bw_bps(before) - 0.99) < 0.02),
            f"{pace / 1e6:.1f} Mbit/s of {seen.bw_bps(before) / 1e6:.1f}",
        ),
        Check(
            "it does not enter ProbeRTT in the next 4.5 s",
            PROBE_RTT not in states,
            ", ".join(STATES[state] for state in sorted(states)),
        ),
    ]


def limited_refill(seen: Seen) -> list[Check]:
    """Case 22."""
    refill = seen.stay(REFILL)
    end = min(refill.end, len(seen.t_s) - 1)
    least = float(seen.inflight[refill.start : end].min())
    before, during = seen.bw_bps(refill.start), seen.bw[refill.start : end + 1]
    # Before the next probe of the RTT, and the next pause.
    from_s = float(seen.t_s[end]) + 0.3
    later, goodput = seen.bw_bps(seen.at(from_s + 1.2)), seen.rate_bps(from_s, from_s + 1.2)
    return [
        Check("little is in flight in REFILL", least < 50, f"{least:.0f} segments at least"),
        Check(
            "max_bw does not change in REFILL",
            bool(np.all(during == during[0])),
            f"{before / 1e6:.1f} Mbit/s",
        ),
        follows(seen, refill, REFILL, UP),
        Check(
            "the flow then fills the link, and max_bw is the link's",
            goodput > 98e6 and later > 98e6,
            f"{goodput / 1e6:.1f} and {later / 1e6:.1f} Mbit/s",
        ),
    ]


# 17: a token-bucket policer


def policed_flow(seen: Seen) -> list[Check]:
    """Case 17."""
    probing = np.flatnonzero(np.isin(seen.state, PROBE_BW))
    if not len(probing):
        raise Absent(DOWN)
    bounded = np.flatnonzero((seen.bw_short > 0) & (seen.short > 0))
    bounded = bounded[bounded > probing[0]]
    last = len(seen.t_s) - 1
    half = seen.at(20.0)
    arrived = (seen.delivered[last] - seen.delivered[half]) * 8 / seen.segment_bits
    again = float(seen.retransmits[last] - seen.retransmits[half])
    lost = float(again / (arrived + again))
    rate_bps = seen.rate_bps(20.0, float(seen.t_s[last]))
    return [
        Check(
            "drops set inflight_shortterm and bw_shortterm",
            bool(len(bounded)),
            f"at {seen.t_s[bounded[0]]:.2f} s" if len(bounded) else "never",
        ),
        Check(
            "the last 20 s have 80 to 100 % of the tokens",
            80e6 <= rate_bps <= 100.5e6,
            f"{rate_bps / 1e6:.1f} Mbit/s",
        ),
        Check("and lose less than 2 %", lost < 0.02, f"{100 * lost:.2f} %"),
    ]


# 12, 13, 14: aggregation, small BDPs


def aggregated_startup(seen: Seen) -> list[Check]:
    """Case 12."""
    startup = seen.phases[0]
    bdp = 100e6 * RTT_S / seen.wire_bits
    most = float(seen.cwnd[: startup.end].max())
    error = seen.bw_bps(startup.end - 1) / 100e6 - 1
    return [
        Check("cwnd exceeds 2 BDP", most > 2 * bdp, f"{most / bdp:.2f} BDP"),
        Check(
            "Startup finds all of the bandwidth of the link",
            error > -0.02,
            f"{100 * error:+.1f} %, after {seen.t_s[startup.end - 1]:.2f} s",
        ),
    ]


def aggregated_cruise(seen: Seen) -> list[Check]:
    """Case 13."""
    from_s = seen.changes_s[0]
    i, to_s = seen.at(from_s) - 1, from_s + 1.4
    bdp = seen.bdp(i)
    during = float(np.median(seen.cwnd[seen.at(from_s + 0.2) : seen.at(to_s)]))
    rate_bps = seen.rate_bps(from_s + 0.2, to_s)
    in_cruise = seen.state[i] == CRUISE
    return [
        Check("it begins in CRUISE", bool(in_cruise), STATES[seen.state[i]]),
        Check(
            "cwnd grows by what the bursts bring",
            during > seen.cwnd[i] and during > 2 * bdp,
            f"{seen.cwnd[i] / bdp:.2f} BDP before, {during / bdp:.2f} BDP then",
        ),
        Check("the link stays used", rate_bps > 95e6, f"{rate_bps / 1e6:.1f} of 100 Mbit/s"),
    ]


def small(seen: Seen) -> list[Check]:
    """Case 14."""
    settled = seen.at(10.0)
    least = float(seen.cwnd[settled:].min())
    cruise = np.flatnonzero((seen.state == CRUISE) & (seen.t_s > 10.0))
    pace = float(np.median(seen.pacing_bps[cruise])) * seen.wire_bits / seen.segment_bits
    rate_bps = seen.rate_bps(10.0, float(seen.t_s[-1]))
    return [
        Check("cwnd is never below 4", least >= MIN_CWND, f"{least:.0f} segments"),
        Check(
            "the pacing rate of CRUISE is that of the link less 1 %",
            0.94 * 64e3 <= pace <= 1.01 * 64e3,
            f"{pace / 1e3:.1f} kbit/s",
        ),
        Check("the link is used", rate_bps > 0.95 * 64e3, f"{rate_bps / 1e3:.1f} of 64 kbit/s"),
    ]


# 15, 16: ten times as much, and a tenth


def ten_times(seen: Seen) -> list[Check]:
    """Case 15: growth by 1.25 a round while the bound allows it, and the bound by powers of two."""
    most = math.ceil(math.log(10, 1.25)) + math.ceil(math.log2(100e6 * RTT_S / seen.wire_bits))
    says = f"one stay in UP of at most {most} rounds finds 95 % of 100 Mbit/s"
    stays = [p for p in seen.phases if p.state == UP and seen.t_s[p.start] > 5.0]
    found = [p for p in stays if seen.bw_bps(p.end - 1) > 95e6]
    if not found:
        return [Check(says, False, "none finds it")]
    up = found[0]
    rounds = int(seen.round[up.end - 1] - seen.round[up.start]) + 1
    edges = [up.start, *(np.flatnonzero(np.diff(seen.round[up.start : up.end])) + up.start + 1)]
    # While the bound limits the flow: then its window is full.
    full = [i for i in edges if seen.inflight[i] >= 0.9 * seen.long[i]]
    steps = [int(seen.long[b] - seen.long[a]) for a, b in pairwise(full)]
    doubles = len(steps) > 3 and all(2 * a - 2 <= b <= 2 * a + 2 for a, b in pairwise(steps))
    return [
        Check("inflight_longterm grows by steps that double", doubles, f"steps {steps}"),
        Check(says, rounds <= most, f"{rounds} rounds"),
    ]


def a_tenth(seen: Seen) -> list[Check]:
    """Case 16."""
    changed = seen.at(5.0)
    half = float(seen.bw[changed - 1]) / 2
    low = np.flatnonzero((seen.t_s > 5.0) & (seen.bw_short > 0) & (seen.bw_short < half))
    rounds = int(seen.round[low[0]] - seen.round[changed]) if len(low) else 10**6
    shown = f"in round {rounds}, {seen.t_s[low[0]] - 5:.2f} s" if len(low) else "never"
    ups = [p for p in seen.phases if p.state == UP and seen.t_s[p.start] > 5.0]
    if len(ups) < 3:
        return [Check("two cycles pass", False, f"{len(ups)} stays in UP")]
    at = ups[2].start
    return [
        Check("bw_shortterm is half of bw before, or less, in ten rounds", rounds <= 10, shown),
        Check(
            "max_bw is within 5 % of 10 Mbit/s two cycles later",
            abs(seen.bw_bps(at) / 10e6 - 1) < 0.05,
            f"{seen.bw_bps(at) / 1e6:.2f} Mbit/s at {seen.t_s[at]:.1f} s",
        ),
    ]


# 18, 19: spurious recovery


def spurious(kind: int, what: str) -> Callable[[Seen], list[Check]]:
    """Cases 18 and 19."""

    def checks(seen: Seen) -> list[Check]:
        from_s = seen.changes_s[0]
        began = [t for t, event in seen.events if event == kind and t > from_s]
        undone = [t for t, event in seen.events if event == UNDO and t > from_s]
        if not began or not undone:
            return [
                Check(
                    f"a spurious {what} is undone",
                    False,
                    f"{len(began)} began, {len(undone)} undone",
                )
            ]
        before, after = seen.at(from_s) - 1, seen.at(undone[0]) + 1
        restored = all(
            now == 0 or (then != 0 and now >= then)
            for then, now in (
                (values[before], values[after]) for values in (seen.long, seen.short, seen.bw_short)
            )
        )
        return [
            Check(f"a spurious {what} is undone", True, f"{undone[0] - began[0]:.3f} s later"),
            Check(
                "the bounds are no lower than before",
                bool(restored),
                f"inflight_longterm {seen.long[before]:.0f} before, {seen.long[after]:.0f} after "
                "(0: none)",
            ),
            Check(
                "the flow probes for bandwidth again",
                int(seen.state[after]) in (REFILL, UP),
                f"{STATES[seen.state[before]]} before, {STATES[seen.state[after]]} after",
            ),
        ]

    return checks


# 21: a loss in ProbeBW_UP


def up_by_loss(seen: Seen) -> list[Check]:
    """Case 21."""
    loss_s = seen.changes_s[0]
    i = seen.at(loss_s) - 1
    up = next((p for p in seen.phases if p.start <= i < p.end), None)
    if up is None or up.state != UP:
        raise Absent(UP)
    end = min(up.end + 1, len(seen.t_s) - 1)
    left_s = float(seen.t_s[min(up.end, len(seen.t_s) - 1)])
    least = 0.7 * min(seen.bdp(i), seen.cwnd[i])
    return [
        Check(
            "inflight_longterm is set before",
            bool(seen.long[i] > 0),
            f"{seen.long[i]:.0f} segments",
        ),
        Check(
            "it leaves within two round trips of the losses",
            left_s <= loss_s + 2 * RTT_S + 0.02,
            f"{(left_s - loss_s) / RTT_S:.1f} round trips",
        ),
        follows(seen, up, UP, DOWN),
        Check(
            "inflight_longterm falls, to no less than 0.7 of min(BDP, cwnd)",
            bool(least - 1 <= seen.long[end] < seen.long[i]),
            f"{seen.long[i]:.0f} to {seen.long[end]:.0f}; 0.7 is {least:.0f}",
        ),
    ]
