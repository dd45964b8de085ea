"""The last experiment of a store as a file that makes the same runs.

A sweep from a file has kept its text. Of other experiments the runs are told: the scenario of the
first case, and lists of the values in which the cases differ.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lfnlab.errors import ScenarioError, StoreError, UsageError
from lfnlab.experiment.design import with_values
from lfnlab.results.integrity import damaged, unsealed
from lfnlab.results.runs import Results
from lfnlab.results.store import EXPERIMENT
from lfnlab.scenario.builder import Scenario, toml

if TYPE_CHECKING:
    from lfnlab.results.runs import Run


class Export(NamedTuple):
    """An experiment as a file."""

    text: str
    command: str
    """Takes the name of the file."""


def export(root: str | Path) -> Export:
    """The last experiment of a results directory.

    Raises:
        StoreError: when there is none, it is damaged, or runs of it are missing.
        UsageError: when its cases cannot be said in one file.
    """
    file = Path(root) / EXPERIMENT
    results = Results.load(root)
    said = unsealed(file)
    source, place = said.get("source"), said.get("on")
    if not isinstance(source, str | None) or not isinstance(place, str | None):
        raise damaged(file, "does not list the runs of an experiment")
    on = "" if place is None else f" --on {place}"
    if source is not None:
        table = next((name for name in ("tune", "sweep") if name in tomllib.loads(source)), "sweep")
        return Export(source, f"lfn {table}{on}")
    if results.missing:
        raise StoreError(f"cannot export {root}: {results.completeness}")
    return Export(_of_cases(results.runs), f"lfn sweep{on}")


def _of_cases(runs: Sequence[Run]) -> str:
    """A sweep of the scenarios of these runs."""
    seeds: dict[str, list[int]] = {}
    documents: dict[str, dict[str, Any]] = {}
    for run in runs:
        document = run.scenario.with_seed(0).to_document()
        text = json.dumps(document)
        seeds.setdefault(text, []).append(run.seed)
        documents[text] = document
    cases = [dict(document) for document in documents.values()]
    for key in {key for case in cases for key in case}:
        if not all(key in case for case in cases):
            held = next(case[key] for case in cases if key in case)
            for case in cases:
                case.setdefault(key, type(held)())
    # A case in which nothing is random has but one of them.
    chosen = max(seeds.values(), key=len)
    base = dict(cases[0])
    del base["seed"]
    table: dict[str, Any] = {"seeds": chosen}
    if differing := dict(differences(cases)):
        table["zip"] = differing
    for at, (case, own) in enumerate(zip(documents.values(), seeds.values(), strict=True)):
        point = {key: values[at] for key, values in differing.items()}
        if own not in (chosen, chosen[:1]) or not _is(with_values(base, point), case):
            raise UsageError(
                "cannot export: the cases of this experiment differ in more than values; "
                "lfn store show prints the scenario of each run"
            )
    return toml({**base, "sweep": table})


def _is(document: dict[str, Any], case: dict[str, Any]) -> bool:
    """Whether two documents are one scenario, whatever their seeds."""
    try:
        made, wanted = (Scenario.from_document(one).with_seed(0) for one in (document, case))
        return made.check() == wanted.check()
    except (ScenarioError, TypeError):  # tables that lack a key
        return False


def differences(values: Sequence[Any], path: str = "") -> Iterator[tuple[str, list[Any]]]:
    """The values that differ, by the smallest keys that all have."""
    if all(value == values[0] for value in values):
        return
    if all(isinstance(value, dict) for value in values):
        keys = [*values[0]]
        if all(set(value) == set(keys) for value in values):
            for key in keys:
                below = f"{path}.{key}" if path else key
                yield from differences([value[key] for value in values], below)
            return
    lists = all(isinstance(value, list) and value for value in values)
    alike = lists and len({len(value) for value in values}) == 1
    if alike and all(isinstance(part, dict) for value in values for part in value):
        for at in range(len(values[0])):
            yield from differences([value[at] for value in values], f"{path}[{at}]")
        return
    yield path, list(values)
