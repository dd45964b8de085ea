"""Drawn transfers: their limits bind, and their files are there."""

# ruff: noqa: D103
from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from lfnlab.diagnose.names import CAUSES
from lfnlab.formats import capture
from validation import outcome
from validation.diagnose import draw, score
from validation.diagnose.__main__ import kept
from validation.diagnose.emulated import scripts
from validation.diagnose.settings import (
    EMULATED_LAWS,
    EMULATED_LEAST_B,
    LACKS,
    Setting,
    Where,
    binds,
    candidates,
    causes_of,
    drawn,
)
from validation.diagnose.virtual import virtual


@pytest.mark.parametrize("cause", CAUSES)
def test_a_drawn_limit_binds(cause: str) -> None:
    draws = random.Random(cause)
    for _ in range(200):
        setting = drawn(draws, "simulator", (cause,))
        if setting is not None and binds(setting, (cause,)) is not None:
            # A faster bottleneck may overflow, too; any other limit is gone.
            assert cause == "queue-overflow" or binds(setting.without(cause), (cause,)) is None
            return
    pytest.fail(f"{cause}: none binds")


def test_a_fifth_of_the_draws_have_two_causes_and_all_causes_occur() -> None:
    draws = random.Random(1)
    causes = [causes_of(draws, "simulator") for _ in range(2000)]
    assert 0.15 < sum(len(pair) == 2 for pair in causes) / len(causes) < 0.25
    assert Counter(pair[0] for pair in causes).keys() == set(CAUSES)
    on_linux = {pair[0] for pair in (causes_of(draws, "linux") for _ in range(2000))}
    assert on_linux == set(CAUSES) - set(LACKS["linux"])


def test_a_transfer_is_the_same_again_and_its_captures_are_read(tmp_path: Path) -> None:
    (one,) = draw(7, 3, "simulator", tmp_path, first=2)
    (again,) = draw(7, 3, "simulator", tmp_path / "other", first=2)
    assert (one.cause, one.law, one.path) == (again.cause, again.law, again.path)
    assert one.files.keys() == {"sender", "receiver"}
    for host, file in one.files.items():
        assert file.read_bytes() == again.files[host].read_bytes()
        (flow,) = capture.read(file).summary["flows"]
        assert flow["captured_at"] == host


@pytest.mark.skipif(outcome.missing() is not None, reason="needs make linux")
def test_linux_in_virtual_time_gives_the_headers_of_its_hosts(tmp_path: Path) -> None:
    setting = Setting("cubic", 1e7, 0.04, 50, 2.0, 1, receive_window_b=14480)
    virtual(setting, tmp_path)
    for host in ("sender", "receiver"):
        (flow,) = capture.read(tmp_path / f"{host}.pcap").summary["flows"]
        assert flow["captured_at"] == host
        assert flow["min_rtt_s"] == pytest.approx(setting.rtt_s, rel=0.05)
        assert flow["offered_window_bytes"] == pytest.approx(14480, rel=0.01)
        assert flow["goodput_bps"] == pytest.approx(14480 * 8 / setting.rtt_s, rel=0.1)


def test_settings_of_the_emulator_are_what_its_host_can_do() -> None:
    where: Where = "emulator"
    for number in range(12):
        setting, causes, _ = next(candidates(2, number, where))
        assert setting.law in EMULATED_LAWS
        assert setting.rate_bps <= 2e8
        assert 6 <= setting.duration_s <= 10
        far, near = scripts(setting, Path("/folder"))
        assert ("tcp_rmem" in far) == ("receive-window" in causes)
        assert ("tcp_wmem" in near) == ("send-buffer" in causes)
        assert (setting.receive_window_b or EMULATED_LEAST_B) >= EMULATED_LEAST_B
        assert f"-C {setting.law}" in near


def test_verdicts_and_the_kept_rows() -> None:
    row = {"cause": "policer", "kind": "ss", "next": "tcpdump", "certain": False}
    said = {"policer": "right", "pacing": "wrong", score.UNDECIDED: "undecided"}
    assert {word: score.verdict(row | {"said": word}) for word in said} == said
    certain = row | {"said": "pacing", "certain": True}
    assert score.verdict(certain) == "wrong and certain"
    silent = row | {"said": score.UNDECIDED, "next": None}
    assert score.verdict(silent) == "undecided without next"
    paused = row | {"cause": "application", "said": "pacing"}
    assert [score.verdict(paused | {"kind": kind}) for kind in ("ss", "iperf3")] == [
        *("wrong", "right")
    ]
    rows = [{"verdict": "right"}, {"verdict": "wrong", "shares": {}, "name": "a"}]
    assert kept({"counts": {"right": 1}, "rows": rows}) == {
        "counts": {"right": 1},
        "rows": [{"verdict": "wrong", "name": "a"}],
    }
