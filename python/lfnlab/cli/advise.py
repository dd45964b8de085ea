"""The command ``lfn advise``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lfnlab.cli.options import Jobs, Json, Out, naming_options, print_json
from lfnlab.cli.progress import bar
from lfnlab.errors import LawError, UsageError
from lfnlab.printable import say

if TYPE_CHECKING:
    from lfnlab import advise as room
    from lfnlab.advise import Advice, Offer

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
    packet: str | None = None,
    iperf3: Path | None = None,
    out: Out = Path("lfn-advice"),
    jobs: Jobs = None,
    json: Json = False,
) -> int:
    """Advise what to set for a transfer over a path: law, streams, pacing, socket buffers.

    Runs simulations, at most about 400 million packets for a path, and compares. It changes
    nothing: it prints the lines to type. Examples:

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
        law: Only these laws of the sender, with commas between: Linux's names, or our names and
            headers FILE.h for `lfn kernel load`. Default: the laws that Linux has on this host, and
            ours.
        beside: Law of a flow that shares the path all the time. Choices that leave it less than
            half of what a flow of its own law would are not advised. Default: the transfer is
            alone; the harm to one cubic flow is reported.
        packet: IP packet size; default that of the file of iperf3, or 1500B.
        iperf3: A file of `iperf3 -J`, TCP. It bounds rate, RTT, buffer and loss that are not given,
            and has the number of streams; the answer is for a worst and a best path within them.
        out: Results directory of all runs, for `lfn report`.
    """
    from lfnlab import advise as room

    shown = None if iperf3 is None else _measured(iperf3)
    paths = _paths(rate, rtt, buffer, loss, packet, shown)
    if flows is None:
        flows = 4 if shown is None else min(shown.streams, room.MOST_STREAMS)
    room.check_flows(flows)
    sizes = []
    for path in paths:
        with naming_options():
            path.check()
        sizes.append(room.bytes_of(bytes_, path))
    offers, notes = _offers(law)
    neighbour = None if beside is None else _neighbour(beside)
    advices = []
    for number, (path, size) in enumerate(zip(paths, sizes, strict=True), 1):
        with naming_options(), bar() as progress:
            search = room.Search(
                path,
                size,
                offers,
                flows=flows,
                beside=neighbour,
                prefer_linux=law is None,
                out=out if len(paths) == 1 else out / f"path-{number}",
                jobs=jobs,
                progress=progress,
            )
            advices.append(search.run())
    if bytes_ is None:
        notes.append("--bytes was not given: the data are what the link carries in 60 s.")
    given = {"rate": rate, "RTT": rtt, "buffer": buffer, "loss": loss}
    left = [] if shown is None else [b for b in shown.bounds if given[b.name] is None]
    if shown is not None and left:
        shown = replace(shown, bounds=tuple(left))
        notes = [bound.note for bound in left] + notes
    _print(shown if left else None, advices, notes, out, json)
    return OK


def _print(
    shown: room.Measured | None,
    advices: Sequence[Advice],
    notes: Sequence[str],
    out: Path,
    json: bool,
) -> None:
    from lfnlab import advise as room

    if json:
        said = (
            room.to_json(advices[0], notes)
            if shown is None
            else room.ranged_json(shown, advices, notes)
        )
        print_json(said)
        return
    if shown is None:
        say(*room.lines(advices[0], notes), sep="\n")
    else:
        say(*room.ranged(shown, advices, notes), sep="\n")
    folders = [out] if len(advices) == 1 else [out / f"path-{n + 1}" for n in range(len(advices))]
    for folder in folders:
        say(f"Runs: {folder}; lfn report {folder} shows them.")


def _paths(
    rate: str | None,
    rtt: str | None,
    buffer: str | None,
    loss: float | None,
    packet: str | None,
    shown: room.Measured | None,
) -> list[room.Path]:
    """The path of the options, or those within the bounds of a file of iperf3."""
    from lfnlab import advise as room

    if shown is not None:
        with naming_options():
            return shown.cases(rate, rtt, buffer, loss, packet or shown.packet)
    examples = {"--rate": "10Gbit/s", "--rtt": "180ms", "--buffer": "4MB"}
    for option, value in zip(examples, (rate, rtt, buffer), strict=True):
        if value is None:
            raise UsageError(f"{option}: not given; write for example {option} {examples[option]}")
    assert rate is not None
    assert rtt is not None
    assert buffer is not None
    return [room.Path(rate, rtt, buffer, 0.0 if loss is None else loss, packet or "1500B")]


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
