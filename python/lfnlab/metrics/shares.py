"""How much flows get, and how evenly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from lfnlab.errors import MetricError
from lfnlab.metrics.tables import (
    bin_ends,
    binned,
    by_flow,
    capacity_bits,
    counters,
    fraction,
    goodputs_of,
    link_counter,
    need_columns,
    positive,
)

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike

    from lfnlab.metrics.tables import Floats, Rate, Samples

__all__ = [
    "Impact",
    "camps",
    "efficiency",
    "friendliness",
    "goodput",
    "goodput_bins",
    "goodput_matrix",
    "harm",
    "jain",
    "jain_over_time",
    "min_over_max",
    "normalized_goodput",
    "reno_ratio",
    "rtt_exponent",
    "rtt_fairness",
    "starvation",
    "utilization",
]


def goodput(
    flows: pl.DataFrame, *, start_s: float = 0.0, end_s: float | None = None
) -> dict[int, float]:
    """Goodput of each flow while it is active in the window.

    Formula: 8 (D(t1) - D(t0)) / (t1 - t0), D the bytes delivered in order, t0 the later of the
        window's start and the flow's, t1 the earlier of their ends
    Unit: bit/s
    Source: [METR], throughput; RFC 2647, 3.17
    """
    return {
        flow: 8.0 * (delivered[-1] - delivered[0]) / (t[-1] - t[0]) if t.size > 1 else math.nan
        for flow, (t, delivered) in counters(flows, "delivered_bytes", start_s, end_s).items()
    }


def goodput_bins(
    flows: pl.DataFrame, *, bin_s: float = 1.0, start_s: float = 0.0, end_s: float | None = None
) -> pl.DataFrame:
    """Goodput of each flow in bins of ``bin_s`` seconds, from its counters of bytes.

    What waits behind a lost segment is released at its repair, so goodput in order can exceed the
    rate of the link in a bin. Arrivals count in the bin in which they arrive.

    Args:
        flows: the table ``flows`` of a run (columns t_s, flow, delivered_bytes; arrived_bytes).
        bin_s: width of a bin; a multiple of the sampling grid.
        start_s: start of the first bin.
        end_s: no bin reaches beyond it; default the last sample.

    Returns:
        Columns flow, t_s (end of the bin), goodput_bps, arrival_bps (null of a flow without
        arrived_bytes); no row for a flow without a whole bin.
    """
    import polars as pl

    need_columns("flows", flows, "t_s", "flow", "delivered_bytes")
    positive("bin_s", bin_s)
    schema = {
        "flow": pl.UInt32,
        "t_s": pl.Float64,
        "goodput_bps": pl.Float64,
        "arrival_bps": pl.Float64,
    }
    found: dict[str, list[Floats]] = {name: [np.empty(0)] for name in schema}
    counters = {"goodput_bps": "delivered_bytes", "arrival_bps": "arrived_bytes"}
    known = {name: of for name, of in counters.items() if of in flows.columns}
    for flow, part in by_flow(flows.select("t_s", "flow", *known.values())).items():
        t = part["t_s"].to_numpy()
        ends = bin_ends(bin_s, start_s, t[-1] if end_s is None else end_s)
        found["flow"].append(np.full(ends.size, float(flow)))
        found["t_s"].append(ends)
        for name in counters:
            if name in known and not part[known[name]].null_count():
                values = part[known[name]].to_numpy()
                found[name].append(goodputs_of(t, values, ends, bin_s, start_s))
            else:
                found[name].append(np.full(ends.size, math.nan))
    columns = {name: np.concatenate(parts) for name, parts in found.items()}
    frame = pl.DataFrame(columns).cast(schema)  # type: ignore[arg-type]
    return frame.with_columns(pl.col("arrival_bps").fill_nan(None))


def goodput_matrix(
    flows: pl.DataFrame | Samples,
    bin_s: float,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> tuple[Floats, list[int], Floats]:
    """Goodputs, one row a flow, one column a bin; NaN in a bin that a flow does not live through.

    Returns:
        Ends of the bins in seconds, numbers of the flows, goodputs in bit/s.
    """
    return binned(flows, "bin_s", bin_s, start_s, end_s)


def utilization(
    queues: pl.DataFrame,
    link: int,
    rate_bps: Rate | None = None,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> float:
    """Bytes that a link sent, with headers and all traffic, over those that it could have sent.

    It is 0 where it could send none. ``rate_bps`` is for tables without the column capacity_bytes.

    Formula: (B(t1) - B(t0)) / (K(t1) - K(t0)), B the bytes that the link has sent, K those that it
        could have sent; 1 where a shaper sent more, by tokens from before t0
    Unit: 1
    Source: [TCPEVAL], utilization of the central link
    """
    _, sent = link_counter(queues, "sent_bytes", link, start_s, end_s)
    most = capacity_bits(queues, link, rate_bps, start_s, end_s)
    # The table has whole bytes: a window of one packet may have one too many.
    return min(1.0, 8.0 * float(sent[-1] - sent[0]) / most) if most > 0 else 0.0


def normalized_goodput(goodputs_bps: ArrayLike, rate_bps: float) -> float:
    """Share of a link's rate that the flows' goodputs use; below 1 by headers on a full link.

    Formula: sum x_i / C
    Unit: 1
    Source: [METR], throughput
    """
    return float(np.sum(np.asarray(goodputs_bps, dtype=float))) / positive("rate_bps", rate_bps)


def efficiency(
    goodputs_bps: ArrayLike, rate_bps: float, *, payload_bytes: float, wire_bytes: float
) -> float:
    """Goodput over the largest goodput of the link's rate with packets of this size.

    Formula: sum x_i / (C payload / wire), with the bytes of a full packet
    Unit: 1
    Source: [METR], throughput; that it is of what payload can have is this laboratory's
    """
    positive("payload_bytes", payload_bytes)
    if wire_bytes < payload_bytes:
        raise MetricError(f"{wire_bytes:g}; allowed: at least the payload's", "wire_bytes")
    return normalized_goodput(goodputs_bps, rate_bps) * wire_bytes / payload_bytes


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
    flows: pl.DataFrame | Samples,
    window_s: float,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> pl.DataFrame:
    """Jain's index in each window, over the flows that are active in all of it.

    Formula: (sum x)^2 / (n sum x^2) of the goodputs in each window; a window with fewer than two
        flows, or in which nothing was delivered, is left out
    Unit: 1
    Source: Westwood+ study (over time); CW-HSTCP study (over time scales); [METR], fairness

    Returns:
        Columns t_s (end of the window), jain.
    """
    import polars as pl

    ends, _, x = binned(flows, "window_s", window_s, start_s, end_s)
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
    """Ratio of goodputs of two flows: the one with the shorter RTT over the other.

    Formula: x_a / x_b with RTT_a < RTT_b
    Unit: 1
    Source: Lakshman, Madhow, IEEE/ACM ToN 5(3), 1997; [METR], fairness
    """
    return goodput_a / goodput_b if goodput_b > 0 else math.nan


def rtt_exponent(goodput_a: float, goodput_b: float, rtt_a_s: float, rtt_b_s: float) -> float:
    """Exponent of goodput over 1/RTT: 0 is RTT-fair; Reno with synchronised losses has 2.

    Formula: theta = ln(x_a / x_b) / ln(RTT_b / RTT_a)
    Unit: 1
    Source: Lakshman, Madhow, IEEE/ACM ToN 5(3), 1997; CW-HSTCP study, whose aim is 1
    """
    if not 0 < rtt_a_s < rtt_b_s:
        raise MetricError(
            f"{rtt_a_s:g}, {rtt_b_s:g}; allowed: above 0, and a's the shorter", "rtt_a_s, rtt_b_s"
        )
    if not (goodput_a > 0 and goodput_b > 0):
        return math.nan
    return math.log(goodput_a / goodput_b) / math.log(rtt_b_s / rtt_a_s)


# Friendliness


@dataclass(frozen=True)
class Impact:
    """Goodput of groups B and A after B changes law, relative to before; 1: no change."""

    gain: float
    loss: float


def camps(*, base_a: ArrayLike, base_b: ArrayLike, mix_a: ArrayLike, mix_b: ArrayLike) -> Impact:
    """Impact on standard TCP: two equal groups; both have it in BASE, B has another law in MIX.

    Formula: G = T(B, mix) / T(B, base), L = T(A, mix) / T(A, base), T the sum of goodputs
    Unit: 1
    Source: [TCPEVAL], impact on standard TCP
    """

    def ratio(mix: ArrayLike, base: ArrayLike) -> float:
        whole = float(np.sum(np.asarray(base, dtype=float)))
        return float(np.sum(np.asarray(mix, dtype=float))) / whole if whole > 0 else math.nan

    return Impact(gain=ratio(mix_b, base_b), loss=ratio(mix_a, base_a))


def friendliness(new_bps: ArrayLike, tcp_bps: ArrayLike) -> float:
    """Ratio of the new law's goodput to standard TCP's, for flows with equal RTT.

    Formula: mean x of the law / mean x of standard TCP
    Unit: 1
    Source: CW-HSTCP study; [METR], fairness and TCP
    """
    new, tcp = np.asarray(new_bps, dtype=float), np.asarray(tcp_bps, dtype=float)
    if not (new.size and tcp.size):
        raise MetricError(
            f"{new.size} and {tcp.size} flows; allowed: at least 1", "new_bps, tcp_bps"
        )
    return float(np.mean(new) / np.mean(tcp)) if np.mean(tcp) > 0 else math.nan


def reno_ratio(goodput_bps: float, rtt_s: float, loss: float, segment_bytes: float) -> float:
    """Ratio of a flow's goodput to that of standard TCP at its RTT and loss rate.

    Formula: x / (8 s 1.2 / (RTT sqrt(p))), s the payload of a segment, p the rate of loss events
    Unit: 1
    Source: [METR], fairness and TCP; Floyd, Fall, IEEE/ACM ToN 7(4), 1999
    """
    positive("rtt_s", rtt_s)
    positive("segment_bytes", segment_bytes)
    if not 0 <= loss <= 1:
        raise MetricError(f"{loss:g}; allowed: 0 to 1", "loss")
    return goodput_bps * rtt_s * math.sqrt(loss) / (8.0 * segment_bytes * 1.2)


# Harm


def harm(solo: float, beside: float, better: Literal["more", "less"] = "more") -> float:
    """Harm to a flow: how much worse it is beside another than alone; 0 none, 1 all is taken.

    Formula: 1 - with / solo of goodput; 1 - solo / with of delay and loss, of which less is better;
        below 0 where the flow is better off than alone
    Unit: 1
    Source: Ware, Mukerjee, Seshan, Sherry, HotNets 2019
    """
    for name, value in (("solo", solo), ("beside", beside)):
        if value < 0:
            raise MetricError(f"{value:g}; allowed: 0 or more", name)
    if solo == beside:
        return 0.0
    whole, rest = (solo, beside) if better == "more" else (beside, solo)
    return 1.0 - rest / whole if whole > 0 else math.nan


def starvation(goodputs_bps: ArrayLike, fair_bps: ArrayLike, below: float = 0.1) -> float:
    """Share of the time in which a flow has less than a tenth of its fair share.

    Formula: bins with x < below fair / bins in which the flow lives; fair is C / N, below 0.1
    Unit: 1
    Source: RFC 9743, 5.2 (starvation has to be assessed); the tenth is this laboratory's
    """
    fraction("below", below)
    x = np.asarray(goodputs_bps, dtype=float)
    alive = ~np.isnan(x)
    fair = np.broadcast_to(np.asarray(fair_bps, dtype=float), x.shape)
    return float(np.mean(x[alive] < below * fair[alive])) if np.any(alive) else math.nan
