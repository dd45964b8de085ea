"""Are the kept weaknesses what the page says, and do they still show?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from studies import attacks

from lfnlab.attacker import harm, space
from lfnlab.attacker.judge import SEEDS
from lfnlab.attacker.runs import Ask, Runs
from lfnlab.attacker.scenarios import LONG_S
from lfnlab.attacker.shrink import MOST_KEYS

if TYPE_CHECKING:
    from lfnlab.attacker import Weakness

KEPT = attacks.kept()


def cheapest(law: str) -> Weakness:
    """The weakness of a law on the slowest path."""
    found = [one for one in attacks.weaknesses() if one.law.name == law]
    return min(found, key=lambda one: (space.number(one.path, "rate_mbps"), one.name))


def test_ten_laws_have_weaknesses_within_the_budget() -> None:
    assert set(attacks.LAWS) == KEPT.keys()
    for law, said in KEPT.items():
        assert said["weaknesses"], law
        assert said["runs"] <= 20_000
        for one in said["weaknesses"]:
            assert 1 <= len(one["keys"]) <= MOST_KEYS
            assert space.valid(one["keys"]) == one["keys"]
            assert one["margin"] >= 1.0


def test_linux_shows_a_weakness_of_each_law_that_it_has() -> None:
    shown = {
        law
        for law, said in KEPT.items()
        for one in said["weaknesses"]
        if one.get("linux", {}).get("holds")
    }
    assert shown >= set(attacks.LAWS) - {"bbr3"}, "Linux has no BBRv3"


def test_the_search_found_what_is_known() -> None:
    """Pulses starve Reno; BBR does harm in a shallow buffer."""
    pulses = [one for one in KEPT["reno"]["weaknesses"] if "udp" in one["keys"]]
    assert [one["kind"] for one in pulses].count("starved") >= 1
    shallow = [
        one for one in KEPT["bbr"]["weaknesses"] if float(one["keys"].get("buffer_bdp", 1.0)) <= 0.2
    ]
    assert {one["kind"] for one in shallow} & {"waste", "neighbour"}


@pytest.mark.parametrize("law", attacks.LAWS)
def test_a_weakness_still_shows(law: str) -> None:
    one = cheapest(law)
    runs = Runs(None, {}, 2)
    own, other = runs([Ask(one.path, name, SEEDS[0], LONG_S) for name in (law, one.other)])
    assert own is not None
    assert other is not None
    assert harm.margin(one.kind, one.path, own, other) >= 1.0
