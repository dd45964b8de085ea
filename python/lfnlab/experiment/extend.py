"""A stored experiment with more cases: a further law, or a further value of a key."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from lfnlab.errors import ScenarioError, UsageError
from lfnlab.experiment.design import factor, with_values
from lfnlab.experiment.export import differences
from lfnlab.experiment.plan import Case, Plan
from lfnlab.experiment.run import execute
from lfnlab.experiment.sweep import Sweep
from lfnlab.results import shards
from lfnlab.results.integrity import unsealed
from lfnlab.results.runs import Results
from lfnlab.results.store import EXPERIMENT
from lfnlab.scenario.builder import Scenario, toml

if TYPE_CHECKING:
    from lfnlab.experiment.design import Value
    from lfnlab.experiment.run import Options


@dataclass(frozen=True)
class Experiment:
    """The cases of a store's last experiment, and how it ran them."""

    cases: tuple[Case, ...]
    seeds: int | Sequence[int]
    title: str
    on: Literal["simulator", "linux"]
    """The backend."""
    summaries: bool
    """Whether it keeps summaries alone."""

    @classmethod
    def load(cls, root: str | Path) -> Experiment:
        """The last experiment of a results directory.

        Raises:
            StoreError: when there is none, or it is damaged.
            UsageError: when it was a search, whose points are no design.
        """
        results = Results.load(root)
        said = unsealed(results.root / EXPERIMENT)
        source, on = said.get("source"), said.get("on", "simulator")
        if source is not None and "tune" in tomllib.loads(source):
            raise UsageError(
                f"--extend {root}: it holds a search; allowed: a sweep or a comparison"
            )
        summaries = bool(results.runs) and shards.holds(results.runs[0].path)
        if source is not None:
            sweep = Sweep.of_text(source, str(root))
            return cls(tuple(sweep.cases), sweep.seeds, results.title, on, summaries)
        cases: dict[str, Case] = {}
        seeds: dict[str, list[int]] = {}
        for run in results.runs:
            text = json.dumps(dict(run.factors))
            cases.setdefault(text, Case(run.scenario, run.factors))
            seeds.setdefault(text, []).append(run.seed)
        return cls(
            tuple(cases.values()), max(seeds.values(), key=len), results.title, on, summaries
        )

    def extended(self, laws: Sequence[str], values: Sequence[tuple[str, Value]]) -> Experiment:
        """With these laws, then with these values of keys, each in every case so far."""
        found = self
        for law in laws:
            found = found.with_law(law)
        for key, value in values:
            found = found.with_value(key, value)
        return found

    @property
    def plan(self) -> Plan:
        """All its runs, stored or not."""
        return Plan(self.cases, self.seeds, summaries=self.summaries)

    def run(self, **options: Unpack[Options]) -> Results:
        """Run what its store does not have; ``options`` are those of :func:`lfnlab.execute`."""
        return execute(
            self.cases,
            seeds=self.seeds,
            keep_going=True,
            summaries=self.summaries,
            **options,
        )

    def with_law(self, law: str) -> Experiment:
        """Every case again with this law in the place of the one that is compared.

        Raises:
            UsageError: when it is not clear which flows are meant.
        """
        documents = [case.scenario.with_seed(0).to_document() for case in self.cases]
        keys = [key for key, _ in differences(documents) if key.endswith(".law")]
        laws = {flow["law"] for document in documents for flow in document.get("flow", [])}
        if not keys and len(laws) != 1:
            raise UsageError(
                f"--law {law}: flows of several laws, of which none was compared; write for "
                f"example --add 'flow[0].law={law}'"
            )
        named = [name for name in self.cases[0].factors if name == "law" or name.endswith(".law")]
        return self._with(dict.fromkeys(keys or ["flow[*].law"], law), named[:1] or ["law"])

    def with_value(self, key: str, value: Value) -> Experiment:
        """Every case again with this value of a key.

        Raises:
            ScenarioError: naming a key that leads nowhere, or a value that it cannot have.
        """
        return self._with({key: value}, [key])

    def _with(self, point: Mapping[str, Value], names: Sequence[str]) -> Experiment:
        """The cases, then those that the point adds; a new factor is told of all."""
        (name,) = names
        (key, value), *_ = point.items()
        old = [
            case
            if name in case.factors
            else replace(case, factors={**case.factors, name: factor(_value(case.scenario, key))})
            for case in self.cases
        ]
        known = {_text(case.scenario) for case in old}
        new: list[Case] = []
        for case in old:
            try:
                document = with_values(case.scenario.to_document(), dict(point))
                scenario = Scenario.from_toml(toml(document))
                text = _text(scenario)
            except ScenarioError as error:
                raise ScenarioError(f"with {key} = {value}: {error.at(error.key)}") from None
            if text not in known:
                known.add(text)
                new.append(Case(scenario, {**case.factors, name: factor(value)}))
        return replace(self, cases=(*old, *new))


def _text(scenario: Scenario) -> str:
    """A scenario with its defaults, as text."""
    return scenario.with_seed(0).check().to_toml()


def _value(scenario: Scenario, key: str) -> Value:
    """The value of a key, written or by default.

    Raises:
        ScenarioError: when the scenario has no such key.
    """
    for document in (scenario.to_document(), scenario.check().to_document()):
        place: Any = document
        for step in _steps(key):
            inside = isinstance(place, Mapping) and step in place
            listed = isinstance(place, list) and isinstance(step, int) and step < len(place)
            if not (inside or listed):
                break
            place = place[step]
        else:
            return place
    raise ScenarioError("has no value here, so that nothing tells cases apart by it", key=key)


def _steps(key: str) -> Iterator[str | int]:
    for name, place in re.findall(r"([\w-]+)(?:\[(\d+|\*)\])?", key.partition(":")[0]):
        yield name
        if place:
            yield 0 if place == "*" else int(place)
