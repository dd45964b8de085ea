"""Tables of docs/ebb.md, from what the parts of the study found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import stats

from lfnlab.analysis.table import markdown
from studies.law import judge, search

if TYPE_CHECKING:
    from lfnlab.judge import Axis

LAW = "ebb"
SETS = {"mixed": "mixed", "fat": "long fat"}
WORST = 8
"""Attacked paths in the page's table."""
SHOWN = 3
"""Lost axes that a row names."""
DRAWS = 4_000
"""Of the bootstrap of a median."""
Lines = Iterable[str]
Pairs = Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
"""Rows of a law, each with CUBIC's of the path."""


def searched(points: Sequence[Mapping[str, Any]]) -> Lines:
    """Of each family of the search its best point."""
    rows = [
        (
            family,
            f"`{best['law']}`",
            f"{2 ** best['gain']:.2f}",
            f"{len(best['worse'])} of {best['pairs']}",
            f"{best['objective']:.2f}",
        )
        for family, best in search.best(points).items()
    ]
    return markdown(("family", "best point", "median gain", "worse", "objective"), rows)


def elastic(table: pl.DataFrame) -> Lines:
    """A row a cross traffic and loss: elasticity where the sender holds a queue, and where not."""
    rows = []
    keys = ("beside", "loss")
    for key in table.select(keys).unique(maintain_order=True).rows():
        here = table.filter(
            pl.all_horizontal(pl.col(n) == v for n, v in zip(keys, key, strict=True))
        ).sort("holds_s", descending=True)
        cells = [OTHERS[key[0]], f"{key[1]:g}"]
        for row in here.iter_rows(named=True):
            cells += [
                f"{1e3 * row['queue_s']:.1f}",
                "{} [{}, {}]".format(*(_digits(row[part]) for part in ("p50", "p5", "p95"))),
            ]
        rows.append(cells)
    heads = ["beside", "loss"]
    for words in ("holds 12.5 ms", "half of the link"):
        heads += [f"{words}: median queue (ms)", "elasticity [5 to 95 % of windows]"]
    return markdown(heads, rows)


OTHERS = {"none": "nothing", "udp": "UDP, 45 % of the link", "cubic": "CUBIC"}


def trial(table: pl.DataFrame, names: Mapping[str, str]) -> Lines:
    """A row a set and law: verdicts, lost axes, gain, shares."""
    rows = []
    for chosen, words in SETS.items():
        found = {law: both for law in names if (both := judge.pairs(table, law, chosen))}
        rows += [
            (words, names[law], *_verdicts(both))
            for law, both in found.items()
            if law in (LAW, judge.REFERENCE)
        ]
        if len(found) > 2:
            rows += [
                (f"{words}, those of rivals", names[law], *_verdicts(both))
                for law, both in _shared(found).items()
            ]
    heads = (
        *("paths", "law", "number", "no axis worse, by intervals (%)", "by margins (%)"),
        *("lost most often, by margins", "gain [interval]", "40 to 60 % beside Reno (%)"),
        "beside CUBIC (%)",
    )
    return markdown(heads, rows)


def _shared(found: Mapping[str, Pairs]) -> dict[str, Pairs]:
    """The pairs of each law on the paths that all have."""
    paths = set.intersection(*({own["path"] for own, _ in both} for both in found.values()))
    return {law: [pair for pair in both if pair[0]["path"] in paths] for law, both in found.items()}


def _verdicts(both: Pairs) -> tuple[str, ...]:
    lost: dict[str, int] = {}
    for own, its in both:
        for axis in judge.beyond(own, its):
            lost[axis] = lost.get(axis, 0) + 1
    most = sorted(lost.items(), key=lambda pair: (-pair[1], pair[0]))
    named = ", ".join(f"`{axis}` {n}" for axis, n in most[:SHOWN]) or "–"
    more = f", {len(most) - SHOWN} more" if len(most) > SHOWN else ""
    return (
        str(len(both)),
        _percent([not own["worse"] for own, _ in both if own["seeds"] > 1]),
        _percent([not judge.beyond(own, its) for own, its in both]),
        named + more,
        _gain(both),
        *(
            _percent(_inside(own[axis] for own, _ in both))
            for axis in ("share-reno", "share-cubic")
        ),
    )


def _percent(of: Sequence[bool]) -> str:
    return f"{100 * sum(of) / len(of):.0f}" if of else "–"


def _inside(shares: Any) -> list[bool]:
    return [0.4 <= share <= 0.6 for share in shares if share is not None]


def _gain(both: Pairs) -> str:
    """Median over paths and losses; the interval draws paths, at 95 % corrected for all laws."""
    gains = np.array([judge.gains(own, its) for own, its in both])
    draws = np.random.default_rng(1)
    chosen = draws.integers(len(gains), size=(DRAWS, len(gains)))
    medians = np.median(gains[chosen].reshape(DRAWS, -1), axis=1)
    tail = 2.5 / judge.COMPARED
    low, high = np.percentile(medians, (tail, 100 - tail))
    return f"{np.median(gains):.2f} [{low:.2f}, {high:.2f}]"


def axes(table: pl.DataFrame) -> Lines:
    """A row an axis: on how many paths the law is worse, and the median of its differences."""
    rows = []
    for name, axis in judge.AXES.items():
        cells = [f"`{name}`"]
        for chosen in SETS:
            cells += _axis(axis, judge.pairs(table, LAW, chosen))
        rows.append(cells)
    heads = ["axis"]
    for words in SETS.values():
        heads += [f"{words}: worse, by intervals", "by margins", "median of differences [interval]"]
    return markdown(heads, rows)


def _axis(axis: Axis, both: Pairs) -> list[str]:
    name = axis.name
    known = [(own, its) for own, its in both if own[name] is not None and its[name] is not None]
    if not known:
        return ["–", "–", "–"]
    differences = sorted(axis.badness(own[name]) - axis.badness(its[name]) for own, its in known)
    by_intervals = sum(name in (own["worse"] or "").split() for own, _ in known)
    sure = sum(own["seeds"] > 1 for own, _ in known)
    by_margins = sum(name in judge.beyond(own, its) for own, its in known)
    end = _order(len(differences), 0.05 / len(judge.AXES))
    times, unit = (1e3, " ms") if axis.unit == "s" else (1.0, "")
    middle = f"{times * float(np.median(differences)):+.2g}{unit}".replace("+0", "0")
    if end >= 0:
        low, high = times * differences[end], times * differences[-1 - end]
        middle += f" [{low:.2g}, {high:.2g}]"
    return [f"{by_intervals} of {sure}" if sure else "–", f"{by_margins} of {len(known)}", middle]


def _order(count: int, outside: float) -> int:
    """Index from both ends of the sorted values between which the median lies; negative: none.

    The binomial distribution says how many values are below the median.
    """
    index = int(stats.binom.ppf(outside / 2, count, 0.5))
    return index if stats.binom.cdf(index, count, 0.5) <= outside / 2 else index - 1


def thin(table: pl.DataFrame) -> str:
    """Of each set the paths where CUBIC lacks half of the link at a loss of 1e-4, and the gain."""
    told = []
    for chosen, words in SETS.items():
        both = judge.pairs(table, LAW, chosen)
        under = [(own, its) for own, its in both if its["goodput-1e-4-0"] < 0.5]
        told.append(f"on {len(under)} of {len(both)} {words} paths (gain {_gain(under)})")
    return f"At a loss of 1e-4 CUBIC has less than half of the link {' and '.join(told)}."


def decided(table: pl.DataFrame) -> str:
    """On how many pairs of path and axis an interval of three seeds can tell something."""
    own = table.filter((pl.col("law") == LAW) & (pl.col("seeds") > 1))
    part = sum(own["decided"].to_list()) / sum(own["pairs"].to_list())
    return (
        f"On {100 * part:.0f} % of the pairs of path and axis both laws have the same values, or "
        "the interval is narrower than the margin; on the others it tells little."
    )


def attacks(found: Mapping[str, Any]) -> Lines:
    """Counts of attacked paths, with exact intervals."""
    law, paths = found["law"], found["paths"]
    rows = [
        (words, str(found[name]), rate(found[name], paths))
        for words, name in (
            (f"`{law}` has under half of CUBIC's goodput", "little"),
            (f"`{law}` has over 60 % beside a CUBIC flow", "much"),
            ("CUBIC has over 60 % beside a CUBIC flow", "much of cubic"),
            (
                f"harm: `{law}` has over 60 %, the other under 80 % of its goodput beside CUBIC",
                "harm",
            ),
            ("harm by chance: the same of CUBIC with another seed", "chance"),
            (f"harm by the means of 20 seeds, of those that `{law}` harms by one", "confirmed"),
        )
    ]
    return markdown((f"of {paths:,} paths", "paths", "of 1,000 [95 % interval]"), rows)


def rate(count: int, of: int) -> str:
    """Per thousand, with the interval of Clopper and Pearson."""
    low = stats.beta.ppf(0.025, count, of - count + 1) if count else 0.0
    high = stats.beta.ppf(0.975, count + 1, of - count) if count < of else 1.0
    told, least, largest = map(_digits, (1e3 * count / of, 1e3 * low, 1e3 * high))
    return f"{told} [{least}, {largest}]"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def kinds(found: Mapping[str, Any]) -> Lines:
    """Of each kind of path how often the law harms, and how often CUBIC by chance."""
    names = ("paths", "harm", "chance", "confirmed")
    rows = [
        (kind, *(f"{counts[name]:,}" for name in names)) for kind, counts in found["kinds"].items()
    ]
    return markdown(("path with", "paths", "harm", "by chance", "by means of 20 seeds"), rows)


def worst(found: Mapping[str, Any]) -> Lines:
    """The paths on which a CUBIC keeps least beside the law, by means over seeds."""
    rows = [
        (
            row["words"],
            "yes" if row["harm"] or row["little"] else "no",
            f"{100 * row['kept']:.0f} ± {100 * row['kept_ci']:.0f}",
            f"{100 * row['share']:.0f}",
            f"{100 * row['cubic_share']:.0f}",
            f"{row['alone_bps'] / 1e6:.2f}",
            f"{row['cubic_bps'] / 1e6:.2f}",
        )
        for row in sorted(found["again"], key=lambda row: row["kept"])[:WORST]
    ]
    heads = ("path", "harm", "the CUBIC keeps (%)", "share (%)", "CUBIC's share (%)")
    return markdown((*heads, "alone (Mbit/s)", "CUBIC alone"), rows)


def on_linux(table: pl.DataFrame) -> Lines:
    """A row a path and loss: the law over CUBIC alone, and both beside CUBIC."""
    rows = []
    keys = ("rate", "rtt", "buffer", "loss")
    for key in table.select(keys).unique(maintain_order=True).rows():
        here = table.filter(
            pl.all_horizontal(pl.col(n) == v for n, v in zip(keys, key, strict=True))
        )
        own, cubic = (here.filter(pl.col("law") == law).row(0, named=True) for law in LAWS)
        cells = [f"{key[0]} × {key[1]}, {key[2]}".replace("bdp", " BDP"), f"{key[3]:g}"]
        for place in ("on linux", "in simulator"):
            cells += [
                f"{own[f'goodput_bps {place}'] / 1e6:.1f}",
                f"{cubic[f'goodput_bps {place}'] / 1e6:.1f}",
                f"{100 * own[f'share {place}']:.0f}",
                f"{100 * own[f'neighbour_bps {place}'] / cubic[f'neighbour_bps {place}']:.0f}",
            ]
        rows.append(cells)
    heads = ["path", "loss"]
    for place in ("Linux", "simulator"):
        heads += [
            f"{place}: `ebb` alone (Mbit/s)",
            "CUBIC alone",
            "share of `ebb` beside CUBIC (%)",
            "CUBIC keeps (%)",
        ]
    return markdown(heads, rows)


LAWS = ("ebb", "cubic:linux")


def account(table: pl.DataFrame) -> Lines:
    """CPU time of each part."""
    rows = [(f"`{part}`", f"{cpu_s / 60:.0f}") for part, cpu_s in table.iter_rows()]
    total = sum(table["cpu_s"].to_list()) / 3600
    return [*markdown(("part", "CPU minutes"), rows), "", f"Together {total:.1f} CPU hours."]
