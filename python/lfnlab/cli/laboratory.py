"""The command ``lfn laboratory``: the page that simulates in a browser."""

from __future__ import annotations

from pathlib import Path

from lfnlab import _core
from lfnlab.cli.options import Out  # noqa: TC001 - cyclopts reads them
from lfnlab.printable import say


def laboratory(file: Path | None = None, /, *, out: Out = Path("laboratory.html")) -> int:
    """Write the laboratory in the browser: one HTML page that holds the simulator.

    It works in any browser of 2023 or newer, from a file and without a network. Sliders change a
    path and its flows, lessons point at the curves, and a run has the hash that `lfn run` gives.

    Args:
        file: A scenario with which it opens; default its own controls.
        out: The page.
    """
    from lfnlab.laboratory import page as lab
    from lfnlab.scenario.builder import Scenario

    fragment = ""
    if file is not None:
        text = _core.read(str(file))
        Scenario.from_toml(text, str(file)).check(str(file))
        fragment = lab.fragment(text)
    lab.write_page(out)
    say(f"laboratory: {out.resolve().as_uri()}{fragment}")
    return 0
