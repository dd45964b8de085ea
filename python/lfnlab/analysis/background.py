"""The share of the rate that background traffic had, beside what its level asks for.

A level asks for short flows of a share of the rate. Long flows of 20 packets come on top; they do
not scale with the rate, so on a slow link they are most of the background.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lfnlab.statistics import interval

if TYPE_CHECKING:
    from lfnlab.results.cases import Group
    from lfnlab.results.runs import Results, Run
    from lfnlab.statistics import Interval

ASKED = {1: 0.10, 2: 0.25, 3: 0.40}
"""Share of the rate that a level asks for forward; half of it in reverse."""
_MUCH = 1.5
"""Times what was asked, from which on a background is another than the level's."""


class Share(NamedTuple):
    """Shares of the rate of a dumbbell, forward and reverse."""

    level: int
    long_flows: int
    achieved: tuple[float, float]
    """Payload acknowledged per second over the mean rate, whole run."""

    @property
    def exceeds(self) -> bool:
        """Whether it is half as much again as the level asks for."""
        asked = ASKED.get(self.level, 0.0)
        forward, reverse = self.achieved
        return asked > 0.0 and (forward > _MUCH * asked or reverse > _MUCH * asked / 2)


def share(run: Run) -> Share | None:
    """Of the run's background; None without one, and in other networks than a dumbbell."""
    background = run.summary.get("background")
    if not background or not run.is_dumbbell or not run.is_simulated:
        return None
    own = run.scenario.background
    forward, reverse = (
        bps / rate if (rate := _mean_bps(link, run.summary["sim_s"])) else 0.0
        for bps, link in zip(background["goodput_bps"], run.summary["links"], strict=True)
    )
    level = own.level or 0
    long_flows = own.long_flows if own.long_flows is not None else 10 if level else 0
    return Share(level, long_flows, (forward, reverse))


def _mean_bps(link: Mapping[str, Any], end_s: float) -> float:
    """The mean rate of a link over a run."""
    rates = link.get("rates") or [{"from_s": 0.0, "rate_bps": link["rate_bps"]}]
    ends = [*(rate["from_s"] for rate in rates[1:]), end_s]
    spans = [max(0.0, end - rate["from_s"]) for rate, end in zip(rates, ends, strict=True)]
    bits = sum(rate["rate_bps"] * span for rate, span in zip(rates, spans, strict=True))
    return float(bits / sum(spans)) if sum(spans) else float(link["rate_bps"])


def shares(results: Results) -> dict[Group, Interval]:
    """Of each case, on the link of its flows' data, over its seeds; empty without a background."""
    if not any(map(share, results.looked_at)):
        return {}
    of_runs = {run.path: share(run) for run in results.runs}
    if not any(of_runs.values()):
        return {}
    found: dict[Group, list[float]] = {}
    for row, run in zip(results.cases.rows, results.runs_of_rows, strict=True):
        group = tuple(row.get(key, "") for key in results.keys)
        own = of_runs[run.path]
        there = (0.0, 0.0) if own is None else own.achieved
        found.setdefault(group, []).append(there[row.get("route") == "reverse"])
    return {group: interval(values) for group, values in found.items()}


def seen(results: Results) -> list[str]:
    """Levels whose background had half as much again of the rate as they ask for."""
    found: dict[tuple[int, int], list[Share]] = {}
    for run in results.looked_at:
        own = share(run)
        if own is not None and own.exceeds:
            found.setdefault((own.level, own.long_flows), []).append(own)
    return [
        f"Background level {level} asks for short flows of {100 * ASKED[level]:g} % of the rate "
        f"forward and {50 * ASKED[level]:g} % in reverse; {_why(long_flows)} it had "
        f"{_span(own, 0)} and {_span(own, 1)} %."
        for (level, long_flows), own in found.items()
    ]


def _why(long_flows: int) -> str:
    if not long_flows:
        return "in this short run"
    return f"with {long_flows} long flows each way (long_flows = 0 removes them)"


def _span(shares: list[Share], way: int) -> str:
    percents = [100 * share.achieved[way] for share in shares]
    return " to ".join(
        dict.fromkeys(f"{percent:.3g}" for percent in (min(percents), max(percents)))
    )
