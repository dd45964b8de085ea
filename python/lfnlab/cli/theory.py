"""``lfn theory``: response functions, sawtooths, vector diagrams. Heavy modules wait."""

from __future__ import annotations

import dataclasses
import math
import statistics
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter, validators

from lfnlab.cli import theory_options as options
from lfnlab.cli.options import Json  # noqa: TC001 - cyclopts reads the annotations
from lfnlab.cli.theory_options import Code, Losses, Out  # noqa: TC001
from lfnlab.errors import LawError, UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lfnlab.theory.fluid import Bottleneck, Course, Sawtooth, Shares

LAWS = "reno,hstcp,scalable,bic,cubic,htcp,westwood,htcp-be"

theory = App(
    name="theory",
    help="""\
Compute closed forms and sawtooths of laws, without simulation.

Start here:

    lfn theory response --out response.png
    lfn theory recovery --rate 10Gbit/s --rtt 100ms
    lfn theory sawtooth --rate 10Gbit/s --rtt 100ms --buffer 0.2bdp --out sawtooth.png
    lfn theory vector --law reno,hstcp --rtt 120ms,60ms --out vector.png
    lfn theory fairness --rtt 60ms,120ms
    lfn theory padhye --rtt 100ms --rto 400ms

Laws are those of `lfn laws` and their variants, such as `hstcp:ns2`. Laws without equations run
their own code on a fluid path; `--code` does so for every law. `docs/theory.md` has figures and the
assumptions.
""",
)


@theory.command
def response(
    *,
    law: str = LAWS,
    loss: str = "1e-3,1e-4,1e-5,1e-6,1e-7,1e-8",
    rtt: str = "100ms",
    kept: float = 0.8,
    code: Code = False,
    json: Json = False,
    out: Out = None,
) -> int:
    """Compute response functions: mean window for a rate of loss events.

    The first number of a cell is the closed form. The second is the mean window of the law's
    sawtooth, from its equations or its code, with one loss in each 1/p packets. Example:

        lfn theory response --law reno,cubic --loss 1e-4,1e-7 --rtt 50ms

    Args:
        law: Names, separated by commas.
        loss: Loss events a packet, separated by commas.
        rtt: Round-trip time, for the laws that depend on it.
        kept: RTT_min/RTT_max at a loss, from which H-TCP, Westwood+ and HTCP-BE set their window.
        code: Sawtooths by the laws' own code.
    """
    from lfnlab.theory import fluid, functions

    names, losses = options.names(law), options.losses(loss)
    rtt_s, kept = options.quantity("--rtt", rtt, options.TIMES), options.kept(kept)
    closed, points, notes = {}, {}, options.unanswered(names)
    for name in names:
        try:
            points[name] = [
                fluid.sawtooth_at_loss(name, p, rtt_s, kept, code=code).mean_window for p in losses
            ]
        except LawError as error:
            notes.append(str(error))
        if name in functions.RESPONDING:
            closed[name] = [functions.response(name, p, rtt_s, kept) for p in losses]
    by = {name: options.by(code, name) for name in points}
    result = {
        "rtt_s": rtt_s,
        "kept": kept,
        "loss_events_per_packet": losses,
        "mean_window_segments": {
            name: {
                "closed": closed.get(name),
                "sawtooth": points.get(name),
                "sawtooth_by": by.get(name),
            }
            for name in names
        },
    }

    def figure() -> Figure:
        from lfnlab.figures.theory import curves

        fine = [float(p) for p in options.spaced(losses)]
        lines = {}
        for name in points:
            if name in closed:
                lines[name] = fine, [functions.response(name, p, rtt_s, kept) for p in fine]
            else:
                lines[name] = losses, points[name]
        return curves(
            lines,
            {name: (losses, found) for name, found in points.items()},
            "loss events a packet",
            "mean window (segments)",
            falling=True,
        )

    def cell(name: str, i: int) -> str:
        both = (closed.get(name), points.get(name))
        return " ".join(f"{found[i]:.5g}" if found else "-" for found in both)

    rows = [
        (name, *(cell(name, i) for i in range(len(losses))), by.get(name, "-")) for name in names
    ]
    headings = ("law", *(f"p = {p:g}" for p in losses), "sawtooth by")
    return options.tell(headings, rows, result, json, out, figure, notes)


@theory.command
def recovery(
    *,
    law: str = LAWS,
    rate: str = "10Gbit/s",
    rtt: str = "100ms",
    packet: str = "1500B",
    kept: float = 0.8,
    code: Code = False,
    json: Json = False,
    out: Out = None,
) -> int:
    """Compute the time to grow back after one loss on a full path without a queue.

    The result is in closed form or from the law's code. The figure has rates from 10 Mbit/s to
    100 Gbit/s at this RTT. Example:

        lfn theory recovery --rate 10Gbit/s --rtt 265ms --packet 9000B

    Args:
        law: Names, separated by commas.
        rate: Path rate.
        rtt: Round-trip time.
        packet: Packet size on the wire.
        kept: RTT_min/RTT_max at a loss, from which Westwood+ and HTCP-BE set their window.
        code: By the laws' own code.
    """
    from lfnlab.theory import functions

    names, kept = options.names(law), options.kept(kept)
    rtt_s = options.quantity("--rtt", rtt, options.TIMES)
    size_bits = 8 * options.quantity("--packet", packet, options.SIZES)
    window = options.quantity("--rate", rate, options.RATES) * rtt_s / size_bits
    if window < 100:
        raise UsageError(
            f"--rate and --rtt: the path holds {window:.3g} packets; "
            "allowed: 100 or more, where no law is Reno"
        )

    def time_s(name: str, segments: float) -> float:
        return functions.recovery_s(name, segments, rtt_s, kept, code=code)

    times_s = {name: time_s(name, window) for name in names}
    closed = [] if code else [name for name in names if name in functions.RECOVERING]
    by = {name: "closed form" if name in closed else "code" for name in names}
    result = {
        "window_segments": window,
        "rtt_s": rtt_s,
        "kept": kept,
        "recovery_s": times_s,
        "by": by,
    }
    notes = options.unanswered(names)
    still = [name for name in names if times_s[name] == 0]
    if still:
        notes.append(f"{', '.join(still)}: a loss does not make it fall")

    def figure() -> Figure:
        from lfnlab.figures.theory import curves

        lines = {}
        for name in names:
            if name not in still:
                # Code takes a second for a large window.
                spaced = options.spaced([1e7, 1e11], 121 if name in closed else 9)
                rates = [r for r in spaced if r * rtt_s / size_bits >= 100]
                times = [time_s(name, r * rtt_s / size_bits) for r in rates]
                lines[name] = [r / 1e6 for r in rates], times
        here = window * size_bits / rtt_s / 1e6
        return curves(
            lines,
            {name: ([here], [times_s[name]]) for name in lines},
            f"rate of the path (Mbit/s), RTT {rtt}",
            "time to grow back after a loss (s)",
        )

    rows = [(name, f"{s:.5g}", f"{s / rtt_s:.5g}", by[name]) for name, s in times_s.items()]
    headings = ("law", "recovery (s)", "round trips", "by")
    return options.tell(headings, rows, result, json, out, figure, notes)


@theory.command
def sawtooth(
    *,
    law: str = LAWS,
    rate: str = "10Gbit/s",
    rtt: str = "100ms",
    buffer: str = "1bdp",
    packet: str = "1500B",
    span: str | None = None,
    code: Code = False,
    json: Json = False,
    out: Out = None,
) -> int:
    """Compute the sawtooth of one flow: period, mean window, utilization, loss events.

    Example: `lfn theory sawtooth --law reno,cubic --rate 1Gbit/s --rtt 40ms --buffer 0.2bdp`

    Args:
        law: Names, separated by commas.
        rate: Bottleneck rate.
        rtt: Base RTT.
        buffer: `1bdp`, `250 packets`, `12.5MB`, or `0 packets`.
        packet: Packet size on the wire.
        span: Time of the figure; default three median periods.
        code: By the laws' own code.
    """
    from lfnlab.theory import fluid

    names, rtt_s = options.names(law), options.quantity("--rtt", rtt, options.TIMES)
    rate_pps, bdp, queue = options.bottleneck(rate, rtt_s, buffer, packet)
    span_s = None if span is None else options.quantity("--span", span, options.TIMES)
    if bdp + queue < 4:
        raise UsageError(
            f"--rate, --rtt, --buffer: path and buffer hold {bdp + queue:.3g} packets; "
            "allowed: 4 or more"
        )
    teeth = [fluid.sawtooth(name, rate_pps, rtt_s, queue, code=code) for name in names]
    left_out = ("law", "cycle_s", "cycle")
    result = {
        "rate_pps": rate_pps,
        "rtt_s": rtt_s,
        "buffer_packets": queue,
        "laws": {
            tooth.law: {
                "by": options.by(code, tooth.law),
                **{
                    field.name: getattr(tooth, field.name)
                    for field in dataclasses.fields(tooth)
                    if field.name not in left_out
                },
            }
            for tooth in teeth
        },
    }

    def figure() -> Figure:
        from lfnlab.figures.theory import sawtooths

        periods_s = [tooth.period_s for tooth in teeth if math.isfinite(tooth.period_s)]
        shown_s = span_s or 3 * statistics.median(periods_s or [100 * rtt_s])
        return sawtooths(teeth, shown_s, bdp, queue)

    rows = [(*_row_of_tooth(tooth), options.by(code, tooth.law)) for tooth in teeth]
    notes = options.unanswered(names)
    return options.tell((*TOOTH, "by"), rows, result, json, out, figure, notes)


TOOTH = (
    "law",
    "period (s)",
    "before",
    "after",
    "mean window",
    "mean RTT (ms)",
    "link (%)",
    "loss events a packet",
    "growth a round trip",
)
"""Headings of :func:`_row_of_tooth`."""


def _row_of_tooth(tooth: Sawtooth) -> tuple[str, ...]:
    return (
        tooth.law,
        f"{tooth.period_s:.4g}",
        f"{tooth.window_before:,.0f}",
        f"{tooth.window_after:,.0f}",
        f"{tooth.mean_window:,.0f}",
        f"{1e3 * tooth.mean_rtt_s:.4g}",
        f"{100 * tooth.utilization:.2f}",
        f"{tooth.loss_events_per_packet:.3g}",
        f"{tooth.growth:.3g}",
    )


@theory.command
def vector(
    *,
    law: str = "reno,hstcp,cw-hstcp",
    rtt: str = "120ms,60ms",
    rate: str = "1Gbit/s",
    buffer: str = "0 packets",
    packet: str = "1000B",
    start: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    losses: Losses = 300,
    axes: Literal["window", "rate"] = "window",
    code: Code = False,
    json: Json = False,
    out: Out = None,
) -> int:
    """Compute Chiu and Jain's vector diagram of two flows with synchronised losses.

    By default flow 1 has the longer RTT, as in Fig. 3 of the CW-HSTCP paper. Each panel has one
    law; a pair `a+b` gives flow 1 law a and flow 2 law b. Examples:

        lfn theory vector --out vector.png
        lfn theory vector --law reno+cubic --rtt 50ms,50ms --start 100,4000 --axes rate --json

    Args:
        law: Names or pairs, separated by commas.
        rtt: Base RTT of flow 1 and of flow 2.
        rate: Bottleneck rate.
        buffer: `1bdp` (of the mean RTT), `250 packets`, `12.5MB`.
        packet: Packet size on the wire.
        start: Initial windows of flows 1 and 2 in segments, such as `3000,1000`; repeatable.
            Default two starts: one flow, then the other, has two thirds of 90 % of the link.
        losses: Number of losses.
        axes: Axes in windows or in rates.
        code: By the laws' own code, as always where one of the two laws has no equations.
    """
    from lfnlab.theory import fluid

    rtts_s = options.pair("--rtt", rtt)
    rate_pps, _, queue = options.bottleneck(rate, sum(rtts_s) / 2, buffer, packet)
    path = fluid.Bottleneck(rate_pps, rtts_s, queue)
    starts = [options.start(text) for text in start] or _two_thirds(path)
    pairs = options.pairs(law)
    courses = {
        name: [fluid.synchronised(pair, path, w, losses, code=code) for w in starts]
        for name, pair in pairs.items()
    }
    ends = [
        (name, windows, course, fluid.shares(course, path))
        for name in courses
        for windows, course in zip(starts, courses[name], strict=True)
    ]
    result: dict[str, Any] = {
        "rate_pps": rate_pps,
        "base_rtts_s": rtts_s,
        "buffer_packets": queue,
        "losses": losses,
        "laws": {name: [] for name in courses},
    }
    for name, windows, course, end in ends:
        said = {"by": options.by(code, *pairs[name]), **_json_of_course(windows, course, end)}
        result["laws"][name].append(said)

    def figure() -> Figure:
        from lfnlab.figures.theory import vectors

        return vectors(courses, path, axes)

    rows = [
        (name, *_cells(windows, course, end), options.by(code, *pairs[name]))
        for name, windows, course, end in ends
    ]
    shown = ("law", "start", "end", "shares (%)", "link (%)", "Jain", "exponent", "settled", "by")
    notes = options.unanswered([law for pair in pairs.values() for law in pair])
    return options.tell(shown, rows, result, json, out, figure, notes)


def _two_thirds(path: Bottleneck) -> list[tuple[float, float]]:
    """Windows with which one flow, then the other, has two thirds of 90 % of the link."""
    first, second = (path.rate_pps * rtt_s for rtt_s in path.base_rtts_s)
    return [(0.6 * first, 0.3 * second), (0.3 * first, 0.6 * second)]


def _json_of_course(start: tuple[float, float], course: Course, end: Shares) -> dict[str, Any]:
    """A course with the windows at each loss."""
    losses = course.losses()
    return {
        "start_segments": start,
        **dataclasses.asdict(end),
        "window_after_last_loss_segments": course.epochs[-1].after.tolist(),
        "loss_s": [epoch.end_s for epoch in losses],
        "window_before_segments": [epoch.before.tolist() for epoch in losses],
        "window_after_segments": [epoch.after.tolist() for epoch in losses],
    }


def _cells(start: tuple[float, float], course: Course, end: Shares) -> tuple[str, ...]:
    return (
        "{:.0f}, {:.0f}".format(*start),
        "{:.0f}, {:.0f}".format(*course.epochs[-1].after),
        " / ".join(f"{100 * share:.2f}" for share in end.shares),
        f"{100 * end.utilization:.1f}",
        f"{end.jain:.3f}",
        "-" if math.isnan(end.exponent) else f"{end.exponent:.2f}",
        "yes" if end.settled else "no",
    )


@theory.command
def fairness(
    *,
    law: str = f"{LAWS},cw-hstcp",
    rtt: str = "60ms,120ms",
    rate: str = "1Gbit/s",
    buffer: str = "0 packets",
    packet: str = "1000B",
    loss: str = "1e-6",
    kept: float = 0.8,
    losses: Losses = 300,
    code: Code = False,
    json: Json = False,
) -> int:
    """Compute the RTT unfairness E of a law: throughput_1 / throughput_2 = (RTT_2 / RTT_1)^E.

    The first value is for synchronised losses, the second for independent losses at equal rates.
    0: equal throughput; 1: equal windows; 2: Reno with synchronised losses. Without a buffer
    Westwood+ and HTCP-BE never reduce, since they reduce to the BDP. Example:

        lfn theory fairness --law reno,cubic --rtt 20ms,200ms

    Args:
        law: Names, separated by commas.
        rtt: Base RTTs of flow 1 and flow 2; they must differ.
        rate: Bottleneck rate for synchronised losses.
        buffer: Its buffer: `0.2bdp` (of the mean RTT), `250 packets`, `12.5MB`.
        packet: Packet size on the wire.
        loss: Independent loss events a packet.
        kept: RTT_min/RTT_max at an independent loss.
        losses: Number of synchronised losses.
        code: By the laws' own code.
    """
    from lfnlab.theory import fluid, functions

    rtts_s = options.pair("--rtt", rtt)
    if rtts_s[0] == rtts_s[1]:
        raise UsageError(f'--rtt: "{rtt}" are equal; allowed: two RTTs that differ, 60ms,120ms')
    (loss_rate, *_), names = options.losses(loss), options.names(law)
    kept, notes = options.kept(kept), options.unanswered(names)
    rate_pps, _, queue = options.bottleneck(rate, sum(rtts_s) / 2, buffer, packet)
    path = fluid.Bottleneck(rate_pps, rtts_s, queue)
    found: dict[str, Any] = {}
    for name in names:
        together = None
        if code or queue or name not in ("westwood", "htcp-be"):
            windows = [0.45 * rate_pps * rtt_s for rtt_s in rtts_s]
            course = fluid.synchronised([name, name], path, windows, losses, code=code)
            together = fluid.shares(course, path)
        apart = None
        try:
            apart = functions.independent_exponent(name, loss_rate, rtts_s, kept, code=code)
        except LawError as error:
            notes.append(str(error))
        found[name] = {
            "by": options.by(code, name),
            "synchronised": together and dataclasses.asdict(together),
            "independent_exponent": apart,
        }
    result = {
        "base_rtts_s": rtts_s,
        "rate_pps": rate_pps,
        "buffer_packets": queue,
        "loss_events_per_packet": loss_rate,
        "laws": found,
    }
    rows = [(name, *_cells_of_fairness(entry)) for name, entry in found.items()]
    headings = ("law", "E, losses together", "shares (%)", "E, losses apart", "together by")
    return options.tell(headings, rows, result, json, None, None, notes)


def _cells_of_fairness(entry: dict[str, Any]) -> tuple[str, ...]:
    end, apart = entry["synchronised"], entry["independent_exponent"]
    return (
        f"{end['exponent']:.2f}" if end else "-",
        " / ".join(f"{100 * share:.2f}" for share in end["shares"]) if end else "-",
        "-" if apart is None else f"{apart:.2f}",
        entry["by"],
    )


@theory.command
def padhye(
    *,
    loss: str = "1e-1,3e-2,1e-2,1e-3,1e-4,1e-5",
    rtt: str = "100ms",
    rto: str = "400ms",
    ack: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 1,
    window: Annotated[float, Parameter(validator=validators.Number(gt=0))] = math.inf,
    packet: str = "1500B",
    json: Json = False,
    out: Out = None,
) -> int:
    """Compute Reno's throughput with timeouts (Padhye et al. 1998), and without (1/sqrt(p)).

    Example: `lfn theory padhye --loss 1e-2,1e-3 --rtt 100ms --rto 400ms --ack 2`

    Args:
        loss: Loss events a packet, separated by commas.
        rtt: Round-trip time.
        rto: First retransmission timeout.
        ack: Segments covered by an ACK; 2: delayed ACKs.
        window: Largest window in segments.
        packet: Packet size on the wire, for Mbit/s.
    """
    from lfnlab.theory import closed

    losses, rtt_s = options.losses(loss), options.quantity("--rtt", rtt, options.TIMES)
    rto_s, size_b = (
        options.quantity("--rto", rto, options.TIMES),
        options.quantity("--packet", packet, options.SIZES),
    )

    def full(p: float) -> float:
        return closed.padhye_pps(p, rtt_s, rto_s, segments_per_ack=ack, max_window=window)

    def plain(p: float) -> float:
        return closed.mathis_pps(p, rtt_s, segments_per_ack=ack)

    result = {
        "rtt_s": rtt_s,
        "rto_s": rto_s,
        "segments_per_ack": ack,
        "loss_events_per_packet": losses,
        "padhye_pps": [full(p) for p in losses],
        "sqrt_pps": [plain(p) for p in losses],
    }

    def figure() -> Figure:
        from lfnlab.figures.theory import padhye as draw

        fine = options.spaced(losses)
        return draw(fine, [full(p) for p in fine], [plain(p) for p in fine], 8 * size_b / 1e6)

    rows = [
        (
            f"{p:g}",
            f"{full(p):.2f}",
            f"{full(p) * 8 * size_b / 1e6:.4g}",
            f"{plain(p):.2f}",
            f"{full(p) / plain(p):.3f}",
        )
        for p in losses
    ]
    headings = ("p", "Padhye (packets/s)", "Padhye (Mbit/s)", "1/sqrt(p) (packets/s)", "ratio")
    return options.tell(headings, rows, result, json, out, figure)
