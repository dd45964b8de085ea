"""The command ``lfn advise``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from lfnlab.cli.options import naming_options
from lfnlab.cli.progress import bar
from lfnlab.errors import LawError, UsageError
from lfnlab.printable import say

if TYPE_CHECKING:
    from lfnlab import advise as room
    from lfnlab.advise import Offer

OK = 0

Quantity = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
"""A wrong one, such as -1ms, gets an error of its own."""


def advise(
    *,
    rate: Quantity = None,
    rtt: Quantity = None,
    buffer: Quantity = None,
    loss: float | None = None,
    bytes_: Annotated[str | None, Parameter("--bytes", allow_leading_hyphen=True)] = None,
    flows: int | None = None,
    law: str | None = None,
    beside: str | None = None,
    packet: str = "1500B",
    iperf3: Path | None = None,
    out: Path = Path("lfn-advice"),
    jobs: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
    json: Annotated[bool, Parameter("--json", negative="", help="Print one JSON object.")] = False,
) -> int:
    """Advise what to set for a transfer over a path: law, streams, pacing, socket buffers.

    Runs simulations, at most about 400 million packets, and compares. It changes nothing: it prints
    the lines to type. Examples:

        lfn advise --rate 10Gbit/s --rtt 180ms --buffer 4MB --loss 1e-6 --bytes 1TB
        lfn advise --rate 1Gbit/s --rtt 40ms --buffer 0.5bdp --beside cubic
        lfn advise --iperf3 test.json --buffer 2MB

    Args:
        rate: Bottleneck rate.
        rtt: RTT without queues.
        buffer: Bottleneck buffer: `4MB`, `250 packets` or `0.5bdp`.
        loss: Loss probability of each data packet, independent of the queue; default 0.
        bytes_: Data to transfer; default what the link carries in 60 s.
        flows: Most parallel streams that may be advised, 1 to 100; default 4.
        law: Only these laws of the sender, with commas between: Linux's names, or ours for `lfn
            kernel load`. Default: the laws that Linux has on this host, and ours.
        beside: Law of a flow that shares the path all the time. Choices that leave it less than
            half of what a flow of its own law would are not advised. Default: the transfer is
            alone; the harm to one cubic flow is reported.
        packet: IP packet size.
        iperf3: A file of `iperf3 -J`, TCP: rate, RTT, buffer and streams that are not given follow
            from it.
        out: Results directory of all runs, for `lfn report`.
    """
    from lfnlab import advise as room

    path, flows, notes = _path(rate, rtt, buffer, loss, packet, iperf3, flows)
    room.check_flows(flows)
    with naming_options():
        path.check()
    size = room.bytes_of(bytes_, path)
    offers, said = _offers(law)
    neighbour = None if beside is None else _neighbour(beside)
    with naming_options(), bar() as progress:
        search = room.Search(
            path,
            size,
            offers,
            flows=flows,
            beside=neighbour,
            prefer_linux=law is None,
            out=out,
            jobs=jobs,
            progress=progress,
        )
        found = search.run()
    notes += said
    if bytes_ is None:
        notes.append("--bytes was not given: the data are what the link carries in 60 s.")
    if json:
        from json import dumps

        print(dumps(room.to_json(found, notes), indent=1, allow_nan=False))
    else:
        say(*room.lines(found, notes), sep="\n")
        say(f"Runs: {out}; lfn report {out} shows them.")
    return OK


def _path(
    rate: str | None,
    rtt: str | None,
    buffer: str | None,
    loss: float | None,
    packet: str,
    iperf3: Path | None,
    flows: int | None,
) -> tuple[room.Path, int, list[str]]:
    """The path, from options first and a file of iperf3 second; streams; and what to tell."""
    from lfnlab import advise as room

    notes: list[str] = []
    if iperf3 is not None:
        measured = _measured(iperf3)
        given = {"rate": rate, "RTT": rtt, "buffer": buffer}
        notes += [note for note in measured.notes if given[note.partition(":")[0]] is None]
        rate = measured.rate if rate is None else rate
        rtt = measured.rtt if rtt is None else rtt
        buffer = measured.buffer if buffer is None else buffer
        flows = min(measured.streams, room.MOST_STREAMS) if flows is None else flows
    examples = {"--rate": "10Gbit/s", "--rtt": "180ms", "--buffer": "4MB"}
    for option, value in zip(examples, (rate, rtt, buffer), strict=True):
        if value is None:
            where = f", and {iperf3} does not show it" if iperf3 is not None else ""
            raise UsageError(
                f"{option}: not given{where}; write for example {option} {examples[option]}"
            )
    assert rate is not None
    assert rtt is not None
    assert buffer is not None
    path = room.Path(rate, rtt, buffer, 0.0 if loss is None else loss, packet)
    return path, 4 if flows is None else flows, notes


def _measured(file: Path) -> room.Measured:
    from lfnlab import advise as room
    from lfnlab.formats import iperf3

    return room.measured(iperf3.read(file), str(file))


def _offers(law: str | None) -> tuple[list[Offer], list[str]]:
    from lfnlab import advise as room

    if law is not None:
        return room.named(law), []
    here = room.here()
    offers, left = room.of_host(here)
    if not here:
        notes = ["Linux's laws on this host: none that it names; --law names those of the sender."]
    else:
        notes = [f"Linux's laws on this host: {', '.join(here)}."]
    return offers, [*notes, *(f"Left out: {reason}." for reason in left)]


def _neighbour(name: str) -> str:
    """The law of the neighbour, as Linux has it where it does."""
    from lfnlab import advise as room
    from lfnlab.control_laws.registry import laws

    try:
        return room.named(name)[0].law
    except LawError:
        pass
    allowed = [law.name for law in laws() if law.family != "router"]
    if name.partition(":")[0] not in allowed:
        raise LawError(f'--beside: "{name}"; allowed: {", ".join(allowed)}')
    return name
