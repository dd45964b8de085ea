"""The types of a run's summary, ``Run.summary``.

They are those of a simulated run. In a measurement (test bed, iperf3) what was not measured is
absent or None. Made by ``ci/elements.py`` from ``docs/reference/summary.schema.json``; do not edit.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Prototype(TypedDict):
    """A law in Python that flows of the run had."""

    law: str
    """As its flows have it."""
    source: str
    """NAME@HASH, as in ``scenario.toml``."""
    probes: list[str]
    """Names of its variables, by their numbers in the table ``probes``."""


class Memory(TypedDict):
    """Memory that grows with packets in flight and with flows, at the end of the run."""

    bytes_per_flow: int
    """Memory of one flow without packets."""
    packet_bytes: int
    """Memory that scoreboards, receivers, delay lines and queues held."""


class Conservation(TypedDict):
    """Data packets of all flows: ``sent = dropped + lost + delivered + in_flight``, checked in
    every run.
    """

    sent: int
    """Packets that senders sent, and duplicates that links made."""
    dropped: int
    """Packets that queues dropped."""
    lost: int
    """Packets lost at random."""
    delivered: int
    """Packets delivered to receivers, those behind the last queue included."""
    in_flight: int
    """Packets in a queue or between two links."""


class BackgroundSummary(TypedDict):
    """Background traffic, or a model of traffic, in sum, whole run."""

    name: NotRequired[str | None]
    """Name of the traffic model in the scenario; absent for the background."""
    flows_started: int
    """Short flows that began."""
    flows_completed: int
    """Short flows that completed."""
    max_active: int
    """Largest number of flows at once."""
    offered_bps: list[float]
    """Payload of the short flows that began, per second: forward, reverse."""
    goodput_bps: list[float]
    """Payload acknowledged per second, long flows included: forward, reverse."""
    retransmits: int
    """Retransmissions."""
    timeouts: int
    """Timeouts."""


class UdpSummary(TypedDict):
    """A UDP source, whole run, in packets."""

    name: str
    """Name."""
    offered_bps: float
    """Bits sent per second over the whole run, headers included."""
    received_bps: float
    """Bits received per second."""
    sent: int
    """Packets sent."""
    delivered: int
    """Packets received, duplicates included."""
    dropped: int
    """Packets that queues dropped."""
    lost: int
    """Packets lost at random behind queues."""
    mean_delay_s: float | None
    """Mean one-way delay of the packets received since the warm-up; null if there are none."""
    p99_delay_s: float | None
    """99th percentile of that delay, to 2 %."""
    frames: NotRequired[Frames | None]
    """Packets with a deadline; absent without."""
    tripped_s: NotRequired[float | None]
    """When a circuit breaker ended it; absent if none did."""


class ClassSummary(TypedDict):
    """One of the two queues."""

    packets: int
    """Packets that left it to be sent."""
    bytes: int
    """Bytes of those."""
    marks: int
    """Packets that it marked."""
    drops: int
    """Packets dropped."""
    mean_queue_s: float | None
    """Mean waiting time; null if no packet left."""
    p50_queue_s: float | None
    """Median of the waiting time, to 2 %."""
    p90_queue_s: float | None
    """90th percentile of the waiting time, to 2 %."""
    p99_queue_s: float | None
    """99th percentile of the waiting time, to 2 %."""
    p999_queue_s: float | None
    """99.9th percentile of the waiting time, to 2 %."""


class ClassesSummary(TypedDict):
    """A queue for L4S beside one for Classic packets."""

    probability: float
    """The base probability p' (RFC 9332) at the end."""
    l4s: ClassSummary
    """Packets that were ECT(1) or CE."""
    classic: ClassSummary
    """The others."""


class RateSummary(TypedDict):
    """A rate that a link has for some time."""

    from_s: float
    """Time from which it holds."""
    rate_bps: int
    """Rate; of a trace the mean, in IP packets of 1500 bytes; 0 while the link is down."""


class LinkSummary(TypedDict):
    """A link."""

    id: str
    """Name; ``forward`` or ``reverse`` in a dumbbell."""
    rate_bps: int
    """Rate at the end; of a trace the mean, in IP packets of 1500 bytes."""
    rates: list[RateSummary]
    """Rates, from the beginning and from each change on."""
    opportunities: NotRequired[int | None]
    """Opportunities of its trace since the warm-up; absent without a trace."""
    utilization: float
    """Bytes sent over those that could have been sent, since the warm-up; from 0 to 1, and 0
    if none could.
    """
    arrivals: int
    """Packets offered since the warm-up, or held by the link then, ACKs included; 0 on a link
    that carries only ACKs and has room for all, which is a pure delay.
    """
    drops: int
    """Packets dropped by the queue since the warm-up."""
    early_drops: int
    """Packets of ``drops`` that the AQM dropped before the queue was full."""
    marks: int
    """Packets that the AQM marked since the warm-up."""
    random_losses: int
    """Packets of data and of handshakes lost at random behind the queue, whole run; not the
    ACKs that ``acks`` loses.
    """
    mean_queue_s: float
    """Mean waiting time since the warm-up."""
    p99_queue_s: float
    """99th percentile of the waiting time since the warm-up."""
    max_queue_packets: int
    """Largest number of packets that waited since the warm-up."""
    classes: NotRequired[ClassesSummary | None]
    """L4S and Classic packets apart, since the warm-up; absent where the queue does not tell
    them apart.
    """


class Marks(TypedDict):
    """Packets with CE of a flow with AccECN, whole run."""

    arrived: int
    """Those that arrived."""
    told: int
    """Those that ACKs told the sender of; under "counter" more, where lost ACKs leave only the
    count modulo 8.
    """


class Frames(TypedDict):
    """Frames of constant rate: packets of UDP, or segments that an application writes. Those
    whose deadline lies between the warm-up and the end of the run.
    """

    due: int
    """All of them."""
    in_time: int
    """Those that were at the receiver by their deadline; over TCP in order."""


class RouteSummary(TypedDict):
    """A route that a flow's data take for some time."""

    from_s: float
    """Time from which it holds."""
    links: list[str]
    """Names of the links, in the order in which a packet passes them."""


class FlowSummary(TypedDict):
    """A flow."""

    id: int
    """Number from 0, in the order of the scenario; column ``flow`` of the tables."""
    streams: NotRequired[int]
    """Parallel connections of the flow; absent if it is one. Counters, goodput and mean window
    are their sum, ``srtt_s`` their mean; smallest and largest are those of any one.
    """
    law: str
    """NAME or NAME:VARIANT of the law; of a law in Python ``NAME (prototype)``; ``udt/LAW`` if
    a TCP law drives UDT.
    """
    transport: NotRequired[str | None]
    """``udt``, or ``stack`` of a whole stack; absent over TCP."""
    direction: str
    """``forward`` or ``reverse``."""
    routes: list[RouteSummary]
    """Links of its data, from the beginning and from each change of route on."""
    segment_bytes: int
    """Payload of a full segment."""
    wire_bytes: int
    """Size of a full packet at a queue."""
    rtt_s: float
    """Base round-trip time."""
    start_s: float
    """Start time."""
    stop_s: NotRequired[float | None]
    """When its application stops; absent at the end of the run."""
    size_bytes: NotRequired[int | None]
    """Payload to deliver, in whole segments; absent without an end."""
    application_bps: NotRequired[float | None]
    """Payload that its application writes, of each stream, while it is active; absent if there
    is always more to send.
    """
    goodput_bps: float | None
    """Payload delivered per second while the flow was active: from the later of start and
    warm-up until its last byte was acknowledged, or to the end of the run; null for a flow
    that was not active after the warm-up.
    """
    delivered_bytes: int
    """Payload that arrived and was acknowledged since the warm-up."""
    claimed_bytes: NotRequired[int | None]
    """Payload that the receiver acknowledged since the warm-up, arrived or not; absent unless
    it acknowledges what has not arrived (``misbehaves = "optimistic"``).
    """
    sent: int
    """Segments sent, whole run."""
    retransmits: int
    """Retransmissions, whole run."""
    timeouts: int
    """Retransmission timeouts, whole run."""
    loss_events: int
    """Reductions of the window, whole run."""
    undos: int
    """Reductions undone, whole run."""
    mean_cwnd_segments: float | None
    """Congestion window, mean over the time while the flow was active after the warm-up; null
    for a flow that was not, and for a law that keeps no window (rcp, jetmax).
    """
    min_cwnd_segments: float | None
    """Smallest congestion window in that time."""
    max_cwnd_segments: float | None
    """Largest congestion window in that time."""
    srtt_s: float | None
    """Smoothed RTT at the end; null without a sample."""
    min_rtt_s: float | None
    """Smallest RTT; null without a sample."""
    cov: float | None
    """Coefficient of variation of goodput in the bins of 1 s, from the warm-up on, in all of
    which the flow was under way; null below two bins.
    """
    ended_s: float | None
    """When it ended, by its size, its stop or a breaker: its last byte was acknowledged (and
    had arrived); null if it was under way at the end of the run.
    """
    completion_s: float | None
    """Time from start until the last byte of its size was acknowledged (and had arrived); null
    without a size, or if it did not finish.
    """
    frames: NotRequired[Frames | None]
    """Segments of its application with a deadline; absent without."""
    ecn: NotRequired[str | None]
    """Feedback of marks that the ends agreed on and kept: ``accecn``, ``classic`` (RFC 3168),
    ``dctcp`` (RFC 8257), or ``off``, where data were sent without ECN in the end; ``mixed``
    if parallel connections differ; absent if the sender did not ask for ECN.
    """
    marks: NotRequired[Marks | None]
    """Marks as both ends counted them; absent unless they agreed on AccECN."""
    tripped_s: NotRequired[float | None]
    """When a circuit breaker ended it; absent if none did."""


class Summary(TypedDict):
    """The summary of a run."""

    name: str | None
    """The scenario's name."""
    wall_s: NotRequired[float]
    """Wall time of the run, from ``provenance.json``."""
    cpu_s: NotRequired[float]
    """CPU time of the run, from ``provenance.json``."""
    prototypes: NotRequired[list[Prototype]]
    """Laws in Python; absent without any."""
    testbed: NotRequired[dict[str, Any]]
    """Counters of the test bed; absent in a simulated run."""
    invalid: NotRequired[str | None]
    """Why a run of the test bed is invalid, or None."""
    notes: NotRequired[list[str]]
    """Of a measurement: what its file lacks, and what was not read."""
    hash: str
    """Hash of every ACK that reached a sender and of all counters, 16 hexadecimal digits."""
    seed: int
    """Seed of all random streams."""
    sim_s: float
    """Simulated time."""
    warmup_s: float
    """Time at which averages and counters of links begin."""
    data_packets_delivered: int
    """Data packets that links delivered, each link counted on its own, background included,
    whole run; in a dumbbell, through the bottleneck.
    """
    events: int
    """Events that the engine processed."""
    jain: float | None
    """Jain's fairness index of the goodput of the flows that were active after the warm-up;
    null for one such flow, and if none delivered anything.
    """
    cov: float | None
    """Mean over flows of the coefficient of variation (population standard deviation over
    mean) of goodput in bins of 1 s; null below two bins.
    """
    flows: list[FlowSummary]
    """Flows under test."""
    links: list[LinkSummary]
    """Links; in a dumbbell forward, then reverse."""
    changes_s: list[float]
    """Times at which the schedule changed a link or a route."""
    udp: NotRequired[list[UdpSummary]]
    """UDP sources; absent without any."""
    captured_rows: NotRequired[int | None]
    """Rows that a recording of packets would have had without its limit; absent without a
    recording.
    """
    background: BackgroundSummary | None
    """Background traffic in sum; null without any."""
    traffic: NotRequired[list[BackgroundSummary]]
    """Traffic models; absent without any."""
    conservation: Conservation
    """Where every data packet of all flows is."""
    memory: Memory
    """Memory held for packets and flows."""
