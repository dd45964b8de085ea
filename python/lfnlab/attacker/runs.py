"""Runs of an attack: simulated once, and kept in one file that an interrupted attack goes on from.

A line of the file has the name of a run, which is a hash of its scenario's text, and its figures.
Lines follow each other in the order in which the search asks, whatever the number of threads. So a
search that begins again finds what it has had, and adds what is missing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, NamedTuple

from lfnlab import _core
from lfnlab.attacker.harm import Figures
from lfnlab.attacker.scenarios import document
from lfnlab.control_laws import prototype
from lfnlab.errors import LabError, PrototypeError, StoreError, UsageError
from lfnlab.experiment.executor import SIMULATOR, Backend
from lfnlab.results.provenance import code_version
from lfnlab.scenario.builder import toml

if TYPE_CHECKING:
    from lfnlab.attacker.space import Path

NAME_DIGITS = 16
"""Of the hash that names a run."""


class Ask(NamedTuple):
    """A run that is wanted: keys of the path, law as a scenario names it, seed, duration in s."""

    path: Path
    law: str
    seed: int
    duration_s: float

    @property
    def text(self) -> str:
        """The scenario."""
        return toml(document(*self))


class OverBudget(Exception):
    """The runs that were allowed are used up."""


class Runs:
    """Answers asks with figures; None for a run that failed.

    Args:
        file: where the figures are kept; None for nowhere.
        about: the search that the file is of; a file of another one is refused.
        jobs: runs at a time.
        most: so many runs are allowed.
        backend: where they run; one after the other on another than the simulator.

    Raises:
        UsageError: the file is of another search, or another process writes it.
        StoreError: the file cannot be read or written, or is damaged.
    """

    def __init__(
        self,
        file: FilePath | None,
        about: dict[str, Any],
        jobs: int,
        most: int | None = None,
        backend: Backend = SIMULATOR,
    ) -> None:
        self._file, self._jobs, self._most, self._backend = file, jobs, most, backend
        self._known: dict[str, Figures | None] = {}
        self._used: set[str] = set()
        self.failed = 0
        self.first_failure = ""
        if file is not None:
            self._open(file, {"attack": 1, "code": code_version()} | about)

    @property
    def used(self) -> int:
        """Runs that were asked for, each once."""
        return len(self._used)

    def left(self) -> int | None:
        """Runs that are still allowed; None for any number."""
        return None if self._most is None else max(0, self._most - len(self._used))

    def allow(self, most: int) -> None:
        """Change the number of runs that are allowed."""
        self._most = most

    def __call__(
        self, asks: Sequence[Ask], tell: Callable[[], bool] | None = None
    ) -> list[Figures | None]:
        """The figures of runs, in their order.

        ``tell`` is called now and then; False gives the runs up, as an interrupt does.

        Raises:
            OverBudget: before any of them, when they are more than is allowed.
            PrototypeError: when a law in Python raised.
            KeyboardInterrupt: what was finished before this call is kept.
        """
        texts = [ask.text for ask in asks]
        names = [_name(text) for text in texts]
        fresh = set(names) - self._used
        if self._most is not None and len(self._used) + len(fresh) > self._most:
            raise OverBudget
        missing = {
            name: (text, ask.path)
            for name, text, ask in zip(names, texts, asks, strict=True)
            if name not in self._known
        }
        if missing and self._backend is SIMULATOR:
            self._keep(self._simulate(missing, tell))
        for name, (text, path) in missing.items() if self._backend is not SIMULATOR else ():
            found = self._elsewhere(text, path)
            if found is None:
                self._known[name] = None  # another process tries again
            else:
                self._keep({name: found})
        for name in names:
            if name not in self._used and self._known[name] is None:
                self.failed += 1
            self._used.add(name)
        return [self._known[name] for name in names]

    def _simulate(
        self, missing: dict[str, tuple[str, Path]], tell: Callable[[], bool] | None
    ) -> dict[str, Figures | None]:
        made: dict[str, Figures | None] = {}
        scenarios = {}
        for name, (text, _) in missing.items():
            try:
                scenarios[name] = _core.Scenario(text)
            except LabError as error:
                self._note(error)
        progress = None if tell is None else (lambda _, __: tell())
        try:
            runs = _core.run_many(list(scenarios.values()), self._jobs, progress, sampled=False)
        except PrototypeError:
            raise
        except LabError:
            runs = [self._one(scenario) for scenario in scenarios.values()]
        found = dict(zip(scenarios, runs, strict=True))
        for name, (_, path) in missing.items():
            run = found.get(name)
            if run is None and name in scenarios and tell is not None and not tell():
                raise KeyboardInterrupt
            made[name] = None if run is None else Figures.of(run.summary(), path)
        return made

    def _one(self, scenario: _core.Scenario) -> _core.Run | None:
        try:
            return _core.run_many([scenario], 1, None, sampled=False)[0]
        except PrototypeError:
            raise
        except LabError as error:
            self._note(error)
            return None

    def _elsewhere(self, text: str, path: Path) -> Figures | None:
        """The figures of a run on another TCP."""
        try:
            files = self._backend.simulate(_core.Scenario(text), "lfn attack")
        except LabError as error:
            self._note(error)
            return None
        return None if files is None else Figures.of(files["summary.json"].decode(), path)

    def _keep(self, made: dict[str, Figures | None]) -> None:
        self._append([_line(name, figures) for name, figures in made.items()])
        self._known |= made

    def _note(self, error: LabError) -> None:
        self.first_failure = self.first_failure or str(error)

    def _open(self, file: FilePath, about: dict[str, Any]) -> None:
        head = json.dumps(about, ensure_ascii=False)
        try:
            self._lock = file.open("a")  # for as long as this lives
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{file.parent}: another attack runs there; give another --out"
            ) from None
        except OSError as error:
            raise StoreError(f"{file}: {error.strerror}") from None
        try:
            there = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{file}: {error}") from None
        whole = there[: there.rfind("\n") + 1]
        if not whole:
            self._write(file, head + "\n", "w")
            return
        first, *lines = whole.splitlines()
        if first != head:
            raise UsageError(f"{file.parent} {_differs(first, about)}; give another --out")
        for place, line in enumerate(lines, 2):
            try:
                name, *figures = json.loads(line)
                self._known[str(name)] = Figures(*map(float, figures)) if figures else None
            except (ValueError, TypeError):
                raise StoreError(
                    f"{file}:{place}: no run of an attack: {line[:60]!r}; delete the file to "
                    "begin again"
                ) from None
        if whole != there:
            # The last line of a process that was killed.
            self._write(file, whole, "w")

    def _append(self, lines: Sequence[str]) -> None:
        if self._file is not None and lines:
            self._write(self._file, "".join(f"{line}\n" for line in lines), "a")

    @staticmethod
    def _write(file: FilePath, text: str, mode: str) -> None:
        try:
            with file.open(mode, encoding="utf-8", newline="\n") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise StoreError(f"{file}: {error.strerror}") from None


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:NAME_DIGITS]


def _line(name: str, figures: Figures | None) -> str:
    return json.dumps([name, *(() if figures is None else figures.to_json().values())])


def _differs(first: str, about: dict[str, Any]) -> str:
    try:
        there = json.loads(first)
        names = [name for name in about if there.get(name) != about[name]]
        name = names[0]
        return f"holds another attack, with {name} {there.get(name)}, here {about[name]}"
    except (ValueError, AttributeError, IndexError):
        return "holds no attack"


def spelled(law: str) -> str:
    """A law as a scenario's text names it.

    Raises:
        LawError: when there is none.
    """
    return prototype.spelled(law, FilePath())
