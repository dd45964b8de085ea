"""The page of the study: docs/ebb.md and its figure, from the committed tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
from matplotlib.figure import Figure

from lfnlab.analysis.table import markdown
from lfnlab.figures.looks import looks
from lfnlab.figures.plot import house_style
from lfnlab.figures.small import for_page
from studies.law import judge, search
from studies.study import FIGURES, ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PAGE = ROOT / "docs" / "ebb.md"
LAWS = {
    "cubic": "cubic",
    "htcp": "htcp",
    "htcp-be": "htcp-be",
    "htcp-be:hold": "htcp-be:hold",
    "a: faster at ebb": "illinois",
    "b: H-TCP, held at ebb": "veno",
    "c: CUBIC, held at ebb": "ebb",
    "d: all": "bbr",
}
"""Of each family the law whose colour it has."""
SHOWN = 10
"""Attacked paths in the page's table."""


def write(trials: Path, trial: Path, attacks: Path) -> None:
    """Writes page and figure."""
    points = [json.loads(line) for line in trials.read_text(encoding="utf-8").splitlines()]
    (FIGURES / "ebb-search.png").write_bytes(for_page(draw(points)))
    table = pl.read_csv(trial)
    text = PAGE.read_text(encoding="utf-8")
    text = _filled(text, "search", _search(points))
    text = _filled(text, "trial", _trial(table))
    hurt = json.loads(attacks.read_text(encoding="utf-8"))
    PAGE.write_text(_filled(text, "attack", _attacks(hurt)), encoding="utf-8")


def _filled(text: str, part: str, lines: Sequence[str]) -> str:
    """The page with another text between the marks of a part."""
    begin, end = f"<!-- made: {part} -->\n", f"\n<!-- end of {part} -->"
    before, _, rest = text.partition(begin)
    return before + begin + "\n".join(lines) + "\n" + end + rest.partition(end)[2]


def draw(points: Sequence[dict[str, Any]]) -> Figure:
    """Every point of the search: its gain over the part of the pairs on which it is worse."""
    shown = looks(LAWS)
    with house_style():
        figure = Figure(figsize=(7.2, 4.4))
        axes = figure.subplots()
        for family, look in shown.items():
            own = [point for point in points if point["family"] == family]
            axes.plot(
                [100 * len(point["worse"]) / point["pairs"] for point in own],
                [2 ** point["gain"] for point in own],
                linestyle="none",
                marker=look.marker,
                color=look.color,
                label=family,
            )
        axes.set_xlim(left=0)
        axes.set_xlabel("pairs of path and axis on which the point is worse than CUBIC (%)")
        axes.set_ylabel("median goodput with random loss over CUBIC's")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _search(points: Sequence[dict[str, Any]]) -> list[str]:
    rows = []
    for family in dict.fromkeys(point["family"] for point in points):
        own = [point for point in points if point["family"] == family]
        best = max(
            own,
            key=lambda point: (
                search.Worth(point["gain"], tuple(point["worse"]), point["pairs"]).objective
            ),
        )
        value = search.Worth(best["gain"], tuple(best["worse"]), best["pairs"]).objective
        rows.append(
            (
                family,
                f"`{best['law']}`",
                f"{2 ** best['gain']:.2f}",
                f"{len(best['worse'])} of {best['pairs']}",
                f"{value:.2f}",
            )
        )
    heads = ("family", "best point", "median gain", "worse", "objective")
    return [*markdown(heads, rows)]


def _trial(table: pl.DataFrame) -> list[str]:
    rows = [
        (
            f"`{row['law']}`",
            f"{100 * row['no axis worse by its interval']:.0f}",
            f"{100 * row['no axis worse by its margin']:.0f}",
            f"{row['median gain']:.2f}",
            f"{100 * row['fair beside reno']:.0f}",
            f"{100 * row['fair beside cubic']:.0f}",
        )
        for row in judge.summary(table).iter_rows(named=True)
    ]
    heads = (
        "law",
        "no axis worse, by intervals (%)",
        "no axis worse, by margins (%)",
        "median gain",
        "40 to 60 % beside Reno (%)",
        "beside CUBIC (%)",
    )
    cubic = judge.summary(table).row(0, named=True)
    fair = (
        "CUBIC in its place has 40 to 60 % beside Reno on "
        f"{100 * cubic['cubic beside reno']:.0f} % "
        f"of the paths, beside CUBIC on {100 * cubic['cubic beside cubic']:.0f} %."
    )
    return [*markdown(heads, rows), "", fair, *_losers(table)]


def _losers(table: pl.DataFrame) -> list[str]:
    """Every axis on which the law is worse by its margin, with the number of paths."""
    own = table.filter((pl.col("law") == "ebb") & pl.col("beyond").is_not_null())
    counts: dict[str, int] = {}
    for text in own["beyond"]:
        for axis in text.split():
            counts[axis] = counts.get(axis, 0) + 1
    if not counts:
        return ["`ebb` is worse than CUBIC by a margin on no axis of any of these paths."]
    told = ", ".join(
        f"`{axis}` on {n}" for axis, n in sorted(counts.items(), key=lambda p: (-p[1], p[0]))
    )
    paths = table.filter(pl.col("law") == "ebb").height
    return [f"`ebb` is worse than CUBIC by a margin: {told} of {paths} paths."]


def _attacks(hurt: dict[str, Any]) -> list[str]:
    rows = [
        (f"`{hurt['law']}` has under half of CUBIC's goodput", str(hurt["little"])),
        (f"`{hurt['law']}` has over 60 % beside a CUBIC flow", str(hurt["much"])),
        ("CUBIC has over 60 % beside a CUBIC flow", str(hurt["much_of_cubic"])),
        (
            "over 60 %, and the CUBIC flow has under 80 % of its goodput beside another CUBIC",
            str(hurt["harm"]),
        ),
    ]
    worst = sorted(
        hurt["paths_of_note"],
        key=lambda row: row["neighbour_bps"] / max(row["cubic_neighbour_bps"], 1.0),
    )
    shown = [
        (
            row["path"],
            f"{row['goodput_bps'] / 1e6:.2f}",
            f"{row['cubic_bps'] / 1e6:.2f}",
            f"{row['neighbour_bps'] / 1e6:.2f}",
            f"{row['cubic_neighbour_bps'] / 1e6:.2f}",
        )
        for row in worst[:SHOWN]
    ]
    heads = ("path", "alone", "CUBIC alone", "CUBIC beside it", "CUBIC beside CUBIC")
    return [
        *markdown((f"of {hurt['paths']:,} paths", "paths"), rows),
        "",
        f"The {len(shown)} worst of the paths of the first and the last row, goodput in Mbit/s:",
        "",
        *markdown(heads, shown),
    ]
