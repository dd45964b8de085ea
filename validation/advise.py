"""Advice beside Linux: every choice on ten paths in virtual time, and what `lfn advise` says.

$ python -m validation.advise linux [PATH...]   run Linux where an outcome is missing
$ python -m validation.advise                   compare, and print the table of docs/advise.md

The times of every choice and seed on Linux are in validation/reference/advise.json; a path's entry
is run again if its definition here has changed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from lfnlab import _core
from lfnlab.advise import Advice, Choice, Path, Search, bytes_of, named
from lfnlab.advise.choices import choices
from lfnlab.advise.search import EQUAL, TOGETHER
from lfnlab.analysis.table import markdown, markdown_row
from lfnlab.errors import LabError
from lfnlab.statistics import paired
from lfnlab.testbed.linux_backend import Linux

KEPT = FilePath(__file__).parent / "reference" / "advise.json"
LAWS, STREAMS = "cubic,bbr,htcp", 2
#: Seeds of every choice without and with random loss; of the one that is advised, and those before.
EVERY, EVERY_LOSSY, ADVISED = 3, 10, 20
P50, P95 = 0.10, 0.25
BEST = 2


@dataclass(frozen=True)
class Tried:
    """A path and a transfer."""

    rate: str
    rtt: str
    buffer: str
    size: str
    loss: float = 0.0

    def path(self) -> Path:
        """As advice takes it."""
        return Path(self.rate, self.rtt, self.buffer, self.loss)

    @property
    def name(self) -> str:
        """In the table and in the file."""
        loss = f", loss {self.loss:g}" if self.loss else ""
        return f"{self.size} over {self.rate} × {self.rtt}, buffer {self.buffer}{loss}"


PATHS = (
    Tried("1Mbit/s", "50ms", "20 packets", "500kB"),
    Tried("10Mbit/s", "20ms", "1bdp", "4MB"),
    Tried("50Mbit/s", "40ms", "0.25bdp", "15MB"),
    Tried("50Mbit/s", "10ms", "50 packets", "10MB", 1e-3),
    Tried("100Mbit/s", "100ms", "0.5bdp", "20MB", 1e-4),
    Tried("100Mbit/s", "180ms", "100 packets", "20MB"),
    Tried("20Mbit/s", "600ms", "1bdp", "5MB", 1e-3),
    Tried("300Mbit/s", "20ms", "1bdp", "50MB"),
    Tried("300Mbit/s", "100ms", "0.1bdp", "30MB"),
    Tried("200Mbit/s", "40ms", "2bdp", "40MB", 1e-5),
)


def load() -> dict[str, Any]:
    """The kept outcomes: by path, then by choice, the time of each seed in seconds."""
    found: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return found


def advise(tried: Tried, out: FilePath) -> Advice:
    """The advice of the simulator alone."""
    path = tried.path()
    return Search(
        path, bytes_of(tried.size, path), named(LAWS), flows=STREAMS, beside=None, out=out
    ).run()


def _on_linux(linux: Linux, tried: Tried, choice: Choice, seed: int, about_s: float) -> float:
    """The transfer time on Linux, in seconds; the run is as long as it needs."""
    path = tried.path()
    duration_s = 1.5 * about_s + 1.0
    while True:
        settings: dict[str, Any] = {
            "size": f"{-(-bytes_of(tried.size, path) // choice.streams)}B",
            "count": choice.streams,
        }
        if choice.streams > 1:
            settings["start"] = TOGETHER
        if choice.fq:
            settings["pacing"] = True
        scenario = path.scenario(duration_s, sample="1s").flow(choice.law, **settings)
        read = _core.Scenario(scenario.with_seed(seed).to_toml())
        files = linux.simulate(read, "validation.advise")
        assert files is not None
        flows = json.loads(files["summary.json"])["flows"]
        if all(flow["completion_s"] is not None for flow in flows):
            return float(max(flow["start_s"] + flow["completion_s"] for flow in flows))
        duration_s *= 2.5


def run_linux(only: list[str]) -> None:
    """Run what is missing: every choice first, then more seeds of the advice and what is faster.

    Each outcome is kept when it ends.
    """
    linux, kept = Linux(), load()
    tries = [tried for tried in PATHS if not only or any(part in tried.name for part in only)]
    every = choices(named(LAWS), STREAMS)
    for tried in tries:
        entry = kept.setdefault(tried.name, {"path": asdict(tried), "times_s": {}})
        entry |= {"date": datetime.now(UTC).date().isoformat(), "linux": linux.build.release}
        _fill(linux, kept, tried, every, EVERY_LOSSY if tried.loss else EVERY)
    for tried in tries:
        with tempfile.TemporaryDirectory() as work:
            best = advise(tried, FilePath(work)).best
        times = kept[tried.name]["times_s"]
        best_s = statistics.median(times[str(best)])
        faster = [c for c in every if statistics.median(times[str(c)]) < best_s]
        _fill(linux, kept, tried, [best, *faster], ADVISED)


def _fill(
    linux: Linux, kept: dict[str, Any], tried: Tried, wanted: list[Choice], seeds: int
) -> None:
    times = kept[tried.name]["times_s"]
    known = [time_s for some in times.values() for time_s in some]
    least_s = bytes_of(tried.size, tried.path()) * 8 / tried.path().goodput_bps
    about_s = statistics.median(known) if known else 2 * least_s
    missing = [
        (choice, seed)
        for choice in wanted
        for seed in range(len(times.get(str(choice), [])) + 1, seeds + 1)
    ]

    def one(work: tuple[Choice, int]) -> float:
        return _on_linux(linux, tried, *work, about_s)

    with ThreadPoolExecutor(2) as pool:
        for (choice, seed), time_s in zip(missing, pool.map(one, missing), strict=True):
            times.setdefault(str(choice), []).append(round(time_s, 6))
            KEPT.write_text(json.dumps(kept, indent=1) + "\n")
            said = f"{tried.name}: {choice}, seed {seed}: {time_s:.3f} s"
            print(said, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Row:
    """One path: the advice, and Linux beside it."""

    tried: Tried
    best: str
    ours_s: tuple[float, float]
    """Median and 95 % of the advice."""
    linux_s: tuple[float, float]
    rank: int
    """Of the advice among all choices on Linux, by median; 1 is the fastest."""
    choices: int
    faster: dict[str, float]
    """The choices that are faster on Linux, by median, and by what part."""
    surely_faster: list[str]
    """Those of them that are faster seed by seed: the 95 % interval of the mean is below 0."""
    seeds: int

    @property
    def p50(self) -> float:
        """How far the median is from Linux's, as a part."""
        return self.ours_s[0] / self.linux_s[0] - 1

    @property
    def p95(self) -> float:
        """As p50, of the 95 %."""
        return self.ours_s[1] / self.linux_s[1] - 1

    @property
    def rank_beyond(self) -> int:
        """As rank, without the choices that are faster by less than advice tells apart."""
        return 1 + sum(part > EQUAL for part in self.faster.values())

    @property
    def passed(self) -> tuple[bool, bool, bool, bool, bool]:
        """Median, 95 %, rank, rank without equals, rank among those that are surely faster."""
        near = abs(self.p50) <= P50, abs(self.p95) <= P95
        surely = len(self.surely_faster) < BEST
        return *near, self.rank <= BEST, self.rank_beyond <= BEST, surely


def compare(tried: Tried, kept: dict[str, Any]) -> Row:
    """The advice of now, beside Linux's outcomes.

    Raises:
        LabError: they are not there.
    """
    entry = kept.get(tried.name)
    if entry is None or entry["path"] != asdict(tried):
        raise LabError(f"{tried.name}: no outcomes of Linux; python -m validation.advise linux")
    with tempfile.TemporaryDirectory() as work:
        advice = advise(tried, FilePath(work))
    time, best = advice.times[advice.best], str(advice.best)
    times: dict[str, list[float]] = entry["times_s"]
    medians = {name: statistics.median(values) for name, values in times.items()}
    faster = sorted(name for name in medians if medians[name] < medians[best])
    mine = np.array(times[best])

    def surely(name: str) -> bool:
        count = min(len(times[name]), len(times[best]))
        apart = paired(times[name][:count], times[best][:count])
        return apart.mean + apart.half < 0.0

    return Row(
        tried,
        best,
        (time.p50_s, time.p95_s),
        (float(np.quantile(mine, 0.5)), float(np.quantile(mine, 0.95))),
        len(faster) + 1,
        len(medians),
        {name: 1 - medians[name] / medians[best] for name in faster},
        [name for name in faster if surely(name)],
        len(mine),
    )


def main() -> None:
    """Run Linux, or compare and print."""
    parser = argparse.ArgumentParser(
        prog="python -m validation.advise", description=__doc__.split("\n")[0]
    )
    parser.add_argument("what", nargs="?", choices=["linux", "compare"], default="compare")
    parser.add_argument("only", nargs="*", help="paths whose name contains one of these")
    asked = parser.parse_args()
    if asked.what == "linux":
        run_linux(asked.only)
        return
    kept = load()
    rows = [
        compare(tried, kept)
        for tried in PATHS
        if tried.name in kept and (not asked.only or any(part in tried.name for part in asked.only))
    ]
    headings = "path", "advice", "p50, s", "Linux", "apart", "p95, s", "Linux", "apart", "rank"
    print(*markdown((*headings, "faster on Linux"), []), sep="\n")
    for row in rows:
        faster = "; ".join(
            f"{name}: {100 * part:.1f} %{'' if name in row.surely_faster else ', open'}"
            for name, part in row.faster.items()
        )
        cells = [
            *(row.tried.name, row.best),
            *(f"{row.ours_s[0]:.2f}", f"{row.linux_s[0]:.2f}", f"{100 * row.p50:+.1f} %"),
            *(f"{row.ours_s[1]:.2f}", f"{row.linux_s[1]:.2f}", f"{100 * row.p95:+.1f} %"),
            *(f"{row.rank} of {row.choices}", faster),
        ]
        print(markdown_row(cells))
    p50, p95, rank, beyond, surely = np.array([row.passed for row in rows]).sum(axis=0)
    print(
        f"\n{len(rows)} paths: p50 within 10 % on {p50}, p95 within 25 % on {p95}, the advice "
        f"among the best two on {rank}, with choices within 1 % as equals on {beyond}, within the "
        f"95 % intervals of the differences on {surely}"
    )


if __name__ == "__main__":
    main()
