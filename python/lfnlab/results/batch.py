"""Writes of finished runs to a store, several at a time, since one takes as long.

A kill loses the runs of the last :data:`WITHIN_S` seconds; an interrupt loses none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from lfnlab.results.store import Store

Files = Mapping[str, bytes]

WITHIN_S = 0.25
"""Largest time until a finished run is in the store."""
MOST_RUNS, MOST_BYTES = 32, 1 << 24
"""Largest number of runs with folders, and of their bytes, that wait to be written."""


class Batch:
    """Writes runs to a store; ``stored`` is called with those that got folders, from any thread."""

    def __init__(self, store: Store, stored: Callable[[Mapping[str, Files]], None]) -> None:
        self._store, self._stored = store, stored
        self._waiting: dict[str, Files] = {}
        self._waiting_bytes = 0
        self._rows: list[pl.DataFrame] = []
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._timer: threading.Timer | None = None
        self._error: Exception | None = None

    def add(self, key: str, files: Files) -> None:
        """Add a finished run, for a folder.

        Raises:
            StoreError: this or an earlier run cannot be written.
        """
        with self._lock:
            self._waiting[key] = files
            self._waiting_bytes += sum(map(len, files.values()))
            full = len(self._waiting) >= MOST_RUNS or self._waiting_bytes >= MOST_BYTES
            self._begin(full)
        if full or self._error is not None:
            self.write()

    def add_rows(self, rows: pl.DataFrame) -> None:
        """Add finished runs as rows of a shard, see :func:`lfnlab.results.index.shard`.

        Raises:
            StoreError: these or earlier runs cannot be written.
        """
        with self._lock:
            self._rows.append(rows)
            self._begin(False)
        if self._error is not None:
            self.write()

    def _begin(self, full: bool) -> None:
        if self._timer is None and not full:
            self._timer = threading.Timer(WITHIN_S, self._in_time)
            self._timer.daemon = True
            self._timer.start()

    def write(self) -> None:
        """Write what waits.

        Raises:
            StoreError: these runs, or those of a timer's write, cannot be written.
        """
        with self._writing:
            with self._lock:
                runs, self._waiting, self._waiting_bytes = self._waiting, {}, 0
                rows, self._rows = self._rows, []
                timer, self._timer = self._timer, None
            if timer is not None:
                timer.cancel()
            if self._error is not None:
                raise self._error
            if rows:
                self._store.put_shard(rows)
            if runs:
                self._store.put(runs)
            if rows or runs:
                self._stored(runs)

    def _in_time(self) -> None:
        try:
            self.write()
        except Exception as error:  # it ends the thread of whoever writes next
            self._error = error
