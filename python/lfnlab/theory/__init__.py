"""What the laws do in theory: closed forms, sawtooths, and fairness of synchronised losses.

A law is its equations where it has some, else its own code on a path that is a fluid.

>>> from lfnlab import theory
>>> round(theory.response("reno", 1e-5, rtt_s=0.1, kept=0.5), 1)
387.3
>>> tooth = theory.sawtooth("reno", rate_pps=8333, rtt_s=0.1, buffer_packets=0)
>>> round(tooth.utilisation, 2)
0.75

``docs/theory.md`` has the figures, and ``lfn theory --help`` is the same from a shell.
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
