"""Do the starts of ``lfn new`` run as they are, and does completion complete?"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lfnlab
from lfnlab.cli import app as cli

if TYPE_CHECKING:
    from command import Lfn


@pytest.mark.parametrize("kind", ["scenario", "law", "sweep"])
@pytest.mark.parametrize("name", ["", "own name", "/absolute"])
def test_a_start_runs_as_it_is(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lfn: Lfn
) -> None:
    monkeypatch.chdir(tmp_path)
    end = ".py" if kind == "law" else ".toml"
    given = [str(tmp_path / f"x{end}") if name.startswith("/") else name + end] if name else []
    file, _, command = lfn("new", kind, *given).strip().partition(": ")
    assert given in ([], [file])
    assert "{" + "file}" not in Path(file).read_text()
    assert file in Path(file).read_text(), "its comment has the command"
    short = ["--set", "duration=1s", "--set", "warmup=0s", "--no-report", "--out", "out"]
    words = shlex.split(command.replace(file, shlex.quote(file)).replace("--out sweep", ""))
    assert words[0] == "lfn"
    if kind == "scenario":
        short += ["--set", "flow[1].start=0s"]
    assert cli.call([*words[1:], *short]) == cli.OK
    assert cli.call(["new", kind, *given]) == cli.STORE, "nothing is written over"


def test_a_preset_is_a_start(tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "mine.toml"
    assert cli.call(["new", "scenario", str(file), "--preset", "e-vlbi"]) == cli.OK
    assert tomllib.loads(file.read_text())["schema"] == 1
    assert cli.call(["new", "scenario", str(tmp_path / "x"), "--preset", "e-vlbo"]) == cli.USAGE
    assert not (tmp_path / "x").exists()
    assert "e-vlbi" in lfn.said().err


def test_bash_completes_commands_and_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lfn: Lfn
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for _ in range(2):
        assert cli.call(["--install-completion", "--shell", "bash"]) == cli.OK
    script = lfn.said().out.split()[1].rstrip(";")
    assert (tmp_path / ".bashrc").read_text().count(f'. "{script}"') == 1
    asks = (
        f'. {script}; complete -p lfn; COMP_WORDS=(lfn $1); COMP_CWORD=1; COMP_LINE="lfn $1"; '
        'f=$(complete -p lfn | sed "s/.*-F \\([^ ]*\\).*/\\1/"); $f; echo "${COMPREPLY[@]}"'
    )
    made = subprocess.run(
        ["bash", "-c", asks, "bash", "com"], capture_output=True, text=True, check=True
    )
    assert made.stdout.split("\n")[-2].split() == ["compare"]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("vc", ["vcp"]), ("reno,cubi", ["reno,cubic"]), ("reno,", None), ("", None), ("nosuch", [])],
)
def test_bash_completes_laws(
    typed: str, offered: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lfn: Lfn
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    script = lfn("--install-completion", "--shell", "bash").split()[1].rstrip(";")
    asks = (
        f'. {script}; COMP_WORDS=(lfn compare --law "$1"); COMP_CWORD=3; '
        'f=$(complete -p lfn | sed "s/.*-F \\([^ ]*\\).*/\\1/"); $f; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    made = subprocess.run(
        ["bash", "-c", asks, "bash", typed], capture_output=True, text=True, check=True
    )
    assert made.stderr == ""
    if offered is None:
        before = typed.rpartition(",")[0]
        offered = [f"{before},{law.name}" if before else law.name for law in lfnlab.laws()]
    assert made.stdout.split() == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_for_other_shells_is_written(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lfn: Lfn
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    script = Path(lfn("--install-completion", "--shell", shell).split()[1].rstrip(";"))
    assert "compare" in script.read_text()
    if shutil.which(shell):
        subprocess.run([shell, "-n", script], check=True)
