"""One DualPI2 in the simulator and on Linux: DCTCP alone and beside CUBIC on twelve paths.

$ python -m validation l4s                run both; the record is validation/reference/l4s.json
$ python -m validation l4s --emulator 1   run this kernel over the emulator instead, as often
$ python -m validation l4s --page         only write the page, docs/l4s-platforms.md

On Linux in virtual time its own ``dctcp`` and ``cubic`` are at the ends, over the queue of
``linux/net/sch_lfndual.c``; here the variants ``linux`` of ours, over the simulator's queue. Each
figure is a mean over :data:`RUNS` runs, whose RTTs differ by less than a packet's time. A jitter
of 2 % of that time breaks ties: where an arrival and a departure fall together, each side has an
order of its own, and DCTCP alone on a path keeps the cycle that one tie began. DCTCP's packets are
ECT(0), so the queue has ``any_ect``.

Over the emulator the ends are this kernel's TCP with our ``dctcp`` loaded and its own ``cubic``. A
run takes 46 s, needs root, and is one of many chances, so its figures stand by themselves.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from lfnlab import Scenario, _core, kernel
from lfnlab.analysis.table import markdown
from lfnlab.experiment.plan import Case
from lfnlab.results.store import read_table
from lfnlab.statistics import student_t
from lfnlab.testbed import run as bed
from lfnlab.testbed import virtual_run, virtual_time
from lfnlab.testbed.validity import LATENESS_BOUND_US

from . import coupling, outcome
from .draw import TIES

RATES_MBIT = (4, 12, 40, 100)
RTTS_MS = (10, 30, 100)
ALONE, BESIDE = "alone", "beside cubic"
LOADS = {ALONE: ("dctcp",), BESIDE: ("dctcp", "cubic")}
DURATION_S, WARMUP_S = 40, 10
#: Of each side, by rate: the fewer packets, the more a run's share of marks is a matter of chance.
RUNS = {4: 24, 12: 24, 40: 12, 100: 8}
#: Runs at a time.
JOBS = 2
BAR = 0.03
#: Of the emulator's goodput, on a machine that is busy.
NEAR = 0.05
#: Below this share, in a run of some thousand packets, a mark more or less is percent.
LEAST_MARKED = 0.01
LINUX_RELEASE = "6.12"
RECORD = FilePath(__file__).with_name("reference") / "l4s.json"
PAGE = FilePath(__file__).resolve().parents[1] / "docs" / "l4s-platforms.md"
SIMULATOR, LINUX, EMULATOR = "simulator", "linux", "emulator"
#: The simulator, and Linux in virtual time, with the law that the emulator's kernel has.
FRACTIONS, OURS = "fractions", "ours on linux"
#: Of those, of each path.
FEW = 4
#: Of the first flow, as the bar has them; then of both queues.
BARRED = ("goodput_mbps", "marked", "window")
FIGURES = (*BARRED, "l4s_p50_ms", "l4s_p99_ms", "c_p50_ms", "c_p99_ms")


@dataclass(frozen=True)
class Path:
    """A path and its load."""

    rate_mbit: int
    rtt_ms: int
    load: str

    @property
    def tag(self) -> str:
        """Its name in the record."""
        return f"{self.rate_mbit}m-{self.rtt_ms}ms-{self.load}"

    def scenario(self, phase: int, *, variant: str = ":linux") -> str:
        """TOML; a phase moves the RTTs by fractions of a packet's time."""
        packet_ms = 1514 * 8 / (self.rate_mbit * 1e3)
        lines = [
            f'schema = 1\nduration = "{DURATION_S}s"\nwarmup = "{WARMUP_S}s"\nseed = {phase + 1}',
            f'[link]\nrate = "{self.rate_mbit}Mbit/s"',
            f'jitter = {{ high = "{TIES * packet_ms * 1e3:.3f}us", keep_order = false }}',
            f'queue = {{ kind = "dualpi2", size = "{self.rate_mbit * 31250}B", any_ect = true }}',
            '[link.reverse]\nrate = "1Tbit/s"\ndelay = "0s"\nloss = 0',
            'queue = { kind = "drop-tail", size = "1000000 packets" }',
        ]
        for place, law in enumerate(LOADS[self.load]):
            rtt_ms = self.rtt_ms + packet_ms * (phase / RUNS[self.rate_mbit] * (2 * place + 1) % 1)
            lines.append(f'[[flow]]\nlaw = "{law}{variant}"\nrtt = "{rtt_ms:.6f}ms"')
            lines.append(f"ecn = {str(law == 'dctcp').lower()}")
        return "\n".join(lines) + "\n"


PATHS = tuple(Path(rate, rtt, load) for load in LOADS for rate in RATES_MBIT for rtt in RTTS_MS)


def of_classes(classes: dict[str, Any]) -> dict[str, float | None]:
    """Share of the L4S queue's packets that it marked, and delays of both queues in ms."""
    l4s = classes["l4s"]
    delays = {
        f"{short}_{quantile}_ms": None
        if (s := classes[name][f"{quantile}_queue_s"]) is None
        else s * 1e3
        for short, name in (("l4s", "l4s"), ("c", "classic"))
        for quantile in ("p50", "p99")
    }
    return {"marked": l4s["marks"] / max(l4s["packets"], 1), **delays}


def simulated(text: str) -> dict[str, float | None]:
    """The figures of a run here."""
    [run] = _core.run_many([_core.Scenario(text, "l4s.toml")], 1, None)
    assert run is not None
    summary, table = json.loads(run.summary()), run.table("flows")
    of = (table["flow"] == 0) & (table["t_s"] >= WARMUP_S)
    return {
        "goodput_mbps": summary["flows"][0]["goodput_bps"] / 1e6,
        "window": float(table["cwnd_seg"][of].mean()),
        **of_classes(summary["links"][0]["classes"]),
    }


def on_linux(text: str, *, ours: bool = False) -> dict[str, float | None]:
    """The same of Linux in virtual time; with ``ours`` DCTCP is our law in it."""
    resolved = Scenario.from_toml(text).check().to_document()
    with tempfile.TemporaryDirectory() as work:
        ran = virtual_run.run(
            outcome.PROGRAM, FilePath(work), "run", virtual_time.translated(resolved, ours=ours)
        )
    flow = ran.flows[0]
    warm = flow["t_us"] >= WARMUP_S * 1e6
    acked = flow["bytes_acked"][warm]
    return {
        "goodput_mbps": float(acked[-1] - acked[0]) * 8 / (DURATION_S - WARMUP_S) / 1e6,
        "window": float(flow["cwnd"][warm].mean()),
        **of_classes(ran.queue["classes"]),
    }


def over_emulator(scenario: Scenario) -> dict[str, float | None]:
    """The same of this kernel, and the lateness of the emulator in µs: 99.9 % of segments less."""
    cases = [Case(scenario)]
    with tempfile.TemporaryDirectory() as out:
        plans = bed.plans(cases, offload=False)
        [run] = bed.run(cases, plans, out=out, title="l4s").runs
        summary: Any = run.summary
        flow = read_table(run.path, "flows").filter(flow=0)
        window = flow.filter(flow["t_s"] >= WARMUP_S)["cwnd_seg"]
        return {
            "goodput_mbps": summary["flows"][0]["goodput_bps"] / 1e6,
            "window": statistics.fmean(window),
            **of_classes(summary["links"][0]["classes"]),
            "late_p999_us": summary["testbed"]["lateness"]["p999_us"],
        }


def mean(runs: Sequence[dict[str, float | None]]) -> dict[str, float | None]:
    """Of each figure; none where a queue had no packets. Of the bar's the deviation too."""
    means: dict[str, float | None] = {}
    for key in FIGURES:
        values = [value for run in runs if (value := run[key]) is not None]
        means[key] = round(statistics.fmean(values), 5) if values else None
        if key in BARRED:
            means[f"{key}_sd"] = round(statistics.stdev(values), 5)
    return means


def half_width(path: Path, mine: dict[str, Any], theirs: dict[str, Any], key: str) -> float:
    """Half of the 95 % interval of the difference of both means (Welch), over Linux's mean."""
    runs = RUNS[path.rate_mbit]
    a, b = (side[f"{key}_sd"] ** 2 / runs for side in (mine, theirs))
    if not theirs[key] or a + b == 0:
        return 0.0
    degrees = math.floor((a + b) ** 2 / ((a**2 + b**2) / (runs - 1)))
    return student_t(degrees) * math.sqrt(a + b) / float(theirs[key])


def recorded() -> dict[str, Any]:
    """The record: of each platform the date and the figures by path."""
    found: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return found


def measure() -> None:
    """Runs the simulator and Linux, and keeps their figures."""
    if why := outcome.missing():
        sys.exit(f"validation: SKIPPED l4s: {why}")
    measure_means(SIMULATOR, simulated)
    measure_means(LINUX, on_linux)


def measure_default() -> None:
    """Runs both with DCTCP's default variant, which computes in fractions of a segment."""

    def default(text: str) -> str:
        return text.replace('"dctcp:linux"', '"dctcp"')

    measure_means(FRACTIONS, lambda text: simulated(default(text)), FEW)
    measure_means(OURS, lambda text: on_linux(default(text), ours=True), FEW)


def measure_means(
    name: str, run: Callable[[str], dict[str, float | None]], most: int | None = None
) -> None:
    """Runs one platform, and keeps the means of its figures over all phases, or over so many."""
    record = recorded()
    paths = {}
    for path in PATHS:
        print(f"l4s: {name} {path.tag}", file=sys.stderr)
        with ThreadPoolExecutor(JOBS) as pool:
            phases = range(0, runs := RUNS[path.rate_mbit], runs // (most or runs))
            paths[path.tag] = mean(list(pool.map(run, map(path.scenario, phases))))
    record[name] = {"date": today(), "paths": paths}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


def measure_emulator(rounds: int) -> None:
    """Runs every path over the emulator, so many times, and keeps the figures of each run."""
    measure_default()
    record = recorded()
    record["coupling"] = coupling.rows()
    paths: dict[str, list[dict[str, float | None]]] = {path.tag: [] for path in PATHS}
    with kernel.attached([kernel.find("dctcp")]):
        for number in range(rounds):
            for path in PATHS:
                print(f"l4s: {EMULATOR} {path.tag}", file=sys.stderr)
                # One RTT for both flows: that of phase 0.
                scenario = Scenario.from_toml(path.scenario(0, variant="")).with_seed(number + 1)
                found = over_emulator(scenario)
                paths[path.tag].append(
                    {key: None if v is None else round(v, 5) for key, v in found.items()}
                )
                record[EMULATOR] = {"date": today(), "kernel": os.uname().release, "paths": paths}
                RECORD.write_text(json.dumps(record, indent=1) + "\n")


def today() -> str:
    """The date of a record."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def apart(mine: float | None, theirs: float | None) -> float | None:
    """Ours over theirs, less one; none where there is nothing to compare."""
    return None if mine is None or not theirs else mine / theirs - 1


def percent(value: float | None) -> str:
    """A difference as a cell."""
    return "–" if value is None else f"{value * 100:+.1f}"


def beside_linux(record: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A row a path: DCTCP's figures as Linux / here, and percent apart with the interval."""
    for path in PATHS:
        mine, theirs = (record[name]["paths"][path.tag] for name in (SIMULATOR, LINUX))
        cells = [f"{path.rate_mbit} Mbit/s", f"{path.rtt_ms} ms", path.load]
        for key, scale, digits in (("goodput_mbps", 1, 2), ("marked", 100, 2), ("window", 1, 1)):
            cells.append(f"{theirs[key] * scale:.{digits}f} / {mine[key] * scale:.{digits}f}")
            off = apart(mine[key], theirs[key])
            width = f" ± {half_width(path, mine, theirs, key) * 100:.1f}" if off is not None else ""
            cells.append(percent(off) + width)
        yield tuple(cells)


def within(record: dict[str, Any], load: str, *, by_chance: bool = False) -> int:
    """Paths of a load whose goodput, marks and window all lie within the bar.

    Args:
        record: what was measured.
        load: one of :data:`LOADS`.
        by_chance: the interval of the difference need only reach the bar.
    """
    found = 0
    for path in (path for path in PATHS if path.load == load):
        mine, theirs = (record[name]["paths"][path.tag] for name in (SIMULATOR, LINUX))
        found += all(
            abs(apart(mine[key], theirs[key]) or 0)
            <= BAR + (half_width(path, mine, theirs, key) if by_chance else 0)
            for key in BARRED
        )
    return found


def most_spread(record: dict[str, Any], load: str, key: str) -> float:
    """The largest deviation of a figure among runs of one path, over its mean."""
    sides = (record[name]["paths"] for name in (SIMULATOR, LINUX))
    tags = [path.tag for path in PATHS if path.load == load]
    found = [side[tag] for side in sides for tag in tags]
    return float(max(one[f"{key}_sd"] / one[key] for one in found if one[key] > LEAST_MARKED))


def figure(record: dict[str, Any], name: str, tag: str, key: str) -> Any:
    """A figure of a path on a platform; none where a queue had no packets."""
    found = record[name]["paths"][tag]
    if name != EMULATOR:
        return found[key]
    values = [run[key] for run in found if run[key] is not None]
    return statistics.fmean(values) if values else None


#: Columns of the tables by platform: figure, scale, digits.
COLUMNS = (
    ("goodput_mbps", 1, 1),
    ("marked", 100, 1),
    *((key, 1, 2) for key in FIGURES[3:5]),
    *((key, 1, 1) for key in FIGURES[5:]),
)


def platforms(record: dict[str, Any], load: str, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A row a path of a load: each figure on these platforms."""
    for path in (path for path in PATHS if path.load == load):
        cells = [f"{path.rate_mbit} Mbit/s × {path.rtt_ms} ms"]
        for key, scale, digits in COLUMNS if load == BESIDE else COLUMNS[:4]:
            values = [figure(record, name, path.tag, key) for name in names]
            cells.append(
                " / ".join("–" if v is None else f"{v * scale:.{digits}f}" for v in values)
            )
        yield tuple(cells)


HEADINGS = (
    *("path", "DCTCP's goodput, Mbit/s", "marked, %", "L4S p50, ms", "L4S p99"),
    *("Classic p50, ms", "Classic p99"),
)


def page(record: dict[str, Any]) -> str:
    """docs/l4s-platforms.md."""
    dates = ", ".join(f"{name} {record[name]['date']}" for name in (SIMULATOR, LINUX))
    alone, shared = (within(record, load) for load in LOADS)
    reach, reach_shared = (within(record, load, by_chance=True) for load in LOADS)
    marks = max(most_spread(record, load, "marked") for load in LOADS)
    goodput = max(most_spread(record, load, "goodput_mbps") for load in LOADS)
    runs = ", ".join(f"{count} at {rate} Mbit/s" for rate, count in RUNS.items())
    of_paths = len(PATHS) // len(LOADS)
    beside = markdown(
        ("rate", "RTT", "DCTCP", "goodput, Mbit/s", "%", "marked, %", "%", "window", "%"),
        list(beside_linux(record)),
    )
    table = markdown(HEADINGS, list(platforms(record, BESIDE, (SIMULATOR, LINUX))))
    return f"""\
# DualPI2 on its platforms

The queue `dualpi2` (RFC 9332) with one set of parameters, its defaults, in the simulator, in
Linux {LINUX_RELEASE} in virtual time and [on the emulator](#on-the-emulator). In virtual time
Linux's own `dctcp` and `cubic` are at the ends, and the queue is written a second time, from the
RFC, as a queueing discipline (`linux/README.md`); in the simulator the ends are the variants
`linux` of our laws. DCTCP's packets are ECT(0), so the queue has `any_ect`, the option of that
name in Linux. Both flows start at once; of {DURATION_S} s the last {DURATION_S - WARMUP_S} count;
the queue has room for 250 ms. Each figure is a mean over several runs on each side, whose RTTs
differ by less than a packet's time: {runs}.
A jitter of 2 % of a packet's time breaks ties: without it both sides took the same steps for
seconds, until an arrival fell together with a departure, and then kept cycles of their own.
`python -m validation l4s` ({dates}); the figures are in
[l4s.json](../validation/reference/l4s.json).

## Our DCTCP beside Linux's

Linux / here, and how far apart, with the 95 % interval of that difference. Alone {alone} of
{of_paths} paths have means of goodput, marks and window within {BAR * 100:.0f} %; beside CUBIC
{shared}. On {reach} and {reach_shared} paths the interval of every figure reaches
{BAR * 100:.0f} %: there no larger difference is shown, which is less than to show that there is
none.

{chr(10).join(beside)}

One run cannot tell {BAR * 100:.0f} %: runs of one path on one side deviate by up to
{marks * 100:.0f} % of the mean in the share of marks and {goodput * 100:.0f} % in goodput (standard
deviations, paths with more than {LEAST_MARKED * 100:.0f} % of marks). So means are compared. The
two runs a side of an earlier comparison had 16 % less goodput than Linux at 40 Mbit/s × 30 ms
beside CUBIC, where DCTCP ends up with some 20 or 30 Mbit/s: that was chance.

## What the comparison showed

- The ACK that ends DCTCP's window of data counts in it: with alpha computed from the ACKs that
  Linux's sender saw, that rule gives ssthresh after each of 981 reductions on five paths, and the
  rule that `dctcp:linux` had, 906. A window of data ends where `snd_nxt` was; `dctcp:linux` had
  taken it from deliveries, which a timeout without SACK counts twice.
- Alpha below 16/1024 falls to 0 at once in Linux; `dctcp:linux` had taken 1/1024 a round.
- Without jitter, 4 Mbit/s × 100 ms alone takes the same steps for 6,200 packets. Then one has
  waited for exactly the time of two packets, where marks begin: in Linux, whose clock moves 1 ns at
  each reading, it is marked. With `delayed_ack = false` no such pairs of packets exist, and there
  goodput, marks and window of eight runs differ by 0.01 % (2026-11-29).

## One set of parameters

A flow of DCTCP beside one of CUBIC: simulator / Linux. Delays are waiting times in the queues.

{chr(10).join(table)}

{on_emulator(record)}"""


#: What kept earlier figures on the emulator apart, by runs with and without it.
CAUSES = [
    (
        "Linux's receiver repeats a mark until it is answered (RFC 3168)",
        *("12 × 30 ms, alone", "2.5", "9.5", "10.5"),
    ),
    (
        "programs at the ends lose their processor to others while they hold a socket's lock",
        *("100 × 30 ms, alone", "48", "89", "93"),
    ),
    ("bursts, made for segmentation offload", "100 × 30 ms, alone", "72", "89", "93"),
    (
        "Linux keeps no fraction of ssthresh: a cut is one of half a segment at least",
        *("100 × 10 ms, beside CUBIC", "29", "46", "52"),
    ),
]


def off(record: dict[str, Any], name: str, load: str) -> list[float]:
    """A platform's goodput over the simulator's with the same law, on each path of a load."""
    tags = [path.tag for path in PATHS if path.load == load]
    theirs = record[FRACTIONS]["paths"]
    key = "goodput_mbps"
    return [figure(record, name, tag, key) / theirs[tag][key] for tag in tags]


def on_emulator(record: dict[str, Any]) -> str:
    """The part of the page about the emulator."""
    measured = record[EMULATOR]
    rounds = min(map(len, measured["paths"].values()))
    release = measured["kernel"].partition("-")[0]
    runs = [run for runs in measured["paths"].values() for run in runs]
    late = sum(run["late_p999_us"] > LATENESS_BOUND_US for run in runs)
    late_ms = statistics.median(run["late_p999_us"] for run in runs) / 1e3
    ratios = off(record, EMULATOR, ALONE)
    names = [row[0] for row in platforms(record, ALONE, (EMULATOR,))]
    apart_on = [name for name, ratio in zip(names, ratios, strict=True) if abs(ratio - 1) > NEAR]
    near, far = len(ratios) - len(apart_on), ", ".join(apart_on)
    beside = off(record, EMULATOR, BESIDE)
    virtual = [abs(ratio - 1) for load in LOADS for ratio in off(record, OURS, load)]
    tables = [
        markdown(HEADINGS if load == BESIDE else HEADINGS[:5], list(rows))
        for load in LOADS
        for rows in [platforms(record, load, (FRACTIONS, OURS, EMULATOR))]
    ]
    alone, shared = ("\n".join(table) for table in tables)
    causes = "\n".join(
        markdown(("cause", "path, Mbit/s × RTT", "with it", "without it", "simulator"), CAUSES)
    )
    coupled = "\n".join(markdown(coupling.COLUMNS, record["coupling"]))
    return f"""\
## On the emulator

The emulator has the simulator's own code of the queue. At the ends is this kernel's TCP, Linux
{release}. It has no `dctcp` of its own: `lfn kernel load dctcp` loads our law, in its default
variant, which computes in fractions of a segment. CUBIC is Linux's own.
`python -m validation l4s --emulator {rounds}` ({measured["date"]}) ran each path in real time as
`lfn testbed --no-offload` does, and {FEW} runs of each with the same law in the simulator and in
Linux {LINUX_RELEASE} in virtual time. The machine had two cores and other work: one segment in a
thousand came more than {late_ms:.1f} ms late (median of {len(runs)} runs), so {late} of the runs
are not valid by the bound of 1 ms.

In virtual time goodput is within {max(virtual) * 100:.0f} % of the simulator's on all paths,
{statistics.median(virtual) * 100:.1f} % in the median: law and shim are the simulator's DCTCP.

DCTCP alone, simulator / virtual time / emulator. On {near} of 12 paths the emulator's goodput is
within {NEAR * 100:.0f} % of the simulator's, but not on {far}:

{alone}

Beside CUBIC. On the emulator DCTCP has {min(beside):.2f} to {max(beside):.2f} of the simulator's
goodput, {statistics.median(beside):.2f} in the median. It has least where most is marked: there
CUBIC keeps the base probability up to twice as high as in virtual time. Why is not known: in the
simulator neither equal RTTs nor a jitter of up to 6 ms had that effect on 4 Mbit/s × 30 ms.

{shared}

Four causes kept earlier figures apart. DCTCP's goodput in Mbit/s with each and without it, in
one run each (2026-11-30):

{causes}

The first was thought to be bursts: without them, and with the first cause, 12 Mbit/s × 30 ms alone
had 2.5 Mbit/s as before. Since then the shim of laws that need ECN has the receiver of RFC 8257 and
keeps fractions, both ends of a test bed run before ordinary processes, and counters of links
restart with the warm-up's end. Each mark is echoed once: of transfers of 3 MB with 184 and 183
marks, TCP_INFO counted 184 and 183 marked segments. No Linux with a DualPI2 or Prague of its own
was at hand.

The queue by itself, under UDP of two rates that answer nothing, on {coupling.RATE_MBIT} Mbit/s
(`python -m validation.coupling`, {measured["date"]}): Classic packets without
room are dropped, a share of p'² that follows from the rates. Of L4S packets RFC 9332 (section 4.1)
marks 2 p':

{coupled}
"""


def main(arguments: list[str]) -> None:
    """Parses the command line, runs, writes the page."""
    parser = argparse.ArgumentParser(
        prog="python -m validation l4s",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--page", action="store_true", help="only rewrite the page")
    parser.add_argument("--emulator", type=int, metavar="RUNS", help="of each path; needs root")
    asked = parser.parse_args(arguments)
    if asked.emulator:
        measure_emulator(asked.emulator)
    elif not asked.page:
        measure()
    PAGE.write_text(page(recorded()), encoding="utf-8")
