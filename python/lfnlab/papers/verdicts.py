"""The pages of verdicts: docs/papers.md in short, and a page a paper in docs/papers.

The site fills in its tables.
``papers/NAME/summary.toml`` has the words: ``answer``, a question whose answer a reader finds in a
minute; ``text``, what the paper proposed, what of it is true and what to take from it; ``claims``,
a few words for each. Numbers and figures are those that ``lfn paper NAME --accept`` stored.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lfnlab.analysis.finding import VERDICTS, Verdict
from lfnlab.analysis.table import markdown
from lfnlab.papers.draws import counted, drawn, said
from lfnlab.papers.paper import (
    LEAST_DRAWS,
    directory_of,
    expected,
    once,
    overall,
    papers,
    settings_of,
    title_of,
)

PARTS = {
    "extensions": "What the paper left for later",
    "extensions on Linux": "What the paper left for later, on Linux in virtual time",
    "kernel": "Beside this kernel's TCP",
}
DOCS = Path(__file__).parents[3] / "docs"

Findings = dict[str, tuple[Verdict, dict[str, Any], dict[str, Any]]]


def page() -> str:
    """docs/papers.md: the answers, the verdicts and how many of each a paper has."""
    found = counts()
    total = sum(found.values(), Counter[Verdict]())
    rows = [(f"[{title_of(name)}](papers/{name}.md)", *cells(own)) for name, own in found.items()]
    lines = [
        "# Five papers, every claim",
        "",
        "Is it better, where, and by how much? `lfn paper NAME` runs a paper's study in the",
        "simulator and tests its claims; ± is a 95 % interval over runs with other starts and",
        "traffic.",
        "",
        *markdown(("", "", "where", "by how much"), map(answered, found)),
        "",
        "## Verdicts",
        "",
        "The test of a claim compares what we measured with a bound; the paper's README has",
        "both. A claim *holds* if the 95 % interval lies on the claim's side of the bound. It",
        "*does not hold* if the interval lies on the other side. It is *undecided* if the",
        "interval covers the bound. These three are for the reference point: our choice of what",
        "the paper omits. Figures of the paper that are not the claim narrow that choice.",
        "",
        "Each of these verdicts is wrong by chance with a probability of 1/40 at most, also where",
        "a claim has many tests. One test that fails denies a claim. So of a claim that compares",
        "*m* means with bounds, a test fails only by an interval of 1 - 0.05/*m* (Bonferroni). A",
        "claim holds only if all its tests pass, so each passes by its interval of 95 %.",
        *older(),
        "",
        "A claim *depends* if it holds with one choice and does not hold with another. Each",
        "paper's page also has the verdicts of twenty draws, random choices of what the paper",
        "omits. A draw has three seeds, so its intervals are wider than those of the reference",
        f"point. A verdict of the draws counts if {LEAST_DRAWS} of them have it; fewer may be",
        "chance. A dash marks an equation or arithmetic. A claim that does not hold is a result.",
        *worse(),
        "",
        "`python -m lfnlab.papers.verdicts` writes these pages from the findings that",
        "`lfn paper NAME --accept` stored.",
        "",
        *markdown(("paper", *VERDICTS), [*rows, (f"all {total.total()}", *cells(total))]),
        "",
    ]
    return "\n".join(lines)


def older() -> Iterator[str]:
    """The papers with findings that were stored before claims were tested as a whole."""
    names = []
    for name in papers():
        found = expected(name)["full"]["findings"].values()
        if any("mean" in test and "of" not in test for f in found for test in f["tests"].values()):
            names.append(name)
    if names:
        yield f"Stored before that in whole or in part, with 1/40 a test: {', '.join(names)}."


def worse() -> Iterator[str]:
    """The claims that are open at the reference point and fail in enough draws."""
    failing = {}
    for name in papers():
        kept = expected(name)
        drawn, seen = (kept.get("draws", {}).get(key, {}) for key in ("verdicts", "seen"))
        for claim in drawn:
            often = once(drawn[claim], seen.get(claim, ())).count("does not hold")
            if kept["full"]["findings"][claim]["verdict"] == "undecided" and often >= LEAST_DRAWS:
                failing[claim] = often
    if failing:
        claims = ", ".join(f"{claim} in {often}" for claim, often in failing.items())
        yield f"Undecided at the reference point, these fail in draws: {claims}."


def counts() -> dict[str, Counter[Verdict]]:
    """How many claims of each paper have which verdict over all choices."""
    found = {name: by_claim(expected(name)).values() for name in papers()}
    return {name: Counter(total for total, _, _ in own) for name, own in found.items()}


def answered(name: str) -> tuple[str, ...]:
    """The question that a paper raises, and its answer, in a row."""
    own = summary(name)["answer"]
    question = f"[{own['question']}](papers/{name}.md)"
    return question, f"**{own['answer']}**", own["where"], own["difference"]


def cells(counts: Mapping[Verdict, int]) -> list[str]:
    """A cell a verdict; empty for none."""
    return [str(counts.get(verdict) or "") for verdict in VERDICTS]


def short(name: str, findings: Findings) -> Iterator[tuple[str, ...]]:
    """A row a claim: a few words, the verdict, the verdicts of the draws."""
    words, kept = summary(name)["claims"], expected(name).get("draws", {})
    drawn, seen = kept.get("verdicts", {}), kept.get("seen", {})
    for claim, (total, _, others) in findings.items():
        often = "not run" if others else "–"
        if claim in drawn:
            often = counted(drawn[claim], seen.get(claim, ()))
        yield claim, words[claim], f"**{total}**", often


def paper_page(name: str) -> str:
    """docs/papers/NAME.md without its tables."""
    kept = expected(name)
    full, made = kept["full"], papers()[name].name
    lines = [
        f"# {title_of(name)}",
        "",
        *summary(name)["text"].split("\n"),
        "",
        f"`{full['command']}`, {full['runs']} runs, hash `{full['hash']}`. "
        f"[The set-up, what the paper leaves open, and how each verdict is decided]"
        f"(../../papers/{made}/README.md).",
        "",
        f"<!-- made: {made} -->",
        "`make site` shows here every claim with its numbers, what decides its verdict, and the",
        f"verdicts by choice and by draw. They are from papers/{made}/expected.json; "
        "[all verdicts](../papers.md).",
        f"<!-- end of {made} -->",
        "",
    ]
    if figures := full.get("figures"):
        lines += ["## Figures", "", *pictures(figures)]
    for part, heading in PARTS.items():
        if (more := kept.get(part)) is not None:
            lines += [f"## {heading}", "", *_extension(more)]
    return "\n".join(lines)


def tables(name: str) -> str:
    """Of docs/papers/NAME.md: every claim in full, by choice and by draw."""
    kept = expected(name)
    found = by_claim(kept)
    lines = [
        "## Claims",
        "",
        *markdown(("claim", "", "verdict", "draws"), short(name, found)),
        "",
        *markdown(
            ("claim", "the paper", "ours at the reference point", "verdict", "cause"),
            (
                (
                    claim,
                    f"{finding['says']} ({finding['where']})",
                    finding["ours"],
                    f"**{total}**",
                    finding["cause"],
                )
                for claim, (total, finding, _) in found.items()
            ),
        ),
        "",
        "## What decides each verdict",
        "",
        "Of all that a test compares, the interval of 95 % nearest to the wrong side of its bound,",
        "in the unit of the measure (s, bytes, bit/s or Mbit/s); runs, where each does something",
        "or not. *means* is how many means a test compares: a test fails only by an interval that",
        "is wider, for all means of its claim ([why](../papers.md#verdicts)).",
        "",
        *decisions(found),
        "",
        "## Verdicts by choice",
        "",
        *by_choice(found),
        "",
        *causes(kept["full"]["findings"]),
        *draws(name, kept),
        *linux(settings_of(name, quick=False)["linux"], kept.get("linux", {}).get("parts", {})),
    ]
    for part in PARTS:
        for heading, (headings, *rows) in kept.get(part, {}).get("tables", {}).items():
            lines += [f"## {heading}", "", *markdown(headings, rows), ""]
    return "\n".join(lines)


def decisions(found: Findings) -> Iterator[str]:
    """A row a test of the reference point: where it fails, what was measured, the bound."""

    def cells(test: Mapping[str, Any]) -> tuple[str, str]:
        if "runs" in test:
            return f"{test['agree']} of {test['runs']} runs", "all"
        if "mean" not in test:
            return "exact", ""
        half = f" ± {test['half']:.2g}" if "half" in test else ", one run"
        side = "above" if "above" in test else "below"
        return f"{test['mean']:.4g}{half}, n = {test['n']}", f"{side} {test[side]:.4g}"

    words = {True: "passes", False: "**fails**", None: "open"}
    return markdown(
        ("claim", "it fails if", "measured", "bound", "means", ""),
        (
            (claim, said, *cells(test), str(test.get("of", "")), words[test["so"]])
            for claim, (_, finding, _) in found.items()
            for said, test in finding["tests"].items()
        ),
    )


def causes(findings: Mapping[str, Any]) -> Iterator[str]:
    """Claims again with a suspected cause added or removed."""
    tried = [(key.partition(" with "), found) for key, found in findings.items() if " with " in key]
    if not tried:
        return
    yield from ("## Causes tried", "")
    yield "A cause is one whose run has another verdict; all others are called guesses."
    yield ""
    yield from markdown(
        ("claim", "verdict", "with", "verdict", "ours there"),
        (
            (claim, findings[claim]["verdict"], name, f"**{found['verdict']}**", found["ours"])
            for (claim, _, name), found in tried
        ),
    )
    yield ""


def by_choice(found: Findings) -> Iterator[str]:
    """A column a variant; empty where the claim is not about the choice.

    A verdict from the runs of a column further left is no second one, and says so.
    """
    names = list(dict.fromkeys(name for _, _, others in found.values() for name in others))
    rows = []
    for claim, (_, finding, others) in found.items():
        row, seen = [claim, finding["verdict"]], {finding.get("seen"): "the reference point"}
        for name in names:
            own = others.get(name, {})
            cell, first = own.get("verdict", ""), seen.setdefault(own.get("seen"), name)
            same = cell and own.get("seen") and first != name
            row.append(f"{cell} (runs of {first})" if same else cell)
        rows.append(row)
    return markdown(("claim", "reference point", *names), rows)


def linux(own: Mapping[str, Any], kept: Mapping[str, Any]) -> Iterator[str]:
    """The claims that Linux in virtual time decides, and why it does not decide the others."""
    yield from ("## On Linux in virtual time", "")
    if parts := own.get("parts"):
        yield "Both sides have these settings over those of the reference point, and fewer seeds:"
        yield ""
        yield from markdown(
            ("runs", "settings"),
            (
                (part, said({**own.get("at", {}), **one.get("settings", {})}))
                for part, one in parts.items()
            ),
        )
        yield ""
        yield from markdown(
            ("claim", "runs", "simulator", "Linux", "the simulator's numbers", "Linux's numbers"),
            (
                (
                    claim,
                    f"{part}, {one['runs']} on Linux {one['release']}",
                    *(found[where]["verdict"] for where in ("simulator", "linux")),
                    *(found[where]["ours"] for where in ("simulator", "linux")),
                )
                for part, one in kept.items()
                for claim, found in one["claims"].items()
            ),
        )
        yield ""
        if left := [part for part in parts if part not in kept]:
            yield from (f"Not run yet: {', '.join(left)}.", "")
    yield from markdown(
        ("claims", "why Linux has no verdict"),
        ((", ".join(claims), why) for why, claims in own.get("cannot", {}).items()),
    )
    yield ""


def draws(name: str, kept: Mapping[str, Any]) -> Iterator[str]:
    """The ranges that the draws are from, and what came of them."""
    settings = settings_of(name, quick=False)
    own = settings["draws"]
    yield from ("## Draws", "")
    yield f"`lfn paper {name} --draws` tests the claims with {own['count']} random choices from:"
    yield ""
    yield from markdown(
        ("what the paper omits", "values", "reason"),
        (
            (choice, "; ".join(map(said, made["values"])), made["reason"])
            for choice, made in own["choices"].items()
        ),
    )
    yield ""
    if "draws" not in kept:
        yield from ("They have not been run yet.", "")
        return
    verdicts, seen = kept["draws"]["verdicts"], kept["draws"].get("seen", {})
    yield "Draws that differ in nothing that a claim's runs have count once."
    yield ""
    yield from markdown(
        ("claim", "of the draws"),
        ((claim, counted(of, seen.get(claim, ()))) for claim, of in verdicts.items()),
    )
    yield ""
    if early := [claim for claim in verdicts if claim not in seen]:
        yield f"Drawn before claims were tested as a whole, test by test: {', '.join(early)}."
        yield ""
    known = dict.fromkeys(
        claim.partition(" ")[0] for claim in kept["full"]["findings"] if "@" in claim
    )
    if kept["draws"]["chosen"] != [words for words, _ in drawn(name, settings)]:
        yield from ("These draws were made before the ranges above, from others.", "")
    if left := [claim for claim in known if claim not in verdicts]:
        yield from (f"Not drawn yet: {', '.join(left)}.", "")


def summary(name: str) -> dict[str, Any]:
    """The words on a paper."""
    return tomllib.loads((directory_of(name) / "summary.toml").read_text(encoding="utf-8"))


def by_claim(kept: Mapping[str, Any]) -> Findings:
    """By claim: the verdict over all choices, the finding at the reference point, the others."""
    found, findings = {}, kept["full"]["findings"]
    draws = kept.get("draws", {})
    drawn, seen = draws.get("verdicts", {}), draws.get("seen", {})
    for claim, finding in findings.items():
        if " " in claim:
            continue
        others = {
            name.partition(" @ ")[2]: other
            for name, other in findings.items()
            if name.startswith(f"{claim} @ ")
        }
        varied = [other["verdict"] for other in others.values()]
        own = once(drawn.get(claim, ()), seen.get(claim, ()))
        total = overall(finding["verdict"], varied, own)
        found[claim] = (total, finding, others)
    return found


def _extension(found: Mapping[str, Any]) -> Iterator[str]:
    """Section of a paper's extension or kernel run."""
    yield f"`{found['command']}`, {found['runs']} runs, hash `{found['hash']}`."
    yield ""
    for question, answer in found["answers"].items():
        yield f"- **{question}**: {answer}."
    yield ""
    if found["command"].endswith("--on linux"):  # Its figures are few numbers, side by side.
        for heading, (names, *rows) in found["tables"].items():
            yield from (f"{heading}:", "", *markdown(names, rows), "")
    yield from pictures(found["figures"])


def pictures(figures: Mapping[str, str]) -> Iterator[str]:
    """Figures of docs/figures with their captions, by file."""
    for file, caption in figures.items():
        yield from (f"![{caption}](../figures/{file})", "", f"{caption}.", "")


def main() -> None:
    """Writes docs/papers.md and docs/papers/NAME.md of the source tree."""
    pages = {DOCS / "papers.md": page()}
    pages |= {DOCS / "papers" / f"{name}.md": paper_page(name) for name in papers()}
    for file, text in pages.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        print(file)


if __name__ == "__main__":
    main()
