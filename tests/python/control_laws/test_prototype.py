"""Laws in Python: what they may decide, how they fail, and that their results are never stale."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import lfnlab
from lfnlab import (
    Ack,
    Flow,
    Law,
    LawError,
    Loss,
    PrototypeError,
    Results,
    Scenario,
    ScenarioError,
    ShortFlows,
    Traffic,
    compare,
    dumbbell,
)
from lfnlab.cli import app as cli
from lfnlab.control_laws import prototype
from lfnlab.experiment.run import execute

if TYPE_CHECKING:
    from command import Lfn

SOURCE = """\
import lfnlab

GAIN = 1.0


class Mine(lfnlab.Law):
    probes = ("losses",)

    def __init__(self):
        self.losses = 0

    def on_ack(self, n, ack):
        self.cwnd += GAIN * n / self.cwnd

    def on_loss(self, loss):
        self.losses += 1
        self.ssthresh = max(self.cwnd / 2, 2)
"""


class Half(Law):
    """Reno with fractions, as laws/reno.h has it."""

    def on_ack(self, n: int, ack: Ack) -> None:
        self.cwnd += min(1 / self.cwnd, 1) * n

    def on_loss(self, loss: Loss) -> None:
        self.ssthresh = max(self.cwnd / 2, 2)


@pytest.fixture
def path() -> Scenario:
    return dumbbell(rate="20Mbit/s", rtt="20ms", buffer="0.5bdp", duration="5s")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(SOURCE)
    return file


def hashes(results: Results) -> list[str]:
    return [run.summary["hash"] for run in results.runs]


def test_a_class_does_what_the_header_does(path: Scenario, tmp_path: Path) -> None:
    """Windows differ in the header's fixed point alone, too little to change a decision here."""
    results = compare([Half, "reno"], path, out=tmp_path)
    half, reno = results.runs
    assert results.frame()["law"].to_list() == ["Half (prototype)", "reno"]
    assert half.summary["flows"][0]["loss_events"] >= 5
    assert half.summary["flows"][0]["sent"] == reno.summary["flows"][0]["sent"]
    mean = [run.summary["flows"][0]["mean_cwnd_segments"] for run in results.runs]
    assert mean[0] == pytest.approx(mean[1], rel=1e-3)


def test_wherever_a_law_may_stand(path: Scenario, mine: Path, tmp_path: Path) -> None:
    scenario = path.flow(f"{mine}:Mine").flow("reno", start="1s")
    scenario = scenario.with_traffic(
        Traffic(law=f"{mine}:Mine", short_flows=ShortFlows(load="2Mbit/s"))
    )
    (run,) = execute(scenario, out=tmp_path / "out").runs
    assert [flow["law"] for flow in run.summary["flows"]] == ["Mine (prototype)", "reno"]
    assert run.summary["traffic"][0]["flows_completed"] > 0
    file = tmp_path / "scenario.toml"
    file.write_text(
        'schema = 1\nduration = "5s"\nlink = { rate = "20Mbit/s", queue = { size = "0.5bdp" } }\n'
        '[[flow]]\nlaw = "./mine.py:Mine"\nrtt = "20ms"\n'
    )
    loaded = Scenario.load(file)
    assert loaded == Scenario.from_toml(loaded.to_toml())
    assert isinstance(loaded.flows[0].law, type)
    once, again = (
        execute(loaded, out=tmp_path / "a"),
        execute(path.flow(f"{mine}:Mine"), out=tmp_path / "b"),
    )
    assert hashes(once) == hashes(again), "the same seed, the same bytes"


def test_results_are_marked(path: Scenario, mine: Path, tmp_path: Path) -> None:
    from lfnlab.figures.report import write_report

    results = compare([f"{mine}:Mine", "reno"], path, out=tmp_path / "out")
    prototype_run, registry_run = results.runs
    (entry,) = prototype_run.summary["prototypes"]
    assert (entry["law"], entry["probes"]) == ("Mine (prototype)", ["losses"])
    assert "prototypes" not in registry_run.summary
    assert results.frame()["law"].to_list() == ["Mine (prototype)", "reno"]
    assert (prototype_run.path / "Mine.py").read_text() == SOURCE
    assert prototype_run.probes("Mine (prototype)") == ("losses",)
    losses = prototype_run.table("probes")["value"].to_list()
    assert losses[-1] == prototype_run.summary["flows"][0]["loss_events"]
    # Read where the class is not: another process, or a file that has gone.
    mine.unlink()
    prototype._classes.clear()
    read = Results.load(tmp_path / "out")
    assert read.runs[0].scenario.flows[0].law == entry["source"]
    assert "Mine (prototype)" in write_report(read).read_text()
    with pytest.raises(LawError, match="its class in Python is not here"):
        execute(read.runs[0].scenario, out=tmp_path / "out")


def test_a_stale_result_is_never_served(path: Scenario, mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = hashes(compare([f"{mine}:Mine"], path, out=out))
    mine.write_text(SOURCE.replace("GAIN = 1.0", "GAIN = 4.0"))
    assert hashes(compare([f"{mine}:Mine"], path, out=out)) != first
    mine.write_text(SOURCE)
    assert hashes(compare([f"{mine}:Mine"], path, out=out)) == first

    # What no hash of a source can see.
    gain = [1.0]

    class Reaching(Half):
        def on_ack(self, n: int, ack: Ack) -> None:
            self.cwnd += gain[0] * n / self.cwnd

    before = compare([Reaching], path, out=out)
    first = hashes(before)
    gain[0] = 4.0
    after = compare([Reaching], path, out=out)
    assert after.runs[0].path == before.runs[0].path
    assert hashes(after) != first
    rows = lfnlab.open(out).summary().collect()
    assert rows.filter(key=after.runs[0].path.name)["hash"].to_list() == hashes(after)


def test_two_laws_of_one_name_are_refused(path: Scenario, tmp_path: Path) -> None:
    def with_gain(gain: float, **attributes: str) -> type[Law]:
        def on_ack(self: Law, n: int, ack: Ack) -> None:
            self.cwnd += gain * n / self.cwnd

        return type("Gain", (Half,), {"on_ack": on_ack, **attributes})

    with pytest.raises(LawError, match=r'two laws are called Gain; .* name = "Gain-2"'):
        compare([with_gain(1.0), with_gain(2.0)], path, out=tmp_path)
    named = [with_gain(gain, name=f"gain-{gain}") for gain in (1.0, 2.0)]
    results = compare(named, path, out=tmp_path)
    assert [run.laws for run in results.runs] == [
        ("gain-1.0 (prototype)",),
        ("gain-2.0 (prototype)",),
    ]
    assert len(set(hashes(results))) == 2


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("float('nan')", "ValueError: cwnd: found NaN; allowed: a number of segments from 1 on"),
        ("-5", "ValueError: cwnd: found -5; allowed"),
        ("float('inf')", "ValueError: cwnd: found inf; allowed"),
        ("'ten'", "TypeError: cwnd: found 'ten' of type str; allowed"),
        ("None", "TypeError: cwnd: found None of type NoneType; allowed"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("ack.nosuch", "AttributeError: "),
    ],
)
def test_what_cannot_be_ends_the_run(
    value: str, said: str, path: Scenario, mine: Path, tmp_path: Path
) -> None:
    mine.write_text(SOURCE.replace("self.cwnd += GAIN * n / self.cwnd", f"self.cwnd = {value}"))
    with pytest.raises(PrototypeError) as failure:
        execute(path.flow(f"{mine}:Mine"), out=tmp_path / "out")
    text = str(failure.value)
    assert text.startswith("scenario, seed 1: Mine.on_ack at ")
    assert said in text
    cause = failure.value.__cause__
    assert cause is not None
    assert cause.__traceback__ is not None
    frame = cause.__traceback__.tb_frame
    assert (Path(frame.f_code.co_filename), frame.f_code.co_name) == (mine, "on_ack")


@pytest.mark.parametrize(
    ("callback", "body", "said"),
    [
        ("on_loss(self, loss)", "pass", "on_loss did not set ssthresh"),
        ("on_loss(self, loss)", "self.cwnd /= 2", "cwnd cannot be set in on_loss; "),
        ("on_loss(self, loss)", "self.ssthresh = 1", "ssthresh: found 1; allowed: .* from 2 on"),
        ("on_loss(self, loss)", "self.ssthresh = float('inf')", "ssthresh: found inf"),
        ("on_sample(self, ack)", "self.next_tick_s = self.now_s", "next_tick_s: found .* after"),
        ("on_sample(self, ack)", "self.pacing_bps = 0", "pacing_bps: found 0; .* or None"),
        ("on_sample(self, ack)", "self.now_s = 0", "attribute 'now_s' .* not writable"),
        ("on_open(self, ack)", "self.ssthresh = float('nan')", "on_open at .* found NaN"),
        ("__init__(self)", "self.cwnd = 0.5", "__init__ at 0 s: .*cwnd: found 0.5"),
        ("__init__(self)", "self.losses = -1.0", "probes at 0 s: .*losses: found -1"),
    ],
)
def test_the_rules_of_law_h(
    callback: str, body: str, said: str, path: Scenario, mine: Path, tmp_path: Path
) -> None:
    mine.write_text(f"{SOURCE}\n\nclass Other(Mine):\n    def {callback}:\n        {body}\n")
    with pytest.raises(PrototypeError, match=said):
        execute(path.flow(f"{mine}:Other"), out=tmp_path / "out")


def test_all_callbacks(path: Scenario, tmp_path: Path) -> None:
    calls: dict[str, list[Any]] = {}

    class Watch(Half):
        slow_start = "hystart++"

        def __init__(self) -> None:
            assert (self.cwnd, self.ssthresh, self.mss_bytes) == (10, float("inf"), 1448)
            assert (self.pacing_bps, self.next_tick_s) == (None, None)
            self.next_tick_s = 0.5

        def on_sample(self, ack: Ack) -> None:
            calls.setdefault("on_sample", []).append(ack)
            assert ack.srtt_s is not None
            assert ack.srtt_s >= 0.02

        def on_open(self, ack: Ack) -> None:
            calls.setdefault("on_open", []).append((self.cwnd, self.ssthresh))

        def on_loss(self, loss: Loss) -> None:
            calls.setdefault("on_loss", []).append((loss.kind, self.cwnd, loss.inflight))
            super().on_loss(loss)

        def on_tick(self) -> None:
            calls.setdefault("on_tick", []).append(self.now_s)
            assert self.next_tick_s is None
            self.next_tick_s = self.now_s + 0.5
            self.pacing_bps = 15e6

    scenario = path.flow(Watch)
    assert scenario.check().flows[0].slow_start == "hystart++"
    (run,) = execute(scenario, out=tmp_path).runs
    assert calls["on_tick"] == [0.5 * i for i in range(1, 11)]
    assert all(cwnd == ssthresh for cwnd, ssthresh in calls["on_open"])
    assert {kind for kind, _, _ in calls["on_loss"]} == {"fast"}
    assert (
        sum(ack.newly_delivered for ack in calls["on_sample"]) == calls["on_sample"][-1].delivered
    )
    late = run.table("flows").filter(pytest.importorskip("polars").col("t_s") > 1)
    rate = (late["delivered_bytes"][-1] - late["delivered_bytes"][0]) * 8 / (late["t_s"][-1] - 1)
    assert rate == pytest.approx(15e6, rel=0.02)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (("on_loss", "on_losss"), "Mine.on_losss is not a callback of a law; allowed: on_ack,"),
        (("    def on_loss", "    def loss"), "Mine has no on_loss; a law has on_ack and on_loss"),
        (
            ("(self, n, ack)", "(self, ack)"),
            r"Mine.on_ack\(self, ack\) cannot be called; write on_",
        ),
        (("__init__(self)", "__init__(self, gain)"), r"write __init__\(self\)"),
        (
            ("class Mine(lfnlab.Law)", "class Mine"),
            "no law 'Mine'; it has no subclass of lfnlab.Law",
        ),
        (("class Mine", "class Your"), "no law 'Mine'; it has Your"),
        (("GAIN = 1.0", "GAIN = 1.0 +"), r"cannot be loaded: SyntaxError: .* \(line 3\)"),
        (("GAIN = 1.0", "GAIN = GAINS"), r"cannot be loaded: NameError: .* \(line 3\)"),
        (("    probes =", '    name = "reno"\n    probes ='), "reno is a law of the registry"),
        (("    probes =", '    name = "a b"\n    probes ='), "Mine.name: 'a b'; allowed: a letter"),
        (
            ("    probes =", '    slow_start = "fast"\n    probes ='),
            "no slow start .fast.; slow starts: classic",
        ),
    ],
)
def test_what_is_no_law(
    edit: tuple[str, str], said: str, path: Scenario, mine: Path, tmp_path: Path
) -> None:
    mine.write_text(SOURCE.replace(*edit))
    with pytest.raises((LawError, ScenarioError), match=said):
        path.flow(f"{mine}:Mine").check()
    file = tmp_path / "scenario.toml"
    file.write_text(
        'schema = 1\nduration = "1s"\nlink.rate = "1Mbit/s"\nflow = [\n'
        '  { law = "mine.py:Mine", rtt = "1ms" }]\n'
    )
    with pytest.raises(ScenarioError, match=rf"scenario.toml:5: flow\[0\].law: .*{said}"):
        Scenario.load(file)


def test_no_such_file(path: Scenario) -> None:
    with pytest.raises(
        LawError, match=r"nosuch.py: No such file or directory; write FILE.py:CLASS"
    ):
        path.flow("nosuch.py:Mine")
    with pytest.raises(LawError, match=r"is not a law; write a name or a subclass of lfnlab.Law"):
        path.flow(int).check()  # type: ignore[arg-type]


def test_a_file_without_a_class(path: Scenario, mine: Path) -> None:
    """It is for a file with one law."""
    assert path.flow(str(mine)).flows[0].law is path.flow(f"{mine}:Mine").flows[0].law
    mine.write_text(f"{mine.read_text()}\n\nclass Other(Mine):\n    pass\n")
    for text in (str(mine), f"{mine}:"):
        with pytest.raises(LawError, match=r"mine.py: no law ''; it has Mine, Other"):
            path.flow(text)


@pytest.mark.parametrize("attribute", ["cwmd", "sstresh", "ssthreshold", "pacing_rate_bps"])
def test_a_misspelt_decision_is_no_attribute_of_its_own(
    attribute: str, path: Scenario, mine: Path
) -> None:
    mine.write_text(SOURCE.replace("self.losses += 1", f"self.{attribute} = 2"))
    with pytest.raises(LawError, match=rf"Mine.on_loss sets {attribute}; did you mean"):
        path.flow(f"{mine}:Mine").check()
    mine.write_text(
        mine.read_text().replace("self.losses = 0", f"self.losses = self.{attribute} = 0")
    )
    path.flow(f"{mine}:Mine").check()


def test_what_an_argument_tells(path: Scenario, tmp_path: Path) -> None:
    class Asks(Half):
        def on_ack(self, n: int, ack: Ack) -> None:
            assert f"min_rtt_s={ack.min_rtt_s}, newly_delivered={ack.newly_delivered}, " in repr(
                ack
            )
            ack.rtt  # type: ignore[attr-defined]  # noqa: B018

    with pytest.raises(PrototypeError, match=r"no attribute 'rtt'; did you mean rtt_s\?"):
        execute(path.flow(Asks), out=tmp_path)


def test_a_class_as_a_factor(path: Scenario, tmp_path: Path) -> None:
    grid = {"flow[0].law": [Half, "reno"]}
    results = lfnlab.sweep(path.flow("reno"), grid=grid, out=tmp_path)
    assert results.frame()["law"].to_list() == ["Half (prototype)", "reno"]


def test_other_runs_of_a_sweep_are_kept(path: Scenario, mine: Path, tmp_path: Path) -> None:
    mine.write_text(SOURCE.replace("self.losses += 1", "assert self.now_s < 1, 'too late'"))
    arguments = ["compare", "--law", f"reno,{mine}:Mine", "--rate", "20Mbit/s", "--rtt", "20ms"]
    arguments += ["--duration", "5s", "--jobs", "1", "--out", str(tmp_path / "out")]
    assert cli.call(arguments) == cli.RAISED
    (stored,) = (tmp_path / "out" / "runs").iterdir()
    assert json.loads((stored / "summary.json").read_text())["flows"][0]["law"] == "reno"


def test_the_command_line(mine: Path, tmp_path: Path, lfn: Lfn) -> None:
    arguments = ["compare", "--rate", "20Mbit/s", "--rtt", "20ms", "--duration", "2s", "--law"]
    out = ["--no-report", "--out", str(tmp_path / "out")]
    said = lfn(*arguments, f"{mine}:Mine,reno", *out)
    assert "Mine (prototype)" in said.splitlines()[1]
    assert lfn.err(*arguments, f"{mine}:Nine", *out).endswith(
        "mine.py: no law 'Nine'; it has Mine\n"
    )
    mine.write_text(SOURCE.replace("GAIN * n", "1 / 0"))
    *trace, last = lfn.err(*arguments, f"{mine}:Mine", *out, code=cli.RAISED).splitlines()
    assert trace[0] == "Traceback (most recent call last):"
    assert any(line.strip().startswith("self.cwnd += 1 / 0") for line in trace)
    assert last.startswith("lfn: scenario, seed 1: Mine.on_ack at ")
    assert last.endswith(": ZeroDivisionError: division by zero")


def test_runs_in_parallel_do_not_wait_for_each_other(path: Scenario, tmp_path: Path) -> None:
    laws = [type(f"Half{i}", (Half,), {}) for i in range(4)]
    alone = hashes(compare(laws, path, seeds=2, out=tmp_path / "a", jobs=1))
    assert hashes(compare([*laws, "reno"], path, seeds=2, out=tmp_path / "b", jobs=5))[:8] == alone
    assert len(set(alone)) == 1, "nothing here draws a random number"


def test_an_interrupt_ends_a_loop_without_end(path: Scenario, tmp_path: Path) -> None:
    class Spin(Half):
        def on_ack(self, n: int, ack: Ack) -> None:
            while True:
                pass

    def interrupted() -> None:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        execute(path.flow(Spin), out=tmp_path)

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_a_flow_is_a_value() -> None:
    assert Flow(law=Half, rtt="1ms") == Flow(law=Half, rtt="1ms") != Flow(law="reno", rtt="1ms")
