"""Scenarios that come with lfnlab, from the source tree or a wheel."""

from __future__ import annotations

from pathlib import Path

SHARED = Path(__file__).parents[1] / "share"
"""The part of the source tree that a wheel has: papers and scenarios."""


def root() -> Path:
    """Where ``papers`` and ``scenarios`` are."""
    return SHARED if SHARED.is_dir() else Path(__file__).parents[3]


def presets() -> dict[str, Path]:
    """The scenarios by name, such as "e-vlbi"; none in a package that was built from source."""
    return {file.stem: file for file in sorted((root() / "scenarios").glob("*.toml"))}
