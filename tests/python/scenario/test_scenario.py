"""Is a scenario one value in Python, in TOML and in the simulator?"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lfnlab import (
    Background,
    Burst,
    Capture,
    Change,
    File,
    Flow,
    GilbertElliott,
    Jitter,
    LabError,
    Link,
    NamedLink,
    OnOff,
    Packmime,
    ParkingLot,
    Queue,
    Reorder,
    Requests,
    Reverse,
    Router,
    Scenario,
    ScenarioError,
    ShortFlows,
    Sizes,
    Steps,
    Suite,
    Surge,
    Traffic,
    Udp,
    Vectors,
    Webtraf,
    _core,
    dumbbell,
    graph,
    law,
    laws,
    parking_lot,
)
from lfnlab.cli.options import with_settings
from lfnlab.experiment.run import execute
from lfnlab.figures.plot import changes_s, cwnd_series, traces
from lfnlab.figures.registry import of_report

ROOT = Path(__file__).parents[3]
PRESETS = sorted((ROOT / "scenarios").glob("*.toml"))

DATA = Path(__file__).parents[3] / "crates/scenario/tests/data"


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def whole(low: int, high: int, unit: str) -> st.SearchStrategy[str]:
    return st.integers(low, high).map(lambda n: f"{n}{unit}")


SIZES = whole(2, 10_000, " packets") | whole(1, 50, "MB") | st.sampled_from(["1bdp", "0.5bdp"])
SPECS = st.sampled_from(
    [f"{law.name}:{v}" for law in laws() if law.name != "udt" for v in law.variants]
)
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
DELAYS = whole(1, 300, "ms")
CODEL = st.builds(
    Queue,
    kind=st.sampled_from(["codel", "fq-codel"]),
    size=SIZES,
    target=maybe(DELAYS),
    interval=maybe(DELAYS),
    ecn=maybe(BOOLEANS),
)
PIE = st.builds(
    Queue,
    kind=st.just("pie"),
    size=SIZES,
    update=maybe(DELAYS),
    alpha=maybe(st.floats(0.0, 2.0)),
    burst=maybe(DELAYS),
    byte_mode=maybe(BOOLEANS),
)
QUEUES = maybe(DROP_TAIL | RED | CODEL | PIE)
LOSSES = st.floats(0.0, 0.5)
WAY: dict[str, st.SearchStrategy[Any]] = {
    "delay": maybe(whole(0, 9, "ms")),
    "loss": maybe(
        LOSSES | st.builds(GilbertElliott, p=LOSSES, r=st.floats(0.1, 1), bad=maybe(LOSSES))
    ),
    "duplicate": maybe(LOSSES),
    "reorder": maybe(st.builds(Reorder, p=LOSSES, delay=DELAYS)),
    "jitter": maybe(st.builds(Jitter, high=DELAYS, keep_order=maybe(BOOLEANS))),
    "queue": QUEUES,
    "router": maybe(
        st.builds(Router, kind=st.sampled_from(["none", "xcp", "rcp"]))
        | st.builds(Router, kind=st.just("jetmax"), interval=maybe(DELAYS))
    ),
}
RATES = whole(1, 100, "Gbit/s")
LINK: dict[str, st.SearchStrategy[Any]] = WAY | {
    "rate": RATES,
    "mode": maybe(st.sampled_from(["closed", "event"])),
    "reverse": maybe(st.builds(Reverse, rate=maybe(RATES), **WAY)),
}
FLOW: dict[str, st.SearchStrategy[Any]] = {
    "law": SPECS,
    "rtt": whole(100, 300, "ms"),
    "count": maybe(st.integers(1, 5)),
    "start": maybe(whole(0, 4, "s") | st.just("uniform(0s, 2s)")),
    "stop": maybe(whole(5, 60, "s")),
    "size": maybe(whole(1, 100, "GB")),
    "packet": maybe(whole(576, 9000, "B")),
    "receive_window": maybe(whole(1, 1000, " packets")),
    "initial_window": maybe(whole(1, 100, " packets")),
    "initial_ssthresh": maybe(whole(2, 1000, " packets")),
    "slow_start": maybe(st.sampled_from(["classic", "limited", "hystart", "hystart++"])),
    "delayed_ack": maybe(BOOLEANS),
    "sack": maybe(BOOLEANS),
    "ecn": maybe(BOOLEANS),
    "pacing": maybe(BOOLEANS),
}


def startable(flow: Flow) -> Flow:
    """The flow, without a slow start if its law has a start-up of its own."""
    if law(flow.law).slow_start != "none":
        return flow
    return replace(flow, slow_start=None, initial_ssthresh=None)


BURSTS = st.builds(Burst, rate=RATES, start=st.just("1s"), stop=st.just("2s")).map(lambda b: (b,))
SOURCES: list[dict[str, st.SearchStrategy[Any]]] = [
    {"bursts": BURSTS},
    {"steps": st.builds(Steps, each=whole(1, 9, "s"), rates=st.just(("0bit/s", "1Mbit/s")))},
    {"on_off": st.builds(OnOff, sources=st.integers(1, 9), shape=maybe(st.floats(1.1, 2.0)))},
]


MODELS: list[dict[str, st.SearchStrategy[Any]]] = [
    {"short_flows": st.builds(ShortFlows, load=whole(1, 9, "Mbit/s"), mean=maybe(st.just("50kB")))},
    {
        "requests": st.builds(
            Requests,
            load=whole(1, 9, "Mbit/s"),
            request=maybe(st.just(Sizes(median="400B", sigma=0.5))),
            response=maybe(st.sampled_from(["9kB", Sizes(mean="50kB", shape=1.5)])),
            exchanges=maybe(st.floats(1, 9)),
            server_delay=maybe(st.just("2ms")),
            think=maybe(st.just("3s")),
            persistent=maybe(BOOLEANS),
        )
    },
    {"packmime": st.builds(Packmime, connections=st.floats(1, 99), requests=maybe(BOOLEANS))},
    {"webtraf": st.builds(Webtraf, sessions=st.integers(1, 99))},
    {"surge": st.builds(Surge, users=st.integers(1, 99))},
    {
        "vectors": st.builds(
            Vectors,
            file=st.just(str(DATA / "connections.txt")),
            scale=maybe(st.floats(0.5, 2)),
            shuffle=maybe(st.just("1s")),
        )
    },
    {
        "suite": st.builds(
            Suite,
            load=whole(1, 9, "Mbit/s"),
            reverse_load=whole(1, 9, "Mbit/s"),
            rtts=st.just(("90ms", "150ms")),
        )
    },
]


def scenarios(
    *,
    to: dict[str, st.SearchStrategy[Any]],
    moves: dict[str, st.SearchStrategy[Any]],
    on: str,
    **links: st.SearchStrategy[Any],
) -> st.SearchStrategy[Scenario]:
    """Scenarios of one topology: its traffic goes ``to`` somewhere, its link ``on`` changes."""
    where = {key: value for key, value in to.items() if key != "direction"}
    models: list[st.SearchStrategy[Traffic]] = [
        st.builds(Traffic, law=maybe(SPECS), rtt=maybe(whole(100, 300, "ms")), **model, **to)
        for model in MODELS
    ]
    sources: list[st.SearchStrategy[Udp]] = [st.builds(Udp, **source, **to) for source in SOURCES]
    flows = st.builds(Flow, **FLOW, **to).map(startable)
    # VCP needs the bits of ECN.
    flows = flows.filter(lambda flow: not (flow.ecn and "vcp" in flow.law))
    changes = [
        st.builds(Change, at=st.just("1s"), link=st.just(on), rate=maybe(RATES), delay=DELAYS),
        st.builds(Change, at=st.just("2s"), **moves),
        st.builds(Change, link=st.just(on), file=st.just(str(DATA / "delays.csv"))),
        st.builds(Change, at=st.just("3s"), link=st.just(on), down=BOOLEANS),
    ]
    return st.builds(
        Scenario,
        duration=whole(10, 600, "s"),
        flows=st.lists(flows, min_size=1, max_size=4).map(tuple),
        udp=st.lists(st.one_of(sources), max_size=2).map(tuple),
        background=st.just(Background())
        | (
            st.builds(
                Background,
                level=maybe(st.integers(0, 3)),
                long_flows=maybe(st.integers(0, 50)),
                **where,
            )
        ),
        traffic=st.lists(st.one_of(models), max_size=2).map(tuple),
        schedule=st.tuples(*changes) | st.just(()),
        capture=maybe(st.builds(Capture, links=st.just((on,)), to=maybe(st.just("5s")))),
        name=maybe(st.text(st.characters(exclude_categories=["Cs"]), max_size=30)),
        seed=st.integers(0, 2**63 - 1),
        warmup=maybe(whole(0, 9, "s")),
        sample=maybe(whole(1, 1000, "ms") | st.just("off")),
        compat=maybe(st.sampled_from(["linux", "ns2"])),
        **links,
    )


def named(name: str, from_: str, to: str, **more: Any) -> st.SearchStrategy[NamedLink]:
    ends = {"name": st.just(name), "from_": st.just(from_), "to": st.just(to)}
    return st.builds(NamedLink, **ends, **(LINK | more))


TRACE = st.just(str(DATA / "four-a-second.mahi")) | st.just(
    File(path=str(DATA / "four-a-second.mahi"), hash="06f8b2e588c8b094")
)
SCENARIOS = st.one_of(
    scenarios(
        to={"direction": maybe(st.sampled_from(["forward", "reverse"]))},
        moves={"link": st.just("forward"), "loss": LOSSES},
        on="reverse",
        link=st.builds(Link, **LINK),
    ),
    scenarios(
        to={},
        moves={"flow": st.just(0), "ack_route": st.just(("hop2.reverse", "hop1.reverse"))},
        on="hop2",
        parking_lot=st.builds(ParkingLot, hops=st.just(2), **LINK),
    ),
    scenarios(
        to={"from_": st.just("a"), "to": st.just("c"), "via": st.just(()) | st.just(("b",))},
        moves={"flow": st.just(0), "route": st.just(("ab", "bc"))},
        on="ab",
        links=st.tuples(
            named("ab", "a", "b"),
            named("bc", "b", "c"),
            named(
                "ac",
                "a",
                "c",
                rate=st.none(),
                trace=TRACE,
                reverse=st.none(),
                queue=st.just(Queue(size="9 packets")),
            ),
        ),
    ),
)


@given(SCENARIOS)
def test_toml_and_value_are_two_spellings_of_one_thing(scenario: Scenario) -> None:
    again = Scenario.from_toml(scenario.to_toml())
    assert again == scenario
    assert again.check() == scenario.check()
    resolved = json.loads(_core.Scenario(scenario.to_toml()).resolved)
    assert scenario.check().to_document() == resolved


def test_a_scenario_does_not_change() -> None:
    empty = dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp")
    one = empty.flow("cubic")
    assert empty.flows == ()
    assert one.flow("reno", rtt="80ms", count=3).flows[1] == Flow(law="reno", rtt="80ms", count=3)
    assert one.flows == (Flow(law="cubic", rtt="40ms"),)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.seed = 2  # type: ignore[misc]


def test_what_is_not_said_is_the_simulators_default() -> None:
    resolved = (
        dumbbell(rate="1Gbit/s", rtt="40ms", buffer="1bdp").flow("cubic").check().to_document()
    )
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


def test_a_parking_lot_and_a_graph_know_the_rtt() -> None:
    lot = parking_lot(hops=3, rate="1Gbit/s", delay="10ms", buffer="1bdp")
    flows = lot.flow("cubic").flow("reno", from_=2, to=1).check().to_document()["flow"]
    assert [flow["rtt"] for flow in flows] == ["60ms", "20ms"]
    assert [(flow["from"], flow["direction"]) for flow in flows] == [
        ("1", "forward"),
        ("2", "reverse"),
    ]
    ab = NamedLink(name="ab", from_="a", to="b", rate="1Gbit/s", delay="10ms")
    slower = NamedLink(name="ba", from_="b", to="a", rate="1Gbit/s", delay="30ms", duplex=False)
    pair = graph(ab, slower).flow("cubic", from_="a", to="b")
    assert pair.check().flows[0].rtt == "20ms"
    around = graph(ab, slower).flow("cubic", from_="a", to="b", ack_route=("ba",))
    assert around.check().flows[0].rtt == "40ms"


def test_changes_are_marked_whether_they_stand_in_the_scenario_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("time,rate\n1s,5Mbit/s\n2s,10Mbit/s\n99s,1Mbit/s\n")
    scenario = (
        dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="3s")
        .flow("reno")
        .with_changes(Change(at="2s", link="reverse", delay="1ms"))
        .with_changes(Change(link="forward", file=str(file)))
    )
    run = execute(scenario, out=tmp_path / "out").runs[0]
    file.unlink()
    assert changes_s(run) == [1.0, 2.0]
    (axes,) = traces([run], cwnd_series, "window")[0].axes
    marks = [line.get_xdata()[0] for line in axes.get_lines() if line.get_linestyle() == ":"]
    assert marks == [1.0, 2.0]


def test_a_run_of_any_topology_has_rows_and_figures(tmp_path: Path) -> None:
    lot = parking_lot(hops=2, rate="10Mbit/s", delay="5ms", buffer="1bdp", duration="3s")
    slow = NamedLink(name="slow", from_="a", to="b", rate="10Mbit/s", delay="5ms")
    fast = NamedLink(name="fast", from_="b", to="c", rate="50Mbit/s", delay="5ms")
    chain = graph(fast, slow, duration="3s")
    both = lot.flow("reno").flow("cubic", from_=2, to=1, receive_window="3kB")
    for scenario, laws_, busiest in [
        (both, ["reno", "cubic"], "hop1"),
        (chain.flow("reno", from_="a", to="c"), ["reno"], "slow"),
    ]:
        results = execute(scenario, out=tmp_path / busiest)
        assert [row["law"] for row in results.rows()] == laws_
        assert {"goodput", "queue", "cwnd"} <= set(of_report(results, results.runs))
        summary = results.runs[0].summary
        assert summary["links"][results.runs[0].link(summary["flows"])]["id"] == busiest


def test_files_are_found_from_the_scenario_and_its_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (home / "x.mahi").write_text("1\n2\n")
    text = dumbbell(rate="1Gbit/s", rtt="1s", buffer="2 packets").flow("reno").to_toml()
    (home / "s.toml").write_text(text.replace('rate = "1Gbit/s"', 'trace = "x.mahi"'))
    scenario = Scenario.load(home / "s.toml")
    (elsewhere / "copy.toml").write_text(scenario.to_toml())
    monkeypatch.chdir(elsewhere)
    copy = Scenario.load("copy.toml")
    assert copy == scenario
    before = copy.check().to_document()
    (home / "x.mahi").write_text("1\n3\n")
    assert copy.check().to_document()["link"]["trace"]["hash"] != before["link"]["trace"]["hash"]


def test_every_preset_says_its_source() -> None:
    table = (ROOT / "docs/scenario.md").read_text().split("## Presets")[1]
    for file in PRESETS:
        assert file.read_text().startswith("# "), file
        assert f"[{file.name}]" in table, file


@pytest.mark.parametrize("file", PRESETS, ids=lambda file: file.stem)
def test_every_preset_runs(file: Path, tmp_path: Path) -> None:
    # All times that are given in seconds are divided by 50; round trips are in milliseconds.
    text = re.sub(
        r"\b(\d+(?:\.\d+)?)s\b", lambda time: f"{float(time[1]) / 50:g}s", file.read_text()
    )
    summary = execute(Scenario.from_toml(text, str(file)), out=tmp_path).runs[0].summary
    assert all(flow["delivered_bytes"] > 0 for flow in summary["flows"])
    assert all(source["delivered"] > 0 for source in summary.get("udp", []))
    if summary["background"]:
        assert min(summary["background"]["goodput_bps"]) > 0


def test_a_capped_tcp_sends_its_window_each_round_trip(tmp_path: Path) -> None:
    # The background of EVCP's study: 20 packets of 1460 bytes of payload in 100 ms and a little.
    path = dumbbell(
        rate="1Gbit/s", rtt="100ms", buffer="1bdp", duration="20s", warmup="5s", compat="ns2"
    )
    run = execute(path.flow("reno", receive_window="20 packets"), out=tmp_path).runs[0]
    (flow,) = run.summary["flows"]
    assert flow["goodput_bps"] == pytest.approx(20 * 1460 * 8 / 0.1, rel=0.01)
    assert flow["retransmits"] == 0


def test_what_is_added_comes_after_what_is_there() -> None:
    first, second = (
        Change(at="1s", link="forward", down=True),
        Change(at="2s", link="forward", rate="1Mbit/s"),
    )
    burst = Udp(bursts=(Burst(rate="5Gbit/s", start="3s", stop="5s"),))
    base = dumbbell(rate="10Gbit/s", rtt="100ms", buffer="1bdp").flow("reno")
    scenario = base.with_changes(first).with_changes(second).with_udp(burst, burst).with_capture()
    assert scenario.schedule == (first, second)
    resolved = scenario.check().to_document()
    assert [source["name"] for source in resolved["udp"]] == ["udp0", "udp1"]
    assert resolved["capture"]["links"] == ["forward", "reverse"]


def test_a_flow_needs_an_rtt() -> None:
    scenario = Scenario(duration="1s", link=Link(rate="1Gbit/s"))
    with pytest.raises(TypeError, match="rtt"):
        scenario.flow("reno")


def test_a_scenario_without_background_has_an_empty_one() -> None:
    scenario = Scenario(duration="1s")
    assert scenario.traffic == ()
    assert scenario.background == Background()
    assert "background" not in scenario.to_toml()
    assert replace(scenario, background=Background(level=2)) == scenario.with_background(2)


BASE = """
schema = 1
duration = "10s"
link = { rate = "10Mbit/s", delay = "1ms" }
background = { level = 1 }
capture = { links = ["forward"] }
flow = [{ law = "reno", rtt = "20ms" }]
udp = [{ bursts = [{ rate = "1Mbit/s" }] }]
traffic = [{ short_flows = { load = "1Mbit/s" } }]
schedule = [{ at = "1s", link = "reverse", delay = "2ms" }]
"""
BAD: list[Any] = [
    *(True, -1, 10**19, 1e308, "", " ", "fast", "-1s", "1e3s", "9" * 300, "0.5furlong", "é中"),
    *([], [[]], {}, {"kind": "nothing"}, {"é": 1}, [{"rate": 1}]),
]


def declared_keys() -> list[tuple[str, dict[str, Any]]]:
    """Each key of the schema with a table of BASE in which it can stand."""
    schema = json.loads((ROOT / "docs/reference/scenario.schema.json").read_text(encoding="utf-8"))
    tables = [("", schema)]
    found = []
    while tables:
        path, part = tables.pop()
        for kind in [part, *part.get("oneOf", []), *part.get("anyOf", [])]:
            for key, value in kind.get("properties", {}).items():
                name = f"{path}.{key}".lstrip(".")
                found.append((name, value))
                inner = value.get("items", value)
                if "$ref" in inner and name not in ("parking-lot", "links"):
                    index = "[0]" if "items" in value else ""
                    tables.append((name + index, schema["$defs"][inner["$ref"].split("/")[-1]]))
    return found


def test_set_on_every_declared_key() -> None:
    """A value is taken, or refused by an error that names a key: never another exception."""
    scenario = Scenario.from_toml(BASE)
    keys = declared_keys()
    assert len(keys) > 150
    taken, refused = set(), []
    for key, value in keys:
        good = [value[word] for word in ("default", "const") if word in value]
        for said in [*good, *value.get("enum", []), *value.get("examples", []), *BAD]:
            try:
                changed = with_settings(scenario, {key: said})
            except LabError as error:
                refused.append(str(error))
            else:
                assert Scenario.from_toml(changed.to_toml()).check() == changed.check()
                taken.add(key)
    assert len(taken) > 60, sorted(taken)
    # What a value makes impossible elsewhere is told there.
    odd = [text for text in refused if not re.match(r"(--[a-z]+|scenario:\d+: \S).*; \S", text)]
    assert not odd, odd[:5]
    assert not [text for text in refused if "\n" in text]
    assert len(refused) > 2000
