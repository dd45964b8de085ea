"""Does the report open anywhere, without network, and say what the results say?"""

from __future__ import annotations

import io
import itertools
import json
import re
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser import Page, chromium
from lfnlab import Case, Results, Scenario, dumbbell, execute, law
from lfnlab.analysis.summary import summary_table, to_json
from lfnlab.cli.app import call
from lfnlab.cli.progress import report_bar
from lfnlab.errors import UsageError
from lfnlab.figures import registry
from lfnlab.figures.cells import luminance
from lfnlab.figures.markdown import as_html
from lfnlab.figures.plot import thin
from lfnlab.figures.report import write_report
from lfnlab.results.runs import origin

if TYPE_CHECKING:
    from command import Lfn

needs_browser = pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def report(results: Results) -> Path:
    return write_report(results, files=True)


def test_the_page_holds_everything(report: Path, results: Results) -> None:
    page = report.read_text()
    assert "src=" not in re.sub(r"(?s)<script.*?</script>", "", page)
    for href in re.findall(r'href="([^"]*)"', page):
        assert re.match("#|data:|runs/|laboratory.html#", href), "nothing is loaded from elsewhere"
    table = summary_table(results)
    for row in table.rows:
        assert f'<a href="#law-{row[0]}">{row[0]}</a></td>' in page
        assert f'<section id="law-{row[0]}"><h3>{law(row[0]).title}</h3>' in page
        for cell in row[table.keys :]:
            assert f"<td>{cell.replace('± ', '±&nbsp;')}</td>" in page
    for run in results.runs:
        assert run.summary["hash"] in page
        assert law(str(run.factors["law"])).color in page
    assert "MIT" in page, "the licence of uPlot travels with it"


def test_figures_say_what_made_them(report: Path, results: Results) -> None:
    said = origin(results.runs)
    provenance = json.loads((results.runs[0].path / "provenance.json").read_text())
    assert said.startswith(f"lfnlab {provenance['code']}, {len(results.runs)} runs ")
    assert said.endswith(provenance["command"])
    for kind in ("png", "pdf", "svg"):
        file = results.plot("goodput").save(report.parent / f"again.{kind}")
        data = file.read_bytes()
        written = "".join(said.split())
        if kind == "pdf":  # its texts have escapes and may be compressed
            assert b"/Subject (Written by lfn" in data
            written, data = "lfnlab", data.replace(b"\\", b"")
        assert written.encode() in b"".join(data.split()), kind


def test_a_table_that_left_its_store_still_names_its_run(results: Results) -> None:
    run = results.runs[0]
    about = pl.read_parquet_metadata(run.path / "flows.parquet")
    assert about["lfnlab.hash"] == run.summary["hash"]
    assert about["lfnlab.seed"] == str(run.seed)
    assert about["lfnlab.scenario"] == (run.path / "scenario.toml").read_text()
    assert about["lfnlab.code"] == json.loads((run.path / "provenance.json").read_text())["code"]


def test_a_report_alone_writes_two_pages(results: Results, tmp_path: Path) -> None:
    write_report(results, out=tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["laboratory.html", "report.html"]


def test_figures_are_written_twice(report: Path) -> None:
    figures = report.parent / "figures"
    for name in ("goodput", "cov", "jain", "cwnd", "queue", "rate"):
        assert (figures / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (figures / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_the_same_results_give_the_same_files(report: Path, results: Results) -> None:
    files = [report, report.parent / "figures" / "cwnd.pdf", report.parent / "figures" / "cwnd.png"]
    before = [file.read_bytes() for file in files]
    write_report(results, files=True)
    assert [file.read_bytes() for file in files] == before


def test_traces_on_the_page_are_those_of_the_tables(report: Path, results: Results) -> None:
    cwnd = charts_of(report)["chart-cwnd"]
    first = cwnd["series"][0]
    table = results.runs[0].table("flows")
    own = table.filter(table["flow"] == 0)["cwnd_seg"]
    assert first["label"] == "reno #0"
    shown = [y for y in first["y"] if y is not None]
    assert len(cwnd["t"]) == len(first["y"])
    assert max(shown) == pytest.approx(own.max(), rel=1e-4)
    assert min(shown) == pytest.approx(own.min(), rel=1e-4)


def charts_of(page: Path) -> dict[str, Any]:
    views = list(traced(page)["views"].values())
    return {chart["id"]: chart for chart in views[0]["charts"]} if views else {}


def traced(page: Path) -> dict[str, Any]:
    found = re.search(r'id="traced">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_each_case_is_shown_alone_on_one_time_axis(report: Path, results: Results) -> None:
    views = traced(report)["views"]
    assert list(views) == ["all", "case-0", "case-1"]
    for view in views.values():
        ends = {(chart["t"][0], chart["t"][-1]) for chart in view["charts"]}
        assert len(ends) == 1
        assert [chart["id"] for chart in view["charts"]] == [
            "chart-cwnd", "chart-rate", "chart-queue"]  # fmt: skip
    second = results.first_runs[("cubic",)]
    own = second.table("flows").filter(pl.col("flow") == 1)["cwnd_seg"]
    cwnd = views["case-1"]["charts"][0]
    assert [series["label"] for series in cwnd["series"]] == ["cubic #0", "cubic #1"]
    assert max(y for y in cwnd["series"][1]["y"] if y) == pytest.approx(own.max(), rel=1e-4)


def test_a_page_without_room_names_the_command(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lfnlab.figures.views.BUDGET_BYTES", 1)
    page = write_report(results, out=tmp_path)
    data = traced(page)
    assert list(data["views"]) == ["all", "case-0"]
    command = [*shlex.split(data["command"]), data["cases"][1][1]]
    assert command[0] == "lfn"
    assert call([*command[1:], "--out", str(tmp_path / "run.svg")]) == 0
    assert "cubic" in (tmp_path / "run.svg").read_text()
    if chromium():
        with Page(1200, 900, dark=False) as browser:
            browser.open(page)
            browser.evaluate("document.querySelectorAll('td.lead a')[1].click()")
            browser.evaluate("new Promise(requestAnimationFrame)")
            told = browser.evaluate("document.getElementById('told').textContent")
            assert " ".join([data["command"], data["cases"][1][1]]) in told
            assert browser.evaluate("document.querySelectorAll('.uplot').length") == 0
            assert browser.complaints == []


def test_figures_lead_to_their_data(report: Path, results: Results, tmp_path: Path) -> None:
    text = report.read_text()
    for name, metric in (("goodput", "goodput_bps"), ("delay", "mean_queue_s")):
        found = re.search(rf'download="{name}.csv" href="data:text/csv;charset=utf-8,(.*?)"', text)
        assert found
        assert unquote(found[1]) == results.table([metric]).write_csv()
    key = results.runs[0].path.name
    for page in (report, write_report(results, out=tmp_path / "an ü folder")):
        found = re.search(rf'<a href="([^"]*/{key}/)">', page.read_text())
        assert found
        assert (page.parent / unquote(found[1]) / "flows.parquet").is_file()


@needs_browser
def test_a_cell_and_a_bar_lead_to_the_traces_of_their_case(report: Path) -> None:
    with Page(1200, 900, dark=False) as page:
        page.open(report)
        assert page.evaluate("document.getElementById('view').value") == "all"
        page.evaluate("document.querySelector('td.lead a[aria-label=\"traces of cubic\"]').click()")
        page.evaluate("new Promise(requestAnimationFrame)")
        assert page.evaluate("document.getElementById('view').value") == "case-1"
        assert page.evaluate("document.activeElement.id") == "view"
        names = "[...document.querySelectorAll('#chart-cwnd + ul button')].map(b => b.textContent)"
        assert page.evaluate(names) == ["cubic #0", "cubic #1"]
        # Of the bar of reno, the first of the figure on goodput.
        x, y = page.evaluate(
            "(e => { e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); "
            "return [b.left + b.width / 2, b.top + b.height / 2]; })"
            "(document.querySelector('figure svg a[*|href=\"#case-0\"]'))"
        )
        for kind in ("mousePressed", "mouseReleased"):
            page.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        page.evaluate("new Promise(requestAnimationFrame)")
        assert page.evaluate("document.getElementById('view').value") == "case-0"
        assert page.evaluate(names) == ["reno #0", "reno #1"]
        lefts = page.evaluate(
            "[...document.querySelectorAll('.u-over')].map(e => [e.getBoundingClientRect().left, "
            "e.getBoundingClientRect().width])"
        )
        assert len({tuple(left) for left in lefts}) == 1, "time axes stand one above the other"
        assert page.complaints == []


@needs_browser
def test_every_control_is_reached_by_tab_and_shows_it(report: Path) -> None:
    with Page(1200, 900, dark=False) as page:
        page.open(report)
        wanted = page.evaluate(
            "(window.controls = [...document.querySelectorAll('a[href], button, select, summary, "
            "[tabindex=\"0\"]')].filter(e => e.checkVisibility() && !e.closest('svg'))).length"
        )
        reached = []
        for _ in range(wanted):
            for kind in ("rawKeyDown", "keyUp"):
                page.send("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab",
                          windowsVirtualKeyCode=9)  # fmt: skip
            place, outline = page.evaluate(
                "[controls.indexOf(document.activeElement), "
                "getComputedStyle(document.activeElement).outlineStyle]"
            )
            assert outline != "none", page.evaluate("document.activeElement.outerHTML")
            reached.append(place)
        assert reached == list(range(wanted)), "in the order of the page"
        pictures = page.evaluate(
            "[...document.querySelectorAll('figure svg, .chart [role=img]')]"
            ".map(e => e.getAttribute('role') + (e.getAttribute('aria-label') || ''))"
        )
        assert len(pictures) >= 6
        assert all(text.startswith("img") and len(text) > 10 for text in pictures)


@needs_browser
def test_on_paper_nothing_is_cut_and_all_is_dark_on_white(report: Path) -> None:
    """A4 has 688 CSS pixels between margins of 14 mm."""
    with Page(688, 972, dark=True) as page:
        page.open(report)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.send("Emulation.setEmulatedMedia", media="print")
        page.evaluate("new Promise(requestAnimationFrame)")
        assert (
            page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        )
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        ends = page.evaluate(
            "[...document.querySelectorAll('table.data, figure svg, .uplot, pre')]"
            ".filter(e => e.checkVisibility()).map(e => e.getBoundingClientRect().right)"
        )
        assert len(ends) > 6
        assert max(ends) <= 688
        left = page.evaluate(
            "[...document.querySelectorAll('select, button.copy, td.lead')]"
            ".filter(e => e.checkVisibility()).length"
        )
        assert left == 0, "nothing to press"
        assert page.evaluate("document.getElementById('shown').checkVisibility()")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.send("Emulation.setEmulatedMedia", media="screen")
        assert page.evaluate("document.documentElement.className") == ""
        assert page.complaints == []


SCENARIOS = Path(__file__).parents[3] / "scenarios"
PATH = {"rate": "10Mbit/s", "rtt": "10ms", "buffer": "1bdp", "duration": "2s"}
HOSTILE = "</script><!--<script>alert('1')</script> & \"x\" ü $x^ \\frac{"


def test_texts_of_the_user_stay_texts(tmp_path: Path) -> None:
    scenario = dumbbell(**PATH, name=HOSTILE).flow("reno")
    case = Case(scenario, {HOSTILE: HOSTILE})
    page = write_report(execute([case], out=tmp_path, title=HOSTILE))
    assert charts_of(page)["chart-cwnd"]["series"][0]["label"] == f"reno, {HOSTILE} {HOSTILE}"
    assert page.read_text().count("<script") == 4, "the page's own"
    if chromium():
        with Page(1200, 900, dark=False) as browser:
            browser.open(page)
            assert browser.complaints == []
            assert browser.evaluate("document.querySelector('h1').textContent") == HOSTILE
            text = browser.evaluate("document.querySelector('pre').textContent")
            assert json.dumps(HOSTILE, ensure_ascii=False) in text
            assert browser.evaluate("document.querySelectorAll('.uplot canvas').length") == 3


def test_a_page_of_any_topology_tells_its_links_and_what_changed(tmp_path: Path) -> None:
    """The path switch of the JGN II study, at a tenth of its rate and a sixth of its time."""
    text = (SCENARIOS / "jgn2-path-switch.toml").read_text()
    for old, new in [("120s", "20s"), ("30s", "5s"), ("90s", "15s"), ("1Gbit/s", "100Mbit/s")]:
        text = text.replace(f'"{old}"', f'"{new}"')
    results = execute(Scenario.from_toml(text, "switch.toml"), out=tmp_path)
    page = write_report(results)
    charts = charts_of(page)
    labels = [series["label"] for series in charts["chart-queue"]["series"]]
    assert labels == ["htcp, domestic", "htcp, emulator"]
    assert all(chart["changes"] == [5.0, 15.0] for chart in charts.values())
    # Each path is used while the flow is there alone.
    t = np.array(charts["chart-queue"]["t"])
    domestic, emulator = (np.array(s["y"]) for s in charts["chart-queue"]["series"])
    assert not domestic[(t > 5.5) & (t < 15)].any()
    assert not emulator[t < 5].any()
    assert domestic.any()
    assert emulator.any()
    for link in results.runs[0].summary["links"]:
        assert f'<td class="text">{link["id"]}</td>' in page.read_text()
    assert page.read_text().count("A dotted line stands where the scenario changes") == 1
    if chromium():
        with Page(1200, 900, dark=False) as browser:
            browser.open(page)
            assert browser.complaints == []


def test_many_flows_are_a_small_page_with_some_of_each_law(tmp_path: Path) -> None:
    base = dumbbell(**PATH)
    # The flows of the first group begin later: a number on the page is the flow's, not its turn.
    scenario = base.flow("cubic", count=100, start="uniform(1s, 1.5s)").flow("reno", count=100)
    page = write_report(execute([Case(scenario)], out=tmp_path))
    chart = charts_of(page)["chart-cwnd"]
    assert "12 of 200 flows" in chart["title"]
    labels = [series["label"] for series in chart["series"]]
    assert [label.split()[0] for label in labels] == ["cubic"] * 6 + ["reno"] * 6
    assert labels[0] == "cubic #0"
    assert labels[-1] == "reno #199"
    assert page.stat().st_size < 500_000


def test_flows_in_the_reverse_direction(tmp_path: Path) -> None:
    scenario = dumbbell(**PATH).flow("reno", direction="reverse")
    results = execute([Case(scenario)], out=tmp_path)
    assert results.rows()[0]["utilization"] > 0.9, "of the link that carries the data"
    queue = charts_of(write_report(results))["chart-queue"]["series"][0]["y"]
    assert max(y for y in queue if y is not None) > 0


@pytest.mark.parametrize("sample", ["10ms", "off"])
def test_background_alone(sample: str, tmp_path: Path, lfn: Lfn) -> None:
    base = dumbbell(**(PATH | {"buffer": "100 packets"}), sample=sample)
    page = write_report(execute([Case(base.with_background(1))], out=tmp_path))
    assert "background traffic only" in page.read_text()
    assert set(charts_of(page)) == (set() if sample == "off" else {"chart-queue"})
    results = Results.load(tmp_path)
    assert [row[0] for row in summary_table(results).rows] == ["forward", "reverse"]
    assert page.read_text().count('href="data:text/csv') == 2
    for figure in ("link-utilization", "link-delay"):
        assert results.plot(figure).says.startswith(registry.FIGURES[figure].caption)
    assert results.table().is_empty()
    with pytest.raises(UsageError, match="figure goodput: these runs have no flows"):
        results.plot("goodput")
    assert call(["table", str(tmp_path)]) == 0
    lines = lfn("table", tmp_path, "--csv").splitlines()
    assert lines[-3].split(",")[:4] == ["link", "seeds", "utilization", "utilization_ci95"]
    assert [line.split(",")[0] for line in lines[-2:]] == ["forward", "reverse"]
    assert call(["table", str(tmp_path), "--baseline", "reno"]) == 2


def test_a_flow_that_sends_nothing(tmp_path: Path) -> None:
    scenario = dumbbell(**PATH).flow("reno", start="1.999s")
    results = execute([Case(scenario)], out=tmp_path)
    write_report(results)
    assert results.rows()[0]["goodput_bps"] == 0
    assert to_json(results)["aggregate"]["reno"]["jain"]["mean"] is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=500), st.integers(2, 60))
def test_thinning_keeps_the_extremes(values: list[float], points: int) -> None:
    y = np.array(values)
    t = np.arange(y.size, dtype=float)
    thin_t, thin_y = thin(t, y, points)
    assert thin_t.size <= max(points, 2)
    assert (np.diff(thin_t) > 0).all()
    assert (y[thin_t.astype(int)] == thin_y).all()
    assert (thin_y.min(), thin_y.max()) == (y.min(), y.max())


@needs_browser
@pytest.mark.parametrize(("width", "height"), [(1200, 900), (390, 844)])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_opens(report: Path, width: int, height: int, dark: bool) -> None:
    with Page(width, height, dark=dark) as page:
        page.open(report)
        assert page.complaints == []
        assert page.requests == [report.resolve().as_uri()]
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "no sideways scroll"
        assert page.evaluate("document.querySelectorAll('.uplot canvas').length") == 3
        background, ink = page.evaluate(
            "(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))"
        )
        lightness = [sum(map(int, re.findall(r"\d+", c)[:3])) for c in (background, ink)]
        assert (lightness[0] < lightness[1]) == dark
        smallest = page.evaluate(
            "Math.min(...[...document.querySelectorAll('figure svg text, td, p')].map(e => "
            "e.closest('svg') ? parseFloat(getComputedStyle(e).fontSize) * "
            "e.closest('svg').getBoundingClientRect().width / "
            "e.closest('svg').viewBox.baseVal.width : parseFloat(getComputedStyle(e).fontSize)))"
        )
        assert smallest >= 8, "readable, on a phone too"


@needs_browser
def test_zoom_and_hover(report: Path) -> None:
    with Page(1200, 900, dark=False) as page:
        page.open(report)
        page.evaluate("document.querySelector('.u-over').scrollIntoView({block: 'center'})")
        box = page.evaluate(
            "(b => [b.left, b.top, b.width, b.height])"
            "(document.querySelector('.u-over').getBoundingClientRect())"
        )
        left, top, width, height = box
        y = top + height / 2
        page.send("Input.dispatchMouseEvent", type="mouseMoved", x=left + width / 2, y=y)
        page.evaluate("new Promise(requestAnimationFrame)")
        values = page.evaluate(
            "[...document.querySelector('.legend').querySelectorAll('output')]"
            ".map(e => e.textContent)"
        )
        assert 2 < _time_s(page) < 4, "the time under the pointer, of 6 s"
        assert all(values), "a value of every trace"
        before = page.evaluate("document.querySelector('canvas').toDataURL()")
        page.drag(left + width * 0.25, left + width * 0.5, y)
        page.evaluate("new Promise(requestAnimationFrame)")
        page.send("Input.dispatchMouseEvent", type="mouseMoved", x=left + 1, y=y)
        page.evaluate("new Promise(requestAnimationFrame)")
        assert page.evaluate("document.querySelector('canvas').toDataURL()") != before
        assert 1.2 < _time_s(page) < 1.8, "the view begins where the drag began"
        assert page.complaints == []


@needs_browser
def test_a_table_is_sorted_by_keyboard_and_copied(report: Path) -> None:
    with Page(1200, 900, dark=False) as page:
        page.open(report)
        shown = (
            "[...document.querySelector('table.data tbody').rows].map(r => r.cells[2].textContent)"
        )
        for order in ("ascending", "descending"):
            page.evaluate("document.querySelectorAll('table.data th button')[1].focus()")
            for kind in ("keyDown", "keyUp"):
                page.send("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter",
                          windowsVirtualKeyCode=13, text="\r")  # fmt: skip
            sort = "document.querySelectorAll('table.data th')[2].getAttribute('aria-sort')"
            assert page.evaluate(sort) == order
            values = [float(text.split(" ")[0]) for text in page.evaluate(shown)]
            assert values == sorted(values, reverse=order == "descending")
        # A browser without a window has no clipboard.
        page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        page.evaluate("document.querySelector('button.copy').click()")
        copied = page.evaluate("window.copied")
        assert copied.splitlines()[0].startswith("law\tgoodput"), "without the links"
        assert len(copied.splitlines()) == 1 + len(values)
        assert page.complaints == []


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_texts_have_contrast_and_every_control_a_name(report: Path, dark: bool) -> None:
    """WCAG AA: 4.5 between text and page."""
    with Page(390, 844, dark=dark) as page:
        page.open(report)
        pairs = page.evaluate(
            "[...document.querySelectorAll('h1, h2, p, td, th, th button, figcaption, summary, "
            ".legend button, figure svg text')].map(e => { const s = getComputedStyle(e); "
            "return [e.closest('svg') ? s.fill : s.color, "
            "getComputedStyle(document.body).backgroundColor]; })"
        )
        for ink, ground in {tuple(pair) for pair in pairs}:
            high, low = sorted(
                (
                    luminance(np.array([int(c) / 255 for c in re.findall(r"\d+", text)[:3]]))
                    for text in (ink, ground)
                ),
                reverse=True,
            )
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground)
        names = page.evaluate(
            "[...document.querySelectorAll('button, [tabindex], svg[role=img]')]"
            ".map(e => e.textContent || e.getAttribute('aria-label'))"
        )
        assert all(names)


def _time_s(page: Page) -> float:
    """The time that the first legend shows, in seconds."""
    return float(page.evaluate("document.querySelector('.legend .time').textContent.split(' ')[1]"))


@needs_browser
def test_a_trace_is_hidden_by_keyboard_and_stays_hidden_when_the_page_turns_dark(
    report: Path,
) -> None:
    with Page(1200, 900, dark=False) as page:
        page.open(report)
        page.evaluate("document.querySelector('.legend button').focus()")
        before = page.evaluate("document.querySelector('canvas').toDataURL()")
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter",
                      windowsVirtualKeyCode=13, text="\r")  # fmt: skip
        page.evaluate("new Promise(requestAnimationFrame)")
        pressed = "document.querySelector('.legend button').getAttribute('aria-pressed')"
        assert page.evaluate(pressed) == "false"
        assert page.evaluate("document.querySelector('canvas').toDataURL()") != before
        dark = {"name": "prefers-color-scheme", "value": "dark"}
        page.send("Emulation.setEmulatedMedia", features=[dark])
        page.evaluate("new Promise(requestAnimationFrame)")
        assert page.evaluate(pressed) == "false"
        lines = page.evaluate(
            "[...document.querySelector('.legend').querySelectorAll('path')]"
            ".map(p => p.getAttribute('stroke') + p.getAttribute('stroke-dasharray'))"
        )
        assert len(set(lines)) == len(lines), "each name shows its own line"


def test_a_slow_report_tells_at_a_terminal_how_far_it_is(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = itertools.count()
    write_report(results, out=tmp_path, step=lambda: next(steps))
    assert next(steps) == 2 * len(results.runs)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, after_s, shown in ((Terminal(), 2.0, True), (Terminal(), 0.1, False),
                                   (io.StringIO(), 2.0, False)):  # fmt: skip
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(time, "monotonic", itertools.count(0.0, after_s).__next__)
        with report_bar(3) as step:
            for _ in range(6):
                step()
        assert ("report" in stream.getvalue()) == shown


@needs_browser
@pytest.mark.parametrize(
    ("width", "dark"), [(390, False), (390, True), (1200, False), (2000, True)]
)
def test_no_table_is_cut_at_any_width(tmp_path: Path, width: int, dark: bool) -> None:
    """A table of three factors was cut at 1200 pixels, and any at 390."""
    path = dumbbell(rate="20Mbit/s", rtt="20ms", buffer="1bdp", duration="3s").with_background(1)
    keys = ("link.queue.size", "flow[0].rtt", "flow[0].initial_window")
    cases = [
        Case(path.flow(law), dict(zip(keys, (size, "20ms", "10 packets"), strict=True)))
        for law in ("reno", "cubic:linux")
        for size in ("0.1bdp", "1bdp")
    ]
    page = write_report(execute(cases, seeds=2, out=tmp_path))
    cut = (
        "[...document.querySelectorAll('.scroll:has(> table), .card')]"
        ".filter(e => e.checkVisibility())"
        ".map(e => e.scrollWidth - e.clientWidth).filter(more => more > 1).length"
    )
    with Page(width, 900, dark=dark) as shown:
        shown.open(page)
        shown.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        shown.evaluate("new Promise(done => setTimeout(done, 100))")
        assert shown.evaluate(cut) == 0
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        cells = "[...document.querySelectorAll('table.stacked td')].every(td => td.dataset.label)"
        assert shown.evaluate(cells) is True
        assert shown.complaints == []


def test_a_card_on_the_page_is_no_raw_markdown(report: Path) -> None:
    page = report.read_text()
    laws = page[page.index("<h2>Laws</h2>") :]
    laws = laws[: laws.index('<h2 id="runs">')]
    prose = re.sub(r"(?s)<pre>.*?</pre>", "", laws)
    assert re.findall(r"(?m)^\s*(?:#+ |\|)|`|\]\(|\*\*", prose) == []
    assert "<table>" in prose
    assert "<h4>" in prose


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a `b<c`", "<p>a <code>b&lt;c</code></p>\n"),
        ("## Head", "<h4>Head</h4>\n"),
        ("[CUBIC](cubic.md)", '<p><a href="#law-cubic">CUBIC</a></p>\n'),
        ("[`BIC`](bic.md) and **more**", "<p><code>BIC</code> and <strong>more</strong></p>\n"),
        ("[Evidence](../../docs/evaluations.md)", "<p>Evidence</p>\n"),
        ("[RFC](https://a.example/b)", '<p><a href="https://a.example/b">RFC</a></p>\n'),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>\n"),
        ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>\n"),
    ],
)
def test_markdown_becomes_html_with_links_that_lead_somewhere(text: str, html: str) -> None:
    assert as_html(text, {"cubic"}) == html


@pytest.mark.parametrize(("rate", "unit"), [("1Gbit/s", "Gbit/s"), ("100Mbit/s", "Mbit/s")])
def test_a_page_has_one_unit_of_rates(tmp_path: Path, rate: str, unit: str) -> None:
    """The table had Gbit/s above figures and traces in Mbit/s."""
    path = dumbbell(rate=rate, rtt="10ms", buffer="1bdp", duration="3s")
    results = execute([Case(path.flow(law), {"law": law}) for law in ("reno", "bbr")], out=tmp_path)
    page = write_report(results).read_text()
    assert set(re.findall(r"\((.bit/s)\)", page)) == {unit}
    assert f"Goodput in 1-s bins ({unit})" in page
    figure, _ = registry.of_report(results, results.runs)["rate"]
    top = max(line.get_ydata().max() for axes in figure.axes for line in axes.lines)
    assert top == pytest.approx(1.0 if unit == "Gbit/s" else 100.0, rel=0.3)
