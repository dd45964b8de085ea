"""A congestion-control laboratory for long fat networks.

>>> from lfnlab import compare, dumbbell
>>> base = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="30s")
>>> results = compare(["reno", "cubic", "htcp-be"], base, seeds=3)  # doctest: +SKIP
>>> results.frame()  # doctest: +SKIP

``lfn --help`` is the same from a shell.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lfnlab.results import drawn

if TYPE_CHECKING:  # the public names; __getattr__ imports them
    from lfnlab._core import Ack, Loss
    from lfnlab.control_laws.prototype import Law
    from lfnlab.control_laws.registry import LawInfo, law, laws
    from lfnlab.errors import (
        DamageWarning,
        LabError,
        LawError,
        PrototypeError,
        ScenarioError,
        SeedsWarning,
        StoreError,
        Unavailable,
    )
    from lfnlab.experiment.design import Choice, Design, Draws, Range
    from lfnlab.experiment.plan import Case
    from lfnlab.experiment.run import compare, execute
    from lfnlab.experiment.sweep import Sweep, sweep
    from lfnlab.results.index import open_store as open  # noqa: A004 - as in lfnlab.open(DIR)
    from lfnlab.results.runs import Results, Run
    from lfnlab.scenario.builder import Scenario, dumbbell, graph, parking_lot
    from lfnlab.scenario.elements import *

#: Where each name is. A name is imported when it is first used: a command imports what it needs.
_HOMES = {
    "Ack": "_core",
    "Case": "experiment.plan",
    "Choice": "experiment.design",
    "DamageWarning": "errors",
    "Design": "experiment.design",
    "Draws": "experiment.design",
    "LabError": "errors",
    "Law": "control_laws.prototype",
    "LawError": "errors",
    "LawInfo": "control_laws.registry",
    "Loss": "_core",
    "PrototypeError": "errors",
    "Range": "experiment.design",
    "Results": "results.runs",
    "Run": "results.runs",
    "Scenario": "scenario.builder",
    "ScenarioError": "errors",
    "SeedsWarning": "errors",
    "StoreError": "errors",
    "Sweep": "experiment.sweep",
    "Unavailable": "errors",
    "compare": "experiment.run",
    "dumbbell": "scenario.builder",
    "execute": "experiment.run",
    "graph": "scenario.builder",
    "law": "control_laws.registry",
    "laws": "control_laws.registry",
    "open": "results.index:open_store",
    "parking_lot": "scenario.builder",
    "sweep": "experiment.sweep",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module 'lfnlab' has no attribute {name!r}")
    elements = import_module("lfnlab.scenario.elements")
    if name == "__all__":
        return [*_HOMES, *elements.__all__]
    if name in elements.__all__:
        found = getattr(elements, name)
    elif name in _HOMES:
        module, _, other = _HOMES[name].partition(":")
        found = getattr(import_module(f"lfnlab.{module}"), other or name)
    else:
        raise AttributeError(f"module 'lfnlab' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})


def _drawn(results: Results, name: str) -> drawn.Drawn:
    from lfnlab.figures.registry import draw  # and with it matplotlib

    return draw(results, name)


drawn.by = _drawn
