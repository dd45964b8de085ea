"""Theory of the laws: closed forms, sawtooths, and fairness under synchronised losses.

A law is modelled by its equations, or, without equations, by its own code on a fluid path.

>>> from lfnlab import theory
>>> round(theory.response("reno", 1e-5, rtt_s=0.1, kept=0.5), 1)
387.3
>>> tooth = theory.sawtooth("reno", rate_pps=8333, rtt_s=0.1, buffer_packets=0)
>>> round(tooth.utilization, 2)
0.75

``docs/theory.md`` has figures; ``lfn theory`` computes the same in a shell.
"""

from lfnlab.theory.closed import padhye_pps
from lfnlab.theory.fluid import (
    Bottleneck,
    Course,
    Epoch,
    Sawtooth,
    Shares,
    sawtooth,
    sawtooth_at_loss,
    shares,
    synchronised,
)
from lfnlab.theory.functions import recovery_s, response
from lfnlab.theory.senders import SENDERS, Sender

__all__ = [
    "SENDERS",
    "Bottleneck",
    "Course",
    "Epoch",
    "Sawtooth",
    "Sender",
    "Shares",
    "padhye_pps",
    "recovery_s",
    "response",
    "sawtooth",
    "sawtooth_at_loss",
    "shares",
    "synchronised",
]
