# SPDX-License-Identifier: MIT OR Apache-2.0
"""A scenario in the words of Linux in virtual time, and parts of scenarios that it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from virtual import FLOW, GRAPH, LINK, PATH, ROUTED, UDP, resolved, told

from lfnlab import Scenario, _core, execute
from lfnlab.errors import ScenarioError
from lfnlab.testbed import (
    linux_backend,
    linux_laws,
    random_streams,
    virtual_hosts,
    virtual_network,
    virtual_queues,
)

# ---- what it is told ----


@pytest.mark.parametrize(
    ("law", "ours", "own"),
    [
        ("htcp-be", "lfn_htcp_be", None),
        ("westwood-s", "lfn_westwood_s", None),
        ("cubic", "lfn_cubic", "cubic"),
        ("cubic:rfc", "lfn_cubic", "cubic"),
        ("cubic:linux", "cubic", "cubic"),
        ("hstcp:linux", "highspeed", "highspeed"),
        ("htcp:ns2", None, "htcp"),
        ("htcp-be:hold", None, None),
        ("copa", None, None),
        ("vcp", None, None),
    ],
)
def test_a_law_is_ours_unless_its_variant_is_linux(
    law: str, ours: str | None, own: str | None
) -> None:
    assert linux_laws.kernel_law(law, ours=True) == ours
    assert linux_laws.kernel_law(law, ours=False) == own


def test_jitter_keeps_the_order_unless_it_says_not() -> None:
    jitter = 'jitter = { low = "0s", high = "1ms" }\n'
    for text, words in ((jitter, True), (jitter.replace(" }", ", keep_order = false }"), False)):
        told_it = told(PATH.replace("[link]\n", f"[link]\n{text}") + FLOW)
        links = [line for line in told_it if "jitter_ns=1000000" in line]
        assert len(links) == 2
        assert [("jitter_in_order=1" in line.split()) for line in links] == [words] * 2


def test_a_stored_run_is_told_its_seed_and_looks_often() -> None:
    assert told(PATH + FLOW)[0] == "run duration_us=3000000 sample_us=5000 seed=1"
    slow = PATH.replace('"3s"', '"3s"\nsample = "12ms"\nseed = 9')
    assert told(slow + FLOW)[0] == "run duration_us=3000000 sample_us=4000 seed=9"


def test_flows_have_direction_streams_pacing_and_an_end() -> None:
    more = 'direction = "reverse"\nparallel = 3\nsize = "10MB"\npacing = true\nstop = "2s"\n'
    flows = [line for line in told(PATH + FLOW + more) if line.startswith("flow")]
    shares = [line.partition("size_bytes=")[2].split()[0] for line in flows]
    assert shares == ["3333334", "3333333", "3333333"]
    for line in flows:
        assert {"law=lfn_htcp_be", "reverse=1", "pacing=1", "stop_us=2000000"} < set(line.split())


def test_a_slow_application_writes_at_its_rate_and_pauses() -> None:
    steady = 'application = { rate = "5Mbit/s" }\n'
    pauses = 'application = { rate = "5Mbit/s", on = "1s", off = "1.5ms" }\n'
    for text, words in (
        (steady, ["write_bps=5000000"]),
        (pauses, ["write_bps=5000000", "on_us=1000000", "off_us=1500"]),
    ):
        [flow] = [line for line in told(PATH + FLOW + text) if line.startswith("flow")]
        assert flow.split()[-len(words) :] == words


def test_a_receive_window_is_whole_segments_up_to_that_of_tcp() -> None:
    for said, bytes_said in (("1MB", 690 * 1448), ("20 packets", 28960)):
        [flow] = [
            line for line in told(PATH + FLOW + f'receive_window = "{said}"\n') if "law" in line
        ]
        assert flow.endswith(f" receive_window={bytes_said}")
    # Without a limit: the buffer's; beyond it the largest of TCP, and the growth that 128 MiB have
    # with 162/256 of payload.
    unlimited = FLOW + 'receive_window = "2GB"\n'
    [flow] = [line for line in told(PATH + unlimited) if "law" in line]
    assert "receive_window" not in flow
    [flow] = [line for line in told(long(PATH + unlimited)) if "law" in line]
    assert flow.endswith(f" receive_window={(65535 << 14) + (162 - 128) * 2**19}")


def long(text: str) -> str:
    return text.replace("20M", "10G").replace("40ms", "120ms")


def test_hosts_have_buffers_and_memory_for_what_may_be_in_flight() -> None:
    assert "sysctl net.ipv4.tcp_rmem=4096 134217728 134217728" in told(PATH + FLOW)
    assert "sysctl net.ipv4.tcp_rmem=4096 2147483647 2147483647" in told(long(PATH + FLOW))
    assert "memory_mib" not in told(PATH + FLOW)[0]
    # Four times 8 MB of path and 8 MB of queue are less than 64 MiB, 6 % more of both are not.
    for rate, most in (("1.6G", 134217728), ("1.7G", 2147483647)):
        assert f"sysctl net.ipv4.tcp_rmem=4096 {most} {most}" in told(
            PATH.replace("20M", rate) + FLOW
        )
    [wmem] = [line for line in told(long(PATH + FLOW)) if "tcp_wmem" in line]
    # Four times 2 BDP of 150 MB, and 57 % for each segment's own memory.
    assert int(wmem.split()[2]) == pytest.approx(4 * 2 * 150e6 * 1.575, rel=0.01)
    assert virtual_hosts.memory_mib(resolved(long(PATH + FLOW))) == pytest.approx(
        400 + 1.1 * 1802, rel=0.01
    )
    filled = long(PATH + FLOW) + 'send_buffer = "900MB"\n'
    assert virtual_hosts.memory_mib(resolved(filled)) == pytest.approx(400 + 1.1 * 1352, rel=0.01)
    short = long(PATH + FLOW) + 'receive_window = "1MB"\n'
    assert virtual_hosts.memory_mib(resolved(short)) == virtual_hosts.USUAL_MIB


def test_a_route_is_told_by_numbers_of_links_now_and_later() -> None:
    links = LINK + "duplex = false\n" + LINK.replace('"x"', '"y"').replace("20M", "30M")
    back = LINK.replace('"x"', '"z"').replace('"a"', '"c"') + 'delay = "3ms"\n'
    change = '[[schedule]]\nat = "1s"\nflow = 0\nroute = ["y"]\n'
    lines = told('schema = 1\nduration = "3s"\n' + links + back + ROUTED + change)
    assert [line.split()[1] for line in lines if line.startswith("link ")] == list("02345")
    [z] = [line for line in lines if line.startswith("link 4 ")]
    assert {"from=2", "to=1", "delay_ns=3000000"} < set(z.split())
    # The link x has no way back: ACKs take the one that has.
    [flow] = [line for line in lines if line.startswith("flow ")]
    assert {"route=0", "ack_route=3", "delay_ns=20000000"} < set(flow.split())
    assert "at 1000000 flow 0 route=2 ack_route=3" in lines


def test_routes_are_those_of_the_simulator(tmp_path: Path) -> None:
    """The fewest hops, then the least delay, then the links named first; also through nodes."""

    def link(name: str, ends: str, delay: str) -> str:
        near, far = ends
        end = f'name = "{name}"\nfrom = "{near}"\nto = "{far}"\nrate = "20Mbit/s"\n'
        return f'[[links]]\n{end}delay = "{delay}"\n'

    links = [link("p", "ab", "4ms"), link("q", "ab", "2ms"), link("r", "ba", "2ms")]
    links += [link("s", "bc", "1ms"), link("t", "ac", "9ms"), link("u", "cd", "1ms")]
    flows = ['from = "a"\nto = "b"', 'from = "a"\nto = "d"', 'from = "d"\nto = "a"\nvia = ["b"]']
    text = 'schema = 1\nduration = "1s"\n' + "".join(links)
    text += "".join(f'[[flow]]\nlaw = "reno"\nrtt = "40ms"\n{flow}\n' for flow in flows)
    simulated = execute(Scenario.from_toml(text), out=tmp_path).runs[0].summary["flows"]
    network = virtual_network.Network(resolved(text))
    for flow, said in zip(resolved(text)["flow"], simulated, strict=True):
        assert network.routes(flow)[0] == said["routes"][0]["links"]


def test_a_source_of_udp_is_told_its_bursts() -> None:
    pulses = '[[udp]]\npacket = "400B"\ndirection = "reverse"\n'
    pulses += 'steps = { start = "1s", each = "10ms", rates = ["0bit/s", "2Mbit/s"] }\n'
    sources = [line for line in told(PATH + FLOW + UDP + pulses) if line.startswith("udp ")]
    assert sources == [
        "udp packet_bytes=1500 route=0 bursts=1000000:0:3000000000000",
        "udp packet_bytes=400 route=1 "
        "bursts=0:1000000000000:1010000000000,2000000:1010000000000:1020000000000",
    ]


def test_red_has_thresholds_that_its_averages_hold() -> None:
    queue = (
        'queue = { kind = "red", size = "9000 packets", min_th = "100 packets", weight = '
        '0.001953125, gentle = false, wait = false, rules = "linux", max_th = "LARGE packets" }\n'
    )
    flow = FLOW + 'packet = "9000B"\n'
    told(PATH + queue.replace("LARGE", "465") + flow)
    most = r"link.queue.max_th: .* at a weight of 2\^-9 its RED takes 465 packets of 9014 B at most"
    with pytest.raises(ScenarioError, match=most):
        told(PATH + queue.replace("LARGE", "466") + flow)


def test_a_shallow_threshold_is_told_with_its_selector() -> None:
    shallow = 'ce_threshold = "1ms"'
    selected = f"{shallow}, ce_threshold_selector = 1, ce_threshold_mask = 3"
    for kind, keys, words in (
        ("codel", shallow, "interval 100000us ce_threshold 1000us"),
        ("fq-codel", shallow, "ce_threshold 1000us ecn"),
        ("fq-codel", selected, "ce_threshold 1000us ce_threshold_selector 0x1/0x3 ecn"),
    ):
        queue = f'queue = {{ kind = "{kind}", {keys} }}\n'
        [said] = [line for line in told(PATH + queue + FLOW) if line.startswith("queue forward")]
        assert said.endswith(words)


def test_dualpi2_is_told_in_integers_and_counts_in_a_file_of_its_own() -> None:
    queue = 'queue = { kind = "dualpi2", size = "90kB", any_ect = true, ramp = "2ms" }\n'
    [said] = [line for line in told(PATH + queue + FLOW) if line.startswith("queue forward")]
    assert said == (
        "queue forward dualpi2 packets=4611686018427387904 bytes=90000 target_ns=15000000 "
        "tupdate_ns=16000000 step_ns=1000000 ramp_ns=2000000 alpha=171798692 beta=3435973837 "
        "coupling=2 floor=2 overflow=0 protection=10 any_ect=1 mtu=1514 from_us=0"
    )
    lines = ["r1 p 268435456", "r1 l4s 4 400 2 1", "r1 l4s waited 1 2", "r1 l4s waited 130 2"]
    both = virtual_queues.counted("\n".join([*lines, "r1 classic 0 0 0 0", "s1 p 0"]))
    assert both[0]["probability"] == 0.25
    assert both[3] == {"probability": 0.0}
    l4s = both[0]["l4s"]
    assert [l4s[key] for key in ("packets", "bytes", "marks", "drops")] == [4, 400, 2, 1]
    assert (l4s["p50_queue_s"], l4s["p99_queue_s"]) == (1e-6, 130e-6)
    assert l4s["mean_queue_s"] == pytest.approx((0.5 + 129) / 2 * 1e-6, rel=1e-3)
    assert both[0]["classic"]["p99_queue_s"] is None


def test_losses_that_change_go_on_with_the_draws_of_the_link() -> None:
    change = '[[schedule]]\nat = "{}s"\nlink = "forward"\nloss = {}\n'
    changes = "".join(change.format(*at) for at in ((1, 0.5), (1.5, 0.5), (2, 0)))
    lines = told(PATH + FLOW + changes)
    first, again, last = (lines.index(f"at {at} forward") for at in (1000000, 1500000, 2000000))
    kind, *gaps = lines[first + 1].split()
    assert kind == "losing"
    draws = random_streams.first_gaps(0.5, 1, "link.forward.loss", len(gaps))
    assert [int(gap) for gap in gaps] == draws
    # No more than a link of 20 Mbit/s sends in two seconds, and no less than half of it.
    assert 0.5 < len(gaps) / (20e6 / 8 / 1500 * 0.5) < 1.2
    assert again == first + 3
    assert lines[last + 1] == "losing"


def test_random_starts_are_those_of_the_simulator(tmp_path: Path) -> None:
    flow = FLOW + 'count = 3\nstart = "uniform(0s, 2s)"\nparallel = 2\n'
    text = PATH.replace('"3s"', '"3s"\nseed = 7') + FLOW + flow
    simulated = execute(Scenario.from_toml(text), out=tmp_path).runs[0].summary["flows"]
    connections = virtual_hosts.connections(resolved(text))
    assert [one.number for one in connections] == [0, 1, 1, 2, 2, 3, 3]
    starts_s = [one.start_s for one in connections if one.number][::2]
    assert starts_s == pytest.approx([flow["start_s"] for flow in simulated[1:]], abs=1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PATH + FLOW + FLOW.replace("htcp-be", "copa"), "9: flow[1].law: "),
        (PATH + 'queue = { kind = "red" }\n' + FLOW, "5: link.queue.gentle: "),
        (
            PATH + "reverse = { loss = 0.1 }\n" + FLOW + 'direction = "reverse"\n',
            "5: link.reverse.loss: ",
        ),
        (PATH + "loss = 0.1\n" + FLOW + 'direction = "reverse"\n', "5: link.loss: "),
        (
            PATH + 'reverse = { acks = { aggregate = "5ms" } }\n' + FLOW,
            "5: link.reverse.acks.aggregate: ",
        ),
        (PATH + "acks = { loss = 0.1 }\n" + FLOW + 'direction = "reverse"\n', "5: link.acks: "),
        (
            PATH + 'policer = { rate = "1Mbit/s", burst = "9kB" }\n' + FLOW,
            "5: link.policer: ",
        ),
        (PATH + 'shaper = { rate = "1Mbit/s", burst = "9kB" }\n' + FLOW, "5: link.shaper: "),
        (PATH + "bleach = true\n" + FLOW, "5: link.bleach: "),
        (PATH + FLOW + "breakers = [{ loss = 0.1 }]\n", "8: flow[0].breakers: "),
        (PATH + FLOW + 'burst = "64kB"\n', "8: flow[0].burst: "),
        (PATH + FLOW + 'accecn = "counter"\necn = true\n', "8: flow[0].accecn: "),
        (PATH + FLOW + 'receiver_ecn = "off"\necn = true\n', "8: flow[0].receiver_ecn: "),
        (
            PATH + FLOW.replace("htcp-be", "dctcp:linux") + "ecn = true\nl4s = true\n",
            "9: flow[0].l4s: ",
        ),
        (PATH + 'queue = { kind = "dualpi2", beta = 1e6 }\n' + FLOW, "5: link.queue.beta: "),
        (
            PATH
            + 'queue = { kind = "codel", ce_threshold = "1ms", ce_threshold_selector = 1, '
            + "ce_threshold_mask = 3 }\n"
            + FLOW,
            "5: link.queue.ce_threshold_mask: ",
        ),
        (PATH + FLOW + 'misbehaves = "optimistic"\n', "8: flow[0].misbehaves: "),
        (PATH + FLOW + "[background]\nlevel = 1\n", "8: background: "),
        (PATH + FLOW + "[[udp]]\non_off = { sources = 2 }\n", "9: udp[0].on_off: "),
        (PATH + FLOW + UDP + "breakers = [{ loss = 0.1 }]\n", "10: udp[0].breakers: "),
        (PATH + FLOW + UDP * 21, "8: udp: "),
        (GRAPH + "acks = { loss = 0.1 }\n" + ROUTED, "8: links[0].acks: "),
        (
            GRAPH + "loss = 0.1\n" + ROUTED + ROUTED.replace('"x"', '"x.reverse"'),
            "8: links[0].loss: ",
        ),
        (
            GRAPH + "".join(LINK.replace('"x"', f'"x{n}"') for n in range(16)) + ROUTED,
            "3: links: ",
        ),
        (
            PATH + "reverse = { loss = 0.1 }\n" + FLOW + UDP + 'direction = "reverse"\n',
            "5: link.reverse.loss: ",
        ),
        (PATH.replace("20M", "10G") + FLOW.replace("40ms", "10s") + "count = 9\n", "5: flow[0]: "),
        (PATH + FLOW + "count = 201\n", "5: flow[0]: "),
        (PATH + FLOW + 'packet = "64B"\n', "8: flow[0].packet: "),
        (
            PATH + FLOW + '[[schedule]]\nat = "1s"\nlink = "forward"\nrate = "1Mbit/s"\n' * 1001,
            "8: schedule: ",
        ),
        (
            PATH + FLOW + '[[schedule]]\nat = "1s"\nlink = "reverse"\nloss = 0.1\n',
            "11: schedule[0].loss: ",
        ),
        (PATH.replace('"3s"', '"3s"\nsample = "off"') + FLOW, "3: sample: "),
        (PATH.replace('"3s"', '"3s"\ncompat = "ns2"') + FLOW, "3: compat: "),
        (
            'schema = 1\nduration = "3s"\n[parking-lot]\nhops = 2\nrate = "20Mbit/s"\n' + FLOW,
            "3: parking-lot: ",
        ),
    ],
)
def test_what_linux_lacks_is_said_in_a_line_with_its_key(text: str, said: str) -> None:
    place = linux_backend.Linux.__new__(linux_backend.Linux)
    with pytest.raises(ScenarioError) as caught:
        place.check(_core.Scenario(text, "a.toml"))
    assert str(caught.value).startswith(f"a.toml:{said}Linux in virtual time cannot run it: ")
    assert "\n" not in str(caught.value)
