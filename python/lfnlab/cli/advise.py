"""The command ``lfn advise``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lfnlab.cli.options import Jobs, Json, Out, naming_options, print_json
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
    packet: str | None = None,
    iperf3: Path | None = None,
    queue: str | None = None,
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
        lfn advise --rate 100Mbit/s --rtt 40ms --queue dualpi2

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
        iperf3: A file of `iperf3 -J`, TCP. The answer is what limited it, the path that fits it,
            and remedies simulated there. Rate, RTT, buffer and loss that are given are not fitted.
        queue: The bottleneck's queue marks: dualpi2 (L4S), or codel, fq-codel, pie, pi2, red with
            Classic ECN. The answer is which sender may have ECN there, and which kind. Without
            --buffer it has room for 250 ms.
        out: Results directory of all runs, for `lfn report`.
    """
    from lfnlab import advise as room

    if flows is not None:
        room.check_flows(flows)
    if iperf3 is not None:
        given = {"--bytes": bytes_, "--beside": beside, "--packet": packet, "--queue": queue}
        for option, value in given.items():
            if value is not None:
                raise UsageError(f"{option}: not with --iperf3; the file has the transfer")
        return _remedies(iperf3, rate, rtt, buffer, loss, flows, law, json)
    if queue is not None:
        senders = {"--bytes": bytes_, "--beside": beside, "--law": law, "--flows": flows}
        for option in senders:
            if senders[option] is not None:
                raise UsageError(f"{option}: not with --queue, which compares senders of its own")
        room.check_kind(queue)
        return _marking(
            _path(rate, rtt, buffer or _room(rate), loss, packet), queue, out, jobs, json
        )
    path = _path(rate, rtt, buffer, loss, packet)
    with naming_options():
        path.check()
    size = room.bytes_of(bytes_, path)
    offers, notes = offers_of(law)
    neighbour = None if beside is None else _neighbour(beside)
    with naming_options(), bar() as progress:
        search = room.Search(
            path,
            size,
            offers,
            flows=4 if flows is None else flows,
            beside=neighbour,
            prefer_linux=law is None,
            out=out,
            jobs=jobs,
            progress=progress,
        )
        advice = search.run()
    if bytes_ is None:
        notes.append("--bytes was not given: the data are what the link carries in 60 s.")
    if json:
        print_json(room.to_json(advice, notes))
    else:
        say(*room.lines(advice, notes), f"Runs: {out}; lfn report {out} shows them.", sep="\n")
    return OK


def _path(
    rate: str | None, rtt: str | None, buffer: str | None, loss: float | None, packet: str | None
) -> room.Path:
    """The path of the options."""
    from lfnlab import advise as room

    examples = {"--rate": "10Gbit/s", "--rtt": "180ms", "--buffer": "4MB"}
    for option, value in zip(examples, (rate, rtt, buffer), strict=True):
        if value is None:
            raise UsageError(f"{option}: not given; write for example {option} {examples[option]}")
    assert rate is not None
    assert rtt is not None
    assert buffer is not None
    return room.Path(rate, rtt, buffer, 0.0 if loss is None else loss, packet or "1500B")


def _room(rate: str | None) -> str | None:
    """The room of a queue for 250 ms at this rate."""
    from lfnlab.advise.marks import LEAST_BYTES, ROOM_S
    from lfnlab.scenario.quantity import BITS_PER_S, parse

    if rate is None:
        return None
    try:
        return f"{max(LEAST_BYTES, round(parse(rate, BITS_PER_S) * ROOM_S / 8))}B"
    except UsageError as error:
        raise UsageError(f"--rate: {error}") from None


def _marking(path: room.Path, queue: str, out: Path, jobs: int | None, json: bool) -> int:
    """The senders over a queue that marks."""
    from lfnlab import advise as room

    with naming_options(), bar() as progress:
        found = room.marking(path, queue, out=out, jobs=jobs, progress=progress)
    if json:
        print_json(room.marking_json(found))
    else:
        say(*room.marking_lines(found), f"Runs: {out}; lfn report {out} shows them.", sep="\n")
    return OK


def _remedies(
    file: Path,
    rate: str | None,
    rtt: str | None,
    buffer: str | None,
    loss: float | None,
    flows: int | None,
    law: str | None,
    json: bool,
) -> int:
    """The limit of the transfer in a file, its path, and remedies."""
    from lfnlab import advise as room
    from lfnlab.advise import remedy
    from lfnlab.diagnose import causes
    from lfnlab.diagnose.path import fit, given
    from lfnlab.formats import iperf3

    read = iperf3.read(file)
    shown = remedy.measured(read, str(file))
    diagnosis = causes.diagnose(shown)
    found = fit(shown, diagnosis, is_right=True)
    with naming_options():
        found = given(found, rate=rate, rtt=rtt, buffer=buffer, loss=loss)
    name = str(shown.flow["law"])
    offers, notes = offers_of(law)
    told = remedy.of_sender(name)
    result = room.remedies(
        found,
        diagnosis,
        law=told or "cubic:linux",
        offers=[offer for offer in offers if law is not None or not offer.ours],
        streams=int(shown.flow.get("streams", 1)),
        most_streams=flows or max(remedy.STREAMS),
    )
    if read.summary["iperf3"]["target_bps"]:
        limit = read.summary["iperf3"]["target_bps"] / 1e6
        notes.insert(0, f"The test was to send at most {limit:.4g} Mbit/s (-b); try it without.")
    if not told:
        notes.insert(0, f"The law {name} is not known here; cubic was simulated.")
    if json:
        print_json(result.to_json() | {"file": str(file), "notes": notes})
    else:
        say(*remedy.lines(result, str(file), notes), sep="\n")
    return OK


def offers_of(law: str | None) -> tuple[list[Offer], list[str]]:
    """The laws of ``--law``, or those of this host, and notes."""
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
