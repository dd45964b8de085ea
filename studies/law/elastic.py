"""Can a sender tell elastic cross traffic while the queue is empty? Nimbus's estimate, tried.

Nimbus (Goyal and others, 2018) pulses its rate and looks for its pulses in the rate of the cross
traffic, z = mu S/R - S: mu is the link's rate, S and R are the rates at which the same packets were
sent and delivered. Elastic traffic answers each ACK, so a round trip later it has the pulses, too.
Elasticity is the amplitude of z at the pulses' frequency over the largest at frequencies up to
twice as high; Nimbus takes traffic for elastic from 2 on.

The sender here has the link's rate as a gift. It either holds a queue of 12.5 ms, as Nimbus does,
or sends at half of the link's rate, which leaves the queue empty if the other flow does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from lfnlab import Scenario, Steps, Udp, dumbbell
from lfnlab.env import Sender

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

RATE_BPS, RTT_S = 100e6, 0.04
LINK_BPS = RATE_BPS * 1448 / 1514
"""The link's rate of payload."""
SEGMENT_BITS = 1448 * 8
STEP_S, WINDOW_S, SKIP_S, SECONDS = 0.005, 5.0, 20.0, 60
RATES_S = 0.05
"""Of which S and R are means."""
RECENT = 200
"""Steps back in which every packet under way was sent."""
PULSE_HZ, PULSE = 5.0, 0.25
"""A half sine upwards in a quarter of the period, a flat one downwards in the rest."""
QUEUE_S = 0.0125
OTHERS = ("none", "udp", "cubic")
LOSSES = (0.0, 1e-4, 1e-3)
SEEDS = 5


def elasticities() -> pl.DataFrame:
    """A row a queue, cross traffic and loss: elasticity by windows of 5 s, and the median queue."""
    return pl.DataFrame(
        [
            _row(queue_s, other, loss)
            for queue_s in (QUEUE_S, 0.0)
            for other in OTHERS
            for loss in LOSSES
        ]
    )


def _row(queue_s: float, other: str, loss: float) -> dict[str, Any]:
    cross, queued = _measured(_path(other, loss), queue_s)
    skip = round(SKIP_S / STEP_S)
    found = np.concatenate([elasticity(window) for window in _windows(cross[skip:])])
    return {
        "holds_s": queue_s,
        "beside": other,
        "loss": loss,
        "queue_s": _rounded(np.median(queued[skip:])),
        **{f"p{part}": _rounded(np.percentile(found, part)) for part in (5, 50, 95)},
    }


def _rounded(value: Any) -> float:
    return float(f"{value:.4g}")


def _path(other: str, loss: float) -> Scenario:
    path = dumbbell(
        rate=f"{RATE_BPS:.0f}bit/s",
        rtt=f"{1e3 * RTT_S:g}ms",
        buffer="2bdp",
        loss=loss or None,
        duration=f"{SECONDS}s",
    )
    if other == "udp":
        constant = Steps(each=f"{SECONDS}s", rates=(f"{0.45 * RATE_BPS:.0f}bit/s",))
        return path.with_udp(Udp(steps=constant))
    return path if other == "none" else path.flow(other)


def _measured(path: Scenario, queue_s: float) -> tuple[Numbers, Numbers]:
    """Cross traffic in bit/s and queue in s, a row a step and a column a seed."""
    sender = Sender(path, count=SEEDS, step=f"{1e3 * STEP_S:g}ms", control="rate")
    seen = sender.reset(seed=1)
    base_bps = np.full(SEEDS, LINK_BPS / 2)
    mean_bps = np.zeros(SEEDS)
    times, sent, acked = [0.0], [np.zeros(SEEDS)], [np.zeros(SEEDS)]
    cross, queued = [], []
    while not seen.over.all():
        amplitude = np.minimum(PULSE * LINK_BPS, base_bps)
        seen = sender.step(np.maximum(base_bps + amplitude * _pulse(times[-1]), 1e5))
        times.append(float(seen["time_s"][0]))
        sent.append(sent[-1] + seen["sent"])
        acked.append(sent[-1] - seen["inflight"])
        queued.append(np.maximum(seen["srtt_s"] - seen["min_rtt_s"], 0))
        cross.append(_cross(times, sent, acked))
        mean_bps += 0.02 * (np.maximum(cross[-1], 0) - mean_bps)
        if queue_s and times[-1] > 1:
            wrong = 0.5 * LINK_BPS * (queue_s - queued[-1]) / np.maximum(seen["srtt_s"], RTT_S)
            asked = base_bps + 0.8 * (LINK_BPS - base_bps - mean_bps) + wrong
            base_bps = np.clip(
                base_bps + 0.02 * (asked - base_bps), 0.05 * LINK_BPS, 1.1 * LINK_BPS
            )
    return np.array(cross), np.array(queued)


def _pulse(at_s: float) -> float:
    """From -1/3 to 1, with a mean of 0."""
    phase = at_s * PULSE_HZ % 1
    if phase < 0.25:
        return math.sin(4 * math.pi * phase)
    return -math.sin(math.pi * (phase - 0.25) / 0.75) / 3


def _cross(times: list[float], sent: list[Numbers], acked: list[Numbers]) -> Numbers:
    """Nimbus's estimate z of the rate of the others, from the packets that ACKs told of lately."""
    back = round(RATES_S / STEP_S)
    cross = np.zeros(SEEDS)
    if len(times) <= back:
        return cross
    known = np.array(sent[-RECENT:])
    for place in range(SEEDS):
        first, last = acked[-1 - back][place], acked[-1][place]
        took_s = np.diff(np.interp([first, last], known[:, place], times[-RECENT:]))[0]
        if last > first and took_s > 0:
            sent_bps = (last - first) * SEGMENT_BITS / took_s
            delivered_bps = (last - first) * SEGMENT_BITS / (times[-1] - times[-1 - back])
            cross[place] = LINK_BPS * sent_bps / delivered_bps - sent_bps
    return cross


def _windows(rows: Numbers) -> Iterator[Numbers]:
    length = round(WINDOW_S / STEP_S)
    for at in range(0, len(rows) - length + 1, length):
        yield rows[at : at + length]


def elasticity(window: Numbers) -> Numbers:
    """Amplitude at the pulses' frequency over the largest up to twice as high, a column each."""
    near = np.arange(PULSE_HZ + 0.4, 2 * PULSE_HZ - 0.3, 0.2)
    level = window - window.mean(axis=0)
    own, *others = (goertzel(level, hz) for hz in (PULSE_HZ, *near))
    found: Numbers = own / np.maximum(np.max(others, axis=0), 1e-9)
    return found


def goertzel(rows: Numbers, hz: float) -> Numbers:
    """Amplitude of each column at one frequency, not normalized (Goertzel 1958)."""
    twice = 2 * np.cos(2 * np.pi * hz * STEP_S)
    newer = older = np.zeros(rows.shape[1])
    for row in rows:
        newer, older = row + twice * newer - older, newer
    amplitude: Numbers = np.sqrt(np.maximum(newer**2 + older**2 - twice * newer * older, 0))
    return amplitude
