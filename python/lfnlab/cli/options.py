"""Options that several commands share; errors name the option instead of the scenario's key."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token, validators

from lfnlab.errors import ScenarioError, UsageError

if TYPE_CHECKING:
    from lfnlab.experiment.executor import Backend
    from lfnlab.scenario.builder import Scenario

Json = Annotated[bool, Parameter("--json", negative="", help="Print one JSON object to stdout.")]
Out = Annotated[Path, Parameter(alias="-o")]
OptionalOut = Annotated[Path | None, Parameter(alias="-o")]


def _by_commas(_: type, tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(name.strip() for token in tokens for name in token.value.split(","))


Names = Annotated[tuple[str, ...], Parameter(negative="", converter=_by_commas)]
"""Names, separated by commas; the option may be repeated."""

Jobs = Annotated[
    int | None,
    Parameter(
        validator=validators.Number(gte=1), help="Runs at a time; default one for each core."
    ),
]


Memory = Annotated[
    str | None,
    Parameter(
        help="Memory of all runs together, such as 4GB; default 80 % of the free memory. A run "
        "that would exceed it ends with an error."
    ),
]

Set = Annotated[
    tuple[str, ...],
    Parameter(
        "--set",
        negative="",
        help="KEY=VALUE, repeatable: any key of a scenario, as errors name it. The value is TOML, "
        "or text without quotes: `--set link.queue.kind=pie --set link.loss=1e-6`.",
    ),
]

Report = Annotated[bool, Parameter(help="Write report.html.")]


def print_json(value: object) -> None:
    """Print JSON: null for NaN and infinity, which it does not have."""
    from json import dumps

    print(dumps(_finite(value), indent=1, allow_nan=False, default=lambda number: number.item()))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


On = Annotated[
    Literal["simulator", "linux"],
    Parameter(
        help="Where runs run: the simulator, or Linux's own TCP in virtual time, which `make "
        "linux` builds in a clone of the repository."
    ),
]


def backend(on: Literal["simulator", "linux"]) -> Backend:
    """The backend that ``--on`` names.

    Raises:
        Unavailable: it is not built.
    """
    if on == "linux":
        from lfnlab.testbed.linux_backend import Linux

        return Linux()
    from lfnlab.experiment.executor import SIMULATOR

    return SIMULATOR


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
def naming_options(said: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Name the option that a fault came from: the user has seen no file, no line, no key.

    ``said`` are the values of ``--set``.
    """
    try:
        yield
    except ScenarioError as error:
        for key in said or {}:
            first = key.replace("[*]", "[0]")
            below = error.key.startswith((f"{first}.", f"{first}["))
            if below or error.key in (key, first) or first.startswith(f"{error.key}."):
                rest = error.key.removeprefix(first) if below else ""
                raise error.at(f"--set {key}{rest}") from None
        if error.file != "scenario" or error.key not in OPTIONS:
            raise
        raise error.at(OPTIONS[error.key]) from None


def settings(texts: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """The values of ``--set KEY=VALUE``, or of another such option, by their keys.

    Raises:
        UsageError: no such pair, or a key twice.
    """
    said: dict[str, Any] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise UsageError(f'{option}: "{text}"; write for example {option} link.queue.kind=pie')
        if key in said:
            raise UsageError(f"{option}: {key} is given twice; write each key once")
        said[key] = _value(value)
    return said


def _value(text: str) -> Any:
    try:
        value = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    plain = isinstance(value["value"], str | int | float | list | dict)
    return value["value"] if plain and len(value) == 1 else text


def with_settings(scenario: Scenario, said: dict[str, Any]) -> Scenario:
    """The scenario with the values of ``--set``; it need not have flows yet.

    Raises:
        ScenarioError: naming the key that leads nowhere, or whose value cannot be.
    """
    from lfnlab.experiment.design import with_values
    from lfnlab.scenario.builder import Scenario, toml

    if not said:
        return scenario
    whole = scenario if scenario.flows else scenario.flow("reno")
    with naming_options(said):
        changed = Scenario.from_toml(toml(with_values(whole.to_document(), said)))
    flows = changed.flows if scenario.flows else ()
    return replace(changed, flows=flows, default_rtt=scenario.default_rtt)
