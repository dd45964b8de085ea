"""Scenarios of an attack: a path of the space, with a law on it, as tables of TOML."""

from __future__ import annotations

from typing import Any

from lfnlab.attacker.space import Path, buffer, number, times, word

WARMUP_S = 5.0
"""Figures are of the time from here on."""
AFTER_S = 2.0
"""Where the trouble ends, figures are of the time from so long after its end."""
SHORT_S, LONG_S = 20.0, 60.0
"""Durations of a run of the search, and of one that confirms."""
START = "uniform(0s, 0.1s)"
"""Flows begin at times that depend on the seed, so that no weakness hangs on one phase."""
NEIGHBOUR = "cubic"
"""The law of the neighbour."""


def begins_s(path: Path) -> float:
    """From when on figures are taken, in seconds."""
    ends_s = number(path, "ends_s")
    return max(WARMUP_S, ends_s + AFTER_S) if ends_s else WARMUP_S


def link_bps(path: Path) -> float:
    """Mean rate of the link while figures are taken, in bit/s; an outage counts as none."""
    rate_bps = number(path, "rate_mbps") * 1e6
    if number(path, "ends_s"):
        return rate_bps
    up = 1.0 - number(path, "outage_s") / number(path, "change_every_s")
    return rate_bps * (1.0 + number(path, "step_rate")) / 2.0 * up


def document(path: Path, law: str, seed: int, duration_s: float) -> dict[str, Any]:
    """The tables of a scenario.

    Args:
        path: keys that differ from the plain dumbbell.
        law: as a scenario's text names it.
        seed: of every random stream.
        duration_s: simulated time in seconds.
    """
    rtt = f"{number(path, 'rtt_ms'):g}ms"
    flows: list[dict[str, Any]] = [{"law": law, "rtt": rtt, "start": START}]
    if (count := int(number(path, "flows"))) > 1:
        flows[0]["count"] = count
    if word(path, "neighbour") != "none":
        rtt_ms = number(path, "rtt_ms") * number(path, "neighbour_rtt")
        flows.append({"law": NEIGHBOUR, "rtt": f"{rtt_ms:g}ms", "start": START})
    made: dict[str, Any] = {
        "schema": 1,
        "seed": seed,
        "duration": f"{duration_s:g}s",
        "warmup": f"{begins_s(path):g}s",
        "link": _link(path),
        "flow": flows,
    }
    if udp := _pulses(path, duration_s):
        made["udp"] = [{"bursts": udp}]
    if "short_flows" in path:
        load = number(path, "short_flows") * number(path, "rate_mbps")
        made["traffic"] = [{"short_flows": {"load": f"{load:g}Mbit/s"}}]
    if schedule := _schedule(path, duration_s):
        made["schedule"] = schedule
    return made


def _link(path: Path) -> dict[str, Any]:
    rate_mbps = number(path, "rate_mbps")
    queue = {"size": buffer(path)}
    if "queue" in path:
        queue = {"kind": word(path, "queue")} | queue
    made: dict[str, Any] = {"rate": f"{rate_mbps:g}Mbit/s", "queue": queue}
    if "loss" in path:
        mean, burst = number(path, "loss"), number(path, "loss_burst")
        made["loss"] = mean
        if burst > 1:
            # Mean p / (p + r), mean burst 1 / r.
            p = mean / (1.0 - mean) / burst
            made["loss"] = {"kind": "gilbert-elliott", "p": p, "r": 1.0 / burst}
    if "reorder" in path:
        delay = f"{number(path, 'reorder_ms'):g}ms"
        made["reorder"] = {"p": number(path, "reorder"), "delay": delay}
    if "jitter_ms" in path:
        made["jitter"] = {"low": "0s", "high": f"{number(path, 'jitter_ms'):g}ms"}
    if reverse := _reverse(path, rate_mbps):
        made["reverse"] = reverse
    return made


def _reverse(path: Path, rate_mbps: float) -> dict[str, Any]:
    """The link of the ACKs, where it differs."""
    acks: dict[str, Any] = {}
    if "ack_loss" in path:
        acks["loss"] = number(path, "ack_loss")
    if "ack_batch_ms" in path:
        acks["aggregate"] = f"{number(path, 'ack_batch_ms'):g}ms"
    if "ack_jitter_ms" in path:
        acks["jitter"] = {"low": "0s", "high": f"{number(path, 'ack_jitter_ms'):g}ms"}
    made: dict[str, Any] = {"acks": acks} if acks else {}
    if "back_rate" in path:
        made["rate"] = f"{number(path, 'back_rate') * rate_mbps:g}Mbit/s"
        made["queue"] = {"kind": "drop-tail", "size": "100 packets"}
    return made


def _end_s(path: Path, duration_s: float) -> float:
    """When the trouble ends."""
    return number(path, "ends_s") or duration_s


def _pulses(path: Path, duration_s: float) -> list[dict[str, str]]:
    if "udp" not in path:
        return []
    rate = f"{number(path, 'udp') * number(path, 'rate_mbps'):g}Mbit/s"
    for_s, end_s = number(path, "udp_for_s"), _end_s(path, duration_s)
    return [
        {"start": _s(start_s), "stop": _s(min(start_s + for_s, end_s)), "rate": rate}
        for start_s in times(number(path, "udp_every_s"), end_s)
    ]


def _schedule(path: Path, duration_s: float) -> list[dict[str, Any]]:
    """The changes of the link: in each period first as the path is, then otherwise."""
    every_s, end_s = number(path, "change_every_s"), _end_s(path, duration_s)
    rate_mbps = number(path, "rate_mbps")
    made: list[tuple[float, dict[str, Any]]] = []

    def pair(from_s: float, to_s: float, other: dict[str, Any], plain: dict[str, Any]) -> None:
        if from_s < end_s:
            made.append((from_s, other))
            if min(to_s, end_s) < duration_s:
                made.append((min(to_s, end_s), plain))

    for start_s in times(every_s, end_s):
        half_s, next_s = start_s + every_s / 2.0, start_s + every_s
        if "step_rate" in path:
            other = number(path, "step_rate") * rate_mbps
            pair(half_s, next_s, {"rate": f"{other:g}Mbit/s"}, {"rate": f"{rate_mbps:g}Mbit/s"})
        if "step_delay_ms" in path:
            delay = f"{number(path, 'step_delay_ms'):g}ms"
            pair(half_s, next_s, {"delay": delay}, {"delay": "0s"})
        if "outage_s" in path:
            # It ends where the rate changes at the latest, so that no entry brings it back early.
            down_s = number(path, "outage_s")
            pair(next_s - down_s, next_s, {"down": True}, {"down": False})
    if "ends_s" in path and "loss" in path:
        made.append((end_s, {"loss": 0.0}))
    made.sort(key=lambda entry: entry[0])
    return [{"at": _s(at_s), "link": "forward", **change} for at_s, change in made]


def _s(time_s: float) -> str:
    return f"{round(time_s, 6):g}s" if time_s < 1000 else f"{time_s:.3f}s"
