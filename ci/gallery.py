"""Draws the figures of docs/gallery.md again: its commands as they stand, in an empty directory.

$ python ci/gallery.py
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from lfnlab.figures.small import small

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "gallery.md"
BLOCK = re.compile(r"(?ms)^```(?P<kind>sh|toml file=(?P<file>\S+))[^\n]*\n(?P<text>.*?)^```$")
DRAWN = re.compile(r"figures/gallery-(\w+)\.png")


def main() -> None:
    """Write a picture of at most 60 kB to docs/figures for each figure of the page."""
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The experiments stand at the end.
        figures, experiments = page.split("## Experiments")
        for block in BLOCK.finditer(experiments + figures):
            if block["file"]:
                (folder / block["file"]).write_text(block["text"], encoding="utf-8")
            else:
                # The page's figure for print is a PDF; its picture here is the PNG.
                text = block["text"].replace("print.pdf", "print.png")
                subprocess.run(["sh", "-ec", text], cwd=folder, check=True)
        for figure in DRAWN.findall(page):
            picture = small((folder / f"{figure}.png").read_bytes())
            (ROOT / "docs" / "figures" / f"gallery-{figure}.png").write_bytes(picture)


if __name__ == "__main__":
    main()
