"""Styles of figures: sizes, words, order and palettes, from presets, files and options."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from lfnlab import compare, dumbbell, sweep
from lfnlab.errors import StoreError, UsageError
from lfnlab.figures import looks, style
from lfnlab.figures.draw import Request, draw

if TYPE_CHECKING:
    from command import Lfn

    from lfnlab import Results


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Three laws, five seeds."""
    path = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="3s", loss=0.003)
    return compare(["reno", "cubic", "bbr"], path, seeds=5, out=tmp_path_factory.mktemp("three"))


def bars(figure: Figure) -> list[str]:
    """Names of the bars from the top down."""
    (axes,) = figure.axes
    return [label.get_text() for label in axes.get_yticklabels()]


@pytest.mark.parametrize("form", ["png", "pdf", "svg"])
def test_a_figure_is_as_wide_and_high_as_asked(three: Results, tmp_path: Path, form: str) -> None:
    drawing = three.plot("goodput", "paper", width="88mm", height="2in", dpi=150)
    file = drawing.save(tmp_path / f"it.{form}")
    raw = file.read_bytes()
    if form == "png":
        assert struct.unpack(">II", raw[16:24]) == (int(88 / 25.4 * 150), 300)
    elif form == "pdf":
        assert b"/MediaBox [ 0 0 249.448" in raw  # 72 points an inch
    else:
        assert b'width="249.448' in raw
        assert b'height="144pt"' in raw


@pytest.mark.parametrize("name", ["goodput", "cwnd", "rate", "queue", "run"])
@pytest.mark.parametrize("chosen", ["paper", "slides"])
def test_every_named_figure_has_the_presets_width(three: Results, name: str, chosen: str) -> None:
    figure = three.plot(name, chosen).figure
    assert figure.get_figwidth() == pytest.approx(style.PRESETS[chosen].width)


@pytest.mark.parametrize("kind", ["time", "cdf", "bar", "heat", "phase"])
def test_every_kind_has_the_styles_size_and_labels(three: Results, kind: Any) -> None:
    own = style.changed(
        style.PRESETS["paper"], {"height": "2in", "x_label": "across", "y_label": "up"}, "test"
    )
    request = Request(kind=kind, x="cwnd_seg" if kind == "phase" else None, y="srtt_s")
    if kind == "bar":
        request = Request(kind="bar", x="law", y="goodput_bps")
    figure = draw([three.root], request, own).figure
    assert figure.get_size_inches() == pytest.approx((3.5, 2.0))
    said = {axes.get_xlabel() for axes in figure.axes} | {figure.get_supxlabel()}
    assert "across" in said
    said = {axes.get_ylabel() for axes in figure.axes} | {figure.get_supylabel()}
    assert "up" in said


def test_order_and_names_are_those_of_the_style(three: Results) -> None:
    names = {"reno": "Reno", "cubic": "CUBIC", "bbr": "BBR"}
    drawing = three.plot("goodput", order=["bbr", "reno"], names=names)
    assert bars(drawing.figure) == ["BBR", "Reno", "CUBIC"]
    # Each bar keeps its value.
    plain = three.plot("goodput")
    (one,), (other,) = plain.figure.axes, drawing.figure.axes
    widths = dict(zip(bars(plain.figure), [bar.get_width() for bar in one.patches], strict=True))
    told = dict(zip(bars(drawing.figure), [bar.get_width() for bar in other.patches], strict=True))
    assert told == {names[name]: width for name, width in widths.items()}


def test_notes_go_into_the_caption(three: Results) -> None:
    plain, printed = three.plot("goodput"), three.plot("goodput", "paper")
    assert "5 seeds" in plain.figure.axes[0].get_xlabel()
    assert "5 seeds" not in plain.says
    assert printed.figure.axes[0].get_xlabel() == "goodput (Mbit/s)"
    assert "means over 5 seeds ± 95 %" in printed.says


def test_greys_differ_without_their_shade(three: Results) -> None:
    with style.applied(style.changed(style.Style(), {"palette": "grey"}, "test")):
        found = looks.looks({f"series {i}": None for i in range(8)})
    assert {look.color for look in found.values()} <= set(style.GREYS)
    assert len({look.dashes for look in found.values()}) == 8
    assert len({look.hatch for look in found.values()}) == 8
    figure = draw([three.root], Request(kind="cdf", x="srtt_s"), style.Style(palette="grey")).figure
    for line in figure.axes[0].lines:
        red, green, blue = (line.get_color()[i : i + 2] for i in (1, 3, 5))
        assert red == green == blue


def test_a_style_leaves_nothing_behind(three: Results, tmp_path: Path) -> None:
    before = three.plot("goodput").save(tmp_path / "before.svg").read_bytes()
    three.plot("goodput", "slides", palette="grey", names={"reno": "R"}).save(tmp_path / "x.svg")
    assert three.plot("goodput").save(tmp_path / "after.svg").read_bytes() == before


def test_threads_draw_in_turn(three: Results, tmp_path: Path) -> None:
    """Matplotlib's settings are the process's: each thread's figure has its own style."""
    before = dict(mpl.rcParams)
    styles = ("report", "paper", "slides") * 4

    def drawn(place: int, chosen: str) -> bytes:
        return three.plot("goodput", chosen).save(tmp_path / f"{place}.svg").read_bytes()

    alone = [drawn(*one) for one in enumerate(styles)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(drawn, range(len(styles)), styles)) == alone
    assert dict(mpl.rcParams) == before


def test_a_file_is_a_style(three: Results, tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "journal.toml"
    file.write_text(
        'base = "paper"\nwidth = "252pt"\nfont_size = 7\nlegend = "inside"\n'
        'names = { reno = "Reno" }\nx_limits = [0, 12]\ntitle = "One flow"\n'
    )
    read = style.read(file)
    assert (read.font, read.font_size, read.dpi) == ("serif", 7.0, 300.0)
    assert read.width == pytest.approx(252 / 72.27)
    figure = three.plot("goodput", file).figure
    assert figure.axes[0].get_xlim() == (0.0, 12.0)
    assert figure.axes[0].get_title(loc="left") == "One flow"
    out = tmp_path / "it.svg"
    lfn("plot", three.root, "--figure", "goodput", "--style", file, "--set", "title=Two", "-o", out)
    text = out.read_text()
    assert "Two" in text
    assert "One flow" not in text
    assert "Reno" in text


def test_axes_take_other_labels(three: Results) -> None:
    """In a notebook a label that is set replaces the house's."""
    for name in ("goodput", "cov"):
        figure = three.plot(name).figure
        (axes,) = figure.axes
        axes.set_xlabel("mine")
        assert axes.get_xlabel() == "mine"
        assert not figure.get_supxlabel()


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"widht": "3in"}, 'widht: unknown key; did you mean "width"?'),
        ({"width": "3"}, "width: '3'; allowed"),
        ({"width": "0in"}, "from 1in to 50in"),
        ({"height": 2}, "height: 2; allowed"),
        ({"dpi": True}, "dpi: True; allowed: 20 to 2400"),
        ({"dpi": float("nan")}, "dpi: nan"),
        ({"font": "No Such Font"}, "sans-serif, serif, monospace, or a font of this machine"),
        ({"palette": "pink"}, "allowed: house, grey"),
        ({"legend": "left"}, "allowed: above, below, right, inside, none"),
        ({"x_limits": [3, 1]}, "the smaller one first"),
        ({"y_limits": [0]}, "two numbers"),
        ({"order": "reno"}, "a list of names"),
        ({"names": ["reno"]}, "a table of texts"),
        ({"title": 3}, "title: 3; allowed: a text"),
    ],
)
def test_nonsense_is_refused(said: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError, match=r"^here: ") as caught:
        style.changed(style.Style(), said, "here")
    assert error in str(caught.value)


def test_files_that_are_no_style_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='"journal"; allowed: report, paper, slides, or FILE'):
        style.read("journal")
    with pytest.raises(StoreError, match="cannot read"):
        style.read(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("width = ")
    with pytest.raises(UsageError, match=r"bad\.toml: "):
        style.read(tmp_path / "bad.toml")
    (tmp_path / "base.toml").write_text('base = "poster"')
    with pytest.raises(UsageError, match='base: "poster"; allowed'):
        style.read(tmp_path / "base.toml")
    with pytest.raises(UsageError, match='--set: "width"; allowed: KEY=VALUE'):
        style.settings(["width"])


def test_a_logarithmic_axis_has_no_zero(three: Results) -> None:
    own = style.changed(style.Style(), {"y_limits": [0, 100]}, "test")
    with pytest.raises(UsageError, match="y_limits: 0 on a logarithmic axis"):
        draw([three.root], Request(kind="bar", x="law", y="goodput_bps", log="y"), own)


def test_a_named_figure_has_the_rows_and_results_that_are_asked_for(
    three: Results, tmp_path: Path, lfn: Lfn
) -> None:
    out = tmp_path / "it.svg"
    lfn("plot", three.root, "--figure", "goodput", "--where", "law!=reno", "-o", out)
    text = out.read_text()
    assert "cubic" in text
    assert "reno" not in text
    path = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="2s")
    other = compare(["reno"], path, out=tmp_path / "other").root
    lfn("plot", three.root, other, "--figure", "goodput", "-o", tmp_path / "both.svg")
    text = (tmp_path / "both.svg").read_text()
    assert "result three" in text
    assert "result other" in text
    said = lfn.refuses("plot", three.root, "--figure", "goodput", "--log", "x")
    assert "allowed beside it: --by, --panel, --where" in said
    said = lfn.refuses("plot", three.root, "--figure", "goodput", "--panel", "law")
    assert 'panels: "law"; this figure has no factor but its series' in said
    said = lfn.refuses("plot", three.root, "--figure", "cwnd", "--by", "rtt")
    assert "--by: figure cwnd shows no groups of flows; allowed: goodput" in said


@pytest.mark.parametrize(
    ("drawn", "words", "shown"),
    [
        ("goodput (Mbit/s)", "Goodput ({unit})", "Goodput (Mbit/s)"),
        ("goodput (Mbit/s)\nmeans over 5 seeds ± 95 % (Student's t)", "G ({unit})", "G (Mbit/s)"),
        ("goodput (Mbit/s)", "Goodput (Mb/s)", "Goodput (Mb/s)"),
        ("goodput (Mbit/s)", "Goodput (mean of flows)", "Goodput (mean of flows)"),
        ("Jain's index", "Fairness", "Fairness"),
    ],
)
def test_a_label_has_the_unit_of_its_axis(drawn: str, words: str, shown: str) -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.set_ylabel(drawn)
    style.finish(figure, style.changed(style.PRESETS["report"], {"y_label": words}, "test"))
    assert axes.get_ylabel() == shown


@pytest.mark.parametrize(
    ("drawn", "words", "says"),
    [
        ("goodput (Mbit/s)", "Goodput (Gbit/s)", "the axis is in Mbit/s"),
        ("RTT (ms)", "RTT (s)", "the axis is in ms"),
        ("Jain's index\n ± 95 % (Student's t)", "Fairness ({unit})", "this axis has no unit"),
    ],
)
def test_a_label_with_another_unit_is_refused(drawn: str, words: str, says: str) -> None:
    figure = Figure()
    figure.subplots().set_xlabel(drawn)
    asked = style.changed(style.PRESETS["report"], {"x_label": words}, "test")
    with pytest.raises(UsageError, match=says):
        style.finish(figure, asked)


def test_a_style_says_which_factor_the_panels_are(tmp_path: Path) -> None:
    base = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="2s").flow("reno")
    sizes, rates = ["0.5bdp", "1bdp", "2bdp"], ["5Mbit/s", "10Mbit/s", "20Mbit/s"]
    made = sweep(base, grid={"link.queue.size": sizes, "link.rate": rates}, out=tmp_path)
    for panels, titles in (
        (None, [f"rate {rate}" for rate in rates]),
        ("queue.size", [f"queue.size {size}" for size in sizes]),
        ("link.rate", [f"rate {rate}" for rate in rates]),
    ):
        said = {} if panels is None else {"panels": panels}
        figure = made.plot("goodput", **said).figure
        assert [axes.get_title(loc="left") for axes in figure.axes] == titles
    with pytest.raises(UsageError, match=r'panels: "rtt"; allowed: link.queue.size, link.rate'):
        made.plot("goodput", panels="rtt")
