"""Are the metrics those of the field, and those of the simulator?

Each is tested on a series whose answer is known by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lfnlab import LabError, Results, metrics
from lfnlab.metrics import FirstPassage

SHARES = st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=50)


def flow_table(
    rates_bps: dict[int, list[float]],
    *,
    step_s: float = 1.0,
    starts_s: dict[int, float] | None = None,
    **columns: list[float],
) -> pl.DataFrame:
    """The table of flows that have these rates in the steps after their start."""
    parts = []
    for flow, rates in rates_bps.items():
        start = (starts_s or {}).get(flow, 0.0)
        delivered = np.concatenate(([0.0], np.cumsum(rates))) * step_s / 8
        parts.append(
            pl.DataFrame(
                {
                    "t_s": start + step_s * np.arange(len(rates) + 1),
                    "flow": np.full(len(rates) + 1, flow, np.uint32),
                    "delivered_bytes": delivered.astype(np.uint64),
                    **columns,
                }
            )
        )
    return pl.concat(parts).sort("t_s", "flow")


def queue_table(
    drops: list[int],
    arrivals: list[int],
    waiting: list[int] | None = None,
    *,
    step_s: float = 1.0,
    start_s: float = 0.0,
) -> pl.DataFrame:
    """The table of link 0, from what is dropped and offered in each step."""
    n = len(drops) + 1
    return pl.DataFrame(
        {
            "t_s": start_s + step_s * np.arange(n),
            "link": np.zeros(n, np.uint8),
            "bytes": np.array(waiting or [0] * n, np.uint64),
            "packets": np.sign(waiting or [0] * n).astype(np.uint32),
            "arrivals": np.cumsum([0, *arrivals]).astype(np.uint64),
            "drops": np.cumsum([0, *drops]).astype(np.uint64),
            "sent_bytes": np.cumsum([0, *np.subtract(arrivals, drops)]).astype(np.uint64) * 1000,
        }
    )


# Goodput and what is made of it


def test_goodput_counts_a_flow_while_it_lives() -> None:
    table = flow_table({0: [80.0] * 10, 1: [160.0] * 4}, starts_s={1: 2.0})
    assert metrics.goodput(table) == {0: 80.0, 1: 160.0}
    assert metrics.goodput(table, start_s=1.0, end_s=4.0) == {0: 80.0, 1: 160.0}


def test_the_order_of_the_rows_does_not_matter() -> None:
    table = flow_table({0: [40.0, 120.0] * 4, 1: [120.0, 40.0, 0.0, 8.0]}, starts_s={1: 3.0})
    mixed = table.sample(fraction=1.0, shuffle=True, seed=1)
    assert metrics.goodput_bins(mixed).equals(metrics.goodput_bins(table))
    assert metrics.goodput(mixed) == metrics.goodput(table)


def test_bins_of_a_known_counter() -> None:
    t = np.round(np.arange(0.0, 3.05, 0.1), 10)
    table = pl.DataFrame(
        {"t_s": t, "flow": np.zeros(t.size, np.uint32), "delivered_bytes": t * 1e6}
    )
    bins = metrics.goodput_bins(table)
    assert bins["goodput_bps"].to_list() == pytest.approx([8e6] * 3)
    assert bins["arrival_bps"].to_list() == [None] * 3


def test_a_bin_counts_what_arrives_in_it_and_what_is_in_order_at_its_end() -> None:
    t = np.arange(1.0, 4.0)
    table = pl.DataFrame(
        {
            "t_s": t,
            "flow": np.zeros(t.size, np.uint32),
            "delivered_bytes": [1000, 1000, 3000],
            "arrived_bytes": [1000, 2000, 3000],
        }
    )
    bins = metrics.goodput_bins(table)
    assert bins["goodput_bps"].to_list() == [8e3, 0.0, 16e3]
    assert bins["arrival_bps"].to_list() == [8e3] * 3


def test_utilization_of_flows_and_of_the_link() -> None:
    assert metrics.normalized_goodput([30e6, 20e6], 100e6) == pytest.approx(0.5)
    # 10 packets of 1000 bytes a second on 100 kbit/s; the first second is left out.
    queue = queue_table([0, 0, 0], [0, 10, 10])
    assert metrics.utilization(queue, 0, 1e5, start_s=1.0) == pytest.approx(0.8)
    assert metrics.utilization(queue, 0, [(0.0, 1e6), (1.0, 0.0)], start_s=1.0) == 0.0
    with pytest.raises(LabError, match=r"no capacity_bytes; give the link's rate"):
        metrics.utilization(queue, 0)


def test_what_a_link_could_send_counts_where_the_table_has_it() -> None:
    # A trace: 30 kB in the first second, 10 kB and 40 kB in the others; a rate says nothing of it.
    capacity = pl.Series("capacity_bytes", [0.0, 30e3, 40e3, 80e3])
    queue = queue_table([0, 0, 0], [15, 10, 10]).with_columns(capacity)
    for rate_bps in (None, 1.0):
        assert metrics.utilization(queue, 0, rate_bps) == pytest.approx(35 / 80)
        assert metrics.utilization(queue, 0, rate_bps, start_s=1.0, end_s=2.0) == 1.0
    # By tokens of before a shaper sends more.
    assert metrics.utilization(queue.with_columns(capacity / 3), 0) == 1.0
    drain = pl.Series("drain_s", [0.0, 0.5, 0.1, math.inf])
    delay = metrics.queueing_delay(queue.with_columns(drain), 0)
    assert (delay.mean, delay.max, delay.n) == pytest.approx((0.2, 0.5, 3))


def test_packets_that_were_there_count_as_offered() -> None:
    # Five wait at the start of the window, and all are dropped before another comes.
    queue = queue_table([0, 5], [0, 0], [100, 100, 0])
    queue = queue.with_columns(pl.Series("packets", [9, 5, 0], dtype=pl.UInt32))
    assert metrics.loss_rate(queue, 0, start_s=1.0) == 1.0


def test_a_full_link_has_an_efficiency_of_one() -> None:
    payload = 100e6 * 1448 / 1514
    full = metrics.efficiency([payload], 100e6, payload_bytes=1448, wire_bytes=1514)
    assert full == pytest.approx(1.0)


# Fairness


@given(SHARES)
def test_jain_lies_between_one_nth_and_one(x: list[float]) -> None:
    assert 1 / len(x) - 1e-9 <= metrics.jain(x) <= 1 + 1e-9


def test_jain_of_known_shares() -> None:
    assert metrics.jain([5, 5, 5]) == pytest.approx(1.0)
    assert metrics.jain([1, 0, 0, 0]) == pytest.approx(0.25)
    # Shares of the three CW-HSTCP flows at c = 10 (Pan et al., table 3).
    assert metrics.jain([32.22, 26.61, 19.36]) == pytest.approx(0.961, abs=5e-4)
    assert math.isnan(metrics.jain([0, 0]))


def test_flows_that_take_turns_are_fair_only_over_both_turns() -> None:
    turns = flow_table({0: [80.0, 0.0] * 4, 1: [0.0, 80.0] * 4})
    short = metrics.jain_over_time(turns, 1.0)
    assert short["jain"].to_list() == pytest.approx([0.5] * 8)
    assert short["t_s"].to_list() == list(range(1, 9))
    assert metrics.jain_over_time(turns, 2.0)["jain"].to_list() == pytest.approx([1.0] * 4)


def test_jain_over_time_leaves_out_flows_that_are_not_there_and_windows_without_delivery() -> None:
    table = flow_table({0: [80.0, 80.0, 80.0, 0.0, 80.0], 1: [80.0, 0.0, 80.0]}, starts_s={1: 2.0})
    found = metrics.jain_over_time(table, 1.0)
    assert found["t_s"].to_list() == [3.0, 5.0]
    assert found["jain"].to_list() == pytest.approx([1.0, 1.0])


def test_ratio_and_exponent_of_rtt_fairness() -> None:
    assert metrics.rtt_fairness(80.0, 20.0) == 4.0
    # Reno in step: goodput falls with the square of the RTT.
    assert metrics.rtt_exponent(80.0, 20.0, 0.06, 0.12) == pytest.approx(2.0)
    assert metrics.rtt_exponent(50.0, 50.0, 0.06, 0.12) == 0.0
    assert math.isnan(metrics.rtt_exponent(50.0, 0.0, 0.06, 0.12))
    assert metrics.min_over_max([45.0, 50.0]) == pytest.approx(0.9)


def test_camps_of_a_law_that_takes_a_third_from_standard_tcp() -> None:
    impact = metrics.camps(base_a=[30, 30], base_b=[30, 30], mix_a=[20, 20], mix_b=[45, 45])
    assert impact.gain == pytest.approx(1.5)
    assert impact.loss == pytest.approx(2 / 3)


def test_harm_is_what_is_lost_of_the_best_that_a_flow_can_have() -> None:
    # Ware et al.: a flow with 15 of the 20 Mbit/s that it has alone is harmed by a quarter.
    assert metrics.harm(20.0, 15.0) == pytest.approx(0.25)
    assert metrics.harm(10.0, 40.0, "less") == pytest.approx(0.75)
    assert metrics.harm(20.0, 0.0) == metrics.harm(0.0, 0.01, "less") == 1.0
    assert metrics.harm(0.0, 0.0) == metrics.harm(7.0, 7.0, "less") == 0.0
    # Better off than alone, and the two cases that have no measure.
    assert metrics.harm(10.0, 15.0) == pytest.approx(-0.5)
    assert metrics.harm(40.0, 10.0, "less") == pytest.approx(-3.0)
    assert math.isnan(metrics.harm(0.0, 5.0))
    assert math.isnan(metrics.harm(math.nan, 5.0))
    with pytest.raises(LabError, match="solo: -1; allowed: 0 or more"):
        metrics.harm(-1.0, 5.0)


@given(st.floats(1e-6, 1e12), st.floats(1e-6, 1e12))
def test_harm_of_what_should_be_more_is_that_of_its_inverse(solo: float, beside: float) -> None:
    assert metrics.harm(solo, beside) == pytest.approx(
        metrics.harm(1 / solo, 1 / beside, "less"), rel=1e-9, abs=1e-9
    )


def test_starvation_is_a_share_of_the_time_that_a_flow_lives() -> None:
    x = [10.0, 0.9, 0.0, 1.0, math.nan]
    assert metrics.starvation(x, 10.0) == pytest.approx(2 / 4)
    # The fair share may change with time: half of the flows leave after two bins.
    assert metrics.starvation(x[:4], [10.0, 5.0, 20.0, 20.0]) == pytest.approx(2 / 4)
    assert metrics.starvation(x, 10.0, below=0.05) == pytest.approx(1 / 4)
    assert math.isnan(metrics.starvation([], 10.0))
    with pytest.raises(LabError, match=r"below: 1\.5"):
        metrics.starvation(x, 10.0, below=1.5)


def test_reference_of_standard_tcp() -> None:
    assert metrics.friendliness([30, 60], [15, 15]) == pytest.approx(3.0)
    assert math.isnan(metrics.friendliness([30], [0]))
    # 1.2 / (0.1 s sqrt(1e-4)) = 1200 segments/s.
    assert metrics.reno_ratio(2400 * 1448 * 8, 0.1, 1e-4, 1448) == pytest.approx(2.0)


# Steadiness


def test_cov_uses_the_population_deviation() -> None:
    assert metrics.cov([2, 4, 4, 4, 5, 5, 7, 9]) == pytest.approx(2 / 5)
    assert metrics.cov([3, 3]) == 0
    assert math.isnan(metrics.cov([]))


def test_cov_depends_on_the_time_scale() -> None:
    table = flow_table({0: [40.0, 120.0] * 4, 1: [120.0, 40.0] * 4})
    flows, together = metrics.cov_over_time(table, 1.0)
    assert flows == pytest.approx({0: 0.5, 1: 0.5})
    assert together == 0.0
    assert metrics.cov_over_time(table, 2.0)[0] == {0: 0.0, 1: 0.0}


def test_cov_of_a_late_flow_begins_with_it() -> None:
    table = flow_table({0: [80.0] * 8, 1: [80.0] * 4}, starts_s={1: 4.0})
    assert metrics.cov_over_time(table, 1.0)[0] == {0: 0.0, 1: 0.0}


def test_smoothness_is_the_part_that_one_rtt_takes() -> None:
    window = [100.0, 100, 100, 100, 75, 50, 51, 52, 53]
    table = flow_table({0: [1.0] * 8}, step_s=0.05, cwnd_seg=window, srtt_s=[0.1] * 9)
    assert metrics.smoothness(table) == pytest.approx({0: 0.5})
    table = flow_table({0: [1.0] * 8}, step_s=0.05, cwnd_seg=window, srtt_s=[0.05] * 9)
    assert metrics.smoothness(table)[0] == pytest.approx(1 - 50 / 75)
    rising = flow_table(
        {0: [1.0] * 3}, step_s=0.1, cwnd_seg=[1.0, 2, 3, 4], srtt_s=[0.0, 0.1, 0.1, 0.1]
    )
    assert metrics.smoothness(rising) == {0: 0.0}


# Convergence


def test_convergence_needs_the_share_to_be_held() -> None:
    t = np.arange(1.0, 13.0)
    rate = np.array([0, 1, 0, 0, 0.95, 1, 1, 1, 1, 0.2, 1, 1])
    assert metrics.convergence(t, rate, 1.0, start_s=2.0) == FirstPassage(3.0)
    never = metrics.convergence(t, rate, 1.0, start_s=2.0, tolerance=0.0)
    assert never == FirstPassage(10.0, censored=True)
    assert str(never) == "> 10"


def test_convergence_against_the_mean_of_flows() -> None:
    # Both have 0.93 of what C / N would be: fair to each other, never to the link.
    t, rate = np.arange(1.0, 11.0), np.array([0.2] * 4 + [0.93] * 6)
    assert metrics.convergence(t, rate, 1.0, tolerance=0.0).censored
    mean = (rate + np.array([1.66] * 4 + [0.93] * 6)) / 2
    assert metrics.convergence(t, rate, mean, tolerance=0.0) == FirstPassage(5.0)


def test_vcps_gap_closes_in_sixteen_epochs() -> None:
    # VCP multiplies the gap of the shares by 0.875 an epoch: from 0.9 and 0.1 it takes
    # ceil(ln(0.1 / 0.8) / ln 0.875) = 16 to be 0.1-fair.
    epoch = np.arange(0, 30)
    gap = 0.8 * 0.875**epoch
    small, large = (1 - gap) / 2, (1 + gap) / 2
    assert metrics.delta_fair(epoch, small, large, start_s=0) == FirstPassage(16.0)
    assert metrics.delta_fair(epoch, small, large, delta=0.001, start_s=0).censored


def test_delta_fairness_includes_its_border() -> None:
    assert metrics.delta_fair([1.0], [0.45], [0.55]) == FirstPassage(1.0)


def test_epsilon_fairness_counts_round_trips() -> None:
    t = np.arange(1.0, 6.0)
    x = np.array([[0, 10, 40, 45, 50], [100, 90, 60, 55, 50], [100, 90, 60, 50, 50]])
    assert metrics.epsilon_fair(t, x, 0.1, epsilon=0.2) == FirstPassage(pytest.approx(40.0))
    assert metrics.epsilon_fair(t[:3], x[:, :3], 0.1) == FirstPassage(pytest.approx(30.0), True)


def test_ramp_up_of_a_counter() -> None:
    # 8 kbit/s: 1000 bytes a second, so byte 15000 arrives at 15 s; the flow began at 5 s.
    table = flow_table({0: [8.0] * 30, 7: [8000.0] * 20}, starts_s={7: 5.0})
    assert metrics.ramp_up(table, 7, 5.0) == {1: 15.0}
    assert metrics.ramp_up(table, 0, 0.0) == {}


# Loss


def test_loss_rate_and_what_a_window_leaves_out() -> None:
    queue = queue_table([50, 0, 10, 0], [100, 1000, 1000, 1000])
    assert metrics.loss_rate(queue, 0) == pytest.approx(60 / 3100)
    assert metrics.loss_rate(queue, 0, start_s=1.0) == pytest.approx(10 / 3000)
    assert math.isnan(metrics.loss_rate(queue_table([0], [0]), 0))


def test_losses_within_an_rtt_are_one_event() -> None:
    kinds = {"retransmit": 0, "timeout": 1, "ecn": 2, "undo": 3, "recovered": 4}
    history = [
        (1.0, 0, "retransmit"),
        (1.05, 0, "timeout"),  # the same event
        (1.3, 0, "recovered"),
        (2.0, 0, "ecn"),
        (2.0, 1, "retransmit"),
        (2.2, 0, "undo"),
        (3.0, 0, "retransmit"),
    ]
    table = pl.DataFrame(
        {
            "t_s": [t for t, _, _ in history],
            "flow": pl.Series([flow for _, flow, _ in history], dtype=pl.UInt32),
            "kind": pl.Series([kinds[kind] for _, _, kind in history], dtype=pl.UInt8),
        }
    )
    assert metrics.loss_events(table, 0, 0.1) == 3
    assert metrics.loss_events(table, 0, 0.01) == 4
    assert metrics.loss_events(table, 0, 0.1, start_s=1.5, end_s=2.5) == 1
    assert metrics.loss_events(table, 1, 0.1) == 1
    assert metrics.loss_event_rate(3, 600.0) == pytest.approx(0.005)


def test_retransmissions_of_what_was_sent() -> None:
    table = flow_table({0: [8000.0] * 4}, retransmits=[0, 1, 1, 2, 2])
    sent = metrics.segments_sent(table, 100.0, start_s=1.0)
    assert sent == {0: (31.0, 1.0)}
    assert metrics.retransmission_ratio(*sent[0]) == pytest.approx(1 / 31)


def test_bursts_of_loss_are_joined_over_short_pauses() -> None:
    queue = queue_table([0, 3, 2, 0, 1, 0, 0, 4], [10] * 8)
    apart = metrics.loss_bursts(queue, 0, 0.0)
    assert apart["drops"].to_list() == [5, 1, 4]
    assert apart["start_s"].to_list() == [1.0, 4.0, 7.0]
    assert apart["end_s"].to_list() == [3.0, 5.0, 8.0]
    joined = metrics.loss_bursts(queue, 0, 1.0)
    assert joined["drops"].to_list() == [6, 4]
    assert joined["arrivals"].to_list() == [40, 10]
    assert metrics.loss_bursts(queue_table([0, 0], [5, 5]), 0, 1.0).height == 0


def test_a_flow_that_never_meets_the_full_buffer_is_phase_locked() -> None:
    assert metrics.phase_locked([400, 400, 10], [1e4, 1e4, 1e4]) == [2]
    # One in eight takes everything.
    assert metrics.phase_locked([800, *[60] * 20], [1e4] * 21) == [0]
    assert metrics.phase_locked([400, 300, 200], [1e4, 1e4, 1e4]) == []
    # Too few losses to tell.
    assert metrics.phase_locked([40, 40, 0], [1e4, 1e4, 1e4]) == []
    assert metrics.phase_locked([400, 400, 0], [1e4, 1e4, 10]) == []


# Delay


def test_percentiles_are_nearest_rank() -> None:
    found = metrics.spread(range(1, 101))
    assert (found.p50, found.p95, found.p99, found.max, found.n) == (50, 95, 99, 100, 100)
    assert found.mean == 50.5
    assert metrics.spread([]).n == 0


def test_queueing_delay_of_known_queues() -> None:
    # 1250 bytes take 10 ms at 1 Mbit/s.
    queue = queue_table([0] * 4, [1] * 4, [0, 1250, 2500, 0, 1250])
    delay = metrics.queueing_delay(queue, 0, 1e6)
    assert (delay.p50, delay.max) == pytest.approx((0.01, 0.02))
    assert delay.mean == pytest.approx(0.008)
    assert metrics.queue_empty(queue, 0) == pytest.approx(0.4)


def test_rtt_excess_leaves_out_what_has_no_sample() -> None:
    table = flow_table({0: [1.0] * 3}, rtt_s=[0.0, 0.1, 0.12, 0.2])
    found = metrics.rtt_excess(table, 0, 0.1)
    assert (found.n, found.p50, found.max) == (3, pytest.approx(0.02), pytest.approx(0.1))


def test_completion_times_by_decade_of_size() -> None:
    found = metrics.completion([1000, 9999, 10_000, 1_000_000], [0.1, 0.3, 0.2, 2.0])
    assert list(found) == [3, 4, 6]
    assert (found[3].n, found[3].mean, found[3].max) == (2, pytest.approx(0.2), 0.3)
    assert found[6].p50 == 2.0
    assert metrics.unfinished([0.1, None, 0.2, None]) == 0.5


# What makes no sense


FLOWS = flow_table({0: [80.0] * 10}, cwnd_seg=[1.0] * 11, srtt_s=[0.1] * 11, rtt_s=[0.1] * 11)
QUEUE = queue_table([0] * 10, [10] * 10)
EVENTS = pl.DataFrame({"t_s": [1.0], "flow": [0], "kind": [0]})


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: metrics.jain_over_time(FLOWS, 11.0), "window_s: 11; allowed: up to 10"),
        (lambda: metrics.jain_over_time(FLOWS, -1.0), "window_s: -1; allowed: above 0"),
        (lambda: metrics.jain_over_time(FLOWS, math.nan), "window_s: nan"),
        (lambda: metrics.cov_over_time(FLOWS, 20.0), "bin_s: 20"),
        (lambda: metrics.cov_over_time(FLOWS, 0.5), "bin_s: 0.5; allowed: a multiple of 1, "),
        (lambda: metrics.cov_over_time(FLOWS, 2.5), "bin_s: 2.5; allowed: a multiple of 1, "),
        (lambda: metrics.goodput_bins(FLOWS, bin_s=0.0), "bin_s: 0"),
        (lambda: metrics.goodput(FLOWS, start_s=-1.0), "start_s, end_s: -1, 10"),
        (lambda: metrics.goodput(FLOWS, start_s=6.0, end_s=5.0), "start_s, end_s: 6, 5"),
        (lambda: metrics.goodput(FLOWS, end_s=30.0), "end_s: 30; allowed: up to 10"),
        (lambda: metrics.goodput(FLOWS.drop("delivered_bytes")), "has no column delivered_bytes"),
        (lambda: metrics.goodput(FLOWS.clear()), "sample = off"),
        (lambda: metrics.loss_rate(QUEUE, 3), "link: 3; allowed: 0"),
        (lambda: metrics.loss_rate(QUEUE.drop("drops"), 0), "table queues has no column drops"),
        (lambda: metrics.loss_rate(QUEUE, 0, start_s=9.5), "fewer than two samples"),
        (lambda: metrics.loss_bursts(QUEUE, 0, -1.0), "gap_s: -1"),
        (lambda: metrics.queueing_delay(QUEUE, 0, 0.0), "rate_bps: 0"),
        (lambda: metrics.normalized_goodput([1.0], -5.0), "rate_bps: -5"),
        (lambda: metrics.efficiency([1], 1, payload_bytes=9, wire_bytes=8), "wire_bytes: 8"),
        (lambda: metrics.rtt_exponent(1, 1, 0.2, 0.1), "rtt_a_s, rtt_b_s: 0.2, 0.1"),
        (lambda: metrics.reno_ratio(1e6, 0.1, 1.5, 1448), "loss: 1.5"),
        (lambda: metrics.friendliness([1], []), "new_bps, tcp_bps: 1 and 0 flows"),
        (lambda: metrics.convergence([1, 2], [1, 1], 1.0, start_s=2.0), "start_s: 2"),
        (lambda: metrics.convergence([1, 2], [1, 1], 1.0, hold=0), "hold: 0"),
        (lambda: metrics.convergence([1, 2], [1, 1], 1.0, tolerance=-0.1), "tolerance: -0.1"),
        (lambda: metrics.convergence([1, 2], [1, 1, 1], 1.0), "t_s, goodputs: 2 and 3 values"),
        (lambda: metrics.convergence([1, 2], [1, 1], [1, 1, 1]), "goodput_bps, fair_bps: 2 and 3"),
        (lambda: metrics.delta_fair([1, 2], [1, 1], [1]), "newcomer, other: 2 and 1"),
        (lambda: metrics.delta_fair([1], [1], [1], delta=1.0), "delta: 1"),
        (lambda: metrics.epsilon_fair([1], [[1], [1]], 0.0), "rtt_s: 0"),
        (lambda: metrics.loss_events(EVENTS.drop("kind"), 0, 0.1), "events has no column kind"),
        (lambda: metrics.loss_events(EVENTS, 0, 0.1, start_s=2.0, end_s=1.0), "start_s, end_s"),
        (lambda: metrics.segments_sent(FLOWS, 0.0), "segment_bytes: 0"),
        (lambda: metrics.rtt_excess(FLOWS, 5, 0.1), "flow: 5; allowed: 0"),
        (lambda: metrics.smoothness(FLOWS), "samples are 1 s apart"),
        (lambda: metrics.completion([10], [1, 2]), "size_bytes, seconds: 1 and 2"),
        (lambda: metrics.completion([0], [1]), "at least 1 byte"),
        (lambda: metrics.phase_locked([1], [1, 2]), "drops, arrivals: 1 and 2"),
    ],
)
def test_bad_input_is_named(call: Callable[[], Any], named: str) -> None:
    with pytest.raises(LabError) as raised:
        call()
    assert named in str(raised.value)


def test_a_window_does_not_reach_back_over_the_warm_up() -> None:
    before, after = queue_table([0] * 4, [10] * 4), queue_table([0] * 4, [10] * 4, start_s=4.0)
    queue = pl.concat([before.head(4), after])
    with pytest.raises(LabError, match="allowed: from 4, the end of the warm-up"):
        metrics.loss_rate(queue, 0, start_s=1.0)
    assert metrics.loss_rate(queue, 0, start_s=4.0) == 0.0


# The simulator's own


def test_python_and_the_simulator_agree(results: Results) -> None:
    for run in results.runs:
        flows, table = run.summary["flows"], run.table("flows")
        goodputs = [flow["goodput_bps"] for flow in flows]
        assert metrics.jain(goodputs) == pytest.approx(run.summary["jain"], rel=1e-9)
        assert metrics.goodput(table) == pytest.approx(dict(enumerate(goodputs)), rel=1e-3)
        covs, _ = metrics.cov_over_time(table, 1.0)
        assert covs == pytest.approx({flow["id"]: flow["cov"] for flow in flows}, rel=0.02)
        link, queues = run.summary["links"][0], run.table("queues")
        used = metrics.utilization(queues, 0)
        assert used == pytest.approx(link["utilization"], rel=1e-3)
        lost = metrics.loss_rate(queues, 0)
        assert lost == pytest.approx(link["drops"] / link["arrivals"], rel=1e-2)
        assert metrics.loss_bursts(queues, 0, 0.02)["drops"].sum() == link["drops"]
        events = run.table("events")
        for flow in flows:
            # Reductions of one RTT count as one event, so never more than the sender's own.
            count = metrics.loss_events(events, flow["id"], flow["rtt_s"])
            assert 0 < count <= flow["loss_events"]
