"""The frame of HTML pages: head, styles, charts. A page asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from importlib import resources


def head(title: str, *styles: str, scripts: Sequence[str] = (), simulates: bool = False) -> str:
    """The page up to its body, with a policy under which nothing runs but what is named here.

    Args:
        title: HTML.
        styles: texts of style sheets beside that of every page.
        scripts: texts that :func:`elements` puts into the body.
        simulates: whether the page has WebAssembly and a worker.
    """
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts, simulates)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # An empty icon keeps the browser from asking for one.
            '<link rel="icon" href="data:,">',
            f"<title>{title}</title>",
            "<style>" + "".join([_own("uPlot.min.css"), _own("page.css"), *styles]),
            "</style>\n</head>",
        ]
    )


def elements(scripts: Sequence[str]) -> str:
    """Charts, and then these scripts."""
    return "\n".join(f"<script>{text}</script>" for text in _texts(scripts))


def _texts(scripts: Sequence[str]) -> list[str]:
    if not scripts:
        return []
    charts = f"/* {_own('uPlot.LICENSE')} */\n{_own('uPlot.iife.min.js')}"
    return [charts, _own("chart.js"), *scripts]


def _policy(scripts: Sequence[str], simulates: bool) -> str:
    """Own scripts by their hashes, own styles and pictures; nothing of the network, no forms."""
    digests = [hashlib.sha256(text.encode()).digest() for text in _texts(scripts)]
    runs = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    runs += ["'wasm-unsafe-eval'"] if simulates else []
    own = " ".join(runs) if runs else "'none'"
    parts = [
        "default-src 'none'",
        f"script-src {own}",
        "style-src 'unsafe-inline'",
        "img-src data:",
        *(["worker-src blob:"] if simulates else []),
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(parts)


def table(headings: Sequence[tuple[str, bool]], rows: Sequence[str], classes: str = "data") -> str:
    """A table of cells; one that does not fit scrolls, or shows each row as a block.

    Args:
        headings: texts, and whether the column is of text.
        rows: HTML of the cells of each row.
        classes: of the table.
    """
    head = "".join(
        f'<th scope="col"{" class=text" if text else ""}>'
        # A long key may break behind its dots and underscores, "1 s" may not.
        f"{re.sub('(?<=[._])', '<wbr>', escape(heading)).replace('1 s', '1&nbsp;s')}</th>"
        for heading, text in headings
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="table">'
        f'<table class="{classes}"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def asset(package: str, name: str) -> bytes:
    """A file in the folder ``assets`` of a package."""
    return resources.files(package).joinpath("assets", name).read_bytes()


def _own(name: str) -> str:
    return asset(__name__, name).decode()
