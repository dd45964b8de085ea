"""Do the intervals of real tests of iperf3 tell one loss from many, and a queue from a change?

Each sample is what iperf3 3.12 wrote over an emulated path whose limit was set: of each interval
goodput in Mbit/s, RTT in ms, congestion window and receiver's window in segments of 1448 bytes, and
retransmits. `python -m validation.diagnose draw` makes such tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import lfnlab
from lfnlab import _core
from lfnlab.diagnose import causes, losses, result
from lfnlab.diagnose import cells as gathered
from lfnlab.diagnose.evidence import Evidence
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.formats import pcap

if TYPE_CHECKING:
    from collections.abc import Sequence

SEGMENT = 1448
Rows = list[tuple[float, float, int, int, int]]

#: 10.8 Mbit/s x 19 ms, queue of 8 packets.
SHORT_QUEUE: Rows = [
    *((9.38, 29.3, 14, 217, 5), (9.07, 22.3, 18, 218, 4), (9.15, 25.6, 24, 218, 4)),
    *((8.03, 25.4, 24, 218, 5), (8.56, 26.2, 27, 218, 4), (9.28, 22.5, 15, 218, 6)),
    (9.07, 23.3, 22, 218, 4),
]
#: A policer of 51 Mbit/s, 108 Mbit/s x 176 ms.
POLICED: Rows = [
    *((8.25, 177.1, 250, 326, 0), (43.07, 177.1, 532, 3055, 589), (42.0, 177.2, 527, 3516, 44)),
    *((31.48, 176.6, 559, 3516, 0), (41.92, 176.6, 580, 3516, 0), (41.82, 176.9, 593, 3516, 0)),
    *((31.53, 176.7, 599, 3516, 0), (41.99, 177.0, 600, 3516, 0), (41.94, 177.1, 600, 3516, 0)),
]
#: 0.3 % are lost at random, 76 Mbit/s x 21 ms.
RANDOM: Rows = [
    *((17.32, 21.6, 23, 1406, 5), (11.49, 21.4, 25, 1406, 2), (17.32, 21.9, 23, 1405, 2)),
    *((13.55, 21.4, 25, 1406, 2), (13.03, 21.4, 19, 1406, 3), (9.38, 21.6, 12, 1405, 4)),
    (8.34, 21.5, 18, 1406, 2),
]
#: The rate of 25 Mbit/s x 58 ms goes down and up again and again.
CHANGING: Rows = [
    *((7.32, 68.3, 58, 256, 0), (10.95, 216.9, 156, 256, 0), (6.78, 58.5, 182, 784, 144)),
    *((23.98, 63.5, 256, 1311, 0), (5.21, 58.6, 254, 1311, 313), (15.62, 238.4, 170, 1311, 18)),
    *((10.96, 61.1, 256, 1445, 360), (26.07, 61.7, 274, 3320, 0)),
]
#: ACKs wait in a full queue on a slow way back, 76 Mbit/s x 33 ms.
SLOW_BACK: Rows = [
    *((15.0, 84.5, 113, 236, 0), (17.74, 118.6, 177, 363, 0), (23.98, 119.2, 266, 543, 0)),
    *((34.41, 120.1, 401, 856, 0), (50.04, 120.1, 600, 1186, 0), (72.74, 134.9, 890, 1869, 0)),
]
#: -b 15.11M, and outages from 4.8 s on.
SIDES = ((20.0, 40.0), (8.0, 100.0))
KEPT_RATE: Rows = [
    *((15.11, 41.2, 245, 611, 0) for _ in range(9)),
    *((9.79, 41.2, 1, 611, 1), (20.43, 41.2, 136, 693, 226), (10.18, 137.2, 139, 693, 0)),
    *((8.89, 41.1, 72, 695, 120), (0.0, 41.1, 1, 695, 1)),
]
#: 1.2 MB of BBR over 39 Mbit/s x 168 ms: it ends while the receiver's window still grows.
STARTING: Rows = [
    *((6.01, 167.8, 11, 45, 0), (3.86, 169.1, 22, 55, 0), (0.0, 169.1, 22, 55, 0)),
    *((6.51, 168.4, 36, 55, 0), (9.38, 168.4, 44, 55, 0), (11.47, 168.2, 66, 96, 0)),
    *((12.71, 168.2, 92, 147, 0), (13.14, 168.3, 134, 152, 0), (19.65, 168.3, 144, 152, 0)),
]


def samples(
    rows: Sequence[Sequence[float]], law: str, step_s: float = 1.0, **flow: Any
) -> Evidence:
    """A test of iperf3 with these intervals."""
    rate, rtt, cwnd, window, lost = np.array(rows, float).T
    unknown = np.full(rate.size, np.nan)
    arrays = dict.fromkeys(Evidence.__dataclass_fields__, unknown)
    arrays |= {"goodput_bps": rate * 1e6, "rtt_s": rtt / 1e3, "retransmits": lost}
    arrays |= {"cwnd_bytes": cwnd * SEGMENT, "window_bytes": window * SEGMENT}
    about = {"id": 0, "direction": "forward", "law": law, "segment_bytes": SEGMENT}
    written = int(rate.sum() * 1e6 / 8 * step_s)
    entry = {**about, "written_bytes": written, "tool": "iperf3", **flow}
    edges = np.arange(rate.size + 1) * step_s
    return Evidence(**{**arrays, "flow": entry, "edges_s": edges})


@pytest.mark.parametrize(
    ("rows", "law", "step_s", "cause"),
    [
        (SHORT_QUEUE, "reno", 1.0, "queue-overflow"),
        (POLICED, "cubic", 1.0, "policer"),
        (RANDOM, "cubic", 1.0, "random-loss"),
        (CHANGING, "bbr", 1.0, "path-change"),
        (SLOW_BACK, "cubic", 1.0, "ack-path"),
        (STARTING, "bbr", 0.1, "slow-start"),
    ],
    ids=["short queue", "policer", "random loss", "changes", "slow way back", "start"],
)
def test_the_limit_of_a_real_test_is_named(rows: Rows, law: str, step_s: float, cause: str) -> None:
    found = causes.diagnose(samples(rows, law, step_s))
    assert (found.cause, found.certain) == (cause, False)
    assert found.next is not None


def test_a_rate_that_was_asked_for_is_named_though_the_path_fails_later() -> None:
    found = causes.diagnose(samples(KEPT_RATE, "reno", 0.5, target_bps=15.11e6))
    assert found.cause == "pacing"
    assert max(one.end_s for one in found.intervals if one.cause == "pacing") < 6


def test_one_interval_that_hung_is_undecided() -> None:
    # iperf3 was held up for 6 s where most ACKs were lost.
    found = causes.diagnose(samples([(6.03, 5233.0, 10, 45, 5)], "reno", 6.0))
    assert found.cause == "undecided"


def test_losses_one_by_one_leave_the_window_of_the_square_root_law() -> None:
    rng = np.random.default_rng(1)
    for part in (1e-4, 1e-3, 1e-2):
        window = 1.22 / np.sqrt(part)
        sent = window / 0.04 * 1.0  # Of each interval of 1 s at an RTT of 40 ms.
        rate = sent * SEGMENT * 8 / 1e6
        for clump in (1, 16):
            lost = rng.poisson(part * sent / clump, 400) * clump
            rows = [(rate, 40.0, round(window * np.sqrt(clump)), 9000, int(n)) for n in lost]
            cells = gathered.of(samples(rows, "reno"))
            times, lost_part = losses.clumps(cells, np.ones(len(cells), bool))
            assert times == pytest.approx(np.sqrt(clump), rel=0.2)
            assert lost_part == pytest.approx(part, rel=0.3)


def test_writes_that_pause_are_no_outage_and_a_window_of_one_segment_is() -> None:
    steady = [(20.0, 40.0 + i % 2, 69, 900, 0) for i in range(40)]
    for at in range(10, 40, 6):
        steady[at : at + 4] = [(0.0, 40.0 + i % 2, 69, 900, 0) for i in range(4)]
    assert not any(
        which.any() for which, _ in losses.changes(gathered.of(samples(steady, "reno", 0.1)))
    )
    for at in range(10, 40, 6):
        steady[at : at + 4] = [(0.0, 40.0, 1, 900, 0)] * 4
    (which, _), *_ = losses.changes(gathered.of(samples(steady, "reno", 0.1)))
    assert which.mean() > 0.3


@pytest.mark.parametrize(
    ("size", "is_full"), [(200_000, True), (16_384, False), (2_000_000, False)]
)
def test_what_fills_a_buffer_smaller_than_the_window_is_its_limit(size: int, is_full: bool) -> None:
    rows = [(28.0, 42.0 + i % 2, 250, 900, i % 3) for i in range(20)]  # 147 kB under way.
    found = causes.diagnose(samples(rows, "cubic", send_buffer_bytes=size))
    assert (found.cause == "send-buffer", found.certain) == (is_full, False)
    # A buffer that holds more at the end has grown.
    grown = samples(rows, "cubic", send_buffer_bytes=size, delivered_bytes=1.0)
    assert causes.diagnose(grown).cause != "send-buffer"


@pytest.mark.parametrize(("waits", "cause"), [(100_000, "send-buffer"), (2_000_000, "pacing")])
def test_data_that_wait_in_the_socket_tell_a_set_rate_from_a_buffer(waits: int, cause: str) -> None:
    rows = [(20.0, 40.0 + i % 2, 140, 900, 0) for i in range(20)]  # 100 kB under way.
    written = samples(rows, "cubic").flow["written_bytes"]
    found = causes.diagnose(samples(rows, "cubic", delivered_bytes=written - waits))
    assert (found.cause, found.certain) == (cause, False)


def test_as_much_under_way_at_a_far_smaller_rtt_is_a_longer_way() -> None:
    # A queue: the RTT rises with the window, at one rate.
    queue = [(20.0, 0.6 * window, window, 900, 0) for window in (*range(70, 120), *range(70, 120))]
    assert not any(w.any() for w, _ in losses.changes(gathered.of(samples(queue, "reno", 0.1))))
    # Of one window the RTT is now that of one path, now of another.
    away = [
        (rate, rtt, 70 + i % 10, 900, 0) for i in range(100) for rate, rtt in [SIDES[i // 20 % 2]]
    ]
    (which, _), *_ = losses.changes(gathered.of(samples(away, "reno", 0.1)))
    assert which.mean() > 0.3


@pytest.mark.parametrize("lost", [3, 0])
def test_acks_that_hardly_come_after_losses_are_lost_themselves(lost: int) -> None:
    rows = [(6.0, 900.0, 10, 45, lost), *[(0.0, 5200.0, 10, 45, 0)] * 40]
    found = causes.diagnose(samples(rows, "reno", 0.1))
    assert (found.cause == "ack-path", found.certain) == (lost > 0, False)


@pytest.mark.parametrize(
    ("later", "rtt", "cause"),
    [
        (0, 90.0, "policer"),
        (100, 90.0, "policer"),
        (20, 90.0, "queue-overflow"),
        (100, 99.0, "queue-overflow"),
    ],
    ids=["found by BBR", "beyond its probes", "within its probes", "with a queue"],
)
def test_losses_of_bbr_are_a_policers_or_a_queues(later: int, rtt: float, cause: str) -> None:
    # 20 Mbit/s are 1,727 segments a second, of which a probe may lose 1 in 32.
    rows = [
        (20.0, 90.0, 300, 9000, 0),
        (20.0, 90.1, 300, 9000, 0),
        (30.0, rtt + 0.2, 300, 9000, 400),
    ]
    rows += [(20.0, rtt + 0.1 * (i % 2), 300, 9000, later) for i in range(9)]
    assert causes.diagnose(samples(rows, "bbr")).cause == cause
    # Several of them lose more at a queue.
    beside = causes.diagnose(samples(rows, "bbr", part=0.25)).cause
    assert beside == ("undecided" if later == 100 and rtt == 90.0 else cause)


def test_a_slow_way_back_and_a_deep_queue_are_one_file() -> None:
    # An ACK of a segment has 66 bytes; so many segments of 1,514 bytes in its place.
    forward = 'rate = "917575bit/s"\n{}\n[link.reverse]\nrate = "1Tbit/s"\n{}'
    back = 'rate = "100Mbit/s"\n{}\n[link.reverse]\nrate = "40kbit/s"\n{}'
    seen = []
    for link in (forward, back):
        room = 'queue = { size = "1000 packets" }'
        toml = f"""
            schema = 1
            duration = "10s"
            sample = "100ms"
            [link]
            {link.format(room, room)}
            [[flow]]
            law = "cubic:linux"
            rtt = "40ms"
            """
        (run,) = _core.run_many([_core.Scenario(toml)], 1, None)
        assert run is not None
        table = run.table("flows")
        rates = np.diff(table["delivered_bytes"], prepend=0.0) * 8 / 0.1 / 1e6
        rows = np.stack(
            [
                rates,
                table["srtt_s"] * 1e3,
                table["cwnd_seg"],
                9000 + 0 * rates,
                table["retransmits"],
            ]
        )
        seen.append(rows.T[2:])
    deep, slow = seen
    # A segment, or its ACK, takes 13.2 ms; it lets two more leave.
    assert slow[:, 1] == pytest.approx(deep[:, 1], rel=0.02, abs=13.3)
    assert slow[:, 2] == pytest.approx(deep[:, 2], rel=0.02, abs=2)
    assert slow[:, 0].sum() == pytest.approx(deep[:, 0].sum(), rel=0.02)
    found = [causes.diagnose(samples(rows, "cubic", 0.1)) for rows in seen]
    assert len({(one.cause, one.certain) for one in found}) == 1
    assert not found[0].certain


def test_a_rate_that_was_asked_for_and_kept_is_no_change_of_the_path() -> None:
    # Blocks in turn: the window is old, and the RTT is that of their queue.
    rows = [(20.0, SIDES[i // 20 % 2][1], 70 + i % 10, 900, 0) for i in range(100)]
    assert causes.diagnose(samples(rows, "reno", 0.1, goodput_bps=20e6)).cause == "path-change"
    kept = samples(rows, "reno", 0.1, goodput_bps=20e6, target_bps=20e6)
    assert causes.diagnose(kept).cause == "pacing"


def captured(tmp_path: Path, link: str, more: str, view: str) -> Path:
    """A capture of a simulated transfer over 20 Mbit/s x 40 ms."""
    scenario = lfnlab.Scenario.from_toml(
        f"""
        schema = 1
        duration = "8s"
        sample = "off"
        [link]
        rate = "20Mbit/s"
        {link}
        [[flow]]
        law = "cubic:linux"
        rtt = "40ms"
        {more}
        [capture]
        links = ["forward", "reverse"]
        """,
        "traced.toml",
    )
    (run,) = execute([Case(scenario)], out=tmp_path / "run", title="traced").runs
    file = tmp_path / f"{view}.pcapng"
    pcap.write_pcapng(file, pcap.recorded(run), view=view)
    return file


def outages(states: str) -> str:
    """A schedule of one change each second from 1 s on."""
    return "".join(
        f'[[schedule]]\nat = "{at}s"\nlink = "forward"\n{state}\n'
        for at, state in enumerate(states.split(";"), 1)
    )


DOWN_AND_UP = outages(";".join(["down = true", "down = false"] * 3))


@pytest.mark.parametrize(
    ("cause", "link", "more"),
    [
        ("path-change", 'queue = { size = "0.3bdp" }', DOWN_AND_UP),
        ("application", "", 'application = { rate = "50Mbit/s", on = "40ms", off = "460ms" }'),
        ("ack-path", '[link.reverse]\nrate = "60kbit/s"\nqueue = { size = "50 packets" }', ""),
        ("queue-overflow", 'queue = { size = "0.5bdp" }', ""),
    ],
)
def test_a_receiver_sees_what_data_waited_for(
    tmp_path: Path, cause: str, link: str, more: str
) -> None:
    found = result.examine([captured(tmp_path, link, more, "receiver")])
    assert (found.cause, found.certain) == (cause, False)


@pytest.mark.parametrize("view", ["sender", "receiver"])
def test_a_link_whose_rate_changes_is_no_full_queue(tmp_path: Path, view: str) -> None:
    rates = ";".join(f'rate = "{rate}Mbit/s"' for rate in (4, 20, 5, 20, 4, 20))
    link = 'queue = { size = "0.2bdp" }'
    assert result.examine([captured(tmp_path, link, outages(rates), view)]).cause == "path-change"
