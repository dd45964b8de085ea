"""The tables of ``docs/stacks.md``, from the stored rows of :mod:`validation.stacks`."""

from __future__ import annotations

from collections.abc import Callable

from lfnlab.analysis.table import markdown

from .stacks import RATES, Row, stored

Cell = Callable[[Row], str]
BESIDE = "reno:linux"
"""Its slow start has no exit by RTT: what a window that grows on has."""


def _number(name: str, digits: int = 3) -> Cell:
    def cell(row: Row) -> str:
        value = row.get(name)
        return "–" if value is None else f"{value:.{digits}g}"

    return cell


def _two(first: str, second: str) -> Cell:
    return lambda row: f"{_number(first)(row)}, {_number(second)(row)}"


def _is_cubic(row: Row) -> bool:
    """Whether growth below the old window is slower than Reno's packet for each round trip."""
    below = row.get("friendly_below")
    return below is not None and below < 0.7


def _constant(row: Row) -> str:
    return _number("C")(row) if _is_cubic(row) else "–"


def _convergence(row: Row) -> str:
    back_s, plain_s = row.get("second_back_s"), row.get("second_plain_s")
    if not _is_cubic(row) or back_s is None or plain_s is None:
        return "–"
    if back_s < 0.5:
        return "undone"
    frozen = row.get("second_frozen_s") or 0
    yes = "yes" if back_s > 1.3 * plain_s else "no"
    return f"{yes}, {frozen:.2g} s still" if frozen > 0.5 else yes


def _exit(name: str) -> Cell:
    def cell(row: Row) -> str:
        value, beside = row.get(name), stored()[BESIDE][name]
        if value is None or beside is None:
            return "–"
        return "none" if value > 0.8 * beside else f"× {value:.2g}"

    return cell


def _factors(first: str, second: str) -> Cell:
    def cell(row: Row) -> str:
        one, two = row.get(first), row.get(second)
        if one is None or two is None:
            return "–"
        still = "still" if abs(one - 1) < 0.02 else f"× {one:.3g}"
        return f"{still}, × {two:.3g}"

    return cell


def _cap(row: Row) -> str:
    value = row.get("cap")
    return "–" if value is None else "none" if value >= 50_000 else f"{value:.0f}"


def _large(row: Row) -> str:
    value, curve = row.get("large_20_s"), row.get("large_curve")
    if not _is_cubic(row) or value is None or curve is None or row.get("cap") != 50_000:
        return "–"
    return f"{100 * (value / curve - 1):+.1f} %"


def _persistent(row: Row) -> str:
    before, after = row["persistent_before"], row["persistent"]
    return f"{before:.3g} → {after:.3g}"


LOSSES: dict[str, Cell] = {
    "β": _number("beta"),
    "C": _constant,
    "back at W (s)": _number("back_s"),
    "per RTT below W, above": _two("friendly_below", "friendly_above"),
    "fast convergence": _convergence,
    "two losses in a round trip": _number("two_losses"),
    "least": _number("least"),
    "large BDP": _large,
}
GROWTH: dict[str, Cell] = {
    "initial": _number("initial"),
    "per RTT": lambda row: f"× {_number('start_factor')(row)}",
    "RTT +13 %": _exit("exit_13"),
    "RTT +26 %": _exit("exit_26"),
    "cap": _cap,
    "pacing: start, later": _two("start_pacing_gain", "pacing_gain"),
    "10 s limited, then bulk": _factors("limited", "bulk"),
    "60 s limited, then bulk": _factors("long_limited", "long_bulk"),
    "10 s idle, 0.5 s later": _factors("idle", "idle_then"),
    "4 s outage": _persistent,
}
OF_RATES = ("initial", "per RTT", "pacing: start, later", "4 s outage")


def _table(columns: dict[str, Cell], *, rates: bool) -> str:
    rows = tuple(
        (f"`{law}`", *(cell(row) for cell in columns.values()))
        for law, row in stored().items()
        if (law.rpartition(":")[2] in RATES) == rates
    )
    return "\n".join(markdown(("controller", *columns), rows))


def losses() -> str:
    """Reductions and growth after them."""
    return _table(LOSSES, rates=False)


def growth() -> str:
    """Starts, limits and pauses."""
    return _table(GROWTH, rates=False)


def rates() -> str:
    """Those that follow a rate or a delay."""
    return _table({name: GROWTH[name] for name in OF_RATES}, rates=True)
