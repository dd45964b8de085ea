"""Experiments of the suite, and their rows as a table and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lfnlab import statistics
from lfnlab.analysis.table import Table, with_interval

if TYPE_CHECKING:
    from lfnlab.experiment.plan import Case
    from lfnlab.results.cases import Factor
    from lfnlab.results.runs import Results, Run

SCHEMA = 1
WINDOW = "64MB"
"""Receive window of every connection: above each bandwidth-delay product, so the law decides."""
STANDARD = "reno"
"""The suite's standard TCP: NewReno with SACK, without ECN."""


@dataclass(frozen=True)
class Plan:
    """Request: the law under test, scenarios, and the divisor of all times."""

    law: str
    scenarios: Sequence[str]
    loads: Sequence[int]
    shrink: int = 1
    tmrg: bool = False
    """As draft-irtf-tmrg-tests-02 has it, the suite before."""

    def seconds(self, full_s: float) -> str:
        """A time of the suite as this plan runs it."""
        return seconds(full_s / self.shrink)


@dataclass(frozen=True)
class Row:
    """Figures of a run or of a pair of runs; None where undefined."""

    keys: Mapping[str, Factor]
    figures: Mapping[str, float | None]


@dataclass(frozen=True)
class Column:
    """A figure of the rows: its name in JSON (SI units), its heading, and the scale of the cell."""

    name: str
    heading: str
    scale: float = 1.0


@dataclass(frozen=True)
class Experiment:
    """Scenarios of the suite, and what it asks of them."""

    title: str
    quick: int
    """By what ``--quick`` divides all times."""
    cases: Callable[[Plan], list[Case]]
    rows: Callable[[Results], Iterable[Row]]
    columns: tuple[Column, ...]
    has_tmrg: bool = False
    """TMRG's suite has it too, in another form."""


def measured(experiment: Experiment, results: Results) -> list[dict[str, Any]]:
    """Its keys and the interval of each column over the seeds, a row for each set of keys."""
    groups: dict[tuple[tuple[str, Factor], ...], list[Row]] = {}
    for row in experiment.rows(results):
        groups.setdefault(tuple(row.keys.items()), []).append(row)
    return [
        {
            **dict(keys),
            **{
                column.name: statistics.interval(
                    value for row in rows if (value := row.figures[column.name]) is not None
                )
                for column in experiment.columns
            },
        }
        for keys, rows in groups.items()
    ]


def table(experiment: Experiment, rows: Sequence[Mapping[str, Any]], seeds: int) -> Table:
    """The rows as text; a mean over fewer runs than there are seeds says over how many."""
    names = [column.name for column in experiment.columns]
    keys = tuple(key for key in rows[0] if key not in names)

    def cell(value: statistics.Interval, scale: float) -> str:
        text = with_interval(value, scale)
        return f"{text} ({value.n} of {seeds})" if 0 < value.n < seeds else text

    cells = tuple(
        (
            *(str(row[key]) for key in keys),
            *(cell(row[column.name], column.scale) for column in experiment.columns),
        )
        for row in rows
    )
    return Table((*keys, *(column.heading for column in experiment.columns)), cells, len(keys))


def to_json(
    name: str, asked: Plan, rows: Sequence[Mapping[str, Any]], said: Sequence[str]
) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    return {
        "schema": SCHEMA,
        "suite": "tcpeval",
        "experiment": name,
        "law": asked.law,
        "variant": "tmrg" if asked.tmrg else None,
        "times_divided_by": asked.shrink,
        "notes": list(said),
        "rows": [
            {
                key: value.to_json() if isinstance(value, statistics.Interval) else value
                for key, value in row.items()
            }
            for row in rows
        ],
    }


def link_figures(link: Mapping[str, Any]) -> dict[str, float | None]:
    """Figures of a link that the suite defines."""
    arrivals = link["arrivals"]
    return {
        "utilization": link["utilization"],
        "throughput_bps": link["utilization"] * link["rate_bps"],
        "drop_rate": link["drops"] / arrivals if arrivals else None,
        "mean_queue_s": link["mean_queue_s"],
    }


def link_of(run: Run, name: str) -> Mapping[str, Any]:
    """A link's summary."""
    found: Mapping[str, Any] = next(link for link in run.summary["links"] if link["id"] == name)
    return found


UTILISATION = Column("utilization", "utilization (%)", 100.0)
THROUGHPUT = Column("throughput_bps", "throughput (Mbit/s)", 1e-6)
DROPS = Column("drop_rate", "drop rate (%)", 100.0)
QUEUE = Column("mean_queue_s", "mean queue (ms)", 1e3)


# Quantities as texts


def seconds(value: float) -> str:
    """A time."""
    return f"{value:.9f}".rstrip("0").rstrip(".") + "s"


def us(value: int) -> str:
    """A time in microseconds."""
    return f"{value}us"


def bps(value: float) -> str:
    """A rate."""
    return f"{round(value)}bit/s"


def packets(rate_bps: float, buffer_s: float) -> str:
    """A buffer given in time, in packets of 1500 bytes as the suite counts it, at least one."""
    return f"{max(1, round(rate_bps * buffer_s / 8 / 1500))} packets"


def mbps(rate_bps: float) -> str:
    """A rate as rows name it."""
    return f"{rate_bps / 1e6:g}Mbit/s"
