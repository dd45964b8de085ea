"""Future work of the HTCP-BE paper: UDP in the background, rare losses, UDT, RTP, a real kernel.

It names background other than TCP, a variant that holds its window while losses are few, transport
over UDP, as RTP for streams that tolerate loss, and an implementation in a real kernel. Every law
meets the same background in a run, so laws are compared run by run.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from lfnlab import metrics
from lfnlab.analysis.table import Table, with_interval
from lfnlab.experiment.plan import Case
from lfnlab.figures import shapes
from lfnlab.papers.extension import Extension, OnKernel, select
from lfnlab.scenario.builder import dumbbell
from lfnlab.scenario.elements import Application, Burst, OnOff, Udp
from lfnlab.scenario.quantity import BITS_PER_S, SECONDS, parse
from lfnlab.statistics import interval, paired

if TYPE_CHECKING:
    from lfnlab.papers.paper import Execute
    from lfnlab.results.runs import Results, Run
    from lfnlab.scenario.builder import Scenario

OURS, HOLD = "htcp-be", "htcp-be:hold"
OVER_UDT = f"udt/{OURS}"
FORMS = ("no UDP", "constant", "on and off", "Pareto")
UDP = "UDP in the background"
LOSSES = "the variant hold under random losses"
COSTS = "what hold costs a flow beside it"
AGAINST = "UDT"
FRAMES = "frames of e-VLBI that come in time"
#: A stream without repair; the receiver's report once an RTT, to which such a sender does not
#: react, is left out.
RTP = "RTP"
CARRIERS = (RTP, OURS, HOLD, "htcp", "cubic")


def extend(settings: Mapping[str, Any], execute: Execute) -> Extension:
    """Run everything, tell it in tables."""
    results = execute(cases(settings), "HTCP-BE: what the paper leaves for later")
    own = settings["extensions"]
    udp_laws, losses, levels = udp_laws_of(settings), losses_of(own), levels_of(own)
    return Extension(
        results=results,
        answers={
            UDP: udp_answer(results, udp_laws),
            LOSSES: "; ".join(
                f"p = {case}: {mbps(results, LOSSES, HOLD, case)} Mbit/s, HTCP-BE "
                f"{mbps(results, LOSSES, OURS, case)}, CUBIC {mbps(results, LOSSES, 'cubic', case)}"
                for case in losses
            ),
            COSTS: "; ".join(f"{case}: {taken(results, case)}" for case in beside_cases(own))
            + " than beside HTCP-BE",
            AGAINST: "; ".join(
                f"{level}: HTCP-BE {mbps(results, AGAINST, OURS, level)} Mbit/s, UDT "
                f"{mbps(results, AGAINST, 'udt', level)}; one beside the other "
                f"{mbps(results, AGAINST, f'{OURS} + udt', level)} and "
                f"{mbps(results, AGAINST, f'{OURS} + udt', level, flow=1)}"
                for level in (levels[0], levels[-1])
            ),
            FRAMES: f"within {own['frames']['deadline']}: "
            + "; ".join(
                f"{name}: "
                + ", ".join(
                    f"{carrier} {in_time(results, carrier, name)} %" for carrier in CARRIERS
                )
                for name in streams_of(own)
                if name.endswith(f"level {own['frames']['levels'][-1]}")
            ),
        },
        tables=tables(results, settings),
        figures={
            "udp": (
                shapes.lines(
                    points(results, UDP, udp_laws, FORMS),
                    f"UDP of {own['udp']['rate']} on average",
                    "goodput (Mbit/s)",
                    names=FORMS,
                ),
                f"{UDP}: goodput of one flow of each law above background of level 1",
            ),
            "hold": (
                shapes.lines(
                    points(results, LOSSES, (OURS, HOLD, "cubic"), losses),
                    "probability that a packet is lost",
                    "goodput (Mbit/s)",
                    names=losses,
                ),
                f"{LOSSES}: goodput of one flow",
            ),
        },
    )


def tables(results: Results, settings: Mapping[str, Any]) -> dict[str, Table]:
    """One table for each question."""
    own = settings["extensions"]
    levels = levels_of(own)
    return {
        f"{UDP}: goodput in Mbit/s, coefficient of variation": Table(
            ("law", *FORMS),
            tuple(
                (
                    law,
                    *(
                        f"{mbps(results, UDP, law, form)}, {cov(results, law, form)}"
                        for form in FORMS
                    ),
                )
                for law in udp_laws_of(settings)
            ),
            1,
        ),
        f"{LOSSES}: goodput in Mbit/s": table(
            results, LOSSES, (OURS, HOLD, "cubic"), losses_of(own)
        ),
        f"{COSTS}: goodputs in Mbit/s": Table(
            ("beside", f"{OURS} : other", f"{HOLD} : other"),
            tuple(
                (
                    case,
                    *(
                        f"{mbps(results, COSTS, law, case)} : "
                        f"{mbps(results, COSTS, law, case, flow=1)}"
                        for law in (OURS, HOLD)
                    ),
                )
                for case in beside_cases(own)
            ),
            1,
        ),
        f"{AGAINST}: goodput in Mbit/s by background": Table(
            ("flows", *levels),
            (
                *table(results, AGAINST, (OURS, "udt", OVER_UDT), levels).rows,
                *(
                    (
                        f"{name}, of the two",
                        *(
                            mbps(results, AGAINST, f"{OURS} + udt", level, flow=flow)
                            for level in levels
                        ),
                    )
                    for flow, name in enumerate((OURS, "udt"))
                ),
            ),
            1,
        ),
        f"{FRAMES}: percent within {own['frames']['deadline']}": Table(
            ("stream, buffer, background", *CARRIERS),
            tuple(
                (name, *(in_time(results, carrier, name) for carrier in CARRIERS))
                for name in streams_of(own)
            ),
            1,
        ),
    }


def streams_of(own: Mapping[str, Any]) -> list[str]:
    """The cases of streams: a rate, a buffer, and a level of background traffic."""
    frames = own["frames"]
    return [
        f"{stream['rate']}, {bdp:g} BDP, level {level}"
        for stream in frames["streams"]
        for bdp in frames["buffers_bdp"]
        for level in frames["levels"]
    ]


def streams(own: Mapping[str, Any], seed: int) -> list[Case]:
    """A stream of constant rate over each carrier, on a link of about twice its rate."""
    frames, made, names = own["frames"], [], iter(streams_of(own))
    within_s, rtt_s = (parse(text, SECONDS) for text in (frames["deadline"], own["rtt"]))
    for stream, bdp, level in product(frames["streams"], frames["buffers_bdp"], frames["levels"]):
        rate_bps, link_bps = (parse(stream[key], BITS_PER_S) for key in ("rate", "link"))
        buffer = f"{bdp * link_bps * rtt_s / 8:.0f}B"
        base = path({**own, "rate": stream["link"]}, seed, buffer).with_background(level)
        name = next(names)
        # Its packets have 28 bytes of headers, and of the path only the queue before them.
        burst = Burst(start="0s", rate=f"{rate_bps * 1500 / 1472:.0f}bit/s")
        source = Udp(bursts=(burst,), deadline=f"{within_s - rtt_s / 2:g}s")
        made.append(case(FRAMES, RTP, name, base.with_udp(source)))
        writes = Application(rate=stream["rate"], deadline=frames["deadline"])
        made += [
            case(FRAMES, law, name, base.flow(law, application=writes))
            for law in CARRIERS
            if law != RTP
        ]
    return made


def shares(results: Results, carrier: str, name: str) -> list[float]:
    """Percent of the frames that are in time, by run."""
    found = []
    for run in select(results, question=FRAMES, law=carrier, case=name):
        of = run.summary["udp"] if carrier == RTP else run.summary["flows"]
        frames = of[0]["frames"]
        assert frames is not None
        found.append(100 * metrics.frames_in_time(**frames))
    return found


def in_time(results: Results, carrier: str, name: str) -> str:
    """Percent of the frames that are in time, with its interval."""
    return with_interval(interval(shares(results, carrier, name)))


def udp_laws_of(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The laws above UDP."""
    return (*settings["laws"], HOLD)


def losses_of(own: Mapping[str, Any]) -> list[str]:
    """The cases of random losses."""
    return [f"{loss:g}" for loss in own["losses"]]


def levels_of(own: Mapping[str, Any]) -> list[str]:
    """The cases of background traffic."""
    return [f"level {level}" for level in own["levels"]]


def cases(settings: Mapping[str, Any]) -> list[Case]:
    """All runs; the flow under test is the first."""
    own, made = settings["extensions"], []
    for seed in range(1, own["seeds"] + 1):
        for form in FORMS:
            made += [
                case(
                    UDP,
                    law,
                    form,
                    with_udp(path(own, seed).with_background(1), form, own).flow(law),
                )
                for law in (*settings["laws"], HOLD)
            ]
        for loss in own["losses"]:
            made += [
                case(LOSSES, law, f"{loss:g}", path(own, seed, loss=loss).flow(law))
                for law in (OURS, HOLD, "cubic")
            ]
        for buffer in own["buffers"]:
            for other in own["beside"]:
                made += [
                    case(
                        COSTS, law, f"{other}, {buffer}", pair(path(own, seed, buffer), law, other)
                    )
                    for law in (OURS, HOLD)
                ]
        for level in own["levels"]:
            base, name = path(own, seed).with_background(level), f"level {level}"
            made += [
                case(AGAINST, OURS, name, base.flow(OURS)),
                case(AGAINST, "udt", name, base.flow("udt")),
                case(AGAINST, OVER_UDT, name, base.flow(OURS, transport="udt")),
                case(AGAINST, f"{OURS} + udt", name, pair(base, OURS, "udt")),
            ]
        made += streams(own, seed)
    return made


def case(question: str, law: str, beside: str, scenario: Scenario) -> Case:
    """A run of an answer."""
    return Case(scenario, {"question": question, "law": law, "case": beside})


def path(own: Mapping[str, Any], seed: int, buffer: str = "1bdp", loss: float = 0.0) -> Scenario:
    """The bottleneck without flows."""
    return dumbbell(
        rate=own["rate"],
        rtt=own["rtt"],
        buffer=buffer,
        duration=own["duration"],
        warmup=own["warmup"],
        sample="1s",
        loss=loss,
        compat="ns2",
        seed=seed,
    )


def pair(base: Scenario, law: str, other: str) -> Scenario:
    """Two flows that start within a second."""
    return base.flow(law, start="uniform(0s, 1s)").flow(other, start="uniform(0s, 1s)")


def with_udp(base: Scenario, form: str, own: Mapping[str, Any]) -> Scenario:
    """UDP of the same mean rate in one of its forms."""
    udp, end_s = own["udp"], parse(own["duration"], SECONDS)
    rate_bps = parse(udp["rate"], BITS_PER_S)
    if form == "no UDP":
        return base
    if form == "constant":
        source = Udp(bursts=(Burst(start="0s", stop=own["duration"], rate=udp["rate"]),))
    elif form == "on and off":
        each_s = udp["on_off_s"]
        source = Udp(
            bursts=tuple(
                Burst(start=f"{t}s", stop=f"{t + each_s}s", rate=f"{2 * rate_bps:.0f}bit/s")
                for t in range(0, int(end_s), 2 * each_s)
            )
        )
    else:
        # Half of the time each is silent.
        each_bps = 2 * rate_bps / udp["sources"]
        source = Udp(on_off=OnOff(sources=udp["sources"], rate=f"{each_bps:.0f}bit/s"))
    return base.with_udp(source)


def goodputs(results: Results, question: str, law: str, beside: str, flow: int = 0) -> list[float]:
    """Of one of the flows in Mbit/s, by run."""
    runs = select(results, question=question, law=law, case=beside)
    return [run.goodputs[flow] / 1e6 for run in runs]


def mbps(results: Results, question: str, law: str, beside: str, flow: int = 0) -> str:
    """Goodput with its interval."""
    return with_interval(interval(goodputs(results, question, law, beside, flow)))


def cov(results: Results, law: str, form: str) -> str:
    """Coefficient of variation of the goodput in seconds beside a form of UDP."""
    runs = select(results, question=UDP, law=law, case=form)
    found = (run.summary["flows"][0]["cov"] for run in runs)
    return with_interval(interval(value for value in found if value is not None))


def udp_answer(results: Results, laws: Sequence[str]) -> str:
    """HTCP-BE's place beside each form of UDP, and its distance to the best other law."""
    said = []
    for form in FORMS[1:]:
        found = {law: goodputs(results, UDP, law, form) for law in laws}
        means = {law: interval(of).mean for law, of in found.items()}
        rank = sorted(means, key=lambda law: -means[law])
        rival = next(law for law in rank if law != OURS)
        margin = paired(found[OURS], found[rival])
        said.append(
            f"{form}: {mbps(results, UDP, OURS, form)} Mbit/s, place {rank.index(OURS) + 1} of "
            f"{len(rank)}, {with_interval(margin)} to {rival}, {mbps(results, UDP, HOLD, form)} "
            "with hold"
        )
    return "HTCP-BE beside UDP, " + "; ".join(said)


def taken(results: Results, beside: str) -> str:
    """Goodput of the other flow beside hold minus that beside HTCP-BE, run by run."""
    change = paired(
        goodputs(results, COSTS, HOLD, beside, flow=1),
        goodputs(results, COSTS, OURS, beside, flow=1),
    )
    more = with_interval(change)
    less = change.mean < 0
    return f"{more.removeprefix('-')} Mbit/s {'less' if less else 'more'}"


def beside_cases(own: Mapping[str, Any]) -> list[str]:
    """Other flow and buffer."""
    return [f"{other}, {buffer}" for buffer in own["buffers"] for other in own["beside"]]


def table(results: Results, question: str, laws: Sequence[str], columns: Sequence[str]) -> Table:
    """Goodput by law and case."""
    return Table(
        ("law", *columns),
        tuple((law, *(mbps(results, question, law, column) for column in columns)) for law in laws),
        1,
    )


def points(
    results: Results, question: str, laws: Sequence[str], columns: Sequence[str]
) -> dict[tuple[Any, ...], Any]:
    """Goodput by law and place of the case."""
    return {
        (law, x): interval(goodputs(results, question, law, column))
        for law in laws
        for x, column in enumerate(columns)
    }


def on_linux(settings: Mapping[str, Any], simulator: Execute, linux: Execute) -> Extension:
    """The eight protocols on paths of e-VLBI: Linux's own modules and ours, in both places."""
    own = settings["extensions"]["linux"]
    made = [
        Case(
            dumbbell(
                rate=rate,
                rtt=rtt,
                buffer=settings["buffer"],
                duration=own["duration"],
                warmup=own["warmup"],
                sample="100ms",
                seed=seed,
                compat="linux",
            ).flow(law, start="uniform(0s, 1s)", packet=settings["packet"]),
            {"law": law, "rate": rate, "rtt": rtt},
        )
        for rate, rtt in product(own["rates"], settings["rtts"])
        for law in own["laws"]
        for seed in range(1, own["seeds"] + 1)
    ]
    there, here = (run(made, "HTCP-BE: e-VLBI on Linux") for run in (linux, simulator))
    sides = {"simulator": here, "Linux": there}
    paths, laws = list(product(own["rates"], settings["rtts"])), own["laws"]
    found = {
        (side, law, rate, rtt): statistics.fmean(
            [run.goodputs[0] / 1e6 for run in select(results, law=law, rate=rate, rtt=rtt)]
        )
        for (side, results), law, (rate, rtt) in product(sides.items(), laws, paths)
    }
    apart = {
        law: max(
            abs(found["Linux", law, *path] / found["simulator", law, *path] - 1) for path in paths
        )
        for law in laws
    }
    worst = max(apart, key=apart.__getitem__)
    answer = (
        f"{len(laws)} laws on {len(paths)} paths: {worst} differs most from the simulator, by "
        f"{apart[worst] * 100:.2g} %; HTCP-BE by {apart[OURS] * 100:.2g} % at most"
    )
    rows = [
        (law, *(" | ".join(f"{found[side, law, *path]:.0f}" for side in sides) for path in paths))
        for law in laws
    ]
    names = ("law", *(f"{rate} × {rtt}" for rate, rtt in paths))
    heading = "Goodput of one flow in Mbit/s, simulator | Linux"
    return Extension(there, {"e-VLBI on Linux": answer}, {heading: Table(names, tuple(rows), 1)})


def on_kernel(settings: Mapping[str, Any]) -> OnKernel:
    """HTCP-BE, H-TCP and Westwood+, one flow, in this kernel and in the simulator."""
    own = settings["kernel"]
    made = [
        Case(
            dumbbell(
                rate=own["rate"],
                rtt=own["rtt"],
                buffer=buffer,
                duration=own["duration"],
                warmup=own["warmup"],
                sample="100ms",
                seed=seed,
            ).flow(law, start="uniform(0s, 1s)"),
            {"law": law, "buffer": buffer},
        )
        for buffer in own["buffers"]
        for law in (OURS, "htcp", "westwood")
        for seed in range(1, own["seeds"] + 1)
    ]

    def of_flow(key: str, scale: float = 1.0) -> Any:
        def measure(run: Run) -> float:
            flow: Mapping[str, Any] = run.summary["flows"][0]
            return float(flow[key]) * scale

        return measure

    return OnKernel(
        "HTCP-BE in Linux",
        made,
        {
            "goodput (Mbit/s)": of_flow("goodput_bps", 1e-6),
            "mean window (segments)": of_flow("mean_cwnd_segments"),
            "loss events": of_flow("loss_events"),
            "retransmits": of_flow("retransmits"),
        },
    )
