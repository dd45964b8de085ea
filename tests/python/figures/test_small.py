"""Pictures of pages."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from lfnlab.figures.plot import rendered
from lfnlab.figures.small import COLOURS, LARGEST, WIDEST, for_page, small

PICTURES = sorted((Path(__file__).parents[3] / "docs" / "figures").glob("*.png"))


def drawn(lines: int, inches: float = 7) -> Figure:
    figure = Figure(figsize=(inches, 4))
    axes = figure.subplots()
    for line in range(lines):
        axes.plot(np.sin(np.arange(2000) / (line + 1)), color="#d55e00" if line else "#0072b2")
    return figure


@pytest.mark.parametrize(("lines", "inches"), [(0, 7), (2, 1), (2, 7), (400, 7), (2, 40)])
def test_a_picture_is_small_and_the_same_each_time(lines: int, inches: float) -> None:
    made = for_page(drawn(lines, inches))
    assert made == for_page(drawn(lines, inches)) == small(made)
    image = Image.open(io.BytesIO(made))
    assert len(made) <= LARGEST
    assert image.width <= WIDEST
    assert len(image.getcolors() or ()) <= COLOURS


def test_lines_and_ground_keep_their_colours() -> None:
    colours = Image.open(io.BytesIO(for_page(drawn(2)))).convert("RGB").getcolors(1 << 20)
    assert colours
    for wanted in ((255, 255, 255), (0xD5, 0x5E, 0x00), (0, 0x72, 0xB2)):
        # A pixel of a line's edge may stand for the line.
        assert any(np.abs(np.subtract(own, wanted)).max() <= 2 for _, own in colours), wanted


def test_noise_becomes_small_too() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (400, 700, 4), np.uint8)
    made = io.BytesIO()
    Image.fromarray(noise, "RGBA").save(made, "png")
    assert len(small(made.getvalue())) <= LARGEST


def test_another_drawing_gives_another_picture() -> None:
    assert for_page(drawn(2)) != for_page(drawn(3))
    assert rendered(drawn(2), ("png",)) == rendered(drawn(2), ("png",))


@pytest.mark.parametrize("file", PICTURES, ids=lambda file: file.stem)
def test_pictures_of_pages_are_small(file: Path) -> None:
    made = file.read_bytes()
    assert small(made) == made, f"python -m lfnlab.figures.small {file}"
