"""Commands of ``lfn`` for sweeps and their stores."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from lfnlab import _core
from lfnlab.cli.options import (
    Jobs,
    Json,
    Memory,
    Names,
    On,
    Out,
    Report,
    Set,
    backend,
    print_json,
    settings,
    with_settings,
)
from lfnlab.cli.progress import bar, report_bar
from lfnlab.errors import UsageError
from lfnlab.machine import cores
from lfnlab.printable import line, say

if TYPE_CHECKING:
    from lfnlab.analysis.table import Table
    from lfnlab.experiment.plan import Estimate
    from lfnlab.experiment.sweep import Sweep
    from lfnlab.experiment.tune import Search, Tuned
    from lfnlab.results.index import Catalog
    from lfnlab.results.runs import Results

OK, FAILED = 0, 1
SHOWN = 5
"""Points of a search."""
LISTED = 20
"""Longest list of failures, damaged runs or rows of a table."""
MOST_SUMMARISED = 1000
"""Runs whose summaries are read for the table at the end of a sweep."""


def sweep(
    file: Path | None = None,
    /,
    *,
    extend: Path | None = None,
    law: Names = (),
    add: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    set_: Set = (),
    on: On = "simulator",
    out: Out = Path("lfn-results"),
    jobs: Jobs = None,
    executor: str = "local",
    shard: str | None = None,
    memory: Memory = None,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
    report: Report = True,
) -> int:
    """Run a scenario with many values of its keys, from the file's table `[sweep]`.

    Each run is stored when it ends; `lfn report`, `plot` and `table` show what is there while it
    runs. Repeating the command runs the missing and the failed runs. Failed runs are listed, with
    exit code 1. Examples:

        lfn sweep scenario.toml --dry-run
        lfn sweep scenario.toml --out results
        lfn sweep scenario.toml --out results --executor dask --jobs 8
        lfn sweep scenario.toml --out part-2 --shard 2/10
        lfn sweep --extend results --law htcp
        lfn sweep --extend results --add link.queue.size=2bdp

    docs/sweep.md describes `[sweep]` and the results.

    Args:
        file: A scenario in TOML with a table `[sweep]`.
        extend: Instead of a file: the results of a sweep or comparison, to which `--law` and
            `--add` add cases; only these run, and what is missing.
        law: With `--extend`: further laws, with commas between.
        add: With `--extend`: `KEY=VALUE`, a further value of a key, repeatable.
        out: Results directory.
        jobs: Runs at a time, fewer if memory is short; default one for each core. With Dask, the
            number of processes; with a batch system, of jobs.
        executor: `local` (threads), `dask` (processes of this machine), `dask://HOST:PORT`, or
            `dask-jobqueue:slurm`, `:pbs`, `:htcondor` as dask-jobqueue is configured.
        shard: `i/n`: only the i-th of n parts of the runs.
        dry_run: Print the number of runs and their predicted time, memory and disk space; run none.
    """
    from lfnlab.experiment.executor import check_executor
    from lfnlab.experiment.extend import Experiment
    from lfnlab.experiment.plan import Plan
    from lfnlab.experiment.sweep import Sweep
    from lfnlab.results import remote
    from lfnlab.results.integrity import incomplete
    from lfnlab.results.store import check_layout, stored

    _core.limit_memory(memory)
    check_executor(executor)
    if extend is not None:
        if file is not None or set_ or shard is not None:
            raise UsageError("--extend: it says what ran; leave out FILE, --set, --shard")
        if not (law or add):
            raise UsageError("--extend: write --law NAME or --add KEY=VALUE")
        pairs = [pair for text in add for pair in settings((text,), "--add").items()]
        more = Experiment.load(extend).extended(law, pairs)
        if dry_run:
            estimate = more.plan.estimate(stored(extend), jobs or cores())
            _print_estimate(None, estimate, as_json=json)
            return OK
        with bar() as progress:
            results = more.run(
                out=extend,
                title=more.title,
                jobs=jobs,
                executor=executor,
                progress=progress,
                failed=progress.failed,
                backend=backend(more.on),
            )
        return _end(results, report=report, as_json=json)
    if file is None or law or add:
        raise UsageError(
            "sweep: write lfn sweep FILE, or lfn sweep --extend DIR with --law NAME or "
            "--add KEY=VALUE"
        )
    part = None if shard is None else _shard(shard)
    if dry_run and on == "linux":
        raise UsageError("--dry-run: it predicts what the simulator needs; leave out --on linux")
    where = backend(on)
    asked = Sweep.load(file)
    said = settings(set_)
    asked = asked.with_settings(with_settings(asked.base, said), said)
    if dry_run:
        plan = Plan(asked.cases, asked.seeds, summaries=True).shard(*part or (1, 1))
        there: set[str] = set()
        out = remote.local(out)
        if (out / "runs").is_dir():
            check_layout(out)
            there = {key for key in stored(out) if incomplete(out / "runs" / key) is None}
        estimate = plan.estimate(there, jobs or cores())
        _print_estimate(asked, estimate, as_json=json)
        return OK
    with bar() as progress:
        results = asked.run(
            out=out,
            jobs=jobs,
            executor=executor,
            shard=part,
            progress=progress,
            failed=progress.failed,
            title=asked.base.name or file.stem,
            backend=where,
        )
    return _end(results, report=report and part is None, as_json=json)


def _end(results: Results, *, report: bool, as_json: bool) -> int:
    """Write the page, print what ran; the exit code."""
    from lfnlab.results import remote

    whole = report and results.runs and not remote.kept(results.root)
    _print_swept(results, write_page(results) if whole else None, as_json=as_json)
    return FAILED if results.failures else OK


def tune(
    file: Path,
    /,
    *,
    out: Out = Path("lfn-results"),
    jobs: Jobs = None,
    executor: str = "local",
    json: Json = False,
    report: Report = True,
) -> int:
    """Search for values of keys that minimise an objective, from the file's table `[tune]`.

    The best point is run again with new seeds. Repeating the command resumes the search. Needs
    Optuna, lfnlab[search]. Example:

        lfn tune scenario.toml --out results

    docs/sweep.md describes `[tune]`.

    Args:
        file: A scenario in TOML with a table `[tune]`.
        out: Results directory.
        jobs: Runs at a time; default one for each core.
        executor: See `lfn sweep`.
    """
    from lfnlab.experiment.executor import check_executor
    from lfnlab.experiment.tune import Search
    from lfnlab.results.runs import Results

    check_executor(executor)
    search = Search.load(file)
    with bar() as progress:
        tuned = search.run(out=out, jobs=jobs, executor=executor, progress=progress)
    page = write_page(Results.load(out)) if report else None
    _print_tuned(search, tuned, as_json=json)
    if not json:
        print_next(out, page)
    return OK


store = App(name="store", help="Maintain a results directory: list, check, clean, merge.")


@store.command(name="ls")
def list_(
    directory: Path = Path("lfn-results"),
    /,
    *,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """List the runs of a store: key, code, seed, laws, scenario. Exit code 1: some are damaged.

    A star marks runs of another version of the code than this one: the same command would run them
    again, and their numbers may differ (CHANGELOG.md says where).

    Example: `lfn store ls lfn-results`

    Args:
        directory: Results directory.
        json: Print a JSON list.
    """
    import polars as pl

    from lfnlab.results.index import Catalog
    from lfnlab.results.provenance import code_version

    catalog = Catalog(directory)
    this = code_version()
    runs = (
        catalog.whole()
        .group_by("key", maintain_order=True)
        .agg(
            pl.first("code", "seed", "name", "sim_s", "cpu_s"),
            laws=pl.col("law").drop_nulls().unique(maintain_order=True),
        )
        # On Linux the code has the kernel's build behind ours.
        .with_columns(current=(pl.col("code") + " ").str.starts_with(f"{this} "))
        .sort("code", "key")
        .collect()
    )
    if json:
        print_json(runs.to_dicts())
        return _tell_damaged(catalog)
    for run in runs.iter_rows(named=True):
        laws = ",".join(run["laws"])
        code = f"{run['code']}{' ' if run['current'] else '*'}"
        say(line(f"{run['key']}  {code} {run['seed']:6}  {laws:20}  {run['name'] or ''}"))
    said = f"{runs.height:,} runs, {runs['code'].n_unique()} versions of the code"
    if others := runs.height - int(runs["current"].sum()):
        said += (
            f"; * {others:,} of another version than {this}: repeating the command runs them again"
        )
    say(line(said), file=sys.stderr)
    return _tell_damaged(catalog)


@store.command
def export(directory: Path, file: Path | None = None, /) -> int:
    """Write the last experiment of a store as a file for `lfn sweep`, which makes the same runs.

    The file has what `--set` and other options said. It names files by absolute paths. Example:

        lfn store export lfn-results again.toml

    Args:
        directory: Results directory.
        file: The file; it must not exist. Default: print it.
    """
    from lfnlab.cli.setting_up import write
    from lfnlab.experiment.export import export as exported

    made = exported(directory)
    if file is None:
        say(made.text, end="")
        return OK
    return write(file, made.text, f"{made.command} {file}")


def _tell_damaged(catalog: Catalog) -> int:
    if not catalog.wrong:
        return OK
    say(f"lfn: {len(catalog.wrong):,} damaged runs are left out:", file=sys.stderr)
    for why in list(catalog.wrong.values())[:LISTED]:
        say(line(f"lfn: {why}"), file=sys.stderr)
    return FAILED


@store.command
def show(directory: Path, key: str, /) -> int:
    """Show one run: its scenario, its provenance, its result.

    Example: `lfn store show lfn-results 07b4`

    Args:
        directory: Results directory.
        key: Key of the run, or its first letters.
    """
    from lfnlab.results import maintenance, remote
    from lfnlab.results.integrity import provenance_of
    from lfnlab.results.store import read_json, read_text

    run = maintenance.find(remote.local(directory), key)
    say(f"# {run / 'scenario.toml'}\n{read_text(run / 'scenario.toml')}")
    print(f"# {run / 'provenance.json'}")
    print_json(provenance_of(run))
    print(f"# {run / 'summary.json'}")
    print_json(read_json(run / "summary.json"))
    return OK


@store.command
def verify(directory: Path = Path("lfn-results"), /) -> int:
    """Compare every file of results with its stored hash. Exit code 1 if one differs.

    Example: `lfn store verify lfn-results`

    Args:
        directory: Results directory.
    """
    from lfnlab.results import maintenance, remote
    from lfnlab.results.integrity import KEY, remedy
    from lfnlab.results.runs import is_measurement

    root = remote.local(directory)
    if is_measurement(root):
        why = maintenance.measurement_fault(root)
        say(f"1 measurement, {int(why is not None)} damaged")
        if why is not None:
            say(line(f"{why}; import it again"))
        return OK if why is None else FAILED
    checked, damaged, wrong = 0, 0, []
    for name, found in maintenance.verify(root):
        is_run = KEY.fullmatch(name) is not None
        checked += is_run
        if found is not None:
            damaged += is_run
            wrong.append(f"{found.key}: {found.why}")
    _print_some(wrong)
    say(f"{checked:,} runs, {damaged:,} damaged")
    if damaged:
        say(remedy(directory))
    return FAILED if wrong else OK


@store.command
def gc(
    directory: Path = Path("lfn-results"),
    /,
    *,
    code: str | None = None,
    damaged: Annotated[bool, Parameter(negative="")] = False,
    yes: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """List files of killed processes, and runs that you select; with `--yes`, remove them.

    Files younger than an hour stay: another process may be writing them. Examples:

        lfn store gc lfn-results
        lfn store gc lfn-results --code 0.1.0+07b4c1d2e3f4 --yes

    Args:
        directory: Results directory.
        code: Also the runs of this version of the code, as `lfn store ls` lists it.
        damaged: Also the runs that `lfn store verify` finds damaged.
        yes: Remove them.
    """
    from lfnlab.results import maintenance
    from lfnlab.results.index import Catalog

    found = maintenance.garbage(directory, code=code, damaged=damaged)
    left = sum(entry.name.startswith(".") for entry in found)
    if not yes:
        say(*map(line, found), sep="\n", end="\n" if found else "")
        say(f"{left:,} leftovers and {len(found) - left:,} runs; --yes removes them")
        return OK
    maintenance.remove(found)
    Catalog(directory)
    say(f"removed {left:,} leftovers and {len(found) - left:,} runs")
    return OK


@store.command
def merge(into: Path, /, *sources: Path) -> int:
    """Copy the missing runs of other stores into one; damaged runs are not copied.

    Exit code 1 if a run was damaged, or if two stores have it with different bytes. Example:

        lfn store merge results part-1 part-2 part-3

    Args:
        into: Results directory, created if missing.
        sources: Results directories.
    """
    from lfnlab.results import maintenance, remote
    from lfnlab.results.index import Catalog
    from lfnlab.results.store import Store

    if not sources:
        raise UsageError("store merge: no source; write lfn store merge INTO FROM...")
    for source in sources:
        maintenance.runs_of(remote.local(source))
    home = Store(into)
    wrong = []
    for source in sources:
        merged = maintenance.merge(remote.local(source), home)
        say(f"{source}: {merged.taken:,} runs copied, {merged.there:,} already stored")
        wrong += [f"{source}: {found.key}: {found.why}" for found in merged.damaged]
        wrong += [f"{source}: {key}: other bytes than in {into}" for key in merged.unequal]
    _print_some(wrong)
    Catalog(into)
    return FAILED if wrong else OK


def _shard(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise UsageError(f'--shard: "{text}"; allowed: i/n with i from 1 to n, such as 2/10')
    return int(part), int(parts)


def _print_estimate(asked: Sweep | None, estimate: Estimate, *, as_json: bool) -> None:
    """The cost of a sweep, or of an experiment that is extended."""
    if as_json:
        points = {} if asked is None else {"points": len(asked.design)}
        print_json(vars(estimate) | points)
        return
    todo = estimate.runs - estimate.there
    of = ""
    if asked is not None:
        of = f" of {len(asked.design):,} points ({', '.join(asked.design.keys())})"
    say(f"{estimate.runs:,} runs{of}: {estimate.there:,} stored, {todo:,} to run")
    if estimate.alone:
        say(f"{estimate.alone:,} points run once: they have no randomness")
    if not todo:
        return
    say(
        f"time    about {_span(estimate.wall_s)}, {estimate.jobs} at a time; CPU "
        f"{_span(estimate.cpu_s)} (measured on {estimate.probed} of the runs)"
    )
    say(
        f"memory  about {_size(estimate.memory_bytes)} for the largest run; "
        f"the limit is {_size(estimate.limit_bytes)}"
    )
    say(f"disk    about {_size(estimate.disk_bytes)}")


def _print_tuned(search: Search, tuned: Tuned, *, as_json: bool) -> None:
    from lfnlab.analysis.table import Table, plain, with_interval

    equals = tuned.equals()
    texts = [objective.text for objective in search.objectives]
    several = len(texts) > 1
    if as_json:
        said = {
            "schema": 1,
            "minimise": texts if several else texts[0],
            "best": tuned.best.point,
            "objective": tuned.best.objective.to_json(),
            "confirmed": tuned.confirmed.to_json(),
            "equals": [trial.point for trial in equals],
            "front": [
                {
                    "point": trial.point,
                    "objectives": [value.to_json() for value in trial.objectives],
                    "confirmed": [value.to_json() for value in confirmed],
                    "feasible": feasible,
                }
                for trial, confirmed, feasible in zip(
                    tuned.front, tuned.confirmed_front, tuned.confirmed_feasible, strict=True
                )
            ],
            "trials": [
                {
                    "point": trial.point,
                    "values": trial.vector if several else trial.values,
                    "constraints": trial.constraints,
                    "feasible": trial.feasible,
                }
                for trial in tuned.trials
            ],
        }
        print_json(said)
        return
    keys = tuple(search.over)
    shown = tuned.front if several else tuned.trials[:SHOWN]
    values = tuned.confirmed_front if several else [trial.objectives for trial in shown]
    rows = [
        (*(str(trial.point[key]) for key in keys), *map(with_interval, of))
        for trial, of in zip(shown, values, strict=True)
    ]
    say(
        *plain(Table((*keys, *(texts if several else ("objective",))), tuple(rows), len(keys))),
        sep="\n",
    )
    say(f"minimise {', '.join(texts)}: {search.trials} trials, {search.seeds} seeds each")
    if any(not trial.feasible for trial in tuned.trials) and search.constraints:
        broken = sum(not trial.feasible for trial in tuned.trials)
        count = len(tuned.trials)
        say(f"{broken} of {count} point{'s break' if count > 1 else ' breaks'} a constraint")
    if broken := tuned.confirmed_feasible.count(False):
        of = f"{broken} of the {len(tuned.front)} points" if several else "the best"
        say(f"with further seeds {of} break{'' if broken > 1 else 's'} a constraint")
    if several:
        few = "one run, since nothing is random" if tuned.confirmed.n == 1 else "further seeds"
        points = "1 point" if len(shown) == 1 else f"{len(shown)} points"
        say(f"{points} that no other dominates; their values are of {few}")
        return
    if tuned.confirmed.n == 1:
        say(f"the best: {with_interval(tuned.confirmed)}, of one run, since nothing is random")
    else:
        say(
            f"the best with {tuned.confirmed.n} further seeds: {with_interval(tuned.confirmed)} "
            "(95 %, Student's t)"
        )
    some = "1 point does" if len(equals) == 1 else f"{len(equals)} points do"
    say(f"{some} not differ from it at 95 %, seed by seed:")
    for key, at in search.over.items():
        say(f"  {key}  {at.span([trial.point[key] for trial in equals])}")


def _print_swept(results: Results, page: Path | None, *, as_json: bool) -> None:
    from lfnlab.results import remote

    failures = [
        f"{', '.join(f'{key} = {value}' for key, value in failed.factors.items())}, "
        f"seed {failed.seed}: {failed.error}"
        for failed in results.failures
    ]
    if as_json:
        said: dict[str, Any] = {
            "schema": 1,
            "store": str(remote.named(results.root)),
            "runs": [
                {"key": run.path.name, "seed": run.seed, "factors": dict(run.factors)}
                for run in results.runs
            ],
            "failures": [vars(failed) for failed in results.failures],
        }
        print_json(said)
        return
    _print_tables(results)
    say(line(f"{len(results.runs):,} runs in {remote.named(results.root)}{_kept(results)}"))
    if failures:
        say(f"{len(failures):,} failed; repeat the command to run them again:")
        _print_some(failures)
    if results.runs:
        print_next(remote.named(results.root), page)


def _kept(results: Results) -> str:
    """Note that the runs keep less than all, or nothing."""
    from lfnlab.results import shards

    if not results.runs or not shards.holds(results.runs[0].path):
        return ""
    return (
        ", summaries alone: a table that is asked for is simulated again; `sample` in the "
        "scenario keeps the tables"
    )


def write_page(results: Results, tables: Mapping[str, Table] | None = None) -> Path:
    """Write the report, and show at a terminal how far it is."""
    from lfnlab.figures.report import write_report

    with report_bar(len(results.runs)) as step:
        return write_report(results, tables=tables, step=step)


def print_next(root: str | Path, page: Path | None) -> None:
    """The report, and what may come next."""
    if page is not None:
        say(f"report: {page.resolve()}")
    more = "" if page is not None else f"lfn report {root}, "
    say(f"next: {more}lfn table {root} --csv, lfn plot {root} --list, lfn metrics {root}")


def _print_tables(results: Results) -> None:
    """The summary of a sweep with few cases. A long table is for the report and for frames."""
    from lfnlab.analysis import background
    from lfnlab.analysis.summary import averages, summary_tables
    from lfnlab.analysis.table import plain
    from lfnlab.analysis.warnings import few_seeds

    if not 0 < len(results.runs) <= MOST_SUMMARISED:
        return
    tables = summary_tables(results)
    if (rows := max(len(table.rows) for table in tables)) > LISTED:
        say(f"{rows:,} cases: lfn table {results.root} prints them")
        return
    for table in tables:
        say(*plain(table), sep="\n")
    warnings = [*few_seeds(results), *background.seen(results)]
    say(*(line(text) for text in (averages(results), *warnings)), sep="\n")


def _print_some(lines: list[str]) -> None:
    say(*map(line, lines[:LISTED]), sep="\n", end="\n" if lines else "")
    if len(lines) > LISTED:
        say(f"and {len(lines) - LISTED:,} more")


def _span(seconds: float) -> str:
    for unit, size in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"


def _size(number_bytes: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if number_bytes >= size:
            return f"{number_bytes / size:.3g} {unit}"
    return f"{number_bytes / 1e3:.3g} kB"
