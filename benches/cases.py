"""Scenarios that users run, for the benchmarks of the engine.

A case is a scenario of one bottleneck. Its cost counts data packets that leave the bottleneck,
those of background traffic too. `bar` bounds it: how many times as much as that of `ROW_1` a
packet may cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FILES = Path("build/bench").resolve()
#: A trace of mahimahi.
TRACE = FILES / "1gbps.trace"
#: A rate every 1/15 s: 300 changes in the 20 s of a measurement.
RATES = FILES / "rates.csv"


@dataclass(frozen=True)
class Case:
    """A scenario without its duration, and what a packet of it may cost."""

    name: str
    #: TOML without schema and duration.
    toml: str
    #: Simulated time until every flow has left slow start, and the end of the measurement.
    short_s: float
    long_s: float
    #: Most CPU time a packet, as a ratio to that of `ROW_1`.
    bar: float
    #: The count of instructions ends here: valgrind is 50 times slower than the machine.
    counted_s: float

    def scenario(self, duration_s: float) -> str:
        """The scenario in TOML."""
        return f'schema = 1\nduration = "{duration_s:g}s"\n{self.toml}'


def path(
    rate: str = "1Gbit/s",
    law: str = "cubic",
    link: str = "",
    flow: str = "",
    rest: str = "",
    sample: str = "off",
) -> str:
    """A flow, or many alike, before a drop-tail queue of 1 BDP, with more lines in each part."""
    parts = [
        f'sample = "{sample}"\n[link]\nrate = "{rate}"',
        link,
        f'[[flow]]\nlaw = "{law}"',
        flow or 'rtt = "100ms"',
        rest,
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _background(level: int) -> str:
    return f"[background]\nlevel = {level}"


def _many(count: int, seconds: float) -> str:
    return f'rtt = "100ms"\ncount = {count}\nstart = "uniform(0s, {seconds:g}s)"'


def _rtts(count: int) -> str:
    """RTTs of 40 to 200 ms, one for each flow."""
    first, *others = (f'rtt = "{40 + 160 * i / (count - 1):.3f}ms"' for i in range(count))
    starts = 'start = "uniform(0s, 1s)"'
    return "\n".join(
        [f"{first}\n{starts}", *(f'[[flow]]\nlaw = "cubic"\n{rtt}\n{starts}' for rtt in others)]
    )


def write_files() -> None:
    """Writes the files that scenarios name."""
    FILES.mkdir(parents=True, exist_ok=True)
    # 250 opportunities of 1500 bytes in 3 ms: 1 Gbit/s.
    TRACE.write_text("".join(f"{1 + 3 * i // 250}\n" for i in range(250)))
    rates = (f"{i / 15:.4f}s,{900 if i % 2 else 1000}Mbit/s\n" for i in range(1, 345))
    RATES.write_text("time,rate\n" + "".join(rates))


def _queue(kind: str) -> str:
    return f'queue = {{ kind = "{kind}", size = "1bdp" }}'


def _router(kind: str) -> str:
    return f'router = {{ kind = "{kind}" }}'


ROW_1 = Case("1 flow, 1 Gbit/s x 100 ms", path(), 2, 42, 1.0, 2)

CASES = [
    ROW_1,
    Case("10 flows", path(flow=_many(10, 1)), 3, 43, 1.1, 2),
    Case("100 flows", path(flow=_many(100, 1)), 3, 43, 1.1, 2),
    Case("100 flows, 100 RTTs of 40 to 200 ms", path(flow=_rtts(100)), 3, 43, 1.4, 2),
    Case(
        "1 flow, 100 Gbit/s x 100 ms, 9000 bytes",
        path("100Gbit/s", flow='rtt = "100ms"\npacket = "9000B"'),
        1,
        3,
        1.1,
        0.8,
    ),
    *(
        Case(f"background {level} at 1 Gbit/s", path(rest=_background(level)), 3, 23, bar, 2)
        for level, bar in [(1, 2.0), (2, 2.3), (3, 2.5)]
    ),
    *(
        Case(
            f"background {level} at 10 Gbit/s",
            path("10Gbit/s", rest=_background(level)),
            3,
            6,
            bar,
            1,
        )
        for level, bar in [(1, 2.3), (2, 2.6), (3, 2.8)]
    ),
    Case(
        "short flows at half load",
        path(
            link='queue = { size = "8333 packets" }',
            flow='rtt = "100ms"\nsize = "1B"',
            rest='[[traffic]]\nlaw = "cubic"\nrtt = "100ms"\nshort_flows = { load = "500Mbit/s" }',
        ),
        3,
        23,
        2.6,
        2,
    ),
    Case(
        "jitter with reordering",
        path(link='jitter = { high = "1ms", keep_order = false }'),
        3,
        23,
        3.0,
        2,
    ),
    Case("1 % reordered", path(link='reorder = { p = 0.01, delay = "10ms" }'), 3, 23, 2.1, 2),
    Case("loss 1e-2", path(link="loss = 0.01"), 3, 603, 2.1, 43),
    Case("jitter in order", path(link='jitter = { high = "1ms" }'), 3, 23, 2.1, 2),
    Case(
        "300 rate changes",
        path(rest=f'[[schedule]]\nlink = "forward"\nfile = "{RATES}"'),
        3,
        23,
        2.1,
        2,
    ),
    Case(
        "delivery trace",
        path().replace('rate = "1Gbit/s"', f'trace = "{TRACE}"'),
        3,
        23,
        2.1,
        2,
    ),
    Case("CoDel", path(link=_queue("codel")), 3, 43, 1.4, 2),
    Case("PIE", path(link=_queue("pie")), 3, 43, 1.4, 2),
    Case("FQ-CoDel", path(link=_queue("fq-codel")), 3, 43, 1.9, 2),
    Case("DualPI2", path(link=_queue("dualpi2")), 3, 43, 2.3, 2),
    Case(
        "FQ-CoDel, background 2",
        path(link=_queue("fq-codel"), rest=_background(2)),
        3,
        23,
        3.5,
        2,
    ),
    *(
        Case(name, path(law=name.lower(), link=_router(name.lower())), 3, 23, 2.1, 2)
        for name in ["XCP", "RCP", "JetMax"]
    ),
    # They take 29 s to fill the link, whatever its rate.
    *(
        Case(name, path(law=name.lower(), link=_router("vcp")), 33, 53, 2.1, 24)
        for name in ["VCP", "EVCP"]
    ),
    Case("UDT", path(law="udt"), 3, 23, 2.1, 2),
    Case("BBR v1", path(law="bbr"), 3, 43, 1.4, 2),
    Case("BBR v3", path(law="bbr3"), 3, 43, 1.4, 2),
    Case("10,000 flows at 10 Gbit/s", path("10Gbit/s", flow=_many(10_000, 0.3)), 3, 8, 2.6, 0.6),
    Case(
        "100,000 flows at 10 Gbit/s",
        path("10Gbit/s", flow=_many(100_000, 0.3)),
        3,
        8,
        5.0,
        0.4,
    ),
    Case(
        "10,000 flows, default sampling",
        # What a run of 8 s takes by itself; its two durations would take different ones.
        path("10Gbit/s", flow=_many(10_000, 0.3), sample="200ms"),
        3,
        8,
        3.1,
        0.6,
    ),
]
