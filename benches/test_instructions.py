"""No case takes more instructions a packet than recorded."""

from __future__ import annotations

import shutil

import pytest

from benches.instructions import GROWTH, count, recorded, scenarios


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no program `valgrind`")
def test_instructions_a_packet() -> None:
    before = recorded()
    grown = {
        name: (before[name], round(now, 1))
        for name, now in count().items()
        if now > (1 + GROWTH) * before[name]
    }
    assert not grown, "if it is worth that: python -m benches.instructions --write"


def test_every_case_is_recorded() -> None:
    assert list(recorded()) == list(scenarios())
