"""Pictures of pages, small enough for the repository.

$ python -m lfnlab.figures.small FILE.png...    shrinks pictures that `lfn` or a browser drew
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from lfnlab.figures.plot import rendered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 60_000
"""Bytes of a picture."""
DOTS_PER_INCH = 125
WIDEST = 1200
"""Pixels."""
COLOURS = 48
APART = 32
"""Least distance between two colours of the palette, in RGB of 0 to 255."""


def for_page(figure: Figure) -> bytes:
    """A figure as such a picture."""
    return small(rendered(figure, ("png",))["png"])


def small(png: bytes) -> bytes:
    """A PNG of few colours and at most 60 kB; a picture that is small already stays as it is.

    The palette has the most frequent colours, so areas and lines keep theirs. The picture has 125
    dots per inch and at most 1200 pixels a line, or fewer if it were too large. The same picture
    gives the same bytes.
    """
    drawn = Image.open(io.BytesIO(png))
    if drawn.mode == "P" and len(png) <= LARGEST:
        return png
    image = Image.new("RGBA", drawn.size, "white")
    image.alpha_composite(drawn.convert("RGBA"))
    dots = drawn.info.get("dpi", (DOTS_PER_INCH,))[0]
    scale = min(1.0, DOTS_PER_INCH / dots, WIDEST / image.width)
    while True:
        size = (round(image.width * scale), round(image.height * scale))
        made = io.BytesIO()
        of_few_colours(image.resize(size, Image.Resampling.HAMMING)).save(
            made, "png", optimize=True
        )
        if len(made.getvalue()) <= LARGEST:
            return made.getvalue()
        scale *= 0.95


def of_few_colours(image: Image.Image) -> Image.Image:
    """Each pixel has the nearest of the most frequent colours."""
    packed = np.asarray(image.convert("RGBX")).view(np.uint32)[..., 0]
    values, places, counts = np.unique(packed, return_inverse=True, return_counts=True)
    colours = values.view(np.uint8).reshape(-1, 4)[:, :3]
    nearest = np.zeros(len(values), np.uint8)
    distance = np.full(len(values), np.inf)
    kept: list[np.intp] = []
    for at in np.argsort(-counts, kind="stable"):
        if distance[at] > APART**2 and len(kept) < COLOURS:
            other = ((colours - colours[at].astype(float)) ** 2).sum(axis=1)
            nearest[other < distance] = len(kept)
            distance = np.minimum(distance, other)
            kept.append(at)
    made = Image.fromarray(nearest[places].reshape(packed.shape), "P")
    made.putpalette(colours[kept].tobytes())
    return made


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_bytes(small(Path(name).read_bytes()))
