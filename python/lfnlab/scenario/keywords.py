"""Errors of wrong calls of the classes that users construct."""

from __future__ import annotations

from functools import wraps
from typing import Any, TypeVar

from lfnlab.printable import line

_T = TypeVar("_T")


def keywords(made: type[_T]) -> type[_T]:
    """A class whose error of a wrong call names the nearest keyword and the allowed ones."""
    init: Any = made.__init__

    @wraps(init)
    def checked(self: _T, *values: Any, **named: Any) -> None:
        try:
            init(self, *values, **named)
        except TypeError:
            import inspect
            from difflib import get_close_matches

            signature = inspect.signature(init)
            try:
                signature.bind(self, *values, **named)
            except TypeError as wrong:
                allowed = [*signature.parameters][1:]
                unknown = next((name for name in named if name not in allowed), "")
                near = get_close_matches(unknown, allowed, 1)
                hint = f'did you mean "{near[0]}"? ' if near else ""
                said = f"{made.__name__}: {wrong}; {hint}allowed: {', '.join(allowed)}"
                raise TypeError(line(said)) from None
            raise

    made.__init__ = checked  # type: ignore[assignment, method-assign]
    return made
