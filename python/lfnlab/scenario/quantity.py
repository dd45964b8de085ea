"""Numbers with units, as a resolved scenario and the command line have them.

Rust alone validates scenarios; here a quantity that it has printed is read back, or an option that
belongs to no scenario.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lfnlab.errors import UsageError

SECONDS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
BYTES = {
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
}
BITS_PER_S = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12}


def parse(text: str, units: Mapping[str, float]) -> float:
    """A decimal number with one of ``units``, in the unit whose factor is 1.

    Raises:
        UsageError: when it is not that.
    """
    value = parsed(text, units)
    if value is None:
        raise UsageError(f'"{text}"; allowed: a number and one of {", ".join(units)}')
    return value


def parsed(text: str, units: Mapping[str, float]) -> float | None:
    """As :func:`parse`; None when it is not that."""
    found = re.fullmatch(r"\s*((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z/]+)\s*", text)
    if found is None or found[2] not in units:
        return None
    return float(found[1]) * units[found[2]]


def bounds(said: str | Sequence[str], units: Mapping[str, float]) -> tuple[float, float]:
    """The least and the largest value of a flow's quantity: one, a distribution or a list."""
    texts = [said] if isinstance(said, str) else said
    values = [
        parse(part.strip(), units)
        for text in texts
        for part in text.rpartition("(")[2].rstrip(")").split(",")
    ]
    return min(values), max(values)


def seconds(option: str, text: str | None) -> float | None:
    """The time that an option gives, such as "10s"; None where it is not given.

    Raises:
        UsageError: naming the option.
    """
    try:
        return None if text is None else parse(text, SECONDS)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None
