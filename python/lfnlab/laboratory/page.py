"""One HTML page that holds the simulator."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from lfnlab import _core
from lfnlab.html import asset, elements, head
from lfnlab.results import output
from lfnlab.results.store import read_text

if TYPE_CHECKING:
    from lfnlab.results.runs import Run

NAME = "laboratory.html"
LINK_MOST = 30_000
"""Characters of a link; a longer one is not made."""
_FILES = re.compile(r'\b(path|file|trace|vectors) = "|@[0-9a-f]{16}')
"""In a stored scenario: a file, or a law in Python. A browser has neither."""


def page() -> str:
    """The whole page."""
    data = json.dumps({"version": _core.VERSION})
    wasm = base64.b64encode(asset(__package__, "lfn.wasm.gz")).decode()
    scripts = [_text("lessons.js"), _text("laboratory.js")]
    return "\n".join(
        [
            head(
                "A laboratory for long fat networks",
                _text("laboratory.css"),
                scripts=scripts,
                simulates=True,
            ),
            f"<!-- {output.MARK} -->",
            f"<body>\n{_text('laboratory.html')}",
            f'<script type="application/json" id="data">{data}</script>',
            f'<script type="text/plain" id="worker">{_text("laboratory.worker.js")}</script>',
            f'<script type="text/plain" id="wasm">{wasm}</script>',
            elements(scripts),
            "</body>\n</html>\n",
        ]
    )


def _text(name: str) -> str:
    return asset(__package__, name).decode()


def write_page(file: Path) -> None:
    """Write the page where a user says.

    Raises:
        StoreError: when it cannot be written, or there is a file that lfn did not write.
    """
    output.write(file, page().encode())


def fragment(toml: str) -> str:
    """The end of an address that opens the page with a scenario; empty if that is too long."""
    said = f"#a.toml={quote(toml, safe='')}"
    return said if len(said) <= LINK_MOST else ""


def link(run: Run) -> str:
    """The address that simulates a stored run again, beside ``NAME``; empty if a browser cannot."""
    if not run.is_simulated:
        return ""
    text = read_text(run.path / "scenario.toml")
    if _FILES.search(text):
        return ""
    end = fragment(text)
    return f"{NAME}{end}" if end else ""
