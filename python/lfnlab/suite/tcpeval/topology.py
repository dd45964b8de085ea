"""The dumbbells of the suite: nodes 1 to 3, two routers, nodes 4 to 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lfnlab.scenario.builder import Scenario, graph
from lfnlab.scenario.elements import NamedLink, Queue, Reverse, Suite, Traffic
from lfnlab.suite.tcpeval.experiment import WINDOW, bps, packets, us


@dataclass(frozen=True)
class Basic:
    """A basic scenario: nodes 1 to 3, router 1, the central link, router 2, nodes 4 to 6.

    The heavy direction is from the right, router 2, to the left. Pairs of values are heavy, light.
    """

    rates_bps: tuple[float, float]
    delay_us: int
    edge_bps: float
    edge_delays_us: tuple[int, ...]
    """One way, of nodes 1 to 6."""
    buffers_s: tuple[float, float]
    times_s: Mapping[int, tuple[float, float]]
    """Warm-up and test by load in percent."""
    light_share: float = 0.5
    """Load of the light direction over that of the heavy one; ours."""
    cell_bps: float | None = None
    """Nodes 1 to 3 share a cell of this rate for both directions together; it takes the load."""

    @property
    def loaded_bps(self) -> float:
        """The rate of which loads are percentages."""
        return self.cell_bps or self.rates_bps[0]


_EDGES_US = (0, 12_000, 25_000, 2_000, 37_000, 75_000)
BASIC: Mapping[str, Basic] = {
    "data-centre": Basic(
        rates_bps=(1e9, 1e9),
        delay_us=0,
        edge_bps=1e9,
        edge_delays_us=(10, 10, 100, 10, 100, 100),
        buffers_s=(0.010, 0.010),
        times_s={60: (63, 69), 85: (19, 328), 110: (8, 663)},
    ),
    "access": Basic(
        rates_bps=(100e6, 100e6),
        delay_us=2_000,
        edge_bps=100e6,
        edge_delays_us=_EDGES_US,
        buffers_s=(0.100, 0.100),
        times_s={60: (84, 479), 85: (179, 829), 110: (34, 1423)},
    ),
    "trans-oceanic": Basic(
        rates_bps=(1e9, 1e9),
        delay_us=65_000,
        edge_bps=1e9,
        edge_delays_us=_EDGES_US,
        buffers_s=(0.100, 0.100),
        times_s={60: (140, 82.5), 85: (64, 252), 110: (82, 326)},
    ),
    "geo-satellite": Basic(
        rates_bps=(40e6, 4e6),
        delay_us=300_000,
        edge_bps=100e6,
        edge_delays_us=_EDGES_US,
        buffers_s=(0.100, 1.000),
        times_s={60: (163, 2513), 85: (230, 2184), 110: (298, 2481)},
        light_share=0.075,
    ),
    "wlan": Basic(
        rates_bps=(100e6, 100e6),
        delay_us=2_000,
        edge_bps=100e6,
        edge_delays_us=_EDGES_US,
        buffers_s=(0.100, 0.100),
        times_s={60: (20, 4147), 85: (20, 5397), 110: (620, 1797)},
        light_share=0.075,
        cell_bps=6e6,
    ),
    "dial-up": Basic(
        rates_bps=(64e3, 64e3),
        delay_us=5_000,
        edge_bps=100e6,
        edge_delays_us=_EDGES_US,
        buffers_s=(1.250, 1.250),
        times_s={60: (280, 168_804), 85: (400, 88_094), 110: (512, 69_891)},
    ),
}


def pair_rtts_us(basic: Basic) -> dict[tuple[int, int], int]:
    """Round-trip time of each pair of a node at the right and one at the left."""
    edges = basic.edge_delays_us
    return {
        (right, left): 2 * (edges[left - 1] + basic.delay_us + edges[right - 1])
        for left in (1, 2, 3)
        for right in (4, 5, 6)
    }


def drop_tail(rate_bps: float, buffer_s: float) -> Queue:
    """A queue given in time."""
    return Queue(kind="drop-tail", size=packets(rate_bps, buffer_s))


def topology(
    basic: Basic, *, duration: str, warmup: str, queues: Sequence[Queue] | None = None
) -> Scenario:
    """The dumbbell with its six edges, no traffic yet.

    ``queues`` are those of the central link, the heavy direction's first. Edges are hosts' own:
    they do not drop. A cell is one link that every packet to or from nodes 1 to 3 passes, whichever
    way it goes.
    """
    heavy, light = queues or map(drop_tail, basic.rates_bps, basic.buffers_s)
    central = NamedLink(
        name="central",
        from_="r2",
        to="r1",
        rate=bps(basic.rates_bps[0]),
        delay=us(basic.delay_us),
        queue=heavy,
        reverse=Reverse(rate=bps(basic.rates_bps[1]), queue=light),
    )

    def edge(name: str, ends: tuple[str, str], delay_us: int, duplex: bool | None) -> NamedLink:
        return NamedLink(
            name=name,
            from_=ends[0],
            to=ends[1],
            duplex=duplex,
            rate=bps(basic.edge_bps),
            delay=us(delay_us),
            queue=Queue(kind="drop-tail", size="1000000 packets"),
        )

    delays_us = dict(enumerate(basic.edge_delays_us, start=1))
    links = [central]
    if basic.cell_bps is not None:
        cell = drop_tail(basic.cell_bps, basic.buffers_s[0])
        links += [
            NamedLink(
                name="cell",
                from_="in",
                to="out",
                duplex=False,
                rate=bps(basic.cell_bps),
                queue=cell,
            ),
            edge("to-cell", ("r1", "in"), 0, duplex=False),
            edge("from-cell", ("out", "r1"), 0, duplex=False),
        ]
    for node, delay_us in delays_us.items():
        if node > 3 or basic.cell_bps is None:
            router = "r1" if node <= 3 else "r2"
            links.append(edge(f"edge{node}", (f"n{node}", router), delay_us, duplex=None))
        else:
            links.append(edge(f"edge{node}", (f"n{node}", "in"), delay_us, duplex=False))
            links.append(edge(f"edge{node}-down", ("out", f"n{node}"), delay_us, duplex=False))
    return graph(*links, duration=duration, warmup=warmup, sample="off")


def _route(basic: Basic, right: int, left: int) -> Traffic:
    """Traffic from a node at the right to one at the left, and back the same way."""
    if basic.cell_bps is None:
        return Traffic(from_=f"n{right}", to=f"n{left}")
    return Traffic(
        route=(f"edge{right}", "central", "to-cell", "cell", f"edge{left}-down"),
        ack_route=(f"edge{left}", "cell", "from-cell", "central.reverse", f"edge{right}.reverse"),
    )


def pairs(basic: Basic, law: str, load: float, camp: str = "") -> list[Traffic]:
    """The nine pairs, which together offer ``load`` times the rate of the heavy direction."""
    rtts = pair_rtts_us(basic)
    heavy_bps = load * basic.loaded_bps / len(rtts)
    return [
        replace(
            _route(basic, right, left),
            name=f"n{right}-n{left}{camp}",
            law=law,
            receive_window=WINDOW,
            suite=Suite(
                load=bps(heavy_bps),
                reverse_load=bps(heavy_bps * basic.light_share),
                rtts=(us(rtt),),
            ),
        )
        for (right, left), rtt in rtts.items()
    ]
