"""Runs the same scenarios in the laboratory, set as the peer is set, and reads its samples."""

from __future__ import annotations

import os

from lfnlab import _core
from lfnlab.analysis.sawtooth import Trace

from .scenarios import LAWS, LINUX_LAWS, Run

#: Bytes of framing and of headers that the "linux" compatibility adds to, and counts in, a packet.
LINUX_FRAMING_B = 14
LINUX_HEADERS_B = 52

#: Which variant of a law stands for the peer's. TCP-Linux of ns-2 is Linux 2.6.22.
_LAWS = {
    "linux": {law: f"{law}:linux" for law in (*LAWS, *LINUX_LAWS)},
    "ns2": {
        "reno": "reno:linux",
        "hstcp": "hstcp:linux",
        "scalable": "scalable:ns2",
        "bic": "bic:ns2",
        "cubic": "cubic:ns2",
        "htcp": "htcp:ns2",
        "westwood": "westwood:ns2",
        "sack1": "reno:rfc",
        "hstcp-native": "hstcp:ns2",
    },
    "ns3": {
        "reno": "reno:linux",
        "hstcp": "hstcp:linux",
        "scalable": "scalable:ns2",
        "bic": "bic:linux",
        "bic-smooth20": "bic:linux",
        "cubic": "cubic:linux",
        "htcp": "htcp:paper",
        "htcp-backoff0.67": "htcp:paper",
        "westwood": "westwood:plus",
    },
}


def scenario(peer: str, run: Run) -> str:
    """The scenario in TOML that sets the laboratory as ``peer`` was set for ``run``."""
    path = run.path
    compat = "ns2" if peer == "ns2" else "linux"
    framing_b = LINUX_FRAMING_B if compat == "linux" else 0
    # The limit is of what waits, but counts the packet in service in the ns-2 mode.
    limit = path.buffer_packets - (compat == "linux")
    lines = [
        "schema = 1",
        f'name = "{run.tag}"',
        f'duration = "{path.duration_s:g}s"',
        f'sample = "{run.sample_s * 1e3:g}ms"',
        f'compat = "{compat}"',
        "[link]",
        f'rate = "{path.rate_bps / 1e6:g}Mbit/s"',
        "[link.queue]",
        'kind = "drop-tail"',
        f'size = "{limit} packets"',
    ]
    if peer == "linux":
        # Its ACKs take no time: 8.8 µs for each of ours moved the shares of two flows by a third.
        lines += [
            "[link.reverse]",
            'rate = "1Tbit/s"',
            'queue = { kind = "drop-tail", size = "1000000 packets" }',
        ]
    for flow in range(path.flows):
        lines += [
            "[[flow]]",
            f'law = "{_LAWS[peer][run.law]}"',
            f'rtt = "{path.flow_rtt_s(flow) * 1e3:.9g}ms"',
            f'start = "{flow * path.stagger_s * 1e3:.9g}ms"',
            f'packet = "{path.packet_b - framing_b}B"',
        ]
        if path.ssthresh_segments is not None:
            lines.append(f'initial_ssthresh = "{path.ssthresh_segments} packets"')
        if peer == "ns3":
            lines.append("delayed_ack = false")
    return "\n".join(lines) + "\n"


def simulate(peer: str, runs: list[Run]) -> list[list[list[Trace]]]:
    """Runs ``runs`` on all cores; for each of them, for each replica, a trace for each flow."""
    everything = iter(
        simulate_scenarios([scenario(peer, replica) for run in runs for replica in run.replicas])
    )
    return [[next(everything) for _ in run.replicas] for run in runs]


def simulate_scenarios(scenarios: list[str]) -> list[list[Trace]]:
    """Runs scenarios given in TOML on all cores; a list of traces, one a flow, for each."""
    read = [
        _core.Scenario(text, f"validation-{number}.toml") for number, text in enumerate(scenarios)
    ]
    results = _core.run_many(read, len(os.sched_getaffinity(0)), None)
    # None stands for a cancelled run, and nothing cancels these.
    return [_traces(result) for result in results if result is not None]


def _traces(result: _core.Run) -> list[Trace]:
    flows, queues = result.table("flows"), result.table("queues")
    drops = queues["drops"][queues["link"] == 0]
    traces = []
    for flow in range(int(flows["flow"].max()) + 1):
        of = {name: values[flows["flow"] == flow] for name, values in flows.items()}
        started = drops.size - of["t_s"].size
        traces.append(
            Trace(
                time_s=of["t_s"],
                cwnd_segments=of["cwnd_seg"],
                ssthresh_segments=of["ssthresh_seg"],
                reducing=of["state"] >= 2,
                drops=drops[started:].astype(float),
                delivered_b=of["delivered_bytes"].astype(float),
                rtt_s=of["srtt_s"],
            )
        )
    return traces
