"""Text that pages take from the laboratory: laws, keys, columns, Python's docstrings.

``reference.py`` puts it into the pages.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygments.lexers.special import TextLexer

import lfnlab
import lfnlab.errors
from lfnlab import _core, laws
from lfnlab.figures.card import PATH, picture
from lfnlab.figures.columns import unit
from lfnlab.figures.plot import rendered
from lfnlab.laboratory import page as laboratory
from lfnlab.papers import verdicts
from lfnlab.results.tables import MEASURED

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    "lfnlab": "Scenarios, runs and sweeps",
    "lfnlab.errors": "Errors",
    "lfnlab.metrics": "Metrics of tables",
    "lfnlab.analysis.measure": "Metrics of stored runs",
    "lfnlab.statistics": "Confidence intervals",
    "lfnlab.judge": "Scores of laws",
    "lfnlab.env": "Environments for agents",
    "lfnlab.attacker": "Attacks on laws",
    "lfnlab.theory": "Closed forms and fluids",
    "lfnlab.formats.pcap": "Packet traces",
}
BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )


def registry() -> str:
    """A line a law, with its card."""
    rows = []
    for law in laws():
        card = ROOT / "laws" / "cards" / f"{law.name}.md"
        name = f"[{law.name}](../../laws/cards/{law.name}.md)" if card.is_file() else law.name
        rows.append(
            [
                name,
                law.title,
                ", ".join(law.variants),
                law.family,
                ", ".join(law.signals),
                law.slow_start,
                ", ".join(law.targets),
                law.source,
            ]
        )
    head = ["law", "", "variants", "family", "signals", "slow start", "runs in", "source"]
    return table(head, rows)


def scenario() -> dict[str, Any]:
    """The JSON Schema of a scenario."""
    text = (ROOT / "docs/reference/scenario.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def keys() -> str:
    """A section for each table of a scenario, with its keys."""
    schema = scenario()
    sections = ["## Top level\n\n" + _object(schema)]
    for name, part in sorted(schema["$defs"].items()):
        about = " ".join(part.get("description", "").split())
        sections.append(f"## {name}\n\n{about}\n\n{_object(part)}")
    return "\n\n".join(sections)


def top() -> str:
    """The keys of a scenario that are no tables."""
    schema = scenario()
    plain = {
        key: value
        for key, value in schema["properties"].items()
        if "$ref" not in value and "items" not in value
    }
    return _object({"properties": plain, "required": schema["required"]})


def definition(name: str) -> str:
    """The keys of one kind of table; links lead to the page of all keys."""
    return _object(scenario()["$defs"][name]).replace("](#", "](reference/keys.md#")


def choices(name: str, *common: str) -> str:
    """A line for each kind of a table, or for each key of which exactly one must be there.

    Keys that are ``common`` to all kinds are left out.
    """
    schema = scenario()["$defs"]
    part = schema[name]
    rows = []
    for other in part["oneOf"]:
        if alone := only_required(other):
            (key,) = alone
            value = part["properties"][key]
            of_list = value.get("items", value)
            own = schema[of_list["$ref"].rpartition("/")[2]]
        else:
            key, value, own = other["properties"]["kind"]["const"], other, other
        about = " ".join(value["description"].split()).rstrip(".")
        cells = [
            _short(own, field) for field in own["properties"] if field not in ("kind", *common)
        ]
        rows.append([f"`{key}`", about, ", ".join(cells)])
    head = "key" if only_required(part["oneOf"][0]) else "kind"
    return table([head, "meaning", "keys, with their defaults"], rows)


def _short(part: dict[str, Any], key: str) -> str:
    """A key with its default."""
    if key in part.get("required", []):
        return f"**`{key}`**"
    default = part["properties"][key].get("default", "")
    return f"`{key}` {default if isinstance(default, str) else json.dumps(default)}".rstrip()


def agreement() -> str:
    """How many figures agree with each reference, from the first table of docs/validation.md."""
    text = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    lines = [line.strip("|").split("|") for line in text.split("\n") if line.startswith("| [")][:4]
    rows = [[cell.strip() for cell in line] for line in lines]
    head = ["compared with", "figures", "aim", "agree", "differ by a named rule", "not explained"]
    return table(
        head,
        (
            [re.sub(r"\[(.*)\].*", r"\1", peer), figures, aim, *rest]
            for peer, _, _, aim, figures, *rest in rows
        ),
    )


def claims() -> str:
    """How many claims of the papers hold."""
    found = sum(verdicts.counts().values(), Counter())
    untested = found["cannot be tested"]
    return (
        f"[Five papers](papers.md) have {found.total()} claims: {found['holds']} hold, "
        f"{found['does not hold']} do not, {found['undecided']} are undecided, "
        f"and {found['depends']} depend on choices that the paper leaves open"
        f"{f'; {untested} cannot be tested' if untested else ''}."
    )


def tables() -> str:
    """A section for each table of a run, with its columns."""
    sections = []
    for name, meaning, columns in _core.tables():
        rows = [
            [f"`{column}`", kind, unit, " ".join([about, *_codes(codes)])]
            for column, kind, unit, about, codes in columns
        ]
        head = ["column", "type", "unit", "meaning"]
        sections.append(f"### {name}\n\nA row is {meaning}.\n\n{table(head, rows)}")
    rows = [[f"`{one.name}`", one.kind, one.unit, one.meaning] for one in MEASURED]
    head = ["column", "type", "unit", "meaning"]
    about = "Columns that the samples of a [measurement](../import.md) have besides those of flows."
    return "\n\n".join([*sections, f"### flows of a measurement\n\n{about}\n\n{table(head, rows)}"])


def _codes(words: Sequence[str]) -> list[str]:
    return [", ".join(f"{code} {word}" for code, word in enumerate(words)) + "."] if words else []


def summary() -> str:
    """A section for each object in the summary of a run, with its keys in the order of the file."""
    text = (ROOT / "docs/reference/summary.schema.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    sections = []
    for name, part in {"Summary": schema, **schema["$defs"]}.items():
        keys = dict.fromkeys([*part["required"], *part["properties"]])
        rows = [
            [f"`{key}`", _type(value), unit(key), _says(value)]
            for key, value in ((key, part["properties"][key]) for key in keys)
        ]
        lines = [f"### {name}", _says(part), table(["key", "value", "unit", "meaning"], rows)]
        sections.append("\n\n".join(lines))
    return "\n\n".join(sections)


def _object(part: dict[str, Any]) -> str:
    """Its keys; of each alternative, too."""
    found = []
    if "properties" in part:
        required = part.get("required", [])
        rows = [
            [f"`{key}`", _type(value), ("**required.** " if key in required else "") + _says(value)]
            for key, value in part["properties"].items()
        ]
        found.append(table(["key", "value", ""], rows))
    if alone := [f"`{key}`" for other in part.get("oneOf", []) for key in only_required(other)]:
        found.append(f"Exactly one of {', '.join(alone)} must be there.")
        return "\n\n".join(found)
    for other in part.get("oneOf", part.get("anyOf", [])):
        if "properties" in other:
            about = " ".join(other.get("description", "").split())
            found.append(f"{about}\n\n{_object(other)}".strip())
        else:
            found.append(f"- {_type(other)}: {_says(other)}".rstrip(": "))
    return "\n\n".join(found)


def only_required(part: dict[str, Any]) -> list[str]:
    """Keys of an alternative that is told by them alone."""
    required: list[str] = part.get("required", [])
    return required if set(part) == {"required"} else []


def _type(value: dict[str, Any]) -> str:
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return ", ".join(f"`{json.dumps(item)}`" for item in value["enum"])
    for word in ("anyOf", "oneOf", "allOf"):
        if word in value:
            return " or ".join(_type(item) for item in value[word])
    kind = value.get("type", "any")
    if kind == "array":
        return f"list of {_type(value.get('items', {}))}"
    kinds = kind if isinstance(kind, list) else [kind]
    says = {"string": "text", "integer": "whole number"}
    words = " or ".join(says.get(kind, str(kind)) for kind in kinds)
    if value.get("minimum") == 0 and "maximum" not in value and kind != "number":
        return words
    return ", ".join([words, *(f"{BOUNDS[key]} {value[key]}" for key in BOUNDS if key in value)])


def _says(value: dict[str, Any]) -> str:
    about = " ".join(value.get("description", "").split())
    if "x-range" in value:
        about += f" Range: {value['x-range']}."
    if "default" in value:
        about += f" Default `{json.dumps(value['default'])}`."
    return about


def card(law: str, text: str) -> str:
    """A card that begins with its picture, which is drawn here, and has its vectors folded."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    drawn = rendered(picture(law), ("png",), dots_per_inch=130)
    (PICTURES / f"{law}.png").write_bytes(drawn["png"])
    said = f"Window of one flow of {law} on {PATH}, and the mean window over the loss rate"
    title, rest = text.split("\n", 1)
    rest = re.sub(
        r"(?ms)^```law\n(.*?)^```$",
        lambda block: (
            f"<details><summary>Test vectors, {block[1].count(chr(10))} lines</summary>\n\n"
            f"{block[0]}\n\n</details>"
        ),
        rest,
    )
    return f"{title}\n\n![{said}](../../build/cards/{law}.png)\n{rest}"


def python() -> str:
    """Directives for each module's public names."""
    errors = set(vars(lfnlab.errors)) & set(lfnlab.__all__)
    sections = []
    for module, title in MODULES.items():
        options = [":members:", ":inherited-members: object,LawState,BaseException,dict,tuple"]
        if hasattr(import_module(module), "__all__"):
            told = errors if module == "lfnlab" else lfnlab.__all__
            options += [":imported-members:", f":exclude-members: {','.join(sorted(told))}"]
        lines = [f".. automodule:: {module}", *(f"   {option}" for option in options)]
        sections.append("\n".join([f"## {title}", "", "```{eval-rst}", *lines, "```"]))
    return "\n\n".join(sections)


PICTURES = ROOT / "build" / "cards"


def reshape(
    _app: Sphinx, what: str, _name: str, _of: object, _options: object, lines: list[str]
) -> None:
    """Make fields of what docstrings of metrics say by name; napoleon does the rest."""
    if what in {"attribute", "property"}:
        lines.insert(0, "\\ ")  # else the words before a colon would be a type
    lines[:] = [re.sub("^(Formula|Unit|Source): ", r":\1: ", line) for line in lines]


def lead_to_the_laboratory(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Its page of the documents begins with a link to it."""
    if page == "docs/laboratory":
        link = f'<p><a href="../{laboratory.NAME}">Open the laboratory</a></p>'
        context["body"] = context["body"].replace("</h1>", f"</h1>\n{link}", 1)


def add_the_laboratory(app: Sphinx, error: Exception | None) -> None:
    """The laboratory is a file of the site."""
    if error is None:
        laboratory.write_page(Path(app.outdir) / laboratory.NAME)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", lead_to_the_laboratory)
    app.connect("build-finished", add_the_laboratory)
    app.connect("autodoc-process-docstring", reshape, priority=400)
    app.add_lexer("law", TextLexer)
    return {"parallel_read_safe": True}
