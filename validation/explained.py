"""The differences beyond the aim whose cause is known: each names the rule that makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .compare import Difference


@dataclass(frozen=True)
class Explanation:
    """A rule, and the differences that it explains. Empty tuples stand for every path or figure."""

    peer: str
    laws: tuple[str, ...]
    paths: tuple[str, ...]
    figures: tuple[str, ...]
    rule: str

    def covers(self, peer: str, difference: Difference) -> bool:
        """Whether this is the reason that ``difference`` has one."""
        return (
            peer == self.peer
            and difference.run.law in self.laws
            and (not self.paths or difference.run.path.name in self.paths)
            and (not self.figures or difference.figure in self.figures)
        )


EXPLAINED: tuple[Explanation, ...] = ()
