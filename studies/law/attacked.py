"""The law on attacked paths, drawn at random from the space of ``lfn attack``.

Each path is run with one seed first: the law and CUBIC alone, each beside a CUBIC flow, and the
latter with another seed, too. So the table says how often CUBIC seems to harm CUBIC by chance. A
path on which the law seems to harm is run again with ``SEEDS``, and the means decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from lfnlab.attacker import draws, space
from lfnlab.attacker.runs import Ask, Runs
from lfnlab.attacker.scenarios import SHORT_S
from lfnlab.attacker.space import number
from studies.law.paths import SEED

if TYPE_CHECKING:
    from lfnlab.attacker.harm import Figures
    from lfnlab.attacker.space import Path

SEEN = 20_000
"""The law was changed by what the first paths showed, so they are left out."""
COUNT = 80_000
BATCH = 250
"""Paths whose runs are asked for at once."""
LEAST, MOST = 0.5, 0.6
"""Of CUBIC's goodput that the law should have, and of what it and a CUBIC have together."""
KEPT = 0.8
"""Of what a CUBIC has beside another CUBIC, that it should have beside the law."""
FIRST, CHANCE, SEEDS = 1, 2, tuple(range(3, 23))
"""Seeds: of every path; of CUBIC by chance; of the paths that are run again."""
SHORT_PACKETS = 8
KINDS: Mapping[str, Callable[[Path], bool]] = {
    "buffer of 4 to 8 packets": lambda path: _packets(path) <= SHORT_PACKETS,
    "AQM or drop-head": lambda path: "queue" in path,
    "random loss": lambda path: "loss" in path,
    "reordering, jitter": lambda path: bool({"reorder", "jitter_ms"} & set(path)),
    "ACKs lost, batched, late": lambda path: "acks" in space.groups(path),
    "outages": lambda path: "outage_s" in path,
    "steps of rate or delay": lambda path: bool({"step_rate", "step_delay_ms"} & set(path)),
    "UDP pulses": lambda path: "udp" in path,
    "short flows": lambda path: "short_flows" in path,
    "none of these": lambda path: (
        not any(kind(path) for name, kind in KINDS.items() if name != "none of these")
    ),
}
"""A path may be of several kinds."""


def _packets(path: Path) -> float:
    """Of the buffer; at least four."""
    bdp_bytes = number(path, "rate_mbps") * 1e3 * number(path, "rtt_ms") / 8
    packets = number(path, "buffer_bdp") * bdp_bytes / space.PACKET_BYTES
    return max(space.LEAST_PACKETS, packets)


def attacked(law: str, count: int, jobs: int, store: FilePath) -> dict[str, Any]:
    """Counts of the paths on which the law has too little alone, or too much beside CUBIC.

    Beside CUBIC a law may have more without harm: of a link that random loss leaves empty. So
    ``harm`` counts where the share is too large and CUBIC has less than beside another CUBIC.
    ``chance`` counts CUBIC with another seed in the law's place; ``confirmed`` counts where the
    means over ``SEEDS`` show harm, too. ``again`` has the figures of the paths that were run again.
    """
    runs = Runs(store, {"study": "law", "law": law}, jobs)
    rows = list(_screened(law, draws(SEED, SEEN + count)[SEEN:], runs))
    again = [_again(law, row, runs) for row in rows if row["little"] or row["harm"]]
    return {
        "law": law,
        **_counts(rows, again),
        "kinds": {
            name: _counts(
                [row for row in rows if kind(row["path"])],
                [row for row in again if kind(row["keys"])],
            )
            for name, kind in KINDS.items()
        },
        "again": again,
    }


def _counts(
    rows: Sequence[Mapping[str, Any]], again: Sequence[Mapping[str, Any]]
) -> dict[str, int]:
    names = ("little", "much", "much of cubic", "harm", "chance")
    return {
        "paths": len(rows),
        **{name: sum(row[name] for row in rows) for name in names},
        "little confirmed": sum(row["little"] for row in again),
        "confirmed": sum(row["harm"] for row in again),
    }


def _screened(law: str, paths: Sequence[Path], runs: Runs) -> Iterator[dict[str, Any]]:
    """Of each path what one seed shows; a path with a run that failed is left out."""
    for at in range(0, len(paths), BATCH):
        alone = [_one(path) for path in paths[at : at + BATCH]]
        asks = [
            ask
            for path in alone
            for ask in (
                Ask(path, law, FIRST, SHORT_S),
                Ask(path, "cubic", FIRST, SHORT_S),
                Ask(_beside(path), law, FIRST, SHORT_S),
                Ask(_beside(path), "cubic", FIRST, SHORT_S),
                Ask(_beside(path), "cubic", CHANCE, SHORT_S),
            )
        ]
        found = runs(asks)
        for place, path in enumerate(alone):
            figures = [one for one in found[5 * place : 5 * place + 5] if one is not None]
            if len(figures) < 5:
                continue
            own, cubic, pair, reference, chance = figures
            yield {
                "number": SEEN + at + place,
                "path": path,
                "little": own.goodput_bps < LEAST * cubic.goodput_bps,
                "much": _share(pair) > MOST,
                "much of cubic": _share(reference) > MOST,
                "harm": _harms(pair, reference),
                "chance": _harms(chance, reference),
            }


def _one(path: Path) -> Path:
    return space.valid({**path, "flows": 1.0, "neighbour": "none"})


def _beside(path: Path) -> Path:
    return space.valid({**path, "neighbour": "cubic"})


def _share(pair: Figures) -> float:
    both_bps = pair.goodput_bps + pair.neighbour_bps
    return pair.goodput_bps / both_bps if both_bps else 0.5


def _harms(pair: Figures, reference: Figures) -> bool:
    return _share(pair) > MOST and pair.neighbour_bps < KEPT * reference.neighbour_bps


def _again(law: str, row: Mapping[str, Any], runs: Runs) -> dict[str, Any]:
    """Means over ``SEEDS``, with the half-width of the 95 % interval of what CUBIC keeps."""
    path: Path = row["path"]
    own, cubic, pair, reference = (
        [one for one in runs([Ask(where, who, seed, SHORT_S) for seed in SEEDS]) if one is not None]
        for where, who in (
            (path, law),
            (path, "cubic"),
            (_beside(path), law),
            (_beside(path), "cubic"),
        )
    )
    alone_bps, cubic_bps = (fmean(one.goodput_bps for one in of) for of in (own, cubic))
    left, its = ([one.neighbour_bps for one in of] for of in (pair, reference))
    kept, share = fmean(left) / fmean(its), fmean(map(_share, pair))
    errors = (stdev(of) / fmean(of) / math.sqrt(len(of)) for of in (left, its))
    return {
        "number": row["number"],
        "keys": path,
        "words": space.in_words(path),
        "seen": "little" if row["little"] else "harm",
        "little": alone_bps < LEAST * cubic_bps,
        "harm": share > MOST and kept < KEPT,
        "alone_bps": round(alone_bps),
        "cubic_bps": round(cubic_bps),
        "neighbour_bps": round(fmean(left)),
        "cubic_neighbour_bps": round(fmean(its)),
        "share": round(share, 3),
        "cubic_share": round(fmean(map(_share, reference)), 3),
        "kept": round(kept, 3),
        "kept_ci": round(1.96 * kept * math.hypot(*errors), 3),
    }
