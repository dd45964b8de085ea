"""The rooms of python/lfnlab: imports point down, and a name means one thing."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lfnlab

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "lfnlab"


def levels() -> list[list[str]]:
    """Rooms from the top to the floor, a list for each line of ARCHITECTURE.md.

    A room may import only from rooms of later lines. Rooms of one line do not import each other.
    """
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    found = re.search(r"The package `python/lfnlab`.*?^```text[^\n]*\n(.*?)^```", text, re.S | re.M)
    assert found
    return [re.split(r"  +", line)[0].split(", ") for line in found[1].splitlines()]


LEVEL = {room: level for level, rooms in enumerate(levels()) for room in rooms}


def modules(package: Path) -> dict[str, Path]:
    """By name, such as ``lfnlab.results.store``."""
    found = {}
    for path in [*package.rglob("*.py"), *package.rglob("*.pyi")]:
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(text: str, name: str, known: dict[str, Path]) -> Iterator[str]:
    """Modules that a module imports anywhere: late, and for types alone, too.

    What is taken from a package and is no module of it stands as PACKAGE:NAME.
    """
    package = name if known[name].stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [base])])
            for alias in node.names:
                module = f"{base}.{alias.name}"
                yield module if module in known else f"{base}:{alias.name}"


def faults(package: Path) -> list[str]:
    """Imports that point up or sideways, or take a name from the package's face."""
    known = modules(package)
    found = []
    for name, path in known.items():
        room = name.split(".")[1] if "." in name else None
        for target in imported(path.read_text(encoding="utf-8"), name, known):
            base = target.partition(":")[0]
            if base.split(".")[0] != package.name or room is None:
                continue
            if base == package.name:
                found.append(f"{name} imports {target} from the package's face")
                continue
            other = base.split(".")[1]
            if other != room and LEVEL[other] <= LEVEL[room]:
                found.append(f"{name} -> {base}")
    return found


def circles(package: Path) -> list[list[str]]:
    """Modules of which each imports, by way of others, the others."""
    known = modules(package)
    below: dict[str, set[str]] = {}
    for name, path in known.items():
        targets = imported(path.read_text(encoding="utf-8"), name, known)
        below[name] = {target.partition(":")[0] for target in targets} & set(known) - {name}

    def reached(start: str) -> set[str]:
        todo, seen = [*below[start]], set()
        while todo:
            if (name := todo.pop()) not in seen:
                seen.add(name)
                todo += below[name]
        return seen

    reach = {name: reached(name) for name in known}
    together = {
        tuple(sorted(other for other in reach if other in reach[name] and name in reach[other]))
        for name in reach
    }
    return [list(circle) for circle in sorted(together) if circle]


def test_every_room_has_a_level() -> None:
    rooms = {name.split(".")[1] for name in modules(PACKAGE) if "." in name}
    assert rooms == set(LEVEL)


def test_imports_point_down() -> None:
    assert not faults(PACKAGE)


def test_no_circle_of_modules() -> None:
    assert not circles(PACKAGE)


def test_only_rooms_stand_in_the_package() -> None:
    files = {path.name for path in PACKAGE.glob("*.py*")}
    own = {"errors.py", "printable.py", "renamed.py", "statistics.py"}
    assert files == {"__init__.py", "_core.pyi"} | own


def test_every_command_is_in_the_room_of_commands() -> None:
    with_commands = {
        name
        for name, path in modules(PACKAGE).items()
        if any(
            target.split(":")[0].split(".")[0] == "cyclopts"
            for target in imported(path.read_text(encoding="utf-8"), name, modules(PACKAGE))
        )
    }
    assert with_commands
    assert all(name.startswith("lfnlab.cli.") for name in with_commands), with_commands


def test_no_public_name_is_a_module_and_something_else() -> None:
    known = modules(PACKAGE)
    assert not {name for name in lfnlab.__all__ if f"lfnlab.{name}" in known}
    for name, path in known.items():
        if path.name != "__init__.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        bound = {
            node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)
        } | {
            alias.asname or alias.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if f"{node.module}.{alias.name}" not in known
        }
        assert not {one for one in bound if f"{name}.{one}" in known}, name


@pytest.mark.parametrize(
    ("file", "text", "wrong"),
    [
        ("results/a.py", "from lfnlab.analysis import summary", True),
        ("results/a.py", "def f():\n    from lfnlab.analysis.summary import plain", True),
        ("results/a.py", "if TYPE_CHECKING:\n    import lfnlab.cli.app", True),
        ("results/a.py", "from lfnlab import dumbbell", True),
        ("results/a.py", "import lfnlab", True),
        ("results/a.py", "from ..analysis.summary import plain", True),
        ("results/a.py", "from .. import analysis", True),
        ("suite/a.py", "from lfnlab.kernel import host", True),
        ("results/a.py", "from lfnlab.scenario import quantity", False),
        ("results/a.py", "from lfnlab.results.store import Store", False),
        ("results/a.py", "from lfnlab import errors, _core", False),
        ("results/a.py", "from .store import Store", False),
    ],
)
def test_an_import_that_points_up_is_found(
    tmp_path: Path, file: str, text: str, wrong: bool
) -> None:
    package = tmp_path / "lfnlab"
    for name in [*(f"{room}/__init__.py" for room in LEVEL), "__init__.py", file]:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("")
    (package / file).write_text(text)
    assert bool(faults(package)) == wrong


def test_a_circle_is_found(tmp_path: Path) -> None:
    package = tmp_path / "lfnlab"
    package.mkdir()
    for name, text in {
        "__init__": "",
        "a": "from lfnlab.b import x",
        "b": "def f():\n    from lfnlab import c",
        "c": "import lfnlab.a",
        "d": "from lfnlab import a",
    }.items():
        (package / f"{name}.py").write_text(text)
    assert circles(package) == [["lfnlab.a", "lfnlab.b", "lfnlab.c"]]


def test_a_store_names_no_module_of_the_package(tmp_path: Path) -> None:
    """So a store of before a move opens after it."""
    base = lfnlab.dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s")
    lfnlab.compare(["reno"], base, out=tmp_path)
    names = [name.encode() for name in modules(PACKAGE) if name.count(".") > 1]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files for name in names if name in path.read_bytes()]
