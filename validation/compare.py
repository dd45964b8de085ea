"""Sets the laboratory's figures beside a peer's and says which differ, and by which named rule."""

from __future__ import annotations

from dataclasses import dataclass

from .explained import EXPLAINED
from .reference import Measured
from .scenarios import Run

#: How far from the peer a figure may lie, as a fraction of the peer's.
AIM = {"linux": 0.05, "ns2": 0.03, "ns3": 0.03}

#: The figures that are compared, and the resolution below which a difference means nothing: one
#: sample of 10 ms, one segment, one packet, one episode more or less.
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
    "startup_loss_s": 0.01,
    "episodes": 1.0,
    "drops_per_s": 0.1,
    "jain": 0.03,
}


@dataclass(frozen=True)
class Difference:
    """One figure of one run in both, and what is known about the difference."""

    run: Run
    figure: str
    theirs: float
    ours: float | None
    aim: float

    @property
    def relative(self) -> float:
        """Ours minus theirs as a fraction of theirs; infinite if ours has no such figure."""
        if self.ours is None:
            return float("inf")
        if self.theirs == 0:
            return 0.0 if self.ours == 0 else float("inf")
        return self.ours / self.theirs - 1

    @property
    def within(self) -> bool:
        """Whether the aim is met."""
        if self.ours is None:
            return False
        return abs(self.ours - self.theirs) <= max(self.aim * abs(self.theirs), RESOLUTION[self.figure])


def differences(peer: str, run: Run, theirs: Measured, ours: Measured) -> list[Difference]:
    """Every compared figure that the peer has for ``run``."""
    return [
        Difference(run, figure, value, ours.get(figure), AIM[peer])
        for figure in RESOLUTION
        if (value := theirs.get(figure)) is not None
    ]


def explanation(peer: str, difference: Difference) -> str | None:
    """The named rule behind a difference beyond the aim, or None."""
    return next((why.rule for why in EXPLAINED if why.covers(peer, difference)), None)
