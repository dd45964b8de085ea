"""One flow or two: ramp-up, fairness, transients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from lfnlab.experiment.plan import Case
from lfnlab.scenario.builder import dumbbell
from lfnlab.scenario.elements import Burst, Suite, Traffic, Udp
from lfnlab.suite.tcpeval.experiment import (
    DROPS,
    WINDOW,
    Column,
    Experiment,
    Plan,
    Row,
    bps,
    link_figures,
    link_of,
    mbps,
    packets,
    seconds,
    us,
)
from lfnlab.suite.tcpeval.topology import BASIC, pair_rtts_us

if TYPE_CHECKING:
    import polars as pl

    from lfnlab.results.runs import Results, Run


# Ramp-up of a new flow, fairness of two flows

CENTRAL_BPS = (10e6, 1e9)
RAMP_RTTS_MS = ((80, 80), (120, 30), (30, 120))
TMRG_CENTRAL_BPS: tuple[float, ...] = (56e3, *CENTRAL_BPS)
TMRG_RTTS_MS = ((74, 74), (124, 28), (28, 124))
RAMP_START_S, RAMP_END_S = 100.0, 600.0
DECADES = range(1, 7)


def _ramp_up_cases(asked: Plan) -> list[Case]:
    rates = TMRG_CENTRAL_BPS if asked.tmrg else CENTRAL_BPS
    rtts_ms, load = (TMRG_RTTS_MS, 0.1) if asked.tmrg else (RAMP_RTTS_MS, 0.5)
    rtts = tuple(us(rtt) for rtt in pair_rtts_us(BASIC["access"]).values())
    return [
        Case(
            dumbbell(
                rate=bps(rate),
                rtt=f"{old}ms",
                buffer=packets(rate, 0.080),
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
                    suite=Suite(
                        load=bps(load * rate), reverse_load=bps(load / 2 * rate), rtts=rtts
                    ),
                )
            ),
            {"central": mbps(rate), "old": f"{old}ms", "new": f"{new}ms"},
        )
        for rate, (old, new) in product(rates, rtts_ms)
    ]


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


RAMP_UP = Experiment(
    "a new flow beside an old one, without slow start: seconds until so much has arrived",
    5,
    _ramp_up_cases,
    _ramp_up_rows,
    tuple(Column(f"bytes_1500e{n}_s", f"{_size(n)} (s)") for n in DECADES),
    has_tmrg=True,
)

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
                rate=bps(rate),
                rtt=f"{a}ms",
                buffer=packets(rate, 0.1 * percent / 100),
                duration=asked.seconds(FAIR_END_S),
                warmup=asked.seconds(0.1 * FAIR_END_S),
                sample="off",
            )
            .flow(asked.law, start=first)
            .flow(asked.law, rtt=f"{b}ms", start=later),
            {"central": mbps(rate), "first": f"{a}ms", "later": f"{b}ms", "buffer": f"{percent}%"},
        )
        for rate, (a, b), percent in product(CENTRAL_BPS, rtts, FAIR_BUFFERS_PERCENT)
    ]


def _fairness_rows(results: Results) -> Iterable[Row]:
    for run in results.runs:
        first, later = run.goodputs
        yield Row(
            run.factors,
            {
                "first_bps": first,
                "later_bps": later,
                "ratio": min(first, later) / max(first, later) if max(first, later) else None,
                **link_figures(link_of(run, "forward")),
            },
        )


FAIRNESS = Experiment(
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
)

# Transients

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
        Burst(start=asked.seconds(STEP_S + i * CROSS_STEP_S), rate=bps(CROSS_BPS * share))
        for i, share in enumerate((i + 1) / CROSS_STEPS for i in range(CROSS_STEPS))
    )
    cross = {
        "75 to 0": (Burst(start="0s", stop=step, rate=bps(CROSS_BPS)),),
        "0 to 75": (Burst(start=step, rate=bps(CROSS_BPS)),),
        "0 to 75 by 2.5": _ending_in_turn(stairs),
    }
    base = dumbbell(
        rate=bps(TRANSIENT_BPS),
        rtt=seconds(TRANSIENT_RTT_S),
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


TRANSIENTS = Experiment(
    "one flow, 100 Mbit/s, 100 ms; UDP traffic in Mbit/s steps",
    5,
    _transients_cases,
    _transients_rows,
    (
        *(Column(f"window_{p}_s", f"to {p} % BDP (s)") for p in WINDOW_PERCENT),
        Column("increase_packets", "most per RTT (packets)"),
        Column("cross_drops", "UDP drops (packets)"),
    ),
)
