"""Flows of a run in groups: by law and route, or by any property as the scenario writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lfnlab.errors import UsageError

if TYPE_CHECKING:
    from lfnlab.results.summary import FlowSummary

EACH = ("rtt", "start", "stop", "size")
"""Keys of which a list has one value for each flow."""
OF_SUMMARY = ("law", "route", "direction", "flow")
"""Properties of a flow that its summary tells, whatever ran it."""


def own_tables(resolved: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The scenario's table of each flow, with its own of the values that a list has.

    A distribution stays as it is written: what was drawn from it is in the summary.

    Args:
        resolved: from :meth:`lfnlab.Scenario.check`.
    """
    found = []
    for number, table in enumerate(resolved.get("flow", [])):
        lists = {key: table[key] for key in EACH if isinstance(table.get(key), list)}
        for place in range(int(table["count"])):
            own = {key: values[place % len(values)] for key, values in lists.items()}
            found.append({**table, "group": str(table.get("name", number)), **own})
    return found


def properties(
    flows: Sequence[FlowSummary], routes: Sequence[str], tables: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    """The properties of flows as text: of each its values, in the order of the flows.

    Args:
        flows: of a summary.
        routes: of each flow in words.
        tables: of each flow, from :func:`own_tables`; else none, as of a measurement.
    """
    found = {
        "law": [str(flow["law"]) for flow in flows],
        "route": [*routes],
        "direction": [str(flow["direction"]) for flow in flows],
        "flow": [str(flow["id"]) for flow in flows],
    }
    flat = [dict(_plain(table)) for table in tables] if len(tables) == len(flows) else []
    for key in dict.fromkeys(key for table in flat for key in table):
        found.setdefault(key, [table.get(key, "none") for table in flat])
    return found


def _plain(table: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Keys with values that are no lists; those of tables in it as ``application.rate``."""
    found: list[tuple[str, str]] = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            found += _plain(value, f"{before}{key}.")
        elif isinstance(value, bool):
            found.append((before + key, str(value).lower()))
        elif not isinstance(value, list):
            found.append((before + key, str(value)))
    return found


def grouped(
    found: Mapping[str, Sequence[str]], by: Sequence[str]
) -> dict[tuple[str, ...], list[int]]:
    """The places of the flows by their values of ``by``, in the order of the flows.

    Raises:
        UsageError: for a property that flows do not have, naming those that they have.
    """
    for key in by:
        if key not in found:
            raise UsageError(f'--by: flows have no "{key}"; allowed: {", ".join(sorted(found))}')
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, values in enumerate(zip(*(found[key] for key in by), strict=True)):
        groups.setdefault(values, []).append(place)
    return groups
