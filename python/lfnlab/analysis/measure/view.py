"""A stored run through a window of time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lfnlab import metrics
from lfnlab.errors import MetricError
from lfnlab.metrics.loss import episodes, reductions
from lfnlab.metrics.tables import (
    Samples,
    bin_ends,
    capacity_bits,
    goodputs_of,
    link_counter,
    sampled,
)
from lfnlab.results.integrity import tables_of
from lfnlab.results.store import read_text

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from lfnlab.results.runs import Run
    from lfnlab.results.summary import FlowSummary, LinkSummary

#: Columns of table flows that metrics read.
FLOW_COLUMNS = "t_s", "flow", "cwnd_seg", "srtt_s", "rtt_s", "delivered_bytes", "retransmits"


@dataclass(frozen=True)
class Newcomer:
    """The flow that began last, after others, and the goodputs of all from then on."""

    flow: FlowSummary
    t_s: NDArray[np.float64]
    own: NDArray[np.float64]
    others: NDArray[np.float64]
    beside: frozenset[int]
    """Numbers of the others."""

    @property
    def all(self) -> NDArray[np.float64]:
        """Goodputs of all, its own last."""
        return np.vstack((self.others, self.own))


@dataclass(frozen=True)
class View:
    """A stored run through a window of time.

    Args:
        run: the run.
        start_s: where the window begins; default the end of the warm-up.
        end_s: where it ends; default the last sample.
        window_s: the time scale of metrics that have one; default those of the field that fit.
        base: for the impact on standard TCP: the run in which all flows were standard; for harm:
            that of the harmed flows alone.
        by: properties whose values make a group of flows, see :meth:`lfnlab.Results.by`.
    """

    run: Run
    start_s: float
    end_s: float | None = None
    window_s: float | None = None
    base: Run | None = None
    by: tuple[str, ...] = ("law",)

    def named(self, flow: FlowSummary) -> str:
        """The group of a flow in words: its values of ``by``."""
        place = self._places[flow["id"]]
        return ", ".join(self.run.properties[key][place] for key in self.by)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {flow["id"]: place for place, flow in enumerate(self.run.summary["flows"])}

    @cached_property
    def flow_table(self) -> pl.DataFrame:
        """Table flows, flow after flow: what is asked of one flow is then a slice."""
        table = self.run.table("flows", FLOW_COLUMNS)
        numbers = table["flow"].to_numpy()
        # Numbers of 16 bits are sorted in a time that grows with their count alone.
        short = numbers.size and int(numbers.max()) < 1 << 16
        return table[np.argsort(numbers.astype(np.uint16) if short else numbers, kind="stable")]

    @cached_property
    def queue_table(self) -> pl.DataFrame:
        """Table queues."""
        return self.run.table("queues")

    @cached_property
    def event_table(self) -> pl.DataFrame:
        """Table events."""
        return self.run.table("events")

    @cached_property
    def _flow_parts(self) -> dict[int, pl.DataFrame]:
        return metrics.by_flow(self.flow_table)

    @cached_property
    def _delivered_parts(self) -> dict[int, pl.DataFrame]:
        return metrics.by_flow(self._delivered)

    @property
    def last_s(self) -> float:
        """End of the window."""
        return float(self.run.summary["sim_s"]) if self.end_s is None else self.end_s

    @cached_property
    def goodputs(self) -> dict[int, float]:
        """Of the flows that live in the window, in bit/s."""
        table = self._delivered
        if not table.height or float(np.max(table["t_s"].to_numpy())) <= self.start_s:
            return {}
        found = metrics.goodput(table, start_s=self.start_s, end_s=self.end_s)
        return {flow: x for flow, x in found.items() if not math.isnan(x)}

    @cached_property
    def _delivered(self) -> pl.DataFrame:
        """Bytes that flows had delivered: at their samples, and where they begin and complete."""
        import polars as pl

        names = "flow", "t_s", "delivered_bytes"
        columns = tuple(self.flow_table[name].to_numpy() for name in names)
        _, t, delivered = columns
        warmup_s = self.run.summary["warmup_s"]
        places, rows = [], []
        for flow in sorted(self.run.summary["flows"], key=lambda flow: flow["id"]):
            begin, end = self._rows(flow["id"], flow["id"])
            start_s, ended_s = flow["start_s"], _ended_s(flow)
            ends = [(start_s, 0)] if begin < end or ended_s is not None else []
            if ended_s is not None:
                warm = delivered[begin:end][t[begin:end] <= warmup_s]
                before = int(warm[-1]) if warm.size else 0
                ends.append((ended_s, before + flow["delivered_bytes"]))
            # Of two rows at one time the first counts, and a sample before others.
            for at_s, count in dict(reversed(ends)).items():
                place = begin + int(np.searchsorted(t[begin:end], at_s))
                if place == end or t[place] != at_s:
                    places.append(place)
                    rows.append((flow["id"], at_s, count))
        more = zip(*rows, strict=True) if rows else [(), (), ()]
        added = zip(names, columns, more, strict=True)
        return pl.DataFrame({name: np.insert(own, places, news) for name, own, news in added})

    @cached_property
    def flows(self) -> list[FlowSummary]:
        """The flows under test that live in the window."""
        return [flow for flow in self.run.summary["flows"] if flow["id"] in self.goodputs]

    def transfers(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Transfers that began and ended in the window, by the name of their model of traffic."""
        models = self.run.summary.get("traffic", [])
        if not models or "transfers" not in tables_of(self.run.path):
            return
        table = self.run.table("transfers")
        begun_s = table["t_s"] - table["duration_s"]
        table = table.filter((begun_s >= self.start_s) & (table["t_s"] <= self.last_s))
        # The background, if there is one, has number 0.
        first = int(self.run.summary["background"] is not None)
        for number, model in enumerate(models, first):
            yield str(model["name"]), table.filter(table["traffic"] == number)

    def lives(self, flows: Sequence[FlowSummary]) -> tuple[pl.DataFrame, dict[str, float]]:
        """Table flows of these flows alone, and what of the window they live in."""
        ids = sorted(flow["id"] for flow in flows)
        if len(ids) == 1:
            own = self._flow_parts[ids[0]]
        else:
            begin, end = self._rows(ids[0], ids[-1])
            own = self.flow_table.slice(begin, end - begin)
            if len(ids) <= ids[-1] - ids[0]:
                own = own.filter(np.isin(own["flow"].to_numpy(), ids))
        last_s = float(np.max(own["t_s"].to_numpy()))
        return own, {"start_s": self.start_s, "end_s": min(self.last_s, last_s)}

    def samples(self, flows: Sequence[FlowSummary]) -> tuple[Samples, dict[str, float]]:
        """The same for metrics in bins."""
        ids = tuple(flow["id"] for flow in flows)
        if ids not in self._samples:
            own, window = self.lives(flows)
            whole = own.height == self.flow_table.height
            self._samples[ids] = self.every_sample if whole else Samples(own), window
        return self._samples[ids]

    @cached_property
    def _samples(self) -> dict[tuple[int, ...], tuple[Samples, dict[str, float]]]:
        return {}

    @cached_property
    def every_sample(self) -> Samples:
        """Table flows of all flows, for metrics in bins."""
        return Samples(self.flow_table)

    def _rows(self, first: int, last: int) -> tuple[int, int]:
        """Where table flows has the rows of the flows from one to another."""
        numbers = self.flow_table["flow"].to_numpy()
        ids = np.array([first, last], numbers.dtype)  # of its type, or all of it is converted
        begin, end = numbers.searchsorted(ids[:1]), numbers.searchsorted(ids[1:], side="right")
        return int(begin[0]), int(end[0])

    def carried(self, link: str, flow: FlowSummary) -> float:
        """Goodput of a flow while its data pass a link, over the whole window, in bit/s."""
        key = link, flow["id"]
        if key not in self._carried:
            self._carried[key] = self._carry(link, flow)
        return self._carried[key]

    @cached_property
    def _carried(self) -> dict[tuple[str, int], float]:
        return {}

    def _carry(self, link: str, flow: FlowSummary) -> float:
        bits, own = 0.0, self._delivered_parts[flow["id"]]
        t, delivered = own["t_s"].to_numpy(), own["delivered_bytes"].to_numpy()
        for start_s, end_s in self._spells(link, flow):
            bin_s = end_s - start_s
            (x,) = goodputs_of(t, delivered, bin_ends(bin_s, start_s, end_s), bin_s, start_s)
            bits += float(x) * bin_s
        return bits / (self.last_s - self.start_s)

    def _spells(self, link: str, flow: FlowSummary) -> list[tuple[float, float]]:
        """When in the window a flow's data take a route over a link."""
        routes = flow["routes"]
        ends = [*(route["from_s"] for route in routes[1:]), math.inf]
        spells = [
            (max(self.start_s, route["from_s"]), min(self.last_s, end))
            for route, end in zip(routes, ends, strict=True)
            if link in route["links"]
        ]
        return [(start, end) for start, end in spells if start < end]

    def by_law(self) -> Iterator[tuple[str, list[FlowSummary]]]:
        """Flows by law, or in the groups of ``by``, in the order of the flows."""
        groups: dict[str, list[FlowSummary]] = {}
        for flow in self.flows:
            groups.setdefault(self.named(flow), []).append(flow)
        yield from groups.items()

    def groups(self) -> Iterator[tuple[str, list[FlowSummary]]]:
        """Each law's flows where it has several, and all flows where there are several laws."""
        laws = list(self.by_law())
        yield from ((law, flows) for law, flows in laws if len(flows) > 1)
        if len(laws) > 1:
            yield "all flows", self.flows

    @cached_property
    def newcomer(self) -> Newcomer | None:
        """The flow that began last; none where all began at once, or it lives in no whole bin."""
        last = max(self.flows, key=lambda flow: (flow["start_s"], flow["id"]), default=None)
        if last is None or last["start_s"] <= min(flow["start_s"] for flow in self.flows):
            return None
        # A second, or the next multiple of the sampling grid.
        bin_s = self.window_s or self.grid_s * math.ceil(1.0 / self.grid_s - 1e-6)
        own, window = self.lives([last])
        began_s = float(np.min(own["t_s"].to_numpy()))
        if self.window_s is None and window["end_s"] - began_s < bin_s:
            return None
        t, numbers, x = metrics.goodput_matrix(
            self.every_sample, bin_s, start_s=began_s, end_s=window["end_s"]
        )
        others = ~np.all(np.isnan(x), axis=1)
        others[numbers.index(last["id"])] = False
        beside = frozenset(flow for flow, lives in zip(numbers, others, strict=True) if lives)
        return Newcomer(last, t, x[numbers.index(last["id"])], x[others], beside)

    def links(self) -> Iterator[tuple[int, LinkSummary]]:
        """Links that were sampled: their number in table queues, and their summary."""
        if not self.queue_table.height:
            raise MetricError("table queues has no samples: the scenario says sample = off")
        sampled = set(self.queue_table["link"].unique())
        for number, link in enumerate(self.run.summary["links"]):
            if number in sampled:
                yield number, link

    def loaded_links(self) -> Iterator[tuple[LinkSummary, list[FlowSummary]]]:
        """Links that carry data of flows under test in the window, with these flows."""
        for _, link in self.links():
            if flows := [flow for flow in self.flows if self._spells(link["id"], flow)]:
                yield link, flows

    def rate(self, link: LinkSummary) -> float:
        """Mean rate of a link in the window, in bit/s: what it could send over the time."""
        number, window = self.run.summary["links"].index(link), (self.start_s, self.end_s)
        t, sent = link_counter(self.queue_table, "sent_bytes", number, *window)
        most = capacity_bits(self.queue_table, number, self.rates(link), *window)
        return max(most, 8.0 * float(sent[-1] - sent[0])) / float(t[-1] - t[0])

    def rates(self, link: LinkSummary) -> list[tuple[float, float]]:
        """A link's rates, each after the second from which it holds."""
        if self._traces_uncounted:
            raise MetricError(
                "stored by a version that did not count the opportunities of a trace; run it again"
            )
        return [(rate["from_s"], rate["rate_bps"]) for rate in link["rates"]]

    @cached_property
    def _traces_uncounted(self) -> bool:
        text = read_text(self.run.path / "scenario.toml")
        has_trace = re.search(r"^\s*trace\s*=", text, re.MULTILINE) is not None
        return has_trace and not sampled(self.queue_table, "capacity_bytes")

    @cached_property
    def sent(self) -> dict[int, tuple[float, float]]:
        """Segments that each flow sent in the window, and how many of them again."""
        whole = self.start_s == 0 and self.end_s in (None, self.run.summary["sim_s"])
        # Linux's TCP does not tell how many it sent.
        if whole and all(flow["sent"] is not None for flow in self.flows):
            return {flow["id"]: (flow["sent"], flow["retransmits"]) for flow in self.flows}
        payloads = {flow["id"]: flow["segment_bytes"] for flow in self.flows}
        counts = {
            payload: metrics.segments_sent(
                self.flow_table, payload, start_s=self.start_s, end_s=self.end_s
            )
            for payload in set(payloads.values())
        }
        return {number: counts[payload][number] for number, payload in payloads.items()}

    @cached_property
    def grid_s(self) -> float:
        """Distance of the samples."""
        return metrics.sampling_s(self.queue_table)

    def loss_events(self, flow: FlowSummary) -> int:
        """Of a flow in the window."""
        return self._loss_events[flow["id"]]

    @cached_property
    def _loss_events(self) -> dict[int, int]:
        events = reductions(self.event_table, self.start_s, self.last_s)
        return {
            flow["id"]: episodes(events.get(flow["id"], ()), flow["rtt_s"]) for flow in self.flows
        }

    def scales(
        self, usual: Sequence[float], least: int, window: Mapping[str, float] | None = None
    ) -> list[float]:
        """The requested time scale, or those of ``usual`` that fit ``least`` times."""
        if self.window_s is not None:
            return [self.window_s]
        window = window or {"start_s": self.start_s, "end_s": self.last_s}
        length_s = window["end_s"] - window["start_s"]
        return [
            scale_s
            for scale_s in usual
            if round(scale_s / self.grid_s) >= 1
            and abs(scale_s / self.grid_s - round(scale_s / self.grid_s)) < 1e-3
            and least * scale_s <= length_s * (1 + 1e-9)
        ]


def _ended_s(flow: FlowSummary) -> float | None:
    """When a flow ended; of a run stored before this was in summaries, when it completed."""
    if "ended_s" in flow or flow["completion_s"] is None:
        return flow.get("ended_s")
    return flow["start_s"] + flow["completion_s"]
