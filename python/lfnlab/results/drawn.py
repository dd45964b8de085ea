"""Figures of results by their names. Figures stand above results, so ``lfnlab`` says what draws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol


class Drawn(Protocol):
    """A figure, see :class:`lfnlab.figures.drawing.Drawing`."""

    @property
    def figure(self) -> Any:
        """Of matplotlib."""

    @property
    def says(self) -> str:
        """Its content, in one line."""

    def save(self, file: str | Path) -> Path:
        """Write it as PNG, PDF or SVG, by the ending of the name."""


by: Callable[[Any, str], Drawn]
"""Draws a named figure of :class:`lfnlab.results.runs.Results`."""
