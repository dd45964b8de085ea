"""Findings: a claim, its verdict and its evidence, for papers, studies and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "does not hold", "cannot be tested"]


@dataclass(frozen=True)
class Finding:
    """A claim, what we saw, and whether it holds."""

    claim: str
    where: str
    says: str
    ours: str
    verdict: Verdict
    cause: str = ""
