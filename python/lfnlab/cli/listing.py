"""The table of ``lfn laws``."""

from __future__ import annotations

from collections.abc import Iterable

from lfnlab.analysis.table import Table, plain
from lfnlab.control_laws.registry import LawInfo
from lfnlab.control_laws.registry import laws as all_laws
from lfnlab.printable import say


def laws(chosen: Iterable[LawInfo] | None = None) -> None:
    """Print a line for each law, or for those chosen."""
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
