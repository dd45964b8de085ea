"""Standard metrics, computed from the stored tables of a run.

Each takes numbers or the frames of ``docs/results.md`` (flows, queues, events), and its docstring
gives formula, unit and source; docs/metrics.md is made from them, and
:mod:`lfnlab.analysis.measure` applies them to stored runs. Goodput counts new bytes delivered
in order to the application. An undefined value (all flows silent, a mean of zero) is NaN. An
impossible argument, such as a window longer than the run, raises
:class:`~lfnlab.errors.MetricError`, which names it.

[METR] is draft-irtf-tmrg-metrics-11, which became RFC 5166; [TCPEVAL] draft-irtf-iccrg-tcpeval-01.
"""

from __future__ import annotations

from lfnlab.metrics import delay, loss, shares, steadiness, tables
from lfnlab.metrics.delay import *
from lfnlab.metrics.loss import *
from lfnlab.metrics.shares import *
from lfnlab.metrics.steadiness import *
from lfnlab.metrics.tables import *

__all__: list[str] = []
__all__ += delay.__all__
__all__ += loss.__all__
__all__ += shares.__all__
__all__ += steadiness.__all__
__all__ += tables.__all__
