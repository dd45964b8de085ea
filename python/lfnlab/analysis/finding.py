"""Findings: a claim, its verdict and its evidence, for papers, studies and reports.

A claim *holds* or *does not hold* if the 95 % interval of what was measured lies on one side of the
claim's bound. It is *undecided* if the interval covers the bound, or if there is one run only. It
*depends* if it holds for one value of a choice that the paper omits and not for another. It *cannot
be tested* if the runs do not show what is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from lfnlab.analysis.checks import Check

Verdict = Literal["holds", "does not hold", "undecided", "depends", "cannot be tested"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Finding:
    """A claim, what we saw, and whether it holds.

    ``tests`` are what decides it, each by what is so where it fails.
    """

    claim: str
    where: str
    says: str
    ours: str
    verdict: Verdict
    cause: str = ""
    tests: Mapping[str, Check] = field(default_factory=dict)
    seen: str = ""
    """Of a paper's claim a digest of its runs and ``ours``: findings with the same count once."""
