"""Outages, reordering, and steps of rate and delay: one flow through each, on Linux and here.

$ python -m validation trouble

Draws 60 scenarios. Of those that ``validation/reference/trouble.json`` lacks, it runs Linux and
adds the outcome: a command that was killed goes on there. Then it runs the laboratory and prints
what differs. Tests compare ours with that file, without a kernel.

Both sides agree if the flow has as many timeouts (one more or less if one fell within 5 % of an
outage near its end), and if, counted from the first data that are acknowledged after the trouble,
half a second at 90 % of the rate is over within a round trip and 200 ms of Linux's.
"""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path as FilePath

import numpy as np

from lfnlab import Scenario, _core
from lfnlab.testbed import virtual_run, virtual_time

from . import outcome
from .draw import Drawn, DrawnFlow, Step

KEPT = FilePath(__file__).with_name("reference") / "trouble.json"
COUNT = 60
LAWS = ("cubic", "reno", "bbr", "htcp", "bic", "westwood", "illinois", "scalable", "hstcp", "veno")
#: When the trouble begins, and how long a flow is watched after it at least.
AT_S, AFTER_S = 5.0, 8.0
SPAN_S, SHARE = 0.5, 0.9
PAYLOAD = 1448 / 1514
SLACK_S, NEAR = 0.2, 0.05
#: In the column ``kind`` of events.
TIMEOUT = 1
#: Scenarios that differ, and why as far as it is known.
OPEN: dict[str, str] = {}


@dataclass(frozen=True)
class Passed:
    """How a flow passed through its trouble."""

    timeouts: int
    #: A timeout fell near the end of the outage.
    near: bool
    #: From the first new acknowledgement after the trouble to the end of half a second at 90 % of
    #: the rate, in seconds; None if it never came.
    full_s: float | None


def draw(number: int) -> Drawn:
    """One of the scenarios: outages, reordering, steps of rate, steps of delay in turn."""
    draws = random.Random(f"lfnlab trouble {number}")
    kind = ("outage", "reorder", "outage", "rate", "reorder", "delay")[number % 6]
    law = draws.choice(LAWS)
    rate = round(math.exp(draws.uniform(math.log(3), math.log(12))), 1)
    rtt_ms = round(draws.uniform(20, 100), 1)
    bdp = rtt_ms / 1e3 * rate * 1e6 / 8 / 1514
    packets = max(8, round(bdp * draws.uniform(0.5, 2)))
    plain = Drawn(AT_S + AFTER_S, rate, packets, (DrawnFlow(law, rtt_ms),), seed=number + 1)
    made = asdict(plain) | {"flows": plain.flows}
    if kind == "outage":
        nth = number // 6 * 2 + (number % 6 == 2)
        down_s = round(40 ** (nth / (COUNT // 3 - 1)), 2)
        made |= {"steps": (Step(AT_S, down_s=down_s),), "duration_s": AT_S + 2 * down_s + AFTER_S}
    elif kind == "reorder":
        p = math.exp(draws.uniform(math.log(0.001), math.log(0.1)))
        held_ms = round(rtt_ms * draws.uniform(0.1, 0.5), 1)
        made |= {"reorder": round(p, 4), "reorder_ms": held_ms}
    elif kind == "rate":
        to = round(rate * draws.choice((0.25, 0.5, 2, 4)), 2)
        made |= {"steps": (Step(AT_S, rate_mbps=to),)}
    else:
        own_ms = round(0.4 * rtt_ms, 1)
        to_ms = round(rtt_ms * draws.uniform(0, 1.5), 1)
        made |= {"delay_ms": own_ms, "steps": (Step(AT_S, delay_ms=to_ms),)}
    return Drawn(**made)


def _end(drawn: Drawn) -> tuple[float, float, float]:
    """When the trouble ends, how long the link was down, and its rate from then on in bit/s."""
    if not drawn.steps:
        return 0.0, 0.0, drawn.rate_mbps * 1e6
    [step] = drawn.steps
    down_s = step.down_s or 0.0
    return step.at_s + down_s, down_s, (step.rate_mbps or drawn.rate_mbps) * 1e6


def _passed(
    drawn: Drawn, time_s: np.ndarray, delivered_b: np.ndarray, timeouts_s: np.ndarray
) -> Passed:
    end_s, down_s, rate_bps = _end(drawn)
    full_s = None
    after = time_s >= end_s
    time_s, delivered_b = time_s[after], delivered_b[after]
    new = np.flatnonzero(delivered_b > delivered_b[0])
    if len(new):
        first_s = time_s[new[0]]
        before = np.interp(time_s - SPAN_S, time_s, delivered_b)
        full = delivered_b - before >= SHARE * PAYLOAD * rate_bps / 8 * SPAN_S
        at = np.flatnonzero(full & (time_s >= first_s + SPAN_S))
        full_s = round(float(time_s[at[0]] - first_s), 3) if len(at) else None
    near = bool((np.abs(timeouts_s - end_s) < NEAR * down_s).any())
    return Passed(len(timeouts_s), near, full_s)


def linux(drawn: Drawn) -> Passed:
    """Linux's result."""
    told = virtual_time.translated(Scenario.from_toml(drawn.toml()).check().to_document())
    with tempfile.TemporaryDirectory() as work:
        [flow] = virtual_run.run(outcome.PROGRAM, FilePath(work), "run", told).flows
    return of_linux(drawn, flow)


def of_linux(drawn: Drawn, flow: Mapping[str, np.ndarray]) -> Passed:
    """From Linux's samples, which count its timeouts."""
    time_s = flow["t_us"] / 1e6
    more = np.diff(flow["timeouts"], prepend=0).astype(int)
    return _passed(drawn, time_s, flow["bytes_acked"], np.repeat(time_s, np.maximum(more, 0)))


def ours(drawn: Drawn) -> Passed:
    """The simulator's result."""
    [run] = _core.run_many([_core.Scenario(drawn.toml(), "trouble.toml")], 1, None)
    assert run is not None
    flows, events = run.table("flows"), run.table("events")
    timeouts_s = events["t_s"][events["kind"] == TIMEOUT]
    return _passed(drawn, flows["t_s"], flows["delivered_bytes"].astype(float), timeouts_s)


def differs(drawn: Drawn, theirs: Passed, mine: Passed) -> list[str]:
    """Figures that differ by more than the bars, as text."""
    found = []
    if abs(theirs.timeouts - mine.timeouts) > (theirs.near or mine.near):
        found.append(f"timeouts {theirs.timeouts} / {mine.timeouts}")
    slack_s = SLACK_S + drawn.flows[0].rtt_ms / 1e3
    if None in (theirs.full_s, mine.full_s):
        alike = theirs.full_s == mine.full_s
    else:
        alike = abs((theirs.full_s or 0) - (mine.full_s or 0)) <= slack_s
    if not alike:
        found.append(f"full after {theirs.full_s} / {mine.full_s} s")
    return found


def kept() -> dict[str, Passed]:
    """Stored results of Linux, by a scenario's tag."""
    return {tag: Passed(*row) for tag, row in json.loads(KEPT.read_text()).items()}


def _keep(known: Mapping[str, Passed]) -> None:
    rows = [f'"{tag}": {json.dumps(list(asdict(row).values()))}' for tag, row in known.items()]
    part = KEPT.with_suffix(".part")
    part.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    part.rename(KEPT)


def described(drawn: Drawn) -> str:
    """A scenario in a line."""
    [flow] = drawn.flows
    [kind] = [t for t in ("outage", "reorder", "rate-step", "delay-step") if t in drawn.traits]
    step = " ".join(
        f"{k} {v:g}" for s in drawn.steps for k, v in asdict(s).items() if v is not None
    )
    late = f"{drawn.reorder:.2%} by {drawn.reorder_ms} ms" if drawn.reorder else step
    path = f"{drawn.rate_mbps} Mbit/s x {flow.rtt_ms} ms, {drawn.queue_packets} packets"
    return f"{drawn.tag} {kind} {flow.law}, {path}: {late}"


def main() -> None:
    """Runs what is missing on Linux, then ours, and prints what differs."""
    scenarios = [draw(number) for number in range(COUNT)]
    tags = {drawn.tag for drawn in scenarios}
    known = {tag: row for tag, row in (kept() if KEPT.exists() else {}).items() if tag in tags}
    for drawn in scenarios:
        if drawn.tag not in known:
            if why := outcome.missing():
                sys.exit(f"validation: SKIPPED trouble: {why}")
            known[drawn.tag] = linux(drawn)
            _keep(known)
    agree = 0
    for drawn in scenarios:
        found = differs(drawn, known[drawn.tag], ours(drawn))
        agree += not found
        if found:
            print(f"{described(drawn)}: {'; '.join(found)} (Linux / ours)", OPEN.get(drawn.tag, ""))
    print(f"{agree} of {COUNT} agree")
