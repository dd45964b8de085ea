"""Commands of ``lfn`` that run scenarios and show them: demo, compare, run, report."""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, validators

from lfnlab import _core
from lfnlab.cli.ends import OK
from lfnlab.cli.options import (
    Jobs,
    Json,
    Memory,
    On,
    OptionalOut,
    Out,
    Report,
    Set,
    backend,
    naming_options,
    print_json,
    settings,
    with_settings,
)
from lfnlab.cli.progress import bar, report_bar
from lfnlab.errors import ScenarioError, UsageError
from lfnlab.printable import line, say

if TYPE_CHECKING:
    from lfnlab.results.runs import Results
    from lfnlab.scenario.builder import Scenario
    from lfnlab.scenario.elements import FlowSettings

DEMO_LAWS = ("reno", "hstcp", "scalable", "bic", "cubic", "htcp", "westwood", "htcp-be")
Count = Annotated[int, Parameter(validator=validators.Number(gte=1))]
Seed = Annotated[int, Parameter(validator=validators.Number(gte=0))]


DEMO_SEEN = """\
The buffer is small, so slow start overflows it at about half of the window that fills the path. \
Each law then grows by its own rule; the link is full once the window has doubled. Reno adds one \
segment per round trip and needs more than a minute. Westwood+ grows as slowly, from a far smaller \
window: its estimate of the bandwidth. The other laws grow faster with a larger window, or with \
more time since the loss. CUBIC starts with HyStart and the others with classic slow start; here \
both end at the same loss. lfn demo --slow-start KIND gives all laws one slow start."""


def demo(
    *,
    slow_start: Literal["classic", "limited", "hystart", "hystart++", "rapid", "search"]
    | None = None,
    out: Out = Path("lfn-demo"),
    jobs: Jobs = None,
) -> int:
    """Run eight laws in turn, one flow each, on 1 Gbit/s x 100 ms with a buffer of 0.1 BDP.

    Args:
        slow_start: The slow start of all laws; default that of each law.
        out: Results directory.
    """
    from lfnlab.experiment.run import compare as run_all
    from lfnlab.scenario.builder import dumbbell

    base = dumbbell(rate="1Gbit/s", rtt="100ms", buffer="0.1bdp", duration="60s")
    own: FlowSettings = {} if slow_start is None else {"slow_start": slow_start}
    with bar() as progress:
        results = run_all(
            DEMO_LAWS,
            base,
            out=out,
            jobs=jobs,
            progress=progress,
            title="Eight laws on 1 Gbit/s × 100 ms with a buffer of 0.1 BDP",
            **own,
        )
    seen = DEMO_SEEN if slow_start is None else ""
    return _show(results, as_json=False, report=True, seen=seen)


def compare(
    *,
    law: str,
    rate: str = "10Gbit/s",
    rtt: str = "100ms",
    buffer: str = "1bdp",
    flows: Count = 1,
    duration: str = "60s",
    warmup: str | None = None,
    sample: str | None = None,
    loss: float | None = None,
    packet: str | None = None,
    background: int | None = None,
    compat: Literal["linux", "ns2"] | None = None,
    set_: Set = (),
    seeds: Count = 1,
    seed: Seed = 1,
    on: On = "simulator",
    out: Out = Path("lfn-results"),
    jobs: Jobs = None,
    memory: Memory = None,
    json: Json = False,
    report: Report = True,
) -> int:
    """Run several laws in turn on the same path, and compare them.

    Example: `lfn compare --law reno,cubic,htcp-be --rate 10Gbit/s --rtt 100ms --background 2`

    Args:
        law: Names, with commas between: `reno,cubic`. A variant follows a colon: `cubic:linux`. A
            law in Python is `FILE.py:CLASS`.
        rate: Bottleneck rate.
        rtt: Base RTT of the flows under test.
        buffer: Bottleneck buffer: `1bdp`, `250 packets` or `12.5MB`.
        flows: Number of flows under test, all with the same law.
        duration: Simulated time.
        warmup: Start of the averages; default 0s.
        sample: Sampling interval of the tables, or `off`.
        loss: Loss probability of each data packet; default 0.
        packet: IP packet size, `1500B` or `9000B`.
        background: Background traffic, level 0 to 3: short flows of 0, 10, 25 or 40 % of the rate,
            and on top of any level but 0 ten long flows each way of up to 2.4 Mbit/s each.
        compat: TCP of `linux` (6.12) or of `ns2`, the papers' simulator.
        seeds: Runs of each law; one if nothing is random, as without background and loss.
        seed: The first seed.
        out: Results directory.
    """
    from lfnlab.control_laws.prototype import label
    from lfnlab.experiment.run import compare as run_all
    from lfnlab.scenario.builder import dumbbell

    _core.limit_memory(memory)
    where = backend(on)
    base = dumbbell(
        rate=rate,
        rtt=rtt,
        buffer=buffer,
        duration=duration,
        loss=loss,
        warmup=warmup,
        sample=sample,
        compat=compat,
        seed=seed,
    )
    if background is not None:
        base = base.with_background(background)
    laws, said = _names(law), settings(set_)
    ours = {"count": flows} | ({} if packet is None else {"packet": packet}) | _fields(said)
    with naming_options(said):
        base = with_settings(base, {key: said[key] for key in said if not key.startswith("flow")})
        _foresee([base.flow(name, **ours) for name in laws])
    with naming_options(said), bar() as progress:
        results = run_all(
            laws,
            base,
            seeds=seeds,
            out=out,
            jobs=jobs,
            progress=progress,
            title=f"{', '.join(map(label, laws))} on {rate} × {rtt}{_where(on)}",
            backend=where,
            **ours,
        )
    return _show(results, as_json=json, report=report)


def _names(law: str) -> list[str]:
    """The laws of ``--law``."""
    laws = [name.strip() for name in law.split(",")]
    if not all(laws):
        raise ScenarioError(f'--law: an empty name in "{law}"; write for example reno,cubic:linux')
    return laws


def _where(on: str) -> str:
    """For a title."""
    return ", on Linux in virtual time" if on == "linux" else ""


def _fields(said: dict[str, Any]) -> dict[str, Any]:
    """The values of ``--set`` for flows, by the fields of a flow."""
    from lfnlab.scenario.elements import FlowSettings

    fields = FlowSettings.__annotations__
    of_flows = {key: value for key, value in said.items() if key.startswith("flow")}
    for key in of_flows:
        group, _, field = key.partition(".")
        if group not in ("flow[0]", "flow[*]") or field not in fields:
            raise UsageError(
                f"--set: {key}; allowed of flows: flow[0].KEY with KEY of {', '.join(fields)}"
            )
    return {key.partition(".")[2]: value for key, value in of_flows.items()}


def run(
    file: Path,
    /,
    *,
    set_: Set = (),
    seeds: Count = 1,
    seed: Seed | None = None,
    on: On = "simulator",
    out: Out = Path("lfn-results"),
    jobs: Jobs = None,
    memory: Memory = None,
    json: Json = False,
    report: Report = True,
) -> int:
    """Run a scenario file.

    Example: `lfn run scenario.toml --seeds 3`, where the file says

        schema = 1
        duration = "60s"
        [link]
        rate = "10Gbit/s"
        [[flow]]
        law = "cubic"
        rtt = "100ms"

    Every other key has a default. docs/reference/keys.md lists all keys.

    Args:
        file: A scenario in TOML; `-` is standard input.
        seeds: Runs, each with the next seed; one if nothing is random.
        seed: The first seed; default the file's.
        out: Results directory.
    """
    from lfnlab.experiment.executor import memory_limit_bytes
    from lfnlab.experiment.plan import Case
    from lfnlab.experiment.run import execute
    from lfnlab.scenario.builder import Scenario

    _core.limit_memory(memory)
    text = _core.read(str(file))
    said = settings(set_)
    where = backend(on)
    if not said:
        where.check(_core.Scenario(text, str(file)), memory_limit_bytes())
    scenario = with_settings(Scenario.from_toml(text, str(file)), said)
    with naming_options(said):
        where.check(_core.Scenario(scenario.to_toml()), memory_limit_bytes())
    if seed is not None:
        scenario = scenario.with_seed(seed)
    name = "standard input" if str(file) == "-" else file.stem
    title = (scenario.name or name) + _where(on)
    _foresee([scenario])
    shown_by = "lfnlab.figures.report" if report else "lfnlab.analysis.summary"
    # Runs leave this process's interpreter idle: meanwhile it loads what shows them.
    threading.Thread(target=_load, args=(shown_by,)).start()
    with bar() as progress:
        results = execute(
            [Case(scenario)],
            seeds=seeds,
            out=out,
            jobs=jobs,
            progress=progress,
            title=title,
            backend=where,
        )
    return _show(results, as_json=json, report=report)


def report(
    directory: Path,
    /,
    *,
    figures: Annotated[bool, Parameter(negative="")] = False,
    out: OptionalOut = None,
) -> int:
    """Rewrite the report of a results directory from its stored runs.

    A store that no experiment made, such as a merged one, is reported as one experiment.

    Args:
        directory: Results directory.
        figures: Write the figures as files too, `figures/NAME.png` and `.pdf`.
        out: Directory for `report.html`, `laboratory.html` and `figures`; default the results
            directory.
    """
    from lfnlab.results.index import experiment
    from lfnlab.results.store import refuse_foreign

    if out is not None:
        refuse_foreign(out, {"report.html", "laboratory.html", "figures"})
    return _show(experiment(directory), as_json=False, report=True, out=out, figures=figures)


def _load(module: str) -> None:
    """Import a module; who needs it imports it again and meets the error, if there is one."""
    with contextlib.suppress(Exception):
        importlib.import_module(module)


def _foresee(scenarios: Sequence[Scenario]) -> None:
    """Tell who waits at a terminal that theory calls the runs too short, before they begin."""
    if sys.stderr is not None and sys.stderr.isatty():
        from lfnlab.analysis import run_length

        for told in run_length.foreseen(scenarios):
            say(line(f"lfn: {told}"), file=sys.stderr)


def _show(
    results: Results,
    *,
    as_json: bool,
    report: bool,
    out: OptionalOut = None,
    figures: bool = False,
    seen: str = "",
) -> int:
    from lfnlab.analysis.summary import averages, summary_tables, to_json
    from lfnlab.analysis.table import plain
    from lfnlab.analysis.warnings import seen as warned

    page = None
    with report_bar(len(results.runs)) as step:
        notes = warned(results, step)
        if report:
            from lfnlab.figures.report import write_report

            page = write_report(results, out=out, files=figures, seen=seen, notes=notes, step=step)
    if as_json:
        print_json(to_json(results))
    else:
        for table in summary_tables(results):
            say(*plain(table), sep="\n")
        say(*map(line, (averages(results), *notes)), sep="\n")
        if seen:
            say(seen)
        if page is not None:
            say(f"report: {page.resolve()}")
    return OK
