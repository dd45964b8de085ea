"""A figure with what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lfnlab.errors import UsageError
from lfnlab.figures.plot import FORMATS, rendered
from lfnlab.figures.style import PRESETS, Style, applied
from lfnlab.results import output

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Drawing:
    """A figure, what it shows in one line, and a name for its file."""

    figure: Figure
    says: str
    name: str
    origin: str = ""
    """The line on the makers of its runs, for the metadata of its files."""
    style: Style = PRESETS["report"]

    def save(self, file: str | Path) -> Path:
        """Write it as PNG, PDF, SVG or PGF, by the ending of the name; PGF needs TeX.

        Raises:
            UsageError: for another ending.
            StoreError: when it cannot be written, or lfn did not write the file that is there.
        """
        file = Path(file)
        form = form_of(file)
        with applied(self.style):
            dpi = self.style.dpi
            made = rendered(self.figure, (form,), dots_per_inch=dpi, origin=self.origin)
        output.write(file, made[form])
        return file

    def _repr_svg_(self) -> str:
        """The figure in a notebook."""
        with applied(self.style):
            return rendered(self.figure, ("svg",), origin=self.origin)["svg"].decode()


def check_file(option: str, file: Path) -> None:
    """Refuse the file that an option names, if a figure cannot be written there.

    Raises:
        UsageError: for an ending that no figure has, or a file that lfn did not write.
    """
    try:
        form_of(file)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None
    output.refuse_others(file)


def form_of(file: Path) -> str:
    """The format that the ending of a name asks for.

    Raises:
        UsageError: for another than PNG, PDF, SVG and PGF.
    """
    form = file.suffix.removeprefix(".")
    if form not in FORMATS:
        raise UsageError(f'"{file}"; allowed endings: {", ".join(f".{name}" for name in FORMATS)}')
    return form
