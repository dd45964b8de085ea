"""Linux's own TCP in virtual time as a place where runs run: ``lfn run --on linux``.

:mod:`lfnlab.testbed.virtual_time` tells it a scenario and reads what it counted; here that becomes
the files of a stored run, as the test bed's (:mod:`lfnlab.testbed.run`). A run is named by its
scenario, our code, and the build: Linux's source and version, and all files of ours that are in it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab import _core
from lfnlab.errors import ScenarioError, Unavailable
from lfnlab.machine import needs_linux
from lfnlab.results import integrity, provenance
from lfnlab.results.tables import frame
from lfnlab.scenario.quantity import BITS_PER_S, BYTES, SECONDS, parse
from lfnlab.testbed import captured, sock_diag, virtual_hosts, virtual_run, virtual_time
from lfnlab.testbed import run as testbed
from lfnlab.testbed.linux_laws import CLONE, clone, kernel_law
from lfnlab.testbed.virtual_network import Network

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import polars as pl

    from lfnlab.testbed.virtual_hosts import Connection
    from lfnlab.testbed.virtual_network import Link
    from lfnlab.testbed.virtual_run import Ran

#: Time of a first build, alone and beside other work, and its room on the disk.
COST = "5 to 25 minutes of two cores, and 1.8 GB"
SOURCE = Path("/usr/src/linux-source-6.12.tar.xz")
PROGRAMS = ("gcc", "make", "flex", "bison", "bc", "xz", "tc", "setpriv")
#: What a run takes besides the kernel's memory: linux/run and the process that runs the kernel.
OWN_BYTES = 100 << 20
#: TCP's counters of what a host dropped, or had no memory for.
_OF_MEMORY = (
    *(
        "TCPMemoryPressures",
        "TCPAbortOnMemory",
        "TCPWqueueTooBig",
        "TCPRcvQDrop",
        "TCPZeroWindowDrop",
    ),
    *("PruneCalled", "RcvPruned", "OfoPruned", "TCPBacklogDrop"),
)


@dataclass(frozen=True)
class Build:
    """A build of Linux in virtual time that is of the files beside it."""

    program: Path
    """``linux/run``, which runs a scenario."""
    release: str
    """Of Linux, such as 6.12.90."""
    source: str
    """SHA-256 of Linux's source."""
    inputs: str
    """SHA-256 of all that it is built from besides."""


def build() -> Build:
    """The build that runs use.

    Raises:
        Unavailable: there is none, or it is of other files; the text says how to make it.
    """
    needs_linux("Linux in virtual time")
    root = clone()
    if root is None:
        raise Unavailable(
            "Linux in virtual time is built in a clone of lfnlab's repository, and here is none; "
            f"run make linux in a clone ({COST}), and set {CLONE} to it"
        )
    try:
        inputs, release, source = (root / "build/linux/built").read_text().split()
    except (OSError, ValueError):
        raise Unavailable(
            f"Linux in virtual time is not built; make -C {root} linux builds it ({COST})"
        ) from None
    done = subprocess.run([root / "linux/inputs"], capture_output=True, text=True, check=True)
    if done.stdout.strip() != inputs:
        raise Unavailable(
            "Linux in virtual time was built from other files: laws/, kernel/ or linux/ has "
            f"changed; make -C {root} linux builds what changed, mostly within two minutes"
        )
    return Build(root / "linux/run", release, source, inputs)


def needs() -> dict[str, bool]:
    """The parts of this machine that a build needs, and whether they are there."""
    return {str(SOURCE): SOURCE.is_file()} | {name: bool(which(name)) for name in PROGRAMS}


class Linux:
    """A backend of :func:`lfnlab.execute`.

    Raises:
        Unavailable: it is not built.
    """

    name = "linux"

    def __init__(self) -> None:
        self.build = build()
        self._memory_mib = virtual_hosts.USUAL_MIB

    def check(self, scenario: _core.Scenario, limit_bytes: int | None = None) -> None:
        """Refuse a scenario that this Linux cannot run.

        Raises:
            ScenarioError: naming the key that it lacks, with file and line.
        """
        del limit_bytes  # of the simulator's memory
        try:
            resolved = json.loads(scenario.resolved)
            virtual_time.translated(resolved, ours=True)
            self._memory_mib = virtual_hosts.memory_mib(resolved)
        except ScenarioError as error:
            lines = _core.document(scenario.text, scenario.file)[1]
            key = error.key
            while key and key not in lines:
                key = key[: max(key.rfind("."), key.rfind("["), 0)]
            raise error.at(error.key, scenario.file, lines.get(key)) from None

    def is_random(self, scenario: _core.Scenario) -> bool:
        """The kernel draws in every run: ports, sequence numbers, the phases that follow."""
        del scenario
        return True

    def memory_bytes(self, estimated_bytes: int) -> int:
        """Memory of a run of the scenario that was checked last, at most."""
        del estimated_bytes
        return (self._memory_mib << 20) + OWN_BYTES

    def keys(self, scenario: _core.Scenario, seeds: Iterable[int]) -> list[str]:
        """The addresses of runs."""
        resolved = json.loads(scenario.resolved)
        return [self._key({**resolved, "seed": seed}) for seed in map(int, seeds)]

    def _key(self, resolved: Mapping[str, Any]) -> str:
        build = f"linux {self.build.release} {self.build.source} {self.build.inputs}"
        return integrity.address(f"{provenance.code_version()} {build}", resolved)

    def simulate(
        self, scenario: _core.Scenario, command: str, tell: Callable[[float], bool] | None = None
    ) -> dict[str, bytes] | None:
        """The files of one run for the store; None if ``tell`` cancelled it."""
        resolved = json.loads(scenario.resolved)
        told = virtual_time.translated(resolved, ours=True)
        duration_s = parse(resolved["duration"], SECONDS)
        began_s, before_s = time.monotonic(), _children_s()

        def going(reached_s: float) -> bool:
            return tell is None or tell(reached_s / duration_s)

        with tempfile.TemporaryDirectory(prefix="lfn-linux-", ignore_cleanup_errors=True) as work:
            try:
                ran = virtual_run.run(self.build.program, Path(work), "run", told, going)
            except virtual_run.GivenUp:
                return None
        cost = {"wall_s": time.monotonic() - began_s, "cpu_s": _children_s() - before_s}
        plan = _plan(resolved)
        found = _found(ran, plan)
        tables = _tables(ran, found, plan)
        if ran.packets is not None:
            tables["packets"] = _packets(ran.packets, resolved)
        links = _seen_of_links(ran, tables["queues"], plan)
        summary = testbed.summarised(
            resolved.get("name"), scenario.seed, plan, links, found, tables
        )
        for flow, routes in zip(summary["flows"], plan["routes"], strict=True):
            flow["routes"] = routes
        if "udp" in resolved:
            summary["udp"] = _udp(ran, resolved)
        if "packets" in tables:
            summary["captured_rows"] = len(tables["packets"])
        summary["testbed"] = {
            "virtual": f"Linux {self.build.release}",
            "counters": ran.counters,
            "limits": limits(ran, resolved),
        }
        summary["invalid"] = None
        said = {"linux": vars(self.build) | {"program": str(self.build.program)}}
        return testbed.files_of(
            self._key(resolved), tables, summary, scenario, command, cost | said
        )


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _plan(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a scenario that the test bed's summary needs."""
    flows: dict[int, dict[str, Any]] = {}
    connections = virtual_hosts.connections(resolved)
    network = Network(resolved)
    routes: dict[int, list[dict[str, Any]]] = {}
    changes = list(resolved.get("schedule", []))
    for one in connections:
        flow = one.flow
        routes[one.number] = [{"from_s": 0.0, "links": network.routes(flow)[0]}]
        routes[one.number] += [
            {"from_s": parse(entry["at"], SECONDS), "links": network.route({**flow, **entry})}
            for entry in changes
            if "flow" in entry and virtual_hosts.is_of(entry, one)
        ]
        packet_bytes = round(parse(flow["packet"], BYTES))
        flows[one.number] = {
            "law": flow["law"],
            "kernel_law": kernel_law(flow["law"], ours=True),
            "udt": None,
            "streams": flow["parallel"],
            "paced": flow["pacing"] or flow["slow_start"] == "none",
            "direction": flow["direction"],
            "segment_bytes": packet_bytes - virtual_hosts.HEADERS_BYTES,
            "wire_bytes": packet_bytes + virtual_hosts.FRAMING_BYTES,
            "rtt_s": parse(flow["rtt"], SECONDS),
            "start_s": one.start_s,
            "stop_s": parse(flow["stop"], SECONDS) if flow.get("stop") else None,
        }
    return {
        "duration_s": parse(resolved["duration"], SECONDS),
        "warmup_s": parse(resolved["warmup"], SECONDS),
        "sample_us": round(parse(resolved["sample"], SECONDS) * 1e6),
        "flows": list(flows.values()),
        "connections": connections,
        "routes": list(routes.values()),
        "links": [
            {"id": link.name, "number": link.number, "rates": _rates(link, changes)}
            for link in network.links.values()
        ],
        "changes_s": [parse(change["at"], SECONDS) for change in changes],
    }


def _rates(link: Link, changes: list[dict[str, Any]]) -> list[dict[str, float]]:
    rate_bps = parse(link.table["rate"], BITS_PER_S)
    rates = [{"from_s": 0.0, "rate_bps": rate_bps}]
    for change in changes:
        if change.get("link") == link.name and ("rate" in change or "down" in change):
            rate_bps = parse(change["rate"], BITS_PER_S) if "rate" in change else rate_bps
            now_bps = 0.0 if change.get("down") else rate_bps
            rates.append({"from_s": parse(change["at"], SECONDS), "rate_bps": now_bps})
    return rates


def _packets(packets: np.ndarray, resolved: Mapping[str, Any]) -> pl.DataFrame:
    """The packets that were recorded at the hosts, on the links that the scenario names."""
    network, capture = Network(resolved), resolved["capture"]
    places = {name: place for place, name in enumerate(network.links)}
    tapped = []
    for one in virtual_hosts.connections(resolved):
        data, acks = network.routes(one.flow)
        ends = (places[name] for name in (data[0], data[-1], acks[0], acks[-1]))
        mss = virtual_hosts.mss_bytes(one.flow)
        is_reverse = network.is_dumbbell and one.flow["direction"] == "reverse"
        tapped.append(captured.Tapped(mss, is_reverse, *ends))
    links = [places[name] for name in capture["links"]]
    rows = captured.table(packets, tapped, links, parse(capture["from"], SECONDS))
    return rows[: capture["max_rows"]]


def _udp(ran: Ran, resolved: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Packets that the sources of UDP sent, and those that arrived."""
    duration_s = parse(resolved["duration"], SECONDS)
    found = []
    for place, source in enumerate(resolved["udp"]):
        counts = ran.counters[f"udp{place}"]
        bits = (parse(source["packet"], BYTES) + virtual_hosts.FRAMING_BYTES) * 8
        found.append(
            {
                "name": source["name"],
                "offered_bps": counts["sent"] * bits / duration_s,
                "received_bps": counts["delivered"] * bits / duration_s,
                "sent": counts["sent"],
                "delivered": counts["delivered"],
                "dropped": None,
                "lost": None,
                "mean_delay_s": None,
                "p99_delay_s": None,
            }
        )
    return found


def limits(ran: Ran, resolved: Mapping[str, Any]) -> list[str]:
    """Where a host held a flow back, though the scenario asks for no such limit."""
    found = []
    for place, (one, columns) in enumerate(
        zip(virtual_hosts.connections(resolved), ran.flows, strict=True)
    ):
        for column, key, what in (
            ("rwnd_lim_us", "receive_window", "receive window"),
            ("sndbuf_lim_us", "send_buffer", "send buffer, at most 2 GiB in Linux"),
        ):
            if not columns or one.flow.get(key):
                continue
            # A SYN-ACK has no scaled window: it holds the first round trip to 64 kB on any host.
            opened = np.flatnonzero(columns["bytes_acked"] > 1)[:1]
            waited_s = np.ptp(columns[column][opened[0] :]) / 1e6 if len(opened) else 0.0
            if waited_s > 0:
                found.append(f"connection {place} waited {waited_s:.3g} s for its {what}")
            elif key == "send_buffer" and (empty := _looks_without_data(one, columns)):
                found.append(f"connection {place} had no new data at {empty} samples: its {what}")
    for host, counters in ran.counters.items():
        found += [
            f"{host} counted {counters[name]} {name}" for name in _OF_MEMORY if counters.get(name)
        ]
    if ran.counters["machine"]["pages_searched"]:
        found.append("the kernel was short of memory")
    return found


def _looks_without_data(one: Connection, columns: Mapping[str, np.ndarray]) -> int:
    """Linux counts no wait for a buffer that retransmissions fill."""
    if one.size_bytes is not None or one.flow.get("application") or one.flow.get("stop"):
        return 0
    return int(np.count_nonzero((columns["bytes_acked"] > 1) & (columns["notsent"] == 0)))


def _found(ran: Ran, plan: dict[str, Any]) -> dict[str, Any]:
    """The flows as the test bed's watcher has them; parallel streams in sum."""
    streams: list[list[dict[str, Any]]] = [[] for _ in plan["flows"]]
    for one, columns in zip(plan["connections"], ran.flows, strict=True):
        streams[one.number].append(_watched(one, columns, plan))
    return {"flows": [_in_sum(each) for each in streams], "sent": []}


def _watched(one: Connection, columns: Mapping[str, np.ndarray], plan: dict[str, Any]) -> Any:
    flow = sock_diag.Flow(one.number, plan["flows"][one.number] | {"size_bytes": one.size_bytes})
    names = (
        *("ca", "unacked", "sacked", "lost", "rtt_us", "ssthresh", "cwnd"),
        *("total_retrans", "bytes_acked"),
    )
    wanted = [columns[name].astype(np.int64).tolist() for name in names] if columns else []
    more = [columns[name].tolist() for name in ("pacing", "minrtt_us", "t_us")] if columns else []
    mss = virtual_hosts.mss_bytes(one.flow)
    warmup_us, paced = plan["warmup_s"] * 1e6, plan["flows"][one.number]["paced"]
    for state, unacked, sacked, lost, srtt, limit, cwnd, again, acked, pacing, least, t_us in zip(
        *wanted, *more, strict=True
    ):
        seen = {
            "state": state,
            "unacked": unacked,
            "sacked_bytes": sacked * mss,
            "lost": lost,
            "srtt_us": srtt,
            "ssthresh": limit,
            "cwnd": cwnd,
            "retransmits": again,
            # Linux keeps a rate for flows that are not paced, too.
            "pacing_bytes_s": pacing if paced else 0.0,
            # Linux counts the SYN.
            "acked_bytes": max(acked - 1, 0),
            # All ones: none yet.
            "min_rtt_us": int(least) if least < 2**32 - 1 else 0,
        }
        on_grid = t_us % plan["sample_us"] == 0
        flow.note(t_us / 1e6, seen, on_grid=on_grid, warm=t_us >= warmup_us)
    timeouts = int(columns["timeouts"][-1]) if columns else 0
    return flow.found() | {"timeouts": timeouts}


#: Of parallel streams a row is their sum in these, and the first that is active in the others.
_SUMMED = (
    "cwnd_seg",
    "ssthresh_seg",
    "inflight_seg",
    "delivered_bytes",
    "arrived_bytes",
    "retransmits",
    "pacing_bps",
)
_COUNTED = ("mean_cwnd", "acked_bytes", "warm_bytes", "retransmits", "timeouts")


def _in_sum(streams: list[dict[str, Any]]) -> dict[str, Any]:
    """One flow of its parallel streams, as the simulator reports it."""
    first = streams[0]
    if len(streams) == 1:
        return first
    rows: dict[float, dict[str, Any]] = {}
    for stream in streams:
        for row in stream["rows"]:
            if (there := rows.get(row["t_s"])) is None:
                rows[row["t_s"]] = dict(row)
            else:
                there.update({name: there[name] + row[name] for name in _SUMMED})
    ends = [stream["completion_s"] for stream in streams]
    return {
        "rows": list(rows.values()),
        "events": [event for stream in streams for event in stream["events"]],
        **{name: sum(stream[name] for stream in streams) for name in _COUNTED},
        "min_cwnd": min(stream["min_cwnd"] for stream in streams),
        "max_cwnd": max(stream["max_cwnd"] for stream in streams),
        "srtt_s": sum(stream["srtt_s"] for stream in streams) / len(streams),
        "min_rtt_s": min(stream["min_rtt_s"] for stream in streams),
        "completion_s": None if None in ends else max(ends),
    }


def _tables(ran: Ran, found: dict[str, Any], plan: dict[str, Any]) -> dict[str, pl.DataFrame]:
    rows = [row for flow in found["flows"] for row in flow["rows"]]
    events = [event for flow in found["flows"] for event in flow["events"]]
    return {
        "flows": frame("flows", rows).sort("t_s", "flow"),
        "queues": frame("queues", _queues(ran, plan)),
        "events": frame("events", events).sort("t_s", "flow"),
        "probes": frame("probes", []),
    }


def _queues(ran: Ran, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Samples of the queues; counters begin at the warm-up's end. Marks are not sampled."""
    links = ran.links
    before: dict[int, tuple[int, int, int]] = {}
    rows = []
    places = {link["number"]: place for place, link in enumerate(plan["links"])}
    columns = ("t_us", "link", "waiting", "waiting_bytes", "drops", "packets", "bytes")
    values = (links[name].astype(np.int64).tolist() for name in columns)
    for t_us, number, waiting, waiting_bytes, drops, packets, sent_bytes in zip(
        *values, strict=True
    ):
        link = places[number]
        counted = (packets + waiting + drops, drops, sent_bytes)
        if t_us <= plan["warmup_s"] * 1e6:
            before[link] = counted
        arrivals, dropped, sent = (
            now - then for now, then in zip(counted, before[link], strict=True)
        )
        if t_us % plan["sample_us"] == 0:
            rows.append(
                {
                    "t_s": t_us / 1e6,
                    "link": link,
                    "packets": waiting,
                    "bytes": waiting_bytes,
                    "arrivals": arrivals,
                    "drops": dropped,
                    "sent_bytes": sent,
                }
            )
    return rows


def _seen_of_links(ran: Ran, queues: pl.DataFrame, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Counters of each link, and its waiting times."""
    seen = []
    for place, link in enumerate(plan["links"]):
        of = (ran.links["link"] == link["number"]) & (ran.links["t_us"] >= plan["warmup_s"] * 1e6)
        waits_s, shares = _waits(ran, of, link["rates"])
        counters = ran.queues.get(link["number"])
        last = queues.filter(queues["link"] == place)[-1:]
        drops = int(last["drops"][0]) if len(last) else 0
        early, marks = _of_aqm(counters or {}, drops)
        p99 = min(int(np.searchsorted(shares, 0.99)), len(shares) - 1)
        seen.append(
            {
                "data_packets": int(counters["packets"]) if counters else 0,
                "arrivals": int(last["arrivals"][0]) if len(last) else 0,
                "drops_full": drops - early,
                "drops_early": early,
                "marks": marks,
                "lost": None,
                "mean_queue_s": float(waits_s @ np.diff(shares, prepend=0)),
                "p99_queue_s": float(waits_s[p99]) if len(waits_s) else 0.0,
                "max_waiting": int(ran.links["waiting"][of].max()) if of.any() else 0,
                "classes": (counters or {}).get("classes"),
            }
        )
    return seen


def _waits(
    ran: Ran, of: np.ndarray, rates: list[dict[str, float]]
) -> tuple[np.ndarray, np.ndarray]:
    """Waiting times at the looks, ascending, and the share of packets up to each.

    What waits over the rate is what a packet waits that arrives then; a look counts as often as
    packets were sent since the one before.
    """
    t_s, sent = ran.links["t_us"][of] / 1e6, ran.links["packets"][of]
    begins_s = np.array([rate["from_s"] for rate in rates])
    rates_bps = np.array([rate["rate_bps"] for rate in rates])
    now_bps = rates_bps[np.searchsorted(begins_s, t_s, side="right") - 1]
    packets = np.diff(sent, prepend=sent[:1])
    counts = (now_bps > 0) & (packets > 0)
    waits_s = ran.links["waiting_bytes"][of][counts] * 8 / now_bps[counts]
    order = np.argsort(waits_s, kind="stable")
    return waits_s[order], np.cumsum(packets[counts][order]) / max(packets[counts].sum(), 1)


def _of_aqm(counters: Mapping[str, Any], drops: int) -> tuple[int, int]:
    """Early drops, at most all drops, and marks, as tc counts them over the whole run."""
    marks = sum(counters.get(key, 0) for key in ("ecn_mark", "marked", "ecn_marks"))
    if counters.get("kind") in ("pfifo", "bfifo", "pfifo_head_drop"):
        return 0, 0
    full = counters.get("drop_overlimit", counters.get("overlimit", counters.get("pdrop", 0)))
    return min(max(int(counters.get("drops", 0)) - int(full), 0), drops), int(marks)
