# ruff: noqa: E501 - scenarios and JavaScript on one line
"""The laboratory in the browser: does it simulate what `lfn run` does, and does it work for everyone?"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from browser import CONTRAST, Page, chromium
from lfnlab import Case, Scenario, execute
from lfnlab.cli import app as cli
from lfnlab.figures.report import write_report
from lfnlab.html import asset
from lfnlab.laboratory.page import page

if TYPE_CHECKING:
    from command import Lfn

ROOT = Path(__file__).parents[3]
needs_browser = pytest.mark.skipif(chromium() is None, reason="no chromium on this machine")
made = subprocess.run([ROOT / "crates/browser/inputs"], capture_output=True, text=True, check=True)
needs_current = pytest.mark.skipif(
    made.stdout != asset("lfnlab.laboratory", "lfn.wasm.inputs").decode(),
    reason="the sources have changed since the page's simulator was built: make browser builds it",
)
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no node: install nodejs")

LINK = 'schema = 1\nduration = "{s}s"\nseed = 7\n[link]\nrate = "{rate}"\n{link}\n'
FLOW = '[[flow]]\nlaw = "{law}"\nrtt = "{rtt}"\n{flow}\n'


def scenario(
    law: str, rate: str = "50Mbit/s", rtt: str = "40ms", s: int = 6, link: str = "", more: str = ""
) -> str:
    return LINK.format(s=s, rate=rate, link=link) + FLOW.format(law=law, rtt=rtt, flow=more)


SCENARIOS = [
    scenario("reno"),
    scenario("cubic", "1Gbit/s", "100ms"),
    scenario("htcp-be", "200Mbit/s", link="loss = 1e-4"),
    scenario("htcp", "200Mbit/s", more="count = 3"),
    scenario("westwood", link="loss = { kind = 'gilbert-elliott', p = 1e-4, r = 0.1 }"),
    scenario("bbr", more="[background]\nlevel = 2"),
    scenario("bbr3", "200Mbit/s", link="queue = { kind = 'codel', size = '1bdp' }"),
    scenario("copa", link="jitter = { low = '0s', high = '2ms' }"),
    scenario("dctcp", link="queue = { kind = 'red', size = '1bdp', ecn = true, mark_p = 1 }"),
    scenario("vcp", link="router = { kind = 'vcp' }", more="count = 2"),
    scenario("evcp", link="router = { kind = 'vcp' }"),
    scenario("xcp", link="router = { kind = 'xcp' }"),
    scenario("rcp", link="router = { kind = 'rcp' }"),
    scenario("jetmax", link="router = { kind = 'jetmax' }"),
    scenario("cubic", link="queue = { kind = 'fq-codel', size = '1bdp' }", more="count = 10\nstart = 'uniform(0s, 2s)'"),
    scenario("fast", link="queue = { kind = 'pie', size = '1bdp' }\nreorder = { p = 0.001, delay = '1ms' }"),
    scenario("udt", more="transport = 'udt'"),
    scenario("reno", s=4).replace("seed", "compat = 'ns2'\nseed"),
    scenario("cubic", more="[[traffic]]\npackmime = { connections = 20 }\n[[schedule]]\nat = '3s'\nlink = 'forward'\nrate = '20Mbit/s'"),
    "schema = 1\nduration = '6s'\n[parking-lot]\nhops = 3\nrate = '50Mbit/s'\ndelay = '10ms'\n[[flow]]\nlaw = 'compound'\n[[flow]]\nlaw = 'yeah'\nfrom = 3\nto = 2\n",
]  # fmt: skip

NODE = """
const { readFileSync } = require("node:fs");
const { gunzipSync } = require("node:zlib");
const told = [];
globalThis.onmessage = null; // a worker has one
globalThis.postMessage = (message) => {
  if (message.progress !== undefined || message.laws) return;
  told.push(message.error ?? message.report.summary.hash);
  next();
};
const [worker, wasm, texts] = process.argv.slice(1).map((file) => readFileSync(file));
(0, eval)(worker.toString());
onmessage({ data: { module: new WebAssembly.Module(gunzipSync(wasm)) } });
const todo = JSON.parse(texts);
const next = () => {
  if (told.length === todo.length) return console.log(JSON.stringify(told));
  onmessage({ data: { id: told.length, text: todo[told.length] } });
};
next();
"""


@pytest.fixture(scope="module")
def hashes(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The results of `lfn run`."""
    cases = [Case(Scenario.from_toml(text), {"case": i}) for i, text in enumerate(SCENARIOS)]
    runs = execute(cases, out=tmp_path_factory.mktemp("native")).runs
    by_case = {run.factors["case"]: run.summary["hash"] for run in runs}
    return [by_case[i] for i in range(len(SCENARIOS))]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page") / "laboratory.html"
    made.write_text(page())
    return made


@pytest.fixture(scope="module")
def lab(file: Path) -> Iterator[Page]:
    with Page(1200, 900, dark=False) as shown:
        go(shown, file)
        yield shown


def go(shown: Page, file: Path, fragment: str = "") -> None:
    """Open the page again, and wait for its runs."""
    shown.send("Page.navigate", url="about:blank")
    shown.send("Page.navigate", url=f"{file.as_uri()}#{fragment}")
    shown.evaluate(
        "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))"
    )
    shown.evaluate("laboratory.settled()")


def reports(shown: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown.evaluate(
        "laboratory.benches.map(({ report, error, setting }) => "
        "({ hash: report?.summary.hash ?? '', error, setting }))"
    )
    return found


def test_the_page_is_small_and_loads_nothing(file: Path) -> None:
    text = file.read_text()
    assert len(text) < 2_500_000
    assert not re.search(r"(src|href)=\"(?!data:)", re.sub(r"(?s)<script.*?</script>", "", text))


@needs_current
@needs_node
def test_node_has_the_hashes_of_the_command(hashes: list[str], tmp_path: Path) -> None:
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps(SCENARIOS))
    assets = ROOT / "python/lfnlab/laboratory/assets"
    command = ["node", "-e", NODE, assets / "laboratory.worker.js", assets / "lfn.wasm.gz", texts]
    made = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert json.loads(made.stdout) == hashes


@needs_current
@needs_browser
def test_chromium_has_the_hashes_of_the_command(hashes: list[str], lab: Page) -> None:
    told = [lab.evaluate(f"laboratory.simulate({json.dumps(text)})") for text in SCENARIOS]
    assert [said.get("error") or said["report"]["summary"]["hash"] for said in told] == hashes
    assert lab.complaints == []


@needs_browser
def test_errors_are_those_of_the_command(lab: Page, file: Path, tmp_path: Path) -> None:
    wrong = scenario("cubik")
    (tmp_path / "scenario.toml").write_text(wrong)
    lfn = [sys.executable, "-m", "lfnlab.cli", "run", "scenario.toml"]
    made = subprocess.run(lfn, capture_output=True, text=True, cwd=tmp_path)
    assert made.returncode == 2
    go(lab, file, "a.toml=" + quote(wrong, safe=""))
    assert lab.evaluate("document.querySelector('.error').textContent") == made.stderr.strip()


@needs_browser
@pytest.mark.parametrize(("width", "height"), [(390, 844), (1200, 900), (2560, 1440)])
@pytest.mark.parametrize("dark", [False, True])
def test_every_lesson_at_every_width(file: Path, width: int, height: int, dark: bool) -> None:
    with Page(width, height, dark=dark) as shown:
        for number in range(1, 8):
            go(shown, file, f"lesson={number}")
            assert [said["error"] for said in reports(shown)] == ["", ""]
            badges = "[...document.querySelectorAll('.badge')].map(b => b.disabled)"
            assert not any(shown.evaluate(badges)), f"a point of lesson {number} is on no curve"
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.complaints == []
        asked = {url.split(":")[0] for url in shown.requests}
        assert asked <= {"file", "blob", "about"}


@needs_browser
def test_all_charts_have_the_whole_time_of_the_run(lab: Page, file: Path) -> None:
    """The axis of goodput began at 1 s, where its first bin ends."""
    go(lab, file, "lesson=4")
    ends = "laboratory.benches.map(b => b.plots.map(p => [p.data[0][0], p.data[0].at(-1)]))"
    assert lab.evaluate(ends) == [[[0, 60]] * 3] * 2
    scales = "laboratory.benches.map(b => b.plots.map(p => [p.scales.x.min, p.scales.x.max]))"
    assert lab.evaluate(scales) == [[[0, 60]] * 3] * 2


@needs_browser
def test_the_sentences_on_rtt_unfairness_are_what_the_curves_show(lab: Page, file: Path) -> None:
    go(lab, file, "lesson=4")
    at_45_s = "report.flows.map(f => f.goodput_bps[report.goodput_t.indexOf(45)])"
    of_reno, of_hybla = lab.evaluate(f"laboratory.benches.map(({{ report }}) => {at_45_s})")
    assert of_reno[0] > of_reno[1]
    assert of_hybla[0] < of_hybla[1]
    assert "more than half" in lab.evaluate("document.getElementById('lesson').textContent")


@needs_browser
def test_the_first_picture_and_a_long_fat_run_come_soon(lab: Page, file: Path) -> None:
    """They are soon there because their packets are few: two to three million take 2 s."""
    go(lab, file)
    assert lab.evaluate("document.querySelectorAll('.uplot').length") == 3
    first = lab.evaluate("laboratory.benches[0].report.summary")
    assert 0 < first["data_packets_delivered"] < 3_000_000
    text = scenario("cubic", "1Gbit/s", "100ms", 30)
    told = lab.evaluate(f"laboratory.simulate({json.dumps(text)})")
    assert told["ms"] > 0
    assert told["report"]["summary"]["data_packets_delivered"] < 3_000_000


@needs_browser
def test_a_slider_moves_the_curves_and_the_address(lab: Page, file: Path) -> None:
    go(lab, file, "a.rate=50Mbit%2Fs&a.law=reno")
    before = reports(lab)
    lab.evaluate(
        "(() => { const rtt = document.getElementById('A-rtt'); rtt.value = 5; "
        "rtt.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    lab.evaluate("new Promise(done => setTimeout(done, 200))")
    lab.evaluate("laboratory.settled()")
    after = reports(lab)
    assert after[0]["setting"]["rtt"] == "40ms"
    assert after[0]["hash"] != before[0]["hash"]
    fragment = lab.evaluate("location.hash.slice(1)")
    go(lab, file, fragment)
    assert reports(lab) == after


@needs_browser
def test_two_settings_have_one_scale(lab: Page, file: Path) -> None:
    go(lab, file, "two=1&a.rate=50Mbit%2Fs&b.rate=10Mbit%2Fs")
    tops = lab.evaluate("laboratory.benches.map(b => b.plots.map(p => p.scales.y.max))")
    assert tops[0] == tops[1]
    lab.evaluate("document.getElementById('beside').click()")
    assert len(reports(lab)) == 1


@needs_browser
def test_a_long_run_shows_progress_and_can_be_cancelled(lab: Page, file: Path) -> None:
    go(lab, file, "a.rate=50Mbit%2Fs")
    first = reports(lab)[0]["hash"]
    lab.evaluate(
        "laboratory.benches[0].change('toml', laboratory.tomlOf({ rate: '10Gbit/s', duration: '300s' }))"
    )
    lab.wait_until("(p => !p.hidden && p.value)(document.querySelector('progress'))")
    assert not lab.evaluate("document.querySelector('.cancel').hidden")
    lab.evaluate("document.querySelector('.cancel').click()")
    assert lab.evaluate("document.querySelector('.cancel').hidden")
    lab.evaluate("laboratory.benches[0].change('toml', '')")
    lab.evaluate("new Promise(done => setTimeout(done, 600))")
    lab.evaluate("laboratory.settled()")
    assert reports(lab)[0]["hash"] == first
    assert lab.complaints == []


SETTINGS = [
    {"law": "reno"},
    {
        "law": "cubic",
        "aqm": "fq-codel",
        "ecn": "1",
        "second": "bbr",
        "start2": "2s",
        "rtt2": "10ms",
    },
    {"law": "vcp", "flows": "2"},
    {"law": "htcp-be", "loss": "1e-5", "background": "1", "seed": "5", "window": "300"},
]


@needs_current
@needs_browser
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting["law"])
def test_what_is_copied_gives_the_hash_of_the_page(
    setting: dict[str, str], lab: Page, tmp_path: Path
) -> None:
    setting = setting | {"rate": "50Mbit/s", "rtt": "40ms", "duration": "5s"}
    said = json.dumps(setting)
    copies = {
        kind: lab.evaluate(f"laboratory.COPIES.{kind}(laboratory.tomlOf({said}))")
        for kind in ("command", "python", "toml")
    }
    shown = lab.evaluate(f"laboratory.simulate(laboratory.tomlOf({said}))")
    expected = shown["report"]["summary"]["hash"]
    lfn = f'lfn() {{ "{sys.executable}" -m lfnlab.cli "$@" --json --no-report; }}\n'
    made = subprocess.run(
        ["bash", "-c", lfn + copies["command"]],
        capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    assert json.loads(made.stdout)["runs"][0]["hash"] == expected
    ends = "\nprint(results.runs[0].summary['hash'])"
    made = subprocess.run(
        [sys.executable, "-c", copies["python"] + ends],
        capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    assert made.stdout.split()[-1] == expected


@needs_browser
def test_python_survives_quotes_and_backslashes(lab: Page) -> None:
    text = 'a = """x"""\nb = "\\\\"\n'
    made: dict[str, Any] = {}
    python = lab.evaluate(f"laboratory.COPIES.python({json.dumps(text)})")
    exec(
        re.search(r'from_toml\((""".*?""")\)\n', python, re.DOTALL)[0]
        .replace("from_toml", "made.update", 1)
        .replace("made.update(", "made.update(text=", 1),
        {"made": made},
    )  # type: ignore[index]
    assert made["text"] == text


@needs_browser
def test_every_control_has_a_name_and_the_keyboard_reaches_it(lab: Page, file: Path) -> None:
    go(lab, file, "lesson=2")
    unnamed = lab.evaluate(
        "[...document.querySelectorAll('input, select, textarea, button')].filter(e => !e.hidden && "
        "!(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).map(e => e.outerHTML)"
    )
    assert unnamed == []
    assert lab.evaluate("[...document.querySelectorAll('[tabindex]')].every(e => e.tabIndex <= 0)")
    lab.evaluate("document.querySelector('#lessons button').focus()")
    reached = set()
    for _ in range(30):
        lab.press("Tab", 9)
        reached.add(lab.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"beside", "share", "A-law", "A-rate", "badge"} <= reached


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_texts_have_contrast(file: Path, dark: bool) -> None:
    with Page(1200, 900, dark=dark) as shown:
        for fragment in ("lesson=6", "a.toml=x"):
            go(shown, file, fragment)
            assert shown.evaluate(CONTRAST) == []


@needs_browser
@pytest.mark.parametrize(
    "fragment",
    [
        "", "lesson=99", "lesson=x", "a.law=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "a.rate=", "a.flows=1e9",
        "a.nonsense=1", "a.__proto__=1", "two=1&b.toml=%00", "a.toml=" + "x" * 20_000, "%%%", "a.duration=1000000000s",
        "a.window=-1", "a.seed=x", "a.start2=300s&a.second=reno",
    ],
)  # fmt: skip
def test_a_strange_address_is_an_error_or_a_run(lab: Page, file: Path, fragment: str) -> None:
    before = len(lab.complaints)
    go(lab, file, fragment)
    assert all(said["hash"] or said["error"] for said in reports(lab))
    assert lab.complaints[before:] == []


@needs_current
@needs_browser
def test_a_report_leads_to_the_laboratory(tmp_path: Path) -> None:
    text = scenario("htcp-be", link="loss = 1e-4")
    results = execute([Case(Scenario.from_toml(text))], out=tmp_path)
    report = write_report(results)
    hrefs = re.findall(r'href="(laboratory\.html#[^"]*)"', report.read_text())
    assert len(hrefs) == 2, "beside the scenario, and in the list of runs"
    with Page(1200, 900, dark=False) as shown:
        go(shown, tmp_path / "laboratory.html", hrefs[0].partition("#")[2])
        assert reports(shown)[0]["hash"] == results.runs[0].summary["hash"]


def test_the_command_writes_the_page(tmp_path: Path, lfn: Lfn) -> None:
    text = scenario("reno")
    (tmp_path / "s.toml").write_text(text)
    out = tmp_path / "an ü folder" / "page.html"
    out.parent.mkdir()
    for _ in range(2):
        assert cli.call(["laboratory", str(tmp_path / "s.toml"), "--out", str(out)]) == cli.OK
    assert lfn.said().out.split()[-1] == f"{out.as_uri()}#a.toml={quote(text, safe='')}"
    assert out.read_text() == page()
    (tmp_path / "mine.html").write_text("theirs")
    assert cli.call(["laboratory", "--out", str(tmp_path / "mine.html")]) == cli.STORE
    (tmp_path / "s.toml").write_text("x")
    assert cli.call(["laboratory", str(tmp_path / "s.toml"), "--out", str(out)]) == cli.USAGE
