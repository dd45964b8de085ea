"""Three cases of ``studies.starts`` on Linux in virtual time and in the simulator.

CUBIC with HyStart is Linux's own module there, and ``cubic:linux`` here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from lfnlab.analysis.table import markdown, with_interval
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.statistics import interval
from lfnlab.testbed.linux_backend import Linux
from studies import starts
from studies.starts_page import LINUX, name_of

if TYPE_CHECKING:
    from lfnlab.results.runs import Run

START = "hystart"
CASES = (
    ("alone", starts.Path("1Gbit/s", 100, 1.0)),
    ("alone", starts.Path("100Mbit/s", 200, 0.1)),
    ("beside", starts.Path("100Mbit/s", 50, 1.0)),
)


def _cases(experiment: str, path: starts.Path) -> list[Case]:
    """The runs of a case and the old flow alone, without what Linux does not take."""
    found = [*starts.EXPERIMENTS[experiment](path, START)]
    if experiment == "beside":
        found.append(starts.solo(path))
    return [
        Case(
            replace(
                case.scenario,
                sample="100ms",  # Linux needs one
                flows=tuple(
                    replace(flow, law="cubic:linux", slow_start=None)
                    for flow in case.scenario.flows
                ),
            ),
            case.factors,
        )
        for case in found
    ]


def _figures(runs: Sequence[Run], path: starts.Path) -> list[str]:
    """Time over the ideal, losses in BDPs, harm in percent."""
    solo = [run for run in runs if run.factors["experiment"] == "solo"]
    others = [run for run in runs if run not in solo]
    times, lost, harm = [], [], []
    for run in others:
        flows = run.summary["flows"]
        times.append((flows[-1]["completion_s"] or math.inf) / path.ideal_s(starts.SIZE_BDP))
        lost.append(run.summary["links"][0]["drops"] / path.bdp_packets)
        if solo:
            harm.append(100 * (1 - run.goodputs[0] / solo[0].goodputs[0]))
    texts = [with_interval(interval(values)) for values in (times, lost)]
    return [*texts, with_interval(interval(harm)) if harm else ""]


def main() -> None:
    """Runs both and writes the table."""
    rows = []
    for i, (experiment, path) in enumerate(CASES):
        cases = _cases(experiment, path)
        out = FilePath("build/starts-linux")
        for where, backend in (("Linux", Linux()), ("simulator", None)):
            store = out / f"{where.lower()}-{i}"
            found = (
                execute(cases, out=store, jobs=2, backend=backend)
                if backend
                else execute(cases, out=store, jobs=2)
            )
            name = f"{experiment}, {name_of((path.rate, path.rtt_ms))}, {path.depth_bdp:g} BDP"
            rows.append((name if where == "Linux" else "", where, *_figures(found.runs, path)))
    heads = ("case", "", "time / ideal", "lost, BDP", "harm, %")
    LINUX.write_text("\n".join(markdown(heads, rows)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
