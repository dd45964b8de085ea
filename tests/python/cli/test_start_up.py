"""A command imports what it needs: the frames, figures and numbers only where they are used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lfnlab
from lfnlab.cli.commands import COMMANDS

HEAVY = {"numpy", "polars", "matplotlib", "scipy", "pyarrow", "pandas"}
PARSER = {"attrs", "cyclopts"}
PAGE = {"markdown_it", "pygments", "rich"}
COUNT = """
import sys
from lfnlab.cli import main
try:
    main()
finally:
    print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


def imported(*arguments: str, cwd: Path | None = None) -> tuple[set[str], str]:
    """The packages that a command imports, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )
    return set(done.stderr.splitlines()[-1].split()), done.stdout


@pytest.mark.parametrize(
    ("arguments", "not_needed"),
    [
        (["laws"], HEAVY | PARSER | PAGE),
        (["--version"], HEAVY | PARSER | PAGE),
        (["--help"], HEAVY | PARSER | PAGE - {"rich"}),
        ([], HEAVY | PARSER | PAGE - {"rich"}),
        (["laws", "cubic"], HEAVY | PAGE),
        (["laws", "--json"], HEAVY | PAGE),
        (["theory", "--help"], HEAVY),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_shows_text_imports_what_that_needs(
    arguments: list[str], not_needed: set[str]
) -> None:
    packages, said = imported(*arguments)
    assert said
    assert packages & not_needed == set()


def test_a_command_imports_no_other_command() -> None:
    code = (
        "import sys; from lfnlab.cli.app import call; call(['laws', 'cubic']); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = {f"lfnlab.cli.{place.partition(':')[0]}" for place, _ in COMMANDS.values()}
    assert own & set(done.stdout.splitlines()[-1].split()) == {"lfnlab.cli.laws"}


PAGES = """
import sys
from rich.console import Console
from lfnlab.cli import page
from lfnlab.cli.app import app
width, colours = int(sys.argv[1]), sys.argv[2] or None
console = Console(width=width, color_system=colours, force_terminal=bool(colours))
page.show(console)
print("---")
for name in app:
    app[name]
app(["--help"], console=console)
"""


@pytest.mark.parametrize(
    ("width", "colours"),
    [(30, ""), (58, "standard"), (80, ""), (133, "256"), (240, "truecolor")],
)
def test_the_page_of_help_is_that_of_the_parser(width: int, colours: str) -> None:
    # A process for each: rich keeps the colours that a style was first drawn in.
    command = [sys.executable, "-c", PAGES, str(width), colours]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ours, theirs = done.stdout.split("---\n")
    assert ours == theirs
    assert width < 58 or all(name in theirs for name in COMMANDS)


def test_a_run_with_its_table_imports_no_numbers_frames_and_figures(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(
        'schema = 1\nduration = "1s"\n[link]\nrate = "10Mbit/s"\n'
        '[[flow]]\nlaw = "cubic"\nrtt = "50ms"\n'
    )
    packages, said = imported("run", "short.toml", "--no-report", "--out", "short", cwd=tmp_path)
    assert "Few losses after the warm-up" in said
    assert len(list((tmp_path / "short" / "runs").glob("*/flows.parquet"))) == 1
    assert packages & (HEAVY | PAGE) == set()


def test_every_public_name_comes_from_where_its_type_does() -> None:
    tree = ast.parse(Path(lfnlab.__file__).read_text(encoding="utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    exported = {
        alias.asname: (node.module or "").removeprefix("lfnlab.")
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name != "*"
    }
    assert exported == lfnlab._HOMES
    assert all(getattr(lfnlab, name) is not None for name in lfnlab.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Reno'"):
        lfnlab.Reno  # noqa: B018
