"""``lfn send`` and ``lfn recv``: files over UDT."""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from lfnlab import _core
from lfnlab.errors import LabError
from lfnlab.machine import needs_linux
from lfnlab.printable import lines

OK = 0
Json = Annotated[
    bool, Parameter("--json", negative="", help="Print a JSON object for each transfer to stdout.")
]
Rate = Annotated[str, Parameter(help="Rate of the path; rate times RTT sets the buffer sizes.")]
Rtt = Annotated[str, Parameter(help="Largest round-trip time of the path.")]
Key = Annotated[
    Path | None,
    Parameter(help="File with the shared key; encrypts and authenticates every packet."),
]
Mss = Annotated[int, Parameter(help="Largest packet in bytes, IP and UDP headers included.")]


def send(
    path: Path,
    /,
    *more: Path,
    to: str,
    law: str = "udt",
    rate: Rate = "1Gbit/s",
    rtt: Rtt = "100ms",
    max_rate: str | None = None,
    mss: Mss = 1500,
    key: Key = None,
    json: Json = False,
) -> int:
    """Send files and folders to `lfn recv`, over UDT.

    Repeat the command to resume an interrupted transfer. A BLAKE3 hash checks each file. Example:

        lfn send data.bin --to 127.0.0.1:9000 --rate 10Gbit/s --rtt 100ms

    Args:
        path: A file, or a folder with all of its files.
        more: Further files or folders.
        to: The receiver, HOST:PORT.
        law: Congestion control: `udt`, `udt:4.10`, `udt:3.0`, `udt:2`, `udt:compat`, or a law.
        max_rate: Upper limit of the sending rate, headers included.
    """
    needs_linux("lfn send")
    plan = _core.UdtPlan(rate, rtt, mss, max_rate, law, key)
    with _listener(as_json=json) as tell:
        _core.udt_send([path, *more], to, plan, tell)
    return OK


def recv(
    directory: Path,
    /,
    *,
    listen: str = "127.0.0.1:9000",
    once: Annotated[bool, Parameter(negative="")] = False,
    overwrite: Annotated[bool, Parameter(negative="")] = False,
    insecure: Annotated[bool, Parameter(negative="")] = False,
    rate: Rate = "1Gbit/s",
    rtt: Rtt = "100ms",
    mss: Mss = 1500,
    key: Key = None,
    json: Json = False,
) -> int:
    """Receive files from `lfn send` into a directory until interrupted.

    A file gets its name when it is complete and its hash matches the sender's. Files never leave
    the directory, and existing files are not replaced. Example:

        lfn recv incoming --listen 127.0.0.1:9000

    Args:
        directory: Existing directory.
        listen: HOST:PORT; port 0 takes any free port.
        once: End after the first transfer.
        overwrite: Replace existing files.
        insecure: Listen beyond loopback without a key; every host that reaches the port may write.
    """
    needs_linux("lfn recv")
    plan = _core.UdtPlan(rate, rtt, mss, None, "udt", key, insecure)
    failures: list[str] = []
    with _listener(as_json=json, failures=failures) as tell:
        _core.udt_receive(directory, listen, once, overwrite, plan, tell)
    if once and failures:
        raise LabError(failures[-1])
    return OK


@contextmanager
def _listener(
    *, as_json: bool, failures: list[str] | None = None
) -> Iterator[Callable[[str], None]]:
    """A bar with rate, RTT and loss on stderr, when that is a terminal; results on stdout."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rate]:.0f} Mbit/s"),
        TextColumn("RTT {task.fields[rtt]:.1f} ms"),
        TextColumn("loss {task.fields[loss]:.3f} %"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    silent = sys.stderr is None or not sys.stderr.isatty()
    with Progress(*columns, console=console, transient=True, disable=silent) as bar:
        task = bar.add_task("", total=None, rate=0.0, rtt=0.0, loss=0.0)

        def tell(report: str) -> None:
            ((kind, value),) = json_.loads(report).items()
            if kind == "progress":
                bar.update(
                    task,
                    completed=value["done_bytes"],
                    total=value["total_bytes"],
                    rate=value["done_bytes"] * 8e-6 / value["elapsed_s"],
                    rtt=value["rtt_s"] * 1e3,
                    loss=value["loss"] * 100,
                )
            elif kind == "done":
                print(json_.dumps(value) if as_json else _line(value), flush=True)
            elif kind == "plan":
                print(value, file=sys.stderr)
            elif kind == "listening":
                console.print(f"listening at {value}", markup=False)
            else:
                # It may hold names that a stranger sent, and addresses in brackets.
                console.print(lines(value), style="red", markup=False)
                if failures is not None:
                    failures.append(value)

        yield tell


def _line(done: dict[str, Any]) -> str:
    return (
        f"{done['files']} files, {done['total_bytes']} bytes ({done['resumed_bytes']} were there) "
        f"in {done['completion_s']:.2f} s: {done['goodput_bps'] * 1e-6:.0f} Mbit/s, "
        f"{done['retransmits']} of {done['sent']} packets repeated"
    )
