"""Is the path that is fitted to a flow the one below it, and is a bound called one?"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from measured_flow import evidence_of

from known_iperf3 import KNOWN, Known
from lfnlab import Scenario, dumbbell
from lfnlab.diagnose import evidence
from lfnlab.diagnose.path import Fit, fit
from lfnlab.errors import UsageError
from lfnlab.formats import iperf3
from lfnlab.scenario.elements import Application, Change, Policer

LAWS = ("reno", "cubic", "htcp", "illinois", "hybla", "veno")


def drawn(seed: int) -> tuple[Scenario, float, float, int]:
    """A path on which a queue stands and overflows at times: rate, RTT, buffer."""
    draw = np.random.default_rng(seed)
    rate_bps = float(np.exp(draw.uniform(np.log(5e6), np.log(100e6))))
    rtt_s = float(np.exp(draw.uniform(np.log(0.02), np.log(0.1))))
    packets = max(15, round(float(draw.uniform(0.4, 1.5)) * rate_bps * rtt_s / 8 / 1514))
    scenario = dumbbell(
        rate=f"{rate_bps:.0f}bit/s",
        rtt=f"{rtt_s * 1e9:.0f}ns",
        buffer=f"{packets} packets",
        duration="20s",
        sample="100ms",
        seed=seed,
    ).flow(f"{LAWS[seed % len(LAWS)]}:linux")
    return scenario, rate_bps, rtt_s, packets


def test_rate_rtt_and_buffer_are_those_of_the_path() -> None:
    """In 95 % of drawn transfers in which they can be seen; most can."""
    apart: dict[str, list[float]] = {"rate": [], "rtt": [], "buffer": []}
    for seed in range(40):
        scenario, rate_bps, rtt_s, packets = drawn(seed)
        found = fit(evidence_of(scenario))
        for name, estimate, truth in (
            ("rate", found.rate_bps, rate_bps),
            ("rtt", found.rtt_s, rtt_s),
            ("buffer", found.buffer_packets, packets),
        ):
            if estimate.is_fitted and not estimate.bound:
                apart[name].append(abs(estimate.value / truth - 1))
        assert found.loss.value < 1e-3
    assert len(apart["rate"]) >= 38
    assert len(apart["buffer"]) >= 25
    for name, most in (("rate", 0.03), ("rtt", 0.03), ("buffer", 0.15)):
        assert np.mean(np.array(apart[name]) <= most) >= 0.95, (name, sorted(apart[name])[-5:])


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"receive_window": "60kB"}, "receive-window"),
        ({"send_buffer": "60kB"}, "send-buffer"),
        ({"application": Application(rate="5Mbit/s")}, "application"),
        ({"receive_window": "60kB"}, None),
    ],
)
def test_what_holds_a_flow_back_is_not_the_rate_of_its_path(
    settings: dict[str, object], cause: str | None
) -> None:
    path = dumbbell(rate="50Mbit/s", rtt="40ms", buffer="1bdp", duration="10s", sample="100ms")
    shown = evidence_of(path.flow("cubic:linux", **settings))  # type: ignore[arg-type]
    if "receive_window" in settings:
        shown = replace(shown, window_bytes=np.full(shown.rtt_s.size, 60_000.0))
    diagnosis = None if cause is None else SimpleNamespace(cause=cause)
    found = fit(shown, diagnosis)
    assert found.rate_bps.bound == "least"
    assert found.rate_bps.high == np.inf
    assert found.goodput_bps < found.rate_bps.value < 20e6
    assert "held it back" in found.rate_bps.how
    assert not found.buffer_packets.is_fitted
    assert set(found.held) == set(settings)
    # The scenario holds its flow back as the measured one was.
    again = evidence_of(replace(Scenario.from_toml(found.scenario()), sample="100ms"))
    ours, theirs = (np.median(x.goodput_bps[20:]) for x in (again, shown))
    assert ours == pytest.approx(theirs, rel=0.05)


def test_losses_without_a_queue_are_random_ones() -> None:
    path = dumbbell(
        rate="50Mbit/s", rtt="40ms", buffer="1bdp", duration="60s", loss=1e-3, sample="100ms"
    )
    found = fit(evidence_of(path.flow("reno:linux")))
    assert found.loss.low <= 1e-3 <= found.loss.high
    assert found.loss.value == pytest.approx(1e-3, rel=0.4)
    clean = fit(evidence_of(replace(path, link=replace(path.link, loss=None)).flow("reno:linux")))  # type: ignore[type-var]
    assert clean.loss.value == 0
    assert clean.loss.high < 1e-3


def test_a_policer_is_fitted_where_the_diagnosis_says_so() -> None:
    path = dumbbell(rate="100Mbit/s", rtt="40ms", buffer="330 packets", duration="20s")
    assert path.link is not None
    policed = replace(path.link, policer=Policer(rate="20Mbit/s", burst="250kB"))
    path = replace(path, link=policed, sample="100ms")
    found = fit(evidence_of(path.flow("cubic:linux")), SimpleNamespace(cause="policer"))
    assert found.policer is not None
    assert 15e6 < float(found.policer.rate.removesuffix("bit/s")) <= 20.5e6
    assert found.rate_bps.bound == "least"
    assert "[link.policer]" in found.scenario()


def test_a_flow_that_others_disturb_shows_a_bound_of_the_rate() -> None:
    path = dumbbell(rate="50Mbit/s", rtt="40ms", buffer="1bdp", duration="40s", sample="100ms")
    shared = path.flow("cubic:linux").flow("reno:linux", start="5s", count=3)
    found = fit(evidence_of(shared))
    assert found.rate_bps.value <= 51e6
    assert found.cross_bps.value > 5e6 or found.rate_bps.value == pytest.approx(50e6, rel=0.05)


def test_a_slow_flow_does_not_shorten_the_rtt() -> None:
    """Its packet's own time, at a rate of which only a bound is known, is no part of the RTT."""
    lossy = dumbbell(
        rate="20Mbit/s", rtt="40ms", buffer="1bdp", duration="20s", sample="100ms", loss=0.02
    ).flow("reno:linux")
    seen = evidence_of(lossy)
    seen = replace(seen, inflight_bytes=np.full(seen.rtt_s.size, np.nan))  # As of iperf3.
    found = fit(seen, SimpleNamespace(cause="random-loss", certain=False))
    assert found.rate_bps.bound == "least"
    assert found.rate_bps.value < 5e6
    assert found.rtt_s.value == pytest.approx(0.04, rel=0.03)


def test_a_queue_of_acks_is_not_taken_for_the_buffer() -> None:
    scenario = Scenario.from_toml(
        """
        schema = 1
        duration = "20s"
        sample = "100ms"
        [link]
        rate = "20Mbit/s"
        queue = { size = "20 packets" }
        [link.reverse]
        rate = "60kbit/s"
        queue = { size = "50 packets" }
        [[flow]]
        law = "cubic:linux"
        rtt = "40ms"
        """,
        "back.toml",
    )
    found = fit(evidence_of(scenario), SimpleNamespace(cause="ack-path", certain=True))
    assert (found.rtt_s.bound, found.buffer_packets.is_fitted) == ("most", False)
    assert found.rtt_s.value >= 0.04


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_bounds_of_a_file_of_iperf3_hold_on_the_path_below_it(known: Known) -> None:
    found = fit(evidence.of(iperf3.read(known.file), 0))
    if found.rate_bps.bound:
        assert found.rate_bps.bound == "least"
        assert found.rate_bps.value <= known.rate_bps
    else:
        assert found.rate_bps.value == pytest.approx(known.rate_bps, rel=0.03)
    assert found.rtt_s.low <= known.rtt_s <= 1.03 * found.rtt_s.high
    assert found.loss.low <= known.loss <= found.loss.high or known.cause == "policer"
    if known.cause in ("window", "send buffer", "application"):
        assert found.rate_bps.bound == "least"
    assert Scenario.from_toml(found.scenario()).check().link


@pytest.mark.parametrize(
    ("rtts_ms", "bound"),
    [((40.1, 40.2, 40.3), ""), ((40.1, 42.0, 44.0), "most"), ((4.01,), "most")],
)
def test_a_smoothed_rtt_is_the_paths_where_it_comes_again(
    rtts_ms: tuple[float, ...], bound: str
) -> None:
    rows = 30
    rtts_s = np.resize(np.array([*rtts_ms, *(50.0 + np.arange(5))]) / 1e3, rows)
    rtts_s[8:] = 0.05
    unknown = np.full(rows, np.nan)
    columns = dict.fromkeys(evidence.Evidence.__dataclass_fields__, unknown)
    columns |= {"goodput_bps": np.full(rows, 1e7), "rtt_s": rtts_s, "retransmits": np.zeros(rows)}
    columns |= {"cwnd_bytes": np.full(rows, 1e5), "window_bytes": np.full(rows, 1e6)}
    flow = {"id": 0, "direction": "forward", "law": "cubic", "segment_bytes": 1448}
    columns |= {"flow": flow, "edges_s": np.arange(rows + 1) / 10}
    named = SimpleNamespace(cause="send-buffer", certain=False)
    found = fit(evidence.Evidence(**columns), named)
    assert found.rtt_s.bound == bound
    assert found.rtt_s.value == pytest.approx(rtts_ms[0] / 1e3)
    assert found.rate_bps.bound == "least"


def test_a_scenario_tells_what_was_fitted_and_what_assumed() -> None:
    scenario, *_ = drawn(2)
    found = fit(evidence_of(scenario))
    text = found.scenario("htcp:linux")
    again = Scenario.from_toml(text).check()
    assert again.flows[0].law == "htcp:linux"
    for line, above in zip(text.splitlines()[1:], text.splitlines(), strict=False):
        key = line.partition(" ")[0]
        if key in ("rate", "size", "rtt"):
            assert above.startswith("# ")
            assert ", fitted: " in above or ", assumed: " in above
    assert "# cross traffic, " in text
    assert found.to_json()["rate_bps"]["fitted"] is True


CASES = {
    "no RTT": {"rtt_s": np.nan},
    "no retransmissions": {"retransmits": np.nan},
    "neither window nor flight": {"cwnd_bytes": np.nan, "inflight_bytes": np.nan},
    "an RTT of nothing but the base": {"rtt_s": 0.04},
    "a closed window": {"window_bytes": 0.0},
    "all limited by the application": {"app_limited": 1.0},
    "gaps": {"goodput_bps": "gaps"},
    "a rate of a bit": {"goodput_bps": 1.0},
    "a rate of a terabit": {"goodput_bps": 1e12},
    "losses in every row": {"retransmits": 7.0},
}


@pytest.mark.parametrize("changed", CASES.values(), ids=CASES)
def test_a_hostile_or_poor_flow_has_a_path_that_can_be_simulated(
    changed: dict[str, float | str],
) -> None:
    scenario, *_ = drawn(1)
    shown = evidence_of(replace(scenario, duration="5s"))
    arrays = {
        name: np.where(np.arange(shown.rtt_s.size) % 3, np.nan, getattr(shown, name))
        if value == "gaps"
        else np.full(shown.rtt_s.size, value)
        for name, value in changed.items()
    }
    if "rtt_s" in changed:
        arrays["flow"] = {**shown.flow, "min_rtt_s": None}  # type: ignore[assignment]
    found = fit(replace(shown, **arrays))  # type: ignore[arg-type]
    assert Scenario.from_toml(found.scenario()).check().link
    assert_sane(found)


def assert_sane(found: Fit) -> None:
    for estimate in (found.rate_bps, found.rtt_s, found.buffer_packets, found.loss):
        assert np.isfinite(estimate.value)
        assert estimate.low <= estimate.high
        assert estimate.how


def test_two_rows_suffice_and_no_data_are_refused() -> None:
    scenario, *_ = drawn(3)
    shown = evidence_of(replace(scenario, duration="4s"), every=20)
    assert_sane(fit(shown))
    with pytest.raises(UsageError, match="no byte was acknowledged"):
        fit(replace(shown, goodput_bps=np.zeros(shown.rtt_s.size)))


def test_two_rates_of_a_busy_link_have_none_between() -> None:
    """The median of two is neither, and nothing is near it."""
    scenario, *_ = drawn(1)
    shown = evidence_of(scenario)
    for factor in (0.5, 0.8):
        rates = shown.goodput_bps.copy()
        rates[rates.size // 2 :] *= factor
        found = fit(replace(shown, goodput_bps=rates))
        assert 0 < found.rate_bps.value < 2 * float(shown.goodput_bps.max())


def test_a_count_that_jumps_when_a_loss_is_mended_is_no_rate() -> None:
    """A receiver's file tells neither RTT nor losses."""
    path = dumbbell(rate="20Mbit/s", rtt="40ms", buffer="0.5bdp", duration="6s", sample="100ms")
    seen = evidence_of(path.flow("cubic:linux"))
    unknown = np.full(seen.rtt_s.size, np.nan)
    rates = seen.goodput_bps.copy()
    rates[30:32] = 0.0, rates[30:32].sum()
    hidden = {"rtt_s": unknown, "cwnd_bytes": unknown, "inflight_bytes": unknown}
    found = fit(replace(seen, goodput_bps=rates, retransmits=unknown, **hidden)).rate_bps
    assert found.bound == "least"
    assert 15e6 < found.value <= 20e6


def test_a_pause_of_the_application_is_no_buffer() -> None:
    path = dumbbell(rate="20Mbit/s", rtt="40ms", buffer="20 packets", duration="4s", sample="20ms")
    seen = evidence_of(path.flow("cubic:linux"))
    paused = np.where(np.arange(seen.rtt_s.size) % 25 == 0, 0.4, seen.rtt_s)
    found = fit(replace(seen, rtt_s=paused), SimpleNamespace(cause="application"))
    assert not found.buffer_packets.is_fitted
    assert "pauses of the application" in found.buffer_packets.how


def test_another_way_is_no_buffer() -> None:
    """A way that is longer for some time adds to the RTT as a queue does."""
    other = [
        Change(at=f"{at}s", link="forward", delay=delay)
        for at, delay in ((4, "60ms"), (7, "0ms"), (10, "60ms"), (13, "0ms"))
    ]
    path = dumbbell(
        rate="20Mbit/s", rtt="20ms", buffer="30 packets", duration="16s", sample="100ms"
    )
    seen = evidence_of(path.flow("cubic:linux").with_changes(*other))
    seen = replace(seen, cwnd_bytes=np.full(seen.rtt_s.size, np.nan))  # as of a capture
    wrong = fit(seen).buffer_packets
    assert wrong.is_fitted or wrong.low > 60  # as a queue it would be twice as large
    found = fit(seen, SimpleNamespace(cause="path-change", certain=False)).buffer_packets
    assert not found.is_fitted
    assert found.low <= 30 <= found.high
    assert "another way" in found.how
