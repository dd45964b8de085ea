"""Stored runs, and the runs of an experiment as frames and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab import metrics, statistics
from lfnlab.errors import StoreError
from lfnlab.law import known
from lfnlab.scenario import Scenario
from lfnlab.store import read_json, read_table, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

Factor = str | int | float

SCHEMA = 1


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
        if (file := self.path / "provenance.json").is_file():
            said = read_json(file)
            summary |= {key: said[key] for key in ("wall_s", "cpu_s") if key in said}
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

    def probes(self, law: str) -> tuple[str, ...]:
        """Names of the law's own variables, by their numbers in the table ``probes``."""
        for entry in self.summary.get("prototypes", ()):
            if entry["law"] == law:
                return tuple(entry["probes"])
        info = known(law)
        return () if info is None else info.probes

    def table(self, name: str) -> pl.DataFrame:
        """Table flows, queues, events or probes; packets where some were recorded."""
        return read_table(self.path, name)

    @property
    def is_dumbbell(self) -> bool:
        """Whether its links are one and the opposite direction."""
        return is_dumbbell(self.summary)

    def link(self, flows: Sequence[Mapping[str, Any]]) -> int:
        """Index of the link whose figures stand beside those of these flows, see :func:`link`."""
        return link(self.summary, flows)

    def by_law(self) -> list[dict[str, Any]]:
        """One row a law: factors, seed, and the metrics of its flows and of their :meth:`link`."""
        return [{**self.factors, **row} for row in by_law(self.summary)]


def is_dumbbell(summary: Mapping[str, Any]) -> bool:
    """Whether the links of a run are one and the opposite direction."""
    return [link["id"] for link in summary["links"]] == ["forward", "reverse"]


def link(summary: Mapping[str, Any], flows: Sequence[Mapping[str, Any]]) -> int:
    """Index of the link whose figures stand beside those of these flows.

    In a dumbbell the one of their data, the forward one where they go both ways or are none;
    elsewhere the busiest of all.
    """
    links = summary["links"]
    if is_dumbbell(summary):
        directions = [link["id"] for link in links]
        return directions.index(min((flow["direction"] for flow in flows), default="forward"))
    return max(range(len(links)), key=lambda i: links[i]["utilization"])


def by_law(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a law of a run: seed, and :func:`metrics_of` its flows."""
    rows = []
    for law in dict.fromkeys(flow["law"] for flow in summary["flows"]):
        flows = [flow for flow in summary["flows"] if flow["law"] == law]
        about = {"law": law, "seed": summary["seed"], "flows": len(flows)}
        rows.append({**about, **metrics_of(summary, flows), "hash": summary["hash"]})
    return rows


def metrics_of(summary: Mapping[str, Any], flows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The metrics of some flows of a run together, and of their :func:`link`."""
    beside = summary["links"][link(summary, flows)]
    goodputs = [flow["goodput_bps"] for flow in flows]
    return {
        "goodput_bps": sum(goodputs),
        "jain": metrics.jain(goodputs),
        "cov": _mean(flow["cov"] for flow in flows),
        "retransmits": sum(flow["retransmits"] for flow in flows),
        "timeouts": sum(flow["timeouts"] for flow in flows),
        "loss_events": sum(flow["loss_events"] for flow in flows),
        "utilization": beside["utilization"],
        "mean_queue_s": beside["mean_queue_s"],
        "drops": beside["drops"],
    }


def _mean(values: Iterable[float | None]) -> float:
    return statistics.interval(v for v in values if v is not None).mean


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
    runs: tuple[Run, ...]
    failures: tuple[Failure, ...] = ()

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
