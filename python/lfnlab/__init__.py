"""A congestion-control laboratory for long fat networks.

>>> from lfnlab import compare, dumbbell
>>> base = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="30s")
>>> results = compare(["reno", "cubic", "htcp-be"], base, seeds=3)  # doctest: +SKIP
>>> results.frame()  # doctest: +SKIP

``lfn --help`` is the same from a shell.
"""

from lfnlab._core import Ack, Loss
from lfnlab.control_laws.prototype import Law
from lfnlab.control_laws.registry import LawInfo, law, laws
from lfnlab.errors import (
    DamageWarning,
    LabError,
    LawError,
    PrototypeError,
    ScenarioError,
    StoreError,
    Unavailable,
)
from lfnlab.experiment.design import Choice, Design, Draws, Range
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import compare, execute
from lfnlab.experiment.sweep import Sweep, sweep
from lfnlab.results.index import open_store as open  # noqa: A004 - as in lfnlab.open(DIR)
from lfnlab.results.runs import Drawn, Results, Run
from lfnlab.scenario import elements
from lfnlab.scenario.builder import Scenario, dumbbell, graph, parking_lot
from lfnlab.scenario.elements import *


def _drawn(results: Results, name: str) -> Drawn:
    from lfnlab.figures.registry import draw  # and with it matplotlib

    return draw(results, name)


Results.drawn_by = _drawn

__all__ = [
    "Ack",
    "Case",
    "Choice",
    "DamageWarning",
    "Design",
    "Draws",
    "LabError",
    "Law",
    "LawError",
    "LawInfo",
    "Loss",
    "PrototypeError",
    "Range",
    "Results",
    "Run",
    "Scenario",
    "ScenarioError",
    "StoreError",
    "Sweep",
    "Unavailable",
    "compare",
    "dumbbell",
    "execute",
    "graph",
    "law",
    "laws",
    "open",
    "parking_lot",
    "sweep",
]
__all__ += elements.__all__
