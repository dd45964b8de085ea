"""Contents of a store, in folders and in shards."""

from __future__ import annotations

from pathlib import Path

from lfnlab.results import shards


def contents(root: Path) -> dict[str, bytes]:
    """Every file of every run but its provenance, which says who ran it."""
    found = {
        str(file.relative_to(root)): file.read_bytes()
        for file in sorted((root / "runs").glob("[!.]*/*"))
    }
    held = shards.of(root / "runs")
    held.refresh()
    for key in sorted(held.keys()):
        found |= {f"runs/{key}/{name}": data for name, data in (held.files(key) or {}).items()}
    others = ("provenance.json", shards.REDUCTIONS)
    return {name: found[name] for name in sorted(found) if not name.endswith(others)}
