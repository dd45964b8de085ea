"""``lfn theory``: response functions, sawtooths, vector diagrams. Heavy modules wait."""

from __future__ import annotations

import dataclasses
import json as json_
import math
import re
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter, validators

from lfnlab.errors import StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

LAWS = "reno,hstcp,scalable,bic,cubic,htcp,westwood,htcp-be"
_RATES = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12}
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_SIZES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}
_FORMS = ("png", "pdf", "svg")

theory = App(
    name="theory",
    help="""\
What the laws do in theory: closed forms and sawtooths, no simulation.

Start here:

    lfn theory response --out response.png
    lfn theory recovery --rate 10Gbit/s --rtt 100ms
    lfn theory sawtooth --rate 10Gbit/s --rtt 100ms --buffer 0.2bdp --out sawtooth.png
    lfn theory vector --law reno,hstcp --rtt 120ms,60ms --out vector.png
    lfn theory fairness --rtt 60ms,120ms
    lfn theory padhye --rtt 100ms --rto 400ms

Laws are those of `lfn laws`, each by its default variant. `docs/theory.md` has the
figures and what they leave out.
""",
)

Json = Annotated[bool, Parameter("--json", negative="", help="Print one JSON object to stdout.")]
Out = Annotated[Path | None, Parameter(help="Draw into FILE.png, FILE.pdf or FILE.svg.")]
Losses = Annotated[int, Parameter(validator=validators.Number(gte=8, lte=100_000))]


@theory.command
def response(
    *,
    law: str = LAWS,
    loss: str = "1e-3,1e-4,1e-5,1e-6,1e-7,1e-8",
    rtt: str = "100ms",
    kept: float = 0.8,
    json: Json = False,
    out: Out = None,
) -> int:
    """Response functions: the mean window for a rate of loss events.

    The first number of a cell is the closed form; the second, after it, what the law's own sawtooth
    gives when it loses one packet in each 1/p. Example:

        lfn theory response --law reno,cubic --loss 1e-4,1e-7 --rtt 50ms

    Args:
        law: Names, with commas between.
        loss: Loss events a packet, with commas between.
        rtt: Round-trip time, for the laws that depend on it.
        kept: RTT_min/RTT_max at a loss, of which H-TCP, Westwood+ and HTCP-BE make their window.
    """
    from lfnlab.theory import closed, fluid
    from lfnlab.theory.senders import SENDERS

    names, losses, rtt_s = _names(law, check=False), _losses(loss), _quantity("--rtt", rtt, _TIMES)
    if not 0 < kept < 1:
        raise UsageError(f"--kept: {kept:g} is not between 0 and 1, for example 0.8")
    lines = {n: [closed.response(n, p, rtt_s, kept) for p in losses] for n in names}
    points = {
        n: [fluid.sawtooth_at_loss(n, p, rtt_s, kept).mean_window for p in losses]
        for n in names
        if n in SENDERS
    }
    result = {
        "rtt_s": rtt_s,
        "kept": kept,
        "loss_events_per_packet": losses,
        "mean_window_segments": {
            name: {"closed": lines[name], "sawtooth": points.get(name)} for name in names
        },
    }

    def figure() -> Figure:
        from lfnlab.theory.figures import curves

        fine = [float(p) for p in _spaced(losses)]
        return curves(
            {n: (fine, [closed.response(n, p, rtt_s, kept) for p in fine]) for n in names},
            {n: (losses, found) for n, found in points.items()},
            "loss events a packet",
            "mean window (segments)",
            falling=True,
        )

    rows = [
        (
            name,
            *(
                f"{line:.5g} {points[name][i]:.5g}" if name in points else f"{line:.5g}"
                for i, line in enumerate(lines[name])
            ),
        )
        for name in names
    ]
    return _tell(("law", *(f"p = {p:g}" for p in losses)), rows, result, json, out, figure)


@theory.command
def recovery(
    *,
    law: str = LAWS,
    rate: str = "10Gbit/s",
    rtt: str = "100ms",
    packet: str = "1500B",
    kept: float = 0.8,
    json: Json = False,
    out: Out = None,
) -> int:
    """Time to grow back after one loss on a full path without a queue.

    The figure shows it for rates from 10 Mbit/s to 100 Gbit/s at this RTT. Example:

        lfn theory recovery --rate 10Gbit/s --rtt 265ms --packet 9000B

    Args:
        law: Names, with commas between.
        rate: Of the path.
        rtt: Round-trip time.
        packet: Packet on the wire.
        kept: RTT_min/RTT_max at a loss, of which Westwood+ and HTCP-BE make their window.
    """
    from lfnlab.theory import closed

    names, rtt_s = _names(law), _quantity("--rtt", rtt, _TIMES)
    size_bits = 8 * _quantity("--packet", packet, _SIZES)
    window = _quantity("--rate", rate, _RATES) * rtt_s / size_bits
    if not 0 < kept < 1:
        raise UsageError(f"--kept: {kept:g} is not between 0 and 1, for example 0.8")
    if window < 100:
        raise UsageError(
            f"--rate and --rtt: the path holds {window:.3g} packets; "
            "allowed: 100 or more, where no law is Reno"
        )
    times_s = {name: closed.recovery_s(name, window, rtt_s, kept) for name in names}
    result = {"window_segments": window, "rtt_s": rtt_s, "kept": kept, "recovery_s": times_s}

    def figure() -> Figure:
        from lfnlab.theory.figures import curves

        rates = [r for r in _spaced([1e7, 1e11]) if r * rtt_s / size_bits >= 100]
        return curves(
            {
                name: (
                    [r / 1e6 for r in rates],
                    [closed.recovery_s(name, r * rtt_s / size_bits, rtt_s, kept) for r in rates],
                )
                for name in names
            },
            {name: ([window * size_bits / rtt_s / 1e6], [times_s[name]]) for name in names},
            f"rate of the path (Mbit/s), RTT {rtt}",
            "time to grow back after a loss (s)",
        )

    rows = [(name, f"{s:.5g}", f"{s / rtt_s:.5g}") for name, s in times_s.items()]
    return _tell(("law", "recovery (s)", "round trips"), rows, result, json, out, figure)


@theory.command
def sawtooth(
    *,
    law: str = LAWS,
    rate: str = "10Gbit/s",
    rtt: str = "100ms",
    buffer: str = "1bdp",
    packet: str = "1500B",
    span: str | None = None,
    json: Json = False,
    out: Out = None,
) -> int:
    """The sawtooth of one flow on a path: period, mean window, utilisation, loss events.

    Example: `lfn theory sawtooth --law reno,cubic --rate 1Gbit/s --rtt 40ms --buffer 0.2bdp`

    Args:
        law: Names, with commas between.
        rate: Of the bottleneck.
        rtt: Base RTT.
        buffer: `1bdp`, `250 packets`, `12.5MB`, or `0 packets`.
        packet: Packet on the wire.
        span: Time that the figure shows; default three of the median period.
    """
    from lfnlab.theory import fluid

    names, rtt_s = _names(law), _quantity("--rtt", rtt, _TIMES)
    size_b = _quantity("--packet", packet, _SIZES)
    rate_pps = _quantity("--rate", rate, _RATES) / (8 * size_b)
    bdp = rate_pps * rtt_s
    queue = _quantity("--buffer", buffer, _buffer_units(bdp, size_b), zero=True)
    span_s = None if span is None else _quantity("--span", span, _TIMES)
    if bdp + queue < 4:
        raise UsageError(
            f"--rate, --rtt, --buffer: path and buffer hold {bdp + queue:.3g} packets; "
            "allowed: 4 or more"
        )
    teeth = [fluid.sawtooth(name, rate_pps, rtt_s, queue) for name in names]
    left_out = ("law", "cycle_s", "cycle")
    result = {
        "rate_pps": rate_pps,
        "rtt_s": rtt_s,
        "buffer_packets": queue,
        "laws": {
            tooth.law: {
                field.name: getattr(tooth, field.name)
                for field in dataclasses.fields(tooth)
                if field.name not in left_out
            }
            for tooth in teeth
        },
    }

    def figure() -> Figure:
        from lfnlab.theory.figures import sawtooths

        shown_s = span_s or 3 * statistics.median(tooth.period_s for tooth in teeth)
        return sawtooths(teeth, shown_s, bdp, queue)

    rows = [
        (
            tooth.law,
            f"{tooth.period_s:.4g}",
            f"{tooth.window_before:,.0f}",
            f"{tooth.window_after:,.0f}",
            f"{tooth.mean_window:,.0f}",
            f"{1e3 * tooth.mean_rtt_s:.4g}",
            f"{100 * tooth.utilisation:.2f}",
            f"{tooth.loss_events_per_packet:.3g}",
            f"{tooth.growth:.3g}",
        )
        for tooth in teeth
    ]
    headings = (
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
    return _tell(headings, rows, result, json, out, figure)


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
    json: Json = False,
    out: Out = None,
) -> int:
    """Two flows that lose together: Chiu and Jain's vector diagram, and where it ends.

    As in Fig. 3 of the CW-HSTCP paper, flow 1 has the longer RTT unless told otherwise. A panel
    shows one law; a pair `a+b` gives flow 1 law a and flow 2 law b. Examples:

        lfn theory vector --out vector.png
        lfn theory vector --law reno+cubic --rtt 50ms,50ms --start 100,4000 --axes rate --json

    Args:
        law: Names, or pairs, with commas between.
        rtt: Base RTT of flow 1 and of flow 2.
        rate: Of the bottleneck.
        buffer: `1bdp` (of the mean RTT), `250 packets`, `12.5MB`.
        packet: Packet on the wire.
        start: Windows of flow 1 and flow 2 in segments, as `3000,1000`; as often as needed. Default
            two starts, from which either flow has two thirds of 90 % of the link.
        losses: Losses to go through.
        axes: Windows, or rates.
    """
    from lfnlab.theory import fluid

    rtts_s = _pair("--rtt", rtt)
    size_b = _quantity("--packet", packet, _SIZES)
    rate_pps = _quantity("--rate", rate, _RATES) / (8 * size_b)
    bdp = rate_pps * sum(rtts_s) / 2
    queue = _quantity("--buffer", buffer, _buffer_units(bdp, size_b), zero=True)
    path = fluid.Bottleneck(rate_pps, rtts_s, queue)
    starts = [_start(text) for text in start]
    if not starts:
        starts = [
            (first * rate_pps * rtts_s[0], second * rate_pps * rtts_s[1])
            for first, second in ((0.6, 0.3), (0.3, 0.6))
        ]
    pairs = {name: _two_laws(name) for name in _names(law, check=False)}
    done = fluid.after_losses(losses)
    courses = {
        name: [fluid.synchronised(pair, path, windows, done) for windows in starts]
        for name, pair in pairs.items()
    }
    ends = {name: [fluid.shares(course, path) for course in each] for name, each in courses.items()}
    result = {
        "rate_pps": rate_pps,
        "base_rtts_s": rtts_s,
        "buffer_packets": queue,
        "losses": losses,
        "laws": {
            name: [
                {
                    "start_segments": windows,
                    "window_after_last_loss_segments": course.epochs[-1].after.tolist(),
                    **dataclasses.asdict(end),
                    "loss_s": [epoch.end_s for epoch in course.epochs],
                    "window_before_segments": [e.before.tolist() for e in course.epochs],
                    "window_after_segments": [e.after.tolist() for e in course.epochs],
                }
                for windows, course, end in zip(starts, courses[name], ends[name], strict=True)
            ]
            for name in courses
        },
    }

    def figure() -> Figure:
        from lfnlab.theory.figures import vectors

        return vectors(courses, path, axes)

    rows = [
        (
            name,
            f"{windows[0]:.0f}, {windows[1]:.0f}",
            f"{after[0]:.0f}, {after[1]:.0f}",
            " / ".join(f"{100 * share:.2f}" for share in end.shares),
            f"{100 * end.utilisation:.1f}",
            f"{end.jain:.3f}",
            "-" if math.isnan(end.exponent) else f"{end.exponent:.2f}",
            "yes" if end.settled else "no",
        )
        for name in courses
        for windows, course, end in zip(starts, courses[name], ends[name], strict=True)
        for after in [course.epochs[-1].after]
    ]
    headings = ("law", "start", "end", "shares (%)", "link (%)", "Jain", "exponent", "settled")
    return _tell(headings, rows, result, json, out, figure)


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
    json: Json = False,
) -> int:
    """RTT unfairness: E of throughput_1 / throughput_2 = (RTT_2 / RTT_1)^E, for two flows of a law.

    Once where both lose together, and once where each loses on its own at the same rate. Without a
    buffer Westwood+ and HTCP-BE, which fall to what the path holds, never fall. 0 is fair to every
    RTT, 1 gives equal windows, 2 is Reno's with losses together. Example:

        lfn theory fairness --law reno,cubic --rtt 20ms,200ms

    Args:
        law: Names, with commas between.
        rtt: Base RTT of flow 1 and of flow 2, which differ.
        rate: Of the bottleneck where they lose together.
        buffer: There: `0.2bdp` (of the mean RTT), `250 packets`, `12.5MB`.
        packet: Packet on the wire.
        loss: Loss events a packet, where each loses on its own.
        kept: RTT_min/RTT_max at such a loss.
        losses: Losses to go through together.
    """
    from lfnlab.theory import closed, fluid

    rtts_s = _pair("--rtt", rtt)
    if rtts_s[0] == rtts_s[1]:
        raise UsageError(f'--rtt: "{rtt}" are equal; allowed: two RTTs that differ, 60ms,120ms')
    (loss_rate, *_), names = _losses(loss), _names(law)
    size_b = _quantity("--packet", packet, _SIZES)
    rate_pps = _quantity("--rate", rate, _RATES) / (8 * size_b)
    bdp = rate_pps * sum(rtts_s) / 2
    queue = _quantity("--buffer", buffer, _buffer_units(bdp, size_b), zero=True)
    path = fluid.Bottleneck(rate_pps, rtts_s, queue)
    found: dict[str, Any] = {}
    for name in names:
        together = None
        if queue or name not in ("westwood", "htcp-be"):
            windows = [0.45 * rate_pps * rtt_s for rtt_s in rtts_s]
            course = fluid.synchronised([name, name], path, windows, fluid.after_losses(losses))
            together = fluid.shares(course, path)
        apart = closed.independent_exponent(name, loss_rate, rtts_s, kept)
        found[name] = {
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
    rows = []
    for name, entry in found.items():
        end = entry["synchronised"]
        rows.append(
            (
                name,
                f"{end['exponent']:.2f}" if end else "-",
                " / ".join(f"{100 * share:.2f}" for share in end["shares"]) if end else "-",
                f"{entry['independent_exponent']:.2f}",
            )
        )
    return _tell(
        ("law", "E, losses together", "shares (%)", "E, losses apart"),
        rows,
        result,
        json,
        None,
        None,
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
    """Reno's throughput with timeouts (Padhye et al. 1998), beside 1/sqrt(p) without.

    Example: `lfn theory padhye --loss 1e-2,1e-3 --rtt 100ms --rto 400ms --ack 2`

    Args:
        loss: Loss events a packet, with commas between.
        rtt: Round-trip time.
        rto: First timeout.
        ack: Segments that one ACK covers, 2 with delayed ACKs.
        window: Largest window in segments.
        packet: Packet on the wire, for Mbit/s.
    """
    from lfnlab.theory import closed

    losses, rtt_s = _losses(loss), _quantity("--rtt", rtt, _TIMES)
    rto_s, size_b = _quantity("--rto", rto, _TIMES), _quantity("--packet", packet, _SIZES)

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
        from lfnlab.theory.figures import padhye as draw

        fine = _spaced(losses)
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
    return _tell(headings, rows, result, json, out, figure)


def _tell(
    headings: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    result: Mapping[str, object],
    as_json: bool,
    out: Path | None,
    figure: Any,
) -> int:
    """Prints the table or the JSON object, and draws the figure where one is asked for."""
    from lfnlab.summary import Table, plain

    if out is not None:
        _draw(out, figure)
    if as_json:
        print(json_.dumps(_without_nan(result), indent=1, allow_nan=False))
        return 0
    print(*plain(Table(headings, tuple(rows), 1)), sep="\n")
    if out is not None:
        print(f"figure: {out}")
    return 0


def _draw(out: Path, figure: Any) -> None:
    from lfnlab.plot import rendered

    form = out.suffix.removeprefix(".")
    if form not in _FORMS:
        raise UsageError(f'--out: "{out}" is no {", ".join(f".{name}" for name in _FORMS)}')
    try:
        out.write_bytes(rendered(figure(), (form,))[form])
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}") from None


def _without_nan(value: Any) -> Any:
    """JSON has no NaN and no infinity: null."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _names(text: str, *, check: bool = True) -> list[str]:
    from lfnlab.theory.senders import sender

    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names if check else []:
        sender(name, 100.0)
    return names


def _two_laws(text: str) -> tuple[str, str]:
    first, plus, second = text.partition("+")
    pair = (first, second if plus else first)
    for name in pair:
        _names(name)
    return pair


def _losses(text: str) -> list[float]:
    found = []
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not 1e-12 <= value < 1:
            raise UsageError(
                f'--loss: "{part}" is no rate from 1e-12 to below 1; write for example 1e-3,1e-5'
            )
        found.append(value)
    return found


def _start(text: str) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        first = second = math.nan
    if not (2 <= first < math.inf and 2 <= second < math.inf):
        raise UsageError(
            f'--start: "{text}" is not two windows of at least 2 segments; '
            "write for example 3000,1000"
        )
    return first, second


def _pair(option: str, text: str) -> tuple[float, float]:
    parts = text.split(",")
    if len(parts) != 2:
        raise UsageError(f'{option}: "{text}" is not two times; write for example 120ms,60ms')
    first, second = (_quantity(option, part, _TIMES) for part in parts)
    return first, second


def _buffer_units(bdp: float, size_b: float) -> dict[str, float]:
    sizes = {unit: size / size_b for unit, size in _SIZES.items()}
    return {"bdp": bdp, "packets": 1.0, "packet": 1.0, **sizes}


def _quantity(option: str, text: str, units: Mapping[str, float], *, zero: bool = False) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(\S+)\s*", text)
    if found is None or found[2] not in units:
        raise UsageError(
            f'{option}: "{text}" is not a number and a unit; allowed units: {", ".join(units)}'
        )
    value = float(found[1]) * units[found[2]]
    if value <= 0 and not (zero and value == 0):
        raise UsageError(f'{option}: "{text}" is not above 0')
    return value


def _spaced(ends: Sequence[float], points: int = 121) -> list[float]:
    """Points evenly on a logarithmic axis between the smallest and the largest."""
    low, high = math.log(min(ends)), math.log(max(ends))
    return [math.exp(low + (high - low) * i / (points - 1)) for i in range(points)]
