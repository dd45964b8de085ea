"""Do the commands of the gallery draw its figures?"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from lfnlab.cli.app import call

if TYPE_CHECKING:
    import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "gallery.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?ms)^```(?P<kind>sh|toml file=(?P<file>\S+))[^\n]*\n(?P<text>.*?)^```$")
DRAWS = "plot", "theory"
#: The experiments with shorter runs and fewer seeds.
SHORTER = {
    '"12s"': '"5s"',
    '"20s"': '"5s"',
    "(1s, 18s)": "(1s, 3s)",
    "seeds = 5": "seeds = 2",
    "--duration 20s --seeds 5": "--duration 3s --seeds 2",
}


def commands(folder: Path) -> list[list[str]]:
    """Arguments of the page's commands, experiments first; its files come into the folder."""
    found = []
    for block in BLOCK.finditer(PAGE):
        text = block["text"]
        for old, new in SHORTER.items():
            text = text.replace(old, new)
        if block["file"]:
            (folder / block["file"]).write_text(text, encoding="utf-8")
        else:
            for line in text.splitlines():
                found.append(shlex.split(line)[1:])
    return sorted(found, key=lambda arguments: arguments[0] in DRAWS)


def test_the_commands_draw_every_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    drawn = []
    for arguments in commands(tmp_path):
        assert call(arguments) == 0, arguments
        if arguments[0] in DRAWS:
            file = tmp_path / arguments[-1]
            assert file.stat().st_size > 1000
            drawn.append(file.stem)
    shown = re.findall(r"!\[.+\]\(figures/(?:gallery|theory)-(\w+)\.png\)", PAGE)
    assert sorted(shown) == sorted(drawn)
    assert len(shown) == len({*shown}) == 16
    for name in re.findall(r"figures/([\w-]+\.png)", PAGE):
        assert (DOCS / "figures" / name).is_file()
