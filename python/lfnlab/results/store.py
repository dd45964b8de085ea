"""The results directory.

    DIR/store.json                 the version of this layout
    DIR/experiment.json            the runs of the last experiment, in order
    DIR/report.html, DIR/figures/  made from them
    DIR/laboratory.html            simulates the runs in a browser
    DIR/summary/*.parquet          what analyses read: a row a run and law (lfnlab.results.index)
    DIR/runs/*.parquet             runs of sweeps, many in a file (lfnlab.results.shards)
    DIR/runs/KEY/scenario.toml     what was run
                 summary.json      the run's result (docs/results.md)
                 flows.parquet, queues.parquet, events.parquet, probes.parquet
                 transfers.parquet where models of traffic ran
                 packets.parquet   where packets were recorded
                 provenance.json   code, machine, time, cost, hashes of the other files

A directory without ``store.json`` is not a store; nothing is written or removed in it.

KEY is a hash of the resolved scenario with its seed and of the code that ran it. A stored run is
not run again, and results of two code versions never mix. A run appears by one rename when all of
its files are written, so an interrupted run leaves no result. All files except the provenance have
the same bytes on every machine, so two copies of a run are one.

A run with a law in Python is always run again: the key has the hash of the class's source, but a
class may depend on other code. If the source came from a file, the run has a copy, NAME.py or
NAME.h.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab import _core
from lfnlab.control_laws import prototype
from lfnlab.errors import LawError, ScenarioError, StoreError, UsageError
from lfnlab.results import integrity, output, provenance, remade, remote, shards
from lfnlab.results.integrity import TABLES
from lfnlab.results.provenance import code_version

if TYPE_CHECKING:
    import polars as pl

SMALL_TABLE_BYTES = 100_000_000
"""In memory; a longer table is compared with what its run can have filled."""
EXPERIMENT = "experiment.json"
LAYOUT = 2
"""Version of the directory's layout; 1 had no shards."""
LAYOUT_FILE = "store.json"
FEW = 8
"""Up to this many runs are written to the disk file by file, at 3 ms a run; for more, one call that
takes up to 70 ms writes the whole file system (measured on ext4)."""


class Store:
    """A results directory, created if missing.

    Raises:
        StoreError: when it has files and is not a store, or is not writable; before any run starts.
    """

    def __init__(self, root: str | Path) -> None:
        self.remote = remote.of(root)
        """The store, if it is at an address: ``root`` is a copy then."""
        self.root = Path(root) if self.remote is None else self.remote.pull()
        self._runs = self.root / "runs"
        with self._writing():
            self.root.mkdir(parents=True, exist_ok=True)
            if not check_layout(self.root):
                if self.remote is None:
                    refuse_foreign(self.root)
                # First of all: what begins without it is not ours.
                self.write(LAYOUT_FILE, json.dumps({"layout": LAYOUT}), lasting=True)
            elif _layout(self.root) < LAYOUT:
                self.write(LAYOUT_FILE, json.dumps({"layout": LAYOUT}), lasting=True)
            self._runs.mkdir(exist_ok=True)
            with tempfile.TemporaryFile(dir=self._runs) as file:
                file.write(b"writable")
        self.shards = shards.of(self._runs)
        self.shards.refresh()

    def keys(self) -> set[str]:
        """Keys of the stored runs, complete or not."""
        return stored(self.root)

    def path(self, key: str) -> Path:
        """The directory of a run, which need not exist."""
        return self._runs / key

    def put(self, runs: Mapping[str, Mapping[str, bytes]]) -> None:
        """Write finished runs by their addresses, see :func:`run_files`.

        They appear when all of their bytes are on the disk. A stored run stays, unless it is
        damaged.
        """
        made: list[Path] = []
        written: dict[str, Path] = {}
        with self._writing():
            try:
                try:
                    for key, files in runs.items():
                        fresh = tempfile.mkdtemp(prefix=f".{key}.", dir=self._runs)
                        made.append(Path(fresh))
                        # Names as texts: to make a Path takes as long as to write a short file.
                        for name, data in files.items():
                            with open(f"{fresh}/{name}", "wb") as file:
                                file.write(data)
                        made[-1].chmod(0o755)
                        written[key] = made[-1]
                finally:
                    # Those before a full disk are whole.
                    _to_disk(list(written.values()), self._runs)
                    for key, directory in written.items():
                        self._appear(directory, self.path(key))
                    _sync(self._runs)
            finally:
                for directory in made:
                    shutil.rmtree(directory, ignore_errors=True)

    def put_shard(self, rows: Sequence[pl.DataFrame]) -> None:
        """Write finished runs that keep their summaries alone, as rows of a shard."""
        with self._writing():
            self.shards.write(rows, self)

    def tidy(self) -> None:
        """Merge small shards."""
        with self._writing():
            self.shards.tidy(self)

    def drop(self, keys: Collection[str]) -> None:
        """Remove runs from the shards."""
        with self._writing():
            self.shards.drop(keys, self)

    def put_file(self, name: str, data: bytes) -> None:
        """Store a shard under its name; it is there to last when this returns."""
        if self.remote is not None:
            self.remote.put(f"runs/{name}", data)
        replace_file(self._runs / name, data, lasting=self.remote is None)
        _sync(self._runs)

    def remove_file(self, name: str) -> None:
        """Remove a shard, which need not be there."""
        (self._runs / name).unlink(missing_ok=True)
        if self.remote is not None:
            self.remote.remove(f"runs/{name}")

    def _appear(self, fresh: Path, target: Path) -> None:
        if os.path.lexists(target):
            # The same run came from elsewhere meanwhile, with the same bytes; or it is damaged.
            if integrity.fault(target) is None:
                return
            discard(target)
        try:
            fresh.rename(target)
        except OSError:
            if integrity.fault(target) is not None:
                raise

    def write(self, name: str, content: str | bytes, *, lasting: bool = False) -> Path:
        """Replace a file of the experiment in one step; ``lasting``: once it is on the disk."""
        with self._writing():
            if self.remote is not None:
                self.remote.put(name, content.encode() if isinstance(content, str) else content)
            return replace_file(self.root / name, content, lasting=lasting)

    def write_experiment(self, experiment: dict[str, Any]) -> None:
        """Store the list of the experiment's runs."""
        self.write(EXPERIMENT, integrity.sealed(experiment), lasting=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            if Path(error.filename2 or "").parent == self.root:
                reason = f"{error.filename2}: {reason}"
            raise StoreError(
                f"cannot write results to {self.root}: {reason}. Runs that were stored before are "
                "intact; correct this or choose another directory, then repeat the command."
            ) from error


def replace_file(target: Path, content: str | bytes, *, lasting: bool = False) -> Path:
    """Write a file in one step, with its directory; ``lasting``: once it is on the disk."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.{output.unique()}")
    try:
        with fresh.open("xb") as made:
            made.write(content.encode() if isinstance(content, str) else content)
        if lasting:
            _sync(fresh)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
    return target


def discard(entry: Path) -> None:
    """Remove a run, by one rename first, so that no incomplete run stays. Links are not followed.

    Raises:
        OSError: when that is not allowed.
    """
    gone = entry
    if not entry.name.startswith("."):
        gone = Path(tempfile.mkdtemp(prefix=f".{entry.name}.", dir=entry.parent)) / "gone"
        entry.rename(gone)
    if gone.is_dir() and not gone.is_symlink():
        shutil.rmtree(gone)
    else:
        gone.unlink()
    if gone != entry:
        gone.parent.rmdir()


def _to_disk(directories: Sequence[Path], runs: Path) -> None:
    """Write files of runs to the disk: one by one, or the whole file system for many."""
    if len(directories) <= FEW:
        for directory in directories:
            for file in directory.iterdir():
                _sync(file)
            _sync(directory)
        return
    descriptor = os.open(runs, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stored(root: Path) -> set[str]:
    """The addresses of the runs of a results directory, whole or not.

    Raises:
        StoreError: when it has no readable directory of runs.
    """
    found = in_folders(root)
    held = shards.of(root / "runs")
    held.refresh()
    return found | held.keys()


def in_folders(root: Path) -> set[str]:
    """The addresses of the runs that have a folder of their own.

    Raises:
        StoreError: when it has no readable directory of runs.
    """
    try:
        return {name for name in os.listdir(root / "runs") if integrity.KEY.fullmatch(name)}
    except OSError as error:
        raise StoreError(f"cannot read results: {root / 'runs'}: {error.strerror}") from None


def is_leftover(name: str) -> bool:
    """Whether a name in ``runs/`` is that of an unfinished run, which a kill may leave."""
    of_run = rf"{integrity.KEY.pattern}\.([a-z0-9_]{{8}}|gone)"
    of_shard = r"\d{7}-[0-9a-f]{32}\.parquet\.\d+(\.[0-9a-f]{8})?"
    return re.fullmatch(rf"\.({of_run}|{of_shard})", name) is not None


def check_layout(root: Path) -> bool:
    """Whether a directory has the mark of a store; stores of lfnlab 0.1.0 have none.

    Raises:
        StoreError: when a later lfnlab wrote it, naming both versions, or the file is damaged.
    """
    return os.path.lexists(root / LAYOUT_FILE) and _layout(root) > 0


def _layout(root: Path) -> int:
    """Version of the layout of a directory that has the mark of a store."""
    file = root / LAYOUT_FILE
    try:
        found = json.loads(integrity.content(file))
    except ValueError:
        found = None
    layout = found.get("layout") if isinstance(found, dict) else None
    if not isinstance(layout, int) or isinstance(layout, bool) or layout < 1:
        raise StoreError(
            f"cannot use results: {file} does not name a layout; if the directory is a store of "
            f"this version, repair it: {_mend(root)}"
        )
    if layout > LAYOUT:
        raise StoreError(
            f"cannot use results: {file} says layout {layout}; this is lfnlab {_core.VERSION}, "
            f"which knows layouts up to {LAYOUT}. Install a later one, or choose another directory"
        )
    return layout


def refuse_foreign(root: Path, ours: Collection[str] = ()) -> None:
    """Refuse to write results among other files. The directory need not exist.

    Args:
        root: the directory.
        ours: names that may be there, and will be written over.

    Raises:
        StoreError: naming some of them, and what can be done with a store of an earlier version.
    """
    try:
        names = {name for name in os.listdir(root) if not name.startswith(f".{LAYOUT_FILE}.")}
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot write results to {root}: {error.strerror}") from None
    foreign = sorted(names.difference(ours))
    if not foreign or check_layout(root):
        return
    if "runs" in names and (root / "runs").is_dir() and stored(root):
        raise StoreError(
            f"cannot write results to {root}: it holds runs and no {LAYOUT_FILE}, as lfnlab 0.1.0 "
            "left it. They can be read; choose another directory, or take this one over: "
            f"{_mend(root)}"
        )
    some = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
    raise StoreError(
        f"cannot write results to {root}: it is neither empty nor a results directory (it holds "
        f"{some} and no {LAYOUT_FILE}); choose another directory"
    )


def missing_layout(root: Path) -> str:
    """Error text for a directory without ``store.json``."""
    return (
        f"it has no {LAYOUT_FILE}, so it is not a results directory, or lfnlab 0.1.0 made it; if "
        f"its runs are lfnlab's: {_mend(root)}"
    )


def _mend(root: Path) -> str:
    return f"echo '{json.dumps({'layout': LAYOUT})}' > {root / LAYOUT_FILE}"


def brief_files(
    run: _core.Run, scenario: _core.Scenario, command: str, finished: str
) -> dict[str, str]:
    """The files of a finished run that keeps its summary alone; a shard has their seal."""
    said, told = _said(command), run.summary()
    begins = _WARMUP.search(told)
    assert begins is not None, told
    events = run.table("events")
    kinds, times_s, flows = (events[column].tolist() for column in ("kind", "t_s", "flow"))
    text = f'{said}"finished": "{finished}", "wall_s": {run.wall_s!r}, "cpu_s": {run.cpu_s!r}'
    return {
        "scenario.toml": scenario.text,
        "summary.json": told,
        "provenance.json": f"{text}{RESOLVED}{scenario.resolved}}}",
        shards.REDUCTIONS: json.dumps(reductions(kinds, times_s, flows, float(begins[1]))),
    }


def reductions(
    kinds: Sequence[int], times_s: Sequence[float], flows: Sequence[int], warmup_s: float
) -> dict[int, int]:
    """Reductions of the window after the warm-up by flow, of the columns of a table of events."""
    rows = zip(kinds, times_s, flows, strict=True)
    return Counter(flow for kind, t_s, flow in rows if kind in _REDUCTIONS and t_s >= warmup_s)


_REDUCTIONS = (0, 1, 2)
"""Kinds of events that reduce a window."""
_WARMUP = re.compile(r'"warmup_s":([^,]+)')
RESOLVED = ', "resolved": '
"""Before the last value of a brief run's provenance. No text in JSON holds it: quotes are escaped
there."""


@cache
def _said(command: str) -> str:
    """The beginning of a brief run's provenance, the same for all runs of this process."""
    return json.dumps({**provenance.machine(), "command": command})[:-1] + ", "


def run_files(run: _core.Run, scenario: _core.Scenario, command: str) -> dict[str, bytes]:
    """The files of a finished run by name; ``command`` is the command line that asked for it."""
    told = run.summary()
    summary = json.loads(told)
    # A table that was copied out of its store still names its run. The command would differ
    # between processes that compute the same run; it is in provenance.json.
    about = {
        "lfnlab.code": provenance.code_version(),
        "lfnlab.hash": str(summary["hash"]),
        "lfnlab.seed": str(summary["seed"]),
        "lfnlab.scenario": scenario.text,
    }
    tables = [*TABLES, *(table for table in ("transfers", "packets") if run.rows(table))]
    files = {f"{table}.parquet": run.parquet(table, list(about.items())) for table in tables}
    files["summary.json"] = told.encode()
    files["scenario.toml"] = scenario.text.encode()
    for entry in summary.get("prototypes", ()):
        if (source := prototype.source_of(entry["source"])) is not None:
            name = entry["source"].partition("@")[0]
            files[name if name.endswith(".h") else f"{name}.py"] = source.encode()
    said = {
        **provenance.machine(),
        "finished": provenance.now(),
        "wall_s": run.wall_s,
        "cpu_s": run.cpu_s,
        "hash": summary["hash"],
        "command": command,
        "resolved": json.loads(scenario.resolved),
    }
    return files | {"provenance.json": recorded(said, files)}


def recorded(said: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    """``provenance.json``: the given fields, then lengths and hashes of the files."""
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    lengths = {name: len(data) for name, data in files.items()}
    return integrity.sealed({**said, "bytes": lengths, "files": hashes})


def run_keys(scenario: _core.Scenario, seeds: Iterable[int]) -> list[str]:
    """The addresses of runs with these seeds, see :func:`lfnlab.results.integrity.address`."""
    before, after = integrity.around_seed(code_version(), json.loads(scenario.resolved))
    begun = hashlib.sha256(before.encode())
    found = []
    for seed in seeds:
        digest = begun.copy()
        digest.update(f"{int(seed)}{after}".encode())
        found.append(digest.hexdigest()[:24])
    return found


def read_table(run: Path, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """One table of a stored run: its columns, or those of ``columns`` that it has."""
    import polars as pl

    file = run / f"{name}.parquet"
    if shards.holds(run) and name in integrity.tables_of(run):
        return pl.read_parquet(io.BytesIO(remade.table(run, name)))
    if not file.is_file() and name not in integrity.tables_of(run):
        raise StoreError(f"{file}: no such table; allowed: {', '.join(TABLES)}")
    data = integrity.content(file)
    check_size(file)
    try:
        # Through memory: polars knows no file whose name the locale cannot write.
        stored = io.BytesIO(data)
        if columns is not None:
            there = pl.read_parquet_schema(stored)
            columns = [column for column in there if column in columns]
        return pl.read_parquet(stored, columns=columns)
    except pl.exceptions.PolarsError:
        raise StoreError(f"cannot read results: {file} is not a table") from None


def check_size(file: Path) -> None:
    """Refuse a table that would take more memory than its run can have filled, by its footer.

    A forged one of 100 kB may say that it has billions of rows.

    Raises:
        StoreError: when it is too large, or no table.
    """
    try:
        need = _core.table_memory_bytes(file)
    except UsageError:
        raise StoreError(f"cannot read results: {file} is not a table") from None
    if need <= SMALL_TABLE_BYTES:
        return
    limit = _core.memory_limit_bytes()
    scenario = file.with_name("scenario.toml")
    # How many packets are recorded is known too roughly.
    if scenario.is_file() and file.stem != "packets":
        # A scenario whose files or laws are not here tells nothing.
        with suppress(ScenarioError, LawError):
            may = _core.Scenario(read_text(scenario)).needs["table_bytes"]
            limit = min(limit, SMALL_TABLE_BYTES + 4 * may)
    if need > limit:
        raise StoreError(
            f"cannot read results: {file} would take {need:,} bytes of memory; at most {limit:,} "
            "for this run and this machine"
        )


def read_json(file: Path) -> Any:
    """A JSON file of the store."""
    try:
        return json.loads(read_text(file))
    except (ValueError, RecursionError):
        raise StoreError(f"cannot read results: {file} is not JSON") from None


def read_text(file: Path) -> str:
    """A text file of the store."""
    try:
        return integrity.content(file).decode()
    except UnicodeDecodeError:
        raise StoreError(f"cannot read results: {file} is not UTF-8 text") from None
