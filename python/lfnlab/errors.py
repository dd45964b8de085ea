"""Errors that a user can mend. Each says what was found and what is allowed.

The command line prints them without a traceback and turns them into an exit code (``docs/cli.md``).
"""

from __future__ import annotations


class LabError(Exception):
    """Any error of the laboratory that is not a defect in it."""


class ScenarioError(LabError, ValueError):
    """A scenario that cannot be run. The text names file, line, key, and what is allowed."""


class LawError(LabError):
    """A name that is no law's. The text gives the nearest."""


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
    """A metric that cannot be computed as asked. The text names the argument, what is allowed."""


class DamageWarning(UserWarning):
    """Stored results were damaged and are made again. The text says which, and why."""
