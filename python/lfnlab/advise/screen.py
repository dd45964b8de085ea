"""The laws in the order in which the fluid would have them: what is simulated first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lfnlab.control_laws.prototype import is_prototype
from lfnlab.theory.sawteeth import sawteeth

if TYPE_CHECKING:
    from lfnlab.advise.choices import Choice
    from lfnlab.advise.path import Path

STEPS, STEP = 96, 2**-0.25
"""Rates at which a law's losses are compared with the path's, each this part of the last."""
ALWAYS = ("cubic", "bbr")
"""Linux's default, and the law that ignores losses."""


def order(path: Path, choices: Sequence[Choice]) -> tuple[list[Choice], dict[Choice, float]]:
    """The choices, the most promising first, and the part of the link that the fluid gives them.

    One call of the fluid has every law with every number of streams at :data:`STEPS` rates. A
    stream has its part of rate and buffer. With random loss it has the rate at which the law's own
    losses would be as frequent as those of the path, and no more than without.
    """
    # The fluid knows the laws of the registry; another law is simulated, as if it filled the link.
    known = [choice for choice in choices if not is_prototype(choice.law)]
    points = sorted({(choice.law, choice.streams) for choice in known})
    laws = np.array([law for law, _ in points])[:, None]
    streams = np.array([float(count) for _, count in points])[:, None]
    parts = STEP ** np.arange(STEPS)[None, :]
    found = sawteeth(
        laws,
        path.packets_per_s / streams * parts,
        path.rtt_s,
        path.buffer_packets / streams * parts,
    )
    used = {}
    for row, point in enumerate(points):
        full = float(np.nan_to_num(found.utilization[row, 0], nan=0.5))
        frequent = found.loss_events_per_packet[row]
        if path.loss > 0.0 and point[0] != "bbr":
            reached = np.flatnonzero(frequent >= path.loss)
            part = parts[0, reached[0]] if reached.size else parts[0, -1]
            full = min(full, float(part))
        used[point] = full
    scores = {choice: used.get((choice.law, choice.streams), 1.0) for choice in choices}
    most = max(choice.streams for choice in choices)

    def place(choice: Choice) -> tuple[int, float, Choice]:
        first = choice.streams in (1, most) and not choice.fq
        tier = 0 if first and choice.name in ALWAYS else 1 if first else 2
        tier += 1 if choice.ours and not first else 0
        return tier, -round(scores[choice], 3), choice

    return sorted(choices, key=place), scores
