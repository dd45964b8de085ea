"""Is a run long enough to have a mean? It holds after several epochs, from loss to loss.

A law that grows until it loses draws a sawtooth, and what is measured over a part of a tooth
depends on where the run ends: Reno on 10 Gbit/s x 100 ms loses once in three hours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from lfnlab import _core
from lfnlab.control_laws.registry import known
from lfnlab.errors import LabError
from lfnlab.results import shards
from lfnlab.results.store import read_json, reductions
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, bounds, parse

if TYPE_CHECKING:
    from lfnlab.results.runs import Results, Run
    from lfnlab.scenario.builder import Scenario

#: With fewer epochs a flow's mean is left to chance: the 95 % interval of the mean of ten is still
#: 0.7 of their standard deviation wide to each side (2.26 / sqrt 10).
WANTED = 10
#: Of a packet on the wire beyond the IP packet, by the scenario's ``compat``.
FRAMING_BYTES = {"linux": 14, "ns2": 0}


def epoch_s(scenario: Scenario) -> dict[str, float]:
    """Seconds from loss to loss by law, for laws that grow until they lose.

    The flows of a direction lose together and share its drop-tail queue evenly, and each runs its
    law's code (:func:`lfnlab.theory.sawteeth.sawteeth`); other traffic makes epochs shorter. Of the
    flows of a law the one with the largest window and RTT counts: its epoch is the longest. A law
    without a sawtooth on the path is absent.
    """
    return _epochs_s(scenario.check().to_document())


def _epochs_s(resolved: dict[str, Any]) -> dict[str, float]:
    link = resolved.get("link", {})
    queue = link.get("queue", {})
    if queue.get("kind") != "drop-tail" or link.get("loss") or "trace" in link:
        return {}
    longest: dict[str, tuple[float, tuple[str, float, float, float]]] = {}
    flows = resolved.get("flow", [])
    longest_s = max((bounds(flow["rtt"], SECONDS)[1] for flow in flows), default=0.0)
    sharers: Counter[str] = Counter()
    for flow in flows:
        sharers[flow["direction"]] += int(flow["count"])
    for flow in flows:
        sharing = sharers[flow["direction"]]
        wire_bytes = parse(flow["packet"], BYTES) + FRAMING_BYTES[resolved["compat"]]
        rate_bps = parse(link["rate"], BITS_PER_S)
        rate_pps = rate_bps / (8 * wire_bytes)
        buffer = queue_packets(queue["size"], rate_bps, longest_s, wire_bytes)
        rtt_s = bounds(flow["rtt"], SECONDS)[1]
        if "transport" not in flow and _grows_until_loss(flow["law"].partition(":")[0]):
            path = (flow["law"], rate_pps / sharing, rtt_s, buffer / sharing)
            window_s = (rate_pps * rtt_s + buffer) / sharing * rtt_s
            longest[flow["law"]] = max(longest.get(flow["law"], (0.0, path)), (window_s, path))
    periods = {law: _period_s(*path) for law, (_, path) in longest.items()}
    return {law: period_s for law, period_s in periods.items() if math.isfinite(period_s)}


def _grows_until_loss(name: str) -> bool:
    """Whether the registry's family is ``loss``; false for a prototype, whose family is unknown."""
    info = known(name)
    return info is not None and info.family == "loss"


@cache
def _period_s(law: str, rate_pps: float, rtt_s: float, buffer: float) -> float:
    found = _core.period_s(law, rate_pps, rtt_s, buffer)
    return math.nan if found is None else found


def queue_packets(size: str, rate_bps: float, rtt_s: float, wire_bytes: float) -> float:
    """Packets of one size that a queue of a scenario holds, the one in service not counted."""
    number, _, unit = size.partition(" ")
    if unit.startswith("packet"):
        return float(number)
    if size.endswith("bdp"):
        return float(size.removesuffix("bdp")) * rate_bps * rtt_s / (8 * wire_bytes)
    return parse(size, BYTES) / wire_bytes


def foreseen(scenarios: Iterable[Scenario]) -> list[str]:
    """Warning before runs that are too short by theory: one line, or an empty list."""
    short: dict[str, float] = {}
    for scenario in scenarios:
        resolved = scenario.check().to_document()
        length_s = parse(resolved["duration"], SECONDS) - parse(resolved["warmup"], SECONDS)
        try:
            found = _epochs_s(resolved)
        except LabError:  # a path that theory does not have
            continue
        for law, seconds in found.items():
            if seconds * WANTED > length_s:
                short[law] = max(short.get(law, 0.0), seconds)
    if not short:
        return []
    said = ", ".join(f"{law} about every {_seconds(seconds)}" for law, seconds in short.items())
    return [
        f"too short for a steady mean, which needs {WANTED} losses a flow; alone on this path a "
        f"loss is expected for {said}"
    ]


def seen(results: Results, step: Callable[[], object] = bool) -> list[str]:
    """Warning about flows with too few losses after the warm-up: one line, or an empty list.

    It has the time from loss to loss that theory expects where there were the fewest. ``step`` is
    called once for each run.
    """
    counts: dict[str, list[int]] = {}
    fewest: dict[str, Run] = {}
    for run in results.looked_at:
        step()
        if run.is_measured:
            continue
        for law, losses in _losses(run).items():
            own = counts.setdefault(law, [])
            if not own or min(losses) < min(own):
                fewest[law] = run
            own.extend(losses)
    few = {law: losses for law, losses in counts.items() if min(losses) < WANTED}
    if not few:
        return []
    said = ", ".join(_said(law, losses, fewest[law]) for law, losses in few.items())
    return [f"Few losses after the warm-up; a steady mean needs at least {WANTED} a flow: {said}."]


def _said(law: str, losses: list[int], fewest: Run) -> str:
    low, high = min(losses), max(losses)
    text = f"{law} {low}" if low == high else f"{law} {low} to {high}"
    try:
        expected = epoch_s(fewest.scenario)
    except LabError:  # a path that theory does not have, or a scenario of another version
        return text
    return f"{text} (theory: one in {_seconds(expected[law])})" if law in expected else text


def _losses(run: Run) -> dict[str, list[int]]:
    """Reductions after the warm-up, one number for each flow that is to last, by law."""
    lasting = [
        flow
        for flow in run.summary["flows"]
        if _grows_until_loss(flow["law"])
        and flow["completion_s"] is None
        and flow["goodput_bps"] is not None
        and flow.get("sent") != 0
    ]
    if run.summary["warmup_s"] == 0 and not any(flow["timeouts"] for flow in lasting):
        count = {flow["id"]: flow["loss_events"] for flow in lasting}
    else:
        # The summary counts the whole run, and omits a timeout that follows another.
        count = _counted(run)
    found: dict[str, list[int]] = {}
    for flow in lasting:
        found.setdefault(flow["law"], []).append(count.get(flow["id"], 0))
    return found


def _counted(run: Run) -> dict[int, int]:
    """Reductions after the warm-up by flow, as the table of events has them."""
    if shards.holds(run.path):
        said: dict[str, int] = read_json(run.path / shards.REDUCTIONS)
        return {int(flow): count for flow, count in said.items()}
    events = run.table("events", ("kind", "t_s", "flow"))
    kinds, times_s, flows = (events[column].to_list() for column in ("kind", "t_s", "flow"))
    return reductions(kinds, times_s, flows, run.summary["warmup_s"])


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
