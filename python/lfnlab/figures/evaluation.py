"""The report of an evaluation by RFC 9743 as one HTML page, which asks nothing of the network."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from lfnlab.html import head
from lfnlab.results.integrity import provenance_of

if TYPE_CHECKING:
    from lfnlab.evaluate import Answer, Criterion, Evaluation

_CLASSES = {"finding": "fails", "beyond": "open", "not decided": "open", "no figure": "open"}


def page(made: Evaluation) -> str:
    """The page."""
    title = escape(f"{made.law.label}: evidence for RFC 9743")
    return "\n".join(
        [
            f"{head(title)}\n<body>",
            f"<h1>{title}</h1>",
            '<p class="dim">Specifying New Congestion Control Algorithms, BCP 133: the criteria of '
            f"sections 5 to 7. Beside {escape(_names(made))}, on the same seeds.</p>",
            "<h2>Findings</h2>",
            *_findings(made),
            *(f'<p class="dim">{escape(note)}</p>' for note in made.notes()),
            "<h2>Criteria</h2>",
            *(part for criterion in made.criteria for part in _criterion(made, criterion)),
            "<h2>Runs</h2>",
            f"<p><code>lfn evaluate {escape(made.law.name)}{' --quick' * made.quick}</code> makes "
            "them again. Every run is in the results directory with its scenario; "
            f"<code>lfn store ls {escape(os.fspath(made.results.root))}</code> lists them.</p>",
            *_provenance(made),
            "</body>\n</html>\n",
        ]
    )


def _names(made: Evaluation) -> str:
    names = [one.label for one in made.comparators]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _findings(made: Evaluation) -> Iterator[str]:
    if not made.findings:
        yield (
            "<p>No figure is beyond its bound and worse than each comparator. Figures that these "
            "runs do not decide are below.</p>"
        )
        return
    yield "<ol>"
    for finding in made.findings:
        links = ", ".join(f'<a href="#s{section}">{section}</a>' for section in finding.sections)
        yield f'<li>{escape(str(finding))} <span class="dim">Section {links}.</span></li>'
    yield "</ol>"


def _criterion(made: Evaluation, criterion: Criterion) -> Iterator[str]:
    yield (
        f'<section id="s{criterion.section}"><h3>{criterion.section} {escape(criterion.title)}'
        f"</h3><p>Asks for: {escape(criterion.asks)}.</p>"
    )
    if criterion.not_applicable:
        yield f"<p>Not applicable: {escape(criterion.not_applicable)}.</p>"
    if answers := made.of(criterion):
        yield _table(answers)
    if criterion.missing:
        yield f"<p>Not covered: {escape(criterion.missing)}.</p>"
    yield "</section>"


def _table(answers: Sequence[Answer]) -> str:
    laws = [answers[0].law, *answers[0].comparators]
    headings = ["figure", "where", *laws, "bound", "these runs say"]
    top = "".join(f'<th scope="col" class="text">{escape(name)}</th>' for name in headings)
    rows = "\n".join(
        "<tr>"
        f'<td class="prose">{escape(answer.question.what)} '
        f'<span class="dim">({escape(answer.question.flows)})</span></td>'
        f'<td class="prose">{escape(answer.where)}</td>'
        + "".join(
            f'<td class="text"><span class="dim label">{escape(name)}: </span>'
            f"{escape(answer.text(name))}</td>"
            for name in laws
        )
        + f'<td class="text"><span class="dim label">bound: </span>{escape(answer.bound)}</td>'
        f'<td class="prose {_CLASSES.get(answer.said, "")}">{escape(answer.words)}</td></tr>'
        for answer in answers
    )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="figures">'
        f'<table class="data claims"><thead><tr>{top}</tr></thead>\n<tbody>{rows}</tbody>'
        "</table></div>"
    )


def _provenance(made: Evaluation) -> Iterator[str]:
    seen = {
        f"lfnlab {said['code']}, Python {said['python']}, {said['system']}"
        for said in (provenance_of(run.path) for run in made.results.runs)
    }
    yield from (f'<p class="dim">Made by {escape(line)}.</p>' for line in sorted(seen))
