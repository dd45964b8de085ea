"""The common TCP evaluation suite (draft-irtf-iccrg-tcpeval-01) as a pack of scenarios.

Topologies, loads, buffers and times are the suite's. It replays tmix traces that cannot be passed
on: connections are drawn in their place (``crates/sim/src/traffic/evaluation_suite.rs``). What the
suite leaves open and is chosen here stands in ``docs/suite.md``, item by item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from lfnlab import statistics
from lfnlab.errors import UsageError
from lfnlab.scenario import (
    Burst,
    NamedLink,
    Queue,
    Reverse,
    Scenario,
    Suite,
    Traffic,
    Udp,
    dumbbell,
    graph,
    parking_lot,
)
from lfnlab.summary import Table, with_interval
from lfnlab.sweep import Case, Factor, Results, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import polars as pl

SCHEMA = 1
TRACES = (
    "traffic: connections drawn from a model; the suite's tmix traces cannot be passed on, so "
    "absolute figures are not those of the draft"
)
WINDOW = "64MB"
"""Receive window of every connection: above each bandwidth-delay product, so the law decides."""
STANDARD = "reno"
"""The suite's standard TCP: NewReno with SACK, without ECN."""
LOADS = (60, 85, 110)


@dataclass(frozen=True)
class Basic:
    """A basic scenario: nodes 1 to 3, router 1, the central link, router 2, nodes 4 to 6.

    The heavy direction is from the right, router 2, to the left. Pairs of values are heavy, light.
    """

    rates_bps: tuple[float, float]
    delay_us: int
    edge_bps: float
    edge_delays_us: tuple[int, ...]
    """One way, of nodes 1 to 6."""
    buffers_s: tuple[float, float]
    times_s: Mapping[int, tuple[float, float]]
    """Warm-up and test by load in percent."""
    light_share: float = 0.5
    """Load of the light direction over that of the heavy one; ours."""


_EDGES_US = (0, 12_000, 25_000, 2_000, 37_000, 75_000)
BASIC: Mapping[str, Basic] = {
    "data-centre": Basic(
        rates_bps=(1e9, 1e9),
        delay_us=0,
        edge_bps=1e9,
        edge_delays_us=(10, 10, 100, 10, 100, 100),
        buffers_s=(0.010, 0.010),
        times_s={60: (63, 69), 85: (19, 328), 110: (8, 663)},
    ),
    "access": Basic(
        rates_bps=(100e6, 100e6),
        delay_us=2_000,
        edge_bps=100e6,
        edge_delays_us=_EDGES_US,
        buffers_s=(0.100, 0.100),
        times_s={60: (84, 479), 85: (179, 829), 110: (34, 1423)},
    ),
    "trans-oceanic": Basic(
        rates_bps=(1e9, 1e9),
        delay_us=65_000,
        edge_bps=1e9,
        edge_delays_us=_EDGES_US,
        buffers_s=(0.100, 0.100),
        times_s={60: (140, 82.5), 85: (64, 252), 110: (82, 326)},
    ),
    "geo-satellite": Basic(
        rates_bps=(40e6, 4e6),
        delay_us=300_000,
        edge_bps=100e6,
        edge_delays_us=_EDGES_US,
        buffers_s=(0.100, 1.000),
        times_s={60: (163, 2513), 85: (230, 2184), 110: (298, 2481)},
        light_share=0.075,
    ),
    "dial-up": Basic(
        rates_bps=(64e3, 64e3),
        delay_us=5_000,
        edge_bps=100e6,
        edge_delays_us=_EDGES_US,
        buffers_s=(1.250, 1.250),
        times_s={60: (280, 168_804), 85: (400, 88_094), 110: (512, 69_891)},
    ),
}


@dataclass(frozen=True)
class Plan:
    """What is asked for: the law under test, and by what times are divided."""

    law: str
    scenarios: Sequence[str]
    loads: Sequence[int]
    shrink: int = 1

    def seconds(self, full_s: float) -> str:
        """A time of the suite as this plan runs it."""
        return _seconds(full_s / self.shrink)


@dataclass(frozen=True)
class Row:
    """What one run, or a pair of runs, says; None where it did not come about."""

    keys: Mapping[str, Factor]
    figures: Mapping[str, float | None]


@dataclass(frozen=True)
class Column:
    """A figure of the rows: its name in JSON (SI units), its heading, and the scale of the cell."""

    name: str
    heading: str
    scale: float = 1.0


@dataclass(frozen=True)
class Experiment:
    """Scenarios of the suite, and what it asks of them."""

    title: str
    quick: int
    """By what ``--quick`` divides all times."""
    cases: Callable[[Plan], list[Case]]
    rows: Callable[[Results], Iterable[Row]]
    columns: tuple[Column, ...]


def plan(
    name: str, law: str, scenarios: str | None = None, loads: str | None = None, quick: bool = False
) -> tuple[Experiment, Plan]:
    """The experiment of this name, and how it is to be run; texts as the command line has them.

    Raises:
        UsageError: naming the option.
    """
    if name != "basic" and (scenarios is not None or loads is not None):
        option = "--load" if scenarios is None else "--scenario"
        raise UsageError(f"{option}: only of the basic scenarios, not of --experiment {name}")
    experiment = EXPERIMENTS[name]
    chosen = _chosen("--scenario", scenarios, BASIC)
    percent = [int(load) for load in _chosen("--load", loads, [str(load) for load in LOADS])]
    return experiment, Plan(law, chosen, percent, experiment.quick if quick else 1)


def _chosen(option: str, text: str | None, allowed: Iterable[str]) -> list[str]:
    known = list(allowed)
    names = known if text is None else [part.strip() for part in text.split(",")]
    for i, name in enumerate(names):
        if name not in known or name in names[:i]:
            raise UsageError(f'{option}: "{name}"; allowed, each once: {", ".join(known)}')
    return names


def notes(asked: Plan, results: Results) -> list[str]:
    """What a reader of the table must know."""
    short = (
        [f"--quick: all times are 1/{asked.shrink} of the suite's; a trial, not its result"]
        if asked.shrink > 1
        else []
    )
    drawn = any("traffic" in run.summary for run in results.runs)
    return [*short, *([TRACES] if drawn else [])]


def measured(experiment: Experiment, results: Results) -> list[dict[str, Any]]:
    """Its keys and the interval of each column over the seeds, a row for each set of keys."""
    groups: dict[tuple[tuple[str, Factor], ...], list[Row]] = {}
    for row in experiment.rows(results):
        groups.setdefault(tuple(row.keys.items()), []).append(row)
    return [
        {
            **dict(keys),
            **{
                column.name: statistics.interval(
                    value for row in rows if (value := row.figures[column.name]) is not None
                )
                for column in experiment.columns
            },
        }
        for keys, rows in groups.items()
    ]


def table(experiment: Experiment, rows: Sequence[Mapping[str, Any]], seeds: int) -> Table:
    """The rows as text; a mean over fewer runs than there are seeds says over how many."""
    names = [column.name for column in experiment.columns]
    keys = tuple(key for key in rows[0] if key not in names)

    def cell(value: statistics.Interval, scale: float) -> str:
        text = with_interval(value, scale)
        return f"{text} ({value.n} of {seeds})" if 0 < value.n < seeds else text

    cells = tuple(
        (
            *(str(row[key]) for key in keys),
            *(cell(row[column.name], column.scale) for column in experiment.columns),
        )
        for row in rows
    )
    return Table((*keys, *(column.heading for column in experiment.columns)), cells, len(keys))


def to_json(
    name: str, asked: Plan, rows: Sequence[Mapping[str, Any]], said: Sequence[str]
) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    return {
        "schema": SCHEMA,
        "suite": "tcpeval",
        "experiment": name,
        "law": asked.law,
        "times_divided_by": asked.shrink,
        "notes": list(said),
        "rows": [
            {
                key: value.to_json() if isinstance(value, statistics.Interval) else value
                for key, value in row.items()
            }
            for row in rows
        ],
    }


# Scenarios --------------------------------------------------------------------------------------


def _seconds(value: float) -> str:
    return f"{value:.9f}".rstrip("0").rstrip(".") + "s"


def _us(value: int) -> str:
    return f"{value}us"


def _bps(value: float) -> str:
    return f"{round(value)}bit/s"


def _packets(rate_bps: float, buffer_s: float) -> str:
    """A buffer given in time, in packets of 1500 bytes as the suite counts it."""
    return f"{round(rate_bps * buffer_s / 8 / 1500)} packets"


def pair_rtts_us(basic: Basic) -> dict[tuple[int, int], int]:
    """Round-trip time of each pair of a node at the right and one at the left."""
    edges = basic.edge_delays_us
    return {
        (right, left): 2 * (edges[left - 1] + basic.delay_us + edges[right - 1])
        for left in (1, 2, 3)
        for right in (4, 5, 6)
    }


def topology(
    basic: Basic, *, duration: str, warmup: str, buffers_s: tuple[float, float] | None = None
) -> Scenario:
    """The dumbbell with its six edges, no traffic yet. Edges are hosts' own: they do not drop."""
    heavy, light = (
        Queue(kind="drop-tail", size=_packets(rate, buffer))
        for rate, buffer in zip(basic.rates_bps, buffers_s or basic.buffers_s, strict=True)
    )
    central = NamedLink(
        name="central",
        from_="r2",
        to="r1",
        rate=_bps(basic.rates_bps[0]),
        delay=_us(basic.delay_us),
        queue=heavy,
        reverse=Reverse(rate=_bps(basic.rates_bps[1]), queue=light),
    )
    edges = (
        NamedLink(
            name=f"edge{node}",
            from_=f"n{node}",
            to="r1" if node <= 3 else "r2",
            rate=_bps(basic.edge_bps),
            delay=_us(delay),
            queue=Queue(kind="drop-tail", size="1000000 packets"),
        )
        for node, delay in enumerate(basic.edge_delays_us, start=1)
    )
    return graph(central, *edges, duration=duration, warmup=warmup, sample="off")


def pairs(basic: Basic, law: str, load: float, camp: str = "") -> list[Traffic]:
    """The nine pairs, which together offer ``load`` times the rate of the heavy direction."""
    rtts = pair_rtts_us(basic)
    heavy_bps = load * basic.rates_bps[0] / len(rtts)
    return [
        Traffic(
            name=f"n{right}-n{left}{camp}",
            law=law,
            from_=f"n{right}",
            to=f"n{left}",
            receive_window=WINDOW,
            suite=Suite(
                load=_bps(heavy_bps),
                reverse_load=_bps(heavy_bps * basic.light_share),
                rtts=(_us(rtt),),
            ),
        )
        for (right, left), rtt in rtts.items()
    ]


def _basic_cases(asked: Plan) -> list[Case]:
    return [
        Case(
            _loaded(asked, BASIC[name], load).with_traffic(
                *pairs(BASIC[name], asked.law, load / 100)
            ),
            {"scenario": name, "load": f"{load}%"},
        )
        for name, load in product(asked.scenarios, asked.loads)
    ]


def _loaded(
    asked: Plan, basic: Basic, load: int, buffers_s: tuple[float, float] | None = None
) -> Scenario:
    """The topology for the suite's warm-up and test at this load."""
    warmup_s, test_s = basic.times_s[load]
    return topology(
        basic,
        duration=asked.seconds(warmup_s + test_s),
        warmup=asked.seconds(warmup_s),
        buffers_s=buffers_s,
    )


def _link_figures(link: Mapping[str, Any]) -> dict[str, float | None]:
    arrivals = link["arrivals"]
    return {
        "utilization": link["utilization"],
        "throughput_bps": link["utilization"] * link["rate_bps"],
        "drop_rate": link["drops"] / arrivals if arrivals else None,
        "mean_queue_s": link["mean_queue_s"],
    }


def _link(run: Run, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(link for link in run.summary["links"] if link["id"] == name)
    return found


def _basic_rows(results: Results) -> Iterable[Row]:
    for run in results.runs:
        for direction, link in (("heavy", "central"), ("light", "central.reverse")):
            yield Row({**run.factors, "direction": direction}, _link_figures(_link(run, link)))


UTILISATION = Column("utilization", "utilisation (%)", 100.0)
THROUGHPUT = Column("throughput_bps", "throughput (Mbit/s)", 1e-6)
DROPS = Column("drop_rate", "drop rate (%)", 100.0)
QUEUE = Column("mean_queue_s", "mean queue (ms)", 1e3)


# Delay and throughput ---------------------------------------------------------------------------

BUFFERS_PERCENT = (10, 20, 50, 100, 200)


def _delay_throughput_cases(asked: Plan) -> list[Case]:
    access = BASIC["access"]
    return [
        Case(
            _loaded(asked, access, 85, (0.1 * percent / 100,) * 2).with_traffic(
                *pairs(access, law, 0.85)
            ),
            {"law": law, "buffer": f"{percent}%"},
        )
        for law, percent in product(dict.fromkeys((asked.law, STANDARD)), BUFFERS_PERCENT)
    ]


def _delay_throughput_rows(results: Results) -> Iterable[Row]:
    for run in results.runs:
        yield Row(run.factors, _link_figures(_link(run, "central")))


# Ramp-up of a new flow, fairness of two flows ---------------------------------------------------

CENTRAL_BPS = (10e6, 1e9)
RAMP_RTTS_MS = ((80, 80), (120, 30), (30, 120))
RAMP_START_S, RAMP_END_S = 100.0, 600.0
DECADES = range(1, 7)


def _ramp_up_cases(asked: Plan) -> list[Case]:
    rtts = tuple(_us(rtt) for rtt in pair_rtts_us(BASIC["access"]).values())
    return [
        Case(
            dumbbell(
                rate=_bps(rate),
                rtt=f"{old}ms",
                buffer=_packets(rate, 0.080),
                duration=asked.seconds(RAMP_END_S),
            )
            .flow(asked.law)
            .flow(
                asked.law,
                rtt=f"{new}ms",
                start=asked.seconds(RAMP_START_S),
                initial_ssthresh="10 packets",
            )
            .with_traffic(
                Traffic(
                    law=asked.law,
                    receive_window=WINDOW,
                    suite=Suite(load=_bps(0.5 * rate), reverse_load=_bps(0.25 * rate), rtts=rtts),
                )
            ),
            {"central": _mbps(rate), "old": f"{old}ms", "new": f"{new}ms"},
        )
        for rate, (old, new) in product(CENTRAL_BPS, RAMP_RTTS_MS)
    ]


def _mbps(rate_bps: float) -> str:
    return f"{rate_bps / 1e6:g}Mbit/s"


def _ramp_up_rows(results: Results) -> Iterable[Row]:
    for run in results.runs:
        start_s = run.summary["flows"][1]["start_s"]
        trace = _trace(run, flow=1)
        yield Row(
            run.factors,
            {
                f"bytes_1500e{n}_s": _first(trace, "delivered_bytes", 1500 * 10**n, start_s)
                for n in DECADES
            },
        )


def _size(decade: int) -> str:
    return f"{1.5 * 10 ** (decade % 3):g} {('kB', 'MB', 'GB')[decade // 3]}"


def _trace(run: Run, flow: int) -> pl.DataFrame:
    """The samples of one flow, in order of time."""
    flows = run.table("flows")
    return flows.filter(flows["flow"] == flow)


def _first(trace: pl.DataFrame, column: str, level: float, since_s: float) -> float | None:
    """Seconds from ``since_s`` to the first sample at which ``column`` has reached ``level``."""
    reached = trace.filter((trace["t_s"] >= since_s) & (trace[column] >= level))
    return float(reached["t_s"][0]) - since_s if reached.height else None


FAIR_RTTS_MS = (10, 20, 40, 80, 160)
FAIR_BUFFERS_PERCENT = (25, 50, 100, 200)
FAIR_END_S = 600.0


def _fairness_cases(asked: Plan) -> list[Case]:
    rtts = [(rtt, rtt) for rtt in FAIR_RTTS_MS] + [(160, rtt) for rtt in FAIR_RTTS_MS[:-1]]
    first = f"uniform(0s, {asked.seconds(0.05 * FAIR_END_S)})"
    later = f"uniform({asked.seconds(0.05 * FAIR_END_S)}, {asked.seconds(0.1 * FAIR_END_S)})"
    return [
        Case(
            dumbbell(
                rate=_bps(rate),
                rtt=f"{a}ms",
                buffer=_packets(rate, 0.1 * percent / 100),
                duration=asked.seconds(FAIR_END_S),
                warmup=asked.seconds(0.1 * FAIR_END_S),
                sample="off",
            )
            .flow(asked.law, start=first)
            .flow(asked.law, rtt=f"{b}ms", start=later),
            {"central": _mbps(rate), "first": f"{a}ms", "later": f"{b}ms", "buffer": f"{percent}%"},
        )
        for rate, (a, b), percent in product(CENTRAL_BPS, rtts, FAIR_BUFFERS_PERCENT)
    ]


def _fairness_rows(results: Results) -> Iterable[Row]:
    for run in results.runs:
        first, later = (flow["goodput_bps"] for flow in run.summary["flows"])
        yield Row(
            run.factors,
            {
                "first_bps": first,
                "later_bps": later,
                "ratio": min(first, later) / max(first, later) if max(first, later) else None,
                **_link_figures(_link(run, "forward")),
            },
        )


# Transients -------------------------------------------------------------------------------------

SAMPLE_S = 0.010
"""Grid of the samples, the scenario's default."""
STEP_S, WATCHED_S = 100.0, 100.0
CROSS_BPS = 75e6
CROSS_STEPS, CROSS_STEP_S = 30, 1.0
TRANSIENT_BPS, TRANSIENT_RTT_S = 100e6, 0.100
BDP_PACKETS = TRANSIENT_BPS * TRANSIENT_RTT_S / 8 / 1500
WINDOW_PERCENT = (60, 80, 90)


def _transients_cases(asked: Plan) -> list[Case]:
    step = asked.seconds(STEP_S)
    stairs = tuple(
        Burst(start=asked.seconds(STEP_S + i * CROSS_STEP_S), rate=_bps(CROSS_BPS * share))
        for i, share in enumerate((i + 1) / CROSS_STEPS for i in range(CROSS_STEPS))
    )
    cross = {
        "75 to 0": (Burst(start="0s", stop=step, rate=_bps(CROSS_BPS)),),
        "0 to 75": (Burst(start=step, rate=_bps(CROSS_BPS)),),
        "0 to 75 by 2.5": _ending_in_turn(stairs),
    }
    base = dumbbell(
        rate=_bps(TRANSIENT_BPS),
        rtt=_seconds(TRANSIENT_RTT_S),
        buffer="1024 packets",
        duration=asked.seconds(STEP_S + WATCHED_S),
    ).flow(asked.law)
    return [
        Case(base.with_udp(Udp(name="cross", bursts=bursts)), {"cross": name})
        for name, bursts in cross.items()
    ]


def _ending_in_turn(bursts: Sequence[Burst]) -> tuple[Burst, ...]:
    """Each burst ends where the next begins; the last does not end."""
    ends = [burst.start for burst in bursts[1:]]
    return (*(replace(b, stop=end) for b, end in zip(bursts, ends, strict=False)), bursts[-1])


def _transients_rows(results: Results) -> Iterable[Row]:
    for run in results.runs:
        figures: dict[str, float | None] = dict.fromkeys(
            (*(f"window_{percent}_s" for percent in WINDOW_PERCENT), "increase_packets"), None
        )
        figures["cross_drops"] = None
        if run.factors["cross"] == "75 to 0":
            since_s = run.summary["sim_s"] * STEP_S / (STEP_S + WATCHED_S)
            trace = _trace(run, flow=0)
            for percent in WINDOW_PERCENT:
                level = BDP_PACKETS * percent / 100
                figures[f"window_{percent}_s"] = _first(trace, "cwnd_seg", level, since_s)
            window = trace.filter(trace["t_s"] >= since_s)["cwnd_seg"].to_numpy()
            per_rtt = round(TRANSIENT_RTT_S / SAMPLE_S)
            figures["increase_packets"] = float((window[per_rtt:] - window[:-per_rtt]).max())
        else:
            figures["cross_drops"] = run.summary["udp"][0]["dropped"]
        yield Row(run.factors, figures)


# Impact on standard TCP -------------------------------------------------------------------------

IMPACT_LOADS = (50, 100)
IMPACT_TIMES_S = (84.0, 479.0)


def _impact_cases(asked: Plan) -> list[Case]:
    access = BASIC["access"]
    warmup_s, test_s = IMPACT_TIMES_S
    base = topology(
        access, duration=asked.seconds(warmup_s + test_s), warmup=asked.seconds(warmup_s)
    )
    return [
        Case(
            base.with_traffic(
                *pairs(access, STANDARD, load / 200, "-a"), *pairs(access, law, load / 200, "-b")
            ),
            {"load": f"{load}%", "b": law},
        )
        for load, law in product(IMPACT_LOADS, (STANDARD, asked.law))
    ]


def _impact_rows(results: Results) -> Iterable[Row]:
    """Each run with the law in camp B beside the one of its load and seed with the standard TCP."""
    runs = list(results.runs)
    seeds = len({run.seed for run in runs})
    for load in range(0, len(runs), 2 * seeds):
        bases, mixes = runs[load : load + seeds], runs[load + seeds : load + 2 * seeds]
        for base, mix in zip(bases, mixes, strict=True):
            before, after = base.table("transfers"), mix.table("transfers")
            quartiles = [before["bytes"].quantile(part / 4) for part in (1, 2, 3)]
            bounds = [0.0, *(float(bound or 0.0) for bound in quartiles), math.inf]
            sizes = {"all": (0.0, math.inf)} | {
                f"quartile {i}": part for i, part in enumerate(pairwise(bounds), start=1)
            }
            for name, size in sizes.items():
                yield Row(
                    {"load": base.factors["load"], "sizes": name},
                    {
                        "gain": _ratio(_rate(after, "b", size), _rate(before, "b", size)),
                        "loss": _ratio(_rate(after, "a", size), _rate(before, "a", size)),
                    },
                )


def _rate(transfers: pl.DataFrame, camp: str, size_bytes: tuple[float, float]) -> float | None:
    """Bytes over durations, in bit/s, of the transfers of a camp in a range of sizes."""
    count = len(pair_rtts_us(BASIC["access"]))
    low, high = size_bytes
    found = transfers.filter(
        (transfers["traffic"] // count == "ab".index(camp))
        & (transfers["bytes"] > low)
        & (transfers["bytes"] <= high)
    )
    return _ratio(8.0 * float(found["bytes"].sum()), float(found["duration_s"].sum()))


def _ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


# Parking lot ------------------------------------------------------------------------------------

HOPS, HOP_BPS = 3, 100e6
LOT_LOADS = (60, 80, 100)
LOT_TIMES_S = (60.0, 300.0)


def _parking_lot_cases(asked: Plan) -> list[Case]:
    warmup_s, test_s = LOT_TIMES_S
    base = parking_lot(
        hops=HOPS,
        rate=_bps(HOP_BPS),
        delay="10ms",
        buffer=_packets(HOP_BPS, 0.100),
        duration=asked.seconds(warmup_s + test_s),
        warmup=asked.seconds(warmup_s),
        sample="off",
    )
    routes = {"all": (1, HOPS + 1)} | {f"hop{k}": (k, k + 1) for k in range(1, HOPS + 1)}
    return [
        Case(
            base.with_traffic(
                *(
                    Traffic(
                        name=name,
                        law=asked.law,
                        from_=start,
                        to=end,
                        receive_window=WINDOW,
                        suite=Suite(
                            load=_bps(HOP_BPS * load / 200),
                            reverse_load=_bps(HOP_BPS * load / 400),
                            rtts=("60ms",),
                        ),
                    )
                    for name, (start, end) in routes.items()
                )
            ),
            {"load": f"{load}%"},
        )
        for load in LOT_LOADS
    ]


def _parking_lot_rows(results: Results) -> Iterable[Row]:
    for run in results.runs:
        across, *single = (traffic["goodput_bps"][0] for traffic in run.summary["traffic"])
        hops = [_link_figures(_link(run, f"hop{k}")) for k in range(1, HOPS + 1)]
        drops = [drop for hop in hops if (drop := hop["drop_rate"]) is not None]
        yield Row(
            run.factors,
            {
                "multi_hop_bps": across,
                "single_hop_bps": statistics.interval(single).mean,
                "drop_rate": statistics.interval(drops).mean,
            },
        )


EXPERIMENTS: Mapping[str, Experiment] = {
    "basic": Experiment(
        "basic scenarios", 20, _basic_cases, _basic_rows, (UTILISATION, DROPS, QUEUE)
    ),
    "delay-throughput": Experiment(
        "access at 85 %, buffers in percent of 100 ms",
        20,
        _delay_throughput_cases,
        _delay_throughput_rows,
        (THROUGHPUT, DROPS, QUEUE),
    ),
    "ramp-up": Experiment(
        "a new flow beside an old one, without slow start: seconds until so much has arrived",
        5,
        _ramp_up_cases,
        _ramp_up_rows,
        tuple(Column(f"bytes_1500e{n}_s", f"{_size(n)} (s)") for n in DECADES),
    ),
    "transients": Experiment(
        "one flow, 100 Mbit/s, 100 ms; UDP traffic in Mbit/s steps",
        5,
        _transients_cases,
        _transients_rows,
        (
            *(Column(f"window_{p}_s", f"to {p} % BDP (s)") for p in WINDOW_PERCENT),
            Column("increase_packets", "most per RTT (packets)"),
            Column("cross_drops", "UDP drops (packets)"),
        ),
    ),
    "impact": Experiment(
        "access; rate of transfers, camp B and camp A (standard), over those with both standard",
        20,
        _impact_cases,
        _impact_rows,
        (Column("gain", "G, of B"), Column("loss", "L, of A")),
    ),
    "fairness": Experiment(
        "two flows",
        20,
        _fairness_cases,
        _fairness_rows,
        (
            Column("first_bps", "first (Mbit/s)", 1e-6),
            Column("later_bps", "later (Mbit/s)", 1e-6),
            Column("ratio", "lesser/greater"),
            DROPS,
        ),
    ),
    "parking-lot": Experiment(
        "three hops of 100 Mbit/s, 60 ms",
        20,
        _parking_lot_cases,
        _parking_lot_rows,
        (
            Column("multi_hop_bps", "multi-hop (Mbit/s)", 1e-6),
            Column("single_hop_bps", "single-hop (Mbit/s)", 1e-6),
            DROPS,
        ),
    ),
}
