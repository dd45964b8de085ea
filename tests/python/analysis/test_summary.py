"""Are the types of a run's summary those of a run?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NotRequired, get_origin, get_type_hints

import mypy.api
import pytest

from lfnlab import Burst, Case, ShortFlows, Traffic, Udp, dumbbell, execute
from lfnlab.analysis.summary import averaged, averages
from lfnlab.results import summary


def keys_of(kind: type) -> tuple[set[str], set[str]]:
    """Keys that a TypedDict requires, and all."""
    hints = get_type_hints(kind, include_extras=True)
    return {key for key, hint in hints.items() if get_origin(hint) is not NotRequired}, {*hints}


def test_a_summary_has_the_keys_of_its_type(tmp_path: Path) -> None:
    scenario = dumbbell(rate="20Mbit/s", rtt="20ms", buffer="1bdp", duration="2s")
    scenario = scenario.with_background(1).with_udp(Udp(bursts=(Burst(rate="1Mbit/s"),)))
    scenario = scenario.with_traffic(Traffic(short_flows=ShortFlows(load="1Mbit/s")))
    found = execute(scenario.flow("reno"), out=tmp_path).runs[0].summary
    assert found["background"] is not None
    for value, kind in (
        (found, summary.Summary),
        (found["flows"][0], summary.FlowSummary),
        (found["flows"][0]["routes"][0], summary.RouteSummary),
        (found["links"][0], summary.LinkSummary),
        (found["links"][0]["rates"][0], summary.RateSummary),
        (found["udp"][0], summary.UdpSummary),
        (found["background"], summary.BackgroundSummary),
        (found["traffic"][0], summary.BackgroundSummary),
        (found["conservation"], summary.Conservation),
        (found["memory"], summary.Memory),
    ):
        required, every = keys_of(kind)
        assert required <= set(value) <= every, kind


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('flow["delivered_bytes"] / 8', ""),
        ('flow["goodput_bps"] / 8', "Unsupported operand types"),
        ('run.summary["links"][0]["drops"] + 1', ""),
        ('flow["goodput"]', 'TypedDict "FlowSummary" has no key "goodput"'),
        ('run.summary["conservation"]["sent"] + ""', "Unsupported operand types"),
    ],
)
def test_mypy_knows_the_keys_of_a_summary(text: str, wrong: str, tmp_path: Path) -> None:
    file = tmp_path / "use.py"
    file.write_text(
        "from lfnlab import Results\n"
        'for run in Results.load("results").runs:\n'
        f'    flow = run.summary["flows"][0]\n    print({text})\n'
    )
    told, _, code = mypy.api.run(["--strict", str(file)])
    assert (wrong in told, code) == (True, bool(wrong)), told


def test_counts_of_the_whole_run_are_said_to_be_so(tmp_path: Path) -> None:
    """A warm-up shortens the averages, and counts of losses include it."""
    more = "; losses, timeouts and retransmits: whole run"
    path = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="4s")
    for warmup, said in (("0s", ""), ("2s", more)):
        results = execute([Case(replace(path, warmup=warmup).flow("reno"))], out=tmp_path / warmup)
        assert averages(results) == f"averages {averaged(results)}{said}"


@pytest.mark.parametrize(
    ("flows", "keys", "every_ms", "is_said"),
    [
        (6000, {}, 20, True),
        (6000, {"sample": "1s"}, 1000, False),
        (10, {}, 10, False),
        (10, {"sample_rows": 3000}, 50, True),
        (10, {"sample_rows": 1_000_000}, 10, False),
    ],
)
def test_runs_say_how_often_they_sample_if_their_rows_decide(
    flows: int, keys: dict[str, Any], every_ms: int, is_said: bool, tmp_path: Path
) -> None:
    path = dumbbell(rate="1Mbit/s", rtt="20ms", buffer="1bdp", duration="9s", **keys)
    results = execute([Case(path.flow("reno", count=flows))], out=tmp_path)
    said = f"; samples every {every_ms}ms, by the number of their rows (key sample_rows)"
    assert averages(results) == f"averages {averaged(results)}{said if is_said else ''}"
    run = results.runs[0]
    times = run.table("flows")["t_s"].unique().sort()
    assert times.diff()[1:].min() == pytest.approx(every_ms / 1000)
    rows = sum(len(run.table(table)) for table in ("flows", "probes", "queues"))
    assert rows <= keys.get("sample_rows", 4_000_000)
