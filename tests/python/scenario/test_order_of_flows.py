"""Does the order of flows in a file change what they get?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lfnlab import Scenario, dumbbell, execute
from lfnlab.evaluate.scenarios import link
from lfnlab.scenario.elements import AckImpair, Jitter, Reverse

PATH = dumbbell(rate="60Mbit/s", rtt="40ms", buffer="20 packets", duration="12s", warmup="2s")


def paths(folder: Path) -> dict[str, Scenario]:
    """Paths on which several packets go on at one instant, and one on which none do."""
    assert PATH.link is not None
    trace = folder / "five-a-millisecond"
    trace.write_text("".join(f"{ms}\n" * 5 for ms in range(1, 101)))
    gathered = Reverse(acks=AckImpair(aggregate="5ms"))
    return {
        "plain": PATH,
        "trace": link(PATH, rate=None, trace=str(trace)),
        "trace both ways": replace(
            PATH,
            link=replace(PATH.link, rate=None, trace=str(trace), reverse=Reverse(trace=str(trace))),
        ),
        "jitter in order": link(PATH, jitter=Jitter(low="0s", high="20ms")),
        "gathered ACKs": replace(PATH, link=replace(PATH.link, reverse=gathered)),
    }


@pytest.mark.parametrize(
    "name", ["plain", "trace", "trace both ways", "jitter in order", "gathered ACKs"]
)
def test_flows_that_change_places_change_their_results(name: str, tmp_path: Path) -> None:
    """A tie that the flows' numbers decided gave the first flow up to five times the goodput."""
    path = paths(tmp_path)[name]
    for law in ("reno", "cubic"):
        made = [
            execute(path.flow(law, start=one).flow(law, start=other), out=tmp_path / "runs")
            for one, other in (("13.1ms", "57.7ms"), ("57.7ms", "13.1ms"))
        ]
        first, second = (results.runs[0].goodputs for results in made)
        assert first == second[::-1]
        assert 0.25 < first[0] / sum(first) < 0.75
