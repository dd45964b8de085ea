"""The tables of ``lfn laws``."""

from __future__ import annotations

from collections.abc import Iterable

from lfnlab.analysis.table import Table, plain
from lfnlab.control_laws import stacks
from lfnlab.control_laws.registry import LawInfo
from lfnlab.control_laws.registry import laws as all_laws
from lfnlab.printable import say


def laws(chosen: Iterable[LawInfo] | None = None) -> None:
    """Print a line for each law, or for those chosen; for all also one for each stack."""
    headings = ("law", "family", "signals", "targets", "slow start", "variants", "source")
    rows = tuple(
        (
            law.name,
            law.family,
            ",".join(law.signals),
            ",".join(law.targets),
            law.slow_start,
            ",".join(law.variants),
            law.source,
        )
        for law in (all_laws() if chosen is None else chosen)
    )
    say(*plain(Table(headings, rows, len(headings))), sep="\n")
    if len(rows) == len(all_laws()) and stacks.stacks():
        say()
        _stacks()


def _stacks() -> None:
    headings = ("stack", "controllers", "package", "version", "from", "here")
    rows = tuple(
        (
            stack.name,
            ",".join(stack.laws),
            stack.package,
            stack.version,
            stack.source,
            "yes" if stack.here else f"make stacks STACK={stack.name}",
        )
        for stack in stacks.stacks()
    )
    say(*plain(Table(headings, rows, len(headings))), sep="\n")
