"""Advice as text, the answer first, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lfnlab.advise import host
from lfnlab.advise.path import MOST_WINDOW_BYTES
from lfnlab.analysis.table import Table, plain
from lfnlab.control_laws.prototype import is_controller
from lfnlab.statistics import finite

if TYPE_CHECKING:
    from lfnlab.advise.choices import Choice
    from lfnlab.advise.search import Advice, Beside, Time

OVERHEAD = 2
"""Linux counts the memory of packets, up to twice their data."""
MOST_SYSCTL = 2**31 - 1
FQ = "tc qdisc replace dev DEV root fq"
UDP_HOLDS_S = 0.05
"""The time that lfn recv may wait for a CPU (docs/udt.md)."""
NOT_MODELLED = (
    "Not modelled: CPUs, disks, offloads and bursts of hosts; other users of the path except the "
    "competing flow named; loss in bursts; a path with several bottlenecks, AQM or changing rate."
)


def span(seconds: float) -> str:
    """A time for people, in three digits."""
    if not math.isfinite(seconds):
        return "without end"
    for unit, factor in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def rate(bps: float) -> str:
    """A rate for people, in three digits."""
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= factor:
            return f"{bps / factor:.3g} {unit}"
    return f"{bps:.3g} bit/s"


def size(count: float) -> str:
    """An amount of data for people, in three digits."""
    for unit, factor in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def needed_bytes(advice: Advice) -> int:
    """The socket buffer that one stream needs at both hosts."""
    needed = OVERHEAD * min(advice.path.window_bytes, MOST_WINDOW_BYTES)
    return min(MOST_SYSCTL, math.ceil(needed / (1 << 20)) << 20)


def buffer_lines(advice: Advice) -> list[str]:
    """Sysctl lines for socket buffers that are too small on this host."""
    needed = needed_bytes(advice)
    lines = []
    for name in host.UNTUNED:
        least, first, most = host.tcp_buffer(name)
        if most < needed:
            lines.append(f'sysctl -w net.ipv4.tcp_{name}="{least} {first} {needed}"')
    return lines


def udt_bytes(advice: Advice) -> int:
    """The socket buffer that ``lfn recv`` needs; 0 if that of an untuned Linux is enough."""
    needed = math.ceil(UDP_HOLDS_S * advice.path.rate_bps / 8 / (1 << 20)) << 20
    return min(MOST_SYSCTL, needed) if needed > host.UNTUNED_UDP_BYTES else 0


def udt_lines(advice: Advice) -> list[str]:
    """Sysctl lines for ``lfn recv``, if this host's limit is too small."""
    needed = udt_bytes(advice)
    return [f"sysctl -w net.core.rmem_max={needed}"] if needed > host.udp_buffer_bytes() else []


def law_lines(choice: Choice) -> list[str]:
    """Commands for the sender, to type."""
    if is_controller(choice.law):
        return [f"# {choice.name} is a controller: its own stack is told to use it"]
    lines = []
    if choice.ours:
        lines.append(f"lfn kernel load {choice.law}")
    lines.append(f"sysctl -w net.ipv4.tcp_congestion_control={choice.name}")
    if choice.fq:
        lines.append(FQ)
    return lines


def lines(advice: Advice, notes: Sequence[str]) -> Iterator[str]:
    """The answer, the lines to type, the evidence."""
    best, time = advice.best, advice.times[advice.best]
    yield f"{size(advice.size)} over {_conditions(advice)}"
    yield ""
    yield f"Use {best}: {_expected(advice, time)}."
    yield ""
    yield from _evidence(advice)
    yield from notes
    yield NOT_MODELLED


def _conditions(advice: Advice) -> str:
    path = advice.path
    loss = f", loss {path.loss:.3g}" if path.loss else ""
    beside = f", beside {_plain(advice.neighbour)}" if advice.shared else ""
    return f"{path.rate} × {path.rtt}, buffer {path.buffer}{loss}{beside}"


def _evidence(advice: Advice) -> Iterator[str]:
    yield from _to_type(advice)
    yield ""
    yield _udt(advice)
    yield _neighbour(advice)
    yield _runner_up(advice)
    yield from _ours(advice)
    yield from _refused(advice)
    yield ""
    yield from plain(_table(advice))
    yield ""
    yield _how(advice)


def _expected(advice: Advice, time: Time) -> str:
    if not math.isfinite(time.p50_s):
        return "no data arrived in the simulated time"
    part = advice.size * 8 / time.p50_s / advice.path.rate_bps
    return (
        f"{span(time.p50_s)} in the median, {span(time.p95_s)} at most in 95 % of transfers "
        f"({100 * part:.0f} % of the link)"
    )


def _to_type(advice: Advice) -> Iterator[str]:
    best = advice.best
    both, needed = buffer_lines(advice), needed_bytes(advice)
    yield "Type, as root (lfn changes nothing):"
    if not both and all(needed <= most for _, _, most in host.UNTUNED.values()):
        yield "  # socket buffers: Linux's own are large enough"
    elif not both:
        yield f"  # socket buffers: {needed} bytes are needed at both hosts, and this one has them"
    yield from (f"  {line}    # here; at the other host if it has less" for line in both)
    typed = law_lines(best)
    yield from (f"  {line}    # sender" for line in typed)
    if not is_controller(best.law):
        yield f"  iperf3 -c HOST -C {best.name} -P {best.streams}    # to try it"
    if advice.path.window_bytes > MOST_WINDOW_BYTES:
        yield "  # a TCP window holds 1 GiB; one stream cannot fill this path and its queue"


def _udt(advice: Advice) -> str:
    tcp, udt = advice.times[advice.best], advice.udt
    if not math.isfinite(udt.p50_s):
        return "lfn send (UDT): no data arrived in the simulated time."
    told = f"{span(udt.p50_s)}, 95 % {span(udt.p95_s)}"
    if advice.shared:
        line = f"lfn send (UDT), simulated without the competing flow: {told}."
    else:
        line = f"lfn send (UDT): {told}, {_longer(udt.p50_s, tcp.p50_s)}."
    needed = udt_bytes(advice)
    if not needed:
        return line
    return f"{line} It needs net.core.rmem_max of at least {needed} at the receiver."


def _neighbour(advice: Advice) -> str:
    beside = advice.beside[advice.best]
    law = _plain(advice.neighbour)
    return f"A competing flow of {law} {_keeps(beside)}."


def _plain(law: str) -> str:
    """A law as people call it."""
    return law.removesuffix(":linux")


def _keeps(beside: Beside) -> str:
    return (
        f"gets {rate(beside.theirs_bps.mean)}; beside a flow of its own law it would get "
        f"{rate(beside.fair_bps.mean)} (harm {100 * beside.harm:.0f} %, share "
        f"{100 * beside.share:.0f} %)"
    )


def _runner_up(advice: Advice) -> str:
    other = advice.runner_up
    if other is None:
        return "Runner-up: no other law was simulated to the end of the search."
    return f"Runner-up: {other}, {_why_not(advice, other)}."


def _why_not(advice: Advice, other: Choice) -> str:
    time, best = advice.times[other], advice.times[advice.best]
    if not math.isfinite(time.p50_s):
        return "no data arrived in the simulated time"
    said = f"{span(time.p50_s)}, {_longer(time.p50_s, best.p50_s)}"
    apart = advice.slower(other)
    if math.isfinite(apart.half):
        said += f" (mean {100 * apart.mean:+.1f} ± {100 * apart.half:.1f} %, seed by seed)"
    if other in advice.equals:
        said += "; as fast, but less simple"
    return said


def _longer(one_s: float, best_s: float) -> str:
    """How one time is to another."""
    ratio = one_s / best_s
    if ratio >= 2:
        return f"{ratio:.3g} times as long"
    return f"{abs(100 * (ratio - 1)):.1f} % {'longer' if ratio >= 1 else 'shorter'}"


def _ours(advice: Advice) -> Iterator[str]:
    """The fastest of lfnlab's own laws, where Linux's are advised; none without packets."""
    ours = [choice for choice in advice.times if choice.ours]
    if ours and not advice.best.ours:
        choice = min(ours, key=lambda c: (advice.times[c].p50_s, c))
        tried = sum(c.ours for c in advice.first.keys() | advice.times.keys())
        load = f"lfn kernel load {choice.law}"
        yield (
            f"Of {tried} simulated choices of lfnlab's laws the fastest: {choice}, "
            f"{_why_not(advice, choice)}; {load}."
        )


def _refused(advice: Advice) -> Iterator[str]:
    for choice in advice.refused:
        beside = advice.beside[choice]
        yield (
            f"Faster, but not advised on a shared path: {choice}. The competing flow "
            f"{_keeps(beside)}."
        )


def _table(advice: Advice) -> Table:
    rows = []
    ranked = sorted(advice.times, key=lambda c: (advice.times[c].p50_s, c))
    for choice in ranked:
        time = advice.times[choice]
        rows.append(
            (
                choice.name,
                str(choice.streams),
                "fq" if choice.fq else "any",
                span(time.p50_s),
                span(time.p95_s),
                rate(advice.size * 8 / time.p50_s) if math.isfinite(time.p50_s) else "0",
                f"{100 * advice.scores[choice]:.0f} %",
                f"{len(time.times_s)}{'' if time.whole else ', in part'}",
            )
        )
    headings = ("law", "streams", "qdisc", "median", "95 %", "goodput", "steady", "runs")
    return Table(headings, tuple(rows), 3)


def _how(advice: Advice) -> str:
    first, second = advice.amounts["first"], advice.amounts["second"]
    seeds = "1 seed" if second.seeds == 1 else f"{second.seeds} seeds"
    said = (
        f"Simulated: {len(first.spans)} of {len(advice.scores)} choices, the fluid's best first, "
        f"then {len(second.spans)} with {seeds}; {advice.packets / 1e6:.3g} million packets, the "
        "same random numbers for all."
    )
    if not advice.times[advice.best].whole:
        shortest = min(part.duration_s for part in second.spans)
        longest = max(part.duration_s for part in second.spans)
        times = span(shortest) if shortest == longest else f"{span(shortest)} to {span(longest)}"
        said += (
            f" A run has the first {times} of a transfer; the rest takes as long as at the goodput "
            "of its second half. Steady: the part of the link that the fluid gives a choice in the "
            "long run; a far smaller goodput means that a choice was still growing."
        )
    return said


def to_json(advice: Advice, notes: Sequence[str]) -> dict[str, Any]:
    """One object; what is not a number is null."""
    path = advice.path
    return {
        "schema": 1,
        "certain": True,
        "path": {
            "rate_bps": path.rate_bps,
            "rtt_s": path.rtt_s,
            "buffer_packets": path.buffer_packets,
            "loss": path.loss,
            "packet_bytes": path.packet_bytes,
        },
        "size_bytes": advice.size,
        "advice": _choice(advice, advice.best)
        | {"type_on_both": buffer_lines(advice), "type_on_sender": law_lines(advice.best)},
        "runner_up": None if advice.runner_up is None else _choice(advice, advice.runner_up),
        "choices": [
            _choice(advice, choice)
            for choice in sorted(advice.times, key=lambda c: (advice.times[c].p50_s, c))
        ],
        "first_round": [
            {**_named(choice), **_time(time), "fluid_utilization": advice.scores[choice]}
            for choice, time in advice.first.items()
        ],
        "not_simulated": [
            {**_named(choice), "fluid_utilization": score}
            for choice, score in advice.scores.items()
            if choice not in advice.first and choice not in advice.times
        ],
        "udt": _time(advice.udt) | {"type_at_receiver": udt_lines(advice)},
        "neighbour": {
            "law": advice.neighbour,
            "shared": advice.shared,
            "beside": [
                {
                    **_named(choice),
                    "ours_bps": beside.ours_bps.to_json(),
                    "theirs_bps": beside.theirs_bps.to_json(),
                    "fair_bps": beside.fair_bps.to_json(),
                    "share": finite(beside.share),
                    "harm": finite(beside.harm),
                }
                for choice, beside in advice.beside.items()
            ],
        },
        "packets": advice.packets,
        "notes": [*notes, NOT_MODELLED],
    }


def _named(choice: Choice) -> dict[str, Any]:
    return {
        "law": choice.name,
        "simulated_as": choice.law,
        "ours": choice.ours,
        "streams": choice.streams,
        "fq": choice.fq,
    }


def _time(time: Time) -> dict[str, Any]:
    return {
        "p50_s": finite(time.p50_s),
        "p95_s": finite(time.p95_s),
        "runs": len(time.times_s),
        "whole": time.whole,
    }


def _choice(advice: Advice, choice: Choice) -> dict[str, Any]:
    slower = advice.slower(choice) if math.isfinite(advice.times[choice].p50_s) else None
    return {
        **_named(choice),
        **_time(advice.times[choice]),
        "slower": None if slower is None else slower.to_json(),
    }
