"""Are the laws' own code and their equations one? Does every law of the registry have an answer?"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lfnlab import _core, compare, dumbbell, law, theory
from lfnlab.control_laws.registry import laws
from lfnlab.errors import LawError, UsageError
from lfnlab.theory import closed, functions
from lfnlab.theory.fluid import Bottleneck, sawtooth_at_loss, shares, synchronised

if TYPE_CHECKING:
    from command import Lfn

approx = pytest.approx
NAMES = [entry.name for entry in laws()]
#: 100 Mbit/s of 1500 bytes, 100 ms.
RATE_PPS, RTT_S = 8333.0, 0.1
BDP = RATE_PPS * RTT_S
#: What the code does that the equations leave out.
FAST_CONVERGENCE = {
    "cubic",
    "bic",
}  # peaks differ by part of a round trip, and make room for others
FILTER = {"westwood", "htcp-be"}  # the estimate of the bandwidth follows growth a few RTTs behind


@pytest.mark.parametrize("buffer_bdp", [0.2, 1])
@pytest.mark.parametrize("name", sorted(theory.SENDERS))
def test_the_code_draws_the_sawtooth_of_the_equations(name: str, buffer_bdp: float) -> None:
    # Constant-rate increase takes minutes an epoch where Reno takes seconds.
    rate_pps = RATE_PPS / (8 if name == "const-rate" else 1)
    path = (rate_pps, RTT_S, buffer_bdp * rate_pps * RTT_S)
    code, equations = theory.sawtooth(name, *path, code=True), theory.sawtooth(name, *path)
    assert code.window_before == approx(equations.window_before, rel=0.01)
    assert code.utilization == approx(equations.utilization, rel=3e-3)
    # Fast convergence makes every other epoch of CUBIC 1.4 times as long, BIC's shorter.
    period, mean = (0.25, 0.06) if name in FAST_CONVERGENCE else (0.005, 0.005)
    assert code.period_s == approx(equations.period_s, rel=period)
    assert code.mean_window == approx(equations.mean_window, rel=mean)


@pytest.mark.parametrize("loss", [1e-4, 1e-6])
@pytest.mark.parametrize("name", sorted(set(theory.SENDERS) - {"const-rate"}))
def test_the_code_has_the_mean_window_of_the_equations(name: str, loss: float) -> None:
    """BIC's searches have no whole rounds, and CUBIC's peaks are still on their way, at 1e-4."""
    code = sawtooth_at_loss(name, loss, RTT_S, 0.8, code=True).mean_window
    equations = sawtooth_at_loss(name, loss, RTT_S, 0.8).mean_window
    if name in FILTER:
        assert 0.8 * equations < code < 0.99 * equations
    else:
        short = name in FAST_CONVERGENCE and loss == 1e-4
        assert code == approx(equations, rel=0.07 if short else 0.01)


@pytest.mark.parametrize("name", sorted(functions.RESPONDING - set(theory.SENDERS)))
def test_the_code_has_the_closed_response(name: str) -> None:
    for loss in (1e-4, 1e-6):
        code = theory.response(name, loss, RTT_S, 0.8, code=True)
        assert code == approx(theory.response(name, loss, RTT_S, 0.8), rel=0.01)


@pytest.mark.parametrize("name", sorted(functions.RECOVERING))
def test_the_code_grows_back_as_fast_as_the_closed_form(name: str) -> None:
    """At 1000 segments the search of BIC and the rounds of FAST would be a tenth off."""
    window = 1000 if name == "const-rate" else 50_000
    code = theory.recovery_s(name, window, RTT_S, 0.8, code=True)
    of_form = theory.recovery_s(name, window, RTT_S, 0.8)
    # HTCP-BE falls below what the path holds, as its estimate lags behind a growth that quickens;
    # Compound decides its growth once a round trip.
    tolerance = {"htcp-be": 0.07, "compound": 0.015}.get(name, 0.01)
    assert code == approx(of_form, rel=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_every_law_has_an_answer(name: str, lfn: Lfn) -> None:
    """From every command; none where losses end no growth, and the command says so.

    Prague reduces its window at an ACK behind the loss, which the fluid does not have. EBB keeps
    its window at a loss without a queue.
    """

    def told(*arguments: str) -> Any:
        return json.loads(lfn("theory", *arguments, "--law", name, "--json"))

    path = ("--rate", "20Mbit/s")
    window = told("response", "--loss", "1e-4")["mean_window_segments"][name]["sawtooth"]
    recovery_s = told("recovery", *path)["recovery_s"][name]
    answers = law(name).family != "rate" and name not in ("copa", "udt", "prague", "ebb")
    assert (window is not None) == answers
    assert (recovery_s > 0) == (answers or name == "udt")
    tooth = told("sawtooth", *path)["laws"][name]
    assert 0.7 < tooth["utilization"] <= 1 + 1e-3
    assert tooth["mean_rtt_s"] <= 0.2 * (1 + 1e-3)
    for course in told("vector", *path, "--buffer", "0.2bdp", "--losses", "8")["laws"][name]:
        assert sum(course["shares"]) == approx(1)
        assert 0.5 < course["utilization"] <= 1 + 1e-3
    fair = told("fairness", *path, "--buffer", "0.2bdp", "--losses", "8")["laws"][name]
    assert fair["synchronised"]["exponent"] is not None
    assert (fair["independent_exponent"] is not None) == answers


def test_variants_and_pairs(lfn: Lfn) -> None:
    """By their code, and the table says so."""
    lines = lfn("theory", "response", "--law", "reno:linux,reno", "--loss", "1e-4").splitlines()
    assert lines[1].split()[::3] == ["reno:linux", "code"]
    assert float(lines[1].split()[2]) == approx(122.47, rel=0.02)
    assert lines[2].split() == ["reno", "122.47", "122.47", "equations"]
    lines = lfn("theory", "vector", "--law", "reno+vegas,udt+bbr", "--losses", "8").splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["code"] * 4


def test_what_losses_do_not_answer(lfn: Lfn) -> None:
    with pytest.raises(
        LawError,
        match='"copa" has no response function: losses of the fluid do not reduce its window',
    ):
        theory.response("copa", 1e-4, RTT_S, 0.8)
    with pytest.raises(LawError, match="bbr: the window of flow 0 grows past 33554432 segments"):
        theory.response("bbr", 1e-4, RTT_S, 0.8)
    with pytest.raises(LawError, match="udt grows by what is left of a link's capacity"):
        theory.response("udt", 1e-4, RTT_S, 0.8)
    found = lfn("theory", "recovery", "--law", "bbr,xcp")
    assert "bbr: a loss does not make it fall" in found
    assert "xcp: without routers that answer" in found


def test_laws_that_keep_the_queue_short_stop_losing() -> None:
    """Vegas keeps two to four segments there, Copa two on average, FAST 200."""
    for name, queued in (("vegas", 3), ("copa", 2.5), ("fast", 200)):
        tooth = theory.sawtooth(name, RATE_PPS, RTT_S, BDP)
        assert tooth.loss_events_per_packet == 0
        assert tooth.period_s == math.inf
        assert tooth.utilization == approx(1, abs=1e-3)
        assert tooth.mean_rtt_s - RTT_S == approx(queued / RATE_PPS, rel=0.35)
    path = Bottleneck(RATE_PPS, (0.05, 0.1), BDP)
    course = synchronised(["vegas", "vegas"], path, [100, 600], 50)
    assert not course.losses()
    assert shares(course, path).settled
    assert shares(course, path).shares == approx((0.5, 0.5), abs=0.17)  # two to four segments each


@pytest.mark.parametrize("capacity_bps", [1e8, 1e9, 1e10])
def test_udt_takes_seven_and_a_half_seconds_to_nine_tenths(capacity_bps: float) -> None:
    """Gu and Grossman 2007; and 60 s at 800 Mbit/s, a ninth of which is in the decade below."""
    pps = capacity_bps / 8 / closed.UDT_PACKET_B
    assert closed.udt_growth_s(0, pps, 0.9 * pps) == approx(7.5, abs=0.01)
    odd = 8e8 / 8 / closed.UDT_PACKET_B
    assert closed.udt_growth_s(0, odd, 0.9 * odd, cut=True) == approx(60, abs=0.01)


def test_udt_is_fair_to_every_rtt() -> None:
    """Its growth has no RTT in it, and capacity and losses are one for both."""
    path = Bottleneck(RATE_PPS, (0.03, 0.12), 0.2 * BDP)
    course = synchronised(["udt", "udt"], path, [100, 400], 200)
    assert shares(course, path).shares == approx((0.5, 0.5), abs=0.06)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[float, float]]:
    """Share of 100 Mbit/s and mean RTT in s of one simulated flow, with a buffer of a BDP."""
    path = dumbbell(rate="100Mbit/s", rtt="100ms", buffer="1bdp", duration="60s", warmup="20s")
    names = ["yeah", "fast", "copa", "bbr", "bbr3"]
    results = compare(names, path, out=tmp_path_factory.mktemp("theory"))
    found = {}
    for run in results.runs:
        flows = run.table("flows")
        late = flows["srtt_s"].to_numpy()[flows["t_s"].to_numpy() > 20]
        found[run.laws[0]] = run.summary["links"][0]["utilization"], float(np.mean(late))
    return found


@pytest.mark.parametrize("name", ["yeah", "fast", "copa", "bbr", "bbr3"])
def test_the_simulator_has_the_queue_of_the_fluid(
    name: str, simulated: dict[str, tuple[float, float]]
) -> None:
    """Of laws that live by delay or rate; Vegas takes minutes to leave that of its slow start."""
    rate_pps = 100e6 / 8 / 1514  # bytes on the wire
    tooth = theory.sawtooth(name, rate_pps, RTT_S, rate_pps * RTT_S)
    utilization, rtt_s = simulated[name]
    assert tooth.utilization == approx(utilization, abs=0.02)
    assert tooth.mean_rtt_s == approx(rtt_s, rel=0.06)


def test_the_core_refuses_what_is_no_path() -> None:
    arguments = {
        "rate_pps": math.inf,
        "buffer_packets": 0.0,
        "least_rtt": 1.0,
        "packets_to_loss": 100.0,
        "window_at_loss": math.inf,
    }
    with pytest.raises(LawError, match='no law "rono"; did you mean "reno"'):
        _core.fluid(["rono"], [0.1], [10], 2, **arguments)
    for rtts_s, windows, said in (
        ([0.1, 0.1], [10.0], "base_rtts_s: found 2 for 1 laws; allowed: one for each law"),
        ([0.0], [10.0], "base_rtts_s: found 0; allowed: above 0"),
        ([math.nan], [10.0], "base_rtts_s: found NaN; allowed: above 0"),
        ([0.1], [-1.0], "windows: found -1; allowed: above 0"),
        ([], [], "laws: there is none; allowed: at least one"),
    ):
        with pytest.raises(UsageError, match=said):
            _core.fluid(["reno"] * bool(windows), rtts_s, windows, 2, **arguments)
