"""Level 2 of conformance: a scenario in the simulator and on Linux's TCP, side by side.

Linux is that of this machine on the test bed, or Linux in virtual time. Both sides write the same
tables, so one analysis (:mod:`lfnlab.analysis.sawtooth`) measures both. The third column is Linux
in virtual time with a law of its own, for a single flow whose law is a module of Linux.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lfnlab import _core
from lfnlab.analysis import sawtooth
from lfnlab.analysis.table import Table
from lfnlab.errors import LabError, ScenarioError, UsageError
from lfnlab.experiment.run import execute
from lfnlab.results.runs import SCHEMA
from lfnlab.results.store import Store
from lfnlab.scenario.quantity import SECONDS, parse
from lfnlab.statistics import finite
from lfnlab.testbed import run as testbed
from lfnlab.testbed import virtual_run, virtual_time

if TYPE_CHECKING:
    from lfnlab.analysis.sawtooth import Trace
    from lfnlab.experiment.executor import Backend
    from lfnlab.experiment.plan import Case
    from lfnlab.figures.plot import Course
    from lfnlab.results.runs import Results
    from lfnlab.scenario.builder import Scenario


class Quantity(NamedTuple):
    """Quantity that is compared."""

    heading: str
    scale: float
    bar: float | None
    """Largest allowed difference as a fraction of the simulator's value; None: no limit."""


QUANTITIES = {
    "goodput_bps": Quantity("goodput (Mbit/s)", 1e-6, 0.03),
    "period_s": Quantity("period (s)", 1.0, 0.05),
    "mean_window_segments": Quantity("mean window", 1.0, 0.05),
    "window_before_segments": Quantity("window before a loss", 1.0, None),
    "window_after_segments": Quantity("window after", 1.0, None),
    "drops_per_episode": Quantity("drops at a loss", 1.0, None),
    "episodes": Quantity("losses", 1.0, None),
}
WINDOW = "congestion window (segments)"
SIMULATOR, TEST_BED, VIRTUAL, LINUX = "simulator", "test bed", "Linux", "Linux's own"


@dataclass(frozen=True)
class Compared:
    """One quantity of one flow."""

    case: str
    quantity: str
    simulated: float
    measured: float
    oracle: float | None

    @property
    def difference(self) -> float:
        """Measured over simulated, less 1; NaN where one of the two has none."""
        return self.measured / self.simulated - 1.0 if self.simulated else float("nan")

    @property
    def within(self) -> bool | None:
        """Whether the bar is met; None without a bar, or where neither has the quantity."""
        bar = QUANTITIES[self.quantity].bar
        if bar is None or (np.isnan(self.simulated) and np.isnan(self.measured)):
            return None
        return abs(self.difference) <= bar

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is not a number is null."""
        return {
            "case": self.case,
            "quantity": self.quantity,
            "simulated": finite(self.simulated),
            "measured": finite(self.measured),
            "difference": finite(self.difference),
            "bar": QUANTITIES[self.quantity].bar,
            "within": self.within,
            "oracle": None if self.oracle is None else finite(self.oracle),
        }


@dataclass(frozen=True)
class Agreement:
    """Results of both sides, for each case and flow."""

    rows: tuple[Compared, ...]
    results: Results
    """The runs of both sides; the factor ``on`` tells them apart."""
    traces: dict[str, dict[str, Trace]]
    """By case and flow, then by where it ran."""
    invalid: dict[str, str]
    """Reason for which a measured run is invalid, by case."""
    notes: tuple[str, ...]
    place: str = TEST_BED
    """Where the other side ran: TEST_BED or VIRTUAL."""

    @property
    def within(self) -> bool:
        """Whether every bar is met."""
        return all(row.within is not False for row in self.rows)

    def table(self) -> Table:
        """One line a quantity of a flow."""
        third = any(row.oracle is not None for row in self.rows)
        headings = ("", "", SIMULATOR, self.place, "difference", "bar", *([LINUX] if third else []))
        return Table(headings, tuple(_cells(row, third=third) for row in self.rows), 2)

    def panels(self) -> dict[str, list[Course]]:
        """Windows over time, for :func:`lfnlab.figures.plot.courses`: a panel for each flow."""
        return {case: courses(traces) for case, traces in self.traces.items()}

    def to_json(self) -> dict[str, Any]:
        """The object that ``lfn agree --json`` prints."""
        rows = [row.to_json() for row in self.rows]
        return {
            "schema": 1,
            "within": self.within,
            "invalid": self.invalid,
            "compared": rows,
            "notes": list(self.notes),
        }


def _cells(row: Compared, *, third: bool) -> tuple[str, ...]:
    quantity = QUANTITIES[row.quantity]

    def shown(value: float | None) -> str:
        return "–" if value is None or np.isnan(value) else f"{value * quantity.scale:.4g}"

    difference = "–" if np.isnan(row.difference) else f"{row.difference:+.1%}"
    mark = " !" if row.within is False else ""
    bar = "" if quantity.bar is None else f"{quantity.bar:.0%}"
    both = (shown(row.simulated), shown(row.measured), difference + mark, bar)
    return row.case, quantity.heading, *both, *([shown(row.oracle)] if third else [])


def agree(
    cases: Sequence[Case],
    *,
    out: Path,
    title: str,
    linux: Path | None = None,
    file: str = "scenario",
    backend: Backend | None = None,
) -> Agreement:
    """Run cases in the simulator, then on Linux, and compare flow by flow.

    Args:
        cases: scenarios with their factors.
        out: results directory; `linux` in it has what the program of that name wrote.
        title: of the experiment.
        linux: a program as :mod:`lfnlab.testbed.virtual_time` runs it, for the third column.
        file: how errors call the scenario.
        backend: Linux in virtual time; default the test bed.

    Raises:
        ScenarioError, Unavailable, LabError: as :func:`lfnlab.testbed.run.run`.
        StoreError: when the directory holds other files.
    """
    if any(case.scenario.check().sample == "off" for case in cases):
        raise UsageError(f"{file}: sample: off; windows are compared sample by sample")
    plans: list[dict[str, Any]] = []
    if backend is None:
        place, plans = TEST_BED, testbed.plans(cases, file=file)
    else:
        place = VIRTUAL
        for case in cases:
            backend.check(_core.Scenario(case.scenario.to_toml(), file))
    simulated = execute(cases, out=out, title=title)
    notes: dict[str, None] = {}
    thirds: list[Trace | None] = [None] * len(cases)
    if linux is not None or backend is None:
        thirds = [
            _linux(case.scenario, linux, out / "linux", f"case{number}", notes)
            for number, case in enumerate(cases)
        ]
    if backend is None:
        measured = testbed.run(cases, plans, out=out, title=title)
    else:
        measured = execute(cases, out=out, title=title, backend=backend)
    results = _both(simulated, measured, place)
    rows: list[Compared] = []
    traces: dict[str, dict[str, Trace]] = {}
    invalid = {}
    for case, ours, theirs, third in zip(cases, simulated.runs, measured.runs, thirds, strict=True):
        name = ", ".join(str(factor) for factor in case.factors.values()) or title
        if why := theirs.summary["invalid"]:
            invalid[name] = why
        flows = ours.summary["flows"]
        for flow in flows:
            label = name if len(flows) == 1 else f"{name}, flow {flow['id']} ({flow['law']})"
            both = {SIMULATOR: ours, place: theirs}
            found = {where: sawtooth.of_run(run, flow["id"]) for where, run in both.items()}
            traces[label] = found | ({} if third is None else {LINUX: third})
            rows += compared(label, traces[label])
    return Agreement(tuple(rows), results, traces, invalid, tuple(notes), place)


def _both(simulated: Results, measured: Results, where: str) -> Results:
    """The runs of both sides, case by case, as the experiment of their common directory."""
    runs = tuple(
        replace(run, factors={**run.factors, "on": place})
        for pair in zip(simulated.runs, measured.runs, strict=True)
        for place, run in zip((SIMULATOR, where), pair, strict=True)
    )
    entries = [{"key": run.path.name, "seed": run.seed, "factors": run.factors} for run in runs]
    results = replace(simulated, runs=runs)
    Store(results.root).write_experiment(
        {"schema": SCHEMA, "title": results.title, "runs": entries, "planned": len(entries)}
    )
    return results


def courses(traces: Mapping[str, Trace]) -> list[Course]:
    """Windows by where they ran, for :func:`lfnlab.figures.plot.courses`."""
    return [(name, trace.time_s, trace.cwnd_segments) for name, trace in traces.items()]


def compared(label: str, traces: Mapping[str, Trace]) -> list[Compared]:
    """Each quantity of a flow, by where it ran: SIMULATOR, TEST_BED or VIRTUAL, perhaps LINUX.

    Raises:
        LabError: there are no samples.
    """
    for where, trace in traces.items():
        if trace.time_s.size < 2:
            raise LabError(f"{label}: {where}: no samples after the warm-up; run it for longer")
    found = {
        where: asdict(sawtooth.figures(trace, trace.time_s[0])) for where, trace in traces.items()
    }
    ours, third = found[SIMULATOR], found.get(LINUX)
    theirs = found[VIRTUAL if VIRTUAL in found else TEST_BED]
    return [
        Compared(label, name, ours[name], theirs[name], None if third is None else third[name])
        for name in QUANTITIES
    ]


def _linux(
    scenario: Scenario, program: Path | None, work: Path, tag: str, notes: dict[str, None]
) -> Trace | None:
    """The third column: a lone flow, where Linux has its law and all of its path.

    Its files stay in ``work``, of which a kill leaves no more than a whole run does.
    """
    resolved = scenario.check().to_document()
    if len(resolved["flow"]) != 1 or resolved["flow"][0]["count"] != 1:
        return None
    try:
        told = virtual_time.translated(resolved)
    except ScenarioError:
        return None
    if program is None or not program.is_file():
        notes["no virtual-time Linux (--linux): no third column"] = None
        return None
    [flow] = virtual_run.run(program, work, tag, told).flows
    return sawtooth.since(virtual_run.trace(flow), parse(resolved["warmup"], SECONDS))
