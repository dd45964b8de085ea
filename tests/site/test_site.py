"""The site that `make site` builds: its search, its front page, and no page wider than a phone."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browser import CONTRAST, Page, chromium

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
FRONT = SITE / "docs" / "index.html"
SEARCH = SITE / "search.html"
PHONE, DESKTOP, WALL = (390, 844), (1200, 900), (2560, 1440)

pytestmark = pytest.mark.skipif(not SEARCH.is_file(), reason="no site: make site builds it")
needs_browser = pytest.mark.skipif(chromium() is None, reason="no chromium on this machine")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no node: install nodejs")

NODE = """
const { readFileSync } = require("fs");
const [, scripts, queries] = process.argv;
(0, eval)(JSON.parse(scripts).map((file) => readFileSync(file, "utf8")).join("\\n") +
  ";globalThis.found = (query) => search(query, searchIndex);");
console.log(JSON.stringify(JSON.parse(queries).map((query) => globalThis.found(query))));
"""
CLIPPED = """
[...document.querySelectorAll("body *")].filter((e) => {
  if (!e.checkVisibility() || e.getBoundingClientRect().right <= innerWidth + 1) return false;
  for (let at = e; at; at = at.parentElement) {
    if (["auto", "scroll"].includes(getComputedStyle(at).overflowX)) return false;
    if (at.matches(".sidebar-drawer, .toc-drawer, svg, .visually-hidden")) return false;
  }
  return true;
}).map((e) => e.outerHTML.slice(0, 120))
"""
"""Elements beyond the window that cannot be scrolled to."""


def search(*queries: str) -> list[list[dict[str, Any]]]:
    """Results of each query."""
    scripts = json.dumps([str(SITE / "search-index.js"), str(SITE / "_static" / "search.js")])
    command = ["node", "-e", NODE, scripts, json.dumps(queries)]
    made = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found: list[list[dict[str, Any]]] = json.loads(made.stdout)
    return found


FIRST = {
    "install": "docs/install",
    "resume a sweep": "docs/sweep",
    "export CSV": "docs/results",
    "jumbo frames": "docs/scenario",
    "plot cwnd": "docs/plot",
    "Wireshark": "docs/pcap",
    "proxy": "docs/install",
    "Windows": "docs/install",
    "units": "docs/scenario",
    "ns-2 script": "docs/compat",
    "cite": "docs/index",
    "kill -9": "docs/cli",
    "write a law": "docs/tutorial/law",
    "exit code": "docs/cli",
    "Résumé the SWEEPS": "docs/sweep",
}
AMONG_THREE = {
    "ECN": "docs/scenario",
    "BDP": "docs/scenario",
    "seeds": "docs/tutorial/first-scenario",
    "memory": "docs/cli",
    "random loss": "docs/scenario",
    "background traffic": "docs/traffic",
    "kernel": "docs/kernel",
    "e-VLBI": "docs/papers/htcp-be",
    "uninstall": "docs/install",
    "goodput definition": "docs/metrics",
}
"""Queries for which several pages are right."""


@needs_node
def test_queries_find_their_page() -> None:
    found = dict(zip([*FIRST, *AMONG_THREE], search(*FIRST, *AMONG_THREE), strict=True))
    assert {query: found[query][0]["name"] for query in FIRST} == FIRST
    missed = {
        query: [one["name"] for one in found[query][:3]]
        for query, name in AMONG_THREE.items()
        if name not in [one["name"] for one in found[query][:3]]
    }
    assert missed == {}


@needs_node
def test_results_lead_to_the_section_and_show_it() -> None:
    for query, heading in [("resume a sweep", "Resume a sweep"), ("jumbo frames", "jumbo frames")]:
        first = search(query)[0][0]
        assert heading in first["heading"]
        page = (SITE / f"{first['name']}.html").read_text()
        assert f'id="{first["anchor"]}"' in page
        said = "".join(text for text, _ in first["excerpt"])
        assert 40 < len(said) < 200
        assert any(hit for _, hit in first["excerpt"])


STRANGE = [
    "", " ", "a", "C", "x" * 10_000, "rtt " * 2500, ".*+?^${}()|[]\\", "(", "[a-", "\\d+",
    "<script>alert(1)</script>", "&amp;", "%00", "'\"`", "é", "ÅNGSTRÖM", "日本語", "🙂",
    "constructor", "__proto__", "toString", "zzzzqqq", "\0", "ﬁ",
]  # fmt: skip


@needs_node
def test_a_strange_query_has_results_or_none() -> None:
    found = dict(zip(STRANGE, search(*STRANGE), strict=True))
    for query in ("", " ", "(", "zzzzqqq", "日本語", "🙂", "x" * 10_000, ".*+?^${}()|[]\\"):
        assert found[query] == [], query
    assert found["rtt " * 2500]
    assert all(len(results) <= 30 for results in found.values())


def ask(shown: Page, query: str) -> dict[str, Any]:
    """Contents of the page of the search."""
    shown.send("Page.navigate", url=f"{SEARCH.as_uri()}?q={quote(query)}")
    shown.evaluate(
        "new Promise(done => document.readyState === 'complete' ? done() : "
        "addEventListener('load', done))"
    )
    said: dict[str, Any] = shown.evaluate(
        "({ said: document.getElementById('search-said').textContent, input: "
        "document.getElementById('search-words').value, results: "
        "[...document.querySelectorAll('#search-results a')].map(a => a.href), none: "
        "!document.getElementById('search-none').hidden, width: "
        "document.documentElement.scrollWidth })"
    )
    return said


@pytest.fixture(scope="module")
def phone() -> Iterator[Page]:
    with Page(*PHONE, dark=False) as shown:
        yield shown


@needs_browser
def test_the_search_page_answers(phone: Page) -> None:
    told = ask(phone, "resume a sweep")
    assert told["results"][0] == f"{SITE.as_uri()}/docs/sweep.html#resume-a-sweep"
    assert told["said"].endswith("pages")
    for query in STRANGE[:-2]:
        told = ask(phone, query)
        assert told["width"] <= PHONE[0]
        assert told["none"] == bool(query.strip() and not told["results"])
    told = ask(phone, "<script>alert(1)</script>")
    assert told["input"] == "<script>alert(1)</script>"
    assert phone.complaints == []
    assert {url.split(":")[0] for url in phone.requests} <= {"file", "data", "about"}


@needs_browser
def test_the_search_follows_the_keyboard(phone: Page) -> None:
    ask(phone, "")
    assert phone.evaluate("document.activeElement.id") == "search-words"
    phone.send("Input.insertText", text="jumbo frames")
    phone.wait_until("location.search === '?q=jumbo%20frames'")
    phone.press("Tab", 9)
    assert "docs/scenario.html" in phone.evaluate("document.activeElement.href")


@needs_browser
def test_no_page_is_wider_than_a_phone(phone: Page) -> None:
    pages = sorted(page for page in SITE.rglob("*.html") if "_static" not in page.parts)
    assert len(pages) > 80
    wide = {}
    for page in pages:
        if page == SITE / "index.html":
            continue  # it only leads to the front page
        phone.open(page)
        width = phone.evaluate("document.documentElement.scrollWidth")
        clipped = phone.evaluate(CLIPPED)
        if width > PHONE[0] or clipped:
            wide[str(page.relative_to(SITE))] = (width, clipped[:3])
    assert wide == {}
    assert phone.complaints == []


HINTS = "[...document.querySelectorAll('p.scrolls')].map(p => p.checkVisibility())"
REGIONS = "[...document.querySelectorAll('.table-wrapper')].map(t => t.tabIndex)"


@needs_browser
def test_a_wide_table_says_that_it_scrolls(phone: Page) -> None:
    phone.open(SITE / "docs" / "which-law.html")
    assert phone.evaluate(HINTS) == [True] * 3
    assert phone.evaluate(REGIONS) == [0] * 3
    phone.evaluate("document.querySelector('.table-wrapper').focus()")
    phone.press("ArrowRight", 39)
    phone.wait_until("document.querySelector('.table-wrapper').scrollLeft > 0")
    with Page(*WALL, dark=False) as shown:
        shown.open(FRONT)
        assert shown.evaluate(HINTS) == [False]
        assert shown.evaluate(REGIONS) == [-1]


@needs_browser
@pytest.mark.parametrize("size", [PHONE, DESKTOP, WALL])
@pytest.mark.parametrize("dark", [False, True])
def test_the_front_page(size: tuple[int, int], dark: bool) -> None:
    with Page(*size, dark=dark) as shown:
        shown.open(FRONT)
        shown.wait_until("document.querySelector('.moving')?.classList.contains('drawn')")
        assert shown.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert shown.evaluate(CLIPPED) == []
        assert shown.evaluate(CONTRAST) == []
        assert shown.evaluate(
            "[...document.images].every(i => i.alt.length > 20 || i.closest('a')?.textContent)"
        )
        assert shown.complaints == []
        assert {url.split(":")[0] for url in shown.requests} <= {"file", "data", "blob", "about"}
        place = shown.evaluate(
            "(({ width, height }) => [width, height])"
            "(document.querySelector('.moving iframe').getBoundingClientRect())"
        )
        # Until then its still picture stands there: the part of the box above and below it.
        shown.evaluate("document.querySelector('.moving').classList.remove('drawn')")
        white = shown.evaluate(
            "(({ clientHeight: box }, { clientWidth: wide, naturalWidth: w, naturalHeight: h }) => "
            "1 - wide * h / w / box)"
            "(document.querySelector('.moving'), document.querySelector('.moving img'))"
        )
        assert white < (0.02 if size == PHONE else 0.25)
    # The frame shows all of what it holds.
    with Page(round(place[0]), round(place[1]), dark=dark) as inside:
        inside.open(SITE / "laboratory.html")
        inside.send("Page.navigate", url=f"{(SITE / 'laboratory.html').as_uri()}#picture=1")
        inside.evaluate("laboratory.settled()")
        high = "document.getElementById('again').getBoundingClientRect().bottom"
        assert inside.evaluate(high) <= place[1]
        assert inside.evaluate(CONTRAST) == []


PICTURE = "laboratory.html#picture=1&a.second=bbr"
COVERS = "document.querySelectorAll('.cover').length"


def picture(shown: Page) -> None:
    shown.send("Page.navigate", url=f"{SITE.as_uri()}/{PICTURE}")
    shown.evaluate(
        "new Promise(done => document.readyState === 'complete' ? done() : "
        "addEventListener('load', done))"
    )
    shown.evaluate("laboratory.settled()")


@needs_browser
def test_the_picture_moves_for_four_seconds_and_again() -> None:
    with Page(*DESKTOP, dark=False) as shown:
        picture(shown)
        left = "parseFloat(getComputedStyle(document.querySelector('.cover')).left)"
        first = shown.evaluate(left)
        shown.wait_until(f"{COVERS} === 0 || {left} > {first}")
        shown.wait_until(f"{COVERS} === 0")
        shown.evaluate("document.getElementById('again').click()")
        assert shown.evaluate(COVERS) > 0
        # A change of a setting draws at once.
        hash_ = "document.querySelector('.hash').textContent"
        before = shown.evaluate(hash_)
        shown.evaluate(
            "(() => { const buffer = document.getElementById('A-buffer'); buffer.value = 0; "
            "buffer.dispatchEvent(new Event('input', { bubbles: true })); })()"
        )
        shown.evaluate("new Promise(done => setTimeout(done, 200))")
        shown.evaluate("laboratory.settled()")
        assert shown.evaluate(hash_) != before
        assert shown.evaluate(COVERS) == 0
        assert "picture=1" in shown.evaluate("location.hash")


@needs_browser
def test_the_picture_is_still_where_motion_or_scripts_are_not_wanted() -> None:
    with Page(*DESKTOP, dark=False, calm=True) as shown:
        picture(shown)
        assert shown.evaluate(COVERS) == 0
        assert not shown.evaluate("document.getElementById('again').checkVisibility()")
    with Page(*DESKTOP, dark=False, scripts=False) as shown:
        shown.send("Page.navigate", url=FRONT.as_uri())

        def found(selector: str) -> list[int]:
            root = shown.send("DOM.getDocument", depth=-1)["root"]["nodeId"]
            find = {"nodeId": root, "selector": selector}
            nodes: list[int] = shown.send("DOM.querySelectorAll", **find)["nodeIds"]
            return nodes

        def loaded() -> bool:
            try:
                return bool(found("footer"))
            except AssertionError:  # the page came between the two questions
                return False

        end_s = time.monotonic() + 60
        while not loaded():
            assert time.monotonic() < end_s
            time.sleep(0.1)
        assert len(found('a[href="laboratory.html"] img')) == 1
        assert found("iframe") == []
