"""Closed forms that the laboratory must meet: growth, response functions, random loss.

The formulas are integrated over the windows that a run shows just after and just before a loss, so
they test the law and the engine and not the choice of a peak. Recovery itself, about one RTT in
which no law grows, is outside the closed forms and is left out of both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from lfnlab.analysis.sawtooth import Episode, Trace, episodes
from lfnlab.theory import sawtooth_at_loss
from lfnlab.theory.closed import (
    additive_utilization,
    aimd_response,
    cubic_growth_time_s,
    growth_time_s,
    hstcp_increase,
    htcp_time_s,
    random_loss_response,
    scalable_response,
)

from . import ours

AIM = 0.02
#: Bytes of a data packet on the wire (1500 and Ethernet framing).
WIRE_B = 1514


@dataclass(frozen=True)
class Check:
    """One quantity in theory and as measured."""

    what: str
    theory: float
    measured: float
    source: str

    @property
    def relative(self) -> float:
        """Measured minus theory as a fraction of theory."""
        return self.measured / self.theory - 1

    @property
    def within(self) -> bool:
        """Whether the aim is met."""
        return abs(self.relative) <= AIM


@dataclass(frozen=True)
class _Path:
    """A path on which one flow draws its sawtooth; the buffer is in BDPs."""

    rate_bps: float
    rtt_s: float
    buffer_bdp: float
    duration_s: float

    @property
    def bdp_packets(self) -> float:
        return self.rate_bps * self.rtt_s / (8 * WIRE_B)

    @property
    def name(self) -> str:
        return f"{self.rate_bps / 1e9:g} Gbit/s × {self.rtt_s * 1e3:g} ms"

    def rtt_at_s(self, window: float) -> float:
        """The RTT with ``window`` segments in flight: propagation, then the filled queue."""
        return max(self.rtt_s, window * 8 * WIRE_B / self.rate_bps)

    def scenario(self, law: str, loss: float = 0) -> str:
        buffer = max(1, round(self.buffer_bdp * self.bdp_packets))
        # Twenty samples a round trip, unless the run is so long that fewer will do.
        sample_s = max(self.rtt_s / 20, self.duration_s / 200_000)
        return (
            f'schema = 1\nduration = "{self.duration_s:g}s"\nsample = "{sample_s * 1e3:g}ms"\n'
            f'[link]\nrate = "{self.rate_bps / 1e6:g}Mbit/s"\nloss = {loss!r}\n'
            f'[link.queue]\nkind = "drop-tail"\nsize = "{buffer} packets"\n'
            f'[[flow]]\nlaw = "{law}"\nrtt = "{self.rtt_s * 1e3:g}ms"\n'
            f'initial_ssthresh = "{round(self.bdp_packets * 0.9)} packets"\n'
        )


def _cubic_times_s(found: list[Episode]) -> list[float]:
    """Growth time of each epoch of CUBIC (RFC 9438) between ``found``, all episodes of a flow."""
    times = []
    w_max = 0.0
    for this, following in pairwise(found):
        before = this.window_before_segments
        w_max = before * (1 + 0.7) / 2 if before < w_max else before
        times.append(
            cubic_growth_time_s(this.window_after_segments, w_max, following.window_before_segments)
        )
    return times


_INCREASE: dict[str, tuple[Callable[[float], float], str]] = {
    "reno": (lambda _: 1.0, "RFC 5681: one segment a RTT"),
    "hstcp": (hstcp_increase, "RFC 3649, a(w)"),
    "scalable": (lambda w: w * math.log(1.01), "Kelly 2003: 1 % a RTT"),
}

#: Growth from one loss to the next almost without a buffer, so at one RTT: law and path. At
#: 10 Gbit/s the bursts of slow start need a buffer.
_RECOVERIES = [
    ("reno", _Path(1e9, 0.04, 0.02, 420)),
    ("hstcp", _Path(1e9, 0.04, 0.02, 60)),
    ("hstcp", _Path(1e9, 0.1, 0.02, 150)),
    ("hstcp", _Path(1e10, 0.1, 0.5, 200)),
    ("scalable", _Path(1e9, 0.04, 0.02, 30)),
    ("scalable", _Path(1e9, 0.1, 0.02, 60)),
    ("htcp", _Path(1e9, 0.04, 0.02, 60)),
    ("htcp", _Path(1e9, 0.1, 0.02, 120)),
    ("cubic", _Path(1e9, 0.04, 0.02, 150)),
    ("cubic", _Path(1e9, 0.1, 0.02, 250)),
]


def _recovery(law: str, path: _Path, trace: Trace) -> Check:
    every = episodes(trace)
    found = [episode for episode in every if episode.start_s > path.duration_s / 5]
    epochs = list(pairwise(found))
    grown_s = [following.start_s - this.end_s for this, following in epochs]
    if law == "htcp":
        # Its clock starts at the loss, so its epochs are from loss to loss.
        grown_s = [following.start_s - this.start_s for this, following in epochs]
        expected_s = [
            htcp_time_s(
                (following.window_before_segments - this.window_after_segments)
                * path.rtt_s
                / (2 * (1 - this.window_after_segments / this.window_before_segments))
            )
            for this, following in epochs
        ]
        source = "H-TCP: F(T) = W RTT / 2"
    elif law == "cubic":
        expected_s = _cubic_times_s(every)[-len(epochs) :]
        source = "RFC 9438: K and the cubic beyond it"
    else:
        increase, source = _INCREASE[law]
        expected_s = [
            growth_time_s(
                increase,
                this.window_after_segments,
                following.window_before_segments,
                path.rtt_at_s,
            )
            for this, following in epochs
        ]
    return Check(
        f"{law}, {path.name}: time to grow from after a loss to the next, s",
        float(np.mean(expected_s)),
        float(np.mean(grown_s)),
        source,
    )


def _hstcp_mean(loss: float) -> float:
    # The RFC's W(p) takes a(w) and b(w) at the mean window, the sender at the current one. The
    # window does not depend on the RTT, nor on that at a loss.
    return sawtooth_at_loss("hstcp", loss, rtt_s=0.1, kept=1).mean_window


#: Mean window over the sawtooth against the rate of loss events, as p's function.
_RESPONSES: dict[str, tuple[Callable[[float], float], str]] = {
    "reno": (aimd_response, "1.2247 / √p"),
    "hstcp": (_hstcp_mean, "RFC 3649, a(w) and b(w) over one sawtooth"),
    "scalable": (scalable_response, "0.0749 / p"),
}


def _response(law: str, path: _Path, trace: Trace) -> Check:
    """The mean window over round trips for the loss events per packet, both while it grows."""
    found = [episode for episode in episodes(trace) if episode.start_s > path.duration_s / 5]
    windows, packets = [], []
    for this, following in pairwise(found):
        inside = (trace.time_s >= this.end_s) & (trace.time_s < following.start_s)
        cwnd = trace.cwnd_segments[inside][:-1]
        rounds = np.diff(trace.time_s[inside]) / [path.rtt_at_s(window) for window in cwnd]
        packets.append(np.sum(cwnd * rounds))
        windows.append(packets[-1] / np.sum(rounds))
    response, source = _RESPONSES[law]
    return Check(
        f"{law}, {path.name}: mean window for the loss-event rate that the run had",
        response(1 / float(np.mean(packets))),
        float(np.mean(windows)),
        source,
    )


def _growth(law: str, path: _Path, trace: Trace) -> list[Check]:
    checks = [_recovery(law, path, trace)]
    return [*checks, _response(law, path, trace)] if law in _RESPONSES else checks


def _utilization(path: _Path, trace: Trace) -> list[Check]:
    """Reno's share of the link."""
    theory = additive_utilization(path.buffer_bdp)
    inside = trace.time_s > path.duration_s / 5
    time_s, delivered_b = trace.time_s[inside], trace.delivered_b[inside]
    payload_share = (WIRE_B - ours.LINUX_FRAMING_B - ours.LINUX_HEADERS_B) / WIRE_B
    goodput_bps = 8 * (delivered_b[-1] - delivered_b[0]) / (time_s[-1] - time_s[0])
    return [
        Check(
            f"reno, {path.name}, buffer {path.buffer_bdp:g} BDP: utilization",
            theory,
            float(goodput_bps / (payload_share * path.rate_bps)),
            "halving at 1 + q BDPs; 0.75 with no buffer, 1 with one BDP",
        )
    ]


def _random_loss(loss: float, path: _Path, trace: Trace) -> list[Check]:
    """Reno's mean window when each packet is lost with probability ``loss`` by itself."""
    settled = (trace.time_s > path.duration_s / 20) & ~trace.reducing
    return [
        Check(
            f"reno, packets lost with probability {loss:g}: mean window",
            random_loss_response(loss),
            float(np.mean(trace.cwnd_segments[settled])),
            "1.3098 / √p (Dumas, Guillemin, Robert 2002)",
        )
    ]


def _cases() -> Iterator[tuple[str, Callable[[Trace], list[Check]]]]:
    """Scenarios in TOML, each with what its trace must show."""
    for law, path in _RECOVERIES:
        yield path.scenario(law), partial(_growth, law, path)
    for path in (_Path(5e7, 0.04, 1.0, 300), _Path(2e8, 0.04, 0.02, 300)):
        yield path.scenario("reno"), partial(_utilization, path)
    loss, wide = 1e-4, _Path(1e10, 0.05, 1.0, 20_000)
    yield wide.scenario("reno", loss), partial(_random_loss, loss, wide)


def checks() -> list[Check]:
    """Runs the laboratory on every closed form."""
    cases = list(_cases())
    traces = ours.simulate_scenarios([scenario for scenario, _ in cases])
    return [
        check for (_, look), (trace,) in zip(cases, traces, strict=True) for check in look(trace)
    ]
