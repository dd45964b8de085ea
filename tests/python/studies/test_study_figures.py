"""Do the figures of the studies hold what they draw, from their committed tables?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from studies import duels, starts, starts_page, which_law, which_law_page

from lfnlab.figures.cells import ink, luminance
from marks import faults

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def numbers(figure: Figure) -> list[float]:
    """Of the cells, panel by panel, row by row."""
    return [
        float(text.get_text())
        for axes in figure.axes
        for text in axes.texts
        if text.get_text().isdecimal()
    ]


@pytest.mark.parametrize("path", duels.PATHS, ids=lambda path: path.name)
def test_duels_are_drawn_whole(path: duels.Path) -> None:
    table, _ = duels.STUDY.committed()
    figure = duels.draw(table, path)
    assert list(faults(figure)) == []
    _, share, total = duels.matrices(table, path.name)
    assert numbers(figure) == pytest.approx([*share.flat, *total.flat], abs=0.5)


def test_which_law_is_drawn_whole() -> None:
    table, _ = which_law.STUDY.committed()
    figure = which_law_page.draw(table)
    assert list(faults(figure)) == []
    drawn = sorted(numbers(figure))
    shown = table["buffer"] == which_law_page.SHOWN
    alone = table.filter(table["what"] == "alone", shown)["percent"].sort()
    assert drawn == pytest.approx(alone.to_list(), abs=0.5)


@pytest.mark.parametrize("kept", [starts.OLD + starts.NEW, ("hystart",), ("rapid", "hystart")])
def test_slow_starts_are_drawn_whole(kept: tuple[str, ...]) -> None:
    table, _ = starts.STUDY.committed()
    table = table.filter(table["start"].is_in(kept))
    alone = table.filter(table["experiment"] == "alone")
    figure = starts_page.draw_cells(alone, "time", "time", limits=(1, 5), form=".2f")
    assert list(faults(figure)) == []
    drawn = sum(len(axes.texts) for axes in figure.axes)
    cells = alone.group_by("rate", "rtt_ms", "depth_bdp", "start")
    finished = cells.agg(whole=pl.col("time").is_not_null().all())
    assert drawn == finished["whole"].sum()
    assert list(faults(starts_page.draw_trade(table))) == []


@pytest.mark.parametrize("colours", ["PuOr", "viridis", "gray"])
def test_a_number_is_readable_on_its_cell(colours: str) -> None:
    """WCAG AA: 4.5 between text and ground."""
    for ground in mpl.colormaps[colours](np.linspace(0.0, 1.0, 256)):
        own = {"white": 1.0, "black": 0.0}[ink(ground)]
        low, high = sorted((own, luminance(ground)))
        assert (high + 0.05) / (low + 0.05) >= 4.5
