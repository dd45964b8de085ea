"""Names of version 0.1.0 that are gone. For one version each is an error with the new name."""

from __future__ import annotations

import sys
from typing import Any

NOW = {
    "Results.to_json": "lfnlab.analysis.summary.to_json(results)",
    "Scenario.background(2)": "Scenario.with_background(2); Scenario.background is a value",
    "Scenario.models": "Scenario.traffic; what was Scenario.traffic is now Scenario.background",
    "Scenario.run": "lfnlab.execute(scenario, ...)",
    "lfnlab.paper": "lfnlab.papers.paper",
    "lfnlab.plot": "lfnlab.figures.plot",
    "lfnlab.report": "lfnlab.figures.report",
    "lfnlab.store": "lfnlab.results.store",
    "lfnlab.summary": "lfnlab.analysis.summary",
    # Modules that had the names of functions.
    "lfnlab.law": "lfnlab.control_laws.registry; in import lfnlab, lfnlab.law is the function",
    "lfnlab.sweep": "lfnlab.experiment and lfnlab.results; lfnlab has Case, Results, Run, execute",
    # Modules that are packages now.
    "lfnlab.metrics.Interval": "lfnlab.statistics.Interval",
    "lfnlab.metrics.convergence_s": "lfnlab.metrics.convergence",
    "lfnlab.metrics.interval": "lfnlab.statistics.interval",
    "lfnlab.metrics.link_utilisation": "lfnlab.metrics.utilization",
    "lfnlab.metrics.paired": "lfnlab.statistics.paired",
    "lfnlab.metrics.utilisation": "lfnlab.metrics.normalized_goodput",
    "lfnlab.scenario.Background": "lfnlab.Background",
    "lfnlab.scenario.Flow": "lfnlab.Flow",
    "lfnlab.scenario.Link": "lfnlab.Link",
    "lfnlab.scenario.Queue": "lfnlab.Queue",
    "lfnlab.scenario.Reverse": "lfnlab.Reverse",
    "lfnlab.scenario.Scenario": "lfnlab.Scenario",
    "lfnlab.scenario.dumbbell": "lfnlab.dumbbell",
    # One name for each of two quantities that had three.
    "metric link-utilisation": "utilization, as in the summary: bytes sent over what could be sent",
    "metric utilisation": "normalized-goodput: goodput over rate",
}


def now(name: str) -> str:
    """The error of an old name."""
    return f"{name} is now {NOW[name]}"


def no_attribute(owner: str, name: str) -> AttributeError:
    """The error of an attribute that ``owner`` lacks: an old name, or one that never was."""
    old = f"{owner}.{name}"
    return AttributeError(now(old) if old in NOW else f"{owner} has no attribute {name!r}")


class _Imports:
    """Refuses old names in ``import lfnlab.plot`` and ``from lfnlab import plot``."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        if name in NOW:
            raise ImportError(now(name))


sys.meta_path.append(_Imports)
