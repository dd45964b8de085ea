"""Figures as PGF: LaTeX takes them, whatever their texts hold."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from matplotlib.figure import Figure

from lfnlab.errors import UsageError
from lfnlab.figures import pgf, plot

if TYPE_CHECKING:
    from pathlib import Path

needs_tex = pytest.mark.skipif(
    not any(map(shutil.which, pgf.SYSTEMS)), reason=f"no TeX: {', '.join(pgf.SYSTEMS)}"
)


def titled(title: str) -> Figure:
    with plot.house_style():
        figure = Figure(figsize=(3.5, 2.4))
        axes = figure.subplots()
        axes.plot([1, 2], [3, 4])
        axes.set_title(title)
        axes.set_xticks([1, 2], ["cwnd_seg", "50 %"])
    return figure


@needs_tex
def test_latex_sets_it(tmp_path: Path) -> None:
    figure = titled(r"$x_1 & {a}~\b #1 ± ×")
    made = plot.rendered(figure, ["pgf"])["pgf"]
    assert made == plot.rendered(figure, ["pgf"])["pgf"]
    assert b"Written by lfn" in made
    (tmp_path / "figure.pgf").write_bytes(made)
    (tmp_path / "paper.tex").write_text(
        r"\documentclass{article}\usepackage{pgf}\begin{document}\input{figure.pgf}\end{document}"
    )
    command = [pgf.system(), "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex, which is strict")
def test_a_sign_that_tex_does_not_have_is_an_error() -> None:
    with pytest.raises(UsageError, match="TeX refuses a text"):
        plot.rendered(titled("漢字"), ["pgf"])


def test_without_tex_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="needs TeX"):
        plot.rendered(titled("x"), ["pgf"])


def test_a_heat_map_is_refused() -> None:
    figure = titled("x")
    figure.axes[0].imshow([[1, 2], [3, 4]])
    with pytest.raises(UsageError, match="a heat map is an image"):
        plot.rendered(figure, ["pgf"])
