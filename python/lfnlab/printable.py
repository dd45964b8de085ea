"""Text that others chose, made safe where it is shown: names, laws, values of sweeps, folders.

A terminal obeys control characters, a page HTML and links, a spreadsheet formulas. Everything that
shows such text passes one function here.
"""

from __future__ import annotations

import re
import sys
from typing import TextIO

_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x80-\x9f]")
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that do not show, or that change how others show."""


def line(text: object) -> str:
    r"""Text without control characters, line breaks and characters that hide or reverse others.

    >>> line("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\nc'
    """
    said = str(text)
    if said.isascii() and said.isprintable():
        return said
    import unicodedata

    return "".join(
        ascii(sign)[1:-1] if unicodedata.category(sign) in _HIDDEN else sign for sign in said
    )


def lines(text: object) -> str:
    """The same of several lines, which may have tabs."""
    return _ASCII_CONTROL.sub(lambda found: ascii(found[0])[1:-1], str(text))


def say(*values: object, sep: str = " ", end: str = "\n", file: TextIO | None = None) -> None:
    """Print for a terminal: :func:`lines` of all."""
    file = sys.stdout if file is None else file
    print(lines(sep.join(map(str, values))), end=end, file=file)


def markdown(text: str) -> str:
    r"""A cell of a Markdown table, without HTML and links.

    >>> print(markdown("<b>|[a](b)"))
    &lt;b&gt;\|[a]\(b)
    """
    said = line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"(?<=\])(?=[(\[])|(?=\|)", r"\\", said)


def csv(text: str) -> str:
    """A cell of a CSV table: a spreadsheet takes it for a text, not for a formula.

    >>> csv("=1+1"), csv("reno"), csv("-1.5")
    ("'=1+1", 'reno', '-1.5')
    """
    if text[:1] not in "=+-@\t\r\n" or not text or re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", text):
        return text
    return f"'{text}"
