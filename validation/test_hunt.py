"""The hunt: what it draws, what it tells Linux, how it judges; the cases that it found."""

# ruff: noqa: D103
from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lfnlab import Scenario, _core
from lfnlab.errors import ScenarioError
from lfnlab.testbed import random_streams, virtual_time
from validation import chance, hunt, outcome, processes, traces
from validation.draw import (
    AQMS,
    LONG_PACKETS,
    LONG_PACKETS_OF_SEVERAL,
    MOST_PACKETS,
    Drawn,
    DrawnFlow,
    Step,
    draw,
    draw_l4s,
    draw_long,
)
from validation.outcome import Flow, Outcome

CASES = sorted(hunt.CASES.glob("*.json"))
#: Packets with data in the column `kind` of a capture.
DATA = 0
LONE = Drawn(10, 20, 60, (DrawnFlow("cubic", 40),))


def told(drawn: Drawn) -> str:
    return virtual_time.translated(Scenario.from_toml(drawn.toml()).check().to_document())


def test_the_same_number_draws_the_same_scenario() -> None:
    assert [draw(7, number) for number in range(40)] == [draw(7, number) for number in range(40)]
    assert draw(7, 3) != draw(8, 3)
    # For ever: cases and records name scenarios by seed and number.
    assert draw(1, 0).tag == "4a4ec9f95a65"


def test_every_scenario_drawn_is_one_that_both_run_at_a_bounded_cost() -> None:
    traits: set[str] = set()
    for number in range(200):
        drawn = draw(11, number)
        assert drawn.packets <= MOST_PACKETS
        assert told(drawn).startswith("run ")
        traits.update(drawn.traits)
    wanted = {"flows", "late", "mixed-laws", "ecn", "loss", "reorder", "duplicate", "outage"}
    wanted |= {
        "rate-step",
        "delay-step",
        "no-sack",
        "every-ack",
        "jumbo",
        "tiny-buffer",
        "ack-loss",
        *AQMS,
    }
    assert wanted <= traits


def test_a_hunt_of_l4s_draws_dctcp_behind_marking_queues() -> None:
    every = [draw_l4s(11, number) for number in range(150)]
    assert every[5] == draw_l4s(11, 5)
    for drawn in every:
        assert told(drawn).startswith("run ")
        assert drawn.flows[0].law == "dctcp"
    traits = {trait for drawn in every for trait in drawn.traits}
    assert {"dualpi2", "any-ect", "ce-threshold", "ecn", "mixed-laws", "flows", *AQMS} <= traits


def test_a_long_hunt_draws_long_fat_networks_at_a_cost_that_it_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    every = [draw_long(11, number) for number in range(300)]
    assert every[5] == draw_long(11, 5)
    for drawn in every:
        most = LONG_PACKETS if len(drawn.flows) == 1 else LONG_PACKETS_OF_SEVERAL
        assert drawn.packets <= most
        assert 300 <= drawn.rate_mbps <= 10_000
        assert all(20 <= flow.rtt_ms <= 300 for flow in drawn.flows)
        assert told(drawn).startswith("run ")
    traits = {trait for drawn in every for trait in drawn.traits}
    assert {"paced", "ack-loss", "reorder", "outage", "no-sack", "jumbo", *AQMS} <= traits
    hunt.main(["--long", "--count", "300", "--seed", "11", "--dry-run"])
    said = re.fullmatch(
        r"300 scenarios of .* packets: ([\d.]+) hours of CPU\n", capsys.readouterr().out
    )
    assert said is not None
    assert 1 < float(said[1]) < 12


def test_a_recorded_hunt_continues_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []

    def judge(drawn: Drawn, *_: object) -> hunt.Found:
        judged.append(drawn.seed - 1)
        same = Outcome(tuple(Flow(1e6, 10, 0, 0) for _ in drawn.flows), 0, 0)
        unlike = replace(same, flows=(Flow(2e6, 10, 0, 0), *same.flows[1:]))
        mine = unlike if drawn.seed == 2 else same
        said = chance.Chance(0.001, 0.05) if drawn.seed == 2 else None
        verdict = outcome.compare(same, mine)
        return hunt.Found(drawn, same, mine, verdict, chaotic=drawn.seed == 2, chance=said)

    monkeypatch.setattr(hunt, "judge", judge)
    monkeypatch.setattr(outcome, "missing", lambda: None)
    monkeypatch.setattr(hunt, "VERDICTS", tmp_path / "hunts")
    monkeypatch.setattr(hunt, "LAST", tmp_path / "hunt.json")
    monkeypatch.setattr(hunt, "simulator", lambda: "a")
    few, all_of_them = (["--seed", "7", "--count", count, "--record"] for count in ("2", "5"))
    hunt.main(few)
    assert judged == [0, 1]
    assert hunt.last(hunt.LAST)["scenarios"] == 2
    file = tmp_path / "hunts/7.jsonl"
    with file.open("a") as half:
        half.write('{"number": 2, "tra')
    hunt.main(all_of_them)
    assert judged == [0, 1, 2, 3, 4]
    last = hunt.last(hunt.LAST)
    assert (last["scenarios"], last["agree"], last["chance"], last["chaotic"]) == (5, 4, 0, 1)
    assert last["tested"] == [[0.001, 0.05]]
    assert sum(drawn for _, drawn in last["traits"].values()) >= 5
    # Nothing is left to do, and other choices are refused.
    hunt.main(all_of_them)
    assert len(judged) == 5
    before = file.read_bytes()
    with pytest.raises(SystemExit, match=r"7\.jsonl has verdicts of .*any flows, .*another --seed"):
        hunt.main([*all_of_them, "--single"])
    monkeypatch.setattr(hunt, "simulator", lambda: "b")
    with pytest.raises(SystemExit, match=r"delete the file"):
        hunt.main(all_of_them)
    assert file.read_bytes() == before


def test_a_hunt_goes_on_after_a_change_that_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("laws", "crates/sim/src", "crates/scenario/src/predict"):
        (tmp_path / name).mkdir(parents=True)
    names = ("Cargo.lock", "laws/REGISTRY", "laws/reno.h", "crates/sim/src/lib.rs")
    decide_nothing = ("crates/scenario/src/predict.rs", "crates/scenario/src/predict/memory.rs")
    for name in (*names, *decide_nothing):
        (tmp_path / name).write_text("a")
    monkeypatch.setattr(hunt, "ROOT", tmp_path)
    first = hunt.simulator()
    for name in decide_nothing:
        (tmp_path / name).write_text("b")
        assert hunt.simulator() == first
    for name in names:
        (tmp_path / name).write_text("b")
        assert hunt.simulator() != first
        (tmp_path / name).write_text("a")
    assert hunt.simulator() == first


def test_a_flow_stays_in_its_queue_of_fq_codel() -> None:
    assert virtual_time.ONE_HASH in told(replace(LONE, queue="fq-codel")).splitlines()
    assert virtual_time.ONE_HASH not in told(LONE).splitlines()


def test_linux_is_told_all_of_a_scenario() -> None:
    flow = DrawnFlow("reno", 30, start_s=1.5, sack=False, delayed_ack=False, ecn=True)
    steps = (Step(2, down_s=1), Step(5, rate_mbps=7), Step(6, delay_ms=3))
    drawn = replace(LONE, flows=(flow,), steps=steps, queue="codel", ecn=True, delay_ms=4)
    assert told(drawn).splitlines() == [
        "run duration_us=10000000 sample_us=10000",
        "link forward rate_bps=20000000 delay_ns=4000000 hold_ns=0",
        "queue forward codel limit 60 target 5000us interval 100000us ecn",
        "flow law=reno delay_ns=13000000 start_us=1500000 packet_bytes=1500 ecn=1 sack=0 "
        "delayed_ack=0",
        "at 2000000 forward rate_bps=0",
        "at 3000000 forward rate_bps=20000000",
        "at 5000000 forward rate_bps=7000000",
        "at 6000000 forward delay_ns=3000000",
        "sysctl net.ipv4.tcp_rmem=4096 134217728 134217728",
        "sysctl net.ipv4.tcp_wmem=4096 50000000 2147483647",
    ]


def test_linux_is_told_which_acks_are_lost() -> None:
    lines = told(replace(LONE, ack_loss=0.1, seed=3)).splitlines()
    [lost] = [line for line in lines if line.startswith("lost ")]
    gaps = random_streams.gaps(0.1, 3, "link.reverse.acks.loss", 20_000)
    assert lost.startswith("lost reverse " + " ".join(map(str, gaps[:50])))
    assert any(line.startswith("link reverse ") for line in lines)


def test_both_lose_the_same_packets_of_handshakes() -> None:
    lost = 0
    for seed in range(1, 30):
        drawn = replace(LONE, duration_s=3, loss=0.2, seed=seed)
        [run] = _core.run_many([_core.Scenario(drawn.toml(), "lossy.toml")], 1, None)
        assert run is not None
        flows = run.table("flows")
        began_s = float(flows["t_s"][np.argmax(flows["srtt_s"] > 0)])
        listed = [line for line in told(drawn).splitlines() if line.startswith("unopened")]
        first = listed and listed[0].split()[2] == "0"
        assert bool(first) == (began_s > 1), (seed, listed, began_s)
        lost += bool(first)
    assert 1 < lost < 15


def test_both_lose_the_same_packets() -> None:
    drawn = replace(LONE, duration_s=4, loss=0.02, seed=7)
    text = drawn.toml() + '[capture]\nlinks = ["forward"]\n'
    [run] = _core.run_many([_core.Scenario(text, "lossy.toml")], 1, None)
    assert run is not None
    packets = run.table("packets")
    sides: tuple[list[tuple[int, int]], ...] = ([], [], [])
    columns = (packets[name] for name in ("point", "kind", "seq", "flags"))
    for point, kind, seq, flags in zip(*columns, strict=True):
        # Whether a packet leaves or reaches its host (32, point 3) makes no loss.
        if kind == DATA and point < len(sides):
            sides[point].append((seq, flags & 31))
    left = iter(sides[2])
    expected: tuple[int, int] | None = next(left)
    lost = []
    for number, packet in enumerate(sides[0]):
        if packet == expected:
            expected = next(left, None)
        else:
            lost.append(number)
    chosen, at = [], -1
    for gap in random_streams.gaps(0.02, 7, "link.forward.loss", len(sides[0])):
        at += gap + 1
        chosen.append(at)
    assert lost[:15] == chosen[:15]
    assert len(lost) > 15


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ('[link]\nrate = "20Mbit/s"\njitter = { low = "1ms", high = "2ms" }', "link.jitter"),
        (
            '[link]\nrate = "20Mbit/s"\njitter = { high = "4s", keep_order = false }',
            "link.jitter.high",
        ),
        ('[link]\nrate = "20Mbit/s"\nrouter = { kind = "vcp" }', "link.router"),
        ('[link]\nrate = "20Mbit/s"\nqueue = { kind = "red" }', "link.queue.gentle"),
        ('[parking-lot]\nhops = 2\nrate = "20Mbit/s"', "parking-lot"),
    ],
)
def test_a_path_that_linux_cannot_run_is_refused_by_its_part(change: str, part: str) -> None:
    text = f'schema = 1\nduration = "5s"\n{change}\n[[flow]]\nlaw = "reno"\nrtt = "40ms"\n'
    with pytest.raises(ScenarioError, match=rf"^{part}: Linux in virtual time cannot run it"):
        virtual_time.translated(Scenario.from_toml(text).check().to_document())


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ('law = "htcp-be"', "law"),
        ('law = "udt"', "transport"),
        ('law = "reno"\nslow_start = "limited"', "slow_start"),
        ('law = "reno"\ninitial_ssthresh = "20 packets"', "initial_ssthresh"),
        ('law = "reno"\nsend_buffer = "2GB"', "send_buffer"),
    ],
)
def test_a_flow_that_linux_cannot_run_is_refused_by_its_part(change: str, part: str) -> None:
    path = 'schema = 1\nduration = "5s"\n[link]\nrate = "20Mbit/s"\n'
    text = f'{path}[[flow]]\nrtt = "40ms"\n{change}\n'
    said = rf"^flow\[0\]\.{part}: Linux in virtual time cannot run it"
    with pytest.raises(ScenarioError, match=said):
        virtual_time.translated(Scenario.from_toml(text).check().to_document())


def flow(
    goodput: float = 1e7, window: float = 50, retransmits: float = 10, timeouts: float = 0
) -> Flow:
    return Flow(goodput, window, retransmits, timeouts)


def one(flow: Flow) -> Outcome:
    return Outcome((flow,), 0, 0)


@pytest.mark.parametrize(
    ("mine", "agrees"),
    [
        (flow(goodput=1.04e7), True),
        (flow(goodput=0.94e7), False),
        (flow(window=53), False),
        (flow(retransmits=15), True),
        (flow(retransmits=16), False),
        (flow(timeouts=1), True),
        (flow(timeouts=2), False),
    ],
)
def test_agreement(mine: Flow, agrees: bool) -> None:
    assert outcome.compare(one(flow()), one(mine)).agrees is agrees


def test_large_counts_agree_within_a_factor_of_five_quarters() -> None:
    many = one(flow(retransmits=1000))
    assert outcome.compare(many, one(flow(retransmits=1240))).agrees
    assert outcome.compare(many, one(flow(retransmits=800))).agrees
    assert not outcome.compare(many, one(flow(retransmits=1260))).agrees
    assert not outcome.compare(many, one(flow(retransmits=790))).agrees


def test_the_phases_lie_within_one_packet_time() -> None:
    phases = draw(3, 5).phases(32)
    assert phases[0] == draw(3, 5)
    for phase in phases[1:]:
        for moved, base in zip(phase.flows, phases[0].flows, strict=True):
            assert 0 < (moved.rtt_ms - base.rtt_ms) / 1e3 < phases[0].packet_s
    for count in (8, 32):
        parts = sorted(
            phase.flows[0].rtt_ms - phases[0].flows[0].rtt_ms for phase in phases[:count]
        )
        even = [k * phases[0].packet_s * 1e3 / count for k in range(count)]
        assert parts == pytest.approx(even)


@pytest.mark.parametrize(
    ("queue", "loss", "seeds"),
    [("drop-tail", 0, 8), ("codel", 0.01, 1), ("red", 0, 8), ("pie", 0.01, 8)],
)
def test_a_phase_draws_anew_but_the_packets_that_are_lost(
    queue: str, loss: float, seeds: int
) -> None:
    phases = replace(LONE, queue=queue, loss=loss).phases(8)
    assert len({phase.seed for phase in phases}) == seeds


def drawn_runs(draws: np.random.Generator, mean: float, count: int = 32) -> list[Outcome]:
    """Runs of two flows whose shares of a link spread by 15 %."""
    shares = mean * (1 + 0.15 * draws.standard_normal(count))
    return [
        Outcome((flow(1e7 * one, 50 * one), flow(1e7 * (2 - one), 50 * (2 - one))), 0, 0)
        for one in shares
    ]


def test_sides_that_are_the_same_are_seldom_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 150 pairs 1.5 are expected, and 6 or more have a probability of half a percent."""
    monkeypatch.setattr(chance, "EXCHANGES", 400)
    draws = np.random.default_rng(3)
    pairs = [(drawn_runs(draws, 1), drawn_runs(draws, 1)) for _ in range(150)]
    beyond = sum(not outcome.compare(*map(outcome.median, pair)).agrees for pair in pairs)
    assert beyond > 30  # medians alone would call a fifth and more different
    assert sum(not chance.exchanged(*pair).explains for pair in pairs) < 6


def test_a_difference_beyond_the_reach_of_chance_is_found() -> None:
    draws = np.random.default_rng(4)
    told = chance.exchanged(drawn_runs(draws, 1), drawn_runs(draws, 1.2))
    assert not told.explains
    assert 0.05 < told.finds < 0.2


def test_a_difference_of_the_sum_is_found_where_shares_spread_wide() -> None:
    """Shares spread by 15 %, the sum not at all: 8 % less of it is no chance."""
    draws = np.random.default_rng(6)
    theirs, less = (drawn_runs(draws, 1) for _ in range(2))
    less = [
        Outcome(tuple(replace(f, goodput_bps=0.92 * f.goodput_bps) for f in one.flows), 0, 0)
        for one in less
    ]
    assert not chance.exchanged(theirs, less).explains


def test_of_a_scenario_that_is_chaotic_more_phases_are_drawn_where_few_differ(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    draws = np.random.default_rng(5)
    two = replace(LONE, flows=LONE.flows * 2)

    def judged(mean: float) -> hunt.Found:
        theirs = iter(drawn_runs(draws, 1, 41))
        mine = iter(drawn_runs(draws, mean, 41))
        monkeypatch.setattr(outcome, "linux", lambda _drawn, _cache: next(theirs))
        return hunt.judge(two, tmp_path, lambda phases: [next(mine) for _ in phases])

    several = [judged(1) for _ in range(40)]
    assert all(found.agrees for found in several)
    assert 0 < sum(found.chance is not None for found in several) < 40
    assert sum(judged(1.25).agrees for _ in range(20)) < 3


def test_many_phases_are_independent_of_each_other() -> None:
    lossy = replace(LONE, loss=0.01, queue="drop-tail")
    assert len({phase.seed for phase in lossy.phases(hunt.FEW)}) == 1
    for drawn in (LONE, lossy, replace(lossy, queue="red")):
        assert len({phase.seed for phase in drawn.phases(hunt.MANY)}) == hunt.MANY


def test_windows_part_where_most_differ_and_not_at_a_single_sample() -> None:
    times_s = np.arange(1000) / 100
    theirs = 10 + times_s
    assert str(traces.compared(times_s, theirs, theirs + 1e-3)) == "0%"
    once = np.where(np.arange(1000) == 500, theirs + 1, theirs)
    assert str(traces.compared(times_s, theirs, once)) == "0%"
    # The first row of samples of which most differ begins a little before the windows part.
    parted = traces.compared(times_s, theirs, np.where(times_s >= 6, theirs + 1, theirs))
    assert parted.differ == 0.4
    assert parted.part_s == pytest.approx(6 - 0.01 * traces.ROW * traces.BUT, abs=0.011)
    assert traces.compared(times_s[:0], theirs[:0], theirs[:0]) == traces.Compared(0.0, None)


@pytest.mark.parametrize("kind", traces.KINDS)
def test_paths_of_traces_are_the_same_each_time_and_can_be_run(kind: str) -> None:
    for number in range(20):
        drawn = traces.path(1, "cubic", number, kind)
        assert drawn == traces.path(1, "cubic", number, kind)
        assert drawn.packets < 1.01 * traces.PACKETS
        assert kind == "plain" or kind in drawn.traits
        Scenario.from_toml(drawn.toml()).check()


def test_what_is_smaller_is_simpler_and_can_be_run() -> None:
    drawn = next(one for n in range(100) if len((one := draw(5, n)).traits) >= 5)
    for candidate in hunt.smaller(drawn):
        assert candidate != drawn
        assert told(candidate)


def test_shrinking_ends_at_a_scenario_of_which_nothing_can_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A judge who minds loss alone."""

    def judged(drawn: Drawn, _cache: object) -> hunt.Found:
        nothing = one(flow())
        worst = 3.0 if drawn.loss else 0.0
        signs = frozenset({"retransmits+"} if worst else ())
        verdict = outcome.Verdict(worst, (), signs)
        return hunt.Found(drawn, nothing, nothing, verdict, chaotic=False)

    monkeypatch.setattr(hunt, "judge", judged)
    start = replace(
        draw(5, 0), loss=0.01, reorder=0.01, reorder_ms=3, duplicate=0.01, queue="codel"
    )
    small = hunt.shrunk(judged(start, None), tmp_path, most=200).drawn
    assert small.traits == ("loss",)


@pytest.mark.parametrize("file", CASES, ids=[file.stem for file in CASES])
def test_cases(file: Path) -> None:
    """Our outcome agrees with Linux's committed one; an open case has an uncorrected fault."""
    case = hunt.case(file)
    verdict = outcome.compare(case.theirs, hunt.ours_of(case.drawn, case.phases))
    if case.open and not verdict.agrees:
        pytest.xfail(", ".join(verdict.what))
    assert verdict.agrees, verdict.what


def test_refreshing_writes_what_linux_gives_now_and_says_what_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nothing = outcome.Verdict(0, ())
    found = hunt.Found(LONE, one(flow()), one(flow()), nothing, chaotic=False)
    file = hunt.keep(found, tmp_path)
    monkeypatch.setattr(outcome, "linux", lambda _drawn, _cache: one(flow()))
    before = file.read_bytes()
    assert hunt.refresh(file, tmp_path) == ""
    assert file.read_bytes() == before
    monkeypatch.setattr(outcome, "linux", lambda _drawn, _cache: one(flow(retransmits=12)))
    assert "flow 0 retransmits: 10 / 12 (kept / now" in hunt.refresh(file, tmp_path)
    assert hunt.case(file) == hunt.Case(LONE, one(flow(retransmits=12)), phases=1, open=False)


needs_kernel = pytest.mark.skipif(
    outcome.missing() is not None, reason=f"needs Linux in virtual time: {outcome.missing()}"
)


@needs_kernel
def test_linux_gives_twice_what_it_gave_once(tmp_path: Path) -> None:
    drawn = replace(LONE, duration_s=3, steps=(Step(1, down_s=0.5),))
    first, second = (outcome.linux(drawn, tmp_path / name) for name in "ab")
    assert first == second
    assert first.flows[0].goodput_bps > 1e7


@needs_kernel
def test_a_killed_run_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    """They work in its folder, so that processes of others do not count."""
    file = tmp_path / "long.toml"
    file.write_text(replace(LONE, duration_s=500).toml())
    folder = tmp_path / "linux"
    command = [sys.executable, "-m", "validation", "both", str(file), str(folder)]
    process = subprocess.Popen(command, cwd=outcome.PROGRAM.parents[1])
    try:
        _until(lambda: len(processes.below(folder)) > 3)
    finally:
        process.kill()
        process.wait()
    _until(lambda: not processes.below(folder) and not folder.exists())


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
