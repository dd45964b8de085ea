"""The command ``lfn diagnose``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from lfnlab.cli.advise import offers_of
from lfnlab.cli.options import Json, print_json
from lfnlab.errors import UsageError
from lfnlab.printable import line, say

OK = 0


def diagnose(
    *files: Annotated[Path, Parameter(allow_leading_hyphen=False)],
    kind: Literal["iperf3", "ss", "capture", "qlog", "flent"] | None = None,
    at: Literal["sender", "receiver", "between"] | None = None,
    every: str | None = None,
    law: str | None = None,
    page: Path | None = None,
    scenario: Path | None = None,
    anonymous: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> int:
    """Find what limited a measured transfer: window, buffer, losses, path, application.

    Takes what other tools measured, each file by its content; several files of one transfer
    together tell more. Fits the path, and simulates there what other settings would give; it
    changes nothing. Examples:

        lfn diagnose test.json
        lfn diagnose test.json sender.pcap --page slow.html
        lfn diagnose transfer.log --json

    Args:
        files: Of `iperf3 -J`, `ss -tin`, tcpdump, qlog or flent.
        kind: Tool that wrote the files; default as their content tells.
        at: Where a capture was made; default as its round-trip times show.
        every: Time between two calls of ss, of a log without times.
        law: Laws that the sender can have, with commas between; default those of this host.
        page: Write an HTML page with the causes over time.
        scenario: Write the fitted path as a scenario file, for `lfn run`.
        anonymous: Tell no address, port, name of a machine, or name of a file.
    """
    from lfnlab.advise import remedy
    from lfnlab.diagnose import result
    from lfnlab.results import output
    from lfnlab.scenario.quantity import seconds

    if not files:
        raise UsageError("no file; write for example lfn diagnose test.json")
    found = result.examine(
        files, kind, at=at, every_s=seconds("--every", every), anonymous=anonymous
    )
    offers, _ = offers_of(law)
    some = [offer for offer in offers if law is not None or not offer.ours]
    remedies, notes = remedy.after(found, some)
    written = []
    if scenario is not None:
        if found.fit is None:
            raise UsageError("--scenario: no path was fitted, so there is no file")
        output.write(scenario, f"# {output.MARK}\n{found.fit.scenario()}".encode())
        written.append(scenario)
    if page is not None:
        from lfnlab.figures import diagnosis

        output.write(page, diagnosis.page(found, remedies).encode())
        written.append(page)
    if json:
        told = [] if remedies is None else remedies.to_json()["remedies"]
        print_json(result.to_json(found) | {"remedies": told})
        return OK
    said = [*result.lines(found), *notes]
    if remedies is not None:
        said += ["", *remedy.ranked(remedies)]
    say(*map(line, said), *written, sep="\n")
    return OK
