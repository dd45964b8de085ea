"""Is an installed wheel typed as strict checkers want it, every public name of it?"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

import lfnlab

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "typed_program.py"
PAGE = (ROOT / "docs" / "public.md").read_text(encoding="utf-8")
MODULES = re.findall(r"(?m)^\| `(lfnlab\.[\w.]+)`", PAGE)
"""The public modules besides lfnlab."""


def names(module: ModuleType) -> list[str]:
    """The public names of a module, as docs/reference/python.md lists them."""
    own = [
        n
        for n, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
    ]
    return getattr(module, "__all__", [n for n in own if not n.startswith("_")])


def ran(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment with the wheel of this tree, and the packages of the tests."""
    home = tmp_path_factory.mktemp("installed")
    uv = os.environ.get("UV") or shutil.which("uv") or ROOT / "build/uv/bin/uv"
    ran(uv, "build", "--quiet", "--wheel", "--out-dir", home)
    ran(sys.executable, "-m", "venv", "--without-pip", home / "env")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = home / "env" / "lib" / version / "site-packages"
    with ZipFile(next(home.glob("*.whl"))) as wheel:
        wheel.extractall(packages)
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return home / "env" / "bin" / "python"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, and one that names what the other public modules have."""
    home = tmp_path_factory.mktemp("program")
    shutil.copy(PROGRAM, home)
    modules = {module: import_module(module) for module in MODULES}
    uses = [f"print({name}.{public})" for name in MODULES for public in names(modules[name])]
    (home / "modules.py").write_text("\n".join([*(f"import {name}" for name in MODULES), *uses]))
    return home


def test_the_program_uses_every_public_name() -> None:
    tree = ast.parse(PROGRAM.read_text(encoding="utf-8"))
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.expr)}
    missing = [name for name in lfnlab.__all__ if not {name, f"lfnlab.{name}"} & used]
    assert not missing
    assert dir(lfnlab) == lfnlab.__all__


def mypy(python: Path, *files: Path) -> None:
    cache = ROOT / ".mypy_cache" / "wheel"
    strictly = ("--strict", "--config-file=", "--cache-dir", cache, "--python-executable", python)
    ran(sys.executable, "-m", "mypy", *strictly, *files)


def pyright(python: Path, *files: Path) -> None:
    settings = {"typeCheckingMode": "strict", "venvPath": str(python.parents[2]), "venv": "env"}
    (files[0].parent / "pyrightconfig.json").write_text(json.dumps(settings))
    ran(sys.executable, "-m", "basedpyright", "--project", files[0].parent)


@pytest.mark.parametrize("check", [mypy, pyright])
def test_a_strict_checker_takes_the_program(
    check: Callable[..., None], python: Path, program: Path, tmp_path: Path
) -> None:
    check(python, *program.glob("*.py"))
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import lfnlab\n\nprint(lfnlab.Reno, lfnlab.TYPE_CHECKING)\n")
    with pytest.raises(AssertionError, match=r'"Reno"[^$]*"TYPE_CHECKING"'):
        check(python, wrong)


def test_the_program_runs(python: Path, program: Path, tmp_path: Path) -> None:
    ran(python, program / PROGRAM.name, tmp_path / "results")
