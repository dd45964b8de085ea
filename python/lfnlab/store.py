"""The results directory.

    DIR/experiment.json            the runs of the last experiment, in order
    DIR/report.html, DIR/figures/  made from them
    DIR/runs/KEY/scenario.toml     what was run
                 summary.json      the run's result (docs/results.md)
                 flows.parquet, queues.parquet, events.parquet, probes.parquet
                 transfers.parquet where models of traffic ran
                 packets.parquet   where packets were recorded
                 provenance.json   by what, where and when

KEY is a hash of the resolved scenario with its seed and of the code that ran it. A run that is
there is not run again, and results of two code versions never mix. A run appears by one rename when
all of its files are written, so an interrupted one leaves nothing that looks like a result.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import os
import platform
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab import _core
from lfnlab.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from lfnlab.scenario import Scenario

TABLES = ("flows", "queues", "events", "probes")
"""Those that every run has; transfers and packets come where there are any."""
_EXPERIMENT = "experiment.json"


@cache
def code_version() -> str:
    """The version of the package and the hash of the compiled simulator."""
    digest = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
    return f"{_core.VERSION}+{digest[:12]}"


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

    @property
    def _runs(self) -> Path:
        return self.root / "runs"

    def path(self, key: str) -> Path:
        """The directory of a run, whether it is there or not."""
        return self._runs / key

    def put(self, key: str, scenario: Scenario, run: _core.Run) -> Path:
        """Write a finished run: all of it, or nothing and a StoreError."""
        target = self.path(key)
        with (
            self._writing(),
            tempfile.TemporaryDirectory(
                prefix=f".{key}.", dir=self._runs, ignore_cleanup_errors=True
            ) as name,
        ):
            directory = Path(name)
            for table, frame in _frames(run):
                # Through memory: polars hides the reason when a disk is full, Python tells it.
                parquet = io.BytesIO()
                frame.write_parquet(parquet, compression="zstd")
                (directory / f"{table}.parquet").write_bytes(parquet.getbuffer())
            (directory / "summary.json").write_text(run.summary(), encoding="utf-8")
            (directory / "scenario.toml").write_text(scenario.to_toml(), encoding="utf-8")
            (directory / "provenance.json").write_text(json.dumps(_provenance(), indent=1))
            directory.chmod(0o755)
            try:
                directory.rename(target)
            except OSError:
                # Another process has stored the same run meanwhile: it has the same bytes.
                if not target.is_dir():
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


def _frames(run: _core.Run) -> Iterator[tuple[str, pl.DataFrame]]:
    import polars as pl

    for table in TABLES:
        yield table, pl.DataFrame(run.table(table))
    transfers = pl.DataFrame(run.table("transfers"))
    if transfers.height:
        yield "transfers", transfers
    packets = pl.DataFrame(run.table("packets"))
    if packets.height:
        yield (
            "packets",
            packets.with_columns(
                # A block that is not there ends at 0.
                pl.when(pl.col(f"sack{i}_end") > 0).then(pl.col(f"sack{i}_start", f"sack{i}_end"))
                for i in (1, 2, 3)
            ),
        )


def run_key(scenario: Scenario) -> str:
    """The address of a run: hash of the resolved scenario with its seed, and of the code."""
    resolved = json.dumps(scenario.check(), sort_keys=True)
    return hashlib.sha256(f"{code_version()}\n{resolved}".encode()).hexdigest()[:24]


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


def _provenance() -> dict[str, Any]:
    return {
        "code": code_version(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": os.cpu_count(),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
