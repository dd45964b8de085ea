"""Three bottlenecks in a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lfnlab import statistics
from lfnlab.experiment.plan import Case
from lfnlab.scenario.builder import parking_lot
from lfnlab.scenario.elements import Suite, Traffic
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
    packets,
)

if TYPE_CHECKING:
    from lfnlab.results.runs import Results

HOPS, HOP_BPS = 3, 100e6
LOT_LOADS = (60, 80, 100)
LOT_TIMES_S = (60.0, 300.0)


def _parking_lot_cases(asked: Plan) -> list[Case]:
    warmup_s, test_s = LOT_TIMES_S
    base = parking_lot(
        hops=HOPS,
        rate=bps(HOP_BPS),
        delay="10ms",
        buffer=packets(HOP_BPS, 0.100),
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
                            load=bps(HOP_BPS * load / 200),
                            reverse_load=bps(HOP_BPS * load / 400),
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
        hops = [link_figures(link_of(run, f"hop{k}")) for k in range(1, HOPS + 1)]
        drops = [drop for hop in hops if (drop := hop["drop_rate"]) is not None]
        yield Row(
            run.factors,
            {
                "multi_hop_bps": across,
                "single_hop_bps": statistics.interval(single).mean,
                "drop_rate": statistics.interval(drops).mean,
            },
        )


PARKING_LOT = Experiment(
    "three hops of 100 Mbit/s, 60 ms",
    20,
    _parking_lot_cases,
    _parking_lot_rows,
    (
        Column("multi_hop_bps", "multi-hop (Mbit/s)", 1e-6),
        Column("single_hop_bps", "single-hop (Mbit/s)", 1e-6),
        DROPS,
    ),
)
