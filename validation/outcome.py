"""Runs a drawn scenario on both sides, and says whether they agree."""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab import Scenario, _core
from lfnlab.scenario.quantity import SECONDS, parse
from lfnlab.testbed import virtual_hosts, virtual_run, virtual_time

if TYPE_CHECKING:
    from .draw import Drawn

#: `make linux` builds what this runs, and writes last of what the build is made.
PROGRAM = FilePath(__file__).resolve().parents[1] / "linux" / "run"
BUILT = PROGRAM.parents[1] / "build" / "linux" / "built"
#: How far from Linux a figure may lie: a fraction, and what is below resolution.
GOODPUT, WINDOW, COUNT = 0.05, 0.05, 0.25
GOODPUT_BPS, WINDOW_SEGMENTS, COUNT_PACKETS, TIMEOUTS = 1e4, 1.0, 5.0, 1.0
#: The runs of one side over the phases differ by more: chaotic, and medians are compared.
CHAOTIC = 0.05


@dataclass(frozen=True)
class Flow:
    """Figures of one flow: goodput in bit/s, mean window in segments, counts over the whole run."""

    goodput_bps: float
    mean_window: float
    retransmits: float
    timeouts: float


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run: figures of its flows, drops and marks at the bottleneck in packets."""

    flows: tuple[Flow, ...]
    drops: float
    marks: float

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def of_plain(value: dict[str, Any]) -> Outcome:
        """From JSON."""
        flows = tuple(Flow(**flow) for flow in value["flows"])
        return Outcome(flows, value["drops"], value["marks"])


@dataclass(frozen=True)
class Verdict:
    """How two outcomes compare. ``worst`` is in units of what is allowed: at most 1 agrees."""

    worst: float
    what: tuple[str, ...]
    #: Which figures of ours are too small ("-") or too large ("+"), whatever the flow.
    signs: frozenset[str] = frozenset()

    @property
    def agrees(self) -> bool:
        """Whether every figure is within what is allowed."""
        return self.worst <= 1


def missing() -> str | None:
    """Name of the missing build and how to make it; None if Linux in virtual time can run."""
    return None if BUILT.exists() else f"no {BUILT.relative_to(PROGRAM.parents[1])}: make linux"


# ---- the two sides ----


def _window(
    time_s: np.ndarray, window: np.ndarray, opening: np.ndarray, start_s: float, rtt_s: float
) -> float:
    """The mean of the samples from a round trip after the start and after the handshake.

    While SYNs are lost Linux reports a window of one segment that it never uses.
    """
    inside = (time_s >= start_s + rtt_s) & ~opening
    return float(np.mean(window[inside])) if inside.any() else 0.0


def _after_handshake(samples: Mapping[str, np.ndarray], counter: str, opening: np.ndarray) -> float:
    """A counter of Linux without what the handshake added: ours counts data only."""
    before = samples[counter][opening]
    return float(samples[counter][-1] - (before[-1] if len(before) else 0))


def _expanded(resolved: dict[str, Any]) -> list[dict[str, Any]]:
    """The table of each flow with its own values."""
    places = [(flow, place) for flow in resolved["flow"] for place in range(flow["count"])]
    return [
        virtual_hosts.own_values(flow, place, resolved["seed"], number)
        for number, (flow, place) in enumerate(places)
    ]


def of_linux(resolved: dict[str, Any], ran: virtual_run.Ran) -> Outcome:
    """From Linux's samples."""
    flows = []
    for flow, samples in zip(_expanded(resolved), ran.flows, strict=True):
        start_s = parse(flow["start"], SECONDS)
        rtt_s = parse(flow["rtt"], SECONDS)
        active_s = parse(resolved["duration"], SECONDS) - start_s
        # The SYN counts as a byte that was acknowledged.
        opening = samples["bytes_acked"] == 0
        # The last one may be at the end of the run, between two samples.
        grid = samples["t_us"] % round(parse(resolved["sample"], SECONDS) * 1e6) == 0
        flows.append(
            Flow(
                goodput_bps=8 * max(0.0, float(samples["bytes_acked"][-1]) - 1) / active_s,
                mean_window=_window(
                    samples["t_us"][grid] / 1e6,
                    samples["cwnd"][grid],
                    opening[grid],
                    start_s,
                    rtt_s,
                ),
                retransmits=_after_handshake(samples, "total_retrans", opening),
                timeouts=_after_handshake(samples, "timeouts", opening),
            )
        )
    queue = ran.queue
    marks = sum(queue.get(key, 0) for key in ("ecn_mark", "marked", "ecn_marks"))
    return Outcome(tuple(flows), float(queue["drops"]), float(marks))


def of_ours(resolved: dict[str, Any], run: _core.Run) -> Outcome:
    """From the laboratory's summary and samples."""
    summary, table = json.loads(run.summary()), run.table("flows")
    flows = []
    for number, (flow, said) in enumerate(zip(_expanded(resolved), summary["flows"], strict=True)):
        of = table["flow"] == number
        start_s, rtt_s = said["start_s"], parse(flow["rtt"], SECONDS)
        active_s = parse(resolved["duration"], SECONDS) - start_s
        flows.append(
            Flow(
                goodput_bps=8 * said["delivered_bytes"] / active_s,
                mean_window=_window(
                    table["t_s"][of],
                    table["cwnd_seg"][of],
                    table["srtt_s"][of] == 0,
                    start_s,
                    rtt_s,
                ),
                retransmits=float(said["retransmits"]),
                timeouts=float(said["timeouts"]),
            )
        )
    link = summary["links"][0]
    return Outcome(tuple(flows), float(link["drops"]), float(link["marks"]))


def linux(drawn: Drawn, cache: FilePath, *more: str) -> Outcome:
    """Linux's outcome; stored in ``cache`` under settings and build, and not run again."""
    resolved = Scenario.from_toml(drawn.toml()).check().to_document()
    told = virtual_time.translated(resolved, *more, ours=drawn.ours, seed=drawn.kernel_seed)
    key = told + BUILT.read_text()
    file = cache / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    if file.exists():
        return Outcome.of_plain(json.loads(file.read_text()))
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        found = of_linux(resolved, virtual_run.run(PROGRAM, FilePath(work), "run", told))
    # By one rename: what is there is whole.
    part = file.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(found.plain()) + "\n")
    part.rename(file)
    return found


def ours(drawn: Sequence[Drawn]) -> list[Outcome]:
    """The simulator's outcomes, one a scenario."""
    scenarios = [_core.Scenario(one.toml(), "hunt.toml") for one in drawn]
    runs = _core.run_many(scenarios, 1, None)
    return [
        of_ours(json.loads(scenario.resolved), run)
        for scenario, run in zip(scenarios, runs, strict=True)
        if run is not None
    ]


# ---- the comparison ----


#: The figures of a flow, in the order of an array's last axis.
FIGURES = tuple(field.name for field in fields(Flow))


def figures(outcomes: Sequence[Outcome]) -> np.ndarray:
    """An array of runs, flows, figures."""
    return np.array(
        [[[getattr(flow, n) for n in FIGURES] for flow in one.flows] for one in outcomes]
    )


def allowed(theirs: np.ndarray, mine: np.ndarray) -> np.ndarray:
    """How far figures may lie from Linux's.

    Counts of packets agree within a factor of 1.25 either way, or five packets.
    """
    may = np.empty_like(theirs)
    may[..., 0] = np.maximum(GOODPUT * theirs[..., 0], GOODPUT_BPS)
    may[..., 1] = np.maximum(WINDOW * theirs[..., 1], WINDOW_SEGMENTS)
    low = np.minimum(theirs[..., 2], mine[..., 2])
    may[..., 2] = np.maximum(COUNT * low, COUNT_PACKETS)
    may[..., 3] = TIMEOUTS
    return may


def compare(theirs: Outcome, mine: Outcome) -> Verdict:
    """Each flow's figures beside Linux's."""
    a, b = figures([theirs])[0], figures([mine])[0]
    apart = np.abs(a - b) / allowed(a, b)
    what, signs = [], set()
    for number, figure in np.argwhere(apart > 1):
        name, linux_has, we_have = FIGURES[figure], a[number, figure], b[number, figure]
        what.append(f"flow {number} {name}: {linux_has:.6g} / {we_have:.6g}")
        signs.add(f"{name}{'+' if we_have > linux_has else '-'}")
    return Verdict(float(apart.max()), tuple(what), frozenset(signs))


def chaotic(outcomes: Sequence[Outcome]) -> bool:
    """Whether the runs of one side over the phases spread by more than 5 %."""
    for flows in zip(*(outcome.flows for outcome in outcomes), strict=True):
        for name in ("goodput_bps", "mean_window"):
            values = [getattr(flow, name) for flow in flows]
            middle = statistics.median(values)
            if max(values) - min(values) > CHAOTIC * middle:
                return True
        counts = [flow.retransmits for flow in flows]
        if max(counts) - min(counts) > max(COUNT * min(counts), COUNT_PACKETS):
            return True
    return False


def median(outcomes: Sequence[Outcome]) -> Outcome:
    """Each figure's median over runs."""
    middle = np.median(figures(outcomes), axis=0)
    return Outcome(
        tuple(Flow(*map(float, flow)) for flow in middle),
        statistics.median(outcome.drops for outcome in outcomes),
        statistics.median(outcome.marks for outcome in outcomes),
    )
