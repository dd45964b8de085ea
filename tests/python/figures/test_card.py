"""Does the picture of a law's card show the law, and what does a card print?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lfnlab import law
from lfnlab.cli.app import call
from lfnlab.figures import card
from marks import faults

if TYPE_CHECKING:
    from command import Lfn


@pytest.mark.parametrize(
    ("name", "panels", "window"),
    [
        ("reno", 2, (480, 1010)),  # half of BDP and buffer, to BDP and buffer
        ("cubic:linux", 2, (690, 1010)),  # 717/1024 of them
        ("dctcp", 2, (840, 900)),  # a mark above 65 packets of queue costs a twentieth
        ("copa", 1, (690, 1150)),  # it answers no loss: its window passes BDP and buffer by a tenth
        ("xcp", 1, (820, 835)),  # its router leaves no queue
        ("udt", 1, (500, 1100)),
    ],
)
def test_a_picture_shows_the_law(name: str, panels: int, window: tuple[float, float]) -> None:
    figure = card.picture(name)
    assert list(faults(figure)) == []
    assert len(figure.axes) == panels
    t_s, segments = figure.axes[0].lines[0].get_data()
    steady = np.asarray(segments)[np.asarray(t_s) > 85.0]
    assert window[0] <= steady.min()
    assert steady.max() <= window[1]
    if panels == 2:
        losses, means = (np.asarray(values) for values in figure.axes[1].lines[1].get_data())
        assert (np.diff(means[np.argsort(losses)]) < 0).all()


def test_vectors_are_printed_on_demand(lfn: Lfn, tmp_path: Path) -> None:
    short = lfn("laws", "cubic")
    assert "```law" not in short
    assert "lfn laws cubic --vectors" in short
    assert "@techreport{rfc9438" in short
    assert lfn("laws", "cubic", "--vectors") == law("cubic").card() + "\n"
    assert call(["laws", "cubic", "--picture", str(tmp_path / "x.svg")]) == 0
    assert (tmp_path / "x.svg").read_text().count("response function") == 1
    for wrong in (["--vectors"], ["cubic", "--picture", "x.txt"], ["none", "--picture", "x.png"]):
        assert call(["laws", *wrong]) == 2
