"""All benchmarks, beside what each is compared with, into benches/table.json.

$ python -m benches [PART...] [--rounds N] [--print]
$ python -m benches --case WORDS

Run from the repository's root, on an idle machine; `make reference` then puts the figures into the
pages. With names of parts only these are measured, and the record keeps the other rows. A part
whose peer is missing is skipped, and stays as it was. --print shows the rows and records nothing;
--case does so with the cases of the simulator whose names have these words.
"""

from __future__ import annotations

import argparse
import compileall
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from validation import ns2

import lfnlab

from . import commands, compare, compare_ns, compare_udt, emulator, engine, sweep
from .cases import ROW_1
from .table import lines, print_rows, record

if TYPE_CHECKING:
    from .row import Row

#: Of each part: the peer of its ratios, the tool that this machine lacks, and its measurement.
PARTS: dict[str, tuple[str, Callable[[], str | None], Callable[[int], list[Row]]]] = {
    "a packet of the simulator": (ROW_1.name, lambda: None, engine.rows),
    "a packet beside ns-2": ("ns-2, above 1 where lfnlab is faster", ns2.missing, compare_ns.rows),
    "whole processes beside ns-2": (
        "ns-2, above 1 where lfnlab is faster",
        ns2.missing,
        compare_ns.whole_rows,
    ),
    "commands": ("a bare interpreter", lambda: None, commands.rows),
    "sweeps": ("the same runs with their tables", lambda: None, lambda _: sweep.rows()),
    "compares": ("", lambda: None, lambda _: compare.rows()),
    "transfers": ("kernel TCP", compare_udt.missing, compare_udt.rows),
    "path emulator": ("a program that reads the clock", emulator.missing, emulator.rows),
}


def main() -> None:
    """Measures, records, and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--print", action="store_true", help="record nothing")
    parser.add_argument("--case", metavar="WORDS", help="of the simulator; nothing is recorded")
    asked = parser.parse_args()
    if asked.case is not None:
        print_rows(engine.rows(asked.rounds, asked.case))
        return
    if unknown := [part for part in asked.parts if part not in PARTS]:
        parser.error(f"no part {unknown[0]!r}; there are: {', '.join(PARTS)}")
    compiled()
    for part in asked.parts or PARTS:
        beside, missing, measure = PARTS[part]
        if lacks := missing():
            print(f"SKIPPED {part}: {lacks}", file=sys.stderr)
            continue
        if asked.print:
            print_rows(measure(asked.rounds))
        else:
            record(part, beside, measure, asked.rounds)
    if asked.print:
        return
    print(*lines(), sep="\n")


def compiled() -> None:
    """Bytecode of all modules, as after a user's first command; some environments write none."""
    for folder in (sysconfig.get_path("purelib"), Path(lfnlab.__file__).parent):
        compileall.compile_dir(folder, quiet=2)


if __name__ == "__main__":
    main()
