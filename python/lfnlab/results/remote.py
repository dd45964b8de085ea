"""Stores at an address, such as s3://bucket/sweep: anything that fsspec can reach.

A process works on a copy of the store in a folder of its own, which it brings up to date when it
opens the store, and removes when it ends. A run is stored when its shard is at the address. Shards
never change and their names have their hashes, so a copy is right or lacks some; a shard that was
written in part is not read. Such a store keeps summaries alone.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lfnlab.errors import StoreError, Unavailable
from lfnlab.results import shards

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+(.+)")
_OF_FILES = ("file:", "local:")
"""Their paths begin at the root."""
_TOP = ("store.json", "experiment.json")


class Remote:
    """A store at an address, and the copy of it that this process works on."""

    def __init__(self, address: str) -> None:
        self.address = address
        with self._reaching():
            try:
                import fsspec

                made = {"auto_mkdir": True} if address.startswith(_OF_FILES) else {}
                self._files, self._home = fsspec.core.url_to_fs(address, **made)
            except (ImportError, ValueError) as error:
                raise Unavailable(
                    f"{address} cannot be reached: {error}; install lfnlab[remote], and fsspec's "
                    "package for this address, such as s3fs"
                ) from None
        self.copy = Path(tempfile.mkdtemp(prefix="lfn-store-"))
        atexit.register(shutil.rmtree, self.copy, ignore_errors=True)

    def pull(self) -> Path:
        """Bring the copy up to date.

        Raises:
            StoreError: the address cannot be read, or holds something else.
        """
        with self._reaching():
            self._files.invalidate_cache()
            found = self._names("")
            if found and "store.json" not in found:
                some = ", ".join(sorted(found)[:3])
                raise StoreError(
                    f"cannot use results: {self.address} is neither empty nor a store (it holds "
                    f"{some} and no store.json); choose another address"
                )
            for name in _TOP:
                self._fetch(name, name in found)
            (self.copy / "runs").mkdir(exist_ok=True)
            there = {name for name in self._names("runs") if shards.NAME.fullmatch(name)}
            for name in there.difference(os.listdir(self.copy / "runs")):
                self._fetch(f"runs/{name}", True)
            for name in set(os.listdir(self.copy / "runs")) - there:
                (self.copy / "runs" / name).unlink()
        return self.copy

    def put(self, name: str, data: bytes) -> None:
        """Store a file at the address.

        Raises:
            StoreError: it cannot be written there.
        """
        with self._reaching("write results to"):
            self._files.pipe_file(f"{self._home}/{name}", data)

    def remove(self, name: str) -> None:
        """Remove a file there, if it is there."""
        with self._reaching("write results to"):
            try:
                self._files.rm_file(f"{self._home}/{name}")
            except FileNotFoundError:
                return

    def _names(self, folder: str) -> set[str]:
        try:
            listed = self._files.ls(f"{self._home}/{folder}".rstrip("/"), detail=False)
        except FileNotFoundError:
            return set()
        return {str(name).rstrip("/").rpartition("/")[2] for name in listed} - {""}

    def _fetch(self, name: str, there: bool) -> None:
        """A file of the address, by one rename; removed here if it is not there."""
        target = self.copy / name
        data = None
        if there:
            try:
                data = self._files.cat_file(f"{self._home}/{name}")
            except FileNotFoundError:  # merged in the meantime
                data = None
        if data is None:
            target.unlink(missing_ok=True)
            return
        fresh = target.with_name(f".{target.name}")
        fresh.write_bytes(data)
        fresh.replace(target)

    @contextmanager
    def _reaching(self, doing: str = "read results:") -> Iterator[None]:
        try:
            yield
        except (StoreError, Unavailable):
            raise
        except Exception as error:  # each protocol of fsspec has errors of its own
            raise StoreError(
                f"cannot {doing} {self.address}: {error or type(error).__name__}. Runs that were "
                "stored before are intact; correct this, then repeat the command."
            ) from error


_remotes: dict[str, Remote] = {}


def of(root: str | Path) -> Remote | None:
    """The store at an address; None for a folder of this machine."""
    found = _ADDRESS.fullmatch(str(root))
    if found is None or os.path.lexists(str(root).partition("/")[0]):
        return None
    slashes = ":///" if f"{found[1]}:" in _OF_FILES else "://"
    address = f"{found[1]}{slashes}{found[2].rstrip('/')}"
    if address not in _remotes:
        _remotes[address] = Remote(address)
    return _remotes[address]


def local(root: str | Path) -> Path:
    """The folder to read: of a store at an address, its copy."""
    found = of(root)
    return Path(root) if found is None else found.pull()


def named(root: Path) -> str | Path:
    """A results directory as its user calls it."""
    return next((one.address for one in _remotes.values() if one.copy == root), root)


def kept(root: Any) -> bool:
    """Whether a folder is the copy of a store at an address."""
    return named(Path(root)) != Path(root)
