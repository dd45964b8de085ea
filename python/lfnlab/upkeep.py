"""Care of a store: what is in it, whether it is whole, what may go, and several made one."""

from __future__ import annotations

import hashlib
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lfnlab.errors import StoreError, UsageError
from lfnlab.store import Store, check_layout, read_json, stored

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEAD_AFTER_S = 3600.0
"""A run is written in seconds: what is not finished for an hour was left by a killed process."""


@dataclass(frozen=True)
class Damage:
    """A stored run that is not what was stored, and why."""

    key: str
    why: str


def runs_of(root: Path) -> list[str]:
    """The addresses of the runs of a store, in order.

    Raises:
        StoreError: when it is none, or of a later version.
    """
    if not (root / "runs").is_dir():
        raise StoreError(f"cannot read results: {root} holds no runs")
    check_layout(root)
    return sorted(stored(root))


def find(root: Path, key: str) -> Path:
    """The run whose address begins with ``key``.

    Raises:
        UsageError: when none does, or several.
    """
    found = [name for name in runs_of(root) if name.startswith(key)]
    if len(found) != 1:
        several = f"begins {len(found)} of them" if found else "is none of them"
        raise UsageError(f'"{key}" {several}; lfn store ls {root} lists the runs')
    return root / "runs" / found[0]


def damage(run: Path) -> Damage | None:
    """What is wrong with the files of a run, compared with the hashes in its provenance."""
    try:
        said = read_json(run / "provenance.json")
    except StoreError as error:
        return Damage(run.name, str(error))
    hashes = said.get("files") if isinstance(said, dict) else None
    if not isinstance(hashes, dict):
        return Damage(run.name, "provenance.json has no hashes; lfnlab 0.1.0 wrote none")
    for name, wanted in sorted(hashes.items()):
        try:
            found = hashlib.sha256((run / name).read_bytes()).hexdigest()
        except OSError as error:
            return Damage(run.name, f"{name}: {error.strerror}")
        if found != wanted:
            return Damage(run.name, f"{name} is not what was stored")
    return None


def verify(root: Path) -> Iterator[tuple[str, Damage | None]]:
    """Every run of a store with what is wrong with it."""
    for key in runs_of(root):
        yield key, damage(root / "runs" / key)


def garbage(root: Path, *, code: str | None, damaged: bool) -> list[Path]:
    """What :func:`remove` may take away: what killed processes left, and what is asked for.

    Args:
        code: also the runs of this version of the code.
        damaged: also the runs that :func:`verify` finds wrong, to be run again.
    """
    keys = runs_of(root)
    dead = time.time() - DEAD_AFTER_S
    found = [
        entry
        for entry in (root / "runs").iterdir()
        if entry.name.startswith(".") and entry.stat().st_mtime < dead
    ]
    for key in keys:
        run = root / "runs" / key
        if (damaged and damage(run)) or (code is not None and code_of(run) == code):
            found.append(run)
    return found


def remove(entries: list[Path]) -> None:
    """Remove runs, each by one rename first, so that no half of one stays.

    Raises:
        StoreError: when that is not allowed.
    """
    for entry in entries:
        try:
            gone = entry
            if not entry.name.startswith("."):
                gone = entry.with_name(f".{entry.name}.gone")
                entry.rename(gone)
            shutil.rmtree(gone)
        except OSError as error:
            raise StoreError(f"cannot remove {entry}: {error.strerror}") from None


def code_of(run: Path) -> str | None:
    """The version of the code that made a run; None where that cannot be read."""
    try:
        said: dict[str, Any] = read_json(run / "provenance.json")
        return str(said["code"])
    except (StoreError, KeyError, TypeError):
        return None


@dataclass(frozen=True)
class Merged:
    """What :func:`merge` did with the runs of one store."""

    taken: int
    there: int
    damaged: tuple[Damage, ...]
    unequal: tuple[str, ...]
    """Runs that both stores have with other bytes, which no version of the code should make."""


def merge(source: Path, into: Store) -> Merged:
    """Take the runs of a store that the other lacks. Damaged ones stay where they are.

    Raises:
        StoreError: when the source cannot be read or the other cannot be written.
    """
    there = into.keys()
    taken, known, damaged, unequal = 0, 0, [], []
    for key in runs_of(source):
        run = source / "runs" / key
        if (found := damage(run)) is not None:
            damaged.append(found)
        elif key in there:
            known += 1
            if _hashes(run) != _hashes(into.path(key)):
                unequal.append(key)
        else:
            into.put(key, {file.name: file.read_bytes() for file in run.iterdir()})
            taken += 1
    return Merged(taken, known, tuple(damaged), tuple(unequal))


def _hashes(run: Path) -> Any:
    return read_json(run / "provenance.json").get("files")
