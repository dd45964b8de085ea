"""The fluid as a first screen of a search: utilization and mean queue without a simulation.

A flow has its part of rate and buffer, no other traffic and no loss but its own: the sawtooth of
the law's own code (``crates/law/src/fluid.rs``), as :func:`lfnlab.theory.sawteeth` has it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lfnlab import _core
from lfnlab.errors import ScenarioError
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, parse, parsed

if TYPE_CHECKING:
    from lfnlab.experiment.objective import Objective
    from lfnlab.scenario.builder import Scenario

KNOWN = ("utilization", "mean_queue_s")
"""Metrics that the fluid has."""


def check(objectives: Sequence[Objective], base: Scenario) -> None:
    """Refuse what the fluid cannot screen.

    Raises:
        ScenarioError: naming the objective's metric, or the scenario.
    """
    for objective in objectives:
        if other := [name for name in objective.names if name not in KNOWN]:
            allowed = f"the fluid has {' and '.join(KNOWN)} alone"
            raise ScenarioError(f'"{objective.text}" has {other[0]}', allowed, "screen")
    if base.link is None:
        raise ScenarioError("no dumbbell", "the fluid has one bottleneck", "screen")


def fluid(scenarios: Sequence[Scenario]) -> list[Mapping[str, float] | None]:
    """The metrics of each scenario; None where the fluid has no sawtooth.

    Raises:
        ScenarioError: a scenario that cannot be.
    """
    points = [_point(scenario) for scenario in scenarios]
    known = [point for point in points if point is not None]
    columns = zip(*known, strict=True) if known else ((), (), (), ())
    laws, rates, rtts, buffers = (list(column) for column in columns)
    found = _core.sawteeth(laws, rates, rtts, buffers, 1)
    rows = iter(zip(found["utilization"], found["mean_rtt_s"], rtts, strict=True))
    screened: list[Mapping[str, float] | None] = []
    for point in points:
        if point is None:
            screened.append(None)
            continue
        utilization, mean_rtt_s, rtt_s = next(rows)
        metrics = {"utilization": float(utilization), "mean_queue_s": float(mean_rtt_s) - rtt_s}
        screened.append(metrics if all(map(math.isfinite, metrics.values())) else None)
    return screened


def _point(scenario: Scenario) -> tuple[str, float, float, float] | None:
    """Law, packets a second, RTT and buffer in packets of a flow; None where the fluid has none."""
    document = json.loads(_core.Scenario(scenario.to_toml()).resolved)
    groups, link = document["flow"], document["link"]
    flows = sum(group.get("count", 1) * group.get("parallel", 1) for group in groups)
    first = groups[0]
    if "rate" not in link or not isinstance(first["rtt"], str) or "@" in first["law"]:
        return None
    wire_bytes = parse(first["packet"], BYTES)
    packets_a_s = parse(link["rate"], BITS_PER_S) / 8 / wire_bytes
    rtt_s = parsed(first["rtt"], SECONDS)
    size = link["queue"]["size"]
    if rtt_s is None:
        return None
    if (whole := parsed(size, {"packets": 1.0, "packet": 1.0})) is not None:
        packets = whole
    elif (bdps := parsed(size, {"bdp": 1.0})) is not None:
        packets = bdps * packets_a_s * rtt_s
    else:
        packets = parse(size, BYTES) / wire_bytes
    return first["law"], packets_a_s / flows, rtt_s, packets / flows
