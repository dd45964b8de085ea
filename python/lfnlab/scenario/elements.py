"""The parts of a scenario as immutable values: links, queues, flows, other traffic.

Each is a table of TOML. ``None`` means that the default of the simulator holds. Made by
``ci/elements.py`` from ``docs/reference/scenario.schema.json``; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from lfnlab.scenario.keywords import keywords

if TYPE_CHECKING:
    from lfnlab.control_laws.controller import Controller
    from lfnlab.control_laws.prototype import Law

__all__ = [
    "AckImpair",
    "Application",
    "Background",
    "Breaker",
    "Burst",
    "Capture",
    "Change",
    "File",
    "Flow",
    "GilbertElliott",
    "Jitter",
    "Link",
    "NamedLink",
    "OnOff",
    "Packmime",
    "ParkingLot",
    "Policer",
    "Queue",
    "Reorder",
    "Requests",
    "Reverse",
    "Router",
    "Shaper",
    "ShortFlows",
    "Sizes",
    "Steps",
    "Suite",
    "Surge",
    "Traffic",
    "Udp",
    "Vectors",
    "Webtraf",
]


@keywords
@dataclass(frozen=True, kw_only=True)
class File:
    """A file, and the hash that it must have. A bare path is relative to the working directory."""

    path: str
    hash: str | None = None


@keywords
@dataclass(frozen=True, kw_only=True)
class GilbertElliott:
    """Loss in bursts."""

    kind: Literal["gilbert-elliott"] = "gilbert-elliott"
    p: float
    """Probability to turn from good to bad. Range: at least 0, at most 1."""
    r: float
    """Probability to turn from bad to good: a bad time lasts 1/r packets in the mean. Range:
    above 0, at most 1.
    """
    good: float | None = None
    """Loss in the good state (1-k in Elliott's letters). Range: at least 0, at most 1. Default
    0.
    """
    bad: float | None = None
    """Loss in the bad state (1-h). Range: at least 0, at most 1. Default 1."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Reorder:
    """Packets that are held up, so that others overtake them."""

    p: float
    """Probability that a packet is held up. Range: at least 0, at most 1."""
    delay: str
    """For how long. Range: 0s to 1000s."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Jitter:
    """An additional delay and its distribution."""

    kind: Literal["uniform", "normal"] | None = None
    low: str | None = None
    """The least delay. Range: 0s to 1000s. Default "0s"."""
    high: str | None = None
    """The longest. Range: 0s to 1000s."""
    keep_order: bool | None = None
    """A packet that would overtake an earlier one leaves right after it. Default true."""
    mean: str | None = None
    """The mean. Range: 0s to 1000s."""
    deviation: str | None = None
    """The standard deviation before the cut, at most the mean. Range: 0s to 1000s."""


@keywords
@dataclass(frozen=True, kw_only=True)
class AckImpair:
    """Losses and delays of packets without payload behind the queue.

    These are ACKs, packets of handshakes and UDT's control packets; the keys beside it are
    those of data.
    """

    loss: float | GilbertElliott | None = None
    """Packets lost behind the queue: a probability, or a table for losses in bursts. Default
    0.
    """
    reorder: Reorder | None = None
    """Packets that are held up, so that others overtake them. Default none."""
    jitter: Jitter | None = None
    """An additional delay, drawn for each packet. Default none."""
    aggregate: str | None = None
    """Packets wait for the next multiple of this time and go on together, as behind a radio
    link that gathers packets. Default none. Range: 1ns to 1000s.
    """


@keywords
@dataclass(frozen=True, kw_only=True)
class Queue:
    """A queue and what it does when it fills.

    Default: drop-tail of 1bdp.
    """

    kind: (
        Literal["drop-tail", "drop-head", "red", "codel", "fq-codel", "pie", "pi2", "dualpi2"]
        | None
    ) = None
    size: str | None = None
    """Its room: packets, bytes, or a multiple of the BDP, at least one packet. The BDP is the
    link's rate times the largest base RTT of the flows that pass (of all flows, if none
    passes). The rate of a trace is its mean. Default "1bdp".
    """
    preset: Literal["classic", "gentle", "adaptive"] | None = None
    """Where the defaults of the other keys come from. Default "gentle"."""
    min_th: str | None = None
    """Average queue where early drops begin; with ``max_th``. Default 5 packets in "classic".
    Range: 1 packet to 1000000000 packets.
    """
    max_th: str | None = None
    """Average queue from which every packet is dropped, or, with ``gentle``, from which the
    probability rises faster; with ``min_th``. Default 15 packets in "classic". Range: 1
    packet to 1000000000 packets.
    """
    target_delay: str | None = None
    """Queueing delay aimed at, from which both thresholds follow; not with ``min_th``. Default
    5ms in "gentle" and "adaptive". Range: 1us to 1000s.
    """
    weight: float | Literal["auto"] | None = None
    """Weight of a sample in the average queue, or "auto" for a time constant of ten round
    trips. Default 0.002 in "classic", else "auto".
    """
    max_p: float | None = None
    """Drop probability at ``max_th``. Range: above 0, at most 1. Default 0.1."""
    gentle: bool | None = None
    """Above ``max_th`` the probability rises linearly and is 1 at twice ``max_th``. Otherwise
    it is 1 at once. Default false in "classic".
    """
    adaptive: bool | None = None
    """Let ``max_p`` follow the average every 0.5s. Default true in "adaptive"."""
    wait: bool | None = None
    """Leave 1/p to 2/p packets between two drops, instead of 1 to 1/p. Default false in
    "classic".
    """
    rules: Literal["ns2", "linux"] | None = None
    """Implementation whose rules it follows where the papers leave a choice. Default "ns2"."""
    byte_mode: bool | None = None
    """Measure the queue in bytes, and drop in proportion to a packet's size. Default false."""
    ecn: bool | None = None
    """Mark packets of flows with ``ecn`` instead of dropping them. Default true in "adaptive"."""
    mark_p: float | None = None
    """Mark only while the probability is below this, otherwise drop. With 1 a queue also marks
    where it would surely drop, as a router for DCTCP does. Range: above 0, at most 1.
    Default 0.1.
    """
    target: str | None = None
    """Standing delay that is acceptable. RFC 8289 wants 5 to 10 % of the interval. Range: 1us
    to 1000s. Default "5ms".
    """
    interval: str | None = None
    """The delay may be above the target for this time: about the longest usual RTT. Range: 1us
    to 1000s. Default "100ms".
    """
    ce_threshold: str | None = None
    """A packet that waited longer is marked if it is ECN-capable, whatever ``ecn`` says.
    Default: none. Range: 1us to 1000s.
    """
    ce_threshold_selector: int | None = None
    """With ``ce_threshold``: only packets whose ECN field is this in the bits of
    ``ce_threshold_mask``; 1 with a mask of 3 is ECT(1). Range: at least 0, at most 3.
    Default 0.
    """
    ce_threshold_mask: int | None = None
    """The bits of the ECN field that ``ce_threshold_selector`` names. Range: at least 0, at
    most 3. Default 0.
    """
    queues: int | None = None
    """Number of queues. Range: at least 1, at most 65536. Default 1024."""
    quantum: str | None = None
    """Bytes that a queue may send in its turn. Default: the largest packet of the flows on the
    wire. Range: 1B to 64kB.
    """
    update: str | None = None
    """From one update of the drop probability to the next. Range: 1us to 1000s. Default
    "15ms".
    """
    alpha: float | None = None
    """Weight of the deviation from the target, 1/s. Range: at least 0. Default 0.125."""
    beta: float | None = None
    """Weight of the change since the last update, 1/s. Range: at least 0. Default 1.25."""
    burst: str | None = None
    """After an idle time, how long a burst may last before anything is dropped. Range: 0s to
    1000s. Default "150ms".
    """
    tupdate: str | None = None
    """From one update of the probability to the next. Range: 100us to 1000s. Default "16ms"."""
    coupling_factor: int | None = None
    """L4S packets are marked with so many times the root of the Classic probability. Range: at
    least 1, at most 255. Default 2.
    """
    step_thresh: str | None = None
    """Delay of an L4S packet beyond which it is marked; below ``target``. Range: 1us to 1000s.
    Default "1ms".
    """
    ramp: str | None = None
    """Above ``step_thresh`` the probability of a mark rises to 1 over this delay, instead of
    at once. Range: 0s to 1000s. Default "0s".
    """
    floor: int | None = None
    """The step, or the beginning of the ramp, is at least the time that the link needs for so
    many of the largest packets. Range: at least 0, at most 1000. Default 2.
    """
    overload: Literal["drop", "overflow"] | None = None
    """Whether packets of both queues are dropped when all L4S packets are marked ("drop"), or
    the queues grow ("overflow"). Default "drop".
    """
    c_protection: int | None = None
    """The share of the link in percent that the Classic queue has at least. Range: at least 1,
    at most 99. Default 10.
    """
    any_ect: bool | None = None
    """Whether ECT(0) packets join the L4S queue too, for scalable flows that cannot send
    ECT(1), such as Linux's DCTCP. Default false.
    """


@keywords
@dataclass(frozen=True, kw_only=True)
class Policer:
    """A token bucket ahead of a queue.

    It drops the packets for which it has no tokens.
    """

    rate: str
    """How fast tokens come, in bits on the wire. Range: 1kbit/s to 10Tbit/s."""
    burst: str
    """Tokens that the bucket holds: what may pass at once after a pause. At least a packet.
    Range: 64B to 1TB.
    """


@keywords
@dataclass(frozen=True, kw_only=True)
class Shaper:
    """A token bucket behind a queue.

    A packet waits while its predecessors have used more tokens than there were.
    """

    rate: str
    """How fast tokens come, in bits on the wire: the rate of the link in the mean. Range:
    1kbit/s to 10Tbit/s.
    """
    burst: str
    """Tokens that the bucket holds: what leaves at the link's own rate after a pause. At least
    a packet. Range: 64B to 1TB.
    """


@keywords
@dataclass(frozen=True, kw_only=True)
class Router:
    """What a link tells the senders of the data that pass it."""

    kind: Literal["none", "vcp", "xcp", "rcp", "jetmax"]
    gamma: float | None = None
    """Share of the rate that counts as capacity. Range: above 0, at most 1. Default 0.98."""
    compat: Literal["paper", "author"] | None = None
    """Whether the load is measured as in the paper or as in its author's code. Default
    "paper".
    """
    alpha: float | None = None
    """Gain of the spare rate. Range: at least 0. Default 0.4."""
    beta: float | None = None
    """Gain of the persistent queue; the paper's value is alpha^2 sqrt(2). Range: at least 0.
    Default 0.226.
    """
    interval: str | None = None
    """From one fair rate to the next. Range: 1ms to 1000s. Default "100ms"."""


@dataclass(frozen=True, kw_only=True)
class _Way:
    """Fields of every kind of link, in each of its directions."""

    rate: str | None = None
    """How fast packets are serialised. Range: 1kbit/s to 10Tbit/s."""
    trace: str | File | None = None
    """A file of mahimahi, in place of a rate: on each line a time in ms at which the link can
    send an IP packet of 1500 bytes. As in mahimahi a line is an opportunity for 1504 bytes,
    an IP packet takes 4 more than its own, and small packets share one. The file repeats. A
    table of ``path`` and ``hash`` names the file and the hash that it must have.
    """
    delay: str | None = None
    """Propagation delay. Access links at the ends of a flow have the rest of its ``rtt``.
    Range: 0s to 1000s. Default "0s".
    """
    loss: float | GilbertElliott | None = None
    """Data packets lost behind the queue: a probability, or a table for losses in bursts.
    Default 0.
    """
    duplicate: float | None = None
    """Probability that a data packet arrives twice. Range: at least 0, below 1. Default 0."""
    reorder: Reorder | None = None
    """Data packets that are held up, so that others overtake them. Default none."""
    jitter: Jitter | None = None
    """An additional delay, drawn for each data packet. Default none."""
    bleach: bool | None = None
    """Packets leave the link without ECN, neither capable nor marked, as behind a middlebox or
    a tunnel that loses these bits. Default false.
    """
    acks: AckImpair | None = None
    """Losses and delays of packets without payload behind the queue; data have the keys beside
    it. Default nothing.
    """
    queue: Queue | None = None
    """The queue in front of it. Default: drop-tail of 1bdp."""
    policer: Policer | None = None
    """A token bucket ahead of the queue, which drops what exceeds it. Default none."""
    shaper: Shaper | None = None
    """A token bucket behind the queue, which lets packets wait; below the link's rate. Default
    none.
    """
    router: Router | None = None
    """A router protocol beside any queue, which tells senders about the load. Default none."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Reverse(_Way):
    """One direction of a link: a queue, a server, then delay and losses.

    A key that the table ``reverse`` lacks has its value in the forward direction.
    """


@keywords
@dataclass(frozen=True, kw_only=True)
class Link(_Way):
    """The bottleneck of a dumbbell."""

    mode: Literal["closed", "event"] | None = None
    """How departures are computed: in closed form where that is possible, or by one event for
    each packet. Results are the same; tests compare both. Default "closed".
    """
    reverse: Reverse | None = None
    """The opposite direction. Default: as forward."""


@dataclass(frozen=True, kw_only=True)
class _ParkingLotFirst:
    """Fields of a ParkingLot before those of every link."""

    hops: int
    """How many. Range: at least 1, at most 32767."""


@keywords
@dataclass(frozen=True, kw_only=True)
class ParkingLot(_Way, _ParkingLotFirst):
    """Equal hops in a row."""

    mode: Literal["closed", "event"] | None = None
    """How departures are computed, as for a dumbbell. Default "closed"."""
    reverse: Reverse | None = None
    """The opposite direction. Default: as forward."""


@dataclass(frozen=True, kw_only=True)
class _NamedLinkFirst:
    """Fields of a NamedLink before those of every link."""

    name: str | int
    """Its name in routes, schedules and results: letters, digits, ``_`` and ``-``. The
    opposite direction is NAME.reverse.
    """
    from_: str | int
    """The node where it begins. Any name makes a node."""
    to: str | int
    """The node where it ends."""


@keywords
@dataclass(frozen=True, kw_only=True)
class NamedLink(_Way, _NamedLinkFirst):
    """A link between two nodes."""

    mode: Literal["closed", "event"] | None = None
    """How departures are computed, as for a dumbbell. Default "closed"."""
    duplex: bool | None = None
    """Whether there is an opposite direction. Default true."""
    reverse: Reverse | None = None
    """The opposite direction. Default: the same."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Breaker:
    """A circuit breaker on the path of a flow (RFC 8084).

    It counts the flow's data packets that reached the receiver, and those that queues dropped
    or links lost, in intervals from the start of the flow on.
    """

    loss: float
    """Share of packets dropped or lost that an interval may have, of all whose fate it saw. An
    interval without packets is not above it. Range: at least 0, below 1.
    """
    interval: str | None = None
    """Length of an interval; longer than an RTT. Range: 1ms to 1000s. Default "1s"."""
    intervals: int | None = None
    """Intervals in a row above ``loss`` that end the flow. Range: at least 1, at most 1000000.
    Default 3.
    """


@keywords
@dataclass(frozen=True, kw_only=True)
class Application:
    """Writes of the application of a flow: a segment at a time, evenly."""

    rate: str | tuple[str, ...]
    """Payload that it writes, in each of parallel streams, while it is active. Range: 1kbit/s
    to 10Tbit/s.
    """
    on: str | None = None
    """How long it is active before it pauses; with ``off``. Default: always. Range: 1us to
    1000s.
    """
    off: str | None = None
    """How long it pauses; with ``on``. Range: 1us to 1000s."""
    deadline: str | None = None
    """How long after it is written a segment is of use, such as two RTTs: results count those
    that the receiver has in order by then. Default: always. Range: 1us to 1000s.
    """


@keywords
@dataclass(frozen=True, kw_only=True)
class Flow:
    """Flows that differ in nothing but their drawn and listed values.

    ``rtt``, ``start``, ``stop``, ``size`` and the rate of ``application`` may be "uniform(LOW,
    HIGH)" or "log-uniform(LOW, HIGH)", which draws for each flow by its number, or a list,
    repeated in order.
    """

    name: str | int | None = None
    """How a schedule calls the group: letters, digits, ``_`` and ``-``. Default: its index."""
    law: str | type[Law | Controller] | None = None
    """Congestion-control law, NAME or NAME:VARIANT; of those with parameters also
    NAME:PARAMETER=VALUE. Or FILE.py:CLASS for one in Python. Over UDT also its own, "udt"
    or "udt:VARIANT", which is the default there. Or a whole stack, such as "quinn-
    whole:cubic".
    """
    transport: Literal["tcp", "udt", "stack"] | None = None
    """Transport protocol: TCP as ``compat`` says, UDT 4, or that of a whole stack. Default
    "tcp"; under UDT's own law "udt", with a stack as ``law`` "stack".
    """
    count: int | None = None
    """How many such flows. Range: at least 1, at most 16000000. Default 1."""
    parallel: int | None = None
    """Streams of each flow: parallel connections with the law each, which start together,
    share ``size`` equally, and are reported in sum as one flow. Range: at least 1, at most
    1000. Default 1.
    """
    rtt: str | tuple[str, ...] | None = None
    """Round-trip time without queueing and serialisation. The flow's access links add the part
    above the delays of the links of both routes. Default: the links' delays; required if
    these are 0. Range: 1ns to 1000s.
    """
    start: str | tuple[str, ...] | None = None
    """When it begins. Default "0s"."""
    stop: str | tuple[str, ...] | None = None
    """When its application stops: nothing new is sent, and what was lost still is. Default: at
    the end of the run.
    """
    size: str | tuple[str, ...] | None = None
    """Payload to deliver, after which the flow ends. Default: no end. Range: 1B to 1000000TB."""
    direction: Literal["forward", "reverse"] | None = None
    """Direction of its data. In a dumbbell it selects the link, in a parking lot "forward"
    leads to higher numbers of routers. In other networks it is only a word in results.
    Default "forward", in a parking lot the direction from ``from`` to ``to``.
    """
    from_: str | int | None = None
    """Node where it begins: a name, in a parking lot the number of a router. Default: where
    ``route`` begins; in a parking lot the first router, or, in direction "reverse", the
    last.
    """
    to: str | int | None = None
    """Node where it ends. Default: where ``route`` ends; in a parking lot the other end."""
    via: tuple[str | int, ...] = ()
    """Nodes that it passes in this order."""
    route: tuple[str, ...] = ()
    """Its links in their order; not with ``via``. Default: the path with the fewest hops. If
    several have as few: the one with the least delay, then the one whose links stand first
    in the scenario.
    """
    ack_route: tuple[str, ...] = ()
    """Links of its ACKs, in their order. Default: the opposite directions of the data's links.
    If one of these does not exist: the path with the fewest hops.
    """
    packet: str | None = None
    """IP packet (MTU), over UDT at least 76B. Range: 64B to 64kB. Default "1.5kB"."""
    receive_window: str | None = None
    """Largest amount of unacknowledged data, in packets or bytes. Over UDT it is the flow
    window, 32 packets to 2^29. Default: no limit; over UDT that of ``send_buffer``, 4 ×
    (BDP + buffers).
    """
    breakers: tuple[Breaker, ...] = ()
    """Circuit breakers on its path; the first that trips ends it, with all its streams.
    Default: none.
    """
    send_buffer: str | None = None
    """Largest amount of unacknowledged data that the sending host keeps, in packets or bytes
    of payload. "linux" is the buffer of an untuned host, which grows with the window up to
    4 MiB of the kernel's memory, and whose application waits until a third of it is free;
    "linux 64MB" has that maximum, the third number of ``tcp_wmem``, and "linux 1MB 64MB"
    the second number, too. Default: 4 × (BDP + buffers) of the route, at least 64MB, as on
    a tuned host.
    """
    initial_window: str | None = None
    """Initial window. Default 10 packets; 2 packets with ``compat = "ns2"``, and under laws
    for routers. With ``compat = "linux"`` the first flight is at most 65,535 bytes, the
    window of a SYN-ACK. Range: 1 packet to 67108864 packets.
    """
    initial_ssthresh: str | None = None
    """Initial ssthresh. Default: infinite. Range: 2 packets to 67108864 packets."""
    slow_start: (
        Literal[
            "classic",
            "limited",
            "hystart",
            "hystart++",
            "rapid",
            "search",
            "careful-resume",
            "none",
        ]
        | None
    ) = None
    """Slow start. Default: what the law's registry line says, with ``compat = "ns2"`` classic;
    "none" for a law with a start-up of its own.
    """
    saved_window: str | None = None
    """Window that an earlier connection on this path had (saved_cwnd of RFC 9959); with
    ``slow_start = "careful-resume"``, which needs it. Range: 2 packets to 67108864 packets.
    """
    saved_rtt: str | None = None
    """Smallest RTT that it measured (saved_rtt); with ``slow_start = "careful-resume"``, which
    needs it. Range: 1us to 1000s.
    """
    delayed_ack: bool | None = None
    """An ACK for every second segment instead of every one. Default true; false with ``compat
    = "ns2"``, and under laws for routers.
    """
    sack: bool | None = None
    """Selective acknowledgement. Default true."""
    ecn: bool | None = None
    """Explicit congestion notification. A flow with ECN cannot use the law VCP or a link with
    a VCP router, because both need the same two bits. The receiver repeats a mark until the
    sender has reduced its window (RFC 3168); with a law of family ecn it marks the ACK of
    each marked segment (RFC 8257). Default false, with a law of family ecn true.
    """
    accecn: Literal["off", "counter", "option"] | None = None
    """AccECN (RFC 9768): the receiver counts marks in place of the echo. "counter" tells the
    count modulo 8 in each ACK, "option" also payload by ECN field, in 8 bytes of each ACK,
    through which the sender finds a path that erases marks. Both ends ask for it in the
    handshake. Needs ``ecn``; not with ``misbehaves``, nor under laws for routers. Default
    "off", with the law prague "option".
    """
    receiver_ecn: Literal["off", "classic", "accecn"] | None = None
    """The most that the receiver's host does about ECN: "off" nothing, "classic" RFC 3168,
    "accecn" AccECN beside that. Both ends agree on the lesser of this and what the sender
    asks for by ``ecn`` and ``accecn`` (RFC 9768, table 2), and the receiver repeats a mark
    until the sender has reduced its window. With "classic" a flow with ``l4s``, and any
    under the law prague, sends without ECN. Needs ``ecn``; not under laws for routers.
    Default: what the sender asks for.
    """
    l4s: bool | None = None
    """Data packets are ECT(1), not ECT(0): queues give them L4S treatment (RFC 9331). Needs
    ``ecn``, and a law that answers the extent of marks; others would take more than their
    share. Default: false, with the law prague true.
    """
    burst: str | None = None
    """Payload that leaves at once, as from a host with segmentation offload: a window that
    opens by less waits, but never for more than a third of it. Not with pacing. Default:
    each segment leaves when it may. Range: 1B to 1MB.
    """
    application: Application | None = None
    """An application that writes slowly, or with pauses; with ``compat = "linux"`` its sender
    validates the window as Linux does. Default: there is always more to send.
    """
    misbehaves: Literal["splits-acks", "optimistic", "hides-marks"] | None = None
    """How its receiver breaks the rules: "splits-acks" sends each ACK of new data in eight
    parts, "optimistic" acknowledges eight segments that have not arrived and hides those
    that are lost, "hides-marks" does not echo marks. Default: it keeps them.
    """
    pacing: bool | None = None
    """Pace at 2 cwnd/srtt in slow start and 1.2 cwnd/srtt after, even if the law does not ask
    for it. Default false, under laws for routers and with Careful Resume true.
    """


@keywords
@dataclass(frozen=True, kw_only=True)
class Burst:
    """A constant rate from ``start`` until just before ``stop``."""

    start: str | None = None
    """When it begins. Default: when the one before ends, for the first "0s"."""
    stop: str | None = None
    """When it ends. Default: at the end of the run."""
    rate: str
    """Bits per second at the queue, headers included; 0 for none. Range: 0bit/s to 10Tbit/s."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Steps:
    """Constant rates one after the other."""

    start: str | None = None
    """When the first begins. Default "0s"."""
    each: str
    """How long each of them lasts. Range: 1ps to 1000s."""
    rates: tuple[str, ...]
    """How fast they are; at least one."""


@keywords
@dataclass(frozen=True, kw_only=True)
class OnOff:
    """On/off sources with Pareto bursts and pauses, whose sum is long-range dependent.

    As ``Application/Traffic/Pareto`` of ns-2, with H = (3 - shape) / 2 (Taqqu, Willinger,
    Sherman 1997). Other than there, a burst is not rounded to whole packets (the rest of a
    packet waits for the next burst), durations are bounded, and the sources begin in
    equilibrium, so that the load is nominal from the first second and no two sources march in
    step.
    """

    sources: int
    """How many sources. Range: at least 1, at most 1000000."""
    rate: str | None = None
    """Rate of one source in a burst. Range: 1bit/s to 10Tbit/s. Default "10Mbit/s"."""
    burst: str | None = None
    """Mean length of a burst. Range: 1us to 1000s. Default "500ms"."""
    idle: str | None = None
    """Mean length of a pause. Range: 1us to 1000s. Default "500ms"."""
    shape: float | None = None
    """Tail index of both. Range: above 1. Default 1.5."""
    tail_ratio: float | None = None
    """The longest over the shortest burst, and pause; infinite in ns-2. The mean stays as
    given. Range: above 1. Default 10000.
    """


@keywords
@dataclass(frozen=True, kw_only=True)
class Udp:
    """UDP from one place to another."""

    name: str | int | None = None
    """Its name in random streams and results: letters, digits, ``_`` and ``-``. Default "udp"
    and its index.
    """
    direction: Literal["forward", "reverse"] | None = None
    """Which way it goes, as for a flow. Default "forward"."""
    from_: str | int | None = None
    """Node where it begins: a name, in a parking lot the number of a router. Default: where
    ``route`` begins; in a parking lot the first router, or, in direction "reverse", the
    last.
    """
    to: str | int | None = None
    """Node where it ends. Default: where ``route`` ends; in a parking lot the other end."""
    via: tuple[str | int, ...] = ()
    """Nodes that it passes in this order."""
    route: tuple[str, ...] = ()
    """Its links in their order; not with ``via``. Default: the path with the fewest hops. If
    several have as few: the one with the least delay, then the one whose links stand first
    in the scenario.
    """
    packet: str | None = None
    """IP packet. Range: 64B to 64kB. Default "1.5kB"."""
    bursts: tuple[Burst, ...] = ()
    """Constant rates in order of time, which do not overlap."""
    steps: Steps | None = None
    """Rates that follow each other without a gap."""
    on_off: OnOff | None = None
    """The sum of sources whose bursts and pauses are Pareto distributed."""
    deadline: str | None = None
    """How long after it is sent a packet is of use, as a frame of a stream that no one
    repairs: results count those that arrive by then. Default: always. Range: 1us to 1000s.
    """
    breakers: tuple[Breaker, ...] = ()
    """Circuit breakers on its path; the first that trips ends it. Default: none."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Background:
    """Traffic beside the flows under test.

    Short flows of five applications, and long flows with a small window.
    """

    level: int | None = None
    """Offered load of short flows: 0, 1, 2 or 3 for nothing, 10 %, 25 % or 40 % of the rate of
    the slowest link of its route, and half of that in reverse. The long flows come on top,
    ten of them up to 24 Mbit/s each way: at level 1 on a link below 230 Mbit/s more than
    the short ones. Range: at least 0, at most 3. Default 0.
    """
    long_flows: int | None = None
    """Long flows in each direction, of at most 20 packets and an RTT of 100 ms each: up to 2.4
    Mbit/s. They do not scale with the rate. Default 10, at level 0 none. Range: at least 0,
    at most 100000.
    """
    from_: str | int | None = None
    """Node where it begins: a name, in a parking lot the number of a router. Default: where
    ``route`` begins; in a parking lot the first router, or, in direction "reverse", the
    last.
    """
    to: str | int | None = None
    """Node where it ends. Default: where ``route`` ends; in a parking lot the other end."""
    via: tuple[str | int, ...] = ()
    """Nodes that it passes in this order."""
    route: tuple[str, ...] = ()
    """Its links in their order; not with ``via``. Default: the path with the fewest hops. If
    several have as few: the one with the least delay, then the one whose links stand first
    in the scenario.
    """
    ack_route: tuple[str, ...] = ()
    """Links of the reverse direction, as for a flow."""


@keywords
@dataclass(frozen=True, kw_only=True)
class ShortFlows:
    """Flows that come whatever the network does."""

    load: str
    """Payload offered per second. Range: 1bit/s to 10Tbit/s."""
    mean: str | None = None
    """Mean size of a flow; the default is 25 packets. Range: 100B to 1TB. Default "36.5kB"."""
    shape: float | None = None
    """Tail index of the sizes; the largest is 10^4 times the least. Range: above 1. Default
    1.2.
    """


@keywords
@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of messages, independent of each other."""

    mean: str | None = None
    """Their mean. Range: 100B to 1TB."""
    shape: float | None = None
    """Their tail index. Range: above 1. Default 1.2."""
    median: str | None = None
    """Their median. Range: 100B to 1TB."""
    sigma: float | None = None
    """Standard deviation of their logarithm. Range: above 0, at most 4."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Requests:
    """Clients that come at random times, ask, wait for the answer, think, and ask again."""

    load: str
    """Payload of the answers offered per second. Requests go the opposite way. Range: 1bit/s
    to 10Tbit/s.
    """
    request: str | Sizes | None = None
    """Size of a request. Default "500B"."""
    response: str | Sizes | None = None
    """Size of an answer. Default {"mean": "36.5kB", "shape": 1.2}."""
    exchanges: float | None = None
    """How often a client asks on average; beyond the first time exponentially distributed.
    Range: at least 1, at most 1000000. Default 1.
    """
    server_delay: str | None = None
    """Time of a server before it answers. Range: 0s to 1000s. Default "0s"."""
    think: str | None = None
    """Mean time from an answer to the client's next request, exponentially distributed. Range:
    0s to 1000s. Default "1s".
    """
    persistent: bool | None = None
    """Whether all exchanges of a client go over one connection; if not, each message opens a
    connection of its own. Default true.
    """


@keywords
@dataclass(frozen=True, kw_only=True)
class Packmime:
    """PackMime-HTTP."""

    connections: float
    """New connections per second. Range: above 0, at most 1000000."""
    requests: bool | None = None
    """Whether requests are sent, and answers wait for them. Default true."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Webtraf:
    """ns-2's web sessions of 250 pages, one begun each second on average."""

    sessions: int
    """How many begin. Range: at least 1, at most 1000000."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Surge:
    """Users who read pages without end."""

    users: int
    """How many. Range: at least 1, at most 1000000."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Vectors:
    """A replay of connections."""

    file: str | File
    """A file of connection vectors, or a table of its ``path`` and ``hash``."""
    scale: float | None = None
    """Factor on all times of start: 2 halves the load. Range: above 0. Default 1."""
    shuffle: str | None = None
    """Connections change places at random within bins of this length. Default: they do not.
    Range: 1us to 1000s.
    """


@keywords
@dataclass(frozen=True, kw_only=True)
class Suite:
    """Nine pairs of hosts, whose round-trip times take the place of ``rtt``."""

    load: str
    """Payload offered per second in ``direction``. Range: 1bit/s to 10Tbit/s."""
    reverse_load: str
    """And in the opposite one. Range: 1bit/s to 10Tbit/s."""
    rtts: tuple[str, ...]
    """Round-trip times of the pairs, which share the load equally; at least one."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Traffic:
    """TCP traffic as a model makes it."""

    name: str | int | None = None
    """Its name in random streams and results: letters, digits, ``_`` and ``-``. Default
    "traffic" and its index.
    """
    law: str | type[Law | Controller] | None = None
    """Law of every connection. Default "reno"."""
    direction: Literal["forward", "reverse"] | None = None
    """Direction of the larger part of the data: files, answers, or the data of the host that
    opens a connection. Words as for a flow. Default "forward".
    """
    from_: str | int | None = None
    """Node where it begins: a name, in a parking lot the number of a router. Default: where
    ``route`` begins; in a parking lot the first router, or, in direction "reverse", the
    last.
    """
    to: str | int | None = None
    """Node where it ends. Default: where ``route`` ends; in a parking lot the other end."""
    via: tuple[str | int, ...] = ()
    """Nodes that it passes in this order."""
    route: tuple[str, ...] = ()
    """Its links in their order; not with ``via``. Default: the path with the fewest hops. If
    several have as few: the one with the least delay, then the one whose links stand first
    in the scenario.
    """
    ack_route: tuple[str, ...] = ()
    """Links of the opposite way, as for a flow."""
    rtt: str | None = None
    """Round-trip time of a connection, or its distribution as for flows, drawn for each; at
    least the delays of the links of both routes. Default: those and "uniform(10ms, 200ms)".
    """
    receive_window: str | None = None
    """Largest amount of unacknowledged data. Default "65.536kB"."""
    short_flows: ShortFlows | None = None
    """Poisson arrivals of flows with Pareto sizes (Dukkipati and others 2005). Default
    {"load": "0bit/s", "mean": "36.5kB", "shape": 1.2}.
    """
    requests: Requests | None = None
    """Clients that ask servers and wait for their answers."""
    packmime: Packmime | None = None
    """Web traffic as a link sees it (Cao and others 2004)."""
    webtraf: Webtraf | None = None
    """Web sessions as in ns-2."""
    surge: Surge | None = None
    """Web users (Barford and Crovella 1998)."""
    vectors: Vectors | None = None
    """Connections as a file lists them, as tmix replays them (Weigle and others 2006)."""
    suite: Suite | None = None
    """The nine pairs of the common TCP evaluation suite."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Change:
    """Something changes at a given time."""

    at: str | None = None
    """When, before the end of the run."""
    link: str | None = None
    """Which link: in a dumbbell "forward" or "reverse"."""
    rate: str | None = None
    """Its new rate: 0bit/s, or 1kbit/s to 10Tbit/s. The rest of the packet in service is sent
    at this rate too.
    """
    delay: str | None = None
    """Its new delay, for packets that leave the link later. If it is shorter, they overtake
    earlier packets. Range: 0s to 1000s.
    """
    loss: float | None = None
    """Its new probability of loss, in place of whatever loss it had. Range: at least 0, below
    1.
    """
    down: bool | None = None
    """true: the link sends nothing until a later entry changes this. false: it has its last
    rate again. Not with ``rate``.
    """
    file: str | File | None = None
    """A file whose first line is ``time,rate``, ``time,delay`` or ``time,loss``, and each
    further line a time and a value with their units (``1.5s,20Mbit/s``), in order of time;
    or a table of its ``path`` and ``hash``. Times after the end of the run do not count.
    """
    flow: int | str | None = None
    """Index or name of a group of flows."""
    route: tuple[str, ...] = ()
    """The new links of its data. Default: as before."""
    ack_route: tuple[str, ...] = ()
    """The new links of its ACKs. Default: the opposite direction of ``route``, as for a flow."""


@keywords
@dataclass(frozen=True, kw_only=True)
class Capture:
    """Recording of packets."""

    links: tuple[str, ...] = ()
    """On these links. Default: on all."""
    from_: str | None = None
    """From this time. Default "0s"."""
    to: str | None = None
    """Until just before this time. Default: the end of the run."""
    max_rows: int | None = None
    """At most so many packets. Range: at least 1, at most 1000000000. Default 1000000."""


class FlowSettings(TypedDict, total=False):
    """Keys of a flow that :meth:`Scenario.flow` takes besides law and RTT."""

    name: str | int
    transport: Literal["tcp", "udt", "stack"]
    count: int
    parallel: int
    start: str | tuple[str, ...]
    stop: str | tuple[str, ...]
    size: str | tuple[str, ...]
    direction: Literal["forward", "reverse"]
    from_: str | int
    to: str | int
    via: tuple[str | int, ...]
    route: tuple[str, ...]
    ack_route: tuple[str, ...]
    packet: str
    receive_window: str
    breakers: tuple[Breaker, ...]
    send_buffer: str
    initial_window: str
    initial_ssthresh: str
    slow_start: Literal[
        "classic", "limited", "hystart", "hystart++", "rapid", "search", "careful-resume", "none"
    ]
    saved_window: str
    saved_rtt: str
    delayed_ack: bool
    sack: bool
    ecn: bool
    accecn: Literal["off", "counter", "option"]
    receiver_ecn: Literal["off", "classic", "accecn"]
    l4s: bool
    burst: str
    application: Application
    misbehaves: Literal["splits-acks", "optimistic", "hides-marks"]
    pacing: bool


class RunSettings(TypedDict, total=False):
    """Keys of a scenario besides its duration, links and traffic."""

    name: str | None
    seed: int
    warmup: str | None
    sample: str | None
    sample_rows: int | None
    compat: Literal["linux", "ns2"] | None


TABLES: dict[str, Callable[..., Any]] = {
    "trace": File,
    "file": File,
    "loss": GilbertElliott,
    "reorder": Reorder,
    "jitter": Jitter,
    "acks": AckImpair,
    "queue": Queue,
    "policer": Policer,
    "shaper": Shaper,
    "router": Router,
    "reverse": Reverse,
    "link": Link,
    "parking-lot": ParkingLot,
    "links": NamedLink,
    "breakers": Breaker,
    "application": Application,
    "flow": Flow,
    "bursts": Burst,
    "steps": Steps,
    "on_off": OnOff,
    "udp": Udp,
    "background": Background,
    "short_flows": ShortFlows,
    "request": Sizes,
    "response": Sizes,
    "requests": Requests,
    "packmime": Packmime,
    "webtraf": Webtraf,
    "surge": Surge,
    "vectors": Vectors,
    "suite": Suite,
    "traffic": Traffic,
    "schedule": Change,
    "capture": Capture,
}
"""The class of each table of TOML, by its key."""
