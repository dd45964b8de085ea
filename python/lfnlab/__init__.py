"""A congestion-control laboratory for long fat networks.

>>> from lfnlab import compare, dumbbell
>>> base = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="30s")
>>> results = compare(["reno", "cubic", "htcp-be"], base, seeds=3)  # doctest: +SKIP
>>> results.frame()  # doctest: +SKIP

``lfn --help`` is the same from a shell.
"""

from lfnlab.errors import LabError, ScenarioError, StoreError, Unavailable
from lfnlab.law import Law, law, laws
from lfnlab.scenario import Background, Flow, Link, Queue, Reverse, Scenario, dumbbell
from lfnlab.sweep import Case, Results, Run, compare, execute

__all__ = [
    "Background",
    "Case",
    "Flow",
    "LabError",
    "Law",
    "Link",
    "Queue",
    "Results",
    "Reverse",
    "Run",
    "Scenario",
    "ScenarioError",
    "StoreError",
    "Unavailable",
    "compare",
    "dumbbell",
    "execute",
    "law",
    "laws",
]
