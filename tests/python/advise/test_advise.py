"""Does `lfn advise` answer from simulations, the same each time, and refuse what cannot be?"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from command import LFN

from lfnlab import Results
from lfnlab.advise import Path as Way
from lfnlab.advise import (
    Search,
    amounts,
    bytes_of,
    choices,
    host,
    lines,
    named,
    of_host,
    screen,
    text,
)
from lfnlab.cli import app as cli

if TYPE_CHECKING:
    from command import Lfn

IPERF3 = Path(__file__).parents[1] / "data" / "iperf3"
SHORT = ["--rate", "20Mbit/s", "--rtt", "20ms", "--buffer", "1bdp"]
QUICK = [*SHORT, "--bytes", "2MB", "--law", "cubic,bbr", "--flows", "2"]


def merged(*options: str) -> list[str]:
    """A later option replaces an earlier one."""
    kept = dict(zip(options[::2], options[1::2], strict=True))
    return [word for pair in kept.items() for word in pair]


def asked(out: Path, lfn: Lfn, *more: str) -> Any:
    arguments = merged(*QUICK, *more, "--out", str(out))
    return json.loads(lfn("advise", *arguments, "--json"))


def test_the_answer_comes_first_and_its_lines_can_be_typed(tmp_path: Path, lfn: Lfn) -> None:
    said = lfn("advise", *merged(*QUICK, "--law", "bbr", "--out", str(tmp_path))).splitlines()
    assert said[0] == "2 MB over 20Mbit/s × 20ms, buffer 1bdp"
    assert said[2].startswith("Use bbr, ")
    assert any("sysctl -w net.ipv4.tcp_congestion_control=bbr" in line for line in said)
    for start in ("lfn send (UDT):", "A competing flow of cubic gets", "Not modelled:"):
        assert any(line.startswith(start) for line in said)
    # The runs are an experiment of their own.
    assert len(Results.load(tmp_path).runs) > 10
    assert cli.call(["report", str(tmp_path)]) == cli.OK


def test_the_same_question_has_the_same_answer(tmp_path: Path, lfn: Lfn) -> None:
    first = asked(tmp_path / "a", lfn)
    assert asked(tmp_path / "b", lfn, "--jobs", "1") == first
    assert asked(tmp_path / "a", lfn) == first


def test_times_are_those_of_whole_transfers(tmp_path: Path, lfn: Lfn) -> None:
    found = asked(tmp_path, lfn)
    least_s = 2e6 * 8 / 20e6
    for choice in found["choices"]:
        assert choice["whole"]
        assert least_s < choice["p50_s"] <= choice["p95_s"] < 3 * least_s
    assert found["advice"]["p50_s"] <= 1.01 * min(c["p50_s"] for c in found["choices"])
    assert least_s < found["udt"]["p50_s"] < 10 * least_s


def test_a_part_of_a_transfer_is_extrapolated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third of a transfer and the rest by its second half take as long as the whole."""
    path = Way("50Mbit/s", "20ms", "1bdp", 1e-3)
    size = bytes_of("400MB", path)
    monkeypatch.setattr(amounts, "RUN_PACKETS", 0.0)
    monkeypatch.setattr(amounts, "SEEDS_2", 4)

    def time_of(budget: float, out: Path) -> Any:
        for name in ("ROUND_1", "ROUND_2", "UDT", "NEIGHBOUR"):
            monkeypatch.setattr(amounts, name, budget)
        found = Search(path, size, named("cubic"), flows=1, beside=None, out=out).run()
        return next(time for choice, time in found.times.items() if not choice.fq)

    part, whole = time_of(600e3, tmp_path / "part"), time_of(3e6, tmp_path / "whole")
    assert whole.whole
    assert not part.whole
    assert part.p50_s == pytest.approx(whole.p50_s, rel=0.15)


def test_bbr_is_advised_where_packets_are_lost_at_random(tmp_path: Path, lfn: Lfn) -> None:
    found = asked(tmp_path, lfn, "--loss", "0.01", "--flows", "1")
    assert found["advice"]["law"] == "bbr"
    assert found["runner_up"]["law"] == "cubic"
    assert found["runner_up"]["slower"]["mean"] > 0.5


def test_a_harmful_choice_is_not_advised_on_a_shared_path(tmp_path: Path, lfn: Lfn) -> None:
    found = asked(tmp_path, lfn, "--beside", "cubic")
    harm = {
        (entry["law"], entry["streams"], entry["fq"]): entry["harm"]
        for entry in found["neighbour"]["beside"]
    }
    best = found["advice"]
    gentle = [value for value in harm.values() if value <= 0.5]
    assert gentle
    assert harm[best["law"], best["streams"], best["fq"]] <= 0.5


@pytest.mark.parametrize("round_1", [amounts.ROUND_1, 1.0])
def test_of_our_laws_the_fastest_in_packets_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, round_1: float
) -> None:
    """Not the one that the fluid puts first, whether transfers end in the first round or not."""
    monkeypatch.setattr(amounts, "ROUND_1", round_1)
    way, offers = Way("20Mbit/s", "20ms", "1bdp"), named("cubic,htcp-be,compound,ltcp")
    search = Search(way, 2_000_000, offers, flows=1, beside=None, prefer_linux=True, out=tmp_path)
    advice = search.run()
    ours = [choice for choice in advice.first if choice.ours]
    fastest = min(ours, key=lambda choice: (advice.first[choice].p50_s, choice))
    (line,) = [line for line in lines(advice, []) if "of lfnlab's laws" in line]
    assert line.startswith(
        f"Of {len(ours)} simulated choices of lfnlab's laws the fastest: {fastest},"
    )


def test_windows_of_tcp_end_at_a_gibibyte(tmp_path: Path) -> None:
    path = Way("100Gbit/s", "300ms", "1bdp")
    search = Search(path, 10**12, named("cubic"), flows=1, beside=None, out=tmp_path)
    scenario = search._transfer(path.scenario(1.0), search.choices[0], 0.0)
    assert scenario.flows[0].receive_window == f"{65535 << 14}B"


def test_the_packets_of_an_advice_are_bounded() -> None:
    """A second has 8.3 million packets at 100 Gbit/s; the amounts are chosen before the runs."""
    offers, _ = of_host(["reno", "cubic", "bbr"])
    every = choices.choices(offers, 64)
    for rate, rtt, buffer in (
        ("1Mbit/s", "1ms", "10 packets"),
        ("100Gbit/s", "300ms", "0.1bdp"),
    ):
        path = Way(rate, rtt, buffer, 1e-6)
        queue, scores = screen.order(path, every)
        assert len(scores) == len(every)
        for size in (2000, 10**9, 10**13):
            first = amounts.round_1(path, size, queue, shared=False, random=True)
            spent = _packets(path, size, queue, first)
            most = dict.fromkeys(queue[:4], 1.0)
            second = amounts.round_2(path, size, most, shared=False, random=True)
            spent += _packets(path, size, queue[:4], second)
            assert spent <= 1.5e9, (rate, rtt, size)


def _packets(path: Way, size: int, queue: Any, amount: amounts.Amount) -> float:
    total = 0.0
    for choice, span in zip(queue, amount.spans, strict=False):
        sent = 1.05 * size / path.payload_bytes
        if not span.whole:
            sent = min(sent, amounts._packets(path, span.duration_s))
        total += amounts.weight(choice) * sent * amount.seeds
    return total


def test_a_host_offers_its_laws_and_ours_for_the_rest() -> None:
    offers, left = of_host(["reno", "cubic", "highspeed", "dctcp", "lp"])
    ours = {offer.name: offer.law for offer in offers if offer.ours}
    linux = {offer.name: offer.law for offer in offers if not offer.ours}
    assert linux == {"reno": "reno:linux", "cubic": "cubic:linux", "highspeed": "hstcp:linux"}
    assert ours["lfn_htcp_be"] == "htcp-be"
    assert ours["lfn_bbr"] == "bbr"
    assert "lfn_cubic" not in ours
    assert not any("dctcp" in name for name in ours)
    assert [reason.partition(":")[0] for reason in left] == ["dctcp", "lp"]


def test_the_fluid_prefers_laws_that_keep_their_window() -> None:
    path = Way("1Gbit/s", "100ms", "0.1bdp")
    _, scores = screen.order(path, choices.choices(named("reno,scalable"), 1))
    by_law = {choice.name: score for choice, score in scores.items() if not choice.fq}
    assert 0.5 < by_law["reno"] < by_law["scalable"] <= 1.0
    lossy = Way("1Gbit/s", "100ms", "0.1bdp", 1e-4)
    _, scores = screen.order(lossy, choices.choices(named("reno"), 1))
    [(_, score), *_] = scores.items()
    # Response function of Reno: 1.22 / sqrt(p) segments of 8257.
    assert score == pytest.approx(1.22 / math.sqrt(1e-4) / 8257, rel=0.5)


@pytest.mark.parametrize(
    ("limits", "lines"),
    [
        ("4096 131072 1073741824", []),
        (
            "8192 87380 6291456",
            [
                'sysctl -w net.ipv4.tcp_rmem="8192 87380 19922944"',
                'sysctl -w net.ipv4.tcp_wmem="8192 87380 19922944"',
            ],
        ),
        (None, ["rmem", "wmem"]),
        ("not a limit", ["rmem", "wmem"]),
    ],
)
def test_lines_raise_limits_and_never_lower_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: str | None, lines: list[str]
) -> None:
    monkeypatch.setattr(host, "SYSCTL", tmp_path)
    for folder in ("core", "ipv4"):
        (tmp_path / folder).mkdir()
    if limits is not None:
        for name in ("rmem", "wmem"):
            (tmp_path / "ipv4" / f"tcp_{name}").write_text(limits.replace(" ", "\t") + "\n")
        (tmp_path / "core" / "rmem_max").write_text(limits.split()[-1].replace("6", "5"))
    # Path and queue hold 10 MB; 50 ms at the full rate are 6 MiB.
    advice: Any = SimpleNamespace(path=Way("1Gbit/s", "40ms", "1bdp"))
    found = text.buffer_lines(advice)
    if lines and "=" in lines[0]:
        assert found == lines
    else:
        assert [line.split("=")[0][-4:] for line in found] == lines
    assert bool(text.udt_lines(advice)) == bool(lines)


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ([], "--rate: not given"),
        (["--rate", "1Mbit/s", "--rtt", "1ms"], "--buffer: not given"),
        ([*SHORT, "--rate", "0bit/s"], '--rate: "0bit/s" is out of range'),
        ([*SHORT, "--rtt", "-1ms"], '--rtt: "-1ms"'),
        ([*SHORT, "--rtt", "0ms"], '--rtt: "0ms" is out of range'),
        ([*SHORT, "--buffer", "0 packets"], "--buffer: 0 packets is below one packet"),
        ([*SHORT, "--loss", "1"], "--loss: 1.0 is out of range"),
        ([*SHORT, "--flows", "0"], "--flows: 0; allowed: 1 to 100"),
        ([*SHORT, "--flows", "10000"], "--flows: 10000; allowed: 1 to 100"),
        ([*SHORT, "--bytes", "1kB"], '--bytes: "1kB"; allowed: from 1448B'),
        ([*SHORT, "--bytes", "-1GB"], '--bytes: "-1GB"; allowed: a number'),
        ([*SHORT, "--law", "nope"], '--law: "nope"; no such law for a sender; allowed: reno'),
        ([*SHORT, "--law", "bbr3"], '--law: "bbr3"; it runs in the simulator only'),
        ([*SHORT, "--law", "cubic:rfc"], '--law: "cubic:rfc"; a sender has the default variant'),
        ([*SHORT, "--law", "reno,reno"], '--law: "reno" is named twice'),
        ([*SHORT, "--beside", "xcp"], '--beside: "xcp"; allowed: reno'),
        ([*SHORT, "--packet", "60B"], '--packet: "60B" is out of range'),
        (["--iperf3", str(IPERF3 / "udp.json")], "start.test_start.protocol: UDP; allowed: TCP"),
        (["--iperf3", "/dev/null"], "not JSON"),
        (["--iperf3", str(IPERF3 / "tcp.json"), "--flows", "0"], "--flows: 0; allowed: 1 to 100"),
        (["--iperf3", str(IPERF3 / "error.json")], "iperf3 ended with an error"),
    ],
)
def test_what_cannot_be_is_refused_by_its_option(
    more: list[str], wrong: str, tmp_path: Path, lfn: Lfn
) -> None:
    [line] = lfn.err("advise", *merged(*more, "--out", str(tmp_path / "out"))).splitlines()
    assert wrong in line
    assert not (tmp_path / "out").exists()


def test_a_large_file_of_iperf3_is_refused(tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "huge.json"
    with file.open("wb") as large:
        large.truncate(1 << 31)
    assert "2,048 MiB; allowed: up to 64 MiB" in lfn.err("advise", "--iperf3", file)


def test_an_interrupt_keeps_the_runs(tmp_path: Path) -> None:
    command = [*LFN, "advise", *SHORT, "--loss", "1e-3", "--bytes", "100MB", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not any((tmp_path / "runs").glob("[!.]*")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == cli.INTERRUPTED
    assert b"interrupted; finished runs are kept" in said
    assert len(Results.load(tmp_path).runs) > 0


def test_a_closed_output_is_no_error(tmp_path: Path) -> None:
    command = [*LFN, "advise", *QUICK, "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0
    assert said == b""


def test_one_stream_and_one_choice_have_an_answer(tmp_path: Path) -> None:
    path = Way("1Mbit/s", "600ms", "3 packets", 1e-2)
    found = Search(path, 1448, named("bbr"), flows=1, beside=None, out=tmp_path).run()
    assert found.runner_up is None
    assert math.isfinite(found.times[found.best].p50_s)
    assert "Runner-up: no other law" in "\n".join(lines(found, []))
