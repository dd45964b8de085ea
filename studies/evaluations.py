"""Evidence for RFC 9743 for every law, and one table of the findings.

$ python -m studies.evaluations            quick evaluations of all laws, docs/evaluations.md
$ python -m studies.evaluations bbr vegas  some of them; the page keeps the rows of the others

Results are kept in build/evaluations; the report of each law is build/evaluations/LAW.html.
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

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "evaluations"
KEPT = ROOT / "studies" / "reference" / "evaluations.json"
PAGE = ROOT / "docs" / "evaluations.md"
MOST = 3
"""Findings of a law that the table names."""
HEAD = """\
# Evidence for RFC 9743, law by law

`python -m studies.evaluations` runs [`lfn evaluate LAW --quick`](evaluate.md) for every law and
writes this page; the report of each law is then in `build/evaluations`. *findings*: figures beyond
a bound and worse than those of Reno and CUBIC on the same seeds. The largest {most} questions are
named. Quick evaluations have few places and three seeds, so a law without a finding is one that
these runs do not show to be worse. Last run: {date}, lfnlab {code}.
"""


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


def write(rows: dict[str, dict[str, object]], code: str) -> None:
    """The page and the kept rows."""
    order = [info.name for info in laws() if info.name in rows]
    ranked = sorted(order, key=lambda name: -int(str(rows[name]["findings"])))
    table = [
        (
            f"[{name}](../laws/cards/{name}.md)",
            *(str(rows[name][key]) for key in ("findings", "not decided", "none")),
            "<br>".join(map(str, rows[name]["largest"])) or "–",  # type: ignore[call-overload]
        )
        for name in ranked
    ]
    headings = ("law", "findings", "not decided", "no figure", "the largest findings")
    head = HEAD.format(most=MOST, date=f"{datetime.now(UTC):%Y-%m-%d}", code=code)
    PAGE.write_text("\n".join([head, *markdown(headings, table), ""]), encoding="utf-8")
    KEPT.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Evaluate the laws that the command line names, or all."""
    from lfnlab.results.provenance import code_version

    rows = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    for name in sys.argv[1:] or [info.name for info in laws()]:
        made = evaluate(name, quick=True, out=OUT / "runs")
        (OUT / f"{name}.html").write_text(page(made), encoding="utf-8")
        rows[name] = row(made)
        print(f"{name}: {rows[name]['findings']} findings", flush=True)
        write(rows, code_version())


if __name__ == "__main__":
    main()
