"""The page of ``lfn --help``, as cyclopts makes it, without importing any command."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from lfnlab.cli.commands import COMMANDS, HELP, OTHERS

_CODE, _BLOCK = "bold cyan on black", "#f8f8f2 on #272822"


def show(console: Console | None = None) -> None:
    """Print the page, by default to stdout."""
    console = console or Console()
    console.print(Text.assemble(("Usage: ", "bold"), ("lfn COMMAND", "bold")), end="\n\n")
    with console.capture() as text:
        for paragraph in _paragraphs():
            console.print(paragraph)
            console.print()
    console.print(Text.from_ansi(text.get().rstrip()), end="\n\n", soft_wrap=True)
    width = -(-35 * console.width // 100)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="cyan", max_width=width, overflow="ellipsis")
    table.add_column(overflow="fold")
    for name, does in sorted((name, does) for name, (_, does) in COMMANDS.items()):
        table.add_row(_name(name, width), _inline(does))
    for name, does in OTHERS.items():
        table.add_row(_name(name, width), _inline(does))
    console.print(Panel(table, title="Commands", title_align="left", padding=(0, 1)))


def _paragraphs() -> Iterator[Padding]:
    """The text above the commands; its indented lines are what a user types."""
    for text in HELP.strip().split("\n\n"):
        if text.startswith("    "):
            lines = "\n".join(line.removeprefix("    ") for line in text.split("\n"))
            yield Padding(Text(lines, _BLOCK, overflow="fold"), 1, style="on #272822")
        else:
            yield Padding(_inline(text.replace("\n", " ")), 0)


def _name(name: str, width: int) -> str:
    parts = textwrap.wrap(name, width, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(parts)


def _inline(text: str) -> Text:
    """A sentence; what stands between backticks is to be typed."""
    parts = enumerate(re.split("`(.*?)`", text))
    return Text.assemble(*((part, _CODE if place % 2 else "") for place, part in parts))
