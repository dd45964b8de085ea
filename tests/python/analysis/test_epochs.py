"""Is a run that is too short for a mean told apart from one that is long enough?"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from lfnlab import Case, Results, Run, Scenario, compare, dumbbell, execute, law, theory
from lfnlab.analysis import run_length
from lfnlab.analysis.summary import to_json
from lfnlab.cli import app as cli
from lfnlab.cli.runs import _foresee
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, parse

if TYPE_CHECKING:
    from command import Lfn


def path(*, rate: str = "10Mbit/s", rtt: str = "20ms", buffer: str, duration: str) -> Scenario:
    return dumbbell(rate=rate, rtt=rtt, buffer=buffer, duration=duration)


@pytest.mark.parametrize(
    ("law", "rate", "rtt", "seconds"),
    # Recovery from a loss at full BDP: W RTT / 2 of Reno, 13.42 RTT of Scalable. The known values
    # are for 1500 bytes on the wire, not our 1514, so 1 % of the window is open.
    [
        ("reno", "1Gbit/s", "40ms", 66.7),
        ("reno", "10Gbit/s", "100ms", 4167.0),
        ("scalable", "1Gbit/s", "180ms", 2.42),
    ],
)
def test_epochs_are_those_of_the_closed_forms(
    law: str, rate: str, rtt: str, seconds: float
) -> None:
    scenario = path(rate=rate, rtt=rtt, buffer="1 packets", duration="60s").flow(law, rtt=rtt)
    assert run_length.epoch_s(scenario) == {law: pytest.approx(seconds, rel=0.015)}


def test_flows_share_the_path_and_its_queue() -> None:
    bare = path(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="60s")
    alone = run_length.epoch_s(bare.flow("reno", rtt="40ms"))["reno"]
    four = run_length.epoch_s(bare.flow("reno", rtt="40ms", count=4))["reno"]
    assert four == pytest.approx(alone / 4, rel=0.01)


@pytest.mark.parametrize("size", ["66 packets", "99.924kB", "2bdp"])
def test_a_buffer_is_the_same_in_packets_bytes_and_bdp(size: str) -> None:
    # 10 Mbit/s x 40 ms are 33.03 packets of 1514 bytes.
    scenario = path(rtt="40ms", buffer=size, duration="60s").flow("reno", rtt="40ms")
    bdp = 10e6 * 0.04 / (8 * 1514)
    tooth = theory.sawtooth("reno", bdp / 0.04, 0.04, 66.0)
    assert run_length.epoch_s(scenario)["reno"] == pytest.approx(tooth.period_s, rel=0.01)


def test_where_there_is_no_closed_form_nothing_is_foreseen() -> None:
    lossy = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s", loss=0.01)
    assert run_length.foreseen([lossy.flow("reno")]) == []


def test_a_law_without_a_sawtooth_on_the_path_is_absent() -> None:
    bare = path(rate="1Gbit/s", rtt="100ms", buffer="1bdp", duration="60s")
    assert run_length.epoch_s(bare.flow("const-rate", rtt="100ms")) == {}


def test_a_variant_has_its_own_period() -> None:
    bare = path(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="60s")
    found = run_length.epoch_s(bare.flow("htcp", rtt="40ms").flow("htcp:rtt", rtt="40ms"))
    assert found["htcp"] != pytest.approx(found["htcp:rtt"], rel=0.05)


def test_a_link_whose_trace_is_its_rate_has_no_closed_form(tmp_path: Path) -> None:
    (tmp_path / "up.trace").write_text("1\n2\n3\n")
    file = tmp_path / "traced.toml"
    file.write_text(
        'schema = 1\nduration = "1s"\n'
        'link = { trace = "up.trace", queue = { size = "9 packets" } }\n'
        'flow = [{ law = "reno", rtt = "20ms" }]\n'
    )
    assert run_length.epoch_s(Scenario.load(file)) == {}


def test_a_run_is_foreseen_to_be_too_short() -> None:
    bare = path(rate="10Gbit/s", rtt="100ms", buffer="1bdp", duration="60s")
    (line,) = run_length.foreseen([bare.flow("reno"), bare.flow("scalable")])
    assert "reno about every 12,3" in line
    assert "scalable" not in line


def test_who_waits_at_a_terminal_is_told_before(
    tmp_path: Path, lfn: Lfn, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["compare", "--law", "reno", "--rate", "10Mbit/s", "--rtt", "20ms"]
    command += ["--duration", "1s", "--no-report", "--out", str(tmp_path)]
    assert lfn.err(*command, code=cli.OK) == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _foresee([path(buffer="1bdp", duration="1s").flow("reno")])
    assert lfn.said().err.startswith("lfn: too short for a steady mean, which needs 10 losses")


def test_few_losses_are_seen_and_enough_are_not(tmp_path: Path, lfn: Lfn) -> None:
    short = path(buffer="1bdp", duration="2s")
    seen = run_length.seen(compare(["reno"], short, out=tmp_path / "short"))
    assert len(seen) == 1
    assert "reno" in seen[0]
    assert "theory: one in" in seen[0]
    long = execute(
        [Case(path(buffer="4 packets", duration="60s").flow("reno"))], out=tmp_path / "long"
    )
    assert run_length.seen(long) == []
    assert seen[0] in lfn("report", tmp_path / "short")
    page = (tmp_path / "short" / "report.html").read_text()
    assert "Few losses after the warm-up" in page
    assert "from 0 s to 2 s, without a warm-up" in page
    said = to_json(Results.load(tmp_path / "short"))
    assert said["warnings"] == seen
    assert said["averaged"] == (
        "from 0 s to 2 s, without a warm-up; one run each, since nothing in the scenario is random"
    )
    json.dumps(said, allow_nan=False)


def test_a_law_of_delay_need_not_lose(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    short = path(buffer="1bdp", duration="2s")
    results = compare(["reno", "cubic"], short, out=tmp_path)
    assert "cubic" in run_length.seen(results)[0]
    # The registry, were CUBIC a law of delay.
    other = {"reno": law("reno"), "cubic": replace(law("cubic"), family="delay")}
    monkeypatch.setattr(run_length, "known", other.__getitem__)
    assert "reno" in run_length.seen(results)[0]
    assert "cubic" not in run_length.seen(results)[0]
    assert run_length.foreseen([short.flow("cubic")]) == []


def test_only_losses_of_flows_that_last_count_and_only_after_the_warm_up() -> None:
    def flow(number: int, done: float | None) -> Mapping[str, object]:
        return {"id": number, "law": "reno", "completion_s": done, "goodput_bps": 1e6}

    class Made(Run):
        def table(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
            assert name == "events"
            times = [1.0, *[5.0] * 12, 6.0, 6.0, 7.0]
            return pl.DataFrame(
                {
                    "t_s": times,
                    "flow": pl.Series([0, *[0] * 12, 1, 2, 0], dtype=pl.UInt32),
                    "kind": pl.Series([0, *[0] * 12, 1, 2, 4], dtype=pl.UInt8),
                }
            )

    run = Made(Path("nowhere"), 1, {})
    run.__dict__["summary"] = {"warmup_s": 2.0, "flows": [flow(0, None), flow(1, None), flow(2, 3)]}
    assert run_length._losses(run) == {"reno": [12, 1]}


def test_quantities_as_the_scenario_prints_them() -> None:
    assert parse("1.5kB", BYTES) == 1500
    assert parse("0ps", SECONDS) == 0
    assert parse("1.4Gbit/s", BITS_PER_S) == 1.4e9
    for text in ("10", "ten s", "-1s", "1 fortnight", ""):
        with pytest.raises(ValueError, match="allowed: a number and one of ps, ns"):
            parse(text, SECONDS)
