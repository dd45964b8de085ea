"""Does the notebook run, and does each cell show something?"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_steps.ipynb"


def test_the_notebook_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # empty, so that every run is run
    names: dict[str, Any] = {}
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        assert cell["outputs"], "stored executed"
        source = "".join(line for line in cell["source"] if not line.startswith("%"))
        *steps, last = ast.parse(source).body
        if not isinstance(last, ast.Expr):
            steps, last = [*steps, last], ast.Expr(ast.Constant(None))
        exec(compile(ast.Module(steps, []), NOTEBOOK, "exec"), names)
        shown = ast.fix_missing_locations(ast.Expression(last.value))
        value = eval(compile(shown, NOTEBOOK, "eval"), names)
        for kind, method in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
            if any(kind in output.get("data", {}) for output in cell["outputs"]):
                assert getattr(value, method)(), kind
        assert value is not None or capsys.readouterr().out
    assert (tmp_path / "lfn-first-steps" / "report.html").is_file()
