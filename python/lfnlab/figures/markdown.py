"""The cards of laws, which are Markdown, as HTML."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from markdown_it.token import Token

_DOWN = 2
"""A heading of a card stands so many levels lower on a page that holds several."""


def as_html(text: str, laws: Container[str]) -> str:
    """A text in Markdown as HTML; HTML in it is shown as text.

    Args:
        text: the text.
        laws: names of laws that the page describes under ``#law-NAME``. A link to the card of
            another, and to a file beside it, is its words alone: the page has no such file.
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + _DOWN)}"
        if token.children:
            token.children = _linked(token.children, laws)
    return str(reader.renderer.render(tokens, reader.options, {}))


def _linked(tokens: Sequence[Token], laws: Container[str]) -> list[Token]:
    """The tokens of a line, with the links that lead somewhere."""
    kept: list[Token] = []
    open_links: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            href = str(token.attrGet("href") or "")
            card = re.fullmatch(r"(?:.*/)?([\w-]+)\.md", href)
            if card and card[1] in laws and "/docs/" not in href:
                token.attrSet("href", f"#law-{card[1]}")
            open_links.append(re.match(r"#|https?://", str(token.attrGet("href"))) is not None)
        if token.type in ("link_open", "link_close"):
            leads = open_links[-1] if token.type == "link_open" else open_links.pop()
            if not leads:
                continue
        kept.append(token)
    return kept
