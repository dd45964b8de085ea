"""The scenarios of every simulator and of Linux.

One bottleneck, drop-tail, bulk flows without end. Windows start as each system starts them by
default unless a scenario says otherwise. All quantities are in SI units; packets are counted as the
bottleneck sees them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

#: Bytes of one full data packet at the bottleneck of the real-Linux path: 1448 payload, 12
#: timestamp option, 40 IP and TCP, 14 Ethernet.
LINUX_PACKET_B = 1514
#: Ten flows differ in RTT by this fraction either way, and start this far apart.
RTT_SPREAD = 0.2
STAGGER_S = 0.1
#: Several flows are run with these multiples of the time between their starts; ten flows also with
#: these multiples of the spread of their RTTs.
STAGGERS = (1, 1.377, 1.754, 2.131, 2.508, 2.885)
SPREADS = (1, 0.9, 1.1, 0.95, 1.05, 0.975)
#: Time between two samples of one flow, everywhere.
SAMPLE_S = 0.01
#: Bytes of one data packet in the scenarios shared with ns-2 and ns-3.
NS_PACKET_B = 1500


@dataclass(frozen=True)
class Path:
    """A single bottleneck with one round-trip time.

    ``settle_s`` is when the steady state is taken to begin: what is before it belongs to start-up.
    """

    rate_bps: float
    rtt_s: float
    buffer_bdp: float
    duration_s: float
    settle_s: float
    packet_b: int
    flows: int = 1
    #: Initial slow-start threshold in segments; None leaves slow start unbounded.
    ssthresh_segments: int | None = None
    #: The flows' RTTs lie evenly in rtt_s * (1 -+ rtt_spread).
    rtt_spread: float = 0
    #: Time between the starts of two flows, which start in the order of their RTTs.
    stagger_s: float = 0

    @property
    def bdp_packets(self) -> float:
        """Bandwidth-delay product in packets."""
        return self.rate_bps * self.rtt_s / (8 * self.packet_b)

    @property
    def buffer_packets(self) -> int:
        """Drop-tail limit in packets, the one in service included."""
        return max(1, round(self.bdp_packets * self.buffer_bdp))

    def flow_rtt_s(self, flow: int) -> float:
        """Round-trip propagation time of one of the flows."""
        place = 2 * flow / (self.flows - 1) - 1 if self.flows > 1 else 0
        return self.rtt_s * (1 + self.rtt_spread * place)

    @property
    def name(self) -> str:
        """Short file-name-safe name: rate, RTT, buffer, flows with their spread and stagger."""
        rate = f"{self.rate_bps / 1e9:g}g" if self.rate_bps >= 1e9 else f"{self.rate_bps / 1e6:g}m"
        flows = f"-{self.flows}flows-{self.rtt_spread:g}-{self.stagger_s:g}s"
        return f"{rate}-{self.rtt_s * 1e3:g}ms-{self.buffer_bdp:g}bdp" + (
            flows if self.flows > 1 else ""
        )

    @property
    def title(self) -> str:
        """The path in words, for headings."""
        flows = f", {self.flows} flows" if self.flows > 1 else ""
        return (
            f"{self.rate_bps / 1e6:g} Mbit/s × {self.rtt_s * 1e3:g} ms, "
            f"buffer {self.buffer_bdp:g} BDP ({self.buffer_packets} packets){flows}"
        )


@dataclass(frozen=True)
class Run:
    """One law on one path. With several flows, all run the same law."""

    law: str
    path: Path

    @property
    def tag(self) -> str:
        """Names the run's files."""
        return f"{self.law}-{self.path.name}"

    @property
    def replicas(self) -> list[Run]:
        """The runs whose mean replaces this one: itself, or with several flows six.

        Drop-tail queues lock the phases of flows, so that one run of several flows says little:
        who wins turns on microseconds, and with many flows on the RTTs in units of a packet's time
        (Floyd and Jacobson 1992). The replicas differ in when the flows start, and those of ten
        flows also in their RTTs.
        """
        path = self.path
        if path.flows == 1:
            return [self]
        return [
            replace(
                self,
                path=replace(
                    path,
                    stagger_s=round(stagger * path.stagger_s, 6),
                    rtt_spread=round(spread * path.rtt_spread, 6)
                    if path.flows > 2
                    else path.rtt_spread,
                ),
            )
            for stagger, spread in zip(STAGGERS, SPREADS, strict=True)
        ]

    @property
    def sample_s(self) -> float:
        """Time between two samples: coarser where several flows are summed."""
        return SAMPLE_S if self.path.flows == 1 else 10 * SAMPLE_S


def _linux(
    rate_mbps: float, rtt_ms: float, buffer_bdp: float, duration_s: float, settle_s: float
) -> Path:
    return Path(rate_mbps * 1e6, rtt_ms / 1e3, buffer_bdp, duration_s, settle_s, LINUX_PACKET_B)


#: Two flows, of 40 and of 160 ms; the second starts a second or more after the first.
_UNEQUAL = replace(_linux(50, 100, 1, 150, 30), flows=2, rtt_spread=0.6, stagger_s=1)


#: The laws that all peers have.
LAWS = ("reno", "hstcp", "scalable", "bic", "cubic", "htcp", "westwood")
_FAST = ("hstcp", "scalable", "bic", "cubic", "htcp")
#: Laws that Linux has, and the others have not or not as they are.
LINUX_LAWS = ("vegas", "veno", "illinois", "yeah", "hybla", "dctcp")

#: Against Linux, most telling first. Reno's and Westwood's periods grow with the square of the
#: window, so the large windows are left to the other five laws.
LINUX_RUNS = [
    Run(law, path)
    for laws, path in (
        (LAWS, _linux(50, 40, 0.5, 100, 20)),
        (LAWS, _linux(50, 100, 0.25, 120, 30)),
        (LAWS, _linux(100, 20, 0.5, 60, 15)),
        (LAWS, _linux(20, 40, 1, 100, 25)),
        (LAWS, _linux(20, 40, 0.25, 100, 25)),
        (_FAST, _linux(100, 100, 1, 120, 30)),
        (_FAST, _linux(1000, 20, 0.5, 12, 4)),
        (LAWS, _linux(20, 40, 0.5, 100, 25)),
        (("htcp", "cubic", "reno", "hstcp"), _UNEQUAL),
        (LINUX_LAWS, _linux(50, 40, 0.5, 100, 20)),
        (LINUX_LAWS, _linux(20, 40, 0.5, 100, 25)),
    )
    for law in laws
]


def _ns(
    rate_mbps: float,
    rtt_ms: float,
    buffer_bdp: float,
    duration_s: float,
    settle_s: float,
    flows: int = 1,
) -> Path:
    path = Path(rate_mbps * 1e6, rtt_ms / 1e3, buffer_bdp, duration_s, settle_s, NS_PACKET_B, flows)
    # Slow start ends at the flow's share of the path, so that the runs are of congestion avoidance.
    share = round(path.bdp_packets / flows)
    if flows > 1:
        path = replace(path, rtt_spread=RTT_SPREAD, stagger_s=STAGGER_S)
    return replace(path, ssthresh_segments=share)


#: TCP-Linux modules of ns-2, then its two native agents.
_NS2 = (*LAWS, "sack1", "hstcp-native")
_NS2_FAST = (*_FAST, "hstcp-native")

NS2_RUNS = [
    Run(law, path)
    for laws, path in (
        (_NS2, _ns(100, 40, 0.5, 200, 40)),
        (_NS2, _ns(100, 100, 1, 500, 100)),
        (_NS2_FAST, _ns(1000, 40, 0.5, 100, 30)),
        (_NS2_FAST, _ns(1000, 100, 1, 200, 60)),
        (_NS2, _ns(100, 40, 1, 100, 20, flows=10)),
        (("hstcp", "cubic", "htcp"), _ns(1000, 40, 0.5, 20, 8, flows=10)),
    )
    for law in laws
]

#: H-TCP and BIC also with an attribute of ns-3 set otherwise, to show what it does.
_NS3 = (*LAWS, "bic-smooth20", "htcp-backoff0.67")

#: At rates that ns-3 can bear: it takes 33 to 370 microseconds a packet.
NS3_RUNS = [
    Run(law, path)
    for laws, path in (
        (_NS3, _ns(100, 40, 0.5, 60, 15)),
        (LAWS, _ns(20, 40, 1, 80, 15)),
        (_NS3, _ns(20, 100, 0.5, 150, 30)),
        (LAWS, _ns(50, 40, 0.25, 60, 15)),
        (LAWS, _ns(20, 100, 1, 50, 10, flows=10)),
    )
    for law in laws
]
