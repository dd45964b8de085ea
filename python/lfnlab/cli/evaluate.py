"""``lfn evaluate``: the evidence that RFC 9743 asks for. Heavy modules wait until it is called."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lfnlab import _core
from lfnlab.cli.options import Jobs, Json, Memory, Names, Out  # noqa: TC001 - cyclopts reads them
from lfnlab.cli.progress import bar
from lfnlab.printable import say

if TYPE_CHECKING:
    from lfnlab.evaluate import Evaluation

OK, FAILED = 0, 1


def evaluate(
    law: str,
    /,
    *,
    beside: Names = (),
    section: Names = (),
    quick: Annotated[bool, Parameter(negative="")] = False,
    out: Out = Path("lfn-evaluate"),
    jobs: Jobs = None,
    memory: Memory = None,
    json: Json = False,
) -> int:
    """Show the evidence that RFC 9743 (BCP 133) asks for, for one law.

    Each criterion of sections 5 to 7 has figures with 95 % intervals, beside Reno's and CUBIC's on
    the same seeds, or says why it has none. It never says that a law meets a criterion. Examples:

        lfn evaluate bbr --quick
        lfn evaluate ./mine.py:Mine --out mine
        lfn evaluate ./mine.h --quick
        lfn evaluate vegas --beside bbr3 --section 5.2

    It writes `report.html` and `evaluation.json` into the results directory.

    Args:
        law: NAME, NAME:VARIANT, udt/NAME for a law over UDT, FILE.h, or FILE.py:CLASS.
        beside: Further comparators besides reno and cubic, with commas between.
        section: Sections of the RFC with commas between, such as 5.1.3, or 5.2 with those below it;
            default all.
        quick: The first places of each question alone, and three seeds instead of five.
        out: Results directory; it may hold evaluations of other laws, whose runs are shared.
    """
    from lfnlab.evaluate import evaluate as made_of
    from lfnlab.figures.evaluation import page
    from lfnlab.results.store import Store

    _core.limit_memory(memory)
    with bar() as progress:
        made = made_of(
            law,
            beside=beside,
            sections=section,
            quick=quick,
            out=out,
            jobs=jobs,
            progress=progress,
            failed=progress.failed,
        )
    store = Store(out)
    text = json_format.dumps(made.to_json(), indent=1, allow_nan=False, ensure_ascii=False)
    store.write("evaluation.json", f"{text}\n")
    report = store.write("report.html", page(made))
    if json:
        say(text)
    else:
        _show(made)
        say(f"report: {report.resolve()}")
    return FAILED if progress.failures else OK


def _show(made: Evaluation) -> None:
    from lfnlab.analysis.table import Table, plain

    say(f"{made.law.label}: evidence for RFC 9743, sections 5 to 7\n")
    for number, finding in enumerate(made.findings, 1):
        say(f"{number}. {finding} [{', '.join(finding.sections)}]")
    if not made.findings:
        say("No figure is beyond its bound and worse than each comparator.")
    rows = []
    for criterion in made.criteria:
        answers = made.of(criterion)
        counts = [
            sum(answer.said == said for answer in answers)
            for said in ("finding", "beyond", "within", "not decided", "no figure")
        ]
        rows.append((criterion.section, criterion.title, *(str(count or "") for count in counts)))
    headings = ("", "criterion", "findings", "beyond", "within", "not decided", "none")
    say()
    say(*plain(Table(headings, tuple(rows), 2)), *_without(made), *made.notes(), sep="\n")


def _without(made: Evaluation) -> Iterator[str]:
    """Criteria without figures, or with parts missing, and why."""
    for criterion in made.criteria:
        if criterion.not_applicable:
            yield f"{criterion.section} not applicable: {criterion.not_applicable}"
        if criterion.missing:
            yield f"{criterion.section} not covered: {criterion.missing}"
        for answer in made.of(criterion):
            if answer.said == "no figure":
                yield f"{criterion.section} {answer.words} ({answer.question.what}; {answer.where})"
