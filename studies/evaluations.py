"""Evidence for RFC 9743 for every law: one table of the findings, and a page for each law.

$ python -m studies.evaluations            quick evaluations of all laws, docs/evaluations.md
$ python -m studies.evaluations bbr vegas  some of them; the table keeps the rows of the others

The page of a law is docs/evaluations/LAW.md. Results are kept in build/evaluations; the whole
report of a law is build/evaluations/LAW.html.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from lfnlab import laws
from lfnlab.analysis.table import markdown
from lfnlab.evaluate import Evaluation, evaluate
from lfnlab.figures.evaluation import page
from lfnlab.results.integrity import provenance_of

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "evaluations"
KEPT = ROOT / "studies" / "reference" / "evaluations.json"
PAGE = ROOT / "docs" / "evaluations.md"
PAGES = ROOT / "docs" / "evaluations"
MOST = 3
"""Findings of a law that the table names."""
TREE = ("```{toctree}", ":hidden:", ":glob:", "", "evaluations/*", "```", "")
FIRST = 4
"""Laws that the page sends a reader to first."""
HEAD = """\
# Evidence for RFC 9743, law by law

Read first {first}: of all laws they have the most findings. Then read
[cubic](evaluations/cubic.md), to know the yardstick: each law is compared with CUBIC and Reno, and
CUBIC itself has {cubic} beside Reno. {none}: such pages say what these runs leave undecided.

`python -m studies.evaluations` runs [`lfn evaluate LAW --quick`](evaluate.md) for every law and
writes this page and a page for each law; the whole reports are then in `build/evaluations`.
*findings*: figures beyond a bound and worse than those of Reno and CUBIC on the same seeds. The
largest {most} questions are named. Quick evaluations have few places and three seeds, so a law
without a finding is one that these runs do not show to be worse. Last run: {date}, lfnlab {code}.
"""
LAW_HEAD = """\
# {law}: evidence for RFC 9743

[RFC 9743](../evaluate.md) lists what the IETF considers before it adopts a congestion control. Here
is what `lfn evaluate {law} --quick` measured of the law [{law}](../../laws/cards/{law}.md), beside
{comparators} on the same seeds. [All laws](../evaluations.md).

{notes}

## Findings

{findings}
"""
WITHIN = """\
## Within the bound

The mean of each figure, with its bound:

"""
NOT_ASKED = "Sections without figures: {sections}. [The table](../evaluate.md#the-table) says why."


def row(made: Evaluation) -> dict[str, object]:
    """The part of an evaluation that is kept."""
    said = [answer.said for answer in made.answers]
    return {
        "findings": said.count("finding"),
        "not decided": said.count("not decided"),
        "none": said.count("no figure"),
        "largest": [
            f"{own.question.what}: {own.text(own.law)} ({own.where}) [{', '.join(one.sections)}]"
            for one in made.findings[:MOST]
            for own in one.answers[:1]
        ],
    }


def law_page(made: Evaluation) -> str:
    """The page of a law: its report, without comparators where a figure is within its bound."""
    found = [
        f"{place}. {finding} Section {', '.join(finding.sections)}."
        for place, finding in enumerate(made.findings, 1)
    ]
    others = [one.label for one in made.comparators]
    open_rows, within = [], []
    for criterion in made.criteria:
        for answer in made.of(criterion):
            if answer.said == "within":
                of = f"{answer.question.what} {answer.text(answer.law)} ({answer.bound})"
                within.append((criterion.section, f"{of}: {answer.where}"))
            else:
                figures = [answer.text(label) for label in (answer.law, *others)]
                what = f"{criterion.section} {answer.question.what}"
                open_rows.append((what, answer.where, *figures, answer.bound, answer.words))
    headings = ("figure", "where", made.law.label, *others, "bound", "these runs say")
    parts = [
        LAW_HEAD.format(
            law=made.law.label,
            comparators=" and ".join(others),
            notes="\n".join([*made.notes(), f"Measured with lfnlab {_code(made)}."]),
            findings="\n".join(found)
            or "No figure is beyond a bound and worse than each comparator.",
        )
    ]
    if open_rows:
        parts += ["## Beyond a bound, or not decided\n", *markdown(headings, open_rows), ""]
    parts += [WITHIN.rstrip("\n"), "", *markdown(("section", "figure"), within), ""]
    asked = {criterion.section for criterion in made.criteria if made.of(criterion)}
    silent = [one.section for one in made.criteria if one.section not in asked]
    return "\n".join([*parts, NOT_ASKED.format(sections=", ".join(silent)), ""])


def _code(made: Evaluation) -> str:
    return " and ".join(sorted({provenance_of(run.path)["code"] for run in made.results.runs}))


def _counted(name: str, rows: dict[str, dict[str, object]]) -> str:
    return f"[{name}](evaluations/{name}.md) ({rows[name]['findings']})"


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def head(ranked: list[str], rows: dict[str, dict[str, object]], code: str) -> str:
    """The paragraphs before the table, with the reports to read first."""
    none = [name for name in ranked if not rows[name]["findings"]]
    cubic = int(str(rows.get("cubic", {}).get("findings", 0)))
    without = (
        f"{_listed(none)} {'has' if len(none) == 1 else 'have'} none" if none else "Each has one"
    )
    return HEAD.format(
        most=MOST,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        code=code,
        first=_listed([_counted(name, rows) for name in ranked[:FIRST]]),
        cubic=f"{cubic} finding{'' if cubic == 1 else 's'}",
        none=without[0].upper() + without[1:],
    )


def write(rows: dict[str, dict[str, object]], code: str) -> None:
    """The table and the kept rows."""
    order = [info.name for info in laws() if info.name in rows]
    ranked = sorted(order, key=lambda name: -int(str(rows[name]["findings"])))
    table = [
        (
            f"[{name}](evaluations/{name}.md)",
            *(str(rows[name][key]) for key in ("findings", "not decided", "none")),
            "<br>".join(map(str, rows[name]["largest"])) or "–",  # type: ignore[call-overload]
        )
        for name in ranked
    ]
    headings = ("law", "findings", "not decided", "no figure", "the largest findings")
    text = [head(ranked, rows, code), *markdown(headings, table), "", *TREE]
    PAGE.write_text("\n".join(text), encoding="utf-8")
    KEPT.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Evaluate the laws that the command line names, or all."""
    from lfnlab.results.provenance import code_version

    rows = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    for name in sys.argv[1:] or [info.name for info in laws()]:
        made = evaluate(name, quick=True, out=OUT / "runs")
        (OUT / f"{name}.html").write_text(page(made), encoding="utf-8")
        PAGES.mkdir(exist_ok=True)
        (PAGES / f"{name}.md").write_text(law_page(made), encoding="utf-8")
        rows[name] = row(made)
        print(f"{name}: {rows[name]['findings']} findings", flush=True)
        write(rows, code_version())


if __name__ == "__main__":
    main()
