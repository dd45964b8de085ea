"""``lfn testbed``: a scenario on the TCP of this kernel, over the emulated path, as a stored run.

Tables and summary are those of the simulator (``docs/results.md``), from TCP_INFO. Values that the
kernel does not give are null.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import shlex
import shutil
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from lfnlab import _core, metrics
from lfnlab.analysis.capacity import OPPORTUNITY_BYTES
from lfnlab.control_laws.registry import known
from lfnlab.errors import LabError, Unavailable
from lfnlab.machine import needs_linux
from lfnlab.results import provenance
from lfnlab.results.runs import SCHEMA, Results
from lfnlab.results.store import Store, recorded
from lfnlab.results.tables import frame
from lfnlab.statistics import finite
from lfnlab.testbed import ends as testbed_ends
from lfnlab.testbed import sock_diag
from lfnlab.testbed.validity import COALESCE, invalid

if TYPE_CHECKING:
    from lfnlab.experiment.plan import Case
    from lfnlab.scenario.builder import Scenario

# From when the path is there until the scenario begins: the sender starts up.
LEAD_S = 5.0
# Of a core: an emulator that has less to spare is soon late.
CPU_BOUND = 0.9
_LAWS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_REPORTED = (
    "real_time",
    "lateness",
    "reading",
    "own_drops",
    "cpu_s",
    "spun_s",
    "stolen_s",
    "wall_s",
)
_LOOKED_AT = (
    "cwnd_seg",
    "srtt_s",
    "inflight_seg",
    "delivered_bytes",
    "retransmits",
    "pacing_bps",
)


def available() -> list[str]:
    """The laws that are loaded in this kernel."""
    return _LAWS.read_text(encoding="ascii").split()


def kernel_law(law: str) -> str:
    """Kernel's name of a law: ours if it is loaded, else the kernel's own law of that name.

    Raises:
        Unavailable: when it has neither.
    """
    name = law.partition(":")[0]
    ours = f"lfn_{name.replace('-', '_')}"
    there = available()
    for candidate in (ours, name):
        if candidate in there:
            return candidate
    info = known(name)
    ours_runs = info is not None and "kernel" in info.targets
    hint = f"try lfn kernel load {name}" if ours_runs else "it is for the simulator alone"
    raise Unavailable(f"law {law}: this kernel has neither {ours} nor {name}; {hint}")


def plans(
    cases: Iterable[Case], *, file: str = "scenario", iperf3: bool = False, offload: bool = True
) -> list[dict[str, Any]]:
    """Plans of a test bed for scenarios; :func:`run` takes them.

    Args:
        cases: the scenarios.
        file: name of the scenario in errors.
        iperf3: iperf3 sends the flows over TCP, instead of our sender.
        offload: TCP may send several segments in one; otherwise each leaves by itself.

    Raises:
        ScenarioError: a scenario has a key that a test bed cannot run.
        Unavailable: a law or a program is missing.
    """
    needs_linux("the test bed")
    if iperf3 and shutil.which("iperf3") is None:
        raise Unavailable("no iperf3 in PATH")
    program = "iperf3" if iperf3 else "own"
    return [_plan(case.scenario, file, program) | {"offload": offload} for case in cases]


def run(
    cases: Sequence[Case],
    plans: Sequence[dict[str, Any]],
    *,
    out: str | Path,
    title: str,
    live: bool = False,
) -> Results:
    """Run scenarios one after the other on the TCP of this kernel, and store the measurements.

    ``summary["invalid"]`` is the reason for which a run is invalid, or None.

    Args:
        cases: the scenarios with their factors.
        plans: of :func:`plans`, for each.
        out: results directory.
        title: of the experiment.
        live: a line on the terminal shows the path, if stderr is one.

    Raises:
        Unavailable: a right is missing.
        LabError: the sender failed.
    """
    store = Store(out)
    experiment: dict[str, Any] = {"schema": SCHEMA, "title": title, "runs": []}
    for case, plan in zip(cases, plans, strict=True):
        key, files = _measure(case.scenario, plan, live=live)
        store.put({key: files})
        entry = {"key": key, "seed": case.scenario.seed, "factors": dict(case.factors)}
        experiment["runs"].append(entry)
        store.write_experiment(experiment | {"planned": len(cases)})
    return Results.load(out)


def _plan(scenario: Scenario, file: str, program: str) -> dict[str, Any]:
    read = _core.Scenario(scenario.to_toml(), file, prototypes=False)
    plan: dict[str, Any] = json.loads(_core.plan_testbed(read))
    plan |= {"lead_s": LEAD_S, "program": program, "scenario": read.text}
    for number, flow in enumerate(plan["flows"]):
        flow["kernel_law"] = None if flow["udt"] else kernel_law(flow["law"])
        flow["near_port"], flow["far_port"] = testbed_ends.ports(number, program)
    # A SYN of such a law is ECT, and Linux answers it with ECN only where its own law needs ECN.
    marked = (flow for flow in plan["flows"] if not flow["udt"] and _needs_ecn(flow["law"]))
    plan["answering_law"] = next((flow["kernel_law"] for flow in marked), None)
    if plan["background"]:
        plan["background"]["kernel_law"] = kernel_law(plan["background"]["law"])
    return plan


def _needs_ecn(law: str) -> bool:
    info = known(law.partition(":")[0])
    return info is not None and info.family == "ecn"


def _measure(
    scenario: Scenario, plan: dict[str, Any], *, live: bool
) -> tuple[str, dict[str, bytes]]:
    """Key and files of one run."""
    ends = [sys.executable, "-m", testbed_ends.__name__]
    read = _core.Scenario(plan["scenario"], prototypes=False)
    with testbed_ends.Files.made() as files:
        testbed_ends.tell(files.plan, plan)
        command = [*ends, "near", str(files)]
        serve = "trap '' INT; exec " + shlex.join([*ends, "end", "reverse", str(files)])
        code, said = _core.run_shell(
            read,
            command,
            serve,
            here=False,
            coalesce=COALESCE,
            lead_s=LEAD_S,
            live=live,
            offload=plan["offload"],
        )
        if code == 128 + signal.SIGINT:
            raise KeyboardInterrupt
        if code != 0:
            why = (testbed_ends.told(files.seen) or {}).get("failed", f"exit code {code}")
            raise LabError(f"the test bed failed: {why}")
        found = _found(files, plan)
    path = json.loads(said)
    tables = _tables(path, found)
    summary = summarised(scenario.name, scenario.seed, plan, path["links"], found, tables)
    summary["testbed"] = {key: path[key] for key in _REPORTED} | {"sent": found["sent"]}
    summary["invalid"] = _invalid(path, found)
    key = hashlib.sha256(f"{provenance.now()}\n{json.dumps(found)}".encode()).hexdigest()[:24]
    cost = {name: path[name] for name in ("wall_s", "cpu_s")}
    return key, files_of(key, tables, summary, read, provenance.command(), cost)


def _found(files: testbed_ends.Files, plan: dict[str, Any]) -> dict[str, Any]:
    """Records of both ends: lateness, samples of flows, other traffic sent."""
    late_s, sent = [], []
    for direction in ("forward", "reverse"):
        said = testbed_ends.told(getattr(files, direction))
        if said is None:
            raise LabError(f"the {direction} sender of the test bed did not finish")
        if "failed" in said:
            raise LabError(said["failed"])
        late_s.append(said["late_s"])
        sent += [{"direction": direction, **counts} for counts in said["sent"]]
    seen = testbed_ends.told(files.seen) or {}
    over_udt = {counts["flow"]: counts for counts in sent if "flow" in counts}
    flows = [
        _seen_of_udt(number, flow, over_udt[number], plan) if flow["udt"] else seen[str(number)]
        for number, flow in enumerate(plan["flows"])
    ]
    others = [counts for counts in sent if "flow" not in counts]
    return {"late_s": max(late_s), "flows": flows, "sent": others}


def _seen_of_udt(
    number: int, flow: dict[str, Any], sent: dict[str, Any], plan: dict[str, Any]
) -> dict[str, Any]:
    """Samples of a UDT sender, in the form that :mod:`lfnlab.testbed.sock_diag` has for TCP."""
    rows: list[dict[str, Any]] = []
    events, windows = [], []
    last = dict.fromkeys(("delivered_bytes", "retransmits", "naks", "timeouts", "srtt_s"), 0)
    warm_bytes, least_s = 0, math.inf
    for look in sent["looks"]:
        t_s = flow["start_s"] + look["t_s"]
        state = sock_diag.RECOVERY if look["repairing"] else sock_diag.OPEN
        before_seg = rows[-1]["cwnd_seg"] if rows else look["cwnd_seg"]
        rows.append(
            {"t_s": t_s, "flow": number, "ssthresh_seg": math.inf, "state": state}
            | {key: look[key] for key in _LOOKED_AT}
        )
        for count, kind in (("naks", sock_diag.RECOVERY), ("timeouts", sock_diag.LOSS)):
            if look[count] > last[count]:
                events.append(
                    {
                        "t_s": t_s,
                        "flow": number,
                        "kind": sock_diag.REDUCTIONS[kind],
                        "cwnd_before_seg": before_seg,
                        "cwnd_after_seg": look["cwnd_seg"],
                        "ssthresh_seg": math.inf,
                        "lost": 0,
                    }
                )
        if t_s >= plan["warmup_s"]:
            windows.append(look["cwnd_seg"])
        else:
            warm_bytes = look["delivered_bytes"]
        last, least_s = look, min(least_s, look["srtt_s"])
    return {
        "rows": rows,
        "events": events,
        "mean_cwnd": math.fsum(windows) / len(windows) if windows else 0.0,
        "min_cwnd": min(windows, default=0),
        "max_cwnd": max(windows, default=0),
        "acked_bytes": last["delivered_bytes"],
        "warm_bytes": warm_bytes,
        "retransmits": last["retransmits"],
        "srtt_s": last["srtt_s"],
        "min_rtt_s": least_s if sent["looks"] else 0.0,
        "completion_s": sent["completion_s"],
    }


def _invalid(path: dict[str, Any], found: dict[str, Any]) -> str | None:
    if why := invalid(path):
        return why
    if found["late_s"] > 0:
        return f"the sender was ready {found['late_s']:.1f} s after the scenario began"
    share = path["cpu_s"] / path["wall_s"]
    if share > CPU_BOUND:
        return f"the emulator took {share:.0%} of a core, above the bound of {CPU_BOUND:.0%}"
    return None


def _tables(path: dict[str, Any], found: dict[str, Any]) -> dict[str, pl.DataFrame]:
    rows = [row for flow in found["flows"] for row in flow["rows"]]
    queues = frame("queues", path["samples"]).with_columns(pl.col("t_s") - LEAD_S)
    events = [event for flow in found["flows"] for event in flow["events"]]
    return {
        "flows": frame("flows", rows).sort("t_s", "flow"),
        "queues": queues.filter(pl.col("t_s") >= 0),
        "events": frame("events", events).sort("t_s", "flow"),
        "probes": frame("probes", []),
    }


def summarised(
    name: str | None,
    seed: int,
    plan: dict[str, Any],
    links: Sequence[dict[str, Any]],
    found: dict[str, Any],
    tables: dict[str, pl.DataFrame],
) -> dict[str, Any]:
    """The summary of a run of Linux's TCP, without what it says of where it ran.

    Args:
        name: of the scenario.
        seed: of the run.
        plan: the scenario's times, flows and links, as ``_core.plan_testbed`` has them.
        links: what was counted at each.
        found: what was seen of each flow (``flows``), as :meth:`sock_diag.Flow.found` has it.
        tables: the run's.
    """
    flows = [
        _flow(number, flow, seen, plan)
        for number, (flow, seen) in enumerate(zip(plan["flows"], found["flows"], strict=True))
    ]
    goodputs = [flow["goodput_bps"] for flow in flows]
    covs = [flow["cov"] for flow in flows if flow["cov"] is not None]
    return {
        "name": name,
        "hash": hashlib.sha256(tables["flows"].write_json().encode()).hexdigest()[:16],
        "seed": seed,
        "sim_s": plan["duration_s"],
        "warmup_s": plan["warmup_s"],
        "data_packets_delivered": links[0]["data_packets"],
        "events": None,
        "jain": metrics.jain(goodputs) if len(goodputs) > 1 and any(goodputs) else None,
        "cov": math.fsum(covs) / len(covs) if covs else None,
        "flows": flows,
        "links": [
            _link(number, link, seen, tables["queues"], plan)
            for number, (link, seen) in enumerate(zip(plan["links"], links, strict=True))
        ],
        "changes_s": sorted(set(plan["changes_s"])),
        "background": None,
    }


def _flow(
    number: int, flow: dict[str, Any], seen: dict[str, Any], plan: dict[str, Any]
) -> dict[str, Any]:
    end_s = min(plan["duration_s"], flow["stop_s"] or math.inf)
    if seen["completion_s"] is not None:
        end_s = min(end_s, flow["start_s"] + seen["completion_s"])
    begin_s = max(flow["start_s"], plan["warmup_s"])
    delivered_bytes = seen["acked_bytes"] - seen["warm_bytes"]
    kinds = [event["kind"] for event in seen["events"]]
    bins = delivered_in_seconds(seen, plan["warmup_s"], begin_s, end_s)
    return {
        "id": number,
        "law": flow["law"],
        "kernel_law": flow["kernel_law"],
        **({"transport": "udt"} if flow["udt"] else {}),
        **({"streams": flow["streams"]} if flow.get("streams", 1) > 1 else {}),
        "direction": (direction := flow.get("direction", "forward")),
        "routes": [{"from_s": 0.0, "links": [direction]}],
        "segment_bytes": flow["segment_bytes"],
        "wire_bytes": flow["wire_bytes"],
        "rtt_s": flow["rtt_s"],
        "start_s": flow["start_s"],
        "goodput_bps": delivered_bytes * 8 / (end_s - begin_s) if end_s > begin_s else 0.0,
        "delivered_bytes": delivered_bytes,
        "sent": None,
        "retransmits": seen["retransmits"],
        "timeouts": seen.get("timeouts", kinds.count(sock_diag.REDUCTIONS[sock_diag.LOSS])),
        "loss_events": sum(kind in sock_diag.REDUCTIONS.values() for kind in kinds),
        "undos": None,
        "mean_cwnd_segments": seen["mean_cwnd"],
        "min_cwnd_segments": seen["min_cwnd"],
        "max_cwnd_segments": seen["max_cwnd"],
        "srtt_s": seen["srtt_s"],
        "min_rtt_s": seen["min_rtt_s"],
        "cov": finite(metrics.cov(bins)) if len(bins) > 1 else None,
        "completion_s": seen["completion_s"],
    }


def delivered_in_seconds(
    seen: dict[str, Any], warmup_s: float, begin_s: float, end_s: float
) -> list[float]:
    """Bytes acknowledged in each second after the warm-up that the flow lived through.

    Args:
        seen: samples ``rows`` of ``t_s`` and ``delivered_bytes``, and ``warm_bytes``, the bytes
            before the warm-up's end. The last sample before a second's end counts for it.
        warmup_s: the seconds begin there.
        begin_s, end_s: when the flow is under way after the warm-up.
    """
    seconds = warmup_s + np.arange(math.floor(end_s - warmup_s + 1e-9) + 1)
    times = [row["t_s"] for row in seen["rows"]]
    totals = np.array([seen["warm_bytes"], *(row["delivered_bytes"] for row in seen["rows"])])
    ends = totals[np.searchsorted(times, seconds[seconds >= begin_s - 1e-9])].astype(float)
    return list(np.diff(ends))


def _link(
    number: int,
    link: dict[str, Any],
    seen: dict[str, Any],
    queues: pl.DataFrame,
    plan: dict[str, Any],
) -> dict[str, Any]:
    samples = queues.filter(pl.col("link") == number, pl.col("t_s") <= plan["duration_s"])
    warm = samples.filter(pl.col("t_s") >= plan["warmup_s"])
    rates = link["rates"]
    known_bps = [(rate["from_s"], rate["rate_bps"]) for rate in rates]
    opportunities = {}
    if link.get("follows_trace"):
        offered_bytes = warm["capacity_bytes"][-1] - warm["capacity_bytes"][0] if len(warm) else 0
        opportunities["opportunities"] = round(offered_bytes / OPPORTUNITY_BYTES)
    return {
        "id": link["id"],
        "rate_bps": rates[-1]["rate_bps"],
        "rates": rates,
        **opportunities,
        "utilization": metrics.utilization(
            warm, number, known_bps, start_s=warm["t_s"][0], end_s=warm["t_s"][-1]
        )
        if len(warm) > 1
        else 0.0,
        "arrivals": seen["arrivals"],
        "drops": seen["drops_full"] + seen["drops_early"],
        "early_drops": seen["drops_early"],
        "marks": seen["marks"],
        "random_losses": seen["lost"],
        "mean_queue_s": seen["mean_queue_s"],
        "p99_queue_s": seen["p99_queue_s"],
        "max_queue_packets": seen["max_waiting"],
        **({"classes": seen["classes"]} if seen.get("classes") else {}),
    }


def files_of(
    key: str,
    tables: dict[str, pl.DataFrame],
    summary: dict[str, Any],
    scenario: _core.Scenario,
    command: str,
    more: dict[str, Any],
) -> dict[str, bytes]:
    """The files of a run of Linux's TCP.

    Args:
        key: its address.
        tables: by name.
        summary: its summary.
        scenario: what was run.
        command: what asked for it.
        more: for ``provenance.json``: ``wall_s``, ``cpu_s``.
    """
    files = {"scenario.toml": scenario.text.encode(), "summary.json": json.dumps(summary).encode()}
    for name, table in tables.items():
        buffer = io.BytesIO()
        table.write_parquet(buffer, compression="zstd")
        files[f"{name}.parquet"] = buffer.getvalue()
    said = {
        **provenance.machine(),
        # It follows from more than scenario and code.
        "key": key,
        "finished": provenance.now(),
        **more,
        "hash": summary["hash"],
        "command": command,
        "resolved": json.loads(scenario.resolved),
    }
    return files | {"provenance.json": recorded(said, files)}
