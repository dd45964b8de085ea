"""Are the files of a store those that were written? What is read is compared before it is used.

A run's ``provenance.json`` has the length and the SHA-256 of every other file of the run. It and
``experiment.json`` carry a seal: the SHA-256 of their own text, taken with zeros in its place. A
run's directory has the name that its ``provenance.json`` gives: a whole run in the place of another
is damaged. Runs that lfnlab stored before it wrote seals, lengths and resolved scenarios stay
readable, as far as they can be checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lfnlab.errors import StoreError
from lfnlab.results import shards

TABLES = ("flows", "queues", "events", "probes")
"""Those that every run has; transfers and packets come where there are any."""
NAMES = {
    "summary.json",
    "scenario.toml",
    "provenance.json",
    *(f"{table}.parquet" for table in TABLES),
}
"""Files that every run has."""
KEY = shards.KEY
"""The name of a run's directory. Nothing else in ``runs/`` is a run, but what a shard holds."""
_FILE = re.compile(r"\w[\w.-]*")
HASHED_BYTES = 1 << 20
"""Of a run that is there already, files up to this length are hashed; longer ones are measured."""
READ_BYTES = 1 << 30
"""Longest file whose length was not recorded and that is read nevertheless."""
SEAL = "sha256"
_BLANK = "0" * 64
_EARLIER = {
    "provenance.json": {
        *("code", "git", "python", "packages", "system", "host", "cpu", "cores", "finished"),
        *("wall_s", "cpu_s", "hash", "command", "resolved", "files"),
    },
    "experiment.json": {"schema", "title", "runs", "source"},
}
"""Keys of those that have no seal. A changed letter in the name of a seal is no such key."""
_OWN = {"provenance.json": {"files"}, "experiment.json": {"title", "runs"}}
"""Keys by which one with a seal is known to be this file, and no other that has one."""


def address(code: str, resolved: Mapping[str, Any]) -> str:
    """Name of a simulated run: a hash of the code and of the resolved scenario with its seed."""
    before, after = around_seed(code, resolved)
    return _sha256(f"{before}{json.dumps(resolved['seed'])}{after}".encode())[:24]


def around_seed(code: str, resolved: Mapping[str, Any]) -> tuple[str, str]:
    """The text of :func:`address`, sorted JSON, before and after the seed."""
    parts = [
        f"{json.dumps(key)}: {json.dumps(resolved[key], sort_keys=True)}"
        for key in sorted(resolved)
    ]
    at = sorted(resolved).index("seed")
    before, after = parts[:at], parts[at + 1 :]
    return f'{code}\n{{{", ".join([*before, ""])}"seed": ', f"{', '.join(['', *after])}}}"


def sealed(document: Mapping[str, Any]) -> bytes:
    """A JSON object with the hash of its own text."""
    text = json.dumps({**document, SEAL: _BLANK}, default=lambda number: number.item())
    front, _, back = text.rpartition(_BLANK)
    return f"{front}{_sha256(text.encode())}{back}".encode()


_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("code", "python", "system", "command", "key", "finished", "hash"), str),
    **dict.fromkeys(("bytes", "files", "resolved"), dict),
    **dict.fromkeys(("wall_s", "cpu_s"), (int, float)),
}
"""Of keys of sealed files."""
_HELD = {"bytes": int, "files": str}


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def unsealed(file: Path) -> dict[str, Any]:
    """Contents of a sealed JSON file.

    Raises:
        StoreError: when the file is damaged. The text names the remedy.
    """
    try:
        text = _read(file).decode()
        document = json.loads(text)
    except OSError as error:
        raise damaged(file, error.strerror or str(error)) from None
    except (ValueError, RecursionError):
        raise damaged(file, "is not JSON") from None
    if not isinstance(document, dict):
        raise damaged(file, "is not an object")
    for key, kind in _TYPES.items():
        if key in document and not _is(document[key], kind):
            raise damaged(file, f"has a wrong type of {key}")
    for key, kind in _HELD.items():
        if not all(_is(value, kind) for value in document.get(key, {}).values()):
            raise damaged(file, f"has a wrong type in {key}")
    seal = document.pop(SEAL, None)
    if seal is None:
        if document.keys() - _EARLIER[file.name]:
            raise damaged(file, "is not what was stored")
        return document
    if not _OWN[file.name] <= document.keys():
        raise damaged(file, "has the text of another file")
    front, found, back = text.rpartition(str(seal))
    if not found or _sha256(f"{front}{_BLANK}{back}".encode()) != seal:
        raise damaged(file, "is not what was stored")
    return document


def provenance_of(run: Path) -> dict[str, Any]:
    """Contents of a run's ``provenance.json``, see ``docs/results.md``.

    Raises:
        StoreError: when it is damaged, or that of another run.
    """
    if (held := shards.files(run)) is not None:
        found: dict[str, Any] = json.loads(held["provenance.json"])
        return found
    said = unsealed(run / "provenance.json")
    if (why := _misplaced(run, said)) is not None:
        raise damaged(run / "provenance.json", why)
    return said


def content(file: Path) -> bytes:
    """A file of a run, as it was stored. One outside of a store is read as it is.

    Raises:
        StoreError: when it is damaged, or cannot be read.
    """
    if (held := shards.files(file.parent)) is not None:
        if file.name not in held:
            raise damaged(file, "no such file was stored")
        return held[file.name]
    wanted, length = _recorded(file)
    try:
        data = _read(file, length)
    except OSError as error:
        raise damaged(file, error.strerror or str(error)) from None
    if wanted is not None and _sha256(data) != wanted:
        raise damaged(file, "is not what was stored")
    return data


def checked(file: Path) -> Path:
    """A file of a run that the caller will read by its name; :func:`content` checks it first.

    Raises:
        StoreError: when it is damaged, or cannot be read.
    """
    wanted, length = _recorded(file)
    try:
        if wanted is not None and _hash_of(file, length) != wanted:
            raise damaged(file, "is not what was stored")
    except OSError as error:
        raise damaged(file, error.strerror or str(error)) from None
    return file


def fault(
    run: Path, hashed_bytes: int | None = HASHED_BYTES, *, measured: bool = False
) -> str | None:
    """Fault of the files of a stored run or of a measurement, or None.

    Args:
        run: its directory.
        hashed_bytes: longer files are measured and not hashed; None to hash all.
        measured: it is a measurement, which has no scenario.
    """
    if shards.holds(run):
        return None
    if not measured and (absent := incomplete(run)) is not None:
        return absent
    try:
        said = unsealed(run / "provenance.json")
    except StoreError:
        return "provenance.json is not what was stored"
    if (why := _misplaced(run, said)) is not None:
        return why
    hashes, lengths = said.get("files"), said.get("bytes", {})
    if hashes is None:
        return None  # lfnlab 0.1.0 recorded none
    for name, wanted in sorted(hashes.items()):
        if not _FILE.fullmatch(name):
            return f"provenance.json names {name!r}, which is not a file of a run"
        file = run / name
        try:
            found = os.lstat(file)
            if not stat.S_ISREG(found.st_mode):
                return f"{name} is not a regular file"
            length = lengths.get(name)
            if length is not None and found.st_size != length:
                return f"{name} has {found.st_size:,} bytes; {length:,} were stored"
            short = hashed_bytes is None or length is None or length <= hashed_bytes
            if short and _hash_of(file) != wanted:
                return f"{name} is not what was stored"
        except OSError as error:
            return f"{name}: {error.strerror}"
    return None


def tables_of(run: Path) -> list[str]:
    """The tables of a run, by what was stored; of one outside of a store those that are there.

    Of a run that keeps its summary alone, those that simulating it again gives.
    """
    if (held := shards.files(run)) is not None:
        models = json.loads(held["summary.json"]).get("traffic")
        return sorted([*TABLES, *(["transfers"] if models else [])])
    said = provenance_of(run) if KEY.fullmatch(run.name) else {}
    names = said.get("files") or [file.name for file in run.glob("*")]
    return sorted(name.removesuffix(".parquet") for name in names if name.endswith(".parquet"))


def incomplete(run: Path) -> str | None:
    """Incompleteness of a stored run, by file names only; None if all are there."""
    if shards.holds(run):
        return None
    try:
        if run.is_symlink():
            return "it is a link; a store makes none"
        absent = NAMES.difference(os.listdir(run))
    except OSError as error:
        return error.strerror or str(error)
    return f"{min(absent)} is missing" if absent else None


def remedy(root: Path) -> str:
    """Advice on damaged runs of a store."""
    return (
        f"`lfn store gc {root} --damaged --yes` removes damaged runs, and the command that made "
        "them runs them again"
    )


def damaged(file: Path, why: str) -> StoreError:
    """The error for a damaged file, with its remedy."""
    if KEY.fullmatch(file.parent.name):
        todo = remedy(file.parents[2])
    elif shards.NAME.fullmatch(file.name):
        todo = remedy(file.parents[1])
    elif file.name == "experiment.json":
        todo = "the command that made the experiment writes it again, and no run that is there"
    else:
        todo = "make it again"
    return StoreError(f"cannot read results: {file}: {why}; {todo}")


def _misplaced(run: Path, said: Mapping[str, Any]) -> str | None:
    """Which run a directory of a store has in the place of its own, by its provenance; or None.

    A run without a resolved scenario cannot be checked, nor can one of a test bed that has no key.
    """
    if not KEY.fullmatch(run.name) or "resolved" not in said:
        return None
    found = said["key"] if "key" in said else address(str(said.get("code")), said["resolved"])
    if found == run.name:
        return None
    try:
        if "key" not in said and "testbed" in json.loads(_read(run / "summary.json")):
            return None
    except (OSError, ValueError, RecursionError):
        return "summary.json is not what was stored"
    return f"has the run {found} in the place of its own; that one may have been moved here"


def _recorded(file: Path) -> tuple[str | None, int | None]:
    """Hash and length of a file of a run of a store, or of a measurement, where recorded."""
    if file.name == "provenance.json":
        return None, None
    of_store = KEY.fullmatch(file.parent.name) is not None
    if not of_store and not _is_sealed(file.parent):
        return None, None
    said = provenance_of(file.parent)
    hashes = said.get("files")
    if hashes is None or (not of_store and file.name not in hashes):
        return None, None
    if file.name not in hashes:
        raise damaged(file, "no such file was stored")
    return str(hashes[file.name]), said.get("bytes", {}).get(file.name)


def _is_sealed(directory: Path) -> bool:
    """Whether a directory outside of a store says what is in it, as ours do.

    Either mark is enough: one changed letter must not hide both.
    """
    try:
        said = _read(directory / "provenance.json")
    except OSError:
        return False
    return f'"{SEAL}": "'.encode() in said or b'"files": {' in said


def _read(file: Path, length: int | None = None) -> bytes:
    return b"".join(_chunks(file, length, READ_BYTES))


def _hash_of(file: Path, length: int | None = None) -> str:
    digest = hashlib.sha256()
    for chunk in _chunks(file, length):
        digest.update(chunk)
    return digest.hexdigest()


def _chunks(file: Path, length: int | None, most: int | None = None) -> Iterator[bytes]:
    """A regular file piece by piece. A run has no links, and a FIFO would have us wait for ever.

    Args:
        file: its path.
        length: its length where that was recorded; no file of another length is read.
        most: largest length otherwise.
    """
    in_run = KEY.fullmatch(file.parent.name) is not None
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | (os.O_NOFOLLOW if in_run else 0))
    with open(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "is not a regular file")
        if length is not None and status.st_size != length:
            raise OSError(0, f"has {status.st_size:,} bytes; {length:,} were stored")
        if length is None and most is not None and status.st_size > most:
            raise OSError(0, f"has {status.st_size:,} bytes; at most {most:,} are read")
        while chunk := opened.read(1 << 20):
            yield chunk


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
