"""The results directory.

    DIR/store.json                 the version of this layout
    DIR/experiment.json            the runs of the last experiment, in order
    DIR/report.html, DIR/figures/  made from them
    DIR/summary/*.parquet          what analyses read: a row a run and law (lfnlab.catalog)
    DIR/runs/KEY/scenario.toml     what was run
                 summary.json      the run's result (docs/results.md)
                 flows.parquet, queues.parquet, events.parquet, probes.parquet
                 transfers.parquet where models of traffic ran
                 packets.parquet   where packets were recorded
                 provenance.json   by what, where, when, what it took, hashes of the other files

KEY is a hash of the resolved scenario with its seed and of the code that ran it. A run that is
there is not run again, and results of two code versions never mix. A run appears by one rename when
all of its files are written, so an interrupted one leaves nothing that looks like a result. All
files of a run but its provenance are the same bytes whoever runs it: a run that arrives twice is
kept once.

A run with a law in Python is removed and run again: its key holds the hash of the law's source, but
nothing can tell what else a class in Python depends on. The source itself is beside the results, as
NAME.py, where it came from a file.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab import _core, prototype, provenance
from lfnlab.errors import StoreError
from lfnlab.provenance import code_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl

    from lfnlab.scenario import Scenario

TABLES = ("flows", "queues", "events", "probes")
"""Those that every run has; transfers and packets come where there are any."""
_EXPERIMENT = "experiment.json"
LAYOUT = 1
"""Version of the directory's layout."""
_LAYOUT_FILE = "store.json"


class Store:
    """A results directory, made if it is not there.

    Raises:
        StoreError: when nothing can be written there, before any run is started.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        with self._writing():
            self._runs.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._runs) as file:
                file.write(b"writable")
        check_layout(self.root)
        if not (self.root / _LAYOUT_FILE).exists():
            self.write(_LAYOUT_FILE, json.dumps({"layout": LAYOUT}))

    @property
    def _runs(self) -> Path:
        return self.root / "runs"

    def keys(self) -> set[str]:
        """The addresses of the runs that are there."""
        return stored(self.root)

    def path(self, key: str) -> Path:
        """The directory of a run, whether it is there or not."""
        return self._runs / key

    def put(self, key: str, files: Mapping[str, bytes]) -> Path:
        """Write a finished run, see :func:`run_files`: all of it, or nothing and a StoreError."""
        target = self.path(key)
        with self._writing():
            fresh = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=self._runs))
            try:
                for name, data in files.items():
                    (fresh / name).write_bytes(data)
                fresh.chmod(0o755)
                try:
                    fresh.rename(target)
                except OSError:
                    # The same run came from elsewhere meanwhile: it has the same bytes.
                    if not target.is_dir():
                        raise
                    shutil.rmtree(fresh, ignore_errors=True)
            except BaseException:
                shutil.rmtree(fresh, ignore_errors=True)
                raise
        return target

    def write(self, name: str, content: str | bytes) -> Path:
        """Replace a file of the experiment in one step."""
        target = self.root / name
        data = content.encode() if isinstance(content, str) else content
        with self._writing():
            target.parent.mkdir(parents=True, exist_ok=True)
            fresh = target.with_name(f".{target.name}.{os.getpid()}")
            try:
                fresh.write_bytes(data)
                fresh.replace(target)
            finally:
                fresh.unlink(missing_ok=True)
        return target

    def write_experiment(self, experiment: dict[str, Any]) -> None:
        """Remember which runs make up the experiment."""
        self.write(_EXPERIMENT, json.dumps(experiment, indent=1, default=_plain))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreError(
                f"cannot write results to {self.root}: {reason}. Runs that were stored before are "
                "intact; mend it, or choose another directory, and give the same command again."
            ) from error


def stored(root: Path) -> set[str]:
    """The addresses of the runs of a results directory."""
    with os.scandir(root / "runs") as entries:
        return {entry.name for entry in entries if not entry.name.startswith(".")}


def check_layout(root: Path) -> None:
    """Refuse a directory that a later lfnlab wrote.

    Raises:
        StoreError: naming both versions.
    """
    file = root / _LAYOUT_FILE
    # Directories of lfnlab 0.1.0 have no such file; their runs are laid out as today's.
    if not file.is_file():
        return
    found = read_json(file)
    layout = found.get("layout") if isinstance(found, dict) else None
    if not isinstance(layout, int) or layout > LAYOUT:
        raise StoreError(
            f"cannot use results: {file} says layout {layout}; this is lfnlab {_core.VERSION}, "
            f"which knows layouts up to {LAYOUT}. Install a later one, or choose another directory"
        )


def run_files(run: _core.Run, toml_text: str, command: str) -> dict[str, bytes]:
    """The files of a finished run by name; ``command`` is the command line that asked for it."""
    import polars as pl

    frames = dict(_frames(run))
    buffers = {f"{table}.parquet": io.BytesIO() for table in frames}
    # All tables in one go, which takes half the time where they are small, and through memory:
    # polars hides the reason when a disk is full.
    sinks = [
        frame.lazy().sink_parquet(buffer, compression="zstd", lazy=True)
        for frame, buffer in zip(frames.values(), buffers.values(), strict=True)
    ]
    pl.collect_all(sinks, engine="in-memory")
    files = {name: buffer.getvalue() for name, buffer in buffers.items()}
    files["summary.json"] = run.summary().encode()
    files["scenario.toml"] = toml_text.encode()
    summary = json.loads(run.summary())
    for entry in summary.get("prototypes", ()):
        if (source := prototype.source_of(entry["source"])) is not None:
            files[f"{entry['source'].partition('@')[0]}.py"] = source.encode()
    said = {
        **provenance.machine(),
        "finished": provenance.now(),
        "wall_s": run.wall_s,
        "cpu_s": run.cpu_s,
        "hash": summary["hash"],
        "command": command,
        "resolved": json.loads(_core.check(toml_text, "scenario")),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    return files | {"provenance.json": json.dumps(said).encode()}


def _frames(run: _core.Run) -> Iterator[tuple[str, pl.DataFrame]]:
    import polars as pl

    for table in TABLES:
        yield table, pl.DataFrame(run.table(table))
    transfers = run.table("transfers")
    if len(transfers["t_s"]):
        yield "transfers", pl.DataFrame(transfers)
    packets = run.table("packets")
    if len(packets["t_ps"]):
        yield (
            "packets",
            pl.DataFrame(packets).with_columns(
                # A block that is not there ends at 0.
                pl.when(pl.col(f"sack{i}_end") > 0).then(pl.col(f"sack{i}_start", f"sack{i}_end"))
                for i in (1, 2, 3)
            ),
        )


def run_key(scenario: Scenario) -> str:
    """The address of a run: hash of the resolved scenario with its seed, and of the code."""
    (key,) = run_keys(_core.check(scenario.to_toml(), "scenario"), [scenario.seed])
    return key


def run_keys(resolved_json: str, seeds: Iterable[int]) -> list[str]:
    """The addresses of the runs of a resolved scenario with these seeds."""
    resolved = json.loads(resolved_json)
    return [
        hashlib.sha256(
            f"{code_version()}\n{json.dumps({**resolved, 'seed': seed}, sort_keys=True)}".encode()
        ).hexdigest()[:24]
        for seed in map(int, seeds)
    ]


def read_table(run: Path, name: str) -> pl.DataFrame:
    """One table of a stored run."""
    import polars as pl

    file = run / f"{name}.parquet"
    if not file.is_file():
        raise StoreError(f"{file}: there is no such table; a run has {', '.join(TABLES)}")
    try:
        # Python opens it: polars knows no file whose name the locale cannot write.
        with file.open("rb") as content:
            return pl.read_parquet(content)
    except pl.exceptions.PolarsError:
        raise StoreError(f"cannot read results: {file} is not a table") from None


def read_json(file: Path) -> Any:
    """A JSON file of the store."""
    try:
        return json.loads(read_text(file))
    except ValueError:
        raise StoreError(f"cannot read results: {file} is not JSON") from None


def read_text(file: Path) -> str:
    """A text file of the store."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise StoreError(f"cannot read results: {file} is not UTF-8 text") from None
    except OSError as error:
        raise StoreError(f"cannot read results: {file}: {error.strerror}") from None


def _plain(number: Any) -> Any:
    """A number of numpy's, such as the factor of a sweep, as one of Python's."""
    return number.item()
