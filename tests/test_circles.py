"""No files of a crate use each other in a circle.

A module that uses its own children by their short names is not counted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
CRATES = sorted(path.parent for path in ROOT.glob("crates/*/src"))
Module = tuple[str, ...]
_NAME = re.compile(r"\s*(\w+|\*|\{)")


def modules(crate: Path) -> dict[Module, str]:
    """Text by path of module, without comments and without tests."""
    found = {}
    for file in (crate / "src").rglob("*.rs"):
        *above, name = file.relative_to(crate / "src").with_suffix("").parts
        if name == "tests" or "tests" in above:
            continue
        text = re.sub(r"//[^\n]*", "", file.read_text())
        found[(*above, *([] if name in ("lib", "main") else [name]))] = text.split("#[cfg(test)]")[
            0
        ]
    return found


def paths(text: str, at: int) -> Iterator[Module]:
    """The paths of a tree such as ``a::{b, c::d}`` that begins at ``at``."""
    depth: list[Module] = []
    path: Module = ()
    while (name := _NAME.match(text, at)) is not None:
        at = name.end()
        if name[1] == "{":
            depth.append(path)
            continue
        path += (name[1],)
        if (more := re.compile(r"\s*::(?!<)").match(text, at)) is not None:
            at = more.end()
            continue
        yield path
        while (end := re.compile(r"(?:\s+as\s+\w+)?\s*([,}])").match(text, at)) and depth:
            at = end.end()
            path = depth[-1]
            if end[1] == ",":
                break
            depth.pop()
        if not depth:
            return


def arrows(of: dict[Module, str]) -> dict[Module, set[Module]]:
    """Which modules each module uses by ``crate::``, ``self::`` or ``super::``."""
    found: dict[Module, set[Module]] = {module: set() for module in of}
    for module, text in of.items():
        for root in re.finditer(r"\b(crate|self|super(?:::super)*)::(?!super)", text):
            ups = root[1].count("super")
            base = () if root[1] == "crate" else module[: len(module) - ups]
            for path in paths(text, root.end()):
                whole = (*base, *path)
                used = next(whole[:n] for n in range(len(whole), -1, -1) if whole[:n] in of)
                found[module] |= {used} - {module}
    return found


def circle(uses: dict[Module, set[Module]], start: Module) -> list[Module]:
    """The modules that ``start`` reaches and that reach it."""

    def reached(begin: Module) -> set[Module]:
        seen: set[Module] = set()
        left = [begin]
        while left:
            new = uses[left.pop()] - seen
            seen |= new
            left += new
        return seen

    return sorted(module for module in reached(start) if start in reached(module))


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_files_of_a_crate_form_no_circle(crate: Path) -> None:
    uses = arrows(modules(crate))
    assert {"/".join(module) for module in uses if circle(uses, module)} == set()


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
    assert circle(uses, ("a",)) == [("a",), ("b",), ("c", "d")]
    assert circle(uses, ("c",)) == []
