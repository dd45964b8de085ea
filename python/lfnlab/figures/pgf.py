r"""Figures as PGF, which LaTeX typesets in the fonts of its document: ``\input{figure.pgf}``."""

from __future__ import annotations

import io
import re
import shutil
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends import backend_pgf

from lfnlab.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SYSTEMS = "pdflatex", "lualatex", "xelatex"
_SPECIAL = {char: f"\\{char}" for char in "#$&_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
}


def system() -> str:
    """The TeX that measures the texts.

    Raises:
        UsageError: when there is none.
    """
    for name in SYSTEMS:
        if shutil.which(name):
            return name
    raise UsageError(f".pgf needs TeX, one of {', '.join(SYSTEMS)}; allowed here: .png, .pdf, .svg")


def rendered(figure: Figure, said: str) -> bytes:
    """The figure as the text of a PGF picture; call it within the house's style.

    Args:
        figure: without images.
        said: a comment at its beginning.

    Raises:
        UsageError: when there is no TeX, it refuses a text, or the figure has a heat map, which
            would be a file of its own.
    """
    if any(
        axes.images or any(c.get_rasterized() for c in axes.collections) for axes in figure.axes
    ):
        raise UsageError(".pgf: a heat map is an image; allowed: .png, .pdf, .svg")
    file = io.StringIO()
    plain = backend_pgf.RendererPgf
    # The fonts are those of the document.
    with mpl.rc_context({"pgf.texsystem": system(), "pgf.rcfonts": False}):
        backend_pgf.RendererPgf = _Renderer  # type: ignore[misc]
        try:
            _canvas(figure).print_pgf(file)
        except (backend_pgf.LatexError, ValueError) as error:
            line = next((line for line in str(error).splitlines() if line.strip()), "")
            raise UsageError(f".pgf: TeX refuses a text of the figure: {line}") from None
        finally:
            backend_pgf.RendererPgf = plain  # type: ignore[misc]
    return f"% {said}\n{file.getvalue()}".encode()


def _canvas(figure: Figure) -> Any:
    return backend_pgf.FigureCanvasPgf(figure)


class _Renderer(backend_pgf.RendererPgf):
    """Texts are not TeX: a name may hold an underscore or a dollar."""

    def draw_text(
        self, gc: Any, x: Any, y: Any, s: str, prop: Any, *more: Any, **named: Any
    ) -> None:
        # A text that TeX cannot set fails here, not in the reader's document.
        self.get_text_width_height_descent(s, prop, False)
        plain: Any = super()
        plain.draw_text(gc, x, y, _escaped(s), prop, *more, **named)

    def get_text_width_height_descent(self, s: str, *more: Any) -> Any:
        plain: Any = super()
        return plain.get_text_width_height_descent(_escaped(s), *more)


def _escaped(text: str) -> str:
    return re.sub(r"[#$&_{}\\~]", lambda found: _SPECIAL[found[0]], text)
