"""Sweeps: a scenario with several values of some keys.

A sweep is a scenario file with a table ``[sweep]``, or a scenario and a
:class:`~lfnlab.experiment.design.Design` in Python. See ``docs/sweep.md``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from lfnlab import _core
from lfnlab.control_laws import prototype
from lfnlab.errors import ScenarioError
from lfnlab.experiment.design import Design, Draws, Point, Value, factor, quoted, with_values
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.scenario.builder import Scenario, anchored, toml
from lfnlab.scenario.keywords import keywords

if TYPE_CHECKING:
    from lfnlab.experiment.run import Options, Progress
    from lfnlab.results.runs import Results


@keywords
@dataclass(frozen=True)
class Sweep:
    """A scenario, the design of its varied keys, and the seeds of each point."""

    base: Scenario
    design: Design
    seeds: int | Sequence[int] = 1
    name: str = "scenario"
    """File name of the scenario in errors."""
    source: str | None = None
    """A text that says the same wherever it lies."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """The line of the text that says what a key of the design takes."""
    tables: Mapping[str, Value] = field(default_factory=dict)
    """The tables of that text."""

    @classmethod
    def load(cls, path: str | Path, table: str = "sweep") -> Sweep:
        """The sweep in a scenario file.

        Raises:
            ScenarioError: naming file, line and key of what is wrong.
        """
        return cls.of_text(_core.read(str(path)), str(path), table)

    @classmethod
    def of_text(cls, text: str, path: str, table: str = "sweep") -> Sweep:
        """The sweep in the text of a file; ``path`` is how an error calls it.

        Raises:
            ScenarioError: as :meth:`load`.
        """
        base, said, lines = split(text, path, table)
        source, tables = lasting(text, path, table)
        try:
            seeds = said.pop("seeds", 1)
            if not _are_seeds(seeds):
                allowed = "allowed: how many, at least 1, or a list of seeds"
                raise ScenarioError(repr(seeds), allowed, "seeds")
            design = Design.from_toml(said)
        except ScenarioError as error:
            raise located(error, lines, path, table) from None
        factors = {
            key: lines.get(f"{table}.{method}.{quoted(key)}", lines[table])
            for method, part in said.items()
            for key in part
        }
        return cls(base, design, seeds, path, source, factors, tables)

    def with_settings(self, base: Scenario, said: Mapping[str, Value]) -> Sweep:
        """The same design of ``base``, which is the scenario with these values of keys."""
        if not said:
            return self
        source = toml(with_values(self.tables, anchored(dict(said), Path())))
        return replace(self, base=base, source=source)

    @property
    def cases(self) -> Sequence[Case]:
        """A case a point, in the order of the design.

        Raises:
            ScenarioError: naming the first invalid point.
        """
        return [self.case(point) for point in self.design]

    def run(self, **settings: Unpack[Options]) -> Results:
        """Run it; ``settings`` are those of :func:`lfnlab.execute`. Failed runs are listed."""
        return execute(
            self.cases,
            seeds=self.seeds,
            source=self.source,
            keep_going=True,
            summaries=True,
            **settings,
        )

    def case(self, point: Point) -> Case:
        """The case of a point.

        Raises:
            ScenarioError: naming the point, when it is invalid.
        """
        point = {
            key: prototype.spelled(value) if isinstance(value, type) else value
            for key, value in point.items()
        }
        factors = {key: factor(value) for key, value in point.items()}
        try:
            text = toml(with_values(self.base.to_document(), point))
            return Case(Scenario.from_toml(text, "scenario"), factors)
        except ScenarioError as error:
            # The place in a text that nobody has seen says nothing.
            why = error.at(error.key)
            at = ", ".join(f"{key} = {value}" for key, value in factors.items())
            named = [error.key] if error.key in point else [*point]
            line = min((self.lines[key] for key in named if key in self.lines), default=None)
            raise ScenarioError(f"with {at}: {why}", "", "", self.name, line) from None


def sweep(
    base: Scenario | str | Path,
    *,
    grid: Mapping[str, Sequence[Value]] | None = None,
    zip: Mapping[str, Sequence[Value]] | None = None,  # noqa: A002 - the word of the file
    random: Draws | None = None,
    latin_hypercube: Draws | None = None,
    seeds: int | Sequence[int] = 1,
    out: str | Path = "lfn-results",
    jobs: int | None = None,
    executor: str = "local",
    shard: tuple[int, int] | None = None,
    progress: Progress | None = None,
    title: str = "",
) -> Results:
    """Run a scenario over a design of its keys, or the sweep in a file.

    Runs that the store has are not run again; ``failures`` lists failed runs. The further
    settings are those of :func:`lfnlab.execute`.

    >>> from lfnlab import dumbbell, sweep
    >>> base = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp").flow("cubic")
    >>> sweep(base, grid={"flow[0].law": ["reno", "cubic"]}, seeds=3)  # doctest: +SKIP

    Raises:
        ScenarioError: before anything is run.
    """
    if isinstance(base, Scenario):
        design = Design(grid or {}, zip or {}, random, latin_hypercube)
        found = Sweep(base, design, seeds)
    elif grid or zip or random or latin_hypercube or seeds != 1:
        raise ScenarioError("its [sweep] says what varies", "give no other design", file=str(base))
    else:
        found = Sweep.load(base)
    return found.run(
        out=out,
        jobs=jobs,
        executor=executor,
        shard=shard,
        progress=progress,
        title=title or found.base.name or "",
    )


def split(text: str, file: str, table: str) -> tuple[Scenario, dict[str, Value], dict[str, int]]:
    """A scenario file without its table of this name, that table, and the line of each key.

    Raises:
        ScenarioError: also when there is no such table.
    """
    tables, lines = _core.document(text, file, table)
    document = json.loads(tables)
    said = document.pop(table)
    return Scenario.from_document(document, file), said, lines


def lasting(text: str, file: str, table: str) -> tuple[str, dict[str, Value]]:
    """The text of a file so that it names the same files from any folder, and its tables."""
    document = json.loads(_core.document(text, file, table)[0])
    # Values of a sweep are named from the working directory.
    tables = {
        key: anchored(part, Path() if key == table else Path(file).parent, key)
        for key, part in document.items()
    }
    return (text if tables == document else toml(tables)), tables


def located(error: ScenarioError, lines: Mapping[str, int], file: str, table: str) -> ScenarioError:
    """An error in a table with file, line and full key."""
    key = f"{table}.{error.key}" if error.key else table
    above = key
    while above not in lines:
        # A key that is missing has the line of its table.
        above = above.rpartition(".")[0]
    return error.at(key, file, lines[above])


def _are_seeds(said: Value) -> bool:
    def whole(item: Value) -> bool:
        return isinstance(item, int) and not isinstance(item, bool)

    if isinstance(said, list):
        return bool(said) and all(whole(item) and item >= 0 for item in said)
    return whole(said) and said >= 1
