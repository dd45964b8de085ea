"""Questions that papers left open: a command, tables and a one-sentence answer for each.

``papers/NAME/extensions.py`` has ``extend(settings, execute)``, which returns an
:class:`Extension`, and, where Linux has what the paper's laws need, ``on_kernel(settings)``, which
returns the cases that its TCP runs beside the simulator: :class:`OnKernel`. ``on_linux(settings,
simulator, linux)`` returns an :class:`Extension` of runs on Linux in virtual time and in the
simulator. Settings are those of the paper's study, with tables ``extensions`` and ``kernel``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lfnlab.analysis.table import Table, with_interval
from lfnlab.errors import Unavailable
from lfnlab.experiment.executor import SIMULATOR
from lfnlab.experiment.run import Progress, execute
from lfnlab.figures import plot
from lfnlab.papers import paper
from lfnlab.statistics import interval
from lfnlab.testbed import run as testbed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lfnlab.experiment.executor import Backend
    from lfnlab.experiment.plan import Case
    from lfnlab.results.cases import Factor
    from lfnlab.results.runs import Results, Run

Part = Literal["extensions", "kernel", "extensions on Linux"]
COMMANDS: Mapping[Part, str] = {
    "extensions": "--extensions",
    "kernel": "--kernel",
    "extensions on Linux": "--extensions --on linux",
}


@dataclass(frozen=True)
class Extension:
    """Answers to the questions that a paper left open."""

    results: Results
    answers: Mapping[str, str]
    """One sentence with its numbers by question."""
    tables: Mapping[str, Table]
    figures: Mapping[str, tuple[Figure, str]] = field(default_factory=dict)
    """Figures and their captions by file name."""


@dataclass(frozen=True)
class OnKernel:
    """Cases that run both in the simulator and on the test bed."""

    question: str
    cases: Sequence[Case]
    measures: Mapping[str, Callable[[Run], float]]
    """By heading with unit; of a run of either kind."""


def select(results: Results, **factors: Factor) -> list[Run]:
    """The runs with these factors, by seed."""
    found = [
        run
        for run in results.runs
        if all(run.factors[name] == value for name, value in factors.items())
    ]
    assert found, factors
    return found


def extended() -> list[str]:
    """The papers that have an extension."""
    return [name for name, path in paper.papers().items() if (path / "extensions.py").is_file()]


def extend(
    name: str,
    *,
    quick: bool = False,
    out: str | Path = "lfn-results",
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Extension:
    """Run what a paper left for later."""

    def run(cases: Sequence[Case], title: str) -> Results:
        return execute(cases, out=out, jobs=jobs, progress=progress, title=title)

    found: Extension = _module(name).extend(paper.settings_of(name, quick), run)
    return found


def on_kernel(
    name: str,
    *,
    quick: bool = False,
    out: str | Path = "lfn-results",
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Extension:
    """Run cases in the simulator, then on this kernel's TCP (:mod:`lfnlab.testbed.run`).

    Runs on the test bed that do not count, mostly because the machine was busy, are shown and
    counted: their numbers are no evidence against the simulator.
    """
    module = _module(name)
    if not hasattr(module, "on_kernel"):
        known = [other for other in extended() if hasattr(_module(other), "on_kernel")]
        raise Unavailable(f'"{name}" has no cases for Linux; allowed: {", ".join(known)}')
    todo: OnKernel = module.on_kernel(paper.settings_of(name, quick))
    title = f"{paper.title_of(name)}: {todo.question}"
    plans = testbed.plans(todo.cases, file=name)
    simulated = execute(todo.cases, out=out, jobs=jobs, progress=progress, title=title)
    measured = testbed.run(todo.cases, plans, out=Path(out, "measured"), title=title)
    beside = list(zip(simulated.runs, measured.runs, strict=True))
    groups: dict[tuple[Factor, ...], list[tuple[Run, Run]]] = {}
    for pair in beside:
        groups.setdefault(tuple(pair[0].factors.values()), []).append(pair)
    rows = []
    for factors, pairs in groups.items():
        cells = [
            " | ".join(
                with_interval(interval(measure(pair[side]) for pair in pairs)) for side in (0, 1)
            )
            for measure in todo.measures.values()
        ]
        rows.append((*map(str, factors), *cells, f"{_valid(pairs)} of {len(pairs)}"))
    names = tuple(todo.cases[0].factors)
    said = f"{_valid(beside)} of {len(beside)} runs on the test bed are valid"
    if reasons := [why for _, real in beside if (why := real.summary["invalid"]) is not None]:
        said += f"; of the others, shown all the same, the first: {reasons[0]}"
    panels = {
        plot.panel_title(run): [
            (where, *next((t_s, y) for _, _, t_s, y in plot.goodput_series(each)))
            for where, each in (("simulator", run), ("kernel", real))
        ]
        for run, real in beside
        if run.seed == beside[0][0].seed
    }
    return Extension(
        results=simulated,
        answers={todo.question: said},
        tables={
            f"{todo.question}, simulator | kernel": Table(
                (*names, *todo.measures, "valid runs"), tuple(rows), len(names)
            )
        },
        figures={
            "kernel": (
                plot.courses(panels, "goodput of the first flow (Mbit/s)"),
                f"{todo.question}: the first flow in the simulator and in the kernel, first seed",
            )
        },
    )


def on_linux(
    name: str,
    *,
    linux: Backend,
    out: str | Path,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Extension:
    """Run what a paper left for a real kernel on Linux in virtual time, beside the simulator."""
    module = _module(name)
    if not hasattr(module, "on_linux"):
        known = [other for other in extended() if hasattr(_module(other), "on_linux")]
        raise Unavailable(f'"{name}" left nothing for Linux; allowed: {", ".join(known)}')

    def runner(place: Backend) -> paper.Execute:
        def run(cases: Sequence[Case], title: str) -> Results:
            at = Path(out, place.name)
            return execute(cases, out=at, jobs=jobs, progress=progress, title=title, backend=place)

        return run

    settings = paper.settings_of(name, quick=False)
    found: Extension = module.on_linux(settings, runner(SIMULATOR), runner(linux))
    return found


def _valid(pairs: Sequence[tuple[Run, Run]]) -> int:
    """How many of the runs on the test bed count."""
    return sum(real.summary["invalid"] is None for _, real in pairs)


def accept(name: str, part: Part, found: Extension) -> Path:
    """Keep what was found, and its figures in docs/figures, for the page of verdicts."""
    return paper.expect(
        name,
        part,
        {
            "command": f"lfn paper {name} {COMMANDS[part]}",
            "hash": paper.hash_of(found.results),
            "runs": len(found.results.runs),
            "answers": found.answers,
            "tables": {
                heading: [list(table.headings), *(list(row) for row in table.rows)]
                for heading, table in found.tables.items()
            },
            "figures": paper.keep_figures(name, found.figures),
        },
    )


def _module(name: str) -> Any:
    if name not in (known := extended()):
        raise Unavailable(f'"{name}" has no extensions; allowed: {", ".join(known)}')
    package = paper.claims_of(name).__name__
    return importlib.import_module(f"{package}.extensions")
