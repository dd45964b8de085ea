"""Is docs/ebb.md what its tables say, and do its statistics hold?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from studies.law import attacked, elastic, judge, page, tables
from studies.law.paths import held_out, long_fat

REFERENCE = Path(page.__file__).parents[1] / "reference"


def test_the_page_is_made_from_the_committed_tables() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(REFERENCE)


def test_held_out_paths_stay_what_they_were_when_committed() -> None:
    mixed, fat = held_out(3), long_fat(4)
    assert [*mixed] == ["000 drop-tail", "001 drop-tail", "002 drop-tail"]
    assert [*fat][2:] == ["L02 drop-tail", "L03 queue"]
    link = fat["L03 queue"].link
    assert link is not None
    assert link.rate == "7345893470bit/s"
    assert link.queue is not None
    assert link.queue.size == "153039 packets"


@pytest.mark.parametrize("count", [9, 10, 20, 60])
def test_the_median_is_between_two_values_as_often_as_told(count: int) -> None:
    """The largest index whose two tails are at most what may be outside."""
    end = tables._order(count, 0.002)
    assert end < 0 or 2 * stats.binom.cdf(end, count, 0.5) <= 0.002
    assert 2 * stats.binom.cdf(end + 1, count, 0.5) > 0.002


def test_a_rate_has_its_exact_interval() -> None:
    """Of none the rule of three; of all the same from the other side."""
    assert tables.rate(0, 3000) == "0 [0, 1.2]"
    assert tables.rate(1, 1) == "1000 [25, 1000]"


def test_a_path_is_of_each_of_its_kinds() -> None:
    path = {"rtt_ms": 5.0, "buffer_bdp": 0.1, "outage_s": 0.5, "udp": 1.0}
    found = [name for name, kind in attacked.KINDS.items() if kind(path)]
    assert found == ["buffer of 4 to 8 packets", "outages", "UDP pulses"]
    assert [name for name, kind in attacked.KINDS.items() if kind({})] == ["none of these"]


def test_a_share_near_a_half_is_not_worse_whatever_cubic_has() -> None:
    row = dict.fromkeys(judge.AXES)
    assert judge.beyond({**row, "share-reno": 0.59}, {**row, "share-reno": 0.5}) == []
    assert judge.beyond({**row, "share-reno": 0.65}, {**row, "share-reno": 0.5}) == ["share-reno"]
    assert judge.beyond({**row, "queue-p95": 0.2}, {**row, "queue-p95": 0.1}) == ["queue-p95"]


def test_goertzel_is_the_amplitude_of_a_fourier_transform() -> None:
    rows = np.random.default_rng(1).normal(size=(1000, 2))
    resolution_hz = 1 / (1000 * elastic.STEP_S)
    spectrum = np.abs(np.fft.rfft(rows, axis=0))
    for line in (1, 25, 40):
        found = elastic.goertzel(rows, line * resolution_hz)
        assert found == pytest.approx(spectrum[line], rel=1e-9)


def test_pulses_in_the_cross_traffic_are_elasticity() -> None:
    """Noise has none; noise with pulses at the sender's frequency has."""
    noise = np.random.default_rng(1).normal(size=(1000, 1))
    times_s = elastic.STEP_S * np.arange(1000)[:, None]
    pulses = np.sin(2 * np.pi * elastic.PULSE_HZ * times_s)
    assert elastic.elasticity(noise) < 1.5
    assert elastic.elasticity(noise + pulses) > 4
    assert elastic.elasticity(noise + pulses) == pytest.approx(
        elastic.elasticity(1e6 * (noise + pulses)), rel=1e-6
    )
