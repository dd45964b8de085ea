"""The runs of a paper's study, by what was chosen in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lfnlab.results.cases import Factor
    from lfnlab.results.runs import Results, Run


def system(settings: Mapping[str, Any], law: str) -> str:
    """The variant of a law that is run under its name: ``systems`` of the settings has it."""
    named: str = settings.get("systems", {}).get(law, law)
    return named


@dataclass(frozen=True)
class Study:
    """The runs of one choice of what a paper does not say. A paper's own adds what it measures."""

    settings: Mapping[str, Any]
    results: Results
    used: set[str] = field(default_factory=set, kw_only=True, compare=False, repr=False)
    """Hashes of the runs that were asked for."""

    def having(self, **factors: Factor) -> list[Run]:
        """The runs with these factors, by case and then by seed.

        Raises:
            LookupError: where the study has none, so that no claim holds of nothing.
        """
        found = [
            run
            for run in self.results.runs
            if all(run.factors.get(name) == value for name, value in factors.items())
        ]
        if not found:
            raise LookupError(f"{self.results.title}: no run with {factors}")
        self.used.update(run.summary["hash"] for run in found)
        return found
