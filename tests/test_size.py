"""Functions, files and structs are small, or a comment beside them says why they are not."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent

FUNCTION, FILE, STRUCT = "80 lines", "600 lines", "20 fields"


class Part(NamedTuple):
    """A function, struct, class or file."""

    name: str
    size: int
    limit: str
    """One of the three above."""
    has_reason: bool

    def is_large(self) -> bool:
        return self.size > int(self.limit.split()[0])


def has_reason(lines: list[str], limit: str) -> bool:
    return any(re.match(rf"\s*(//|#) Over {limit}: \w", line) for line in lines)


def above(lines: list[str], index: int) -> list[str]:
    """The comments and attributes that stand directly above a line."""
    first = index
    while first and re.match(r"\s*(//|#|@)", lines[first - 1]):
        first -= 1
    return lines[first:index]


def is_end(line: str, brace: str, parenthesis: str) -> bool:
    return line == brace or (line.startswith(parenthesis) and line.endswith(";"))


def parts_of_rust(text: str) -> Iterator[Part]:
    """As rustfmt writes it: a part ends at the first line that is its indentation and a brace."""
    lines = re.split(r"^#\[cfg\(test\)\]\nmod \w+ \{", text, flags=re.M)[0].rstrip().split("\n")
    yield Part("file", len(lines), FILE, has_reason(lines[:20], FILE))
    word = r"(?:pub(?:\([^)]*\))? |const |unsafe |async |extern \"C\" )*"
    for start, line in enumerate(lines):
        found = re.match(rf"( *){word}(fn|struct) (\w+)", line)
        if found is None or line.endswith(("}", ";")):
            continue
        # The end of a struct of a tuple, or of a function without a body, is a parenthesis.
        ends = (f"{found[1]}}}", f"{found[1]})")
        ending = (i for i in range(start + 1, len(lines)) if is_end(lines[i], *ends))
        end = next(ending, start)  # of generated code in a string there is none
        if found[2] == "fn":
            size, limit = end - start + 1, FUNCTION
        else:
            field = re.compile(rf"{found[1]}    (?:pub(?:\([^)]*\))? )?\w+: ")
            size, limit = sum(bool(field.match(line)) for line in lines[start:end]), STRUCT
        yield Part(found[3], size, limit, has_reason(above(lines, start), limit))


def parts_of_python(text: str) -> Iterator[Part]:
    lines = text.rstrip().split("\n")
    yield Part("file", len(lines), FILE, has_reason(lines[:20], FILE))
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        start = min(part.lineno for part in (node, *node.decorator_list)) - 1
        if isinstance(node, ast.ClassDef):
            size, limit = sum(isinstance(item, ast.AnnAssign) for item in node.body), STRUCT
        else:
            size, limit = (node.end_lineno or 0) - node.lineno + 1, FUNCTION
        yield Part(node.name, size, limit, has_reason(above(lines, start), limit))


def parts(path: str, text: str) -> Iterator[Part]:
    yield from (parts_of_rust if path.endswith(".rs") else parts_of_python)(text)


def too_large(path: str, text: str) -> list[str]:
    return [
        f"{path}: {part.name}"
        for part in parts(path, text)
        if part.is_large() and not part.has_reason
    ]


def sources() -> list[str]:
    """All Rust and Python but tests."""
    run = subprocess.run(
        ["git", "ls-files", "*.rs", "*.py"], cwd=ROOT, check=True, capture_output=True
    )
    is_test = re.compile(r"(^|/)(tests|test_\w+\.py|tests\.rs|conftest\.py)(/|$)")
    return [name for name in run.stdout.decode().splitlines() if not is_test.search(name)]


def test_all_is_small_or_has_a_reason() -> None:
    names = sources()
    assert len(names) > 250
    found = {fault for name in names for fault in too_large(name, (ROOT / name).read_text("utf-8"))}
    assert found == set(), "write beside it: Over 80 lines: WHY (600 lines, 20 fields)"


def test_a_reason_is_needed() -> None:
    """A reason where nothing is large is dead."""
    for name in sources():
        text = (ROOT / name).read_text("utf-8")
        needed = sum(part.is_large() and part.has_reason for part in parts(name, text))
        said = re.findall(r"^ *(?://|#) Over \d+ (?:lines|fields): ", text, re.M)
        assert len(said) == needed, name


A_FN = "impl A {{\n    {}pub fn f(\n        a: u8,\n    ) -> u8 {{\n{}    }}\n}}\n"
A_STRUCT = "{}#[derive(Clone)]\npub(crate) struct S {{\n{}}}\n"
A_DEF = "class A:\n    {}@cache\n    def f(self) -> None:\n{}"
A_CLASS = "{}@dataclass\nclass S:\n{}"


@pytest.mark.parametrize(
    ("path", "form", "line", "most", "name", "reason"),
    [
        ("a.rs", A_FN, "        g();\n", 76, "f", "// Over 80 lines: a table.\n    "),
        ("a.rs", A_STRUCT, "    a: u8,\n", 20, "S", "// Over 20 fields: a table.\n"),
        ("a.py", A_DEF, "        g()\n", 79, "f", "# Over 80 lines: a table.\n    "),
        ("a.py", A_CLASS, "    a: int\n", 20, "S", "# Over 20 fields: a table.\n"),
        ("a.rs", "{}{}", "// x\n", 600, "file", "//! A room.\n// Over 600 lines: a table.\n"),
        ("a.py", "{}{}", "# x\n", 600, "file", "# Over 600 lines: a table.\n"),
    ],
)
def test_what_is_too_large_is_found(
    path: str, form: str, line: str, most: int, name: str, reason: str
) -> None:
    assert too_large(path, form.format("", most * line)) == []
    assert too_large(path, form.format("", (most + 1) * line)) == [f"{path}: {name}"]
    assert too_large(path, form.format(reason, (most + 1) * line)) == []
    assert too_large(path, form.format(reason.replace("a table.", ""), (most + 1) * line)) != []
