"""``lfn attack``: paths that hurt a law. Heavy modules wait until it is called."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lfnlab.cli.options import Jobs, Json, Names, On, OptionalOut
from lfnlab.cli.options import backend as backend_of
from lfnlab.cli.progress import bar
from lfnlab.printable import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lfnlab.attacker import Attack, Elsewhere

OK, FAILED = 0, 1


def attack(
    law: str,
    /,
    *,
    beside: Names = (),
    runs: int = 20_000,
    seed: int = 1,
    minutes: float | None = None,
    out: OptionalOut = None,
    jobs: Jobs = None,
    on: On = "simulator",
    figures: Annotated[bool, Parameter(help="Draw a figure for each weakness.")] = True,
    json: Json = False,
) -> int:
    """Search for paths, losses and cross traffic that hurt a law more than others.

    A weakness counts where another law on the same path has three times the goodput, leaves a CUBIC
    neighbour three times as much, or has a third of the queue or of the retransmissions with as
    much goodput. Each is shrunk to at most five keys that differ from a plain dumbbell. Examples:

        lfn attack reno
        lfn attack bbr --runs 5000 --out weak
        lfn attack ./mine.h --beside cubic,bbr
        lfn attack cubic --on linux

    The same seed finds the same, byte for byte. The results directory has a scenario, a sentence
    and a figure for each weakness, `attack.md` and `attack.json`.

    Args:
        law: NAME, NAME:VARIANT, FILE.h or FILE.py:CLASS.
        beside: Laws that stand in its place, with commas between; default cubic and bbr3, for one
            of them reno.
        runs: Simulations at most; a tenth of them confirms and shrinks.
        seed: Of the search.
        minutes: At most so long; the result then depends on the machine.
        out: Results directory; default lfn-attack-LAW. An interrupted attack goes on there.
        on: With linux each weakness runs on Linux in virtual time, too.
    """
    from lfnlab.attacker.elsewhere import build_of, confirm
    from lfnlab.attacker.files import write_all
    from lfnlab.attacker.weaknesses import attack as attacked

    backend = backend_of(on)
    folder = out or Path(f"lfn-attack-{Path(law).name.replace(':', '-')}")
    with bar() as progress:
        made = attacked(
            law,
            beside=beside,
            runs=runs,
            seed=seed,
            minutes=minutes,
            out=folder,
            jobs=jobs,
            progress=progress,
        )
    write_all(made, folder)
    elsewhere: dict[str, Elsewhere] = {}
    if on == "linux":
        with bar() as progress:
            elsewhere = confirm(
                made.weaknesses, backend, build_of(backend), out=folder, progress=progress
            )
        write_all(made, folder, elsewhere)
    if figures:
        from lfnlab.figures.weakness import save

        for weakness in made.weaknesses:
            save(weakness, folder / f"{weakness.name}.png")
    if json:
        text = (folder / "attack.json").read_text(encoding="utf-8")
        say(json_format.dumps(json_format.loads(text), indent=1, ensure_ascii=False))
    else:
        _show(made, elsewhere, folder)
    return FAILED if made.failed else OK


def _show(made: Attack, elsewhere: Mapping[str, Elsewhere], folder: Path) -> None:
    others = " and ".join(other.name for other in made.others)
    say(f"{made.law.name}: {made.runs:,} runs, beside {others}\n")
    for number, weakness in enumerate(made.weaknesses, 1):
        say(f"{number}. {weakness.says}")
        if (there := elsewhere.get(weakness.name)) is not None:
            say(f"   Linux: {there.says}")
        say(f"   {folder / weakness.name}.toml")
    if not made.weaknesses:
        say("No weakness was found.")
    if not made.whole:
        say("Not all candidates were tried: more --runs or --minutes may find more.")
    if made.failed:
        say(f"{made.failed:,} runs failed; the first: {made.first_failure}")
