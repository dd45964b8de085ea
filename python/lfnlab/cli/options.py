"""What options of several commands share, and faults of a scenario made of them, in their words."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from lfnlab.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterator

Jobs = Annotated[
    int | None,
    Parameter(
        validator=validators.Number(gte=1), help="Runs at a time; default one for each core."
    ),
]


Memory = Annotated[
    str | None,
    Parameter(
        help="What runs may take together, such as 4GB; default what is free. A run that would "
        "take more is refused, one that does ends with an error."
    ),
]

# Options of compare and shell by the key of the scenario that each one sets.
OPTIONS = {
    "duration": "--duration",
    "warmup": "--warmup",
    "sample": "--sample",
    "seed": "--seed",
    "link": "--rate",
    "link.rate": "--rate",
    "link.loss": "--loss",
    "link.queue.size": "--buffer",
    "flow": "--flows",
    "flow[0].law": "--law",
    "flow[0].rtt": "--rtt",
    "flow[0].count": "--flows",
    "flow[0].packet": "--packet",
    "traffic[0].law": "--law",
    "background.level": "--background",
}


@contextmanager
def naming_options() -> Iterator[None]:
    """Name the option that a fault came from: the user has seen no file, no line, no key."""
    try:
        yield
    except ScenarioError as error:
        if error.file != "scenario" or error.key not in OPTIONS:
            raise
        raise error.at(OPTIONS[error.key]) from None
