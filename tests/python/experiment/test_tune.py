"""Does the search find the minimum, and say how sure that is?"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lfnlab
from lfnlab import Choice, Range, ScenarioError, dumbbell
from lfnlab.errors import UsageError
from lfnlab.experiment.objective import Objective
from lfnlab.experiment.tune import Halving, Search

if TYPE_CHECKING:
    from command import Lfn

pytest.importorskip("optuna", reason="needs optuna: install lfnlab[search]")

SUMMARY = {
    "warmup_s": 0.0,
    "flows": [
        {"law": "reno", "goodput_bps": 3e6, "cov": None, "retransmits": 2, "timeouts": 1}
        | {"loss_events": 1, "direction": "forward", "start_s": 0.0, "delivered_bytes": 3750000},
        {"law": "reno", "goodput_bps": 1e6, "cov": 0.5, "retransmits": 0, "timeouts": 0}
        | {"loss_events": 0, "direction": "forward", "start_s": 0.0, "delivered_bytes": 1250000},
    ],
    "links": [
        {
            "id": "forward",
            "utilization": 0.5,
            "mean_queue_s": 0.01,
            "drops": 2,
            "p99_queue_s": 0.02,
        },
        {"id": "reverse", "utilization": 0.1, "mean_queue_s": 0.0, "drops": 0, "p99_queue_s": 0.0},
    ],
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("goodput_bps", 4e6),
        ("-utilization + 2 * mean_queue_s", -0.48),
        ("flow[0].goodput_bps / flow[1].goodput_bps", 3.0),
        ("max(link[0].p99_queue_s, 0.001) ** 0.5", math.sqrt(0.02)),
        ("log(exp(jain))", 0.8),
        ("flow[0].cov", None),
        ("1 / flow[1].retransmits", None),
        ("log(0 * drops)", None),
        ("9**9**9", None),
        ("(0 - drops) ** 0.5", None),
    ],
)
def test_an_objective_is_arithmetic_over_a_run(text: str, value: float | None) -> None:
    assert Objective(text).of(SUMMARY) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    "text", ["", "goodput_bps +", "__import__('os')", "a.b", "flow[jain]", "x if 1 else 2", "'a'"]
)
def test_an_objective_is_nothing_else(text: str) -> None:
    with pytest.raises(ScenarioError, match=r"minimise: .*allowed: numbers, metrics"):
        Objective(text)


@pytest.mark.parametrize("text", ["goodput", "flow[2].cov", "link[0].rate", "flow[0].latency"])
def test_a_metric_that_is_none_is_named(text: str) -> None:
    with pytest.raises(UsageError, match=r"minimise: "):
        Objective(text).of(SUMMARY)


def test_the_search_finds_the_least_queue_that_fills_the_link(tmp_path: Path) -> None:
    base = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="4s").with_background(1)
    search = Search(
        base.flow("cubic"),
        Objective("abs(link[0].max_queue_packets - 40)"),
        {"link.queue.size": Range("5 packets", "400 packets", "log"), "compat": Choice(["linux"])},
        trials=24,
        seeds=2,
    )
    tuned = search.run(out=tmp_path)
    found = int(tuned.best.point["link.queue.size"].split()[0])
    assert 36 <= found <= 44
    assert tuned.confirmed.n == 4
    assert tuned.confirmed.mean == pytest.approx(abs(found - 40), abs=2)
    assert tuned.best in tuned.equals()
    # The same search again runs nothing and says the same.
    before = {path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*")}
    assert search.run(out=tmp_path) == tuned
    assert before == {path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*")}


def test_a_search_without_chance_runs_each_point_once(tmp_path: Path, lfn: Lfn) -> None:
    base = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s").flow("cubic")
    laws = Choice(["reno", "vegas", "bbr"])
    search = Search(base, Objective("retransmits"), {"flow[0].law": laws}, trials=6, seeds=3)
    tuned = search.run(out=tmp_path)
    runs = {trial.point["flow[0].law"]: trial.objective.n for trial in tuned.trials}
    assert {"reno": 1, "vegas": 1, "bbr": 3}.items() >= runs.items()
    assert tuned.best in tuned.equals()


def test_the_command_prints_point_interval_and_equals(tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "t.toml"
    file.write_text(
        dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s")
        .with_background(1)
        .flow("cubic")
        .to_toml()
        + '[tune]\nminimise = "retransmits"\ntrials = 3\nseeds = 2\n'
        '[tune.over]\n"flow[0].law" = ["reno", "vegas"]\n'
    )
    command = ["tune", str(file), "--out", str(tmp_path / "out")]
    assert "further seeds" in lfn(*command)
    said = json.loads(lfn(*command, "--json"))
    assert said["confirmed"]["n"] == 4
    assert set(said["best"]) == {"flow[0].law"}


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("", r"no table \[tune\]"),
        ("[tune]\ntrials = 3", "minimise, over: both are needed"),
        ("[tune]\nminimise = 'jain'\nover = { 'link.rate' = 3 }", r'tune.over."link.rate": 3'),
        ("[tune]\nminimise = 'jain +'\nover = { seed = [1, 2] }", "is not a formula"),
        ("[tune]\nminimise = 'jain'\ntrial = 3\nover = { seed = [1] }", "tune.trial: unknown key"),
        ("[tune]\nminimise = 'jain'\nseeds = 1\nover = { seed = [1] }", "tune.seeds: 1; allowed"),
        ("[tune]\nminimise = 'jain'\nover = { seed = [1] }", "tune.over.seed: the search's own"),
        (
            "[tune]\nminimise = 'jain'\nhalving = { rungs = 2 }\nover = { duration = ['1s'] }",
            "tune.over.duration: halving sets it",
        ),
        ("[tune]\nminimise = 'jayn'\nover = { 'link.rate' = ['1Mbit/s'] }", "jayn; allowed: "),
    ],
)
def test_a_fault_names_file_and_key(table: str, says: str, tmp_path: Path, lfn: Lfn) -> None:
    import re

    file = tmp_path / "t.toml"
    base = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s").flow("cubic")
    file.write_text(base.to_toml() + table)
    err = lfn.err("tune", file, "--out", tmp_path / "out")
    assert err.startswith(f"lfn: {file}:")
    assert re.search(says, err), err


BUSY = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="2s").with_background(1)
SIZES = {"link.queue.size": Range("4 packets", "200 packets", "log")}
FRONT = (Objective("mean_queue_s"), Objective("-utilization"))


@pytest.mark.parametrize("sampler", [None, "tpe", "random"])
def test_a_front_has_no_dominated_point(sampler: str | None, tmp_path: Path) -> None:
    """A larger buffer fills the link and the queue: neither end dominates the other."""
    search = Search(BUSY.flow("cubic"), FRONT, SIZES, trials=8, seeds=2, sampler=sampler)
    tuned = search.run(out=tmp_path)
    front = tuned.front
    assert len(front) == len(tuned.confirmed_front) > 1
    assert not any(a.dominates(b) for a in front for b in front)
    others = [trial for trial in tuned.trials if trial not in front]
    assert all(any(kept.dominates(trial) for kept in front) for trial in others)
    queues, used = zip(*(trial.objectives for trial in front), strict=True)
    order = sorted(range(len(front)), key=lambda at: queues[at].mean)
    assert order == sorted(order, key=lambda at: -used[at].mean)
    assert search.run(out=tmp_path) == tuned


def test_a_value_is_the_mean_over_scenarios(tmp_path: Path) -> None:
    objective, law = Objective("retransmits"), {"flow[0].law": Choice(["cubic"])}
    slow = replace(BUSY, link=replace(BUSY.link, rate="5Mbit/s"))  # type: ignore[type-var]
    first, second = (
        Search(base.flow("reno"), objective, law, trials=1, seeds=2).run(out=tmp_path).best.values
        for base in (BUSY, slow)
    )
    both = Search(
        BUSY.flow("reno"), objective, law, trials=1, seeds=2, others=[slow.flow("reno")]
    ).run(out=tmp_path)
    assert first is not None
    assert second is not None
    means = tuple((a + b) / 2 for a, b in zip(first, second, strict=True))
    assert both.best.values == pytest.approx(means)


def test_constraints_are_kept(tmp_path: Path) -> None:
    """Without it the largest buffer has the fullest link."""
    search = Search(
        BUSY.flow("cubic"),
        Objective("-utilization"),
        SIZES,
        trials=16,
        seeds=2,
        constraints=[Objective("link[0].p99_queue_s - 0.02")],
    )
    tuned = search.run(out=tmp_path)
    assert tuned.best.constraints[0] <= 0.0
    free = min(trial.objective.mean for trial in tuned.trials)
    assert free < tuned.best.objective.mean
    never = replace(search, constraints=[Objective("1")], trials=2)
    with pytest.raises(UsageError, match="constraints: no trial keeps them"):
        never.run(out=tmp_path)


def test_halving_ends_the_worse_ones_early(tmp_path: Path) -> None:
    search = Search(
        BUSY.flow("cubic"), Objective("mean_queue_s"), SIZES, trials=8, seeds=2, halving=Halving()
    )
    tuned = search.run(out=tmp_path)
    assert len(tuned.trials) == 2
    whole = Search(BUSY.flow("cubic"), Objective("mean_queue_s"), SIZES, trials=8, seeds=2)
    assert tuned.best.objective.mean <= whole.run(out=tmp_path).trials[3].objective.mean
    assert set(lfnlab.open(tmp_path).whole().collect()["sim_s"]) == {0.5, 1.0, 2.0}


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("flow[0].receiver_ecn", "classik", 'flow[0].receiver_ecn: found "classik"; did you mean'),
        ("flow[0].law", "vcp", "flow[0].ecn: ECN under a law of VCP; allowed: one of both"),
        ("link.router", "rcp", 'link.router: found the text "rcp"; write [link.router]'),
    ],
)
def test_a_point_that_cannot_be_names_its_key(
    key: str, value: str, says: str, tmp_path: Path
) -> None:
    base = BUSY.flow("cubic", ecn=True)
    search = Search(base, Objective("retransmits"), {key: Choice([value])}, trials=1)
    with pytest.raises(ScenarioError) as error:
        search.run(out=tmp_path)
    assert f"with {key} = {value}: {says}" in str(error.value)


def test_halving_that_cuts_a_late_flow_says_so() -> None:
    late = BUSY.flow("cubic").flow("reno", start="1.5s")
    with pytest.raises(ScenarioError, match=r"^halving: .* 0.5s, and flow\[1\].start: "):
        Search(late, Objective("mean_queue_s"), SIZES, halving=Halving())
    Search(late, Objective("mean_queue_s"), SIZES)


def test_copies_of_a_point_take_no_trial_while_there_are_others(tmp_path: Path) -> None:
    over = {"flow[0].law": Choice(("reno", "cubic", "htcp", "bic"))}
    search = Search(BUSY.flow("reno"), Objective("mean_queue_s"), over, trials=4, seeds=2, screen=8)
    assert len(search.run(out=tmp_path).trials) == 4


def test_the_fluid_screens(tmp_path: Path) -> None:
    """Of 32 buffers those with the least queue are run: their proposals are the same, so the best
    of few runs is the best of many."""
    objective = Objective("mean_queue_s")
    screened = Search(
        BUSY.flow("reno"), objective, SIZES, trials=8, seeds=2, sampler="random", screen=4
    ).run(out=tmp_path)
    plain = Search(BUSY.flow("reno"), objective, SIZES, trials=32, seeds=2, sampler="random")
    sizes = [
        int(trial.point["link.queue.size"].split()[0])
        for tuned in (screened, plain.run(out=tmp_path))
        for trial in tuned.trials
    ]
    assert sorted(sizes[: len(screened.trials)])[-1] <= sorted(sizes)[len(sizes) // 2]
    with pytest.raises(ScenarioError, match=r"screen: .*the fluid has utilization"):
        Search(BUSY.flow("reno"), Objective("jain"), SIZES, screen=2)
