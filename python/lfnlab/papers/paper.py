"""Reproductions of papers: run a paper's experiments, compute its claims, give a verdict on each.

A paper is a directory ``papers/NAME`` of the source tree with

    full.toml, quick.toml   settings of the study; quick takes the same path in seconds
    claims.py               ``reproduce(settings, execute)``, which returns a :class:`Reproduction`;
                            other modules of the directory are its siblings (``from .runs import``)
    extensions.py           where the paper left questions open: :mod:`lfnlab.papers.extension`
    expected.json           the findings that were accepted, of either size

A claim that does not hold is a result. The check fails only if a verdict changes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lfnlab.analysis.checks import Known, check, family
from lfnlab.analysis.finding import Finding, Verdict
from lfnlab.analysis.table import Table
from lfnlab.errors import LabError, Unavailable
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import Progress, execute
from lfnlab.papers.study import Study
from lfnlab.results.runs import Results
from lfnlab.scenario import presets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lfnlab.results.runs import Run
    from lfnlab.statistics import Interval

Execute = Callable[[Sequence[Case], str], Results]
"""Runs cases under a title."""


@dataclass(frozen=True)
class Reproduction:
    """Everything that a reproduction shows.

    ``sensitivity`` holds the findings again with another value of a setting that the paper does not
    give, by that value. ``causes`` holds findings with a suspected cause added or removed, by that;
    it may be something that the paper does give. A table with the paper's values has the word
    "paper" in its heading, a figure in its caption: a quick study leaves them out, since its own
    values are not of that size.
    """

    results: Results
    findings: Sequence[Finding]
    sensitivity: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    causes: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    figures: Mapping[str, tuple[Figure, str]] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    traced: Sequence[Run] = ()

    def by_claim(self) -> dict[str, Finding]:
        """By claim; by "claim @ value" where a setting was varied; by "claim with cause"."""
        findings = {finding.claim: finding for finding in self.findings}
        for word, others in (("@", self.sensitivity), ("with", self.causes)):
            for value, again in others.items():
                findings |= {f"{finding.claim} {word} {value}": finding for finding in again}
        return findings


def hash_of(results: Results) -> str:
    """Of the hashes of all runs: the same results have the same."""
    runs = "\n".join(run.summary["hash"] for run in results.runs)
    return hashlib.sha256(runs.encode()).hexdigest()[:16]


def decided(
    claim: str, where: str, says: str, ours: str, tests: Mapping[str, Known], cause: str = ""
) -> Finding:
    """A claim that holds if every test does; each verdict is wrong with 1/40 at most.

    That is so for all tests of the claim together: :func:`lfnlab.analysis.checks.family`.

    Args:
        claim: its name.
        where: its place in the paper.
        says: what the paper says.
        ours: what we saw.
        tests: by what is so where the test fails.
        cause: why, if it does not hold; default the tests that fail.
    """
    checks = family({said: check(known) for said, known in tests.items()})

    def found(verdict: Verdict, cause: str = "") -> Finding:
        return Finding(claim, where, says, ours, verdict, cause, checks)

    if failed := [said for said, one in checks.items() if one.so is False]:
        return found("does not hold", cause or "; ".join(failed))
    if open_ := [said for said, one in checks.items() if one.so is None]:
        return found("undecided", f"the interval covers the bound: {'; '.join(open_)}")
    return found("holds")


#: So many draws with one verdict count. The verdict on a draw is wrong by chance with a probability
#: of 1/40 at most, in three of twenty draws with 1.3 %.
LEAST_DRAWS = 3


def overall(
    reference: Verdict, varied: Iterable[Verdict], drawn: Iterable[Verdict] = ()
) -> Verdict:
    """The verdict over all values of a choice: "depends" if the decided ones differ.

    ``drawn`` has the draws with runs of their own: :func:`once`.
    """
    often = [verdict for verdict, n in Counter(drawn).items() if n >= LEAST_DRAWS]
    known = {one for one in (reference, *varied, *often) if one in ("holds", "does not hold")}
    return "depends" if len(known) > 1 else reference


def once(verdicts: Sequence[Verdict], seen: Sequence[str]) -> list[Verdict]:
    """The verdicts, one of those that are from the same runs; all, where ``seen`` is empty."""
    return list(dict(zip(seen, verdicts, strict=True)).values()) if seen else list(verdicts)


def signed(value: Interval, scale: float, digits: int) -> str:
    """Mean with its sign, and half-width where there is one, both times ``scale``."""
    mean = f"{value.mean * scale:+.{digits}f}"
    return mean if value.half != value.half else f"{mean} ± {value.half * scale:.{digits}f}"


S = TypeVar("S", bound=Study)
Claim = Callable[[S], Finding]
"""A claim, as a function of a study."""


def tested(claims: Iterable[Claim[S]], study: S) -> list[Finding]:
    """The findings of claims on one study, each with a digest of its runs and of its words.

    Two findings with one digest are one observation: they count once.
    """
    found = []
    for claim in claims:
        study.used.clear()
        finding = claim(study)
        seen = "\n".join([*sorted(study.used), finding.ours])
        found.append(replace(finding, seen=hashlib.sha256(seen.encode()).hexdigest()[:12]))
    return found


def studies(
    settings: Mapping[str, Any], execute: Execute, study_of: Callable[..., S]
) -> dict[str, S]:
    """The reference point, called "chosen", and the variants, by name.

    ``study_of(settings, execute, name)`` makes one. A variant has its own settings over those of
    ``shorter``, where the paper's settings have that table. The reference point is made last: its
    runs are then the experiment that the results directory remembers.
    """
    shorter = nested(settings, settings.get("shorter", {}))
    made = {
        name: study_of(nested(shorter, own), execute, name)
        for name, own in settings["variants"].items()
    }
    return {"chosen": study_of(settings, execute, "chosen")} | made


def tried(
    settings: Mapping[str, Any],
    execute: Execute,
    study_of: Callable[..., S],
    claims: Sequence[Claim[S]],
) -> dict[str, list[Finding]]:
    """Claims again with a suspected cause added or removed, by what that is.

    The table ``causes`` of the settings has for each its ``claims``, the factors of the ``runs``
    that they need, and the ``settings`` that differ from those of ``shorter``. With ``suspected =
    false`` it is no cause, but a setting of the paper that the reference point does not have.
    """
    shorter, made = nested(settings, settings.get("shorter", {})), {}
    for name, own in settings.get("causes", {}).items():
        study = study_of(nested(shorter, own["settings"]), only(execute, own["runs"]), name)
        about = [claim for claim in claims if claim.__name__.upper() in own["claims"]]
        made[name] = tested(about, study)
    return made


def only(execute: Execute, runs: Sequence[Mapping[str, Any]]) -> Execute:
    """Runs the cases that have one of these sets of factors, and no others."""

    def run(cases: Sequence[Case], title: str) -> Results:
        wanted = [factors.items() for factors in runs]
        chosen = [case for case in cases if any(case.factors.items() >= of for of in wanted)]
        return execute(chosen, title)

    return run


def judged(
    studies: Mapping[str, S],
    claims: Sequence[Claim[S]],
    *,
    by: str,
    varied: Sequence[Claim[S]] | None = None,
    constant: Sequence[Finding] = (),
    causes: Mapping[str, Sequence[Finding]] | None = None,
    figures: Mapping[str, tuple[Figure, str]],
    tables: Mapping[str, Table],
    traced: Sequence[Run] = (),
) -> Reproduction:
    """Test the claims on the first study, the chosen one, and again on the others.

    Args:
        studies: by the value of what the paper does not say.
        claims: what the paper claims.
        by: what that is, for the table of verdicts.
        varied: the claims to test on the other studies; default all.
        constant: findings that follow from no study.
        causes: as in :class:`Reproduction`.
        figures: as in :class:`Reproduction`.
        tables: shown before that of verdicts.
        traced: as in :class:`Reproduction`.
    """
    (chosen, study), *others = studies.items()
    own = tested(claims, study)
    again_of = claims if varied is None else varied
    sensitivity = {value: tested(again_of, other) for value, other in others}
    again = [[finding.claim for finding in column] for column in sensitivity.values()]
    common = {finding.claim: finding for finding in own}
    columns = {chosen: [common[claim] for claim in again[0]]} | sensitivity
    return Reproduction(
        results=study.results,
        findings=sorted([*own, *constant], key=lambda finding: int(finding.claim[1:])),
        sensitivity=sensitivity,
        causes=causes or {},
        figures=figures,
        tables={**tables, f"Verdicts by {by}": _verdict_table(columns)},
        traced=traced,
    )


def _verdict_table(findings: Mapping[str, Sequence[Finding]]) -> Table:
    """Verdict of each claim for each value of a setting, by that value."""
    names = [finding.claim for finding in next(iter(findings.values()))]
    return Table(
        ("claim", *findings),
        tuple(
            (name, *(column[i].verdict for column in findings.values()))
            for i, name in enumerate(names)
        ),
        len(findings) + 1,
    )


def papers() -> dict[str, Path]:
    """Directory of each paper by its name, such as "htcp-be"."""
    root = presets.root() / "papers"
    if not root.is_dir():
        raise Unavailable(
            "the papers are part of a clone and of the wheel, not of a package that was built from "
            "source: clone the repository and call lfn there"
        )
    return {
        path.parent.name.replace("_", "-"): path.parent for path in sorted(root.glob("*/claims.py"))
    }


def reproduce(
    name: str,
    *,
    quick: bool = False,
    out: str | Path = "lfn-results",
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Run a paper's study and test its claims."""

    def run(cases: Sequence[Case], title: str) -> Results:
        return execute(cases, out=out, jobs=jobs, progress=progress, title=title)

    reproduction: Reproduction = claims_of(name).reproduce(settings_of(name, quick), run)
    return reproduction


def claims_of(name: str) -> Any:
    """A paper's claims.py as a package ``papers_NAME``; other files of its directory are in it."""
    directory = directory_of(name)
    spec = importlib.util.spec_from_file_location(
        f"papers_{directory.name}",
        directory / "claims.py",
        submodule_search_locations=[str(directory)],
    )
    if spec is None or spec.loader is None:
        raise Unavailable(f"{directory / 'claims.py'} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def settings_of(name: str, quick: bool) -> dict[str, Any]:
    """The settings of a paper's study: full.toml or quick.toml."""
    file = directory_of(name) / f"{_size(quick)}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def nested(settings: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with other values, also in their tables."""
    return {
        **settings,
        **{
            key: {**settings.get(key, {}), **value} if isinstance(value, dict) else value
            for key, value in said.items()
        },
    }


def changed(name: str, quick: bool, reproduction: Reproduction) -> list[str]:
    """Verdicts that are not the accepted ones, and another hash, each as a line of text."""
    accepted = expected(name).get(_size(quick), {})
    was = {claim: finding["verdict"] for claim, finding in accepted.get("findings", {}).items()}
    now: dict[str, str] = {c: finding.verdict for c, finding in reproduction.by_claim().items()}
    was |= {"hash": accepted["hash"]} if accepted else {}
    now |= {"hash": hash_of(reproduction.results)}
    return [
        f"{claim}: {was.get(claim, 'not accepted yet')} -> {now.get(claim, 'gone')}"
        for claim in dict.fromkeys([*was, *now])
        if was.get(claim) != now.get(claim)
    ]


def accept(name: str, quick: bool, reproduction: Reproduction) -> Path:
    """Make these findings the expected ones."""
    found = {
        "command": f"lfn paper {name}{' --quick' * quick}",
        "hash": hash_of(reproduction.results),
        "runs": len(reproduction.results.runs),
        "findings": {claim: kept(finding) for claim, finding in reproduction.by_claim().items()},
    }
    if not quick:
        found["figures"] = keep_figures(name, reproduction.figures)
    return expect(name, _size(quick), found)


def kept(finding: Finding) -> dict[str, Any]:
    """A finding as expected.json has it, with its tests."""
    tests = {said: one.to_json() for said, one in finding.tests.items()}
    return {key: said for key, said in vars(finding).items() if key != "claim"} | {"tests": tests}


def keep_figures(name: str, figures: Mapping[str, tuple[Figure, str]]) -> dict[str, str]:
    """Write figures to docs/figures, for the pages; their captions by file."""
    from lfnlab.figures.small import for_page  # a second, which few commands need

    directory, captions = directory_of(name).parents[1] / "docs" / "figures", {}
    for title, (figure, caption) in figures.items():
        captions[file := f"{name}-{title}.png"] = caption
        try:
            (directory / file).write_bytes(for_page(figure))
        except OSError as error:
            raise LabError(f"cannot keep a figure: {directory}: {error.strerror}") from error
    return captions


def check_clone() -> None:
    """Raise Unavailable in a package: findings are kept in a clone."""
    if presets.root() == presets.SHARED:
        raise Unavailable("findings are accepted in a clone of the repository, not in a package")


def expect(name: str, part: str, found: Mapping[str, Any]) -> Path:
    """Keep what was found in a part of the work on a paper: in expected.json, under its name."""
    check_clone()
    file = directory_of(name) / "expected.json"
    text = json.dumps(expected(name) | {part: found}, indent=1, ensure_ascii=False)
    # A test on one line.
    text = re.sub(r'\{\s+"so":[^{}]*\}', lambda test: " ".join(test[0].split()), text)
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot accept the findings: {file}: {error.strerror}") from error
    return file


def expected(name: str) -> dict[str, Any]:
    """Accepted findings: "full" and "quick" have command, hash, number of runs, findings.

    "extensions" and "kernel" have the findings of :mod:`lfnlab.papers.extension`.
    """
    file = directory_of(name) / "expected.json"
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return found


def title_of(name: str) -> str:
    """The paper's title: the first line of its README."""
    text = (directory_of(name) / "README.md").read_text(encoding="utf-8")
    return text.splitlines()[0].lstrip("# ")


def directory_of(name: str) -> Path:
    """Where the files of a paper are."""
    known = papers()
    if name not in known:
        raise Unavailable(f'no paper "{name}"; allowed: {", ".join(known)}')
    return known[name]


def _size(quick: bool) -> str:
    return "quick" if quick else "full"
