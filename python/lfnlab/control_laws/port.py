"""Test vectors for a C header, recorded from a law in Python.

The minimal sender of ``cargo test -p lfn-law`` drives the prototype through the statements below,
in the language of ``laws/cards/README.md``. The prototype's decisions become the expectations in
the header's card.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from lfnlab import _core
from lfnlab.control_laws import prototype
from lfnlab.errors import LawError, UsageError

if TYPE_CHECKING:
    from lfnlab.control_laws.prototype import Law

BLOCKS: dict[str, str] = {
    "growth: one ACK, several segments at once, whole round trips": """
        start cwnd=10
        ack
        ack n=2
        rounds 1
        rounds 20
    """,
    "a large window, and what a loss leaves of it": """
        start cwnd=5000
        ack x=100
        rounds 5
        loss fast
        rounds 20
    """,
    "one epoch after another": """
        start cwnd=100
        rounds 30
        loss fast
        rounds 50
        loss fast
        rounds 100
        loss fast
        rounds 10
    """,
    "a mark, and a timeout with slow start after it": """
        start cwnd=64
        rounds 5
        loss ecn
        rounds 5
        loss rto
        rounds 8
    """,
    "the smallest windows": """
        start cwnd=3
        rounds 2
        loss fast
        loss fast
        loss rto
        rounds 4
    """,
    "a short path": """
        start cwnd=50 rtt=2ms
        rounds 100
        loss fast
        rounds 100
    """,
    "a long path": """
        start cwnd=50 rtt=300ms
        rounds 40
        loss fast
        rounds 40
    """,
    "the RTT rises and falls": """
        start cwnd=100 rtt=40ms
        rounds 5
        ack x=100 every=400us rtt=60ms
        rounds 5
        ack x=100 every=400us rtt=45ms
        rounds 5
        loss fast
        rounds 5
    """,
    "an episode that lasts, and is taken back": """
        start cwnd=80
        rounds 3
        loss fast hold
        sample x=40 every=1ms
        open
        rounds 3
        undo
        rounds 3
    """,
    "slow start, and a pause": """
        start cwnd=10 ssthresh=64
        rounds 5
        wait 5s
        rounds 5
    """,
}
"""Statements of each block, by what it tries."""
_FIELDS = ("cwnd", "ssthresh", "pacing_Bps")


def vectors(law: type[Law], name: str, tolerance: float) -> str:
    """Blocks of vectors that a header called ``name`` has to meet, as a part of its card.

    Each says what cwnd is after every statement, and the others where they change. ``tolerance``
    is relative: a header counts in integers, a prototype in floats.

    Raises:
        LawError: when ``law`` cannot be one.
        PrototypeError: when it raised.
    """
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise LawError(
            f"{name!r} is not a name for a header; allowed: a lower-case letter, then lower-case "
            "letters, digits, -"
        )
    if not 0 < tolerance < 1:
        raise UsageError(f"tolerance: {tolerance:g}; allowed: above 0, below 1")
    text = prototype.spelled(law)
    lines = []
    for tries, statements in BLOCKS.items():
        lines += ["```law", f"law {name}  # {tries}"]
        before: dict[str, float] = {}
        script = [line.strip() for line in statements.strip().splitlines()]
        for statement, values in zip(script, _core.drive(text, script, _FIELDS), strict=True):
            lines.append(statement)
            after = dict(zip(_FIELDS, values, strict=True))
            if before:
                lines += [
                    f"expect {field} {_number(value, tolerance)}"
                    for field, value in after.items()
                    if field == "cwnd" or value != before[field]
                ]
            before = after
        lines += ["```", ""]
    return "\n".join(lines)


def _number(value: float, tolerance: float) -> str:
    if math.isinf(value):
        return "inf"
    return f"{value:.9g} +-{100 * tolerance:g}%" if value else "0"
