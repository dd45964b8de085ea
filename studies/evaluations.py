"""Evidence for RFC 9743 for every law: one table of the findings, and a section of each law's card.

$ python -m studies.evaluations            quick evaluations of all laws
$ python -m studies.evaluations bbr vegas  some of them; the others stay
$ python -m studies.evaluations stacks     controllers of deployed stacks; needs `make stacks`

The outcome is studies/reference/evaluations.json, from which `make reference` writes the tables of
docs/evaluations.md and the site a section of each law's card. Runs are kept in build/evaluations;
the whole report of a law is build/evaluations/LAW.html.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from lfnlab import laws
from lfnlab.analysis.table import markdown
from lfnlab.evaluate import Evaluation, evaluate
from lfnlab.figures.evaluation import page
from lfnlab.results.integrity import provenance_of

Kept = dict[str, Any]
ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "evaluations"
KEPT = ROOT / "studies" / "reference" / "evaluations.json"
MOST = 3
"""Findings of a law that the table names."""
STACKS = ("quinn:cubic", "s2n:bbr", "quic-go:reno", "tquic:bbr3")
"""Controllers of deployed stacks, of which the page has a table of its own."""
FIRST = 4
"""Laws that the page sends a reader to first."""
EVIDENCE = """\
## Evidence for RFC 9743

[RFC 9743](../../docs/evaluate.md) lists what the IETF considers before it adopts a congestion
control. `lfn evaluate {law} --quick` measured {law} beside {comparators} on the same seeds.

{notes}

### Findings

{findings}
"""
NOTHING = "No figure is beyond a bound and worse than each comparator."
WITHIN_HEAD = """\
### Within the bound

The mean of each figure, with its bound:
"""
WITHIN = "within"
NOT_ASKED = (
    "Sections without figures: {sections}. [The table](../../docs/evaluate.md#the-table) says why."
)


def row(made: Evaluation) -> Kept:
    """The part of an evaluation that is kept: counts, the largest findings, and all answers."""
    said = [answer.said for answer in made.answers]
    labels = [made.law.label, *(one.label for one in made.comparators)]
    answers = [
        (
            (criterion.section, one.question.what, one.where, one.bound),
            WITHIN if one.said == WITHIN else one.words,
            [one.text(label) for label in (labels[:1] if one.said == WITHIN else labels)],
        )
        for criterion in made.criteria
        for one in made.of(criterion)
    ]
    asked = {criterion.section for criterion in made.criteria if made.of(criterion)}
    return {
        "findings": said.count("finding"),
        "not decided": said.count("not decided"),
        "none": said.count("no figure"),
        "largest": [
            f"{own.question.what}: {own.text(own.law)} ({own.where}) [{', '.join(one.sections)}]"
            for one in made.findings[:MOST]
            for own in one.answers[:1]
        ],
        "notes": list(made.notes()),
        "code": _code(made),
        "comparators": labels[1:],
        "listed": [f"{one} Section {', '.join(one.sections)}." for one in made.findings],
        "answers": answers,
        "silent": [one.section for one in made.criteria if one.section not in asked],
    }


def evidence(law: str) -> str:
    """The last section of a law's card in the site.

    Comparators stand where a figure is beyond its bound, or not decided. Empty of a law that was
    not evaluated.
    """
    kept = kept_rows().get(law)
    if kept is None:
        return ""
    others = kept["comparators"]
    found = [f"{place}. {finding}" for place, finding in enumerate(kept["listed"], 1)]
    parts = [
        EVIDENCE.format(
            law=law,
            comparators=" and ".join(others),
            notes="\n".join([*kept["notes"], f"Measured with lfnlab {kept['code']}."]),
            findings="\n".join(found) or NOTHING,
        )
    ]
    open_rows = [
        (f"{section} {what}", where, *figures, bound, words)
        for (section, what, where, bound), words, figures in kept["answers"]
        if words != WITHIN
    ]
    within = [
        (section, f"{what} {figures[0]} ({bound}): {where}")
        for (section, what, where, bound), words, figures in kept["answers"]
        if words == WITHIN
    ]
    if open_rows:
        headings = ("figure", "where", law, *others, "bound", "these runs say")
        parts += ["### Beyond a bound, or not decided\n", *markdown(headings, open_rows), ""]
    parts += [WITHIN_HEAD, *markdown(("section", "figure"), within), ""]
    return "\n".join([*parts, NOT_ASKED.format(sections=", ".join(kept["silent"])), ""])


def kept_rows() -> dict[str, Kept]:
    """The kept part of each law's evaluation."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    for one in kept["laws"].values():
        one["answers"] = [(kept["questions"][at], *rest) for at, *rest in one["answers"]]
    rows: dict[str, Kept] = kept["laws"]
    return rows


def keep(rows: dict[str, Kept]) -> None:
    """Write them; a question, which all laws share, stands there once."""
    asked = {tuple(one[0]): one[0] for kept in rows.values() for one in kept["answers"]}
    at = {question: place for place, question in enumerate(asked)}
    laws_ = {
        name: kept | {"answers": [(at[tuple(one[0])], *one[1:]) for one in kept["answers"]]}
        for name, kept in rows.items()
    }
    lines = ",\n".join(f"{json.dumps(name)}: {_json(kept)}" for name, kept in laws_.items())
    questions = ",\n".join(map(_json, asked))
    text = f'{{"questions": [\n{questions}\n],\n"laws": {{\n{lines}\n}}}}\n'
    KEPT.write_text(text, encoding="utf-8")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _code(made: Evaluation) -> str:
    return " and ".join(sorted({provenance_of(run.path)["code"] for run in made.results.runs}))


def table() -> str:
    """The laws with the most findings, then all laws."""
    kept = kept_rows()
    rows = {name: one for name, one in kept.items() if name not in STACKS}
    ranked = sorted(rows, key=lambda name: -rows[name]["findings"])
    counted = [f"{_link(name)} ({rows[name]['findings']})" for name in ranked]
    none = [_link(name) for name in ranked if not rows[name]["findings"]]
    lines = [
        f"Most findings: {', '.join(counted[:FIRST])}. None: {', '.join(none) or 'no law'}.",
        f"CUBIC itself has {rows['cubic']['findings']}.",
        f"Measured with lfnlab {', '.join(sorted({kept['code'] for kept in rows.values()}))}.",
        "",
    ]
    return "\n".join([*lines, *_rows("law", {_link(name): rows[name] for name in ranked})])


def stacks() -> str:
    """The controllers of stacks."""
    rows = {name: one for name, one in kept_rows().items() if name in STACKS}
    code = ", ".join(sorted({kept["code"] for kept in rows.values()}))
    named = {f"`{name}`": kept for name, kept in rows.items()}
    return "\n".join([f"Measured with lfnlab {code}.", "", *_rows("controller", named)])


def _rows(first: str, rows: dict[str, Kept]) -> list[str]:
    """A table with a row for each law, by its name as the page writes it."""
    cells = [
        (
            name,
            *(str(kept[key]) for key in ("findings", "not decided", "none")),
            "<br>".join(kept["largest"]) or "–",
        )
        for name, kept in rows.items()
    ]
    headings = (first, "findings", "not decided", "no figure", "the largest findings")
    return list(markdown(headings, cells))


def _link(law: str) -> str:
    """To the law's card, whose last section the site writes."""
    return f"[{law}](../laws/cards/{law}.md#evidence-for-rfc-9743)"


def main() -> None:
    """Evaluate the laws that the command line names, or all."""
    rows = kept_rows()
    own = [info.name for info in laws()]
    asked = list(STACKS) if sys.argv[1:] == ["stacks"] else sys.argv[1:] or own
    for name in asked:
        began_s = time.monotonic()
        made = evaluate(name, quick=True, out=OUT / "runs")
        (OUT / f"{name}.html").write_text(page(made), encoding="utf-8")
        rows[name] = row(made)
        keep({one: rows[one] for one in (*own, *STACKS) if one in rows})
        took_s = time.monotonic() - began_s
        print(f"{name}: {rows[name]['findings']} findings, {took_s:.0f} s", flush=True)


if __name__ == "__main__":
    main()
