"""A row of the table of benchmarks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A figure, and the one that it is compared with in the same run."""

    case: str
    #: With its unit.
    cost: str
    #: None where nothing is beside it.
    ratio: float | None = None
    #: The bound of `ratio`, or of the cost where there is none; 0 where there is no bound.
    bar: float = 0.0
    #: Whether the bar is the least, not the most.
    at_least: bool = False
    #: Peak of the process.
    mb: float | None = None

    def cells(self, counts: dict[str, float]) -> tuple[str, ...]:
        """The row in Markdown; a ratio beyond its bar is bold."""
        value = float(self.cost.split()[0]) if self.ratio is None else self.ratio
        meets = not self.bar or (value >= self.bar if self.at_least else value <= self.bar)
        ratio = "" if self.ratio is None else f"{self.ratio:.{2 if self.ratio < 10 else 0}f}"
        cost = self.cost
        if not meets:
            cost, ratio = (cost, f"**{ratio}**") if ratio else (f"**{cost}**", "")
        bar = f"{'≥ ' if self.at_least else ''}{self.bar:g}" if self.bar else ""
        count = f"{counts[self.case]:,.0f}" if self.case in counts else ""
        return self.case, cost, ratio, bar, count, "" if self.mb is None else f"{self.mb:,.0f}"
