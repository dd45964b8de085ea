"""``lfn shell``, ``lfn testbed``, ``lfn agree``: programs and scenarios over an emulated path."""

from __future__ import annotations

import json as json_
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from lfnlab import _core
from lfnlab.cli.options import (
    Json,
    Out,
    Set,
    backend,
    naming_options,
    print_json,
    settings,
    with_settings,
)
from lfnlab.errors import UsageError
from lfnlab.machine import needs_linux
from lfnlab.printable import say
from lfnlab.results import output
from lfnlab.testbed.validity import COALESCE, invalid

if TYPE_CHECKING:
    from lfnlab.scenario.elements import FlowSettings

OK, DIFFERS, INVALID = 0, 1, 6
SHELLS = {"ash", "bash", "csh", "dash", "fish", "ksh", "sh", "tcsh", "zsh"}
"""Programs that are interactive without an argument."""


def shell(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)],
    rate: str = "1Gbit/s",
    rtt: str = "100ms",
    buffer: str = "1bdp",
    loss: float | None = None,
    packet: str | None = None,
    set_: Set = (),
    scenario: Path | None = None,
    serve: str | None = None,
    here: Annotated[bool, Parameter(negative="")] = False,
    coalesce: str = COALESCE,
    offload: bool = True,
    report: Path | None = None,
    live: bool | None = None,
) -> int:
    """Run a program behind an emulated path, in a new network namespace.

    `LFN_FAR` has the address of the far end. Everything is removed when the program ends. Without
    root, the program is root in a user namespace. The exit code is the program's. Examples:

        lfn shell --rate 1Gbit/s --rtt 180ms --serve "iperf3 -s" -- sh -c 'iperf3 -c $LFN_FAR'
        lfn shell --rate 100Mbit/s --rtt 20ms -- bash
        lfn shell --scenario scenario.toml --serve ./server -- ./client

    Args:
        command: Program and arguments, after `--`.
        rate: Rate of the path in each direction.
        rtt: Round-trip time of the path.
        buffer: Buffer in each direction: `1bdp`, `250 packets` or `12.5MB`.
        loss: Loss probability of each packet in each direction; pure ACKs are never lost; default
            0.
        packet: MTU, `1500B` or `9000B`.
        scenario: Use the path of this file's first flow, with queues, losses and schedule, instead
            of the options above.
        serve: Line for `sh` that runs at the far end. The command begins when it listens on a TCP
            port, or after 5 s; the line ends with the command.
        here: Use the caller's network namespace as the far end, also inside another `lfn shell`:
            paths in series. Needs root.
        coalesce: Segments of a burst that are due within this time are delivered together with the
            last of them. A longer time costs less CPU; 0s delivers each alone.
        offload: TCP may send several segments in one, as with segmentation offload; otherwise each
            leaves by itself.
        report: File for counters and lateness of the path, in JSON.
        live: A line a second on the terminal shows rate, RTT, cwnd, queue, drops and
            lateness; default yes, except for an interactive shell and in another `lfn shell`.
    """
    needs_linux("lfn shell")
    if not command:
        raise UsageError("no command; write it after --, for example: lfn shell -- bash")
    said = settings(set_)
    if scenario is None:
        ours: FlowSettings = {} if packet is None else {"packet": packet}
        from lfnlab.scenario.builder import dumbbell

        options = dumbbell(rate=rate, rtt=rtt, buffer=buffer, loss=loss).flow("reno", **ours)
        text, file = with_settings(options, said).to_toml(), "scenario"
    elif said:
        from lfnlab.scenario.builder import Scenario

        text, file = with_settings(Scenario.load(scenario), said).to_toml(), "scenario"
    else:
        text, file = _core.read(str(scenario)), str(scenario)
    if report is not None:
        output.refuse_others(report)
    with naming_options(said):
        path = _core.Scenario(text, file, prototypes=False)
        live = _live(live, command)
        code, done = _core.run_shell(
            path, command, serve, here, coalesce, live=live, offload=offload
        )
    counted: dict[str, Any] = json_.loads(done)
    if report is not None:
        said = {**counted, "note": output.MARK}
        output.write(report, (json_.dumps(said, indent=1) + "\n").encode())
    if why := invalid(counted):
        say(f"lfn: INVALID: {why}", file=sys.stderr)
    return code


def _live(wanted: bool | None, command: Sequence[str] = ()) -> bool:
    """Whether lines show the path, if stderr is a terminal.

    They would disturb an interactive shell, and those of a path in a path would mix with the outer.
    """
    if os.environ.get("TERM", "dumb") == "dumb":
        return False
    if wanted is not None:
        return wanted
    if "LFN_FAR" in os.environ:
        return False
    if not command or Path(command[0]).name not in SHELLS:
        return True
    return any(not word.startswith("-") or word == "-c" for word in command[1:])


def on_kernel(
    file: Path,
    /,
    *,
    set_: Set = (),
    seed: int | None = None,
    iperf3: Annotated[bool, Parameter(negative="")] = False,
    offload: bool = True,
    out: Out = Path("lfn-testbed"),
    json: Json = False,
    live: bool | None = None,
) -> int:
    """Run a scenario on the TCP of this kernel, over the emulated path.

    All flows have the same path. Laws are the kernel's, or ours if loaded. Tables, summary and
    report have the simulator's form. A run is marked invalid if the emulator was late or lost
    packets. Example: `lfn testbed scenario.toml --out measured`

    Args:
        file: A scenario in TOML.
        seed: Seed of the path's random losses; default the file's.
        iperf3: Let iperf3 send the TCP flows, instead of lfn.
        offload: TCP may send several segments in one, as with segmentation offload; otherwise each
            leaves by itself, as in the simulator.
        out: Results directory.
        live: A line a second on the terminal shows rate, RTT, cwnd, queue, drops and
            lateness; default yes.

    Exit code 6 if the run is invalid.
    """
    from lfnlab.analysis.summary import averages, summary_tables, to_json
    from lfnlab.analysis.table import Table, plain
    from lfnlab.experiment.plan import Case
    from lfnlab.figures.report import write_report
    from lfnlab.scenario.builder import Scenario
    from lfnlab.testbed import run as bed

    scenario = with_settings(Scenario.load(file), settings(set_))
    if seed is not None:
        scenario = scenario.with_seed(seed)
    title = f"{scenario.name or file.stem}, on Linux"
    cases = [Case(scenario)]
    plans = bed.plans(cases, file=str(file), iperf3=iperf3, offload=offload)
    results = bed.run(cases, plans, out=out, title=title, live=_live(live))
    summary = results.runs[0].summary
    said, why = summary["testbed"], summary["invalid"]
    late = said["lateness"]
    verdict = f"INVALID: {why}" if why else "valid"
    rows = (
        ("this run", verdict),
        ("late by p50, p99, p99.9, max (µs)", _us(late)),
        ("emulator's share of a core", f"{said['cpu_s'] / said['wall_s']:.0%}"),
    )
    page = write_report(results, tables={"Test bed": Table(("test bed", ""), rows, 1)})
    if json:
        print_json(to_json(results))
    else:
        for table in summary_tables(results):
            say(*plain(table), sep="\n")
        say(averages(results), f"report: {page.resolve()}", sep="\n")
    if why:
        say(f"lfn: INVALID: {why}", file=sys.stderr)
        return INVALID
    return OK


def _us(late: dict[str, float]) -> str:
    return ", ".join(f"{late[key]:.0f}" for key in ("p50_us", "p99_us", "p999_us", "max_us"))


def agree(
    file: Path,
    /,
    *,
    law: str | None = None,
    seed: int | None = None,
    on: Literal["testbed", "linux"] = "testbed",
    linux: Path | None = None,
    out: Out = Path("lfn-agree"),
    json: Json = False,
) -> int:
    """Run a scenario in the simulator and on Linux's TCP, and compare them.

    The table has goodput, sawtooth, windows and drops of each flow after the warm-up; the figure
    has the windows. The bars are 3 % in goodput, 5 % in period and mean window. Laws are ours
    if loaded (`lfn kernel load LAW --for lfn agree ...`), else this kernel's; on Linux in virtual
    time they are ours. Example: `lfn agree scenario.toml --law reno,htcp-be --on linux`

    Args:
        file: A scenario in TOML.
        law: Names, separated by commas: each replaces the file's laws in turn.
        seed: Seed of random losses; default the file's.
        on: The TCP of this kernel on the test bed, or Linux in virtual time.
        linux: Program that runs Linux in virtual time, for a third column.
        out: Results directory; the factor `on` tells both sides apart. Its `linux` has the output
            of `--linux`.

    Exit code 1 if a bar is not met, 6 if a measured run is invalid.
    """
    from dataclasses import replace

    from lfnlab.analysis.table import plain
    from lfnlab.experiment.plan import Case
    from lfnlab.figures.plot import courses
    from lfnlab.figures.report import write_report
    from lfnlab.scenario.builder import Scenario
    from lfnlab.testbed import agree as level2

    scenario = Scenario.from_toml(_core.read(str(file)), str(file))
    if seed is not None:
        scenario = scenario.with_seed(seed)
    cases = [Case(scenario)]
    if law is not None:
        cases = [
            Case(
                replace(scenario, flows=tuple(replace(flow, law=name) for flow in scenario.flows)),
                {"law": name},
            )
            for name in law.split(",")
        ]
    title = scenario.name or file.stem
    place = backend("linux") if on == "linux" else None
    agreement = level2.agree(
        cases, out=out, title=title, linux=linux, file=str(file), backend=place
    )
    drawn = courses(agreement.panels(), level2.WINDOW)
    page = write_report(
        agreement.results,
        figures={"windows": (drawn, f"Windows in the {level2.SIMULATOR} and on {agreement.place}")},
        tables={
            f"{level2.SIMULATOR.title()} and {agreement.place}, over whole periods of the "
            "sawtooth": agreement.table()
        },
    )
    if json:
        print_json(agreement.to_json())
    else:
        say(*plain(agreement.table()), *agreement.notes, f"report: {page.resolve()}", sep="\n")
    for name, why in agreement.invalid.items():
        say(f"lfn: INVALID: {name}: {why}", file=sys.stderr)
    if agreement.invalid:
        return INVALID
    return OK if agreement.within else DIFFERS
