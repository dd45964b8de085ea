"""Figures of results by their names. Figures stand above results, so ``lfnlab`` says what draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


Chosen = str | Path
"""A style: its name or its file."""
Settings = Mapping[str, Any]
"""Keys of a style with other values."""
by: Callable[[Any, str, Chosen, Settings], Drawn]
"""Draws a named figure of :class:`lfnlab.results.runs.Results`."""
