"""Is the cause of a transfer named whose limit is known, and nothing certain that is wrong?

known/*.json and window-60k.json (`iperf3 -w 60K` over 20 Mbit/s x 40 ms) are real; the captures
are of simulated transfers. `python -m validation.diagnose` draws many more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from measured_flow import evidence_of

import lfnlab
from known_iperf3 import KNOWN
from lfnlab.diagnose import causes, result
from lfnlab.diagnose.evidence import Evidence
from lfnlab.diagnose.names import CAUSES, UNDECIDED
from lfnlab.errors import LabError, UsageError
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.formats import pcap

if TYPE_CHECKING:
    from lfnlab.diagnose.causes import Diagnosis

DATA = Path(__file__).parents[1] / "data"
ISSUE = DATA / "iperf3" / "window-60k.json"
WORDS = {
    "window": "receive-window",
    "send buffer": "send-buffer",
    "loss": "random-loss",
    "policer": "policer",
    "application": "pacing",  # iperf3 -b
    "clean": "queue-overflow",
}


def captured(
    tmp_path: Path, link: str, flow: str = "", *, duration: str = "6s", law: str = "cubic:linux"
) -> Path:
    """A capture at the sender of a simulated transfer over 20 Mbit/s x 40 ms."""
    scenario = lfnlab.Scenario.from_toml(
        f"""
        schema = 1
        duration = "{duration}"
        sample = "off"
        [link]
        rate = "20Mbit/s"
        {link}
        [[flow]]
        law = "{law}"
        rtt = "40ms"
        {flow}
        [capture]
        links = ["forward", "reverse"]
        """,
        "traced.toml",
    )
    (run,) = execute([Case(scenario)], out=tmp_path / "run", title="traced").runs
    file = tmp_path / "sender.pcapng"
    pcap.write_pcapng(file, pcap.recorded(run), view="sender")
    return file


def flow(count: int = 60, **columns: Any) -> Evidence:
    """A flow of 10 Mbit/s for ``count`` intervals of 0.1 s, RTT 40 ms; columns replace its own."""
    unknown = np.full(count, np.nan)
    arrays: dict[str, Any] = {
        "goodput_bps": np.full(count, 10e6),
        "rtt_s": np.full(count, 0.04),
        "retransmits": np.zeros(count),
    }
    names = [name for name in Evidence.__dataclass_fields__ if name not in ("flow", "edges_s")]
    arrays = {name: arrays.get(name, unknown) for name in names}
    arrays |= {name: np.broadcast_to(np.asarray(v, float), count) for name, v in columns.items()}
    entry = {"id": 0, "direction": "forward", "law": "cubic", "segment_bytes": 1448}
    return Evidence(flow=entry, edges_s=np.linspace(0, count / 10, count + 1), **arrays)


def is_sound(found: Diagnosis) -> bool:
    """Whether the intervals cover the time, and what is not certain says what to measure."""
    ends = [one.end_s for one in found.intervals[:-1]]
    assert [one.start_s for one in found.intervals[1:]] == ends
    assert sum(one.share for one in found.intervals) == pytest.approx(1)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert {one.cause for one in found.intervals} == set(found.shares)
    assert set(found.shares) <= {*CAUSES, UNDECIDED}
    return found.certain == (found.next is None)


def test_a_small_window_is_not_taken_for_the_paths_rate() -> None:
    found = result.examine([ISSUE])
    assert (found.cause, found.certain, found.next) == ("receive-window", True, None)
    own = found.main.diagnosis
    assert own.cells is not None
    assert set(own.cells.shown.window_bytes) == {65_535}
    assert {one.cause for one in own.intervals} == {"receive-window"}
    assert found.fit is not None
    assert found.fit.rate_bps.bound == "least"


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_no_real_test_with_three_intervals_is_wrong_and_certain(known: Any) -> None:
    found = result.examine([known.file])
    assert is_sound(found.main.diagnosis)
    if found.certain:
        assert found.cause == WORDS[known.cause]
    if known.cause in ("window", "send buffer"):
        assert found.cause == WORDS[known.cause]


@pytest.mark.parametrize(
    ("cause", "link", "flow"),
    [
        ("random-loss", 'loss = 0.004\nqueue = { size = "2bdp" }', ""),
        ("queue-overflow", 'queue = { size = "0.5bdp" }', ""),
        ("queue-overflow", 'queue = { size = "8 packets" }', ""),
        ("policer", 'policer = { rate = "5Mbit/s", burst = "40kB" }', ""),
        ("pacing", "", 'application = { rate = "6Mbit/s" }'),
        ("send-buffer", "", 'send_buffer = "30000B"'),
        (
            "application",
            "",
            'application = { rate = "50Mbit/s", on = "20ms", off = "480ms" }',
        ),
        ("ack-path", '[link.reverse]\nrate = "60kbit/s"\nqueue = { size = "50 packets" }', ""),
    ],
)
def test_the_limit_of_a_simulated_transfer_is_named(
    tmp_path: Path, cause: str, link: str, flow: str
) -> None:
    found = result.examine([captured(tmp_path, link, flow)])
    assert found.cause == cause
    assert is_sound(found.main.diagnosis)


def test_a_short_transfer_ends_in_slow_start(tmp_path: Path) -> None:
    found = result.examine([captured(tmp_path, "", 'size = "90000B"')])
    assert found.cause == "slow-start"


def test_outages_are_changes_of_the_path(tmp_path: Path) -> None:
    down = "".join(
        f'[[schedule]]\nat = "{at}s"\nlink = "forward"\ndown = {state}\n'
        for at, state in ((1, "true"), (2, "false"), (3, "true"), (4, "false"))
    )
    file = captured(tmp_path, 'queue = { size = "0.3bdp" }', down)
    assert result.examine([file]).cause == "path-change"


def test_causes_in_turn_have_intervals_of_their_own() -> None:
    half = np.arange(80) < 40
    window = np.where(half, 50_000.0, 900_000.0)
    shown = flow(
        80,
        inflight_bytes=np.where(half, 50_000.0, 100_000.0),
        window_bytes=window,
        cwnd_bytes=400_000,
        busy_s=0.1,
        rwnd_limited_s=np.where(half, 0.1, 0.0),
        sndbuf_limited_s=np.where(half, 0.0, 0.1),
        goodput_bps=np.where(half, 10e6, 20e6),
    )
    found = causes.diagnose(shown)
    assert [one.cause for one in found.intervals] == ["receive-window", "send-buffer"]
    assert not found.certain
    assert is_sound(found)


# TCP_INFO's own account


WINDOW = {"inflight_bytes": 64_000, "window_bytes": 65_535, "cwnd_bytes": 200_000}


def test_the_kernels_account_that_agrees_makes_it_certain() -> None:
    found = causes.diagnose(flow(**WINDOW, busy_s=0.1, rwnd_limited_s=0.09, sndbuf_limited_s=0))
    assert (found.cause, found.certain, found.doubts) == ("receive-window", True, ())


def test_the_kernels_account_that_disagrees_makes_it_uncertain() -> None:
    found = causes.diagnose(flow(**WINDOW, busy_s=0.1, rwnd_limited_s=0, sndbuf_limited_s=0))
    assert not found.certain
    assert "TCP_INFO's rwnd_limited says that it did not hold back" in found.doubts[0]
    half = WINDOW | {"inflight_bytes": 30_000}
    other = causes.diagnose(flow(**half, busy_s=0.1, rwnd_limited_s=0.09, sndbuf_limited_s=0))
    assert not other.certain
    assert "do not fill it" in other.doubts[0]


def test_the_kernels_account_of_the_send_buffer() -> None:
    shown = flow(
        inflight_bytes=50_000,
        window_bytes=500_000,
        cwnd_bytes=300_000,
        busy_s=0.1,
        rwnd_limited_s=0,
        sndbuf_limited_s=0.08,
        app_limited=1,
    )
    found = causes.diagnose(shown)
    assert (found.cause, found.certain) == ("send-buffer", True)


# Cases that nobody named


def test_a_flow_of_which_nothing_is_told_is_undecided() -> None:
    found = causes.diagnose(flow(goodput_bps=np.nan, rtt_s=np.nan, retransmits=np.nan))
    assert (found.cause, found.certain) == (UNDECIDED, False)
    assert is_sound(found)


def test_a_flow_that_sends_nothing_is_undecided() -> None:
    found = causes.diagnose(flow(goodput_bps=0))
    assert found.cause == UNDECIDED


def test_one_interval_is_never_certain() -> None:
    shown = flow(1, **WINDOW)
    assert not causes.diagnose(shown).certain


def test_a_test_of_one_interval_has_an_answer() -> None:
    found = result.examine([DATA / "iperf3" / "short_client.json"])
    assert not found.certain
    assert found.next is not None


@pytest.mark.parametrize(
    ("lacks", "cause"),
    [("bytes", UNDECIDED), ("rtt snd_cwnd snd_wnd", UNDECIDED), ("retransmits", "")],
)
def test_a_test_that_lacks_quantities_has_an_answer(tmp_path: Path, lacks: str, cause: str) -> None:
    test = json.loads(ISSUE.read_text())
    for interval in test["intervals"]:
        for stream in (*interval["streams"], interval["sum"]):
            if lacks == "bytes":
                stream |= {"bytes": 0, "bits_per_second": 0}
            else:
                for name in lacks.split():
                    stream.pop(name, None)
    file = tmp_path / "lacks.json"
    file.write_text(json.dumps(test))
    found = result.examine([file])
    assert found.cause == cause or not cause
    assert is_sound(found.main.diagnosis)


def test_an_rtt_of_zero_is_no_silence() -> None:
    found = causes.diagnose(flow(rtt_s=np.zeros(60), cwnd_bytes=np.full(60, 1e5)))
    assert found.cause not in ("path-change", "ack-path")


def test_numbers_that_cannot_be_end_in_an_answer() -> None:
    for value in (0.0, 1e-300, 1e300, -5.0):
        shown = flow(
            12, rtt_s=value, cwnd_bytes=value, window_bytes=value, inflight_bytes=abs(value)
        )
        with np.errstate(all="ignore"):
            assert is_sound(causes.diagnose(shown))


def test_a_transfer_without_losses_and_with_a_deep_queue_is_not_certain() -> None:
    times = np.arange(60) / 10
    rtt = 0.04 + 0.02 * np.minimum(times, 5)
    found = causes.diagnose(
        flow(rtt_s=rtt, inflight_bytes=10e6 * rtt / 8, window_bytes=4e6, cwnd_bytes=10e6 * rtt / 8)
    )
    assert found.cause == "queue-overflow"
    assert not found.certain


def test_a_reverse_flow_tells_its_rate_alone() -> None:
    found = result.examine([DATA / "iperf3" / "reverse.json"])
    assert not found.certain
    assert found.next is not None


def test_parallel_streams_are_diagnosed_one_by_one() -> None:
    file = DATA / "iperf3" / "tcp.json"
    found = result.examine([file])
    assert len(found.flows) == len(json.loads(file.read_text())["start"]["connected"])
    assert all(is_sound(one.diagnosis) for one in found.flows)


def test_parallel_streams_wait_in_one_queue(tmp_path: Path) -> None:
    """Each has a half of the rate, and the queue is that of both; a short one shows so."""
    beside = '[[flow]]\nlaw = "cubic:linux"\nrtt = "40ms"\nstart = "0.05s"'
    found = result.examine([captured(tmp_path, 'queue = { size = "20 packets" }', beside)])
    shown = [one.transfer.shown for one in found.flows]
    assert sum(one.flow["part"] for one in shown) == pytest.approx(1.0, abs=0.02)
    assert {one.diagnosis.cause for one in found.flows} == {"queue-overflow"}
    for one in found.flows:
        assert one.diagnosis.cells is not None
        assert np.nanmax(one.diagnosis.cells.delay_segments) == pytest.approx(20, abs=12)
    assert found.fit is not None


def test_data_that_leave_evenly_and_wait_fill_the_link(tmp_path: Path) -> None:
    """BBR alone: it paces, and a queue of its own stands behind its start."""
    link = 'queue = { size = "0.5bdp" }'
    found = result.examine([captured(tmp_path, link, law="bbr")])
    assert found.cause == "queue-overflow"


def test_udp_is_refused() -> None:
    with pytest.raises(UsageError, match=r"udp\.json: UDP, which sends at the rate it was told"):
        result.examine([DATA / "iperf3" / "udp.json"])


def test_a_cut_file_is_read_up_to_the_cut(tmp_path: Path) -> None:
    text = ISSUE.read_text()
    file = tmp_path / "cut.json"
    file.write_text(text[: int(0.6 * len(text))])
    found = result.examine([file])
    assert found.cause == "receive-window"
    assert "The file is cut" in found.notes[-1]


def test_a_capture_without_handshake_has_no_window(tmp_path: Path) -> None:
    file = captured(tmp_path, 'queue = { size = "0.5bdp" }')
    whole = file.read_bytes()
    blocks, at = [], 0
    while at < len(whole):
        size = int.from_bytes(whole[at + 4 : at + 8], "little")
        blocks.append(whole[at : at + size])
        at += size
    packets = [n for n, block in enumerate(blocks) if block[:4] == b"\x06\0\0\0"]
    cut = tmp_path / "late.pcapng"
    cut.write_bytes(b"".join(blocks[: packets[0]] + blocks[packets[500] :]))
    found = result.examine([cut])
    assert found.cause == "queue-overflow"
    assert "receiver's window" not in found.main.transfer.told_by


def test_simulated_samples_of_a_window_are_certain() -> None:
    scenario = lfnlab.Scenario.from_toml(
        """
        schema = 1
        duration = "5s"
        sample = "100ms"
        [link]
        rate = "20Mbit/s"
        [[flow]]
        law = "cubic:linux"
        rtt = "40ms"
        receive_window = "30000B"
        """,
        "window.toml",
    )
    found = causes.diagnose(evidence_of(scenario, window_bytes=np.full(50, 30_000.0)))
    assert (found.cause, found.certain) == ("receive-window", True)


@pytest.mark.parametrize("seed", range(6))
def test_a_hostile_file_ends_in_an_answer_or_one_line(tmp_path: Path, seed: int) -> None:
    draw = np.random.default_rng(seed)
    text = ISSUE.read_text()
    for _ in range(4):
        at = int(draw.integers(len(text)))
        text = text[:at] + str(draw.choice(["9", "-", "e9", '"', "}", "NaN"])) + text[at + 1 :]
    file = tmp_path / "hostile.json"
    file.write_text(text)
    refused = ""
    try:
        assert is_sound(result.examine([file]).main.diagnosis)
    except LabError as error:
        refused = str(error)
    assert "\n" not in refused
