"""The compiled module: runs, threads, cancellation, tables, errors."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from lfnlab import _core

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))

TOML = """\
schema = 1
name = "two flows"
duration = "5s"
[link]
rate = "100Mbit/s"
loss = 1e-5
[[flow]]
law = "cubic"
count = 2
rtt = "40ms"
start = "uniform(0s, 1s)"
"""
ENDLESS = TOML.replace("5s", "100000s").replace("[link]", 'sample = "off"\n[link]')


def seeded(text: str, seed: int = 1, file: str = "test.toml") -> _core.Scenario:
    return _core.Scenario(f"seed = {seed}\n{text}", file)


def run(text: str, seed: int = 1) -> _core.Run:
    (done,) = _core.run_many([seeded(text, seed)], 1, None)
    assert done is not None
    return done


def hashes(seeds: range, threads: int) -> list[str]:
    runs = _core.run_many([seeded(TOML, seed) for seed in seeds], threads, None)
    return [json.loads(run.summary())["hash"] for run in runs if run is not None]


def test_results_do_not_depend_on_threads_or_company() -> None:
    alone = hashes(range(1, 7), 1)
    assert len(set(alone)) == 6
    assert hashes(range(1, 7), 3) == alone
    assert hashes(range(4, 5), 8) == alone[3:4]


def test_summary_is_one_run_object() -> None:
    done = run(TOML, 7)
    summary = json.loads(done.summary())
    assert (summary["name"], summary["seed"], summary["sim_s"]) == ("two flows", 7, 5.0)
    assert re.fullmatch("[0-9a-f]{16}", summary["hash"])
    assert 0 < done.cpu_s <= done.wall_s * 1.1
    assert [flow["law"] for flow in summary["flows"]] == ["cubic", "cubic"]
    assert 0.5 < summary["links"][0]["utilization"] <= 1


def test_tables_are_columns_of_equal_length() -> None:
    done = run(TOML)
    flows = done.table("flows")
    assert flows["t_s"].dtype == np.float64
    assert flows["flow"].dtype == np.uint32
    assert flows["delivered_bytes"].dtype == np.uint64
    for name in ("flows", "queues", "events", "probes", "transfers", "packets"):
        assert len({len(column) for column in done.table(name).values()}) == 1
    with pytest.raises(KeyError, match="tables: flows, queues, events, probes, transfers, packets"):
        done.table("nosuch")


def test_progress_rises_to_one_for_each_run() -> None:
    seen: dict[int, list[float]] = {0: [], 1: []}

    def progress(index: int, fraction: float) -> bool:
        seen[index].append(fraction)
        return True

    _core.run_many([seeded(TOML), seeded(TOML, 2)], 2, progress)
    for fractions in seen.values():
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1.0


def test_false_cancels_and_finished_runs_are_kept() -> None:
    items = [seeded(TOML), seeded(ENDLESS), seeded(ENDLESS, 2)]
    finished = threading.Event()

    def progress(index: int, fraction: float) -> bool:
        if (index, fraction) == (0, 1.0):
            finished.set()
        return not (finished.is_set() and index == 1)

    short, endless, never = _core.run_many(items, 1, progress)
    assert short is not None
    assert (endless, never) == (None, None)


def test_an_interrupt_ends_the_runs() -> None:
    def interrupted() -> None:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        _core.run_many([seeded(ENDLESS)], 1, None)

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_an_error_of_the_callback_comes_back() -> None:
    def progress(index: int, fraction: float) -> bool:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        _core.run_many([seeded(ENDLESS)], 1, progress)


def test_other_threads_run_meanwhile() -> None:
    ticks = 0

    def progress(index: int, fraction: float) -> bool:
        return ticks < 20

    def tick() -> None:
        nonlocal ticks
        while ticks < 20:
            time.sleep(0.01)
            ticks += 1

    ticker = threading.Thread(target=tick)
    ticker.start()
    assert _core.run_many([seeded(ENDLESS)], 1, progress) == [None]
    ticker.join()


def test_faults_name_file_line_and_key() -> None:
    with pytest.raises(_core.ScenarioError) as fault:
        _core.Scenario(TOML.replace("rate =", "rat ="), "x.toml")
    assert isinstance(fault.value, ValueError)
    assert str(fault.value).startswith('x.toml:5: link.rat: unknown key; did you mean "rate"?')
    with pytest.raises(_core.ScenarioError, match="cannot be read"):
        _core.read("no/such/file.toml")
    with pytest.raises(_core.LawError, match='did you mean "reno"'):
        _core.card("renoo")


def test_a_run_that_does_not_fit_is_refused_before_it_starts() -> None:
    huge = TOML.replace("count = 2", "count = 16000000")
    with pytest.raises(_core.ScenarioError, match=r"big.toml:7: flow: the run needs about .* GB"):
        _core.run_many([_core.Scenario(TOML), _core.Scenario(huge, "big.toml")], 1, None)
    small = _core.Scenario(TOML, "x")
    need = small.needs["memory_bytes"]
    # The estimate may be three times too high.
    small.check_memory(need // 3 + 1)
    with pytest.raises(_core.ScenarioError, match=r"^x:1: sample: .* of memory"):
        small.check_memory(need // 4)


def test_a_scenario_is_read_once_and_stays_what_it_was(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("1\n2\n")
    text = TOML.replace('rate = "100Mbit/s"', f'trace = "{trace}"')
    read = _core.Scenario(text, "x.toml")
    assert (read.text, read.file, read.seed, read.is_random) == (text, "x.toml", 1, True)
    resolved = read.resolved
    summaries = []
    for content in ("1\n2\n", "nonsense"):
        trace.write_text(content)
        (done,) = _core.run_many([read], 1, None)
        assert done is not None
        summaries.append(done.summary())
    assert summaries[0] == summaries[1]
    assert read.resolved == resolved
    assert not _core.Scenario(TOML.replace("loss = 1e-5\n", "").split("start")[0]).is_random


def test_without_prototypes_a_law_in_python_is_unknown(tmp_path: Path) -> None:
    hooks = "".join(f"    def {hook}(self, *_): ...\n" for hook in ("on_ack", "on_loss"))
    (tmp_path / "mine.py").write_text(f"import lfnlab\nclass Mine(lfnlab.Law):\n{hooks}")
    text = TOML.replace('"cubic"', '"mine.py:Mine"')
    file = str(tmp_path / "x.toml")
    assert "Mine" in _core.Scenario(text, file).resolved
    with pytest.raises(_core.ScenarioError, match=r"x.toml:8: flow\[0\].law: "):
        _core.Scenario(text, file, prototypes=False)


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_presets_are_valid_and_so_is_their_schema(file: Path) -> None:
    import tomllib

    schema = json.loads((ROOT / "docs/reference/scenario.schema.json").read_text())
    text = _core.read(str(file))
    jsonschema.validate(tomllib.loads(text), schema)
    jsonschema.validate(json.loads(_core.Scenario(text, str(file)).resolved), schema)
