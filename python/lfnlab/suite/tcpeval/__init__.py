"""The common TCP evaluation suite (draft-irtf-iccrg-tcpeval-01) as a pack of scenarios.

Topologies, loads, buffers and times are the suite's. The suite replays tmix traces, which may not
be distributed; connections are drawn at random instead
(``crates/sim/src/traffic/evaluation_suite.rs``). ``docs/suite.md`` lists our choices where the
suite leaves a parameter open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lfnlab.errors import UsageError
from lfnlab.suite.tcpeval.basic import BASIC_SCENARIOS, DELAY_THROUGHPUT, IMPACT
from lfnlab.suite.tcpeval.experiment import STANDARD, Experiment, Plan, measured, table, to_json
from lfnlab.suite.tcpeval.flows import FAIRNESS, RAMP_UP, TRANSIENTS, WINDOW_PERCENT
from lfnlab.suite.tcpeval.parking import PARKING_LOT
from lfnlab.suite.tcpeval.topology import BASIC, pair_rtts_us

if TYPE_CHECKING:
    from lfnlab.results.runs import Results

__all__ = [
    "BASIC",
    "EXPERIMENTS",
    "LOADS",
    "STANDARD",
    "WINDOW_PERCENT",
    "Experiment",
    "Plan",
    "measured",
    "notes",
    "pair_rtts_us",
    "plan",
    "table",
    "to_json",
]

TRACES = (
    "traffic: connections drawn from a model; the suite's tmix traces cannot be passed on, so "
    "absolute figures are not those of the draft"
)
LOADS = (60, 85, 110)
EXPERIMENTS: Mapping[str, Experiment] = {
    "basic": BASIC_SCENARIOS,
    "delay-throughput": DELAY_THROUGHPUT,
    "ramp-up": RAMP_UP,
    "transients": TRANSIENTS,
    "impact": IMPACT,
    "fairness": FAIRNESS,
    "parking-lot": PARKING_LOT,
}


def plan(
    name: str,
    law: str,
    scenarios: str | None = None,
    loads: str | None = None,
    *,
    quick: bool = False,
    tmrg: bool = False,
) -> tuple[Experiment, Plan]:
    """The experiment of this name, and how it is to be run; texts as the command line has them.

    Raises:
        UsageError: naming the option.
    """
    if name != "basic" and (scenarios is not None or loads is not None):
        option = "--load" if scenarios is None else "--scenario"
        raise UsageError(
            f"{option}: allowed only with the basic scenarios, not with --experiment {name}"
        )
    experiment = EXPERIMENTS[name]
    if tmrg and not experiment.has_tmrg:
        known = ", ".join(name for name, each in EXPERIMENTS.items() if each.has_tmrg)
        raise UsageError(f"--tmrg: not allowed with --experiment {name}; allowed: {known}")
    chosen = _chosen("--scenario", scenarios, BASIC)
    percent = [int(load) for load in _chosen("--load", loads, [str(load) for load in LOADS])]
    return experiment, Plan(law, chosen, percent, experiment.quick if quick else 1, tmrg)


def _chosen(option: str, text: str | None, allowed: Iterable[str]) -> list[str]:
    known = list(allowed)
    names = known if text is None else [part.strip() for part in text.split(",")]
    for i, name in enumerate(names):
        if name not in known or name in names[:i]:
            raise UsageError(f'{option}: "{name}"; allowed, each once: {", ".join(known)}')
    return names


def notes(asked: Plan, results: Results) -> list[str]:
    """Notes below the table."""
    short = (
        [f"--quick: all times are 1/{asked.shrink} of the suite's; a trial, not its result"]
        if asked.shrink > 1
        else []
    )
    drawn = any("traffic" in run.summary for run in results.runs)
    return [*short, *([TRACES] if drawn else [])]
