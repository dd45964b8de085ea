"""The differences beyond the aim: the rules that make them, and those without a known cause."""

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


_RATE_HALVING = (
    "Rate halving of Linux 2.6.22 lowers cwnd to half for modules that name Reno's min_cwnd, which "
    "HSTCP and Scalable do: recovery ends far below ssthresh, and slow start makes up. Scalable, "
    "which keeps seven eighths here, loses a part of each of its short epochs to that."
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
        "buffer of a quarter BDP and chains recoveries. The chain is chaotic: an RTT longer by "
        "0.05 ms moves our period by 10 % on the one path, by 3 % on the other.",
    ),
    Explanation(
        "ns2",
        ("hstcp", "scalable"),
        (),
        ("window_after_segments",),
        _RATE_HALVING,
    ),
    Explanation(
        "ns2",
        ("scalable",),
        (),
        (
            "goodput_bps",
            "mean_window_segments",
            "period_s",
            "period_long_s",
            "period_short_s",
        ),
        _RATE_HALVING,
    ),
)

#: Without a known cause: the peer, the run and the figure, ours minus theirs in percent of theirs.
OPEN: tuple[tuple[str, str, float], ...] = (
    ("ns2", "hstcp-100m-40ms-1bdp-10flows-0.2 mean_rtt_s", -4.3),
    ("ns2", "scalable-100m-40ms-1bdp-10flows-0.2 mean_rtt_s", -7.2),
    ("ns2", "bic-100m-40ms-1bdp-10flows-0.2 mean_rtt_s", -8.5),
    ("ns2", "bic-100m-40ms-1bdp-10flows-0.2 drops_per_s", 42.3),
    ("ns2", "cubic-100m-40ms-1bdp-10flows-0.2 mean_rtt_s", -6.0),
    ("ns2", "htcp-100m-40ms-1bdp-10flows-0.2 mean_rtt_s", -4.0),
    ("ns2", "westwood-100m-40ms-1bdp-10flows-0.2 drops_per_s", 20.2),
    ("ns2", "westwood-100m-40ms-1bdp-10flows-0.2 jain", -41.6),
    ("ns3", "scalable-100m-40ms-0.5bdp period_s", 6.3),
    ("ns3", "scalable-100m-40ms-0.5bdp period_long_s", 6.0),
    ("ns3", "scalable-100m-40ms-0.5bdp period_short_s", 6.5),
    ("ns3", "bic-100m-40ms-0.5bdp mean_window_segments", 3.1),
    ("ns3", "bic-100m-40ms-0.5bdp period_s", 60.1),
    ("ns3", "bic-100m-40ms-0.5bdp period_long_s", 137.3),
    ("ns3", "bic-100m-40ms-0.5bdp period_short_s", -49.0),
    ("ns3", "bic-100m-40ms-0.5bdp startup_loss_s", -28.6),
    ("ns3", "htcp-100m-40ms-0.5bdp goodput_bps", 5.0),
    ("ns3", "htcp-100m-40ms-0.5bdp mean_window_segments", 6.0),
    ("ns3", "htcp-100m-40ms-0.5bdp period_s", 6.9),
    ("ns3", "htcp-100m-40ms-0.5bdp period_long_s", 6.7),
    ("ns3", "htcp-100m-40ms-0.5bdp period_short_s", 7.0),
    ("ns3", "htcp-100m-40ms-0.5bdp window_after_segments", 14.5),
    ("ns3", "htcp-100m-40ms-0.5bdp startup_loss_s", 25.4),
    ("ns3", "westwood-100m-40ms-0.5bdp period_s", -17.1),
    ("ns3", "westwood-100m-40ms-0.5bdp period_long_s", -17.1),
    ("ns3", "westwood-100m-40ms-0.5bdp period_short_s", -17.1),
    ("ns3", "westwood-100m-40ms-0.5bdp startup_loss_s", -14.2),
)
