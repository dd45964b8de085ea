"""``lfn import``: measurements of other tools as results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from lfnlab.cli.options import OptionalOut  # noqa: TC001 - cyclopts reads it
from lfnlab.printable import line, say

OK = 0
_MOST_FLOWS = 20
"""Flows that the command prints."""
Anonymous = Annotated[bool, Parameter(negative="")]
IMPORTERS = {
    "iperf3": """Store a measurement of iperf3, to plot with simulated flows.

    Measure with `iperf3 -c HOST -J -i 0.1 > measured.json`. Examples:

        lfn import iperf3 measured.json --out measured
        lfn plot lfn-results measured --y goodput_bps
        lfn table lfn-results measured

    Args:
        file: Output of `iperf3 -J` or `--json-stream`, at the client or the server.
    """,
    "flent": """Store the TCP streams of a data file of flent, to plot with simulated flows.

    Examples:

        lfn import flent rrul-2026-11-29T010000.000000.test.flent.gz --out measured
        lfn plot measured --y goodput_bps

    Args:
        file: A data file of flent, packed or not.
    """,
    "qlog": """Store a log of QUIC connections in qlog, 0.3 or 0.4, contained or sequential.

    Each trace is a flow. Examples:

        lfn import qlog client.qlog --out measured
        lfn plot measured --y cwnd_seg

    Args:
        file: A qlog file, JSON or JSON-SEQ, with events of recovery metrics.
    """,
}
"""Modules of ``lfnlab.formats``, and the help of their commands."""
_EACH = """    out: Directory; default `lfn-{tool}-` and the name of the file.
        anonymous: Store no address, port, name of a machine, or name of the file.
    """
importing = App(name="import", help="Store a measurement of another tool as a result.")


def _importer(tool: str, says: str) -> Callable[..., int]:
    def command(file: Path, /, *, out: OptionalOut = None, anonymous: Anonymous = False) -> int:
        return _store(tool, file, out, anonymous=anonymous)

    command.__doc__ = says + _EACH.format(tool=tool)
    return command


for _tool, _says in IMPORTERS.items():
    importing.command(_importer(_tool, _says), name=_tool)


@importing.command
def ss(
    file: Path,
    /,
    *,
    every: str | None = None,
    out: OptionalOut = None,
    anonymous: Anonymous = False,
) -> int:
    """Store a log of `ss -ti`, called again and again while a transfer runs.

    `while :; do date +%s.%N; ss -tin dst HOST; sleep 0.1; done > transfer.log` writes one, until
    it is interrupted. Each socket is a flow. Examples:

        lfn import ss transfer.log --out measured
        lfn plot measured --y cwnd_seg
        lfn import ss untimed.log --every 100ms

    Args:
        file: Output of `ss -ti`, with or without `-n`, `-H`, `-O`, `-e`, `-m`, `-o`.
        every: Time between two calls, of a log without times.
        out: Directory; default `lfn-ss-` and the name of the file.
        anonymous: Store no address, port, name of a machine, or name of the file.
    """
    from lfnlab.scenario.quantity import seconds

    every_s = seconds("--every", every)
    return _store("ss", file, out, anonymous=anonymous, every_s=every_s)


@importing.command
def capture(
    file: Path,
    /,
    *,
    at: Literal["sender", "receiver", "between"] | None = None,
    step: str = "100ms",
    out: OptionalOut = None,
    anonymous: Anonymous = False,
) -> int:
    """Store the TCP flows of a packet capture: RTT, bytes in flight, windows, retransmissions.

    `tcpdump -i any -s 128 -w transfer.pcap tcp` writes one. The data of each end are a flow; no
    payload is read. Examples:

        lfn import capture transfer.pcap --out measured
        lfn plot measured --y inflight_bytes
        lfn import capture transfer.pcapng --at receiver --step 10ms --anonymous

    Args:
        file: A pcap or pcapng file of tcpdump, tshark or Wireshark.
        at: Where it was captured; default as its round-trip times show.
        step: Time between two samples of a flow.
        out: Directory; default `lfn-capture-` and the name of the file.
        anonymous: Store no address, port, name of a machine, or name of the file.
    """
    from lfnlab.scenario.quantity import seconds

    step_s = seconds("--step", step)
    return _store("capture", file, out, anonymous=anonymous, at=at, step_s=step_s)


@importing.command
def trace(
    file: Path,
    /,
    *,
    delay: Path | None = None,
    reverse: Path | None = None,
    rate: str | None = None,
    rtt: str | None = None,
    buffer: str = "1bdp",
    law: str = "cubic",
    columns: str | None = None,
    every: str | None = None,
    out: OptionalOut = None,
) -> int:
    """Make a scenario of a recorded path: rates, delays and losses that change with time.

    Reads opportunities to send (mahimahi), delays of LeoReplayer, and tables (CSV). Examples:

        lfn import trace downlink.trace --rtt 40ms
        lfn import trace bw_1.txt --delay delay_1.txt --out starlink
        lfn run starlink/path.toml

    Args:
        file: Times in ms at which a packet can be sent, a line each; or a table with a header.
        delay: Delays of LeoReplayer: a number of ms of one way on each line, for 10 ms each.
        reverse: Rates of the way back; default those of the data.
        rate: Of the link, where no file has rates.
        rtt: RTT without queues, where no file has delays.
        buffer: Queue before the link, each way.
        law: Of the flow.
        columns: Columns of a table, `rate=down:Mbit/s,rtt=ping:ms,loss=lost:pct,time=t:s`; default
            as their names tell.
        every: Time between two rows of a table without times.
        out: Directory; default `lfn-trace-` and the name of the file.
    """
    from lfnlab.errors import LabError, UsageError
    from lfnlab.formats import trace as traces
    from lfnlab.scenario.builder import Scenario
    from lfnlab.scenario.quantity import seconds

    every_s = seconds("--every", every)
    if every_s is not None and every_s <= 0:
        raise UsageError(f'--every: "{every}"; allowed: more than 0')
    pairs = [part.partition("=") for part in (columns or "").split(",") if part]
    for what, equals, name in pairs:
        if not equals or not name:
            raise UsageError(f'--columns: "{what}"; allowed: WHAT=NAME or WHAT=NAME:UNIT')
    named = {what.strip(): name.strip() for what, _, name in pairs}
    there = traces.read(file, delay=delay, columns=named, every_s=every_s)
    back = None if reverse is None else traces.read(reverse, columns=None, every_s=every_s)
    files = traces.scenario(there, back=back, rate=rate, rtt=rtt, buffer=buffer, law=law)
    directory = out or Path(f"lfn-trace-{file.stem}")
    with TemporaryDirectory() as tried:
        traces.store(files, Path(tried))
        try:
            Scenario.load(Path(tried) / "path.toml").check()
        except LabError as error:
            raise UsageError(str(error).replace(tried, str(directory))) from None
    traces.store(files, directory)
    path = directory / "path.toml"
    say(*map(line, there.says), *map(line, back.says if back else ()), path, sep="\n")
    return OK


def _store(tool: str, file: Path, out: Path | None, *, anonymous: bool, **options: Any) -> int:
    """Read a file by an importer, store it, and print what is in it."""
    from lfnlab.formats import measurement

    measured = measurement.read(tool, file, **options)
    name = file.stem
    if anonymous:
        measured, name = measured.anonymous(tool), measured.summary["hash"]
    directory = out or Path(f"lfn-{tool}-{name}")
    measurement.store(measured, directory)
    flows = measured.summary["flows"]
    for flow in flows[:_MOST_FLOWS]:
        say(line(_told(flow)))
    if len(flows) > _MOST_FLOWS:
        say(f"and {len(flows) - _MOST_FLOWS:,} more flows")
    say(*map(line, measured.summary["notes"]), directory, sep="\n")
    return OK


def _told(flow: dict[str, Any]) -> str:
    """A flow on one line."""
    goodput_bps = flow["goodput_bps"]
    rate = "goodput not told" if goodput_bps is None else f"{goodput_bps / 1e6:.4g} Mbit/s"
    least_bps = flow.get("least_goodput_bps")
    if goodput_bps and least_bps is not None and least_bps < 0.999 * goodput_bps:
        rate += f", or from {least_bps / 1e6:.4g}: datagrams came late or twice"
    ends = f"  {flow['sender']} to {flow['receiver']}" if flow.get("sender") else ""
    return f"flow {flow['id']}  {flow['law']}  {flow['direction']}  {rate}{ends}"
