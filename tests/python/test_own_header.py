"""A law in a stranger's folder goes wherever a law of ours goes, or the command says why not."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lfnlab import LabError, _core, kernel
from lfnlab.cli import app as cli
from lfnlab.control_laws import prototype
from lfnlab.testbed import linux_backend, linux_laws

if TYPE_CHECKING:
    from command import Lfn

ROOT = Path(__file__).parents[2]
PATH = ["--rate", "20Mbit/s", "--rtt", "20ms", "--buffer", "0.5bdp"]


@pytest.fixture(autouse=True)
def header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Reno under another name, in a folder of its own, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "laws/reno.h").read_text().replace("reno", "tol").replace("RENO", "TOL")
    Path("tol.h").write_text(text)
    return tmp_path / "tol.h"


@pytest.mark.parametrize("name", ["./tol.h", "tol.h"])
def test_it_has_the_vectors_of_the_registered_law(name: str, lfn: Lfn) -> None:
    said = lfn("port", name)
    assert said.startswith("```law\nlaw tol  # growth")
    assert lfn("port", ROOT / "laws/reno.h").replace("law reno ", "law tol ") == said


def test_it_is_advised_or_not_beside_others(lfn: Lfn) -> None:
    asked = ["--law", "./tol.h,cubic", *PATH, "--bytes", "2MB", "--flows", "2", "--out", "o"]
    said = json.loads(lfn("advise", *asked, "--json"))
    assert {choice["law"] for choice in said["choices"]} == {"lfn_tol", "cubic"}
    assert "lfn kernel load ./tol.h" in lfn("advise", *asked)


def test_lists_of_laws_name_headers(lfn: Lfn) -> None:
    assert cli.call(["advise", *PATH, "--law", "nothing.h"]) != cli.OK
    said = lfn.said().err
    assert "nothing.h: No such file or directory; write FILE.h" in said
    for command, others in (
        (["advise", *PATH, "--law", "no-law"], ", or a controller in FILE.so or FILE.py"),
        (["kernel", "load", "no-law"], ""),
    ):
        assert cli.call(command) != cli.OK
        assert f"or FILE.h{others}\n" in lfn.said().err


def test_linux_in_virtual_time_has_the_headers_that_were_built_in(
    header: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = header.parent / "clone"
    (clone / "linux").mkdir(parents=True)
    (clone / "linux/run").touch()
    monkeypatch.setenv(linux_laws.CLONE, str(clone))
    place = linux_backend.Linux.__new__(linux_backend.Linux)
    text = 'schema = 1\nduration = "3s"\n[link]\nrate = "20Mbit/s"\n[[flow]]\nlaw = "tol.h"\n'
    text += 'rtt = "40ms"\n'
    with pytest.raises(LabError) as caught:
        place.check(_core.Scenario(text, "a.toml"))
    assert str(caught.value).startswith("a.toml:6: flow[0].law: ")
    assert f"tol.h is not built into it; make -C {clone} linux LAWS=/PATH/OF/tol.h" in str(
        caught.value
    )
    (clone / "build/linux/laws").mkdir(parents=True)
    shutil.copy(header, clone / "build/linux/laws")
    place.check(_core.Scenario(text, "a.toml"))
    # A new process knows the law by the scenario's text alone.
    monkeypatch.setattr(prototype, "_classes", {})
    place.check(_core.Scenario(text, "a.toml"))
    # Another state of the file is another law.
    header.write_text(header.read_text() + "\n")
    with pytest.raises(LabError, match="h is not built into it"):
        place.check(_core.Scenario(text, "a.toml"))


def test_a_law_in_python_does_not_run_in_linux(header: Path) -> None:
    python = "from lfnlab import Law\nclass Mine(Law):\n def on_ack(self, n, ack): ...\n"
    Path("mine.py").write_text(python + " def on_loss(self, loss): ...\n")
    place = linux_backend.Linux.__new__(linux_backend.Linux)
    text = 'schema = 1\nduration = "3s"\n[link]\nrate = "20Mbit/s"\n[[flow]]\n'
    text += 'law = "./mine.py:Mine"\nrtt = "40ms"\n'
    with pytest.raises(LabError, match="Mine is a law in Python; port it to a C header"):
        place.check(_core.Scenario(text, "a.toml"))


def test_its_line_is_the_kernels_macro(header: Path) -> None:
    def line(text: str) -> str:
        header.write_text(text)
        command = [ROOT / "kernel/laws", header]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert line("LAW_OPS(tol);\n") == "- tol LFN_TCP_LAW(tol, SLOW_START_CLASSIC, 0)\n"
    assert line(" LAW_CONTROL_OPS( tol );") == "- tol LFN_TCP_CONTROL_LAW(tol, 0)"
    assert line("// LAW_OPS(tol)\n") == ""


def test_a_name_in_linux_has_its_bounds(header: Path) -> None:
    assert kernel.of_header(header).kernel_name == "lfn_tol"
    text = header.read_text()
    header.write_text(text.replace("LAW_OPS(tol", "LAW_OPS(a_name_of_12"))
    with pytest.raises(LabError, match=r"LAW_OPS\(a_name_of_12\): .* at most 11 characters"):
        kernel.find(str(header))
    header.write_text(text.replace("LAW_OPS(", "LAW_CONTROL_OPS("))
    assert kernel.find(str(header)).steers


def test_what_the_kernels_compiler_lacks_is_named(
    header: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LabError, match="no clang-14; a header for Linux needs clang-14 and llvm"):
        kernel.of_header(header).image()
    monkeypatch.setattr(kernel.header, "LAWS", header.parent / "none")
    with pytest.raises(LabError, match="needs kernel/build, a part of a clone"):
        kernel.of_header(header).image()


@pytest.mark.skipif(shutil.which("clang-14") is None, reason="needs clang-14")
def test_a_header_that_does_not_compile_for_linux_is_shown_at_its_line(header: Path) -> None:
    assert kernel.of_header(header).image().startswith(b"\x7fELF")
    header.write_text(header.read_text().replace("LAW_OPS", "int broken = ;\nLAW_OPS"))
    with pytest.raises(LabError, match=r"tol\.h does not compile for Linux: .*tol\.h:\d+:\d+: err"):
        kernel.of_header(header).image()


def test_a_scenario_names_it_from_its_folder(
    header: Path, lfn: Lfn, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'schema = 1\nduration = "3s"\n[link]\nrate = "20Mbit/s"\n[[flow]]\nrtt = "40ms"\n'
    (header.parent / "a.toml").write_text(text + 'law = "./tol.h"\n')
    (header.parent / "elsewhere").mkdir()
    monkeypatch.chdir(header.parent / "elsewhere")
    assert "tol.h (prototype)" in lfn("run", "../a.toml", "--out", "o")
    header.unlink()
    assert cli.call(["run", "../a.toml", "--out", "o"]) != cli.OK
    assert "a.toml:7: flow[0].law: " in lfn.said().err
