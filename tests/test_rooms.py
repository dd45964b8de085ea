"""The rooms of python/lfnlab: one list of them, and one meaning of a name."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import lfnlab

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "lfnlab"
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in [*PACKAGE.rglob("*.py"), PACKAGE / "_core.pyi"]
}


def test_the_contract_has_the_rooms_of_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    drawn = re.search(r"The package `python/lfnlab`.*?^```text[^\n]*\n(.*?)^```", text, re.S | re.M)
    assert drawn
    rooms = [set(re.split(r"  +", line)[0].split(", ")) for line in drawn[1].splitlines()]
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ][0]
    assert [set(line.split(" | ")) for line in contract["layers"]] == [
        room for room in rooms if room != {"_core"}
    ]


def test_no_room_imports_a_name_of_the_face() -> None:
    """The contracts cannot tell the face from the compiled module."""
    found = {
        f"{name}: {alias.name}"
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for alias in getattr(node, "names", [])
        if (isinstance(node, ast.Import) and alias.name == "lfnlab")
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "lfnlab"
            and f"lfnlab.{alias.name}" not in MODULES
        )
    }
    assert not found


def test_no_public_name_is_a_module_and_something_else() -> None:
    assert not {name for name in lfnlab.__all__ if f"lfnlab.{name}" in MODULES}
    for name, path in MODULES.items():
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
            if f"{node.module}.{alias.name}" not in MODULES
        }
        assert not {one for one in bound if f"{name}.{one}" in MODULES}, name


def test_a_store_names_no_module_of_the_package(tmp_path: Path) -> None:
    """So a store of before a move opens after it."""
    base = lfnlab.dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s")
    lfnlab.compare(["reno"], base, out=tmp_path)
    names = [name.encode() for name in MODULES if name.count(".") > 1]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files for name in names if name in path.read_bytes()]
