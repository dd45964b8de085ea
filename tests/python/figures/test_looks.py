"""Looks of series: the colour of a law is its own."""

from __future__ import annotations

import itertools

from lfnlab.control_laws.registry import laws, look
from lfnlab.figures.looks import looks

NAMES = [info.name for info in laws()]


def test_two_laws_of_one_figure_never_have_one_colour() -> None:
    for one, other in itertools.combinations(NAMES, 2):
        both = looks({one: one, other: other})
        assert both[one].color == look(one)[0]  # the registry's order is that of NAMES
        assert both[one].color != both[other].color, (one, other)
        assert looks({other: other, one: one})[one].color == both[one].color


def test_a_law_keeps_its_colour_beside_others_that_have_another() -> None:
    for one, other in itertools.permutations(NAMES, 2):
        if look(one)[0] != look(other)[0]:
            assert looks({other: other, one: one})[one].color == look(one)[0]


def test_variants_of_a_law_share_its_colour_and_differ_in_dashes() -> None:
    found = looks(dict.fromkeys(("reno", "cw-hstcp", "cw-hstcp:c5")) | {
        "reno": "reno", "cw-hstcp": "cw-hstcp", "cw-hstcp:c5": "cw-hstcp:c5",
    })  # fmt: skip
    assert found["cw-hstcp"].color == found["cw-hstcp:c5"].color != found["reno"].color
    assert found["cw-hstcp"].dashes != found["cw-hstcp:c5"].dashes


def test_no_two_of_twelve_laws_look_alike() -> None:
    for first in range(len(NAMES) - 12):
        some = NAMES[first : first + 12]
        found = looks({name: name for name in some})
        assert len({(one.color, one.dashes) for one in found.values()}) == len(some)
        assert len({one.color for one in found.values()}) == len(some)
