"""Warnings about results that mislead, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lfnlab.analysis import background, run_length
from lfnlab.statistics import FEW

if TYPE_CHECKING:
    from lfnlab.results.runs import Results, Run

#: A round trip of VCP makes up for at most 2.5 of its routers' intervals of 200 ms
#: (laws/cards/vcp.md).
VCP_RTT_S = 0.5


def seen(results: Results, step: Callable[[], object] = bool) -> list[str]:
    """Means left to chance or of few seeds, ended flows, queues that do not mark, much background.

    And laws beyond their round-trip times, limits of hosts, notes of importers. ``step`` is called
    once for each run.
    """
    return [
        *run_length.seen(results, step),
        *few_seeds(results),
        *unconnected(results),
        *ended(results),
        *unmarked(results),
        *background.seen(results),
        *beyond_rtt(results),
        *limited(results),
        *chosen(results),
        *of_measurements(results),
    ]


def of_measurements(results: Results) -> list[str]:
    """The notes of importers on their files, each once."""
    notes = [note for run in results.looked_at for note in run.summary.get("notes", ())]
    return list(dict.fromkeys(notes))


def chosen(results: Results) -> list[str]:
    """Note that of very many runs some were read for the other warnings."""
    runs, read = len(results.runs), len(results.looked_at)
    return [] if read == runs else [f"Warnings are from {read:,} of {runs:,} runs, evenly chosen."]


def unconnected(results: Results) -> list[str]:
    """Flows that sent no data, since their connection was not made."""
    found: dict[str, list[Run]] = {}
    over_udt = False
    for run in results.looked_at:
        for flow in run.summary["flows"]:
            waits_s = run.summary["sim_s"] - flow["start_s"]
            if flow.get("sent") == 0 and waits_s > 2 * flow["rtt_s"]:
                over_udt |= flow.get("transport") == "udt"
                found.setdefault(f"flow {flow['id']} ({flow['law']})", []).append(run)
    if not found:
        return []
    who = (
        next(iter(found)) if len(found) == 1 else f"{len(found)} flows, {next(iter(found))} first,"
    )
    runs = len({run.path for of in found.values() for run in of})
    where = f" in {runs} runs" if runs > 1 else ""
    return [
        f"The connection of {who} was not made{where}: no answer to its handshake arrived."
        + (" UDT gives up after 3 s, so it needs an RTT below 1.5 s." if over_udt else "")
    ]


def few_seeds(results: Results) -> list[str]:
    """Means over so few seeds that their intervals say little."""
    cases = results.cases if results.cases.rows else results.links
    counts = cases.counts()
    few = sorted({count for count in counts.values() if 1 < count < FEW})
    if not few:
        return []
    span = " to ".join(f"{count}" for count in sorted({few[0], few[-1]}))
    some = "" if max(counts.values()) < FEW else " of some cases"
    return [
        f"Means{some} over {span} seeds: below {FEW} an interval is rough, and figures show each "
        "run as a dot."
    ]


def beyond_rtt(results: Results) -> list[str]:
    """Flows of VCP and EVCP above the RTT at which their growth per round trip ends."""
    longest: dict[str, float] = {}
    for run in results.looked_at:
        for flow in run.summary["flows"]:
            rtt_s = flow["rtt_s"] or 0.0
            if flow["law"].partition(":")[0] in ("vcp", "evcp") and rtt_s > VCP_RTT_S:
                longest[flow["law"]] = max(longest.get(flow["law"], 0.0), rtt_s)
    return [
        f"{law} has an RTT of {rtt_s:g} s: above {VCP_RTT_S:g} s its window grows no faster per "
        "round trip, so it fills the link slowly and incompletely."
        for law, rtt_s in longest.items()
    ]


def limited(results: Results) -> list[str]:
    """Limits of the hosts of Linux in virtual time that the scenario does not ask for."""
    found: dict[str, int] = {}
    for run in results.looked_at:
        for limit in run.summary.get("testbed", {}).get("limits", []):
            found[limit] = found.get(limit, 0) + 1
    return [
        f"A limit of a host was reached: {limit}{f', in {runs} runs' if runs > 1 else ''}."
        for limit, runs in found.items()
    ]


def ended(results: Results) -> list[str]:
    """Flows and UDP sources that a circuit breaker ended, and when."""
    found: dict[str, dict[str, list[float]]] = {}
    for run in results.looked_at:
        flows = [(flow["law"], f"flow {flow['id']}", flow) for flow in run.summary["flows"]]
        sources = [("UDP", f"source {udp['name']}", udp) for udp in run.summary.get("udp", [])]
        for law, name, one in (*flows, *sources):
            at_s = one.get("tripped_s")
            if at_s is not None:
                found.setdefault(law, {}).setdefault(name, []).append(at_s)
    return [
        f"A circuit breaker ended {_ended(law, of)}; results cover the time before it."
        for law, of in found.items()
    ]


def _ended(law: str, of: Mapping[str, list[float]]) -> str:
    """Flows of one law, or sources, and when they were ended."""
    at_s = [one for times in of.values() for one in times]
    low, high, runs = f"{min(at_s):.4g}", f"{max(at_s):.4g}", max(map(len, of.values()))
    who = next(iter(of)) if len(of) == 1 else f"{len(of)} flows or sources"
    when = f"at {low} s" if low == high else f"at {low} to {high} s"
    return f"{who} ({law}) {when}" + (f", in {runs} runs" if runs > 1 else "")


def unmarked(results: Results) -> list[str]:
    """RED queues with ``ecn`` that dropped more packets early than they marked.

    RED marks only while its probability is below ``mark_p`` (default 0.1). With thresholds close
    together, the average queue is rarely in that range.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for run in results.looked_at:
        suspects = [link for link in run.summary["links"] if _dropped(link)]
        if suspects and run.is_simulated:
            marking = _marking(run)
            for link in suspects:
                if marking.get(link["id"], 1.0) < 1.0:
                    counts = (link["early_drops"], link["marks"])
                    found.setdefault(link["id"], []).append(counts)
    return [
        f"The queue of {name} has ecn = true, and dropped {_range([d for d, _ in counts])} packets "
        f"early and marked {_range([m for _, m in counts])}: it marks only while its probability "
        "is below mark_p; mark_p = 1 marks always."
        for name, counts in found.items()
    ]


def _dropped(link: Mapping[str, Any]) -> bool:
    return bool(link.get("early_drops", 0) > link.get("marks", 0))


def _marking(run: Run) -> dict[str, float]:
    """``mark_p`` of the RED queues that mark, where every flow can carry a mark."""
    resolved = run.scenario.check().to_document()
    flows = resolved.get("flow", [])
    if not flows or not all(flow.get("ecn") for flow in flows):
        return {}
    if resolved.get("background", {}).get("level") or resolved.get("traffic"):
        return {}
    ways: dict[str, Mapping[str, Any]] = {}
    if "link" in resolved:
        ways = {"forward": resolved["link"], "reverse": resolved["link"].get("reverse", {})}
    for link in resolved.get("links", []):
        ways[link["name"]] = link
    queues = {name: way.get("queue", {}) for name, way in ways.items()}
    return {
        name: float(queue["mark_p"])
        for name, queue in queues.items()
        if queue.get("kind") == "red" and queue.get("ecn")
    }


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
