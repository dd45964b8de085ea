"""``lfn suite``: benchmarks of the field. Heavy modules wait until one is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter, validators

from lfnlab import _core
from lfnlab.cli import sweep as sweeping
from lfnlab.cli.options import Jobs, Json, Memory, Out, Report, naming_options, print_json
from lfnlab.cli.progress import bar
from lfnlab.errors import UsageError
from lfnlab.printable import say

OK = 0
Count = Annotated[int, Parameter(validator=validators.Number(gte=1))]

suites = App(name="suite", help="Run a benchmark of the field.")


@suites.command
def tcpeval(
    *,
    law: str,
    experiment: Literal[
        "basic",
        "delay-throughput",
        "ramp-up",
        "transients",
        "impact",
        "fairness",
        "parking-lot",
    ] = "basic",
    scenario: str | None = None,
    load: str | None = None,
    quick: Annotated[bool, Parameter(negative="")] = False,
    tmrg: Annotated[bool, Parameter(negative="")] = False,
    seeds: Count = 1,
    out: Out = Path("lfn-tcpeval"),
    jobs: Jobs = None,
    memory: Memory = None,
    json: Json = False,
    report: Report = True,
) -> int:
    """Run the common TCP evaluation suite (draft-irtf-iccrg-tcpeval-01) with one law.

    A random model replaces the suite's traces, which may not be distributed; docs/suite.md lists
    our other choices. A seed of the full basic scenarios takes about 15 minutes of one core and
    4 GB. Examples:

        lfn suite tcpeval --law cubic --quick
        lfn suite tcpeval --law htcp --scenario access,geo-satellite --load 85 --seeds 3
        lfn suite tcpeval --law htcp --experiment impact --seeds 3 --json

    `basic` gives utilization, drop rate and mean queueing delay in each direction. `ramp-up`: time
    until a new flow has its share. `transients`: reactions to steps of UDP traffic. `impact`:
    goodput that standard TCP loses. `fairness`: two flows, RTTs of 10 to 160 ms.

    Args:
        law: The law of all connections under test, NAME or NAME:VARIANT.
        experiment: The basic scenarios or one of the suite's further experiments.
        scenario: Of `basic`, with commas between: `data-centre`, `access`, `trans-oceanic`,
            `geo-satellite`, `wlan`, `dial-up`; default all.
        load: Of `basic`, percent of the central link's rate: `60`, `85`, `110`; default all.
        quick: Divide all times by 20, in ramp-up and transients by 5; a trial, not a result.
        tmrg: Of `basic`, `delay-throughput`, `ramp-up`: as TMRG's suite of 2009 has them.
        seeds: Runs of each case; figures are means over them with 95 % intervals.
        out: Results directory.
    """
    from lfnlab.analysis.table import plain
    from lfnlab.experiment.run import execute
    from lfnlab.suite import tcpeval

    _core.limit_memory(memory)
    chosen, asked = tcpeval.plan(experiment, law, scenario, load, quick=quick, tmrg=tmrg)
    with naming_options(), bar() as progress:
        results = execute(
            chosen.cases(asked),
            seeds=seeds,
            out=out,
            jobs=jobs,
            progress=progress,
            title=f"TCP evaluation suite, {chosen.title}: {law}",
        )
    rows = tcpeval.measured(chosen, results)
    notes = tcpeval.notes(asked, results)
    made = tcpeval.table(chosen, rows, seeds)
    page = sweeping.write_page(results, {"Suite": made}) if report else None
    if json:
        print_json(tcpeval.to_json(experiment, asked, rows, notes))
    else:
        say(f"{law}: {chosen.title}")
        say(*plain(made), *notes, sep="\n")
        sweeping.print_next(out, page)
    return OK


@suites.command(name="bbr")
def suite_bbr(
    *,
    case: str | None = None,
    variant: Literal["draft", "undo"] | None = None,
    law: str | None = None,
    out: Out = Path("lfn-bbr"),
    jobs: Jobs = None,
    json: Json = False,
) -> int:
    """Run the example test cases of BBR's draft (draft-ietf-ccwg-bbr) with bbr3 or another law.

    A verdict is one on an implementation: `pass` if all that a case wants was seen, else `fail`.
    With `--law` a case is judged from outside, by rate, window and data in flight; ten of 22 cannot
    be. docs/bbr-cases.md explains each failure of bbr3. Examples:

        lfn suite bbr
        lfn suite bbr --case 18,19 --variant undo
        lfn suite bbr --law ./mine.so

    Args:
        case: Numbers of cases, with commas between; default all.
        variant: Of bbr3, as `lfn laws bbr3` describes them; default `draft`.
        law: A law to judge from outside: a name, FILE.so or FILE.py:CLASS.
        out: Results directory.
    """
    from lfnlab.analysis.table import plain
    from lfnlab.suite import bbr

    if law is not None and variant is not None:
        raise UsageError("--law, --variant: allowed: one of them")
    chosen, of = bbr.chosen(case), variant or bbr.DRAFT
    with naming_options(), bar() as progress:
        if law is None:
            verdicts = bbr.run(chosen, out, variant=of, jobs=jobs, progress=progress)
        else:
            verdicts = bbr.run_outside(chosen, out, law, jobs=jobs, progress=progress)
    if json:
        print_json(bbr.to_json(verdicts) | ({"variant": of} if law is None else {"law": law}))
    else:
        say(*plain(bbr.table(verdicts)), sep="\n")
    return OK
