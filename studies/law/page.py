"""The page of the study: docs/ebb.md and its figures, from the committed tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from lfnlab.figures.looks import looks
from lfnlab.figures.plot import house_style
from lfnlab.figures.small import for_page
from studies.law import judge, search, tables
from studies.study import FIGURES, ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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
TICKS = (0.5, 1, 2, 5, 10, 20, 50)
"""Of the axis of gains; what is beyond is drawn at its ends."""


def write(folder: Path) -> None:
    """Writes page and figures from the tables of a folder."""
    points, trial = _points(folder), _trial(folder)
    (FIGURES / "ebb-search.png").write_bytes(for_page(draw(points)))
    (FIGURES / "ebb-gains.png").write_bytes(for_page(gains(trial, _names(points))))
    PAGE.write_text(page(folder), encoding="utf-8")


def page(folder: Path) -> str:
    """The page with the tables of a folder."""
    points, trial = _points(folder), _trial(folder)
    found = json.loads((folder / "law_attack.json").read_text(encoding="utf-8"))
    parts = {
        "search": tables.searched(points),
        "elastic": tables.elastic(pl.read_csv(folder / "law_elastic.csv")),
        "trial": [
            *tables.trial(trial, _names(points)),
            "",
            tables.thin(trial),
            tables.decided(trial),
        ],
        "axes": tables.axes(trial),
        "attack": tables.attacks(found),
        "kinds": tables.kinds(found),
        "worst": tables.worst(found),
        "linux": tables.on_linux(pl.read_csv(folder / "law_linux.csv")),
        "account": tables.account(pl.read_csv(folder / "law_cpu.csv")),
    }
    text = PAGE.read_text(encoding="utf-8")
    for part, made in parts.items():
        text = _filled(text, part, list(made))
    return text


def _points(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "law_search.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _trial(folder: Path) -> pl.DataFrame:
    return pl.read_csv(folder / "law_judge.csv", infer_schema_length=None)


def _names(points: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """How the page calls each law of the trial, in its order."""
    best = search.best(points)
    tuned = {str(best[family]["law"]): f"`{family}`, tuned" for family in judge.TUNED}
    fixed = {law: f"`{law}`" for law in judge.FIXED}
    return {
        "ebb": "`ebb`",
        judge.REFERENCE: "`cubic`",
        **tuned,
        **fixed,
        judge.AGAIN: "`cubic`, other seeds",
    }


def _filled(text: str, part: str, lines: Sequence[str]) -> str:
    """The page with another text between the marks of a part."""
    begin, end = f"<!-- made: {part} -->\n", f"\n<!-- end of {part} -->"
    before, found, rest = text.partition(begin)
    assert found, f"{PAGE.name} has no part {part}"
    return before + begin + "\n".join(lines) + "\n" + end + rest.partition(end)[2]


def draw(points: Sequence[Mapping[str, Any]]) -> Figure:
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


def gains(table: pl.DataFrame, names: Mapping[str, str]) -> Figure:
    """Distribution of the gains of each law over paths and losses, a panel a set."""
    shown = looks(
        {law: LAWS.get(name.split("`")[1], name.split("`")[1]) for law, name in names.items()}
    )
    with house_style():
        figure = Figure(figsize=(7.2, 3.4))
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (chosen, words) in zip(panels, tables.SETS.items(), strict=True):
            for law, look in shown.items():
                both = [] if law == judge.REFERENCE else judge.pairs(table, law, chosen)
                told = f"{names[law].replace('`', '')}: {len(both)} paths"
                values = sorted(gain for own, its in both for gain in judge.gains(own, its))
                if not values:
                    continue
                axes.plot(
                    np.clip(values, TICKS[0], TICKS[-1]),
                    100 * (np.arange(len(values)) + 1) / len(values),
                    color=look.color,
                    linestyle=look.linestyle,
                    drawstyle="steps-post",
                    label=told,
                )
            axes.axvline(1.0, color="0.7", linewidth=0.8, zorder=0)
            axes.set_xscale("log")
            axes.set_xlim(TICKS[0] / 1.2, TICKS[-1])
            axes.set_xticks(TICKS, labels=[f"{tick:g}" for tick in TICKS])
            axes.minorticks_off()
            axes.set_xlabel(f"goodput over CUBIC's, {words} paths")
        panels[0].set_ylabel("paths and losses with at most this (%)")
        for axes in panels:
            axes.legend(loc="lower right", fontsize="x-small")
    return figure
