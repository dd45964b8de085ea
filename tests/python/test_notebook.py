"""Do the notebooks run, and does each cell show something?"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOK = EXAMPLES / "first_steps.ipynb"


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


def test_the_notebook_of_an_agent_has_its_outputs_and_names_what_is_there() -> None:
    """It trains for minutes and needs PyTorch, so no test runs it."""
    text = (EXAMPLES / "ppo.ipynb").read_text(encoding="utf-8")
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in cells), "stored executed"
    assert not any(out["output_type"] == "error" for cell in cells for out in cell["outputs"])
    trees = [ast.parse("".join(cell["source"])) for cell in cells]
    program = ast.parse((EXAMPLES / "ppo.py").read_text(encoding="utf-8"))
    there = {node.name for node in program.body if isinstance(node, ast.FunctionDef)}
    imports = [node for tree in trees for node in tree.body if isinstance(node, ast.ImportFrom)]
    asked = {name.name for node in imports if node.module == "ppo" for name in node.names}
    assert asked
    assert asked <= there
