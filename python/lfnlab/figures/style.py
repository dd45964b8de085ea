"""Size, text, order and palette of a figure: the house's, of a print, or of one's own file.

A style holds within :func:`applied`; every figure that is made there has it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from matplotlib.font_manager import fontManager

from lfnlab.analysis.summary import INTERVALS
from lfnlab.errors import StoreError, UsageError
from lfnlab.scenario.quantity import parsed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

K = TypeVar("K", bound="Hashable")

Legend = Literal["above", "below", "right", "inside", "none"]
Palette = Literal["house", "grey"]
Notes = Literal["figure", "caption"]

BASE_POINTS = 9.0
"""Size of the house's labels; other texts are in proportion to them."""
BASE_LINE = 1.2
"""Width of the house's lines, in points; other lines are in proportion to it."""
GREYS = ("#000000", "#7a7a7a", "#404040", "#a8a8a8")
_LENGTHS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
"""Inches of a unit; a point is TeX's, as \\columnwidth has it."""
_MOST_IN, _LEAST_IN = 50.0, 1.0
_FAMILIES = ("sans-serif", "serif", "monospace")


@dataclass(frozen=True)
class Style:
    """Everything of a figure but its data; None is the house's choice."""

    width: float | None = None
    """Inches."""
    height: float | None = None
    """Inches."""
    dpi: float = 200.0
    """Dots per inch of a PNG."""
    font: str = "sans-serif"
    font_size: float = BASE_POINTS
    """Points of the labels."""
    line_width: float = BASE_LINE
    """Points."""
    palette: Palette = "house"
    legend: Legend = "above"
    notes: Notes = "figure"
    """Where sentences on averages go: below the axis, or into the caption that is printed."""
    title: str | None = None
    x_label: str | None = None
    y_label: str | None = None
    x_limits: tuple[float, float] | None = None
    """In the unit of the axis."""
    y_limits: tuple[float, float] | None = None
    panels: str | None = None
    """The factor whose values are the panels of a named figure, as ``link.queue.size``."""
    order: tuple[str, ...] = ()
    """Names of series, bars and panels that come first."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Other words for names of series, bars and panels."""

    @property
    def is_own(self) -> bool:
        """Whether it differs from the house's."""
        return self != Style()

    def pt(self, points: float) -> float:
        """A size of text of the house in this style, in points."""
        return points * self.font_size / BASE_POINTS

    def lw(self, points: float) -> float:
        """A width of lines of the house in this style, in points."""
        return points * self.line_width / BASE_LINE

    def named(self, name: str) -> str:
        """The words for a name; of "cubic, reverse" each part may have its own."""
        if name in self.names:
            return self.names[name]
        return ", ".join(self.names.get(part, part) for part in name.split(", "))

    def sorted(self, names: Iterable[K], words: Callable[[K], str] = str) -> list[K]:
        """Names in the order of the style, the others behind as they come."""

        def place(name: K) -> int:
            said = words(name)
            of = [one for one in (said, said.partition(", ")[0]) if one in self.order]
            return self.order.index(of[0]) if of else len(self.order)

        return sorted(names, key=place)

    def rc(self) -> dict[str, Any]:
        """Parameters of matplotlib above those of the house."""
        if not self.is_own:
            return {}
        sizes = {
            **dict.fromkeys(("axes.titlesize", "axes.labelsize", "font.size"), 9.0),
            **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8.0),
        }
        family = self.font if self.font in _FAMILIES else "sans-serif"
        chosen = {} if self.font in _FAMILIES else {"font.sans-serif": [self.font, "DejaVu Sans"]}
        return {
            **{key: self.pt(size) for key, size in sizes.items()},
            "font.family": family,
            "lines.linewidth": self.line_width,
            "lines.markersize": self.pt(5.0),
            "axes.linewidth": self.lw(0.8),
            "hatch.linewidth": self.lw(1.0),
            **chosen,
        }

    def size(self, size: tuple[float, float]) -> tuple[float, float]:
        """Width and height of a figure that the house gives another size, in inches."""
        if self.width is None:
            return size if self.height is None else (size[0], self.height)
        return self.width, self.height or max(size[1] * self.width / size[0], self.pt(1.6 / 9) * 9)

    def columns(self, most: int, panel_in: float) -> int:
        """How many panels stand beside each other."""
        if self.width is None:
            return most
        return max(1, min(most, int(self.width / min(panel_in, self.pt(1.7)))))


PRESETS: Mapping[str, Style] = {
    "report": Style(),
    "paper": Style(
        width=3.5, dpi=300.0, font="serif", font_size=8.0, line_width=1.0, notes="caption"
    ),
    "slides": Style(width=10.0, height=5.6, dpi=200.0, font_size=18.0, line_width=2.5),
}
"""Of a column of a two-column paper, and of a slide of 16 to 9."""

_current: ContextVar[Style] = ContextVar("style", default=PRESETS["report"])


def current() -> Style:
    """The style that holds now."""
    return _current.get()


@contextmanager
def applied(style: Style) -> Iterator[None]:
    """Figures made within have this style."""
    token = _current.set(style)
    try:
        yield
    finally:
        _current.reset(token)


def read(chosen: str | Path) -> Style:
    """A preset by its name, or a file of TOML with keys of :class:`Style`.

    A file may begin from a preset: ``base = "paper"``.

    Raises:
        UsageError: naming file and key of what is not allowed.
        StoreError: when the file cannot be read.
    """
    if str(chosen) in PRESETS:
        return PRESETS[str(chosen)]
    file = Path(chosen)
    if file.suffix != ".toml":
        raise UsageError(f'--style: "{chosen}"; allowed: {", ".join(PRESETS)}, or FILE.toml')
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {error}") from None
    base = said.pop("base", "report")
    if base not in PRESETS:
        raise UsageError(f'{file}: base: "{base}"; allowed: {", ".join(PRESETS)}')
    return changed(PRESETS[base], said, str(file))


def changed(style: Style, said: Mapping[str, Any], where: str) -> Style:
    """A style with these values in place of its own.

    Args:
        style: the style.
        said: values of TOML by key.
        where: the file or option that has them, for errors.

    Raises:
        UsageError: naming a key that is not allowed, or its value.
    """
    made: dict[str, Any] = {}
    for key, value in said.items():
        if key not in _CHECKS:
            near = get_close_matches(key, _CHECKS, 1)
            hint = f'; did you mean "{near[0]}"?' if near else ""
            raise UsageError(f"{where}: {key}: unknown key{hint} allowed: {', '.join(_CHECKS)}")
        found = _CHECKS[key](value)
        if found is None:
            raise UsageError(f"{where}: {key}: {value!r}; allowed: {_ALLOWED[key]}")
        made[key] = found
    return replace(style, **made)


def settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Values of ``KEY=VALUE``, as ``--set`` has them; a value that is no TOML is a text.

    Raises:
        UsageError: for one without a sign of equality.
    """
    found = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise UsageError(f'--set: "{pair}"; allowed: KEY=VALUE, such as width=3.5in')
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        found[key.strip().replace("-", "_")] = value
    return found


def _length(value: Any) -> float | None:
    inches = parsed(value, _LENGTHS) if isinstance(value, str) else None
    return inches if inches is not None and _LEAST_IN <= inches <= _MOST_IN else None


def _number(least: float, most: float) -> Any:
    def check(value: Any) -> float | None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number and least <= value <= most else None

    return check


def _word(kind: Any) -> Any:
    return lambda value: value if value in get_args(kind) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _font(value: Any) -> str | None:
    known = {*_FAMILIES, *fontManager.get_font_names()}
    return value if value in known else None


def _limits(value: Any) -> tuple[float, float] | None:
    check = _number(-1e300, 1e300)
    if not isinstance(value, list) or len(value) != 2:
        return None
    low, high = map(check, value)
    return None if low is None or high is None or low >= high else (low, high)


def _texts(value: Any) -> tuple[str, ...] | None:
    whole = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return tuple(value) if whole else None


def _table(value: Any) -> dict[str, str] | None:
    whole = isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    return dict(value) if whole else None


_CHECKS: Mapping[str, Any] = {
    "width": _length,
    "height": _length,
    "dpi": _number(20, 2400),
    "font": _font,
    "font_size": _number(3, 72),
    "line_width": _number(0.1, 20),
    "palette": _word(Palette),
    "legend": _word(Legend),
    "notes": _word(Notes),
    "title": _text,
    "x_label": _text,
    "y_label": _text,
    "x_limits": _limits,
    "y_limits": _limits,
    "panels": _text,
    "order": _texts,
    "names": _table,
}
_ALLOWED: Mapping[str, str] = {
    **dict.fromkeys(("width", "height"), '"3.5in", "88mm", "8.8cm" or "252pt", from 1in to 50in'),
    "dpi": "20 to 2400",
    "font": "sans-serif, serif, monospace, or a font of this machine",
    "font_size": "3 to 72 points",
    "line_width": "0.1 to 20 points",
    **{key: ", ".join(get_args(kind))
       for key, kind in (("palette", Palette), ("legend", Legend), ("notes", Notes))},
    **dict.fromkeys(("title", "x_label", "y_label"), "a text"),
    **dict.fromkeys(("x_limits", "y_limits"), "two numbers, the smaller one first"),
    "panels": "a factor, such as link.queue.size",
    "order": "a list of names",
    "names": "a table of texts",
}  # fmt: skip
assert _CHECKS.keys() == _ALLOWED.keys() == {one.name for one in fields(Style)}


def finish(figure: Figure, style: Style) -> None:
    """Give a figure that is drawn the style's labels, limits, title and height.

    Raises:
        UsageError: a logarithmic axis has limits of 0 or less.
    """
    grid: list[Axes] = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    for name, limits in (("x", style.x_limits), ("y", style.y_limits)):
        for axes in grid if limits is not None else ():
            assert limits is not None
            if getattr(axes, f"get_{name}scale")() == "log" and limits[0] <= 0:
                raise UsageError(
                    f"{name}_limits: {limits[0]:g} on a logarithmic axis; allowed: above 0"
                )
            getattr(axes, f"set_{name}lim")(limits)
    for name, words in (("x", style.x_label), ("y", style.y_label)):
        if words is None:
            continue
        together = getattr(figure, f"_sup{name}label", None)
        if together is not None:
            together.set_text(_labelled(f"{name}_label", words, together.get_text()))
        else:
            for axes in grid:
                drawn = getattr(axes, f"get_{name}label")()
                if len(grid) == 1 or drawn:
                    getattr(axes, f"set_{name}label")(_labelled(f"{name}_label", words, drawn))
    if style.title is not None:
        if len(grid) == 1:
            grid[0].set_title(style.title)
        else:
            figure.suptitle(style.title, fontsize=style.pt(BASE_POINTS))
    if style.height is not None:
        figure.set_figheight(style.height)


_UNITS = (
    ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"),
    ("s", "ms", "us", "µs", "ns"),
    ("B", "kB", "MB", "GB"),
)
_UNIT = re.compile(r"\(([^()]+)\)(?=\n|$)")


def _labelled(key: str, words: str, drawn: str) -> str:
    """A label of the style, with the unit that the axis has in place of ``{unit}``.

    The unit of an axis follows from its values, so a label that names another one is refused.

    Raises:
        UsageError: naming the unit that the axis has.
    """
    found, said = _UNIT.search(drawn.replace(INTERVALS, "")), _UNIT.search(words)
    unit = found[1] if found else ""
    if "{unit}" in words:
        if not unit:
            raise UsageError(f'{key}: "{words}", but this axis has no unit')
        return words.replace("{unit}", unit)
    if said and said[1] != unit and any({said[1], unit} <= {*family} for family in _UNITS):
        raise UsageError(f'{key}: "{words}", but the axis is in {unit}; allowed: ({{unit}})')
    return words
