"""Errors that a user can mend. Each says what was found and what is allowed.

The command line prints them without a traceback and turns them into an exit code (``docs/cli.md``).
"""

from __future__ import annotations


class LabError(Exception):
    """Any error of the laboratory that is not a defect in it."""


class ScenarioError(LabError, ValueError):
    """A scenario that cannot be run: ``FILE:LINE: KEY: what was found; what is allowed``.

    >>> error = ScenarioError('"1"', 'write for example "1s"', "link.delay", "a.toml", 3)
    >>> str(error), error.line
    ('a.toml:3: link.delay: "1"; write for example "1s"', 3)
    """

    def __init__(
        self, found: str, hint: str = "", key: str = "", file: str = "", line: int | None = None
    ) -> None:
        place = file if line is None else f"{file}:{line}"
        said = f"{found}; {hint}" if hint else found
        super().__init__(": ".join(part for part in (place, key, said) if part))
        self.said = said
        """The fault without its place."""
        self.found = found
        """The wrong value."""
        self.hint = hint
        """The allowed values, or a correct spelling; may be part of ``found``."""
        self.key = key
        """Path of the key, such as ``link.queue.size``; empty when no key is at fault."""
        self.file = file
        """The file, as the caller named it; empty when there is none."""
        self.line = line
        """Line of the file, from 1."""

    @property
    def with_key(self) -> str:
        """The fault and its key without the file, for a scenario that no user wrote."""
        return f"{self.key}: {self.said}" if self.key else self.said

    def at(self, key: str, file: str = "", line: int | None = None) -> ScenarioError:
        """The same fault of another key, or of a key that stands elsewhere."""
        return ScenarioError(self.found, self.hint, key, file, line)


class LawError(LabError):
    """Unknown name of a law. The text gives the nearest name."""


class OverMemory(LabError):
    """A run that would exceed the memory of all runs. The text names amount, key and remedy."""


class PrototypeError(LabError):
    """A law in Python raised an exception, its cause, or set a window that cannot be.

    The text names run, seed, law, callback and simulated time.
    """


class UsageError(LabError, ValueError):
    """A request for what is not there, or a file that is not what it should be."""


class StoreError(LabError):
    """Results that cannot be read or written. Runs that were stored before are intact."""


class Unavailable(LabError):
    """Something that this installation lacks. The text says what."""


class MetricError(UsageError):
    """A metric that cannot be computed as asked: ``ARGUMENT: what is wrong``."""

    def __init__(self, wrong: str, argument: str = "") -> None:
        super().__init__(f"{argument}: {wrong}" if argument else wrong)
        self.wrong = wrong
        """The fault, and the allowed values."""
        self.argument = argument
        """The argument at fault; empty when none is."""


class SeedsWarning(UserWarning):
    """Fewer runs than seeds: nothing in them is random. The text says how many."""


class DamageWarning(UserWarning):
    """Stored results were damaged and are made again. The text says which, and why."""
