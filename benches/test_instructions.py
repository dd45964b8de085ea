"""No scenario of the comparison takes more instructions a packet than recorded."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from benches.instructions import COUNTED, GROWTH, instructions_per_packet, recorded

if TYPE_CHECKING:
    from benches.compare_ns import Work


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no program `valgrind`")
@pytest.mark.parametrize("work", COUNTED, ids=lambda work: work.name)
def test_instructions_a_packet(work: Work) -> None:
    assert instructions_per_packet(work) <= (1 + GROWTH) * recorded()[work.name], (
        "if it is worth that: python -m benches.instructions --write"
    )
