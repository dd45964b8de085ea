"""Sets the laboratory's figures beside a peer's and says which differ, and by which named rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import ns3_rules
from .explained import EXPLAINED, OPEN, Explanation
from .scenarios import SAMPLE_S, Run

if TYPE_CHECKING:
    from .reference import Measured

#: How far from the peer a figure may lie, as a fraction of the peer's.
AIM = {"linux": 0.05, "ns2": 0.03, "ns3": 0.03}

#: The figures that are compared, and the resolution below which a difference means nothing: one
#: sample of 10 ms at either end, one segment, one packet. The peak of start-up, in one sample of a
#: window that doubles in a round trip, is known to what is acknowledged between two samples.
RESOLUTION = {
    "goodput_bps": 0.0,
    "mean_window_segments": 1.0,
    "mean_rtt_s": 0.001,
    "period_s": 0.01,
    "period_long_s": 0.01,
    "period_short_s": 0.01,
    "window_before_segments": 1.0,
    "window_after_segments": 1.0,
    "drops_per_episode": 1.0,
    "startup_peak_segments": 1.0,
    "startup_loss_s": 0.02,
    "drops_per_s": 0.1,
    "jain": 0.03,
    "shortest_share": 0.02,
}


@dataclass(frozen=True)
class Difference:
    """One figure of one run in both, and what is known about the difference."""

    run: Run
    figure: str
    theirs: float
    ours: float | None
    aim: float
    #: Standard error of ours minus theirs, where both are means over replicas.
    error: float = 0
    #: Ours with the peer's rule in place of its own, after a model of the rule; None without one.
    corrected: float | None = None

    @property
    def relative(self) -> float:
        """Ours minus theirs as a fraction of theirs; infinite if ours has no such figure."""
        if self.ours is None:
            return float("inf")
        if self.theirs == 0:
            return 0.0 if self.ours == 0 else float("inf")
        return self.ours / self.theirs - 1

    @property
    def left(self) -> float | None:
        """Relative difference left when our model uses the peer's rule; None without a model."""
        return None if self.corrected is None else self.corrected / self.theirs - 1

    @property
    def name(self) -> str:
        """The run and the figure."""
        return f"{self.run.tag} {self.figure}"

    @property
    def percent(self) -> float:
        """The relative difference as it is printed."""
        return round(100 * self.relative, 1)

    @property
    def within(self) -> bool:
        """Whether the aim is met, or the difference is below resolution or two standard errors."""
        return self._agrees(self.ours)

    @property
    def within_by_rule(self) -> bool:
        """The same of ours with the peer's rule."""
        return self._agrees(self.corrected)

    def _agrees(self, ours: float | None) -> bool:
        if ours is None:
            return False
        resolution = RESOLUTION[self.figure]
        if self.figure == "startup_peak_segments":
            resolution = SAMPLE_S * self.run.path.rate_bps / (8 * self.run.path.packet_b)
        allowed = max(self.aim * abs(self.theirs), resolution, 2 * self.error)
        return abs(ours - self.theirs) <= allowed


def differences(peer: str, run: Run, theirs: Measured, ours: Measured) -> list[Difference]:
    """Every compared figure that the peer has for ``run``."""

    def error(figure: str) -> float:
        return math.hypot(theirs.get(f"{figure}_se") or 0, ours.get(f"{figure}_se") or 0)

    corrected = ns3_rules.corrected(run, theirs, ours) if peer == "ns3" else {}
    return [
        Difference(
            run, figure, value, ours.get(figure), AIM[peer], error(figure), corrected.get(figure)
        )
        for figure in RESOLUTION
        if (value := theirs.get(figure)) is not None
    ]


def open_differences(peer: str) -> dict[str, float]:
    """The differences from ``peer`` on record as without a known cause: TAG FIGURE, in percent."""
    return {what: percent for source, what, percent in OPEN if source == peer}


def _covers(why: Explanation, peer: str, difference: Difference) -> bool:
    """Whether the rule explains the difference."""
    return (
        peer == why.peer
        and difference.run.law in why.laws
        and (not why.paths or difference.run.path.name in why.paths)
        and (not why.figures or difference.figure in why.figures)
        and (not why.modelled or difference.within_by_rule)
    )


def explanation(peer: str, difference: Difference) -> str | None:
    """The named rule behind a difference beyond the aim, or None."""
    return next((why.rule for why in EXPLAINED if _covers(why, peer, difference)), None)
