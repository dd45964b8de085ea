"""Draws: a paper's claims again with random choices of what it does not say.

``full.toml`` of a paper has a table ``draws``: ``count``; ``at``, settings of the shortest study
that gives the verdicts of the reference point; and ``choices``, by name what the paper omits. Each
choice has ``values``, tables of settings of which a draw takes one, and the ``reason`` of its
range. Values are stratified: each comes equally often, to one, and their order is that of a
generator seeded by the names of paper and choice. So the draws are fixed before they are run.

``parts``, where a paper has it, are the claims that share runs: for each its ``claims`` and the
factors of the ``runs`` that they need. A part can be drawn alone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab.analysis.finding import VERDICTS
from lfnlab.analysis.table import Table
from lfnlab.errors import Unavailable
from lfnlab.experiment.run import Progress, execute
from lfnlab.papers import paper

if TYPE_CHECKING:
    from lfnlab.analysis.finding import Finding, Verdict
    from lfnlab.experiment.plan import Case
    from lfnlab.results.runs import Results


@dataclass(frozen=True)
class Draw:
    """The choices of one draw in words, and its findings."""

    chosen: Mapping[str, str]
    findings: Sequence[Finding]


@dataclass(frozen=True)
class Draws:
    """All draws of a paper, and the runs of the last."""

    draws: Sequence[Draw]
    results: Results

    def verdicts(self) -> dict[str, list[Verdict]]:
        """The verdicts on each claim, a draw each."""
        return {claim: [d.findings[i].verdict for d in self.draws] for i, claim in self._claims()}

    def seen(self) -> dict[str, list[str]]:
        """Of each claim the digests of its runs, a draw each."""
        return {claim: [d.findings[i].seen for d in self.draws] for i, claim in self._claims()}

    def _claims(self) -> Iterator[tuple[int, str]]:
        return enumerate(finding.claim for finding in self.draws[0].findings)

    def table(self) -> Table:
        """A row a draw: its choices, its verdicts."""
        claims = list(self.verdicts())
        return Table(
            ("draw", *self.draws[0].chosen, *claims),
            tuple(
                (str(n), *draw.chosen.values(), *(f.verdict for f in draw.findings))
                for n, draw in enumerate(self.draws, 1)
            ),
            1 + len(self.draws[0].chosen),
        )


def counted(verdicts: Sequence[Verdict], seen: Sequence[str] = ()) -> str:
    """In how many draws a claim holds, in words: "holds in 17 of 20, undecided in 2".

    Draws with the same runs count once, where ``seen`` has their digests.
    """
    counts = Counter(verdicts := paper.once(verdicts, seen))
    others = [f"{verdict} in {counts[verdict]}" for verdict in VERDICTS[1:] if counts[verdict]]
    return ", ".join([f"holds in {counts['holds']} of {len(verdicts)}", *others])


def drawn(name: str, settings: Mapping[str, Any]) -> list[tuple[dict[str, str], dict[str, Any]]]:
    """Of each draw: its choices in words, and the settings of its study."""
    own = settings["draws"]
    orders = {}
    for choice, made in own["choices"].items():
        strata = [i * len(made["values"]) // own["count"] for i in range(own["count"])]
        random.Random(f"{name} {choice}").shuffle(strata)
        orders[choice] = [made["values"][i] for i in strata]
    draws = []
    for i in range(own["count"]):
        chosen = paper.nested(settings, own["at"])
        for values in orders.values():
            chosen = paper.nested(chosen, values[i])
        draws.append(({choice: said(values[i]) for choice, values in orders.items()}, chosen))
    return draws


def said(values: Mapping[str, Any]) -> str:
    """Settings in words, without the names of their tables; "as chosen" for none."""
    words = [
        said(value) if isinstance(value, dict) else f"{key} {value}"
        for key, value in values.items()
    ]
    return ", ".join(words) or "as chosen"


def draw(
    name: str,
    *,
    out: str | Path,
    part: str | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Draws:
    """Run every draw of a paper, or of a part of it; runs that ``out`` has are not run again.

    Raises:
        Unavailable: where the paper declares no draws, or no such part.
    """
    module, settings = paper.claims_of(name), paper.settings_of(name, quick=False)
    if "draws" not in settings:
        raise Unavailable(f'"{name}" declares no draws: its full.toml has no table [draws]')
    parts = settings["draws"].get("parts", {})
    if part is not None and part not in parts:
        allowed = ", ".join(parts) or "none, the paper is drawn as a whole"
        raise Unavailable(f'"{name}" has no part "{part}" of its draws; allowed: {allowed}')

    def run(cases: Sequence[Case], title: str) -> Results:
        return execute(cases, out=out, jobs=jobs, progress=progress, title=title)

    # A paper whose variants are a part of its study has its own for draws.
    claims: Sequence[Callable[..., Finding]] = getattr(module, "DRAWN", module.VARIED)
    study_of = getattr(module, "drawn_study_of", module.study_of)
    runner: paper.Execute = run
    if part is not None:
        own = parts[part]
        runner = paper.only(run, own["runs"])
        claims = [claim for claim in claims if claim.__name__.upper() in own["claims"]]
    made = []
    for n, (words, chosen) in enumerate(drawn(name, settings), 1):
        study = study_of(chosen, runner, f"draw {n}")
        made.append(Draw(words, paper.tested(claims, study)))
    return Draws(made, study.results)


def accept(name: str, found: Draws) -> Path:
    """Keep the verdicts of the draws for the pages, beside those of other parts."""
    before = paper.expected(name).get("draws", {})
    return paper.expect(
        name,
        "draws",
        {
            "command": f"lfn paper {name} --draws",
            "chosen": [dict(one.chosen) for one in found.draws],
            "verdicts": before.get("verdicts", {}) | found.verdicts(),
            "seen": before.get("seen", {}) | found.seen(),
        },
    )
