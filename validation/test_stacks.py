"""The page of stacks has the stored numbers, and they are those of the versions that are pinned."""

from __future__ import annotations

import json
import shutil

import pytest

from validation import stacks, whole_stacks


def test_stored_rows_are_of_the_pinned_versions() -> None:
    """A version that moves needs new rows."""
    stored = json.loads(stacks.REFERENCE.read_text(encoding="utf-8"))
    pinned = {one.name: f"{one.package} {one.version}" for one in stacks.driven()}
    assert stored["versions"] == pinned, "run: python -m validation.stacks"
    laws = {law for one in stacks.driven() for law in one.laws}
    assert stored["rows"].keys() == {*stacks.OWN, *laws}


def number(law: str, name: str) -> float:
    """A stored number that must be there."""
    value = stacks.stored()[law][name]
    assert value is not None, (law, name)
    return value


def test_deviations_that_the_page_tells_are_in_the_stored_rows() -> None:
    """The sentences of the page, as relations between numbers."""
    assert number("quiche:cubic", "second_back_s") < 0.3
    assert number("quinn:cubic", "long_bulk") > 300
    assert number("quinn:cubic", "second_frozen_s") > 0.7
    assert number("tquic:cubic", "long_limited") > 14
    assert number("smoltcp:cubic", "long_limited") > 13
    assert number("quic-go:reno", "cap") == 10_000
    assert number("quinn:bbr", "initial") == 200
    lag = number("s2n:cubic", "large_20_s") / number("s2n:cubic", "large_curve") - 1
    assert round(100 * lag, 1) == -1.4
    for law in ("quinn:cubic", "s2n:cubic", "quic-go:cubic"):
        assert number(law, "friendly_above") < 0.54
    for law in ("cubic", "smoltcp:cubic", "quiche:cubic", "tquic:cubic"):
        assert number(law, "friendly_above") > 0.95
    for law in ("quic-go:reno", "quiche:cubic", "tquic:cubic"):
        assert number(law, "persistent") > 0.3 * number(law, "persistent_before")
    for law in ("quinn:cubic", "s2n:cubic", "aioquic:cubic"):
        assert number(law, "persistent") == 2
    assert round(number("aioquic:cubic", "beta"), 2) == 0.53
    assert number("aioquic:cubic", "long_limited") > 15


@pytest.mark.parametrize("law", list(stacks.OWN))
def test_our_laws_give_the_stored_numbers(law: str) -> None:
    """All but the large window, which takes seconds."""
    if shutil.which("cc") is None:
        pytest.skip("STACKS NOT TESTED: cc is missing")
    row = stacks.measured(law, but=("large",))
    assert stacks.differences(law, row) == []


def test_a_stack_that_is_built_gives_the_stored_numbers() -> None:
    """A sample: two stimuli of each; what differs is named."""
    here = [law for law in stacks.here() if law not in stacks.OWN]
    if not here:
        pytest.skip("STACKS NOT TESTED: make stacks has built none")
    found = []
    for law in here:
        row = stacks.measured(law, only=("start", "convergence"))
        found += stacks.differences(law, row)
    assert not found, "\n".join(found)


def test_whole_stacks_are_of_the_pinned_versions_and_give_the_stored_numbers() -> None:
    """Two troubles of each that is built."""
    stored = json.loads(whole_stacks.REFERENCE.read_text(encoding="utf-8"))
    assert stored["versions"] == whole_stacks.versions(), "run: python -m validation.whole_stacks"
    here = [law for law in whole_stacks.here() if law not in whole_stacks.OWN]
    if not here:
        pytest.skip("WHOLE STACKS NOT TESTED: make stacks has built none")
    found = whole_stacks.differences(whole_stacks.measured(here, ("marks", "copies")))
    assert not found, "\n".join(found)


def test_whole_stacks_do_what_the_page_says() -> None:
    """Relations between stored numbers."""
    rows = whole_stacks.stored()
    linux = rows["cubic:linux"]["none"][0]
    for law in ("quinn-whole:cubic", "ngtcp2-whole:cubic", "quinn-whole:new_reno"):
        assert abs(rows[law]["none"][0] / linux - 1) < 0.015
        # Marks reach it: nothing is dropped, and its window falls all the same.
        assert rows[law]["marks"][1] == 0
        assert rows[law]["erased"][1] > 0
    for law in ("quinn-whole:cubic", "smoltcp-whole:reno"):
        assert rows[law]["late"][0] < 0.3 * linux
    assert rows["ngtcp2-whole:cubic"]["late"][0] > 0.97 * linux
    assert rows["smoltcp-whole:cubic"]["none"][0] < 0.7 * linux
