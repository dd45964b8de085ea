"""The picture at the head of a law's card: its sawtooth and its response function."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import numpy as np

from lfnlab.control_laws.registry import law as law_of
from lfnlab.control_laws.registry import look
from lfnlab.errors import LawError
from lfnlab.experiment.run import execute
from lfnlab.figures.layout import panels
from lfnlab.figures.plot import INK, cwnd_series, house_style, thin
from lfnlab.figures.theory import label_powers
from lfnlab.scenario.builder import Scenario
from lfnlab.theory.functions import RESPONDING, response

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

PATH = "100 Mbit/s × 100 ms, buffer 0.2 BDP"
BDP_SEGMENTS = 100e6 * 0.1 / 8 / 1514
_SCENARIO = """\
schema = 1
duration = "120s"
[link]
rate = "100Mbit/s"
queue = {queue}
{router}
[[flow]]
law = "{law}"
rtt = "100ms"
"""
_MARKING = (
    '{ kind = "red", size = "0.2bdp", min_th = "65 packets", max_th = "66 packets", weight = 1, '
    "ecn = true, mark_p = 1 }"
)


def scenario(law: str) -> Scenario:
    """One flow of a law: before a queue that marks if it reads marks, at a router that it needs."""
    info = law_of(law)
    kind = {"evcp": "vcp"}.get(info.name, info.name)
    router = f'router = {{ kind = "{kind}" }}' if info.family == "router" else ""
    queue = _MARKING if info.family == "ecn" else '{ size = "0.2bdp" }'
    return Scenario.from_toml(_SCENARIO.format(law=law, queue=queue, router=router), "scenario")


def picture(law: str) -> Figure:
    """Window of one flow over 120 s in the simulator, and mean window over the loss rate.

    Without a response function the first panel is alone.

    Args:
        law: NAME or NAME:VARIANT of the registry.

    Raises:
        LawError: for an unknown law.
    """
    losses = np.logspace(-2, -8, 49)
    means = _response(law, losses)
    with house_style():
        titles = [PATH] if means is None else [PATH, "response function; dashed: Reno"]
        figure, grid = panels(titles, (4.2, 2.5), 2)
        _draw_window(grid[0], law)
        if means is not None:
            axes = grid[1]
            axes.loglog(losses, _response("reno", losses), color=INK, lw=0.9, ls="--")
            axes.loglog(losses, means, color=look(law)[0], lw=1.4)
            axes.invert_xaxis()
            label_powers(axes)
            axes.set_xlabel("loss events a packet")
            axes.set_ylabel("mean window (segments)")
        return figure


def _draw_window(axes: Axes, law: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ((_, _, t_s, window),) = cwnd_series(execute(scenario(law), out=folder).runs[0])
    limited = window < 100 * BDP_SEGMENTS  # UDT has no window before its first acknowledgement
    axes.plot(*thin(t_s[limited], window[limited]), color=look(law)[0], lw=1.0)
    axes.axhline(BDP_SEGMENTS, color=INK, lw=0.8, ls=":")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("window (segments); dotted: BDP")


def _response(law: str, losses: NDArray[np.float64]) -> list[float] | None:
    """Mean windows on an RTT of 100 ms, RTT_min / RTT_max 0.8; None without a response function."""
    if law_of(law).family == "router":  # it answers to its routers
        return None
    name = law if law in RESPONDING else law.partition(":")[0]
    try:
        return [response(name, float(loss), 0.1, 0.8) for loss in losses]
    except LawError:
        return None
