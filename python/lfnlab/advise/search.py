"""Advice for a path, from simulations: the fastest of the choices, and what it costs others.

The fluid puts the choices in order. A first round simulates as many of them as the packets allow;
a second one simulates the best, and their neighbours in streams and pacing, with more seeds. All
choices meet the same random numbers, so they are compared seed by seed.
"""

from __future__ import annotations

import math
import statistics as middle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.advise import amounts, screen
from lfnlab.advise.choices import Choice, choices
from lfnlab.advise.path import MOST_WINDOW_BYTES, OFFSET_RTTS
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.statistics import interval, paired

if TYPE_CHECKING:
    from lfnlab.advise.amounts import Amount, Span
    from lfnlab.advise.choices import Offer
    from lfnlab.advise.path import Path
    from lfnlab.experiment.run import Progress
    from lfnlab.results.cases import Factor
    from lfnlab.results.runs import Results, Run
    from lfnlab.scenario.builder import Scenario
    from lfnlab.statistics import Interval

EQUAL = 0.01
"""Choices whose median times differ by less are equal: a setting is not worth it."""
MOST_HARM = 0.5
"""On a shared path a choice that takes more of the neighbour's goodput is not recommended."""
TOGETHER = "uniform(0ns, 10ms)"
"""Streams of one program begin within this time."""
SAMPLES = 64
NEIGHBOUR_SEEDS = 3


@dataclass(frozen=True)
class Time:
    """Transfer times of one choice, seed by seed."""

    times_s: tuple[float, ...]
    whole: bool
    """Every run ended; else the rest follows from the second half of each run."""

    @property
    def p50_s(self) -> float:
        """Median."""
        return float(np.quantile(self.times_s, 0.5)) if self._moves else math.inf

    @property
    def p95_s(self) -> float:
        """The time that 95 % of the transfers do not exceed."""
        return float(np.quantile(self.times_s, 0.95)) if self._moves else math.inf

    @property
    def _moves(self) -> bool:
        return all(map(math.isfinite, self.times_s))


@dataclass(frozen=True)
class Beside:
    """Goodput of a choice and of a flow that shares the path, in bit/s, means over seeds."""

    ours_bps: Interval
    theirs_bps: Interval
    fair_bps: Interval
    """The neighbour's goodput beside one more flow of its own law."""

    @property
    def share(self) -> float:
        """The neighbour's part of both."""
        both = self.ours_bps.mean + self.theirs_bps.mean
        return self.theirs_bps.mean / both if both else math.nan

    @property
    def harm(self) -> float:
        """The part that it loses against a flow of its own law in the choice's place."""
        fair = self.fair_bps.mean
        return max(0.0, 1 - self.theirs_bps.mean / fair) if fair else math.nan


@dataclass
class Advice:
    """The answer and its evidence."""

    path: Path
    size: int
    best: Choice
    runner_up: Choice | None
    times: dict[Choice, Time]
    """Of the second round."""
    first: dict[Choice, Time]
    """Of the first round."""
    scores: dict[Choice, float]
    """Part of the link by the fluid, of every choice."""
    equals: list[Choice]
    refused: list[Choice]
    """Faster, but harmful on a shared path."""
    udt: Time
    neighbour: str
    beside: dict[Choice, Beside]
    shared: bool
    amounts: dict[str, Amount]
    packets: int
    """Simulated."""
    results: Results = field(repr=False)

    def slower(self, choice: Choice) -> Interval:
        """How much longer a choice takes than the best, as a part, seed by seed."""
        best = self.times[self.best]
        # One run stands for every seed: nothing in it is random.
        pair = np.broadcast_arrays(self.times[choice].times_s, best.times_s)
        mine, theirs = ((times / best.p50_s).tolist() for times in pair)
        return paired(mine, theirs)


class Search:
    """One request for advice. Runs are stored in a results directory; repeated, it continues."""

    def __init__(
        self,
        path: Path,
        size: int,
        offers: Sequence[Offer],
        *,
        flows: int,
        beside: str | None,
        prefer_linux: bool = False,
        out: FilePath,
        jobs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        path.check()
        self.path, self.size = path, size
        self.choices = choices(offers, flows)
        self.shared, self.neighbour = beside is not None, beside or "cubic:linux"
        self._out, self._jobs, self._progress = out, jobs, progress
        self._cases: list[tuple[Case, int]] = []
        self._packets = 0
        self._prefer_linux = prefer_linux and not all(choice.ours for choice in self.choices)
        self.title = f"Advice for {path.rate} × {path.rtt}, buffer {path.buffer}"

    def run(self) -> Advice:
        """Simulate and choose.

        Raises:
            ScenarioError: a quantity of the path cannot be simulated.
            LabError: a run failed.
            KeyboardInterrupt: finished runs stay.
        """
        path, size = self.path, self.size
        queue, scores = screen.order(path, self.choices)
        random = path.loss > 0.0 or self.shared or max(c.streams for c in queue) > 1
        amount_1 = amounts.round_1(path, size, queue, self.shared, random)
        first = self._times(queue[: len(amount_1.spans)], amount_1)
        finalists = self._finalists(first, scores)
        most = {choice: self._most(choice, first, scores) for choice in finalists}
        amount_2 = amounts.round_2(path, size, most, self.shared, random)
        times = self._times(finalists, amount_2)
        udt = amounts.udt(path, size, amount_2.seeds)
        udt_time = self._udt(udt)
        ranked = sorted(finalists, key=lambda choice: (times[choice].p50_s, choice))
        if self._prefer_linux:
            ranked = [choice for choice in ranked if not choice.ours]
        others = [choice for choice in ranked if choice.law != ranked[0].law]
        beside = self._beside(ranked if self.shared else [ranked[0], *others[:1]])
        gentle = [c for c in ranked if not self.shared or beside[c].harm <= MOST_HARM] or ranked
        equals = [c for c in gentle if self._equal(times[c], times[gentle[0]])]
        best = min(equals)
        if best not in beside:
            beside |= self._beside([best])
        others = [choice for choice in gentle if choice.law != best.law]
        refused = [c for c in ranked if c not in gentle and times[c].p50_s < times[best].p50_s]
        return Advice(
            path=path,
            size=size,
            best=best,
            runner_up=others[0] if others else None,
            times=times,
            first=first,
            scores=scores,
            equals=[choice for choice in equals if choice != best],
            refused=refused,
            udt=udt_time,
            neighbour=self.neighbour,
            beside=beside,
            shared=self.shared,
            amounts={"first": amount_1, "second": amount_2, "udt": udt},
            packets=self._packets,
            results=self._all(),
        )

    def _finalists(self, first: dict[Choice, Time], scores: dict[Choice, float]) -> list[Choice]:
        """The best of the first round, of another law, those beside the best, and the next.

        If transfers did not end, the best by the fluid is among them: the first part of a transfer
        does not show the steady state of a law that grows slowly. Where Linux's laws come first,
        the fastest of ours in the first round is compared with them.
        """
        ranked = sorted(first, key=lambda choice: (first[choice].p50_s, choice))
        ours = [choice for choice in ranked if choice.ours][:1] if self._prefer_linux else []
        if self._prefer_linux:
            ranked = [choice for choice in ranked if not choice.ours]
        best = ranked[0]
        beside = [
            choice
            for choice in self.choices
            if choice.law == best.law
            and (choice.streams == best.streams or choice.fq == best.fq)
            and choice not in first
        ]
        others = [choice for choice in ranked if choice.law != best.law]
        if all(time.whole for time in first.values()):
            chosen = [*ranked[:3], *ours, *others[:1], *beside, *ranked[3:]]
            count = amounts.FINALISTS
        else:
            steady = sorted(others, key=lambda choice: (-scores[choice], choice))
            chosen = [best, *ours, *others[:1], *steady[:1], *beside, *ranked]
            count = amounts.FINALISTS_IN_PART
        return sorted(list(dict.fromkeys(chosen))[:count])

    def _most(
        self, choice: Choice, first: dict[Choice, Time], scores: dict[Choice, float]
    ) -> float:
        """The most of the link that a choice will have: by the fluid, or twice what it had."""
        if choice not in first or not math.isfinite(first[choice].p50_s):
            return 1.0
        had = self.size * 8 / first[choice].p50_s / self.path.goodput_bps
        return max(scores[choice], 2 * had)

    @staticmethod
    def _equal(one: Time, best: Time) -> bool:
        """Whether a choice is as fast as the best one."""
        if not math.isfinite(one.p50_s):
            return not math.isfinite(best.p50_s)
        return one.p50_s <= best.p50_s * (1 + EQUAL)

    def _execute(self, cases: Sequence[Case], seeds: int) -> list[list[Run]]:
        """The runs of each case, by seed."""
        results = execute(
            cases,
            seeds=seeds,
            out=self._out,
            jobs=self._jobs,
            progress=self._progress,
            title=self.title,
        )
        self._cases += [(case, seeds) for case in cases]
        self._packets += sum(int(run.summary["data_packets_delivered"]) for run in results.runs)
        return [[run for run in results.runs if run.factors == case.factors] for case in cases]

    def _all(self) -> Results:
        """One experiment of all runs, so that a report shows them together."""
        cases = [
            Case(case.scenario.with_seed(case.scenario.seed + at), case.factors)
            for case, seeds in self._cases
            for at in range(seeds if case.scenario.is_random else 1)
        ]
        return execute(cases, out=self._out, jobs=self._jobs, title=self.title)

    def _times(self, chosen: Sequence[Choice], amount: Amount) -> dict[Choice, Time]:
        offset_s = OFFSET_RTTS * self.path.rtt_s if self.shared else 0.0
        cases = []
        for choice, span in zip(chosen, amount.spans, strict=True):
            base = self.path.scenario(span.duration_s + offset_s, sample=_sample(span))
            scenario = self._transfer(base, choice, offset_s)
            cases.append(Case(scenario, _factors(choice, "transfer")))
        found = self._execute(cases, amount.seeds)
        return {
            choice: _time(runs, choice.streams, self.size, offset_s, span)
            for choice, runs, span in zip(chosen, found, amount.spans, strict=True)
        }

    def _transfer(self, base: Scenario, choice: Choice, offset_s: float) -> Scenario:
        start_ns = round(offset_s * 1e9)
        settings: dict[str, Any] = {
            "packet": self.path.packet,
            "size": f"{-(-self.size // choice.streams)}B",
            "count": choice.streams,
        }
        if choice.streams > 1 or self.shared:
            settings["start"] = f"uniform({start_ns}ns, {start_ns + 10_000_000}ns)"
        if choice.fq:
            settings["pacing"] = True
        scenario = base.flow(choice.law, **settings, **self._window())
        if self.shared:
            scenario = scenario.flow(self.neighbour, packet=self.path.packet)
        return scenario

    def _window(self) -> dict[str, Any]:
        """TCP's largest window, where the path is longer."""
        if self.path.window_bytes < MOST_WINDOW_BYTES:
            return {}
        return {"receive_window": f"{MOST_WINDOW_BYTES}B"}

    def _udt(self, amount: Amount) -> Time:
        [span] = amount.spans
        scenario = self.path.scenario(span.duration_s, sample=_sample(span)).flow(
            "udt", packet=self.path.packet, size=f"{self.size}B"
        )
        factors: dict[str, Factor] = {"law": "udt", "streams": 1, "fq": 0, "part": "lfn send"}
        [runs] = self._execute([Case(scenario, factors)], amount.seeds)
        return _time(runs, 1, self.size, 0.0, span)

    def _beside(self, chosen: Sequence[Choice]) -> dict[Choice, Beside]:
        """Each choice without an end beside the neighbour; and one more neighbour instead."""
        duration_s = amounts.neighbour_s(self.path, (len(chosen) + 1) * NEIGHBOUR_SEEDS)
        base = replace(self.path.scenario(duration_s), warmup=f"{round(duration_s / 3 * 1e9)}ns")
        cases = []
        start = f"uniform(0ns, {max(1, round(self.path.rtt_s * 1e9))}ns)"
        pair = base.flow(self.neighbour, packet=self.path.packet).flow(
            self.neighbour, packet=self.path.packet, start=start
        )
        cases.append(Case(pair, {"law": self.neighbour, "streams": 1, "fq": 0, "part": "pair"}))
        for choice in chosen:
            settings: dict[str, Any] = {"count": choice.streams, "packet": self.path.packet}
            if choice.fq:
                settings["pacing"] = True
            scenario = base.flow(self.neighbour, packet=self.path.packet).flow(
                choice.law, start=start, **settings, **self._window()
            )
            cases.append(Case(scenario, _factors(choice, "beside")))
        found = self._execute(cases, NEIGHBOUR_SEEDS)
        fair = interval(_goodput(run, slice(None)) / 2 for run in found[0])
        return {
            choice: Beside(
                interval(_goodput(run, slice(1, None)) for run in runs),
                interval(_goodput(run, slice(0, 1)) for run in runs),
                fair,
            )
            for choice, runs in zip(chosen, found[1:], strict=True)
        }


def _factors(choice: Choice, part: str) -> dict[str, Factor]:
    return {"law": choice.law, "streams": choice.streams, "fq": int(choice.fq), "part": part}


def _sample(span: Span) -> str:
    return "off" if span.whole else f"{max(1, round(span.duration_s / SAMPLES * 1e9))}ns"


def _goodput(run: Run, which: slice) -> float:
    return math.fsum(run.goodputs[which])


def _time(runs: Sequence[Run], streams: int, size: int, offset_s: float, span: Span) -> Time:
    """The transfer times of runs, seed by seed; of runs that did not end, an extrapolation.

    The rest of a transfer takes as long as at the goodput of the second half of its run. Its
    spread around the median is that of such halves, less by the root of how many the rest has.
    """
    ended = [_ended_s(run, streams, offset_s) for run in runs]
    if all(time is not None for time in ended):
        return Time(tuple(time for time in ended if time is not None), whole=True)
    times = [
        time if time is not None else _extrapolated_s(run, streams, size, offset_s)
        for run, time in zip(runs, ended, strict=True)
    ]
    if all(map(math.isfinite, times)):
        typical = middle.median(times)
        rest_s = typical - span.duration_s
        narrower = math.sqrt(min(1.0, span.duration_s / 2 / rest_s)) if rest_s > 0 else 1.0
        times = [typical + (time - typical) * narrower for time in times]
    return Time(tuple(times), whole=False)


def _ended_s(run: Run, streams: int, offset_s: float) -> float | None:
    ends = []
    for flow in run.summary["flows"][:streams]:
        if flow["completion_s"] is None:
            return None
        ends.append(flow["start_s"] + flow["completion_s"] - offset_s)
    return max(ends)


def _extrapolated_s(run: Run, streams: int, size: int, offset_s: float) -> float:
    """From the second half of the run."""
    import polars as pl

    whole_s = float(run.summary["sim_s"]) - offset_s
    summary = run.summary["flows"][:streams]
    end = math.fsum(float(flow["delivered_bytes"]) for flow in summary)
    table = run.table("flows").filter(
        (pl.col("flow") < streams) & (pl.col("t_s") <= offset_s + whole_s / 2)
    )
    if table.is_empty():  # no samples: the mean from the start
        return math.inf if end <= 0 else whole_s * size / end
    half = table.sort("t_s").group_by("flow").last()
    half_s = float(half["t_s"].max()) - offset_s  # type: ignore[arg-type]
    rate = (end - float(half["delivered_bytes"].sum())) / (whole_s - half_s)
    return math.inf if rate <= 0 else whole_s + max(0.0, size - end) / rate
