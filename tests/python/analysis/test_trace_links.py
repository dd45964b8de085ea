"""Links whose rate a trace, a schedule or a bucket changes: is their use counted in its window?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lfnlab
from lfnlab import Case, LabError, Results, Scenario, execute
from lfnlab.analysis import measure

QUEUE = {"size": "60 packets"}
REVERSE = {"rate": "1Gbit/s", "queue": {"size": "1000 packets"}}
#: The whole packets of 1514 bytes that wait, and the one in service.
MOST_WAITING = 61


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """10 s at 1 Mbit/s (a line each 12 ms), then 10 s at 20 Mbit/s."""
    lines = [i * 12 for i in range(1, 834)] + [10_000 + i * 6 // 10 for i in range(1, 16_667)]
    file: Path = tmp_path_factory.mktemp("traces") / "v.trace"
    file.write_text("\n".join(map(str, lines)) + "\n")
    return str(file)


def ran(out: Path, more: dict[str, Any], start_s: int = 0, end_s: int = 10) -> Results:
    flow = {"law": "cubic", "rtt": "40ms"}
    times = {"duration": f"{end_s}s", "warmup": f"{start_s}s"}
    scenario = Scenario.from_document(times | {"flow": [flow]} | more)
    return execute([Case(scenario)], out=out)


def values(results: Results, name: str, **window: Any) -> dict[str, float]:
    found = measure.measure(results, [name], **window).values
    return {f"{one.of}, {one.detail}": one.interval.mean for one in found}


def test_the_halves_of_a_trace_are_full_each(trace: str, tmp_path: Path) -> None:
    link = {"trace": trace, "queue": QUEUE, "reverse": REVERSE}
    for start_s, lines, least in ((0, 833, 0.99), (10, 16_666, 0.97)):
        results = ran(tmp_path / str(start_s), {"link": link}, start_s, start_s + 10)
        summary = results.runs[0].summary["links"][0]
        assert summary["opportunities"] == lines
        assert least <= summary["utilization"] <= 1.0
        assert values(results, "utilization")["forward, bits sent"] == pytest.approx(
            summary["utilization"], abs=1e-6
        )
        for name in ("normalized-goodput", "efficiency"):
            assert least - 0.05 < values(results, name)["forward, goodput"] <= 1.0
        delay = values(results, "queueing-delay")
        assert delay["forward, mean"] == pytest.approx(summary["mean_queue_s"], rel=0.1)
        if start_s == 0:
            assert delay["forward, max"] == pytest.approx(0.012 * MOST_WAITING, rel=0.02)
            # A window within it, too.
            inside = values(results, "utilization", start_s=4.0, end_s=7.0)
            assert 0.99 <= inside["forward, bits sent"] <= 1.0


def test_so_are_a_named_link_and_one_with_datagrams(trace: str, tmp_path: Path) -> None:
    link = {"name": "radio", "from": "a", "to": "b", "trace": trace, "queue": QUEUE}
    cases = {
        "radio": {"links": [link | {"reverse": REVERSE}], "flow": [{"law": "cubic", "to": "b"}]},
        "forward": {
            "link": {"trace": trace, "queue": QUEUE, "reverse": REVERSE},
            "udp": [
                {"bursts": [{"start": "0s", "stop": "9s", "rate": "300kbit/s"}], "packet": "200B"}
            ],
        },
    }
    cases["radio"]["flow"] = [{"law": "cubic", "rtt": "40ms", "from": "a", "to": "b"}]
    for name, more in cases.items():
        results = ran(tmp_path / name, more)
        used = values(results, "utilization")[f"{name}, bits sent"]
        assert 0.98 <= used <= 1.0
        (link_used,) = (
            link["utilization"] for link in results.runs[0].summary["links"] if link["id"] == name
        )
        assert used == pytest.approx(link_used, abs=1e-6)


def test_a_rate_that_a_schedule_changes_is_as_full(tmp_path: Path) -> None:
    changes = [{"at": "2s", "rate": "1Mbit/s"}, {"at": "7s", "rate": "10Mbit/s"}]
    link = {"rate": "10Mbit/s", "queue": QUEUE, "reverse": REVERSE}
    schedule = [change | {"link": "forward"} for change in changes]
    results = ran(tmp_path, {"link": link, "schedule": schedule})
    (used,) = (link["utilization"] for link in results.runs[0].summary["links"][:1])
    assert 0.95 < used <= 1.0
    assert values(results, "utilization")["forward, bits sent"] == pytest.approx(used, abs=1e-6)


def test_a_bucket_is_full_at_most(tmp_path: Path) -> None:
    bucket = {"rate": "10Mbit/s", "burst": "12MB"}
    line = {"rate": "100Mbit/s", "queue": {"size": "500 packets"}, "reverse": REVERSE}
    for kind, most in (("shaper", 1.0), ("policer", 0.25)):
        results = ran(tmp_path / kind, {"link": line | {kind: bucket}})
        link = results.runs[0].summary["links"][0]
        # Over the tokens that came a burst of 12 MB makes 1.9 of 10 s at 10 Mbit/s.
        assert 0.15 < link["utilization"] <= most
        used = values(results, "utilization")["forward, bits sent"]
        assert used == pytest.approx(link["utilization"], abs=1e-6)
        assert values(results, "utilization", start_s=5.0)["forward, bits sent"] <= most


def test_runs_that_did_not_count_opportunities_are_not_measured(
    trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = lfnlab.results.runs.read_table
    dropped = ["capacity_bytes", "drain_s"]
    monkeypatch.setattr(
        lfnlab.results.runs, "read_table", lambda *a: new(*a).drop(dropped, strict=False)
    )
    link = {"trace": trace, "queue": QUEUE, "reverse": REVERSE}
    of_a_trace = ran(tmp_path / "trace", {"link": link})
    for name in ("utilization", "normalized-goodput", "efficiency", "queueing-delay"):
        with pytest.raises(LabError, match="did not count the opportunities of a trace; run it"):
            measure.measure(of_a_trace, [name])
    link = {"rate": "10Mbit/s", "queue": QUEUE, "reverse": REVERSE}
    results = ran(tmp_path / "rate", {"link": link})
    expected = results.runs[0].summary["links"][0]["utilization"]
    assert values(results, "utilization")["forward, bits sent"] == pytest.approx(expected, rel=1e-4)
    assert 0 < values(results, "queueing-delay")["forward, mean"] < 0.08


def test_no_row_of_the_samples_uses_more_than_there_was(trace: str, tmp_path: Path) -> None:
    link = {"trace": trace, "queue": QUEUE, "reverse": REVERSE}
    results = ran(tmp_path, {"link": link, "sample": "1ms"}, 8, 12)
    table = results.runs[0].table("queues").filter((pl.col("link") == 0) & (pl.col("t_s") >= 8))
    steps = table.select(
        pl.col("sent_bytes").diff().alias("sent"), pl.col("capacity_bytes").diff().alias("most")
    ).drop_nulls()
    assert steps.filter(pl.col("sent") > pl.col("most")).height == 0
    assert set(steps["most"].unique()) <= {0.0, 1504.0, 3008.0}
