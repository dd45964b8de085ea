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
from lfnlab.results.runs import Results, Run
from lfnlab.scenario.builder import Scenario, dumbbell, graph, parking_lot
from lfnlab.scenario.elements import (
    Background,
    Burst,
    Capture,
    Change,
    File,
    Flow,
    GilbertElliott,
    Jitter,
    Link,
    NamedLink,
    OnOff,
    Packmime,
    ParkingLot,
    Queue,
    Reorder,
    Requests,
    Reverse,
    Router,
    ShortFlows,
    Sizes,
    Steps,
    Suite,
    Surge,
    Traffic,
    Udp,
    Vectors,
    Webtraf,
)

__all__ = [
    "Ack",
    "Background",
    "Burst",
    "Capture",
    "Case",
    "Change",
    "Choice",
    "DamageWarning",
    "Design",
    "Draws",
    "File",
    "Flow",
    "GilbertElliott",
    "Jitter",
    "LabError",
    "Law",
    "LawError",
    "LawInfo",
    "Link",
    "Loss",
    "NamedLink",
    "OnOff",
    "Packmime",
    "ParkingLot",
    "PrototypeError",
    "Queue",
    "Range",
    "Reorder",
    "Requests",
    "Results",
    "Reverse",
    "Router",
    "Run",
    "Scenario",
    "ScenarioError",
    "ShortFlows",
    "Sizes",
    "Steps",
    "StoreError",
    "Suite",
    "Surge",
    "Sweep",
    "Traffic",
    "Udp",
    "Unavailable",
    "Vectors",
    "Webtraf",
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
