"""Controllers in Python: laws that own window and pacing rate in every state.

The calls are those of ``controller.h``, with its units. A class is named by its file, FILE.py or
FILE.py:CLASS, and each of its runs has a process of its own, as for a shared object
(:mod:`lfnlab.control_laws.foreign`).
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from lfnlab import _core
from lfnlab.control_laws.checks import check_class, hint
from lfnlab.errors import LawError

if TYPE_CHECKING:
    from types import TracebackType

    from lfnlab._core import ControllerAck, ControllerConfig, ControllerPacket

CALLS = ("sent", "acked", "lost", "ack", "event", "tick")
DECISIONS = ("window_bytes", "pacing_bytes_per_s", "next_tick_ns")
"""Attributes by which a controller decides."""


class Controller(_core.ControllerState):
    """A congestion controller in Python: a subclass with at least ``ack``.

    >>> class Fixed(Controller):
    ...     def __init__(self, config):
    ...         self.window_bytes = 100 * config.packet_bytes
    ...
    ...     def ack(self, ack):
    ...         pass

    It decides by ``window_bytes``, ``pacing_bytes_per_s`` (bytes of payload per second, None for
    the ACK clock alone) and ``next_tick_ns`` (None for never), in any call, and reads ``now_ns``.
    Times are ns of simulated time. A connection begins with ``__init__``; ``window_bytes`` then is
    the initial window. Calls that a class leaves out cost little.
    """

    name: ClassVar[str]
    """Name in results; default the name of the class."""
    probes: ClassVar[tuple[str, ...]] = ()
    """Attributes to sample into the table ``probes``, at most eight: numbers of at least 0."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.name = cls.__dict__.get("name", cls.__name__)

    if TYPE_CHECKING:

        def __new__(cls, config: ControllerConfig) -> Self:
            """Make a connection's controller; the base class takes any arguments."""

    def __init__(self, config: ControllerConfig) -> None:
        """A connection begins."""

    def sent(self, packet: ControllerPacket, in_flight_bytes: int) -> None:
        """A packet leaves; ``in_flight_bytes`` counts it."""

    def acked(self, packet: ControllerPacket) -> None:
        """An ACK delivered a packet; each packet once."""

    def lost(self, packet: ControllerPacket) -> None:
        """A packet is found lost; each packet once."""

    def ack(self, ack: ControllerAck) -> None:
        """An ACK, after its packets and events."""
        raise NotImplementedError

    def event(
        self,
        event: Literal[
            "loss", "timeout", "ce", "spurious", "recovered", "restart", "timeout_again"
        ],
        in_flight_bytes: int,
    ) -> None:
        """An event, after its packets: docs/controllers.md lists them."""

    def tick(self) -> None:
        """``next_tick_ns`` has come; it is None until it is set again."""


def check(law: type[Controller]) -> None:
    """Refuse a class that cannot be a controller.

    Raises:
        LawError: naming the class and its part.
    """
    if law.ack is Controller.ack:
        raise LawError(f"{law.__name__} has no ack; a controller has one")
    check_class(law, Controller, CALLS, DECISIONS)


def file_of(law: type[Controller]) -> Path:
    """The file that names a class: another process can load it.

    Raises:
        LawError: when it comes from none, or from the program that runs.
    """
    module = sys.modules.get(law.__module__)
    try:
        path = Path(inspect.getfile(law))
    except (OSError, TypeError):  # a notebook, an interactive session
        path = None
    if path is None or law.__module__ == "__main__" or vars(module).get(law.__name__) is not law:
        raise LawError(
            f"{law.__name__}: a controller runs in a process of its own, which loads its file; "
            f'write it to a file and name it "./FILE.py:{law.__name__}"'
        )
    return path


def said(error: BaseException, trace: TracebackType | None) -> str:
    """An exception of a controller in one line, with file and line."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = ""
    if trace is not None:
        where = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    return f"{type(error).__name__}: {error}{where}{hint(error)}"
