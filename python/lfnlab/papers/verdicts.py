"""The verdict page: every claim of every paper beside what the laboratory saw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab.analysis.table import markdown
from lfnlab.papers.paper import expected, overall, papers, title_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lfnlab.analysis.finding import Verdict

PARTS = {"extensions": "What the paper left for later", "kernel": "Beside this kernel's TCP"}


def page() -> str:
    """Every claim of every paper with its accepted finding of full size, as Markdown."""
    lines = [
        "# Five papers, every claim",
        "",
        "For each claim this page gives the paper's result, ours, and a verdict. A claim *holds*",
        "or *does not hold* at the reference point: our choice of what the paper omits. It",
        "*depends* if another choice gives the other verdict. It is *undecided* if a 95 % interval",
        "covers the bound. A claim that does not hold is a result. The hash is that of all runs of",
        "a study. `python -m lfnlab.papers.verdicts` writes this page from the findings that",
        "`lfn paper NAME --accept` stored.",
        "",
    ]
    for paper in papers():
        full = expected(paper).get("full")
        lines += [f"## {title_of(paper)}", ""]
        if full is None:
            lines += [f"`lfn paper {paper}` has not been run at full size yet.", ""]
            continue
        lines += [
            f"`{full['command']}`, {full['runs']} runs, hash `{full['hash']}`. "
            f"[The set-up, what the paper leaves open, and how each verdict is decided]"
            f"(../papers/{papers()[paper].name}/README.md).",
            "",
        ]
        rows = []
        for claim, (total, finding, others) in by_claim(full["findings"]).items():
            varied = [f"{other['verdict']} with {value}" for value, other in others.items()]
            if total != finding["verdict"]:
                varied = [f"{finding['verdict']} at the reference point", *varied]
            says = f"{finding['says']} ({finding['where']})"
            verdicts = "; ".join([f"**{total}**", *varied])
            rows.append((claim, says, finding["ours"], verdicts, finding["cause"]))
        lines += [*markdown(("claim", "the paper", "ours", "verdict", "cause"), rows), ""]
        for part, heading in PARTS.items():
            if (found := expected(paper).get(part)) is not None:
                lines += [f"### {heading}", "", *_extension(found)]
    return "\n".join(lines)


def by_claim(
    findings: Mapping[str, Any],
) -> dict[str, tuple[Verdict, dict[str, Any], dict[str, Any]]]:
    """By claim: the verdict over all choices, the finding at the reference point, the others."""
    found = {}
    for claim, finding in findings.items():
        if " @ " in claim:
            continue
        others = {
            name.partition(" @ ")[2]: other
            for name, other in findings.items()
            if name.startswith(f"{claim} @ ")
        }
        total = overall(finding["verdict"], [other["verdict"] for other in others.values()])
        found[claim] = (total, finding, others)
    return found


def _extension(found: dict[str, Any]) -> Iterator[str]:
    """Section of a paper's extension or kernel run."""
    yield f"`{found['command']}`, {found['runs']} runs, hash `{found['hash']}`."
    yield ""
    for question, answer in found["answers"].items():
        yield f"- **{question}**: {answer}."
    yield ""
    for heading, (headings, *rows) in found["tables"].items():
        yield from (f"{heading}:", "", *markdown(headings, rows), "")
    for file, caption in found["figures"].items():
        yield from (f"![{caption}](figures/{file})", "", f"{caption}.", "")


def main() -> None:
    """Writes docs/papers.md of the source tree."""
    file = Path(__file__).parents[3] / "docs" / "papers.md"
    file.write_text(page(), encoding="utf-8")
    print(file)


if __name__ == "__main__":
    main()
