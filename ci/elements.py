"""Scenarios as values and the types of a run's summary in Python, made from their JSON Schemas.

    .venv/bin/python ci/elements.py

writes ``python/lfnlab/scenario/elements.py`` and ``python/lfnlab/results/summary.py``;
``tests/test_house.py`` compares. The schemas are made from the declarations in Rust:
``LFN_REGENERATE=1 cargo test -p lfn-scenario -p lfn-sim``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs/reference"
PACKAGE = ROOT / "python/lfnlab"
RUFF = Path(sys.executable).parent / "ruff"

# Classes that Python calls otherwise than the definition of the schema.
NAMES = {
    "OneWay": "Reverse",
    "BurstLoss": "GilbertElliott",
    "Size": "Sizes",
    "Clients": "Requests",
    "Pairs": "Suite",
}
BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
VALUE = "@dataclass(frozen=True, kw_only=True)"
# Every other kind of link has the fields of this class.
SHARED, BASE = "Reverse", "_Way"
# What Scenario.flow takes by itself.
OWN = ("law", "rtt")

HEAD = '''"""The parts of a scenario as immutable values: links, queues, flows, other traffic.

Each is a table of TOML. ``None`` means that the default of the simulator holds. Made by
``ci/elements.py`` from ``docs/reference/scenario.schema.json``; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from lfnlab.scenario.keywords import keywords

if TYPE_CHECKING:
    from lfnlab.control_laws.controller import Controller
    from lfnlab.control_laws.prototype import Law

ALL = []


@keywords
@dataclass(frozen=True, kw_only=True)
class File:
    """A file, and the hash that it must have. A bare path is relative to the working directory."""

    path: str
    hash: str | None = None
'''

Schema = dict[str, Any]


class Elements:
    """The classes of a schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.classes: dict[str, str] = {}
        self.fields: dict[str, dict[str, str]] = {}
        # Of the class whose fields others have too, the declarations in order.
        self.shared: list[str] = []
        self.tables = {"trace": "File", "file": "File"}
        self.top = {
            # Only the seed has its default in Python: a run is stored under it.
            key: kind if key == "seed" else f"{kind} | None"
            for key, (kind, _, needed) in self._keys(schema).items()
            if not needed and key not in self.tables
        }

    def text(self) -> str:
        """The module."""
        settings = [
            f"    {name}: {kind.removesuffix(' | None')}"
            for name, kind in self.fields["Flow"].items()
            if name not in OWN
        ]
        about = "Keys of a flow that :meth:`Scenario.flow` takes besides law and RTT."
        of_runs = "Keys of a scenario besides its duration, links and traffic."
        tables = [f'    "{key}": {name},' for key, name in self.tables.items()]
        public = [f'    "{name}",' for name in sorted(["File", *self.classes]) if name[0] != "_"]
        parts = [
            HEAD.replace("ALL = []", "\n".join(["__all__ = [", *public, "]"])),
            *self.classes.values(),
            f'class FlowSettings(TypedDict, total=False):\n    """{about}"""\n',
            *settings,
            f'\n\nclass RunSettings(TypedDict, total=False):\n    """{of_runs}"""\n',
            *(f"    {key}: {kind}" for key, kind in self.top.items()),
            "\n\nTABLES: dict[str, Callable[..., Any]] = {",
            *tables,
            '}\n"""The class of each table of TOML, by its key."""',
        ]
        return formatted("\n".join(parts) + "\n")

    def _keys(self, part: Schema) -> dict[str, tuple[str, str, bool]]:
        """The keys of an object: type, meaning, and whether it must be there."""
        found = {}
        required = part.get("required", [])
        for key, value in part.get("properties", {}).items():
            kind = self._type(key, value)
            found[key] = (kind, said(value), key in required)
        # Alternatives that belong to the object: of each key any, none must be there.
        for other in part.get("oneOf", []):
            for key, (kind, about, _) in self._keys(other).items():
                found[key] = (kind, about or said(other), False)
        return found

    def _type(self, key: str, value: Schema) -> str:
        if key == "law":
            return "str | type[Law | Controller]"
        if "$ref" in value:
            return self._named(key, value["$ref"].rpartition("/")[2])
        if "const" in value:
            return f"Literal[{value['const']!r}]"
        if "enum" in value:
            return f"Literal[{', '.join(map(repr, value['enum']))}]"
        if alternatives := value.get("anyOf", value.get("oneOf")):
            kinds = [self._type(key, other) for other in alternatives]
            return " | ".join(dict.fromkeys(kinds))
        if value.get("type") == "array":
            return f"tuple[{self._type(key, value['items'])}, ...]"
        if "path" in value.get("properties", {}):
            return "File"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}[
            value["type"]
        ]

    def _named(self, key: str, name: str) -> str:
        """A definition as the type of a key."""
        part = self.schema["$defs"][name]
        alternatives = part.get("oneOf" if "properties" not in part else "", part.get("anyOf", []))
        others = [self._resolved(other) for other in alternatives]
        if all("const" in other for other in others) and others:
            return f"Literal[{', '.join(repr(other['const']) for other in others)}]"
        tables = [other for other in others if "properties" in other]
        if "properties" in part or len(tables) == len(others) > 0:
            self._class(NAMES.get(name, name), part, tables)
            return self._table(key, NAMES.get(name, name))
        if len(tables) > 1:
            self._class(NAMES.get(name, name), part, tables)
            kinds = [self._type(key, other) for other in others if other not in tables]
            return " | ".join(dict.fromkeys([*kinds, self._table(key, NAMES.get(name, name))]))
        return " | ".join(dict.fromkeys(self._type(key, other) for other in alternatives))

    def _table(self, key: str, name: str) -> str:
        assert self.tables.setdefault(key, name) == name, f"{key} is one kind of table everywhere"
        return name

    def _resolved(self, part: Schema) -> Schema:
        if "$ref" not in part:
            return part
        named: Schema = self.schema["$defs"][part["$ref"].rpartition("/")[2]]
        return named

    def _class(self, name: str, part: Schema, tables: list[Schema]) -> None:
        if name in self.classes:
            return
        self.classes[name] = ""  # its place comes after those of its fields
        keys = self._keys(part) if "properties" in part else {}
        for other in tables:
            for key, (kind, about, needed) in self._keys(other).items():
                before = keys.get(key)
                kinds = [*(before[0].split(" | ") if before else []), *kind.split(" | ")]
                keys[key] = (merged(kinds), before[1] if before else about, needed)
        for key, (kind, about, _) in keys.items():
            sure = [key in other.get("required", []) for other in tables] or [keys[key][2]]
            keys[key] = (kind, about, all(sure))
        summary, _, rest = said(part).partition(". ")
        heading = document(summary.rstrip(".") + ".")
        if rest:
            more = textwrap.indent(textwrap.fill(rest, 92), "    ")
            heading = heading.removesuffix('"""') + f'\n\n{more}\n    """'
        self.fields[name] = {}
        declared = []
        for key, (kind, about, needed) in keys.items():
            field = "from_" if key == "from" else key
            default = ""
            if kind.startswith("Literal") and len(tables) == 1 and key == "kind":
                default = " = " + kind.removeprefix("Literal[").removesuffix("]")
            elif not needed:
                default = " = ()" if kind.startswith("tuple") else " = None"
                kind += "" if kind.startswith("tuple") else " | None"
            self.fields[name][field] = kind
            told = [document(about)] if about else []
            declared.append("\n".join([f"    {field}: {kind}{default}", *told]))
        del self.classes[name]
        if name == SHARED:
            self.shared, declared = declared, []
            said_of = "Fields of every kind of link, in each of its directions."
            self.classes[BASE] = classed(BASE, document(said_of), self.shared)
        bases = [BASE] if name == SHARED else []
        if self.shared and not set(self.shared) - set(declared):
            first = declared.index(self.shared[0])
            # Fields of a base come in reverse order of the bases.
            if before := declared[:first]:
                bases = [f"_{name}First"]
                said_of = f"Fields of a {name} before those of every link."
                self.classes[bases[0]] = classed(bases[0], document(said_of), before)
            bases.insert(0, BASE)
            declared = declared[first + len(self.shared) :]
        self.classes[name] = f"@keywords\n{classed(name, heading, declared, bases)}"


def classed(name: str, about: str, fields: list[str], bases: Sequence[str] = ()) -> str:
    """The declaration of a class of values."""
    inherits = f"({', '.join(bases)})" if bases else ""
    return "\n".join([f"{VALUE}\nclass {name}{inherits}:\n{about}\n", *fields]) + "\n\n"


def merged(kinds: list[str]) -> str:
    """A union, its literals in one."""
    words = [kind for kind in dict.fromkeys(kinds) if kind.startswith("Literal")]
    rest = [kind for kind in dict.fromkeys(kinds) if not kind.startswith("Literal")]
    inner = dict.fromkeys(
        word for kind in words for word in kind.removeprefix("Literal[")[:-1].split(", ")
    )
    return " | ".join([*rest, *([f"Literal[{', '.join(inner)}]"] if inner else [])])


def said(part: Schema) -> str:
    """The description of a key in the schema, with its default."""
    about = described(part)
    bounds = [part["x-range"]] if "x-range" in part else []
    bounds += [f"{BOUNDS[key]} {part[key]:.12g}" for key in BOUNDS if key in part]
    if bounds:
        about += f" Range: {', '.join(bounds)}."
    if "default" in part:
        about += f" Default {json.dumps(part['default'])}."
    return about


def described(part: Schema) -> str:
    """The description of a part of a schema."""
    return " ".join(part.get("description", "").split()).replace("`", "``")


def document(about: str) -> str:
    """A docstring of a class or a field."""
    body = about.replace("\\", "\\\\")
    end = " " if body.endswith('"') else ""
    if len(body) <= 88:
        return f'    """{body}{end}"""'
    first, *more = textwrap.wrap(body, 88)
    return "\n".join([f'    """{first}', *(f"    {line}" for line in more), '    """'])


def formatted(text: str) -> str:
    """As ruff formats it."""
    run = subprocess.run(
        [RUFF, "format", "--stdin-filename", PACKAGE / "elements.py", "-"],
        input=text,
        cwd=ROOT,
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    return run.stdout


SUMMARY = '''"""The types of a run's summary, ``Run.summary``.

They are those of a simulated run. In a measurement (test bed, iperf3) what was not measured is
absent or None. Made by ``ci/elements.py`` from ``docs/reference/summary.schema.json``; do not edit.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Prototype(TypedDict):
    """A law in Python that flows of the run had."""

    law: str
    """As its flows have it."""
    source: str
    """NAME@HASH, as in ``scenario.toml``."""
    probes: list[str]
    """Names of its variables, by their numbers in the table ``probes``."""


'''
ADDED = '''    name: str | None
    """The scenario's name."""
    wall_s: NotRequired[float]
    """Wall time of the run, from ``provenance.json``."""
    cpu_s: NotRequired[float]
    """CPU time of the run, from ``provenance.json``."""
    prototypes: NotRequired[list[Prototype]]
    """Laws in Python; absent without any."""
    testbed: NotRequired[dict[str, Any]]
    """Counters of the test bed; absent in a simulated run."""
    invalid: NotRequired[str | None]
    """Why a run of the test bed is invalid, or None."""
    notes: NotRequired[list[str]]
    """Of a measurement: what its file lacks, and what was not read."""
'''
"""Keys of the summary that lfnlab adds to those of the simulator."""


def summary(schema: Schema) -> str:
    """The module of a summary's types; what others use comes first."""
    classes = [
        typed(name, part, ADDED if part is schema else "")
        for name, part in [*reversed(schema["$defs"].items()), ("Summary", schema)]
    ]
    return formatted(SUMMARY + "\n\n".join(classes))


def typed(name: str, part: Schema, added: str) -> str:
    """An object as a TypedDict."""
    lines = [f"class {name}(TypedDict):\n{document(described(part))}\n\n", added]
    for key, value in part["properties"].items():
        kind = plain(value)
        is_there = key in part["required"]
        lines.append(f"    {key}: {kind if is_there else f'NotRequired[{kind}]'}\n")
        lines.append(document(described(value)) + "\n")
    return "".join(lines)


def plain(value: Schema) -> str:
    """The type of a value as JSON has it."""
    if "$ref" in value:
        return str(value["$ref"].rpartition("/")[2])
    if "anyOf" in value:
        return " | ".join(plain(other) for other in value["anyOf"])
    kinds = value["type"] if isinstance(value["type"], list) else [value["type"]]
    words = {"string": "str", "integer": "int", "number": "float", "null": "None"}
    return " | ".join(
        f"list[{plain(value['items'])}]" if kind == "array" else words[kind] for kind in kinds
    )


def schema(name: str) -> Schema:
    """A JSON Schema of the reference."""
    read: Schema = json.loads((REFERENCE / f"{name}.schema.json").read_text(encoding="utf-8"))
    return read


def modules() -> dict[Path, str]:
    """The generated modules as they should be."""
    return {
        PACKAGE / "scenario/elements.py": Elements(schema("scenario")).text(),
        PACKAGE / "results/summary.py": summary(schema("summary")),
    }


if __name__ == "__main__":
    for path, text in modules().items():
        path.write_text(text, encoding="utf-8")
