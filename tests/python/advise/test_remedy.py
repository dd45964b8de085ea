"""Are remedies those that the measurement implies, and do they give so much on its path?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from measured_flow import evidence_of

from known_iperf3 import KNOWN, Known
from lfnlab import dumbbell
from lfnlab.advise import named, remedies
from lfnlab.advise.remedy import SAME, lines
from lfnlab.diagnose.evidence import together
from lfnlab.diagnose.path import fit, given
from lfnlab.errors import UsageError
from lfnlab.scenario.elements import Application, Policer

if TYPE_CHECKING:
    from command import Lfn

    from lfnlab import Scenario
    from lfnlab.advise.remedy import Remedies

IPERF3 = Path(__file__).parents[1] / "data" / "iperf3"
OFFERS = named("cubic,bbr,htcp")


def path(loss: float = 0.0) -> Scenario:
    return dumbbell(
        rate="50Mbit/s", rtt="40ms", buffer="1bdp", duration="10s", loss=loss or None,
        sample="100ms",
    )  # fmt: skip


def found_of(scenario: Scenario, cause: str | None = None, **told: Any) -> Remedies:
    shown = evidence_of(scenario, **told)
    diagnosis = None if cause is None else SimpleNamespace(cause=cause, certain=True)
    known = given(fit(shown, diagnosis), rate="50Mbit/s", rtt=None, buffer="1bdp", loss=None)
    return remedies(known, diagnosis, law="cubic:linux", offers=OFFERS)


def window(size: float) -> dict[str, Any]:
    return {"window_bytes": np.full(100, size)}


@pytest.mark.parametrize(
    ("settings", "cause", "name", "line"),
    [
        ({"receive_window": "60kB"}, "receive-window", "larger receive window", "tcp_rmem="),
        ({"send_buffer": "60kB"}, "send-buffer", "larger send buffer", "tcp_wmem="),
        (
            {"application": Application(rate="5Mbit/s")},
            "application",
            "no limit of the application",
            "without -b",
        ),
    ],
)
def test_what_the_measurement_implies_comes_first_and_frees_the_flow(
    settings: dict[str, Any], cause: str, name: str, line: str
) -> None:
    told = window(60_000.0) if "receive_window" in settings else {}
    found = found_of(path().flow("cubic:linux", **settings), cause, **told)
    first = found.ranked[0]
    assert (first.change.name, first.change.implied) == (name, True)
    assert any(line in typed for typed in first.change.type_)
    assert first.gain > 3
    assert 40e6 < np.median(first.goodputs_bps) <= 50e6
    assert found.is_alike
    assert min(found.now_bps) == pytest.approx(found.fit.goodput_bps, rel=0.25)
    # More of it in another stream helps where a stream is limited, not where the program is.
    two = next(one for one in found.ranked if one.change.name == "2 streams")
    assert (two.gain > 1.5) == (cause != "application")


def test_the_sysctl_line_holds_what_the_path_holds() -> None:
    found = found_of(
        path().flow("cubic:linux", receive_window="60kB"), "receive-window", **window(60_000.0)
    )
    (size,) = [
        int(typed.split('"')[1].split()[2])
        for typed in found.ranked[0].change.type_
        if "tcp_rmem" in typed
    ]
    # Path and queue hold 2 * 250 kB; Linux counts up to twice as much.
    assert 2 * 500_000 <= size <= 4 * 500_000


def test_random_losses_ask_for_a_law_that_ignores_them() -> None:
    found = found_of(replace(path(2e-3), duration="20s").flow("cubic:linux"))
    assert found.cause == "random-loss"
    assert found.ranked[0].change.name in ("law bbr", "8 streams")
    bbr = next(one for one in found.ranked if one.change.name == "law bbr")
    assert bbr.gain > 2
    assert min(bbr.gains) > 1.2


def test_a_gain_is_that_of_the_path_itself() -> None:
    """The goodput of another law there is predicted within a tenth."""
    truth = replace(path(), duration="20s")
    found = found_of(truth.flow("reno:linux"))
    for remedy in found.ranked:
        if remedy.change.law is None or remedy.change.streams > 1:
            continue
        there = evidence_of(truth.flow(remedy.change.law))
        real = float(np.sum(there.goodput_bps * there.lengths_s) / there.lengths_s.sum())
        assert np.median(remedy.goodputs_bps) == pytest.approx(real, rel=0.1)


def test_below_a_policer_pacing_loses_nothing() -> None:
    policed = path()
    assert policed.link is not None
    link = replace(policed.link, policer=Policer(rate="20Mbit/s", burst="30kB"))
    shown = evidence_of(replace(policed, link=link, duration="20s").flow("cubic:linux"))
    diagnosis = SimpleNamespace(cause="policer", certain=True)
    found = remedies(fit(shown, diagnosis), diagnosis, law="cubic:linux", offers=OFFERS)
    pace = next(one for one in found.ranked if one.change.name == "pace below the policer")
    assert pace.gain > 1
    assert "fq maxrate" in pace.change.type_[0]


def test_a_transfer_that_the_fit_does_not_explain_gets_no_other_law() -> None:
    """No cause is known: its goodput on the fitted path would be another."""
    shown = evidence_of(path().flow("cubic:linux"))
    known = fit(shown)
    odd = replace(known, goodput_bps=known.goodput_bps / 50)
    found = remedies(odd, law="cubic:linux", offers=OFFERS)
    assert not found.is_alike
    assert not any(one.change.law for one in found.ranked)
    assert "does not explain" in "\n".join(lines(found, "x"))


def test_parallel_streams_are_one_flow() -> None:
    shown = evidence_of(path().flow("cubic:linux"))
    two = together([shown, shown])
    assert two.goodput_bps.sum() == pytest.approx(2 * shown.goodput_bps.sum())
    assert two.flow["streams"] == 2
    with pytest.raises(UsageError, match="different times"):
        together([shown, replace(shown, edges_s=shown.edges_s + 5)])


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_a_file_of_iperf3_gets_remedies_and_no_wrong_rate(known: Known, lfn: Lfn) -> None:
    asked = ["--iperf3", str(known.file), "--law", "cubic,bbr", "--flows", "2"]
    said = lfn("advise", *asked)
    found = json.loads(lfn("advise", *asked, "--json"))
    rate = found["path"]["rate_bps"]
    if known.cause in ("window", "send buffer", "application"):
        assert rate["bound"] == "least"
        assert rate["value"] < 0.7 * known.rate_bps
        assert "path, rate: at least" in said
    assert rate["value"] <= 1.03 * known.rate_bps
    assert "large enough" not in said
    assert "lfn changes nothing" in said
    if known.cause == "window":
        assert found["cause"] == "receive-window"
        assert found["remedies"][0]["name"] == "larger receive window"
        assert "sysctl -w net.ipv4.tcp_rmem=" in said
    for remedy in found["remedies"]:
        assert remedy["gain_low"] <= remedy["gain"] <= remedy["gain_high"]
    useful = [remedy["gain"] >= SAME for remedy in found["remedies"]]
    assert useful == sorted(useful, reverse=True)


def test_what_is_given_is_not_fitted(lfn: Lfn) -> None:
    file = str(IPERF3 / "known" / "window-1.json")
    asked = ["--iperf3", file, "--law", "cubic", "--rate", "100Mbit/s", "--buffer", "330 packets"]
    found = json.loads(lfn("advise", *asked, "--rtt", "40ms", "--json"))
    assert found["path"]["rate_bps"]["how"] == "given"
    (first, *_) = found["remedies"]
    # The link has three times what the window let through.
    assert first["gain"] == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        (["--bytes", "1GB"], "--bytes: not with --iperf3"),
        (["--beside", "cubic"], "--beside: not with --iperf3"),
        (["--packet", "9000B"], "--packet: not with --iperf3"),
        (["--rate", "0bit/s"], '--rate: "0bit/s" is out of range'),
        (["--rtt", "-1ms"], '--rtt: "-1ms"'),
        (["--buffer", "0 packets"], "--buffer: 0 packets is below one packet"),
        (["--loss", "1"], "--loss: 1.0 is out of range"),
        (["--law", "nope"], '--law: "nope"; no such law'),
        (["--flows", "0"], "--flows: 0; allowed: 1 to 100"),
    ],
)
def test_what_cannot_be_is_refused_by_its_option(more: list[str], wrong: str, lfn: Lfn) -> None:
    file = str(IPERF3 / "known" / "clean-1.json")
    [line] = lfn.err("advise", "--iperf3", file, *more).splitlines()
    assert wrong in line
