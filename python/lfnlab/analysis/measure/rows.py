"""Every metric by its name, and the rows that it has of a run: what it is applied to."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from lfnlab import metrics
from lfnlab.analysis.capacity import wire_bytes
from lfnlab.analysis.measure.view import View
from lfnlab.errors import MetricError
from lfnlab.metrics.tables import bin_ends

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lfnlab.metrics import FirstPassage, Spread
    from lfnlab.results.summary import FlowSummary, Frames

#: Time scales of Jain's index and of the coefficient of variation, where none is asked for.
JAIN_WINDOWS_S = (1.0, 10.0, 60.0)
COV_BINS_S = (0.1, 1.0, 10.0)


class Row(NamedTuple):
    """One value: of a law, a link, two laws or all flows; ``detail`` says which one."""

    of: str
    detail: str
    value: float | FirstPassage


def _of_goodputs(metric: Callable[[list[float]], float]) -> Callable[[View], Iterator[Row]]:
    """The rows of a metric of the goodputs of several flows."""

    def rows(view: View) -> Iterator[Row]:
        for of, flows in view.groups():
            yield Row(of, "whole", metric([view.goodputs[flow["id"]] for flow in flows]))

    return rows


def _goodput(view: View) -> Iterator[Row]:
    for law, flows in view.by_law():
        yield Row(law, "sum of flows", sum(view.goodputs[flow["id"]] for flow in flows))
        for rtt_s, mean in _mean_by_rtt(view, flows).items():
            yield Row(law, f"mean flow, RTT {_ms(rtt_s)}", mean)


def _utilization(view: View) -> Iterator[Row]:
    for number, link in view.links():
        used = metrics.utilization(
            view.queue_table, number, view.rates(link), start_s=view.start_s, end_s=view.end_s
        )
        yield Row(link["id"], "bits sent", used)


def _normalized_goodput(view: View) -> Iterator[Row]:
    for link, flows in view.loaded_links():
        if (rate_bps := view.rate(link)) > 0:
            carried = [view.carried(link["id"], flow) for flow in flows]
            yield Row(link["id"], "goodput", metrics.normalized_goodput(carried, rate_bps))


def _efficiency(view: View) -> Iterator[Row]:
    for link, flows in view.loaded_links():
        sizes = {(flow["segment_bytes"], wire_bytes(view.run, link, flow)) for flow in flows}
        if len(sizes) == 1 and (rate_bps := view.rate(link)) > 0:
            payload, wire = sizes.pop()
            used = metrics.efficiency(
                [view.carried(link["id"], flow) for flow in flows],
                rate_bps,
                payload_bytes=payload,
                wire_bytes=wire,
            )
            yield Row(link["id"], "goodput", used)


def _jain_over_time(view: View) -> Iterator[Row]:
    for of, flows in view.groups():
        samples, window = view.samples(flows)
        for window_s in view.scales(JAIN_WINDOWS_S, 1, window):
            found = metrics.jain_over_time(samples, window_s, **window)
            yield Row(of, f"mean over {window_s:g} s", _mean(found["jain"]))


def _cov(view: View) -> Iterator[Row]:
    for law, flows in view.by_law():
        samples, window = view.samples(flows)
        for bin_s in view.scales(COV_BINS_S, 2, window):
            each, together = metrics.cov_over_time(samples, bin_s, **window)
            yield Row(law, f"mean flow, {bin_s:g} s", _mean(each.values()))
            if len(flows) > 1:
                yield Row(law, f"sum of flows, {bin_s:g} s", together)


def _smoothness(view: View) -> Iterator[Row]:
    for law, flows in view.by_law():
        own, window = view.lives(flows)
        yield Row(law, "largest of flows", max(metrics.smoothness(own, **window).values()))


def _rtt_fairness(view: View) -> Iterator[Row]:
    for law, (rtt_a, rtt_b), (a, b) in _rtt_pairs(view):
        yield Row(law, f"RTT {_ms(rtt_a)} to {_ms(rtt_b)}", metrics.rtt_fairness(a, b))


def _rtt_exponent(view: View) -> Iterator[Row]:
    for law, (rtt_a, rtt_b), (a, b) in _rtt_pairs(view):
        theta = metrics.rtt_exponent(a, b, rtt_a, rtt_b)
        yield Row(law, f"RTT {_ms(rtt_a)} to {_ms(rtt_b)}", theta)


def _convergence(view: View) -> Iterator[Row]:
    if (new := view.newcomer) is None:
        return
    shares = [
        (view.rate(link) / n, n)
        for link, flows in view.loaded_links()
        if new.flow in flows and (n := 1 + sum(flow["id"] in new.beside for flow in flows))
    ]
    fair: dict[str, ArrayLike] = {f"C/{n}": share for share, n in sorted(shares)[:1]}
    fair["mean of flows"] = np.nanmean(new.all, axis=0)
    for name, share in fair.items():
        for tolerance in (0.0, 0.1):
            reached = metrics.convergence(
                new.t_s, new.own, share, start_s=new.flow["start_s"], tolerance=tolerance
            )
            yield Row(
                view.named(new.flow), f"last flow to {name}, tolerance {tolerance:g}", reached
            )


def _time_to_share(view: View) -> Iterator[Row]:
    """Of each group its slowest flow of those that live long enough to hold a share."""
    bin_s = view.window_s or max(view.scales((1.0,), 1), default=0.0)
    if not bin_s or len(view.flows) < 2:
        return
    _, window = view.lives(view.flows)
    if bin_s > window["end_s"]:
        return
    t, numbers, x = metrics.goodput_matrix(view.every_sample, bin_s, end_s=window["end_s"])
    there = ~np.isnan(x)
    mean = np.nansum(x, axis=0) / np.maximum(there.sum(axis=0), 1)
    lives = {
        flow: (t[own], row[own], mean[own])
        for flow, row, own in zip(numbers, x, there, strict=True)
        if own.sum() >= metrics.HOLD_BINS
    }
    for of, flows in view.by_law():
        slowest = max(
            (
                metrics.time_to_share(*lives[flow["id"]], start_s=flow["start_s"])
                for flow in flows
                if flow["id"] in lives
            ),
            key=lambda reached: (reached.censored, reached.value),
            default=None,
        )
        if slowest is not None:
            yield Row(of, f"slowest flow, to 80 % of the mean flow, {bin_s:g} s", slowest)


def _delta_fair(view: View) -> Iterator[Row]:
    new = view.newcomer
    if new is not None and len(new.others) == 1:
        start_s = new.flow["start_s"]
        reached = metrics.delta_fair(new.t_s, new.own, new.others[0], start_s=start_s)
        yield Row(view.named(new.flow), "last flow, delta 0.1", reached)


def _epsilon_fair(view: View) -> Iterator[Row]:
    if (new := view.newcomer) is not None:
        start_s, rtt_s = new.flow["start_s"], new.flow["rtt_s"]
        reached = metrics.epsilon_fair(new.t_s, new.all, rtt_s, start_s=start_s)
        yield Row(view.named(new.flow), "last flow, epsilon 0.1", reached)


def _ramp_up(view: View) -> Iterator[Row]:
    if (new := view.newcomer) is not None:
        own, _ = view.lives([new.flow])
        times = metrics.ramp_up(own, new.flow["id"], new.flow["start_s"])
        for n, seconds in times.items():
            yield Row(view.named(new.flow), f"last flow, byte 1500e{n}", seconds)


def _loss_rate(view: View) -> Iterator[Row]:
    for number, link in view.links():
        lost = metrics.loss_rate(view.queue_table, number, start_s=view.start_s, end_s=view.end_s)
        yield Row(link["id"], "drops", lost)


def _loss_events(view: View) -> Iterator[Row]:
    for law, flows in view.by_law():
        yield Row(law, "mean flow", _mean([view.loss_events(flow) for flow in flows]))


def _loss_event_rate(view: View) -> Iterator[Row]:
    for law, flows in view.by_law():
        events = sum(view.loss_events(flow) for flow in flows)
        sent = sum(view.sent[flow["id"]][0] for flow in flows)
        yield Row(law, "all its flows", metrics.loss_event_rate(events, sent))


def _retransmission_ratio(view: View) -> Iterator[Row]:
    for law, flows in view.by_law():
        yield Row(law, "all its flows", _sent_again(view, flows))
    summary = view.run.summary
    if background := summary["background"]:
        sent = summary["conservation"]["sent"] - sum(flow["sent"] for flow in summary["flows"])
        again = metrics.retransmission_ratio(sent, background["retransmits"])
        yield Row("background", "whole run", again)


def _loss_bursts(view: View) -> Iterator[Row]:
    gap_s = max((flow["rtt_s"] for flow in view.flows), default=0.0)
    for number, link in view.links():
        bursts = metrics.loss_bursts(
            view.queue_table, number, gap_s, start_s=view.start_s, end_s=view.end_s
        )
        yield from _spread(link["id"], metrics.spread(bursts["drops"]), "drops an episode")


def _phase_locked(view: View) -> Iterator[Row]:
    for law, flows in view.by_law():
        routes = [" ".join(link for r in flow["routes"] for link in r["links"]) for flow in flows]
        for route in dict.fromkeys(routes):
            together = [flow for flow, own in zip(flows, routes, strict=True) if own == route]
            if len(together) > 1:
                sent, again = zip(*(view.sent[flow["id"]] for flow in together), strict=True)
                locked = metrics.phase_locked(again, sent)
                yield Row(law, f"flows locked on {route}", float(len(locked)))


def _reno_ratio(view: View) -> Iterator[Row]:
    for law, flows in view.by_law():
        ratios = []
        for flow in flows:
            own, window = view.lives([flow])
            t = own["t_s"].to_numpy()
            inside = (t >= window["start_s"]) & (t <= window["end_s"])
            rtts = own["srtt_s"].to_numpy()[inside]
            loss = metrics.loss_event_rate(view.loss_events(flow), view.sent[flow["id"]][0])
            if loss > 0 and np.any(rtts > 0):
                rtt_s, payload = float(np.mean(rtts[rtts > 0])), flow["segment_bytes"]
                ratios.append(metrics.reno_ratio(view.goodputs[flow["id"]], rtt_s, loss, payload))
        yield Row(law, "mean flow", _mean(ratios))


def _friendliness(view: View) -> Iterator[Row]:
    standard = [flow for flow in view.flows if _base_name(flow["law"]) == "reno"]
    for law, flows in view.by_law():
        for rtt_s in sorted({flow["rtt_s"] for flow in flows}):
            new = [view.goodputs[flow["id"]] for flow in flows if flow["rtt_s"] == rtt_s]
            tcp = [view.goodputs[flow["id"]] for flow in standard if flow["rtt_s"] == rtt_s]
            if tcp and _base_name(law) != "reno":
                yield Row(law, f"to reno, RTT {_ms(rtt_s)}", metrics.friendliness(new, tcp))


def _camps(view: View) -> Iterator[Row]:
    if view.base is None:
        return
    base = View(view.base, view.start_s, view.end_s)
    pairs = list(zip(view.run.summary["flows"], base.run.summary["flows"], strict=False))
    changed = [mix["law"] != standard["law"] for mix, standard in pairs]
    if len(base.run.summary["flows"]) != len(view.run.summary["flows"]):
        raise MetricError(
            "has another number of flows; allowed: the same flows, all standard", "base"
        )
    if all(changed) or not any(changed):
        raise MetricError("the laws must differ in one camp, not in all flows or none", "base")

    def camp(run: View, *, b: bool) -> list[float]:
        return [goodput for flow, goodput in run.goodputs.items() if changed[flow] == b]

    impact = metrics.camps(
        base_a=camp(base, b=False),
        base_b=camp(base, b=True),
        mix_a=camp(view, b=False),
        mix_b=camp(view, b=True),
    )
    yield Row(pairs[changed.index(True)][0]["law"], "G, what camp B gains", impact.gain)
    yield Row(pairs[changed.index(False)][0]["law"], "L, what camp A keeps", impact.loss)


def _harm(view: View) -> Iterator[Row]:
    """To the flows that the base has alone, where these are some of the run's."""
    if view.base is None:
        return
    base = View(view.base, view.start_s, view.end_s)
    laws = {flow["law"] for flow in base.flows}
    if len(laws) != 1 or len(base.flows) >= len(view.flows):
        return
    law = laws.pop()
    beside = [flow for flow in view.flows if flow["law"] == law][: len(base.flows)]
    if len(beside) < len(base.flows):
        return
    for name, of, better in _HARMS:
        alone_and_beside = of(base, base.flows), of(view, beside)
        yield Row(law, name, metrics.harm(*alone_and_beside, better))


def _mean_rate(view: View, flows: Sequence[FlowSummary]) -> float:
    return _mean(view.goodputs[flow["id"]] for flow in flows)


def _mean_excess(view: View, flows: Sequence[FlowSummary]) -> float:
    return _mean(_excess(view, flow).mean for flow in flows)


def _sent_again(view: View, flows: Sequence[FlowSummary]) -> float:
    sent, again = (sum(view.sent[flow["id"]][i] for flow in flows) for i in (0, 1))
    return metrics.retransmission_ratio(sent, again)


_HARMS: tuple[tuple[str, Callable[..., float], Literal["more", "less"]], ...] = (
    ("rate", _mean_rate, "more"),
    ("delay", _mean_excess, "less"),
    ("loss", _sent_again, "less"),
)


def _starvation(view: View) -> Iterator[Row]:
    bin_s = view.window_s or max(view.scales((1.0,), 1), default=0.0)
    shares = [
        (view.rate(link) / len(flows), flows)
        for link, flows in view.loaded_links()
        if len(flows) > 1
    ]
    if not (bin_s and shares):
        return
    for law, flows in view.by_law():
        starved: list[float] = []
        samples, together = view.samples(flows)
        if bin_s <= together["end_s"] - together["start_s"]:
            _, numbers, x = metrics.goodput_matrix(samples, bin_s, **together)
            bins = dict(zip(numbers, x, strict=True))
            for flow in flows:
                _, window = view.lives([flow])
                fair = min((share for share, on in shares if flow in on), default=math.nan)
                if bin_s <= window["end_s"] - window["start_s"]:
                    count = bin_ends(bin_s, **window).size
                    starved.append(metrics.starvation(bins[flow["id"]][:count], fair))
        yield Row(law, f"mean flow, {bin_s:g} s", _mean(starved))


def _excess(view: View, flow: FlowSummary) -> Spread:
    own, window = view.lives([flow])
    return metrics.rtt_excess(own, flow["id"], flow["rtt_s"], **window)


def _queueing_delay(view: View) -> Iterator[Row]:
    for number, link in view.links():
        delay = metrics.queueing_delay(
            view.queue_table, number, view.rates(link), start_s=view.start_s, end_s=view.end_s
        )
        yield from _spread(link["id"], delay)


def _queue_empty(view: View) -> Iterator[Row]:
    for number, link in view.links():
        empty = metrics.queue_empty(
            view.queue_table, number, start_s=view.start_s, end_s=view.end_s
        )
        yield Row(link["id"], "of the time", empty)


def _rtt_excess(view: View) -> Iterator[Row]:
    for law, flows in view.by_law():
        spreads = [_excess(view, flow) for flow in flows]
        for name in ("mean", "p50", "p95", "p99", "max"):
            yield Row(law, f"{name}, mean flow", _mean([getattr(s, name) for s in spreads]))


def _completion(view: View) -> Iterator[Row]:
    for law, flows in _sized(view):
        found = [(flow["delivered_bytes"], flow["completion_s"]) for flow in flows]
        sizes = [size_bytes for size_bytes, seconds in found if seconds is not None]
        times = [seconds for _, seconds in found if seconds is not None]
        yield from _by_decade(law, sizes, times)
    for model, own in view.transfers():
        yield from _by_decade(model, own["bytes"].to_numpy(), own["duration_s"].to_numpy())


def _by_decade(of: str, size_bytes: ArrayLike, seconds: ArrayLike) -> Iterator[Row]:
    for decade, found in metrics.completion(size_bytes, seconds).items():
        yield from _spread(of, found, f"1e{decade} to 1e{decade + 1} B")


def _unfinished(view: View) -> Iterator[Row]:
    for law, flows in _sized(view):
        yield Row(law, "flows", metrics.unfinished([flow["completion_s"] for flow in flows]))


def _frames_in_time(view: View) -> Iterator[Row]:
    """Of the whole run from its warm-up on: the engine counts frames, and no table has them."""
    summary = view.run.summary
    if (view.start_s, view.last_s) != (summary["warmup_s"], summary["sim_s"]):
        return
    counts: dict[str, list[Frames]] = {}
    for name, of in [
        *((flow["law"], flow.get("frames")) for flow in summary["flows"]),
        *((source["name"], source.get("frames")) for source in summary.get("udp", ())),
    ]:
        if of is not None:
            counts.setdefault(name, []).append(of)
    for name, found in counts.items():
        due, in_time = (sum(of[key] for of in found) for key in ("due", "in_time"))
        yield Row(name, "frames", metrics.frames_in_time(due, in_time))


def _sized(view: View) -> Iterator[tuple[str, list[FlowSummary]]]:
    """By law the flows with a size that began in the window, so that all their bytes count."""
    every = view.run.summary["flows"]
    for law in dict.fromkeys(map(view.named, every)):
        flows = [
            flow
            for flow in every
            if view.named(flow) == law
            and view.start_s <= flow["start_s"] < view.last_s
            and "size" in view.run.settings[flow["id"]]
        ]
        if flows:
            yield law, flows


def _spread(of: str, found: Spread, what: str = "") -> Iterator[Row]:
    for name in ("mean", "p50", "p95", "p99", "max"):
        yield Row(of, f"{name}, {what}" if what else name, getattr(found, name))


def _mean(values: Iterable[float]) -> float:
    """Of those that are defined."""
    defined = [value for value in values if not math.isnan(value)]
    return float(np.mean(defined)) if defined else math.nan


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:g} ms"


def _base_name(law: str) -> str:
    return law.partition(":")[0]


def _mean_by_rtt(view: View, flows: Sequence[FlowSummary]) -> dict[float, float]:
    """Mean goodput of the flows of each RTT, the shortest first, where there are several."""
    rtts = sorted({flow["rtt_s"] for flow in flows})
    means = {
        rtt_s: _mean(view.goodputs[flow["id"]] for flow in flows if flow["rtt_s"] == rtt_s)
        for rtt_s in rtts
    }
    return means if len(rtts) > 1 else {}


def _rtt_pairs(view: View) -> Iterator[tuple[str, tuple[float, float], tuple[float, float]]]:
    """Each law with flows of several RTTs: shortest and longest, and the mean goodputs there."""
    for law, flows in view.by_law():
        if means := _mean_by_rtt(view, flows):
            shortest, longest = min(means), max(means)
            yield law, (shortest, longest), (means[shortest], means[longest])


# The metrics by name


@dataclass(frozen=True)
class Metric:
    """A metric by its name; the docstring of ``function`` gives formula, unit and source."""

    name: str
    function: Callable[..., Any]
    rows: Callable[[View], Iterable[Row]]
    shown: tuple[str, float] = ("", 1.0)
    """Unit in the printed table, and what a value in the metric's own unit is multiplied by."""
    needs: str = "flows under test"
    """Kind of flow, queue or traffic that a run must contain."""

    @property
    def documentation(self) -> dict[str, str]:
        """Keys meaning (the first line), Formula, Unit, Source: of the docstring."""
        text = inspect.getdoc(self.function) or ""
        sections = re.findall(r"^(Formula|Unit|Source): (.*(?:\n {4}.*)*)", text, re.MULTILINE)
        found = {name: " ".join(said.split()) for name, said in sections}
        return {"meaning": text.partition("\n")[0].rstrip("."), **found}


_RATE, _DELAY, _PERCENT = ("Mbit/s", 1e-6), ("ms", 1e3), ("%", 100.0)
_SEVERAL, _LATER = "several flows", "a flow that begins after others"
METRICS = {
    metric.name: metric
    for metric in (
        Metric("goodput", metrics.goodput, _goodput, _RATE),
        Metric("utilization", metrics.utilization, _utilization, _PERCENT, ""),
        Metric("normalized-goodput", metrics.normalized_goodput, _normalized_goodput, _PERCENT),
        Metric("efficiency", metrics.efficiency, _efficiency, _PERCENT, "packets of one size"),
        Metric("jain", metrics.jain, _of_goodputs(metrics.jain), needs=_SEVERAL),
        Metric("jain-over-time", metrics.jain_over_time, _jain_over_time, needs=_SEVERAL),
        Metric(
            "min-over-max",
            metrics.min_over_max,
            _of_goodputs(metrics.min_over_max),
            needs=_SEVERAL,
        ),
        Metric("cov", metrics.cov_over_time, _cov),
        Metric("smoothness", metrics.smoothness, _smoothness, _PERCENT),
        Metric("rtt-fairness", metrics.rtt_fairness, _rtt_fairness, needs="flows of several RTTs"),
        Metric("rtt-exponent", metrics.rtt_exponent, _rtt_exponent, needs="flows of several RTTs"),
        Metric("convergence", metrics.convergence, _convergence, ("s", 1.0), _LATER),
        Metric("time-to-share", metrics.time_to_share, _time_to_share, ("s", 1.0), _SEVERAL),
        Metric("delta-fair", metrics.delta_fair, _delta_fair, ("s", 1.0), "a flow, then another"),
        Metric("epsilon-fair", metrics.epsilon_fair, _epsilon_fair, ("RTT", 1.0), _LATER),
        Metric("ramp-up", metrics.ramp_up, _ramp_up, ("s", 1.0), _LATER),
        Metric(
            "friendliness",
            metrics.friendliness,
            _friendliness,
            needs="flows of reno beside others of the same RTT",
        ),
        Metric("reno-ratio", metrics.reno_ratio, _reno_ratio, needs="flows that lose"),
        Metric("camps", metrics.camps, _camps, needs="--base, the run with one law for all"),
        Metric("harm", metrics.harm, _harm, needs="--base, the run with some of its flows alone"),
        Metric("starvation", metrics.starvation, _starvation, _PERCENT, _SEVERAL),
        Metric("loss-rate", metrics.loss_rate, _loss_rate, _PERCENT, ""),
        Metric("loss-events", metrics.loss_events, _loss_events),
        Metric("loss-event-rate", metrics.loss_event_rate, _loss_event_rate, _PERCENT),
        Metric("loss-bursts", metrics.loss_bursts, _loss_bursts, ("packets", 1.0), "drops"),
        Metric(
            "retransmission-ratio", metrics.retransmission_ratio, _retransmission_ratio, _PERCENT
        ),
        Metric(
            "phase-locked", metrics.phase_locked, _phase_locked, needs="flows of a law and route"
        ),
        Metric("queueing-delay", metrics.queueing_delay, _queueing_delay, _DELAY, ""),
        Metric("queue-empty", metrics.queue_empty, _queue_empty, _PERCENT, ""),
        Metric("rtt-excess", metrics.rtt_excess, _rtt_excess, _DELAY),
        Metric(
            "completion",
            metrics.completion,
            _completion,
            ("s", 1.0),
            "flows with a size, or models of traffic",
        ),
        Metric("unfinished", metrics.unfinished, _unfinished, _PERCENT, "flows with a size"),
        Metric(
            "frames-in-time",
            metrics.frames_in_time,
            _frames_in_time,
            _PERCENT,
            "deadlines, and the window of the averages",
        ),
    )
}
