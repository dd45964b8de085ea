"""Stored runs, and the runs of an experiment as frames and JSON."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from lfnlab import statistics
from lfnlab.control_laws.registry import known
from lfnlab.errors import StoreError, UsageError
from lfnlab.results import drawn, groups, many, remote, shards
from lfnlab.results.cases import (
    COMPARED,
    LINK_METRICS,
    METRICS,
    SHOWN,
    Cases,
    Rows,
    frame,
    numbered,
    shown,
)
from lfnlab.results.integrity import KEY, damaged, incomplete, provenance_of, unsealed
from lfnlab.results.many import Runs, cases_of
from lfnlab.results.store import (
    EXPERIMENT,
    check_layout,
    in_folders,
    read_json,
    read_table,
    read_text,
    stored,
)
from lfnlab.scenario.builder import Scenario

if TYPE_CHECKING:
    import polars as pl

    from lfnlab.results.cases import Factor, Group
    from lfnlab.results.drawn import Drawn
    from lfnlab.results.summary import FlowSummary, Summary
    from lfnlab.statistics import Interval

SCHEMA = 1
_OF_MEASUREMENT = ("summary.json", "goodput.parquet")
_Row = TypeVar("_Row", bound="Mapping[str, Any]")


class Metrics(TypedDict):
    """The metrics of some flows together, and of their link; NaN where one is not defined."""

    goodput_bps: float
    jain: float
    """Jain's index of the goodputs; NaN of one flow."""
    cov: float
    """Mean coefficient of variation of the flows' goodputs over time."""
    retransmits: int
    """NaN, as the numbers below, where a measurement does not tell it."""
    timeouts: int
    loss_events: int
    utilization: float
    """Of the link, as :class:`~lfnlab.results.summary.LinkSummary` has it."""
    mean_queue_s: float
    drops: int


class LawRow(Metrics):
    """A row a run, law and route. The factors of the run are further keys: ``run.factors``."""

    law: str
    route: str
    seed: int
    flows: int
    hash: str


@dataclass(frozen=True)
class Run:
    """One stored run."""

    path: Path
    seed: int
    factors: Mapping[str, Factor]

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {value}" for name, value in self.factors.items())
        return shown(f"Run with seed {self.seed}{told and f', {told}'}", self._frame)

    def _frame(self) -> pl.DataFrame:
        if not self.summary["flows"]:
            return frame(self.summary["links"]).select("id", *LINK_METRICS)
        return frame(self.by_law()).select("law", "route", "flows", *SHOWN)

    @cached_property
    def summary(self) -> Summary:
        """The run's result, see ``docs/results.md``."""
        found: dict[str, Any] = read_json(self.path / "summary.json")
        if KEY.fullmatch(self.path.name):
            said = provenance_of(self.path)
            found |= {key: said[key] for key in ("wall_s", "cpu_s") if key in said}
        return cast("Summary", found)

    @cached_property
    def scenario(self) -> Scenario:
        """Scenario of the run."""
        file = self.path / "scenario.toml"
        return Scenario.from_toml(read_text(file), file.name)

    @property
    def is_measured(self) -> bool:
        """Whether another tool measured it: it has flows, but no links and no scenario."""
        return not self.summary["links"]

    @property
    def is_simulated(self) -> bool:
        """Whether the simulator ran it."""
        return "testbed" not in self.summary and not self.is_measured

    @property
    def goodputs(self) -> list[float]:
        """Goodput of each flow, bit/s; NaN for a flow that was not active after the warm-up."""
        return goodputs(self.summary["flows"])

    @property
    def laws(self) -> tuple[str, ...]:
        """The laws of its flows, each once, in the order of the flows."""
        return tuple(dict.fromkeys(flow["law"] for flow in self.summary["flows"]))

    def probes(self, law: str) -> tuple[str, ...]:
        """Names of the law's own variables, by their numbers in the table ``probes``."""
        for entry in self.summary.get("prototypes", ()):
            if entry["law"] == law:
                return tuple(entry["probes"])
        info = known(law)
        return () if info is None else info.probes

    def table(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Table flows, queues, events or probes; packets where some were recorded.

        ``columns`` are those to read, where it has them; default all.
        """
        return read_table(self.path, name, columns)

    @property
    def is_dumbbell(self) -> bool:
        """Whether its links are one and the opposite direction."""
        return is_dumbbell(self.summary)

    def link(self, flows: Sequence[FlowSummary]) -> int:
        """Index of the link whose figures stand beside those of these flows, see :func:`link`."""
        return link(self.summary, flows)

    @cached_property
    def settings(self) -> list[dict[str, Any]]:
        """The scenario's table of each flow, defaults filled in; none of a measurement."""
        return [] if self.is_measured else groups.own_tables(self.scenario.check().to_document())

    @cached_property
    def properties(self) -> dict[str, list[str]]:
        """The properties that group flows: of each its values, in the order of the flows."""
        flows = self.summary["flows"]
        return groups.properties(flows, [route(flow) for flow in flows], self.settings)

    def by(self, *keys: str) -> list[dict[str, Any]]:
        """One row a group of flows that agree in these properties, see :meth:`Results.by`.

        Raises:
            UsageError: for a property that flows do not have.
        """
        summary, flows = self.summary, self.summary["flows"]
        mean_bps = _mean(flow["goodput_bps"] for flow in flows)
        rows = []
        for values, places in groups.grouped(self.properties, keys).items():
            own = [flows[place] for place in places]
            told = {
                name: ", ".join(dict.fromkeys(self.properties[name][p] for p in places))
                for name in ("law", "route")
            }
            own_bps = _mean(flow["goodput_bps"] for flow in own)
            rows.append(
                {
                    **self._factors,
                    **told,
                    **dict(zip(keys, values, strict=True)),
                    "seed": self.seed,
                    "flows": len(own),
                    **metrics_of(summary, own),
                    "flow_goodput_bps": own_bps,
                    "fair_share": own_bps / mean_bps if mean_bps > 0.0 else math.nan,
                    "completion_s": _mean(flow.get("completion_s") for flow in own),
                    "hash": summary["hash"],
                }
            )
        return rows

    def by_law(self) -> list[LawRow]:
        """One row a law and route: factors, seed, metrics of its flows and of their :meth:`link`.

        Where other laws run beside the one that is compared, ``law compared`` says which that is.
        """
        return [cast("LawRow", {**self._factors, **row}) for row in by_law(self.summary)]

    @property
    def _factors(self) -> dict[str, Factor]:
        """The factors, and which law is compared where others run beside it."""
        factors = dict(self.factors)
        if "law" in factors and self.laws != (factors["law"],):
            factors[COMPARED] = factors["law"]
        return factors


def is_measurement(directory: Path) -> bool:
    """Whether a directory holds a measurement: measurements alone store a table of goodput."""
    return all((directory / name).is_file() for name in _OF_MEASUREMENT)


def origin(runs: Sequence[Run]) -> str:
    """The makers of some runs in one line: code, number of runs, hash of their keys, command.

    The keys are hashes of scenario, seed and code. Command and code are those of the first run;
    empty for runs without a provenance.
    """
    told = [
        run
        for run in runs[:1]
        if (run.path / "provenance.json").is_file() or shards.holds(run.path)
    ]
    if not told:
        return ""
    said = provenance_of(told[0].path)
    names = runs.keys if isinstance(runs, Runs) else [run.path.name for run in runs]
    keys = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    count = f"{len(runs):,} run{'' if len(runs) == 1 else 's'}"
    made = f"by: {said['command']}" if said.get("command") else ""
    line = f"lfnlab {said.get('code', '')}, {count} {keys} {made}".rstrip()
    return "".join(sign if sign.isprintable() else "?" for sign in line)


def short(names: Sequence[str]) -> dict[str, str]:
    """Keys of a scenario without the table in which they stand, where that leaves no two alike.

    >>> short(["link.queue.size", "flow[*].rtt"])
    {'link.queue.size': 'queue.size', 'flow[*].rtt': 'rtt'}
    """
    cut = {name: re.sub(r"^(link|flow|links)(\[[^]]*\])?\.(?=.)", "", name) for name in names}
    kept = list(cut.values())
    return {name: word if kept.count(word) == 1 else name for name, word in cut.items()}


def is_dumbbell(summary: Summary) -> bool:
    """Whether the links of a run are one and the opposite direction."""
    return [link["id"] for link in summary["links"]] == ["forward", "reverse"]


def link(summary: Summary, flows: Sequence[FlowSummary]) -> int:
    """Index of the link whose figures stand beside those of these flows.

    In a dumbbell the one of their data, the forward one where they go both ways or are none;
    elsewhere the busiest of those that their data pass, of all where they are none.
    """
    links = summary["links"]
    if is_dumbbell(summary):
        directions = [link["id"] for link in links]
        return directions.index(min((flow["direction"] for flow in flows), default="forward"))
    passed = {name for flow in flows for way in flow.get("routes", ()) for name in way["links"]}
    places = [i for i, link in enumerate(links) if link["id"] in passed] or range(len(links))
    return max(places, key=lambda i: links[i]["utilization"])


def route(flow: FlowSummary) -> str:
    """The way of a flow's data in words.

    "forward" or "reverse" in a dumbbell, elsewhere its links: "a > b", "a, then b" if it changes.
    """
    ways = [" > ".join(way["links"]) for way in flow.get("routes", ())]
    return ", then ".join(way for way, _ in groupby(ways)) or str(flow["direction"])


def by_law(summary: Summary) -> list[LawRow]:
    """One row a law and route of a run: seed, and :func:`metrics_of` its flows."""
    groups: dict[tuple[str, str], list[FlowSummary]] = {}
    for flow in summary["flows"]:
        groups.setdefault((flow["law"], route(flow)), []).append(flow)
    laws = list(dict.fromkeys(law for law, _ in groups))
    return [
        {
            "law": law,
            "route": way,
            "seed": summary["seed"] or 0,  # a measurement has none
            "flows": len(flows),
            **metrics_of(summary, flows),
            "hash": summary["hash"],
        }
        for (law, way), flows in sorted(groups.items(), key=lambda group: laws.index(group[0][0]))
    ]


def metrics_of(summary: Summary, flows: Sequence[FlowSummary]) -> Metrics:
    """The metrics of some flows of a run together, and of their :func:`link`.

    NaN stands for what a measurement does not tell.
    """
    beside: Mapping[str, Any] = summary["links"][link(summary, flows)] if summary["links"] else {}
    active = [goodput for goodput in goodputs(flows) if not math.isnan(goodput)]
    return {
        "goodput_bps": together_bps(summary, flows),
        "jain": _jain(active),
        "cov": _mean(flow["cov"] for flow in flows),
        "retransmits": _sum(flows, "retransmits"),
        "timeouts": _sum(flows, "timeouts"),
        "loss_events": _sum(flows, "loss_events"),
        "utilization": beside.get("utilization", math.nan),
        "mean_queue_s": beside.get("mean_queue_s", math.nan),
        "drops": beside.get("drops", math.nan),
    }


def _sum(flows: Sequence[FlowSummary], key: str) -> Any:
    """The sum of a count over flows; NaN if one of them does not tell it."""
    counts = [flow.get(key) for flow in flows]
    return math.nan if None in counts else sum(cast("list[int]", counts))


def _jain(goodputs_bps: Sequence[float]) -> float:
    if len(goodputs_bps) < 2:
        return math.nan
    from lfnlab import metrics  # and with it numpy

    return metrics.jain(goodputs_bps)


def goodputs(flows: Iterable[FlowSummary]) -> list[float]:
    """Goodput of each of these flows, bit/s; NaN for a flow that was not active after the warm-up.

    A run that was stored before such flows had none has 0 there.
    """
    return [math.nan if (bps := flow["goodput_bps"]) is None else bps for flow in flows]


def together_bps(summary: Summary, flows: Sequence[FlowSummary]) -> float:
    """Goodput of flows in sum, in bit/s, over the time in which at least one of them was active.

    A flow's own goodput counts its own time, from its start or the warm-up to its end. So a sum of
    these is more than the link's rate where flows follow one another.
    """
    spans = []
    for flow, goodput_bps in zip(flows, goodputs(flows), strict=True):
        if goodput_bps > 0.0:
            begin_s = max(float(flow["start_s"]), float(summary["warmup_s"]))
            took_s = 8.0 * flow["delivered_bytes"] / goodput_bps
            spans.append((begin_s, begin_s + took_s))
    active_s, until_s = 0.0, -math.inf
    for begin_s, end_s in sorted(spans):
        active_s += max(0.0, end_s - max(begin_s, until_s))
        until_s = max(until_s, end_s)
    delivered = _sum(flows, "delivered_bytes")
    return float(8.0 * delivered / active_s if active_s > 0.0 else 0.0 * delivered)


def _mean(values: Iterable[float | None]) -> float:
    return statistics.interval(v for v in values if v is not None).mean


def _of(kind: type[Any], value: Any) -> Any:
    """The value, if it has this type."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError
    return value


def _listed(root: Path, entry: Any) -> Run:
    """A run as an experiment lists it; a key is no path."""
    key, factors = _of(str, entry["key"]), _of(dict, entry["factors"])
    plain = all(isinstance(value, str | int | float) for value in factors.values())
    if not (plain and KEY.fullmatch(key)):
        raise TypeError
    return Run(root / "runs" / key, _of(int, entry["seed"]), factors)


def _planned(root: Path, entries: Any) -> Sequence[Run]:
    """The runs that an experiment lists: one by one, or very many as columns."""
    if isinstance(entries, list):
        return [_listed(root, entry) for entry in entries]
    keys, seeds, cases = (_of(list, entries[name]) for name in ("key", "seed", "case"))
    factors = [_of(dict, factors) for factors in entries["factors"]]
    for seed, case in zip(seeds, cases, strict=True):
        _of(int, seed)
        if not 0 <= _of(int, case) < len(factors):
            raise TypeError
    for key in keys:
        if not KEY.fullmatch(_of(str, key)):
            raise TypeError
    return Runs(keys, seeds, cases, factors, partial(_run_of, root / "runs"))


def runs_of(
    root: Path,
    keys: Sequence[str],
    seeds: Sequence[int],
    cases: Sequence[int],
    factors: Sequence[Mapping[str, Factor]],
) -> Sequence[Run]:
    """Runs of a store; each by its key, its seed, and the number of its factors."""
    runs = Runs(keys, seeds, cases, factors, partial(_run_of, root / "runs"))
    return runs if len(runs) > many.MANY else tuple(runs)


def _run_of(home: Path, key: str, seed: int, factors: Mapping[str, Factor]) -> Run:
    return Run(home / key, seed, factors)


def listing(
    keys: Sequence[str],
    seeds: Sequence[int],
    cases: Sequence[int],
    factors: Sequence[Mapping[str, Factor]],
) -> Any:
    """The runs of an experiment as ``experiment.json`` has them, see :meth:`Results.load`."""
    if len(keys) <= many.MANY:
        return [
            {"key": key, "seed": seed, "factors": dict(factors[case])}
            for key, seed, case in zip(keys, seeds, cases, strict=True)
        ]
    told = [dict(of) for of in factors]
    return {"key": [*keys], "seed": [*seeds], "case": [*cases], "factors": told}


@dataclass(frozen=True)
class Failure:
    """A run that ended with an error; it is not stored, so the same sweep tries it again."""

    seed: int
    factors: Mapping[str, Factor]
    error: str


@dataclass(frozen=True)
class Results:
    """The runs of an experiment, in order: by case, then by seed."""

    root: Path
    title: str
    runs: Sequence[Run]
    failures: tuple[Failure, ...] = ()
    missing: int = 0
    """Runs of the experiment that are not there: it was interrupted, or they failed."""
    conditions: tuple[str, ...] = ()
    """Conditions that the rows meet, see :meth:`where`."""
    groups: tuple[str, ...] = ()
    """Properties by which the flows of a run are grouped, see :meth:`by`; else law and route."""

    @classmethod
    def load(cls, root: str | Path) -> Results:
        """The last experiment of a results directory, with its stored runs.

        Raises:
            StoreError: when there is none, or something of it is damaged.
        """
        root = remote.local(root)
        if not root.is_dir():
            what = "is not a folder" if os.path.lexists(root) else "does not exist"
            raise StoreError(
                f"cannot read results: {root} {what}; allowed: the --out folder of a command"
            )
        check_layout(root)
        file = root / EXPERIMENT
        if not os.path.lexists(file):
            if is_measurement(root):
                run = Run(root, 0, {})
                return cls(root, str(run.summary["name"]), (run,))
            raise StoreError(
                f"cannot read results: {root} holds no {file.name}; the command that made its runs "
                "writes the file again and does not repeat finished runs"
            )
        experiment = unsealed(file)
        try:
            planned = _planned(root, experiment["runs"])
            title = _of(str, experiment["title"])
            count = _of(int, experiment.get("planned", len(planned)))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise damaged(file, "does not list the runs of an experiment") from None
        there = stored(root) if (root / "runs").is_dir() else set()
        runs: Sequence[Run]
        folders: Sequence[Run]
        if isinstance(planned, Runs):
            runs, folders = planned.among(there), planned.among(in_folders(root))
        else:
            runs = folders = tuple(run for run in planned if run.path.name in there)
        if len(runs) < len(planned) and (wrong := shards.of(root / "runs").wrong):
            name = min(wrong)
            raise damaged(root / "runs" / name, wrong[name])
        for run in folders:
            if (why := incomplete(run.path)) is not None:
                raise damaged(run.path / "provenance.json", why)
        if not runs:
            raise StoreError(
                f"cannot read results: none of the {count} runs of {file} exists; repeat the "
                "command that made them"
            )
        return cls(root, title, runs, missing=count - len(runs))

    @property
    def completeness(self) -> str | None:
        """Numbers of stored and of all runs, if some are missing."""
        if not self.missing:
            return None
        if self.conditions:
            return f"{self.missing:,} runs are missing; repeat the command to run them"
        planned = f"{len(self.runs) + self.missing:,} runs"
        return f"{len(self.runs):,} of {planned} are stored; repeat the command to run the others"

    def by(self, *keys: str) -> Results:
        """The results with a row for each group of flows that agree in these properties.

        A property is law, route, direction, flow (its number), group (name or number of its table),
        or a key of the scenario's flow: ``rtt``, ``start``, ``size`` as written there, where a
        distribution is one value. Rows have more columns: ``flow_goodput_bps`` is the mean over
        the group's flows, ``fair_share`` that over the mean of all flows of the run (1 is fair),
        ``completion_s`` the mean over the flows that finished.

        >>> results.by("law", "rtt").table(["flow_goodput_bps"])  # doctest: +SKIP

        Raises:
            UsageError: for a property that flows do not have, naming those that they have.
        """
        for run in self.runs[:1]:
            groups.grouped(run.properties, keys)
        return replace(self, runs=tuple(self.runs), groups=tuple(dict.fromkeys(keys)))

    def where(self, *conditions: str) -> Results:
        """The results whose :meth:`rows` meet all conditions.

        >>> results.where("law!=reno", "link.loss=1e-4,1e-3", "utilization>=0.9")  # doctest: +SKIP

        Raises:
            UsageError: for a column that does not exist, or if no row is left.
        """
        kept = replace(self, conditions=(*self.conditions, *conditions))
        if kept._columns is not None and isinstance(self.runs, Runs):
            if not kept._columns.height:
                raise UsageError(f"no row has {' and '.join(kept.conditions)}")
            there = {self.runs.keys[at] for at in kept._columns["at"]}
            return replace(kept, runs=self.runs.among(there))
        rows = kept._rows_of_runs if self.cases.rows else kept._links_of_runs
        if not any(rows):
            raise UsageError(f"no row has {' and '.join(kept.conditions)}")
        runs = [run for run, own in zip(self.runs, rows, strict=True) if own]
        return replace(kept, runs=tuple(runs))

    def _kept(self, rows_of_runs: list[list[_Row]]) -> list[list[_Row]]:
        """The rows that meet the conditions."""
        if not self.conditions:
            return rows_of_runs
        from lfnlab.results.conditions import met  # and with it polars

        is_kept = iter(met([row for rows in rows_of_runs for row in rows], self.conditions))
        return [[row for row in rows if next(is_kept)] for rows in rows_of_runs]

    @cached_property
    def _rows_of_runs(self) -> list[list[LawRow]]:
        if self.groups:
            rows = [run.by(*self.groups) for run in self.runs]
            return cast("list[list[LawRow]]", self._kept(rows))
        return self._kept([run.by_law() for run in self.runs])

    @cached_property
    def _links_of_runs(self) -> list[list[dict[str, Any]]]:
        rows = [
            [
                {
                    **run.factors,
                    "seed": run.seed,
                    "link": link["id"],
                    **{name: link[name] for name in LINK_METRICS},
                }
                for link in cast("list[dict[str, Any]]", run.summary["links"])
            ]
            for run in self.runs
        ]
        return self._kept(rows)

    @cached_property
    def _columns(self) -> pl.DataFrame | None:
        """The rows of very many runs."""
        if not isinstance(self.runs, Runs):
            return None
        rows = self.runs.rows(self.root / "runs")
        if rows is None or not self.conditions:
            return rows
        from lfnlab.results.conditions import filtered  # and with it polars

        return filtered(rows, self.conditions)

    @cached_property
    def cases(self) -> Cases:
        """Its rows, and what tells its cases apart."""
        if self._columns is not None:
            return Cases(*cases_of(self._columns))
        runs = [(*run.factors.items(), run.seed) for run in self.runs]
        rows = numbered([*zip(runs, self._rows_of_runs, strict=True)])
        if any(COMPARED in row for row in rows):
            rows = [{COMPARED: row["law"], **row} for row in rows]
        swept = dict.fromkeys(name for run in self.runs for name in run.factors)
        names = [name for name in swept if name not in ("law", "seed")]
        told = [name for name in names if any(row.get(name, "") != row["law"] for row in rows)]
        more = [name for name in ("case", COMPARED) if any(name in row for row in rows)]
        if self.groups:
            laws = ["law"] if "law" in swept and COMPARED not in more else []
            return Cases(rows, tuple(dict.fromkeys((*more, *told, *laws, *self.groups))))
        several = ["route"] if len({row["route"] for row in rows}) > 1 else []
        return Cases(rows, (*dict.fromkeys((*more, *told)), "law", *several))

    @cached_property
    def links(self) -> Cases:
        """A row a run and link with what it carried, and what tells its cases apart."""
        runs = [(*run.factors.items(), run.seed) for run in self.runs]
        rows = numbered([*zip(runs, self._links_of_runs, strict=True)])
        swept = dict.fromkeys(name for run in self.runs for name in run.factors if name != "seed")
        more = ["case"] if any("case" in row for row in rows) else []
        return Cases(rows, (*more, *swept, "link"))

    @cached_property
    def first_runs(self) -> dict[Group, Run]:
        """The first run of each case by its values of :attr:`keys`; without flows, of each link."""
        if self._columns is not None:
            firsts = self._columns.unique(self.keys, keep="first", maintain_order=True)
            groups = firsts.select(self.keys).rows()
            return dict(zip(groups, (self.runs[at] for at in firsts["at"]), strict=True))
        cases = self.cases if self.cases.rows else self.links
        found: dict[Group, Run] = {}
        for row, run in zip(cases.rows, self.runs_of_rows, strict=True):
            found.setdefault(tuple(row.get(key, "") for key in cases.keys), run)
        return found

    @property
    def runs_of_rows(self) -> list[Run]:
        """The run of each row of :attr:`cases`; without flows under test, of :attr:`links`."""
        of_laws, of_links = self._rows_of_runs, self._links_of_runs
        counts = map(len, of_laws if self.cases.rows else of_links)
        return [run for run, n in zip(self.runs, counts, strict=True) for _ in range(n)]

    def rows(self) -> list[LawRow]:
        """One row a run, law and route, see :meth:`Run.by_law`.

        Where cases have the same factors, ``case`` tells them apart, from 1.
        """
        return [cast("LawRow", dict(row)) for row in self.cases.rows]

    def frame(self) -> pl.DataFrame:
        """:meth:`rows` as a frame; goodput in bit/s, delays in seconds."""
        rows = self.cases.rows
        return rows.columns if isinstance(rows, Rows) else frame(rows)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of :meth:`rows` that name what was run: factors, law, route; not the seed.

        A factor that only repeats the law is left out, and so is a route that all flows share.
        """
        return self.cases.keys

    def table(self, metrics: Sequence[str] = METRICS) -> pl.DataFrame:
        """A row a case: means over seeds with 95 % intervals, see ``Cases.table``.

        >>> results.table().to_pandas()  # doctest: +SKIP
        """
        return self.cases.table(metrics)

    def compare(
        self, baseline: str | Mapping[str, Factor], metrics: Sequence[str] = METRICS
    ) -> pl.DataFrame:
        """Differences of each case from a baseline, seed by seed, see ``Cases.compare``.

        >>> results.compare("cubic", ["goodput_bps"])  # doctest: +SKIP
        >>> results.compare({"link.queue.size": "1bdp"})  # doctest: +SKIP
        """
        return self.cases.compare(baseline, metrics)

    def intervals(
        self, metric: str, by: Sequence[str] | None = None
    ) -> dict[tuple[Factor, ...], Interval]:
        """Mean and 95 % interval of a column over the seeds of each group.

        See ``Cases.intervals``.
        """
        return self.cases.intervals(metric, by)

    def plot(self, name: str = "goodput", style: str | Path = "report", **settings: Any) -> Drawn:
        """A named figure of the experiment; ``lfn plot DIR --list`` shows the names.

        >>> results.plot("goodput", "paper", palette="grey").save("goodput.pdf")  # doctest: +SKIP

        Args:
            name: of the figure.
            style: "report", "paper", "slides", or a file of TOML (docs/plot.md).
            settings: keys of the style, such as ``width="88mm"`` or ``names={"reno": "Reno"}``.

        Raises:
            UsageError: for an unknown name or key, or a figure for which these runs have no values.
        """
        return drawn.by(self, name, style, settings)

    @cached_property
    def looked_at(self) -> Sequence[Run]:
        """The runs, of very many some that are evenly chosen: for what their rows do not tell."""
        runs = many.looked_at(self.runs)
        if isinstance(self.runs, Runs):
            # The first of each case have traces, and the first of all are listed.
            read = (*runs, *self.runs.firsts(), *self.runs[: many.LOOKED_AT])
            shards.of(self.root / "runs").locate([run.path.name for run in read])
        return runs

    def seeds_of_cases(self) -> list[tuple[Run, int]]:
        """Of each set of factors its last run, and the number of its seeds."""
        if isinstance(self.runs, Runs):
            return self.runs.seeds_of_cases()
        seeds: dict[tuple[object, ...], set[int]] = {}
        last: dict[tuple[object, ...], Run] = {}
        for run in self.runs:
            case: tuple[object, ...] = tuple(run.factors.items())
            seeds.setdefault(case, set()).add(run.seed)
            last[case] = run
        return [(run, len(seeds[case])) for case, run in last.items()]

    def distinct(self) -> int:
        """Number of different results, counted in each case."""
        if self._columns is not None:
            names = self._columns.columns[: self._columns.columns.index("law")]
            return self._columns.select(*names, "hash").n_unique()
        return len({(*run.factors.items(), run.summary["hash"]) for run in self.runs})

    def __repr__(self) -> str:
        runs = f"{len(self.runs):,} run{'' if len(self.runs) == 1 else 's'}"
        head = [self.title, self.completeness or runs, *({f.error for f in self.failures})]
        return shown("\n".join(filter(None, head)), self._brief)

    def _brief(self) -> pl.DataFrame:
        return (self.cases if self.cases.rows else self.links).brief()

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        said = "" if self.completeness is None else f"<p>{self.completeness}</p>"
        return f"<p>{escape(self.title)}</p>{said}{self.table()._repr_html_()}"

    def named(self, group: tuple[Factor, ...]) -> str:
        """A group of :meth:`intervals` by all keys in words: law and route first, then factors."""
        parts = dict(zip(self.keys, group, strict=True))
        first = [str(parts.pop(key)) for key in ("law", "route") if key in parts]
        words = short(list(parts))
        return ", ".join([*first, *(f"{words[name]} {value}" for name, value in parts.items())])
