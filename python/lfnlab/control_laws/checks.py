"""Checks of classes that are laws, and what an error in one says."""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from types import FunctionType
from typing import Any

from lfnlab import _core
from lfnlab.errors import LawError

MOST_PROBES = 8


def check_class(
    law: Any, base: type, callbacks: Collection[str], decisions: Collection[str]
) -> None:
    """Refuse a class whose name, probes, callbacks or attributes cannot be a law's.

    Args:
        law: the class, of ``base``.
        base: declares the callbacks, with their arguments.
        callbacks: their names.
        decisions: names of attributes by which a law decides.

    Raises:
        LawError: naming the class and its part.
    """
    for callback in callbacks:
        own = getattr(law, callback)
        if own is not getattr(base, callback):
            _check_arguments(law, base, callback, own)
    _check_attributes(law, base, callbacks, decisions)
    made = getattr(law, "__init__")  # noqa: B009 - a type checker sees no such attribute
    if made is not getattr(base, "__init__"):  # noqa: B009
        _check_arguments(law, base, "__init__", made)
    if not (isinstance(law.name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", law.name)):
        raise LawError(
            f"{law.__name__}.name: {law.name!r}; allowed: a letter, then letters, digits, . _ -"
        )
    if law.name in {known["name"] for known in _core.laws()}:
        raise LawError(f"{law.name} is a law of the registry; give the class another name")
    several = isinstance(law.probes, tuple | list)
    if not several or not all(isinstance(probe, str) for probe in law.probes):
        raise LawError(f"{law.__name__}.probes: {law.probes!r}; allowed: a list of names")
    if len(law.probes) > MOST_PROBES:
        raise LawError(f"{law.__name__}.probes: {len(law.probes)}; allowed: at most {MOST_PROBES}")


def hint(error: BaseException) -> str:
    """Suggestion for a misspelt attribute, "; did you mean NAME?", or empty."""
    if not isinstance(error, AttributeError) or not error.name:
        return ""
    near = get_close_matches(error.name, dir(error.obj), 1)
    return f"; did you mean {near[0]}?" if near else ""


def last_line(error: BaseException, path: Path) -> str:
    """An exception in one line, with the line of the file that it came from."""
    line = getattr(error, "lineno", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f" (line {line})" if line is not None else ""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {message}{where}"


def _check_arguments(law: type, base: type, name: str, own: Any) -> None:
    wanted = [*inspect.signature(getattr(base, name)).parameters]
    if name == "__init__" and wanted == ["self", "args", "kwargs"]:  # of object
        wanted = ["self"]
    right = f"write {name}({', '.join(wanted)})"
    if not callable(own):
        raise LawError(f"{law.__name__}.{name} is {own!r}, which cannot be called; {right}")
    try:
        signature = inspect.signature(own)
    except (TypeError, ValueError):  # of C, which tells none
        return
    try:
        signature.bind(*wanted)
    except TypeError:
        raise LawError(f"{law.__name__}.{name}{signature} cannot be called; {right}") from None


def _check_attributes(
    law: type, base: type, callbacks: Collection[str], decisions: Collection[str]
) -> None:
    """Refuse an attribute that only looks like one by which a law decides."""
    parts = [part for one in law.__mro__[: law.__mro__.index(base)] for part in vars(one).items()]
    methods = [(name, part) for name, part in parts if isinstance(part, FunctionType)]
    own = {attribute for name, part in methods if name not in callbacks for attribute in _set(part)}
    for name, part in methods:
        for attribute in sorted(_set(part) - own - set(dir(law))):
            if near := get_close_matches(attribute, decisions, 1, 0.75):
                raise LawError(
                    f"{law.__name__}.{name} sets {attribute}; did you mean {near[0]}? An attribute "
                    "of the law's own is first set in __init__"
                )


def _set(function: FunctionType) -> set[str]:
    """The attributes that a function sets."""
    code = dis.get_instructions(function)
    return {step.argval for step in code if step.opname == "STORE_ATTR"}
