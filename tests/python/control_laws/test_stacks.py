"""Controllers of stacks as laws: the registry, its errors, and a run of one that is built."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lfnlab import LabError, Scenario, compare, dumbbell, execute
from lfnlab.cli import app as cli
from lfnlab.control_laws import foreign, stacks
from lfnlab.errors import LawError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from command import Lfn

ROOT = Path(__file__).resolve().parents[3]
SHORT = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s")


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A registry with a stack ``fake`` of two controllers, of which one is built."""
    registry = tmp_path / "REGISTRY"
    registry.write_text("# a comment\nfake | cc | faked | 1.2 | nowhere | reno other\n")
    monkeypatch.setattr(stacks, "REGISTRY", registry)
    monkeypatch.setattr(stacks, "BUILT", tmp_path / "built")
    stacks.stacks.cache_clear()
    monkeypatch.setattr(foreign, "_known", {})
    text = (foreign.SKELETONS / "c/mine.c").read_text().replace('"mine"', '"fake:reno"')
    (tmp_path / "fake.c").write_text(text)
    shared = tmp_path / "built/fake/reno.so"
    shared.parent.mkdir(parents=True)
    command = ["cc", "-O2", "-shared", "-fPIC", f"-I{foreign.SKELETONS}", "-o", shared]
    subprocess.run([*command, tmp_path / "fake.c"], check=True)
    yield shared
    stacks.stacks.cache_clear()


def test_a_controller_of_a_stack_is_a_law(built: Path, tmp_path: Path, lfn: Lfn) -> None:
    run = compare(["fake:reno"], SHORT, out=tmp_path / "out").runs[0]
    spelled = f"fake:reno@{foreign.digest_of(built)}"
    assert spelled in (run.path / "scenario.toml").read_text()
    again = Scenario.from_toml((run.path / "scenario.toml").read_text())
    assert compare([again.laws[0]], SHORT, out=tmp_path / "out").runs[0].path == run.path
    assert "fake:reno" in lfn("table", tmp_path / "out")
    # A process that never loaded it reads the results, too.
    command = [sys.executable, "-m", "lfnlab.cli", "table", str(tmp_path / "out")]
    other = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "fake:reno" in other.stdout


def test_a_stored_scenario_of_a_stack_runs_again_with_the_same_build(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = compare(["fake:reno"], SHORT, out=tmp_path / "out").runs[0]
    monkeypatch.setattr(foreign, "_libraries", {})  # as in a process that never loaded it
    stored = Scenario.load(run.path / "scenario.toml")
    assert execute(stored, out=tmp_path / "again").runs[0].path.name == run.path.name
    built.write_bytes(built.read_bytes() + b"\0")
    monkeypatch.setattr(foreign, "_libraries", {})
    with pytest.raises(LawError, match=r"fake:reno@\w+ is of another build; allowed: fake:reno@"):
        execute(stored, out=tmp_path / "other")
    built.unlink()
    with pytest.raises(LawError, match="fake:reno is not built; make stacks STACK=fake"):
        execute(stored, out=tmp_path / "other")


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        ("fake:other", "fake:other is not built; make stacks STACK=fake"),
        ("fake:cubic", "fake:cubic is no controller of faked; write fake:reno, fake:other"),
        ("faked:reno", 'no law "faked"'),
    ],
)
@pytest.mark.usefixtures("built")
def test_a_controller_that_is_not_there_is_named(law: str, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=re.escape(wrong)):
        compare([law], SHORT, out=tmp_path / "out")


@pytest.mark.usefixtures("built")
def test_a_scenario_names_line_and_key(tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "one.toml"
    file.write_text(SHORT.flow("cubic").to_toml().replace('"cubic"', '"fake:other"'))
    assert cli.call(["run", str(file), "--out", str(tmp_path / "out")]) == cli.USAGE
    assert "flow[0].law: fake:other is not built; make stacks STACK=fake" in lfn.said().err


@pytest.mark.usefixtures("built")
def test_lists_say_which_are_here(lfn: Lfn) -> None:
    assert re.search(r"fake +fake:reno,fake:other +faked +1.2 +nowhere +make stacks", lfn("laws"))
    cli.call(["doctor"])
    assert re.search(r"limited stack fake +not built\n +fake:\.\.\. as laws", lfn.said().out)


def test_a_lock_pins_the_version_that_the_registry_says() -> None:
    for stack in stacks.stacks():
        if stack.tool == "apt-get":
            continue  # its build asks for the version of the registry
        locks = {"cargo": "Cargo.lock", "go": "go.sum", "python3": "requirements.txt"}
        pinned = {
            "cargo": f'name = "{stack.package}"\nversion = "{stack.version}"',
            "go": f"{stack.package} {stack.version} h1:",
            "python3": f"{stack.package}=={stack.version}",
        }[stack.tool]
        lock = ROOT / "stacks" / stack.name / locks[stack.tool]
        assert pinned in lock.read_text(), stack.name
