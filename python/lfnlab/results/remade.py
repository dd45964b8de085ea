"""Tables of runs that keep their summaries alone: such a run is simulated again when one is asked.

A simulation gives the same bytes each time, so nothing was lost. Its summary is compared with the
stored one: another version of the code may give another run.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from lfnlab import _core
from lfnlab.errors import StoreError
from lfnlab.results import shards
from lfnlab.results.provenance import code_version

MOST_BYTES = 1 << 28
"""Tables that are kept in memory, the last ones."""
_ROW_BYTES = 64
_TABLES = ("flows", "queues", "events", "probes", "transfers")
_made: OrderedDict[Path, _core.Run] = OrderedDict()
_lock = threading.Lock()


def table(run: Path, name: str) -> bytes:
    """A table of a run in a shard, as Parquet.

    Raises:
        StoreError: this version of the code does not give that run.
    """
    with _lock:
        if (found := _made.get(run.absolute())) is None:
            found = _made[run.absolute()] = _simulated(run)
            while len(_made) > 1 and sum(map(_bytes, _made.values())) > MOST_BYTES:
                _made.popitem(last=False)
        _made.move_to_end(run.absolute())
    return found.parquet(name, [])


def _simulated(run: Path) -> _core.Run:
    held = shards.files(run)
    assert held is not None, "the caller has asked"
    (found,) = _core.run_many([_core.Scenario(held["scenario.toml"].decode())], 1, None)
    assert found is not None, "nobody gave it up"
    if found.summary().encode() != held["summary.json"]:
        raise StoreError(
            f"cannot read results: {run} keeps its summary alone, and lfnlab {code_version()} "
            "gives another run; repeat the command that made it, in another directory"
        )
    return found


def _bytes(run: _core.Run) -> int:
    return _ROW_BYTES * sum(map(run.rows, _TABLES))
