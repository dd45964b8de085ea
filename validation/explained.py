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
    #: Whether a model of the rule must bring the difference within the aim (:mod:`.ns3_rules`).
    modelled: bool = False

    def covers(self, peer: str, difference: Difference) -> bool:
        """Whether this is the reason that ``difference`` has one."""
        return (
            peer == self.peer
            and difference.run.law in self.laws
            and (not self.paths or difference.run.path.name in self.paths)
            and (not self.figures or difference.figure in self.figures)
            and (not self.modelled or difference.within_by_rule)
        )


_RATE_HALVING = (
    "Rate halving of Linux 2.6.22 lowers cwnd to half for modules that name Reno's min_cwnd, which "
    "HSTCP and Scalable do: recovery ends far below ssthresh, and slow start makes up. Scalable, "
    "which keeps seven eighths here, loses a part of each of its short epochs to that."
)

#: The path of ns-3 with ten flows.
_NS3_TEN = "20m-100ms-1bdp-10flows-0.2-0.1s"

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
        ("yeah",),
        ("50m-40ms-0.5bdp",),
        (),
        "YeAH empties the queue above 80 segments, and this buffer holds 83: whether that or a "
        "drop comes first turns on one packet. Linux has both in one round trip in half of its "
        "epochs, and takes 249 segments to 168 and to 85. With a packet less of buffer ours does "
        "so always, with a period of 6.37 s.",
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
            "mean_rtt_s",
            "period_s",
            "period_long_s",
            "period_short_s",
        ),
        _RATE_HALVING,
    ),
    Explanation(
        "ns3",
        ("reno",),
        (),
        (),
        "The ACK that ends recovery counts in ns-3 for all that it acknowledges, two windows: Reno "
        "begins an epoch with three segments more than half.",
        modelled=True,
    ),
    Explanation(
        "ns3",
        ("scalable",),
        (),
        (),
        "The ACK that ends recovery counts in ns-3 for all that it acknowledges: Scalable begins "
        "an epoch with a fiftieth more than 7/8 of what was in flight, and with the attribute "
        "`AIFactor` at 100 with a hundredth more.",
        modelled=True,
    ),
    Explanation(
        "ns3",
        ("bic", "bic-smooth20"),
        (),
        (),
        "ns-3's BIC has three rules that Linux's has not. `SmoothPart` is 5, in Linux 20. Fast "
        "convergence sets last_max to 0.8 of the window, not to 0.9: recovery ends there, and the "
        "next epoch begins with max probing. And delayed ACKs are not allowed for: Linux's "
        "estimate begins at 2 segments an ACK and in its integers never falls below 31/16, which "
        "doubles the growth where every segment is acknowledged.",
        modelled=True,
    ),
    Explanation(
        "ns3",
        ("cubic",),
        ("20m-40ms-1bdp", "50m-40ms-0.25bdp"),
        (),
        "CUBIC of ns-3.37 has no TCP-friendly region. Its long epoch is the cubic's, 2 K with K³ = "
        "0.15 W/0.4: 7.4 and 8.6 s. In Linux Reno's window is above the cubic here and fills the "
        "buffer sooner, each time at the same window, so that fast convergence never acts.",
    ),
    Explanation(
        "ns3",
        ("htcp", "htcp-backoff0.67"),
        (),
        (),
        "ns-3's H-TCP adds alpha bytes an ACK, besides MSS²/cwnd, where the paper adds alpha "
        "segments a round trip; until the first loss alpha is doubled.",
        modelled=True,
    ),
    Explanation(
        "ns3",
        ("htcp",),
        ("100m-40ms-0.5bdp", "20m-100ms-0.5bdp", "50m-40ms-0.25bdp"),
        ("window_after_segments",),
        "ns-3's H-TCP backs off to `DefaultBackoff`, one half, in two losses of four or six, and "
        "at a quarter BDP of buffer in all. With the attribute at 0.67 it keeps what ours does. "
        "Why then is not known, and the model of alpha is told how often: `ThroughputRatio`, "
        "said to decide it, changes nothing at 0 or 10.",
    ),
    Explanation(
        "ns3",
        ("westwood",),
        (),
        (),
        "ns-3's Westwood grows by whole bytes: an ACK adds MSS²/cwnd rounded down, at a window of "
        "500 segments 2 bytes for 2.9.",
        modelled=True,
    ),
    Explanation(
        "ns3",
        ("bic",),
        ("20m-40ms-1bdp",),
        ("period_long_s",),
        "With ns-3's three rules for BIC ours alternates as ns-3's does: the last table.",
    ),
    Explanation(
        "ns3",
        ("htcp",),
        (_NS3_TEN,),
        ("drops_per_s", "jain"),
        "ns-3's H-TCP adds alpha bytes an ACK, where the paper adds alpha segments a round trip: "
        "with that rule ours loses a quarter of what it does, nearly as little as ns-3, and shares "
        "as unevenly: the last table.",
    ),
    Explanation(
        "ns3",
        ("westwood",),
        (_NS3_TEN,),
        ("mean_rtt_s", "drops_per_s", "jain"),
        "ns-3's Westwood grows by whole bytes, and without RACK the loss of a retransmission waits "
        "for a timeout: with both rules ours comes to what ns-3 has, the last table.",
    ),
    Explanation(
        "ns3",
        ("cubic",),
        (_NS3_TEN,),
        ("goodput_bps", "drops_per_s", "jain"),
        "Half of ns-3's timeouts with CUBIC end in a jump: what the next ACK acknowledges, all "
        "that had been SACKed, counts whole in slow start, and the window is far above ssthresh. "
        "Four fifths of its drops follow in the 0.6 s after such jumps, which go to whoever timed "
        "out and so even out the shares: the last table. Ours has no such rule.",
    ),
    Explanation(
        "ns3",
        ("scalable", "bic"),
        (_NS3_TEN,),
        ("mean_window_segments", "mean_rtt_s", "drops_per_s", "jain"),
        "ns-3 times out four times a second here: the last table. It has no RACK, so that the loss "
        "of a retransmission waits for that; a window begins again with one segment, the queue "
        "is shorter, and who holds most changes less. With ns-3's law and no RACK ours comes "
        "nearer, but times out seven times less often; why ns-3 does so often is not known.",
    ),
)

#: Without a known cause: the peer, the run and the figure, ours minus theirs in percent of theirs.
OPEN: tuple[tuple[str, str, float], ...] = (
    # That of bic came with Karn's rule and the new rules after a timeout.
    ("ns2", "bic-100m-40ms-1bdp-10flows-0.2-0.1s drops_per_s", 12.7),
    ("ns2", "hstcp-1g-40ms-0.5bdp-10flows-0.2-0.1s drops_per_s", 13.5),
)
