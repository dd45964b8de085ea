"""Metrics of the field, computed from the stored tables of a run alone.

Each takes numbers or the frames of ``docs/results.md`` (flows, queues, events), and its docstring
gives formula, unit and source; docs/metrics.md is made from them, and :mod:`lfnlab.measure` applies
them to stored runs. Goodput counts new bytes delivered in order to the application. What is
undefined (all flows silent, a mean of zero) is NaN. An argument that makes no sense, such as a
window longer than the run, is a :class:`MetricError` that names it.

[METR] is draft-irtf-tmrg-metrics-11, which became RFC 5166; [TCPEVAL] draft-irtf-iccrg-tcpeval-01.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.errors import MetricError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    #: A link's rate in bit/s, or its rates in order of time, each after the second of its begin.
    Rate = float | Sequence[tuple[float, float]]

#: Grid times are multiples of the sample in binary floating point: allow for the last bits.
_SLACK = 1e-9
_FAST_RETRANSMIT, _TIMEOUT, _ECN = 0, 1, 2
_REDUCTIONS = (_FAST_RETRANSMIT, _TIMEOUT, _ECN)


class CoarseSamplesError(MetricError):
    """A metric of what happens between the samples that a run has."""


@dataclass(frozen=True)
class FirstPassage:
    """When something was first reached, or that it was not: then only that it is later.

    ``value`` is the time that it took, or, ``censored``, the time that was looked at without
    seeing it. A mean over runs of which one is censored does not exist.
    """

    value: float
    censored: bool = False

    def __str__(self) -> str:
        return f"> {self.value:g}" if self.censored else f"{self.value:g}"


@dataclass(frozen=True)
class Spread:
    """Of ``n`` values: mean, nearest-rank percentiles, largest.

    The p-th percentile is the smallest value that p % of all do not exceed.
    """

    mean: float
    p50: float
    p95: float
    p99: float
    max: float
    n: int


def spread(values: ArrayLike) -> Spread:
    """Mean, percentiles and largest of values; NaN of none."""
    x = np.asarray(values, dtype=float)
    if x.size == 0:
        return Spread(math.nan, math.nan, math.nan, math.nan, math.nan, 0)
    p50, p95, p99 = np.percentile(x, [50, 95, 99], method="inverted_cdf")
    return Spread(float(np.mean(x)), float(p50), float(p95), float(p99), float(np.max(x)), x.size)


# Rates and shares


def goodput(
    flows: pl.DataFrame, *, start_s: float = 0.0, end_s: float | None = None
) -> dict[int, float]:
    """Goodput of each flow while it lives in the window.

    Formula: 8 (D(t1) - D(t0)) / (t1 - t0), D the bytes delivered in order, t0 the later of the
        window's start and the flow's, t1 the earlier of their ends
    Unit: bit/s
    Source: [METR], throughput; RFC 2647, 3.17
    """
    return {
        flow: 8.0 * (delivered[-1] - delivered[0]) / (t[-1] - t[0]) if t.size > 1 else math.nan
        for flow, (t, delivered) in _counter(flows, "delivered_bytes", start_s, end_s).items()
    }


def goodput_bins(
    flows: pl.DataFrame, *, bin_s: float = 1.0, start_s: float = 0.0, end_s: float | None = None
) -> pl.DataFrame:
    """Goodput of each flow in bins of ``bin_s`` seconds, from its counter of delivered bytes.

    Args:
        flows: the table ``flows`` of a run (columns t_s, flow, delivered_bytes).
        bin_s: width of a bin; a multiple of the sampling grid.
        start_s: start of the first bin.
        end_s: no bin reaches beyond it; default the last sample.

    Returns:
        Columns flow, t_s (end of the bin), goodput_bps; no row for a flow without a whole bin.
    """
    import polars as pl

    _need("flows", flows, "t_s", "flow", "delivered_bytes")
    _positive("bin_s", bin_s)
    frames = []
    for flow, part in by_flow(flows).items():
        last = part["t_s"][-1] if end_s is None else end_s
        ends = _ends(bin_s, start_s, last)
        frames.append(
            pl.DataFrame(
                {
                    "flow": np.full(ends.size, flow, dtype=np.uint32),
                    "t_s": ends,
                    "goodput_bps": _goodputs(part, ends, bin_s, start_s),
                }
            )
        )
    schema = {"flow": pl.UInt32, "t_s": pl.Float64, "goodput_bps": pl.Float64}
    return pl.concat(frames) if frames else pl.DataFrame(schema=schema)


def goodput_matrix(
    flows: pl.DataFrame, bin_s: float, *, start_s: float = 0.0, end_s: float | None = None
) -> tuple[Floats, list[int], Floats]:
    """Goodputs, one row a flow, one column a bin; NaN in a bin that a flow does not live through.

    Returns:
        Ends of the bins in seconds, numbers of the flows, goodputs in bit/s.
    """
    return _binned(flows, "bin_s", bin_s, start_s, end_s)


def utilisation(goodputs_bps: ArrayLike, rate_bps: float) -> float:
    """Share of a link's rate that the flows' goodputs use; below 1 by headers on a full link.

    Formula: sum x_i / C
    Unit: 1
    Source: [METR], throughput
    """
    return float(np.sum(np.asarray(goodputs_bps, dtype=float))) / _positive("rate_bps", rate_bps)


def link_utilisation(
    queues: pl.DataFrame,
    link: int,
    rate_bps: Rate,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> float:
    """Share of the time that a link sends, whatever it sends: headers and other traffic too.

    Formula: 8 (B(t1) - B(t0)) / (C (t1 - t0)), B the bytes that the link has sent, C its mean rate
    Unit: 1
    Source: [TCPEVAL], utilisation of the central link
    """
    t, sent = _link_counter(queues, "sent_bytes", link, start_s, end_s)
    rate = _positive("rate_bps", mean_rate(rate_bps, t[0], t[-1]))
    return float(8.0 * (sent[-1] - sent[0]) / (rate * (t[-1] - t[0])))


def mean_rate(rate_bps: Rate, start_s: float, end_s: float) -> float:
    """Mean rate of a link from one time to another, in bit/s."""
    rates = _rates(rate_bps)
    since = np.clip([*(t for t, _ in rates), math.inf], start_s, end_s)
    return float(np.diff(since) @ [rate for _, rate in rates]) / (end_s - start_s)


def _rates(rate_bps: Rate) -> Sequence[tuple[float, float]]:
    if isinstance(rate_bps, int | float):
        return [(0.0, _positive("rate_bps", rate_bps))]
    return rate_bps


def efficiency(
    goodputs_bps: ArrayLike, rate_bps: float, *, payload_bytes: float, wire_bytes: float
) -> float:
    """Goodput over the most that a link's rate allows in packets of this size.

    Formula: sum x_i / (C payload / wire), with the bytes of a full packet
    Unit: 1
    Source: utilisation as above; that it is of what payload can have is this laboratory's
    """
    _positive("payload_bytes", payload_bytes)
    if wire_bytes < payload_bytes:
        raise MetricError(f"wire_bytes: {wire_bytes:g}; allowed: at least the payload's")
    return utilisation(goodputs_bps, rate_bps) * wire_bytes / payload_bytes


# Fairness


def jain(goodputs: ArrayLike) -> float:
    """Jain's fairness index, from 1/n (one flow has all) to 1 (all have the same).

    Formula: (sum x)^2 / (n sum x^2)
    Unit: 1
    Source: Jain, Chiu, Hawe, DEC-TR-301, 1984
    """
    x = np.asarray(goodputs, dtype=float)
    squares = float(np.sum(x * x))
    return float(np.sum(x)) ** 2 / (x.size * squares) if squares > 0 else math.nan


def jain_over_time(
    flows: pl.DataFrame, window_s: float, *, start_s: float = 0.0, end_s: float | None = None
) -> pl.DataFrame:
    """Jain's index in each window, over the flows that live all through it.

    Formula: (sum x)^2 / (n sum x^2) of the goodputs in each window; a window with fewer than two
        flows, or in which nothing was delivered, is left out
    Unit: 1
    Source: Westwood+ study (over time); CW-HSTCP study (over time scales); [METR], fairness

    Returns:
        Columns t_s (end of the window), jain.
    """
    import polars as pl

    ends, _, x = _binned(flows, "window_s", window_s, start_s, end_s)
    values = [
        jain(own) if (own := column[~np.isnan(column)]).size > 1 else math.nan for column in x.T
    ]
    return pl.DataFrame({"t_s": ends, "jain": values}).filter(~pl.col("jain").is_nan())


def min_over_max(goodputs: ArrayLike) -> float:
    """Smallest over largest share; an allocation is epsilon-fair when it is at least 1 - epsilon.

    Formula: min x / max x
    Unit: 1
    Source: [METR], epsilon-fairness
    """
    x = np.asarray(goodputs, dtype=float)
    return float(np.min(x) / np.max(x)) if x.size and np.max(x) > 0 else math.nan


def rtt_fairness(goodput_a: float, goodput_b: float) -> float:
    """How many times as fast the flow of the shorter RTT is, all else equal.

    Formula: x_a / x_b with RTT_a < RTT_b
    Unit: 1
    Source: Lakshman, Madhow, IEEE/ACM ToN 5(3), 1997; [METR], fairness
    """
    return goodput_a / goodput_b if goodput_b > 0 else math.nan


def rtt_exponent(goodput_a: float, goodput_b: float, rtt_a_s: float, rtt_b_s: float) -> float:
    """Exponent by which goodput falls with the RTT: 0 is RTT-fair, Reno in step has 2.

    Formula: theta = ln(x_a / x_b) / ln(RTT_b / RTT_a)
    Unit: 1
    Source: Lakshman, Madhow, IEEE/ACM ToN 5(3), 1997; CW-HSTCP study, whose aim is 1
    """
    if not 0 < rtt_a_s < rtt_b_s:
        raise MetricError(
            f"rtt_a_s, rtt_b_s: {rtt_a_s:g}, {rtt_b_s:g}; allowed: above 0, and a's the shorter"
        )
    if not (goodput_a > 0 and goodput_b > 0):
        return math.nan
    return math.log(goodput_a / goodput_b) / math.log(rtt_b_s / rtt_a_s)


# Friendliness


@dataclass(frozen=True)
class Impact:
    """What camp B gains and camp A keeps when B's flows take a new law; 1 is no change."""

    gain: float
    loss: float


def camps(*, base_a: ArrayLike, base_b: ArrayLike, mix_a: ArrayLike, mix_b: ArrayLike) -> Impact:
    """Impact on standard TCP: two camps of equal flows, in BASE both standard, in MIX B has a law.

    Formula: G = T(B, mix) / T(B, base), L = T(A, mix) / T(A, base), T the sum of goodputs
    Unit: 1
    Source: [TCPEVAL], impact on standard TCP
    """

    def ratio(mix: ArrayLike, base: ArrayLike) -> float:
        whole = float(np.sum(np.asarray(base, dtype=float)))
        return float(np.sum(np.asarray(mix, dtype=float))) / whole if whole > 0 else math.nan

    return Impact(gain=ratio(mix_b, base_b), loss=ratio(mix_a, base_a))


def friendliness(new_bps: ArrayLike, tcp_bps: ArrayLike) -> float:
    """How many times the goodput of standard TCP's flows the new law's have, at equal RTT.

    Formula: mean x of the law / mean x of standard TCP
    Unit: 1
    Source: CW-HSTCP study; [METR], fairness and TCP
    """
    new, tcp = np.asarray(new_bps, dtype=float), np.asarray(tcp_bps, dtype=float)
    if not (new.size and tcp.size):
        raise MetricError(f"new_bps, tcp_bps: {new.size} and {tcp.size} flows; allowed: at least 1")
    return float(np.mean(new) / np.mean(tcp)) if np.mean(tcp) > 0 else math.nan


def reno_ratio(goodput_bps: float, rtt_s: float, loss: float, segment_bytes: float) -> float:
    """How many times as fast a flow is as standard TCP would be at its RTT and loss.

    Formula: x / (8 s 1.2 / (RTT sqrt(p))), s the payload of a segment, p the rate of loss events
    Unit: 1
    Source: [METR], fairness and TCP; Floyd, Fall, IEEE/ACM ToN 7(4), 1999
    """
    _positive("rtt_s", rtt_s)
    _positive("segment_bytes", segment_bytes)
    if not 0 <= loss <= 1:
        raise MetricError(f"loss: {loss:g}; allowed: 0 to 1")
    return goodput_bps * rtt_s * math.sqrt(loss) / (8.0 * segment_bytes * 1.2)


# Steadiness


def cov(goodputs: ArrayLike) -> float:
    """Coefficient of variation: population standard deviation over mean; the lower, the steadier.

    Formula: sigma / mean
    Unit: 1
    Source: Floyd, Handley, Padhye, Widmer, SIGCOMM 2000; the e-VLBI study's "stability" in 1-s bins
    """
    x = np.asarray(goodputs, dtype=float)
    mean = float(np.mean(x)) if x.size else 0.0
    return float(np.std(x)) / mean if mean > 0 else math.nan


def cov_over_time(
    flows: pl.DataFrame, bin_s: float, *, start_s: float = 0.0, end_s: float | None = None
) -> tuple[dict[int, float], float]:
    """Coefficient of variation of goodput in bins: of each flow while it lives, and of their sum.

    Formula: sigma / mean of the goodputs in bins of this time scale; NaN below two bins
    Unit: 1
    Source: [METR], time scales; Floyd, Handley, Padhye, Widmer, SIGCOMM 2000
    """
    _, numbers, x = _binned(flows, "bin_s", bin_s, start_s, end_s)

    def of(bins: Floats) -> float:
        return cov(bins) if bins.size > 1 else math.nan

    together = np.nansum(x[:, ~np.all(np.isnan(x), axis=0)], axis=0)
    return {n: of(own[~np.isnan(own)]) for n, own in zip(numbers, x, strict=True)}, of(together)


def smoothness(
    flows: pl.DataFrame, *, start_s: float = 0.0, end_s: float | None = None
) -> dict[int, float]:
    """Largest reduction of each flow's sending rate within one RTT, as a fraction of the rate.

    Formula: max over t of 1 - r(t + RTT) / r(t), r = cwnd / RTT, RTT the smoothed one at t
    Unit: 1
    Source: [METR], smoothness; Floyd, Handley, Padhye, SIGCOMM 2000

    Raises:
        CoarseSamplesError: where samples are wider than an RTT.
    """
    _need("flows", flows, "srtt_s", "cwnd_seg")
    rows = _rows_by_flow(flows, ("cwnd_seg", "srtt_s"), start_s, end_s)
    found = {}
    for flow, (t, window, rtt) in rows.items():
        known = rtt > 0
        t, window, rtt = t[known], window[known], rtt[known]
        if t.size < 2:
            found[flow] = math.nan
            continue
        grid_s = float(np.min(np.diff(t)))
        if grid_s > np.median(rtt) * (1 + _SLACK):
            raise CoarseSamplesError(
                f"flow {flow}: samples are {grid_s:g} s apart and its RTT is {np.median(rtt):g} s; "
                "a rate within an RTT needs samples at least as fine"
            )
        later = np.searchsorted(t, t + rtt - _SLACK)
        inside = later < t.size
        rate = window / rtt
        fall = 1.0 - rate[later[inside]] / rate[inside]
        found[flow] = max(0.0, float(np.max(fall))) if fall.size else math.nan
    return found


# Convergence


def convergence(
    t_s: ArrayLike,
    goodput_bps: ArrayLike,
    fair_bps: ArrayLike,
    *,
    start_s: float = 0.0,
    tolerance: float = 0.1,
    hold: int = 5,
) -> FirstPassage:
    """Seconds from a flow's start until it holds its fair share.

    Lu, Wang and Zhu take the first crossing; holding it keeps one lucky bin from counting. With a
    tolerance of 0 a share that is approached geometrically is never reached, so report 0 and 0.1.

    Formula: end of the first of 5 bins in a row with x >= (1 - tolerance) fair, less start;
        fair is C / N, or in each bin the mean of all flows
    Unit: s
    Source: EVCP (Lu, Wang, Zhu); hold and tolerance are this laboratory's

    Args:
        t_s, goodput_bps: ends and goodputs of one flow's bins, see :func:`goodput_bins`.
        fair_bps: the share that counts as fair, one number or one a bin.
    """
    t, x = np.asarray(t_s, dtype=float), np.asarray(goodput_bps, dtype=float)
    fair = np.asarray(fair_bps, dtype=float)
    if fair.ndim:
        _alike("goodput_bps, fair_bps", x, fair)
    _fraction("tolerance", tolerance)
    return _held(t, x >= (1.0 - tolerance) * fair, start_s, hold)


def delta_fair(
    t_s: ArrayLike,
    newcomer: ArrayLike,
    other: ArrayLike,
    *,
    delta: float = 0.1,
    start_s: float = 0.0,
    hold: int = 1,
) -> FirstPassage:
    """Seconds until two flows of one RTT that began at shares 1/101 and 100/101 are delta-fair.

    Formula: first bin end with max(x, y) / (x + y) <= (1 + delta) / 2, less start
    Unit: s
    Source: [METR], delta-fair convergence time
    """
    x, y = np.asarray(newcomer, dtype=float), np.asarray(other, dtype=float)
    _alike("newcomer, other", x, y)
    _fraction("delta", delta)
    both = x + y
    fair = (both > 0) & (np.maximum(x, y) <= (1.0 + delta) / 2.0 * both * (1 + _SLACK))
    return _held(np.asarray(t_s, dtype=float), fair, start_s, hold)


def epsilon_fair(
    t_s: ArrayLike,
    goodputs: ArrayLike,
    rtt_s: float,
    *,
    epsilon: float = 0.1,
    start_s: float = 0.0,
    hold: int = 1,
) -> FirstPassage:
    """Round trips until all flows have nearly the same.

    Formula: (first bin end with min x / max x >= 1 - epsilon, less start) / RTT
    Unit: RTT
    Source: [METR], epsilon-fairness

    Args:
        goodputs: one row a flow, one column a bin.
    """
    _positive("rtt_s", rtt_s)
    _fraction("epsilon", epsilon)
    x = np.atleast_2d(np.asarray(goodputs, dtype=float))
    largest = np.max(x, axis=0)
    fair = (largest > 0) & (np.min(x, axis=0) >= (1.0 - epsilon) * largest * (1 - _SLACK))
    passage = _held(np.asarray(t_s, dtype=float), fair, start_s, hold)
    return FirstPassage(passage.value / rtt_s, passage.censored)


def ramp_up(flows: pl.DataFrame, flow: int, start_s: float) -> dict[int, float]:
    """When a new flow's byte 1500 x 10^n has arrived, to the sampling grid.

    Formula: first t with D(t) >= 1500 x 10^n, less start, by n = 1, 2, ... that it reached
    Unit: s
    Source: [TCPEVAL], ramp-up
    """
    rows = _rows_by_flow(flows, ("delivered_bytes",), start_s, None)
    t, delivered = rows.get(flow, (np.empty(0), np.empty(0)))
    times: dict[int, float] = {}
    while delivered.size and delivered[-1] >= 1500 * 10 ** (n := len(times) + 1):
        times[n] = float(t[np.searchsorted(delivered, 1500 * 10**n)]) - start_s
    return times


# Loss


def loss_rate(
    queues: pl.DataFrame, link: int, *, start_s: float = 0.0, end_s: float | None = None
) -> float:
    """Share of the packets offered to a link that its queue dropped.

    Formula: drops / arrivals
    Unit: 1
    Source: [METR], loss; CW-HSTCP study: friendly where background loss is below 1e-3
    """
    _, drops = _link_counter(queues, "drops", link, start_s, end_s)
    _, arrivals = _link_counter(queues, "arrivals", link, start_s, end_s)
    offered = float(arrivals[-1] - arrivals[0])
    return float(drops[-1] - drops[0]) / offered if offered > 0 else math.nan


def segments_sent(
    flows: pl.DataFrame,
    segment_bytes: float,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> dict[int, tuple[float, float]]:
    """Segments that each flow sent in the window, and how many of them again.

    What was acknowledged stands for what was sent anew; at most a window lies between them.
    """
    _positive("segment_bytes", segment_bytes)
    new = _counter(flows, "delivered_bytes", start_s, end_s)
    again = _counter(flows, "retransmits", start_s, end_s)
    counts = {}
    for flow, (_, delivered) in new.items():
        retransmits = float(again[flow][1][-1] - again[flow][1][0])
        fresh = float(delivered[-1] - delivered[0]) / segment_bytes
        counts[flow] = (fresh + retransmits, retransmits)
    return counts


def retransmission_ratio(sent: float, retransmits: float) -> float:
    """Share of the segments sent that were retransmissions; 1 less it is goodput over throughput.

    Formula: retransmissions / segments sent
    Unit: 1
    Source: [METR], goodput and throughput
    """
    return retransmits / sent if sent > 0 else math.nan


def loss_events(
    events: pl.DataFrame,
    flow: int,
    rtt_s: float,
    *,
    start_s: float = 0.0,
    end_s: float = math.inf,
) -> int:
    """Loss events of a flow: losses within one RTT are one.

    Formula: reductions (fast retransmit, timeout, ECN), those within an RTT of an event's first
        counted once
    Unit: events
    Source: RFC 5348, 5.2; [METR], loss
    """
    import polars as pl

    _need("events", events, "t_s", "flow", "kind")
    _positive("rtt_s", rtt_s)
    _ordered(start_s, end_s)
    own = events.filter(
        (pl.col("flow") == flow)
        & pl.col("kind").is_in(_REDUCTIONS)
        & pl.col("t_s").is_between(start_s, end_s)
    )
    count, first_s = 0, -math.inf
    for t in own["t_s"].sort():
        if t > first_s + rtt_s:
            count, first_s = count + 1, t
    return count


def loss_event_rate(events: int, sent: float) -> float:
    """Loss events a segment sent: what response functions call p.

    Formula: loss events / segments sent
    Unit: 1
    Source: RFC 5348, 5; [METR], loss
    """
    return events / sent if sent > 0 else math.nan


def loss_bursts(
    queues: pl.DataFrame,
    link: int,
    gap_s: float,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> pl.DataFrame:
    """Episodes of drops at a link: samples with drops, and pauses up to a given gap between them.

    Formula: drops and arrivals in each maximal run of samples with drops, at most the gap (the
        longest RTT) apart; times are to the sample
    Unit: packets an episode, s
    Source: [METR], loss, names bursts; what joins an episode is this laboratory's

    Returns:
        Columns start_s, end_s, drops, arrivals.
    """
    import polars as pl

    if not (math.isfinite(gap_s) and gap_s >= 0):
        raise MetricError(f"gap_s: {gap_s:g}; allowed: at least 0")
    t, drops = _link_counter(queues, "drops", link, start_s, end_s)
    _, arrivals = _link_counter(queues, "arrivals", link, start_s, end_s)
    # Interval i lies between samples i and i + 1.
    hit = np.flatnonzero(np.diff(drops) > 0)
    apart = t[hit[1:]] - t[hit[:-1] + 1] > gap_s + _SLACK
    first = hit[np.concatenate(([True], apart))] if hit.size else hit
    last = hit[np.concatenate((apart, [True]))] + 1 if hit.size else hit
    return pl.DataFrame(
        {
            "start_s": t[first],
            "end_s": t[last],
            "drops": (drops[last] - drops[first]).astype(np.int64),
            "arrivals": (arrivals[last] - arrivals[first]).astype(np.int64),
        }
    )


def phase_locked(
    drops: ArrayLike, arrivals: ArrayLike, *, factor: float = 5.0, at_least: float = 100.0
) -> list[int]:
    """The flows whose share of lost packets betrays a lock of their phase to the queue's.

    Deterministic sources with RTTs in ratio to the packet time can lock so that one flow always,
    or never, meets the full buffer. The stored tables count no drops by flow, so retransmissions
    stand for them, and segments sent for arrivals.

    Formula: drops/arrivals above 5 times, or below 1/5 of, all flows' drops / all flows' arrivals,
        where the flow lost, or by that mean would have lost, more than 100
    Unit: indices of flows
    Source: Floyd, Jacobson, Internetworking 3(3), 1992 (the effect); the detector is this
        laboratory's
    """
    lost, offered = np.asarray(drops, dtype=float), np.asarray(arrivals, dtype=float)
    _alike("drops, arrivals", lost, offered)
    if not offered.sum() > 0:
        return []
    expected = lost.sum() / offered.sum() * offered
    unlike = (lost > factor * expected) | (lost * factor < expected)
    return [int(i) for i in np.flatnonzero(unlike & (np.maximum(lost, expected) > at_least))]


# Delay


def queueing_delay(
    queues: pl.DataFrame,
    link: int,
    rate_bps: Rate,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> Spread:
    """Time that the queue of a link needs to drain, over the samples.

    An average over time; the summary's ``mean_queue_s`` and ``p99_queue_s`` are over packets, which
    meet a full queue more often. Samples while the link is down are left out.

    Formula: 8 b / C, b the bytes that wait, C the rate then; mean, 50th, 95th, 99th percentile,
        largest
    Unit: s
    Source: [METR], delay
    """
    t, waiting = _link_counter(queues, "bytes", link, start_s, end_s, cumulative=False)
    rates = _rates(rate_bps)
    at = np.searchsorted([since for since, _ in rates], t, side="right") - 1
    rate = np.array([rate for _, rate in rates], dtype=float)[at]
    up = rate > 0
    return spread(8.0 * waiting[up] / rate[up])


def queue_empty(
    queues: pl.DataFrame, link: int, *, start_s: float = 0.0, end_s: float | None = None
) -> float:
    """Share of the time in which no packet waits at a link.

    Formula: samples with an empty queue / samples
    Unit: 1
    Source: Appenzeller, Keslassy, McKeown, SIGCOMM 2004
    """
    _, waiting = _link_counter(queues, "packets", link, start_s, end_s, cumulative=False)
    return float(np.mean(waiting == 0))


def rtt_excess(
    flows: pl.DataFrame,
    flow: int,
    base_rtt_s: float,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> Spread:
    """What a flow's RTT has beyond its base: queues on all of its path, both ways.

    Formula: RTT samples less the base RTT; mean, 50th, 95th, 99th percentile, largest
    Unit: s
    Source: [METR], delay; [TCPEVAL], queueing delay
    """
    _positive("base_rtt_s", base_rtt_s)
    rows = _rows_by_flow(flows, ("rtt_s",), start_s, end_s)
    if flow not in rows:
        raise MetricError(f"flow: {flow}; there are {', '.join(map(str, rows))}")
    rtt = rows[flow][1]
    return spread(np.maximum(0.0, rtt[rtt > 0] - base_rtt_s))


def completion(size_bytes: ArrayLike, seconds: ArrayLike) -> dict[int, Spread]:
    """Flow completion times by decade of size: key n holds sizes from 10^n to 10^(n+1) bytes.

    Formula: last byte acknowledged less start; mean, 50th, 95th, 99th percentile, largest
    Unit: s
    Source: Dukkipati, McKeown, CCR 36(1), 2006; [TCPEVAL], completion times by size
    """
    size, time = np.asarray(size_bytes, dtype=float), np.asarray(seconds, dtype=float)
    _alike("size_bytes, seconds", size, time)
    if not (np.all(size >= 1) and np.all(time >= 0)):
        raise MetricError("size_bytes, seconds: allowed: at least 1 byte, and no negative time")
    # From text, because log10 of 1000 is below 3 on some machines.
    decade = np.array([len(str(int(s))) - 1 for s in size], dtype=int)
    return {int(n): spread(time[decade == n]) for n in np.unique(decade)}


def unfinished(seconds: Sequence[float | None]) -> float:
    """Share of the flows with a size that had not finished; their completion times are not known.

    Formula: flows without a completion time / flows
    Unit: 1
    Source: this laboratory's: without it, completion times are those of the lucky
    """
    return sum(time is None for time in seconds) / len(seconds) if seconds else math.nan


# Windows and counters


def sampling_s(table: pl.DataFrame) -> float:
    """Time between the samples of a table, in seconds."""
    _need("flows", table, "t_s")
    times = np.unique(table["t_s"].to_numpy())
    if times.size < 2:
        raise MetricError("fewer than two samples: the scenario says sample = off, or too little")
    return float(np.median(np.diff(times)))


def _need(name: str, table: pl.DataFrame, *columns: str) -> None:
    for column in columns:
        if column not in table.columns:
            raise MetricError(
                f"table {name} has no column {column}; it has {', '.join(table.columns)}"
            )


def _positive(name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise MetricError(f"{name}: {value:g}; allowed: above 0")
    return value


def _alike(names: str, a: NDArray[Any], b: NDArray[Any]) -> None:
    if a.shape != b.shape:
        raise MetricError(f"{names}: {a.size} and {b.size} values; allowed: as many")


def _fraction(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise MetricError(f"{name}: {value:g}; allowed: from 0 to below 1")


def _ordered(start_s: float, end_s: float) -> None:
    if not 0 <= start_s < end_s:
        raise MetricError(
            f"start_s, end_s: {start_s:g}, {end_s:g}; allowed: 0 or later, and the end after the "
            "start"
        )


def _span(name: str, t: Floats, start_s: float, end_s: float | None) -> float:
    """The window's end, after a check that the table holds the window."""
    if t.size == 0:
        raise MetricError(f"table {name} has no samples: the scenario says sample = off")
    last = float(np.max(t))
    end = last if end_s is None else end_s
    _ordered(start_s, end)
    if end > last * (1 + _SLACK):
        raise MetricError(f"end_s: {end:g}; allowed: up to {last:g}, where the samples end")
    return end


def _rows_by_flow(
    flows: pl.DataFrame, columns: tuple[str, ...], start_s: float, end_s: float | None
) -> dict[int, tuple[Floats, ...]]:
    """Times and columns of each flow within the window, flows in order of their number."""
    import polars as pl

    _need("flows", flows, "t_s", "flow", *columns)
    end = _span("flows", flows["t_s"].to_numpy(), start_s, end_s)
    inside = flows.select("t_s", "flow", *columns).filter(
        pl.col("t_s").is_between(start_s - _SLACK, end + _SLACK * max(1.0, end))
    )
    return {
        flow: tuple(part[column].to_numpy().astype(float) for column in ("t_s", *columns))
        for flow, part in by_flow(inside).items()
    }


def by_flow(table: pl.DataFrame) -> dict[int, pl.DataFrame]:
    """The rows of each flow in order of time, flows in order of their number."""
    parts = {int(part["flow"][0]): part for part in table.partition_by("flow", maintain_order=True)}
    return {
        # A run's own table is in order, and sorting it would take longer than all the rest.
        flow: part if part["t_s"].is_sorted() else part.sort("t_s")
        for flow, part in sorted(parts.items())
    }


def _counter(
    flows: pl.DataFrame, column: str, start_s: float, end_s: float | None
) -> dict[int, tuple[Floats, Floats]]:
    return {
        flow: (t, values)
        for flow, (t, values) in _rows_by_flow(flows, (column,), start_s, end_s).items()
    }


def _link_counter(
    queues: pl.DataFrame,
    column: str,
    link: int,
    start_s: float,
    end_s: float | None,
    *,
    cumulative: bool = True,
) -> tuple[Floats, Floats]:
    _need("queues", queues, "t_s", "link", column)
    own = queues.filter(queues["link"] == link).sort("t_s")
    if own.height == 0 < queues.height:
        known = ", ".join(str(n) for n in queues["link"].unique().sort())
        raise MetricError(f"link: {link}; there are {known}")
    t = own["t_s"].to_numpy()
    end = _span("queues", t, start_s, end_s)
    inside = (t >= start_s - _SLACK) & (t <= end * (1 + _SLACK))
    t, values = t[inside], own[column].to_numpy().astype(float)[inside]
    if t.size < 2:
        raise MetricError(f"start_s, end_s: {start_s:g}, {end:g}; fewer than two samples between")
    if cumulative and np.any(np.diff(values) < 0):
        anew = t[np.flatnonzero(np.diff(values) < 0)[-1] + 1]
        raise MetricError(
            f"start_s: {start_s:g}; allowed: from {anew:g}, the end of the warm-up, where a link's "
            "counters begin anew"
        )
    return t, values


def _binned(
    flows: pl.DataFrame, name: str, bin_s: float, start_s: float, end_s: float | None
) -> tuple[Floats, list[int], Floats]:
    """Ends of the bins, flows, goodputs (flow, bin): NaN where a flow lives in part of a bin."""
    _need("flows", flows, "t_s", "flow", "delivered_bytes")
    end = _span("flows", flows["t_s"].to_numpy(), start_s, end_s)
    _positive(name, bin_s)
    if bin_s > (end - start_s) * (1 + _SLACK):
        raise MetricError(
            f"{name}: {bin_s:g}; allowed: up to {end - start_s:g}, the time from {start_s:g} s to "
            f"{end:g} s"
        )
    grid_s = sampling_s(flows)
    if round(bin_s / grid_s) < 1 or abs(bin_s / grid_s - round(bin_s / grid_s)) > 1e-3:
        raise MetricError(
            f"{name}: {bin_s:g}; allowed: a multiple of {grid_s:.6g}, the distance of the samples"
        )
    ends = _ends(bin_s, start_s, end)
    parts = by_flow(flows)
    rows = []
    for part in parts.values():
        alive = (ends - bin_s >= part["t_s"][0] - _SLACK) & (ends <= part["t_s"][-1] * (1 + _SLACK))
        rows.append(np.where(alive, _goodputs(part, ends, bin_s, start_s), np.nan))
    return ends, list(parts), np.array(rows)


def _ends(bin_s: float, start_s: float, end_s: float) -> Floats:
    """Ends of the whole bins of a window."""
    count = max(0, math.floor((end_s - start_s) / bin_s + _SLACK))
    return start_s + bin_s * np.arange(1, count + 1, dtype=np.float64)


def _goodputs(part: pl.DataFrame, ends: Floats, bin_s: float, start_s: float) -> Floats:
    """One flow's goodput in the bins that end there; nothing was delivered before its samples."""
    delivered = np.concatenate(([0.0], part["delivered_bytes"].to_numpy().astype(float)))
    edges = np.concatenate(([start_s], ends)) + _SLACK * bin_s
    before = np.searchsorted(part["t_s"].to_numpy(), edges, side="right")
    return np.asarray(np.diff(delivered[before]) * 8.0 / bin_s)


def _held(t: Floats, reached: NDArray[np.bool_], start_s: float, hold: int) -> FirstPassage:
    """End of the first of ``hold`` bins in a row that are ``reached``, after ``start_s``."""
    _alike("t_s, goodputs", t, reached)
    if hold < 1:
        raise MetricError(f"hold: {hold}; allowed: at least 1")
    if not (t.size and t[-1] > start_s):
        raise MetricError(f"start_s: {start_s:g}; allowed: before the end of the last bin")
    in_a_row = 0
    for i, ok in enumerate(reached & (t > start_s)):
        in_a_row = in_a_row + 1 if ok else 0
        if in_a_row == hold:
            return FirstPassage(float(t[i - hold + 1]) - start_s)
    return FirstPassage(float(t[-1]) - start_s, censored=True)
