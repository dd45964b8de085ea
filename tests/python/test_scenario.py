"""Is a scenario one value in Python, in TOML and in the simulator?"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfnlab import (
    Background,
    Flow,
    Link,
    Queue,
    Reverse,
    Scenario,
    ScenarioError,
    dumbbell,
    laws,
)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def whole(low: int, high: int, unit: str) -> st.SearchStrategy[str]:
    return st.integers(low, high).map(lambda n: f"{n}{unit}")


SIZES = whole(2, 10_000, " packets") | whole(1, 50, "MB") | st.sampled_from(["1bdp", "0.5bdp"])
SPECS = st.sampled_from([f"{law.name}:{v}" for law in laws() for v in law.variants])
BOOLEANS = st.booleans()
DROP_TAIL = st.builds(Queue, kind=maybe(st.just("drop-tail")), size=SIZES)
RED = st.builds(
    Queue,
    kind=st.just("red"),
    size=SIZES,
    preset=maybe(st.sampled_from(["classic", "gentle", "adaptive"])),
    weight=maybe(st.floats(1e-6, 1.0) | st.just("auto")),
    max_p=maybe(st.floats(1e-6, 1.0)),
    wait=maybe(BOOLEANS),
    ecn=maybe(BOOLEANS),
)
QUEUES = maybe(DROP_TAIL | RED)
LOSSES = maybe(st.floats(0.0, 0.5))
RATES = whole(1, 100, "Gbit/s")
FLOWS = st.builds(
    Flow,
    law=SPECS,
    rtt=whole(1, 300, "ms"),
    count=maybe(st.integers(1, 5)),
    start=maybe(whole(0, 4, "s") | st.just("uniform(0s, 2s)")),
    stop=maybe(whole(5, 60, "s")),
    size=maybe(whole(1, 100, "GB")),
    direction=maybe(st.sampled_from(["forward", "reverse"])),
    packet=maybe(whole(576, 9000, "B")),
    receive_window=maybe(whole(1, 1000, " packets")),
    initial_window=maybe(whole(1, 100, " packets")),
    initial_ssthresh=maybe(whole(2, 1000, " packets")),
    slow_start=maybe(st.sampled_from(["classic", "limited", "hystart", "hystart++"])),
    delayed_ack=maybe(BOOLEANS),
    sack=maybe(BOOLEANS),
    ecn=maybe(BOOLEANS),
    pacing=maybe(BOOLEANS),
)
SCENARIOS = st.builds(
    Scenario,
    duration=whole(10, 600, "s"),
    link=st.builds(
        Link,
        rate=RATES,
        mode=maybe(st.sampled_from(["closed", "event"])),
        loss=LOSSES,
        queue=QUEUES,
        reverse=maybe(st.builds(Reverse, rate=maybe(RATES), loss=LOSSES, queue=QUEUES)),
    ),
    flows=st.lists(FLOWS, min_size=1, max_size=4).map(tuple),
    traffic=maybe(
        st.builds(Background, level=maybe(st.integers(0, 3)), long_flows=maybe(st.integers(0, 50)))
    ),
    name=maybe(st.text(st.characters(exclude_categories=["Cs"]), max_size=30)),
    seed=st.integers(0, 2**63 - 1),
    warmup=maybe(whole(0, 9, "s")),
    sample=maybe(whole(1, 1000, "ms") | st.just("off")),
    compat=maybe(st.sampled_from(["linux", "ns2"])),
)


@given(SCENARIOS)
@settings(deadline=None)
def test_toml_and_value_are_two_spellings_of_one_thing(scenario: Scenario) -> None:
    again = Scenario.from_toml(scenario.to_toml())
    assert again == scenario
    assert again.check() == scenario.check()


def test_a_scenario_does_not_change() -> None:
    empty = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp")
    one = empty.flow("cubic")
    assert empty.flows == ()
    assert one.flow("reno", rtt="80ms", count=3).flows[1] == Flow(law="reno", rtt="80ms", count=3)
    assert one.flows == (Flow(law="cubic", rtt="40ms"),)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.seed = 2  # type: ignore[misc]


def test_what_is_not_said_is_the_simulators_default() -> None:
    resolved = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp").flow("cubic").check()
    assert resolved["compat"] == "linux"
    assert resolved["flow"][0]["initial_window"] == "10 packets"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"rate": "10"}, "link.rate"),
        ({"rate": "10Gbyte/s"}, "link.rate"),
        ({"rtt": "-1ms"}, "flow[0].rtt"),
        ({"buffer": "100B"}, "link.queue.size"),
        ({"duration": "0s"}, "duration"),
    ],
)
def test_an_error_names_line_and_key(change: dict[str, str], key: str) -> None:
    said = {"rate": "1Gbit/s", "rtt": "40ms", "buffer": "1bdp"} | change
    with pytest.raises(ScenarioError, match=r"^here:\d+: ") as error:
        dumbbell(**said).flow("cubic").check("here")  # type: ignore[arg-type]
    assert f": {key}: " in str(error.value)


def test_a_flow_needs_an_rtt() -> None:
    scenario = Scenario(duration="1s", link=Link(rate="1Gbit/s"))
    with pytest.raises(TypeError, match="rtt"):
        scenario.flow("reno")
