"""Does the notebook run, and do its text outputs stand as they are stored?"""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_steps.ipynb"


def test_the_notebook_runs(tmp_path: Path) -> None:
    stored = nbformat.read(NOTEBOOK, as_version=4)
    assert all(cell.outputs for cell in stored.cells if cell.cell_type == "code"), "stored executed"
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    # In an empty directory, so that every run is run.
    resources = {"metadata": {"path": os.fspath(tmp_path)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    assert (tmp_path / "lfn-first-steps" / "report.html").is_file()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            kinds = [kind for output in cell.outputs for kind in output.get("data", {"text": ""})]
            assert kinds
            assert "application/vnd.jupyter.error" not in kinds
