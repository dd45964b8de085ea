"""Analyses over a whole store: one row a run, law and route, of any number of runs, read lazily.

The index is derived from the runs' files and stored as Parquet in ``DIR/summary``. Opening a store
adds rows of new runs, drops rows of removed runs, and writes the difference. A lock admits one
process at a time; Linux releases it when the process ends. A part has the hash of its bytes in its
name: a damaged part is not read, and its runs are read again. A run that lacks files has no row.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab.errors import StoreError, UsageError
from lfnlab.results import remote, shards
from lfnlab.results.cases import METRICS, Cases, frame
from lfnlab.results.integrity import content, incomplete, provenance_of, remedy
from lfnlab.results.runs import Results, Run, by_law
from lfnlab.results.store import (
    EXPERIMENT,
    LAYOUT_FILE,
    RESOLVED,
    check_layout,
    check_size,
    in_folders,
    read_json,
)
from lfnlab.scenario.quantity import BITS_PER_S, SECONDS, parsed

if TYPE_CHECKING:
    import polars as pl

    from lfnlab.results.cases import Factor
    from lfnlab.results.drawn import Drawn
    from lfnlab.results.summary import Summary

Row = dict[str, Any]

EDITION = 2
"""Version of a row's contents; raise it when they change. Parts of another version are rebuilt."""
PART_ROWS = 20_000
"""Rows in a part; the last part may have fewer."""
PARTS = 64
"""More parts than this are merged into one."""
FEW_ROWS = 64
"""Fewer rows are not written as runs end: reading the runs later takes less time than polars takes
to start."""
_LOCK = ".lock"
_PART = re.compile(r"(\d{2})-(\d{6})-(\d{6})(-(?P<hash>[0-9a-f]{16}))?\.parquet")
_MEASURED = ("key", "seed", "name", "flows", "drops", "hash", "events", "wall_s", "cpu_s")
"""Columns that neither name a case nor are averaged over its seeds by default."""
LISTED = 32
"""A list of more tables than this, such as of flows, is one column of JSON."""


class Catalog:
    """The runs of a store, see :func:`lfnlab.open`."""

    def __init__(self, root: str | Path) -> None:
        self.root = remote.local(root)
        if not (self.root / "runs").is_dir():
            raise StoreError(f"cannot read results: {self.root} holds no runs")
        check_layout(self.root)
        self._unwritten: list[Row] = []
        self.wrong: dict[str, str] = {}
        """Damaged runs, which have no rows, and why."""
        self.refresh()

    def refresh(self) -> None:
        """Add rows of runs stored since, and drop rows of runs removed since."""
        self.shards = shards.of(self.root / "runs")
        self.shards.refresh()
        self.wrong = {
            name: f"{self.shards.home / name}: {why}; {remedy(self.root)}"
            for name, why in self.shards.wrong.items()
        }
        there = self._folders = {key for key in in_folders(self.root) if self._is_whole(key)}
        try:
            with _locked(self.root) as parts:
                known = parts.known()
                if known - there or len(parts.files()) > PARTS:
                    parts.keep(there)
                missing = sorted(there - known)
                for first in range(0, len(missing), PART_ROWS):
                    parts.add(list(self._read(missing[first : first + PART_ROWS])))
        except OSError:
            # A store that may only be read: what its parts lack is kept here.
            missing = sorted(there - _Parts(self.root).known())
            self._unwritten = list(self._read(missing))

    def _read(self, missing: Sequence[str]) -> Iterator[Row]:
        for key in missing:
            run = self.root / "runs" / key
            try:
                yield from rows(key, read_json(run / "summary.json"), provenance_of(run))
            except StoreError as error:
                self.wrong[key] = str(error)

    def _is_whole(self, key: str) -> bool:
        if (why := incomplete(self.root / "runs" / key)) is not None:
            self.wrong[key] = f"{self.root / 'runs' / key}: {why}; {remedy(self.root)}"
        return why is None

    def summary(self) -> pl.LazyFrame:
        """One row a run, law and route, of a run without flows under test one with null as law.

        The columns are those of :meth:`lfnlab.Results.frame`; ``key``, ``code``, ``name``,
        ``sim_s``, ``events``, ``wall_s``, ``cpu_s``; and every value of the resolved scenario
        under its key, such as ``link.queue.kind``. A time or a rate is a number with its unit in
        the name: ``link.rate_bps``, ``flow[0].rtt_s``; other quantities are texts.

        Raises:
            StoreError: when a run is damaged.
        """
        if self.wrong:
            raise self._damaged()
        return self.whole()

    def _damaged(self) -> StoreError:
        several = f"{len(self.wrong):,} damaged runs, the first: " if len(self.wrong) > 1 else ""
        return StoreError(several + self.wrong[min(self.wrong)])

    def whole(self) -> pl.LazyFrame:
        """:meth:`summary` of the runs that are not damaged, if others are; of none without rows."""
        import polars as pl

        frames = [pl.scan_parquet(file) for file in _Parts(self.root).files()]
        frames += self.shards.frames(beside=self._folders)
        if self._unwritten:
            frames.append(frame(self._unwritten).lazy())
        if not frames and self.wrong:
            every = ("key", "code", "seed", "law", "name", "sim_s", "cpu_s")
            return pl.LazyFrame(schema=dict.fromkeys(every, pl.String))
        if not frames:
            raise UsageError(f"{self.root} holds no finished run yet")
        return pl.concat(frames, how="diagonal_relaxed")

    def cases(self) -> Cases:
        """The rows of runs with flows under test, and the keys in which the runs differ.

        Keys are columns of :meth:`summary`: the version of the code if there are several, and
        values of the scenario. One that follows from those before it is left out.
        """
        found = self._cases()
        return Cases([row for row in found.rows if row["law"] is not None], found.keys)

    def _cases(self) -> Cases:
        """As :meth:`cases`, with the rows of runs without flows under test."""
        import polars as pl

        whole = self.summary().collect()
        if "route" not in whole.columns:
            whole = whole.with_columns(route=pl.lit(None, pl.String))
        described = [name for name in whole.columns if name not in (*_MEASURED, *METRICS)]
        kept = ["law", "route"]
        for name in ("code", *described, "name"):
            if name not in kept and whole.n_unique([*kept, name]) > whole.n_unique(kept):
                kept.append(name)
        several = ["route"] if whole["route"].drop_nulls().n_unique() > 1 else []
        return Cases(whole.to_dicts(), (*kept[2:], "law", *several))

    def results(self) -> Results:
        """All runs as one experiment; its factors are the keys in which they differ."""
        cases = self._cases()
        factors: dict[str, dict[str, Factor]] = {}
        laws: dict[str, set[str]] = {}
        for row in cases.rows:
            told = {key: row[key] for key in cases.keys if key not in ("law", "route")}
            factors[row["key"]] = {key: value for key, value in told.items() if value is not None}
            laws.setdefault(row["key"], set()).add(row["law"])
        runs = [
            Run(
                self.root / "runs" / key,
                row["seed"],
                ({"law": row["law"]} if laws[key] == {row["law"]} != {None} else {}) | factors[key],
            )
            for key, row in {row["key"]: row for row in cases.rows}.items()
        ]
        return Results(self.root, self.root.resolve().name, tuple(runs))

    def table(self, metrics: Sequence[str] = METRICS) -> pl.DataFrame:
        """A row a case: means over seeds with 95 % intervals, see ``Cases.table``."""
        return self.cases().table(metrics)

    def compare(
        self, baseline: str | Mapping[str, Factor], metrics: Sequence[str] = METRICS
    ) -> pl.DataFrame:
        """Differences of each case from a baseline, seed by seed, see ``Cases.compare``."""
        return self.cases().compare(baseline, metrics)

    def plot(self, name: str = "goodput") -> Drawn:
        """A named figure of all runs, see :meth:`lfnlab.Results.plot`."""
        return self.results().plot(name)


def open(root: str | Path) -> Catalog:  # noqa: A001 - lfnlab.open
    """The runs of a results directory, for analyses over all of them.

    >>> import lfnlab, polars as pl
    >>> runs = lfnlab.open("lfn-results").summary()  # doctest: +SKIP
    >>> runs.group_by("law").agg(pl.col("goodput_bps").mean()).collect()  # doctest: +SKIP

    Raises:
        StoreError: when it holds no runs, or is of a later version.
    """
    return Catalog(root)


def experiment(root: str | Path) -> Results:
    """The last experiment of a results directory; of one that has none, all its runs.

    Stores without an experiment are those that ``lfn store merge`` or a shard made.

    Raises:
        StoreError: when there is none, or something of it is damaged.
    """
    home = remote.local(root)
    if (home / "runs").is_dir() and not os.path.lexists(home / EXPERIMENT):
        return Catalog(root).results()
    return Results.load(root)


def together(roots: Sequence[Path]) -> Results:
    """The experiments of results directories as one; several are told apart by ``result``.

    Raises:
        StoreError: as :func:`experiment`.
    """
    found = [experiment(root) for root in roots]
    if len(found) == 1:
        return found[0]
    names = names_of(roots)
    runs = [
        replace(run, factors={"result": name, **run.factors})
        for name, one in zip(names, found, strict=True)
        for run in one.runs
    ]
    missing = sum(one.missing for one in found)
    return Results(found[0].root, ", ".join(names), tuple(runs), missing=missing)


def names_of(paths: Sequence[Path]) -> list[str]:
    """The name of each of several sources: its own, or its path if two are alike."""
    names = [path.stem if path.suffix == ".parquet" else path.resolve().name for path in paths]
    return [
        short if names.count(short) == 1 else str(path)
        for path, short in zip(paths, names, strict=True)
    ]


class Recorder:
    """Takes the rows of runs as they are stored, so that opening the store need not read them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.rows: list[Row] = []
        """Those that are not written yet."""

    def add(self, key: str, files: Mapping[str, bytes]) -> None:
        """A run that was stored."""
        said = json.loads(files["provenance.json"])
        self.rows += rows(key, json.loads(files["summary.json"]), said)
        if len(self.rows) >= PART_ROWS:
            self.write()

    def write(self) -> None:
        """Write what has come. Where that is little or fails, opening the store reads the runs."""
        fresh, self.rows = self.rows, []
        if len(fresh) >= FEW_ROWS:
            with suppress(OSError), _locked(self._root) as parts:
                parts.add(fresh)


def shard(runs: Mapping[str, Mapping[str, str]]) -> pl.DataFrame:
    """The rows of runs that keep their summaries alone, with their files, as shards have them."""
    found: list[Row] = []
    for key, files in runs.items():
        told = json.loads(files["summary.json"])
        said, _, resolved = files["provenance.json"].partition(RESOLVED)
        about = _about(key, told, json.loads(f"{said}}}")) | _flat_text(resolved[:-1])
        first, *others = _rows(told, about)
        found += [{**first, **files}, *others]
    return frame(found)


def _flat_text(resolved: str) -> Row:
    """:func:`_flat` of a text; runs of a case differ in their seed alone, which it leaves out."""
    begins = _BEGIN.match(resolved)
    return _flat_but_seed(resolved if begins is None else f"{begins[1]}0{resolved[begins.end() :]}")


@lru_cache(maxsize=256)
def _flat_but_seed(resolved: str) -> Row:
    return _flat(json.loads(resolved))


_BEGIN = re.compile(r'(\{"schema":\d+,(?:"name":(?:null|"(?:[^"\\]|\\.)*"),)?"seed":)\d+')
"""Of a resolved scenario, up to its seed."""


def rows(key: str, summary: Summary, said: Mapping[str, Any]) -> list[Row]:
    """The rows of a run from its summary and its provenance."""
    return _rows(summary, _about(key, summary, said) | _flat(said.get("resolved", {})))


def _rows(summary: Summary, about: Row) -> list[Row]:
    found: Sequence[Mapping[str, object]] = by_law(summary)
    return [{**row, **about} for row in found or [{"law": None, "seed": summary["seed"]}]]


def _about(key: str, summary: Summary, said: Mapping[str, Any]) -> Row:
    return {
        "key": key,
        "code": said["code"],
        "name": summary["name"],
        "sim_s": summary["sim_s"],
        "events": summary["events"],
        # Runs of lfnlab 0.1.0 say in their summary what they took, and resolve no scenario.
        "wall_s": said.get("wall_s", summary.get("wall_s")),
        "cpu_s": said.get("cpu_s", summary.get("cpu_s")),
    }


def _flat(table: Mapping[str, Any], prefix: str = "") -> Row:
    """The values of a resolved scenario by their keys; seed and version stand elsewhere."""
    found: Row = {}
    for key, value in table.items():
        path = f"{prefix}{key}"
        if path in ("schema", "seed", "name"):
            continue
        if isinstance(value, dict):
            found.update(_flat(value, f"{path}."))
        elif isinstance(value, list) and _tables(value):
            for i, part in enumerate(value):
                found.update(_flat(part, f"{path}[{i}]."))
        elif isinstance(value, list):
            found[path] = json.dumps(value)
        else:
            found.update(_column(path, key, value))
    return found


def _tables(values: Sequence[Any]) -> bool:
    return 0 < len(values) <= LISTED and isinstance(values[0], dict)


# Typed, since 1 and True are equal; runs of a case have nearly all of their values in common.
@lru_cache(maxsize=4096, typed=True)
def _column(path: str, key: str, value: Any) -> Mapping[str, Any]:
    if isinstance(value, str) and key not in ("name", "from", "to"):
        for suffix, units in (("_s", SECONDS), ("_bps", BITS_PER_S)):
            if (number := parsed(value, units)) is not None:
                return {f"{path}{suffix}": number}
    return {path: value}


class _Parts:
    """The Parquet files of ``DIR/summary``: EDITION-GENERATION-NUMBER-HASH.parquet.

    All parts of the newest generation together hold each run once. Rewriting them begins a
    generation with one rename, so whatever stops it leaves the older one or the newer.
    """

    def __init__(self, root: Path) -> None:
        self._home = root / "summary"
        self._whole: dict[Path, bool] = {}

    def files(self) -> list[Path]:
        """The parts of the newest generation that are whole, in order."""
        found = sorted(self._home.glob(f"{EDITION:02d}-??????-??????-*.parquet"))
        newest = [file for file in found if _generation(file) == _generation(found[-1])]
        return [file for file in newest if self.is_whole(file)]

    def is_whole(self, file: Path) -> bool:
        """Whether a part has the bytes that were written; read once."""
        if file not in self._whole:
            try:
                hashed = not file.is_symlink() and _hash(content(file))
            except StoreError:
                hashed = False
            named = _PART.fullmatch(file.name)
            self._whole[file] = named is not None and hashed == named["hash"] and _fits(file)
        return self._whole[file]

    def known(self) -> set[str]:
        """The addresses of the runs that they hold."""
        import polars as pl

        return {
            key
            for file in self.files()
            for key in pl.read_parquet(file, columns=["key"])["key"].unique()
        }

    def add(self, rows: Sequence[Row]) -> None:
        """One part more, of the runs that are not there yet."""
        known = self.known() if rows else set()
        if fresh := [row for row in rows if row["key"] not in known]:
            files = self.files()
            generation = _generation(files[-1]) if files else 1
            number = int(files[-1].name.split("-")[2]) if files else 0
            self._write(frame(fresh), generation, number + 1)

    def keep(self, there: set[str]) -> None:
        """One part in place of all, of the runs that are still there."""
        import polars as pl

        if not (files := self.files()):
            return
        frame = pl.concat([pl.read_parquet(file) for file in files], how="diagonal_relaxed")
        kept = frame.filter(pl.col("key").is_in(list(there)))
        self._write(kept, _generation(files[-1]) + 1, 1)
        self.clear()

    def clear(self) -> None:
        """Remove old and damaged parts and files of killed processes; the caller holds the lock."""
        current = self.files()
        for file in self._home.iterdir():
            ours = _PART.fullmatch(file.name.removeprefix(".")) is not None
            if ours and file not in current and (file.is_symlink() or not file.is_dir()):
                file.unlink()

    def _write(self, frame: pl.DataFrame, generation: int, number: int) -> None:
        # Through memory: polars hides the reason when a disk is full, Python tells it.
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="zstd")
        digest = _hash(buffer.getbuffer())
        name = f"{EDITION:02d}-{generation:06d}-{number:06d}-{digest}.parquet"
        fresh = self._home / f".{name}"
        fresh.write_bytes(buffer.getbuffer())
        fresh.replace(self._home / name)


def damaged(root: Path) -> list[Path]:
    """Parts of a store's summary that are not what was written."""
    parts = _Parts(root)
    found = sorted((root / "summary").glob(f"{EDITION:02d}-*.parquet"))
    return [file for file in found if not parts.is_whole(file)]


def _fits(file: Path) -> bool:
    """Whether memory suffices for a part: it is damaged otherwise, and made again."""
    try:
        check_size(file)
    except StoreError:
        return False
    return True


def _hash(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _generation(file: Path) -> int:
    return int(file.name.split("-")[1])


@contextmanager
def _locked(root: Path) -> Iterator[_Parts]:
    """The parts of a store, for one process at a time. Elsewhere than in a store none is written.

    Raises:
        OSError: they cannot be written here.
    """
    home = root / "summary"
    if not os.path.lexists(root / LAYOUT_FILE) or home.is_symlink():
        raise PermissionError(f"{home} is not ours")
    home.mkdir(exist_ok=True)
    with (home / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        parts = _Parts(root)
        parts.clear()
        yield parts
