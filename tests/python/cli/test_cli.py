"""Does the command line do what its help says, and end as its documentation says?"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from lfnlab import Queue, Results, dumbbell
from lfnlab.cli import app as cli

if TYPE_CHECKING:
    from command import Lfn

ROOT = Path(__file__).parents[3]
GOOD = """\
schema = 1
duration = "1s"
[link]
rate = "10Mbit/s"
[[flow]]
law = "cubic"
rtt = "10ms"
count = 2
start = "uniform(0s, 1us)"
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "good.toml"
    file.write_text(GOOD)
    return file


def test_json_of_run_is_the_documented_object(scenario: Path, tmp_path: Path, lfn: Lfn) -> None:
    arguments = ["run", str(scenario), "--seeds", "2", "--json", "--out", str(tmp_path / "out")]
    result = json.loads(lfn(*arguments))
    assert result["schema"] == 1
    assert [run["seed"] for run in result["runs"]] == [1, 2]
    run = result["runs"][0]
    page = (ROOT / "docs" / "results.md").read_text()
    schema = (ROOT / "docs" / "reference" / "summary.schema.json").read_text()
    for group in (run, run["flows"][0], run["links"][0], run["conservation"]):
        for key in group:
            assert f"`{key}`" in page or f'"{key}": {{' in schema, f"no page knows {key}"
    assert len(run["flows"]) == 2
    assert {"hash", "seed", "wall_s", "cpu_s", "data_packets_delivered", "jain", "cov"} <= set(run)
    assert re.fullmatch("[0-9a-f]{16}", run["hash"])
    assert result["aggregate"]["cubic"]["goodput_bps"]["n"] == 2
    assert (tmp_path / "out" / "report.html").is_file()


def test_compare_needs_no_file(tmp_path: Path, lfn: Lfn) -> None:
    arguments = ["compare", "--rate", "10Mbit/s", "--rtt", "10ms", "--law", "reno,cubic,htcp-be"]
    arguments += ["--flows", "2", "--duration", "2s", "--seeds", "2", "--background", "2", "--json"]
    arguments += ["--buffer", "1bdp", "--compat", "ns2", "--no-report", "--out", str(tmp_path)]
    result = json.loads(lfn(*arguments))
    assert list(result["aggregate"]) == ["reno", "cubic", "htcp-be"]
    assert len(result["runs"]) == 6
    assert result["runs"][0]["background"]["flows_started"] > 0
    assert not (tmp_path / "report.html").exists()


def test_the_table_names_units_and_report(scenario: Path, tmp_path: Path, lfn: Lfn) -> None:
    lines = lfn("run", scenario, "--out", tmp_path / "out").splitlines()
    assert lines[0].startswith("law")
    assert "goodput, sum (Mbit/s)" in lines[0]
    assert lines[-1] == f"report: {tmp_path / 'out' / 'report.html'}"
    page = (tmp_path / "out" / "report.html").read_text()
    (tmp_path / "out" / "report.html").unlink()
    assert cli.call(["report", str(tmp_path / "out")]) == cli.OK
    assert (tmp_path / "out" / "report.html").read_text() == page


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('rate = "10Mbit/s"', 'rate = "10"', ":4: link.rate: "),
        ("count = 2", "cuont = 2", ":8: flow[0].cuont: "),
        ("[link]", "[link", ":3: "),
        ('law = "cubic"', 'law = "cubik"', "cubic"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(
    scenario: Path, lfn: Lfn, old: str, new: str, said: str
) -> None:
    scenario.write_text(GOOD.replace(old, new))
    assert said in lfn.refuses("run", scenario)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run", "no-such-file.toml"], cli.USAGE),
        (["compare"], cli.USAGE),
        (["compare", "--law", "reno", "--seeds", "many"], cli.USAGE),
        (["compare", "--law", "reno", "--seeds", "0"], cli.USAGE),
        (["compare", "--law", "reno", "--jobs", "0"], cli.USAGE),
        (["compare", "--law", "reno", "--rate", "10"], cli.USAGE),
        (["compare", "--law", "renoo"], cli.USAGE),
        (["fly"], cli.USAGE),
        (["laws", "renoo"], cli.USAGE),
        (["report", "no-such-directory"], cli.STORE),
        (["paper", "no-such-paper"], cli.UNAVAILABLE),
    ],
)
def test_exit_codes(arguments: list[str], code: int, lfn: Lfn, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out")] if arguments[0] in ("run", "compare") else []
    assert cli.call([*arguments, *out]) == code
    captured = lfn.said()
    assert captured.err
    assert "Traceback" not in captured.err
    assert not (tmp_path / "out" / "runs").exists() or not list(
        (tmp_path / "out" / "runs").iterdir()
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--rate", "10"),
        ("--rtt", "-1ms"),
        ("--buffer", "10B"),
        ("--duration", "0s"),
        ("--warmup", "90s"),
        ("--sample", "1"),
        ("--loss", "1.5"),
        ("--packet", "1B"),
        ("--background", "7"),
        ("--law", "renoo"),
    ],
)
def test_a_wrong_option_is_named(option: str, value: str, tmp_path: Path, lfn: Lfn) -> None:
    said = {"--law": "reno"} | {option: value}
    arguments = [f"{name}={text}" for name, text in said.items()]
    err = lfn.refuses("compare", *arguments, "--out", tmp_path)
    assert err.startswith(f"lfn: {option}: ")


def test_help_teaches(lfn: Lfn) -> None:
    text = lfn("--help")
    for word in ("lfn demo", "lfn compare --rate", "Exit codes", "130"):
        assert word in text
    for command, example in {
        "compare": "lfn compare --law reno,cubic,htcp-be --rate",
        "run": 'law = "cubic"',
        "laws": "lfn laws cubic",
    }.items():
        assert example in lfn(command, "--help")


def test_papers_are_listed(lfn: Lfn) -> None:
    assert "htcp-be" in lfn("paper", "list")


def test_help_does_not_import_the_heavy_modules() -> None:
    code = (
        "import sys, lfnlab.cli.app; "
        "print([m for m in ('matplotlib', 'polars') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


# --set


SETTINGS = ["--set", "link.queue.kind=pie", "--set", "link.queue.burst=20ms"]
PATH = ["compare", "--law", "reno", "--rate", "10Mbit/s", "--rtt", "10ms", "--duration", "1s"]


def test_set_sets_any_key(tmp_path: Path) -> None:
    out = tmp_path / "compared"
    command = [*PATH, *SETTINGS, "--set", "flow[0].pacing=true", "--no-report", "--out", str(out)]
    assert cli.call(command) == cli.OK
    (run,) = Results.load(out).runs
    assert run.scenario.link is not None
    assert run.scenario.link.queue == Queue(kind="pie", size="1bdp", burst="20ms")
    assert run.scenario.flows[0].pacing is True
    file = tmp_path / "s.toml"
    file.write_text(dumbbell(rate="9Mbit/s", rtt="9ms", buffer="1bdp").flow("reno").to_toml())
    more = ["--set", "duration=1s", "--set", "flow[*].law=vegas", "--set", "link.loss=1e-9"]
    out = tmp_path / "run"
    assert cli.call(["run", str(file), *SETTINGS, *more, "--no-report", "--out", str(out)]) == 0
    (run,) = Results.load(out).runs
    assert (run.scenario.duration, run.scenario.flows[0].law) == ("1s", "vegas")
    file.write_text(file.read_text() + "[sweep.grid]\nseed = [1, 2]\n")
    out = tmp_path / "swept"
    assert cli.call(["sweep", str(file), *SETTINGS, *more, "--out", str(out)]) == cli.OK
    assert [run.scenario.duration for run in Results.load(out).runs] == ["1s", "1s"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("link.queue.burst=20ms", "--set link.queue.burst: unknown key"),
        ("link.rate=fast", '--set link.rate: "fast" does not begin with a decimal number'),
        ("link.rate=10", "--set link.rate: bare number 10"),
        ("link.x.y=1", "--set link.x.y: unknown key"),
        ("link.queue={kind='red', preset='classi'}", "--set link.queue.preset: .*classic"),
        ("flow[0].pacing=7", "--set flow.0..pacing: found the integer 7"),
        ("flow[7].pacing=true", "--set: flow.7..pacing; allowed of flows"),
        ("link.loss=nan", "--set link.loss: nan is out of range"),
        ("link.rate=1979-05-27", "--set link.rate: "),
        ("link rate=1", "--set link rate: not a key"),
        ("nothing", "write for example --set"),
        ("=3", "write for example --set"),
    ],
)
def test_a_fault_of_set_names_it(text: str, says: str, tmp_path: Path, lfn: Lfn) -> None:
    err = lfn.refuses(*PATH, "--set", text, "--out", tmp_path / "out")
    assert re.search(says, err), err
    assert not (tmp_path / "out").exists()


def test_the_demo_tells_laws_apart_and_says_why(tmp_path: Path, lfn: Lfn) -> None:
    """Each claim of its sentences, from its runs."""
    assert "CUBIC starts with HyStart" in lfn("demo", "--out", tmp_path / "own")
    results = Results.load(tmp_path / "own")
    goodput = {row["law"]: row["goodput_bps"] / 1e6 for row in results.rows()}
    ordered = sorted(goodput.values())
    assert all(b > 1.01 * a for a, b in itertools.pairwise(ordered)), "no two bars are equal"
    full = 1.1 * 1e9 * 0.1 / 8 / 1500
    windows, ends = {}, {}
    for run in results.runs:
        (law,) = run.laws
        first_loss_s = run.table("events")["t_s"].min()
        table = run.table("flows")
        before = table.filter(pl.col("t_s") <= first_loss_s)["cwnd_seg"].max()
        windows[law] = table["cwnd_seg"].to_list()
        ends[law] = before
        assert 0.4 < before / full < 0.6, law
    assert len(set(ends.values())) == 1, "HyStart and classic slow start end at the same loss"
    assert max(windows["reno"][-10:]) < 0.5 * full, "not back after a minute"
    assert min(windows["westwood"][200:]) < 0.1 * min(windows["reno"][200:]), "far smaller"
    for law in set(goodput) - {"reno", "westwood"}:
        assert max(windows[law]) > 0.95 * full, f"{law} fills path and buffer"
    assert cli.call(["demo", "--slow-start", "classic", "--out", str(tmp_path / "classic")]) == 0
    cubic = {row["law"]: row for row in Results.load(tmp_path / "classic").rows()}["cubic"]
    assert cubic["goodput_bps"] / 1e6 == pytest.approx(goodput["cubic"], rel=1e-3)


def test_a_scenario_comes_from_standard_input(tmp_path: Path) -> None:
    lfn = [sys.executable, "-m", "lfnlab.cli", "run", "-", "--json", "--no-report", "--out", "out"]
    given = GOOD.replace("10Mbit/s", "1e7 bit/s")
    for text, code, said in ((given, cli.OK, ""), ("x = 1", cli.USAGE, "lfn: -:1: ")):
        made = subprocess.run(lfn, input=text, capture_output=True, text=True, cwd=tmp_path)
        assert (made.returncode, made.stderr[: len(said)]) == (code, said)
    (tmp_path / "s.toml").write_text(GOOD)
    lfn[lfn.index("-")] = "s.toml"
    again = subprocess.run(lfn, capture_output=True, text=True, cwd=tmp_path)
    assert len(list((tmp_path / "out/runs").iterdir())) == 1, "one run, by either spelling"
    assert again.returncode == cli.OK
