"""Sawteeth of single flows at many points of a space of laws and paths, in one call.

Tuning and advice screen with them before they simulate. Each point runs the law's own code on a
fluid path (``crates/law/src/fluid.rs``), as :func:`lfnlab.theory.fluid.sawtooth` does with
``code=True``, but coarsely: few ACKs a round trip, and an end once epochs repeat. docs/theory.md
says how far the two are apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lfnlab import _core
from lfnlab.errors import UsageError
from lfnlab.machine import cores

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Sawteeth:
    """Arrays with an entry a point, all of the shape that the arguments have together.

    Values are those of :class:`lfnlab.theory.fluid.Sawtooth`: windows in segments, rates as shares
    or per packet. NaN where there is no sawtooth.
    """

    period_s: NDArray[np.float64]
    window_before: NDArray[np.float64]
    window_after: NDArray[np.float64]
    mean_window: NDArray[np.float64]
    mean_rtt_s: NDArray[np.float64]
    utilization: NDArray[np.float64]
    loss_events_per_packet: NDArray[np.float64]
    growth: NDArray[np.float64]
    wrong: NDArray[np.object_]
    """Why a point has no sawtooth; None where it has one."""


def sawteeth(
    laws: ArrayLike,
    rates_pps: ArrayLike,
    rtts_s: ArrayLike,
    buffers_packets: ArrayLike,
    *,
    threads: int | None = None,
) -> Sawteeth:
    """The sawtooth of one flow at each point; arguments are broadcast against each other.

    Args:
        laws: names of laws, with variants and parameters (``"cubic:rfc"``, ``"vcp:weight=2"``).
        rates_pps: rates of the link in packets a second, above 0.
        rtts_s: round trips without a queue, in seconds, above 0.
        buffers_packets: what the queue holds, at least 0.
        threads: by default as many as there are cores; results do not depend on them.

    Raises:
        LawError: no such law.
        UsageError: shapes that do not go together, or a number out of range.

    >>> found = sawteeth(["reno", "cubic"], 1e4, 0.1, [[0.0], [1000.0]])
    >>> found.utilization.round(2).tolist()
    [[0.75, 0.87], [1.0, 1.0]]
    """
    try:
        given = np.broadcast_arrays(
            np.asarray(laws, dtype=np.str_),
            np.asarray(rates_pps, dtype=np.float64),
            np.asarray(rtts_s, dtype=np.float64),
            np.asarray(buffers_packets, dtype=np.float64),
        )
    except ValueError as error:
        raise UsageError(f"{error}; allowed: shapes that broadcast against each other") from None
    names, rates, rtts, buffers = (array.ravel().tolist() for array in given)
    count = threads or cores()
    found = _core.sawteeth(names, rates, rtts, buffers, count)
    found["wrong"] = np.array(found["wrong"], dtype=np.object_)
    return Sawteeth(**{name: column.reshape(given[0].shape) for name, column in found.items()})
