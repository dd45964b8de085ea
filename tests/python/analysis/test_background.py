"""Does a run say which share of the rate its background had?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lfnlab import Case, Scenario, dumbbell, execute
from lfnlab.analysis import background, warnings
from lfnlab.analysis.summary import summary_table
from lfnlab.figures.report import write_report

if TYPE_CHECKING:
    from command import Lfn

    from lfnlab import Results

ROOT = Path(__file__).parents[3]


def run(out: Path, rate: str, level: int, *, seeds: int = 1, **more: int) -> Results:
    """Ten seconds of two flows, one each way, above a background."""
    path = dumbbell(rate=rate, rtt="100ms", buffer="1bdp", duration="10s")
    both = path.flow("cubic").flow("cubic", direction="reverse")
    return execute([Case(both.with_background(level, **more))], seeds=seeds, out=out)


def test_a_slow_link_carries_more_background_than_its_level_asks_for(tmp_path: Path) -> None:
    results = run(tmp_path, "45Mbit/s", 1)
    (own,) = results.runs
    goodput_bps = own.summary["background"]["goodput_bps"]
    shares = [bps / 45e6 for bps in goodput_bps]
    assert shares[0] > 0.2, "level 1 asks for 10 %"
    table = summary_table(results)
    assert table.headings[-1] == "background (%)"
    routes = [row[table.headings.index("route")] for row in table.rows]
    assert dict(zip(routes, [row[-1] for row in table.rows], strict=True)) == {
        "forward": f"{100 * shares[0]:.3g}",
        "reverse": f"{100 * shares[1]:.3g}",
    }
    (warning,) = background.seen(results)
    assert "10 % of the rate forward and 5 % in reverse" in warning
    assert f"{100 * shares[0]:.3g} and {100 * shares[1]:.3g} %" in warning
    assert warning in warnings.seen(results)
    page = write_report(results).read_text()
    assert "background (%)" in page
    assert warning in page


def test_the_level_alone_has_its_share_and_no_warning(tmp_path: Path) -> None:
    results = run(tmp_path, "1Gbit/s", 2, long_flows=0)
    share = background.share(results.runs[0])
    assert share is not None
    assert share.achieved[0] == pytest.approx(0.25, rel=0.5)
    assert not share.exceeds
    assert background.seen(results) == []


def test_without_a_background_there_is_no_column(tmp_path: Path) -> None:
    results = run(tmp_path, "10Mbit/s", 0)
    assert "background (%)" not in summary_table(results).headings
    assert background.seen(results) == []


def test_a_rate_that_changes_counts_as_its_mean(tmp_path: Path) -> None:
    text = (
        'schema = 1\nduration = "10s"\n[link]\nrate = "10Mbit/s"\n[[flow]]\nlaw = "reno"\n'
        'rtt = "20ms"\n[background]\nlevel = 1\n'
        '[[schedule]]\nat = "5s"\nlink = "forward"\nrate = "30Mbit/s"\n'
    )
    results = execute(Scenario.from_toml(text, "changed"), out=tmp_path)
    share = background.share(results.runs[0])
    assert share is not None
    goodput_bps = results.runs[0].summary["background"]["goodput_bps"][0]
    assert share.achieved[0] == pytest.approx(goodput_bps / 20e6)


def test_a_sweep_of_levels_warns_of_each(tmp_path: Path) -> None:
    path = dumbbell(rate="20Mbit/s", rtt="50ms", buffer="1bdp", duration="12s").flow("reno")
    cases = [Case(path.with_background(level), {"level": level}) for level in (0, 1, 3)]
    results = execute(cases, seeds=2, out=tmp_path)
    levels = [re.search(r"level (\d)", warning) for warning in background.seen(results)]
    assert [found[1] for found in levels if found] == ["1", "3"]
    shares = background.shares(results)
    assert shares[0, "reno"].mean == 0.0
    assert shares[1, "reno"].n == 2


@pytest.mark.parametrize(("seeds", "told"), [(1, False), (2, True), (4, True), (5, False)])
def test_few_seeds_are_warned_of(tmp_path: Path, seeds: int, told: bool) -> None:
    path = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s")
    results = execute(
        [Case(path.flow("reno", start="uniform(0s, 0.5s)"))], seeds=seeds, out=tmp_path
    )
    assert [f"{seeds} seeds" in line for line in warnings.few_seeds(results)] == [True] * told


def test_every_place_that_offers_a_level_names_the_long_flows(
    lfn: Lfn,
) -> None:
    places = {"help": lfn("compare", "--help")}
    for file in (
        "docs/scenario.md",
        "docs/traffic.md",
        "docs/reference/scenario.schema.json",
        "python/lfnlab/cli/start/scenario.toml",
        "python/lfnlab/cli/start/sweep.toml",
        "python/lfnlab/laboratory/assets/laboratory.html",
        "python/lfnlab/laboratory/assets/laboratory.js",
    ):
        places[file] = (ROOT / file).read_text()
    assert [name for name, text in places.items() if not re.search("long[_ ]flows", text)] == []
