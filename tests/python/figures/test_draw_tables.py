"""Random tables, drawn: does each number at an axis mean its value, and is each row there?

As many tables of each kind as ``LFN_FIGURES`` says, of the seed ``LFN_SEED``.
"""

from __future__ import annotations

import math
import os
import re
import statistics
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from lfnlab.control_laws.registry import laws
from lfnlab.errors import UsageError
from lfnlab.figures.columns import Plain, PlainLog, texts
from lfnlab.figures.draw import Request, draw
from lfnlab.figures.plot import house_style
from lfnlab.figures.spread import DOT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from lfnlab.figures.drawing import Drawing

TABLES = int(os.environ.get("LFN_FIGURES", "14"))
SEED = os.environ.get("LFN_SEED", "tables")
#: Units of columns by their ends, in the unit without a prefix.
COLUMNS = {
    "wait_s": ("s", 1.0),
    "wait_ms": ("s", 1e-3),
    "wait_us": ("s", 1e-6),
    "wait_ps": ("s", 1e-12),
    "speed_bps": ("bit/s", 1.0),
    "size_bytes": ("B", 1.0),
    "full_percent": ("%", 1.0),
    "window_seg": ("segments", 1.0),
    "count": ("", 1.0),
}
#: Units of labels, in the unit without a prefix.
UNITS = {
    "s": 1.0,
    "ms": 1e-3,
    "µs": 1e-6,
    "ns": 1e-9,
    "bit/s": 1.0,
    "kbit/s": 1e3,
    "Mbit/s": 1e6,
    "Gbit/s": 1e9,
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "%": 1.0,
    "segments": 1.0,
    "": 1.0,
}


def number(text: str) -> float:
    return float(text.replace(",", ""))


def unit_of(label: str) -> float:
    """The size of the unit of an axis, by its label."""
    found = re.search(r"\(([^()]*)\)$", label)
    return UNITS[found[1] if found else ""]


def told(words: str, column: str) -> float:
    """The value that a legend or a title says, in the unit of the column without a prefix."""
    word = column.rpartition("_")[0] or column
    found = re.fullmatch(rf"{word} (\S+)(?: (\S+))?", words)
    assert found is not None, (words, column)
    return number(found[1]) * UNITS[found[2] or ""]


def values_of(rng: Random, column: str) -> list[float]:
    """Distinct values of one column: of any size, of one sign or of both."""
    count = rng.choice([1, 2, 5, 12, 40])
    size = 10.0 ** rng.uniform(-6, 9) / COLUMNS[column][1]
    if column in ("count", "window_seg"):
        return [float(value) for value in rng.sample(range(10**6), count)]
    low = rng.choice([0.0, 0.0, -1.0])
    return [size * rng.uniform(low, 1.0) for _ in range(count)]


def table(rng: Random) -> tuple[pl.DataFrame, str, str, str | None]:
    """A table with its columns x, y and by."""
    x, y = rng.sample([*COLUMNS], 2)
    by = rng.choice([None, "law", "group", *(c for c in COLUMNS if c not in (x, y))])
    names = [law.name for law in rng.sample(list(laws()), 3)]
    of_y, of_x = values_of(rng, y), values_of(rng, x)
    of_by = {"law": names, "group": ["a", "b $x", "c", None]}.get(by or "")
    of_by = of_by or (values_of(rng, by) if by in COLUMNS else [None])
    rows = [
        {x: at, y: rng.choice([*of_y, *of_y, None]), by or "spare": rng.choice(of_by), "run": run}
        for at in of_x
        for run in range(rng.choice([1, 2, 4, 5, 9]))
        for _ in range(rng.randint(1, 3))
    ]
    rng.shuffle(rows)
    return pl.DataFrame(rows, infer_schema_length=None), x, y, by


def drawn(tmp_path: Path, frame: pl.DataFrame, **request: Any) -> Drawing | None:
    """The drawing of a table, laid out; None where the table cannot be drawn so, which it says."""
    frame.write_parquet(tmp_path / "made.parquet")
    try:
        found = draw([tmp_path / "made.parquet"], Request(**request))
    except UsageError as error:
        if re.search(r"at most|above 0|no rows to draw|no value in any row", str(error)):
            return None
        raise
    with house_style():
        FigureCanvasAgg(found.figure).draw()
    return found


def has_names(axis: Axis) -> bool:
    """Whether its ticks are values of a column, one by one."""
    return not isinstance(axis.get_major_formatter(), Plain | PlainLog)


def check_ticks(axes: Axes) -> None:
    """Each text at an axis is the number of its place."""
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        names = has_names(axis)
        assert names or not axis.get_offset_text().get_text()
        ticks = [] if names else [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        seen = [tick for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_text()]
        places = sorted(tick.get_loc() for tick in seen)
        apart = min(np.diff(places), default=math.inf)
        for tick in seen:
            place, text = tick.get_loc(), tick.label1.get_text()
            assert abs(number(text) - place) <= min(1e-3 * apart, 1e-5 * max(map(abs, places)))


def labels(axes: Axes) -> tuple[str, str]:
    figure = axes.figure
    return (
        axes.get_xlabel() or figure.get_supxlabel(),
        axes.get_ylabel() or figure.get_supylabel(),
    )


def lost(says: str, what: str) -> int:
    """How many rows, bars or dots a drawing says that it leaves out."""
    return sum(int(n.replace(",", "")) for n in re.findall(rf"without ([\d,]+) {what}", says))


@pytest.mark.parametrize("number_", range(TABLES))
@pytest.mark.parametrize("log", [None, "y"])
def test_bars_are_the_means_of_their_rows_at_their_names(
    tmp_path: Path, number_: int, log: str | None
) -> None:
    frame, x, y, by = table(Random(f"{SEED} bars {number_}"))
    found = drawn(tmp_path, frame, kind="bar", x=x, y=y, by=by, log=log)
    if found is None:
        return
    (axes,) = found.figure.axes
    check_ticks(axes)
    x_label, y_label = labels(axes)
    x_unit, y_unit = unit_of(x_label) / COLUMNS[x][1], unit_of(y_label) / COLUMNS[y][1]
    runs: dict[Any, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in frame.iter_rows(named=True):
        if row[y] is not None:
            runs[row[x], row[by or "spare"]][row["run"]].append(row[y])
    expected = sorted(
        (place, statistics.fmean(statistics.fmean(rows) for rows in own.values()))
        for (place, _), own in runs.items()
    )
    names = {round(tick): label.get_text() for tick, label in
             zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)}  # fmt: skip
    seen = []
    for bar in axes.patches:
        middle = bar.get_x() + bar.get_width() / 2
        assert abs(middle - round(middle)) < 0.5
        seen.append((number(names[round(middle)]) * x_unit, bar.get_height() * y_unit))
    kept = [pair for pair in expected if log is None or pair[1] > 0.0]
    assert lost(found.says, "bar") == len(expected) - len(kept)
    assert lost(found.says, "row") == frame[y].null_count()
    scale = max(abs(place) for place, _ in expected)
    for (place, mean), (at, height) in zip(kept, sorted(seen), strict=True):
        assert at == pytest.approx(place, rel=1e-5, abs=1e-9 * scale)
        assert height == pytest.approx(mean, rel=1e-9)
    dots = [d for line in axes.lines if line.get_markeredgecolor() == DOT["mec"]
            for d in line.get_ydata()]  # fmt: skip
    single = sorted(
        statistics.fmean(rows)
        for own in runs.values()
        if 1 < len(own) < 5
        and (log is None or statistics.fmean(statistics.fmean(r) for r in own.values()) > 0)
        for rows in own.values()
    )
    single = [run for run in single if log is None or run > 0.0]
    assert sorted(np.array(dots) * y_unit) == pytest.approx(single, rel=1e-9)
    for legend in found.figure.legends:
        if by in COLUMNS:
            values = {told(text.get_text(), by) for text in legend.get_texts()}
            there = {value * COLUMNS[by][1] for value in frame[by].to_list()}
            assert all(
                min(abs(v - t) for t in there) <= 1e-5 * max(map(abs, there)) for v in values
            )


@pytest.mark.parametrize("number_", range(TABLES))
@pytest.mark.parametrize("log", [None, "x", "xy"])
@pytest.mark.parametrize("kind", ["phase", "time"])
def test_every_row_without_a_time_is_a_point(
    tmp_path: Path, number_: int, log: str | None, kind: str
) -> None:
    frame, x, y, by = table(Random(f"{SEED} points {number_}"))
    found = drawn(tmp_path, frame, kind=kind, x=x, y=y, by=by, log=log)
    if found is None:
        return
    (axes,) = found.figure.axes
    check_ticks(axes)
    x_label, y_label = labels(axes)
    x_unit, y_unit = unit_of(x_label) / COLUMNS[x][1], unit_of(y_label) / COLUMNS[y][1]
    seen = sorted((u * x_unit, v * y_unit) for line in axes.lines for u, v in line.get_xydata())
    rows = frame.drop_nulls(y).filter(
        *(pl.col(c) > 0 for c in ([x] if log == "x" else [x, y] if log else []))
    )
    assert lost(found.says, "row") == frame.height - rows.height
    expected = sorted(rows.select(x, y).iter_rows())
    assert [v for pair in seen for v in pair] == pytest.approx([v for p in expected for v in p])


@pytest.mark.parametrize("number_", range(TABLES))
@pytest.mark.parametrize("log", [None, "xy"])
def test_every_row_is_in_its_cell_of_a_heat_map(
    tmp_path: Path, number_: int, log: str | None
) -> None:
    frame, x, y, _ = table(Random(f"{SEED} heat {number_}"))
    found = drawn(tmp_path, frame, kind="heat", x=x, y=y, log=log)
    if found is None:
        return
    axes, bar = found.figure.axes
    for each in (axes, bar):
        check_ticks(each)
    x_label, y_label = labels(axes)
    x_unit, y_unit = unit_of(x_label) / COLUMNS[x][1], unit_of(y_label) / COLUMNS[y][1]
    mesh = axes.collections[0]
    cells = np.ma.filled(mesh.get_array().reshape(mesh._coordinates.shape[0] - 1, -1), 0.0)
    rows = frame.drop_nulls(y).filter(*(pl.col(c) > 0 for c in ([x, y] if log else [])))
    assert lost(found.says, "row") == frame.height - rows.height
    edges = mesh._coordinates[0, :, 0] * x_unit, mesh._coordinates[:, 0, 1] * y_unit
    counts, *_ = np.histogram2d(rows[x], rows[y], bins=edges)
    assert counts.sum() == rows.height
    assert np.allclose(cells.T, 100 * counts / rows.height, atol=1e-9)
    for axis, column, unit in ((axes.xaxis, x, x_unit), (axes.yaxis, y, y_unit)):
        if has_names(axis):  # each value
            said = [number(label.get_text()) * unit for label in axis.get_ticklabels()]
            assert said == pytest.approx(sorted(set(rows[column])), rel=1e-5)


def test_a_panel_or_a_colour_without_a_name_is_drawn(tmp_path: Path) -> None:
    frame = pl.DataFrame({"k": ["a", None, "a", None], "v": [1.0, 2.0, 3.0, 4.0], "u": [1.0] * 4})
    found = drawn(tmp_path, frame, kind="phase", x="u", y="v", panel="k")
    assert found is not None
    assert [axes.get_title(loc="left") for axes in found.figure.axes] == ["a", "no k"]
    assert [len(axes.lines[0].get_ydata()) for axes in found.figure.axes] == [2, 2]
    found = drawn(tmp_path, frame, kind="bar", x="k", y="v")
    assert found is not None
    assert [bar.get_height() for bar in found.figure.axes[0].patches] == [2.0, 3.0]


@pytest.mark.parametrize(
    ("columns", "request_", "said"),
    [
        ({"a": ["k", None], "b": [1.0, 2.0]}, {"kind": "heat", "log": "x"}, "have no logarithm"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"kind": "bar", "log": "x"}, "have no logarithm"),
        ({"a": [1.0, 2.0], "b": [-1.0, 0.0]}, {"kind": "phase", "log": "y"}, "is above 0"),
        ({"a": [1.0, 2.0], "b": [0.0, 0.0]}, {"kind": "bar", "log": "y"}, "is above 0"),
        ({"a": [1e308, 1.0], "b": [-1e308, 1.0]}, {"kind": "phase"}, "beyond 1e+300"),
        ({"a": [[1], [2]], "b": [1.0, 2.0]}, {"kind": "bar"}, "holds lists"),
        ({"a": ["k", "l"], "b": [1.0, 2.0]}, {"kind": "phase"}, "holds text"),
        ({"a": [1.0, 2.0], "b": [None, None]}, {"kind": "bar"}, "no value in any row"),
    ],
)
def test_a_table_that_cannot_be_drawn_so_is_an_error(
    tmp_path: Path, columns: dict[str, Any], request_: dict[str, Any], said: str
) -> None:
    pl.DataFrame(columns).write_parquet(tmp_path / "made.parquet")
    with pytest.raises(UsageError, match=re.escape(said)):
        draw([tmp_path / "made.parquet"], Request(x="a", y="b", **request_))


@pytest.mark.parametrize(
    ("x", "values", "label"),
    [
        ("rtt", ["160ms", "20ms"], "rtt"),
        ("law", ["reno", "cubic"], ""),
        ("link.queue.kind", ["red", "codel"], "queue.kind"),
    ],
)
def test_bars_of_quantities_say_of_what(
    tmp_path: Path, x: str, values: list[str], label: str
) -> None:
    found = drawn(tmp_path, pl.DataFrame({x: values, "v": [1.0, 2.0]}), kind="bar", x=x, y="v")
    assert found is not None
    assert found.figure.axes[0].get_xlabel() == label


def test_large_whole_numbers_name_their_own_bars(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"a": [2**63, 2**63 + 1], "b": [1, 2]}, schema=dict.fromkeys("ab", pl.UInt64)
    )
    found = drawn(tmp_path, frame, kind="bar", x="a", y="b")
    assert found is not None
    names = [label.get_text() for label in found.figure.axes[0].get_xticklabels()]
    assert names == ["9,223,372,036,854,775,808", "9,223,372,036,854,775,809"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.02, 0.08], ["0.02", "0.08"]),
        ([1e6, 1e6 + 0.25], ["1,000,000", "1,000,000.25"]),
        ([1234567.0, -1.0], ["1,234,567", "-1"]),
        ([0.1 + 0.2], ["0.3"]),
        ([1e-6, 1e12], ["1e-06", "1e+12"]),
        ([0.05, 0.049999999999999996], ["0.05", "0.049999999999999996"]),
        ([-0.0, math.nan, math.inf], ["0", "nan", "inf"]),
        ([], []),
    ],
)
def test_numbers_have_the_digits_that_tell_them_apart(values: list[float], said: list[str]) -> None:
    assert texts(values) == said
