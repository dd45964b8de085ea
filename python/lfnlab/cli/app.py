"""The command ``lfn``. Heavy modules are imported by the commands that need them."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter, validators

from lfnlab import _core
from lfnlab.cli import doctor, transfer
from lfnlab.cli import evaluate as evaluation
from lfnlab.cli import laws as law_commands
from lfnlab.cli import results as commands
from lfnlab.cli import sweep as sweeping
from lfnlab.cli import testbed as emulation
from lfnlab.cli.advise import advise
from lfnlab.cli.kernel import kernel
from lfnlab.cli.laboratory import laboratory
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
from lfnlab.cli.papers import paper
from lfnlab.cli.progress import bar, report_bar
from lfnlab.cli.setting_up import install_completion as install
from lfnlab.cli.setting_up import new
from lfnlab.cli.suites import suites
from lfnlab.cli.theory import theory
from lfnlab.errors import (
    DamageWarning,
    LabError,
    LawError,
    PrototypeError,
    ScenarioError,
    SeedsWarning,
    StoreError,
    Unavailable,
    UsageError,
)
from lfnlab.printable import line, say

if TYPE_CHECKING:
    from lfnlab.results.runs import Results
    from lfnlab.scenario.builder import Scenario
    from lfnlab.scenario.elements import FlowSettings


OK, FAILED, USAGE, STORE, UNAVAILABLE, RAISED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
_KEEP_RUNS = "advise", "agree", "compare", "evaluate", "paper", "run", "sweep", "testbed", "tune"
# What an interrupt leaves behind, by command.
_LEFT = dict.fromkeys(_KEEP_RUNS, "; finished runs are kept; repeat the command to continue") | {
    "send": "; repeat the command to continue",
    "recv": "; complete files are kept; the sender continues the others by repeating its command",
}
DEMO_LAWS = ("reno", "hstcp", "scalable", "bic", "cubic", "htcp", "westwood", "htcp-be")


def _version() -> str:
    from lfnlab.results.provenance import code_version

    return code_version()


app = App(
    name="lfn",
    version=_version,
    version_format="plaintext",
    help_format="markdown",
    suppress_keyboard_interrupt=False,  # call() ends an interrupted command
    help="""\
A congestion-control laboratory for long fat networks.

Start here:

    lfn demo
    lfn compare --rate 10Gbit/s --rtt 100ms --background 2 --law reno,cubic,htcp-be --seeds 3
    lfn run scenario.toml --json
    lfn laws cubic

Quantities have units: 10Gbit/s, 100ms, 1bdp, "250 packets". `--out` is the results directory;
stored runs are not run again, so repeating a command resumes it.

Exit codes: 0 done, 1 a check failed or a verdict changed, 2 wrong scenario or usage, 3 results
cannot be read or written, 4 not available here, 5 a law in Python raised an exception, 6 the test
bed was late, 130 interrupted.
""",
)

Count = Annotated[int, Parameter(validator=validators.Number(gte=1))]
Seed = Annotated[int, Parameter(validator=validators.Number(gte=0))]


DEMO_SEEN = """\
The buffer is small, so slow start overflows it at about half of the window that fills the path. \
Each law then grows by its own rule; the link is full once the window has doubled. Reno adds one \
segment per round trip and needs more than a minute. Westwood+ grows as slowly, from a far smaller \
window: its estimate of the bandwidth. The other laws grow faster with a larger window, or with \
more time since the loss. CUBIC starts with HyStart and the others with classic slow start; here \
both end at the same loss. lfn demo --slow-start KIND gives all laws one slow start."""


@app.command
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
    from lfnlab.experiment.run import compare
    from lfnlab.scenario.builder import dumbbell

    base = dumbbell(rate="1Gbit/s", rtt="100ms", buffer="0.1bdp", duration="60s")
    own: FlowSettings = {} if slow_start is None else {"slow_start": slow_start}
    with bar() as progress:
        results = compare(
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


@app.command(name="compare")
def compare_(
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
    from lfnlab.experiment.run import compare
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
        results = compare(
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


@app.command
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


@app.command
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


app.command(advise)
app.command(laboratory)
app.command(new)
app.command(law_commands.laws)
app.command(law_commands.port)
app.command(commands.plot)
app.command(commands.pcap)
app.command(commands.importing)
app.command(commands.table)
app.command(commands.metrics)
app.command(sweeping.sweep)
app.command(sweeping.tune)
app.command(sweeping.store)
app.command(suites)
app.command(theory)
app.command(kernel)
app.command(doctor.doctor)
app.command(transfer.send)
app.command(transfer.recv)
app.command(emulation.shell)
app.command(emulation.on_kernel, name="testbed")
app.command(emulation.agree)
app.command(paper)
app.command(evaluation.evaluate)


@app.command(name="--install-completion")
def install_completion(*, shell: Literal["bash", "zsh", "fish"] | None = None) -> int:
    """Complete commands, options and their values in the shell by the Tab key.

    Writes a script for the shell, and the line that loads it to `~/.bashrc` or `~/.zshrc`.

    Args:
        shell: The shell; default the one that runs.
    """
    return install(app, shell)


def main() -> None:
    """Entry point: errors of the user end with one line and an exit code."""
    # A signal that asks for the end, such as a batch system's at the time limit, is an interrupt.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    warnings.showwarning = _warn
    for stream in (sys.stdout, sys.stderr):
        # Where the locale cannot write a sign of a table, the table is worth more than the sign.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(call(sys.argv[1:]))


def call(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        code: int | None = app(
            _with_standard_input(arguments),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        print(end="", flush=True)
        return code or OK
    except CycloptsError as error:
        return _fail(USAGE, f"{error} See lfn --help.")
    except UnicodeEncodeError as error:
        found = error.object[error.start : error.end]
        return _fail(USAGE, f"{os.fsencode(found)!r} is not UTF-8 text")
    except StoreError as error:
        return _fail(STORE, error)
    except Unavailable as error:
        return _fail(UNAVAILABLE, error)
    except (ScenarioError, LawError, UsageError) as error:
        return _fail(USAGE, error)
    except PrototypeError as error:
        traceback.print_exception(error.__cause__)
        return _fail(RAISED, error)
    except LabError as error:
        return _fail(FAILED, error)
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, f"interrupted{_LEFT.get(''.join(arguments[:1]), '')}")
    except OSError as error:
        # The results have an error of their own, so this is stdout. Python flushes it once more at
        # exit: give it somewhere to go.
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return OK  # the reader has seen enough
        return _fail(STORE, f"{error.filename or 'stdout'}: {error.strerror}")


def _with_standard_input(arguments: Sequence[str]) -> Sequence[str]:
    """``run -``, whose file cyclopts would take for an option."""
    if arguments[:1] != ["run"] or "-" not in arguments or "--" in arguments:
        return arguments
    place = arguments.index("-")
    return [*arguments[:place], *arguments[place + 1 :], "--", "-"]


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, SeedsWarning):
        return  # the commands say so beside their results
    kind = "" if issubclass(category, DamageWarning) else f"{category.__name__}: "
    say(line(f"lfn: {kind}{message}"), file=sys.stderr)


def _fail(code: int, why: object) -> int:
    say(line(f"lfn: {why}"), file=sys.stderr)
    return code


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
