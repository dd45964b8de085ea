"""The simulator, compiled from ``crates/``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self, final

from numpy.typing import NDArray
from typing_extensions import disjoint_base

from lfnlab.errors import LabError, LawError, PrototypeError, ScenarioError, Unavailable

__all__ = [
    "PROTOTYPE_STAMP",
    "VERSION",
    "Ack",
    "ControllerAck",
    "ControllerConfig",
    "ControllerPacket",
    "ControllerState",
    "Environments",
    "LabError",
    "LawError",
    "LawState",
    "Loss",
    "PrototypeError",
    "Run",
    "Scenario",
    "ScenarioError",
    "TestbedEnd",
    "UdtPlan",
    "Unavailable",
    "card",
    "describe_controller",
    "document",
    "drive",
    "fluid",
    "laws",
    "limit_memory",
    "memory_limit_bytes",
    "period_s",
    "plan_testbed",
    "read",
    "read_capture",
    "run_many",
    "run_shell",
    "sawteeth",
    "table_memory_bytes",
    "tables",
    "udt_receive",
    "udt_send",
]

VERSION: Final[str]
"""The version of the package."""
PROTOTYPE_STAMP: Final[str]
"""What results add to the name of a law in Python."""

@final
class Run:
    """A finished run."""

    @property
    def wall_s(self) -> float:
        """What it took, in seconds."""

    @property
    def cpu_s(self) -> float:
        """Processor time that it took, in seconds."""

    def summary(self) -> str:
        """The run's result as JSON (docs/results.md): the same in every run of the same code."""

    def table(self, name: str) -> dict[str, NDArray[Any]]:
        """The columns of table flows, queues, events, probes, transfers or packets, with units.

        Raises:
            KeyError: when no table has this name.
        """

    def rows(self, name: str) -> int:
        """Rows of a table.

        Raises:
            KeyError: when no table has this name.
        """

    def parquet(self, name: str, about: list[tuple[str, str]]) -> bytes:
        """A table as a Parquet file with these pairs of key and value as its metadata.

        A SACK block that a recorded packet has not is null.

        Raises:
            KeyError: when no table has this name.
        """

@final
class Scenario:
    """A scenario that was read once: its text, and all that follows from it."""

    def __new__(cls, text: str, file: str = "scenario", *, prototypes: bool = True) -> Self:
        """Read a text.

        ``file`` names it in errors, and paths in it are relative to its folder. Without
        ``prototypes`` there are the laws of the registry alone.

        Raises:
            ScenarioError: the first fault.
        """

    @property
    def text(self) -> str:
        """As it was given."""

    @property
    def file(self) -> str:
        """How errors call it."""

    @property
    def seed(self) -> int:
        """Of every random stream."""

    @property
    def resolved(self) -> str:
        """Canonical JSON: every default is filled in."""

    @property
    def needs(self) -> dict[str, int]:
        """What a run needs.

        An estimate of ``memory_bytes``, in sum and as ``flow_bytes``, ``packet_bytes``,
        ``link_bytes``, ``table_bytes`` and ``capture_bytes``; ``packets`` that leave links at most,
        were there no retransmissions; about so many ``events``.
        """

    @property
    def is_random(self) -> bool:
        """Whether anything in it draws random numbers; a law in Python counts as if it did.

        If not, runs with other seeds are the same run again.
        """

    def check_memory(self, limit_bytes: int) -> None:
        """Refuse a run that would surely need more memory.

        Raises:
            ScenarioError: naming the key that needs most of it.
        """

@disjoint_base
class ControllerState:
    """Window, pacing rate and clock of a controller in Python (:class:`lfnlab.Controller`)."""

    def __new__(cls, *arguments: object) -> Self: ...
    @property
    def window_bytes(self) -> float:
        """Congestion window in bytes, at least one packet."""

    @window_bytes.setter
    def window_bytes(self, value: float) -> None: ...
    @property
    def pacing_bytes_per_s(self) -> float | None:
        """Pacing rate in bytes of payload per second; None for the ACK clock alone."""

    @pacing_bytes_per_s.setter
    def pacing_bytes_per_s(self, value: float | None) -> None: ...
    @property
    def next_tick_ns(self) -> int | None:
        """When tick is wanted next, in ns of simulated time; None for never."""

    @next_tick_ns.setter
    def next_tick_ns(self, value: float | None) -> None: ...
    @property
    def now_ns(self) -> int:
        """Simulated time in ns."""

@final
class ControllerConfig:
    """A new connection."""

    @property
    def srtt_ns(self) -> int | None:
        """RTT of the handshake in ns; None without one."""

    @property
    def initial_window_bytes(self) -> int:
        """The window that the sender would begin with, in bytes."""

    @property
    def packet_bytes(self) -> int:
        """Payload of a full packet in bytes."""

    @property
    def seed(self) -> int:
        """For random decisions."""

@final
class ControllerPacket:
    """One transmission of a packet. A retransmission is a packet of its own."""

    @property
    def number(self) -> int:
        """Transmissions of the connection before it."""

    @property
    def sent_ns(self) -> int:
        """When it left, in ns."""

    @property
    def bytes(self) -> int:
        """Payload in bytes."""

    @property
    def app_limited(self) -> bool:
        """It left when the sender had no more data."""

@final
class ControllerAck:
    """An ACK, after its packets and events."""

    @property
    def rtt_ns(self) -> int | None:
        """RTT of the newest packet that it delivered, in ns; None: no valid sample."""

    @property
    def srtt_ns(self) -> int | None:
        """Smoothed RTT (RFC 6298) in ns; None before the first sample."""

    @property
    def min_rtt_ns(self) -> int | None:
        """Smallest RTT sample so far in ns; None before the first."""

    @property
    def in_flight_bytes(self) -> int:
        """Bytes in flight after it."""

    @property
    def delivered_bytes(self) -> int:
        """Bytes delivered since the start of the connection."""

    @property
    def rate_bytes(self) -> int:
        """Delivery-rate sample: bytes delivered in rate_interval_ns."""

    @property
    def rate_interval_ns(self) -> int | None:
        """Time of the delivery-rate sample in ns; None: no valid sample."""

    @property
    def acked_bytes(self) -> int:
        """Bytes that it delivered."""

    @property
    def lost_bytes(self) -> int:
        """Bytes that it showed to be lost."""

    @property
    def ce_packets(self) -> int:
        """Packets whose CE mark it echoes."""

    @property
    def window_limited(self) -> bool:
        """The last flight used the whole window."""

    @property
    def round_start(self) -> bool:
        """It is the first of a new round trip, counted by packets."""

    @property
    def recovery(self) -> bool:
        """The sender repairs losses of an episode, or has been told of a mark in this window."""

    @property
    def duplicate(self) -> bool:
        """Data above a hole, or nothing: TCP's windows do not grow by it."""

    @property
    def rate_app_limited(self) -> bool:
        """The sample's packet left when the sender had no more data."""

@disjoint_base
class LawState:
    """Window, threshold, pacing and clock of a law in Python (:class:`lfnlab.Law`)."""

    def __new__(cls) -> Self: ...
    @property
    def cwnd(self) -> float:
        """Congestion window in segments, at least 1. None grows past 2**26."""

    @cwnd.setter
    def cwnd(self, value: float) -> None: ...
    @property
    def ssthresh(self) -> float:
        """Slow-start threshold in segments, at least 2 (RFC 5681 eq. 4); infinite at first."""

    @ssthresh.setter
    def ssthresh(self, value: float) -> None: ...
    @property
    def pacing_bps(self) -> float | None:
        """Pacing rate in bit/s of payload; None for the ACK clock alone."""

    @pacing_bps.setter
    def pacing_bps(self, value: float | None) -> None: ...
    @property
    def next_tick_s(self) -> float | None:
        """When on_tick is wanted next, in seconds of simulated time; None for never."""

    @next_tick_s.setter
    def next_tick_s(self, value: float | None) -> None: ...
    @property
    def now_s(self) -> float:
        """Simulated time in seconds."""

    @property
    def mss_bytes(self) -> int:
        """Payload of a full segment in bytes."""

@final
class Ack:
    """An ACK, as the sender saw it."""

    @property
    def rtt_s(self) -> float | None:
        """RTT of the newest segment that it delivered, in seconds; None: no valid sample (Karn)."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed RTT (RFC 6298) in seconds; None before the first sample."""

    @property
    def min_rtt_s(self) -> float | None:
        """Smallest RTT sample so far in seconds; None before the first."""

    @property
    def delivered(self) -> int:
        """Segments delivered since the start of the connection, each once."""

    @property
    def acked(self) -> int:
        """Segments newly covered by the cumulative ACK."""

    @property
    def newly_delivered(self) -> int:
        """Segments newly covered or newly SACKed."""

    @property
    def newly_lost(self) -> int:
        """Segments newly marked lost."""

    @property
    def inflight(self) -> int:
        """Segments in flight after it."""

    @property
    def ce(self) -> int:
        """Segments whose CE mark it echoes."""

    @property
    def open(self) -> bool:
        """No reduction is under way."""

    @property
    def round_start(self) -> bool:
        """It is the first of a new packet-timed round trip."""

    @property
    def cwnd_limited(self) -> bool:
        """The last flight used the whole window."""

    @property
    def duplicate(self) -> bool:
        """It covers nothing new cumulatively."""

@final
class Loss:
    """A congestion event: one per window of data, whatever was lost in it."""

    @property
    def kind(self) -> Literal["fast", "rto", "ecn"]:
        """By SACK, duplicate ACKs or RACK; by timeout; or a mark, with nothing lost."""

    @property
    def rtt_s(self) -> float | None:
        """Last valid RTT sample in seconds; None before the first."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed RTT in seconds; None before the first sample."""

    @property
    def min_rtt_s(self) -> float | None:
        """Smallest RTT sample so far in seconds; None before the first."""

    @property
    def inflight(self) -> int:
        """Segments in flight."""

def read(file: str) -> str:
    """The text of a scenario file.

    Raises:
        ScenarioError: when it cannot be read, is longer than 1 MiB or is not UTF-8.
    """

def document(toml_text: str, file: str, beside: str | None = None) -> tuple[str, dict[str, int]]:
    """The tables of a scenario as they are written, as JSON, and the line of each key by its path.

    ``beside`` is a table that must stand in the file and is no part of the scenario.

    Raises:
        ScenarioError: the first fault.
    """

def read_capture(file: Path, step_s: float) -> tuple[str, list[dict[str, NDArray[Any]]]]:
    """The TCP flows of a pcap or pcapng file.

    Args:
        file: the capture.
        step_s: time between two samples, in seconds; more where there would be very many.

    Returns:
        What is known of the file and of its flows as JSON, and the samples of each flow as columns,
        NaN where something is not known. ``ahead`` is the round trip from the capture to the
        receiver, ``behind`` that to the sender.

    Raises:
        UsageError: it is no capture, or has no TCP data.
        StoreError: it cannot be read.
        KeyboardInterrupt: reading is given up.
    """

def table_memory_bytes(file: Path) -> int:
    """Bytes that the columns of a Parquet file take in memory, at least.

    Raises:
        UsageError: when it is none.
    """

def tables() -> list[tuple[str, str, list[tuple[str, str, str, str, list[str]]]]]:
    """Every table of a run: (name, meaning of a row, columns).

    Of each column (name, type, unit, meaning, words of its codes from 0 on).
    """

def limit_memory(size: str | None) -> None:
    """Let the runs of this process take ``size`` together, such as "4GB"; None: what is free.

    Raises:
        UsageError: when that is no size.
    """

def memory_limit_bytes() -> int:
    """Memory that the runs of this process may take together, those in progress included.

    Without a limit that was set, 80 % of what can be taken without swapping, within this process's
    control groups.
    """

def run_many(
    scenarios: Sequence[Scenario],
    threads: int,
    progress: Callable[[int, float], bool] | None,
    *,
    sampled: bool = True,
) -> list[Run | None]:
    """Run scenarios, one thread a run.

    At most ``threads`` run at once, fewer where memory would not do.
    The lock of the interpreter is free meanwhile. ``progress`` is called with an index and the
    fraction done a few times a second, on the calling thread; when it returns False the runs in
    progress are given up: their entries, and those of runs not begun, are None. Results do not
    depend on ``threads``. Without ``sampled`` the sampled tables have no rows, and the summaries
    are the same.

    Raises:
        ScenarioError: before any run starts, also when runs need more than 80 % of the memory.
        LawError: before any run starts, when a law in Python is not here.
        LabError: when a run breaks a promise of the simulator, with the scenario's name.
        PrototypeError: when a law in Python raised, with that as its cause.
        KeyboardInterrupt: runs in progress are given up.
    """

def drive(law: str, statements: Sequence[str], fields: Sequence[str]) -> list[list[float]]:
    """Execute statements of the vectors of cards (laws/cards/README.md) on a law.

    ``law`` is NAME, NAME:VARIANT or what stands for one in Python. The first statement is
    ``start``. Returns the values of ``fields`` (cwnd, ssthresh, pacing_Bps, probes) after each.

    Raises:
        LawError: when there is no such law.
        LabError: when a statement is none.
        PrototypeError: when a law in Python raised.
    """

def describe_controller(path: str) -> tuple[str, list[str], bool]:
    """Load a shared object, and give the name of its controller and those of its values.

    Raises:
        LawError: when the loader refuses it, or it has not the interface of ``controller.h``.
    """

def laws() -> list[dict[str, Any]]:
    """The registry, in its order.

    Keys: name, title, variants, targets, slow_start, family, signals, probes, source, color and
    marker.
    """

def fluid(
    laws: Sequence[str],
    base_rtts_s: Sequence[float],
    windows: Sequence[float],
    losses: int,
    *,
    rate_pps: float,
    buffer_packets: float,
    least_rtt: float,
    packets_to_loss: float,
    window_at_loss: float,
) -> dict[str, Any]:
    """Windows of the laws' own code on a path that is a fluid (``crates/law/src/fluid.rs``).

    One flow a law. Losses come to all when the queue is full, after so many packets, or when the
    first flow has that window; what is infinite does not happen. ``least_rtt`` times its base RTT
    is what each law saw first.

    Returns:
        ``t_s`` (moments) and ``windows`` (moments x flows, in segments); of epochs from loss to
        loss ``start_s``, ``end_s``, ``lost``, and as epochs x flows ``before``, ``after``,
        ``packets``, ``window_s`` and ``growth``.

    Raises:
        LawError: no such law, or its window grows without bound.
        UsageError: it takes too long, lists have different lengths, or a number is not above 0.
    """

def sawteeth(
    laws: Sequence[str],
    rates_pps: Sequence[float],
    rtts_s: Sequence[float],
    buffers_packets: Sequence[float],
    threads: int,
) -> dict[str, Any]:
    """Sawteeth of single flows, a point each: the fields of ``lfnlab.theory.sawteeth.Sawteeth``.

    Raises:
        LawError: no such law.
        UsageError: lists have different lengths, or a number is out of range.
        KeyboardInterrupt: nothing is kept.
    """

def period_s(law: str, rate_pps: float, rtt_s: float, buffer_packets: float) -> float | None:
    """Seconds from loss to loss of one flow, as :func:`sawteeth` has them; None without a sawtooth.

    Raises:
        LawError: no such law.
        UsageError: a number is out of range.
    """

def card(name: str) -> str:
    """The card of a law, in Markdown.

    Raises:
        LawError: when no law has this name.
    """

@final
class UdtPlan:
    """What a path carries, and what drives the sender: quantities with units, MSS in bytes."""

    def __new__(
        cls,
        rate: str,
        rtt: str,
        mss_bytes: int,
        max_rate: str | None,
        law: str,
        key: Path | None = None,
        insecure: bool = False,
    ) -> UdtPlan:
        """Check the quantities.

        Raises:
            UsageError: a quantity that is none, or an MSS that no packet has.
            LawError: no such law, or one that needs routers.
            StoreError: a key that cannot be read, or that others can.
        """

def udt_send(paths: Sequence[Path], to: str, plan: UdtPlan, tell: Callable[[str], object]) -> None:
    """Send files and folders to a receiver, for example at ``127.0.0.1:9000``.

    ``tell`` hears JSON objects of one key: ``plan`` when the transfer begins, ``progress`` a few
    times a second, ``done`` at the end.

    Raises:
        UsageError: an address that is none.
        StoreError: a file that cannot be read.
        LabError: what went wrong, and where.
        KeyboardInterrupt: the transfer is given up; the same call goes on from there.
    """

def udt_receive(
    directory: Path,
    listen: str,
    once: bool,
    overwrite: bool,
    plan: UdtPlan,
    tell: Callable[[str], object],
) -> None:
    """Take files into a directory from whoever connects, until interrupted, or ``once``.

    ``tell`` hears JSON objects of one key: ``plan``, ``listening``, ``progress``, ``done``,
    ``failed``.

    Raises:
        UsageError: an address that is none, or that others reach.
        StoreError: the directory is not there, or cannot be written.
        LabError: the address is taken.
        KeyboardInterrupt: what is there stays.
    """

@final
class TestbedEnd:
    """A scenario at one end of a test bed, whose time 0 is ``zero_ns`` of CLOCK_MONOTONIC.

    What sends ends with the scenario; what takes ends with the process. Each is called in a thread
    of its own. ``to`` is the IPv4 address of the other end.

    Raises:
        LabError: of every call: a socket failed; the text says why.
    """

    def __new__(cls, scenario: Scenario, to: str, zero_ns: int) -> TestbedEnd: ...
    @staticmethod
    def take_tcp(port: int, window_bytes: int | None = None) -> None:
        """Take connections, which give their senders windows of so many bytes at most."""

    def send_udp(self, number: int, port: int) -> str:
        """Send the scenario's UDP source of this number; JSON: packets ``sent``, ``refused``."""

    def send_background(self, reverse: bool, short_port: int, long_port: int, law: str) -> str:
        """Send one direction of the background under a law of the kernel.

        Returns JSON: ``flows_started``, ``flows_completed``; null where the scenario has none.
        """

    def send_udt(self, number: int, port: int, duration_s: float) -> str:
        """Connect and send the flow of this number; JSON: ``looks`` at it, ``completion_s``."""

    def take_udt(self, port: int) -> None:
        """Take connections of UDT."""

def plan_testbed(scenario: Scenario) -> str:
    """What a test bed does of a scenario, a JSON object: its times in s, and its flows.

    Raises:
        ScenarioError: the scenario has what a test bed cannot do.
    """

def run_shell(
    scenario: Scenario,
    command: Sequence[str],
    serve: str | None,
    here: bool,
    coalesce: str,
    lead_s: float | None = None,
    live: bool = False,
    offload: bool = True,
) -> tuple[int, str]:
    """Run a command behind the path of a scenario's first flow, and wait for its end.

    With ``lead_s`` the scenario's time 0 is so many seconds after the path is there, which is
    ``LFN_BEGAN_NS`` of CLOCK_MONOTONIC in the command's environment, links are sampled, and their
    counters restart at the end of its warm-up. With ``offload`` TCP may send several segments in
    one; otherwise each leaves by itself.

    Returns its exit code, 128 and the number of the signal that ended it, and a JSON object of
    what the path did.

    Raises:
        ScenarioError: its path cannot be emulated.
        UsageError: a time that is none, or a word with a zero byte.
        Unavailable: what is missing on this machine.
    """

@final
class Environments:
    """Simulations whose sender is steered from outside, by their place."""

    def __new__(cls, count: int) -> Self: ...
    def begin(self, place: int, text: str) -> None:
        """Begin an episode of a scenario whose last flow has the law "steered".

        Raises:
            ScenarioError: the first fault.
        """

    def step(
        self,
        cwnd: NDArray[Any] | None,
        pacing_bps: NDArray[Any] | None,
        mask: NDArray[Any] | None,
        unit: str,
        value: float,
        threads: int,
        seen: NDArray[Any],
        over: NDArray[Any],
    ) -> None:
        """Advance by a step. Write observations, a row an environment, and which are over.

        Raises:
            UsageError: an action that cannot be, an environment that has not begun or is over.
        """

    def finish(self, place: int) -> str:
        """End an episode: its result as JSON."""
