"""A congestion-control laboratory for long fat networks.

>>> from lfnlab import compare, dumbbell
>>> base = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="30s")
>>> results = compare(["reno", "cubic", "htcp-be"], base, seeds=3)  # doctest: +SKIP
>>> results.frame()  # doctest: +SKIP

``lfn --help`` is the same from a shell.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from lfnlab.results import drawn as _drawn

if TYPE_CHECKING:
    # The public names; `A as A` exports one. At run time __getattr__ imports them.
    from lfnlab._core import (
        Ack as Ack,
        ControllerAck as ControllerAck,
        ControllerConfig as ControllerConfig,
        ControllerPacket as ControllerPacket,
        Loss as Loss,
    )
    from lfnlab.attacker import attack as attack
    from lfnlab.control_laws.controller import Controller as Controller
    from lfnlab.control_laws.prototype import Law as Law
    from lfnlab.control_laws.registry import LawInfo as LawInfo, law as law, laws as laws
    from lfnlab.errors import (
        DamageWarning as DamageWarning,
        LabError as LabError,
        LawError as LawError,
        PrototypeError as PrototypeError,
        ScenarioError as ScenarioError,
        SeedsWarning as SeedsWarning,
        StoreError as StoreError,
        Unavailable as Unavailable,
    )
    from lfnlab.experiment.design import (
        Choice as Choice,
        Design as Design,
        Draws as Draws,
        Range as Range,
    )
    from lfnlab.experiment.plan import Case as Case
    from lfnlab.experiment.run import compare as compare, execute as execute
    from lfnlab.experiment.sweep import Sweep as Sweep, sweep as sweep
    from lfnlab.judge import JudgePath as JudgePath, Score as Score, score as score
    from lfnlab.results.index import open as open  # noqa: A004 - as in lfnlab.open(DIR)
    from lfnlab.results.runs import Results as Results, Run as Run
    from lfnlab.scenario.builder import (
        Scenario as Scenario,
        dumbbell as dumbbell,
        graph as graph,
        parking_lot as parking_lot,
    )
    from lfnlab.scenario.elements import *
else:
    # The home of each name, besides the elements of scenarios. A command imports what it needs.
    _NAMES = {
        "_core": "Ack ControllerAck ControllerConfig ControllerPacket Loss",
        "attacker": "attack",
        "control_laws.controller": "Controller",
        "control_laws.prototype": "Law",
        "control_laws.registry": "LawInfo law laws",
        "errors": "DamageWarning LabError LawError PrototypeError ScenarioError SeedsWarning "
        "StoreError Unavailable",
        "experiment.design": "Choice Design Draws Range",
        "experiment.plan": "Case",
        "experiment.run": "compare execute",
        "experiment.sweep": "Sweep sweep",
        "judge": "JudgePath Score score",
        "results.index": "open",
        "results.runs": "Results Run",
        "scenario.builder": "Scenario dumbbell graph parking_lot",
    }
    _HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

    def __getattr__(name: str) -> object:
        """Imports a public name when it is first used."""
        home = _HOMES.get(name)
        # Elements of scenarios, which take a while to import, are classes; a module is not.
        if home is None and (name == "__all__" or name[0].isupper()):
            elements = _import_module("lfnlab.scenario.elements").__all__
            if name == "__all__":
                return sorted([*_HOMES, *elements])
            home = "scenario.elements" if name in elements else None
        if home is None:
            raise AttributeError(f"module 'lfnlab' has no attribute {name!r}")
        found = globals()[name] = getattr(_import_module(f"lfnlab.{home}"), name)
        return found

    def __dir__() -> list[str]:
        return __getattr__("__all__")


def _draw(
    results: Results, name: str, style: _drawn.Chosen, settings: _drawn.Settings
) -> _drawn.Drawn:
    from lfnlab.figures import style as styles
    from lfnlab.figures.registry import draw  # and with it matplotlib

    return draw(results, name, style=styles.changed(styles.read(style), settings, "plot"))


_drawn.by = _draw
