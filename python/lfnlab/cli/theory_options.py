"""Arguments and output of the commands of ``lfn theory``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter, validators

from lfnlab.cli.options import print_json
from lfnlab.errors import UsageError
from lfnlab.printable import say
from lfnlab.scenario.quantity import BITS_PER_S, parsed

RATES = BITS_PER_S
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
SIZES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}

Out = Annotated[
    Path | None, Parameter(alias="-o", help="Draw into FILE.png, FILE.pdf or FILE.svg.")
]
Losses = Annotated[int, Parameter(validator=validators.Number(gte=8, lte=100_000))]
Code = Annotated[bool, Parameter(negative="", help="Run the laws' code, not their equations.")]


def tell(
    headings: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    result: Mapping[str, object],
    as_json: bool,
    out: Path | None,
    figure: Any,
    notes: Sequence[str] = (),
) -> int:
    """Prints the table and notes or the JSON object, and draws the figure if requested."""
    from lfnlab.analysis.table import Table, plain

    if out is not None:
        draw(out, figure)
    if as_json:
        noted = {**result, "notes": list(notes)} if notes else result
        print_json(noted)
        return 0
    say(*plain(Table(headings, tuple(rows), 1)), sep="\n")
    say(*notes, sep="\n", end="\n" if notes else "")
    if out is not None:
        say(f"figure: {out}")
    return 0


def draw(out: Path, figure: Any) -> None:
    """Writes what ``figure()`` makes in the form that the name ends in."""
    from lfnlab.figures.drawing import Drawing, check_file

    check_file("--out", out)
    Drawing(figure(), "", "").save(out)


def names(text: str) -> list[str]:
    """Laws, variants too, each once.

    Raises:
        LawError: one that does not exist.
    """
    from lfnlab.control_laws.registry import law

    found = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in found:
        law(name)
    return found


def pairs(text: str) -> dict[str, tuple[str, str]]:
    """The laws of two flows: of ``a+b`` one each.

    Raises:
        LawError: one that does not exist.
    """
    found = {}
    for name in dict.fromkeys(part.strip() for part in text.split(",")):
        first, plus, second = name.partition("+")
        found[name] = (names(first)[0], names(second if plus else first)[0])
    return found


def by(code: bool, *laws: str) -> str:
    """Source of a sawtooth of these laws: "equations" or "code"."""
    from lfnlab.theory.fluid import has_equations

    return "equations" if has_equations(*laws) and not code else "code"


def unanswered(laws: Sequence[str]) -> list[str]:
    """Warning about laws that need a router protocol: one line, or an empty list."""
    from lfnlab.control_laws.registry import law

    found = [name for name in dict.fromkeys(laws) if law(name).family == "router"]
    if not found:
        return []
    said = ", ".join(found)
    return [f"{said}: without routers that answer; lfnlab.theory.vcp has VCP and EVCP with theirs"]


def kept(value: float) -> float:
    """RTT_min / RTT_max."""
    if not 0 < value < 1:
        raise UsageError(f"--kept: {value:g} is not between 0 and 1, for example 0.8")
    return value


def losses(text: str) -> list[float]:
    """Loss rates."""
    found = []
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not 1e-12 <= value < 1:
            raise UsageError(
                f'--loss: "{part}" is not a rate from 1e-12 to below 1; write for example 1e-3,1e-5'
            )
        found.append(value)
    return found


def start(text: str) -> tuple[float, float]:
    """Two windows."""
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        first = second = math.nan
    if not (2 <= first < math.inf and 2 <= second < math.inf):
        raise UsageError(
            f'--start: "{text}" is not two windows of at least 2 segments; '
            "write for example 3000,1000"
        )
    return first, second


def pair(option: str, text: str) -> tuple[float, float]:
    """Two times in s."""
    parts = text.split(",")
    if len(parts) != 2:
        raise UsageError(f'{option}: "{text}" is not two times; write for example 120ms,60ms')
    first, second = (quantity(option, part, TIMES) for part in parts)
    return first, second


def quantity(option: str, text: str, units: Mapping[str, float], *, zero: bool = False) -> float:
    """A number with one of these units, above 0, or ``zero`` too."""
    value = parsed(text, units)
    if value is None:
        raise UsageError(
            f'{option}: "{text}" is not a number and a unit; allowed units: {", ".join(units)}'
        )
    if value <= 0 and not (zero and value == 0):
        raise UsageError(f'{option}: "{text}" is not above 0')
    return value


class Bottleneck(NamedTuple):
    """A bottleneck in packets."""

    rate_pps: float
    bdp: float
    buffer: float


def bottleneck(rate: str, rtt_s: float, buffer: str, packet: str) -> Bottleneck:
    """The options ``--rate``, ``--buffer`` and ``--packet`` at this base RTT."""
    size_b = quantity("--packet", packet, SIZES)
    rate_pps = quantity("--rate", rate, RATES) / (8 * size_b)
    bdp = rate_pps * rtt_s
    sizes = {unit: size / size_b for unit, size in SIZES.items()}
    units = {"bdp": bdp, "packets": 1.0, "packet": 1.0, **sizes}
    return Bottleneck(rate_pps, bdp, quantity("--buffer", buffer, units, zero=True))


def spaced(ends: Sequence[float], points: int = 121) -> list[float]:
    """Points evenly on a logarithmic axis between the smallest and the largest."""
    low, high = math.log(min(ends)), math.log(max(ends))
    return [math.exp(low + (high - low) * i / (points - 1)) for i in range(points)]
