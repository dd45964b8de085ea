"""Does `lfn metrics` measure stored results, and say what it measured?"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lfnlab import (
    Application,
    Burst,
    Case,
    Change,
    LabError,
    NamedLink,
    Results,
    ShortFlows,
    Traffic,
    Udp,
    dumbbell,
    execute,
    graph,
    parking_lot,
)
from lfnlab.analysis import measure
from lfnlab.analysis.measure import METRICS, View
from lfnlab.cli import app as cli
from lfnlab.errors import MetricError
from lfnlab.metrics import FirstPassage

if TYPE_CHECKING:
    from command import Lfn

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Reno and CUBIC from the start, Reno of a longer RTT later, and a file."""
    path = dumbbell(rate="20Mbit/s", rtt="20ms", buffer="1bdp", duration="12s", warmup="2s")
    scenario = (
        path.flow("reno", rtt="20ms")
        .flow("cubic", rtt="20ms")
        .flow("reno", rtt="40ms", start="4s")
        .flow("reno", rtt="20ms", start="3s", size="1MB")
    )
    out: Path = tmp_path_factory.mktemp("late")
    return execute([Case(scenario)], seeds=2, out=out)


def values(results: Results, name: str, **window: Any) -> dict[tuple[str, str], measure.Measured]:
    found = measure.measure(results, [name], **window).values
    return {(value.of, value.detail): value for value in found}


def test_the_documentation_is_that_of_the_functions() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert rows == measure.documentation(), "print(*measure.documentation(), sep='\\n')"
    for metric in METRICS.values():
        assert set(metric.documentation) == {"meaning", "Formula", "Unit", "Source"}


def test_every_metric_of_a_rich_run_has_values(late: Results) -> None:
    found = {value.metric.name for value in measure.measure(late).values}
    # One newcomer among three has no delta; a base is another experiment; no flow has a deadline.
    assert set(METRICS) - found == {"delta-fair", "camps", "harm", "frames-in-time"}


def test_frames_of_streams_are_those_of_the_summary(tmp_path: Path) -> None:
    path = dumbbell(rate="20Mbit/s", rtt="20ms", buffer="1bdp", duration="8s", warmup="2s")
    writes = Application(rate="2Mbit/s", deadline="28ms")
    source = Udp(name="media", bursts=(Burst(start="0s", rate="4Mbit/s"),), deadline="18ms")
    scenario = path.flow("reno", application=writes, count=2).flow("cubic").with_udp(source)
    results = execute([Case(scenario)], out=tmp_path)
    [run] = results.runs
    flows, [udp] = run.summary["flows"], run.summary["udp"]
    assert "frames" not in flows[2]
    for name, of in (("reno", flows[:2]), ("media", [udp])):
        due, in_time = (sum(one["frames"][key] for one in of) for key in ("due", "in_time"))
        assert 0 < in_time < due
        found = values(results, "frames-in-time")[name, "frames"]
        assert found.interval.mean == pytest.approx(in_time / due)
    # No table has them, so another window has none.
    with pytest.raises(MetricError, match="it needs deadlines, and the window of the averages"):
        values(results, "frames-in-time", start_s=3.0)


def test_they_are_the_summarys_where_the_summary_has_them(results: Results) -> None:
    goodput = measure.measure(results, ["goodput"]).values
    for (law,), expected in results.intervals("goodput_bps").items():
        (value,) = (one for one in goodput if one.of == law and one.factors["law"] == law)
        assert value.interval.n == expected.n
        assert value.interval.mean == pytest.approx(expected.mean, rel=1e-3)
    for one in measure.measure(results, ["utilization", "loss-rate"]).values:
        runs = [run for run in results.runs if run.factors == one.factors]
        links = [link for run in runs for link in run.summary["links"] if link["id"] == one.of]
        expected_values = [
            link["utilization"]
            if one.metric.name == "utilization"
            else link["drops"] / link["arrivals"]
            for link in links
        ]
        assert list(one.values.values()) == pytest.approx(expected_values, rel=0.01)


def test_queueing_delay_is_that_of_the_summary_but_for_the_average(results: Results) -> None:
    for one in measure.measure(results, ["queueing-delay"]).values:
        if (one.of, one.detail) == ("forward", "p99"):
            runs = [run for run in results.runs if run.factors == one.factors]
            over_packets = [run.summary["links"][0]["p99_queue_s"] for run in runs]
            assert list(one.values.values()) == pytest.approx(over_packets, rel=0.1)


def test_flows_that_live_in_part_do_not_overfill_the_link(late: Results) -> None:
    (used,) = values(late, "efficiency").values()
    assert 0.8 < used.interval.mean <= 1.0


def test_segments_sent_in_the_window_are_the_senders_own(results: Results) -> None:
    for run in results.runs:
        view = View(run, 0.0)
        for flow in view.flows:
            sent, again = view.sent[flow["id"]]
            # At the end the sender is ahead of the acknowledgements by what is in flight.
            in_flight = flow["max_cwnd_segments"]
            assert flow["sent"] - in_flight <= sent <= flow["sent"]
            assert again == flow["retransmits"]


def test_the_newcomer_converges_from_its_start(late: Results) -> None:
    found = values(late, "convergence")
    assert set(found) == {
        ("reno", f"last flow to {share}, tolerance {tolerance}")
        for share in ("C/4", "mean of flows")
        for tolerance in ("0", "0.1")
    }
    for value in found.values():
        for passage in value.values.values():
            assert isinstance(passage, FirstPassage)
            # It began at 4 s and the run ends at 12 s.
            assert 0 < passage.value <= 8
            assert not passage.censored or passage.value == pytest.approx(8, abs=1.02)


def test_flows_count_on_the_links_that_they_cross(tmp_path: Path) -> None:
    lot = parking_lot(
        hops=2, rate="20Mbit/s", delay="5ms", buffer="1bdp", duration="12s", warmup="2s"
    )
    scenario = lot.flow("reno").flow("cubic", from_=2, to=3, start="5s").flow("reno", from_=2, to=1)
    results = execute([Case(scenario)], out=tmp_path)
    view = View(results.runs[0], 2.0)
    carried = {link["id"]: [flow["id"] for flow in flows] for link, flows in view.loaded_links()}
    assert carried == {"hop1": [0], "hop2": [0, 1], "hop1.reverse": [2]}
    used = values(results, "normalized-goodput")
    # Each while it lives: the second from 5 s on, of 10 s.
    lives = {0: 1.0, 1: 0.7, 2: 1.0}
    for link, flows in carried.items():
        expected = sum(view.goodputs[flow] * lives[flow] for flow in flows) / 20e6
        assert used[link, "goodput"].interval.mean == pytest.approx(expected, rel=0.01)
    # The last flow shares hop 2 with one other, whatever there is elsewhere.
    assert ("cubic", "last flow to C/2, tolerance 0") in values(results, "convergence")


def test_routes_and_rates_that_change_count_while_they_hold(tmp_path: Path) -> None:
    one, other = (
        NamedLink(name=name, from_="a", to="b", rate="20Mbit/s", delay="5ms")
        for name in ("one", "other")
    )
    scenario = (
        graph(one, other, duration="9s", warmup="1s")
        .flow("cubic", from_="a", to="b")
        .with_changes(
            Change(at="3s", link="other", rate="5Mbit/s"),
            Change(at="5s", flow=0, route=("other",)),
            Change(at="7s", link="other", down=True),
        )
    )
    results = execute([Case(scenario)], out=tmp_path)
    links = {link["id"]: link for link in results.runs[0].summary["links"]}
    assert links["other"]["rate_bps"] == 0
    sent = values(results, "utilization")
    for name in ("one", "other"):
        assert sent[name, "bits sent"].interval.mean == pytest.approx(
            links[name]["utilization"], rel=0.01
        )
    # Full for 4 s of 8; and for 2 s at 5 Mbit/s where 2 s at 20 and 4 s at 5 were there to be used.
    used = values(results, "normalized-goodput")
    payload = 1448 / 1514
    assert used["one", "goodput"].interval.mean == pytest.approx(4 / 8 * payload, rel=0.05)
    assert used["other", "goodput"].interval.mean == pytest.approx(10 / 60 * payload, rel=0.1)
    # A queue of 20 Mbit/s x 10 ms is 10 ms long, and 40 ms at a quarter of the rate.
    delays = values(results, "queueing-delay")
    assert delays["one", "max"].interval.mean == pytest.approx(0.010, rel=0.1)
    assert 0.030 < delays["other", "max"].interval.mean < 0.044


def test_flows_are_compared_with_those_of_their_route(tmp_path: Path) -> None:
    lot = parking_lot(hops=2, rate="20Mbit/s", delay="5ms", buffer="1bdp", duration="4s")
    scenario = lot.flow("reno", count=2).flow("reno", from_=1, to=2, count=2)
    found = values(execute([Case(scenario)], out=tmp_path), "phase-locked")
    assert set(found) == {("reno", "flows locked on hop1 hop2"), ("reno", "flows locked on hop1")}


def test_a_censored_time_is_no_number() -> None:
    metric = METRICS["convergence"]
    passages = {1: FirstPassage(3.0), 2: FirstPassage(23.0, censored=True)}
    value = measure.Measured({}, metric, "reno", "", passages)
    assert math.isnan(value.interval.mean)
    assert str(value) == "> 23 in 1 of 2 runs"
    said = value.to_json()
    assert said["mean"] is None
    assert said["values"] == {"1": 3.0, "2": {"longer_than": 23.0}}
    assert str(measure.Measured({}, metric, "reno", "", {2: passages[2]})) == "> 23"


def test_camps_compare_the_same_flows_under_two_laws(base: Any, tmp_path: Path) -> None:
    standard = base.flow("reno").flow("reno")
    mixed = base.flow("reno").flow("scalable")
    before = execute([Case(standard)], seeds=2, out=tmp_path / "base")
    after = execute([Case(mixed)], seeds=2, out=tmp_path / "mix")
    found = values(after, "camps", base=before)
    assert set(found) == {("scalable", "G, what camp B gains"), ("reno", "L, what camp A keeps")}
    for (law, _), value in found.items():
        number = 1 if law == "scalable" else 0
        for seed, ratio in value.values.items():
            (new,) = (r.summary["flows"][number] for r in after.runs if r.seed == seed)
            (old,) = (r.summary["flows"][number] for r in before.runs if r.seed == seed)
            assert ratio == pytest.approx(new["goodput_bps"] / old["goodput_bps"], rel=1e-3)
    with pytest.raises(LabError, match="not in all flows or none"):
        measure.measure(before, ["camps"], base=before)


def test_harm_is_to_the_flows_that_the_base_has_alone(base: Any, tmp_path: Path) -> None:
    alone = execute([Case(base.flow("reno"))], seeds=2, out=tmp_path / "base")
    mixed = execute([Case(base.flow("reno").flow("scalable"))], seeds=2, out=tmp_path / "mix")
    found = values(mixed, "harm", base=alone)
    assert set(found) == {("reno", "rate"), ("reno", "delay"), ("reno", "loss")}
    for seed, harm in found["reno", "rate"].values.items():
        (beside,) = (r.summary["flows"][0] for r in mixed.runs if r.seed == seed)
        (solo,) = (r.summary["flows"][0] for r in alone.runs if r.seed == seed)
        assert harm == pytest.approx(1 - beside["goodput_bps"] / solo["goodput_bps"], rel=1e-3)
    with pytest.raises(LabError, match="it needs --base, the run with some of its flows alone"):
        measure.measure(mixed, ["harm"], base=mixed)


def test_a_flow_that_may_send_a_packet_a_round_trip_starves_all_the_time(tmp_path: Path) -> None:
    path = dumbbell(rate="50Mbit/s", rtt="20ms", buffer="1bdp", duration="20s", warmup="5s")
    capped = path.flow("reno", receive_window="1 packets").flow("reno")
    results = execute([Case(capped.flow("cubic"))], out=tmp_path)
    # One of the two Reno flows has at most 0.58 of 16.7 Mbit/s.
    found = {of: value.interval.mean for (of, _), value in values(results, "starvation").items()}
    assert found == {"reno": 0.5, "cubic": 0.0}


def test_a_finer_window_is_the_one_that_was_asked_for(results: Results) -> None:
    found = values(results, "cov", window_s=0.5, start_s=1.0, end_s=5.0)
    assert {detail for _, detail in found} == {"mean flow, 0.5 s", "sum of flows, 0.5 s"}
    assert measure.measure(results, ["cov"], start_s=1.0, end_s=5.0).window == (
        "from 1 s to 5 s; means over 2 seeds ± 95 % (Student's t)"
    )


def test_coarse_samples_leave_out_what_they_cannot_show(tmp_path: Path) -> None:
    path = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="4s", sample="300ms")
    results = execute([Case(path.flow("reno").flow("reno", start="1s"))], out=tmp_path)
    found = measure.measure(results, start_s=1.0)
    assert set(found.refused) == {"smoothness"}
    assert "samples are 0.3 s apart" in found.refused["smoothness"]
    # No scale of the field is a multiple of 0.3 s; convergence takes 1.2 s.
    names = {value.metric.name for value in found.values}
    assert not {"cov", "jain-over-time"} & names
    assert "convergence" in names
    with pytest.raises(LabError, match="samples are"):
        measure.measure(results, ["smoothness"])


def test_the_warm_up_is_said(late: Results) -> None:
    said = measure.measure(late).window
    assert said.startswith("from 2 s, the end of the warm-up, to 12 s; one run each")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--metric", "jian"], 'no metric "jian"; allowed: goodput, '),
        (["--window", "100s"], "--window: 100; allowed: up to 6"),
        (["--window", "0s"], "--window: 0; allowed: above 0"),
        (["--window", "10"], '--window: "10"; allowed: a number and one of ps, '),
        (["--window=-1s"], '--window: "-1s"'),
        (["--start", "9s"], "--start, --end: 9, 6; allowed: "),
        (["--end", "60s"], "--end: 60; allowed: up to 6"),
        (["--start", "3s", "--end", "2s"], "--start, --end: 3, 2"),
        (["--metric", "ramp-up"], "ramp-up: not in these runs; it needs a flow that begins"),
        (["--metric", "camps"], "camps: not in these runs; it needs --base"),
        (["--metric", "harm"], "harm: not in these runs; it needs --base"),
    ],
)
def test_bad_requests_are_one_line(
    results: Results, arguments: list[str], said: str, lfn: Lfn
) -> None:
    assert said in lfn.refuses("metrics", results.root, *arguments)


def test_what_has_no_samples_is_told(tmp_path: Path, lfn: Lfn) -> None:
    path = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s", sample="off")
    execute([Case(path.flow("reno"))], out=tmp_path)
    assert "sample = off" in lfn.err("metrics", tmp_path)


def test_background_alone_has_the_metrics_of_its_links(tmp_path: Path) -> None:
    path = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="50 packets", duration="3s")
    results = execute([Case(path.with_background(1))], out=tmp_path)
    names = {value.metric.name for value in measure.measure(results).values}
    assert {"utilization", "loss-rate", "queueing-delay", "retransmission-ratio"} <= names
    assert "goodput" not in names


def test_the_command_prints_table_window_and_json(results: Results, lfn: Lfn) -> None:
    lines = lfn("metrics", results.root, "--metric", "jain,cov").splitlines()
    assert lines[0].split() == ["law", "metric", "of", "value", "unit"]
    assert lines[-1] == (
        "from 0 s to 6 s, without a warm-up; means over 2 seeds ± 95 % (Student's t)"
    )
    said = json.loads(lfn("metrics", results.root, "--metric", "jain", "--json"))
    assert said["schema"] == 1
    assert [value["factors"]["law"] for value in said["metrics"]] == ["reno", "cubic"]
    assert said["metrics"][0]["n"] == 2
    assert set(said["metrics"][0]["values"]) == {"1", "2"}


def test_the_list_teaches_every_metric(lfn: Lfn) -> None:
    out = lfn("metrics", "--list")
    assert re.findall(r"^(\S+): ", out, re.MULTILINE) == list(METRICS)
    assert "(sum x)^2 / (n sum x^2)  [1]" in out
    assert cli.call(["metrics"]) == cli.USAGE


def test_transfers_of_a_model_have_completion_times(tmp_path: Path) -> None:
    path = dumbbell(rate="100Mbit/s", rtt="20ms", buffer="1bdp", duration="8s", warmup="2s")
    users = Traffic(name="users", short_flows=ShortFlows(load="20Mbit/s"))
    scenario = path.flow("cubic", rtt="20ms", receive_window="100 packets").with_traffic(users)
    results = execute([Case(scenario)], seeds=1, out=tmp_path)
    (run,) = results.runs
    table = run.table("transfers")
    small = table.filter(table["bytes"] < 100_000)
    found = values(results, "completion")
    assert {of for of, _ in found} == {"users"}
    medians = {
        detail: float(next(iter(value.values.values())))
        for (_, detail), value in found.items()
        if "p50" in detail
    }
    assert len(medians) >= 2
    in_decade = small.filter(small["bytes"] >= 10_000)["duration_s"]
    (median,) = (m for detail, m in medians.items() if "1e4 to 1e5" in detail)
    assert median == pytest.approx(in_decade.median(), rel=0.05)
    # A transfer takes a round trip at least, and the shortest of this model has 10 ms.
    assert min(medians.values()) > 0.01
    late = values(results, "completion", start_s=7.5)
    assert sum("max" in detail for _, detail in late) <= len(medians)


@pytest.mark.parametrize(("rate", "unit"), [("999Mbit/s", "Mbit/s"), ("1Gbit/s", "Gbit/s")])
def test_rates_have_the_unit_of_the_summary(rate: str, unit: str, tmp_path: Path, lfn: Lfn) -> None:
    path = dumbbell(rate=rate, rtt="20ms", buffer="1bdp", duration="1s")
    results = execute([Case(path.flow("cubic"))], out=tmp_path)
    assert cli.call(["table", str(tmp_path)]) == 0
    heading, row, *_, measured, _ = lfn("metrics", tmp_path, "--metric", "goodput").splitlines()
    assert f"goodput ({unit})" in heading
    assert measured.split()[-1] == unit
    assert measured.split()[-2] == row.split()[1]
    assert results.runs[0].summary["flows"][0]["rtt_s"] == 0.02


def test_times_of_results_are_the_nearest_numbers(tmp_path: Path) -> None:
    path = dumbbell(rate="10Mbit/s", rtt="50ms", buffer="1bdp", duration="4100ms", warmup="300ms")
    summary = execute([Case(path.flow("cubic", start="570ms"))], out=tmp_path).runs[0].summary
    (flow,) = summary["flows"]
    assert (flow["rtt_s"], flow["start_s"]) == (0.05, 0.57)
    assert (summary["sim_s"], summary["warmup_s"]) == (4.1, 0.3)
    times = Results.load(tmp_path).runs[0].table("queues")["t_s"].unique().sort()
    assert times.to_list() == [n / 100 for n in range(len(times))]
