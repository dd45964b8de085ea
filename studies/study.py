"""A study: cases that are run, a table with a row per result, and the page that answers.

``python -m studies.NAME`` runs what ``build/NAME`` does not have yet and writes
``studies/reference/NAME.csv``, whose first line says by what it was made, then ``docs/NAME.md`` and
its figures; ``--page`` writes the page alone.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from lfnlab.results.provenance import code_version

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"
SHADES = 12
"""Colours of a heat map; the numbers in its cells say the rest."""


@dataclass(frozen=True)
class Study:
    """The work of ``python -m studies.NAME``."""

    name: str
    about: str
    """The docstring of its module."""
    run: Callable[[Sequence[str], Path], pl.DataFrame]
    """Runs these laws into a store; the rows of the table."""
    page: Callable[[pl.DataFrame, str], str]
    """The page, from the table and what made it; its figures are drawn too."""
    laws: tuple[str, ...]
    part_of: str | None = None
    """The study whose page has this one's table; default one of its own."""

    @property
    def table(self) -> Path:
        """The committed table."""
        return ROOT / "studies" / "reference" / f"{self.name}.csv"

    @property
    def answer(self) -> Path:
        """The committed page."""
        return ROOT / "docs" / f"{(self.part_of or self.name).replace('_', '-')}.md"

    def committed(self) -> tuple[pl.DataFrame, str]:
        """The table that is in the repository, and by what it was made."""
        stamp = self.table.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        return pl.read_csv(self.table, comment_prefix="#", infer_schema_length=None), stamp

    def main(self) -> None:
        """Parses the command line, runs, writes."""
        parser = argparse.ArgumentParser(
            prog=f"python -m studies.{self.name}", description=self.about.split("\n")[0]
        )
        parser.add_argument("--laws", help="names, with commas; the table is printed, not kept")
        store = Path("build") / self.name.replace("_", "-")
        parser.add_argument("--out", type=Path, default=store, help="results store")
        parser.add_argument("--page", action="store_true", help="only rewrite the page")
        asked = parser.parse_args()
        if asked.laws:
            print(self.run(asked.laws.split(","), asked.out).write_csv(), end="")
            return
        if not asked.page:
            began_s = time.process_time()
            table = self.run(self.laws, asked.out)
            spent = f"{time.process_time() - began_s:.0f} s of CPU"
            hashes = f", hash `{digest(table['hash'])}`" if "hash" in table.columns else ""
            stamp = f"`{parser.prog}` with {code_version()} ({spent}){hashes}."
            self.table.write_text(f"# {stamp}\n" + table.write_csv(), encoding="utf-8")
        self.answer.write_text(self.page(*self.committed()), encoding="utf-8")


def digest(hashes: Iterable[str]) -> str:
    """Of the hashes of several results."""
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()[:16]
