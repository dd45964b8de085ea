"""Run scenarios over seeds, in parallel, into a store; and the results as frames and JSON."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from lfnlab import _core, metrics, statistics
from lfnlab.errors import ScenarioError, StoreError
from lfnlab.scenario import Scenario
from lfnlab.store import Store, read_json, read_table, read_text, run_key

if TYPE_CHECKING:
    import polars as pl

    from lfnlab.scenario import FlowSettings

Factor = str | int | float
Progress = Callable[[float, int], None]
"""Called from any thread with the runs done, counting fractions, and the number of runs."""

SCHEMA = 1


@dataclass(frozen=True)
class Case:
    """A scenario, and the factors that set it apart in its experiment, such as the law."""

    scenario: Scenario
    factors: Mapping[str, Factor] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One stored run."""

    path: Path
    seed: int
    factors: Mapping[str, Factor]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The run's result, see ``docs/results.md``."""
        summary: dict[str, Any] = read_json(self.path / "summary.json")
        return summary

    @cached_property
    def scenario(self) -> Scenario:
        """What was run."""
        file = self.path / "scenario.toml"
        return Scenario.from_toml(read_text(file), file.name)

    @property
    def laws(self) -> tuple[str, ...]:
        """The laws of its flows, each once, in the order of the flows."""
        return tuple(dict.fromkeys(flow["law"] for flow in self.summary["flows"]))

    def table(self, name: str) -> pl.DataFrame:
        """Table flows, queues, events or probes; packets where some were recorded."""
        return read_table(self.path, name)

    @property
    def is_dumbbell(self) -> bool:
        """Whether its links are one and the opposite direction."""
        return [link["id"] for link in self.summary["links"]] == ["forward", "reverse"]

    def link(self, flows: Sequence[Mapping[str, Any]]) -> int:
        """Index of the link whose figures stand beside those of these flows.

        In a dumbbell the one of their data, the forward one where they go both ways or are none;
        elsewhere the busiest of all.
        """
        links = self.summary["links"]
        if self.is_dumbbell:
            directions = [link["id"] for link in links]
            return directions.index(min((flow["direction"] for flow in flows), default="forward"))
        return max(range(len(links)), key=lambda i: links[i]["utilization"])

    def by_law(self) -> list[dict[str, Any]]:
        """One row a law: factors, seed, and the metrics of its flows and of their :meth:`link`."""
        rows = []
        for law in self.laws:
            flows = [flow for flow in self.summary["flows"] if flow["law"] == law]
            link = self.summary["links"][self.link(flows)]
            goodputs = [flow["goodput_bps"] for flow in flows]
            rows.append(
                {
                    **self.factors,
                    "law": law,
                    "seed": self.seed,
                    "flows": len(flows),
                    "goodput_bps": sum(goodputs),
                    "jain": metrics.jain(goodputs),
                    "cov": self._cov({flow["id"] for flow in flows}),
                    "retransmits": sum(flow["retransmits"] for flow in flows),
                    "timeouts": sum(flow["timeouts"] for flow in flows),
                    "loss_events": sum(flow["loss_events"] for flow in flows),
                    "utilization": link["utilization"],
                    "mean_queue_s": link["mean_queue_s"],
                    "drops": link["drops"],
                    "hash": self.summary["hash"],
                }
            )
        return rows

    def _cov(self, flows: set[int]) -> float:
        covs = [flow["cov"] for flow in self.summary["flows"] if flow["id"] in flows]
        return statistics.interval(v for v in covs if v is not None).mean


@dataclass(frozen=True)
class Results:
    """The runs of an experiment, in order: by case, then by seed."""

    root: Path
    title: str
    runs: tuple[Run, ...]

    @classmethod
    def load(cls, root: str | Path) -> Results:
        """The last experiment of a results directory.

        Raises:
            StoreError: when there is none.
        """
        root = Path(root)
        file = root / "experiment.json"
        if not file.is_file():
            raise StoreError(f"cannot read results: {root} holds no finished one, no {file.name}")
        experiment = read_json(file)
        try:
            runs = tuple(
                Run(root / "runs" / entry["key"], entry["seed"], entry["factors"])
                for entry in experiment["runs"]
            )
            title = experiment["title"]
        except (KeyError, TypeError):
            raise StoreError(
                f"cannot read results: {file} does not list the runs of an experiment"
            ) from None
        return cls(root, title, runs)

    def rows(self) -> list[dict[str, Any]]:
        """One row a run and law, see :meth:`Run.by_law`."""
        return [row for run in self.runs for row in run.by_law()]

    def frame(self) -> pl.DataFrame:
        """:meth:`rows` as a frame; goodput in bit/s, delays in seconds."""
        import polars as pl

        return pl.DataFrame(self.rows(), infer_schema_length=None)

    def intervals(self, metric: str, by: Sequence[str] = ("law",)) -> dict[tuple[Factor, ...], Any]:
        """Mean and 95 % interval of a column of :meth:`frame` over the runs of each group."""
        groups: dict[tuple[Factor, ...], list[float]] = {}
        for row in self.rows():
            groups.setdefault(tuple(row[key] for key in by), []).append(row[metric])
        return {group: statistics.interval(values) for group, values in groups.items()}

    def to_json(self) -> dict[str, Any]:
        """The object that ``--json`` prints: runs, aggregate by law over seeds, what to know."""
        from lfnlab import epochs
        from lfnlab.summary import averaged

        aggregate: dict[str, dict[str, Any]] = {}
        for metric in AGGREGATED:
            for (law,), value in self.intervals(metric).items():
                aggregate.setdefault(str(law), {})[metric] = value.to_json()
        runs = [run.summary for run in self.runs]
        return {
            "schema": SCHEMA,
            "runs": runs,
            "aggregate": aggregate,
            "averaged": averaged(self),
            "warnings": epochs.seen(self),
        }


AGGREGATED = (
    "goodput_bps",
    "jain",
    "cov",
    "utilization",
    "mean_queue_s",
    "retransmits",
    "timeouts",
    "loss_events",
)


def execute(
    cases: Sequence[Case],
    *,
    seeds: int | Sequence[int] = 1,
    out: str | Path = "lfn-results",
    jobs: int | None = None,
    progress: Progress | None = None,
    title: str = "",
) -> Results:
    """Run every case with every seed; a run that the store has is not run again.

    Each run is stored when it ends, so whatever stops the experiment costs at most the runs in
    progress: give the same call again to go on.

    Args:
        cases: the scenarios, at least one.
        seeds: the seeds, or how many, counted from each scenario's own; at least one.
        out: the results directory.
        jobs: runs at a time; default one for each core, fewer where memory would not do.
        progress: told how far it is.
        title: of the experiment, for its report.

    Raises:
        ScenarioError: before anything is run.
        StoreError: when a result cannot be written.
        KeyboardInterrupt: runs in progress are given up, finished ones stay.
    """
    if not cases:
        raise ScenarioError("nothing to run: no case")
    if jobs is None:
        jobs = len(os.sched_getaffinity(0))
    elif jobs < 1:
        raise ScenarioError(f"jobs: {jobs!r}; allowed: at least 1")
    planned = [
        (case.scenario.with_seed(seed), case.factors)
        for case in cases
        for seed in _seeds(seeds, case.scenario.seed)
    ]
    keys = [run_key(scenario) for scenario, _ in planned]
    store = Store(out)
    runs = [
        Run(store.path(key), index(scenario.seed), dict(factors))
        for key, (scenario, factors) in zip(keys, planned, strict=True)
    ]
    # By key: a run that two cases share is run once.
    work = {
        run.path.name: scenario
        for run, (scenario, _) in zip(runs, planned, strict=True)
        if not run.path.is_dir()
    }
    jobs = _jobs_in_memory(list(work.values()), jobs)

    done = dict.fromkeys(work, 0.0)
    stop = threading.Event()

    def one(key: str, scenario: Scenario) -> None:
        def tell(_: int, fraction: float) -> bool:
            done[key] = fraction
            if progress is not None:
                progress(len(runs) - len(work) + sum(done.values()), len(runs))
            return not stop.is_set()

        if stop.is_set():
            return
        (run,) = _core.run_many([(scenario.to_toml(), "scenario", scenario.seed)], 1, tell)
        if run is not None:
            store.put(key, scenario, run)
            tell(0, 1.0)

    if progress is not None:
        progress(len(runs) - len(work), len(runs))
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for future in as_completed([pool.submit(one, *item) for item in work.items()]):
                future.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    entries = [{"key": run.path.name, "seed": run.seed, "factors": run.factors} for run in runs]
    store.write_experiment({"schema": SCHEMA, "title": title, "runs": entries})
    return Results(store.root, title, tuple(runs))


def compare(
    laws: Sequence[str],
    base: Scenario,
    *,
    seeds: int | Sequence[int] = 1,
    out: str | Path = "lfn-results",
    jobs: int | None = None,
    progress: Progress | None = None,
    title: str = "",
    **settings: Unpack[FlowSettings],
) -> Results:
    """Give each law the same path in turn: ``base`` and flows of that law.

    ``settings`` are those of :meth:`Scenario.flow`, such as ``count``; the rest as :func:`execute`.

    >>> from lfnlab import compare, dumbbell
    >>> base = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp", duration="60s")
    >>> compare(["reno", "cubic"], base, seeds=3).frame()  # doctest: +SKIP
    """
    if isinstance(laws, str):
        raise ScenarioError(f"laws: {laws!r}; write a list of names, for example [{laws!r}]")
    cases = [Case(base.flow(law, **settings), {"law": law}) for law in laws]
    specs = [case.scenario.check()["flow"][-1]["law"] for case in cases]
    if twice := [spec for i, spec in enumerate(specs) if spec in specs[:i]]:
        raise ScenarioError(f"law {twice[0]} is named twice; write each law once")
    return execute(cases, seeds=seeds, out=out, jobs=jobs, progress=progress, title=title)


def _seeds(seeds: int | Sequence[int], first: int) -> Sequence[int]:
    chosen = seeds if isinstance(seeds, Sequence) else range(first, first + index(seeds))
    if not chosen or len(set(chosen)) < len(chosen):
        raise ScenarioError(f"seeds: {seeds!r}; allowed: at least one, each once")
    return chosen


def memory_limit_bytes() -> int:
    """Memory that runs may take together: most of what is available now."""
    return int(0.8 * _core.available_memory_bytes())


def _jobs_in_memory(scenarios: Sequence[Scenario], jobs: int) -> int:
    """As many jobs as memory allows were all of them the largest, by its prediction."""
    limit = memory_limit_bytes()
    for scenario in scenarios:
        _core.check(scenario.to_toml(), "scenario", limit)
    need = max((scenario.predict()["memory_bytes"] for scenario in scenarios), default=1)
    return max(1, min(jobs, limit // max(1, need)))
