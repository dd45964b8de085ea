"""Do the closed forms give the values of their sources, and does the fluid agree with both?"""

from __future__ import annotations

import math

import pytest

from lfnlab import compare, dumbbell, law, theory
from lfnlab.errors import LawError, UsageError
from lfnlab.theory import closed, fluid, functions
from lfnlab.theory.fluid import Bottleneck, shares, synchronised
from lfnlab.theory.senders import SENDERS, sender

approx = pytest.approx
ONE_GBIT_PPS = 125_000.0  # of 1000 bytes, as in the CW-HSTCP paper


def run(
    laws: list[str], rtts_s: tuple[float, ...], windows: list[float], losses: int = 300
) -> tuple[theory.Course, Bottleneck]:
    path = Bottleneck(ONE_GBIT_PPS, rtts_s, 0.0)
    return synchronised(laws, path, windows, losses), path


# Closed forms. Numbers are those of the papers and RFCs, or follow from their equations by hand.


def test_reno() -> None:
    """RFC 3649, section 2: 10 Gbit/s, 100 ms, 1500 bytes, a mean window of 83,333."""
    assert closed.aimd_response(2.16e-10) == approx(83_333, rel=1e-3)
    assert closed.aimd_response(1e-4) == approx(122.47, rel=1e-4)
    # 3/8 W^2 packets an epoch of W/2 round trips.
    peak = 1000
    assert closed.aimd_response(1 / (3 / 8 * peak**2)) == approx(3 / 4 * peak)


@pytest.mark.parametrize(
    ("window", "removed", "rfc", "loglog", "ns2", "loss"),
    [
        (50, 0.485723, 1.14599, 1.15448, 1.19762, 7.1983e-4),
        (118, 0.441054, 2.00903, 2.02764, 2.09449, 2.5736e-4),
        (1284, 0.316874, 9.02488, 9.15518, 9.34600, 1.4748e-5),
        (10_661, 0.206763, 30.05334, 30.62578, 30.93838, 1.1685e-6),
        (83_000, 0.100000, 70.84821, 72.51579, 72.51579, 1.0000e-7),
    ],
)
def test_hstcp_increase_and_decrease(
    window: float, removed: float, rfc: float, loglog: float, ns2: float, loss: float
) -> None:
    """RFC 3649, section 5 and table of appendix B; three p(w)."""
    assert closed.hstcp_removed(window) == approx(removed, rel=1e-5)
    assert closed.hstcp_increase(window, "rfc") == approx(rfc, rel=1e-5)
    assert closed.hstcp_increase(window) == approx(loglog, rel=1e-5)
    assert closed.hstcp_increase(window, "ns2") == approx(ns2, rel=1e-5)
    assert closed.hstcp_loss(window) == approx(loss, rel=1e-4)


def test_hstcp_is_reno_up_to_38_segments_and_keeps_a_twentieth_at_least() -> None:
    assert closed.hstcp_increase(38) == 1
    assert closed.hstcp_removed(38) == 0.5
    assert closed.hstcp_removed(1e6) == 0.05
    assert closed.hstcp_increase(38.001, "ns2") == approx(1, rel=1e-4)


@pytest.mark.parametrize(("loss", "window"), [(1e-3, 38.7), (1e-7, 83_000), (1e-5, 1776)])
def test_hstcp_response(loss: float, window: float) -> None:
    """0.118936 / p^0.834824, which RFC 3649 rounds to 0.12 / p^0.835."""
    assert closed.hstcp_response(loss) == approx(window, rel=1e-3)
    assert closed.hstcp_response(loss) == approx(0.12 / loss**0.835, rel=0.015)


def test_scalable() -> None:
    """Kelly 2003: 0.08 / p at the peak, 13.42 round trips whatever the window."""
    assert closed.scalable_response(1e-5) == approx(7489, rel=1e-4)
    assert closed.scalable_response(1e-2) == closed.aimd_response(1e-2)
    for window in (1e3, 1e5):
        assert theory.recovery_s("scalable", window, 0.1, 0.5) == approx(1.342, abs=5e-4)


@pytest.mark.parametrize(("window", "rounds"), [(1000, 15), (8333, 44), (83_333, 337)])
def test_bic_recovery(window: float, rounds: float) -> None:
    """The search with (32, 0.01, 0.125), one step a round trip."""
    assert theory.recovery_s("bic", window, 1.0, 0.5) == approx(rounds, abs=1)
    course = theory.synchronised(["bic"], Bottleneck(window, (1.0,), 0.0), [0.999 * window], 6)
    assert course.seconds(1) == approx(rounds, abs=2)


def test_bic_response_approaches_its_linear_part() -> None:
    """AIMD(32, 1/8): 15.5 / sqrt(p)."""
    assert closed.aimd_response(1e-6, 32, 0.125) == approx(15_492, rel=1e-4)
    assert closed.bic_response(1e-8) == approx(15.492e4, rel=0.02)
    assert closed.bic_response(1e-7) == approx(4.899e4, rel=0.05)
    assert closed.bic_response(1e-5) < 0.8 * 4899


@pytest.mark.parametrize(
    ("loss", "window"), [(1e-4, 187), (1e-5, 1054), (1e-6, 5926), (1e-7, 33_325), (1e-8, 187_400)]
)
def test_cubic_response(loss: float, window: float) -> None:
    """RFC 9438, equation 5, at 100 ms; the paper of 2008 keeps 0.8 and has 1.1741 for 1.0538."""
    assert closed.cubic_response(loss, 0.1) == approx(window, rel=3e-3)
    ratio = closed.cubic_response(loss, 0.1, "2005") / closed.cubic_response(loss, 0.1)
    assert ratio == approx(1.1741 / 1.0538, rel=1e-4)


@pytest.mark.parametrize(("rtt_s", "loss", "window"), [(0.1, 5.48e-4, 52), (0.01, 5.5e-7, 1654)])
def test_cubic_meets_reno(rtt_s: float, loss: float, window: float) -> None:
    assert closed.cubic_response(loss, rtt_s) == approx(window, rel=0.01)
    assert closed.cubic_response(2 * loss, rtt_s) == closed.aimd_response(2 * loss)
    assert closed.cubic_response(loss / 2, rtt_s) > 1.1 * closed.aimd_response(loss / 2)


@pytest.mark.parametrize(
    ("seconds", "gain"), [(0.5, 0.5), (1.5, 2.7604), (2, 7.0833), (5, 90.333), (20, 2396.58)]
)
def test_htcp_gain(seconds: float, gain: float) -> None:
    """The integral of 1, then 1 + 10 x + x^2 / 4 (draft-leith-tcp-htcp-06)."""
    assert closed.htcp_gain(seconds) == approx(gain, rel=1e-4)
    slope = (closed.htcp_gain(seconds + 1e-6) - closed.htcp_gain(seconds)) / 1e-6
    assert closed.htcp_increase(seconds) == approx(slope, rel=1e-4)
    assert closed.htcp_time_s(gain) == approx(seconds, rel=1e-4)


@pytest.mark.parametrize(
    ("seconds", "peak", "mean", "loss"),
    [
        (2, 141.7, 89.3, 5.60e-4),
        (5, 1806.7, 1152.3, 1.736e-5),
        (10, 9515, 6159, 1.624e-6),
        (20, 47_932, 31_139, 1.606e-7),
    ],
)
def test_htcp_epoch(seconds: float, peak: float, mean: float, loss: float) -> None:
    """Half kept, 100 ms."""
    assert closed.htcp_epoch(seconds, 0.1, 0.5) == approx((peak, mean, loss), rel=1e-3)
    assert closed.htcp_response(loss, 0.1, 0.5) == approx(mean, rel=1e-3)


def test_westwood_and_htcp_be_with_a_buffer_of_one_bdp_are_reno_and_htcp() -> None:
    """RTT_min / RTT_max is then one half, which Reno and H-TCP keep too."""
    for loss in (1e-3, 1e-6):
        assert closed.westwood_response(loss, 0.5) == approx(closed.aimd_response(loss))
        htcp = closed.htcp_response(loss, 0.1, 0.5)
        assert closed.htcp_be_response(loss, 0.1, 0.5) == approx(htcp)
        # Keeping more, HTCP-BE does not grow more slowly for it, as H-TCP does.
        htcp = closed.htcp_response(loss, 0.1, 0.8)
        assert closed.htcp_be_response(loss, 0.1, 0.8) > 1.2 * htcp
    assert closed.westwood_response(1e-4, 0.9) == approx(math.sqrt(1.9 / (2 * 0.1 * 1e-4)))


# Windows and RTTs of 1 Gbit/s with 40, 100 and 180 ms, 10 Gbit/s with 100 ms, all with 1500 bytes;
# 10 Gbit/s with 265 ms and 9000 bytes.
PATHS = [(3333, 0.04), (8333, 0.1), (15_000, 0.18), (83_333, 0.1), (36_806, 0.265)]


@pytest.mark.parametrize(
    ("name", "times_s"),
    [
        ("reno", (66.7, 416.7, 1350, 4167, 4877)),
        ("scalable", (0.537, 1.342, 2.416, 1.342, 3.556)),
        ("htcp", (4.43, 9.45, 15.65, 25.28, 27.0)),
        ("cubic", (13.6, 18.4, 22.4, 39.7, 30.2)),
    ],
)
def test_recovery(name: str, times_s: tuple[float, ...]) -> None:
    found = [theory.recovery_s(name, window, rtt_s, 0.5) for window, rtt_s in PATHS]
    assert found == approx(times_s, rel=5e-3)


def test_hstcp_recovery() -> None:
    """62, 75, 84, 119, 101 steps of a round trip with the p(w) of the RFC's table."""

    def rounds(window: float) -> int:
        now, steps = (1 - closed.hstcp_removed(window)) * window, 0
        while now < window:
            now += closed.hstcp_increase(now, "rfc")
            steps += 1
        return steps

    assert [rounds(window) for window, _ in PATHS] == [62, 75, 84, 119, 101]
    # The other p(w) grows by 2 to 3 % more a round trip, and steps end up to one after the fluid.
    for window, rtt_s in PATHS:
        found = theory.recovery_s("hstcp", window, rtt_s, 0.5) / rtt_s
        assert found == approx(rounds(window) / 1.024, abs=1)


def test_htcp_be_recovery() -> None:
    """A buffer of a tenth of the BDP, 1 Gbit/s with 40 ms: 2.38 s, where H-TCP takes 4.43 s."""
    assert theory.recovery_s("htcp-be", 3333, 0.04, 1 / 1.1) == approx(2.38, rel=3e-3)
    assert theory.recovery_s("westwood", 3333, 0.04, 1 / 1.1) == approx(3333 / 11 * 0.04)


@pytest.mark.parametrize(
    ("loss", "per_ack", "pps"),
    [
        (1e-2, 1, 112.33),
        (1e-3, 1, 383.84),
        (1e-4, 1, 1223.64),
        (1e-2, 2, 79.43),
        (1e-3, 2, 271.42),
        (1e-4, 2, 865.25),
    ],
)
def test_padhye(loss: float, per_ack: float, pps: float) -> None:
    """Padhye et al. 1998, equation (30), 100 ms and a timeout of 400 ms."""
    assert closed.padhye_pps(loss, 0.1, 0.4, segments_per_ack=per_ack) == approx(pps, abs=0.006)
    assert closed.padhye_pps(loss, 0.1, 0.4, max_window=2) == 20
    assert pps < closed.mathis_pps(loss, 0.1, segments_per_ack=per_ack) < 1.1 * pps


def test_utilization_and_the_buffer_for_all_of_it() -> None:
    assert closed.additive_utilization(0) == approx(0.75)
    assert closed.additive_utilization(1) == 1
    buffers = [closed.full_link_buffer_bdp(kept) for kept in (0.5, 0.7, 0.875, 0.9)]
    assert buffers == approx([1, 3 / 7, 1 / 7, 1 / 9])
    for kept in (0.5, 0.7, 0.875):
        enough = closed.full_link_buffer_bdp(kept)
        assert closed.additive_utilization(enough, kept) == approx(1)
        assert closed.additive_utilization(0.9 * enough, kept) < 0.9999


def test_random_losses() -> None:
    assert closed.random_loss_response(1e-4) == approx(130.98, rel=1e-4)


# The fluid.


@pytest.mark.parametrize("loss", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("name", ["reno", "westwood", "htcp", "htcp-be"])
def test_the_fluid_has_the_closed_response(name: str, loss: float) -> None:
    tooth = theory.sawtooth_at_loss(name, loss, rtt_s=0.1, kept=0.8)
    assert tooth.mean_window == approx(theory.response(name, loss, rtt_s=0.1, kept=0.8), rel=1e-4)
    assert tooth.loss_events_per_packet == approx(loss)


@pytest.mark.parametrize(
    ("name", "more"),
    # The RFC takes a(w) at the mean; growth of 1 % compounds once a round trip, or at each ACK.
    [("hstcp", (0.02, 0.025)), ("scalable", (-0.006, -0.004)), ("bic", (0.0, 0.02))],
)
@pytest.mark.parametrize("loss", [1e-5, 1e-7])
def test_the_fluid_differs_from_the_closed_response_as_said(
    name: str, more: tuple[float, float], loss: float
) -> None:
    tooth = theory.sawtooth_at_loss(name, loss, rtt_s=0.1, kept=0.8)
    ratio = tooth.mean_window / theory.response(name, loss, rtt_s=0.1, kept=0.8)
    assert more[0] < ratio - 1 < more[1]


def test_a_cubic_epoch_has_the_closed_response() -> None:
    """RFC 9438: a loss at W_max each 1 / p packets, where the curve arrives at t = K."""
    loss, rtt_s = 1e-6, 0.1
    peak = closed.cubic_response(loss, rtt_s) * 4 / 3.7
    course = synchronised(["cubic"], Bottleneck(peak / rtt_s, (rtt_s,), 0.0), [0.999 * peak], 8)
    assert course.packets(1)[0] == approx(1 / loss, rel=1e-3)
    assert course.seconds(1) == approx(math.cbrt(0.3 * peak / 0.4), rel=1e-3)


@pytest.mark.parametrize(
    ("peak", "rounds", "mean"), [(1000, 48, 825), (10_000, 77, 8916), (90_000, 121, 85_645)]
)
def test_hstcp_sawtooth(peak: float, rounds: float, mean: float) -> None:
    """Steps of a round trip with the p(w) of the RFC's table, 2.4 % slower than the fluid's."""
    tooth = theory.sawtooth("hstcp", peak, 1.0, 0)
    assert tooth.mean_window == approx(mean, rel=0.01)
    assert 1.024 * tooth.period_s == approx(rounds, abs=1)
    assert tooth.growth == approx(closed.hstcp_increase(peak), rel=1e-3)


@pytest.mark.parametrize("buffer_bdp", [0.0, 0.2, 0.7, 1.0, 1.5])
def test_renos_sawtooth_fills_the_share_in_closed_form(buffer_bdp: float) -> None:
    tooth = theory.sawtooth("reno", 1e4, 0.1, 1000 * buffer_bdp)
    # A step of 2 % of the window in which the queue begins is taken for one of a mean round trip.
    assert tooth.utilization == approx(closed.additive_utilization(buffer_bdp), rel=2e-4)
    assert tooth.window_before == approx(1000 * (1 + buffer_bdp), rel=1e-4)
    assert tooth.window_after == approx(tooth.window_before / 2)
    # Little's law: what is in flight is rate times round trip.
    flight = tooth.utilization * 1e4 * tooth.mean_rtt_s
    assert flight == approx(tooth.mean_window, rel=1e-6)


@pytest.mark.parametrize("rate_pps", [833_333, 833_334, 5e5 / 3, 1e5 / 7])
@pytest.mark.parametrize("name", ["cubic", "bic"])
def test_equal_peaks_do_not_start_fast_convergence(name: str, rate_pps: float) -> None:
    """Which would make epochs of CUBIC alternate, and 3/10 longer on average."""
    tooth = theory.sawtooth(name, rate_pps, 0.1, 0)
    again = theory.recovery_s(name, 0.1 * rate_pps, 0.1, 0.5)
    assert tooth.period_s == approx(again, abs=0.2)  # two round trips
    assert tooth.window_after == approx((0.7 if name == "cubic" else 0.875) * 0.1 * rate_pps)


@pytest.mark.parametrize(("name", "kept"), [("cubic", 0.7), ("htcp", 0.8)])
def test_short_paths_are_in_steps_of_their_own(name: str, kept: float) -> None:
    """1 Gbit/s, 0.5 ms: an epoch ends within the first second, where these laws are additive."""
    tooth = theory.sawtooth(name, 83_333, 0.5e-3, 0)
    assert tooth.period_s < 0.05
    assert tooth.utilization == approx(closed.additive_utilization(0, kept), rel=1e-3)


def test_westwood_falls_to_what_the_path_holds_without_its_queue() -> None:
    tooth = theory.sawtooth("westwood", 1e4, 0.1, 100)
    assert tooth.window_after == approx(1000, rel=1e-4)
    assert tooth.utilization == approx(1, rel=1e-4)
    with pytest.raises(UsageError, match="leaves the path full"):
        theory.sawtooth("westwood", 1e4, 0.1, 0)


def test_htcp_halves_when_its_throughput_has_changed_by_a_fifth() -> None:
    """Between 0.5 and 0.8 of the window, RTT_min / RTT_max where it is steady."""
    rtt_s = 0.1
    for base_s, window, kept in (
        (0.07, 1000, 0.7),
        (0.07, 1190, 0.7),
        (0.07, 1210, 0.5),
        (0.07, 790, 0.5),
        (0.04, 1000, 0.5),
        (0.1, 1000, 0.8),
    ):
        first = sender("htcp", 1000).lost(rtt_s, base_s)
        again = sender("htcp", window)
        again = type(again)(window, adaptive=True, rate_pps=first.rate_pps)
        assert again.lost(rtt_s, base_s).window == approx(kept * window)


@pytest.mark.parametrize("name", ["reno", "cubic", "htcp", "scalable", "westwood", "hstcp"])
def test_the_simulator_fills_the_link_as_the_fluid_does(
    name: str, utilizations: dict[str, float]
) -> None:
    rate_pps = 50e6 / 8 / 1514
    tooth = theory.sawtooth(name, rate_pps, 0.04, 0.2 * rate_pps * 0.04)
    # On CUBIC's plateau the last segment takes the fluid one of its five seconds: it begins
    # (1 / 0.4)^(1/3) = 1.4 s before K. A sender of whole packets loses before that.
    assert utilizations[name] == approx(tooth.utilization, rel=0.015 if name == "cubic" else 0.01)


@pytest.fixture(scope="module")
def utilizations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Share of 50 Mbit/s that one simulated flow of each law fills, with a fifth of a BDP."""
    path = dumbbell(rate="50Mbit/s", rtt="40ms", buffer="0.2bdp", duration="120s", warmup="30s")
    names = ["reno", "cubic", "htcp", "scalable", "westwood", "hstcp"]
    results = compare(names, path, out=tmp_path_factory.mktemp("theory"))
    return {run.laws[0]: run.summary["links"][0]["utilization"] for run in results.runs}


# Two flows that lose together.


@pytest.mark.parametrize(
    ("name", "first", "exponent"),
    [("reno", 0.800, 2.0), ("hstcp", 0.985, 6.05), ("htcp", 0.800, 2.0), ("cw-hstcp", 2 / 3, 1.0)],
)
def test_shares_of_synchronised_flows(name: str, first: float, exponent: float) -> None:
    """60 and 120 ms on 1 Gbit/s; HSTCP's share is that of a model in steps of 10 ms."""
    course, path = run([name] * 2, (0.06, 0.12), [3000, 6000], 200)
    found = shares(course, path)
    assert found.settled
    assert found.shares[0] == approx(first, abs=1e-3)
    assert found.exponent == approx(exponent, rel=0.01)
    assert found.jain == approx(1 / (2 * sum(share**2 for share in found.shares)))


@pytest.mark.parametrize(
    ("name", "expected", "index"),
    [
        ("reno", (0.673, 0.220, 0.108), 0.65),
        ("hstcp", (0.963, 0.033, 0.004), 0.36),
        ("cw-hstcp", (0.507, 0.290, 0.203), 0.871),
    ],
)
def test_shares_of_three(name: str, expected: tuple[float, ...], index: float) -> None:
    """80, 140 and 200 ms."""
    course, path = run([name] * 3, (0.08, 0.14, 0.2), [3000, 5000, 8000])
    found = shares(course, path)
    assert found.shares == approx(expected, abs=2e-3)
    assert found.jain == approx(index, abs=5e-3)


def test_hstcp_ends_at_one_point_from_either_side() -> None:
    """Against the CW-HSTCP paper's Fig. 3, in which the larger window would go on growing.

    The longer RTT loses from either start. At the fixed point both take the same time to grow back.
    """
    ends = []
    for windows in ([9000.0, 2000.0], [500.0, 6000.0]):
        course, _ = run(["hstcp"] * 2, (0.12, 0.06), windows)
        ends.append(course.epochs[-1].after)
        last, before_that = course.epochs[-1], course.epochs[-2]
        for flow, rtt_s in enumerate((0.12, 0.06)):
            grown_s = closed.growth_time_s(
                closed.hstcp_increase,
                float(before_that.after[flow]),
                float(last.before[flow]),
                lambda _, rtt_s=rtt_s: rtt_s,
            )
            assert grown_s == approx(last.end_s - last.start_s, rel=1e-4)
    for end in ends:
        assert end == approx([144, 5712], abs=1)


def test_hstcp_on_its_way() -> None:
    """(4185, 3563) after 16.8 s from (3000, 1000), in steps of 10 ms."""
    course, _ = run(["hstcp"] * 2, (0.12, 0.06), [3000, 1000], 20)
    epoch = min(course.epochs, key=lambda epoch: abs(epoch.end_s - 16.8))
    assert epoch.after == approx([4185, 3563], rel=2e-3)


def test_equal_rtts_converge_but_for_scalable() -> None:
    """Multiplicative increase and decrease keep the ratio; every other law ends at equality."""
    losses = {"reno": 30, "hstcp": 200, "bic": 80, "cubic": 60, "htcp": 40, "cw-hstcp": 200}
    for name, enough in losses.items():
        course, path = run([name] * 2, (0.06, 0.06), [6000, 100], enough)
        found = shares(course, path)
        assert found.shares == approx((0.5, 0.5), abs=0.01), name
        assert math.isnan(found.exponent)
    course, _ = run(["scalable"] * 2, (0.06, 0.06), [6000, 1000], 50)
    for epoch in course.epochs:
        assert epoch.before[0] / epoch.before[1] == approx(6, rel=1e-6)


def test_scalable_flow_with_the_longer_rtt_ends_as_reno() -> None:
    """At the legacy window of 16 segments, where growth stops being multiplicative."""
    course, path = run(["scalable"] * 2, (0.06, 0.12), [3000, 6000], 500)
    assert shares(course, path).shares[1] == approx(0.0012, abs=1e-4)
    assert course.epochs[-1].before[1] == approx(16, abs=2)


def test_conservation_in_a_full_link() -> None:
    """With a buffer of one BDP two Reno flows leave no gap, and packets are window over RTT."""
    path = Bottleneck(1e4, (0.05, 0.1), 1000.0)
    course = synchronised(["reno", "reno"], path, [300, 300], 40)
    found = shares(course, path)
    assert found.utilization == approx(1, rel=1e-4)
    for windows in course.windows[::50]:
        rtts_s = path.rtts_s(windows)
        load = sum(w / rtt_s for w, rtt_s in zip(windows, rtts_s, strict=True))
        assert load <= 1e4 * (1 + 1e-9)
        flying = [w * b / r for w, b, r in zip(windows, path.base_rtts_s, rtts_s, strict=True)]
        assert sum(windows) - sum(flying) <= 1000 * (1 + 1e-6)


@pytest.mark.parametrize(
    ("name", "loss", "window"),
    [
        ("veno", 1e-4, 212.13),
        ("illinois", 1e-4, 866.03),
        ("yeah", 1e-5, 7489.0),
        ("hybla", 1e-4, 489.90),
        ("ltcp", 1e-6, 7883.0),
        ("compound", 1e-6, 16_090.0),
        ("const-rate", 1e-4, 24.495),
        ("dctcp", 1e-4, 122.47),
        # Reno's where Reno is faster.
        ("ltcp", 1e-2, 31.38),
        ("compound", 1e-2, 12.247),
    ],
)
def test_responses_of_the_other_laws(name: str, loss: float, window: float) -> None:
    """By hand, RTT 100 ms; on the laws themselves in crates/law/tests/model/response.rs."""
    assert theory.response(name, loss, rtt_s=0.1, kept=0.5) == approx(window, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "loss"), [("ltcp", 1e-8), ("hybla", 1e-5), ("const-rate", 1e-5), ("dctcp", 1e-5)]
)
def test_sawtooths_of_the_other_laws(name: str, loss: float) -> None:
    """The fluid within 3 % of the closed form, which takes LTCP's layers as many."""
    found = theory.sawtooth_at_loss(name, loss, 0.1, 0.5).mean_window
    assert found == approx(theory.response(name, loss, rtt_s=0.1, kept=0.5), rel=0.03)


@pytest.mark.parametrize(
    ("name", "exponent"),
    [
        ("reno", 1),
        ("hstcp", 1),
        ("scalable", 1),
        ("bic", 1),
        ("cubic", 0.25),
        ("cw-hstcp", 0.165),
        ("ltcp", 1),
        ("hybla", 0),
        ("const-rate", 0),
    ],
)
def test_independent_losses(name: str, exponent: float) -> None:
    """Response functions without an RTT give 1; RTT^0.75 gives 1/4; RTT^0.835 gives 0.165."""
    found = functions.independent_exponent(name, 1e-6, (0.05, 0.1), 0.5)
    assert found == approx(exponent, abs=0.006)


@pytest.mark.parametrize("loss", [1e-4, 1e-6, 1e-8, 1e-10])
def test_independent_losses_of_htcp(loss: float) -> None:
    assert 0.5 < functions.independent_exponent("htcp", loss, (0.05, 0.1), 0.5) < 0.6


def test_models_are_of_laws_that_exist_and_start_where_asked() -> None:
    for name in SENDERS:
        assert sender(name, 50.0).window == 50
        assert law(name).name == name
    with pytest.raises(LawError, match=r'"vegas" has no model; allowed: reno, hstcp'):
        sender("vegas", 50.0)


def test_windows_that_the_path_does_not_hold() -> None:
    with pytest.raises(UsageError, match="more than path and buffer hold"):
        run(["reno"] * 2, (0.06, 0.12), [6000, 6000])


def test_a_loss_after_a_plateau_is_located_in_few_steps() -> None:
    asked = []

    def excess(s: float) -> float:
        asked.append(s)
        return 0.0 if s < 0.7 else s

    assert fluid._root(excess, 1.0, 0.0, 1.0) == pytest.approx(0.7, abs=1e-7)
    assert len(asked) < 100
