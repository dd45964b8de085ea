"""Constructions that make readers stumble, searched for in pages and comments.

CONTRIBUTING.md asks for plain English. A pattern stands here only if its hits are always wrong.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
START = r"(?:\A|(?<=\n\n)|(?<=[.:;] )|(?<=\n- ))"
"""Of a sentence, in a paragraph on one line."""
PATTERNS = {
    START + r"What (?!if\b)[^.?|]*\.": "a what-clause as subject; name the thing",
    START + r"Who [a-z]+ [^.?|]*\.": "a who-clause as subject; name the actor",
    r"\b[Tt]hat which\b|\b[Tt]hose which\b|\b[Ww]hoever\b": "a pronoun without a noun",
    r"\b([Nn]o|[Ss]ome)body\b": "write which person, program or flow",
    r"\b(is|are|was|were) none of\b": 'a negative as noun; write "is not ..."',
    r"\bbut for\b": 'write "except"',
    r"\banew\b": 'write "again", or "restarts"',
    r"\bseldom\b": 'write "rarely"',
    r"\bto be had\b": 'write "available"',
    r"\bas ever\b": 'write "as usual"',
    r"\bforesee": 'write "predict"',
    r"\b(is|are|was|were) (not |never )?said\b": 'name who says it, or write "given"',
    r"\brouters? that speaks?\b|\bspeaks? (VCP|XCP|RCP|JetMax)\b": "a router has a protocol",
    r"\bhears?\b": "a flow gets a signal; it does not hear",
    r"\b[Ww]hat (came|comes) out\b": 'write "results"',
    r"\bin vain\b": 'write "spurious", or "without effect"',
    r"\btaken back\b": 'a reduction is "undone"',
    r"\blooked at\b": 'write "checked", "sampled" or "served"',
    r"\bwaits? awake\b|\bwaited for awake\b": 'write "busy-waits"',
    r"\bNot (available|modelled|drawn|run) are\b": "the subject comes first",
}
COMMENTS = {
    r"\A(What|Who|Whatever|That which) ": "a doc comment begins with the thing that it describes",
}
#: Their sentences come from code.
GENERATED = (
    "docs/papers",
    "docs/validation.md",
    "python/lfnlab/scenario/elements.py",
)
FENCE = re.compile(r"(?ms)^(`{3,})[^\n]*\n.*?^\1$")
COMMENT = re.compile(r"(?ms)(?:^[ \t]*//[/!]?(?!/)[^\n]*\n?)+|/\*.*?\*/")
DOCSTRING = re.compile(r'(?s)""".*?"""')
MARK = re.compile(r'(?m)^[ \t]*(?://[/!]?|/?\*+/?)[ \t]?|\*/|"""')


def tracked(*patterns: str) -> list[str]:
    run = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [name for name in run.stdout.splitlines() if not name.startswith(GENERATED)]


def hits(name: str, text: str, patterns: dict[str, str]) -> list[str]:
    """Each hit with its advice; paragraphs and list items are read as one line."""
    text = re.sub(r"(?<=\S)[ \t]*\n(?![ \t]*(?:\n|[-*|#] |\||\d+\. ))[ \t]*", " ", text)
    return [
        f'{name}: "{found[0][:80]}": {advice}'
        for pattern, advice in patterns.items()
        for found in re.finditer(pattern, text)
    ]


def test_documents_are_plain() -> None:
    pages = {name: (ROOT / name).read_text(encoding="utf-8") for name in tracked("*.md")}
    assert len(pages) > 50
    found = [
        hit for name, text in pages.items() for hit in hits(name, FENCE.sub("", text), PATTERNS)
    ]
    assert not found, "\n".join(found)


def test_comments_are_plain() -> None:
    found = []
    names = tracked("*.rs", "*.c", "*.h", "*.py")
    for name in names:
        text = (ROOT / name).read_text(encoding="utf-8")
        for comment in (DOCSTRING if name.endswith(".py") else COMMENT).finditer(text):
            found += hits(name, MARK.sub("", comment[0]).strip(), PATTERNS | COMMENTS)
    assert len(names) > 500
    assert not found, "\n".join(found)


def test_a_stumbling_block_is_found() -> None:
    for text in (
        "What no one predicts has no branch.",
        "It ends.\n\nWhat a sender\nmay hold is limited.",
    ):
        assert hits("", text, PATTERNS)
    assert not hits("", "What does a router cost? Which law is fair?", PATTERNS)
