"""The table that the terminal and the report both show: one row a law, route and other factors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lfnlab.analysis import background
from lfnlab.analysis.table import Table, with_interval
from lfnlab.errors import UsageError
from lfnlab.results.cases import LINK_METRICS, METRICS
from lfnlab.results.runs import SCHEMA
from lfnlab.statistics import runs_to_differ

if TYPE_CHECKING:
    from lfnlab.results.cases import Factor
    from lfnlab.results.runs import Results, Run
    from lfnlab.statistics import Interval


INTERVALS = " ± 95 % (Student's t)"
"""Meaning of ``±`` in a table and of the bars in a figure."""
MANY_FLOW_SECONDS = 4000
"""Runs of fewer flows times seconds sample every 10 ms by default, with any number of probes."""


def to_json(results: Results) -> dict[str, Any]:
    """Contents of ``--json``: runs, aggregates over seeds by key, warnings."""
    from lfnlab.analysis import warnings  # and with it the theory

    aggregate: dict[str, dict[str, Any]] = {}
    for metric in METRICS:
        for group, value in results.intervals(metric).items():
            aggregate.setdefault(results.named(group), {})[metric] = value.to_json()
    return {
        "schema": SCHEMA,
        "runs": [run.summary for run in results.runs],
        "aggregate": aggregate,
        "averaged": averaged(results),
        "warnings": warnings.seen(results),
    }


def summary_tables(results: Results) -> list[Table]:
    """The summary, and in other networks than a dumbbell the links."""
    found = [summary_table(results)]
    runs = [run for run in results.looked_at if not run.is_measured]
    if results.cases.rows and not all(run.is_dumbbell for run in runs):
        found.append(_links_table(results))
    return found


def summary_table(
    results: Results,
    baseline: str | Mapping[str, Factor] | None = None,
    metrics: Sequence[str] | None = None,
    *,
    seeds: bool = False,
) -> Table:
    """Means over seeds, with 95 % intervals where there are several.

    With a baseline, the differences from it, seed by seed. Without flows under test, what the links
    of each run carried.

    Args:
        results: the runs.
        baseline: a law, or values of keys.
        metrics: the columns; default all.
        seeds: with a baseline, in place of each difference the number of seeds that it takes to
            tell it from 0.

    Raises:
        UsageError: for a baseline or a metric that is not there.
    """
    if not results.cases.rows:
        return _links_table(results)
    columns = _columns(results, every=metrics is not None)
    if metrics is not None:
        by_metric = {column[1]: column for column in columns}
        if unknown := set(metrics) - by_metric.keys():
            raise UsageError(f'metric "{min(unknown)}"; allowed: {", ".join(by_metric)}')
        columns = [by_metric[name] for name in metrics]
    if baseline is None:
        values = [results.intervals(metric) for _, metric, _ in columns]
        if metrics is None and not results.groups and (of_background := background.shares(results)):
            columns.append(("background (%)", "", 100.0))
            values.append(of_background)
    else:
        values = [results.cases.differences(metric, baseline) for _, metric, _ in columns]
    rows = tuple(
        (
            *(str(part) for part in group),
            *(
                _seeds(value[group]) if seeds else with_interval(value[group], scale)
                for value, (_, _, scale) in zip(values, columns, strict=True)
            ),
        )
        for group in values[0]
    )
    by = results.keys
    sign = "" if baseline is None or seeds else "Δ "
    headings = [heading.partition(" (")[0] if seeds else heading for heading, _, _ in columns]
    return Table((*by, *(f"{sign}{heading}" for heading in headings)), rows, len(by))


def _seeds(difference: Interval) -> str:
    """Seeds until a difference is told from 0; in brackets where those that are there tell it."""
    needed = runs_to_differ(difference)
    if needed is None:
        return "–"
    told = abs(difference.mean) > difference.half
    return f"({needed:,})" if told else f"{max(needed, difference.n + 1):,}"


def _columns(results: Results, *, every: bool) -> list[tuple[str, str, float]]:
    """Heading with unit, metric, factor to that unit; Jain's index of single flows if ``every``."""
    unit, unit_bps = rate_unit_of(results.looked_at)
    alone = results.cases.is_all("flows", 1)
    columns = [
        (f"goodput{'' if alone else ', sum'} ({unit})", "goodput_bps", 1 / unit_bps),
        ("utilization (%)", "utilization", 100.0),
        *_of_groups(results, unit, unit_bps),
        ("Jain", "jain", 1.0),
        ("CoV (1 s)", "cov", 1.0),
        ("mean queue (ms)", "mean_queue_s", 1e3),
        ("loss events", "loss_events", 1.0),
        ("timeouts", "timeouts", 1.0),
        ("retransmits", "retransmits", 1.0),
    ]
    return [column for column in columns if every or not (alone and column[1] == "jain")]


def _of_groups(results: Results, unit: str, unit_bps: float) -> list[tuple[str, str, float]]:
    """Columns of groups of flows; no completion where no flow has a size."""
    if not results.groups:
        return []
    columns = [
        (f"mean flow ({unit})", "flow_goodput_bps", 1 / unit_bps),
        ("fair share", "fair_share", 1.0),
        ("completion (s)", "completion_s", 1.0),
    ]
    return [
        column
        for column in columns
        if not all(math.isnan(row[column[1]]) for row in results.cases.rows)
    ]


def _links_table(results: Results) -> Table:
    scales = dict(zip(LINK_METRICS, (100.0, 1e3, 1.0), strict=True))
    values = [(results.links.intervals(metric), scale) for metric, scale in scales.items()]
    rows = tuple(
        (
            *(str(part) for part in group),
            *(with_interval(value[group], scale) for value, scale in values),
        )
        for group in values[0][0]
    )
    keys = results.links.keys
    return Table((*keys, "utilization (%)", "mean queue (ms)", "drops"), rows, len(keys))


def averaged(results: Results, start_s: float | None = None, end_s: float | None = None) -> str:
    """The averaged time and the number of runs, as "from 2 s to 12 s, without a warm-up; ..."."""
    warmups = {float(run.summary["warmup_s"]) for run in results.looked_at}
    ends = {float(run.summary["sim_s"]) for run in results.looked_at}
    last = _range(ends) if end_s is None else f"{end_s:g}"
    if start_s is not None:
        span = f"from {start_s:g} s to {last} s"
    elif warmups == {0.0}:
        span = f"from 0 s to {last} s, without a warm-up"
    else:
        span = f"from {_range(warmups)} s, the end of the warm-up, to {last} s"
    some = "" if results.completeness is None else f"; {results.completeness}"
    return f"{span}; {over(results)}{some}"


def averages(results: Results) -> str:
    """The line below a summary: what its values are averages of, and which are counts of a run."""
    counted = any(run.summary["warmup_s"] for run in results.looked_at) and bool(results.cases.rows)
    more = "; losses, timeouts and retransmits: whole run" if counted else ""
    return f"averages {averaged(results)}{more}{_sampling(results)}"


def _sampling(results: Results) -> str:
    """How often runs sample whose number of rows decides that, unless it is every 10 ms."""
    many = [
        run.scenario
        for run in results.looked_at
        if run.is_simulated
        and run.scenario.sample is None
        and (
            run.scenario.sample_rows is not None
            or len(run.summary["flows"]) * float(run.summary["sim_s"]) > MANY_FLOW_SECONDS
        )
    ]
    steps = {str(one.check().sample) for one in many} - {"10ms"}
    each = " or ".join(sorted(steps))
    return f"; samples every {each}, by the number of their rows (key sample_rows)" if steps else ""


def over(results: Results) -> str:
    """How many runs a mean is of; a case in which nothing is random has but one."""
    cases = results.seeds_of_cases()
    most = max((count for _, count in cases), default=1)
    fixed = [
        run
        for run, count in cases
        if count == 1 and run.is_simulated and not run.scenario.is_random
    ]
    if fixed and len(fixed) == len(cases):
        return "one run each, since nothing in the scenario is random"
    if most == 1:
        return "one measurement" if all(run.is_measured for run, _ in cases) else "one seed"
    # Some runs may have failed.
    least = min(count for run, count in cases if run not in fixed)
    count = f"{most}" if least == most else f"{least} to {most}"
    said = f"means over {count} seeds{INTERVALS}"
    if fixed:
        laws = dict.fromkeys(law for run in fixed for law in run.laws)
        said += f"; one run where nothing in the scenario is random: {', '.join(laws)}"
    if least > 1 and results.distinct() == len(cases):
        said += "; all seeds gave the same run"
    return said


def _range(values: set[float]) -> str:
    return " to ".join(f"{value:g}" for value in sorted({min(values), max(values)}))


def rate_unit_of(runs: Sequence[Run]) -> tuple[str, float]:
    """The unit for the rates of some runs, in tables, figures and traces alike, and its size."""
    rates_bps = [link["rate_bps"] for run in runs for link in run.summary["links"][:1]]
    measured = [
        flow["goodput_bps"] or 0 for r in runs if r.is_measured for flow in r.summary["flows"]
    ]
    return rate_unit(max([*rates_bps, *measured], default=0))


def rate_unit(rate_bps: float) -> tuple[str, float]:
    """The unit that suits a rate, and its size in bit/s."""
    return ("Gbit/s", 1e9) if rate_bps >= 1e9 else ("Mbit/s", 1e6)
