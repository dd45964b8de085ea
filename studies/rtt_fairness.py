"""By which power of the RTT each law's throughput falls, against the closed forms.

$ python -m studies.rtt_fairness          run what build/rtt-fairness has not yet; table and page
$ python -m studies.rtt_fairness --laws reno,cubic        print a few laws only

E of x_1 / x_2 = (RTT_2 / RTT_1)^E, for flows of one law whose RTTs are as one to two, in three
experiments: see EXPERIMENTS. Laws that need routers of their own are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import polars as pl

from lfnlab import dumbbell, laws
from lfnlab.analysis.table import markdown
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.metrics import rtt_exponent
from lfnlab.scenario.elements import Change
from lfnlab.statistics import interval
from studies.study import Study

if TYPE_CHECKING:
    from lfnlab.results.runs import Run
    from lfnlab.scenario.builder import Scenario
    from lfnlab.scenario.elements import FlowSettings

SEEDS = 3
FULL = 0.9
"""Above this utilization it is the link that limits the flows, not their losses."""
VARIANTS = ("htcp:rtt", "ltcp:rtt3")
"""Beside the default of each law: those that scale with the RTT and have a closed form."""

EPOCH_S = {"cubic": 12}
"""Seconds between losses, else 3: CUBIC needs longer to have more than Reno would."""
FILLERS = ("yeah", "westwood-s", "copa", "bbr", "bbr3")
"""Laws that fill the link of the first experiment although they lose, and are left out of it."""
CLOSED = {
    "reno": ("2", "1"),
    "hstcp": ("6.06", "1"),
    "scalable": ("∞", "1"),
    "bic": ("from 2 up", "1"),
    "cubic": ("1", "0.25"),
    "htcp": ("2", "0.5 to 0.6"),
    "htcp:rtt": ("1", "0.26 to 0.30"),
    "ltcp": ("2.5", "1"),
    "ltcp:rtt3": ("2", "0.8"),
    "veno": ("2", "1"),
    "illinois": ("2", "1"),
    "hybla": ("0", "0"),
    "compound": ("5", "1"),
    "cw-hstcp": ("1", "0.17"),
    "vegas": ("2", "1"),
    "fast": ("2", "1"),
    "dctcp": ("2", "1"),
    "const-rate": ("0", "0"),
}
"""Exponents from response functions, losses together and apart: docs/theory.md, and the cards."""

EXPLAINED = """\
If an interval is wider than 1, three seeds show only that the result depends on the start.

- Reno, Veno, Vegas, Illinois, together: a recovery costs one or two round trips of growth, which is
  a larger part of 30 round trips between losses than of 60. Two of them give 2.05.
- HSTCP, together: 6.06 is the slope of its response function. With 60 and 30 round trips between
  losses the fixed points of RFC 3649's a(w) and b(w) are 4786 and 232 segments, which gives 5.37.
- Compound, together: a part of its window grows as Reno's, with exponent 2.
- CW-HSTCP, together: after 24 losses its first window still has an effect; one run of 30 losses
  ended at 1.02.
- FAST would have 0 if alpha packets of each flow fitted into the queue. In the first two
  experiments there is no queue, so it is AIMD(50, 1/2), as Vegas is Reno. In the third the queue
  holds a fifth of alpha packets per flow.
- Constant rate, together: its windows are three to six packets; every second loss misses them.
- Drop-tail queues are closer to "together" than to "apart": with eight flows most lose at once.
  Flows of the longer RTT lose more often, with CUBIC 30 % more in one run, and so get less even if
  the closed form gives equal windows.
"""


@dataclass(frozen=True)
class Experiment:
    """Flows of two RTTs, and how they come to lose."""

    name: str
    rtts: tuple[str, str]
    flows: int
    """Of each RTT."""
    path: Callable[[str], Scenario]
    """The path for a law."""
    paced: bool = False

    def scenario(self, law: str) -> Scenario:
        """Flows of ``law``; they start within the first 2 s."""
        scenario = self.path(law)
        # CW-HSTCP's blocks are its pacing.
        own: FlowSettings = {"count": self.flows, "start": "uniform(0s, 2s)"}
        if self.paced and law != "cw-hstcp":
            own["pacing"] = True
        for rtt in self.rtts:
            scenario = scenario.flow(law, rtt=rtt, **own)
        return scenario


def together(law: str) -> Scenario:
    """Two flows, RTTs 50 and 100 ms, paced; every 3 s (CUBIC 12 s) both lose a fifth of 45 ms."""
    epoch = EPOCH_S.get(law, 3)
    base = dumbbell(
        rate="3Gbit/s",
        rtt="50ms",
        buffer="1000 packets",
        duration=f"{2 + 24 * epoch}s",
        warmup=f"{2 + 10 * epoch}s",
        sample="off",
    )
    changes = []
    for second in range(2 + epoch, 2 + 24 * epoch, epoch):
        changes.append(Change(at=f"{second}s", link="forward", loss=0.2))
        changes.append(Change(at=f"{second}.045s", link="forward", loss=0.0))
    return base.with_changes(*changes)


def apart(_: str) -> Scenario:
    """Four flows of 100 ms, four of 200 ms; each packet is lost with probability 1e-4."""
    return dumbbell(
        rate="1Gbit/s",
        rtt="100ms",
        buffer="1000 packets",
        loss=1e-4,
        duration="400s",
        warmup="40s",
        sample="off",
    )


def drop_tail(_: str) -> Scenario:
    """Four flows of 50 ms, four of 100 ms fill 400 Mbit/s with a tenth of a BDP of buffer."""
    return dumbbell(
        rate="400Mbit/s",
        rtt="50ms",
        buffer="0.1bdp",
        duration="300s",
        warmup="60s",
        sample="off",
    )


EXPERIMENTS = (
    Experiment("together", ("50ms", "100ms"), 1, together, paced=True),
    Experiment("apart", ("100ms", "200ms"), 4, apart),
    Experiment("drop-tail", ("50ms", "100ms"), 4, drop_tail),
)


def contestants() -> list[str]:
    """All laws of ends, in the order of the registry, each followed by its VARIANTS."""
    names = [law.name for law in laws() if law.family != "router" and law.name != "udt"]
    return sorted([*names, *VARIANTS], key=lambda name: names.index(name.partition(":")[0]))


def run(names: Sequence[str], out: FilePath) -> pl.DataFrame:
    """A row an experiment, law and seed: exponent, utilization of the link."""
    cases = [
        Case(experiment.scenario(name), {"experiment": experiment.name, "law": name})
        for name in names
        for experiment in EXPERIMENTS
        if not (experiment.name == "together" and name in FILLERS)
    ]
    found = execute(cases, seeds=SEEDS, out=out, jobs=1, title="RTT fairness")
    return pl.DataFrame([row(run) for run in found.runs])


def row(run: Run) -> dict[str, str | int | float]:
    """Exponent of a run's two groups of flows, and utilization of the link."""
    rtts_s = sorted({flow["rtt_s"] for flow in run.summary["flows"]})
    near, far = (
        sum(
            goodput
            for flow, goodput in zip(run.summary["flows"], run.goodputs, strict=True)
            if flow["rtt_s"] == rtt_s
        )
        for rtt_s in rtts_s
    )
    return {
        **run.factors,
        "seed": run.seed,
        "exponent": round(rtt_exponent(near, far, *rtts_s), 3),
        "utilization": round(run.summary["links"][0]["utilization"], 3),
    }


def cell(table: pl.DataFrame, experiment: str, law: str) -> str:
    """Mean and 95 % interval over the seeds, in brackets where the link was full."""
    rows = table.filter((pl.col("experiment") == experiment) & (pl.col("law") == law))
    if rows.is_empty():
        return "-"
    found = interval(rows["exponent"])
    text = f"{found.mean:.2f} ± {found.half:.2f}"
    limited = experiment != "drop-tail" and rows["utilization"].to_numpy().mean() > FULL
    return f"({text})" if limited else text


def lines(table: pl.DataFrame) -> list[str]:
    """The table of the page."""
    rows = []
    for law in dict.fromkeys(table["law"]):
        together, apart, drop_tail = (cell(table, each.name, law) for each in EXPERIMENTS)
        first, second = CLOSED.get(law, ("-", "-"))
        rows.append((law, together, first, apart, second, drop_tail))
    headings = ("law", "losses together", "closed form", "losses apart", "closed form", "drop-tail")
    return [*markdown(headings, rows)]


def page(table: pl.DataFrame, stamp: str) -> str:
    """docs/rtt-fairness.md."""
    said = "\n".join(
        f"- *{experiment.name}*: {experiment.path.__doc__}" for experiment in EXPERIMENTS
    )
    return f"""\
# RTT fairness

This page gives the exponent E in x₁ / x₂ = (RTT₂ / RTT₁)^E for the throughputs x of flows of one
law whose RTTs are as one to two. E = 0 means equal throughputs, 1 equal windows; standard TCP has 2
if losses come together. Today's Linux TCP, 1500-byte packets, means over {SEEDS} seeds ± 95 %
(Student's t).

{said}

A number in brackets is from a link that was more than 90 % full, so the law was not limited by
these losses alone. The closed forms are response functions:
[theory](theory.md#rtt-unfairness), and the [cards](../laws/cards/README.md).

{stamp} Every run is in
[studies/reference/rtt_fairness.csv](../studies/reference/rtt_fairness.csv).

{chr(10).join(lines(table))}

## Where they differ

{EXPLAINED}"""


STUDY = Study("rtt_fairness", __doc__, run, page, tuple(contestants()))


if __name__ == "__main__":
    STUDY.main()
