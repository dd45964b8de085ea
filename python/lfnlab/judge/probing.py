"""Scenarios of a law on a path, and the axes of a score that are read from their runs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lfnlab import _core, metrics
from lfnlab.analysis.capacity import payload_bps
from lfnlab.analysis.table import markdown
from lfnlab.errors import ScenarioError
from lfnlab.evaluate import measures
from lfnlab.evaluate.scenarios import START, link
from lfnlab.evaluate.subjects import Subject, subject
from lfnlab.scenario.elements import Change, Queue, ShortFlows, Traffic

if TYPE_CHECKING:
    from lfnlab.evaluate.measures import Measure
    from lfnlab.judge.objective import Objective
    from lfnlab.judge.paths import Place
    from lfnlab.results.runs import Run
    from lfnlab.scenario.builder import Scenario

Better = Literal["more", "less", "near"]
Build = Callable[[Subject, "Place"], Sequence["Scenario"]]
EVENT, NEWCOMER = 0.5, 0.25
"""Parts of a run after which the loss or the outage comes, and the newcomer."""


@dataclass(frozen=True)
class Axis:
    """A number that a score has.

    Args:
        name: unique.
        what: the number in words.
        unit: of the values.
        better: whether more or less is better, or what is near ``target``.
        measure: the number of the runs of one seed.
        target: of what is near it.
    """

    name: str
    what: str
    unit: str
    better: Better
    measure: Measure
    target: float = 0.0

    def badness(self, value: float) -> float:
        """The larger, the worse; in the unit of the axis."""
        if self.better == "near":
            return abs(value - self.target)
        return value if self.better == "less" else -value


@dataclass(frozen=True)
class Probe:
    """Scenarios of a law on a path, and the axes that are read from their runs."""

    name: str
    build: Build
    axes: tuple[Axis, ...]


def probes(objective: Objective) -> list[Probe]:
    """All that an objective asks for, in the order of its tables."""
    return [
        *(_goodput(loss, level) for loss, level in objective.cells),
        *_refills(objective),
        _rtt(objective.rtt_ratio),
        *map(_share, objective.beside),
        _newcomer(objective.newcomer_share),
        _short(objective.short_law, objective.short_load),
        *(_marks(kind, objective.marks_buffer) for kind in objective.queues),
    ]


# Goodput, steadiness, queue


def _goodput(loss: float, level: int) -> Probe:
    plain = loss == 0.0 and level == 0

    def build(who: Subject, place: Place) -> Sequence[Scenario]:
        path = _with_loss(place.scenario(sampled=plain), loss)
        flow = who.flow(path, start=START)
        return [flow.with_background(level) if level else flow]

    where = f"random loss {_short_number(loss)}, background {level}"
    share = Axis(
        f"goodput-{_short_number(loss)}-{level}",
        f"goodput, of the payload that the link can carry; one flow, {where}",
        "1",
        "more",
        measures.efficiency,
    )
    if not plain:
        return Probe(share.name, build, (share,))
    steady = Axis(
        "cov", "coefficient of variation of goodput in bins of 1 s; one flow", "1", "less", _cov
    )
    queue = Axis("queue-p95", "95th percentile of the queue's delay; one flow", "s", "less", _p95_s)
    return Probe(share.name, build, (share, steady, queue))


def _short_number(value: float) -> str:
    """0, or as 1e-4."""
    return f"{Decimal(repr(value)).normalize():e}" if value else "0"


def _with_loss(path: Scenario, loss: float) -> Scenario:
    """The path with so much random loss beside its own."""
    if loss == 0.0:
        return path
    assert path.link is not None
    own = path.link.loss or 0.0
    if not isinstance(own, int | float):
        raise ScenarioError(
            "its own loss comes in bursts", "no further loss can be added", "link.loss"
        )
    return link(path, loss=1.0 - (1.0 - own) * (1.0 - loss))


def _cov(runs: Sequence[Run]) -> float:
    value = runs[0].summary["flows"][0]["cov"]
    return math.nan if value is None else value


def _p95_s(runs: Sequence[Run]) -> float:
    run = runs[0]
    return metrics.queueing_delay(run.table("queues"), 0, start_s=run.summary["warmup_s"]).p95


# Refill


def _refills(objective: Objective) -> list[Probe]:
    share, lost = objective.refill_share, objective.lost_packets
    until = f"until a flow has {share:g} of the payload that the link can carry, for five bins"

    def at_s(place: Place) -> float:
        return round(EVENT * place.duration_s, 1)

    def loss(who: Subject, place: Place) -> Sequence[Scenario]:
        path = place.scenario(sampled=True)
        assert path.link is not None
        own = path.link.loss or 0.0
        if not isinstance(own, int | float):
            raise ScenarioError("its own loss comes in bursts", "none can be put back", "link.loss")
        ns = round(at_s(place) * 1e9)
        end_ns = ns + math.ceil(lost * 1500 * 8 / rate_bps(path) * 1e9)
        changes = (
            Change(at=f"{ns}ns", link="forward", loss=0.999999),
            Change(at=f"{end_ns}ns", link="forward", loss=own),
        )
        return [who.flow(_scheduled(path, changes), start=START)]

    def outage(who: Subject, place: Place) -> Sequence[Scenario]:
        path = place.scenario(sampled=True)
        begin_s = at_s(place)
        changes = (
            Change(at=f"{begin_s:g}s", link="forward", down=True),
            Change(at=f"{begin_s + objective.outage_s:g}s", link="forward", down=False),
        )
        return [who.flow(_scheduled(path, changes), start=START)]

    def measure(after_s: float) -> Measure:
        def value(runs: Sequence[Run]) -> float:
            run = runs[0]
            since_s = round(EVENT * run.summary["sim_s"], 1) + after_s
            own = run.summary["flows"][0]
            t, _, x = metrics.goodput_matrix(
                run.table("flows"), _bin_s(own["rtt_s"]), start_s=since_s
            )
            full_bps = payload_bps(run, since_s)
            found = metrics.convergence(t, x[0], full_bps, start_s=since_s, tolerance=1.0 - share)
            return found.value

        return value

    return [
        Probe(
            "refill-loss",
            loss,
            (
                Axis(
                    "refill-loss",
                    f"time from the loss of {lost} packets in a row {until}; at most the rest of "
                    "the run",
                    "s",
                    "less",
                    measure(0.0),
                ),
            ),
        ),
        Probe(
            "refill-outage",
            outage,
            (
                Axis(
                    "refill-outage",
                    f"time from the end of an outage of {objective.outage_s:g} s {until}; at most "
                    "the rest of the run",
                    "s",
                    "less",
                    measure(objective.outage_s),
                ),
            ),
        ),
    ]


def _scheduled(path: Scenario, changes: Sequence[Change]) -> Scenario:
    if path.schedule:
        raise ScenarioError("it has a schedule of its own", "none can be added", "schedule")
    return path.with_changes(*changes)


def _bin_s(rtt_s: float) -> float:
    """Bins of an RTT, in tenths of a second as the samples; at least two of them."""
    return max(2, math.ceil(round(rtt_s * 10, 6))) / 10


def rate_bps(path: Scenario) -> float:
    """Rate of the bottleneck; of a trace its mean."""
    brief = replace(path, duration="1s", warmup="0s", sample=None, schedule=())
    (run,) = _core.run_many([_core.Scenario(brief.flow("reno").to_toml())], 1, None, sampled=False)
    assert run is not None
    return float(json.loads(run.summary())["links"][0]["rate_bps"])


# Two flows


def _rtt(ratio: float) -> Probe:
    def build(who: Subject, place: Place) -> Sequence[Scenario]:
        path = who.flow(place.scenario(sampled=False), start=START)
        return [who.flow(path, rtt=f"{round(place.rtt_s / ratio * 1e9)}ns", start=START)]

    def exponent(runs: Sequence[Run]) -> float:
        long, short = runs[0].goodputs
        long_s, short_s = (flow["rtt_s"] for flow in runs[0].summary["flows"])
        return metrics.rtt_exponent(short, long, short_s, long_s)

    what = f"exponent of goodput over 1/RTT; two flows, RTTs 1 to {ratio:g}"
    return Probe("rtt-exponent", build, (Axis("rtt-exponent", what, "1", "near", exponent),))


def _share(other: str) -> Probe:
    def build(who: Subject, place: Place) -> Sequence[Scenario]:
        beside = subject(other)
        return [beside.flow(who.flow(place.scenario(sampled=False), start=START), start=START)]

    what = f"part of the goodput of both that a flow has beside one of {other}"
    axis = Axis(f"share-{other}", what, "1", "near", measures.share_of_first, 0.5)
    return Probe(axis.name, build, (axis,))


def _newcomer(share: float) -> Probe:
    def build(who: Subject, place: Place) -> Sequence[Scenario]:
        begin_s = round(NEWCOMER * place.duration_s, 1)
        first = who.flow(place.scenario(sampled=True), start=START)
        return [who.flow(first, start=f"uniform({begin_s:g}s, {begin_s + 1:g}s)")]

    def value(runs: Sequence[Run]) -> float:
        run = runs[0]
        own = run.summary["flows"][1]
        t, _, x = metrics.goodput_matrix(run.table("flows"), _bin_s(own["rtt_s"]))
        mean = np.mean(x, axis=0)
        found = metrics.time_to_share(t, x[1], mean, start_s=own["start_s"], share=share)
        return found.value

    what = (
        f"time until a second flow of the law has {share:g} of the mean of both, for five bins; at "
        "most the rest of the run"
    )
    return Probe("newcomer", build, (Axis("newcomer", what, "s", "less", value),))


# Short flows


def _short(law: str, load: float) -> Probe:
    def build(who: Subject, place: Place) -> Sequence[Scenario]:
        path = place.scenario(sampled=True)
        short = ShortFlows(load=f"{round(rate_bps(path) * load)}bit/s")
        return [
            long.flow(path, start=START).with_traffic(Traffic(law=law, short_flows=short))
            for long in (who, subject(law))
        ]

    def value(runs: Sequence[Run]) -> float:
        beside, reference = (measures.short_flow_rtts([run]) for run in runs)
        return beside / reference

    what = (
        f"median completion time of short flows of {law} beside a long flow, over that beside one "
        f"of {law}"
    )
    return Probe("short-flows", build, (Axis("short-flows", what, "1", "less", value),))


# Marks


def _marks(kind: Any, buffer: str) -> Probe:
    def build(who: Subject, place: Place) -> Sequence[Scenario]:
        queue = Queue(kind=kind, size=buffer, ecn=None if kind == "dualpi2" else True)
        return [who.flow(link(place.scenario(sampled=True), queue=queue), start=START, ecn=True)]

    where = f"one flow with ECN over {kind} that marks"
    share = f"goodput, of the payload that the link can carry; {where}"
    return Probe(
        f"goodput-{kind}",
        build,
        (
            Axis(f"goodput-{kind}", share, "1", "more", measures.efficiency),
            Axis(
                f"queue-{kind}",
                f"95th percentile of the queue's delay; {where}",
                "s",
                "less",
                _p95_s,
            ),
        ),
    )


def documentation(objective: Objective) -> list[str]:
    """The table of docs/score.md."""
    best = {"more": "more", "less": "less"}
    rows = [
        (f"`{axis.name}`", axis.what, axis.unit, best.get(axis.better, f"{axis.target:g}"))
        for probe in probes(objective)
        for axis in probe.axes
    ]
    return [*markdown(("axis", "definition", "unit", "best"), rows)]
