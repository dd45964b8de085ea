"""A paper's claims on Linux in virtual time, beside the simulator at the same settings.

``full.toml`` of a paper has a table ``linux``: ``at``, the settings of these runs over those of
the study; and ``parts``, the claims that share runs: for each its ``claims``, the factors of the
``runs`` that they need, and ``settings`` over those of ``at``, where it has its own. ``cannot`` has
all other claims, by the reason why Linux has no verdict on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab import _core
from lfnlab.analysis.table import Table
from lfnlab.errors import Unavailable
from lfnlab.experiment.executor import SIMULATOR
from lfnlab.experiment.run import Progress, execute
from lfnlab.papers import paper

if TYPE_CHECKING:
    from lfnlab.analysis.finding import Finding
    from lfnlab.experiment.executor import Backend
    from lfnlab.experiment.plan import Case
    from lfnlab.results.runs import Results


@dataclass(frozen=True)
class OnLinux:
    """The findings of each part, of the simulator and of Linux, and the runs on Linux."""

    parts: Mapping[str, Sequence[tuple[Finding, Finding]]]
    results: Mapping[str, Results]

    def table(self) -> Table:
        """A row a claim: what the simulator gives and what Linux gives."""
        return Table(
            ("runs", "claim", "simulator", "Linux", "the simulator's numbers", "Linux's numbers"),
            tuple(
                (part, ours.claim, ours.verdict, theirs.verdict, ours.ours, theirs.ours)
                for part, pairs in self.parts.items()
                for ours, theirs in pairs
            ),
            6,
        )


def decide(
    name: str,
    *,
    out: str | Path,
    linux: Backend,
    part: str | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> OnLinux:
    """Run each part in the simulator and on ``linux``; runs that ``out`` has are not run again.

    Raises:
        Unavailable: where Linux can decide none of the paper's claims, or there is no such part.
        ScenarioError: of a run that Linux does not have.
    """
    module, settings = paper.claims_of(name), paper.settings_of(name, quick=False)
    own = settings["linux"]
    parts = own.get("parts", {})
    if not parts:
        raise Unavailable(f'"{name}" has no claim for Linux: {"; ".join(own["cannot"])}')
    if part is not None and part not in parts:
        raise Unavailable(f'"{name}" has no part "{part}" on Linux; allowed: {", ".join(parts)}')

    def runner(place: Backend, wanted: Sequence[Mapping[str, Any]]) -> paper.Execute:
        def run(cases: Sequence[Case], title: str) -> Results:
            for case in cases:
                place.check(_core.Scenario(case.scenario.to_toml(), name))
            at = Path(out, place.name)
            return execute(cases, out=at, jobs=jobs, progress=progress, title=title, backend=place)

        return paper.only(run, wanted)

    found, results = {}, {}
    for title, said in parts.items():
        if part in (None, title):
            chosen = paper.nested(settings, own.get("at", {}))
            chosen = paper.nested(chosen, said.get("settings", {}))
            ours, theirs = (
                module.study_of(chosen, runner(place, said["runs"]), f"{title}, {place.name}")
                for place in (SIMULATOR, linux)
            )
            claims = [one for one in module.CLAIMS if one.__name__.upper() in said["claims"]]
            sides = (paper.tested(claims, study) for study in (ours, theirs))
            found[title] = list(zip(*sides, strict=True))
            results[title] = theirs.results
    return OnLinux(found, results)


def accept(name: str, found: OnLinux, release: str) -> Path:
    """Keep the verdicts for the pages, beside those of parts that were not run now."""
    before: dict[str, Any] = paper.expected(name).get("linux", {}).get("parts", {})
    now = {
        part: {
            "release": release,
            "hash": paper.hash_of(found.results[part]),
            "runs": len(found.results[part].runs),
            "claims": {
                ours.claim: {
                    where: paper.kept(one)
                    for where, one in (("simulator", ours), ("linux", theirs))
                }
                for ours, theirs in pairs
            },
        }
        for part, pairs in found.parts.items()
    }
    return paper.expect(
        name, "linux", {"command": f"lfn paper {name} --on linux", "parts": before | now}
    )
