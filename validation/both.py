"""One scenario on Linux and here, and what differs.

$ python -m validation both FILE.toml [FOLDER]     FOLDER keeps Linux's files
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path as FilePath

from lfnlab import Scenario, _core
from lfnlab.errors import LabError
from lfnlab.testbed import virtual_run, virtual_time

from . import outcome


def main(arguments: list[str]) -> None:
    """Parses the command line and prints both sides' figures, flow by flow."""
    parser = argparse.ArgumentParser(prog="python -m validation both", description=__doc__)
    parser.add_argument("file", type=FilePath)
    parser.add_argument("folder", type=FilePath, nargs="?")
    asked = parser.parse_args(arguments)
    if why := outcome.missing():
        raise SystemExit(f"validation: SKIPPED both: {why}")
    text = asked.file.read_text()
    try:
        resolved = Scenario.from_toml(text).check(str(asked.file)).to_document()
        told = virtual_time.translated(resolved)
        with tempfile.TemporaryDirectory() as kept:
            ran = virtual_run.run(outcome.PROGRAM, asked.folder or FilePath(kept), "run", told)
    except LabError as error:
        raise SystemExit(str(error)) from None
    [run] = _core.run_many([_core.Scenario(text, str(asked.file))], 1, None)
    assert run is not None
    theirs, mine = outcome.of_linux(resolved, ran), outcome.of_ours(resolved, run)
    for number, (a, b) in enumerate(zip(theirs.flows, mine.flows, strict=True)):
        print(f"flow {number}        Linux         ours")
        for name, value in vars(a).items():
            print(f"  {name:12} {value:12.6g} {getattr(b, name):12.6g}")
    print(
        f"drops {theirs.drops:.0f} / {mine.drops:.0f}, marks {theirs.marks:.0f} / {mine.marks:.0f}"
    )
    verdict = outcome.compare(theirs, mine)
    print("agree" if verdict.agrees else f"differ, {verdict.worst:.1f} times what is allowed:")
    print(*verdict.what, sep="\n")
