"""No files of a crate use each other in a circle; import-linter knows Python alone.

A module that uses its own children by their short names is not counted.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CRATES = sorted(path.parent for path in Path(__file__).parents[1].glob("crates/*/src"))
Module = tuple[str, ...]
TREE = re.compile(r"((?:\w+::)+)\{([^{}]*)\}")


def modules(crate: Path) -> dict[Module, str]:
    """Text by path of module, without comments and without tests."""
    found = {}
    for file in (crate / "src").rglob("*.rs"):
        parts = file.relative_to(crate / "src").with_suffix("").parts
        if "tests" not in parts:
            text = re.sub(r"//[^\n]*", "", file.read_text()).split("#[cfg(test)]")[0]
            found[parts[:-1] if parts[-1] in ("lib", "main") else parts] = text
    return found


def expanded(text: str) -> str:
    """Trees such as ``a::{b, c::d}`` as lists of paths, the inner ones first."""

    def listed(tree: re.Match[str]) -> str:
        return ", ".join(tree[1] + part.strip() for part in tree[2].split(",") if part.strip())

    while (more := TREE.sub(listed, text)) != text:
        text = more
    return text


def arrows(of: dict[Module, str]) -> dict[Module, set[Module]]:
    """Which modules each module uses by ``crate::``, ``self::`` or ``super::``."""
    found: dict[Module, set[Module]] = {module: set() for module in of}
    for module, text in of.items():
        for used in re.finditer(r"\b(crate|self|super)\b((?:::\w+)+)", expanded(text)):
            words = used[0].split("::")
            base = () if used[1] == "crate" else module[: len(module) - words.count("super")]
            path = (*base, *(word for word in words if word not in ("crate", "self", "super")))
            found[module].add(next(path[:n] for n in range(len(path), -1, -1) if path[:n] in of))
        found[module].discard(module)
    return found


def circle(uses: dict[Module, set[Module]]) -> list[Module]:
    """Modules of which each uses the next, if there is a circle."""
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_files_of_a_crate_form_no_circle(crate: Path) -> None:
    assert circle(arrows(modules(crate))) == []


def test_a_circle_is_found() -> None:
    uses = arrows(
        {
            (): "mod a; mod b; pub use a::A;",
            ("a",): "use crate::{c, b::{self, B}};",
            ("b",): "fn f(_: super::c::d::D) {}",
            ("c",): "",
            ("c", "d"): "use super::super::{a::A as Other};",
        }
    )
    assert uses["a",] == {("b",), ("c",)}
    assert set(circle(uses)) == {("a",), ("b",), ("c", "d")}
    assert circle({**uses, ("b",): {("c",)}}) == []
