"""Is everything that a user can get wrong one clear line, and is nothing computed lost by it?"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from command import LFN

from lfnlab import (
    Case,
    Design,
    LabError,
    Link,
    ParkingLot,
    Results,
    Scenario,
    ScenarioError,
    StoreError,
    compare,
    dumbbell,
    execute,
)
from lfnlab.cli import app as cli
from lfnlab.control_laws.registry import law
from lfnlab.errors import LawError

if TYPE_CHECKING:
    from command import Lfn

# The loss never comes; it makes seeds differ.
SHORT = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s", loss=1e-9)
MANY = ["--rate", "50Mbit/s", "--rtt", "10ms", "--duration", "2s", "--loss", "1e-9"]
MANY += ["--law", "reno,cubic", "--json"]


def stored(root: Path) -> dict[Path, int]:
    """The finished runs, and when each was written."""
    runs = (root / "runs").glob("[!.]*")
    return {run: (run / "summary.json").stat().st_mtime_ns for run in runs}


def wait_for(runs: int, root: Path) -> None:
    deadline = time.monotonic() + 60
    while not (root / "runs").is_dir() or len(stored(root)) < runs:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ":1: schema: missing"),
        (b"#" * (2 << 20), "longer than 1 MiB"),
        (b"\x7fELF\xff\xfe", "not UTF-8"),
        (b'schema = 1\nname = "\\e"\n', ":1: duration: missing"),
        (SHORT.flow("reno", count=1).to_toml().replace('"1s"', '"0s"').encode(), "duration: "),
    ],
)
def test_a_file_that_is_no_scenario(content: bytes, said: str, tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "s.toml"
    file.write_bytes(content)
    err = lfn.refuses("run", file, "--out", tmp_path / "out")
    assert err.startswith(f"lfn: {file}")
    assert said in err
    assert not (tmp_path / "out").exists()


LINKS = """\
links = [
 {name = "ab", from = "a", to = "b", rate = "1Gbit/s", delay = "10ms"},
 {name = "bc", from = "b", to = "c", rate = "1Gbit/s", delay = "10ms"},
 {name = "cd", from = "c", to = "d", rate = "1Gbit/s", delay = "10ms", duplex = false},
]
flow = [{law = "cubic", %s}]"""
LINK = 'link.rate = "10Gbit/s"\nflow = [{law = "cubic", rtt = "100ms"}]\n'
DOWN = '[[schedule]]\nat = "%ds"\nlink = "forward"\ndown = true\n'
BURSTS = '[[udp]]\nbursts = [{stop="3s", rate="1Mbit/s"}, {start="2s", rate="1Mbit/s"}]'


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (LINKS % 'route = ["ab", "bd"]', "flow[0].route[1]"),
        (LINKS % 'route = ["ab", "bc", "bc.reverse"]', "flow[0].route"),
        (LINKS % 'from = "d", to = "a"', "flow[0].to"),
        (LINK + DOWN % 9 + DOWN % 8, "schedule[1].at"),
        (LINK.replace('rate = "10Gbit/s"', 'trace = "empty.mahi"'), "link.trace"),
        (LINK + BURSTS, "udp[0].bursts[1].start"),
    ],
)
def test_a_fault_names_file_line_and_entry(body: str, key: str, tmp_path: Path, lfn: Lfn) -> None:
    """All faults and their messages are in the tests of the crate."""
    file = tmp_path / "fault.toml"
    file.write_text(f'schema = 1\nduration = "60s"\n{body}')
    (tmp_path / "empty.mahi").touch()
    err = lfn.refuses("run", file, "--out", tmp_path / "out")
    assert re.match(rf"lfn: {re.escape(str(file))}:\d+: {re.escape(key)}: ", err), err


def test_one_parser_reads_all() -> None:
    good = SHORT.flow("reno")
    assert Scenario.from_toml("\ufeff" + good.to_toml()) == good, "a byte order mark"
    newer = good.to_toml().replace("schema = 1", 'schema = 1\nname = "\\e[1m"')
    assert Scenario.from_toml(newer).name == "\x1b[1m", "TOML 1.1"


def test_an_error_says_its_parts() -> None:
    text = SHORT.flow("reno").to_toml().replace('rate = "10Mbit/s"', "rate = 10")
    with pytest.raises(ScenarioError) as fault:
        Scenario.from_toml(text, "here")
    error = fault.value
    assert (error.file, error.key, error.found) == ("here", "link.rate", "bare number 10")
    assert error.hint == 'a rate is a text, for example "10Gbit/s"'
    assert error.line == 1 + text[: text.index("rate = 10")].count("\n")
    assert str(error) == f"here:{error.line}: link.rate: {error.found}; {error.hint}"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare"], "--law"),
        (["compare", "--law", "reno", "--rite", "1Gbit/s"], "--rite"),
        (["compare", "--law", "reno,"], "--law: an empty name"),
        (["compare", "--law", "cubic,cubic:rfc"], "law cubic is named twice"),
        (["compare", "--law", "reno", "--flows", "0"], "--flows"),
        (
            ["compare", "--law", "reno", "--flows", "9000000", "--duration", "1h"],
            "--sample: the run",
        ),
        (["compare", "--law", "reno", "--rate", "10Tbit/s", "--rtt", "1s"], "--rate: the run"),
        (["compare", "--law", os.fsdecode(b"\xff")], r"b'\xff' is not UTF-8"),
        (["laws", "cubic:lunix"], "did you mean"),
        (["run", "."], "cannot be read"),
        (["run", os.fsdecode(b"\xff.toml")], r"b'\xff' is not UTF-8"),
        (["run", "a", "b"], "b"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], said: str, tmp_path: Path, lfn: Lfn) -> None:
    out = [] if arguments[0] == "laws" else ["--out", str(tmp_path)]
    err = lfn.refuses(*arguments, *out)
    assert err.startswith("lfn: ")
    assert said in err


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: compare("reno", SHORT), "list of names"),
        (lambda: compare([], SHORT), "no case"),
        (lambda: compare(["reno", "reno"], SHORT), "reno is named twice"),
        (lambda: compare(["reno"], SHORT, seeds=0), "seeds: 0"),
        (lambda: compare(["reno"], SHORT, seeds=[1, 1]), "each once"),
        (lambda: compare(["reno"], SHORT, jobs=0), "jobs: 0"),
        (lambda: compare(["reno"], SHORT, count=2.5), r"flow\[0\]\.count"),  # type: ignore[arg-type]
        (lambda: Scenario(duration="1s", link=Link(rate=["1Gbit/s"])).check(), "rate: found"),  # type: ignore[arg-type]
        (lambda: dumbbell(rate=1e9, rtt="1ms", buffer="1bdp").flow("reno").check(), "bare number"),  # type: ignore[arg-type]
        (lambda: law("cubic:nosuch"), "variant"),
    ],
)
def test_python_says_what_is_wrong(call: Callable[[], Any], said: str) -> None:
    with pytest.raises((ScenarioError, LawError), match=said):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Link(rat="1Mbit/s"), "Link: .*'rat'; did you mean .rate.. allowed: rate, trace,"),
        (lambda: Link("1Mbit/s"), "Link: too many positional arguments; allowed: rate, trace,"),
        (lambda: ParkingLot(rate="1Mbit/s"), "ParkingLot: missing .*'hops'; allowed: hops, rate,"),
        (lambda: SHORT.flow("reno", cout=2), "Flow: .*; did you mean .count.. allowed: name, law,"),
        (lambda: Scenario(duration="1s", nothing=1), "'nothing'; allowed: duration, link,"),
        (lambda: replace(SHORT, sed=1), "'sed'; did you mean .seed."),
        (lambda: Case(), "Case: missing .*'scenario'; allowed: scenario, factors"),
        (lambda: Design(gird={}), "Design: .*'gird'; did you mean .grid.. allowed: grid, zip,"),
    ],
)
def test_a_wrong_keyword_is_answered_with_the_allowed_ones(
    call: Callable[[], Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        call()


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    scenario = SHORT.flow("reno", count=np.int64(2)).with_seed(np.int32(7))  # type: ignore[arg-type]
    results = execute([Case(scenario, {"x": np.int64(3)})], seeds=np.int64(1), out=tmp_path)  # type: ignore[dict-item, arg-type]
    again = Results.load(tmp_path)
    assert again.rows() == results.rows()
    assert (again.runs[0].seed, again.runs[0].factors) == (7, {"x": 3})


@pytest.mark.parametrize("text", ["[]", "{", '{"title": "", "runs": [{}]}', '{"runs": 3}'])
def test_a_damaged_list_of_runs(text: str, tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text(text)
    with pytest.raises(StoreError, match=r"experiment\.json"):
        Results.load(tmp_path)


def test_a_damaged_run(tmp_path: Path) -> None:
    (run,) = compare(["reno"], SHORT, out=tmp_path).runs
    (run.path / "flows.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(StoreError, match=r"flows\.parquet: has 21 bytes; [\d,]+ were stored"):
        run.table("flows")
    (run.path / "summary.json").unlink()
    with pytest.raises(StoreError, match=r"summary\.json"):
        Results.load(tmp_path).rows()


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_experiment_goes_on(name: signal.Signals, tmp_path: Path) -> None:
    command = [*LFN, "compare", *MANY, "--no-report", "--out", str(tmp_path), "--seeds"]
    process = subprocess.Popen([*command, "3000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(4, tmp_path)
    process.send_signal(name)
    out, err = process.communicate(timeout=60)
    assert out == b""
    if name == signal.SIGTERM:
        assert process.returncode == cli.INTERRUPTED
        assert err.startswith(b"lfn: interrupted")
    before = stored(tmp_path)
    done = subprocess.run([*command, "2"], capture_output=True, timeout=120, check=True)
    assert done.stderr == b""
    assert len(json.loads(done.stdout)["runs"]) == 4
    assert before.items() <= stored(tmp_path).items()


def test_two_processes_share_a_directory(tmp_path: Path) -> None:
    command = [*LFN, "compare", *MANY, "--seeds", "3", "--out", str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in "ab"]
    results = []
    for process in both:
        out, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (cli.OK, b"")
        results.append(json.loads(out))
    assert results[0] == results[1], "the run that is stored first is the run of both"
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == sorted(
        run.name for run in stored(tmp_path)
    )


def test_a_directory_deleted_midway(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [*LFN, "compare", *MANY, "--no-report", "--seeds", "3000", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(2, out)
    out.rename(tmp_path / "away")
    printed, err = process.communicate(timeout=60)
    assert (process.returncode, printed) == (cli.STORE, b"")
    assert err.startswith(b"lfn: cannot write results")
    assert err.count(b"\n") == 1


def test_a_full_file_system(tmp_path: Path) -> None:
    """In a mount namespace of its own: a file system of 400 kB."""
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        pytest.skip("needs unshare, as root")
    script = (
        'mount -t tmpfs -o size=400k tmpfs "$0" || exit 99; "$@"; code=$?; ls "$0/runs"; exit $code'
    )
    command = [unshare, "-m", "sh", "-c", script, str(tmp_path)]
    command += [*LFN, "compare", *MANY, "--duration=20s", "--seeds", "50", "--out", str(tmp_path)]
    command.remove("--duration")
    command.remove("2s")
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if result.returncode == 99:
        pytest.skip("may not mount")
    assert result.returncode == cli.STORE
    assert "No space left on device" in result.stderr
    assert result.stderr.count("\n") == 1
    assert 1 <= len(result.stdout.split()) < 50, "runs that were stored"


def test_a_full_file_system_of_a_sweep_without_tables(tmp_path: Path) -> None:
    """The runs before stay; with more room the same command does the others."""
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        pytest.skip("needs unshare, as root")
    file = tmp_path / "s.toml"
    table = '[sweep]\nseeds = 1500\n[sweep.grid]\n"flow[0].law" = ["reno", "cubic"]\n'
    file.write_text(f"{SHORT.flow('reno', start='uniform(0s, 1us)').to_toml()}\n{table}")
    home = tmp_path / "home"
    home.mkdir()
    script = (
        'mount -t tmpfs -o size=560k tmpfs "$0" || exit 99; "$@"; echo "code $?"; '
        'lfn="$1 $2 $3"; $lfn table "$0/out" --csv | wc -l; $lfn store verify "$0/out"; '
        'mount -o remount,size=60m "$0"; "$@"; echo "code $?"; $lfn store verify "$0/out"'
    )
    command = [unshare, "-m", "sh", "-c", script, str(home), *LFN, "sweep", str(file)]
    command += ["--no-report", "--out", str(home / "out")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    if result.returncode == 99:
        pytest.skip("may not mount")
    assert result.stderr.count("No space left on device") == 1, result.stderr
    said = result.stdout.splitlines()
    # One law's runs may be all that found room.
    assert said[0] == f"code {cli.STORE}"
    assert int(said[1]) in (2, 3)
    first, last = (int(line.split()[0].replace(",", "")) for line in said if "0 damaged" in line)
    assert 0 < first < last == 3000
    assert f"code {cli.OK}" in said


def test_standard_output_that_takes_nothing(tmp_path: Path) -> None:
    command = [*LFN, "laws"]
    with open("/dev/full", "w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == cli.STORE
    assert result.stderr == b"lfn: stdout: No space left on device\n"
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], check=False)
    assert closed.returncode == cli.OK


def test_a_locale_without_the_signs_of_a_table(tmp_path: Path) -> None:
    command = [
        *LFN,
        "compare",
        *MANY[:-1],
        "--seeds",
        "2",
        "--no-report",
        "--out",
        str(tmp_path / "ü"),
    ]
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    result = subprocess.run(command, capture_output=True, env=ascii_only, timeout=60, check=True)
    assert rb"\xb1" in result.stdout
    assert result.stderr == b""


def test_json_is_all_that_is_printed(tmp_path: Path) -> None:
    command = [*LFN, "compare", *MANY, "--background=1", "--out", str(tmp_path)]
    first = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert first.stderr == b""
    result = json.loads(first.stdout)
    keys = {"schema", "runs", "aggregate", "averaged", "warnings"}
    assert set(result) == keys
    command.append("--no-report")
    again = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert json.loads(again.stdout) == result, "wall_s too: it was not run again"
    other = subprocess.run([*command, "--seed", "2"], capture_output=True, timeout=60, check=True)
    hashes = [{run["hash"] for run in r["runs"]} for r in (result, json.loads(other.stdout))]
    assert hashes[0].isdisjoint(hashes[1])


@pytest.mark.parametrize("writer", [False, True], ids=["no writer", "a silent writer"])
def test_a_fifo_without_a_word_ends_at_an_interrupt(writer: bool, tmp_path: Path) -> None:
    fifo = tmp_path / "s.toml"
    os.mkfifo(fifo)
    other = os.open(fifo, os.O_RDWR) if writer else None
    command = [*LFN, "run", str(fifo), "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        while "_core" not in Path(f"/proc/{process.pid}/maps").read_text():
            time.sleep(0.05)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        if other is not None:
            os.close(other)
    assert process.returncode == 130
    assert err.startswith("lfn: interrupted")


def test_a_scenario_may_come_from_a_pipe_and_a_trace_may_not(tmp_path: Path) -> None:
    text = SHORT.flow("reno").to_toml()
    read, write = os.pipe()
    os.write(write, text.encode())
    os.close(write)
    assert Scenario.load(f"/dev/fd/{read}") == SHORT.flow("reno")
    os.close(read)
    os.mkfifo(tmp_path / "trace")
    (tmp_path / "s.toml").write_text(
        'schema = 1\nduration = "1s"\n[link]\ntrace = "trace"\n'
        '[[flow]]\nlaw = "reno"\nrtt = "10ms"\n'
    )
    with pytest.raises(ScenarioError, match="not a regular file"):
        Scenario.load(tmp_path / "s.toml")


def test_errors_have_one_root() -> None:
    for error in (ScenarioError, StoreError, LawError):
        assert issubclass(error, LabError)
