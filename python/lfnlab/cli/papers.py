"""``lfn paper``: reproductions of papers. Heavy modules wait until they are called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from lfnlab import _core
from lfnlab.cli.options import Jobs, Memory, OptionalOut  # noqa: TC001 - cyclopts reads them
from lfnlab.cli.progress import bar
from lfnlab.errors import UsageError
from lfnlab.printable import say

if TYPE_CHECKING:
    from lfnlab.papers.extension import Part
    from lfnlab.papers.paper import Reproduction

OK, FAILED = 0, 1
_OF_ONE_FIGURE = "height", "title", "x_label", "y_label", "x_limits", "y_limits"

paper = App(name="paper", help="Reproduce a paper: run its study, test its claims.")


@paper.command(name="list")
def list_() -> int:
    """List the papers that can be reproduced."""
    from lfnlab.papers.paper import papers, title_of

    for name in papers():
        say(f"{name:12} {title_of(name)}")
    return OK


@paper.command(name="all")
def all_(
    *,
    quick: Annotated[bool, Parameter(negative="")] = False,
    accept: Annotated[bool, Parameter(negative="")] = False,
    draws: Annotated[bool, Parameter(negative="")] = False,
    jobs: Jobs = None,
    memory: Memory = None,
) -> int:
    """Reproduce every paper, one after the other.

    Exit code 1 if a verdict differs from the accepted one.

    Args:
        quick: The same paths with short runs.
        accept: Store the findings as the accepted ones.
        draws: Test the claims with random choices of what the papers omit instead.
    """
    from lfnlab.papers.paper import papers

    _core.limit_memory(memory)
    codes = []
    for name in papers():
        say(f"\n{name}")
        codes.append(
            reproduce(name, quick=quick, accept=accept, draws=draws, jobs=jobs, memory=memory)
        )
    return max(codes, default=OK)


@paper.default
def reproduce(
    name: str,
    /,
    *,
    quick: Annotated[bool, Parameter(negative="")] = False,
    accept: Annotated[bool, Parameter(negative="")] = False,
    extensions: Annotated[bool, Parameter(negative="")] = False,
    kernel: Annotated[bool, Parameter(negative="")] = False,
    on: Literal["simulator", "linux"] = "simulator",
    draws: Annotated[bool, Parameter(negative="")] = False,
    part: str | None = None,
    style: str = "report",
    set_: Annotated[tuple[str, ...], Parameter("--set", negative="")] = (),
    out: OptionalOut = None,
    jobs: Jobs = None,
    memory: Memory = None,
) -> int:
    """Run the study of a paper and test its claims.

    Exit code 1 if a verdict differs from the accepted one.

    Args:
        name: Paper from `lfn paper list`, or `all`.
        quick: Short runs, same path.
        accept: Store the findings as the accepted ones.
        extensions: Run the paper's open questions instead of its claims.
        kernel: Also run this kernel's TCP in real time (`lfn testbed`) instead.
        on: With `linux`: test the claims that Linux in virtual time can decide, there and in the
            simulator; with `--extensions` what the paper left for a real kernel.
        draws: Test the claims with random choices of what the paper omits instead.
        part: With `--draws` or `--on linux`: only the claims of this part, from the paper's
            full.toml.
        style: Of the figures, as in `lfn plot`: `report`, `paper`, `slides`, or FILE.toml.
        set_: A key of the style, repeatable: `width=88mm`, `palette=grey`.
        out: Results directory; default `lfn-NAME`, or `lfn-NAME-quick` and the like.
    """
    from lfnlab.figures import style as styles
    from lfnlab.papers import paper as papers

    _core.limit_memory(memory)
    look = styles.changed(styles.read(style), styles.settings(set_), "--set")
    if look != styles.PRESETS["report"]:
        if accept or draws or on == "linux" or extensions or kernel:
            raise UsageError("--style, --set: for the figures of a paper's claims, not --accept")
        if own := [key for key in _OF_ONE_FIGURE if getattr(look, key) is not None]:
            raise UsageError(f"--style, --set: {own[0]}: a paper has several figures")
    beside: Part | None = "extensions" if extensions else "kernel" if kernel else None
    size = "quick" if quick else None
    named = "draws" if draws else "linux" if on == "linux" else beside
    out = out or Path("-".join(word for word in ("lfn", name, named, size) if word))
    if accept:
        # Before the runs, which may take an hour.
        papers.check_clone()
    if draws:
        if quick or beside or on == "linux":
            raise UsageError("--draws: has one size, and no other part beside it")
        return _draw(name, part, accept=accept, out=out, jobs=jobs)
    if on == "linux":
        if quick or kernel or (extensions and part is not None):
            raise UsageError("--on linux: has one size, and no other part beside --extensions")
        if extensions:
            beside = "extensions on Linux"
            return _extend(name, beside, quick=False, accept=accept, out=out, jobs=jobs)
        return _on_linux(name, part, accept=accept, out=out, jobs=jobs)
    if part is not None:
        raise UsageError("--part: goes with --draws or --on linux")
    if beside is not None:
        return _extend(name, beside, quick=quick, accept=accept, out=out, jobs=jobs)
    with styles.applied(look):
        with bar() as progress:
            reproduction = papers.reproduce(
                name, quick=quick, out=out, jobs=jobs, progress=progress
            )
        _show(reproduction, quick)
    if accept:
        say(f"\naccepted: {papers.accept(name, quick, reproduction)}")
    if changes := papers.changed(name, quick, reproduction):
        say("\nverdicts that are not the accepted ones:", *changes, sep="\n  ")
        return FAILED
    return OK


def _extend(
    name: str,
    part: Part,
    *,
    quick: bool,
    accept: bool,
    out: Path,
    jobs: Jobs,
) -> int:
    from lfnlab.analysis.table import plain
    from lfnlab.figures.report import write_report
    from lfnlab.papers import extension

    if quick and accept:
        raise UsageError(f"--accept: only the full --{part} are kept; leave out --quick")
    with bar() as progress:
        if part == "extensions":
            found = extension.extend(name, quick=quick, out=out, jobs=jobs, progress=progress)
        elif part == "extensions on Linux":
            from lfnlab.testbed.linux_backend import Linux

            linux = Linux()
            found = extension.on_linux(name, linux=linux, out=out, jobs=jobs, progress=progress)
        else:
            found = extension.on_kernel(name, quick=quick, out=out, jobs=jobs, progress=progress)
    for question, answer in found.answers.items():
        say(f"{question}\n    {answer}")
    for heading, table in found.tables.items():
        say(f"\n{heading}", *plain(table), sep="\n")
    page = write_report(found.results, figures=found.figures, tables=found.tables, traced=())
    say(f"report: {page.resolve()}")
    if accept:
        say(f"accepted: {extension.accept(name, part, found)}")
    return OK


def _on_linux(name: str, part: str | None, *, accept: bool, out: Path, jobs: Jobs) -> int:
    from lfnlab.papers import on_linux
    from lfnlab.testbed.linux_backend import Linux

    linux = Linux()
    release = linux.build.release
    with bar() as progress:
        found = on_linux.decide(name, out=out, linux=linux, part=part, jobs=jobs, progress=progress)
    for title, pairs in found.parts.items():
        say(f"\n{title}, {len(found.results[title].runs)} runs")
        for ours, theirs in pairs:
            say(f"{ours.claim}  simulator: {ours.verdict}; Linux {release}: {theirs.verdict}")
            say(f"    simulator: {ours.ours}", f"    Linux:     {theirs.ours}", sep="\n")
            if theirs.cause:
                say(f"    cause:     {theirs.cause}")
    if accept:
        say(f"\naccepted: {on_linux.accept(name, found, release)}")
    return OK


def _draw(name: str, part: str | None, *, accept: bool, out: Path, jobs: Jobs) -> int:
    from lfnlab.analysis.table import plain
    from lfnlab.papers import draws

    with bar() as progress:
        found = draws.draw(name, out=out, part=part, jobs=jobs, progress=progress)
    say(*plain(found.table()), sep="\n")
    seen = found.seen()
    for claim, verdicts in found.verdicts().items():
        say(f"{claim}: {draws.counted(verdicts, seen[claim])}")
    if accept:
        say(f"accepted: {draws.accept(name, found)}")
    return OK


def _show(reproduction: Reproduction, quick: bool) -> None:
    """Prints the findings and writes the report; a quick one has no value of the paper.

    A quick study has its own rates, times and windows, which the paper's values do not belong to.
    """
    from lfnlab.figures.report import write_report

    findings, tables = reproduction.findings, reproduction.tables
    figures = reproduction.figures
    if quick:
        say("quick: short runs at a tenth of the rates or less; the paper's values are left out")
        findings = [replace(finding, says="(at full size)") for finding in findings]
        tables = {heading: table for heading, table in tables.items() if "paper" not in heading}
        figures = {name: drawn for name, drawn in figures.items() if "paper" not in drawn[1]}
    for finding in findings:
        say(f"{finding.claim}  {finding.verdict}")
        if not quick:
            say(f"    paper: {finding.says}")
        say(f"    ours:  {finding.ours}")
        if finding.cause:
            say(f"    cause: {finding.cause}")
    page = write_report(
        reproduction.results,
        findings=findings,
        figures=figures,
        tables=tables,
        traced=reproduction.traced,
    )
    say(f"report: {page.resolve()}")
