"""Do the summary and `lfn metrics` agree, metric by metric, over random runs?"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lfnlab import Case, Scenario, execute
from lfnlab.analysis.measure import METRICS, View
from lfnlab.metrics import FirstPassage

if TYPE_CHECKING:
    from lfnlab.results.runs import Run

RUNS = 200
SAMPLE_S = 0.01
LAWS = ("reno", "cubic", "bbr", "htcp", "vegas", "scalable", "westwood", "bic", "illinois", "udt")
QUEUES = ("drop-tail", "drop-head", "red", "codel", "fq-codel", "pie")


def _link(draw: random.Random, folder: Path, *, steady: bool) -> dict[str, Any]:
    """A link: a rate, which may have a bucket, or a trace."""
    queue = {"kind": draw.choice(QUEUES), "size": f"{draw.choice((5, 30, 100, 400))} packets"}
    link: dict[str, Any] = {"queue": queue, "delay": f"{draw.randrange(0, 4)}ms"}
    link["reverse"] = {"rate": "100Mbit/s", "queue": {"kind": "drop-tail", "size": "500 packets"}}
    if steady and draw.random() < 0.3:
        at, times = 0, []
        while at < 2000:
            at += draw.choice((0, 0, 1, 2, 5, 30))
            times.append(at)
        file = folder / f"{draw.getrandbits(40)}.trace"
        file.write_text("\n".join(map(str, times)) + "\n")
        return link | {"trace": str(file)}
    link["rate"] = f"{draw.choice((500, 2000, 3333, 10_000, 20_000))}kbit/s"
    bucket = {"rate": "400kbit/s", "burst": draw.choice(("3kB", "60kB", "600kB"))}
    if draw.random() < 0.25:
        link[draw.choice(("shaper", "policer"))] = bucket
    if draw.random() < 0.3:
        link["loss"] = draw.choice((0.0001, 0.003, 0.02))
    return link


def _changes(draw: random.Random, link: str) -> list[dict[str, Any]]:
    ends = [{"at": f"{draw.randrange(100, 300)}ms", "rate": "700kbit/s"}]
    ends.append({"at": f"{draw.randrange(1000, 2000)}ms", "rate": "5Mbit/s"})
    if draw.random() < 0.5:
        ends.append({"at": f"{draw.randrange(2100, 2500)}ms", "down": True})
        ends.append({"at": f"{draw.randrange(2501, 2900)}ms", "down": False})
    return [{"link": link} | end for end in ends]


def _scenario(number: int, folder: Path) -> Scenario:
    """One of 200, by its number."""
    draw = random.Random(number)
    changes = draw.random() < 0.2
    link = _link(draw, folder, steady=not changes)
    names = ["forward"]
    path: dict[str, Any] = {"link": link}
    ends: dict[str, Any] = {}
    if (kind := draw.random()) < 0.2:
        path = {"parking-lot": link | {"hops": 2}}
        names = ["hop1", "hop2"]
    elif kind < 0.4:
        other = _link(draw, folder, steady=True)
        graph = [{"name": "x", "from": "a", "to": "b"} | link]
        path = {"links": [*graph, {"name": "y", "from": "b", "to": "c"} | other]}
        names, ends = ["x"], {"from": "a", "to": "c"}
    flows = []
    for _ in range(draw.randrange(1, 5)):
        flow: dict[str, Any] = {"law": draw.choice(LAWS), "rtt": f"{draw.choice((20, 45, 90))}ms"}
        if draw.random() < 0.3:
            flow["start"] = f"{draw.randrange(0, 150)}0ms"
        if draw.random() < 0.3:
            flow["size"] = f"{draw.randrange(1, 400)}kB"
        flows.append(flow | ends)
    document: dict[str, Any] = {
        "duration": f"{draw.randrange(40, 60)}00ms",
        "warmup": f"{draw.choice((0, 0, 500, 1230, 2000))}ms",
        "sample": f"{SAMPLE_S * 1e3:g}ms",
        "compat": draw.choice(("linux", "linux", "linux", "ns2")),
        "seed": number,
        "flow": flows,
        **path,
    }
    if document["compat"] == "ns2":
        for flow in flows:
            flow["law"] = flow["law"] if flow["law"] != "udt" else "reno"
    if draw.random() < 0.2:
        burst = {"start": "500ms", "stop": "3s", "rate": "600kbit/s"}
        document["udp"] = [{"bursts": [burst], "packet": "300B"} | ends]
    if draw.random() < 0.15 and not ends:
        document["background"] = {"level": 1, "long_flows": 0}
    if changes and "shaper" not in link:
        document["schedule"] = _changes(draw, names[0])
    return Scenario.from_document(document)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder: Path = tmp_path_factory.mktemp("agreement")
    cases = [Case(_scenario(number, folder)) for number in range(RUNS)]
    return list(execute(cases, out=folder / "out").runs)


def _rows(run: Run, name: str) -> dict[tuple[str, str], float]:
    """Values of a metric from the warm-up to the end, by what they are of."""
    view = View(run, run.summary["warmup_s"])
    found = {(row.of, row.detail): row.value for row in METRICS[name].rows(view)}
    return {
        of: value.value if isinstance(value, FirstPassage) else value for of, value in found.items()
    }


def _living(run: Run) -> list[Any]:
    """The flows that were under way for some time since the warm-up."""

    def end_s(flow: Any) -> float:
        seconds = flow["completion_s"]
        return float(run.summary["sim_s"] if seconds is None else flow["start_s"] + seconds)

    return [flow for flow in run.summary["flows"] if end_s(flow) > run.summary["warmup_s"]]


def _of_law(flows: list[Any], law: str) -> list[Any]:
    return [flow for flow in flows if law in (flow["law"], "all flows")]


def _goodput(run: Run) -> Iterator[tuple[float, float]]:
    for (law, detail), value in _rows(run, "goodput").items():
        if detail == "sum of flows":
            own = _of_law(run.summary["flows"], law)
            yield value, sum(flow["goodput_bps"] or 0.0 for flow in own)


def _jain(run: Run) -> Iterator[tuple[float, float]]:
    living = _living(run)
    values = [value for (of, _), value in _rows(run, "jain").items() if of == "all flows"]
    if values and len(living) == len(run.summary["flows"]) and run.summary["jain"] is not None:
        yield values[0], run.summary["jain"]


def _cov(run: Run) -> Iterator[tuple[float, float]]:
    for (law, detail), value in _rows(run, "cov").items():
        if detail == "mean flow, 1 s":
            own = [flow["cov"] for flow in _of_law(run.summary["flows"], law)]
            known = [cov for cov in own if cov is not None]
            yield value, sum(known) / len(known) if known else math.nan


def _utilization(run: Run) -> Iterator[tuple[float, float]]:
    links = {link["id"]: link for link in run.summary["links"]}
    for (link, _), value in _rows(run, "utilization").items():
        assert 0.0 <= value <= 1.0
        # Table queues has whole bytes.
        seconds = run.summary["sim_s"] - run.summary["warmup_s"]
        rates_bps = [rate["rate_bps"] for rate in links[link]["rates"] if rate["rate_bps"]]
        byte = 8.0 / (min(rates_bps) * seconds)
        expected = links[link]["utilization"]
        yield (expected if abs(value - expected) <= 1.01 * byte else value), expected


def _loss_rate(run: Run) -> Iterator[tuple[float, float]]:
    links = {link["id"]: link for link in run.summary["links"]}
    for (name, _), value in _rows(run, "loss-rate").items():
        assert math.isnan(value) or 0.0 <= value <= 1.0
        link = links[name]
        if "opportunities" not in link:
            # With a trace many packets move at the instant of the end, after its sample.
            yield value, link["drops"] / link["arrivals"] if link["arrivals"] else math.nan


def _retransmissions(run: Run) -> Iterator[tuple[float, float]]:
    if run.summary["warmup_s"] == 0:
        for (law, detail), value in _rows(run, "retransmission-ratio").items():
            own = _of_law(run.summary["flows"], law)
            if detail == "all its flows" and sum(flow["sent"] for flow in own):
                again = sum(flow["retransmits"] for flow in own)
                yield value, again / sum(flow["sent"] for flow in own)


def _completion(run: Run) -> Iterator[tuple[float, float]]:
    sized = [flow for flow in run.summary["flows"] if flow["completion_s"] is not None]
    began = [flow for flow in sized if flow["start_s"] >= run.summary["warmup_s"]]
    for law in {flow["law"] for flow in began}:
        rows = _rows(run, "completion")
        longest = [v for (of, what), v in rows.items() if of == law and what.startswith("max")]
        yield max(longest), max(flow["completion_s"] for flow in _of_law(began, law))


_BOTH: dict[str, Callable[[Run], Iterator[tuple[float, float]]]] = {
    "goodput": _goodput,
    "jain": _jain,
    "cov": _cov,
    "utilization": _utilization,
    "loss-rate": _loss_rate,
    "retransmission-ratio": _retransmissions,
    "completion": _completion,
}


@pytest.mark.parametrize("name", _BOTH)
def test_what_both_print_is_the_same(name: str, runs: list[Run]) -> None:
    compared = 0
    for number, run in enumerate(runs):
        for metric, summary in _BOTH[name](run):
            assert metric == pytest.approx(summary, rel=1e-6, abs=1e-9, nan_ok=True), number
            compared += not math.isnan(metric)
    assert compared > 25, "the runs leave this metric out"


def test_what_they_count_differently_keeps_to_its_bounds(runs: list[Run]) -> None:
    seen: Counter[str] = Counter()
    for run in runs:
        if run.summary["warmup_s"] == 0:
            # A metric of the window, in which a timeout after a timeout is an event of its own.
            for (law, _), value in _rows(run, "loss-events").items():
                own = _of_law(_living(run), law)
                most = sum(flow["loss_events"] + flow["timeouts"] for flow in own)
                assert value * len(own) <= most + 1e-9
                seen["events"] += value > 0
        # Over time, not over packets: at most what the fullest queue takes, and those in service.
        delays = _rows(run, "queueing-delay")
        for link in run.summary["links"]:
            if (link["id"], "max") in delays and len(link["rates"]) == 1:
                value = delays[link["id"], "max"]
                assert 0.0 <= delays[link["id"], "mean"] <= value
                if "opportunities" not in link:
                    packets = link["max_queue_packets"] + 2
                    assert value <= packets * 1514 * 8 / link["rate_bps"] * 1.001
                    seen["delays"] += value > 0
    assert min(seen["events"], seen["delays"]) > 100, seen


def test_every_metric_of_every_run_has_a_value_or_a_reason(runs: list[Run]) -> None:
    """No metric ends in an error where no window was asked for, and shares are shares."""
    for run in runs[::4]:
        for name in METRICS:
            for (of, detail), value in _rows(run, name).items():
                if METRICS[name].shown[0] == "%" and name not in ("smoothness",):
                    if run.summary["warmup_s"] and detail == "goodput":
                        # A hole of before that is filled brings more than the link does.
                        continue
                    assert math.isnan(value) or 0 <= value <= 1 + 1e-9, (name, of, detail)
