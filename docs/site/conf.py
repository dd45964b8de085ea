"""Sphinx on the tree itself: every page stands where its links from other files say."""

from __future__ import annotations

import sys
from pathlib import Path

from lfnlab import _core

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

project = "lfnlab"
author = "the lfnlab authors"
version = release = _core.VERSION
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "pages",
    "reference",
    "search_index",
]

root_doc = "docs/index"
include_patterns = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benches/NOTES.md",
    "docs/**.md",
    "examples/rust/README.md",
    "findings/README.md",
    "laws/cards/*.md",
    "linux/README.md",
    "papers/README.md",
    "papers/*/README.md",
]
# Of no other folder are the files even listed.
exclude_patterns = [
    entry.name
    for entry in ROOT.iterdir()
    if entry.is_dir()
    and entry.name not in {"benches", "docs", "examples", "findings", "laws", "linux", "papers"}
]

myst_heading_anchors = 3
highlight_language = "text"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
nitpicky = True
# Types of others, whose pages a build without network cannot link, and names of our own unions.
nitpick_ignore_regex = [
    ("py:class", r"(collections\.abc|pathlib|types|np|pl|polars)\..*"),
    (
        "py:class",
        r"lfnlab\.(attacker\.judge\.Law|analysis\.(measure\.view\.Newcomer|table\.Table)|metrics\.tables\.Samples|experiment\.executor\.Backend|results\.(cases\.Cases|index\.Catalog|drawn\.Drawn|runs\.(Failure|LawRow))|scenario\.elements\.RunSettings)",
    ),
    (
        "py:class",
        "ArrayLike|Backend|Better|Confirmed|Drawn|Factor|Failed|Failure|FilePath|Floats|FlowSettings|Group|Kind|(Flow|Link)?Summary|Measure|NDArray|Options|Path|Progress|Rate|Samples|Table|Values?",
    ),
]

html_theme = "furo"
html_title = "lfnlab"
templates_path = ["templates"]
html_additional_pages = {"search": "search.html"}
html_static_path = ["search.js", "site.css", "site.js"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_extra_path = ["index.html"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
