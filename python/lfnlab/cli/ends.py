"""How a command ends: its exit code, and its errors in one line."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence

from lfnlab.errors import (
    DamageWarning,
    LabError,
    LawError,
    PrototypeError,
    ScenarioError,
    SeedsWarning,
    StoreError,
    Unavailable,
    UsageError,
)
from lfnlab.printable import line, say

OK, FAILED, USAGE, STORE, UNAVAILABLE, RAISED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
_KEEP_RUNS = (
    *("advise", "agree", "attack", "compare", "evaluate", "paper", "run", "sweep", "testbed"),
    "tune",
)
# What an interrupt leaves behind, by command.
_LEFT = dict.fromkeys(_KEEP_RUNS, "; finished runs are kept; repeat the command to continue") | {
    "send": "; repeat the command to continue",
    "recv": "; complete files are kept; the sender continues the others by repeating its command",
}


def prepare() -> None:
    """Make signals, warnings and texts of this process those of ``lfn``."""
    # A signal that asks for the end, such as a batch system's at the time limit, is an interrupt.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    warnings.showwarning = _warn
    for stream in (sys.stdout, sys.stderr):
        # Where the locale cannot write a sign of a table, the table is worth more than the sign.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def code_of(command: Callable[[], int | None], arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    try:
        code = command()
        print(end="", flush=True)
        return code or OK
    except UnicodeEncodeError as error:
        found = error.object[error.start : error.end]
        return _fail(USAGE, f"{os.fsencode(found)!r} is not UTF-8 text")
    except StoreError as error:
        return _fail(STORE, error)
    except Unavailable as error:
        return _fail(UNAVAILABLE, error)
    except (ScenarioError, LawError, UsageError) as error:
        return _fail(USAGE, error)
    except PrototypeError as error:
        import traceback

        traceback.print_exception(error.__cause__)
        return _fail(RAISED, error)
    except LabError as error:
        return _fail(FAILED, error)
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, f"interrupted{_LEFT.get(''.join(arguments[:1]), '')}")
    except OSError as error:
        # The results have an error of their own, so this is stdout. Python flushes it once more at
        # exit: give it somewhere to go.
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return OK  # the reader has seen enough
        return _fail(STORE, f"{error.filename or 'stdout'}: {error.strerror}")


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, SeedsWarning):
        return  # the commands say so beside their results
    kind = "" if issubclass(category, DamageWarning) else f"{category.__name__}: "
    say(line(f"lfn: {kind}{message}"), file=sys.stderr)


def _fail(code: int, why: object) -> int:
    say(line(f"lfn: {why}"), file=sys.stderr)
    return code
