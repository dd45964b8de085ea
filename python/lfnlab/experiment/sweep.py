"""Sweeps: a scenario of which some keys take other values from run to run.

A sweep is a scenario file with a table ``[sweep]``, or a scenario and a
:class:`~lfnlab.experiment.design.Design` in Python. See ``docs/sweep.md``.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lfnlab import _core
from lfnlab.control_laws import prototype
from lfnlab.errors import ScenarioError
from lfnlab.experiment.design import Design, Draws, Point, Value, factor, with_values
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.scenario.builder import Scenario, toml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from lfnlab.experiment.run import Progress
    from lfnlab.results.runs import Results


@dataclass(frozen=True)
class Sweep:
    """A scenario, the design of what varies, and the seeds of each point."""

    base: Scenario
    design: Design
    seeds: int | Sequence[int] = 1
    name: str = "scenario"
    """How an error calls the scenario: its file."""
    source: str | None = None
    """The text that it was read from."""

    @classmethod
    def load(cls, path: str | Path, table: str = "sweep") -> Sweep:
        """The sweep in a scenario file.

        Raises:
            ScenarioError: naming file, line and key of what is wrong.
        """
        text = _core.read(str(path))
        base, said = split(text, str(path), table)
        try:
            seeds = said.pop("seeds", 1)
            if not _are_seeds(seeds):
                raise ScenarioError(
                    f"seeds: {seeds!r}; allowed: how many, at least 1, or a list of seeds"
                )
            found = cls(base, Design.from_toml(said), seeds, str(path), text)
        except ScenarioError as error:
            raise ScenarioError(located(error, text, str(path), table)) from None
        return found

    @property
    def cases(self) -> Sequence[Case]:
        """A case a point, in the order of the design.

        Raises:
            ScenarioError: naming the first point that is no scenario.
        """
        return [self.case(point) for point in self.design]

    def run(self, **settings: Any) -> Results:
        """Run it; ``settings`` are those of :func:`lfnlab.execute`. Failed runs are listed."""
        return execute(
            self.cases, seeds=self.seeds, source=self.source, keep_going=True, **settings
        )

    def case(self, point: Point) -> Case:
        """The case of a point.

        Raises:
            ScenarioError: naming the point, when it is no scenario.
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
            why = re.sub(r"^scenario:(\d+: )?", "", str(error))
            at = ", ".join(f"{key} = {value}" for key, value in factors.items())
            named = [key for key in point if key == why.partition(":")[0]] or [*point]
            where = f"{self.name}:{line_of(self.source, named)}" if self.source else self.name
            raise ScenarioError(f"{where}: with {at}: {why}") from None


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

    Runs that the store has are not run again; what failed stands in ``failures``. The further
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
        raise ScenarioError(f"{base}: its [sweep] says what varies; give no other design")
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


def split(text: str, file: str, table: str) -> tuple[Scenario, dict[str, Value]]:
    """A scenario file without its table of this name, and that table.

    Raises:
        ScenarioError: also when there is no such table.
    """
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{file}: not TOML 1.0: {error}; see toml.io/en/v1.0.0") from None
    said = document.pop(table, None)
    if not isinstance(said, dict) or not said:
        raise ScenarioError(f"{file}: no table [{table}]; docs/sweep.md has examples")
    # Lines keep their numbers, for errors in the rest.
    within, lines = False, []
    for line in text.split("\n"):
        if header := re.match(r"\s*\[\[?\s*([\w-]+)", line):
            within = header[1] == table
        lines.append("" if within else line)
    rest = "\n".join(lines)
    if tomllib.loads(rest.removeprefix("\ufeff")) != document:
        raise ScenarioError(f"{file}: {table}: write it as tables, [{table}], [{table}.grid]")
    return Scenario.from_toml(rest, file), said


def located(error: ScenarioError, text: str, file: str, table: str) -> str:
    """An error in a table with file, line and full key."""
    key = str(error).partition(":")[0]
    quoted = re.findall(r'"([^"]+)"', key)
    last = quoted[0] if quoted else key.rpartition(".")[2]
    return f"{file}:{line_of(text, [last])}: {table}.{error}"


def line_of(text: str, keys: Sequence[str]) -> int:
    """The first line that says one of the keys, 1 where none does."""
    for number, line in enumerate(text.split("\n"), 1):
        for key in keys:
            if re.match(rf"\s*\[?[\w.-]*[\"']?{re.escape(key)}[\"']?\s*[\]=]", line):
                return number
    return 1


def _are_seeds(said: Value) -> bool:
    def whole(item: Value) -> bool:
        return isinstance(item, int) and not isinstance(item, bool)

    if isinstance(said, list):
        return bool(said) and all(whole(item) and item >= 0 for item in said)
    return whole(said) and said >= 1
