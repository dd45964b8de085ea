"""Are means, intervals and differences those that SciPy computes, whatever was run?"""

from __future__ import annotations

import io
import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import lfnlab
from lfnlab import Results, dumbbell, execute
from lfnlab.cli.app import call
from lfnlab.errors import UsageError
from lfnlab.experiment.plan import Case
from lfnlab.results.cases import METRICS, Cases, frame
from lfnlab.results.index import experiment

if TYPE_CHECKING:
    from command import Lfn

BUFFERS = ["0.1bdp", "1bdp", "250 packets"]
LAWS = ["reno", "cubic", "htcp:rtt", "bbr"]


@st.composite
def made(draw: st.DrawFn) -> Cases:
    """Cases of laws, buffers and routes, each with its own seeds."""
    laws = draw(st.lists(st.sampled_from(LAWS), min_size=1, max_size=4, unique=True))
    buffers = draw(st.lists(st.sampled_from(BUFFERS), min_size=1, max_size=3, unique=True))
    routes = draw(st.sampled_from([["forward"], ["forward", "reverse"]]))
    number = st.floats(-1e12, 1e12) | st.just(math.nan)
    rows: list[dict[str, Any]] = []
    for law, buffer, route in itertools.product(laws, buffers, routes):
        for seed in draw(st.lists(st.integers(1, 12), min_size=1, max_size=10, unique=True)):
            values = {metric: draw(number) for metric in METRICS[:3]}
            rows.append(
                {
                    "law": law,
                    "link.queue.size": buffer,
                    "route": route,
                    "seed": seed,
                    "flows": 1,
                    **values,
                }
            )
    return Cases(rows, ("link.queue.size", "law", "route"))


def of(cases: Cases, row: Mapping[str, Any], metric: str) -> dict[int, float]:
    """Values of a case by their seeds."""
    return {
        own["seed"]: own[metric]
        for own in cases.rows
        if all(own[key] == row[key] for key in cases.keys)
    }


def check(values: np.ndarray[Any, Any], mean: float | None, half: float | None) -> None:
    """A mean and the half-width of its interval against SciPy's."""
    if not np.isfinite(values).all() or not values.size:
        assert mean is None
        assert half is None
        return
    size = max(1.0, float(np.abs(values).max()))
    assert mean == pytest.approx(values.mean(), abs=1e-9 * size)
    if values.size == 1:
        assert half is None
        return
    test = scipy.stats.ttest_1samp(values, 0.0)
    low, high = test.confidence_interval(0.95)
    if math.isfinite(low):  # of equal values SciPy has none
        assert half == pytest.approx((high - low) / 2, rel=1e-6, abs=1e-9 * size)


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(made())
def test_means_and_intervals_are_those_of_scipy(cases: Cases) -> None:
    table = cases.table(METRICS[:3])
    assert table.height == len({tuple(row[key] for key in cases.keys) for row in cases.rows})
    for row in table.iter_rows(named=True):
        for metric in METRICS[:3]:
            values = of(cases, row, metric)
            assert row["seeds"] == len(values)
            check(np.array([*values.values()]), row[metric], row[f"{metric}_ci95"])


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(made(), st.sampled_from(["law", "link.queue.size"]), st.data())
def test_differences_are_paired_by_seed(cases: Cases, key: str, data: st.DataObject) -> None:
    value = data.draw(st.sampled_from(sorted({row[key] for row in cases.rows})))
    metrics = METRICS[:2]
    compared = cases.compare({key: value}, metrics)
    assert compared.height == cases.table(metrics[:1]).filter(pl.col(key) != value).height
    for row in compared.iter_rows(named=True):
        for metric in metrics:
            ours, theirs = of(cases, row, metric), of(cases, {**row, key: value}, metric)
            both = sorted(set(ours) & set(theirs))
            assert row["seeds"] == len(both)
            pairs = np.array([[ours[seed], theirs[seed]] for seed in both]).reshape(-1, 2)
            differences = pairs[:, 0] - pairs[:, 1]
            check(differences, row[f"{metric}_difference"], row[f"{metric}_ci95"])
            if len(both) > 1 and np.ptp(differences) > 0.0:
                low, high = scipy.stats.ttest_rel(*pairs.T).confidence_interval(0.95)
                size = max(1.0, float(np.abs(pairs).max()))
                half = (high - low) / 2
                assert row[f"{metric}_ci95"] == pytest.approx(half, rel=1e-6, abs=1e-9 * size)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Laws against reverse flows of CUBIC, two buffers, three seeds."""
    cases = [
        Case(
            dumbbell(rate="10Mbit/s", rtt="20ms", buffer=buffer, duration="2s", loss=1e-3)
            .flow(law)
            .flow("cubic", direction="reverse"),
            {"flow[0].law": law, "link.queue.size": buffer},
        )
        for law in ("reno", "cubic", "htcp")
        for buffer in ("0.5bdp", "1bdp")
    ]
    return execute(cases, seeds=3, out=tmp_path_factory.mktemp("swept"))


def test_a_flow_is_compared_with_the_flow_in_its_place(swept: Results) -> None:
    """Reno forward with CUBIC forward; CUBIC reverse beside Reno with that beside CUBIC."""
    compared = swept.compare("cubic", ["goodput_bps"])
    assert compared.height == 8
    assert (compared["seeds"] == 3).all()
    rows = {(row["flow[0].law"], row["route"], row["link.queue.size"], row["seed"]): row
            for row in swept.rows()}  # fmt: skip
    for row in compared.iter_rows(named=True):
        law, route, size = row["flow[0].law"], row["route"], row["link.queue.size"]
        differences = [
            rows[law, route, size, seed]["goodput_bps"]
            - rows["cubic", route, size, seed]["goodput_bps"]
            for seed in (1, 2, 3)
        ]
        assert row["goodput_bps_difference"] == pytest.approx(np.mean(differences))


def test_a_store_has_the_tables_of_its_experiment(swept: Results) -> None:
    store = lfnlab.open(swept.root)
    keys = ["flow[0].law", "link.queue.size", "law", "route"]
    for ours, theirs in (
        (store.table(), swept.table()),
        (store.compare("reno"), swept.compare("reno")),
    ):
        assert set(keys) <= set(ours.columns)
        assert ours.select(theirs.columns).sort(keys).equals(theirs.sort(keys))


def test_a_store_that_no_experiment_made_is_an_experiment(swept: Results, tmp_path: Path) -> None:
    assert call(["store", "merge", str(tmp_path / "merged"), str(swept.root)]) == 0
    merged = experiment(tmp_path / "merged")
    keys = ["flow[0].law", "link.queue.size", "law", "route"]
    assert merged.table().select(swept.table().columns).sort(keys).equals(swept.table().sort(keys))


def test_a_store_of_background_alone_has_runs_and_no_cases(tmp_path: Path) -> None:
    path = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="100 packets", duration="2s")
    alone = execute(path.with_background(1), seeds=2, out=tmp_path / "alone")
    assert call(["store", "merge", str(tmp_path / "merged"), str(alone.root)]) == 0
    merged = experiment(tmp_path / "merged")
    assert {run.path.name for run in merged.runs} == {run.path.name for run in alone.runs}
    assert lfnlab.open(alone.root).table().is_empty()
    with pytest.raises(UsageError, match="no flows under test"):
        alone.compare("cubic")
    assert call(["report", str(tmp_path / "merged")]) == 0


def test_a_neighbour_of_the_same_law_is_no_baseline(tmp_path: Path) -> None:
    """Two CUBIC flows are one row of two: neither Reno nor the CUBIC beside it has a partner."""
    path = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="2s", loss=1e-3)
    found = lfnlab.compare(["reno", "cubic"], path.flow("cubic"), seeds=2, out=tmp_path)
    compared = found.compare("cubic", ["goodput_bps"])
    assert compared["seeds"].to_list() == [0, 0]
    assert compared["goodput_bps_difference"].to_list() == [None, None]


@pytest.mark.parametrize(
    ("baseline", "said"),
    [
        ("vegas", "no case has flow[0].law = vegas; allowed: reno, cubic, htcp"),
        ({"link.rate": "1Gbit/s"}, 'no key "link.rate"; allowed: flow[0].law, link.queue.size'),
        ({"link.queue.size": 7}, "no case has link.queue.size = 7; allowed: 0.5bdp, 1bdp"),
    ],
)
def test_a_wrong_baseline_is_told_what_there_is(
    swept: Results, baseline: str | dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as error:
        swept.compare(baseline)
    assert said in str(error.value)
    with pytest.raises(UsageError, match="allowed: flows, goodput_bps, jain"):
        swept.table(["goodput"])


def test_frames_open_in_pandas(swept: Results) -> None:
    pandas = pytest.importorskip("pandas")
    table = swept.table().to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == swept.table().columns
    assert table["goodput_bps"].tolist() == swept.table()["goodput_bps"].to_list()


def test_a_notebook_shows_the_table(swept: Results) -> None:
    shown = swept._repr_html_()
    assert "<table" in shown
    assert "goodput_bps_ci95" in shown


def test_a_terminal_shows_the_table(swept: Results, tmp_path: Path) -> None:
    shown = repr(swept)
    assert shown.startswith(swept.title)
    assert str(tmp_path.parent) not in shown
    assert re.search(
        r"(?m)^│ \S+law +┆ .*┆ law +┆ .*┆ seeds ┆ goodput_bps +┆ .* ┆ retransmits │$", shown
    )
    assert shown.count("\n") > swept.table().height
    assert "Run with seed 1" in repr(swept.runs[0])
    assert "rows by " in repr(swept.cases)
    assert "link" in repr(swept.links)
    assert repr(Results(tmp_path, "None", ())).startswith("None\n0 runs")
    gone = Results(tmp_path, "Gone", (replace(swept.runs[0], path=tmp_path),))
    assert "summary.json" in repr(gone), "an object without files has a text too"


def test_values_of_several_types_are_texts() -> None:
    found = frame([{"size": "1bdp", "n": 1}, {"size": 250, "n": 0.5}, {"size": None}])
    assert found["size"].to_list() == ["1bdp", "250", None]
    assert found["n"].to_list() == [1.0, 0.5, None]


@pytest.mark.parametrize("form", ["--csv", "--markdown", "--latex", None])
def test_lfn_table(swept: Results, form: str | None, lfn: Lfn) -> None:
    printed = lfn("table", swept.root, *([form] if form else []))
    if form == "--csv":
        table = swept.table()
        assert pl.read_csv(io.StringIO(printed), schema=table.schema).equals(table)
    else:
        mean = swept.intervals("goodput_bps")["reno", "0.5bdp", "reno", "forward"].mean / 1e6
        cells = [line for line in printed.splitlines() if "0.5bdp" in line]
        assert len(cells) == 6
        assert f"{mean:.2f}" in cells[0]
        assert (r"\toprule" in printed) == (form == "--latex")
    for arguments in (["--csv", "--latex"], ["--baseline", "nobody"]):
        assert call(["table", str(swept.root), *arguments]) == 2
    assert "case minus link.queue.size=1bdp" in lfn(
        "table", swept.root, "--baseline", "link.queue.size=1bdp"
    )


def test_latex_takes_every_sign() -> None:
    from lfnlab.analysis.table import Table, latex

    (_, _, head, _, row, *_) = latex(Table(("a_b", "%"), (("x & \\y", "1 ± 2"),), 1))
    assert head == r"a\_b & \% \\"
    assert row == r"x \& \textbackslash{}y & 1 $\pm$ 2 \\"
