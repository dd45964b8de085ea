"""Constructions that make readers stumble, searched for in the documents and in comments.

CONTRIBUTING.md asks for plain English: subject, verb, object; one idea a sentence. A pattern stands
here only if its hits are always wrong, so that the list has no exceptions.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
START = r"(?:\A|(?<=\n\n)|(?<=[.:;] )|(?<=\n- ))"
"""Of a sentence, in a paragraph on one line."""

PATTERNS = {
    START + r"What (?!if\b)[^.?|]*\.": "a what-clause as subject; name the thing",
    START + r"Who [a-z]+ [^.?|]*\.": "a who-clause as subject; name the actor",
    r"\b[Tt]hat which\b|\b[Tt]hose which\b|\b[Ww]hoever\b": "a pronoun without a noun",
    r"\b([Nn]o|[Ss]ome)body\b": "write which person, program or flow",
    r"\b(is|are|was|were) none of\b": 'a negative as noun; write "is not ..."',
    r"(?<![Tt]here )\bis no (law|store|model|trace|mean|reference|finding|condition)\b": (
        'a negative as noun; write "is not a ..."'
    ),
    r"\bbut for\b": 'write "except"',
    r"\banew\b": 'write "again", or "restarts"',
    r"\bseldom\b": 'write "rarely"',
    r"\bstrays?\b": 'write "differs from ... by"',
    r"\bto be had\b": 'write "available"',
    r"\bat hand\b(?! side)": 'write "available", or "current"',
    r"\bas ever\b": 'write "as usual"',
    r"\bforesee": 'write "predict"',
    r"\bgoes? into ours\b": 'write "ours is N times ..."',
    r"\bnothing sure\b": 'write "no measurable gain"',
    r"\b(is|are|was|were) (not |never )?said\b": 'name who says it, or write "given"',
    r"\bstands? as (the|RTT|inverse)\b": 'write "is as", or "is proportional to"',
    r"\bshared? (\w+ ){0,3}alike\b": 'write "equally"',
    r"\brouters? that speaks?\b|\bspeaks? (VCP|XCP|RCP|JetMax)\b|\blinks? that speaks?\b": (
        "a router has a protocol; it does not speak"
    ),
    r"\bhears?\b": "a flow gets a signal; it does not hear",
    r"\b[Ww]hat (came|comes) out\b": 'write "results"',
    r"\bin vain\b": 'write "spurious", or "without effect"',
    r"\bnow and then\b": 'write "at intervals", or "sometimes"',
    r"\btaken back\b": 'a reduction is "undone"',
    r"\bsteers? by\b": 'write "a law with delivery rates", or name the signal',
    r"\blooked at\b": 'write "checked", "sampled" or "served"',
    r"\bcomes? down\b": 'write "is reduced"',
    r"\bwaits? awake\b|\bwaited for awake\b": 'write "busy-waits"',
    r"\bNot (available|modelled|drawn|run) are\b": "the subject comes first",
    r"\bas the inverse\b": 'write "proportional to 1/..."',
    r"\bnext to none\b": 'write "almost no ..."',
    r"\bsays? (little|nothing) of\b": 'write "does not predict ...", or "is not representative"',
}
ERRORS = {
    r"\bis no (?!longer\b)\w": 'a negative as noun; write "is not a ..."',
    r"; there (is|are)\b": 'write "allowed: ..."',
    r"\bis not there\b|\bnone is there\b|\bit is there\b": 'write "exists", or "does not exist"',
    r"\bgoes on\b": 'write "continues"',
    r"\bmend it\b": 'write "repair it: COMMAND"',
    r"\bsaid\b|\bsays? by what\b|[:;] say\b": 'write "given", or "name ... with --OPTION"',
    r"(?<!did you mean \{\})\?": "an error states what is wrong; it does not ask",
}
"""Of texts in ``raise`` statements; an expression in them reads ``{}``."""
COMMENTS = {
    r"\A(Within |After |Every |Up to )so (many|much|long)\b": "name the number and its unit",
    r"\A(What|Who|Whatever|That which) ": "a doc comment begins with the thing that it describes",
}

GENERATED = {"docs/papers.md", "docs/validation.md", "docs/dependencies.md"}
"""Pages whose sentences come from code, and the folders of such pages."""
GENERATED_SOURCES = {"python/lfnlab/scenario/elements.py"}
FOLDERS = [
    *("benches", "ci", "kernel", "laws", "linux", "papers", "python/lfnlab", "studies", "tests"),
    "validation",
    *(
        "crates/conformance",
        "crates/emulator",
        "crates/header",
        "crates/law",
        "crates/path",
        "crates/python",
        "crates/tcp",
    ),
    *("crates/keys", "crates/scenario", "crates/sim", "crates/transfer", "crates/udt"),
    "crates/units",
]
"""Whose comments are searched."""
FENCE = re.compile(r"(?ms)^(`{3,})[^\n]*\n.*?^\1$")
LINE_COMMENT = re.compile(r"(?m)(?:^[ \t]*//[/!]?(?!/)[^\n]*\n?)+")
BLOCK_COMMENT = re.compile(r"(?s)/\*.*?\*/")
PYTHON_COMMENT = re.compile(r'(?s)"""(.*?)"""')


def tracked(*patterns: str) -> list[str]:
    run = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return run.stdout.splitlines()


DOCUMENTS = [
    name
    for name in tracked("*.md")
    if name not in GENERATED
    and not name.startswith(("docs/reference/", "docs/papers/", "docs/evaluations/"))
]
SOURCES = [
    name
    for folder in FOLDERS
    for name in tracked(f"{folder}/**")
    if name.endswith((".rs", ".h", ".c", ".py")) and name not in GENERATED_SOURCES
]


def unwrapped(text: str) -> str:
    """Paragraphs and list items on one line each."""
    return re.sub(r"(?<=\S)[ \t]*\n(?![ \t]*(?:\n|[-*|#] |\||\d+\. ))[ \t]*", " ", text)


def comments(name: str) -> list[str]:
    """Comments of a source without their marks, docstrings of Python."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".py"):
        return [found[1].strip() for found in PYTHON_COMMENT.finditer(text)]
    found = [found[0] for found in LINE_COMMENT.finditer(text)]
    found += [found[0] for found in BLOCK_COMMENT.finditer(text)]
    marks = re.compile(r"(?m)^[ \t]*(?://[/!]?|/?\*+/?)[ \t]?|\*/")
    return [marks.sub("", comment).strip() for comment in found]


def hits(text: str, patterns: dict[str, str]) -> list[str]:
    """Each hit with its advice."""
    text = unwrapped(text)
    return [
        f'"{found[0][:80]}": {advice}'
        for pattern, advice in patterns.items()
        for found in re.finditer(pattern, text)
    ]


def raised(name: str) -> list[str]:
    """Texts that a source gives to exceptions."""
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    calls = [
        node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None
    ]
    found = []
    for call in calls:
        fields = {
            id(part)
            for node in ast.walk(call)
            if isinstance(node, ast.JoinedStr)
            for part in ast.walk(node)
            if part is not node
        }
        for node in ast.walk(call):
            if isinstance(node, ast.JoinedStr):
                found.append(
                    "".join(
                        str(part.value) if isinstance(part, ast.Constant) else "{}"
                        for part in node.values
                    )
                )
            elif isinstance(node, ast.Constant) and id(node) not in fields:
                found += [node.value] if isinstance(node.value, str) else []
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_are_plain(name: str) -> None:
    text = FENCE.sub("", (ROOT / name).read_text(encoding="utf-8"))
    assert not hits(text, PATTERNS)


def test_comments_are_plain() -> None:
    found = [
        f"{name}: {hit}"
        for name in SOURCES
        for comment in comments(name)
        for hit in hits(comment, PATTERNS | COMMENTS)
    ]
    assert not found, "\n".join(found)


def test_errors_are_plain() -> None:
    found = [
        f"{name}: {hit}"
        for name in tracked("python/lfnlab/**.py")
        for text in raised(name)
        for hit in hits(text, ERRORS)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "What no processor can predict has no branch.",
        "It ends.\n\nWhat a sender\nmay hold is limited.",
        "Who waits for 50 µs never sleeps.",
        "the difference is none of chance",
        "This is no store.",
        "all rows but for\nthe last",
        "a router that speaks",
        "libudt's goodput goes into ours 7 times",
        "Not modelled are collisions.",
        "throughputs are as the inverse RTTs",
    ],
)
def test_stumbling_blocks_are_found(text: str) -> None:
    assert hits(text, PATTERNS)


@pytest.mark.parametrize(
    "text",
    [
        "What does a router cost? Which law is fair?",
        "## What it costs\n\nA law costs 0.2 µs.",
        "There is no law of this name.",
        "It says what the paper leaves open.",
    ],
)
def test_plain_sentences_pass(text: str) -> None:
    assert not hits(text, PATTERNS)
