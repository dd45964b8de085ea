"""Does `lfn plot` draw what the tables hold, and say what is wrong when it cannot?"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_hex

from lfnlab import Case, Scenario, _core, compare, dumbbell, execute, law, metrics
from lfnlab.cli import app as cli
from lfnlab.figures import draw, plot
from lfnlab.figures.layout import width_in
from lfnlab.metrics import goodput_bins
from lfnlab.statistics import interval

if TYPE_CHECKING:
    from command import Lfn
    from matplotlib.axes import Axes

    from lfnlab import Results

ROOT = Path(__file__).parents[3]


def drawn(root: Path, *more: Path, **request: Any) -> list[Axes]:
    return draw.draw((root, *more), draw.Request(**request)).figure.axes


@pytest.mark.parametrize("kind", [None, "time", "cdf", "bar", "heat", "phase"])
@pytest.mark.parametrize("form", ["png", "pdf", "svg"])
def test_every_kind_has_a_default(
    results: Results, tmp_path: Path, kind: str | None, form: str
) -> None:
    file = tmp_path / f"figure.{form}"
    options = [] if kind is None else ["--kind", kind]
    assert cli.call(["plot", str(results.root), *options, "--out", str(file)]) == cli.OK
    assert file.read_bytes()[:4] == {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xm"}[form]


def test_the_file_goes_with_the_results(results: Results, lfn: Lfn) -> None:
    says, file = lfn("plot", results.root).splitlines()
    assert says == "time of table flows: the first seed of each case, 2 of 4 runs, 4 traces"
    assert Path(file) == results.root / "figures" / "cwnd_seg-time.png"
    assert Path(file).is_file()


def test_a_trace_is_the_table_in_its_unit_and_its_law(results: Results) -> None:
    (axes,) = drawn(results.root, y="srtt_s", where=("law=cubic", "flow=1", "t_s<=2"), by="law")
    table = results.runs[2].table("flows").filter(pl.col("flow") == 1, pl.col("srtt_s") > 0)
    table = table.filter(pl.col("t_s") <= 2)
    (line,) = axes.lines
    assert np.array_equal(line.get_xdata(), table["t_s"])
    assert np.array_equal(line.get_ydata(), table["srtt_s"].to_numpy() / 1e-3)
    assert line.get_color() == law("cubic").color
    assert line.get_marker() == law("cubic").marker
    assert axes.get_ylabel() == "smoothed RTT (ms)"
    assert axes.get_xlabel() == "time (s)"


def test_bars_are_means_with_dots_for_few_seeds(results: Results) -> None:
    drawing = draw.draw([results.root], draw.Request(kind="bar", x="law", y="goodput_bps"))
    (axes,) = drawing.figure.axes
    expected = results.intervals("goodput_bps")
    heights = [bar.get_height() * 1e6 for bar in axes.patches]
    assert heights == pytest.approx([value.mean for value in expected.values()])
    dots = [line.get_ydata() * 1e6 for line in axes.lines]
    assert [sorted(own) for own in dots] == [
        pytest.approx(sorted(value.values)) for value in expected.values()
    ]
    assert axes.get_ylabel() == "goodput (Mbit/s)"
    assert "mean over 2 runs; runs are dots where they are fewer than 5" in drawing.says


@pytest.mark.parametrize("by", ["law", None])
def test_bars_of_times_have_the_axis_and_the_colour_of_their_law(
    tmp_path: Path, by: str | None
) -> None:
    """``--by`` on a column that is the same for all bars gave each a colour of its own."""
    link = '[link]\nrate = "20Mbit/s"\n'
    flows = "".join(f'[[flow]]\nlaw = "reno"\nrtt = "{rtt}"\n' for rtt in ("20ms", "80ms"))
    (tmp_path / "bar.toml").write_text(f'schema = 1\nduration = "2s"\n{link}{flows}')
    run = execute(Scenario.load(tmp_path / "bar.toml"), out=tmp_path / "out").runs[0]
    (axes,) = drawn(tmp_path / "out", kind="bar", x="rtt_s", y="goodput_bps",
                    table="summary.flows", by=by)  # fmt: skip
    assert axes.get_xlabel() == "RTT (ms)"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["20", "80"]
    assert {to_hex(bar.get_facecolor()) for bar in axes.patches} == {law("reno").color.lower()}
    goodputs = [flow["goodput_bps"] / 1e6 for flow in run.summary["flows"]]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(goodputs)


def test_a_phase_plot_of_flows_has_each_flow_of_each_run(tmp_path: Path) -> None:
    """Of four runs with ten flows it drew ten of forty points, and did not say so."""
    path = dumbbell(rate="20Mbit/s", rtt="20ms", buffer="1bdp", duration="2s")
    mixed = path.flow("reno", count=5, start="uniform(0s, 1s)").flow(
        "cubic", count=5, rtt="40ms", start="uniform(0s, 1s)"
    )
    results = execute([Case(mixed)], seeds=4, out=tmp_path)
    request = draw.Request(
        kind="phase", x="rtt_s", y="goodput_bps", by="law", table="summary.flows"
    )
    drawing = draw.draw([tmp_path], request)
    seen = sorted(tuple(p) for line in drawing.figure.axes[0].lines for p in line.get_xydata())
    flows = [flow for run in results.runs for flow in run.summary["flows"]]
    expected = sorted((1e3 * flow["rtt_s"], flow["goodput_bps"] / 1e6) for flow in flows)
    assert len(seen) == 40
    assert [v for p in seen for v in p] == pytest.approx([v for p in expected for v in p])
    assert "40 rows" in drawing.says
    over_time = draw.draw([tmp_path], draw.Request(kind="phase", x="t_s", y="cwnd_seg", by="seed"))
    assert "10 of 40 traces" in over_time.says
    two = draw.draw([tmp_path], draw.Request(kind="phase", y="cwnd_seg"))
    assert "flows 0 and 1 of 10" in two.says


def test_bars_average_the_rows_of_a_run_first(tmp_path: Path) -> None:
    """Runs of one row and of three count alike."""
    runs = [1, 2, 2, 2, 3, 4, 5]
    frame = pl.DataFrame({"run": runs, "k": ["a"] * 7, "v": [1.0, 4.0, 5.0, 6.0, 1.0, 1.0, 1.0]})
    frame.write_parquet(tmp_path / "made.parquet")
    (axes,) = drawn(tmp_path / "made.parquet", kind="bar", x="k", y="v")
    assert axes.patches[0].get_height() == pytest.approx(1.8)
    ((_, _, (bar,)),) = axes.containers[1:]
    expected = interval([1.0, 5.0, 1.0, 1.0, 1.0])
    assert bar.get_segments()[0][:, 1] == pytest.approx([expected.low, expected.high])


def test_a_cdf_steps_at_the_samples(tmp_path: Path) -> None:
    pl.DataFrame({"rtt_s": [0.4, 0.1, 0.2, 0.2]}).write_parquet(tmp_path / "made.parquet")
    (axes,) = drawn(tmp_path / "made.parquet", kind="cdf", x="rtt_s")
    (line,) = axes.lines
    assert np.allclose(line.get_xdata(), [100, 100, 200, 400])
    assert np.allclose(line.get_ydata(), [0, 0.25, 0.75, 1.0])
    assert line.get_drawstyle() == "steps-post"
    assert axes.get_xlabel() == "RTT (ms)"


def test_a_cdf_over_runs_is_their_mean_with_its_interval(tmp_path: Path) -> None:
    frame = pl.DataFrame({"run": [1, 1, 2, 2], "v": [1.0, 3.0, 1.0, 1.0]})
    frame.write_parquet(tmp_path / "made.parquet")
    (axes,) = drawn(tmp_path / "made.parquet", kind="cdf", y="v")
    mean, *each = axes.lines
    assert np.allclose(mean.get_ydata(), [0, 0.75, 1.0])
    assert [line.get_ydata().tolist() for line in each] == [[0.5, 1.0], [1.0, 1.0]]  # few runs
    assert not axes.collections
    runs = [run for run in range(5) for _ in range(2)]
    frame = pl.DataFrame({"run": runs, "v": [1.0, 3.0, 3.0, 3.0, *[3.0] * 6]})
    frame.write_parquet(tmp_path / "made.parquet")
    (axes,) = drawn(tmp_path / "made.parquet", kind="cdf", y="v")
    (band,) = axes.collections
    assert band.get_paths()[0].vertices[:, 1].min() == 0.0  # 0.1 - 2.78 * 0.1, cut at 0


def test_a_heat_map_holds_the_means_of_its_cells(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [0, 0, 1, 1], "b": [0, 0, 0, 1], "v_s": [1.0, 3.0, 5.0, 7.0]})
    frame.write_parquet(tmp_path / "made.parquet")
    axes, bar = drawn(tmp_path / "made.parquet", kind="heat", x="a", y="b", z="v_s")
    cells = np.ma.masked_invalid(axes.collections[0].get_array())
    assert cells.filled(-1).tolist() == [[2.0, 5.0], [-1.0, 7.0]]
    assert bar.get_ylabel() == "mean v (s)"
    axes, bar = drawn(tmp_path / "made.parquet", kind="heat", x="a", y="b")
    assert np.nansum(axes.collections[0].get_array()) == pytest.approx(100.0)
    assert bar.get_ylabel() == "share of samples (%)"


def test_a_phase_plot_sets_one_flow_against_another(results: Results) -> None:
    where = ("law=reno", "seed=2")
    (axes,) = drawn(results.root, kind="phase", y="goodput_bps", where=where)
    bins = metrics.goodput_bins(results.runs[1].table("flows"))
    first, second = (bins.filter(pl.col("flow") == flow)["goodput_bps"] / 1e6 for flow in (0, 1))
    trace = axes.lines[0]
    assert np.allclose(trace.get_xdata(), first)
    assert np.allclose(trace.get_ydata(), second)
    assert axes.get_xlabel() == "goodput of flow 0 (Mbit/s)"
    assert axes.get_ylabel() == "goodput of flow 1 (Mbit/s)"


def test_a_phase_plot_joins_tables_of_the_same_times(results: Results) -> None:
    where = ("law=reno", "seed=1", "flow=0", "link=forward")
    (axes,) = drawn(results.root, x="packets", y="cwnd_seg", where=where)
    flows, queues = (results.runs[0].table(name) for name in ("flows", "queues"))
    flows = flows.filter(pl.col("flow") == 0)
    queues = queues.filter(pl.col("link") == 0, pl.col("t_s").is_in(flows["t_s"].implode()))
    assert np.array_equal(axes.lines[0].get_xdata(), queues["packets"])
    assert np.array_equal(axes.lines[0].get_ydata(), flows["cwnd_seg"])


def test_what_happened_is_dots(results: Results) -> None:
    (axes,) = drawn(results.root, y="cwnd_after_seg", where=("law=reno", "seed=1"), by="flow")
    assert {str(line.get_linestyle()) for line in axes.lines} == {"None"}
    count = results.runs[0].table("events").height
    assert sum(len(line.get_xdata()) for line in axes.lines) == count


def test_recorded_packets_make_a_time_sequence_graph(results: Results, tmp_path: Path) -> None:
    shutil.copytree(results.runs[0].path, tmp_path / "run")
    packets = {"t_ps": [10**12, 2 * 10**12], "flow": [0, 0], "point": [0, 1], "seq": [7, 8]}
    pl.DataFrame(packets).write_parquet(tmp_path / "run" / "packets.parquet")
    (axes,) = drawn(tmp_path / "run", y="seq", where=("point=dropped",))
    assert axes.lines[0].get_xydata().tolist() == [[2.0, 8.0]]
    assert axes.get_ylabel() == "sequence number (segments)"


def test_panels_are_the_cases(results: Results) -> None:
    panels = drawn(results.root)
    assert [axes.get_title(loc="left") for axes in panels] == ["reno", "cubic"]
    colors = [{line.get_color() for line in axes.lines} for axes in panels]
    assert colors == [{law("reno").color}, {law("cubic").color}]


def test_panels_may_be_the_laws(results: Results) -> None:
    panels = drawn(results.root, y="cwnd_seg", panel="law")
    assert [axes.get_title(loc="left") for axes in panels] == ["reno", "cubic"]
    assert [len(axes.lines) for axes in panels] == [2, 2]


def test_a_derived_table_is_made_when_it_is_drawn(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []

    def counted(flows: pl.DataFrame) -> pl.DataFrame:
        rows.append(flows.height)
        return goodput_bins(flows)

    monkeypatch.setattr(metrics, "goodput_bins", counted)
    tables = draw.Tables([results.root])
    assert {"flow", "t_s", "goodput_bps", "law", "run"} <= set(tables.columns("goodput"))
    assert drawn(results.root)
    assert set(rows) == {0}
    drawn(results.root, table="goodput", y="goodput_bps")
    assert max(rows) > 0


def test_a_logarithmic_axis_has_plain_numbers(results: Results) -> None:
    drawing = draw.draw((results.root,), draw.Request(kind="cdf", y="cwnd_seg", log="x"))
    (axes,) = drawing.figure.axes
    assert axes.get_xscale() == "log"
    drawing.figure.canvas.draw()
    texts = {label.get_text() for label in axes.get_xticklabels(which="both")}
    assert {"10", "100"} <= texts
    assert not any("$" in text for text in texts)


def test_routes_of_one_law_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "both.toml"
    ends = [("cubic", "forward"), ("cubic", "reverse"), ("htcp", "forward"), ("cubic", "forward")]
    flows = "".join(
        f'[[flow]]\nlaw = "{name}"\nrtt = "40ms"\ndirection = "{way}"\n' for name, way in ends
    )
    link = '[link]\nrate = "10Mbit/s"\nqueue = { size = "0.5bdp" }\n'
    file.write_text(f'schema = 1\nduration = "3s"\n{link}{flows}', encoding="utf-8")
    execute(Scenario.load(file), out=tmp_path / "out")
    figure = draw.draw([tmp_path / "out"], draw.Request()).figure
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["cubic, forward", "cubic, reverse", "htcp, forward"]
    lines = figure.axes[0].get_lines()
    looks = [(line.get_color(), line.get_linestyle()) for line in lines]
    assert looks[0] == looks[3], "equal law and route"
    assert len(set(looks)) == 3
    assert lines[0].get_color() == lines[1].get_color() == law("cubic").color


def test_two_sources_are_told_apart(results: Results) -> None:
    run = results.runs[0].path
    figure = draw.draw((results.root, run), draw.Request(where=("law=reno", "flow=0"))).figure
    (axes,) = figure.axes
    assert len({str(line.get_linestyle()) for line in axes.lines}) == 2
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [f"reno, {results.root.name}", f"reno, {run.name}"]


def test_indices_have_their_names(results: Results) -> None:
    tables = draw.Tables((results.root,))
    links = tables.frame("queues").select(pl.col("link").unique()).collect()["link"]
    assert set(links) == {"forward", "reverse"}
    probes = tables.frame("probes").filter(pl.col("law") == "cubic").collect()["probe"]
    assert set(probes) == set(law("cubic").probes)
    kinds = tables.frame("events").collect()["kind"]
    assert "fast retransmit" in set(kinds)


def test_one_table_alone_knows_its_run(results: Results) -> None:
    (axes,) = drawn(results.runs[2].path / "queues.parquet", where=("link=forward",))
    assert axes.lines[0].get_color() == law("cubic").color
    assert axes.get_ylabel() == "queue (packets)"


def test_the_listing_names_the_documented_columns_and_units(results: Results, lfn: Lfn) -> None:
    listed = lfn("plot", results.root, "--list")
    units = {column[0]: column[2] for *_, columns in _core.tables() for column in columns}
    tags = (ROOT / "docs" / "plot.md").read_text()
    summary = (ROOT / "docs" / "reference" / "summary.schema.json").read_text()
    for line in listed.splitlines():
        if line.startswith(" "):
            column = line.split()[0]
            told = column in units or f"`{column}`" in tags or f'"{column}": {{' in summary
            assert told, f"no page knows {column}"
    for column, says in {"t_s": "s", "cwnd_seg": "segments", "retransmits": "segments"}.items():
        assert units[column].startswith(says) == draw.unit(column).startswith(says) is True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--y", "cwnd"], 'no column "cwnd", nearest is "cwnd_seg"'),
        (["--y", "cwnd_seg", "--table", "flwos"], 'no "flwos", nearest is "flows"'),
        (["--y", "cwnd_seg", "--table", "queues"], 'table queues has no column "cwnd_seg"'),
        (["--y", "cwnd_seg", "--x", "jain"], "jain is in summary; cwnd_seg is in flows"),
        (["--y", "cwnd_seg", "--by", "colour"], 'no column "colour"'),
        (["--y", "cwnd_seg", "--where", "flow=9"], "no row of flows has flow=9; flow is 0, 1"),
        (["--y", "cwnd_seg", "--where", "law=rneo"], "law is cubic, reno"),
        (["--y", "cwnd_seg", "--where", "flow=first"], "flow is a number, first is not"),
        (["--y", "cwnd_seg", "--where", "flow"], '"flow" is not a condition'),
        (["--y", "cwnd_seg", "--where", "law>a"], "takes a column of numbers"),
        (["--y", "law"], "holds text"),
        (["--kind", "bar", "--x", "t_s", "--y", "cwnd_seg"], "at most 60 bars"),
        (["--kind", "cdf", "--y", "cwnd_seg", "--by", "t_s"], "at most 60 can be told apart"),
        (["--kind", "phase", "--where", "flow=0"], "flows here: 1"),
        (["--out", "figure.jpg"], '"figure.jpg"; allowed endings: .png, .pdf, .svg'),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_code_2(
    results: Results, options: list[str], said: str, lfn: Lfn
) -> None:
    assert said in lfn.refuses("plot", results.root, *options)


def test_sources_that_cannot_be_read(tmp_path: Path, lfn: Lfn) -> None:
    (tmp_path / "broken.parquet").write_text("no table")
    for name in ("no-such-directory", "none.parquet", "broken.parquet"):
        assert name in lfn.err("plot", tmp_path / name, code=cli.STORE)


def test_a_table_without_rows_says_so(tmp_path: Path, lfn: Lfn) -> None:
    path = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="500ms", sample="off")
    execute([Case(path.flow("reno"))], out=tmp_path)
    assert lfn("plot", tmp_path).startswith("bar of table summary")
    for column in ("cwnd_seg", "goodput_bps"):
        assert "has no rows to draw" in lfn.err("plot", tmp_path, "--kind", "time", "--y", column)


def test_help_of_plot_teaches(lfn: Lfn) -> None:
    text = lfn("plot", "--help")
    assert "lfn plot lfn-results --kind cdf --x rtt_s --by law --out rtt.pdf" in text


@pytest.mark.parametrize("text", ["", "  ", "\u200b"])
def test_a_text_without_outlines_has_no_width(text: str) -> None:
    assert width_in(text, 8.0) == 0.0


@pytest.mark.parametrize("name", ["bbr3", "scalable", "udt"])
def test_no_bin_of_a_trace_exceeds_the_link(name: str, tmp_path: Path) -> None:
    """Not even after a repair, when what waited behind the lost segment is released at once."""
    path = dumbbell(rate="20Mbit/s", rtt="200ms", buffer="0.2bdp", duration="10s")
    run = compare([name], path, out=tmp_path / "out").runs[0]
    flows = run.table("flows")
    assert (flows["arrived_bytes"] >= flows["delivered_bytes"]).all()
    assert flows["arrived_bytes"].is_sorted()
    ((_, _, _, arrived),) = plot.goodput_series(run)
    assert 10.0 < arrived.max() < 20.0
    in_order = goodput_bins(flows)["goodput_bps"]
    assert in_order.sum() == pytest.approx(arrived.sum() * 1e6, rel=0.05)
    if name == "bbr3":
        assert in_order.max() > 20e6
