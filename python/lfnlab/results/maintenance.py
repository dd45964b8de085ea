"""Care of a store: what is in it, whether it is whole, what may go, and several made one."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lfnlab.errors import StoreError, UsageError
from lfnlab.results import index, integrity, shards
from lfnlab.results.batch import Batch
from lfnlab.results.store import (
    EXPERIMENT,
    LAYOUT_FILE,
    Store,
    check_layout,
    discard,
    in_folders,
    is_leftover,
    missing_layout,
    stored,
)

DEAD_AFTER_S = 3600.0
"""A run is written in seconds: what is not finished for an hour was left by a killed process."""
_HALF_FILE = re.compile(
    r"\.(store\.json|experiment\.json|(report|laboratory)\.html|[\w-]+\.(png|pdf))\.\d+(\.[0-9a-f]{8})?"
)


@dataclass(frozen=True)
class Damage:
    """Something stored that is not what was stored, and why."""

    key: str
    """The address of a run, or the name of a file of the store."""
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


def measurement_fault(root: Path) -> str | None:
    """Fault of the files of a measurement by the hashes in its provenance, or None."""
    return integrity.fault(root, hashed_bytes=None, measured=True)


def damage(run: Path) -> Damage | None:
    """Fault of a run's files by the hashes in its provenance, or None."""
    why = integrity.fault(run, hashed_bytes=None)
    return None if why is None else Damage(run.name, why)


def verify(root: Path) -> Iterator[tuple[str, Damage | None]]:
    """Each run of a store with its fault or None, then the faulty files of the store itself.

    Raises:
        StoreError: when the directory is not a store, or of a later version.
    """
    for key in runs_of(root):
        yield key, damage(root / "runs" / key)
    for name, why in shards.of(root / "runs").wrong.items():
        yield name, Damage(name, why)
    if not check_layout(root):
        yield LAYOUT_FILE, Damage(LAYOUT_FILE, missing_layout(root))
    if (root / LAYOUT_FILE).is_symlink():
        yield LAYOUT_FILE, Damage(LAYOUT_FILE, "is a link; a store makes none")
    if os.path.lexists(root / EXPERIMENT):
        try:
            integrity.unsealed(root / EXPERIMENT)
        except StoreError as error:
            yield EXPERIMENT, Damage(EXPERIMENT, str(error))
    for part in index.damaged(root):
        name = str(part.relative_to(root))
        why = f"is not what was stored and not read; lfn store ls {root} writes it again"
        yield name, Damage(name, why)


def garbage(root: Path, *, code: str | None, damaged: bool) -> list[Path]:
    """Paths for :func:`remove`: files of killed processes, and the runs that the arguments select.

    Args:
        root: the store; files that no store makes are never returned.
        code: also the runs of this version of the code.
        damaged: also the runs that :func:`verify` finds wrong, to be run again.

    Raises:
        StoreError: when the directory does not say that it is a store.
    """
    if not check_layout(root):
        raise StoreError(f"nothing is removed from {root}: {missing_layout(root)}")
    keys = runs_of(root)
    dead = time.time() - DEAD_AFTER_S
    ours = [entry for entry in (root / "runs").iterdir() if is_leftover(entry.name)]
    for home in (root, root / "figures"):
        if home.is_dir():
            ours += [file for file in home.iterdir() if _HALF_FILE.fullmatch(file.name)]
    found = [entry for entry in ours if entry.lstat().st_mtime < dead]
    if damaged:
        found += [root / "runs" / name for name in shards.of(root / "runs").wrong]
    for key in keys:
        run = root / "runs" / key
        if (damaged and damage(run)) or (code is not None and code_of(run) == code):
            found.append(run)
    return found


def remove(entries: list[Path]) -> None:
    """Remove what :func:`garbage` found.

    Raises:
        StoreError: when that is not allowed.
    """
    held = [entry for entry in entries if shards.holds(entry)]
    for home in {entry.parent for entry in held}:
        Store(home.parent).drop({entry.name for entry in held if entry.parent == home})
    for entry in entries:
        if entry in held:
            continue
        try:
            discard(entry)
        except OSError as error:
            raise StoreError(f"cannot remove {entry}: {error.strerror}") from None


def code_of(run: Path) -> str | None:
    """The version of the code that made a run; None where that cannot be read."""
    try:
        return str(integrity.provenance_of(run)["code"])
    except (StoreError, KeyError):
        return None


@dataclass(frozen=True)
class Merged:
    """Runs of one store that :func:`merge` took or skipped: counts, and lists of faulty ones."""

    taken: int
    there: int
    damaged: tuple[Damage, ...]
    unequal: tuple[str, ...]
    """Runs that both stores have with other bytes, which no version of the code should make."""


def merge(source: Path, into: Store) -> Merged:
    """Take the runs of a store that the other lacks. Damaged ones stay where they are.

    No link in the source is followed.

    Raises:
        StoreError: when the source cannot be read or the other cannot be written.
    """
    if (source / "runs").is_symlink():
        raise StoreError(f"cannot read results: {source / 'runs'} is a link; a store makes none")
    there = into.keys()
    taken, known, damaged, unequal = 0, 0, [], []
    batch = Batch(into, lambda _: None)
    for key in runs_of(source):
        run = source / "runs" / key
        if shards.holds(run):
            continue
        if (found := damage(run)) is not None:
            damaged.append(found)
            continue
        hashes = integrity.provenance_of(run).get("files")
        if hashes is None:
            damaged.append(Damage(key, "lfnlab 0.1.0 recorded no hashes, so it cannot be checked"))
        elif key in there and damage(into.path(key)) is None:
            known += 1
            if hashes != integrity.provenance_of(into.path(key)).get("files"):
                unequal.append(key)
        elif into.remote is not None:
            damaged.append(Damage(key, f"has tables; {into.remote.address} keeps summaries alone"))
        else:
            files = {name: integrity.content(run / name) for name in (*hashes, "provenance.json")}
            batch.add(key, files)
            taken += 1
    held, ours = shards.of(source / "runs"), into.keys()
    theirs = held.keys() - in_folders(source)
    for key in sorted(theirs & into.shards.keys()):
        texts = (one.files(key) or {} for one in (held, into.shards))
        if len({found.get("summary.json") for found in texts}) > 1:
            unequal.append(key)
    known += len(theirs & ours)
    taken += len(theirs - ours)
    damaged += [Damage(name, why) for name, why in held.wrong.items()]
    for rows in held.whole(theirs - ours):
        batch.add_rows(rows)
    batch.write()
    return Merged(taken, known, tuple(damaged), tuple(unequal))
