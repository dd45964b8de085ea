"""The parts of pages that are generated and committed, so that they are readable in the repository.

$ python docs/site/reference.py          writes them
$ python docs/site/reference.py --check  exits with 1 and names the pages that are out of date

A page has such a part between ``<!-- made: NAME -->`` and ``<!-- end of NAME -->``.
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

import lfnlab
import lfnlab.errors
from lfnlab.cli.app import app as lfn
from lfnlab.evaluate import criteria

sys.path.insert(0, str(Path(__file__).parent))
import pages

ROOT = pages.ROOT
PART = re.compile(r"(?s)(<!-- made: (\w+) -->\n).*?(<!-- end of \2 -->)")


def commands() -> str:
    """``lfn`` and all its commands with their options."""
    text: str = lfn.generate_docs(output_format="markdown", recursive=True)
    # The page has a title, and Sphinx makes tables of contents.
    text = text.split("\n", 1)[1]
    text = re.sub(r"(?s)## Table of Contents\n.*?(?=\n## )", "", text)
    return fenced(text).strip()


def fenced(text: str) -> str:
    """Indented blocks as fenced ones."""
    block = re.compile(r"(?m)(?<=\n\n)(?: {4}.*\n)(?:(?: {4}.*)?\n)*? {0,4}(?=\n|\Z)")
    parts: list[str] = []
    rest = 0
    for found in block.finditer(text + "\n\n"):
        lines = [line.removeprefix("    ") for line in found[0].rstrip().split("\n")]
        parts += [text[rest : found.start()], "```text\n", "\n".join(lines), "\n```\n"]
        rest = found.end()
    return "".join([*parts, text[rest:]])


def python() -> str:
    """Each module's public names: signature and docstring."""
    errors = set(vars(lfnlab.errors)) & set(lfnlab.__all__)
    sections = []
    for name, title in pages.MODULES.items():
        module = import_module(name)
        sections.append(f"## {title}: `{name}`\n\n{markdown(module)}")
        for public in names(module):
            if name == "lfnlab.errors" or public not in errors:
                sections.append(entry(public, getattr(module, public)))
    return "\n\n".join(sections)


def names(module: object) -> list[str]:
    """The public names of a module, those of ``__all__`` if it has one."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed, key=str.lower)
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    return sorted(own, key=str.lower)


def entry(name: str, value: object) -> str:
    """A function, a class with its public methods, or a value."""
    if not callable(value):
        return f"### {name}\n\n{markdown(value) if hasattr(value, '__module__') else ''}".strip()
    parts = [f"### {name}", f"```python\n{name}{signature(value)}\n```", markdown(value)]
    if inspect.isclass(value):
        rows = [
            [f"`{method}{signature(found) if callable(found) else ''}`", first(found)]
            for method, found in sorted(vars(value).items())
            if not method.startswith("_")
            and (inspect.isfunction(found) or isinstance(found, property | classmethod))
            and inspect.getdoc(found)
        ]
        if rows:
            parts.append(pages.table(["member", "description"], rows))
    return "\n\n".join(part for part in parts if part)


def signature(value: object) -> str:
    """Parameters and result, one line; empty if Python does not know them."""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"'([^',]*(?:\[[^']*\])?[^',]*)'(?=[,)\]]| =|$)", r"\1", text)
    return re.sub(r"<([\w.]+)[^<>]*>", r"\1", text).replace("self, ", "").replace("(self)", "()")


def first(value: object) -> str:
    """The first sentence of a docstring, on one line."""
    return " ".join(markdown(value).split("\n\n")[0].split())


def markdown(value: object) -> str:
    """A docstring without the marks of reStructuredText."""
    text = inspect.getdoc(value) or ""
    text = re.sub(r":[a-z:]+:`~?([^`<]*?)(?: <[^>]*>)?`", r"`\1`", text)
    text = text.replace("``", "`").replace("::\n", ":\n")
    text = re.sub(r"(?m)^((?:>>>|\.\.\.) .*(?:\n(?!\n).*)*)", r"```python\n\1\n```", text)
    return fenced(text)


MADE = {
    "laws": pages.registry,
    "keys": pages.keys,
    "top": pages.top,
    "link": lambda: pages.definition("OneWay"),
    "flow": lambda: pages.definition("Flow"),
    "queues": lambda: pages.choices("Queue", "size"),
    "udp": lambda: pages.choices("Udp"),
    "traffic": lambda: pages.choices("Traffic"),
    "tables": pages.tables,
    "summary": pages.summary,
    "evaluate": lambda: "\n".join(criteria.documentation()),
    "commands": commands,
    "python": python,
}


def made(text: str) -> str:
    """A page with its generated parts as they should be."""
    return PART.sub(lambda found: f"{found[1]}\n{MADE[found[2]]()}\n\n{found[3]}", text)


def main() -> None:
    """Write or check all pages."""
    check = sys.argv[1:] == ["--check"]
    old = []
    for page in sorted(ROOT.glob("docs/**/*.md")):
        text = page.read_text(encoding="utf-8")
        if made(text) != text:
            old.append(str(page.relative_to(ROOT)))
            if not check:
                page.write_text(made(text), encoding="utf-8")
    print("\n".join(f"{'out of date' if check else 'written'}: {page}" for page in old))
    if check and old:
        sys.exit("run: python docs/site/reference.py")


if __name__ == "__main__":
    main()
