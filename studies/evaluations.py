"""Evidence for RFC 9743 for every law: one table of the findings, and a section of each law's card.

$ python -m studies.evaluations            quick evaluations of all laws
$ python -m studies.evaluations bbr vegas  some of them; the others stay

The outcome is studies/reference/evaluations.json, from which `make reference` writes the table of
docs/evaluations.md and the site a section of each law's card. Runs are kept in build/evaluations;
the whole report of a law is build/evaluations/LAW.html.
"""

from __future__ import annotations

import json
import sys
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
        "notes": made.notes(),
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
    rows = kept_rows()
    ranked = sorted(rows, key=lambda name: -rows[name]["findings"])
    counted = [f"{_link(name)} ({rows[name]['findings']})" for name in ranked]
    none = [_link(name) for name in ranked if not rows[name]["findings"]]
    lines = [
        f"Most findings: {', '.join(counted[:FIRST])}. None: {', '.join(none) or 'no law'}.",
        f"CUBIC itself has {rows['cubic']['findings']}.",
        f"Measured with lfnlab {', '.join(sorted({kept['code'] for kept in rows.values()}))}.",
        "",
    ]
    cells = [
        (
            _link(name),
            *(str(rows[name][key]) for key in ("findings", "not decided", "none")),
            "<br>".join(rows[name]["largest"]) or "–",
        )
        for name in ranked
    ]
    headings = ("law", "findings", "not decided", "no figure", "the largest findings")
    return "\n".join([*lines, *markdown(headings, cells)])


def _link(law: str) -> str:
    """To the law's card, whose last section the site writes."""
    return f"[{law}](../laws/cards/{law}.md#evidence-for-rfc-9743)"


def main() -> None:
    """Evaluate the laws that the command line names, or all."""
    rows = kept_rows()
    for name in sys.argv[1:] or [info.name for info in laws()]:
        made = evaluate(name, quick=True, out=OUT / "runs")
        (OUT / f"{name}.html").write_text(page(made), encoding="utf-8")
        rows[name] = row(made)
        keep({info.name: rows[info.name] for info in laws() if info.name in rows})
        print(f"{name}: {rows[name]['findings']} findings", flush=True)


if __name__ == "__main__":
    main()
