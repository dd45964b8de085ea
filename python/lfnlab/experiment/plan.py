"""Runs of an experiment, with predicted time and disk space and estimated memory."""

from __future__ import annotations

import math
import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import index
from typing import TYPE_CHECKING, NamedTuple

from lfnlab import _core
from lfnlab.control_laws import prototype
from lfnlab.errors import ScenarioError
from lfnlab.experiment.design import MOST_RUNS
from lfnlab.experiment.executor import (
    SIMULATOR,
    Backend,
    Files,
    memory_limit_bytes,
    simulate_brief,
)
from lfnlab.scenario.keywords import keywords

if TYPE_CHECKING:
    from lfnlab.results.cases import Factor
    from lfnlab.scenario.builder import Scenario

PROBES = 5
"""Runs that an estimate measures, and for how long each at most."""
PROBE_S = 0.4
SEED_MAX = 2**63 - 1
"""The largest whole number in TOML."""
SHOWN = 20
"""Seeds that an error lists."""
BLOCK_BYTES = 4096
"""A file takes whole blocks of a disk."""
_SEED = re.compile(r"^seed = 0$", re.MULTILINE)
"""A key of the first table; no value goes over a line, and a list's next lines are indented."""
SHARD_BYTES = 28_000
"""Of a shard, beside its runs: each of its columns is described."""
TABLE_COPIES = 1.6
"""An estimate of memory counts tables so often: columns with room to grow, and what is stored."""


@keywords
@dataclass(frozen=True)
class Case:
    """A scenario, and its factors in the experiment, such as the law."""

    scenario: Scenario
    factors: Mapping[str, Factor] = field(default_factory=dict)


class Planned(NamedTuple):
    """A planned run: key, index of its case, seed, predicted cost."""

    key: str
    case: int
    seed: int
    memory_bytes: int
    table_bytes: int
    events: int
    brief: bool
    """Whether it keeps its summary alone."""


@dataclass(frozen=True)
class Estimate:
    """Predicted cost of a plan's missing runs on this machine."""

    runs: int
    """Number of runs of the plan, stored ones included."""
    there: int
    """Of those, in the store."""
    jobs: int
    """At a time."""
    cpu_s: float
    wall_s: float
    memory_bytes: int
    """Estimate of the largest run."""
    limit_bytes: int
    """Memory limit of all runs together."""
    disk_bytes: float
    probed: int
    """Runs that were started to measure CPU time and disk space."""
    alone: int
    """Cases that are run once in spite of more seeds: nothing in them is random."""


class Plan:
    """Every case with every seed, in order; a case in which nothing is random with the first alone.

    With ``summaries`` the runs of a case that does not ask for tables keep their summaries alone.

    Raises:
        ScenarioError: when there is nothing to run, or a case cannot be run here.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        seeds: int | Sequence[int] = 1,
        backend: Backend = SIMULATOR,
        *,
        summaries: bool = False,
    ) -> None:
        if not cases:
            raise ScenarioError("nothing to run: no case")
        self.cases = cases
        self.backend = backend
        self.runs: list[Planned] = []
        self._texts: dict[int, tuple[str, str]] = {}
        self.alone = 0
        for place, case in enumerate(cases):
            scenario = _core.Scenario(case.scenario.to_toml())
            backend.check(scenario)
            need = scenario.needs
            chosen = seeds_of(seeds, case.scenario.seed)
            if len(chosen) > 1 and not backend.is_random(scenario):
                chosen = chosen[:1]  # the others would be the same run again
                self.alone += 1
            if (total := len(self.runs) + len(chosen)) > MOST_RUNS:
                found = f"{total:,} runs in {place + 1:,} of {len(cases):,} cases"
                raise ScenarioError(found, f"allowed: up to {MOST_RUNS}", "seeds")
            memory_bytes = backend.memory_bytes(need["memory_bytes"])
            brief = summaries and backend is SIMULATOR and _is_brief(case.scenario)
            needs = (memory_bytes, need["table_bytes"], need["events"], brief)
            self.runs += [
                Planned(key, place, index(seed), *needs)
                for key, seed in zip(backend.keys(scenario, chosen), chosen, strict=True)
            ]

    def shard(self, part: int, parts: int) -> Plan:
        """The part-th of ``parts`` equal parts, from 1: every ``parts``-th run."""
        if not 1 <= part <= parts:
            raise ScenarioError(f"{part}/{parts}", "allowed: i/n with i from 1 to n", "shard")
        chosen = object.__new__(Plan)
        chosen.cases, chosen.alone, chosen.backend = self.cases, self.alone, self.backend
        chosen.runs, chosen._texts = self.runs[part - 1 :: parts], self._texts
        return chosen

    def scenario(self, run: Planned) -> _core.Scenario:
        """The scenario of a run, with its seed."""
        if (around := self._texts.get(run.case)) is None:
            around = self._texts[run.case] = _around_seed(self.cases[run.case].scenario)
        before, after = around
        return _core.Scenario(f"{before}{run.seed}{after}")

    def fitting(self, jobs: int) -> int:
        """Number of jobs for which memory suffices if all were the largest run."""
        need = max((run.memory_bytes for run in self.runs), default=1)
        return max(1, min(jobs, memory_limit_bytes() // max(1, need)))

    def estimate(self, there: set[str], jobs: int) -> Estimate:
        """Cost of the runs that are not in ``there``, from starting a few of them.

        The runs are sorted by predicted events and divided into groups of equal size. The middle
        run of each group runs for at most :data:`PROBE_S` seconds; its CPU time an event is used
        for the whole group.
        """
        missing = {run.key: run for run in self.runs if run.key not in there}
        pending = sorted(missing.values(), key=lambda run: run.events)
        cpu_s = disk_bytes = 0.0
        if pending:  # what only the first run of a process takes
            self._probe(pending[0])
        groups = list(_groups(pending, PROBES))
        for group in groups:
            middle = group[len(group) // 2]
            took_s, kept_bytes = self._probe(middle)
            events = sum(run.events for run in group)
            cpu_s += took_s * events / max(1, middle.events)
            if middle.brief:
                disk_bytes += kept_bytes * len(group)
                continue
            tables = sum(run.table_bytes for run in group) / max(1, middle.table_bytes)
            disk_bytes += kept_bytes * tables
        if any(run.brief for run in pending):
            disk_bytes += SHARD_BYTES
        jobs = max(1, min(self.fitting(jobs), len(pending)))
        return Estimate(
            runs=len({run.key for run in self.runs}),
            there=len({run.key for run in self.runs}) - len(pending),
            jobs=jobs,
            cpu_s=cpu_s,
            wall_s=cpu_s / jobs,
            memory_bytes=max((run.memory_bytes for run in pending), default=0),
            limit_bytes=memory_limit_bytes(),
            disk_bytes=disk_bytes,
            probed=len(groups),
            alone=self.alone,
        )

    def _probe(self, run: Planned) -> tuple[float, float]:
        """CPU time and disk space of a run; upper bounds if it was cancelled early."""
        begun, begun_cpu = time.monotonic(), time.process_time()
        fraction = 0.0

        def going(done: float) -> bool:
            nonlocal fraction
            fraction = done
            return time.monotonic() - begun < PROBE_S

        if run.brief:
            pair = (run.key, self.scenario(run))
            rows, _ = simulate_brief([pair], "", lambda _, done: going(done))
            took_s = time.process_time() - begun_cpu
            if rows is None:
                return took_s / max(fraction, 1e-9), 0.0
            return took_s, float(len(zlib.compress(rows["summary.json"][0].encode())))
        files = self.backend.simulate(self.scenario(run), "", going)
        took_s = time.process_time() - begun_cpu
        if files is None:
            return took_s / max(fraction, 1e-9), run.table_bytes / TABLE_COPIES
        return took_s, _disk_bytes(files)


_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_LAST = 5
"""The part of the runs, one in so many, that ends an experiment with its shortest."""


def mixed(runs: Sequence[Planned]) -> list[Planned]:
    """Runs so that every part of them is a fair sample by predicted events.

    So the time left is known early: a tenth of a hundred runs takes about a tenth of the time.
    Among the last ones the longest come first, since one that began last would leave cores idle; so
    they do among fewer than ten.
    """
    ordered = sorted(runs, key=lambda run: -run.events)
    places = sorted(range(len(ordered)), key=lambda place: (place * _GOLDEN + 0.5) % 1.0)
    until = len(places) - len(places) // _LAST if len(places) >= 10 else 0
    return [ordered[place] for place in (*places[:until], *sorted(places[until:]))]


def _is_brief(scenario: Scenario) -> bool:
    """Whether nothing in a scenario asks for tables, or needs a copy of a law."""
    asks = scenario.sample not in (None, "off") or scenario.sample_rows is not None
    own = any(map(prototype.is_prototype, scenario.laws))
    return not (asks or own or scenario.capture is not None)


def _around_seed(scenario: Scenario) -> tuple[str, str]:
    """The text of a scenario before and after its seed, which is written once for a case."""
    text = scenario.with_seed(0).to_toml()
    found = _SEED.search(text)
    assert found is not None, text
    return text[: found.end() - 1], text[found.end() :]


def _disk_bytes(files: Files) -> float:
    """Whole blocks of the files, and one of the directory."""
    blocks = sum(math.ceil(len(data) / BLOCK_BYTES) for data in files.values()) + 1
    return float(blocks * BLOCK_BYTES)


def _groups(runs: Sequence[Planned], count: int) -> Iterator[Sequence[Planned]]:
    ends = [len(runs) * i // count for i in range(count + 1)]
    for begin, end in pairwise(ends):
        if end > begin:
            yield runs[begin:end]


def seeds_of(seeds: int | Sequence[int], first: int) -> Sequence[int]:
    """The seeds, or so many from the first on.

    Raises:
        ScenarioError: what cannot be seeds.
    """
    if isinstance(seeds, Sequence):
        return _listed(seeds)
    try:
        count = index(seeds)
    except TypeError:
        allowed = f"allowed: a whole number from 1 to {MOST_RUNS}, or a list of seeds"
        raise ScenarioError(repr(seeds), allowed, "seeds") from None
    if not 1 <= count <= MOST_RUNS:
        raise ScenarioError(f"{count}", f"allowed: from 1 to {MOST_RUNS}", "seeds")
    if first + count - 1 > SEED_MAX:
        allowed = f"allowed: so many that the last is at most {SEED_MAX}"
        raise ScenarioError(f"{count} from {first} on", allowed, "seeds")
    return range(first, first + count)


def _listed(seeds: Sequence[int]) -> Sequence[int]:
    """Seeds one by one."""
    found = f"{len(seeds)} seeds" if len(seeds) > SHOWN else repr(seeds)
    try:
        good = all(0 <= index(seed) <= SEED_MAX for seed in seeds)
    except TypeError:
        good = False
    if not good:
        raise ScenarioError(found, f"allowed: whole numbers from 0 to {SEED_MAX}", "seeds")
    if not seeds or len(set(seeds)) < len(seeds):
        raise ScenarioError(found, "allowed: at least one, each once", "seeds")
    return seeds
