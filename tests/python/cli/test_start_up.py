"""A command imports what it needs: the frames, figures and numbers only where they are used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lfnlab

HEAVY = {"numpy", "polars", "matplotlib", "scipy", "pyarrow", "pandas"}
COUNT = """
import sys
from lfnlab.cli import main
try:
    main()
finally:
    print(len(sys.modules), *{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "most"),
    [(["laws"], 245), (["laws", "cubic"], 245), (["--version"], 190), (["--help"], 410)],
    ids=str,
)
def test_what_shows_text_imports_no_frames_and_no_figures(arguments: list[str], most: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *arguments], capture_output=True, text=True, check=False
    )
    count, *packages = done.stderr.splitlines()[-1].split()
    assert done.stdout
    assert not HEAVY & set(packages)
    assert int(count) <= most


def test_a_run_with_its_table_imports_neither_frames_nor_figures(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(
        'schema = 1\nduration = "1s"\n[link]\nrate = "10Mbit/s"\n'
        '[[flow]]\nlaw = "cubic"\nrtt = "50ms"\n'
    )
    arguments = ["run", "short.toml", "--no-report", "--out", "short"]
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    _, *packages = done.stderr.splitlines()[-1].split()
    assert "Few losses after the warm-up" in done.stdout
    assert len(list((tmp_path / "short" / "runs").glob("*/flows.parquet"))) == 1
    assert HEAVY & set(packages) == {"numpy"}


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
