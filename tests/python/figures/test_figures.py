"""Do the figures of any experiment hold every mark and text, and say what the numbers say?

The experiments are drawn at random and their numbers made up: nothing is simulated. A fixed handful
runs by default, as many as ``LFN_FIGURES`` says otherwise, of the seed ``LFN_SEED``.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer

from lfnlab import dumbbell
from lfnlab.analysis.summary import INTERVALS
from lfnlab.control_laws.registry import laws
from lfnlab.figures import plot, registry
from lfnlab.figures.columns import SCALES
from lfnlab.figures.factors import Shape, numbers
from lfnlab.figures.looks import alike, looks
from lfnlab.figures.shapes import lines, means
from lfnlab.figures.spread import DOT, spread
from lfnlab.figures.style import PRESETS, applied
from lfnlab.results.runs import Results, Run
from lfnlab.statistics import FEW, Interval, interval
from marks import faults, same_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENTS = int(os.environ.get("LFN_FIGURES", "8"))
SEED = os.environ.get("LFN_SEED", "paths")
#: 97.5 % quantiles of Student's t for 1 to 9 degrees of freedom, as tables print them.
T = (12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216)
NAMES = [f"{law.name}:{variant}" if i else law.name for law in laws() for i, variant in
         enumerate(law.variants)]  # fmt: skip
SCENARIO = dumbbell(rate="100Mbit/s", rtt="40ms", buffer="1bdp").flow("reno")
FACTORS = {
    "link.queue.size": ["0.1bdp", "0.25bdp", "0.5bdp", "1bdp", "2bdp", "4bdp"],
    "link.rate": ["100Mbit/s", "1Gbit/s", "10Gbit/s"],
    "flow[*].rtt": ["10ms", "20ms", "40ms", "80ms", "160ms"],
    "flow[0].packet": ["1500B", "250 packets"],
    "level": [0, 1, 2, 3],
    "link.loss": [0.0, 1e-06, 1e-05, 1e-04, 1e-03],
    "link.queue.kind": ["droptail", "codel", "fq_codel"],
}


class Made(Run):
    """A run that was not run."""

    summary: dict[str, Any]  # type: ignore[assignment]

    @classmethod
    def of(cls, rng: Random, place: int, seed: int, factors: Mapping[str, Any],
           flows: list[tuple[str, list[str]]], links: list[str]) -> Made:  # fmt: skip
        run = cls(Path(f"run-{place}-{seed}"), seed, dict(factors))
        size = 10.0 ** rng.uniform(-1, 1)
        made = []
        for number, (law, way) in enumerate(flows):
            goodput = rng.choice([0.0, rng.uniform(1e5, 1e8) * size, rng.gauss(5e7, 1e6)])
            made.append(
                {
                    "id": number,
                    "law": law,
                    "direction": way[0] if way[0] in ("forward", "reverse") else "forward",
                    "routes": [{"from_s": 0.0, "links": way}],
                    "start_s": 0.0,
                    "rtt_s": 0.04,
                    "goodput_bps": goodput,
                    "delivered_bytes": goodput * 10.0 / 8.0,
                    "cov": rng.choice([None, rng.uniform(0, 2)]),
                    **dict.fromkeys(("retransmits", "timeouts", "loss_events"), rng.randint(0, 99)),
                }
            )
        run.__dict__["summary"] = {
            "seed": seed,
            "hash": "0" * 16,
            "warmup_s": 2.0,
            "sim_s": 12.0,
            "flows": made,
            "links": [
                {
                    "id": name,
                    "rate_bps": 1e8,
                    "utilization": rng.random(),
                    "mean_queue_s": 0.01,
                    "drops": 3,
                }
                for name in links
            ],
            "changes_s": rng.choice([[], [3.0, 7.0]]),
        }
        run.__dict__["scenario"] = SCENARIO
        run.__dict__["height"] = size
        return run

    def table(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """A few samples of each flow or link, of a height that differs from run to run."""
        t_s = np.linspace(0.0, 12.0, 13)
        rng = np.random.default_rng(self.seed)
        key, count = ("flow", len(self.summary["flows"])) if name == "flows" else (
            "link", len(self.summary["links"]))  # fmt: skip
        parts = []
        for number in range(count):
            values = self.__dict__["height"] * rng.random(t_s.size) * 100
            made: dict[str, Any] = {"t_s": t_s, key: np.full(t_s.size, number), "srtt_s": values}
            if name == "flows":
                total = np.cumsum(values * 1e4).astype(int)
                made |= {"cwnd_seg": values, "delivered_bytes": total}
            else:
                made |= {"packets": values.astype(int)}
            parts.append(pl.DataFrame(made))
        return pl.concat(parts).sort("t_s")


def experiment(number: int) -> Results:
    """One to three factors, one to twenty laws, one to ten seeds, ways forth, back or crossed."""
    rng = Random(f"{SEED} {number}")
    links = rng.choice([["forward", "reverse"], ["forward", "reverse"], ["a", "b", "the far link"]])
    chosen = rng.sample(NAMES, rng.choice([1, 2, 3, 8, 20]))
    names = rng.sample(list(FACTORS), rng.randint(0, 2))
    key = rng.choice(["law", "flow[*].law"])
    values = [rng.sample(FACTORS[name], rng.randint(1, len(FACTORS[name]))) for name in names]
    drawn = [*itertools.product(*values)]
    if len(names) > 1 and rng.random() < 0.3:  # as a Latin hypercube: no value comes twice
        drawn = [tuple(10.0 ** rng.uniform(-3, 3) for _ in names) for _ in range(rng.randint(3, 8))]
    seeds = range(1, rng.randint(1, 10) + 1)
    ways = [[links[0]], [links[1]]] if rng.random() < 0.5 else [[links[0]]]
    if links[0] == "a":
        ways.append(["a", "b"])
    each, rival = rng.randint(1, 3), rng.random() < 0.3
    runs = []
    for place, (law, rest) in enumerate(itertools.product(chosen, drawn)):
        flows = [(law, way) for way in ways for _ in range(each)]
        if rival and key == "law":
            flows.append(("reno", ways[0]))
        factors: dict[str, Any] = {key: law, **dict(zip(names, rest, strict=True))}
        runs += [Made.of(rng, place, seed, factors, flows, links) for seed in seeds]
    return Results(Path("none"), "made up", tuple(runs))


class Named(NamedTuple):
    """A figure of :data:`registry.FIGURES` with the words about what it leaves out."""

    name: str
    entry: Any
    figure: Figure
    says: str


class Drawn(NamedTuple):
    """An experiment with its figures."""

    number: int
    results: Results
    traced: list[Run]
    figures: list[Named]


@pytest.fixture(scope="module", params=range(EXPERIMENTS))
def made(request: pytest.FixtureRequest) -> Drawn:
    results = experiment(request.param)
    traced = plot.some(plot.first_seed(results), registry.MOST_TRACED)
    figures = [
        Named(name, entry, *made)
        for name, entry in registry.FIGURES.items()
        if (made := entry.draw(results, traced)) is not None
    ]
    with plot.house_style():
        for _, _, figure, _ in figures:  # one layout for all tests
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
    return Drawn(request.param, results, traced, figures)


def test_figures_hold_what_they_draw(made: Drawn) -> None:
    for name, _, figure, _ in made.figures:
        found = [*faults(figure), *same_bars(figure)]
        assert found == [], f"experiment {made.number} of seed {SEED}, {name}"


def drawn(figure: Figure) -> tuple[list[float], list[float], list[float]]:
    """Means, half-widths and single runs as they stand in a figure of any shape."""
    seen, halves, runs = [], [], []
    for axes in figure.axes:
        seen += [bar.get_width() for bar in axes.patches]
        across = 0 if axes.patches else 1
        for container in axes.containers:
            if isinstance(container, ErrorbarContainer):
                line, _, collections = container.lines
                seen += [] if axes.patches else list(line.get_ydata())
                halves += [
                    float(np.ptp(segment[:, across])) / 2
                    for bars in collections
                    for segment in bars.get_segments()
                ]
        seen += [value for image in axes.images for value in np.ma.compressed(image.get_array())]
        dots = [line for line in axes.lines if line.get_markeredgecolor() == DOT["mec"]]
        runs += [value for line in dots for value in np.asarray(line.get_data())[across]]
    return sorted(seen), sorted(half for half in halves if half > 0.0), sorted(runs)


def test_means_and_intervals_are_those_of_an_independent_computation(made: Drawn) -> None:
    results = made.results
    if not results.rows():
        return
    groups: dict[Any, dict[int, float]] = {}  # by case, law and way, straight from the flows
    for run in results.runs:
        for flow in run.summary["flows"]:
            case = (*run.factors.items(), flow["law"], str(flow["routes"]))
            of_seed = groups.setdefault(case, {})
            of_seed[run.seed] = of_seed.get(run.seed, 0.0) + flow["goodput_bps"]
    values = results.intervals("goodput_bps")
    figure, left_out = means(values, results.keys, "bit/s", "")
    if left_out:
        return
    shape = Shape.of([*values], results.keys)
    times = len(shape.axes) if shape.mark == "points" else 1  # a panel for each factor
    expected = sorted(statistics.fmean(group.values()) for group in groups.values()) * times
    wide = [
        T[len(g) - 2] * statistics.stdev(g.values()) / math.sqrt(len(g))
        for g in groups.values()
        if len(g) >= FEW
    ] * times
    few = [run for g in groups.values() if 1 < len(g) < FEW for run in g.values()] * times
    seen, halves, runs = drawn(figure)
    assert seen == pytest.approx(sorted(expected), rel=1e-6, abs=1e-2)
    if shape.mark != "cells":
        some = sorted(half for half in wide if half > 0.0)
        assert halves == pytest.approx(some, rel=1e-5, abs=1e-2)
        assert runs == pytest.approx(sorted(few), rel=1e-6, abs=1e-2)


def scale_of(label: str) -> float:
    """Of the unit in the brackets of a label; 1 without one."""
    units = {unit: scale for scales in SCALES.values() for scale, unit in scales}
    return next((units[unit] for unit in units if f"({unit})" in label), 1.0)


def label_of(figure: Figure, axes: Axes, *, across: bool) -> str:
    """The label of an axis, its own or the figure's."""
    own = axes.get_xlabel() if across else axes.get_ylabel()
    return (own or (figure.get_supxlabel() if across else figure.get_supylabel())).replace(
        "\n", " "
    )


def test_every_row_is_drawn_or_counted_in_the_unit_of_the_label(made: Drawn) -> None:
    results = made.results
    for name, entry, figure, says in made.figures:
        if not isinstance(entry, registry.Means):
            continue
        table = entry.data(results)
        keys = entry.cases(entry.grouped(results)).keys
        shape = Shape.of(table.select(keys).rows(), keys)
        expected = [v for v in table[entry.metric].drop_nulls().to_list() if math.isfinite(v)]
        seen, _, _ = drawn(figure)
        bars = bool(figure.axes[0].patches)
        label = figure.axes[-1].get_ylabel() if shape.mark == "cells" else label_of(
            figure, figure.axes[0], across=bars)  # fmt: skip
        seen = [value * scale_of(label) for value in seen if math.isfinite(value)]
        if re.search(r"\d+ of \d+ panels", says):
            assert 0 < len(seen) < len(expected), name
        else:
            times = len(shape.axes) if shape.mark == "points" else 1
            assert sorted(seen) == pytest.approx(sorted(expected * times), rel=1e-6), name


def test_every_trace_is_drawn_or_counted(made: Drawn) -> None:
    for name, entry, figure, says in made.figures:
        if isinstance(entry, registry.Means):
            continue
        parts = {entry.label: entry.series} if isinstance(entry, registry.Traces) else entry.parts
        runs = made.traced[: None if isinstance(entry, registry.Traces) else 1]
        every = [len([*series(run)]) for series in parts.values() for run in runs]
        lines = [
            sum(np.ptp(line.get_xdata()) > 0 for line in axes.lines)  # changes are upright
            for axes in figure.axes
        ]
        assert lines == [min(10, count) for count in every if count], name
        most = re.search(r"10 of up to (\d+) traces", says)
        assert (int(most[1]) if most else 0) == (max(every) if max(every) > 10 else 0), name


def test_numbers_at_axes_are_places_on_them(made: Drawn) -> None:
    for name, _, figure, _ in made.figures:
        for axes in figure.axes:
            for across, axis in ((True, axes.xaxis), (False, axes.yaxis)):
                if axes.patches and not across:  # names, which may be numbers
                    continue
                told = [(tick.get_loc(), tick.label1.get_text()) for tick in axis.get_major_ticks()]
                told = [(place, text) for place, text in told if text]
                try:
                    values = [
                        float(text.replace("\u2212", "-").replace(",", "")) for _, text in told
                    ]
                except ValueError:  # names: their axis has no unit
                    label = label_of(figure, axes, across=across)
                    assert scale_of(label) == 1.0, (name, label, told)
                    continue
                counted = [place for place, _ in told] == sorted({round(p) for p, _ in told})
                if not counted:
                    assert values == pytest.approx([place for place, _ in told], rel=0.01), name


def test_a_law_has_one_colour_in_all_figures(made: Drawn) -> None:
    if len({name for run in made.results.runs for name in run.laws}) > 8:
        return  # dashes tell eight series of a colour apart; of more some take another colour
    inks: dict[str, set[str]] = {}
    for _, _, figure, _ in made.figures:
        for handle in (line for one in figure.legends for line in one.get_lines()):
            if handle.get_label() in NAMES:
                inks.setdefault(str(handle.get_label()), set()).add(to_hex(handle.get_color()))
        for axes in figure.axes:
            names = {tick.get_loc(): tick.label1.get_text() for tick in axes.yaxis.majorTicks}
            for bar in axes.patches:
                if (law := names.get(round(bar.get_y() + bar.get_height() / 2))) in NAMES:
                    inks.setdefault(law, set()).add(to_hex(bar.get_facecolor()))
    assert {law: found for law, found in inks.items() if len(found) > 1} == {}


def test_no_interval_reaches_where_no_value_can_be(made: Drawn) -> None:
    for name, entry, figure, _ in made.figures:
        if not isinstance(entry, registry.Means):
            continue
        for axes in figure.axes:
            across = 0 if axes.patches else 1
            for container in axes.containers:
                if isinstance(container, ErrorbarContainer):
                    ends = [
                        s[:, across] for bars in container.lines[2] for s in bars.get_segments()
                    ]
                    low, high = np.min(ends, initial=0.0), np.max(ends, initial=0.0)
                    assert low >= 0.0, name
                    assert high <= 1.0 or entry.metric not in ("jain", "utilization"), name


@pytest.mark.parametrize(
    ("values", "bounds", "ends"),
    [
        ([0, 0, 0, 0, 9], (0, math.inf), (0.0, 6.798)),
        ([0.9, 1, 1, 1, 1], (0, 1), (0.924, 1.0)),
        ([-1, 0, 0, 0, 9], (0, math.inf), (-3.564, 6.764)),  # a bound that a run breaks is none
        ([1, 2, 3, 4, 5], (-math.inf, math.inf), (1.037, 4.963)),
    ],
)
def test_an_interval_ends_at_the_bounds_of_its_quantity(
    values: list[float], bounds: tuple[float, float], ends: tuple[float, float]
) -> None:
    found = spread(interval(values), bounds)
    assert found.dots == ()
    assert found.ends == pytest.approx(ends, abs=1e-3)


@pytest.mark.parametrize("runs", [1, 2, 4])
def test_few_runs_have_no_interval(runs: int) -> None:
    values = [float(i) for i in range(runs)]
    found = spread(interval(values), (0.0, math.inf))
    assert found.ends is None
    assert found.dots == (() if runs == 1 else tuple(values))


def test_points_move_aside_on_names_and_never_on_numbers() -> None:
    values = {(law, x): interval([1.0, 2, 3, 4, 5]) for law in ("reno", "bbr") for x in (0, 1, 2)}
    for names in ((), ("a", "b", "c")):
        figure = lines(values, "x", "y", names=names)
        places = {float(x) for line in figure.axes[0].lines[::1] for x in line.get_xdata()}
        assert (places == {0.0, 1.0, 2.0}) == (names == ())
    of_numbers = {
        (f"{x}ms", law): interval([1.0] * 5) for x in (1, 2, 4) for law in ("reno", "bbr")
    }
    figure, _ = means(of_numbers, ("rtt", "law"), "y", "")
    assert {float(x) for line in figure.axes[0].lines for x in line.get_xdata()} == {1.0, 2.0, 4.0}


@pytest.mark.skipif(SEED != "paths", reason="THE FIXED EXPERIMENTS ARE THOSE OF THE SEED paths")
def test_the_fixed_experiments_have_every_shape() -> None:
    """So that the tests above mean something: bars, lines, points and heat maps are among them."""
    marks = set()
    for number in range(EXPERIMENTS):
        results = experiment(number)
        if results.rows():
            marks.add(Shape.of([*results.intervals("goodput_bps")], results.keys).mark)
    assert marks == {"bars", "lines", "points", "cells"}


@pytest.mark.parametrize(
    ("key", "values", "label", "names", "logarithmic"),
    [
        ("link.queue.size", ["1bdp", "0.1bdp"], "queue.size (BDP)", ["0.1", "1"], False),
        ("flow[0].rtt", ["160ms", "1s"], "rtt (s)", ["0.16", "1"], False),
        ("link.rate", ["1Gbit/s", "100Mbit/s"], "rate (Gbit/s)", ["0.1", "1"], False),
        ("link.rate", ["1Gbit/s", "1Mbit/s"], "rate (Gbit/s)", ["0.001", "1"], True),
        (
            "link.queue.size",
            ["250 packets", "1 packet"],
            "queue.size (packets)",
            ["1", "250"],
            True,
        ),
        ("link.loss", [1e-4, 0.0, 1e-6], "loss", ["0", "1e-06", "0.0001"], False),
        ("link.rate_bps", [2e9, 1e9], "rate (Gbit/s)", ["1", "2"], False),
    ],
)
def test_a_factor_of_numbers_has_an_axis_in_its_unit(
    key: str, values: list[Any], label: str, names: list[str], logarithmic: bool
) -> None:
    found = numbers(key, values)
    assert found is not None
    assert (found.label, [*found.names.values()]) == (label, names)
    assert found.logarithmic == logarithmic
    assert [*found.places.values()] == sorted(found.places.values())


def test_names_and_mixed_quantities_have_no_axis() -> None:
    assert numbers("link.queue.size", ["1bdp", "250 packets"]) is None
    assert numbers("link.queue.kind", ["droptail", "codel"]) is None
    assert numbers("x", [1, "1ms"]) is None
    assert numbers("x", [1.0, math.nan]) is None


def test_a_swept_law_names_bars_and_other_factors_name_panels() -> None:
    values = {
        (swept, size, law, route): Interval(mean, 0.1, 3)
        for mean, (swept, size, (law, route)) in enumerate(
            (swept, size, flow)
            for swept in ("cubic", "htcp", "bbr")
            for size in ("0.1bdp", "1bdp")
            for flow in ((swept, "forward"), ("cubic", "reverse"))
        )
    }
    keys = ("flow[0].law", "link.queue.size", "law", "route")
    figure, left_out = plot.bars(values, keys, "goodput (Mbit/s)")
    assert left_out == ""
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["queue.size 0.1bdp", "queue.size 1bdp"]
    assert [len(axes.patches) for axes in figure.axes] == [6, 6]
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == [
        "cubic, forward",
        "cubic, reverse",
        "htcp, forward",
        "cubic, reverse, beside htcp",
        "bbr, forward",
        "cubic, reverse, beside bbr",
    ]


def test_heat_maps_show_forward_data_before_reverse_data() -> None:
    values = {
        (swept, size, rtt, law, route): Interval(1.0, 0.1, 3)
        for swept in ("reno", "cubic", "htcp")
        for size in ("0.1bdp", "0.5bdp", "1bdp", "2bdp")
        for rtt in ("10ms", "20ms", "40ms", "80ms")
        for law, route in ((swept, "forward"), ("cubic", "reverse"))
    }
    keys = ("flow[0].law", "link.queue.size", "flow[0].rtt", "law", "route")
    figure, _ = means(values, keys, "goodput (Mbit/s)", f"means over 3 seeds{INTERVALS}")
    assert figure.get_supxlabel().endswith("means over 3 seeds")  # no interval is drawn
    assert [title for axes in figure.axes if (title := axes.get_title(loc="left"))] == [
        "reno, forward",
        "cubic, forward",
        "htcp, forward",
        "cubic, reverse, beside reno",
        "cubic, reverse",
        "cubic, reverse, beside htcp",
    ]


@pytest.mark.parametrize(("runs", "width"), [(4, None), (5, None), (5, 2.8), (5, 2.0)])
def test_heat_maps_show_intervals_where_they_fit(runs: int, width: float | None) -> None:
    values = {
        (size, rtt): interval([0.5 + 0.01 * seed for seed in range(runs)])
        for size in ("0.1bdp", "0.5bdp", "1bdp", "2bdp")
        for rtt in ("10ms", "20ms", "40ms", "80ms")
    }
    with applied(replace(PRESETS["report"], width=width)):
        figure, _ = means(values, ("link.queue.size", "flow[0].rtt"), "share", f"5{INTERVALS}")
    cells, bar = figure.axes
    shown = [text.get_text() for text in cells.texts]
    halves = [text for text in shown if text.startswith("±")]
    assert len(halves) == (16 if runs == 5 and width is None else 0)
    assert len(shown) - len(halves) == (0 if width == 2.0 else 16)
    assert ("± 95 %" in cells.get_xlabel()) == bool(halves)
    assert bar.get_ylabel().replace("\n", " ") == "share"


@pytest.mark.parametrize("combined", [True, False], ids=["lines", "points"])
def test_markers_of_nearly_equal_values_are_whole(combined: bool) -> None:
    sizes, rtts = [1, 2, 4], [10, 20, 40]
    pairs = itertools.product(sizes, rtts) if combined else zip(sizes, rtts, strict=True)
    values = {(size, rtt, "reno"): Interval(18.9 + 0.01 * size, 1e-4, 3) for size, rtt in pairs}
    figure, _ = means(values, ("size", "rtt", "law"), "goodput (Mbit/s)", "three seeds")
    assert [*faults(figure)] == []


def test_a_metric_without_any_value_has_no_figure() -> None:
    def drawn(*covs: float | None) -> bool:
        flows = [("reno", ["forward"])]
        runs = [
            Made.of(Random("x"), i, 1, {"case": i}, flows, ["forward"]) for i in range(len(covs))
        ]
        for run, cov in zip(runs, covs, strict=True):
            run.summary["flows"][0]["cov"] = cov
        return "cov" in registry.of_report(Results(Path("none"), "", tuple(runs)), runs)

    assert drawn(0.5, None)
    assert drawn(0.0)
    assert not drawn(None, None)


def test_panels_with_other_bars_name_their_own() -> None:
    pairs = itertools.product(("cubic", "htcp", "reno"), repeat=2)
    values = {
        (one, two, law): Interval(1.0 + place, 0.1, 3)
        for one, two in pairs
        for place, law in enumerate(dict.fromkeys((one, two)))
    }
    figure, _ = plot.bars(values, ("flow[0].law", "flow[1].law", "law"), "goodput (Mbit/s)")
    for axes in figure.axes:
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert set(names) == set(axes.get_title(loc="left").replace(",", "").split()) & set(NAMES)
        assert len(axes.patches) == len(names)
    assert [*faults(figure), *same_bars(figure)] == []


def test_every_law_and_variant_looks_its_own() -> None:
    for count in (1, 2, 8, 20, 60):
        for first in range(len(NAMES)):
            names = [NAMES[(first + i) % len(NAMES)] for i in range(count)]
            found = list(looks({name: name for name in names}).values())
            for one, other in itertools.combinations(found, 2):
                if alike(one.color, other.color):
                    assert one.dashes != other.dashes
                    assert one.hatch != other.hatch
                    if count <= 20:
                        assert one.marker != other.marker
