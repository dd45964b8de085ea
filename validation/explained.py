"""The differences beyond the aim whose cause is known: each names the rule that makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .compare import Difference


@dataclass(frozen=True)
class Explanation:
    """A rule, and the differences that it explains. Empty tuples stand for every path or figure."""

    peer: str
    laws: tuple[str, ...]
    paths: tuple[str, ...]
    figures: tuple[str, ...]
    rule: str

    def covers(self, peer: str, difference: Difference) -> bool:
        """Whether this is the reason that ``difference`` has one."""
        return (
            peer == self.peer
            and difference.run.law in self.laws
            and (not self.paths or difference.run.path.name in self.paths)
            and (not self.figures or difference.figure in self.figures)
        )


EXPLAINED: tuple[Explanation, ...] = (
    Explanation(
        "linux",
        ("bic",),
        ("20m-40ms-0.5bdp",),
        (),
        "BIC has two stable cycles here. If a loss comes at a window equal to last_max, fast "
        "convergence never acts, and every epoch is alike; one segment beside it, long and "
        "short epochs alternate. Start-up decides, by the order in which a packet leaves and "
        "an ACK arrives at the same instant. Started at ssthresh 112, where Linux's start-up "
        "ended, ours has Linux's cycle: period 1.26 s, 100 segments before a loss, one drop.",
    ),
    Explanation(
        "linux",
        ("westwood",),
        ("20m-40ms-0.25bdp", "50m-100ms-0.25bdp"),
        (),
        "Westwood+ leaves recovery with a jump to bwe × rtt_min, whose burst overflows a "
        "buffer of a quarter BDP and chains recoveries. The chain is chaotic: a change of the "
        "RTT by 0.05 ms moves ours by as much.",
    ),
    Explanation(
        "ns2",
        ("hstcp", "scalable"),
        (),
        (),
        "Rate halving of Linux 2.6.22 lowers cwnd to half of ssthresh for modules that name "
        "Reno's min_cwnd, which HSTCP and Scalable do: recovery ends below ssthresh, and slow "
        "start makes up.",
    ),
)
