"""The law that is evaluated, and the comparators: how each stands in a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lfnlab.control_laws import prototype
from lfnlab.control_laws.registry import law
from lfnlab.scenario.elements import Router

if TYPE_CHECKING:
    from lfnlab.control_laws.prototype import Law
    from lfnlab.scenario.builder import Scenario

Kind = Literal["vcp", "xcp", "rcp", "jetmax"]
ROUTERS: Mapping[str, Kind] = {
    "vcp": "vcp",
    "evcp": "vcp",
    "xcp": "xcp",
    "rcp": "rcp",
    "jetmax": "jetmax",
}
"""The router protocol that a law of family router needs on its path."""
UDT = "udt/"
"""In front of a law that drives UDT."""


@dataclass(frozen=True)
class Subject:
    """A law in the place of the one that is evaluated.

    Args:
        name: as the user wrote it.
        law: as a scenario has it.
        label: as results have it.
        family: of the registry; "prototype" for a law in Python.
        router: the router protocol that its path must have.
        udt: whether it runs over UDT.
    """

    name: str
    law: str | type[Law]
    label: str
    family: str
    router: Kind | None = None
    udt: bool = False

    def flow(self, scenario: Scenario, **settings: Any) -> Scenario:
        """The scenario with flows of this law, on a path that has its router protocol."""
        if self.udt:
            settings["transport"] = "udt"
        return self.on(scenario).flow(self.law, **settings)

    def on(self, scenario: Scenario) -> Scenario:
        """The scenario with the router protocol that the law needs."""
        if self.router is None or scenario.link is None:
            return scenario
        return replace(scenario, link=replace(scenario.link, router=Router(kind=self.router)))


def subject(name: str | type[Law]) -> Subject:
    """The law that NAME, NAME:VARIANT, udt/NAME, FILE.h, FILE.so, FILE.py:CLASS or a class names.

    Raises:
        LawError: when there is none, with the nearest name.
    """
    made = prototype.resolved(name, Path())
    if prototype.is_prototype(made):
        return Subject(str(name), made, prototype.label(made), "prototype")
    assert isinstance(name, str)
    info = law(name)
    bare = name.removeprefix(UDT)
    udt = name.startswith(UDT) or info.name == "udt"
    label = f"{UDT}{bare}" if udt and info.name != "udt" else bare
    return Subject(name, bare, label, info.family, ROUTERS.get(info.name), udt)
