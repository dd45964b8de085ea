"""Scenarios that once gave a wrong number without a word, each with the right one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lfnlab import Scenario
from lfnlab.analysis import warnings
from lfnlab.cli.app import call
from lfnlab.experiment.run import execute

if TYPE_CHECKING:
    from command import Lfn

    from lfnlab import Results
    from lfnlab.results.summary import Summary

FAULTS = Path(__file__).parents[1] / "data/faults"
#: Payload and frame of a full packet.
PAYLOAD, FRAME = 1448, 1514


def text_of(name: str) -> str:
    return (FAULTS / f"{name}.toml").read_text()


def run(text: str, out: Path) -> Results:
    return execute(Scenario.from_toml(text, "fault"), out=out)


def summary(text: str, out: Path) -> Summary:
    return run(text, out).runs[0].summary


def completions(found: Summary) -> list[float]:
    return sorted(flow["completion_s"] for flow in found["flows"] if flow["completion_s"])


OPENERS = {
    "a schedule entry": '[[schedule]]\nat = "39999ms"\nlink = "reverse"\ndown = false\n',
    "a policer of all": '[link.reverse]\npolicer = { rate = "10Gbit/s", burst = "1GB" }\n',
    "no loss of ACKs": "[link.reverse]\nacks = { loss = 0 }\n",
}


@pytest.mark.parametrize("opener", OPENERS)
def test_what_changes_nothing_changes_no_completion(opener: str, tmp_path: Path) -> None:
    text = text_of("synack-escapes-loss")
    plain, opened = (
        summary(text.replace("[[flow]]", f"{extra}[[flow]]", 1), tmp_path / str(bool(extra)))
        for extra in ("", OPENERS[opener])
    )
    assert completions(opened) == pytest.approx(completions(plain), abs=1e-4)
    assert plain["links"][1]["random_losses"] == opened["links"][1]["random_losses"] > 10
    assert sum(s > 1.0 for s in completions(plain)) == 44


def test_a_claim_is_no_goodput(tmp_path: Path) -> None:
    found = summary(text_of("optimistic-goodput"), tmp_path)
    liar, honest = found["flows"]
    both_bps = sum(flow["goodput_bps"] or 0.0 for flow in (liar, honest))
    assert 9e6 < both_bps <= 10e6 * PAYLOAD / FRAME
    assert liar["claimed_bytes"] > 100 * liar["delivered_bytes"]
    assert "claimed_bytes" not in honest
    assert liar["delivered_bytes"] <= 20 * 10e6 / 8


def test_a_flow_that_is_stopped_did_not_finish(tmp_path: Path) -> None:
    text = text_of("stopped-before-done")
    (flow,) = summary(text, tmp_path / "early")["flows"]
    assert (flow["completion_s"], flow["delivered_bytes"], flow["srtt_s"]) == (None, 0, None)
    for stop in ("500ms", "900ms", "1500ms"):
        (flow,) = summary(text.replace("200ms", stop), tmp_path / stop)["flows"]
        assert flow["completion_s"] is None
        assert 0 < flow["delivered_bytes"] < 1_000_000
        assert flow["goodput_bps"] < 10e6 * PAYLOAD / FRAME
    (flow,) = summary(text.replace("200ms", "4s"), tmp_path / "late")["flows"]
    assert flow["completion_s"] < 4.0


def test_a_flow_of_before_the_warmup_has_no_goodput(tmp_path: Path) -> None:
    found = summary(text_of("finished-before-warmup"), tmp_path)
    done, stays = found["flows"]
    assert (done["goodput_bps"], done["mean_cwnd_segments"], found["jain"]) == (None, None, None)
    assert done["completion_s"] == pytest.approx(1.7, abs=0.2)
    assert stays["goodput_bps"] == pytest.approx(10e6 * PAYLOAD / FRAME, rel=0.02)


def test_no_sampling_moves_a_mean(tmp_path: Path) -> None:
    text = text_of("sampling-moves-summary")
    found = []
    for sample in ("10ms", "1ms", "off"):
        result = summary(text.replace("10ms", sample), tmp_path / sample)
        assert result["flows"][0]["mean_cwnd_segments"] is None
        found.append({k: v for k, v in result.items() if k in ("flows", "links", "hash", "cov")})
    assert found[0] == found[1] == found[2]


def test_a_connection_that_is_not_made_is_said(tmp_path: Path, lfn: Lfn) -> None:
    results = run(text_of("udt-long-rtt"), tmp_path / "udt")
    (said,) = warnings.seen(results)
    assert said.startswith(
        "The connection of flow 0 (udt) was not made: no answer to its handshake"
    )
    file = tmp_path / "lost.toml"
    file.write_text(
        'schema = 1\nduration = "20s"\n[link]\nrate = "10Mbit/s"\nloss = 0.999\n'
        '[[flow]]\nlaw = "reno"\nrtt = "40ms"\n'
    )
    assert call(["run", str(file), "--out", str(tmp_path / "tcp"), "--no-report"]) == 0
    printed = re.sub(r"\s+", " ", "".join(lfn.said()))
    assert "The connection of flow 0 (reno) was not made" in printed
    assert "Few losses" not in printed


def test_a_long_path_has_the_goodput_of_linux(tmp_path: Path) -> None:
    found = summary(text_of("illinois-long-path"), tmp_path)
    (flow,) = found["flows"]
    assert flow["goodput_bps"] == pytest.approx(780e6, rel=0.01)
    assert flow["mean_cwnd_segments"] == pytest.approx(12_795, rel=0.01)
    assert flow["retransmits"] == 13_923


@pytest.mark.parametrize("law", ["hstcp", "bic:linux", "htcp:linux", "scalable:linux", "cubic"])
def test_an_outage_with_a_full_receive_window_ends_within_seconds(law: str, tmp_path: Path) -> None:
    text = text_of("route-switch-outage").replace('law = "hstcp"', f'law = "{law}"')
    flows = run(text, tmp_path).runs[0].table("flows")
    back = flows.filter((flows["t_s"] > 29) & (flows["t_s"] < 31))["delivered_bytes"]
    assert (back[-1] - back[0]) * 8 / 2 > 50e6


PACED = """schema = 1
duration = "{duration}"
[link]
rate = "{rate}"
queue = {{ kind = "drop-tail", size = "{packets} packets" }}
[link.reverse]
rate = "1Tbit/s"
queue = {{ kind = "drop-tail", size = "1000000 packets" }}
[[flow]]
law = "{law}:linux"
rtt = "{rtt}"
packet = "9000B"
pacing = true
{more}
"""
AN_OUTAGE = """[[schedule]]
at = "798ms"
link = "forward"
down = true
[[schedule]]
at = "1572ms"
link = "forward"
down = false"""
#: Scenarios, and goodput (bit/s) and retransmissions of Linux 6.12 in virtual time.
PACED_ON_LINUX = {
    "retransmissions leave at the rate of all that is outstanding": (
        {"duration": "1s", "rate": "3180Mbit/s", "packets": 63, "law": "reno", "rtt": "20ms"},
        (1.18128e9, 675),
    ),
    "the last of ten segments without pacing raise what slow start may reach": (
        {
            "duration": "20s",
            "rate": "356Mbit/s",
            "packets": 47,
            "law": "vegas",
            "rtt": "78.5ms",
            "more": "sack = false",
        },
        (4.48474e6, 246),
    ),
    "ACKs of a recovery after a timeout are no train of HyStart": (
        {
            "duration": "3.33s",
            "rate": "3180Mbit/s",
            "packets": 63,
            "law": "cubic",
            "rtt": "20ms",
            "more": AN_OUTAGE,
        },
        (1.38645e9, 1304),
    ),
}


@pytest.mark.parametrize("what", PACED_ON_LINUX)
def test_a_paced_flow_has_the_goodput_of_linux(what: str, tmp_path: Path) -> None:
    values, (goodput_bps, retransmits) = PACED_ON_LINUX[what]
    found = summary(PACED.format(**{"more": ""} | values), tmp_path)
    (flow,) = found["flows"]
    assert flow["goodput_bps"] == pytest.approx(goodput_bps, rel=0.005)
    assert flow["retransmits"] == pytest.approx(retransmits, abs=2)
