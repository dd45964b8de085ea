"""Objectives: arithmetic over the result of a run; the text cannot execute code."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lfnlab.errors import ScenarioError, UsageError
from lfnlab.results.runs import metrics_of

if TYPE_CHECKING:
    from lfnlab.results.summary import Summary

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    # Of floats: a power of integers may have more digits than memory.
    ast.Pow: lambda a, b: float(a) ** float(b),
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "abs": abs,
    "exp": math.exp,
    "log": math.log,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
}
_LISTS = {"flow": "flows", "link": "links"}


class Objective:
    """A formula such as ``mean_queue_s / 0.01 - utilization``.

    Names are the metrics of all flows under test together (:func:`lfnlab.results.metrics_of`);
    ``flow[1].goodput_bps`` and ``link[0].p99_queue_s`` are keys of one flow or link in the result
    (``docs/results.md``). Operators: + - * / **, and abs, exp, log, max, min, sqrt.

    Args:
        text: the formula.
        key: that has it, for errors.
        place: file and line of the key, for errors of a run's result.

    Raises:
        ScenarioError: when the formula is invalid.
    """

    def __init__(self, text: str, key: str = "minimise", place: str = "") -> None:
        self.text, self._key = text, key
        self._at = f"{place}: {key}" if place else key
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise _refused(text, "is not a formula", key) from None
        self._check(self._tree)

    @property
    def names(self) -> list[str]:
        """The metrics, and the keys of flows and links, that it has."""
        return [
            ast.unparse(node)
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Attribute)
            or (isinstance(node, ast.Name) and node.id not in (*_FUNCTIONS, *_LISTS))
        ]

    def of_metrics(self, metrics: Mapping[str, float]) -> float | None:
        """Value of metrics by name, which are all that it has; None if it is not finite."""
        return self._finite({}, lambda: metrics)

    def of(self, summary: Summary) -> float | None:
        """Value for a run; None if it is not finite.

        Raises:
            UsageError: when it names what a run has not.
        """
        return self._finite(summary, lambda: metrics_of(summary, summary["flows"]))

    def _finite(
        self, lists: Mapping[str, Any], metrics: Callable[[], Mapping[str, object]]
    ) -> float | None:
        try:
            value = self._value(self._tree, lists, metrics)
            value = float(value) if isinstance(value, int | float) else math.nan
        except UsageError:
            raise
        except (ArithmeticError, ValueError, TypeError):
            return None
        return value if math.isfinite(value) else None

    def _check(self, node: ast.expr) -> None:
        match node:
            case ast.Constant(value=int() | float()) | ast.Name():
                return
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                self._check(inner)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                self._check(left)
                self._check(right)
            case ast.Call(func=ast.Name(id=name), args=inners, keywords=[]) if name in _FUNCTIONS:
                for inner in inners:
                    self._check(inner)
            case ast.Attribute(
                value=ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int()))
            ) if name in _LISTS:
                return
            case _:
                raise _refused(self.text, f"contains {ast.unparse(node)!r}", self._key)

    def _value(
        self,
        node: ast.expr,
        lists: Mapping[str, Any],
        metrics: Callable[[], Mapping[str, object]],
    ) -> Any:
        def value_of(inner: ast.expr) -> Any:
            return self._value(inner, lists, metrics)

        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                found = metrics()
                if name not in found:
                    raise UsageError(f"{self._at}: no metric {name}; allowed: {', '.join(found)}")
                return found[name]
            case ast.UnaryOp(operand=inner):
                return -value_of(inner)
            case ast.BinOp(left=left, op=op, right=right):
                return _BINARY[type(op)](value_of(left), value_of(right))
            case ast.Call(func=ast.Name(id=name), args=inners):
                return _FUNCTIONS[name](*map(value_of, inners))
            case ast.Attribute(
                value=ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(place))),
                attr=key,
            ):
                entries = lists[_LISTS[name]]
                if not 0 <= place < len(entries):
                    raise UsageError(
                        f"{self._at}: {name}[{place}]: the run has {len(entries)}, counted from 0"
                    )
                if key not in entries[place]:
                    allowed = ", ".join(entries[place])
                    raise UsageError(f"{self._at}: {name}[{place}].{key}; allowed: {allowed}")
                return entries[place][key]
        raise AssertionError(ast.dump(node))


def _refused(text: str, why: str, key: str) -> ScenarioError:
    functions = ", ".join(_FUNCTIONS)
    return ScenarioError(
        f'"{text}" {why}',
        f"allowed: numbers, metrics, flow[0].KEY, link[0].KEY, + - * / ** ( ), {functions}",
        key,
    )
