"""Many runs in one file: ``DIR/runs/RUNS-HASH.parquet``, a shard.

A shard has the rows of :func:`lfnlab.results.index.rows` of each run, and in the first of them the
texts of the run's files. RUNS is the number of its runs, HASH the beginning of the SHA-256 of its
bytes: that is its seal. A shard appears by one rename when it is on the disk, and never changes.
Many small ones are merged into one, which appears before they go. So no lock is needed: at worst a
run stands in two shards, and counts once.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lfnlab import _core
from lfnlab.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

KEY = re.compile(r"[0-9a-f]{24}")
"""The address of a run."""
NAME = re.compile(r"(?P<runs>\d{7})-(?P<hash>[0-9a-f]{32})\.parquet")
REDUCTIONS = "reductions.json"
FILES = ("scenario.toml", "summary.json", "provenance.json", REDUCTIONS)
"""The columns of texts, by the names of the files of a run. The last has the number of reductions
after the warm-up by flow, which a folder has in its table of events."""
LARGE, LARGE_BYTES = 20_000, 1 << 26
"""Runs, and bytes in memory, of a shard that is not merged any more."""
MOST_SMALL = 64
"""With so many smaller ones, they are merged."""
GROUP_ROWS, GROUP_BYTES = 1_000, 1 << 22
"""Most rows, and about the bytes in memory, that are read for the texts of one run."""
_BLOCKS = 8
"""So many groups of texts are kept in memory."""


class Disk(Protocol):
    """The place of shards."""

    def put_file(self, name: str, data: bytes) -> None:
        """Store a shard under its name; it is there to last when this returns."""

    def remove_file(self, name: str) -> None:
        """Remove a shard, which need not be there."""


class Shards:
    """The shards of a store that are whole. Threads may share it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.wrong: dict[str, str] = {}
        """Damaged shards, which are not read, and why."""
        self._firsts: dict[str, pl.DataFrame] = {}
        self._sizes: dict[str, int] = {}
        self._blocks: OrderedDict[tuple[str, int], pl.DataFrame] = OrderedDict()
        self._places: dict[str, tuple[str, int]] | None = None
        self._found: dict[str, tuple[str, int]] = {}
        self._seen = 0
        self._lock = threading.RLock()
        self.refresh()

    def refresh(self) -> None:
        """Look for shards that came or went."""
        with self._lock:
            # One that went before it was read was merged: another has its runs by now.
            while not self._look():
                pass

    def _look(self) -> bool:
        """Whether all shards that were there could be opened."""
        try:
            self._seen = os.stat(self.home).st_mtime_ns
            names = {name for name in os.listdir(self.home) if NAME.fullmatch(name)}
        except OSError:
            self._seen, names = 0, set()
        self.wrong = {name: why for name, why in self.wrong.items() if name in names}
        for name in self._firsts.keys() - names:
            del self._firsts[name]
            self._places, self._found = None, {}
        fresh = sorted(names - self._firsts.keys() - self.wrong.keys())
        return all(self._open(name) for name in fresh)

    def _open(self, name: str) -> bool:
        """Read the addresses of a shard's runs; whether it was still there."""
        import polars as pl

        path = self.home / name
        try:
            data = _content(path)
            if hashlib.sha256(data).hexdigest()[:32] != name[8:40]:
                raise ValueError("is not what was stored")
            need = _core.table_memory_bytes(path)
            if need > _core.memory_limit_bytes():
                raise ValueError("would take more than the memory")
            keys = pl.read_parquet(io.BytesIO(data), columns=["key"])
        except FileNotFoundError:  # merged in the meantime
            return False
        except OSError as error:
            self.wrong[name] = error.strerror or str(error)
            return True
        except (ValueError, UsageError, pl.exceptions.PolarsError) as error:
            if not os.path.lexists(path):
                return False
            self.wrong[name] = str(error) if isinstance(error, ValueError) else "is not a table"
            return True
        self._firsts[name], self._sizes[name] = _firsts(keys), need
        self._note(name, self._firsts[name])
        return True

    def keys(self) -> set[str]:
        """The addresses of the runs."""
        with self._lock:
            if self._places is not None:
                return set(self._places)
            return {key for firsts in self._firsts.values() for key in firsts["key"]}

    def locate(self, keys: Collection[str]) -> None:
        """Find these runs at once, for who will read them of very many."""
        import polars as pl

        with self._lock:
            for name, firsts in self._firsts.items():
                for key, row in _places(firsts.filter(pl.col("key").is_in(list(keys)))):
                    self._found[key] = (name, row)

    def has(self, key: str) -> bool:
        """Whether a shard holds the run."""
        return self._place(key) is not None

    def files(self, key: str) -> dict[str, bytes] | None:
        """The files of a run by name, or None."""
        with self._lock:
            for _ in range(3):  # a shard that was merged in the meantime is looked for again
                if (place := self._place(key)) is None:
                    return None
                try:
                    texts = self._texts(*place)
                except FileNotFoundError:
                    self.refresh()
                    continue
                return {name: texts[name].encode() for name in FILES}
        return None

    def frames(self, beside: Collection[str] = ()) -> Iterator[pl.LazyFrame]:
        """The rows of all runs, each once, without those that stand ``beside`` the shards."""
        import polars as pl

        with self._lock:
            held = dict(self._firsts)
        if not held:
            return
        every = pl.concat([one.select("key") for one in held.values()])["key"]
        hidden = set(beside)
        several = every.is_duplicated().any()
        for name, firsts in held.items():
            frame = pl.scan_parquet(self.home / name).drop(FILES)
            if hidden and (twice := hidden.intersection(firsts["key"])):
                frame = frame.filter(~pl.col("key").is_in(list(twice)))
            if several:
                hidden.update(firsts["key"])
            yield frame

    def whole(self, keys: Collection[str]) -> Iterator[pl.DataFrame]:
        """The rows of some runs with their files, each run once."""
        import polars as pl

        left = set(keys)
        for name, firsts in [*self._firsts.items()]:
            if here := left.intersection(firsts["key"]):
                rows = pl.read_parquet(io.BytesIO(_content(self.home / name)))
                yield rows.filter(pl.col("key").is_in(list(here)))
                left -= here

    def write(self, rows: Sequence[pl.DataFrame], disk: Disk) -> None:
        """Add the rows of some runs as a shard, and merge small shards where there are many.

        Args:
            rows: of some runs each, with the texts of the files.
            disk: stores and removes files.
        """
        import polars as pl

        with self._lock:
            self._add(pl.concat(rows, how="diagonal_relaxed"), disk)
            self.tidy(disk, MOST_SMALL)

    def tidy(self, disk: Disk, most: int = 1) -> None:
        """Merge small shards where there are more than ``most``."""
        with self._lock:
            small = [
                name
                for name in sorted(self._firsts, key=self._sizes.__getitem__)
                if int(name[:7]) < LARGE and self._sizes[name] < LARGE_BYTES
            ]
            if len(small) > most:
                sums = accumulate(self._sizes[name] for name in small)
                few = [
                    name for name, sum_ in zip(small, sums, strict=True) if sum_ < 2 * LARGE_BYTES
                ]
                self.merge(sorted(few), disk)

    def merge(self, names: Sequence[str], disk: Disk) -> None:
        """One shard in place of these."""
        import polars as pl

        try:
            parts = [pl.read_parquet(io.BytesIO(_content(self.home / name))) for name in names]
        except FileNotFoundError:  # another process merges them
            return self.refresh()
        whole = pl.concat(parts, how="diagonal_relaxed")
        if sum(self._firsts[name].height for name in names) != whole["key"].n_unique():
            whole = pl.concat(_each_once(parts), how="diagonal_relaxed")
        made = self._add(whole, disk)
        self._found = {}
        for name in names:
            if name != made:
                disk.remove_file(name)
                del self._firsts[name]
        return None

    def drop(self, keys: Collection[str], disk: Disk) -> None:
        """Remove runs."""
        import polars as pl

        with self._lock:
            for name in [*self._firsts]:
                if not set(self._firsts[name]["key"]).isdisjoint(keys):
                    rows = pl.read_parquet(io.BytesIO(_content(self.home / name)))
                    left = rows.filter(~pl.col("key").is_in(list(keys)))
                    if left.height:
                        self._add(left, disk)
                    disk.remove_file(name)
                    del self._firsts[name]
            self._places, self._found = None, {}

    def _add(self, frame: pl.DataFrame, disk: Disk) -> str:
        # Through memory: polars hides the reason when a disk is full, Python tells it.
        size = int(frame.estimated_size())
        buffer = io.BytesIO()
        rows = _group_rows(size, frame.height)
        frame.write_parquet(buffer, compression="zstd", row_group_size=rows)
        data = buffer.getvalue()
        firsts = _firsts(frame)
        name = f"{firsts.height:07d}-{hashlib.sha256(data).hexdigest()[:32]}.parquet"
        disk.put_file(name, data)
        self._firsts[name], self._sizes[name] = firsts, size
        self._note(name, firsts)
        return name

    def _place(self, key: str) -> tuple[str, int] | None:
        """The shard and the row of a run."""
        with self._lock:
            try:
                changed = os.stat(self.home).st_mtime_ns != self._seen
            except OSError:
                changed = True
            if changed:
                self.refresh()
            return self._found.get(key) or self._index().get(key)

    def _index(self) -> dict[str, tuple[str, int]]:
        """The place of each run."""
        if self._places is None:
            self._places = {}
            for name, firsts in self._firsts.items():
                self._note(name, firsts)
        return self._places

    def _note(self, name: str, firsts: pl.DataFrame) -> None:
        if self._places is not None:
            self._places.update((key, (name, row)) for key, row in _places(firsts))

    def _texts(self, name: str, row: int) -> dict[str, Any]:
        import polars as pl

        last = int(self._firsts[name]["row"][-1])
        rows = _group_rows(self._sizes[name], last + 1)
        block = row - row % rows
        if (frame := self._blocks.get((name, block))) is None:
            with open(self.home / name, "rb"):  # a file that is not there is no error of polars
                lazy = pl.scan_parquet(self.home / name).select(FILES).slice(block, rows)
                frame = self._blocks[name, block] = lazy.collect()
            if len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end((name, block))
        return frame.row(row - block, named=True)


@lru_cache(maxsize=8)
def _shards(home: Path) -> Shards:
    return Shards(home)


def of(home: Path) -> Shards:
    """The shards in ``DIR/runs``."""
    return _shards(home.absolute())


def holds(run: Path) -> bool:
    """Whether a run of a store, ``DIR/runs/KEY``, is in a shard and has no folder."""
    return _is_without_folder(run) and of(run.parent).has(run.name)


def files(run: Path) -> dict[str, bytes] | None:
    """The files of a run of a store, ``DIR/runs/KEY``, that is in a shard and has no folder."""
    return of(run.parent).files(run.name) if _is_without_folder(run) else None


def _places(firsts: pl.DataFrame) -> Iterator[tuple[str, int]]:
    return zip(firsts["key"], firsts["row"], strict=True)


def _group_rows(size: int, rows: int) -> int:
    """Rows of a group of a shard of so many bytes and rows."""
    return max(1, min(GROUP_ROWS, GROUP_BYTES * rows // max(1, size)))


def _firsts(rows: pl.DataFrame) -> pl.DataFrame:
    """The first row of each run, by its number."""
    numbered = rows.select("key").with_row_index("row")
    return numbered.unique("key", keep="first", maintain_order=True)


def _is_without_folder(run: Path) -> bool:
    return KEY.fullmatch(run.name) is not None and not os.path.lexists(run)


def _each_once(parts: Sequence[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    import polars as pl

    seen: set[str] = set()
    for part in parts:
        yield part.filter(~pl.col("key").is_in(list(seen)))
        seen.update(part["key"])


def _content(path: Path) -> bytes:
    """A regular file: a store has no links, and a FIFO would have us wait for ever."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(0, "is not a regular file")
        return opened.read()
