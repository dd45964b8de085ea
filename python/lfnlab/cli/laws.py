"""Commands of ``lfn`` on laws: what there is, and the way from Python to a C header."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lfnlab.cli import listing
from lfnlab.cli.options import OptionalOut, print_json
from lfnlab.control_laws import prototype
from lfnlab.control_laws.registry import law as law_of
from lfnlab.control_laws.registry import laws as all_laws
from lfnlab.errors import LawError, UsageError
from lfnlab.printable import say
from lfnlab.results import output

OK = 0


def laws(
    name: str | None = None,
    /,
    *,
    vectors: Annotated[bool, Parameter(negative="")] = False,
    picture: Path | None = None,
    bibtex: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter("--json", negative="", help="Print a JSON list.")] = False,
) -> int:
    """List the laws, or show the card of one.

    Columns: name, family (the signal that ends growth), signals, targets (simulator, Linux kernel),
    slow start, variants, source. A second table has the controllers of deployed stacks, with the
    version, and whether `make stacks` has built them.

    Examples: `lfn laws cubic`, `lfn laws cubic --picture cubic.png`

    Args:
        name: Law whose card to show: equations with their source.
        vectors: The card with its test vectors.
        picture: Draw the window of one flow on 100 Mbit/s x 100 ms and the response function into
            FILE.png, FILE.pdf or FILE.svg; print no card.
        bibtex: Print the BibTeX reference of the law, or of all laws.
    """
    if json and bibtex:
        raise UsageError("--json, --bibtex: allowed: one of them")
    if name is not None and prototype.is_prototype(name):
        raise LawError(
            f"{name} is a law in a file or of a stack, which has no card; `lfn port` records the "
            "vectors of one in Python"
        )
    if name is None and (vectors or picture is not None):
        raise UsageError("--vectors, --picture: of one law; write for example lfn laws cubic")
    chosen = all_laws() if name is None else (law_of(name),)
    if picture is not None and name is not None:
        return _draw(name, picture)
    if json:
        print_json([vars(entry) for entry in chosen])
    elif bibtex:
        say("\n".join(entry.bibtex() for entry in chosen), end="")
    elif name is not None:
        say(chosen[0].card(vectors=vectors))
    else:
        listing.laws(chosen)
    return OK


def _draw(name: str, file: Path) -> int:
    from lfnlab.figures import card
    from lfnlab.figures.drawing import Drawing, check_file

    check_file("--picture", file)
    Drawing(card.picture(name), "", name).save(file)
    say(file)
    return OK


def port(
    law: str,
    /,
    *,
    out: OptionalOut = None,
    name: str | None = None,
    tolerance: float = 0.001,
) -> int:
    """Record test vectors for a C header from a law in Python, or in a header.

    Copy them into the header's card; `cargo test -p lfn-law` executes them. Example:

        lfn port ./mine.py:Mine --out vectors.md

    Args:
        law: FILE.py:CLASS or FILE.h.
        out: Output file; default stdout.
        name: Name of the header; default the law's name in lower case, without .h.
        tolerance: Relative error allowed, since a header has integers and Python floats.
    """
    from lfnlab.control_laws.port import vectors

    found = prototype.find(law, Path())
    if not isinstance(found, type):
        what = "is not a law in a file" if found is None else "is a controller"
        raise LawError(f"{law} {what}; write FILE.py:CLASS or FILE.h")
    if out is not None:
        output.refuse_others(out)
    text = vectors(found, name or found.name.removesuffix(".h").lower(), tolerance)
    if out is None:
        say(text, end="")
        return OK
    output.write(out, f"{text}<!-- {output.MARK} -->\n".encode())
    say(out)
    return OK
